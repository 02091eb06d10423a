//! The files of a report: JSON, a CSV for each table and figure, an SVG and a PNG for each figure.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;
use tidegate_link::files::check_replaceable;
use tidegate_sim::experiment::{Experiment, Figure, Report};

use super::picture::{self, Caption};
use super::text;

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

/// Writes a file such that whoever reads it meanwhile finds the old one or the new one: two processes may have results
/// for one folder at the same time.
///
/// # Errors
/// If it cannot be written.
pub fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mode = fs::Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new().permissions(mode).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Writes a file that a user has named: a device or a pipe is written to, a file is replaced when all is there, so that
/// a full disk leaves the old one.
///
/// # Errors
/// If it cannot be written.
pub fn write_output(path: &Path, text: &str) -> io::Result<()> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if target.exists() && !target.is_file() {
        return fs::write(path, text);
    }
    match write_whole(&target, text) {
        // The file may be ours where the folder is not.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => fs::write(path, text),
        written => written,
    }
}

/// Writes a file under a name that the program has chosen.
///
/// # Errors
/// If it cannot be written, or something stands there that is no file.
pub fn write_chosen(path: &Path, text: &str) -> io::Result<()> {
    check_replaceable(path)?;
    write_whole(path, text)
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
    for experiment in Experiment::ALL {
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

/// Comma-separated values, quoted where they have to be (RFC 4180).
#[must_use]
pub fn csv<'a>(rows: impl IntoIterator<Item = &'a Vec<String>>) -> String {
    let cell = |cell: &String| match cell.contains([',', '"', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.clone(),
    };
    let line = |row: &Vec<String>| row.iter().map(cell).collect::<Vec<_>>().join(",") + "\n";
    rows.into_iter().map(line).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_name_at_which_a_pipe_stands_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let said = write_chosen(&path, "text").unwrap_err().to_string();
        assert!(said.starts_with("it is a pipe, not a file: remove it"), "{said}");
        fs::remove_file(&path).unwrap();
        (0..2).for_each(|_| write_chosen(&path, "text").unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "text");
    }

    #[test]
    fn cells_with_commas_and_quotes_are_quoted() {
        let rows = [vec!["a,b".to_owned(), "say \"x\"".to_owned(), "plain".to_owned()]];
        assert_eq!(csv(&rows), "\"a,b\",\"say \"\"x\"\"\",plain\n");
    }
}
