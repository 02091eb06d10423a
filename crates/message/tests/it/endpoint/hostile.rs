//! Packets that no correct peer sends: dropped and counted, never a panic, never memory without bound.

use crate::support::{Memory, Random, Setup, World, assert_others_work, fuzz_packets, hostile_run, pattern, peer_of};
use tidegate_message::flow::{Packet, PacketKind, SchemeName};
use tidegate_message::{Access, AtomicOp, AtomicType, BacklogInspection, Counter};

#[test]
fn random_packets_do_no_harm() {
    for setup in Setup::all(3, 111) {
        for seed in 0..3 {
            let mut random = Random::new(seed);
            let bytes: Vec<u8> = (0..6000).map(|_| random.bits() as u8).collect();
            let mut world = hostile_run(Setup { seed, ..setup }, &bytes);
            assert_others_work(&mut world);
        }
    }
}

/// The body of `fuzz/fuzz_targets/packets.rs`, over inputs that everybody has.
#[test]
fn what_the_fuzzer_runs_holds_for_a_seeded_corpus() {
    let mut random = Random::new(7);
    for _ in 0..600 {
        let length = random.below(3000);
        let input: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
        fuzz_packets(&input);
    }
}

#[test]
fn empty_and_constant_packets_do_no_harm() {
    for setup in Setup::all(3, 112) {
        for byte in [0x00, 0x01, 0x20, 0x7f, 0xff] {
            let mut world = hostile_run(setup, &[byte; 4000]);
            assert_others_work(&mut world);
        }
    }
}

/// fi_tidegate(7): "What stands in the mailbox is trusted as little as a packet from a network: it is checked, counted
/// in violations and dropped."
#[test]
fn malformed_packets_are_counted() {
    let mut world = Setup::new(3).build();
    // No message is under way with which a packet could go on, and the kinds 26 and 255 do not exist.
    for message in [0, 26, 255] {
        world.inject_packet(1, 0, Packet::new(PacketKind::Data, 56, message));
    }
    world.inject_packet(1, 0, Packet::with_credits(PacketKind::Credit, u32::MAX));
    world.settle();
    assert_eq!(world.counter(0, Counter::Violations), 4);
    // Slots that are not there, and slots behind what is no data.
    let lie = Packet::new(PacketKind::Data, 56, 1);
    let credit = Packet::with_credits(PacketKind::Credit, 1);
    for packet in [lie, credit] {
        world.inject_packet(1, 0, Packet { header: packet.header.with_slots(3), ..packet });
    }
    world.settle();
    assert_eq!(world.counter(0, Counter::Violations), 6);
}

#[test]
fn announced_lengths_that_never_come_take_no_memory_in_proportion() {
    let mut world = Setup::new(3).build();
    for _ in 0..1000 {
        // First packets of eager messages of 1 MiB whose rest never comes.
        let mut packet = Packet::new(PacketKind::Data, 56, 1);
        packet.payload[8..12].copy_from_slice(&(1u32 << 20).to_le_bytes());
        world.inject_packet(1, 0, packet);
    }
    world.settle();
    assert!(world.counter(0, Counter::UnexpectedPeak) <= 1 << 20, "{}", world.counter(0, Counter::UnexpectedPeak));
}

#[test]
fn a_sender_that_ignores_its_window_is_dropped_beyond_it() {
    for setup in Setup::all(3, 114) {
        for window in [0, 200, 3000] {
            let mut world = Setup { window: Some(window), ..setup }.build();
            let bound = world.counter(0, Counter::ReceiveBound);
            for kind in [1, 2, 3, 4] {
                for tag in 0..50 {
                    // Eager messages of 16 bytes; requests to send of as many, which name no memory.
                    let mut packet = Packet::new(PacketKind::Data, if kind < 3 { 32 } else { 48 }, kind);
                    packet.payload[0] = tag;
                    packet.payload[8] = if kind < 3 { 16 } else { 0 };
                    packet.payload[24] = 16;
                    world.inject_packet(1, 0, packet);
                }
            }
            world.settle();
            // It does not wait for credits either: when those that it is owed pile up, it is quarantined.
            if world.counter(0, Counter::PeersQuarantined) == 0 {
                assert!(world.counter(0, Counter::UnmatchedBytes) > 0 || window == 0, "some are within it\n{world}");
                assert!(world.counter(0, Counter::Violations) > 100, "most are not\n{world}");
            }
            assert!(world.counter(0, Counter::ReceivePeak) <= bound, "{world}");
            assert_others_work(&mut world);
        }
    }
}

#[test]
fn a_hostile_peer_reads_nothing_that_is_not_its_to_read() {
    // Forged reads, writes and atomics against a region that grants nothing, and keys that do not exist.
    for setup in Setup::all(3, 113).filter(|setup| setup.memory == Memory::Mailbox) {
        let mut world = setup.build();
        let secret = world.register(0, 9, &[7; 100], &[]);
        let readable = world.register(0, 8, &[7; 100], &[Access::Read]);
        let mut random = Random::new(5);
        for _ in 0..2000 {
            let kind = 8 + random.below(4) as u8;
            let mut packet = Packet::new(PacketKind::Data, 56, kind);
            packet.payload = std::array::from_fn(|_| random.bits() as u8);
            packet.payload[8..12].copy_from_slice(&(random.below(41) as u32).to_le_bytes());
            packet.payload[16..24].copy_from_slice(&(7 + random.below(4) as u64).to_le_bytes());
            if random.one_in(2) {
                packet.payload[24..32].copy_from_slice(&(random.below(110) as u64).to_le_bytes());
            }
            world.inject_packet(1, 0, packet);
        }
        world.settle();
        assert_eq!((secret.bytes(), readable.bytes()), (vec![7; 100], vec![7; 100]), "{world}");
        assert_others_work(&mut world);
    }
}

/// A flood of one kind of message, by a peer that sends it as fast as it can, takes nothing but credits.
struct Flood {
    world: World,
}

impl Flood {
    /// Node 1 is the hostile one.
    fn new(setup: Setup) -> Self {
        let mut world = setup.build();
        world.register(0, KEY, &[7; 100_000], &[Access::Read, Access::Write]);
        world.pause(1);
        world.network().deaf = Some(1);
        Flood { world }
    }

    /// A message of node 1 arrives, in one packet.
    fn inject(&mut self, kind: u8, aux: u32, word: u64, fields: &[u64], body: &[u8]) {
        let length = 16 + 8 * fields.len() + body.len();
        let mut packet = Packet::new(PacketKind::Data, length, kind);
        packet.payload[..8].copy_from_slice(&word.to_le_bytes());
        packet.payload[8..12].copy_from_slice(&(body.len() as u32).to_le_bytes());
        packet.payload[12..16].copy_from_slice(&aux.to_le_bytes());
        for (place, field) in packet.payload[16..].chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        packet.payload[16 + 8 * fields.len()..length].copy_from_slice(body);
        self.world.inject_packet(1, 0, packet);
    }

    /// Everything has arrived: what node 0 keeps is within its bound, it is not more than with half of the flood, and
    /// others work.
    fn assert_bounded(&mut self, what: &str) -> BacklogInspection {
        self.world.settle();
        let peer = peer_of(0, 1, self.world.setup.nodes);
        let backlog = self.world.endpoint(0).inspect_backlog(peer);
        assert!(backlog.is_within_its_bounds(0), "{what}: {backlog:?}\n{}", self.world);
        let bound = self.world.counter(0, Counter::ReceiveBound);
        assert!(self.world.counter(0, Counter::ReceivePeak) <= bound, "{what}\n{}", self.world);
        backlog
    }
}

const KEY: u64 = 9;
/// Messages of a flood.
const MANY: u64 = 5000;

/// Every scheme with few slots and many, with small windows and large.
fn flooded(seed: u64) -> impl Iterator<Item = Setup> {
    let memories = |setup: &Setup| matches!(setup.memory, Memory::Mailbox | Memory::Bounced);
    Setup::all(3, seed)
        .filter(memories)
        .flat_map(|setup| [0, 20_000].map(|window| Setup { window: Some(window), ..setup }))
}

#[test]
fn requests_that_nobody_takes_the_answers_of_end_in_quarantine() {
    for setup in flooded(115) {
        // The longest fetch for whose result there is memory, in elements of eight bytes.
        let longest = if setup.window == Some(0) { 4 } else { 16 };
        // Writes, reads of a byte and of much, short and long fetches, and what is denied.
        let requests: [(u8, u64, &[u64], &[u8]); 6] = [
            (8, 0, &[KEY, 0], &[1; 8]),
            (9, 0, &[KEY, 0, 1], &[]),
            (9, 0, &[KEY, 0, 90_000], &[]),
            (10 + 1, 1 << 39 | 7 << 32 | 10 << 40 | 1 << 48, &[KEY, 0], &[]),
            (10 + 1, 1 << 39 | 7 << 32 | 10 << 40 | longest << 48, &[KEY, 0], &[]),
            (8, 0, &[KEY + 1, 0], &[1; 8]),
        ];
        for (number, (kind, word, fields, body)) in requests.into_iter().enumerate() {
            let mut flood = Flood::new(setup);
            for _ in 0..MANY {
                flood.inject(kind, 5, word, fields, body);
            }
            flood.assert_bounded(&format!("request {number}"));
            assert_eq!(flood.world.counter(0, Counter::PeersQuarantined), 1, "request {number}\n{}", flood.world);
            let send = flood.world.send(0).to(1).post();
            flood.world.settle();
            assert!(format!("{:?}", flood.world.failure(send)).contains("node 1"), "it counts as lost");
            assert_others_work(&mut flood.world);
        }
    }
}

/// A mixture of requests within the account: all are kept, none makes trouble, and the last answers are right when they
/// are taken.
#[test]
fn requests_within_the_account_wait_for_their_answers() {
    for setup in flooded(116) {
        let mut world = setup.build();
        let memory = world.register(1, KEY, &[7; 20_000], &[Access::Read, Access::Write]);
        world.pause(1);
        let place = |world: &World, offset| world.place(0, 1, KEY, offset);
        let mut open = Vec::new();
        for n in 0..300_u64 {
            let to = place(&world, 8 * (n % 100));
            open.push(match n % 3 {
                0 => world.write(0, vec![(to, 8)], &[7; 8], None),
                1 => world.read(0, vec![(to, 5000)]),
                _ => world.fetch_atomic(0, vec![(to, 200)], AtomicType::Uint64, AtomicOp::Read, &[], None),
            });
        }
        world.settle();
        let peer = peer_of(0, 1, 3);
        let backlog = world.endpoint(0).inspect_backlog(peer);
        assert!(backlog.requests > 100 || setup.window == Some(20_000), "{backlog:?}\n{world}");
        let one = backlog.unanswered <= 2000;
        assert!(backlog.unanswered <= backlog.unanswered_most || one, "{backlog:?}\n{world}");
        world.resume(1);
        world.settle();
        open.into_iter().for_each(|handle| assert!(world.success(handle).result.is_ok()));
        assert_eq!(memory.bytes(), [7; 20_000]);
        let backlog = world.endpoint(0).inspect_backlog(peer);
        assert_eq!((backlog.requests, backlog.unanswered, backlog.messages, backlog.notes), (0, 0, 0, 0), "{world}");
        for node in 0..2 {
            assert_eq!(world.counter(node, Counter::Violations), 0, "{world}");
        }
    }
}

#[test]
fn batches_of_deferral_notices_that_wait_for_nothing_are_bounded() {
    for setup in flooded(117) {
        let mut flood = Flood::new(setup);
        // Empty messages: each that a receive accepts is answered at once.
        let mut entry = [0; 32];
        entry[4] = 1;
        for n in 0..MANY {
            if n % 2 == 0 {
                flood.world.receive(0).from(1).tagged(0).post();
            }
            flood.inject(16, 0, 0, &[], &entry);
            flood.world.steps(2);
        }
        let backlog = flood.assert_bounded("deferral_notices");
        let quarantined = flood.world.counter(0, Counter::PeersQuarantined) == 1;
        assert!(quarantined || flood.world.counter(0, Counter::Violations) > MANY / 2, "{backlog:?}\n{}", flood.world);
        assert_others_work(&mut flood.world);
    }
}

#[test]
fn questions_offers_and_receipts_that_nobody_asked_for_are_bounded() {
    for setup in flooded(118).filter(|setup| setup.window == Some(0)) {
        let kinds: [(u8, &[u64]); 8] =
            [(17, &[]), (19, &[0]), (20, &[0]), (21, &[0]), (22, &[0]), (23, &[]), (24, &[]), (25, &[])];
        for (kind, fields) in kinds {
            for holds in [0, 200] {
                let mut flood = Flood::new(setup);
                // The victim may have deferred sends to the hostile node, whose window is used up, and which defers
                // sends as well.
                for n in 0..holds {
                    flood.world.send(0).to(1).tagged(n).bytes(&pattern(1, 30)).post();
                }
                flood.world.settle();
                flood.inject(3, 0, 9, &[0, 20, 0, 0], &[]);
                let mut entry = [0; 32];
                entry[4] = 1;
                flood.inject(16, 0, 0, &[], &entry);
                flood.world.settle();
                // Several hundred times as many as may be kept.
                for n in 0..MANY / 4 {
                    flood.world.receive(0).from(1).tagged(3 + n % 2).post();
                    flood.inject(kind, (n % 9) as u32, n % 5, fields, &[]);
                    flood.world.steps(2);
                }
                let backlog = flood.assert_bounded(&format!("kind {kind}"));
                assert!(backlog.messages <= holds as usize + 4, "kind {kind}: {backlog:?}\n{}", flood.world);
                assert_others_work(&mut flood.world);
            }
        }
    }
}

/// The window is given back as its messages are received, but a peer that does not retrieve `Room` has not got it back.
#[test]
fn messages_that_are_received_do_not_pay_for_more_until_room_is_taken() {
    for setup in flooded(119) {
        let setup = Setup { window: setup.window.map(|window| 20 * window), ..setup };
        for kind in [1, 3] {
            let mut flood = Flood::new(setup);
            for n in 0..MANY {
                flood.world.receive(0).from(1).tagged(0).capacity(100).post();
                // Eager messages of 8 bytes; requests to send of 20, which name no memory.
                match kind {
                    1 => flood.inject(1, 0, 0, &[], &[1; 8]),
                    _ => flood.inject(3, 0, 0, &[n % 7, 20, 0, 0], &[]),
                }
                flood.world.steps(2);
            }
            let backlog = flood.assert_bounded(&format!("kind {kind}"));
            let quarantined = flood.world.counter(0, Counter::PeersQuarantined) == 1;
            let dropped = quarantined || flood.world.counter(0, Counter::Violations) > MANY / 2;
            assert!(dropped, "kind {kind}: {backlog:?}\n{}", flood.world);
            // An envelope and an allocation each, more than 280 bytes.
            let received = flood.world.counter(0, Counter::BytesReceived) / 8;
            let window = flood.world.endpoint(0).inspect_window(peer_of(0, 1, 3)).window;
            assert!(received * 280 <= u64::from(window), "{received} were received\n{}", flood.world);
            assert_others_work(&mut flood.world);
        }
    }
}

#[test]
fn credits_for_a_peer_that_does_not_take_them_are_bounded() {
    for setup in flooded(123) {
        let mut flood = Flood::new(setup);
        flood.world.network().deaf = None;
        for n in 0..MANY {
            flood.world.receive(0).from(1).tagged(0).capacity(100).post();
            flood.inject(1, 0, 0, &[], &n.to_le_bytes());
            flood.world.steps(2);
        }
        let backlog = flood.assert_bounded("credits");
        assert!(backlog.control <= setup.credit_slots as usize + 2, "{backlog:?}\n{}", flood.world);
        assert_others_work(&mut flood.world);
    }
}

/// Long messages leave through the mailbox piece by piece. A hostile receiver sends a clear to send for all of them,
/// retrieves nothing, and sends `Finished` for each, the last first.
#[test]
fn a_false_end_of_a_long_message_costs_no_walk_past_all_others() {
    for setup in flooded(124).filter(|setup| setup.window == Some(20_000)) {
        let looks_each = [30, 60].map(|count| {
            let mut flood = Flood::new(Setup { memory: Memory::Mailbox, ..setup });
            for n in 0..count {
                flood.world.send(0).to(1).tagged(n).bytes(&pattern(1, 9000)).post();
            }
            flood.world.settle();
            for n in 0..count as u32 {
                flood.inject(5, n, 9000, &[0, 0], &[]);
            }
            flood.world.settle();
            let before = flood.world.endpoint(0).inspect_stream_looks();
            for n in (0..count as u32).rev() {
                flood.inject(6, n, 0, &[], &[]);
            }
            flood.world.settle();
            assert_eq!(flood.world.open_operations(0), 0, "all have ended\n{}", flood.world);
            let looks = flood.world.endpoint(0).inspect_stream_looks() - before;
            looks as f64 / count as f64
        });
        assert!(
            looks_each.iter().all(|looks| (0.5..=4.0).contains(looks)),
            "streams were there, and few were looked at: {looks_each:?}"
        );
    }
}

/// Queues begin with more places than one element needs. A peer that makes us keep one of a kind must not get that for
/// nothing.
#[test]
fn a_single_answer_that_waits_is_within_what_is_set_aside_for_it() {
    for setup in flooded(125) {
        for (offset, length) in [(0, 1), (0, 5000), (0, 90_000)] {
            let mut flood = Flood::new(setup);
            // Its mailbox fills with the answers to its reads; what it reads then waits, until it is quarantined.
            let (mut reads, mut answers) = (0, 0);
            for _ in 0..200 {
                flood.inject(9, 0, 0, &[KEY, offset, length], &[]);
                let backlog = flood.assert_bounded("reads");
                reads = reads.max(backlog.read_bytes.taken);
                answers = answers.max(backlog.answer_bytes.taken);
            }
            assert!(length < 5000 || reads > 0 && answers > 0, "a read and a piece wait: {reads} {answers}");
        }
    }
}

/// The window of a peer grows, and is to shrink back while the peer takes nothing: its free bytes pay for the notes
/// that wait for the peer.
#[test]
fn notes_that_wait_are_paid_for_though_the_window_was_to_shrink() {
    let setup = Setup { scheme: SchemeName::None, window: Some(200_000), operations: 1 << 20, ..Setup::new(12) };
    let mut flood = Flood::new(setup);
    flood.world.network().deaf = None;
    let peer = peer_of(0, 1, 12);
    let base = flood.world.endpoint(0).inspect_window(peer).window;
    let mut entry = [0; 32];
    entry[4] = 1;
    for _ in 0..8 {
        flood.inject(16, 0, 7, &[], &entry);
        flood.world.settle();
    }
    assert!(flood.world.endpoint(0).inspect_window(peer).window > 4 * base, "{}", flood.world);
    flood.world.network().deaf = Some(1);
    for _ in 0..8 {
        flood.world.receive(0).from(1).tagged(7).capacity(100).post();
    }
    for _ in 0..8 {
        // It was deferred, and its envelope dropped.
        let mut packet = Packet::new(PacketKind::Data, 24, 1);
        (packet.payload[0], packet.payload[8], packet.payload[11]) = (7, 8, 4);
        flood.world.inject_packet(1, 0, packet);
        flood.world.settle();
    }
    for _ in 0..3000 {
        flood.world.receive(0).from(1).tagged(9).capacity(100).post();
        flood.inject(3, 0, 9, &[5, 0, 0, 0], &[]);
        flood.world.steps(3);
        if flood.world.counter(0, Counter::Violations) > 0 {
            break;
        }
    }
    let backlog = flood.assert_bounded("requests to send of no bytes");
    assert!(backlog.notes > 1000, "{backlog:?}");
}
