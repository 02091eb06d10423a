//! Arguments of `tidegate top`.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueHint};

use super::interval;

pub(super) const TOP_HELP: &str = "\
Exit code: 0; 2 wrong usage, no such job, or no terminal; 125 tidegate itself failed.

Examples:
  tidegate top                             (all jobs; ? explains keys and columns)
  tidegate top 4711                        (the job whose `tidegate run` is process 4711)
  tidegate top /tmp/pages                  (a folder that FI_TIDEGATE_STATS_DIR named)
  tidegate top --once                      (one look as text)
  tidegate top --once --json --interval 2  (rates over two seconds, for programs)

docs/top.md shows what it looks like.";

/// Arguments of `tidegate top`.
#[derive(Debug, Args)]
pub struct TopArguments {
    /// Jobs, by the process id of their `tidegate run`, or folders of counter pages [default: all jobs of this user]
    #[arg(value_name = "JOB|DIR", value_hint = ValueHint::DirPath)]
    pub jobs: Vec<OsString>,

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
