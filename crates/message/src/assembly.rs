//! The way in: packets become messages again.
//!
//! Per peer at most one message is being put together, because packets of one message follow each other. Its payload
//! goes straight to where it belongs: into the buffer of the receive that it matched when its first packet came, or
//! into memory of exactly its size if no receive was posted. What belongs to this crate alone (announcements, RMA
//! requests) is put together in a scratch buffer of bounded size.

use crate::collections::list::Position;
use crate::collections::slab::Key;
use crate::envelope::Envelope;
use crate::link::Buffer;
use crate::malformed::Malformed;
use crate::matching::Active;
use crate::operation::Queue;
use crate::wire::Message;
use tidegate_flow::PeerId;

/// Where the rest of a message goes whose first packet has come.
#[derive(Debug)]
pub(crate) enum Sink<B> {
    /// No message is under way.
    Idle,
    Receive(Active<B>, Envelope, Queue),
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
#[derive(Debug)]
struct Inbound<B> {
    sink: Sink<B>,
    /// Bytes of the body.
    length: usize,
    received: usize,
    /// Parts of a message of our own kinds.
    scratch: Vec<u8>,
}

impl<B> Inbound<B> {
    fn new() -> Self {
        Inbound { sink: Sink::Idle, length: 0, received: 0, scratch: Vec::new() }
    }
}

/// The messages that are being put together, one per peer at most.
#[derive(Debug)]
pub(crate) struct Assembly<B>(Vec<Inbound<B>>);

impl<B: Buffer> Assembly<B> {
    /// What a peer takes, in bytes.
    pub(crate) const PEER_BYTES: usize = size_of::<Inbound<B>>();

    pub(crate) fn new(peers: u32) -> Self {
        Assembly((0..peers).map(|_| Inbound::new()).collect())
    }

    #[inline]
    fn of(&mut self, peer: PeerId) -> &mut Inbound<B> {
        &mut self.0[peer.0 as usize]
    }

    /// Whether a message of so many bytes may begin here, of which the first packet has so many.
    #[inline]
    pub(crate) fn check_first(&self, from: PeerId, length: usize, part: usize) -> Result<(), Malformed> {
        let is_idle = matches!(self.0[from.0 as usize].sink, Sink::Idle);
        if is_idle && part <= length { Ok(()) } else { Err(Malformed) }
    }

    /// A message begins whose first `received` bytes have been placed.
    pub(crate) fn begin(&mut self, from: PeerId, sink: Sink<B>, length: usize, received: usize) {
        let inbound = self.of(from);
        (inbound.sink, inbound.length, inbound.received) = (sink, length, received);
    }

    /// A message of our own kinds begins.
    pub(crate) fn begin_control(&mut self, from: PeerId, head: Message, length: usize) {
        let scratch = &mut self.of(from).scratch;
        scratch.clear();
        scratch.reserve_exact(length);
        self.begin(from, Sink::Control(head), length, 0);
    }

    /// The next `part` bytes have come. Returns where they begin, and whether they are the last.
    pub(crate) fn advance(&mut self, from: PeerId, part: usize) -> Result<(usize, bool), Malformed> {
        let inbound = self.of(from);
        let offset = inbound.received;
        if matches!(inbound.sink, Sink::Idle) || part > inbound.length - offset {
            return Err(Malformed);
        }
        inbound.received += part;
        Ok((offset, inbound.received == inbound.length))
    }

    /// Where they go.
    pub(crate) fn sink_mut(&mut self, from: PeerId) -> &mut Sink<B> {
        &mut self.of(from).sink
    }

    /// Keeps a part of a message of our own kinds.
    pub(crate) fn keep(&mut self, from: PeerId, part: &[u8]) {
        self.of(from).scratch.extend_from_slice(part);
    }

    /// The message is whole, or will never be: takes where it went.
    pub(crate) fn end(&mut self, from: PeerId) -> Sink<B> {
        std::mem::replace(&mut self.of(from).sink, Sink::Idle)
    }

    /// The rest of the message goes elsewhere.
    pub(crate) fn redirect(&mut self, from: PeerId, sink: Sink<B>) {
        self.of(from).sink = sink;
    }

    /// The parts of a message of our own kinds, which are to be [returned](Self::return_scratch).
    pub(crate) fn take_scratch(&mut self, from: PeerId) -> Vec<u8> {
        std::mem::take(&mut self.of(from).scratch)
    }

    /// Their memory is used again.
    pub(crate) fn return_scratch(&mut self, from: PeerId, scratch: Vec<u8>) {
        self.of(from).scratch = scratch;
    }

    /// The place of a peer that is gone goes to another.
    pub(crate) fn release(&mut self, peer: PeerId) {
        *self.of(peer) = Inbound::new();
    }
}

/// Writes as much of `part` as the buffer has room for.
#[inline]
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
        assert!(assembly.advance(A, 1).is_err(), "nothing has begun");
        assert!(assembly.check_first(A, 10, 11).is_err() && assembly.check_first(A, 10, 10).is_ok());
        assembly.begin(A, Sink::Discard, 100, 40);
        assert!(assembly.check_first(A, 10, 10).is_err(), "another message is under way");
        assert_eq!(assembly.advance(A, 56).ok(), Some((40, false)));
        assert!(assembly.advance(A, 5).is_err(), "that is more than was announced");
        assert_eq!(assembly.advance(A, 4).ok(), Some((96, true)));
        assert!(matches!(assembly.end(A), Sink::Discard) && assembly.advance(A, 1).is_err());
    }

    #[test]
    fn parts_of_a_message_of_our_own_are_kept_in_one_place() {
        let mut assembly: Assembly<Bytes> = Assembly::new(1);
        for round in 0..2 {
            assembly.begin_control(A, DeferralNotice.into(), 6);
            assembly.keep(A, &[round, 2, 3]);
            assembly.keep(A, &[4, 5, 6]);
            let scratch = assembly.take_scratch(A);
            assert_eq!(scratch, [round, 2, 3, 4, 5, 6]);
            assembly.return_scratch(A, scratch);
        }
    }

    #[test]
    fn what_does_not_fit_a_buffer_is_left_out() {
        let mut buffer = Bytes::new(&[0; 4]);
        write_clipped(&mut buffer, 2, &[1, 2, 3]);
        write_clipped(&mut buffer, 9, &[7]);
        assert_eq!(buffer.to_vec(), [0, 0, 1, 2]);
    }
}
