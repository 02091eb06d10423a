use tidegate_bulk::*;
use tidegate_sim::cycle::all_to_all::*;
use tidegate_sim::cycle::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let layout = match a[1].as_str() {
        "72" => Layout::Dragonfly(Dragonfly { groups: 9, routers: 4, nodes: 2, global: 2 }),
        "342" => Layout::Dragonfly(Dragonfly { groups: 19, routers: 6, nodes: 3, global: 3 }),
        "1056" => Layout::Dragonfly(Dragonfly { groups: 33, routers: 8, nodes: 4, global: 4 }),
        "1024t" => Layout::FatTree(FatTree { radix: 16, levels: 3 }),
        "128t" => Layout::FatTree(FatTree { radix: 8, levels: 3 }),
        _ => Layout::Dragonfly(Dragonfly::SCHNEIDER),
    };
    let bytes: u64 = a[2].parse().unwrap();
    let sizes = match a[3].as_str() {
        "u" => Sizes::Uniform(bytes),
        "r" => Sizes::Random(bytes),
        "k" => Sizes::Skewed(bytes),
        _ => Sizes::Sparse { receivers: 16, bytes },
    };
    let overhead: u32 = a[4].parse().unwrap();
    let b = |w, f| {
        (
            Algorithm::Technique(TechniqueName::Booking),
            Settings { window: w, rounds_per_barrier: f, unit: 8192, ..Settings::default() },
        )
    };
    let t = |n| (Algorithm::Technique(n), Settings { ..Settings::default() });
    let mut all = vec![
        t(TechniqueName::InOrder),
        t(TechniqueName::Interleave),
        (Algorithm::Scattered(32), Settings::default()),
        (Algorithm::Pairwise, Settings::default()),
        t(TechniqueName::Barriers),
        t(TechniqueName::Tokens),
        t(TechniqueName::ReceiverTokens),
        b(8, 1),
        b(32, 1),
        b(32, 4),
        b(32, 16),
        b(64, 32),
    ];
    if a[3] == "u" && bytes <= 4096 {
        all.push((Algorithm::Bruck, Settings::default()));
    }
    for (algorithm, settings) in all {
        let plan = Plan {
            layout,
            routing: Routing::PROGRESSIVE,
            parameters: Parameters::SCHNEIDER,
            flit_bytes: 16,
            algorithm,
            settings,
            barrier: Barrier::Tree { arity: 4 },
            overhead_cycles: overhead,
            sizes,
            seed: 1,
            most_cycles: 100_000_000,
        };
        let t = std::time::Instant::now();
        match AllToAll::run(&plan) {
            Ok(e) => println!(
                "{:24} w{} f{} cycles {:9} rate {:.3} signals {:9} denied {:.3} most {} {:.1} s",
                algorithm.to_string(),
                settings.window,
                settings.rounds_per_barrier,
                e.cycles,
                e.rate,
                e.signals,
                e.denials as f64 / e.requests.max(1) as f64,
                e.most_at_one,
                t.elapsed().as_secs_f64()
            ),
            Err(e) => println!("{algorithm} {e}"),
        }
    }
}
