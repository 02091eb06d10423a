//! Arguments of `tidegate sim`, and of `tidegate paper`, which another program reads.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::whole_number;
use crate::part::{GivenPart, given};

pub(super) const SIM_HELP: &str = "\
Exit code: 0; 2 wrong usage, or the file asks for something impossible; 125 a run failed.

Examples:
  tidegate sim machine.toml
  tidegate sim machine.toml --csv machine.csv
  tidegate sim --fields                    (what a file may say, with units and defaults)
  tidegate sim machine.toml --record dir && tidegate report dir
  tidegate sim sweep.toml --out results    (keeps each run; the same command goes on where it was stopped)
  mpiexec -n 16 tidegate sim sweep.toml --out results           (divided among 16 tasks; srun alike)
  tidegate sim sweep.toml --out results --part 3/16             (the third of 16 parts, wherever it runs)

docs/simulator.md is a walk-through, and docs/simulate.md says more of large sweeps.";

pub(super) const PAPER_HELP: &str = "\
tidegate-paper is no part of an installation. In Tidegate's sources `make papers` builds it as \
build/bin/tidegate-paper, and `cargo install --path papers` installs it. It is looked for beside this command and in \
PATH.

Exit code: that of tidegate-paper; 2 it is not installed; 126 it cannot be executed.

Examples:
  tidegate paper                           (which experiments there are)
  tidegate paper P-table1 P-fig14
  tidegate paper --help                    (its options, once it is installed)

papers/README.md in Tidegate's sources shows all results.";

/// Arguments of `tidegate sim`.
#[derive(Debug, Args)]
pub struct SimArguments {
    /// The machine and the program, in TOML
    #[arg(required_unless_present = "fields", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,

    /// List all fields that a file may have, with meaning and default
    #[arg(long, conflicts_with = "file")]
    pub fields: bool,

    /// Print JSON instead of a table
    #[arg(long, conflicts_with = "fields")]
    pub json: bool,

    /// Write the results as CSV to FILE too; - is standard output, in place of the table
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "fields")]
    pub csv: Option<PathBuf>,

    /// Write the program as a trace in GOAL to FILE instead of running it; - is standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
        conflicts_with_all = ["fields", "json", "csv", "out", "part"])]
    pub goal: Option<PathBuf>,

    /// Record the run's counters over simulated time in DIR, for `tidegate report DIR`
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["fields", "goal", "out", "part"])]
    pub record: Option<PathBuf>,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub sharing: SharingOptions,

    /// Runs at the same time [default: as many as processors; as a task of a launcher, its share of them]
    #[arg(long, short, value_name = "N", value_parser = |text: &str| whole_number(text, 1..=4096))]
    pub jobs: Option<u64>,
}

/// Where runs are kept, and which part of them this process does.
#[derive(Debug, Args)]
pub struct SharingOptions {
    /// Keep each run in DIR when it has ended: the same command goes on where it was stopped, and tasks that mpiexec or
    /// srun starts, or an array of jobs, divide the runs among them
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,

    /// Do only the K-th of N parts of the runs, whatever the environment says; all share --out DIR
    #[arg(long, value_name = "K/N", value_parser = given)]
    pub part: Option<GivenPart>,
}

/// Arguments of `tidegate paper`.
#[derive(Debug, Args)]
pub struct PaperArguments {
    /// What tidegate-paper is given: names of experiments, and its options
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}
