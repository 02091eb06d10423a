//! Building a network: what is refused, and who is wired to whom.

use std::fmt;

use super::{CHANNELS_MAX, Injector, Network};
use crate::flight::NONE;
use crate::router::{Channel, CreditRings, Link, LinkKind, Turns, VirtualOutputQueue};
use crate::topology::{End, Port, RouterId, Topology};
use crate::{NetworkParameters, NodeId, Time};

/// A network that cannot be built. `Display` names the parameter and what to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkError {
    /// The topology needs virtual channels in multiples of a number.
    VirtualChannels {
        /// What was given.
        given: u8,
        /// The number.
        multiple_of: u32,
    },
    /// This parameter, by its name, is zero.
    Zero(&'static str),
    /// More virtual channels, queues or buffers than can be numbered.
    TooLarge,
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetworkError::VirtualChannels { given, multiple_of } => write!(
                f,
                "virtual_channels = {given}: this topology avoids deadlock with {multiple_of} channels per lane, so \
                 give a multiple of {multiple_of}"
            ),
            NetworkError::Zero(name) => write!(f, "{name} = 0: nothing could ever move, so give at least 1"),
            NetworkError::TooLarge => f.write_str(
                "more queues or buffers than 2^32: take a smaller topology, fewer channels or smaller buffers",
            ),
        }
    }
}

impl std::error::Error for NetworkError {}

/// Everything of a network that the topology and the sizes of buffers decide.
pub(super) struct Wiring {
    pub links: Vec<Link>,
    pub channels: Vec<Channel>,
    pub queues: Vec<VirtualOutputQueue>,
    pub rings: CreditRings,
    pub injectors: Vec<Injector>,
}

impl Wiring {
    pub fn new(topology: &Topology, parameters: &NetworkParameters) -> Self {
        let mut inputs = Inputs(vec![0; topology.routers() as usize]);
        let (routers, ports) = (topology.routers(), topology.ports());
        let ends = (0..routers).flat_map(|router| (0..ports).map(move |port| (RouterId(router), Port(port))));
        let links: Vec<_> = ends.map(|(router, port)| new_link(topology.end_of(router, port), &mut inputs)).collect();
        let mut rings = CreditRings::default();
        let injectors = (0..topology.nodes())
            .map(|node| Injector {
                free_at: Time::ZERO,
                room: rings.add(parameters.injection_buffer_packets),
                input: inputs.next(topology.router_of(NodeId(node))),
                starved: false,
                notice_due: false,
            })
            .collect();
        let mut wiring = Wiring { links: Vec::new(), channels: Vec::new(), queues: Vec::new(), rings, injectors };
        for (index, link) in links.iter().enumerate() {
            wiring.add_channels(link.kind, inputs.0[index / ports as usize], parameters);
        }
        Wiring { links, ..wiring }
    }

    /// Adds the channels of one link of a router that has `inputs` inputs. Packets are handed to nodes by the first
    /// channel only: there is one extraction buffer.
    fn add_channels(&mut self, kind: LinkKind, inputs: u32, parameters: &NetworkParameters) {
        for channel in 0..parameters.virtual_channels {
            let buffers = match kind {
                LinkKind::Hop => parameters.channel_buffer_packets,
                LinkKind::Extraction if channel == 0 => parameters.extraction_buffer_packets,
                LinkKind::Extraction | LinkKind::Edge => 0,
            };
            let waiting = Turns::new(self.queues.len() as u32);
            if buffers > 0 {
                self.queues.resize(self.queues.len() + inputs as usize, VirtualOutputQueue::EMPTY);
            }
            self.channels.push(Channel { waiting, credits: self.rings.add(buffers), starved: false });
        }
    }
}

/// By which exit packets leave routers. In a network that is not too large it is looked up, in a larger one computed:
/// the table must not push everything else out of the cache.
#[derive(Debug)]
pub(super) struct Exits {
    virtual_channels: u32,
    ports: u32,
    nodes: u32,
    /// Port and channel, by router, then by destination; empty in a large network.
    table: Vec<(u16, u16)>,
}

impl Exits {
    /// Most exits in a table: those of 64 routers and nodes take 16 KiB.
    const TABLE_MOST: u64 = 1 << 13;

    pub fn new(topology: &Topology, virtual_channels: u32) -> Self {
        let (routers, nodes) = (topology.routers(), topology.nodes());
        let mut exits = Exits { virtual_channels, ports: topology.ports(), nodes, table: Vec::new() };
        if u64::from(routers) * u64::from(nodes) <= Self::TABLE_MOST && !topology.asks_who_sends() {
            let pairs = (0..routers).flat_map(|router| (0..nodes).map(move |node| (RouterId(router), NodeId(node))));
            let hops = pairs.map(|(router, to)| topology.route(router, to, to, virtual_channels));
            exits.table = hops.map(|hop| (hop.port.0 as u16, hop.channel as u16)).collect();
        }
        exits
    }

    /// The link and the channel by which a packet for `to` leaves `router`; `from` says who sent it.
    #[inline]
    pub fn of(&self, topology: &Topology, router: RouterId, from: impl FnOnce() -> NodeId, to: NodeId) -> (u32, u32) {
        let (port, channel) = match self.table.get(router.0 as usize * self.nodes as usize + to.0 as usize) {
            Some(&(port, channel)) => (u32::from(port), u32::from(channel)),
            None => {
                let from = if topology.asks_who_sends() { from() } else { to };
                let hop = topology.route(router, from, to, self.virtual_channels);
                (hop.port.0, hop.channel)
            }
        };
        let link = router.0 * self.ports + port;
        (link, link * self.virtual_channels + channel)
    }
}

/// How many inputs each router has so far: links from other routers, then its nodes.
struct Inputs(Vec<u32>);

impl Inputs {
    /// The next input of a router. An ideal network has nodes but no routers, and no use for inputs.
    fn next(&mut self, router: RouterId) -> u32 {
        self.0.get_mut(router.0 as usize).map_or(0, |count| {
            *count += 1;
            *count - 1
        })
    }
}

fn new_link(end: End, inputs: &mut Inputs) -> Link {
    let (kind, far_end, input) = match end {
        End::Router(router) => (LinkKind::Hop, router.0, inputs.next(router)),
        End::Node(node) => (LinkKind::Extraction, node.0, 0),
        End::Nothing => (LinkKind::Edge, NONE, 0),
    };
    Link {
        free_at: Time::ZERO,
        wake_at: Time::NEVER,
        busy: Time::ZERO,
        carried: 0,
        waiting: 0,
        far_end,
        input,
        kind,
        turn: 0,
    }
}

impl Network {
    /// Whether such a network can be built, without building it.
    ///
    /// # Errors
    /// Those of [`Network::new`].
    pub fn check(topology: &Topology, parameters: &NetworkParameters) -> Result<(), NetworkError> {
        check(topology, parameters)
    }
}

pub(super) fn check(topology: &Topology, parameters: &NetworkParameters) -> Result<(), NetworkError> {
    let numbers = [
        ("link_bandwidth", parameters.link_bandwidth.0),
        ("injection_bandwidth", parameters.injection_bandwidth.0),
        ("extraction_bandwidth", parameters.extraction_bandwidth.0),
        ("packet_granule_bytes", parameters.packet_granule_bytes.into()),
        ("virtual_channels", parameters.virtual_channels.into()),
        ("channel_buffer_packets", parameters.channel_buffer_packets.into()),
        ("injection_buffer_packets", parameters.injection_buffer_packets.into()),
        ("extraction_buffer_packets", parameters.extraction_buffer_packets.into()),
    ];
    if let Some((name, _)) = numbers.iter().find(|(_, number)| *number == 0) {
        return Err(NetworkError::Zero(name));
    }
    let multiple_of = topology.channels_per_lane();
    if u32::from(parameters.virtual_channels) % multiple_of != 0 {
        return Err(NetworkError::VirtualChannels { given: parameters.virtual_channels, multiple_of });
    }
    // All that is numbered in 32 bits. A router has as many inputs as outputs.
    let channels = u64::from(topology.routers()) * u64::from(topology.ports()) * u64::from(parameters.virtual_channels);
    let queues = channels * u64::from(topology.ports());
    let deepest = parameters.channel_buffer_packets.max(parameters.extraction_buffer_packets);
    let injection = u64::from(topology.nodes()) * u64::from(parameters.injection_buffer_packets);
    let buffers = channels * u64::from(deepest) + injection;
    if channels >= CHANNELS_MAX || queues.max(buffers) >= u32::MAX.into() {
        return Err(NetworkError::TooLarge);
    }
    Ok(())
}
