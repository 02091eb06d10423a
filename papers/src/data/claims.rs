//! What becomes of a figure's claims.

use std::cell::RefCell;
use std::collections::BTreeMap;

use tidegate_sim::run_spec::did_you_mean;

use super::definition::{ClaimOf, ValueOf};
use super::expression::BadExpression;
use super::points::Points;
use super::text::{self, Named};
use super::{BadFigure, Figure, judge};
use crate::report::Fact;
use crate::workshop::{Scale, Workshop};

impl Figure {
    /// All of them, in their order.
    pub(super) fn facts(&self, points: &Points, workshop: &Workshop<'_>) -> Result<Vec<Fact>, BadFigure> {
        let fact = |claim: &ClaimOf| {
            self.fact(claim, points, workshop).map_err(|error| BadFigure(format!("claim \"{}\": {error}", claim.says)))
        };
        self.definition.claims.iter().map(fact).collect()
    }

    fn fact(&self, claim: &ClaimOf, points: &Points, workshop: &Workshop<'_>) -> Result<Fact, BadFigure> {
        Ok(Fact { quote: claim.quote.clone(), ..self.judged(claim, points, workshop)? })
    }

    fn judged(&self, claim: &ClaimOf, points: &Points, workshop: &Workshop<'_>) -> Result<Fact, BadFigure> {
        let reduced = claim.reduced.as_ref().filter(|_| workshop.scale != Scale::Full);
        let paper = reduced.and_then(|of| of.paper.as_ref()).unwrap_or(&claim.paper);
        if !(claim.only.is_empty() || Scale::ALL.iter().any(|scale| scale.name() == claim.only)) {
            return Err(BadFigure(format!("only = \"{}\": full, quick or smallest is needed", claim.only)));
        }
        let is_of_form = claim.only.is_empty() || claim.only == workshop.scale.name();
        if claim.holds.is_empty() || !is_of_form || workshop.seeds < claim.seeds {
            return Ok(Fact::not_run(&claim.says, paper, self.explanation(&claim.otherwise)?));
        }
        let values = self.values(&claim.values, points);
        let numbers = |name: &str| values.get(name).map(|named| named.numbers);
        let explanation = |heading: &str| -> Result<String, BadFigure> {
            Ok(text::filled(self.explanation(heading)?, &|name| values.get(name))?)
        };
        for name in &claim.needs {
            let found = numbers(name)?;
            if found.is_empty() || found.iter().any(|number| !number.is_finite()) {
                return Ok(Fact::not_run(&claim.says, paper, &explanation(&claim.otherwise)?));
            }
        }
        let mut holds = true;
        for test in &claim.holds {
            holds &= judge::holds(test, &numbers)?;
        }
        let here = text::filled(&claim.here, &|name| values.get(name))?;
        let mut fact = Fact::tested(&claim.says, holds, paper, here);
        let (because, perhaps) = reduced.map_or((&claim.because, &claim.perhaps), |of| (&of.because, &of.perhaps));
        if !because.is_empty() {
            fact = fact.because(&explanation(because)?);
        } else if !perhaps.is_empty() {
            fact = fact.perhaps_because(&explanation(perhaps)?);
        }
        if !claim.implied.is_empty() {
            fact = fact.implied(&explanation(&claim.implied)?);
        }
        Ok(if claim.computed { fact.computed() } else { fact })
    }

    /// A text with the values that all claims have.
    pub(super) fn filled(&self, text: &str, points: &Points) -> Result<String, BadFigure> {
        let values = self.values(&self.definition.values, points);
        Ok(text::filled(text, &|name| values.get(name))?)
    }

    fn values<'a>(&'a self, own: &'a BTreeMap<String, ValueOf>, points: &'a Points) -> Values<'a> {
        Values { own, shared: &self.definition.values, points, known: RefCell::default() }
    }
}

/// The values of a claim and those that all claims have, each evaluated when it is asked for.
struct Values<'a> {
    own: &'a BTreeMap<String, ValueOf>,
    shared: &'a BTreeMap<String, ValueOf>,
    points: &'a Points,
    known: RefCell<BTreeMap<String, Named>>,
}

impl Values<'_> {
    fn get(&self, name: &str) -> Result<Named, BadExpression> {
        if let Some(known) = self.known.borrow().get(name) {
            return Ok(known.clone());
        }
        let of = self.own.get(name).or_else(|| self.shared.get(name)).ok_or_else(|| {
            let known = self.own.keys().chain(self.shared.keys()).map(String::as_str);
            BadExpression(format!("there is no value {name}{}", did_you_mean(name, known)))
        })?;
        let found = self.points.value(of).map_err(|error| BadExpression(format!("{name}: {error}")))?;
        self.known.borrow_mut().insert(name.to_owned(), found.clone());
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn explanations_have_values_too_and_reduced_forms_may_have_another_number_of_the_paper() {
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
        let sections = "# Two\n\n## How many\n\nAll {two:.0} of them.\n\n## Fewer\n\nThere are fewer.\n";
        let figure = Figure::read("fig1.toml", figure, sections).unwrap();
        let facts = |scale| figure.findings(&Workshop::new(scale, 1, Some(1), &Silent)).unwrap().facts;
        let (full, quick) = (facts(Scale::Full), facts(Scale::Quick));
        assert_eq!(full[0].explanation, "All 2 of them.");
        assert_eq!((full[1].paper.as_str(), quick[1].paper.as_str()), ("all 2", "all"));
        assert_eq!(quick[1].explanation, "There are fewer.");
    }
}
