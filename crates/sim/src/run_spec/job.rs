//! [`JobDraft`]: files that describe jobs, whose processes exchange messages.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::workload::{Benchmark, Trace};
use crate::{Cost, FlowChoice, NetworkParameters, SimulationConfig, SimulationError, Topology, Ways};

use super::buffers::{self, BufferFields};
use super::fields::FIELDS;
use super::file::{Draft, Field, Sweep};
use super::memory::Wishes;
use super::refusal::{FieldName, Refusal};
use super::work::Work;
use super::workload;
use crate::workload::nas::Variation;
use tidegate_flow::SchemeName;

/// One run that a file describes.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Everything but the program.
    pub config: SimulationConfig,
    /// The program.
    pub work: Work,
    /// Whether the run is compared with the same without flow control.
    pub reference: bool,
    /// Whether `[flow] memory` decides how many slots or buffers there are.
    pub is_fitted: bool,
}

/// A scenario that is being put together, field by field.
#[derive(Clone, Debug)]
pub struct JobDraft {
    pub(super) topology: String,
    pub(super) sizes: Vec<u16>,
    pub(super) ways: Ways,
    pub(super) config: SimulationConfig,
    pub(super) scheme: Option<SchemeName>,
    pub(super) slots_per_peer: u32,
    pub(super) credit_slots: u32,
    pub(super) piggyback: bool,
    pub(super) quota_most: Option<u32>,
    pub(super) buffers: BufferFields,
    pub(super) memory: Option<u64>,
    pub(super) operation: String,
    pub(super) form: Option<String>,
    pub(super) radix: u32,
    pub(super) neighbours: u32,
    pub(super) iterations: Option<u32>,
    pub(super) longer: u32,
    pub(super) compute_rate: f64,
    pub(super) variation: Variation,
    pub(super) is_own_clock: bool,
    pub(super) mixed: bool,
    pub(super) phases: Vec<u32>,
    pub(super) watched: Vec<Range<u32>>,
    pub(super) free_credits: bool,
    pub(super) trace: Option<PathBuf>,
    pub(super) root: u32,
    pub(super) window: usize,
    pub(super) benchmark: Benchmark,
    pub(super) reference: bool,
}

impl Draft for JobDraft {
    type Scenario = Scenario;
    const FIELDS: &'static [Field<Self>] = FIELDS;

    fn new() -> Self {
        let topology = Topology::mesh(&[4, 4]).expect("a legal mesh");
        let operation = workload::operation("alltoall", None, workload::Choices::default()).expect("a legal operation");
        JobDraft {
            topology: "mesh".to_owned(),
            sizes: vec![4, 4],
            ways: Ways::default(),
            config: SimulationConfig::extoll(topology),
            scheme: Some(SchemeName::Dynamic),
            slots_per_peer: 64,
            credit_slots: 2,
            piggyback: true,
            quota_most: None,
            buffers: BufferFields::default(),
            memory: None,
            operation: "alltoall".to_owned(),
            form: None,
            radix: 2,
            neighbours: 8,
            iterations: None,
            longer: 1,
            compute_rate: 400.0,
            variation: Variation::AsPublished,
            is_own_clock: false,
            mixed: false,
            phases: vec![256, 128, 64],
            watched: Vec::new(),
            free_credits: false,
            trace: None,
            root: 0,
            window: 64,
            benchmark: Benchmark { repetitions: 3, ..Benchmark::new(operation) },
            reference: true,
        }
    }

    fn finish(mut self, folder: &Path) -> Result<Scenario, Refusal> {
        self.benchmark.repetitions = self.benchmark.repetitions.saturating_mul(self.longer);
        let sizes = &self.sizes;
        let nodes = sizes.iter().fold(1_u32, |nodes, &size| nodes.saturating_mul(u32::from(size)));
        let topology = match self.topology.as_str() {
            "mesh" => Topology::mesh(sizes),
            "torus" => Topology::torus(sizes),
            "dragonfly" => Topology::dragonfly(sizes, self.ways),
            "fat_tree" => Topology::fat_tree(sizes, self.ways),
            "switch" => Topology::switch(nodes),
            _ => Topology::ideal(nodes),
        };
        let topology = topology.map_err(|error| Refusal::of_topology(&error))?;
        let mut config = SimulationConfig { topology, ..self.config.clone() };
        config.flow = self.flow(config.peers.unwrap_or(config.size().saturating_sub(1)))?;
        if self.free_credits {
            config.cost = config.cost.with_free_credits();
        }
        config.check().map_err(|error| Refusal::of_simulation(&error))?;
        let work = self.work(&config, folder)?;
        Ok(Scenario { config, work, reference: self.reference, is_fitted: self.memory.is_some() })
    }

    fn heeds(scenario: &Scenario, field: &Field<Self>) -> bool {
        let is_growing = matches!(scenario.config.flow, FlowChoice::Posted { scheme, .. } if scheme.lends().may_grow());
        match (field.section, field.name) {
            ("workload", name) => scenario.work.heeds(name),
            ("flow", "slots_per_peer") => {
                !scenario.is_fitted && !matches!(scenario.config.flow, FlowChoice::Posted { .. })
            }
            ("flow", "buffers_most" | "pool_most" | "pool_slots") => !scenario.is_fitted,
            ("flow", "buffers") => !scenario.is_fitted || is_growing,
            _ => true,
        }
    }

    fn why_idle(field: &Field<Self>, values: impl Fn(FieldName) -> Option<String>) -> String {
        if field.section == "flow" && values(("flow", "memory")).is_some() {
            return "a run with [flow] memory, into which as many as fit are put: remove one of the two".to_owned();
        }
        if field.section == "flow" {
            let scheme = values(("flow", "scheme")).unwrap_or_default();
            let instead = if scheme == "speculative" { "pool_slots" } else { "buffers, or pool_most" };
            return format!("a run under {scheme}, where no sender has slots of its own: set [flow] {instead} instead");
        }
        let operations = values(("workload", "operation")).unwrap_or_else(|| "alltoall".to_owned());
        format!("a run of {operations}: remove the field, or change [workload] operation or form")
    }

    fn of_another_kind(_: &str) -> Option<String> {
        None
    }
}

impl JobDraft {
    /// The flow control of a process with so many peers.
    fn flow(&self, peers: u32) -> Result<FlowChoice, Refusal> {
        let &JobDraft { credit_slots, piggyback, quota_most, slots_per_peer, .. } = self;
        let Some(scheme) = self.scheme else { return Ok(FlowChoice::Unlimited) };
        if let Some(bytes) = self.memory {
            let wishes = Wishes { scheme, credit_slots, piggyback, quota_most, buffers: &self.buffers };
            return wishes.fitted(peers, bytes);
        }
        if scheme.lends().posts_buffers() {
            return Ok(FlowChoice::Posted { scheme, buffers: self.buffers.of(scheme), piggyback });
        }
        let piggyback = piggyback && scheme.lends().has_credits();
        Ok(FlowChoice::Mailbox { scheme, slots_per_peer, credit_slots, piggyback, quota_most })
    }

    /// Begins with a set of parameters: the fields that come after it change one of them each.
    pub(super) fn begin_with(&mut self, set: &str) {
        let of_cluster = |config: SimulationConfig| (config.topology.nodes() as u16, config);
        let (nodes, config) = match set {
            "infiniband2003" => of_cluster(SimulationConfig::infiniband2003()),
            "infiniband2007" => of_cluster(SimulationConfig::infiniband2007()),
            "free" => {
                self.config.cost = Cost::free();
                return;
            }
            _ => {
                (self.config.cost, self.config.network) = (Cost::extoll(), NetworkParameters::extoll());
                return;
            }
        };
        (self.topology, self.sizes) = ("switch".to_owned(), vec![nodes]);
        // Posted buffers hold what may be sent eagerly.
        self.buffers.packets = buffers::packets(&format!("{} B", config.eager_bytes)).ok();
        self.config = config;
    }
}

impl Sweep<JobDraft> {
    /// What is said of a run that failed: which one, why, and what could be changed in the file. `point` is its number
    /// among the points; a run beyond these is a reference.
    #[must_use]
    pub fn failed(&self, error: &SimulationError, point: usize) -> String {
        let (which, flow) = match self.points.get(point) {
            Some((values, scenario)) => (self.with(values), scenario.config.flow),
            None => (" without flow control, which others are compared with".to_owned(), FlowChoice::Unlimited),
        };
        let mut what = Refusal::of_simulation(error).what;
        for (field, line) in &self.lines {
            let name = format!("[{}] {}", field.section, field.name);
            what = what.replace(&name, &format!("{name} (line {line})"));
        }
        let remedy = match (error, flow) {
            (SimulationError::Deadlock(_), FlowChoice::Mailbox { .. }) => {
                "\nMore [flow] slots_per_peer, a [flow] scheme that lends slots, or a [workload] form whose processes \
                 receive before they wait for their sends may help."
            }
            (SimulationError::Deadlock(_), FlowChoice::Posted { scheme, .. })
                if scheme.lends().announces_short_messages() =>
            {
                "\nUnder this scheme the send of a short message that finds no credit waits for its receive. More [flow] \
                 buffers, another [flow] scheme, or a [workload] whose processes receive before they wait for their \
                 sends may help."
            }
            _ => "",
        };
        let of_trace = self.points.get(point).and_then(|(_, scenario)| match (error, &scenario.work) {
            (SimulationError::Deadlock(_), Work::Trace(text)) => Trace::parse(text).ok()?.advice_on_deadlock(),
            _ => None,
        });
        let remedy = of_trace.map_or_else(|| remedy.to_owned(), |advice| format!("\n{advice}"));
        format!("the run{which} failed: {what}{remedy}")
    }
}
