//! What can go wrong in setting up: every text names the thing and the remedy.

use super::Address;
use super::config::{DIRECTORY, NAMES};
use crate::container::{Container, enlarge};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io};
use tidegate_flow::ConfigError;

/// Why an endpoint could not be made or a peer not be reached.
#[derive(Debug)]
pub enum LinkError {
    /// The configuration of flow control is refused (P eq. 2).
    Config(ConfigError),
    /// The directory of segments has too little space.
    NoSpace(Shortage),
    /// The table of peers is full.
    TableFull {
        /// Whose table: "this process", or the peer's name.
        owner: String,
        /// How many fit.
        peers: u32,
        /// Whether some of them have ended, or it may grow, so that there should be free places soon.
        is_changing: bool,
    },
    /// Somebody holds the lock of a file that it should hold for microseconds, so it may be stopped. Trying again helps
    /// when it goes on or ends.
    Busy {
        /// The file.
        file: PathBuf,
    },
    /// Two processes were configured differently.
    Disagreement {
        /// The other process, for people.
        peer: String,
        /// The parameter, as the user sets it.
        parameter: &'static str,
        /// Our value.
        ours: String,
        /// Its value.
        theirs: String,
    },
    /// The peer is not of this host, or not in a place that shares memory with us.
    Elsewhere {
        /// The peer.
        peer: Address,
        /// Why.
        reason: String,
    },
    /// The peer has not yet noticed that an earlier connection of ours to it has ended. It does so with its next look.
    NotNoticed {
        /// The peer.
        peer: Address,
    },
    /// The peer has closed its endpoint or ended.
    Gone {
        /// The peer.
        peer: Address,
    },
    /// The peer's process runs, but its segment is not there.
    Vanished {
        /// The peer.
        peer: Address,
        /// The segment.
        file: PathBuf,
    },
    /// The peer's segment belongs to another user than the one as which this process acts.
    OtherUser {
        /// The peer.
        peer: Address,
        /// The segment.
        file: PathBuf,
        /// The number of the user to whom it belongs.
        owner: u32,
        /// The number of the user as which this process acts (its effective user id).
        ours: u32,
    },
    /// Bulk data was to go directly, but the peer's memory cannot be reached.
    NoDirectBulk {
        /// The peer.
        peer: Address,
        /// Why, and what would help.
        reason: String,
    },
    /// The system refused something.
    System {
        /// What was tried, with names.
        action: String,
        /// What the system said.
        error: io::Error,
        /// How long it has been tried, where that is long enough, although trying again may help.
        lasted: Option<Duration>,
    },
}

impl LinkError {
    /// A system error in doing `action`.
    pub(crate) fn system(action: impl Into<String>, error: io::Error) -> Self {
        LinkError::System { action: action.into(), error, lasted: None }
    }

    /// Whether trying again may help, though nobody changes a setting: what is lacking is this process's or the
    /// system's, or is about to be given back, and says nothing of the peer.
    pub fn may_be_tried_again(&self) -> bool {
        match self {
            LinkError::Busy { .. } | LinkError::NotNoticed { .. } | LinkError::TableFull { is_changing: true, .. } => {
                true
            }
            LinkError::System { error, lasted, .. } => is_shortage(error) && lasted.is_none(),
            _ => false,
        }
    }

    /// The error of a try that has failed for too long. For a full table, or for what this process alone lacks, it
    /// becomes one that may not be tried again; a lock that somebody holds, and what the whole host lacks, are no
    /// reason to give up.
    pub(super) fn ended(self, lasted: Duration) -> Self {
        match self {
            LinkError::TableFull { owner, peers, .. } => LinkError::TableFull { owner, peers, is_changing: false },
            LinkError::System { action, error, .. }
                if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENOMEM)) =>
            {
                LinkError::System { action, error, lasted: Some(lasted) }
            }
            other => other,
        }
    }

    /// What helps against a lack, to stand behind the error's text; empty if nothing is known.
    pub(super) fn remedy(&self) -> String {
        let LinkError::System { error, .. } = self else { return String::new() };
        match error.raw_os_error() {
            Some(libc::EMFILE) => format!(
                "; this process has as many descriptors as it may have{}: raise its limit (ulimit -n)",
                limit(libc::RLIMIT_NOFILE)
            ),
            Some(libc::ENOMEM) => format!(
                "; this process may have no more memory mapped: raise the limit of its address space (ulimit -v{}), or the \
                 number of mappings (sysctl vm.max_map_count), or leave more memory free",
                limit(libc::RLIMIT_AS)
            ),
            Some(libc::ENFILE) => {
                "; this host has as many files open as it may have: raise that (sysctl fs.file-max)".into()
            }
            Some(libc::EAGAIN) => {
                "; this process may lock no more memory: raise its limit (ulimit -l), or do not lock all (mlockall)"
                    .into()
            }
            Some(libc::ENOSPC | libc::EDQUOT) => {
                format!("; make room in the folder of segments, or {}", larger(DIRECTORY))
            }
            Some(libc::ENOLCK) => "; the system gives no more locks: leave more memory free".into(),
            _ => String::new(),
        }
    }

    /// The text, with what a job of so many ranks needs where that is what the error is about.
    pub fn for_job(&self, ranks: Option<u32>) -> String {
        match self {
            LinkError::NoSpace(shortage) => shortage.text(ranks),
            other => other.to_string(),
        }
    }
}

/// A directory of segments without room for another one. Everything in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The directory.
    pub directory: PathBuf,
    /// What the segment needs.
    pub needed: u64,
    /// Of that, for the mailbox.
    pub mailbox: u64,
    /// The parameter by which the mailbox is made smaller.
    pub mailbox_by: &'static str,
    /// Of that, for the bounce buffers.
    pub bounce_buffers: u64,
    /// What the directory's file system holds; 0: it does not say.
    pub total: u64,
    /// What was free after the attempt, which leaves nothing behind. Others may have taken or given back some
    /// meanwhile.
    pub free: u64,
    /// Other segments in the directory.
    pub others: usize,
    /// What they take.
    pub taken_by_others: u64,
}

impl Shortage {
    /// Who has what of the directory's file system.
    fn takers(&self) -> String {
        let endpoints = match self.others {
            0 => String::new(),
            1 => format!("{} for one other endpoint, ", Bytes(self.taken_by_others)),
            others => format!("{} for {others} other endpoints, ", Bytes(self.taken_by_others)),
        };
        let files = match self.total.saturating_sub(self.free).saturating_sub(self.taken_by_others) {
            0 => String::new(),
            files => format!("{} for other files, such as an MPI's own, ", Bytes(files)),
        };
        let (free, now) = (Bytes(self.free), if self.needed <= self.free { " again" } else { "" });
        format!("{endpoints}{files}{free} free{now}")
    }

    fn text(&self, ranks: Option<u32>) -> String {
        let place = self.directory.display();
        let job = match ranks {
            Some(ranks @ 2..) => {
                let all = self.needed.saturating_mul(ranks.into());
                // A rank may open several: under Open MPI it opens two.
                format!(", one for each of the job's {ranks} ranks at least {}", Bytes(all))
            }
            _ => String::new(),
        };
        let there = match self.total {
            0 => String::new(),
            total => format!("; {place} holds {} in all: {}", Bytes(total), self.takers()),
        };
        let mailbox_by = self.mailbox_by;
        let remedy = if self.bounce_buffers >= self.mailbox {
            format!(
                "Bounce buffers take most of it, {}: lower FI_TIDEGATE_BOUNCE_BUFFERS first (with 0 an endpoint needs {}), then \
                 {mailbox_by} or FI_TIDEGATE_PEERS",
                Bytes(self.bounce_buffers),
                Bytes(self.needed.saturating_sub(self.bounce_buffers))
            )
        } else {
            let then = if self.bounce_buffers > 0 { ", then FI_TIDEGATE_BOUNCE_BUFFERS" } else { "" };
            let mailbox = Bytes(self.mailbox);
            format!("The mailbox takes most of it, {mailbox}: lower {mailbox_by} or FI_TIDEGATE_PEERS first{then}")
        };
        let needed = Bytes(self.needed);
        let larger = larger(&self.directory);
        format!("{place} is too small: this endpoint needs {needed}{job}{there}. {remedy}; or {larger}")
    }
}

/// What enlarges this folder here.
fn larger(place: impl AsRef<Path>) -> String {
    enlarge(place.as_ref(), Container::around())
}

/// Whether the system has said that it has, or allows us, no more of something: descriptors, memory, locks,
/// space for segments.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let lacks = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EAGAIN, libc::ENOLCK, libc::ENOSPC, libc::EDQUOT];
    error.raw_os_error().is_some_and(|error| lacks.contains(&error))
}

/// A limit of this process as people read it: ` (1024)`. Empty if there is none.
fn limit(of: libc::__rlimit_resource_t) -> String {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the struct lives through the call.
    match unsafe { libc::getrlimit(of, &mut limit) } {
        0 if limit.rlim_cur != libc::RLIM_INFINITY => format!(" ({})", limit.rlim_cur),
        _ => String::new(),
    }
}

/// What is said of a file whose lock is held for too long.
pub(crate) struct Busy<'a>(pub &'a Path);

impl fmt::Display for Busy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.0.display();
        write!(
            f,
            "some process holds the lock of {file} and does not go on; continue it or end it (lsof {file} shows who has it open)"
        )
    }
}

/// Bytes as people read them: three digits and a unit.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.0 as f64;
        let mut unit = "B";
        for larger in ["KiB", "MiB", "GiB", "TiB"] {
            // What would be printed as 1000 belongs to the next unit.
            if value < 999.5 {
                break;
            }
            (value, unit) = (value / 1024.0, larger);
        }
        let digits = if unit == "B" || value >= 99.95 { 0 } else { 1 + usize::from(value < 9.995) };
        write!(f, "{value:.digits$} {unit}")
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::Config(error) => f.write_str(&error.named(&NAMES)),
            LinkError::NoSpace(shortage) => f.write_str(&shortage.text(None)),
            LinkError::TableFull { owner, peers, is_changing: true } => write!(
                f,
                "the table of peers of {owner} is full with {peers} peers for now; places become free, or more are opened, \
                 when {owner} next calls libfabric, unless its receive memory is full of messages that it has not received: \
                 let it receive them, or raise FI_TIDEGATE_PEERS (in all processes) or FI_TIDEGATE_RX_MEMORY"
            ),
            LinkError::TableFull { owner, peers, is_changing: false } => {
                write!(
                    f,
                    "the table of peers of {owner} is full with {peers} peers; set FI_TIDEGATE_PEERS to more in all processes"
                )
            }
            LinkError::Disagreement { peer, parameter, ours, theirs } => write!(
                f,
                "{parameter} is {ours} here (pid {}) and {theirs} at {peer}; set it alike for all processes of the job{}",
                std::process::id(),
                match *parameter == "FI_TIDEGATE_SCHEME" {
                    true =>
                        " (where it is not set it follows from whether FI_TIDEGATE_SLOTS, _CREDIT_SLOTS or _PIGGYBACK is)",
                    false => "",
                }
            ),
            LinkError::Elsewhere { peer, reason } => {
                write!(f, "{peer} cannot be reached: {reason}")
            }
            LinkError::Vanished { peer, file } => write!(
                f,
                "{peer} has closed its endpoint, or its file {} was removed while it runs: keep systemd's RemoveIPC and \
                 epilogues of jobs from clearing the folder under jobs that run",
                file.display()
            ),
            LinkError::Busy { file } => write!(f, "{}", Busy(file)),
            LinkError::NotNoticed { peer } => write!(
                f,
                "{peer} has not yet noticed that an earlier connection to it has ended: it does when it next calls \
                 libfabric"
            ),
            LinkError::Gone { peer } => write!(f, "{peer} has ended or closed its endpoint"),
            LinkError::OtherUser { peer, file, owner, ours } => write!(
                f,
                "the segment {} of {peer} belongs to user {owner}, and this process acts as user {ours}: all processes of a \
                 job must have the same user id when they open their endpoints and when they first communicate; one that \
                 changes it (setuid, seteuid) does so before it initialises its MPI",
                file.display()
            ),
            LinkError::NoDirectBulk { peer, reason } => write!(
                f,
                "FI_TIDEGATE_BULK is direct, but the memory of {peer} cannot be reached: {reason}; set \
                 FI_TIDEGATE_BULK=auto"
            ),
            LinkError::System { action, error, lasted: None } => write!(f, "{action}: {error}"),
            LinkError::System { action, error, lasted: Some(lasted) } => {
                write!(f, "{action}: {error}, for {} seconds{}", lasted.as_secs(), self.remedy())
            }
        }
    }
}

impl std::error::Error for LinkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LinkError::Config(error) => error.source(),
            LinkError::System { error, .. } => error.source(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn shortage() -> Shortage {
        Shortage {
            directory: "/dev/shm".into(),
            needed: MIB + (144 << 10),
            mailbox: 96 << 10,
            mailbox_by: "FI_TIDEGATE_SLOTS",
            bounce_buffers: MIB,
            total: 2 * MIB,
            free: 600 << 10,
            others: 1,
            taken_by_others: MIB + (144 << 10),
        }
    }

    #[test]
    fn too_little_space_is_told_with_what_takes_most_and_what_the_job_needs() {
        assert_eq!(
            LinkError::NoSpace(shortage()).for_job(Some(8)),
            format!(
                "/dev/shm is too small: this endpoint needs 1.14 MiB, one for each of the job's 8 ranks at least 9.12 MiB; /dev/shm holds 2.00 MiB in \
                 all: 1.14 MiB for one other endpoint, 280 KiB for other files, such as an MPI's own, 600 KiB free. Bounce buffers take most of it, 1.00 MiB: lower \
                 FI_TIDEGATE_BOUNCE_BUFFERS first (with 0 an endpoint needs 144 KiB), then FI_TIDEGATE_SLOTS or FI_TIDEGATE_PEERS; or {}",
                larger(DIRECTORY)
            )
        );
    }

    #[test]
    fn space_that_others_have_given_back_meanwhile_is_said_to_be_free_again() {
        let shortage = Shortage { free: 2 * MIB, others: 0, taken_by_others: 0, ..shortage() };
        let text = LinkError::NoSpace(shortage).to_string();
        assert!(text.contains("needs 1.14 MiB; /dev/shm holds 2.00 MiB in all: 2.00 MiB free again. "), "{text}");
    }

    #[test]
    fn a_large_mailbox_is_what_to_lower_first() {
        let large = Shortage { needed: 75 * MIB, mailbox: 74 * MIB, bounce_buffers: 0, total: 0, ..shortage() };
        assert_eq!(
            LinkError::NoSpace(large).to_string(),
            format!(
                "/dev/shm is too small: this endpoint needs 75.0 MiB. The mailbox takes most of it, 74.0 MiB: lower \
                 FI_TIDEGATE_SLOTS or FI_TIDEGATE_PEERS first; or {}",
                larger(DIRECTORY)
            )
        );
    }

    #[test]
    fn bytes_have_three_digits_and_a_unit() {
        for (bytes, text) in
            [(0, "0 B"), (999, "999 B"), (1000, "0.98 KiB"), (1 << 40, "1.00 TiB"), (12 << 30, "12.0 GiB")]
        {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }
}
