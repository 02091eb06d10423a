//! Send buffers: pieces of an endpoint's segment in which messages of some hundred bytes to some kilobytes lie on their
//! way to peers. The owner copies a message in and writes one packet that says where it lies; the receiver copies it
//! out as soon as it retrieves that packet, and counts in its own entry of the owner's table of peers how many it has
//! copied. So two copies, a packet and a count take the place of one slot for each 56 bytes; or, for longer messages,
//! of a request to send, a clear to send and a note that all has come.
//!
//! They belong to the sender, are taken last in first out, so that those in use stay in caches, and their memory is
//! allocated page by page when it is first needed. One peer has half of them at most, so that one that looks at nothing
//! leaves some to the others; who finds none goes the way that it would have gone without.
//!
//! As with bounce buffers, a peer that breaks the rules garbles the data of its own messages, nothing else.

use super::bounce::BufferArea;
use super::filling::Filling;
use crate::memory::IoBuffer;
use std::collections::VecDeque;
use std::ops::Range;
use tidegate_message::Buffer;

/// Bytes of a send buffer.
pub(crate) const SEND_BUFFER_BYTES: usize = 16 << 10;
/// Shorter messages take two slots at most, which between far cores are a fifth faster than a slot, a buffer and a count
/// (docs/benchmarks.md).
const WORTH_FROM: usize = 97;
/// So many of a peer's buffers are in use before its count is looked at, which lies in a line that it writes.
const UNCOUNTED_MOST: usize = 4;
/// What is allocated at a time: a page.
const PAGE: usize = 4096;

/// Whether a message of this length fits, and is faster so.
#[inline]
pub(crate) fn is_worth(length: usize) -> bool {
    (WORTH_FROM..=SEND_BUFFER_BYTES).contains(&length)
}

/// Our send buffers.
#[derive(Debug)]
pub(crate) struct SendBuffers {
    area: BufferArea,
    /// Those that have been used before, the last that became free last.
    free: Vec<u32>,
    /// How much of each is there, of those that have ever been used.
    made: Vec<u16>,
}

/// Those that hold messages to one peer.
#[derive(Debug, Default)]
pub(crate) struct InUse {
    /// In the order in which the peer copies them.
    buffers: VecDeque<u32>,
    /// What its count said when we looked last.
    counted: u64,
    filling: Filling,
}

impl SendBuffers {
    pub fn new(area: BufferArea) -> Self {
        SendBuffers { area, free: Vec::new(), made: Vec::new() }
    }

    /// Copies a message into a buffer, for the peer to which those `in_use` belong. `copied`: the peer's count. `make`:
    /// makes these bytes of the area be there. `None`: there is no buffer for it.
    pub fn put(
        &mut self,
        in_use: &mut InUse,
        copied: impl FnOnce() -> u64,
        message: &IoBuffer,
        make: impl FnOnce(Range<usize>) -> bool,
    ) -> Option<u32> {
        let length = message.len();
        if in_use.buffers.len() >= UNCOUNTED_MOST {
            self.take_back(in_use, copied());
            if in_use.buffers.len() >= self.area.count() / 2 {
                return None;
            }
        }
        let buffer = match self.free.pop() {
            Some(buffer) => buffer,
            None => self.one_more()?,
        };
        if usize::from(self.made[buffer as usize]) < length && !self.make(buffer, length, make) {
            self.free.push(buffer);
            return None;
        }
        self.area.fill(&mut in_use.filling, buffer as usize, message, 0, length);
        in_use.buffers.push_back(buffer);
        Some(buffer)
    }

    #[cold]
    fn one_more(&mut self) -> Option<u32> {
        let buffer = self.made.len();
        (buffer < self.area.count()).then(|| {
            self.made.push(0);
            buffer as u32
        })
    }

    /// Makes as much of a buffer be there as a message of this length needs.
    #[cold]
    fn make(&mut self, buffer: u32, length: usize, make: impl FnOnce(Range<usize>) -> bool) -> bool {
        let (start, made) = (buffer as usize * SEND_BUFFER_BYTES, &mut self.made[buffer as usize]);
        let wanted = length.next_multiple_of(PAGE);
        let is_made = make(start + usize::from(*made)..start + wanted);
        if is_made {
            *made = wanted as u16;
        }
        is_made
    }

    /// Takes back what a peer has copied by its own count, which anybody may have written.
    fn take_back(&mut self, in_use: &mut InUse, count: u64) {
        let copied = count.wrapping_sub(in_use.counted).min(in_use.buffers.len() as u64);
        in_use.counted = count;
        self.free.extend(in_use.buffers.drain(..copied as usize));
    }

    /// Takes back the one that was put last, which nobody was told of.
    pub fn take_last_back(&mut self, in_use: &mut InUse) {
        self.free.extend(in_use.buffers.pop_back());
    }

    /// Takes back all of a peer that copies no more.
    pub fn take_all_back(&mut self, in_use: InUse) {
        self.free.extend(in_use.buffers);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::ptr::NonNull;
    use std::sync::atomic::AtomicU64;

    /// Memory for so many buffers.
    fn memory(buffers: usize) -> Vec<AtomicU64> {
        (0..buffers * SEND_BUFFER_BYTES / 8).map(|_| AtomicU64::new(0)).collect()
    }

    fn buffers(memory: &[AtomicU64]) -> SendBuffers {
        // SAFETY: every test keeps the memory until it needs the buffers no more.
        SendBuffers::new(unsafe { BufferArea::new(NonNull::from(memory), SEND_BUFFER_BYTES) })
    }

    /// A message of so many bytes, each of this value.
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
            held.push(all.put(&mut one, || 0, &message, |_| true).expect("half of them are for one peer"));
        }
        let whose = |memory: &[AtomicU64], buffer: u32| {
            memory[buffer as usize * SEND_BUFFER_BYTES / 8].load(std::sync::atomic::Ordering::Relaxed) as u8
        };
        assert_eq!(all.put(&mut one, || 0, &message(&mut bytes, 200, 99), |_| true), None);
        let of_other = all.put(&mut other, || 0, &message(&mut bytes, 200, 77), |_| true).expect("some are left");
        assert!(held.iter().zip(0..).all(|(&buffer, value)| whose(&memory, buffer) == value));
        // The first three have been copied: the third, whose lines were used last, is taken first.
        let again = all.put(&mut one, || 3, &message(&mut bytes, 200, 55), |_| true);
        assert_eq!((again, whose(&memory, of_other)), (Some(held[2]), 77));
        assert_eq!(all.put(&mut one, || 3, &message(&mut bytes, 200, 56), |_| true), Some(held[1]));
    }

    #[test]
    fn a_count_that_is_too_large_frees_no_more_than_there_is_and_one_that_goes_back_does_no_harm() {
        let memory = memory(16);
        let (mut all, mut one, mut bytes) = (buffers(&memory), InUse::default(), vec![]);
        for count in [u64::MAX, 0, 1 << 40, 7, 3, 900, 899] {
            for _ in 0..100 {
                all.put(&mut one, || count, &message(&mut bytes, 500, 1), |_| true);
                let known: std::collections::BTreeSet<u32> = all.free.iter().chain(&one.buffers).copied().collect();
                assert_eq!(known.len(), all.free.len() + one.buffers.len(), "none is there twice");
                assert_eq!(known.len(), all.made.len());
            }
        }
        all.take_all_back(one);
        assert_eq!(all.free.len(), all.made.len());
    }

    #[test]
    fn memory_is_made_page_by_page_and_without_it_there_is_no_buffer() {
        let memory = memory(4);
        let (mut all, mut one, mut bytes, mut made) = (buffers(&memory), InUse::default(), vec![], Vec::new());
        assert_eq!(all.put(&mut one, || 0, &message(&mut bytes, 100, 1), |_| false), None);
        for (count, length) in [(0, 100), (1, 4096), (2, 4097), (3, 100), (4, 16384), (5, 16384)] {
            all.take_back(&mut one, count);
            let first = all.put(
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
    }

    #[test]
    fn what_was_put_last_can_be_taken_back() {
        let memory = memory(4);
        let (mut all, mut one, mut bytes) = (buffers(&memory), InUse::default(), vec![]);
        let [first, second] = [(); 2].map(|()| all.put(&mut one, || 0, &message(&mut bytes, 100, 1), |_| true));
        all.take_last_back(&mut one);
        assert_ne!(first, second);
        assert_eq!(all.put(&mut one, || 0, &message(&mut bytes, 100, 1), |_| true), second);
    }

    #[test]
    fn short_messages_and_very_long_ones_go_another_way() {
        assert_eq!([96, 97, 16 << 10, (16 << 10) + 1].map(is_worth), [false, true, true, false]);
    }
}
