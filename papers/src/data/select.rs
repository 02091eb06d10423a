//! Points of a grid: which are meant ([`is_chosen`]), and how one number is made of those of several ([`Take`]).

use std::cmp::Ordering;
use std::collections::BTreeMap;

use tidegate_sim::run_spec::did_you_mean;
use toml::Value;

use super::definition::Selection;
use super::expression::BadExpression;

/// A value of an axis: as the file has it, and as a number if it is one, bytes and microseconds with their units too.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub text: String,
    pub number: Option<f64>,
    /// The axis whose variant has this as a further name.
    pub of: Option<String>,
}

/// Units of sizes, in bytes, and of times, in microseconds.
const UNITS: &[(&str, f64)] = &[
    ("", 1.0),
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("ns", 1e-3),
    ("us", 1.0),
    ("µs", 1.0),
    ("ms", 1e3),
    ("s", 1e6),
    ("%", 1.0),
];

impl Key {
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Key { number: number(&text), text, of: None }
    }
}

fn number(text: &str) -> Option<f64> {
    let end =
        text.find(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != '-').unwrap_or(text.len());
    let unit = UNITS.iter().find(|(unit, _)| *unit == text[end..].trim())?;
    text[..end].parse::<f64>().ok().map(|number| number * unit.1)
}

/// The selection of what has these keys.
pub fn selecting<'a>(keys: impl IntoIterator<Item = (&'a String, &'a Key)>) -> Selection {
    keys.into_iter().map(|(axis, key)| (axis.clone(), Value::String(key.text.clone()))).collect()
}

/// Two selections, of which the second decides where both name an axis.
pub fn both(one: &Selection, other: &Selection) -> Selection {
    one.iter().chain(other).map(|(axis, value)| (axis.clone(), value.clone())).collect()
}

/// Whether a point with these keys is meant. A selection that names an axis which the point does not have means none.
///
/// # Errors
/// If a comparison is none.
pub fn is_chosen(keys: &BTreeMap<String, Key>, selection: &Selection) -> Result<bool, BadExpression> {
    for (axis, wanted) in selection {
        let Some(key) = keys.get(axis) else {
            let known = keys.keys().map(String::as_str);
            return Err(BadExpression(format!("there is no axis {axis}{}", did_you_mean(axis, known))));
        };
        if !agrees(key, wanted)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn agrees(key: &Key, wanted: &Value) -> Result<bool, BadExpression> {
    match wanted {
        Value::Array(each) => {
            for wanted in each {
                if agrees(key, wanted)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::String(text) => compares(key, text),
        Value::Integer(number) => Ok(key.number == Some(*number as f64)),
        Value::Float(number) => Ok(key.number == Some(*number)),
        Value::Boolean(truth) => Ok(key.text == truth.to_string()),
        _ => Err(BadExpression("a selection has single values, lists, or comparisons such as \"<= 30\"".to_owned())),
    }
}

/// `< 30`, `>= 16`, `16..30` (both included), `not X`, or the value itself.
fn compares(key: &Key, text: &str) -> Result<bool, BadExpression> {
    let bad = || BadExpression(format!("`{text}` compares with no number"));
    if let Some(other) = text.strip_prefix("not ") {
        return Ok(!compares(key, other)?);
    }
    if let Some((least, most)) = text.split_once("..") {
        let bounds = (number(least.trim()).ok_or_else(bad)?, number(most.trim()).ok_or_else(bad)?);
        return Ok(key.number.is_some_and(|number| bounds.0 <= number && number <= bounds.1));
    }
    for (sign, allowed) in [
        ("<=", &[Ordering::Less, Ordering::Equal][..]),
        (">=", &[Ordering::Greater, Ordering::Equal]),
        ("<", &[Ordering::Less]),
        (">", &[Ordering::Greater]),
    ] {
        if let Some(bound) = text.strip_prefix(sign) {
            let bound = number(bound.trim()).ok_or_else(bad)?;
            let order = key.number.and_then(|number| number.partial_cmp(&bound));
            return Ok(order.is_some_and(|order| allowed.contains(&order)));
        }
    }
    Ok(key.text == text || (key.number.is_some() && key.number == number(text)))
}

/// How one number is made of those of several points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Take {
    Mean,
    GeometricMean,
    Max,
    Min,
    Sum,
    Count,
    First,
    Last,
    /// Where along the axis the value is least.
    Argmin,
    /// Where it is most.
    Argmax,
    /// The first place along the axis whose value, and those of all behind it, are at most so much.
    AtMostFrom(f64),
    /// The first place whose value is below that.
    FirstBelow(f64),
    /// The first place whose value is at most that.
    FirstAtMost(f64),
    /// By how much the most is above the least, in percent of the least.
    Spread,
    /// The mean over every whole number of this range, on the straight lines between the points.
    MeanBetween(f64, f64),
    /// The change of the value for each step of one along the axis, by least squares.
    Slope,
}

/// Every word for [`Take`], and what it gives.
pub const TAKES: &[(&str, &str)] = &[
    ("mean", "the mean"),
    ("geometric_mean", "the geometric mean, of multiples"),
    ("max", "the largest"),
    ("min", "the smallest"),
    ("sum", "the sum"),
    ("count", "how many points there are"),
    ("first", "that of the first point along the axis"),
    ("last", "that of the last"),
    ("argmin", "where along the axis it is smallest"),
    ("argmax", "where along the axis it is largest"),
    ("at_most_from N", "from where along the axis on it is at most N"),
    ("first_below N", "where along the axis it is below N for the first time"),
    ("first_at_most N", "where along the axis it is at most N for the first time"),
    ("spread", "by how much the largest is above the smallest, in percent"),
    (
        "mean_between A..B",
        "the mean over all whole numbers from A to B along the axis, on straight lines between the points",
    ),
    ("slope", "the change for each step along the axis, by least squares"),
];

impl Take {
    /// Reads it.
    ///
    /// # Errors
    /// If it is none of [`TAKES`].
    pub fn parse(text: &str) -> Result<Self, BadExpression> {
        let (word, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let needed =
            || number(rest.trim()).ok_or_else(|| BadExpression(format!("take = \"{text}\": a number is needed")));
        Ok(match word {
            "mean" => Take::Mean,
            "geometric_mean" => Take::GeometricMean,
            "max" => Take::Max,
            "min" => Take::Min,
            "sum" => Take::Sum,
            "count" => Take::Count,
            "first" => Take::First,
            "last" => Take::Last,
            "argmin" => Take::Argmin,
            "argmax" => Take::Argmax,
            "spread" => Take::Spread,
            "slope" => Take::Slope,
            "at_most_from" => Take::AtMostFrom(needed()?),
            "first_below" => Take::FirstBelow(needed()?),
            "first_at_most" => Take::FirstAtMost(needed()?),
            "mean_between" => {
                let bounds = rest.split_once("..").and_then(|(a, b)| Some((number(a.trim())?, number(b.trim())?)));
                let (least, most) =
                    bounds.ok_or_else(|| BadExpression(format!("take = \"{text}\": A..B is needed")))?;
                Take::MeanBetween(least, most)
            }
            _ => {
                let known = TAKES.iter().map(|(word, _)| *word);
                return Err(BadExpression(format!("take = \"{text}\" is unknown{}", did_you_mean(word, known))));
            }
        })
    }

    /// The number, of points along an axis. Where along the axis nothing is as wanted it is infinite.
    pub fn of(self, points: &[(f64, f64)]) -> f64 {
        let values = || points.iter().map(|point| point.1);
        let at =
            |place: Option<usize>| place.and_then(|place| points.get(place)).map_or(f64::INFINITY, |point| point.0);
        let (max, min) = (values().fold(f64::NEG_INFINITY, f64::max), values().fold(f64::INFINITY, f64::min));
        match self {
            Take::Mean => values().sum::<f64>() / points.len().max(1) as f64,
            Take::GeometricMean => (values().map(f64::ln).sum::<f64>() / points.len().max(1) as f64).exp(),
            Take::Max => max,
            Take::Min => min,
            Take::Sum => values().sum(),
            Take::Count => points.len() as f64,
            Take::First => points.first().map_or(f64::NAN, |point| point.1),
            Take::Last => points.last().map_or(f64::NAN, |point| point.1),
            Take::Argmin => at(points.iter().position(|point| point.1 == min)),
            Take::Argmax => at(points.iter().position(|point| point.1 == max)),
            Take::AtMostFrom(most) => {
                at(Some(points.iter().rposition(|point| point.1 > most).map_or(0, |last| last + 1)))
            }
            Take::FirstBelow(most) => at(points.iter().position(|point| point.1 < most)),
            Take::FirstAtMost(most) => at(points.iter().position(|point| point.1 <= most)),
            Take::Spread => 100.0 * (max / min - 1.0),
            Take::MeanBetween(least, most) => mean_between(points, least, most),
            Take::Slope => slope(points),
        }
    }
}

fn mean_between(points: &[(f64, f64)], least: f64, most: f64) -> f64 {
    let at = |x: f64| {
        let below = points.iter().rev().find(|point| point.0 <= x).copied().unwrap_or_default();
        let above = points.iter().find(|point| point.0 >= x).copied().unwrap_or(below);
        if above.0 == below.0 { below.1 } else { below.1 + (above.1 - below.1) * (x - below.0) / (above.0 - below.0) }
    };
    let count = (most - least) as u32 + 1;
    (0..count).map(|step| at(least + f64::from(step))).sum::<f64>() / f64::from(count)
}

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
        let of = |text: &str| Take::parse(text).unwrap().of(&points);
        assert_eq!((of("mean"), of("max"), of("last")), (14.25, 50.0, 1.0));
        assert_eq!((of("argmin"), of("argmax")), (64.0, 8.0));
        assert!((of("geometric_mean") - 400_f64.powf(0.25)).abs() < 1e-12);
        assert_eq!((of("at_most_from 3"), of("first_at_most 3"), of("at_most_from 0")), (64.0, 24.0, f64::INFINITY));
        assert_eq!(of("mean_between 24..30"), 3.0);
        assert_eq!(Take::Slope.of(&[(1.0, 3.0), (2.0, 5.0), (3.0, 7.0)]), 2.0);
        assert!(Take::parse("meen").unwrap_err().0.contains("did you mean mean?"));
    }
}
