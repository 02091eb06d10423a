//! A look at what is open: an endpoint tells what it has not finished, and for whom its sends wait, without keeping any
//! account of that while it works.

use super::Endpoint;
use crate::counter::Counter;
use crate::egress::WaitingSend;
use crate::envelope::Pattern;
use crate::link::{Buffer, Link};
use crate::looks::{PLACES_PER_LOOK, SeenSend, SendName, is_tagged, turn};
use crate::open::{OPEN_MOST, OpenMessage, OpenReceive, OpenSend, Snapshot};
use crate::operation::{Queue, Source, Space, Target};
use crate::wait_cause::WaitCause;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_flow::{Instant, PeerId};

impl<L: Link> Endpoint<L> {
    /// Says what is open, and what time it is. Goes through a bounded part of what there may be, whose oldest it finds
    /// at once (receives, unexpected messages) or, where there are very many, in some looks (sends). What is open is
    /// as old as the first look that has seen it: so look every few milliseconds, when there is nothing else to do.
    pub fn look(&mut self, now: Instant, open: &mut Snapshot) {
        self.tell_time(now);
        let now = self.port.now;
        open.at = now;
        open.peers_delayed = self.port.egress.peers_delayed();
        open.is_pressed = self.inbound.windows().is_pressed();
        let (is_waiting, passed) = self.looks.count_vain(now);
        open.is_waiting = is_waiting;
        self.count_wait(passed);
        open.way_times = self.pulls.under_way().way_times();
        // Receives may have been posted since the application began to poll.
        if self.looks.waits_for_any() {
            let awaited = self.awaited();
            self.looks.name_awaited(now, awaited);
        }
        self.look_at_receives(now, open);
        self.look_at_unexpected(now, open);
        self.look_at_sends(now, open);
        open.waits.clear();
        self.port.egress.tell_waits(&mut open.waits);
        self.sends.show_rooms().tell_waits(&mut open.waits);
        self.looks.waits.tell(&mut open.waits);
    }

    /// The application has polled in vain since a certain moment: it waits from then on until
    /// [`end_wait`](Self::end_wait), for the senders that its receives and probes name. Where none does, and no send
    /// waits either, it waits for a message of any sender, or for something else that its peers do: MPIs carry much by
    /// messages for which they post receives once and for all.
    pub fn begin_wait(&mut self, since: Instant) {
        self.end_wait(since);
        let (awaited, has_sends) = (self.awaited(), self.open_sends() > 0);
        self.looks.begin_vain(since, awaited, has_sends);
        self.looks.note_begun(self.inbound.matching().last_number());
    }

    /// The senders for which the application waits: those that its probe names, if it has asked for nothing else since,
    /// and those of the receives that it posted together. That are those since the last wait began; if they have all
    /// been matched, or there are none, those from before that were; and, without those, the last of all. So a receive
    /// that is posted once for what may come gets no share in what another lets wait.
    fn awaited(&mut self) -> Vec<PeerId> {
        let mut awaited = self.looks.take_room();
        let mut add = |pattern: &Pattern| {
            if let Source::From(Target::Peer(peer)) = pattern.from {
                awaited.push(peer);
            }
        };
        let matching = self.inbound.matching();
        let probe = self.looks.probe_since(matching.last_number());
        if let Some(pattern) = &probe {
            add(pattern);
        }
        for since in self.looks.posted_together() {
            let mut found = 0;
            matching.show_posted_since(since, OPEN_MOST, |pattern| {
                found += usize::from(matches!(pattern.from, Source::From(_)));
                add(pattern);
            });
            if found > 0 {
                self.looks.note_together(since);
            }
            if found > 0 || probe.is_some() {
                break;
            }
        }
        awaited
    }

    /// The application has polled in vain until this moment.
    pub fn end_wait(&mut self, until: Instant) {
        let passed = self.looks.end_vain(until);
        self.count_wait(passed);
    }

    fn count_wait(&mut self, passed: Duration) {
        if !passed.is_zero() {
            self.port.count(Counter::WaitNanoseconds, passed.as_nanos() as u64);
        }
    }

    /// Sends that are not finished.
    fn open_sends(&self) -> usize {
        self.port.egress.held_sends() + self.sends.outstanding() + self.fences.waiting()
    }

    fn look_at_receives(&mut self, now: Instant, open: &mut Snapshot) {
        let (receives, ages) = (&mut open.receives, &mut self.looks.receives);
        receives.clear();
        let mut push = |queue, pattern: &Pattern, bytes, since, is_probe| {
            let (tag, ignore) = match queue {
                Queue::Tagged => (Some(pattern.tag), pattern.ignore),
                Queue::Untagged => (None, u64::MAX),
            };
            let from = match pattern.from {
                Source::Any => None,
                Source::From(target) => Some(target),
            };
            receives.push(OpenReceive { from, tag, ignore, bytes, since, is_arriving: false, is_probe });
        };
        self.inbound.matching().show_posted(OPEN_MOST, |number, queue, pattern, bytes| {
            push(queue, pattern, bytes as u64, ages.see(number.0, now), false);
        });
        ages.end_look();
        let probe = self.looks.see_probe(now);
        if let Some((queue, pattern, since)) = probe {
            push(queue, &pattern, 0, since, true);
        }
        let pulls = self.pulls.under_way();
        let (under_way, places) = (pulls.len(), pulls.places());
        open.receives_in_all = (self.inbound.matching().posted() + under_way + usize::from(probe.is_some())) as u64;
        self.looks.pulls.retain(|key, _| pulls.get(*key).is_some());
        let from = turn(&mut self.looks.next_pull, places);
        for (key, _) in pulls.some(from, PLACES_PER_LOOK) {
            self.looks.see_pull(key, now);
        }
        for (key, &since) in &self.looks.pulls {
            let Some(pull) = pulls.get(*key) else { continue };
            let (tag, ignore) = tag_of(pull.queue.space(pull.envelope.tag));
            let (from, bytes) = (Some(pull.envelope.source), pull.active.buffer.len() as u64);
            receives.push(OpenReceive { from, tag, ignore, bytes, since, is_arriving: true, is_probe: false });
        }
        receives.sort_by_key(|receive| receive.since);
        receives.truncate(OPEN_MOST);
    }

    fn look_at_unexpected(&mut self, now: Instant, open: &mut Snapshot) {
        let (unexpected, ages) = (&mut open.unexpected, &mut self.looks.unexpected);
        unexpected.clear();
        self.inbound.matching().show_unexpected(OPEN_MOST, |queue, number, envelope| {
            let since = ages.see((is_tagged(queue), number), now);
            let (from, (tag, _)) = (envelope.source, tag_of(queue.space(envelope.tag)));
            unexpected.push(OpenMessage { from, tag, bytes: envelope.length as u64, since });
        });
        ages.end_look();
        unexpected.sort_by_key(|message| message.since);
        unexpected.truncate(OPEN_MOST);
        open.unexpected_in_all = self.inbound.matching().unexpected() as u64;
    }

    fn look_at_sends(&mut self, now: Instant, open: &mut Snapshot) {
        let (egress, kept) = (&self.port.egress, self.sends.kept());
        self.looks.sends.retain(|name, seen| match *name {
            SendName::Held(peer, number) => egress.holds(peer, number),
            SendName::Kept(key) => kept
                .send(key)
                .is_some_and(|send| (send.peer, send.space, send.length) == (seen.to, seen.space, seen.bytes)),
        });
        let mut announced = BTreeMap::new();
        let mut next_lane = self.looks.next_lane;
        self.port.egress.show_held(&mut next_lane, |to, number, waits_for, held| match held {
            WaitingSend::Announcement(key) => _ = announced.insert(key, waits_for),
            WaitingSend::Send(space, bytes) => {
                let seen = SeenSend { to, space, bytes, since: now, waits_for };
                self.looks.see_send(SendName::Held(to, number), seen);
            }
        });
        self.looks.next_lane = next_lane;
        let from = turn(&mut self.looks.next_kept, kept.send_places());
        let known = self.looks.sends.keys().filter_map(|name| match *name {
            SendName::Kept(key) => Some(key),
            SendName::Held(..) => None,
        });
        let mut keys: Vec<_> = known.collect();
        keys.extend(kept.some_sends(from, PLACES_PER_LOOK).map(|(key, _)| key));
        for key in keys {
            let Some(send) = kept.send(key) else { continue };
            let waits_for = match announced.get(&key) {
                _ if send.deferred.is_some() => WaitCause::Window,
                Some(&cause) => cause,
                None => WaitCause::Pull,
            };
            let seen = SeenSend { to: send.peer, space: send.space, bytes: send.length, since: now, waits_for };
            self.looks.see_send(SendName::Kept(key), seen);
        }
        let oldest = self.looks.oldest_sends();
        self.looks.note_pulls(&oldest, now);
        open.sends_in_all = self.open_sends() as u64;
        open.sends.clear();
        open.sends.extend(oldest.iter().take(OPEN_MOST).map(|&SeenSend { to, space, bytes, since, waits_for }| {
            let waits_for = Some(waits_for);
            OpenSend { to: Target::Peer(to), tag: tag_of(space).0, bytes: bytes as u64, since, waits_for }
        }));
    }
}

/// The match bits of a message or a receive, and those that do not matter.
fn tag_of(space: Space) -> (Option<u64>, u64) {
    match space {
        Space::Tagged { tag, ignore } => (Some(tag), ignore),
        Space::Untagged => (None, u64::MAX),
    }
}
