//! A connection: our way into one peer's mailbox. It is made at the first write and lasts until the peer departs.

use super::address::Address;
use super::error::LinkError;
use super::life::Here;
use super::mailbox::{Admission, Writer};
use super::peer::Table;
use super::segment::PeerSegment;
use super::{BulkChoice, bulk};
use crate::memory::IoBuffer;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use tidegate_flow::{Config, Packet, PeerId, SchemeName};
use tidegate_message::{Access, Span};

/// What stays the same for all connections of an endpoint.
#[derive(Debug)]
pub(crate) struct Terms<'a> {
    pub directory: &'a Path,
    pub here: &'a Here,
    pub ours: Address,
    pub flow: &'a Config,
    pub bulk: BulkChoice,
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    writer: Writer,
    /// Whether the peer may wait to be woken.
    wakes: bool,
    /// The process whose memory bulk transfers reach; `None`: they go through the mailbox.
    memory: Option<u32>,
    /// Our place in the peer's table.
    place: PeerId,
    /// Last, so that it outlives what points into it.
    segment: PeerSegment,
}

impl Connection {
    /// Opens the peer's segment, takes a place in its table and tries direct transfers. Besides the connection
    /// returns why bulk data goes through the mailbox, if it does.
    pub fn open(terms: &Terms, peer: &Address) -> Result<(Connection, Option<String>), LinkError> {
        if !terms.here.shares_boot(peer) {
            return Err(LinkError::Elsewhere { peer: *peer, reason: "it runs on another host".into() });
        }
        let mut segment = PeerSegment::open(terms.directory, peer, terms.flow)?;
        let (memory, obstacle) = match reach_memory(terms, peer, &segment) {
            Ok(pid) => (Some(pid), None),
            Err(reason) if terms.bulk == BulkChoice::Direct => {
                return Err(LinkError::NoDirectBulk { peer: *peer, reason });
            }
            Err(reason) => (None, Some(reason)),
        };
        let place = segment.enter(peer, &terms.ours)?;
        let admission = if terms.flow.scheme == SchemeName::None { Admission::Room } else { Admission::Credits };
        // SAFETY: the writer is a field of the value that owns the segment, and is never handed out. The place is ours
        // alone, and we are the only connection to this peer.
        let writer = unsafe { Writer::new(segment.mailbox(), segment.table().writing(place), place, admission) };
        let wakes = segment.header().wakes.load(Ordering::Relaxed) != 0;
        Ok((Connection { writer, wakes, memory, place, segment }, obstacle))
    }

    /// Publishes packets that `next` fills in turn; returns how many, and whether the peer waits to be woken.
    #[inline(always)]
    pub fn write_many(&mut self, count: u32, next: impl FnMut(&mut Packet)) -> (u32, bool) {
        let written = self.writer.write_many(count, next);
        (written, written > 0 && self.wakes && self.disarm())
    }

    /// Whether the peer waits. The first writer who asks after a packet of its own is told so.
    fn disarm(&self) -> bool {
        let armed: &AtomicU64 = &self.segment.header().armed.0;
        fence(Ordering::SeqCst);
        armed.load(Ordering::Relaxed) != 0 && armed.swap(0, Ordering::Relaxed) != 0
    }

    /// The process that bulk transfers reach, if they do.
    pub fn memory(&self) -> Option<u32> {
        self.memory
    }

    /// What the peer sets aside for each sender's unmatched messages, in bytes, if it says.
    pub fn window(&self) -> Option<u32> {
        let window = self.segment.header().window.load(Ordering::Relaxed);
        u32::try_from(window).ok().filter(|&window| window > 0)
    }

    /// Whether the peer is closing its endpoint.
    pub fn is_closing(&self) -> bool {
        self.segment.is_closing()
    }

    /// Whether the peer has closed its endpoint.
    pub fn has_closed(&self) -> bool {
        self.segment.has_closed()
    }

    /// Tells the peer that we leave, as the last thing.
    pub fn leave(&self) {
        self.table().mark_left(self.place);
    }

    fn table(&self) -> Table {
        // SAFETY: callers in this file use it at once, while the segment lives.
        unsafe { self.segment.table() }
    }

    /// Copies from a stage of the peer; see [`StageArea::drain`](super::stage::StageArea::drain).
    pub fn drain_stage(&self, stage: usize, into: &mut IoBuffer, offset: usize, length: usize) -> bool {
        self.segment.drain_stage(stage, into, offset, length)
    }

    /// Looks up a region that the peer has published.
    pub fn find_region(&self, key: u64, offset: u64, length: u64, access: Access) -> Option<Span> {
        self.segment.find_region(key, offset, length, access)
    }
}

#[cfg(all(test, not(loom)))]
impl Connection {
    /// Leaves a reserved slot behind, as a writer does that is killed at the worst moment.
    pub fn reserve_and_die(self) {
        self.writer.reserve_and_die(1, &[]);
    }

    /// Writes with another sender's index from now on.
    pub fn pretend_to_be(&mut self, source: PeerId) {
        self.writer.pretend_to_be(source);
    }
}

/// The process id under which the peer's memory can be reached, or why it cannot.
fn reach_memory(terms: &Terms, peer: &Address, segment: &PeerSegment) -> Result<u32, String> {
    if !terms.bulk.may_be_direct() {
        return Err("FI_TIDEGATE_BULK says so".into());
    }
    if !terms.here.shares_namespace(peer) {
        return Err("the processes are in different containers (process namespaces)".into());
    }
    bulk::probe(peer.pid, segment.header()).map(|()| peer.pid)
}
