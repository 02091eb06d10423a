//! B fig. 8: receiver tokens on the Paragon.

use tidegate_sim::{Measurement, SimulationError};

use super::b_machines::{Curve, Setting, list, run_all};
use crate::report::{Fact, Findings, Table};
use crate::runs::Runs;
use crate::workshop::Workshop;

const CURVES: [Curve; 4] = [Curve::Shift, Curve::Barriers, Curve::Tokens, Curve::ReceiverTokens];

/// The share of the time for which nodes had a block under way, in percent.
fn busy(run: &Measurement) -> f64 {
    run.bulk.as_ref().map_or(0.0, |bulk| 100.0 * bulk.busy.iter().sum::<f64>() / bulk.busy.len().max(1) as f64)
}

pub(crate) fn run(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let setting = Setting::paragon(workshop.scale);
    let panel = setting.measure(workshop, &CURVES)?;
    let figure = panel.figure("fig8", "Receiver tokens beside the other permutation methods, paragon");
    let over_tokens = panel.gains(Curve::ReceiverTokens, Curve::Tokens);
    let over_barriers = panel.gains(Curve::ReceiverTokens, Curve::Barriers);
    let watched = CURVES[1..].iter().flat_map(|&curve| {
        setting.sizes.iter().map(move |&bytes| (curve, bytes)).map(|(curve, bytes)| {
            let mut run = setting.run(curve, bytes);
            run.job.watch = true;
            run
        })
    });
    let runs = run_all(workshop, &watched.collect::<Vec<_>>())?;
    let rows: Vec<&[Runs]> = runs.chunks(setting.sizes.len()).collect();
    let share = |row: usize, place: usize| rows[row][place].estimate(busy).mean();
    let title = "Share of the time for which a node has a block under way (%)";
    let mut table =
        Table::new("busy", title, &["block size (bytes)", CURVES[1].name(), CURVES[2].name(), CURVES[3].name()]);
    for (place, bytes) in setting.sizes.iter().enumerate() {
        let cells = (0..3).map(|row| format!("{:.1}", share(row, place)));
        table.row(std::iter::once(bytes.to_string()).chain(cells));
    }
    let under_used = (0..setting.sizes.len()).all(|place| share(2, place) < share(1, place));
    let facts = vec![
        Fact::tested(
            "Receiver tokens perform worse than tokens (at every size).",
            over_tokens.iter().all(|(_, gain)| *gain < 1.0),
            "disappointing",
            format!("times tokens: {}", list(&over_tokens)),
        ),
        Fact::tested(
            "They perform worse than barriers (at every size).",
            over_barriers.iter().all(|(_, gain)| *gain < 1.0),
            "disappointing",
            format!("times barriers: {}", list(&over_barriers)),
        )
        .because(LARGE),
        Fact::tested(
            "The network is underutilized: fewer nodes have a block under way than with tokens (at every size).",
            under_used,
            "underutilized",
            list(&setting.sizes.iter().enumerate().map(|(place, &size)| (size, share(2, place))).collect::<Vec<_>>()),
        )
        .because(
            "What a node has under way includes the time in which its receiver is too slow to take it (table busy)",
        )
        .implied(
            "request and grant alone keep fewer blocks under way; queues at receivers, which B blames, were not counted.",
        ),
    ];
    Ok(Findings { setup: panel.setup(), figures: vec![figure], tables: vec![table], facts })
}

const LARGE: &str = "The handshake for a block weighs less the larger blocks are, and with few blocks left per pair nodes have no time to \
    drift apart: by size, the difference shrinks to what the seeds spread";
