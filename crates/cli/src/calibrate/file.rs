//! Costs into a machine file.

use std::fmt::Write;

use super::fit::{Costs, Spread};
use super::pair::Exchange;
use super::residual::{Residual, doubt};

/// Where and when the numbers come from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The host's name.
    pub host: String,
    /// Its processor, as the system calls it.
    pub processor: String,
    /// The day and time, in UTC.
    pub date: String,
    /// Whether each of the two processes had a processor of its own.
    pub has_two_processors: bool,
}

/// Lines of a table, with remarks.
struct Lines(String);

impl Lines {
    fn add(&mut self, name: &str, value: &str, remark: &str) {
        let line = format!("{name} = {value}");
        let _ = match remark.is_empty() {
            true => writeln!(self.0, "{line}"),
            false => writeln!(self.0, "{line:<38} # {remark}"),
        };
    }

    fn time(&mut self, name: &str, nanoseconds: f64, remark: &str) {
        self.add(name, &format!("\"{nanoseconds:.1} ns\""), remark);
    }

    /// One that was measured as it stands.
    fn spread(&mut self, name: &str, spread: &Spread) {
        self.time(name, spread.median, &format!("quartiles {:.1} to {:.1} ns", spread.low, spread.high));
    }

    fn rate(&mut self, name: &str, bytes_per_nanosecond: f64, remark: &str) {
        self.add(name, &format!("\"{:.0} MB/s\"", (bytes_per_nanosecond * 1000.0).max(1.0)), remark);
    }
}

/// The file's text.
#[must_use]
pub fn machine_file(
    origin: &Origin,
    costs: &Costs,
    measured: &[(Exchange, Vec<f64>)],
    residuals: &[Residual],
) -> String {
    let Origin { host, processor, date, has_two_processors } = origin;
    let mut text = format!(
        "# {host}, {processor}; measured on {date} by `tidegate calibrate`.\n\
         # Two processes over the provider's shared memory, no MPI; medians, with quartiles where a number was measured as\n\
         # it stands. Numbers without quartiles follow from several.\n"
    );
    if !has_two_processors {
        text.push_str("# Both processes shared one processor: exchanges hold the system's switches between them.\n");
    }
    if let Some(doubt) = doubt(residuals) {
        let _ = writeln!(text, "# {doubt}.");
    }
    text.push_str(&network(costs));
    text.push_str(&work(costs));
    let _ = writeln!(text, "\n# What was measured, and what this file gives in the simulator:\n#");
    for residual in residuals {
        let spread = measured.iter().find(|(exchange, _)| *exchange == residual.exchange);
        let spread = spread.map_or_else(String::new, |(_, times)| {
            let spread = Spread::of(times);
            format!(" (quartiles {:.0} to {:.0})", spread.low, spread.high)
        });
        let _ = writeln!(text, "#   {residual}{spread}");
    }
    text
}

/// The tables [machine] and [network].
fn network(costs: &Costs) -> String {
    let mut lines = Lines("\n[machine]\n".to_owned());
    lines.add("processes_per_node", "1", "shared memory has no interface that processes of a host would share");
    lines.add("blocked_sender", "\"retrieves\"", "");
    lines.0.push_str("\n[network]\n");
    lines.add("topology", "\"ideal\"", "grows with the job");
    lines.add("sizes", "\"2\"", "");
    lines.time("router_latency", costs.latency, "what is left of half a round trip of an empty message");
    for name in ["injection_bandwidth", "extraction_bandwidth"] {
        lines.rate(name, costs.bulk_bandwidth, "of messages above the eager limit");
    }
    for name in ["injection_latency", "extraction_latency"] {
        lines.time(name, 0.0, "");
    }
    lines.add("packet_overhead", "\"8 B\"", "the header of a slot");
    lines.0
}

/// The table [cost].
fn work(costs: &Costs) -> String {
    let mut lines = Lines("\n[cost]\n".to_owned());
    lines.time("send_call", costs.send.once, "bursts of 1 to 37 packets; less where half a round trip takes less");
    lines.time("send_packet", costs.send.each, "bursts of 1 to 37 packets");
    lines.spread("receive_call", &costs.receive_call);
    lines.spread("poll", &costs.poll);
    lines.time("retrieve_packet", costs.take.each, "bursts that lie in the mailbox");
    lines.time("complete_message", costs.take.once, "the same; less where half a round trip takes less");
    lines.time("retrieve_far_packet", 0.0, "not measured: two processes have one peer each");
    lines.rate("copy_bandwidth", costs.copy_bandwidth, "1 MiB");
    lines.rate("combine_bandwidth", costs.combine_bandwidth, "1 MiB of 64-bit numbers");
    lines.time("credit_take", costs.credit, "by difference: static with many slots, and none");
    lines.time("credit_count", costs.credit, "the same");
    lines.time("credit_packet", costs.credit_packet, "by difference: static with few slots, and with many");
    lines.time("dynamic_packet", costs.dynamic_packet, "by difference: dynamic and static");
    lines.time("injection", 0.0, "");
    lines.time("extraction", costs.crossing, "a packet's share of a stream of 2 KiB messages");
    lines.add("shared_host_interface", "false", "");
    lines.add("bulk_frame", "\"16 KiB\"", "assumed");
    lines.time("bulk_call", costs.bulk_call, "what long messages take beside their bytes");
    lines.0
}
