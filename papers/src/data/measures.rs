//! What is measured of a run, by name: what `of = "…"` may say.

use std::collections::BTreeMap;

use tidegate_message::Counter;
use tidegate_sim::cycle::Choices;
use tidegate_sim::run_spec::did_you_mean;
use tidegate_sim::{Carried, Measurement};

use super::BadFigure;

pub const SHORT: &[(&str, &str)] = &[
    ("overhead", "100 * (time_us / reference.time_us - 1)"),
    ("delayed_percent", "100 * delayed"),
    ("credits_percent", "100 * credits_time_us / reference.time_us"),
    ("slower", "100 * (time_us / beside.time_us - 1)"),
    ("multiple", "longest_us / reference.longest_us"),
    ("gain", "bulk.bandwidth / beside.bulk.bandwidth"),
    ("credits_saved", "100 * (1 - credit_packets / max(beside.credit_packets, 1))"),
];

type Plain = fn(&Measurement) -> f64;

/// Plain numbers of a measurement. Where a run has none of its kind they are 0.
pub const PLAIN: &[(&str, Plain)] = &[
    ("time_us", |run| run.time),
    ("credits_time_us", |run| run.credits_time),
    ("delayed", |run| run.delayed),
    ("blocked_us", |run| run.blocked),
    ("processes", |run| f64::from(run.processes)),
    ("packets", |run| run.packets as f64),
    ("answers", |run| run.answers as f64),
    ("is_cut", |run| f64::from(u8::from(run.cut_us.is_some()))),
    ("longest_us", |run| run.cut_us.unwrap_or(run.posted.map_or(run.time, |posted| posted.last_us))),
    ("last_us", |run| run.posted.map_or(0.0, |posted| posted.last_us)),
    ("buffers_most", |run| run.posted.map_or(0.0, |posted| f64::from(posted.buffers_most))),
    ("buffers_mean", |run| run.posted.map_or(0.0, |posted| posted.buffers_mean)),
    ("unexpected_mean", |run| run.posted.map_or(0.0, |posted| posted.unexpected_mean)),
    ("fabric.rate", |run| of_fabric(run, Carried::rate)),
    ("fabric.last", |run| of_fabric(run, Carried::last)),
    ("fabric.healthy", |run| of_fabric(run, |carried| carried.healthy)),
    ("fabric.latency", |run| of_fabric(run, |carried| carried.latency)),
    ("fabric.diverted", |run| of_fabric(run, |carried| carried.diverted)),
    ("fabric.credit_packets", |run| of_fabric(run, |carried| carried.credit_packets)),
    ("fabric.windows", |run| of_fabric(run, |carried| carried.windows.len() as f64)),
    ("fabric.has_settled", |run| of_fabric(run, |carried| f64::from(u8::from(carried.has_settled)))),
    ("fabric.windows_of_rate", |run| of_fabric(run, windows_of_rate)),
    ("fabric.cumulative_windows", |run| of_fabric(run, |it| it.cumulative.map_or(0.0, |stop| stop.windows.into()))),
    ("fabric.cumulative_rate", |run| of_fabric(run, |carried| carried.cumulative.map_or(0.0, |stop| stop.rate))),
    ("fabric.highest", |run| of_fabric(run, |carried| carried.windows.iter().copied().fold(0.0, f64::max))),
    ("fabric.hops", |run| of_fabric(run, |carried| carried.hops as f64)),
    ("fabric.diverted_healthy", |run| of_choices(run, 0, |it| it.diverted)),
    ("fabric.diverted_to_slow", |run| of_choices(run, 1, |it| it.diverted)),
    ("fabric.shortest_healthy", |run| of_choices(run, 0, |it| it.shortest_flits)),
    ("fabric.shortest_to_slow", |run| of_choices(run, 1, |it| it.shortest_flits)),
    ("fabric.detour_healthy", |run| of_choices(run, 0, |it| it.detour_flits)),
    ("fabric.detour_to_slow", |run| of_choices(run, 1, |it| it.detour_flits)),
    ("bulk.bandwidth", |run| run.bulk.as_ref().map_or(1.0, |bulk| bulk.bandwidth)),
    ("bulk.requests", |run| run.bulk.as_ref().map_or(0.0, |bulk| bulk.requests as f64)),
    ("bulk.denials", |run| run.bulk.as_ref().map_or(0.0, |bulk| bulk.denials as f64)),
    ("bulk.senders_most", |run| run.bulk.as_ref().map_or(0.0, |bulk| f64::from(bulk.senders_most))),
    ("bulk.busy", |run| of_spans(run, |_, _| true)),
    ("bulk.busy_middle", |run| of_spans(run, |place, count| (count / 5..count - count / 5).contains(&place))),
    ("bulk.sending", |run| run.bulk.as_ref().map_or(0.0, |bulk| bulk.sending)),
    ("bulk.receiving", |run| run.bulk.as_ref().map_or(0.0, |bulk| bulk.receiving)),
    ("exchange.cycles", |run| run.exchange.map_or(1.0, |done| done.cycles as f64)),
    ("exchange.bytes", |run| run.exchange.map_or(0.0, |done| done.bytes as f64)),
    ("exchange.rate", |run| run.exchange.map_or(1.0, |done| done.rate)),
    ("exchange.signals", |run| run.exchange.map_or(0.0, |done| done.signals as f64)),
    ("exchange.requests", |run| run.exchange.map_or(0.0, |done| done.requests as f64)),
    ("exchange.denials", |run| run.exchange.map_or(0.0, |done| done.denials as f64)),
    ("exchange.most_at_one", |run| run.exchange.map_or(0.0, |done| f64::from(done.most_at_one))),
];

/// The mean share of busy senders, in those spans of the time that are chosen by their place and how many there are.
fn of_spans(run: &Measurement, is_chosen: fn(usize, usize) -> bool) -> f64 {
    let busy = run.bulk.as_ref().map_or(&[][..], |bulk| &bulk.busy);
    let chosen = busy.iter().enumerate().filter(|(place, _)| is_chosen(*place, busy.len())).map(|(_, share)| share);
    chosen.clone().sum::<f64>() / chosen.count().max(1) as f64
}

fn windows_of_rate(carried: &Carried) -> f64 {
    carried.at_five_percent.map_or(carried.windows.len() as f64, |stop| stop.windows.into())
}

fn of_fabric(run: &Measurement, value: impl Fn(&Carried) -> f64) -> f64 {
    run.carried.as_ref().map_or(0.0, value)
}

/// Per comparison of an adaptive router for packets to nodes that are not slow (0) or slow (1).
fn of_choices(run: &Measurement, whose: usize, what: impl Fn(&Choices) -> u64) -> f64 {
    of_fabric(run, |carried| {
        let choices = &carried.choices[whose];
        what(choices) as f64 / choices.compared as f64
    })
}

/// `rate.N`, `mean.N`, `stop.N` or `stops_at.N` of a network's windows: the rate of the Nth, the mean of the last N,
/// the rate where the rule of 5 % stops with windows of N of them (that of the last, if it does not), and after how
/// many.
fn of_windows(run: &Measurement, name: &str) -> Option<f64> {
    let (what, number) = name.split_once('.')?;
    let number: usize = number.parse().ok().filter(|&number| number > 0)?;
    let of = |value: &dyn Fn(&Carried) -> f64| Some(of_fabric(run, value));
    let last = |carried: &Carried| {
        let last = &carried.windows[carried.windows.len().saturating_sub(number)..];
        last.iter().sum::<f64>() / last.len().max(1) as f64
    };
    match what {
        "rate" => of(&|carried| carried.windows.get(number - 1).copied().unwrap_or(f64::NAN)),
        "mean" => of(&last),
        "stop" => of(&|carried| carried.stop_with(number).map_or_else(|| last(carried), |stop| stop.rate)),
        "stops_at" => of(&|carried| carried.stop_with(number).map_or(0.0, |stop| stop.windows.into())),
        _ => None,
    }
}

/// What processes noted under a label, by rank.
fn noted(run: &Measurement, label: &str) -> impl Iterator<Item = (u32, f64)> {
    let of_label = run.notes.iter().filter(move |note| note.label.replace(' ', "_") == label);
    of_label.map(|note| (note.rank, note.value))
}

/// The measured value of that name: one of [`PLAIN`], `window.WHAT.N` of a network under load, `spent.ACTIVITY` in
/// microseconds, `notes.LABEL` (the mean of what programs noted), or the name of a counter
/// (docs/man/tidegate-counters.7), of all processes.
pub fn value(run: &Measurement, name: &str) -> Result<f64, BadFigure> {
    if let Some((_, plain)) = PLAIN.iter().find(|(known, _)| *known == name) {
        return Ok(plain(run));
    }
    if let Some(counter) = Counter::ALL.iter().find(|counter| counter.name() == name) {
        return Ok(run.counter(*counter) as f64);
    }
    if let Some(value) = name.strip_prefix("window.").and_then(|name| of_windows(run, name)) {
        return Ok(value);
    }
    if let Some(activity) = name.strip_prefix("spent.") {
        return Ok(run.spent.get(activity).copied().unwrap_or(f64::NAN));
    }
    if let Some(label) = name.strip_prefix("notes.") {
        let (sum, count) = noted(run, label).fold((0.0, 0.0), |(sum, count), (_, value)| (sum + value, count + 1.0));
        // Where no process noted that, there is no number, so nothing holds of it.
        return Ok(sum / count);
    }
    let known = PLAIN.iter().map(|(known, _)| *known).chain(SHORT.iter().map(|(known, _)| *known));
    let known = known.chain(Counter::ALL.iter().map(|counter| counter.name()));
    Err(BadFigure(format!("nothing that is measured is called `{name}`{}", did_you_mean(name, known))))
}

/// The numbers that processes noted, over those of the same processes in the reference: `mean.LABEL` or `most.LABEL`.
pub fn matched(run: &Measurement, reference: &Measurement, name: &str) -> Result<f64, BadFigure> {
    let unknown = || BadFigure(format!("matched_{name}: matched_mean.LABEL or matched_most.LABEL is needed"));
    let (how, label) = name.split_once('.').ok_or_else(unknown)?;
    let [own, others] = [run, reference].map(|run| noted(run, label).collect::<BTreeMap<u32, f64>>());
    let both: Vec<(f64, f64)> =
        own.into_iter().filter_map(|(rank, value)| Some((value, *others.get(&rank)?))).collect();
    match how {
        "mean" => Ok(both.iter().map(|pair| pair.0).sum::<f64>() / both.iter().map(|pair| pair.1).sum::<f64>()),
        "most" => Ok(both.iter().map(|(here, there)| here / there).fold(f64::NAN, f64::max)),
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_sim::Note;

    #[test]
    fn windows_are_put_together_and_the_rule_applied_to_them() {
        let run = |windows: &[f64]| {
            let carried = Carried { windows: windows.to_vec(), ..Carried::default() };
            Measurement { carried: Some(carried), ..Measurement::not_done() }
        };
        // It swings: windows of one never settle, those of two do, as soon as there are four.
        let swings = run(&[0.5, 0.3, 0.5, 0.3, 0.5, 0.3, 0.5, 0.3, 0.6]);
        let of = |name| value(&swings, name).unwrap();
        assert_eq!((of("window.stops_at.1"), of("window.stop.1")), (0.0, 0.6));
        assert_eq!((of("window.stops_at.2"), of("window.stop.2")), (4.0, 0.4));
        assert!(of("window.rate.2") == 0.3 && (of("window.mean.2") - 0.45).abs() < 1e-9);
        assert!(of("window.rate.10").is_nan() && value(&swings, "window.rate.0").is_err());
        let falls = run(&[0.5, 0.4, 0.3, 0.2, 0.1]);
        assert_eq!(value(&falls, "window.stops_at.1"), Ok(0.0));
    }

    #[test]
    fn what_processes_noted_is_matched_by_rank() {
        let run = |noted: &[(u32, f64)]| {
            let note = |&(rank, value): &(u32, f64)| Note { rank, label: "time of one".to_owned(), index: 0, value };
            Measurement { notes: noted.iter().map(note).collect(), ..Measurement::not_done() }
        };
        let (here, there) = (run(&[(0, 6.0), (2, 3.0)]), run(&[(0, 2.0), (1, 9.0), (2, 4.0)]));
        assert_eq!(matched(&here, &there, "mean.time_of_one"), Ok(1.5));
        assert_eq!(matched(&here, &there, "most.time_of_one"), Ok(3.0));
        assert!(matched(&here, &there, "mean.time_of_none").unwrap().is_nan());
        assert!(matched(&here, &there, "least.time_of_one").is_err());
    }
}
