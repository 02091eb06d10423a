//! `tidegate doctor`.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use tidegate_link::log::print_line;
use tidegate_message::Unit;

use crate::arguments::DoctorArguments;
use crate::doctor::checks::verdicts;
use crate::doctor::gather::{self, Wish, gather};
use crate::doctor::rank;
use crate::doctor::verdict::{render, to_json, would_run};
use crate::failure::Failure;
use crate::report::units::human;
use crate::{folder, jobs};

/// How long a job may take, unless the user says.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The exit code where a job would not run.
const WOULD_NOT_RUN: u8 = 1;

/// Prints all verdicts. The exit code says whether a job would run.
pub fn doctor(arguments: &DoctorArguments) -> Result<u8, Failure> {
    if let Some(library) = &arguments.as_rank {
        return Ok(rank::run(library));
    }
    if !arguments.as_probe.is_empty() {
        return Ok(gather::probe(&arguments.as_probe));
    }
    if arguments.as_word {
        return Ok(gather::show_word());
    }
    if let Some(line) = &arguments.as_reader {
        return Ok(gather::read_as(line));
    }
    if arguments.clean {
        return clean();
    }
    let wish = Wish {
        tuning: &arguments.tuning,
        command: &arguments.command,
        hosts: &arguments.hosts,
        shared: arguments.shared.as_deref(),
        runs_job: !arguments.no_job,
        timeout: arguments.timeout.unwrap_or(TIMEOUT),
    };
    let shows_progress = !arguments.json && stderr().is_terminal();
    let facts = gather(&wish, &|text| {
        if shows_progress {
            print_line(text);
        }
    });
    let verdicts = verdicts(&facts);
    if arguments.json {
        let command: Vec<String> = arguments.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        super::print_json(&to_json(&verdicts, &command))?;
    } else {
        super::print(render(&verdicts).as_bytes())?;
    }
    Ok(if would_run(&verdicts) { 0 } else { WOULD_NOT_RUN })
}

fn clean() -> Result<u8, Failure> {
    // Pages of counters of runs that were killed; the files below are those of their ranks.
    folder::sweep_all(&jobs::places());
    let files = gather::remove_left_files().map_err(Failure::own)?;
    let bytes = files.iter().map(|file| file.bytes).sum();
    let noun = if files.len() == 1 { "file" } else { "files" };
    super::print(format!("removed from /dev/shm: {} {noun}, {}\n", files.len(), human(bytes, Unit::Bytes)).as_bytes())?;
    Ok(0)
}
