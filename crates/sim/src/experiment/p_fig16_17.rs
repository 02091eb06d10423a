//! P fig. 16 and 17: how much of the overhead is stalling and how much is work, in the all-to-all and in
//! multi-pingpong.

use super::case::{Case, Measurement, dynamic_credits as dynamic_flow, static_credits as static_flow};
use super::curve::{Curve, Line, figure, mean, measure};
use super::estimate::Estimate;
use super::p_fig4_5;
use super::p_fig6_7::{amid_others, meshes, processes, times, warmed_up};
use super::report::{Fact, Figure, Findings, Series, Table};
use super::workshop::Workshop;
use tidegate_message::Counter;

use crate::SimulationError;
use crate::config::FlowChoice;

/// A scheme's two curves, each taken apart.
struct Pair {
    alltoall: Parts,
    pingpong: Parts,
    setup: String,
}

/// Overhead and its two components (P §7.1). What is left when processors need no time for credits are stalls and the
/// traffic of control packets; what is gone is work, as far as anybody waited for it.
struct Parts {
    whole: Curve,
    /// The same runs with credits that take processors no time.
    free: Curve,
}

impl Parts {
    fn stalls(&self) -> Vec<(u32, Estimate)> {
        self.free.estimates(Measurement::overhead)
    }

    fn work(&self) -> Vec<(u32, Estimate)> {
        let reference = &self.whole.reference.0;
        let runs = self.whole.measured.iter().zip(&self.free.measured);
        let each = runs.map(|(whole, free)| {
            let runs = whole.0.iter().zip(&free.0).zip(reference);
            Estimate::new(runs.map(|((whole, free), reference)| 100.0 * (whole.time - free.time) / reference.time))
        });
        self.whole.slots.iter().copied().zip(each).collect()
    }

    /// The mean over these slots.
    fn mean(part: &[(u32, Estimate)], wanted: impl Fn(u32) -> bool) -> f64 {
        let means: Vec<(u32, f64)> = part.iter().map(|(slots, estimate)| (*slots, estimate.mean())).collect();
        mean(&means, wanted)
    }
}

/// `warm_up`: so many all-to-alls before the one that counts; none: it is amid a program, as in figure 6.
fn pair(
    workshop: &Workshop<'_>,
    flow: fn(u32, u32) -> FlowChoice,
    warm_up: Option<u32>,
) -> Result<Pair, SimulationError> {
    let [small, large] = meshes(workshop.scale);
    let mesh = workshop.scale.pick(large.clone(), large, small);
    let slots: Vec<u32> = workshop.scale.pick(
        vec![8, 16, 24, 30, 40, 48, 56, 64],
        vec![8, 12, 16, 24, 30, 40, 48, 56, 64],
        vec![8, 32, 64],
    );
    let repetitions = workshop.scale.pick(200, 40, 40);
    let line = |name: &str, case| Line {
        name: name.to_owned(),
        case,
        flow: Box::new(move |slots| flow(slots, 2)),
        slots: slots.clone(),
    };
    let alltoall = warm_up.map_or_else(|| amid_others(&mesh), |warm_up| warmed_up(&mesh, warm_up));
    let beginning = warm_up.map_or("amid a program, as in figure 6".to_owned(), |count| {
        format!("after {count} to warm up and one of messages of random lengths")
    });
    let cases = [("all-to-all", alltoall), ("multi-pingpong", p_fig4_5::case(1, repetitions))];
    let both = cases
        .into_iter()
        .flat_map(|(name, case)| [false, true].map(|free_credits| line(name, Case { free_credits, ..case.clone() })));
    let mut curves = measure(workshop, both.collect())?.into_iter();
    let setup = format!(
        "All-to-all of 2 KiB among {} processes on a {} mesh (the paper: 1024, the mean of 150), once {beginning}; multi-pingpong of 16 + 16 processes over 1 hop, {repetitions} times (the paper: 20,480); 2 credit \
         slots. Every run is done a second time with credits that take processors no time: taking and counting them, \
         making, writing, retrieving and understanding control packets. The overhead that is left are stalls and the \
         traffic of control packets; the difference is work.",
        processes(&mesh),
        times(&mesh)
    );
    let mut parts = || {
        let mut curve = || curves.next().expect("two curves for each case");
        Parts { whole: curve(), free: curve() }
    };
    Ok(Pair { alltoall: parts(), pingpong: parts(), setup })
}

fn on_credits(each: &Measurement, reference: &Measurement) -> f64 {
    100.0 * each.credits_time / reference.time
}

fn figures(name: &str, scheme: &str, pair: &Pair) -> Vec<Figure> {
    let part = |part: &str, title: &str, parts: &Parts| {
        let total = Series { name: "total".to_owned(), ..parts.whole.series(Measurement::overhead) };
        let named = |name: &str, values: Vec<(u32, Estimate)>| {
            let points = values.into_iter().map(|(slots, estimate)| estimate.point(f64::from(slots)));
            Series { scheme: total.scheme.clone(), ..Series::of(name, points) }
        };
        let series = vec![total.clone(), named("stalls and traffic", parts.stalls()), named("work", parts.work())];
        figure(&format!("{name}{part}"), &format!("{title} under {scheme}"), "overhead (%)", series)
    };
    vec![part("a", "All-to-all", &pair.alltoall), part("b", "Multi-pingpong", &pair.pingpong)]
}

/// Fig. 16.
pub(super) fn static_credits(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let pair = pair(workshop, static_flow, None)?;
    let works = Parts::mean(&pair.pingpong.work(), |_| true);
    let facts = vec![Fact::tested(
        "static's overhead in multi-pingpong has a part that is work.",
        works > 0.5,
        "a visible part",
        format!("{works:.1} % of the reference's time (mean)"),
    )];
    Ok(Findings { figures: figures("fig16", "static", &pair), setup: pair.setup, tables: Vec::new(), facts })
}

/// What the schemes do in the all-to-all with 8 and 16 slots, per message of the whole run: where the time goes.
fn activity(fixed: &Curve, moving: &Curve) -> Table {
    const COUNTERS: [(Counter, &str); 6] = [
        (Counter::CreditPackets, "credit packets per message"),
        (Counter::ReturnRequests, "return requests per message"),
        (Counter::MonitoringPoints, "monitoring points per message"),
        (Counter::Steals, "steals per message"),
        (Counter::SendsDelayed, "delayed sends per message"),
        (Counter::BlockedPackets, "packets of blocked senders per message"),
    ];
    let columns: Vec<&str> = ["scheme", "slots"]
        .into_iter()
        .chain(COUNTERS.iter().map(|(_, name)| *name))
        .chain(["time on credits, % of the reference", "time of a blocked peer per request, µs", "overhead, %"])
        .collect();
    let mut table = Table::new("fig17", "All-to-all with few slots: what flow control does", &columns);
    for (name, curve) in [("static", fixed), ("dynamic", moving)] {
        for (&slots, runs) in curve.slots.iter().zip(&curve.measured).filter(|(slots, _)| [8, 16].contains(*slots)) {
            let sum = |counter| runs.estimate(|run| run.counter(counter) as f64).mean();
            let per_message = |counter| sum(counter) / sum(Counter::MessagesEager).max(1.0);
            let processes = f64::from(runs.0.first().map_or(0, |run| run.processes));
            let blocked = runs.estimate(|run| run.blocked).mean() * processes / sum(Counter::ReturnRequests).max(1.0);
            let counts = COUNTERS.iter().map(|(counter, _)| format!("{:.3}", per_message(*counter)));
            let credits = runs.paired(&curve.reference, on_credits).mean();
            let others = [credits, blocked, runs.overhead(&curve.reference)].map(|value| format!("{value:.1}"));
            table.row([name.to_owned(), slots.to_string()].into_iter().chain(counts).chain(others));
        }
    }
    table
}

/// Fig. 17.
pub(super) fn dynamic_credits(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    // dynamic has to learn that all are active.
    let warm_up = workshop.scale.pick(2, 4, 4);
    let (fixed, moving) = (pair(workshop, static_flow, None)?, pair(workshop, dynamic_flow, Some(warm_up))?);
    let overhead = |curve: &Curve, wanted: fn(u32) -> bool| mean(&curve.overheads(), wanted);
    let parts = [Parts::work, Parts::stalls]
        .map(|part| [&fixed, &moving].map(|pair| Parts::mean(&part(&pair.alltoall), |slots| slots >= 16)));
    let balanced = [&fixed, &moving].map(|pair| overhead(&pair.alltoall.whole, |slots| slots >= 16));
    let small = [&fixed, &moving].map(|pair| overhead(&pair.alltoall.whole, |slots| slots < 16));
    let localised = [&fixed, &moving].map(|pair| overhead(&pair.pingpong.whole, |slots| slots < 57));
    let working = [&fixed, &moving].map(|pair| Parts::mean(&pair.pingpong.work(), |slots| slots < 57));
    let table = activity(&fixed.alltoall.whole, &moving.alltoall.whole);
    let shown = |values: [f64; 2]| format!("dynamic {:.1} %, static {:.1} %", values[1], values[0]);
    let facts = vec![
        Fact::tested(
            "In the all-to-all both have the same overhead from 16 slots on (means within 5 points).",
            (balanced[0] - balanced[1]).abs() < 5.0,
            "very similar",
            shown(balanced),
        )
        .because("dynamic sends more control packets than static where no share can move: everybody is as active."),
        Fact::tested(
            "So do the two parts of it, work and stalls, each (means within 5 points).",
            parts.iter().all(|[fixed, moving]| (fixed - moving).abs() < 5.0),
            "very similar",
            format!("work: {}; stalls: {}", shown(parts[0]), shown(parts[1])),
        ),
        Fact::tested(
            "Below 16 slots dynamic is slightly worse (by up to 15 points).",
            small[1] > small[0] && small[1] - small[0] < 15.0,
            "slightly larger",
            shown(small),
        )
        .because(
            "It is work for more control packets. With 8 slots among 128 processes a message costs 15.9 credit packets \
             (static: 11.8), 0.9 return requests with their responses, 4.7 monitoring points and 4.5 steals. With \
             credits that take processors no time the overhead falls from 74 to 23 %, and static's from 45 to 19 %: of \
             the 29 points between them 26 are work. With 16 slots nobody is asked to return anything, and the two are \
             alike (34 and 32 %).",
        ),
        Fact::tested(
            "In multi-pingpong dynamic's overhead is far lower (at most half, under 57 slots).",
            localised[1] < localised[0] / 2.0,
            "much lower",
            shown(localised),
        ),
        Fact::tested(
            "There its work is less too: larger grants mean fewer credit packets.",
            working[1] < working[0],
            "lower",
            shown(working),
        ),
    ];
    let setup = format!("{} static's runs are those of figure 16, amid a program.", moving.setup);
    Ok(Findings { figures: figures("fig17", "dynamic", &moving), setup, tables: vec![table], facts })
}
