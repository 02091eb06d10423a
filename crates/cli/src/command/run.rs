//! `tidegate run`.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process;
use std::time::{Duration, Instant};

use tidegate_link::stats;

use crate::arguments::RunArguments;
use crate::child;
use crate::command::Prepared;
use crate::failure::Failure;
use crate::folder::StatsFolder;
use crate::report::absence::Absence;
use crate::report::json::{self, RunFacts};
use crate::report::{Job, table};
use crate::settings;

/// Runs the program, reports, and returns the exit code to end with.
pub fn run(arguments: &RunArguments) -> Result<u8, Failure> {
    let prepared = Prepared::new(&arguments.tuning, &arguments.command)?;
    // Before the run, which may be long: a file that cannot be written is a mistake to hear of now.
    let json_file = arguments.json.as_deref().map(open_json).transpose()?;
    let folder = StatsFolder::create()?;
    let mut command = process::Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]);
    command.envs(prepared.settings.iter().map(|setting| (setting.name, &setting.value)));
    command.env("FI_TIDEGATE_STATS_DIR", folder.path());

    let start = Instant::now();
    let status = child::run(&mut command)?;
    let wall_time = start.elapsed();
    // Killed processes cannot remove their segments.
    tidegate_link::reclaim(Path::new("/dev/shm"));

    let exit_code = child::exit_code(status);
    let pages = stats::read_dir(folder.path()).unwrap_or_else(|error| {
        eprintln!("tidegate: the counter pages cannot be read: {error}");
        Vec::new()
    });
    drop(folder);
    let job = Job::new(&pages);
    say(arguments, &prepared, &job, wall_time, exit_code);
    if let Some((path, file)) = json_file {
        let facts = RunFacts {
            command: &arguments.command,
            mpi: prepared.mpi.as_ref(),
            settings: &prepared.settings,
            wall_time,
            exit_code,
        };
        let written = write_json(file, &json::run(&job, &facts));
        if let Err(error) = written {
            let failure = Failure::own(format!("{}: {error}", path.display()));
            // The program's own failure matters more than ours.
            if exit_code == 0 {
                return Err(failure);
            }
            eprintln!("tidegate: {failure}");
        }
    }
    Ok(exit_code)
}

/// Prints the report, or why there is none, to standard error.
fn say(arguments: &RunArguments, prepared: &Prepared, job: &Job, wall_time: Duration, exit_code: u8) {
    let mpi = prepared.mpi.as_ref();
    let text = if job.processes().is_empty() {
        let overridden = settings::overridden(&arguments.command, &prepared.settings);
        let absence = Absence { mpi, overridden: &overridden, failed: exit_code != 0 };
        format!("tidegate: {}\n", absence.explain())
    } else if arguments.quiet {
        return;
    } else {
        let title = mpi.map(|mpi| mpi.title());
        table::render(job, title.as_deref(), wall_time, arguments.ranks)
    };
    // Nobody is left to tell if standard error is closed.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn open_json(path: &Path) -> Result<(&Path, File), Failure> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    file.map(|file| (path, file)).map_err(|error| Failure::own(format!("cannot write {}: {error}", path.display())))
}

fn write_json(mut file: File, value: &serde_json::Value) -> std::io::Result<()> {
    // A pipe or a device cannot be cut to length, and need not be.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(format!("{value:#}\n").as_bytes())
}
