//! [`Streams`]: bulk data that leaves through mailboxes, piece by piece, and whose turn it is.
//!
//! A program may have any number of long messages on their way, and each packet may be what one of them waits for. *The simple idea*, one
//! queue in which everything is tried again, makes every packet pay for all of them. But streams to one peer wait for the same
//! two things: that nothing else waits to leave to it, and for its bounce buffers. So each peer has a queue, and the first stream
//! that cannot go on speaks for all behind it.

use crate::rendezvous::Stream;
use crate::slab::Key;
use std::collections::VecDeque;
use std::fmt;
use tidegate_flow::PeerId;

/// The streams to one peer.
#[derive(Debug)]
struct PeerStreams<B> {
    queue: VecDeque<Stream<B>>,
    /// Whether the peer is in `Streams::peers`.
    is_listed: bool,
}

/// All streams.
pub(crate) struct Streams<B> {
    /// By peer.
    of_peers: Box<[PeerStreams<B>]>,
    /// Peers with streams, in the order of their turns. One whose last stream has ended leaves at its turn.
    peers: VecDeque<PeerId>,
    count: usize,
    /// How often a stream was looked at so far.
    looks: u64,
}

/// The past makes no difference.
impl<B: fmt::Debug> fmt::Debug for Streams<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Streams").field(&self.of_peers).field(&self.peers).finish()
    }
}

impl<B> Streams<B> {
    /// What it takes per peer that has none, in bytes.
    pub(crate) const BYTES_PER_PEER: usize = size_of::<PeerStreams<B>>() + 2 * size_of::<PeerId>();

    pub(crate) fn new(peers: usize) -> Self {
        let none = || PeerStreams { queue: VecDeque::new(), is_listed: false };
        let of_peers = std::iter::repeat_with(none).take(peers).collect();
        Streams { of_peers, peers: VecDeque::new(), count: 0, looks: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    fn queue(&mut self, peer: PeerId) -> &mut VecDeque<Stream<B>> {
        &mut self.of_peers[peer.0 as usize].queue
    }

    /// Adds a stream behind all others to its peer.
    pub(crate) fn push(&mut self, stream: Stream<B>) {
        let peer = stream.to;
        self.queue(peer).push_back(stream);
        self.count += 1;
        if !std::mem::replace(&mut self.of_peers[peer.0 as usize].is_listed, true) {
            self.peers.push_back(peer);
        }
    }

    /// How many peers have a turn.
    pub(crate) fn turns(&self) -> usize {
        self.peers.len()
    }

    /// The peer whose turn it is; the next turn is the next one's.
    pub(crate) fn next_peer(&mut self) -> Option<PeerId> {
        let peer = self.peers.pop_front()?;
        let streams = &mut self.of_peers[peer.0 as usize];
        streams.is_listed = !streams.queue.is_empty();
        if streams.is_listed {
            self.peers.push_back(peer);
        }
        Some(peer)
    }

    /// The peers to which there are streams.
    pub(crate) fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.peers.iter().copied().filter(|peer| !self.of_peers[peer.0 as usize].queue.is_empty())
    }

    /// How often a stream was looked at so far, whether it could go on or not.
    pub(crate) fn looks(&self) -> u64 {
        self.looks
    }

    /// How many streams there are to a peer.
    pub(crate) fn len_of(&mut self, peer: PeerId) -> usize {
        self.queue(peer).len()
    }

    /// Takes the first stream to a peer, for a turn.
    pub(crate) fn pop(&mut self, peer: PeerId) -> Option<Stream<B>> {
        let stream = self.queue(peer).pop_front()?;
        self.count -= 1;
        self.looks += 1;
        Some(stream)
    }

    /// Puts a stream back that could not go on: it is first again.
    pub(crate) fn put_back(&mut self, stream: Stream<B>) {
        self.count += 1;
        self.queue(stream.to).push_front(stream);
    }

    /// Removes the streams of those sends to a peer for which `unwanted` holds. Looks at all streams to it.
    pub(crate) fn remove_where(&mut self, peer: PeerId, unwanted: impl Fn(Key) -> bool) {
        let queue = &mut self.of_peers[peer.0 as usize].queue;
        let before = queue.len();
        queue.retain(|stream| !unwanted(stream.send));
        self.count -= before - queue.len();
        self.looks += before as u64;
    }
}
