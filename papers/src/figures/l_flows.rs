//! What L's experiments share: its three schemes with buffers of 2 KiB, and what is changed to see what it decides.

use std::time::Duration;

use tidegate_flow::{Buffers, SchemeName};
use tidegate_sim::workload::nas::Variation;
use tidegate_sim::{FlowChoice, Measurement};

use crate::report::{AsPoint, Series};
use crate::run::case::{Case, Workload};
use crate::run::machine::{Cluster, Interruptions};
use crate::runs::Runs;

/// L's schemes, in the order in which it describes them.
pub(crate) const SCHEMES: [SchemeName; 3] = [SchemeName::Rnr, SchemeName::Preposted, SchemeName::Growing];

/// A scheme that begins with so many buffers per connection, and never takes one away, as in L. Under `growing` a
/// process may have many times more than it begins with.
pub(crate) fn flow(scheme: SchemeName, buffers: u32) -> FlowChoice {
    let most = if scheme == SchemeName::Growing { 10 * buffers.max(20) } else { buffers };
    let buffers =
        Buffers { per_connection: buffers, per_connection_most: most, quiet_after: None, ..Buffers::of(scheme) };
    FlowChoice::Posted { scheme, buffers, piggyback: true }
}

/// A curve of a scheme's runs over `xs`.
pub(crate) fn series(
    scheme: SchemeName,
    xs: &[f64],
    runs: &[Runs],
    value: impl Fn(&Measurement) -> f64 + Copy,
) -> Series {
    let points = xs.iter().zip(runs).map(|(&x, runs)| runs.estimate(value).point(x));
    Series::of(scheme.name(), points)
}

/// How far apart the largest of some numbers is from the smallest, in percent of that.
pub(crate) fn apart(values: impl IntoIterator<Item = f64>) -> f64 {
    let (least, most) =
        values.into_iter().fold((f64::MAX, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
    100.0 * (most / least - 1.0)
}

/// What is changed of a run, to see what it decides.
#[derive(Clone, Copy, Default)]
pub(crate) struct Change {
    /// The retry timer, in microseconds.
    pub timer_us: Option<u64>,
    pub interruptions: Option<Interruptions>,
    /// Whether adapters have no credits.
    pub without_adapter_credits: bool,
    /// How long it takes a process to take a message in, in percent of what it does.
    pub receiving_percent: Option<u32>,
    /// What making or understanding a credit packet costs.
    pub credit_packet_ns: Option<u32>,
    /// The largest eager message, in bytes.
    pub eager_bytes: Option<u32>,
    /// How many credits are owed before a credit message goes.
    pub credit_threshold: Option<u32>,
    /// The pattern of a NAS benchmark.
    pub variation: Variation,
}

impl Change {
    /// Nothing.
    pub const NONE: Change = Change {
        timer_us: None,
        interruptions: None,
        without_adapter_credits: false,
        receiving_percent: None,
        credit_packet_ns: None,
        eager_bytes: None,
        credit_threshold: None,
        variation: Variation::AsPublished,
    };

    /// A program with this flow control on this cluster, changed.
    pub fn case(self, cluster: Cluster, mut flow: FlowChoice, workload: Workload) -> Case {
        if let (Some(timer), FlowChoice::Posted { buffers, .. }) = (self.timer_us, &mut flow) {
            buffers.retry_timer = Duration::from_micros(timer);
        }
        if let (Some(threshold), FlowChoice::Posted { buffers, .. }) = (self.credit_threshold, &mut flow) {
            buffers.credit_threshold = threshold;
        }
        let cluster = Cluster {
            interruptions: self.interruptions,
            adapter_credits: !self.without_adapter_credits,
            receiving_percent: self.receiving_percent.unwrap_or(cluster.receiving_percent),
            credit_packet_ns: self.credit_packet_ns,
            eager_bytes: self.eager_bytes.unwrap_or(cluster.eager_bytes),
            ..cluster
        };
        Case::on_cluster(cluster, flow, workload)
    }
}

/// Interruptions that take the same share of the time as the usual ones, 2.5 %, but come rarely and last long.
pub(crate) const fn lumps(duration_us: u32) -> Option<Interruptions> {
    Some(Interruptions { interval_us: 40 * duration_us, duration_us })
}
