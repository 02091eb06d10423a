//! Which MPI a launcher belongs to: by what it answers to `--version`, else by its name and the files beside it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::child::answer;
use crate::launcher::Launcher;
use crate::tuning::MpiChoice;

/// How long a launcher may take to answer `--version`.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The MPIs that Tidegate knows how to set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpiKind {
    /// MPICH and what derives from it.
    Mpich,
    /// Open MPI.
    OpenMpi,
    /// Intel MPI.
    IntelMpi,
}

impl MpiKind {
    /// Its short name, as `--mpi` takes it and JSON has it.
    pub fn id(self) -> &'static str {
        match self {
            MpiKind::Mpich => "mpich",
            MpiKind::OpenMpi => "openmpi",
            MpiKind::IntelMpi => "impi",
        }
    }

    /// The one of this short name.
    pub fn of_id(id: &str) -> Option<MpiKind> {
        [MpiKind::Mpich, MpiKind::OpenMpi, MpiKind::IntelMpi].into_iter().find(|kind| kind.id() == id)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            MpiKind::Mpich => "MPICH",
            MpiKind::OpenMpi => "Open MPI",
            MpiKind::IntelMpi => "Intel MPI",
        }
    }
}

/// An MPI, as far as recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mpi {
    /// Which one.
    pub kind: MpiKind,
    /// Its version, if it told.
    pub version: Option<String>,
    /// The device MPICH was built with, if it told, such as `ch4:ucx,ofi`.
    pub device: Option<String>,
}

impl Mpi {
    /// One of which nothing else is known.
    pub fn of(kind: MpiKind) -> Self {
        Mpi { kind, version: None, device: None }
    }

    /// The first number of the version.
    pub fn major(&self) -> Option<u32> {
        self.version.as_ref()?.split('.').next()?.parse().ok()
    }

    /// Whether it is known to lack libfabric.
    pub fn lacks_libfabric(&self) -> bool {
        self.device.as_ref().is_some_and(|device| !device.contains("ofi"))
    }

    /// Name and version.
    pub fn title(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.kind.name()),
            None => self.kind.name().to_owned(),
        }
    }
}

/// The MPI that `choice` names, or that `launcher` belongs to. `None`: it is not known. Then the settings of all MPIs
/// are made, which do not disturb each other; only the name is missing in the report.
pub fn recognise(choice: MpiChoice, launcher: Option<&Launcher>) -> Option<Mpi> {
    let found = launcher.and_then(|launcher| {
        version_text(&launcher.path).and_then(|text| from_version(&text)).or_else(|| from_files(launcher))
    });
    let kind = match choice {
        MpiChoice::Auto => return found,
        MpiChoice::Mpich => MpiKind::Mpich,
        MpiChoice::Openmpi => MpiKind::OpenMpi,
        MpiChoice::Impi => MpiKind::IntelMpi,
    };
    Some(found.filter(|mpi| mpi.kind == kind).unwrap_or(Mpi::of(kind)))
}

/// The launcher's answer to `--version`, on either stream, if it ends in time.
fn version_text(launcher: &Path) -> Option<String> {
    answer(Command::new(launcher).arg("--version"), ANSWER_TIMEOUT)
}

/// Reads a launcher's answer to `--version`.
fn from_version(text: &str) -> Option<Mpi> {
    let after = |mark: &str| {
        let word = text.split_once(mark)?.1.split_whitespace().next()?;
        Some(word.trim_end_matches(',').to_owned()).filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
    };
    if text.contains("Intel(R) MPI Library") {
        return Some(Mpi { version: after("Version "), ..Mpi::of(MpiKind::IntelMpi) });
    }
    if text.contains("(Open MPI)")
        || text.contains("OpenRTE")
        || text.contains("PRRTE")
        || text.contains("help-prterun")
    {
        let version = after("(Open MPI) ").or_else(|| after("(OpenRTE) "));
        return Some(Mpi { version, ..Mpi::of(MpiKind::OpenMpi) });
    }
    if text.contains("HYDRA build details") {
        let device = text.split_once("--with-device=").and_then(|(_, rest)| rest.split([' ', '\'', '\n']).next());
        return Some(Mpi { kind: MpiKind::Mpich, version: after("Version:"), device: device.map(str::to_owned) });
    }
    None
}

/// Recognises the MPI by the launcher's real name, else by a program beside it that only this MPI has.
fn from_files(launcher: &Launcher) -> Option<Mpi> {
    let real = launcher.path.canonicalize().ok()?;
    let name = real.file_name()?.to_string_lossy().into_owned();
    if ["orterun", "prterun", "prte", "ompirun_wrapper"].contains(&name.as_str()) || name.ends_with(".openmpi") {
        return Some(Mpi::of(MpiKind::OpenMpi));
    }
    if name.ends_with(".mpich") {
        return Some(Mpi::of(MpiKind::Mpich));
    }
    let marks = [("impi_info", MpiKind::IntelMpi), ("ompi_info", MpiKind::OpenMpi), ("mpichversion", MpiKind::Mpich)];
    launcher.folders().iter().find_map(|folder| {
        let mut found = marks.iter().filter(|(program, _)| folder.join(program).exists());
        match (found.next(), found.next()) {
            (Some((_, kind)), None) => Some(Mpi::of(*kind)),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::write_script;
    use std::fs;

    const MPICH: &str = "HYDRA build details:\n    Version:                                 5.0.2\n    Configure options:      \
                         '--with-device=ch4:ucx,ofi' --with-pm=hydra:gforker\n";
    const OPEN_MPI_5: &str = "mpiexec (Open MPI) 5.0.11\n\nReport bugs to https://www.open-mpi.org/community/help/\n";
    const OPEN_MPI_4: &str = "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n";
    const INTEL: &str = "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: b44796a)\nCopyright";

    fn script(folder: &Path, name: &str, text: &str) -> Launcher {
        let path = folder.join(name);
        write_script(&path, text);
        Launcher { path }
    }

    fn title(launcher: &Launcher) -> Option<String> {
        recognise(MpiChoice::Auto, Some(launcher)).map(|mpi| mpi.title())
    }

    #[test]
    fn every_launcher_is_recognised_by_its_version() {
        let folder = tempfile::tempdir().unwrap();
        for (text, expected) in [
            (MPICH, "MPICH 5.0.2"),
            (OPEN_MPI_5, "Open MPI 5.0.11"),
            (OPEN_MPI_4, "Open MPI 4.1.4"),
            ("orterun (OpenRTE) 4.1.4\n", "Open MPI 4.1.4"),
            (INTEL, "Intel MPI 2021.18.1"),
            ("prterun (PRRTE) 3.0.9", "Open MPI"),
        ] {
            fs::write(folder.path().join("answer"), text).unwrap();
            for stream in ["", " >&2"] {
                let answer = format!("[ \"$1\" = --version ] && cat {}/answer{stream}", folder.path().display());
                assert_eq!(title(&script(folder.path(), "mpiexec", &answer)).as_deref(), Some(expected));
            }
        }
    }

    #[test]
    fn a_wrapper_script_is_seen_through() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("answer"), OPEN_MPI_5).unwrap();
        let real = script(folder.path(), "real", &format!("cat {}/answer", folder.path().display()));
        let wrapper = script(folder.path(), "mpiexec", &format!("export X=1\nexec {} \"$@\"", real.path.display()));
        assert_eq!(title(&wrapper).as_deref(), Some("Open MPI 5.0.11"));
    }

    #[test]
    fn a_mute_launcher_is_recognised_by_its_neighbours() {
        for (neighbour, expected) in [("impi_info", "Intel MPI"), ("ompi_info", "Open MPI"), ("mpichversion", "MPICH")]
        {
            let folder = tempfile::tempdir().unwrap();
            let launcher = script(folder.path(), "mpirun", "echo hello; exit 3");
            assert_eq!(title(&launcher), None);
            script(folder.path(), neighbour, "");
            assert_eq!(title(&launcher).as_deref(), Some(expected));
        }
    }

    #[test]
    fn neighbours_of_two_kinds_decide_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let launcher = script(folder.path(), "mpirun", "exit 3");
        script(folder.path(), "ompi_info", "");
        script(folder.path(), "mpichversion", "");
        assert_eq!(title(&launcher), None);
    }

    #[test]
    fn a_mute_launcher_is_recognised_by_the_name_behind_its_links() {
        for (name, expected) in [("orterun", "Open MPI"), ("mpiexec.openmpi", "Open MPI"), ("mpiexec.mpich", "MPICH")] {
            let folder = tempfile::tempdir().unwrap();
            let real = script(folder.path(), name, "exit 3");
            let path = folder.path().join("mpiexec");
            std::os::unix::fs::symlink(real.path, &path).unwrap();
            assert_eq!(title(&Launcher { path }).as_deref(), Some(expected));
        }
    }

    #[test]
    fn the_choice_of_the_user_wins_over_what_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("answer"), MPICH).unwrap();
        let launcher = script(folder.path(), "mpiexec", &format!("cat {}/answer", folder.path().display()));
        let choose = |choice| recognise(choice, Some(&launcher)).unwrap().title();
        assert_eq!(choose(MpiChoice::Mpich), "MPICH 5.0.2");
        assert_eq!(choose(MpiChoice::Impi), "Intel MPI");
        assert_eq!(recognise(MpiChoice::Openmpi, None), Some(Mpi::of(MpiKind::OpenMpi)));
        assert_eq!(recognise(MpiChoice::Auto, None), None);
    }

    #[test]
    fn an_mpich_without_libfabric_is_noticed() {
        let device = |text| from_version(&format!("HYDRA build details:\n --with-device={text} --x")).unwrap();
        assert!(device("ch4:ucx").lacks_libfabric());
        assert!(!device("ch4:ofi").lacks_libfabric());
        assert!(!from_version(MPICH).unwrap().lacks_libfabric());
        assert!(!from_version("HYDRA build details:").unwrap().lacks_libfabric());
    }

    #[test]
    fn the_major_version_is_a_number() {
        assert_eq!(from_version(OPEN_MPI_4).unwrap().major(), Some(4));
        assert_eq!(from_version(OPEN_MPI_5).unwrap().major(), Some(5));
        assert_eq!(Mpi::of(MpiKind::OpenMpi).major(), None);
    }
}
