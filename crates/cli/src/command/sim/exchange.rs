//! What `tidegate sim` does with exchanges of all nodes of a network, and with jobs of bulk transfers.

use std::fmt::{Debug, Display};

use serde_json::{Map, Value, json};
use tidegate_sim::bulk_machine;
use tidegate_sim::cycle::all_to_all::{AllToAll, Plan};
use tidegate_sim::run_spec::{BulkDraft, BulkSpec, Draft, FabricDraft, Sweep};

use super::{Ended, Runner, Shown, key};
use crate::store::Kept;

/// Version of the JSON of exchanges.
pub const EXCHANGE_SCHEMA: &str = "tidegate-exchange/1";
/// Version of the JSON of jobs of bulk transfers.
pub const BULK_SCHEMA: &str = "tidegate-bulk/1";

/// What is shown of each run: numbers by the names of their columns.
struct Numbers {
    columns: &'static [&'static str],
    notes: &'static str,
    schema: &'static str,
}

impl Kept for Vec<f64> {
    fn is_sound(&self) -> bool {
        self.iter().all(|number| number.is_finite())
    }
}

/// Runs exchanges.
pub fn show(sweep: &Sweep<FabricDraft>, runner: &Runner) -> Result<Shown, Ended> {
    let plans: Vec<Plan> = sweep.points.iter().filter_map(|(_, fabric)| fabric.exchange).collect();
    let numbers = Numbers {
        columns: &["cycles", "rate", "signals", "denials", "senders to one"],
        notes: NOTES,
        schema: EXCHANGE_SCHEMA,
    };
    run(sweep, runner, &plans, &numbers, |plan| {
        let done = AllToAll::run(plan)?;
        let values = [done.cycles as f64, done.rate, done.signals as f64, done.denials as f64, done.most_at_one.into()];
        Ok::<_, tidegate_sim::cycle::all_to_all::PlanError>(values.to_vec())
    })
}

const NOTES: &str = "\
cycles: until the last byte had been taken; rate: what a node got in each cycle, as a part of what its link carries;
signals: small messages of all kinds; denials: bookings that were denied; senders to one: pieces under way to the receiver
that had most at once.
";

/// Runs jobs of bulk transfers.
pub fn show_bulk(sweep: &Sweep<BulkDraft>, runner: &Runner) -> Result<Shown, Ended> {
    let specs: Vec<BulkSpec> = sweep.points.iter().map(|(_, spec)| *spec).collect();
    let columns = &["time (us)", "MB/s", "denials", "senders to one", "sending", "receiving"];
    let numbers = Numbers { columns, notes: BULK_NOTES, schema: BULK_SCHEMA };
    run(sweep, runner, &specs, &numbers, |spec| {
        let done = bulk_machine::run(&spec.machine, &spec.job, spec.seed)?;
        let (senders, denials) = (done.senders_most.into(), done.denials as f64);
        let values = [done.end.microseconds(), done.bandwidth, denials, senders, done.sending, done.receiving];
        Ok::<_, tidegate_sim::SimulationError>(values.to_vec())
    })
}

const BULK_NOTES: &str = "\
MB/s: what a node sent, mean over nodes and time; denials: bookings that were denied; senders to one: most blocks that were
under way to one receiver; sending, receiving: shares of the time that processors spent on it.
";

/// Runs all of these, in parallel.
fn run<D: Draft, T: Debug + Sync, E: Display + Send>(
    sweep: &Sweep<D>,
    runner: &Runner,
    runs: &[T],
    numbers: &Numbers,
    measure: impl Fn(&T) -> Result<Vec<f64>, E> + Sync,
) -> Result<Shown, Ended> {
    // A run's seed is one of its fields.
    let key = |run: &T| key(format!("{run:?}"), 0);
    let failed = |number: usize, error| format!("the run{} failed: {error}", sweep.with(&sweep.points[number].0));
    let rows: Vec<Vec<f64>> = runner.each(runs, key, measure).map_err(|unfinished| unfinished.with(failed))?;
    let columns = sweep.axes.iter().cloned().chain(numbers.columns.iter().map(|&column| column.to_owned())).collect();
    let whole = |value: &f64| if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.4}") };
    let cells = |((values, _), row): (&(Vec<String>, D::Scenario), &Vec<f64>)| {
        values.iter().cloned().chain(row.iter().map(whole)).collect()
    };
    let cells = sweep.points.iter().zip(&rows).map(cells).collect();
    let json_of = |((values, _), row): (&(Vec<String>, D::Scenario), &Vec<f64>)| {
        let found: Map<String, Value> =
            numbers.columns.iter().map(|&column| column.to_owned()).zip(row.iter().map(|value| json!(value))).collect();
        json!({ "values": super::axes_of(sweep, values), "found": found })
    };
    let each: Vec<Value> = sweep.points.iter().zip(&rows).map(json_of).collect();
    let json = json!({ "schema": numbers.schema, "axes": sweep.axes, "runs": each });
    Ok(Shown { columns, cells, notes: numbers.notes.to_owned(), json })
}
