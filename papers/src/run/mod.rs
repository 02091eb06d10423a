//! [`Case`]: what is run for a point of a figure, as its file describes it; and which code did it.
//!
//! What a case, a seed and some noise give depends on the simulator and on this folder, and on nothing else in this
//! crate: `build.rs` relies on that.

use tidegate_bulk::Settings;
use tidegate_sim::bulk_machine::{self, BulkPattern};
use tidegate_sim::cycle::all_to_all::{AllToAll, Plan, Sizes};
use tidegate_sim::cycle::{Settled, Throughput};
use tidegate_sim::run_spec::{BulkSpec, Fabric, RunSpec, Scenario, ScenarioError, Work};
use tidegate_sim::workload::nas::Benchmark;
use tidegate_sim::workload::{Pattern, Traffic};
use tidegate_sim::{
    Bulk, Carried, FlowChoice, Measurement, Noise, Outcome, RunKey, Sample, SimulationConfig, SimulationError, Stop,
};

/// The fingerprint of the code that decides what runs give.
pub const CODE: &str = env!("TIDEGATE_PAPERS_CODE");

/// What some processes of pairs note: the time of one that is not slow, and whose partner is not.
pub(crate) const TIME_OF_BYSTANDER: &str = "time of a bystander";

#[derive(Clone)]
pub(crate) struct Case {
    spec: RunSpec,
    /// What decides it, all fields of the simulation, without seed.
    key: String,
    pub text: String,
}

impl Case {
    /// The run with these fields, by section.
    pub fn of_fields(fields: &toml::Table) -> Result<Self, ScenarioError> {
        let spec = RunSpec::of_point(&fields.to_string())?;
        let text = fields.to_string().lines().filter(|line| !line.is_empty()).collect::<Vec<_>>().join(", ");
        Ok(Case { key: key(&spec), text, spec })
    }

    /// What tells it with this seed and this noise from other runs. Noise is nothing to runs without processes.
    pub fn run_key(&self, seed: u64, noise: Noise) -> RunKey {
        let Noise { interval, duration } = if self.has_processes() { noise } else { Noise::default() };
        RunKey { case: self.key.clone(), seed, noise_interval_ps: interval.0, noise_duration_ps: duration.0 }
    }

    /// About how many seconds it takes on a usual machine, by what a message, packet or unit took in the mean of the
    /// runs behind the published results. Single runs take up to three times as long, or a third of it.
    pub fn seconds(&self) -> f64 {
        match &self.spec {
            RunSpec::Job(job) => messages(job) * (5e-6 + 25e-9 * f64::from(job.config.size())),
            RunSpec::Fabric(Fabric { exchange: Some(plan), .. }) => 0.4e-6 * packets(plan),
            RunSpec::Fabric(fabric) => {
                0.8e-6 * f64::from(fabric.machine.layout.nodes()) * f64::from(fabric.windows.cycles)
            }
            RunSpec::Bulk(bulk) => 3.4e-6 * units(bulk),
        }
    }

    pub fn has_processes(&self) -> bool {
        matches!(self.spec, RunSpec::Job(_))
    }

    pub fn flow(&self) -> Option<FlowChoice> {
        match &self.spec {
            RunSpec::Job(job) => Some(job.config.flow),
            RunSpec::Fabric(_) | RunSpec::Bulk(_) => None,
        }
    }

    pub fn measure(&self, seed: u64, noise: Noise) -> Result<Measurement, SimulationError> {
        match &self.spec {
            RunSpec::Job(job) => measure_job(job, seed, noise),
            RunSpec::Fabric(fabric) => measure_fabric(fabric, seed),
            RunSpec::Bulk(bulk) => measure_bulk(bulk, seed),
        }
    }
}

/// All that decides a run, but for its seed.
fn key(spec: &RunSpec) -> String {
    match spec {
        RunSpec::Job(job) => format!("{:?} {:?}", SimulationConfig { seed: 0, ..job.config.clone() }, job.work),
        RunSpec::Fabric(Fabric { machine, windows, exchange, .. }) => match exchange {
            Some(plan) => format!("{:?}", Plan { seed: 0, ..*plan }),
            None => format!("{:?} {windows:?}", tidegate_sim::cycle::Machine { seed: 0, ..*machine }),
        },
        RunSpec::Bulk(BulkSpec { machine, job, .. }) => format!("{machine:?} {job:?}"),
    }
}

fn measure_job(job: &Scenario, seed: u64, noise: Noise) -> Result<Measurement, SimulationError> {
    let own = job.config.noise;
    let noise = if own == Noise::default() { noise } else { own };
    let config = SimulationConfig { seed, noise, ..job.config.clone() };
    let size = config.size();
    let mut outcome = job.work.run(config)?;
    if let Work::Traffic { pattern: Pattern::Pairs, messages, .. } = job.work {
        note_bystanders(&mut outcome, &Traffic::new(Pattern::Pairs, size, messages, seed));
    }
    Ok(Measurement::of_cluster(&outcome, repetitions(&job.work)))
}

/// Pairs have nothing to do with each other, so what those take that nobody slow belongs to is worth knowing.
fn note_bystanders(outcome: &mut Outcome, traffic: &Traffic) {
    let is_slow = |rank: u32| outcome.processes[rank as usize].is_slow;
    let stands_by = |sample: &&Sample| {
        let partner = traffic.destinations(sample.rank.0).first();
        !is_slow(sample.rank.0) && partner.is_some_and(|&partner| !is_slow(partner))
    };
    let bystanders = outcome.samples_of("time").filter(stands_by);
    let noted: Vec<_> = bystanders.map(|sample| Sample { label: TIME_OF_BYSTANDER, ..sample.clone() }).collect();
    outcome.samples.extend(noted);
}

/// How often in all, warm-up included, what is timed is done: of a pingpong that is half a round trip, so twice in each
/// repetition.
fn repetitions(work: &Work) -> u32 {
    match work {
        Work::Benchmark(benchmark) | Work::Mixed(benchmark) => {
            let timed = 1 + u32::from(benchmark.operation.is_there_and_back());
            timed * (benchmark.warm_up + benchmark.repetitions)
        }
        _ => 1,
    }
}

/// About how many messages the processes of a job send, all together.
fn messages(job: &Scenario) -> f64 {
    let processes = job.config.size();
    match &job.work {
        Work::Benchmark(benchmark) | Work::Mixed(benchmark) => {
            let active = benchmark.active.unwrap_or(processes);
            benchmark.operation.messages(active) * f64::from(repetitions(&job.work))
        }
        Work::Traffic { messages, .. } => f64::from(processes) * f64::from(*messages),
        Work::Nas(nas, _) => {
            let of_each = match nas.benchmark {
                Benchmark::Is | Benchmark::Ft => 2 * processes,
                Benchmark::Lu => 2000,
                Benchmark::Cg => 250,
                Benchmark::Mg => 200,
                Benchmark::Bt | Benchmark::Sp => 72,
            };
            f64::from(processes) * f64::from(of_each) * f64::from(nas.iterations() + 1)
        }
        Work::Phases(phases) => {
            phases.sizes.iter().map(|active| f64::from(*active).powi(2) * f64::from(phases.repetitions)).sum()
        }
        Work::Trace(text) => text.len() as f64 / 20.0,
    }
}

fn measure_fabric(fabric: &Fabric, seed: u64) -> Result<Measurement, SimulationError> {
    if let Some(plan) = fabric.exchange {
        let plan = Plan { seed, settings: Settings { seed, ..plan.settings }, ..plan };
        let done = AllToAll::run(&plan).map_err(|error| SimulationError::Setup(error.to_string()))?;
        return Ok(Measurement { exchange: Some(done), ..Measurement::default() });
    }
    let machine = tidegate_sim::cycle::Machine { seed, ..fabric.machine };
    let found = Throughput::measure(&machine, fabric.windows);
    let found = found.map_err(|error| SimulationError::Setup(error.to_string()))?;
    let stop = |Settled { windows, rate }| Stop { windows, rate };
    let (at_five_percent, cumulative) = (found.at_five_percent.map(stop), found.cumulative.map(stop));
    let Throughput { healthy, has_settled, latency, diverted, credit_packets, choices, cycles, hops, windows, .. } =
        found;
    let carried = Carried {
        healthy,
        has_settled,
        at_five_percent,
        cumulative,
        latency,
        diverted,
        credit_packets,
        choices,
        cycles,
        hops,
        windows,
    };
    Ok(Measurement { carried: Some(carried), ..Measurement::default() })
}

fn measure_bulk(bulk: &BulkSpec, seed: u64) -> Result<Measurement, SimulationError> {
    let found = bulk_machine::run(&bulk.machine, &bulk.job, seed)?;
    let bulk = Bulk {
        bandwidth: found.bandwidth,
        requests: found.requests,
        denials: found.denials,
        senders_most: found.senders_most,
        sending: found.sending,
        receiving: found.receiving,
        busy: found.busy,
    };
    Ok(Measurement { time: found.end.microseconds(), bulk: Some(bulk), ..Measurement::default() })
}

fn packets(plan: &Plan) -> f64 {
    let nodes = f64::from(plan.layout.nodes());
    let per_node = match plan.sizes {
        Sizes::Uniform(bytes) | Sizes::Random(bytes) | Sizes::Skewed(bytes) => nodes * bytes as f64,
        Sizes::Shifts { rounds: count, bytes } | Sizes::Sparse { receivers: count, bytes } => {
            f64::from(count) * bytes as f64
        }
    };
    nodes * per_node / f64::from(plan.flit_bytes)
}

/// About how many units a job of bulk transfers has.
fn units(bulk: &BulkSpec) -> f64 {
    let nodes = f64::from(bulk.machine.shape.nodes());
    let blocks = match bulk.job.pattern {
        BulkPattern::CyclicShift { passes } => (nodes - 1.0) * f64::from(passes),
        BulkPattern::Random { blocks } => f64::from(blocks),
        BulkPattern::Partners { .. } | BulkPattern::OneWay { .. } => 1.0,
    };
    nodes * blocks * (2.0 + (bulk.job.block_bytes as f64 / f64::from(bulk.machine.unit_bytes)).ceil())
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_decides_runs_uses_nothing_else_of_this_crate() {
        for line in include_str!("mod.rs").split("#[cfg(test)]").take(1).flat_map(str::lines) {
            assert!(!line.contains("crate::") && !line.contains("super::"), "`{line}`");
        }
    }
}
