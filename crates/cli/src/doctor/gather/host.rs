//! `/dev/shm`, and files that hold a number.

use std::fs;
use std::path::Path;

use tidegate_link::DIRECTORY;

use super::super::facts::SharedMemory;

/// The types by which `statfs` names file systems in memory (`TMPFS_MAGIC`, `RAMFS_MAGIC` of linux/magic.h).
const MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// The state of `/dev/shm`, where a rank takes `each` bytes.
pub fn shared_memory(each: Option<u64>) -> SharedMemory {
    look(Path::new(DIRECTORY), each)
}

fn look(place: &Path, each: Option<u64>) -> SharedMemory {
    let (Ok(kind), Ok(space)) = (rustix::fs::statfs(place), rustix::fs::statvfs(place)) else {
        return SharedMemory { each, ..SharedMemory::default() };
    };
    if !place.is_dir() {
        return SharedMemory { each, ..SharedMemory::default() };
    }
    // It is gone before anything can fail.
    let refused = tempfile::tempfile_in(place).err().map(|error| error.to_string());
    #[allow(clippy::unnecessary_cast, reason = "the type differs by machine")]
    let is_memory = MEMORY.contains(&(kind.f_type as i64));
    let (total, free) = (space.f_blocks * space.f_frsize, space.f_bavail * space.f_frsize);
    SharedMemory { is_there: true, refused, is_memory, total, free, each }
}

/// The number that a file holds alone.
pub fn number_in(path: impl AsRef<Path>) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_is_told_from_one_that_is() {
        assert!(!look(Path::new("/nowhere"), None).is_there);
        assert!(!look(Path::new("/proc/self/status"), None).is_there);
        let refused = look(Path::new("/proc"), Some(7));
        assert!(refused.is_there && refused.refused.is_some() && !refused.is_memory && refused.each == Some(7));
        let folder = tempfile::tempdir().unwrap();
        let there = look(folder.path(), None);
        assert!(there.refused.is_none() && there.total >= there.free);
    }
}
