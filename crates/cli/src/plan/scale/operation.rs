//! [`Operation`]: what a rank does, in the form in which ranks can be compared, and back into GOAL.
//!
//! Computation that one operation waits for, right behind it, is a part of that: so it does not matter whether some
//! ranks compute between two messages and others do not.

use std::collections::HashMap;
use std::fmt::Write;

use tidegate_sim::workload::{RecordedOperation, Trace};
use tidegate_sim::{Sender, TagFilter, Time};

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Out.
    Send,
    /// In.
    Receive,
    /// Nowhere: nothing but computation.
    Compute,
}

/// What another operation must have done before this one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum After {
    /// It has begun.
    Begin,
    /// It has ended.
    End,
}

/// What must have happened before an operation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// To which operation of the rank.
    pub operation: usize,
    /// What.
    pub after: After,
}

/// One thing that a rank does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Which way its bytes go.
    pub way: Way,
    /// The other end; of no meaning where only is computed.
    pub peer: u32,
    /// Bytes of the message.
    pub bytes: u64,
    /// Its tag.
    pub tag: u64,
    /// How long the rank computes, when all needs are met, before it sends or receives.
    pub compute: Time,
    /// What comes first, in order, each once.
    pub needs: Vec<Need>,
    /// Where the trace has it; 0 where it was made.
    pub line: usize,
}

impl Operation {
    /// As a message says it: `sends 8 B to rank 3, tag 7`.
    pub fn in_words(&self) -> String {
        let Operation { bytes, peer, tag, .. } = self;
        match self.way {
            Way::Send => format!("sends {bytes} B to rank {peer}, tag {tag}"),
            Way::Receive => format!("receives {bytes} B from rank {peer}, tag {tag}"),
            Way::Compute => "computes".to_owned(),
        }
    }
}

/// What a rank of a trace does.
///
/// # Errors
/// If it has a receive for messages of any rank, or with any tag.
pub fn read(trace: &Trace, rank: u32) -> Result<Vec<Operation>, String> {
    let all = trace.operations(rank);
    let mut waiting = vec![0; all.len()];
    for of in all.iter().flat_map(|operation| operation.after_begin.iter().chain(&operation.after_end)) {
        waiting[*of] += 1;
    }
    let mut found: Vec<Operation> = Vec::with_capacity(all.len());
    // Where each of the trace's operations went, and whether it became the computation before another.
    let mut places: Vec<(usize, bool)> = Vec::with_capacity(all.len());
    // The last one, if it was computation alone.
    let mut computed: Option<usize> = None;
    for (at, operation) in all.iter().enumerate() {
        let need = |of: &usize, after: After| {
            let (place, was_merged) = places[*of];
            // Computation before an operation has ended when that has begun.
            Need { operation: place, after: if was_merged { After::Begin } else { after } }
        };
        let waits_for_computation =
            computed.is_some_and(|before| waiting[before] == 1 && operation.after_end.contains(&before));
        let mut needs: Vec<Need> = operation.after_begin.iter().map(|of| need(of, After::Begin)).collect();
        needs.extend(operation.after_end.iter().map(|of| need(of, After::End)));
        let (way, peer, bytes, tag, compute) = match operation.deed {
            RecordedOperation::Compute(span) => (Way::Compute, 0, 0, 0, span),
            RecordedOperation::Send { to, bytes, tag } => (Way::Send, to.0, bytes, tag.0, Time::ZERO),
            RecordedOperation::Receive { from: Sender::Rank(from), bytes, tag: TagFilter::Is(tag) } => {
                (Way::Receive, from.0, bytes, tag.0, Time::ZERO)
            }
            RecordedOperation::Receive { from, .. } => {
                let what = if from == Sender::Any { "from any rank" } else { "with any tag" };
                return Err(format!(
                    "line {}: rank {rank} receives {what}: which message it gets shows only in a run, so no pattern can \
                     be continued to more ranks. A trace of `tidegate record` names the sender and the tag of each message",
                    operation.line
                ));
            }
        };
        let mut merged = Operation { way, peer, bytes, tag, compute, needs, line: operation.line };
        let before = found.len().saturating_sub(1);
        match found.last_mut() {
            Some(last) if waits_for_computation => {
                merged.compute += last.compute;
                merged.needs.retain(|need| need.operation != before);
                merged.needs.append(&mut last.needs);
                *last = merged;
                places[computed.expect("there is one")].1 = true;
            }
            _ => found.push(merged),
        }
        let last = found.len() - 1;
        found[last].needs.sort_unstable();
        found[last].needs.dedup();
        places.push((last, false));
        computed = (way == Way::Compute).then_some(at);
    }
    Ok(found)
}

/// Gives the tags of each pair of ranks numbers from 0 on, in the order in which its sender uses them first. What
/// matches stays as it is, and ranks can be compared whose tags say who they are.
pub fn number_tags(ranks: &mut [Vec<Operation>]) {
    let mut numbers: HashMap<(u32, u32), HashMap<u64, u64>> = HashMap::new();
    for way in [Way::Send, Way::Receive] {
        for (rank, operations) in ranks.iter_mut().enumerate() {
            for operation in operations.iter_mut().filter(|operation| operation.way == way) {
                let rank = rank as u32;
                let pair = if way == Way::Send { (rank, operation.peer) } else { (operation.peer, rank) };
                let known = numbers.entry(pair).or_default();
                let next = known.len() as u64;
                operation.tag = *known.entry(operation.tag).or_insert(next);
            }
        }
    }
}

/// A trace in GOAL of ranks that do this.
pub fn write(ranks: &[Vec<Operation>]) -> String {
    let mut text = format!("num_ranks {}\n", ranks.len());
    for (rank, operations) in ranks.iter().enumerate() {
        let _ = writeln!(text, "rank {rank} {{");
        for (at, operation) in operations.iter().enumerate() {
            let nanoseconds = operation.compute.0 / 1000;
            let computes_first = nanoseconds > 0 && operation.way != Way::Compute;
            if computes_first {
                let _ = writeln!(text, "c{at}: calc {nanoseconds}");
            }
            let begins = if computes_first { "c" } else { "l" };
            let needs: String = operation
                .needs
                .iter()
                .map(|need| {
                    let relation = if need.after == After::End { "requires" } else { "irequires" };
                    format!("{begins}{at} {relation} l{}\n", need.operation)
                })
                .collect();
            if computes_first {
                text.push_str(&needs);
            }
            let Operation { bytes, peer, tag, .. } = operation;
            let _ = match operation.way {
                Way::Send => writeln!(text, "l{at}: send {bytes}b to {peer} tag {tag}"),
                Way::Receive => writeln!(text, "l{at}: recv {bytes}b from {peer} tag {tag}"),
                Way::Compute => writeln!(text, "l{at}: calc {nanoseconds}"),
            };
            text.push_str(&if computes_first { format!("l{at} requires c{at}\n") } else { needs });
        }
        text.push_str("}\n");
    }
    text
}
