//! What a peer costs that has talked and is idle: the bytes that an endpoint really has on the heap are counted.

use super::mirror::{Mirror, access, endpoint, exchange_at_once, live_bytes, talk};
use std::ops::Range;
use tidegate_message::flow::SchemeName;
use tidegate_message::{Endpoint, PeerId};

/// Most bytes of a peer in the tables of messages, to which flow control adds its own: under `dynamic` P counts 150.
const MESSAGE_BYTES: usize = 110;
const PEER_BYTES: [(SchemeName, usize); 4] = [
    (SchemeName::None, MESSAGE_BYTES),
    (SchemeName::Static, MESSAGE_BYTES + 30),
    (SchemeName::Dynamic, MESSAGE_BYTES + 85),
    (SchemeName::Speculative, MESSAGE_BYTES),
];

/// Peers that talk first, as many as later, so that what there is for all together is there.
const FIRST: u32 = 512;
const PEERS: u32 = 1024;

/// Bytes that each further peer has taken once all have had their turns and are idle.
fn bytes_each(scheme: SchemeName, turn: impl Fn(&mut Endpoint<Mirror>, Range<u32>)) -> usize {
    let mut endpoint = endpoint(scheme, PEERS);
    turn(&mut endpoint, 0..FIRST);
    let before = live_bytes();
    turn(&mut endpoint, FIRST..PEERS);
    assert!(!endpoint.has_work_left());
    (live_bytes() - before).div_euclid((PEERS - FIRST) as isize) as usize
}

/// Short messages and long ones, of which some waited for credits, came in parts, or were unexpected, and remote
/// operations.
#[test]
fn peers_that_have_talked_one_after_the_other_cost_little() {
    for (scheme, most) in PEER_BYTES {
        let each = bytes_each(scheme, |endpoint, peers| {
            for peer in peers {
                talk(endpoint, PeerId(peer));
                access(endpoint, peer..peer + 1);
            }
        });
        println!("{scheme}: {each} bytes");
        assert!(each <= most, "{scheme}: {each} bytes for a peer that is idle");
    }
}

/// The same where all were busy at a time.
#[test]
fn peers_that_have_talked_at_the_same_time_cost_little() {
    for (scheme, most) in PEER_BYTES {
        let each = bytes_each(scheme, |endpoint, peers| {
            exchange_at_once(endpoint, peers.clone());
            access(endpoint, peers);
        });
        println!("{scheme}: {each} bytes");
        assert!(each <= most, "{scheme}: {each} bytes for a peer that is idle");
    }
}
