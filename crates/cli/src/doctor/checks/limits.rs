//! Limits of processes: descriptors, locked memory, sizes of files, processes.

use super::{container_with, ranks};
use crate::doctor::facts::{Facts, Limit};
use crate::doctor::verdict::{Verdict, bad, no, ok, warn};
use crate::report::units::human;
use tidegate_message::Unit;

/// Descriptors that a launcher has open apart from those for each rank, and about as many as a rank alone has: tried
/// with MPICH 5.0.2 and Intel MPI 2021.18 (16 and 8 more), and with Open MPI 5.0.11 (24).
const DESCRIPTORS_OF_LAUNCHER: u64 = 24;
/// Descriptors that a launcher has for each rank that it starts: three streams, and a socket by which they meet.
const DESCRIPTORS_FOR_RANK: u64 = 4;
/// Descriptors that are left to the program, or a warning says so.
const DESCRIPTORS_OF_PROGRAM: u64 = 64;
/// Threads of a rank, with those that MPIs and Tidegate start.
const THREADS_OF_RANK: u64 = 4;
/// Bytes that a provider over hardware locks at least, to post and register buffers for few peers.
const LOCKED_LEAST: u64 = 64 << 20;
/// Providers that lock what they register, by the beginnings of their names.
const LOCKING: [&str; 7] = ["verbs", "efa", "psm3", "psm2", "opx", "cxi", "ucx"];

/// All of them.
pub fn limits(facts: &Facts) -> Vec<Verdict> {
    let said = [Some(descriptors(facts)), Some(locked_memory(facts)), file_size(facts), Some(processes(facts))];
    said.into_iter().flatten().collect()
}

/// The line that raises a limit: in the shell, where the user may, else in a file of the administrator or the
/// container.
fn raise(facts: &Facts, limit: Limit, shell: &str, file: &str, needed: Option<u64>) -> String {
    let value = needed.map_or_else(|| "unlimited".to_owned(), |needed| needed.to_string());
    let may = match (limit.most, needed) {
        (None, _) => true,
        (Some(most), Some(needed)) => most >= needed,
        (Some(_), None) => false,
    };
    if may {
        return format!("ulimit {shell} {value}");
    }
    let option = needed.map_or_else(|| "-1".to_owned(), |needed| needed.to_string());
    container_with(facts, &format!("--ulimit {file}={option}")).unwrap_or_else(|| {
        format!("echo '* - {file} {value}' | sudo tee /etc/security/limits.d/mpi.conf   # then log in again")
    })
}

fn descriptors(facts: &Facts) -> Verdict {
    let limit = facts.limits.descriptors;
    // A rank has a connection to each rank of another host; the launcher has its own for each rank of this host.
    let nodes = facts.slurm.as_ref().and_then(|slurm| slurm.nodes).unwrap_or(0);
    let hosts = u64::from(nodes).max(facts.hosts.len() as u64);
    let others = hosts.saturating_sub(1) * u64::from(facts.ranks);
    let needed = DESCRIPTORS_OF_LAUNCHER + others.max(DESCRIPTORS_FOR_RANK * u64::from(facts.ranks));
    let enough = needed + DESCRIPTORS_OF_PROGRAM;
    match limit.now {
        Some(now) if now < enough => {
            let text = format!("{now} of a process (ulimit -n); a job of {} here needs {needed}", ranks(facts.ranks));
            let remedy = raise(facts, limit, "-n", "nofile", Some(enough.next_power_of_two()));
            bad(now < needed, "descriptors", text, remedy)
        }
        Some(now) => ok("descriptors", format!("{now} of a process (ulimit -n)")),
        None => ok("descriptors", "no limit"),
    }
}

/// The provider between hosts, as far as it is known.
fn provider(facts: &Facts) -> Option<String> {
    let taken = facts.libfabric.as_ref().and_then(|found| found.as_ref().ok()?.taken.as_ref()?.as_ref().ok());
    let named = facts.fabric.as_deref().map(|fabric| fabric.split('/').next().unwrap_or_default().trim().to_owned());
    taken.map(|taken| taken.provider.clone()).or(named)
}

fn locked_memory(facts: &Facts) -> Verdict {
    let limit = facts.limits.locked_memory;
    let provider = provider(facts).unwrap_or_default();
    let locks = LOCKING.iter().any(|start| provider.starts_with(start));
    match limit.now {
        None => ok("locked_memory", "no limit"),
        Some(now) if locks && now < LOCKED_LEAST => {
            let text = format!("{} (ulimit -l); {provider} locks what it sends and receives", human(now, Unit::Bytes));
            no("locked_memory", text, raise(facts, limit, "-l", "memlock", None))
        }
        Some(now) if locks => {
            let text = format!("{} (ulimit -l); {provider} locks what it registers", human(now, Unit::Bytes));
            warn("locked_memory", text, raise(facts, limit, "-l", "memlock", None))
        }
        Some(now) => {
            ok("locked_memory", format!("{} (ulimit -l); tcp and shared memory lock none", human(now, Unit::Bytes)))
        }
    }
}

/// A segment is a file. Only a limit that is too low is worth a line.
fn file_size(facts: &Facts) -> Option<Verdict> {
    let (limit, each) = (facts.limits.file_size, facts.shared_memory.each?);
    let now = limit.now.filter(|now| *now < each)?;
    let bytes = |bytes| human(bytes, Unit::Bytes);
    let text = format!("{} (ulimit -f); a rank has a file of up to {} in /dev/shm", bytes(now), bytes(each));
    Some(no("file_size", text, raise(facts, limit, "-f", "fsize", None)))
}

fn processes(facts: &Facts) -> Verdict {
    let limits = facts.limits;
    let needed = THREADS_OF_RANK * u64::from(facts.ranks);
    let of_user = limits.processes.now.map(|now| now.saturating_sub(limits.processes_of_user));
    let takes = format!("{} take up to {needed} with their threads", ranks(facts.ranks));
    if let Some(left) = limits.processes_of_group.filter(|left| *left < needed) {
        let text = format!("this control group lets in {left} more; {takes}");
        return no(
            "processes",
            text,
            container_with(facts, "--pids-limit=-1").or_else(|| Some("cat /sys/fs/cgroup/pids.max".to_owned())),
        );
    }
    if let Some(left) = of_user.filter(|left| *left < needed) {
        let text = format!("this user may start {left} more; {takes}");
        let most = (limits.processes_of_user + needed).next_power_of_two();
        return no("processes", text, raise(facts, limits.processes, "-u", "nproc", Some(most)));
    }
    match of_user.into_iter().chain(limits.processes_of_group).min() {
        Some(left) => ok("processes", format!("{left} more may be started")),
        None => ok("processes", "no limit"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{healthy, one};
    use super::*;
    use crate::doctor::verdict::Level;
    use tidegate_link::Container;

    const FILE: &str = " | sudo tee /etc/security/limits.d/mpi.conf   # then log in again";

    fn limit(now: u64, most: u64) -> Limit {
        Limit { now: Some(now), most: Some(most) }
    }

    #[test]
    fn few_descriptors_are_too_few_and_some_may_be() {
        let with = |now, most, ranks, hosts: usize| {
            let mut facts = Facts { ranks, hosts: vec!["h".into(); hosts], ..healthy() };
            facts.limits.descriptors = limit(now, most);
            one(&[descriptors(&facts)])
        };
        assert_eq!(with(1024, 4096, 16, 0).0, Level::Ok);
        let (level, text, remedy) = with(32, 4096, 16, 0);
        assert_eq!((level, remedy.as_deref()), (Level::No, Some("ulimit -n 256")));
        assert_eq!(text, "32 of a process (ulimit -n); a job of 16 ranks here needs 88");
        assert_eq!(with(100, 4096, 16, 0).0, Level::Warn, "few are left to the program");
        let (level, _, remedy) = with(1024, 1024, 64, 40);
        assert_eq!(
            (level, remedy.unwrap()),
            (Level::No, format!("echo '* - nofile 4096'{FILE}")),
            "one for each rank elsewhere"
        );
        assert_eq!(one(&[descriptors(&Facts::default())]).0, Level::Ok, "no limit");
    }

    #[test]
    fn memory_is_locked_by_hardware_only() {
        let with = |provider: &str, locked_memory, container| {
            let mut facts = Facts { fabric: Some(provider.into()), libfabric: None, container, ..healthy() };
            facts.limits.locked_memory = locked_memory;
            one(&[locked_memory_of(&facts)])
        };
        fn locked_memory_of(facts: &Facts) -> Verdict {
            super::locked_memory(facts)
        }
        assert_eq!(with("tcp/eth0", limit(65_536, 65_536), None).0, Level::Ok);
        assert_eq!(with("verbs;ofi_rxm", Limit::default(), None).0, Level::Ok);
        let (level, text, remedy) = with("verbs;ofi_rxm/mlx5_0", limit(65_536, 65_536), None);
        assert_eq!((level, remedy.unwrap()), (Level::No, format!("echo '* - memlock unlimited'{FILE}")));
        assert!(text.starts_with("64.0 KiB (ulimit -l); verbs;ofi_rxm locks"), "{text}");
        let no_most = Limit { now: Some(65_536), most: None };
        assert_eq!(with("efa", no_most, None).2.as_deref(), Some("ulimit -l unlimited"));
        let docker = with("psm3", limit(65_536, 65_536), Some(Container::Docker));
        assert_eq!(docker.2.as_deref(), Some("docker run --ulimit memlock=-1 IMAGE"));
        assert_eq!(with("cxi", limit(1 << 30, 1 << 30), None).0, Level::Warn);
    }

    #[test]
    fn a_segment_has_to_fit_the_longest_file() {
        let mut facts = healthy();
        assert_eq!(file_size(&facts), None);
        facts.limits.file_size = Limit { now: Some(1 << 20), most: None };
        let (level, text, remedy) = one(&[file_size(&facts).unwrap()]);
        assert!(
            level == Level::No
                && text.contains("1.00 MiB (ulimit -f)")
                && remedy.as_deref() == Some("ulimit -f unlimited")
        );
    }

    #[test]
    fn processes_are_limited_by_user_and_by_group() {
        let mut facts = Facts { ranks: 4, ..healthy() };
        assert_eq!(processes(&facts).text, "no limit");
        (facts.limits.processes, facts.limits.processes_of_user) = (limit(100, 200), 40);
        assert_eq!(processes(&facts).text, "60 more may be started");
        facts.limits.processes_of_user = 90;
        let (level, text, remedy) = one(&[processes(&facts)]);
        assert_eq!((level, remedy.as_deref()), (Level::No, Some("ulimit -u 128")));
        assert_eq!(text, "this user may start 10 more; 4 ranks take up to 16 with their threads");
        facts.limits.processes_of_group = Some(3);
        facts.container = Some(Container::Docker);
        let (_, text, remedy) = one(&[processes(&facts)]);
        assert!(text.contains("lets in 3 more") && remedy.as_deref() == Some("docker run --pids-limit=-1 IMAGE"));
    }
}
