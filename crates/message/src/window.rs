//! Receive memory with a hard bound.
//!
//! An endpoint holds memory on behalf of its senders: its mailbox and book-keeping, which are fixed by configuration, and messages
//! that no receive waits for, which are not. *The simple idea*, to store them all, ends with the process being killed; to stop
//! reading when memory runs out ends with a hang, because the message that the program waits for may be behind them. So what
//! memory has no room for stays with its sender, who has it anyway, and the receiver asks when it needs it.
//!
//! Every receiver sets aside a *window* for each of its senders. Half of what the fixed part leaves is divided equally, and that
//! base it tells them through the link; the other half is *spare*, and goes to those who need it: the window of a sender whose
//! knocks are forgotten doubles, as far as half of the spare memory reaches, and shrinks back as its messages are matched, once
//! nothing of it is forgotten any more. A message that finds no receive costs an envelope, plus its payload if that travels along. The sender pays when it sends (`room`); the
//! receiver gives back (`Room`) what it matched (`freed`), a quarter of a window at a time. What a sender sent beyond its window
//! is dropped as a violation, so the bound holds whatever peers do, under every scheme. What a peer makes us keep besides,
//! because it does not take what we say, is bounded as well and belongs to the fixed part ([`backlog`](crate::backlog), [`request`](crate::request)).
//!
//! A send that finds no room is *held* ([`held`](crate::held)): it stays in its program's buffer, in order, and so do all later
//! ones to that peer, until none is held. Rules, per pair of sender and receiver:
//!
//! | | rule | why |
//! |---|---|---|
//! | W1 | stored + freed + room + under way = window; all windows + spare = receive memory − fixed part | the bound |
//! | W2 | no message may cost more than a quarter of a base window (or one envelope): a larger one is announced, spans that do not fit are left out | the first held send can go as soon as that much is free |
//! | W3 | held sends leave in order, and none past one that is in doubt (knocked, not settled) or offered | what is stored is older than what is held: non-overtaking |
//! | W4 | each held send *knocks*: it is matched with a receive that is posted, or *forgotten*: the receiver keeps a count only | a receive posted before it gets it though there is no room |
//! | W5 | a receive that could be met by a forgotten send, and finds the sender's window nearly used up, *asks* ([`ask`](crate::ask)), one question per pair at a time, in order of posting; with room left, the sender goes on by itself | a receive posted after it gets it; draining is a stream, not a question per message |
//! | W6 | while a receive's question is open a knock that it accepts is forgotten | the answer may be an older send |
//! | W7 | a question is answered when no knock is in doubt, with the first forgotten send that fits; it goes to the first receive, among those asked for, that accepts it, or back | both sides agree on what is forgotten |

use crate::account::ANSWER_MOST;
use crate::counter::Counter;
use crate::egress::{BOUNCED_MOST, Outgoing, WaitingNote, refused_most};
use crate::endpoint::Endpoint;
use crate::heap::{BLOCK_MOST, block, queue_begun};
use crate::held::BATCH_MOST;
use crate::inbound::{LARGEST_CONTROL_BYTES, Malformed};
use crate::link::Link;
use crate::matching::Matching;
use crate::operation::{EndpointConfig, Target};
use crate::request::UnfinishedRead;
use crate::wire::{LARGEST_EAGER_BYTES, Room, SPAN_BYTES};
use std::fmt;
use tidegate_flow::{Config as FlowConfig, ConfigError, Control, FlowControl, PACKET_BYTES, PeerId};

/// What a window allows. All in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// What a receiver sets aside for one sender; 0: not known yet.
    pub(crate) window: u32,
    /// Most that one message may cost (W2).
    pub(crate) largest: u32,
    /// Longest message that is sent eagerly.
    pub(crate) eager: u32,
    /// The same for one whose buffer may change at once.
    pub(crate) inject: u32,
    /// What requests may cost that are not answered (see [`request`](crate::request)).
    pub(crate) answers: u32,
}

/// Why an endpoint cannot be as configured. `Display` names the parameter to change and what it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointError {
    /// Flow control refuses.
    Flow(ConfigError),
    /// The bound on receive memory has no room for what is fixed and one envelope per peer.
    ReceiveMemoryTooSmall {
        /// `EndpointConfig::receive_memory`, in bytes.
        bytes: usize,
        /// The smallest legal value, in bytes.
        least: usize,
        /// Peers that the memory is for.
        peers: u32,
    },
}

impl From<ConfigError> for EndpointError {
    fn from(error: ConfigError) -> Self {
        EndpointError::Flow(error)
    }
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EndpointError::Flow(error) => error.fmt(f),
            EndpointError::ReceiveMemoryTooSmall { bytes, least, peers } => write!(
                f,
                "FI_TIDEGATE_RX_MEMORY={bytes} is too small: with {peers} peers (FI_TIDEGATE_PEERS) at least {least} bytes are \
                 needed; fewer mailbox slots per peer (FI_TIDEGATE_SLOTS) need less"
            ),
        }
    }
}

impl std::error::Error for EndpointError {}

/// How the receive memory is divided.
pub(crate) struct Division {
    /// The fixed part, in bytes.
    pub(crate) fixed: usize,
    /// What a base window allows.
    pub(crate) limits: Limits,
    /// Bytes that belong to no window yet.
    pub(crate) spare: usize,
}

/// What part of its window a peer's unanswered requests may cost besides.
const ANSWERS_SHARE: u32 = 8;
/// Most that they may cost, in bytes: some 680 requests of eight bytes, ten times as many as a mailbox has slots for each peer by
/// default. More in flight measure no faster, since an origin has the next ones ready when the first answers come.
const ANSWERS_MOST: u32 = 1 << 16;

/// Windows beyond 1 GiB change nothing any more, and sums of two fit 32 bits.
const WINDOW_MOST: usize = 1 << 30;

impl<L: Link> Endpoint<L> {
    /// What an unmatched message costs, payload apart, in bytes: its place in the list of a matching space, and in the queue to its
    /// sender, the note that an announced one has been fetched. A receiver that fetches faster than its sender runs has so many notes
    /// waiting as it had messages stored; room that it gives back waits behind them.
    pub const ENVELOPE_BYTES: usize = Matching::<L::Buffer>::ENVELOPE_BYTES + WaitingNote::BYTES;

    /// Notes to one peer that its window and its requests do not pay for (see [`backlog`](crate::backlog)): about a batch of knocks and
    /// that it is settled, receipts for stages, and one or two each of what is said once at a time.
    const NOTES_BESIDES: usize = BATCH_MOST + 1 + BOUNCED_MOST + 8;
    /// What these may take. They are more than the places with which a queue begins, so that the rule for its growth holds from the start.
    const NOTE_MEMORY: usize = Self::NOTES_BESIDES * WaitingNote::BYTES + BLOCK_MOST;

    /// What the queue of messages may take for the one with a payload that is an answer: a piece of a read, or an offer.
    pub(crate) const ANSWER_MESSAGE_MEMORY: usize = queue_begun::<Outgoing<L::Buffer>>() + block(LARGEST_CONTROL_BYTES);

    /// What control packets may take that the full mailbox of a peer has refused, and one too many: their queue doubles as it grows.
    pub(crate) fn control_memory(config: &FlowConfig) -> usize {
        2 * (refused_most(config) as usize + 1) * size_of::<Control>()
    }

    /// What notes with results may take that answer a peer's requests.
    fn result_memory(limits: Limits) -> usize {
        (limits.answers as usize).max(ANSWER_MOST)
    }

    /// What a peer's reads may take that are not through.
    pub(crate) fn read_memory(limits: Limits) -> usize {
        (limits.answers as usize).max(queue_begun::<UnfinishedRead>())
    }

    /// What answers to a peer's requests may take.
    fn answer_memory(limits: Limits) -> usize {
        Self::result_memory(limits) + Self::read_memory(limits)
    }

    /// The most that notes to a peer with such a window may take.
    pub(crate) fn note_bytes_most(&self, window: u32) -> usize {
        let of_window = window as usize / Self::ENVELOPE_BYTES * WaitingNote::BYTES;
        of_window + Self::result_memory(self.limits) + Self::NOTE_MEMORY
    }

    /// What a window of so many bytes allows.
    fn limits_of(window: u32, eager_bytes: usize) -> Limits {
        let largest = (window as usize / 4).max(Self::ENVELOPE_BYTES);
        let payload = (largest - Self::ENVELOPE_BYTES).saturating_sub(block(1)).min(LARGEST_EAGER_BYTES);
        let (eager, inject) = (eager_bytes.min(payload) as u32, payload as u32);
        let answers = (window / ANSWERS_SHARE).min(ANSWERS_MOST);
        Limits { window, largest: largest as u32, eager, inject, answers }
    }

    /// What an unmatched message costs whose payload of so many bytes travels along.
    #[inline]
    pub(crate) fn eager_cost(bytes: usize) -> u32 {
        (Self::ENVELOPE_BYTES + block(bytes)) as u32
    }

    /// What an unmatched announcement costs that names so many pieces of memory.
    pub(crate) fn announce_cost(spans: usize) -> u32 {
        (Self::ENVELOPE_BYTES + block(spans * SPAN_BYTES)) as u32
    }

    /// Learns what a peer sets aside for us, at the first message to it.
    #[cold]
    pub(crate) fn meet(&mut self, peer: PeerId) {
        // One that does not say will do as we do; so will one that cannot be reached: the message will tell.
        let window = self.link.window(peer).unwrap_or(self.limits.window);
        let towards = Self::limits_of(window.max(Self::ENVELOPE_BYTES as u32), self.config.eager_bytes);
        let state = &mut self.peers[peer.0 as usize];
        (state.towards, state.room, state.is_stranger) = (towards, towards.window, window == 0);
        if window == 0 {
            self.egress.note_full(&self.link, peer);
        }
    }

    /// Asks again what a peer sets aside that could not be asked at the first message to it.
    #[cold]
    pub(crate) fn meet_again(&mut self, peer: PeerId) {
        let supposed = self.peers[peer.0 as usize].towards.window;
        if supposed == 0 {
            // It has been lost since.
            self.peers[peer.0 as usize].is_stranger = false;
            return;
        }
        let window = self.link.window(peer).unwrap_or(self.limits.window);
        if window == 0 {
            return self.egress.note_full(&self.link, peer);
        }
        let towards = Self::limits_of(window.max(Self::ENVELOPE_BYTES as u32), self.config.eager_bytes);
        let state = &mut self.peers[peer.0 as usize];
        (state.towards, state.is_stranger) = (towards, false);
        state.room += towards.window - supposed;
        self.release_held(peer);
    }

    /// The part of the receive memory that configuration alone fixes, in bytes: mailbox, book-keeping, table of peers, and for each
    /// peer what it takes to put a message of the protocol together, and to keep what it makes us say until it listens.
    fn fixed_memory(config: &EndpointConfig, flow: &FlowControl) -> Result<usize, ConfigError> {
        let peers = config.flow.peers as usize;
        let mailbox = config.flow.regions()?.mailbox as usize * PACKET_BYTES;
        let said = Self::NOTE_MEMORY + Self::ANSWER_MESSAGE_MEMORY + Self::control_memory(&config.flow);
        let per_peer = Self::PEER_BYTES + block(LARGEST_CONTROL_BYTES) + said;
        let bookkeeping = flow.bookkeeping_bytes() + L::bookkeeping_bytes(&config.flow);
        Ok(mailbox + bookkeeping + peers * per_peer + Matching::<L::Buffer>::bytes_begun(peers))
    }

    /// The smallest legal `receive_memory` with this configuration, in bytes: the fixed part, and for each peer an envelope and the
    /// answer to one request.
    pub fn least_receive_memory(config: &EndpointConfig) -> Result<usize, ConfigError> {
        let fixed = Self::fixed_memory(config, &FlowControl::new(&config.flow)?)?;
        Ok(Self::with_the_least_each(config, fixed))
    }

    fn with_the_least_each(config: &EndpointConfig, fixed: usize) -> usize {
        fixed + config.flow.peers as usize * (Self::ENVELOPE_BYTES + Self::answer_memory(Limits::default()))
    }

    /// Divides the receive memory.
    pub(crate) fn divide_memory(config: &EndpointConfig, flow: &FlowControl) -> Result<Division, EndpointError> {
        let fixed = Self::fixed_memory(config, flow)?;
        let peers = config.flow.peers as usize;
        let least = Self::with_the_least_each(config, fixed);
        if config.receive_memory < least {
            let (bytes, peers) = (config.receive_memory, config.flow.peers);
            return Err(EndpointError::ReceiveMemoryTooSmall { bytes, least, peers });
        }
        let left = config.receive_memory - fixed;
        // Half of it is for windows, once one request each can be answered. The other half pays for the answers to more of them.
        let each = (left / peers.max(1)).saturating_sub(Self::answer_memory(Limits::default()));
        let base = (each / 2).clamp(Self::ENVELOPE_BYTES, WINDOW_MOST);
        let limits = Self::limits_of(base as u32, config.eager_bytes);
        let answers = peers * Self::answer_memory(limits);
        Ok(Division { fixed: fixed + answers, limits, spare: left - answers - base * peers })
    }

    /// Gives a sender whose sends were forgotten more of the spare memory.
    pub(crate) fn grow_window(&mut self, from: PeerId) {
        let peer = &mut self.peers[from.0 as usize];
        let most = (self.spare / 2).min(WINDOW_MOST - (peer.window as usize).min(WINDOW_MOST));
        let more = (peer.window as usize).min(most);
        if more >= Self::ENVELOPE_BYTES {
            self.spare -= more;
            peer.window += more as u32;
            peer.freed += more as u32;
        }
    }

    /// Takes back what a sender was given beyond the base, as it becomes free.
    pub(crate) fn shrink_window(&mut self, from: PeerId) {
        let peer = &mut self.peers[from.0 as usize];
        let back = peer.freed.min(peer.window - self.limits.window);
        peer.window -= back;
        peer.freed -= back;
        self.spare += back as usize;
    }

    /// Whether a message that has come from `from` and costs so much is within its window.
    #[inline]
    pub(crate) fn check_window(&self, from: PeerId, cost: u32) -> Result<(), Malformed> {
        let peer = &self.peers[from.0 as usize];
        let given_back = u64::from(peer.freed) + u64::from(self.egress.backlog(from).returning());
        if u64::from(peer.stored) + given_back + u64::from(cost) > u64::from(peer.window) {
            return Err(Malformed);
        }
        Ok(())
    }

    /// A message of `from` found its receive waiting.
    #[inline]
    pub(crate) fn pass_window(&mut self, from: PeerId, cost: u32) {
        let peer = &mut self.peers[from.0 as usize];
        peer.freed += cost;
        if peer.freed >= self.limits.window / 4 || peer.forgotten.is_some() {
            self.review(from);
        }
    }

    /// A message of `from` has to be stored.
    pub(crate) fn enter_window(&mut self, from: PeerId, cost: u32) {
        let peer = &mut self.peers[from.0 as usize];
        peer.stored += cost;
        let forgotten = peer.forgotten.is_some();
        self.count_held_memory(i64::from(cost));
        if forgotten {
            self.review(from);
        }
    }

    /// A stored message is stored no longer.
    pub(crate) fn leave_window(&mut self, source: Target, cost: u32) {
        let Target::Peer(from) = source else {
            // What a program sends to itself is its own memory.
            self.own_stored -= cost;
            return;
        };
        self.count_held_memory(-i64::from(cost));
        let peer = &mut self.peers[from.0 as usize];
        peer.stored -= cost;
        peer.freed += cost;
        self.review(from);
    }

    /// A peer is gone: what we held for it fails with its other sends, what it held for us is lost.
    pub(crate) fn lose_window(&mut self, peer: PeerId) {
        let state = &mut self.peers[peer.0 as usize];
        (state.held, state.room, state.towards) = (None, 0, Limits::default());
        if state.forgotten.take().is_some() {
            self.relax(peer);
        }
    }

    pub(crate) fn count_held_memory(&self, change: i64) {
        let counters = self.link.counters();
        match u64::try_from(change) {
            Ok(more) => counters.add(Counter::UnmatchedBytes, more),
            Err(_) => counters.sub(Counter::UnmatchedBytes, change.unsigned_abs()),
        }
        let fixed = counters.get(Counter::ReceiveFixedBytes);
        counters.raise(Counter::ReceivePeak, fixed + counters.get(Counter::UnmatchedBytes));
    }

    /// Gives a sender back what has become free of its window.
    pub(crate) fn return_room(&mut self, to: PeerId) {
        if self.egress.backlog(to).returning() > 0 {
            // Once that has left, the rest follows.
            return;
        }
        let freed = std::mem::take(&mut self.peers[to.0 as usize].freed);
        if freed > 0 {
            self.tell(to, Room { bytes: freed.into() });
        }
    }

    /// A receiver gives back what has become free of our window.
    pub(crate) fn handle_room(&mut self, from: PeerId, room: Room) -> Result<(), Malformed> {
        let peer = &mut self.peers[from.0 as usize];
        if room.bytes > WINDOW_MOST as u64 || peer.room as usize > WINDOW_MOST {
            return Err(Malformed);
        }
        peer.room += room.bytes as u32;
        self.release_held(from);
        Ok(())
    }
}
