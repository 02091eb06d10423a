use tidegate_sim::{NetworkParameters, Time, Topology, Ways};

use super::traffic::{all_to_one, grids, random_pairs, random_permutation, tornado, transpose};
use super::world::{Random, Receiver, World, round_numbers, tight_buffers};

fn wide_tight() -> NetworkParameters {
    NetworkParameters { virtual_channels: 4, ..tight_buffers() }
}

#[test]
fn meshes_and_tori_never_deadlock_under_saturation() {
    for topology in grids() {
        for parameters in [tight_buffers(), wide_tight(), round_numbers()] {
            let mut random = Random(21);
            for round in 0..6 {
                let mut world = World::new(topology.clone(), parameters.clone());
                match round {
                    0 => transpose(&mut world, 120),
                    1 => tornado(&mut world, 120),
                    2 => all_to_one(&mut world, 60),
                    3 => random_pairs(&mut world, &mut random, 60 * topology.nodes()),
                    _ => random_permutation(&mut world, &mut random, 120),
                }
                world.run_dry();
            }
        }
    }
}

#[test]
fn a_mesh_needs_one_channel_only() {
    let single = NetworkParameters { virtual_channels: 1, ..tight_buffers() };
    let mut world = World::new(Topology::mesh(&[4, 4, 4]).expect("legal"), single);
    let mut random = Random(23);
    (0..4).for_each(|_| random_permutation(&mut world, &mut random, 60));
    transpose(&mut world, 60);
    world.run_dry();
}

/// Patterns by turns, so many rounds of them, while one receiver after the other stops for a while.
fn stop_and_go(topology: Topology, parameters: NetworkParameters, seed: u64, rounds: u32) {
    let mut random = Random(seed);
    let mut world = World::new(topology, parameters);
    let nodes = world.nodes();
    for _ in 0..rounds {
        match random.below(4) {
            0 => transpose(&mut world, 10),
            1 => tornado(&mut world, 10),
            2 => random_permutation(&mut world, &mut random, 10),
            _ => random_pairs(&mut world, &mut random, 10 * nodes),
        }
        let stopped = random.below(nodes);
        world.set_receiver(stopped, Receiver::Stopped);
        world.run_until(world.now + Time::from_nanoseconds(u64::from(random.below(5_000))));
        world.set_receiver(stopped, Receiver::Prompt);
    }
    world.run_dry();
}

#[test]
fn mixed_patterns_with_receivers_that_stop_and_go_never_deadlock_in_a_long_run() {
    for topology in [Topology::mesh(&[4, 4, 4]), Topology::torus(&[4, 4, 4]), Topology::torus(&[5, 5])] {
        stop_and_go(topology.expect("legal"), tight_buffers(), 22, 40);
    }
}

#[test]
fn dragonflies_and_fat_trees_full_of_packets_never_deadlock_and_keep_the_order_of_pairs() {
    for ways in [Ways::Shortest, Ways::DrawnForPairs] {
        let networks = [
            Topology::dragonfly(&[9, 4, 2], ways),
            Topology::dragonfly(&[5, 2, 3], ways),
            Topology::fat_tree(&[4, 3], ways),
        ];
        for topology in networks {
            stop_and_go(topology.expect("legal"), wide_tight(), 31, 20);
        }
    }
}
