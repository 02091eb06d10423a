//! The liveness monitor: who has closed, who has died, and what a dead one left behind: a hole in our mailbox, a
//! segment.
//!
//! Every [`INTERVAL`] at most, from `idle` or `poll_event`: look at the hole in front of our reader, if it has been
//! there for so long; look at the marks that closing peers leave, in our table and in their headers; and ask the system
//! about one in [`SHARE`] peers, so that a death is noticed within a second. Among many it takes longer: no look
//! goes beyond [`MARKS_AT_MOST`] peers, or asks about more than [`ASKED_AT_MOST`]. No look goes through the table, but
//! for one at a hole that has just been found: everybody may own that.
//!
//! A departure is reported once everything that was in our mailbox when we noticed has been retrieved or skipped. A
//! peer whose end is proven, or who said that it would write no more, wrote nothing after that, and its place can go to
//! another. A peer that lives and cannot be answered keeps its place until it has said so: it is told that nobody reads
//! what it writes, and ends its side.

use super::connection::Connection;
use super::error::LinkError;
use super::life::{Fate, Here};
use super::mailbox::{Hole, Verdict};
use super::peer::{State, Table};
use super::reclaiming::remove_if_dead;
use super::segment::OwnSegment;
use super::state::{End, Peer, PeerState, ShmLink};
use crate::clock;
use crate::log::{self, Level};
use std::path::Path;
use std::time::Duration;
use tidegate_flow::{Instant, PeerId};
use tidegate_message::{Counter, Departure, LinkEvent};

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(100);
/// In how many looks the system is asked about all peers.
const SHARE: usize = 8;
/// Peers that the system is asked about in one look, if there are so many.
const ASKED_AT_LEAST: usize = 4;
/// The same, however many there are: some microseconds each.
const ASKED_AT_MOST: usize = 32;
/// Peers whose marks are looked at in one look: some hundred nanoseconds each where there are so many.
const MARKS_AT_MOST: usize = 1024;

/// Everything that tells whether a peer lives.
#[derive(Clone, Copy)]
pub(super) struct Evidence<'a> {
    here: &'a Here,
    directory: &'a Path,
    segment: &'a OwnSegment,
    table: Table,
    peers: &'a [Peer],
}

impl Evidence<'_> {
    /// Whether a peer is proven to be gone.
    pub fn is_dead(&self, peer: PeerId) -> bool {
        self.fate(peer) == Fate::Dead
    }

    /// What became of a peer. When in doubt it is alive.
    fn fate(&self, peer: PeerId) -> Fate {
        let known = self.peers.get(peer.0 as usize);
        let address = known.and_then(|known| known.address).or_else(|| self.table.address(peer));
        let Some(address) = address else { return Fate::Alive };
        if self.here.sees_ended(&address) {
            return Fate::Dead;
        }
        if self.table.is_locked(peer) {
            return self.segment.fate_of_writer(&address);
        }
        let connection = known.and_then(|known| known.connection.as_ref());
        if let Some(fate) = connection.and_then(|connection| connection.fate_of_peer()) {
            return fate;
        }
        match self.here.fate_by_file(self.directory, &address) {
            // A peer that is connected in either direction and holds no lock may live although its file is gone.
            Fate::Absent if connection.is_some() || self.table.may_write(peer) => Fate::Alive,
            fate => fate,
        }
    }
}

impl ShmLink {
    /// Looks after the peers, if it is time to. Returns what time it is.
    #[cold]
    pub(super) fn watch(&mut self) -> Instant {
        let now = clock::now();
        self.is_look_due_at(now);
        if now >= self.monitor.next {
            self.monitor.next = now + INTERVAL;
            // What happens between a forked child's parent and its peers is not the child's affair.
            if self.is_forked() {
                return now;
            }
            self.give_places_away();
            self.look_for_strangers();
            self.look_at_marks();
            self.look_at_own_file();
            self.ask_about_some();
            self.look_at_hole();
            self.look_at_pool(now);
        }
        if self.reader.has_waiting() {
            self.look_at_waiting(now);
        }
        now
    }

    /// Looks after the peers, and whether the application waits.
    #[cold]
    pub(super) fn watch_run(&mut self) {
        let (now, looked) = (self.watch(), self.spin.look());
        if self.is_observed() {
            let change = self.wait_meter.look(now, looked, !self.spin.may_linger(), clock::ran);
            self.note_wait_change(change);
        }
    }

    /// The next call of `poll_event` looks, however long ago the last look was.
    pub(super) fn look_soon(&mut self) {
        self.monitor.next = Instant::default();
        self.polls = u32::MAX;
    }

    /// What has become of peers, once their packets have been retrieved.
    #[cold]
    pub(super) fn next_event(&mut self) -> Option<LinkEvent> {
        let closing = self.next_closing().map(LinkEvent::Closing);
        closing.or_else(|| self.next_departure().map(LinkEvent::Departed))
    }

    /// The next departure whose packets have all been retrieved.
    fn next_departure(&mut self) -> Option<Departure> {
        let position = self.reader.position();
        let at = self.monitor.departures.iter().position(|leaving| position >= leaving.end)?;
        let departure = self.monitor.departures.remove(at)?.departure;
        let peer = &mut self.peers[departure.peer.0 as usize];
        if peer.state == PeerState::Unwanted {
            // The endpoint has released it already.
            self.forget(departure.peer);
            return None;
        }
        peer.state = PeerState::Departed;
        Some(departure)
    }

    /// The next peer that is closing and all of whose earlier packets have been retrieved.
    fn next_closing(&mut self) -> Option<PeerId> {
        let position = self.reader.position();
        let at = self.monitor.closings.iter().position(|&(_, end)| position >= end)?;
        let (peer, _) = self.monitor.closings.remove(at)?;
        self.is_present(peer).then_some(peer)
    }

    /// Peers that entered our table and have not written yet may die as well, perhaps while they write their first
    /// packet.
    fn look_for_strangers(&mut self) {
        for peer in self.vacant.poll_taken(&self.table) {
            self.add(peer);
        }
        if self.is_low_on_places() {
            // `poll_event` tells of it at its next call.
            self.polls = u32::MAX;
        }
    }

    /// Peers to which we are connected say so before they close. Those that closed, or gave up, say so too.
    fn look_at_marks(&mut self) {
        for _ in 0..self.roster.len().min(MARKS_AT_MOST) {
            let peer = self.roster[self.monitor.marks.next(self.roster.len())];
            let known = &mut self.peers[peer.0 as usize];
            let is_closing = known.connection.as_ref().is_some_and(Connection::is_closing);
            if is_closing && !std::mem::replace(&mut known.is_closing, true) {
                self.monitor.closings.push_back((peer, self.reader.end()));
            }
            if self.is_present(peer)
                && let Some(end) = self.last_words(peer)
            {
                self.notice_departure(peer, end);
            }
            if let Some(pool) = self.reader.slot_pool() {
                pool.find_lost(peer);
            }
        }
    }

    /// When our file has been removed, those who are connected go on. All others never will be, and what waits for them
    /// has to be told so; they learn it when they try.
    fn look_at_own_file(&mut self) {
        if self.is_removed || !self.segment.is_removed() {
            return;
        }
        self.is_removed = true;
        let why = self.why_nobody_connects();
        log::line(Level::Trouble, || format!("{why}. Who is connected already goes on, nobody else can"));
        for at in 0..self.roster.len() {
            let peer = self.roster[at];
            if self.is_present(peer) && self.table.state(peer) == State::Expected {
                self.notice_departure(peer, End::OutOfReach(why.clone()));
            }
        }
    }

    /// Asks the system whether the next few peers live.
    fn ask_about_some(&mut self) {
        let all = self.roster.len();
        for _ in 0..all.div_ceil(SHARE).clamp(ASKED_AT_LEAST, ASKED_AT_MOST).min(all) {
            let peer = self.roster[self.monitor.questions.next(all)];
            if self.is_present(peer) {
                self.ask_about(peer);
            }
        }
    }

    /// Asks the system whether the peer lives; if not, notes its departure and clears away its segment.
    pub(super) fn ask_about(&mut self, peer: PeerId) {
        let end = match self.evidence().fate(peer) {
            Fate::Alive => return,
            Fate::Dead => {
                if let Some(address) = self.address_of(peer) {
                    remove_if_dead(&self.config.directory, &self.here, &address);
                }
                End::Died
            }
            // That proves no death: it may connect to us at this very moment.
            Fate::Absent => {
                let Some(address) = self.address_of(peer) else { return };
                let file = self.here.path(&self.config.directory, &address);
                End::OutOfReach(LinkError::Vanished { peer: address, file }.to_string())
            }
        };
        // Who closes first says so, and then lets go of its locks.
        let end = self.last_words(peer).unwrap_or(end);
        self.notice_departure(peer, end);
    }

    pub(super) fn evidence(&self) -> Evidence<'_> {
        Evidence {
            here: &self.here,
            directory: &self.config.directory,
            segment: &self.segment,
            table: self.table,
            peers: &self.peers,
        }
    }

    /// Steps over slots whose writers died before publishing them.
    fn look_at_hole(&mut self) {
        if self.reader.backlog().is_err() && !self.monitor.has_seen_wild_pointer {
            self.monitor.has_seen_wild_pointer = true;
            self.stats.counters().add(Counter::Violations, 1);
            log::line(Level::Warn, || "the mailbox's write pointer is out of bounds: a peer has damaged it".into());
        }
        // A packet that is being written as we look makes no hole.
        let position = Some(self.reader.position());
        if std::mem::replace(&mut self.monitor.position, position) != position {
            self.monitor.hole = None;
            return;
        }
        // A dead writer leaves as many holes as it had reserved slots at once.
        for _ in 0..self.reader.size() {
            let table = self.table;
            let mut suspects = Vec::new();
            let evidence = Evidence {
                here: &self.here,
                directory: &self.config.directory,
                segment: &self.segment,
                table,
                peers: &self.peers,
            };
            let is_alive = |peer: PeerId| {
                let alive = evidence.fate(peer) != Fate::Dead;
                if !alive {
                    suspects.push(peer);
                }
                alive
            };
            let (before, word) = (self.monitor.hole.take(), |peer| table.writing_word(peer));
            let verdict = Hole::examine(&mut self.reader, before, table.taken(), word, is_alive);
            for peer in suspects {
                self.ask_about(peer);
            }
            match verdict {
                Verdict::Clear => return,
                Verdict::Wait(hole) => {
                    self.monitor.hole = Some(hole);
                    return;
                }
                Verdict::Skipped(hole) => {
                    self.monitor.hole = Some(hole);
                    log::line(Level::Info, || "skipped a slot that a dead peer had reserved and not filled".into());
                }
            }
        }
    }
}
