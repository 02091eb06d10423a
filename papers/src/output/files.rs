//! The files of a report: JSON, a CSV for each table and figure, an SVG and a PNG for each figure.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;
use tidegate_cli::files::{csv, write_whole};

use super::picture::{self, Caption};
use super::text;
use crate::experiment::Experiment;
use crate::report::{Figure, Report};

/// The longest line of JSON that is not broken.
const LINE: usize = 200;

/// What the name of every file of a report begins with.
#[must_use]
pub fn stem(report: &Report) -> String {
    report.id.clone()
}

/// The name of a figure's picture.
#[must_use]
pub fn picture_name(report: &Report, figure: &Figure, ending: &str) -> String {
    format!("{}-{}.{ending}", stem(report), figure.name)
}

/// Writes all files of a report into a folder; returns their names.
///
/// # Errors
/// If one cannot be written.
pub fn write(report: &Report, folder: &Path) -> io::Result<Vec<String>> {
    fs::create_dir_all(folder)?;
    let mut names = Vec::new();
    let mut path_of = |name: String| {
        let path = folder.join(&name);
        names.push(name);
        path
    };
    let json = serde_json::to_value(report).map_err(io::Error::other)?;
    write_whole(&path_of(format!("{}.json", stem(report))), &(lines_of(&json, 0) + "\n"))?;
    let record = crate::record::written(report).map_err(io::Error::other)?;
    write_whole(&path_of(format!("{}.csv", stem(report))), &record)?;
    for table in &report.tables {
        let rows = std::iter::once(&table.columns).chain(&table.rows);
        write_whole(&path_of(format!("{}-table-{}.csv", stem(report), table.name)), &csv(rows))?;
    }
    for figure in &report.figures {
        fs::write(path_of(picture_name(report, figure, "csv")), figure_csv(figure))?;
        for ending in ["svg", "png"] {
            let path = path_of(picture_name(report, figure, ending));
            picture::draw(figure, &caption(report, figure), &path)
                .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
        }
    }
    Ok(names)
}

/// JSON with one line for everything that fits one, and for each run.
pub(super) fn lines_of(value: &Value, depth: usize) -> String {
    /// Depth of what lies in an array of the report itself.
    const ENTRY: usize = 2;
    let whole = value.to_string();
    let is_run = depth == ENTRY && value.get("case").is_some();
    let (inner, outer) = ("  ".repeat(depth + 1), "  ".repeat(depth));
    match value {
        _ if whole.len() <= LINE || is_run => whole,
        Value::Array(items) => {
            let lines: Vec<String> = items.iter().map(|item| inner.clone() + &lines_of(item, depth + 1)).collect();
            format!("[\n{}\n{outer}]", lines.join(",\n"))
        }
        Value::Object(fields) => {
            let field =
                |(name, value)| format!("{inner}{}: {}", Value::from(String::as_str(name)), lines_of(value, depth + 1));
            let lines: Vec<String> = fields.iter().map(field).collect();
            format!("{{\n{}\n{outer}}}", lines.join(",\n"))
        }
        _ => whole,
    }
}

/// Reads the reports that a folder holds, in the order of the paper.
///
/// # Errors
/// If one cannot be read, or is none.
pub fn read(folder: &Path) -> io::Result<Vec<Report>> {
    let mut reports = Vec::new();
    for experiment in Experiment::all() {
        let path = folder.join(format!("{}.json", experiment.id));
        match fs::read(&path) {
            Ok(bytes) => {
                let report = serde_json::from_slice(&bytes).map_err(|error| {
                    io::Error::other(format!("{} is no report: {error}; remove it", path.display()))
                })?;
                reports.push(report);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(reports)
}

/// What stands above a picture.
fn caption(report: &Report, figure: &Figure) -> Caption {
    let scale = text::scale(report);
    let mut note = scale.split(':').next().unwrap_or_default().to_owned();
    if figure.is_computed {
        return Caption { title: title(figure), note: "computed, not run".to_owned() };
    }
    let has_ranges = figure.series.iter().flat_map(|series| &series.points).any(|point| point.range.is_some());
    if report.seeds > 1 {
        note.push_str("; means");
    }
    if figure.categories.is_empty() && figure.series.iter().any(|series| series.piggyback) {
        note.push_str("; hollow: credits ride on data packets");
    }
    if has_ranges {
        let shape = if figure.categories.is_empty() { "bands" } else { "whiskers" };
        note.push_str(&format!("; {shape}: {}", figure.spread.name()));
    }
    Caption { title: title(figure), note }
}

/// The title of a figure with the paper's number of it, which its name begins with: `Figure 4a: …`.
#[must_use]
pub fn title(figure: &Figure) -> String {
    for (start, word) in [("fig", "Figure"), ("table", "Table")] {
        let number = figure.name.strip_prefix(start).and_then(|rest| rest.split('-').next());
        if let Some(number) = number.filter(|number| number.starts_with(|digit: char| digit.is_ascii_digit())) {
            return format!("{word} {number}: {}", figure.title);
        }
    }
    figure.title.clone()
}

/// One line per point, with all digits; `each` holds what each seed gave.
fn figure_csv(figure: &Figure) -> String {
    let head = ["panel", "series", &figure.x_axis, &figure.y_axis, "least", "most", "each"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for series in &figure.series {
        for point in &series.points {
            let (least, most) =
                point.range.map_or_else(Default::default, |(least, most)| (least.to_string(), most.to_string()));
            let x = figure.category(point.x).map_or_else(|| point.x.to_string(), str::to_owned);
            let each = point.each.iter().map(f64::to_string).collect::<Vec<_>>().join(" ");
            let panel = series.panel.clone();
            rows.push(vec![panel, series.name.clone(), x, point.y.to_string(), least, most, each]);
        }
    }
    csv(&rows)
}
