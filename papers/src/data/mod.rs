//! Figures that are files (`docs/add-a-figure.md`): `definition.rs` has them as they are written, `grid.rs` what is
//! run, `folder.rs` where they are, `check.rs` what is wrong with them; `measures.rs`, `expression.rs`, `select.rs`
//! take numbers from runs; `judge.rs`, `claims.rs` decide claims; `pictures.rs`, `tables.rs`, `text.rs` show.
//! `special/` has what no file can say.

mod check;
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
use std::path::Path;

use tidegate_sim::SimulationError;
use tidegate_sim::run_spec::did_you_mean;

pub(crate) use definition::{Definition, Numbers, ValueOf};
pub(crate) use folder::{Cause, PaperOf, read_papers, usual_folder};
pub(crate) use points::{Point, Points};
pub(crate) use select::{Key, Keys, is_chosen, joined};
pub(crate) use text::Named;

use crate::report::Report;
use crate::run::Case;
use crate::special;
use crate::workshop::{Scale, Workshop};
use definition::{ClaimOf, TableOf};
use grid::Grids;

/// What is wrong with a figure's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFigure(pub String);

impl fmt::Display for BadFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<T: Into<String>> From<T> for BadFigure {
    fn from(what: T) -> Self {
        BadFigure(what.into())
    }
}

/// What a map has under a name; if nothing, the error names what is near.
fn known<'a, T>(map: &'a BTreeMap<String, T>, what: &str, name: &str) -> Result<&'a T, BadFigure> {
    let near = || did_you_mean(name, map.keys().map(String::as_str));
    map.get(name).ok_or_else(|| BadFigure(format!("there is no {what} `{name}`{}", near())))
}

/// A figure: its file, and the sections of its explanations.
#[derive(Debug)]
pub struct Figure {
    pub file: String,
    /// The text of the file, in which errors find their lines.
    source: String,
    pub definition: Definition,
    sections: BTreeMap<String, String>,
}

impl Figure {
    /// Reads a figure from the texts of its two files.
    pub fn read(file: &str, toml: &str, markdown: &str) -> Result<Self, BadFigure> {
        let bad = |error: toml::de::Error| BadFigure(format!("{file}: {}", error.to_string().trim_end()));
        let definition = toml::from_str(toml).map_err(bad)?;
        let (file, source) = (file.to_owned(), toml.to_owned());
        let mut figure = Figure { file, source, definition, sections: sections(markdown) };
        figure.take_common().and_then(|()| figure.check_texts()).map_err(|error| figure.located(error))?;
        Ok(figure)
    }

    /// Gives runs the tables of `common` that they begin with.
    fn take_common(&mut self) -> Result<(), BadFigure> {
        for (name, runs) in &mut self.definition.runs {
            let Some(toml::Value::String(with)) = runs.get("with") else { continue };
            let common = known(&self.definition.common, "[common] table", with);
            let mut whole = common.map_err(|error| BadFigure(format!("`[runs.{name}]`: {error}")))?.clone();
            grid::merge(&mut whole, runs);
            *runs = whole;
        }
        Ok(())
    }

    /// The name of its files, without folder and ending.
    pub fn stem(&self) -> &str {
        Path::new(&self.file).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
    }

    pub fn claim(&self, statement: &str) -> Option<&ClaimOf> {
        self.definition.claims.iter().find(|claim| claim.says == statement)
    }

    /// Whether it has runs.
    pub fn is_simulated(&self) -> bool {
        self.definition.runs.values().any(|runs| !runs.contains_key("computed"))
    }

    /// A section of the explanations; without a heading there is none.
    pub fn explanation(&self, heading: &str) -> Result<&str, BadFigure> {
        if heading.is_empty() {
            return Ok("");
        }
        known(&self.sections, "section", heading).map(String::as_str)
    }

    /// What its runs show: a report without what is known of the workshop.
    pub fn findings(&self, workshop: &Workshop<'_>) -> Result<Report, SimulationError> {
        let setup = |error: BadFigure| SimulationError::Setup(self.located(error).0);
        let grids = self.grids(workshop.scale).map_err(setup)?;
        let cases = grid::cases(&grids);
        let points = Points::new(&grids, workshop.run(&cases)?, workshop.scale, workshop.seeds);
        let mut found = self.shown(&points).map_err(setup)?;
        // Noise interrupts processes, and is nothing to runs without.
        found.noise_percent = if cases.iter().any(Case::has_processes) { workshop.noise_percent } else { 0.0 };
        Ok(found)
    }

    fn grids(&self, scale: Scale) -> Result<Grids, BadFigure> {
        let read = |(name, table): (&String, &toml::Table)| Ok((name.clone(), grid::read(name, table, scale)?));
        self.definition.runs.iter().map(read).collect()
    }

    /// The cases of a form, in the order in which they are run.
    pub fn cases(&self, scale: Scale) -> Result<Vec<Case>, BadFigure> {
        self.grids(scale).map(|grids| grid::cases(&grids)).map_err(|error| self.located(error))
    }

    fn shown(&self, points: &Points) -> Result<Report, BadFigure> {
        let Definition { id, title, section, pictures, tables, claims, .. } = &self.definition;
        let mut report = Report {
            id: id.clone(),
            title: title.clone(),
            section: section.clone(),
            setup: self.setup(points.scale.changes()),
            ..Report::default()
        };
        for claim in claims {
            report.facts.push(self.fact(claim, points).map_err(|error| claim.bad(&error))?);
        }
        for picture in pictures {
            for runs in each(&picture.runs_each, None) {
                let drawn = pictures::drawn(picture, runs.as_ref(), points);
                report.figures.push(drawn.map_err(|error| BadFigure(format!("picture `{}`: {error}", picture.name)))?);
            }
        }
        for table in tables {
            for runs in each(&table.runs_each, table.runs.clone()) {
                let filled =
                    tables::filled(&TableOf { runs, ..table.clone() }, points, &|text| self.filled(text, points));
                report.tables.push(filled.map_err(|error| BadFigure(format!("table `{}`: {error}", table.name)))?);
            }
        }
        if let Some(name) = &self.definition.special {
            report.figures.extend(special::pictures(name, points)?);
        }
        Ok(report)
    }

    /// What was run, for readers: a section of the explanations, and what a reduced form changes of it.
    pub fn setup(&self, forms: &[&str]) -> String {
        let whole = self.sections.get("Set-up").cloned().unwrap_or_default();
        let (Some(form), true) = (forms.last(), self.is_simulated()) else { return whole };
        let of_runs = |(name, runs): (&String, &toml::Table)| {
            let changes = forms.iter().filter_map(|form| runs.get(*form)).map(toml::Value::to_string);
            format!("{name}: {}", changes.collect::<Vec<_>>().join(", then "))
        };
        let list: Vec<String> = self.definition.runs.iter().map(of_runs).collect();
        format!("{whole} The {form} form is reduced: {}.", list.join("; "))
    }
}

/// Each of several kinds of runs, or the one that is usual.
fn each(runs: &[String], usual: Option<String>) -> Vec<Option<String>> {
    if runs.is_empty() { vec![usual] } else { runs.iter().cloned().map(Some).collect() }
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
