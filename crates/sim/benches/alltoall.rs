//! What the whole simulator costs: the all-to-all of 2 KiB among 256 processes on the 4×4 mesh of P, processes, flow
//! control and network together, under each scheme.
//!
//! `cargo bench -p tidegate-sim --bench alltoall [-- SIZES]`, for example `-- 4x4x4` for the 1,024 processes of P, who
//! are sixteen times as many pairs. Printed is the best of three runs: nanoseconds per packet and per event.

use std::time::Instant;

use tidegate_flow::SchemeName;
use tidegate_sim::workload::Communicator;
use tidegate_sim::workload::collective::{Alltoall, alltoall};
use tidegate_sim::{FlowChoice, Outcome, Simulation, SimulationConfig, SimulationError, Task, Topology};

const BLOCK: u64 = 2048;
const RUNS: u32 = 3;

fn run(sizes: &[u16], flow: FlowChoice) -> Result<Outcome, SimulationError> {
    let topology = Topology::mesh(sizes).map_err(|error| SimulationError::Setup(error.to_string()))?;
    let config = SimulationConfig { flow, ..SimulationConfig::extoll(topology) };
    let program = |task: Task| async move {
        let world = Communicator::world(&task);
        let bytes = BLOCK * u64::from(task.size());
        let (out, into) = (task.allocate(bytes), task.allocate(bytes));
        alltoall(&world, Alltoall::Plain, out, into, BLOCK).await;
    };
    Simulation::new(config, &program)?.run()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sizes = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or("4x4".to_owned());
    let sizes: Vec<u16> = sizes.split('x').map(str::parse).collect::<Result<_, _>>()?;
    let mailbox = |scheme| FlowChoice::Mailbox {
        scheme,
        slots_per_peer: 64,
        credit_slots: 2,
        piggyback: false,
        quota_most: None,
    };
    let flows = [
        ("unlimited", FlowChoice::Unlimited),
        ("static", mailbox(SchemeName::Static)),
        ("dynamic", mailbox(SchemeName::Dynamic)),
    ];
    println!("{:<10} {:>12} {:>14} {:>10} {:>10}", "scheme", "packets", "events", "ns/packet", "ns/event");
    for (name, flow) in flows {
        let mut best: Option<(f64, Outcome)> = None;
        for _ in 0..RUNS {
            let start = Instant::now();
            let outcome = run(&sizes, flow)?;
            let nanoseconds = start.elapsed().as_nanos() as f64;
            if best.as_ref().is_none_or(|(fastest, _)| nanoseconds < *fastest) {
                best = Some((nanoseconds, outcome));
            }
        }
        if let Some((nanoseconds, outcome)) = best {
            let (packets, events) = (outcome.network.delivered, outcome.events);
            let (per_packet, per_event) = (nanoseconds / packets as f64, nanoseconds / events as f64);
            println!("{name:<10} {packets:>12} {events:>14} {per_packet:>10.1} {per_event:>10.1}");
        }
    }
    Ok(())
}
