//! Arguments of `tidegate doctor`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use super::interval;
use crate::tuning::Tuning;

pub(super) const DOCTOR_HELP: &str = "\
Exit code: 0 a job would run; 1 it would not; 2 wrong usage; 125 tidegate itself failed.

Examples:
  tidegate doctor                               (the mpiexec of PATH, or that there is none)
  tidegate doctor mpiexec -n 64 ./program       (the job that you want to run)
  tidegate doctor --hosts a,b mpiexec           (firewalls: a job with a rank on each host)
  tidegate doctor --ports 41000-41099 --hosts a,b mpiexec
  tidegate doctor srun --mpi=pmi2 ./program     (in a job of Slurm)
  tidegate doctor --no-job --json               (runs nothing, as on a login node)

docs/doctor.md explains each line.";

/// Arguments of `tidegate doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub tuning: Tuning,

    /// Hosts of the job, with commas between them: a job with a rank on each is run, to see whether they reach each
    /// other
    #[arg(long, value_name = "HOST,HOST", value_delimiter = ',')]
    pub hosts: Vec<String>,

    /// A folder that all hosts see, as `tidegate run --shared` takes it
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub shared: Option<PathBuf>,

    /// Run no job
    #[arg(long, conflicts_with = "hosts")]
    pub no_job: bool,

    /// How long each job may take [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = interval)]
    pub timeout: Option<Duration>,

    /// Remove what dead jobs of yours have left in /dev/shm, and do nothing else
    #[arg(long, conflicts_with_all = ["hosts", "command", "json"])]
    pub clean: bool,

    /// Print JSON instead of text (schema in tidegate(1))
    #[arg(long)]
    pub json: bool,

    /// Be a rank of such a job, with this MPI library.
    #[arg(long, hide = true, value_name = "LIBRARY")]
    pub as_rank: Option<PathBuf>,

    /// Ask the libfabric of this MPI library.
    #[arg(long, hide = true, value_name = "LIBRARY", num_args = 1..=2)]
    pub as_probe: Vec<PathBuf>,

    /// Show a word in this process's memory.
    #[arg(long, hide = true)]
    pub as_word: bool,

    /// Read such a word.
    #[arg(long, hide = true, value_name = "WORD")]
    pub as_reader: Option<String>,

    /// The launcher, a program, or the command of a whole job [default: the mpiexec of PATH]
    #[arg(trailing_var_arg = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}
