//! The commands, one file each. A command returns its exit code, or what failed.

pub mod completions;
pub mod counters;
pub mod env;
pub mod run;

use std::io::{self, Write};
use std::path::PathBuf;

use crate::arguments::Tuning;
use crate::check::check;
use crate::failure::Failure;
use crate::launcher::{Launcher, look_up};
use crate::mpi::{Mpi, recognise};
use crate::provider;
use crate::settings::{Plan, Setting};

/// The MPI of a command and the settings for it.
struct Prepared {
    mpi: Option<Mpi>,
    settings: Vec<Setting>,
}

impl Prepared {
    fn new(tuning: &Tuning, command: &[std::ffi::OsString]) -> Result<Self, Failure> {
        let environment = |name: &str| std::env::var_os(name);
        let parameters = tuning.parameters();
        check(&parameters, &environment)?;
        let provider_dir = provider::find(tuning.provider_dir.as_deref())?;
        let launcher = Launcher::find(command);
        let mpi = recognise(tuning.mpi, launcher.as_ref());
        let near = match &launcher {
            Some(launcher) => launcher.folders(),
            None => folder_of_program(command).into_iter().collect(),
        };
        let plan = Plan {
            mpi: mpi.as_ref(),
            provider_dir: &provider_dir,
            parameters: &parameters,
            near: &near,
            root: rustix::process::geteuid().is_root(),
            environment: &environment,
        };
        let settings = plan.settings();
        Ok(Prepared { mpi, settings })
    }
}

/// The folder of the program that is called, or that `mpiexec` would be called from.
fn folder_of_program(command: &[std::ffi::OsString]) -> Option<PathBuf> {
    let program = command.first().map_or("mpiexec".as_ref(), |word| word.as_os_str());
    Some(look_up(program, std::env::var_os("PATH").as_deref())?.parent()?.to_owned())
}

/// Writes to standard output. A reader that has gone away is no failure.
fn print(bytes: &[u8]) -> Result<(), Failure> {
    match io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::own(format!("cannot write: {error}"))),
        _ => Ok(()),
    }
}

/// Writes a JSON value to standard output, for people to read too.
fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    print(format!("{value:#}\n").as_bytes())
}
