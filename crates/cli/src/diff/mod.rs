//! `tidegate diff`: whether the runs of two sides differ, and by how much.
//!
//! * [`measures`]: what is compared, and the values of a run, or of each launch of a script that repeats one;
//! * [`judge()`]: whether two groups of values differ, a pure function;
//! * [`words`]: what was found, in a line, in sentences, as a table of the page and as JSON.
//!
//! Two runs of the same command on the same machine are never alike: the simple idea, to print by how many percent
//! the second takes longer, calls noise a difference. With several runs of each side, a difference is one if all
//! values of one side lie beyond all values of the other, which by chance happens once in ten times or less from
//! three runs of each on (Mann and Whitney's test at its extreme). With one run of each, how far runs vary is not
//! known, and it counts only what is more than we have seen between runs of the same command
//! ([`measures::Measure::alone`]).

pub mod judge;
pub mod measures;
pub mod words;

use judge::{Difference, judge};
use measures::{MEASURES, Measure};

use crate::recording::view::View;

/// The runs of one side.
#[derive(Clone, Debug)]
pub struct Side<'a> {
    /// Its name.
    pub name: String,
    /// Its recordings.
    pub runs: Vec<&'a View>,
}

/// One measure of both sides.
#[derive(Clone, Debug)]
pub struct Line {
    /// The number that is compared.
    pub measure: &'static Measure,
    /// Its values: of the first side, and of the second.
    pub values: [Vec<f64>; 2],
    /// Whether they differ.
    pub difference: Difference,
}

/// All that was found.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The names of the sides.
    pub names: [String; 2],
    /// By measure; those that are 0 throughout are left out, but for the time.
    pub lines: Vec<Line>,
    /// How many runs each side has, launches that repeat one included.
    pub runs: [usize; 2],
    /// The sides of which a run failed, or was not seen to its end.
    pub failed: Vec<String>,
    /// Whether all runs are of one command.
    pub is_one_command: bool,
}

/// Compares two sides.
#[must_use]
pub fn compare(sides: &[Side; 2]) -> Comparison {
    let values = |side: &Side| side.runs.iter().flat_map(|run| measures::values(run)).collect::<Vec<_>>();
    let [first, second] = [values(&sides[0]), values(&sides[1])];
    let lines = MEASURES.iter().enumerate().filter_map(|(number, measure)| {
        let of = |values: &[measures::Values]| values.iter().map(|values| values[number]).collect::<Vec<f64>>();
        let (one, other) = (of(&first), of(&second));
        let is_zero = one.iter().chain(&other).all(|value| *value == 0.0);
        let difference = judge(&one, &other, measure);
        (number == 0 || !is_zero).then_some(Line { measure, values: [one, other], difference })
    });
    let command = &sides[0].runs[0].facts.command;
    Comparison {
        names: [sides[0].name.clone(), sides[1].name.clone()],
        lines: lines.collect(),
        runs: [first.len(), second.len()],
        failed: sides.iter().filter(|side| has_failed(side)).map(|side| side.name.clone()).collect(),
        is_one_command: sides.iter().flat_map(|side| &side.runs).all(|run| run.facts.command == *command),
    }
}

fn has_failed(side: &Side) -> bool {
    side.runs.iter().any(|run| run.facts.end.as_ref().is_none_or(|end| end.exit_code != 0))
}

/// The names of the sides, from those of their recordings: the part that these have in common, where that tells the
/// sides apart.
#[must_use]
pub fn side_names(sides: [&[String]; 2]) -> [String; 2] {
    let begins = sides.map(common_begin);
    if begins[0] != begins[1] && begins.iter().all(|begin| !begin.is_empty()) {
        return begins;
    }
    sides.map(|names| match names {
        [] => String::new(),
        [one] => one.clone(),
        [first, others @ ..] => format!("{first} and {} more", others.len()),
    })
}

/// The begin of all names, without the number that tells them apart: "before" of "before-1" and "before-2".
fn common_begin(names: &[String]) -> String {
    let [first, others @ ..] = names else { return String::new() };
    if others.is_empty() {
        return first.clone();
    }
    let is_in_all = |begin: &&str| others.iter().all(|other| other.starts_with(begin));
    let begins = (0..=first.len()).rev().filter_map(|length| first.get(..length));
    let begin = begins.into_iter().find(|begin| is_in_all(begin)).unwrap_or_default();
    begin.trim_end_matches(|letter: char| letter.is_ascii_digit() || "-_./".contains(letter)).to_owned()
}

/// The run of a side whose time is in the middle: pictures are of that one.
#[must_use]
pub fn typical(side: &[&View]) -> usize {
    let mut order: Vec<usize> = (0..side.len()).collect();
    order.sort_by_key(|run| side[*run].duration_ns);
    order[(order.len() - 1) / 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::facts::EndpointFacts;
    use crate::recording::testing::{Made, endpoint, values};

    #[test]
    fn sides_are_called_by_what_their_recordings_have_in_common() {
        let named = |first: &[&str], second: &[&str]| {
            let [first, second] =
                [first, second].map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
            side_names([&first, &second])
        };
        assert_eq!(named(&["a1", "a2", "a3"], &["b1", "b2", "b3"]), ["a", "b"]);
        assert_eq!(named(&["before-1", "before-2"], &["after"]), ["before", "after"]);
        assert_eq!(named(&["run.1", "run.2"], &["run.3", "run.4"]), ["run.1 and 1 more", "run.3 and 1 more"]);
        assert_eq!(named(&["1", "2"], &["3"]), ["1 and 1 more", "3"]);
        assert_eq!(named(&["größe1", "größe2"], &["ü"]), ["größe", "ü"]);
    }

    /// Launches of a script that lived for these numbers of seconds.
    fn script(lived: &[u64], programs: &[&str]) -> View {
        let endpoints = lived.iter().zip(programs).enumerate().map(|(number, (_, program))| EndpointFacts {
            id: number as u64 + 1,
            pid: number as u32 + 1,
            launch: Some(format!("job@{number}")),
            program: (*program).to_owned(),
            ..endpoint(0)
        });
        let mut made = Made::of(endpoints);
        made.last.endpoints.iter_mut().zip(lived).for_each(|(rows, seconds)| rows.lived_ns = seconds * 1_000_000_000);
        made.view(&vec![values(&[]); lived.len()])
    }

    #[test]
    fn launches_of_the_same_program_are_so_many_runs() {
        let of = |run: &View| measures::values(run).iter().map(|values| values[0] / 1e9).collect::<Vec<_>>();
        assert_eq!(of(&script(&[3, 4, 5], &["a", "a", "a"])), [3.0, 4.0, 5.0]);
        assert_eq!(of(&script(&[3, 4], &["a", "b"])), [10.0], "they do not repeat one");
        assert_eq!(of(&script(&[3, 0], &["a", "a"])), [10.0], "how long one took is not known");
    }

    #[test]
    fn the_typical_run_is_in_the_middle() {
        let runs = [5.0, 9.0, 7.0].map(|seconds| {
            let mut made = Made::new(1);
            made.facts.end.as_mut().unwrap().wall_time_s = 10.0 + seconds;
            made.view(&[values(&[])])
        });
        assert_eq!(typical(&runs.iter().collect::<Vec<_>>()), 2);
    }
}
