//! Which way long messages went within a host where two ways were open, and why: both are measured, by size.

use std::fmt::Write;

use serde_json::{Value, json};
use tidegate_message::{Unit, WAY_CLASSES, WayTimes};

use super::units::human;
use super::{Job, Process};

/// Classes of messages that went the same way, one after the other.
#[derive(Debug, PartialEq)]
struct Range {
    /// The classes below are of another range, or were not measured.
    first: usize,
    last: usize,
    is_read: bool,
    /// Gigabytes a second of the longest of these messages: the way that they went, and the other.
    taken: f64,
    other: f64,
}

/// The middle one of what all endpoints have measured both ways, for each class.
fn medians(job: &Job) -> [Option<WayTimes>; WAY_CLASSES] {
    std::array::from_fn(|class| {
        let measured = job.processes().iter().flat_map(|process| &process.way_times).map(|times| times[class]);
        let mut both: Vec<WayTimes> = measured.filter(|times| times.asked > 0 && times.read > 0).collect();
        let ratio = |times: &WayTimes| f64::from(times.asked) / f64::from(times.read);
        both.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
        both.get(both.len() / 2).copied()
    })
}

fn ranges(medians: &[Option<WayTimes>; WAY_CLASSES]) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    for (class, times) in medians.iter().enumerate() {
        let Some(WayTimes { asked, read }) = times else { continue };
        let is_read = read < asked;
        let gigabytes = |time: u32| 1000.0 / f64::from(time);
        let (taken, other) = (gigabytes(*asked.min(read)), gigabytes(*asked.max(read)));
        match ranges.last_mut().filter(|range| range.is_read == is_read && range.last + 1 == class) {
            Some(range) => *range = Range { last: class, taken, other, ..*range },
            None => ranges.push(Range { first: class, last: class, is_read, taken, other }),
        }
    }
    ranges
}

impl Range {
    fn text(&self, is_first: bool) -> String {
        let bytes = |class| WayTimes::bytes_most(class).map(|bytes| human(bytes, Unit::Bytes));
        let above = self.first.checked_sub(1).and_then(bytes);
        let which = match (above, bytes(self.last)) {
            (None, Some(most)) => format!("up to {most}"),
            (Some(least), Some(most)) if self.first == self.last => format!("above {least} to {most}"),
            (Some(least), Some(most)) => format!("{least} to {most}"),
            (Some(least), None) => format!("above {least}"),
            (None, None) => "of all sizes".to_owned(),
        };
        let (way, other) = if self.is_read { ("direct", "bounced") } else { ("bounced", "direct") };
        let (fast, slow) = (self.taken, self.other);
        let why = if is_first { ", as measured" } else { "" };
        format!("{which} {way}{why} ({fast:.1} GB/s, {other} {slow:.1})")
    }
}

/// A line, if something was measured both ways.
pub fn line(job: &Job) -> String {
    let ranges = ranges(&medians(job));
    let texts: Vec<String> = ranges.iter().enumerate().map(|(at, range)| range.text(at == 0)).collect();
    let mut line = String::new();
    if !texts.is_empty() {
        let _ = writeln!(line, "tidegate: long messages on a host: {}", texts.join("; "));
    }
    line
}

/// The same of a process, for programs: each class of each endpoint that was measured.
pub fn json(process: &Process) -> Value {
    let classes = process.way_times.iter().flat_map(|times| times.iter().enumerate());
    let measured = classes.filter(|(_, times)| times.asked > 0 || times.read > 0);
    let time = |time: u32| Some(time).filter(|time| *time > 0);
    measured
        .map(|(class, times)| {
            json!({
                "bytes_most": WayTimes::bytes_most(class),
                "bounced_ps_per_byte": time(times.asked),
                "direct_ps_per_byte": time(times.read),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::process;

    fn job(endpoints: &[&[(usize, u32, u32)]]) -> Job {
        let of = |(rank, measured): (usize, &&[(usize, u32, u32)])| {
            let mut one = process(rank as u32, &[]);
            let mut times = [WayTimes::default(); WAY_CLASSES];
            for &(class, asked, read) in *measured {
                times[class] = WayTimes { asked, read };
            }
            one.way_times = vec![times];
            one
        };
        Job { processes: endpoints.iter().enumerate().map(of).collect() }
    }

    #[test]
    fn each_range_of_sizes_says_which_way_and_why() {
        let rank: &[_] = &[(3, 100, 200), (4, 125, 250), (5, 200, 125), (11, 250, 100)];
        assert_eq!(
            line(&job(&[rank])),
            "tidegate: long messages on a host: 16.0 KiB to 64.0 KiB bounced, as measured (8.0 GB/s, direct 4.0); above \
             64.0 KiB to 128 KiB direct (8.0 GB/s, bounced 5.0); above 4.00 MiB direct (10.0 GB/s, bounced 4.0)\n"
        );
    }

    #[test]
    fn the_middle_of_the_ranks_counts_and_only_what_was_measured_both_ways() {
        let told = line(&job(&[&[(0, 100, 200)], &[(0, 100, 200)], &[(0, 900, 200)], &[(0, 0, 5), (1, 7, 0)]]));
        assert_eq!(
            told,
            "tidegate: long messages on a host: up to 4.00 KiB bounced, as measured (10.0 GB/s, direct 5.0)\n"
        );
        assert_eq!(line(&job(&[&[(2, 100, 0)], &[]])), "");
    }
}
