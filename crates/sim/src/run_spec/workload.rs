//! Operations by name and form, patterns of traffic, traces.

use std::path::Path;
use std::sync::Arc;

use crate::workload::collective::{
    Allgather, Allreduce, Alltoall, Alltoallv, Barrier, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
};
use crate::workload::nas::Nas;
use crate::workload::point_to_point::Calls;
use crate::workload::{Benchmark, HALO, Neighbours, Operation, Pattern};
use crate::{SimulationConfig, goal};

use super::job::JobDraft;
use super::refusal::Refusal;
use super::work::{PhaseSizes, Work};

/// Every name of an operation or pattern, with the forms that it has; the first form is the default.
pub const OPERATIONS: &[(&str, &[&str])] = &[
    ("pingpong", &[]),
    ("multi_pingpong", &[]),
    ("pingping", &[]),
    ("stream", &["blocking", "non_blocking"]),
    ("sendrecv", &[]),
    ("exchange", &[]),
    ("halo", &["3d", "2d"]),
    ("neighbor_alltoall", &[]),
    ("barrier", &["dissemination", "recursive_doubling", "tree", "plain"]),
    ("broadcast", &["tree", "split_binary", "scatter_ring", "plain"]),
    ("reduce", &["tree", "segmented", "plain"]),
    ("allreduce", &["recursive_doubling", "ring", "plain"]),
    ("reduce_scatter", &["recursive_halving", "pairwise", "ring", "plain", "reduce_then_scatterv"]),
    ("gather", &["tree", "plain"]),
    ("gatherv", &[]),
    ("scatter", &["tree", "plain"]),
    ("scatterv", &[]),
    ("allgather", &["recursive_doubling", "bruck", "neighbour_exchange", "ring", "plain"]),
    ("allgatherv", &["ring", "neighbour_exchange", "plain"]),
    ("alltoall", &["plain", "posted", "pairwise", "bruck"]),
    ("alltoallv", &["plain", "posted", "pairwise"]),
    ("random", &[]),
    ("permutation", &[]),
    ("incast", &[]),
    ("cyclic_shift", &[]),
    ("transpose", &[]),
    ("pairs", &[]),
    ("is", CLASSES),
    ("ft", CLASSES),
    ("lu", CLASSES),
    ("cg", CLASSES),
    ("mg", CLASSES),
    ("bt", CLASSES),
    ("sp", CLASSES),
    ("phases", &[]),
    ("trace", &[]),
];

/// Sizes of the NAS Parallel Benchmarks.
const CLASSES: &[&str] = &["A", "B", "C"];

/// Most messages of a pattern, over all processes: their destinations are listed before the run.
const MESSAGES_MOST: u64 = 100_000_000;

/// Most repetitions of an operation: the smallest, a pingpong of empty messages, takes a minute for so many.
const REPETITIONS_MOST: u32 = 10_000_000;

/// Most bytes of a process's buffers, 1 TiB. They have addresses, and no memory behind them; but what it takes to send
/// more lies beyond what the clock can tell.
const MEMORY_MOST: u64 = 1 << 40;

/// Bytes of a segment where a form sends in segments: Open MPI's choice for short messages.
const SEGMENT: u64 = 1024;

/// The fields of a file that operations choose from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choices {
    pub(super) radix: u32,
    pub(super) window: u32,
    pub(super) neighbours: u32,
    pub(super) seed: u64,
}

impl Default for Choices {
    fn default() -> Self {
        Choices { radix: 2, window: 64, neighbours: 8, seed: 1 }
    }
}

/// The operation of that name and form; `None` for a pattern or a trace.
pub(super) fn operation(name: &str, form: Option<&str>, choices: Choices) -> Option<Operation> {
    let Choices { radix, window, neighbours, seed } = choices;
    let forms = OPERATIONS.iter().find(|operation| operation.0 == name)?.1;
    let form = form.or(forms.first().copied()).unwrap_or_default();
    Some(match (name, form) {
        ("pingpong", _) => Operation::Pingpong,
        ("multi_pingpong", _) => Operation::MultiPingpong,
        ("pingping", _) => Operation::Pingping,
        ("stream", form) => {
            let calls = if form == "non_blocking" { Calls::NonBlocking } else { Calls::Blocking };
            Operation::Stream { window, calls }
        }
        ("sendrecv", _) => Operation::Sendrecv,
        ("exchange", _) => Operation::Exchange,
        ("halo", form) => Operation::Neighbours(Neighbours::Grid { dimensions: if form == "2d" { 2 } else { 3 } }),
        ("neighbor_alltoall", _) => Operation::Neighbours(Neighbours::Drawn { count: neighbours, seed }),
        ("barrier", "recursive_doubling") => Operation::Barrier(Barrier::RecursiveDoubling),
        ("barrier", "tree") => Operation::Barrier(Barrier::Tree { radix }),
        ("barrier", "plain") => Operation::Barrier(Barrier::Plain),
        ("barrier", _) => Operation::Barrier(Barrier::Dissemination),
        ("broadcast", "split_binary") => Operation::Broadcast(Broadcast::SplitBinary { segment: SEGMENT }),
        ("broadcast", "scatter_ring") => Operation::Broadcast(Broadcast::ScatterRing),
        ("broadcast", "plain") => Operation::Broadcast(Broadcast::Plain),
        ("broadcast", _) => Operation::Broadcast(Broadcast::Tree { radix }),
        ("reduce", "segmented") => Operation::Reduce(Reduce::Segmented { radix, segment: SEGMENT }),
        ("reduce", "plain") => Operation::Reduce(Reduce::Plain),
        ("reduce", _) => Operation::Reduce(Reduce::Tree { radix }),
        ("allreduce", "ring") => Operation::Allreduce(Allreduce::Ring),
        ("allreduce", "plain") => Operation::Allreduce(Allreduce::Plain),
        ("allreduce", _) => Operation::Allreduce(Allreduce::RecursiveDoubling),
        ("reduce_scatter", "pairwise") => Operation::ReduceScatter(ReduceScatter::Pairwise),
        ("reduce_scatter", "ring") => Operation::ReduceScatter(ReduceScatter::Ring),
        ("reduce_scatter", "reduce_then_scatterv") => Operation::ReduceScatter(ReduceScatter::ReduceThenScatterv),
        ("reduce_scatter", "plain") => Operation::ReduceScatter(ReduceScatter::Plain),
        ("reduce_scatter", _) => Operation::ReduceScatter(ReduceScatter::RecursiveHalving),
        ("gather", "plain") => Operation::Gather(Gather::Plain),
        ("gather", _) => Operation::Gather(Gather::Tree { radix }),
        ("gatherv", _) => Operation::Gatherv,
        ("scatter", "plain") => Operation::Scatter(Scatter::Plain),
        ("scatter", _) => Operation::Scatter(Scatter::Tree { radix }),
        ("scatterv", _) => Operation::Scatterv,
        ("allgather", "bruck") => Operation::Allgather(Allgather::Bruck),
        ("allgather", "neighbour_exchange") => Operation::Allgather(Allgather::NeighbourExchange),
        ("allgather", "ring") => Operation::Allgather(Allgather::Ring),
        ("allgather", "plain") => Operation::Allgather(Allgather::Plain),
        ("allgather", _) => Operation::Allgather(Allgather::RecursiveDoubling),
        ("allgatherv", "neighbour_exchange") => Operation::Allgatherv(Allgather::NeighbourExchange),
        ("allgatherv", "plain") => Operation::Allgatherv(Allgather::Plain),
        ("allgatherv", _) => Operation::Allgatherv(Allgather::Ring),
        ("alltoall", "posted") => Operation::Alltoall(Alltoall::Posted),
        ("alltoall", "pairwise") => Operation::Alltoall(Alltoall::Pairwise),
        ("alltoall", "bruck") => Operation::Alltoall(Alltoall::Bruck),
        ("alltoall", _) => Operation::Alltoall(Alltoall::Plain),
        ("alltoallv", "posted") => Operation::Alltoallv(Alltoallv::Posted),
        ("alltoallv", "pairwise") => Operation::Alltoallv(Alltoallv::Pairwise),
        ("alltoallv", _) => Operation::Alltoallv(Alltoallv::Plain),
        _ => return None,
    })
}

fn pattern(name: &str, root: u32) -> Option<Pattern> {
    Some(match name {
        "random" => Pattern::Random,
        "permutation" => Pattern::Permutation,
        "incast" => Pattern::Incast { root },
        "cyclic_shift" => Pattern::CyclicShift,
        "transpose" => Pattern::Transpose,
        "pairs" => Pattern::Pairs,
        _ => return None,
    })
}

impl JobDraft {
    /// The program that the fields describe.
    pub(super) fn work(&self, config: &SimulationConfig, folder: &Path) -> Result<Work, Refusal> {
        let refuse = |field: &'static str, what: String| Err(Refusal::new(&[("workload", field)], what));
        let (name, size) = (&self.operation, config.size());
        let forms = OPERATIONS.iter().find(|operation| operation.0 == *name).map_or(&[][..], |known| known.1);
        if let Some(form) = self.form.as_deref().filter(|form| !forms.contains(form)) {
            let has = if forms.is_empty() {
                "no forms: remove the field".to_owned()
            } else {
                format!("the forms {}", forms.join(", "))
            };
            return refuse("form", format!("[workload] form = {form}: {name} has {has}"));
        }
        if let Some(active) = self.benchmark.active.filter(|&active| active > size) {
            let what = format!("[workload] active = {active} is more than the job's {size} processes");
            return refuse("active", what);
        }
        let window = u32::try_from(self.window).unwrap_or(u32::MAX);
        let (neighbours, seed) = (self.neighbours, config.seed);
        let choices = Choices { radix: self.radix, window, neighbours, seed };
        if let Some(operation) = operation(name, self.form.as_deref(), choices) {
            self.check_repetitions()?;
            self.check_group(operation, size)?;
            let benchmark = Benchmark { operation, ..self.benchmark };
            return Ok(if self.mixed { Work::Mixed(benchmark) } else { Work::Benchmark(benchmark) });
        }
        if name == "phases" {
            return self.phases(size).map(Work::Phases);
        }
        if let Ok(benchmark) = name.parse() {
            let refusal = |field: &'static str, what: String| Refusal::new(&[("workload", field)], what);
            let class = self.form.as_deref().unwrap_or("A").parse().map_err(|why| refusal("form", why))?;
            let mut nas = Nas {
                benchmark,
                class,
                iterations: self.iterations,
                rate: self.compute_rate,
                variation: self.variation,
            };
            if self.longer > 1 {
                nas.iterations = Some(nas.iterations().saturating_mul(self.longer));
            }
            nas.check(size).map_err(|why| {
                refusal("operation", format!("{why}: change [network] sizes or [machine] processes_per_node"))
            })?;
            return Ok(Work::Nas(nas, self.is_own_clock));
        }
        let Some(pattern) = pattern(name, self.root) else { return self.trace(config, folder).map(Work::Trace) };
        if self.root >= size {
            let what = format!(
                "[workload] root = {} is not one of the job's {size} processes: give at most {}",
                self.root,
                size - 1
            );
            return refuse("root", what);
        }
        self.check_bytes(1)?;
        let Benchmark { bytes, repetitions: messages, .. } = self.benchmark;
        if u64::from(messages) * u64::from(size) > MESSAGES_MOST {
            let what = format!(
                "[workload] repetitions = {messages} messages of each of {size} processes are too many: at most \
                 {MESSAGES_MOST} in all are simulated"
            );
            return refuse("repetitions", what);
        }
        Ok(Work::Traffic { pattern, messages, bytes, window: self.window })
    }

    /// The phases of a job of so many processes.
    fn phases(&self, size: u32) -> Result<PhaseSizes, Refusal> {
        let refuse = |field: &'static str, what: String| Err(Refusal::new(&[("workload", field)], what));
        if let Some(active) = self.phases.iter().find(|&&active| active == 0 || active > size) {
            return refuse(
                "phases",
                format!("[workload] phases: {active} of the job's {size} processes cannot be active"),
            );
        }
        if let Some(range) = self.watched.iter().find(|range| range.end > size) {
            let what = format!("[workload] watched: the job has {size} processes, none of rank {}", range.end - 1);
            return refuse("watched", what);
        }
        self.check_repetitions()?;
        self.check_bytes(size)?;
        let Benchmark { bytes, repetitions, .. } = self.benchmark;
        Ok(PhaseSizes { sizes: self.phases.clone(), repetitions, bytes, watched: self.watched.clone() })
    }

    /// Whether repetitions have an end that somebody will see.
    fn check_repetitions(&self) -> Result<(), Refusal> {
        let Benchmark { warm_up, repetitions, .. } = self.benchmark;
        for (field, value) in [("repetitions", repetitions), ("warm_up", warm_up)] {
            if value > REPETITIONS_MOST {
                let what =
                    format!("[workload] {field} = {value} is too many: at most {REPETITIONS_MOST} are simulated");
                return Err(Refusal::new(&[("workload", field)], what));
            }
        }
        Ok(())
    }

    /// Whether an operation can be done by those who take part, with blocks of this size.
    fn check_group(&self, operation: Operation, size: u32) -> Result<(), Refusal> {
        let (name, members) = (&self.operation, self.benchmark.active.unwrap_or(size));
        if self.mixed && !matches!(operation, Operation::Alltoall(_) | Operation::Alltoallv(_)) {
            let what =
                format!("[workload] mixed = true is for alltoall and alltoallv, not for {name}: remove the field");
            return Err(Refusal::new(&[("workload", "mixed"), ("workload", "operation")], what));
        }
        let decided_by = [
            ("workload", "active"),
            ("network", "sizes"),
            ("machine", "processes_per_node"),
            ("machine", "nodes"),
            ("workload", "operation"),
        ];
        let needs = match operation {
            Operation::Pingpong | Operation::Pingping | Operation::Stream { .. } if members < 2 => {
                "at least two processes"
            }
            Operation::MultiPingpong if members % 2 == 1 => "an even number of processes",
            _ => {
                let (out, into) = operation.blocks(members);
                return self.check_bytes(out.max(into) as u32);
            }
        };
        let what = format!(
            "[workload] operation = {name} needs {needs}, and {members} would take part: change [workload] active, \
             [network] sizes or [machine] processes_per_node"
        );
        Err(Refusal::new(&decided_by, what))
    }

    /// Whether the buffers of a process are not too large that has blocks for so many.
    fn check_bytes(&self, blocks: u32) -> Result<(), Refusal> {
        // What a process sends and what it receives lie beside each other.
        let (bytes, most) = (self.benchmark.bytes, MEMORY_MOST / (2 * u64::from(blocks.max(1))));
        if bytes <= most {
            return Ok(());
        }
        let what = match blocks {
            1 => format!("[workload] bytes = {bytes} is too large: at most {most} are allowed"),
            _ => format!(
                "[workload] bytes = {bytes} is too large: a buffer has {blocks} of it, and at most {most} are allowed"
            ),
        };
        Err(Refusal::new(&[("workload", "bytes")], what))
    }

    fn trace(&self, config: &SimulationConfig, folder: &Path) -> Result<Arc<str>, Refusal> {
        let at = |field: &'static str, what: String| Refusal::new(&[("workload", field)], what);
        let Some(name) = &self.trace else {
            let what =
                "[workload] operation = trace needs [workload] trace = \"FILE\", or \"halo16\" for the bundled one";
            return Err(at("operation", what.to_owned()));
        };
        let path = folder.join(name);
        let refuse = |problem: String| at("trace", format!("[workload] trace: {}: {problem}", path.display()));
        let text = match name.to_str() {
            Some("halo16") => HALO.to_owned(),
            _ => goal::read_text(&path).map_err(refuse)?,
        };
        let trace = goal::parse(&text).map_err(refuse)?;
        if trace.size() > config.size() {
            let (needs, has) = (trace.size(), config.size());
            return Err(refuse(format!(
                "it has {needs} ranks and the job {has} processes: enlarge [network] sizes or [machine] \
                 processes_per_node"
            )));
        }
        Ok(text.into())
    }
}
