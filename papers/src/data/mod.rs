//! Figures that are files: a TOML file says what is run, what is drawn and what the paper claims, a Markdown file
//! beside it explains what differs. No code knows a figure; what cannot be said in a file is in `special/`, registered
//! by name.
//!
//! * `definition.rs`: the file as it is written; `grid.rs`: what it runs, `absent.rs`: and what not; `folder.rs`: where
//!   files are;
//! * `measures.rs`, `expression.rs`, `select.rs`: numbers taken from runs;
//! * `judge.rs`, `claims.rs`: claims; `pictures.rs`, `tables.rs`, `text.rs`: what is shown.

mod absent;
mod claims;
mod definition;
pub(crate) mod expression;
mod folder;
mod grid;
mod judge;
mod measures;
mod pictures;
mod points;
mod select;
mod tables;
mod text;

use std::collections::BTreeMap;
use std::fmt;

use tidegate_sim::SimulationError;
use tidegate_sim::run_spec::did_you_mean;

pub(crate) use definition::ValueOf;
pub(crate) use folder::Figures;
pub(crate) use points::{Point, Points, joined};
pub(crate) use select::{Key, is_chosen};
pub(crate) use text::Named;

use crate::report::Findings;
use crate::special;
use crate::workshop::{Scale, Workshop};
use definition::{Definition, PictureOf, TableOf};
use expression::BadExpression;
use grid::Grid;

/// What is wrong with a figure's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFigure(pub String);

impl fmt::Display for BadFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<BadExpression> for BadFigure {
    fn from(error: BadExpression) -> Self {
        BadFigure(error.0)
    }
}

/// A figure: its file, and the sections of its explanations.
#[derive(Debug)]
pub struct Figure {
    /// Its file.
    pub file: String,
    definition: Definition,
    /// By heading, each in one line.
    sections: BTreeMap<String, String>,
}

impl Figure {
    /// Reads a figure from the texts of its two files.
    ///
    /// # Errors
    /// If the first is no figure.
    pub fn read(file: &str, toml: &str, markdown: &str) -> Result<Self, BadFigure> {
        let mut definition: Definition =
            toml::from_str(toml).map_err(|error| BadFigure(format!("{file}: {}", error.to_string().trim_end())))?;
        for (name, runs) in &mut definition.runs {
            let Some(toml::Value::String(with)) = runs.get("with") else { continue };
            let common = definition.common.get(with).ok_or_else(|| {
                let known = definition.common.keys().map(String::as_str);
                BadFigure(format!("{file}: [runs.{name}]: there is no [common.{with}]{}", did_you_mean(with, known)))
            })?;
            let mut whole = common.clone();
            grid::merge(&mut whole, runs);
            *runs = whole;
        }
        Ok(Figure { file: file.to_owned(), definition, sections: sections(markdown) })
    }

    pub fn id(&self) -> &str {
        &self.definition.id
    }

    pub fn title(&self) -> &str {
        &self.definition.title
    }

    pub fn section(&self) -> &str {
        &self.definition.section
    }

    /// The paper's sentence behind a statement, where the file has it.
    pub fn quote_of(&self, statement: &str) -> Option<&str> {
        let claim = self.definition.claims.iter().find(|claim| claim.says == statement)?;
        Some(claim.quote.as_str()).filter(|quote| !quote.is_empty())
    }

    /// The heading of what explains that a statement differs.
    pub fn cause_of(&self, statement: &str) -> Option<&str> {
        let claim = self.definition.claims.iter().find(|claim| claim.says == statement)?;
        [&claim.because, &claim.perhaps].into_iter().map(String::as_str).find(|heading| !heading.is_empty())
    }

    /// Whether it has runs.
    pub fn is_simulated(&self) -> bool {
        self.definition.runs.values().any(|runs| !runs.contains_key("computed"))
    }

    /// Whether its time is that of a search, and kept.
    pub fn is_searched(&self) -> bool {
        self.definition.searched
    }

    /// Whether any of its runs has processes, which noise interrupts.
    pub fn has_processes(&self) -> bool {
        let others = ["fabric", "exchange", "bulk", "computed"];
        self.definition.runs.values().any(|runs| !others.iter().any(|section| names(runs, section)))
    }

    /// A section of the explanations.
    fn explanation(&self, heading: &str) -> Result<&str, BadFigure> {
        self.sections.get(heading).map(String::as_str).ok_or_else(|| {
            let known = self.sections.keys().map(String::as_str);
            BadFigure(format!("the Markdown file has no section `{heading}`{}", did_you_mean(heading, known)))
        })
    }

    /// Takes the runs of another figure beside its own, and that one's set-up if it has none.
    fn take_runs(&mut self, others: BTreeMap<String, toml::Table>, setup: Option<String>) {
        for (name, runs) in others {
            self.definition.runs.entry(name).or_insert(runs);
        }
        if let Some(setup) = setup {
            self.sections.entry("Set-up".to_owned()).or_insert(setup);
        }
    }

    /// What its runs show.
    ///
    /// # Errors
    /// If the file is wrong, or a run fails.
    pub fn findings(&self, workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
        let setup = |error: BadFigure| SimulationError::Setup(format!("{}: {error}", self.file));
        let mut grids = BTreeMap::new();
        for (name, table) in &self.definition.runs {
            grids.insert(name.clone(), Grid::read(name, table, workshop.scale).map_err(setup)?);
        }
        let points = Points::run(workshop, &grids)?;
        let mut found = self.shown(&points, workshop).map_err(setup)?;
        if let Some(name) = &self.definition.special {
            let more = special::findings(name, workshop, &points)?;
            found.figures.extend(more.figures);
            found.tables.extend(more.tables);
            found.facts.extend(more.facts);
        }
        Ok(found)
    }

    fn shown(&self, points: &Points, workshop: &Workshop<'_>) -> Result<Findings, BadFigure> {
        let pictures =
            self.definition.pictures.iter().flat_map(PictureOf::each).map(|picture| pictures::drawn(&picture, points));
        let text = |text: &str| self.filled(text, points);
        let tables =
            self.definition.tables.iter().flat_map(TableOf::each).map(|table| tables::filled(&table, points, &text));
        Ok(Findings {
            setup: self.setup(workshop.scale),
            figures: pictures.collect::<Result<_, _>>()?,
            tables: tables.collect::<Result<_, _>>()?,
            facts: self.facts(points, workshop)?,
        })
    }

    /// What was run, for readers: a section of the explanations, and what the form changes of it.
    fn setup(&self, scale: Scale) -> String {
        let whole = self.sections.get("Set-up").cloned().unwrap_or_default();
        if scale == Scale::Full || !self.is_simulated() {
            return whole;
        }
        let mut changes: BTreeMap<String, String> = BTreeMap::new();
        for (runs, table) in &self.definition.runs {
            for form in scale.changes() {
                flatten(&format!("{runs}."), table.get(*form), &mut changes);
            }
        }
        let list: Vec<String> = changes.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        format!("{whole} The {} form is reduced: {}.", scale.name(), list.join("; "))
    }
}

/// Whether a table, or one in it, such as a variant, has a key of that name.
fn names(table: &toml::Table, key: &str) -> bool {
    let below = |value: &toml::Value| match value {
        toml::Value::Table(table) => names(table, key),
        toml::Value::Array(each) => each.iter().filter_map(toml::Value::as_table).any(|table| names(table, key)),
        _ => false,
    };
    table.contains_key(key) || table.values().any(below)
}

/// All single values and lists of a table, by their path.
fn flatten(path: &str, value: Option<&toml::Value>, into: &mut BTreeMap<String, String>) {
    match value {
        Some(toml::Value::Table(table)) => {
            for (name, value) in table {
                let below = if value.is_table() { format!("{path}{name}.") } else { format!("{path}{name}") };
                flatten(&below, Some(value), into);
            }
        }
        Some(value) => drop(into.insert(path.to_owned(), value.to_string())),
        None => {}
    }
}

/// The sections of a Markdown text by their headings of the second level, each in one line.
fn sections(markdown: &str) -> BTreeMap<String, String> {
    let mut sections = BTreeMap::new();
    for part in markdown.split("\n## ").skip(1) {
        let (heading, text) = part.split_once('\n').unwrap_or((part, ""));
        sections.insert(heading.trim().to_owned(), text.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    sections
}
