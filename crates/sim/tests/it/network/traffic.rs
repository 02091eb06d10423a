//! Who sends to whom.

use super::world::{Random, World};
use tidegate_sim::Topology;

/// Networks of all kinds and of odd shapes.
pub fn all_topologies() -> Vec<Topology> {
    let mut all = grids();
    all.extend([Topology::switch(9), Topology::switch(1), Topology::ideal(9)].map(|topology| topology.expect("legal")));
    all
}

/// Meshes and tori, even and odd, flat and long, with dimensions of size 1 and 2.
pub fn grids() -> Vec<Topology> {
    let sizes: [&[u16]; 9] = [&[7], &[4, 4], &[3, 5], &[1, 6], &[2, 4], &[8, 2], &[4, 4, 4], &[2, 3, 4], &[5, 3, 3]];
    sizes
        .iter()
        .flat_map(|sizes| [Topology::mesh(sizes), Topology::torus(sizes)])
        .map(|grid| grid.expect("legal"))
        .collect()
}

/// Each packet between two random nodes.
pub fn random_pairs(world: &mut World, random: &mut Random, packets: u32) {
    let nodes = world.nodes();
    (0..packets).for_each(|_| world.send(random.below(nodes), random.below(nodes)));
}

/// Every node sends all its packets to one other, no two to the same.
pub fn random_permutation(world: &mut World, random: &mut Random, packets_each: u32) {
    let targets = random.permutation(world.nodes());
    send_to_targets(world, &targets, packets_each);
}

/// Node `n` sends to node `nodes − 1 − n`: in a grid, through the centre to the opposite corner.
pub fn transpose(world: &mut World, packets_each: u32) {
    let targets: Vec<u32> = (0..world.nodes()).rev().collect();
    send_to_targets(world, &targets, packets_each);
}

/// Every node sends halfway round: on a torus, all rings are full in one direction.
pub fn tornado(world: &mut World, packets_each: u32) {
    let nodes = world.nodes();
    let targets: Vec<u32> = (0..nodes).map(|node| (node + nodes / 2 - u32::from(nodes > 3)) % nodes).collect();
    send_to_targets(world, &targets, packets_each);
}

/// Everyone sends to node 0.
pub fn all_to_one(world: &mut World, packets_each: u32) {
    let targets = vec![0; world.nodes() as usize];
    send_to_targets(world, &targets, packets_each);
}

fn send_to_targets(world: &mut World, targets: &[u32], packets_each: u32) {
    for _ in 0..packets_each {
        (0..).zip(targets).for_each(|(from, &to)| world.send(from, to));
    }
}
