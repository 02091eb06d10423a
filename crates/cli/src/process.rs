//! Processes of this host, as /proc shows them.

use std::fs;
use std::time::Duration;

/// A process that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// It has ended, and nobody has asked how.
    pub is_zombie: bool,
    /// When it started, in ticks since the host did. With its number, this names a process for good.
    pub started_ticks: u64,
}

/// The process of this number, if there is one.
pub fn find(pid: u32) -> Option<Process> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse(stat: &str) -> Option<Process> {
    // The name of the program stands in parentheses and may hold any.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    // proc_pid_stat(5): the state is the third field, the start the 22nd.
    let started_ticks = fields.nth(18)?.parse().ok()?;
    Some(Process { is_zombie: matches!(state, "Z" | "X" | "x"), started_ticks })
}

/// When this host started, since the epoch.
pub fn host_started() -> Option<Duration> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let seconds = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    Some(Duration::from_secs(seconds.trim().parse().ok()?))
}

/// Ticks as a time.
pub fn ticks(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// The name of this host; empty if the system does not tell.
pub fn host_name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| String::new(), |name| name.trim().to_owned())
}

/// How far the start of a process may seem to lie behind what it did later: the host's start is known in whole seconds.
const ACCURACY: Duration = Duration::from_secs(2);

/// What is known of the processes of this host.
pub struct Here {
    host: String,
    host_started: Option<Duration>,
}

impl Here {
    /// What is known now.
    pub fn as_of_now() -> Self {
        Here { host: host_name(), host_started: host_started() }
    }

    /// Whether the process of this number exists that did something at `then`, since the epoch. `None`: it is on
    /// another host. (An empty name is that of this one.)
    pub fn exists(&self, host: &str, pid: u32, then: Option<Duration>) -> Option<bool> {
        if !host.is_empty() && host != self.host {
            return None;
        }
        let Some(found) = find(pid).filter(|found| !found.is_zombie) else { return Some(false) };
        // One that started later has got the number of one that is gone.
        let started = self.host_started.map(|host| host + ticks(found.started_ticks));
        Some(started.zip(then).is_none_or(|(started, then)| started <= then + ACCURACY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_exists_is_known_on_this_host_only() {
        let here = Here { host: "h".into(), host_started: Some(Duration::ZERO) };
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
            assert_eq!(found, Some(Process { is_zombie: false, started_ticks: 4711 }), "{name}");
        }
        assert!(parse(&format!("12 (x) {}", rest.replace('S', "Z"))).unwrap().is_zombie);
        assert_eq!(parse("12 (x) S 1 2"), None);
    }

    #[test]
    fn this_process_exists_and_started_before_now() {
        let this = find(std::process::id()).unwrap();
        let started = host_started().unwrap() + ticks(this.started_ticks);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        assert!(!this.is_zombie && started <= now + Duration::from_secs(2), "{started:?} {now:?}");
        assert_eq!(find(u32::MAX), None);
    }
}
