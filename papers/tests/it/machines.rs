//! `papers/*/machine.md` says what is assumed of the machines: with the values that the code has.

use std::fs;
use std::path::Path;

use tidegate_papers::Workshop;
use tidegate_sim::bulk_machine::BulkParameters;
use tidegate_sim::calibration::Anchor;
use tidegate_sim::cycle::Parameters;
use tidegate_sim::{Bandwidth, Cost, NetworkParameters};

/// The values of the row that begins with this; all of them stand in it, in their order.
#[track_caller]
fn has(paper: &str, row: &str, values: &[String]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(paper).join("machine.md");
    let text = fs::read_to_string(path).unwrap();
    let mut line = text.lines().find(|line| line.starts_with(&format!("| {row}"))).unwrap_or_else(|| panic!("{row}"));
    for value in values {
        line =
            line.split_once(value.as_str()).unwrap_or_else(|| panic!("{paper}, {row}: {value} is not in `{line}`")).1;
    }
}

fn texts<const N: usize>(values: [&dyn std::fmt::Display; N]) -> Vec<String> {
    values.iter().map(|value| value.to_string()).collect()
}

fn rate(rate: Bandwidth) -> String {
    format!("{} MB/s", rate.0 / 1_000_000)
}

#[test]
fn that_of_p_has_the_values_of_the_code() {
    let (cost, network) = (Cost::extoll(), NetworkParameters::extoll());
    let times = [Anchor::PingpongNear, Anchor::PingpongFar, Anchor::Alltoall256, Anchor::Alltoall1024];
    let [near, far, small, large] = times.map(|anchor| format!("{} µs", anchor.paper_microseconds()));
    let per_message = format!("{} + {}", cost.send_call, cost.complete_message);
    has("prades", "a packet's cost", &texts([&cost.send_packet, &cost.retrieve_packet, &per_message, &near]));
    let hop = network.link_latency + network.router_latency;
    has("prades", "a hop", &texts([&hop, &network.router_latency, &network.link_latency, &far]));
    has("prades", "a data packet", &texts([&cost.retrieve_far_packet, &cost.near_peers, &small, &large]));
    has("prades", "the rate of a link", &[rate(network.link_bandwidth)]);
    let credits = texts([&cost.credit_take, &cost.credit_count, &cost.credit_packet, &cost.dynamic_packet]);
    has("prades", "credits and control packets", &credits);
    has("prades", "interruptions", &[format!("{} %", Workshop::NOISE_PERCENT)]);
    has("prades", "a look into", &texts([&cost.poll]));
    has("prades", "the path within nodes", &texts([&cost.local_latency, &rate(cost.local_bandwidth)]));
}

#[test]
fn those_of_l_a_r_and_b_have_the_values_of_the_code() {
    let (early, late) = (Cost::infiniband2003(), Cost::infiniband2007());
    let (network, fast) = (NetworkParameters::infiniband2003(), NetworkParameters::infiniband2007());
    has("liu-panda", "the rate of a link", &[rate(network.link_bandwidth), rate(fast.link_bandwidth)]);
    has("liu-panda", "the bus of a node", &[rate(early.host_bandwidth), rate(late.host_bandwidth)]);
    for cost in [&early, &late] {
        let [call, complete] = [cost.send_call, cost.complete_message];
        has("liu-panda", "a message's cost", &texts([&call, &complete, &cost.send_packet, &cost.retrieve_packet]));
    }
    for network in [&network, &fast] {
        let adapters = network.injection_latency + network.extraction_latency;
        has("liu-panda", "what an adapter takes", &texts([&adapters, &network.router_latency]));
    }
    has("liu-panda", "a credit message", &texts([&early.credit_packet, &late.credit_packet]));
    let r = Parameters::SCHNEIDER;
    let speed_up = f64::from(r.speed_up_tenths) / 10.0;
    let of_links = texts([&speed_up, &r.buffer_flits, &r.packet_flits, &r.local_latency, &r.global_latency]);
    has("schneider", "routers, links and ways", &of_links);
    has("schneider", "channels of a link", &texts([&r.channels]));
    has("schneider", "a router, and room", &texts([&r.router_latency, &r.credit_delay]));
    for set in BulkParameters::ALL.map(|set| set()) {
        has("brewer", "receiving a unit", &[format!("{} {} %", set.name, set.receive_percent)]);
        let unit = format!("{} {} for {} bytes", set.name, set.sending(set.unit_bytes), set.unit_bytes);
        has("brewer", "sending a unit", &[unit]);
        has("brewer", "room at arrival", &[format!("{} {}", set.name, u32::from(set.arrival_cells) * set.cell_bytes)]);
        let matched = 1e6 / set.extraction() as f64;
        has("brewer", "the rate of bandwidth matching", &[format!("{} {matched:.1}", set.name)]);
        let jitter = f64::from(set.jitter_per_mille) / 5.0;
        has("brewer", "variation of block times", &[format!("{} {jitter:.1} %", set.name)]);
    }
}
