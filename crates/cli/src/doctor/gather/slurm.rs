//! Slurm, if this host belongs to one.

use std::ffi::OsStr;
use std::process::Command;
use std::time::Duration;

use super::super::facts::Slurm;
use crate::child::answer;
use crate::launcher::look_up;

/// How long a command of Slurm may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// As many nodes of a job are tried. A larger job takes longer to start than the doctor waits.
const NODES_MOST: usize = 16;

/// The job of Slurm and its plugins, where there is Slurm.
pub fn gather() -> Option<Slurm> {
    let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    let srun = look_up(OsStr::new("srun"), std::env::var_os("PATH").as_deref());
    let job = variable("SLURM_JOB_ID");
    if srun.is_none() && job.is_none() {
        return None;
    }
    let plugins = srun.map(|srun| plugins(&answer(Command::new(srun).arg("--mpi=list"), PATIENCE).unwrap_or_default()));
    Some(Slurm { job, nodes: variable("SLURM_NNODES").and_then(|nodes| nodes.parse().ok()), plugins })
}

/// The first nodes of the job of Slurm in which this is, if it has several.
pub fn nodes() -> Vec<String> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|text| !text.is_empty());
    if !is_set("SLURM_JOB_ID") || !is_set("SLURM_JOB_NODELIST") {
        return Vec::new();
    }
    // Without an argument it reads that variable.
    let listed = answer(Command::new("scontrol").args(["show", "hostnames"]), PATIENCE);
    names(&listed.unwrap_or_default())
}

/// The names in that answer, a line each, unless it is one alone or an error.
fn names(listed: &str) -> Vec<String> {
    let names: Vec<&str> = listed.lines().map(str::trim).filter(|name| !name.is_empty()).collect();
    let are_names = names.len() > 1 && !names.iter().any(|name| name.contains([' ', ':']));
    names.into_iter().filter(|_| are_names).take(NODES_MOST).map(str::to_owned).collect()
}

/// The names of plugins in the answer: each in a line of its own, which older ones begin with `srun: `, and versions of
/// PMIx behind a heading.
fn plugins(text: &str) -> Vec<String> {
    let names = text.lines().map(|line| line.trim_start_matches("srun:").trim());
    let known = |name: &&str| name.starts_with("pmi") || matches!(*name, "none" | "cray_shasta" | "openmpi");
    let mut found: Vec<String> =
        names.flat_map(|line| line.split([',', ' '])).filter(known).map(str::to_owned).collect();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_nodes_of_a_job_of_several_are_tried() {
        assert_eq!(names("h1\nh2\n"), ["h1", "h2"]);
        assert_eq!(names("h1\n"), [""; 0], "the job here tries it");
        assert_eq!(names("scontrol: error: host list is empty\nx\n"), [""; 0]);
        let many: String = (0..40).map(|number| format!("h{number}\n")).collect();
        assert_eq!(names(&many).len(), NODES_MOST);
    }

    #[test]
    fn plugins_are_listed_in_two_forms() {
        assert_eq!(
            plugins("srun: MPI types are...\nsrun: none\nsrun: pmi2\nsrun: openmpi\n"),
            ["none", "pmi2", "openmpi"]
        );
        let new = "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\nspecific pmix plugin versions available: pmix_v4,pmix_v5\n";
        assert_eq!(plugins(new), ["none", "pmi2", "pmix", "pmix_v4", "pmix_v5"]);
    }
}
