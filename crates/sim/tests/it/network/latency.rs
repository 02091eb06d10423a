use tidegate_sim::{NodeId, Time, Topology};

use super::traffic::all_topologies;
use super::world::{World, round_numbers};

#[test]
fn a_packet_that_meets_no_other_takes_the_time_of_the_closed_form() {
    for topology in all_topologies() {
        for from in 0..topology.nodes() {
            // Each node meets every third one, and all distances.
            for to in (from % 3..topology.nodes()).step_by(3) {
                let mut world = World::new(topology.clone(), round_numbers());
                world.send(from, to);
                world.run_dry();
                let hops = u64::from(topology.distance(NodeId(from), NodeId(to)));
                // In by 32 + 5, a router 20; per link 30 + 20; the whole packet 64 if it crossed a link; out by 32 + 7.
                let nanoseconds = 32 + 5 + 20 + hops * (30 + 20) + if hops > 0 { 64 } else { 0 } + 32 + 7;
                assert_eq!(world.delivered[0].0, Time::from_nanoseconds(nanoseconds), "{topology}, {from} to {to}");
                let formula = world.network.uncontended_latency(NodeId(from), NodeId(to), 56);
                assert_eq!(formula, Time::from_nanoseconds(nanoseconds));
            }
        }
    }
}

#[test]
fn each_more_hop_costs_the_same() {
    let line = Topology::mesh(&[15]).expect("legal");
    let arrival = |to| {
        let mut world = World::new(line.clone(), round_numbers());
        world.send(0, to);
        world.run_dry();
        world.delivered[0].0
    };
    let steps: Vec<Time> = (2..15).map(|to| arrival(to) - arrival(to - 1)).collect();
    assert_eq!(steps, vec![Time::from_nanoseconds(50); 13]);
}

#[test]
fn distances_are_those_of_the_shape() {
    let between = |topology: Topology, from, to| topology.distance(NodeId(from), NodeId(to));
    let mesh = || Topology::mesh(&[8, 8]).expect("legal");
    assert_eq!(between(mesh(), 0, 63), 14, "P §5.3: the longest way on the 8×8 mesh");
    let torus = || Topology::torus(&[8, 8]).expect("legal");
    assert_eq!(between(torus(), 0, 63), 2, "round both edges");
    assert_eq!(between(torus(), 0, 4 + 4 * 8), 8, "the farthest");
    let cube = Topology::mesh(&[4, 4, 4]).expect("legal");
    let all: u32 = (0..64)
        .flat_map(|from| (0..64).map(move |to| (from, to)))
        .map(|(from, to)| between(cube.clone(), from, to))
        .sum();
    assert_eq!(f64::from(all) / 4096.0, 3.75);
}
