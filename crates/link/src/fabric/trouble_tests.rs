//! Peers that take nothing, hear little, are no more, or are others than they were: nobody else is held up, nothing is
//! lost, and everybody is told.

use super::network::{Route, Token};
use super::peer::OUTSTANDING_MOST;
use super::protocol::Protocol;
use super::testing::{Faults, contact};
use super::tests::{Job, MOMENT, WHILE, flow, greeting};
use super::{LowerAddress, Network, NetworkEvent, Sending};
use std::time::Duration;
use tidegate_flow::{Config, Instant, PeerId, SchemeName};
use tidegate_message::{Departure, LinkEvent};

/// A job of many, of which the first knows all others.
pub(super) fn star(nodes: usize) -> (Job, Vec<PeerId>) {
    let mut job = Job::new(nodes, 1);
    let flow = Config::new(SchemeName::Dynamic, nodes as u32, 64, 2);
    for (id, node) in job.nodes.iter_mut().enumerate() {
        node.protocol = Protocol::new(greeting(id as u64, 64), &flow);
    }
    let places = (1..nodes).map(|node| job.peer(0, node)).collect();
    job.steps(4, MOMENT);
    (job, places)
}

#[test]
fn peers_that_take_nothing_hold_up_nobody() {
    let (mut job, places) = star(41);
    (1..40).for_each(|node| job.world.borrow_mut().stop_taking(node, true));
    for number in 0..400 {
        for place in &places {
            let _ = job.write(0, *place, number);
        }
        // Only the last one makes progress: the others compute.
        job.now = job.now + Duration::from_millis(25);
        job.exchange(0);
        job.exchange(40);
        assert_eq!(job.retrieve(40), Some((PeerId(0), number)), "the last one gets each packet at once");
    }
    assert_eq!(job.departure(0), None);
    (1..40).for_each(|node| job.world.borrow_mut().stop_taking(node, false));
    job.steps(400, WHILE);
    for node in 1..40 {
        assert_eq!(job.retrieve(node), Some((PeerId(0), 0)), "they have lost nothing");
    }
}

#[test]
fn what_was_lost_is_sent_again_by_who_rarely_exchanges_and_often_hears() {
    let mut job = Job::new(2, 1);
    let to = job.peer(0, 1);
    job.steps(3, MOMENT);
    job.world.borrow_mut().lose_packets = 1;
    job.write(0, to, 7).unwrap();
    let arrived = (0..200).position(|step| {
        job.now = job.now + WHILE;
        if step % 20 == 0 {
            job.exchange(0);
        }
        // It writes, too, so that it is heard each time.
        let back = job.nodes[1].protocol.peer(&contact(0, 0, 64)).unwrap();
        let _ = job.write(1, back, step);
        job.exchange(1);
        while job.retrieve(0).is_some() {}
        job.retrieve(1).is_some()
    });
    assert!(arrived.is_some_and(|steps| steps <= 80), "within four seconds, that is four exchanges: {arrived:?}");
    assert_eq!(job.nodes[0].protocol.counts().resent, 1);
}

#[test]
fn sendings_that_fail_are_tried_again_at_a_bounded_rate() {
    let mut job = Job::new(2, 1);
    let to = job.peer(0, 1);
    job.steps(3, MOMENT);
    job.world.borrow_mut().faults = Faults { failed: 1000, ..Faults::default() };
    job.write(0, to, 7).unwrap();
    let before = job.world.borrow().tried;
    for _ in 0..100_000 {
        job.now = job.now + Duration::from_micros(50);
        job.exchange(0);
    }
    let tried = job.world.borrow().tried - before;
    assert!((100..5000).contains(&tried), "{tried} in five seconds");
    job.world.borrow_mut().faults = Faults::default();
    job.steps(40, WHILE);
    assert_eq!((job.retrieve(1), job.departure(0)), (Some((PeerId(0), 7)), None));
}

#[test]
fn packets_count_as_unsent_until_they_are_acknowledged() {
    let mut job = Job::new(2, 1);
    let to = job.peer(0, 1);
    job.steps(3, MOMENT);
    assert!(!job.nodes[0].protocol.has_unsent());
    job.write(0, to, 7).unwrap();
    for _ in 0..100 {
        job.now = job.now + WHILE;
        job.exchange(0);
        let protocol = &job.nodes[0].protocol;
        assert!(protocol.has_unsent() && protocol.has_unsent_to(to), "the peer computes");
    }
    assert_eq!(job.nodes[0].protocol.unsent().count(), 1);
    job.steps(2, MOMENT);
    job.steps(2, WHILE);
    let protocol = &job.nodes[0].protocol;
    assert_eq!((protocol.has_unsent(), protocol.has_unsent_to(to), protocol.unsent().count()), (false, false, 0));
    assert_eq!(protocol.name_of(to).as_deref(), Some("rank 1 (pid 1 of host h1)"));
}

#[test]
fn a_place_is_given_away_amid_sendings() {
    let mut job = Job::new(2, 1);
    let to = job.peer(0, 1);
    job.steps(3, MOMENT);
    job.world.borrow_mut().stop_taking(1, true);
    job.write(0, to, 7).unwrap();
    job.exchange(0);
    job.nodes[0].protocol.release(to, job.now);
    // The network asserts that it is not made to forget the peer before it has ended what it has.
    job.steps(20, WHILE);
    job.world.borrow_mut().stop_taking(1, false);
    job.steps(20, WHILE);
    assert!(job.retrieve(1).is_some());
    assert!(job.departure(1).unwrap().1.contains("does not hear this process any more"));
}

/// A network that takes everything and tells the same again and again.
struct Telling(fn() -> NetworkEvent<'static>);

impl Network for Telling {
    fn address(&self) -> LowerAddress {
        LowerAddress::default()
    }
    fn resolve(&mut self, _: &LowerAddress) -> Result<Route, String> {
        Ok(Route(0))
    }
    fn forget(&mut self, _: Route) {}
    fn send(&mut self, _: Route, _: Token, _: &[u8]) -> Sending {
        Sending::Taken
    }
    fn poll(&mut self) -> Option<NetworkEvent<'_>> {
        Some((self.0)())
    }
}

#[test]
fn a_network_that_breaks_ends_all_peers_and_says_why() {
    let mut protocol = Protocol::new(greeting(0, 64), &flow());
    let to = protocol.peer(&contact(1, 1, 64)).unwrap();
    let mut broken = Telling(|| NetworkEvent::Broken("the card has fallen out".into()));
    protocol.exchange(&mut broken, Instant::from_nanos(1));
    let Some(LinkEvent::Departed(Departure { peer, orderly, name })) = protocol.poll_event() else {
        panic!("no event")
    };
    assert!(peer == to && !orderly && name.contains("the card has fallen out"), "{name}");
    assert!(protocol.peer(&contact(2, 2, 64)).unwrap_err().to_string().contains("the card has fallen out"));
}

#[test]
fn one_peer_has_a_bounded_number_of_sendings() {
    let (mut job, places) = star(2);
    job.world.borrow_mut().stop_taking(1, true);
    for number in 0..100_000 {
        let _ = job.write(0, places[0], number);
        if number % 64 == 0 {
            job.now = job.now + WHILE;
            job.exchange(0);
        }
    }
    assert!(job.world.borrow().tried <= 4 + u64::from(OUTSTANDING_MOST), "{}", job.world.borrow().tried);
}

#[test]
fn what_is_dropped_below_is_counted_and_ends_nothing() {
    let mut protocol = Protocol::new(greeting(0, 64), &flow());
    protocol.peer(&contact(1, 1, 64)).unwrap();
    for _ in 0..1000 {
        protocol.exchange(&mut Telling(|| NetworkEvent::Dropped), Instant::from_nanos(1));
    }
    assert_eq!((protocol.counts().dropped, protocol.poll_event()), (32_000, None));
}

/// How a peer is missed that is killed, before it was ever heard of or after.
fn missed(is_known: bool) -> String {
    let mut job = Job::new(2, 1);
    job.world.borrow_mut().doubt = Some("its address is one of ours".into());
    job.peer(0, 1);
    if is_known {
        job.steps(3, MOMENT);
    }
    job.world.borrow_mut().kill(1);
    job.nodes.remove(1);
    job.steps(100, WHILE);
    job.departure(0).unwrap().1
}

#[test]
fn who_has_never_answered_may_not_be_where_we_think() {
    let said = missed(false);
    assert!(said.contains("its process has ended, or its address is one of ours"), "{said}");
    assert!(!missed(true).contains("its address is one of ours"));
}
