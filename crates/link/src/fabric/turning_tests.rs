//! Memory of several peers is read in turn: one after the other where that is the order, and never behind one that does
//! not deliver.

use super::network::Token;
use super::reads::{Chunking, Reads};
use crate::memory::IoBuffer;
use std::collections::VecDeque;
use std::time::Duration;
use tidegate_flow::{Instant, PeerId};
use tidegate_message::{BulkOrder, RemoteMemory, Span, TransferId, TransferStatus, TurnRules};

const CHUNK: usize = 1000;
const CHUNKING: Chunking = Chunking { bytes: CHUNK, per_peer: 4, shared: 16 };
const STALL: Duration = Duration::from_millis(20);
const MOMENT: Duration = Duration::from_millis(1);

/// What is read, and the chunks that the network has been asked for.
struct Receiver {
    reads: Reads,
    chunks: VecDeque<(PeerId, Token)>,
    now: Instant,
}

impl Receiver {
    fn new(order: BulkOrder, quantum: usize) -> Receiver {
        let mut reads = Reads::default();
        reads.set_chunking(CHUNKING);
        reads.set_rules(TurnRules { order, senders: 1, quantum, ordered_from: CHUNK, stall: STALL });
        Receiver { reads, chunks: VecDeque::new(), now: Instant::from_nanos(1_000_000_000) }
    }

    /// Begins a transfer of so many chunks.
    fn begin(&mut self, id: u32, peer: u32, chunks: usize) {
        let into = IoBuffer::leaked(&vec![0; chunks * CHUNK], &[chunks * CHUNK]);
        let from = [RemoteMemory { key: 1, span: Span { address: 0, length: (chunks * CHUNK) as u64 } }];
        assert!(self.reads.begin(TransferId(id), PeerId(peer), &from, into));
    }

    /// Asks for what may begin, as `Protocol::begin_reads` does. Returns who is asked.
    fn ask(&mut self) -> Vec<u32> {
        self.reads.give_turns(self.now);
        let before = self.chunks.len();
        for _ in 0..self.reads.turns() {
            let Some(peer) = self.reads.next_peer() else { break };
            while let Some(chunk) = self.reads.next_chunk(peer, self.now) {
                self.chunks.push_back((peer, chunk.token));
            }
        }
        while let Some(peer) = self.reads.order().poll_question() {
            assert!(self.reads.order().handle_booked(peer));
        }
        self.chunks.iter().skip(before).map(|(peer, _)| peer.0).collect()
    }

    /// The oldest chunk comes that is not of `silent`. Returns whose it is.
    fn come(&mut self, silent: Option<u32>) -> Option<u32> {
        self.now = self.now + MOMENT;
        let at = self.chunks.iter().position(|(peer, _)| Some(peer.0) != silent)?;
        let (peer, token) = self.chunks.remove(at)?;
        assert_eq!(self.reads.handle_ended(token, false, self.now), None);
        Some(peer.0)
    }

    /// Lets everything come, and tells in which order transfers ended.
    fn run(&mut self, silent: Option<u32>) -> Vec<u32> {
        let mut ended = Vec::new();
        for _ in 0..1000 {
            self.ask();
            self.come(silent);
            ended.extend(std::iter::from_fn(|| self.reads.poll_ended()).map(|(id, status)| {
                assert_eq!(status, TransferStatus::Done);
                id.0
            }));
        }
        ended
    }
}

#[test]
fn round_robin_asks_all_peers_at_once() {
    let mut receiver = Receiver::new(BulkOrder::RoundRobin, 4 * CHUNK);
    (0..3).for_each(|peer| receiver.begin(peer, peer, 6));
    assert_eq!(receiver.ask(), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    assert_eq!(receiver.run(None), [0, 1, 2]);
}

#[test]
fn one_sender_is_asked_after_the_other_and_short_transfers_wait_for_none() {
    for order in [BulkOrder::OneSender, BulkOrder::Booking] {
        let mut receiver = Receiver::new(order, 100 * CHUNK);
        (0..3).for_each(|peer| receiver.begin(peer, peer, 6));
        receiver.begin(7, 2, 1);
        assert_eq!(receiver.ask(), [0, 0, 0, 0, 2], "{order}");
        assert_eq!((receiver.come(None), receiver.ask()), (Some(0), vec![0]));
        assert_eq!(receiver.run(None), [7, 0, 1, 2], "{order}");
        assert!(!receiver.reads.is_busy() && receiver.reads.next_begin().is_none());
    }
}

#[test]
fn a_turn_ends_after_a_quantum() {
    let mut receiver = Receiver::new(BulkOrder::OneSender, 2 * CHUNK);
    (0..2).for_each(|peer| receiver.begin(peer, peer, 6));
    let mut asked = receiver.ask();
    while receiver.come(None).is_some() {
        asked.extend(receiver.ask());
    }
    assert_eq!(asked, [0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1]);
}

#[test]
fn a_peer_that_computes_holds_up_nobody_and_comes_back() {
    for order in [BulkOrder::OneSender, BulkOrder::Booking] {
        let mut receiver = Receiver::new(order, 2 * CHUNK);
        (0..3).for_each(|peer| receiver.begin(peer, peer, 6));
        let asked = receiver.ask();
        assert!(asked.iter().all(|peer| *peer == 0), "{asked:?}");
        assert!(receiver.reads.next_begin().is_some_and(|due| due <= receiver.now + STALL));
        let begun = receiver.now;
        let ended = receiver.run(Some(0));
        assert_eq!((ended, receiver.reads.stalls()), (vec![1, 2], 1), "{order}");
        assert!(receiver.now.since(begun) >= STALL);
        assert_eq!(receiver.run(None), [0], "{order}");
    }
}

#[test]
fn a_turn_ends_with_a_transfer_that_is_stopped_and_with_its_peer() {
    let mut receiver = Receiver::new(BulkOrder::OneSender, 100 * CHUNK);
    (0..3).for_each(|peer| receiver.begin(peer, peer, 6));
    assert_eq!(receiver.ask(), [0; 4]);
    assert!(!receiver.reads.cancel(TransferId(0)), "the network still reads");
    assert_eq!(receiver.ask(), [1; 4]);
    receiver.reads.end_peer(PeerId(1));
    assert_eq!(receiver.ask(), [2; 4]);
    while receiver.come(Some(2)).is_some() {}
    let ended = std::iter::from_fn(|| receiver.reads.poll_ended()).collect::<Vec<_>>();
    let ended_as = [(TransferId(0), TransferStatus::Failed), (TransferId(1), TransferStatus::Unreachable)];
    assert_eq!(ended, ended_as);
    assert_eq!(receiver.run(None), [2]);
}

#[test]
fn chunks_that_fail_are_asked_for_again_within_the_turn() {
    let mut receiver = Receiver::new(BulkOrder::OneSender, 2 * CHUNK);
    (0..2).for_each(|peer| receiver.begin(peer, peer, 4));
    assert_eq!(receiver.ask(), [0, 0]);
    let (peer, token) = receiver.chunks.pop_front().expect("it was asked for");
    assert_eq!(receiver.reads.handle_ended(token, true, receiver.now), Some(peer));
    receiver.now = receiver.now + 3 * MOMENT;
    assert_eq!(receiver.ask(), [0], "after a pause");
    assert_eq!(receiver.run(None), [0, 1]);
}

#[test]
fn a_peer_that_cannot_be_read_any_more_may_still_answer() {
    let mut receiver = Receiver::new(BulkOrder::Booking, 2 * CHUNK);
    receiver.begin(0, 0, 6);
    receiver.begin(1, 1, 6);
    receiver.reads.give_turns(receiver.now);
    while let Some(chunk) = receiver.reads.next_chunk(PeerId(0), receiver.now) {
        receiver.chunks.push_back((PeerId(0), chunk.token));
    }
    assert_eq!(receiver.reads.order().poll_question(), Some(PeerId(0)), "it learns that we are busy with it");
    while !receiver.reads.is_broken(PeerId(0)) {
        let (_, token) = receiver.chunks.pop_front().expect("it was asked for");
        assert_eq!(receiver.reads.handle_ended(token, true, receiver.now), Some(PeerId(0)));
        receiver.now = receiver.now + 20 * STALL;
        while let Some(chunk) = receiver.reads.next_chunk(PeerId(0), receiver.now) {
            receiver.chunks.push_back((PeerId(0), chunk.token));
        }
    }
    for (_, token) in std::mem::take(&mut receiver.chunks) {
        receiver.reads.handle_ended(token, true, receiver.now);
    }
    assert_eq!(receiver.reads.poll_ended(), Some((TransferId(0), TransferStatus::Unreachable)));
    assert!(receiver.reads.order().handle_booked(PeerId(0)) && !receiver.reads.order().handle_booked(PeerId(0)));
    assert_eq!(receiver.run(None), [1]);
}

#[test]
fn a_long_transfer_goes_on_however_many_short_ones_of_its_peer_come() {
    for order in BulkOrder::ALL {
        let mut receiver = Receiver::new(order, 2 * CHUNK);
        receiver.begin(0, 0, 6);
        let ended = (1..60).any(|id| {
            // There are always more of them than may be under way.
            (0..CHUNKING.per_peer as u32).for_each(|more| receiver.begin(100 * id + more, 0, 1));
            receiver.ask();
            (0..CHUNKING.per_peer).for_each(|_| _ = receiver.come(None));
            std::iter::from_fn(|| receiver.reads.poll_ended()).any(|(id, _)| id == TransferId(0))
        });
        assert!(ended, "{order}");
    }
}
