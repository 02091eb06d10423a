//! What came out of a figure, as one CSV file beside the figure's own: so that results can be read, compared line by
//! line and drawn again without runs.
//!
//! The first field of a line says what it is:
//!
//! | line | its other fields |
//! |---|---|
//! | `figure` | name, version of the code, size, first seed, number of seeds, percent of noise |
//! | `older` | version of other code, how many of the runs it did |
//! | `picture` | name, title, horizontal axis, vertical axis, what ranges are, whether it is computed |
//! | `categories` | what the abscissas 0, 1, 2 … of the picture stand for |
//! | `curve` | name, panel, whose numbers, scheme, whether credits ride on data |
//! | `point` | x, y, lower and upper end of the range, then y with each seed |
//! | `table` | name, title |
//! | `head`, `row` | cells |
//! | `claim` | what came of it, the same with each seed alone, the statement, the paper's words, ours |
//!
//! Titles and explanations are those of the figure's file.

use crate::report::{Fact, Figure, Point, Report, Series, SeriesKind, Spread, Table, Verdict};

/// The file's text.
///
/// # Errors
/// If memory cannot hold it.
pub fn written(report: &Report) -> Result<String, String> {
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut line = |kind: &str, fields: Vec<String>| {
        lines.push(std::iter::once(kind.to_owned()).chain(fields).collect());
    };
    let numbers = [report.seed.to_string(), report.seeds.to_string(), report.noise_percent.to_string()];
    line("figure", [report.id.clone(), report.code.clone(), report.scale.clone()].into_iter().chain(numbers).collect());
    for (code, runs) in &report.older_runs {
        line("older", vec![code.clone(), runs.to_string()]);
    }
    for figure in &report.figures {
        let Figure { name, title, x_axis, y_axis, .. } = figure;
        let spread = if figure.spread == Spread::Extremes { "extremes" } else { "confidence" };
        let mut fields = [name, title, x_axis, y_axis].map(String::clone).to_vec();
        fields.extend([spread.to_owned(), figure.is_computed.to_string()]);
        line("picture", fields);
        if !figure.categories.is_empty() {
            line("categories", figure.categories.clone());
        }
        for series in &figure.series {
            let kind = if series.kind == SeriesKind::Paper { "paper" } else { "ours" };
            let Series { name, panel, scheme, piggyback, .. } = series;
            line("curve", vec![name.clone(), panel.clone(), kind.into(), scheme.clone(), piggyback.to_string()]);
            for Point { x, y, range, each } in &series.points {
                let end = |end: Option<f64>| end.map_or(String::new(), |end| end.to_string());
                let ends = [end(range.map(|range| range.0)), end(range.map(|range| range.1))];
                let each = each.iter().map(f64::to_string);
                line("point", [x.to_string(), y.to_string()].into_iter().chain(ends).chain(each).collect());
            }
        }
    }
    for table in &report.tables {
        line("table", vec![table.name.clone(), table.title.clone()]);
        line("head", table.columns.clone());
        table.rows.iter().for_each(|row| line("row", row.clone()));
    }
    for fact in &report.facts {
        let by_seed: Vec<&str> = fact.by_seed.iter().map(|verdict| verdict.name()).collect();
        let Fact { statement, verdict, paper, here, .. } = fact;
        let outcome = vec![verdict.name().to_owned(), by_seed.join("; ")];
        line("claim", [outcome, vec![statement.clone(), paper.clone(), here.clone()]].concat());
    }
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    for line in lines {
        writer.write_record(line).map_err(|error| error.to_string())?;
    }
    let bytes = writer.into_inner().map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

/// The report of a file's text; its title, section, set-up and explanations are left empty.
///
/// # Errors
/// If it is none: the text names the line.
pub fn read(text: &str) -> Result<Report, String> {
    let mut report = Report::default();
    let mut reader = csv::ReaderBuilder::new().flexible(true).has_headers(false).from_reader(text.as_bytes());
    for (number, record) in (1..).zip(reader.records()) {
        let record = record.map_err(|error| format!("line {number}: {error}"))?;
        let fields: Vec<&str> = record.iter().collect();
        take(&mut report, &fields).ok_or_else(|| format!("line {number} is none of a figure's results: {fields:?}"))?;
    }
    if report.id.is_empty() { Err("there is no line `figure`".to_owned()) } else { Ok(report) }
}

/// Adds what a line says; `None` if it says nothing that is known.
fn take(report: &mut Report, fields: &[&str]) -> Option<()> {
    let texts = |fields: &[&str]| fields.iter().map(|&field| field.to_owned()).collect::<Vec<String>>();
    match *fields {
        ["figure", id, code, scale, seed, seeds, noise] => {
            (report.id, report.code, report.scale) = (id.to_owned(), code.to_owned(), scale.to_owned());
            (report.seed, report.seeds) = (seed.parse().ok()?, seeds.parse().ok()?);
            report.noise_percent = noise.parse().ok()?;
        }
        ["older", code, runs] => drop(report.older_runs.insert(code.to_owned(), runs.parse().ok()?)),
        ["picture", name, title, x_axis, y_axis, spread, is_computed] => report.figures.push(Figure {
            name: name.to_owned(),
            title: title.to_owned(),
            x_axis: x_axis.to_owned(),
            y_axis: y_axis.to_owned(),
            spread: if spread == "extremes" { Spread::Extremes } else { Spread::default() },
            is_computed: is_computed.parse().ok()?,
            ..Figure::default()
        }),
        ["categories", ref names @ ..] => report.figures.last_mut()?.categories = texts(names),
        ["curve", name, panel, kind, scheme, piggyback] => report.figures.last_mut()?.series.push(Series {
            name: name.to_owned(),
            panel: panel.to_owned(),
            kind: if kind == "paper" { SeriesKind::Paper } else { SeriesKind::Found },
            scheme: scheme.to_owned(),
            piggyback: piggyback.parse().ok()?,
            points: Vec::new(),
        }),
        ["point", x, y, low, high, ref each @ ..] => {
            let range = low.parse().ok().zip(high.parse().ok());
            let each: Option<Vec<f64>> = each.iter().map(|value| value.parse().ok()).collect();
            let point = Point { x: x.parse().ok()?, y: y.parse().ok()?, range, each: each? };
            report.figures.last_mut()?.series.last_mut()?.points.push(point);
        }
        ["table", name, title] => report.tables.push(Table::new(name, title, &[])),
        ["head", ref cells @ ..] => report.tables.last_mut()?.columns = texts(cells),
        ["row", ref cells @ ..] => report.tables.last_mut()?.rows.push(texts(cells)),
        ["claim", outcome, by_seed, statement, paper, here] => {
            let by_seed: Option<Vec<Verdict>> =
                by_seed.split("; ").filter(|name| !name.is_empty()).map(Verdict::named).collect();
            let mut fact = Fact::not_run(statement, paper, "");
            (fact.verdict, fact.by_seed, fact.here) = (Verdict::named(outcome)?, by_seed?, here.to_owned());
            report.facts.push(fact);
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let point = |x: f64| Point { x, y: x / 3.0, range: Some((0.1, 0.2)), each: vec![0.1, 0.7] };
        let plain = Point { x: 1e-9, y: -0.0, range: None, each: Vec::new() };
        let mut series = Series::of("static, \"all\"", [point(8.0), plain]).in_panel("64, of 128");
        series.piggyback = true;
        let mut table = Table::new("t", "a title, with a comma", &["one", "other"]);
        table.row(["a\nb".to_owned(), String::new()]);
        let mut fact = Fact::tested("It holds.", true, "yes", "no, 3 %");
        fact.by_seed = vec![Verdict::Differs, Verdict::NotRun];
        Report {
            id: "P-fig0".to_owned(),
            scale: "full".to_owned(),
            code: "12ab".to_owned(),
            seed: 1,
            seeds: 2,
            noise_percent: 2.5,
            older_runs: [("0f".to_owned(), 3)].into(),
            figures: vec![Figure {
                name: "fig0".to_owned(),
                series: vec![series, Series::paper("paper", "static", [(8.0, 0.0)])],
                categories: vec!["IS".to_owned()],
                spread: Spread::Extremes,
                ..Figure::default()
            }],
            tables: vec![table],
            facts: vec![fact],
            ..Report::default()
        }
    }

    #[test]
    fn what_is_written_is_read_again_to_the_last_digit() {
        assert_eq!(read(&written(&report()).unwrap()).unwrap(), report());
    }

    #[test]
    fn a_line_that_says_nothing_is_named() {
        let text = written(&report()).unwrap() + "\"claim\",\"proven\",\"\",\"It.\",\"\",\"\"\n";
        let last = text.matches("\nclaim,").count() + text.matches("\n\"claim\",").count();
        assert_eq!(last, 2);
        let said = read(&text).unwrap_err();
        assert!(said.ends_with(r#"is none of a figure's results: ["claim", "proven", "", "It.", "", ""]"#), "{said}");
        assert_eq!(read(""), Err("there is no line `figure`".to_owned()));
    }
}
