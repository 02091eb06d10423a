//! How bytes get into a buffer that a peer reads: through the caches, or past them.
//!
//! A line that the peer's cache holds has to be taken away from it before it can be written, and a processor does that
//! line by line: some 9 ns each between near cores, 31 ns between far ones, next to nothing where both processes run on
//! one core. Stores past the caches (`movnti` and its like) wait for none of this, and take some 5 ns a line, but the
//! first of them arrives 0.5 µs later. So what is better follows from the length and from what a line costs, which is
//! measured: of one message in a number of them the first lines go through the caches and are timed. Where the host
//! moves a virtual machine's processors, that changes from minute to minute.

use crate::clock;
use std::ptr;
use std::sync::atomic::{Ordering, fence};

/// Bytes of a cache line.
const LINE: usize = 64;
/// Lines that are timed at a time. Shorter messages go through the caches.
const TIMED: usize = 16;
/// How many messages go through the caches until the next is timed, and how many past them.
const BETWEEN: (u32, u32) = (16, 64);
/// Times are in tenths of nanoseconds from here on. The cost of a line past the caches, and by how much the first line
/// arrives later.
const PAST_LINE: u32 = 50;
const PAST_DELAY: u32 = 5500;
/// The cost of a line as long as nothing was measured: that between near cores.
const UNMEASURED: u32 = 90;
/// An interrupted process measures anything: no more than this is believed.
const LINE_MOST: u32 = 600;

/// The cost of a line in the buffers that one peer reads, or several.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filling {
    cost: u32,
    /// The last measurement. One that is interrupted is likely next to one that is not: the less of two counts.
    last: u32,
    until_timed: u32,
}

impl Default for Filling {
    fn default() -> Self {
        Filling { cost: UNMEASURED, last: UNMEASURED, until_timed: 0 }
    }
}

impl Filling {
    /// Whether a message of this number of lines is better stored past the caches.
    #[inline]
    fn goes_past(&self, lines: usize) -> bool {
        cfg!(target_arch = "x86_64") && (self.cost.saturating_sub(PAST_LINE) as usize) * lines > PAST_DELAY as usize
    }

    /// Notes the time that `TIMED` lines have taken through the caches.
    fn note(&mut self, nanoseconds: u64) {
        let line = (nanoseconds.saturating_mul(10) / TIMED as u64).min(LINE_MOST.into()) as u32;
        let sure = line.min(self.last);
        self.last = line;
        self.cost = (3 * self.cost + sure) / 4;
    }

    /// Copies `length` bytes.
    ///
    /// # Safety
    /// As for [`ptr::copy_nonoverlapping`]; `to` is the start of a cache line.
    #[inline]
    pub unsafe fn copy(&mut self, from: *const u8, to: *mut u8, length: usize) {
        match length / LINE < TIMED {
            // SAFETY: the caller's promise.
            true => unsafe { ptr::copy_nonoverlapping(from, to, length) },
            // SAFETY: the caller's promise; the message has as many lines.
            false => unsafe { self.copy_long(from, to, length) },
        }
    }

    /// Copies a message of at least `TIMED` lines. A function of its own, so that a count of instructions can leave it
    /// out: which way it goes depends on the time.
    ///
    /// # Safety
    /// As for [`Filling::copy`]; the message has at least `TIMED` lines.
    #[inline(never)]
    unsafe fn copy_long(&mut self, from: *const u8, to: *mut u8, length: usize) {
        let lines = length / LINE;
        let mut done = 0;
        if self.until_timed == 0 {
            let asked = clock::now();
            let begun = clock::now();
            done = TIMED * LINE;
            // SAFETY: the caller's promise; the message has as many lines.
            unsafe { ptr::copy_nonoverlapping(from, to, done) };
            // Without this the processor may still have all stores before it.
            fence(Ordering::SeqCst);
            // The clock takes its time as well, and on some machines a lot.
            let took = clock::now().since(begun).saturating_sub(begun.since(asked));
            self.note(took.as_nanos() as u64);
            self.until_timed = if self.goes_past(lines) { BETWEEN.1 } else { BETWEEN.0 };
        } else {
            self.until_timed -= 1;
        }
        // SAFETY: the caller's promise; what is done is a number of whole lines, and no more than there are.
        unsafe {
            let (from, to, length) = (from.add(done), to.add(done), length - done);
            match self.goes_past(lines) {
                true => copy_past(from, to, length),
                false => ptr::copy_nonoverlapping(from, to, length),
            }
        }
    }
}

/// Copies past the caches; all of it has arrived when this returns.
///
/// # Safety
/// As for [`Filling::copy`].
#[cfg(target_arch = "x86_64")]
unsafe fn copy_past(from: *const u8, to: *mut u8, length: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const PARTS: usize = LINE / size_of::<__m128i>();
    let lines = length / LINE;
    // SAFETY: the caller's promise; every x86-64 has these instructions, and the target of each is aligned.
    unsafe {
        for line in 0..lines {
            let (from, to) = (from.add(line * LINE).cast::<__m128i>(), to.add(line * LINE).cast::<__m128i>());
            let parts: [__m128i; PARTS] = std::array::from_fn(|part| _mm_loadu_si128(from.add(part)));
            for (part, value) in parts.into_iter().enumerate() {
                _mm_stream_si128(to.add(part), value);
            }
        }
        ptr::copy_nonoverlapping(from.add(lines * LINE), to.add(lines * LINE), length - lines * LINE);
        // The packet that names the data is stored after this, and must not be seen before the data.
        _mm_sfence();
    }
}

/// # Safety
/// As for [`Filling::copy`].
#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_past(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the caller's promise.
    unsafe { ptr::copy_nonoverlapping(from, to, length) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(line: u64) -> Filling {
        let mut filling = Filling::default();
        (0..40).for_each(|_| filling.note(line * TIMED as u64));
        filling
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn far_cores_pass_the_caches_from_2_kib_on_near_ones_from_16_kib_and_one_core_never() {
        for (line, first) in [(31, 2 << 10), (9, 16 << 10), (1, usize::MAX)] {
            let filling = measured(line);
            for bytes in (10..=21).map(|shift| 1_usize << shift) {
                assert_eq!(filling.goes_past(bytes / LINE), bytes >= first, "{bytes} bytes at {line} ns");
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn one_measurement_that_was_interrupted_changes_nothing() {
        let mut filling = measured(9);
        for _ in 0..10 {
            filling.note(1_000_000);
            assert!(!filling.goes_past((2 << 10) / LINE));
            filling.note(9 * TIMED as u64);
        }
        (0..20).for_each(|_| filling.note(31 * TIMED as u64));
        assert!(filling.goes_past((2 << 10) / LINE), "cores that have moved are found out");
    }

    #[test]
    fn all_bytes_arrive_by_either_way_and_none_beside_them() {
        #[repr(align(64))]
        struct Lines([u8; 9000]);
        let from: Vec<u8> = (0..9000_u32).map(|at| (at % 251) as u8).collect();
        for mut filling in [measured(1), measured(60)] {
            for length in [0, 1, 63, 64, 1023, 1024, 1025, 2048, 4095, 4096, 8191] {
                for _ in 0..BETWEEN.1 + 2 {
                    let mut to = Lines([255; 9000]);
                    // SAFETY: both memories have that many bytes, and are apart.
                    unsafe { filling.copy(from[3..].as_ptr(), to.0.as_mut_ptr(), length) };
                    assert!(to.0[..length] == from[3..3 + length] && to.0[length..].iter().all(|&byte| byte == 255));
                }
            }
        }
    }
}
