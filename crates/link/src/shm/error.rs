//! What can go wrong in setting up: every text names the thing and the remedy.

use super::Address;
use std::path::PathBuf;
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
    },
    /// Two processes were configured differently.
    Disagreement {
        /// The other process.
        peer: Address,
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
    /// The peer has closed its endpoint or ended.
    Gone {
        /// The peer.
        peer: Address,
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
    },
}

impl LinkError {
    /// A system error in doing `action`.
    pub(crate) fn system(action: impl Into<String>, error: io::Error) -> Self {
        LinkError::System { action: action.into(), error }
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
    /// Of that, for the bounce buffers.
    pub bounce_buffers: u64,
    /// What the directory's file system holds; 0: it does not say.
    pub total: u64,
    /// What was free after the attempt, which leaves nothing behind. Others may have taken or given back some meanwhile.
    pub free: u64,
    /// Other segments in the directory.
    pub others: usize,
}

impl Shortage {
    fn text(&self, ranks: Option<u32>) -> String {
        let place = self.directory.display();
        let job = match ranks {
            Some(ranks @ 2..) => {
                let all = self.needed.saturating_mul(ranks.into());
                format!(", those of the job's {ranks} ranks {}", Bytes(all))
            }
            _ => String::new(),
        };
        let there = match (self.total, self.needed <= self.free, self.others) {
            (0, ..) => String::new(),
            (_, true, _) => ", which other endpoints, or other files there, had taken at that moment".into(),
            (_, false, 0) => format!(", of which {} are free", Bytes(self.free)),
            (_, false, 1) => format!(", of which {} are free beside one other endpoint", Bytes(self.free)),
            (_, false, others) => format!(", of which {} are free beside {others} other endpoints", Bytes(self.free)),
        };
        let total =
            if self.total > 0 { format!("; {place} holds {} in all", Bytes(self.total)) } else { String::new() };
        let remedy = if self.bounce_buffers >= self.mailbox {
            format!(
                "Bounce buffers take most of it, {}: lower FI_TIDEGATE_STAGES first (with 0 an endpoint needs {}), then \
                 FI_TIDEGATE_SLOTS or FI_TIDEGATE_PEERS",
                Bytes(self.bounce_buffers),
                Bytes(self.needed.saturating_sub(self.bounce_buffers))
            )
        } else {
            let then = if self.bounce_buffers > 0 { ", then FI_TIDEGATE_STAGES" } else { "" };
            let mailbox = Bytes(self.mailbox);
            format!("The mailbox takes most of it, {mailbox}: lower FI_TIDEGATE_SLOTS or FI_TIDEGATE_PEERS first{then}")
        };
        let needed = Bytes(self.needed);
        format!(
            "{place} is too small: this endpoint needs {needed}{job}{total}{there}. {remedy}; or enlarge {place} (docker: --shm-size)"
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
            LinkError::Config(error) => error.fmt(f),
            LinkError::NoSpace(shortage) => f.write_str(&shortage.text(None)),
            LinkError::TableFull { owner, peers } => {
                write!(
                    f,
                    "the table of peers of {owner} is full with {peers} peers; raise FI_TIDEGATE_PEERS in all processes"
                )
            }
            LinkError::Disagreement { peer, parameter, ours, theirs } => write!(
                f,
                "{parameter} is {ours} here and {theirs} at {peer}; set it alike for all processes of the job"
            ),
            LinkError::Elsewhere { peer, reason } => {
                write!(f, "{peer} cannot be reached through shared memory: {reason}")
            }
            LinkError::Gone { peer } => write!(f, "{peer} has ended or closed its endpoint"),
            LinkError::NoDirectBulk { peer, reason } => write!(
                f,
                "FI_TIDEGATE_BULK is direct, but the memory of {peer} cannot be reached: {reason}; set \
                 FI_TIDEGATE_BULK=auto"
            ),
            LinkError::System { action, error } => write!(f, "{action}: {error}"),
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
            bounce_buffers: MIB,
            total: 2 * MIB,
            free: 880 << 10,
            others: 1,
        }
    }

    #[test]
    fn too_little_space_is_told_with_what_takes_most_and_what_the_job_needs() {
        assert_eq!(
            LinkError::NoSpace(shortage()).for_job(Some(8)),
            "/dev/shm is too small: this endpoint needs 1.14 MiB, those of the job's 8 ranks 9.12 MiB; /dev/shm holds 2.00 MiB in \
             all, of which 880 KiB are free beside one other endpoint. Bounce buffers take most of it, 1.00 MiB: lower \
             FI_TIDEGATE_STAGES first (with 0 an endpoint needs 144 KiB), then FI_TIDEGATE_SLOTS or FI_TIDEGATE_PEERS; or \
             enlarge /dev/shm (docker: --shm-size)"
        );
    }

    #[test]
    fn space_that_is_free_again_is_not_said_to_be_too_little() {
        let text = LinkError::NoSpace(Shortage { free: 2 * MIB, others: 0, ..shortage() }).to_string();
        assert!(
            text.contains("holds 2.00 MiB in all, which other endpoints, or other files there, had taken"),
            "{text}"
        );
        assert!(!text.contains("ranks") && !text.contains("free"), "{text}");
    }

    #[test]
    fn a_large_mailbox_is_what_to_lower_first() {
        let large = Shortage { needed: 75 * MIB, mailbox: 74 * MIB, bounce_buffers: 0, total: 0, ..shortage() };
        assert_eq!(
            LinkError::NoSpace(large).to_string(),
            "/dev/shm is too small: this endpoint needs 75.0 MiB. The mailbox takes most of it, 74.0 MiB: lower \
             FI_TIDEGATE_SLOTS or FI_TIDEGATE_PEERS first; or enlarge /dev/shm (docker: --shm-size)"
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
