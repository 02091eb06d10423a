//! The page with which the results open: what comes out, what does not, how sure that is, what was assumed, how long it
//! took, and the command that repeats it. All that is said of results is computed from the reports.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::page::{anchor, cell, sureness};
use super::text::{self, number};
use super::times::Times;
use crate::assumptions::Assumption;
use crate::experiment::Experiment;
use crate::report::{Fact, Report, SeriesKind, Spread, Verdict};
use tidegate_cli::progress::duration;

/// The experiment of the paper's headline, and its figure.
const HEADLINE: (&str, &str) = ("P-fig27", "fig27");
/// The mean overhead, in percent, up to which the paper calls flow control good.
const OVERHEAD_MOST: f64 = 3.0;
/// Slots per process that the paper needs for that.
const PAPER_SLOTS: [(&str, f64); 2] = [("static", 64.0), ("dynamic", 16.0)];

/// The whole opening.
#[must_use]
pub fn opening(reports: &[Report], times: &BTreeMap<String, Times>) -> String {
    let mut text = String::new();
    if reports.is_empty() || reports.iter().any(|report| report.paper() == "P") {
        headline(&mut text, reports);
    } else {
        text.push_str("## What comes out\n\n");
    }
    outcomes(&mut text, reports);
    how_sure(&mut text, reports);
    assumptions(&mut text, reports);
    repeat(&mut text, reports);
    how_long(&mut text, reports, times);
    text
}

fn link(report: &Report) -> String {
    format!("[{}](#{})", report.id, anchor(report))
}

/// `full, 3 seeds, 2.5 % noise`.
fn how(report: &Report) -> String {
    if is_simulated(report) {
        format!("{}{}", report.scale, text::seeds_and_noise(report))
    } else {
        "computed".to_owned()
    }
}

fn is_simulated(report: &Report) -> bool {
    Experiment::find(&report.id).is_none_or(Experiment::is_simulated)
}

fn headline(text: &mut String, reports: &[Report]) {
    let (id, name) = HEADLINE;
    let _ = write!(
        text,
        "## What comes out\n\n\
         The paper's headline (P §7.5, figure 27): slots per process that a mailbox needs so that flow control costs at \
         most {OVERHEAD_MOST} % on average over the Intel MPI Benchmarks. "
    );
    let found = reports.iter().find(|report| report.id == id);
    let figure = found.and_then(|report| Some((report, report.figures.iter().find(|figure| figure.name == name)?)));
    let Some((report, figure)) = figure else {
        let _ = writeln!(text, "It was not run: `tidegate paper {id}` does.\n");
        return;
    };
    let _ = writeln!(
        text,
        "Here: {}, {}.\n\n| scheme | paper | here | mean overhead here |\n|---|---|---|---|",
        link(report),
        how(report)
    );
    for (scheme, paper) in PAPER_SLOTS {
        let series = figure.series.iter().find(|series| series.scheme == scheme && series.kind == SeriesKind::Found);
        let points = series.map_or(&[][..], |series| &series.points);
        let enough = points.iter().find(|point| point.y <= OVERHEAD_MOST);
        let most = points.iter().map(|point| point.x).fold(0.0, f64::max);
        let here = enough.map_or_else(|| format!("more than {}", number(most)), |point| number(point.x));
        let each: Vec<String> = points
            .iter()
            .map(|point| {
                let half = point.range.map(|(least, most)| format!(" ± {}", number((most - least) / 2.0)));
                format!("{} slots: {}{} %", number(point.x), number(point.y), half.unwrap_or_default())
            })
            .collect();
        let _ = writeln!(text, "| `{scheme}` | {} | {here} | {} |", number(paper), each.join(", "));
    }
    text.push('\n');
}

/// Who made the statements: the paper, or nobody before us.
pub(super) fn whose(reports: &[Report]) -> &'static str {
    let is_ours = !reports.is_empty() && reports.iter().all(|report| report.paper().is_empty());
    if is_ours { " of ours, which no paper has made," } else { " of the paper" }
}

fn outcomes(text: &mut String, reports: &[Report]) {
    let count = |verdict| reports.iter().map(|report| with(report, verdict).count()).sum::<usize>();
    let at_full = |verdict| {
        let full = reports.iter().filter(|report| report.scale == "full" || !is_simulated(report));
        full.map(|report| with(report, verdict).count()).sum::<usize>()
    };
    let [reproduced, differ] = [Verdict::Reproduced, Verdict::Differs].map(count);
    let [implied, not_run] = [Verdict::Implied, Verdict::NotRun].map(count);
    let all = || reports.iter().flat_map(|report| &report.facts);
    let (judged, unsure) =
        (all().filter(|fact| !fact.by_seed.is_empty()).count(), all().filter(|fact| fact.is_unsure()).count());
    let _ = write!(
        text,
        "Of {} statements{}: {reproduced} reproduced, {differ} differing, {not_run} not run. Beside them {implied} are \
         implied: they hold, but are computed from the scheme's own rules, follow from another statement or from how the runs \
         are made, or are our reading and no sentence of the paper. Computed, or run at \
         the paper's size: {} of those reproduced and {} of those differing; all others at reduced size. Of the {judged} that \
         were judged with several seeds {unsure} have another outcome with some seed alone than with the means; the table \
         has all of these. Why one differs is said in its section.\n\n\
         | outcome | how sure | where | statement | paper | here |\n|---|---|---|---|---|---|\n",
        reproduced + differ + not_run,
        whose(reports),
        at_full(Verdict::Reproduced),
        at_full(Verdict::Differs),
    );
    for (verdict, name) in [(Verdict::Differs, "**differs**"), (Verdict::NotRun, "*not run*")] {
        for report in reports {
            with(report, verdict).for_each(|fact| outcome(text, name, report, fact));
        }
    }
    for (verdict, name) in [(Verdict::Reproduced, "reproduced"), (Verdict::Implied, "*implied*")] {
        for report in reports {
            let unsure = with(report, verdict).filter(|fact| fact.is_unsure());
            unsure.for_each(|fact| outcome(text, name, report, fact));
        }
    }
    for (verdict, name) in [(Verdict::Reproduced, "reproduced"), (Verdict::Implied, "*implied*")] {
        for report in reports {
            let sure: Vec<&Fact> = with(report, verdict).filter(|fact| !fact.is_unsure()).collect();
            together(text, name, report, &sure);
        }
    }
    text.push('\n');
}

/// The statements of a report with this outcome.
fn with(report: &Report, verdict: Verdict) -> impl Iterator<Item = &Fact> {
    report.facts.iter().filter(move |fact| fact.verdict == verdict)
}

/// The row of all statements of a report with the same outcome.
fn together(text: &mut String, name: &str, report: &Report, facts: &[&Fact]) {
    let statements = match facts.len() {
        0 => return,
        1 => "1 statement".to_owned(),
        several => format!("{several} statements"),
    };
    // Some may be computed, and say nothing of seeds.
    let sureness = facts.iter().map(|fact| sureness(fact)).find(|sureness| !sureness.is_empty()).unwrap_or_default();
    let _ = writeln!(text, "| {name} | {sureness} | {} | {statements}: {} | | |", link(report), cell(&report.title));
}

/// The row of a statement.
fn outcome(text: &mut String, name: &str, report: &Report, fact: &Fact) {
    let cells = [&fact.statement, &fact.paper, &fact.here].map(|text| cell(text));
    let _ = writeln!(text, "| {name} | {} | {} | {} |", sureness(fact), link(report), cells.join(" | "));
}

/// The 95 % confidence intervals of one quantity over all figures.
#[derive(Default)]
struct Intervals {
    /// Half of the width of each.
    halves: Vec<f64>,
    /// Where the widest is.
    widest: String,
}

fn how_sure(text: &mut String, reports: &[Report]) {
    let _ = write!(text, "## How sure\n\n");
    let mut by_run: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for report in reports.iter().filter(|report| is_simulated(report)) {
        by_run.entry(how(report)).or_default().push(link(report));
    }
    for (how, links) in by_run {
        let warning = if how.contains("seeds") { "" } else { "; one seed, so there is no interval" };
        let _ = writeln!(text, "- {how}{warning}: {}", links.join(", "));
    }
    versions(text, reports);
    let intervals = intervals(reports);
    if intervals.is_empty() {
        let _ =
            writeln!(text, "\nNo figure was run with several seeds, so nothing is known of how far numbers spread.\n");
        return;
    }
    let _ = write!(
        text,
        "\n95 % confidence intervals of means over seeds (Student's t), half of their width:\n\n\
         | quantity | intervals | half of them at most | widest | where |\n|---|---|---|---|---|\n"
    );
    for (axis, Intervals { mut halves, widest }) in intervals {
        halves.sort_by(f64::total_cmp);
        let (median, most) = (halves[halves.len() / 2], halves[halves.len() - 1]);
        let _ = writeln!(
            text,
            "| {} | {} | ± {} | ± {} | {} |",
            cell(&axis),
            halves.len(),
            number(median),
            number(most),
            cell(&widest)
        );
    }
    text.push('\n');
}

/// Whether all results are of one version of the simulator.
fn versions(text: &mut String, reports: &[Report]) {
    let codes: BTreeSet<&str> = reports.iter().map(|report| report.code.as_str()).collect();
    let older: Vec<String> = reports.iter().filter(|report| !report.older_runs.is_empty()).map(link).collect();
    if codes.len() > 1 {
        let count = codes.len();
        let _ = writeln!(
            text,
            "- {count} versions of the simulator wrote these reports; the JSON of each names its own (`code`)."
        );
    }
    if !older.is_empty() {
        let _ = writeln!(
            text,
            "- With runs of other versions than the one that wrote the report, as each section says: {}.",
            older.join(", ")
        );
    }
    if codes.len() < 2 && older.is_empty() {
        let _ = writeln!(text, "- All results are of one version of the simulator.");
    }
}

/// The intervals of all figures, by the vertical axis.
fn intervals(reports: &[Report]) -> BTreeMap<String, Intervals> {
    let mut all: BTreeMap<String, Intervals> = BTreeMap::new();
    for report in reports {
        for figure in report.figures.iter().filter(|figure| figure.spread == Spread::Confidence95) {
            for series in &figure.series {
                for point in &series.points {
                    let Some((least, most)) = point.range else { continue };
                    let half = (most - least) / 2.0;
                    let intervals = all.entry(figure.y_axis.clone()).or_default();
                    if intervals.halves.iter().all(|other| *other < half) {
                        let x = figure.category(point.x).map_or_else(|| number(point.x), str::to_owned);
                        let place = [&figure.title, &series.panel, &series.name].map(String::as_str);
                        let place: Vec<&str> = place.into_iter().filter(|part| !part.is_empty()).collect();
                        intervals.widest = format!(
                            "{}: {}, at {x}, where the mean is {}",
                            link(report),
                            place.join(", "),
                            number(point.y)
                        );
                    }
                    intervals.halves.push(half);
                }
            }
        }
    }
    all
}

fn assumptions(text: &mut String, reports: &[Report]) {
    let _ = write!(
        text,
        "## What was assumed\n\n\
         The machine of the paper was not at hand, and the paper gives few numbers of it. `docs/simulator.md` says what \
         is modelled and what is left out.\n\n| | value here | where it comes from |\n|---|---|---|\n"
    );
    let is_any = |of: fn(&str) -> bool| reports.iter().any(|report| of(report.paper()));
    let of_p = (reports.is_empty() || is_any(|paper| paper == "P")).then(Assumption::all);
    let of_clusters = is_any(|paper| !matches!(paper, "P" | "R" | "B")).then(Assumption::of_clusters);
    let of_fabrics = is_any(|paper| paper == "R").then(Assumption::of_fabrics);
    let of_bulk = is_any(|paper| paper == "B").then(Assumption::of_bulk_machines);
    let all = of_p.into_iter().chain(of_clusters).chain(of_fabrics).chain(of_bulk);
    for Assumption { what, value, source } in all.flatten() {
        let _ = writeln!(text, "| {what} | {} | {} |", cell(&value), cell(&source));
    }
    text.push('\n');
}

/// Scale, seeds and noise, as options.
pub fn options(report: &Report) -> String {
    let scale = match report.scale.as_str() {
        "full" => "",
        "quick" => " --quick",
        _ => " --smallest",
    };
    let noise = match report.noise_percent {
        0.0 => " --no-noise".to_owned(),
        percent => format!(" --noise={percent}"),
    };
    format!("{scale}{noise} --seeds {} --seed {}", report.seeds, report.seed)
}

/// One command for all reports with the same options; those that are computed go with any.
fn repeat(text: &mut String, reports: &[Report]) {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for report in reports.iter().filter(|report| is_simulated(report)) {
        let options = options(report);
        match groups.iter_mut().find(|group| group.0 == options) {
            Some(group) => group.1.push(&report.id),
            None => groups.push((options, vec![&report.id])),
        }
    }
    let computed: Vec<&str> = reports.iter().filter(|report| !is_simulated(report)).map(|report| &*report.id).collect();
    match groups.first_mut() {
        Some(group) => group.1.extend(computed),
        None => groups.push((String::new(), computed)),
    }
    let how_many = if groups.len() == 1 { "One command repeats it" } else { "These commands repeat it" };
    let _ = write!(text, "## To repeat it\n\n{how_many}, and it goes on where it was stopped:\n\n```sh\n");
    for (options, ids) in groups {
        let ids = if ids.len() == Experiment::all().len() { " all".to_owned() } else { format!(" {}", ids.join(" ")) };
        let _ = writeln!(text, "tidegate paper{ids}{options} --out results");
    }
    text.push_str("```\n\n");
    if reports.iter().any(|report| !report.older_runs.is_empty()) {
        text.push_str(
            "It does all runs anew. Those behind this page were partly kept from other versions of the simulator (each \
             section says how many, and the JSON of which); with such a folder, `--reuse-older` uses them again.\n\n",
        );
    }
    let _ = write!(
        text,
        "Runs are deterministic: one version of the program gives the same bytes for the same seeds on every \
         machine, in all files but those that end in `-times.json`, and on this page in all but the next section.\n\n"
    );
}

fn how_long(text: &mut String, reports: &[Report], times: &BTreeMap<String, Times>) {
    let _ = write!(text, "## How long it took\n\n");
    let known: Vec<&Times> =
        reports.iter().filter(|report| is_simulated(report)).filter_map(|report| times.get(&report.id)).collect();
    let runs: BTreeMap<&String, f64> =
        known.iter().flat_map(|times| &times.seconds).map(|(run, seconds)| (run, *seconds)).collect();
    if !runs.is_empty() {
        let whole = std::time::Duration::from_secs_f64(runs.values().sum());
        let longest = std::time::Duration::from_secs_f64(runs.values().fold(0.0, |one: f64, other| one.max(*other)));
        let most = |value: fn(&Times) -> usize| known.iter().map(|times| value(times)).max().unwrap_or(1);
        let _ = writeln!(
            text,
            "{} runs, each of which uses one core: {} together, the longest {}; up to {} at the same time on a machine \
             with {} processors.",
            runs.len(),
            duration(whole),
            duration(longest),
            most(|times| times.jobs),
            most(|times| times.processors),
        );
    }
    for report in reports.iter().filter(|report| !is_simulated(report)) {
        if let Some(sentence) = times.get(&report.id).and_then(Times::search) {
            let _ = writeln!(text, "{}: {sentence}", report.id);
        }
    }
    let unknown: Vec<String> = reports
        .iter()
        .filter(|report| is_simulated(report) && !times.contains_key(&report.id))
        .map(|report| report.id.clone())
        .collect();
    if !unknown.is_empty() {
        let _ = writeln!(text, "Not kept: the times of {}.", unknown.join(", "));
    } else if runs.is_empty() {
        let _ = writeln!(text, "Nothing was simulated.");
    }
    text.push('\n');
}
