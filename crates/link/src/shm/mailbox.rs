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
//! **Why a write never overtakes the reader.** Under credits, a writer has been told that its slot is free: each
//! credit was given after a retrieval, the reservation takes the credit's history along (`AcqRel` on the write
//! pointer), so whoever gets the slot's next ticket comes after that retrieval. Without credits (`none`) the reader
//! publishes its position, rarely, and the writer refuses to reserve what might still be unread.
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

use super::sync::{AtomicU64, Ordering};
use std::ops::Range;
use std::ptr::NonNull;
use tidegate_flow::packet::PAYLOAD_BYTES;
use tidegate_flow::{Header, Packet, PacketKind, PeerId};

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;

const PAYLOAD_WORDS: usize = PAYLOAD_BYTES / 8;

/// One slot: a cache line. Word 0 is the header.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Slot {
    header: AtomicU64,
    payload: [AtomicU64; PAYLOAD_WORDS],
}

/// A value alone in its two cache lines (processors fetch lines in pairs).
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Alone<T>(pub T);

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

/// The stamp of a lap: never 0.
fn stamp_of(lap: u64) -> u16 {
    (lap % u64::from(u16::MAX) + 1) as u16
}

/// The stamp of the lap after.
#[inline(always)]
fn stamp_after(stamp: u16) -> u16 {
    if stamp == u16::MAX { 1 } else { stamp + 1 }
}

/// One lap of the ring, remembered so that finding a ticket's slot takes no division.
#[derive(Clone, Copy, Debug)]
struct Lap {
    /// First ticket.
    start: u64,
    stamp: u16,
}

impl Lap {
    fn first() -> Self {
        Lap { start: 0, stamp: stamp_of(0) }
    }

    /// The index of the ticket's slot, and its stamp.
    #[inline(always)]
    fn locate(&mut self, ticket: u64, size: u64) -> (usize, u16) {
        let mut offset = ticket.wrapping_sub(self.start);
        if offset >= size {
            offset = self.move_to(ticket, size);
        }
        (offset as usize, self.stamp)
    }

    /// Moves to the ticket's lap, usually the next one, and returns its offset there.
    fn move_to(&mut self, ticket: u64, size: u64) -> u64 {
        let next = self.start.wrapping_add(size);
        if ticket.wrapping_sub(next) < size {
            *self = Lap { start: next, stamp: stamp_after(self.stamp) };
        } else {
            *self = Lap { start: ticket - ticket % size, stamp: stamp_of(ticket / size) };
        }
        ticket - self.start
    }
}

/// The mailbox is full.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Who makes sure that a reserved slot is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Credits: whoever writes holds one.
    Credits,
    /// The writer itself, by looking at the read pointer (`none`).
    Room,
}

/// One sender's way into a mailbox.
#[derive(Debug)]
pub(crate) struct Writer {
    mailbox: Mailbox,
    /// Our word in the receiver's table of peers.
    writing: NonNull<AtomicU64>,
    /// Value of `writing` between packets: even.
    sequence: u64,
    lap: Lap,
    admission: Admission,
    /// The read pointer as last seen. Only `Admission::Room` uses it.
    retrieved: u64,
    /// Our index in the receiver's table of peers.
    source: PeerId,
}

impl Writer {
    /// A writer that stamps its packets with `source`.
    ///
    /// # Safety
    /// `writing` must stay valid as long as the writer is used, and no other writer may use it.
    pub unsafe fn new(mailbox: Mailbox, writing: NonNull<AtomicU64>, source: PeerId, admission: Admission) -> Self {
        // SAFETY: valid by the caller's promise.
        let left = unsafe { writing.as_ref() }.load(Ordering::Acquire);
        // Whoever had the place before may have died at an odd number. Its place has been given away since, so no hole
        // of it is left, and the next even number is a safe start.
        let sequence = left.wrapping_add(left & 1);
        let writer = Writer { mailbox, writing, sequence, lap: Lap::first(), admission, retrieved: 0, source };
        writer.writing().store(sequence, Ordering::Release);
        writer
    }

    #[inline(always)]
    fn writing(&self) -> &AtomicU64 {
        // SAFETY: valid by the promise made to `new`.
        unsafe { self.writing.as_ref() }
    }

    /// For tests: publishes a packet. Errors: full, under [`Admission::Room`] only.
    #[cfg(test)]
    pub fn write(&mut self, packet: &Packet) -> Result<(), Full> {
        if self.write_many(1, |place| *place = *packet) == 1 { Ok(()) } else { Err(Full) }
    }

    /// Publishes packets that `next` fills in turn; returns how many. Fewer than `count` only when the mailbox is full,
    /// under [`Admission::Room`] only. One reservation serves all: an atomic add waits until earlier stores to slots
    /// have got their cache lines, so one for each packet would move the lines one by one from the reader's cache,
    /// where this moves many at once.
    #[inline]
    pub fn write_many(&mut self, count: u32, mut next: impl FnMut(&mut Packet)) -> u32 {
        // `Relaxed` is enough: the reservation is a release, and the reader looks at this word only after it has seen
        // the reservation.
        self.writing().store(self.sequence.wrapping_add(1), Ordering::Relaxed);
        let (first, reserved) = self.reserve(count);
        self.sequence = self.sequence.wrapping_add(2);
        let mut packet = Packet::new(PacketKind::Data, 0, 0);
        for ticket in first..first + u64::from(reserved) {
            next(&mut packet);
            self.publish(ticket, &packet);
        }
        self.writing().store(self.sequence, Ordering::Release);
        reserved
    }

    /// The first ticket and how many: `count`, or as many as there is room for.
    #[inline(always)]
    fn reserve(&mut self, count: u32) -> (u64, u32) {
        match self.admission {
            Admission::Credits => (self.mailbox.reserved().fetch_add(count.into(), Ordering::AcqRel), count),
            Admission::Room => self.reserve_if_room(count),
        }
    }

    fn reserve_if_room(&mut self, count: u32) -> (u64, u32) {
        let size = self.mailbox.size();
        let mut ticket = self.mailbox.reserved().load(Ordering::Relaxed);
        loop {
            let mut room = size.saturating_sub(ticket.wrapping_sub(self.retrieved));
            if room < count.into() {
                self.retrieved = self.mailbox.retrieved().load(Ordering::Acquire);
                room = size.saturating_sub(ticket.wrapping_sub(self.retrieved));
            }
            let granted = room.min(count.into());
            if granted == 0 {
                return (ticket, 0);
            }
            let (reserved, after) = (self.mailbox.reserved(), ticket.wrapping_add(granted));
            match reserved.compare_exchange_weak(ticket, after, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return (ticket, granted as u32),
                Err(now) => ticket = now,
            }
        }
    }

    #[inline(always)]
    fn publish(&mut self, ticket: u64, packet: &Packet) {
        let (index, stamp) = self.lap.locate(ticket, self.mailbox.size());
        let slot = self.mailbox.slot(index);
        for (cell, bytes) in slot.payload.iter().zip(packet.payload.as_chunks::<8>().0) {
            cell.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        slot.header.store(packet.header.published(stamp, self.source).bits(), Ordering::Release);
    }

    /// For tests of dead writers: reserves so many slots, publishes the first few of them, and stops for ever.
    #[cfg(test)]
    pub fn reserve_and_die(mut self, count: u32, published: &[Packet]) {
        self.writing().store(self.sequence.wrapping_add(1), Ordering::Relaxed);
        let (first, _) = self.reserve(count);
        (first..).zip(published).for_each(|(ticket, packet)| self.publish(ticket, packet));
    }

    /// For tests of hostile writers.
    #[cfg(all(test, not(loom)))]
    pub fn pretend_to_be(&mut self, source: PeerId) {
        self.source = source;
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
}

impl Reader {
    /// The reader of a mailbox that nobody has written to yet. There must be only one.
    pub fn new(mailbox: Mailbox) -> Self {
        let stride = (mailbox.size() / 4).max(1);
        Reader { mailbox, ticket: 0, index: 0, stamp: stamp_of(0), published: 0, stride }
    }

    /// Takes the next packet, if it is published.
    #[inline]
    pub fn retrieve(&mut self) -> Option<Packet> {
        let slot = self.mailbox.slot(self.index);
        let header = Header::from_bits(slot.header.load(Ordering::Acquire));
        if header.stamp() != self.stamp {
            self.publish_position();
            return None;
        }
        let mut packet = Packet { header, payload: [0; PAYLOAD_BYTES] };
        for (cell, bytes) in slot.payload.iter().zip(packet.payload.as_chunks_mut::<8>().0) {
            *bytes = cell.load(Ordering::Relaxed).to_ne_bytes();
        }
        self.advance();
        Some(packet)
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.ticket += 1;
        self.index += 1;
        if self.index == self.mailbox.slots.len() {
            self.index = 0;
            self.stamp = stamp_after(self.stamp);
        }
        if self.ticket - self.published >= self.stride {
            self.publish_position();
        }
    }

    #[inline(always)]
    fn publish_position(&mut self) {
        if self.published != self.ticket {
            self.published = self.ticket;
            self.mailbox.retrieved().store(self.ticket, Ordering::Release);
        }
    }

    /// Whether [`retrieve`](Self::retrieve) would return a packet.
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
        self.advance();
    }
}

/// The write pointer is out of reach of the read pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WildPointer;

/// A slot that is reserved and does not get published, and who may own it. The argument is at the top of this file. It
/// holds for all tickets that had been given out before the `writing` words were read: for all slots that a dead writer
/// had reserved, the words of all writers are read once.
#[derive(Debug)]
pub(crate) struct Hole {
    tickets: Range<u64>,
    /// Peers whose `writing` was odd when the hole was found, and what it was.
    suspects: Vec<(PeerId, u64)>,
}

/// What looking at a hole found.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// There is none: nothing reserved, or the slot is published.
    Clear,
    /// A live peer may own it. Look again later, with this.
    Wait(Hole),
    /// Its owner is dead; the reader is now behind it. Look again at once, with this.
    Skipped(Hole),
}

impl Hole {
    /// Looks at the slot that the reader waits for. `before` is what the last look returned; `writers` are all peers
    /// in the table, in any order, `writing` is the word of one that is still there; `is_alive` is asked about few.
    pub fn examine(
        reader: &mut Reader,
        before: Option<Hole>,
        writers: impl Iterator<Item = PeerId>,
        writing: impl Fn(PeerId) -> Option<u64>,
        mut is_alive: impl FnMut(PeerId) -> bool,
    ) -> Verdict {
        // A wild pointer counts as a hole: the slots that do not exist have no owner and would block the reader as
        // well.
        let backlog = reader.backlog().unwrap_or(reader.size());
        if reader.is_ready() || backlog == 0 {
            return Verdict::Clear;
        }
        let mut hole = before.filter(|hole| hole.tickets.contains(&reader.ticket)).unwrap_or_else(|| {
            let words = writers.filter_map(|peer| Some((peer, writing(peer)?)));
            let suspects = words.filter(|(_, word)| word % 2 == 1).collect();
            Hole { tickets: reader.ticket..reader.ticket + backlog, suspects }
        });
        hole.suspects.retain(|(peer, word)| writing(*peer) == Some(*word));
        if hole.suspects.iter().any(|(peer, _)| is_alive(*peer)) {
            return Verdict::Wait(hole);
        }
        // The owner may have published just before it died, or just after the first look.
        if reader.is_ready() {
            return Verdict::Clear;
        }
        reader.skip();
        Verdict::Skipped(hole)
    }
}
