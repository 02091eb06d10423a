//! [`Streams`]: bulk data that leaves through mailboxes, piece by piece, and whose turn it is.
//!
//! A program may have any number of long messages on their way, and each packet may be what one of them waits for. *The simple idea*, one
//! queue in which everything is tried again, makes every packet pay for all of them. But streams to one peer wait for the same
//! two things: that nothing else waits to leave to it, and, if they carry an announced message, for its bounce buffers. So each
//! peer has two queues, and the first stream of a queue that cannot go on speaks for all behind it.

use crate::rendezvous::{Stream, StreamKind};
use std::collections::VecDeque;
use std::fmt;
use tidegate_flow::PeerId;

/// What the streams of a queue wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Announced messages: for bounce buffers, where there are any.
    Announced,
    /// RMA: only for the mailbox.
    Remote,
}

impl Lane {
    fn of(kind: &StreamKind) -> Lane {
        match kind {
            StreamKind::Announced { .. } => Lane::Announced,
            StreamKind::ReadData { .. } | StreamKind::Write { .. } => Lane::Remote,
        }
    }

    pub(crate) fn other(self) -> Lane {
        match self {
            Lane::Announced => Lane::Remote,
            Lane::Remote => Lane::Announced,
        }
    }
}

/// The streams to one peer.
#[derive(Debug)]
struct PeerStreams<B> {
    /// By [`Lane`].
    queues: [VecDeque<Stream<B>>; 2],
    /// Which queue has its turn first the next time, so that neither starves.
    first: Lane,
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
        let none = || PeerStreams { queues: Default::default(), first: Lane::Announced, is_listed: false };
        let of_peers = std::iter::repeat_with(none).take(peers).collect();
        Streams { of_peers, peers: VecDeque::new(), count: 0, looks: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn queue(&mut self, peer: PeerId, lane: Lane) -> &mut VecDeque<Stream<B>> {
        &mut self.of_peers[peer.0 as usize].queues[lane as usize]
    }

    /// Adds a stream behind all others to its peer.
    pub(crate) fn push(&mut self, stream: Stream<B>) {
        let peer = stream.to;
        self.queue(peer, Lane::of(&stream.kind)).push_back(stream);
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
        streams.is_listed = streams.queues.iter().any(|queue| !queue.is_empty());
        if streams.is_listed {
            self.peers.push_back(peer);
        }
        Some(peer)
    }

    /// The queues in which something is.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (PeerId, Lane)> {
        self.peers.iter().flat_map(|&peer| {
            let queues = &self.of_peers[peer.0 as usize].queues;
            let lanes = [Lane::Announced, Lane::Remote].into_iter();
            lanes.filter(|lane| !queues[*lane as usize].is_empty()).map(move |lane| (peer, lane))
        })
    }

    /// Which queue of a peer is first.
    pub(crate) fn first_lane(&self, peer: PeerId) -> Lane {
        self.of_peers[peer.0 as usize].first
    }

    /// Lets the other queue of a peer be first, if something is in both.
    pub(crate) fn swap_lanes(&mut self, peer: PeerId) {
        let streams = &mut self.of_peers[peer.0 as usize];
        if streams.queues.iter().all(|queue| !queue.is_empty()) {
            streams.first = streams.first.other();
        }
    }

    /// How often a stream was looked at so far, whether it could go on or not.
    pub(crate) fn looks(&self) -> u64 {
        self.looks
    }

    /// How many streams are in a queue.
    pub(crate) fn len_of(&mut self, peer: PeerId, lane: Lane) -> usize {
        self.queue(peer, lane).len()
    }

    /// Takes the first stream of a queue, for a turn.
    pub(crate) fn pop(&mut self, peer: PeerId, lane: Lane) -> Option<Stream<B>> {
        let stream = self.queue(peer, lane).pop_front()?;
        self.count -= 1;
        self.looks += 1;
        Some(stream)
    }

    /// Puts a stream back that could not go on: it is first again.
    pub(crate) fn put_back(&mut self, stream: Stream<B>) {
        self.count += 1;
        self.queue(stream.to, Lane::of(&stream.kind)).push_front(stream);
    }

    /// Removes the streams to a peer for which `unwanted` holds. Looks at all streams to it.
    pub(crate) fn remove_where(&mut self, peer: PeerId, unwanted: impl Fn(&StreamKind) -> bool) {
        for queue in &mut self.of_peers[peer.0 as usize].queues {
            let before = queue.len();
            self.looks += before as u64;
            queue.retain(|stream| !unwanted(&stream.kind));
            self.count -= before - queue.len();
        }
    }

    /// Removes all streams that read a region of ours. Returns for each whose they are and the reader's operation.
    pub(crate) fn remove_reads_of(&mut self, key: u64) -> Vec<(PeerId, u32)> {
        let mut readers = Vec::new();
        for peer in &self.peers {
            let queue = &mut self.of_peers[peer.0 as usize].queues[Lane::Remote as usize];
            queue.retain(|stream| match stream.kind {
                StreamKind::ReadData { operation, region, .. } if region == key => {
                    readers.push((stream.to, operation));
                    false
                }
                _ => true,
            });
        }
        self.count -= readers.len();
        readers
    }
}
