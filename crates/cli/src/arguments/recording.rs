//! Options of `tidegate run` that record, and the arguments of `tidegate report`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use crate::failure::Failure;

pub(super) const REPORT_HELP: &str = "\
Exit code: 0; 2 wrong usage, or there is no recording; 125 the file cannot be written.

Examples:
  tidegate run --record slow mpiexec -n 16 ./program
  tidegate report slow                     (says what to change, and writes slow/report.html)
  tidegate report --open slow              (and shows it)
  tidegate report --json slow

With two recordings it does what `tidegate diff` does, for one version more. docs/report.md shows how to read it.";

pub(super) const DIFF_HELP: &str = "\
Exit code: 0, whether they differ or not; 2 wrong usage, or there is no recording; 125 the file cannot be written.

Examples:
  tidegate diff before after               (one run of each side: only large differences can be told)
  tidegate diff a1 a2 a3 -- b1 b2 b3       (three of each: small ones, too)
  tidegate diff --json before after

To record three runs of each side:
  for i in 1 2 3; do
    tidegate run --record a$i mpiexec -n 16 ./program
    tidegate run --record b$i --scheme static mpiexec -n 16 ./program
  done

docs/report.md says how it tells a difference from noise.";

/// Where the page of `tidegate report` and `tidegate diff` goes, and what is printed.
#[derive(Debug, Args)]
pub struct PageOptions {
    /// The HTML file; - is standard output [default: report.html in DIR, of several comparison.html in the first]
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Print JSON instead of text; an HTML file is written only with --output
    #[arg(long)]
    pub json: bool,

    /// Show the file in the browser that BROWSER names, or in that of the desktop
    #[arg(long, conflicts_with = "json")]
    pub open: bool,
}

/// Arguments of `tidegate report`.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Folders of recordings, at most four
    #[arg(required = true, num_args = 1..=4, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folders: Vec<PathBuf>,

    /// The page.
    #[command(flatten)]
    pub page: PageOptions,
}

/// Arguments of `tidegate diff`.
#[derive(Debug, Args)]
#[command(
    override_usage = "tidegate diff [OPTIONS] BEFORE AFTER\n       tidegate diff [OPTIONS] BEFORE... -- AFTER..."
)]
pub struct DiffArguments {
    /// Folders of recordings of the first side; without --, of one run of each side
    #[arg(required = true, num_args = 1.., value_name = "BEFORE", value_hint = ValueHint::DirPath)]
    pub before: Vec<PathBuf>,

    /// Those of the second side
    #[arg(last = true, value_name = "AFTER", value_hint = ValueHint::DirPath)]
    pub after: Vec<PathBuf>,

    /// The page.
    #[command(flatten)]
    pub page: PageOptions,
}

impl DiffArguments {
    /// The folders of both sides.
    ///
    /// # Errors
    /// If it is not clear which are of which side.
    pub fn sides(&self) -> Result<[Vec<PathBuf>; 2], Failure> {
        match (&self.before[..], &self.after[..]) {
            ([first, second], []) => Ok([vec![first.clone()], vec![second.clone()]]),
            ([_], []) => Err(Failure::usage("tidegate diff compares two sides: tidegate diff BEFORE AFTER")),
            (_, []) => {
                Err(Failure::usage("which of these recordings are of which side? tidegate diff A1 A2 A3 -- B1 B2 B3"))
            }
            (before, after) => Ok([before.to_vec(), after.to_vec()]),
        }
    }
}

/// What `tidegate run` records.
#[derive(Debug, Args)]
pub struct RecordOptions {
    /// Record the counters over time in DIR, for `tidegate report DIR`
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Report")]
    pub record: Option<PathBuf>,

    /// From one sample to the next, as in 100ms, 2s or 1min; it doubles when the recording reaches its bound
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = interval, requires = "record", help_heading = "Report")]
    pub record_interval: Duration,

    /// Bytes of the recording at most; k, M and G are powers of 1024
    #[arg(long, value_name = "BYTES", default_value = "64M", value_parser = recording_length, requires = "record", help_heading = "Report")]
    pub record_most: u64,
}

/// Bytes of a recording, as `block_length` reads them.
fn recording_length(text: &str) -> Result<u64, String> {
    let refused = || "must be bytes from 64k to 1024G, with suffix k, M or G if wanted".to_owned();
    let text = super::block_length(text).map_err(|_| refused())?;
    let digits = text.trim_end_matches(['k', 'K', 'm', 'M', 'g', 'G']);
    let shift = match text[digits.len()..].to_lowercase().as_str() {
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => 0,
    };
    let bytes = digits.parse::<u64>().ok().map(|number| number << shift);
    bytes.filter(|bytes| *bytes >= 64 << 10).ok_or_else(refused)
}

/// A time with its unit.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => Some(0.001),
        "s" | "" => Some(1.0),
        "min" => Some(60.0),
        _ => None,
    };
    let seconds = digits.parse::<f64>().ok().zip(unit).map(|(number, unit)| number * unit);
    let allowed = seconds.filter(|seconds| (0.001..=3600.0).contains(seconds));
    allowed
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "must be a time from 1ms to 60min, as in 100ms, 2s or 1min".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Cli, Command};
    use clap::Parser;

    fn run(words: &[&str]) -> Result<crate::arguments::RunArguments, clap::Error> {
        Cli::try_parse_from([&["tidegate", "run"], words].concat()).map(|cli| match cli.command {
            Command::Run(arguments) => arguments,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn intervals_and_lengths_of_recordings_have_units() {
        let options =
            run(&["--record", "d", "--record-interval", "0.5s", "--record-most", "2M", "x"]).unwrap().recording;
        assert_eq!((options.record_interval, options.record_most), (Duration::from_millis(500), 2 << 20));
        let options = run(&["--record", "d", "x"]).unwrap().recording;
        assert_eq!((options.record_interval, options.record_most), (Duration::from_millis(100), 64 << 20));
        assert_eq!(interval("1min"), Ok(Duration::from_secs(60)));
    }
}
