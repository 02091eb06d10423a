//! What the report says of receive memory: one line always, and where sends found no room, a table of the ranks
//! concerned and advice.

use std::fmt::Write;

use comfy_table::Table;
use tidegate_message::{Counter, Unit};

use crate::arguments::Ranks;
use crate::report::table::{self, Column, FEW, label, push_table};
use crate::report::units::human;
use crate::report::width::Width;
use crate::report::{Job, Process, distinct};

/// Counters that the line shows for the job, so that the job's table leaves them out: most often they are the same for
/// all ranks.
pub const IN_THE_LINE: [Counter; 3] = [Counter::ReceiveBound, Counter::ReceiveFixedBytes, Counter::WindowBytes];

/// Columns of the table: a header of a few lines, and the counter.
const COLUMNS: [(&str, Counter); 9] = [
    ("bound", Counter::ReceiveBound),
    ("fixed\npart", Counter::ReceiveFixedBytes),
    ("least\nwindow", Counter::WindowBytes),
    ("peak", Counter::ReceivePeak),
    ("time under\npressure", Counter::PressureNanoseconds),
    ("envelopes\ndropped", Counter::EnvelopesDropped),
    ("queries", Counter::Queries),
    ("sends\ndeferred", Counter::SendsDeferred),
    ("deferral\nnotices", Counter::DeferralNotices),
];

/// How many receivers the advice names one by one.
const NAMED: usize = 4;

/// The bound, what of it is fixed, what is set aside for each sender, and how much was used; empty if no endpoint told
/// its bound.
pub fn line(job: &Job) -> String {
    let of = |counter| distinct(job, &|process| human(process.get(counter), Unit::Bytes));
    let Some(peak) = job.spread(Counter::ReceivePeak).filter(|_| has_bound(job)) else { return String::new() };
    let at = if peak.min == peak.max { String::new() } else { format!(" ({})", label(&job.processes()[peak.max_at])) };
    format!(
        "tidegate: receive memory of an endpoint at most {}, fixed part {}, window of each sender at least {}; peak {}{at}\n{}",
        of(Counter::ReceiveBound),
        of(Counter::ReceiveFixedBytes),
        of(Counter::WindowBytes),
        human(peak.max, Unit::Bytes),
        few_sessions(job),
    )
}

/// Where receive memory is not enough for all to send at a time: for how many it is, and what to do.
fn few_sessions(job: &Job) -> String {
    let Some(sessions) = job.spread(Counter::Sessions).filter(|sessions| sessions.max > 0) else {
        return String::new();
    };
    let few = job.processes().iter().map(|process| process.get(Counter::Sessions)).filter(|sessions| *sessions > 0);
    format!(
        "tidegate: that is enough for {} senders at a time: the others ask before they send, and wait; more receive memory \
         (--rx-memory) or fewer peers (--peers) spare them that\n",
        few.min().unwrap_or(sessions.max)
    )
}

fn has_bound(job: &Job) -> bool {
    job.spread(Counter::ReceiveBound).is_some_and(|bound| bound.max > 0)
}

/// The ranks that deferred sends or had sends deferred for them, with advice; empty if there is none.
pub fn pressure(job: &Job, ranks: Ranks, width: Width) -> String {
    let concerned: Vec<&Process> = job.processes().iter().filter(|process| is_concerned(process)).collect();
    let mut text = String::new();
    if concerned.is_empty() {
        return text;
    }
    let shown = match ranks {
        Ranks::None => Vec::new(),
        Ranks::All => concerned.clone(),
        Ranks::Auto | Ranks::Top => most_concerned(&concerned),
    };
    text += "\n";
    if !shown.is_empty() {
        let tables: Vec<String> = tables(&shown, width)
            .into_iter()
            .map(|table| {
                let mut text = String::new();
                push_table(&mut text, table);
                text
            })
            .collect();
        text += &tables.join("\n");
        let rest = concerned.len() - shown.len();
        if rest > 0 {
            let _ = writeln!(text, "  and {rest} more: --ranks all");
        }
    }
    text += &advice(job);
    text
}

fn is_concerned(process: &Process) -> bool {
    process.get(Counter::SendsDeferred) > 0 || process.get(Counter::EnvelopesDropped) > 0
}

/// The [`FEW`] processes with most dropped envelopes and deferred sends, in the order given.
fn most_concerned<'a>(concerned: &[&'a Process]) -> Vec<&'a Process> {
    let weight = |process: &Process| {
        let of = |counter| process.get(counter);
        (of(Counter::EnvelopesDropped).saturating_add(of(Counter::SendsDeferred)), of(Counter::PressureNanoseconds))
    };
    let mut order: Vec<usize> = (0..concerned.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(weight(concerned[index])));
    order.truncate(FEW);
    order.sort_unstable();
    order.into_iter().map(|index| concerned[index]).collect()
}

fn tables(processes: &[&Process], width: Width) -> Vec<Table> {
    let columns = COLUMNS.iter().map(|(header, counter)| Column {
        header: (*header).to_owned(),
        cells: processes.iter().map(|process| human(process.get(*counter), counter.unit())).collect(),
    });
    let cells = processes.iter().map(|process| label(process)).collect();
    let first = Column { header: "receive\nmemory".to_owned(), cells };
    table::tables(&first, &columns.collect::<Vec<_>>(), width)
}

/// Who had no room, what that cost, and what helps.
fn advice(job: &Job) -> String {
    let sum = |counter| job.spread(counter).map_or(0, |spread| spread.job);
    let deferred = human(sum(Counter::SendsDeferred), Unit::Count);
    let sends = if deferred == "1" { "send" } else { "sends" };
    let mut receivers: Vec<&Process> =
        job.processes().iter().filter(|process| process.get(Counter::EnvelopesDropped) > 0).collect();
    receivers.sort_by_key(|process| std::cmp::Reverse(process.get(Counter::EnvelopesDropped)));
    if receivers.is_empty() {
        return format!(
            "tidegate: {deferred} {sends} waited a moment for room in receivers' memory; a larger FI_TIDEGATE_RX_MEMORY \
             (--rx-memory) avoids that.\n"
        );
    }
    let longest = receivers.iter().map(|process| process.get(Counter::PressureNanoseconds)).max().unwrap_or(0);
    let time = match longest {
        // A process that was killed while peers deferred sends has not counted the time.
        0 => String::new(),
        time => format!(", for up to {}", human(time, Unit::Nanoseconds)),
    };
    format!(
        "tidegate: {deferred} {sends} waited with their senders, because {} had no room for what was not received yet{time}.\n\
         tidegate: That costs time, but no memory of receivers; receiving earlier or a larger FI_TIDEGATE_RX_MEMORY (--rx-memory) \
         avoids it.\n",
        names(&receivers),
    )
}

/// A few by name, the others by number.
fn names(processes: &[&Process]) -> String {
    let named: Vec<String> = processes.iter().take(NAMED).map(|process| label(process)).collect();
    match (named.split_last(), processes.len() - named.len()) {
        (Some((last, [])), 0) => last.clone(),
        (Some((last, others)), 0) => format!("{} and {last}", others.join(", ")),
        (_, more) => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{job, process};

    const MIB: u64 = 1 << 20;

    fn with_bound(rank: u32, values: &[(Counter, u64)]) -> Process {
        let fixed = [
            (Counter::ReceiveBound, 16 * MIB),
            (Counter::ReceiveFixedBytes, 160 << 10),
            (Counter::WindowBytes, 800 << 10),
            (Counter::ReceivePeak, MIB),
        ];
        process(rank, &[&fixed, values].concat())
    }

    fn flooded() -> Job {
        let receiver = [
            (Counter::ReceivePeak, 15 * MIB),
            (Counter::EnvelopesDropped, 39_000),
            (Counter::Queries, 3),
            (Counter::PressureNanoseconds, 1_250_000_000),
        ];
        let sender = [(Counter::SendsDeferred, 39_400), (Counter::DeferralNotices, 310)];
        job(vec![with_bound(0, &receiver), with_bound(1, &sender), with_bound(2, &[])])
    }

    #[test]
    fn the_line_says_what_is_bounded_and_how_much_was_used() {
        assert_eq!(
            line(&flooded()),
            "tidegate: receive memory of an endpoint at most 16.0 MiB, fixed part 160 KiB, window of each sender at \
             least 800 KiB; peak 15.0 MiB (rank 0)\n"
        );
    }

    #[test]
    fn equal_peaks_are_nobodys() {
        let text = line(&job(vec![with_bound(0, &[]), with_bound(1, &[])]));
        assert!(text.ends_with("; peak 1.00 MiB\n"), "{text}");
    }

    #[test]
    fn endpoints_that_told_no_bound_have_no_line() {
        assert_eq!(line(&job(vec![process(0, &[])])), "");
    }

    #[test]
    fn nothing_is_said_of_pressure_where_there_was_none() {
        assert_eq!(pressure(&job(vec![with_bound(0, &[]), with_bound(1, &[])]), Ranks::All, Width::USUAL), "");
    }

    #[test]
    fn a_flood_is_shown_with_advice() {
        let text = pressure(&flooded(), Ranks::Auto, Width::USUAL);
        let expected = include_str!("../../tests/data/receive_memory.txt");
        assert_eq!(text, expected, "got:\n{text}");
    }

    #[test]
    fn without_ranks_the_advice_remains() {
        let text = pressure(&flooded(), Ranks::None, Width::USUAL);
        assert!(text.starts_with("\ntidegate: 39,400 sends waited") && text.lines().count() == 3, "{text}");
    }

    #[test]
    fn sends_waited_a_moment_where_no_envelope_was_dropped() {
        let text = advice(&job(vec![with_bound(0, &[(Counter::SendsDeferred, 1)])]));
        assert!(text.starts_with("tidegate: 1 send waited a moment"), "{text}");
    }

    #[test]
    fn of_many_receivers_the_worst_are_named() {
        let ranks = |count: u32| {
            let dropped = |rank| (Counter::EnvelopesDropped, 1 + u64::from(rank));
            job((0..count).map(|rank| with_bound(rank, &[dropped(rank)])).collect())
        };
        for (count, said) in [
            (1, "because rank 0 had"),
            (2, "because rank 1 and rank 0 had"),
            (4, "because rank 3, rank 2, rank 1 and rank 0 had"),
            (40, "because rank 39, rank 38, rank 37, rank 36 and 36 more had"),
        ] {
            let text = advice(&ranks(count));
            assert!(text.contains(said), "{text}");
        }
        let text = pressure(&ranks(40), Ranks::Auto, Width::USUAL);
        assert!(
            text.contains("  rank 24 ")
                && !text.contains("  rank 23 ")
                && text.contains("  and 24 more: --ranks all\n"),
            "{text}"
        );
        assert!(pressure(&ranks(40), Ranks::All, Width::USUAL).contains("  rank 0 "));
    }
}
