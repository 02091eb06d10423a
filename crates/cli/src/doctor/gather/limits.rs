//! Limits of processes, and how near to them this user is.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::process::{Resource, getrlimit};

use super::super::facts::{Limit, Limits};
use super::host::number_in;

/// All of them.
pub fn gather() -> Limits {
    let of = |resource| {
        let limit = getrlimit(resource);
        Limit { now: limit.current, most: limit.maximum }
    };
    let user = rustix::process::geteuid();
    // The limit does not count for root.
    let (processes, processes_of_user) = match user.is_root() {
        true => (Limit::default(), 0),
        false => (of(Resource::Nproc), threads_of(user.as_raw())),
    };
    Limits {
        descriptors: of(Resource::Nofile),
        locked_memory: of(Resource::Memlock),
        file_size: of(Resource::Fsize),
        processes,
        processes_of_user,
        processes_of_group: room_in(&tidegate_link::control_groups("pids")),
    }
}

/// How many threads the processes of a user have: the limit counts these.
fn threads_of(user: u32) -> u64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let own = processes.filter(|process| process.metadata().is_ok_and(|facts| facts.uid() == user));
    let threads =
        |status: String| status.lines().find_map(|line| line.strip_prefix("Threads:")?.trim().parse::<u64>().ok());
    own.filter_map(|process| threads(fs::read_to_string(process.path().join("status")).ok()?)).sum::<u64>()
}

/// How many more processes the tightest of these control groups lets in. `None`: any number.
fn room_in(groups: &[PathBuf]) -> Option<u64> {
    let room = |group: &PathBuf| {
        let most = number_in(group.join("pids.max"))?;
        Some(most.saturating_sub(number_in(group.join("pids.current"))?))
    };
    groups.iter().filter_map(room).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_user_has_threads_and_limits() {
        assert!(threads_of(rustix::process::geteuid().as_raw()) >= 1);
        assert_eq!(threads_of(u32::MAX - 7), 0);
        let limits = gather();
        assert!(limits.descriptors.now.is_none_or(|now| now > 3));
    }

    #[test]
    fn the_tightest_group_says_how_many_processes_there_is_room_for() {
        let folder = tempfile::tempdir().unwrap();
        let group = |name: &str, most: &str, now: &str| {
            let group = folder.path().join(name);
            fs::create_dir(&group).unwrap();
            fs::write(group.join("pids.max"), most).unwrap();
            fs::write(group.join("pids.current"), now).unwrap();
            group
        };
        let groups = [
            group("step", "max\n", "1\n"),
            group("job", "50\n", "20\n"),
            group("all", "100\n", "90\n"),
            "/nowhere".into(),
        ];
        assert_eq!(room_in(&groups), Some(10));
        assert_eq!([room_in(&groups[..2]), room_in(&groups[..1]), room_in(&[])], [Some(30), None, None]);
    }
}
