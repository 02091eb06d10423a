//! `tidegate diff`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::report::{all_else, compared_text, names, render};
use crate::arguments::DiffArguments;
use crate::diff::{Comparison, Side, compare, side_names, typical};
use crate::failure::Failure;
use crate::html::Shown;
use crate::recording::view::{Recording, View};

/// Name and version of the schema of `tidegate diff --json`.
pub const DIFF_SCHEMA: &str = "tidegate-diff/1";

/// Reads the recordings of both sides, says whether they differ, and writes the file, with pictures of one run of each.
pub fn diff(arguments: &DiffArguments) -> Result<u8, Failure> {
    arguments.page.check()?;
    let folders = arguments.sides()?;
    let named = names(&folders.concat());
    let names = side_names([&named[..folders[0].len()], &named[folders[0].len()..]]);
    let mut views: [Vec<View>; 2] = [Vec::new(), Vec::new()];
    for (side, folders) in views.iter_mut().zip(&folders) {
        for folder in folders {
            side.push(Recording::open(folder)?.view);
        }
    }
    let [first, second] = names;
    let sides = [side(first, &views[0]), side(second, &views[1])];
    let compared = compare(&sides);
    // Time lines are read again: those of all runs together would need much memory.
    let mut shown = Vec::new();
    for (side, folders) in sides.iter().zip(&folders) {
        let folder = &folders[typical(&side.runs)];
        shown.push(Shown::new(side.name.clone(), Recording::open(folder)?, sides.len()));
    }
    let file = folders[0][0].join("comparison.html");
    arguments.page.write(&file, &render(&shown, Some(&compared)), |file| match arguments.page.json {
        true => format!("{:#}\n", as_json(&folders, &compared, file)),
        false => compared_text(&compared) + &compared.table_text() + "\n" + &all_else(file),
    })
}

fn side(name: String, views: &[View]) -> Side<'_> {
    Side { name, runs: views.iter().collect() }
}

fn as_json(folders: &[Vec<PathBuf>; 2], compared: &Comparison, file: Option<&Path>) -> Value {
    let mut value = json!({
        "schema": DIFF_SCHEMA,
        "html": file.map(|file| file.to_string_lossy()),
        "recordings": folders.iter().map(|side| side.iter().map(|folder| folder.to_string_lossy()).collect::<Vec<_>>()).collect::<Vec<_>>(),
    });
    let more = compared.json();
    if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
        value.extend(more);
    }
    value
}
