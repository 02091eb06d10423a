//! [`Job`]: the processes that belong together, each with its rank in the trace.
//!
//! A command may run several jobs, and a job may start processes. Of one job are processes that have exchanged
//! messages, and those of one size whose ranks complete each other. Where the launcher has numbered them without a gap
//! or a repetition, these are the ranks; else (a job that has started processes) they are numbered anew, in order:
//! first those that others have not started, by rank.

use std::collections::HashMap;

use super::left::{Place, Process};

/// A job of more ranks is none: traces of more cannot be replayed, and a damaged file may have any number.
const RANKS_MOST: u32 = 1 << 20;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Its processes, in order of rank.
    pub processes: Vec<Process>,
    /// The rank of each in the trace.
    pub ranks: Vec<u32>,
    /// Ranks of the trace.
    pub size: u32,
}

impl Job {
    /// The jobs of these processes, in the order in which they began.
    pub fn all(processes: Vec<Process>) -> Vec<Job> {
        let mut groups = complete(connected(processes));
        groups.sort_by_key(|group| group.iter().map(|process| process.begun).min());
        groups.into_iter().map(Job::of).collect()
    }

    fn of(mut processes: Vec<Process>) -> Job {
        processes
            .sort_by_key(|process| (process.is_spawned, process.rank.unwrap_or(u32::MAX), process.begun, process.pid));
        let told: Option<Vec<u32>> = processes.iter().map(|process| process.rank).collect();
        let size = processes.iter().filter_map(|process| process.job_size).max().unwrap_or(0);
        match told {
            Some(ranks)
                if size <= RANKS_MOST
                    && ranks.is_sorted_by(|one, other| one < other)
                    && ranks.iter().all(|rank| *rank < size) =>
            {
                Job { processes, ranks, size }
            }
            _ => {
                let size = processes.len() as u32;
                Job { processes, ranks: (0..size).collect(), size }
            }
        }
    }

    /// Ranks that left nothing.
    pub fn absent(&self) -> Vec<u32> {
        (0..self.size).filter(|rank| self.ranks.binary_search(rank).is_err()).collect()
    }

    /// The process, and its endpoint, at each address.
    pub fn places(&self) -> HashMap<Place, (usize, u64)> {
        let of = |(index, process): (usize, &Process)| -> Vec<(Place, (usize, u64))> {
            process.endpoints.iter().enumerate().map(|(endpoint, place)| (*place, (index, endpoint as u64))).collect()
        };
        self.processes.iter().enumerate().flat_map(of).collect()
    }
}

/// Processes that have exchanged messages, directly or by others, together.
fn connected(processes: Vec<Process>) -> Vec<Vec<Process>> {
    let mut owner: HashMap<Place, usize> = HashMap::new();
    for (index, process) in processes.iter().enumerate() {
        owner.extend(process.endpoints.iter().map(|place| (*place, index)));
    }
    let mut group: Vec<usize> = (0..processes.len()).collect();
    for (index, process) in processes.iter().enumerate() {
        for peer in process.peers.iter().filter_map(|place| owner.get(place)) {
            let (one, other) = (find(&mut group, index), find(&mut group, *peer));
            group[one.max(other)] = one.min(other);
        }
    }
    let mut groups: Vec<Vec<Process>> = (0..processes.len()).map(|_| Vec::new()).collect();
    for (index, process) in processes.into_iter().enumerate() {
        groups[find(&mut group, index)].push(process);
    }
    groups.retain(|group| !group.is_empty());
    groups
}

/// The first of the group that `index` is in.
fn find(group: &mut [usize], mut index: usize) -> usize {
    while group[index] != index {
        group[index] = group[group[index]];
        index = group[index];
    }
    index
}

/// Puts groups together whose ranks complete each other, nearest in time first.
fn complete(groups: Vec<Vec<Process>>) -> Vec<Vec<Process>> {
    let mut jobs: Vec<Vec<Process>> = Vec::new();
    let mut groups = groups;
    // Those with most processes are jobs of their own; what is small completes them.
    groups.sort_by_key(|group| (std::cmp::Reverse(group.len()), group[0].begun));
    for group in groups {
        let fits = |job: &&mut Vec<Process>| {
            let all = || job.iter().chain(&group);
            let size = group[0].job_size;
            size.is_some()
                && all().all(|process| process.job_size == size && !process.is_spawned && process.rank.is_some())
                && !group.iter().any(|process| job.iter().any(|other| other.rank == process.rank))
        };
        let begun = group[0].begun;
        match jobs.iter_mut().filter(fits).min_by_key(|job| job[0].begun.abs_diff(begun)) {
            Some(job) => job.extend(group),
            None => jobs.push(group),
        }
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::left::tests::place;

    /// A process with an endpoint of its own that has talked with those of these numbers.
    fn process(number: u8, rank: u32, size: u32, peers: &[u8]) -> Process {
        Process {
            pid: number.into(),
            rank: Some(rank),
            job_size: Some(size),
            begun: number.into(),
            endpoints: vec![place(number)],
            peers: peers.iter().map(|peer| place(*peer)).collect(),
            ..Process::default()
        }
    }

    /// Jobs as text: pid and rank of each process.
    fn print(processes: Vec<Process>) -> Vec<String> {
        let print = |job: &Job| {
            let all = job.processes.iter().zip(&job.ranks).map(|(process, rank)| format!("{}={rank}", process.pid));
            format!("{} of {}", all.collect::<Vec<_>>().join(" "), job.size)
        };
        Job::all(processes).iter().map(print).collect()
    }

    #[test]
    fn jobs_that_have_not_talked_are_two_and_come_in_order() {
        let processes =
            vec![process(10, 1, 2, &[11]), process(1, 0, 2, &[2]), process(11, 0, 2, &[]), process(2, 1, 2, &[])];
        assert_eq!(print(processes), ["1=0 2=1 of 2", "11=0 10=1 of 2"]);
    }

    #[test]
    fn ranks_that_talked_with_nobody_complete_their_job() {
        let processes = vec![process(1, 0, 4, &[3]), process(2, 1, 4, &[]), process(3, 2, 4, &[])];
        assert_eq!(print(processes), ["1=0 2=1 3=2 of 4"]);
        assert_eq!(Job::all(vec![process(1, 0, 4, &[3]), process(3, 2, 4, &[])])[0].absent(), [1, 3]);
    }

    #[test]
    fn processes_that_were_started_come_behind_those_that_started_them() {
        let mut child = process(5, 0, 1, &[1]);
        child.is_spawned = true;
        let processes = vec![child, process(2, 1, 2, &[1]), process(1, 0, 2, &[])];
        assert_eq!(print(processes), ["1=0 2=1 5=2 of 3"]);
    }

    #[test]
    fn without_a_launcher_the_first_to_begin_is_rank_0() {
        let nameless = |number, peers: &[u8]| Process { rank: None, job_size: None, ..process(number, 0, 0, peers) };
        assert_eq!(print(vec![nameless(9, &[4]), nameless(4, &[])]), ["4=0 9=1 of 2"]);
    }

    #[test]
    fn a_damaged_number_of_ranks_counts_for_nothing() {
        // Four billion ranks without anything in them took all memory.
        let processes = vec![process(1, 0, u32::MAX, &[2]), process(2, 1, 2, &[])];
        assert_eq!(print(processes), ["1=0 2=1 of 2"]);
    }
}
