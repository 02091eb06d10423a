//! How long another process has been on a processor, and whether it wants to be: what tells a receiver that computes
//! from one that waits for its turn.

use std::fs;
use std::mem::MaybeUninit;
use std::time::Duration;

/// How long all threads of a process have been on a processor since it began, if its first thread is on one or waits
/// for one. `None`: that sleeps, or there is no such process, or the system does not tell.
pub(super) fn time_of(pid: u32) -> Option<Duration> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    if !wants_processor(&text) {
        return None;
    }
    let mut clock = MaybeUninit::uninit();
    let mut time = MaybeUninit::uninit();
    // SAFETY: both calls fill what they are given a place for, if they return 0.
    unsafe {
        if libc::clock_getcpuclockid(libc::pid_t::try_from(pid).ok()?, clock.as_mut_ptr()) != 0
            || libc::clock_gettime(clock.assume_init(), time.as_mut_ptr()) != 0
        {
            return None;
        }
        let libc::timespec { tv_sec, tv_nsec } = time.assume_init();
        Some(Duration::new(u64::try_from(tv_sec).ok()?, u32::try_from(tv_nsec).ok()?))
    }
}

/// Whether `/proc/<pid>/stat` shows a thread that is on a processor or waits for one. The name, field 2, may contain
/// anything; the state follows behind the last parenthesis.
fn wants_processor(text: &[u8]) -> bool {
    let Some(name_end) = text.iter().rposition(|byte| *byte == b')') else { return false };
    text[name_end..].get(2) == Some(&b'R')
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
