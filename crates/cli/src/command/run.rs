//! `tidegate run`.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process;
use std::time::{Duration, Instant};

use serde_json::Value;
use tidegate_link::log::print_line;
use tidegate_link::{stats, trouble};
use tidegate_message::Counter;

use crate::alltoall::Wish;
use crate::arguments::RunArguments;
use crate::child;
use crate::command::Prepared;
use crate::failure::{self, Failure};
use crate::folder::StatsFolder;
use crate::mpi::MpiKind;
use crate::report::json::{self, RunFacts};
use crate::report::usage::Usage;
use crate::report::{Job, table};
use crate::settings::{self, PASSED_ON, PROVIDER_PATH, STATS_DIR};

/// Runs the program, reports, and returns the exit code to end with.
pub fn run(arguments: &RunArguments) -> Result<u8, Failure> {
    run_with(arguments, &[], |_| Ok(None))
}

/// The same with further variables for the program, and something to be done with what it has left: `after`, which
/// returns what the report as JSON is to say of it, by name.
pub fn run_with(
    arguments: &RunArguments,
    variables: &[(&str, OsString)],
    after: impl FnOnce(&Job) -> Result<More, Failure>,
) -> Result<u8, Failure> {
    let wish = arguments.alltoall.map(|technique| Wish {
        technique: technique.name(),
        bytes: arguments.alltoall_bytes.as_deref(),
        report: !arguments.quiet,
    });
    let prepared = Prepared::new(&arguments.tuning, &arguments.command, wish.as_ref())?;
    // The file is opened before the run, so that the user hears of a wrong name now and not after a long run.
    let json_file = arguments.json.as_deref().map(JsonFile::open).transpose()?;
    if let Some(permission) = prepared.permission().filter(|_| !arguments.quiet) {
        print_line(permission);
    }
    let folder = StatsFolder::create(arguments.shared.as_deref())?;
    let mut command = command(arguments, &prepared, &folder, variables)?;
    let start = Instant::now();
    let status = child::run(&mut command)?;
    let wall_time = start.elapsed();
    // Killed processes cannot remove their segments.
    tidegate_link::reclaim(Path::new("/dev/shm"));

    let exit_code = child::exit_code(status);
    let pages = stats::read_dir(folder.path()).unwrap_or_else(|error| {
        print_line(&format!("the counter pages cannot be read: {error}"));
        Vec::new()
    });
    let troubles = trouble::read_dir(folder.path());
    drop(folder);
    let job = Job::new(&pages);
    let overridden = settings::overridden(&arguments.command, &prepared.settings);
    let mpi = prepared.mpi.as_ref();
    let usage = Usage { job: &job, mpi, overridden: &overridden, troubles: &troubles, failed: exit_code != 0 };
    say(arguments, &usage, wall_time);
    if let Some(text) = usage.absent(arguments.shared.as_deref()) {
        print_line(&text);
    }
    let more = after(&job);
    if let Some(file) = json_file {
        let facts = RunFacts {
            command: &arguments.command,
            mpi,
            settings: &prepared.settings,
            wall_time,
            exit_code,
            usage: &usage,
        };
        let report = with_more(json::run(&job, &facts), more.as_ref().ok());
        end_well(file.write(&report), exit_code)?;
    }
    end_well(more.map(|_| ()), exit_code)?;
    let lost = job.spread(Counter::SendsLost).map_or(0, |spread| spread.job);
    if lost > 0 {
        print_line(&format!(
            "{lost} messages that counted as sent never reached their receivers, because endpoints closed first (sends_lost)"
        ));
    }
    Ok(if exit_code == 0 && lost > 0 { failure::LOST } else { exit_code })
}

/// What else there is to say in the report as JSON.
type More = Option<(&'static str, Value)>;

/// The report with what else there is to say in it.
fn with_more(mut report: Value, more: Option<&More>) -> Value {
    if let Some(Some((name, value))) = more {
        report[*name] = value.clone();
    }
    report
}

/// A failure of ours ends the command unless the program failed itself, which matters more: then it is only said.
fn end_well(outcome: Result<(), Failure>, exit_code: u8) -> Result<(), Failure> {
    match outcome {
        Err(failure) if exit_code != 0 => {
            print_line(&failure.to_string());
            Ok(())
        }
        outcome => outcome,
    }
}

/// The program with its environment.
fn command(
    arguments: &RunArguments,
    prepared: &Prepared,
    folder: &StatsFolder,
    variables: &[(&str, OsString)],
) -> Result<process::Command, Failure> {
    let mut command = process::Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]);
    command.envs(prepared.settings.iter().map(|setting| (setting.name, &setting.value)));
    let is_intel = prepared.mpi.as_ref().is_some_and(|mpi| mpi.kind == MpiKind::IntelMpi);
    if let Some(search) = prepared.settings.iter().find(|setting| setting.name == PROVIDER_PATH)
        && arguments.shared.is_some()
        && is_intel
    {
        let refused =
            |error| Failure::own(format!("the providers of {} cannot be linked: {error}", search.value.display()));
        command.env(PROVIDER_PATH, folder.gather_providers(&search.value).map_err(refused)?);
    }
    // Ranks on other hosts may not see the folder.
    let mut stats_dir = OsString::from("?");
    stats_dir.push(folder.path());
    command.env(STATS_DIR, stats_dir);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    if let Some(list) = prepared.settings.iter().find(|setting| setting.name == PASSED_ON) {
        let names = [STATS_DIR].into_iter().chain(variables.iter().map(|(name, _)| *name));
        let passed_on = names.fold(list.value.to_string_lossy().into_owned(), |list, name| list + ";" + name);
        command.env(PASSED_ON, passed_on);
    }
    // The user has been told of these variables already, so the ranks need not tell again.
    prepared.misspelt.iter().for_each(|misspelt| _ = command.env_remove(&misspelt.name));
    Ok(command)
}

/// Prints the report to standard error, or why there is nothing to report.
fn say(arguments: &RunArguments, usage: &Usage, wall_time: Duration) {
    let title = usage.mpi.map(|mpi| mpi.title());
    let mut text = String::new();
    match usage.explain() {
        Some(explanation) => {
            if !usage.job.processes().is_empty() && !arguments.quiet {
                text += &table::heading(usage.job, title.as_deref(), wall_time);
            }
            text += &format!("tidegate: {explanation}\n");
        }
        None if arguments.quiet => return,
        None => {
            text += &table::render(usage.job, title.as_deref(), wall_time, arguments.ranks);
            let told: String = usage.told().iter().map(|told| format!("\n  * {told}")).collect();
            if !told.is_empty() {
                text += &format!("\ntidegate: processes said:{told}\n");
            }
        }
    }
    // If standard error is closed, there is nobody to tell.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Where the report goes as JSON.
enum JsonFile<'a> {
    StandardOutput,
    File(&'a Path, File),
}

impl<'a> JsonFile<'a> {
    fn open(path: &'a Path) -> Result<Self, Failure> {
        if super::is_standard_output(path) {
            return Ok(JsonFile::StandardOutput);
        }
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        file.map(|file| JsonFile::File(path, file))
            .map_err(|error| Failure::own(format!("cannot write {}: {error}", path.display())))
    }

    fn write(self, value: &serde_json::Value) -> Result<(), Failure> {
        match self {
            JsonFile::StandardOutput => super::print_json(value),
            JsonFile::File(path, file) => {
                replace(file, value).map_err(|error| Failure::own(format!("{}: {error}", path.display())))
            }
        }
    }
}

fn replace(mut file: File, value: &serde_json::Value) -> std::io::Result<()> {
    // A pipe or a device cannot be cut to length, and need not be.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(format!("{value:#}\n").as_bytes())
}
