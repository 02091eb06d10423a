//! Arithmetic as figures' files have it: `100 * (time_us / reference.time_us - 1)`. Every value is a list of numbers,
//! mostly of one; a single number works with each place of a list. There are no conditions and no assignments.

use super::BadFigure;
use super::select::Take;

pub type Lookup<'a> = &'a dyn Fn(&str) -> Result<Vec<f64>, BadFigure>;

pub fn value(text: &str, lookup: Lookup<'_>) -> Result<Vec<f64>, BadFigure> {
    let mut reader = Reader { text, rest: text, lookup };
    let found = reader.sum()?;
    reader.skip();
    if reader.rest.is_empty() { Ok(found) } else { Err(reader.expected("an operator")) }
}

/// The value of an expression where every name stands for one number.
pub fn number(text: &str, lookup: &dyn Fn(&str) -> Result<f64, BadFigure>) -> Result<f64, BadFigure> {
    Ok(value(text, &|name| lookup(name).map(|number| vec![number]))?.first().copied().unwrap_or(f64::NAN))
}

/// An operation on two lists, of which a single number goes with each place of the other.
pub fn by_place<T>(one: &[f64], other: &[f64], operation: impl Fn(f64, f64) -> T) -> Result<Vec<T>, BadFigure> {
    let length = if one.len() == 1 { other.len() } else { one.len() };
    if ![one.len(), other.len()].iter().all(|count| *count == length || *count == 1) {
        return Err(BadFigure(format!("a list of {} numbers meets one of {}", one.len(), other.len())));
    }
    let at = |list: &[f64], place: usize| if list.len() == 1 { list[0] } else { list[place] };
    Ok((0..length).map(|place| operation(at(one, place), at(other, place))).collect())
}

fn call(function: &str, arguments: &[Vec<f64>]) -> Result<Vec<f64>, BadFigure> {
    let each = |values: &[f64], of: fn(f64) -> f64| Ok(values.iter().map(|value| of(*value)).collect());
    let steps =
        |values: &[f64], of: fn(f64, f64) -> f64| Ok(values.windows(2).map(|pair| of(pair[0], pair[1])).collect());
    match (function, arguments) {
        ("max", [one, other]) => by_place(one, other, f64::max),
        ("min", [one, other]) => by_place(one, other, f64::min),
        ("reaches", [one, other]) => by_place(one, other, |one, other| f64::from(u8::from(one >= other))),
        ("abs", [values]) => each(values, f64::abs),
        ("log2", [values]) => each(values, f64::log2),
        ("floor", [values]) => each(values, f64::floor),
        ("ratios", [values]) => steps(values, |before, value| value / before),
        ("steps", [values]) => steps(values, |before, value| value - before),
        ("first", [values]) => Ok(values.first().copied().into_iter().collect()),
        ("last", [values]) => Ok(values.last().copied().into_iter().collect()),
        ("count", [values]) => Ok(vec![values.len() as f64]),
        // Of nothing there is no number, so nothing holds of it.
        (_, [values]) if values.is_empty() => Ok(vec![f64::NAN]),
        ("median", [values]) => {
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            Ok(vec![sorted[sorted.len() / 2]])
        }
        ("max" | "min" | "sum" | "mean", [values]) => {
            let points: Vec<(f64, f64)> = values.iter().map(|value| (0.0, *value)).collect();
            Ok(vec![Take::try_from(function.to_owned())?.of(&points)])
        }
        _ => Err(BadFigure(format!("{function} does not take {} values", arguments.len()))),
    }
}

/// Reads from left to right: sums of products of values.
struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    lookup: Lookup<'a>,
}

impl Reader<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn expected(&self, what: &str) -> BadFigure {
        let at = self.text.len() - self.rest.len();
        BadFigure(format!("`{}`: {what} is expected at character {}", self.text, at + 1))
    }

    /// Takes the next character if it is one of these.
    fn take(&mut self, wanted: &[char]) -> Option<char> {
        self.skip();
        let found = self.rest.chars().next().filter(|next| wanted.contains(next))?;
        self.rest = &self.rest[found.len_utf8()..];
        Some(found)
    }

    fn closed<T>(&mut self, inner: T) -> Result<T, BadFigure> {
        self.take(&[')']).map(|_| inner).ok_or_else(|| self.expected("a closing bracket"))
    }

    fn sum(&mut self) -> Result<Vec<f64>, BadFigure> {
        let mut left = self.product()?;
        while let Some(sign) = self.take(&['+', '-']) {
            let right = self.product()?;
            left = by_place(&left, &right, |one, other| if sign == '+' { one + other } else { one - other })?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Vec<f64>, BadFigure> {
        let mut left = self.value()?;
        while let Some(sign) = self.take(&['*', '/']) {
            let right = self.value()?;
            left = by_place(&left, &right, |one, other| if sign == '*' { one * other } else { one / other })?;
        }
        Ok(left)
    }

    fn value(&mut self) -> Result<Vec<f64>, BadFigure> {
        if self.take(&['-']).is_some() {
            return Ok(self.value()?.into_iter().map(|value| -value).collect());
        }
        if self.take(&['(']).is_some() {
            let inner = self.sum()?;
            return self.closed(inner);
        }
        self.skip();
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
        let end = self.rest.find(|letter| !is_part(letter)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return Err(self.expected("a value"));
        }
        if word.starts_with(|letter: char| letter.is_ascii_digit()) {
            let number = word.replace('_', "").parse().map_err(|_| self.expected("a number"))?;
            self.rest = rest;
            return Ok(vec![number]);
        }
        self.rest = rest;
        if self.take(&['(']).is_none() {
            return (self.lookup)(word);
        }
        let mut arguments = vec![self.sum()?];
        while self.take(&[',']).is_some() {
            arguments.push(self.sum()?);
        }
        self.closed(())?;
        call(word, &arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<Vec<f64>, String> {
        let lookup = |name: &str| match name {
            "one.time_us" => Ok(vec![3.0]),
            "list" => Ok(vec![1.0, 2.0, 4.0]),
            _ => Err(BadFigure(format!("no {name}"))),
        };
        super::value(text, &lookup).map_err(|error| error.0)
    }

    #[test]
    fn arithmetic_follows_the_usual_rules() {
        assert_eq!(value("2 + 3 * -4 / (1 + 1) - 1"), Ok(vec![-5.0]));
        assert_eq!(value("100 * (one.time_us / 2 - 1)"), Ok(vec![50.0]));
        assert_eq!(value("1_000"), Ok(vec![1000.0]));
    }

    #[test]
    fn lists_are_taken_place_by_place() {
        assert_eq!(value("2 * list - list"), Ok(vec![1.0, 2.0, 4.0]));
        assert_eq!(value("max(list) - min(list) + max(1, 2)"), Ok(vec![5.0]));
        assert_eq!(value("ratios(list)"), Ok(vec![2.0, 2.0]));
        assert!(value("max(ratios(first(list)))").unwrap()[0].is_nan(), "nothing has no largest");
        assert_eq!(value("sum(reaches(list, 2))"), Ok(vec![2.0]));
        assert_eq!(value("median(list)"), Ok(vec![2.0]));
        assert!(value("list + ratios(list)").unwrap_err().contains("3 numbers meets one of 2"));
    }

    #[test]
    fn what_is_no_expression_is_refused_with_its_place() {
        assert_eq!(value("2 *"), Err("`2 *`: a value is expected at character 4".to_owned()));
        assert_eq!(value("(2 + 3"), Err("`(2 + 3`: a closing bracket is expected at character 7".to_owned()));
        assert_eq!(value("2 3"), Err("`2 3`: an operator is expected at character 3".to_owned()));
        assert_eq!(value("speed"), Err("no speed".to_owned()));
        assert!(value("max(1, 2, 3)").unwrap_err().contains("does not take 3 values"));
    }
}
