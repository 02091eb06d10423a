//! Processes of this host, as /proc shows them.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use rustix::time::{ClockId, clock_gettime};

/// A process that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// What it does just now.
    pub state: State,
    /// How long its threads have used processors, in ticks.
    pub ran_ticks: u64,
    /// When it started, in ticks since the host did. With its number, this names a process for good.
    pub started_ticks: u64,
    /// How long its first thread has waited for a processor in all, up to when it got one last. `None`: not asked for,
    /// or the system does not tell (without `CONFIG_SCHED_INFO`, or where /proc hides other users' processes).
    pub queued: Option<Duration>,
}

/// What the first thread of a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has a processor, or waits for one.
    Runnable,
    /// It waits for something else.
    Sleeping,
    /// A signal or a debugger has stopped it.
    Stopped,
    /// It has ended, and nobody has asked how.
    Zombie,
}

impl Process {
    /// Whether it has not ended.
    pub fn is_alive(&self) -> bool {
        self.state != State::Zombie
    }
}

/// The process of this number, if there is one.
pub fn find(pid: u32) -> Option<Process> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Whether there is a process of this number that /proc does not show, as of other users where it is mounted with
/// `hidepid`.
pub fn is_hidden(pid: u32) -> bool {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // No signal is sent: it is asked whether this user might send one.
    find(pid).is_none() && number.is_some_and(|number| test_kill_process(number) == Err(Errno::PERM))
}

/// How long each thread of a process has used processors, in ticks, by the thread's number.
pub fn threads(pid: u32) -> HashMap<u32, u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let ran = |entry: fs::DirEntry| {
        let thread = entry.file_name().to_str()?.parse().ok()?;
        // One may end meanwhile.
        Some((thread, parse(&fs::read_to_string(entry.path().join("stat")).ok()?)?.ran_ticks))
    };
    entries.filter_map(ran).collect()
}

/// How long the calling thread has used processors. (The time that passes is no measure of what a look costs: a process
/// also waits for others.)
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

fn parse(stat: &str) -> Option<Process> {
    // The name of the program stands in parentheses and may hold any.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    // proc_pid_stat(5): the state is the third field, times in user and system mode are the 14th and 15th, the start is
    // the 22nd.
    let (user, system): (u64, u64) = (fields.nth(10)?.parse().ok()?, fields.next()?.parse().ok()?);
    let started_ticks = fields.nth(6)?.parse().ok()?;
    let state = match state {
        "Z" | "X" | "x" => State::Zombie,
        "T" | "t" => State::Stopped,
        "R" => State::Runnable,
        _ => State::Sleeping,
    };
    Some(Process { state, ran_ticks: user.saturating_add(system), started_ticks, queued: None })
}

/// How long the first thread of a process has waited for a processor in all. All users may read it.
fn queued(pid: u32) -> Option<Duration> {
    // Time with a processor, time in the queue for one, in nanoseconds; how often it has got one.
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    Some(Duration::from_nanos(text.split_ascii_whitespace().nth(1)?.parse().ok()?))
}

/// When this host started, since the epoch by our clock, which does not jump. (What /proc/stat says of it does.)
pub fn host_started() -> Duration {
    let runs_for = clock_gettime(ClockId::Boottime);
    let runs_for = Duration::new(runs_for.tv_sec.try_into().unwrap_or(0), runs_for.tv_nsec.try_into().unwrap_or(0));
    tidegate_link::since_epoch().saturating_sub(runs_for)
}

/// Ticks as a time.
pub fn ticks(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// The name of this host; empty if the system does not tell.
pub fn host_name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| String::new(), |name| name.trim().to_owned())
}

/// How far the start of a process may seem to lie behind what it did later: pages of another container have a clock of
/// their own.
const ACCURACY: Duration = Duration::from_secs(2);

/// What is known of the processes of this host.
pub struct Here {
    host: String,
    host_started: Duration,
}

impl Here {
    /// What is known now.
    pub fn as_of_now() -> Self {
        Here { host: host_name(), host_started: host_started() }
    }

    /// Whether the process of this number exists that did something at `then`, since the epoch. `None`: it is on
    /// another host. (An empty name is that of this one.)
    pub fn exists(&self, host: &str, pid: u32, then: Option<Duration>) -> Option<bool> {
        self.find(host, pid, then).map(|found| found.is_some() || is_hidden(pid))
    }

    /// The same, with what is known of it, which is nothing where /proc hides it.
    pub fn find(&self, host: &str, pid: u32, then: Option<Duration>) -> Option<Option<Process>> {
        if !host.is_empty() && host != self.host {
            return None;
        }
        // One that started later has got the number of one that is gone.
        let began = |found: &Process| self.host_started + ticks(found.started_ticks);
        let is_it = |found: &Process| found.is_alive() && then.is_none_or(|then| began(found) <= then + ACCURACY);
        let with_queue = |found: Process| Process { queued: queued(pid), ..found };
        Some(find(pid).filter(is_it).map(with_queue))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_exists_is_known_on_this_host_only() {
        let here = Here { host: "h".into(), host_started: Duration::ZERO };
        let this = std::process::id();
        assert_eq!(here.exists("h", this, None), Some(true));
        assert_eq!(here.exists("", this, Some(Duration::from_secs(1 << 40))), Some(true));
        assert_eq!(here.exists("h", u32::MAX, None), Some(false));
        assert_eq!(here.exists("other", this, None), None);
        assert_eq!(here.exists("h", this, Some(Duration::ZERO)), Some(false), "its number is used again");
    }

    #[test]
    fn a_line_is_read_whatever_the_program_is_called() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        for name in ["a.out", "a) R (b", "spaces and )"] {
            let found = parse(&format!("12 ({name}) {rest}"));
            let state = State::Sleeping;
            assert_eq!(found, Some(Process { state, ran_ticks: 11 + 12, started_ticks: 4711, queued: None }), "{name}");
        }
        let of = |letter: &str| parse(&format!("12 (x) {}", rest.replace('S', letter))).unwrap();
        assert_eq!(["R", "T", "t"].map(|letter| of(letter).state), [State::Runnable, State::Stopped, State::Stopped]);
        assert!(!of("Z").is_alive());
        assert_eq!(parse("12 (x) S 1 2"), None);
    }

    #[test]
    fn this_process_exists_and_started_before_now() {
        let this = find(std::process::id()).unwrap();
        let started = host_started() + ticks(this.started_ticks);
        let now = tidegate_link::since_epoch();
        assert!(this.is_alive() && started <= now + Duration::from_secs(2), "{started:?} {now:?}");
        assert_eq!(find(u32::MAX), None);
        let ids = std::thread::spawn(|| threads(std::process::id())).join().unwrap();
        assert!(ids.contains_key(&std::process::id()) && ids.len() >= 2 && threads(u32::MAX).is_empty(), "{ids:?}");
    }
}
