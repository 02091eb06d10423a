//! What came out of a figure, as one CSV file beside the figure's own: so that results can be read, compared line by
//! line and drawn again without runs. `docs/add-a-figure.md` says what each line is.

use crate::report::{Fact, Figure, Point, Report, Series, SeriesKind, Table, Verdict};

const KINDS: [(&str, SeriesKind); 3] =
    [("ours", SeriesKind::Found), ("paper", SeriesKind::Paper), ("bound", SeriesKind::Bound)];

pub fn written(report: &Report) -> Result<String, csv::Error> {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    let Report { id, code, scale, seed, seeds, noise_percent, .. } = report;
    let (seed, seeds, noise) = (seed.to_string(), seeds.to_string(), noise_percent.to_string());
    writer.write_record(["figure", id, code, scale, &seed, &seeds, &noise])?;
    for (code, runs) in &report.older_runs {
        writer.write_record(["older", code, &runs.to_string()])?;
    }
    for Figure { name, title, x_axis, y_axis, series, has_extremes, categories, is_computed } in &report.figures {
        let ranges = if *has_extremes { "extremes" } else { "confidence" };
        writer.write_record(["picture", name, title, x_axis, y_axis, ranges, &is_computed.to_string()])?;
        if !categories.is_empty() {
            writer.write_record(std::iter::once("categories").chain(categories.iter().map(String::as_str)))?;
        }
        for Series { name, panel, kind, scheme, piggyback, points } in series {
            let kind = KINDS.iter().find(|(_, of)| of == kind).map_or("", |(name, _)| name);
            writer.write_record(["curve", name, panel, kind, scheme, &piggyback.to_string()])?;
            for Point { x, y, range, each } in points {
                let (low, high) =
                    range.map_or_else(Default::default, |(low, high)| (low.to_string(), high.to_string()));
                let fields = ["point".to_owned(), x.to_string(), y.to_string(), low, high];
                writer.write_record(fields.into_iter().chain(each.iter().map(f64::to_string)))?;
            }
        }
    }
    for Table { name, title, columns, rows } in &report.tables {
        writer.write_record(["table", name, title])?;
        for (kind, cells) in std::iter::once(("head", columns)).chain(rows.iter().map(|row| ("row", row))) {
            writer.write_record(std::iter::once(kind).chain(cells.iter().map(String::as_str)))?;
        }
    }
    for Fact { verdict, by_seed, statement, paper, here, .. } in &report.facts {
        let by_seed = by_seed.iter().map(|verdict| verdict.name()).collect::<Vec<_>>().join("; ");
        writer.write_record(["claim", verdict.name(), &by_seed, statement, paper, here])?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The report of a file's text, without title, section, set-up and explanations. An error names the line.
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
            [report.id, report.code, report.scale] = [id, code, scale].map(str::to_owned);
            (report.seed, report.seeds) = (seed.parse().ok()?, seeds.parse().ok()?);
            report.noise_percent = noise.parse().ok()?;
        }
        ["older", code, runs] => drop(report.older_runs.insert(code.to_owned(), runs.parse().ok()?)),
        ["picture", name, title, x_axis, y_axis, ranges, is_computed] => {
            let [name, title, x_axis, y_axis] = [name, title, x_axis, y_axis].map(str::to_owned);
            let (has_extremes, is_computed) = (ranges == "extremes", is_computed.parse().ok()?);
            let figure = Figure { name, title, x_axis, y_axis, has_extremes, is_computed, ..Figure::default() };
            report.figures.push(figure);
        }
        ["categories", ref names @ ..] => report.figures.last_mut()?.categories = texts(names),
        ["curve", name, panel, kind, scheme, piggyback] => {
            let [name, panel, scheme] = [name, panel, scheme].map(str::to_owned);
            let (kind, piggyback) = (KINDS.iter().find(|(name, _)| *name == kind)?.1, piggyback.parse().ok()?);
            let series = Series { name, panel, kind, scheme, piggyback, points: Vec::new() };
            report.figures.last_mut()?.series.push(series);
        }
        ["point", x, y, low, high, ref each @ ..] => {
            let range = low.parse().ok().zip(high.parse().ok());
            let each: Option<Vec<f64>> = each.iter().map(|value| value.parse().ok()).collect();
            let point = Point { x: x.parse().ok()?, y: y.parse().ok()?, range, each: each? };
            report.figures.last_mut()?.series.last_mut()?.points.push(point);
        }
        ["table", name, title] => {
            report.tables.push(Table { name: name.to_owned(), title: title.to_owned(), ..Table::default() });
        }
        ["head", ref cells @ ..] => report.tables.last_mut()?.columns = texts(cells),
        ["row", ref cells @ ..] => report.tables.last_mut()?.rows.push(texts(cells)),
        ["claim", outcome, by_seed, statement, paper, here] => {
            let by_seed = by_seed.split("; ").filter(|name| !name.is_empty()).map(Verdict::named);
            let (verdict, by_seed) = (Verdict::named(outcome)?, by_seed.collect::<Option<Vec<Verdict>>>()?);
            let [statement, paper, here] = [statement, paper, here].map(str::to_owned);
            report.facts.push(Fact { verdict, by_seed, statement, paper, here, ..Fact::default() });
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
        let mut series = Series::of("static, \"all\"", [point(8.0), plain]);
        (series.piggyback, series.panel) = (true, "64, of 128".to_owned());
        let [name, title, one, other, cell, statement] =
            ["t", "a title, with a comma", "one", "other", "a\nb", "It holds."].map(str::to_owned);
        let table = Table { name, title, columns: vec![one, other], rows: vec![vec![cell, String::new()]] };
        let by_seed = vec![Verdict::Differs, Verdict::NotRun];
        let fact = Fact { statement, here: "no, 3 %".to_owned(), by_seed, ..Fact::default() };
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
                series: vec![series, Series { kind: SeriesKind::Bound, ..Series::new("3 %", [(8.0, 0.0)]) }],
                categories: vec!["IS".to_owned()],
                has_extremes: true,
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
