//! The completions of one queue that nobody has read yet.
//!
//! Successes and errors share one order: a read returns successes up to the next error, then `-FI_EAVAIL` until the
//! error has been read with `fi_cq_readerr`.

use crate::bindings::*;
use crate::completion::{Entry, Failed};
use crate::errno::{Errno, Result};
use std::collections::VecDeque;

/// Number of completions that memory is allocated for at the start.
const ENTRIES_FIRST: usize = 4096;

/// Completions in the order in which they came.
pub struct Completions {
    /// How many completions the application has asked room for.
    capacity: usize,
    entries: VecDeque<Entry>,
    /// Errors, each with the number of the entry before which it came.
    errors: VecDeque<(u64, Failed)>,
    /// Entries read so far.
    read: u64,
    /// Numbers of the unsolicited entries, for which the application has started no operation one by one. Some of them
    /// may have been read already.
    unsolicited: VecDeque<u64>,
}

impl Completions {
    /// No completions yet, and room for `capacity`.
    pub fn new(capacity: usize) -> Self {
        Completions {
            capacity,
            entries: VecDeque::with_capacity(capacity.min(ENTRIES_FIRST)),
            errors: VecDeque::new(),
            read: 0,
            unsolicited: VecDeque::new(),
        }
    }

    /// Adds a success.
    #[inline]
    pub fn push(&mut self, entry: Entry) {
        self.entries.push_back(entry);
    }

    /// The success that is added next is an unsolicited one.
    pub fn expect_unsolicited(&mut self) {
        self.unsolicited.push_back(self.read + self.entries.len() as u64);
    }

    /// Adds an error.
    pub fn push_error(&mut self, failed: Failed) {
        self.errors.push_back((self.read + self.entries.len() as u64, failed));
    }

    /// For how many more completions there is room.
    pub fn room(&self) -> usize {
        self.capacity.saturating_sub(self.entries.len() + self.errors.len())
    }

    /// For how many more errors there is room, if they are of operations that were to report nothing, or that closing
    /// has ended. Successes do not count here.
    pub fn room_for_errors(&self) -> usize {
        self.capacity.saturating_sub(self.errors.len())
    }

    /// Whether there is room for more unsolicited completions.
    #[inline]
    pub fn has_room_for_unsolicited(&mut self) -> bool {
        self.unsolicited.len() < self.capacity || self.forget_unsolicited() < self.capacity
    }

    /// Drops the numbers of unsolicited entries that have been read. Returns how many have not been read.
    #[cold]
    fn forget_unsolicited(&mut self) -> usize {
        while self.unsolicited.front().is_some_and(|&number| number < self.read) {
            self.unsolicited.pop_front();
        }
        self.unsolicited.len()
    }

    /// Whether a read would return something.
    pub fn is_ready(&self) -> bool {
        !self.entries.is_empty() || !self.errors.is_empty()
    }

    /// How many successes there are before the next error.
    #[inline]
    pub fn readable(&self) -> Result<usize> {
        let Some((number, _)) = self.errors.front() else { return Ok(self.entries.len()) };
        let before = (number - self.read) as usize;
        if before == 0 { Err(Errno(FI_EAVAIL)) } else { Ok(before) }
    }

    /// Takes the error that [`readable`](Self::readable) stopped at.
    pub fn take_error(&mut self) -> Option<Failed> {
        self.errors.pop_front().map(|(_, failed)| failed)
    }

    /// Moves up to `count` successes to `buffer`, `entry_bytes` of each, and their sources to `sources` unless that is
    /// null.
    ///
    /// # Safety
    /// There must be room for that.
    #[inline]
    pub unsafe fn take(
        &mut self,
        buffer: *mut u8,
        count: usize,
        entry_bytes: usize,
        sources: *mut fi_addr_t,
    ) -> Result<usize> {
        let count = self.readable()?.min(count);
        for index in 0..count {
            let Some(entry) = self.entries.pop_front() else { break };
            // SAFETY: `index < count`, and the caller promised the room; an entry is a prefix of the largest format.
            unsafe {
                let place = buffer.add(index * entry_bytes);
                if entry_bytes == size_of::<fi_cq_tagged_entry>() {
                    // The format that most applications use: a copy whose size the compiler knows is fast.
                    place.cast::<fi_cq_tagged_entry>().write_unaligned(entry.completion);
                } else {
                    core::ptr::copy_nonoverlapping((&raw const entry.completion).cast(), place, entry_bytes);
                }
                if !sources.is_null() {
                    *sources.add(index) = entry.source;
                }
            }
        }
        self.read += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completion::entry_bytes;
    use crate::completion::samples::{entry, failed};

    fn take(completions: &mut Completions, count: usize) -> Result<Vec<usize>> {
        let mut room = vec![0usize; count];
        // SAFETY: the room is there.
        let count = unsafe { completions.take(room.as_mut_ptr().cast(), count, 8, core::ptr::null_mut()) }?;
        room.truncate(count);
        Ok(room)
    }

    #[test]
    fn formats_are_prefixes_of_the_largest() {
        let mut completions = Completions::new(8);
        for (format, words) in
            [(FI_CQ_FORMAT_CONTEXT, 1), (FI_CQ_FORMAT_MSG, 3), (FI_CQ_FORMAT_DATA, 5), (FI_CQ_FORMAT_TAGGED, 6)]
        {
            completions.push(entry(1));
            completions.push(entry(2));
            let (mut room, mut sources) = ([0u64; 13], [0; 2]);
            let bytes = entry_bytes(format).unwrap();
            assert_eq!(bytes, 8 * words);
            // SAFETY: the room is there.
            unsafe { completions.take(room.as_mut_ptr().cast(), 2, bytes, sources.as_mut_ptr()) }.unwrap();
            let flags = FI_RECV | FI_TAGGED;
            let expected = [[1, flags, 101, 0, 201, 301], [2, flags, 102, 0, 202, 302]];
            assert_eq!(room[..words], expected[0][..words]);
            assert_eq!(room[words..2 * words], expected[1][..words]);
            assert_eq!(room[2 * words], 0, "nothing is written past the entries");
            assert_eq!(sources, [401, 402]);
        }
        assert_eq!(entry_bytes(99), Err(Errno(FI_ENOSYS)));
    }

    #[test]
    fn errors_keep_their_place_among_successes() {
        let mut completions = Completions::new(8);
        completions.push(entry(1));
        completions.push_error(failed(2));
        completions.push(entry(3));
        assert_eq!(take(&mut completions, 8), Ok(vec![1]));
        assert_eq!(take(&mut completions, 8), Err(Errno(FI_EAVAIL)));
        assert!(completions.take_error().is_some());
        assert_eq!(take(&mut completions, 8), Ok(vec![3]));
        assert_eq!(take(&mut completions, 8), Ok(vec![]));
    }

    #[test]
    fn what_has_been_read_makes_room() {
        let mut completions = Completions::new(2);
        completions.push(entry(1));
        assert_eq!(completions.room(), 1);
        completions.push_error(failed(2));
        assert_eq!(completions.room(), 0);
        completions.push(entry(3));
        assert_eq!(completions.room(), 0, "what was accepted is taken all the same");
        take(&mut completions, 1).unwrap();
        assert!(completions.take_error().is_some());
        assert_eq!(completions.room(), 1);
    }

    #[test]
    fn only_what_was_not_asked_for_fills_the_room_for_it() {
        let mut completions = Completions::new(2);
        for number in 0..6 {
            if number % 2 == 1 {
                completions.expect_unsolicited();
            }
            completions.push(entry(number));
            assert_eq!(completions.has_room_for_unsolicited(), number < 3);
        }
        take(&mut completions, 3).unwrap();
        assert!(!completions.has_room_for_unsolicited(), "two are left of three");
        take(&mut completions, 1).unwrap();
        assert!(completions.has_room_for_unsolicited());
        take(&mut completions, 2).unwrap();
        assert_eq!(completions.forget_unsolicited(), 0);
    }
}
