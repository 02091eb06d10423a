//! The grammar of traces: that of LogGOPSim's txt2bin, and a little more (comments and ends of lines where they harm
//! nothing, `tag` and the others in any order).

use super::graph::{Graph, Operation, Relation};
use super::tokens::{Place, Reader, Token, TraceError};
use crate::Time;
use crate::flight::Rank;
use crate::task::{Sender, Tag, TagFilter};
use crate::workload::RecordedOperation;

/// All ranks of a trace together compute for so many nanoseconds at most, some 106 days: the simulator counts
/// picoseconds in 64 bits, and each millisecond of work may be interrupted.
pub const WORK_MOST: u64 = u64::MAX / 2000;
/// The longest message, 1 TiB: longer ones fit no memory, and each packet is simulated.
const BYTES_MOST: u64 = 1 << 40;
/// A larger number of ranks is a mistake, and must not take all memory.
const RANKS_MOST: u64 = 1 << 20;
/// How LogGOPSim writes `-1` for a rank, in 32 bits.
const ANY_OF_32_BITS: u64 = u32::MAX as u64;

/// The operations of all ranks.
///
/// # Errors
/// If the text is no trace, or has something that cannot be replayed.
pub fn read(text: &str) -> Result<Vec<Vec<Operation>>, TraceError> {
    let mut reader = Reader::new(text);
    let mut ranks: Option<Vec<Option<Vec<Operation>>>> = None;
    loop {
        let (token, place) = reader.take()?;
        match (token, &mut ranks) {
            (Token::End, _) => {}
            (Token::EndOfText, Some(_)) => break,
            (Token::EndOfText, None) => {
                let what = "this is no trace in GOAL: there is no `num_ranks`".to_owned();
                return Err(TraceError { line: 0, column: 0, what });
            }
            (Token::Word("num_ranks"), None) => {
                let mut all = Vec::new();
                all.resize_with(reader.ranks()?, || None);
                ranks = Some(all);
            }
            (Token::Word("num_ranks"), Some(_)) => {
                return Err(reader.error(place, "`num_ranks` is there twice".to_owned()));
            }
            (Token::Word("rank"), None) => {
                return Err(reader.error(place, "`num_ranks` has to come before the first `rank`".to_owned()));
            }
            (Token::Word("rank"), Some(ranks)) => {
                let number = reader.rank_to_describe(ranks)?;
                let graph = reader.graph(number, ranks.len() as u32)?;
                ranks[number] = Some(graph);
            }
            (other, None) => {
                return Err(reader.expected(place, other, "`num_ranks`, with which a trace in GOAL begins"));
            }
            (other, Some(_)) => return Err(reader.expected(place, other, "`rank` with a number and `{`")),
        }
    }
    Ok(ranks.unwrap_or_default().into_iter().map(Option::unwrap_or_default).collect())
}

/// `send` and `recv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Send,
    Receive,
}

/// Whose options are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Options {
    OfCalc,
    Of(Way),
}

impl<'a> Reader<'a> {
    fn expected(&self, place: Place, found: Token<'_>, what: &str) -> TraceError {
        self.error(place, format!("expected {what}, found {found}"))
    }

    /// A word, which is said to be `what` where there is none.
    fn word(&mut self, what: &str) -> Result<(&'a str, Place), TraceError> {
        match self.take()? {
            (Token::Word(word), place) => Ok((word, place)),
            (other, place) => Err(self.expected(place, other, what)),
        }
    }

    /// A whole number. One that is too large for 128 bits is the largest of them.
    fn number(&mut self, what: &str) -> Result<(u128, Place), TraceError> {
        let (word, place) = self.word(what)?;
        match digits(word) {
            Some(number) => Ok((number, place)),
            None => Err(self.expected(place, Token::Word(word), what)),
        }
    }

    /// Behind `num_ranks`.
    fn ranks(&mut self) -> Result<usize, TraceError> {
        let (count, place) = self.number("a number of ranks")?;
        if count > RANKS_MOST.into() {
            let what = format!("{count} ranks are more than the {RANKS_MOST} that can be replayed");
            return Err(self.error(place, what));
        }
        Ok(count as usize)
    }

    /// Behind `rank`, up to `{`: a rank that is not there yet.
    fn rank_to_describe(&mut self, ranks: &[Option<Vec<Operation>>]) -> Result<usize, TraceError> {
        let (number, place) = self.number("the number of a rank")?;
        let Some(known) = usize::try_from(number).ok().and_then(|number| ranks.get(number)) else {
            return Err(self.error(place, no_such_rank(number, ranks.len())));
        };
        if known.is_some() {
            return Err(self.error(place, format!("rank {number} is there twice")));
        }
        while self.peek()? == Token::End {
            self.take()?;
        }
        match self.take()? {
            (Token::Open, _) => Ok(number as usize),
            (other, place) => Err(self.expected(place, other, "`{`")),
        }
    }

    /// The operations of a rank, up to `}`.
    fn graph(&mut self, rank: usize, ranks: u32) -> Result<Vec<Operation>, TraceError> {
        let mut graph = Graph::default();
        loop {
            match self.take()? {
                (Token::End, _) => {}
                (Token::Close, _) => break,
                (Token::Word(word), place) => self.statement(&mut graph, word, place, ranks)?,
                (Token::EndOfText, _) => {
                    return Err(TraceError { line: 0, column: 0, what: format!("rank {rank} has no `}}`") });
                }
                (other, place) => return Err(self.expected(place, other, "an operation, a dependency or `}`")),
            }
        }
        graph.finish().map_err(|line| {
            let what = format!("operations of rank {rank} wait for each other in a circle; this is one of them");
            TraceError { line, column: 0, what }
        })
    }

    /// A line within a rank that begins with `first`.
    fn statement(&mut self, graph: &mut Graph<'a>, first: &'a str, place: Place, ranks: u32) -> Result<(), TraceError> {
        let relation = match self.peek()? {
            Token::Colon => {
                self.take()?;
                let (word, of_word) = self.word("calc, send or recv")?;
                let action = self.operation(word, of_word, ranks)?;
                return match graph.add(Some(first), action, place.line) {
                    true => Ok(()),
                    false => Err(self.error(place, format!("{} is there twice", Token::Word(first)))),
                };
            }
            Token::Word("requires") => Relation::Requires,
            Token::Word("irequires") => Relation::Irequires,
            _ => {
                let action = self.operation(first, place, ranks)?;
                graph.add(None, action, place.line);
                return Ok(());
            }
        };
        self.take()?;
        let (label, of_label) = self.word("the label of an operation")?;
        let none = |label: &str| format!("there is no operation {} yet", Token::Word(label));
        let waiting = graph.find(first).ok_or_else(|| self.error(place, none(first)))?;
        let needed = graph.find(label).ok_or_else(|| self.error(of_label, none(label)))?;
        graph.relate(waiting, relation, needed);
        self.end_of_line("the end of the line")
    }

    /// An operation, from the word behind its label to the end of the line.
    fn operation(&mut self, word: &str, place: Place, ranks: u32) -> Result<RecordedOperation, TraceError> {
        match word {
            "calc" => self.calc(),
            "send" => self.message(Way::Send, ranks),
            "recv" => self.message(Way::Receive, ranks),
            "put" | "get" | "append" | "tput" | "tget" | "tappend" | "test" => {
                let what = format!("`{word}` is an operation of Portals, and only calc, send and recv can be replayed");
                Err(self.error(place, what))
            }
            "calcgem5" => {
                let what = "`calcgem5` is a program for gem5, and only calc, send and recv can be replayed".to_owned();
                Err(self.error(place, what))
            }
            other => Err(self.expected(place, Token::Word(other), "calc, send, recv, requires or irequires")),
        }
    }

    fn calc(&mut self) -> Result<RecordedOperation, TraceError> {
        let (span, place) = self.number("a number of nanoseconds")?;
        if span > WORK_MOST.into() {
            let what = format!(
                "a calc of {span} ns is more than the {} days that can be replayed",
                WORK_MOST / (86_400 * 1_000_000_000)
            );
            return Err(self.error(place, what));
        }
        self.options(Options::OfCalc)?;
        Ok(RecordedOperation::Compute(Time::from_nanoseconds(span as u64)))
    }

    fn message(&mut self, way: Way, ranks: u32) -> Result<RecordedOperation, TraceError> {
        let bytes = self.bytes()?;
        let preposition = if way == Way::Send { "to" } else { "from" };
        match self.take()? {
            (Token::Word(word), _) if word == preposition => {}
            (other, place) => return Err(self.expected(place, other, &format!("`{preposition}`"))),
        }
        let peer = self.peer(way, ranks)?;
        let tag = self.options(Options::Of(way))?;
        Ok(match (way, peer, tag) {
            (Way::Send, Sender::Rank(to), TagFilter::Is(tag)) => RecordedOperation::Send { to, bytes, tag },
            (_, from, tag) => RecordedOperation::Receive { from, bytes, tag },
        })
    }

    /// `8b` or `8 b`.
    fn bytes(&mut self) -> Result<u64, TraceError> {
        const WHAT: &str = "a number of bytes, for example 8b";
        let (word, place) = self.word(WHAT)?;
        let number = match word.strip_suffix('b') {
            Some(number) => digits(number),
            None => {
                let number = digits(word);
                if number.is_some() {
                    match self.take()? {
                        (Token::Word("b"), _) => {}
                        (other, place) => {
                            return Err(self.expected(place, other, &format!("`b` behind {}", Token::Word(word))));
                        }
                    }
                }
                number
            }
        };
        let Some(bytes) = number else { return Err(self.expected(place, Token::Word(word), WHAT)) };
        if bytes > BYTES_MOST.into() {
            let what = format!("{bytes} bytes are more than the 1 TiB that a message may have");
            return Err(self.error(place, what));
        }
        Ok(bytes as u64)
    }

    /// The rank behind `to` or `from`.
    fn peer(&mut self, way: Way, ranks: u32) -> Result<Sender, TraceError> {
        if self.peek()? == Token::Word("-1") {
            let (_, place) = self.take()?;
            return match way {
                Way::Receive => Ok(Sender::Any),
                Way::Send => {
                    Err(self.error(place, "a send has one receiver: -1 is for `recv … from` alone".to_owned()))
                }
            };
        }
        let (number, place) = self.number("the number of a rank")?;
        if way == Way::Receive && number == ANY_OF_32_BITS.into() {
            return Ok(Sender::Any);
        }
        if number >= ranks.into() {
            return Err(self.error(place, no_such_rank(number, ranks as usize)));
        }
        Ok(Sender::Rank(Rank(number as u32)))
    }

    /// `tag`, `cpu` and `nic`, each with a number, up to the end of the line; returns the tag.
    fn options(&mut self, of: Options) -> Result<TagFilter, TraceError> {
        let expected = match of {
            Options::OfCalc => "`cpu`, `nic` or the end of the line",
            Options::Of(_) => "`tag`, `cpu`, `nic` or the end of the line",
        };
        let mut tag = TagFilter::Is(Tag(0));
        loop {
            match (self.peek()?, of) {
                (Token::Word("tag"), Options::Of(way)) => {
                    self.take()?;
                    tag = self.tag(way)?;
                }
                (Token::Word("cpu" | "nic"), _) => {
                    self.take()?;
                    self.number("a number")?;
                }
                _ => break,
            }
        }
        self.end_of_line(expected)?;
        Ok(tag)
    }

    fn tag(&mut self, way: Way) -> Result<TagFilter, TraceError> {
        if self.peek()? == Token::Word("-1") {
            let (_, place) = self.take()?;
            return match way {
                Way::Receive => Ok(TagFilter::Any),
                Way::Send => Err(self.error(place, "a send has one tag: -1 is for `recv` alone".to_owned())),
            };
        }
        let (tag, place) = self.number("a tag")?;
        let tag = u64::try_from(tag).map_err(|_| self.error(place, "a tag has at most 64 bits".to_owned()))?;
        Ok(TagFilter::Is(Tag(tag)))
    }

    /// Nothing else stands on the line, or `}`.
    fn end_of_line(&mut self, expected: &str) -> Result<(), TraceError> {
        if matches!(self.peek()?, Token::End | Token::Close | Token::EndOfText) {
            return Ok(());
        }
        let (found, place) = self.take()?;
        Err(self.expected(place, found, expected))
    }
}

/// A number of digits alone; the largest one, if it is larger.
fn digits(word: &str) -> Option<u128> {
    let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| word.parse().unwrap_or(u128::MAX))
}

fn no_such_rank(rank: u128, ranks: usize) -> String {
    format!("there is no rank {rank} among the {ranks} of `num_ranks`")
}

#[cfg(test)]
mod tests {
    use crate::Time;
    use crate::flight::Rank;
    use crate::task::{Sender, Tag, TagFilter};
    use crate::workload::{RecordedOperation, Trace};

    fn refusal(text: &str) -> String {
        Trace::parse(text).expect_err("cannot be understood").to_string()
    }

    fn deeds(text: &str, rank: u32) -> Vec<RecordedOperation> {
        let trace = Trace::parse(text).expect("a legal trace");
        trace.operations(rank).iter().map(|operation| operation.deed).collect()
    }

    #[test]
    fn a_trace_is_read_as_others_write_it() {
        let text = "\u{feff}// comment\r\nnum_ranks 2\r\nrank 0{ l1:calc 5 cpu 3\n\
                    l2 : recv 8 b from -1 tag -1 cpu 1 nic 0\nl3: recv 0b from 4294967295\n\
                    l2 requires l1 // comment\nl3 irequires l2 }\nrank 1\n{\n/* two\nlines */\
                    send 16b to 0 nic 0 cpu 1 tag 7}";
        assert_eq!(
            deeds(text, 0),
            [
                RecordedOperation::Compute(Time::from_nanoseconds(5)),
                RecordedOperation::Receive { from: Sender::Any, bytes: 8, tag: TagFilter::Any },
                RecordedOperation::Receive { from: Sender::Any, bytes: 0, tag: TagFilter::Is(Tag(0)) },
            ]
        );
        assert_eq!(deeds(text, 1), [RecordedOperation::Send { to: Rank(0), bytes: 16, tag: Tag(7) }]);
        let second = &Trace::parse(text).unwrap().operations(0)[1];
        assert_eq!((second.line, second.after_end.as_slice()), (4, &[0][..]));
        assert_eq!(Trace::parse(text).unwrap().operations(1)[0].line, 11);
    }

    #[test]
    fn a_line_that_makes_no_sense_is_named_with_what_was_expected() {
        assert_eq!(refusal("num_ranks x"), "line 1, column 11: expected a number of ranks, found `x`");
        assert!(refusal("num_ranks 4000000000").starts_with("line 1, column 11: 4000000000 ranks are more than"));
        assert_eq!(
            refusal("num_ranks 1\nrank 1 {\n}"),
            "line 2, column 6: there is no rank 1 among the 1 of `num_ranks`"
        );
        assert_eq!(
            refusal("calc 5"),
            "line 1, column 1: expected `num_ranks`, with which a trace in GOAL begins, found `calc`"
        );
        assert!(refusal("rank 0 {\n}").starts_with("line 1, column 1: `num_ranks` has to come before"));
        assert_eq!(refusal(" \n"), "this is no trace in GOAL: there is no `num_ranks`");
        assert_eq!(refusal("num_ranks 1\nnum_ranks 1"), "line 2, column 1: `num_ranks` is there twice");
        assert_eq!(refusal("num_ranks 1\nrank 0 {\n}\nrank 0 {\n}"), "line 4, column 6: rank 0 is there twice");
        assert_eq!(refusal("num_ranks 1\nrank 0 {"), "rank 0 has no `}`");
        assert_eq!(refusal("num_ranks 1\n /* a"), "line 2, column 2: the comment that begins here has no `*/`");
    }

    #[test]
    fn an_operation_that_makes_no_sense_is_named_with_what_was_expected() {
        let within = |line: &str| refusal(&format!("num_ranks 2\nrank 0 {{\n/* two\nlines */ l: calc 1\n{line}\n}}"));
        assert_eq!(within("l: calc 2"), "line 5, column 1: `l` is there twice");
        assert_eq!(within("send 8 to 1"), "line 5, column 8: expected `b` behind `8`, found `to`");
        assert_eq!(within("send xb to 1"), "line 5, column 6: expected a number of bytes, for example 8b, found `xb`");
        assert_eq!(within("send 8b to 2"), "line 5, column 12: there is no rank 2 among the 2 of `num_ranks`");
        assert_eq!(within("send 8b from 1"), "line 5, column 9: expected `to`, found `from`");
        assert!(within("send 8b to -1").contains("column 12: a send has one receiver"));
        assert!(within("send 8b to 1 tag -1").contains("column 18: a send has one tag"));
        assert_eq!(within("é requires m"), "line 5, column 1: there is no operation `é` yet");
        assert_eq!(within("l requires m"), "line 5, column 12: there is no operation `m` yet");
        assert_eq!(
            within("jump 3"),
            "line 5, column 1: expected calc, send, recv, requires or irequires, found `jump`"
        );
        assert_eq!(
            within("calc 3 gpu 1"),
            "line 5, column 8: expected `cpu`, `nic` or the end of the line, found `gpu`"
        );
        assert_eq!(within("m:"), "line 5, column 3: expected calc, send or recv, found the end of the line");
        assert_eq!(
            within("calc 1 calc 2"),
            "line 5, column 8: expected `cpu`, `nic` or the end of the line, found `calc`"
        );
        assert_eq!(
            within("l requires l"),
            "line 4: operations of rank 0 wait for each other in a circle; this is one of them"
        );
        assert!(within(&format!("send {}b to 1", "9".repeat(5000))).len() < 200);
        for long in
            ["x".repeat(5000), format!("{} requires l", "x".repeat(5000)), format!("send {} to 1", "0".repeat(5000))]
        {
            assert!(within(&long).len() < 200, "{}", within(&long));
        }
    }

    #[test]
    fn what_cannot_be_replayed_is_refused_with_that_word() {
        for (line, word, column) in [
            ("l1: put 200b to 1 ct 0 tag 10", "put", 5),
            ("append 10b to priority_list allowed 1 ct 0 tag 53", "append", 1),
            ("tput 10b to 0 when 9 reaches 1 ct 5 tag 53", "tput", 1),
            ("l1: test 0 for 1", "test", 5),
        ] {
            let why = refusal(&format!("num_ranks 2\nrank 0 {{\n{line}\n}}"));
            let says = format!("line 3, column {column}: `{word}` is an operation of Portals");
            assert!(why.starts_with(&says) && why.ends_with("can be replayed"), "{why}");
        }
        assert!(refusal("num_ranks 1\nrank 0 {\ncalcgem5 1 8b\n}").contains("`calcgem5` is a program for gem5"));
    }

    #[test]
    fn cut_off_at_any_byte_it_is_refused_or_read_and_does_not_panic() {
        let text =
            "num_ranks 2\nrank 0 {\n l1 :recv 8 b from -1 tag -1 cpu 1 nic 0 /* ü */\nl2:calc 5\nl2 irequires l1\n}\n";
        for (end, _) in text.char_indices() {
            let _ = Trace::parse(&text[..end]);
            let _ = Trace::parse(&text[end..]);
            for stray in ["{", "}", ":", "-1", "b", "\0", "/*", "\n", "18446744073709551616"] {
                let _ = Trace::parse(&[&text[..end], stray, &text[end..]].concat());
            }
        }
    }
}
