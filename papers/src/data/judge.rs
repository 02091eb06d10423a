//! What a claim's `holds` says: two values and a judge between them (`docs/add-a-figure.md`). Each line is a test; all
//! of a claim must hold. Of lists every place must hold; with `any` in front, one.

use super::BadFigure;
use super::expression::{self, Lookup, by_place};

type Comparison = fn(f64, f64) -> bool;

/// Words between two values, and what must hold.
const COMPARISONS: &[(&str, Comparison)] = &[
    ("below", |one, other| one < other),
    ("above", |one, other| one > other),
    ("at_most", |one, other| one <= other),
    ("at_least", |one, other| one >= other),
    ("equals", |one, other| one == other),
];

/// Whether a test holds.
pub fn holds(test: &str, lookup: Lookup<'_>) -> Result<bool, BadFigure> {
    let value = |text: &str| expression::value(text, lookup);
    let (is_any, test) = test.trim().strip_prefix("any ").map_or((false, test.trim()), |rest| (true, rest));
    let decide = |each: Vec<bool>| {
        Ok(!each.is_empty() && if is_any { each.contains(&true) } else { each.iter().all(|holds| *holds) })
    };
    let bad = |what: &str| BadFigure(format!("`{test}`: {what}"));
    for sign in [1.0, -1.0] {
        let Some((list, rest)) = test.split_once(if sign > 0.0 { " rises" } else { " falls" }) else { continue };
        let list = value(list)?;
        let steps = list.windows(2).map(|pair| sign * (pair[1] - pair[0]));
        return match (rest, rest.strip_prefix(" within ")) {
            ("", _) => decide(steps.map(|step| step > 0.0).collect()),
            (_, Some(slack)) => {
                let [slack] = value(slack)?[..] else { return Err(bad("one number is needed")) };
                decide(steps.map(|step| step >= -slack).collect())
            }
            _ => Err(bad("within and a number may follow")),
        };
    }
    if let Some((one, bounds)) = test.split_once(" within ") {
        let (least, most) = bounds.split_once("..").ok_or_else(|| bad("bounds are A..B"))?;
        let one = value(one)?;
        let above = by_place(&one, &value(least)?, |one, least| one >= least)?;
        let below = by_place(&one, &value(most)?, |one, most| one <= most)?;
        return decide(above.iter().zip(&below).map(|(above, below)| *above && *below).collect());
    }
    if let Some((one, other)) = test.split_once(" near ") {
        let (other, percent) = other.split_once(" by ").ok_or_else(|| bad("by and percent follow"))?;
        let [percent] = value(percent)?[..] else { return Err(bad("one number is needed")) };
        let is_near = |one: f64, other: f64| 100.0 * (one / other - 1.0).abs() < percent;
        return decide(by_place(&value(one)?, &value(other)?, is_near)?);
    }
    for (word, comparison) in COMPARISONS {
        if let Some((one, other)) = test.split_once(&format!(" {word} ")) {
            return decide(by_place(&value(one)?, &value(other)?, comparison)?);
        }
    }
    let words = COMPARISONS.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    Err(BadFigure(format!("`{test}` has none of the judges {words}, within, near, rises, falls")))
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
            _ => Err(BadFigure(format!("no {name}"))),
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
