//! What figure 19 of P depends on: rank 0's credits while the active part of a job changes, with other numbers of
//! all-to-alls per phase and other machines than the figure has.
//!
//! `cargo run --release -p tidegate-sim --example phases -- [2x2x2] [all-to-alls per phase] [seed] [near peers]
//! [dissemination|plain|none: the barrier after each phase]`

use tidegate_flow::SchemeName;
use tidegate_message::Counter;
use tidegate_sim::workload::Communicator;
use tidegate_sim::workload::collective::{Alltoall, Barrier, alltoall, barrier};
use tidegate_sim::{Cost, FlowChoice, Noise, Rank, Simulation, SimulationConfig, Task, Time, Topology};

/// Bytes of a block.
const BLOCK: u64 = 2048;

/// The program of one process: as [`Phases`](tidegate_sim::workload::Phases), with some barrier, or none.
async fn phases(task: Task, active: [u32; 7], operations: u32, form: Option<Barrier>) {
    let world = Communicator::world(&task);
    let size = task.size();
    let watched = [1..size / 4, size / 4..size / 2, size / 2..size];
    let (out, into) = (task.allocate(BLOCK * u64::from(size)), task.allocate(BLOCK * u64::from(size)));
    let mut index = 0;
    for (number, active) in (1..).zip(active) {
        let group = Communicator::range(&task, number, 0, active);
        for _ in 0..operations {
            if let Some(group) = &group {
                let begin = task.now();
                alltoall(group, Alltoall::Plain, out, into, BLOCK).await;
                task.record("alltoall", index, task.now().since(begin).microseconds());
            }
            for (part, range) in (0..).zip(&watched).filter(|_| task.rank() == Rank(0)) {
                let mut credits = Vec::new();
                for rank in range.clone() {
                    credits.push(task.credits(Rank(rank)).await);
                }
                credits.sort_unstable();
                let found = [credits[0], credits[credits.len() / 2], credits[credits.len() - 1]];
                for (label, value) in LABELS.into_iter().zip(found) {
                    task.record(label, 3 * index + part, f64::from(value));
                }
            }
            index += 1;
        }
        if let Some(form) = form {
            barrier(&world, form).await;
        }
    }
}

/// What rank 0 notes of each part.
const LABELS: [&str; 3] = ["credits minimum", "credits median", "credits maximum"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, default: &str| arguments.get(index).cloned().unwrap_or_else(|| default.to_owned());
    let sizes: Vec<u16> = argument(0, "2x2x2").split('x').map(str::parse).collect::<Result<_, _>>()?;
    let (operations, seed) = (argument(1, "100").parse::<u32>()?, argument(2, "1").parse()?);
    let near_peers = argument(3, "105").parse()?;
    let form = match argument(4, "dissemination").as_str() {
        "none" => None,
        "plain" => Some(Barrier::Plain),
        _ => Some(Barrier::Dissemination),
    };
    let (scheme, slots_per_peer, credit_slots) = (SchemeName::Dynamic, 30, 2);
    let config = SimulationConfig::extoll(Topology::mesh(&sizes)?);
    let config = SimulationConfig {
        flow: FlowChoice::Mailbox { scheme, slots_per_peer, credit_slots, piggyback: false, quota_most: None },
        cost: Cost { near_peers, ..config.cost.clone() },
        noise: Noise { interval: Time::from_microseconds(1_000), duration: Time::from_microseconds(25) },
        seed,
        ..config
    };
    let size = config.size();
    let (quarter, half) = (size / 4, size / 2);
    let active = [size, quarter, half, size, half, quarter, size];
    let program = move |task: Task| phases(task, active, operations, form);
    let outcome = Simulation::new(config, &program)?.run()?;
    let credits = |label: &'static str, operation: u32, part: u64| {
        let index = 3 * u64::from(operation) + part;
        outcome.samples_of(label).find(|sample| sample.index == index).map_or(f64::NAN, |sample| sample.value)
    };
    println!("credits of rank 0 towards each part, least–median–most, after the n-th all-to-all of a phase");
    for (phase, active) in (0..).zip(active) {
        let mut shown: Vec<u32> = [1, 2, 4, 8, 16, 25, 50, 75, 100].into_iter().filter(|n| *n < operations).collect();
        shown.push(operations);
        for nth in shown {
            let row = [0, 1, 2].map(|part| {
                let [least, median, most] = LABELS.map(|label| credits(label, phase * operations + nth - 1, part));
                format!("{least:3}–{median:3}–{most:3}")
            });
            println!("phase {}, {active:4} active, {nth:3}: {}", phase + 1, row.join("   "));
        }
    }
    let times: Vec<f64> = outcome.samples_of("alltoall").map(|sample| sample.value).collect();
    println!("mean all-to-all {:.1} µs", times.iter().sum::<f64>() / times.len() as f64);
    for counter in [Counter::Steals, Counter::ReturnRequests, Counter::MonitoringPoints, Counter::SendsDelayed] {
        println!("{}: {}", counter.name(), outcome.counter(counter));
    }
    Ok(())
}
