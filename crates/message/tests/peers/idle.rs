//! What a peer costs that has talked and is idle: the bytes that an endpoint really has on the heap are counted.

use super::mirror::{Mirror, Zeros, endpoint, live_bytes, talk};
use std::ops::Range;
use tidegate_message::flow::SchemeName;
use tidegate_message::{
    Access, Context, Endpoint, Instant, MatchFlags, PeerId, ReadRequest, Receive, RemoteTarget, Send, Source, Space,
    Target, WriteRequest,
};

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

/// Sends a long message to each of these peers and receives it from there, while what is for the others is under way.
/// Then each gets a short one.
fn exchange_at_once(endpoint: &mut Endpoint<Mirror>, peers: Range<u32>) {
    for length in [3000, 100, 8] {
        let (space, mut ended) = (Space::Untagged, 0);
        let mut take = |endpoint: &mut Endpoint<Mirror>| {
            ended += std::iter::from_fn(|| endpoint.poll_completion()).count();
            ended
        };
        for peer in peers.clone().map(|peer| Target::Peer(PeerId(peer))) {
            let (from, context, flags) = (Source::From(peer), Context(0), MatchFlags::default());
            let (buffer, multi) = (Zeros(length), None);
            endpoint
                .receive(Receive { from, space, buffer, context, multi, flags, report: true })
                .expect("there is room");
            let (to, buffer) = (peer, Zeros(length));
            let send = Send { to, space, buffer, data: None, context, inject: false, delivery: false, report: true };
            endpoint.send(send).expect("there is room");
            take(endpoint);
        }
        while endpoint.progress(Instant::default()) {
            take(endpoint);
        }
        assert_eq!(take(endpoint), 2 * peers.len(), "{length} bytes");
    }
}

/// Writes to memory of each of these peers and reads it, by messages: of the first as many bytes as several have.
fn access(endpoint: &mut Endpoint<Mirror>, peers: Range<u32>) {
    const KEY: u64 = 7;
    endpoint.register(KEY, Zeros(1 << 16), &[Access::Read, Access::Write]);
    for length in [8, 10_000] {
        let context = Context(0);
        for peer in peers.clone().map(PeerId) {
            let place = || vec![(RemoteTarget { to: Target::Peer(peer), key: KEY, offset: 0 }, length as u64)];
            let (to, buffer) = (place(), Zeros(length));
            let write = WriteRequest { to, buffer, data: None, context, inject: false, report: true };
            endpoint.write(write).expect("there is room");
            let (from, buffer) = (place(), Zeros(length));
            endpoint.read(ReadRequest { from, buffer, context, report: true }).expect("there is room");
        }
        let mut ended = 0;
        while endpoint.progress(Instant::default()) {
            ended += std::iter::from_fn(|| endpoint.poll_completion()).count();
        }
        assert_eq!(ended, 2 * peers.len(), "{length} bytes");
    }
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
