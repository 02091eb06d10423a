//! Arithmetic as the figures' files have it: `100 * (time_us / reference.time_us - 1)`.
//!
//! Every value is a list of numbers, mostly of one. An operator between two lists works place by place, a single number
//! works with each place of a list, and functions of one argument ([`FUNCTIONS`]) make one number of a list. There are
//! no conditions and no assignments.

use std::fmt;

/// Functions, and what they give.
pub const FUNCTIONS: &[(&str, &str)] = &[
    ("max", "the largest number of a list, or of two values"),
    ("min", "the smallest number of a list, or of two values"),
    ("mean", "the mean of a list"),
    ("median", "the number in the middle of a list when it is sorted, of two the larger"),
    ("sum", "the sum of a list"),
    ("count", "how many numbers a list has"),
    ("first", "the first number of a list"),
    ("last", "the last number of a list"),
    ("ratios", "each number of a list but the first, over the one before"),
    ("steps", "each number of a list but the first, less the one before"),
    ("abs", "without the sign"),
    ("log2", "the logarithm to base 2"),
    ("reaches", "1 where the first value is at least the second, else 0"),
    ("floor", "the largest whole number that is not above"),
];

/// An expression, ready to be evaluated.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A number.
    Number(f64),
    /// A measured or named value.
    Name(String),
    /// A value with the other sign.
    Negative(Box<Expression>),
    /// Two values and what is between them: one of `+ - * /`.
    Binary(char, Box<Expression>, Box<Expression>),
    /// A function.
    Call(&'static str, Vec<Expression>),
}

/// What is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadExpression(pub String);

impl fmt::Display for BadExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// If it is none: the text says what was expected where.
    pub fn parse(text: &str) -> Result<Self, BadExpression> {
        let mut reader = Reader { text, rest: text };
        let found = reader.sum()?;
        reader.skip();
        if reader.rest.is_empty() { Ok(found) } else { Err(reader.expected("an operator")) }
    }

    /// Its value, with those of names from `lookup`.
    ///
    /// # Errors
    /// As `lookup`'s, and if lists of different lengths meet.
    pub fn evaluate(
        &self,
        lookup: &dyn Fn(&str) -> Result<Vec<f64>, BadExpression>,
    ) -> Result<Vec<f64>, BadExpression> {
        match self {
            Expression::Number(number) => Ok(vec![*number]),
            Expression::Name(name) => lookup(name),
            Expression::Negative(of) => Ok(of.evaluate(lookup)?.into_iter().map(|value| -value).collect()),
            Expression::Binary(operator, one, other) => {
                let operation = match operator {
                    '+' => |a: f64, b: f64| a + b,
                    '-' => |a: f64, b: f64| a - b,
                    '*' => |a: f64, b: f64| a * b,
                    _ => |a: f64, b: f64| a / b,
                };
                by_place(&one.evaluate(lookup)?, &other.evaluate(lookup)?, operation)
            }
            Expression::Call(function, arguments) => {
                let values: Result<Vec<Vec<f64>>, _> = arguments.iter().map(|one| one.evaluate(lookup)).collect();
                call(function, &values?)
            }
        }
    }

    /// All names in it.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Expression::Number(_) => Vec::new(),
            Expression::Name(name) => vec![name],
            Expression::Negative(of) => of.names(),
            Expression::Binary(_, one, other) => [one.names(), other.names()].concat(),
            Expression::Call(_, arguments) => arguments.iter().flat_map(Expression::names).collect(),
        }
    }
}

/// An operation on two lists, of which a single number goes with each place of the other.
pub fn by_place(one: &[f64], other: &[f64], operation: fn(f64, f64) -> f64) -> Result<Vec<f64>, BadExpression> {
    match (one, other) {
        ([one], _) => Ok(other.iter().map(|other| operation(*one, *other)).collect()),
        (_, [other]) => Ok(one.iter().map(|one| operation(*one, *other)).collect()),
        _ if one.len() == other.len() => {
            Ok(one.iter().zip(other).map(|(one, other)| operation(*one, *other)).collect())
        }
        _ => Err(BadExpression(format!("a list of {} numbers meets one of {}", one.len(), other.len()))),
    }
}

fn call(function: &str, arguments: &[Vec<f64>]) -> Result<Vec<f64>, BadExpression> {
    let one = |values: &[f64], of: fn(f64) -> f64| Ok(values.iter().map(|value| of(*value)).collect());
    match (function, arguments) {
        // Of nothing there is no number, so nothing holds of it.
        ("max" | "min" | "sum" | "mean" | "median", [values]) if values.is_empty() => Ok(vec![f64::NAN]),
        ("max", [one, other]) => by_place(one, other, f64::max),
        ("min", [one, other]) => by_place(one, other, f64::min),
        ("reaches", [one, other]) => by_place(one, other, |one, other| f64::from(u8::from(one >= other))),
        ("abs", [values]) => one(values, f64::abs),
        ("log2", [values]) => one(values, f64::log2),
        ("floor", [values]) => one(values, f64::floor),
        ("max", [values]) => Ok(vec![values.iter().copied().fold(f64::NEG_INFINITY, f64::max)]),
        ("min", [values]) => Ok(vec![values.iter().copied().fold(f64::INFINITY, f64::min)]),
        ("median", [values]) => {
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            Ok(sorted.get(sorted.len() / 2).copied().into_iter().collect())
        }
        ("sum", [values]) => Ok(vec![values.iter().sum()]),
        ("mean", [values]) => Ok(vec![values.iter().sum::<f64>() / values.len().max(1) as f64]),
        ("count", [values]) => Ok(vec![values.len() as f64]),
        ("first", [values]) => Ok(values.first().copied().into_iter().collect()),
        ("last", [values]) => Ok(values.last().copied().into_iter().collect()),
        ("ratios", [values]) => Ok(values.windows(2).map(|pair| pair[1] / pair[0]).collect()),
        ("steps", [values]) => Ok(values.windows(2).map(|pair| pair[1] - pair[0]).collect()),
        _ => Err(BadExpression(format!("{function} does not take {} values", arguments.len()))),
    }
}

/// Reads from left to right: sums of products of values.
struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
}

impl Reader<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn expected(&self, what: &str) -> BadExpression {
        let at = self.text.len() - self.rest.len();
        BadExpression(format!("`{}`: {what} is expected at character {}", self.text, at + 1))
    }

    /// Takes the next character if it is one of these.
    fn take(&mut self, wanted: &[char]) -> Option<char> {
        self.skip();
        let found = self.rest.chars().next().filter(|next| wanted.contains(next))?;
        self.rest = &self.rest[found.len_utf8()..];
        Some(found)
    }

    fn sum(&mut self) -> Result<Expression, BadExpression> {
        let mut left = self.product()?;
        while let Some(operator) = self.take(&['+', '-']) {
            left = Expression::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expression, BadExpression> {
        let mut left = self.value()?;
        while let Some(operator) = self.take(&['*', '/']) {
            left = Expression::Binary(operator, Box::new(left), Box::new(self.value()?));
        }
        Ok(left)
    }

    fn value(&mut self) -> Result<Expression, BadExpression> {
        if self.take(&['-']).is_some() {
            return Ok(Expression::Negative(Box::new(self.value()?)));
        }
        if self.take(&['(']).is_some() {
            let inner = self.sum()?;
            return self.take(&[')']).map(|_| inner).ok_or_else(|| self.expected("a closing bracket"));
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
            return Ok(Expression::Number(number));
        }
        let function = FUNCTIONS.iter().find(|(name, _)| *name == word).map(|(name, _)| *name);
        self.rest = rest;
        match function {
            Some(function) if self.take(&['(']).is_some() => {
                let mut arguments = vec![self.sum()?];
                while self.take(&[',']).is_some() {
                    arguments.push(self.sum()?);
                }
                let call = Expression::Call(function, arguments);
                self.take(&[')']).map(|_| call).ok_or_else(|| self.expected("a closing bracket"))
            }
            _ => Ok(Expression::Name(word.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<Vec<f64>, String> {
        let lookup = |name: &str| match name {
            "one.time_us" => Ok(vec![3.0]),
            "list" => Ok(vec![1.0, 2.0, 4.0]),
            _ => Err(BadExpression(format!("no {name}"))),
        };
        Expression::parse(text).and_then(|parsed| parsed.evaluate(&lookup)).map_err(|error| error.0)
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
