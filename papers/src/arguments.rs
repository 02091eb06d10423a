//! The command line of `tidegate-paper`.

use std::path::PathBuf;

use clap::{Parser, ValueHint};
use tidegate_cli::arguments::whole_number;
use tidegate_cli::part::{GivenPart, given};

const HELP: &str = "\
Exit code: 0 whatever came out; 2 wrong usage; 125 a run failed.

Examples:
  tidegate paper                           (which experiments there are)
  tidegate paper P-table1 P-fig14
  tidegate paper all --quick --out results (all, reduced: minutes)
  tidegate paper --noise=5 P-fig27         (does twice the noise change what comes out?)
  mpiexec -n 16 tidegate paper all --out results            (divided among 16 tasks; srun alike)
  tidegate paper all --out results --part 3/16              (the third of 16 parts, wherever it runs)
  tidegate paper --pack results            (writes results/runs-HASH.tar.gz)
  tidegate paper --unpack runs-HASH.tar.gz --out results

papers/README.md in Tidegate's sources shows all results.";

/// `tidegate-paper`, which `tidegate paper` starts.
///
/// With --out, else in the user's cache, each run is kept when it has ended: the same command goes on where it was
/// stopped, and figures share what they have in common. All experiments at full size take more than ten hours with two
/// processors.
#[derive(Debug, Parser)]
#[command(
    name = "tidegate-paper",
    version,
    about = "Reproduce figures and tables of five papers, and say which of their statements come out",
    after_help = HELP
)]
pub struct Arguments {
    /// Names of experiments, such as P-fig4; `all`: all of them; without any they are listed
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,

    /// Read papers and their figures from DIR [default: the folder papers of the sources; that of TIDEGATE_PAPERS]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub papers: Option<PathBuf>,

    /// Run nothing: make pages and pictures anew from the results that lie beside the figures, or below the folder of
    /// --out
    #[arg(long, conflicts_with_all = ["ids", "list", "quick", "smallest", "noise", "no_noise", "seeds", "reuse_older"])]
    pub pages: bool,

    /// Pack the runs that are kept in DIR into one compressed file there, named by its hash, and print its name
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath,
        conflicts_with_all = ["ids", "pages", "list", "out", "part", "unpack"])]
    pub pack: Option<PathBuf>,

    /// Check a file that --pack has written, by its name too, and put its runs into --out DIR, where runs are kept
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "out",
        conflicts_with_all = ["ids", "pages", "list", "part"])]
    pub unpack: Option<PathBuf>,

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

    /// Write below DIR, in a folder for each paper: numbers as CSV, pictures as SVG and pages of all results there
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,

    /// Do only the K-th of N parts of the runs, whatever the environment says; all share --out DIR, where tasks that
    /// mpiexec or srun starts, or an array of jobs, divide the runs by themselves
    #[arg(long, value_name = "K/N", value_parser = given)]
    pub part: Option<GivenPart>,

    /// Use kept runs that other versions of the simulator did, where this version has none; the report says so
    #[arg(long)]
    pub reuse_older: bool,

    /// Decides every random choice; the first of the seeds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = |text: &str| whole_number(text, 0..=u64::MAX))]
    pub seed: u64,

    /// Run every case with N seeds, one after the other, and give means [default: 3; 1 with --smallest or
    /// --no-noise]
    #[arg(long, value_name = "N", value_parser = |text: &str| whole_number(text, 1..=1000))]
    pub seeds: Option<u64>,

    /// Runs at the same time; one with 1024 processes takes up to 4 GiB [default: as many as processors; as a task of
    /// a launcher, its share of them]
    #[arg(long, short, value_name = "N", value_parser = |text: &str| whole_number(text, 1..=4096))]
    pub jobs: Option<u64>,
}

impl Arguments {
    /// Whether they say how to run something.
    pub(crate) fn is_about_runs(&self) -> bool {
        let has_value = self.noise.is_some() || self.out.is_some() || self.seeds.is_some() || self.jobs.is_some();
        has_value || self.part.is_some() || self.quick || self.smallest || self.no_noise || self.reuse_older
    }
}

fn percentage(text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok().filter(|number| (0.01..=50.0).contains(number));
    number.ok_or_else(|| "must be a number from 0.01 to 50".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn wrong_numbers_name_what_is_allowed() {
        for (words, names) in [
            (["P-fig4", "--jobs", "0"], "must be a whole number from 1 to 4096"),
            (["P-fig4", "--seed", "1.5"], "must be a whole number from 0 to"),
            (["P-fig4", "--seeds", "0"], "must be a whole number from 1 to 1000"),
        ] {
            let error = Arguments::try_parse_from(["tidegate-paper"].into_iter().chain(words)).unwrap_err();
            assert!(error.exit_code() == 2 && error.to_string().contains(names), "{error}");
        }
    }
}
