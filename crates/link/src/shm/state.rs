//! [`ShmLink`]: what an endpoint over shared memory is made of, who its peers are, and how it ends between it and one
//! of them.

use super::address::Address;
use super::bounce::BounceArea;
use super::bulk;
use super::config::ShmConfig;
use super::connection::Connection;
use super::hindrance::{Announcer, Hindrance};
use super::life::Here;
use super::mailbox::{Hole, Reader};
use super::peer::{State, Table};
use super::region::Regions;
use super::segment::OwnSegment;
use super::spin::SpinPolicy;
use super::wake::{Alarm, Waker};
use crate::log::{self, Level};
use crate::stats::{BulkState, StatsPage};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tidegate_flow::{Instant, PeerId};
use tidegate_message::Departure;

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
    pub(super) hindrance: Hindrance,
    pub(super) standing: Standing,
}

/// Whether a peer's packets count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
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
    /// The same, and the endpoint wants to know when it has gone.
    Quarantined,
    /// Forgotten, but for its place, which could not be given away: somebody held the lock.
    Released,
}

impl Standing {
    /// Whether its packets go to the endpoint.
    pub(super) fn is_heard(self) -> bool {
        matches!(self, Standing::Known | Standing::Leaving)
    }
}

/// What the liveness monitor remembers.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    /// When to look again.
    pub(super) next: Instant,
    /// Where in the table to go on asking.
    pub(super) turn: usize,
    pub(super) hole: Option<Hole>,
    pub(super) departures: VecDeque<Leaving>,
    /// Peers that are closing and have not been reported, each with the ticket to which the reader has to come before.
    pub(super) closings: VecDeque<(PeerId, u64)>,
    /// A write pointer out of bounds has been reported.
    pub(super) has_seen_wild_pointer: bool,
}

/// How it ends between a peer and us.
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
}

impl Monitor {
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

/// One endpoint's view of shared memory: its own mailbox and those of its peers.
///
/// One value belongs to one endpoint and is used by one thread at a time. Call [`busy`](Self::busy) or
/// [`idle`](Self::idle) after each round of progress. Dropping it closes the endpoint: peers that know it are told.
#[derive(Debug)]
pub struct ShmLink {
    pub(super) reader: Reader,
    /// A wake has been asked for.
    pub(super) is_armed: bool,
    /// Packets retrieved in a row.
    pub(super) burst: u32,
    /// Calls of `poll_event`.
    pub(super) polls: u32,
    pub(super) spin: SpinPolicy,
    /// By `PeerId`.
    pub(super) peers: Vec<Peer>,
    pub(super) monitor: Monitor,
    /// What has kept us from taking peers into our own table.
    pub(super) hindrance: Hindrance,
    /// Somebody held the lock of our own table at the last try.
    pub(super) is_table_busy: bool,
    pub(super) announcer: Announcer,
    /// Somebody has removed our file: nobody can connect to us any more.
    pub(super) is_removed: bool,
    pub(super) by_address: HashMap<Address, PeerId>,
    /// Peers whose places are still to be given away.
    pub(super) released: Vec<PeerId>,
    pub(super) table: Table,
    pub(super) regions: Regions,
    pub(super) bounce_buffers: BounceArea,
    pub(super) copier: bulk::Copier,
    pub(super) time_reading: Duration,
    pub(super) bulk: BulkState,
    pub(super) config: ShmConfig,
    pub(super) here: Here,
    pub(super) alarm: Alarm,
    pub(super) waker: Option<Waker>,
    pub(super) stats: StatsPage,
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

    /// The address of a peer; `None` if there is no such peer (any more).
    pub fn address_of(&self, peer: PeerId) -> Option<Address> {
        self.peers.get(peer.0 as usize)?.address
    }

    /// Remembers whose index this is.
    pub(super) fn introduce(&mut self, peer: PeerId, address: Address) {
        self.peers[peer.0 as usize] = Peer { address: Some(address), standing: Standing::Known, ..Peer::default() };
        if self.is_new_process(&address) {
            // Of a process in another container only the number counts; no process has this pid.
            let pid =
                if self.here.shares_namespace(&address.identity) { address.identity.pid } else { i32::MAX as u32 };
            self.spin.add_process(pid);
        }
        self.by_address.insert(address, peer);
    }

    /// Whether no other endpoint that we know belongs to the same process.
    fn is_new_process(&self, address: &Address) -> bool {
        let process = |address: &Address| (address.identity.pid, address.identity.namespace);
        let same = |known: &Address| process(known) == process(address);
        !same(&self.address()) && !self.by_address.keys().any(same)
    }

    pub(super) fn is_present(&self, peer: PeerId) -> bool {
        let known = &self.peers[peer.0 as usize];
        match known.standing {
            Standing::Known => true,
            Standing::Unwanted | Standing::Quarantined => {
                !self.monitor.departures.iter().any(|leaving| leaving.departure.peer == peer)
            }
            Standing::Unknown | Standing::Leaving | Standing::Departed | Standing::Released => false,
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

    /// It is over between a peer and us. What it has written is still retrieved.
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
        if known.standing == Standing::Known {
            known.standing = Standing::Leaving;
        }
        self.end_connection(peer, orderly);
        self.monitor.departures.push_back(Leaving { departure: Departure { peer, orderly, name }, end: until });
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
        let known = std::mem::take(&mut self.peers[peer.0 as usize]);
        if let Some(address) = known.address {
            self.by_address.remove(&address);
            if self.is_new_process(&address) {
                self.spin.remove_process();
            }
        }
        self.peers[peer.0 as usize] =
            Peer { standing: Standing::Released, is_silent: known.is_silent, ..Peer::default() };
        self.released.push(peer);
        self.give_places_away();
    }

    /// Gives the places of those away that have been forgotten, or does so at a later call if somebody holds the lock.
    pub(super) fn give_places_away(&mut self) {
        if self.released.is_empty() || self.is_forked() {
            return;
        }
        // Under the lock, because who had not connected may do so now: then the entry stays, and is a new peer's.
        let Ok(_held) = self.segment.lock_table(Duration::ZERO) else { return };
        for peer in self.released.drain(..) {
            let known = &mut self.peers[peer.0 as usize];
            if known.standing != Standing::Released {
                continue;
            }
            if known.is_silent || !self.table.may_write(peer) {
                self.table.free(peer);
            }
            *known = Peer::default();
        }
    }

    /// Drops our connection to a peer, if there is one, and tells the peer that we will write no more.
    pub(super) fn end_connection(&mut self, peer: PeerId, orderly: bool) {
        if let Some(connection) = self.peers[peer.0 as usize].connection.take()
            && !self.is_forked()
        {
            connection.leave(orderly);
        }
    }

    /// Whether this is a copy in a child that was forked from the owner. The endpoint is the parent's, which goes on
    /// with it: the child can do no more than drop its copy. What is asked of a copy seldom does nothing, or fails; but
    /// callers must not write or retrieve packets with it, nor fill bounce buffers, which nothing here prevents.
    pub fn is_forked(&self) -> bool {
        self.segment.is_forked()
    }
}

impl Drop for ShmLink {
    fn drop(&mut self) {
        // A forked child must not close its parent's connections.
        if self.is_forked() {
            return;
        }
        self.peers.iter().filter_map(|peer| peer.connection.as_ref()).for_each(|connection| connection.leave(true));
    }
}

/// A peer's name for people.
pub(super) fn describe(address: &Address) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match host.trim() {
        "" => address.to_string(),
        host => format!("{address} of host {host}"),
    }
}
