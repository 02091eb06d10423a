//! A job of the comparison: all programs with all schemes at each memory, and the tables of that.

use std::fmt;

use tidegate_flow::{Buffers, Config, SchemeName};
use tidegate_message::Counter;
use tidegate_sim::{Estimate, FlowChoice, Measurement, SimulationError};

use crate::report::{AsPoint, Figure, Series, Table};
use crate::run::case::{Case, Workload};
use crate::run::machine::Cluster;
use crate::runs::Runs;
use crate::workshop::Workshop;

/// The schemes, those of P first.
pub(crate) const SCHEMES: &[SchemeName] = SchemeName::OFFERED;

/// Bytes of a slot of a mailbox.
pub(crate) const SLOT_BYTES: u64 = 64;
/// Packets and bytes of a posted buffer, which holds a message of 2 KiB with its header.
pub(crate) const BUFFER_PACKETS: u32 = 37;
pub(crate) const BUFFER_BYTES: u64 = BUFFER_PACKETS as u64 * tidegate_flow::PAYLOAD_BYTES as u64;

/// A scheme for so many processes with so many bytes of receive memory each; or the fewest bytes that it needs.
pub(crate) fn flow(scheme: SchemeName, processes: u32, bytes: u64) -> Result<FlowChoice, u64> {
    let peers = u64::from(processes) - 1;
    if scheme == SchemeName::SharedWindow {
        // A pool posts others for those that are full, up to twice its largest window, and has a spare one.
        let usual = buffers(scheme);
        let pool_most = Buffers::pool_most_within((bytes / BUFFER_BYTES) as u32);
        if pool_most == 0 {
            let least = Buffers { pool_most: 1, ..usual };
            return Err(u64::from(least.pool_bound()) * BUFFER_BYTES);
        }
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
pub(crate) type Program = (&'static str, Workload);

/// Time beside that in mailboxes without end, or why there is none.
#[derive(Clone, Debug)]
pub(crate) enum Slower {
    Times(Estimate),
    /// More than that: the run was ended before its programs.
    Over(f64),
    /// The scheme needs so many bytes at least.
    Needs(u64),
    /// It would take too long to simulate.
    LeftOut,
}

impl fmt::Display for Slower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slower::Times(times) => write!(f, "{:.2}", times.mean()),
            Slower::Over(times) => write!(f, "over {times:.1}"),
            Slower::Needs(bytes) => write!(f, "needs {}", size(*bytes)),
            Slower::LeftOut => f.write_str("not run"),
        }
    }
}

/// How much of a job is run.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// When a run is ended, in microseconds.
    pub time_most_us: Option<u32>,
    /// Programs and memories that are left out.
    pub left_out: &'static [(&'static str, u64)],
    /// Schemes that are run.
    pub schemes: &'static [SchemeName],
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { time_most_us: None, left_out: &[], schemes: SCHEMES }
    }
}

/// All runs of a size: by program, by memory, by scheme.
pub(crate) struct Job {
    pub processes: u32,
    pub memories: Vec<u64>,
    schemes: &'static [SchemeName],
    names: Vec<&'static str>,
    references: Vec<Runs>,
    cells: Vec<Vec<Vec<Result<Runs, Slower>>>>,
}

impl Job {
    pub fn run(
        workshop: &Workshop<'_>,
        cluster: Cluster,
        memories: Vec<u64>,
        programs: &[Program],
        bounds: Bounds,
    ) -> Result<Self, SimulationError> {
        let processes = cluster.processes();
        let chosen = |name: &str, memory: u64, scheme: SchemeName| {
            let flow = flow(scheme, processes, memory).map_err(Slower::Needs)?;
            if bounds.left_out.contains(&(name, memory)) { Err(Slower::LeftOut) } else { Ok(flow) }
        };
        let mut cases = Vec::new();
        for (name, workload) in programs {
            let whole = |flow| Case::on_cluster(cluster, flow, workload.clone());
            let case = |flow| Case { time_most_us: bounds.time_most_us, ..whole(flow) };
            cases.push(whole(FlowChoice::Unlimited));
            for &memory in &memories {
                cases.extend(bounds.schemes.iter().filter_map(|&scheme| chosen(name, memory, scheme).ok()).map(case));
            }
        }
        let mut runs = workshop.run(&cases)?.into_iter();
        let mut next = || runs.next().expect("a result for every case");
        let (mut references, mut cells) = (Vec::new(), Vec::new());
        for (name, _) in programs {
            references.push(next());
            let of = |&memory: &u64| {
                let cell = |&scheme: &SchemeName| chosen(name, memory, scheme).map(|_| next());
                bounds.schemes.iter().map(cell).collect()
            };
            cells.push(memories.iter().map(of).collect());
        }
        let names = programs.iter().map(|program| program.0).collect();
        Ok(Job { processes, memories, schemes: bounds.schemes, names, references, cells })
    }

    fn slower(&self, program: usize, memory: usize, scheme: usize) -> Slower {
        let runs = match &self.cells[program][memory][scheme] {
            Ok(runs) => runs,
            Err(why) => return why.clone(),
        };
        let times = runs.paired(&self.references[program], |run, reference| time(run) / time(reference));
        if runs.0.iter().any(|run| run.cut_us.is_some()) { Slower::Over(times.mean()) } else { Slower::Times(times) }
    }

    pub fn table(&self) -> Table {
        let title = format!(
            "{} processes: time, as a multiple of that in mailboxes without end; below a scheme's least memory, that least",
            self.processes
        );
        let mut columns = vec!["program", "memory"];
        columns.extend(self.schemes.iter().map(|scheme| scheme.name()));
        let mut table = Table::new(&format!("time{}", self.processes), &title, &columns);
        for (program, name) in self.names.iter().enumerate() {
            for (memory, &bytes) in self.memories.iter().enumerate() {
                let cells = (0..self.schemes.len()).map(|scheme| self.slower(program, memory, scheme).to_string());
                table.row([(*name).to_owned(), size(bytes)].into_iter().chain(cells));
            }
        }
        table
    }

    /// What runs of all programs counted at one memory, by scheme.
    pub fn counts(&self) -> Table {
        let title = format!(
            "{} processes, all programs together, per thousand messages: refusals (or packets that found a mailbox full), \
             and control packets; memory that a process had set aside or posted, and unexpected messages beside it, at most \
             (KiB)",
            self.processes
        );
        let columns = ["memory", "scheme", "refusals", "control packets", "set aside (KiB)", "unexpected (KiB)"];
        let mut table = Table::new(&format!("counts{}", self.processes), &title, &columns);
        for (memory, &bytes) in self.memories.iter().enumerate() {
            for (scheme, name) in self.schemes.iter().enumerate() {
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

    pub fn figure(&self) -> Figure {
        let mut series = Vec::new();
        for (program, name) in self.names.iter().enumerate() {
            for (scheme, of) in self.schemes.iter().enumerate() {
                let point = |(memory, &bytes): (usize, &u64)| {
                    let Slower::Times(slower) = self.slower(program, memory, scheme) else { return None };
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

    /// The geometric mean over the programs, or nothing where the scheme needs more, or some run was ended early.
    pub fn overall(&self, memory: usize, scheme: usize) -> Option<f64> {
        match self.mean(memory, scheme) {
            Slower::Times(times) => Some(times.mean()),
            Slower::Over(_) | Slower::Needs(_) | Slower::LeftOut => None,
        }
    }

    /// The same; of runs that were ended early, less than that.
    pub fn overall_at_least(&self, memory: usize, scheme: usize) -> Option<f64> {
        match self.mean(memory, scheme) {
            Slower::Times(times) => Some(times.mean()),
            Slower::Over(times) => Some(times),
            Slower::Needs(_) | Slower::LeftOut => None,
        }
    }

    /// As the table of means says it.
    pub fn overall_said(&self, memory: usize, scheme: usize) -> String {
        self.mean(memory, scheme).to_string()
    }

    fn mean(&self, memory: usize, scheme: usize) -> Slower {
        let (mut logarithms, mut ran, mut is_over) = (0.0, 0, false);
        for program in 0..self.names.len() {
            match self.slower(program, memory, scheme) {
                Slower::Times(times) => {
                    logarithms += times.mean().ln();
                    ran += 1;
                }
                Slower::Over(times) => {
                    logarithms += times.ln();
                    (ran, is_over) = (ran + 1, true);
                }
                needs @ Slower::Needs(_) => return needs,
                Slower::LeftOut => {}
            }
        }
        if ran == 0 {
            return Slower::LeftOut;
        }
        let mean = (logarithms / f64::from(ran)).exp();
        if is_over { Slower::Over(mean) } else { Slower::Times(Estimate::new([mean])) }
    }

    pub fn overall_table(&self) -> Table {
        let mut columns = vec!["memory"];
        columns.extend(self.schemes.iter().map(|scheme| scheme.name()));
        let title =
            format!("{} processes: geometric mean of these multiples over all programs that were run", self.processes);
        let mut table = Table::new(&format!("overall{}", self.processes), &title, &columns);
        for (memory, &bytes) in self.memories.iter().enumerate() {
            let cells = (0..self.schemes.len()).map(|scheme| self.mean(memory, scheme).to_string());
            table.row(std::iter::once(size(bytes)).chain(cells));
        }
        table
    }
}

/// The place of a scheme in [`SCHEMES`].
pub(crate) fn place(scheme: SchemeName) -> usize {
    SCHEMES.iter().position(|other| *other == scheme).unwrap_or(0)
}

/// The time of a run: of the process that took longest, because roles differ. Of a run that was ended early, until
/// then.
pub(crate) fn time(run: &Measurement) -> f64 {
    run.cut_us.unwrap_or(run.posted.map_or(run.time, |posted| posted.last_us))
}

fn control(run: &Measurement) -> f64 {
    let counters = [Counter::CreditPackets, Counter::ReturnRequests, Counter::ReturnResponses];
    counters.into_iter().map(|counter| run.counter(counter) as f64).sum()
}

/// Bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0).replace(".0 ", " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;
    use crate::workshop::Scale;
    use tidegate_sim::workload::{Benchmark, Operation};

    #[test]
    fn what_schemes_need_at_least_grows_with_the_job_but_for_a_pool() {
        let needs = |scheme, processes| flow(scheme, processes, 4 << 10).err();
        assert_eq!(needs(SchemeName::Static, 64), Some(2 * 63 * 64));
        assert_eq!(needs(SchemeName::Static, 1024), Some(2 * 1023 * 64));
        assert_eq!(needs(SchemeName::Rnr, 1024), Some(1023 * 2072));
        // One posted, one in use meanwhile, and the spare one.
        assert_eq!(needs(SchemeName::SharedWindow, 64), Some(3 * 2072));
        assert_eq!(needs(SchemeName::SharedWindow, 1024), Some(3 * 2072));
        assert!(flow(SchemeName::Rnr, 1024, 4 << 20).is_ok(), "4 MiB are one buffer for each connection");
    }

    #[test]
    fn a_run_that_is_ended_early_has_taken_longer_than_that() {
        let workshop = Workshop::new(Scale::Smallest, 1, Some(1), &Silent);
        let workload = Workload::Benchmark(Benchmark::new(Operation::Exchange));
        let programs = [("Exchange", workload)];
        let job = |time_most_us| {
            let bounds = Bounds { time_most_us, left_out: &[("Exchange", 32 << 10)], ..Bounds::default() };
            Job::run(&workshop, Cluster::of_a(4), vec![64 << 10, 32 << 10], &programs, bounds)
        };
        let said = |job: &Job, scheme| job.slower(0, 0, place(scheme)).to_string();
        let (whole, cut) = (job(None).unwrap(), job(Some(1)).unwrap());
        assert_eq!(said(&whole, SchemeName::None), "1.00");
        assert!(whole.overall(0, place(SchemeName::None)).is_some());
        assert!(said(&cut, SchemeName::None).starts_with("over 0."));
        assert_eq!(cut.overall(0, place(SchemeName::None)), None);
        assert_eq!(whole.slower(0, 1, place(SchemeName::None)).to_string(), "not run");
    }
}
