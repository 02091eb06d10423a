//! Matching of messages and receives (MPI's rules): the first posted receive, in order of posting, that accepts a
//! message gets it; a receive gets the first stored message, in order of arrival, that it accepts. Packets of one
//! sender arrive in order, so messages of one sender never overtake each other.
//!
//! One [`MatchQueue`] serves one matching space (`FI_TAGGED` or `FI_MSG`; the latter with all tags 0).

use super::message::{Active, Stored, TakenBack, Unexpected};
use super::posted::{Place, Posted, PostedReceives};
use super::unexpected::UnexpectedMessages;
use crate::assembly::write_clipped;
use crate::collections::list::{Position, Wanted};
use crate::collections::slab::Slab;
use crate::envelope::{Envelope, Number, Pattern};
use crate::link::Buffer;
use crate::operation::{Context, MultiReceive, Source, Target};
use tidegate_flow::PeerId;

/// Buffers for many messages that a look at single receives passes at most.
const MULTIS_PASSED: usize = 64;
/// A sender that no message comes from: peers are counted in 20 bits.
const NOBODY: Target = Target::Peer(PeerId(u32::MAX));

/// A buffer that takes many messages. Lives until the last message in it is complete.
#[derive(Debug)]
struct MultiBuffer<B> {
    buffer: B,
    used: usize,
    smallest: usize,
    in_flight: usize,
    /// No longer posted: goes back to the application with the last message in flight.
    retired: bool,
}

/// The payload of a message that has come whole. A type of its own has its `copy_to` inlined wherever it is called,
/// which closures have not.
pub(crate) trait Whole<B> {
    /// Copies it into a buffer, as much as fits.
    fn copy_to(self, into: &mut B);
}

impl<B: Buffer> Whole<B> for &[u8] {
    #[inline(always)]
    fn copy_to(self, into: &mut B) {
        write_clipped(into, 0, self);
    }
}

/// Wants a receive that accepts a message which has come whole, and takes no other; puts the message into it.
struct FilledBy<'a, W> {
    envelope: &'a Envelope,
    payload: W,
}

impl<B: Buffer, W: Whole<B>> Wanted<Posted<B>> for FilledBy<'_, W> {
    #[inline(always)]
    fn meets(self, posted: &mut Posted<B>) -> bool {
        let Place::Single(buffer) = &mut posted.place else { return false };
        let accepts = posted.pattern.accepts(self.envelope.source, self.envelope.tag);
        if accepts {
            self.payload.copy_to(buffer);
        }
        accepts
    }
}

/// A receive that is over: its message lies in its buffer.
pub(crate) struct Filled {
    /// Bytes of the buffer.
    pub(crate) room: usize,
    pub(crate) context: Context,
    /// Whether success is reported.
    pub(crate) report: bool,
}

/// Posted receives and unexpected messages of one matching space.
#[derive(Debug)]
pub(crate) struct MatchQueue<B> {
    posted: PostedReceives<B>,
    unexpected: UnexpectedMessages<B>,
    multis: Slab<MultiBuffer<B>>,
    /// How many of the posted receives are for many messages.
    multis_posted: usize,
}

impl<B: Buffer> MatchQueue<B> {
    /// Memory that an unexpected message takes, payload apart.
    pub(crate) const ENVELOPE_BYTES: usize = UnexpectedMessages::<B>::BYTES_PER_MESSAGE;

    /// Memory that the list of unexpected messages may take beyond that, with so many peers.
    pub(crate) const fn bytes_begun(peers: u32) -> usize {
        UnexpectedMessages::<B>::bytes_begun(peers)
    }

    /// Matches the messages of so many peers, and of this endpoint itself.
    pub(crate) fn new(peers: u32) -> Self {
        MatchQueue {
            posted: PostedReceives::new(),
            unexpected: UnexpectedMessages::new(peers),
            multis: Slab::new(),
            multis_posted: 0,
        }
    }

    /// Posts a receive. The caller has looked for a stored message first.
    #[inline(always)]
    pub(crate) fn post(&mut self, number: Number, pattern: Pattern, buffer: B, context: Context, report: bool) {
        self.posted.push(|| Posted::new(number, pattern, context, report, Place::Single(buffer)));
    }

    /// Posts a buffer for many messages. The caller takes stored messages into it with
    /// [`accept_stored`](Self::accept_stored).
    pub(crate) fn post_multi(
        &mut self,
        number: Number,
        pattern: Pattern,
        buffer: B,
        context: Context,
        report: bool,
        multi: MultiReceive,
    ) -> Position {
        let shared = MultiBuffer { buffer, used: 0, smallest: multi.smallest.max(1), in_flight: 0, retired: false };
        let place = Place::Multi(self.multis.insert(shared));
        self.multis_posted += 1;
        self.posted.push(|| Posted::new(number, pattern, context, report, place))
    }

    /// Puts a message that arrives whole into the first posted receive, if that accepts it and takes no other: nearly
    /// always so. Returns the receive's room, its context, and whether to report. `None`: [`accept`](Self::accept)
    /// tells.
    #[inline(always)]
    pub(crate) fn fill_first(&mut self, envelope: &Envelope, payload: impl Whole<B>) -> Option<Filled> {
        let posted = self.posted.take_first(FilledBy { envelope, payload })?;
        let Place::Single(buffer) = posted.place else { return None };
        let filled = Filled { room: buffer.len(), context: posted.context, report: posted.report };
        buffer.end();
        Some(filled)
    }

    /// The receive for a message that arrives, if one is posted.
    #[inline]
    pub(crate) fn accept(&mut self, envelope: &Envelope) -> Option<Active<B>> {
        let at = self.posted.find(envelope.source, envelope.tag)?;
        Some(self.activate(at, envelope.length))
    }

    /// The receive for a message, if one is posted whose number is not beyond `until`.
    pub(crate) fn accept_until(&mut self, envelope: &Envelope, until: Option<Number>) -> Option<Active<B>> {
        let at = self.posted.find(envelope.source, envelope.tag)?;
        let number = self.posted.get(at)?.number;
        until.is_none_or(|until| number <= until).then(|| self.activate(at, envelope.length))
    }

    /// The first posted receive beyond `number` that accepts messages of `source`.
    pub(crate) fn first_from(&mut self, source: Target, number: Number) -> Option<(Number, Pattern)> {
        self.posted.first_from(source, number).map(|posted| (posted.number, posted.pattern))
    }

    /// Turns the posted receive at `at` into an active one for a message of `length` bytes.
    #[inline]
    fn activate(&mut self, at: Position, length: usize) -> Active<B> {
        let multi = match self.posted.get(at) {
            Some(Posted { place: Place::Multi(key), .. }) => Some(*key),
            _ => None,
        };
        let Some(key) = multi else {
            let Some(Posted { place: Place::Single(buffer), context, report, .. }) = self.posted.remove(at) else {
                unreachable!("a position that was just found, not a multi-receive");
            };
            return Active { buffer, context, offset: 0, report, multi: None };
        };
        let shared = self.multis.get_mut(key).expect("a posted multi-receive has its buffer");
        let offset = shared.used;
        let room = shared.buffer.len() - offset;
        let buffer = shared.buffer.slice(offset, length.min(room));
        shared.used += buffer.len();
        shared.in_flight += 1;
        shared.retired = shared.buffer.len() - shared.used < shared.smallest;
        let retired = shared.retired;
        let posted = self.posted.get(at).expect("a position that was just found");
        let (context, report) = (posted.context, posted.report);
        if retired {
            self.posted.remove(at);
            self.multis_posted -= 1;
        }
        Active { buffer, context, offset, report, multi: Some(key) }
    }

    /// An active receive for a buffer that is not posted (its message was stored).
    #[inline]
    pub(crate) fn activate_now(buffer: B, context: Context, report: bool) -> Active<B> {
        Active { buffer, context, offset: 0, report, multi: None }
    }

    /// Moves the first stored message that the multi-receive at `at` accepts into it. `None` when there is none or the
    /// buffer is full.
    pub(crate) fn accept_stored(&mut self, at: Position) -> Option<(Active<B>, Unexpected<B>)> {
        let pattern = match self.posted.get(at) {
            Some(posted) if matches!(posted.place, Place::Multi(_)) => posted.pattern,
            _ => return None,
        };
        let unexpected = self.take_unexpected(&pattern)?;
        Some((self.activate(at, unexpected.envelope.length), unexpected))
    }

    /// A message of an active receive is complete. Returns whether the application gets the multi-receive buffer back.
    #[inline]
    pub(crate) fn finish(&mut self, active: &Active<B>) -> bool {
        let Some(key) = active.multi else { return false };
        let Some(shared) = self.multis.get_mut(key) else { return false };
        shared.in_flight -= 1;
        let released = shared.retired && shared.in_flight == 0;
        if released {
            self.multis.remove(key);
        }
        released
    }

    /// Whether messages are stored.
    #[inline(always)]
    pub(crate) fn has_stored(&self) -> bool {
        !self.unexpected.is_empty()
    }

    /// Stores a message that no receive waits for.
    pub(crate) fn store(&mut self, unexpected: Unexpected<B>) -> Position {
        self.unexpected.push(unexpected)
    }

    /// The stored message at a position that [`store`](Self::store) returned and that was not taken since.
    pub(crate) fn stored_mut(&mut self, at: Position) -> Option<&mut Unexpected<B>> {
        self.unexpected.get_mut(at)
    }

    /// Takes the stored message at a position.
    pub(crate) fn take_at(&mut self, at: Position) -> Option<Unexpected<B>> {
        self.unexpected.remove(at)
    }

    /// Where the first stored message is that `pattern` accepts and that nobody claimed.
    #[inline]
    pub(crate) fn find_unexpected(&mut self, pattern: &Pattern) -> Option<Position> {
        self.unexpected.find(pattern)
    }

    /// Takes the first stored message that `pattern` accepts and that nobody claimed.
    #[inline]
    pub(crate) fn take_unexpected(&mut self, pattern: &Pattern) -> Option<Unexpected<B>> {
        let at = self.find_unexpected(pattern)?;
        self.unexpected.remove(at)
    }

    /// Sets the stored message at a position aside for `context`.
    pub(crate) fn claim(&mut self, at: Position, context: Context) {
        self.unexpected.claim(at, context);
    }

    /// Takes the message that was set aside for `context`.
    pub(crate) fn take_claimed(&mut self, context: Context) -> Option<Unexpected<B>> {
        let at = self.unexpected.find_claimed(context)?;
        self.unexpected.remove(at)
    }

    /// The first posted receive that the application calls `name`, and where it is. `name_of` says what it calls the
    /// receive of a context.
    pub(crate) fn find_named(&mut self, name: usize, name_of: impl Fn(Context) -> usize) -> Option<(Number, Position)> {
        self.posted.find_named(name, name_of)
    }

    /// Takes back the posted receive at a position.
    pub(crate) fn take_back(&mut self, at: Position) -> Option<TakenBack> {
        let posted = self.posted.remove(at)?;
        Some(self.retire(&posted))
    }

    fn retire(&mut self, posted: &Posted<B>) -> TakenBack {
        let mut released = false;
        if let Place::Multi(key) = posted.place
            && let Some(shared) = self.multis.get_mut(key)
        {
            shared.retired = true;
            self.multis_posted -= 1;
            released = shared.in_flight == 0;
            if released {
                self.multis.remove(key);
            }
        }
        TakenBack { context: posted.context, released }
    }

    /// A peer is gone: turns its stored rendezvous messages into lost ones, and, if `fail_receives`, takes back the
    /// receives that only it could have satisfied. Returns these.
    pub(crate) fn lose_peer(&mut self, peer: Target, name: &str, fail_receives: bool) -> Vec<TakenBack> {
        self.unexpected.for_each_mut(|stored| {
            if stored.envelope.source == peer && matches!(stored.stored, Stored::Remote(_)) {
                stored.stored = Stored::Lost(name.to_owned());
            }
        });
        if !fail_receives {
            return Vec::new();
        }
        let only_it = |posted: &Posted<B>| posted.pattern.from == Source::From(peer);
        let removed = self.posted.remove_where(only_it);
        removed.iter().map(|posted| self.retire(posted)).collect()
    }

    /// The place of a peer that left goes to another process: receives meant for the old one match nobody any more.
    /// They stay until the application cancels them.
    pub(crate) fn forget_peer(&mut self, peer: Target) {
        self.posted.change_patterns(|pattern| {
            if pattern.from == Source::From(peer) {
                pattern.from = Source::From(NOBODY);
            }
        });
    }

    /// The stored messages of one source are those of another from now on, of which there are none.
    pub(crate) fn move_source(&mut self, from: Target, to: Target) {
        self.unexpected.move_source(from, to);
    }

    /// Shows the first posted receives that wait for one message each.
    pub(super) fn show_posted(&self, most: usize, mut show: impl FnMut(Number, &Pattern, usize)) {
        let single = |posted: &Posted<B>| match &posted.place {
            Place::Single(buffer) => Some((posted.number, posted.pattern, buffer.len())),
            Place::Multi(_) => None,
        };
        let singles = self.posted.iter().take(most + MULTIS_PASSED).filter_map(single);
        singles.take(most).for_each(|(number, pattern, bytes)| show(number, &pattern, bytes));
    }

    /// Shows the last of those, as far back as this number, the last first.
    pub(super) fn show_posted_since(&self, since: Number, most: usize, show: impl FnMut(&Pattern)) {
        let lasts = self.posted.iter_back().take(most + MULTIS_PASSED).take_while(|posted| posted.number >= since);
        let singles = lasts.filter(|posted| matches!(posted.place, Place::Single(_)));
        singles.take(most).map(|posted| &posted.pattern).for_each(show);
    }

    /// How many of those there are.
    pub(super) fn posted(&self) -> usize {
        self.posted.len() - self.multis_posted
    }

    /// The same, with those that may take several messages.
    pub(super) fn posted_in_all(&self) -> usize {
        self.posted.len()
    }

    /// Shows the first stored messages, with a number that no other has.
    pub(super) fn show_unexpected(&self, most: usize, mut show: impl FnMut(u32, &Envelope)) {
        self.unexpected.numbered().take(most).for_each(|(number, message)| show(number, &message.envelope));
    }

    /// How many messages are stored.
    pub(super) fn unexpected(&self) -> usize {
        self.unexpected.len()
    }

    /// Whether a stored message is from `source`.
    pub(crate) fn has_stored_from(&self, source: Target) -> bool {
        self.unexpected.first_of(source).is_some()
    }
}
