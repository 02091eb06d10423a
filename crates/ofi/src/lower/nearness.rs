//! Which of a host's devices that are equally good is near to this process.
//!
//! A host with several sockets often has a device at each. A process whose launcher has bound it to the processors
//! of one node of memory takes the device of that node, where the provider's devices all reach each other: of another
//! provider, processes that have chosen differently may not. One that may run on several nodes takes the first device.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Folders of the system that list devices by name.
const CLASSES: [&str; 2] = ["infiniband", "cxi"];

/// The node of memory whose processors this thread may use, by the system whose files begin at `root`. `None`: it may
/// use those of several nodes, or the system does not say.
pub fn node_of_thread(root: &Path) -> Option<u32> {
    let status = fs::read_to_string(root.join("proc/thread-self/status")).ok()?;
    let allowed = numbers(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?);
    let folders = fs::read_dir(root.join("sys/devices/system/node")).ok()?.flatten();
    let mut nodes = folders.filter_map(|folder| {
        let node = folder.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
        let own = numbers(&fs::read_to_string(folder.path().join("cpulist")).ok()?);
        (!own.is_disjoint(&allowed)).then_some(node)
    });
    nodes.next().filter(|_| nodes.next().is_none())
}

/// The node of memory at which a device is, if it is at one.
pub fn node_of_device(root: &Path, name: &str) -> Option<u32> {
    let file = |class| root.join("sys/class").join(class).join(name).join("device/numa_node");
    // A device at no node in particular has -1.
    CLASSES.iter().find_map(|class| fs::read_to_string(file(class)).ok()?.trim().parse().ok())
}

/// Puts those at this node in front, among the first of the list and those after it that are as good.
pub fn near_first<T>(
    list: &mut [T],
    is_as_good: impl Fn(&T, &T) -> bool,
    node_of: impl Fn(&T) -> Option<u32>,
    node: u32,
) {
    let alike = list.iter().take_while(|one| is_as_good(&list[0], one)).count();
    list[..alike].sort_by_key(|one| node_of(one) != Some(node));
}

/// The numbers of a list such as `0-3,8`.
fn numbers(list: &str) -> BTreeSet<u32> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<u32>().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_at_the_node_of_the_process_comes_first_among_equals() {
        // Name, speed, node.
        let devices = [("cxi0", 200, Some(0)), ("cxi1", 200, Some(1)), ("cxi2", 200, None), ("cxi3", 100, Some(1))];
        let first = |node| {
            let mut list = devices;
            near_first(&mut list, |one, other| one.1 == other.1, |device| device.2, node);
            list.map(|device| device.0)
        };
        assert_eq!(first(0), ["cxi0", "cxi1", "cxi2", "cxi3"]);
        assert_eq!(first(1), ["cxi1", "cxi0", "cxi2", "cxi3"], "the slower one stays behind");
        assert_eq!(first(7), first(0));
        near_first(&mut [(); 0], |(), ()| true, |()| None, 0);
    }

    #[test]
    fn the_system_says_where_threads_and_devices_are() {
        let root = std::env::temp_dir().join(format!("tidegate-nodes-{}", std::process::id()));
        let write = |file: &str, text: &str| {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        assert_eq!((node_of_thread(&root), node_of_device(&root, "cxi0")), (None, None));
        write("sys/devices/system/node/node0/cpulist", "0-3,8-11\n");
        write("sys/devices/system/node/node1/cpulist", "4-7,12-15\n");
        write("sys/devices/system/node/possible", "0-1\n");
        let with = |allowed: &str| {
            write("proc/thread-self/status", &format!("Name:\tx\nCpus_allowed_list:\t{allowed}\n"));
            node_of_thread(&root)
        };
        assert_eq!(
            [with("5"), with("0-1,9"), with("0-15"), with("3-4"), with("99")],
            [Some(1), Some(0), None, None, None]
        );
        write("sys/class/cxi/cxi1/device/numa_node", "1\n");
        write("sys/class/infiniband/rdmap0s6/device/numa_node", "-1\n");
        assert_eq!(["cxi1", "rdmap0s6"].map(|name| node_of_device(&root, name)), [Some(1), None]);
        fs::remove_dir_all(root).unwrap();
    }
}
