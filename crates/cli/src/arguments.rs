//! The command line. Help, shell completions and the man page are made from it.

mod diagnosing;
mod exporting;
mod hanging;
mod recording;
mod simulating;
mod watching;

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use tidegate_bulk::TechniqueName;
use tidegate_flow::SchemeName;

mod planning;

use planning::{CALIBRATE_HELP, PLAN_HELP};
pub use planning::{CalibrateArguments, PlanArguments};

use crate::tuning::{Tuning, value_of};

use diagnosing::DOCTOR_HELP;
pub use diagnosing::DoctorArguments;
use exporting::EXPORT_HELP;
pub use exporting::{ExportArguments, Listen};
pub use hanging::HangOptions;
use recording::{DIFF_HELP, REPORT_HELP};
pub use recording::{DiffArguments, PageOptions, RecordOptions, ReportArguments};
use simulating::{PAPER_HELP, SIM_HELP};
pub use simulating::{PaperArguments, SharingOptions, SimArguments};
use watching::{COUNTERS_HELP, TOP_HELP};
pub use watching::{CountersArguments, TopArguments};

/// Text of `--version` after the name: the version, the commit of the sources, and the schemes that users choose from.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let schemes: Vec<_> = SchemeName::OFFERED.iter().map(|scheme| scheme.name()).collect();
    let (version, commit) = (env!("CARGO_PKG_VERSION"), env!("TIDEGATE_COMMIT"));
    format!("{version} (commit {commit})\nschemes: {}", schemes.join(", "))
});

/// `tidegate`.
#[derive(Debug, Parser)]
#[command(
    name = "tidegate",
    version,
    long_version = LONG_VERSION.as_str(),
    about = "Run MPI programs over Tidegate, see what flow control did, and simulate it on machines that are not there",
    long_about = "Tidegate is a libfabric provider with end-to-end flow control that adapts by itself. This command \
        runs an unmodified MPI program over it: it recognises the MPI, sets the environment, and at the end says per \
        job and per rank what flow control did. It also runs the same flow control in a simulator, at any size.",
    after_help = "Examples:\n  \
                  tidegate run mpiexec -n 8 ./program\n  \
                  tidegate run --scheme static --slots 16 mpiexec -n 8 ./program\n  \
                  tidegate doctor mpiexec\n  \
                  tidegate top\n  \
                  eval \"$(tidegate env)\" && mpiexec -n 8 ./program\n  \
                  tidegate run --record slow mpiexec -n 8 ./program && tidegate report slow\n  \
                  tidegate diff slow fast\n  \
                  tidegate sim machine.toml\n  \
                  tidegate paper P-fig14\n  \
                  tidegate plan job.goal --machine machine.toml\n\n\
                  See also: tidegate(1), fi_tidegate(7)."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program over Tidegate and report what flow control did
    ///
    /// The report goes to standard error, so the program's output stays clean. Signals that end programs are passed on,
    /// and the exit code is the program's.
    #[command(after_help = RUN_HELP)]
    Run(RunArguments),
    /// Run a program as `run` does, and write a trace of its messages and computation that `sim` replays
    ///
    /// Each rank writes down what it sends and receives, with whom, when it waits, and how long it computes between.
    /// When the program has ended, that becomes one trace in GOAL, the format of LogGOPSim and ATLAHS.
    #[command(after_help = RECORD_HELP, mut_arg("command", |command| command.required(false).required_unless_present("from")))]
    Record(RecordArguments),
    /// Print the settings that `run` would make, as lines for a shell
    ///
    /// With a launcher given, the settings are for its MPI; without one, for all MPIs at once, which do not disturb
    /// each other. No counter pages are asked for: set FI_TIDEGATE_STATS_DIR to a folder to have them.
    #[command(after_help = ENV_HELP)]
    Env(EnvArguments),
    /// Check machine, MPI and network as a job would, and say what helps
    ///
    /// One line for each check: ok, warn (a job runs, but more slowly, or not as it seems), or no (a job does not run),
    /// with a line to copy below it. With a launcher, a job of two ranks is run; with hosts, one over them, too.
    #[command(after_help = DOCTOR_HELP)]
    Doctor(DoctorArguments),
    /// Watch running jobs: rates, who waits for whom and why, memory
    ///
    /// Shows all jobs of this user that `tidegate run` has started on this host, also those that run already. Ranks on
    /// other hosts are among them where `tidegate run --shared` named a folder that this host sees. It reads the pages
    /// of counters and nothing else, so the jobs keep their speed.
    #[command(after_help = TOP_HELP)]
    Top(TopArguments),
    /// Export running jobs as metrics for Prometheus: to a file, over HTTP, or to standard output
    ///
    /// One set of metrics for each job: messages, bytes, waiting, receive memory, who holds up whom, and what was
    /// refused or lost. The jobs are those that `tidegate top` shows.
    #[command(after_help = EXPORT_HELP)]
    Export(ExportArguments),
    /// Simulate a machine and a program that a file describes, for one setting or many
    ///
    /// The file is TOML; `--fields` lists what it may say. A list in the place of a value makes a sweep: every
    /// combination is run.
    #[command(after_help = SIM_HELP)]
    Sim(SimArguments),
    /// Reproduce figures and tables of five papers, and say which of their statements come out
    ///
    /// This starts tidegate-paper, a program of its own, with the same arguments. Without any it lists the experiments.
    #[command(after_help = PAPER_HELP, disable_help_flag = true)]
    Paper(PaperArguments),
    /// Show a recording as one HTML file, and say what to change and why
    ///
    /// Recordings are made by `tidegate run --record DIR` and `tidegate sim --record DIR`. Several are shown side by
    /// side. The file needs no network and no other file.
    #[command(after_help = REPORT_HELP)]
    Report(ReportArguments),
    /// Say whether recordings of two sides differ in time, waiting or memory, and show both
    ///
    /// Runs of the same command are never alike. With several recordings of each side a difference is one if all values
    /// of one side lie beyond all values of the other; with one of each, if it is more than such runs differ by.
    #[command(after_help = DIFF_HELP)]
    Diff(DiffArguments),
    /// Find how much memory is enough for the job of a trace to take hardly longer, and recommend settings
    ///
    /// The trace is replayed in the simulator under one setting after the other: of each scheme the fewest slots or
    /// buffers are found, and the smallest receive memory, with which it takes at most --overhead longer than in
    /// mailboxes without end. The recommendation has a margin over that: twice of both. `tidegate record` writes traces
    /// of jobs; --ranks asks for a larger job of the same pattern.
    #[command(after_help = PLAN_HELP)]
    Plan(PlanArguments),
    /// Measure what this machine costs, and write a machine file for `sim` and `plan`
    ///
    /// Two processes of this command exchange messages over the provider's shared memory, without any MPI; some ten
    /// seconds. The file says what was measured, when, and how near the simulated machine comes to it. It describes one
    /// host: between hosts, change the table `network` as docs/simulator.md says.
    #[command(after_help = CALIBRATE_HELP)]
    Calibrate(CalibrateArguments),
    /// List the counters of the report with unit and meaning, or report on the pages in a folder
    ///
    /// With DIR, a folder that FI_TIDEGATE_STATS_DIR named, the report is that of `run`, of processes that have ended
    /// or still run.
    #[command(after_help = COUNTERS_HELP)]
    Counters(CountersArguments),
    /// Print a completion script for a shell
    Completions(CompletionsArguments),
}

const RUN_HELP: &str = "\
Exit code: the program's; 128+N when signal N ended it; 2 wrong usage; 123 --hang-exit ended the job; 125 tidegate \
itself failed; 126 the program cannot be executed; 127 it was not found.

Examples:
  tidegate run mpiexec -n 8 ./program
  tidegate run --scheme static --slots 16 --json run.json mpirun -n 64 ./program
  tidegate run -- timeout 60 mpiexec -n 2 python script.py
  tidegate run ./program                   (a single process, or a script that calls mpiexec)
  tidegate run --record slow mpiexec -n 8 ./program    (tidegate report slow: what happened when, and what to change)
  tidegate run --hang-after 600 --hang-exit mpiexec -n 64 ./program    (a job that hangs says why, and ends)

`tidegate counters` explains the columns of the report.";

const RECORD_HELP: &str = "\
Exit code: as that of `run`; 125 also if no trace could be written.

Examples:
  tidegate record -o job.goal mpiexec -n 8 ./program
  tidegate record -o job.goal --most 1G --json run.json mpirun -n 64 ./program
  tidegate record -o job.goal --shared /home/me mpiexec -n 4 -hosts a,b ./program
  tidegate record -o job.goal --from tidegate-trace-x1y2z3     (what a run that was killed has left)

docs/record.md says what is in a trace and what is not. To replay it: operation = \"trace\", trace = \"job.goal\" in \
a file for `tidegate sim`.";

const ENV_HELP: &str = "\
Examples:
  eval \"$(tidegate env)\"
  eval \"$(tidegate env --scheme dynamic --slots 32 -- /opt/mpich/bin/mpiexec)\"";

/// Arguments of `tidegate run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub tuning: Tuning,

    /// Carry out large MPI_Alltoall and MPI_Alltoallv of the program by a technique of bulk-transfer scheduling
    #[arg(long, value_parser = technique(), help_heading = "Collective calls")]
    pub alltoall: Option<TechniqueName>,

    /// From how many bytes on that one rank sends another; k, M and G are powers of 1024 [default: 1M]
    #[arg(long, value_name = "BYTES", requires = "alltoall", value_parser = block_length, help_heading = "Collective calls")]
    pub alltoall_bytes: Option<String>,

    /// Write the report as JSON to FILE too (schema in tidegate(1)); - is standard output, after the program's own
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Report")]
    pub json: Option<PathBuf>,

    /// A folder that all hosts of the job share, through which ranks on other hosts hand in their counters
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Report")]
    pub shared: Option<PathBuf>,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub recording: RecordOptions,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub hang: HangOptions,

    /// Print all counters above the verdict, of the job and of ranks, and what each setting became
    #[arg(long, short, help_heading = "Report")]
    pub verbose: bool,

    /// The same; which ranks get a line of their own
    #[arg(long, value_enum, help_heading = "Report")]
    pub ranks: Option<Ranks>,

    /// Print no report; warnings and errors are still printed
    #[arg(long, short, help_heading = "Report")]
    pub quiet: bool,

    /// The program with its arguments, usually an MPI launcher
    // `allow_hyphen_values` is left out on purpose: with it an unknown option would be taken for the program.
    #[arg(required = true, trailing_var_arg = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Arguments of `tidegate record`.
#[derive(Debug, Args)]
pub struct RecordArguments {
    /// Write the trace to FILE; if the command runs several jobs, the second goes to FILE-2, and so on
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Trace")]
    pub output: PathBuf,

    /// Bytes that a rank may record at most; what comes after that is left out; a message takes about 20 [default: 64m]
    #[arg(long, value_name = "BYTES", value_parser = value_of("trace_most"), help_heading = "Trace")]
    pub most: Option<String>,

    /// Run nothing: make the trace of what ranks have recorded in DIR
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "command", help_heading = "Trace")]
    pub from: Option<PathBuf>,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub run: RunArguments,
}

/// Arguments of `tidegate env`.
#[derive(Debug, Args)]
pub struct EnvArguments {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub tuning: Tuning,

    /// Print one JSON object instead of lines for a shell
    #[arg(long)]
    pub json: bool,

    /// Print above each setting why it is made
    #[arg(long, conflicts_with = "json")]
    pub explain: bool,

    /// The launcher that will be called, to set only what its MPI needs
    #[arg(trailing_var_arg = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Arguments of `tidegate completions`.
#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Which ranks the report shows one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ranks {
    /// all up to 16 processes, else top
    Auto,
    /// Every rank
    All,
    /// Ranks that hold a maximum
    Top,
    /// No rank
    None,
}

/// The names of the techniques, with their help.
fn technique() -> impl TypedValueParser<Value = TechniqueName> {
    let words = TechniqueName::ALL.iter().map(|name| PossibleValue::new(name.name()).help(name.help()));
    PossibleValuesParser::new(words).map(|word| word.parse().expect("only names of techniques are let through"))
}

/// A number of bytes from 1 to 1T, as `bulk/agreement.c` reads it.
fn block_length(text: &str) -> Result<String, String> {
    let digits = text.trim_end_matches(['k', 'K', 'm', 'M', 'g', 'G']);
    let factor = match text[digits.len()..].to_lowercase().as_str() {
        "" => Some(1),
        "k" => Some(1 << 10),
        "m" => Some(1 << 20),
        "g" => Some(1 << 30),
        _ => None,
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let bytes = digits
        .parse::<u64>()
        .ok()
        .filter(|_| is_number)
        .zip(factor)
        .and_then(|(number, factor)| number.checked_mul(factor));
    match bytes {
        Some(1..=0x100_0000_0000) => Ok(text.to_owned()),
        _ => Err("must be bytes from 1 to 1024G, with suffix k, M or G if wanted".to_owned()),
    }
}

/// A whole number within a range, as an argument.
///
/// # Errors
/// If the text is none: the error says which numbers there are.
pub fn whole_number(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let number = text.trim().parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("must be a whole number from {} to {}", range.start(), range.end()))
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.trim().parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    let seconds: f64 = seconds.ok_or_else(|| "must be seconds from 0.1 to 3600".to_owned())?;
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn run(words: &[&str]) -> Result<RunArguments, clap::Error> {
        Cli::try_parse_from([&["tidegate", "run"], words].concat()).map(|cli| match cli.command {
            Command::Run(arguments) => arguments,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_version_comes_with_the_commit_and_the_schemes_that_users_choose_from() {
        let version = env!("CARGO_PKG_VERSION");
        let schemes = "none, static, dynamic, rnr, preposted, growing, shared_window, speculative";
        let long = Cli::try_parse_from(["tidegate", "--version"]).unwrap_err();
        let commit = env!("TIDEGATE_COMMIT");
        assert_eq!(long.to_string(), format!("tidegate {version} (commit {commit})\nschemes: {schemes}\n"));
        let short = Cli::try_parse_from(["tidegate", "-V"]).unwrap_err();
        assert_eq!(short.to_string(), format!("tidegate {version}\n"));
    }

    #[test]
    fn every_option_becomes_its_parameter() {
        let words = "--scheme static --slots 16 --credit-slots 1 --piggyback off --eager-size 4k --rx-memory 16M \
            --peers 9 --bulk mailbox --bounce-buffers 5 --send-buffers 6 --buffers 3 --buffers-most 7 --buffer-size 1k \
            --credit-threshold 2 --growth exponential --quiet-after never --retry-timer 0.01 --pool-first 4 --pool-most 16 \
            --rendezvous single --chunk-size 64k --chunks-in-flight 3 --chunks-most 9 \
            --bulk-order booking --bulk-senders 2 --bulk-quantum 4m --bulk-stall 7 --progress thread --ports 5000-5009 x";
        let arguments = run(&words.split(' ').collect::<Vec<_>>()).unwrap();
        let lines: Vec<_> =
            arguments.tuning.parameters().iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            lines.join("\n"),
            "FI_TIDEGATE_SCHEME=static\nFI_TIDEGATE_SLOTS=16\nFI_TIDEGATE_CREDIT_SLOTS=1\nFI_TIDEGATE_PIGGYBACK=off\n\
             FI_TIDEGATE_BUFFERS=3\nFI_TIDEGATE_BUFFERS_MOST=7\nFI_TIDEGATE_BUFFER_SIZE=1k\n\
             FI_TIDEGATE_CREDIT_THRESHOLD=2\nFI_TIDEGATE_GROWTH=exponential\nFI_TIDEGATE_QUIET_AFTER=never\nFI_TIDEGATE_RETRY_TIMER=0.01\n\
             FI_TIDEGATE_POOL_FIRST=4\nFI_TIDEGATE_POOL_MOST=16\n\
             FI_TIDEGATE_EAGER_SIZE=4k\nFI_TIDEGATE_RX_MEMORY=16M\nFI_TIDEGATE_PEERS=9\nFI_TIDEGATE_BULK=mailbox\n\
             FI_TIDEGATE_BOUNCE_BUFFERS=5\nFI_TIDEGATE_SEND_BUFFERS=6\nFI_TIDEGATE_RENDEZVOUS=single\nFI_TIDEGATE_CHUNK_SIZE=64k\n\
             FI_TIDEGATE_CHUNKS_IN_FLIGHT=3\nFI_TIDEGATE_CHUNKS_MOST=9\nFI_TIDEGATE_BULK_ORDER=booking\n\
             FI_TIDEGATE_BULK_SENDERS=2\nFI_TIDEGATE_BULK_QUANTUM=4m\nFI_TIDEGATE_BULK_STALL=7\nFI_TIDEGATE_PROGRESS=thread\n\
             FI_TIDEGATE_PORTS=5000-5009"
        );
    }

    #[test]
    fn options_not_given_set_nothing() {
        assert_eq!(run(&["x"]).unwrap().tuning.parameters(), []);
    }

    #[test]
    fn options_after_the_program_belong_to_the_program() {
        for words in [&["mpiexec", "--quiet", "-n", "2"][..], &["--", "mpiexec", "--quiet", "-n", "2"]] {
            let arguments = run(words).unwrap();
            assert!(!arguments.quiet);
            assert_eq!(arguments.command, ["mpiexec", "--quiet", "-n", "2"]);
        }
    }

    #[test]
    fn wrong_values_are_usage_errors_that_name_what_is_allowed() {
        for (words, names) in [
            (&["--scheme", "fast", "x"][..], "dynamic"),
            (&["--slots", "0", "x"], "must be a number of slots up to 16777215, at least"),
            (&["--slots", "abc", "x"], "must be a number of slots up to 16777215, at least"),
            (&["--peers", "many", "x"], "must be a number of endpoints from 1 to 1048575"),
            (&["--bounce-buffers", "32769", "x"], "must be a number of bounce buffers from 0 to 32768"),
            (&["--eager-size", "2q", "x"], "must be bytes from 0 to 1M"),
            (&["--eager-size", "2M", "x"], "must be bytes from 0 to 1M"),
            (&["--eager-size", "1T", "x"], "must be bytes from 0 to 1M"),
            (&["--rx-memory", "lots", "x"], "must be bytes from 0 to 1T"),
            (&["--rx-memory", "", "x"], "a value is needed"),
            (&["--rx-memory", "2T", "x"], "must be bytes from 0 to 1T"),
            (&["--piggyback", "maybe", "x"], "--piggyback"),
            (&["--ports", "5000", "x"], "must be two ports from 1 to 65535"),
            (&["--buffers", "0", "x"], "must be a number of buffers from 1 to 16383"),
            (&["--growth", "fast", "x"], "must be linear or exponential"),
            (&["--retry-timer", "0.001", "x"], "must be milliseconds from 0.01 to 655.36"),
            (&["--alltoall", "token", "x"], "tokens"),
            (&["--alltoall", "tokens", "--alltoall-bytes", "0", "x"], "must be bytes from 1 to 1024G"),
            (&["--alltoall", "tokens", "--alltoall-bytes", "4kk", "x"], "must be bytes from 1 to 1024G"),
            (&["--alltoall-bytes", "4k", "x"], "--alltoall <ALLTOALL>"),
            (&["--record-interval", "1s", "x"], "--record <DIR>"),
            (&["--record", "d", "--record-interval", "0.1ms", "x"], "must be a time from 1ms to 60min"),
            (&["--record", "d", "--record-interval", "2h", "x"], "must be a time from 1ms to 60min"),
            (&["--record", "d", "--record-most", "1k", "x"], "must be bytes from 64k to 1024G"),
            (&[], "<COMMAND>"),
        ] {
            let error = run(words).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(names), "{error}");
        }
    }

    #[test]
    fn wrong_numbers_of_the_other_commands_name_what_is_allowed() {
        for (words, names) in [
            (&["sim", "--jobs", "x", "file"][..], "must be a whole number from 1 to 4096"),
            (&["top", "--interval", "0"], "must be seconds from 0.1 to 3600"),
            (&["top", "--json"], "--once"),
        ] {
            let error = Cli::try_parse_from([&["tidegate"], words].concat()).unwrap_err();
            assert!(error.exit_code() == 2 && error.to_string().contains(names), "{error}");
        }
    }

    #[test]
    fn recording_takes_the_options_of_run_and_either_a_program_or_a_folder() {
        let record = |words: &[&str]| {
            Cli::try_parse_from([&["tidegate", "record"], words].concat()).map(|cli| match cli.command {
                Command::Record(arguments) => arguments,
                other => panic!("{other:?}"),
            })
        };
        let arguments = record(&["-o", "x.goal", "--scheme", "static", "mpiexec", "-o", "y"]).unwrap();
        assert_eq!((arguments.output, arguments.run.command.len()), (PathBuf::from("x.goal"), 3));
        assert_eq!(arguments.run.tuning.parameters().len(), 1);
        assert!(record(&["-o", "x.goal", "--from", "d"]).is_ok());
        for (words, names) in [
            (&["-o", "x.goal"][..], "<COMMAND>"),
            (&["mpiexec"], "--output"),
            (&["-o", "x.goal", "--from", "d", "mpiexec"], "--from"),
            (&["-o", "x.goal", "--most", "1", "mpiexec"], "must be bytes from 4k to 1t"),
        ] {
            let error = record(words).unwrap_err();
            assert!(error.exit_code() == 2 && error.to_string().contains(names), "{error}");
        }
    }

    #[test]
    fn an_unknown_option_before_the_program_is_not_the_program() {
        for (words, names) in [
            (&["run", "--slot", "8", "mpiexec"][..], "'--slots'"),
            (&["run", "--scheme", "static", "--qiuet", "mpiexec"], "'--quiet'"),
            (&["run", "-x", "mpiexec"], "'-x'"),
            (&["run", "-n", "2", "mpiexec"], "'-n'"),
            (&["env", "--explian", "mpiexec"], "'--explain'"),
        ] {
            let error = Cli::try_parse_from([&["tidegate"], words].concat()).unwrap_err();
            assert!(error.exit_code() == 2 && error.to_string().contains(names), "{error}");
        }
        assert_eq!(run(&["--", "--odd", "x"]).unwrap().command, ["--odd", "x"]);
    }
}
