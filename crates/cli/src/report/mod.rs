//! Counter pages into a report.
//!
//! * [`launches`]: which pages belong together;
//! * [`verdict`]: what happened, first and in few lines;
//! * [`table`]: all that was counted, for people;
//! * [`memory`]: the part of that text about receive memory;
//! * [`waits`]: for whom sends waited longest;
//! * [`ways`]: which way long messages went within a host, and why;
//! * [`open`]: what was still open at the end;
//! * [`ending`]: how the job ended;
//! * [`host`]: what this host has to say of a job that failed;
//! * [`names`]: ranks for what pages name by numbers;
//! * [`width`]: how wide all that may be;
//! * [`json`]: for programs;
//! * [`usage`]: whether the messages went through Tidegate at all, and what to say if not;
//! * [`units`]: numbers as people read them.

pub mod chosen;
pub mod ending;
pub mod host;
pub mod json;
pub mod launches;
pub mod memory;
pub mod names;
pub mod open;
pub mod table;
pub mod typed;
pub mod units;
pub mod usage;
pub mod verdict;
pub mod waits;
pub mod ways;
pub mod width;

use std::collections::HashMap;

use tidegate_flow::{ReceiverResource, SchemeName};
use tidegate_link::{Chosen, Chunk, EndpointStats, PostedBuffers};
use tidegate_message::{Counter, WAY_CLASSES, WaitCause, WayTimes};

use crate::mpi::MpiKind;
use crate::top;
use ending::Unclosed;
use names::Names;
use open::Left;
use waits::Waits;

/// How an endpoint was set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Flow control.
    pub scheme: SchemeName,
    /// Mailbox slots per peer, credit slots included.
    pub slots_per_peer: u32,
    /// Of those, for credit packets.
    pub credit_slots: u32,
    /// Whether credits ride on data packets.
    pub piggyback: bool,
    /// Peers that may connect.
    pub peers: u32,
    /// Of those, how many share the slots at the start; `None`: all.
    pub expected_peers: Option<u32>,
    /// The settings that were chosen because the user left them open.
    pub chosen: Chosen,
    /// Posted buffers, where the scheme has such.
    pub posted: Option<PostedBuffers>,
    /// How bulk data travels.
    pub bulk: String,
    /// What reaches other hosts; empty: nothing.
    pub network: String,
    /// Polls that find nothing before the processor is given away.
    pub spin: u32,
    /// How much of a long message is taken at a time within a host, if that is known.
    pub chunk: Option<Chunk>,
    /// The same between hosts.
    pub chunk_between_hosts: Option<Chunk>,
}

impl Setup {
    /// What receivers lend, in words.
    pub fn lends(&self) -> String {
        lends(self.scheme, self.slots_per_peer, self.credit_slots, self.posted)
    }
}

/// What receivers lend, in words: slots of a mailbox, or buffers.
pub fn lends(scheme: SchemeName, slots_per_peer: u32, credit_slots: u32, posted: Option<PostedBuffers>) -> String {
    let Some(PostedBuffers { packets, each, most, pool_first, pool_most }) = posted else {
        return format!("{slots_per_peer} slots per peer, {credit_slots} of them for credit packets");
    };
    let many = match scheme.lends() {
        ReceiverResource::PoolSlots => return format!("{pool_most} slots for all peers"),
        ReceiverResource::PoolBuffers if pool_first == pool_most => {
            format!("{pool_first} posted buffers for all peers")
        }
        ReceiverResource::PoolBuffers => format!("{pool_first} to {pool_most} posted buffers for all peers"),
        ReceiverResource::GrowingBuffers => format!("{each} posted buffers per peer, at most {most} times the peers"),
        _ => format!("{each} posted buffers per peer"),
    };
    format!("{many}, of {packets} packets each")
}

/// What one process did, over all its endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its rank, if known.
    pub rank: Option<u32>,
    /// Its process id.
    pub pid: u32,
    /// Its host.
    pub host: String,
    /// Ranks of its job, if known.
    pub job_size: Option<u32>,
    /// Name of its program.
    pub program: String,
    /// How fast long messages came each way within the host, of each endpoint, by class.
    pub way_times: Vec<[WayTimes; WAY_CLASSES]>,
    /// How many endpoints it had.
    pub endpoints: u32,
    /// How the first of them was set up.
    pub setup: Setup,
    values: [u64; Counter::COUNT],
}

impl Process {
    fn of(page: &EndpointStats) -> Self {
        Process {
            rank: page.rank,
            pid: page.pid,
            host: page.host.clone(),
            job_size: page.job_size,
            program: page.program.clone(),
            endpoints: 1,
            setup: Setup {
                scheme: page.scheme,
                slots_per_peer: page.slots_per_peer,
                credit_slots: page.credit_slots,
                piggyback: page.piggyback,
                peers: page.peers,
                expected_peers: page.expected_peers,
                chosen: page.chosen,
                posted: page.posted,
                bulk: page.bulk.clone(),
                network: page.network.clone(),
                spin: page.spin,
                chunk: page.chunk,
                chunk_between_hosts: page.chunk_between_hosts,
            },
            way_times: vec![page.open.way_times],
            values: std::array::from_fn(|index| page.get(Counter::ALL[index])),
        }
    }

    fn is_same(&self, other: &Process) -> bool {
        (self.pid, self.rank, &self.host) == (other.pid, other.rank, &other.host)
    }

    fn merge(&mut self, other: &Process) {
        self.endpoints += other.endpoints;
        self.way_times.extend_from_slice(&other.way_times);
        for counter in Counter::ALL {
            self.values[*counter as usize] =
                counter.within_process().of([self.get(*counter), other.get(*counter)].into_iter());
        }
    }

    /// The value of a counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize]
    }
}

/// All processes of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    processes: Vec<Process>,
}

/// One launch: what its processes did, and how they ended.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What its processes did.
    pub job: Job,
    /// What was open when they ended.
    pub left: Left,
    /// Who did not close.
    pub unclosed: Unclosed,
    /// For whom sends waited.
    pub waits: Waits,
    /// Who held up whom when it ended, in a sentence.
    pub held_up: Option<String>,
    /// What its endpoints are called.
    pub names: Names,
}

impl Launch {
    /// What the pages of a launch say. `mpi`: which it is, as far as the pages do not tell.
    pub fn of(pages: &[EndpointStats], mpi: Option<MpiKind>) -> Launch {
        Launch {
            job: Job::new(pages),
            left: Left::of(pages, mpi),
            unclosed: Unclosed::of(pages),
            waits: Waits::of(pages),
            held_up: top::at_the_end(pages, mpi.map(MpiKind::id)),
            names: Names::of(pages),
        }
    }
}

/// A counter over the processes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Sum or maximum, as the counter says.
    pub job: u64,
    /// Least of a process.
    pub min: u64,
    /// Median of the processes; of an even number, the mean of the middle two, rounded down.
    pub median: u64,
    /// Most of a process.
    pub max: u64,
    /// The index of the first process with that maximum.
    pub max_at: usize,
}

impl Job {
    /// Puts endpoints of one process together, and processes in order of rank.
    pub fn new(pages: &[EndpointStats]) -> Self {
        let mut job = Job::of(pages.iter().map(Process::of));
        job.note_deferrals(pages);
        job
    }

    /// A receiver that was not in MPI has not counted how long peers have deferred sends for it. They know.
    fn note_deferrals(&mut self, pages: &[EndpointStats]) {
        let receivers: HashMap<u64, &EndpointStats> = pages.iter().map(|page| (page.endpoint, page)).collect();
        for wait in pages.iter().flat_map(|page| &page.open.waits) {
            let receiver = wait.peer.and_then(|peer| receivers.get(&peer));
            let (Some(receiver), Some(open_for), WaitCause::Window) = (receiver, wait.open_for(), wait.cause) else {
                continue;
            };
            let is_its = |process: &&mut Process| process.is_same(&Process::of(receiver));
            if let Some(process) = self.processes.iter_mut().find(is_its) {
                let pressure = &mut process.values[Counter::PressureNanoseconds as usize];
                *pressure = (*pressure).max(u64::try_from(open_for.as_nanos()).unwrap_or(u64::MAX));
            }
        }
    }

    fn of(parts: impl Iterator<Item = Process>) -> Self {
        let mut processes: Vec<Process> = Vec::new();
        for part in parts {
            match processes.iter_mut().find(|process| process.is_same(&part)) {
                Some(process) => process.merge(&part),
                None => processes.push(part),
            }
        }
        processes.sort_by_key(|process| (process.rank.unwrap_or(u32::MAX), process.pid));
        Job { processes }
    }

    /// The processes, in order of rank.
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// Ranks of which nothing has come in, and how many ranks the job has, where its processes know.
    pub fn absent(&self) -> (Vec<u32>, u32) {
        let size = self.processes.iter().filter_map(|process| process.job_size).max().unwrap_or(0);
        let is_here = |rank| self.processes.iter().any(|process| process.rank == Some(rank));
        let told = self.processes.iter().all(|process| process.rank.is_some());
        ((0..size).filter(|rank| told && !is_here(*rank)).collect(), size)
    }

    /// Whether it has ranks on other hosts, as far as that is known: then it has opened a network.
    pub fn has_other_hosts(&self) -> bool {
        self.processes.iter().any(|process| !process.setup.network.is_empty())
    }

    /// A counter over all processes; `None` if there is no process.
    pub fn spread(&self, counter: Counter) -> Option<Spread> {
        let mut values: Vec<u64> = self.processes.iter().map(|process| process.get(counter)).collect();
        let max = *values.iter().max()?;
        let max_at = values.iter().position(|value| *value == max)?;
        values.sort_unstable();
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        let median = low + (high - low) / 2;
        Some(Spread { job: counter.aggregate().of(values.iter().copied()), min: values[0], median, max, max_at })
    }
}

/// What `of` returns for the processes: each different text once, separated by `|`.
fn distinct(job: &Job, of: &dyn Fn(&Process) -> String) -> String {
    let mut values: Vec<String> = Vec::new();
    for value in job.processes().iter().map(of) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values.join("|")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A process with one endpoint and the given values; the rest is 0.
    pub fn process(rank: u32, values: &[(Counter, u64)]) -> Process {
        let mut process = Process {
            rank: Some(rank),
            pid: 1000 + rank,
            host: "h".into(),
            job_size: Some(4),
            program: "a.out".into(),
            endpoints: 1,
            setup: Setup {
                scheme: SchemeName::Dynamic,
                slots_per_peer: 64,
                credit_slots: 2,
                piggyback: true,
                peers: 20,
                expected_peers: None,
                chosen: Chosen::default(),
                posted: None,
                bulk: "direct".into(),
                network: String::new(),
                spin: 2000,
                chunk: Some(Chunk::Bytes(1 << 20)),
                chunk_between_hosts: None,
            },
            way_times: Vec::new(),
            values: [0; Counter::COUNT],
        };
        for (counter, value) in values {
            process.values[*counter as usize] = *value;
        }
        process
    }

    /// A job of these processes.
    pub fn job(processes: Vec<Process>) -> Job {
        Job::of(processes.into_iter())
    }

    /// A launch of these processes, in which nothing was open.
    pub fn launch_of(job: Job) -> Launch {
        Launch { job, ..Launch::of(&[], None) }
    }

    #[test]
    fn endpoints_of_a_process_become_one_line() {
        let first = process(0, &[(Counter::PacketsSent, 5), (Counter::MailboxPeak, 7)]);
        let second = process(0, &[(Counter::PacketsSent, 6), (Counter::MailboxPeak, 3)]);
        let job = job(vec![first, second]);
        assert_eq!(job.processes().len(), 1);
        let only = &job.processes()[0];
        assert_eq!((only.endpoints, only.get(Counter::PacketsSent), only.get(Counter::MailboxPeak)), (2, 11, 7));
    }

    #[test]
    fn equal_ranks_of_two_jobs_stay_apart() {
        let mut other = process(0, &[]);
        other.pid = 5;
        assert_eq!(job(vec![process(0, &[]), other]).processes().len(), 2);
    }

    #[test]
    fn processes_come_in_order_of_rank_those_without_last() {
        let mut unknown = process(0, &[]);
        unknown.rank = None;
        let job = job(vec![unknown, process(2, &[]), process(1, &[])]);
        assert_eq!(job.processes().iter().map(|p| p.rank).collect::<Vec<_>>(), [Some(1), Some(2), None]);
    }

    #[test]
    fn the_spread_of_a_counter_is_right_for_odd_and_even_numbers() {
        let sent = |values: &[u64]| {
            let processes =
                values.iter().enumerate().map(|(rank, v)| process(rank as u32, &[(Counter::PacketsSent, *v)]));
            job(processes.collect()).spread(Counter::PacketsSent)
        };
        assert_eq!(sent(&[]), None);
        assert_eq!(sent(&[9]), Some(Spread { job: 9, min: 9, median: 9, max: 9, max_at: 0 }));
        assert_eq!(sent(&[9, 1, 5]), Some(Spread { job: 15, min: 1, median: 5, max: 9, max_at: 0 }));
        assert_eq!(sent(&[1, 9, 5, 9]), Some(Spread { job: 24, min: 1, median: 7, max: 9, max_at: 1 }));
    }

    #[test]
    fn high_water_marks_do_not_add_up() {
        let peak = |rank, value| process(rank, &[(Counter::MailboxPeak, value)]);
        assert_eq!(job(vec![peak(0, 4), peak(1, 9), peak(2, 2)]).spread(Counter::MailboxPeak).unwrap().job, 9);
    }
}
