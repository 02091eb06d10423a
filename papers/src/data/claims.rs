//! What becomes of a figure's claims.

use std::collections::BTreeMap;

use super::definition::{ClaimOf, ValueOf};
use super::points::Points;
use super::text::{self, Named};
use super::{BadFigure, Figure, judge, known};
use crate::report::{Fact, Verdict};
use crate::workshop::{Scale, Workshop};

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
    pub(super) fn facts(&self, points: &Points, workshop: &Workshop<'_>) -> Result<Vec<Fact>, BadFigure> {
        let fact = |claim: &ClaimOf| {
            self.fact(claim, points, workshop).map_err(|error| BadFigure(format!("claim \"{}\": {error}", claim.says)))
        };
        self.definition.claims.iter().map(fact).collect()
    }

    fn fact(&self, claim: &ClaimOf, points: &Points, workshop: &Workshop<'_>) -> Result<Fact, BadFigure> {
        let is_reduced = workshop.scale != Scale::Full;
        let (verdict, here) = self.judged(claim, points, workshop)?;
        let reduced = claim.reduced.as_ref().filter(|_| is_reduced);
        let paper = reduced.map(|of| &of.paper).filter(|paper| !paper.is_empty()).unwrap_or(&claim.paper);
        // A section that is named and missing is an error even where it is not needed.
        for heading in [&claim.because, &claim.perhaps, &claim.implied, &claim.otherwise] {
            self.explanation(heading)?;
        }
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

    fn judged(
        &self,
        claim: &ClaimOf,
        points: &Points,
        workshop: &Workshop<'_>,
    ) -> Result<(Verdict, String), BadFigure> {
        let not_run = || Ok((Verdict::NotRun, String::new()));
        if !(claim.only.is_empty() || Scale::ALL.iter().any(|scale| scale.name() == claim.only)) {
            return Err(BadFigure(format!("only = \"{}\": full, quick or smallest is needed", claim.only)));
        }
        let is_of_form = claim.only.is_empty() || claim.only == workshop.scale.name();
        if claim.holds.is_empty() || !is_of_form || workshop.seeds < claim.seeds {
            return not_run();
        }
        let value = |name: &str| self.value(&claim.values, points, name);
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
        Ok((verdict, text::filled(&claim.here, &value)?))
    }

    pub(super) fn filled(&self, text: &str, points: &Points) -> Result<String, BadFigure> {
        text::filled(text, &|name| self.value(&BTreeMap::new(), points, name))
    }

    /// Why an outcome is as it is.
    pub fn explained(&self, claim: &ClaimOf, verdict: Verdict, is_reduced: bool) -> Result<String, BadFigure> {
        let (heading, is_tested) = claim.heading(verdict, is_reduced);
        Ok(if is_tested { "" } else { "Not tested: " }.to_owned() + self.explanation(heading)?)
    }

    /// A value of a claim, or one that all claims have.
    fn value(&self, own: &BTreeMap<String, ValueOf>, points: &Points, name: &str) -> Result<Named, BadFigure> {
        let shared = &self.definition.values;
        let of = match shared.get(name) {
            Some(of) if !own.contains_key(name) => of,
            _ => known(own, "value", name)?,
        };
        points.value(of).map_err(|error| BadFigure(format!("{name}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
