//! How much memory the processes of a node may use together.

use crate::control_groups::folders;
use std::fs;
use std::path::Path;

/// The controller of memory.
const CONTROLLER: &str = "memory";
/// The file with a group's limit, in the second version of control groups and in the first.
const LIMITS: [&str; 2] = ["memory.max", "memory.limit_in_bytes"];

/// The memory of this node in bytes, or the least of what the control groups of this process may use, if that is less.
/// `None`: the system does not say.
pub fn node_memory() -> Option<u64> {
    read(Path::new("/"))
}

/// The same, of the system whose files begin at `root`.
fn read(root: &Path) -> Option<u64> {
    let text = |path: &Path| fs::read_to_string(path).ok();
    let installed = text(&root.join("proc/meminfo")).and_then(|text| installed(&text));
    let groups = folders(root, CONTROLLER);
    let files = groups.iter().flat_map(|group| LIMITS.map(|file| group.join(file)));
    files.filter_map(|file| text(&file)?.trim().parse().ok()).chain(installed).min()
}

/// `MemTotal` of /proc/meminfo, which is in KiB.
fn installed(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result where these files are.
    fn of(files: &[(&str, &str)]) -> Option<u64> {
        let root = std::env::temp_dir().join(format!(
            "tidegate-node-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = read(&root);
        let _ = fs::remove_dir_all(root);
        found
    }

    const MEMORY: (&str, &str) = ("proc/meminfo", "MemTotal:       24576 kB\nMemFree: 1 kB\n");

    #[test]
    fn the_least_of_the_limits_above_a_process_counts() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[MEMORY]), Some(24 << 20));
        let groups = ("proc/self/cgroup", "0::/job/step\n");
        assert_eq!(of(&[MEMORY, groups, ("sys/fs/cgroup/job/memory.max", "max\n")]), Some(24 << 20));
        let [job, step] = ["sys/fs/cgroup/job/memory.max", "sys/fs/cgroup/job/step/memory.max"];
        assert_eq!(of(&[MEMORY, groups, (job, "2097152\n"), (step, "max\n")]), Some(2 << 20));
        assert_eq!(of(&[MEMORY, groups, (job, "2097152\n"), (step, "1048576\n")]), Some(1 << 20));
        // A container sees its own group as the root, whatever the group is called outside.
        assert_eq!(of(&[MEMORY, groups, ("sys/fs/cgroup/memory.max", "4096\n")]), Some(4096));
    }

    #[test]
    fn the_first_version_of_control_groups_is_understood() {
        let groups = ("proc/self/cgroup", "5:cpu,memory:/job\n4:devices:/other\n0::/\n");
        let limit = ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "8192\n");
        let none = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(of(&[MEMORY, groups, limit, none]), Some(8192));
        assert_eq!(of(&[MEMORY, groups, none]), Some(24 << 20));
    }

    #[test]
    fn this_node_has_memory() {
        assert!(node_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
