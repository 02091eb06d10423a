//! What `tidegate sim` does with jobs.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;

use serde_json::{Map, Value, json};
use tidegate_message::Counter;
use tidegate_sim::{FlowChoice, Outcome, SimulationError};

use super::Shown;
use crate::command::{is_standard_output, print, write_file};
use crate::failure::Failure;
use crate::recording::simulated::SimulatedRun;
use tidegate_sim::run_spec::{JobDraft, Scenario, Sweep, TimeOf, Work};

/// Version of their JSON.
pub const SIM_SCHEMA: &str = "tidegate-sim/2";

/// Runs them.
pub fn show(sweep: &Sweep<JobDraft>, jobs: usize, recording: Option<SimulatedRun>) -> Result<Shown, String> {
    let rows = run(sweep, jobs, recording)?;
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

/// What is shown of a run.
struct Row {
    outcome: Outcome,
    /// [`Work::time`](tidegate_sim::run_spec::Work::time), in microseconds.
    time: f64,
    /// The same without flow control, if it was asked for.
    reference: Option<f64>,
}

impl Row {
    /// The share of the reference's time by which this takes longer; `None` without a reference, and where the
    /// reference takes no time, as a barrier of one process does.
    fn overhead(&self) -> Option<f64> {
        self.reference.filter(|reference| *reference > 0.0).map(|reference| self.time / reference - 1.0)
    }
}

/// Runs all points and the references that they need, each once; the first of them into `recording`.
fn run(sweep: &Sweep<JobDraft>, jobs: usize, recording: Option<SimulatedRun>) -> Result<Vec<Row>, String> {
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
    let outcomes: Vec<Result<Outcome, SimulationError>> = super::each_run(jobs, &scenarios, |scenario| {
        let is_first = std::ptr::eq(scenario, &raw const scenarios[0]);
        let recording = recording.lock().ok().filter(|_| is_first).and_then(|mut recording| recording.take());
        scenario.work.simulation(scenario.config.clone()).and_then(|simulation| match recording {
            Some(recording) => recording.run(simulation),
            None => simulation.run(),
        })
    });
    let mut times = Vec::with_capacity(outcomes.len());
    let mut kept = Vec::new();
    for (index, outcome) in outcomes.into_iter().enumerate() {
        let outcome = outcome.map_err(|error| sweep.failed(&error, index))?;
        times.push(scenarios[index].work.time(&outcome));
        if index < sweep.points.len() {
            kept.push(outcome);
        }
    }
    let row = |(index, outcome): (usize, Outcome)| Row {
        outcome,
        time: times[index],
        reference: reference_of[index].map(|reference| times[reference]),
    };
    Ok(kept.into_iter().enumerate().map(row).collect())
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
            format!("{:.2}", row.time),
            overhead,
            row.outcome.counter(Counter::SendsDelayed).to_string(),
            row.outcome.counter(Counter::CreditPackets).to_string(),
            row.outcome.network.delivered.to_string(),
            row.outcome.counter(Counter::MailboxFull).to_string(),
            format!("{:.2}", row.outcome.time.microseconds()),
            format!("{:.2}", row.outcome.bounds.largest().microseconds()),
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
                .map(|&counter| (counter.name().to_owned(), json!(row.outcome.counter(counter))))
                .collect();
            let bounds = row.outcome.bounds;
            json!({
                "values": super::axes_of(sweep, values),
                "time_us": row.time,
                "time_of": scenario.work.time_of().name(),
                "reference_us": row.reference,
                "overhead": row.overhead(),
                "run_us": row.outcome.time.microseconds(),
                "run_at_least_us": bounds.largest().microseconds(),
                "run_bounds_us": {
                    "process": bounds.process.microseconds(),
                    "injection": bounds.injection.microseconds(),
                    "extraction": bounds.extraction.microseconds(),
                    "link": bounds.link.microseconds(),
                },
                "packets": row.outcome.network.delivered,
                "packet_hops": row.outcome.network.hops,
                "events": row.outcome.events,
                "counters": counters,
            })
        })
        .collect();
    json!({ "schema": SIM_SCHEMA, "axes": sweep.axes, "runs": runs })
}
