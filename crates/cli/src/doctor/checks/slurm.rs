//! Slurm: whether this is a node of a job, and how `srun` starts ranks of the MPI.

use crate::doctor::facts::{Facts, Slurm};
use crate::doctor::verdict::{Verdict, ok, warn};
use crate::mpi::MpiKind;

/// The verdict on Slurm, where there is one.
pub fn slurm(facts: &Facts) -> Vec<Verdict> {
    let Some(slurm) = &facts.slurm else { return Vec::new() };
    let Some(job) = &slurm.job else {
        let text = "this is not in a job of Slurm: limits, /dev/shm and networks of compute nodes may be others";
        return vec![warn("slurm", text, "srun -N 1 -n 1 tidegate doctor --no-job".to_owned())];
    };
    let nodes = match slurm.nodes {
        Some(1) => " on one node".to_owned(),
        Some(nodes) => format!(" on {nodes} nodes"),
        None => String::new(),
    };
    let job = format!("job {job}{nodes}");
    let Some(mpi) = &facts.mpi.mpi else { return vec![ok("slurm", job)] };
    vec![match plugin(slurm, mpi.kind, mpi.major()) {
        Some(plugin) => ok("slurm", format!("{job}; srun --mpi={plugin} starts ranks of {}", mpi.kind.name())),
        None => {
            let text = format!(
                "{job}; srun has no plugin for {} (srun --mpi=list): start ranks by its launcher",
                mpi.kind.name()
            );
            warn("slurm", text, "tidegate run mpiexec ./PROGRAM".to_owned())
        }
    }]
}

/// The plugin by which `srun` starts ranks of an MPI.
fn plugin(slurm: &Slurm, kind: MpiKind, major: Option<u32>) -> Option<&'static str> {
    let wanted: &[&str] = match (kind, major) {
        // Open MPI 5 speaks PMIx only.
        (MpiKind::OpenMpi, Some(5..)) => &["pmix"],
        (MpiKind::OpenMpi, _) => &["pmix", "pmi2"],
        (MpiKind::Mpich | MpiKind::IntelMpi, _) => &["pmi2"],
    };
    let has = |name: &&&str| slurm.plugins.iter().flatten().any(|plugin| plugin.starts_with(**name));
    wanted.iter().find(has).copied()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{healthy, one};
    use super::*;
    use crate::doctor::verdict::Level;
    use crate::mpi::Mpi;

    fn with(job: Option<&str>, plugins: &[&str], mpi: Mpi) -> (Level, String, Option<String>) {
        let plugins = Some(plugins.iter().map(|plugin| (*plugin).to_owned()).collect());
        let mut facts = healthy();
        facts.slurm = Some(Slurm { job: job.map(str::to_owned), nodes: Some(2), plugins });
        facts.mpi.mpi = Some(mpi);
        one(&slurm(&facts))
    }

    #[test]
    fn the_plugin_follows_from_the_mpi() {
        let open_mpi = |version: &str| Mpi { version: Some(version.into()), ..Mpi::of(MpiKind::OpenMpi) };
        for (plugins, mpi, expected) in [
            (&["none", "pmi2"][..], Mpi::of(MpiKind::Mpich), Some("pmi2")),
            (&["none", "pmi2"], open_mpi("4.1.4"), Some("pmi2")),
            (&["none", "pmi2"], open_mpi("5.0.1"), None),
            (&["pmi2", "pmix_v4"], open_mpi("5.0.1"), Some("pmix")),
            (&["none"], Mpi::of(MpiKind::IntelMpi), None),
        ] {
            let (level, text, _) = with(Some("17"), plugins, mpi);
            match expected {
                Some(plugin) => {
                    assert!(level == Level::Ok && text.contains(&format!("job 17 on 2 nodes; srun --mpi={plugin}")))
                }
                None => assert!(level == Level::Warn && text.contains("no plugin"), "{text}"),
            }
        }
    }

    #[test]
    fn outside_of_jobs_compute_nodes_are_to_be_asked() {
        let (level, text, remedy) = with(None, &[], Mpi::of(MpiKind::Mpich));
        assert!(level == Level::Warn && text.contains("not in a job") && remedy.unwrap().starts_with("srun -N 1"));
        assert_eq!(slurm(&healthy()), []);
        let mut facts =
            Facts { slurm: Some(Slurm { job: Some("1".into()), nodes: Some(1), plugins: None }), ..healthy() };
        facts.mpi.mpi = None;
        assert_eq!(one(&slurm(&facts)).1, "job 1 on one node");
    }
}
