//! What `tidegate sim` does with jobs.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tidegate_message::Counter;
use tidegate_sim::{FlowChoice, Outcome, RunKey, SimulationConfig, SimulationError, Time};

use super::{Ended, Runner, Shown};
use crate::command::{is_standard_output, print, write_file};
use crate::failure::Failure;
use crate::recording::simulated::SimulatedRun;
use crate::store::Kept;
use tidegate_sim::run_spec::{JobDraft, Scenario, Sweep, TimeOf, Work};

/// Version of their JSON.
pub const SIM_SCHEMA: &str = "tidegate-sim/2";

/// Runs them.
pub fn show(sweep: &Sweep<JobDraft>, runner: &Runner, recording: Option<SimulatedRun>) -> Result<Shown, Ended> {
    let rows = run(sweep, runner, recording)?;
    let (columns, cells) = cells(sweep, &rows);
    let notes = format!(
        "time: {};\n\
         overhead: of that time, beyond the same in mailboxes without end;\n\
         all other columns are of the whole run, warm-up included; run: from its start until the last process ends;\n\
         run at least: what the busiest process, interface or link needs for the run, if nothing ever waits.\n",
        meaning_of_time(sweep)
    );
    Ok(Shown { columns, cells, notes, json: as_json(sweep, &rows) })
}

/// Begins the recording of the only run, for the user's command.
pub fn record(sweep: &Sweep<JobDraft>, file: &Path, folder: &Path) -> Result<SimulatedRun, Failure> {
    let [(_, scenario)] = sweep.points.as_slice() else {
        return Err(Failure::usage(format!(
            "--record records one run, and the file has {}: give each field one value, and a folder to each run",
            sweep.points.len()
        )));
    };
    let command = ["tidegate".into(), "sim".into(), file.to_string_lossy().into_owned()].to_vec();
    let program = file.file_name().unwrap_or_default().to_string_lossy();
    SimulatedRun::create(folder, command, &scenario.config, &program)
}

/// Writes the only run's program as a trace.
pub fn write_goal(sweep: &Sweep<JobDraft>, file: &Path) -> Result<u8, Failure> {
    let [(_, scenario)] = sweep.points.as_slice() else {
        return Err(Failure::usage(format!("--goal writes one program, and the file has {} runs", sweep.points.len())));
    };
    let text = scenario.work.goal(&scenario.config).map_err(Failure::own)?;
    if is_standard_output(file) {
        return print(text.as_bytes()).map(|()| 0);
    }
    write_file(file, &text).map(|()| 0)
}

/// The result of a run, as a file keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Found {
    /// [`Work::time`](tidegate_sim::run_spec::Work::time), in microseconds.
    #[serde(rename = "time_us")]
    time: f64,
    /// When the last process ended, in picoseconds.
    #[serde(rename = "run_ps")]
    run: u64,
    /// Times that the run could not have beaten, in picoseconds: of a process, into and out of the network, of a link.
    bounds_ps: [u64; 4],
    packets: u64,
    packet_hops: u64,
    events: u64,
    /// The job's counters by name, but for those that are 0.
    counters: BTreeMap<String, u64>,
}

impl Kept for Found {
    fn is_sound(&self) -> bool {
        self.time.is_finite()
    }
}

impl Found {
    fn of(outcome: &Outcome, work: &Work) -> Self {
        let counters = Counter::ALL.iter().map(|&counter| (counter.name().to_owned(), outcome.counter(counter)));
        let bounds = outcome.bounds;
        Found {
            time: work.time(outcome),
            run: outcome.time.0,
            bounds_ps: [bounds.process.0, bounds.injection.0, bounds.extraction.0, bounds.link.0],
            packets: outcome.network.delivered,
            packet_hops: outcome.network.hops,
            events: outcome.events,
            counters: counters.filter(|(_, value)| *value > 0).collect(),
        }
    }

    fn counter(&self, counter: Counter) -> u64 {
        self.counters.get(counter.name()).copied().unwrap_or(0)
    }

    fn run(&self) -> Time {
        Time(self.run)
    }

    /// The same times in microseconds.
    fn bounds(&self) -> [f64; 4] {
        self.bounds_ps.map(|bound| Time(bound).microseconds())
    }

    fn largest_bound(&self) -> f64 {
        self.bounds().into_iter().fold(0.0, f64::max)
    }
}

/// The key under which a run is kept: all fields that decide it.
fn key(scenario: &Scenario) -> RunKey {
    let config = SimulationConfig { seed: 0, ..scenario.config.clone() };
    let work = match &scenario.work {
        // Traces are long.
        Work::Trace(text) => {
            let digest = Sha256::digest(text.as_bytes());
            digest.iter().fold("the trace ".to_owned(), |mut name, byte| {
                let _ = write!(name, "{byte:02x}");
                name
            })
        }
        other => format!("{other:?}"),
    };
    RunKey {
        case: format!("sim {config:?} {work}"),
        seed: scenario.config.seed,
        noise_interval_ps: config.noise.interval.0,
        noise_duration_ps: config.noise.duration.0,
    }
}

/// What is shown of a run.
struct Row {
    found: Found,
    /// The time without flow control, if it was asked for.
    reference: Option<f64>,
}

impl Row {
    /// The share of the reference's time by which this takes longer; `None` without a reference, and where the
    /// reference takes no time, as a barrier of one process does.
    fn overhead(&self) -> Option<f64> {
        self.reference.filter(|reference| *reference > 0.0).map(|reference| self.found.time / reference - 1.0)
    }
}

/// Runs all points and the references that they need, each once; the first of them into `recording`.
fn run(sweep: &Sweep<JobDraft>, runner: &Runner, recording: Option<SimulatedRun>) -> Result<Vec<Row>, Ended> {
    let mut scenarios: Vec<Scenario> = sweep.points.iter().map(|point| point.1.clone()).collect();
    let mut references: HashMap<String, usize> = HashMap::new();
    let mut reference_of = Vec::new();
    for (_, scenario) in &sweep.points {
        let mut unlimited = scenario.clone();
        unlimited.config.flow = FlowChoice::Unlimited;
        reference_of.push(scenario.reference.then(|| {
            *references.entry(format!("{unlimited:?}")).or_insert_with(|| {
                scenarios.push(unlimited);
                scenarios.len() - 1
            })
        }));
    }
    let recording = Mutex::new(recording);
    let run = |scenario: &Scenario| {
        let is_first = std::ptr::eq(scenario, &raw const scenarios[0]);
        let recording = recording.lock().ok().filter(|_| is_first).and_then(|mut recording| recording.take());
        let simulation = scenario.work.simulation(scenario.config.clone())?;
        let outcome = match recording {
            Some(recording) => recording.run(simulation),
            None => simulation.run(),
        };
        outcome.map(|outcome| Found::of(&outcome, &scenario.work))
    };
    let failed = |number: usize, error: SimulationError| sweep.failed(&error, number);
    let mut found = runner.each(&scenarios, key, run).map_err(|unfinished| unfinished.with(failed))?;
    let times: Vec<f64> = found.iter().map(|found| found.time).collect();
    found.truncate(sweep.points.len());
    let row = |(found, reference): (Found, Option<usize>)| Row { found, reference: reference.map(|at| times[at]) };
    Ok(found.into_iter().zip(reference_of).map(row).collect())
}

fn cells(sweep: &Sweep<JobDraft>, rows: &[Row]) -> (Vec<String>, Vec<Vec<String>>) {
    let fixed = [
        "time (us)",
        "overhead (%)",
        "delayed sends",
        "credit packets",
        "packets",
        "mailbox full",
        "run (us)",
        "run at least (us)",
    ];
    let columns = sweep.axes.iter().cloned().chain(fixed.map(str::to_owned)).collect();
    let row = |((values, _), row): (&(Vec<String>, Scenario), &Row)| {
        let overhead = row.overhead().map_or(String::new(), |overhead| format!("{:.2}", 100.0 * overhead));
        let numbers = [
            format!("{:.2}", row.found.time),
            overhead,
            row.found.counter(Counter::SendsDelayed).to_string(),
            row.found.counter(Counter::CreditPackets).to_string(),
            row.found.packets.to_string(),
            row.found.counter(Counter::MailboxFull).to_string(),
            format!("{:.2}", row.found.run().microseconds()),
            format!("{:.2}", row.found.largest_bound()),
        ];
        values.iter().cloned().chain(numbers).collect()
    };
    (columns, sweep.points.iter().zip(rows).map(row).collect())
}

/// What the column `time` shows of the runs of this sweep.
fn meaning_of_time(sweep: &Sweep<JobDraft>) -> String {
    let mut meanings: Vec<&str> = Vec::new();
    for (_, scenario) in &sweep.points {
        let meaning = match (&scenario.work, scenario.work.time_of()) {
            (Work::Benchmark(_), TimeOf::AllProcesses) => "per repetition, mean over processes",
            (Work::Benchmark(_), TimeOf::LastProcess) => "per repetition, of the last process",
            _ => "of all messages, until the last process has its own",
        };
        if !meanings.contains(&meaning) {
            meanings.push(meaning);
        }
    }
    meanings.join("; of other operations: ")
}

fn as_json(sweep: &Sweep<JobDraft>, rows: &[Row]) -> Value {
    let runs: Vec<Value> = sweep
        .points
        .iter()
        .zip(rows)
        .map(|((values, scenario), row)| {
            let counters: Map<String, Value> = Counter::ALL
                .iter()
                .map(|&counter| (counter.name().to_owned(), json!(row.found.counter(counter))))
                .collect();
            let [process, injection, extraction, link] = row.found.bounds();
            json!({
                "values": super::axes_of(sweep, values),
                "time_us": row.found.time,
                "time_of": scenario.work.time_of().name(),
                "reference_us": row.reference,
                "overhead": row.overhead(),
                "run_us": row.found.run().microseconds(),
                "run_at_least_us": row.found.largest_bound(),
                "run_bounds_us": {
                    "process": process,
                    "injection": injection,
                    "extraction": extraction,
                    "link": link,
                },
                "packets": row.found.packets,
                "packet_hops": row.found.packet_hops,
                "events": row.found.events,
                "counters": counters,
            })
        })
        .collect();
    json!({ "schema": SIM_SCHEMA, "axes": sweep.axes, "runs": runs })
}
