//! Packets that no correct peer sends: dropped and counted, never a panic, never memory without bound.

use crate::support::{Memory, Random, Setup, assert_others_work, fuzz_packets, hostile_run};
use tidegate_message::flow::{Packet, PacketKind};
use tidegate_message::{Access, Counter};

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

#[test]
fn malformed_packets_are_counted() {
    let mut world = Setup::new(3).build();
    // No message is under way, and no kind 0 or 31 exists.
    for label in [0, 0x20, 0x3f] {
        world.inject_packet(1, 0, Packet::new(PacketKind::Data, 56, label));
    }
    world.inject_packet(1, 0, Packet::with_credits(PacketKind::Credit, u32::MAX));
    world.settle();
    assert_eq!(world.counter(0, Counter::Violations), 4);
}

#[test]
fn announced_lengths_that_never_come_take_no_memory_in_proportion() {
    let mut world = Setup::new(3).build();
    for _ in 0..1000 {
        // First packets of eager messages of 1 MiB whose rest never comes.
        let mut packet = Packet::new(PacketKind::Data, 56, 1 | 1 << 5);
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
                    // Eager messages of 16 bytes; announcements of as many, which name no memory.
                    let mut packet = Packet::new(PacketKind::Data, if kind < 3 { 32 } else { 48 }, kind | 1 << 5);
                    packet.payload[0] = tag;
                    packet.payload[8] = if kind < 3 { 16 } else { 0 };
                    packet.payload[24] = 16;
                    world.inject_packet(1, 0, packet);
                }
            }
            world.settle();
            assert!(world.counter(0, Counter::UnmatchedBytes) > 0 || window == 0, "some are within it\n{world}");
            assert!(world.counter(0, Counter::Violations) > 100, "most are not\n{world}");
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
            let kind = 8 + random.below(4) as u16;
            let mut packet = Packet::new(PacketKind::Data, 56, kind | 1 << 5);
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
