//! [`Case`]: what is run for a point of a figure, as its file describes it.

use std::fmt;

use tidegate_bulk::Settings;
use tidegate_sim::bulk_machine::{self, BulkPattern};
use tidegate_sim::cycle::all_to_all::{AllToAll, Plan, Sizes};
use tidegate_sim::cycle::{Settled, Throughput};
use tidegate_sim::run_spec::{BulkSpec, Fabric, RunSpec, Scenario, ScenarioError, Work};
use tidegate_sim::workload::nas::{Benchmark, Nas};
use tidegate_sim::workload::{Pattern, Traffic};
use tidegate_sim::{
    Bulk, Carried, FlowChoice, Measurement, Noise, Outcome, RunKey, Sample, SimulationConfig, SimulationError, Stop,
};

/// What some processes of pairs note: the time of one that is not slow, and whose partner is not.
pub(crate) const TIME_OF_BYSTANDER: &str = "time of a bystander";

/// A run that a figure's file describes.
#[derive(Clone)]
pub(crate) struct Case {
    spec: RunSpec,
    /// What decides it, all fields of the simulation, without seed.
    key: String,
    /// The fields that the file gives.
    text: String,
}

impl Case {
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
        Ok(Case { key: key(&spec), text: text.collect::<Vec<_>>().join(", "), spec })
    }

    /// All that decides it, but for its seed.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What tells it with this seed and this noise from other runs. Noise is nothing to runs without processes.
    pub fn run_key(&self, seed: u64, noise: Noise) -> RunKey {
        let Noise { interval, duration } = if self.has_processes() { noise } else { Noise::default() };
        RunKey { case: self.key.clone(), seed, noise_interval_ps: interval.0, noise_duration_ps: duration.0 }
    }

    /// How long one of the messages of [`size`](Self::size) takes on a usual machine, in seconds: means of the runs
    /// behind the published results. In jobs it grows with the processes, whose memory no longer fits into caches.
    /// Single runs take up to three times as long, or a third of it.
    pub fn seconds_per_message(&self) -> f64 {
        match &self.spec {
            RunSpec::Job(job) => 5e-6 + 25e-9 * f64::from(job.config.size()),
            RunSpec::Fabric(Fabric { exchange: Some(_), .. }) => 0.4e-6,
            RunSpec::Fabric(_) => 0.8e-6,
            RunSpec::Bulk(_) => 3.4e-6,
        }
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
            RunSpec::Bulk(bulk) => measure_bulk(bulk, seed),
        }
    }

    /// About how many messages are sent, or what else takes time.
    pub fn size(&self) -> f64 {
        match &self.spec {
            RunSpec::Job(job) => messages(job),
            RunSpec::Fabric(fabric) => {
                let nodes = f64::from(fabric.machine.layout.nodes());
                fabric.exchange.as_ref().map_or(nodes * f64::from(fabric.windows.cycles), packets)
            }
            RunSpec::Bulk(bulk) => units(bulk),
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
        let plan = Plan { seed, settings: Settings { seed, ..plan.settings }, ..plan };
        let done = AllToAll::run(&plan).map_err(|error| SimulationError::Setup(error.to_string()))?;
        return Ok(Measurement { exchange: Some(done), ..Measurement::default() });
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

/// About how many packets an exchange has.
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
        BulkPattern::CyclicShift { passes } => nodes * (nodes - 1.0) * f64::from(passes),
        BulkPattern::Random { blocks } => nodes * f64::from(blocks),
        BulkPattern::Partners { .. } => nodes,
        BulkPattern::OneWay { .. } => 1.0,
    };
    blocks * (2.0 + (bulk.job.block_bytes as f64 / f64::from(bulk.machine.unit_bytes)).ceil())
}

/// About how many messages the processes of a NAS benchmark send, all together.
fn messages_of_nas(nas: &Nas, processes: u32) -> f64 {
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

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)
    }
}

impl PartialEq for Case {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Case {}
