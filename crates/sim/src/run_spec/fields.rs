//! The fields of a file, in the order in which they take effect.

use std::ops::Range;

use crate::{BlockedSender, MessageHeader, NodeId, Rendezvous, Time, Ways};
use tidegate_flow::SchemeName;

use super::buffers;
use super::file::Field;
use super::job::JobDraft;
use super::value::{
    bytes, even, frame, number, number_from, numbers, overhead, positive, rate, rate_or_unlimited, step, time, truth,
    word,
};
use super::workload::OPERATIONS;
use crate::workload::nas::Variation;

/// Rows `section name default help => place = parser`; the default is that of the set `extoll`.
macro_rules! fields {
    ($($section:literal $name:literal $default:literal $help:literal => |$draft:ident, $text:ident| $set:expr;)*) => {
        &[$(Field {
            section: $section, name: $name, default: $default, help: $help,
            set: |$draft: &mut JobDraft, $text: &str| { $set; Ok(()) },
        },)*]
    };
}

/// All fields. They take effect in this order, so a set of parameters comes before the fields that change one of them.
pub const FIELDS: &[Field<JobDraft>] = fields! {
    "machine" "parameters" "extoll"
        "Where the fields of [machine], [network], [cost] and [flow] begin: extoll, the calibrated machine of the paper; \
         free, the same network with processes that need no time; infiniband2003, 8 nodes of one process on a switch, or \
         infiniband2007, 32 nodes of two (the clusters of the papers on posted buffers)" =>
        |d, t| d.begin_with(word(t, &["extoll", "free", "infiniband2003", "infiniband2007"])?);
    "machine" "processes_per_node" "16"
        "Processes of each node; they share its network interface" =>
            |d, t| d.config.processes_per_node = positive(t)?;
    "machine" "nodes" ""
        "The nodes that run processes, in the order of their ranks, such as \"0 63\"; without it all do" =>
        |d, t| d.config.nodes = Some(numbers(t, ' ')?.into_iter().map(NodeId).collect());
    "machine" "intra_node_path" "false"
        "Whether processes of one node reach each other without mailbox and credits" =>
            |d, t| d.config.intra_node_path = truth(t)?;
    "machine" "blocked_sender" "blocks"
        "What a sender does whose packets the network does not take: blocks (as a processor that writes to the \
         interface), or retrieves its own packets meanwhile" =>
        |d, t| d.config.blocked_sender = match word(t, &["blocks", "retrieves"])? {
            "retrieves" => BlockedSender::Retrieves,
            _ => BlockedSender::Blocks,
        };
    "machine" "slow_per_mille" "0"
        "How many of a thousand processes are slow to retrieve packets; the seed decides which" =>
            |d, t| d.config.slow_receivers.per_mille = number(t)?;
    "machine" "slow_delay" "0 ns"
        "What a packet takes a slow process in addition" => |d, t| d.config.slow_receivers.delay = step(t)?;
    "machine" "noise_interval" ""
        "After how much work the operating system interrupts a process, on average, drawn with the seed; without it \
         never" => |d, t| d.config.noise.interval = time(t)?;
    "machine" "noise_duration" "0 ns" "For how long" => |d, t| d.config.noise.duration = step(t)?;

    "network" "topology" "mesh"
        "mesh, torus, dragonfly, fat_tree, switch (all nodes on one), or ideal (nothing but the interfaces limits)" =>
            |d, t| d.topology = word(t, &["mesh", "torus", "dragonfly", "fat_tree", "switch", "ideal"])?.to_owned();
    "network" "sizes" "4x4"
        "Nodes in each dimension, one to three of them; of a dragonfly groups x routers of a group x nodes of a router; of a \
         fat tree ports of a router x levels of routers; of a switch or an ideal network their product counts" =>
            |d, t| d.sizes = numbers(t, 'x')?;
    "network" "ways" "shortest"
        "Of a dragonfly or fat tree: shortest, or drawn (a detour that is drawn for each pair of nodes)" =>
            |d, t| d.ways = if word(t, &["shortest", "drawn"])? == "drawn" { Ways::DrawnForPairs } else { Ways::Shortest };
    "network" "link_bandwidth" "2000 MB/s"
        "Rate of each direction of a link" => |d, t| d.config.network.link_bandwidth = rate(t)?;
    "network" "link_latency" "30 ns"
        "From a router to the next, first byte" => |d, t| d.config.network.link_latency = step(t)?;
    "network" "router_latency" "56.9 ns"
        "From a router's input to its output, first byte" => |d, t| d.config.network.router_latency = step(t)?;
    "network" "injection_bandwidth" "1600 MB/s"
        "Rate from the interface into the router" => |d, t| d.config.network.injection_bandwidth = rate(t)?;
    "network" "injection_latency" "20 ns"
        "From the interface to the router, beside the bytes' time" =>
            |d, t| d.config.network.injection_latency = step(t)?;
    "network" "extraction_bandwidth" "1600 MB/s"
        "Rate from the router into the interface" => |d, t| d.config.network.extraction_bandwidth = rate(t)?;
    "network" "extraction_latency" "20 ns"
        "From the router to the interface, beside the bytes' time" =>
            |d, t| d.config.network.extraction_latency = step(t)?;
    "network" "packet_overhead" "16 B"
        "Bytes on the wire beside a packet's payload" =>
            |d, t| d.config.network.packet_overhead_bytes = overhead(t, 0)?;
    "network" "packet_granule" "8 B"
        "What a packet's size on the wire is rounded up to a multiple of" =>
            |d, t| d.config.network.packet_granule_bytes = overhead(t, 1)?;
    "network" "virtual_channels" "2"
        "Virtual channels of a link; even on a torus, a multiple of 4 on a dragonfly" => |d, t| d.config.network.virtual_channels = positive(t)?;
    "network" "channel_buffer_packets" "16"
        "Packets that a router's input holds, per virtual channel" =>
            |d, t| d.config.network.channel_buffer_packets = positive(t)?;
    "network" "injection_buffer_packets" "32"
        "Packets that wait in an interface to leave" =>
            |d, t| d.config.network.injection_buffer_packets = positive(t)?;
    "network" "extraction_buffer_packets" "32"
        "Packets that wait in an interface for room in a mailbox" =>
            |d, t| d.config.network.extraction_buffer_packets = positive(t)?;

    "cost" "send_call" "" "A send is called, up to its first packet" => |d, t| d.config.cost.send_call = step(t)?;
    "cost" "send_packet" "" "A packet is written to the interface" => |d, t| d.config.cost.send_packet = step(t)?;
    "cost" "receive_call" "" "A receive is called" => |d, t| d.config.cost.receive_call = step(t)?;
    "cost" "poll" "" "A look into an empty mailbox" => |d, t| d.config.cost.poll = step(t)?;
    "cost" "retrieve_packet" ""
        "A packet is taken out of the mailbox" => |d, t| d.config.cost.retrieve_packet = step(t)?;
    "cost" "retrieve_far_packet" ""
        "In addition, of a data packet of a far peer, as all but near_peers of those that have sent data are" =>
            |d, t| d.config.cost.retrieve_far_packet = step(t)?;
    "cost" "near_peers" "" "Peers whose data, and all that belongs to it, is near at hand" => |d, t| d.config.cost.near_peers = number(t)?;
    "cost" "retrieve_waiting" ""
        "In addition, for each packet in the mailbox" => |d, t| d.config.cost.retrieve_waiting = step(t)?;
    "cost" "complete_message" ""
        "A whole message is handed to the program" => |d, t| d.config.cost.complete_message = step(t)?;
    "cost" "copy_bandwidth" "" "Copying within a process's memory" => |d, t| d.config.cost.copy_bandwidth = rate(t)?;
    "cost" "combine_bandwidth" ""
        "Combining operands of a reduction" => |d, t| d.config.cost.combine_bandwidth = rate(t)?;
    "cost" "credit_take" "" "The sender takes the credit of a packet" => |d, t| d.config.cost.credit_take = step(t)?;
    "cost" "credit_count" "" "The receiver accounts for a slot" => |d, t| d.config.cost.credit_count = step(t)?;
    "cost" "credit_packet" "" "A control packet is made or understood" => |d, t| d.config.cost.credit_packet = step(t)?;
    "cost" "dynamic_packet" ""
        "In addition under dynamic: its lists, per control packet made" =>
            |d, t| d.config.cost.dynamic_packet = step(t)?;
    "cost" "free_credits" "false"
        "Whether processes need no time for credits, neither to take and count them nor to make and understand their packets" =>
            |d, t| d.free_credits = truth(t)?;
    "cost" "injection" "" "An interface takes a packet from a process" => |d, t| d.config.cost.injection = step(t)?;
    "cost" "extraction" "" "An interface puts a packet into a mailbox" => |d, t| d.config.cost.extraction = step(t)?;
    "cost" "shared_host_interface" ""
        "Whether injection and extraction take turns" => |d, t| d.config.cost.shared_host_interface = truth(t)?;
    "cost" "host_bandwidth" "unlimited"
        "Rate at which bulk data crosses the host interface, beside injection and extraction; or unlimited" =>
            |d, t| d.config.cost.host_bandwidth = rate_or_unlimited(t)?;
    "cost" "bulk_frame" ""
        "Bytes of bulk data in one packet of the network" =>
            |d, t| d.config.cost.bulk_frame_bytes = frame(t)?;
    "cost" "bulk_call" ""
        "A bulk transfer is started, or its end is noticed" => |d, t| d.config.cost.bulk_call = step(t)?;
    "cost" "local_latency" ""
        "A message within a node, from one process to the other's notice" =>
            |d, t| d.config.cost.local_latency = step(t)?;
    "cost" "local_bandwidth" "" "Rate of the copies within a node" => |d, t| d.config.cost.local_bandwidth = rate(t)?;

    "flow" "scheme" "dynamic"
        "none, static or dynamic; rnr, preposted, growing or shared_window, whose receivers post buffers; speculative, \
         whose slots are for all; all as under MPI; or unlimited (mailboxes without end)" => |d, t| d.scheme = scheme(t)?;
    "flow" "slots_per_peer" "64"
        "Slots of 64 bytes of a mailbox per peer, credit slots included" => |d, t| d.slots_per_peer = positive(t)?;
    "flow" "credit_slots" "2" "Of those, slots for credit packets" => |d, t| d.credit_slots = positive(t)?;
    "flow" "piggyback" "true" "Whether credits ride on data packets" => |d, t| d.piggyback = truth(t)?;
    "flow" "most_slots_per_sender" ""
        "Most data slots that one sender may earn with dynamic, at least its equal share; without it, all that others \
         do not use" => |d, t| d.quota_most = Some(positive(t)?);
    "flow" "buffers" ""
        "Posted buffers of each connection; without it 100, with growing 1 at the start" =>
            |d, t| d.buffers.each = Some(number(t)?);
    "flow" "buffers_most" ""
        "With growing: posted buffers per peer at most, which a process's connections share; without it 100, or `buffers` if that is more" =>
            |d, t| d.buffers.most = Some(number(t)?);
    "flow" "buffer_bytes" ""
        "The largest message that a posted buffer holds; without it 2 KiB" =>
            |d, t| d.buffers.packets = Some(buffers::packets(t)?);
    "flow" "credit_threshold" ""
        "With preposted and growing: credits owed before a credit packet leaves; without it 5" =>
            |d, t| d.buffers.credit_threshold = Some(number(t)?);
    "flow" "growth" ""
        "With growing: how a connection grows, linear or exponential; without it linear" =>
            |d, t| d.buffers.growth = Some(buffers::growth(t)?);
    "flow" "quiet_after" ""
        "With growing: after how long a connection begins to lose buffers that it does not need, or never; without it \
         1 s" => |d, t| d.buffers.quiet_after = Some(buffers::quiet_after(t)?);
    "flow" "retry_timer" ""
        "With posted buffers: after how long a refused message is tried again, from 0.01 ms to 655.36 ms; without it \
         0.64 ms" => |d, t| d.buffers.retry_timer = Some(time(t)?);
    "flow" "pool_first" ""
        "With shared_window: the first window, in buffers; without it 8, or `pool_most` if that is less" =>
            |d, t| d.buffers.pool_first = Some(number(t)?);
    "flow" "pool_most" ""
        "With shared_window: the largest window; without it 4096, or `pool_first` if that is more" =>
            |d, t| d.buffers.pool_most = Some(number(t)?);
    "flow" "refusals_most" ""
        "With shared_window: after how many refusals of a message its sender may have the spare buffer, or never; without it \
         8" => |d, t| d.buffers.refusals_most = Some(buffers::refusals(t)?);
    "flow" "pool_slots" ""
        "With speculative: slots of a mailbox, for all peers; without it 4096" =>
            |d, t| d.buffers.pool_slots = Some(number(t)?);
    "flow" "memory" ""
        "Receive memory for a process: as many slots or buffers as fit; instead of slots_per_peer, buffers, buffers_most, \
         pool_most and pool_slots. With growing, `buffers` says how many a connection has at the start" =>
            |d, t| d.memory = Some(bytes(t)?);
    "flow" "adapter_credits" "true"
        "With rnr, preposted and growing: whether a sender's interface learns how many buffers a connection has left, and \
         sends no more messages than that, or one where it knows of none" =>
            |d, t| d.config.adapter_credits = truth(t)?;
    "flow" "rendezvous" "read"
        "How the data of a long message travels: its receiver reads it, or its sender is told where to write it" =>
        |d, t| d.config.rendezvous = match word(t, &["read", "write"])? {
            "write" => Rendezvous::Write,
            _ => Rendezvous::Read,
        };
    "flow" "eager" "2 KiB"
        "The largest message that travels through the mailbox" => |d, t| d.config.eager_bytes = bytes(t)? as usize;
    "flow" "message_header" "16 B"
        "The header of each message: 16 bytes as in the library, or 24, with which a message of 2 KiB has no room for credits" =>
        |d, t| d.config.message_header = match bytes(t)? {
            16 => MessageHeader::Short,
            24 => MessageHeader::Long,
            _ => return Err("expected 16 B or 24 B".to_owned()),
        };
    "flow" "receive_memory" ""
        "Most bytes that a process keeps on behalf of its senders; without it, as much as it takes" =>
            |d, t| d.config.receive_memory = Some(bytes(t)? as usize);
    "flow" "peers" ""
        "Places in a process's table of peers; without it one for everybody. Fewer keep a large job with few contacts \
         small" => |d, t| d.config.peers = Some(positive(t)?);

    "workload" "operation" "alltoall" "What processes do: see the table of workloads" =>
        |d, t| d.operation = word(t, &OPERATIONS.iter().map(|operation| operation.0).collect::<Vec<_>>())?.to_owned();
    "workload" "form" ""
        "How a collective operation is done: see the table of workloads" => |d, t| d.form = Some(t.to_owned());
    "workload" "radix" "2"
        "Of trees: children of a process on each level, and one" =>
            |d, t| d.radix = number_from(t, 2)?;
    "workload" "neighbours" "8"
        "Of operation neighbor_alltoall: with how many others, drawn with the seed, each process exchanges messages; an even number, \
         or with all others where there are no more" =>
            |d, t| d.neighbours = even(t)?;
    "workload" "bytes" "2 KiB" "Size of each message or block" => |d, t| d.benchmark.bytes = bytes(t)?;
    "workload" "repetitions" "3"
        "Repetitions that count; of a pattern, messages of each process" =>
            |d, t| d.benchmark.repetitions = positive(t)?;
    "workload" "longer" "1"
        "How many times as long the program is: multiplies its repetitions that count, or its iterations" =>
            |d, t| d.longer = positive(t)?;
    "workload" "warm_up" "1" "Repetitions before the clock starts" => |d, t| d.benchmark.warm_up = number(t)?;
    "workload" "active" ""
        "How many of the first processes take part; the others wait in a barrier. Without it all do" =>
            |d, t| d.benchmark.active = Some(positive(t)?);
    "workload" "repetitions_per_root" "1"
        "After how many repetitions the next process becomes the root" =>
            |d, t| d.benchmark.repetitions_per_root = positive(t)?;
    "workload" "root" "0" "The receiver of an incast" => |d, t| d.root = number(t)?;
    "workload" "window" "64"
        "Messages of a pattern that a process has under way at most; of a stream, messages before the answer" => |d, t| d.window = positive::<u32>(t)? as usize;
    "workload" "mixed" "false"
        "Whether, after the warm-up, each two processes exchange a message of a random length, so that pairs begin what \
         counts with different credits" => |d, t| d.mixed = truth(t)?;
    "workload" "amid_packets" ""
        "The run begins amid a program in which each two processes have exchanged messages of so many packets; without it, \
         with the program" => |d, t| d.config.amid_messages_of = Some(positive(t)?);
    "workload" "phases" "256 128 64"
        "Of operation phases: how many of the first processes do all-to-alls in each phase, while the others wait in a barrier" =>
            |d, t| d.phases = numbers(t, ' ')?;
    "workload" "watched" ""
        "Of operation phases: ranges of ranks, such as \"1-63 64-127\"; the credits of rank 0 towards them are noted" =>
            |d, t| d.watched = ranges(t)?;
    "workload" "variation" "as_published"
        "What is changed of a NAS benchmark: as_published, input_given (MG without the reductions for its input), \
         interior_points (LU: work by interior points, as its loops have it), edges_copied (LU, the same), words_at_first, or transpose_at_once (FT)" =>
        |d, t| d.variation = match word(t, &["as_published", "input_given", "interior_points", "edges_copied", "words_at_first", "transpose_at_once"])? {
            "input_given" => Variation::InputGiven,
            "interior_points" => Variation::InteriorPoints,
            "edges_copied" => Variation::EdgesCopied,
            "words_at_first" => Variation::WordsAtFirst,
            "transpose_at_once" => Variation::TransposeAtOnce,
            _ => Variation::AsPublished,
        };
    "workload" "clock" "whole"
        "Of a NAS benchmark: whether its time is that of the whole program, or that of its own clock, which begins after the \
         iterations that warm up (own)" => |d, t| d.is_own_clock = word(t, &["whole", "own"])? == "own";
    "workload" "iterations" ""
        "Iterations of a NAS benchmark that count; without it as many as its class has" =>
            |d, t| d.iterations = Some(number(t)?);
    "workload" "compute_rate" "400"
        "Millions of operations that a process of a NAS benchmark does in a second" =>
            |d, t| d.compute_rate = f64::from(positive::<u32>(t)?);
    "workload" "trace" ""
        "A file in GOAL format, seen from the folder of this one; or halo16, the bundled trace of 16 processes" =>
            |d, t| d.trace = Some(t.into());

    "run" "seed" "1" "Decides every random choice" => |d, t| d.config.seed = number(t)?;
    "run" "reference" "true"
        "Whether every run is compared with the same in mailboxes without end" => |d, t| d.reference = truth(t)?;
    "run" "time_most" ""
        "When a run is ended if its programs have not ended before, or never; without it never" =>
            |d, t| d.config.time_most = if t == "never" { Time::NEVER } else { time(t)? };
    "run" "checks" "false"
        "Whether all checkers watch: conservation of credits, mailbox bound, order, liveness. Slower" =>
            |d, t| d.config.checks = truth(t)?;
};

/// Ranges of ranks, both ends included, between spaces.
fn ranges(text: &str) -> Result<Vec<Range<u32>>, String> {
    let range = |part: &str| {
        let (first, last) =
            part.split_once('-').ok_or_else(|| "ranges such as \"1-63 64-127\" are needed".to_owned())?;
        let (first, last): (u32, u32) = (number(first)?, number(last)?);
        if first <= last {
            Ok(first..last.saturating_add(1))
        } else {
            Err(format!("{part} is no range: it ends before it begins"))
        }
    };
    text.split(' ').map(range).collect()
}

/// `None`: mailboxes without end.
fn scheme(text: &str) -> Result<Option<SchemeName>, String> {
    let text = text.to_lowercase();
    if let Ok(scheme) = text.parse::<SchemeName>() {
        return Ok(Some(scheme));
    }
    let offered = SchemeName::OFFERED.iter().map(|scheme| scheme.name());
    word(&text, &["unlimited"].into_iter().chain(offered).collect::<Vec<_>>()).map(|_| None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_spec::Draft;

    #[test]
    fn every_default_is_what_a_file_without_the_field_gets() {
        let plain = format!("{:?}", JobDraft::new());
        for field in FIELDS.iter().filter(|field| !field.default.is_empty()) {
            let mut draft = JobDraft::new();
            (field.set)(&mut draft, field.default).unwrap_or_else(|problem| panic!("{field:?}: {problem}"));
            assert_eq!(format!("{draft:?}"), plain, "{field:?}");
        }
    }

    #[test]
    fn names_are_unique_within_their_section() {
        for (index, field) in FIELDS.iter().enumerate() {
            let twice =
                FIELDS[index + 1..].iter().any(|other| (other.section, other.name) == (field.section, field.name));
            assert!(!twice, "{field:?} is there twice");
        }
    }
}
