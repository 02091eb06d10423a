//! The watch over peers: who has closed, who has died, and what a dead one left behind: a hole in our mailbox, a
//! segment.
//!
//! Every [`INTERVAL`] at most, from `idle` or `poll_departure`: look at the hole in front of our reader, if there is
//! one; look at the marks that closing peers leave, in our table and in their headers; and ask the system about an
//! [`SHARE`]th of the peers, at least [`ASKED_AT_LEAST`], so that a death is noticed within a second and costs little
//! among many.
//!
//! A departure is reported once everything that was in our mailbox when we noticed has been retrieved or skipped: the
//! peer wrote nothing after that.

use super::connection::Connection;
use super::life::Fate;
use super::mailbox::{Hole, Verdict};
use super::peer::State;
use super::{Address, ShmLink, Standing, segment};
use crate::clock;
use crate::log::{self, Level};
use std::collections::VecDeque;
use std::time::Duration;
use tidegate_flow::{Instant, PeerId};
use tidegate_message::{Counter, Departure};

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(100);
/// In how many looks the system is asked about all peers.
const SHARE: usize = 8;
/// Peers that the system is asked about in one look, if there are so many.
const ASKED_AT_LEAST: usize = 4;

/// What the watch remembers.
#[derive(Debug, Default)]
pub(super) struct Vigil {
    /// When to look again.
    next: Instant,
    /// Where in the table to go on asking.
    turn: usize,
    pub(super) hole: Option<Hole>,
    departures: VecDeque<Leaving>,
    /// Peers that are closing and have not been reported, each with the ticket to which the reader has to come before.
    closings: VecDeque<(PeerId, u64)>,
    /// A write pointer out of bounds has been reported.
    has_seen_wild_pointer: bool,
}

/// A departure that is not reported yet.
#[derive(Debug)]
struct Leaving {
    departure: Departure,
    /// Report it when the reader has come to this ticket.
    end: u64,
}

impl Vigil {
    /// Whether any departure has been noticed and not reported.
    #[inline(always)]
    pub fn has_departures(&self) -> bool {
        !self.departures.is_empty()
    }

    /// The same of peers that are closing.
    #[inline(always)]
    pub fn has_closings(&self) -> bool {
        !self.closings.is_empty()
    }
}

impl ShmLink {
    /// Looks after the peers, if it is time to.
    #[cold]
    pub(super) fn watch(&mut self) {
        let now = clock::now();
        if now >= self.vigil.next {
            self.vigil.next = now + INTERVAL;
            self.look_for_strangers();
            self.look_at_closings();
            self.look_at_marks();
            self.ask_about_some();
            self.look_at_hole();
        }
    }

    /// The next departure whose packets have all been retrieved.
    #[cold]
    pub(super) fn next_departure(&mut self) -> Option<Departure> {
        let position = self.reader.position();
        let at = self.vigil.departures.iter().position(|leaving| position >= leaving.end)?;
        let departure = self.vigil.departures.remove(at)?.departure;
        let peer = &mut self.peers[departure.peer.0 as usize];
        if peer.standing == Standing::Shunned {
            // The endpoint has released it already.
            self.forget(departure.peer);
            return None;
        }
        peer.standing = Standing::Departed;
        Some(departure)
    }

    /// The next peer that is closing and all of whose earlier packets have been retrieved.
    #[cold]
    pub(super) fn next_closing(&mut self) -> Option<PeerId> {
        let position = self.reader.position();
        let at = self.vigil.closings.iter().position(|&(_, end)| position >= end)?;
        let (peer, _) = self.vigil.closings.remove(at)?;
        self.is_present(peer).then_some(peer)
    }

    /// Peers that entered our table and have not written yet may die as well, perhaps while they write their first
    /// packet.
    fn look_for_strangers(&mut self) {
        let table = self.table;
        for peer in table.taken() {
            if self.peers[peer.0 as usize].standing == Standing::Unknown
                && let Some(address) = table.address(peer)
            {
                self.introduce(peer, address);
            }
        }
    }

    /// Peers to which we are connected say so before they close.
    fn look_at_closings(&mut self) {
        for at in 0..self.peers.len() {
            let peer = &mut self.peers[at];
            let is_closing = peer.connection.as_ref().is_some_and(Connection::is_closing);
            if is_closing && !std::mem::replace(&mut peer.is_closing, true) {
                self.vigil.closings.push_back((PeerId(at as u32), self.reader.end()));
            }
        }
    }

    /// Peers that closed say so.
    fn look_at_marks(&mut self) {
        for at in 0..self.peers.len() {
            let peer = PeerId(at as u32);
            if self.is_present(peer) && self.has_said_farewell(peer) {
                self.notice_departure(peer, true);
            }
        }
    }

    /// Asks the system whether the next few peers live.
    fn ask_about_some(&mut self) {
        let present: Vec<PeerId> =
            (0..self.peers.len() as u32).map(PeerId).filter(|peer| self.is_present(*peer)).collect();
        if present.is_empty() {
            return;
        }
        let count = present.len().div_ceil(SHARE).max(ASKED_AT_LEAST).min(present.len());
        for step in 0..count {
            self.ask_about(present[(self.vigil.turn + step) % present.len()]);
        }
        self.vigil.turn = (self.vigil.turn + count) % present.len();
    }

    /// Asks the system whether the peer lives; if not, notes its departure and clears away its segment.
    fn ask_about(&mut self, peer: PeerId) -> Fate {
        let Some(address) = self.address_of(peer) else { return Fate::Alive };
        let fate = self.here.fate(&self.config.directory, &address);
        match fate {
            Fate::Alive => {}
            Fate::Dead => {
                segment::remove_if_dead(&self.config.directory, &self.here, &address);
                self.notice_departure(peer, false);
            }
            // Closing marks our table before, and its own header before the file goes. Without a mark, the process
            // died and somebody else was quicker to tidy up; unless we never had anything to do with it, so that it could
            // not mark anything, and it still runs.
            Fate::Absent => {
                let connected = self.peers[peer.0 as usize].connection.is_some();
                let had_contact = connected || self.table.state(peer) == State::Connected;
                let runs_on = !had_contact && !self.here.sees_gone(&address);
                let orderly = self.has_said_farewell(peer) || runs_on;
                self.notice_departure(peer, orderly);
            }
        }
        fate
    }

    fn is_present(&self, peer: PeerId) -> bool {
        let known = &self.peers[peer.0 as usize];
        match known.standing {
            Standing::Known => true,
            Standing::Shunned => !self.vigil.departures.iter().any(|leaving| leaving.departure.peer == peer),
            Standing::Unknown | Standing::Leaving | Standing::Departed => false,
        }
    }

    fn has_said_farewell(&self, peer: PeerId) -> bool {
        let connection = self.peers[peer.0 as usize].connection.as_ref();
        self.table.state(peer) == State::Left || connection.is_some_and(|connection| connection.has_closed())
    }

    /// The peer will write no more. What it has written is still retrieved.
    fn notice_departure(&mut self, peer: PeerId, orderly: bool) {
        if !self.is_present(peer) {
            return;
        }
        let end = self.reader.end();
        let known = &mut self.peers[peer.0 as usize];
        let name = known.address.map_or_else(|| format!("peer {}", peer.0), |address| describe(&address));
        let text = if orderly { format!("{name} has closed its endpoint") } else { format!("{name} has died") };
        if !orderly {
            log::line(Level::Warn, || text.clone());
        }
        known.connection = None;
        known.lost = Some(text.into());
        if known.standing == Standing::Known {
            known.standing = Standing::Leaving;
        }
        self.vigil.departures.push_back(Leaving { departure: Departure { peer, orderly, name }, end });
    }

    /// Steps over slots whose writers died before publishing them.
    fn look_at_hole(&mut self) {
        if self.reader.backlog().is_err() && !self.vigil.has_seen_wild_pointer {
            self.vigil.has_seen_wild_pointer = true;
            self.stats.counters().add(Counter::Violations, 1);
            log::line(Level::Warn, || "the mailbox's write pointer is out of bounds: a peer has damaged it".into());
        }
        // A dead writer leaves as many holes as it had reserved slots at once.
        for _ in 0..self.reader.size() {
            let table = self.table;
            let mut suspects = Vec::new();
            let here = self.here;
            let directory = &self.config.directory;
            let is_alive = |peer: PeerId| {
                let alive = table.address(peer).is_some_and(|address| here.fate(directory, &address) == Fate::Alive);
                if !alive {
                    suspects.push(peer);
                }
                alive
            };
            let verdict = Hole::examine(&mut self.reader, self.vigil.hole.take(), || table.writing_words(), is_alive);
            for peer in suspects {
                self.ask_about(peer);
            }
            match verdict {
                Verdict::Clear => return,
                Verdict::Wait(hole) => {
                    self.vigil.hole = Some(hole);
                    return;
                }
                Verdict::Skipped => {
                    log::line(Level::Info, || "skipped a slot that a dead peer had reserved and not filled".into());
                }
            }
        }
    }
}

/// A peer's name for people.
fn describe(address: &Address) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match host.trim() {
        "" => address.to_string(),
        host => format!("{address} of host {host}"),
    }
}
