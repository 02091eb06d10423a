//! Files in `/dev/shm` that dead processes of this user have left.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidegate_link::DIRECTORY;

use super::super::facts::LeftFile;
use crate::report::host::is_of_mpi;

/// The namespace of processes that a machine starts with (`PROC_PID_INIT_INO` of the kernel).
const FIRST_NAMESPACE: &str = "4026531836";

/// A file that was changed less than this ago may belong to a job that is just starting.
const YOUNG: Duration = Duration::from_secs(60);

/// Files of this user with names that MPIs and Tidegate give, and which no process has open. Nothing, where not all
/// processes can be seen that may have one open.
pub fn files() -> Vec<LeftFile> {
    files_in(Path::new(DIRECTORY)).unwrap_or_default()
}

/// Removes them. Returns those that are gone, or the first error with the name of its file.
pub fn remove() -> Result<Vec<LeftFile>, String> {
    let found = files();
    let gone = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    for file in &found {
        let path = Path::new(DIRECTORY).join(&file.name);
        fs::remove_file(&path)
            .or_else(|error| if gone(&error) { Ok(()) } else { Err(error) })
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(found)
}

fn files_in(place: &Path) -> Option<Vec<LeftFile>> {
    let user = rustix::process::geteuid().as_raw();
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?.to_string_lossy().into_owned();
    let namespace = namespace.trim_matches(|letter: char| !letter.is_ascii_digit()).to_owned();
    // Names of Tidegate's say in which namespace their processes are, others do not.
    let is_seen = |name: &str| namespace == FIRST_NAMESPACE || name.contains(&format!("-{namespace}-"));
    let mut candidates = Vec::new();
    for entry in fs::read_dir(place).ok()?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(file) = entry.metadata() else { continue };
        let is_young = file.modified().ok().and_then(|then| then.elapsed().ok()).is_none_or(|age| age < YOUNG);
        if file.is_file() && !is_young && file.uid() == user && is_of_mpi(&name) && is_seen(&name) {
            candidates.push(LeftFile { name, bytes: file.blocks() * 512 });
        }
    }
    if candidates.is_empty() {
        return Some(candidates);
    }
    let open = open_files(user, place)?;
    candidates.retain(|file| !open.contains(&place.join(&file.name)) && place.join(&file.name).exists());
    candidates.sort_by(|one, other| one.name.cmp(&other.name));
    Some(candidates)
}

/// The files below a folder that processes of this user have open or mapped. `None`: one of them cannot be seen.
fn open_files(user: u32, place: &Path) -> Option<HashSet<PathBuf>> {
    let mut open = HashSet::new();
    for process in fs::read_dir("/proc").ok()?.flatten() {
        let name = process.file_name().to_string_lossy().into_owned();
        // The first process of a machine is no rank, and may be closed to its own user.
        let is_process = name.bytes().all(|byte| byte.is_ascii_digit()) && name != "1";
        if !is_process || process.metadata().map_or(true, |facts| facts.uid() != user) {
            continue;
        }
        let maps = match fs::read_to_string(process.path().join("maps")) {
            Ok(maps) => maps,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return None,
            Err(_) => continue,
        };
        let mapped = maps.lines().filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..])));
        open.extend(mapped.filter(|path| path.starts_with(place)));
        let links = fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        open.extend(links.filter_map(|link| fs::read_link(link.path()).ok()).filter(|path| path.starts_with(place)));
    }
    Some(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_no_process_has_open_are_left() {
        let folder = tempfile::tempdir().unwrap();
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap().to_string_lossy().into_owned();
        let namespace = namespace.trim_matches(|letter: char| !letter.is_ascii_digit());
        let name = |number: u32| format!("tidegate-0-abc-{namespace}-{number}-0-1");
        let make = |number| {
            let file = fs::File::create(folder.path().join(name(number))).unwrap();
            file.set_modified(std::time::SystemTime::now() - 2 * YOUNG).unwrap();
            file
        };
        drop(make(1));
        let kept = make(2);
        fs::write(folder.path().join(name(3)), "of a job that is just starting").unwrap();
        fs::write(folder.path().join("mine"), "x").unwrap();
        let names = |files: Option<Vec<LeftFile>>| -> Vec<String> {
            files.unwrap_or_default().into_iter().map(|file| file.name).collect()
        };
        let Some(found) = files_in(folder.path()) else { return };
        assert_eq!(names(Some(found)), [name(1)]);
        drop(kept);
        // A child of another test may have inherited the descriptor for a moment.
        let both = [name(1), name(2)];
        assert!((0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            names(files_in(folder.path())) == both
        }));
    }
}
