//! What the launcher of a job tells its processes through the environment: which rank they are, of how many.

use tidegate_link::process;

/// Variables that hold the number of ranks, most specific launcher first.
const SIZES: &[&str] = &["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS"];
/// Variables that hold the rank.
const RANKS: &[&str] = &["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MPI_LOCALRANKID", "SLURM_PROCID"];

/// Variables that hold how many of the ranks run on this host, most specific launcher first.
const LOCAL_SIZES: &[&str] = &["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"];
/// Variables that hold on how many hosts the job runs.
const HOSTS: &[&str] = &["SLURM_STEP_NUM_NODES", "SLURM_NNODES"];

/// Variables that only processes have which others have started by `MPI_Comm_spawn`, and what they hold, if that
/// matters.
const SPAWNED: &[(&str, Option<&str>)] = &[("PMI_SPAWNED", Some("1")), ("OMPI_PARENT_PORT", None)];

/// Variables that name the job, most specific launcher first; of the last two, both together do.
const NAMES: &[&[&str]] = &[&["PMIX_NAMESPACE"], &["OMPI_MCA_ess_base_jobid"], &["SLURM_JOB_ID", "SLURM_STEP_ID"]];

/// What tells the job of this process from others that the same script launches: what its launcher calls it, else the
/// process that has started it, which on each host is one for all ranks.
pub fn launch() -> Option<String> {
    launch_from(|name| std::env::var(name).ok(), std::os::unix::process::parent_id())
}

fn launch_from(variable: impl Fn(&str) -> Option<String>, parent: u32) -> Option<String> {
    let named = NAMES.iter().find_map(|names| {
        let parts: Option<Vec<String>> = names.iter().map(|name| variable(name)).collect();
        Some(parts?.join("."))
    });
    named.or_else(|| (parent > 1).then(|| format!("parent {parent}")))
}

/// A process's place in its job, as far as the launcher has told it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Ranks of the job.
    pub size: Option<u32>,
    /// Rank of this process.
    pub rank: Option<u32>,
    /// Ranks of the job on this host.
    pub local_size: Option<u32>,
    /// Hosts of the job.
    pub hosts: Option<u32>,
    /// Processes of another job have started this one, which may run on any host.
    pub is_spawned: bool,
}

impl Job {
    /// Reads the environment.
    pub fn from_environment() -> Job {
        Job::from_variables(|name| std::env::var(name).ok())
    }

    /// The same for what is opened now. A child that was forked from a rank, after that had opened something, has the
    /// rank's variables and is no rank.
    pub fn of_process() -> Job {
        let job = Job::from_environment();
        Job { rank: job.rank.filter(|_| !process::is_descendant()), ..job }
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Job {
        let first = |names: &[&str]| names.iter().find_map(|name| variable(name)?.trim().parse().ok());
        let (local_size, hosts) = (first(LOCAL_SIZES), first(HOSTS));
        let is_spawned = SPAWNED.iter().any(|(name, wanted)| match (variable(name), wanted) {
            (Some(value), Some(wanted)) => value.trim() == *wanted,
            (value, None) => value.is_some(),
            (None, Some(_)) => false,
        });
        Job { size: first(SIZES).filter(|&size| size > 0), rank: first(RANKS), local_size, hosts, is_spawned }
    }

    /// Whether the launcher says that ranks of the job run on other hosts.
    pub fn spans_hosts(&self) -> bool {
        match (self.size, self.local_size) {
            (Some(size), Some(local)) => local < size,
            _ => self.hosts.is_some_and(|hosts| hosts > 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(set: &[(&str, &str)]) -> Job {
        Job::from_variables(|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_three_launchers_are_understood() {
        let told = Job { size: Some(8), rank: Some(3), ..Job::default() };
        let hydra = job(&[("PMI_SIZE", "8"), ("PMI_RANK", "3"), ("MPI_LOCALNRANKS", "4")]);
        assert_eq!(hydra, Job { local_size: Some(4), ..told });
        assert_eq!(job(&[("OMPI_COMM_WORLD_SIZE", "8"), ("OMPI_COMM_WORLD_RANK", "3"), ("SLURM_NTASKS", "99")]), told);
        assert_eq!(job(&[("PMIX_RANK", "3"), ("SLURM_NTASKS", "8")]), told);
    }

    #[test]
    fn a_job_spans_hosts_if_fewer_ranks_are_here_than_there_are() {
        assert!(job(&[("PMI_SIZE", "8"), ("MPI_LOCALNRANKS", "4")]).spans_hosts());
        assert!(!job(&[("PMI_SIZE", "8"), ("MPI_LOCALNRANKS", "8")]).spans_hosts());
        assert!(job(&[("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "2")]).spans_hosts());
        assert!(job(&[("SLURM_NTASKS", "4"), ("SLURM_STEP_NUM_NODES", "2")]).spans_hosts());
        assert!(!job(&[("SLURM_NTASKS", "4"), ("SLURM_STEP_NUM_NODES", "1")]).spans_hosts() && !job(&[]).spans_hosts());
    }

    #[test]
    fn spawned_processes_are_told_from_others() {
        assert!(job(&[("PMI_SPAWNED", "1")]).is_spawned && job(&[("OMPI_PARENT_PORT", "330.0:266")]).is_spawned);
        assert!(!job(&[("PMI_SPAWNED", "0")]).is_spawned && !job(&[("PMI_RANK", "1")]).is_spawned);
    }

    #[test]
    fn without_a_launcher_nothing_is_known() {
        assert_eq!(job(&[]), Job::default());
        assert_eq!(job(&[("PMI_SIZE", "0"), ("PMI_RANK", "x")]), Job::default());
    }
}
