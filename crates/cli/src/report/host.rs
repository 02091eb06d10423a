//! What this host has to say of a job that failed: whether its shared memory is full, and whether its kernel has ended
//! processes for want of memory.
//!
//! Neither a launcher nor the processes tell of these. A process that touches a page of a file in `/dev/shm` for which
//! there is no memory any more is ended by SIGBUS before it can say anything, and one that the OOM killer has chosen by
//! SIGKILL. Tidegate allocates its own files as a whole, so it reports a lack of room; MPIs do not.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tidegate_message::Unit;

use crate::report::units::human;
use tidegate_link::plain;

/// A file system with less than this is full: files of MPIs grow by more. One with less than its files lack of their
/// lengths, and ranks of their endpoints, has too little room: it was full before a process that had not gone so far
/// gave its part back.
const FULL_BELOW: u64 = 64 << 10;
/// Bytes of a block as file systems count them.
const BLOCK: u64 = 512;
/// Whose files are called how in `/dev/shm`.
const OWNERS: [(&str, &str); 5] = [
    ("tidegate-", TIDEGATE),
    ("mpich_shm_", "MPICH"),
    ("Intel_MPI_", "Intel MPI"),
    ("sm_segment.", "Open MPI"),
    ("vader_segment.", "Open MPI"),
];
const TIDEGATE: &str = "Tidegate";
const OTHERS: &str = "others";

/// What there was to see when a job had failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// The shared memory, if it was full.
    full: Option<FullMemory>,
    /// Processes that the kernel has ended for want of memory while the job ran, and of which set.
    killed: Option<(u64, Killed)>,
}

/// Of which processes a count of killed ones is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Killed {
    Group,
    Host,
}

/// A full file system, and who has what of it. Everything in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FullMemory {
    place: PathBuf,
    total: u64,
    free: u64,
    /// Files and bytes by owner.
    taken: BTreeMap<&'static str, (u64, u64)>,
    /// Files that lack a part of their lengths.
    unfilled: Option<Unfilled>,
    /// Ranks of this host that have no endpoint, and what one for each would take: under Open MPI a rank opens two.
    absent: (usize, u64),
}

/// Files without memory for all of their lengths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Unfilled {
    files: u64,
    lack: u64,
    worst: (u64, String),
}

/// How many processes the kernel had ended for want of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OomKills {
    group: Option<u64>,
    host: Option<u64>,
}

impl OomKills {
    /// As of now.
    pub fn now() -> OomKills {
        let read = |path: &Path| fs::read_to_string(path).ok().and_then(|text| count_of(&text, "oom_kill"));
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        // Version two of control groups has one hierarchy, version one a hierarchy for memory.
        let of_two = |line: &str| Some(format!("/sys/fs/cgroup/{}/memory.events", line.strip_prefix("0::/")?));
        let of_one =
            |line: &str| Some(format!("/sys/fs/cgroup/memory/{}/memory.oom_control", line.split_once(":memory:/")?.1));
        let group = groups.lines().find_map(|line| read(Path::new(&of_two(line).or_else(|| of_one(line))?)));
        OomKills { group, host: read(Path::new("/proc/vmstat")) }
    }

    /// How many more there were at `end`.
    fn until(self, end: OomKills) -> Option<(u64, Killed)> {
        let more = |before: Option<u64>, after: Option<u64>| after?.checked_sub(before?).filter(|more| *more > 0);
        let of_group = more(self.group, end.group).map(|killed| (killed, Killed::Group));
        of_group.or_else(|| more(self.host, end.host).map(|killed| (killed, Killed::Host)))
    }
}

/// The number behind a word at the beginning of a line.
fn count_of(text: &str, word: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' ')?.trim().parse().ok())
}

impl Host {
    /// It has nothing to say.
    pub const NOTHING: Host = Host { full: None, killed: None };

    /// What there is to see now, when the job has failed and nothing is removed yet. `place`: where segments lie;
    /// `absent`: ranks of this host that have opened no endpoint.
    pub fn look(place: &Path, absent: usize, before: OomKills) -> Host {
        Host { full: FullMemory::look(place, absent), killed: before.until(OomKills::now()) }
    }

    /// Whether the shared memory was full, or nearly.
    pub fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// Whether the kernel has ended processes for want of memory.
    pub fn has_killed(&self) -> bool {
        self.killed.is_some()
    }

    /// The thing that was short, in a few words. `may_be_killed`: whether the job ended as one does of which the kernel
    /// has ended a process: those that it ended on this host, outside of the job's control group, may be of other jobs.
    pub fn lack(&self, may_be_killed: bool) -> Option<String> {
        let full = self.full.as_ref().map(FullMemory::lack);
        let killed = self.killed.filter(|(_, of)| may_be_killed || *of == Killed::Group);
        full.or_else(|| killed.map(|_| "the kernel ended processes for want of memory".to_owned()))
    }

    /// What it says, for people; empty if nothing was short.
    pub fn told(&self) -> Vec<String> {
        let killed = self.killed.map(|(killed, of)| {
            let (processes, of) = match (killed, of) {
                (1, Killed::Group) => ("one process".to_owned(), "of the job's control group"),
                (many, Killed::Group) => (format!("{many} processes"), "of the job's control group"),
                (1, Killed::Host) => ("one process".to_owned(), "of this host"),
                (many, Killed::Host) => (format!("{many} processes"), "of this host"),
            };
            format!(
                "While the job ran the kernel ended {processes} {of} by SIGKILL (signal 9) for want of memory (OOM killer; dmesg \
                 names them): start fewer ranks here, or raise the limit (memory.max of the control group; docker: --memory)."
            )
        });
        self.full.iter().map(FullMemory::text).chain(killed).collect()
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let full = self.full.as_ref().map(|full| {
            json!({
                "place": full.place.to_string_lossy(),
                "total_bytes": full.total,
                "free_bytes": full.free,
                "taken_bytes": full.taken.iter().map(|(owner, taken)| ((*owner).to_owned(), taken.1)).collect::<BTreeMap<_, _>>(),
                "unfilled_bytes": full.unfilled.as_ref().map_or(0, |unfilled| unfilled.lack),
                "unfilled_file": full.unfilled.as_ref().map(|unfilled| &unfilled.worst.1),
            })
        });
        json!({ "full_shared_memory": full, "processes_killed_for_memory": self.killed.map_or(0, |(killed, _)| killed) })
    }
}

impl FullMemory {
    /// The file system of a folder, if it is full.
    fn look(place: &Path, absent: usize) -> Option<FullMemory> {
        let facts = rustix::fs::statvfs(place).ok()?;
        let (total, free) = (facts.f_blocks * facts.f_frsize, facts.f_bavail * facts.f_frsize);
        let mut taken: BTreeMap<_, (u64, u64)> = BTreeMap::new();
        let (mut unfilled, mut endpoint) = (Unfilled::default(), 0);
        for entry in fs::read_dir(place).ok()?.flatten() {
            let (name, Ok(file)) = (entry.file_name().to_string_lossy().into_owned(), entry.metadata()) else {
                continue;
            };
            let there = file.blocks() * BLOCK;
            let of_its_owner = taken.entry(owner(&name)).or_default();
            *of_its_owner = (of_its_owner.0 + 1, of_its_owner.1 + there);
            if owner(&name) == TIDEGATE {
                // A part that is not there (send buffers, places of peers) is allocated before it is touched.
                endpoint = endpoint.max(there);
                continue;
            }
            let lacks = file.len().saturating_sub(there);
            if file.is_file() && lacks > 0 {
                (unfilled.files, unfilled.lack) = (unfilled.files + 1, unfilled.lack + lacks);
                unfilled.worst = unfilled.worst.max((lacks, name));
            }
        }
        let absent = (absent, endpoint * absent as u64);
        let is_full = total > 0 && free < FULL_BELOW.max(unfilled.lack + absent.1);
        let unfilled = Some(unfilled).filter(|unfilled| unfilled.files > 0);
        is_full.then(|| FullMemory { place: place.to_owned(), total, free, taken, unfilled, absent })
    }

    fn state(&self) -> &'static str {
        if self.free < FULL_BELOW { "is full" } else { "has too little room" }
    }

    fn lack(&self) -> String {
        format!("{} {}", self.place.display(), self.state())
    }

    fn text(&self) -> String {
        let (place, bytes) = (self.place.display(), |bytes| human(bytes, Unit::Bytes));
        let files = |(owner, (count, taken)): (&&str, &(u64, u64))| {
            let noun = if *count == 1 { "file" } else { "files" };
            format!("{} for {count} {noun} of {owner}", bytes(*taken))
        };
        let taken: Vec<String> = self.taken.iter().map(files).collect();
        let is = self.state();
        let mut text = format!("{place} {is} ({} in all, {} free)", bytes(self.total), bytes(self.free));
        if !taken.is_empty() {
            let _ = write!(text, ": {}", taken.join(", "));
        }
        if let Some(Unfilled { files, lack, worst: (_, name) }) = &self.unfilled {
            let (lacks, name) = (bytes(*lack), plain(name));
            let _ = match files {
                1 => write!(text, "; {name} lacks {lacks} of its length"),
                files => write!(text, "; {files} files lack {lacks} of their lengths, {name} most of it"),
            };
        }
        match self.absent {
            (0, _) | (_, 0) => {}
            (1, bytes_needed) => {
                let _ = write!(text, "; a rank without an endpoint needs at least {}", bytes(bytes_needed));
            }
            (ranks, bytes_needed) => {
                let _ = write!(text, "; {ranks} ranks without an endpoint need at least {}", bytes(bytes_needed));
            }
        }
        text += ". A process that touches a part of its file for which there is no memory left is ended by SIGBUS (signal 7).";
        let _ =
            write!(text, " Enlarge {place} (docker: --shm-size; mount -o remount,size=), or start fewer ranks here");
        if self.taken.contains_key(TIDEGATE) {
            text += ", or lower what Tidegate takes (--bounce-buffers first, then --slots or --peers)";
        }
        text + "."
    }
}

/// Whether a file of this name is Tidegate's or an MPI's.
pub fn is_of_mpi(name: &str) -> bool {
    owner(name) != OTHERS
}

/// Whose a file of this name is.
fn owner(name: &str) -> &'static str {
    OWNERS.iter().find(|(start, _)| name.starts_with(start)).map_or(OTHERS, |(_, owner)| owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> FullMemory {
        let taken = BTreeMap::from([(TIDEGATE, (4, 4 * 1204224)), ("MPICH", (4, 3_571_712)), (OTHERS, (1, 4096))]);
        let unfilled = Some(Unfilled { files: 1, lack: 684_608, worst: (684_608, "mpich_shm_dcdfc3f_0".to_owned()) });
        FullMemory { place: "/dev/shm".into(), total: 8 << 20, free: 0, taken, unfilled, absent: (0, 0) }
    }

    #[test]
    fn a_full_memory_is_told_with_place_takers_signal_and_remedy() {
        let told = Host { full: Some(full()), killed: None }.told();
        assert_eq!(
            told,
            [
                "/dev/shm is full (8.00 MiB in all, 0 B free): 3.41 MiB for 4 files of MPICH, 4.59 MiB for 4 files of Tidegate, \
              4.00 KiB for 1 file of others; mpich_shm_dcdfc3f_0 lacks 669 KiB of its length. A process that touches a part of \
              its file for which there is no memory left is ended by SIGBUS (signal 7). Enlarge /dev/shm (docker: --shm-size; \
              mount -o remount,size=), or start fewer ranks here, or lower what Tidegate takes (--bounce-buffers first, then \
              --slots or --peers)."
            ]
        );
        assert_eq!(Host { full: Some(full()), killed: None }.lack(false).as_deref(), Some("/dev/shm is full"));
        let unfilled = Some(Unfilled { files: 2, lack: 3 << 20, worst: (2 << 20, "mpich_shm_1_2".to_owned()) });
        let nearly = FullMemory { free: 1 << 20, unfilled, ..full() }.text();
        assert!(nearly.starts_with("/dev/shm has too little room (8.00 MiB in all, 1.00 MiB free): "), "{nearly}");
        assert!(nearly.contains("; 2 files lack 3.00 MiB of their lengths, mpich_shm_1_2 most of it. "), "{nearly}");
        let waiting = FullMemory { free: 1 << 20, unfilled: None, absent: (1, 1_204_224), ..full() }.text();
        assert!(
            waiting.contains("4.00 KiB for 1 file of others; a rank without an endpoint needs at least 1.15 MiB. A "),
            "{waiting}"
        );
        let without = FullMemory { taken: BTreeMap::new(), unfilled: None, ..full() };
        assert!(
            without.text().starts_with("/dev/shm is full (8.00 MiB in all, 0 B free). A process"),
            "{}",
            without.text()
        );
        assert!(!without.text().contains("Tidegate"), "{}", without.text());
    }

    #[test]
    fn owners_are_known_by_the_names_of_their_files() {
        for (name, expected) in [
            ("tidegate-0-a06ed6510058b8ac-4026531836-1-0-1", TIDEGATE),
            ("mpich_shm_dcdfc3f_0", "MPICH"),
            ("sm_segment.h.0.1.0", "Open MPI"),
            ("Intel_MPI_x", "Intel MPI"),
            ("sem.x", OTHERS),
        ] {
            assert_eq!(owner(name), expected, "{name}");
        }
    }

    #[test]
    fn a_place_with_room_says_nothing_and_one_that_is_not_there_neither() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Host::look(&folder.path().join("missing"), 1, OomKills::now()), Host::default());
        assert_eq!(FullMemory::look(folder.path(), 1), None);
    }

    #[test]
    fn processes_that_the_kernel_ended_are_counted_by_group_else_by_host() {
        assert_eq!(count_of("oom 3\noom_kill 2\noom_group_kill 0\n", "oom_kill"), Some(2));
        assert_eq!(count_of("nr_free_pages 1\noom_kill 17\n", "oom_kill"), Some(17));
        assert_eq!(count_of("oom_kill\noom_killer 3\n", "oom_kill"), None);
        let kills = |group, host| OomKills { group, host };
        assert_eq!(kills(Some(1), Some(5)).until(kills(Some(3), Some(9))), Some((2, Killed::Group)));
        assert_eq!(kills(Some(1), Some(5)).until(kills(Some(1), Some(6))), Some((1, Killed::Host)));
        assert_eq!(kills(None, None).until(kills(Some(1), None)), None);
        assert_eq!(kills(Some(3), Some(3)).until(kills(Some(3), Some(3))), None);
        let of_host = Host { full: None, killed: Some((2, Killed::Host)) };
        let of_group = Host { full: None, killed: Some((2, Killed::Group)) };
        assert!(of_host.lack(true).is_some() && of_group.lack(false).is_some());
        assert_eq!(of_host.lack(false), None, "a job that was ended by a signal has lost none of its own");
        let told = of_host.told();
        assert!(
            told[0].contains("ended 2 processes of this host by SIGKILL (signal 9) for want of memory"),
            "{told:?}"
        );
    }
}
