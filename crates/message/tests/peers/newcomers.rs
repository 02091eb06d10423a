//! Newcomers for which places are opened as they come: all that they make an endpoint keep stays within the bound, and
//! until they come it has as much memory as without them.

use super::mirror::{Mirror, Zeros, live_bytes, with_flow};
use tidegate_message::flow::{Config, SchemeName};
use tidegate_message::{
    Context, Counter, Endpoint, Instant, Link, MatchFlags, PeerId, Receive, Send, Source, Space, Target,
};

const BOUND: usize = 64 << 20;
const PLANNED: u32 = 64;
const NEWCOMERS: u32 = 512;

/// An endpoint of a small job with that many later newcomers at most.
fn endpoint(later: u32) -> Endpoint<Mirror> {
    let newcomers = NEWCOMERS + later;
    let flow = Config { newcomers, later, ..Config::new(SchemeName::Speculative, PLANNED + newcomers, 64, 2) };
    with_flow(flow, BOUND)
}

/// Each of these peers leaves messages of this length here, until its window has room for no more.
fn fill(endpoint: &mut Endpoint<Mirror>, peers: std::ops::Range<u32>, length: usize) {
    for peer in peers.map(PeerId) {
        loop {
            let (to, space, buffer) = (Target::Peer(peer), Space::Untagged, Zeros(length));
            let before = endpoint.link().counters().get(Counter::SendsDeferred);
            let context = Context(0);
            let send = Send { to, space, buffer, data: None, context, inject: false, delivery: false, report: false };
            endpoint.send(send).expect("there is room");
            while endpoint.progress(Instant::default()) {}
            while endpoint.poll_completion().is_some() {}
            if endpoint.link().counters().get(Counter::SendsDeferred) > before {
                break;
            }
        }
    }
}

/// All newcomers that may come want places, again and again until no more are opened.
fn open_all(endpoint: &mut Endpoint<Mirror>) {
    let mut open = 0;
    while open < endpoint.places().0 {
        open = endpoint.places().0;
        let link = endpoint.link_mut();
        (link.taken, link.told_low) = (link.places.1, 0);
        while endpoint.progress(Instant::default()) {}
    }
}

#[test]
fn the_bound_holds_with_all_newcomers_that_it_can_pay_for() {
    let begun = live_bytes();
    let mut endpoint = endpoint(4000);
    let (open, most) = endpoint.places();
    assert!(open == PLANNED + NEWCOMERS && most > PLANNED + 1500, "{open} {most}");
    open_all(&mut endpoint);
    assert_eq!((endpoint.places(), endpoint.link().places), ((most, most), (most, most)));
    // As many messages as a window holds of the longest that a newcomer may send at once.
    fill(&mut endpoint, PLANNED..most, 120);
    fill(&mut endpoint, 0..PLANNED, 2000);
    let bytes = (live_bytes() - begun) as usize + endpoint.link().counters().get(Counter::MailboxBytes) as usize;
    let stored = endpoint.link().counters().get(Counter::UnmatchedBytes) as usize;
    println!("{most} peers have left {stored} bytes; the endpoint has {bytes}");
    assert!(stored > BOUND / 2 && bytes <= BOUND, "{stored} bytes of {bytes}");
    let peak = endpoint.link().counters().get(Counter::ReceivePeak) as usize;
    assert!(peak <= BOUND, "{peak}");
}

#[test]
fn places_wait_for_memory_that_windows_have_and_are_opened_a_few_at_a_time() {
    let mut endpoint = endpoint(4000);
    // These peers leave messages here until nearly all of the spare memory is their windows.
    fill(&mut endpoint, 0..16, 2000);
    open_all(&mut endpoint);
    let (open, most) = endpoint.places();
    assert!(open < most, "{open} of {most}");
    // All are received, one after the other: these peers have no more than their base windows afterwards.
    let mut opened = std::collections::BTreeSet::new();
    while endpoint.link().counters().get(Counter::UnmatchedBytes) > 0 {
        let (space, from, flags) = (Space::Untagged, Source::Any, MatchFlags::default());
        let (buffer, context) = (Zeros(2000), Context(1));
        let receive = Receive { from, space, buffer, context, multi: None, flags, report: true };
        endpoint.receive(receive).expect("there is room");
        open_all(&mut endpoint);
        while endpoint.poll_completion().is_some() {}
        opened.insert(endpoint.places().0);
    }
    println!("{opened:?}");
    assert_eq!(endpoint.places(), (most, most));
    assert!(opened.len() > 10, "{opened:?}");
}

#[test]
fn no_more_places_are_opened_than_newcomers_need() {
    let mut endpoint = endpoint(4000);
    let open = endpoint.places().0;
    for (taken, places) in [(100, open), (open - 256, open), (open - 255, open + 256), (open, open + 256)] {
        endpoint.link_mut().taken = taken;
        while endpoint.progress(Instant::default()) {}
        assert_eq!(endpoint.places().0, places, "{taken} are taken");
    }
}

#[test]
fn newcomers_that_never_come_cost_nothing() {
    let bytes = [0, 4000].map(|later| {
        let begun = live_bytes();
        let mut endpoint = endpoint(later);
        fill(&mut endpoint, 0..8, 2000);
        live_bytes() - begun
    });
    assert!(bytes[1] <= bytes[0] + 4 * 4000, "{bytes:?}");
}
