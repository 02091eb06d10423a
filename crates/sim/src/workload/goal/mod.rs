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
//! An operation begins as soon as it can; of several, in the order of the file. `-1` behind `from` or `tag` of a `recv`
//! stands for any rank and for any tag: the message is the first that has come, as in MPI, and the order of each pair
//! of ranks is kept. A process has one processor here: `cpu` and `nic` numbers are read and not used. Comments begin
//! with `//` or stand in `/* … */`.
//!
//! * `graph.rs`: the operations of a rank, and what each of them waits for;
//! * `tokens.rs`: a text in words, each with its line and column;
//! * `reading.rs`: the grammar;
//! * `pairs.rs`: messages that no receive accepts or has room for.

mod graph;
mod pairs;
mod reading;
mod tokens;

use std::collections::VecDeque;
use std::sync::Arc;

use super::RecordedOperation;
use crate::task::{Request, Sender, TagFilter, Task};

use graph::{Operation, release};
pub use pairs::check_messages;
pub use reading::WORK_MOST;
pub use tokens::TraceError;

/// A bundled trace, of our own making: 16 ranks, a 4×4 halo exchange with long and short edges, and a reduction after
/// each of five steps.
pub const HALO: &str = include_str!("../../../traces/halo16.goal");

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

impl Trace {
    /// Reads a trace.
    ///
    /// # Errors
    /// If a line is none that the format has, names what does not exist, or operations wait for each other in a circle.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        Ok(Trace { ranks: reading::read(text)?.into() })
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

    /// The line of the first receive that accepts messages of any rank or with any tag, if there is one.
    #[must_use]
    pub fn first_wildcard(&self) -> Option<usize> {
        let is_wildcard = |operation: &&Operation| match operation.action {
            RecordedOperation::Receive { from, tag, .. } => from == Sender::Any || tag == TagFilter::Any,
            RecordedOperation::Compute(_) | RecordedOperation::Send { .. } => false,
        };
        self.ranks.iter().flatten().filter(is_wildcard).map(|operation| operation.line).min()
    }

    /// How a replay that came to a stop is explained by receives that accept any rank or any tag, if there are any.
    #[must_use]
    pub fn advice_on_deadlock(&self) -> Option<String> {
        let line = self.first_wildcard()?;
        Some(format!(
            "The trace has receives from any rank or with any tag, the first in line {line}: they take the first message that \
             comes, and one of them may have taken a message that another receive waits for. If so, name the sender and the \
             tag that they had."
        ))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_trace_is_what_it_says() {
        let trace = Trace::parse(HALO).expect("a legal trace");
        assert_eq!(trace.size(), 16);
        // Per step 4 neighbours each, and 30 messages up and down a binomial tree.
        assert_eq!(trace.messages().0, 5 * (16 * 4 + 30));
    }
}
