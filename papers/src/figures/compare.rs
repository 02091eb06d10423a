//! All seven schemes on one machine with the same programs, at equal receive memory per process, in a job of 64
//! processes and in one of 1,024: a comparison that none of the papers has.

use tidegate_flow::SchemeName;
use tidegate_sim::workload::Pattern;
use tidegate_sim::workload::collective::{Allreduce, Alltoall};
use tidegate_sim::workload::nas::{self, Class, Variation};
use tidegate_sim::workload::{Benchmark, Operation};
use tidegate_sim::{Rendezvous, SimulationError};

use super::compare_causes::{Least, Plenty, least, plenty};
use super::compare_job::{BUFFER_BYTES, Bounds, Job, Program, SCHEMES, place};
use crate::report::{Fact, Findings};
use crate::run::case::Workload;
use crate::run::machine::Cluster;
use crate::run::program::{NasRun, PatternRun};
use crate::workshop::Workshop;

pub(crate) const KIB: u64 = 1024;

/// Millions of operations that a process does in a second: that of A's figures.
const RATE: u32 = 800;

fn imb(operation: Operation, bytes: u64, warm_up: u32, repetitions: u32) -> Workload {
    Workload::Benchmark(Benchmark { bytes, warm_up, repetitions, ..Benchmark::new(operation) })
}

fn pattern(pattern: Pattern, messages: u32) -> Workload {
    Workload::Pattern(PatternRun { pattern, messages, bytes: 1024, window: 16 })
}

fn nas(benchmark: nas::Benchmark, class: Class, iterations: u32) -> Workload {
    // MG's reductions for its input are before what is timed, and would be most of its messages in so few iterations.
    let variation = if benchmark == nas::Benchmark::Mg { Variation::InputGiven } else { Variation::AsPublished };
    Workload::Nas(NasRun { benchmark, class, iterations: Some(iterations), rate: RATE, variation })
}

/// Programs of the job of 64 processes.
pub(crate) fn programs(workshop: &Workshop<'_>) -> Vec<Program> {
    let few = workshop.scale.pick(3, 1, 1);
    let mut programs = vec![
        ("Alltoall", imb(Operation::Alltoall(Alltoall::Posted), 1024, 1, few)),
        ("Exchange", imb(Operation::Exchange, 1024, 1, 25 * few)),
        ("Allreduce", imb(Operation::Allreduce(Allreduce::RecursiveDoubling), 1024, 1, 10 * few)),
        ("Incast", pattern(Pattern::Incast { root: 0 }, 10 * few)),
        ("Random", pattern(Pattern::Random, 50 * few)),
    ];
    if workshop.scale.pick(true, true, false) {
        programs.extend([
            ("NAS IS", nas(nas::Benchmark::Is, Class::B, few)),
            ("NAS LU", nas(nas::Benchmark::Lu, Class::B, few)),
            ("NAS CG", nas(nas::Benchmark::Cg, Class::B, few.div_ceil(2))),
            ("NAS MG", nas(nas::Benchmark::Mg, Class::B, few)),
            ("NAS SP", nas(nas::Benchmark::Sp, Class::B, 2 * few)),
        ]);
    }
    programs
}

/// Programs of the large job: the same, but shorter, because its all-to-all alone has a million messages; of a class of
/// LU that runs on so many processes.
pub(crate) fn programs_of_many(workshop: &Workshop<'_>) -> Vec<Program> {
    let mut programs = vec![
        ("Exchange", imb(Operation::Exchange, 1024, 1, 5)),
        ("Allreduce", imb(Operation::Allreduce(Allreduce::RecursiveDoubling), 1024, 1, 3)),
        ("Incast", pattern(Pattern::Incast { root: 0 }, 10)),
        ("Random", pattern(Pattern::Random, 20)),
    ];
    if workshop.scale.pick(true, false, false) {
        programs.extend([
            ("NAS LU", nas(nas::Benchmark::Lu, Class::C, 1)),
            ("NAS CG", nas(nas::Benchmark::Cg, Class::B, 0)),
            ("NAS MG", nas(nas::Benchmark::Mg, Class::B, 1)),
            ("NAS SP", nas(nas::Benchmark::Sp, Class::B, 1)),
        ]);
    }
    programs.push(("Alltoall", imb(Operation::Alltoall(Alltoall::Posted), 128, 0, 1)));
    if workshop.scale.pick(true, false, false) {
        programs.push(("NAS IS", nas(nas::Benchmark::Is, Class::B, 0)));
    }
    programs
}

/// Runs of the large job are ended after 0.1 s: with a pool of one buffer an incast would go on for seconds, in which a
/// thousand processes retry every 0.64 ms.
/// IS alone has two million messages.
pub(crate) const BOUNDS_OF_MANY: Bounds = Bounds {
    time_most_us: Some(100_000),
    left_out: &[("NAS IS", 8 * KIB), ("NAS IS", 32 * KIB), ("NAS IS", 512 * KIB), ("NAS IS", 4096 * KIB)],
    schemes: SCHEMES,
};

/// So many nodes of A's cluster, with L's buffers and eager limit.
pub(crate) fn cluster(nodes: u32) -> Cluster {
    Cluster { eager_bytes: 2 << 10, rendezvous: Rendezvous::Read, ..Cluster::of_a(nodes) }
}

/// A number, if there is one: the scheme may need more memory, or a run may have been ended early.
fn said(value: Option<f64>) -> String {
    value.map_or("none (table of means)".to_owned(), |value| format!("{value:.2}"))
}

/// Schemes with a number each, if there is one.
fn list(of: &[SchemeName], value: impl Fn(SchemeName) -> Option<f64>) -> String {
    of.iter().map(|&scheme| format!("{scheme} {}", said(value(scheme)))).collect::<Vec<_>>().join(", ")
}

/// At most so much beyond none at all counts as the same.
pub(crate) const SAME: f64 = 1.05;

/// The comparison.
pub(crate) fn run(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let memories = workshop.scale.pick(
        vec![8 * KIB, 32 * KIB, 128 * KIB, 512 * KIB, 4096 * KIB],
        vec![8 * KIB, 128 * KIB, 4096 * KIB],
        vec![8 * KIB, 4096 * KIB],
    );
    let (least_memory, most_memory) = (memories[0], memories[memories.len() - 1]);
    let small = cluster(32);
    let few = programs(workshop);
    let job = Job::run(workshop, small, memories, &few, Bounds::default())?;
    let plenty = plenty(workshop, small, &few, most_memory)?;
    let least = least(workshop, small, &few, least_memory)?;
    let memories = workshop.scale.pick(
        vec![8 * KIB, 32 * KIB, 128 * KIB, 512 * KIB, 4096 * KIB],
        vec![8 * KIB, 128 * KIB, 4096 * KIB],
        vec![8 * KIB, 128 * KIB, 4096 * KIB],
    );
    let large = cluster(workshop.scale.pick(512, 64, 8));
    let many = Job::run(workshop, large, memories, &programs_of_many(workshop), BOUNDS_OF_MANY)?;
    let mut facts = facts_of_few(&job, &plenty, &least);
    facts.extend(facts_of_many(&job, &many));
    let setup = format!(
        "One machine, infiniband2007 with the eager limit at 2 KiB and long messages read by their receivers: 64 processes \
         on 32 nodes, and {} on {}. A posted buffer takes {BUFFER_BYTES} bytes, a slot 64. The expectations are ours: no paper \
         has this. NAS patterns are of class B, LU of the larger job of class C, because class B's grid is too small for \
         it. The larger job's programs are shorter: an all-to-all of 128 bytes, once, without one before that does not \
         count; LU, MG and SP one iteration after one that does not count, CG and IS the first. IS, which has two million \
         messages there, is run with 128 KiB only. Runs of the larger job are ended after 0.1 s (`over`).",
        many.processes, large.nodes
    );
    let figures = vec![job.figure(), many.figure()];
    let tables = vec![
        job.overall_table(),
        many.overall_table(),
        plenty.table,
        least.table,
        job.table(),
        many.table(),
        job.counts(),
        many.counts(),
    ];
    Ok(Findings { setup, figures, tables, facts })
}

/// Statements about the job of 64 processes, and about what was suspected to decide their outcome.
fn facts_of_few(job: &Job, found: &Plenty, least: &Least) -> Vec<Fact> {
    let last = job.memories.len() - 1;
    let of = |memory: usize| move |scheme| job.overall(memory, place(scheme));
    let all: Vec<f64> = SCHEMES.iter().filter_map(|&scheme| of(last)(scheme)).collect();
    let at_least = of(0);
    let pool = at_least(SchemeName::SharedWindow);
    let fixed = at_least(SchemeName::Static);
    vec![
        Fact::tested(
            "With the most memory all seven schemes take the same time (64 processes, mean over all programs, at most 5 % \
             beyond none at all).",
            all.len() == SCHEMES.len() && all.iter().all(|slower| *slower <= SAME),
            "expected: memory decides, not the scheme",
            list(SCHEMES, of(last)),
        )
        .because(PLENTY),
        Fact::tested(
            "With the most memory growing takes the same time once it has grown (in the last three quarters of longer programs).",
            found.growing_grown <= SAME,
            "expected: it is slow only while it grows",
            format!("{:.2}", found.growing_grown),
        )
        .because(GROWN),
        Fact::tested(
            "It does with a retry timer of 0.01 ms.",
            found.growing_shortest_timer <= SAME,
            "expected: it is refusals that it loses by",
            format!("{:.2}", found.growing_shortest_timer),
        )
        .because(GROWING_TIMER),
        Fact::tested(
            "It does if connections begin with all their buffers.",
            found.growing_from_most <= SAME,
            "expected: with enough buffers nothing is refused",
            format!("{:.2}", found.growing_from_most),
        )
        .because(FROM_MOST),
        Fact::tested(
            "With the most memory static and dynamic take the same time if credits cost processors nothing.",
            found.free_credits.iter().all(|slower| *slower <= SAME),
            "expected: they are slower by the work on credits",
            format!("static {:.2}, dynamic {:.2}", found.free_credits[0], found.free_credits[1]),
        )
        .because(FREE_CREDITS),
        Fact::tested(
            "With the least memory a pool serves 64 processes better than credits for each connection do.",
            pool.zip(fixed).is_some_and(|(pool, fixed)| pool < fixed),
            "expected: what is shared goes further",
            list(&[SchemeName::SharedWindow, SchemeName::Static, SchemeName::Dynamic], at_least),
        )
        .because(LEAST),
        Fact::tested(
            "The pool does with a retry timer of 0.01 ms.",
            least.credits.iter().all(|credits| least.shortest_timer < *credits),
            "expected: it is the timer that it loses by",
            format!(
                "shared_window {:.2}, static {:.2}, dynamic {:.2}",
                least.shortest_timer, least.credits[0], least.credits[1]
            ),
        )
        .because(TIMER),
    ]
}

/// Statements about the larger job.
fn facts_of_many(job: &Job, many: &Job) -> Vec<Fact> {
    let at = |job: &Job, bytes: u64, scheme| {
        let memory = job.memories.iter().position(|memory| *memory == bytes)?;
        job.overall(memory, place(scheme))
    };
    let lowest = many.memories.iter().copied().find(|&bytes| at(many, bytes, SchemeName::Static).is_some());
    let lowest = lowest.unwrap_or(many.memories[0]);
    let place_of = |bytes: u64| many.memories.iter().position(|memory| *memory == bytes);
    let said_of = |bytes: u64, schemes: &[SchemeName]| {
        let said = |scheme| place_of(bytes).map_or("not run".to_owned(), |at| many.overall_said(at, place(scheme)));
        schemes.iter().map(|&scheme| format!("{scheme} {}", said(scheme))).collect::<Vec<_>>().join(", ")
    };
    let with_credits = [SchemeName::SharedWindow, SchemeName::Static, SchemeName::Dynamic];
    let with_buffers = [SchemeName::SharedWindow, SchemeName::Rnr, SchemeName::Preposted, SchemeName::Growing];
    // Of the others it is enough to know that they take longer than that.
    let is_first_best = |of_these: &[SchemeName], bytes: u64| {
        let best = at(many, bytes, of_these[0]);
        let at_least = |&scheme: &SchemeName| many.overall_at_least(place_of(bytes)?, place(scheme));
        let others: Option<Vec<f64>> = of_these[1..].iter().map(at_least).collect();
        best.zip(others).is_some_and(|(best, others)| others.iter().all(|other| best < *other))
    };
    let pool = |job, bytes| at(job, bytes, SchemeName::SharedWindow);
    let (small_pool, large_pool) = (pool(job, 128 * KIB), pool(many, 128 * KIB));
    vec![
        Fact::tested(
            "What a pool needs does not grow with the job: with 128 KiB it takes the same time as none at all in the larger \
             job (1,024 processes at full size), too.",
            large_pool.is_some_and(|slower| slower <= SAME),
            "expected: what arrives at a time decides, not how many could send",
            format!("{}; 64 processes {}", said(large_pool), said(small_pool)),
        )
        .because(MANY_POOL),
        Fact::tested(
            "In the larger job, with the least memory that suffices for static, a pool is faster than static and dynamic.",
            is_first_best(&with_credits, lowest),
            "expected: what is shared goes further",
            format!("{}: {}", super::compare_job::size(lowest), said_of(lowest, &with_credits)),
        )
        .because(MANY_CREDITS),
        Fact::tested(
            "In the larger job with 4 MiB, one buffer for each connection at full size, a pool is faster than all three \
             schemes with buffers for each connection.",
            is_first_best(&with_buffers, 4096 * KIB),
            "expected: one buffer is too few",
            said_of(4096 * KIB, &with_buffers),
        )
        .because(MANY_BUFFERS),
    ]
}

const PLENTY: &str = "Tested (table of what is suspected): growing is as fast as the others if connections begin with all their buffers, static \
    and dynamic are if credits cost processors nothing: there is a credit packet or a piece of one for nearly every message.";
const GROWN: &str = "It is not that programs are too short. A connection with one buffer answers each message with a credit message, which \
    takes the only buffer of the other side; the message that meets it there is refused and waits for the retry timer. Nobody \
    waited for a credit, so the connection does not grow. Tested (table of what is suspected): a shorter timer, and a second \
    buffer at the start, take most of it away; longer programs do not, where each connection has few messages at a time.";
const GROWING_TIMER: &str = "A shorter timer takes away what refusals cost; what is left is that each message with the only credit waits \
    until that comes back, or becomes a rendezvous.";
const FROM_MOST: &str = "Not tested: nothing was refused any more, so something else is slow.";
const FREE_CREDITS: &str = "Not tested: what is left is the way of credits through the network.";
const LEAST: &str = "With 8 KiB the pool has a single buffer for all, and whoever finds it taken waits for the retry timer, 0.64 ms, where a \
    sender without credits waits only until they come back. Tested (table of the least memory): with shorter timers the pool is \
    faster than credits in the mean. The rule against starvation costs nothing (last columns of that table).";
const TIMER: &str = "Tested (table of the least memory): refused messages that come again sooner find the buffer taken more often, and their \
    packets take the network's time.";
const MANY_POOL: &str = "It is the incast, in which a thousand senders are refused and wait for their timers, and IS (table of times); the other \
    programs take the same time as none at all, or nearly. Tested (`pool`): with four times the memory the incast takes less \
    than half as long.";
const MANY_CREDITS: &str = "It is in all programs but the incast and CG, where all three take nearly the same (table of times). In the incast whoever \
    is refused waits for the retry timer.";
const MANY_BUFFERS: &str = "In the incast every sender has a buffer of his own at the receiver, for which nobody competes; in all other \
    programs the pool is as fast or faster (table of times).";
