//! Peers to whom nothing can be sent: who computes is never lost, whatever the queue of its port is like; a process or
//! a host that is gone is named in time; and asking takes little, of us and of them.

use super::kernels::Host;
use super::reachability_probe::{PROBES_MOST, QUESTIONS_MOST};
use super::tests::{Job, MOMENT, WHILE};
use super::trouble_tests::star;
use std::time::Duration;
use tidegate_flow::{Instant, PeerId};

const SECOND: Duration = Duration::from_secs(1);

/// Passes so much time in which only these nodes make progress. Returns who was lost by whom, why, and when.
fn pass(job: &mut Job, nodes: impl Iterator<Item = usize> + Clone, time: Duration) -> Option<(Duration, String)> {
    pass_by(job, nodes, time, Duration::from_millis(20))
}

fn pass_by(
    job: &mut Job,
    nodes: impl Iterator<Item = usize> + Clone,
    time: Duration,
    step: Duration,
) -> Option<(Duration, String)> {
    let begun = job.now;
    while job.now.since(begun) < time {
        job.now = job.now + step;
        for node in nodes.clone() {
            job.exchange(node);
            if let Some((_, why)) = job.departure(node) {
                return Some((job.now.since(begun), why));
            }
        }
    }
    None
}

/// Many that have got to know one, whose connections are all reset when they want to send to it.
fn many_and_one(many: usize) -> (Job, Vec<PeerId>) {
    let (mut job, _) = star(1 + many);
    let places = (1..=many).map(|node| job.peer(node, 0)).collect::<Vec<_>>();
    job.steps(30, WHILE);
    job.world.borrow_mut().kernels.cut(0);
    for (node, place) in (1..).zip(&places) {
        job.write(node, *place, node as u32).unwrap();
    }
    (job, places)
}

/// One that has got to know another, and whose connection to it is reset; the other computes from then on.
fn pair() -> (Job, PeerId) {
    let (mut job, places) = star(2);
    job.steps(30, WHILE);
    job.world.borrow_mut().kernels.cut(1);
    job.write(0, places[0], 7).unwrap();
    (job, places[0])
}

#[test]
fn one_that_computes_behind_a_queue_that_fills_is_not_lost_and_loses_nothing() {
    let (mut job, _) = many_and_one(12);
    job.world.borrow_mut().kernels.set_queue(0, 8, 0);
    assert_eq!(pass(&mut job, 1..13, 60 * SECOND), None);
    assert_eq!(pass_by(&mut job, 1..13, 3600 * SECOND, SECOND / 5), None);
    assert_eq!(job.world.borrow().kernels.queue_peak, 8);
    job.steps(100, WHILE);
    let mut got: Vec<u32> = std::iter::from_fn(|| job.retrieve(0)).map(|(_, number)| number).collect();
    got.sort_unstable();
    assert_eq!(got, (1..13).collect::<Vec<_>>());
    assert_eq!(job.world.borrow().kernels.held(), 0, "who is heard is asked no more");
}

#[test]
fn each_that_asks_takes_one_place_of_a_queue() {
    let (mut job, _) = many_and_one(12);
    assert_eq!(pass(&mut job, 1..13, 600 * SECOND), None);
    let kernels = &job.world.borrow().kernels;
    assert_eq!((kernels.queue_peak, kernels.tried[0], kernels.held()), (12, 12, 12));
}

#[test]
fn one_whose_queue_strangers_fill_is_not_lost() {
    let (mut job, _) = pair();
    job.world.borrow_mut().kernels.set_queue(1, 128, 135);
    assert_eq!(pass_by(&mut job, 0..1, 3600 * SECOND, SECOND / 5), None);
    job.steps(40, WHILE);
    assert_eq!((job.retrieve(1), job.world.borrow().kernels.held()), (Some((PeerId(0), 7)), 0));
}

#[test]
fn one_that_was_never_heard_of_and_whose_queue_is_full_is_not_lost() {
    let mut job = Job::new(2, 1);
    job.peer(0, 1);
    job.world.borrow_mut().kernels.set_queue(1, 128, 135);
    job.world.borrow_mut().kernels.cut(1);
    assert_eq!(pass_by(&mut job, 0..1, 3600 * SECOND, SECOND / 5), None);
}

#[test]
fn a_process_that_ends_is_named_whether_it_was_in_its_queue_or_behind_it() {
    for strangers in [0, 135] {
        let (mut job, _) = pair();
        job.world.borrow_mut().kernels.set_queue(1, 128, strangers);
        assert_eq!(pass(&mut job, 0..1, 20 * SECOND), None);
        job.world.borrow_mut().kill(1);
        let (when, why) = pass(&mut job, 0..1, 20 * SECOND).expect("it is named");
        assert!(when < 2 * SECOND && why.contains("its process has ended"), "{when:?} {why}");
        job.step(MOMENT);
        assert_eq!(job.world.borrow().kernels.held(), 0);
    }
}

#[test]
fn the_end_of_a_kept_connection_proves_nothing() {
    let (mut job, _) = pair();
    for _ in 0..20 {
        assert_eq!(pass(&mut job, 0..1, 20 * SECOND), None);
        job.world.borrow_mut().kernels.end_connections(1);
    }
    let tried = job.world.borrow().kernels.tried[0];
    assert!((20..=22).contains(&tried), "{tried}");
}

#[test]
fn who_closes_what_it_accepts_is_not_asked_in_a_loop() {
    let (mut job, _) = pair();
    job.world.borrow_mut().kernels.close_accepted(1);
    for _ in 0..6000 {
        job.now = job.now + SECOND / 100;
        job.exchange(0);
        job.world.borrow_mut().kernels.accept(1);
        // It cannot be reached all the same.
        job.world.borrow_mut().kernels.cut(1);
    }
    let tried = job.world.borrow().kernels.tried[0];
    assert!((5..15).contains(&tried), "{tried} in a minute");
    assert_eq!(job.departure(0), None);
}

/// A host that changes so: when it is given up, and why.
fn given_up(before: Host, after: Host, strangers: usize, most: Duration) -> Option<(Duration, String)> {
    let (mut job, places) = star(2);
    job.world.borrow_mut().kernels.hosts.insert(1, before);
    job.steps(30, WHILE);
    assert_eq!(pass(&mut job, 0..2, 10 * SECOND), None);
    job.world.borrow_mut().kernels.set_queue(1, 128, strangers);
    job.world.borrow_mut().kernels.hosts.insert(1, after);
    job.write(0, places[0], 7).unwrap();
    pass_by(&mut job, 0..1, most, SECOND / 50)
}

#[test]
fn a_host_that_is_gone_is_given_up_in_time() {
    let (well, off) = (Host::default(), Host { is_off: true, ..Host::default() });
    let (when, why) = given_up(well, off, 0, 60 * SECOND).expect("it is given up");
    assert!((10 * SECOND..13 * SECOND).contains(&when) && why.contains("answered nothing for 10 s"), "{when:?} {why}");
    let unreachable = Host { is_unreachable: true, ..Host::default() };
    let (when, why) = given_up(well, unreachable, 0, 60 * SECOND).expect("it is given up");
    assert!((10 * SECOND..13 * SECOND).contains(&when) && why.contains("no route to host"), "{when:?} {why}");
}

#[test]
fn a_host_whose_firewall_lets_it_answer_nothing_is_given_up_when_tcp_would() {
    let walled = Host { has_firewall: true, ..Host::default() };
    let (when, why) = given_up(walled, Host { is_off: true, ..walled }, 0, 1000 * SECOND).expect("it is given up");
    assert!((900 * SECOND..910 * SECOND).contains(&when) && why.contains("15 minutes"), "{when:?} {why}");
    // Its process computes, and its port can be reached.
    let (mut job, _) = pair();
    job.world.borrow_mut().kernels.hosts.insert(1, walled);
    assert_eq!(pass_by(&mut job, 0..1, 3600 * SECOND, SECOND / 5), None);
}

#[test]
fn a_host_that_is_gone_while_its_process_computes_is_given_up() {
    for strangers in [0, 135] {
        let (mut job, _) = pair();
        job.world.borrow_mut().kernels.set_queue(1, 128, strangers);
        assert_eq!(pass(&mut job, 0..1, 60 * SECOND), None);
        job.world.borrow_mut().kernels.hosts.insert(1, Host { is_off: true, ..Host::default() });
        let keepalive = if strangers == 0 { 7 * SECOND } else { Duration::ZERO };
        assert_eq!(pass(&mut job, 0..1, keepalive), None);
        job.world.borrow_mut().kernels.end_connections(1);
        let (when, why) = pass(&mut job, 0..1, 60 * SECOND).expect("it is given up");
        assert!((8 * SECOND..15 * SECOND).contains(&when) && why.contains("answered nothing"), "{when:?} {why}");
    }
}

#[test]
fn a_host_that_is_away_for_five_seconds_costs_time_only() {
    for away in [Host { is_off: true, ..Host::default() }, Host { is_unreachable: true, ..Host::default() }] {
        let (mut job, places) = star(2);
        job.steps(30, WHILE);
        job.world.borrow_mut().kernels.hosts.insert(1, away);
        job.write(0, places[0], 7).unwrap();
        assert_eq!(pass(&mut job, 0..2, 5 * SECOND), None);
        job.world.borrow_mut().kernels.hosts.clear();
        assert_eq!(pass(&mut job, 0..2, 20 * SECOND), None);
        assert_eq!(job.retrieve(1), Some((PeerId(0), 7)));
    }
}

#[test]
fn the_peers_of_one_host_ask_it_once() {
    let (mut job, places) = star(31);
    for node in 1..31 {
        let kernels = &mut job.world.borrow_mut().kernels;
        kernels.move_to_host(node, 1 + (node % 2) as u8);
        kernels.set_queue(node, 8, 8);
        kernels.cut(node);
    }
    for place in &places {
        job.write(0, *place, 7).unwrap();
    }
    assert_eq!(pass(&mut job, 0..1, 100 * SECOND), None);
    let kernels = &job.world.borrow().kernels;
    assert_eq!(kernels.questions_peak, 1);
    assert!(kernels.tried[1] < 2 * 60, "{:?}: every two seconds is enough", kernels.tried);
}

#[test]
fn asking_is_bounded_and_everybody_gets_a_turn() {
    const MANY: usize = PROBES_MOST - 10;
    let (mut job, places) = star(MANY);
    job.steps(100, WHILE);
    // Fewer descriptors than there are peers that compute.
    job.world.borrow_mut().kernels.descriptors = 100;
    for (node, place) in (1..).zip(&places) {
        job.world.borrow_mut().kernels.cut(node);
        job.write(0, *place, 7).unwrap();
    }
    assert_eq!(pass(&mut job, 0..1, 30 * SECOND), None);
    let peak = job.world.borrow().kernels.held_peak;
    assert!(peak <= 100, "{peak}");
    job.world.borrow_mut().kill(MANY - 1);
    let (when, why) = pass(&mut job, 0..1, 300 * SECOND).expect("it is named");
    assert!(why.contains("its process has ended"), "{when:?} {why}");
}

#[test]
fn where_no_connection_can_be_made_at_all_the_error_says_so() {
    let (mut job, _) = pair();
    job.world.borrow_mut().kernels.descriptors = 0;
    assert_eq!(pass(&mut job, 0..1, 55 * SECOND), None, "that is no fault of the peer");
    let (_, why) = pass(&mut job, 0..1, 20 * SECOND).expect("it is given up");
    assert!(why.contains("too many open files"), "{why}");
}

#[test]
fn a_question_that_nobody_needs_any_more_ends() {
    let (mut job, _) = pair();
    job.world.borrow_mut().kernels.set_queue(1, 8, 8);
    job.world.borrow_mut().kernels.hosts.insert(1, Host { has_firewall: true, ..Host::default() });
    assert_eq!(pass(&mut job, 0..1, 4 * SECOND), None);
    assert_eq!(job.world.borrow().kernels.held(), 2);
    assert_eq!(pass(&mut job, 0..2, 7 * SECOND), None);
    assert_eq!((job.retrieve(1), job.world.borrow().kernels.held()), (Some((PeerId(0), 7)), 0));
}

#[test]
fn the_hosts_of_all_peers_are_met_a_few_at_a_time() {
    let (mut job, _) = star(200);
    let kernels = |job: &Job| job.world.borrow().kernels.held();
    for node in 1..200 {
        job.world.borrow_mut().kernels.hosts.insert(node, Host { has_firewall: true, ..Host::default() });
    }
    let mut most = 0;
    for _ in 0..2000 {
        job.now = job.now + WHILE;
        job.exchange(0);
        most = most.max(kernels(&job));
    }
    assert!(most > 1 && most <= QUESTIONS_MOST, "{most}");
    let tried = job.world.borrow().kernels.tried;
    assert_eq!((tried, kernels(&job)), ([0, 199], 0), "each host is asked once");
    assert!(job.now > Instant::default());
}
