//! What a pool takes at each memory, in both jobs of the comparison, without the other schemes; and what its spare
//! buffer costs and gives. The same runs are part of the comparison.

use tidegate_flow::SchemeName;
use tidegate_sim::SimulationError;

use super::compare::{BOUNDS_OF_MANY, KIB, SAME, cluster, programs, programs_of_many};
use super::compare_causes::least;
use super::compare_job::{Bounds, Job};
use crate::report::{Fact, Findings};
use crate::workshop::Workshop;

/// Alone.
const POOL: &[SchemeName] = &[SchemeName::SharedWindow];

pub(crate) fn run(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let all = vec![8 * KIB, 32 * KIB, 128 * KIB, 512 * KIB, 4096 * KIB];
    let memories = workshop.scale.pick(all.clone(), vec![8 * KIB, 128 * KIB], vec![8 * KIB, 4096 * KIB]);
    let few = programs(workshop);
    let job = Job::run(workshop, cluster(32), memories, &few, Bounds { schemes: POOL, ..Bounds::default() })?;
    let least = least(workshop, cluster(32), &few, 8 * KIB)?;
    let large = cluster(workshop.scale.pick(512, 64, 8));
    let memories = workshop.scale.pick(all, vec![8 * KIB, 128 * KIB], vec![8 * KIB, 128 * KIB]);
    let bounds = Bounds { schemes: POOL, left_out: &[], ..BOUNDS_OF_MANY };
    let many = Job::run(workshop, large, memories, &programs_of_many(workshop), bounds)?;
    let [as_is, sooner, later, never] = least.spare_incast;
    let of_128 = many.memories.iter().position(|&bytes| bytes == 128 * KIB);
    let of_128 = of_128.and_then(|memory| many.overall(memory, 0));
    let facts = vec![
        Fact::tested(
            "With the least memory an incast of 64 processes takes no longer with the rule against starvation than without \
             (at most 5 %).",
            as_is <= SAME * never,
            "expected: the rule costs memory, not time",
            format!("{as_is:.2}; without the rule {never:.2}"),
        ),
        Fact::tested(
            "It does not matter after how many refusals a sender may have the spare buffer: after 1, 8 or 64, in the incast and in the \
             mean over all programs (10 %).",
            apart([as_is, sooner, later]) <= 1.1 && apart([least.spare[0], least.spare[1], least.spare[2]]) <= 1.1,
            "expected: one buffer of many is little",
            format!(
                "incast {sooner:.2}, {as_is:.2}, {later:.2}; mean {:.2}, {:.2}, {:.2}",
                least.spare[1], least.spare[0], least.spare[2]
            ),
        )
        .perhaps_because("in a small job the spare buffer is a larger part of all that its senders compete for."),
        Fact::tested(
            "With 128 KiB a pool takes the same time as none at all in the larger job, all programs together (at most 5 % more).",
            of_128.is_some_and(|slower| slower <= SAME),
            "expected: what arrives at a time decides, not how many could send",
            of_128.map_or("a run was ended early".to_owned(), |slower| format!("{slower:.2}")),
        )
        .because(MANY),
    ];
    let setup = format!(
        "As in `compare`, of the schemes only `shared_window`: 64 processes on 32 nodes, and {} on {}. A posted buffer takes \
         2,072 bytes; a pool has twice its largest window and a spare buffer.",
        many.processes, large.nodes
    );
    let tables = vec![
        job.overall_table(),
        many.overall_table(),
        least.table,
        job.table(),
        many.table(),
        job.counts(),
        many.counts(),
    ];
    Ok(Findings { setup, figures: vec![job.figure(), many.figure()], tables, facts })
}

const MANY: &str = "It is the incast alone and IS, whose many senders are refused (table of times); tested: with four times the memory the \
    incast takes less than half as long, and all others the same.";

/// The largest of some numbers, divided by the smallest.
fn apart(values: [f64; 3]) -> f64 {
    let (least, most) = values.iter().fold((f64::MAX, 0.0_f64), |(least, most), &v| (least.min(v), most.max(v)));
    most / least
}
