//! The commands, one file each. A command returns its exit code, or what failed.

pub mod calibrate;
pub mod completions;
pub mod counters;
pub mod diff;
pub mod doctor;
pub mod env;
pub mod export;
pub mod paper;
pub mod plan;
pub mod record;
pub mod report;
pub mod run;
pub mod sim;
pub mod top;

use std::io::{self, Write};
use std::path::Path;

use rustix::fs::{Access, access};
use tidegate_link::log::print_line;

use crate::alltoall::{self, Place, Wish};
use crate::check::{Misspelt, check, misspelt};
use crate::failure::Failure;
use crate::files;
use crate::launcher::{Launcher, folders_near};
use crate::mpi::{Mpi, MpiKind, recognise};
use crate::provider;
use crate::settings::{Plan, ROOT_PERMISSION, Setting};
use crate::tuning::Tuning;

/// The MPI of a command and the settings for it.
struct Prepared {
    mpi: Option<Mpi>,
    settings: Vec<Setting>,
    /// Variables of the environment that were meant for Tidegate and are unknown to it. The user has been told.
    misspelt: Vec<Misspelt>,
}

impl Prepared {
    /// Checks everything. Prints a line for each misspelt variable, which does not stop the run.
    fn new(tuning: &Tuning, command: &[std::ffi::OsString], alltoall: Option<&Wish>) -> Result<Self, Failure> {
        let environment = |name: &str| std::env::var_os(name);
        let parameters = tuning.parameters();
        check(&parameters, &environment)?;
        let misspelt = misspelt(std::env::vars_os().map(|(name, _)| name));
        misspelt.iter().for_each(|misspelt| print_line(&misspelt.text));
        let provider_dir = provider::find(tuning.provider_dir.as_deref())?;
        let launcher = Launcher::find(command);
        let mpi = recognise(tuning.mpi, launcher.as_ref());
        let near = folders_near(launcher.as_ref(), command);
        let place = Place { mpi: mpi.as_ref(), near: &near, provider_dir: &provider_dir, environment: &environment };
        let alltoall = alltoall.map(|wish| alltoall::settings(wish, &place)).transpose()?.unwrap_or_default();
        let plan = Plan {
            mpi: mpi.as_ref(),
            provider_dir: &provider_dir,
            parameters: &parameters,
            alltoall: &alltoall,
            near: &near,
            root: rustix::process::geteuid().is_root(),
            environment: &environment,
        };
        let settings = plan.settings();
        Ok(Prepared { mpi, settings, misspelt })
    }

    /// A notice that Open MPI has been allowed to run as root, which it refuses by default. `None` for other MPIs, or
    /// where the user had allowed it already.
    fn permission(&self) -> Option<&'static str> {
        let is_given = self.settings.iter().any(|setting| setting.name == ROOT_PERMISSION);
        let is_open_mpi = self.mpi.as_ref().is_some_and(|mpi| mpi.kind == MpiKind::OpenMpi);
        (is_given && is_open_mpi)
            .then_some("you are root, for whom Open MPI does not run by default: OMPI_ALLOW_RUN_AS_ROOT is set for it")
    }
}

/// Whether a file that the user names stands for standard output.
fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// Refuses a file that is to be written, before anything is done for it, if it has no folder, is one itself, or is not
/// this user's to write.
///
/// # Errors
/// If it can never be written.
fn check_output(option: &str, path: &Path) -> Result<(), Failure> {
    let folder = files::folder_of(path);
    let may_write = |path: &Path| access(path, Access::WRITE_OK);
    let refusal = match is_standard_output(path) || !path.is_dir() && folder.is_dir() {
        false => "name a file in a folder that exists".to_owned(),
        true if is_standard_output(path) => return Ok(()),
        true => match may_write(path).or_else(|_| may_write(&folder)) {
            Ok(()) => return Ok(()),
            Err(error) => format!("it cannot be written: {}", io::Error::from(error)),
        },
    };
    Err(Failure::usage(format!("{option}={}: {refusal}", path.display())))
}

/// Writes a file that the user has named.
fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    files::write_output(path, text).map_err(|error| Failure::write(path, &error))
}

/// Writes to standard output. A reader that has gone away is no failure.
///
/// # Errors
/// If it cannot be written.
pub fn print(bytes: &[u8]) -> Result<(), Failure> {
    match io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::own(format!("cannot write: {error}"))),
        _ => Ok(()),
    }
}

/// Writes a JSON value to standard output, indented.
///
/// # Errors
/// If it cannot be written.
pub fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    print(format!("{value:#}\n").as_bytes())
}
