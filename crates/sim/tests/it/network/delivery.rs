use tidegate_sim::network::NetworkError;
use tidegate_sim::{Network, NetworkParameters, Time, Topology, TopologyError};

use super::traffic::{all_topologies, random_pairs};
use super::world::{Random, Receiver, World, round_numbers, tight_buffers};

fn wide_channels() -> NetworkParameters {
    NetworkParameters { virtual_channels: 4, channel_buffer_packets: 3, ..round_numbers() }
}

#[test]
fn every_packet_arrives_once_and_in_order_per_pair_on_every_topology() {
    for topology in all_topologies() {
        for parameters in [round_numbers(), tight_buffers(), wide_channels(), NetworkParameters::extoll()] {
            let mut world = World::new(topology.clone(), parameters);
            random_pairs(&mut world, &mut Random(1), 3_000);
            world.run_dry();
            assert_eq!(world.delivered.len(), 3_000, "{topology}");
        }
    }
}

#[test]
fn packets_of_all_sizes_stay_in_order_whatever_the_rates() {
    for topology in all_topologies() {
        let mut random = Random(2);
        for (injection, extraction) in [(200, 5_000), (5_000, 200), (1_000, 1_000)] {
            let mut parameters = round_numbers();
            parameters.injection_bandwidth = tidegate_sim::Bandwidth::from_megabytes(injection);
            parameters.extraction_bandwidth = tidegate_sim::Bandwidth::from_megabytes(extraction);
            let mut world = World::new(topology.clone(), parameters);
            let nodes = world.nodes();
            for _ in 0..2_000 {
                let bulk_bytes = if random.below(8) == 0 { random.below(4_096) } else { 0 };
                world.send_sized(random.below(nodes), random.below(nodes), 4 + random.below(53) as usize, bulk_bytes);
            }
            world.run_dry();
        }
    }
}

#[test]
fn slow_and_prompt_receivers_both_get_everything() {
    for topology in all_topologies() {
        let mut world = World::new(topology, tight_buffers());
        let mut random = Random(3);
        for node in (0..world.nodes()).step_by(3) {
            world.set_receiver(node, Receiver::Slow(Time::from_nanoseconds(u64::from(1 + random.below(900)))));
        }
        random_pairs(&mut world, &mut random, 2_000);
        world.run_dry();
    }
}

#[test]
fn the_hops_counted_are_those_of_the_shortest_ways() {
    for topology in all_topologies() {
        let mut world = World::new(topology.clone(), round_numbers());
        random_pairs(&mut world, &mut Random(4), 1_000);
        world.run_dry();
        let shortest: u64 = world.delivered.iter().map(|&(_, from, to)| u64::from(topology.distance(from, to))).sum();
        assert_eq!(world.network.totals().hops, shortest, "{topology}");
    }
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    let trace = |seed| {
        let mut world = World::new(Topology::torus(&[4, 3, 3]).expect("legal"), tight_buffers());
        random_pairs(&mut world, &mut Random(seed), 5_000);
        world.run_dry();
        world.trace_hash()
    };
    assert_eq!(trace(5), trace(5));
    assert_ne!(trace(5), trace(6));
}

#[test]
fn what_cannot_be_built_is_refused_with_the_remedy() {
    let refused = |topology: Topology, parameters| Network::new(topology, parameters).expect_err("illegal").to_string();
    let odd = NetworkParameters { virtual_channels: 3, ..round_numbers() };
    let torus = Topology::torus(&[4, 4]).expect("legal");
    assert!(refused(torus.clone(), odd.clone()).contains("give a multiple of 2"));
    assert!(Network::new(Topology::mesh(&[4, 4]).expect("legal"), odd).is_ok(), "a mesh needs no second class");
    let bufferless = NetworkParameters { channel_buffer_packets: 0, ..round_numbers() };
    assert_eq!(Network::new(torus, bufferless).err(), Some(NetworkError::Zero("channel_buffer_packets")));
    assert!(refused(Topology::switch(1 << 20).expect("legal"), round_numbers()).contains("take a smaller topology"));
    assert_eq!(Topology::mesh(&[2, 2, 2, 2]), Err(TopologyError::Dimensions(4)));
    assert_eq!(Topology::torus(&[4, 0]), Err(TopologyError::Nodes(0)));
    assert_eq!(Topology::mesh(&[4_096, 4_096]), Err(TopologyError::Nodes(1 << 24)));
    assert_eq!(Topology::switch(0), Err(TopologyError::Nodes(0)));
}
