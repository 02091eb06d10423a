//! Programs of cases beside those of [`Operation`](super::Operation): NAS benchmarks and patterns of traffic.
//!
//! Each begins with a barrier; then every process records its time in microseconds as the sample `time`.

use std::fmt;

use tidegate_message::Counter;

use crate::config::{SimulationConfig, SimulationError};
use crate::outcome::Outcome;
use crate::simulation::Simulation;
use crate::task::Task;
use crate::workload::collective::{Barrier, barrier};
use crate::workload::nas::{Benchmark, Class, Nas, Variation};
use crate::workload::{Communicator, Pattern, Traffic};

/// A NAS benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NasRun {
    pub benchmark: Benchmark,
    pub class: Class,
    /// Iterations that count; `None`: as many as the class has.
    pub iterations: Option<u32>,
    /// Millions of operations that a process does in a second.
    pub rate: u32,
    /// What is changed.
    pub variation: Variation,
}

impl NasRun {
    fn nas(&self) -> Nas {
        let NasRun { benchmark, class, iterations, rate, variation } = *self;
        Nas { benchmark, class, iterations, rate: f64::from(rate), variation }
    }

    /// Runs it. The time is that of the benchmark's own clock. Every process also notes how many messages it sent in
    /// the whole run: by `eager`, `rendezvous` and `credits`.
    pub fn run(&self, config: SimulationConfig) -> Result<Outcome, SimulationError> {
        let nas = self.nas();
        nas.check(config.size()).map_err(SimulationError::Setup)?;
        let program = move |task: Task| async move {
            let world = Communicator::world(&task);
            barrier(&world, Barrier::Dissemination).await;
            let time = nas.timed(&world).await;
            task.record("time", 0, time.microseconds());
            let counters = [
                ("eager", Counter::MessagesEager),
                ("rendezvous", Counter::MessagesRendezvous),
                ("credits", Counter::CreditPackets),
            ];
            for (label, counter) in counters {
                task.record(label, 0, task.counter(counter).await as f64);
            }
        };
        Simulation::new(config, &program)?.run()
    }

    /// About how many messages so many processes send.
    pub fn messages(&self, processes: u32) -> f64 {
        let all = f64::from(processes);
        let of_each = match self.benchmark {
            Benchmark::Is | Benchmark::Ft => 2.0 * all,
            Benchmark::Lu => 2000.0,
            Benchmark::Cg => 250.0,
            Benchmark::Mg => 200.0,
            Benchmark::Bt | Benchmark::Sp => 72.0,
        };
        all * of_each * f64::from(self.nas().iterations() + 1)
    }
}

impl fmt::Display for NasRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}, {} Mop/s", self.benchmark.name(), self.class, self.rate)?;
        self.iterations.map_or(Ok(()), |iterations| write!(f, ", {iterations} iterations"))?;
        if self.variation == Variation::AsPublished { Ok(()) } else { write!(f, ", {:?}", self.variation) }
    }
}

/// Messages of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PatternRun {
    pub pattern: Pattern,
    /// Of each process.
    pub messages: u32,
    pub bytes: u64,
    /// Messages of a process under way at most.
    pub window: u32,
}

impl PatternRun {
    pub fn run(&self, config: SimulationConfig) -> Result<Outcome, SimulationError> {
        let PatternRun { pattern, messages, bytes, window } = *self;
        let traffic = Traffic::new(pattern, config.size(), messages, config.seed);
        let program = move |task: Task| {
            let traffic = traffic.clone();
            async move {
                let world = Communicator::world(&task);
                barrier(&world, Barrier::Dissemination).await;
                let begin = task.now();
                traffic.run(&world, bytes, window as usize).await;
                task.record("time", 0, task.now().since(begin).microseconds());
            }
        };
        Simulation::new(config, &program)?.run()
    }
}

impl fmt::Display for PatternRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PatternRun { pattern, messages, bytes, window } = self;
        write!(f, "{pattern:?}, {messages} messages of {bytes} bytes each, {window} under way")
    }
}
