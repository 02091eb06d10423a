//! What a claim's `holds` says: two values and a judge between them. Each line is one test; all of a claim must hold.
//!
//! | test | it holds if |
//! |---|---|
//! | `A below B`, `A above B`, `A at_most B`, `A at_least B` | the comparison does |
//! | `A equals B` | both are the same number |
//! | `A within B..C` | B ≤ A ≤ C |
//! | `A near B by C` | A is less than C percent of B from B |
//! | `A rises`, `A falls` | each number of the list is above (below) the one before |
//! | `A rises within C`, `A falls within C` | none is more than C below (above) the one before |
//!
//! A, B and C are arithmetic over the claim's values ([`super::expression`]). Of lists every place must hold; with
//! `any` in front, one.

use super::expression::{BadExpression, Expression, by_place};

/// A word between two values, and what must hold.
type Comparison = (&'static str, fn(f64, f64) -> bool);

/// All of them.
const COMPARISONS: &[Comparison] = &[
    ("below", |one, other| one < other),
    ("above", |one, other| one > other),
    ("at_most", |one, other| one <= other),
    ("at_least", |one, other| one >= other),
    ("equals", |one, other| one == other),
];

/// Names and their values.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Result<Vec<f64>, BadExpression>;

/// Whether a test holds.
///
/// # Errors
/// If it is none, or names what does not exist.
pub fn holds(test: &str, lookup: Lookup<'_>) -> Result<bool, BadExpression> {
    let value = |text: &str| Expression::parse(text)?.evaluate(lookup);
    let (is_any, test) = test.trim().strip_prefix("any ").map_or((false, test.trim()), |rest| (true, rest));
    let decide = |each: Vec<bool>| {
        if each.is_empty() {
            return false;
        }
        if is_any { each.contains(&true) } else { each.iter().all(|holds| *holds) }
    };
    let words: Vec<&str> = test.split(' ').collect();
    if let Some(place) = words.iter().position(|word| matches!(*word, "rises" | "falls")) {
        let list = value(&words[..place].join(" "))?;
        let sign = if words[place] == "rises" { 1.0 } else { -1.0 };
        let steps = list.windows(2).map(|pair| sign * (pair[1] - pair[0]));
        return match words[place + 1..] {
            [] => Ok(decide(steps.map(|step| step > 0.0).collect())),
            ["within", ref slack @ ..] => {
                let slack = single(&value(&slack.join(" "))?)?;
                Ok(decide(steps.map(|step| step >= -slack).collect()))
            }
            _ => Err(BadExpression(format!("`{test}`: `within` and a number may follow"))),
        };
    }
    if let Some((one, bounds)) = test.split_once(" within ") {
        let (least, most) =
            bounds.split_once("..").ok_or_else(|| BadExpression(format!("`{test}`: bounds are `A..B`")))?;
        let (one, least, most) = (value(one)?, value(least)?, value(most)?);
        let above = by_place(&one, &least, |one, least| f64::from(u8::from(one >= least)))?;
        let below = by_place(&one, &most, |one, most| f64::from(u8::from(one <= most)))?;
        return Ok(decide(above.iter().zip(&below).map(|(above, below)| above * below > 0.0).collect()));
    }
    if let Some((one, other)) = test.split_once(" near ") {
        let (other, percent) =
            other.split_once(" by ").ok_or_else(|| BadExpression(format!("`{test}`: `by` and percent follow")))?;
        let percent = single(&value(percent)?)?;
        let apart = by_place(&value(one)?, &value(other)?, |one, other| 100.0 * (one / other - 1.0).abs())?;
        return Ok(decide(apart.iter().map(|apart| *apart < percent).collect()));
    }
    for (word, comparison) in COMPARISONS {
        let Some((one, other)) = test.split_once(&format!(" {word} ")) else { continue };
        let (one, other) = (value(one)?, value(other)?);
        let pairs = match (one.len(), other.len()) {
            (1, _) => other.iter().map(|other| comparison(one[0], *other)).collect(),
            (_, 1) => one.iter().map(|one| comparison(*one, other[0])).collect(),
            (a, b) if a == b => one.iter().zip(&other).map(|(one, other)| comparison(*one, *other)).collect(),
            (a, b) => return Err(BadExpression(format!("`{test}`: a list of {a} numbers meets one of {b}"))),
        };
        return Ok(decide(pairs));
    }
    let words = COMPARISONS.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    Err(BadExpression(format!("`{test}` has none of the judges {words}, within, near, rises, falls")))
}

fn single(values: &[f64]) -> Result<f64, BadExpression> {
    match values {
        [one] => Ok(*one),
        _ => Err(BadExpression(format!("one number is needed, and there are {}", values.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(test: &str) -> Result<bool, String> {
        let lookup = |name: &str| match name {
            "few" => Ok(vec![2.0, 3.0]),
            "many" => Ok(vec![4.0, 9.0]),
            "saw" => Ok(vec![5.0, 4.0, 4.4, 1.0]),
            "none" => Ok(vec![]),
            _ => Err(BadExpression(format!("no {name}"))),
        };
        holds(test, &lookup).map_err(|error| error.0)
    }

    #[test]
    fn each_judge_can_hold_and_can_fail() {
        for (test, expected) in [
            ("few below many", true),
            ("2 * few below many", false),
            ("any 2 * few below many", true),
            ("many above 3", true),
            ("many at_least 9", false),
            ("few at_most 3", true),
            ("few equals 2", false),
            ("max(few) equals 3", true),
            ("few within 2..3", true),
            ("many within 2..5", false),
            ("49 near 50 by 3", true),
            ("49 near 50 by 1", false),
            ("few rises", true),
            ("saw falls", false),
            ("saw falls within 0.5", true),
            ("saw falls within 0.3", false),
            ("none below 3", false),
        ] {
            assert_eq!(verdict(test), Ok(expected), "{test}");
        }
    }

    #[test]
    fn what_is_no_test_is_refused() {
        assert!(verdict("few").unwrap_err().contains("none of the judges"));
        assert!(verdict("few below saw").unwrap_err().contains("2 numbers meets one of 4"));
        assert!(verdict("some below 3").unwrap_err().contains("no some"));
    }
}
