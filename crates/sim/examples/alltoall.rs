//! How fast the simulator is: an all-to-all of 2 KiB messages on the machine of P.
//!
//! `cargo run --release -p tidegate-sim --example alltoall -- [dynamic|static|none|unlimited] [4x4x4] [slots]
//! [repetitions]`

use std::time::Instant;

use tidegate_flow::SchemeName;
use tidegate_message::Counter;
use tidegate_sim::workload::Communicator;
use tidegate_sim::workload::collective::{Alltoall, Barrier, alltoall, barrier};
use tidegate_sim::{FlowChoice, Simulation, SimulationConfig, Task, Topology};

const BLOCK: u64 = 2048;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, default: &str| arguments.get(index).cloned().unwrap_or_else(|| default.to_owned());
    let sizes: Vec<u16> = argument(1, "4x4x4").split('x').map(str::parse).collect::<Result<_, _>>()?;
    let (slots, repetitions) = (argument(2, "58").parse()?, argument(3, "1").parse::<u64>()?);
    let flow = match argument(0, "static").as_str() {
        "unlimited" => FlowChoice::Unlimited,
        name => {
            let scheme: SchemeName = name.parse()?;
            FlowChoice::Mailbox { scheme, slots_per_peer: slots, credit_slots: 2, piggyback: false, quota_most: None }
        }
    };
    let config = SimulationConfig { flow, ..SimulationConfig::extoll(Topology::mesh(&sizes)?) };
    let size = u64::from(config.size());
    let start = Instant::now();
    let program = move |task: Task| async move {
        let world = Communicator::world(&task);
        let bytes = BLOCK * u64::from(task.size());
        let (out, into) = (task.allocate(bytes), task.allocate(bytes));
        for repetition in 0..repetitions {
            barrier(&world, Barrier::Dissemination).await;
            let begin = task.now();
            alltoall(&world, Alltoall::Plain, out, into, BLOCK).await;
            task.record("alltoall", repetition, task.now().since(begin).microseconds());
        }
    };
    let outcome = Simulation::new(config, &program)?.run()?;
    let (wall, packets) = (start.elapsed().as_secs_f64(), outcome.network.delivered);
    let pairs = size * (size - 1);
    let peak = peak_bytes();
    for repetition in 0..repetitions {
        let times: Vec<f64> =
            outcome.samples.iter().filter(|sample| sample.index == repetition).map(|sample| sample.value).collect();
        println!("alltoall {repetition}: mean {:.1} µs", times.iter().sum::<f64>() / times.len() as f64);
    }
    let bounds = outcome.bounds;
    let (process, link) = (bounds.process, bounds.link);
    println!("simulated {}; the busiest process alone takes {process}, the busiest link {link}", outcome.time);
    println!(
        "delayed {:.2} %",
        100.0 * outcome.counter(Counter::SendsDelayed) as f64 / outcome.counter(Counter::MessagesEager) as f64
    );
    println!("credit packets {}", outcome.counter(Counter::CreditPackets));
    println!("{packets} packets, {} hops, {} events in {wall:.1} s", outcome.network.hops, outcome.events);
    println!("{:.0} packets/s, {:.0} packet-hops/s", packets as f64 / wall, outcome.network.hops as f64 / wall);
    println!("peak {} MiB, {} bytes per pair", peak >> 20, peak / pairs);
    Ok(())
}

/// The process's peak memory, where the system tells.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) * 1024
}
