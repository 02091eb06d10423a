//! Peers that say nothing cost next to nothing: the bytes that an endpoint really has on the heap are counted.

use super::mirror::{endpoint, live_bytes, talk};
use tidegate_message::PeerId;
use tidegate_message::flow::SchemeName;

/// Most bytes that a silent peer takes when every table is in use: half of the eight that it may take in all, since the
/// link has four.
const SILENT_BYTES: usize = 4;
/// Most bytes that a peer takes that talks, however far from the others its place is.
const TALKER_BYTES: usize = 20 << 10;
/// What an endpoint takes besides.
const OTHER_BYTES: usize = 16 << 10;

const TALKERS: u32 = 8;

/// Bytes that an endpoint for so many peers has on the heap, before it talks and after, with some that are far from
/// each other.
fn bytes(scheme: SchemeName, peers: u32) -> (usize, usize) {
    let before = live_bytes();
    let mut endpoint = endpoint(scheme, peers);
    let begun = live_bytes() - before;
    for talker in 0..TALKERS {
        talk(&mut endpoint, PeerId(talker * (peers / TALKERS)));
    }
    (begun as usize, (live_bytes() - before) as usize)
}

/// The endpoint's part of what N6 asks for: with a pool of slots, and the link's part of at most 0.45 MB
/// (`crates/link/tests/it/many_peers.rs`), an endpoint for 65,536 peers of which eight talk takes less than 4 MB, one
/// for 262,144 less than 16.
#[test]
fn a_pool_of_slots_for_many_that_talks_to_few_is_small() {
    for (peers, most) in [(1 << 16, 200_000), (1 << 18, 450_000)] {
        let (_, bytes) = bytes(SchemeName::Speculative, peers);
        println!("{peers} peers: {bytes} bytes");
        assert!(bytes <= most, "{bytes} bytes for {peers} peers");
    }
}

#[test]
fn peers_that_say_nothing_cost_less_than_four_bytes_each() {
    const FEW: u32 = 1 << 10;
    const MANY: u32 = 1 << 16;
    for &scheme in SchemeName::OFFERED {
        let ((few_begun, few), (many_begun, many)) = (bytes(scheme, FEW), bytes(scheme, MANY));
        let each = (many - few) as f64 / f64::from(MANY - FEW);
        println!("{scheme}: {many_begun} bytes for {MANY} peers, {many} when {TALKERS} talk: {each:.2} a silent one");
        assert_eq!(few_begun, many_begun, "{scheme}: nothing is kept before the first contact");
        assert!(
            many < SILENT_BYTES * MANY as usize + TALKERS as usize * TALKER_BYTES + OTHER_BYTES,
            "{scheme}: {many}"
        );
        assert!(each < SILENT_BYTES as f64, "{scheme}: {each}");
    }
}
