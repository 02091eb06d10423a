//! What becomes of a figure's claims.

use std::cell::Cell;

use super::definition::{ClaimOf, Numbers, ValueOf, Values};
use super::points::Points;
use super::text;
use super::{BadFigure, Figure, judge, known};
use crate::report::{Fact, Verdict};
use crate::workshop::Scale;

impl ClaimOf {
    /// The heading of the section that explains an outcome, if one does; and whether its cause was changed to test it.
    pub fn heading(&self, verdict: Verdict, is_reduced: bool) -> (&str, bool) {
        let reduced = self.reduced.as_ref().filter(|_| is_reduced);
        let (because, perhaps) =
            reduced.map_or((&self.because, &self.perhaps), |reduced| (&reduced.because, &reduced.perhaps));
        match verdict {
            Verdict::Reproduced => ("", true),
            Verdict::Differs if because.is_empty() => (perhaps, false),
            Verdict::Differs => (because, true),
            Verdict::Implied => (&self.implied, true),
            Verdict::NotRun => (&self.otherwise, true),
        }
    }
}

impl Figure {
    pub(super) fn fact(&self, claim: &ClaimOf, points: &Points) -> Result<Fact, BadFigure> {
        let is_reduced = points.scale != Scale::Full;
        let (verdict, here) = self.judged(claim, points)?;
        let reduced = claim.reduced.as_ref().filter(|_| is_reduced);
        let paper = reduced.map(|of| &of.paper).filter(|paper| !paper.is_empty()).unwrap_or(&claim.paper);
        Ok(Fact {
            statement: claim.says.clone(),
            quote: claim.quote.clone(),
            verdict,
            by_seed: Vec::new(),
            paper: paper.clone(),
            here,
            explanation: self.explained(claim, verdict, is_reduced)?,
            is_computed: claim.computed,
        })
    }

    fn judged(&self, claim: &ClaimOf, points: &Points) -> Result<(Verdict, String), BadFigure> {
        let not_run = || Ok((Verdict::NotRun, String::new()));
        let is_of_form = claim.only.is_empty() || claim.only == points.scale.name();
        if claim.holds.is_empty() || !is_of_form || points.seeds < claim.seeds {
            return not_run();
        }
        let is_missing = Cell::new(false);
        let value = |name: &str| {
            let of = self.value_of(&claim.values, name)?;
            let Numbers { runs, r#where, .. } = &of.numbers_of;
            is_missing
                .set(is_missing.get() || of.is_of_points() && points.places(runs.as_deref(), r#where)?.is_empty());
            points.value(of).map_err(|error| BadFigure(format!("`values.{name}`: {error}")))
        };
        let numbers = |name: &str| value(name).map(|named| named.numbers);
        for name in &claim.needs {
            let found = numbers(name)?;
            if found.is_empty() || found.iter().any(|number| !number.is_finite()) {
                return not_run();
            }
        }
        let mut verdict = if claim.implied.is_empty() { Verdict::Reproduced } else { Verdict::Implied };
        for test in &claim.holds {
            if !judge::holds(test, &numbers)? {
                verdict = Verdict::Differs;
            }
        }
        let here = text::filled(&claim.here, &value)?;
        // Points that another form has tell nothing here.
        if is_missing.get() { not_run() } else { Ok((verdict, here)) }
    }

    pub(super) fn filled(&self, text: &str, points: &Points) -> Result<String, BadFigure> {
        text::filled(text, &|name| points.value(self.value_of(&Values::new(), name)?))
    }

    /// Why an outcome is as it is.
    pub fn explained(&self, claim: &ClaimOf, verdict: Verdict, is_reduced: bool) -> Result<String, BadFigure> {
        let (heading, is_tested) = claim.heading(verdict, is_reduced);
        if heading.is_empty() && verdict == Verdict::NotRun {
            return Ok("This form has no runs that could tell.".to_owned());
        }
        Ok(if is_tested { "" } else { "Not tested: " }.to_owned() + self.explanation(heading)?)
    }

    /// A value of a claim, or one that all claims have.
    pub(super) fn value_of<'a>(&'a self, own: &'a Values, name: &str) -> Result<&'a ValueOf, BadFigure> {
        match self.definition.values.get(name) {
            Some(of) if !own.contains_key(name) => Ok(of),
            _ => known(own, "value", name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workshop::Workshop;
    use tidegate_cli::progress::Bar;

    #[test]
    fn reduced_forms_may_have_another_number_of_the_paper() {
        let figure = r#"
            id = "E-fig1"
            title = "Two processes"
            section = "in none of the papers"
            values.two = { numbers = [2.0] }

            [[claims]]
            says = "There are two."
            paper = "2"
            holds = ["two equals 2"]
            implied = "How many"

            [[claims]]
            says = "They are all."
            paper = "all 2"
            only = "full"
            holds = ["two equals 2"]
            otherwise = "Fewer"
            reduced.paper = "all"
        "#;
        let sections = "# Two\n\n## How many\n\nAll of them.\n\n## Fewer\n\nThere are fewer.\n";
        let figure = Figure::read("fig1.toml", figure, sections).unwrap();
        let facts = |scale| figure.findings(&Workshop::new(scale, 1, Some(1), &Bar::new("paper"))).unwrap().facts;
        let (full, quick) = (facts(Scale::Full), facts(Scale::Quick));
        assert_eq!(full[0].explanation, "All of them.");
        assert_eq!((full[1].paper.as_str(), quick[1].paper.as_str()), ("all 2", "all"));
        assert_eq!(quick[1].explanation, "There are fewer.");
    }
}
