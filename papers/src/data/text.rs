//! Texts with values between braces, such as `{max(apart):.2}` or `{means:.1|KEY: VALUE %}`; `docs/add-a-figure.md`
//! says what may stand there.

use std::cell::RefCell;

use super::{BadFigure, expression};

/// A value, with the names of the places of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Named {
    pub keys: Vec<String>,
    pub numbers: Vec<f64>,
}

pub fn filled(text: &str, lookup: &dyn Fn(&str) -> Result<Named, BadFigure>) -> Result<String, BadFigure> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('{') {
        let (inner, after) =
            behind.split_once('}').ok_or_else(|| BadFigure(format!("`{text}`: a brace is not closed")))?;
        filled.push_str(before);
        let (head, pattern) = inner.split_once('|').unwrap_or((inner, "VALUE"));
        let (of, form) = head.split_once(':').unwrap_or((head, ".1"));
        let digits = form.trim_start_matches('+').strip_prefix('.').and_then(|digits| digits.parse().ok());
        let digits = digits.ok_or_else(|| BadFigure(format!("`{{{head}}}`: no digits")))?;
        let Named { keys, numbers } = value(of, lookup)?;
        let (pattern, nowhere) = pattern.split_once('|').unwrap_or((pattern, pattern));
        let each = numbers.iter().enumerate().map(|(place, number)| {
            let pattern = if number.is_finite() { pattern } else { nowhere };
            let text = printed(*number, digits);
            let is_signed = form.starts_with('+') && number.is_finite() && !text.starts_with('-');
            let key = keys.get(place).map_or("", String::as_str);
            pattern.replace("KEY", key).replace("VALUE", &if is_signed { format!("+{text}") } else { text })
        });
        filled.push_str(&each.collect::<Vec<_>>().join(", "));
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The value of arithmetic, with the places of the first list in it that is as long.
fn value(of: &str, lookup: &dyn Fn(&str) -> Result<Named, BadFigure>) -> Result<Named, BadFigure> {
    let all = RefCell::new(Vec::new());
    let numbers = expression::value(of, &|name| {
        let Named { keys, numbers } = lookup(name)?;
        all.borrow_mut().push(keys);
        Ok(numbers)
    })?;
    let keys = all.into_inner().into_iter().find(|keys| keys.len() == numbers.len()).unwrap_or_default();
    Ok(Named { keys, numbers })
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
            _ => Err(BadFigure(format!("no {name}"))),
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
