//! Which metrics there are of a process. Each exists of a job, `tidegate_job_…`, and with `--ranks` also of a rank,
//! `tidegate_rank_…`: two names, because a sum over one name that held both would count everything twice.
//!
//! Few counters are chosen of all that pages have: those by which an administrator sees that a job waits, floods or
//! loses something. `tidegate counters` has the others.

use std::time::Duration;

use tidegate_message::{Aggregate, Counter};

use super::text::{Kind, Unit};
use crate::top::view::Row;

/// A process of a job, as metrics see it.
pub struct Process<'a> {
    /// Its row.
    pub row: &'a Row,
    /// How long its oldest wait has lasted that goes on.
    pub oldest_wait: Duration,
}

impl Process<'_> {
    /// The sum of these counters.
    fn sum(&self, counters: &[Counter]) -> f64 {
        // Above 2^53 the lowest digits are lost, as they are in Prometheus.
        counters.iter().map(|counter| self.row.counters[*counter as usize].0).fold(0, u64::saturating_add) as f64
    }

    /// A value that ends with the process.
    fn while_there(&self, value: f64) -> f64 {
        if self.row.presence.is_there() { value } else { 0.0 }
    }
}

/// A metric of processes.
pub struct Metric {
    /// Its name, without prefix, unit and `_total`.
    pub stem: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// In which unit.
    pub unit: Unit,
    /// How processes make one value of a job.
    pub aggregate: Aggregate,
    /// Its meaning for one process.
    pub help: &'static str,
    of: Value,
}

/// Where a metric's value comes from.
enum Value {
    /// The sum of these counters; of times in nanoseconds.
    Counters(&'static [Counter]),
    /// What a process has now.
    Now(fn(&Process) -> f64),
}

impl Metric {
    /// Its value for a process.
    pub fn of(&self, process: &Process) -> f64 {
        match (&self.of, self.unit) {
            (Value::Counters(counters), Unit::Seconds) => process.sum(counters) / 1e9,
            (Value::Counters(counters), _) => process.sum(counters),
            (Value::Now(value), _) => value(process),
        }
    }
}

const fn counter(stem: &'static str, unit: Unit, help: &'static str, counters: &'static [Counter]) -> Metric {
    Metric { stem, kind: Kind::Counter, unit, aggregate: Aggregate::Sum, help, of: Value::Counters(counters) }
}

const fn gauge(
    stem: &'static str,
    unit: Unit,
    aggregate: Aggregate,
    help: &'static str,
    of: fn(&Process) -> f64,
) -> Metric {
    Metric { stem, kind: Kind::Gauge, unit, aggregate, help, of: Value::Now(of) }
}

/// The metrics of processes, in the order in which they are written.
pub static METRICS: [Metric; 27] = [
    counter(
        "messages_sent",
        Unit::None,
        "Messages sent",
        &[Counter::MessagesEager, Counter::MessagesRendezvous, Counter::MessagesSelf],
    ),
    counter("sent", Unit::Bytes, "Payload of messages sent", &[Counter::BytesSent]),
    counter("received", Unit::Bytes, "Payload of messages delivered", &[Counter::BytesReceived]),
    counter("rma_operations", Unit::None, "Remote reads and writes started", &[Counter::RmaOperations]),
    counter("atomic_operations", Unit::None, "Remote atomic operations started", &[Counter::AtomicOperations]),
    counter("wait", Unit::Seconds, "Time in which the application polled in vain", &[Counter::WaitNanoseconds]),
    counter(
        "send_delay",
        Unit::Seconds,
        "Time in which sends waited for credits, added over peers",
        &[Counter::DelayNanoseconds],
    ),
    counter(
        "receive_memory_pressure",
        Unit::Seconds,
        "Time in which peers deferred sends because this receive memory had no room",
        &[Counter::PressureNanoseconds],
    ),
    counter("sends_delayed", Unit::None, "Sends that had to wait for credits", &[Counter::SendsDelayed]),
    counter(
        "sends_deferred",
        Unit::None,
        "Sends that waited because their receiver had no room for them",
        &[Counter::SendsDeferred],
    ),
    counter(
        "unexpected_messages",
        Unit::None,
        "Messages that came before their receive was posted",
        &[Counter::UnexpectedMessages],
    ),
    counter(
        "mailbox_full",
        Unit::None,
        "Packets that a full mailbox refused and that were tried again",
        &[Counter::MailboxFull],
    ),
    counter(
        "refusals",
        Unit::None,
        "Messages that found no posted buffer, each time that they did",
        &[Counter::Refusals],
    ),
    counter("retries", Unit::None, "Refused messages that were tried again", &[Counter::Retries]),
    counter(
        "sends_lost",
        Unit::None,
        "Messages that seemed sent and never reached their receiver",
        &[Counter::SendsLost],
    ),
    counter("peers_died", Unit::None, "Peers that died while connected", &[Counter::PeersDied]),
    counter("violations", Unit::None, "Packets that broke the protocol and were dropped", &[Counter::Violations]),
    counter("batches_sent", Unit::None, "Batches of packets sent to other hosts", &[Counter::BatchesSent]),
    counter(
        "batches_resent",
        Unit::None,
        "Batches sent to other hosts again, because they may be lost",
        &[Counter::BatchesResent],
    ),
    counter("batches_dropped", Unit::None, "Batches from other hosts that were dropped", &[Counter::BatchesDropped]),
    gauge("receive_memory_used", Unit::Bytes, Aggregate::Sum, "Receive memory in use", |process| {
        process.while_there(process.row.memory.held as f64)
    }),
    gauge("receive_memory_bound", Unit::Bytes, Aggregate::Sum, "Bound of receive memory", |process| {
        process.while_there(process.row.memory.bound as f64)
    }),
    gauge(
        "receive_memory_used",
        Unit::Ratio,
        Aggregate::Max,
        "Part of the bound of receive memory in use",
        |process| process.while_there(process.row.memory.share()),
    ),
    gauge("receive_memory_peak", Unit::Bytes, Aggregate::Max, "Most receive memory that was ever in use", |process| {
        process.row.memory.peak as f64
    }),
    gauge("unexpected", Unit::Bytes, Aggregate::Sum, "Unexpected messages that are stored now", |process| {
        process.while_there(process.sum(&[Counter::UnexpectedBytes]))
    }),
    gauge(
        "unexpected_messages_stored",
        Unit::None,
        Aggregate::Sum,
        "Messages that came and that no receive has accepted yet",
        |process| process.while_there(process.row.unexpected.in_all as f64),
    ),
    gauge(
        "oldest_wait",
        Unit::Seconds,
        Aggregate::Max,
        "How long the oldest wait has lasted that goes on",
        |process| process.oldest_wait.as_secs_f64(),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::text::Family;
    use std::collections::HashSet;

    #[test]
    fn names_are_by_the_conventions_and_different() {
        let names: Vec<String> = METRICS
            .iter()
            .map(|metric| Family::new(metric.stem, metric.kind, metric.unit, metric.help).sample_name())
            .collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        for (name, metric) in names.iter().zip(&METRICS) {
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert_eq!(name.ends_with("_total"), metric.kind == Kind::Counter, "{name}");
            // Prometheus keeps these endings for histograms and summaries.
            assert!(!["_count", "_sum", "_bucket"].iter().any(|end| name.ends_with(end)), "{name}");
            assert!(!metric.help.ends_with('.'), "{name}");
        }
    }
}
