//! [`EventQueue`]: what is to happen, in order of time, and for equal times in order of scheduling.
//!
//! A binary heap does that too, and costs some fifteen comparisons and as many scattered writes per event. But nearly
//! all events of a network are due within a microsecond, so this is a calendar:
//!
//! * the next `BUCKETS` spans of time, each 2^`shift` ps long (the *width*), are *buckets*: unsorted lists. An event
//!   that falls into one is put at its head, whatever its time: constant work;
//! * when a bucket's turn comes, its list is sorted once into `today`, from which events are taken. An event
//!   scheduled for a time that falls into the span of `today` is put where it belongs;
//! * what is due later than the last bucket waits in a heap, and moves into the buckets as their window moves on.
//!
//! Events that are scheduled for the very time of the last event taken have a queue of their own (`at_once`), because
//! processes that act in step schedule many of them.
//!
//! Equal times: a list is sorted stably from oldest to newest, and what comes out of the heap (which numbers its
//! events) comes into a bucket before anything can be scheduled there directly, because both happen as soon as the
//! window covers it.
//!
//! The width adapts: if buckets hold many events when their turn comes, it is halved; if most are empty, or many events
//! have to wait in the heap, it is doubled. That changes speed only, never the order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::Time;

/// Buckets, a power of two. Their heads fit into the first-level cache.
const BUCKETS: usize = 4096;
const WORDS: usize = BUCKETS / 64;
/// No entry: the end of a list.
const NONE: u32 = u32::MAX;
/// log2 of the picoseconds per bucket to begin with: 4.096 ns, and so a window of 16.8 µs.
const SHIFT_AT_START: u32 = 12;
/// Widths may range from 16 ps to 17 µs. With the largest the window is 69 ms; events that are rarer than that go into
/// the heap, which is quick enough for them.
const SHIFTS: std::ops::RangeInclusive<u32> = 4..=24;
/// The width is reviewed after this number of buckets, or of events from them.
const REVIEW_BUCKETS: u64 = 4_096;
const REVIEW_EVENTS: u64 = 32_768;
/// An event that passes more than `CROWD` others when it is put into `today` is a slow one. After `CROWD` slow ones the
/// width is divided by four at once, before the next review, because nobody knows how long this bucket still lasts.
const CROWD: usize = 64;
/// So many events of a bucket are sorted as they are taken out of it.
const FEW: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    /// When, and what. Together, so that both are moved at once.
    due: (u64, E),
    next: u32,
}

/// An event too far ahead for the calendar, ordered by time, then by the order in which it was scheduled.
#[derive(Clone, Copy, Debug)]
struct Far<E> {
    time: u64,
    number: u64,
    event: E,
}

impl<E> PartialEq for Far<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.time, self.number) == (other.time, other.number)
    }
}

impl<E> Eq for Far<E> {}

impl<E> PartialOrd for Far<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Far<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.number).cmp(&(other.time, other.number))
    }
}

/// Events in order of time; equal times in the order of [`schedule`](Self::schedule). See the module for how.
#[derive(Debug)]
pub struct EventQueue<E> {
    /// Events due at `now` that were scheduled at `now`, and so are behind those of `today` with the same time.
    at_once: VecDeque<E>,
    /// Events of the bucket that is open, latest first.
    today: Vec<(u64, E)>,
    /// The number of the bucket that is open: times `today_number << shift ..`.
    today_number: u64,
    shift: u32,
    /// The newest event of each bucket, as an index into `entries`, by bucket number modulo [`BUCKETS`].
    heads: Box<[u32; BUCKETS]>,
    /// Which buckets have any.
    occupied: [u64; WORDS],
    entries: Vec<Entry<E>>,
    free: u32,
    /// Events in buckets, `today` and `far` not included.
    in_buckets: usize,
    far: BinaryHeap<Reverse<Far<E>>>,
    far_number: u64,
    /// The time of the first of them; `u64::MAX` if there is none.
    far_time: u64,
    /// When the last event taken was due.
    now: u64,
    /// Buckets opened since the last review of the width.
    opened: u64,
    /// The number of the bucket that was open then.
    opened_from: u64,
    /// Events in the buckets opened since then.
    opened_events: u64,
    /// Events that have come out of the heap since then.
    opened_far: u64,
    /// Slow insertions into `today` since then (see [`CROWD`]).
    crowded: usize,
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Copy> EventQueue<E> {
    /// An empty queue, at the start of time.
    #[must_use]
    pub fn new() -> Self {
        EventQueue {
            at_once: VecDeque::new(),
            today: Vec::new(),
            today_number: 0,
            shift: SHIFT_AT_START,
            heads: Box::new([NONE; BUCKETS]),
            occupied: [0; WORDS],
            entries: Vec::new(),
            free: NONE,
            in_buckets: 0,
            far: BinaryHeap::new(),
            far_number: 0,
            far_time: u64::MAX,
            now: 0,
            opened: 0,
            opened_from: 0,
            opened_events: 0,
            opened_far: 0,
            crowded: 0,
        }
    }

    /// Events that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.at_once.len() + self.today.len() + self.in_buckets + self.far.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.at_once.capacity() * size_of::<E>()
            + self.today.capacity() * size_of::<(u64, E)>()
            + size_of_val(&*self.heads)
            + self.entries.capacity() * size_of::<Entry<E>>()
            + self.far.capacity() * size_of::<Far<E>>()
    }

    /// Puts `event` at `time`, behind all that are already there at that time. The time must not be before that of
    /// the last event taken: nothing happens in the past.
    #[inline]
    pub fn schedule(&mut self, time: Time, event: E) {
        debug_assert!(time.0 >= self.now, "an event at {time} was scheduled at {}", Time(self.now));
        if time.0 == self.now {
            self.put_at_once(event);
        } else {
            self.put(time.0, event);
        }
    }

    /// Out of line, as everything that is rare: so the common way needs no registers to be saved.
    #[inline(never)]
    fn put_at_once(&mut self, event: E) {
        self.at_once.push_back(event);
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        if !self.at_once.is_empty() && self.today.last().is_none_or(|&(time, _)| time > self.now) {
            return self.at_once.pop_front().map(|event| (Time(self.now), event));
        }
        if self.today.is_empty() && !self.open_next() {
            return None;
        }
        let (time, event) = self.today.pop()?;
        self.now = time;
        Some((Time(time), event))
    }

    /// The time of the next event.
    #[inline]
    pub fn next_time(&mut self) -> Option<Time> {
        if !self.at_once.is_empty() {
            return Some(Time(self.now));
        }
        if self.today.is_empty() && !self.open_next() {
            return None;
        }
        self.today.last().map(|&(time, _)| Time(time))
    }

    #[inline]
    fn put(&mut self, time: u64, event: E) {
        let number = time >> self.shift;
        let ahead = number.wrapping_sub(self.today_number);
        if ahead.wrapping_sub(1) >= BUCKETS as u64 - 1 {
            self.put_elsewhere(number, time, event);
        } else if self.free == NONE {
            self.put_into_new_entry(number, time, event);
        } else {
            self.put_into_bucket(number, time, event);
        }
    }

    #[cold]
    #[inline(never)]
    fn put_into_new_entry(&mut self, number: u64, time: u64, event: E) {
        self.free = self.entries.len() as u32;
        self.entries.push(Entry { due: (time, event), next: NONE });
        self.put_into_bucket(number, time, event);
    }

    #[inline(never)]
    fn put_elsewhere(&mut self, number: u64, time: u64, event: E) {
        if number <= self.today_number {
            self.put_into_today(time, event);
        } else {
            self.far_number += 1;
            self.far.push(Reverse(Far { time, number: self.far_number, event }));
            self.far_time = self.far_time.min(time);
        }
    }

    #[inline]
    fn put_into_today(&mut self, time: u64, event: E) {
        // Behind all of equal time, which means: before them in a list that is taken from the end.
        let mut position = self.today.len();
        while position > 0 && self.today[position - 1].0 <= time {
            position -= 1;
        }
        let passed = self.today.len() - position;
        self.today.insert(position, (time, event));
        if passed > CROWD && self.today[self.today.len() - 1].0 < time {
            self.thin_out();
        }
    }

    /// There is a free entry.
    #[inline]
    fn put_into_bucket(&mut self, number: u64, time: u64, event: E) {
        let bucket = number as usize % BUCKETS;
        let index = self.free;
        let place = &mut self.entries[index as usize];
        self.free = place.next;
        *place = Entry { due: (time, event), next: self.heads[bucket] };
        self.heads[bucket] = index;
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
        self.in_buckets += 1;
    }

    /// Moves on to the next bucket that has events. `false` if none are left at all.
    fn open_next(&mut self) -> bool {
        if self.opened >= REVIEW_BUCKETS || self.opened_events >= REVIEW_EVENTS {
            self.review_width();
            if !self.today.is_empty() {
                return true;
            }
        }
        let number = match self.next_occupied() {
            Some(number) => number,
            None => match self.far.peek() {
                Some(Reverse(far)) => far.time >> self.shift,
                None => return false,
            },
        };
        self.today_number = number;
        self.pull_from_far();
        self.take_bucket(number as usize % BUCKETS);
        true
    }

    /// The number of the first bucket behind the open one that has events.
    #[inline]
    fn next_occupied(&self) -> Option<u64> {
        if self.in_buckets == 0 {
            return None;
        }
        let start = (self.today_number as usize + 1) % BUCKETS;
        let in_first_word = self.occupied[start / 64] & (u64::MAX << (start % 64));
        let bucket = if in_first_word != 0 {
            start / 64 * 64 + in_first_word.trailing_zeros() as usize
        } else {
            let word = (1..=WORDS).map(|step| (start / 64 + step) % WORDS).find(|&word| self.occupied[word] != 0)?;
            word * 64 + self.occupied[word].trailing_zeros() as usize
        };
        let steps = bucket.wrapping_sub(start) % BUCKETS;
        Some(self.today_number + 1 + steps as u64)
    }

    /// The window moved: events far ahead that it covers now go into their buckets.
    #[inline]
    fn pull_from_far(&mut self) {
        let window = self.today_number.saturating_add(BUCKETS as u64);
        if self.far_time >> self.shift < window {
            self.pull_before(window);
        }
    }

    /// Moves events out of the heap into buckets with numbers below `window`.
    #[inline(never)]
    fn pull_before(&mut self, window: u64) {
        while let Some(&Reverse(far)) = self.far.peek() {
            let number = far.time >> self.shift;
            if number >= window {
                break;
            }
            self.far.pop();
            self.opened_far += 1;
            if self.free == NONE {
                self.put_into_new_entry(number, far.time, far.event);
            } else {
                self.put_into_bucket(number, far.time, far.event);
            }
        }
        self.far_time = self.far.peek().map_or(u64::MAX, |Reverse(far)| far.time);
    }

    /// Sorts a bucket into `today`, the latest first, and of equal times the newest first.
    #[inline]
    fn take_bucket(&mut self, bucket: usize) {
        let mut index = std::mem::replace(&mut self.heads[bucket], NONE);
        self.occupied[bucket / 64] &= !(1 << (bucket % 64));
        // The list runs from the newest to the oldest, and the sort is stable: among equals the oldest is last, so
        // taken first. Few events are sorted as they come.
        while index != NONE {
            let entry = &mut self.entries[index as usize];
            let due = entry.due;
            let next = std::mem::replace(&mut entry.next, self.free);
            self.free = index;
            index = next;
            let mut place = self.today.len();
            self.today.push(due);
            while place > 0 && place < FEW && self.today[place - 1].0 < due.0 {
                self.today.swap(place - 1, place);
                place -= 1;
            }
        }
        if self.today.len() > FEW {
            self.today.sort_by_key(|&(time, _)| Reverse(time));
        }
        self.in_buckets -= self.today.len();
        self.opened += 1;
        self.opened_events += self.today.len() as u64;
    }

    /// Chooses the width anew if the buckets since the last review held too many events or too few, or if too many
    /// events had to wait in the heap.
    #[cold]
    fn review_width(&mut self) {
        let passed = (self.today_number - self.opened_from).max(1);
        let (events, far) = (self.opened_events, self.opened_far);
        let shift = if events < passed || (far * 8 > events && events < 32 * passed) {
            self.shift + 1
        } else if events > 6 * passed && far * 64 < events {
            self.shift - 1
        } else {
            self.shift
        };
        self.change_width(shift);
    }

    /// Counts a slow insertion into `today`, and narrows the buckets after [`CROWD`] of them.
    #[cold]
    fn thin_out(&mut self) {
        self.crowded += 1;
        if self.crowded == CROWD {
            self.change_width(self.shift - 2);
        }
    }

    /// Puts all events that are not far into buckets of another width, as far as widths go.
    fn change_width(&mut self, shift: u32) {
        let shift = shift.clamp(*SHIFTS.start(), *SHIFTS.end());
        if shift != self.shift {
            let mut events: Vec<_> = self.today.drain(..).rev().collect();
            while let Some(number) = self.next_occupied() {
                self.today_number = number;
                self.take_bucket(number as usize % BUCKETS);
                events.extend(self.today.drain(..).rev());
            }
            self.today_number = self.now >> shift;
            self.shift = shift;
            let open = events.partition_point(|&(time, _)| time >> shift <= self.today_number);
            events.drain(open..).for_each(|(time, event)| self.put(time, event));
            self.today.extend(events.drain(..).rev());
            // What was far was later than all of them, and stays behind them.
            self.pull_from_far();
        }
        self.opened = 0;
        self.opened_from = self.today_number;
        self.opened_events = 0;
        self.opened_far = 0;
        self.crowded = 0;
    }
}

#[cfg(test)]
mod tests;
