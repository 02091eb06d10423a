//! Text of others (names of programs and hosts, command lines) as part of ours, on a terminal or a page.

/// A text in one line, in which nothing hides or replaces what stands around it: control characters and those that turn
/// the direction of text around become a sign that something was there.
pub fn plain(text: &str) -> String {
    let letter = |letter: char| match letter {
        '\n' | '\t' => ' ',
        _ if letter.is_control() || turns_around(letter) => char::REPLACEMENT_CHARACTER,
        _ => letter,
    };
    text.chars().map(letter).collect()
}

fn turns_around(letter: char) -> bool {
    matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_speaks_to_the_terminal() {
        assert_eq!(plain("ä\u{1b}[31m\u{9b}1m\u{202e}\r\n\tz"), "ä\u{fffd}[31m\u{fffd}1m\u{fffd}\u{fffd}  z");
    }
}
