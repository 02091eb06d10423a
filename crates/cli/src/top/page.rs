//! A page of counters as the other files here use it. What `tidegate-link` reads becomes this at one place, and tests
//! make it without any file.

use std::time::Duration;

use tidegate_link::EndpointStats;
use tidegate_link::stats::{OpenMessage, OpenReceive, OpenSend, PeerWait};
use tidegate_message::Counter;

use crate::mpi::MpiKind;
use crate::tag;

/// What one endpoint wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Its process.
    pub pid: u32,
    /// Endpoint within the process, from 0.
    pub serial: u32,
    /// Rank of the process in its job, if known.
    pub rank: Option<u32>,
    /// Ranks of the job, if known.
    pub job_size: Option<u32>,
    /// Its host; empty if unknown.
    pub host: String,
    /// The id of its MPI, if known.
    pub mpi: Option<String>,
    /// What tells its launch from others, if known.
    pub launch: Option<String>,
    /// Name of its program.
    pub program: String,
    /// How it was set up, in words.
    pub setup: String,
    /// By what other pages name it.
    pub endpoint: u64,
    /// When it opened, since the epoch.
    pub started: Option<Duration>,
    /// When it last wrote what follows, since the epoch.
    pub written: Option<Duration>,
    /// Whether nothing has moved since then, so that what was open still is.
    pub is_current: bool,
    /// Whether it was closed in order.
    pub ended: bool,
    /// For whom its sends waited.
    pub waits: Vec<PeerWait>,
    /// Receives that are posted and not matched, oldest first, and how many there are in all.
    pub receives: (Vec<OpenReceive>, u64),
    /// Sends that are not finished, the same way.
    pub sends: (Vec<OpenSend>, u64),
    /// Messages that no receive has accepted, the same way.
    pub unexpected: (Vec<OpenMessage>, u64),
    /// The counters.
    pub values: [u64; Counter::COUNT],
}

impl Page {
    /// The value of a counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize]
    }
}

impl From<EndpointStats> for Page {
    fn from(page: EndpointStats) -> Self {
        let values = std::array::from_fn(|index| page.get(Counter::ALL[index]));
        Page {
            pid: page.pid,
            serial: page.serial,
            rank: page.rank,
            job_size: page.job_size,
            setup: setup(&page),
            endpoint: page.endpoint,
            started: Some(page.started),
            written: Some(page.polled).filter(|polled| !polled.is_zero()),
            is_current: page.is_current,
            ended: page.ended,
            waits: page.open.waits,
            // A receive whose message is coming in does not wait for its sender.
            receives: (
                page.open.receives.into_iter().filter(|receive| !receive.is_arriving).collect(),
                page.open.receives_in_all,
            ),
            sends: (page.open.sends, page.open.sends_in_all),
            unexpected: (page.open.unexpected, page.open.unexpected_in_all),
            values,
            host: page.host,
            mpi: page.mpi,
            launch: page.launch,
            program: page.program,
        }
    }
}

fn setup(page: &EndpointStats) -> String {
    let lends = match &page.posted {
        None => format!(", {} slots per peer", page.slots_per_peer),
        Some(_) => String::new(),
    };
    let network = if page.network.is_empty() { String::new() } else { format!(", network {}", page.network) };
    format!("{}{lends}, bulk {}{network}", page.scheme.name(), page.bulk)
}

/// A tag in words. `mpi`: the id of the MPI that made it, if known.
pub fn tag_in_words(mpi: Option<&str>, tag: Option<u64>, ignore: u64) -> String {
    tag::decode(mpi.and_then(MpiKind::of_id), tag, ignore)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A page of a rank with these counters; the rest is 0 or empty. Its endpoint is named by 1000 and its rank.
    pub fn page(rank: u32, values: &[(Counter, u64)]) -> Page {
        let mut page = Page {
            pid: 5000 + rank,
            serial: 0,
            rank: Some(rank),
            job_size: Some(4),
            host: String::new(),
            mpi: None,
            launch: None,
            program: "a.out".into(),
            setup: "dynamic, 64 slots per peer, bulk direct".into(),
            endpoint: 1000 + u64::from(rank),
            started: None,
            written: None,
            is_current: true,
            ended: false,
            waits: Vec::new(),
            receives: (Vec::new(), 0),
            sends: (Vec::new(), 0),
            unexpected: (Vec::new(), 0),
            values: [0; Counter::COUNT],
        };
        for (counter, value) in values {
            page.values[*counter as usize] = *value;
        }
        page
    }

    /// A posted receive, for a message of somebody or of anybody.
    pub fn open_receive(from: Option<u64>, tag: u64, age: Duration) -> OpenReceive {
        OpenReceive { from, tag: Some(tag), ignore: 0, bytes: 4, since: age, is_arriving: false, is_probe: false }
    }

    #[test]
    fn tags_are_read_as_their_mpi_wrote_them() {
        assert_eq!(tag_in_words(None, Some(0x4d), 0), "tag 0x4d");
        assert_eq!(tag_in_words(Some("mpich"), Some(0x4d), 0), "tag 77, MPI_COMM_WORLD");
        assert_eq!(tag_in_words(Some("another"), None, 0), "untagged");
    }
}
