//! Arguments of `tidegate sim` and `tidegate paper`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{percentage, whole_number};

pub(super) const SIM_HELP: &str = "\
Exit code: 0; 2 wrong usage, or the file asks for something impossible; 125 a run failed.

Examples:
  tidegate sim machine.toml
  tidegate sim machine.toml --csv machine.csv
  tidegate sim --fields                    (what a file may say, with units and defaults)
  tidegate sim machine.toml --record dir && tidegate report dir

docs/simulator.md is a walk-through.";

pub(super) const PAPER_HELP: &str = "\
Exit code: 0 whatever came out; 2 wrong usage; 125 a run failed.

Examples:
  tidegate paper --list
  tidegate paper P-table1 P-fig14
  tidegate paper --quick --out results     (all, reduced: minutes)
  tidegate paper --noise=5 P-fig27         (does twice the noise change what comes out?)

docs/paper/README.md holds the results with pictures.";

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
    /// Names of experiments, such as P-fig4
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,

    /// List the experiments instead of running them
    #[arg(long)]
    pub list: bool,

    /// Fewer processes and points; every output says so
    #[arg(long)]
    pub quick: bool,

    /// The least with which the statements can be told, as tests run them; every output says so
    #[arg(long, conflicts_with = "quick")]
    pub smallest: bool,

    /// Interrupt the simulated processes at work for this share of the time, as an operating system does; 2.5 without a
    /// number [default: 2.5 where there are several seeds]
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = "2.5",
        hide_default_value = true, value_parser = percentage)]
    pub noise: Option<f64>,

    /// Do not interrupt them
    #[arg(long, conflicts_with = "noise")]
    pub no_noise: bool,

    /// Write JSON, CSV, pictures (SVG and PNG) and a README.md of all results there into DIR
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,

    /// Run nothing: judge the statements in DIR anew, from the runs in the JSON files there, and make all files anew
    #[arg(long, requires = "out", conflicts_with_all = [
        "ids", "list", "quick", "smallest", "noise", "no_noise", "seeds", "reuse_older", "json",
    ])]
    pub redraw: bool,

    /// Use runs in DIR/.runs that other versions of the simulator did, where this version has none; the report says so
    #[arg(long, requires = "out")]
    pub reuse_older: bool,

    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,

    /// Decides every random choice; the first of the seeds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = |text: &str| whole_number(text, 0..=u64::MAX))]
    pub seed: u64,

    /// Run every case with N seeds, one after the other, and give means [default: 3; 1 with --smallest or
    /// --no-noise]
    #[arg(long, value_name = "N", value_parser = |text: &str| whole_number(text, 1..=1000))]
    pub seeds: Option<u64>,

    /// Runs at the same time; one with 1024 processes takes up to 4 GiB [default: as many as processors]
    #[arg(long, short, value_name = "N", value_parser = |text: &str| whole_number(text, 1..=4096))]
    pub jobs: Option<u64>,
}
