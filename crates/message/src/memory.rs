//! How the receive memory is divided: what is fixed, what a window is, what a message costs of it. The rules are in
//! `deferral`.

use crate::account::answer_cost;
use crate::control_size::ControlSize;
use crate::deferral::Sessions;
use crate::egress::{Backlog, WaitingControl, WaitingNote, refused_most};
use crate::heap::{BLOCK_MOST, block, longest_block, queue_begun};
use crate::link::Buffer;
use crate::matching::Matching;
use crate::operation::EndpointConfig;
use crate::rma::UnfinishedRead;
use crate::wire::{LARGEST_EAGER_BYTES, SPAN_BYTES};
use std::fmt;
use std::marker::PhantomData;
use tidegate_flow::{BufferField, Config as FlowConfig, ConfigError, FlowControl, Names, PACKET_BYTES};

/// What a window allows. All in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// What a receiver sets aside for one sender; 0: not known yet.
    pub(crate) window: u32,
    /// Most that one message may cost (W2).
    pub(crate) largest: u32,
    /// Longest message that is sent eagerly.
    pub(crate) eager: u32,
    /// Longest message that is sent eagerly if its buffer may change at once (injected).
    pub(crate) inject: u32,
    /// What requests may cost that are not answered (see `rma::request`).
    pub(crate) answers: u32,
    /// How long messages of our own kinds may be.
    pub(crate) control: ControlSize,
    /// Whether a sender has to ask for a session first (see `deferral::sessions`).
    pub(crate) must_ask: bool,
}

impl Limits {
    /// The longest message that is sent eagerly. `inject`: its buffer may change at once.
    #[inline]
    pub(crate) fn most(&self, inject: bool) -> usize {
        (if inject { self.inject } else { self.eager }) as usize
    }

    /// The word that a receiver tells its senders before the first message.
    pub(crate) fn told(&self) -> u32 {
        if self.must_ask { ControlSize::TOLD_TO_ASK } else { self.told_in_session() }
    }

    /// The word for a sender that has a session.
    pub(crate) fn told_in_session(&self) -> u32 {
        self.control.told(self.window)
    }
}

/// Why an endpoint cannot be as configured. Its text names the number to change and what it may be;
/// [`named`](EndpointError::named) says it with the names of a product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointError {
    /// Flow control refuses.
    Flow(ConfigError),
    /// The bound on receive memory has no room for what is fixed and one session.
    ReceiveMemoryTooSmall {
        /// `EndpointConfig::receive_memory`, in bytes.
        bytes: usize,
        /// The smallest legal value, in bytes.
        least: usize,
        /// Peers that the memory is for.
        peers: u32,
        /// Where receivers post buffers: the field that says how many.
        buffers: Option<BufferField>,
    },
}

impl From<ConfigError> for EndpointError {
    fn from(error: ConfigError) -> Self {
        EndpointError::Flow(error)
    }
}

impl EndpointError {
    /// The bound on receive memory is less than the least.
    pub fn receive_memory_too_small(config: &EndpointConfig, least: usize) -> Self {
        let (bytes, peers, buffers) = (config.receive_memory, config.flow.at_opening(), config.flow.buffers_field());
        EndpointError::ReceiveMemoryTooSmall { bytes, least, peers, buffers }
    }

    /// The text of the error, with the names by which users know the numbers.
    pub fn named(&self, names: &Names) -> String {
        let Names { slots, peers: of_peers, receive_memory, .. } = names;
        match self {
            EndpointError::Flow(error) => error.named(names),
            EndpointError::ReceiveMemoryTooSmall { bytes, least, peers, buffers } => {
                let remedy = match buffers {
                    None => format!("fewer mailbox slots per peer ({slots})"),
                    Some(field @ BufferField::PoolSlots) => {
                        format!("fewer mailbox slots ({})", (names.buffers)(*field))
                    }
                    Some(field) => format!("fewer posted buffers ({})", (names.buffers)(*field)),
                };
                let noun = if *peers == 1 { "peer" } else { "peers" };
                format!(
                    "{receive_memory}={bytes} is too small: with {peers} {noun} ({of_peers}) at least {least} bytes are needed; \
                     {remedy} need less"
                )
            }
        }
    }
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named(&Names::FIELDS))
    }
}

impl std::error::Error for EndpointError {}

/// How the receive memory is divided.
pub(crate) struct Division {
    /// The fixed part, in bytes.
    pub(crate) fixed: usize,
    /// What a base window allows.
    pub(crate) limits: Limits,
    /// The limits of a newcomer's window ([`FlowConfig::newcomers`]): the same, or less.
    pub(crate) newcomers: Limits,
    /// How many peers may have a window at a time; `None`: all have one from the start.
    pub(crate) sessions: Option<u32>,
    /// Bytes that belong to no window yet.
    pub(crate) spare: usize,
    /// How many of the [later](FlowConfig::later) newcomers' places these can pay for.
    pub(crate) later: u32,
}

/// One part in so many of the memory for messages is set aside for the tables of lists. While any message is left, a
/// table keeps a place for each of the most messages that were ever there at once. A place takes less than a sixteenth
/// of an envelope, and there are two lists, for tagged and for untagged messages: together an eighth.
const TABLES_SHARE: usize = 8;

/// One part in so many of its window is what a peer's unanswered requests may cost, on top of the window.
const ANSWERS_SHARE: u32 = 8;
/// Most that they may cost, in bytes: some 680 requests of eight bytes, ten times as many as a mailbox has slots for
/// each peer by default. More in flight measure no faster, since an origin has the next ones ready when the first
/// answers come.
const ANSWERS_MOST: u32 = 1 << 16;

/// The window of a session where there are not enough for all, in bytes, and that of a newcomer where others have more.
const FEW_WINDOW: u32 = 2048;
/// Newcomers may take one part in this number of the memory for messages. The spare memory pays for it.
const NEWCOMERS_SHARE: usize = 8;
/// What the tables keep for a place that is not open yet, in bytes: parts of pointers to pages (at most half of what a
/// silent peer may cost, see `tests/peers/silent.rs`).
const CLOSED_BYTES: usize = 4;
/// Sessions that there have to be for that.
const FEW_LEAST: usize = 8;

/// Windows beyond 1 GiB change nothing any more, and sums of two fit 32 bits.
pub(crate) const WINDOW_MOST: usize = 1 << 30;
/// Windows are multiples of this, in bytes (see [`ControlSize::told`]).
const WINDOW_GRANULE: usize = 8;

/// What is fixed besides, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Others {
    /// What the endpoint's tables take when all peers talk.
    pub(crate) tables: usize,
    /// What they take for each peer that has a window.
    pub(crate) each: usize,
    /// What the link takes.
    pub(crate) link: usize,
}

/// What is fixed in all, but for sessions.
#[derive(Clone, Copy)]
struct Fixed {
    /// However many peers have windows.
    shared: usize,
    /// See [`Others::each`].
    each: usize,
}

/// The arithmetic of an endpoint whose application's memory is of this type.
pub(crate) struct Memory<B>(PhantomData<B>);

impl<B: Buffer> Memory<B> {
    /// What an unmatched message costs, payload apart, in bytes: its place in the list of a matching space, and, for a
    /// rendezvous message, the note to its sender that it has been pulled (`Finished`). A receiver that pulls faster
    /// than its sender runs has as many notes waiting as it had messages stored; room that it gives back waits behind
    /// them. A multiple of eight, as windows are.
    pub(crate) const ENVELOPE_BYTES: usize =
        (Matching::<B>::ENVELOPE_BYTES + WaitingNote::BYTES).next_multiple_of(WINDOW_GRANULE);

    /// What notes to one peer may take that its window and its requests do not pay for (see `egress::backlog`): about a
    /// batch of deferred sends and that it is acknowledged, receipts for bounce buffers, and one or two each of what is
    /// said once at a time. They are more than the places with which a queue begins, so that the rule for its growth
    /// holds from the start.
    const fn note_memory(control: ControlSize) -> usize {
        (control.batch() + 1 + control.bounced() + 10) * WaitingNote::BYTES + BLOCK_MOST
    }

    /// What the queue of messages may take for the one with a payload that is an answer: a piece of a read, or an
    /// offer.
    pub(crate) const fn answer_message_memory(control: ControlSize) -> usize {
        Backlog::<B>::FEW_MESSAGES + block(control.bytes())
    }

    /// Bytes for a peer that has no session: it may have to be told that its session is over, and that we have no match
    /// for its query. (Our own asking, and offers, are due to sends of ours.)
    const STRANGER_BYTES: usize = block(Backlog::<B>::FEW_NOTES * size_of::<WaitingNote>());

    /// Bytes of a session, its window apart, where messages of our own kinds are as short as can be.
    fn session_memory(limits: Limits) -> usize {
        Self::control_size_memory(ControlSize::LEAST) + Self::answer_memory(limits)
    }

    /// Bytes that are set aside for each peer because messages of our own kinds may be that long.
    const fn control_size_memory(control: ControlSize) -> usize {
        block(control.bytes()) + Self::note_memory(control) + Self::answer_message_memory(control)
    }

    /// What control packets may take that the full mailbox of a peer has refused, and one too many: their queue doubles
    /// as it grows.
    pub(crate) fn control_memory(config: &FlowConfig) -> usize {
        (refused_most(config) as usize + 1) * WaitingControl::BYTES
    }

    /// What notes with results may take that answer a peer's requests.
    fn result_memory(limits: Limits) -> usize {
        (limits.answers as usize).max(answer_cost(limits.control.operand_bytes()) as usize)
    }

    /// What a peer's reads may take that are not through.
    pub(crate) fn read_memory(limits: Limits) -> usize {
        (limits.answers as usize).max(queue_begun::<UnfinishedRead>())
    }

    /// What answers to a peer's requests may take.
    fn answer_memory(limits: Limits) -> usize {
        Self::result_memory(limits) + Self::read_memory(limits)
    }

    /// The most that notes to a peer with such a window may take, if it has a session.
    pub(crate) fn note_bytes_most(window: u32, base: Limits, has_session: bool) -> usize {
        if !has_session {
            return Self::STRANGER_BYTES + 2 * WaitingNote::BYTES;
        }
        let of_window = window as usize / Self::ENVELOPE_BYTES * WaitingNote::BYTES;
        of_window + Self::result_memory(base) + Self::note_memory(base.control)
    }

    /// The limits of a receiver that has told this.
    pub(crate) fn limits_told(word: u32, eager_bytes: usize) -> Limits {
        let must_ask = word == ControlSize::TOLD_TO_ASK;
        let (window, control) = if must_ask { (0, ControlSize::LEAST) } else { ControlSize::of_told(word) };
        Limits { must_ask, ..Self::limits_of(window.max(Self::ENVELOPE_BYTES as u32), control, eager_bytes) }
    }

    /// The limits of a receiver with this window, in bytes, and messages of our own kinds of this size.
    pub(crate) fn limits_of(window: u32, control: ControlSize, eager_bytes: usize) -> Limits {
        let largest = (window as usize / 4).max(Self::ENVELOPE_BYTES);
        let payload = longest_block(largest - Self::ENVELOPE_BYTES).min(LARGEST_EAGER_BYTES);
        let (eager, inject) = (eager_bytes.min(payload) as u32, payload as u32);
        let answers = (window / ANSWERS_SHARE).min(ANSWERS_MOST);
        Limits { window, largest: largest as u32, eager, inject, answers, control, must_ask: false }
    }

    /// What an unmatched message costs whose payload of so many bytes travels along.
    #[inline]
    pub(crate) fn eager_cost(bytes: usize) -> u32 {
        (Self::ENVELOPE_BYTES + block(bytes)) as u32
    }

    /// What an unmatched request to send costs that names so many pieces of memory.
    pub(crate) fn announce_cost(spans: usize) -> u32 {
        (Self::ENVELOPE_BYTES + block(spans * SPAN_BYTES)) as u32
    }

    /// The part of the receive memory that configuration alone fixes, in bytes: mailbox, book-keeping, tables of peers,
    /// and for each peer control packets that its mailbox refuses. It is for the day on which all peers talk: those
    /// that never do take next to nothing of it.
    fn fixed(config: &EndpointConfig, others: Others) -> Result<Fixed, ConfigError> {
        let mailbox = config.flow.regions()?.mailbox as usize * PACKET_BYTES;
        Ok(Fixed { shared: mailbox + Self::places_memory(config, others)?, each: others.each })
    }

    /// The part of it that depends on how many places are open.
    fn places_memory(config: &EndpointConfig, others: Others) -> Result<usize, ConfigError> {
        let places = config.flow.at_opening();
        let flow = FlowControl::new(&FlowConfig { peers: places, later: 0, ..config.flow.clone() })?;
        let bookkeeping = flow.bookkeeping_bytes() + others.tables + others.link;
        let controls = places as usize * Self::control_memory(&config.flow) + WaitingControl::BYTES_BEGUN;
        let closed = config.flow.later as usize * CLOSED_BYTES;
        Ok(bookkeeping + controls + Matching::<B>::bytes_begun(places) + closed)
    }

    /// What it takes to open places for newcomers until no more than `later` are not open: the bytes that are fixed
    /// from then on, and those of the newcomers' windows.
    pub(crate) fn opening_memory(
        config: &EndpointConfig,
        later: u32,
        others: impl Fn(&EndpointConfig) -> Others,
    ) -> Result<(usize, usize), ConfigError> {
        let flow = FlowConfig { later, ..config.flow.clone() };
        let opened = EndpointConfig { flow, ..config.clone() };
        let few = Self::limits_of(FEW_WINDOW, ControlSize::LEAST, config.eager_bytes);
        let count = config.flow.later.saturating_sub(later) as usize;
        let of_all = |config| Self::places_memory(config, others(config));
        let fixed = of_all(&opened)? - of_all(config)? + count * (others(config).each + Self::session_memory(few));
        Ok((fixed, count * few.window as usize))
    }

    /// The smallest legal `receive_memory` with this configuration, in bytes: the fixed part, next to nothing for each
    /// peer, and one session.
    pub(crate) fn least(config: &EndpointConfig, others: Others) -> Result<usize, ConfigError> {
        let fixed = Self::fixed(config, others)?;
        Ok(Self::with_one_session(config, fixed).min(Self::with_all_sessions(config, fixed)))
    }

    /// The smallest one with which every peer has a window from the start: for each of them what it takes to put a
    /// message of the protocol together, and to keep what it makes us say until it listens, where such messages are as
    /// short as can be, an envelope, and the answer to one request.
    pub(crate) fn least_for_all(config: &EndpointConfig, others: Others) -> Result<usize, ConfigError> {
        let fixed = Self::fixed(config, others)?;
        Ok(Self::with_all_sessions(config, fixed))
    }

    fn with_all_sessions(config: &EndpointConfig, fixed: Fixed) -> usize {
        let each = fixed.each + Self::ENVELOPE_BYTES + Self::session_memory(Limits::default());
        fixed.shared + config.flow.at_opening() as usize * each
    }

    fn with_one_session(config: &EndpointConfig, fixed: Fixed) -> usize {
        fixed.shared + Self::strangers_memory(config) + Self::few_session_memory(Limits::default(), fixed)
    }

    /// Bytes for all peers that have no session, where there are not enough for all.
    fn strangers_memory(config: &EndpointConfig) -> usize {
        let peers = config.flow.at_opening();
        peers as usize * Self::STRANGER_BYTES + Sessions::bytes_most(peers)
    }

    /// Bytes of a session there, its window apart.
    fn few_session_memory(limits: Limits, fixed: Fixed) -> usize {
        fixed.each + Self::session_memory(limits) + Sessions::BYTES_EACH
    }

    /// Divides the receive memory.
    pub(crate) fn divide(
        config: &EndpointConfig,
        others: impl Fn(&EndpointConfig) -> Others,
    ) -> Result<Division, EndpointError> {
        let fixed = Self::fixed(config, others(config))?;
        if config.receive_memory < Self::with_all_sessions(config, fixed) {
            return Self::divide_among_few(config, fixed);
        }
        // The bytes of newcomers besides their windows, and with these.
        let few = Self::limits_of(FEW_WINDOW, ControlSize::LEAST, config.eager_bytes);
        let newcomers = config.flow.newcomers.saturating_sub(config.flow.later) as usize;
        let beside = newcomers * (fixed.each + Self::session_memory(few));
        let of_newcomers = beside + newcomers * few.window as usize;
        let (left, base) = Self::base_of(config, fixed, config.flow.planned() as usize);
        // With little memory they are peers like all others: they have as much as these, and it is not much.
        if newcomers == 0 || of_newcomers > left / NEWCOMERS_SHARE || base < FEW_WINDOW as usize {
            let (_, division) = Self::divide_among(config, fixed, config.flow.at_opening() as usize, 0);
            return Ok(Division { newcomers: division.limits, ..division });
        }
        let (taken, division) = Self::divide_among(config, fixed, config.flow.planned() as usize, of_newcomers);
        debug_assert_eq!(taken + of_newcomers, config.receive_memory, "all is given out");
        // The other half may stay with windows that have grown, whose senders are idle.
        let later = Self::later(config, division.spare / 2, others);
        Ok(Division { newcomers: few, fixed: division.fixed + beside, later, ..division })
    }

    /// The number of later newcomers' places that this many spare bytes can pay for.
    fn later(config: &EndpointConfig, spare: usize, others: impl Fn(&EndpointConfig) -> Others) -> u32 {
        let all = config.flow.later;
        let is_paid = |later: u32| {
            let needed = Self::opening_memory(config, all - later, &others);
            needed.is_ok_and(|(fixed, windows)| fixed + windows <= spare)
        };
        (0..u32::BITS - all.leading_zeros()).rev().map(|bit| 1 << bit).fold(0, |later, more| {
            let fits = later + more <= all && is_paid(later + more);
            if fits { later + more } else { later }
        })
    }

    /// The bytes that are left for messages where this number of peers have equal windows, and the bytes of a window.
    fn base_of(config: &EndpointConfig, fixed: Fixed, peers: usize) -> (usize, usize) {
        let least = fixed.shared + peers * (fixed.each + Self::control_size_memory(ControlSize::LEAST));
        let left = config.receive_memory - least;
        // Half of it is for windows, once one request each can be answered. The other half pays for the answers to more
        // of them.
        let each = (left / peers.max(1)).saturating_sub(Self::answer_memory(Limits::default()));
        (left, (each / 2).clamp(Self::ENVELOPE_BYTES, WINDOW_MOST) / WINDOW_GRANULE * WINDOW_GRANULE)
    }

    /// Divides the receive memory without the newcomers' part among this number of peers. Returns the bytes given out,
    /// in bytes, too.
    fn divide_among(config: &EndpointConfig, fixed: Fixed, peers: usize, of_newcomers: usize) -> (usize, Division) {
        let (left, base) = Self::base_of(config, fixed, peers);
        let fixed = config.receive_memory - left;
        let limits = Self::limits_of(base as u32, ControlSize::LEAST, config.eager_bytes);
        let beyond = left - base * peers - of_newcomers;
        let (control, more) = Self::choose_control_size(limits, peers, beyond);
        let limits = Limits { control, ..limits };
        let others = beyond - more;
        let tables = ((left - of_newcomers - more) / TABLES_SHARE).min(others);
        let (fixed, spare) = (fixed + more + tables, others - tables);
        let division = Division { fixed, limits, newcomers: limits, sessions: None, spare, later: 0 };
        (fixed + base * peers + spare, division)
    }

    /// The same where there is not enough for all: as many sessions as there is memory for. One of them has no window.
    fn divide_among_few(config: &EndpointConfig, fixed: Fixed) -> Result<Division, EndpointError> {
        let peers = config.flow.at_opening() as usize;
        let least = Self::with_one_session(config, fixed);
        if config.receive_memory < least {
            let least = least.min(Self::with_all_sessions(config, fixed));
            return Err(EndpointError::receive_memory_too_small(config, least));
        }
        let of_all = fixed.shared + Self::strangers_memory(config);
        let left = config.receive_memory - of_all;
        // Windows are such that short messages are eager, unless that makes the sessions too few.
        let of_window = |window| Self::limits_of(window, ControlSize::LEAST, config.eager_bytes);
        let fitting = |limits: Limits| {
            let window = limits.window as usize;
            (left + window) / (Self::few_session_memory(limits, fixed) + window)
        };
        let usual = of_window(FEW_WINDOW);
        let limits = if fitting(usual) >= FEW_LEAST { usual } else { of_window(Self::ENVELOPE_BYTES as u32) };
        let sessions = fitting(limits).min(peers);
        let fixed = of_all + sessions * Self::few_session_memory(limits, fixed);
        let beyond = config.receive_memory - fixed - (sessions - 1) * limits.window as usize;
        let tables = (beyond + (sessions - 1) * limits.window as usize) / TABLES_SHARE;
        let tables = tables.min(beyond);
        let limits = Limits { must_ask: true, ..limits };
        let (fixed, spare) = (fixed + tables, beyond - tables);
        Ok(Division { fixed, limits, newcomers: limits, sessions: Some(sessions as u32), spare, later: 0 })
    }

    /// How long messages of our own kinds may be, and what that and the answers to requests take: so long that it is a
    /// quarter of what the windows leave beyond the answers, at most. Most of it is for windows to grow.
    fn choose_control_size(limits: Limits, peers: usize, beyond: usize) -> (ControlSize, usize) {
        let most = |control| {
            let longer = Self::control_size_memory(control) - Self::control_size_memory(ControlSize::LEAST);
            (Self::answer_memory(Limits { control, ..limits }) + longer) * peers
        };
        let least = most(ControlSize::LEAST);
        let fits = |control: &ControlSize| most(*control) - least <= (beyond - least) / 4;
        let control = ControlSize::all().find(fits).unwrap_or(ControlSize::LEAST);
        (control, most(control))
    }
}

#[cfg(test)]
mod tests;
