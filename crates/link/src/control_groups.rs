//! The control groups of a process, where the system limits what a job's processes may use together.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders of the control groups of this process that may have files of this controller, such as `memory`, each
/// group before those around it. None where there are no control groups.
pub fn control_groups(controller: &str) -> Vec<PathBuf> {
    folders(Path::new("/"), controller)
}

/// The same, of the system whose files begin at `root`.
pub(crate) fn folders(root: &Path, controller: &str) -> Vec<PathBuf> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mount = root.join("sys/fs/cgroup");
    let folders = groups.lines().filter_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        // The second version of control groups has one hierarchy, without a name; the first has one per controller.
        let base = match controllers {
            "" => mount.clone(),
            _ if controllers.split(',').any(|name| name == controller) => mount.join(controller),
            _ => return None,
        };
        // In a container a group's own folder may be the root that is seen there.
        let groups = Path::new(group.trim_start_matches('/')).ancestors();
        Some(groups.map(|group| base.join(group)).collect::<Vec<_>>())
    });
    folders.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_versions_are_listed_up_to_their_roots() {
        let root = std::env::temp_dir().join(format!("tidegate-groups-{}", std::process::id()));
        fs::create_dir_all(root.join("proc/self")).unwrap();
        fs::write(root.join("proc/self/cgroup"), "5:cpu,pids:/job/step\n4:devices:/other\n0::/slice\n").unwrap();
        let found = |controller| -> Vec<String> {
            let below = |path: PathBuf| path.strip_prefix(root.join("sys/fs/cgroup")).unwrap().display().to_string();
            folders(&root, controller).into_iter().map(below).collect()
        };
        assert_eq!(found("pids"), ["pids/job/step", "pids/job", "pids", "slice", ""]);
        assert_eq!(found("memory"), ["slice", ""]);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(found("pids"), [""; 0]);
    }
}
