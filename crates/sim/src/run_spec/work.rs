//! [`Work`]: what the processes of a job do, and of which process its time is.

use std::ops::Range;
use std::sync::Arc;

use tidegate_message::Counter;

use crate::workload::collective::{Alltoall, Barrier, Broadcast, Gather, Reduce, Scatter, barrier};
use crate::workload::nas::Nas;
use crate::workload::{
    Benchmark, Communicator, Mixed, Neighbours, Operation, Pattern, Phase, Phases, Trace, Traffic, write_goal,
};
use crate::{Outcome, Program, Run, Simulation, SimulationConfig, SimulationError, Task};

/// What the processes do.
#[derive(Clone, Debug)]
pub enum Work {
    /// An operation, repeated and timed.
    Benchmark(Benchmark),
    /// Messages of a pattern.
    Traffic {
        /// Who sends to whom.
        pattern: Pattern,
        /// Messages of each process.
        messages: u32,
        /// Bytes of each.
        bytes: u64,
        /// How many of a process are under way at most.
        window: usize,
    },
    /// One of the NAS Parallel Benchmarks, and whether its time is that of its own clock.
    Nas(Nas, bool),
    /// A collective operation that is repeated and timed, after messages of random lengths.
    Mixed(Benchmark),
    /// All-to-alls of a part of the processes after another.
    Phases(PhaseSizes),
    /// The text of a trace, which has been checked.
    Trace(Arc<str>),
}

/// Phases, as they can be handed to another thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseSizes {
    /// Processes of each phase.
    pub sizes: Vec<u32>,
    /// All-to-alls of a phase.
    pub repetitions: u32,
    /// Bytes of a block.
    pub bytes: u64,
    /// Rank 0's credits towards these ranks are noted.
    pub watched: Vec<Range<u32>>,
}

impl PhaseSizes {
    fn phases(&self) -> Phases {
        let phase = |&active: &u32| Phase { active, operations: self.repetitions };
        Phases {
            phases: self.sizes.iter().map(phase).collect(),
            block: self.bytes,
            form: Alltoall::Plain,
            watched: self.watched.clone().into(),
        }
    }
}

/// Of which process the time of a run is; overhead is made of that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeOf {
    /// The mean over the processes that take part.
    AllProcesses,
    /// That of the process that took longest.
    LastProcess,
}

impl TimeOf {
    /// As JSON has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TimeOf::AllProcesses => "all_processes",
            TimeOf::LastProcess => "last_process",
        }
    }
}

impl Work {
    /// A name that programs of one kind have in common.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Work::Benchmark(benchmark) | Work::Mixed(benchmark) => benchmark.operation.to_string(),
            Work::Traffic { pattern, .. } => format!("{pattern:?}"),
            Work::Nas(nas, _) => nas.benchmark.name().to_owned(),
            Work::Phases(_) => "phases".to_owned(),
            Work::Trace(_) => "trace".to_owned(),
        }
    }

    /// Of which process the time of a run is.
    ///
    /// Where all processes do the same, they end at about the same time, and the mean depends least on chance: so the
    /// Intel MPI Benchmarks' average and the paper's figures have it. Where roles differ, a process whose part is small
    /// ends long before the work is done. In an incast a sender's last message may lie unread in the receiver's mailbox
    /// when the sender ends; the mean over senders would then say nothing of the receiver, and mailboxes without end,
    /// which take everything at once, would look many times faster than they are. That holds for operations with one
    /// root, for patterns (some processes receive more than others, and those on a matrix's diagonal nothing), and for
    /// traces: there the time is that of the last process.
    #[must_use]
    pub fn time_of(&self) -> TimeOf {
        match self {
            Work::Benchmark(benchmark) | Work::Mixed(benchmark) => match benchmark.operation {
                Operation::Broadcast(_)
                | Operation::Reduce(_)
                | Operation::Gather(_)
                | Operation::Gatherv
                | Operation::Scatter(_)
                | Operation::Scatterv => TimeOf::LastProcess,
                _ => TimeOf::AllProcesses,
            },
            Work::Traffic { .. } | Work::Nas(..) | Work::Phases(_) | Work::Trace(_) => TimeOf::LastProcess,
        }
    }

    /// Whether a field of the file's table of workloads changes anything here.
    pub(super) fn heeds(&self, field: &str) -> bool {
        match (self, field) {
            (_, "operation") => true,
            (Work::Trace(_), field) => field == "trace",
            (Work::Nas(..), field) => {
                matches!(field, "form" | "longer" | "iterations" | "compute_rate" | "variation" | "clock")
            }
            (Work::Phases(_), field) => matches!(field, "phases" | "watched" | "bytes" | "repetitions" | "longer"),
            (_, "amid_packets") => true,
            (Work::Traffic { pattern: Pattern::Incast { .. }, .. }, "root") => true,
            (Work::Traffic { .. }, field) => matches!(field, "bytes" | "repetitions" | "longer" | "window"),
            (Work::Benchmark(benchmark), "window") => matches!(benchmark.operation, Operation::Stream { .. }),
            (Work::Mixed(benchmark), "mixed") => benchmark.warm_up > 0,
            (Work::Mixed(benchmark), field) => Work::Benchmark(*benchmark).heeds(field),
            (Work::Benchmark(benchmark), "radix") => matches!(
                benchmark.operation,
                Operation::Barrier(Barrier::Tree { .. })
                    | Operation::Broadcast(Broadcast::Tree { .. })
                    | Operation::Reduce(Reduce::Tree { .. } | Reduce::Segmented { .. })
                    | Operation::Gather(Gather::Tree { .. })
                    | Operation::Scatter(Scatter::Tree { .. })
            ),
            (Work::Benchmark(benchmark), "neighbours") => {
                matches!(benchmark.operation, Operation::Neighbours(Neighbours::Drawn { .. }))
            }
            // Where there is a root the time is that of the last process.
            (Work::Benchmark(_), "repetitions_per_root") => self.time_of() == TimeOf::LastProcess,
            (Work::Benchmark(benchmark), "bytes") => !matches!(benchmark.operation, Operation::Barrier(_)),
            (Work::Benchmark(_), field) => matches!(field, "form" | "repetitions" | "longer" | "warm_up" | "active"),
        }
    }

    /// The time of a run of this work in microseconds: per repetition where it is repeated, else that of all messages.
    #[must_use]
    pub fn time(&self, outcome: &Outcome) -> f64 {
        let times: Vec<f64> = outcome.samples_of("time").map(|sample| sample.value).collect();
        match self.time_of() {
            TimeOf::AllProcesses => times.iter().sum::<f64>() / times.len().max(1) as f64,
            // Phases note the time of each of their operations alone.
            TimeOf::LastProcess if times.is_empty() => outcome.time.microseconds(),
            TimeOf::LastProcess => times.into_iter().fold(0.0, f64::max),
        }
    }

    /// Runs it. Every process that takes part records its time in microseconds as the sample `time`.
    ///
    /// # Errors
    /// As a simulation fails.
    pub fn run(&self, config: SimulationConfig) -> Result<Outcome, SimulationError> {
        self.simulation(config)?.run()
    }

    /// The simulation that does it.
    ///
    /// # Errors
    /// If the configuration makes no sense.
    pub fn simulation(&self, config: SimulationConfig) -> Result<Simulation, SimulationError> {
        match self {
            Work::Benchmark(benchmark) => Simulation::new(config, benchmark),
            Work::Traffic { pattern, messages, bytes, window } => {
                let traffic = Traffic::new(*pattern, config.size(), *messages, config.seed);
                Simulation::new(config, &Timed::Traffic(traffic, *bytes, *window))
            }
            Work::Mixed(benchmark) => Simulation::new(config, &Mixed(*benchmark)),
            Work::Nas(nas, is_own_clock) => Simulation::new(config, &Timed::Nas(*nas, *is_own_clock)),
            Work::Phases(sizes) => {
                let phases = sizes.phases();
                let program = move |task: Task| {
                    let phases = phases.clone();
                    async move { phases.run(&Communicator::world(&task)).await }
                };
                Simulation::new(config, &program)
            }
            Work::Trace(text) => {
                let trace = Trace::parse(text).map_err(|error| SimulationError::Setup(error.to_string()))?;
                Simulation::new(config, &Timed::Trace(trace))
            }
        }
    }

    /// The program as a trace in GOAL, without the barrier before the clock starts.
    ///
    /// # Errors
    /// If what a process does depends on what others do.
    pub fn goal(&self, config: &SimulationConfig) -> Result<String, String> {
        let size = config.size();
        match self {
            Work::Benchmark(benchmark) => write_goal(benchmark, size),
            Work::Traffic { pattern, messages, bytes, window } => {
                let traffic = Traffic::new(*pattern, size, *messages, config.seed);
                write_goal(&Timed::Traffic(traffic, *bytes, *window), size)
            }
            Work::Mixed(benchmark) => write_goal(&Mixed(*benchmark), size),
            Work::Phases(sizes) => {
                let phases = sizes.phases();
                let program = move |task: Task| {
                    let phases = phases.clone();
                    async move { phases.run(&Communicator::world(&task)).await }
                };
                write_goal(&program, size)
            }
            Work::Nas(nas, _) => {
                let nas = *nas;
                write_goal(&move |task: Task| async move { nas.run(&Communicator::world(&task)).await }, size)
            }
            Work::Trace(text) => Ok(text.to_string()),
        }
    }
}

/// A program that does not measure its own time, so [`timed`] does.
#[derive(Clone)]
enum Timed {
    Traffic(Traffic, u64, usize),
    Nas(Nas, bool),
    Trace(Trace),
}

impl Program for Timed {
    fn start(&self, task: Task) -> Run {
        Box::pin(timed(self.clone(), task))
    }
}

/// What every process of a NAS benchmark notes of the whole run where the benchmark has its own clock.
const NOTED_OF_NAS: [(&str, Counter); 3] = [
    ("eager", Counter::MessagesEager),
    ("rendezvous", Counter::MessagesRendezvous),
    ("credits", Counter::CreditPackets),
];

async fn timed(work: Timed, task: Task) {
    let world = Communicator::world(&task);
    barrier(&world, Barrier::Dissemination).await;
    let begin = task.now();
    let mut by_own_clock = None;
    match work {
        Timed::Traffic(traffic, bytes, window) => traffic.run(&world, bytes, window).await,
        Timed::Nas(nas, true) => by_own_clock = Some(nas.timed(&world).await),
        Timed::Nas(nas, false) => nas.run(&world).await,
        Timed::Trace(trace) => trace.replay(&task).await,
    }
    let time = by_own_clock.unwrap_or_else(|| task.now().since(begin));
    task.record("time", 0, time.microseconds());
    if by_own_clock.is_some() {
        for (label, counter) in NOTED_OF_NAS {
            task.record(label, 0, task.counter(counter).await as f64);
        }
    }
}
