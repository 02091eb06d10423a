//! The figures and tables of five papers, each one named experiment, and `tidegate-paper`, the program that runs them
//! in Tidegate's simulator and says which of the papers' statements come out.
//!
//! * [`Experiment`]: a figure, as a function from a [`Workshop`] to a [`Report`];
//! * `data/`: figures as files, which lie in a folder for each paper beside `src`; `special/`: what they cannot say;
//! * `run/`: what is run for a point of a figure; `runs.rs`: one case with every seed;
//! * `workshop.rs`: runs cases with every seed, in parallel, each once; `forecast.rs`: how long they take;
//!   `progress.rs`: how they get on;
//! * `report.rs`: what an experiment found; `record.rs`: the same as a file of comma-separated values; `judge.rs`:
//!   statements judged again from the runs that a report holds; `assumptions.rs`: what its machine assumes;
//! * [`output`]: reports as text, pictures, files and a page;
//! * `archive.rs`: raw runs as one compressed file;
//! * `arguments.rs`, `command.rs`: the program.

#![forbid(unsafe_code)]

pub mod archive;
pub mod arguments;
mod assumptions;
pub mod command;
mod data;
mod experiment;
mod forecast;
mod judge;
pub mod output;
mod progress;
pub mod record;
mod report;
mod run;
mod runs;
mod special;
mod workshop;

pub use assumptions::Assumption;
pub use data::BadFigure;
pub use experiment::Experiment;
pub use judge::NotKept;
pub use progress::{Progress, Silent};
pub use report::{Fact, Figure, Point, Report, RunReport, Series, SeriesKind, Spread, Table, Verdict};
pub use run::CODE;
pub use workshop::{RunTime, SEARCH, Scale, Stopped, Workshop};

use std::process::ExitCode;

use clap::Parser;
use tidegate_link::log::print_line;

/// The whole program: reads the arguments of this process, does what they ask, says what failed.
pub fn main() -> ExitCode {
    match command::paper(&arguments::Arguments::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            print_line(&failure.to_string());
            ExitCode::from(failure.code)
        }
    }
}
