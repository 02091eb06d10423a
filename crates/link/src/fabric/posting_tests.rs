//! Posted buffers between hosts, over the network that loses, repeats and reorders: each message is accepted once and
//! in order, however often it is refused, and whatever becomes of batches.

use super::buffers::KEPT_MOST;
use super::protocol::Protocol;
use super::testing::{Faults, Random};
use super::tests::{Job, MOMENT, WHILE, greeting};
use proptest::prelude::*;
use std::time::Duration;
use tidegate_flow::{Config, Packet, PacketKind, PeerId, Posting, SchemeName};
use tidegate_message::{LinkEvent, WriteError};

fn flow(scheme: SchemeName, buffers: u32) -> Config {
    let mut flow = Config::new(scheme, 4, 64, 2);
    flow.buffers.packets = 3;
    flow.buffers.per_connection = buffers;
    (flow.buffers.pool_first, flow.buffers.pool_most) = (buffers, buffers);
    flow
}

fn job(nodes: usize, flow: &Config, seed: u64) -> Job {
    let mut job = Job::new(nodes, seed);
    for (id, node) in job.nodes.iter_mut().enumerate() {
        node.protocol = Protocol::new(greeting(id as u64, 64), flow);
    }
    job
}

/// One endpoint of a test: what it sends to the other, and what has come.
#[derive(Debug, Default)]
struct Side {
    /// The most packets of a message less one.
    more: u32,
    /// The number of the next packet, and how many are to follow it in its buffer.
    next: u32,
    left: u32,
    came: u32,
    /// Buffers that were filled, and not posted again.
    full: u32,
    refusals: u32,
}

impl Side {
    /// Writes as much of a message as there is room for.
    fn write(&mut self, job: &mut Job, me: usize, to: PeerId, most: u32) -> bool {
        if self.next >= most && self.left == 0 {
            return false;
        }
        if self.left == 0 {
            self.left = 1 + self.next % (self.more + 1);
        }
        let (mut next, mut left, now) = (self.next, self.left, job.now);
        let written = job.nodes[me].protocol.write(to, left, now, |packets, _| {
            for packet in packets {
                *packet = Packet::with_credits(PacketKind::Data, next);
                (next, left) = (next + 1, left - 1);
                if left == 0 {
                    packet.header = packet.header.ending_buffer();
                }
            }
        });
        assert!(matches!(written, Ok(_) | Err(WriteError::Full)), "{written:?}");
        (self.next, self.left) = (next, left);
        written.is_ok()
    }

    fn retrieve(&mut self, job: &mut Job, me: usize) {
        while let Some(arrival) = job.nodes[me].protocol.retrieve() {
            assert_eq!(arrival.packet.credits(), self.came, "lost, doubled, or out of order");
            self.came += 1;
            self.full += u32::from(arrival.packet.header.ends_buffer());
        }
        while let Some(event) = job.nodes[me].protocol.poll_event() {
            match event {
                LinkEvent::Refused(_) => self.refusals += 1,
                LinkEvent::LimitReached => {
                    job.nodes[me].protocol.post(Posting::Window { buffers: 1, limit: 1 });
                }
                event => panic!("{event:?}"),
            }
        }
    }

    fn post(&mut self, job: &mut Job, me: usize, from: PeerId) {
        if self.full > 0 {
            self.full -= 1;
            job.nodes[me].protocol.post(Posting::Again(from));
        }
    }
}

/// Two send each other at least so many packets, in messages that fill their buffers; `pace`: of a thousand moments, in
/// how many a buffer is posted again.
fn run(flow: &Config, seed: u64, faults: Faults, most: u32, pace: u64) -> [Side; 2] {
    let mut job = job(2, flow, seed);
    let places = [job.peer(0, 1), job.peer(1, 0)];
    job.world.borrow_mut().faults = faults;
    let (mut random, mut sides) =
        (Random(seed | 1), [0; 2].map(|_| Side { more: flow.buffers.packets - 1, ..Side::default() }));
    for step in 0..200_000 {
        let passed = if random.happens(20) { WHILE } else { MOMENT };
        job.step(passed);
        for me in 0..2 {
            while random.happens(700) && sides[me].write(&mut job, me, places[me], most) {}
            sides[me].retrieve(&mut job, me);
            if random.happens(pace) {
                sides[me].post(&mut job, me, places[me]);
            }
            let kept = job.nodes[me].protocol.unsent().count();
            assert!(kept <= KEPT_MOST + flow.buffers.packets as usize, "{kept} packets are kept");
        }
        let has_unsent = job.nodes.iter().any(|node| node.protocol.has_unsent());
        let has_written = sides.iter().all(|side| side.next >= most && side.left == 0);
        if has_written && sides[0].came == sides[1].next && sides[1].came == sides[0].next && !has_unsent {
            return sides;
        }
        assert!(step < 199_999, "it does not end: {sides:?}");
    }
    sides
}

const NO_FAULTS: Faults =
    Faults { lost: 0, repeated: 0, reordered: 0, broken: 0, again: 0, unread: 0, failed: 0, no_buffer: 0 };

#[test]
fn what_finds_no_buffer_is_refused_and_sent_again_in_order() {
    for scheme in [SchemeName::Rnr, SchemeName::SharedWindow] {
        for buffers in [1, 2, 10] {
            let sides = run(&flow(scheme, buffers), 7, NO_FAULTS, 400, 100);
            assert!(sides.iter().all(|side| side.refusals > 0), "{scheme} {buffers}: {sides:?}");
        }
    }
}

/// Messages that are longer than what may be under way to a peer, or be kept for it.
#[test]
fn long_messages_that_are_refused_go_again_whole() {
    for scheme in [SchemeName::Rnr, SchemeName::SharedWindow] {
        for packets in [200, 600, 1_500] {
            let mut flow = flow(scheme, 1);
            flow.buffers.packets = packets;
            let sides = run(&flow, 11, NO_FAULTS, 12 * packets, 100);
            assert!(sides.iter().all(|side| side.refusals > 0), "{scheme} {packets}: {sides:?}");
        }
    }
}

#[test]
fn with_buffers_enough_nothing_is_refused() {
    let sides = run(&flow(SchemeName::Rnr, 400), 7, NO_FAULTS, 400, 1000);
    assert!(sides.iter().all(|side| side.refusals == 0), "{sides:?}");
}

/// A refused message goes again when the timer has run out, not before, and then at once.
#[test]
fn the_timer_is_waited_for() {
    let mut flow = flow(SchemeName::Rnr, 1);
    flow.buffers.retry_timer = Duration::from_millis(100);
    let mut job = job(2, &flow, 3);
    let to = job.peer(0, 1);
    job.steps(3, MOMENT);
    let mut side = Side { more: 2, ..Side::default() };
    assert!(side.write(&mut job, 0, to, 100) && side.write(&mut job, 0, to, 100));
    job.steps(3, MOMENT);
    assert_eq!(job.nodes[0].protocol.poll_event(), Some(LinkEvent::Refused(to)));
    assert!(!side.write(&mut job, 0, to, 100), "nothing goes past it");
    let (first, _) = job.retrieve(1).expect("the first had a buffer");
    job.nodes[1].protocol.post(Posting::Again(first));
    job.steps(20, Duration::from_millis(4));
    assert_eq!(job.retrieve(1), None, "the timer runs");
    let due = job.nodes[0].protocol.next_timeout(job.now).expect("the timer");
    assert!(due.since(job.now) <= Duration::from_millis(100));
    job.steps(10, Duration::from_millis(4));
    assert_eq!(job.retrieve(1).map(|(_, number)| number), Some(1));
}

#[test]
fn what_a_peer_has_taken_is_posted_again_when_its_place_is_given_away() {
    let mut job = job(3, &flow(SchemeName::SharedWindow, 2), 3);
    let (one, two) = (job.peer(0, 2), job.peer(1, 2));
    job.steps(3, MOMENT);
    let [mut first, mut second] = [0; 2].map(|_| Side { more: 2, ..Side::default() });
    (0..2).for_each(|_| assert!(first.write(&mut job, 0, one, 100)));
    job.steps(3, MOMENT);
    assert!(second.write(&mut job, 1, two, 100));
    job.steps(3, MOMENT);
    let places: Vec<PeerId> = std::iter::from_fn(|| job.retrieve(2)).map(|(place, _)| place).collect();
    assert_eq!(places.len(), 3, "two messages of one and two packets");
    job.nodes[2].protocol.release(places[0], job.now);
    job.steps(3, WHILE);
    assert!(job.retrieve(2).is_some_and(|(place, _)| place != places[0]), "the other gets a buffer");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_message_is_accepted_once_and_in_order(
        seed: u64,
        buffers in 1_u32..5,
        is_pool: bool,
        pace in 20_u64..600,
        lost in 0_u64..100,
        repeated in 0_u64..100,
        reordered in 0_u64..200,
        broken in 0_u64..10,
        again in 0_u64..100,
        packets in prop::sample::select(vec![3_u32, 3, 40, 700]),
    ) {
        let scheme = if is_pool { SchemeName::SharedWindow } else { SchemeName::Rnr };
        let faults = Faults { lost, repeated, reordered, broken, again, ..NO_FAULTS };
        let mut flow = flow(scheme, buffers);
        flow.buffers.packets = packets;
        run(&flow, seed, faults, 50 * packets.min(100), pace);
    }
}
