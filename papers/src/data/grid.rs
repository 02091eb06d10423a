//! [`Grid`]: what a figure's file says under `[runs.NAME]`, into points that are run.
//!
//! Fields are those of a file for `tidegate sim`, with their sections: `workload.bytes = 2044`. Beside them stand
//!
//! * lists: an axis of the sweep, named as its field; all combinations are run;
//! * `variants.AXIS`, a list of tables: an axis whose values are named (`name = "…"`) and change several fields each;
//! * `reference`, a table of fields: the run that each point is compared with, which has these fields instead;
//! * `skip`, a list of selections: combinations that are left out;
//! * `quick` and `smallest`, tables of all of that: what is different in the reduced forms.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::BadFigure;
use super::definition::Selection;
use super::select::{Key, is_chosen};
use crate::run::case::Case;
use crate::run::spec_run::SpecRun;
use crate::workshop::Scale;

/// A value of an axis.
#[derive(Clone, Debug)]
struct Choice {
    key: Key,
    /// What it changes: fields by section and name.
    fields: Vec<(String, String, String)>,
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
    pub case: Case,
    pub reference: Option<Case>,
}

/// All points of one kind of runs, in the order of the axes, the last of which changes fastest.
#[derive(Clone, Debug)]
pub struct Grid {
    pub places: Vec<Place>,
}

/// Names in `[runs.NAME]` that are no section.
const OTHERS: [&str; 5] = ["variants", "reference", "skip", "quick", "smallest"];

impl Grid {
    /// The points of a form.
    ///
    /// # Errors
    /// If the file names what does not exist, or describes something impossible.
    pub fn read(name: &str, table: &Table, scale: Scale) -> Result<Self, BadFigure> {
        let bad = |what: String| BadFigure(format!("[runs.{name}]: {what}"));
        let mut merged = table.clone();
        let forms: &[&str] = match scale {
            Scale::Full => &[],
            Scale::Quick => &["quick"],
            Scale::Smallest => &["quick", "smallest"],
        };
        for form in forms {
            if let Some(Value::Table(changes)) = table.get(*form) {
                merge(&mut merged, changes);
            }
        }
        let axes = axes(&merged).map_err(bad)?;
        let reference = fields_of(merged.get("reference")).map_err(bad)?;
        let skipped: Vec<Selection> = match merged.get("skip") {
            Some(skip) => skip.clone().try_into().map_err(|error: toml::de::Error| bad(error.message().to_owned()))?,
            None => Vec::new(),
        };
        let fixed = fixed(&merged);
        let mut places = Vec::new();
        let count = axes.iter().map(|axis| axis.choices.len()).product();
        for number in 0..count {
            let chosen = combination(&axes, number);
            let keys: BTreeMap<String, Key> =
                axes.iter().zip(&chosen).map(|(axis, choice)| (axis.name.clone(), choice.key.clone())).collect();
            let mut is_skipped = false;
            for selection in &skipped {
                is_skipped |= is_chosen(&keys, selection).map_err(|error| bad(error.0))?;
            }
            if is_skipped {
                continue;
            }
            let mut fields = fixed.clone();
            chosen.iter().for_each(|choice| set(&mut fields, &choice.fields));
            let spec = |fields: &[(String, String, String)]| {
                SpecRun::of_fields(fields)
                    .map(Case::of_spec)
                    .map_err(|error| bad(format!("{}: {fields:?}", error.what)))
            };
            let case = spec(&fields)?;
            let compared = if reference.is_empty() {
                None
            } else {
                set(&mut fields, &reference);
                Some(spec(&fields)?)
            };
            places.push(Place { keys, case, reference: compared });
        }
        Ok(Grid { places })
    }
}

/// Tables are merged; everything else is replaced.
fn merge(into: &mut Table, changes: &Table) {
    for (name, change) in changes {
        match (into.get_mut(name), change) {
            (Some(Value::Table(old)), Value::Table(change)) => merge(old, change),
            _ => drop(into.insert(name.clone(), change.clone())),
        }
    }
}

/// Changes fields, or adds them to their sections.
fn set(fields: &mut Vec<(String, String, String)>, changes: &[(String, String, String)]) {
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
fn fixed(table: &Table) -> Vec<(String, String, String)> {
    let of = |(section, fields): (&String, &Table)| {
        let single = fields.iter().filter_map(|(name, value)| Some((section.clone(), name.clone(), scalar(value)?)));
        single.collect::<Vec<_>>()
    };
    sections(table).flat_map(of).collect()
}

/// The fields of a table of sections, which have one value each.
fn fields_of(table: Option<&Value>) -> Result<Vec<(String, String, String)>, String> {
    match table {
        None => Ok(Vec::new()),
        Some(Value::Table(table)) => Ok(fixed(table)),
        Some(_) => Err("`reference` is a table of fields, such as { flow.scheme = \"unlimited\" }".to_owned()),
    }
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
                Ok(Choice { key: Key::new(text), fields })
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
    Ok(Choice { key: Key::new(name), fields: fixed(table) })
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
