//! A figure's tables.

use std::collections::BTreeMap;

use tidegate_sim::Estimate;

use super::BadFigure;
use super::definition::{ColumnOf, Numbers, Selection, TableOf, TotalOf};
use super::points::{Points, combinations, named, place, replaced, titled};
use super::select::{Keys, both, key, selecting};
use super::text::{self, Named, printed};
use crate::report::Table;

/// The table with its cells; `text` puts the figure's values into one.
pub fn filled(
    of: &TableOf,
    points: &Points,
    text: &dyn Fn(&str) -> Result<String, BadFigure>,
) -> Result<Table, BadFigure> {
    let texts = |lines: &[Vec<String>]| -> Result<Vec<Vec<String>>, BadFigure> {
        lines.iter().map(|line| line.iter().map(|cell| text(cell)).collect()).collect()
    };
    if !of.lines.is_empty() {
        let [name, title] = [&of.name, &of.title].map(|text| named(text, &Keys::new()));
        return Ok(Table { name: name?, title: title?, columns: of.heads.clone(), rows: texts(&of.lines)? });
    }
    let combined = |runs: Option<&str>, axes: &[String], selection: &Selection| {
        let places = if of.absent { points.places(runs, selection)? } else { points.chosen(runs, selection)? };
        combinations(places, axes)
    };
    let mut columns = if of.heads.is_empty() { of.rows.clone() } else { of.heads.clone() };
    let first_columns = columns.len();
    let mut wanted: Vec<Column<'_>> = Vec::new();
    let own = combined(of.runs.as_deref(), &of.columns_by, &of.r#where)?;
    for (group, column) in own.iter().flat_map(|group| of.columns.iter().map(move |column| (group, column))) {
        let numbers = within(of, &column.numbers, &of.r#where);
        let selection = both(&numbers.r#where, &selecting(group));
        for mut keys in combined(numbers.runs.as_deref(), &column.by, &selection)? {
            keys.extend(group.clone());
            columns.push(named(&column.head, &keys)?);
            wanted.push(Column { table: of, of: column, numbers: numbers.clone(), keys });
        }
    }
    let mut rows = Vec::new();
    for row in combined(of.runs.as_deref(), &of.rows, &of.r#where)? {
        let mut cells: Vec<String> = match of.row.as_str() {
            "" => of.rows.iter().map(|axis| row[axis].text.clone()).collect(),
            of => vec![named(of, &row)?],
        };
        for column in &wanted {
            cells.push(column.cell(&selecting(row.iter().chain(&column.keys)), points)?);
        }
        rows.push(cells);
    }
    for total in &of.totals {
        let mut cells = vec![total.name.clone()];
        cells.resize(first_columns, String::new());
        for (head, column) in columns[first_columns..].iter().zip(&wanted) {
            let has_it = total.columns.is_empty() || total.columns.contains(head);
            cells.push(if has_it { column.total(total, points)? } else { "–".to_owned() });
        }
        rows.push(cells);
    }
    rows.extend(texts(&of.below)?);
    let all = points.places(of.runs.as_deref(), &of.r#where)?;
    Ok(Table { name: titled(&of.name, &all)?, title: titled(&of.title, &all)?, columns, rows })
}

struct Column<'a> {
    table: &'a TableOf,
    of: &'a ColumnOf,
    /// Its numbers, with the table's runs and selection.
    numbers: Numbers,
    keys: Keys,
}

impl Column<'_> {
    /// What is measured at the points of a place, each with where it is along an axis.
    fn estimates(
        &self,
        numbers: &Numbers,
        place_of: &Selection,
        points: &Points,
    ) -> Result<Vec<(f64, Estimate)>, BadFigure> {
        let chosen = points.chosen(numbers.runs.as_deref(), &both(&numbers.r#where, place_of))?;
        chosen.into_iter().map(|point| Ok((place(point, &numbers.along)?, points.estimate(numbers, point)?))).collect()
    }

    /// A cell; where no point is, why that is so, or nothing.
    fn cell(&self, place: &Selection, points: &Points) -> Result<String, BadFigure> {
        let runs = self.numbers.runs.as_deref();
        let places = points.places(runs, &both(&self.numbers.r#where, place))?;
        if let Some(axis) = &self.of.which {
            let (mut found, mut most) = (String::new(), f64::NEG_INFINITY);
            for point in places.into_iter().filter(|point| point.absent.is_none()) {
                let number = points.estimate(&self.numbers, point)?.mean();
                if number > most {
                    (found, most) = (key(&point.keys, axis)?.text.clone(), number);
                }
            }
            return Ok(found);
        }
        if !self.of.text.is_empty() {
            return self.text(place, points);
        }
        let each = self.estimates(&self.numbers, place, points)?;
        if each.is_empty() {
            let why = places.iter().filter_map(|point| point.absent.filter(|_| self.table.absent)).min();
            return Ok(why.map_or(String::new(), |why| why.to_string()));
        }
        let (number, digits) = (one(&self.numbers, &each), self.of.digits);
        if self.of.bound && places.iter().any(|point| point.is_cut()) {
            return Ok(format!("over {}", printed(number, digits.saturating_sub(1))));
        }
        let mut text = printed(number, digits);
        if self.of.plus_minus {
            let estimates: Vec<Estimate> = each.into_iter().map(|(_, estimate)| estimate).collect();
            if let Some((least, most)) = Estimate::mean_of(&estimates).interval() {
                text.push_str(&format!(" ± {}", printed((most - least) / 2.0, digits)));
            }
        }
        Ok(text)
    }

    /// A cell that is a text; empty where one of its values has no point.
    fn text(&self, place: &Selection, points: &Points) -> Result<String, BadFigure> {
        let mut values = BTreeMap::new();
        for (name, own) in &self.of.values {
            let numbers = within(self.table, own, &self.numbers.r#where);
            let each = self.estimates(&numbers, place, points)?;
            if each.is_empty() {
                return Ok(String::new());
            }
            values.insert(name.as_str(), one(&numbers, &each));
        }
        let chosen = points.chosen(self.numbers.runs.as_deref(), &both(&self.numbers.r#where, place))?;
        let Some(first) = chosen.first() else { return Ok(String::new()) };
        let lookup = |name: &str| match values.get(name) {
            Some(number) => Ok(Named { keys: Vec::new(), numbers: vec![*number] }),
            None => Err(BadFigure(format!("there is neither a value nor an axis `{name}`"))),
        };
        text::filled(&replaced(&self.of.text, &first.keys), &lookup)
    }

    fn total(&self, total: &TotalOf, points: &Points) -> Result<String, BadFigure> {
        let of = total.of.clone().unwrap_or_else(|| self.numbers.of.clone());
        let numbers = Numbers { of, take: total.take, ..self.numbers.clone() };
        let each = self.estimates(&numbers, &selecting(&self.keys), points)?;
        Ok(printed(one(&numbers, &each), total.digits.unwrap_or(self.of.digits)))
    }
}

/// Numbers with a table's runs, if they name none, of a selection.
pub(super) fn within(table: &TableOf, own: &Numbers, selection: &Selection) -> Numbers {
    let runs = own.runs.clone().or(table.runs.clone());
    Numbers { runs, r#where: both(selection, &own.r#where), ..own.clone() }
}

/// One number of what is measured at several points.
fn one(numbers: &Numbers, each: &[(f64, Estimate)]) -> f64 {
    numbers.take.of(&each.iter().map(|(x, estimate)| (*x, estimate.mean())).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::points::tests::points;
    use super::{TableOf, filled};
    use crate::data::Figure;
    use crate::report::Table;
    use crate::workshop::{Scale, Workshop};
    use tidegate_cli::progress::Bar;

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
        figure.findings(&Workshop::new(Scale::Smallest, 1, Some(1), &Bar::new("paper"))).unwrap().tables
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
