//! Gathers the facts: asks the system, the MPI, its libfabric, and a job of the doctor's own. Questions that load
//! libraries of others, or may never be answered, are asked in a process of their own.

mod copies;
mod host;
mod left;
mod libfabric;
mod library;
mod limits;
mod network;
mod program;
mod slurm;
mod variables;

pub use copies::{read_as, show_word};
pub use left::remove as remove_left_files;
pub use libfabric::probe;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidegate_link::Container;

use super::facts::{Facts, MpiFacts};
use super::trial::{Request, Trial};
use super::words::{Starter, Words};
use crate::check;
use crate::launcher::{Launcher, folders_near};
use crate::mpi::{Mpi, recognise};
use crate::settings::{Plan, Setting};
use crate::tuning::Tuning;
use crate::{process, provider};

/// The questions of the user.
#[derive(Debug)]
pub struct Wish<'a> {
    /// Options that jobs take, too.
    pub tuning: &'a Tuning,
    /// The command of the job, if the user has named one.
    pub command: &'a [OsString],
    /// Hosts that the user has named.
    pub hosts: &'a [String],
    /// A folder that all hosts see, if the user has named one.
    pub shared: Option<&'a Path>,
    /// Whether to run a job.
    pub runs_job: bool,
    /// How long such a job may take.
    pub timeout: Duration,
}

/// All facts. `progress` is told what takes a while.
pub fn gather(wish: &Wish, progress: &dyn Fn(&str)) -> Facts {
    let environment = |name: &str| std::env::var_os(name);
    let words = Words::of(wish.command);
    let parameters = wish.tuning.parameters();
    let named = if wish.hosts.is_empty() { words.hosts.clone() } else { wish.hosts.to_vec() };
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let ranks_here = ranks_here(&words, named.len());
    let ranks = ranks_here.unwrap_or(cores);
    let mpi = mpi_facts(&words, wish.tuning);
    let found = provider::find(wish.tuning.provider_dir.as_deref());
    let near = folders_near(words.launcher(), wish.command);
    let provider_dir = found.as_ref().map_or(Path::new("/"), PathBuf::as_path);
    let root = rustix::process::geteuid().is_root();
    let plan = Plan {
        mpi: mpi.mpi.as_ref(),
        provider_dir,
        parameters: &parameters,
        alltoall: &[],
        near: &near,
        root,
        environment: &environment,
    };
    let settings = plan.settings();
    let mut facts = Facts {
        host: process::host_name(),
        cores,
        container: Container::around(),
        ranks,
        are_ranks_given: ranks_here.is_some(),
        hosts: if named.is_empty() { slurm::nodes() } else { named },
        has_shared_folder: wish.shared.is_some(),
        provider: Some(found.map_err(|failure| failure.to_string())),
        refused: check::check(&parameters, &environment).err().map(|failure| failure.to_string()),
        misspelt: check::misspelt(std::env::vars_os().map(|(name, _)| name)).into_iter().map(|one| one.text).collect(),
        variables: variables::gather(wish.command, &settings, &environment),
        shared_memory: host::shared_memory(check::segment_bytes(&parameters, &environment, ranks)),
        left: left::files(),
        copies: copies::try_copies(),
        ptrace_scope: copies::ptrace_scope(),
        limits: limits::gather(),
        ports: check::ports(&parameters, &environment),
        interfaces: network::interfaces(),
        fabric: environment("FI_TIDEGATE_FABRIC").map(|text| text.to_string_lossy().into_owned()),
        slurm: slurm::gather(),
        mpi,
        ..Facts::default()
    };
    try_jobs(wish, &words, &parameters, progress, &mut facts);
    ask_libfabric(&settings, &mut facts);
    facts
}

/// Runs a job here and one over the hosts, where there are a launcher, a library and a provider for it.
fn try_jobs(
    wish: &Wish,
    words: &Words,
    parameters: &[(&'static str, String)],
    progress: &dyn Fn(&str),
    facts: &mut Facts,
) {
    let (Some(Ok(provider_dir)), Some(library)) = (&facts.provider, &facts.mpi.library) else { return };
    // The job would refuse the same parameters in the same words.
    if !wish.runs_job || words.starter.is_none() || facts.refused.is_some() {
        return;
    }
    let kind = facts.mpi.mpi.as_ref().map(|mpi| mpi.kind);
    let Wish { shared, timeout, .. } = *wish;
    let are_of_slurm = wish.hosts.is_empty() && words.hosts.is_empty();
    let request =
        Request { words, kind, library, provider_dir, parameters, shared, hosts: &[], are_of_slurm: false, timeout };
    let failed = |why: String| Trial { ranks: 2, exit_code: -1, output: vec![why], ..Trial::default() };
    let seconds = wish.timeout.as_secs_f64();
    progress(&format!("a job of two ranks runs here, for {seconds} s at most"));
    facts.job = Some(request.run().unwrap_or_else(failed));
    if facts.hosts.len() > 1 {
        progress(&format!("a job runs over {}, for {seconds} s at most", facts.hosts.join(", ")));
        facts.hosts_job = Some(Request { hosts: &facts.hosts, are_of_slurm, ..request }.run().unwrap_or_else(failed));
    }
}

/// Asks the libfabric that the ranks of the job have loaded; without a job, the one that the MPI library leads to.
fn ask_libfabric(settings: &[Setting], facts: &mut Facts) {
    let loaded = [&facts.job, &facts.hosts_job].into_iter().flatten().find_map(Trial::libfabric);
    let Some(library) = &facts.mpi.library else { return };
    let kind = facts.mpi.mpi.as_ref().map(|mpi| mpi.kind);
    facts.libfabric = Some(libfabric::ask(library, loaded.as_deref(), kind, settings));
}

/// How many ranks the job has on this host, if the user or Slurm says.
fn ranks_here(words: &Words, hosts: usize) -> Option<u32> {
    let number = |name: &str| std::env::var(name).ok()?.trim().parse::<u32>().ok();
    let hosts = if hosts > 0 { u32::try_from(hosts).ok()? } else { number("SLURM_NNODES").unwrap_or(1).max(1) };
    let all = words.ranks.or_else(|| number("SLURM_NTASKS"))?;
    Some(all.div_ceil(hosts).max(1))
}

fn mpi_facts(words: &Words, tuning: &Tuning) -> MpiFacts {
    let program = words.program.as_ref().map(|name| program::look(name, words.program_path()));
    let launcher = words.launcher();
    let of_program = program.as_ref().and_then(|program| program.library.clone());
    let kind_of_program = program.as_ref().and_then(|program| program.kind);
    let mpi = recognise(tuning.mpi, launcher).or_else(|| kind_of_program.map(Mpi::of));
    let near = launcher.map(Launcher::folders).unwrap_or_default();
    // The library of a program of another MPI than the launcher's would only fail.
    let is_launchers = kind_of_program.is_none() || mpi.as_ref().is_none_or(|mpi| Some(mpi.kind) == kind_of_program);
    let library = of_program.filter(|_| is_launchers).or_else(|| library::find(&near, mpi.as_ref()?.kind));
    MpiFacts {
        launcher: words.starter.as_ref().map(|starter| starter.path().to_owned()),
        is_srun: matches!(words.starter, Some(Starter::Srun(_))),
        missing_launcher: words.missing.as_deref().map(OsStr::to_string_lossy).map(Into::into),
        mpi,
        library,
        program,
    }
}
