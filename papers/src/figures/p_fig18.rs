//! P fig. 18: the all-to-all with a path within nodes that consumes no credits.

use tidegate_sim::{FlowChoice, SimulationError};

use super::p_fig6_7::{amid_others, processes, warmed_up};
use crate::curve::{Curve, Line, figure, mean, measure};
use crate::report::{Fact, Findings, Series};
use crate::run::case::{Case, dynamic_credits, static_credits};
use crate::workshop::Workshop;

/// 2, 4, 8, 16 nodes: half, a quarter, an eighth, a sixteenth of the destinations are on the own node.
const MESHES: [&[u16]; 4] = [&[2], &[2, 2], &[2, 2, 2], &[4, 4]];

/// The points.
const SLOTS: [u32; 9] = [8, 12, 16, 24, 30, 40, 48, 56, 64];

/// Why dynamic does worse in small jobs. `causes local=true mesh=2x2` and `mesh=2x2x2`, with `near=13`, `free=true`,
/// `warm_up=100`.
const CHEAP_DATA: &str = "In jobs of up to 106 processes a data packet costs a receiver no more than a control packet, as the \
    calibration says, so dynamic's more control packets weigh most there, with 8 and 12 slots above all. Tested with 64 \
    processes (three seeds) and 128 (two), which make the difference, means up to 40 slots: with data packets nearly as dear \
    as among 1024 (13 near peers, not 105) dynamic has 50.6 % and static 58.9 %, and 44.1 and 45.8 %, so both statements \
    come out; with credits that take processors no time 25.9 and 27.1 %, and 20.4 and 24.3 %. More time to learn changes \
    little: after 100 all-to-alls, not 10, dynamic has 54.0 and 47.9 %.";

pub(crate) fn run(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let meshes = &MESHES[..workshop.scale.pick(4, 3, 3)];
    let slots = workshop.scale.pick(SLOTS.to_vec(), SLOTS.to_vec(), vec![24]);
    // dynamic has to learn whose messages come through the mailbox.
    let warm_up = workshop.scale.pick(10, 10, 3);
    let line = |mesh: &[u16], scheme: &str, flow: fn(u32, u32) -> FlowChoice, case: Case| Line {
        name: format!("{scheme}, {} processes", processes(mesh)),
        case: Case { intra_node_path: true, ..case },
        flow: Box::new(move |slots| flow(slots, 2)),
        slots: slots.clone(),
    };
    let lines = meshes.iter().flat_map(|mesh| {
        [
            line(mesh, "static", static_credits, amid_others(mesh)),
            line(mesh, "dynamic", dynamic_credits, warmed_up(mesh, warm_up)),
        ]
    });
    let curves = measure(workshop, lines.collect())?;
    // With more slots both have room for whole messages, and there is nothing to gain.
    let overhead = |curve: &Curve| mean(&curve.overheads(), |slots| slots <= 40);
    let pairs: Vec<(f64, f64)> = curves.chunks(2).map(|pair| (overhead(&pair[0]), overhead(&pair[1]))).collect();
    let shown = |pairs: &[(f64, f64)]| {
        let each = pairs.iter().map(|(fixed, moving)| format!("dynamic {moving:.1} %, static {fixed:.1} %"));
        each.collect::<Vec<_>>().join("; ")
    };
    let sizes = meshes.iter().map(|mesh| processes(mesh).to_string()).collect::<Vec<_>>().join(", ");
    let facts = vec![
        Fact::tested(
            "dynamic has less overhead where at least 25 % of the destinations are local (32 and 64 processes; up to \
             40 slots).",
            pairs[..2].iter().all(|(fixed, moving)| moving < fixed),
            "lower",
            shown(&pairs[..2]),
        )
        .because(CHEAP_DATA),
        Fact::tested(
            "Where at most 12.5 % are, both are alike (within 5 points).",
            pairs[2..].iter().all(|(fixed, moving)| (moving - fixed).abs() < 5.0),
            "similar",
            shown(&pairs[2..]),
        )
        .because(CHEAP_DATA),
    ];
    let setup = format!(
        "All-to-all of 2 KiB among {sizes} processes, 16 on a node (the paper: 32, 64, 128, 256); messages within a \
         node go through memory; 2 credit slots; once, with static amid a program as in figure 6, with dynamic after {warm_up} \
         to warm up and one of messages of random lengths."
    );
    let panels = meshes.iter().flat_map(|mesh| std::iter::repeat_n(format!("{} processes", processes(mesh)), 2));
    let series = curves.iter().zip(panels).map(|(curve, panel)| {
        let series = curve.series(|each, reference| each.overhead(reference));
        Series { name: series.scheme.clone(), ..series }.in_panel(panel)
    });
    let figures = vec![figure("fig18", "All-to-all with a path within nodes", "overhead (%)", series.collect())];
    Ok(Findings { setup, figures, tables: Vec::new(), facts })
}
