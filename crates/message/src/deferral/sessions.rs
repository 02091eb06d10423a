//! [`Sessions`]: receive memory that is not enough for all senders at a time goes to those that are active.
//!
//! A receiver keeps some kilobytes for each sender (its window, notes and answers to it, the message that is put
//! together), and no less for one that is silent, if all are to be able to send at a time. Where that is more than
//! there is, a sender first has to have a *session*, one of a pool: it goes on to others as soon as the receiver keeps
//! nothing of its sender. For a sender without one there are two numbers: whether it has asked, and up to which receive
//! its sends have been compared.
//!
//! *The simple idea*, to let senders wait until a session comes back, ends with a hang: sessions may be in use by
//! messages that the program receives only after it has got one from a sender that waits. So the last session is given
//! in *turns*, with a window of nothing: its sender shows its sends, which are deferred as if there were no room (W4 in
//! the module above), or tells their number, and then it is the next one's turn. Nothing is ever stored of it, so no
//! turn waits for a receive.
//!
//! - S1: a sender without a session sends nothing but that it asks, and, where it has asked for sends that it has shown
//!   before, that there are more. Its sends wait as they do for a receiver whose window is not known yet. Why: the
//!   bound.
//! - S2: a session is wanted back only if the receiver keeps nothing of its sender but dropped envelopes; of one with a
//!   window not even these. The last one is wanted back as soon as no query of its sender is open, whatever is pulled
//!   from it: who always has more that receives wait for would keep it. From then on the sender has no room. Why: it
//!   goes on to others soon.
//! - S3: a sender whose session is wanted back shows every send that it had when that was said, and says so when
//!   nothing is open: no notice in doubt, no request unanswered. In its turn it says so unasked as soon as it has
//!   nothing more to send, since its program may be silent from then on. Then it sends nothing more. The receiver
//!   queries it for receives that were posted meanwhile (W5), and ends the session when it keeps nothing and no receive
//!   has just got a message of it. All that was sent before has come by then; if any of that is stored, the session
//!   goes on instead. After its end the sender has shown nothing. Why: nothing is lost, a turn compares all sends with
//!   all receives, and both sides agree on what is dropped: nothing.
//! - S4: those that have asked have turns one after the other, and none has another one before a receive or a peek has
//!   been posted with which its sends were not compared, or it has new ones. While others need one, a turn has a number
//!   of steps; then its sender is queried only for the receives that are posted by then, and counts as compared with
//!   these; a receive that takes several messages gets one more, and holds up those of its queue only. Why: a receive
//!   gets its message after at most one turn of each; with nothing new there is nothing to do; receives that are posted
//!   all the time do not make a turn endless. Why not one step: a program that receives one message after the other
//!   would wait for a turn for each.
//! - S5: a peek waits until all sends have been compared with it for which a session had been asked when it was posted.
//!   Why: else it could miss every turn. For later ones it does not wait: senders that always have more would not let
//!   it end. Behind a receive that waits for a sender's next turn (S4) it is not queried in this one: that receive
//!   would count as compared. A sender whose turn has just ended has asked only when it has done so again: a peek in
//!   between may miss its sends, and a later one finds them.
//! - S6: when its turn begins, and when it is wanted back, a sender whose sends would take more batches to show than
//!   the receiver has receives and peeks for it tells their number instead. All of them count as dropped, and as
//!   compared with nothing: the receiver queries it for each receive and peek, from the first (W5). No query is open
//!   then: the answer could be a send that an earlier receive accepts, which is to get one before it. Why: a turn takes
//!   no more round trips because many sends wait; else those that came during one turn would make the next one longer.
//!   Why only twice: each time the queries begin again.
//!
//! A sender that never gives its session back, because its process is stopped or hostile, keeps it: with the last one
//! that holds up the turns of all others, but not those that have a window.

use crate::envelope::{Number, Pattern};
use crate::malformed::Malformed;
use crate::operation::{Queue, Target};
use crate::wire::Asking;
use std::collections::VecDeque;
use tidegate_flow::{PeerId, Peers};

/// Where a sender stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    /// It has no session, and has not asked.
    #[default]
    Outside,
    /// It has asked.
    Asked,
    /// It has a session.
    Inside,
    /// It has one, and we want it back.
    Leaving,
    /// The same, and it has shown everything.
    Shown,
}

#[derive(Clone, Debug)]
struct Peer {
    standing: Standing,
    /// Whether it has sends that were not compared with any receive.
    has_new: bool,
    /// Its turn does not show sends that are newer than some receive or peek: the low bits of the number of that. After
    /// its turn, how far that is behind `compared`.
    unshown: u32,
    /// Its sends that were there when this receive or peek was posted have been compared with it.
    compared: Number,
}

/// Of a sender that has no sends for us.
const ALL: Number = Number(u64::MAX);

impl Default for Peer {
    fn default() -> Self {
        Peer { standing: Standing::Outside, has_new: false, unshown: 0, compared: ALL }
    }
}

impl Peer {
    /// It has sends that it did not have when it spoke last. `latest`: the last receive or peek by now.
    fn note_new(&mut self, latest: Number) {
        (self.has_new, self.compared) = (true, self.compared.min(latest));
    }

    /// The same of one that asks. It may have had them since all was to be shown in its last turn.
    fn note_new_since_turn(&mut self, latest: Number) {
        self.compared = Number(self.compared.0.saturating_sub(u64::from(std::mem::take(&mut self.unshown))));
        self.note_new(latest);
    }

    /// It shows no more than what it has now.
    fn begin_leaving(&mut self, latest: Number) {
        (self.standing, self.unshown) = (Standing::Leaving, latest.0 as u32);
    }

    /// All that it has shown has been compared with all that was posted. `is_cut`: but for one queue, in which a
    /// receive for several messages takes more. Later ones of that queue get nothing before it.
    fn end(&mut self, latest: Number, is_cut: bool) {
        let unshown = (latest.0 as u32).wrapping_sub(self.unshown).cast_signed().max(0).cast_unsigned();
        *self = Peer { unshown, compared: latest, has_new: is_cut, ..Peer::default() };
    }
}

/// The next thing to be done for senders that have asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// A sender gets a session.
    Grant {
        /// The sender.
        to: PeerId,
        /// Whether it has a window: the last session has none.
        has_window: bool,
    },
    /// The sender that has the last session gets a window: another session is free.
    Widen(PeerId),
    /// No sender waits, or no session is free.
    Nothing,
}

/// Others need the session that is given in turns.
#[derive(Clone, Copy, Debug, Default)]
struct Wanted {
    /// Steps of the turn since: messages that receives have got, batches, answers without a message.
    steps: u32,
    /// Whether a receive has got a message since the last look.
    has_passed: bool,
    /// Its sender is compared with receives and peeks of each queue up to these only.
    limits: Option<[Number; 2]>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Sessions {
    peers: Peers<Peer>,
    /// Sessions with a window that no sender has.
    free: u32,
    /// Senders that have a session with a window, those first that have not been looked at for longest, with the bytes
    /// that were free of it then.
    holders: VecDeque<(PeerId, u32)>,
    /// The sender that has the one without.
    last: Option<PeerId>,
    /// Whether others need that one.
    wanted: Option<Wanted>,
    /// Steps of a turn, while others need one.
    steps_most: u32,
    /// Senders that have asked, in order.
    askers: VecDeque<PeerId>,
    /// Senders that have shown everything, and whose sessions are about to end.
    shown: Vec<PeerId>,
    /// None of those that have asked needs a turn as long as no receive beyond this one has been posted.
    idle_until: Option<Number>,
}

impl Sessions {
    /// Bytes of the heap for each session: queues double as they grow.
    pub(crate) const BYTES_EACH: usize = 2 * (size_of::<(PeerId, u32)>() + size_of::<PeerId>());

    /// Most heap bytes without those: when all `peers` have asked.
    pub(crate) const fn bytes_most(peers: u32) -> usize {
        Peers::<Peer>::bytes_most(peers) + 2 * peers as usize * size_of::<PeerId>()
    }

    /// Sessions, the last one included, for a number of peers. `steps_most`: of a turn, while others need
    /// one.
    pub(crate) fn new(peers: u32, sessions: u32, steps_most: u32) -> Self {
        Sessions {
            peers: Peers::new(peers, ()),
            free: sessions - 1,
            holders: VecDeque::new(),
            last: None,
            wanted: None,
            steps_most,
            askers: VecDeque::new(),
            shown: Vec::new(),
            idle_until: None,
        }
    }

    /// How many sessions with a window no sender has.
    pub(crate) fn free(&self) -> u32 {
        self.free
    }

    fn standing(&self, peer: PeerId) -> Standing {
        self.peers.get(peer).map_or(Standing::Outside, |peer| peer.standing)
    }

    /// Whether a sender has a session.
    pub(crate) fn has(&self, peer: PeerId) -> bool {
        matches!(self.standing(peer), Standing::Inside | Standing::Leaving | Standing::Shown)
    }

    /// Whether a sender is about to say that it has shown everything: until then it is told nothing of its window.
    pub(crate) fn is_leaving(&self, peer: PeerId) -> bool {
        self.standing(peer) == Standing::Leaving
    }

    /// Whether it has said so: it gets no room any more, but may be queried.
    pub(crate) fn has_shown(&self, peer: PeerId) -> bool {
        self.standing(peer) == Standing::Shown
    }

    /// The senders that have said so.
    pub(crate) fn all_shown(&self) -> &[PeerId] {
        &self.shown
    }

    /// Whether a sender has the session that is given in turns.
    pub(crate) fn has_last(&self) -> bool {
        self.last.is_some()
    }

    /// Whether it is this one.
    pub(crate) fn has_turn(&self, peer: PeerId) -> bool {
        self.last == Some(peer)
    }

    /// The last receive or peek of a queue for which this sender may be queried, if others need its session.
    pub(crate) fn limit(&self, peer: PeerId, queue: Queue) -> Option<Number> {
        Some(self.limits(peer)?[queue as usize])
    }

    fn limits(&self, peer: PeerId) -> Option<[Number; 2]> {
        self.wanted.filter(|_| self.has_turn(peer))?.limits
    }

    /// A sender has shown deferred sends, or answered a query. `passed`: how many messages receives have got by that.
    /// `latest`: the last receive or peek.
    pub(crate) fn step(&mut self, from: PeerId, passed: u32, latest: Number) {
        if self.last == Some(from)
            && let Some(wanted) = &mut self.wanted
        {
            wanted.steps += passed.max(1);
            wanted.has_passed |= passed > 0;
            if wanted.steps >= self.steps_most {
                wanted.limits.get_or_insert([latest; 2]);
            }
        }
    }

    /// A receive of this number has got a message of a sender, and takes more. If others need the session of that, it
    /// waits for the next turn.
    pub(crate) fn end_at_multi(&mut self, from: PeerId, queue: Queue, number: Number) {
        if self.has_turn(from)
            && let Some(limits) = self.wanted.as_mut().and_then(|wanted| wanted.limits.as_mut())
        {
            let limit = &mut limits[queue as usize];
            *limit = Number(number.0 - 1).min(*limit);
        }
    }

    /// Whether a sender waits, or a session is wanted back, or is about to end.
    pub(crate) fn has_work(&self) -> bool {
        self.has_askers() || !self.shown.is_empty() || self.wanted.is_some()
    }

    /// Whether a sender waits for a session.
    fn has_askers(&self) -> bool {
        !self.askers.is_empty()
    }

    /// A sender says something. Returns whether it is that it has shown everything. `latest`: the last receive or peek.
    pub(crate) fn handle(&mut self, from: PeerId, asking: Asking, latest: Number) -> Result<bool, Malformed> {
        match (asking, self.standing(from)) {
            (Asking::Asks | Asking::AsksAgain, Standing::Outside) => {
                let peer = self.peers.of(from);
                peer.standing = Standing::Asked;
                if asking == Asking::Asks || peer.compared == ALL {
                    peer.note_new_since_turn(latest);
                }
                self.askers.push_back(from);
                self.idle_until = None;
                Ok(false)
            }
            // It has something new, which it will show when its turn comes, or has come meanwhile.
            (Asking::Asks, Standing::Asked | Standing::Inside | Standing::Leaving) => {
                self.peers.of(from).note_new(latest);
                self.idle_until = None;
                Ok(false)
            }
            (Asking::HasShown, standing @ (Standing::Inside | Standing::Leaving)) => {
                let peer = self.peers.of(from);
                if standing == Standing::Inside {
                    peer.begin_leaving(latest);
                }
                peer.standing = Standing::Shown;
                self.shown.push(from);
                Ok(true)
            }
            _ => Err(Malformed),
        }
    }

    /// A session is free again. All that its sender has shown was compared with `latest`, the last receive or peek, or
    /// with the last before the [limit](Self::limit).
    pub(crate) fn end(&mut self, from: PeerId, latest: Number) {
        let [tagged, untagged] = self.limits(from).unwrap_or([latest; 2]);
        self.peers.of(from).end(tagged.max(untagged), tagged != untagged);
        self.take_back(from);
    }

    fn take_back(&mut self, from: PeerId) {
        self.shown.retain(|&peer| peer != from);
        match self.last == Some(from) {
            true => (self.last, self.wanted) = (None, None),
            false => {
                self.holders.retain(|&(holder, _)| holder != from);
                self.free += 1;
            }
        }
    }

    /// A sender goes on having its session, which we wanted back.
    pub(crate) fn resume(&mut self, from: PeerId) {
        self.peers.of(from).standing = Standing::Inside;
        self.shown.retain(|&peer| peer != from);
    }

    /// A session is wanted back.
    pub(crate) fn begin_leaving(&mut self, from: PeerId, latest: Number) {
        self.peers.of(from).begin_leaving(latest);
    }

    /// Whether a turn of a sender that has asked could change anything, where this was the latest receive or peek.
    fn needs_turn(&self, peer: PeerId, latest: Number) -> bool {
        self.peers.get(peer).is_some_and(|peer| peer.has_new || peer.compared < latest)
    }

    /// The place of the first asker who needs a turn.
    fn first_in_need(&mut self, latest: Number) -> Option<usize> {
        if self.idle_until.is_some_and(|until| until >= latest) {
            return None;
        }
        let found = self.askers.iter().position(|&peer| self.needs_turn(peer, latest));
        if found.is_none() {
            self.idle_until = Some(latest);
        }
        found
    }

    /// The next thing to be done, which is noted as done.
    pub(crate) fn next_turn(&mut self, latest: Number) -> Turn {
        if self.free > 0
            && let Some(last) = self.last.filter(|&last| self.standing(last) == Standing::Inside)
        {
            (self.last, self.wanted, self.free) = (None, None, self.free - 1);
            self.holders.push_back((last, u32::MAX));
            return Turn::Widen(last);
        }
        if self.free > 0
            && let Some(to) = self.askers.pop_front()
        {
            self.free -= 1;
            self.holders.push_back((to, u32::MAX));
            self.peers.of(to).standing = Standing::Inside;
            return Turn::Grant { to, has_window: true };
        }
        match self.first_in_need(latest).filter(|_| self.last.is_none()).and_then(|place| self.askers.remove(place)) {
            Some(to) => {
                (self.last, self.wanted) = (Some(to), None);
                self.peers.of(to).standing = Standing::Inside;
                Turn::Grant { to, has_window: false }
            }
            None => Turn::Nothing,
        }
    }

    /// Senders that may be asked to give a session back, `most` at most: the one with the last session, if another
    /// sender needs a turn or a peek waits for it, and holders in turn, if any sender has asked. And whether it has a
    /// window: then it must have been quiet since the last look.
    pub(crate) fn candidates(&mut self, latest: Number, has_peeks: bool, most: usize) -> Vec<(PeerId, bool)> {
        let mut found = Vec::new();
        if let Some(last) = self.last
            && (self.wanted.is_some()
                || self.first_in_need(latest).is_some()
                || has_peeks && self.needs_turn(last, latest))
        {
            self.wanted.get_or_insert_default();
            found.push((last, false));
        }
        if self.has_askers() {
            found.extend(self.holders.iter().take(most).map(|&(holder, _)| (holder, true)));
            self.holders.rotate_left(most.min(self.holders.len()));
        }
        found.retain(|&(peer, _)| self.standing(peer) == Standing::Inside);
        found
    }

    /// Whether a receive has got a message of a sender in its turn since the last call. Its program may post the next
    /// one at once.
    pub(crate) fn has_just_passed(&mut self, from: PeerId) -> bool {
        let wanted = self.wanted.as_mut().filter(|_| self.last == Some(from));
        wanted.is_some_and(|wanted| std::mem::take(&mut wanted.has_passed) && wanted.limits.is_none())
    }

    /// Notes what is free of a holder's window. Returns whether that is as at the last look.
    pub(crate) fn is_quiet(&mut self, holder: PeerId, freed: u32) -> bool {
        let found = self.holders.iter_mut().find(|(peer, _)| *peer == holder);
        found.is_some_and(|(_, before)| std::mem::replace(before, freed) == freed)
    }

    /// Whether a sender that has asked, or has the last session, may still have something for a peek (S5).
    pub(crate) fn is_open(&self, number: Number, pattern: &Pattern) -> bool {
        let mut waiting = self.askers.iter().chain(&self.last);
        let awaits = |peer| self.peers.get(peer).is_some_and(|peer| peer.compared < number);
        waiting.any(|&peer| awaits(peer) && pattern.may_come_from(Target::Peer(peer)))
    }

    /// A peer is gone: it does not ask any more, and will not say that it has shown everything. Its session goes on as
    /// long as messages of it are stored.
    pub(crate) fn lose_peer(&mut self, peer: PeerId) {
        match self.standing(peer) {
            Standing::Asked => {
                self.peers.forget(peer);
                self.askers.retain(|&asker| asker != peer);
            }
            Standing::Leaving | Standing::Shown => self.resume(peer),
            Standing::Outside | Standing::Inside => {}
        }
    }

    /// The place of a peer that is gone goes to another.
    pub(crate) fn release(&mut self, peer: PeerId) {
        self.lose_peer(peer);
        if self.has(peer) {
            self.take_back(peer);
        }
        self.peers.forget(peer);
    }
}
