use tidegate_sim::{Time, Topology};

use super::world::{World, round_numbers};

#[test]
fn inputs_that_all_want_one_output_get_equal_shares() {
    // The centre of a 3×3 mesh hears its four neighbours and itself.
    let mut world = World::new(Topology::mesh(&[3, 3]).expect("legal"), round_numbers());
    let senders = [1, 3, 4, 5, 7];
    for _ in 0..1_000 {
        senders.iter().for_each(|&sender| world.send(sender, 4));
    }
    world.run_until(Time::from_nanoseconds(60_000));
    let shares: Vec<_> = senders.iter().map(|&sender| world.count_from(sender)).collect();
    let (least, most) = (shares.iter().min().expect("shares"), shares.iter().max().expect("shares"));
    assert!(*least > 300 && most - least <= 8, "shares are {shares:?}");
}

#[test]
fn nodes_on_a_switch_get_equal_shares_of_a_busy_output() {
    let mut world = World::new(Topology::switch(8).expect("legal"), round_numbers());
    for _ in 0..500 {
        (1..8).for_each(|sender| world.send(sender, 0));
    }
    world.run_until(Time::from_nanoseconds(32 * 7 * 300));
    let shares: Vec<_> = (1..8).map(|sender| world.count_from(sender)).collect();
    assert!(shares.iter().all(|&share| (290..=300).contains(&share)), "shares are {shares:?}");
}

#[test]
fn a_rare_packet_waits_for_one_packet_of_each_other_input_at_most() {
    // The two streams of nodes 0 and 2 keep node 1's interface busy; node 1 hears node 4 now and then.
    let mut world = World::new(Topology::mesh(&[3, 2]).expect("legal"), round_numbers());
    for _ in 0..3_000 {
        world.send(0, 1);
        world.send(2, 1);
    }
    // The packet that leaves just then, one of each stream at 32 ns, then its own way.
    let bound = world.network.uncontended_latency(tidegate_sim::NodeId(4), tidegate_sim::NodeId(1), 56)
        + Time::from_nanoseconds(32) * 3;
    for round in 1..30 {
        world.run_until(Time::from_nanoseconds(3_000 * round));
        let sent_at = world.now;
        world.send(4, 1);
        world.run_until(sent_at + bound);
        assert_eq!(world.count_from(4) as u64, round, "the packet of {sent_at} starved");
    }
    assert!(world.count_from(0) < 3_000, "the streams were there all the time");
}
