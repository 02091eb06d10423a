//! [`Measurement`]: what is to be known of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_message::Counter;

use crate::cost::Activity;
use crate::cycle::all_to_all::Exchanged;
use crate::cycle::{Choices, FIVE_PERCENT, is_settled};
use crate::outcome::Outcome;
use crate::time::Time;

/// What [`Benchmark`](crate::workload::Benchmark) notes in every process. A measurement has these as means or shares.
const NOTED_BY_BENCHMARKS: [&str; 3] = ["time", "messages", "delayed"];

/// What is to be known of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Mean over processes of the time per repetition, in microseconds.
    #[serde(rename = "time_us")]
    pub time: f64,
    /// Mean over the processes that took part of the time spent on credits, per repetition, in microseconds.
    #[serde(rename = "credits_time_us")]
    pub credits_time: f64,
    /// Share of the messages in the repetitions that count that waited for credits, 0 to 1.
    pub delayed: f64,
    /// The counters of the whole run, warm-up included, over all processes by name: the sum or the maximum, as
    /// [`Counter::aggregate`] says. Those that are 0 are left out.
    pub counters: BTreeMap<String, u64>,
    /// Mean over all processes of the time spent on each activity in the whole run, in microseconds. The rest of the
    /// time a process waited.
    #[serde(default, rename = "spent_us")]
    pub spent: BTreeMap<String, f64>,
    /// Mean over all processes of the time in the whole run that peers were blocked which the process had asked to
    /// return credits (P §6.1), added over these peers, in microseconds. Only `dynamic` has such requests.
    #[serde(default, rename = "blocked_us")]
    pub blocked: f64,
    /// Processes of the job.
    #[serde(default)]
    pub processes: u32,
    /// Packets that the network delivered, those of interfaces themselves included.
    #[serde(default)]
    pub packets: u64,
    /// Those of interfaces themselves: refusals, invitations, acknowledgements.
    #[serde(default)]
    pub answers: u64,
    /// When the run was ended before its programs had, in microseconds; all else is of the run until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_us: Option<f64>,
    /// When nothing could move any more although its programs had not ended, in microseconds: processes wait for each
    /// other. There is nothing else then but the time, which is this. Only who tries settings out keeps such runs; to
    /// others they are errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hung_us: Option<f64>,
    /// What only runs with posted buffers have, and those on clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posted: Option<Posted>,
    /// What only networks under load have, which have no processes, hence nothing of the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Carried>,
    /// What only jobs on machines of B's have, which have nothing else but the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk: Option<Bulk>,
    /// What only exchanges of all nodes have, which have nothing of the rest, either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Exchanged>,
    /// What programs noted besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// What a job of bulk transfers gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bulk {
    /// Megabytes per second that a node sent, mean over nodes and time.
    pub bandwidth: f64,
    /// Bookings that were asked for.
    pub requests: u64,
    /// Those of them that were denied.
    pub denials: u64,
    /// Most blocks that were under way to one receiver at a time.
    pub senders_most: u32,
    /// Share of the time that processors spent on sending.
    pub sending: f64,
    /// And on receiving.
    pub receiving: f64,
    /// Shares of the nodes that had a block under way, by span of the time, where that was watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy: Vec<f64>,
}

/// What a network under load has carried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    /// Flits that a node takes per cycle, mean over all nodes: of each window.
    pub windows: Vec<f64>,
    /// The same over the nodes that are not slow, of the last window.
    pub healthy: f64,
    /// Whether it settled within the tolerance of the run.
    pub has_settled: bool,
    /// Where the rule stops with a tolerance of 5 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_five_percent: Option<Stop>,
    /// Where a rule stops that compares, with 5 %, the rates since the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cumulative: Option<Stop>,
    /// Mean cycles from when a packet was ready until it was taken, in the last window.
    pub latency: f64,
    /// Packets that left the shortest way, of all that were sent.
    pub diverted: f64,
    /// Packets that carried nothing but credits, per packet of data.
    pub credit_packets: f64,
    /// Comparisons of ways by a dragonfly's adaptive routers, in all cycles: for packets to nodes that are not slow,
    /// and to slow ones.
    #[serde(default)]
    pub choices: [Choices; 2],
    /// All cycles.
    pub cycles: u64,
    /// Steps of packets through routers in all cycles.
    pub hops: u64,
}

/// Where a rule stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    /// After so many windows.
    pub windows: u32,
    /// The rate then.
    pub rate: f64,
}

impl Carried {
    /// The rate of the last window.
    #[must_use]
    pub fn last(&self) -> f64 {
        self.windows.last().copied().unwrap_or(0.0)
    }

    /// Where the rule of 5 % stops with windows of so many of the run's. `None`: it does not in this run.
    #[must_use]
    pub fn stop_with(&self, windows: usize) -> Option<Stop> {
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        let rates: Vec<f64> = self.windows.chunks_exact(windows.max(1)).map(mean).collect();
        let stops = |count: &usize| is_settled(&rates[..*count], FIVE_PERCENT);
        let count = (1..=rates.len()).find(stops)?;
        Some(Stop { windows: count as u32, rate: rates[count - 1] })
    }

    /// The rate where the rule of 5 % stops, also in a run with a narrower tolerance; of the last window if it never
    /// does.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.at_five_percent.map_or(self.last(), |stop| stop.rate)
    }
}

/// What is to be known of runs on a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Posted {
    /// The time of the process that took longest, in microseconds.
    pub last_us: f64,
    /// Most buffers that a connection had posted at the end; of a pool all of a process.
    pub buffers_most: u32,
    /// Mean over the processes of the buffers that each had posted at the end.
    pub buffers_mean: f64,
    /// Mean over the processes of the most bytes of unexpected messages that each ever stored.
    pub unexpected_mean: f64,
}

impl Posted {
    fn of(outcome: &Outcome) -> Self {
        let processes = outcome.processes.len().max(1) as f64;
        let buffers = || outcome.processes.iter().map(|process| process.buffers);
        let unexpected = outcome.processes.iter().map(|process| process.counter(Counter::UnexpectedPeak) as f64);
        Posted {
            last_us: outcome.samples_of("time").map(|sample| sample.value).fold(0.0, f64::max),
            buffers_most: buffers().map(|buffers| buffers.most).max().unwrap_or(0),
            buffers_mean: buffers().map(|buffers| f64::from(buffers.all)).sum::<f64>() / processes,
            unexpected_mean: unexpected.sum::<f64>() / processes,
        }
    }
}

/// A number that a program noted; a [`Sample`](crate::Sample) that can be kept in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// Who.
    pub rank: u32,
    /// What it is, as the program calls it.
    pub label: String,
    /// Which of those.
    pub index: u64,
    /// The number.
    pub value: f64,
}

impl Measurement {
    /// Of a run with that many repetitions, warm-up included.
    pub fn of(outcome: &Outcome, repetitions: u32) -> Self {
        let times: Vec<f64> = outcome.samples_of("time").map(|sample| sample.value).collect();
        let took_part = times.len().max(1) as f64;
        let spent_on = |activity| outcome.processes.iter().map(|each| each.spent.on(activity).microseconds()).sum();
        let credits: f64 = spent_on(Activity::Credits);
        let sum = |label| outcome.samples_of(label).map(|sample| sample.value).sum::<f64>();
        let counters = Counter::ALL.iter().map(|&counter| (counter.name().to_owned(), outcome.counter(counter)));
        let spent = Activity::ALL.iter().map(|&activity| {
            let mean = spent_on(activity) / outcome.processes.len().max(1) as f64;
            (format!("{activity:?}").to_lowercase(), mean)
        });
        let blocked: f64 = outcome.processes.iter().map(|each| each.blocked.microseconds()).sum();
        let notes = outcome.samples.iter().filter(|sample| !NOTED_BY_BENCHMARKS.contains(&sample.label));
        let note = |sample: &crate::Sample| Note {
            rank: sample.rank.0,
            label: sample.label.to_owned(),
            index: sample.index,
            value: sample.value,
        };
        Measurement {
            time: times.iter().sum::<f64>() / took_part,
            credits_time: credits / took_part / f64::from(repetitions.max(1)),
            delayed: sum("delayed") / sum("messages").max(1.0),
            counters: counters.filter(|(_, value)| *value > 0).collect(),
            spent: spent.collect(),
            blocked: blocked / outcome.processes.len().max(1) as f64,
            processes: outcome.processes.len() as u32,
            packets: outcome.network.delivered,
            answers: outcome.answers,
            cut_us: outcome.cut.map(Time::microseconds),
            hung_us: None,
            posted: None,
            carried: None,
            bulk: None,
            exchange: None,
            notes: notes.map(note).collect(),
        }
    }

    /// The same of a run on a cluster.
    pub fn of_cluster(outcome: &Outcome, repetitions: u32) -> Self {
        Measurement { posted: Some(Posted::of(outcome)), ..Measurement::of(outcome, repetitions) }
    }

    /// The values of the notes with this label, by rank.
    pub fn noted(&self, label: &str) -> Vec<f64> {
        self.notes.iter().filter(|note| note.label == label).map(|note| note.value).collect()
    }

    /// Stands for a run that has not been done, while the runs of an experiment are listed.
    pub fn not_done() -> Self {
        Measurement { time: 1.0, ..Measurement::default() }
    }

    /// One counter of the whole run, over all processes.
    #[must_use]
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters.get(counter.name()).copied().unwrap_or(0)
    }

    /// Overhead in percent: the time beyond the reference's.
    #[must_use]
    pub fn overhead(&self, reference: &Measurement) -> f64 {
        100.0 * (self.time / reference.time - 1.0)
    }
}
