use tidegate_sim::{NodeId, Time, Topology};

use super::traffic::{all_topologies, random_pairs};
use super::world::{Random, Receiver, World, round_numbers};

/// By then every packet that can move has moved.
const QUIESCENT: Time = Time::from_microseconds(100);

#[test]
fn a_stopped_receiver_blocks_the_whole_path_back_to_the_sender_and_no_further() {
    let mut world = World::new(Topology::mesh(&[6]).expect("legal"), round_numbers());
    world.set_receiver(5, Receiver::Stopped);
    (0..200).for_each(|_| world.send(0, 5));
    world.run();
    // Every buffer on the way is full: extraction, one per link, injection. The rest could not be injected.
    assert_eq!(world.network.in_flight(), 8 + 5 * 8 + 8);
    assert_eq!(world.network.injecting(NodeId(0)), 8);
    assert_eq!(world.network.arrivals(NodeId(5)).count(), 8);
    assert!(world.delivered.is_empty());
    let blocked: Vec<_> = world.network.links().filter(|link| link.blocked).map(|link| link.from.0).collect();
    assert_eq!(blocked, [0, 1, 2, 3, 4, 5], "each router on the way waits for the next, the last for the node");
}

#[test]
fn what_shares_the_path_to_a_stopped_receiver_waits_and_what_does_not_goes_on() {
    let mut world = World::new(Topology::mesh(&[6]).expect("legal"), round_numbers());
    world.set_receiver(5, Receiver::Stopped);
    (0..200).for_each(|_| world.send(0, 5));
    world.run_until(QUIESCENT);
    // Node 3 is in the lane of node 5, nodes 2 and 4 are in the other; leftwards everything is free.
    for _ in 0..200 {
        world.send(1, 3);
        world.send(2, 4);
        world.send(4, 1);
    }
    world.run();
    assert_eq!(world.count_to(3), 0, "shares links and lane with what is blocked");
    assert_eq!(world.count_to(4), 200, "shares the links, but is in the other lane");
    assert_eq!(world.count_to(1), 200, "goes the other way");
    world.set_receiver(5, Receiver::Prompt);
    world.run_dry();
    assert_eq!((world.count_to(5), world.count_to(3)), (200, 200));
}

#[test]
fn a_sender_that_is_blocked_towards_one_node_is_blocked_towards_all() {
    // P §2: the back pressure arrives at the sender's network card and forces the entire node to block.
    let mut world = World::new(Topology::mesh(&[3]).expect("legal"), round_numbers());
    world.set_receiver(2, Receiver::Stopped);
    (0..100).for_each(|_| world.send(1, 2));
    (0..5).for_each(|_| world.send(1, 0));
    world.run();
    assert_eq!(world.count_to(0), 0);
    world.set_receiver(2, Receiver::Prompt);
    world.run_dry();
    assert_eq!(world.count_to(0), 5);
}

#[test]
fn a_slow_receiver_slows_its_sender_to_its_own_pace() {
    let pace = Time::from_nanoseconds(500);
    let mut world = World::new(Topology::torus(&[4, 4]).expect("legal"), round_numbers());
    world.set_receiver(10, Receiver::Slow(pace));
    (0..400).for_each(|_| world.send(0, 10));
    world.run_dry();
    let took = world.now.since(world.delivered[0].0);
    assert_eq!(took, pace * 399);
}

#[test]
fn an_ideal_network_pushes_nothing_back() {
    let mut world = World::new(Topology::ideal(3).expect("legal"), round_numbers());
    world.set_receiver(2, Receiver::Stopped);
    for _ in 0..300 {
        world.send(0, 2);
        world.send(0, 1);
    }
    world.run();
    assert_eq!(world.count_to(1), 300);
    assert_eq!(world.network.arrived(NodeId(2)), 300);
}

#[test]
fn everything_drains_when_stopped_receivers_resume_on_every_topology() {
    for topology in all_topologies() {
        let mut random = Random(11);
        let mut world = World::new(topology, round_numbers());
        let nodes = world.nodes();
        for node in (0..nodes).step_by(2) {
            world.set_receiver(node, Receiver::Stopped);
        }
        random_pairs(&mut world, &mut random, 3_000);
        world.run();
        assert!(world.network.in_flight() > 0, "something must be held up");
        for node in (0..nodes).step_by(2) {
            world.set_receiver(node, Receiver::Prompt);
            world.run_until(world.now + Time::from_nanoseconds(300));
        }
        world.run_dry();
    }
}
