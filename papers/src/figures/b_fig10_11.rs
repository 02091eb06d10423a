//! B figs. 10 and 11: booking on random traffic, on the CM-5 and the Paragon.

use tidegate_sim::bulk_machine::{BulkPattern, Proof};
use tidegate_sim::{SimulationError, Time};

use super::b_machines::{Curve, Panel, REQUESTS, Setting, WINDOW, bandwidth, denied, gain, list, mean, run_all};
use crate::report::{Fact, Findings, Table};
use crate::run::bulk_run::BulkRun;
use crate::workshop::Workshop;

const CURVES: [Curve; 3] = [Curve::Barriers, Curve::Interleaved, Curve::Booking];

pub(crate) fn run(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let settings = [Setting::cm5(workshop.scale), Setting::paragon(workshop.scale)];
    let panels = settings.iter().map(|setting| setting.measure(workshop, &CURVES)).collect::<Result<Vec<_>, _>>()?;
    let figures = panels.iter().zip(10..).map(|(panel, number)| {
        panel.figure(&format!("fig{number}"), &format!("Booking on random traffic, {}", panel.setting.machine.name))
    });
    let (windows, under_one) = windows(workshop, &settings[0])?;
    let tables = vec![windows, causes(workshop, &settings)?];
    let mut facts: Vec<Fact> = panels.iter().flat_map(facts).collect();
    facts.push(under_one);
    let setup = panels.iter().map(Panel::setup).collect::<Vec<_>>().join(" ");
    let setup = format!("{setup} A booking is one block; window {WINDOW}, {REQUESTS} request per sender and round.");
    Ok(Findings { setup, figures: figures.collect(), tables, facts })
}

fn facts(panel: &Panel) -> Vec<Fact> {
    let name = panel.setting.machine.name;
    let over_interleaved = panel.gains(Curve::Booking, Curve::Interleaved);
    let over_barriers = panel.gains(Curve::Booking, Curve::Barriers);
    let interleaved = panel.gains(Curve::Interleaved, Curve::Barriers);
    let denied: Vec<(u64, f64)> = panel
        .setting
        .sizes
        .iter()
        .map(|&size| (size, panel.at(Curve::Booking, size).estimate(denied).mean()))
        .collect();
    let last = |gains: &[(u64, f64)]| gains.last().map_or(0.0, |(_, gain)| *gain);
    vec![
        Fact::tested(
            &format!("For sufficiently large blocks booking is above random interleaved on {name} (the largest)."),
            last(&over_interleaved) > 1.0,
            "clearly",
            format!("times interleaved: {}", list(&over_interleaved)),
        )
        .because(ABOVE),
        Fact::tested(
            &format!("Cyclic shift + barriers is an upper bound of booking on {name} (at every size)."),
            over_barriers.iter().all(|(_, gain)| *gain < 1.0),
            "an upper bound",
            format!("times barriers: {}", list(&over_barriers)),
        )
        .implied("a round of booking has the barrier of a round of the shift, and requests beside it; random traffic is spread unevenly, too.")
        .because("Where rounds are cheap a sender with an empty round costs little"),
        Fact::tested(
            &format!(
                "So random interleaved is below cyclic shift + barriers for large blocks on {name} (the largest)."
            ),
            last(&interleaved) < 1.0,
            "below",
            format!("times barriers: {}", list(&interleaved)),
        )
        .because(ABOVE),
        Fact::tested(
            &format!("Less than 1 % of the requests are denied on {name} (mean over sizes)."),
            denied.iter().map(|(_, share)| share).sum::<f64>() < denied.len() as f64,
            "less than 1 percent",
            format!("percent: {}", list(&denied)),
        )
        .because(DENIED),
    ]
}

/// What decides how many requests are denied.
fn windows(workshop: &Workshop<'_>, cm5: &Setting) -> Result<(Table, Fact), SimulationError> {
    let bytes = workshop.scale.pick(1024, 1024, 512);
    let windows = workshop.scale.pick(&[2, 4, 8, 16, 32, 64][..], &[2, 8, 32, 64], &[2, 8, 32]);
    let others = cm5.machine.shape.nodes() - 1;
    let kinds: Vec<(String, BulkPattern, u32)> = [1, 2, u32::MAX]
        .into_iter()
        .flat_map(|requests| {
            let asks = if requests == u32::MAX { "as many as one likes".to_owned() } else { requests.to_string() };
            [1, 4].map(|passes| {
                [BulkPattern::CyclicShift { passes }, BulkPattern::Random { blocks: passes * others }].map(|pattern| {
                    let traffic = if matches!(pattern, BulkPattern::Random { .. }) { "random" } else { "all pairs" };
                    (format!("{traffic}, {passes} blocks per pair, requests a round: {asks}"), pattern, requests)
                })
            })
        })
        .flatten()
        .collect();
    let of = |window: u32, pattern, requests| {
        let mut run = cm5.run(Curve::Booking, bytes);
        run.job.pattern = pattern;
        run.job.settings.window = window;
        run.job.settings.requests_per_round = requests;
        run
    };
    let cases: Vec<BulkRun> = kinds
        .iter()
        .flat_map(|&(_, pattern, requests)| windows.iter().map(move |&window| of(window, pattern, requests)))
        .collect();
    let runs = run_all(workshop, &cases)?;
    let heads: Vec<String> = windows.iter().map(|window| format!("window {window}")).collect();
    let columns: Vec<&str> = std::iter::once("traffic").chain(heads.iter().map(String::as_str)).collect();
    let title = "Requests that are denied on the CM-5 (%), and the bandwidth (MB/s per node), by look-ahead window";
    let mut table = Table::new("windows", title, &columns);
    for ((what, ..), runs) in kinds.iter().zip(runs.chunks(windows.len())) {
        let cells = runs.iter().map(|runs| format!("{:.1} ({:.2})", runs.estimate(denied).mean(), mean(runs)));
        table.row(std::iter::once(what.clone()).chain(cells));
    }
    let share = |place: usize| runs[place].estimate(denied).mean();
    // Of the first kind, all pairs, one request a round.
    let (narrow, wide) = (share(windows.len() / 2), share(windows.len() - 1));
    let fact = Fact::tested(
        "With one request per sender and round and the widest window less than 1 % are denied, with a narrow window more (ours).",
        wide < 1.0 && share(0) > 1.0,
        "less than 1 percent; no window stated",
        format!(
            "{:.1} % with {}, {narrow:.1} % with {}, {wide:.1} % with {}",
            share(0),
            windows[0],
            windows[windows.len() / 2],
            windows[windows.len() - 1]
        ),
    )
    .implied("B states no window; that one can be found is ours.");
    Ok((table, fact))
}

/// What would bring booking above interleaving.
fn causes(workshop: &Workshop<'_>, settings: &[Setting]) -> Result<Table, SimulationError> {
    let change_by = |setting: &Setting, percent: u64| {
        let usual = setting.machine.send_unit.0;
        setting.with(|machine| machine.change_partner = Time(usual * percent / 100))
    };
    let curves = [Curve::Barriers, Curve::Interleaved, Curve::Random, Curve::Booking];
    /// What else is changed of the runs of a row, the last of which is booking's.
    type Runs4 = fn(&mut [BulkRun; 4]);
    let mut rows: Vec<(String, Setting, Runs4)> = Vec::new();
    for setting in settings {
        let name = setting.machine.name;
        for percent in [0, 25, 50, 100, 200] {
            let what = format!("{name}, another partner costs a unit {percent} % of the sender's start");
            rows.push((what, change_by(setting, percent), |_| {}));
        }
        rows.push((format!("{name}, two requests a round"), setting.clone(), |runs| {
            runs[3].job.settings.requests_per_round = 2;
        }));
        rows.push((format!("{name}, two requests a round, window 64"), setting.clone(), |runs| {
            runs[3].job.settings.requests_per_round = 2;
            runs[3].job.settings.window = 64;
        }));
        rows.push((format!("{name}, as much for every node (all pairs)"), setting.clone(), |runs| {
            let pattern = runs[0].job.pattern;
            runs[1..].iter_mut().for_each(|run| run.job.pattern = pattern);
        }));
        rows.push((
            format!("{name}, links between routers four times as fast"),
            setting.with(|machine| machine.link_bandwidth = tidegate_sim::Bandwidth(4 * machine.link_bandwidth.0)),
            |_| {},
        ));
        rows.push((
            format!("{name}, blocks are sent when injected"),
            setting.with(|machine| machine.proof = Proof::Injected),
            |_| {},
        ));
        let mut more = setting.clone();
        more.total *= 2;
        rows.push((format!("{name}, twice as much data"), more, |_| {}));
    }
    let of = |(_, setting, change): &(String, Setting, Runs4)| {
        let mut runs = curves.map(|curve| setting.run(curve, setting.largest()));
        change(&mut runs);
        runs
    };
    let runs = run_all(workshop, &rows.iter().flat_map(of).collect::<Vec<_>>())?;
    let title = "Random traffic of the largest blocks (MB/s per node): what is changed";
    let columns = ["changed", "shift + barriers", "random interleaved", "random", "booking", "booking / interleaved"];
    let mut table = Table::new("causes", title, &columns);
    for ((what, ..), runs) in rows.iter().zip(runs.chunks(curves.len())) {
        let cells = runs.iter().map(|runs| format!("{:.2}", runs.estimate(bandwidth).mean()));
        let times = format!("{:.2}", gain(&runs[3], &runs[1]).mean());
        table.row(std::iter::once(what.clone()).chain(cells).chain([times]));
    }
    Ok(table)
}

const ABOVE: &str = "Tested (table of causes): here it costs nothing to send each unit to another receiver. Where that costs as much as the \
    sender's start, booking is above random interleaved on both machines, and a quarter of it brings interleaving below shift + barriers on \
    cm5. B does not tell such a cost, so none is assumed. Two requests a round raise booking a little, wider windows and faster links do not; \
    with as much for every node interleaving gains more than booking";
const DENIED: &str = "Tested (table of windows): what decides is when senders ask. With one request per sender and round, as B's words have it, \
    denials vanish as the window grows (in the last rounds of random traffic some receivers are asked more than they have rounds); with \
    requests until the window is full most are denied whatever the window. To ask on after a denial makes more of them (a trial on cm5, one \
    seed, without noise: 69 % instead of 4.5 % with 64 bytes, 24 % instead of 4.9 % with 512), and nothing faster";
