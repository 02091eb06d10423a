//! R theorem 2: whether sender and receiver can choose match bits without telling each other, by search.
//!
//! **The encoding.** A receive's bits are one-hot: its tag, its position, and the tag of the receive before it. A
//! sender makes an entry of match bits and ignore bits for each of its sends. A get matches an entry if
//! `(get ^ match) & !ignore == 0`. With two messages these are 9 bits, so an entry has 2^18 values, and two entries
//! have 2^36.
//!
//! **The search.** Two entries that match the same of the gets that occur are as good as each other. So all 2^18 values
//! of an entry are tried once and counted by which gets they match; all pairs of these few classes are all 2^36
//! assignments. With three messages there are too many values. There the question is only whether there is one, and
//! under list order that can be told exactly: the entry of a send has to match some gets, and must not match others.
//! The least entry that matches all of the former (bits in which they agree are fixed, all others are ignored) is
//! contained in each that does; so if even that one matches one of the latter, none is left.

use std::collections::{BTreeMap, HashMap};

use crate::data::Key;

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

/// What bits say of the receives before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum History {
    /// The tag of the last one, as R has it.
    Last,
    /// The tag of each, position by position.
    Each,
    /// A bit for each sequence that there can be.
    Whole,
}

/// The bits of the receive at `position`.
fn bits(tags: &[usize], position: usize, sends: usize, history: History) -> u64 {
    let kinds = sends + 1;
    let (before, mut shift) = (&tags[..position], 0);
    let mut all = 0;
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

/// When an entry counts as matched.
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
    /// The gets that occur.
    gets: Vec<u64>,
    /// Which gets an entry matches, and how many entries do.
    classes: Vec<(u64, u64)>,
    /// Values of one entry.
    entries: u64,
}

impl Search {
    fn new(programs: &[Program]) -> Self {
        let mut gets: Vec<u64> = programs.iter().flat_map(gets_of).collect();
        gets.sort_unstable();
        gets.dedup();
        let mut classes: HashMap<u64, u64> = HashMap::new();
        let values = 1 << 9;
        for matching in 0..values {
            for ignored in 0..values {
                let is_matched = |get: &u64| (get ^ matching) & !ignored == 0;
                let matched = gets.iter().enumerate().filter(|(_, get)| is_matched(get));
                *classes.entry(matched.fold(0, |all, (nth, _)| all | 1 << nth)).or_default() += 1;
            }
        }
        Search { gets, classes: classes.into_iter().collect(), entries: values * values }
    }

    /// How many of all assignments do what MPI demands of all programs.
    fn works(&self, programs: &[Program], rule: Rule) -> u64 {
        let place = |get: u64| self.gets.iter().position(|&other| other == get).expect("it occurs");
        let programs: Vec<Vec<(usize, Option<usize>)>> = programs
            .iter()
            .map(|program| {
                gets_of(program).into_iter().map(place).zip(program.iter().map(|receive| receive.1)).collect()
            })
            .collect();
        let mut works = 0;
        for (first, firsts) in &self.classes {
            for (second, seconds) in &self.classes {
                if programs.iter().all(|program| is_right([*first, *second], program, rule)) {
                    works += firsts * seconds;
                }
            }
        }
        works
    }
}

/// The bits of a program's gets.
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
        if rule == Rule::Consumed
            && let Some(&first) = found.first()
        {
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
    // Only programs all of whose receives match: more demands could only leave fewer assignments.
    let mut demands: HashMap<u64, usize> = HashMap::new();
    for tags in all {
        let program = demanded(&tags, sends);
        for (position, (_, send)) in program.iter().enumerate() {
            let (Some(send), true) = (*send, program.iter().all(|receive| receive.1.is_some())) else { continue };
            if *demands.entry(bits(&tags, position, sends, history)).or_insert(send) != send {
                return Err("the same bits must match different sends");
            }
        }
    }
    let fits = |entry: usize| {
        let of = |wanted: bool| {
            demands.iter().filter(move |(_, send)| if wanted { **send == entry } else { **send > entry })
        };
        let (ones, zeros) = of(true).fold((u64::MAX, u64::MAX), |(ones, zeros), (get, _)| (ones & get, zeros & !get));
        of(false).all(|(get, _)| ones & !get != 0 || zeros & get != 0)
    };
    if (0..sends).all(fits) {
        Ok(())
    } else {
        Err("each entry that matches its own gets also matches those of a later send")
    }
}

/// A key's text.
fn text<'a>(keys: &'a BTreeMap<String, Key>, axis: &str) -> Result<&'a str, String> {
    keys.get(axis).map(|key| key.text.as_str()).ok_or_else(|| format!("a search needs {axis}"))
}

/// What is found for so many `sends`, a `rule`, a `history` and, of two sends, a `table`: how many assignments do what
/// MPI demands (of three sends 1 if any does), the same in words, and whether the table's last row is what MPI demands.
pub(super) fn search(keys: &BTreeMap<String, Key>) -> Result<Vec<(&'static str, String)>, String> {
    let history = match text(keys, "history")? {
        "last" => History::Last,
        "each" => History::Each,
        "whole" => History::Whole,
        other => return Err(format!("history = {other} is none of last, each, whole")),
    };
    if text(keys, "sends")? == "3" {
        let found = in_list_order(3, history);
        let count = if found.is_ok() { "1" } else { "0" };
        let words = found.map_or_else(|why| format!("none: {why}"), |()| "some".to_owned());
        return Ok(vec![("count", count.to_owned()), ("works", words), ("agrees", "1".to_owned())]);
    }
    let programs = table1(text(keys, "table")? == "as printed");
    let rule = match text(keys, "rule")?.split(':').next() {
        Some("strict") => Rule::Strict,
        Some("list order, entries stay") => Rule::ListOrder,
        _ => Rule::Consumed,
    };
    let search = Search::new(&programs);
    let works = search.works(&programs, rule);
    let agrees = u8::from(programs[6] == demanded(&[2, ANY], 2));
    let words = format!("{works} of {}", search.entries * search.entries);
    Ok(vec![("count", works.to_string()), ("works", words), ("agrees", agrees.to_string())])
}

/// Theorem 1: whether what happens before what, as `before` says (`t3 → t4, tx → t3`), has a circle.
pub(super) fn circle(keys: &BTreeMap<String, Key>) -> Result<Vec<(&'static str, String)>, String> {
    let edges =
        text(keys, "before")?.split(", ").map(|edge| edge.split_once(" → ").ok_or("`before` has edges `a → b`"));
    let has_one = has_circle(&edges.collect::<Result<Vec<_>, _>>()?);
    Ok(vec![("circle", if has_one { "yes" } else { "no" }.to_owned())])
}

/// Whether events that happen before each other form a circle: some are left when all that nothing precedes are taken.
fn has_circle(edges: &[(&str, &str)]) -> bool {
    let mut left = edges.to_vec();
    loop {
        let count = left.len();
        let before = left.clone();
        left.retain(|(one, _)| before.iter().any(|(_, other)| other == one));
        if left.len() == count {
            return count > 0;
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
        assert_eq!(search.classes.iter().map(|class| class.1).sum::<u64>(), search.entries);
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
        assert!(!has_circle(&[("t3", "t4"), ("tx", "t3")]));
        assert!(has_circle(&[("t3", "t4"), ("tx", "t3"), ("t4", "tx")]));
    }
}
