//! Texts with values in them.
//!
//! `{name}` stands for a value, with one digit behind its point; `{name:.2}` with two. Of a list all are printed with
//! commas between them. After `|` stands how each of a list is printed: `{means:.1|KEY: VALUE %}` gives `2: 3.1 %, 3: 4.0 %`,
//! KEY being the place in the list that the value belongs to. In names of curves and columns `{axis}` stands for a value of
//! an axis.

use super::expression::BadExpression;

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
        let (name, digits) = match head.split_once(":.") {
            Some((name, digits)) => {
                (name, digits.parse().map_err(|_| BadExpression(format!("`{{{head}}}`: no digits")))?)
            }
            None => (head, 1),
        };
        let Named { keys, numbers } = lookup(name)?;
        let each = numbers.iter().enumerate().map(|(place, number)| {
            let key = keys.get(place).map_or("", String::as_str);
            pattern.replace("KEY", key).replace("VALUE", &printed(*number, digits))
        });
        filled.push_str(&each.collect::<Vec<_>>().join(", "));
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
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
        assert_eq!(printed(-0.04, 1), "0.0");
        assert!(fill("{one").unwrap_err().contains("not closed"));
        assert_eq!(fill("{two}"), Err("no two".to_owned()));
    }
}
