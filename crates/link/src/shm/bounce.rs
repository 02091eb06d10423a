//! Bounce buffers: pieces of an endpoint's segment that carry bulk data to its peers. The owner copies a piece of a
//! message in, tells the receiver by a packet, and leaves the bounce buffer alone until the receiver says that it has
//! copied it out; the packets order the accesses (publication is a release, retrieval an acquire). Two copies, but
//! through memory that both caches hold and without a system call: on some processors twice as fast as
//! `process_vm_readv`, which pins and maps every page, on others half as fast.
//!
//! A peer that breaks the rules can garble the data of its own messages, nothing else: bounce buffers are only ever
//! copied as bytes, by raw pointers; no reference to their memory exists.

use super::filling::Filling;
use crate::memory::IoBuffer;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use tidegate_message::Buffer;

/// Bytes of a bounce buffer.
pub(crate) const BOUNCE_BUFFER_BYTES: usize = 32 << 10;

/// Buffers of one size in a segment: its bounce buffers, or its send buffers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferArea {
    memory: NonNull<[AtomicU64]>,
    /// Bytes of each.
    bytes: usize,
}

impl BufferArea {
    /// # Safety
    /// The memory must stay mapped as long as the value or a copy of it is used.
    pub unsafe fn new(memory: NonNull<[AtomicU64]>, bytes: usize) -> Self {
        BufferArea { memory, bytes }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.memory.len() * size_of::<AtomicU64>() / self.bytes
    }

    /// The buffer, if there is one of this number.
    #[inline]
    fn buffer(&self, buffer: usize) -> Option<*mut u8> {
        let base: *mut u8 = self.memory.as_ptr().cast();
        (buffer < self.count()).then(|| base.wrapping_add(buffer * self.bytes))
    }

    /// Whether there is a buffer of this number, and a message of this length fits into it.
    #[inline]
    pub fn holds(&self, buffer: usize, length: usize) -> bool {
        buffer < self.count() && length <= self.bytes
    }

    /// Copies `length` bytes of `from`, from `offset` on, into a buffer. Panics if it does not exist or is smaller.
    #[inline]
    pub fn fill(&self, filling: &mut Filling, buffer: usize, from: &IoBuffer, offset: usize, length: usize) {
        let to = self.buffer(buffer).filter(|_| length <= self.bytes).expect("a buffer of ours");
        if let Some(from) = from.in_one_piece(offset, length) {
            // SAFETY: these bytes were promised readable and unchanging when `from` was made; for the rest, see below.
            return unsafe { filling.copy(from, to, length) };
        }
        // SAFETY: the buffer is mapped and has room for `length` bytes, as just checked; by the protocol nobody
        // else uses it now.
        unsafe { from.copy_out(offset, to, length) };
    }

    /// Copies the first `length` bytes of a buffer to `into`, from `offset` on. `false` if there are none or no room
    /// for them.
    #[inline]
    pub fn drain(&self, buffer: usize, into: &mut IoBuffer, offset: usize, length: usize) -> bool {
        let fits = length <= self.bytes && offset <= into.len() && length <= into.len() - offset;
        let Some(from) = self.buffer(buffer).filter(|_| fits) else { return false };
        // SAFETY: the buffer is mapped and has `length` bytes, as just checked.
        unsafe { into.copy_in(offset, from, length) };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_into_a_bounce_buffer_comes_out_and_others_are_refused() {
        let words: Vec<AtomicU64> = (0..2 * BOUNCE_BUFFER_BYTES / 8).map(|_| AtomicU64::new(0)).collect();
        // SAFETY: the vector outlives the area.
        let area = unsafe { BufferArea::new(NonNull::from(&words[..]), BOUNCE_BUFFER_BYTES) };
        let mut bytes: Vec<u8> = (0..100).collect();
        let mut copy = vec![0; 100];
        // SAFETY: both vectors outlive the buffers and are not used otherwise meanwhile.
        let (from, mut into) =
            unsafe { (IoBuffer::from_parts(bytes.as_mut_ptr(), 100), IoBuffer::from_parts(copy.as_mut_ptr(), 100)) };
        area.fill(&mut Filling::default(), 1, &from, 10, 90);
        assert!(area.drain(1, &mut into, 5, 90));
        assert!(!area.drain(2, &mut into, 0, 1), "there is no third bounce buffer");
        assert!(!area.drain(usize::MAX, &mut into, 0, 1));
        assert!(!area.drain(0, &mut into, 50, 51), "the buffer has no room");
        assert!(!area.drain(0, &mut into, 0, BOUNCE_BUFFER_BYTES + 1));
        assert_eq!(copy[5..95], bytes[10..]);
    }
}
