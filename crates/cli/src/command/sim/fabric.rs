//! What `tidegate sim` does with networks under load.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidegate_sim::cycle::{Machine, Settled, Throughput};
use tidegate_sim::{Carried, Estimate, Stop};

use super::{Ended, Runner, Shown, key};
use crate::store::Kept;
use tidegate_sim::run_spec::{Fabric, FabricDraft, Sweep};

/// Version of their JSON.
pub const FABRIC_SCHEMA: &str = "tidegate-fabric/1";

/// The result of a run, as a file keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Found {
    /// Flits that a node takes per cycle in the last window, mean over all nodes.
    rate: f64,
    #[serde(flatten)]
    carried: Carried,
}

impl Kept for Found {
    fn is_sound(&self) -> bool {
        self.rate.is_finite()
    }
}

impl From<Throughput> for Found {
    fn from(found: Throughput) -> Self {
        let stop = |Settled { windows, rate }| Stop { windows, rate };
        let carried = Carried {
            windows: found.windows,
            healthy: found.healthy,
            has_settled: found.has_settled,
            at_five_percent: found.at_five_percent.map(stop),
            cumulative: found.cumulative.map(stop),
            latency: found.latency,
            diverted: found.diverted,
            credit_packets: found.credit_packets,
            choices: found.choices,
            cycles: found.cycles,
            hops: found.hops,
        };
        Found { rate: found.rate, carried }
    }
}

/// What came out with each seed.
type Seeds = Vec<(u64, Found)>;

/// Runs them, all seeds of all points at once.
pub fn show(sweep: &Sweep<FabricDraft>, runner: &Runner) -> Result<Shown, Ended> {
    let runs: Vec<(usize, Fabric)> = sweep
        .points
        .iter()
        .enumerate()
        .flat_map(|(point, (_, fabric))| {
            (0..u64::from(fabric.seeds)).map(move |further| {
                let seed = fabric.machine.seed.wrapping_add(further);
                (point, Fabric { machine: Machine { seed, ..fabric.machine }, ..*fabric })
            })
        })
        .collect();
    let key = |(_, fabric): &(usize, Fabric)| {
        key(format!("{:?} {:?}", Machine { seed: 0, ..fabric.machine }, fabric.windows), fabric.machine.seed)
    };
    let measure = |(_, fabric): &(usize, Fabric)| Throughput::measure(&fabric.machine, fabric.windows).map(Found::from);
    let failed =
        |number: usize, error| format!("the run{} failed: {error}", sweep.with(&sweep.points[runs[number].0].0));
    let found = runner.each(&runs, key, measure).map_err(|unfinished| unfinished.with(failed))?;
    let mut rows: Vec<Seeds> = vec![Vec::new(); sweep.points.len()];
    for ((point, fabric), found) in runs.iter().zip(found) {
        rows[*point].push((fabric.machine.seed, found));
    }
    let (columns, cells) = cells(sweep, &rows);
    Ok(Shown { columns, cells, notes: NOTES.to_owned(), json: as_json(sweep, &rows) })
}

const NOTES: &str = "\
accepted: flits that a node takes in a cycle, in the last window, mean over all nodes; healthy: over those that are not slow;
+/-: half of the 95 % confidence interval of the mean over the seeds (Student's t);
latency: cycles from when a packet was ready until it was taken; diverted: packets that left the shortest way;
credit packets: of one flit, that carried nothing but credits, beside the packets of data;
windows: how many the run took, at most; settled: in how many of the runs throughput no longer moved at its end.
";

/// A number found with each seed.
fn estimate(seeds: &Seeds, number: impl Fn(&Found) -> f64) -> Estimate {
    Estimate::new(seeds.iter().map(|(_, found)| number(found)))
}

/// Half of the interval of an estimate.
fn half(estimate: &Estimate) -> Option<f64> {
    estimate.interval().map(|(least, _)| estimate.mean() - least)
}

fn cells(sweep: &Sweep<FabricDraft>, rows: &[Seeds]) -> (Vec<String>, Vec<Vec<String>>) {
    let fixed =
        ["accepted", "+/-", "healthy", "latency (cycles)", "diverted (%)", "credit packets (%)", "windows", "settled"];
    let columns = sweep.axes.iter().cloned().chain(fixed.map(str::to_owned)).collect();
    let row = |((values, _), seeds): (&(Vec<String>, Fabric), &Seeds)| {
        let mean = |number: fn(&Found) -> f64| estimate(seeds, number).mean();
        let accepted = estimate(seeds, |found| found.rate);
        let settled = seeds.iter().filter(|(_, found)| found.carried.has_settled).count();
        let numbers = [
            format!("{:.4}", accepted.mean()),
            half(&accepted).map_or(String::new(), |half| format!("{half:.4}")),
            format!("{:.4}", mean(|found| found.carried.healthy)),
            format!("{:.1}", mean(|found| found.carried.latency)),
            format!("{:.1}", 100.0 * mean(|found| found.carried.diverted)),
            format!("{:.2}", 100.0 * mean(|found| found.carried.credit_packets)),
            seeds.iter().map(|(_, found)| found.carried.windows.len()).max().unwrap_or(0).to_string(),
            format!("{settled} of {}", seeds.len()),
        ];
        values.iter().cloned().chain(numbers).collect()
    };
    (columns, sweep.points.iter().zip(rows).map(row).collect())
}

fn as_json(sweep: &Sweep<FabricDraft>, rows: &[Seeds]) -> Value {
    let stop = |stop: Option<Stop>| stop.map(|at| json!({ "windows": at.windows, "accepted": at.rate }));
    let runs: Vec<Value> = sweep
        .points
        .iter()
        .zip(rows)
        .map(|((values, fabric), seeds)| {
            let accepted = estimate(seeds, |found| found.rate);
            let each: Vec<Value> = seeds
                .iter()
                .map(|(seed, found)| {
                    json!({
                        "seed": seed,
                        "accepted": found.rate,
                        "accepted_healthy": found.carried.healthy,
                        "accepted_by_window": found.carried.windows,
                        "has_settled": found.carried.has_settled,
                        "settled_at_5_percent": stop(found.carried.at_five_percent),
                        "settled_since_the_start_at_5_percent": stop(found.carried.cumulative),
                        "latency_cycles": found.carried.latency,
                        "diverted": found.carried.diverted,
                        "credit_packets_per_packet": found.carried.credit_packets,
                        "cycles": found.carried.cycles,
                        "packet_hops": found.carried.hops,
                    })
                })
                .collect();
            json!({
                "values": super::axes_of(sweep, values),
                "nodes": fabric.machine.layout.nodes(),
                "routers": fabric.machine.layout.routers(),
                "slow_nodes": fabric.machine.load.slow_nodes,
                "accepted": accepted.mean(),
                "accepted_half_interval": half(&accepted),
                "seeds": each,
            })
        })
        .collect();
    json!({ "schema": FABRIC_SCHEMA, "axes": sweep.axes, "runs": runs })
}
