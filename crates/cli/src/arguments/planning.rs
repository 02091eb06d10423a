//! The arguments of `tidegate plan` and `tidegate calibrate`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use tidegate_flow::SchemeName;

use super::{SharingOptions, whole_number};

/// The end of the help of `plan`.
pub(super) const PLAN_HELP: &str = "\
Exit code: 0 whatever was found; 2 wrong usage, or a trace or machine file that makes no sense; 125 a run failed.

It begins with how many simulations follow and about how long they take. Three schemes with one seed are at most some 45,
each no longer than the job with ample memory and --overhead; more schemes and seeds take as much more.

Examples:
  tidegate plan job.goal
  tidegate plan job.goal --machine machine.toml --overhead 5%
  tidegate plan job.goal --schemes dynamic,preposted,rnr --seeds 3
  tidegate plan job.goal --ranks 1024 --out plans       (larger; goes on where it was stopped)
  mpiexec -n 4 tidegate plan job.goal --out plans       (four tasks share the runs; srun alike)
  tidegate plan job.goal --out plans --part 1/3         (a third of the schemes)
  tidegate plan halo16                                  (the bundled trace)

docs/plan.md says how far such predictions were from real runs.";

/// The end of the help of `calibrate`.
pub(super) const CALIBRATE_HELP: &str = "\
Exit code: 0; 2 wrong usage; 125 nothing could be measured.

Examples:
  tidegate calibrate                       (to standard output)
  tidegate calibrate -o machine.toml
  tidegate plan job.goal --machine machine.toml

Numbers of a machine that does something else at the time are wrong: look at the quartiles.";

/// Arguments of `tidegate calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArguments {
    /// Write the machine file to FILE, and say on standard error how near it comes; - is standard output
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Print what was found as JSON, in the place of the file
    #[arg(long)]
    pub json: bool,

    /// Measure so little that the numbers are of the right kind and no more
    #[arg(long)]
    pub quick: bool,

    /// Be the second process, for the first one at this address
    #[arg(long, hide = true)]
    pub answer: Option<String>,

    /// Where segments lie
    #[arg(long, hide = true)]
    pub folder: Option<PathBuf>,

    /// The processor of the second process
    #[arg(long, hide = true, default_value_t = 0)]
    pub processor: u64,
}

/// Arguments of `tidegate plan`.
#[derive(Debug, Args)]
pub struct PlanArguments {
    /// The trace, in GOAL; halo16 is a small one that is built in
    #[arg(value_hint = ValueHint::FilePath)]
    pub trace: PathBuf,

    /// The machine, as for `tidegate sim`; `tidegate calibrate` writes one [default: one that is built in]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub machine: Option<PathBuf>,

    /// How much longer it may take than with ample memory
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = share)]
    pub overhead: f64,

    /// Schemes, with commas between; all others of `run` are possible too [default: speculative,dynamic,static]
    #[arg(long, value_name = "SCHEME,…", value_delimiter = ',', value_parser = offered_scheme(), hide_possible_values = true)]
    pub schemes: Vec<SchemeName>,

    /// What is tried of --slots of `run`, with commas between [default: 4 to 1024, each a third or a half more than the
    /// one before; with --all in smaller steps]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = |text: &str| whole_number(text, 1..=16_777_215))]
    pub slots: Vec<u64>,

    /// Values of --pool-slots of `run` to try (speculative), with commas between [default: 512 to 65536]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = |text: &str| whole_number(text, 1..=16_777_215))]
    pub pool_slots: Vec<u64>,

    /// What is tried of --buffers, --buffers-most (growing) and --pool-most (shared_window) of `run` [default: 1 to
    /// 512, of a pool to 4096, likewise]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = |text: &str| whole_number(text, 1..=16_383))]
    pub buffers: Vec<u64>,

    /// Show what comes of each of --slots, --pool-slots and --buffers, without a bound on memory, instead of the least
    /// that is enough
    #[arg(long)]
    pub all: bool,

    /// A job of N ranks with the pattern of the trace, if that is recognised
    #[arg(long, value_name = "N", value_parser = |text: &str| whole_number(text, 2..=65_536))]
    pub ranks: Option<u64>,

    /// Write the trace for --ranks to FILE too
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "ranks")]
    pub goal: Option<PathBuf>,

    /// Others that may exchange messages with a process, as --peers of `run` [default: ranks + 16]
    #[arg(long, value_name = "N", value_parser = |text: &str| whole_number(text, 1..=1_048_575))]
    pub peers: Option<u64>,

    /// Run every setting with N seeds and take the median time: a seed decides when the system interrupts processes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = |text: &str| whole_number(text, 1..=100))]
    pub seeds: u64,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub sharing: SharingOptions,

    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,

    /// Runs at the same time [default: as many as processors; as a task of a launcher, its share of them]
    #[arg(long, short, value_name = "N", value_parser = |text: &str| whole_number(text, 1..=4096))]
    pub jobs: Option<u64>,
}

impl PlanArguments {
    /// The schemes, those first that are preferred where memories are alike.
    pub fn schemes(&self) -> Vec<SchemeName> {
        const USUAL: [SchemeName; 3] = [SchemeName::Speculative, SchemeName::Dynamic, SchemeName::Static];
        let mut chosen = if self.schemes.is_empty() { USUAL.to_vec() } else { Vec::new() };
        for scheme in &self.schemes {
            if !chosen.contains(scheme) {
                chosen.push(*scheme);
            }
        }
        chosen
    }
}

/// A scheme that users may choose.
fn offered_scheme() -> impl TypedValueParser<Value = SchemeName> {
    let words = SchemeName::OFFERED.iter().map(|scheme| PossibleValue::new(scheme.name()).help(scheme.help()));
    PossibleValuesParser::new(words).map(|word| word.parse().expect("only names of schemes are let through"))
}

/// A percentage as a share: `3%`, `3 %` and `3` are 0.03.
fn share(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim().parse().ok().filter(|number| (0.0..=1000.0).contains(number));
    number.map(|number: f64| number / 100.0).ok_or_else(|| "must be a percentage from 0 to 1000, such as 3%".to_owned())
}
