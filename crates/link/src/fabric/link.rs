//! [`FabricLink`]: a [`Link`] to endpoints of other hosts: the protocol, a network, and the clock.

use super::contact::Contact;
use super::greeting::Greeting;
use super::network::Network;
use super::protocol::{Counts, Protocol};
use crate::clock;
use crate::memory::IoBuffer;
use crate::shm::{LinkError, Maker};
use std::thread;
use std::time::Duration;
use tidegate_flow::{Config, Instant, Packet, PeerId, Placement};
use tidegate_message::{
    Access, Arrival, Capabilities, Counters, Link, LinkEvent, RemoteMemory, TransferId, TransferStatus, WriteError,
};

/// How long closing waits until what was sent has been acknowledged.
const FLUSH_MOST: Duration = Duration::from_secs(2);
/// Time between two looks while it waits.
const FLUSH_INTERVAL: Duration = Duration::from_micros(50);
/// While nobody is known on another host, the network is asked for strangers once in so many polls.
const POLLS_PER_LOOK: u32 = 256;
/// While somebody is, and nothing has come of late, once in so many.
const POLLS_PER_EXCHANGE: u32 = 4;

/// See the module.
#[derive(Debug)]
pub struct FabricLink<N: Network> {
    protocol: Protocol,
    network: N,
    counters: Counters,
    polls: u32,
    /// Something has come with the last exchange.
    is_busy: bool,
    /// A forked child's copy says nothing when it is dropped: the parent goes on.
    maker: Maker,
}

impl<N: Network> FabricLink<N> {
    /// A link over a network, for an endpoint that says this of itself. The contact's lower address is the network's.
    pub fn new(mut own: Greeting, network: N, flow: &Config) -> FabricLink<N> {
        own.contact.lower = network.address();
        let protocol = Protocol::new(own, flow);
        FabricLink { protocol, network, counters: Counters::default(), polls: 0, is_busy: false, maker: Maker::here() }
    }

    /// How this endpoint is reached.
    pub fn contact(&self) -> Contact {
        self.protocol.own().contact
    }

    /// How a peer is reached.
    pub fn contact_of(&self, peer: PeerId) -> Option<Contact> {
        self.protocol.contact(peer)
    }

    /// The peer at a contact. Does not wait until it answers.
    pub fn peer(&mut self, contact: &Contact) -> Result<PeerId, LinkError> {
        let peer = self.protocol.peer(contact)?;
        self.protocol.transmit(&mut self.network, clock::now());
        Ok(peer)
    }

    /// What has happened so far.
    pub fn counts(&self) -> Counts {
        self.protocol.counts()
    }

    /// The network.
    pub fn network(&mut self) -> &mut N {
        &mut self.network
    }

    /// Asks the network for what has come, though nobody may be known there.
    pub fn exchange(&mut self) -> bool {
        self.protocol.exchange(&mut self.network, clock::now())
    }

    /// When to poll at the latest, though nothing has come.
    pub fn next_timeout(&self, now: Instant) -> Option<Instant> {
        self.protocol.next_timeout(now)
    }

    /// Whether something waits for [`retrieve`](Link::retrieve).
    pub fn is_ready(&self) -> bool {
        self.protocol.has_packets()
    }

    /// An idle process looks whether something has come. Returns whether it has.
    pub fn look(&mut self) -> bool {
        self.poll();
        self.protocol.has_packets()
    }

    /// Exchanges, unless the last times have found nothing: a poll is a system call with most networks.
    fn poll(&mut self) {
        self.polls = self.polls.wrapping_add(1);
        let interval = if self.protocol.has_peers() { POLLS_PER_EXCHANGE } else { POLLS_PER_LOOK };
        if self.is_busy || self.polls.is_multiple_of(interval) {
            self.is_busy = self.exchange();
        }
    }
}

impl<N: Network> Link for FabricLink<N> {
    type Buffer = IoBuffer;
    type Lent = Packet;

    fn write(&mut self, to: PeerId, count: u32, fill: impl FnMut(&mut [Packet], Placement)) -> Result<u32, WriteError> {
        let written = self.protocol.write(to, count, fill)?;
        self.protocol.transmit(&mut self.network, clock::now());
        Ok(written)
    }

    fn retrieve(&mut self) -> Option<Arrival<Packet>> {
        if !self.protocol.has_packets() {
            self.poll();
        }
        self.protocol.retrieve()
    }

    fn poll_event(&mut self) -> Option<LinkEvent> {
        self.protocol.poll_event()
    }

    /// Long messages go packet by packet.
    fn capabilities(&mut self, _: PeerId) -> Capabilities {
        Capabilities::default()
    }

    fn read_peer(
        &mut self,
        _: TransferId,
        _: PeerId,
        _: &[RemoteMemory],
        _: &mut IoBuffer,
        _: usize,
    ) -> TransferStatus {
        TransferStatus::Unreachable
    }

    fn write_peer(&mut self, _: TransferId, _: PeerId, _: &[RemoteMemory], _: &IoBuffer, _: usize) -> TransferStatus {
        TransferStatus::Unreachable
    }

    fn cancel_transfer(&mut self, _: PeerId, _: TransferId) -> bool {
        true
    }

    fn find_region(&mut self, _: PeerId, _: u64, _: u64, _: u64, _: Access) -> Option<RemoteMemory> {
        None
    }

    fn tell_window(&mut self, bytes: u32) {
        self.protocol.set_window(bytes);
    }

    fn window(&mut self, peer: PeerId) -> Option<u32> {
        self.protocol.window(peer)
    }

    fn tell_closing(&mut self) {
        if !self.maker.is_ancestor() {
            self.protocol.tell_closing();
            self.exchange();
        }
    }

    fn quarantine(&mut self, peer: PeerId) -> String {
        self.protocol.quarantine(peer)
    }

    fn release(&mut self, peer: PeerId) {
        if let Some(route) = self.protocol.release(peer, clock::now()) {
            self.network.forget(route);
        }
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// Says goodbye, and waits a while until all that was sent has been acknowledged.
impl<N: Network> Drop for FabricLink<N> {
    fn drop(&mut self) {
        if self.maker.is_ancestor() {
            return;
        }
        let end = clock::now() + FLUSH_MOST;
        self.protocol.say_goodbye();
        loop {
            self.exchange();
            // Nobody takes what still comes; the mailbox must not stay full.
            while self.protocol.retrieve().is_some() {}
            if self.protocol.is_flushed() || clock::now() >= end {
                return;
            }
            thread::sleep(FLUSH_INTERVAL);
        }
    }
}
