//! [`FabricLink`]: a [`Link`] to endpoints of other hosts: the protocol, a network, and the clock.

use super::contact::Contact;
use super::greeting::Greeting;
use super::network::Network;
use super::protocol::{Counts, Protocol};
use super::reads::Chunking;
use crate::clock;
use crate::memory::IoBuffer;
use crate::records::Records;
use crate::shm::{Address, LinkError, Maker};
use std::thread;
use std::time::Duration;
use tidegate_flow::{Config, Header, Instant, Packet, PeerId, Posting};
use tidegate_message::{
    Access, Arrival, Bounce, Buffer, Capabilities, Carry, Closing, Counters, Fill, Link, LinkEvent, Medium, PeerMemory,
    PeerNames, RemoteMemory, SenderWrites, Span, TransferId, TransferStatus, WriteError,
};

/// How long closing waits until what was sent has been acknowledged.
const FLUSH_MOST: Duration = Duration::from_secs(2);
/// Time between two looks while it waits.
const FLUSH_INTERVAL: Duration = Duration::from_micros(50);
/// While nobody is known on another host, one of so many polls looks at the clock,
const POLLS_PER_LOOK: u32 = 32;
/// and the network is asked for strangers when so much time has passed.
const LOOK_INTERVAL: Duration = Duration::from_micros(100);
/// While somebody is, and nothing has come of late, once in so many.
const POLLS_PER_EXCHANGE: u32 = 2;
/// Exchanges that bring nothing before nothing has come of late: an answer may be on its way.
const EXCHANGES_BUSY: u32 = 64;

/// See the module.
#[derive(Debug)]
pub struct FabricLink<N: Network> {
    protocol: Protocol,
    network: N,
    counters: Counters,
    polls: u32,
    /// When the network is asked for strangers, while nobody is known there.
    look_at: Instant,
    /// The network has been asked since the last look for events.
    is_polled: bool,
    /// Pieces of memory that peers may be reading.
    exposed: usize,
    /// Exchanges since the last that brought something.
    quiet: u32,
    /// Whoever closes has said goodbye, and waited.
    has_said_goodbye: bool,
    /// A forked child's copy says nothing when it is dropped: the parent goes on.
    maker: Maker,
    /// Departed peers that have no place any more and whose messages the endpoint still has.
    records: Records,
}

impl<N: Network> FabricLink<N> {
    /// A link over a network, for an endpoint that says this of itself. The contact's network is this one.
    pub fn new(mut own: Greeting, network: N, flow: &Config) -> FabricLink<N> {
        own.contact = own.contact.with_network(network.kind(), network.address());
        own.reads_memory = network.reads_memory();
        let protocol = Protocol::new(own, flow);
        FabricLink {
            protocol,
            network,
            counters: Counters::default(),
            polls: 0,
            look_at: Instant::default(),
            is_polled: false,
            exposed: 0,
            quiet: EXCHANGES_BUSY,
            has_said_goodbye: false,
            maker: Maker::here(),
            records: Records::default(),
        }
    }

    /// Cuts transfers so from now on.
    pub fn set_chunking(&mut self, chunking: Chunking) {
        self.protocol.set_chunking(chunking);
    }

    /// How this endpoint is reached.
    pub fn contact(&self) -> Contact {
        self.protocol.own().contact
    }

    /// How a peer is reached.
    pub fn contact_of(&self, peer: PeerId) -> Option<Contact> {
        self.protocol.contact(peer)
    }

    /// The name of a peer, for people.
    pub fn name_of(&self, peer: PeerId) -> Option<String> {
        self.protocol.name_of(peer)
    }

    /// The address of a departed peer whose messages the endpoint has by this number.
    pub fn address_of_record(&self, record: PeerId) -> Option<Address> {
        self.records.address(record)
    }

    /// The number by which the endpoint has messages of the departed peer of this address.
    pub fn record_of(&self, address: &Address) -> Option<PeerId> {
        self.records.number(address)
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

    /// The network, to look at.
    pub fn look_at_network(&self) -> &N {
        &self.network
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

    /// Exchanges, unless the last times have found nothing: a poll is a system call with most networks. While memory is
    /// being read, here or there, each poll moves a part of it, though it may find nothing.
    fn poll(&mut self) {
        self.polls = self.polls.wrapping_add(1);
        self.is_polled = true;
        if self.may_exchange(self.polls) && (self.protocol.has_peers() || self.is_time_to_look()) {
            self.quiet = if self.exchange() { 0 } else { self.quiet.saturating_add(1) };
        }
    }

    /// Whether the poll of this number exchanges; without peers, if it is also time to look.
    #[inline(always)]
    fn may_exchange(&self, poll: u32) -> bool {
        match self.protocol.has_peers() {
            true if self.exposed > 0 || self.protocol.is_reading() => true,
            true => self.quiet < EXCHANGES_BUSY || poll.is_multiple_of(POLLS_PER_EXCHANGE),
            false => poll.is_multiple_of(POLLS_PER_LOOK),
        }
    }

    fn is_time_to_look(&mut self) -> bool {
        let now = clock::now();
        let is_time = now >= self.look_at;
        if is_time {
            self.look_at = now + LOOK_INTERVAL;
        }
        is_time
    }
}

impl<N: Network> Medium for FabricLink<N> {
    type Buffer = IoBuffer;
}

impl<N: Network> PeerMemory for FabricLink<N> {
    fn capabilities(&mut self, peer: PeerId) -> Capabilities {
        let reaches_memory = self.protocol.reads_memory(peer);
        Capabilities { reaches_memory, ..Capabilities::default() }
    }

    /// 0, so that the peer does not try to read, where its network or ours cannot.
    fn expose(&mut self, peer: PeerId, memory: &IoBuffer, pieces: &mut [Span]) -> u64 {
        if !self.protocol.may_be_read_by(peer) {
            return 0;
        }
        let key = self.network.expose(memory, pieces).unwrap_or(0);
        self.exposed += usize::from(key != 0);
        key
    }

    fn hide(&mut self, _: PeerId, key: u64) {
        self.exposed = self.exposed.saturating_sub(1);
        self.network.hide(key);
    }

    fn read_peer(
        &mut self,
        id: TransferId,
        peer: PeerId,
        from: &[RemoteMemory],
        into: &mut IoBuffer,
        offset: usize,
    ) -> TransferStatus {
        let into = into.slice(offset, into.len() - offset);
        let status = self.protocol.begin_transfer(id, peer, from, into);
        self.protocol.begin_reads(&mut self.network, clock::now());
        status
    }

    /// No region of a peer [is found](PeerMemory::find_region), so nothing is written to it either.
    fn write_peer(&mut self, _: TransferId, _: PeerId, _: &[RemoteMemory], _: &IoBuffer, _: usize) -> TransferStatus {
        TransferStatus::Unreachable
    }

    fn cancel_transfer(&mut self, _: PeerId, id: TransferId) -> bool {
        self.protocol.cancel_transfer(id)
    }

    /// Remote reads and writes of regions go by message.
    fn find_region(&mut self, _: PeerId, _: u64, _: u64, _: u64, _: Access) -> Option<(RemoteMemory, Access)> {
        None
    }
}

impl<N: Network> Bounce for FabricLink<N> {}

impl<N: Network> Carry for FabricLink<N> {
    fn carries_most(&mut self, peer: PeerId) -> usize {
        self.protocol.carries_most(peer, self.network.longest_batch())
    }

    /// It leaves with the packets that follow, or by itself with the next exchange.
    fn carry(&mut self, peer: PeerId, message: &IoBuffer) -> Option<u32> {
        // They come in their order: no number is needed.
        self.protocol.carry(peer, message, self.network.longest_batch()).then_some(0)
    }

    fn has_carried(&mut self, peer: PeerId, _: u32, length: usize) -> bool {
        let next = self.protocol.carried_length(peer);
        if next.is_some_and(|next| next != length) {
            // Its packet has come, and says something else: it is over.
            self.protocol.take_carried(peer);
        }
        next == Some(length)
    }

    fn copy_carried(&mut self, peer: PeerId, _: u32, _: usize, into: &mut IoBuffer) {
        if let Some(message) = self.protocol.take_carried(peer) {
            let fits = message.len().min(into.len());
            into.write(0, &message[..fits]);
        }
    }

    fn take_carried(&mut self, peer: PeerId, _: u32, _: usize) -> Vec<u8> {
        self.protocol.take_carried(peer).unwrap_or_default()
    }

    fn set_window_left(&mut self, peer: PeerId, bytes: u32) {
        self.protocol.set_window_left(peer, bytes);
    }
}

impl<N: Network> Closing for FabricLink<N> {
    fn tell_closing(&mut self) {
        if !self.maker.is_ancestor() {
            self.protocol.tell_closing();
            self.exchange();
        }
    }

    fn has_unsent(&self) -> bool {
        self.protocol.has_unsent()
    }

    fn has_unsent_to(&self, peer: PeerId) -> bool {
        self.protocol.has_unsent_to(peer)
    }

    fn for_each_unsent(&self, look: &mut dyn FnMut(Header)) {
        self.protocol.unsent().for_each(look);
    }

    fn say_goodbye(&mut self) {
        if !self.maker.is_ancestor() {
            self.has_said_goodbye = true;
            self.protocol.say_goodbye();
        }
    }

    fn flush(&mut self) -> bool {
        if self.maker.is_ancestor() {
            return true;
        }
        self.exchange();
        // Nobody takes what still comes; the mailbox must not stay full.
        while self.protocol.retrieve().is_some() {}
        self.protocol.is_flushed()
    }
}

impl<N: Network> PeerNames for FabricLink<N> {
    fn lacks_places(&self) -> bool {
        self.protocol.is_full()
    }

    fn begin_record(&mut self, peer: PeerId, record: PeerId) {
        if let Some(contact) = self.contact_of(peer) {
            self.records.insert(record, contact.address);
        }
    }

    fn end_record(&mut self, record: PeerId) {
        self.records.remove(record);
    }

    fn identity(&self, peer: PeerId) -> Option<u64> {
        self.contact_of(peer).map(|contact| contact.address.tag())
    }
}

impl<N: Network> SenderWrites for FabricLink<N> {}

impl<N: Network> Link for FabricLink<N> {
    fn write(&mut self, to: PeerId, count: u32, mut fill: impl Fill) -> Result<u32, WriteError> {
        let now = clock::now();
        let written =
            self.protocol.write(to, count, now, |packets: &mut [Packet], placement| fill.fill(packets, placement))?;
        self.protocol.transmit(&mut self.network, now);
        if self.protocol.has_flights_most(to) {
            // Some of them have ended, and this may be the caller's last call for a while.
            self.exchange();
        }
        Ok(written)
    }

    fn retrieve(&mut self) -> Option<Arrival> {
        if !self.protocol.has_packets() {
            self.poll();
        }
        let arrival = self.protocol.retrieve();
        if self.protocol.has_invitations() {
            // Its slot is kept for a peer that waits, which learns it now: we may take long for what we have retrieved.
            self.protocol.transmit(&mut self.network, clock::now());
        }
        arrival
    }

    fn post(&mut self, posting: Posting) {
        self.protocol.post(posting);
    }

    fn poll_event(&mut self) -> Option<LinkEvent> {
        // Transfers end, and are told, though the caller retrieves nothing.
        if !self.is_polled && self.protocol.is_reading() {
            self.poll();
        }
        let event = self.protocol.poll_event();
        self.is_polled &= event.is_some();
        event
    }

    #[inline(always)]
    fn is_quiet(&mut self) -> bool {
        let polls = self.polls.wrapping_add(1);
        let is_quiet = !self.protocol.is_active() && !self.may_exchange(polls);
        if is_quiet {
            self.polls = polls;
        }
        is_quiet
    }

    fn tell_window(&mut self, bytes: u32) {
        self.protocol.set_window(bytes);
    }

    fn tell_newcomers(&mut self, first: PeerId, bytes: u32) {
        self.protocol.set_newcomers(first, bytes);
    }

    fn open_places(&mut self, open: u32, most: u32) {
        self.protocol.open_places(open, most);
    }

    fn window(&mut self, peer: PeerId) -> Option<u32> {
        self.protocol.window(peer)
    }

    fn must_greet(&mut self, peer: PeerId) -> bool {
        self.protocol.window(peer) == Some(0)
    }

    fn quarantine(&mut self, peer: PeerId) -> String {
        self.protocol.quarantine(peer)
    }

    fn release(&mut self, peer: PeerId) {
        let now = clock::now();
        self.protocol.release(peer, now);
        self.protocol.transmit(&mut self.network, now);
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// Says goodbye, unless that was done, and waits a while until all that was sent has been acknowledged.
impl<N: Network> Drop for FabricLink<N> {
    fn drop(&mut self) {
        if self.maker.is_ancestor() || self.has_said_goodbye {
            return;
        }
        let end = clock::now() + FLUSH_MOST;
        self.say_goodbye();
        while !self.flush() && clock::now() < end {
            thread::sleep(FLUSH_INTERVAL);
        }
    }
}
