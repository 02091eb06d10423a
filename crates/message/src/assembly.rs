//! The way in: packets become messages again.
//!
//! Per peer at most one message is being put together, because packets of one message follow each other. Its payload
//! goes straight to where it belongs: into the buffer of the receive that it matched when its first packet came, or
//! into memory of exactly its size if no receive was posted. What belongs to this crate alone (requests to send, RMA
//! requests) is put together in a scratch buffer of bounded size.

use crate::attention::Attention;
use crate::collections::busy_peers::BusyPeers;
use crate::collections::list::Position;
use crate::collections::slab::Key;
use crate::link::Buffer;
use crate::malformed::Malformed;
use crate::matching::Matched;
use crate::operation::Queue;
use crate::wire::Message;
use std::fmt::{self, Debug, Formatter};
use tidegate_flow::{MOST_SLOTS_PER_PACKET, PAYLOAD_BYTES, PeerId};

/// Where the rest of a message goes whose first packet has come.
#[derive(Debug)]
pub(crate) enum Sink<B> {
    /// No message is under way.
    Idle,
    Receive(Matched<B>),
    /// The stored message at this position of the queue.
    Store(Position, Queue),
    /// Into the scratch buffer, then to the handler of its kind.
    Control(Message),
    /// Part of what we pull through the mailbox.
    Piece(Key, usize),
    /// Part of an RMA read's data.
    ReadData(Key, usize),
    Discard,
}

/// A message on its way in.
struct Inbound<B> {
    sink: Sink<B>,
    /// Bytes of the body.
    length: usize,
    received: usize,
    /// Parts of a message of our own kinds, while one is under way.
    scratch: Vec<u8>,
}

/// Without what earlier messages have left behind, which nobody reads: it would tell apart states of an endpoint that
/// are the same.
impl<B: Debug> Debug for Inbound<B> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Inbound { sink, length, received, scratch } = self;
        match sink {
            Sink::Idle => write!(f, "Idle"),
            Sink::Control(_) => write!(f, "{received} of {length} bytes to {sink:?}: {scratch:?}"),
            _ => write!(f, "{received} of {length} bytes to {sink:?}"),
        }
    }
}

impl<B> Default for Inbound<B> {
    fn default() -> Self {
        Inbound { sink: Sink::Idle, length: 0, received: 0, scratch: Vec::new() }
    }
}

/// The messages that are being put together, one per peer at most.
pub(crate) struct Assembly<B> {
    of_peers: BusyPeers<Inbound<B>>,
    /// How many are under way.
    under_way: usize,
    /// The peer whose message has ended last. Its state stays, since mostly its next message is the next of all.
    last: Option<PeerId>,
    /// The parts of the last message of our own kinds, and memory for those of the next.
    scratch: Vec<u8>,
    /// The payload of a long packet behind its first slot.
    rest: Rest,
}

/// The messages that are under way. Nothing else makes a difference.
impl<B: Debug> Debug for Assembly<B> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let under_way = self.of_peers.all().filter(|(_, inbound)| !matches!(inbound.sink, Sink::Idle));
        f.debug_map().entries(under_way).finish()
    }
}

/// Room for the payload of all slots of a packet but the first. Empty while it is lent.
pub(crate) type Rest = Vec<[u8; PAYLOAD_BYTES]>;
/// Slots that it has room for.
const REST_SLOTS: usize = MOST_SLOTS_PER_PACKET as usize - 1;

impl<B: Buffer> Assembly<B> {
    /// Most heap bytes of the table of peers: when all `peers` talk.
    pub(crate) const fn bytes_most(peers: u32) -> usize {
        BusyPeers::<Inbound<B>>::bytes_most(peers) + Self::BYTES_OF_SENDER + REST_SLOTS * PAYLOAD_BYTES
    }

    /// Heap bytes for each sender of messages of several packets, parts of messages of our own kinds apart.
    pub(crate) const BYTES_OF_SENDER: usize = BusyPeers::<Inbound<B>>::BYTES_EACH;

    pub(crate) fn new(peers: u32) -> Self {
        let rest = vec![[0; PAYLOAD_BYTES]; REST_SLOTS];
        Assembly { of_peers: BusyPeers::new(peers), under_way: 0, last: None, scratch: Vec::new(), rest }
    }

    /// Whether the message of any peer is.
    #[inline]
    pub(crate) fn is_under_way(&self) -> bool {
        self.under_way > 0
    }

    /// Whether no message of a peer is under way.
    #[inline]
    pub(crate) fn is_idle(&self, peer: PeerId) -> bool {
        // Mostly no message of any peer is under way.
        self.under_way == 0 || self.of_peers.get(peer).is_none_or(|it| matches!(it.sink, Sink::Idle))
    }

    /// Whether a message of so many bytes may begin here, of which the first packet has so many.
    #[inline]
    pub(crate) fn check_first(&self, from: PeerId, length: usize, part: usize) -> Result<(), Malformed> {
        if part <= length && self.is_idle(from) { Ok(()) } else { Err(Malformed) }
    }

    /// A message begins whose first `received` bytes have been placed.
    pub(crate) fn begin(
        &mut self,
        attention: &mut Attention,
        from: PeerId,
        sink: Sink<B>,
        length: usize,
        received: usize,
    ) {
        attention.begin_elsewhere();
        let inbound = self.of_peers.of(from);
        self.under_way += usize::from(matches!(inbound.sink, Sink::Idle));
        (inbound.sink, inbound.length, inbound.received) = (sink, length, received);
    }

    /// A message of our own kinds begins.
    pub(crate) fn begin_control(&mut self, attention: &mut Attention, from: PeerId, head: Message, length: usize) {
        attention.begin();
        self.begin(attention, from, Sink::Control(head), length, 0);
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.reserve_exact(length);
        self.of_peers.of(from).scratch = scratch;
    }

    /// The next `part` bytes have come. Returns where they begin, whether they are the last, and where they go.
    pub(crate) fn advance(&mut self, from: PeerId, part: usize) -> Result<(usize, bool, &mut Sink<B>), Malformed> {
        let inbound = self.of_peers.get_mut(from).ok_or(Malformed)?;
        let offset = inbound.received;
        if matches!(inbound.sink, Sink::Idle) || part > inbound.length - offset {
            return Err(Malformed);
        }
        inbound.received += part;
        Ok((offset, inbound.received == inbound.length, &mut inbound.sink))
    }

    /// Keeps a part of a message of our own kinds.
    pub(crate) fn keep(&mut self, from: PeerId, part: &[u8]) {
        if let Some(inbound) = self.of_peers.get_mut(from) {
            inbound.scratch.extend_from_slice(part);
        }
    }

    /// The message will never be whole: takes where it went.
    #[cold]
    #[inline(never)]
    pub(crate) fn lose(&mut self, from: PeerId) -> Sink<B> {
        self.end(from)
    }

    /// The message is whole: takes where it went. Inlined, because that is long.
    #[inline(always)]
    pub(crate) fn end(&mut self, from: PeerId) -> Sink<B> {
        let Some(inbound) = self.of_peers.get_mut(from) else { return Sink::Idle };
        let sink = std::mem::replace(&mut inbound.sink, Sink::Idle);
        self.under_way -= usize::from(!matches!(sink, Sink::Idle));
        if let Sink::Control(_) = &sink {
            self.scratch = std::mem::take(&mut inbound.scratch);
        }
        if self.last != Some(from) {
            self.change_last(from);
        }
        sink
    }

    /// A message of another peer than before has ended: the state of that one goes, unless its next message has begun.
    #[inline(never)]
    fn change_last(&mut self, from: PeerId) {
        if let Some(last) = self.last.replace(from)
            && self.is_idle(last)
            && let Some(inbound) = self.of_peers.take(last)
        {
            self.of_peers.keep(inbound);
        }
    }

    /// The rest of the message under way goes elsewhere.
    pub(crate) fn redirect(&mut self, from: PeerId, sink: Sink<B>) {
        if let Some(inbound) = self.of_peers.get_mut(from) {
            inbound.sink = sink;
        }
    }

    /// The parts of a message of our own kinds that has just [ended](Self::end), which are to be
    /// [returned](Self::return_scratch).
    pub(crate) fn take_scratch(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.scratch)
    }

    /// Takes back the memory of [`take_scratch`](Self::take_scratch), to be used again.
    pub(crate) fn return_scratch(&mut self, scratch: Vec<u8>) {
        self.scratch = scratch;
    }

    /// Room for the payload of a long packet behind its first slot, to be [returned](Self::return_rest).
    pub(crate) fn take_rest(&mut self) -> Rest {
        std::mem::take(&mut self.rest)
    }

    /// Takes back the memory of [`take_rest`](Self::take_rest).
    pub(crate) fn return_rest(&mut self, rest: Rest) {
        self.rest = rest;
    }

    /// The place of a peer that is gone goes to another.
    pub(crate) fn release(&mut self, peer: PeerId) {
        self.lose(peer);
        self.of_peers.end(peer);
    }
}

/// Writes as much of `part` as the buffer has room for.
#[inline(always)]
pub(crate) fn write_clipped<B: Buffer>(buffer: &mut B, offset: usize, part: &[u8]) {
    let room = buffer.len().saturating_sub(offset);
    let fits = part.len().min(room);
    if fits > 0 {
        buffer.write(offset, &part[..fits]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bytes;
    use crate::wire::DeferralNotice;

    const A: PeerId = PeerId(0);

    #[test]
    fn a_message_is_whole_when_all_of_its_bytes_have_come_and_not_one_more() {
        let mut assembly: Assembly<Bytes> = Assembly::new(1);
        let advance = |assembly: &mut Assembly<Bytes>, part| {
            let (offset, is_last, _) = assembly.advance(A, part).ok()?;
            Some((offset, is_last))
        };
        assert_eq!(advance(&mut assembly, 1), None, "nothing has begun");
        assert!(assembly.check_first(A, 10, 11).is_err() && assembly.check_first(A, 10, 10).is_ok());
        assembly.begin(&mut Attention::default(), A, Sink::Discard, 100, 40);
        assert!(assembly.check_first(A, 10, 10).is_err(), "another message is under way");
        assert_eq!(advance(&mut assembly, 56), Some((40, false)));
        assert_eq!(advance(&mut assembly, 5), None, "that is more than was announced");
        assert_eq!(advance(&mut assembly, 4), Some((96, true)));
        assert!(matches!(assembly.end(A), Sink::Discard) && assembly.advance(A, 1).is_err());
        assert!(assembly.check_first(A, 10, 10).is_ok(), "the next may begin");
    }

    #[test]
    fn parts_of_a_message_of_our_own_are_kept_in_one_place() {
        let mut assembly: Assembly<Bytes> = Assembly::new(1);
        for round in 0..2 {
            assembly.begin_control(&mut Attention::default(), A, DeferralNotice.into(), 6);
            assembly.keep(A, &[round, 2, 3]);
            assembly.keep(A, &[4, 5, 6]);
            assert!(matches!(assembly.end(A), Sink::Control(_)));
            let scratch = assembly.take_scratch();
            assert_eq!(scratch, [round, 2, 3, 4, 5, 6]);
            assembly.return_scratch(scratch);
        }
        assert!(!assembly.is_under_way() && assembly.is_idle(A));
    }

    #[test]
    fn states_of_peers_go_when_others_send_but_for_those_of_messages_under_way() {
        let mut assembly: Assembly<Bytes> = Assembly::new(3);
        let begin = |assembly: &mut Assembly<Bytes>, peer| {
            assembly.begin(&mut Attention::default(), PeerId(peer), Sink::Discard, 100, 40);
        };
        let kept = |assembly: &Assembly<Bytes>| assembly.of_peers.all().map(|(peer, _)| peer.0).collect::<Vec<_>>();
        (0..3).for_each(|peer| begin(&mut assembly, peer));
        (0..2).for_each(|peer| assert!(matches!(assembly.end(PeerId(peer)), Sink::Discard)));
        assert_eq!(kept(&assembly), [1, 2], "the last, and one that is under way");
        begin(&mut assembly, 1);
        assembly.end(PeerId(2));
        assert_eq!((kept(&assembly), assembly.under_way), (vec![1, 2], 1), "the one before the last has begun again");
        assembly.end(PeerId(1));
        assembly.release(PeerId(1));
        assert_eq!((kept(&assembly), assembly.under_way), (vec![], 0));
        assert!(matches!(assembly.end(PeerId(1)), Sink::Idle) && assembly.advance(PeerId(1), 1).is_err());
    }

    #[test]
    fn what_does_not_fit_a_buffer_is_left_out() {
        let mut buffer = Bytes::new(&[0; 4]);
        write_clipped(&mut buffer, 2, &[1, 2, 3]);
        write_clipped(&mut buffer, 9, &[7]);
        assert_eq!(buffer.to_vec(), [0, 0, 1, 2]);
    }
}
