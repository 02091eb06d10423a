//! Arguments of `tidegate sim`, and of `tidegate paper`, which another program reads.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::whole_number;

pub(super) const SIM_HELP: &str = "\
Exit code: 0; 2 wrong usage, or the file asks for something impossible; 125 a run failed.

Examples:
  tidegate sim machine.toml
  tidegate sim machine.toml --csv machine.csv
  tidegate sim --fields                    (what a file may say, with units and defaults)
  tidegate sim machine.toml --record dir && tidegate report dir

docs/simulator.md is a walk-through.";

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
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["fields", "json", "csv"])]
    pub goal: Option<PathBuf>,

    /// Record the run's counters over simulated time in DIR, for `tidegate report DIR`
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["fields", "goal"])]
    pub record: Option<PathBuf>,

    /// Runs at the same time [default: as many as processors]
    #[arg(long, short, value_name = "N", value_parser = |text: &str| whole_number(text, 1..=4096))]
    pub jobs: Option<u64>,
}

/// Arguments of `tidegate paper`.
#[derive(Debug, Args)]
pub struct PaperArguments {
    /// What tidegate-paper is given: names of experiments, and its options
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}
