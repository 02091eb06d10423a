//! How fast a dragonfly under full load is simulated: the network of R, 5,256 nodes, after it has filled up.
//!
//! `cargo bench -p tidegate-sim --bench dragonfly [-- CYCLES]`. Printed are cycles and steps of packets through routers
//! per second of one core, and the most memory of the process so far.

use std::time::Instant;

use tidegate_sim::cycle::{Control, Dragonfly, Layout, Load, Loaded, Machine, Parameters, Pattern, Routing};

/// The most memory that this process ever had, in MiB.
fn memory_most() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0.0);
    kib / 1024.0
}

fn main() {
    let cycles = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(10_000);
    let pairs = Load::full(Pattern::Pairs);
    let slow = Load { slow_nodes: 53, slow_factor: 8, ..pairs };
    let cases = [
        ("pairs", Routing::PROGRESSIVE, pairs),
        ("uniform", Routing::PROGRESSIVE, Load::full(Pattern::Uniform)),
        ("pairs, minimal", Routing::Minimal, pairs),
        ("uniform, minimal", Routing::Minimal, Load::full(Pattern::Uniform)),
        ("pairs, Valiant", Routing::Valiant, pairs),
        ("1 % slow, 8x", Routing::PROGRESSIVE, slow),
        ("the same, marks", Routing::PROGRESSIVE, Load { control: Control::DEFAULT_MARKS, ..slow }),
        ("the same, 30 chunks", Routing::PROGRESSIVE, Load { control: Control::Chunks(30), ..slow }),
    ];
    println!("load                 cycles/s  packet-hops/s  accepted  memory (MiB)");
    for (name, routing, load) in cases {
        let layout = Layout::Dragonfly(Dragonfly::SCHNEIDER);
        let machine = Machine { layout, routing, parameters: Parameters::SCHNEIDER, load, seed: 1 };
        let mut loaded = Loaded::new(&machine).expect("the network of R");
        loaded.run(cycles);
        let (hops, sunk, begin) = (loaded.totals().hops, loaded.counts().sunk, Instant::now());
        loaded.run(cycles);
        let seconds = begin.elapsed().as_secs_f64();
        let (hops, sunk) = (loaded.totals().hops - hops, loaded.counts().sunk - sunk);
        let accepted = 16.0 * sunk as f64 / cycles as f64 / f64::from(layout.nodes());
        println!(
            "{name:<20} {:>8.0} {:>14.0} {accepted:>9.3} {:>13.0}",
            cycles as f64 / seconds,
            hops as f64 / seconds,
            memory_most()
        );
    }
}
