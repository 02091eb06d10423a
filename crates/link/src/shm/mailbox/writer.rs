//! [`Writer`]: one sender's way into a mailbox.

use super::super::sync::{AtomicU64, Ordering};
use super::Mailbox;
use super::buffers::Taker;
use super::lap::{Lap, stamp_after};
use std::ptr::NonNull;
use tidegate_flow::packet::MOST_SLOTS_PER_PACKET;
use tidegate_flow::{Packet, PacketKind, PeerId, Placement};
use tidegate_message::Fill;

/// Most slots of a packet that we write.
pub(super) const LONGEST_PACKET: u32 = 16;
/// Fewer slots than this leave as packets of one: the reader handles the first while the second is being written. Loom
/// explores the smallest of all.
const SHORTEST_LONG_PACKET: u32 = if cfg!(loom) { 2 } else { 3 };
const _: () = assert!(SHORTEST_LONG_PACKET <= LONGEST_PACKET && LONGEST_PACKET <= MOST_SLOTS_PER_PACKET);

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
    /// Posted buffers, or slots of a pool: the writer takes one, or some, first; see [`Taker`]. All packets of one call
    /// lie in one buffer.
    Taken,
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
    /// Under [`Admission::Taken`].
    taker: Option<Taker>,
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
        let writer =
            Writer { mailbox, writing, sequence, lap: Lap::first(), admission, taker: None, retrieved: 0, source };
        writer.writing().store(sequence, Ordering::Release);
        writer
    }

    /// The same for a mailbox of posted buffers, or for one whose slots are a pool.
    pub fn taking(self, taker: Taker) -> Self {
        Writer { admission: Admission::Taken, taker: Some(taker), ..self }
    }

    /// Whether the receiver is to be woken, as we have just begun to wait for slots of it.
    pub fn poll_news(&mut self) -> bool {
        self.taker.as_mut().is_some_and(Taker::poll_news)
    }

    /// Why nothing was written: there was no buffer where buffers are posted, else no slot.
    pub fn is_refused(&self) -> bool {
        self.taker.as_ref().is_some_and(Taker::takes_buffers)
    }

    #[inline(always)]
    fn writing(&self) -> &AtomicU64 {
        // SAFETY: valid by the promise made to `new`.
        unsafe { self.writing.as_ref() }
    }

    /// For tests: publishes a packet. Errors: full, under [`Admission::Room`] only.
    #[cfg(test)]
    pub fn write(&mut self, packet: &Packet) -> Result<(), Full> {
        if self.write_many(1, |places: &mut [Packet], placement| places.fill(packet.placed(placement))) == 1 {
            Ok(())
        } else {
            Err(Full)
        }
    }

    /// Publishes packets that `fill` fills in turn, some at a time, several slots as one packet; returns how many
    /// slots. Fewer than `count` when the mailbox is full, under [`Admission::Room`] and in a pool of slots only; none
    /// where no buffer is posted. One reservation serves all: an atomic add waits
    /// until earlier stores to slots have got their cache lines, so one for each packet would move the lines one by one
    /// from the reader's cache, where this moves many at once.
    #[inline(always)]
    pub fn write_many(&mut self, count: u32, mut fill: impl Fill) -> u32 {
        // An odd number: we are writing, so a hole may be ours (`hole.rs`).
        // `Relaxed` is enough: the reservation is a release, and the reader looks at this word only after it has seen
        // the reservation.
        self.writing().store(self.sequence.wrapping_add(1), Ordering::Relaxed);
        let (ticket, reserved) = self.reserve(count);
        let mut write = Write { writer: self, ticket, left: reserved };
        // Mostly it is one packet: where `count` is a constant 1 the compiler drops the loop below.
        if count == 1 {
            if reserved == 1 {
                write.writer.publish(ticket, 1, &mut fill);
                write.left = 0;
            }
            write.finish();
            return reserved;
        }
        while write.left > 0 {
            let slots = if write.left < SHORTEST_LONG_PACKET { 1 } else { write.left.min(LONGEST_PACKET) };
            write.writer.publish(write.ticket, slots, &mut fill);
            write.ticket = write.ticket.wrapping_add(slots.into());
            write.left -= slots;
        }
        write.finish();
        reserved
    }

    /// All reserved slots are published: from here on no hole is ours.
    #[inline(always)]
    fn end_write(&mut self) {
        self.sequence = self.sequence.wrapping_add(2);
        self.writing().store(self.sequence, Ordering::Release);
    }

    /// The first ticket and how many: `count`, or as many as there is room for.
    #[inline(always)]
    fn reserve(&mut self, count: u32) -> (u64, u32) {
        match self.admission {
            Admission::Credits => (self.mailbox.reserved().fetch_add(count.into(), Ordering::AcqRel), count),
            Admission::Room => self.reserve_if_room(count),
            Admission::Taken => self.reserve_taken(count),
        }
    }

    /// Slots that were taken are free: a buffer has as many slots as are wanted for it.
    #[inline(never)]
    fn reserve_taken(&mut self, count: u32) -> (u64, u32) {
        let taken = match &mut self.taker {
            Some(Taker::Slots(taker)) => taker.take(count),
            Some(taker) => taker.take_buffer(count),
            None => 0,
        };
        if taken == 0 {
            return (0, 0);
        }
        (self.mailbox.reserved().fetch_add(taken.into(), Ordering::AcqRel), taken)
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

    /// Publishes a packet of so many slots.
    #[inline(always)]
    fn publish(&mut self, ticket: u64, slots: u32, fill: &mut impl Fill) {
        let mut first = Packet::new(PacketKind::Data, 0, 0);
        fill.fill(std::slice::from_mut(&mut first), Placement::default());
        let (index, stamp) = self.lap.locate(ticket, self.mailbox.size());
        if slots > 1 {
            first.header = first.header.with_slots(slots);
            self.write_following(index, stamp, slots, fill);
        }
        first.header = first.header.published(stamp, self.source);
        self.mailbox.slot(index).write(&first, Ordering::Release);
    }

    /// Writes the slots behind a packet's first, where `index` and `stamp` are; its header will publish them all.
    #[inline]
    fn write_following(&self, index: usize, mut stamp: u16, slots: u32, fill: &mut impl Fill) {
        let (mut index, mut left) = (index + 1, slots as usize - 1);
        while left > 0 {
            if index == self.mailbox.slots.len() {
                (index, stamp) = (0, stamp_after(stamp));
            }
            let count = left.min(self.mailbox.slots.len() - index);
            let placement = Placement::following(stamp, self.source);
            self.mailbox.fill_slots(index, count, |packets| {
                fill.fill(packets, placement);
                debug_assert!(packets.iter().all(|packet| packet.header.is_placed(placement)), "filled for elsewhere");
            });
            index += count;
            left -= count;
        }
    }

    /// For tests of dead writers: reserves some slots, publishes a packet in each of the first few, and stops for ever.
    #[cfg(test)]
    pub fn reserve_and_die(mut self, count: u32, published: &[Packet]) {
        self.writing().store(self.sequence.wrapping_add(1), Ordering::Relaxed);
        let (first, _) = self.reserve(count);
        for (ticket, packet) in (first..).zip(published) {
            self.publish(ticket, 1, &mut |places: &mut [Packet], placement| places.fill(packet.placed(placement)));
        }
    }

    /// The same amid a packet of so many slots: those behind the first are written, and the first is not.
    #[cfg(test)]
    pub fn die_within(mut self, slots: u32, packet: &Packet) {
        self.writing().store(self.sequence.wrapping_add(1), Ordering::Relaxed);
        let (ticket, slots) = self.reserve(slots);
        let (index, stamp) = self.lap.locate(ticket, self.mailbox.size());
        self.write_following(index, stamp, slots, &mut |places: &mut [Packet], placement| {
            places.fill(packet.placed(placement));
        });
    }

    /// For tests of hostile writers.
    #[cfg(all(test, not(loom)))]
    pub fn pretend_to_be(&mut self, source: PeerId) {
        self.source = source;
    }
}

/// One call of [`Writer::write_many`], from its reservation on. It ends when this is dropped.
struct Write<'a> {
    writer: &'a mut Writer,
    /// The next ticket to publish.
    ticket: u64,
    /// Tickets from there on that are reserved and not published.
    left: u32,
}

impl Write<'_> {
    /// `fill` has panicked. Its process may live on, and no reader steps over a hole whose writer lives: so what is
    /// left is published as slots that follow and whose packet has no beginning, which the reader drops.
    #[cold]
    fn publish_nothing(&mut self) {
        let mut nothing = Packet::new(PacketKind::Data, 0, 0);
        // The first is the last: the reader stands there, so it passes none, and nobody gets one anew, before all are
        // written.
        for behind in (0..self.left).rev() {
            let ticket = self.ticket.wrapping_add(behind.into());
            let (index, stamp) = self.writer.lap.locate(ticket, self.writer.mailbox.size());
            nothing.header = nothing.header.following().published(stamp, self.writer.source);
            self.writer.mailbox.slot(index).write(&nothing, Ordering::Release);
        }
    }
}

impl Write<'_> {
    /// All is published.
    #[inline(always)]
    fn finish(self) {
        self.writer.end_write();
        // Dropping it would end the write once more.
        std::mem::forget(self);
    }
}

/// The closure that fills packets may panic.
impl Drop for Write<'_> {
    #[cold]
    fn drop(&mut self) {
        if self.left > 0 {
            self.publish_nothing();
        }
        self.writer.end_write();
    }
}
