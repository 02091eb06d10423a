//! The clock of this process, for those who have to say what time it is.

use crate::boot::boot_id;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate_flow::Instant;

/// The present, on the clock that never goes back. Costs some 20 ns.
pub fn now() -> Instant {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives through the call. The clock exists on every Linux, so that it cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    Instant::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// How a thread has used its processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ran {
    /// How long it has run.
    pub(crate) time: Duration,
    /// How often it gave the processor away to wait for something: a time, a file, a lock. (Not by `sched_yield`.)
    pub(crate) blocked: u64,
}

/// That of this thread. A system call: less than a microsecond.
pub(crate) fn ran() -> Ran {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: there is room for both answers, and zeros are one. Neither call can fail with these arguments.
    let usage = unsafe {
        // The times of `getrusage` lack what has run since the last tick.
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time);
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    Ran { time: Duration::new(time.tv_sec as u64, time.tv_nsec as u32), blocked: usage.ru_nvcsw as u64 }
}

/// When this process first asked for the time since the epoch, by both clocks.
struct Base {
    epoch: Duration,
    started: u64,
}

fn base() -> &'static Base {
    static BASE: OnceLock<Base> = OnceLock::new();
    BASE.get_or_init(|| Base {
        epoch: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        started: now().as_nanos(),
    })
}

/// The present since the epoch, for comparing times: what the clock of the world said when this process first asked for
/// it, and what has passed since. So it does not jump when that clock is set.
pub fn since_epoch() -> Duration {
    since_epoch_at(now().as_nanos())
}

/// The same of a moment of the clock that never goes back, of this host since it started ([`boot`]).
pub(crate) fn since_epoch_at(moment: u64) -> Duration {
    let Base { epoch, started } = base();
    match moment.checked_sub(*started) {
        Some(later) => *epoch + Duration::from_nanos(later),
        None => epoch.saturating_sub(Duration::from_nanos(*started - moment)),
    }
}

/// Names the clock that never goes back: processes that have the same number here have the same clock. 0: not known.
pub(crate) fn boot() -> u64 {
    static BOOT: OnceLock<u64> = OnceLock::new();
    *BOOT.get_or_init(|| {
        let boot = boot_id();
        // Containers may have clocks of their own.
        let container = fs::metadata("/proc/self/ns/time").map_or(0, |namespace| namespace.ino());
        if boot == 0 { 0 } else { (boot ^ container).max(1) }
    })
}
