//! Which way long messages went within a host where two ways were open, and why: both are measured, by size.

use std::cmp::Ordering;

use serde_json::{Value, json};
use tidegate_message::{Unit, WAY_CLASSES, WayTimes};

use super::units::human;
use super::{Job, Process};

/// How fast messages of each class came each way, at one endpoint.
type Times = [WayTimes; WAY_CLASSES];

/// Classes of messages that went the same way, one after the other.
#[derive(Debug, PartialEq)]
struct Range {
    /// The classes below are of another range, or were not measured.
    first: usize,
    last: usize,
    /// Those of the last class.
    times: WayTimes,
}

/// The middle one of what all endpoints have measured both ways, for each class.
fn medians<'a>(endpoints: impl Iterator<Item = &'a Times> + Clone) -> [Option<WayTimes>; WAY_CLASSES] {
    std::array::from_fn(|class| {
        let measured = endpoints.clone().map(|times| times[class]);
        let mut both: Vec<WayTimes> = measured.filter(|times| times.asked > 0 && times.read > 0).collect();
        let ratio = |times: &WayTimes| f64::from(times.asked) / f64::from(times.read);
        both.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
        both.get(both.len() / 2).copied()
    })
}

fn ranges(medians: &[Option<WayTimes>; WAY_CLASSES]) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    for (class, times) in medians.iter().enumerate() {
        let Some(times) = *times else { continue };
        let goes_on = |range: &&mut Range| range.times.compare() == times.compare() && range.last + 1 == class;
        match ranges.last_mut().filter(goes_on) {
            Some(range) => *range = Range { last: class, times, ..*range },
            None => ranges.push(Range { first: class, last: class, times }),
        }
    }
    ranges
}

impl Range {
    fn text(&self) -> String {
        let human_bytes = |bytes| human(bytes, Unit::Bytes);
        let above = self.first.checked_sub(1).and_then(WayTimes::bytes_most).map(human_bytes);
        let which = match (above, WayTimes::bytes_most(self.last).map(human_bytes)) {
            (None, Some(most)) => format!("up to {most}"),
            (Some(least), Some(most)) => format!("above {least} to {most}"),
            (Some(least), None) => format!("above {least}"),
            (None, None) => "of all sizes".to_owned(),
        };
        // The last class has no end, and its messages are mostly twice as long as the longest of the one before.
        let below = || WayTimes::bytes_most(self.last.saturating_sub(1)).unwrap_or(0);
        let bytes = WayTimes::bytes_most(self.last).unwrap_or_else(|| 2 * below());
        let copy = human_bytes(bytes);
        let time = |picoseconds: u32| human(u64::from(picoseconds).saturating_mul(bytes) / 1000, Unit::Nanoseconds);
        let (asked, read) = (time(self.times.asked), time(self.times.read));
        match self.times.compare() {
            Ordering::Less => format!(
                "chose bounce buffers {which}, because a copy of {copy} took {asked} that way and {read} directly"
            ),
            Ordering::Greater => {
                format!("chose direct copies {which}, because one of {copy} took {read} and {asked} by bounce buffers")
            }
            Ordering::Equal => format!(
                "either way {which}, because a copy of {copy} took {asked} by bounce buffers and {read} directly"
            ),
        }
    }
}

/// The choice of each range of sizes with its reason, if something was measured both ways.
pub fn text<'a>(endpoints: impl Iterator<Item = &'a Times> + Clone) -> Option<String> {
    let texts: Vec<String> = ranges(&medians(endpoints)).iter().map(Range::text).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// The same as a line, or nothing.
pub fn line(job: &Job) -> String {
    let text = text(job.processes().iter().flat_map(|process| &process.way_times));
    text.map_or_else(String::new, |text| format!("tidegate: long messages on a host: {text}\n"))
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
                "chosen": chosen(*times),
            })
        })
        .collect()
}

/// `None`: not both ways were measured.
fn chosen(times: WayTimes) -> Option<&'static str> {
    let both = times.asked > 0 && times.read > 0;
    both.then(|| match times.compare() {
        Ordering::Less => "bounced",
        Ordering::Greater => "direct",
        Ordering::Equal => "either",
    })
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
            "tidegate: long messages on a host: chose bounce buffers above 16.0 KiB to 64.0 KiB, because a copy of 64.0 KiB \
             took 8.19 µs that way and 16.4 µs directly; chose direct copies above 64.0 KiB to 128 KiB, because one of 128 \
             KiB took 16.4 µs and 26.2 µs by bounce buffers; chose direct copies above 4.00 MiB, because one of 8.00 MiB \
             took 839 µs and 2.10 ms by bounce buffers\n"
        );
    }

    #[test]
    fn where_both_ways_are_as_fast_neither_is_said_to_be_chosen_for_its_speed() {
        assert_eq!(
            line(&job(&[&[(6, 31, 30)]])),
            "tidegate: long messages on a host: either way above 128 KiB to 256 KiB, because a copy of 256 KiB took 8.13 µs \
             by bounce buffers and 7.86 µs directly\n"
        );
    }

    #[test]
    fn programs_read_what_was_chosen_where_both_ways_were_measured() {
        let job = job(&[&[(6, 30, 60), (7, 60, 30), (8, 30, 30), (9, 30, 0)]]);
        let value = json(&job.processes()[0]);
        let chosen: Vec<_> = value.as_array().unwrap().iter().map(|class| class["chosen"].as_str()).collect();
        assert_eq!(chosen, [Some("bounced"), Some("direct"), Some("either"), None]);
    }

    #[test]
    fn the_middle_of_the_ranks_counts_and_only_what_was_measured_both_ways() {
        let told = line(&job(&[&[(0, 100, 200)], &[(0, 100, 200)], &[(0, 900, 200)], &[(0, 0, 5), (1, 7, 0)]]));
        assert_eq!(
            told,
            "tidegate: long messages on a host: chose bounce buffers up to 4.00 KiB, because a copy of 4.00 KiB took 409 ns \
             that way and 819 ns directly\n"
        );
        assert_eq!(line(&job(&[&[(2, 100, 0)], &[]])), "");
    }
}
