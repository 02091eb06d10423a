//! [`Kept`]: sends whose payload the receivers have not got, and by which way it leaves.

use super::bounce::BouncePool;
use super::send::PendingSend;
use super::streams::{Stream, Streams};
use crate::collections::slab::{Key, Slab};
use crate::link::{BounceBuffers, Buffer};
use tidegate_flow::{PeerId, Peers};

/// See the module.
#[derive(Debug)]
pub(crate) struct Kept<B> {
    /// Our bounce buffers.
    pub(super) bounces: BouncePool,
    /// What leaves through mailboxes, piece by piece.
    pub(super) streams: Streams<B>,
    /// By rendezvous, or deferred.
    sends: Slab<PendingSend<B>>,
    /// By peer: whether it read the last long message of ours out of our memory.
    readers: Peers<bool, 64>,
}

impl<B: Buffer> Kept<B> {
    /// Most heap bytes of the tables of peers: when long messages have gone to all `peers`.
    pub(crate) const fn bytes_most(peers: u32) -> usize {
        Streams::<B>::bytes_most(peers) + Peers::<bool, 64>::bytes_most(peers)
    }

    pub(crate) fn new(peers: u32, bounce_buffers: BounceBuffers) -> Self {
        Kept {
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
    use super::super::bounce::Use;
    use super::super::send::Payload;
    use super::*;
    use crate::control_size::ControlSize;
    use crate::operation::Space;
    use crate::testing::Bytes;

    const A: PeerId = PeerId(0);

    /// Bounce buffers of 10 bytes, and a send of 100 bytes to A.
    fn kept() -> (Kept<Bytes>, Key) {
        let mut kept = Kept::new(2, BounceBuffers { count: 8, bytes: 10 });
        let payload = Payload::Application(Bytes::new(&[1; 100]));
        let key = kept.keep(PendingSend::new(A, Space::Untagged, None, false, payload, None));
        (kept, key)
    }

    #[test]
    fn a_send_is_streamed_once_and_within_its_length() {
        let (mut kept, key) = kept();
        for (wanted, position) in [(101, 0), (50, 50), (0, 0)] {
            assert_eq!(kept.begin_stream(key, wanted, position), None, "{position} to {wanted}");
        }
        assert!(!kept.is_streamed(key));
        assert_eq!((kept.begin_stream(key, 100, 10), kept.is_streamed(key)), (Some(()), true));
    }

    #[test]
    fn nothing_of_a_send_that_is_gone_leaves_any_more() {
        let (mut kept, key) = kept();
        kept.push_stream(Stream::new(A, key, 7, Bytes::new(&[1; 100]), 0));
        let stream = kept.streams.pop(A).expect("it was pushed");
        kept.return_stream(stream, false);
        assert_eq!(kept.streams.len(), 1);
        assert!(kept.remove(key).is_some() && kept.streams.len() == 0);
        kept.return_stream(Stream::new(A, key, 7, Bytes::new(&[1; 100]), 0), true);
        assert_eq!((kept.streams.len(), kept.sends(), kept.send(key).is_none()), (0, 0, true));
    }

    #[test]
    fn a_receiver_that_read_a_long_message_will_read_the_next() {
        let (mut kept, key) = kept();
        assert!(kept.bounces.take(A, ControlSize::MOST, key, Use::Ahead).is_some() && !kept.reads_memory(A, 100));
        let send = kept.remove(key).expect("it is there");
        kept.note_finished(key, &send);
        assert!(kept.reads_memory(A, 100) && !kept.reads_memory(A, 10), "a short one fits a bounce buffer");
        assert!(!kept.reads_memory(PeerId(1), 100));
        kept.release(A);
        assert!(!kept.reads_memory(A, 100), "the place is another's");
    }
}
