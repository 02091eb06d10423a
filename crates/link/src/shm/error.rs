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
    NoSpace {
        /// The directory.
        directory: PathBuf,
        /// Bytes that the segment needs.
        needed: u64,
        /// Bytes that are free.
        available: u64,
    },
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
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::Config(error) => error.fmt(f),
            LinkError::NoSpace { directory, needed, available } => write!(
                f,
                "{} is too small: this endpoint's segment needs {needed} bytes, {available} are free; enlarge it \
                 (docker: --shm-size), or lower FI_TIDEGATE_SLOTS or FI_TIDEGATE_PEERS",
                directory.display()
            ),
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
