//! The machine: processors, and copies between the memories of processes.

use super::{container_with, ranks};
use crate::doctor::facts::Facts;
use crate::doctor::verdict::{Verdict, ok, warn};
use tidegate_link::Container;

/// Which machine it is. Always in order: the others say what is wrong with it.
pub fn machine(facts: &Facts) -> Verdict {
    let inside =
        facts.container.map(|container| format!(", in a container of {}", container.name())).unwrap_or_default();
    let cores = if facts.cores == 1 { "one processor".to_owned() } else { format!("{} processors", facts.cores) };
    ok("machine", format!("{}: {cores} for this process{inside}", facts.host))
}

/// Whether there are more ranks than processors.
pub fn cores(facts: &Facts) -> Verdict {
    let Facts { cores, ranks: count, .. } = *facts;
    if count > cores {
        let text = format!("{} on {cores} processors: ranks that wait for their turn make others wait", ranks(count));
        return warn("cores", text, format!("mpiexec -n {cores}   # as many ranks as processors"));
    }
    let why = if facts.are_ranks_given { "" } else { " (without -n, one for each)" };
    ok("cores", format!("{} on {cores} processors{why}", ranks(count)))
}

/// Whether long messages within the host are copied from memory to memory.
pub fn memory_copies(facts: &Facts) -> Vec<Verdict> {
    let Some(copies) = &facts.copies else { return Vec::new() };
    vec![match copies {
        Ok(()) => ok("memory_copies", "ranks may copy from each other's memory (process_vm_readv)"),
        Err(why) => {
            // The rest of the sentence has remedies for all cases.
            let why = why.split(';').next().unwrap_or_default();
            let text = format!("{why}: long messages within the host take a second copy, by bounce buffers");
            warn("memory_copies", text, remedy(facts))
        }
    }]
}

fn remedy(facts: &Facts) -> Option<String> {
    match (facts.ptrace_scope, facts.container) {
        (Some(2..), _) => Some("sudo sysctl kernel.yama.ptrace_scope=1".to_owned()),
        (_, Some(Container::Kubernetes)) => Some("securityContext: {capabilities: {add: [SYS_PTRACE]}}".to_owned()),
        _ => container_with(facts, "--cap-add=SYS_PTRACE"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{healthy, one};
    use super::*;
    use crate::doctor::verdict::Level;

    #[test]
    fn the_machine_is_named_with_its_container() {
        let facts = Facts { container: Some(Container::Podman), cores: 1, ..healthy() };
        assert_eq!(machine(&facts).text, "h1: one processor for this process, in a container of Podman");
    }

    #[test]
    fn more_ranks_than_processors_are_slow() {
        let (level, text, remedy) = one(&[cores(&Facts { ranks: 32, ..healthy() })]);
        assert!(
            level == Level::Warn && text.starts_with("32 ranks on 16 processors") && remedy.unwrap().contains("-n 16")
        );
        assert!(cores(&healthy()).text.contains("without -n"));
        assert_eq!(cores(&Facts { are_ranks_given: true, ..healthy() }).text, "16 ranks on 16 processors");
    }

    #[test]
    fn without_copies_the_remedy_follows_from_what_forbids_them() {
        let with = |ptrace_scope, container| {
            let copies = Some(Err("process_vm_readv: Operation not permitted; allow it".into()));
            let (level, text, remedy) = one(&memory_copies(&Facts { copies, ptrace_scope, container, ..healthy() }));
            assert!(
                level == Level::Warn && text.starts_with("process_vm_readv: Operation not permitted: long"),
                "{text}"
            );
            remedy
        };
        assert_eq!(with(Some(2), None).as_deref(), Some("sudo sysctl kernel.yama.ptrace_scope=1"));
        assert_eq!(with(Some(1), Some(Container::Docker)).as_deref(), Some("docker run --cap-add=SYS_PTRACE IMAGE"));
        assert!(with(None, Some(Container::Kubernetes)).unwrap().contains("SYS_PTRACE"));
        assert_eq!(with(None, None), None);
        assert_eq!(memory_copies(&Facts { copies: None, ..healthy() }), []);
    }
}
