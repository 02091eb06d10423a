//! How wide a report may be.

use std::os::fd::AsFd;

/// Columns where the report goes to no terminal.
const USUAL: usize = 100;

/// How wide a report may be, and whether sentences are broken to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    /// Columns of tables.
    pub columns: usize,
    /// Sentences are broken for people only: programs look for them in one line.
    pub breaks_lines: bool,
}

impl Width {
    /// That of a file or a pipe.
    pub const USUAL: Width = Width { columns: USUAL, breaks_lines: false };

    /// That of the terminal behind a descriptor, if it is one.
    pub fn of(output: impl AsFd) -> Width {
        match rustix::termios::tcgetwinsize(output) {
            Ok(size) if size.ws_col > 0 => Width { columns: usize::from(size.ws_col).max(40), breaks_lines: true },
            _ => Width::USUAL,
        }
    }

    /// A text with its long lines broken at spaces; what follows in a line is indented.
    pub fn fit(self, text: &str) -> String {
        if !self.breaks_lines {
            return text.to_owned();
        }
        let mut fitted = String::new();
        for line in text.lines() {
            self.push_line(&mut fitted, line);
        }
        fitted
    }

    fn push_line(self, fitted: &mut String, line: &str) {
        let indent = if line.starts_with("tidegate: ") { "          " } else { "    " };
        let (mut rest, mut is_first) = (line, true);
        loop {
            let room = if is_first { self.columns } else { self.columns.saturating_sub(indent.len()) };
            let start = rest.len() - rest.trim_start().len();
            let fits = rest.chars().count() <= room;
            let end = rest.char_indices().nth(room).map_or(rest.len(), |(at, _)| at);
            let space = rest[..end].rfind(' ').filter(|at| *at > start && !fits);
            if !is_first {
                *fitted += indent;
            }
            let Some(at) = space else {
                *fitted += rest;
                fitted.push('\n');
                return;
            };
            *fitted += rest[..at].trim_end();
            fitted.push('\n');
            (rest, is_first) = (rest[at..].trim_start(), false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_at_spaces_on_a_terminal_only() {
        let text = "tidegate: a sentence that is too long for this\n  table   row\n";
        assert_eq!(Width::USUAL.fit(text), text);
        let narrow = Width { columns: 24, breaks_lines: true };
        let expected = "tidegate: a sentence\n          that is too\n          long for this\n  table   row\n";
        assert_eq!(narrow.fit(text), expected);
        let word = "x".repeat(50);
        assert_eq!(narrow.fit(&word), format!("{word}\n"), "a word stays whole");
    }

    #[test]
    fn a_pipe_is_as_wide_as_is_usual() {
        assert_eq!(Width::of(std::fs::File::open("/dev/null").unwrap()), Width::USUAL);
    }
}
