//! [`Summary`]: what is in a trace, and what is not.

use serde_json::{Value, json};
use tidegate_message::Unit;

use super::job::Job;
use super::left::{End, Process, Step};
use super::pairing::Pairs;
use crate::report::units::human;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Ranks of the trace.
    pub ranks: u32,
    /// Of these, those that left nothing.
    pub absent: Vec<u32>,
    /// Messages that are in it, and what is not.
    pub pairs: Pairs,
    /// Nanoseconds that all ranks computed.
    pub computed: u64,
    /// The most of a rank.
    pub computed_most: u64,
    /// Waits for sends that were moved, so that a replay cannot hang.
    pub waits_moved: u64,
    /// Ranks whose recording ended before they did, because it was as long as it may be or the disk was full.
    pub full: Vec<u32>,
    /// Ranks whose recording is damaged.
    pub damaged: Vec<u32>,
    /// Operations on the memory of peers, which are left out.
    pub remote_operations: u64,
    /// Bytes that they moved.
    pub remote_bytes: u64,
}

impl Summary {
    /// The summary of a job whose messages are paired and whose waits are in order.
    pub fn of(job: &Job, pairs: &Pairs, waits_moved: u64) -> Self {
        let computed = |process: &Process| {
            let spans = process.course.iter().map(|step| if let Step::Compute(span) = step { *span } else { 0 });
            spans.fold(0, u64::saturating_add)
        };
        let ended = |end: End| -> Vec<u32> {
            let all = job.processes.iter().zip(&job.ranks);
            all.filter(|(process, _)| process.end == end).map(|(_, rank)| *rank).collect()
        };
        Summary {
            ranks: job.size,
            absent: job.absent(),
            pairs: pairs.clone(),
            computed: job.processes.iter().map(computed).fold(0, u64::saturating_add),
            computed_most: job.processes.iter().map(computed).max().unwrap_or(0),
            waits_moved,
            full: ended(End::Full),
            damaged: ended(End::Damaged),
            remote_operations: job.processes.iter().map(|process| process.remote_operations).sum(),
            remote_bytes: job.processes.iter().map(|process| process.remote_bytes).sum(),
        }
    }

    /// What is in the trace, in words.
    pub fn content(&self) -> String {
        let count = |value| human(value, Unit::Count);
        format!(
            "{} ranks, {} messages of {}, computation {} of all ranks, {} of one at most",
            self.ranks,
            count(self.pairs.messages),
            human(self.pairs.bytes, Unit::Bytes),
            human(self.computed, Unit::Nanoseconds),
            human(self.computed_most, Unit::Nanoseconds),
        )
    }

    /// What is not in it, or not as it was, each in a sentence.
    pub fn gaps(&self) -> Vec<String> {
        let (count, bytes) = (|value| human(value, Unit::Count), |value| human(value, Unit::Bytes));
        let Pairs { sends_cut, sends_cut_bytes, receives_cut, disagreements, .. } = self.pairs;
        let mut gaps = Vec::new();
        let mut say = |if_so: bool, text: String| gaps.extend(Some(text).filter(|_| if_so));
        let absent = format!(
            "{} left nothing: their messages are not in the trace (ranks on other hosts need --shared)",
            ranks(&self.absent)
        );
        say(!self.absent.is_empty(), absent);
        let full = format!(
            "the recording of {} ended early, because it was as long as it may be (--most) or the disk was full: what \
             followed is not in the trace",
            ranks(&self.full)
        );
        say(!self.full.is_empty(), full);
        say(
            !self.damaged.is_empty(),
            format!("the recording of {} is damaged: the rest is left out", ranks(&self.damaged)),
        );
        let cut = format!(
            "{} sends ({}) were left out because nobody received them as far as was recorded, and {} receives because \
             their sends are missing",
            count(sends_cut),
            bytes(sends_cut_bytes),
            count(receives_cut)
        );
        say(sends_cut + receives_cut > 0, cut);
        let remote = format!(
            "{} operations on other ranks' memory (MPI_Put, MPI_Get, MPI_Accumulate and such; {}) are not in the trace",
            count(self.remote_operations),
            bytes(self.remote_bytes)
        );
        say(self.remote_operations > 0, remote);
        let odd = format!("of {} messages sender and receiver do not tell the same length", count(disagreements));
        say(disagreements > 0, odd);
        gaps
    }

    /// All of it for programs.
    pub fn json(&self) -> Value {
        json!({
            "ranks": self.ranks,
            "ranks_absent": self.absent,
            "messages": self.pairs.messages,
            "bytes": self.pairs.bytes,
            "computation_ns": self.computed,
            "computation_max_ns": self.computed_most,
            "sends_cut": self.pairs.sends_cut,
            "sends_cut_bytes": self.pairs.sends_cut_bytes,
            "receives_cut": self.pairs.receives_cut,
            "lengths_that_differ": self.pairs.disagreements,
            "waits_moved": self.waits_moved,
            "ranks_full": self.full,
            "ranks_damaged": self.damaged,
            "remote_operations": self.remote_operations,
            "remote_bytes": self.remote_bytes,
        })
    }
}

/// Ranks in words; of many, the first few.
fn ranks(ranks: &[u32]) -> String {
    const FEW: usize = 8;
    let named: Vec<String> = ranks.iter().take(FEW).map(u32::to_string).collect();
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    let rest = if ranks.len() > FEW { format!(" and {} more", ranks.len() - FEW) } else { String::new() };
    format!("{noun} {}{rest}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Trace;
    use crate::trace::left::tests::{message, process};
    use tidegate_fi::trace::format::Record;

    #[test]
    fn a_summary_says_what_is_there_and_what_is_not() {
        let sends = [
            Record::Send { number: 0, message: message(1, 7) },
            Record::Compute(2000),
            Record::Send { number: 1, message: message(1, 7) },
            Record::Remote { bytes: 64 },
        ];
        let receives = [Record::Receive { number: 0 }, Record::Met { number: 0, message: message(0, 7) }];
        let mut second = process(1, 3, &receives);
        second.end = End::Full;
        let summary = Trace::of(Job::all(vec![process(0, 3, &sends), second]).remove(0)).summary;
        assert_eq!(
            summary.content(),
            "3 ranks, 1 messages of 8 B, computation 2.00 µs of all ranks, 2.00 µs of one at most"
        );
        let gaps = summary.gaps();
        let expected =
            ["rank 2 left nothing", "recording of rank 1 ended", "1 sends (8 B) were left out", "1 operations"];
        assert_eq!(gaps.len(), expected.len(), "{gaps:?}");
        for (gap, expected) in gaps.iter().zip(expected) {
            assert!(gap.contains(expected), "{gap}");
        }
        assert_eq!(summary.json()["ranks_full"], json!([1]));
    }

    #[test]
    fn many_ranks_are_not_all_named() {
        assert_eq!(ranks(&[3]), "rank 3");
        assert_eq!(ranks(&(0..20).collect::<Vec<_>>()), "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more");
    }
}
