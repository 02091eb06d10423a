//! The mailbox: one ring of slots, many writers, one reader (P §2).
//!
//! **The simple idea.** A writer reserves a slot by one atomic add on the write pointer, which gives it a *ticket*;
//! ticket modulo ring size is the slot. It fills in the payload and publishes by storing the header word last. The
//! reader looks at one word, the header of the slot that is next; no pointer is shared between a reader and writers
//! that have nothing to tell each other.
//!
//! **Why a flag in the slot is not enough.** If "published" were a bit, the reader would have to clear it, and write
//! to a line that the next writer wants. So the header carries a *stamp*, the number of the lap that published it:
//! the reader waits for the stamp of its own lap and never writes to a slot. Stamps are `lap mod 65535 + 1`; 0 is a
//! slot never written. A stamp of the lap 65535 laps ago would be mistaken only if a slot had been skipped in all
//! laps between.
//!
//! **Long packets.** A packet may take several slots that follow each other (modulo the ring). Only the header of the
//! first says so, and it is stored last, so all are published at once or none. Every slot has a header word with its
//! lap's stamp: were payload where the reader looks for a stamp, a later lap could take it for one. The words of the
//! slots behind the first say that they follow; so if their writer dies before it has published the first, the reader,
//! once it has skipped that, does not take them for packets.
//!
//! **Why a write never overtakes the reader.** Under credits, a writer has been told that its slot is free: each credit
//! was given after a retrieval, the reservation takes the credit's history along (`AcqRel` on the write pointer), so
//! whoever gets the slot's next ticket comes after that retrieval. Without credits (`none`) the reader publishes its
//! position, rarely, and the writer refuses to reserve what might still be unread. Where buffers are posted, a writer
//! takes one first, and there are as many slots as all buffers hold (`buffers.rs`). Where senders share one pool of
//! slots, a writer takes slots first (`slot_pool.rs`).
//!
//! **Why a dead writer does not stop the reader.** Between reservation and publication a writer can be killed; the
//! slot then stays a *hole*. Each writer has a word of its own, `writing`, in the receiver's table of peers: odd from
//! before its reservation until after its publication, and never the same odd number twice. The reader, stuck at
//! ticket `t` and seeing a write pointer beyond `t`, reads all `writing` words after that. Let W be the owner of `t`.
//! W's word became odd before the write pointer passed `t`, so the reader sees that odd number or something newer;
//! and newer means that W has published, and that the reader's next look at the slot finds it. Hence: peers whose
//! word is even, or changes, do not own a hole that persists. If every peer that remains is dead, its owner is dead,
//! will never publish, and the hole can be skipped. If one of them is alive, it may be the owner (the scheduler took
//! its processor away): the reader waits. A skipped hole costs nothing later: the next lap's writer stamps it with
//! the next lap's number. See [`Hole`].
//!
//! **A hostile writer** can put anything into the ring: stamps, lengths, sources, a wild write pointer. The reader
//! takes slots by its own count, so it never leaves the ring; header fields are clamped by `Header` or checked by the
//! link; a wild write pointer is clamped in [`Reader::backlog`].
//! It can also set the write pointer back. Then two correct writers fill the same slots, or one writes where the reader
//! reads. Between processes this is outside Rust's memory model; we assume that such accesses yield some bytes and
//! nothing worse. Any bytes are a legal [`Packet`], and nothing that reaches memory follows from what is read back.

use super::sync::{Alone, AtomicU64, Ordering};
use std::ptr::NonNull;
use tidegate_flow::packet::PAYLOAD_BYTES;
use tidegate_flow::{Header, Packet, Placement};

mod buffers;
#[cfg(all(test, not(loom)))]
mod far_tests;
mod hole;
mod lap;
#[cfg(all(test, loom))]
mod loom_tests;
mod slot_pool;
#[cfg(all(test, not(loom)))]
mod tests;
mod writer;

pub(crate) use buffers::{Claim, Claims, Pool, PoolWords, Taker, change as change_claim};
pub(crate) use hole::{Hole, Verdict};
use lap::{stamp_after, stamp_of};
pub(crate) use slot_pool::{Marks, PATIENCE, SlotPool, SlotPoolWords, SlotTaker};
pub(crate) use writer::{Admission, Writer};

const PAYLOAD_WORDS: usize = PAYLOAD_BYTES / 8;

const _: () = assert!(size_of::<Slot>() == size_of::<Packet>() && align_of::<Slot>() == align_of::<Packet>());

/// One slot: a cache line. Word 0 is the header.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Slot {
    header: AtomicU64,
    payload: [AtomicU64; PAYLOAD_WORDS],
}

impl Slot {
    /// The payload of a slot that is published, by its own header or by that of the packet's first slot.
    #[cfg(not(loom))]
    #[inline(always)]
    fn read_published(&self, payload: &mut [u8; PAYLOAD_BYTES]) {
        // SAFETY: the words are initialised and in reach, and nobody writes to them now unless somebody is hostile (see
        // the module): then these are other bytes.
        *payload = unsafe { self.payload.as_ptr().cast::<[u8; PAYLOAD_BYTES]>().read() };
    }

    /// Loom knows of atomics only.
    #[cfg(loom)]
    fn read_published(&self, payload: &mut [u8; PAYLOAD_BYTES]) {
        for (cell, bytes) in self.payload.iter().zip(payload.as_chunks_mut::<8>().0) {
            *bytes = cell.load(Ordering::Relaxed).to_ne_bytes();
        }
    }

    /// Puts a packet there, its header as the last.
    #[inline(always)]
    fn write(&self, packet: &Packet, ordering: Ordering) {
        for (cell, bytes) in self.payload.iter().zip(packet.payload.as_chunks::<8>().0) {
            cell.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        self.header.store(packet.header.bits(), ordering);
    }
}

/// The two pointers of a mailbox. Both count tickets and never wrap.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Pointers {
    /// The write pointer: tickets given out.
    reserved: Alone<AtomicU64>,
    /// The read pointer, as last published: tickets below it are retrieved.
    retrieved: Alone<AtomicU64>,
}

/// Where a mailbox lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mailbox {
    slots: NonNull<[Slot]>,
    pointers: NonNull<Pointers>,
}

impl Mailbox {
    /// # Safety
    /// Slots and pointers must stay valid as long as any [`Writer`] or [`Reader`] made from the value is used.
    pub unsafe fn new(slots: NonNull<[Slot]>, pointers: NonNull<Pointers>) -> Self {
        assert!(!slots.is_empty(), "a mailbox has at least one slot");
        Mailbox { slots, pointers }
    }

    #[inline(always)]
    fn size(&self) -> u64 {
        self.slots.len() as u64
    }

    #[inline(always)]
    fn slot(&self, index: usize) -> &Slot {
        // SAFETY: valid by the promise made to `new`; all fields are atomics, so sharing with other processes is fine.
        unsafe { &self.slots.as_ref()[index] }
    }

    /// The slots from one on, to the end of the lap.
    #[inline(always)]
    fn slots_from(&self, index: usize) -> &[Slot] {
        // SAFETY: as in `slot`.
        unsafe { &self.slots.as_ref()[index..] }
    }

    /// Lets `fill` fill slots of one lap where they are.
    #[cfg(not(loom))]
    #[inline]
    fn fill_slots(&self, index: usize, count: usize, fill: impl FnOnce(&mut [Packet])) {
        assert!(count <= self.slots.len() - index, "slots of one lap");
        let first: *mut Packet = self.slots.as_ptr().cast::<Slot>().wrapping_add(index).cast();
        // SAFETY: valid by the promise made to `new`, and a slot is a packet in memory. They were reserved and are not
        // published, so nobody touches them unless somebody is hostile (see the module): then it is a packet that is
        // there, whatever it is, and nothing follows from it but what the reader gets.
        fill(unsafe { std::slice::from_raw_parts_mut(first, count) });
    }

    /// Loom knows of atomics only.
    #[cfg(loom)]
    fn fill_slots(&self, index: usize, count: usize, fill: impl FnOnce(&mut [Packet])) {
        let mut packets = vec![Packet::new(tidegate_flow::PacketKind::Data, 0, 0); count];
        fill(&mut packets);
        for (slot, packet) in (index..).zip(&packets) {
            self.slot(slot).write(packet, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn reserved(&self) -> &AtomicU64 {
        // SAFETY: as in `slot`.
        unsafe { &self.pointers.as_ref().reserved.0 }
    }

    #[inline(always)]
    fn retrieved(&self) -> &AtomicU64 {
        // SAFETY: as in `slot`.
        unsafe { &self.pointers.as_ref().retrieved.0 }
    }
}

/// The owner's way out of its mailbox.
#[derive(Debug)]
pub(crate) struct Reader {
    mailbox: Mailbox,
    /// The ticket to retrieve next.
    ticket: u64,
    /// Its slot and its lap's stamp.
    index: usize,
    stamp: u16,
    /// What the read pointer says.
    published: u64,
    /// Retrievals after which the read pointer is published although the ring has not run empty.
    stride: u64,
    /// The pool that retrieved slots go back to, if there is one. Then `published` is the ticket up to which they have.
    pool: Option<Box<SlotPool>>,
}

impl Reader {
    /// The reader of a mailbox that nobody has written to yet. There must be only one.
    pub fn new(mailbox: Mailbox) -> Self {
        let stride = (mailbox.size() / 4).max(1);
        Reader { mailbox, ticket: 0, index: 0, stamp: stamp_of(0), published: 0, stride, pool: None }
    }

    /// The same where all senders share one pool of slots.
    pub fn with_pool(self, pool: SlotPool) -> Self {
        Reader { stride: pool.stride(), pool: Some(Box::new(pool)), ..self }
    }

    /// Takes the next slot, as [`retrieve_into`](Self::retrieve_into).
    #[cfg(test)]
    pub fn retrieve(&mut self) -> Option<Packet> {
        let mut packet = Packet::new(tidegate_flow::PacketKind::Data, 0, 0);
        self.retrieve_into(&mut packet).then_some(packet)
    }

    /// Copies the next slot, if it is published: a packet, or the first slot of one. Also a slot that
    /// [follows](Header::follows) and whose packet has no beginning, since its writer died or is hostile. Returns
    /// whether there was one.
    #[inline(always)]
    pub fn retrieve_into(&mut self, packet: &mut Packet) -> bool {
        let slot = self.mailbox.slot(self.index);
        let header = Header::from_bits(slot.header.load(Ordering::Acquire));
        if header.stamp() != self.stamp {
            self.publish_position();
            return false;
        }
        packet.header = header;
        slot.read_published(&mut packet.payload);
        self.advance(1);
        true
    }

    /// Takes the slots behind the first of a packet, whose header this is, puts their payload into `into`, and returns
    /// the last. `None`: one of them is not what a correct writer puts there, and it is the next to be retrieved; or
    /// `into` has not room for all, and none was taken; or the first has none behind it.
    pub fn retrieve_following(&mut self, first: Header, into: &mut [[u8; PAYLOAD_BYTES]]) -> Option<Packet> {
        let mut header = first;
        let places = into.get_mut(..first.slots() as usize - 1)?;
        let mut left = &mut places[..];
        while !left.is_empty() {
            let slots = self.mailbox.slots_from(self.index);
            let (run, later) = left.split_at_mut(left.len().min(slots.len()));
            let wanted = Placement::following(self.stamp, first.source());
            let mut taken = 0;
            for (slot, place) in slots.iter().zip(&mut *run) {
                let is_full = header.length() == PAYLOAD_BYTES;
                // The first slot's header has published this one, and its acquisition made it visible.
                header = Header::from_bits(slot.header.load(Ordering::Relaxed));
                // Another's, or another packet's, is not to be lost with this one.
                if !is_full || !header.is_placed(wanted) {
                    break;
                }
                slot.read_published(place);
                taken += 1;
            }
            self.advance(taken);
            if taken < run.len() {
                return None;
            }
            left = later;
        }
        places.last().map(|payload| Packet { header, payload: *payload })
    }

    /// Slots of one lap are retrieved.
    #[inline(always)]
    fn advance(&mut self, slots: usize) {
        self.ticket += slots as u64;
        self.index += slots;
        if self.index == self.mailbox.slots.len() {
            self.index = 0;
            self.stamp = stamp_after(self.stamp);
        }
        if self.ticket - self.published >= self.stride {
            self.end_stride();
        }
    }

    #[cold]
    #[inline(never)]
    fn end_stride(&mut self) {
        match self.pool.is_some() {
            true => self.give_back(),
            false => self.publish_position(),
        }
    }

    /// Tells writers how far we have come: by the read pointer, or, if a sender waits for slots of a pool, by these.
    /// (If none does, a pool gets them back at the end of a stride.)
    #[inline(always)]
    fn publish_position(&mut self) {
        if self.published != self.ticket {
            if let Some(pool) = &self.pool {
                if pool.has_waiting() {
                    self.give_back();
                }
                return;
            }
            self.published = self.ticket;
            self.mailbox.retrieved().store(self.ticket, Ordering::Release);
        }
    }

    #[cold]
    #[inline(never)]
    fn give_back(&mut self) {
        self.slot_pool();
    }

    /// The pool of slots, if there is one, after all retrieved slots were given back to it.
    pub fn slot_pool(&mut self) -> Option<&mut SlotPool> {
        let pool = self.pool.as_mut()?;
        pool.give(self.ticket - self.published);
        (self.published, self.stride) = (self.ticket, pool.stride());
        Some(pool)
    }

    /// Puts the count of the pool right, if nothing is under way; see [`SlotPool::settle`].
    pub fn settle_pool(&mut self, is_any_writing: impl FnOnce() -> bool) -> u64 {
        let (mailbox, ticket) = (self.mailbox, self.ticket);
        let is_empty = || mailbox.reserved().load(Ordering::Acquire) == ticket;
        let is_quiet = || is_empty() && !is_any_writing() && is_empty();
        self.slot_pool().map_or(0, |pool| pool.settle(is_quiet))
    }

    /// Whether a sender waits for slots of the pool, as far as is known without a look at its word.
    pub fn has_waiting(&self) -> bool {
        self.pool.as_ref().is_some_and(|pool| pool.has_waiting())
    }

    /// Whether a sender has marked itself that the pool has not seen.
    pub fn has_new_marks(&self) -> bool {
        self.pool.as_ref().is_some_and(|pool| pool.has_new_marks())
    }

    /// Whether senders wait for slots that are kept for others.
    pub fn may_revoke(&self) -> bool {
        self.pool.as_ref().is_some_and(|pool| pool.may_revoke())
    }

    /// Whether [`retrieve`](Self::retrieve) would return a packet.
    #[inline(always)]
    pub fn is_ready(&self) -> bool {
        let header = self.mailbox.slot(self.index).header.load(Ordering::Acquire);
        Header::from_bits(header).stamp() == self.stamp
    }

    /// Slots reserved and not retrieved, published or not. `Err`: more than the ring has, so somebody broke the
    /// protocol.
    pub fn backlog(&self) -> Result<u64, WildPointer> {
        let backlog = self.mailbox.reserved().load(Ordering::Acquire).wrapping_sub(self.ticket);
        if backlog <= self.mailbox.size() { Ok(backlog) } else { Err(WildPointer) }
    }

    /// Slots of the ring.
    pub fn size(&self) -> u64 {
        self.mailbox.size()
    }

    /// The ticket to retrieve next.
    pub fn position(&self) -> u64 {
        self.ticket
    }

    /// The ticket after the last one given out: when [`position`](Self::position) has reached it, everything that had
    /// been written by now is retrieved.
    pub fn end(&self) -> u64 {
        self.ticket + self.backlog().unwrap_or(0)
    }

    /// Steps over a slot whose writer is dead. Only [`Hole`] may conclude that.
    fn skip(&mut self) {
        self.advance(1);
    }
}

/// The write pointer is out of reach of the read pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WildPointer;
