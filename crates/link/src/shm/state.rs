//! [`ShmLink`]: what an endpoint over shared memory is made of, who its peers are, and how its communication with one
//! of them ends.

use super::address::Address;
use super::bounce::BufferArea;
use super::bulk;
use super::config::ShmConfig;
use super::connect_retry::{Announcer, ConnectRetry};
use super::connection::Connection;
use super::filling::Filling;
use super::life::Here;
use super::mailbox::{Hole, Pool, Reader};
use super::peer::{State, Table};
use super::pieces::PieceCopier;
use super::region::Regions;
use super::segment::OwnSegment;
use super::send_buffers::{InUse, SendBuffers};
use super::spin::{SpinPolicy, Step};
use super::vacant::Vacant;
use super::wait_meter::WaitMeter;
use super::wake::{Alarm, Waker};
use crate::log::{self, Level};
use crate::records::Records;
use crate::secret::Secret;
use crate::stats::{BulkState, StatsPage};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tidegate_flow::{Config, Instant, PeerId};
use tidegate_message::{Counter, Departure};

/// What we know of the peer at an index.
#[derive(Debug, Default)]
pub(super) struct Peer {
    pub(super) connection: Option<Connection>,
    /// Whose index it is; `None`: nobody's, or somebody's we have not heard of.
    pub(super) address: Option<Address>,
    /// Why nothing can be written to it any more.
    pub(super) lost: Option<Box<str>>,
    /// It is closing, and we have noticed.
    pub(super) is_closing: bool,
    /// It will write no more: it has said so, or its end is proven.
    pub(super) is_silent: bool,
    /// Not before this is it tried again to connect.
    pub(super) connect_at: Instant,
    /// What has kept us from connecting to it.
    pub(super) connect_retry: ConnectRetry,
    pub(super) state: PeerState,
    /// Buffers that we have posted for its messages, beside those at the start.
    pub(super) posted: u64,
    /// The send buffers of ours with messages to the peer, once there has been one.
    pub(super) sending: Option<Box<InUse>>,
    /// Where it is in the roster.
    listed_at: usize,
}

/// Whether a peer's packets count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PeerState {
    /// Not heard of.
    #[default]
    Unknown,
    /// In good order.
    Known,
    /// Gone, or out of reach; what it wrote before is still being retrieved.
    Leaving,
    /// Gone, or out of reach, and reported.
    Departed,
    /// The endpoint wants to hear no more of it, although it may still write.
    Unwanted,
    /// It broke the protocol: its packets are dropped, and the endpoint wants to know when it has gone.
    Quarantined,
    /// Nothing is kept of it but its place, which could not be given away yet: somebody held the lock.
    Released,
}

impl PeerState {
    /// Whether its packets go to the endpoint.
    pub(super) fn is_heard(self) -> bool {
        matches!(self, PeerState::Known | PeerState::Leaving)
    }
}

/// Whose turn it is in the roster.
#[derive(Debug, Default)]
pub(super) struct Turn(usize);

impl Turn {
    /// The next one of so many, from the first on again after the last.
    pub fn next(&mut self, count: usize) -> usize {
        let at = if self.0 < count { self.0 } else { 0 };
        self.0 = at + 1;
        at
    }
}

/// What the liveness monitor remembers.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    /// When to look again.
    pub(super) next: Instant,
    /// Where in the roster to go on with marks.
    pub(super) marks: Turn,
    /// Where in the roster to go on with questions to the system.
    pub(super) questions: Turn,
    /// The ticket to which the reader had come at the last look, if there was one.
    pub(super) position: Option<u64>,
    pub(super) hole: Option<Hole>,
    pub(super) departures: VecDeque<Leaving>,
    /// Peers that are closing and have not been reported, each with the ticket to which the reader has to come before.
    pub(super) closings: VecDeque<(PeerId, u64)>,
    /// A write pointer out of bounds has been reported.
    pub(super) has_seen_wild_pointer: bool,
}

/// How the communication between a peer and us ends.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// The peer has closed its endpoint.
    Closed,
    /// The peer is dead.
    Died,
    /// The peer has given up, with this to be said of it, and will write no more.
    GaveUp(String),
    /// Nothing can be sent to it, for this reason; it may live and write.
    OutOfReach(String),
}

/// A departure that is not reported yet.
#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) departure: Departure,
    /// Report it when the reader has come to this ticket.
    pub(super) end: u64,
    /// Our connection to it, which has ended: packets that it wrote may name what lies in its send buffers.
    pub(super) connection: Option<Connection>,
}

impl Monitor {
    /// Whether any departure has been noticed and not reported.
    #[inline(always)]
    pub fn has_departures(&self) -> bool {
        !self.departures.is_empty()
    }

    /// Whether any peer has been noticed that is closing, and not reported.
    #[inline(always)]
    pub fn has_closings(&self) -> bool {
        !self.closings.is_empty()
    }
}

/// What the next empty poll is likely to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Idling {
    /// Wait for a moment, as most do.
    #[default]
    Spins,
    /// This, which it has begun.
    Begun(Step),
    /// Look whether to give the processor away: nothing has come for long.
    Yields,
}

/// One endpoint's view of shared memory: its own mailbox and those of its peers.
///
/// One value belongs to one endpoint and is used by one thread at a time. Call [`busy`](Self::busy) or
/// [`idle`](Self::idle) after each round of progress. Dropping it closes the endpoint: peers that know it are told.
#[derive(Debug)]
pub struct ShmLink {
    pub(super) reader: Reader,
    /// Where flow control posts buffers in a pool.
    pub(super) pool: Option<Pool>,
    /// [`arm`](Self::arm) was called: writers are to wake us.
    pub(super) is_armed: bool,
    /// Packets retrieved in a row.
    pub(super) burst: u32,
    /// Calls of `poll_event`.
    pub(super) polls: u32,
    pub(super) spin: SpinPolicy,
    /// By `PeerId`, as far as peers are known: as long as many peers were there at once.
    pub(super) peers: Vec<Peer>,
    /// All peers whose addresses are known, in any order.
    pub(super) roster: Vec<PeerId>,
    /// Places that nobody has.
    pub(super) vacant: Vacant,
    pub(super) monitor: Monitor,
    /// What has kept us from taking peers into our own table.
    pub(super) connect_retry: ConnectRetry,
    /// What has kept a network beside us from taking peers into its table.
    pub(super) place_retry: ConnectRetry,
    /// Somebody held the lock of our own table at the last try.
    pub(super) is_table_busy: bool,
    pub(super) announcer: Announcer,
    /// Somebody has removed our file: nobody can connect to us any more.
    pub(super) is_removed: bool,
    pub(super) by_address: HashMap<Address, PeerId>,
    /// Other processes, by namespace and process id, and how many endpoints we know of each.
    pub(super) processes: HashMap<(u32, u32), u32>,
    /// Peers whose places are still to be given away.
    pub(super) released: Vec<PeerId>,
    /// Departed peers that have none and whose messages the endpoint still has.
    pub(super) records: Records,
    pub(super) table: Table,
    pub(super) regions: Regions,
    pub(super) bounce_buffers: BufferArea,
    /// Of the bounce buffers.
    pub(super) filling: Filling,
    pub(super) send_buffers: SendBuffers,
    pub(super) copier: bulk::Copier,
    pub(super) piece_copier: PieceCopier,
    pub(super) time_reading: Duration,
    pub(super) time_draining: Duration,
    pub(super) bulk: BulkState,
    pub(super) config: ShmConfig,
    pub(super) here: Here,
    pub(super) alarm: Alarm,
    pub(super) waker: Option<Waker>,
    pub(super) stats: StatsPage,
    /// When what is open is to be written again, and whether that has been found out.
    pub(super) next_look: Instant,
    pub(super) is_look_due: bool,
    /// What the next empty poll is likely to do.
    pub(super) idling: Idling,
    /// Where what is open may be read: how long the application polls in vain, and what of that is still to be told.
    pub(super) wait_meter: WaitMeter,
    pub(super) wait_ends: Option<Instant>,
    pub(super) wait_begins: Option<Instant>,
    /// Last, so that it outlives what points into it.
    pub(super) segment: OwnSegment,
}

// SAFETY: what the pointers inside lead to (segments, counters) belongs to this value and is atomic or behind `&mut
// self`; none of it is bound to a thread.
unsafe impl Send for ShmLink {}

impl ShmLink {
    /// Where peers find this endpoint.
    pub fn address(&self) -> Address {
        self.segment.address()
    }

    /// How it counts packets.
    pub fn flow(&self) -> &Config {
        &self.config.flow
    }

    /// Whether a segment of this address lies where ours does.
    pub fn shows(&self, address: &Address) -> bool {
        std::fs::symlink_metadata(self.here.path(&self.config.directory, address)).is_ok()
    }

    /// The secret that the address holds, for the peers that are given it.
    pub fn secret(&self) -> Secret {
        self.segment.secret()
    }

    /// The address of a peer; `None` if there is no such peer (any more).
    pub fn address_of(&self, peer: PeerId) -> Option<Address> {
        self.peers.get(peer.0 as usize)?.address
    }

    /// The address of a departed peer whose messages the endpoint has by this number.
    pub fn address_of_record(&self, record: PeerId) -> Option<Address> {
        self.records.address(record)
    }

    /// The number by which the endpoint has messages of the departed peer of this address.
    pub fn record_of(&self, address: &Address) -> Option<PeerId> {
        self.records.number(address)
    }

    /// Remembers whose place this is.
    pub(super) fn introduce(&mut self, peer: PeerId, address: Address) {
        let at = peer.0 as usize;
        if self.peers.len() <= at {
            let more = (at + 1 - self.peers.len()) * size_of::<Peer>();
            self.peers.resize_with(at + 1, Peer::default);
            self.stats.counters().add(Counter::BookkeepingBytes, more as u64);
        }
        self.unlist(peer);
        let listed_at = self.roster.len();
        self.roster.push(peer);
        self.peers[at] = Peer { address: Some(address), state: PeerState::Known, listed_at, ..Peer::default() };
        if self.by_address.insert(address, peer).is_none() {
            self.count_process(&address);
        }
    }

    /// Whether more places of the table are to be opened, of those that may be.
    pub(super) fn is_low_on_places(&self) -> bool {
        self.table.is_low(self.roster.len()) && self.segment.may_open_places()
    }

    fn count_process(&mut self, address: &Address) {
        let endpoints = self.processes.entry(process(address)).or_insert(0);
        *endpoints += 1;
        if *endpoints == 1 && process(address) != process(&self.segment.address()) {
            // Of a process in another container only the number counts; no process has this pid.
            let pid = if self.here.shares_namespace(address) { address.pid } else { i32::MAX as u32 };
            self.spin.add_process(pid);
            // Not where one leaves: at the end of a job all do, and the last choice is none that it ran with.
            self.stats.set_spin(self.spin.limit());
        }
    }

    fn discount_process(&mut self, address: &Address) {
        let Some(endpoints) = self.processes.get_mut(&process(address)) else { return };
        *endpoints -= 1;
        if *endpoints == 0 {
            self.processes.remove(&process(address));
            if process(address) != process(&self.address()) {
                self.spin.remove_process();
            }
        }
    }

    pub(super) fn is_present(&self, peer: PeerId) -> bool {
        match self.peers.get(peer.0 as usize).map_or(PeerState::Unknown, |known| known.state) {
            PeerState::Known => true,
            PeerState::Unwanted | PeerState::Quarantined => {
                !self.monitor.departures.iter().any(|leaving| leaving.departure.peer == peer)
            }
            PeerState::Unknown | PeerState::Leaving | PeerState::Departed | PeerState::Released => false,
        }
    }

    /// What the peer has said of its end.
    pub(super) fn last_words(&self, peer: PeerId) -> Option<End> {
        let connection = self.peers[peer.0 as usize].connection.as_ref();
        match self.table.state(peer) {
            State::Left => Some(End::Closed),
            State::Failed => Some(End::GaveUp("could not go on communicating with this process".into())),
            _ if connection.is_some_and(|connection| connection.has_closed()) => Some(End::Closed),
            _ if connection.is_some_and(|connection| connection.is_severed()) => {
                Some(End::OutOfReach("does not hear this process any more".into()))
            }
            _ => None,
        }
    }

    /// We communicate with a peer no more. What it has written is still retrieved.
    pub(super) fn notice_departure(&mut self, peer: PeerId, end: End) {
        if !self.is_present(peer) {
            return;
        }
        let until = self.reader.end();
        let known = &mut self.peers[peer.0 as usize];
        let who = known.address.map_or_else(|| format!("peer {}", peer.0), |address| describe(&address));
        let (name, text) = match &end {
            End::Closed => (who.clone(), format!("{who} has closed its endpoint")),
            End::Died => (who.clone(), format!("{who} has died")),
            End::GaveUp(what) => (format!("{who} {what}"), format!("{who} {what}")),
            End::OutOfReach(why) => (format!("{who} ({why})"), format!("{who}: {why}")),
        };
        let orderly = matches!(end, End::Closed);
        if !orderly {
            log::line(Level::Warn, || text.clone());
        }
        known.is_silent = !matches!(end, End::OutOfReach(_));
        known.lost.get_or_insert(text.into());
        if known.state == PeerState::Known {
            known.state = PeerState::Leaving;
        }
        let connection = self.end_connection(peer, orderly);
        let departure = Departure { peer, orderly, name };
        self.monitor.departures.push_back(Leaving { departure, end: until, connection });
    }

    /// Why no new peer can connect after our file was removed.
    pub(super) fn why_nobody_connects(&self) -> String {
        let path = self.segment.path().display();
        format!(
            "the segment {path} of this process was removed while it runs: keep systemd's RemoveIPC and epilogues of jobs \
             from clearing the folder under jobs that run"
        )
    }

    /// Gives the place of a peer away that will write no more, or never has.
    pub(super) fn forget(&mut self, peer: PeerId) {
        if let Some(pool) = &mut self.pool {
            pool.forget(peer, &self.table);
        }
        if !self.is_forked()
            && let Some(pool) = self.reader.slot_pool()
        {
            pool.forget(peer);
        }
        self.unlist(peer);
        let known = std::mem::take(&mut self.peers[peer.0 as usize]);
        self.peers[peer.0 as usize] =
            Peer { state: PeerState::Released, is_silent: known.is_silent, ..Peer::default() };
        self.released.push(peer);
        self.give_places_away();
    }

    /// Takes a peer off the roster: from now on nobody is known at this place.
    fn unlist(&mut self, peer: PeerId) {
        let known = &mut self.peers[peer.0 as usize];
        let (Some(address), at) = (known.address.take(), known.listed_at) else { return };
        self.roster.swap_remove(at);
        if let Some(moved) = self.roster.get(at) {
            self.peers[moved.0 as usize].listed_at = at;
        }
        // Somebody who has damaged the table may have given it two places.
        if self.by_address.get(&address) == Some(&peer) {
            self.by_address.remove(&address);
            self.discount_process(&address);
        }
    }

    /// Gives the places of released peers away, or does so at a later call if somebody holds the lock.
    pub(super) fn give_places_away(&mut self) {
        if self.released.is_empty() || self.is_forked() {
            return;
        }
        let mut newcomers;
        {
            // Under the lock, because who had not connected may do so now: then the entry stays, and is a new peer's.
            let Ok(_held) = self.segment.lock_table(Duration::ZERO) else { return };
            newcomers = self.vacant.poll_taken(&self.table);
            if let Some(pool) = self.reader.slot_pool() {
                // A place that is still in the list would be there twice if its next peer pushed it as well.
                pool.pull_marks();
            }
            for peer in self.released.drain(..) {
                let known = &mut self.peers[peer.0 as usize];
                if known.state != PeerState::Released {
                    continue;
                }
                if known.is_silent || !self.table.may_write(peer) {
                    self.table.free(peer);
                    self.vacant.push(peer);
                } else {
                    newcomers.push(peer);
                }
                *known = Peer::default();
            }
        }
        for peer in newcomers {
            self.add(peer);
        }
    }

    /// Introduces whoever has a place, if we have not heard of it; returns whether it is known now.
    pub(super) fn add(&mut self, peer: PeerId) -> bool {
        if self.peers.get(peer.0 as usize).is_some_and(|known| known.state != PeerState::Unknown) {
            return true;
        }
        let address = self.table.address(peer);
        if let Some(address) = address {
            self.introduce(peer, address);
        }
        address.is_some()
    }

    /// Ends our connection to a peer, if there is one, and tells the peer that we will write no more.
    pub(super) fn end_connection(&mut self, peer: PeerId, orderly: bool) -> Option<Connection> {
        let known = &mut self.peers[peer.0 as usize];
        if let Some(in_use) = known.sending.take() {
            self.send_buffers.take_all_back(peer, *in_use);
        }
        let mut connection = known.connection.take()?;
        if !self.is_forked() {
            connection.leave(orderly);
        }
        Some(connection)
    }

    /// Our connection to a peer, also one that has ended, until the last packet of the peer has been retrieved.
    #[inline]
    pub(super) fn connection_until_last(&mut self, peer: PeerId) -> Option<&mut Connection> {
        if let Some(Peer { connection: Some(connection), .. }) = self.peers.get_mut(peer.0 as usize) {
            return Some(connection);
        }
        let leaving = self.monitor.departures.iter_mut().find(|leaving| leaving.departure.peer == peer);
        leaving.and_then(|leaving| leaving.connection.as_mut())
    }

    /// Whether this is a copy in a child that was forked from the owner. The endpoint is the parent's, which goes on
    /// with it: the child can do no more than drop its copy. Rare calls check for this, and do nothing or fail.
    /// Frequent ones do not: callers must not write or retrieve packets with a copy, nor fill bounce buffers.
    pub fn is_forked(&self) -> bool {
        self.segment.is_forked()
    }
}

/// The process of an endpoint.
fn process(address: &Address) -> (u32, u32) {
    (address.namespace, address.pid)
}

/// A peer's name for people.
pub(super) fn describe(address: &Address) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match host.trim() {
        "" => address.to_string(),
        host => format!("{address} of host {host}"),
    }
}
