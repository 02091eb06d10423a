//! The endpoint: the one submit path of every operation, and progress.

use crate::assembly::Assembly;
use crate::bulk::{Bulk, Pieces};
use crate::completion::{Completion, Failure};
use crate::counter::Counter;
use crate::deferral::{Deferral, Pressure, Rooms, Windows};
use crate::egress::Egress;
use crate::envelope::Pattern;
use crate::link::{Buffer, Link};
use crate::matching::{MatchQueue, Matching};
use crate::memory::{Division, EndpointError, Memory, Others};
use crate::operation::{
    Context, EndpointConfig, MatchFlags, MultiReceive, Queue, Receive, Send, Source, Space, Target, TryAgain,
};
use crate::presence::Presence;
use crate::rma::Rma;
use crate::timing::Timing;
use crate::wire::{LARGEST_EAGER_BYTES, MESSAGE_HEADER_BYTES};
use std::collections::VecDeque;
use tidegate_flow::{ConfigError, FlowControl, Instant, PAYLOAD_BYTES, Packet, PacketKind, PeerId};

/// One endpoint over a link.
///
/// Submit operations ([`send`](Self::send), [`receive`](Self::receive), …), call [`progress`](Self::progress) again and
/// again, at [`next_timeout`](Self::next_timeout) at the latest, take what [`poll_completion`](Self::poll_completion) returns.
/// Messages to one peer keep their order. Nothing blocks; nothing moves but inside these calls.
#[derive(Debug)]
pub struct Endpoint<L: Link> {
    pub(crate) link: L,
    pub(crate) egress: Egress<L::Buffer>,
    pub(crate) config: EndpointConfig,
    pub(crate) assembly: Assembly<L::Buffer>,
    pub(crate) matching: Matching<L::Buffer>,
    pub(crate) bulk: Bulk<L::Buffer>,
    pub(crate) presence: Presence,
    pub(crate) rma: Rma<L::Buffer>,
    pub(crate) completions: VecDeque<Completion>,
    pub(crate) deferral: Deferral,
    pub(crate) timing: Timing,
}

impl<L: Link> Endpoint<L> {
    /// Largest payload that leaves in a single packet, without completion data or with 32 bits of it.
    pub const SINGLE_PACKET_BYTES: usize = PAYLOAD_BYTES - MESSAGE_HEADER_BYTES;
    /// Largest eager size that a configuration may ask for.
    pub const LARGEST_EAGER_BYTES: usize = LARGEST_EAGER_BYTES;

    /// What an unmatched message costs, payload apart, in bytes: its place in the list of a matching space, and in the queue to its
    /// sender, the note that an announced one has been pulled.
    pub const ENVELOPE_BYTES: usize = Memory::<L::Buffer>::ENVELOPE_BYTES;

    /// What the tables of peers take per peer, what is kept of dropped envelopes included.
    const PEER_BYTES: usize = Assembly::<L::Buffer>::PEER_BYTES
        + Rma::<L::Buffer>::PEER_BYTES
        + Egress::<L::Buffer>::PEER_BYTES
        + Rooms::PEER_BYTES
        + Windows::PEER_BYTES
        + Presence::PEER_BYTES
        + Bulk::<L::Buffer>::PEER_BYTES;

    /// What memory of ours is fixed besides mailbox and messages.
    fn others(config: &EndpointConfig) -> Others {
        Others { peer: Self::PEER_BYTES, link: L::bookkeeping_bytes(&config.flow) }
    }

    /// The smallest legal `receive_memory` with this configuration, in bytes: the fixed part, and for each peer an envelope and the
    /// answer to one request.
    pub fn least_receive_memory(config: &EndpointConfig) -> Result<usize, ConfigError> {
        Memory::<L::Buffer>::least(config, Self::others(config))
    }

    /// Why receive memory came under pressure, if it did since the last call; once a minute at most.
    pub fn poll_pressure(&mut self) -> Option<Pressure> {
        self.deferral.windows.poll_pressure()
    }

    /// An endpoint with nothing outstanding. Panics if the eager size is larger than
    /// [`LARGEST_EAGER_BYTES`](Self::LARGEST_EAGER_BYTES).
    pub fn new(config: EndpointConfig, mut link: L) -> Result<Self, EndpointError> {
        assert!(config.eager_bytes <= LARGEST_EAGER_BYTES, "eager size beyond {LARGEST_EAGER_BYTES} bytes");
        let flow = FlowControl::new(&config.flow)?;
        let Division { fixed, limits, spare } = Memory::<L::Buffer>::divide(&config, &flow, Self::others(&config))?;
        link.tell_window(limits.window);
        let peers = config.flow.peers;
        let bookkeeping = flow.bookkeeping_bytes() + peers as usize * Self::PEER_BYTES;
        let counters = link.counters();
        counters.add(Counter::BookkeepingBytes, bookkeeping as u64);
        counters.add(Counter::ReceiveBound, config.receive_memory as u64);
        counters.add(Counter::ReceiveFixedBytes, fixed as u64);
        counters.raise(Counter::ReceivePeak, fixed as u64);
        counters.add(Counter::WindowBytes, u64::from(limits.window));
        let windows = Windows::new(config.flow.peers, limits, Self::ENVELOPE_BYTES, spare);
        let stages = link.stages();
        Ok(Endpoint {
            link,
            egress: Egress::new(flow, &config.flow),
            config,
            assembly: Assembly::new(peers),
            matching: Matching::new(peers as usize),
            bulk: Bulk::new(peers as usize, stages),
            presence: Presence::new(peers),
            rma: Rma::new(peers),
            completions: VecDeque::new(),
            deferral: Deferral { windows, rooms: Rooms::new(peers) },
            timing: Timing::default(),
        })
    }

    /// The environment.
    pub fn link(&self) -> &L {
        &self.link
    }

    /// The environment.
    pub fn link_mut(&mut self) -> &mut L {
        &mut self.link
    }

    /// Changes whenever a place in the table of peers was given back: [`PeerId`]s that the caller remembers from before may
    /// now belong to others.
    #[inline]
    pub fn epoch(&self) -> u32 {
        self.presence.epoch()
    }

    /// Credits towards a peer, for display.
    pub fn credits(&self, peer: PeerId) -> u32 {
        self.egress.credits(peer)
    }

    /// A copy of flow control's state, for displays and checkers of invariants. Allocates.
    pub fn inspect(&self) -> tidegate_flow::Inspection {
        self.egress.inspect()
    }

    /// Sends a message: eagerly up to the eager size, else by rendezvous.
    #[inline]
    pub fn send(&mut self, send: Send<L::Buffer>) -> Result<(), TryAgain> {
        self.check_room()?;
        let Target::Peer(to) = send.to else {
            self.send_to_myself(send);
            return Ok(());
        };
        let length = send.buffer.len();
        self.count(Counter::BytesSent, length as u64);
        if !self.deferral.rooms.is_met(to) {
            self.meet(to);
        }
        let limits = self.deferral.rooms.limits(to);
        let most = if send.inject { limits.inject } else { limits.eager };
        if length > most as usize || send.delivery {
            self.announce(to, send);
            return Ok(());
        }
        match self.deferral.rooms.take(to, Memory::<L::Buffer>::eager_cost(length)) {
            true => self.send_eagerly(to, send),
            false => self.defer_eager(to, send),
        }
        Ok(())
    }

    /// Posts a receive, or peeks, claims, discards. Sends that wait never refuse it: they may wait for this very receive. A peek is
    /// refused while 64 (`PEEKS_MOST`) wait for answers.
    #[inline]
    pub fn receive(&mut self, receive: Receive<L::Buffer>) -> Result<(), TryAgain> {
        if self.completions.len() >= self.config.operations {
            return Err(TryAgain);
        }
        let (queue, pattern) = match receive.space {
            Space::Tagged { tag, ignore } => (Queue::Tagged, Pattern { from: receive.from, tag, ignore }),
            Space::Untagged => (Queue::Untagged, Pattern { from: receive.from, tag: 0, ignore: u64::MAX }),
        };
        if receive.flags != MatchFlags::default() {
            if receive.flags.peek && self.deferral.windows.inquiries.is_full() {
                return Err(TryAgain);
            }
            self.receive_by_flags(receive, &pattern, queue);
            return Ok(());
        }
        if let Some(multi) = receive.multi {
            self.receive_many(receive, pattern, queue, multi);
            return Ok(());
        }
        if let Some(unexpected) = self.matching.of(queue).take_unexpected(&pattern) {
            let active = MatchQueue::activate_now(receive.buffer, receive.context, receive.report);
            self.deliver_stored(active, unexpected, queue);
        } else if let Some(peer) = self.dead_source(receive.from) {
            let failure = Failure::PeerLost { peer };
            self.complete_unmatched(receive.context, receive.space, false, failure);
        } else {
            let number = self.matching.next_number();
            self.matching.of(queue).post(number, pattern, receive.buffer, receive.context, receive.report);
            self.seek(receive.from);
        }
        Ok(())
    }

    /// Cancels the receive of this context, if it has not matched: it completes with [`Failure::Canceled`]. Returns whether.
    pub fn cancel(&mut self, context: Context) -> bool {
        self.cancel_named(context.0, |context| context.0)
    }

    /// Cancels the oldest receive that the application calls `name`, if one has not matched. `name_of` says what it calls the
    /// receive of a context: always the same, as long as the receive is there.
    pub fn cancel_named(&mut self, name: usize, name_of: impl Fn(Context) -> usize) -> bool {
        let inquiry = self.deferral.windows.inquiries.find_named(name, &name_of);
        if let Some((queue, canceled)) = self.matching.take_back_named(name, inquiry, &name_of) {
            self.complete_unmatched(canceled.context, queue.space(0), canceled.released, Failure::Canceled);
            return true;
        }
        let Some(inquiry) = inquiry.and_then(|number| self.deferral.windows.inquiries.take(number)) else {
            return false;
        };
        self.complete_unmatched(inquiry.context, inquiry.queue.space(0), false, Failure::Canceled);
        true
    }

    /// Retrieves packets, moves bulk data, sends what waited, does what is due: a bounded amount of each. Returns whether anything
    /// happened. `now` is the present while [`is_timed`](Self::is_timed).
    #[inline]
    pub fn progress(&mut self, now: Instant) -> bool {
        if self.presence.has_departed() {
            self.release_departed();
        }
        let was_due = self.handle_timeout(now);
        let mut retrieved = 0;
        while retrieved < self.config.packets_per_progress && self.completions.len() < self.config.operations {
            let Some(packet) = self.link.retrieve() else { break };
            self.handle_packet(&packet);
            retrieved += 1;
        }
        if retrieved > 0 {
            self.count(Counter::PacketsReceived, retrieved as u64);
        }
        let worked = self.work();
        retrieved > 0 || worked || was_due
    }

    /// The same for who has no room for what is retrieved: what waits for no packet goes on.
    pub fn progress_without_retrieving(&mut self, now: Instant) -> bool {
        let was_due = self.handle_timeout(now);
        self.work() || was_due
    }

    /// Everything that is done without a packet.
    #[inline]
    fn work(&mut self) -> bool {
        // One test for everything that is rarely there.
        let backlog = self.egress.to_retry() + self.bulk.gate.waiting() + self.pieces_left();
        let worked = backlog + self.bulk.transfers() > 0 && self.progress_backlog();
        while let Some(peer) = self.link.poll_closing() {
            self.presence.handle_closing(peer);
        }
        let mut departed = false;
        while let Some(departure) = self.link.poll_departure() {
            self.handle_departure(departure);
            departed = true;
        }
        // After the departures: nobody wakes us for the peeks that only waited for one who is gone.
        if !self.deferral.windows.inquiries.is_empty() {
            self.review_inquiries();
        }
        worked | departed
    }

    #[cold]
    fn progress_backlog(&mut self) -> bool {
        let before = self.egress.waiting() + self.bulk.gate.waiting() + self.pieces_left();
        self.retry_full();
        let streamed = self.send_pieces();
        let fetched = self.continue_pulls();
        let mut ended = false;
        while let Some((id, status)) = self.link.poll_transfer() {
            self.end_transfer(id, status);
            ended = true;
        }
        let after = self.egress.waiting() + self.bulk.gate.waiting() + self.pieces_left();
        streamed || fetched || ended || before != after
    }

    /// Whoever has pieces for a peer waits until nothing else does. So that none of the three kinds of them is always late, they begin
    /// in turn.
    fn send_pieces(&mut self) -> bool {
        let mut moved = false;
        for pieces in self.bulk.gate.order() {
            moved |= match pieces {
                Pieces::Streams => self.pump_streams(),
                Pieces::Reads => self.send_reads(),
                Pieces::Requests => self.send_requests(),
            };
        }
        if moved {
            self.bulk.gate.end_turn();
        }
        moved
    }

    /// Streams, reads and peers that may have pieces to send.
    pub(crate) fn pieces_left(&self) -> usize {
        self.bulk.streams.len() + self.rma.requests.turns()
    }

    #[inline]
    fn handle_packet(&mut self, packet: &Packet) {
        let from = packet.header.source();
        if from.0 >= self.config.flow.peers {
            return self.count(Counter::Violations, 1);
        }
        let gained = match self.egress.handle_retrieved(from, packet) {
            Ok(gained) => gained,
            Err(_) => return self.count(Counter::Violations, 1),
        };
        if packet.header.kind() == PacketKind::Data {
            self.handle_data(from, packet);
        }
        self.egress.flush_control(&mut self.link);
        self.quarantine_overdrawn();
        if gained > 0 && !self.egress.is_idle(from) {
            self.resume(from);
        }
    }

    /// The next operation that ended.
    #[inline]
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    /// Whether peers have departed whose places are not free yet: then take all completions before the next call of
    /// [`progress`](Self::progress), which frees none that a completion may name.
    #[inline]
    pub fn has_departed(&self) -> bool {
        self.presence.has_departed()
    }

    /// Whether operations of ours are under way that are not receives: messages that have not left, sends that have not been received,
    /// remote operations that have not been answered.
    pub fn has_outstanding(&self) -> bool {
        self.egress.waiting_messages() + self.bulk.sends() + self.rma.operations.len() > 0
    }

    #[inline]
    pub(crate) fn check_room(&self) -> Result<(), TryAgain> {
        let outstanding =
            self.egress.waiting_messages() + self.bulk.sends() + self.rma.operations.len() + self.completions.len();
        if outstanding < self.config.operations && self.bulk.has_room() { Ok(()) } else { Err(TryAgain) }
    }

    #[inline]
    pub(crate) fn count(&self, counter: Counter, amount: u64) {
        self.link.counters().add(counter, amount);
    }

    /// A receive that ends without a message.
    pub(crate) fn complete_unmatched(&mut self, context: Context, space: Space, released: bool, failure: Failure) {
        self.completions.push_back(Completion::unmatched(context, space, released, failure));
    }

    /// Posts a multi-receive buffer and fills it with what is stored already.
    fn receive_many(&mut self, receive: Receive<L::Buffer>, pattern: Pattern, queue: Queue, multi: MultiReceive) {
        let number = self.matching.next_number();
        let matching = self.matching.of(queue);
        let at = matching.post_multi(number, pattern, receive.buffer, receive.context, receive.report, multi);
        while let Some((active, unexpected)) = self.matching.of(queue).accept_stored(at) {
            self.deliver_stored(active, unexpected, queue);
        }
        if let Some(peer) = self.dead_source(receive.from)
            && let Some(left) = self.matching.of(queue).take_back(at)
        {
            self.complete_unmatched(left.context, receive.space, left.released, Failure::PeerLost { peer });
        }
        self.seek(receive.from);
    }

    /// The name of the one peer that a receive accepts, if that peer died.
    fn dead_source(&self, from: Source) -> Option<String> {
        let Source::From(Target::Peer(peer)) = from else { return None };
        let lost = self.presence.lost(peer)?;
        (!lost.orderly).then(|| lost.name.clone())
    }
}
