//! Points of a grid: which are meant ([`is_chosen`]), and how one number is made of those of several ([`Take`]).

use std::collections::BTreeMap;

use serde::Deserialize;
use tidegate_sim::run_spec::did_you_mean;
use toml::Value;

use super::definition::Selection;
use super::{BadFigure, known};

/// A value of an axis: as the file has it, and as a number if it is one, bytes and microseconds with their units too.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub text: String,
    pub number: Option<f64>,
    /// The axis whose variant has this as a further name.
    pub of: Option<String>,
}

pub type Keys = BTreeMap<String, Key>;

/// Units of sizes, in bytes, and of times, in microseconds.
const UNITS: [&[(&str, f64)]; 2] = [
    &[("", 1.0), ("%", 1.0), ("B", 1.0), ("KiB", 1024.0), ("MiB", 1_048_576.0)],
    &[("ns", 1e-3), ("us", 1.0), ("µs", 1.0), ("ms", 1e3), ("s", 1e6)],
];

impl Key {
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Key { number: number(&text), text, of: None }
    }
}

fn number(text: &str) -> Option<f64> {
    let is_part = |letter: char| letter.is_ascii_digit() || letter == '.' || letter == '-';
    let end = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
    let unit = UNITS.concat().into_iter().find(|(unit, _)| *unit == text[end..].trim())?;
    text[..end].parse::<f64>().ok().map(|number| number * unit.1)
}

pub fn selecting<'a>(keys: impl IntoIterator<Item = (&'a String, &'a Key)>) -> Selection {
    keys.into_iter().map(|(axis, key)| (axis.clone(), Value::String(key.text.clone()))).collect()
}

/// Two selections, of which the second decides where both name an axis.
pub fn both(one: &Selection, other: &Selection) -> Selection {
    one.iter().chain(other).map(|(axis, value)| (axis.clone(), value.clone())).collect()
}

/// A selection as files have it, between their braces.
pub fn shown(selection: &Selection) -> String {
    selection.iter().map(|(axis, wanted)| format!("`{axis} = {wanted}`")).collect::<Vec<_>>().join(", ")
}

/// Whether a point with these keys is meant.
pub fn is_chosen(keys: &Keys, selection: &Selection) -> Result<bool, BadFigure> {
    for (axis, wanted) in selection {
        if !agrees(key(keys, axis)?, wanted)? {
            return Ok(false);
        }
    }
    Ok(true)
}

pub fn key<'a>(keys: &'a Keys, axis: &str) -> Result<&'a Key, BadFigure> {
    known(keys, "axis", axis)
}

pub fn joined(keys: &Keys, axes: &[String]) -> Result<String, BadFigure> {
    let each: Result<Vec<&str>, _> = axes.iter().map(|axis| key(keys, axis).map(|key| key.text.as_str())).collect();
    Ok(each?.join(" "))
}

fn agrees(key: &Key, wanted: &Value) -> Result<bool, BadFigure> {
    match wanted {
        Value::Array(each) => each.iter().try_fold(false, |is_one, wanted| Ok(is_one || agrees(key, wanted)?)),
        Value::String(text) => compares(key, text),
        Value::Integer(number) => Ok(key.number == Some(*number as f64)),
        Value::Float(number) => Ok(key.number == Some(*number)),
        Value::Boolean(truth) => Ok(key.text == truth.to_string()),
        _ => Err(BadFigure("a selection has single values, lists, or comparisons such as \"<= 30\"".to_owned())),
    }
}

type Compare = fn(&f64, &f64) -> bool;

/// `< 30`, `>= 16`, `16..30` (both included), `not X`, or the value itself.
fn compares(key: &Key, text: &str) -> Result<bool, BadFigure> {
    let bound = |text: &str| number(text.trim()).ok_or_else(|| BadFigure(format!("`{text}` compares with no number")));
    if let Some(other) = text.strip_prefix("not ") {
        return Ok(!compares(key, other)?);
    }
    if let Some((least, most)) = text.split_once("..") {
        let (least, most) = (bound(least)?, bound(most)?);
        return Ok(key.number.is_some_and(|number| least <= number && number <= most));
    }
    let signs: [(&str, Compare); 4] = [("<=", f64::le), (">=", f64::ge), ("<", f64::lt), (">", f64::gt)];
    for (sign, holds) in signs {
        if let Some(limit) = text.strip_prefix(sign) {
            let limit = bound(limit)?;
            return Ok(key.number.is_some_and(|number| holds(&number, &limit)));
        }
    }
    Ok(key.text == text || (key.number.is_some() && key.number == number(text)))
}

/// Points along an axis, and up to two further numbers, into one number; infinite where nothing is as wanted.
type Of = fn(points: &[(f64, f64)], one: f64, other: f64) -> f64;

/// Every word, what is written behind it, and what it gives; `docs/add-a-figure.md` says it in words.
const TAKES: &[(&str, &str, Of)] = &[
    ("mean", "", |points, _, _| sum(points, |y| y) / points.len().max(1) as f64),
    ("geometric_mean", "", |points, _, _| (sum(points, f64::ln) / points.len().max(1) as f64).exp()),
    ("max", "", |points, _, _| most(points)),
    ("min", "", |points, _, _| least(points)),
    ("sum", "", |points, _, _| sum(points, |y| y)),
    ("count", "", |points, _, _| points.len() as f64),
    ("first", "", |points, _, _| points.first().map_or(f64::NAN, |point| point.1)),
    ("last", "", |points, _, _| points.last().map_or(f64::NAN, |point| point.1)),
    ("argmin", "", |points, _, _| place(points, |y| y == least(points))),
    ("argmax", "", |points, _, _| place(points, |y| y == most(points))),
    ("at_most_from", "N", |points, limit, _| {
        let behind = points.iter().rposition(|point| point.1 > limit).map_or(0, |last| last + 1);
        place(&points[behind..], |_| true)
    }),
    ("first_below", "N", |points, limit, _| place(points, |y| y < limit)),
    ("first_at_most", "N", |points, limit, _| place(points, |y| y <= limit)),
    ("spread", "", |points, _, _| 100.0 * (most(points) / least(points) - 1.0)),
    ("mean_between", "A..B", mean_between),
    ("slope", "", |points, _, _| slope(points)),
];

/// How one number is made of those of several points.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Take {
    of: Of,
    numbers: (f64, f64),
}

impl Default for Take {
    fn default() -> Self {
        Take { of: TAKES[0].2, numbers: (0.0, 0.0) }
    }
}

impl TryFrom<String> for Take {
    type Error = BadFigure;

    fn try_from(text: String) -> Result<Self, BadFigure> {
        let (word, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let Some((_, form, of)) = TAKES.iter().find(|(known, ..)| *known == word) else {
            let near = did_you_mean(word, TAKES.iter().map(|(known, ..)| *known));
            return Err(BadFigure(format!("take = \"{text}\" is unknown{near}")));
        };
        let (one, other) = rest.split_once("..").unwrap_or((rest, rest));
        let numbers = number(one.trim()).zip(number(other.trim()));
        match numbers {
            None if !form.is_empty() => Err(BadFigure(format!("take = \"{text}\": {form} is needed"))),
            _ => Ok(Take { of: *of, numbers: numbers.unwrap_or_default() }),
        }
    }
}

impl Take {
    pub fn of(self, points: &[(f64, f64)]) -> f64 {
        (self.of)(points, self.numbers.0, self.numbers.1)
    }
}

fn sum(points: &[(f64, f64)], of: impl Fn(f64) -> f64) -> f64 {
    points.iter().map(|point| of(point.1)).sum()
}

fn most(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max)
}

fn least(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min)
}

fn place(points: &[(f64, f64)], is_wanted: impl Fn(f64) -> bool) -> f64 {
    points.iter().find(|point| is_wanted(point.1)).map_or(f64::INFINITY, |point| point.0)
}

/// The mean over all whole numbers between two, on straight lines between the points.
fn mean_between(points: &[(f64, f64)], least: f64, most: f64) -> f64 {
    let at = |x: f64| {
        let below = points.iter().rev().find(|point| point.0 <= x).copied().unwrap_or_default();
        let above = points.iter().find(|point| point.0 >= x).copied().unwrap_or(below);
        if above.0 == below.0 { below.1 } else { below.1 + (above.1 - below.1) * (x - below.0) / (above.0 - below.0) }
    };
    let count = (most - least) as u32 + 1;
    (0..count).map(|step| at(least + f64::from(step))).sum::<f64>() / f64::from(count)
}

/// The change for each step along the axis, by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len().max(1) as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let both = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>();
    both / points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(selection: &str) -> Result<bool, String> {
        let keys = BTreeMap::from([
            ("slots".to_owned(), Key::new("24")),
            ("memory".to_owned(), Key::new("8 KiB")),
            ("scheme".to_owned(), Key::new("static")),
        ]);
        is_chosen(&keys, &toml::from_str(selection).unwrap()).map_err(|error| error.0)
    }

    #[test]
    fn points_are_chosen_by_values_lists_and_comparisons() {
        for (selection, is) in [
            ("", true),
            ("slots = 24", true),
            ("slots = [8, 24]", true),
            ("slots = '< 24'", false),
            ("slots = '<= 24'\nscheme = 'static'", true),
            ("slots = '16..30'", true),
            ("slots = 'not 24'", false),
            ("memory = '>= 8 KiB'", true),
            ("memory = 8192", true),
            ("scheme = ['rnr', 'dynamic']", false),
        ] {
            assert_eq!(chosen(selection), Ok(is), "{selection}");
        }
        assert!(chosen("slot = 24").unwrap_err().contains("did you mean slots?"));
        assert!(chosen("slots = '< many'").unwrap_err().contains("compares with no number"));
    }

    #[test]
    fn several_numbers_become_one() {
        let points = [(8.0, 50.0), (24.0, 2.0), (30.0, 4.0), (64.0, 1.0)];
        let take = |text: &str| Take::try_from(text.to_owned());
        let of = |text: &str| take(text).unwrap().of(&points);
        assert_eq!((of("mean"), of("max"), of("last")), (14.25, 50.0, 1.0));
        assert_eq!((of("argmin"), of("argmax")), (64.0, 8.0));
        assert!((of("geometric_mean") - 400_f64.powf(0.25)).abs() < 1e-12);
        assert_eq!((of("at_most_from 3"), of("first_at_most 3"), of("at_most_from 0")), (64.0, 24.0, f64::INFINITY));
        assert_eq!(of("mean_between 24..30"), 3.0);
        assert_eq!(take("slope").unwrap().of(&[(1.0, 3.0), (2.0, 5.0), (3.0, 7.0)]), 2.0);
        assert!(take("meen").unwrap_err().0.contains("did you mean mean?"));
        assert!(take("first_below").unwrap_err().0.contains("N is needed"));
    }
}
