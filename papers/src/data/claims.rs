//! What becomes of a figure's claims.

use std::cell::RefCell;
use std::collections::BTreeMap;

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
        let is_of_form = claim.only.is_empty() || claim.only == workshop.scale.name();
        if claim.holds.is_empty() || !is_of_form || workshop.seeds < claim.seeds {
            return Ok(Fact::not_run(&claim.says, &claim.paper, self.explanation(&claim.otherwise)?));
        }
        let values = Values { own: &claim.values, shared: &self.definition.values, points, known: RefCell::default() };
        let numbers = |name: &str| values.get(name).map(|named| named.numbers);
        let mut holds = true;
        for test in &claim.holds {
            holds &= judge::holds(test, &numbers)?;
        }
        let here = text::filled(&claim.here, &|name| values.get(name))?;
        let mut fact = Fact::tested(&claim.says, holds, &claim.paper, here);
        let reduced = claim.reduced.as_ref().filter(|_| workshop.scale != Scale::Full);
        let (because, perhaps) = reduced.map_or((&claim.because, &claim.perhaps), |of| (&of.because, &of.perhaps));
        if !because.is_empty() {
            fact = fact.because(self.explanation(because)?);
        } else if !perhaps.is_empty() {
            fact = fact.perhaps_because(self.explanation(perhaps)?);
        }
        if !claim.implied.is_empty() {
            fact = fact.implied(self.explanation(&claim.implied)?);
        }
        Ok(if claim.computed { fact.computed() } else { fact })
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
            BadExpression(format!("there is no value {name}{}", super::nearest(name, known)))
        })?;
        let found = self.points.value(of).map_err(|error| BadExpression(format!("{name}: {error}")))?;
        self.known.borrow_mut().insert(name.to_owned(), found.clone());
        Ok(found)
    }
}
