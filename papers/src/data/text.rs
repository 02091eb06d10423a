//! Texts with values in them.
//!
//! `{name}` stands for a value, or arithmetic over values such as `{max(apart)}`, with one digit behind its point;
//! `{name:.2}` with two, `{name:+.1}` with its sign even if that is plus. Of a list all are printed with commas between
//! them. After `|` stands how each of a list is printed: `{means:.1|KEY: VALUE %}` gives `2: 3.1 %, 3: 4.0 %`, KEY
//! being the place in the list that the value belongs to. After another `|` stands what is said of a number that is
//! nowhere: `{enough:.0|VALUE slots|more than 64 slots}`. In names of curves and columns `{axis}` stands for a value of
//! an axis.

use super::expression::{BadExpression, Expression};

/// A value, with the names of the places of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Named {
    pub keys: Vec<String>,
    pub numbers: Vec<f64>,
}

/// Puts values into a text.
///
/// # Errors
/// If it names what does not exist.
pub fn filled(text: &str, lookup: &dyn Fn(&str) -> Result<Named, BadExpression>) -> Result<String, BadExpression> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('{') {
        let (inner, after) =
            behind.split_once('}').ok_or_else(|| BadExpression(format!("`{text}`: a brace is not closed")))?;
        filled.push_str(before);
        let (head, pattern) = inner.split_once('|').unwrap_or((inner, "VALUE"));
        let (of, form) = head.split_once(':').unwrap_or((head, ".1"));
        let (form, print): (&str, fn(f64, usize) -> String) = match form.strip_prefix('+') {
            Some(form) => (form, signed),
            None => (form, printed),
        };
        let digits = form.strip_prefix('.').and_then(|digits| digits.parse().ok());
        let digits = digits.ok_or_else(|| BadExpression(format!("`{{{head}}}`: no digits")))?;
        let Named { keys, numbers } = value(of, lookup)?;
        let (pattern, nowhere) = pattern.split_once('|').unwrap_or((pattern, pattern));
        let each = numbers.iter().enumerate().map(|(place, number)| {
            let pattern = if number.is_finite() { pattern } else { nowhere };
            let key = keys.get(place).map_or("", String::as_str);
            pattern.replace("KEY", key).replace("VALUE", &print(*number, digits))
        });
        filled.push_str(&each.collect::<Vec<_>>().join(", "));
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The value of arithmetic, with the places of the first list in it that is as long.
fn value(of: &str, lookup: &dyn Fn(&str) -> Result<Named, BadExpression>) -> Result<Named, BadExpression> {
    let expression = Expression::parse(of)?;
    let numbers = expression.evaluate(&|name| lookup(name).map(|named| named.numbers))?;
    let mut keys = Vec::new();
    for name in expression.names() {
        let named = lookup(name)?;
        if keys.is_empty() && named.keys.len() == numbers.len() {
            keys = named.keys;
        }
    }
    Ok(Named { keys, numbers })
}

/// The same as [`printed`], with a plus before what is not below zero.
pub fn signed(number: f64, digits: usize) -> String {
    let text = printed(number, digits);
    if number.is_finite() && !text.starts_with('-') { format!("+{text}") } else { text }
}

/// A number with so many digits behind its point; `none` for one that is nowhere.
pub fn printed(number: f64, digits: usize) -> String {
    if !number.is_finite() {
        return "none".to_owned();
    }
    let text = format!("{number:.digits$}");
    // No "-0.0".
    if text.trim_start_matches('-').chars().all(|letter| matches!(letter, '0' | '.')) {
        return text.trim_start_matches('-').to_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_where_the_braces_were() {
        let lookup = |name: &str| match name {
            "one" => Ok(Named { keys: vec![], numbers: vec![2.345] }),
            "list" => Ok(Named { keys: vec!["2".into(), "3".into()], numbers: vec![1.0, f64::INFINITY] }),
            _ => Err(BadExpression(format!("no {name}"))),
        };
        let fill = |text: &str| filled(text, &lookup).map_err(|error| error.0);
        assert_eq!(fill("{one:.2} % with"), Ok("2.35 % with".to_owned()));
        assert_eq!(fill("{list}; {list:.0|KEY: VALUE %}"), Ok("1.0, none; 2: 1 %, 3: none %".to_owned()));
        assert_eq!(fill("{max(1, one) - 1:.2}; {2 * list - 1|KEY VALUE}"), Ok("1.35; 2 1.0, 3 none".to_owned()));
        assert_eq!(fill("{one:+.1}, {-one:+.1}"), Ok("+2.3, -2.3".to_owned()));
        assert!(fill("{one:1}").unwrap_err().contains("no digits"));
        assert_eq!(fill("{list:.0|VALUE slots|more than 64}"), Ok("1 slots, more than 64".to_owned()));
        assert_eq!(printed(-0.04, 1), "0.0");
        assert!(fill("{one").unwrap_err().contains("not closed"));
        assert_eq!(fill("{two}"), Err("no two".to_owned()));
    }
}
