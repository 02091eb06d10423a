//! Send buffers: pieces of an endpoint's segment in which messages of some hundred bytes to some kilobytes lie on their
//! way to peers. The owner copies a message in and writes one packet that says where it lies; the receiver copies it
//! out as soon as it retrieves that packet, and counts in its own entry of the owner's table of peers how many it has
//! copied. So two copies, a packet and a count take the place of one slot for each 56 bytes; or, for longer messages,
//! of a request to send, a clear to send and a note that all has come.
//!
//! They belong to the sender, are taken last in first out, so that those in use stay in caches, and their memory is
//! allocated page by page when it is first needed. One peer has half of them at most, so that one that looks at nothing
//! leaves some to the others; who finds none goes the way that it would have gone without. A peer's count is looked at
//! when a message is sent to that peer, and all counts are when no buffer is free.
//!
//! As with the mailbox, a peer that breaks the rules garbles messages: its own, by copying late, and those of others,
//! by writing other counts than its own. A packet that names memory which is not there is refused: the owner shows how
//! much of each buffer there is ([`SentArea`]).

use super::bounce::BufferArea;
use super::filling::Filling;
use crate::memory::IoBuffer;
use std::collections::VecDeque;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use tidegate_flow::PeerId;
use tidegate_message::Buffer;

/// Bytes of a send buffer.
pub(crate) const SEND_BUFFER_BYTES: usize = 16 << 10;
/// Shorter messages take two slots at most, which between far cores are a fifth faster than a slot, a buffer and a
/// count (0.58 µs instead of 0.75; 28 November 2026, commit f1087968).
const WORTH_FROM: usize = 97;
/// Buffers of a peer in use from which on its count is looked at, which lies in a line that the peer writes.
const UNCOUNTED_MOST: usize = 4;
/// Bytes that are allocated at a time: a page.
const PAGE: usize = 4096;

/// Whether a message of this length fits, and is faster so.
#[inline]
pub(crate) fn is_worth(length: usize) -> bool {
    (WORTH_FROM..=SEND_BUFFER_BYTES).contains(&length)
}

/// Messages that go another way after a look at all counts gave nothing back, or the system had no memory, before
/// the next try.
const PAUSE: u32 = 64;

/// The send buffers of a segment, and how much of each there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentArea {
    area: BufferArea,
    /// Bytes that the owner has made of each.
    made: NonNull<[AtomicU32]>,
}

impl SentArea {
    /// # Safety
    /// The memory must stay mapped as long as the value or a copy of it is used.
    pub unsafe fn new(area: BufferArea, made: NonNull<[AtomicU32]>) -> Self {
        SentArea { area, made }
    }

    fn made(&self) -> &[AtomicU32] {
        // SAFETY: valid by the promise made to `new`.
        unsafe { self.made.as_ref() }
    }

    /// Whether there is a buffer of this number with memory for a message of this length.
    #[inline]
    pub fn holds(&self, buffer: usize, length: usize) -> bool {
        let made = self.made().get(buffer).map_or(0, |made| made.load(Ordering::Acquire) as usize);
        length <= made && self.area.holds(buffer, length)
    }

    /// Copies the first bytes of a buffer into `into`, as far as there is room; see [`BufferArea::drain`].
    #[inline]
    pub fn drain(&self, buffer: usize, into: &mut IoBuffer, length: usize) {
        self.area.drain(buffer, into, 0, length.min(into.len()));
    }
}

/// Our send buffers.
#[derive(Debug)]
pub(crate) struct SendBuffers {
    sent: SentArea,
    /// Those that have been used before, the last that became free last.
    free: Vec<u32>,
    /// From this one on none has ever been used.
    unused: u32,
    /// Peers that have buffers, in no order, and some that had at the last look at all counts.
    holders: Vec<PeerId>,
    /// Messages until the next look at all counts, and until the system is asked for memory again.
    without_news: u32,
    without_memory: u32,
}

/// Those that hold messages to one peer.
#[derive(Debug, Default)]
pub(crate) struct InUse {
    /// In the order in which the peer copies them.
    buffers: VecDeque<u32>,
    /// The peer's count at the last look.
    counted: u64,
    /// Whether the peer is in the list of those that have any.
    is_listed: bool,
    filling: Filling,
}

impl SendBuffers {
    pub fn new(sent: SentArea) -> Self {
        SendBuffers { sent, free: Vec::new(), unused: 0, holders: Vec::new(), without_news: 0, without_memory: 0 }
    }

    fn count(&self) -> usize {
        self.sent.area.count()
    }

    /// Copies a message into a buffer, for the peer to which those `in_use` belong. `copied`: the peer's count. `make`:
    /// makes these bytes of the area be there. `None`: there is no buffer for it.
    pub fn put(
        &mut self,
        peer: PeerId,
        in_use: &mut InUse,
        copied: impl FnOnce() -> u64,
        message: &IoBuffer,
        make: impl FnOnce(Range<usize>) -> bool,
    ) -> Option<u32> {
        let (length, most) = (message.len(), self.count() / 2);
        if in_use.buffers.len() >= UNCOUNTED_MOST.min(most) {
            self.take_back(in_use, copied());
            if in_use.buffers.len() >= most {
                return None;
            }
        }
        let buffer = match self.free.pop() {
            Some(buffer) => buffer,
            None => self.one_more()?,
        };
        if (self.sent.made()[buffer as usize].load(Ordering::Relaxed) as usize) < length
            && !self.make(buffer, length, make)
        {
            self.free.push(buffer);
            return None;
        }
        self.sent.area.fill(&mut in_use.filling, buffer as usize, message, 0, length);
        if !in_use.is_listed {
            in_use.is_listed = true;
            self.holders.push(peer);
        }
        in_use.buffers.push_back(buffer);
        Some(buffer)
    }

    #[cold]
    fn one_more(&mut self) -> Option<u32> {
        let buffer = self.unused;
        ((buffer as usize) < self.count()).then(|| {
            self.unused += 1;
            buffer
        })
    }

    /// Makes as much of a buffer be there as a message of this length needs.
    #[cold]
    fn make(&mut self, buffer: u32, length: usize, make: impl FnOnce(Range<usize>) -> bool) -> bool {
        if !is_over(&mut self.without_memory) {
            return false;
        }
        let (start, made) = (buffer as usize * SEND_BUFFER_BYTES, &self.sent.made()[buffer as usize]);
        let wanted = length.next_multiple_of(PAGE);
        let is_made = make(start + made.load(Ordering::Relaxed) as usize..start + wanted);
        match is_made {
            true => made.store(wanted as u32, Ordering::Release),
            false => self.without_memory = PAUSE,
        }
        is_made
    }

    /// Whether none is left, and it is worth a look at everybody's count.
    pub fn are_all_used(&mut self) -> bool {
        self.free.is_empty() && self.unused as usize >= self.count() && is_over(&mut self.without_news)
    }

    /// Peers that may have buffers.
    pub fn holders(&self) -> &[PeerId] {
        &self.holders
    }

    /// A look at everybody's count is over.
    pub fn end_look(&mut self) {
        if self.free.is_empty() {
            self.without_news = PAUSE;
        }
    }

    /// Takes back the buffers that a peer has copied by its own count, which may be any number.
    fn take_back(&mut self, in_use: &mut InUse, count: u64) {
        let copied = count.wrapping_sub(in_use.counted).min(in_use.buffers.len() as u64);
        in_use.counted = count;
        self.free.extend(in_use.buffers.drain(..copied as usize));
    }

    /// The same during a look at all counts.
    pub fn take_back_of(&mut self, peer: PeerId, in_use: &mut InUse, count: u64) {
        self.take_back(in_use, count);
        if in_use.buffers.is_empty() {
            in_use.is_listed = false;
            self.holders.retain(|holder| *holder != peer);
        }
    }

    /// Takes back the buffer that was put last, and that no packet names.
    pub fn take_last_back(&mut self, in_use: &mut InUse) {
        self.free.extend(in_use.buffers.pop_back());
    }

    /// Takes back all of a peer that copies no more.
    pub fn take_all_back(&mut self, peer: PeerId, in_use: InUse) {
        self.free.extend(in_use.buffers);
        self.holders.retain(|holder| *holder != peer);
    }
}

/// One message more of a pause: whether it is over.
fn is_over(pause: &mut u32) -> bool {
    *pause = pause.saturating_sub(1);
    *pause == 0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    const ONE: PeerId = PeerId(1);
    const OTHER: PeerId = PeerId(2);

    /// Memory of a number of buffers.
    struct Memory {
        words: Vec<AtomicU64>,
        made: Vec<AtomicU32>,
    }

    fn memory(buffers: usize) -> Memory {
        Memory {
            words: (0..buffers * SEND_BUFFER_BYTES / 8).map(|_| AtomicU64::new(0)).collect(),
            made: (0..buffers).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    fn buffers(memory: &Memory) -> SendBuffers {
        // SAFETY: every test keeps the memory until it needs the buffers no more.
        let area = unsafe { BufferArea::new(NonNull::from(&*memory.words), SEND_BUFFER_BYTES) };
        // SAFETY: as above.
        SendBuffers::new(unsafe { SentArea::new(area, NonNull::from(&*memory.made)) })
    }

    /// A message of this length, each byte of this value.
    fn message(bytes: &mut Vec<u8>, length: usize, value: u8) -> IoBuffer {
        *bytes = vec![value; length];
        // SAFETY: every test keeps the vector as it is until it needs the buffer no more.
        unsafe { IoBuffer::from_parts(bytes.as_mut_ptr(), length) }
    }

    #[test]
    fn a_buffer_that_the_peer_has_not_copied_is_nobody_elses_and_one_that_it_has_is_taken_again() {
        let memory = memory(16);
        let (mut all, mut one, mut other, mut bytes) = (buffers(&memory), InUse::default(), InUse::default(), vec![]);
        let mut held = Vec::new();
        for value in 0..8 {
            let message = message(&mut bytes, 200, value);
            held.push(all.put(ONE, &mut one, || 0, &message, |_| true).expect("half of them are for one peer"));
        }
        let whose = |memory: &Memory, buffer: u32| {
            memory.words[buffer as usize * SEND_BUFFER_BYTES / 8].load(Ordering::Relaxed) as u8
        };
        assert_eq!(all.put(ONE, &mut one, || 0, &message(&mut bytes, 200, 99), |_| true), None);
        let of_other =
            all.put(OTHER, &mut other, || 0, &message(&mut bytes, 200, 77), |_| true).expect("some are left");
        assert!(held.iter().zip(0..).all(|(&buffer, value)| whose(&memory, buffer) == value));
        // The first three have been copied: the third, whose lines were used last, is taken first.
        let again = all.put(ONE, &mut one, || 3, &message(&mut bytes, 200, 55), |_| true);
        assert_eq!((again, whose(&memory, of_other)), (Some(held[2]), 77));
        assert_eq!(all.put(ONE, &mut one, || 3, &message(&mut bytes, 200, 56), |_| true), Some(held[1]));
    }

    #[test]
    fn a_count_that_is_too_large_frees_no_more_than_there_is_and_one_that_goes_back_does_no_harm() {
        let memory = memory(16);
        let (mut all, mut one, mut bytes) = (buffers(&memory), InUse::default(), vec![]);
        for count in [u64::MAX, 0, 1 << 40, 7, 3, 900, 899] {
            for _ in 0..100 {
                all.put(ONE, &mut one, || count, &message(&mut bytes, 500, 1), |_| true);
                let known: std::collections::BTreeSet<u32> = all.free.iter().chain(&one.buffers).copied().collect();
                assert_eq!(known.len(), all.free.len() + one.buffers.len(), "none is there twice");
                assert_eq!((known.len(), &all.holders[..]), (all.unused as usize, &[ONE][..]));
            }
        }
        all.take_all_back(ONE, one);
        assert_eq!((all.free.len(), all.holders.len()), (all.unused as usize, 0));
    }

    #[test]
    fn memory_is_made_page_by_page_and_without_it_there_is_no_buffer() {
        let memory = memory(4);
        let (mut all, mut one, mut bytes, mut made) = (buffers(&memory), InUse::default(), vec![], Vec::new());
        assert_eq!(all.put(ONE, &mut one, || 0, &message(&mut bytes, 100, 1), |_| false), None);
        // The system is not asked with every message.
        let refused = (1..PAUSE)
            .all(|_| all.put(ONE, &mut one, || 0, &message(&mut bytes, 100, 1), |_| unreachable!()).is_none());
        assert!(refused);
        for (count, length) in [(0, 100), (1, 4096), (2, 4097), (3, 100), (4, 16384), (5, 16384)] {
            all.take_back(&mut one, count);
            let first = all.put(
                ONE,
                &mut one,
                || count,
                &message(&mut bytes, length, 1),
                |range| {
                    made.push(range);
                    true
                },
            );
            assert_eq!(first, Some(0));
        }
        assert_eq!(made, [0..4096, 4096..8192, 8192..16384]);
        assert!(all.sent.holds(0, 16384) && !all.sent.holds(1, 1) && !all.sent.holds(4, 0), "what is there is shown");
    }

    #[test]
    fn what_was_put_last_can_be_taken_back() {
        let memory = memory(4);
        let (mut all, mut one, mut bytes) = (buffers(&memory), InUse::default(), vec![]);
        let [first, second] = [(); 2].map(|()| all.put(ONE, &mut one, || 0, &message(&mut bytes, 100, 1), |_| true));
        all.take_last_back(&mut one);
        assert_eq!(all.holders, [ONE]);
        assert_ne!(first, second);
        assert_eq!(all.put(ONE, &mut one, || 0, &message(&mut bytes, 100, 1), |_| true), second);
    }

    #[test]
    fn buffers_come_back_from_many_peers_from_few_buffers_and_from_those_that_are_sent_to_no_more() {
        for (count, peers) in [(32, 16), (32, 11), (2, 1), (3, 1), (2, 3), (4, 7)] {
            let memory = memory(count);
            let (mut all, mut bytes) = (buffers(&memory), vec![]);
            let mut in_use: Vec<InUse> = (0..peers).map(|_| InUse::default()).collect();
            let mut copied = vec![0; peers];
            let mut carried = 0;
            for round in 0..1000 {
                // At first in turns, then to the last alone.
                let to = if round < 500 { round % peers } else { peers - 1 };
                if all.are_all_used() {
                    for holder in all.holders().to_vec() {
                        all.take_back_of(holder, &mut in_use[holder.0 as usize], copied[holder.0 as usize]);
                    }
                    all.end_look();
                }
                let message = message(&mut bytes, 200, 1);
                let put = all.put(PeerId(to as u32), &mut in_use[to], || copied[to], &message, |_| true);
                carried += usize::from(put.is_some());
                copied[to] += u64::from(put.is_some());
                assert!(in_use[to].buffers.len() <= count / 2, "one has half of them at most");
            }
            assert!(carried >= 990, "{carried} of 1000 with {count} buffers and {peers} peers, who copy at once");
        }
    }

    #[test]
    fn nobody_is_asked_with_every_message_who_copies_nothing() {
        let memory = memory(2);
        let (mut all, mut one, mut other, mut bytes) = (buffers(&memory), InUse::default(), InUse::default(), vec![]);
        all.put(ONE, &mut one, || 0, &message(&mut bytes, 200, 1), |_| true);
        all.put(OTHER, &mut other, || 0, &message(&mut bytes, 200, 1), |_| true);
        let looks = (0..1000).filter(|_| {
            let looks = all.are_all_used();
            if looks {
                all.end_look();
            }
            looks
        });
        assert!((2..=20).contains(&looks.count()));
    }

    #[test]
    fn short_messages_and_very_long_ones_go_another_way() {
        assert_eq!([96, 97, 16 << 10, (16 << 10) + 1].map(is_worth), [false, true, true, false]);
    }
}
