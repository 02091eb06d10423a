//! [`Case`]: what is run for a point of a figure.

use std::fmt;
use std::ops::Range;

use tidegate_flow::{Buffers, SchemeName};
use tidegate_sim::topology::Topology;
use tidegate_sim::workload::collective::Alltoall;
use tidegate_sim::workload::{Benchmark, Mixed, Operation};
use tidegate_sim::workload::{Communicator, Phase, Phases};
use tidegate_sim::{
    FlowChoice, Measurement, NodeId, Noise, Outcome, RunKey, Simulation, SimulationConfig, SimulationError, Task, Time,
};

use crate::run::bulk_run::BulkRun;
use crate::run::exchange_run::ExchangeRun;
use crate::run::fabric_run::FabricRun;
use crate::run::machine::{Cluster, Grove, Machine};
use crate::run::program::{NasRun, PatternRun};
use crate::run::spec_run::{SpecRun, key_of_job};
#[cfg(doc)]
use tidegate_sim::Cost;

/// Phases as a case holds them, to be shared between threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PhaseSizes {
    /// Processes of each phase.
    pub sizes: Vec<u32>,
    /// All-to-alls of a phase.
    pub repetitions: u32,
    pub bytes: u64,
    /// Rank 0's credits towards these ranks are noted.
    pub watched: [Range<u32>; 3],
}

impl PhaseSizes {
    /// The program.
    pub fn phases(&self) -> Phases {
        let phase = |&active: &u32| Phase { active, operations: self.repetitions };
        Phases {
            phases: self.sizes.iter().map(phase).collect(),
            block: self.bytes,
            form: Alltoall::Plain,
            watched: self.watched.clone().into(),
        }
    }
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    Benchmark(Benchmark),
    /// A benchmark amid a program that has exchanged messages of so many packets before.
    Amid(Benchmark, u32),
    /// An all-to-all after whose warm-up each pair exchanges messages of random lengths ([`Mixed`]).
    Mixed(Benchmark),
    Phases(PhaseSizes),
    Nas(NasRun),
    Pattern(PatternRun),
    /// A network under load, without processes; of the rest of the case nothing counts.
    Fabric(FabricRun),
    /// An exchange of all nodes of such a network.
    Exchange(ExchangeRun),
    /// A job on a machine of B's; of the rest of the case nothing counts.
    Bulk(BulkRun),
    /// A run that a figure's file describes; of the rest of the case nothing counts.
    Spec(Box<SpecRun>),
}

/// Processes of a node of the machine of P.
const PROCESSES_PER_NODE: u32 = 16;

/// One run, on the machine of P or another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    /// Sizes of the mesh; empty on a cluster.
    pub mesh: Vec<u16>,
    /// The nodes that run processes, if not all do.
    pub nodes: Option<Vec<u32>>,
    pub flow: FlowChoice,
    pub workload: Workload,
    pub intra_node_path: bool,
    /// Whether processors need no time for credits ([`Cost::with_free_credits`]).
    pub free_credits: bool,
    pub machine: Machine,
    /// When a run is ended if its programs have not ended before, in microseconds; not on the machine of P.
    pub time_most_us: Option<u32>,
}

impl Case {
    /// A benchmark on all nodes of a mesh.
    pub fn new(mesh: &[u16], flow: FlowChoice, benchmark: Benchmark) -> Self {
        let workload = Workload::Benchmark(benchmark);
        let (intra_node_path, free_credits) = (false, false);
        Case {
            mesh: mesh.to_vec(),
            nodes: None,
            flow,
            workload,
            intra_node_path,
            free_credits,
            machine: Machine::Extoll,
            time_most_us: None,
        }
    }

    /// A program on a cluster.
    pub fn on_cluster(cluster: Cluster, flow: FlowChoice, workload: Workload) -> Self {
        let (intra_node_path, free_credits, machine) = (false, false, Machine::Cluster(cluster));
        let (mesh, nodes, time_most_us) = (Vec::new(), None, None);
        Case { mesh, nodes, flow, workload, intra_node_path, free_credits, machine, time_most_us }
    }

    /// A program on a dragonfly.
    pub fn on_dragonfly(grove: Grove, flow: FlowChoice, workload: Workload) -> Self {
        Case { machine: Machine::Dragonfly(grove), ..Case::on_cluster(Cluster::of_l(1), flow, workload) }
    }

    /// A network under load.
    pub fn of_fabric(fabric: FabricRun) -> Self {
        Case::without_processes(Workload::Fabric(fabric))
    }

    /// An exchange of all nodes of a network.
    pub fn of_exchange(exchange: ExchangeRun) -> Self {
        Case::without_processes(Workload::Exchange(exchange))
    }

    /// A job on a machine of B's.
    pub fn of_bulk(bulk: BulkRun) -> Self {
        Case::without_processes(Workload::Bulk(bulk))
    }

    /// A run of a figure's file.
    pub fn of_spec(spec: SpecRun) -> Self {
        Case::without_processes(Workload::Spec(Box::new(spec)))
    }

    fn without_processes(workload: Workload) -> Self {
        Case {
            mesh: Vec::new(),
            nodes: None,
            flow: FlowChoice::Unlimited,
            workload,
            intra_node_path: false,
            free_credits: false,
            machine: Machine::Extoll,
            time_most_us: None,
        }
    }

    /// The flow control of a job that a figure's file describes.
    pub fn flow_of_spec(&self) -> Option<FlowChoice> {
        match &self.workload {
            Workload::Spec(spec) => spec.flow(),
            _ => None,
        }
    }

    /// Whether there are processes, which noise can interrupt.
    pub fn has_processes(&self) -> bool {
        match &self.workload {
            Workload::Spec(spec) => spec.has_processes(),
            Workload::Fabric(_) | Workload::Exchange(_) | Workload::Bulk(_) => false,
            _ => true,
        }
    }

    /// The same without flow control, in mailboxes without end: what overhead is measured against.
    pub fn reference(&self) -> Self {
        Case { flow: FlowChoice::Unlimited, free_credits: false, ..self.clone() }
    }

    /// The same with another benchmark; phases stay as they are.
    pub fn with_benchmark(self, change: impl FnOnce(Benchmark) -> Benchmark) -> Self {
        let workload = match self.workload {
            Workload::Benchmark(benchmark) => Workload::Benchmark(change(benchmark)),
            Workload::Amid(benchmark, packets) => Workload::Amid(change(benchmark), packets),
            Workload::Mixed(benchmark) => Workload::Mixed(change(benchmark)),
            other => other,
        };
        Case { workload, ..self }
    }

    /// What tells two cases apart. Where credits cost what they do, the key is that of runs that were kept before they
    /// could be free, and on the machine of P that of runs from when there was no other.
    pub fn key(&self) -> String {
        if let Workload::Spec(spec) = &self.workload {
            return spec.key().to_owned();
        }
        let usual = [", free_credits: false", ", machine: Extoll", ", time_most_us: None", ", variation: AsPublished"];
        usual.iter().fold(format!("{self:?}"), |key, usual| key.replace(usual, ""))
    }

    /// What tells this case with this seed and this noise from other runs. Noise is nothing to cases without processes.
    pub fn run_key(&self, seed: u64, noise: Noise) -> RunKey {
        let Noise { interval, duration } = if self.has_processes() { noise } else { Noise::default() };
        RunKey { case: self.key(), seed, noise_interval_ps: interval.0, noise_duration_ps: duration.0 }
    }

    pub fn measure(&self, seed: u64, noise: Noise) -> Result<Measurement, SimulationError> {
        match &self.workload {
            Workload::Fabric(fabric) => return fabric.measure(seed),
            Workload::Exchange(exchange) => return exchange.measure(seed),
            Workload::Bulk(bulk) => return bulk.measure(seed),
            Workload::Spec(spec) => return spec.measure(seed, noise),
            _ => {}
        }
        let config = SimulationConfig { seed, ..self.config(noise)? };
        let outcome = self.outcome(config)?;
        Ok(match self.machine {
            Machine::Extoll => Measurement::of(&outcome, self.repetitions()),
            Machine::Cluster(_) | Machine::Dragonfly(_) => Measurement::of_cluster(&outcome, self.repetitions()),
        })
    }

    /// Everything of a job but its program and its seed.
    fn config(&self, noise: Noise) -> Result<SimulationConfig, SimulationError> {
        let on_machine = match self.machine {
            Machine::Cluster(cluster) => Some(cluster.config(noise)?),
            Machine::Dragonfly(grove) => Some(grove.config(noise)?),
            Machine::Extoll => None,
        };
        if let Some(config) = on_machine {
            let mut config = SimulationConfig { flow: self.flow, ..config };
            if self.free_credits {
                config.cost = config.cost.with_free_credits();
            }
            if let Some(most) = self.time_most_us {
                config.time_most = Time::from_microseconds(most.into());
            }
            return Ok(config);
        }
        let topology = Topology::mesh(&self.mesh).map_err(|error| SimulationError::Setup(error.to_string()))?;
        let nodes = self.nodes.as_ref().map(|nodes| nodes.iter().map(|&node| NodeId(node)).collect());
        let amid_messages_of = match self.workload {
            Workload::Amid(_, packets) => Some(packets),
            _ => None,
        };
        let config = SimulationConfig::extoll(topology);
        let cost = if self.free_credits { config.cost.with_free_credits() } else { config.cost };
        Ok(SimulationConfig {
            cost,
            nodes,
            amid_messages_of,
            flow: self.flow,
            intra_node_path: self.intra_node_path,
            noise,
            ..config
        })
    }

    /// The key that the same run has as a file ([`SpecRun::key`]).
    pub fn spec_key(&self) -> Result<String, SimulationError> {
        use tidegate_sim::run_spec::{PhaseSizes as Sizes, Work};
        let work = match &self.workload {
            Workload::Spec(spec) => return Ok(spec.key().to_owned()),
            Workload::Fabric(fabric) => return Ok(fabric.spec_key()),
            Workload::Exchange(exchange) => return Ok(format!("{:?}", exchange.0)),
            Workload::Bulk(BulkRun { machine, job }) => return Ok(format!("{machine:?} {job:?}")),
            Workload::Benchmark(benchmark) | Workload::Amid(benchmark, _) => Work::Benchmark(*benchmark),
            Workload::Mixed(benchmark) => Work::Mixed(*benchmark),
            Workload::Phases(phases) => Work::Phases(Sizes {
                sizes: phases.sizes.clone(),
                repetitions: phases.repetitions,
                bytes: phases.bytes,
                watched: phases.watched.to_vec(),
            }),
            Workload::Nas(nas) => Work::Nas(nas.nas(), true),
            Workload::Pattern(PatternRun { pattern, messages, bytes, window }) => {
                Work::Traffic { pattern: *pattern, messages: *messages, bytes: *bytes, window: *window as usize }
            }
        };
        Ok(key_of_job(&self.config(Noise::default())?, &work))
    }

    /// Runs the program.
    fn outcome(&self, config: SimulationConfig) -> Result<Outcome, SimulationError> {
        match &self.workload {
            Workload::Nas(nas) => nas.run(config),
            Workload::Pattern(pattern) => pattern.run(config),
            Workload::Benchmark(benchmark) | Workload::Amid(benchmark, _) => Simulation::new(config, benchmark)?.run(),
            Workload::Mixed(benchmark) => Simulation::new(config, &Mixed(*benchmark))?.run(),
            Workload::Phases(sizes) => {
                let phases = sizes.phases();
                let program = move |task: Task| {
                    let phases = phases.clone();
                    async move { phases.run(&Communicator::world(&task)).await }
                };
                Simulation::new(config, &program)?.run()
            }
            Workload::Fabric(_) | Workload::Exchange(_) | Workload::Bulk(_) | Workload::Spec(_) => {
                Err(SimulationError::Setup("this machine runs no program".to_owned()))
            }
        }
    }

    /// How many processes there are.
    pub fn processes(&self) -> u32 {
        match &self.machine {
            Machine::Cluster(cluster) => return cluster.processes(),
            Machine::Dragonfly(grove) => return grove.processes(),
            Machine::Extoll => {}
        }
        let nodes = match &self.nodes {
            Some(nodes) => nodes.len() as u32,
            None => self.mesh.iter().map(|&size| u32::from(size)).product(),
        };
        PROCESSES_PER_NODE * nodes
    }

    /// About how many messages all processes send: what the time that a run takes is estimated from.
    pub fn messages(&self) -> f64 {
        let processes = self.processes();
        match &self.workload {
            Workload::Nas(nas) => nas.messages(processes),
            Workload::Pattern(pattern) => f64::from(processes) * f64::from(pattern.messages),
            Workload::Fabric(fabric) => fabric.size(),
            Workload::Exchange(exchange) => exchange.size(),
            Workload::Bulk(bulk) => bulk.size(),
            Workload::Spec(spec) => spec.size(),
            Workload::Benchmark(benchmark) | Workload::Mixed(benchmark) | Workload::Amid(benchmark, _) => {
                let active = benchmark.active.unwrap_or(processes);
                benchmark.operation.messages(active) * f64::from(self.repetitions())
            }
            Workload::Phases(phases) => {
                let of = |&active: &u32| f64::from(active) * f64::from(active) * f64::from(phases.repetitions);
                phases.sizes.iter().map(of).sum()
            }
        }
    }

    /// What is alike in cases that take about as long per message: operation and scheme.
    pub fn kind(&self) -> String {
        let operation = match &self.workload {
            Workload::Benchmark(benchmark) | Workload::Mixed(benchmark) | Workload::Amid(benchmark, _) => {
                benchmark.operation.to_string()
            }
            Workload::Phases(_) => "phases".to_owned(),
            Workload::Nas(nas) => nas.benchmark.name().to_owned(),
            Workload::Pattern(pattern) => format!("{:?}", pattern.pattern),
            Workload::Fabric(fabric) => return fabric.kind(),
            Workload::Exchange(exchange) => return exchange.kind(),
            Workload::Bulk(bulk) => return bulk.kind(),
            Workload::Spec(spec) => return spec.kind(),
        };
        match self.flow {
            FlowChoice::Unlimited => format!("{operation}, reference"),
            FlowChoice::Mailbox { scheme, .. } | FlowChoice::Posted { scheme, .. } => format!("{operation}, {scheme}"),
        }
    }

    /// How often in all, warm-up included, what is timed is done: of a pingpong that is half a round trip, so twice in
    /// each repetition.
    fn repetitions(&self) -> u32 {
        match &self.workload {
            Workload::Benchmark(benchmark) | Workload::Mixed(benchmark) | Workload::Amid(benchmark, _) => {
                let timed = 1 + u32::from(benchmark.operation.is_there_and_back());
                timed * (benchmark.warm_up + benchmark.repetitions)
            }
            Workload::Phases(_)
            | Workload::Nas(_)
            | Workload::Pattern(_)
            | Workload::Fabric(_)
            | Workload::Exchange(_)
            | Workload::Bulk(_)
            | Workload::Spec(_) => 1,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processes = self.processes();
        match &self.workload {
            Workload::Benchmark(benchmark) | Workload::Mixed(benchmark) | Workload::Amid(benchmark, _) => {
                let Benchmark { operation, bytes, warm_up, repetitions, .. } = benchmark;
                write!(f, "{operation}, {bytes} bytes, {} of ", benchmark.active.unwrap_or(processes))?;
                write!(f, "{processes} processes, {repetitions} times after {warm_up}")?;
                if benchmark.repetitions_per_root != 1 {
                    write!(f, ", {} per root", benchmark.repetitions_per_root)?;
                }
            }
            Workload::Phases(phases) => {
                write!(f, "phases of {} all-to-alls, {processes} processes", phases.repetitions)?;
            }
            Workload::Nas(nas) => write!(f, "{nas}, {processes} processes")?,
            Workload::Pattern(pattern) => write!(f, "{pattern}, {processes} processes")?,
            Workload::Fabric(fabric) => return fabric.fmt(f),
            Workload::Exchange(exchange) => return exchange.fmt(f),
            Workload::Bulk(bulk) => return bulk.fmt(f),
            Workload::Spec(spec) => return spec.fmt(f),
        }
        if let Workload::Benchmark(Benchmark { operation: Operation::Stream { window, calls }, .. }) = self.workload {
            write!(f, ", window {window}, {calls:?}")?;
        }
        match &self.machine {
            Machine::Cluster(cluster) => write!(f, ", {cluster}")?,
            Machine::Dragonfly(grove) => write!(f, ", {grove}")?,
            Machine::Extoll => {}
        }
        if self.free_credits {
            f.write_str(", credits free")?;
        }
        if let Some(most) = self.time_most_us {
            write!(f, ", at most {most} µs")?;
        }
        if let Workload::Amid(_, packets) = self.workload {
            write!(f, ", amid messages of {packets} packets")?;
        }
        if let Workload::Mixed(_) = self.workload {
            f.write_str(", after messages of many lengths")?;
        }
        if let Some(nodes) = &self.nodes {
            write!(f, ", nodes {nodes:?}")?;
        }
        if self.intra_node_path {
            f.write_str(", path within nodes")?;
        }
        match self.flow {
            FlowChoice::Unlimited => f.write_str(", reference"),
            FlowChoice::Mailbox { scheme, slots_per_peer, credit_slots, piggyback, quota_most } => {
                write!(f, ", {scheme}, {slots_per_peer} slots, {credit_slots} for credits")?;
                if piggyback {
                    f.write_str(", piggybacking")?;
                }
                quota_most.map_or(Ok(()), |most| write!(f, ", at most {most} per sender"))
            }
            FlowChoice::Posted { scheme, buffers, .. } => write_buffers(f, scheme, &buffers),
        }
    }
}

/// What tells the buffers of two cases with one scheme apart.
fn write_buffers(f: &mut fmt::Formatter<'_>, scheme: SchemeName, buffers: &Buffers) -> fmt::Result {
    let Buffers { per_connection, per_connection_most, packets, credit_threshold, growth, retry_timer, .. } = buffers;
    match scheme {
        SchemeName::SharedWindow => write!(f, ", {scheme} {}–{}", buffers.pool_first, buffers.pool_most)?,
        SchemeName::Growing => write!(f, ", {scheme}, {per_connection} to {per_connection_most} buffers, {growth:?}")?,
        _ => write!(f, ", {scheme}, {per_connection} buffers")?,
    }
    if *credit_threshold != Buffers::of(scheme).credit_threshold {
        write!(f, ", threshold {credit_threshold}")?;
    }
    write!(f, " of {packets} packets, timer {retry_timer:?}")
}

/// `static` with `slots_per_peer` slots per peer, of which `credit_slots` are for credits.
pub(crate) fn static_credits(slots_per_peer: u32, credit_slots: u32) -> FlowChoice {
    FlowChoice::Mailbox { scheme: SchemeName::Static, slots_per_peer, credit_slots, piggyback: false, quota_most: None }
}

/// `dynamic` with `slots_per_peer` slots per peer, of which `credit_slots` are for credits.
pub(crate) fn dynamic_credits(slots_per_peer: u32, credit_slots: u32) -> FlowChoice {
    FlowChoice::Mailbox {
        scheme: SchemeName::Dynamic,
        slots_per_peer,
        credit_slots,
        piggyback: false,
        quota_most: None,
    }
}

/// The same with credits on data packets.
pub(crate) fn piggybacked(mut flow: FlowChoice) -> FlowChoice {
    if let FlowChoice::Mailbox { piggyback, .. } = &mut flow {
        *piggyback = true;
    }
    flow
}

/// The same, but no sender earns more data slots than this.
pub(crate) fn capped(mut flow: FlowChoice, most: u32) -> FlowChoice {
    if let FlowChoice::Mailbox { quota_most, .. } = &mut flow {
        *quota_most = Some(most);
    }
    flow
}
