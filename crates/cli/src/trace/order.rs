//! Which waits of the recording a replay may keep.
//!
//! A process that waits for a message learns of sends that happen to be over meanwhile. The simple idea, that in a
//! replay it waits for those too at that point, can hang: in the run such a send was over because its message lay in
//! the receiver's mailbox; with less memory it is over only when it is received, and its receiver may be waiting for
//! something that this process sends after that point. MPI calls such a program correct.
//!
//! So all is run through once as though every send were over only when its receive has been posted, the latest that any
//! flow control may make of it. Where processes wait for each other in a circle, one of them goes on without waiting
//! for its send there, and waits for it where it waits next. What is left ends under every flow control, and under
//! those that end sends earlier it waits no longer than the run did.

use std::collections::VecDeque;

use super::job::Job;
use super::left::{Step, Way};

/// Takes all steps out of the courses that have no partner, and moves waits for sends as described in the module.
/// Returns how many waits were moved or dropped.
pub fn relax(job: &mut Job) -> u64 {
    for process in &mut job.processes {
        let operations = &process.operations;
        process.course.retain(|step| match step {
            Step::Compute(_) => true,
            Step::Start(at) | Step::Wait(at) => operations[*at].partner.is_some(),
        });
    }
    let mut running = Running::new(job);
    loop {
        running.go_on();
        let Some(circle) = running.find_circle() else { break };
        running.open(&circle);
    }
    let (courses, moved) = (running.courses(), running.moved);
    for (process, course) in job.processes.iter_mut().zip(courses) {
        process.course = course;
    }
    moved
}

/// How far a process has come.
#[derive(Debug, Default)]
struct Progress {
    /// The next step of the recording.
    next: usize,
    /// Operations whose ends it waits for, now, in this order.
    waits: VecDeque<usize>,
    /// Sends that it will wait for where it waits next.
    postponed: Vec<usize>,
    /// The steps that it has taken.
    taken: Vec<Step>,
}

/// All processes of a job, run as the module says.
struct Running<'a> {
    job: &'a Job,
    progress: Vec<Progress>,
    /// By process and operation, whether it has been started.
    started: Vec<Vec<bool>>,
    /// Processes that may be able to go on.
    ready: Vec<usize>,
    moved: u64,
}

impl<'a> Running<'a> {
    fn new(job: &'a Job) -> Self {
        let count = job.processes.len();
        Running {
            job,
            progress: (0..count).map(|_| Progress::default()).collect(),
            started: job.processes.iter().map(|process| vec![false; process.operations.len()]).collect(),
            ready: (0..count).rev().collect(),
            moved: 0,
        }
    }

    /// Lets all processes go on until none can.
    fn go_on(&mut self) {
        while let Some(index) = self.ready.pop() {
            while self.step(index) {}
        }
    }

    /// One step of a process. Returns whether it took one.
    fn step(&mut self, index: usize) -> bool {
        let process = &self.job.processes[index];
        if let Some(&at) = self.progress[index].waits.front() {
            return self.is_over(index, at) && {
                self.progress[index].waits.pop_front();
                self.progress[index].taken.push(Step::Wait(at));
                true
            };
        }
        let Some(step) = process.course.get(self.progress[index].next) else { return false };
        match step {
            Step::Compute(_) => self.progress[index].taken.push(*step),
            Step::Start(at) => {
                self.progress[index].taken.push(*step);
                self.started[index][*at] = true;
                // The other end may be waited for.
                self.ready.extend(process.operations[*at].partner.map(|(other, _)| other));
            }
            Step::Wait(_) => {
                self.begin_waiting(index);
                return true;
            }
        }
        self.progress[index].next += 1;
        true
    }

    /// The process waits for all that it waits for before its next other step, and for what was postponed.
    fn begin_waiting(&mut self, index: usize) {
        let (course, progress) = (&self.job.processes[index].course, &mut self.progress[index]);
        progress.waits.extend(progress.postponed.drain(..));
        while let Some(Step::Wait(at)) = course.get(progress.next) {
            progress.waits.push_back(*at);
            progress.next += 1;
        }
    }

    /// Whether an operation of a process is over: when its other end has been started.
    fn is_over(&self, index: usize, at: usize) -> bool {
        let partner = self.job.processes[index].operations[at].partner;
        partner.is_none_or(|(other, there)| self.started[other][there])
    }

    /// The process that this one waits for.
    fn awaited(&self, index: usize) -> Option<usize> {
        let at = self.progress[index].waits.front()?;
        Some(self.job.processes[index].operations[*at].partner?.0)
    }

    /// Processes of which each waits for the next, and the last for the first.
    fn find_circle(&self) -> Option<Vec<usize>> {
        let mut seen = vec![false; self.progress.len()];
        for first in 0..self.progress.len() {
            let (mut path, mut current) = (Vec::new(), first);
            while !std::mem::replace(&mut seen[current], true) {
                path.push(current);
                match self.awaited(current) {
                    Some(next) => current = next,
                    None => break,
                }
            }
            if self.awaited(current).is_some()
                && let Some(begin) = path.iter().position(|index| *index == current)
            {
                return Some(path.split_off(begin));
            }
        }
        None
    }

    /// One process of a circle goes on: the first that waits for a send. (Receives alone make no circle, since in the
    /// run each message was sent before it was received; if a damaged recording says otherwise, its wait is dropped.)
    fn open(&mut self, circle: &[usize]) {
        let waits_to_send = |index: &&usize| {
            let at = self.progress[**index].waits.front();
            at.is_some_and(|at| self.job.processes[**index].operations[*at].way == Way::Send)
        };
        let (index, is_send) = match circle.iter().find(waits_to_send) {
            Some(index) => (*index, true),
            None => (circle[0], false),
        };
        let progress = &mut self.progress[index];
        let at = progress.waits.pop_front();
        if is_send {
            progress.postponed.extend(at);
        }
        self.moved += 1;
        self.ready.push(index);
    }

    /// The courses as they were taken.
    fn courses(&mut self) -> Vec<Vec<Step>> {
        self.progress.iter_mut().map(|progress| std::mem::take(&mut progress.taken)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::left::Process;
    use crate::trace::left::tests::{message, process};
    use crate::trace::pairing::pair;
    use tidegate_fi::trace::format::Record;

    /// A rank as text, such as `"s1 r0 ~s1 ~r0 5"`: sends to 1, posts a receive from 0, waits for both, computes 5 ns.
    /// A wait is for the latest of its name.
    fn records(text: &str) -> Vec<Record> {
        let mut numbers = std::collections::HashMap::new();
        let mut records = Vec::new();
        for (number, word) in text.split(' ').enumerate() {
            let number = number as u64;
            if let Ok(nanoseconds) = word.parse() {
                records.push(Record::Compute(nanoseconds));
                continue;
            }
            let (way, rest) = word.trim_start_matches('~').split_at(1);
            let (peer, name) = (rest.parse().unwrap(), word.trim_start_matches('~').to_owned());
            if word.starts_with('~') {
                records.push(Record::Read { number: numbers[&name] });
                continue;
            }
            numbers.insert(name, number);
            if way == "s" {
                records.push(Record::Send { number, message: message(peer, 0) });
            } else {
                records.push(Record::Receive { number });
                records.push(Record::Met { number, message: message(peer, 0) });
            }
        }
        records
    }

    /// The courses of ranks after [`relax`], as texts of the same kind, and how many waits were moved.
    fn relaxed(ranks: &[&str]) -> (Vec<String>, u64) {
        let size = ranks.len() as u32;
        let processes = ranks.iter().zip(0..).map(|(text, rank)| process(rank, size, &records(text))).collect();
        let mut job = Job::all(processes).remove(0);
        pair(&mut job);
        let moved = relax(&mut job);
        let print = |process: &Process| {
            let name = |at: usize| {
                let operation = &process.operations[at];
                let way = if operation.way == Way::Send { "s" } else { "r" };
                format!("{way}{}", operation.message.unwrap().peer)
            };
            let words = process.course.iter().map(|step| match step {
                Step::Compute(nanoseconds) => nanoseconds.to_string(),
                Step::Start(at) => name(*at),
                Step::Wait(at) => format!("~{}", name(*at)),
            });
            words.collect::<Vec<_>>().join(" ")
        };
        (job.processes.iter().map(print).collect(), moved)
    }

    #[test]
    fn waits_that_every_flow_control_ends_stay_where_they_were() {
        let ranks = ["s1 ~s1 r1 ~r1 7", "r0 ~r0 s0 ~s0"];
        assert_eq!(relaxed(&ranks), (ranks.map(str::to_owned).to_vec(), 0));
    }

    #[test]
    fn a_send_that_was_over_before_it_could_be_received_is_waited_for_later() {
        // Rank 0 learns that its send to 1 is over while it waits for 2; rank 1 receives only when 0 says so.
        let (courses, moved) = relaxed(&["s1 r2 ~s1 ~r2 s1 r1 ~r1", "r0 r0 s0", "s0"]);
        assert_eq!(moved, 0, "rank 1 posts without waiting");
        assert_eq!(courses[0], "s1 r2 ~s1 ~r2 s1 r1 ~r1");
        let (courses, moved) = relaxed(&["s1 r2 ~s1 ~r2 s2 r2 ~r2", "r2 ~r2 r0 ~r0", "s0 r0 ~r0 s1 s0"]);
        assert_eq!(moved, 1);
        assert_eq!(courses[0], "s1 r2 ~r2 s2 r2 ~s1 ~r2");
    }

    #[test]
    fn two_that_send_before_they_receive_do_not_hang() {
        let (courses, moved) = relaxed(&["s1 ~s1 r1 ~r1", "s0 ~s0 r0 ~r0"]);
        assert_eq!((courses[0].as_str(), courses[1].as_str(), moved), ("s1 r1 ~s1 ~r1", "s0 ~s0 r0 ~r0", 1));
    }

    #[test]
    fn what_has_no_other_end_goes_with_its_wait() {
        let (courses, moved) = relaxed(&["s1 ~s1 s1 ~s1 3", "r0 ~r0"]);
        assert_eq!((courses[0].as_str(), courses[1].as_str(), moved), ("s1 ~s1 3", "r0 ~r0", 0));
    }

    #[test]
    fn a_recording_that_cannot_be_true_ends_all_the_same() {
        let (courses, moved) = relaxed(&["r1 ~r1 s1", "r0 ~r0 s0"]);
        assert_eq!((courses[0].as_str(), courses[1].as_str(), moved), ("r1 s1", "r0 ~r0 s0", 1));
    }
}
