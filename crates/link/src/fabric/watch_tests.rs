//! Processes that end, compute or are out of reach, over a network that takes all sendings and tells nothing.

use super::kernels::Host;
use super::network::Network;
use super::protocol::Protocol;
use super::tests::{Job, MOMENT, WHILE, flow, greeting};
use super::{Greeting, ProbeTarget, Watched};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Two that have met, over such a network, with their first packet on its way.
fn pair() -> Job {
    let mut job = Job::new(2, 1);
    job.world.borrow_mut().tells_nothing = true;
    job.world.borrow_mut().kernels.say_names = true;
    for (id, node) in job.nodes.iter_mut().enumerate() {
        let own = Greeting { watched: node.network.watched(), ..greeting(id as u64, 64) };
        node.protocol = Protocol::new(own, &flow());
    }
    let to = job.peer(0, 1);
    job.steps(3, MOMENT);
    job.steps(40, WHILE);
    job.write(0, to, 7).unwrap();
    job
}

/// The first one alone makes progress, until it misses the other. How long that takes, and why.
fn missed(job: &mut Job, most: Duration) -> Option<(Duration, String)> {
    let begun = job.now;
    while job.now.since(begun) < most {
        job.now = job.now + WHILE;
        job.exchange(0);
        if let Some((orderly, why)) = job.departure(0) {
            assert!(!orderly);
            return Some((job.now.since(begun), why));
        }
    }
    None
}

#[test]
fn a_killed_process_is_missed_in_four_seconds() {
    let mut job = pair();
    job.steps(2, WHILE);
    job.world.borrow_mut().kill(1);
    let (after, why) = missed(&mut job, 60 * SECOND).expect("it is missed");
    assert!(after < 4 * SECOND, "{after:?}");
    assert!(why.contains("rank 1") && why.contains("its process has ended"), "{why}");
    assert_eq!(job.world.borrow().kernels.held(), 0, "no connection is left");
}

#[test]
fn one_that_is_killed_while_it_computes_is_missed_with_the_next_question() {
    let mut job = pair();
    assert_eq!(missed(&mut job, 600 * SECOND), None);
    job.world.borrow_mut().kill(1);
    assert!(missed(&mut job, 60 * SECOND).expect("it is missed").0 < 4 * SECOND);
}

#[test]
fn one_that_computes_is_asked_by_one_connection_and_not_missed() {
    let mut job = pair();
    let tried = |job: &Job| job.world.borrow().kernels.tried[ProbeTarget::Peer as usize];
    let before = tried(&job);
    assert_eq!(missed(&mut job, 3600 * SECOND), None);
    assert_eq!((tried(&job) - before, job.world.borrow().kernels.held_peak), (1, 1));
    job.steps(20, WHILE);
    assert_eq!(job.retrieve(1).map(|(_, number)| number), Some(7));
    assert_eq!(job.world.borrow().kernels.held(), 0, "it was heard, so nobody asks");
}

#[test]
fn the_network_by_which_kernels_are_asked_may_be_down() {
    for away in [Host { is_off: true, ..Host::default() }, Host { is_unreachable: true, ..Host::default() }] {
        let mut job = pair();
        job.world.borrow_mut().kernels.hosts.insert(1, away);
        job.world.borrow_mut().kernels.end_connections(1);
        assert_eq!(missed(&mut job, 1800 * SECOND), None, "the other network carries on");
        job.steps(20, WHILE);
        assert_eq!(job.retrieve(1).map(|(_, number)| number), Some(7));
    }
}

/// Two that greet each other while the port of the second is as `before` says; then it computes or is killed.
fn greeted(before: impl Fn(&mut Job)) -> Job {
    let mut job = Job::new(2, 1);
    job.world.borrow_mut().tells_nothing = true;
    job.world.borrow_mut().kernels.say_names = true;
    for (id, node) in job.nodes.iter_mut().enumerate() {
        let own = Greeting { watched: node.network.watched(), ..greeting(id as u64, 64) };
        node.protocol = Protocol::new(own, &flow());
    }
    before(&mut job);
    job.peer(0, 1);
    job.steps(3, MOMENT);
    job.steps(40, WHILE);
    job
}

#[test]
fn a_firewall_that_refuses_from_the_beginning_ends_nobody() {
    let mut job = greeted(|job| job.world.borrow_mut().kernels.end_process(1));
    assert_eq!(missed(&mut job, 1800 * SECOND), None);
}

#[test]
fn a_queue_that_is_full_at_first_is_tried_again() {
    // Its process accepts what waits with each step, so that the queue is full only as long as it computes.
    let mut job = greeted(|job| job.world.borrow_mut().kernels.set_queue(1, 0, 0));
    job.world.borrow_mut().kernels.set_queue(1, 128, 0);
    job.steps(200, WHILE);
    job.world.borrow_mut().kill(1);
    assert!(missed(&mut job, 60 * SECOND).expect("it is missed").0 < 4 * SECOND);
}

#[test]
fn another_process_at_the_same_address_says_nothing_of_the_peer() {
    let mut job = greeted(|job| {
        let watched = job.nodes[1].network.watched().map(|watched| Watched { name: 1, ..watched });
        job.nodes[1].protocol = Protocol::new(Greeting { watched, ..greeting(1, 64) }, &flow());
    });
    job.world.borrow_mut().kernels.end_process(1);
    assert_eq!(missed(&mut job, 1800 * SECOND), None, "its port is another's, who has ended");
}
