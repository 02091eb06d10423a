//! [`Lines`]: samples into time lines.
//!
//! The time of the recording is divided into columns. What a counter grew by from one sample to the next is spread
//! evenly over that time; what is a level and no flow (memory) counts in all columns that it reaches into, with its
//! largest value.

use tidegate_message::Counter;

use crate::advice::{Advice, held_up};
use crate::recording::Values;
use crate::recording::samples::Event;
use crate::recording::view::{Recording, View};
use tidegate_link::stats::WaitCause;

/// What a time line shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name for the script.
    pub id: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// The counters of which it is made.
    pub counters: &'static [Counter],
}

/// What values of a metric are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Things per second.
    Rate,
    /// Bytes per second.
    Bandwidth,
    /// Nanoseconds per nanosecond: how many peers at a time.
    Waiting,
    /// The same where there is one at a time: a part of the time.
    Share,
    /// Bytes at the moment.
    Memory,
}

impl Kind {
    /// Its name for the script.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Rate => "rate",
            Kind::Bandwidth => "bandwidth",
            Kind::Waiting => "waiting",
            Kind::Share => "share",
            Kind::Memory => "memory",
        }
    }

    /// Whether several processes in one row show the most of any of them, not the mean.
    #[must_use]
    pub fn shows_most(self) -> bool {
        matches!(self, Kind::Waiting | Kind::Share | Kind::Memory)
    }
}

/// All of them, in the order of the page.
pub const METRICS: &[Metric] = &[
    Metric {
        id: "messages",
        name: "messages sent",
        about: "Messages that a process sent, per second.",
        kind: Kind::Rate,
        counters: &[Counter::MessagesEager, Counter::MessagesRendezvous, Counter::MessagesSelf],
    },
    Metric {
        id: "received",
        name: "bytes received",
        about: "Payload bytes of messages that a process received, per second.",
        kind: Kind::Bandwidth,
        counters: &[Counter::BytesReceived],
    },
    Metric {
        id: "waiting",
        name: "waiting for credits or room",
        about: "For how many peers at a time a process had sends waiting for credits (under none: for room in a mailbox).",
        kind: Kind::Waiting,
        counters: &[Counter::DelayNanoseconds],
    },
    Metric {
        id: "messages-awaited",
        name: "waiting for messages",
        about: "The share of time in which the application of a process polled in vain while something of its was open.",
        kind: Kind::Share,
        counters: &[Counter::WaitNanoseconds],
    },
    Metric {
        id: "memory",
        name: "receive memory",
        about: "What a process kept for its senders: the fixed part and messages that nobody had received yet.",
        kind: Kind::Memory,
        counters: &[Counter::ReceiveFixedBytes, Counter::UnmatchedBytes],
    },
    Metric {
        id: "pressure",
        name: "no room for others' sends",
        about: "The share of time in which peers deferred sends because of this process's receive memory.",
        kind: Kind::Share,
        counters: &[Counter::PressureNanoseconds],
    },
    Metric {
        id: "sent",
        name: "bytes sent",
        about: "Payload bytes of messages that a process sent, per second.",
        kind: Kind::Bandwidth,
        counters: &[Counter::BytesSent],
    },
    Metric {
        id: "delayed",
        name: "sends delayed or deferred",
        about: "Sends of a process that had to wait for credits or for receive memory, per second.",
        kind: Kind::Rate,
        counters: &[Counter::SendsDelayed, Counter::SendsDeferred],
    },
    Metric {
        id: "refused",
        name: "packets refused",
        about: "Packets of a process that found a full mailbox or no posted buffer, per second.",
        kind: Kind::Rate,
        counters: &[Counter::MailboxFull, Counter::Refusals],
    },
];

/// The metric that shows what there is to say: its id.
#[must_use]
pub fn first(run: &View, advice: &Advice) -> &'static str {
    let is_full = || held_up(run).is_some_and(|held| held.cause == WaitCause::Window);
    let of_sends = ["held_up", "credits", "few_slots", "mailbox_full", "refusals"];
    match advice.points.iter().find(|point| point.id != "incomplete").map(|point| point.id) {
        Some("no_room") => "pressure",
        Some("held_up") if is_full() => "pressure",
        Some(id) if of_sends.contains(&id) => "waiting",
        _ => "messages-awaited",
    }
}

/// The time lines of all processes.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    /// Where they begin, in nanoseconds since the start.
    pub begin_ns: u64,
    /// Where they end.
    pub end_ns: u64,
    /// Into how many columns that time is divided.
    pub columns: usize,
    /// By metric, process and column.
    pub values: Vec<Vec<Vec<f32>>>,
}

impl Lines {
    /// Reads all samples, into so many columns at most; there are never more columns than samples.
    #[must_use]
    pub fn new(recording: &mut Recording, columns_most: usize) -> Self {
        let (begin_ns, end_ns) = span(recording);
        let columns = columns_most.min(recording.view.samples as usize).max(1);
        let processes = recording.view.processes.len();
        let values = vec![vec![vec![0.0; columns]; processes]; METRICS.len()];
        let mut lines = Lines { begin_ns, end_ns, columns, values };
        let mut before: Vec<Values> = Vec::new();
        let mut since = begin_ns;
        recording.reader.rewind();
        while let Some(event) = recording.reader.next_event() {
            match event {
                Event::Endpoint(_) => before.push([0; Counter::COUNT]),
                Event::Sample => {
                    let until = recording.reader.time_ns();
                    lines.add(since, until, &before, recording.reader.values(), &recording.process_of);
                    before.clone_from_slice(recording.reader.values());
                    since = until;
                }
            }
        }
        lines.divide_by_time();
        lines
    }

    /// Seconds of a column.
    #[must_use]
    pub fn column_seconds(&self) -> f64 {
        (self.end_ns - self.begin_ns) as f64 / 1e9 / self.columns as f64
    }

    fn add(&mut self, since: u64, until: u64, before: &[Values], now: &[Values], process_of: &[usize]) {
        let parts = self.parts(since, until);
        for (number, metric) in METRICS.iter().enumerate() {
            let lines = &mut self.values[number];
            if metric.kind == Kind::Memory {
                let mut levels = vec![0_u64; lines.len()];
                for (endpoint, (before, now)) in before.iter().zip(now).enumerate() {
                    let of_process = &mut levels[process_of[endpoint]];
                    *of_process = of_process.saturating_add(level(before, now));
                }
                for (line, level) in lines.iter_mut().zip(levels) {
                    parts.iter().for_each(|(column, _)| line[*column] = line[*column].max(level as f32));
                }
                continue;
            }
            for (endpoint, (before, now)) in before.iter().zip(now).enumerate() {
                let grown = |counter: &Counter| now[*counter as usize].saturating_sub(before[*counter as usize]);
                let amount: u64 = metric.counters.iter().map(grown).fold(0, u64::saturating_add);
                if amount > 0 {
                    let line = &mut lines[process_of[endpoint]];
                    parts.iter().for_each(|(column, share)| line[*column] += amount as f32 * share);
                }
            }
        }
    }

    /// The columns that a span of time reaches into, with the share of the span that lies in each.
    fn parts(&self, since: u64, until: u64) -> Vec<(usize, f32)> {
        let length = (self.end_ns - self.begin_ns) as f64 / self.columns as f64;
        let at = |time: u64| time.saturating_sub(self.begin_ns) as f64 / length;
        let (first, last) = (at(since), at(until));
        let from = (first as usize).min(self.columns - 1);
        let to = (last.ceil() as usize).clamp(from + 1, self.columns);
        let share = |column: usize| {
            let inside = last.min(column as f64 + 1.0) - first.max(column as f64);
            // A span without length lies in one column.
            if last - first < 1e-9 { 1.0 } else { (inside / (last - first)).clamp(0.0, 1.0) }
        };
        (from..to).map(|column| (column, share(column) as f32)).collect()
    }

    /// What flowed in each column becomes how much did per second.
    fn divide_by_time(&mut self) {
        let seconds = self.column_seconds();
        for (metric, lines) in METRICS.iter().zip(&mut self.values) {
            let unit = match metric.kind {
                Kind::Rate | Kind::Bandwidth => seconds,
                Kind::Waiting | Kind::Share => seconds * 1e9,
                Kind::Memory => continue,
            };
            // Processes write their pages some time after a wait began: that of one column may lie in the next.
            let most = if metric.kind == Kind::Share { 1.0 } else { f64::INFINITY };
            lines.iter_mut().flatten().for_each(|value| *value = (f64::from(*value) / unit).min(most) as f32);
        }
    }
}

/// Where the lines begin and end: from the sample before the first, which found nothing, to the last.
fn span(recording: &mut Recording) -> (u64, u64) {
    recording.reader.rewind();
    let mut first = None;
    while let Some(event) = recording.reader.next_event() {
        if let Event::Sample = event {
            first.get_or_insert(recording.reader.time_ns());
        }
    }
    let begin = first.unwrap_or(0).saturating_sub(recording.view.facts.interval_ns);
    (begin, recording.reader.time_ns().max(begin + 1))
}

/// The receive memory of an endpoint at its highest between two samples, as far as they tell.
fn level(before: &Values, now: &Values) -> u64 {
    let peak = now[Counter::ReceivePeak as usize];
    if peak > before[Counter::ReceivePeak as usize] {
        return peak;
    }
    now[Counter::ReceiveFixedBytes as usize].saturating_add(now[Counter::UnmatchedBytes as usize])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::testing::{Made, values};

    fn metric(id: &str) -> usize {
        METRICS.iter().position(|metric| metric.id == id).unwrap()
    }

    #[test]
    fn what_flowed_between_samples_is_spread_over_their_time() {
        // Samples at 1, 2 and 4 s; the interval is 1 s, so the lines begin at 0.
        let mut made = Made::new(2);
        made.sample(1.0, &[values(&[(Counter::MessagesEager, 100)]), values(&[])]);
        made.sample(
            2.0,
            &[values(&[(Counter::MessagesEager, 100)]), values(&[(Counter::DelayNanoseconds, 500_000_000)])],
        );
        made.sample(
            4.0,
            &[values(&[(Counter::MessagesEager, 500)]), values(&[(Counter::DelayNanoseconds, 500_000_000)])],
        );
        let mut recording = made.recording();
        let lines = Lines::new(&mut recording, 4);
        // As many columns as samples.
        assert_eq!((lines.columns, lines.begin_ns, lines.end_ns), (3, 0, 4_000_000_000));
        let messages = &lines.values[metric("messages")][0];
        let all: f32 = messages.iter().map(|rate| rate * 4.0 / 3.0).sum();
        assert!((all - 500.0).abs() < 0.1, "nothing is lost: {messages:?}");
        assert!((messages[0] - 75.0).abs() < 0.1 && (messages[2] - 200.0).abs() < 0.1, "{messages:?}");
        let waiting = &lines.values[metric("waiting")][1];
        let waited: f32 = waiting.iter().map(|share| share * 4.0 / 3.0).sum();
        assert!((waited - 0.5).abs() < 1e-3 && waiting[2] == 0.0, "{waiting:?}");
    }

    #[test]
    fn memory_is_a_level_with_its_peaks() {
        let mut made = Made::new(1);
        let at = |unmatched, peak| {
            let fixed = (Counter::ReceiveFixedBytes, 10);
            vec![values(&[fixed, (Counter::UnmatchedBytes, unmatched), (Counter::ReceivePeak, peak)])]
        };
        made.sample(1.0, &at(0, 10));
        made.sample(2.0, &at(5, 90));
        made.sample(3.0, &at(7, 90));
        let lines = Lines::new(&mut made.recording(), 3);
        assert_eq!(lines.values[metric("memory")][0], [10.0, 90.0, 17.0]);
    }

    #[test]
    fn samples_at_one_moment_do_no_harm() {
        let mut made = Made::new(1);
        for time in [1.0, 1.0, 1.0] {
            made.sample(time, &[values(&[(Counter::BytesSent, 8)])]);
        }
        let lines = Lines::new(&mut made.recording(), 100);
        assert!(lines.values.iter().flatten().flatten().all(|value| value.is_finite()));
    }
}
