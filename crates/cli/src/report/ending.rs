//! How a job ended: by itself, by a signal, with ranks that did not close.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use serde_json::{Value, json};
use signal_hook::low_level::signal_name;
use tidegate_link::EndpointStats;

use crate::report::names::{Names, Who};

/// How the program that `tidegate run` started ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Its exit code, if it had one.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Signals that came for it, in order.
    pub signals: Vec<i32>,
}

impl Ending {
    /// What became of the program, and which signals came for it.
    pub fn new(status: ExitStatus, signals: Vec<i32>) -> Ending {
        Ending { code: status.code(), signal: status.signal(), signals }
    }

    /// One line for people; `None` if it ended well and nothing happened to it.
    pub fn text(&self) -> Option<String> {
        let came: Vec<String> = self.signals.iter().map(|signal| name(*signal)).collect();
        let after = if came.is_empty() { String::new() } else { format!(" after {}", came.join(", ")) };
        match (self.signal, self.code) {
            (Some(signal), _) => Some(format!("the program was ended by {}{after}", name(signal))),
            (None, Some(0)) if came.is_empty() => None,
            (None, Some(code @ 129..=192)) => {
                let of = name(code - 128);
                Some(format!("the program ended with exit code {code}{after}, as after {of}"))
            }
            (None, Some(code)) => Some(format!("the program ended with exit code {code}{after}")),
            (None, None) => None,
        }
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({
            "exit_code": self.code,
            "signal": self.signal,
            "signal_name": self.signal.map(name),
            "signals_received": self.signals.iter().map(|signal| name(*signal)).collect::<Vec<_>>(),
        })
    }
}

fn name(signal: i32) -> String {
    signal_name(signal).map_or_else(|| format!("signal {signal}"), |name| format!("{name} (signal {signal})"))
}

/// Which processes of a launch did not close in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unclosed {
    /// Those, in order of rank.
    pub processes: Vec<Who>,
    /// How many processes there are.
    pub of: usize,
    /// Whose death others noticed first, with how many did.
    pub first_dead: Option<(Who, usize)>,
}

impl Unclosed {
    /// What the pages of a launch say.
    pub fn of(pages: &[EndpointStats]) -> Unclosed {
        let mut ended: BTreeMap<(u32, u32), bool> = BTreeMap::new();
        for page in pages {
            *ended.entry((page.rank.unwrap_or(u32::MAX), page.pid)).or_insert(true) &= page.ended;
        }
        let who = |&(rank, pid): &(u32, u32)| Who { rank: Some(rank).filter(|rank| *rank != u32::MAX), pid };
        let names = Names::of(pages);
        let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
        for dead in pages.iter().filter_map(|page| page.first_dead) {
            *votes.entry(dead).or_default() += 1;
        }
        let most = votes.into_iter().max_by_key(|(_, votes)| *votes);
        let first_dead = most.and_then(|(dead, votes)| Some((names.find(dead)?, votes)));
        let processes = ended.iter().filter(|(_, ended)| !**ended).map(|(process, _)| who(process)).collect();
        Unclosed { processes, of: ended.len(), first_dead }
    }

    /// One line for people; `None` if all have closed.
    pub fn text(&self) -> Option<String> {
        if self.processes.is_empty() {
            return None;
        }
        let all = self.processes.len() == self.of;
        let who = match (all, self.of) {
            (true, 1) => "the process".to_owned(),
            (true, _) => format!("all {} processes", self.of),
            (false, _) => format!("{} of {} processes ({})", self.processes.len(), self.of, list(&self.processes)),
        };
        let mut text = format!("{who} ended without closing");
        if let Some((dead, votes)) = self.first_dead {
            let noticed = if votes == 1 { "one other".to_owned() } else { format!("{votes} others") };
            text += &format!("; {} died first, as {noticed} noticed", dead.label());
        }
        Some(text)
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let one = |who: &Who| json!({ "rank": who.rank, "pid": who.pid });
        json!({
            "not_closed": self.processes.iter().map(one).collect::<Vec<_>>(),
            "died_first": self.first_dead.as_ref().map(|(who, _)| one(who)),
            "noticed_by": self.first_dead.map_or(0, |(_, votes)| votes),
        })
    }
}

/// Processes in words, ranks in ranges: `ranks 0-3, 7`.
fn list(processes: &[Who]) -> String {
    let ranks: Vec<u32> = processes.iter().filter_map(|who| who.rank).collect();
    let mut parts: Vec<String> = ranks
        .chunk_by(|one, next| one + 1 == *next)
        .map(|run| match run {
            [one] => one.to_string(),
            _ => format!("{}-{}", run[0], run[run.len() - 1]),
        })
        .collect();
    if let Some(first) = parts.first_mut() {
        let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
        *first = format!("{noun} {first}");
    }
    parts.extend(processes.iter().filter(|who| who.rank.is_none()).map(|who| who.label()));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(rank: u32) -> Who {
        Who { rank: Some(rank), pid: 100 + rank }
    }

    #[test]
    fn ends_are_told_in_words() {
        let said = |ending: Ending| ending.text().unwrap_or_default();
        assert_eq!(Ending { code: Some(0), ..Ending::default() }.text(), None);
        assert_eq!(said(Ending { code: Some(3), ..Ending::default() }), "the program ended with exit code 3");
        let killed = Ending { signal: Some(9), signals: vec![15], ..Ending::default() };
        assert_eq!(said(killed), "the program was ended by SIGKILL (signal 9) after SIGTERM (signal 15)");
        let passed_on = Ending { code: Some(130), signals: vec![2], ..Ending::default() };
        let expected = "the program ended with exit code 130 after SIGINT (signal 2), as after SIGINT (signal 2)";
        assert_eq!(said(passed_on), expected);
    }

    #[test]
    fn who_did_not_close_is_listed_and_who_died_first_is_named() {
        let unclosed = |ranks: &[u32], of, first_dead| Unclosed {
            processes: ranks.iter().map(|rank| who(*rank)).collect(),
            of,
            first_dead,
        };
        assert_eq!(unclosed(&[], 4, None).text(), None);
        let said = unclosed(&[0, 1, 2, 5], 8, Some((who(5), 3))).text().unwrap_or_default();
        let expected = "4 of 8 processes (ranks 0-2, 5) ended without closing; rank 5 died first, as 3 others noticed";
        assert_eq!(said, expected);
        let said = unclosed(&[0, 1], 2, None).text().unwrap_or_default();
        assert_eq!(said, "all 2 processes ended without closing");
    }
}
