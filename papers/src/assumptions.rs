//! What the simulated machine of the figures assumes, for readers of the results: each value as the code has it, and
//! where it comes from. The only place with such text.

use tidegate_sim::calibration::Anchor;
use tidegate_sim::{Cost, NetworkParameters};

use crate::workshop::Workshop;

/// What is assumed of what a packet of a far peer costs.
const FORM_OF_FAR: &str = "Its form is assumed, because P does not say what takes so long: that the cost grows with the \
    peers that send, not with the packets that wait, and that control packets are spared. When both were assumed, one after \
    the other and each together with something else, the headline came out; neither was taken back alone to see whether it \
    decides that (`docs/simulator.md`)";

/// Something that a figure's machine assumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// What it is about.
    pub what: &'static str,
    /// What is assumed.
    pub value: String,
    /// The number of the paper that it is made to meet, or why it is as it is.
    pub source: String,
}

fn assumption(what: &'static str, value: String, source: String) -> Assumption {
    Assumption { what, value, source }
}

fn megabytes(rate: tidegate_sim::Bandwidth) -> String {
    format!("{} MB/s", rate.0 / 1_000_000)
}

impl Assumption {
    /// All of them, those that a number of the paper decides first.
    #[must_use]
    pub fn all() -> Vec<Assumption> {
        let (cost, network) = (Cost::extoll(), NetworkParameters::extoll());
        let hop = network.link_latency + network.router_latency;
        let (near, far) = (Anchor::PingpongNear, Anchor::PingpongFar);
        let (small, large) = (Anchor::Alltoall256, Anchor::Alltoall1024);
        let time_of = |anchor: Anchor| format!("{} in {} µs (P §5.3)", anchor.name(), anchor.paper_microseconds());
        let mut all = vec![
            assumption(
                "a packet's cost to its sender and its receiver",
                format!(
                    "{} to send, {} to retrieve; {} + {} per message",
                    cost.send_packet, cost.retrieve_packet, cost.send_call, cost.complete_message
                ),
                format!("calibrated: {}", time_of(near)),
            ),
            assumption(
                "a hop",
                format!("{hop} ({} router, {} link)", network.router_latency, network.link_latency),
                format!(
                    "calibrated: {}; the difference to 1 hop, {:.2} µs, is that of 13 hops",
                    time_of(far),
                    far.paper_microseconds() - near.paper_microseconds()
                ),
            ),
            assumption(
                "a data packet of a far peer costs its receiver more",
                format!("{} more, of all peers but {}", cost.retrieve_far_packet, cost.near_peers),
                format!("its two numbers are calibrated: {} and {}. {FORM_OF_FAR}", time_of(small), time_of(large)),
            ),
            assumption(
                "the rate of a link",
                megabytes(network.link_bandwidth),
                "assumed: P gives none; with slower links few slots would make the all-to-all faster, which P did not see"
                    .to_owned(),
            ),
            assumption(
                "credits and control packets",
                format!(
                    "{} to take one, {} to count one, {} per control packet, {} more under dynamic",
                    cost.credit_take, cost.credit_count, cost.credit_packet, cost.dynamic_packet
                ),
                "assumed: some instructions on state that the cache may not have".to_owned(),
            ),
            assumption(
                "interruptions by the operating system",
                format!("{} % of the time where a figure has noise, unless it says another number", Workshop::NOISE_PERCENT),
                "assumed: P says nothing of its machine's noise; `--noise=PERCENT` shows how much depends on it".to_owned(),
            ),
            assumption(
                "forms of the collectives",
                "figures 20 to 27: those that Open MPI 1.4 chooses, but for Alltoallv, which is done as Alltoall, with all \
                 receives posted before all sends, where Open MPI sends in pairs; Reduce_scatter by recursive halving, as later \
                 versions do; the all-to-all of the other figures: n − 1 sends, then n − 1 receives"
                    .to_owned(),
                "assumed: P does not give the version of its library. Alltoallv's form was chosen to fit the axis of figure 23, \
                 and enters the headline's means; with pairs the same slots come out (figures 20 to 23 say more). On \
                 Reduce_scatter's form depends what figures 24 and 26 say of it"
                    .to_owned(),
            ),
        ];
        all.extend(Self::about_runs(&cost));
        all
    }

    /// Those about how benchmarks are run.
    fn about_runs(cost: &Cost) -> Vec<Assumption> {
        vec![
            assumption(
                "where runs begin",
                "figures 6, 7, 10 and 15 to 18: static amid a program, with the credits that its earlier messages left \
                 unreturned, dynamic after all-to-alls and one message of a random length between each two processes; all \
                 others, figure 9 among them: with the program, after repetitions that do not count"
                    .to_owned(),
                "assumed: P does not say what its benchmarks sent before".to_owned(),
            ),
            assumption(
                "a look into an empty mailbox",
                cost.poll.to_string(),
                "assumed: some instructions, on memory that the cache has".to_owned(),
            ),
            assumption(
                "the path within nodes, where a figure has it",
                format!("{} for a message, copies at {}", cost.local_latency, megabytes(cost.local_bandwidth)),
                "assumed: P §7.2 says that it is shared memory, not how fast it is".to_owned(),
            ),
            assumption(
                "repetitions",
                "fewer than the paper's; each figure says how many".to_owned(),
                "chosen for the time that the runs take".to_owned(),
            ),
        ]
    }

    /// Those of the clusters of L and A.
    #[must_use]
    pub fn of_clusters() -> Vec<Assumption> {
        let (early, late) = (Cost::infiniband2003(), Cost::infiniband2007());
        let (network, fast) = (NetworkParameters::infiniband2003(), NetworkParameters::infiniband2007());
        let both = |early: String, late: String| format!("L {early}; A {late}");
        let mut all = vec![
            assumption(
                "the rate of a link",
                both(megabytes(network.link_bandwidth), megabytes(fast.link_bandwidth)),
                "from the hardware that L and A name: 10 and 20 Gb/s, of which eight in ten bits are data".to_owned(),
            ),
            assumption(
                "the bus of a node",
                both(
                    format!("{}, shared by both directions", megabytes(early.host_bandwidth)),
                    format!("{} each way", megabytes(late.host_bandwidth)),
                ),
                "from the hardware: PCI-X of 64 bits at 133 MHz, PCI Express x8".to_owned(),
            ),
            assumption(
                "a message's cost to its sender and its receiver",
                both(
                    format!(
                        "{} + {}, packets of 64 bytes {} and {}",
                        early.send_call, early.complete_message, early.send_packet, early.retrieve_packet
                    ),
                    format!(
                        "{} + {}, packets {} and {}",
                        late.send_call, late.complete_message, late.send_packet, late.retrieve_packet
                    ),
                ),
                "assumed: L tells no time of a message in its text, A 1.5 to 3.0 µs for InfiniBand in general"
                    .to_owned(),
            ),
            assumption(
                "what an adapter takes beside the bytes' time, on both sides, and the switch",
                both(
                    format!(
                        "{} and {}",
                        network.injection_latency + network.extraction_latency,
                        network.router_latency
                    ),
                    format!("{} and {}", fast.injection_latency + fast.extraction_latency, fast.router_latency),
                ),
                "assumed: neither paper tells. A's switch is made of chips of 24 ports; a packet crosses up to three"
                    .to_owned(),
            ),
        ];
        all.extend(Self::about_buffers(&early, &late));
        all
    }

    /// Those of R's network.
    #[must_use]
    pub fn of_fabrics() -> Vec<Assumption> {
        let network = tidegate_sim::cycle::Parameters::SCHNEIDER;
        let not_told = || "assumed: R does not tell".to_owned();
        vec![
            assumption(
                "routers, links and ways",
                format!(
                    "speed-up {}, {} flits per channel, packets of {}, wires of {} and {} cycles, bias 2, threshold 30 flits",
                    f64::from(network.speed_up_tenths) / 10.0,
                    network.buffer_flits,
                    network.packet_flits,
                    network.local_latency,
                    network.global_latency
                ),
                "R §4.1".to_owned(),
            ),
            assumption(
                "channels of a link",
                network.channels.to_string(),
                "the fewest with which packets cannot wait for each other in a circle; R does not tell".to_owned(),
            ),
            assumption("a router, and room on its way back", format!("{} and {} cycles", network.router_latency, network.credit_delay), not_told()),
            assumption(
                "what an adaptive router looks at",
                "all that is in use behind a port, of all its channels; detours by one random group, drawn at the source".to_owned(),
                not_told(),
            ),
            assumption(
                "a slow node",
                "takes a flit every so many cycles, all channels together; sends as fast as the others; its room comes back when a \
                 packet is taken"
                    .to_owned(),
                not_told(),
            ),
            assumption(
                "marks",
                "by how full the packet's own next channel is, that to its node included; a node that is held back gathers flits \
                 until it has those of a packet"
                    .to_owned(),
                "R §4.1 has the numbers; the rest is assumed".to_owned(),
            ),
            assumption(
                "chunks",
                "packets of 16 flits, counted when they are taken; all nodes are limited; where no data can carry credits, a packet \
                 of one flit does"
                    .to_owned(),
                "R §4.1; without the last, two partners with one chunk each would wait for each other for ever".to_owned(),
            ),
        ]
    }

    /// Those of B's machines.
    #[must_use]
    pub fn of_bulk_machines() -> Vec<Assumption> {
        let sets = tidegate_sim::bulk_machine::BulkParameters::ALL.map(|set| set());
        let each = |of: &dyn Fn(&tidegate_sim::bulk_machine::BulkParameters) -> String| {
            sets.iter().map(|set| format!("{} {}", set.name, of(set))).collect::<Vec<_>>().join("; ")
        };
        vec![
            assumption(
                "receiving a unit beside sending it",
                each(&|set| format!("{} %", set.receive_percent)),
                "fitted to what barriers gain: B says that receiving is dearer, not by how much".to_owned(),
            ),
            assumption(
                "sending a unit, and its data",
                each(&|set| format!("{} for {} bytes", set.sending(set.unit_bytes), set.unit_bytes)),
                "cm5 remembered, paragon's 140 MB/s and alewife's 45 MB/s too; what starting an engine costs is assumed; units: B, \
                 for alewife assumed"
                    .to_owned(),
            ),
            assumption(
                "room at arrival, in bytes",
                each(&|set| (u32::from(set.arrival_cells) * set.cell_bytes).to_string()),
                "assumed, for paragon and alewife so that a cyclic shift degrades".to_owned(),
            ),
            assumption(
                "variation of block times, at most",
                each(&|set| format!("{:.1} %", f64::from(set.jitter_per_mille) / 5.0)),
                "assumed; B-fig5-7 varies it on cm5".to_owned(),
            ),
            assumption(
                "when a block has been sent",
                "when its receiver has acknowledged it, where a technique has one sender per receiver".to_owned(),
                "ours; B: when its sender has finished".to_owned(),
            ),
        ]
    }

    /// Those about posted buffers and the programs that use them.
    fn about_buffers(early: &Cost, late: &Cost) -> Vec<Assumption> {
        let both = |early: String, late: String| format!("L {early}; A {late}");
        vec![
            assumption(
                "a credit message",
                both(early.credit_packet.to_string(), late.credit_packet.to_string()),
                "assumed, on each side beside the packet itself: a descriptor is posted, a completion taken".to_owned(),
            ),
            assumption(
                "the retry timer",
                "0.64 ms where it is not what is varied".to_owned(),
                "assumed: neither paper states it; later versions of the library have it so".to_owned(),
            ),
            assumption(
                "buffers",
                "L 2 KiB; A 12 KiB".to_owned(),
                "L §5; assumed for A, which states neither their size nor its eager limit".to_owned(),
            ),
            assumption(
                "what a process computes in a second",
                "L 300, A 800 million operations".to_owned(),
                "assumed: L's and A's times are in pictures that are lost".to_owned(),
            ),
            assumption(
                "an interrupt for a limit event of a pool, and an acknowledgement",
                "take no time".to_owned(),
                "neither paper tells".to_owned(),
            ),
        ]
    }
}
