//! Reading traces in GOAL that users hand in: what the simulator understands, and no more than it can count.

use std::fs;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::Time;
pub use crate::workload::WORK_MOST;
use crate::workload::{RecordedOperation, Trace, check_messages};

/// The longest text, 1 GiB: some 30 million operations, which take days to replay and ten times the memory.
const TEXT_MOST: u64 = 1 << 30;

/// Reads the text of a trace from a file or a pipe.
///
/// # Errors
/// If it cannot be read, is too long, or is no text. The error says which kind of file it is, and how to get a trace.
pub fn read_text(path: &Path) -> Result<String, String> {
    let kind = path.metadata().map_err(|error| error.to_string())?.file_type();
    if kind.is_dir() {
        return Err("this is a folder, and a trace is a file: `tidegate record -o job.goal mpiexec -n 4 ./program` \
                    writes one of a job; what `tidegate run --record` has left is for `tidegate report`"
            .to_owned());
    }
    // Of a device there may be no end.
    if !kind.is_file() && !kind.is_fifo() {
        return Err("no regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(TEXT_MOST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > TEXT_MOST {
        return Err(
            "it is longer than 1 GiB, more than can be replayed: trace fewer ranks, or a shorter time".to_owned()
        );
    }
    if bytes.starts_with(b"#!") {
        return Err(program(path));
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        Ok(text) => Err(no_text(path, text.as_bytes())),
        Err(error) => Err(no_text(path, error.as_bytes())),
    }
}

/// Why a file that is no text is no trace, and how to get one.
fn no_text(path: &Path, bytes: &[u8]) -> String {
    if is_program(bytes) {
        program(path)
    } else if is_compressed(bytes) {
        "this file is compressed: unpack it first (gunzip, unzstd, unxz, bunzip2)".to_owned()
    } else {
        "this is no text, and a trace is: `tidegate record -o job.goal mpiexec -n 4 ./program` writes one of a job; of a \
         file that txt2bin has made, take the text from which it was made"
            .to_owned()
    }
}

fn program(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().display();
    format!(
        "this is a program, not a trace. To get a trace of a job: tidegate record -o job.goal mpiexec -n 4 ./{name}"
    )
}

/// Whether a file with these bytes is a program: an executable, or a script.
#[must_use]
pub fn is_program(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF") || bytes.starts_with(b"#!")
}

/// Whether a file with these bytes is what gzip, zstd, xz or bzip2 write.
#[must_use]
pub fn is_compressed(bytes: &[u8]) -> bool {
    let marks: [&[u8]; 4] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"BZh"];
    marks.iter().any(|mark| bytes.starts_with(mark))
}

/// Reads a trace.
///
/// # Errors
/// If it is none, has longer work or messages than can be replayed, or messages that wait for ever or are cut
/// off.
pub fn parse(text: &str) -> Result<Trace, String> {
    let trace = Trace::parse(text).map_err(|error| error.to_string())?;
    let work = work(&trace);
    if work > WORK_MOST.into() {
        return Err(format!(
            "its ranks compute for {} together, more than the {} that can be replayed",
            days(work),
            days(WORK_MOST.into())
        ));
    }
    check_messages(&trace)?;
    Ok(trace)
}

/// How long all ranks compute together, in nanoseconds.
pub fn work(trace: &Trace) -> u128 {
    let all = (0..trace.size()).flat_map(|rank| trace.operations(rank));
    let spans = all.map(|operation| match operation.deed {
        RecordedOperation::Compute(Time(picoseconds)) => u128::from(picoseconds),
        RecordedOperation::Send { .. } | RecordedOperation::Receive { .. } => 0,
    });
    spans.sum::<u128>() / 1000
}

fn days(nanoseconds: u128) -> String {
    format!("{} days", nanoseconds / (86_400 * 1_000_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(first: &str, second: &str) -> Option<String> {
        parse(&format!("num_ranks 2\nrank 0 {{\n{first}\n}}\nrank 1 {{\n{second}\n}}\n")).err()
    }

    #[test]
    fn work_that_no_clock_counts_is_refused_with_its_line() {
        for span in [u64::MAX, u64::MAX - 1, u64::MAX / 1000 + 1, WORK_MOST + 1] {
            let why = refusal(&format!("calc {span}"), "calc 1").expect("it is too long");
            assert!(
                why.starts_with(&format!("line 3, column 6: a calc of {span} ns")) && why.contains("106 days"),
                "{why}"
            );
        }
        let why = refusal("calc 1", "a: calc 99999999999999999999999").expect("it is too long");
        assert!(why.starts_with("line 6, column 9: a calc of "), "{why}");
        assert_eq!(refusal(&format!("calc {WORK_MOST}"), "calc 0 // calc 18446744073709551615"), None);
    }

    #[test]
    fn a_message_that_no_receive_accepts_or_has_room_for_is_refused_with_its_line() {
        let why = refusal("send 8b to 1\nsend 8b to 1", "recv 8b from 0").expect("one too many");
        assert!(why.starts_with("line 4: rank 0 sends 2 messages to rank 1 with tag 0, which receives 1"), "{why}");
        let why = refusal("send 9b to 1", "recv 8b from 0").expect("one too short");
        assert!(why.starts_with("line 6: ") && why.contains("a message of 9 bytes meets a receive of 8"), "{why}");
    }

    #[test]
    fn what_all_ranks_compute_together_is_bounded_too() {
        let half = format!("calc {}", WORK_MOST / 2 + 1);
        let why = refusal(&half, &half).expect("together it is too long");
        assert!(why.starts_with("its ranks compute for 106 days together"), "{why}");
        assert_eq!(refusal(&half, "calc 5"), None);
    }

    #[test]
    fn messages_that_no_memory_holds_are_refused_with_their_line() {
        let why = refusal("send 18446744073709551615b to 1 tag 7", "").expect("it is too long");
        assert!(why.starts_with("line 3, column 6: 18446744073709551615 bytes"), "{why}");
        let why = refusal("", "recv 1099511627777 b from 0").expect("it is too long");
        assert!(why.starts_with("line 6, column 6: ") && why.contains("1 TiB"), "{why}");
    }

    #[test]
    fn what_is_no_text_is_refused_with_how_to_get_a_trace() {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes, says) in [
            ("solver", &b"\x7fELF\x02\x01\x01\xff"[..], "record -o job.goal mpiexec -n 4 ./solver"),
            ("job.sh", b"#!/bin/sh\n", "this is a program, not a trace"),
            ("job.goal.gz", b"\x1f\x8b\x08\xff", "this file is compressed"),
            ("job.bin", b"\x02\0\0\0", "the text from which it was made"),
            ("picture", b"\x89PNG\xff", "tidegate record -o job.goal"),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            let why = read_text(&path).expect_err("it is no trace");
            assert!(why.contains(says) && !why.contains("UTF-8"), "{why}");
        }
        assert!(read_text(folder.path()).unwrap_err().starts_with("this is a folder"));
        assert!(read_text(&folder.path().join("none")).unwrap_err().contains("No such file"));
    }
}
