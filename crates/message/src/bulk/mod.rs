//! Bulk data. Rendezvous (P §3): for a long message a small one leaves first, the request to send (RTS); the receiver,
//! once it has matched it, gets the payload and says so.
//!
//! Three ways to get it. Where the link reaches the sender's memory the receiver reads it, a bounded number of bytes
//! per progress call, and no slot is used. Where the link has *bounce buffers*, the sender copies a piece into one, the
//! receiver copies it out, and a packet each way says so; the first piece travels with the request to send, so a
//! message that fits one buffer takes one hop. Elsewhere, or when no buffer is free, pieces go through the mailbox
//! packet by packet. For the latter two the receiver has to send a clear to send (CTS), and both are under flow
//! control; pieces for a peer wait until nothing else does, so they delay other messages to it by one piece at most. In
//! the end `Finished` (FIN) tells the sender that its buffer is free, which is also the receipt that
//! `FI_DELIVERY_COMPLETE` wants.

mod bounce;
mod gate;
mod pull;
mod send;
mod streams;
mod way;

use crate::collections::slab::{Key, Slab};
use crate::link::{BounceBuffers, Buffer};
use streams::Streams;
use tidegate_flow::{PeerId, Peers};

pub(crate) use bounce::{BouncePool, Use};
pub(crate) use gate::{Gate, PIECES_PER_TURN, Pieces};
pub(crate) use pull::{Next, Part, Pull, Pulls, Waited};
pub(crate) use send::{Payload, PendingSend};
pub(crate) use streams::Stream;
pub(crate) use way::Way;

/// Everything large that is on its way, in both directions.
#[derive(Debug)]
pub(crate) struct Bulk<B> {
    pub(crate) gate: Gate,
    /// Messages of peers that are being pulled.
    pub(crate) pulls: Pulls<B>,
    /// Our bounce buffers.
    pub(crate) bounces: BouncePool,
    /// What leaves through mailboxes, piece by piece.
    pub(crate) streams: Streams<B>,
    /// Sends whose payload the receivers have not got: by rendezvous, or deferred.
    sends: Slab<PendingSend<B>>,
    /// By peer: whether it read the last long message of ours out of our memory.
    readers: Peers<bool, 64>,
}

impl<B: Buffer> Bulk<B> {
    /// Most heap bytes of the tables of peers: when long messages have gone to all `peers`.
    pub(crate) const fn bytes_most(peers: u32) -> usize {
        Streams::<B>::bytes_most(peers) + Peers::<bool, 64>::bytes_most(peers)
    }

    pub(crate) fn new(peers: u32, bounce_buffers: BounceBuffers) -> Self {
        Bulk {
            gate: Gate::default(),
            pulls: Pulls::new(),
            bounces: BouncePool::new(bounce_buffers),
            streams: Streams::new(peers),
            sends: Slab::new(),
            readers: Peers::new(peers, ()),
        }
    }

    /// How many sends have not been received.
    #[inline]
    pub(crate) fn sends(&self) -> usize {
        self.sends.len()
    }

    /// Whether one more send can be kept.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.sends.has_room()
    }

    pub(crate) fn keep(&mut self, send: PendingSend<B>) -> Key {
        self.sends.insert(send)
    }

    pub(crate) fn send(&self, key: Key) -> Option<&PendingSend<B>> {
        self.sends.get(key)
    }

    pub(crate) fn send_mut(&mut self, key: Key) -> Option<&mut PendingSend<B>> {
        self.sends.get_mut(key)
    }

    /// Whether a send is to this peer, and with us.
    pub(crate) fn is_to(&self, key: Key, peer: PeerId) -> bool {
        self.sends.get(key).is_some_and(|send| send.peer == peer)
    }

    /// Sends that are kept, in so many places from one on.
    pub(crate) fn some_sends(&self, from: usize, places: usize) -> impl Iterator<Item = (Key, &PendingSend<B>)> {
        self.sends.some(from, places)
    }

    /// How many places there are for them.
    pub(crate) fn send_places(&self) -> usize {
        self.sends.places()
    }

    pub(crate) fn sends_to(&self, peer: PeerId) -> Vec<Key> {
        self.sends.keys_where(|send| send.peer == peer)
    }

    /// Whether there is a send to this peer; looked for from place `from` on, which then is where one was found.
    pub(crate) fn has_send_to(&self, peer: PeerId, from: &mut usize) -> bool {
        self.sends.find_around(from, |send| send.peer == peer)
    }

    pub(crate) fn all_sends(&self) -> Vec<Key> {
        self.sends.keys_where(|_| true)
    }

    /// How many sends to a peer are deferred.
    pub(crate) fn deferred_to(&self, peer: PeerId) -> usize {
        self.sends.keys_where(|send| send.peer == peer && send.deferred.is_some()).len()
    }

    /// A send is with us no longer, and nothing of it leaves any more.
    pub(crate) fn remove(&mut self, key: Key) -> Option<PendingSend<B>> {
        let send = self.sends.remove(key)?;
        if let Some(at) = send.stream {
            self.streams.remove(at, key);
        }
        Some(send)
    }

    /// The receiver has this send: learns by which way it got it, and frees its bounce buffers.
    pub(crate) fn note_finished(&mut self, key: Key, send: &PendingSend<B>) {
        if send.length > self.bounces.bytes() {
            *self.readers.of(send.peer) = !send.is_streamed;
        }
        self.bounces.free_send(key);
    }

    /// Whether the receiver will rather read a message of this length from memory, as it did last time.
    pub(crate) fn reads_memory(&self, peer: PeerId, length: usize) -> bool {
        length > self.bounces.bytes() && self.readers.get(peer) == Some(&true)
    }

    /// The receiver's clear to send for a send, from `position` on until it has `wanted` bytes. `None`: no correct
    /// receiver sends such a one.
    pub(crate) fn begin_stream(&mut self, key: Key, wanted: usize, position: usize) -> Option<()> {
        let send = self.sends.get_mut(key)?;
        if position >= wanted || wanted > send.length {
            return None;
        }
        send.is_streamed = true;
        if position > 0 {
            // The receiver has copied the first piece.
            self.bounces.free_send(key);
        }
        Some(())
    }

    /// Whether the receiver's clear to send for this send has come before.
    pub(crate) fn is_streamed(&self, key: Key) -> bool {
        self.sends.get(key).is_some_and(|send| send.is_streamed)
    }

    /// Adds the stream of a send behind all others to its peer.
    pub(crate) fn push_stream(&mut self, stream: Stream<B>) {
        let key = stream.send();
        let at = self.streams.push(stream);
        if let Some(send) = self.sends.get_mut(key) {
            send.stream = Some(at);
        }
    }

    /// A stream had its turn: it ends, or goes behind the others, or, if it has not moved, is first again. Its send may
    /// be gone.
    pub(crate) fn return_stream(&mut self, stream: Stream<B>, has_moved: bool) {
        let Some(send) = self.sends.get_mut(stream.send()) else { return };
        send.stream = match stream.is_over() {
            true => None,
            false if has_moved => Some(self.streams.push(stream)),
            false => Some(self.streams.put_back(stream)),
        };
    }

    /// The place of a peer that is gone goes to another.
    pub(crate) fn release(&mut self, peer: PeerId) {
        self.readers.forget(peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_size::ControlSize;
    use crate::operation::Space;
    use crate::testing::Bytes;

    const A: PeerId = PeerId(0);

    /// A bulk part with bounce buffers of 10 bytes, and a send of 100 bytes to A.
    fn bulk() -> (Bulk<Bytes>, Key) {
        let mut bulk = Bulk::new(2, BounceBuffers { count: 8, bytes: 10 });
        let payload = Payload::Application(Bytes::new(&[1; 100]));
        let key = bulk.keep(PendingSend::new(A, Space::Untagged, None, false, payload, None));
        (bulk, key)
    }

    #[test]
    fn a_send_is_streamed_once_and_within_its_length() {
        let (mut bulk, key) = bulk();
        for (wanted, position) in [(101, 0), (50, 50), (0, 0)] {
            assert_eq!(bulk.begin_stream(key, wanted, position), None, "{position} to {wanted}");
        }
        assert!(!bulk.is_streamed(key));
        assert_eq!((bulk.begin_stream(key, 100, 10), bulk.is_streamed(key)), (Some(()), true));
    }

    #[test]
    fn nothing_of_a_send_that_is_gone_leaves_any_more() {
        let (mut bulk, key) = bulk();
        bulk.push_stream(Stream::new(A, key, 7, Bytes::new(&[1; 100]), 0));
        let stream = bulk.streams.pop(A).expect("it was pushed");
        bulk.return_stream(stream, false);
        assert_eq!(bulk.streams.len(), 1);
        assert!(bulk.remove(key).is_some() && bulk.streams.len() == 0);
        bulk.return_stream(Stream::new(A, key, 7, Bytes::new(&[1; 100]), 0), true);
        assert_eq!((bulk.streams.len(), bulk.sends(), bulk.send(key).is_none()), (0, 0, true));
    }

    #[test]
    fn a_receiver_that_read_a_long_message_will_read_the_next() {
        let (mut bulk, key) = bulk();
        assert!(bulk.bounces.take(A, ControlSize::MOST, key, Use::Ahead).is_some() && !bulk.reads_memory(A, 100));
        let send = bulk.remove(key).expect("it is there");
        bulk.note_finished(key, &send);
        assert!(bulk.reads_memory(A, 100) && !bulk.reads_memory(A, 10), "a short one fits a bounce buffer");
        assert!(!bulk.reads_memory(PeerId(1), 100));
        bulk.release(A);
        assert!(!bulk.reads_memory(A, 100), "the place is another's");
    }
}
