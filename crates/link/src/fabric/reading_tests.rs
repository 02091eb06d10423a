//! Memory of peers read over a simulated network: all bytes arrive or the transfer says that they have not, whatever
//! the network does; memory is left alone from the moment on at which a transfer has ended.

use super::reads::{Chunking, Reads};
use super::testing::{Faults, Random};
use super::tests::{Job, MOMENT, Node, WHILE, greeting};
use crate::memory::IoBuffer;
use proptest::prelude::*;
use std::time::Duration;
use tidegate_flow::{Instant, PeerId};
use tidegate_message::{Buffer, LinkEvent, RemoteMemory, Span, TransferId, TransferStatus};

const CHUNK_BYTES: usize = Chunking::USUAL.bytes;
const CHUNKS_PER_PEER: usize = Chunking::USUAL.per_peer;
const CHUNKS_SHARED: usize = Chunking::USUAL.shared;

/// A node's `Link`, as far as it is about memory, without a clock.
impl Job {
    /// Exposes memory of a node; returns what it tells the other.
    fn expose(&mut self, node: usize, memory: &IoBuffer) -> (u64, Vec<RemoteMemory>) {
        let mut spans: Vec<Span> = memory.spans().collect();
        let key = super::network::Network::expose(&mut self.nodes[node].network, memory, &mut spans).unwrap();
        (key, spans.into_iter().map(|span| RemoteMemory { key, span }).collect())
    }

    fn begin(
        &mut self,
        node: usize,
        id: u32,
        from: PeerId,
        memory: &[RemoteMemory],
        into: &IoBuffer,
    ) -> TransferStatus {
        let Node { protocol, network } = &mut self.nodes[node];
        let status = protocol.begin_transfer(TransferId(id), from, memory, into.slice(0, into.len()));
        protocol.begin_reads(network, self.now);
        status
    }

    fn ended(&mut self, node: usize) -> Option<(u32, TransferStatus)> {
        match self.nodes[node].protocol.poll_event()? {
            LinkEvent::TransferEnded(id, status) => Some((id.0, status)),
            event => panic!("{event:?}"),
        }
    }
}

/// Bytes that differ from place to place.
fn pattern(length: usize, seed: u64) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(31).wrapping_add(at >> 8).wrapping_add(seed)) as u8).collect()
}

fn contents(buffer: &IoBuffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.len()];
    buffer.read(0, &mut bytes);
    bytes
}

/// Two nodes that know each other, and the place of the second in the table of the first.
fn two(seed: u64) -> (Job, PeerId) {
    let mut job = Job::new(2, seed);
    let to = job.peer(0, 1);
    job.steps(3, MOMENT);
    (job, to)
}

#[test]
fn scattered_memory_of_many_chunks_arrives() {
    let (mut job, to) = two(1);
    let bytes = pattern(3 * CHUNK_BYTES + 77, 5);
    let there = IoBuffer::leaked(&bytes, &[1, CHUNK_BYTES, 2 * CHUNK_BYTES + 70, 6]);
    let here = IoBuffer::leaked(&vec![0; bytes.len()], &[100, 3 * CHUNK_BYTES - 100, 77]);
    let (key, memory) = job.expose(1, &there);
    assert!(job.nodes[0].protocol.reads_memory(to));
    assert_eq!(job.begin(0, 7, to, &memory, &here), TransferStatus::Pending);
    job.steps(3, MOMENT);
    assert_eq!((job.ended(0), contents(&here) == bytes), (Some((7, TransferStatus::Done)), true));
    assert!(!job.nodes[0].protocol.is_reading() && job.ended(0).is_none());
    super::network::Network::hide(&mut job.nodes[1].network, key);
    assert_eq!(job.world.borrow().exposed_by(1), 0);
}

#[test]
fn what_is_not_exposed_is_refused_and_then_nothing_is_read_from_that_peer_any_more() {
    let (mut job, to) = two(1);
    let here = IoBuffer::leaked(&[0; 100], &[100]);
    let wrong = RemoteMemory { key: 99, span: Span { address: u64::MAX - 50, length: 100 } };
    assert_eq!(job.begin(0, 1, to, &[wrong], &here), TransferStatus::Pending);
    assert_eq!(job.begin(0, 2, to, &[wrong], &here), TransferStatus::Pending);
    let mut all: Vec<_> = (0..1000)
        .filter_map(|_| {
            job.step(MOMENT * 20);
            job.ended(0)
        })
        .collect();
    all.extend(job.ended(0));
    all.sort_by_key(|(id, _)| *id);
    assert_eq!(all, [(1, TransferStatus::Unreachable), (2, TransferStatus::Unreachable)]);
    assert!(!job.nodes[0].protocol.reads_memory(to), "its long messages go another way from now on");
    assert_eq!(job.begin(0, 3, to, &[wrong], &here), TransferStatus::Unreachable);
    assert_eq!(job.departure(0), None, "it lives");
}

#[test]
fn impossible_transfers_are_refused_at_once() {
    let (mut job, to) = two(1);
    let here = IoBuffer::leaked(&[0; 100], &[100]);
    let piece = |key, length| RemoteMemory { key, span: Span { address: 0, length } };
    for memory in
        [vec![], vec![piece(1, 101)], vec![piece(1, u64::MAX), piece(1, 2)], vec![piece(0, 100)], vec![piece(1, 0)]]
    {
        assert_eq!(job.begin(0, 1, to, &memory, &here), TransferStatus::Unreachable, "{memory:?}");
    }
    assert_eq!(job.begin(0, 1, PeerId(77), &[piece(1, 100)], &here), TransferStatus::Unreachable);
}

#[test]
fn nobody_reads_where_one_of_the_two_networks_cannot() {
    let mut job = Job::new(2, 1);
    let deaf = super::greeting::Greeting { reads_memory: false, ..greeting(1, 64) };
    job.nodes[1].protocol = super::protocol::Protocol::new(deaf, &super::tests::flow());
    let (to, back) = (job.peer(0, 1), job.peer(1, 0));
    job.steps(3, MOMENT);
    assert!(!job.nodes[0].protocol.reads_memory(to) && !job.nodes[0].protocol.may_be_read_by(to));
    assert!(!job.nodes[1].protocol.reads_memory(back) && !job.nodes[1].protocol.may_be_read_by(back));
}

#[test]
fn who_is_killed_ends_what_is_read_from_it() {
    let (mut job, to) = two(1);
    let bytes = pattern(20 * CHUNK_BYTES, 1);
    let there = IoBuffer::leaked(&bytes, &[bytes.len()]);
    let (_, memory) = job.expose(1, &there);
    let here = IoBuffer::leaked(&vec![0; bytes.len()], &[bytes.len()]);
    job.world.borrow_mut().compute(1, true);
    assert_eq!(job.begin(0, 1, to, &memory, &here), TransferStatus::Pending);
    job.steps(10, WHILE);
    assert_eq!((job.ended(0), job.world.borrow().reads_of(0)), (None, CHUNKS_PER_PEER), "it computes");
    assert!(!job.nodes[0].protocol.cancel_transfer(TransferId(1)), "the network writes to the memory");
    assert_eq!(job.begin(0, 2, to, &memory, &here), TransferStatus::Pending);
    job.world.borrow_mut().kill(1);
    job.nodes.remove(1);
    let mut events = Vec::new();
    for _ in 0..40 {
        job.step(WHILE);
        events.extend(std::iter::from_fn(|| job.nodes[0].protocol.poll_event()));
    }
    let ended = |id, status| LinkEvent::TransferEnded(TransferId(id), status);
    assert_eq!(events[..2], [ended(1, TransferStatus::Failed), ended(2, TransferStatus::Unreachable)]);
    assert!(matches!(&events[2..], [LinkEvent::Departed(departure)] if !departure.orderly));
}

#[test]
fn a_transfer_that_has_not_begun_is_stopped_at_once() {
    let (mut job, to) = two(1);
    let there = IoBuffer::leaked(&[1; 100], &[100]);
    let (_, memory) = job.expose(1, &there);
    let here = IoBuffer::leaked(&[0; 100], &[100]);
    job.world.borrow_mut().faults.again = 1000;
    job.begin(0, 1, to, &memory, &here);
    assert!(job.nodes[0].protocol.cancel_transfer(TransferId(1)));
    job.world.borrow_mut().faults.again = 0;
    job.steps(3, MOMENT);
    assert_eq!((job.ended(0), contents(&here)), (None, vec![0; 100]));
    // One whose end was about to be told is not told either.
    job.begin(0, 2, to, &memory, &here);
    job.steps(3, MOMENT);
    assert!(job.nodes[0].protocol.cancel_transfer(TransferId(2)));
    assert_eq!(job.ended(0), None);
}

#[test]
fn peers_that_compute_hold_up_nobody_else() {
    let (mut reads, now) = (Reads::default(), Instant::from_nanos(1));
    let here = IoBuffer::leaked(&vec![0; 20 * CHUNK_BYTES], &[20 * CHUNK_BYTES]);
    let peers = 30;
    for peer in 0..peers {
        let span = Span { address: 0, length: here.len() as u64 };
        assert!(reads.begin(
            TransferId(peer),
            PeerId(peer),
            &[RemoteMemory { key: 1, span }],
            here.slice(0, here.len())
        ));
    }
    let mut under_way = vec![Vec::new(); peers as usize];
    for _ in 0..peers {
        let peer = reads.next_peer().unwrap();
        while let Some(chunk) = reads.next_chunk(peer, now) {
            under_way[peer.0 as usize].push(chunk.token);
        }
    }
    let counts: Vec<_> = under_way.iter().map(Vec::len).collect();
    assert!(counts.iter().all(|count| (1..=CHUNKS_PER_PEER).contains(count)), "{counts:?}");
    assert!(counts.iter().sum::<usize>() <= CHUNKS_SHARED + peers as usize);
    // The last comes through although all others stand still.
    let last = PeerId(peers - 1);
    let mut tokens = std::mem::take(&mut under_way[last.0 as usize]);
    while let Some(token) = tokens.pop() {
        assert_eq!(reads.handle_ended(token, false, now), None);
        assert_eq!(reads.handle_ended(token, false, now), None, "it has ended once");
        tokens.extend(std::iter::from_fn(|| reads.next_chunk(last, now)).map(|chunk| chunk.token));
    }
    assert_eq!(reads.poll_ended(), Some((TransferId(last.0), TransferStatus::Done)));
    assert_eq!(reads.poll_ended(), None);
}

/// A peer goes, with chunks under way, and another gets its place.
#[test]
fn who_gets_the_place_of_another_has_nothing_to_do_with_what_was_read_from_that() {
    let (mut reads, now) = (Reads::default(), Instant::from_nanos(1));
    let memory = |length| [RemoteMemory { key: 1, span: Span { address: 0, length } }];
    let into = || IoBuffer::leaked(&[0; 8], &[8]);
    let mut later = now;
    // It fails again and again, and a chunk is under way when it goes.
    assert!(reads.begin(TransferId(1), PeerId(0), &memory(8), into()));
    for _ in 0..7 {
        later = later + Duration::from_secs(1);
        let chunk = reads.next_chunk(PeerId(0), later).expect("the pause is over");
        reads.handle_ended(chunk.token, true, later);
    }
    later = later + Duration::from_secs(1);
    let chunk = reads.next_chunk(PeerId(0), later).expect("the pause is over");
    reads.forget(PeerId(0));
    assert!(!reads.is_broken(PeerId(0)) && reads.begin(TransferId(2), PeerId(0), &memory(8), into()));
    let next = reads.next_chunk(PeerId(0), now).expect("there is no pause, and room");
    assert_eq!(reads.handle_ended(chunk.token, true, later), None, "that concerns nobody");
    assert_eq!(reads.poll_ended(), Some((TransferId(1), TransferStatus::Unreachable)));
    assert!(!reads.is_broken(PeerId(0)));
    reads.handle_ended(next.token, false, later);
    assert_eq!(reads.poll_ended(), Some((TransferId(2), TransferStatus::Done)));
    assert!(!reads.is_busy());
}

/// A transfer of a test, and what it must bring.
struct Transfer {
    here: IoBuffer,
    bytes: Vec<u8>,
    /// What its memory must be from now on.
    frozen: Option<Vec<u8>>,
    is_canceled: bool,
}

impl Transfer {
    fn freeze(&mut self) {
        self.frozen = Some(contents(&self.here));
    }
}

/// Random transfers in both directions over a network with faults, of which some are stopped.
fn transfer_at_random(seed: u64, faults: Faults) -> Result<(), TestCaseError> {
    let (mut job, mut random) = (Job::new(2, seed), Random(seed ^ 0x9e37_79b9 | 1));
    let places = [job.peer(0, 1), job.peer(1, 0)];
    job.steps(5, MOMENT);
    let chunking = Chunking {
        bytes: CHUNK_BYTES / 4 + random.below(2 * CHUNK_BYTES as u64) as usize,
        per_peer: 1 + random.below(12) as usize,
        shared: 1 + random.below(12) as usize,
    };
    job.nodes.iter_mut().for_each(|node| node.protocol.set_chunking(chunking));
    job.world.borrow_mut().faults = faults;
    let mut transfers: [Vec<Transfer>; 2] = [Vec::new(), Vec::new()];
    for round in 0..3000 {
        if round == 600 {
            job.world.borrow_mut().faults = Faults::default();
        }
        for node in 0..2 {
            if round < 300 && random.happens(60) {
                let length = 1 + random.below(3 * CHUNK_BYTES as u64) as usize;
                let cut = |random: &mut Random| {
                    let first = random.below(length as u64 + 1) as usize;
                    [first, length - first]
                };
                let bytes = pattern(length, random.below(256));
                let there = IoBuffer::leaked(&bytes, &cut(&mut random));
                let here = IoBuffer::leaked(&vec![0; length], &cut(&mut random));
                let (_, memory) = job.expose(1 - node, &there);
                let id = transfers[node].len() as u32;
                let begun = job.begin(node, id, places[node], &memory, &here);
                let mut transfer = Transfer { here, bytes, frozen: None, is_canceled: false };
                if begun != TransferStatus::Pending {
                    transfer.freeze();
                }
                transfers[node].push(transfer);
            }
            if random.happens(10) && !transfers[node].is_empty() {
                let id = random.below(transfers[node].len() as u64) as usize;
                let transfer = &mut transfers[node][id];
                if transfer.frozen.is_none() && !transfer.is_canceled {
                    transfer.is_canceled = true;
                    if job.nodes[node].protocol.cancel_transfer(TransferId(id as u32)) {
                        transfer.freeze();
                    }
                }
            }
            if random.happens(700) {
                let Node { protocol, network } = &mut job.nodes[node];
                protocol.exchange(network, job.now);
            }
            while let Some((id, status)) = job.ended(node) {
                let transfer = &mut transfers[node][id as usize];
                prop_assert!(transfer.frozen.is_none(), "it ends once");
                transfer.freeze();
                match status {
                    TransferStatus::Done => prop_assert!(contents(&transfer.here) == transfer.bytes),
                    TransferStatus::Failed => prop_assert!(transfer.is_canceled),
                    TransferStatus::Unreachable => prop_assert!(faults.unread > 0 || faults.broken > 0),
                    TransferStatus::Pending => prop_assert!(false),
                }
            }
            prop_assert!(job.world.borrow().reads_of(node) <= chunking.per_peer.min(chunking.shared));
        }
        job.now = job.now + std::time::Duration::from_micros(random.below(10_000));
    }
    for transfer in transfers.iter().flatten() {
        prop_assert!(transfer.frozen.as_ref() == Some(&contents(&transfer.here)), "it ends, and is left alone then");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn transfers_end_with_all_bytes_or_say_that_they_have_not(
        seed: u64, lost in 0_u64..100, reordered in 0_u64..300, broken in 0_u64..100, again in 0_u64..400, unread in 0_u64..300
    ) {
        transfer_at_random(seed, Faults { lost, repeated: 0, reordered, broken, again, unread, ..Faults::default() })?;
    }
}
