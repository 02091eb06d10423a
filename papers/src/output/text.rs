//! A report as text for a terminal.

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use crate::report::{Fact, Figure, Report, Series};

/// Columns of a terminal whose width is not known.
const WIDTH: u16 = 120;

fn table(columns: &[String]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_header(columns);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table
}

/// A number with two decimals below 10, one below 1000, and none from there on; trailing zeros are left out.
#[must_use]
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        0.0..10.0 => 2,
        10.0..1000.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The curves of a figure, side by side: one row for each abscissa.
#[must_use]
pub fn figure_rows(figure: &Figure) -> (Vec<String>, Vec<Vec<String>>) {
    let name = |series: &Series| match series.panel.as_str() {
        "" => series.name.clone(),
        panel => format!("{}, {panel}", series.name),
    };
    let columns = std::iter::once(figure.x_axis.clone()).chain(figure.series.iter().map(name));
    let mut all: Vec<f64> = figure.series.iter().flat_map(|series| &series.points).map(|point| point.x).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    let row = |&x: &f64| {
        let values = figure.series.iter().map(|series| {
            let point = series.points.iter().find(|point| point.x == x);
            point.map_or(String::new(), |point| match point.range {
                None => number(point.y),
                Some((least, most)) => format!("{} ({}–{})", number(point.y), number(least), number(most)),
            })
        });
        std::iter::once(number(x)).chain(values).collect()
    };
    (columns.collect(), all.iter().map(row).collect())
}

/// What is said of seeds and noise after the scale.
#[must_use]
pub fn seeds_and_noise(report: &Report) -> String {
    let seeds = if report.seeds > 1 { format!(", {} seeds", report.seeds) } else { String::new() };
    let noise =
        if report.noise_percent > 0.0 { format!(", {} % noise", number(report.noise_percent)) } else { String::new() };
    seeds + &noise
}

/// The scale of a report; one that is not full is written in capitals, so that nobody overlooks it.
#[must_use]
pub fn scale(report: &Report) -> String {
    let how = seeds_and_noise(report);
    match report.scale.as_str() {
        "full" => format!("full size{how}"),
        "quick" => format!("QUICK{how}: fewer processes and points than the paper"),
        other => format!("{}{how}: the least that shows anything", other.to_uppercase()),
    }
}

/// What is true of all reports with these seeds and this noise: two sentences, or less.
#[must_use]
pub fn method(report: &Report) -> String {
    let mut text = String::new();
    if report.noise_percent > 0.0 {
        let percent = number(report.noise_percent);
        let _ = write!(
            text,
            "Processes are interrupted for {} µs after every ms of work, on average ({percent} % of the time). ",
            number(10.0 * report.noise_percent)
        );
    }
    if report.seeds > 1 {
        let _ = write!(
            text,
            "Every number is the mean over {} seeds, of overheads the mean of the ratios between runs with the same seed.",
            report.seeds
        );
    }
    text.trim_end().to_owned()
}

/// That other versions of the simulator did some of the runs, and what this means for whoever repeats them. `None` if
/// none did.
#[must_use]
pub fn older_runs(report: &Report) -> Option<String> {
    let versions: Vec<String> = report.older_runs.iter().map(|(code, runs)| format!("{code} ({runs} runs)")).collect();
    let all = report.runs.len();
    (!versions.is_empty()).then(|| {
        format!(
            "Of its {all} runs some were done by other versions of the simulator than {}, which wrote this report: {}. They \
             were kept, and used because that was asked for. The command does all runs anew with the version that it is \
             given to; the same numbers are certain only with those versions, or with `--reuse-older` and the kept runs.",
            report.code,
            versions.join(", ")
        )
    })
}

fn facts(facts: &[Fact]) -> String {
    let mut text = String::new();
    for fact in facts {
        let sureness = fact.sureness().map_or(String::new(), |sureness| format!(" ({sureness})"));
        let _ = writeln!(text, "  {:<10}  {}{sureness}", fact.verdict.name(), fact.statement);
        let _ = writeln!(text, "              paper: {}", fact.paper);
        if !fact.here.is_empty() {
            let _ = writeln!(text, "              here:  {}", fact.here);
        }
        if !fact.explanation.is_empty() {
            let _ = writeln!(text, "              why:   {}", fact.explanation);
        }
    }
    text
}

/// The whole report.
#[must_use]
pub fn report(report: &Report) -> String {
    let mut text =
        format!("{}  {} ({})\n{}; seed {}\n", report.id, report.title, report.source(), scale(report), report.seed);
    let _ = writeln!(text, "{}", report.setup);
    let notes = [method(report), older_runs(report).unwrap_or_default()];
    notes.iter().filter(|note| !note.is_empty()).for_each(|note| text.extend([note, "\n"]));
    text.push('\n');
    for each in &report.tables {
        let mut shown = table(&each.columns);
        shown.add_rows(&each.rows);
        let _ = writeln!(text, "{}\n{shown}\n", each.title);
    }
    for figure in report.figures.iter().filter(|figure| figure.categories.is_empty()) {
        let (columns, rows) = figure_rows(figure);
        let mut shown = table(&columns);
        shown.add_rows(rows);
        for column in shown.column_iter_mut() {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let _ = writeln!(text, "{}: {}\n{shown}\n", figure.title, figure.y_axis);
    }
    text.push_str(&facts(&report.facts));
    text
}
