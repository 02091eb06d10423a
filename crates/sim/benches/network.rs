//! What the network model costs: the packets of a 1,024-process all-to-all of 2 KiB messages on the 4×4×4 mesh of P
//! (38.8 million, of which this runs a part), without processes: each node injects as its pace allows and takes what
//! arrives. Then the same pattern on other networks, the last with 1,024 nodes.
//!
//! `cargo bench -p tidegate-sim --bench network [-- PART]`. Printed are packet-hops and events per second and
//! nanoseconds per packet, where a hop is a link between routers; all of injection, extraction and the event queue is
//! counted in.

use std::time::Instant;

use tidegate_flow::{Header, PacketKind};
use tidegate_sim::{
    Body, EventQueue, Flight, Label, Network, NetworkEvent, NetworkParameters, NodeId, Notice, Parcel, Rank, Time,
    Topology,
};

const PROCESSES_PER_NODE: u32 = 16;
/// A 2 KiB message and its 16-byte header in packets of 56 bytes (P §3).
const PACKETS_PER_MESSAGE: u32 = 37;
/// Of 1,024 processes, each to each other.
const ALL_PACKETS: u64 = 1_024 * 1_023 * PACKETS_PER_MESSAGE as u64;

#[derive(Clone, Copy)]
enum Event {
    Network(NetworkEvent),
    /// The node's next packet is due.
    Due(NodeId),
}

/// The all-to-all as one node sees it: its processes take turns, one packet each; each sends a message to every other
/// process.
struct Sender {
    sent: u64,
    goal: u64,
    /// Processes of all nodes.
    processes: u32,
}

impl Sender {
    fn next(&self, node: NodeId) -> Flight {
        let process = (self.sent % u64::from(PROCESSES_PER_NODE)) as u32;
        let message = (self.sent / u64::from(PROCESSES_PER_NODE * PACKETS_PER_MESSAGE)) as u32;
        let source = node.0 * PROCESSES_PER_NODE + process;
        let destination = (source + 1 + message % (self.processes - 1)) % self.processes;
        Flight {
            parcel: Parcel { header: Header::new(PacketKind::Data, 56, 0), body: Body::ZEROS },
            from: node,
            to: NodeId(destination / PROCESSES_PER_NODE),
            source: Rank(source),
            destination: Rank(destination),
            bulk_bytes: 0,
            label: Label::NONE,
        }
    }
}

struct Run {
    network: Network,
    queue: EventQueue<Event>,
    senders: Vec<Sender>,
    pace: Time,
    events: u64,
    /// Order-dependent sum over what was delivered, so that two builds can be compared.
    hash: u64,
}

impl Run {
    fn new(topology: Topology, pace: Time, packets_per_node: u64) -> Self {
        let network = Network::new(topology, NetworkParameters::extoll()).expect("a legal network");
        let mut queue = EventQueue::new();
        let nodes = network.topology().nodes();
        (0..nodes).for_each(|node| queue.schedule(Time(u64::from(node)), Event::Due(NodeId(node))));
        let senders = (0..nodes)
            .map(|_| Sender { sent: 0, goal: packets_per_node, processes: nodes * PROCESSES_PER_NODE })
            .collect();
        Run { network, queue, senders, pace, events: 0, hash: 0 }
    }

    fn inject(&mut self, now: Time, node: NodeId) {
        let sender = &mut self.senders[node.0 as usize];
        if sender.sent == sender.goal {
            return;
        }
        let queue = &mut self.queue;
        let mut schedule = |at, event| queue.schedule(at, Event::Network(event));
        if self.network.inject(now, &sender.next(node), &mut schedule).is_ok() {
            sender.sent += 1;
            self.queue.schedule(now + self.pace, Event::Due(node));
        }
    }

    fn take(&mut self, now: Time, node: NodeId) {
        let queue = &mut self.queue;
        let mut schedule = |at, event| queue.schedule(at, Event::Network(event));
        if let Some(flight) = self.network.take_arrival(now, node, &mut schedule) {
            let seen = u64::from(flight.source.0) << 32 | u64::from(flight.destination.0);
            self.hash = (self.hash ^ seen ^ now.0).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        }
    }

    fn run(&mut self) -> Time {
        let mut end = Time::ZERO;
        while let Some((now, event)) = self.queue.pop() {
            self.events += 1;
            end = now;
            let notice = match event {
                Event::Network(event) => {
                    let queue = &mut self.queue;
                    self.network.handle(now, event, &mut |at, event| queue.schedule(at, Event::Network(event)))
                }
                Event::Due(node) => Some(Notice::Injectable(node)),
            };
            match notice {
                Some(Notice::Injectable(node)) => self.inject(now, node),
                Some(Notice::Arrived(node)) => self.take(now, node),
                None => {}
            }
        }
        end
    }
}

/// Seconds of processor time that this thread has had, so that other load on the machine counts less; of wall-clock
/// time where the system does not tell.
fn seconds(start: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    nanoseconds.map_or_else(|| start.elapsed().as_secs_f64(), |nanoseconds| nanoseconds as f64 / 1e9)
}

fn main() {
    let start = Instant::now();
    let part = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(10);
    let packets = ALL_PACKETS / part;
    println!(
        "{:<30} {:>7} {:>10} {:>11} {:>9} {:>9} {:>9} {:>8}  hash",
        "topology, ns per packet", "CPU s", "packets", "hops", "M hops/s", "M evts/s", "ns/packet", "sim. ms"
    );
    for (topology, pace) in [
        (Topology::mesh(&[4, 4, 4]), 460),
        (Topology::mesh(&[4, 4, 4]), 120),
        (Topology::mesh(&[4, 4, 4]), 1),
        (Topology::torus(&[4, 4, 4]), 120),
        (Topology::switch(64), 120),
        (Topology::ideal(64), 120),
        (Topology::mesh(&[16, 8, 8]), 1_000),
    ] {
        let topology = topology.expect("legal sizes");
        let nodes = u64::from(topology.nodes());
        let packets_per_node = packets / nodes;
        let name = format!("{topology}, {pace}");
        let mut run = Run::new(topology, Time::from_nanoseconds(pace), packets_per_node);
        let before = seconds(start);
        let end = run.run();
        let took = seconds(start) - before;
        let totals = run.network.totals();
        assert_eq!(totals.delivered, packets_per_node * nodes);
        let hops = totals.hops as f64;
        println!(
            "{name:<30} {took:>7.2} {:>10} {:>11} {:>9.1} {:>9.1} {:>9.1} {:>8.2}  {:016x}",
            totals.delivered,
            totals.hops,
            hops / took / 1e6,
            run.events as f64 / took / 1e6,
            took * 1e9 / totals.delivered as f64,
            end.0 as f64 / 1e9,
            run.hash
        );
    }
}
