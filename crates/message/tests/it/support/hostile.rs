//! Any bytes as a run: packets of a hostile peer between honest operations. Used by tests with seeds and by the fuzz
//! target with whatever a fuzzer finds.

use super::link::peer_of;
use super::world::{Setup, World};
use super::{Memory, pattern};
use tidegate_message::flow::{Header, PAYLOAD_BYTES, Packet, SchemeName};
use tidegate_message::{Access, Counter};

/// Bytes of an input that count: longer ones only take longer.
const LONGEST_INPUT: usize = 8192;

/// The setting that the first bytes of a fuzzer's input choose.
fn setup_from(bytes: &[u8]) -> Setup {
    let at = |place: usize| usize::from(bytes.get(place).copied().unwrap_or(0));
    // Who waits for a buffer of one that has stopped tries again for ever, and such a run is never still.
    let scheme = SchemeName::WITHOUT_BUFFERS[at(0) % SchemeName::WITHOUT_BUFFERS.len()];
    let (slots, credit_slots) = [(2, 1), (3, 1), (8, 2)][at(0) / 3 % 3];
    let memory = Memory::ALL[at(0) / 9 % Memory::ALL.len()];
    let window = [None, Some(0), Some(200), Some(3000)][at(1) / 2 % 4];
    let base = Setup { scheme, slots, credit_slots, memory, window, piggyback: at(0) >= 128, ..Setup::new(3) };
    Setup { scheduled: at(1) % 2 == 1, seed: at(1) as u64, operations: 1 << 20, ..base }
}

/// The whole of a fuzzer's run: nothing panics, and nodes 0 and 2 still understand each other.
pub fn fuzz_packets(bytes: &[u8]) {
    let (settings, actions) = bytes.split_at(bytes.len().min(2));
    let actions = &actions[..actions.len().min(LONGEST_INPUT)];
    assert_others_work(&mut hostile_run(setup_from(settings), actions));
}

/// Checks that nodes 0 and 2 understand each other, whatever node 1 has done.
pub fn assert_others_work(world: &mut World) {
    for (from, to) in [(0, 2), (2, 0)] {
        for size in [10, 1000, 9000] {
            let tag = 0xfeed_0000 + size as u64;
            let receive = world.receive(to).from(from).tagged(tag).capacity(size).post();
            world.send(from).to(to).tagged(tag).bytes(&pattern(from, size)).post();
            world.settle();
            assert!(world.bytes(receive) == pattern(from, size), "{world}");
        }
    }
}

/// Node 1 sends node 0 what `bytes` say while node 0 goes about its business with everybody. Returns the world, still,
/// with the hostile node stopped.
pub fn hostile_run(setup: Setup, bytes: &[u8]) -> World {
    let mut world = setup.build();
    let both = [Access::Read, Access::Write];
    world.register(0, 1, &[7; 300], &both);
    world.register(1, 1, &[7; 300], &both);
    let mut rest = bytes;
    while let Some((&action, after)) = rest.split_first() {
        rest = after;
        match action % 16 {
            // Operations that a hostile peer never ends only fill the memory of the test.
            9..=14 if world.open_operations(0) >= 64 => world.steps(1),
            0..=8 => rest = inject(&mut world, action, rest),
            9 => drop(world.receive(0).from(1).tagged(u64::from(action >> 6)).capacity(100).try_post()),
            10 => drop(world.receive(0).from(1).matching(0, u64::MAX).capacity(3000).multi(100).try_post()),
            11 => drop(world.send(0).to(1).tagged(u64::from(action)).bytes(&pattern(1, 4000)).try_post()),
            12 => drop(world.send(0).to(1).bytes(&pattern(1, 100)).try_post()),
            13 => remote(&mut world, action),
            14 => drop(world.receive(0).from(1).matching(0, u64::MAX).peek().claim().try_post()),
            // From now on it retrieves nothing but credits.
            _ if action >> 4 == 15 => world.network().deaf = Some(1),
            _ => world.steps(usize::from(action >> 4)),
        }
        assert_answers_bounded(&mut world);
    }
    world.pause(1);
    world.settle();
    let bound = world.counter(0, Counter::ReceiveBound);
    assert!(world.counter(0, Counter::ReceivePeak) <= bound, "receive memory beyond its bound\n{world}");
    assert_answers_bounded(&mut world);
    world
}

/// Checks that what node 0 keeps for the hostile node is within its bound; a note more for each receive.
fn assert_answers_bounded(world: &mut World) {
    let (peer, receives) = (peer_of(0, 1, world.setup.nodes), world.open_operations(0));
    let backlog = world.endpoint(0).inspect_backlog(peer);
    assert!(backlog.is_within_its_bounds(receives), "{backlog:?}\n{world}");
}

/// Operations on the hostile node's memory.
fn remote(world: &mut World, action: u8) {
    let peer = world.target(0, 1);
    assert_eq!(peer, tidegate_message::Target::Peer(peer_of(0, 1, world.setup.nodes)));
    let place = world.place(0, 1, 1, 0);
    match action >> 4 & 1 {
        0 => drop(world.read(0, vec![(place, 300)])),
        _ => drop(world.write(0, vec![(place, 300)], &[1; 300], Some(1))),
    }
}

/// The next packet: its header from the input, its payload from the input as far as it goes, biased towards small
/// numbers and known kinds, without which hardly any packet would get past the first check.
fn inject<'b>(world: &mut World, action: u8, rest: &'b [u8]) -> &'b [u8] {
    let (header, rest) = rest.split_at(rest.len().min(4));
    let mut bits = [0; 4];
    bits[..header.len()].copy_from_slice(header);
    let [kind_length, flags, kind, head_flags] = bits;
    let flow_kind = if action & 0x80 != 0 { u64::from(flags & 3) } else { 0 };
    let length = u64::from(kind_length & 0x3f);
    let ride = u64::from(flags >> 2 & 1);
    let known = kind % 27;
    let message = if action & 0x40 != 0 { kind & if flags & 0x40 != 0 { 0xff } else { 0x1f } } else { known };
    // Bits 39 to 47, 62 and 63 are reserved: nobody looks at them.
    let reserved = if action & 0x10 != 0 { (u64::from(head_flags) * 0x0101) & 0x1ff } else { 0 };
    let word = flow_kind << 36 | ride << 38 | reserved << 39 | length << 48 | u64::from(message) << 54;
    let mut payload = [0; PAYLOAD_BYTES];
    let (bytes, rest) = rest.split_at(rest.len().min(usize::from(kind_length) % (PAYLOAD_BYTES + 1)));
    if action & 0x20 != 0 {
        payload[..bytes.len()].copy_from_slice(bytes);
    } else {
        // Every byte becomes a small 32-bit number.
        for (place, byte) in payload.chunks_exact_mut(4).zip(bytes) {
            place[0] = *byte;
        }
    }
    // Completion data, its width, and what a receiver has dropped, are flags behind the length.
    if action & 0x40 != 0 {
        payload[11] = head_flags & if flags & 0x80 != 0 { 0xff } else { 7 };
    }
    world.inject_packet(1, 0, Packet { header: Header::from_bits(word), payload });
    rest
}
