//! [`Grid`]: what a figure's file says under `[runs.NAME]`, into points that are run.
//!
//! Fields are those of a file for `tidegate sim`, with their sections: `workload.bytes = 2044`. Beside them stand
//!
//! * lists: an axis of the sweep, named as its field; all combinations are run;
//! * `variants.AXIS`, a list of tables: an axis whose values are named (`name = "…"`) and change several fields each;
//!   other single values of a table (`processes = 1024`) are further names of that variant: each counts as an axis of
//!   its own;
//! * `reference`, a table of fields: the run that each point is compared with, which has these fields instead; a
//!   variant's own `reference` adds to them;
//! * `with`, the name of a table of `[common]`: the runs begin with all of it;
//! * `skip`, a list of selections: combinations that are left out;
//! * `too_long`, a list of selections: combinations that are left out and of which tables may say `not run`;
//! * `unfit = "leave"`: combinations with too little `[flow] memory` for their scheme are left out, and tables may say
//!   how much it needs; without it they are errors;
//! * `except`, a list of tables: combinations that are as `where` says have these fields instead;
//! * `computed`, a function of `special/`: nothing is run; each combination's fields are handed to it, and what it
//!   gives counts as further axes;
//! * `quick` and `smallest`, tables of all of that: what is different in the reduced forms. Lists are replaced as a
//!   whole; what changes of a variant alone stands under its name: `variants.benchmark.LU.workload.iterations = 25`.

use std::collections::BTreeMap;

use tidegate_sim::run_spec::ScenarioError;
use toml::{Table, Value};

use super::BadFigure;
use super::absent::Absent;
use super::definition::Selection;
use super::select::{Key, is_chosen};
use crate::run::case::Case;
use crate::workshop::Scale;

/// Fields by section and name, with their values.
type Fields = Vec<(String, String, String)>;

/// A value of an axis.
#[derive(Clone, Debug)]
struct Choice {
    key: Key,
    /// Its further names, each as if it were the value of an axis.
    labels: Vec<(String, Key)>,
    /// What it changes: fields by section and name.
    fields: Fields,
    /// What it changes of the run that the point is compared with.
    reference: Fields,
}

/// An axis of the sweep.
#[derive(Clone, Debug)]
struct Axis {
    name: String,
    choices: Vec<Choice>,
}

/// A point: its place on each axis, what is run there, and beside what.
#[derive(Clone, Debug)]
pub struct Place {
    /// By axis.
    pub keys: BTreeMap<String, Key>,
    /// None where it is computed, or left out.
    pub case: Option<Case>,
    pub reference: Option<Case>,
    /// Why it is left out, if it is and tables may say so.
    pub absent: Option<Absent>,
}

/// All points of one kind of runs, in the order of the axes, the last of which changes fastest.
#[derive(Clone, Debug)]
pub struct Grid {
    pub places: Vec<Place>,
}

/// Names in `[runs.NAME]` that are no section.
const OTHERS: [&str; 7] = ["variants", "reference", "skip", "except", "where", "quick", "smallest"];

impl Grid {
    /// The points of a form.
    ///
    /// # Errors
    /// If the file names what does not exist, or describes something impossible.
    pub fn read(name: &str, table: &Table, scale: Scale) -> Result<Self, BadFigure> {
        let bad = |what: String| BadFigure(format!("[runs.{name}]: {what}"));
        let mut merged = table.clone();
        for form in scale.changes() {
            if let Some(Value::Table(changes)) = table.get(*form) {
                merge(&mut merged, changes);
            }
        }
        let axes = axes(&merged).map_err(bad)?;
        let reference = fields_of(merged.get("reference")).map_err(bad)?;
        let skipped = selections(merged.get("skip")).map_err(bad)?;
        let too_long = selections(merged.get("too_long")).map_err(bad)?;
        let leaves_unfit = merged.get("unfit").and_then(Value::as_str) == Some("leave");
        let exceptions = exceptions(&merged).map_err(bad)?;
        let computed = merged.get("computed").and_then(Value::as_str);
        let fixed = fixed(&merged);
        let mut places = Vec::new();
        let count = axes.iter().map(|axis| axis.choices.len()).product();
        for number in 0..count {
            let chosen = combination(&axes, number);
            let named = axes.iter().zip(&chosen).map(|(axis, choice)| (axis.name.clone(), choice.key.clone()));
            let labels = chosen.iter().flat_map(|choice| choice.labels.iter().cloned());
            let keys: BTreeMap<String, Key> = named.chain(labels).collect();
            if is_any(&keys, &skipped).map_err(bad)? {
                continue;
            }
            let mut fields = fixed.clone();
            chosen.iter().for_each(|choice| set(&mut fields, &choice.fields));
            for (selection, changes) in &exceptions {
                if is_chosen(&keys, selection).map_err(|error| bad(error.0))? {
                    set(&mut fields, changes);
                }
            }
            if let Some(function) = computed {
                let keys = computed_keys(function, &fields, keys).map_err(bad)?;
                places.push(Place { keys, case: None, reference: None, absent: None });
                continue;
            }
            let found = Case::of_fields(&fields);
            let absent = match &found {
                Err(error) => error.needs_bytes.filter(|_| leaves_unfit).map(Absent::Needs),
                Ok(_) => is_any(&keys, &too_long).map_err(bad)?.then_some(Absent::NotRun),
            };
            if absent.is_some() {
                places.push(Place { keys, case: None, reference: None, absent });
                continue;
            }
            let refused = |error: ScenarioError, fields: &Fields| bad(format!("{}: {fields:?}", error.what));
            let case = found.map_err(|error| refused(error, &fields))?;
            let compared = if reference.is_empty() {
                None
            } else {
                set(&mut fields, &reference);
                chosen.iter().for_each(|choice| set(&mut fields, &choice.reference));
                Some(Case::of_fields(&fields).map_err(|error| refused(error, &fields))?)
            };
            places.push(Place { keys, case: Some(case), reference: compared, absent: None });
        }
        Ok(Grid { places })
    }
}

/// A list of selections.
fn selections(value: Option<&Value>) -> Result<Vec<Selection>, String> {
    let list = |value: &Value| value.clone().try_into().map_err(|error: toml::de::Error| error.message().to_owned());
    value.map_or(Ok(Vec::new()), list)
}

/// Whether a combination is one of any of these selections.
fn is_any(keys: &BTreeMap<String, Key>, selections: &[Selection]) -> Result<bool, String> {
    for selection in selections {
        if is_chosen(keys, selection).map_err(|error| error.0)? {
            return Ok(true);
        }
    }
    Ok(false)
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

/// Changes fields, or adds them to their sections.
fn set(fields: &mut Fields, changes: &[(String, String, String)]) {
    for change in changes {
        match fields.iter_mut().find(|field| (&field.0, &field.1) == (&change.0, &change.1)) {
            Some(field) => field.2.clone_from(&change.2),
            None => fields.push(change.clone()),
        }
    }
    // Sections in one piece each, in the order in which they came first.
    let order: Vec<String> = fields.iter().map(|field| field.0.clone()).collect();
    fields.sort_by_key(|field| order.iter().position(|section| *section == field.0));
}

/// The text of a single value.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(truth) => Some(truth.to_string()),
        _ => None,
    }
}

/// Sections of a table of runs.
fn sections(table: &Table) -> impl Iterator<Item = (&String, &Table)> {
    let sections = table.iter().filter(|(name, _)| !OTHERS.contains(&name.as_str()));
    sections.filter_map(|(name, value)| value.as_table().map(|fields| (name, fields)))
}

/// The fields that have one value.
fn fixed(table: &Table) -> Fields {
    let of = |(section, fields): (&String, &Table)| {
        let single = fields.iter().filter_map(|(name, value)| Some((section.clone(), name.clone(), scalar(value)?)));
        single.collect::<Vec<_>>()
    };
    sections(table).flat_map(of).collect()
}

/// The fields of a table of sections, which have one value each.
fn fields_of(table: Option<&Value>) -> Result<Fields, String> {
    match table {
        None => Ok(Vec::new()),
        Some(Value::Table(table)) => Ok(fixed(table)),
        Some(_) => Err("`reference` is a table of fields, such as { flow.scheme = \"unlimited\" }".to_owned()),
    }
}

/// Which combinations have other fields, and which.
fn exceptions(table: &Table) -> Result<Vec<(Selection, Fields)>, String> {
    let Some(list) = table.get("except") else { return Ok(Vec::new()) };
    let wanted = || "`except` is a list of tables, each with `where` and fields".to_owned();
    let each = list.as_array().ok_or_else(wanted)?.iter().map(|one| {
        let table = one.as_table().ok_or_else(wanted)?;
        let selection = table.get("where").ok_or_else(wanted)?.clone().try_into();
        Ok((selection.map_err(|error: toml::de::Error| error.message().to_owned())?, fixed(table)))
    });
    each.collect()
}

/// The keys of a combination, its single fields, and what a function of `special/` makes of them.
fn computed_keys(
    function: &str,
    fields: &[(String, String, String)],
    mut keys: BTreeMap<String, Key>,
) -> Result<BTreeMap<String, Key>, String> {
    for (_, name, value) in fields {
        keys.entry(name.clone()).or_insert_with(|| Key::new(value));
    }
    let found = crate::special::point(function, &keys)?;
    keys.extend(found.into_iter().map(|(name, text)| (name.to_owned(), Key::new(text))));
    Ok(keys)
}

/// The axes: named variants first, in the order of the file, then lists.
fn axes(table: &Table) -> Result<Vec<Axis>, String> {
    let mut axes = Vec::new();
    if let Some(Value::Table(variants)) = table.get("variants") {
        for (name, list) in variants {
            let list = list.as_array().ok_or_else(|| format!("variants.{name} is a list of tables"))?;
            let choices: Result<Vec<Choice>, String> = list.iter().map(|variant| choice(name, variant)).collect();
            axes.push(Axis { name: name.clone(), choices: choices? });
        }
    }
    for (section, fields) in sections(table) {
        for (name, value) in fields {
            let Value::Array(values) = value else { continue };
            let choice = |value: &Value| {
                let text =
                    scalar(value).ok_or_else(|| format!("{section}.{name}: a list of single values is needed"))?;
                let fields = vec![(section.clone(), name.clone(), text.clone())];
                Ok(Choice { key: Key::new(text), labels: Vec::new(), fields, reference: Vec::new() })
            };
            let choices: Result<Vec<Choice>, String> = values.iter().map(choice).collect();
            axes.push(Axis { name: name.clone(), choices: choices? });
        }
    }
    Ok(axes)
}

/// A named variant.
fn choice(axis: &str, variant: &Value) -> Result<Choice, String> {
    let table = variant.as_table().ok_or_else(|| format!("variants.{axis} is a list of tables"))?;
    let name = table.get("name").and_then(scalar).ok_or_else(|| format!("each of variants.{axis} has a `name`"))?;
    let others = table.iter().filter(|(label, _)| *label != "name");
    let labels = others.filter_map(|(label, value)| {
        let key = Key { of: Some(axis.to_owned()), ..Key::new(scalar(value)?) };
        Some((label.clone(), key))
    });
    let reference = fields_of(table.get("reference"))?;
    Ok(Choice { key: Key::new(name), labels: labels.collect(), fields: fixed(table), reference })
}

/// The choices of one combination; the last axis changes fastest.
fn combination(axes: &[Axis], mut number: usize) -> Vec<&Choice> {
    let mut chosen: Vec<&Choice> = Vec::new();
    for axis in axes.iter().rev() {
        chosen.push(&axis.choices[number % axis.choices.len()]);
        number /= axis.choices.len();
    }
    chosen.reverse();
    chosen
}

#[cfg(test)]
mod tests {
    use tidegate_sim::FlowChoice;

    use super::*;

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
            let grid = Grid::read("alltoall", &table, scale).unwrap();
            let of = |place: &Place| ["job", "processes", "slots_per_peer"].map(|axis| place.keys[axis].text.clone());
            grid.places.iter().map(|place| of(place).join(" ")).collect::<Vec<_>>()
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
            let grid = Grid::read("alltoall", &table, scale).unwrap();
            let texts = grid.places.iter().map(|place| place.case.as_ref().unwrap().to_string());
            texts.map(|text| text.contains("workload.repetitions = 2")).collect::<Vec<_>>()
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
            let grid = Grid::read("one", &table, scale).unwrap();
            let most = |case: &Option<Case>| match case.as_ref().and_then(Case::flow) {
                Some(FlowChoice::Posted { buffers, .. }) => buffers.per_connection_most,
                _ => 0,
            };
            grid.places.iter().map(|place| [most(&place.case), most(&place.reference)]).collect::<Vec<_>>()
        };
        assert_eq!(most(Scale::Full), [[1, 100], [200, 1000]]);
        assert_eq!(most(Scale::Smallest), [[1, 100], [20, 1000]]);
        let unknown = toml::from_str(&text.replace("scheme.growing", "scheme.grown")).unwrap();
        assert!(Grid::read("one", &unknown, Scale::Smallest).unwrap_err().0.contains("has a `name`"));
    }

    #[test]
    fn points_that_are_computed_run_nothing_and_know_more() {
        let text = r#"
            computed = "slots_without_stall"
            variants.row = [{ name = "first", credit_slots = 2 }, { name = "second", credit_slots = 5 }]
        "#;
        let grid = Grid::read("pairs", &toml::from_str(text).unwrap(), Scale::Full).unwrap();
        assert!(grid.places.iter().all(|place| place.case.is_none()));
        let found: Vec<&str> = grid.places.iter().map(|place| place.keys["by_equation"].text.as_str()).collect();
        assert_eq!(found, ["57", "49"]);
        let unknown = toml::from_str("computed = \"slots\"").unwrap();
        assert!(Grid::read("pairs", &unknown, Scale::Full).unwrap_err().0.contains("special/ has no slots"));
    }
}
