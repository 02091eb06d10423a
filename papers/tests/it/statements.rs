//! Every experiment of the papers at its smallest scale: the paper's statements that come out must go on coming
//! out.
//!
//! Those that do not are named here one by one. The papers' pages say why, and what comes out at larger scales; where
//! one of them comes out after a change, the better.

use tidegate_cli::progress::Bar;
use tidegate_papers::{Experiment, Report, Scale, Verdict, Workshop};

/// Seed of all runs; results do not depend on how many run at once.
const SEED: u64 = 1;

fn run(ids: &[&str]) -> Vec<Report> {
    let bar = Bar::new("paper");
    let workshop = Workshop::new(Scale::Smallest, SEED, Some(1), &bar);
    let report = |id: &&str| {
        let experiment = Experiment::find(id).unwrap_or_else(|| panic!("there is no {id}"));
        experiment.run(&workshop).unwrap_or_else(|error| panic!("{id} failed: {error}"))
    };
    ids.iter().map(report).collect()
}

/// Runs experiments and checks that all statements come out but those that begin with one of `differing`.
#[track_caller]
fn all_come_out_but(ids: &[&str], differing: &[&str]) {
    for report in run(ids) {
        assert!(!report.facts.is_empty(), "{} states nothing", report.id);
        assert!(!report.setup.is_empty() && report.scale == "smallest", "{} does not say what was run", report.id);
        for fact in &report.facts {
            let expected_to_differ = differing.iter().any(|start| fact.statement.starts_with(start));
            match fact.verdict {
                Verdict::Reproduced => {}
                Verdict::NotRun | Verdict::Implied => {
                    assert!(!fact.explanation.is_empty(), "no reason: {}", fact.statement)
                }
                Verdict::Differs => {
                    let (id, statement) = (&report.id, &fact.statement);
                    assert!(expected_to_differ, "{id}: {statement} paper: {}; here: {}", fact.paper, fact.here);
                    assert!(!fact.explanation.is_empty(), "{id}: nothing explains why this differs: {statement}");
                }
            }
        }
    }
}

#[test]
fn tables_and_the_trace_come_out_exactly() {
    all_come_out_but(&["P-table1", "P-table2", "P-fig14"], &["Block 2: the threshold that was computed, 4, enters"]);
}

#[test]
fn sentences_without_a_figure() {
    // 32 processes have half as many others to hear of in turn, and no Scatter of theirs has far to go.
    let differing = [
        "A message of 2 KiB has no room",
        "Processes of a balanced all-to-all",
        "With messages that cross at most one monitoring point",
        "So do they with 8",
        "So do three senders",
        "So do sixteen that send messages",
        "P's Scatter is no root",
    ];
    all_come_out_but(
        &[
            "P-pressure",
            "P-fig3",
            "P-thefts",
            "P-packets",
            "P-header",
            "P-headline",
            "P-scatter",
            "P-jobs",
            "P-increments",
            "P-delayed",
            "P-updates",
            "P-machines",
        ],
        &differing,
    );
}

#[test]
fn more_repetitions() {
    // Phases of 16 all-to-alls are too short, and 32 roots too few.
    let differing =
        ["Figure 15, after 100 all-to-alls: half, a quarter", "Figure 19, with 100", "Figure 24, with as many"];
    all_come_out_but(&["P-learning"], &differing);
}

#[test]
fn multi_pingpong_under_static() {
    all_come_out_but(&["P-fig4", "P-fig5"], &["Under 30 slots the longer", "The share of delayed sends grows"]);
}

#[test]
fn the_alltoall_under_static() {
    let overhead = [
        "The overhead of the larger job starts",
        "Between 40 and 50 slots there is a huge drop",
        "2 credit slots are best for the all-to-all",
        "It is stable from",
        "Overhead grows with the number",
        "With 2 credit slots 58 slots cost very little",
    ];
    all_come_out_but(&["P-fig6", "P-fig7"], &overhead);
}

#[test]
fn piggybacking() {
    all_come_out_but(&["P-fig9"], &["Piggybacking lowers the overhead", "It saves explicit credit packets"]);
}

#[test]
fn four_patterns() {
    let differing = ["With 57 or more, eq. 5's number", "With 30 slots half of the processes"];
    all_come_out_but(&["P-fig10", "P-fig15"], &differing);
}

#[test]
fn what_overhead_consists_of() {
    let differing = [
        "In the all-to-all waiting costs static more",
        "In the all-to-all both have the same overhead",
        "So they have the same work",
        "And the same stalls",
        "Below 16 slots dynamic is slightly worse",
        "There its work is less",
    ];
    all_come_out_but(&["P-fig16", "P-fig17"], &differing);
}

#[test]
fn a_path_within_nodes() {
    all_come_out_but(&["P-fig18"], &["dynamic has less overhead where at least 25 %", "Where at most 12.5 % are"]);
}

#[test]
fn credits_follow_phases() {
    // Phases are too short at this scale; at the others they come out.
    all_come_out_but(&["P-fig19"], &["Phase 3, half", "Phase 5, half", "Phase 6", "Phase 7", "The barrier between"]);
}

#[test]
fn the_intel_benchmarks() {
    all_come_out_but(
        &["P-fig20-23", "P-fig27", "P-table3", "P-endpoint"],
        &[
            "A whole endpoint takes under static",
            "At equal overhead",
            "static needs 64 slots",
            "dynamic needs",
            "With 8 slots the larger mean overhead",
            "The structures of static take",
            "Those of dynamic are about 37 times",
        ],
    );
}

#[test]
fn rooted_collectives() {
    all_come_out_but(
        &["P-fig24-26"],
        &[
            "With 64 slots, 4 GB in all, neither is",
            "Without flow control Scatterv is slower than Scatter",
            "With many repetitions per root dynamic comes close",
            "Reduce_scatter is faster under static",
            "Under static it is fastest with 32",
            "Under dynamic it gains from a cap",
            "With 10 ns for each packet in a mailbox",
            "Gatherv under dynamic is faster",
        ],
    );
}

#[test]
fn every_experiment_has_a_test_here() {
    let source = include_str!("statements.rs");
    for experiment in Experiment::all() {
        assert!(source.contains(&format!("\"{}\"", experiment.id)), "{} is not tested", experiment.id);
    }
}

#[test]
fn a_report_is_the_same_however_many_runs_go_on_at_once() {
    let reports = [1, 4].map(|jobs| {
        let bar = Bar::new("paper");
        let workshop = Workshop::new(Scale::Smallest, SEED, Some(jobs), &bar);
        Experiment::find("P-fig24-26").unwrap().run(&workshop).unwrap()
    });
    assert_eq!(reports[0], reports[1]);
}

/// Without noise this differs, with one size of message.
#[test]
fn with_noise_piggybacking_lowers_the_overhead() {
    let bar = Bar::new("paper");
    let workshop = Workshop::new(Scale::Smallest, SEED, Some(1), &bar).with_noise(Workshop::NOISE_PERCENT);
    let report = Experiment::find("P-fig9").unwrap().run(&workshop).unwrap();
    assert_eq!(report.noise_percent, 2.5);
    let fact = report.facts.iter().find(|fact| fact.statement.starts_with("Piggybacking lowers the overhead")).unwrap();
    assert_eq!(fact.verdict, Verdict::Reproduced, "{}", fact.here);
    let not_simulated = Experiment::find("P-table1").unwrap().run(&workshop).unwrap();
    assert_eq!(not_simulated.noise_percent, 0.0);
}

#[test]
fn latency_and_bandwidth_with_posted_buffers() {
    let differing = [
        "With 100 buffers all three schemes perform comparably",
        "Preposted is the worst",
        "Under preposted blocking calls achieve more",
        "Under growing, too",
        "With 10 buffers all three schemes perform well",
    ];
    all_come_out_but(&["L-fig2", "L-fig3-6", "L-fig7-8"], &differing);
}

#[test]
fn nas_benchmarks_with_posted_buffers() {
    let differing = [
        "On LU rnr outperforms",
        "On LU both schemes with credits are slower",
        "A larger threshold than 5 improves",
        "IS, FT, SP and BT lose at most 2 %",
        "Under rnr performance drops significantly on LU",
        "And on MG",
        "Preposted drops most on LU",
        "And next on CG",
        "LU reaches as many as it has planes",
        "They need as many as L says",
        "Some combination of timer and speed",
    ];
    all_come_out_but(&["L-fig9", "L-table1", "L-fig10", "L-fit", "L-table2"], &differing);
}

#[test]
fn pools_that_adapt() {
    let differing = [
        "On the two others there is degradation",
        "It is two to three times less",
        "From 16 to 4096 memory grows",
        "With a very small largest window",
        "On the others neither",
    ];
    all_come_out_but(&["A-fig2", "A-fig3"], &differing);
}

#[test]
fn eight_schemes_at_equal_memory() {
    let differing = [
        "With the most memory all eight",
        "With the most memory growing takes the same time once",
        "It does with a retry timer",
        "In the larger job, with the least memory",
        "In the larger job with 4 MiB",
        "Under speculative no program takes more than 1.1 times",
    ];
    all_come_out_but(&["compare"], &differing);
}

#[test]
fn one_pool_of_slots() {
    all_come_out_but(&["imb", "scale"], &[]);
}

#[test]
fn memory_in_all() {
    let differing = [
        "At equal memory in all, from 32 KiB on, no program takes more than 1.1 times as long under speculative as under the best other",
    ];
    all_come_out_but(&["total", "total-large"], &differing);
}

#[test]
fn a_pool_at_every_memory() {
    // In a job of 16 the spare buffer is a larger part of all; the other differs at full size, too.
    let differing = ["It does not matter after how many refusals", "With 128 KiB a pool takes the same time as none"];
    all_come_out_but(&["pool"], &differing);
}

#[test]
fn few_slow_nodes_of_many() {
    // The smallest network has one slow node at most, and few groups; papers/schneider has what comes out at full size.
    let differing = [
        "With no slow node the network accepts",
        "One slow node in a thousand is enough",
        "One in a hundred is worse",
        "The cause is that non-minimal ways",
        "Adaptive ways make it worse",
        "The default marks cost",
        "Aggressive marks cost",
        "With slow nodes at 1/8 marks reduce",
        "With slow nodes at 1/2, 30 chunks give 1.7",
        "With slow nodes at 1/4, 30 chunks give 3.3",
        "With slow nodes at 1/8, 30 chunks give 4.3",
        "With chunks throughput is better",
    ];
    all_come_out_but(&["R-fig1", "R-fig4", "R-fig5"], &differing);
}

#[test]
fn channels_that_r_leaves_open_and_what_limits_do_to_others() {
    // In the smallest network a slow node harms few; papers/schneider has what comes out at full size.
    let differing = [
        "In some cell",
        "It stays there in some cell",
        "In every cell but ours",
        "Some cell has at least",
        "With none slow neither cell accepts",
        "0.1 % at 1/8 leave less than 0.7",
        "With those 30 chunks give at least twice",
        "Marks slow down transfers",
        "With minimal ways they do not",
    ];
    all_come_out_but(&["R-channels", "R-seeds", "R-ports"], &differing);
}

#[test]
fn what_chunks_cost_a_pingpong() {
    // Measured numbers of the real library, which no size of a network changes.
    all_come_out_but(&["R-fig6"], &["What is taken in several chunks", "Short messages", "Beside taking a message"]);
}

#[test]
fn techniques_of_bulk_transfer() {
    // The smallest CM-5 has 16 nodes, and few blocks per pair; papers/brewer has what comes out with 64.
    let differing = [
        "Barriers improve a cyclic shift of large blocks dramatically on cm5",
        "Barriers improve a cyclic shift of large blocks dramatically on alewife",
        "Barriers improve it most on the CM-5",
        "Tree barriers win for all but",
        "With units of 8 KiB interleaving",
        "For larger blocks tokens begin to gain",
        "Tokens always perform better than tree barriers on paragon",
        "Bandwidth matching relieves a cyclic shift",
        "For sufficiently large blocks booking",
        "Less than 1 % of the requests are denied on",
        "Booking keeps most senders busy for the duration with random",
        "One way they carry what is told of data",
        "The Paragon's nodes carry the 140 MB/s",
        "Few nodes are idle",
    ];
    all_come_out_but(&["B-fig1-3", "B-fig5-7", "B-fig8", "B-fig10-11", "B-fig12-13"], &differing);
}

#[test]
fn slow_processes_on_a_dragonfly() {
    all_come_out_but(&["R-endpoints"], &[]);
}

#[test]
fn all_to_alls_on_networks_of_today() {
    all_come_out_but(&["B-today"], &["With long blocks nothing at all is faster", "Where everybody has as much"]);
}

#[test]
fn blocks_of_irregular_sizes() {
    all_come_out_but(&["B-irregular"], &["Irregular sizes benefit from booking", "They gain more by it"]);
}

#[test]
fn match_bits_without_the_announcement() {
    let differing =
        ["Nor does any with the rule of Portals", "Nor if they have a bit of its own", "The last row of table 1"];
    all_come_out_but(&["R-theorem2"], &differing);
}

/// Noise interrupts processes, and networks under load have none: the same runs serve with any.
#[test]
fn noise_is_nothing_to_networks_under_load() {
    let bar = Bar::new("paper");
    let plain = Workshop::new(Scale::Smallest, SEED, Some(1), &bar);
    let noisy = Workshop::new(Scale::Smallest, SEED, Some(1), &bar).with_noise(Workshop::NOISE_PERCENT);
    let reports = [plain, noisy].map(|workshop| Experiment::find("R-fig4").unwrap().run(&workshop).unwrap());
    assert_eq!(reports[0], reports[1]);
}
