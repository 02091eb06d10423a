//! The files of a report: JSON, a CSV for each table and figure, an SVG and a PNG for each figure.

use std::fs;
use std::io;
use std::path::Path;

use tidegate_sim::experiment::{Experiment, Figure, Report};

use super::picture;
use super::text;

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
    let json = serde_json::to_string_pretty(report).map_err(io::Error::other)?;
    fs::write(path_of(format!("{}.json", stem(report))), json + "\n")?;
    for table in &report.tables {
        let rows = std::iter::once(&table.columns).chain(&table.rows);
        fs::write(path_of(format!("{}-table-{}.csv", stem(report), table.name)), csv(rows))?;
    }
    // Pictures of the paper's size without noise need no note.
    let is_plain = report.scale == "full" && !report.noise;
    let note = if is_plain { String::new() } else { text::scale(report) };
    for figure in &report.figures {
        fs::write(path_of(picture_name(report, figure, "csv")), figure_csv(figure))?;
        for ending in ["svg", "png"] {
            let path = path_of(picture_name(report, figure, ending));
            picture::draw(figure, note.split(':').next().unwrap_or_default(), &path)
                .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
        }
    }
    Ok(names)
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

/// One line per point, with all digits.
fn figure_csv(figure: &Figure) -> String {
    let mut rows = vec![["series", &figure.x_axis, &figure.y_axis, "least", "most"].map(str::to_owned).to_vec()];
    for series in &figure.series {
        for point in &series.points {
            let (least, most) =
                point.range.map_or_else(Default::default, |(least, most)| (least.to_string(), most.to_string()));
            let x = figure.category(point.x).map_or_else(|| point.x.to_string(), str::to_owned);
            rows.push(vec![series.name.clone(), x, point.y.to_string(), least, most]);
        }
    }
    csv(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_with_commas_and_quotes_are_quoted() {
        let rows = [vec!["a,b".to_owned(), "say \"x\"".to_owned(), "plain".to_owned()]];
        assert_eq!(csv(&rows), "\"a,b\",\"say \"\"x\"\"\",plain\n");
    }
}
