//! [`Wired`]: dragonflies and fat trees under processes, with the wires and ways of `cycle/` (`layout.rs` there).
//!
//! Flow control needs the packets of a pair of processes in order, so every pair of nodes has one way, whatever the
//! load: the shortest, or a detour that is drawn for the pair ([`Ways`]). Routers that choose by load would need
//! receivers that put packets into order; the networks of `cycle/` choose by load, and run no processes.
//!
//! Packets climb through the classes of channels that `cycle/dragonfly.rs` argues for, so none wait for each other in a
//! circle; in a fat tree they go up and then down. Channels beyond one of each class are lanes, among which
//! destinations are divided.

use std::fmt;

use super::{End, Hop, Port, RouterId, TopologyError, checked_nodes};
use crate::cycle::{ChannelMap, Dragonfly, Far, FatTree, Journey, Layout, Routing};
use crate::{NodeId, Random};

/// Which way packets take from node to node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ways {
    /// The shortest.
    #[default]
    Shortest,
    /// By an intermediate group of a dragonfly, or a top router of a fat tree, that is drawn for each pair of nodes.
    DrawnForPairs,
}

/// A dragonfly or a fat tree, and its ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wired {
    layout: Layout,
    ways: Ways,
}

/// What draws the detours: the same in every run, as wires are.
const DRAWS: u64 = 0x7469_6465;

impl Wired {
    pub(super) fn new(layout: Layout, ways: Ways) -> Result<Self, TopologyError> {
        layout.check().map_err(TopologyError::Layout)?;
        checked_nodes(layout.nodes().into())?;
        Ok(Wired { layout, ways })
    }

    /// Which way packets take.
    #[must_use]
    pub fn ways(&self) -> Ways {
        self.ways
    }

    pub(super) fn nodes(&self) -> u32 {
        self.layout.nodes()
    }

    pub(super) fn routers(&self) -> u32 {
        self.layout.routers()
    }

    pub(super) fn ports(&self) -> u32 {
        self.layout.ports()
    }

    pub(super) fn channels_per_lane(&self) -> u32 {
        self.layout.classes()
    }

    pub(super) fn router_of(&self, node: NodeId) -> RouterId {
        RouterId(self.layout.place_of(node.0).0)
    }

    pub(super) fn end_of(&self, router: RouterId, port: Port) -> End {
        match self.layout.far(router.0, port.0) {
            Far::Router { router, .. } => End::Router(RouterId(router)),
            Far::Node(node) => End::Node(NodeId(node)),
            Far::Nothing => End::Nothing,
        }
    }

    pub(super) fn distance(&self, from: NodeId, to: NodeId) -> u32 {
        let mut at = self.router_of(from);
        let mut links = 0;
        while let End::Router(next) = self.end_of(at, self.route(at, from, to, self.channels_per_lane()).port) {
            at = next;
            links += 1;
        }
        links
    }

    /// A dragonfly's detour follows from who sends, so that is asked for; where there are none it does not matter.
    #[inline]
    pub(super) fn route(&self, router: RouterId, from: NodeId, to: NodeId, channels: u32) -> Hop {
        let routing = match self.ways {
            Ways::Shortest => Routing::Minimal,
            Ways::DrawnForPairs => Routing::Valiant,
        };
        let mut random = Random::stream(DRAWS, u64::from(from.0) << 32 | u64::from(to.0));
        let lanes = channels / self.channels_per_lane();
        let mut journey = Journey { from: from.0, to: to.0, ..Journey::default() };
        self.layout.prepare(&mut journey, &mut random);
        let way = self.layout.route(router.0, &mut journey, routing, ChannelMap::ByStep, |_| 0, &mut random);
        // Packets are handed to nodes by the first channel.
        let is_last = matches!(self.layout.far(router.0, way.port), Far::Node(_));
        Hop { port: Port(way.port), channel: if is_last { 0 } else { way.channel * lanes + to.0 % lanes } }
    }
}

impl fmt::Display for Wired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.layout.fmt(f)?;
        match self.ways {
            Ways::Shortest => Ok(()),
            Ways::DrawnForPairs => f.write_str(", a detour for each pair"),
        }
    }
}

/// The shapes of networks that are drawn from sizes, as files have them.
impl Wired {
    /// Groups, routers of a group, nodes of a router; each router has as many links to other groups as that takes.
    pub(super) fn dragonfly(sizes: &[u16]) -> Result<Layout, TopologyError> {
        let &[groups, routers, nodes] = sizes else {
            return Err(TopologyError::Sizes(
                "a dragonfly has three sizes, groups x routers of a group x nodes of a router: 9x4x2",
            ));
        };
        let [groups, routers, nodes] = [groups, routers, nodes].map(u32::from);
        let global = groups.saturating_sub(1).div_ceil(routers.max(1));
        Ok(Layout::Dragonfly(Dragonfly { groups, routers, nodes, global }))
    }

    /// Ports of a router, levels.
    pub(super) fn fat_tree(sizes: &[u16]) -> Result<Layout, TopologyError> {
        let &[radix, levels] = sizes else {
            return Err(TopologyError::Sizes("a fat tree has two sizes, ports of a router x levels of routers: 8x3"));
        };
        Ok(Layout::FatTree(FatTree { radix: radix.into(), levels: levels.into() }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::cycle::routes_tests::has_circle;

    fn all() -> Vec<Wired> {
        let dragonflies: [&[u16]; 4] = [&[9, 4, 2], &[5, 3, 1], &[2, 3, 1], &[1, 4, 2]];
        let layouts = dragonflies.map(Wired::dragonfly).into_iter().chain([Wired::fat_tree(&[4, 3])]);
        let layouts: Vec<Layout> = layouts.map(|layout| layout.expect("legal sizes")).collect();
        let both = layouts.iter().flat_map(|&layout| [Ways::Shortest, Ways::DrawnForPairs].map(|ways| (layout, ways)));
        both.map(|(layout, ways)| Wired::new(layout, ways).expect("legal")).collect()
    }

    #[test]
    fn a_drawn_way_is_another_one_where_there_is_one() {
        let (shortest, drawn): (Vec<Wired>, Vec<Wired>) =
            all().into_iter().partition(|wired| wired.ways() == Ways::Shortest);
        let links = |wired: &Wired| -> u32 {
            let pairs =
                (0..wired.nodes()).flat_map(|from| (0..wired.nodes()).map(move |to| (NodeId(from), NodeId(to))));
            pairs.map(|(from, to)| wired.distance(from, to)).sum()
        };
        let longer: Vec<bool> =
            shortest.iter().zip(&drawn).map(|(shortest, drawn)| links(drawn) > links(shortest)).collect();
        // Only a dragonfly of three groups or more has detours; all ways up a fat tree are equally long.
        assert_eq!(longer, [true, true, false, false, false]);
    }

    /// Every pair arrives, by few links.
    #[test]
    fn every_pair_has_a_way_that_ends_at_its_node() {
        for wired in all() {
            for from in 0..wired.nodes() {
                for to in (0..wired.nodes()).filter(|&to| to != from) {
                    let (from, to) = (NodeId(from), NodeId(to));
                    let (mut at, mut steps) = (wired.router_of(from), 0);
                    let last = loop {
                        let hop = wired.route(at, from, to, 4);
                        match wired.end_of(at, hop.port) {
                            End::Router(next) => at = next,
                            End::Node(node) => break (node, hop.channel),
                            End::Nothing => panic!("{wired}: a packet leaves the network"),
                        }
                        steps += 1;
                        assert!(steps <= 6, "{wired}: from {from} to {to}");
                    };
                    assert_eq!(last, (to, 0), "{wired}");
                    assert_eq!(steps, wired.distance(from, to), "{wired}");
                }
            }
        }
    }

    /// The graph of channels that wait for each other, over all pairs, can be put into an order.
    #[test]
    fn no_circle_of_channels_wait_for_each_other() {
        for wired in all() {
            let mut behind = BTreeMap::<u32, BTreeSet<u32>>::new();
            for from in 0..wired.nodes() {
                for to in (0..wired.nodes()).filter(|&to| to != from) {
                    let (from, to) = (NodeId(from), NodeId(to));
                    let (mut at, mut held) = (wired.router_of(from), None);
                    loop {
                        let hop = wired.route(at, from, to, 4);
                        let End::Router(next) = wired.end_of(at, hop.port) else { break };
                        let channel = (at.0 * wired.ports() + hop.port.0) * 4 + hop.channel;
                        behind.entry(channel).or_default();
                        if let Some(held) = held.replace(channel) {
                            behind.entry(held).or_default().insert(channel);
                        }
                        at = next;
                    }
                }
            }
            assert!(!has_circle(&behind), "{wired}: some channels wait in a circle");
        }
    }

    #[test]
    fn sizes_that_fit_nothing_are_refused_with_an_example() {
        let said = |sizes: Result<Layout, TopologyError>| {
            sizes.and_then(|layout| Wired::new(layout, Ways::Shortest)).unwrap_err().to_string()
        };
        assert!(said(Wired::dragonfly(&[4, 4])).contains("9x4x2"));
        assert!(said(Wired::fat_tree(&[4])).contains("8x3"));
        assert!(said(Wired::fat_tree(&[5, 2])).contains("even"));
    }
}
