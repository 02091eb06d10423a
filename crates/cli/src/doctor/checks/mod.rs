//! Facts into verdicts. No function here asks the system anything, so each branch is tested with facts made up for it.

mod environment;
mod job;
mod limits;
mod machine;
mod mpi;
mod network;
mod shared_memory;
mod slurm;

use super::facts::Facts;
use super::verdict::Verdict;
use crate::mpi::MpiKind;
use tidegate_link::Container;

/// All verdicts, in the order in which a job meets what they are about.
pub fn verdicts(facts: &Facts) -> Vec<Verdict> {
    let parts = [
        vec![machine::machine(facts)],
        mpi::mpi(facts),
        mpi::program(facts),
        mpi::libfabric(facts),
        mpi::provider(facts),
        environment::settings(facts),
        environment::variables(facts),
        vec![shared_memory::shared_memory(facts)],
        shared_memory::left_files(facts),
        machine::memory_copies(facts),
        limits::limits(facts),
        vec![machine::cores(facts)],
        network::network(facts),
        network::ports(facts),
        slurm::slurm(facts),
        job::job(facts),
        job::hosts(facts),
    ];
    parts.into_iter().flatten().collect()
}

/// How many endpoints a rank opens.
fn endpoints_per_rank(facts: &Facts) -> u32 {
    match facts.mpi.mpi.as_ref().map(|mpi| mpi.kind) {
        Some(MpiKind::OpenMpi) => 2,
        _ => 1,
    }
}

/// The line that lets Intel MPI find networks, where that may be what it lacks: its libfabric looks for providers in
/// the first folder of FI_PROVIDER_PATH only, and with a shared folder `tidegate run` puts all of them into one.
fn one_folder_of_providers(facts: &Facts) -> Option<String> {
    let is_intel = facts.mpi.mpi.as_ref().is_some_and(|mpi| mpi.kind == MpiKind::IntelMpi);
    let line = "tidegate run --shared DIR mpiexec ./PROGRAM   # DIR: a folder that all hosts see";
    (is_intel && !facts.has_shared_folder).then(|| line.to_owned())
}

/// The line that starts a container with such an option, where this process is in one that has such options.
fn container_with(facts: &Facts, option: &str) -> Option<String> {
    match facts.container? {
        Container::Docker => Some(format!("docker run {option} IMAGE")),
        Container::Podman => Some(format!("podman run {option} IMAGE")),
        Container::Kubernetes | Container::Apptainer => None,
    }
}

/// `1 rank`, `2 ranks`.
fn ranks(count: u32) -> String {
    format!("{count} {}", if count == 1 { "rank" } else { "ranks" })
}

#[cfg(test)]
mod testing {
    use super::*;
    use crate::doctor::facts::{Libfabric, Limit, Limits, SharedMemory, Taken};
    use crate::doctor::verdict::{Level, would_run};
    use crate::mpi::Mpi;

    /// A machine on which nothing is wrong.
    pub fn healthy() -> Facts {
        let mut facts = Facts { host: "h1".into(), cores: 16, ranks: 16, ..Facts::default() };
        facts.mpi.launcher = Some("/opt/mpich/bin/mpiexec".into());
        facts.mpi.mpi = Some(Mpi { version: Some("5.0.2".into()), ..Mpi::of(MpiKind::Mpich) });
        facts.mpi.library = Some("/opt/mpich/lib/libmpi.so.12".into());
        facts.provider = Some(Ok("/usr/lib/tidegate".into()));
        facts.libfabric = Some(Ok(Libfabric {
            path: "/opt/mpich/lib/libfabric.so.1".into(),
            version: (2, 3),
            has_tidegate: true,
            taken: Some(Ok(Taken { provider: "tcp".into(), domain: "eth0".into(), ..Taken::default() })),
        }));
        facts.shared_memory = SharedMemory {
            is_there: true,
            is_memory: true,
            total: 32 << 30,
            free: 31 << 30,
            each: Some(2 << 20),
            refused: None,
        };
        facts.copies = Some(Ok(()));
        let descriptors = Limit { now: Some(1024), most: Some(1 << 20) };
        let locked_memory = Limit { now: Some(8 << 20), most: Some(8 << 20) };
        facts.limits = Limits { descriptors, locked_memory, ..Limits::default() };
        facts
    }

    /// The level of the one verdict, its text and its remedy.
    pub fn one(verdicts: &[Verdict]) -> (Level, String, Option<String>) {
        match verdicts {
            [one] => (one.level, one.text.clone(), one.remedy.clone()),
            others => panic!("{others:?}"),
        }
    }

    #[test]
    fn a_healthy_machine_gets_no_remedies() {
        let said = verdicts(&healthy());
        assert!(said.iter().all(|verdict| verdict.level == Level::Ok && verdict.remedy.is_none()), "{said:#?}");
        assert!(would_run(&said) && said.len() >= 12, "{said:#?}");
    }

    #[test]
    fn names_of_checks_are_words_with_underlines() {
        let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        assert!(verdicts(&healthy()).iter().all(|verdict| is_name(verdict.check)));
    }

    #[test]
    fn a_machine_of_which_nothing_is_known_is_judged_too() {
        assert!(!would_run(&verdicts(&Facts::default())));
    }
}
