//! What a figure's file says under `[runs.NAME]`, into points that are run.
//!
//! Fields are those of a file for `tidegate sim`, with their sections; `docs/add-a-figure.md` says what stands beside
//! them. A single value of a variant (`processes = 1024`) is a further name of it, and counts as an axis of its own.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use tidegate_sim::run_spec::{ScenarioError, did_you_mean};
use toml::{Table, Value};

use super::BadFigure;
use super::definition::Selection;
use super::select::{Key, Keys, is_chosen};
use crate::run::Case;
use crate::workshop::Scale;

#[derive(Clone)]
struct Choice {
    key: Key,
    /// Its further names, each as if it were the value of an axis.
    labels: Vec<(String, Key)>,
    fields: Table,
    /// What it changes of the run that the point is compared with.
    reference: Table,
}

/// A point: its place on each axis, what is run there, and beside what.
pub struct Place {
    pub keys: Keys,
    /// None where it is computed, or left out.
    pub case: Option<Case>,
    pub reference: Option<Case>,
    /// Why it is left out, if it is and tables may say so.
    pub absent: Option<Absent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Absent {
    /// Its scheme needs so many bytes of `[flow] memory` at least.
    Needs(u64),
    NotRun,
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absent::Needs(bytes @ 0..0x10_0000) => write!(f, "needs {} KiB", bytes.div_ceil(1024)),
            Absent::Needs(bytes) => {
                let mebibytes = format!("{:.1}", *bytes as f64 / 1_048_576.0);
                write!(f, "needs {} MiB", mebibytes.trim_end_matches(".0"))
            }
            Absent::NotRun => f.write_str("not run"),
        }
    }
}

/// The points of each kind of runs, by its name.
pub type Grids = BTreeMap<String, Vec<Place>>;

/// All cases of some grids: of each point its own, and the one that it is compared with.
pub fn cases(grids: &Grids) -> Vec<Case> {
    grids.values().flatten().flat_map(|place| [&place.case, &place.reference]).flatten().cloned().collect()
}

/// Tables that are no sections of a run; and fields that are no tables.
const OTHERS: [&str; 7] = ["variants", "reference", "skip", "except", "where", "quick", "smallest"];
const FIELDS: [&str; 6] = ["with", "skip", "too_long", "except", "unfit", "computed"];

/// All points of one kind of runs in a form, in the order of the axes, the last of which changes fastest.
pub fn read(name: &str, table: &Table, scale: Scale) -> Result<Vec<Place>, BadFigure> {
    let mut merged = table.clone();
    for form in scale.changes() {
        if let Some(Value::Table(changes)) = table.get(*form) {
            merge(&mut merged, changes);
        }
    }
    places(&merged).map_err(|error| BadFigure(format!("`[runs.{name}]`: {error}")))
}

fn places(runs: &Table) -> Result<Vec<Place>, BadFigure> {
    let mut fields = runs.iter().filter(|(_, value)| !value.is_table()).map(|(name, _)| name.as_str());
    if let Some(name) = fields.find(|name| !FIELDS.contains(name)) {
        let near = did_you_mean(name, FIELDS.into_iter());
        return Err(format!("there is no field `{name}` outside of sections{near}").into());
    }
    let axes = axes(runs)?;
    let reference = fixed(&parsed(runs, "reference")?);
    let (skipped, too_long): (Vec<Selection>, Vec<Selection>) = (parsed(runs, "skip")?, parsed(runs, "too_long")?);
    let exceptions: Vec<Table> = parsed(runs, "except")?;
    let (unfit, computed): (String, String) = (parsed(runs, "unfit")?, parsed(runs, "computed")?);
    let mut places = Vec::new();
    // All combinations of the axes' choices; the last axis changes fastest.
    let mut all: Vec<Vec<&Choice>> = vec![Vec::new()];
    for (_, choices) in &axes {
        let longer = |chosen: Vec<_>| choices.iter().map(move |choice| [chosen.clone(), vec![choice]].concat());
        all = all.into_iter().flat_map(longer).collect();
    }
    for chosen in all {
        let named = axes.iter().zip(&chosen).map(|((axis, _), choice)| (axis.clone(), choice.key.clone()));
        let keys: Keys = named.chain(chosen.iter().flat_map(|choice| choice.labels.iter().cloned())).collect();
        let is_any = |selections: &[Selection]| -> Result<bool, BadFigure> {
            selections.iter().try_fold(false, |is_any, selection| Ok(is_any || is_chosen(&keys, selection)?))
        };
        if is_any(&skipped)? {
            continue;
        }
        let mut fields = fixed(runs);
        chosen.iter().for_each(|choice| merge(&mut fields, &choice.fields));
        for exception in &exceptions {
            if is_any(&[parsed(exception, "where")?])? {
                merge(&mut fields, &fixed(exception));
            }
        }
        let mut place = Place { keys: keys.clone(), case: None, reference: None, absent: None };
        if !computed.is_empty() {
            // Its single fields are keys, too, and all that a function of `special/` makes of these.
            for (name, value) in sections(&fields).flat_map(|(_, fields)| fields) {
                place.keys.entry(name.clone()).or_insert_with(|| Key::new(scalar(value).unwrap_or_default()));
            }
            let found = crate::special::point(&computed, &place.keys)?;
            place.keys.extend(found.into_iter().map(|(name, text)| (name.to_owned(), Key::new(text))));
            places.push(place);
            continue;
        }
        let found = Case::of_fields(&fields);
        place.absent = match &found {
            Err(error) => error.needs_bytes.filter(|_| unfit == "leave").map(Absent::Needs),
            Ok(_) => is_any(&too_long)?.then_some(Absent::NotRun),
        };
        if place.absent.is_none() {
            let refused = |error: ScenarioError, fields: &Table| {
                let line = error.line.and_then(|line| fields.to_string().lines().nth(line - 1).map(str::to_owned));
                error.what + &line.map_or(String::new(), |line| format!(" (`{line}`)"))
            };
            place.case = Some(found.map_err(|error| refused(error, &fields))?);
            if !reference.is_empty() {
                merge(&mut fields, &reference);
                chosen.iter().for_each(|choice| merge(&mut fields, &choice.reference));
                place.reference = Some(Case::of_fields(&fields).map_err(|error| refused(error, &fields))?);
            }
        }
        places.push(place);
    }
    Ok(places)
}

/// A value of some type; the default where there is none.
fn parsed<T: DeserializeOwned + Default>(table: &Table, name: &str) -> Result<T, BadFigure> {
    let Some(value) = table.get(name) else { return Ok(T::default()) };
    value.clone().try_into().map_err(|error: toml::de::Error| BadFigure(format!("`{name}`: {}", error.message())))
}

/// Tables are merged, with variants by their names too; everything else is replaced.
pub fn merge(into: &mut Table, changes: &Table) {
    for (name, change) in changes {
        match (into.get_mut(name), change) {
            (Some(Value::Table(old)), Value::Table(change)) => merge(old, change),
            (Some(Value::Array(old)), Value::Table(change)) => {
                for (name, change) in change {
                    let is_it = |variant: &&mut Value| variant.get("name").and_then(scalar).as_ref() == Some(name);
                    match (old.iter_mut().find(is_it), change) {
                        (Some(Value::Table(old)), Value::Table(change)) => merge(old, change),
                        // Nothing has that name: what has none is refused.
                        _ => old.push(change.clone()),
                    }
                }
            }
            _ => drop(into.insert(name.clone(), change.clone())),
        }
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Table(_) => None,
        value => Some(value.to_string()),
    }
}

fn sections(table: &Table) -> impl Iterator<Item = (&String, &Table)> {
    let sections = table.iter().filter(|(name, _)| !OTHERS.contains(&name.as_str()));
    sections.filter_map(|(name, value)| value.as_table().map(|fields| (name, fields)))
}

/// The sections with the fields that have one value.
fn fixed(table: &Table) -> Table {
    let single = |fields: &Table| fields.clone().into_iter().filter(|(_, value)| scalar(value).is_some()).collect();
    sections(table).map(|(section, fields)| (section.clone(), Value::Table(single(fields)))).collect()
}

/// The axes by name: named variants first, in the order of the file, then lists.
fn axes(table: &Table) -> Result<Vec<(String, Vec<Choice>)>, BadFigure> {
    let mut axes = Vec::new();
    let variants: Table = parsed(table, "variants")?;
    for name in variants.keys() {
        let list: Vec<Table> = parsed(&variants, name)?;
        let choices: Result<Vec<Choice>, BadFigure> = list.iter().map(|variant| choice(name, variant)).collect();
        axes.push((name.clone(), choices?));
    }
    for (section, fields) in sections(table) {
        for (name, value) in fields {
            let Value::Array(values) = value else { continue };
            let choice = |value: &Value| {
                let missing = || format!("{section}.`{name}`: a list of single values is needed");
                let key = Key::new(scalar(value).ok_or_else(missing)?);
                let field = Table::from_iter([(name.clone(), value.clone())]);
                let fields = Table::from_iter([(section.clone(), Value::Table(field))]);
                Ok(Choice { key, labels: Vec::new(), fields, reference: Table::new() })
            };
            axes.push((name.clone(), values.iter().map(choice).collect::<Result<Vec<Choice>, BadFigure>>()?));
        }
    }
    Ok(axes)
}

fn choice(axis: &str, table: &Table) -> Result<Choice, BadFigure> {
    let name =
        table.get("name").and_then(scalar).ok_or_else(|| format!("each of variants.`{axis}` has a field name"))?;
    let others = table.iter().filter(|(label, _)| *label != "name");
    let labels = others.filter_map(|(label, value)| {
        let key = Key { of: Some(axis.to_owned()), ..Key::new(scalar(value)?) };
        Some((label.clone(), key))
    });
    let (fields, reference) = (fixed(table), fixed(&parsed(table, "reference")?));
    Ok(Choice { key: Key::new(name), labels: labels.collect(), fields, reference })
}

#[cfg(test)]
mod tests {
    use tidegate_sim::FlowChoice;

    use super::*;

    #[test]
    fn what_is_needed_is_said_in_large_units() {
        let said = |bytes| Absent::Needs(bytes).to_string();
        assert_eq!([6216, 130_536].map(said), ["needs 7 KiB", "needs 128 KiB"]);
        assert_eq!([2_119_656, 1_600_000].map(said), ["needs 2 MiB", "needs 1.5 MiB"]);
    }

    #[test]
    fn further_names_of_a_variant_are_its_own_in_each_form() {
        let text = r#"
            [variants]
            job = [
                { name = "smaller", processes = 64, network.sizes = "2x2" },
                { name = "larger", processes = 128, network.sizes = "2x2x2" },
            ]
            [flow]
            slots_per_peer = [16, 64]
            [smallest.variants]
            job = [{ name = "smaller", processes = 32, network.sizes = "2" }]
        "#;
        let table: Table = toml::from_str(text).unwrap();
        let names = |scale| {
            let grid = read("alltoall", &table, scale).unwrap();
            let of = |place: &Place| ["job", "processes", "slots_per_peer"].map(|axis| place.keys[axis].text.clone());
            grid.iter().map(|place| of(place).join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(names(Scale::Full), ["smaller 64 16", "smaller 64 64", "larger 128 16", "larger 128 64"]);
        assert_eq!(names(Scale::Smallest), ["smaller 32 16", "smaller 32 64"]);
    }

    #[test]
    fn exceptions_change_only_what_they_name_and_lists_of_them_are_replaced_in_reduced_forms() {
        let text = r#"
            except = [{ where = { bytes = 64 }, workload.repetitions = 9 }]
            [workload]
            bytes = [8, 64]
            repetitions = 2
            [quick]
            except = [{ where = { bytes = "< 64" }, workload.repetitions = 5 }]
        "#;
        let table: Table = toml::from_str(text).unwrap();
        let repetitions = |scale| {
            let grid = read("alltoall", &table, scale).unwrap();
            let texts = grid.iter().map(|place| place.case.as_ref().unwrap().text.clone());
            texts.map(|text| text.contains("repetitions = 2")).collect::<Vec<_>>()
        };
        assert_eq!(repetitions(Scale::Full), [true, false]);
        assert_eq!(repetitions(Scale::Quick), [false, true]);
    }

    #[test]
    fn a_variant_has_a_reference_of_its_own_and_is_changed_by_its_name_in_a_reduced_form() {
        let text = r#"
            flow.buffers = 1
            reference.flow = { buffers = 100, buffers_most = 100 }
            variants.scheme = [
                { name = "rnr", flow = { scheme = "rnr", buffers_most = 1 } },
                { name = "growing", flow = { scheme = "growing", buffers_most = 200 }, reference.flow.buffers_most = 1000 },
            ]
            smallest.variants.scheme.growing.flow.buffers_most = 20
        "#;
        let table: Table = toml::from_str(text).unwrap();
        let most = |scale| {
            let grid = read("one", &table, scale).unwrap();
            let most = |case: &Option<Case>| match case.as_ref().and_then(Case::flow) {
                Some(FlowChoice::Posted { buffers, .. }) => buffers.per_connection_most,
                _ => 0,
            };
            grid.iter().map(|place| [most(&place.case), most(&place.reference)]).collect::<Vec<_>>()
        };
        assert_eq!(most(Scale::Full), [[1, 100], [200, 1000]]);
        assert_eq!(most(Scale::Smallest), [[1, 100], [20, 1000]]);
        let unknown = toml::from_str(&text.replace("scheme.growing", "scheme.grown")).unwrap();
        assert!(read("one", &unknown, Scale::Smallest).err().unwrap().0.contains("has a field name"));
    }

    #[test]
    fn points_that_are_computed_run_nothing_and_know_more() {
        let text = r#"
            computed = "slots_without_stall"
            variants.row = [{ name = "first", credit_slots = 2 }, { name = "second", credit_slots = 5 }]
        "#;
        let grid = read("pairs", &toml::from_str(text).unwrap(), Scale::Full).unwrap();
        assert!(grid.iter().all(|place| place.case.is_none()));
        let found: Vec<&str> = grid.iter().map(|place| place.keys["by_equation"].text.as_str()).collect();
        assert_eq!(found, ["57", "49"]);
        let unknown = toml::from_str("computed = \"slots\"").unwrap();
        assert!(read("pairs", &unknown, Scale::Full).err().unwrap().0.contains("special/ has no function `slots`"));
    }
}
