//! P fig. 16 and 17: how much of the overhead is stalling and how much is work, in the all-to-all and in
//! multi-pingpong.

use super::case::{Measurement, dynamic_credits as dynamic_flow, static_credits as static_flow};
use super::curve::{Curve, Line, figure, mean, measure};
use super::p_fig4_5;
use super::p_fig6_7::{alltoall, meshes, processes, times, warmed_up};
use super::report::{Fact, Figure, Findings, Series, Table};
use super::workshop::Workshop;
use tidegate_message::Counter;

use crate::SimulationError;
use crate::config::FlowChoice;

/// A scheme's two curves.
struct Pair {
    alltoall: Curve,
    pingpong: Curve,
    setup: String,
}

fn pair(workshop: &Workshop<'_>, flow: fn(u32, u32) -> FlowChoice) -> Result<Pair, SimulationError> {
    let [small, large] = meshes(workshop.scale);
    let mesh = workshop.scale.pick(large.clone(), large, small);
    let slots: Vec<u32> =
        workshop.scale.pick((8..=64).step_by(8).collect(), vec![8, 12, 16, 24, 32, 40, 48, 56, 64], vec![8, 32, 64]);
    let repetitions = workshop.scale.pick(200, 40, 40);
    let line = |name: &str, case| Line {
        name: name.to_owned(),
        case,
        flow: Box::new(move |slots| flow(slots, 2)),
        slots: slots.clone(),
    };
    let warm_up = workshop.scale.pick(2, 4, 4);
    let lines = vec![
        line("all-to-all", warmed_up(alltoall(&mesh), warm_up)),
        line("multi-pingpong", p_fig4_5::case(1, repetitions)),
    ];
    let mut curves = measure(workshop, lines)?;
    let setup = format!(
        "All-to-all of 2 KiB among {} processes on a {} mesh (the paper: 1024, the mean of 150), once after {warm_up} \
         to warm up; multi-pingpong of 16 + 16 processes over 1 hop, {repetitions} times (the paper: 20,480); 2 credit \
         slots. Work is the time that processes spend on credits: taking and counting them, making, writing, \
         retrieving and understanding control packets. Stalls are the rest of the overhead, traffic of control packets \
         included.",
        processes(&mesh),
        times(&mesh)
    );
    let pingpong = curves.pop().expect("two curves");
    let alltoall = curves.pop().expect("two curves");
    Ok(Pair { alltoall, pingpong, setup })
}

fn work(each: &Measurement, reference: &Measurement) -> f64 {
    100.0 * each.credits_time / reference.time
}

fn stalls(each: &Measurement, reference: &Measurement) -> f64 {
    each.overhead(reference) - work(each, reference)
}

fn figures(name: &str, scheme: &str, pair: &Pair) -> Vec<Figure> {
    let part = |part: &str, title: &str, curve: &Curve| {
        let named = |name: &str, value: fn(&Measurement, &Measurement) -> f64| Series {
            name: name.to_owned(),
            ..curve.series(value)
        };
        let series = vec![
            named("total", |each, reference| each.overhead(reference)),
            named("stalls and traffic", stalls),
            named("work", work),
        ];
        figure(&format!("{name}{part}"), &format!("{title} under {scheme}"), "overhead (%)", series)
    };
    vec![part("a", "All-to-all", &pair.alltoall), part("b", "Multi-pingpong", &pair.pingpong)]
}

/// Fig. 16.
pub(super) fn static_credits(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let pair = pair(workshop, static_flow)?;
    let works = mean(&pair.pingpong.values(work), |_| true);
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
            let on_credits = runs.paired(&curve.reference, work).mean();
            let others = [on_credits, blocked, runs.overhead(&curve.reference)].map(|value| format!("{value:.1}"));
            table.row([name.to_owned(), slots.to_string()].into_iter().chain(counts).chain(others));
        }
    }
    table
}

/// Fig. 17.
pub(super) fn dynamic_credits(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let (fixed, moving) = (pair(workshop, static_flow)?, pair(workshop, dynamic_flow)?);
    let overhead = |curve: &Curve, wanted: fn(u32) -> bool| mean(&curve.overheads(), wanted);
    let parts =
        [work, stalls].map(|part| [&fixed, &moving].map(|pair| mean(&pair.alltoall.values(part), |slots| slots >= 16)));
    let balanced = [&fixed, &moving].map(|pair| overhead(&pair.alltoall, |slots| slots >= 16));
    let small = [&fixed, &moving].map(|pair| overhead(&pair.alltoall, |slots| slots < 16));
    let localised = [&fixed, &moving].map(|pair| overhead(&pair.pingpong, |slots| slots < 57));
    let working = [&fixed, &moving].map(|pair| mean(&pair.pingpong.values(work), |slots| slots < 57));
    let table = activity(&fixed.alltoall, &moving.alltoall);
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
            "The table shows where the time goes. With 8 slots among 128 processes a message costs 0.90 return requests, \
             and a peer that was asked is blocked for 40 µs: 4,675 µs per process and all-to-all, 31 % of the \
             reference's time, beside stalls of 33 %. It also costs 4.7 monitoring points, 4.5 steals and 15.9 credit \
             packets (static: 11.8), hence work of 39 % (static: 24 %). With 16 slots nobody is asked to return \
             anything, and stalls are 5 % (one seed).",
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
    Ok(Findings { figures: figures("fig17", "dynamic", &moving), setup: moving.setup, tables: vec![table], facts })
}
