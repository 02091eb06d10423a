//! What the launcher of a job tells its processes through the environment: which rank they are, of how many, and how
//! many of these share their host.
//!
//! | launcher | variables | told by |
//! |---|---|---|
//! | Open MPI, PRRTE | `OMPI_COMM_WORLD_*` | Open MPI's manual, "Environment variables set for MPI applications" |
//! | Hydra (MPICH, Intel MPI) | `PMI_*`, `MPI_LOCALNRANKS` | MPICH, `src/pm/hydra/proxy/pmip_cb.c` |
//! | MVAPICH2's mpirun_rsh | `MV2_COMM_WORLD_*` | its user guide |
//! | LSF's jsrun | `JSM_NAMESPACE_*` | public programs for IBM's JSM that show where ranks run |
//! | PALS (HPE Cray, under PBS) | `PALS_RANKID`, `PALS_LOCAL_SIZE` | ALCF's guides for Aurora and Polaris |
//! | Slurm and Flux for Cray MPICH | `PMI_LOCAL_SIZE` | Slurm, `src/plugins/mpi/cray_shasta` |
//! | Flux | `FLUX_TASK_RANK`, `FLUX_JOB_SIZE`, `FLUX_JOB_NNODES` | flux-core, `src/shell/task.c` |
//! | Slurm | `SLURM_PROCID`, `SLURM_NTASKS`, `SLURM_STEP_*` | srun(1), "OUTPUT ENVIRONMENT VARIABLES" |
//! | ALPS | `ALPS_APP_PE` | aprun(1) |
//!
//! LSF and PBS by themselves tell only what was allocated, which is not what a launcher has made of it.

use tidegate_link::process;

/// Variables that hold the number of ranks, most specific launcher first.
const SIZES: &[&str] = &[
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "PMIX_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "JSM_NAMESPACE_SIZE",
    "FLUX_JOB_SIZE",
    "MPI_LOCALNRANKS",
    "SLURM_NTASKS",
];
/// Variables that hold the rank.
const RANKS: &[&str] = &[
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "PMIX_RANK",
    "MV2_COMM_WORLD_RANK",
    "JSM_NAMESPACE_RANK",
    "PALS_RANKID",
    "FLUX_TASK_RANK",
    "MPI_LOCALRANKID",
    "ALPS_APP_PE",
    "SLURM_PROCID",
];

/// Variables that hold how many of the ranks run on this host, most specific launcher first.
const LOCAL_SIZES: &[&str] = &[
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "MV2_COMM_WORLD_LOCAL_SIZE",
    "JSM_NAMESPACE_LOCAL_SIZE",
    "PALS_LOCAL_SIZE",
    "PMI_LOCAL_SIZE",
];
/// Variables that hold on how many hosts the job runs.
const HOSTS: &[&str] = &["SLURM_STEP_NUM_NODES", "FLUX_JOB_NNODES", "SLURM_NNODES"];

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
        let (size, hosts) = (first(SIZES).filter(|&size| size > 0), first(HOSTS));
        let is_spawned = SPAWNED.iter().any(|(name, wanted)| match (variable(name), wanted) {
            (Some(value), Some(wanted)) => value.trim() == *wanted,
            (value, None) => value.is_some(),
            (None, Some(_)) => false,
        });
        let by_node = variable("SLURM_STEP_TASKS_PER_NODE").zip(first(&["SLURM_NODEID"]));
        let local_size = first(LOCAL_SIZES)
            .or_else(|| by_node.and_then(|(tasks, node)| tasks_on_node(&tasks, node, size?)))
            .or_else(|| size.filter(|_| hosts == Some(1)));
        Job { size, rank: first(RANKS), local_size: local_size.filter(|&local| local > 0), hosts, is_spawned }
    }

    /// Whether the launcher says that ranks of the job run on other hosts.
    pub fn spans_hosts(&self) -> bool {
        match (self.size, self.local_size) {
            (Some(size), Some(local)) => local < size,
            _ => self.hosts.is_some_and(|hosts| hosts > 1),
        }
    }

    /// Whether ranks of the job may run on other hosts without a word of the launcher about that: it has told how many
    /// ranks there are, but neither how many are here nor on how many hosts, or others have started this process.
    pub fn may_span_hosts(&self) -> bool {
        let is_untold = self.local_size.is_none() && self.hosts.is_none();
        self.is_spawned || is_untold && self.size.is_some_and(|size| size > 1)
    }
}

/// How many tasks Slurm has put on the node of this number, by a list such as `4(x2),3`. `None` unless the list makes
/// up the job's size: then it is not this job's.
fn tasks_on_node(list: &str, node: u32, size: u32) -> Option<u32> {
    let (mut here, mut nodes, mut tasks) = (None, 0_u32, 0_u32);
    for part in list.trim().split(',') {
        let (count, times) = match part.split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')')?.parse().ok()?),
            None => (part, 1_u32),
        };
        let count: u32 = count.parse().ok()?;
        let after = nodes.checked_add(times)?;
        here = here.or((nodes..after).contains(&node).then_some(count));
        (nodes, tasks) = (after, tasks.checked_add(count.checked_mul(times)?)?);
    }
    here.filter(|_| tasks == size)
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

    /// A launcher, the variables that it sets, and how many ranks of the host follow from them, if that does.
    type Told = (&'static str, &'static [(&'static str, &'static str)], Option<u32>);

    /// What each launcher tells rank 5 of 12.
    const LAUNCHERS: &[Told] = &[
        (
            "Open MPI",
            &[("OMPI_COMM_WORLD_SIZE", "12"), ("OMPI_COMM_WORLD_RANK", "5"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "4")],
            Some(4),
        ),
        (
            "Hydra",
            &[("PMI_SIZE", "12"), ("PMI_RANK", "5"), ("MPI_LOCALNRANKS", "4"), ("MPI_LOCALRANKID", "1")],
            Some(4),
        ),
        (
            "mpirun_rsh",
            &[("MV2_COMM_WORLD_SIZE", "12"), ("MV2_COMM_WORLD_RANK", "5"), ("MV2_COMM_WORLD_LOCAL_SIZE", "4")],
            Some(4),
        ),
        (
            "jsrun",
            &[("JSM_NAMESPACE_SIZE", "12"), ("JSM_NAMESPACE_RANK", "5"), ("JSM_NAMESPACE_LOCAL_SIZE", "4")],
            Some(4),
        ),
        ("PALS", &[("PMI_SIZE", "12"), ("PALS_RANKID", "5"), ("PALS_LOCAL_SIZE", "4")], Some(4)),
        ("Slurm, cray_shasta", &[("PMI_SIZE", "12"), ("PMI_RANK", "5"), ("PMI_LOCAL_SIZE", "4")], Some(4)),
        ("Flux", &[("FLUX_JOB_SIZE", "12"), ("FLUX_TASK_RANK", "5"), ("FLUX_JOB_NNODES", "3")], None),
        (
            "Slurm",
            &[
                ("SLURM_NTASKS", "12"),
                ("SLURM_PROCID", "5"),
                ("SLURM_STEP_NUM_NODES", "3"),
                ("SLURM_STEP_TASKS_PER_NODE", "5(x2),2"),
                ("SLURM_NODEID", "1"),
            ],
            Some(5),
        ),
        ("Slurm, an older one", &[("SLURM_NTASKS", "12"), ("SLURM_PROCID", "5"), ("SLURM_NNODES", "3")], None),
    ];

    #[test]
    fn each_launcher_tells_rank_size_and_that_there_are_other_hosts() {
        for (launcher, set, local) in LAUNCHERS {
            let told = job(set);
            assert_eq!((told.rank, told.size, told.local_size), (Some(5), Some(12), *local), "{launcher}");
            assert!(told.spans_hosts() && !told.may_span_hosts(), "{launcher}");
        }
    }

    #[test]
    fn a_job_of_one_host_is_known_as_such_from_each_launcher() {
        for (launcher, set, local) in LAUNCHERS {
            let alone: Vec<(&str, &str)> = set
                .iter()
                .map(|&(name, value)| match name {
                    "FLUX_JOB_NNODES" | "SLURM_STEP_NUM_NODES" | "SLURM_NNODES" => (name, "1"),
                    "SLURM_STEP_TASKS_PER_NODE" => (name, "12"),
                    "SLURM_NODEID" => (name, "0"),
                    _ if name.contains("LOCAL_SIZE") || name == "MPI_LOCALNRANKS" => (name, "12"),
                    _ => (name, value),
                })
                .collect();
            let told = job(&alone);
            assert_eq!(told.local_size, Some(12), "{launcher}, which told {local:?} before");
            assert!(!told.spans_hosts() && !told.may_span_hosts(), "{launcher}");
        }
    }

    #[test]
    fn slurm_lists_tasks_by_node() {
        for (list, node, size, here) in [
            ("4", 0, 4, Some(4)),
            ("4(x2),3", 0, 11, Some(4)),
            ("4(x2),3", 1, 11, Some(4)),
            ("4(x2),3", 2, 11, Some(3)),
            ("1,2(x3),1", 3, 8, Some(2)),
            ("4(x2),3", 3, 11, None),
            ("4(x2),3", 0, 8, None),
            ("4(x", 0, 4, None),
            ("4(x2", 0, 8, None),
            ("", 0, 1, None),
            ("4294967295(x4294967295)", 0, 1, None),
            ("1(x4294967295),1", 0, 1, None),
        ] {
            assert_eq!(tasks_on_node(list, node, size), here, "{list:?} at {node} of {size}");
        }
    }

    #[test]
    fn a_launcher_that_tells_too_little_leaves_open_whether_there_are_other_hosts() {
        assert!(job(&[("PMI_SIZE", "4"), ("PMI_RANK", "1")]).may_span_hosts());
        assert!(job(&[("PMI_SPAWNED", "1"), ("PMI_SIZE", "4"), ("MPI_LOCALNRANKS", "4")]).may_span_hosts());
        for set in
            [&[][..], &[("PMI_SIZE", "1")], &[("ALPS_APP_PE", "3")], &[("SLURM_NTASKS", "4"), ("SLURM_NNODES", "1")]]
        {
            assert!(!job(set).may_span_hosts(), "{set:?}");
        }
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
