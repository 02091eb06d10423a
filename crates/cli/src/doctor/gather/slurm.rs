//! Slurm, if this host belongs to one.

use std::ffi::OsStr;
use std::process::Command;
use std::time::Duration;

use super::super::facts::Slurm;
use crate::child::answer;
use crate::launcher::look_up;

/// How long `srun` may take to list its plugins.
const PATIENCE: Duration = Duration::from_secs(10);

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

/// The names in the answer: each in a line of its own, which older ones begin with `srun: `, and versions of PMIx
/// behind a heading.
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
    fn plugins_are_listed_in_two_forms() {
        assert_eq!(
            plugins("srun: MPI types are...\nsrun: none\nsrun: pmi2\nsrun: openmpi\n"),
            ["none", "pmi2", "openmpi"]
        );
        let new = "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\nspecific pmix plugin versions available: pmix_v4,pmix_v5\n";
        assert_eq!(plugins(new), ["none", "pmi2", "pmix", "pmix_v4", "pmix_v5"]);
    }
}
