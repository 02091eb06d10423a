//! A figure's tables.

use std::collections::BTreeMap;

use tidegate_sim::Estimate;

use super::BadFigure;
use super::definition::{ColumnOf, ColumnValue, Selection, TableOf, TotalOf};
use super::expression::{BadExpression, Expression};
use super::points::{Points, Slice, combinations, common, key, named};
use super::select::{Key, Take, both, selecting};
use super::text::{self, Named, printed};
use crate::report::Table;

/// The table with its cells; `text` puts the figure's values into one.
pub fn filled(
    of: &TableOf,
    points: &Points,
    text: &dyn Fn(&str) -> Result<String, BadFigure>,
) -> Result<Table, BadFigure> {
    let bad = |error: BadFigure| BadFigure(format!("table {}: {error}", of.name));
    if !of.lines.is_empty() {
        let heads: Vec<&str> = of.heads.iter().map(String::as_str).collect();
        let mut table = Table::new(&of.name, &of.title, &heads);
        lines(&of.lines, &mut table, text).map_err(bad)?;
        return Ok(table);
    }
    let rows = values_of(of, of.runs.as_deref(), points, &of.rows, &of.r#where).map_err(bad)?;
    let mut heads: Vec<String> = if of.heads.is_empty() { of.rows.clone() } else { of.heads.clone() };
    // A column, and the values of the axes that it is for.
    let mut columns: Vec<(&ColumnOf, BTreeMap<String, Key>)> = Vec::new();
    let repeated = values_of(of, of.runs.as_deref(), points, &of.columns_by, &of.r#where).map_err(bad)?;
    for (group, column) in repeated.iter().flat_map(|group| of.columns.iter().map(move |column| (group, column))) {
        let runs = column.value.runs.as_deref().or(of.runs.as_deref());
        let selection = both(&both(&of.r#where, &column.value.r#where), &selecting(group));
        for mut keys in values_of(of, runs, points, &column.by, &selection).map_err(bad)? {
            keys.extend(group.clone());
            heads.push(named(&column.head, &keys));
            columns.push((column, keys));
        }
    }
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let whole = Slice { runs: of.runs.as_deref(), selection: &of.r#where, beside: &Selection::new() };
    let all = points.places(whole).map_err(|error| bad(error.into()))?;
    let [name, title] = [&of.name, &of.title].map(|text| named(text, &common(&all)));
    let mut table = Table::new(&name, &title, &heads);
    for row in rows {
        let mut cells: Vec<String> = match of.row.as_str() {
            "" => of.rows.iter().map(|axis| row[axis].text.clone()).collect(),
            of => vec![named(of, &row)],
        };
        for (column, keys) in &columns {
            cells.push(cell(of, column, &selecting(row.iter().chain(keys)), points).map_err(bad)?);
        }
        table.row(cells);
    }
    for total in &of.totals {
        let mut cells = vec![total.name.clone()];
        cells.resize(heads.len() - columns.len(), String::new());
        for (head, (column, keys)) in heads[cells.len()..].iter().zip(&columns) {
            let has_it = total.columns.is_empty() || total.columns.iter().any(|wanted| wanted == head);
            let cell = || total_cell(of, total, column, &selecting(keys), points).map_err(bad);
            cells.push(if has_it { cell()? } else { "–".to_owned() });
        }
        table.row(cells);
    }
    lines(&of.below, &mut table, text).map_err(bad)?;
    Ok(table)
}

/// Adds rows of texts.
fn lines(
    lines: &[Vec<String>],
    table: &mut Table,
    text: &dyn Fn(&str) -> Result<String, BadFigure>,
) -> Result<(), BadFigure> {
    for line in lines {
        let cells: Result<Vec<String>, BadFigure> = line.iter().map(|cell| text(cell)).collect();
        table.row(cells?);
    }
    Ok(())
}

/// A cell of a row that makes one number of each column.
fn total_cell(
    of: &TableOf,
    total: &TotalOf,
    column: &ColumnOf,
    place: &Selection,
    points: &Points,
) -> Result<String, BadFigure> {
    let mut value = ColumnValue { take: Some(total.take.clone()), ..column.value.clone() };
    if let Some(of) = &total.of {
        value.of.clone_from(of);
    }
    let each = estimates(of, &value, &both(&both(&of.r#where, &value.r#where), place), points)?;
    Ok(printed(number(&value, &each)?, total.digits.unwrap_or(column.digits)))
}

/// All combinations of the values of some axes that a table has.
fn values_of(
    of: &TableOf,
    runs: Option<&str>,
    points: &Points,
    axes: &[String],
    selection: &Selection,
) -> Result<Vec<BTreeMap<String, Key>>, BadFigure> {
    let slice = Slice { runs, selection, beside: &Selection::new() };
    let points = if of.absent { points.places(slice)? } else { points.chosen(slice)? };
    Ok(combinations(&points, axes)?)
}

/// The points of a value of a column, and what is measured there.
fn estimates(
    of: &TableOf,
    value: &ColumnValue,
    selection: &Selection,
    points: &Points,
) -> Result<Vec<(f64, Estimate)>, BadFigure> {
    let slice = Slice { runs: value.runs.as_deref().or(of.runs.as_deref()), selection, beside: &value.beside };
    let mut each = Vec::new();
    for point in points.chosen(slice)? {
        let place = |axis: &String| key(&point.keys, axis).map(|key| key.number.unwrap_or(0.0));
        let x = value.along.as_ref().map_or(Ok(0.0), place)?;
        each.push((x, points.estimate(slice, point, &value.of)?));
    }
    Ok(each)
}

/// One number of them.
fn number(value: &ColumnValue, each: &[(f64, Estimate)]) -> Result<f64, BadExpression> {
    let means: Vec<(f64, f64)> = each.iter().map(|(x, estimate)| (*x, estimate.mean())).collect();
    Ok(value.take.as_deref().map_or(Ok(Take::Mean), Take::parse)?.of(&means))
}

/// A cell; where no point is, why that is so, or nothing.
fn cell(of: &TableOf, column: &ColumnOf, place: &Selection, points: &Points) -> Result<String, BadFigure> {
    let base = both(&of.r#where, &column.value.r#where);
    if let Some(axis) = &column.which {
        return which(of, column, axis, &both(&base, place), points);
    }
    if !column.text.is_empty() {
        return text_cell(of, column, &base, place, points);
    }
    let selection = both(&base, place);
    let each = estimates(of, &column.value, &selection, points)?;
    let runs = column.value.runs.as_deref().or(of.runs.as_deref());
    let places = points.places(Slice { runs, selection: &selection, beside: &Selection::new() })?;
    if each.is_empty() {
        let why = places.iter().filter_map(|point| point.absent.filter(|_| of.absent)).min();
        return Ok(why.map_or(String::new(), |why| why.to_string()));
    }
    let number = number(&column.value, &each)?;
    if column.bound && places.iter().any(|point| point.is_cut()) {
        return Ok(format!("over {}", printed(number, column.digits.saturating_sub(1))));
    }
    let mut text = printed(number, column.digits);
    if column.plus_minus {
        let estimates: Vec<Estimate> = each.into_iter().map(|(_, estimate)| estimate).collect();
        if let Some((least, most)) = Estimate::mean_of(&estimates).interval() {
            text.push_str(&format!(" ± {}", printed((most - least) / 2.0, column.digits)));
        }
    }
    Ok(text)
}

/// The value of an axis at the first of the points where what is measured is largest.
fn which(
    of: &TableOf,
    column: &ColumnOf,
    axis: &str,
    selection: &Selection,
    points: &Points,
) -> Result<String, BadFigure> {
    let runs = column.value.runs.as_deref().or(of.runs.as_deref());
    let slice = Slice { runs, selection, beside: &column.value.beside };
    let (mut found, mut most) = (String::new(), f64::NEG_INFINITY);
    for point in points.chosen(slice)? {
        let number = points.estimate(slice, point, &column.value.of)?.mean();
        if number > most {
            (found, most) = (key(&point.keys, axis)?.text.clone(), number);
        }
    }
    Ok(found)
}

/// A cell that is a text; empty where one of its values has no point.
fn text_cell(
    of: &TableOf,
    column: &ColumnOf,
    base: &Selection,
    place: &Selection,
    points: &Points,
) -> Result<String, BadFigure> {
    let mut numbers = BTreeMap::new();
    for (name, value) in &column.values {
        let each = estimates(of, value, &both(&both(base, &value.r#where), place), points)?;
        if each.is_empty() {
            return Ok(String::new());
        }
        numbers.insert(name.as_str(), number(value, &each)?);
    }
    let runs = column.value.runs.as_deref().or(of.runs.as_deref());
    let slice = Slice { runs, selection: &both(base, place), beside: &Selection::new() };
    let Some(first) = points.chosen(slice)?.into_iter().next() else { return Ok(String::new()) };
    let lookup = |expression: &str| {
        let value = |name: &str| {
            let number = numbers.get(name).copied();
            number.map(|number| vec![number]).ok_or_else(|| BadExpression(format!("there is no value {name}")))
        };
        Ok(Named { keys: Vec::new(), numbers: Expression::parse(expression)?.evaluate(&value)? })
    };
    Ok(text::filled(&named(&column.text, &first.keys), &lookup)?)
}

#[cfg(test)]
mod tests {
    use super::super::points::tests::points;
    use super::{TableOf, filled};
    use crate::data::Figure;
    use crate::progress::Silent;
    use crate::report::Table;
    use crate::workshop::{Scale, Workshop};

    const FIGURE: &str = r#"
        id = "E-table1"
        title = "Two processes"
        section = "in none of the papers"

        [common.pair]
        machine.processes_per_node = 1
        network.sizes = "2"
        flow = { memory = ["128 B", "64 KiB"], scheme = ["none", "rnr"] }
        workload = { operation = "exchange", bytes = 64, repetitions = 1 }
        reference = { flow.scheme = "unlimited", run.time_most = "never" }
        unfit = "leave"

        [runs.whole]
        with = "pair"
        variants.job = [{ name = "whole" }]
        too_long = [{ memory = "128 B", scheme = "none" }]

        [runs.cut]
        with = "pair"
        variants.job = [{ name = "cut" }]
        run.time_most = "1 us"

        [[tables]]
        runs_each = ["whole", "cut"]
        name = "table-{job}"
        title = "Multiples of the {job} job"
        rows = ["memory"]
        absent = true
        columns = [{ head = "{scheme}", by = ["scheme"], of = "multiple", digits = 2, bound = true }]
        totals = [{ name = "mean", take = "geometric_mean", columns = ["none"] }]
    "#;

    fn tables() -> Vec<Table> {
        let figure = Figure::read("table1.toml", FIGURE, "# Two processes").unwrap();
        figure.findings(&Workshop::new(Scale::Smallest, 1, Some(1), &Silent)).unwrap().tables
    }

    #[test]
    fn cells_say_what_was_not_run_and_which_numbers_are_bounds() {
        let tables = tables();
        let [whole, cut] = &tables[..] else { panic!("{tables:?}") };
        assert_eq!((whole.name.as_str(), cut.title.as_str()), ("table-whole", "Multiples of the cut job"));
        assert_eq!(whole.columns, ["memory", "none", "rnr"]);
        assert_eq!(whole.rows[0], ["128 B", "not run", "needs 3 KiB"]);
        assert!(whole.rows[1][1].parse::<f64>().is_ok(), "{whole:?}");
        assert!(cut.rows[0][1].starts_with("over 0.") && cut.rows[0][2] == "needs 3 KiB", "{cut:?}");
    }

    #[test]
    fn a_total_is_one_number_of_a_column_or_a_dash() {
        let tables = tables();
        assert_eq!(tables[0].rows[2], ["mean", &tables[0].rows[1][1], "–"]);
    }

    fn written_out(text: &str) -> Table {
        let points = points(&[("lu", "8", &[10.0]), ("lu", "16", &[20.0]), ("cg", "8", &[4.0]), ("cg", "16", &[5.0])]);
        let table: TableOf = toml::from_str(&format!("name = 'of'\ntitle = 'Of'\n{text}")).unwrap();
        filled(&table, &points, &|text| Ok(text.replace("{mean}", "9.8"))).unwrap()
    }

    #[test]
    fn columns_are_repeated_and_first_cells_are_texts() {
        let table = written_out(
            r#"
            rows = ["window"]
            row = "8–{window}"
            heads = ["windows"]
            columns_by = ["job"]
            columns = [{ head = "{job}", of = "time_us" }, { head = "{job}, halved", of = "time_us / 2", digits = 1 }]
            "#,
        );
        assert_eq!(table.columns, ["windows", "lu", "lu, halved", "cg", "cg, halved"]);
        assert_eq!(table.rows, [["8–8", "10", "5.0", "4", "2.0"], ["8–16", "20", "10.0", "5", "2.5"]]);
    }

    #[test]
    fn rows_can_be_written_out() {
        let table = written_out("heads = ['what', 'here']\nlines = [['mean', '{mean} µs'], ['told', 'nothing']]");
        assert_eq!(table.columns, ["what", "here"]);
        assert_eq!(table.rows, [["mean", "9.8 µs"], ["told", "nothing"]]);
    }
}
