//! `/dev/shm`: whether it is there, has room for all ranks of this host, and what dead processes have left in it.

use super::{container_with, endpoints_per_rank, ranks};
use crate::doctor::facts::Facts;
use crate::doctor::trial::Trial;
use crate::doctor::verdict::{Verdict, bad, no, ok, warn};
use crate::report::units::human;
use tidegate_link::Container;
use tidegate_message::Unit;

const MIB: u64 = 1 << 20;
/// The least size that a remedy gives `/dev/shm`: it leaves room for files of MPIs.
const LEAST: u64 = 256 * MIB;
/// How many ranks the doctor's own job has here. Where these do not fit, no job does.
const FEWEST: u64 = 2;
/// Names of files that are said.
const NAMED: usize = 3;

/// Room for the segments of all ranks of this host.
pub fn shared_memory(facts: &Facts) -> Verdict {
    let found = &facts.shared_memory;
    let of_rank = found.each.map(|each| each * u64::from(endpoints_per_rank(facts)));
    let needed = of_rank.map(|of_rank| of_rank * u64::from(facts.ranks));
    let size = size_option(needed.unwrap_or(0));
    if !found.is_there {
        let mount = format!("sudo mkdir -p /dev/shm; sudo mount -t tmpfs -o size={size},mode=1777 tmpfs /dev/shm");
        return no("shared_memory", "there is no folder /dev/shm", mount);
    }
    if let Some(why) = &found.refused {
        let remedy = match found.free {
            _ if why.contains("Read-only") => "sudo mount -o remount,rw /dev/shm".to_owned(),
            0 => larger(facts, &size),
            _ => "sudo chmod 1777 /dev/shm".to_owned(),
        };
        return no("shared_memory", format!("no file can be made in /dev/shm: {why}"), remedy);
    }
    let bytes = |bytes| human(bytes, Unit::Bytes);
    if found.total == 0 {
        // A file system in memory without a bound says so.
        return ok("shared_memory", "/dev/shm has no bound");
    }
    let has = format!("/dev/shm has {} free of {}", bytes(found.free), bytes(found.total));
    // A size follows from parameters only where they are accepted.
    let (Some(of_rank), Some(needed)) = (of_rank, needed) else { return ok("shared_memory", has) };
    let takes = format!("{} may take {}", ranks(facts.ranks), bytes(needed));
    if found.free < needed {
        let fit = found.free / of_rank.max(1);
        let is_tried = facts.job.as_ref().is_some_and(Trial::is_good);
        let others = if found.total < needed { "" } else { ", others have the rest" };
        let fitting = match fit {
            0 => "not even one fits".to_owned(),
            1 => "only 1 rank fits".to_owned(),
            fit => format!("only {fit} ranks fit"),
        };
        let remedy = if found.total < needed { larger(facts, &size) } else { "du -a /dev/shm | sort -n".to_owned() };
        let text = format!("{has}{others}, and {takes}: {fitting}");
        return bad(fit < FEWEST && !is_tried, "shared_memory", text, remedy);
    }
    if !found.is_memory {
        let text = format!("{has}; it lies on a disk and not in memory");
        return warn("shared_memory", text, format!("sudo mount -t tmpfs -o size={size},mode=1777 tmpfs /dev/shm"));
    }
    ok("shared_memory", format!("{has}; {takes}"))
}

/// The line that makes it larger.
fn larger(facts: &Facts, size: &str) -> String {
    let of_kubernetes =
        format!("volumes: [{{name: shm, emptyDir: {{medium: Memory, sizeLimit: {size}i}}}}]   # at /dev/shm");
    match facts.container {
        Some(Container::Kubernetes) => of_kubernetes.replace("mi}", "Mi}").replace("gi}", "Gi}"),
        _ => container_with(facts, &format!("--shm-size={size}"))
            .unwrap_or_else(|| format!("sudo mount -o remount,size={size} /dev/shm")),
    }
}

/// A size with room to spare, a power of two, as mount(8) and Docker read it.
fn size_option(needed: u64) -> String {
    let bytes = (needed + needed / 4).max(LEAST).next_power_of_two();
    if bytes >= 1 << 30 { format!("{}g", bytes >> 30) } else { format!("{}m", bytes >> 20) }
}

/// Files of dead processes.
pub fn left_files(facts: &Facts) -> Vec<Verdict> {
    let all: u64 = facts.left.iter().map(|file| file.bytes).sum();
    let count = facts.left.len();
    if count == 0 {
        return Vec::new();
    }
    let names: Vec<&str> = facts.left.iter().map(|file| file.name.as_str()).collect();
    let (named, noun) = (names[..count.min(NAMED)].join(", "), if count == 1 { "file" } else { "files" });
    let more = if count > NAMED { format!(" and {} more", count - NAMED) } else { String::new() };
    let text = format!("dead jobs have left {} in {count} {noun}: {named}{more}", human(all, Unit::Bytes));
    vec![warn("left_files", text, "tidegate doctor --clean".to_owned())]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{healthy, one};
    use super::*;
    use crate::doctor::facts::LeftFile;
    use crate::doctor::rank::Step;
    use crate::doctor::verdict::Level;
    use crate::mpi::{Mpi, MpiKind};

    fn small(container: Option<Container>) -> Facts {
        let mut facts = Facts { ranks: 64, container, ..healthy() };
        (facts.shared_memory.total, facts.shared_memory.free) = (64 * MIB, 64 * MIB);
        facts
    }

    #[test]
    fn a_small_one_is_made_larger_in_the_way_of_its_container() {
        for (container, remedy) in [
            (None, "sudo mount -o remount,size=256m /dev/shm"),
            (Some(Container::Docker), "docker run --shm-size=256m IMAGE"),
            (Some(Container::Podman), "podman run --shm-size=256m IMAGE"),
            (Some(Container::Apptainer), "sudo mount -o remount,size=256m /dev/shm"),
            (
                Some(Container::Kubernetes),
                "volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 256Mi}}]   # at /dev/shm",
            ),
        ] {
            let (level, text, said) = one(&[shared_memory(&small(container))]);
            assert_eq!((level, said.as_deref()), (Level::Warn, Some(remedy)));
            assert_eq!(
                text,
                "/dev/shm has 64.0 MiB free of 64.0 MiB, and 64 ranks may take 128 MiB: only 32 ranks fit"
            );
        }
        assert_eq!([size_option(0), size_option(1 << 30)], ["256m", "2g"]);
    }

    #[test]
    fn it_stops_a_job_only_where_two_ranks_do_not_fit_and_did_not_run() {
        let with = |bytes, job| {
            let mut facts = Facts { job, ..small(None) };
            (facts.shared_memory.total, facts.shared_memory.free) = (64 * MIB, bytes);
            let (level, text, _) = one(&[shared_memory(&facts)]);
            (level, text.rsplit(": ").next().unwrap_or_default().to_owned())
        };
        let said = |level, text: &str| (level, text.to_owned());
        assert_eq!(with(4 * MIB, None), said(Level::Warn, "only 2 ranks fit"));
        assert_eq!(with(3 * MIB, None), said(Level::No, "only 1 rank fits"));
        assert_eq!(with(MIB, None), said(Level::No, "not even one fits"));
        let failed = Trial { ranks: 2, exit_code: 1, ..Trial::default() };
        assert_eq!(with(MIB, Some(failed)).0, Level::No);
        let steps = ["h1", "h1"].map(|host| Step::Exchanged { host: host.into() }).to_vec();
        let good = Trial { ranks: 2, steps, used_tidegate: true, ..Trial::default() };
        assert_eq!(with(MIB, Some(good)).0, Level::Warn, "they may take less than that");
    }

    #[test]
    fn open_mpi_opens_two_endpoints_and_takes_twice_as_much() {
        let mut facts = healthy();
        facts.mpi.mpi = Some(Mpi::of(MpiKind::OpenMpi));
        assert!(shared_memory(&facts).text.ends_with("; 16 ranks may take 64.0 MiB"));
    }

    #[test]
    fn it_has_to_be_there_writable_free_and_in_memory() {
        let with = |change: &dyn Fn(&mut Facts)| {
            let mut facts = healthy();
            change(&mut facts);
            one(&[shared_memory(&facts)])
        };
        let (level, _, remedy) = with(&|facts| facts.shared_memory.is_there = false);
        assert!(level == Level::No && remedy.unwrap().contains("mount -t tmpfs -o size=256m"));
        let (level, _, remedy) = with(&|facts| facts.shared_memory.refused = Some("Permission denied".into()));
        assert_eq!((level, remedy.as_deref()), (Level::No, Some("sudo chmod 1777 /dev/shm")));
        let full = |facts: &mut Facts| {
            facts.shared_memory.refused = Some("No space left on device".into());
            facts.shared_memory.free = 0;
        };
        assert!(with(&full).2.unwrap().contains("remount"));
        let read_only = with(&|facts| facts.shared_memory.refused = Some("Read-only file system (os error 30)".into()));
        assert_eq!(read_only.2.as_deref(), Some("sudo mount -o remount,rw /dev/shm"));
        assert_eq!(with(&|facts| facts.shared_memory.total = 0).1, "/dev/shm has no bound");
        let (level, text, remedy) = with(&|facts| facts.shared_memory.free = MIB);
        assert!(level == Level::No && text.contains("others have the rest") && remedy.unwrap().starts_with("du "));
        let (level, text, _) = with(&|facts| facts.shared_memory.is_memory = false);
        assert!(level == Level::Warn && text.contains("on a disk"));
        assert_eq!(with(&|facts| facts.shared_memory.each = None).1, "/dev/shm has 31.0 GiB free of 32.0 GiB");
    }

    #[test]
    fn files_of_dead_jobs_are_counted_and_removed_by_one_command() {
        let with = |names: &[&str]| {
            let left = names.iter().map(|name| LeftFile { name: (*name).into(), bytes: MIB }).collect();
            left_files(&Facts { left, ..healthy() })
        };
        assert_eq!(with(&[]), []);
        let (level, text, remedy) = one(&with(&["tidegate-0-a"]));
        assert_eq!((level, text.as_str()), (Level::Warn, "dead jobs have left 1.00 MiB in 1 file: tidegate-0-a"));
        assert_eq!(remedy.as_deref(), Some("tidegate doctor --clean"));
        let text = one(&with(&["a", "b", "c", "d", "e"])).1;
        assert_eq!(text, "dead jobs have left 5.00 MiB in 5 files: a, b, c and 2 more");
    }
}
