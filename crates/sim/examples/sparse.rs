//! What a large job costs whose processes have few contacts: 16,384 processes on a 16×8×8 torus, each of which
//! exchanges messages with its 32 nearest ranks.
//!
//! `cargo run --release -p tidegate-sim --example sparse -- [dynamic|static|none] [bytes]`

use std::time::Instant;

use tidegate_flow::SchemeName;
use tidegate_sim::{FlowChoice, Rank, Simulation, SimulationConfig, Tag, Task, Topology};

/// Neighbours on each side.
const REACH: u32 = 16;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scheme: SchemeName = arguments.first().map_or("dynamic", String::as_str).parse()?;
    let bytes: u64 = arguments.get(1).map_or("300", String::as_str).parse()?;
    let flow = FlowChoice::Mailbox { scheme, slots_per_peer: 16, credit_slots: 2, piggyback: true, quota_most: None };
    let topology = Topology::torus(&[16, 8, 8])?;
    let config = SimulationConfig { flow, peers: Some(2 * REACH), ..SimulationConfig::extoll(topology) };
    let processes = u64::from(config.size());
    let program = move |task: Task| async move {
        let near = |distance: u32| Rank((task.rank().0 + distance) % task.size());
        let part = task.allocate(bytes);
        let mut requests = Vec::new();
        for distance in 1..=REACH {
            requests.push(task.start_receive(near(task.size() - distance), Tag(1), part).await);
            requests.push(task.start_receive(near(distance), Tag(1), part).await);
        }
        for distance in 1..=REACH {
            task.send(near(distance), Tag(1), part).await;
            task.send(near(task.size() - distance), Tag(1), part).await;
        }
        task.wait_all(requests).await;
    };
    let start = Instant::now();
    let outcome = Simulation::new(config, &program)?.run()?;
    let wall = start.elapsed().as_secs_f64();
    println!("{processes} processes, {} packets in {wall:.1} s, simulated {}", outcome.network.delivered, outcome.time);
    println!("peak {} MiB, {} KiB per process", peak_bytes() >> 20, (peak_bytes() / processes) >> 10);
    Ok(())
}

/// The process's peak memory, where the system tells.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) * 1024
}
