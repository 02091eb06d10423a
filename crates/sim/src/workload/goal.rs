//! Replay of traces in GOAL, the text format of LogGOPSim and ATLAHS.
//!
//! A trace has a graph of operations for each rank: `calc` with a number of nanoseconds, `send` and `recv` with a
//! number of bytes. `requires` says that one operation can begin only when another has ended, `irequires`, when another
//! has begun:
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   work: calc 1000
//!   out: send 2048b to 1 tag 7
//!   out requires work
//! }
//! rank 1 {
//!   in: recv 2048b from 0 tag 7
//! }
//! ```
//!
//! An operation begins as soon as it can; of several, in the order of the file. A process has one processor here: `cpu`
//! and `nic` numbers are read and not used. Comments begin with `//` or stand in `/* … */`.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use super::RecordedOperation;
use crate::Time;
use crate::flight::Rank;
use crate::task::{Request, Tag, Task};

/// A bundled trace, of our own making: 16 ranks, a 4×4 halo exchange with long and short edges, and a reduction after
/// each of five steps.
pub const HALO: &str = include_str!("../../traces/halo16.goal");

/// A number of ranks beyond this one is a mistake, for which nobody wants all memory to be taken.
const RANKS_MOST: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Operation {
    action: RecordedOperation,
    /// Where the trace has it, counted from 1.
    line: usize,
    /// How many beginnings or ends of other operations it still waits for.
    needs: u32,
    /// Operations that need this one to have begun, and to have ended.
    after_begin: Vec<u32>,
    after_end: Vec<u32>,
}

/// A trace, ready to be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    ranks: Arc<[Vec<Operation>]>,
}

/// An operation of a trace, for those who look at it. Other operations of its rank are named by their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOperation {
    /// What it does.
    pub deed: RecordedOperation,
    /// Where the trace has it, counted from 1.
    pub line: usize,
    /// The operations that must have begun before it begins.
    pub after_begin: Vec<usize>,
    /// The operations that must have ended before it begins.
    pub after_end: Vec<usize>,
}

/// Where a trace cannot be understood, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Line, counted from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.what),
            line => write!(f, "line {line}: {}", self.what),
        }
    }
}

impl std::error::Error for TraceError {}

/// The operations of the rank that is being read, and the lines that made them.
#[derive(Default)]
struct Graph {
    operations: Vec<Operation>,
    labels: HashMap<String, u32>,
}

impl Trace {
    /// Reads a trace.
    ///
    /// # Errors
    /// If a line is none that the format has, names what does not exist, or operations wait for each other in a circle.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut ranks: Vec<Option<Graph>> = Vec::new();
        let mut open: Option<usize> = None;
        for (index, line) in without_comments(text).lines().enumerate() {
            let error = |what: String| TraceError { line: index + 1, what };
            let words: Vec<&str> = line.split_whitespace().collect();
            match (open, words.as_slice()) {
                (_, []) => {}
                (None, ["num_ranks", count]) => {
                    let count: usize = count.parse().map_err(|_| error(format!("`{count}` is no number of ranks")))?;
                    if count > RANKS_MOST {
                        return Err(error(format!(
                            "{count} ranks are more than the {RANKS_MOST} that can be replayed"
                        )));
                    }
                    ranks.resize_with(count, || None);
                }
                (None, ["rank", rank, "{"]) => {
                    let number = rank.parse().ok().filter(|&number| number < ranks.len());
                    let number: usize = number.ok_or_else(|| error(format!("there is no rank `{rank}`")))?;
                    if ranks[number].replace(Graph::default()).is_some() {
                        return Err(error(format!("rank {number} is there twice")));
                    }
                    open = Some(number);
                }
                (Some(_), ["}"]) => open = None,
                (Some(rank), words) => {
                    let count = ranks.len() as u32;
                    let graph = ranks[rank].get_or_insert_default();
                    graph.read(words, count, index + 1).map_err(error)?;
                }
                (None, _) => return Err(error(format!("`{}` is outside of any rank", line.trim()))),
            }
        }
        if let Some(rank) = open {
            return Err(TraceError { line: 0, what: format!("rank {rank} has no `}}`") });
        }
        let ranks: Vec<_> = ranks.into_iter().map(|graph| graph.unwrap_or_default().operations).collect();
        for (rank, operations) in ranks.iter().enumerate() {
            if !can_end(operations) {
                let what = format!("operations of rank {rank} wait for each other in a circle");
                return Err(TraceError { line: 0, what });
            }
        }
        Ok(Trace { ranks: ranks.into() })
    }

    /// How many ranks it has.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// Messages of all ranks, and their bytes.
    #[must_use]
    pub fn messages(&self) -> (u64, u64) {
        let sends = self.ranks.iter().flatten().filter_map(|operation| match operation.action {
            RecordedOperation::Send { bytes, .. } => Some(bytes),
            RecordedOperation::Compute(_) | RecordedOperation::Receive { .. } => None,
        });
        sends.fold((0, 0), |(count, total), bytes| (count + 1, total + bytes))
    }

    /// What a rank does, in the order of the file; nothing if the trace does not have the rank.
    #[must_use]
    pub fn operations(&self, rank: u32) -> Vec<TraceOperation> {
        let operations = self.ranks.get(rank as usize).map_or(&[][..], Vec::as_slice);
        let seen = |operation: &Operation| TraceOperation {
            deed: operation.action,
            line: operation.line,
            after_begin: Vec::new(),
            after_end: Vec::new(),
        };
        let mut all: Vec<TraceOperation> = operations.iter().map(seen).collect();
        for (place, operation) in operations.iter().enumerate() {
            for &waiting in &operation.after_begin {
                all[waiting as usize].after_begin.push(place);
            }
            for &waiting in &operation.after_end {
                all[waiting as usize].after_end.push(place);
            }
        }
        all
    }

    /// Replays the rank's part. Ranks that the trace does not have do nothing.
    pub async fn replay(&self, task: &Task) {
        let Some(operations) = self.ranks.get(task.rank().0 as usize) else { return };
        let mut needs: Vec<u32> = operations.iter().map(|operation| operation.needs).collect();
        let mut ready: VecDeque<u32> = (0..operations.len() as u32).filter(|&at| needs[at as usize] == 0).collect();
        let (mut requests, mut running): (Vec<Request>, Vec<u32>) = (Vec::new(), Vec::new());
        loop {
            while let Some(at) = ready.pop_front() {
                let operation = &operations[at as usize];
                release(&operation.after_begin, &mut needs, &mut ready);
                match operation.action {
                    RecordedOperation::Compute(span) => {
                        task.compute(span).await;
                        release(&operation.after_end, &mut needs, &mut ready);
                        continue;
                    }
                    RecordedOperation::Send { to, bytes, tag } => {
                        requests.push(task.start_send(to, tag, task.allocate(bytes)).await);
                    }
                    RecordedOperation::Receive { from, bytes, tag } => {
                        requests.push(task.start_receive(from, tag, task.allocate(bytes)).await);
                    }
                }
                running.push(at);
            }
            if requests.is_empty() {
                return;
            }
            let (place, _) = task.wait_any(&mut requests).await;
            let ended = running.swap_remove(place);
            release(&operations[ended as usize].after_end, &mut needs, &mut ready);
        }
    }
}

/// An event has happened that these operations wait for. Those that wait for no other one become ready.
fn release(waiting: &[u32], needs: &mut [u32], ready: &mut VecDeque<u32>) {
    for &at in waiting {
        needs[at as usize] -= 1;
        if needs[at as usize] == 0 {
            ready.push_back(at);
        }
    }
}

/// Whether all operations can begin: whether no operations wait for each other in a circle.
fn can_end(operations: &[Operation]) -> bool {
    let mut needs: Vec<u32> = operations.iter().map(|operation| operation.needs).collect();
    let mut ready: VecDeque<u32> = (0..operations.len() as u32).filter(|&at| needs[at as usize] == 0).collect();
    let mut reached = 0;
    while let Some(at) = ready.pop_front() {
        reached += 1;
        let operation = &operations[at as usize];
        release(&operation.after_begin, &mut needs, &mut ready);
        release(&operation.after_end, &mut needs, &mut ready);
    }
    reached == operations.len()
}

impl Graph {
    /// Reads a line within a rank.
    fn read(&mut self, words: &[&str], ranks: u32, line: usize) -> Result<(), String> {
        if let [waiting, relation @ ("requires" | "irequires"), needed] = words {
            let find =
                |label: &str| self.labels.get(label).copied().ok_or(format!("there is no operation `{label}` yet"));
            let (waiting, needed) = (find(waiting)?, find(needed)?);
            self.operations[waiting as usize].needs += 1;
            let needed = &mut self.operations[needed as usize];
            let list = if *relation == "requires" { &mut needed.after_end } else { &mut needed.after_begin };
            list.push(waiting);
            return Ok(());
        }
        let (label, words) = match words {
            [first, rest @ ..] => match first.strip_suffix(':') {
                Some(label) => (Some(label), rest),
                None => (None, words),
            },
            [] => return Ok(()),
        };
        let action = read_action(words, ranks)?;
        if let Some(label) = label
            && self.labels.insert(label.to_owned(), self.operations.len() as u32).is_some()
        {
            return Err(format!("`{label}` is there twice"));
        }
        self.operations.push(Operation { action, line, needs: 0, after_begin: Vec::new(), after_end: Vec::new() });
        Ok(())
    }
}

fn read_action(words: &[&str], ranks: u32) -> Result<RecordedOperation, String> {
    let number = |word: &str| word.parse::<u64>().map_err(|_| format!("`{word}` is no number"));
    let bytes = |word: &str| {
        let digits = word.strip_suffix('b').ok_or(format!("`{word}` is no size: write for example 8b"))?;
        number(digits)
    };
    let rank = |word: &str| {
        let rank = number(word)?;
        u32::try_from(rank).ok().filter(|&rank| rank < ranks).map(Rank).ok_or(format!("there is no rank {rank}"))
    };
    match words {
        ["calc", span, rest @ ..] => {
            read_options(rest)?;
            Ok(RecordedOperation::Compute(Time::from_nanoseconds(number(span)?)))
        }
        ["send", size, "to", to, rest @ ..] => {
            Ok(RecordedOperation::Send { to: rank(to)?, bytes: bytes(size)?, tag: read_options(rest)? })
        }
        ["recv", size, "from", from, rest @ ..] => {
            Ok(RecordedOperation::Receive { from: rank(from)?, bytes: bytes(size)?, tag: read_options(rest)? })
        }
        _ => Err(format!("`{}` is neither calc, send, recv, requires nor irequires", words.join(" "))),
    }
}

/// Reads `tag`, `cpu` and `nic`, each with a number; returns the tag.
fn read_options(words: &[&str]) -> Result<Tag, String> {
    let mut tag = Tag(0);
    for pair in words.chunks(2) {
        let [name @ ("tag" | "cpu" | "nic"), value] = pair else {
            return Err(format!("`{}` is neither tag, cpu nor nic with a number", pair.join(" ")));
        };
        let value = value.parse().map_err(|_| format!("`{value}` is no number"))?;
        if *name == "tag" {
            tag = Tag(value);
        }
    }
    Ok(tag)
}

/// The text with comments blanked out; lines stay where they are.
fn without_comments(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('/') {
        let (before, comment) = rest.split_at(start);
        result.push_str(before);
        let length = match comment.get(..2) {
            Some("//") => comment.find('\n').unwrap_or(comment.len()),
            Some("/*") => comment.find("*/").map_or(comment.len(), |end| end + 2),
            _ => {
                result.push('/');
                rest = &comment[1..];
                continue;
            }
        };
        result.extend(comment[..length].chars().filter(|&character| character == '\n'));
        rest = &comment[length..];
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Trace::parse(text).expect_err("cannot be understood").to_string()
    }

    #[test]
    fn the_bundled_trace_is_what_it_says() {
        let trace = Trace::parse(HALO).expect("a legal trace");
        assert_eq!(trace.size(), 16);
        // Per step 4 neighbours each, and 30 messages up and down a binomial tree.
        assert_eq!(trace.messages().0, 5 * (16 * 4 + 30));
    }

    #[test]
    fn lines_that_make_no_sense_are_named() {
        assert_eq!(refusal("num_ranks x"), "line 1: `x` is no number of ranks");
        assert!(refusal("num_ranks 4000000000").starts_with("line 1: 4000000000 ranks are more than"));
        assert_eq!(refusal("num_ranks 1\nrank 1 {\n}"), "line 2: there is no rank `1`");
        assert_eq!(refusal("calc 5"), "line 1: `calc 5` is outside of any rank");
        let within = |line: &str| refusal(&format!("num_ranks 2\nrank 0 {{\n/* two\nlines */ l: calc 1\n{line}\n}}"));
        assert_eq!(within("l: calc 2"), "line 5: `l` is there twice");
        assert_eq!(within("send 8 to 1"), "line 5: `8` is no size: write for example 8b");
        assert_eq!(within("send 8b to 2"), "line 5: there is no rank 2");
        assert_eq!(within("l requires m"), "line 5: there is no operation `m` yet");
        assert_eq!(within("jump 3"), "line 5: `jump 3` is neither calc, send, recv, requires nor irequires");
        assert_eq!(within("calc 3 gpu 1"), "line 5: `gpu 1` is neither tag, cpu nor nic with a number");
        assert_eq!(within("l requires l"), "operations of rank 0 wait for each other in a circle");
        assert_eq!(refusal("num_ranks 1\nrank 0 {"), "rank 0 has no `}`");
    }
}
