//! How long another process has been on a processor, and whether it wants to be: what tells a receiver that computes
//! from one that waits for its turn.
//!
//! A process is judged by its first thread, which is the one that communicates in nearly all programs: the others may
//! compute for it.

use super::life::field;
use std::fs;
use std::time::Duration;

/// How long the first thread of a process has been on a processor since it began, if it is on one now or waits for one.
/// Of a thread that runs, what has happened since the system's last tick is missing. `None`: it sleeps, or there is no
/// such process, or the system does not tell.
pub(super) fn time_of(pid: u32) -> Option<Duration> {
    let wants_one = fs::read(format!("/proc/{pid}/stat")).is_ok_and(|text| wants_processor(&text));
    if !wants_one {
        return None;
    }
    time_in(&fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?)
}

/// Whether `/proc/<pid>/stat` shows a thread that is on a processor or waits for one.
fn wants_processor(text: &[u8]) -> bool {
    field(text, 3) == Some(b"R")
}

/// The time in `/proc/<pid>/schedstat`: the first number, in nanoseconds. It is 0 where the system keeps no account.
fn time_in(text: &str) -> Option<Duration> {
    let nanoseconds = text.split_ascii_whitespace().next()?.parse().ok()?;
    (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    #[test]
    fn a_name_with_parentheses_and_blanks_does_not_confuse() {
        assert!(wants_processor(b"7 (a) S (b) R 1 7"));
        assert!(!wants_processor(b"7 (a) R (b) S 1 7"));
        assert!(!wants_processor(b"nonsense") && !wants_processor(b"7 (a)"));
    }

    #[test]
    fn a_system_that_keeps_no_account_tells_nothing() {
        assert_eq!(time_in("1234567 89 10\n"), Some(Duration::from_nanos(1_234_567)));
        assert_eq!([time_in("0 0 0\n"), time_in(""), time_in("x")], [None; 3]);
    }

    #[test]
    fn a_process_that_runs_is_told_from_one_that_sleeps_and_one_that_is_gone() {
        let mut sleeper = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        while time_of(sleeper.id()).is_some() {
            assert!(Instant::now() < end, "it waits for input");
        }
        let mut spinner = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        // It may sleep while the system reads its program.
        let mut times = std::iter::from_fn(|| {
            assert!(Instant::now() < end, "it gets on");
            Some(time_of(spinner.id()))
        });
        let first = times.by_ref().flatten().next().expect("there is always another");
        assert!(times.flatten().any(|time| time >= first + Duration::from_millis(2)));
        for child in [&mut sleeper, &mut spinner] {
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(time_of(child.id()), None, "it is gone");
        }
    }
}
