//! Who a peer is and how it is reached: addresses become peers, and a connection is made at the first packet to one.
//! What passes by itself (a lock that somebody holds, a lack of descriptors, a full table with some in it that have
//! ended) is tried again.

use super::address::Address;
use super::config::ShmConfig;
use super::connect_retry::ConnectRetry;
use super::connection::{Connection, Terms};
use super::error::{LinkError, is_shortage};
use super::life::{self, Rights};
use super::lock;
use super::peer_segment::{self, PeerSegment};
use super::settings::Settings;
use super::state::{End, Peer, PeerState, ShmLink};
use crate::clock;
use crate::log::{self, Level};
use crate::stats::BulkState;
use std::time::Duration;
use tidegate_flow::{Instant, PeerId};
use tidegate_message::{Counter, WriteError};

/// Time between two tries to connect, where something hinders that passes: locks that others hold, few descriptors.
const CONNECT_INTERVAL: Duration = Duration::from_millis(50);
/// What a forked child is told that uses its parent's endpoint.
const OF_THE_PARENT: &str =
    "this process was forked, and the endpoint belongs to its parent: open one of its own in the child";

impl ShmLink {
    /// The peer at `address`, which is not this endpoint's own: found in the table of peers, or inserted. Does not
    /// connect. Errors: the table is full; it is locked, or descriptors lack (both: [`LinkError::may_be_tried_again`]);
    /// the address is our own, or of another host; we do not communicate with this peer any more. Whether it has our
    /// settings is found out when it is connected to, and by [`check_settings`](Self::check_settings).
    pub fn peer(&mut self, address: &Address) -> Result<PeerId, LinkError> {
        let elsewhere = |reason: &str| LinkError::Elsewhere { peer: *address, reason: reason.into() };
        if let Some(peer) = self.by_address.get(address) {
            let known = &self.peers[peer.0 as usize];
            return match &known.lost {
                Some(why) if known.state == PeerState::Unwanted => Err(elsewhere(why)),
                _ => Ok(*peer),
            };
        }
        if *address == self.address() {
            return Err(elsewhere("it is this endpoint itself"));
        }
        if self.is_forked() {
            return Err(elsewhere(OF_THE_PARENT));
        }
        let path = self.here.path(&self.config.directory, address);
        if !self.here.shares_host(address)
            && let Err(error) = life::open(&path, Rights::Read)
        {
            return Err(match is_shortage(&error) {
                true => self.weigh(None, LinkError::system(format!("opening {}", path.display()), error)),
                false => elsewhere(&peer_segment::elsewhere(&path)),
            });
        }
        self.give_places_away();
        let locked = self.segment.lock_table(if self.is_table_busy { Duration::ZERO } else { lock::TIMEOUT });
        self.is_table_busy = matches!(locked, Err(LinkError::Busy { .. }));
        let place = locked.and_then(|_held| self.place_of(address));
        let peer = match place {
            Ok(Some(peer)) => peer,
            Ok(None) if self.is_removed => return Err(elsewhere(&self.why_nobody_connects())),
            Ok(None) => return Err(self.no_place()),
            Err(error) => return Err(self.weigh(None, error)),
        };
        self.connect_retry = ConnectRetry::default();
        self.introduce(peer, *address);
        if self.is_low_on_places() {
            self.look_soon();
        }
        Ok(peer)
    }

    /// Whether the endpoint at `address`, whose settings are not known, counts slots as we do. The error names the
    /// first parameter that differs, with both values. Any other trouble is left to whoever connects.
    pub fn check_settings(&self, address: &Address) -> Result<(), LinkError> {
        let ours = Settings::of(&self.config.flow);
        match PeerSegment::open(&self.config.directory, &self.here, address, &ours) {
            Err(error @ LinkError::Disagreement { .. }) => Err(error),
            _ => Ok(()),
        }
    }

    /// The place of `address` in our own table, whose lock we hold: a new one if need be, and if it can be of use.
    fn place_of(&self, address: &Address) -> Result<Option<PeerId>, LinkError> {
        let allocate = |memory| self.segment.allocate_table(memory);
        let place = match self.is_removed {
            true => self.table.find(address, allocate),
            false => self.table.find_or_insert(address, allocate),
        };
        place.map_err(|error| LinkError::system("making room for a peer in the segment of this process", error))
    }

    /// Why our own table has no place. Those who have ended or are out of reach make place as soon as they are noticed,
    /// and the endpoint has released them.
    fn no_place(&mut self) -> LinkError {
        self.look_soon();
        let is_noticed =
            |peer: &Peer| matches!(peer.state, PeerState::Leaving | PeerState::Departed | PeerState::Released);
        let is_changing = self.segment.may_open_places()
            || self.peers.iter().any(is_noticed)
            || self.segment.sees_some_ended(&self.here);
        let peers = self.table.capacity() as u32;
        self.weigh(None, LinkError::TableFull { owner: "this process".into(), peers, is_changing })
    }

    /// A packet came with this source, of which we have not heard: whether it is in the table of peers.
    #[cold]
    pub(super) fn admit(&mut self, source: PeerId) -> bool {
        let unheard = self.peers.get(source.0 as usize).is_none_or(|peer| match peer.state {
            PeerState::Unknown => true,
            // It had not connected when it was released, and has now: the place is that of a new peer.
            PeerState::Released => !peer.is_silent && self.table.may_write(source),
            _ => false,
        });
        let address = if unheard { self.table.address(source) } else { None };
        match address {
            Some(address) => {
                self.introduce(source, address);
                // A newcomer has taken the last place: some who have ended may still have theirs.
                if self.table.is_full() || self.is_low_on_places() {
                    self.look_soon();
                }
            }
            None => self.stats.counters().add(Counter::Violations, 1),
        }
        address.is_some()
    }

    /// Opens the connection to a peer that has none.
    #[cold]
    pub(super) fn connect(&mut self, to: PeerId) -> Result<&mut Connection, WriteError> {
        let ours = self.address();
        let nobody = || WriteError::Unreachable(format!("there is no peer {}", to.0));
        let known = |peer: &&Peer| !matches!(peer.state, PeerState::Unknown | PeerState::Released);
        let peer = self.peers.get(to.0 as usize).filter(known).ok_or_else(nobody)?;
        if let Some(why) = &peer.lost {
            return Err(WriteError::Unreachable(why.to_string()));
        }
        let address = peer.address.ok_or_else(nobody)?;
        if self.is_forked() {
            return Err(WriteError::Unreachable(OF_THE_PARENT.into()));
        }
        let is_first_try = peer.connect_at == Instant::default();
        if !is_first_try && clock::now() < peer.connect_at {
            return Err(WriteError::Full);
        }
        // The whole endpoint waits here, and perhaps for many peers: only the first try waits for a lock.
        let timeout = if is_first_try { lock::TIMEOUT } else { Duration::ZERO };
        let ShmConfig { flow, bulk, directory, .. } = &self.config;
        let terms = Terms { directory, here: &self.here, ours, flow, bulk: *bulk };
        match Connection::open(&terms, &address, timeout) {
            Ok((connection, obstacle)) => {
                self.note_bulk(obstacle);
                Ok(self.peers[to.0 as usize].connection.insert(connection))
            }
            Err(error) => {
                let error = self.weigh(Some(to), error);
                // The peer may live, so nothing is lost by waiting: its end is noticed meanwhile like anybody's.
                if error.may_be_tried_again() {
                    self.peers[to.0 as usize].connect_at = clock::now() + CONNECT_INTERVAL;
                    return Err(WriteError::Full);
                }
                Err(WriteError::Unreachable(self.give_up(to, &error)))
            }
        }
    }

    /// The connection to a peer, made now if need be.
    pub(super) fn connection(&mut self, peer: PeerId) -> Option<&mut Connection> {
        // Twice looked up, because a borrow cannot be returned from one branch only.
        if self.peers.get(peer.0 as usize).is_some_and(|peer| peer.connection.is_some()) {
            return self.peers[peer.0 as usize].connection.as_mut();
        }
        self.connect(peer).ok()
    }

    /// Whether the peer may be connected to later.
    pub(super) fn is_hindered(&self, peer: PeerId) -> bool {
        self.peers.get(peer.0 as usize).is_some_and(|peer| {
            peer.connection.is_none() && peer.lost.is_none() && peer.connect_at > Instant::default()
        })
    }

    /// A network beside this link has no place for a peer, of the `peers` that it may have now, but may have one soon.
    /// Returns the error after all tries before.
    pub fn no_place_beside(&mut self, peers: u32) -> LinkError {
        let error = LinkError::TableFull { owner: "this process".into(), peers, is_changing: true };
        let now = clock::now();
        let weighed = self.place_retry.weigh(error, now);
        self.announce(weighed, now)
    }

    /// The error of a try to connect to a peer, or to take one into our own table, after all tries before: whether it
    /// may be tried again. Says what makes operations wait, and what helps.
    fn weigh(&mut self, peer: Option<PeerId>, error: LinkError) -> LinkError {
        let now = clock::now();
        let weighed = match peer {
            Some(peer) => self.peers[peer.0 as usize].connect_retry.weigh_of_peer(error, now),
            None => self.connect_retry.weigh(error, now),
        };
        self.announce(weighed, now)
    }

    fn announce(&mut self, (error, lasting): (LinkError, Duration), now: Instant) -> LinkError {
        if let Some((level, text)) = self.announcer.announce(&error, lasting, now) {
            log::line(level, || text);
        }
        error
    }

    /// A peer cannot be connected to. What it has sent is still retrieved, but it could not be answered: its departure
    /// is reported behind that. Returns why.
    fn give_up(&mut self, peer: PeerId, error: &LinkError) -> String {
        if let Some(end) = self.last_words(peer) {
            // If the peer has closed or is dead, that says more than the error of our try.
            self.notice_departure(peer, end);
        } else if matches!(error, LinkError::Gone { .. } | LinkError::Vanished { .. }) {
            self.ask_about(peer);
        }
        if self.is_present(peer) {
            log::line(Level::Trouble, || error.to_string());
            self.notice_departure(peer, End::OutOfReach(error.to_string()));
        }
        self.peers[peer.0 as usize].lost.as_ref().map_or_else(|| error.to_string(), |why| why.to_string())
    }

    /// Logs once how bulk data travels, and once more if it is not the same for all peers.
    pub(super) fn note_bulk(&mut self, obstacle: Option<String>) {
        let now = match obstacle {
            None => BulkState::Direct,
            Some(_) if self.config.bulk.may_be_bounced() && self.bounce_buffers.count() > 0 => BulkState::Bounced,
            Some(_) => BulkState::Mailbox,
        };
        if self.bulk == now || matches!(self.bulk, BulkState::Bounced | BulkState::Mailbox) {
            return;
        }
        self.bulk = now;
        self.stats.set_bulk(now);
        match obstacle {
            None if self.bounce_buffers.count() > 0 => log::line(Level::Info, || {
                "bulk data goes directly from memory to memory (process_vm_readv) or through bounce buffers, whichever is \
                 measured to be faster"
                    .into()
            }),
            None => {
                log::line(Level::Info, || "bulk data goes directly from memory to memory (process_vm_readv)".into())
            }
            Some(why) => {
                log::line(Level::Info, || format!("bulk data does not go directly, but {}: {why}", now.name()))
            }
        }
    }
}
