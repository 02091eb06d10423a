//! [`SpecRun`]: a case that is written in a figure's file, as `tidegate sim` reads it.

use std::fmt;

use tidegate_sim::cycle::{Settled, Throughput};
use tidegate_sim::run_spec::{BulkSpec, Fabric, RunSpec, Scenario, ScenarioError, Work};
use tidegate_sim::workload::{Pattern, Traffic};
use tidegate_sim::{Carried, FlowChoice, Measurement, Noise, Outcome, Sample, SimulationConfig, SimulationError, Stop};

use crate::run::bulk_run::BulkRun;
use crate::run::exchange_run::ExchangeRun;
use crate::run::program::{TIME_OF_BYSTANDER, messages_of_nas};

/// A run of a figure's file.
#[derive(Clone)]
pub(crate) struct SpecRun {
    spec: RunSpec,
    /// What decides it, all fields of the simulation, without seed.
    key: String,
    /// The fields that the file gives.
    text: String,
}

impl SpecRun {
    /// The run with these fields, each a section, a name and a value.
    ///
    /// # Errors
    /// If they describe none.
    pub fn of_fields(fields: &[(String, String, String)]) -> Result<Self, ScenarioError> {
        let mut sections: Vec<&str> = fields.iter().map(|(section, ..)| section.as_str()).collect();
        sections.dedup();
        let mut toml = String::new();
        for section in sections {
            toml.push_str(&format!("[{section}]\n"));
            for (_, name, value) in fields.iter().filter(|(of, ..)| of == section) {
                toml.push_str(&format!("{name} = {value:?}\n"));
            }
        }
        let spec = RunSpec::of_point(&toml)?;
        let text = fields.iter().map(|(section, name, value)| format!("{section}.{name} = {value}"));
        Ok(SpecRun { key: key(&spec), text: text.collect::<Vec<_>>().join(", "), spec })
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn has_processes(&self) -> bool {
        matches!(self.spec, RunSpec::Job(_))
    }

    /// The flow control of a job.
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
            RunSpec::Bulk(BulkSpec { machine, job, .. }) => BulkRun { machine: *machine, job: *job }.measure(seed),
        }
    }

    /// About how many messages are sent, or what else takes time.
    pub fn size(&self) -> f64 {
        match &self.spec {
            RunSpec::Job(job) => messages(job),
            RunSpec::Fabric(fabric) => {
                let nodes = f64::from(fabric.machine.layout.nodes());
                fabric.exchange.map_or(nodes * f64::from(fabric.windows.cycles), |plan| ExchangeRun(plan).size())
            }
            RunSpec::Bulk(BulkSpec { machine, job, .. }) => BulkRun { machine: *machine, job: *job }.size(),
        }
    }

    /// What is alike in runs that take about as long for the same size.
    pub fn kind(&self) -> String {
        match &self.spec {
            RunSpec::Job(job) => {
                let flow = match job.config.flow {
                    FlowChoice::Unlimited => "reference".to_owned(),
                    FlowChoice::Mailbox { scheme, .. } | FlowChoice::Posted { scheme, .. } => scheme.to_string(),
                };
                format!("{}, {flow}", job.work.name())
            }
            RunSpec::Fabric(fabric) => {
                let exchange = fabric.exchange.map_or("load".to_owned(), |plan| plan.algorithm.to_string());
                format!("{exchange}, {:?}, {} channels", fabric.machine.routing, fabric.machine.parameters.channels)
            }
            RunSpec::Bulk(bulk) => format!("{}, {}", bulk.machine.name, bulk.job.technique),
        }
    }
}

/// All that decides a run, but for its seed.
fn key(spec: &RunSpec) -> String {
    match spec {
        RunSpec::Job(job) => key_of_job(&job.config, &job.work),
        RunSpec::Fabric(Fabric { machine, windows, exchange, .. }) => match exchange {
            Some(plan) => format!("{:?}", tidegate_sim::cycle::all_to_all::Plan { seed: 0, ..*plan }),
            None => format!("{:?} {windows:?}", tidegate_sim::cycle::Machine { seed: 0, ..*machine }),
        },
        RunSpec::Bulk(BulkSpec { machine, job, .. }) => format!("{machine:?} {job:?}"),
    }
}

/// The same of a job.
pub(crate) fn key_of_job(config: &SimulationConfig, work: &Work) -> String {
    format!("{:?} {work:?}", SimulationConfig { seed: 0, ..config.clone() })
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

fn messages(job: &Scenario) -> f64 {
    let processes = job.config.size();
    match &job.work {
        Work::Benchmark(benchmark) | Work::Mixed(benchmark) => {
            let active = benchmark.active.unwrap_or(processes);
            benchmark.operation.messages(active) * f64::from(repetitions(&job.work))
        }
        Work::Traffic { messages, .. } => f64::from(processes) * f64::from(*messages),
        Work::Nas(nas, _) => messages_of_nas(nas, processes),
        Work::Phases(phases) => {
            let of = |&active: &u32| f64::from(active) * f64::from(active) * f64::from(phases.repetitions);
            phases.sizes.iter().map(of).sum()
        }
        Work::Trace(text) => text.len() as f64 / 20.0,
    }
}

fn measure_fabric(fabric: &Fabric, seed: u64) -> Result<Measurement, SimulationError> {
    if let Some(plan) = fabric.exchange {
        return ExchangeRun(plan).measure(seed);
    }
    let machine = tidegate_sim::cycle::Machine { seed, ..fabric.machine };
    let found =
        Throughput::measure(&machine, fabric.windows).map_err(|error| SimulationError::Setup(error.to_string()))?;
    let stop = |Settled { windows, rate }| Stop { windows, rate };
    let carried = Carried {
        healthy: found.healthy,
        has_settled: found.has_settled,
        at_five_percent: found.at_five_percent.map(stop),
        cumulative: found.cumulative.map(stop),
        latency: found.latency,
        diverted: found.diverted,
        credit_packets: found.credit_packets,
        cycles: found.cycles,
        hops: found.hops,
        windows: found.windows,
    };
    Ok(Measurement { carried: Some(carried), ..Measurement::default() })
}

impl fmt::Display for SpecRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for SpecRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)
    }
}

impl PartialEq for SpecRun {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for SpecRun {}
