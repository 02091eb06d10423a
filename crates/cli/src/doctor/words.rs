//! [`Words`]: the launcher, its options and the program in a command, as far as the doctor needs them: how many ranks
//! there are to be and where, and how a job of its own is started in the same way.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use crate::launcher::{self, Launcher, is_launcher, look_up, look_up_in};

/// The program that starts the ranks of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Starter {
    /// A launcher of an MPI.
    Mpi(Launcher),
    /// Slurm's.
    Srun(PathBuf),
}

impl Starter {
    /// Where it is.
    pub fn path(&self) -> &Path {
        match self {
            Starter::Mpi(launcher) => &launcher.path,
            Starter::Srun(path) => path,
        }
    }
}

/// A command, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The words before the launcher, such as `env X=1`.
    pub before: Vec<OsString>,
    /// The launcher; that of the command, else the first of `PATH`.
    pub starter: Option<Starter>,
    /// The launcher that the command names and that is not there.
    pub missing: Option<OsString>,
    /// The launcher's options, without those that say how many ranks there are and where.
    pub options: Vec<OsString>,
    /// How many ranks the command asks for.
    pub ranks: Option<u32>,
    /// The hosts that it names.
    pub hosts: Vec<String>,
    /// The program, as the command has it.
    pub program: Option<OsString>,
}

/// Options with a number of ranks behind them.
const COUNTS: [&str; 6] = ["-n", "-np", "--n", "--np", "-c", "--ntasks"];
/// The one of them that is something else to Slurm: processors for each rank.
const PROCESSORS_OF_SRUN: &str = "-c";
/// Options with hosts behind them, and with a file of hosts.
const HOSTS: [&str; 6] = ["-hosts", "-host", "--host", "-H", "-w", "--nodelist"];
const HOST_FILES: [&str; 6] = ["-f", "-hostfile", "--hostfile", "-machinefile", "--machinefile", "-machine"];
/// Options that say how many ranks a host has, with one word behind them.
const PLACES: [&str; 7] = ["-ppn", "-perhost", "--map-by", "-map-by", "-N", "--nodes", "--ntasks-per-node"];
/// Options with two words behind them.
const PAIRS: [&str; 8] = ["-genv", "-env", "--mca", "-mca", "--gmca", "-gmca", "--prtemca", "--pmixmca"];
/// Options with nothing behind them that a program may follow.
const FLAGS: [&str; 16] = [
    "--oversubscribe",
    "-oversubscribe",
    "--allow-run-as-root",
    "-allow-run-as-root",
    "-prepend-rank",
    "-l",
    "-verbose",
    "-v",
    "-q",
    "--tag-output",
    "-tag-output",
    "-genvall",
    "-genvnone",
    "--exclusive",
    "--overlap",
    "--display-map",
];

impl Words {
    /// Takes a command apart. A launcher that it does not name is looked for in `PATH`.
    pub fn of(command: &[OsString]) -> Words {
        let is_starter = |name: &OsStr| is_launcher(name) || name == "srun";
        let Some(at) = launcher::position(command, is_starter) else {
            return Words { starter: first_in_path(), program: command.first().cloned(), ..Words::default() };
        };
        let mut words = Words { before: command[..at].to_vec(), ..Words::default() };
        let is_srun = Path::new(&command[at]).file_name() == Some(OsStr::new("srun"));
        words.starter = look_up_in(command, at)
            .map(|path| if is_srun { Starter::Srun(path) } else { Starter::Mpi(Launcher { path }) });
        words.missing = words.starter.is_none().then(|| command[at].clone());
        words.take_options(&command[at + 1..]);
        words
    }

    fn take_options(&mut self, rest: &[OsString]) {
        let mut at = 0;
        while let Some(word) = rest.get(at) {
            let text = word.to_string_lossy();
            let value = rest.get(at + 1);
            let (name, joined) = match text.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value)),
                _ => (text.as_ref(), None),
            };
            let said = || joined.map(str::to_owned).or_else(|| value.map(|word| word.to_string_lossy().into_owned()));
            let taken = if joined.is_some() { 1 } else { 2 };
            let is_srun = matches!(self.starter, Some(Starter::Srun(_)));
            at += if COUNTS.contains(&name) && !(is_srun && name == PROCESSORS_OF_SRUN) {
                self.ranks = said().and_then(|number| number.parse().ok()).or(self.ranks);
                taken
            } else if HOSTS.contains(&name) {
                self.hosts.extend(said().iter().flat_map(|list| host_names(list)));
                taken
            } else if HOST_FILES.contains(&name) {
                let file = said().and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
                self.hosts.extend(hosts_in_file(&file));
                taken
            } else if PLACES.contains(&name) {
                taken
            } else if !text.starts_with('-') {
                self.program = Some(word.clone());
                return;
            } else {
                let last = match () {
                    () if PAIRS.contains(&name) => at + 2,
                    () if joined.is_some() || FLAGS.contains(&name) => at,
                    () if value.is_some_and(|value| value.to_string_lossy().starts_with('-')) => at,
                    () => at + 1,
                };
                let end = (last + 1).min(rest.len());
                self.options.extend_from_slice(&rest[at..end]);
                end - at
            };
        }
    }

    /// The launcher, if it is one of an MPI.
    pub fn launcher(&self) -> Option<&Launcher> {
        match &self.starter {
            Some(Starter::Mpi(launcher)) => Some(launcher),
            _ => None,
        }
    }

    /// The program, where it is one that can be found.
    pub fn program_path(&self) -> Option<PathBuf> {
        look_up(self.program.as_ref()?, std::env::var_os("PATH").as_deref())
    }
}

/// The first launcher that there is.
fn first_in_path() -> Option<Starter> {
    let search = std::env::var_os("PATH");
    let find = |name: &str| look_up(OsStr::new(name), search.as_deref());
    let mpi = ["mpiexec", "mpirun"].into_iter().find_map(find);
    mpi.map(|path| Starter::Mpi(Launcher { path })).or_else(|| find("srun").map(Starter::Srun))
}

/// The names in a list such as `a:2,b:2`.
pub fn host_names(list: &str) -> Vec<String> {
    let names = list.split(',').map(|name| name.split(':').next().unwrap_or_default().trim());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The names in a file of hosts, each once: the first word of each line.
fn hosts_in_file(text: &str) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    let lines = text.lines().filter_map(|line| line.split('#').next()?.split_whitespace().next());
    for name in lines.flat_map(host_names) {
        if !hosts.contains(&name) {
            hosts.push(name);
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::write_script;

    fn of(command: &str) -> Words {
        Words::of(&command.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    fn texts(words: &[OsString]) -> String {
        words.join(OsStr::new(" ")).to_string_lossy().into_owned()
    }

    #[test]
    fn ranks_hosts_options_and_program_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["mpiexec", "srun"] {
            write_script(&folder.path().join(name), "");
        }
        let here = folder.path().display();
        for (command, before, options, ranks, hosts, program) in [
            ("mpiexec", "", "", None, "", None),
            ("mpiexec -n 4 ./x -n 9", "", "", Some(4), "", Some("./x")),
            ("mpiexec -genv A B -np 8 -hosts a:4,b:4 x", "", "-genv A B", Some(8), "a,b", Some("x")),
            ("mpiexec -launcher ssh -n 2 x y", "", "-launcher ssh", Some(2), "", Some("x")),
            ("mpiexec --oversubscribe x", "", "--oversubscribe", None, "", Some("x")),
            ("mpiexec --host a,b --map-by ppr:1:node -n 2 x", "", "", Some(2), "a,b", Some("x")),
            ("srun --mpi=pmi2 --ntasks=16 -N 2 x", "", "--mpi=pmi2", Some(16), "", Some("x")),
            ("srun -n 64 -c 4 x", "", "-c 4", Some(64), "", Some("x")),
            ("mpiexec -c 4 x", "", "", Some(4), "", Some("x")),
        ] {
            let words = of(&format!("{here}/{command}"));
            let found =
                (texts(&words.before), texts(&words.options), words.ranks, words.hosts.join(","), words.program);
            let expected = (before.into(), options.into(), ranks, hosts.into(), program.map(OsString::from));
            assert_eq!(found, expected, "{command}");
        }
        assert!(matches!(of(&format!("{here}/srun x")).starter, Some(Starter::Srun(_))));
        let behind = of(&format!("env A=1 {here}/mpiexec -n 2 x"));
        assert_eq!((texts(&behind.before).as_str(), behind.ranks), ("env A=1", Some(2)));
    }

    #[test]
    fn a_program_alone_and_a_launcher_that_is_not_there_are_known() {
        assert_eq!(of("./a.out 5").program, Some("./a.out".into()));
        let missing = of("/nowhere/mpiexec -n 2 x");
        assert_eq!((missing.starter, missing.missing), (None, Some("/nowhere/mpiexec".into())));
    }

    #[test]
    fn files_of_hosts_are_read_in_the_forms_that_there_are() {
        assert_eq!(hosts_in_file("# all\na:4\nb slots=4\n\na\n"), ["a", "b"]);
        assert_eq!(host_names("a:2, b ,,c"), ["a", "b", "c"]);
    }
}
