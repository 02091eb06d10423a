//! Arguments of `tidegate top` and `tidegate counters`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use super::{Ranks, interval};

pub(super) const TOP_HELP: &str = "\
Exit code: 0; 2 wrong usage, no such job, or no terminal; 125 tidegate itself failed.

Examples:
  tidegate top                             (all jobs; ? explains keys and columns)
  tidegate top 4711                        (the job whose `tidegate run`, or one of whose ranks, is process 4711)
  tidegate top --slurm 1234                (what job 1234 of Slurm runs on this host)
  srun --overlap --pty --jobid=1234 tidegate top  (the same, on a host of that job)
  tidegate top /tmp/pages                  (a folder that FI_TIDEGATE_STATS_DIR named)
  tidegate top --once                      (one look as text)
  tidegate top --once --json --interval 2  (rates over two seconds, for programs)

docs/top.md shows what it looks like.";

pub(super) const COUNTERS_HELP: &str = "\
Examples:
  tidegate counters
  mkdir /tmp/pages; FI_TIDEGATE_STATS_DIR=/tmp/pages mpiexec -n 4 ./program; tidegate counters /tmp/pages";

/// Arguments of `tidegate top`.
#[derive(Debug, Args)]
pub struct TopArguments {
    /// Jobs, by the process id of their `tidegate run` or of one of their ranks, or folders of counter pages [default:
    /// all jobs of this user, as root those of all users]
    #[arg(value_name = "JOB|DIR", value_hint = ValueHint::DirPath)]
    pub jobs: Vec<OsString>,

    /// Only what a job of Slurm runs: 1234, a step of it, 1234.0, or a task of an array, 1234_7 [default: that of
    /// SLURM_JOB_ID, if it runs anything here]
    #[arg(long, value_name = "JOBID", value_parser = crate::jobs::slurm::word)]
    pub slurm: Option<String>,

    /// Look twice, print what was seen, and end
    #[arg(long)]
    pub once: bool,

    /// Print JSON instead of text (schema in tidegate(1))
    #[arg(long, requires = "once")]
    pub json: bool,

    /// Time from look to look [default: 1; with --once 0.5]
    #[arg(long, value_name = "SECONDS", value_parser = interval)]
    pub interval: Option<Duration>,
}

/// Arguments of `tidegate counters`.
#[derive(Debug, Args)]
pub struct CountersArguments {
    /// A folder of counter pages, as FI_TIDEGATE_STATS_DIR names it
    #[arg(value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,

    /// Which ranks get a line of their own
    #[arg(long, value_enum, default_value_t = Ranks::Auto, requires = "dir")]
    pub ranks: Ranks,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
