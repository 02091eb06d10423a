//! [`Reader`]: a text in words, and [`TraceError`]: the place in it that cannot be understood.

use std::fmt;

/// Where a trace cannot be understood, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Line, counted from 1; 0 for the file as a whole.
    pub line: usize,
    /// Column, in characters, counted from 1; 0 for the line as a whole.
    pub column: usize,
    /// The reason.
    pub what: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (0, _) => {}
            (line, 0) => write!(f, "line {line}: ")?,
            (line, column) => write!(f, "line {line}, column {column}: ")?,
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for TraceError {}

/// Where a token stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Counted from 1.
    pub line: usize,
    /// Bytes of the text before it.
    pub offset: usize,
}

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// A name, a number, a number with a unit.
    Word(&'a str),
    /// `:`
    Colon,
    /// `{`
    Open,
    /// `}`
    Close,
    /// The end of a line.
    End,
    /// The end of the text.
    EndOfText,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(word) => write!(f, "`{}`", shortened(word)),
            Token::Colon => f.write_str("`:`"),
            Token::Open => f.write_str("`{`"),
            Token::Close => f.write_str("`}`"),
            Token::End => f.write_str("the end of the line"),
            Token::EndOfText => f.write_str("the end of the file"),
        }
    }
}

/// As much of a word as fits into a message.
fn shortened(word: &str) -> String {
    const MOST: usize = 40;
    match word.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    }
}

/// Reads a text from front to back.
pub struct Reader<'a> {
    text: &'a str,
    at: Place,
    /// A token that was looked at and not taken.
    next: Option<(Token<'a>, Place, Place)>,
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str) -> Self {
        // A byte order mark is no word.
        let offset = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Reader { text, at: Place { line: 1, offset }, next: None }
    }

    /// The next token, and where it stands.
    ///
    /// # Errors
    /// If a comment has no end.
    pub fn take(&mut self) -> Result<(Token<'a>, Place), TraceError> {
        let (token, place, behind) = match self.next.take() {
            Some(next) => next,
            None => self.scan()?,
        };
        self.at = behind;
        Ok((token, place))
    }

    /// The next token, which is not taken.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn peek(&mut self) -> Result<Token<'a>, TraceError> {
        let next = match self.next {
            Some(next) => next,
            None => self.scan()?,
        };
        self.next = Some(next);
        Ok(next.0)
    }

    /// The token, its place, and the place behind it.
    fn scan(&self) -> Result<(Token<'a>, Place, Place), TraceError> {
        let Place { line, mut offset } = self.at;
        loop {
            let rest = &self.text[offset..];
            let place = Place { line, offset };
            let token = |token: Token<'a>, bytes: usize, lines: usize| {
                (token, place, Place { line: line + lines, offset: offset + bytes })
            };
            let Some(first) = rest.chars().next() else { return Ok(token(Token::EndOfText, 0, 0)) };
            return Ok(match first {
                '\n' => token(Token::End, 1, 1),
                ':' => token(Token::Colon, 1, 0),
                '{' => token(Token::Open, 1, 0),
                '}' => token(Token::Close, 1, 0),
                _ if first.is_whitespace() => {
                    offset += first.len_utf8();
                    continue;
                }
                '/' if rest.starts_with("//") => {
                    offset += rest.find('\n').unwrap_or(rest.len());
                    continue;
                }
                '/' if rest.starts_with("/*") => {
                    let Some(end) = rest.find("*/") else {
                        return Err(self.error(place, "the comment that begins here has no `*/`".to_owned()));
                    };
                    let lines = rest[..end].matches('\n').count();
                    if lines > 0 {
                        return Ok(token(Token::End, end + 2, lines));
                    }
                    offset += end + 2;
                    continue;
                }
                _ => {
                    let length = word_length(rest);
                    token(Token::Word(&rest[..length]), length, 0)
                }
            });
        }
    }

    /// An error at a place.
    pub fn error(&self, place: Place, what: String) -> TraceError {
        let before = &self.text[..place.offset];
        let column = 1 + before.rsplit('\n').next().unwrap_or(before).trim_start_matches('\u{feff}').chars().count();
        TraceError { line: place.line, column, what }
    }
}

/// Bytes of the word with which a text begins.
fn word_length(text: &str) -> usize {
    let ends = |at: usize, character: char| {
        character.is_whitespace()
            || matches!(character, ':' | '{' | '}')
            || character == '/' && (text[at..].starts_with("//") || text[at..].starts_with("/*"))
    };
    text.char_indices().find(|&(at, character)| ends(at, character)).map_or(text.len(), |(at, _)| at)
}
