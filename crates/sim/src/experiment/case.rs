//! [`Case`]: one run of a figure, and [`Measurement`], what figures want to know of it.

use std::fmt;

use tidegate_flow::SchemeName;
use tidegate_message::Counter;

use super::operation::Benchmark;
use super::p_fig19::PhaseSizes;
use crate::config::{FlowChoice, SimulationConfig, SimulationError};
use crate::cost::Activity;
use crate::flight::NodeId;
use crate::noise::Noise;
use crate::outcome::Outcome;
use crate::simulation::Simulation;
use crate::task::{Sample, Task};
use crate::topology::Topology;
use crate::workload::Communicator;

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Workload {
    Benchmark(Benchmark),
    Phases(PhaseSizes),
}

/// One run on the machine of P.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Case {
    /// Sizes of the mesh.
    pub mesh: Vec<u16>,
    /// The nodes that run processes, if not all do.
    pub nodes: Option<Vec<u32>>,
    pub flow: FlowChoice,
    pub workload: Workload,
    pub intra_node_path: bool,
}

impl Case {
    /// A benchmark on all nodes of a mesh.
    pub fn new(mesh: &[u16], flow: FlowChoice, benchmark: Benchmark) -> Self {
        let workload = Workload::Benchmark(benchmark);
        Case { mesh: mesh.to_vec(), nodes: None, flow, workload, intra_node_path: false }
    }

    /// The same without flow control, in mailboxes without end: what overhead is measured against.
    pub fn reference(&self) -> Self {
        Case { flow: FlowChoice::Unlimited, ..self.clone() }
    }

    /// What tells two cases apart.
    pub fn key(&self) -> String {
        format!("{self:?}")
    }

    pub fn measure(&self, seed: u64, noise: Noise) -> Result<Measurement, SimulationError> {
        let topology = Topology::mesh(&self.mesh).map_err(|error| SimulationError::Setup(error.to_string()))?;
        let nodes = self.nodes.as_ref().map(|nodes| nodes.iter().map(|&node| NodeId(node)).collect());
        let config = SimulationConfig {
            nodes,
            flow: self.flow,
            intra_node_path: self.intra_node_path,
            seed,
            noise,
            ..SimulationConfig::extoll(topology)
        };
        let outcome = match &self.workload {
            Workload::Benchmark(benchmark) => Simulation::new(config, benchmark)?.run()?,
            Workload::Phases(sizes) => {
                let phases = sizes.phases();
                let program = move |task: Task| {
                    let phases = phases.clone();
                    async move { phases.run(&Communicator::world(&task)).await }
                };
                Simulation::new(config, &program)?.run()?
            }
        };
        Ok(Measurement::of(outcome, self.repetitions()))
    }

    /// Repetitions in all, warm-up included.
    fn repetitions(&self) -> u32 {
        match &self.workload {
            Workload::Benchmark(benchmark) => benchmark.warm_up + benchmark.repetitions,
            Workload::Phases(_) => 1,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.workload {
            Workload::Benchmark(benchmark) => write!(f, "{}", benchmark.operation)?,
            Workload::Phases(_) => f.write_str("phases")?,
        }
        match self.flow {
            FlowChoice::Unlimited => f.write_str(", reference"),
            FlowChoice::Mailbox { scheme, slots_per_peer, credit_slots, .. } => {
                write!(f, ", {scheme}, {slots_per_peer} slots, {credit_slots} for credits")
            }
        }
    }
}

/// `static` with `slots_per_peer` slots per peer, of which `credit_slots` are for credits.
pub(super) fn static_credits(slots_per_peer: u32, credit_slots: u32) -> FlowChoice {
    FlowChoice::Mailbox { scheme: SchemeName::Static, slots_per_peer, credit_slots, piggyback: false, quota_most: None }
}

/// `dynamic` with `slots_per_peer` slots per peer, of which `credit_slots` are for credits.
pub(super) fn dynamic_credits(slots_per_peer: u32, credit_slots: u32) -> FlowChoice {
    FlowChoice::Mailbox {
        scheme: SchemeName::Dynamic,
        slots_per_peer,
        credit_slots,
        piggyback: false,
        quota_most: None,
    }
}

/// The same with credits on data packets.
pub(super) fn piggybacked(mut flow: FlowChoice) -> FlowChoice {
    if let FlowChoice::Mailbox { piggyback, .. } = &mut flow {
        *piggyback = true;
    }
    flow
}

/// The same, but no sender earns more data slots than this.
pub(super) fn capped(mut flow: FlowChoice, most: u32) -> FlowChoice {
    if let FlowChoice::Mailbox { quota_most, .. } = &mut flow {
        *quota_most = Some(most);
    }
    flow
}

/// What figures want to know of a run.
#[derive(Clone, Debug)]
pub(super) struct Measurement {
    /// Mean over processes of the time per repetition, in microseconds.
    pub time: f64,
    /// Mean over the processes that took part of the time spent on credits, per repetition, in microseconds.
    pub credits_time: f64,
    /// Share of the messages in the repetitions that count that waited for credits, 0 to 1.
    pub delayed: f64,
    /// Explicit credit packets of the whole run.
    pub credit_packets: u64,
    /// Everything that programs recorded.
    pub samples: Vec<Sample>,
}

impl Measurement {
    fn of(outcome: Outcome, repetitions: u32) -> Self {
        let times: Vec<f64> = outcome.samples_of("time").map(|sample| sample.value).collect();
        let took_part = times.len().max(1) as f64;
        let credits: f64 = outcome.processes.iter().map(|each| each.spent.on(Activity::Credits).microseconds()).sum();
        let sum = |label| outcome.samples_of(label).map(|sample| sample.value).sum::<f64>();
        Measurement {
            time: times.iter().sum::<f64>() / took_part,
            credits_time: credits / took_part / f64::from(repetitions.max(1)),
            delayed: sum("delayed") / sum("messages").max(1.0),
            credit_packets: outcome.counter(Counter::CreditPackets),
            samples: outcome.samples,
        }
    }

    /// Overhead in percent: the time beyond the reference's.
    pub fn overhead(&self, reference: &Measurement) -> f64 {
        100.0 * (self.time / reference.time - 1.0)
    }
}
