//! What a process costs that joins a job: every process opens an endpoint for all others, and sends a small message to
//! each of eight, whose ranks are far apart.
//!
//! `cargo bench -p tidegate-sim --bench joining`. Each row is a process of its own, so that its memory is what the
//! system says (resident, network and programs included). None of the three columns may grow with the number of
//! processes.

use std::process::Command;
use std::time::Instant;

use tidegate_flow::SchemeName;
use tidegate_sim::{FlowChoice, Rank, Simulation, SimulationConfig, Tag, Task, Topology};

/// Processes of a job, and the sides of its torus, with 16 processes on each node.
const JOBS: [(u32, &[u16]); 3] = [(64, &[4]), (1 << 10, &[8, 8]), (1 << 14, &[16, 8, 8])];

/// How far apart neighbours are, in 64ths of the job: in both directions, eight in all.
const DISTANCES: [u32; 4] = [1, 3, 9, 27];

const BYTES: u64 = 8;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [scheme, job] = &arguments[..] {
        let job: usize = job.parse().expect("the place of a job in the table");
        return measure(scheme.parse().expect("a scheme"), JOBS[job]);
    }
    println!("{:<9} {:>9} {:>8} {:>10} {:>10}", "scheme", "processes", "open us", "open KiB", "talked KiB");
    let program = std::env::current_exe().expect("this program has a name");
    for scheme in SchemeName::WITHOUT_BUFFERS {
        for (job, (processes, _)) in JOBS.iter().enumerate() {
            let status = Command::new(&program).arg(scheme.name()).arg(job.to_string()).status();
            assert!(status.expect("it starts").success(), "{scheme}, {processes} processes");
        }
    }
}

/// Prints the row of one job.
fn measure(scheme: SchemeName, (processes, sides): (u32, &[u16])) {
    let flow = FlowChoice::Mailbox { scheme, slots_per_peer: 8, credit_slots: 2, piggyback: true, quota_most: None };
    let topology = Topology::torus(sides).expect("a legal topology");
    let config = SimulationConfig { flow, ..SimulationConfig::extoll(topology) };
    assert_eq!(config.size(), processes);
    let program = move |task: Task| async move {
        let size = task.size();
        let far = |distance: u32| Rank((task.rank().0 + distance * (size / 64)) % size);
        let part = task.allocate(BYTES);
        let both = || DISTANCES.into_iter().flat_map(|distance| [distance, 64 - distance]);
        let mut requests = Vec::new();
        for distance in both() {
            requests.push(task.start_receive(far(distance), Tag(1), part).await);
        }
        for distance in both() {
            task.send(far(distance), Tag(1), part).await;
        }
        task.wait_all(requests).await;
    };
    let (before, start) = (resident(), Instant::now());
    let simulation = Simulation::new(config, &program).expect("a legal job");
    let (opened, open) = (resident(), start.elapsed());
    simulation.run().expect("every message arrives");
    let each = |bytes: u64| (bytes - before) as f64 / f64::from(processes) / 1024.0;
    let micros = open.as_secs_f64() * 1e6 / f64::from(processes);
    println!("{:<9} {processes:>9} {micros:>8.2} {:>10.1} {:>10.1}", scheme.name(), each(opened), each(peak()));
}

/// Bytes of memory that this process has now.
fn resident() -> u64 {
    status("VmRSS:")
}

/// The most that it ever had.
fn peak() -> u64 {
    status("VmHWM:")
}

fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the system tells");
    let line = status.lines().find(|line| line.starts_with(name)).expect("it has this line");
    line.split_whitespace().nth(1).and_then(|kibibytes| kibibytes.parse::<u64>().ok()).expect("a number") * 1024
}
