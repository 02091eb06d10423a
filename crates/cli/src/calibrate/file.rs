//! Costs into a machine file.

use std::fmt::Write;

use super::fit::{Costs, Spread};
use super::pair::Exchange;
use super::residual::Residual;

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

/// The file's text.
#[must_use]
pub fn machine_file(
    origin: &Origin,
    costs: &Costs,
    measured: &[(Exchange, Vec<f64>)],
    residuals: &[Residual],
) -> String {
    let mut text = String::new();
    let Origin { host, processor, date, has_two_processors } = origin;
    let _ = writeln!(
        text,
        "# {host}, {processor}; measured on {date} by `tidegate calibrate`.\n\
         # Two processes over the provider's shared memory, no MPI; medians, with quartiles where a number was measured as it\n\
         # stands. Numbers without quartiles follow from several."
    );
    if !has_two_processors {
        let _ = writeln!(
            text,
            "# Both processes shared one processor: times of exchanges hold the system's switches between them."
        );
    }
    let _ = write!(
        text,
        "\n[machine]\n\
         processes_per_node = 1         # shared memory has no interface that processes of a host would share\n\
         blocked_sender = \"retrieves\"\n\n\
         [network]\n\
         topology = \"ideal\"             # grows with the job\n\
         sizes = \"2\"\n"
    );
    let mut line = |name: &str, value: String, remark: String| {
        let line = format!("{name} = {value}");
        let _ = match remark.is_empty() {
            true => writeln!(text, "{line}"),
            false => writeln!(text, "{line:<38} # {remark}"),
        };
    };
    let rate = |bytes_per_nanosecond: f64| format!("\"{:.0} MB/s\"", (bytes_per_nanosecond * 1000.0).max(1.0));
    let nanoseconds = |time: f64| format!("\"{time:.1} ns\"");
    let around = |spread: &Spread| format!("quartiles {:.1} to {:.1} ns", spread.low, spread.high);
    line(
        "router_latency",
        nanoseconds(costs.latency),
        "what is left of half a round trip of an empty message".to_owned(),
    );
    for name in ["injection_bandwidth", "extraction_bandwidth"] {
        line(name, rate(costs.bulk_bandwidth), "of messages above the eager limit".to_owned());
    }
    for name in ["injection_latency", "extraction_latency"] {
        line(name, nanoseconds(0.0), String::new());
    }
    line("packet_overhead", "\"8 B\"".to_owned(), "the header of a slot".to_owned());
    line(
        "\n[cost]\n# The calls of a burst, made to fit half a round trip where that takes less.\nsend_call",
        nanoseconds(costs.send.once),
        "bursts of messages of 1 to 37 packets".to_owned(),
    );
    line("send_packet", nanoseconds(costs.send.each), "the same".to_owned());
    line("receive_call", nanoseconds(costs.receive_call.median), around(&costs.receive_call));
    line("poll", nanoseconds(costs.poll.median), around(&costs.poll));
    line("retrieve_packet", nanoseconds(costs.take.each), "bursts that lie in the mailbox".to_owned());
    line("complete_message", nanoseconds(costs.take.once), "the same".to_owned());
    line("retrieve_far_packet", nanoseconds(0.0), "not measured: two processes have one peer".to_owned());
    line("copy_bandwidth", rate(costs.copy_bandwidth), "1 MiB".to_owned());
    line("combine_bandwidth", rate(costs.combine_bandwidth), "1 MiB of 64-bit numbers".to_owned());
    let credits = "by difference: static with many slots and none";
    line("credit_take", nanoseconds(costs.credit), credits.to_owned());
    line("credit_count", nanoseconds(costs.credit), "the same".to_owned());
    line("credit_packet", nanoseconds(costs.credit_packet), "by difference: static with few slots and many".to_owned());
    line("dynamic_packet", nanoseconds(costs.dynamic_packet), "by difference: dynamic and static".to_owned());
    line("injection", nanoseconds(0.0), String::new());
    line("extraction", nanoseconds(costs.crossing), "a packet's share of a stream of 2 KiB messages".to_owned());
    line("shared_host_interface", "false".to_owned(), String::new());
    line("bulk_frame", "\"16 KiB\"".to_owned(), "assumed".to_owned());
    line("bulk_call", nanoseconds(costs.bulk_call), "what long messages take beside their bytes".to_owned());
    let _ = writeln!(text, "\n# What was measured, and what this file gives in the simulator:\n#");
    for residual in residuals {
        let spread = measured.iter().find(|(exchange, _)| *exchange == residual.exchange);
        let spread = spread.map_or_else(String::new, |(_, times)| {
            let spread = Spread::of(times);
            format!(" ({:.0} to {:.0})", spread.low, spread.high)
        });
        let _ = writeln!(text, "#   {residual}{spread}");
    }
    text
}
