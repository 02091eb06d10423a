//! What an endpoint has not finished goes into its page of counters, for `tidegate top` and for the report at the end:
//! after polls that found nothing, every few milliseconds at most, and when the endpoint closes.

use crate::addressing::reach::{self, Links};
use crate::objects::active::{Active, Observing};
use std::time::Duration;
use tidegate_link::WaitChange;
use tidegate_link::stats::{MessageRow, OTHER_ROWS, ReceiveRow, Rows, SendRow, WAIT_ROWS, WaitRow};
use tidegate_message::{Instant, Open, PeerNames, PeerWait, Source, Space, Target};

impl Active {
    /// Progress has found nothing: writes what is open, if it is time to.
    #[inline]
    pub fn observe_idle(&mut self) {
        if self.engine.link().look_at_first().is_look_due() {
            self.observe_if_due(tidegate_link::now());
        }
    }

    /// A thread is about to sleep: the same.
    pub fn observe_before_sleep(&mut self) {
        let now = tidegate_link::now();
        self.engine.link_mut().first().note_sleep(now);
        self.observe_if_due(now);
    }

    #[cold]
    fn observe_if_due(&mut self, now: Instant) {
        self.note_wait();
        if self.engine.link_mut().first().is_look_due_at(now) {
            self.observe(now);
        }
    }

    /// Lets the endpoint know when the application begins to poll in vain, and when it ends to.
    fn note_wait(&mut self) {
        match self.engine.link_mut().first().take_wait_change() {
            Some(WaitChange::Begins(since)) if !self.engine.begin_wait(since) => {
                self.engine.link_mut().first().take_wait_back();
            }
            Some(WaitChange::Begins(_)) => {}
            Some(WaitChange::Ends(until)) => self.engine.end_wait(until),
            None => {}
        }
    }

    /// The endpoint closes: the same, whenever that was done last.
    pub fn observe_last(&mut self) {
        if self.engine.link().look_at_first().is_observed() {
            self.note_wait();
            self.engine.link_mut().first().end_wait();
            self.note_wait();
            self.observe(tidegate_link::now());
        }
    }

    /// Writes what is open now.
    #[cold]
    pub fn observe(&mut self, now: Instant) {
        reach::count(self.engine.link());
        let Active { engine, own, observing, .. } = self;
        let Observing { open, rows, waits_before } = observing;
        engine.look(now, open);
        fill(rows, waits_before, open, engine.link(), own.address.tag());
        engine.link_mut().first().write_rows(rows);
    }
}

/// What an endpoint of this id has found, with peers by their ids. What concerns peers that are gone is left out.
fn fill(rows: &mut Rows, waits_before: &mut Vec<WaitRow>, open: &Open, links: &Links, own: u64) {
    let id = |target: Target| match target {
        Target::Myself => Some(own),
        Target::Peer(peer) => links.identity(peer),
    };
    std::mem::swap(&mut rows.waits, waits_before);
    let written_before = std::mem::replace(&mut rows.written, open.now);
    (rows.peers_delayed, rows.is_pressed, rows.is_waiting) = (open.peers_delayed, open.is_pressed, open.is_waiting);
    rows.way_times = open.way_times;
    rows.receives_in_all = open.receives_in_all as u64;
    rows.sends_in_all = open.sends_in_all as u64;
    rows.messages_in_all = open.unexpected_in_all as u64;
    fill_waits(&mut rows.waits, &open.waits, links);
    keep_departed(&mut rows.waits, waits_before, written_before);
    // Sums first; then those that go on, then those that took longest.
    rows.waits.sort_by_key(|row| (row.peer.is_some(), row.since.is_none(), std::cmp::Reverse(row.waited)));
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
}

/// A peer that has left has no name any more, and what was waited for it is in a sum. Ranks leave one after the other
/// at the end of every job: so its row stays as it was `before`, when rows were `written` last, and the sum has the
/// rest.
fn keep_departed(rows: &mut Vec<WaitRow>, before: &[WaitRow], written: Instant) {
    if rows.iter().all(|row| row.peer.is_some()) {
        return;
    }
    let mut named: Vec<_> = rows.iter().filter_map(|row| Some((row.peer?, row.cause))).collect();
    named.sort_unstable();
    for old in before {
        let Some(peer) = old.peer.filter(|peer| named.binary_search(&(*peer, old.cause)).is_err()) else { continue };
        let is_sum = |row: &&mut WaitRow| row.peer.is_none() && row.cause == old.cause;
        let has_room = rows.len() < WAIT_ROWS + OTHER_ROWS;
        let Some(sum) = rows.iter_mut().find(is_sum).filter(|_| has_room) else { continue };
        let open = old.since.map_or(Duration::ZERO, |since| written.since(since));
        let (count, waited) = (old.count.min(sum.count), (old.waited + open).min(sum.waited));
        (sum.count, sum.waited) = (sum.count - count, sum.waited - waited);
        rows.push(WaitRow { peer: Some(peer), cause: old.cause, count, waited, since: None });
    }
    rows.retain(|row| row.peer.is_some() || row.count > 0 || row.since.is_some() || !row.waited.is_zero());
}

fn tag(space: Space) -> Option<u64> {
    match space {
        Space::Tagged { tag, .. } => Some(tag),
        Space::Untagged => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_message::WaitCause::{Credits, Window};

    fn row(
        peer: Option<u64>,
        cause: tidegate_message::WaitCause,
        count: u64,
        waited: u64,
        since: Option<u64>,
    ) -> WaitRow {
        let since = since.map(|since| Instant::from_nanos(since * 1_000_000));
        WaitRow { peer, cause, count, waited: Duration::from_millis(waited), since }
    }

    #[test]
    fn what_was_waited_for_a_peer_that_has_left_keeps_its_name() {
        // At 90 ms a wait for 7 had lasted 30 ms; then 7 and 9 have left, and 8 is there.
        let before = [
            row(None, Window, 2, 5, None),
            row(Some(7), Credits, 3, 40, Some(60)),
            row(Some(8), Credits, 1, 4, None),
            row(Some(9), Window, 1, 6, None),
        ];
        let written = Instant::from_nanos(90_000_000);
        let told = [row(None, Credits, 3, 72, None), row(None, Window, 3, 11, None), row(Some(8), Credits, 2, 9, None)];
        let expected = [
            row(None, Credits, 0, 2, None),
            row(None, Window, 2, 5, None),
            row(Some(8), Credits, 2, 9, None),
            row(Some(7), Credits, 3, 70, None),
            row(Some(9), Window, 1, 6, None),
        ];
        let mut rows = told.to_vec();
        keep_departed(&mut rows, &before, written);
        assert_eq!(rows, expected);
        // They stay, as long as rows are written.
        let mut again = told.to_vec();
        keep_departed(&mut again, &rows, Instant::from_nanos(95_000_000));
        assert_eq!(again, expected);
        // While all are there nothing changes.
        let mut all = before[1..3].to_vec();
        keep_departed(&mut all, &before, written);
        assert_eq!(all, before[1..3]);
    }
}
