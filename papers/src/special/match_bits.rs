//! R theorem 2: whether sender and receiver can choose match bits without telling each other, by search.
//!
//! A receive's bits are one-hot: its tag, its position, and the tag of the receive before it. A sender makes an entry
//! of match bits and ignore bits for each of its sends; a get matches if `(get ^ match) & !ignore == 0`. With two
//! messages these are 9 bits, so two entries have 2^36 values. Entries that match the same of the gets that occur are
//! alike, so all 2^18 values of an entry are counted by which gets they match, and pairs of these few classes tried.
//! With three messages it is asked whether an assignment exists: if even the least entry that matches all gets of its
//! send (bits in which they agree fixed, all others ignored) matches one that it must not, none does.

use std::collections::HashMap;

use super::Known;
use crate::data::{BadFigure, Keys};

/// A tag of a receive: any, or the one of that send.
const ANY: usize = 0;

/// Receives of a program by tag (0 is any tag), and for each the send that MPI demands.
type Program = Vec<(usize, Option<usize>)>;

/// What MPI demands of receives with these tags, if send s, from 0 on, has tag s + 1.
fn demanded(tags: &[usize], sends: usize) -> Program {
    let mut is_taken = vec![false; sends];
    let demand = |&tag: &usize| {
        let found = (0..sends).find(|&send| !is_taken[send] && (tag == ANY || tag == send + 1));
        if let Some(send) = found {
            is_taken[send] = true;
        }
        (tag, found)
    };
    tags.iter().map(demand).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum History {
    Last,
    Each,
    Whole,
}

fn bits(tags: &[usize], position: usize, sends: usize, history: History) -> u64 {
    let (kinds, before, mut shift, mut all) = (sends + 1, &tags[..position], 0, 0);
    let mut one_of = |value: usize, values: usize| {
        all |= 1 << (shift + value);
        shift += values;
    };
    one_of(tags[position], kinds);
    one_of(position, sends);
    match history {
        History::Last => one_of(before.last().map_or(kinds, |&tag| tag), kinds + 1),
        History::Each => {
            (0..sends - 1).for_each(|place| one_of(before.get(place).map_or(kinds, |&tag| tag), kinds + 1))
        }
        History::Whole => {
            let number = before.iter().fold(0, |number, tag| number * (kinds + 1) + tag + 1);
            one_of(number, (kinds + 1).pow(sends as u32 - 1));
        }
    }
    all
}

/// R's table 1, its last row corrected or as it is printed: s1 and s2 as 0 and 1.
fn table1(as_printed: bool) -> Vec<Program> {
    let rows: [[usize; 2]; 7] = [[1, 2], [2, 1], [ANY, ANY], [ANY, 2], [ANY, 1], [1, ANY], [2, ANY]];
    let mut programs: Vec<Program> = rows.iter().map(|tags| demanded(tags, 2)).collect();
    if as_printed {
        programs[6] = vec![(2, Some(0)), (ANY, Some(1))];
    }
    programs
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Only the entry of its own send may match a get.
    Strict,
    /// Entries are searched in the order of the sends, and stay.
    ListOrder,
    /// The same, and an entry that was matched is gone.
    Consumed,
}

/// Entries of two sends, by which gets they match.
struct Search {
    gets: Vec<u64>,
    /// Which gets an entry matches, and how many entries do.
    classes: HashMap<u64, u64>,
    entries: u64,
}

impl Search {
    fn new(programs: &[Program]) -> Self {
        let mut gets: Vec<u64> = programs.iter().flat_map(gets_of).collect();
        gets.sort_unstable();
        gets.dedup();
        let (mut classes, values) = (HashMap::new(), 1 << 9);
        for (matching, ignored) in (0..values).flat_map(|matching| (0..values).map(move |ignored| (matching, ignored)))
        {
            let matched = gets.iter().enumerate().filter(|(_, get)| (*get ^ matching) & !ignored == 0);
            *classes.entry(matched.fold(0, |all, (nth, _)| all | 1 << nth)).or_default() += 1;
        }
        Search { gets, classes, entries: values * values }
    }

    /// How many of all assignments do what MPI demands of all programs.
    fn works(&self, programs: &[Program], rule: Rule) -> u64 {
        let place = |get: u64| self.gets.iter().position(|&other| other == get).expect("it occurs");
        let placed = |program: &Program| -> Vec<(usize, Option<usize>)> {
            gets_of(program).into_iter().map(place).zip(program.iter().map(|receive| receive.1)).collect()
        };
        let programs: Vec<_> = programs.iter().map(placed).collect();
        let pairs = self.classes.iter().flat_map(|first| self.classes.iter().map(move |second| (first, second)));
        let right =
            pairs.filter(|(one, other)| programs.iter().all(|program| is_right([*one.0, *other.0], program, rule)));
        right.map(|(first, second)| first.1 * second.1).sum()
    }
}

fn gets_of(program: &Program) -> Vec<u64> {
    let tags: Vec<usize> = program.iter().map(|receive| receive.0).collect();
    (0..tags.len()).map(|position| bits(&tags, position, 2, History::Last)).collect()
}

/// Whether entries, each given by the gets that it matches, do what a program demands.
fn is_right(entries: [u64; 2], program: &[(usize, Option<usize>)], rule: Rule) -> bool {
    let mut is_gone = [false; 2];
    program.iter().all(|&(get, demanded)| {
        let matches = |&entry: &usize| !is_gone[entry] && entries[entry] & 1 << get != 0;
        let found: Vec<usize> = (0..2).filter(matches).collect();
        if let (Rule::Consumed, Some(&first)) = (rule, found.first()) {
            is_gone[first] = true;
        }
        found.first().copied() == demanded && (rule != Rule::Strict || found.len() < 2)
    })
}

/// Why no assignment exists under list order with so many sends of different tags, or that one does.
fn in_list_order(sends: usize, history: History) -> Result<(), &'static str> {
    let all = (0..(sends + 1).pow(sends as u32)).map(|number| {
        (0..sends).map(|position| number / (sends + 1).pow(position as u32) % (sends + 1)).collect::<Vec<usize>>()
    });
    let mut demands: HashMap<u64, usize> = HashMap::new();
    for tags in all {
        let sent: Option<Vec<usize>> = demanded(&tags, sends).into_iter().map(|receive| receive.1).collect();
        // Only programs all of whose receives match: more demands could only leave fewer assignments.
        for (position, send) in sent.into_iter().flatten().enumerate() {
            if *demands.entry(bits(&tags, position, sends, history)).or_insert(send) != send {
                return Err("the same bits must match different sends");
            }
        }
    }
    let fits = |entry: usize| {
        let own = demands.iter().filter(|(_, send)| **send == entry);
        let (ones, zeros) = own.fold((u64::MAX, u64::MAX), |(ones, zeros), (get, _)| (ones & get, zeros & !get));
        let mut later = demands.iter().filter(|(_, send)| **send > entry);
        later.all(|(get, _)| ones & !get != 0 || zeros & get != 0)
    };
    let is_one = (0..sends).all(fits);
    is_one.then_some(()).ok_or("each entry that matches its own gets also matches those of a later send")
}

fn text<'a>(keys: &'a Keys, axis: &str) -> Result<&'a str, BadFigure> {
    keys.get(axis).map(|key| key.text.as_str()).ok_or_else(|| format!("a search needs {axis}").into())
}

/// What is found for so many `sends`, a `rule`, a `history` and, of two sends, a `table`: how many assignments do what
/// MPI demands (of three sends 1 if any does), the same in words, and whether the table's last row is what MPI demands.
pub(super) fn search(keys: &Keys) -> Known {
    let known = |count: u64, words: String, agrees: bool| {
        Ok(vec![("count", count.to_string()), ("works", words), ("agrees", u8::from(agrees).to_string())])
    };
    let history = match text(keys, "history")? {
        "last" => History::Last,
        "each" => History::Each,
        "whole" => History::Whole,
        other => return Err(format!("history = {other} is none of last, each, whole").into()),
    };
    if text(keys, "sends")? == "3" {
        return match in_list_order(3, history) {
            Ok(()) => known(1, "some".to_owned(), true),
            Err(why) => known(0, format!("none: {why}"), true),
        };
    }
    let rule = match text(keys, "rule")?.split(':').next() {
        Some("strict") => Rule::Strict,
        Some("list order, entries stay") => Rule::ListOrder,
        _ => Rule::Consumed,
    };
    let programs = table1(text(keys, "table")? == "as printed");
    let search = Search::new(&programs);
    let works = search.works(&programs, rule);
    known(works, format!("{works} of {}", search.entries * search.entries), programs[6] == demanded(&[2, ANY], 2))
}

/// Theorem 1: whether what happens before what, as `before` says (`t3 → t4, tx → t3`), has a circle.
pub(super) fn circle(keys: &Keys) -> Known {
    let edges =
        text(keys, "before")?.split(", ").map(|edge| edge.split_once(" → ").ok_or("`before` has edges `a → b`"));
    let has_one = has_circle(edges.collect::<Result<Vec<_>, _>>()?);
    Ok(vec![("circle", if has_one { "yes" } else { "no" }.to_owned())])
}

/// Whether events that happen before each other form a circle: some are left when all that nothing precedes are taken.
fn has_circle(mut left: Vec<(&str, &str)>) -> bool {
    loop {
        let before = left.clone();
        left.retain(|(one, _)| before.iter().any(|(_, other)| other == one));
        if left.len() == before.len() {
            return !left.is_empty();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_messages_need_the_strict_rule() {
        let programs = table1(false);
        let search = Search::new(&programs);
        assert_eq!(search.entries, 1 << 18);
        assert_eq!(search.classes.values().sum::<u64>(), search.entries);
        let works = [Rule::Strict, Rule::ListOrder, Rule::Consumed].map(|rule| search.works(&programs, rule));
        assert_eq!(works, [0, 24_576, 221_184]);
        assert_eq!(search.classes.len(), 84);
    }

    #[test]
    fn the_last_row_as_printed_contradicts_the_second() {
        let programs = table1(true);
        let search = Search::new(&programs);
        assert_eq!([Rule::Strict, Rule::ListOrder, Rule::Consumed].map(|rule| search.works(&programs, rule)), [0; 3]);
    }

    #[test]
    fn three_messages_do_not_go_in_list_order_unless_a_bit_names_each_history() {
        // Of two messages the counted search says that some do.
        assert!(in_list_order(2, History::Last).is_ok());
        assert!(in_list_order(3, History::Last).is_err());
        assert!(in_list_order(3, History::Each).is_err());
        assert!(in_list_order(3, History::Whole).is_ok());
    }

    #[test]
    fn bits_out_of_the_announcement_close_a_circle() {
        assert!(!has_circle(vec![("t3", "t4"), ("tx", "t3")]));
        assert!(has_circle(vec![("t3", "t4"), ("tx", "t3"), ("t4", "tx")]));
    }
}
