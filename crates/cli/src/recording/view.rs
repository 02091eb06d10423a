//! [`View`]: a recording as its readers use it, by process.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use tidegate_flow::SchemeName;
use tidegate_link::files::named;
use tidegate_link::{EndpointStats, PostedBuffers};
use tidegate_message::{Counter, WAY_CLASSES, WayTimes};

use super::facts::{EndpointFacts, Facts};
use super::folder::{read_facts, read_last};
use super::page;
use super::rows::{EndpointRows, Last, OpenCounts, OpenKind, OpenRow, UNTAGGED};
use super::samples::{Event, Reader, SAMPLES_FILE};
use super::{Clock, Values};
use crate::culprit::LASTED_AT_THE_END;
use crate::failure::Failure;
use crate::report::{self, launches};
use tidegate_link::stats::WaitCause;

/// All that is known of a run at its end.
#[derive(Clone, Debug)]
pub struct View {
    /// What was run.
    pub facts: Facts,
    /// The processes, by launch and rank.
    pub processes: Vec<Process>,
    /// All waits, the longest first. Each pair of processes and cause occurs once.
    pub waits: Vec<Wait>,
    /// What was not finished, oldest first.
    pub open: Vec<Open>,
    /// How many of each kind there were in all.
    pub open_in_all: OpenCounts,
    /// Who held up whom when it ended, in a sentence, if it did not end in order.
    pub held_up: Option<String>,
    /// Whether all endpoints closed in order, as far as that was recorded.
    pub all_ended: bool,
    /// The time that rates and shares refer to, in nanoseconds: that of the run, or that of the last sample.
    pub duration_ns: u64,
    /// The time of the last sample, in nanoseconds.
    pub sampled_ns: u64,
    /// How many samples there are.
    pub samples: u64,
    /// Whether the end of the samples was lost.
    pub is_torn: bool,
    /// Whether `last.json` is missing, so that nothing is known of who waited for whom and of what was not finished.
    pub lacks_last: bool,
}

/// What one process did, over all its endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// As people call it: `rank 3`.
    pub label: String,
    /// Its rank, if known.
    pub rank: Option<u32>,
    /// Of which launch it is: a script may start several jobs.
    pub launch: usize,
    /// What is said of its first endpoint.
    pub facts: EndpointFacts,
    /// How bulk data travels.
    pub bulk: String,
    /// How fast long messages came each way within the host, of each endpoint that has measured it, by class.
    pub way_times: Vec<[WayTimes; WAY_CLASSES]>,
    /// How long it was there, in nanoseconds; 0: not known.
    pub lived_ns: u64,
    /// Its counters.
    pub values: Values,
}

/// Sends or receives of one process that waited for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Which process, by its number.
    pub from: usize,
    /// For whom: the number of a process, if it is known.
    pub to: Option<usize>,
    /// For what.
    pub cause: WaitCause,
    /// How many.
    pub count: u64,
    /// How long, in nanoseconds.
    pub waited_ns: u64,
    /// Whether one goes on.
    pub goes_on: bool,
}

/// Something that was not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// Whose: the number of a process.
    pub process: usize,
    /// The other side, if it is known.
    pub peer: Option<usize>,
    /// What.
    pub row: OpenRow,
}

impl Process {
    /// The value of a counter.
    #[must_use]
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize]
    }

    /// A time as a part of that for which it was there, or of the run's if that is not known; at most 1.
    #[must_use]
    pub fn part(&self, nanoseconds: u64, run: &View) -> f64 {
        let whole = if self.lived_ns > 0 { self.lived_ns } else { run.duration_ns };
        (nanoseconds as f64 / whole.max(1) as f64).min(1.0)
    }

    /// A counter of time, as such a part.
    #[must_use]
    pub fn share(&self, counter: Counter, run: &View) -> f64 {
        self.part(self.get(counter), run)
    }

    /// Messages that it sent.
    #[must_use]
    pub fn messages(&self) -> u64 {
        [Counter::MessagesEager, Counter::MessagesRendezvous, Counter::MessagesSelf]
            .map(|counter| self.get(counter))
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// What its receivers lend, in words.
    #[must_use]
    pub fn lends(&self) -> String {
        let EndpointFacts { slots_per_peer, credit_slots, .. } = self.facts;
        let posted = self.facts.posted.map(|posted| PostedBuffers {
            packets: posted.packets,
            each: posted.each,
            most: posted.most,
            pool_first: posted.pool_first,
            pool_most: posted.pool_most,
        });
        match self.facts.scheme.parse::<SchemeName>() {
            Ok(scheme) => report::lends(scheme, slots_per_peer, credit_slots, posted),
            Err(_) => "mailboxes without end".to_owned(),
        }
    }
}

impl View {
    /// The pages of a launch at its end, for readers that need no time lines.
    #[must_use]
    pub fn of_pages(facts: Facts, pages: &[EndpointStats], held_up: Option<String>) -> Self {
        let endpoints: Vec<EndpointFacts> = pages.iter().map(page::facts).collect();
        let values: Vec<Values> = pages.iter().map(page::values).collect();
        let rows: Vec<EndpointRows> = pages.iter().map(page::rows).collect();
        let wall_ns = facts.end.as_ref().map_or(0.0, |end| end.wall_time_s * 1e9) as u64;
        let duration_ns = wall_ns.max(rows.iter().map(|rows| rows.lived_ns).max().unwrap_or(0));
        let (view, _) = View::new(facts, &endpoints, rows, &values, held_up);
        View { duration_ns, sampled_ns: duration_ns, samples: 1, ..view }
    }

    /// Puts together what is known of endpoints: also the process of each. Times of samples are left 0.
    fn new(
        facts: Facts,
        endpoints: &[EndpointFacts],
        rows: Vec<EndpointRows>,
        values: &[Values],
        held_up: Option<String>,
    ) -> (Self, Vec<usize>) {
        let is_well = held_up.is_none() && facts.end.as_ref().is_some_and(|end| end.exit_code == 0);
        let rows: Vec<EndpointRows> = rows.into_iter().map(|rows| without_own_receives(rows, is_well)).collect();
        let (processes, process_of) = processes(endpoints, &rows, values);
        let of_id: HashMap<u64, usize> = endpoints
            .iter()
            .zip(&process_of)
            .filter(|(endpoint, _)| endpoint.id != 0)
            .map(|(e, p)| (e.id, *p))
            .collect();
        let view = View {
            waits: waits(&rows, &process_of, &of_id),
            open: open(&rows, &process_of, &of_id),
            open_in_all: open_in_all(&rows),
            held_up,
            all_ended: !rows.is_empty() && rows.iter().all(|rows| rows.ended),
            duration_ns: 0,
            sampled_ns: 0,
            samples: 0,
            is_torn: false,
            lacks_last: false,
            facts,
            processes,
        };
        (view, process_of)
    }

    /// The run's time in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.duration_ns as f64 / 1e9
    }

    /// A counter over all processes.
    #[must_use]
    pub fn job(&self, counter: Counter) -> u64 {
        counter.aggregate().of(self.processes.iter().map(|process| process.get(counter)))
    }

    /// The number of the first process with the most of a counter, and the value; `None` without processes.
    #[must_use]
    pub fn most(&self, counter: Counter) -> Option<(usize, u64)> {
        let values = self.processes.iter().map(|process| process.get(counter)).enumerate();
        values.max_by_key(|(index, value)| (*value, std::cmp::Reverse(*index)))
    }

    /// The different values of something over the processes, each once.
    pub fn distinct(&self, of: impl Fn(&Process) -> String) -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        for value in self.processes.iter().map(of) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    }

    /// Whether the run was not seen to its end: the recorder was killed, or still works.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.facts.end.is_none()
    }

    /// Whether the time is that of a simulation.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.facts.clock == Clock::Simulated
    }
}

/// A recording with its samples, to be read again for time lines.
#[derive(Debug)]
pub struct Recording {
    /// All that is known at the end.
    pub view: View,
    /// The samples, at their beginning.
    pub reader: Reader,
    /// The number of the process of each endpoint.
    pub process_of: Vec<usize>,
}

impl Recording {
    /// Reads a folder.
    ///
    /// # Errors
    /// If it holds no recording, or one of a run that has not ended and left no sample yet.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        let facts = read_facts(folder)?;
        let path = folder.join(SAMPLES_FILE);
        let reader = Reader::open(&path).map_err(|error| Failure::usage(named(&path, error).to_string()))?;
        let recording = Recording::new(facts, reader, read_last(folder)?);
        // A run that has ended says itself why there are none.
        if recording.view.samples == 0 && recording.view.facts.end.is_none() {
            return Err(Failure::usage(format!(
                "{}: no endpoint of Tidegate has been seen yet while `{}` runs: there is nothing to report yet",
                folder.display(),
                recording.view.facts.command_line()
            )));
        }
        Ok(recording)
    }

    /// Puts together what was read.
    #[must_use]
    pub fn new(facts: Facts, mut reader: Reader, last: Last) -> Self {
        let (mut endpoints, mut samples) = (Vec::new(), 0);
        while let Some(event) = reader.next_event() {
            match event {
                Event::Endpoint(facts) => endpoints.push(facts),
                Event::Sample => samples += 1,
            }
        }
        let lacks_last = last.schema.is_empty() && samples > 0;
        let mut rows = last.endpoints;
        rows.resize_with(endpoints.len(), EndpointRows::default);
        let wall_ns = facts.end.as_ref().map_or(0.0, |end| end.wall_time_s * 1e9) as u64;
        let (view, process_of) = View::new(facts, &endpoints, rows, reader.values(), last.held_up);
        let view = View {
            duration_ns: wall_ns.max(reader.time_ns()),
            sampled_ns: reader.time_ns(),
            samples,
            is_torn: reader.is_torn(),
            lacks_last,
            ..view
        };
        reader.rewind();
        Recording { view, reader, process_of }
    }
}

/// An endpoint with its number, as a member of a launch. When it opened and closed is not recorded; they come in order.
struct Recorded<'a> {
    number: usize,
    facts: &'a EndpointFacts,
}

impl launches::Member for Recorded<'_> {
    fn launch(&self) -> Option<&str> {
        self.facts.launch.as_deref()
    }

    fn process(&self) -> (&str, u32) {
        (&self.facts.host, self.facts.pid)
    }

    fn rank(&self) -> Option<u32> {
        self.facts.rank
    }

    fn job_size(&self) -> Option<u32> {
        self.facts.job_size
    }

    fn started(&self) -> Duration {
        Duration::ZERO
    }

    fn closed(&self) -> Option<Duration> {
        None
    }
}

/// Endpoints of one process as one, processes by launch and rank; and the process of each endpoint.
fn processes(endpoints: &[EndpointFacts], rows: &[EndpointRows], values: &[Values]) -> (Vec<Process>, Vec<usize>) {
    let launches =
        launches::split(endpoints.iter().enumerate().map(|(number, facts)| Recorded { number, facts }).collect());
    let mut found: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (launch, members) in launches.iter().enumerate() {
        for Recorded { number, facts } in members {
            let rank = facts.rank.unwrap_or(u32::MAX);
            found.entry((launch, rank, facts.host.clone(), facts.pid)).or_default().push(*number);
        }
    }
    let mut process_of = vec![0; endpoints.len()];
    let mut processes = Vec::new();
    for ((launch, ..), numbers) in found {
        numbers.iter().for_each(|number| process_of[*number] = processes.len());
        let facts = endpoints[numbers[0]].clone();
        let told = Some(launch).filter(|_| launches.len() > 1);
        let of =
            |index: usize| Counter::ALL[index].within_process().of(numbers.iter().map(|number| values[*number][index]));
        processes.push(Process {
            label: label(&facts, told),
            rank: facts.rank,
            launch,
            bulk: rows[numbers[0]].bulk.clone(),
            way_times: numbers.iter().filter_map(|number| way_times(&rows[*number])).collect(),
            lived_ns: numbers.iter().map(|number| rows[*number].lived_ns).max().unwrap_or(0),
            values: std::array::from_fn(of),
            facts,
        });
    }
    tell_apart(&mut processes);
    (processes, process_of)
}

fn way_times(rows: &EndpointRows) -> Option<[WayTimes; WAY_CLASSES]> {
    let time = |class: usize| rows.ways.get(class).map(|&[asked, read]| WayTimes { asked, read });
    (!rows.ways.is_empty()).then(|| std::array::from_fn(|class| time(class).unwrap_or_default()))
}

fn label(facts: &EndpointFacts, launch: Option<usize>) -> String {
    let process = facts.rank.map_or_else(|| format!("pid {}", facts.pid), |rank| format!("rank {rank}"));
    launch.map_or(process.clone(), |launch| format!("{process} of launch {}", launch + 1))
}

/// Processes of two launches that nothing else tells apart get their process ids.
fn tell_apart(processes: &mut [Process]) {
    let mut seen: HashMap<String, u32> = HashMap::new();
    processes.iter().for_each(|process| *seen.entry(process.label.clone()).or_default() += 1);
    for process in processes.iter_mut().filter(|process| seen[&process.label] > 1) {
        process.label += &format!(" (pid {})", process.facts.pid);
    }
}

fn waits(rows: &[EndpointRows], process_of: &[usize], of_id: &HashMap<u64, usize>) -> Vec<Wait> {
    let mut found: BTreeMap<(usize, Option<usize>, WaitCause), Wait> = BTreeMap::new();
    for (endpoint, rows) in rows.iter().enumerate() {
        for row in &rows.waits {
            let (from, cause) = (process_of[endpoint], row.cause);
            let to = row.peer.and_then(|peer| of_id.get(&peer)).copied();
            let new = Wait { from, to, cause, count: 0, waited_ns: 0, goes_on: false };
            let wait = found.entry((from, to, cause)).or_insert(new);
            wait.count = wait.count.saturating_add(row.count);
            wait.waited_ns = wait.waited_ns.saturating_add(row.waited_ns);
            wait.goes_on |= row.goes_on;
        }
    }
    let mut waits: Vec<Wait> = found.into_values().collect();
    waits.sort_by_key(|wait| std::cmp::Reverse(wait.waited_ns));
    waits
}

/// Receives that were posted when an endpoint closed are no fault: MPIs close with receives of their own posted.
/// Where the program says that all is well, those are none either that take a message of any process without data, as
/// an MPI's own do, or that had just been posted.
fn without_own_receives(mut rows: EndpointRows, is_well: bool) -> EndpointRows {
    let lasted = |open: &OpenRow| u128::from(open.age_ns) >= LASTED_AT_THE_END.as_nanos();
    let is_own = |open: &OpenRow| open.tag == UNTAGGED || (open.peer.is_none() && open.bytes == 0) || !lasted(open);
    let before = rows.open.len();
    rows.open.retain(|open| open.kind != OpenKind::Receive || !(rows.ended || is_well && is_own(open)));
    rows.open_in_all.receives = match rows.ended {
        true => 0,
        false => rows.open_in_all.receives.saturating_sub((before - rows.open.len()) as u64),
    };
    rows
}

fn open(rows: &[EndpointRows], process_of: &[usize], of_id: &HashMap<u64, usize>) -> Vec<Open> {
    let of = |endpoint: usize, row: &OpenRow| {
        let peer = row.peer.and_then(|peer| of_id.get(&peer)).copied();
        Open { process: process_of[endpoint], peer, row: row.clone() }
    };
    let all = rows.iter().enumerate().flat_map(|(endpoint, rows)| rows.open.iter().map(move |row| (endpoint, row)));
    let mut open: Vec<Open> = all.map(|(endpoint, row)| of(endpoint, row)).collect();
    open.sort_by_key(|open| std::cmp::Reverse(open.row.age_ns));
    open
}

fn open_in_all(rows: &[EndpointRows]) -> OpenCounts {
    rows.iter().map(|rows| rows.open_in_all).fold(OpenCounts::default(), |sum, more| OpenCounts {
        receives: sum.receives.saturating_add(more.receives),
        sends: sum.sends.saturating_add(more.sends),
        unexpected: sum.unexpected.saturating_add(more.unexpected),
    })
}
