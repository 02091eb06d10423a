//! [`Looks`]: what looks at an endpoint remember from one to the next. A look goes through a bounded part of what is
//! open, so that it takes the same time however much there is. Of receives and unexpected messages it sees the oldest,
//! which stand first in their lists. Sends stand in as many lists as there are receivers: so each look goes through
//! some of them, and remembers the oldest that looks have seen so far.

use crate::ages::Ages;
use crate::collections::slab::Key;
use crate::envelope::{Number, Pattern};
use crate::operation::{Queue, Space};
use crate::wait_cause::WaitCause;
use crate::waits::Waits;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use tidegate_flow::{Instant, PeerId};

/// Sends that are remembered, and messages on their way to us.
const SENDS_MOST: usize = 64;
/// Looks that a program may let pass before it asks again. One: where the processor is shared, a look comes as soon as
/// the program goes on, and the question afterwards.
const UNASKED_MOST: u8 = 1;
/// Places for kept sends that one look goes through, and places for pulls.
pub(crate) const PLACES_PER_LOOK: usize = 64;

/// A send, by a name that no other has at two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SendName {
    /// It waits to leave for a peer, with this number.
    Held(PeerId, u32),
    /// It is kept until its receiver has it.
    Kept(Key),
}

/// What is known of a send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenSend {
    pub(crate) to: PeerId,
    pub(crate) space: Space,
    pub(crate) bytes: usize,
    pub(crate) since: Instant,
    pub(crate) waits_for: WaitCause,
}

/// A question of the program whether a message is there, to which the answer was no.
#[derive(Clone, Copy, Debug)]
struct Probe {
    queue: Queue,
    pattern: Pattern,
    /// Its number among receives and probes, and whether it was asked before.
    number: Number,
    is_again: bool,
    /// How many looks have come since it was asked last.
    looks_since: u8,
    since: Option<Instant>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Looks {
    /// Posted receives, by number.
    pub(crate) receives: Ages<u64>,
    /// What the program has asked for in vain last.
    probe: Option<Probe>,
    /// Messages on their way into receives, and since when they have been seen.
    pub(crate) pulls: BTreeMap<Key, Instant>,
    /// Unexpected messages, by queue and number.
    pub(crate) unexpected: Ages<(bool, u32)>,
    /// The oldest sends.
    pub(crate) sends: BTreeMap<SendName, SeenSend>,
    /// Where the next look begins.
    pub(crate) next_lane: u32,
    pub(crate) next_kept: usize,
    pub(crate) next_pull: usize,
    /// Who has not pulled sends that looks have seen before.
    pulling: BTreeMap<PeerId, Instant>,
    pub(crate) waits: Waits,
    /// The wait of an application that polls in vain.
    vain: Option<Vain>,
    /// The last number of receives and probes when the last wait began, and that from which on those were posted whose
    /// senders it waits for.
    begun: Number,
    together: Number,
    /// The room of the list of the last such wait, for the next, since waits are many.
    room: Vec<PeerId>,
}

/// The application polls in vain.
#[derive(Debug)]
struct Vain {
    /// Until when that has been counted.
    counted: Instant,
    /// The senders for whose messages it waits, each once, and whether it waits for any.
    awaited: Vec<PeerId>,
    any: bool,
}

/// Says nothing: no decision follows from what is noted here, and the explorer tells states apart by what is printed.
impl fmt::Debug for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Looks")
    }
}

/// The name of a queue.
pub(crate) fn is_tagged(queue: Queue) -> bool {
    matches!(queue, Queue::Tagged)
}

/// Moves a place on by what a look goes through, and begins anew behind the last. Returns where this look begins.
pub(crate) fn turn(next: &mut usize, places: usize) -> usize {
    let from = if *next < places { *next } else { 0 };
    *next = from + PLACES_PER_LOOK;
    from
}

impl Looks {
    /// A look has seen a send.
    pub(crate) fn see_send(&mut self, name: SendName, seen: SeenSend) {
        let known = self.sends.entry(name).or_insert(seen);
        known.waits_for = seen.waits_for;
    }

    /// A look has seen a message on its way. Not many are remembered.
    pub(crate) fn see_pull(&mut self, key: Key, now: Instant) {
        if self.pulls.len() < SENDS_MOST {
            self.pulls.entry(key).or_insert(now);
        }
    }

    /// The program has asked for a message that is not there, by a probe with this number.
    pub(crate) fn note_probe(&mut self, queue: Queue, pattern: Pattern, number: Number) {
        match &mut self.probe {
            Some(probe) if (probe.queue, probe.pattern) == (queue, pattern) => {
                (probe.looks_since, probe.number, probe.is_again) = (0, number, true);
            }
            probe => *probe = Some(Probe { queue, pattern, number, is_again: false, looks_since: 0, since: None }),
        }
    }

    /// It has found one.
    pub(crate) fn end_probe(&mut self) {
        self.probe = None;
    }

    /// The question that the program asks again and again, if it has posted nothing since: its number is the last.
    pub(crate) fn probe_since(&self, last: Number) -> Option<Pattern> {
        let probe = self.probe.as_ref().filter(|probe| probe.looks_since <= UNASKED_MOST && probe.is_again)?;
        (probe.number == last).then_some(probe.pattern)
    }

    /// Receives that were posted together are those from one of these numbers on. They are tried in this order: since
    /// the last wait began; as in an earlier wait; all.
    pub(crate) fn posted_together(&self) -> [Number; 3] {
        [Number(self.begun.0 + 1), self.together, Number::default()]
    }

    /// Receives from this number on do.
    pub(crate) fn note_together(&mut self, since: Number) {
        self.together = since;
    }

    /// A wait has begun after this number.
    pub(crate) fn note_begun(&mut self, last: Number) {
        self.begun = last;
    }

    /// The question that the program has asked last, if it goes on to, and since when.
    pub(crate) fn see_probe(&mut self, now: Instant) -> Option<(Queue, Pattern, Instant)> {
        let probe = self.probe.as_mut().filter(|probe| probe.looks_since <= UNASKED_MOST);
        let Some(Probe { queue, pattern, looks_since, since, .. }) = probe else {
            self.probe = None;
            return None;
        };
        *looks_since += 1;
        Some((*queue, *pattern, *since.get_or_insert(now)))
    }

    /// Forgets the youngest sends, as many as are too many, and returns the others, the oldest first.
    pub(crate) fn oldest_sends(&mut self) -> Vec<SeenSend> {
        let mut order: Vec<(Instant, SendName)> = self.sends.iter().map(|(name, seen)| (seen.since, *name)).collect();
        order.sort_unstable();
        for (_, name) in order.drain(SENDS_MOST.min(order.len())..) {
            self.sends.remove(&name);
        }
        order.iter().filter_map(|(_, name)| self.sends.get(name).copied()).collect()
    }

    /// The sends are told, and time: who lets them wait for a pull is noted. A send that looks have seen only once has
    /// not waited.
    pub(crate) fn note_pulls(&mut self, sends: &[SeenSend], now: Instant) {
        let mut pulling = BTreeMap::new();
        for seen in sends.iter().filter(|seen| seen.waits_for == WaitCause::Pull && seen.since < now) {
            pulling.entry(seen.to).or_insert(seen.since);
        }
        for peer in self.pulling.keys().filter(|peer| !pulling.contains_key(peer)) {
            // It has lasted until the last look.
            self.waits.end(*peer, WaitCause::Pull);
        }
        self.waits.tell_time(now);
        for (&peer, &since) in pulling.iter().filter(|(peer, _)| !self.pulling.contains_key(peer)) {
            self.waits.begin_since(peer, WaitCause::Pull, since);
        }
        self.pulling = pulling;
    }

    /// An empty list of those for whom the application waits.
    pub(crate) fn take_room(&mut self) -> Vec<PeerId> {
        std::mem::take(&mut self.room)
    }

    /// The application has polled in vain since a certain moment, and waits for messages of these peers.
    /// Where it has sends that wait, these say for which peers it does if no receive does.
    pub(crate) fn begin_vain(&mut self, since: Instant, mut awaited: Vec<PeerId>, has_sends: bool) {
        awaited.sort_unstable();
        awaited.dedup();
        for &peer in &awaited {
            self.waits.begin_since(peer, WaitCause::Message, since);
        }
        // A receive from any next to others is often one for what may come.
        let any = awaited.is_empty() && !has_sends;
        if any {
            self.waits.begin_any(since);
        }
        self.vain = Some(Vain { counted: since, awaited, any });
    }

    /// Whether it waits, and for no peer by name.
    pub(crate) fn waits_for_any(&self) -> bool {
        self.vain.as_ref().is_some_and(|vain| vain.any)
    }

    /// If any are named, it waits for these from now on.
    pub(crate) fn name_awaited(&mut self, now: Instant, awaited: Vec<PeerId>) {
        if let Some(vain) = &self.vain
            && !awaited.is_empty()
        {
            let counted = vain.counted;
            self.waits.end_any(now);
            self.begin_vain(now, awaited, false);
            self.vain.iter_mut().for_each(|vain| vain.counted = counted);
        }
    }

    /// Whether it does. Returns also how long it has since this was asked last.
    pub(crate) fn count_vain(&mut self, now: Instant) -> (bool, Duration) {
        let Some(vain) = &mut self.vain else { return (false, Duration::ZERO) };
        let passed = now.since(vain.counted);
        vain.counted = vain.counted.max(now);
        (true, passed)
    }

    /// It has until this moment. Returns how long that is beyond what was counted.
    pub(crate) fn end_vain(&mut self, until: Instant) -> Duration {
        let Some(mut vain) = self.vain.take() else { return Duration::ZERO };
        for &peer in &vain.awaited {
            self.waits.end_at(peer, WaitCause::Message, until);
        }
        if vain.any {
            self.waits.end_any(until);
        }
        vain.awaited.clear();
        self.room = vain.awaited;
        until.since(vain.counted)
    }

    /// The place of a peer that is gone goes to another.
    pub(crate) fn release(&mut self, peer: PeerId) {
        // The wait for a peer that is gone is over.
        if let Some(vain) = &mut self.vain {
            vain.awaited.retain(|awaited| *awaited != peer);
        }
        self.sends.retain(|_, seen| seen.to != peer);
        self.pulling.remove(&peer);
        self.probe = None;
        self.waits.forget(peer);
    }
}
