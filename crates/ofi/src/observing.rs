//! What an endpoint has not finished goes into its page of counters, for `tidegate top` and for the report at the end:
//! after polls that found nothing, every few milliseconds at most, and when the endpoint closes.

use crate::active::{Active, Observing};
use crate::reach::Links;
use tidegate_link::stats::{MessageRow, ReceiveRow, Rows, SendRow, WaitRow};
use tidegate_message::{Instant, Link, Open, PeerWait, Source, Space, Target};

impl Active {
    /// Progress has found nothing: writes what is open, if it is time to.
    #[inline]
    pub fn observe_idle(&mut self) {
        if self.engine.link().look_at_first().is_look_due() {
            self.observe(tidegate_link::now());
        }
    }

    /// A thread is about to sleep: the same.
    pub fn observe_before_sleep(&mut self) {
        let now = tidegate_link::now();
        if self.engine.link_mut().first().is_look_due_at(now) {
            self.observe(now);
        }
    }

    /// The endpoint closes: the same, whenever that was done last.
    pub fn observe_last(&mut self) {
        if self.engine.link().look_at_first().is_observed() {
            self.observe(tidegate_link::now());
        }
    }

    /// Writes what is open now.
    #[cold]
    pub fn observe(&mut self, now: Instant) {
        let Active { engine, own, observing, .. } = self;
        let Observing { open, rows } = observing;
        engine.look(now, open);
        fill(rows, open, engine.link(), own.address.endpoint_id());
        engine.link_mut().first().write_rows(rows);
    }
}

/// What an endpoint of this id has found, with peers by their ids. What concerns peers that are gone is left out.
fn fill(rows: &mut Rows, open: &Open, links: &Links, own: u64) {
    let id = |target: Target| match target {
        Target::Myself => Some(own),
        Target::Peer(peer) => links.identity(peer),
    };
    rows.written = open.now;
    (rows.peers_delayed, rows.is_pressed) = (open.peers_delayed, open.is_pressed);
    rows.receives_in_all = open.receives_in_all as u64;
    rows.sends_in_all = open.sends_in_all as u64;
    rows.messages_in_all = open.unexpected_in_all as u64;
    fill_waits(&mut rows.waits, &open.waits, links);
    rows.receives.clear();
    rows.receives.extend(open.receives.iter().filter_map(|receive| {
        let from = match receive.from {
            Source::Any => None,
            Source::From(target) => Some(id(target)?),
        };
        let ignore = if let Space::Tagged { ignore, .. } = receive.space { ignore } else { u64::MAX };
        let (tag, bytes, since) = (tag(receive.space), receive.bytes as u64, receive.since);
        let (is_arriving, is_probe) = (receive.is_arriving, receive.is_probe);
        Some(ReceiveRow { from, tag, ignore, bytes, since, is_arriving, is_probe })
    }));
    rows.sends.clear();
    rows.sends.extend(open.sends.iter().filter_map(|send| {
        let (to, bytes, waits_for) = (id(send.to)?, send.bytes as u64, Some(send.waits_for));
        Some(SendRow { to, tag: tag(send.space), bytes, since: send.since, waits_for })
    }));
    rows.messages.clear();
    rows.messages.extend(open.unexpected.iter().filter_map(|message| {
        let (from, bytes) = (id(message.from)?, message.bytes as u64);
        Some(MessageRow { from, tag: tag(message.space), bytes, since: message.since })
    }));
}

/// The sums of all that have no row of their own come first, so that they are there however many rows there are.
fn fill_waits(rows: &mut Vec<WaitRow>, waits: &[PeerWait], links: &Links) {
    rows.clear();
    for &PeerWait { peer, cause, count, waited, since } in waits {
        let id = peer.and_then(|peer| links.identity(peer));
        let row = WaitRow { peer: id, cause, count, waited, since };
        let is_sum = |other: &&mut WaitRow| other.peer.is_none() && other.cause == cause;
        match rows.iter_mut().find(is_sum).filter(|_| id.is_none()) {
            Some(sum) => {
                sum.count += count;
                sum.waited += waited;
                sum.since = sum.since.or(since);
            }
            None => rows.push(row),
        }
    }
    // Sums first; then those that go on, then those that took longest.
    rows.sort_by_key(|row| (row.peer.is_some(), row.since.is_none(), std::cmp::Reverse(row.waited)));
}

fn tag(space: Space) -> Option<u64> {
    match space {
        Space::Tagged { tag, .. } => Some(tag),
        Space::Untagged => None,
    }
}
