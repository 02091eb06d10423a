//! The endpoint: the parts, and what wires them.
//!
//! The parts ([`Inbound`], [`Pulling`], [`Sends`], [`Rma`], [`Fences`]) are lent the [`Port`] with each
//! call, and see nothing of each other's insides. Each file here says which of them is called when, from the
//! application's calls, from packets, and from what another one has returned. They have a direction; from below:
//!
//! - `departure`: peers are lost.
//! - `starting`: operations wait for earlier ones to the same target, and start.
//! - `resuming`, `dispatch`: what waited goes on; what has come goes to whom it is for.
//! - `places`: more newcomers come than have places.
//! - `submit`, `progress`, `closing`, `inspect`, `looking`: what the application calls.

mod closing;
mod departure;
mod dispatch;
mod inspect;
mod looking;
mod places;
mod progress;
mod resuming;
mod sessions;
mod starting;
mod submit;

use crate::completion::Completion;
use crate::counter::Counter;
use crate::deferral::{Lent, Pressure, Windows};
use crate::egress::Egress;
use crate::fence::Fences;
use crate::inbound::Inbound;
use crate::link::Link;
use crate::looks::Looks;
use crate::memory::{Division, EndpointError, Memory, Others};
use crate::operation::{EndpointConfig, TryAgain};
use crate::port::Port;
use crate::presence::Presence;
use crate::pulls::Pulling;
use crate::rma::Rma;
use crate::sends::Sends;
use crate::turns::Turns;
use crate::wire::{LARGEST_EAGER_BYTES, MESSAGE_HEADER_BYTES};
use tidegate_flow::{ConfigError, FlowControl, PAYLOAD_BYTES, PeerId};

pub use inspect::{BacklogInspection, Share, WindowInspection};

/// One endpoint over a link.
///
/// Submit operations ([`send`](Self::send), [`receive`](Self::receive), …), call [`progress`](Self::progress) again and
/// again, at [`next_timeout`](Self::next_timeout) at the latest, take what [`poll_completion`](Self::poll_completion)
/// returns. Messages to one peer keep their order. Nothing blocks; nothing moves but inside these calls.
#[derive(Debug)]
pub struct Endpoint<L: Link> {
    port: Port<L>,
    inbound: Inbound<L>,
    pulls: Pulling<L>,
    sends: Sends<L>,
    rma: Rma<L>,
    fences: Fences<L::Buffer>,
    looks: Looks,
    turns: Turns,
    /// How many places the table of peers may have in the end: as many as the receive memory can pay for.
    places_most: u32,
    /// How many sends and remote operations may be outstanding for one more to be accepted.
    sends_most: usize,
    /// How many completions may wait to be taken for one more receive to be accepted.
    receives_most: usize,
}

impl<L: Link> Endpoint<L> {
    /// Largest payload that leaves in a single packet, without completion data or with 32 bits of it.
    pub const SINGLE_PACKET_BYTES: usize = PAYLOAD_BYTES - MESSAGE_HEADER_BYTES;
    /// Largest eager size, in bytes, that a configuration may have.
    pub const LARGEST_EAGER_BYTES: usize = LARGEST_EAGER_BYTES;

    /// What an unmatched message costs, payload apart, in bytes: its place in the list of a matching space, and, for a
    /// rendezvous message, the note to its sender that it has been pulled.
    pub const ENVELOPE_BYTES: usize = Memory::<L::Buffer>::ENVELOPE_BYTES;

    /// What the tables of peers take when all of so many peers talk, what is kept of dropped envelopes included. Each
    /// allocates the state of a peer at the first contact with it.
    const fn table_bytes(peers: u32) -> usize {
        Inbound::<L>::bytes_most(peers)
            + Rma::<L>::bytes_most(peers)
            + Egress::<L::Buffer>::bytes_most(peers)
            + Presence::bytes_most(peers)
            + Sends::<L>::bytes_most(peers)
    }

    /// What memory of ours is fixed besides mailbox and messages.
    fn others(config: &EndpointConfig) -> Others {
        let tables = Self::table_bytes(config.flow.at_opening());
        let each = Inbound::<L>::BYTES_OF_SENDER + Rma::<L>::BYTES_OF_SENDER;
        Others { tables, each, link: L::bookkeeping_bytes(&config.flow) }
    }

    /// The smallest legal `receive_memory` with this configuration, in bytes. With less than
    /// [`receive_memory_for_all`](Self::receive_memory_for_all) peers have to ask before they may send, and take turns.
    pub fn least_receive_memory(config: &EndpointConfig) -> Result<usize, ConfigError> {
        Memory::<L::Buffer>::least(config, Self::others(config))
    }

    /// The smallest `receive_memory` with which all peers may send at a time, in bytes: the fixed part, and for each
    /// peer an envelope and the answer to one request.
    pub fn receive_memory_for_all(config: &EndpointConfig) -> Result<usize, ConfigError> {
        Memory::<L::Buffer>::least_for_all(config, Self::others(config))
    }

    /// Why receive memory came under pressure, if it did since the last call; once a minute at most.
    pub fn poll_pressure(&mut self) -> Option<Pressure> {
        self.inbound.poll_pressure()
    }

    /// An endpoint with nothing outstanding. Panics if the eager size is larger than
    /// [`LARGEST_EAGER_BYTES`](Self::LARGEST_EAGER_BYTES).
    pub fn new(config: EndpointConfig, mut link: L) -> Result<Self, EndpointError> {
        assert!(config.eager_bytes <= LARGEST_EAGER_BYTES, "eager size beyond {LARGEST_EAGER_BYTES} bytes");
        let flow = FlowControl::new(&config.flow)?;
        let Division { fixed, limits, newcomers, sessions, spare, later } =
            Memory::<L::Buffer>::divide(&config, Self::others)?;
        link.tell_window(limits.told());
        let (peers, planned, open) = (config.flow.peers, config.flow.planned(), config.flow.at_opening());
        if newcomers.told() != limits.told() {
            link.tell_newcomers(PeerId(planned), newcomers.told());
        }
        if open < peers {
            link.open_places(open, open + later);
        }
        let bookkeeping = flow.bookkeeping_bytes() + Self::table_bytes(open);
        let counters = link.counters();
        counters.add(Counter::BookkeepingBytes, bookkeeping as u64);
        counters.add(Counter::ReceiveBound, config.receive_memory as u64);
        counters.add(Counter::ReceiveFixedBytes, fixed as u64);
        counters.raise(Counter::ReceivePeak, fixed as u64);
        counters.add(Counter::WindowBytes, u64::from(limits.window));
        counters.add(Counter::Sessions, sessions.unwrap_or(0).into());
        let growth_least = Self::ENVELOPE_BYTES;
        let turn_steps = config.packets_per_progress as u32;
        let lent = Lent { limits, newcomers: newcomers.window, planned, sessions, turn_steps, growth_least, spare };
        let windows = Windows::new(peers, lent);
        let bounce_buffers = link.bounce_buffers();
        let egress = Egress::new(flow, &config.flow);
        let operations = config.operations;
        Ok(Endpoint {
            port: Port::new(link, egress, config, (limits, newcomers)),
            places_most: open + later,
            inbound: Inbound::new(peers, windows),
            pulls: Pulling::new(bounce_buffers.bytes),
            sends: Sends::new(peers, bounce_buffers),
            rma: Rma::new(peers),
            fences: Fences::new(),
            looks: Looks::default(),
            turns: Turns::default(),
            sends_most: operations,
            receives_most: operations,
        })
    }

    /// The environment.
    pub fn link(&self) -> &L {
        &self.port.link
    }

    /// The environment.
    pub fn link_mut(&mut self) -> &mut L {
        &mut self.port.link
    }

    /// A number that changes whenever a place in the table of peers was given back: [`PeerId`]s that the caller has
    /// kept from before may now belong to others.
    #[inline]
    pub fn epoch(&self) -> u32 {
        self.port.presence.epoch()
    }

    /// Credits towards a peer, for display.
    pub fn credits(&self, peer: PeerId) -> u32 {
        self.port.egress.credits(peer)
    }

    /// For simulations that begin amid a program instead of at its start: flow control is as though so many packets had
    /// gone to `peer` whose credits have not come back, and so many had come from it whose credits have not been
    /// returned. Returns `false` if that cannot be: there are not so many credits, or some would have been returned.
    pub fn begin_mid_stream(&mut self, peer: PeerId, sent: u32, received: u32) -> bool {
        self.port.egress.attention.raise();
        self.port.egress.begin_mid_stream(peer, sent, received, self.port.now)
    }

    /// A copy of flow control's state, for displays and checkers of invariants. Allocates.
    pub fn inspect(&self) -> tidegate_flow::Inspection {
        self.port.egress.inspect()
    }

    /// Streams, reads and peers that may have pieces to send.
    fn pieces_left(&self) -> usize {
        self.sends.streaming().len() + self.rma.requests().turns()
    }

    /// The next operation that ended.
    #[inline]
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.port.ended.pop()
    }

    /// The operations that have ended and that [`poll_completion`](Self::poll_completion) has not returned, for whoever
    /// can do with a look at them.
    #[inline]
    pub fn completions(&self) -> &[Completion] {
        self.port.ended.left()
    }

    /// The first of them.
    #[inline(always)]
    pub fn first_completion(&self) -> Option<&Completion> {
        self.port.ended.first()
    }

    /// Takes the first of them, for a caller that has had its look and goes on until none is left, or with
    /// [`poll_completion`](Self::poll_completion).
    #[inline(always)]
    pub fn pass_completion(&mut self) {
        self.port.ended.pass();
    }

    /// Whether peers have departed whose places are not free yet: then take all completions before the next call of
    /// [`progress`](Self::progress), which frees none that a completion may name.
    #[inline]
    pub fn has_departed(&self) -> bool {
        self.port.presence.has_departed()
    }

    /// Whether operations of ours are under way that are not receives: messages that have not left, sends that have not
    /// been received, remote operations that have not been answered, and those that wait behind a fence.
    pub fn has_outstanding(&self) -> bool {
        self.operations_left() + self.fences.waiting() > 0
    }

    /// Whether something is left to do that only we can, or that others cannot do before we have answered them: all of
    /// [`has_outstanding`](Self::has_outstanding), what peers wait for and has not left, pieces, and messages to us
    /// that have come in part or are being pulled. What a link has not brought to its peers comes on top
    /// ([`has_unsent`](Self::has_unsent)).
    pub fn has_work_left(&self) -> bool {
        let own = self.operations_left() + self.pulls.waiting() + self.pieces_left() + self.pulls.under_way().len();
        own + self.fences.waiting() > 0 || self.inbound.is_under_way() || self.port.egress.has_any_waiting()
    }

    /// Whether that is possible, for who asks after every call: mostly no call since the last answer of
    /// [`leaves_work`](Self::leaves_work) has given us anything to do that may be left.
    #[inline(always)]
    pub fn may_leave_work(&self) -> bool {
        debug_assert!(
            self.port.egress.attention.has_begun() || !self.has_work_left(),
            "something is left, and nothing has said so"
        );
        self.port.egress.attention.has_begun()
    }

    /// The same as [`has_work_left`](Self::has_work_left), for who asks after calls that
    /// [may have left some](Self::may_leave_work).
    pub fn leaves_work(&mut self) -> bool {
        self.may_leave_work() && self.looks_for_work()
    }

    #[cold]
    #[inline(never)]
    fn looks_for_work(&mut self) -> bool {
        let has_work_left = self.has_work_left();
        if !has_work_left {
            self.port.egress.attention.end();
        }
        has_work_left
    }

    /// Whether the link copies something for us. [`progress`](Self::progress) helps it, and tells only of the end.
    pub fn has_transfers(&self) -> bool {
        self.port.transfers.running() > 0
    }

    /// Messages that have not left, sends that have not been received, remote operations that are not over, and what
    /// is over but for transfers that cannot be stopped.
    #[inline]
    fn operations_left(&self) -> usize {
        self.port.egress.waiting_messages()
            + self.sends.outstanding()
            + self.rma.outstanding()
            + self.port.transfers.held()
    }

    #[inline]
    fn check_room(&self) -> Result<(), TryAgain> {
        if !self.port.egress.attention.has_begun() {
            debug_assert!(self.operations_left() == 0 && self.sends.kept().has_room(), "something has begun");
            return if self.port.ended.len() < self.sends_most { Ok(()) } else { Err(TryAgain) };
        }
        let outstanding = self.operations_left() + self.port.ended.len();
        if outstanding < self.sends_most && self.sends.kept().has_room() { Ok(()) } else { Err(TryAgain) }
    }

    /// Whether one more operation that was accepted before may be started.
    fn has_room(&self) -> bool {
        self.operations_left() + self.port.ended.len() < self.port.config.operations && self.sends.kept().has_room()
    }

    /// Whether new sends and remote operations are refused, for want of a place where their errors could be reported.
    /// Those that were accepted go on.
    pub fn refuse_sends(&mut self, refuse: bool) {
        self.sends_most = if refuse { 0 } else { self.port.config.operations };
    }

    /// The same for receives.
    pub fn refuse_receives(&mut self, refuse: bool) {
        self.receives_most = if refuse { 0 } else { self.port.config.operations };
    }
}
