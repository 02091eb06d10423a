//! The longest waits: for which rank, and what for.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_link::EndpointStats;
use tidegate_message::{Unit, WaitCause};

use crate::report::names::{Names, Who};
use crate::report::table::{plain_table, push_table};
use crate::report::units::human;

/// Rows of the table.
const ROWS: usize = 5;

/// Sends or receives of one process waited for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Whose sends.
    pub of: Who,
    /// The id of the endpoint that they were for; `None`: several.
    pub peer: Option<u64>,
    /// What for.
    pub cause: WaitCause,
    /// How many times.
    pub count: u64,
    /// How long, a wait that went on at the end included.
    pub waited: Duration,
    /// How long that has lasted.
    pub open_for: Option<Duration>,
}

/// All waits of a launch, the longest first.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    waits: Vec<Wait>,
    names: Names,
}

impl Waits {
    /// What the pages of a launch say.
    pub fn of(pages: &[EndpointStats]) -> Waits {
        let of_page = |page: &EndpointStats| {
            let of = Who { rank: page.rank, pid: page.pid };
            let waits = page.open.waits.iter().map(move |wait| Wait {
                of,
                peer: wait.peer,
                cause: wait.cause,
                count: wait.count,
                waited: wait.in_all(),
                open_for: wait.open_for(),
            });
            waits.collect::<Vec<_>>()
        };
        let mut waits: Vec<Wait> = pages.iter().flat_map(of_page).collect();
        waits.sort_by_key(|wait| std::cmp::Reverse((wait.waited, wait.count)));
        Waits { waits, names: Names::of(pages) }
    }

    /// A table of the longest, if any took a hundredth of `time`, or went on at the end; empty otherwise.
    pub fn text(&self, time: Duration) -> String {
        let counts = |wait: &&Wait| wait.waited * 100 >= time && !wait.waited.is_zero() || wait.open_for.is_some();
        let shown: Vec<&Wait> = self.waits.iter().filter(counts).take(ROWS).collect();
        if shown.is_empty() {
            return String::new();
        }
        let mut text = "\ntidegate: waited longest:\n".to_owned();
        let mut table = plain_table();
        for wait in shown {
            let peer = match (wait.peer, wait.cause) {
                (Some(peer), _) => self.names.label(peer),
                (None, WaitCause::AnyMessage) => "any rank".to_owned(),
                (None, _) => "several ranks".to_owned(),
            };
            let time = human(wait.waited.as_nanos().try_into().unwrap_or(u64::MAX), Unit::Nanoseconds);
            let still = if wait.open_for.is_some() { ", still at the end" } else { "" };
            let times = if wait.count == 1 { "once".to_owned() } else { format!("{} times", wait.count) };
            table.add_row([
                wait.of.label(),
                format!("for {peer}"),
                wait.cause.help().to_owned(),
                time,
                format!("{times}{still}"),
            ]);
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((if index == 0 { 2 } else { 1 }, 1));
        }
        push_table(&mut text, table);
        text
    }

    /// For programs: those of one process.
    pub fn json_of(&self, of: Who) -> Value {
        let waits = self.waits.iter().filter(|wait| wait.of == of).map(|wait| {
            let peer = wait.peer.and_then(|peer| self.names.find(peer));
            json!({
                "peer_rank": peer.and_then(|who| who.rank),
                "peer_pid": peer.map(|who| who.pid),
                "cause": wait.cause.name(),
                "count": wait.count,
                "waited_s": wait.waited.as_secs_f64(),
                "open_s": wait.open_for.map(|time| time.as_secs_f64()),
            })
        });
        waits.collect::<Vec<_>>().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_link::stats::PeerWait;

    #[test]
    fn the_longest_waits_are_told_if_they_matter() {
        let [mut zero, one] = [0, 1].map(|rank| EndpointStats::blank(100 + rank, Some(rank), Some(2)));
        let wait = |peer, cause, count, milliseconds, open_for| PeerWait {
            peer,
            cause,
            count,
            waited: Duration::from_millis(milliseconds),
            since: open_for,
        };
        let six = Some(Duration::from_secs(6));
        zero.open.waits = vec![
            wait(Some(one.endpoint), WaitCause::Credits, 7, 200, None),
            wait(Some(one.endpoint), WaitCause::Pull, 1, 0, six),
            wait(None, WaitCause::Credits, 3, 1, None),
        ];
        let waits = Waits::of(&[zero, one]);
        let told = waits.text(Duration::from_secs(10));
        let words: Vec<String> =
            told.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            words[1..],
            [
                "tidegate: waited longest:",
                "rank 0 for rank 1 its receive 6.00 s once, still at the end",
                "rank 0 for rank 1 credits 200 ms 7 times"
            ]
        );
        let value = waits.json_of(Who { rank: Some(0), pid: 100 });
        assert_eq!((&value[0]["open_s"], &value[2]["peer_rank"]), (&json!(6.0), &Value::Null));
        assert_eq!(Waits::default().text(Duration::from_secs(10)), "");
    }
}
