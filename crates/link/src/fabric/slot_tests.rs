//! One pool of slots between hosts, over the network that loses, repeats and reorders: each packet is accepted once and
//! in order, whatever becomes of refusals and invitations, and every sender gets its turn.

use super::buffers::KEPT_MOST;
use super::protocol::Protocol;
use super::slots::HOLDING_MOST;
use super::testing::{Faults, Random, contact};
use super::tests::{Job, MOMENT, WHILE, greeting};
use super::wire::{self, HEADER_BYTES, Header, Kind, PACKETS_PER_BATCH, Receipt};
use proptest::prelude::*;
use std::time::Duration;
use tidegate_flow::{Config, Packet, PacketKind, PeerId, SchemeName, SlotPool};
use tidegate_message::{LinkEvent, WriteError};

fn flow(slots: u32) -> Config {
    let mut flow = Config::new(SchemeName::Speculative, 4, 64, 2);
    flow.buffers.pool_slots = slots;
    flow
}

/// Nodes that know each other, each with a pool of slots.
struct Pools {
    job: Job,
    /// The place of each node in the table of each other one.
    places: Vec<Vec<Option<PeerId>>>,
    written: Vec<Vec<u32>>,
    came: Vec<Vec<u32>>,
    refusals: Vec<u32>,
}

impl Pools {
    fn new(nodes: usize, slots: u32, seed: u64) -> Pools {
        let mut job = Job::new(nodes, seed);
        for (id, node) in job.nodes.iter_mut().enumerate() {
            node.protocol = Protocol::new(greeting(id as u64, 64), &flow(slots));
        }
        let mut place = |of, to| (of != to).then(|| job.peer(of, to));
        let places = (0..nodes).map(|of| (0..nodes).map(|to| place(of, to)).collect()).collect();
        job.steps(4, MOMENT);
        let table = vec![vec![0; nodes]; nodes];
        Pools { job, places, written: table.clone(), came: table, refusals: vec![0; nodes] }
    }

    fn place(&self, of: usize, to: usize) -> PeerId {
        self.places[of][to].expect("another node")
    }

    /// Writes one more packet from one node to another; whether there was room.
    fn write(&mut self, from: usize, to: usize) -> bool {
        let (place, number) = (self.place(from, to), self.written[from][to]);
        match self.job.write(from, place, number) {
            Ok(_) => self.written[from][to] += 1,
            Err(error) => assert_eq!(error, WriteError::Full),
        }
        self.written[from][to] > number
    }

    /// Retrieves a packet and hears all events. Returns which node has sent it.
    fn retrieve(&mut self, node: usize) -> Option<usize> {
        let retrieved = self.job.retrieve(node);
        while let Some(event) = self.job.nodes[node].protocol.poll_event() {
            assert!(matches!(event, LinkEvent::Refused(_)), "{event:?}");
            self.refusals[node] += 1;
        }
        let (source, number) = retrieved?;
        let from = self.places[node].iter().position(|place| *place == Some(source)).expect("it is known");
        assert_eq!(number, self.came[node][from], "lost, doubled, or out of order");
        self.came[node][from] += 1;
        Some(from)
    }

    fn pool(&self, node: usize) -> &SlotPool {
        self.job.nodes[node].protocol.queues.as_ref().and_then(|queues| queues.slots()).expect("it has a pool")
    }

    /// The pool says of the mailbox what is true, and nothing has more packets than it may.
    fn check(&self) {
        for (me, node) in self.job.nodes.iter().enumerate() {
            assert_eq!(self.pool(me).filled() as usize, node.protocol.packets(), "each packet has a slot");
            let peers = self.places[me].iter().flatten().count();
            let kept = node.protocol.unsent().count();
            assert!(kept <= KEPT_MOST * peers, "{kept} packets are kept");
        }
    }

    fn has_ended(&self, way: (usize, usize), most: u32) -> bool {
        let (from, to) = way;
        let place = self.place(from, to);
        self.came[to][from] == most && !self.job.nodes[from].protocol.has_unsent_to(place)
    }

    /// Each of `ways` carries `most` packets, at this pace of retrieving in a thousand, until all have come. Returns
    /// the time that it takes.
    fn run(&mut self, ways: &[(usize, usize)], most: u32, pace: u64, random: &mut Random) -> Duration {
        let begun = self.job.now;
        for _ in 0..100_000 {
            let passed = if random.happens(20) { WHILE } else { MOMENT };
            self.job.step(passed);
            for &(from, to) in ways {
                while self.written[from][to] < most && random.happens(900) && self.write(from, to) {}
            }
            for node in 0..self.job.nodes.len() {
                while random.happens(pace) && self.retrieve(node).is_some() {}
            }
            self.check();
            if ways.iter().all(|&way| self.has_ended(way, most)) {
                return self.job.now.since(begun);
            }
        }
        panic!("it does not end: {:?} were written, {:?} have come", self.written, self.came);
    }
}

const INCAST: [(usize, usize); 3] = [(1, 0), (2, 0), (3, 0)];

fn everybody(nodes: usize) -> Vec<(usize, usize)> {
    (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))).filter(|(from, to)| from != to).collect()
}

#[test]
fn floods_into_small_pools_end_and_all_packets_arrive_in_order() {
    for slots in [1, 2, 16] {
        for ways in [INCAST.to_vec(), everybody(4)] {
            let mut pools = Pools::new(4, slots, 7);
            pools.run(&ways, 400, 700, &mut Random(7));
            assert!(pools.refusals[1..].iter().all(|refusals| *refusals > 0), "{slots}: {:?}", pools.refusals);
        }
    }
}

#[test]
fn with_slots_enough_nothing_is_refused() {
    let mut pools = Pools::new(4, 4096, 7);
    pools.run(&everybody(4), 1000, 900, &mut Random(7));
    assert_eq!(pools.refusals, [0; 4]);
}

/// Node 1 fills the pool of node 0, whose only slot is then free again and kept for node 2.
fn invite_second(pools: &mut Pools) {
    assert!(pools.write(1, 0));
    pools.job.steps(2, MOMENT);
    assert!(pools.write(2, 0));
    pools.job.steps(2, MOMENT);
    assert_eq!((pools.retrieve(2), pools.refusals[2]), (None, 1));
    assert!(pools.pool(0).is_marked(pools.place(0, 2)));
    assert_eq!(pools.retrieve(0), Some(1));
    assert_eq!(pools.pool(0).kept_for(pools.place(0, 2)), 1);
}

/// A refused sender is invited as soon as there is room, and sends nothing until then.
#[test]
fn a_refused_sender_waits_for_no_timer() {
    let mut pools = Pools::new(3, 1, 3);
    assert!(pools.write(1, 0));
    pools.job.steps(2, MOMENT);
    assert!(pools.write(2, 0) && pools.write(2, 0));
    pools.job.steps(2, MOMENT);
    let tried = pools.job.world.borrow().tried;
    pools.job.steps(100, MOMENT);
    assert!(pools.job.world.borrow().tried <= tried + 2, "it does not try again");
    assert_eq!(pools.retrieve(0), Some(1));
    pools.job.steps(3, MOMENT);
    assert_eq!(pools.retrieve(0), Some(2));
    pools.job.steps(3, MOMENT);
    assert_eq!(pools.retrieve(0), Some(2));
}

/// A batch says how many packets are behind the refused one: all of them are invited together.
#[test]
fn a_sender_is_invited_to_as_many_slots_as_it_has_packets() {
    let mut pools = Pools::new(3, 64, 3);
    (0..64).for_each(|_| assert!(pools.write(1, 0)));
    pools.job.steps(3, MOMENT);
    let (place, mut written) = (pools.place(2, 0), 0);
    let now = pools.job.now;
    let write = pools.job.nodes[2].protocol.write(place, 20, now, |packets, _| {
        for packet in packets {
            *packet = Packet::with_credits(PacketKind::Data, written);
            written += 1;
        }
    });
    assert_eq!(write, Ok(20));
    pools.job.steps(3, MOMENT);
    (0..19).for_each(|_| assert_eq!(pools.retrieve(0), Some(1)));
    assert_eq!(pools.pool(0).kept_for(pools.place(0, 2)), 0, "fewer than it has use for");
    assert_eq!(pools.retrieve(0), Some(1));
    assert_eq!(pools.pool(0).kept_for(pools.place(0, 2)), 20);
    let sent = pools.job.nodes[2].protocol.counts().sent;
    pools.job.steps(3, MOMENT);
    assert!((0..44).all(|_| pools.retrieve(0) == Some(1)) && (0..20).all(|_| pools.retrieve(0) == Some(2)));
    assert_eq!(pools.job.nodes[2].protocol.counts().sent, sent + 1, "in one batch");
}

#[test]
fn an_invitation_that_is_lost_is_told_again() {
    let mut pools = Pools::new(3, 1, 3);
    invite_second(&mut pools);
    pools.job.world.borrow_mut().faults.lost = 1000;
    pools.job.steps(3, MOMENT);
    pools.job.world.borrow_mut().faults.lost = 0;
    pools.job.steps(40, WHILE);
    assert_eq!(pools.retrieve(0), Some(2), "a ping has asked, and its answer told");
}

/// It may have been made before many others: its counts would read as later ones.
#[test]
fn a_batch_that_is_older_than_another_says_nothing() {
    let mut pools = Pools::new(3, 1, 3);
    invite_second(&mut pools);
    let [to, from] = [2, 0].map(|number| contact(number, number, 64).id());
    let receipt = Receipt { expected: 0, refusals: 32, slots: 1 };
    let (kind, is_closing, is_last) = (Kind::Acknowledgement, false, false);
    let mut batch = vec![0; HEADER_BYTES];
    Header { kind, is_closing, is_last, to, from, sequence: 0, acknowledged: 0, receipt }.emit(&mut batch);
    let now = pools.job.now;
    pools.job.nodes[2].protocol.handle_batch(&batch, now);
    let sent = pools.job.nodes[2].protocol.counts().sent;
    pools.job.exchange(2);
    assert_eq!(pools.job.nodes[2].protocol.counts().sent, sent, "it waits");
    pools.job.steps(3, MOMENT);
    assert_eq!(pools.retrieve(0), Some(2), "the invitation is not taken for an older one");
}

#[test]
fn refused_packets_count_as_unsent_though_their_batch_has_come() {
    let mut pools = Pools::new(3, 1, 3);
    assert!(pools.write(1, 0));
    pools.job.steps(2, MOMENT);
    (0..3).for_each(|_| assert!(pools.write(2, 0)));
    pools.job.steps(5, MOMENT);
    let second = &pools.job.nodes[2].protocol;
    assert!(second.has_unsent() && !second.is_flushed());
    assert_eq!(second.unsent().count(), 3);
    assert!(!pools.job.nodes[1].protocol.has_unsent() && pools.job.nodes[1].protocol.is_flushed());
}

/// Two nodes with a slot each, of which the second was refused so often that its window is small.
fn refuse_often() -> Pools {
    let mut pools = Pools::new(2, 1, 3);
    for _ in 0..9 {
        (0..2).for_each(|_| assert!(pools.write(1, 0)));
        pools.job.steps(3, MOMENT);
        while pools.retrieve(0).is_some() {
            pools.job.steps(3, MOMENT);
        }
    }
    pools
}

/// A sender whose window is small waits for answers: they do not wait for something that carries them.
#[test]
fn a_sender_with_a_small_window_is_answered_at_once() {
    let mut pools = refuse_often();
    assert!(pools.write(1, 0));
    [1, 0, 1].into_iter().for_each(|node| pools.job.exchange(node));
    assert!(!pools.job.nodes[1].protocol.has_unsent(), "no time has passed");
}

#[test]
fn a_refusal_waits_for_the_invitation_where_its_sender_waits_anyway() {
    let mut pools = refuse_often();
    (0..2).for_each(|_| assert!(pools.write(1, 0)));
    [1, 0].into_iter().for_each(|node| pools.job.exchange(node));
    let sent = pools.job.nodes[0].protocol.counts().sent;
    [1, 0, 0].into_iter().for_each(|node| pools.job.exchange(node));
    assert!(pools.pool(0).is_marked(pools.place(0, 1)));
    assert_eq!(pools.job.nodes[0].protocol.counts().sent, sent, "the refusal waits");
    assert_eq!(pools.retrieve(0), Some(1));
    pools.job.exchange(0);
    assert_eq!(pools.job.nodes[0].protocol.counts().sent, sent + 1, "the invitation carries it");
    [1, 0].into_iter().for_each(|node| pools.job.exchange(node));
    assert_eq!(pools.retrieve(0), Some(1), "no time has passed");
}

#[test]
fn a_refusal_and_an_invitation_that_are_learned_together_make_the_sender_send_again() {
    let mut pools = Pools::new(3, 1, 3);
    assert!(pools.write(1, 0));
    pools.job.steps(2, MOMENT);
    assert!(pools.write(2, 0));
    // Node 2 looks at nothing while it is refused and invited.
    pools.job.exchange(2);
    pools.job.exchange(0);
    assert_eq!(pools.retrieve(0), Some(1));
    pools.job.now = pools.job.now + MOMENT;
    pools.job.exchange(0);
    pools.job.steps(3, MOMENT);
    assert_eq!((pools.retrieve(0), pools.retrieve(2), pools.refusals[2]), (Some(2), None, 1));
}

/// Node 2 was invited and computes; node 1 waits.
fn hold_idle(pools: &mut Pools) {
    invite_second(pools);
    assert!(pools.write(1, 0));
    for _ in 0..3 {
        pools.job.now = pools.job.now + MOMENT;
        (0..2).for_each(|node| pools.job.exchange(node));
    }
    assert_eq!((pools.retrieve(1), pools.refusals[1]), (None, 1), "the slot is kept");
}

#[test]
fn slots_of_a_sender_that_computes_are_taken_back_when_others_wait() {
    let mut pools = Pools::new(3, 1, 3);
    hold_idle(&mut pools);
    let due = pools.job.nodes[0].protocol.next_timeout(pools.job.now).expect("it is to wake up");
    assert!(due.since(pools.job.now) <= HOLDING_MOST);
    pools.job.now = pools.job.now + HOLDING_MOST;
    for _ in 0..3 {
        pools.job.now = pools.job.now + MOMENT;
        (0..2).for_each(|node| pools.job.exchange(node));
    }
    assert_eq!(pools.retrieve(0), Some(1));
    pools.job.steps(5, MOMENT);
    assert_eq!(pools.retrieve(0), Some(2), "it comes when it computes no more");
}

/// A sender that calls every 30 ms would always come too late, while two others take all slots meanwhile.
#[test]
fn a_sender_that_calls_rarely_gets_slots_though_others_flood() {
    let mut pools = Pools::new(4, 4, 3);
    let mut came = 0;
    for step in 0..20_000 {
        pools.job.now = pools.job.now + MOMENT;
        [0, 1, 3].into_iter().for_each(|node| pools.job.exchange(node));
        [1, 3].into_iter().for_each(|node| while pools.write(node, 0) {});
        if step % 500 == 0 {
            while pools.written[2][0] < 100 && pools.write(2, 0) {}
            (0..2).for_each(|_| pools.job.exchange(2));
        }
        came += u32::from(pools.retrieve(0) == Some(2));
    }
    assert!(came >= 15, "{came} packets in 40 calls");
    assert!(pools.came[0][1] > 1000, "{:?}", pools.came);
}

#[test]
fn a_peer_that_dies_while_it_is_invited_leaves_its_slots_to_others() {
    let mut pools = Pools::new(3, 1, 3);
    hold_idle(&mut pools);
    let place = pools.place(0, 2);
    pools.job.nodes[0].protocol.quarantine(place);
    assert!(pools.pool(0).kept_for(pools.place(0, 1)) == 1 && !pools.pool(0).may_revoke());
    assert!(pools.job.nodes[0].protocol.known(place).expect("its place").speculating.is_none());
    pools.job.steps(3, MOMENT);
    assert_eq!(pools.job.retrieve(0).map(|(source, _)| source), Some(pools.place(0, 1)));
    assert_eq!(pools.pool(0).free(), 1);
}

#[test]
fn a_peer_that_dies_while_it_waits_is_not_invited() {
    let mut pools = Pools::new(3, 1, 3);
    assert!(pools.write(1, 0));
    pools.job.steps(2, MOMENT);
    assert!(pools.write(2, 0));
    pools.job.steps(2, MOMENT);
    pools.job.world.borrow_mut().kill(2);
    pools.job.nodes.remove(2);
    let mut departed = false;
    for _ in 0..60 {
        pools.job.step(WHILE);
        // Its packet is retrieved after this.
        departed = !pools.pool(0).is_marked(pools.place(0, 2));
    }
    assert!(departed);
    assert_eq!(pools.retrieve_anything(0), Some(pools.place(0, 1)));
    assert_eq!((pools.pool(0).free(), pools.pool(0).kept_for(pools.place(0, 2))), (1, 0));
    assert!(pools.write(1, 0));
    pools.job.steps(3, MOMENT);
    assert_eq!(pools.retrieve_anything(0), Some(pools.place(0, 1)));
}

impl Pools {
    fn retrieve_anything(&mut self, node: usize) -> Option<PeerId> {
        self.job.retrieve(node).map(|(source, _)| source)
    }
}

/// Packets in the mailbox whose sender has no place any more are dropped, and their slots are free.
#[test]
fn packets_that_are_dropped_free_their_slots() {
    let mut pools = Pools::new(3, 8, 3);
    (0..8).for_each(|_| assert!(pools.write(1, 0)));
    pools.job.steps(3, MOMENT);
    assert!(pools.write(2, 0));
    pools.job.steps(3, MOMENT);
    assert_eq!(pools.pool(0).free(), 0);
    let (place, now) = (pools.place(0, 1), pools.job.now);
    pools.job.nodes[0].protocol.release(place, now);
    assert_eq!(pools.pool(0).filled(), 8, "they are still there");
    assert_eq!(pools.job.retrieve(0), None);
    assert_eq!((pools.pool(0).filled(), pools.pool(0).kept_for(pools.place(0, 2))), (0, 1));
    pools.job.steps(3, MOMENT);
    assert_eq!(pools.retrieve(0), Some(2));
    assert_eq!(pools.pool(0).free(), 8);
}

/// A program that writes without end has no more packets kept for it than that, nor sends more into a full pool.
#[test]
fn a_refused_sender_keeps_a_bounded_number_of_packets() {
    let mut pools = Pools::new(2, 4, 3);
    for _ in 0..50 {
        while pools.write(1, 0) {}
        pools.job.step(MOMENT);
    }
    assert_eq!(pools.written[1][0] as usize, KEPT_MOST + 4);
    pools.check();
    let (_, mut random) = (pools.retrieve(0), Random(3));
    // Windows are small by now: of what is sent, little is dropped.
    pools.run(&[(1, 0)], 4000, 900, &mut random);
    let sent = pools.job.nodes[1].protocol.counts().sent;
    pools.run(&[(1, 0)], 8000, 900, &mut random);
    let batches = pools.job.nodes[1].protocol.counts().sent - sent;
    assert!(batches <= 4000, "{batches} batches for 4000 packets, two of which have slots");
    assert!(batches >= 4000 / PACKETS_PER_BATCH as u64);
}

/// Header and packets of a batch of packets with any contents, from node 2 to node 0.
fn batch_of_anything(header: (u64, u64, u16, u8, u16), packets: &[(u16, u32)]) -> Vec<u8> {
    let (sequence, acknowledged, expected, refusals, slots) = header;
    let [to, from] = [0, 2].map(|number| contact(number, number, 64).id());
    let receipt = Receipt { expected, refusals, slots };
    let (kind, is_closing, is_last) = (Kind::Packets, false, false);
    let mut batch = vec![0; HEADER_BYTES];
    Header { kind, is_closing, is_last, to, from, sequence, acknowledged, receipt }.emit(&mut batch);
    for &(stamp, source) in packets {
        let mut packet = Packet::with_credits(PacketKind::Data, 0);
        packet.header = packet.header.published(stamp, PeerId(source & 0xf_ffff));
        wire::push_packet(&mut batch, &packet);
    }
    batch
}

proptest! {
    /// A peer of the job may say anything; another one is served all the same.
    #[test]
    fn anything_may_come(
        batches in prop::collection::vec(
            ((0_u64..9, 0_u64..4, any::<u16>(), 0_u8..64, any::<u16>()), prop::collection::vec((0_u16..9, any::<u32>()), 0..9)),
            0..60,
        ),
        slots in 1_u32..5,
    ) {
        let mut pools = Pools::new(3, slots, 1);
        for (header, packets) in &batches {
            let now = pools.job.now;
            pools.job.nodes[0].protocol.handle_batch(&batch_of_anything(*header, packets), now);
            let to = pools.place(0, 2);
            let _ = pools.job.write(0, to, 1);
            pools.job.step(MOMENT);
            while pools.job.retrieve(0).is_some() {}
            while pools.job.nodes[0].protocol.poll_event().is_some() {}
            prop_assert_eq!(pools.pool(0).filled() as usize, pools.job.nodes[0].protocol.packets());
        }
        pools.job.nodes.pop();
        pools.run(&[(1, 0), (0, 1)], 20, 900, &mut Random(1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_packet_is_accepted_once_and_in_order(
        seed: u64,
        slots in prop::sample::select(vec![1_u32, 2, 3, 16, 200]),
        nodes in 2_usize..5,
        is_incast: bool,
        pace in 300_u64..950,
        lost in 0_u64..100,
        repeated in 0_u64..100,
        reordered in 0_u64..200,
        broken in 0_u64..10,
        again in 0_u64..100,
        failed in 0_u64..20,
        no_buffer in 0_u64..100,
    ) {
        let mut pools = Pools::new(nodes, slots, seed);
        pools.job.world.borrow_mut().faults =
            Faults { lost, repeated, reordered, broken, again, unread: 0, failed, no_buffer };
        let ways = if is_incast { INCAST[..nodes - 1].to_vec() } else { everybody(nodes) };
        pools.run(&ways, 150, pace, &mut Random(seed | 1));
    }
}
