//! What the launcher of a job tells its processes through the environment: which rank they are, of how many.

/// Variables that hold the number of ranks, most specific launcher first.
const SIZES: &[&str] = &["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS"];
/// Variables that hold the rank.
const RANKS: &[&str] = &["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MPI_LOCALRANKID", "SLURM_PROCID"];

/// A process's place in its job, as far as the launcher has told it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Ranks of the job.
    pub size: Option<u32>,
    /// Rank of this process.
    pub rank: Option<u32>,
}

impl Job {
    /// Reads the environment.
    pub fn from_environment() -> Job {
        Job::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Job {
        let first = |names: &[&str]| names.iter().find_map(|name| variable(name)?.trim().parse().ok());
        Job { size: first(SIZES).filter(|&size| size > 0), rank: first(RANKS) }
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
        let told = Job { size: Some(8), rank: Some(3) };
        assert_eq!(job(&[("PMI_SIZE", "8"), ("PMI_RANK", "3"), ("MPI_LOCALNRANKS", "4")]), told);
        assert_eq!(job(&[("OMPI_COMM_WORLD_SIZE", "8"), ("OMPI_COMM_WORLD_RANK", "3"), ("SLURM_NTASKS", "99")]), told);
        assert_eq!(job(&[("PMIX_RANK", "3"), ("SLURM_NTASKS", "8")]), told);
    }

    #[test]
    fn without_a_launcher_nothing_is_known() {
        assert_eq!(job(&[]), Job::default());
        assert_eq!(job(&[("PMI_SIZE", "0"), ("PMI_RANK", "x")]), Job::default());
    }
}
