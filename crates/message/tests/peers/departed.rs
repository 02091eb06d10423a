//! Peers that have left and whose messages are stored: they keep their places, and cost nothing else.

use super::mirror::{Mirror, Zeros, endpoint};
use std::time::{Duration, Instant as Moment};
use tidegate_message::flow::SchemeName;
use tidegate_message::{Context, Endpoint, Instant, MatchFlags, PeerId, Receive, Send, Source, Space, Target};

const SPACE: Space = Space::Tagged { tag: 7, ignore: 0 };

/// An endpoint with a message of each of so many peers, all of which have left.
fn with_departed(peers: u32) -> Endpoint<Mirror> {
    let mut endpoint = endpoint(SchemeName::Static, peers);
    for peer in (0..peers).map(PeerId) {
        let (to, buffer, context) = (Target::Peer(peer), Zeros(8), Context(0));
        let send =
            Send { to, space: SPACE, buffer, data: None, context, inject: false, delivery: false, report: false };
        endpoint.send(send).expect("there is room");
        while endpoint.progress(Instant::default()) {}
    }
    endpoint.link_mut().leaving = (0..peers).map(PeerId).collect();
    while endpoint.progress(Instant::default()) {}
    endpoint
}

/// The least time of a thousand calls of progress.
fn time(endpoint: &mut Endpoint<Mirror>) -> Duration {
    let calls = |endpoint: &mut Endpoint<Mirror>| {
        let begun = Moment::now();
        (0..1000).for_each(|_| _ = endpoint.progress(Instant::default()));
        begun.elapsed()
    };
    (0..5).map(|_| calls(endpoint)).min().unwrap_or_default()
}

#[test]
fn progress_takes_as_long_among_4000_who_left_as_among_16() {
    let [few, many] = [16, 4000].map(|peers| {
        let mut endpoint = with_departed(peers);
        assert_eq!(endpoint.link_mut().released, 0, "their messages are stored");
        time(&mut endpoint)
    });
    println!("a thousand calls: {few:?} among 16, {many:?} among 4000");
    assert!(many < 5 * few, "{few:?} among 16, {many:?} among 4000");
}

#[test]
fn every_place_is_given_back_once_its_messages_are_received() {
    const PEERS: u32 = 100;
    let mut endpoint = with_departed(PEERS);
    for peer in (0..PEERS).rev().map(PeerId) {
        let (from, flags) = (Source::From(Target::Peer(peer)), MatchFlags::default());
        let receive =
            Receive { from, space: SPACE, buffer: Zeros(8), context: Context(1), multi: None, flags, report: true };
        endpoint.receive(receive).expect("there is room");
        assert!(endpoint.poll_completion().is_some_and(|completion| completion.result.is_ok()));
    }
    for _ in 0..PEERS {
        endpoint.progress(Instant::default());
    }
    assert_eq!((endpoint.link_mut().released, endpoint.has_departed()), (PEERS as usize, false));
}
