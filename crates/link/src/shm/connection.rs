//! A connection: our way into one peer's mailbox. It is made at the first write and lasts until the peer departs.

use super::accesses;
use super::address::Address;
use super::bulk::ProbedMemory;
use super::config::BulkChoice;
use super::error::LinkError;
use super::life::{Fate, Here};
use super::mailbox::{Admission, SlotTaker, Taker, Writer};
use super::peer::{State, Table};
use super::peer_segment::PeerSegment;
use super::region::Ticket;
use super::settings::Settings;
use super::wake::WakeName;
use crate::memory::IoBuffer;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;
use tidegate_flow::{Config, PeerId, ReceiverResource};
use tidegate_message::{Access, Fill, Span, WriteError};

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
    /// Its memory, if bulk transfers reach it; else they go another way.
    memory: Option<ProbedMemory>,
    /// Our place in the peer's table.
    place: PeerId,
    /// How many messages we have copied out of the peer's send buffers.
    copied: u64,
    /// We have told the peer that we write no more.
    is_over: bool,
    /// Last, so that it outlives what points into it.
    segment: PeerSegment,
}

impl Connection {
    /// Opens the peer's segment, takes a place in its table and tries direct transfers. Besides the connection returns
    /// why bulk data does not go directly, if it does not. Waits for the lock of the peer's table up to `timeout`.
    pub fn open(terms: &Terms, peer: &Address, timeout: Duration) -> Result<(Connection, Option<String>), LinkError> {
        let mut segment = PeerSegment::open(terms.directory, terms.here, peer, &Settings::of(terms.flow))?;
        let (memory, obstacle) = match reach_memory(terms, peer, &segment) {
            Ok(memory) => (Some(memory), None),
            Err(reason) if terms.bulk == BulkChoice::Direct => {
                return Err(LinkError::NoDirectBulk { peer: *peer, reason });
            }
            Err(reason) => (None, Some(reason)),
        };
        let place = segment.enter(terms.directory, terms.here, peer, &terms.ours, timeout)?;
        let admission = if terms.flow.scheme.lends().has_credits() { Admission::Credits } else { Admission::Room };
        // SAFETY: the writer is a field of the value that owns the segment, and is never handed out. The place is ours
        // alone, and we are the only connection to this peer.
        let mut writer = unsafe { Writer::new(segment.mailbox(), segment.table().writing(place), place, admission) };
        if let Some(taker) = taker(&segment, place, terms.flow) {
            writer = writer.taking(taker);
        }
        let wakes = segment.header().wakes.load(Ordering::Relaxed) != 0;
        Ok((Connection { writer, wakes, memory, place, copied: 0, is_over: false, segment }, obstacle))
    }

    /// Publishes packets that `fill` fills in turn; returns how many slots, and whether the peer waits to be woken.
    #[inline(always)]
    pub fn write_many(&mut self, count: u32, fill: impl Fill) -> (u32, bool) {
        let written = self.writer.write_many(count, fill);
        (written, written > 0 && self.wakes && self.disarm())
    }

    /// Why nothing could be written, and whether the peer waits to be woken: it may have slots to give.
    pub fn why_nothing(&mut self) -> (WriteError, bool) {
        let wake = self.writer.poll_news() && self.wakes && self.disarm();
        (if self.writer.is_refused() { WriteError::Refused } else { WriteError::Full }, wake)
    }

    /// Whether the peer waits to be woken. One writer alone is told so, the first that looks, and wakes it.
    fn disarm(&self) -> bool {
        let armed: &AtomicU64 = &self.segment.signals().armed.0;
        fence(Ordering::SeqCst);
        armed.load(Ordering::Relaxed) != 0 && armed.swap(0, Ordering::Relaxed) != 0
    }

    /// How to wake the peer, if it can be woken.
    pub fn wake_name(&self) -> Option<WakeName> {
        self.segment.header().wake_name()
    }

    /// The peer's memory, if bulk transfers reach it.
    pub fn memory(&mut self) -> Option<&mut ProbedMemory> {
        self.memory.as_mut()
    }

    /// The peer's memory has turned out to be out of reach.
    pub fn give_up_memory(&mut self) {
        self.memory = None;
    }

    /// What the peer sets aside for our unmatched messages, in bytes, if it says.
    pub fn window(&self) -> Option<u32> {
        let header = self.segment.header();
        let first = header.newcomers.load(Ordering::Relaxed);
        let is_newcomer = first > 0 && u64::from(self.place.0) + 1 >= first;
        let window = if is_newcomer { &header.window_of_newcomers } else { &header.window };
        let window = window.load(Ordering::Relaxed);
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

    /// Whether the peer has severed us: it reads nothing more of what we write.
    pub fn is_severed(&self) -> bool {
        self.table().state(self.place) == State::Severed
    }

    /// What the peer's lock on its own file says, whatever has become of the file's name. `None`: we have no descriptor
    /// of that file.
    pub fn fate_of_peer(&self) -> Option<Fate> {
        self.segment.fate_of_owner()
    }

    /// Tells the peer, as the last thing, that we will write no more: because we close, or because we cannot go on.
    pub fn leave(&mut self, orderly: bool) {
        self.is_over = true;
        self.table().mark_ended(self.place, orderly);
    }

    fn table(&self) -> Table {
        // SAFETY: callers in this file use it at once, while the segment lives.
        unsafe { self.segment.table() }
    }

    /// Copies from a bounce buffer of the peer; see [`BufferArea::drain`](super::bounce::BufferArea::drain).
    pub fn drain_bounce_buffer(&self, bounce_buffer: usize, into: &mut IoBuffer, offset: usize, length: usize) -> bool {
        self.segment.drain_bounce_buffer(bounce_buffer, into, offset, length)
    }

    /// Whether the peer has such a send buffer, with memory for a message of this length.
    pub fn has_send_buffer(&self, buffer: usize, length: usize) -> bool {
        // SAFETY: used here and now.
        unsafe { self.segment.send_buffers() }.holds(buffer, length)
    }

    /// Copies the first bytes of a send buffer of the peer, and tells the peer that it is done with. Bytes for which
    /// `into` has no room are left out.
    #[inline]
    pub fn copy_sent(&mut self, buffer: usize, into: &mut IoBuffer, length: usize) {
        // SAFETY: used here and now.
        unsafe { self.segment.send_buffers() }.drain(buffer, into, length);
        // After the end our place there may be another's.
        if !self.is_over {
            self.copied += 1;
            self.table().set_copied(self.place, self.copied);
        }
    }

    /// Looks up a region that the peer has published.
    pub fn find_region(&self, key: u64, offset: u64, length: u64, access: Access) -> Option<(Ticket, Span, Access)> {
        self.segment.find_region(key, offset, length, access)
    }

    /// Runs `copy`, which copies to or from the peer's memory, unless that is not the peer's to show any more: it has
    /// closed its endpoint, or withdrawn one of the regions with these tickets (0: memory of no region). Closing waits
    /// for the copy.
    pub fn access<T>(
        &mut self,
        mut tickets: impl Iterator<Item = u64>,
        copy: impl FnOnce(&mut ProbedMemory) -> T,
    ) -> Option<T> {
        self.access_shown(|memory, is_shown| tickets.all(is_shown).then(|| copy(memory)))?
    }

    /// The same for a `copy` that leaves out by itself what is not shown any more, of which it is told by ticket.
    pub fn access_shown<T>(&mut self, copy: impl FnOnce(&mut ProbedMemory, &dyn Fn(u64) -> bool) -> T) -> Option<T> {
        let memory = self.memory.as_mut()?;
        // SAFETY: used in this function only, while the segment lives.
        let table = unsafe { self.segment.table() };
        let _access = accesses::Access::begin(table.accessing(self.place));
        let is_shown = |ticket| ticket == 0 || self.segment.holds_region(ticket);
        (!self.segment.has_closed()).then(|| copy(memory, &is_shown))
    }
}

#[cfg(all(test, not(loom)))]
impl Connection {
    /// Leaves a reserved slot behind, as a writer does that is killed at the worst moment.
    pub fn reserve_and_die(self) {
        self.writer.reserve_and_die(1, &[]);
        // The process lives on, so its locks must stay as well.
        std::mem::forget(self.segment);
    }

    /// Writes with another sender's index from now on.
    pub fn pretend_to_be(&mut self, source: PeerId) {
        self.writer.pretend_to_be(source);
    }
}

/// Our way to the buffers that the peer has posted, or to the slots of its pool, if its scheme has any.
fn taker(segment: &PeerSegment, place: PeerId, flow: &Config) -> Option<Taker> {
    let buffers = &flow.buffers;
    match flow.scheme.lends() {
        ReceiverResource::Nothing | ReceiverResource::FixedSlots | ReceiverResource::MovingSlots => None,
        ReceiverResource::PoolSlots => {
            // SAFETY: the caller keeps what is returned in the value that owns the segment, and the place is ours.
            let taker = unsafe { SlotTaker::new(segment.slot_pool(), segment.table().mark_words(place), place) };
            Some(Taker::Slots(taker))
        }
        ReceiverResource::Buffers | ReceiverResource::CreditedBuffers | ReceiverResource::GrowingBuffers => {
            // SAFETY: the caller keeps what is returned in the value that owns the segment.
            Some(unsafe { Taker::of_connection(segment.table().posted(place), buffers.per_connection) })
        }
        ReceiverResource::PoolBuffers => {
            // SAFETY: as above.
            Some(unsafe { Taker::of_pool(segment.pool(), segment.table().claim(place), buffers.refusals_most) })
        }
    }
}

/// The peer's memory, or why it cannot be reached.
fn reach_memory(terms: &Terms, peer: &Address, segment: &PeerSegment) -> Result<ProbedMemory, String> {
    if !terms.bulk.may_be_direct() {
        return Err("FI_TIDEGATE_BULK says so".into());
    }
    if !terms.here.shares_namespace(peer) {
        return Err("the processes are in different containers (process namespaces)".into());
    }
    let header = segment.header();
    let [address, number] = [&header.cookie_address, &header.cookie].map(|word| word.load(Ordering::Relaxed));
    let guards = [0, 1].map(|at: usize| header.guards[at].load(Ordering::Relaxed));
    Ok(ProbedMemory::probe(peer.pid, address, number)?.guarded(guards))
}
