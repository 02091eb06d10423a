//! [`Dragonfly`]: groups of routers that are all connected with each other, and one link between each two groups
//! (Kim, Dally and others; R §4.1).
//!
//! **Wires.** A router has ports for its nodes first, then one for each other router of its group, then the global
//! ones. Group G reaches group D by its global link number o = D if D < G, else D − 1: port o mod `global` of router o
//! / `global`.
//!
//! **Ways.** The shortest way is local, global, local, each left out where it is not needed. A diverted packet goes by
//! an intermediate group, that is local, (local,) global, local, global, local: the second local link in the group
//! where it begins exists because progressive adaptive routing may change its mind at the second router. The
//! intermediate group is drawn once, when the packet enters. Packets within a group never leave it.
//!
//! **No deadlock.** Each packet climbs this list, and never goes back:
//!
//! | step | link | channel |
//! |---|---|---|
//! | 1 | the first local link, in the group where it begins | 0 |
//! | 2 | another local link there, after a change of mind | 1 |
//! | 3 | the first global link | 1 |
//! | 4 | a local link of the intermediate group | 2 |
//! | 5 | the global link that leaves it | 2 |
//! | 6 | the local link of the group where it ends | 3 |
//!
//! Local and global links are different links, so the six steps are six classes of buffers, and a packet holds a
//! buffer of one class only while it waits for one of a later class. The last class is emptied by nodes, which always
//! take what has come. So there is no circle of packets that wait for each other. With three channels there would be:
//! steps 2 to 4 would have to share one. `routes_tests.rs` walks all routes, builds the graph and looks for circles in
//! it, both with these channels and with three.
//!
//! **Another map** ([`ChannelMap::ByGlobalLinks`]). A packet that takes one global link has channel 2 behind it, for
//! its last local link and on its way into the node, and one that takes two has 3 there. So steps 4 and 6 share a
//! channel, of different packets: the end of a direct way leads only into a node, and step 5 still comes after both.
//! There packets at the end of their ways wait among those that pass through the group.

use super::layout::{Far, LayoutError, Routing, Way};
use super::packet::{Journey, NONE, Stage};
use super::parameters::ChannelMap;
use crate::Random;

/// Channels that a packet's way needs.
pub(super) const CLASSES: u32 = 4;

/// The shape of a dragonfly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dragonfly {
    /// How many groups there are.
    pub groups: u32,
    /// Routers of a group.
    pub routers: u32,
    /// Nodes of a router.
    pub nodes: u32,
    /// Global links of a router.
    pub global: u32,
}

impl Dragonfly {
    /// The one of R: 73 groups of 12 routers of 6 nodes, 5,256 nodes.
    pub const SCHNEIDER: Dragonfly = Dragonfly { groups: 73, routers: 12, nodes: 6, global: 6 };

    /// Whether this can be wired.
    ///
    /// # Errors
    /// If it cannot, the error says why.
    pub fn check(&self) -> Result<(), LayoutError> {
        let Dragonfly { groups, routers, nodes, global } = *self;
        if groups == 0 || routers == 0 || nodes == 0 {
            return Err(LayoutError::Empty);
        }
        let links = u64::from(routers) * u64::from(global);
        if u64::from(groups) > links + 1 {
            return Err(LayoutError::TooManyGroups { groups, links });
        }
        Ok(())
    }

    pub(super) fn ports(&self) -> u32 {
        self.nodes + self.routers - 1 + self.global
    }

    fn group_of(&self, router: u32) -> u32 {
        router / self.routers
    }

    pub(super) fn place_of(&self, node: u32) -> (u32, u32) {
        (node / self.nodes, node % self.nodes)
    }

    /// The port of `router` to another router of its group.
    fn local_port(&self, router: u32, other: u32) -> u32 {
        let (own, other) = (router % self.routers, other % self.routers);
        self.nodes + if other < own { other } else { other - 1 }
    }

    /// The router of a group, and its port, from which a link leads to another group.
    fn gateway(&self, group: u32, to: u32) -> (u32, u32) {
        let link = if to < group { to } else { to - 1 };
        let port = self.nodes + self.routers - 1 + link % self.global;
        (group * self.routers + link / self.global, port)
    }

    pub(super) fn is_global(&self, port: u32) -> bool {
        port >= self.nodes + self.routers - 1
    }

    pub(super) fn far(&self, router: u32, port: u32) -> Far {
        let (group, own) = (self.group_of(router), router % self.routers);
        if port < self.nodes {
            return Far::Node(router * self.nodes + port);
        }
        if !self.is_global(port) {
            let other = port - self.nodes;
            let other = group * self.routers + if other < own { other } else { other + 1 };
            return Far::Router { router: other, port: self.local_port(other, router) };
        }
        let link = own * self.global + port - (self.nodes + self.routers - 1);
        let to = if link < group { link } else { link + 1 };
        if to >= self.groups {
            return Far::Nothing;
        }
        let (router, port) = self.gateway(to, group);
        Far::Router { router, port }
    }

    /// Draws the intermediate group, or says that there is none.
    pub(super) fn prepare(&self, journey: &mut Journey, random: &mut Random) {
        journey.via = NONE;
        let [from, to] = [journey.from, journey.to].map(|node| self.group_of(self.place_of(node).0));
        if from == to || self.groups < 3 {
            return;
        }
        // One of the groups but these two.
        let (low, high) = (from.min(to), from.max(to));
        let mut via = random.below(u64::from(self.groups) - 2) as u32;
        via += u32::from(via >= low);
        via += u32::from(via >= high);
        journey.via = via;
    }

    /// The port towards another group.
    fn towards(&self, router: u32, to: u32) -> u32 {
        let (gateway, port) = self.gateway(self.group_of(router), to);
        if gateway == router { port } else { self.local_port(router, gateway) }
    }

    /// The channel at the end of a way, of a packet that is in the group where it ends.
    fn last_channel(&self, journey: &Journey, map: ChannelMap) -> u32 {
        let [from, to] = [journey.from, journey.to].map(|node| self.group_of(self.place_of(node).0));
        let is_direct = journey.stage == Stage::Direct && from != to;
        if map == ChannelMap::ByGlobalLinks && is_direct { 2 } else { CLASSES - 1 }
    }

    /// Where a packet goes from here, and on which of the [`CLASSES`].
    #[inline]
    pub(super) fn route(
        &self,
        router: u32,
        journey: &mut Journey,
        routing: Routing,
        map: ChannelMap,
        occupied: impl Fn(u32) -> u32,
    ) -> Way {
        let (last, last_port) = self.place_of(journey.to);
        if router == last {
            return Way { port: last_port, channel: self.last_channel(journey, map), compared: None };
        }
        let (group, to) = (self.group_of(router), self.group_of(last));
        if group == to {
            let channel = self.last_channel(journey, map);
            return Way { port: self.local_port(router, last), channel, compared: None };
        }
        let first = self.place_of(journey.from).0;
        if group != self.group_of(first) {
            return Way { port: self.towards(router, to), channel: 2, compared: None };
        }
        let (mut port, mut compared) = (self.towards(router, to), None);
        if journey.via != NONE {
            let other = self.towards(router, journey.via);
            let stays = match routing {
                Routing::Minimal => true,
                Routing::Valiant => false,
                Routing::Adaptive { .. } if journey.stage == Stage::Diverted => false,
                Routing::Adaptive { bias, threshold } => {
                    let (shortest, detour) = (occupied(port), occupied(other));
                    compared = Some((shortest, detour));
                    shortest <= bias * detour + threshold
                }
            };
            if !stays {
                journey.stage = Stage::Diverted;
                port = other;
            }
        }
        let is_first = router == first && !self.is_global(port);
        // A packet that came back to where it began, because it changed its mind, takes the global link from there.
        Way { port, channel: u32::from(!is_first), compared }
    }
}
