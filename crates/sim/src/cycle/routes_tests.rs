//! All routes of small networks: they arrive, and no circle of buffers waits for itself.

use std::collections::{BTreeMap, BTreeSet};

use super::dragonfly::Dragonfly;
use super::fat_tree::FatTree;
use super::layout::{Far, Layout, Routing};
use super::packet::{Journey, NONE, Stage};
use super::parameters::ChannelMap;
use crate::Random;

/// A buffer: the output and the channel that lead to it.
type Buffer = (u32, u32, u32);
/// For each buffer, those that a packet in it may wait for.
type Graph = BTreeMap<Buffer, BTreeSet<Buffer>>;

const DRAGONFLIES: [Dragonfly; 4] = [
    Dragonfly { groups: 5, routers: 2, nodes: 1, global: 2 },
    Dragonfly { groups: 7, routers: 3, nodes: 2, global: 2 },
    Dragonfly { groups: 4, routers: 3, nodes: 1, global: 1 },
    Dragonfly { groups: 1, routers: 4, nodes: 2, global: 0 },
];

const TREES: [FatTree; 4] = [
    FatTree { radix: 4, levels: 3 },
    FatTree { radix: 6, levels: 2 },
    FatTree { radix: 5 * 2, levels: 1 },
    FatTree { radix: 4, levels: 4 },
];

fn layouts() -> Vec<Layout> {
    DRAGONFLIES.map(Layout::Dragonfly).into_iter().chain(TREES.map(Layout::FatTree)).collect()
}

/// Walks on from a router, in all ways that a packet may take: an adaptive router may decide for each, so both answers
/// of the occupancy are tried. `seen` is told each buffer with the one before.
fn walk(
    layout: &Layout,
    from: (u32, Option<Buffer>),
    journey: Journey,
    (routing, map): (Routing, ChannelMap),
    graph: &mut Graph,
    hops: u32,
) {
    assert!(hops <= 12, "{layout}: {journey:?} goes round");
    let (router, before) = from;
    let mut ways = BTreeSet::new();
    for preferred in 0..layout.ports() {
        for seed in 0..4 {
            // Only this port is free, or only this one is full.
            for full in [false, true] {
                let occupied = |port: u32| if (port == preferred) == full { 1_000 } else { 0 };
                let mut changed = journey;
                let way = layout.route(router, &mut changed, routing, map, occupied, &mut Random::new(seed));
                if ways.insert((way.port, way.channel, changed.stage == Stage::Diverted)) {
                    let buffer = (router, way.port, way.channel);
                    graph.entry(buffer).or_default();
                    if let Some(before) = before {
                        graph.entry(before).or_default().insert(buffer);
                    }
                    match layout.far(router, way.port) {
                        Far::Node(node) => assert_eq!(node, journey.to, "{layout}: a packet arrives where it should"),
                        Far::Router { router, .. } => {
                            walk(layout, (router, Some(buffer)), changed, (routing, map), graph, hops + 1);
                        }
                        Far::Nothing => panic!("{layout}: no wire at {buffer:?}"),
                    }
                }
            }
        }
    }
}

/// All buffers that packets use, and what they wait for.
fn graph(layout: &Layout, routing: Routing, map: ChannelMap) -> Graph {
    let mut graph = Graph::new();
    for from in 0..layout.nodes() {
        for to in (0..layout.nodes()).filter(|&to| to != from) {
            for via in vias(layout, from, to) {
                let journey = Journey { from, to, via, ..Journey::default() };
                let router = layout.place_of(from).0;
                walk(layout, (router, None), journey, (routing, map), &mut graph, 0);
            }
        }
    }
    graph
}

/// The intermediate groups that may be drawn.
fn vias(layout: &Layout, from: u32, to: u32) -> BTreeSet<u32> {
    let mut random = Random::new(5);
    let draw = |_| {
        let mut journey = Journey { from, to, ..Journey::default() };
        layout.prepare(&mut journey, &mut random);
        journey.via
    };
    (0..60).map(draw).collect()
}

/// Whether some buffers wait for each other in a circle.
pub(crate) fn has_circle<Buffer: Ord + Copy>(graph: &BTreeMap<Buffer, BTreeSet<Buffer>>) -> bool {
    // Whoever waits for nobody is taken away, again and again; a circle stays.
    let mut left = graph.clone();
    loop {
        let free: Vec<Buffer> = left
            .iter()
            .filter(|(_, waits)| waits.iter().all(|buffer| !left.contains_key(buffer)))
            .map(|(buffer, _)| *buffer)
            .collect();
        if free.is_empty() {
            return !left.is_empty();
        }
        for buffer in free {
            left.remove(&buffer);
        }
    }
}

const MAPS: [ChannelMap; 2] = [ChannelMap::ByStep, ChannelMap::ByGlobalLinks];

const ROUTINGS: [Routing; 3] = [Routing::Minimal, Routing::Valiant, Routing::PROGRESSIVE];

#[test]
fn wires_have_two_ends() {
    for layout in layouts().into_iter().chain([Layout::Dragonfly(Dragonfly::SCHNEIDER)]) {
        layout.check().unwrap();
        let mut nodes = vec![0; layout.nodes() as usize];
        for router in 0..layout.routers() {
            for port in 0..layout.ports() {
                match layout.far(router, port) {
                    Far::Router { router: other, port: back } => {
                        assert_eq!(layout.far(other, back), Far::Router { router, port }, "{layout}");
                        assert_eq!(layout.is_global(router, port), layout.is_global(other, back), "{layout}");
                        assert_ne!(router, other, "{layout}");
                    }
                    Far::Node(node) => {
                        assert_eq!(layout.place_of(node), (router, port), "{layout}");
                        nodes[node as usize] += 1;
                    }
                    Far::Nothing => assert!(layout.is_global(router, port), "{layout}"),
                }
            }
        }
        assert!(nodes.iter().all(|&wires| wires == 1), "{layout}: each node has one wire");
    }
}

#[test]
fn all_routes_arrive_and_no_circle_of_buffers_waits_for_itself() {
    for layout in layouts() {
        for (routing, map) in ROUTINGS.iter().flat_map(|&routing| MAPS.map(|map| (routing, map))) {
            let graph = graph(&layout, routing, map);
            assert!(!graph.is_empty());
            assert!(!has_circle(&graph), "{layout}, {routing:?}, {map:?}");
        }
    }
}

/// The proof could fail: with one channel fewer there is a circle.
#[test]
fn with_three_channels_a_dragonfly_has_a_circle() {
    let layout = Layout::Dragonfly(DRAGONFLIES[1]);
    for map in MAPS {
        let full = graph(&layout, Routing::PROGRESSIVE, map);
        for (one, other) in [(0, 1), (1, 2), (2, 3)] {
            let merged = |(router, port, channel): Buffer| (router, port, if channel == other { one } else { channel });
            let mut three = Graph::new();
            for (buffer, waits) in &full {
                three.entry(merged(*buffer)).or_default().extend(waits.iter().map(|&buffer| merged(buffer)));
            }
            assert!(has_circle(&three), "{map:?}: channels {one} and {other} as one");
        }
    }
}

/// By steps a node is reached on one channel; by global links on two, and local links of others' ways share the first.
#[test]
fn the_maps_differ_at_the_ends_of_ways_only() {
    let layout = Layout::Dragonfly(DRAGONFLIES[1]);
    let [by_step, by_global_links] = MAPS.map(|map| graph(&layout, Routing::PROGRESSIVE, map));
    let into_nodes = |graph: &Graph| -> BTreeSet<u32> {
        let is_last = |&&(router, port, _): &&Buffer| matches!(layout.far(router, port), Far::Node(_));
        graph.keys().filter(is_last).map(|&(_, _, channel)| channel).collect()
    };
    assert_eq!(into_nodes(&by_step), BTreeSet::from([3]));
    assert_eq!(into_nodes(&by_global_links), BTreeSet::from([2, 3]));
    let global = |graph: &Graph| -> BTreeSet<Buffer> {
        graph.keys().filter(|&&(router, port, _)| layout.is_global(router, port)).copied().collect()
    };
    assert_eq!(global(&by_step), global(&by_global_links));
}

#[test]
fn the_dragonfly_of_the_paper_has_5256_nodes_and_2628_global_links() {
    let layout = Layout::Dragonfly(Dragonfly::SCHNEIDER);
    assert_eq!((layout.nodes(), layout.routers(), layout.ports()), (5256, 876, 23));
    let ends = (0..layout.routers()).flat_map(|router| (0..layout.ports()).map(move |port| (router, port)));
    let global = ends
        .filter(|&(router, port)| layout.is_global(router, port) && layout.far(router, port) != Far::Nothing)
        .count();
    assert_eq!(global, 2 * 2628);
}

#[test]
fn intermediate_groups_are_neither_end_and_each_other_group_is_drawn() {
    let dragonfly = DRAGONFLIES[1];
    let per_group = dragonfly.routers * dragonfly.nodes;
    let layout = Layout::Dragonfly(dragonfly);
    for (from, to) in [(0, 3 * per_group), (6 * per_group, 0), (2 * per_group, 5 * per_group + 1)] {
        let groups: BTreeSet<u32> =
            (0..7).filter(|&group| group != from / per_group && group != to / per_group).collect();
        assert_eq!(vias(&layout, from, to), groups);
    }
    assert_eq!(vias(&layout, 0, 1), BTreeSet::from([NONE]), "packets within a group never leave it");
}
