//! A figure's tables.

use std::collections::BTreeMap;

use tidegate_sim::Estimate;
use toml::Value;

use super::BadFigure;
use super::definition::{ColumnOf, Selection, TableOf};
use super::points::{Points, Slice, key, named};
use super::select::{Key, Take};
use super::text::printed;
use crate::report::Table;

/// The table with its cells.
pub fn filled(of: &TableOf, points: &Points) -> Result<Table, BadFigure> {
    let bad = |error: BadFigure| BadFigure(format!("table {}: {error}", of.name));
    let rows = values_of(of, points, &of.rows, &of.r#where).map_err(bad)?;
    let mut heads: Vec<String> = if of.heads.is_empty() { of.rows.clone() } else { of.heads.clone() };
    // A column, and the values of the axes that it is for.
    let mut columns: Vec<(&ColumnOf, BTreeMap<String, Key>)> = Vec::new();
    for column in &of.columns {
        for keys in values_of(of, points, &column.by, &joined(&of.r#where, &column.value.r#where)).map_err(bad)? {
            heads.push(named(&column.head, &keys));
            columns.push((column, keys));
        }
    }
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = Table::new(&of.name, &of.title, &heads);
    for row in rows {
        let mut cells: Vec<String> = of.rows.iter().map(|axis| row[axis].text.clone()).collect();
        for (column, keys) in &columns {
            let of_place = row.iter().chain(keys).map(|(axis, key)| (axis.clone(), Value::String(key.text.clone())));
            let selection = joined(&joined(&of.r#where, &column.value.r#where), &of_place.collect());
            cells.push(cell(of, column, &selection, points).map_err(bad)?);
        }
        table.row(cells);
    }
    Ok(table)
}

/// All combinations of the values of some axes, in the order in which points have them; one without any for no axes.
fn values_of(
    of: &TableOf,
    points: &Points,
    axes: &[String],
    selection: &Selection,
) -> Result<Vec<BTreeMap<String, Key>>, BadFigure> {
    let slice = Slice { runs: of.runs.as_deref(), selection, beside: &Selection::new() };
    let mut all: Vec<BTreeMap<String, Key>> = Vec::new();
    for point in points.chosen(slice)? {
        let mut keys = BTreeMap::new();
        for axis in axes {
            keys.insert(axis.clone(), key(&point.keys, axis)?.clone());
        }
        if !all.contains(&keys) {
            all.push(keys);
        }
    }
    Ok(all)
}

/// Two selections, of which the second decides where both name an axis.
fn joined(one: &Selection, other: &Selection) -> Selection {
    one.iter().chain(other).map(|(axis, value)| (axis.clone(), value.clone())).collect()
}

/// A cell; empty where no point is.
fn cell(of: &TableOf, column: &ColumnOf, selection: &Selection, points: &Points) -> Result<String, BadFigure> {
    let slice = Slice { runs: of.runs.as_deref(), selection, beside: &column.value.beside };
    let chosen = points.chosen(slice)?;
    if chosen.is_empty() {
        return Ok(String::new());
    }
    let mut each = Vec::new();
    for point in &chosen {
        let x = column
            .value
            .along
            .as_ref()
            .map_or(Ok(0.0), |axis| key(&point.keys, axis).map(|key| key.number.unwrap_or(0.0)))?;
        each.push((x, points.estimate(slice, point, &column.value.of)?));
    }
    let number = match &column.value.take {
        Some(take) => {
            Take::parse(take)?.of(&each.iter().map(|(x, estimate)| (*x, estimate.mean())).collect::<Vec<_>>())
        }
        None => each.iter().map(|(_, estimate)| estimate.mean()).sum::<f64>() / each.len() as f64,
    };
    let mut text = printed(number, column.digits);
    if column.plus_minus {
        let estimates: Vec<Estimate> = each.into_iter().map(|(_, estimate)| estimate).collect();
        if let Some((least, most)) = Estimate::mean_of(&estimates).interval() {
            text.push_str(&format!(" ± {}", printed((most - least) / 2.0, column.digits)));
        }
    }
    Ok(text)
}
