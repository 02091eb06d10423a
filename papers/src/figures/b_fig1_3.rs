//! B figs. 1 to 3: barriers and interleaving on the three machines.

use tidegate_sim::bulk_machine::{BarrierKind, BulkParameters, BulkPattern, Proof, Reception, Shape};
use tidegate_sim::{SimulationError, Time};

use super::b_machines::{Curve, Panel, Setting, bandwidth, gain, list, mean, run_all};
use crate::report::{Fact, Findings, Table};
use crate::run::bulk_run::BulkRun;
use crate::workshop::Workshop;

const CURVES: [Curve; 4] = [Curve::Shift, Curve::Barriers, Curve::Random, Curve::Interleaved];

/// By how many times barriers improve a cyclic shift where that is dramatic.
const DRAMATIC: f64 = 1.3;

pub(crate) fn run(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let scale = workshop.scale;
    let settings = [Setting::cm5(scale), Setting::paragon(scale), Setting::alewife(scale)];
    let panels = settings.iter().map(|setting| setting.measure(workshop, &CURVES)).collect::<Result<Vec<_>, _>>()?;
    let figures = panels.iter().zip(1..).map(|(panel, number)| {
        panel.figure(&format!("fig{number}"), &format!("Barriers and interleaving, {}", panel.setting.machine.name))
    });
    let (units, best) = units(workshop, &settings[1])?;
    let tables = vec![anchors(workshop)?, ratios(workshop, &settings)?, causes(workshop, &settings)?, units];
    let mut facts = facts(&panels);
    facts.push(best);
    let setup = panels.iter().map(Panel::setup).collect::<Vec<_>>().join(" ");
    Ok(Findings { setup, figures: figures.collect(), tables, facts })
}

fn facts(panels: &[Panel]) -> Vec<Fact> {
    let gains: Vec<f64> = panels.iter().map(|panel| panel.gain(Curve::Barriers, Curve::Shift)).collect();
    let interleaved: Vec<f64> = panels.iter().map(|panel| panel.gain(Curve::Interleaved, Curve::Random)).collect();
    let mut facts: Vec<Fact> = panels
        .iter()
        .zip(&gains)
        .map(|(panel, gain)| {
            let name = panel.setting.machine.name;
            let statement =
                format!("Barriers improve a cyclic shift of large blocks dramatically on {name} (by 30 %).");
            let here = format!("{gain:.2} times; by size {}", list(&panel.gains(Curve::Barriers, Curve::Shift)));
            Fact::tested(&statement, *gain >= DRAMATIC, "dramatic", here).perhaps_because(SMALL_MACHINE).implied(FITTED)
        })
        .collect();
    facts.push(
        Fact::tested(
            "Barriers improve it most on the CM-5, with its fast hardware barriers (largest blocks).",
            gains[1..].iter().all(|other| gains[0] > *other),
            "particularly on the CM-5",
            format!("{:.2} times on cm5, {:.2} on paragon, {:.2} on alewife", gains[0], gains[1], gains[2]),
        )
        .because("With 16 nodes the CM-5 gains less than with 64 (table of causes)")
        .implied(FIRST),
    );
    for panel in &panels[1..] {
        let name = panel.setting.machine.name;
        let all = panel.gains(Curve::Barriers, Curve::Shift);
        let wins = all.iter().skip(all.len() / 4).all(|(_, gain)| *gain > 1.0);
        let statement = format!(
            "Tree barriers win for all but the smallest block sizes on {name} (all but {}).",
            list_of(&all[..all.len() / 4])
        );
        facts.push(Fact::tested(&statement, wins, "still a win", list(&all)).because(TREE));
    }
    facts.push(Fact::tested(
        "Interleaving improves random traffic of large blocks on the CM-5 (by 10 %).",
        interleaved[0] >= 1.1,
        "improvement",
        format!("{:.2} times", interleaved[0]),
    ));
    facts.push(
        Fact::tested(
            "With units of 8 KiB interleaving gains little on the Paragon (at most 10 %, largest blocks).",
            interleaved[1] <= 1.1,
            "little advantage",
            format!(
                "{:.2} times; by size {}",
                interleaved[1],
                list(&panels[1].gains(Curve::Interleaved, Curve::Random))
            ),
        )
        .because(LITTLE),
    );
    facts
}

/// What the machines do where B or its literature has a number.
fn anchors(workshop: &Workshop<'_>) -> Result<Table, SimulationError> {
    let title = "Numbers of the machines: what is told, and what the model gives";
    let mut table = Table::new("anchors", title, &["what", "told", "here", "source"]);
    let job = |machine: BulkParameters, pattern, bytes| {
        let mut run = Setting { machine, total: 1, sizes: Vec::new() }.run(Curve::Shift, bytes);
        run.job.pattern = pattern;
        run
    };
    // Processors that need next to nothing: what is left is the network.
    let free = BulkParameters {
        send_unit: Time::from_nanoseconds(1),
        reception: Reception::Polling { every: 1, most: 1 },
        jitter_per_mille: 0,
        ..BulkParameters::cm5()
    };
    let (cm5, paragon, alewife) = (BulkParameters::cm5(), BulkParameters::paragon(), BulkParameters::alewife());
    let one_way = BulkPattern::OneWay { to: 1 };
    let far = BulkPattern::OneWay { to: 63 };
    let partners = |bit| BulkPattern::Partners { bit };
    let runs = [
        ("cm5, MB/s per node within 4, headers included, processors free", "20", job(free, partners(1), 4096), true),
        ("cm5, the same within 16", "10", job(free, partners(4), 4096), true),
        ("cm5, the same beyond", "5", job(free, partners(16), 4096), true),
        ("cm5, MB/s of data one way", "about 15", job(cm5, one_way, 65_536), false),
        ("cm5, µs for an active message, processors included", "9.3", job(cm5, far, 16), false),
        ("paragon, MB/s of data one way", "140", job(paragon, one_way, 1 << 20), false),
        ("alewife, MB/s of data one way", "below 45", job(alewife, one_way, 65_536), false),
    ];
    let found = run_all(workshop, &runs.map(|(_, _, run, _)| run))?;
    let sources = ["sourced", "sourced", "sourced", "sourced", "remembered", "remembered", "remembered"];
    for (((what, told, run, with_headers), runs), source) in runs.iter().zip(&found).zip(sources) {
        let senders = if matches!(run.job.pattern, BulkPattern::OneWay { .. }) { f64::from(run.nodes()) } else { 1.0 };
        let here = match run.job.block_bytes {
            16 => runs.estimate(|run| run.time).mean(),
            _ if *with_headers => mean(runs) * 20.0 / 16.0,
            _ => mean(runs) * senders,
        };
        table.row([(*what).to_owned(), (*told).to_owned(), format!("{here:.1}"), source.to_owned()]);
    }
    Ok(table)
}

/// What the fitted ratio decides.
fn ratios(workshop: &Workshop<'_>, settings: &[Setting]) -> Result<Table, SimulationError> {
    let title =
        "Barriers beside the plain cyclic shift of the largest blocks (times), by what receiving costs of sending";
    let columns = ["receiving (%)", "cm5", "paragon", "alewife"];
    let mut table = Table::new("ratios", title, &columns);
    let changed = |percent: u32| settings.iter().map(move |of| of.with(|machine| machine.receive_percent = percent));
    let percents = [70, 100, 110, 140, 200, 300];
    let pairs = percents.iter().flat_map(|&percent| changed(percent)).flat_map(|of| both(&of));
    let runs = run_all(workshop, &pairs.collect::<Vec<_>>())?;
    for (percent, runs) in percents.iter().zip(runs.chunks(6)) {
        let cells = runs.chunks(2).map(|pair| format!("{:.2}", gain(&pair[1], &pair[0]).mean()));
        table.row(std::iter::once(percent.to_string()).chain(cells));
    }
    let fitted = settings.iter().map(|of| format!("fitted: {} %", of.machine.receive_percent));
    table.row(std::iter::once("in the sets".to_owned()).chain(fitted));
    Ok(table)
}

/// The plain shift and that with barriers, of the largest blocks.
fn both(setting: &Setting) -> [BulkRun; 2] {
    [Curve::Shift, Curve::Barriers].map(|curve| setting.run(curve, setting.largest()))
}

/// A change of a machine, to see what it decides.
type Change = (&'static str, fn(&mut BulkParameters));

const CHANGES: [Change; 9] = [
    ("nothing", |_| {}),
    ("no jitter", |machine| machine.jitter_per_mille = 0),
    ("a node that has something to send takes one unit at a look", |machine| {
        machine.reception = Reception::Polling { every: 1, most: 1 };
    }),
    ("room for four times as many cells at arrival", |machine| machine.arrival_cells *= 4),
    ("a quarter of the room at arrival", |machine| machine.arrival_cells /= 4),
    ("blocks are sent when injected", |machine| machine.proof = Proof::Injected),
    ("a tree of arity 2 for a barrier", |machine| machine.barrier = BarrierKind::Tree { arity: 2 }),
    ("small messages cost a tenth", |machine| {
        machine.send_signal = Time(machine.send_signal.0 / 10);
        machine.receive_signal = Time(machine.receive_signal.0 / 10);
    }),
    ("16 nodes", |machine| {
        machine.shape = match machine.shape {
            Shape::FatTree { .. } => Shape::FatTree { levels: 2 },
            Shape::Mesh { .. } => Shape::Mesh { columns: 4, rows: 4 },
        };
    }),
];

fn causes(workshop: &Workshop<'_>, settings: &[Setting]) -> Result<Table, SimulationError> {
    let title =
        "Barriers beside the plain cyclic shift (times; largest blocks, and in brackets the size in the middle)";
    let mut table = Table::new("causes", title, &["changed", "cm5", "paragon", "alewife"]);
    let middle = |of: &Setting| of.sizes[of.sizes.len() / 2];
    let of = |setting: &Setting| {
        let [shift, barriers] = [Curve::Shift, Curve::Barriers].map(|curve| setting.run(curve, middle(setting)));
        both(setting).into_iter().chain([shift, barriers])
    };
    let all = CHANGES.iter().flat_map(|(_, change)| settings.iter().map(|setting| setting.with(*change)));
    let runs = run_all(workshop, &all.flat_map(|setting| of(&setting)).collect::<Vec<_>>())?;
    for ((what, _), runs) in CHANGES.iter().zip(runs.chunks(12)) {
        let cells = runs
            .chunks(4)
            .map(|four| format!("{:.2} ({:.2})", gain(&four[1], &four[0]).mean(), gain(&four[3], &four[2]).mean()));
        table.row(std::iter::once((*what).to_owned()).chain(cells));
    }
    Ok(table)
}

/// The Paragon with units of other sizes.
fn units(workshop: &Workshop<'_>, paragon: &Setting) -> Result<(Table, Fact), SimulationError> {
    let title = "The Paragon by the size of its units, largest blocks (MB/s per node)";
    let curves = [Curve::Barriers, Curve::Random, Curve::Interleaved];
    let columns = ["unit (bytes)", curves[0].name(), curves[1].name(), curves[2].name()];
    let mut table = Table::new("units", title, &columns);
    let sizes = [1024, 2048, 4096, 8192, 16_384];
    let with = |bytes: u32| paragon.with(move |machine| machine.unit_bytes = bytes);
    let of = |bytes| curves.map(|curve| with(bytes).run(curve, paragon.largest()));
    let runs = run_all(workshop, &sizes.iter().flat_map(|&bytes| of(bytes)).collect::<Vec<_>>())?;
    let rows: Vec<&[_]> = runs.chunks(curves.len()).collect();
    for (bytes, row) in sizes.iter().zip(&rows) {
        let cells = row.iter().map(|runs| format!("{:.2}", runs.estimate(bandwidth).mean()));
        table.row(std::iter::once(bytes.to_string()).chain(cells));
    }
    let with_barriers: Vec<f64> = rows.iter().map(|row| mean(&row[0])).collect();
    let fact = Fact::tested(
        "On the Paragon units of 8 KiB achieve more than smaller ones, because the engine's start is so dear.",
        with_barriers[..3].iter().all(|smaller| *smaller < with_barriers[3]),
        "8 KiB maximises the achieved bandwidth",
        sizes
            .iter()
            .zip(&with_barriers)
            .map(|(size, found)| format!("{size}: {found:.1}"))
            .collect::<Vec<_>>()
            .join(", "),
    );
    Ok((table, fact))
}

const FITTED: &str = "what receiving costs beside sending, and the room at arrival, were chosen so that they do.";
/// Why it is implied that the CM-5 comes first.
const FIRST: &str = "the order follows from the fitted numbers: other costs of receiving, 16 nodes or other room at arrival turn it round, and with a tree \
    in place of its barrier network the CM-5 gains nearly as much (tables of causes and ratios).";
const SMALL_MACHINE: &str = "B finds links contended on its Alewife, and finds the machine too small to stress the techniques (§5.1). Here neither 16 \
    nodes nor small messages at a tenth of their cost bring it to 1.3 (table of causes), and what receiving costs decides nothing where what \
    comes interrupts (table of ratios)";
const TREE: &str = "A plain shift sends its next block while the last one is still being taken; with barriers a node waits for the \
    receiver, its acknowledgement and the tree. Tested (table of causes, the size in the middle): small messages at a tenth of their cost \
    bring the barriers of middling blocks above the plain shift; that a block counts as sent when injected, as B has it, helps little";
const LITTLE: &str = "Interleaving takes blocks of many units apart, and each receiver hears everybody a little. Tested (table of units): units of \
    1 KiB gain a third by it, those of 8 KiB less, as B says; little advantage is left only for blocks of one or two units (by size)";

/// Sizes, as text.
fn list_of(gains: &[(u64, f64)]) -> String {
    let sizes: Vec<String> = gains.iter().map(|(bytes, _)| bytes.to_string()).collect();
    if sizes.is_empty() { "none".to_owned() } else { sizes.join(", ") }
}
