//! Programs of cases beside those of [`Operation`](tidegate_sim::workload::Operation): NAS benchmarks and patterns
//! of traffic.
//!
//! Each begins with a barrier; then every process records its time in microseconds as the sample `time`.

use std::fmt;

use tidegate_message::Counter;
use tidegate_sim::workload::collective::{Barrier, barrier};
use tidegate_sim::workload::nas::{Benchmark, Class, Nas, Variation};
use tidegate_sim::workload::{Communicator, Pattern, Traffic};
use tidegate_sim::{Outcome, Sample, Simulation, SimulationConfig, SimulationError, Task};

/// A NAS benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NasRun {
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
    pub fn nas(&self) -> Nas {
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
        messages_of_nas(&self.nas(), processes)
    }
}

/// About how many messages so many processes send in a NAS benchmark.
pub(crate) fn messages_of_nas(nas: &Nas, processes: u32) -> f64 {
    let all = f64::from(processes);
    let of_each = match nas.benchmark {
        Benchmark::Is | Benchmark::Ft => 2.0 * all,
        Benchmark::Lu => 2000.0,
        Benchmark::Cg => 250.0,
        Benchmark::Mg => 200.0,
        Benchmark::Bt | Benchmark::Sp => 72.0,
    };
    all * of_each * f64::from(nas.iterations() + 1)
}

impl fmt::Display for NasRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}, {} Mop/s", self.benchmark.name(), self.class, self.rate)?;
        self.iterations.map_or(Ok(()), |iterations| write!(f, ", {iterations} iterations"))?;
        if self.variation == Variation::AsPublished { Ok(()) } else { write!(f, ", {:?}", self.variation) }
    }
}

/// The time of a process that is not slow, and whose partner is not, noted where they are pairs.
pub(crate) const TIME_OF_BYSTANDER: &str = "time of a bystander";

/// Messages of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PatternRun {
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
        let of_all = traffic.clone();
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
        let mut outcome = Simulation::new(config, &program)?.run()?;
        // Pairs have nothing to do with each other, so what those take that nobody slow belongs to is worth knowing.
        if pattern == Pattern::Pairs {
            let is_slow = |rank: u32| outcome.processes[rank as usize].is_slow;
            let stands_by = |sample: &&Sample| {
                let partner = of_all.destinations(sample.rank.0).first();
                !is_slow(sample.rank.0) && partner.is_some_and(|&partner| !is_slow(partner))
            };
            let bystanders = outcome.samples_of("time").filter(stands_by);
            let noted: Vec<_> =
                bystanders.map(|sample| Sample { label: TIME_OF_BYSTANDER, ..sample.clone() }).collect();
            outcome.samples.extend(noted);
        }
        Ok(outcome)
    }
}

impl fmt::Display for PatternRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PatternRun { pattern, messages, bytes, window } = self;
        write!(f, "{pattern:?}, {messages} messages of {bytes} bytes each, {window} under way")
    }
}
