//! Errors in a figure's file are found before anything is run. [`Figure::check_texts`] needs nothing but the file;
//! [`Figure::check`] takes all numbers from points at which nothing is measured. Messages put words of the file between
//! backticks, so that [`Figure::located`] finds their line.

use super::definition::{ClaimOf, Definition, Numbers, TableOf, ValueOf};
use super::points::{Points, grouped};
use super::select::{is_chosen, shown};
use super::text::{self, Named};
use super::{BadFigure, Figure, each, grid, judge, tables};
use crate::workshop::{Runs, Scale};

impl ValueOf {
    /// Whether it is taken from the points that its `where` names.
    pub(super) fn is_of_points(&self) -> bool {
        self.computed.is_none() && self.numbers.is_empty()
    }
}

impl ClaimOf {
    /// An error in this claim, which is named by the beginning of its statement.
    pub(super) fn bad(&self, error: &BadFigure) -> BadFigure {
        BadFigure(format!("claim `{}`: {error}", self.says.chars().take(60).collect::<String>()))
    }
}

impl Figure {
    /// Checks fields that must not be empty, and the texts of all claims.
    pub(super) fn check_texts(&self) -> Result<(), BadFigure> {
        let Definition { id, title, section, claims, .. } = &self.definition;
        let says = claims.iter().map(|claim| ("claims.says", &claim.says));
        let mut fields = [("id", id), ("title", title), ("section", section)].into_iter().chain(says);
        if let Some((name, _)) = fields.find(|(_, text)| text.is_empty()) {
            return Err(BadFigure(format!("`{name}` is missing")));
        }
        claims.iter().try_for_each(|claim| self.check_claim(claim).map_err(|error| claim.bad(&error)))
    }

    /// Checks tests, texts and headings of a claim, with a number for each of its values.
    fn check_claim(&self, claim: &ClaimOf) -> Result<(), BadFigure> {
        let value =
            |name: &str| self.value_of(&claim.values, name).map(|_| Named { keys: Vec::new(), numbers: vec![1.0] });
        for test in &claim.holds {
            judge::holds(test, &|name| value(name).map(|named| named.numbers))?;
        }
        claim.needs.iter().try_for_each(|name| value(name).map(drop))?;
        text::filled(&claim.here, &value)?;
        if !(claim.only.is_empty() || Scale::ALL.iter().any(|scale| scale.name() == claim.only)) {
            return Err(BadFigure(format!("`only = \"{}\"`: full, quick or smallest is needed", claim.only)));
        }
        for of in [Some(claim), claim.reduced.as_deref()].into_iter().flatten() {
            for heading in [&of.because, &of.perhaps, &of.implied, &of.otherwise] {
                self.explanation(heading)?;
            }
        }
        Ok(())
    }

    /// Checks, in every form, all that is run, drawn, shown and claimed; and that each selection has points in one.
    pub fn check(&self) -> Result<(), BadFigure> {
        let check = || {
            let mut forms = Vec::new();
            for scale in Scale::ALL {
                let grids = self.grids(scale)?;
                let runs = grid::cases(&grids).iter().map(|_| Runs::none()).collect();
                // With any number of seeds, so that claims which compare seeds are judged, too.
                forms.push(Points::new(&grids, runs, scale, u32::MAX));
            }
            for (whose, numbers) in self.selections() {
                has_points(&forms, &numbers).map_err(|error| BadFigure(format!("{whose}: {error}")))?;
            }
            forms.iter().try_for_each(|points| self.shown(points).map(drop))
        };
        check().map_err(|error| self.located(error))
    }

    /// All selections of points, each with the name of what is made of them.
    fn selections(&self) -> Vec<(String, Numbers)> {
        let Definition { values, pictures, tables, claims, .. } = &self.definition;
        let mut all = Vec::new();
        let own = claims.iter().flat_map(|claim| claim.values.iter().map(move |value| (Some(claim), value)));
        for (claim, (name, value)) in own.chain(values.iter().map(|value| (None, value))) {
            if value.is_of_points() {
                let error = BadFigure(format!("`values.{name}`"));
                all.push((claim.map_or(error.clone(), |claim| claim.bad(&error)).0, value.numbers_of.clone()));
            }
        }
        for picture in pictures {
            for runs in each(&picture.runs_each, None) {
                for of in picture.series.iter().filter(|of| !of.numbers.of.is_empty()) {
                    let runs = runs.clone().or(of.numbers.runs.clone());
                    let whose = format!("picture `{}`: series `{}`", picture.name, of.name);
                    all.push((whose, Numbers { runs, ..of.numbers.clone() }));
                }
            }
        }
        for table in tables.iter().filter(|of| of.lines.is_empty()) {
            for runs in each(&table.runs_each, table.runs.clone()) {
                let of = TableOf { runs, ..table.clone() };
                for column in &of.columns {
                    let numbers = tables::within(&of, &column.numbers, &of.r#where);
                    let whose = format!("table `{}`: column `{}`", of.name, column.head);
                    let values = column.values.values().map(|own| tables::within(&of, own, &numbers.r#where));
                    all.extend(values.chain([numbers.clone()]).map(|numbers| (whose.clone(), numbers)));
                }
            }
        }
        all
    }

    /// An error with the file's name and the line that it is about: that of the last words that it quotes, where each
    /// are looked for behind those before.
    pub(super) fn located(&self, error: BadFigure) -> BadFigure {
        let mut at = None;
        for quoted in error.0.split('`').skip(1).step_by(2) {
            let begin = at.unwrap_or(0);
            let behind = found(&self.source[begin..], quoted).map(|place| begin + place);
            at = behind.or_else(|| found(&self.source, quoted)).or(at);
        }
        let line = at.map(|at| format!(", line {}", 1 + self.source[..at].matches('\n').count()));
        BadFigure(format!("{}{}: {error}", self.file, line.unwrap_or_default()))
    }
}

/// Where whole words stand in a text; of a field with its value, which may be one of a list there, at least the name.
fn found(text: &str, words: &str) -> Option<usize> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let is_whole = |&(at, found): &(usize, &str)| {
        !(text[..at].ends_with(is_part) && found.starts_with(is_part)
            || text[at + found.len()..].starts_with(is_part) && found.ends_with(is_part))
    };
    let name = words.split_once(" = ").map(|(name, _)| name);
    let mut wanted = [Some(words), name].into_iter().flatten().filter(|words| !words.is_empty());
    wanted.find_map(|words| text.match_indices(words).find(is_whole).map(|(at, _)| at))
}

/// Whether some form has points that are selected. An error says what keeps them out.
fn has_points(forms: &[Points], numbers: &Numbers) -> Result<(), BadFigure> {
    let Numbers { runs, r#where: selection, .. } = numbers;
    let mut all = Vec::new();
    for points in forms {
        if !points.places(runs.as_deref(), selection)?.is_empty() {
            return Ok(());
        }
        all.extend(points.of(runs.as_deref())?);
    }
    for (axis, wanted) in selection {
        let one = [(axis.clone(), wanted.clone())].into();
        let values = grouped(all.clone(), std::slice::from_ref(axis))?;
        let have_it = values.iter().map(|(_, points)| is_chosen(&points[0].keys, &one));
        if !have_it.collect::<Result<Vec<bool>, _>>()?.contains(&true) {
            let known = values.iter().map(|(value, _)| value.as_str()).collect::<Vec<_>>().join(", ");
            return Err(BadFigure(format!("no point has `{axis} = {wanted}`, in any form; there are {known}")));
        }
    }
    Err(BadFigure(format!("no point has all of {}, in any form", shown(selection))))
}
