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
        processes_of_group: room_in_group(),
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

/// How many more processes the control group of this process lets in. `None`: any number.
fn room_in_group() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    // Version two of control groups has one hierarchy, version one a hierarchy for processes. In a container the path
    // may be that of the machine, and the group is the root of what is mounted.
    let folders = groups.lines().flat_map(|line| {
        let two = line.strip_prefix("0::/").map(|path| ["/sys/fs/cgroup/".to_owned() + path, "/sys/fs/cgroup".into()]);
        let one = line
            .split_once(":pids:/")
            .map(|(_, path)| ["/sys/fs/cgroup/pids/".to_owned() + path, "/sys/fs/cgroup/pids".into()]);
        two.into_iter().chain(one).flatten()
    });
    let room = |folder: PathBuf| {
        let most = number_in(folder.join("pids.max"))?;
        Some(most.saturating_sub(number_in(folder.join("pids.current"))?))
    };
    folders.filter_map(|folder| room(folder.into())).min()
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
}
