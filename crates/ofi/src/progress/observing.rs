//! What an endpoint has not finished goes into its page of counters, for `tidegate top` and for the report at the end:
//! after polls that found nothing, every few milliseconds at most, and when the endpoint closes.

use crate::addressing::reach::{self, Links};
use crate::objects::active::{Active, Observing};
use std::time::Duration;
use tidegate_link::WaitChange;
use tidegate_link::stats::{OTHER_ROWS, WAIT_ROWS};
use tidegate_message::{Instant, OpenMessage, OpenReceive, OpenSend, PeerNames, PeerWait, Snapshot, Target};

impl Active {
    /// Progress has found nothing: writes what is open, if it is time to.
    #[inline]
    pub fn observe_idle(&mut self) {
        if self.is_look_due() {
            self.observe_if_due(tidegate_link::now());
        }
    }

    /// Whether it is time to.
    #[inline(always)]
    pub fn is_look_due(&self) -> bool {
        self.engine.link().look_at_first().is_look_due()
    }

    /// A thread is about to sleep: the same.
    pub fn observe_before_sleep(&mut self) {
        self.observe_if_due(tidegate_link::now());
    }

    /// The application may sleep now, until something comes: it waits.
    pub fn note_sleep(&mut self) {
        self.engine.link_mut().first().note_sleep(tidegate_link::now());
        self.note_wait();
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
        while let Some(change) = self.engine.link_mut().first().take_wait_change() {
            match change {
                WaitChange::Begins(since) => self.engine.begin_wait(since),
                WaitChange::Ends(until) => self.engine.end_wait(until),
            }
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
fn fill(rows: &mut Snapshot<u64>, waits_before: &mut Vec<PeerWait<u64>>, open: &Snapshot, links: &Links, own: u64) {
    let id = |target: Target| match target {
        Target::Myself => Some(own),
        Target::Peer(peer) => links.identity(peer),
    };
    std::mem::swap(&mut rows.waits, waits_before);
    let written_before = std::mem::replace(&mut rows.at, open.at);
    (rows.peers_delayed, rows.is_pressed, rows.is_waiting) = (open.peers_delayed, open.is_pressed, open.is_waiting);
    rows.way_times = open.way_times;
    (rows.receives_in_all, rows.sends_in_all) = (open.receives_in_all, open.sends_in_all);
    rows.unexpected_in_all = open.unexpected_in_all;
    fill_waits(&mut rows.waits, &open.waits, id);
    keep_departed(&mut rows.waits, waits_before, written_before);
    // Sums first; then those that go on, then those that took longest.
    rows.waits.sort_by_key(|row| (row.peer.is_some(), row.since.is_none(), std::cmp::Reverse(row.waited)));
    rows.receives.clear();
    rows.receives.extend(open.receives.iter().filter_map(|&receive| {
        let from = match receive.from {
            None => None,
            Some(target) => Some(id(target)?),
        };
        let OpenReceive { tag, ignore, bytes, since, is_arriving, is_probe, .. } = receive;
        Some(OpenReceive { from, tag, ignore, bytes, since, is_arriving, is_probe })
    }));
    rows.sends.clear();
    rows.sends.extend(open.sends.iter().filter_map(|&OpenSend { to, tag, bytes, since, waits_for }| {
        Some(OpenSend { to: id(to)?, tag, bytes, since, waits_for })
    }));
    rows.unexpected.clear();
    rows.unexpected.extend(open.unexpected.iter().filter_map(|&OpenMessage { from, tag, bytes, since }| {
        Some(OpenMessage { from: id(from)?, tag, bytes, since })
    }));
}

/// The sums of all that have no row of their own come first, so that they are there however many rows there are.
fn fill_waits(rows: &mut Vec<PeerWait<u64>>, waits: &[PeerWait], id: impl Fn(Target) -> Option<u64>) {
    rows.clear();
    for &PeerWait { peer, cause, count, waited, since } in waits {
        let id = peer.and_then(&id);
        let row = PeerWait { peer: id, cause, count, waited, since };
        let is_sum = |other: &&mut PeerWait<u64>| other.peer.is_none() && other.cause == cause;
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
fn keep_departed(rows: &mut Vec<PeerWait<u64>>, before: &[PeerWait<u64>], written: Instant) {
    if rows.iter().all(|row| row.peer.is_some()) {
        return;
    }
    let mut named: Vec<_> = rows.iter().filter_map(|row| Some((row.peer?, row.cause))).collect();
    named.sort_unstable();
    for old in before {
        let Some(peer) = old.peer.filter(|peer| named.binary_search(&(*peer, old.cause)).is_err()) else { continue };
        let is_sum = |row: &&mut PeerWait<u64>| row.peer.is_none() && row.cause == old.cause;
        let has_room = rows.len() < WAIT_ROWS + OTHER_ROWS;
        let Some(sum) = rows.iter_mut().find(is_sum).filter(|_| has_room) else { continue };
        let open = old.since.map_or(Duration::ZERO, |since| written.since(since));
        let (count, waited) = (old.count.min(sum.count), (old.waited + open).min(sum.waited));
        (sum.count, sum.waited) = (sum.count - count, sum.waited - waited);
        rows.push(PeerWait { peer: Some(peer), cause: old.cause, count, waited, since: None });
    }
    rows.retain(|row| row.peer.is_some() || row.count > 0 || row.since.is_some() || !row.waited.is_zero());
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
    ) -> PeerWait<u64> {
        let since = since.map(|since| Instant::from_nanos(since * 1_000_000));
        PeerWait { peer, cause, count, waited: Duration::from_millis(waited), since }
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
