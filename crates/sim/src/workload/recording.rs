//! What a program does, without a machine: its computations and messages in order, and which of them waits for which;
//! to count them, or to write them down as a trace in GOAL.

use std::collections::HashMap;
use std::fmt;
use std::task::{Context, Poll, Waker};

use crate::Time;
use crate::buffer::{Contents, Memory};
use crate::flight::Rank;
use crate::task::{Call, Delivery, Program, Sender, Tag, TagFilter, Task};

/// What a program does at one point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedOperation {
    /// It computes, or moves bytes within its memory; the latter takes no time here.
    Compute(Time),
    /// It starts to send.
    Send {
        /// To whom.
        to: Rank,
        /// How much.
        bytes: u64,
        /// The message's tag.
        tag: Tag,
    },
    /// It starts to receive.
    Receive {
        /// From whom.
        from: Sender,
        /// How much at most.
        bytes: u64,
        /// The message's tag.
        tag: TagFilter,
    },
}

impl RecordedOperation {
    /// Whether it belongs to a collective operation.
    #[must_use]
    pub fn is_collective(self) -> bool {
        match self {
            RecordedOperation::Compute(_) | RecordedOperation::Receive { tag: TagFilter::Any, .. } => false,
            RecordedOperation::Send { tag, .. } | RecordedOperation::Receive { tag: TagFilter::Is(tag), .. } => {
                super::communicator::is_collective(tag)
            }
        }
    }
}

/// A deed, and the deeds before it that must have ended, by their numbers. All before it must have begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is done.
    pub deed: RecordedOperation,
    /// What has ended by then that the step before had not waited for.
    pub after: Vec<usize>,
}

/// What one process of a program does.
///
/// # Errors
/// If what it does depends on what other processes do: a receive from anybody. The text says so.
pub fn record(program: &impl Program, rank: Rank, size: u32) -> Result<Vec<Step>, String> {
    let task = Task::new(rank, size, u64::MAX, Memory::new(Contents::Lengths));
    let mut run = program.start(task.clone());
    let mut steps: Vec<Step> = Vec::new();
    let mut after = Vec::new();
    let mut under_way: HashMap<u32, (usize, Delivery)> = HashMap::new();
    while run.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Pending {
        let mut state = task.state().borrow_mut();
        if let Some(call) = state.take_call() {
            let deed = match call {
                Call::Send { to, tag, part, operation } => {
                    let delivery = Delivery { peer: to, tag, length: part.length };
                    under_way.insert(operation, (steps.len(), delivery));
                    RecordedOperation::Send { to, bytes: part.length, tag }
                }
                Call::Receive { from: Sender::Rank(from), tag: TagFilter::Is(tag), part, operation } => {
                    let delivery = Delivery { peer: from, tag, length: part.length };
                    under_way.insert(operation, (steps.len(), delivery));
                    RecordedOperation::Receive { from: from.into(), bytes: part.length, tag: tag.into() }
                }
                Call::Receive { .. } => {
                    return Err(format!("rank {} receives from anybody: whose message it gets is not known", rank.0));
                }
                Call::Compute(span) => RecordedOperation::Compute(span),
                Call::Copy { .. } | Call::Combine { .. } | Call::Credits(_) | Call::Counter(_) => continue,
            };
            steps.push(Step { deed, after: std::mem::take(&mut after) });
        } else if let Some(operation) = state.next_awaited() {
            let Some((step, delivery)) = under_way.remove(&operation) else {
                return Err(format!("rank {} waits for what has not begun", rank.0));
            };
            after.push(step);
            state.complete(operation, delivery);
        } else {
            return Err(format!("rank {} waits for nothing that ends", rank.0));
        }
    }
    Ok(steps)
}

/// A program of so many processes as a trace in GOAL.
///
/// # Errors
/// As [`record`].
pub fn goal(program: &impl Program, size: u32) -> Result<String, String> {
    let mut text = format!("num_ranks {size}\n");
    for rank in 0..size {
        let steps = record(program, Rank(rank), size)?;
        write_rank(&mut text, rank, steps).map_err(|error| error.to_string())?;
    }
    Ok(text)
}

/// One rank of a trace in GOAL, behind the line `num_ranks` and the ranks before it.
///
/// # Errors
/// Those of `text`.
pub fn write_rank(text: &mut impl fmt::Write, rank: u32, steps: impl IntoIterator<Item = Step>) -> fmt::Result {
    writeln!(text, "rank {rank} {{")?;
    let mut was_computing = false;
    for (number, Step { deed, after }) in steps.into_iter().enumerate() {
        match deed {
            RecordedOperation::Compute(span) => {
                writeln!(text, "l{number}: calc {}", span.nanoseconds().round() as u64)?
            }
            RecordedOperation::Send { to, bytes, tag } => {
                writeln!(text, "l{number}: send {bytes}b to {} tag {}", to.0, tag.0)?
            }
            RecordedOperation::Receive { from, bytes, tag } => {
                write!(text, "l{number}: recv {bytes}b from ")?;
                match from {
                    Sender::Any => text.write_str("-1")?,
                    Sender::Rank(from) => write!(text, "{}", from.0)?,
                }
                match tag {
                    TagFilter::Any => text.write_str(" tag -1\n")?,
                    TagFilter::Is(tag) => writeln!(text, " tag {}", tag.0)?,
                }
            }
        }
        if number > 0 {
            let relation = if was_computing { "requires" } else { "irequires" };
            writeln!(text, "l{number} {relation} l{}", number - 1)?;
        }
        for ended in after {
            writeln!(text, "l{number} requires l{ended}")?;
        }
        was_computing = matches!(deed, RecordedOperation::Compute(_));
    }
    text.write_str("}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Trace;

    #[test]
    fn a_program_is_written_down_and_read_again() {
        let program = |task: Task| async move {
            let part = task.allocate(8);
            task.compute(Time::from_microseconds(3)).await;
            let other = Rank(1 - task.rank().0);
            let coming = task.start_receive(other, Tag(5), part).await;
            task.send(other, Tag(5), part).await;
            task.wait(coming).await;
        };
        let steps = record(&program, Rank(0), 2).unwrap();
        let send = RecordedOperation::Send { to: Rank(1), bytes: 8, tag: Tag(5) };
        assert_eq!(steps.iter().map(|step| step.deed).nth(2), Some(send));
        let text = goal(&program, 2).unwrap();
        assert!(text.contains("l1 requires l0\nl2: send 8b to 1 tag 5\nl2 irequires l1\n"), "{text}");
        assert_eq!(Trace::parse(&text).unwrap().messages(), (2, 16));
    }

    #[test]
    fn what_waits_for_a_message_is_behind_it() {
        let program = |task: Task| async move {
            let part = task.allocate(8);
            if task.rank().0 == 0 {
                task.receive(Rank(1), Tag(1), part).await;
                task.send(Rank(1), Tag(2), part).await;
            } else {
                task.send(Rank(0), Tag(1), part).await;
                task.receive(Rank(0), Tag(2), part).await;
            }
        };
        let steps = record(&program, Rank(0), 2).unwrap();
        assert_eq!(steps[1].after, [0], "the answer waits for the question");
    }

    #[test]
    fn a_receive_from_anybody_cannot_be_written_down() {
        let program = |task: Task| async move {
            let part = task.allocate(8);
            task.receive(Sender::Any, Tag(1), part).await;
        };
        assert!(record(&program, Rank(0), 2).unwrap_err().contains("from anybody"));
    }
}
