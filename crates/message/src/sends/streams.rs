//! [`Streams`]: bulk data that leaves through mailboxes, piece by piece, and whose turn it is.
//!
//! A program may have any number of long messages on their way, and each packet may be what one of them waits for. *The
//! simple idea*, one queue in which everything is tried again, makes every packet pay for all of them. But streams to
//! one peer wait for the same two things: that nothing else waits to leave to it, and for its bounce buffers. So each
//! peer has a queue, and the first stream that cannot go on speaks for all behind it.

use crate::collections::list::{Chain, Links, Ordered, Position};
use crate::collections::slab::Key;
use crate::link::Buffer;
use std::collections::VecDeque;
use std::fmt;
use tidegate_flow::{PeerId, Peers};

/// A rendezvous send of ours that leaves in pieces, for the receiver's pull of this name.
#[derive(Debug)]
pub(crate) struct Stream<B> {
    to: PeerId,
    send: Key,
    pull: u32,
    buffer: B,
    position: usize,
    end: usize,
}

impl<B: Buffer> Stream<B> {
    /// What is left of `buffer` from `position` on.
    pub(crate) fn new(to: PeerId, send: Key, pull: u32, buffer: B, position: usize) -> Self {
        let end = buffer.len();
        Stream { to, send, pull, buffer, position, end }
    }

    pub(crate) fn to(&self) -> PeerId {
        self.to
    }

    pub(crate) fn send(&self) -> Key {
        self.send
    }

    /// The receiver's name for it.
    pub(crate) fn pull(&self) -> u32 {
        self.pull
    }

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn is_over(&self) -> bool {
        self.position == self.end
    }

    /// Takes the next piece, of so many bytes at most: where it begins, and its bytes.
    pub(crate) fn next_piece(&mut self, most: usize) -> (usize, B) {
        let (position, length) = (self.position, (self.end - self.position).min(most));
        self.position += length;
        (position, self.buffer.slice(position, length))
    }
}

/// A stream, and its neighbours in its peer's queue.
struct Queued<B> {
    stream: Stream<B>,
    links: Links,
}

impl<B> Queued<B> {
    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// The streams to one peer.
#[derive(Clone, Copy, Default)]
struct PeerStreams {
    queue: Chain,
    length: u32,
    /// Whether the peer is in `Streams::peers`.
    is_listed: bool,
}

/// All streams.
pub(crate) struct Streams<B> {
    list: Ordered<Queued<B>>,
    /// By peer.
    of_peers: Peers<PeerStreams>,
    /// Peers with streams, in the order of their turns. One whose last stream has ended leaves at its turn.
    peers: VecDeque<PeerId>,
    count: usize,
    /// How often a stream was looked at so far.
    looks: u64,
}

/// Shows the queues in order, and nothing of the past: how often streams were looked at, or where they lie in the list.
impl<B: fmt::Debug> fmt::Debug for Streams<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_peer = |peer: &PeerStreams| {
            let positions = std::iter::successors(peer.queue.first(), |at| {
                self.list.get(*at).and_then(|queued| queued.links.next())
            });
            positions.filter_map(|at| self.list.get(at)).map(|queued| &queued.stream).collect::<Vec<_>>()
        };
        let used = self.of_peers.contacted().filter(|(_, peer)| peer.length > 0 || peer.is_listed);
        let queues: Vec<_> = used.map(|(peer, streams)| (peer, of_peer(streams), streams.is_listed)).collect();
        f.debug_tuple("Streams").field(&queues).field(&self.peers).finish()
    }
}

impl<B> Streams<B> {
    /// Most heap bytes of the tables of peers: when there have been streams to all `peers`.
    pub(crate) const fn bytes_most(peers: u32) -> usize {
        Peers::<PeerStreams>::bytes_most(peers) + 2 * peers as usize * size_of::<PeerId>()
    }

    pub(crate) fn new(peers: u32) -> Self {
        let of_peers = Peers::new(peers, ());
        Streams { list: Ordered::new(), of_peers, peers: VecDeque::new(), count: 0, looks: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    fn of(&mut self, peer: PeerId) -> &mut PeerStreams {
        self.of_peers.of(peer)
    }

    /// Adds a stream behind all others to its peer. Returns where it is until it is popped or removed.
    pub(crate) fn push(&mut self, stream: Stream<B>) -> Position {
        let peer = stream.to;
        let at = self.list.push_back(Queued { stream, links: Links::default() });
        let streams = self.of_peers.of(peer);
        streams.queue.append(&mut self.list, at, Queued::links_mut);
        streams.length += 1;
        self.count += 1;
        if !std::mem::replace(&mut streams.is_listed, true) {
            self.peers.push_back(peer);
        }
        at
    }

    /// How many peers have a turn.
    pub(crate) fn turns(&self) -> usize {
        self.peers.len()
    }

    /// The peer whose turn it is; the next turn is the next one's.
    pub(crate) fn next_peer(&mut self) -> Option<PeerId> {
        let peer = self.peers.pop_front()?;
        let streams = self.of(peer);
        streams.is_listed = streams.length > 0;
        if streams.is_listed {
            self.peers.push_back(peer);
        }
        Some(peer)
    }

    /// The peers to which there are streams.
    pub(crate) fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.peers.iter().copied().filter(|&peer| self.len_of(peer) > 0)
    }

    /// How often a stream was looked at so far, whether it could go on or not.
    pub(crate) fn looks(&self) -> u64 {
        self.looks
    }

    /// How many streams there are to a peer.
    pub(crate) fn len_of(&self, peer: PeerId) -> usize {
        self.of_peers.get(peer).map_or(0, |streams| streams.length as usize)
    }

    /// Takes the first stream to a peer, for a turn.
    pub(crate) fn pop(&mut self, peer: PeerId) -> Option<Stream<B>> {
        let first = self.of_peers.get(peer)?.queue.first()?;
        self.take(first)
    }

    /// Puts a stream back that could not go on: it is first again. Returns where it is.
    pub(crate) fn put_back(&mut self, stream: Stream<B>) -> Position {
        let peer = stream.to;
        let at = self.list.push_back(Queued { stream, links: Links::default() });
        let streams = self.of_peers.of(peer);
        streams.queue.prepend(&mut self.list, at, Queued::links_mut);
        streams.length += 1;
        self.count += 1;
        at
    }

    /// Removes the stream of a send, if it is still at this position.
    pub(crate) fn remove(&mut self, at: Position, send: Key) {
        if self.list.get(at).is_some_and(|queued| queued.stream.send == send) {
            self.take(at);
        }
    }

    fn take(&mut self, at: Position) -> Option<Stream<B>> {
        let Queued { stream, links } = self.list.remove(at)?;
        let streams = self.of_peers.of(stream.to);
        streams.queue.take_out(&mut self.list, links, Queued::links_mut);
        streams.length -= 1;
        self.count -= 1;
        self.looks += 1;
        Some(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bytes;

    const A: PeerId = PeerId(0);
    const B: PeerId = PeerId(1);

    fn stream(to: PeerId, send: u32) -> Stream<Bytes> {
        Stream::new(to, Key(send), 7, Bytes::new(&[1; 100]), 10)
    }

    #[test]
    fn a_stream_is_cut_into_pieces_from_where_it_begins() {
        let mut stream = stream(A, 1);
        let lengths = [40, 40, 40].map(|most| {
            let (position, part) = stream.next_piece(most);
            (position, part.len())
        });
        assert_eq!((lengths, stream.is_over()), ([(10, 40), (50, 40), (90, 10)], true));
    }

    #[test]
    fn streams_to_one_peer_take_turns_and_one_that_could_not_go_on_is_first_again() {
        let mut streams = Streams::new(2);
        (1..4).for_each(|send| _ = streams.push(stream(A, send)));
        let first = streams.pop(A).expect("there are three");
        streams.put_back(first);
        let first = streams.pop(A).expect("there are three");
        assert_eq!(first.send(), Key(1));
        streams.push(first);
        let order = std::iter::from_fn(|| streams.pop(A)).map(|stream| stream.send().0);
        assert_eq!(order.collect::<Vec<_>>(), [2, 3, 1]);
    }

    #[test]
    fn peers_take_turns_and_one_without_streams_leaves_at_its_turn() {
        let mut streams = Streams::new(2);
        let of_a = streams.push(stream(A, 1));
        streams.push(stream(B, 2));
        assert_eq!([streams.next_peer(), streams.next_peer(), streams.next_peer()], [Some(A), Some(B), Some(A)]);
        streams.remove(of_a, Key(9));
        assert_eq!(streams.len_of(A), 1, "that is another send's");
        streams.remove(of_a, Key(1));
        assert_eq!((streams.len(), streams.peers().collect::<Vec<_>>()), (1, vec![B]));
        assert_eq!((streams.next_peer(), streams.turns()), (Some(B), 2));
        assert_eq!((streams.next_peer(), streams.turns()), (Some(A), 1));
    }
}
