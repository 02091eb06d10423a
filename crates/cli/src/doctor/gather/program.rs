//! A program that the user has named: which MPI library the dynamic loader finds for it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::super::facts::Program;
use super::library::kind_of;
use crate::child::answer;

/// How long `ldd` may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Looks at a program with this name, which is at `path` if it is there.
pub fn look(name: &OsStr, path: Option<PathBuf>) -> Program {
    let name = name.to_string_lossy().into_owned();
    let Some(path) = path else { return Program { name, ..Program::default() } };
    // `ldd` has the loader list what it would load, and runs nothing of the program.
    let listed = answer(Command::new("ldd").arg(&path), PATIENCE).unwrap_or_default();
    let (library, missing) = read(&listed);
    let kind = library.as_deref().and_then(kind_of);
    Program { name, path: Some(path), library, missing, kind }
}

/// The MPI library in such a list, and names that lead nowhere.
fn read(listed: &str) -> (Option<PathBuf>, Vec<String>) {
    let entries = listed.lines().filter_map(|line| line.trim().split_once(" => "));
    let (mut library, mut missing) = (None, Vec::new());
    for (name, found) in entries {
        let is_mpi = name.starts_with("libmpi.so") || name.starts_with("libmpich.so");
        if found.starts_with("not found") {
            missing.push(name.to_owned());
        } else if is_mpi {
            library = found.split(" (").next().map(|path| Path::new(path).to_owned());
        }
    }
    (library, missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_the_loader_names_the_library_and_what_is_missing() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffc)\n\tlibmpi.so.12 => /opt/my mpi/lib/libmpi.so.12 (0x00007f)\n\
                      \tlibgfortran.so.5 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x00007f)\n";
        let expected = (Some(PathBuf::from("/opt/my mpi/lib/libmpi.so.12")), vec!["libgfortran.so.5".to_owned()]);
        assert_eq!(read(listed), expected);
        assert_eq!(read("\tnot a dynamic executable\n"), (None, Vec::new()));
        let missing = look(OsStr::new("./x"), None);
        assert_eq!((missing.name.as_str(), missing.path), ("./x", None));
    }
}
