//! Messages of a trace without an end: sends that no receive accepts, receives without a send, and receives too short
//! for what they get.

use std::collections::HashMap;

use crate::task::{Sender, TagFilter};
use crate::workload::{RecordedOperation, Trace};

/// Sends and receives of one pair of ranks with one tag.
#[derive(Default)]
struct Pairing {
    /// The bytes of each.
    sends: Vec<u64>,
    receives: Vec<u64>,
    /// The lines of the last ones.
    last_send: usize,
    last_receive: usize,
}

/// Receives of one rank that accept any rank, any tag, or both.
#[derive(Default)]
struct Wildcards {
    /// The bytes of each.
    bytes: Vec<u64>,
    /// How many there are for each rank, tag, or neither, and the line of the last one.
    of: HashMap<(Option<u32>, Option<u64>), (usize, usize)>,
    last: usize,
}

/// Messages of a trace by the two ranks and the tag: sender, receiver, tag.
type Pairs = HashMap<(u32, u32, u64), Pairing>;

/// Checks that each send can have a receive, and each receive a send.
///
/// # Errors
/// If a send or a receive is left over whatever comes first, or must be cut off. The text begins with its line.
pub fn check_messages(trace: &Trace) -> Result<(), String> {
    let mut pairs = Pairs::new();
    let mut wildcards: HashMap<u32, Wildcards> = HashMap::new();
    for rank in 0..trace.size() {
        for operation in trace.operations(rank) {
            match operation.deed {
                RecordedOperation::Send { to, tag, bytes } => {
                    let pair = pairs.entry((rank, to.0, tag.0)).or_default();
                    pair.sends.push(bytes);
                    pair.last_send = operation.line;
                }
                RecordedOperation::Receive { from: Sender::Rank(from), tag: TagFilter::Is(tag), bytes } => {
                    let pair = pairs.entry((from.0, rank, tag.0)).or_default();
                    pair.receives.push(bytes);
                    pair.last_receive = operation.line;
                }
                RecordedOperation::Receive { from, tag, bytes } => {
                    let all = wildcards.entry(rank).or_default();
                    let from = if let Sender::Rank(from) = from { Some(from.0) } else { None };
                    let tag = if let TagFilter::Is(tag) = tag { Some(tag.0) } else { None };
                    let (count, line) = all.of.entry((from, tag)).or_default();
                    (*count, *line, all.last) = (*count + 1, operation.line, operation.line);
                    all.bytes.push(bytes);
                }
                RecordedOperation::Compute(_) => {}
            }
        }
    }
    check_pairs(&pairs, &wildcards)?;
    check_wildcards(&pairs, &wildcards)?;
    check_lengths(pairs, wildcards)
}

impl Wildcards {
    /// Whether one of them accepts a message.
    fn accept(&self, from: u32, tag: u64) -> bool {
        [(Some(from), None), (None, Some(tag)), (None, None)].iter().any(|kind| self.of.contains_key(kind))
    }
}

/// Each send has a receive, and each receive that names rank and tag has a send.
fn check_pairs(pairs: &Pairs, wildcards: &HashMap<u32, Wildcards>) -> Result<(), String> {
    let is_odd = |((from, to, tag), pair): &(&(u32, u32, u64), &Pairing)| {
        let (sends, receives) = (pair.sends.len(), pair.receives.len());
        let accepted = || wildcards.get(to).is_some_and(|wildcards| wildcards.accept(*from, *tag));
        receives > sends || sends > receives && !accepted()
    };
    let odd = pairs.iter().filter(is_odd);
    let line = |pair: &Pairing| if pair.sends.len() > pair.receives.len() { pair.last_send } else { pair.last_receive };
    let count = odd.clone().count();
    let Some(((from, to, tag), pair)) = odd.min_by_key(|(_, pair)| line(pair)) else { return Ok(()) };
    let (sends, receives) = (pair.sends.len(), pair.receives.len());
    let others = if count > 1 { format!(" ({} more such pairs)", count - 1) } else { String::new() };
    let remedy = if sends > receives { "a receive is missing" } else { "a send is missing" };
    Err(format!(
        "line {}: rank {from} sends {sends} messages to rank {to} with tag {tag}, which receives {receives}: {remedy}, or \
         one too many is there; a replay would wait for ever{others}",
        line(pair)
    ))
}

/// The messages that receives with rank and tag leave over are as many as the other receives need.
///
/// This finds what cannot end whatever comes first. Which message a receive gets shows only in a run; one that ends in
/// a circle says so then.
fn check_wildcards(pairs: &Pairs, wildcards: &HashMap<u32, Wildcards>) -> Result<(), String> {
    let mut left: HashMap<(u32, Option<u32>, Option<u64>), usize> = HashMap::new();
    for ((from, to, tag), pair) in pairs.iter().filter(|((_, to, _), _)| wildcards.contains_key(to)) {
        let more = pair.sends.len().saturating_sub(pair.receives.len());
        for kind in [(Some(*from), None), (None, Some(*tag)), (None, None)] {
            *left.entry((*to, kind.0, kind.1)).or_default() += more;
        }
    }
    let mut lacks: Vec<(usize, String)> = Vec::new();
    for (rank, all) in wildcards {
        for (&(from, tag), &(needed, line)) in &all.of {
            let sent = left.get(&(*rank, from, tag)).copied().unwrap_or(0);
            if sent < needed {
                let whose = from.map_or("any rank".to_owned(), |from| format!("rank {from}"));
                let which = tag.map_or("any tag".to_owned(), |tag| format!("tag {tag}"));
                let text = format!(
                    "rank {rank} receives {needed} messages of {whose} with {which}, and {sent} are left for them"
                );
                lacks.push((line, format!("{text}: a send is missing")));
            }
        }
        let (sent, needed) = (left.get(&(*rank, None, None)).copied().unwrap_or(0), all.bytes.len());
        if sent != needed {
            let remedy = if sent > needed { "a receive is missing" } else { "a send is missing" };
            let text = format!(
                "rank {rank} receives {needed} messages of any rank or with any tag, and {sent} are left for them"
            );
            lacks.push((all.last, format!("{text}: {remedy}")));
        }
    }
    match lacks.into_iter().min() {
        Some((line, text)) => {
            Err(format!("line {line}: {text}, or one too many is there; a replay would wait for ever"))
        }
        None => Ok(()),
    }
}

/// Each message can have a receive that is large enough, in whatever order they are matched.
fn check_lengths(mut pairs: Pairs, wildcards: HashMap<u32, Wildcards>) -> Result<(), String> {
    let mut too_long: Vec<(usize, String)> = Vec::new();
    // Of a rank with such receives all messages are compared together.
    let mut together: HashMap<u32, (Vec<u64>, Vec<u64>, usize)> =
        wildcards.into_iter().map(|(rank, all)| (rank, (Vec::new(), all.bytes, all.last))).collect();
    pairs.retain(|(_, to, _), pair| {
        let Some((sends, receives, _)) = together.get_mut(to) else { return true };
        sends.append(&mut pair.sends);
        receives.append(&mut pair.receives);
        false
    });
    for (rank, (sends, receives, last)) in together {
        if let Some((sent, room)) = first_too_long(sends, receives) {
            let text = format!("of what is sent to rank {rank}, a message of {sent} bytes meets a receive of {room}");
            too_long.push((last, text));
        }
    }
    for ((from, to, tag), Pairing { sends, receives, last_receive, .. }) in pairs {
        if let Some((sent, room)) = first_too_long(sends, receives) {
            let text = format!(
                "of what rank {from} sends to rank {to} with tag {tag}, a message of {sent} bytes meets a receive of {room}"
            );
            too_long.push((last_receive, text));
        }
    }
    match too_long.into_iter().min() {
        Some((line, text)) => Err(format!("line {line}: {text}: it would be cut off")),
        None => Ok(()),
    }
}

/// A message, and the receive that it meets, if they are put together by their lengths and it is too long.
fn first_too_long(mut sends: Vec<u64>, mut receives: Vec<u64>) -> Option<(u64, u64)> {
    sends.sort_unstable();
    receives.sort_unstable();
    sends.into_iter().zip(receives).find(|(sent, room)| sent > room)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), String> {
        check_messages(&Trace::parse(text).expect("a legal trace"))
    }

    fn refusal(text: &str) -> String {
        check(text).expect_err("it has a message without an end")
    }

    #[test]
    fn messages_without_an_end_are_named_by_their_line() {
        let job = |first: &str, second: &str| format!("num_ranks 2\nrank 0 {{\n{first}\n}}\nrank 1 {{\n{second}\n}}\n");
        assert!(check(&job("send 8b to 1 tag 3", "recv 8b from 0 tag 3")).is_ok());
        let odd = refusal(&job("send 8b to 1 tag 3\nsend 8b to 1 tag 3", "recv 8b from 0 tag 3"));
        assert!(odd.starts_with("line 4: rank 0 sends 2 messages to rank 1 with tag 3, which receives 1"), "{odd}");
        let odd = refusal(&job("send 8b to 1 tag 3", "recv 8b from 0 tag 3\nrecv 8b from 0 tag 4"));
        assert!(odd.starts_with("line 7: rank 0 sends 0 messages") && odd.contains("a send is missing"), "{odd}");
    }

    #[test]
    fn a_message_that_no_receive_has_room_for_is_named_by_its_line() {
        let job = |sends: &str, receives: &str| {
            let (sends, receives) = (sends.replace(' ', "b to 1\nsend "), receives.replace(' ', "b from 0\nrecv "));
            format!("num_ranks 2\nrank 0 {{\nsend {sends}b to 1\n}}\nrank 1 {{\nrecv {receives}b from 0\n}}\n")
        };
        let odd = refusal(&job("100", "8"));
        assert!(odd.starts_with("line 6: ") && odd.contains("100 bytes meets a receive of 8"), "{odd}");
        let odd = refusal(&job("8 9 100", "100 8 8"));
        assert!(odd.starts_with("line 10: ") && odd.contains("9 bytes meets a receive of 8"), "{odd}");
        // The simulator may match them in another order than that of the file.
        assert!(check(&job("8 100", "100 8")).is_ok());
    }

    #[test]
    fn receives_from_any_rank_or_with_any_tag_are_counted_against_what_is_left() {
        let job = |first: &str, second: &str, third: &str| {
            format!("num_ranks 3\nrank 0 {{\n{first}\n}}\nrank 1 {{\n{second}\n}}\nrank 2 {{\n{third}\n}}\n")
        };
        let sends = ["send 8b to 0 tag 3", "send 9b to 0 tag 4"];
        for receives in [
            "recv 9b from -1 tag -1\nrecv 9b from -1 tag -1",
            "recv 8b from 1 tag -1\nrecv 9b from -1 tag 4",
            "recv 8b from 1 tag 3\nrecv 9b from -1 tag -1",
        ] {
            let read = check(&job(receives, sends[0], sends[1]));
            assert!(read.is_ok(), "{receives}: {read:?}");
        }
        for (receives, says) in [
            (
                "recv 9b from -1 tag -1",
                "line 3: rank 0 receives 1 messages of any rank or with any tag, and 2 are left",
            ),
            ("recv 9b from -1 tag 4", "line 6: rank 1 sends 1 messages to rank 0 with tag 3, which receives 0"),
            ("recv 9b from -1 tag 3\nrecv 9b from -1 tag 3", "line 10: rank 2 sends 1 messages to rank 0 with tag 4"),
            (
                "recv 9b from 2 tag -1\nrecv 9b from 2 tag -1\nrecv 9b from -1 tag -1",
                "line 4: rank 0 receives 2 messages of rank 2 with any tag, and 1 are left for them: a send is missing",
            ),
            (
                "recv 8b from -1 tag -1\nrecv 8b from -1 tag -1",
                "line 4: of what is sent to rank 0, a message of 9 bytes",
            ),
        ] {
            let why = refusal(&job(receives, sends[0], sends[1]));
            assert!(why.starts_with(says), "{receives}: {why}");
        }
    }
}
