//! The `tidegate` command: runs MPI programs over Tidegate and shows what flow control did, and simulates both.
//!
//! * [`arguments`]: the command line, from which help, completions and `tidegate(1)` are made;
//! * [`launcher`], [`mpi`]: which word of a command is the launcher, and to which MPI it belongs;
//! * [`provider`], [`settings`]: where the provider is, and the environment that makes an MPI use it;
//! * [`shared_memory`]: programs that ask MPICH who shares memory with them;
//! * [`check`]: whether the provider takes options and environment, before anything starts;
//! * [`folder`], [`child`]: the private folder of counter pages, and the program with its signals and exit code;
//! * [`jobs`], [`process`]: which jobs run, found by those folders;
//! * [`top`], [`culprit`]: running jobs, live, and who holds up whom;
//! * [`export`]: running jobs as metrics for Prometheus;
//! * [`hang`]: a job that hangs, noticed while it runs;
//! * [`doctor`]: whether a job would run here, and what would help;
//! * [`failure`], [`suggestion`], [`quote`]: errors with their exit codes, the nearest name to one that is unknown, and
//!   quoting for shells;
//! * [`report`]: counter pages into a table or JSON;
//! * [`trace`]: what the ranks of a recorded job left into a trace in GOAL;
//! * [`recording`]: counters over time in a folder, written and read;
//! * [`advice`]: what to change in a run, computed from what was recorded of it;
//! * [`html`]: recordings as one HTML file; [`browser`]: shows it;
//! * [`diff`]: whether recordings of two sides differ;
//! * [`tag`]: what the match bits of each MPI say;
//! * [`parallel`], [`progress`], [`store`]: runs of the simulator side by side, how they get on, where they are kept;
//! * [`part`], [`sharing`]: which part of them this process does, of how many; runs that several processes share;
//! * [`files`]: files that commands write;
//! * [`plan`]: how much memory the job of a trace needs; [`calibrate`]: what this machine costs;
//! * [`command`]: one file per command, putting the above together.

pub mod advice;
pub mod alltoall;
pub mod arguments;
pub mod browser;
pub mod calibrate;
pub mod check;
pub mod child;
pub mod command;
pub mod culprit;
pub mod deaths;
pub mod diff;
pub mod doctor;
pub mod export;
pub mod failure;
pub mod files;
pub mod folder;
pub mod hang;
pub mod html;
pub mod jobs;
pub mod launcher;
pub mod mpi;
pub mod parallel;
pub mod part;
pub mod plan;
pub mod process;
pub mod progress;
pub mod provider;
pub mod quote;
pub mod recording;
pub mod report;
pub mod settings;
pub mod shared_memory;
pub mod sharing;
pub mod store;
pub mod suggestion;
pub mod tag;
pub mod top;
pub mod trace;
pub mod tuning;

#[cfg(test)]
#[path = "../tests/it/script.rs"]
mod script;

use std::process::ExitCode;

use clap::Parser;
use tidegate_link::log::print_line;

use crate::arguments::{Cli, Command};

/// The whole command: reads the arguments of this process, does what they ask, says what failed.
pub fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| suggestion::with_suggestion(error).exit());
    let result = match &cli.command {
        Command::Run(arguments) => command::run::run(arguments),
        Command::Record(arguments) => command::record::record(arguments),
        Command::Env(arguments) => command::env::env(arguments),
        Command::Doctor(arguments) => command::doctor::doctor(arguments),
        Command::Top(arguments) => command::top::top(arguments),
        Command::Export(arguments) => command::export::export(arguments),
        Command::Sim(arguments) => command::sim::sim(arguments),
        Command::Paper(arguments) => command::paper::paper(arguments),
        Command::Report(arguments) => command::report::report(arguments),
        Command::Diff(arguments) => command::diff::diff(arguments),
        Command::Plan(arguments) => command::plan::plan(arguments),
        Command::Calibrate(arguments) => command::calibrate::calibrate(arguments),
        Command::Counters(arguments) => command::counters::counters(arguments),
        Command::Completions(arguments) => command::completions::completions(arguments),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            print_line(&failure.to_string());
            ExitCode::from(failure.code)
        }
    }
}
