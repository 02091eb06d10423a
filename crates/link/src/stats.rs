//! The page of counters: a file that its process writes by mapping it, so that `tidegate run` can read it after the process
//! ended, however it ended.

use std::io;
use std::path::{Path, PathBuf};
use tidegate_flow::SchemeName;
use tidegate_message::Counter;

/// Where an endpoint's counters go, and what to say about the endpoint there.
#[derive(Clone, Debug)]
pub struct StatsConfig {
    /// An existing folder; the endpoint creates `<pid>-<n>.counters` in it.
    pub dir: PathBuf,
    /// Rank of the process in its job, if the launcher told.
    pub rank: Option<u32>,
    /// Ranks of the job, if the launcher told.
    pub job_size: Option<u32>,
}

/// What one endpoint left in its page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointStats {
    /// Process.
    pub pid: u32,
    /// Endpoint within the process, from 0.
    pub serial: u32,
    /// Rank of the process in its job, if known.
    pub rank: Option<u32>,
    /// Ranks of the job, if known.
    pub job_size: Option<u32>,
    /// Flow control.
    pub scheme: SchemeName,
    /// Mailbox slots per peer, credit slots included.
    pub slots_per_peer: u32,
    /// Of those, for credit packets.
    pub credit_slots: u32,
    /// Whether credits ride on data packets.
    pub piggyback: bool,
    /// Peers that may connect.
    pub peers: u32,
    /// How bulk data travels, as `ShmLink::bulk` says it.
    pub bulk: String,
    /// Name of the program.
    pub program: String,
    values: Vec<u64>,
}

impl EndpointStats {
    /// The value of a counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize]
    }
}

/// Reads all pages of counters in `dir`, in order of rank, then process, then endpoint. Files of other kinds are passed over; a
/// page of another version is an error that names the file.
pub fn read_dir(dir: &Path) -> io::Result<Vec<EndpointStats>> {
    let _ = dir;
    todo!()
}
