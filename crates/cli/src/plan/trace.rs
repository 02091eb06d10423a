//! A trace as a user hands it in: read, and checked for messages without an end.

use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use tidegate_sim::workload::{HALO, RecordedOperation, Trace};

use crate::failure::Failure;
use tidegate_sim::goal;

/// A trace that can be replayed.
#[derive(Clone, Debug)]
pub struct Program {
    /// The trace.
    pub trace: Trace,
    /// What tells its text from other texts.
    pub fingerprint: String,
}

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

impl Program {
    /// Reads a file, or the bundled trace `halo16`.
    ///
    /// # Errors
    /// If it cannot be read, is no trace, or has messages that nobody receives or sends.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let refuse = |why: String| Failure::usage(format!("{}: {why}", path.display()));
        let text = match path.to_str() {
            Some("halo16") if !path.exists() => HALO.to_owned(),
            _ if path.metadata().is_ok_and(|found| !found.is_file()) => {
                return Err(refuse("no regular file".to_owned()));
            }
            _ => {
                let bytes = fs::read(path).map_err(|error| refuse(error.to_string()))?;
                String::from_utf8(bytes).map_err(|error| refuse(no_text(path, error.as_bytes())))?
            }
        };
        Self::parse(&text)
            .map_err(|why| refuse(format!("{why}. A trace is in GOAL; `tidegate record` writes one of a job")))
    }

    /// The trace of a text.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(text: &str) -> Result<Self, String> {
        let trace = goal::parse(text)?;
        if trace.size() < 2 || trace.messages().0 == 0 {
            return Err(format!("{} ranks and {} messages leave nothing to plan", trace.size(), trace.messages().0));
        }
        check_pairs(&trace)?;
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Ok(Program { trace, fingerprint: format!("{:016x}", hasher.finish()) })
    }
}

/// Why a file that is no text is no trace, and how to get one.
fn no_text(path: &Path, bytes: &[u8]) -> String {
    let program = path.file_name().unwrap_or_default().display();
    match bytes {
        [0x7f, b'E', b'L', b'F', ..] => format!(
            "this is a program, and `plan` needs a trace of a job. To get one: tidegate record -o job.goal mpiexec -n 4 \
             ./{program}, and then: tidegate plan job.goal"
        ),
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            "this file is compressed: unpack it first (gunzip, unzstd)".to_owned()
        }
        _ => {
            "this is no text, and a trace is: `tidegate record -o job.goal mpiexec -n 4 ./program` writes one of a job"
                .to_owned()
        }
    }
}

/// The number of messages of a trace that are longer than `bytes`, and the bytes of the largest of the others.
pub fn longer_than(trace: &Trace, bytes: usize) -> (u64, u64) {
    let (mut longer, mut largest) = (0, 0);
    for operation in (0..trace.size()).flat_map(|rank| trace.operations(rank)) {
        match operation.deed {
            RecordedOperation::Send { bytes: own, .. } if own > bytes as u64 => longer += 1,
            RecordedOperation::Send { bytes: own, .. } => largest = largest.max(own),
            _ => {}
        }
    }
    (longer, largest)
}

/// Each send has a receive, and each receive a send.
fn check_pairs(trace: &Trace) -> Result<(), String> {
    let mut pairs: HashMap<(u32, u32, u64), Pairing> = HashMap::new();
    for rank in 0..trace.size() {
        for operation in trace.operations(rank) {
            match operation.deed {
                RecordedOperation::Send { to, tag, bytes } => {
                    let pair = pairs.entry((rank, to.0, tag.0)).or_default();
                    pair.sends.push(bytes);
                    pair.last_send = operation.line;
                }
                RecordedOperation::Receive { from, tag, bytes } => {
                    let pair = pairs.entry((from.0, rank, tag.0)).or_default();
                    pair.receives.push(bytes);
                    pair.last_receive = operation.line;
                }
                RecordedOperation::Compute(_) => {}
            }
        }
    }
    let odd = pairs.iter().filter(|(_, pair)| pair.sends.len() != pair.receives.len());
    let line = |pair: &Pairing| if pair.sends.len() > pair.receives.len() { pair.last_send } else { pair.last_receive };
    let count = odd.clone().count();
    let Some(((from, to, tag), pair)) = odd.min_by_key(|(_, pair)| line(pair)) else { return check_lengths(pairs) };
    let (sends, receives) = (pair.sends.len(), pair.receives.len());
    let others = if count > 1 { format!(" ({} more such pairs)", count - 1) } else { String::new() };
    let remedy = if sends > receives { "a receive is missing" } else { "a send is missing" };
    Err(format!(
        "line {}: rank {from} sends {sends} messages to rank {to} with tag {tag}, which receives {receives}: {remedy}, or \
         one too many is there; a replay would wait for ever{others}",
        line(pair)
    ))
}

/// Each message can have a receive that is large enough, in whatever order they are matched.
fn check_lengths(pairs: HashMap<(u32, u32, u64), Pairing>) -> Result<(), String> {
    let too_long = pairs.into_iter().filter_map(|(pair, Pairing { mut sends, mut receives, last_receive, .. })| {
        sends.sort_unstable();
        receives.sort_unstable();
        let (sent, room) = sends.into_iter().zip(receives).find(|(sent, room)| sent > room)?;
        Some((last_receive, pair, sent, room))
    });
    let Some((line, (from, to, tag), sent, room)) = too_long.min() else { return Ok(()) };
    Err(format!(
        "line {line}: of what rank {from} sends to rank {to} with tag {tag}, a message of {sent} bytes meets a receive of \
         {room}: it would be cut off"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Program::parse(text).expect_err("it is no trace to plan with")
    }

    #[test]
    fn messages_without_an_end_are_named_by_their_line() {
        let job = |first: &str, second: &str| format!("num_ranks 2\nrank 0 {{\n{first}\n}}\nrank 1 {{\n{second}\n}}\n");
        assert!(Program::parse(&job("send 8b to 1 tag 3", "recv 8b from 0 tag 3")).is_ok());
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
        assert!(Program::parse(&job("8 100", "100 8")).is_ok());
    }

    #[test]
    fn what_is_no_trace_is_named_by_its_line() {
        assert!(refusal("num_ranks 2\nrank 0 {\nsend 8 to 1\n}").starts_with("line 3: "));
        assert!(refusal("num_ranks 2").contains("nothing to plan"));
    }

    #[test]
    fn a_file_that_is_no_text_is_refused_with_how_to_get_a_trace() {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes, says) in [
            ("solver", &b"\x7fELF\x02\x01\x01\xff"[..], "mpiexec -n 4 ./solver, and then: tidegate plan job.goal"),
            ("job.goal.gz", b"\x1f\x8b\x08\xff", "this file is compressed"),
            ("picture", b"\x89PNG\xff", "tidegate record -o job.goal"),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            let why = Program::read(&path).expect_err("it is no trace").to_string();
            assert!(why.contains(says) && !why.contains("UTF-8"), "{why}");
        }
    }
}
