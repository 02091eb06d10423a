//! All seven schemes on one machine with the same programs, at equal receive memory per process: a comparison that none
//! of the papers has.

use tidegate_flow::{Buffers, Config, SchemeName};
use tidegate_message::Counter;

use super::case::{Case, Measurement, Workload};
use super::estimate::Estimate;
use super::machine::Cluster;
use super::measurement::Runs;
use super::operation::{Benchmark, Operation};
use super::program::{NasRun, PatternRun};
use super::report::{Fact, Figure, Findings, Series, Table};
use super::workshop::Workshop;
use crate::SimulationError;
use crate::config::FlowChoice;
use crate::rendezvous::Rendezvous;
use crate::workload::Pattern;
use crate::workload::collective::{Allreduce, Alltoall};
use crate::workload::nas::{self, Class};

/// The schemes, those of P first.
const SCHEMES: [SchemeName; 7] = [
    SchemeName::None,
    SchemeName::Static,
    SchemeName::Dynamic,
    SchemeName::Rnr,
    SchemeName::Preposted,
    SchemeName::Growing,
    SchemeName::SharedWindow,
];

/// Bytes of a slot of a mailbox.
const SLOT_BYTES: u64 = 64;
/// Packets and bytes of a posted buffer, which holds a message of 2 KiB with its header.
const BUFFER_PACKETS: u32 = 37;
const BUFFER_BYTES: u64 = BUFFER_PACKETS as u64 * tidegate_flow::PAYLOAD_BYTES as u64;

/// A scheme for so many processes with so many bytes of receive memory each; or the fewest bytes that it needs.
fn flow(scheme: SchemeName, processes: u32, bytes: u64) -> Result<FlowChoice, u64> {
    let peers = u64::from(processes) - 1;
    if scheme == SchemeName::SharedWindow {
        // A pool posts others for those that are full, up to twice its largest window.
        let most = bytes / (2 * BUFFER_BYTES);
        if most == 0 {
            return Err(2 * BUFFER_BYTES);
        }
        let usual = buffers(scheme);
        let pool_most = most as u32;
        let buffers = Buffers { pool_first: usual.pool_first.min(pool_most), pool_most, ..usual };
        return Ok(FlowChoice::Posted { scheme, buffers, piggyback: true });
    }
    if scheme.lends().posts_buffers() {
        let each = (bytes / BUFFER_BYTES / peers) as u32;
        if each == 0 {
            return Err(peers * BUFFER_BYTES);
        }
        let first = if scheme == SchemeName::Growing { 1 } else { each };
        let buffers = Buffers { per_connection: first, per_connection_most: each, ..buffers(scheme) };
        return Ok(FlowChoice::Posted { scheme, buffers, piggyback: true });
    }
    let slots = (bytes / SLOT_BYTES / peers) as u32;
    let credit_slots = if slots >= 4 { 2 } else { 1 };
    let fits = slots > 0 && Config::new(scheme, peers as u32, slots, credit_slots).regions().is_ok();
    if !fits {
        let is_legal = |slots: &u32| Config::new(scheme, peers as u32, *slots, 1).regions().is_ok();
        return Err((1..64).find(is_legal).map_or(u64::MAX, |slots| u64::from(slots) * peers * SLOT_BYTES));
    }
    let piggyback = scheme.has_credits();
    Ok(FlowChoice::Mailbox { scheme, slots_per_peer: slots, credit_slots, piggyback, quota_most: None })
}

fn buffers(scheme: SchemeName) -> Buffers {
    Buffers { packets: BUFFER_PACKETS, ..Buffers::of(scheme) }
}

/// A program, by name.
type Program = (&'static str, Workload);

fn programs(workshop: &Workshop<'_>) -> Vec<Program> {
    let imb = |operation, bytes, repetitions| {
        Workload::Benchmark(Benchmark { bytes, warm_up: 1, repetitions, ..Benchmark::new(operation) })
    };
    let pattern = |pattern, messages, bytes| Workload::Pattern(PatternRun { pattern, messages, bytes, window: 16 });
    let few = workshop.scale.pick(3, 1, 1);
    let mut programs = vec![
        ("Alltoall", imb(Operation::Alltoall(Alltoall::Posted), 1024, few)),
        ("Exchange", imb(Operation::Exchange, 1024, 25 * few)),
        ("Allreduce", imb(Operation::Allreduce(Allreduce::RecursiveDoubling), 1024, 10 * few)),
        ("Incast", pattern(Pattern::Incast { root: 0 }, 10 * few, 1024)),
        ("Random", pattern(Pattern::Random, 50 * few, 1024)),
    ];
    if workshop.scale.pick(true, true, false) {
        let of = |benchmark, iterations| {
            Workload::Nas(NasRun { benchmark, class: Class::B, iterations: Some(iterations), rate: 800 })
        };
        programs.extend([
            ("NAS IS", of(nas::Benchmark::Is, few)),
            ("NAS LU", of(nas::Benchmark::Lu, few)),
            ("NAS CG", of(nas::Benchmark::Cg, few.div_ceil(2))),
            ("NAS MG", of(nas::Benchmark::Mg, few)),
            ("NAS SP", of(nas::Benchmark::Sp, 2 * few)),
        ]);
    }
    programs
}

/// All runs of a size: by program, by memory, by scheme.
struct Job {
    processes: u32,
    memories: Vec<u64>,
    names: Vec<&'static str>,
    references: Vec<Runs>,
    cells: Vec<Vec<Vec<Result<Runs, u64>>>>,
}

impl Job {
    fn run(workshop: &Workshop<'_>, cluster: Cluster, memories: Vec<u64>) -> Result<Self, SimulationError> {
        let processes = cluster.processes();
        let programs = programs(workshop);
        let mut cases = Vec::new();
        for (_, workload) in &programs {
            let case = |flow| Case::on_cluster(cluster, flow, workload.clone());
            cases.push(case(FlowChoice::Unlimited));
            for &memory in &memories {
                cases.extend(SCHEMES.iter().filter_map(|&scheme| flow(scheme, processes, memory).ok()).map(case));
            }
        }
        let mut runs = workshop.run(&cases)?.into_iter();
        let mut next = || runs.next().expect("a result for every case");
        let (mut references, mut cells) = (Vec::new(), Vec::new());
        for _ in &programs {
            references.push(next());
            let of = |&memory: &u64| {
                let cell = |&scheme: &SchemeName| flow(scheme, processes, memory).map(|_| next());
                SCHEMES.iter().map(cell).collect()
            };
            cells.push(memories.iter().map(of).collect());
        }
        let names = programs.iter().map(|program| program.0).collect();
        Ok(Job { processes, memories, names, references, cells })
    }

    /// Time beside that in mailboxes without end; `Err`: the fewest bytes that the scheme needs.
    fn slower(&self, program: usize, memory: usize, scheme: usize) -> Result<Estimate, u64> {
        let runs = self.cells[program][memory][scheme].as_ref().map_err(|least| *least)?;
        Ok(runs.paired(&self.references[program], |run, reference| time(run) / time(reference)))
    }

    fn table(&self) -> Table {
        let title = format!(
            "{} processes: time, as a multiple of that in mailboxes without end; below a scheme's least memory, that least",
            self.processes
        );
        let mut columns = vec!["program", "memory"];
        columns.extend(SCHEMES.iter().map(|scheme| scheme.name()));
        let mut table = Table::new(&format!("time{}", self.processes), &title, &columns);
        for (program, name) in self.names.iter().enumerate() {
            for (memory, &bytes) in self.memories.iter().enumerate() {
                let cells = (0..SCHEMES.len()).map(|scheme| match self.slower(program, memory, scheme) {
                    Ok(slower) => format!("{:.2}", slower.mean()),
                    Err(least) => format!("needs {}", size(least)),
                });
                table.row([(*name).to_owned(), size(bytes)].into_iter().chain(cells));
            }
        }
        table
    }

    /// What runs of all programs counted at one memory, by scheme.
    fn counts(&self) -> Table {
        let title = format!(
            "{} processes, all programs together, per thousand messages: refusals (or packets that found a mailbox full), \
             and control packets; memory that a process had set aside or posted, and unexpected messages beside it, at most \
             (KiB)",
            self.processes
        );
        let columns = ["memory", "scheme", "refusals", "control packets", "set aside (KiB)", "unexpected (KiB)"];
        let mut table = Table::new(&format!("counts{}", self.processes), &title, &columns);
        for (memory, &bytes) in self.memories.iter().enumerate() {
            for (scheme, name) in SCHEMES.iter().enumerate() {
                let runs: Vec<&Runs> =
                    self.cells.iter().filter_map(|by_memory| by_memory[memory][scheme].as_ref().ok()).collect();
                if runs.is_empty() {
                    continue;
                }
                let sum = |value: &dyn Fn(&Measurement) -> f64| {
                    runs.iter().map(|runs| runs.estimate(value).mean()).sum::<f64>()
                };
                let most = |value: &dyn Fn(&Measurement) -> f64| {
                    runs.iter().map(|runs| runs.estimate(value).mean()).fold(0.0, f64::max)
                };
                let messages =
                    sum(&|run| (run.counter(Counter::MessagesEager) + run.counter(Counter::MessagesRendezvous)) as f64)
                        .max(1.0);
                let per_mille = |value: f64| format!("{:.1}", 1000.0 * value / messages);
                let refused =
                    |run: &Measurement| (run.counter(Counter::Refusals) + run.counter(Counter::MailboxFull)) as f64;
                let aside = match flow(*name, self.processes, bytes) {
                    Ok(FlowChoice::Mailbox { slots_per_peer, .. }) => {
                        (u64::from(slots_per_peer) * u64::from(self.processes - 1) * SLOT_BYTES) as f64
                    }
                    _ => most(&|run| run.posted.unwrap_or_default().buffers_mean * BUFFER_BYTES as f64),
                };
                table.row([
                    size(bytes),
                    name.to_string(),
                    per_mille(sum(&refused)),
                    per_mille(sum(&control)),
                    format!("{:.0}", aside / 1024.0),
                    format!("{:.0}", most(&|run| run.posted.unwrap_or_default().unexpected_mean) / 1024.0),
                ]);
            }
        }
        table
    }

    fn figure(&self) -> Figure {
        let mut series = Vec::new();
        for (program, name) in self.names.iter().enumerate() {
            for (scheme, of) in SCHEMES.iter().enumerate() {
                let point = |(memory, &bytes): (usize, &u64)| {
                    let slower = self.slower(program, memory, scheme).ok()?;
                    Some(slower.point((bytes as f64 / 1024.0).log2()))
                };
                let points = self.memories.iter().enumerate().filter_map(point);
                series.push(Series::of(of.name(), points).in_panel(*name));
            }
        }
        Figure {
            name: format!("compare{}", self.processes),
            title: format!("Seven schemes at equal receive memory, {} processes", self.processes),
            x_axis: "receive memory of a process (2^x KiB)".to_owned(),
            y_axis: "time (1: without flow control)".to_owned(),
            series,
            ..Figure::default()
        }
    }

    /// The geometric mean over the programs, or nothing where the scheme needs more.
    fn overall(&self, memory: usize, scheme: usize) -> Option<f64> {
        let each: Result<Vec<f64>, u64> =
            (0..self.names.len()).map(|program| Ok(self.slower(program, memory, scheme)?.mean().ln())).collect();
        each.ok().map(|logarithms| (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp())
    }

    fn overall_table(&self) -> Table {
        let mut columns = vec!["memory"];
        columns.extend(SCHEMES.iter().map(|scheme| scheme.name()));
        let title = format!("{} processes: geometric mean of these multiples over all programs", self.processes);
        let mut table = Table::new(&format!("overall{}", self.processes), &title, &columns);
        for (memory, &bytes) in self.memories.iter().enumerate() {
            let cells = (0..SCHEMES.len()).map(|scheme| match self.overall(memory, scheme) {
                Some(slower) => format!("{slower:.2}"),
                None => match flow(SCHEMES[scheme], self.processes, bytes) {
                    Err(least) => format!("needs {}", size(least)),
                    Ok(_) => String::new(),
                },
            });
            table.row(std::iter::once(size(bytes)).chain(cells));
        }
        table
    }
}

/// The time of a run: of the process that took longest, because roles differ.
fn time(run: &Measurement) -> f64 {
    run.posted.map_or(run.time, |posted| posted.last_us)
}

fn control(run: &Measurement) -> f64 {
    let counters = [Counter::CreditPackets, Counter::ReturnRequests, Counter::ReturnResponses];
    counters.into_iter().map(|counter| run.counter(counter) as f64).sum()
}

/// Bytes for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0).replace(".0 ", " "),
    }
}

const KIB: u64 = 1024;

/// The comparison.
pub(super) fn run(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let small = Cluster { eager_bytes: 2 << 10, rendezvous: Rendezvous::Read, ..Cluster::of_a(32) };
    let memories = workshop.scale.pick(
        vec![8 * KIB, 32 * KIB, 128 * KIB, 512 * KIB, 4096 * KIB],
        vec![8 * KIB, 128 * KIB, 4096 * KIB],
        vec![8 * KIB, 4096 * KIB],
    );
    let job = Job::run(workshop, small, memories)?;
    let last = job.memories.len() - 1;
    let plenty: Vec<f64> = (0..SCHEMES.len()).filter_map(|scheme| job.overall(last, scheme)).collect();
    let place = |scheme: SchemeName| SCHEMES.iter().position(|other| *other == scheme).unwrap_or(0);
    let at_least = |scheme| job.overall(0, place(scheme));
    let (fixed, moving) = (at_least(SchemeName::Static), at_least(SchemeName::Dynamic));
    let pool = at_least(SchemeName::SharedWindow);
    let said = |value: Option<f64>| value.map_or("cannot run".to_owned(), |value| format!("{value:.2}"));
    let list = SCHEMES
        .iter()
        .zip(&plenty)
        .map(|(scheme, value)| format!("{scheme} {value:.2}"))
        .collect::<Vec<_>>()
        .join(", ");
    let facts = vec![
        Fact::tested(
            "With the most memory all seven schemes take the same time (64 processes, mean over all programs, at most 5 % \
             beyond none at all).",
            plenty.len() == SCHEMES.len() && plenty.iter().all(|slower| *slower <= 1.05),
            "expected: memory decides, not the scheme",
            list,
        )
        .perhaps_because(PLENTY),
        Fact::tested(
            "With the least memory a pool serves 64 processes better than credits for each connection do.",
            pool.zip(fixed).is_some_and(|(pool, fixed)| pool < fixed),
            "expected: what is shared goes further",
            format!("shared_window {}, static {}, dynamic {}", said(pool), said(fixed), said(moving)),
        )
        .perhaps_because(LEAST),
    ];
    let setup = format!(
        "One machine, infiniband2007 with the eager limit at 2 KiB and long messages read by their receivers: 64 processes \
         on 32 nodes. A posted buffer takes {BUFFER_BYTES} bytes, a slot 64. The expectations are ours: no paper has this. Jobs \
         of 1,024 processes are left out: with a pool of few buffers and an all-to-all, retries alone make a run of hours."
    );
    let (figures, tables) = (vec![job.figure()], vec![job.overall_table(), job.table(), job.counts()]);
    Ok(Findings { setup, figures, tables, facts })
}

const PLENTY: &str = "growing begins with one buffer however much memory there is, and these programs are short; dynamic handles more \
    control packets (the table of counts has how many).";
const LEAST: &str = "with 8 KiB the pool has a single buffer for all, and whoever finds it taken waits for the retry timer, 0.64 ms, \
    where a sender without credits waits only until they come back.";
