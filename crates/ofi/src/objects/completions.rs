//! The completions of one queue that nobody has read yet.
//!
//! Successes and errors share one order: a read returns successes up to the next error, then `-FI_EAVAIL` until the
//! error has been read with `fi_cq_readerr`.

use crate::border::bindings::*;
use crate::border::errno::{Errno, Result};
use crate::objects::completion::{Entry, Failed};
use core::ffi::c_void;
use std::collections::VecDeque;

/// Number of completions that memory is allocated for at the start.
const ENTRIES_FIRST: usize = 4096;

/// Room for completions in the application's memory.
#[derive(Clone, Copy)]
pub struct Room {
    /// Entries of the queue's format.
    pub buffer: *mut c_void,
    /// How many of them there is room for.
    pub count: usize,
    /// Room for as many senders, or null.
    pub sources: *mut fi_addr_t,
}

/// Room that a reader has lent while it makes progress.
struct Lent {
    room: Room,
    entry_bytes: usize,
    /// Entries that have been put there.
    used: usize,
}

/// Completions in the order in which they came.
pub struct Completions {
    /// How many completions the application has asked room for.
    capacity: usize,
    entries: VecDeque<Entry>,
    /// Errors, each with the number of the entry before which it came, and whether it is unsolicited.
    errors: VecDeque<(u64, Failed, bool)>,
    /// Entries read so far.
    read: u64,
    /// Numbers of the unsolicited entries, for which the application has started no operation one by one. Some of them
    /// may have been read already.
    unsolicited: VecDeque<u64>,
    /// How many of them there may be before there is no room for more: `capacity` without the unsolicited errors.
    unsolicited_most: usize,
    /// Unsolicited errors that have not been read.
    unsolicited_errors: usize,
    /// Where completions go at once, as long as none waits in front of them.
    lent: Lent,
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
            unsolicited_most: capacity,
            unsolicited_errors: 0,
            lent: Lent::NONE,
        }
    }

    /// Adds a success.
    #[inline(always)]
    pub fn push(&mut self, entry: Entry) {
        if self.lent.used < self.lent.room.count {
            // SAFETY: the reader has promised the room, and takes it back before its call returns.
            unsafe { self.lent.put(&entry) };
            self.read += 1;
        } else {
            self.entries.push_back(entry);
        }
    }

    /// Whether the source of the next success may be read: by the reader whose room it goes to, or from the queue, if
    /// it is kept there.
    #[inline(always)]
    pub fn keeps_source(&self) -> bool {
        !self.lent.room.sources.is_null() || self.lent.used >= self.lent.room.count
    }

    /// What comes now goes straight to a reader that has found nothing here, until
    /// [`end_lending`](Self::end_lending).
    ///
    /// # Safety
    /// The room must be there until then, for entries of so many bytes.
    #[inline(always)]
    pub unsafe fn lend(&mut self, room: Room, entry_bytes: usize) {
        debug_assert!(room.count == 0 || !self.is_ready());
        // Field by field: what has just been stored in small pieces would be awaited where it is read in large ones.
        let Room { buffer, count, sources } = room;
        self.lent.room.buffer = buffer;
        self.lent.room.count = count;
        self.lent.room.sources = sources;
        self.lent.entry_bytes = entry_bytes;
        self.lent.used = 0;
    }

    /// Takes the room back. Returns how many entries are there.
    #[inline(always)]
    pub fn end_lending(&mut self) -> usize {
        self.lent.room.count = 0;
        std::mem::take(&mut self.lent.used)
    }

    /// Whether the reader that has lent room will get anything.
    #[inline(always)]
    pub fn has_found(&self) -> bool {
        self.lent.used > 0 || self.is_ready()
    }

    /// The success that is added next is an unsolicited one.
    pub fn expect_unsolicited(&mut self) {
        self.unsolicited.push_back(self.read + self.entries.len() as u64);
    }

    /// Adds an error. `unsolicited`: the application has started no operation for it alone.
    pub fn push_error(&mut self, failed: Failed, unsolicited: bool) {
        // What comes behind it waits until the error has been read.
        self.lent.room.count = self.lent.used;
        self.count_unsolicited_error(unsolicited, 1);
        self.errors.push_back((self.read + self.entries.len() as u64, failed, unsolicited));
    }

    /// For how many more completions there is room.
    pub fn room(&self) -> usize {
        self.capacity.saturating_sub(self.entries.len() + self.errors.len())
    }

    /// There is one more unsolicited error, or one less, if the one that has come or gone is `unsolicited`.
    fn count_unsolicited_error(&mut self, unsolicited: bool, change: isize) {
        if unsolicited {
            self.unsolicited_errors = self.unsolicited_errors.saturating_add_signed(change);
            self.unsolicited_most = self.capacity.saturating_sub(self.unsolicited_errors);
        }
    }

    /// Whether there is no room for the error of one more operation, be it one that is to report nothing else.
    /// Successes do not count here.
    pub fn is_full_of_errors(&self) -> bool {
        self.errors.len() >= self.capacity
    }

    /// Whether there is room for more unsolicited completions.
    #[inline]
    pub fn has_room_for_unsolicited(&mut self) -> bool {
        self.unsolicited.len() < self.unsolicited_most || self.forget_unsolicited() < self.unsolicited_most
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
        let Some((number, ..)) = self.errors.front() else { return Ok(self.entries.len()) };
        let before = (number - self.read) as usize;
        if before == 0 { Err(Errno(FI_EAVAIL)) } else { Ok(before) }
    }

    /// Takes the error that [`readable`](Self::readable) stopped at.
    pub fn take_error(&mut self) -> Option<Failed> {
        let (_, failed, unsolicited) = self.errors.pop_front()?;
        self.count_unsolicited_error(unsolicited, -1);
        Some(failed)
    }

    /// Moves successes to where there is room for them, as many as there is, `entry_bytes` of each. Returns how many.
    ///
    /// # Safety
    /// The room must be there.
    #[inline]
    pub unsafe fn take(&mut self, room: Room, entry_bytes: usize) -> Result<usize> {
        let count = self.readable()?.min(room.count);
        let mut reader = Lent { room, entry_bytes, used: 0 };
        for entry in self.entries.drain(..count) {
            // SAFETY: promised by the caller, and these are no more than there is room for.
            unsafe { reader.put(&entry) };
        }
        self.read += count as u64;
        Ok(count)
    }
}

impl Lent {
    const NONE: Lent = Lent {
        room: Room { buffer: core::ptr::null_mut(), count: 0, sources: core::ptr::null_mut() },
        entry_bytes: 0,
        used: 0,
    };

    /// Puts an entry where the next one goes.
    ///
    /// # Safety
    /// The room must be there, and have room for one more.
    #[inline(always)]
    unsafe fn put(&mut self, entry: &Entry) {
        // SAFETY: promised by the caller.
        unsafe {
            let place = self.room.buffer.byte_add(self.used * self.entry_bytes);
            if self.entry_bytes == size_of::<fi_cq_tagged_entry>() {
                // Field by field, as they come: written to the stack and read in larger pieces each would wait.
                let (place, from) = (place.cast::<fi_cq_tagged_entry>(), &entry.completion);
                (&raw mut (*place).op_context).write_unaligned(from.op_context);
                (&raw mut (*place).flags).write_unaligned(from.flags);
                (&raw mut (*place).len).write_unaligned(from.len);
                (&raw mut (*place).buf).write_unaligned(from.buf);
                (&raw mut (*place).data).write_unaligned(from.data);
                (&raw mut (*place).tag).write_unaligned(from.tag);
            } else {
                self.put_part(place, *entry);
            }
            if !self.room.sources.is_null() {
                *self.room.sources.add(self.used) = entry.source;
            }
        }
        self.used += 1;
    }

    /// The entry in another format than most applications use. Out of line, so that the one that they do use is
    /// written field by field.
    ///
    /// # Safety
    /// There must be room for an entry at `place`.
    #[cold]
    #[inline(never)]
    unsafe fn put_part(&self, place: *mut c_void, entry: Entry) {
        // SAFETY: promised by the caller; all formats are prefixes of the largest.
        unsafe {
            core::ptr::copy_nonoverlapping((&raw const entry.completion).cast::<u8>(), place.cast(), self.entry_bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::completion::entry_bytes;
    use crate::objects::completion::samples::{entry, failed};

    fn room_of(room: &mut [usize]) -> Room {
        Room { buffer: room.as_mut_ptr().cast(), count: room.len(), sources: core::ptr::null_mut() }
    }

    fn take(completions: &mut Completions, count: usize) -> Result<Vec<usize>> {
        let mut room = vec![0usize; count];
        // SAFETY: the room is there.
        let count = unsafe { completions.take(room_of(&mut room), 8) }?;
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
            let lent = Room { buffer: room.as_mut_ptr().cast(), count: 2, sources: sources.as_mut_ptr() };
            // SAFETY: the room is there.
            unsafe { completions.take(lent, bytes) }.unwrap();
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
        completions.push_error(failed(2), false);
        completions.push(entry(3));
        assert_eq!(take(&mut completions, 8), Ok(vec![1]));
        assert_eq!(take(&mut completions, 8), Err(Errno(FI_EAVAIL)));
        assert!(completions.take_error().is_some());
        assert_eq!(take(&mut completions, 8), Ok(vec![3]));
        assert_eq!(take(&mut completions, 8), Ok(vec![]));
    }

    #[test]
    fn a_reader_that_makes_progress_gets_what_comes_at_once_in_order() {
        let mut completions = Completions::new(8);
        let lend = |completions: &mut Completions, room: &mut [usize]| {
            // SAFETY: each lending ends before its room goes.
            unsafe { completions.lend(room_of(room), 8) };
        };
        let mut room = [0; 2];
        lend(&mut completions, &mut room);
        (1..=3).for_each(|number| completions.push(entry(number)));
        assert_eq!((completions.end_lending(), room), (2, [1, 2]), "as much as there is room for");
        completions.push(entry(4));
        assert_eq!(take(&mut completions, 8), Ok(vec![3, 4]), "and nothing overtakes the rest");
        // An error keeps its place.
        let mut room = [0; 4];
        lend(&mut completions, &mut room);
        completions.push(entry(5));
        completions.push_error(failed(6), false);
        completions.push(entry(7));
        assert_eq!((completions.end_lending(), room), (1, [5, 0, 0, 0]));
        assert_eq!(take(&mut completions, 8), Err(Errno(FI_EAVAIL)));
        assert!(completions.take_error().is_some());
        assert_eq!(take(&mut completions, 8), Ok(vec![7]));
        // What was not asked for and has been read fills no room.
        let mut room = [0; 8];
        lend(&mut completions, &mut room);
        for number in 8..16 {
            completions.expect_unsolicited();
            completions.push(entry(number));
        }
        assert_eq!((completions.end_lending(), room), (8, [8, 9, 10, 11, 12, 13, 14, 15]));
        assert!(completions.has_room_for_unsolicited() && completions.forget_unsolicited() == 0);
    }

    #[test]
    fn what_has_been_read_makes_room() {
        let mut completions = Completions::new(2);
        completions.push(entry(1));
        assert_eq!(completions.room(), 1);
        completions.push_error(failed(2), false);
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

    #[test]
    fn errors_that_were_not_asked_for_fill_the_same_room() {
        let mut completions = Completions::new(2);
        completions.push_error(failed(0), true);
        completions.push_error(failed(1), false);
        assert!(completions.has_room_for_unsolicited() && completions.is_full_of_errors());
        completions.push_error(failed(2), true);
        assert!(!completions.has_room_for_unsolicited());
        (0..2).for_each(|_| assert!(completions.take_error().is_some()));
        assert!(completions.has_room_for_unsolicited() && !completions.is_full_of_errors());
        completions.expect_unsolicited();
        completions.push(entry(3));
        assert!(!completions.has_room_for_unsolicited());
        assert!(completions.take_error().is_some() && completions.has_room_for_unsolicited());
    }
}
