//! Which word of a command is the MPI launcher: `mpiexec` itself, by any path, or behind `env`, `timeout`, `taskset`
//! and the like.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Commands that run another command given in their arguments.
const PREFIXES: &[&str] = &[
    "catatonit",
    "chronic",
    "chrt",
    "dumb-init",
    "env",
    "gdb",
    "ionice",
    "ltrace",
    "nice",
    "nohup",
    "numactl",
    "perf",
    "prlimit",
    "setsid",
    "stdbuf",
    "strace",
    "taskset",
    "time",
    "timeout",
    "tini",
    "unbuffer",
    "valgrind",
    "xvfb-run",
];

/// A launcher found in a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// Its absolute path; symbolic links are not followed.
    pub path: PathBuf,
}

impl Launcher {
    /// The launcher in `command`, if there is one. Looks it up in `PATH` as the command will, also when `env PATH=…`
    /// before the launcher changes it.
    pub fn find(command: &[OsString]) -> Option<Launcher> {
        let index = position(command, is_launcher)?;
        look_up_in(command, index).map(|path| Launcher { path })
    }

    /// Folders of the launcher's installation that hold its programs: as called, then with links followed.
    pub fn folders(&self) -> Vec<PathBuf> {
        let real = self.path.canonicalize().ok();
        let mut folders: Vec<_> = [Some(&self.path), real.as_ref()]
            .into_iter()
            .flatten()
            .filter_map(|path| path.parent().map(Path::to_owned))
            .collect();
        folders.dedup();
        folders
    }
}

/// Folders with programs of the MPI that a command runs: those of its launcher, or where it has none, of its programs.
pub fn folders_near(launcher: Option<&Launcher>, command: &[OsString]) -> Vec<PathBuf> {
    launcher.map_or_else(|| folders_of_programs(command), Launcher::folders)
}

/// The place of the first word of this kind in a command: the first of all, or behind a command that runs another one.
pub fn position(command: &[OsString], is_one: impl Fn(&OsStr) -> bool) -> Option<usize> {
    let first = command.first()?;
    if is_one(base_name(first)) {
        Some(0)
    } else if PREFIXES.iter().any(|prefix| base_name(first) == *prefix) {
        command.iter().position(|word| is_one(base_name(word)))
    } else {
        None
    }
}

/// Finds a word of a command as the command will, also where `env PATH=…` before the word changes the places.
pub fn look_up_in(command: &[OsString], index: usize) -> Option<PathBuf> {
    let search = command[..index].iter().rev().find_map(|word| word.as_bytes().strip_prefix(b"PATH="));
    let search = search.map(|bytes| OsStr::from_bytes(bytes).to_owned()).or_else(|| env::var_os("PATH"));
    look_up(&command[index], search.as_deref())
}

/// Folders of the programs in a command without a launcher, and of `mpiexec`, which a script may call.
fn folders_of_programs(command: &[OsString]) -> Vec<PathBuf> {
    let search = env::var_os("PATH");
    let words = command.iter().map(OsString::as_os_str).chain(["mpiexec".as_ref()]);
    let programs = words.filter_map(|word| look_up(word, search.as_deref()));
    programs.filter_map(|program| Some(program.parent()?.to_owned())).collect()
}

/// Whether a program of this name starts MPI programs and answers `--version` without starting anything.
pub fn is_launcher(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let of_mpi = |start: &str| {
        let rest = name.strip_prefix(start);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '_']) && !rest.ends_with(".sh"))
    };
    of_mpi("mpiexec") || of_mpi("mpirun") || matches!(name.as_ref(), "orterun" | "prterun")
}

/// The last part of a path.
fn base_name(word: &OsStr) -> &OsStr {
    Path::new(word).file_name().unwrap_or(word)
}

/// Finds a program as execvp(3) does: a name with a slash is a path, another one is looked up in `search`.
pub fn look_up(program: &OsStr, search: Option<&OsStr>) -> Option<PathBuf> {
    let executable = |path: &PathBuf| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    if program.as_bytes().contains(&b'/') {
        return Some(std::path::absolute(program).ok()?).filter(executable);
    }
    let folders = env::split_paths(search?).map(|folder| folder.join(program));
    folders.filter_map(|path| std::path::absolute(path).ok()).find(executable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(programs: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for program in programs {
            let path = root.path().join(program);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        root
    }

    fn find(command: &str) -> Option<PathBuf> {
        let words: Vec<_> = command.split(' ').map(OsString::from).collect();
        Launcher::find(&words).map(|launcher| launcher.path)
    }

    #[test]
    fn launchers_are_found_by_path_and_behind_prefixes() {
        let root = tree(&["a/mpiexec", "a/mpirun.openmpi", "a/prterun", "b/mpiexec"]);
        let (a, b) = (root.path().join("a"), root.path().join("b"));
        let (a, b) = (a.display(), b.display());
        for (command, expected) in [
            (format!("{a}/mpiexec -n 2 x"), "a/mpiexec"),
            (format!("{a}/mpirun.openmpi -n 2 x"), "a/mpirun.openmpi"),
            (format!("{a}/prterun -n 2 x"), "a/prterun"),
            (format!("timeout -s INT 60 {a}/mpiexec -n 2 x"), "a/mpiexec"),
            (format!("/usr/bin/env -u X Y=1 taskset -c 0 {b}/mpiexec -n 2 x"), "b/mpiexec"),
            (format!("env PATH={b} mpiexec -n 2 x"), "b/mpiexec"),
            (format!("env PATH={a} PATH={b}:{a} mpiexec -n 2 mpirun.openmpi"), "b/mpiexec"),
        ] {
            assert_eq!(find(&command), Some(root.path().join(expected)), "{command}");
        }
    }

    #[test]
    fn programs_that_are_not_launchers_are_left_alone() {
        let root = tree(&["mpirun.sh", "a.out", "mpiexecutable"]);
        let here = root.path().display();
        for command in [
            format!("{here}/mpirun.sh -n 2"),
            format!("{here}/a.out mpiexec"),
            format!("{here}/mpiexecutable"),
            format!("timeout 5 {here}/a.out"),
            format!("{here}/missing/mpiexec -n 2 x"),
        ] {
            assert_eq!(find(&command), None, "{command}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_executed_is_passed_over() {
        let root = tree(&["a/mpiexec", "b/mpiexec"]);
        fs::set_permissions(root.path().join("a/mpiexec"), fs::Permissions::from_mode(0o644)).unwrap();
        let search = env::join_paths([root.path().join("a"), root.path().join("b")]).unwrap();
        assert_eq!(look_up(OsStr::new("mpiexec"), Some(&search)), Some(root.path().join("b/mpiexec")));
    }

    #[test]
    fn both_the_called_and_the_real_folder_are_named() {
        let root = tree(&["opt/mpi/bin/orterun"]);
        fs::create_dir(root.path().join("bin")).unwrap();
        let called = root.path().join("bin/mpiexec");
        std::os::unix::fs::symlink(root.path().join("opt/mpi/bin/orterun"), &called).unwrap();
        let folders = Launcher { path: called }.folders();
        assert_eq!(folders, [root.path().join("bin"), root.path().canonicalize().unwrap().join("opt/mpi/bin")]);
    }
}
