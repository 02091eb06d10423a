//! The page of counters: a file that its process writes by mapping it, so that `tidegate run` can read it after the
//! process ended, however it ended, and `tidegate top` while it runs.
//!
//! | file | what it is |
//! |---|---|
//! | `layout` | which word is what: description, counters, two sides of rows |
//! | `cause` | what a process may wait for |
//! | `side` | a snapshot of an endpoint, into words by its process and back by readers |
//! | `page` | the page as its process has it |
//! | `reader` | a page as readers get it; all pages of a folder |
//!
//! *Rows* say what is not finished: waits of sends and receives, posted receives, sends, unexpected messages. A
//! process writes them after polls that found nothing, every few milliseconds at most ([`ROWS_INTERVAL`]), so a
//! message costs nothing for them; what happens between two such polls is not in them. The simple idea, a number that
//! is odd while rows are being written, leaves a reader with nothing when the writer dies in between. So there are
//! two sides: the writer fills the side that is not in use, and then one store makes that the one in use. A reader
//! takes the side in use, and takes it again if it was replaced meanwhile. So it always finds rows that are whole,
//! whenever the writer dies.

mod cause;
mod layout;
mod page;
mod reader;
mod side;
#[cfg(test)]
mod tests;

pub use cause::WaitCause;
pub use layout::{OPEN_ROWS, OTHER_ROWS, PAGE_BYTES, WAIT_ROWS};
pub(crate) use page::{BulkState, StatsPage};
pub use page::{Chosen, Chunk, ROWS_INTERVAL, StatsConfig};
pub use reader::{EndpointStats, Pages, PostedBuffers, read_dir};

use std::time::Duration;

/// A snapshot as readers of pages get it: peers by the ids of their endpoints, ages in the place of moments.
pub type Snapshot = tidegate_message::Snapshot<u64, Duration>;
/// A peer for which sends or receives wait.
pub type PeerWait = tidegate_message::PeerWait<u64, Duration>;
/// A receive that is not finished.
pub type OpenReceive = tidegate_message::OpenReceive<u64, Duration>;
/// A send that is not finished.
pub type OpenSend = tidegate_message::OpenSend<u64, Duration>;
/// A message that no receive waits for.
pub type OpenMessage = tidegate_message::OpenMessage<u64, Duration>;
