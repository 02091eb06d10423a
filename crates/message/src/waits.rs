//! The peers for which sends and receives wait, the cause, and how long: one row for each peer and cause, as many as
//! [`ROWS_MOST`]; what has no row of its own is summed, so that nothing here grows with the number of peers.
//!
//! No clock is read for this. A wait of sends that begins between two tellings of the time counts from the second, and
//! one that ends counts up to the last. Of receives the caller tells when their application began to poll in vain, and
//! until when it did.

use crate::open::PeerWait;
use crate::operation::Target;
use crate::wait_cause::WaitCause;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use tidegate_flow::{Instant, PeerId};

/// Peers and causes that have rows of their own.
pub const ROWS_MOST: usize = 256;

/// A wait of one peer that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// It has begun since time was told last.
    Fresh,
    Since(Instant),
}

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    count: u64,
    waited: Duration,
    open: Option<Open>,
}

impl Row {
    /// The wait that goes on, if there is one, has lasted until this moment. Returns whether there was.
    fn end_at(&mut self, until: Instant) -> bool {
        let Some(open) = self.open.take() else { return false };
        if let Open::Since(since) = open {
            self.waited += until.since(since);
        }
        true
    }
}

/// All that have no row of their own, by cause.
#[derive(Clone, Copy, Debug, Default)]
struct Others {
    count: u64,
    waited: Duration,
    /// Waits that go on, and those of them that have since time was told last.
    open: u32,
    before: u32,
    /// Since when at least one has.
    since: Option<Instant>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Waits {
    rows: BTreeMap<(PeerId, WaitCause), Row>,
    others: BTreeMap<WaitCause, Others>,
    /// Waits for a message of any peer.
    any: Row,
    /// Rows whose wait has begun since time was told last.
    fresh: Vec<(PeerId, WaitCause)>,
    now: Instant,
}

/// Says nothing: no decision follows from what is noted here, and the explorer tells states apart by what is printed.
impl fmt::Debug for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waits")
    }
}

impl Waits {
    /// Sends to a peer begin to wait, and none did before.
    pub(crate) fn begin(&mut self, peer: PeerId, cause: WaitCause) {
        if self.rows.len() < ROWS_MOST || self.rows.contains_key(&(peer, cause)) {
            let row = self.rows.entry((peer, cause)).or_default();
            if row.open.is_none() {
                (row.count, row.open) = (row.count + 1, Some(Open::Fresh));
                self.fresh.push((peer, cause));
            }
            return;
        }
        let others = self.others.entry(cause).or_default();
        others.count += 1;
        others.open += 1;
    }

    /// Nothing waits for a peer any more for this cause, and something did.
    pub(crate) fn end(&mut self, peer: PeerId, cause: WaitCause) {
        self.end_at(peer, cause, self.now);
    }

    /// The same where the caller knows until when.
    pub(crate) fn end_at(&mut self, peer: PeerId, cause: WaitCause, until: Instant) {
        if self.rows.get_mut(&(peer, cause)).is_some_and(|row| row.end_at(until)) {
            return;
        }
        if let Some(others) = self.others.get_mut(&cause) {
            others.open = others.open.saturating_sub(1);
            others.before = others.before.min(others.open);
            others.since = others.since.filter(|_| others.before > 0);
        }
    }

    /// The same of a wait that somebody has seen since a certain moment.
    pub(crate) fn begin_since(&mut self, peer: PeerId, cause: WaitCause, since: Instant) {
        self.begin(peer, cause);
        if let Some(row) = self.rows.get_mut(&(peer, cause)) {
            row.open = Some(Open::Since(since));
        }
    }

    /// A message of any peer, or something else of peers, has been waited for since a certain moment.
    pub(crate) fn begin_any(&mut self, since: Instant) {
        (self.any.count, self.any.open) = (self.any.count + 1, Some(Open::Since(since)));
    }

    /// And until this one.
    pub(crate) fn end_any(&mut self, until: Instant) {
        self.any.end_at(until);
    }

    /// Time is told.
    pub(crate) fn tell_time(&mut self, now: Instant) {
        let passed = now.since(self.now);
        self.now = self.now.max(now);
        for key in self.fresh.drain(..) {
            if let Some(row) = self.rows.get_mut(&key)
                && row.open == Some(Open::Fresh)
            {
                row.open = Some(Open::Since(now));
            }
        }
        for others in self.others.values_mut().filter(|others| others.open > 0) {
            others.waited += passed.saturating_mul(others.before);
            others.before = others.open;
            others.since.get_or_insert(now);
        }
    }

    /// The place of a peer that is gone goes to another.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        for &cause in WaitCause::ALL {
            self.end_row(peer, cause);
        }
    }

    fn end_row(&mut self, peer: PeerId, cause: WaitCause) {
        if self.rows.contains_key(&(peer, cause)) {
            self.end(peer, cause);
        }
        if let Some(row) = self.rows.remove(&(peer, cause)) {
            let others = self.others.entry(cause).or_default();
            (others.count, others.waited) = (others.count + row.count, others.waited + row.waited);
        }
    }

    /// Adds what there is to a list. Those for all others come first.
    pub(crate) fn tell(&self, list: &mut Vec<PeerWait>) {
        list.extend(self.others.iter().map(|(&cause, others)| PeerWait {
            peer: None,
            cause,
            count: others.count,
            waited: others.waited,
            // What of it goes on has been added up until now.
            since: others.since.map(|_| self.now),
        }));
        let told = |peer, cause, row: &Row| {
            let since = match row.open {
                Some(Open::Since(since)) => Some(since),
                Some(Open::Fresh) => Some(self.now),
                None => None,
            };
            PeerWait { peer, cause, count: row.count, waited: row.waited, since }
        };
        if self.any.count > 0 {
            list.push(told(None, WaitCause::AnyMessage, &self.any));
        }
        list.extend(self.rows.iter().map(|(&(peer, cause), row)| told(Some(Target::Peer(peer)), cause, row)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    fn rows(waits: &Waits) -> Vec<PeerWait> {
        let mut list = Vec::new();
        waits.tell(&mut list);
        list
    }

    #[test]
    fn a_wait_counts_from_the_first_time_told_to_the_last() {
        let mut waits = Waits::default();
        waits.tell_time(at(10));
        waits.begin(PeerId(3), WaitCause::Credits);
        waits.begin(PeerId(3), WaitCause::Credits);
        waits.tell_time(at(20));
        waits.tell_time(at(50));
        let [row] = rows(&waits)[..] else { panic!("one row") };
        assert_eq!(
            (row.peer, row.count, row.waited, row.since),
            (Some(Target::Peer(PeerId(3))), 1, Duration::ZERO, Some(at(20)))
        );
        waits.end(PeerId(3), WaitCause::Credits);
        let [row] = rows(&waits)[..] else { panic!("one row") };
        assert_eq!((row.waited, row.since), (Duration::from_millis(30), None));
    }

    #[test]
    fn one_that_begins_and_ends_between_two_tellings_counts_as_one_of_no_length() {
        let mut waits = Waits::default();
        waits.begin(PeerId(0), WaitCause::Window);
        waits.end(PeerId(0), WaitCause::Window);
        waits.begin(PeerId(0), WaitCause::Window);
        waits.tell_time(at(5));
        waits.end(PeerId(0), WaitCause::Window);
        let [row] = rows(&waits)[..] else { panic!("one row") };
        assert_eq!((row.count, row.waited, row.since), (2, Duration::ZERO, None));
    }

    #[test]
    fn beyond_the_rows_all_are_summed() {
        let mut waits = Waits::default();
        let peers = ROWS_MOST as u32 + 10;
        (0..peers).for_each(|peer| waits.begin(PeerId(peer), WaitCause::Mailbox));
        waits.tell_time(at(1));
        waits.tell_time(at(3));
        (0..peers - 5).for_each(|peer| waits.end(PeerId(peer), WaitCause::Mailbox));
        waits.tell_time(at(4));
        let all = rows(&waits);
        assert_eq!((all.len(), all[0].peer, all[0].count), (ROWS_MOST + 1, None, 10));
        assert_eq!(all[0].waited, Duration::from_millis(10 * 2 + 5));
        assert!(all[0].since.is_some() && all[1..].iter().all(|row| row.since.is_none()));
    }

    #[test]
    fn what_a_peer_that_is_gone_has_cost_stays_in_the_sum() {
        let mut waits = Waits::default();
        waits.begin(PeerId(7), WaitCause::Pull);
        waits.tell_time(at(1));
        waits.tell_time(at(9));
        waits.forget(PeerId(7));
        let [row] = rows(&waits)[..] else { panic!("one row") };
        assert_eq!((row.peer, row.count, row.waited), (None, 1, Duration::from_millis(8)));
    }
}
