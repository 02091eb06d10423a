//! The numbers of runs that are compared.

use std::collections::BTreeMap;

use tidegate_link::stats::WaitCause;
use tidegate_message::{Counter, Unit};

use crate::recording::view::{Process, View};

/// Something that is compared, of which less is better.
#[derive(Debug)]
pub struct Measure {
    /// Its name for programs.
    pub id: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// The same in one or two words, as the subject of a sentence.
    pub short: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// One run of each side differs from this ratio on, and by at least this much, in its unit.
    pub alone: (f64, f64),
    /// Of a run, or of one launch of it.
    of: fn(&Part) -> f64,
}

/// The values of a run, in the order of [`MEASURES`].
pub type Values = [f64; MEASURES.len()];

/// Processes of a run that are compared together.
struct Part<'a> {
    run: &'a View,
    processes: Vec<&'a Process>,
    /// How long it took, in nanoseconds.
    time_ns: f64,
    /// The number of the launch, if it is one of several.
    launch: Option<usize>,
}

impl Part<'_> {
    fn sum(&self, counter: Counter) -> f64 {
        self.processes.iter().map(|process| process.get(counter) as f64).sum()
    }

    fn most(&self, counter: Counter) -> f64 {
        self.processes.iter().map(|process| process.get(counter) as f64).fold(0.0, f64::max)
    }

    fn waited_for_receivers(&self) -> f64 {
        let is_here = |process: usize| self.launch.is_none_or(|launch| self.run.processes[process].launch == launch);
        let waits = self.run.waits.iter().filter(|wait| is_here(wait.from));
        let of_sends = waits.filter(|wait| wait.cause.is_of_sends() && wait.cause != WaitCause::Pull);
        of_sends.map(|wait| wait.waited_ns as f64).sum()
    }
}

/// A ratio that runs of the same command reach: of ten runs each of five jobs of 0.4 to 1.4 s (MPICH, 2 and 4 ranks
/// on 2 cores, 29 November 2026) the longest took 1.14 to 1.25 times as long as the shortest where that was more than
/// a quarter of a second, waits differed by 1.1 to 9 times, and peaks of memory by 1 %.
const TIME: (f64, f64) = (1.25, 2.5e8);
const WAITS: (f64, f64) = (10.0, 1e8);
const COUNTS: (f64, f64) = (10.0, 100.0);
const MEMORY: (f64, f64) = (1.05, 65536.0);

/// All of them, the most important first; the first is the time.
pub static MEASURES: [Measure; 8] = [
    Measure {
        id: "time",
        name: "time of the run",
        short: "time",
        unit: Unit::Nanoseconds,
        alone: TIME,
        of: |part| part.time_ns,
    },
    Measure {
        id: "wait",
        name: "waiting for messages, mean of the ranks",
        short: "waiting for messages",
        unit: Unit::Nanoseconds,
        alone: WAITS,
        of: |part| part.sum(Counter::WaitNanoseconds) / part.processes.len().max(1) as f64,
    },
    Measure {
        id: "sends_delayed",
        name: "sends that waited for credits or room",
        short: "sends that waited",
        unit: Unit::Count,
        alone: COUNTS,
        of: |part| part.sum(Counter::SendsDelayed),
    },
    Measure {
        id: "delay",
        name: "longest such waiting of a process",
        short: "waiting of sends",
        unit: Unit::Nanoseconds,
        alone: WAITS,
        of: |part| part.most(Counter::DelayNanoseconds),
    },
    Measure {
        id: "sends_deferred",
        name: "sends deferred for want of receive memory",
        short: "deferred sends",
        unit: Unit::Count,
        alone: COUNTS,
        of: |part| part.sum(Counter::SendsDeferred),
    },
    Measure {
        id: "receivers",
        name: "all waiting of senders for receivers",
        short: "waiting for receivers",
        unit: Unit::Nanoseconds,
        alone: WAITS,
        of: |part| part.waited_for_receivers(),
    },
    Measure {
        id: "refusals",
        name: "refused for want of a posted buffer",
        short: "refusals",
        unit: Unit::Count,
        alone: COUNTS,
        of: |part| part.sum(Counter::Refusals),
    },
    Measure {
        id: "receive_peak",
        name: "peak of receive memory",
        short: "receive memory at its peak",
        unit: Unit::Bytes,
        alone: MEMORY,
        of: |part| part.most(Counter::ReceivePeak),
    },
];

/// The values of a run: one set, or one for each launch of a script that does the same again and again.
pub fn values(run: &View) -> Vec<Values> {
    parts(run).iter().map(|part| std::array::from_fn(|number| (MEASURES[number].of)(part))).collect()
}

fn parts<'a>(run: &'a View) -> Vec<Part<'a>> {
    let mut launches: BTreeMap<usize, Vec<&Process>> = BTreeMap::new();
    run.processes.iter().for_each(|process| launches.entry(process.launch).or_default().push(process));
    let lived = |processes: &[&Process]| processes.iter().map(|process| process.lived_ns).max().unwrap_or(0);
    let like = |processes: &[&Process]| (processes.len(), processes[0].facts.program.clone());
    let first = launches.values().next().map(|processes| like(processes));
    let repeats =
        launches.len() > 1 && launches.values().all(|processes| lived(processes) > 0 && Some(like(processes)) == first);
    if !repeats {
        let processes = run.processes.iter().collect();
        return vec![Part { run, processes, time_ns: run.duration_ns as f64, launch: None }];
    }
    let part = |(launch, processes): (usize, Vec<&'a Process>)| {
        let time_ns = lived(&processes) as f64;
        Part { run, processes, time_ns, launch: Some(launch) }
    };
    launches.into_iter().map(part).collect()
}
