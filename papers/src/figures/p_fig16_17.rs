//! P fig. 16 and 17: how much of the overhead is stalling and how much is work, in the all-to-all and in
//! multi-pingpong.

use tidegate_message::Counter;
use tidegate_sim::{Estimate, FlowChoice, Measurement, SimulationError};

use super::p_fig4_5;
use super::p_fig6_7::{amid_others, meshes, processes, times, warmed_up};
use crate::curve::{Curve, Line, figure, mean, measure};
use crate::report::{AsPoint, Fact, Figure, Findings, Series, Table};
use crate::run::case::{Case, dynamic_credits as dynamic_flow, static_credits as static_flow};
use crate::workshop::Workshop;

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

/// Fig. 16. P §7.1 says nothing of it but beside figure 17; what its two parts are to each other follows from P §5.3.
pub(crate) fn static_credits(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let pair = pair(workshop, static_flow, None)?;
    let parts = |of: &Parts| by_slots(&of.stalls(), &of.work(), |_| true);
    let (alltoall, pingpong) = (parts(&pair.alltoall), parts(&pair.pingpong));
    let waiting = alltoall.iter().filter(|(slots, ..)| *slots < ENOUGH);
    let facts = vec![
        Fact::tested(
            "In the all-to-all waiting costs static more than work does, at every size under 57 slots: fewer waits are \
             less overhead (§5.3).",
            waiting.clone().all(|(_, stalls, work)| stalls > work),
            "fewer waits reduce the overhead",
            pairs(["stalls", "work"], &alltoall),
        )
        .perhaps_because("in small jobs a data packet costs no more than a control packet, so work weighs more.")
        .implied(OUR_READING),
        Fact::tested(
            "In multi-pingpong work costs it more than waiting does, at every size: the effort for fewer waits costs more \
             than the waits (§5.3).",
            pingpong.iter().all(|(_, stalls, work)| work > stalls),
            "effort more expensive than the waits",
            pairs(["stalls", "work"], &pingpong),
        )
        .implied(OUR_READING),
    ];
    Ok(Findings { figures: figures("fig16", "static", &pair), setup: pair.setup, tables: Vec::new(), facts })
}

/// What the statements on figure 16 are.
const OUR_READING: &str = "Our reading: P §5.3 says so of figures 4 and 6, from overheads and delayed sends. Of figure 16 the text \
    says nothing but what figure 17 is compared with.";

/// The fewest slots with which nothing waits under `static` with 2 credit slots (eq. 5).
const ENOUGH: u32 = 57;

/// Two values side by side, by slots.
fn by_slots(one: &[(u32, Estimate)], other: &[(u32, Estimate)], wanted: impl Fn(u32) -> bool) -> Vec<(u32, f64, f64)> {
    let both = one.iter().zip(other).map(|((slots, one), (_, other))| (*slots, one.mean(), other.mean()));
    both.filter(|(slots, ..)| wanted(*slots)).collect()
}

/// As text: `static/dynamic 8: 56.5/64.9, … %`.
fn pairs(names: [&str; 2], values: &[(u32, f64, f64)]) -> String {
    // No "-0.0".
    let tenths = |value: &f64| (10.0 * value).round() / 10.0 + 0.0;
    let each = values.iter().map(|(slots, one, other)| format!("{slots}: {:.1}/{:.1}", tenths(one), tenths(other)));
    let each: Vec<String> = each.collect();
    format!("{}/{} {} %", names[0], names[1], each.join(", "))
}

/// How far two values of the all-to-all may lie apart to be very similar: this share of the larger one, or so many
/// percentage points where both are small.
const ALIKE: (f64, f64) = (0.25, 1.0);

fn are_alike((_, one, other): &(u32, f64, f64)) -> bool {
    (one - other).abs() <= ALIKE.1.max(ALIKE.0 * one.max(*other))
}

/// Why the all-to-all is not the same with every size. `causes near=13 slots=16,24,48,56`.
const NOT_ALIKE: &str = "With 56 slots, one too few for static by eq. 5, 5.3 % of its sends still wait, which costs it 10 points; \
    with 57 it has 1.9 % too (figure 6). Dynamic moves that one slot to whoever needs it, and no send waits. With 16 slots \
    dynamic stalls for longer: everybody steals from everybody, so that some quotas are small when they are needed. Tested among \
    128 processes with data packets as dear as among 1024 (two seeds): the same 2.0 and 11.1 % with 56 slots, 40.2 and 33.8 % with 16; it \
    is not what a run begins with (static after messages of random lengths 11.2 and 34.8 %) and not too little learning \
    (dynamic after 10 all-to-alls, not 2: 2.2 and 42.0 %). That thefts are the cause with 16 slots was not tested.";

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
pub(crate) fn dynamic_credits(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    // dynamic has to learn that all are active.
    let warm_up = workshop.scale.pick(2, 4, 4);
    let (fixed, moving) = (pair(workshop, static_flow, None)?, pair(workshop, dynamic_flow, Some(warm_up))?);
    let table = activity(&fixed.alltoall.whole, &moving.alltoall.whole);
    let overheads = |curve: &Curve| curve.estimates(Measurement::overhead);
    let alltoall = [&fixed, &moving].map(|pair| overheads(&pair.alltoall.whole));
    let mut facts = alltoall_facts(&alltoall, [&fixed.alltoall, &moving.alltoall]);
    let localised = [&fixed, &moving].map(|pair| overheads(&pair.pingpong.whole));
    let working = [&fixed, &moving].map(|pair| pair.pingpong.work());
    let few = |values: &[(u32, Estimate)]| Parts::mean(values, |slots| slots < ENOUGH);
    let whole = by_slots(&localised[0], &localised[1], |_| true);
    let work = by_slots(&working[0], &working[1], |_| true);
    facts.push(Fact::tested(
        "In multi-pingpong dynamic's overhead is far lower: at every size, and at most half on the mean under 57 slots.",
        whole.iter().all(|(_, fixed, moving)| moving < fixed) && few(&localised[1]) < few(&localised[0]) / 2.0,
        "much lower",
        pairs(SCHEMES, &whole),
    ));
    facts.push(
        Fact::tested(
            "There its work is less too, at every size: larger grants mean fewer credit packets.",
            work.iter().all(|(_, fixed, moving)| moving < fixed),
            "lower",
            pairs(SCHEMES, &work),
        )
        .perhaps_because(
            "with 64 slots neither scheme sends many credit packets, and few repetitions do not tell them apart.",
        ),
    );
    let setup = format!("{} static's runs are those of figure 16, amid a program.", moving.setup);
    Ok(Findings { figures: figures("fig17", "dynamic", &moving), setup, tables: vec![table], facts })
}

const SCHEMES: [&str; 2] = ["static", "dynamic"];

/// What P says of the all-to-all, by schemes; static first.
fn alltoall_facts(overheads: &[Vec<(u32, Estimate)>; 2], parts: [&Parts; 2]) -> Vec<Fact> {
    // The paper itself sets sizes below 16 slots apart.
    let from_16 = |values: &[(u32, f64, f64)]| values.iter().filter(|(slots, ..)| *slots >= 16).all(are_alike);
    let whole = by_slots(&overheads[0], &overheads[1], |_| true);
    let [work, stalls] = [Parts::work, Parts::stalls].map(|part| by_slots(&part(parts[0]), &part(parts[1]), |_| true));
    let small = by_slots(&overheads[0], &overheads[1], |slots| slots < 16);
    let is_slight = |(_, fixed, moving): &(u32, f64, f64)| (*fixed..1.2 * fixed).contains(moving);
    vec![
        Fact::tested(
            "In the all-to-all both have the same overhead at every size from 16 slots on (within a quarter, or a point).",
            from_16(&whole),
            "very similar",
            pairs(SCHEMES, &whole),
        )
        .because(NOT_ALIKE),
        Fact::tested(
            "So they have the same work, at every size from 16 slots on (within a quarter, or a point).",
            from_16(&work),
            "very similar",
            pairs(SCHEMES, &work),
        )
        .perhaps_because(
            "dynamic sends more control packets than static (the table says how many with 8 and 16 slots). Below 16 slots, \
             which the paper sets apart, that is far more work: see 8 slots. In a picture of the whole overhead a point or two \
             would hardly be seen.",
        ),
        Fact::tested(
            "And the same stalls, at every size from 16 slots on (within a quarter, or a point).",
            from_16(&stalls),
            "very similar",
            pairs(SCHEMES, &stalls),
        )
        .because(NOT_ALIKE),
        Fact::tested(
            "Below 16 slots dynamic is slightly worse at every size (by less than a fifth of static's overhead).",
            small.iter().all(is_slight),
            "slightly larger; marginal",
            pairs(SCHEMES, &small),
        )
        .because(
            "It is work for more control packets. With 8 slots among 128 processes a message costs 15.9 credit packets \
             (static: 11.8), 0.9 return requests with their responses, 4.7 monitoring points and 4.5 steals. With \
             credits that take processors no time the overhead falls from 74 to 23 %, and static's from 45 to 19 %: of \
             the 29 points between them 26 are work. Among 1024, where data packets are dear, it comes out.",
        ),
    ]
}
