//! Bounce buffers: pieces of an endpoint's segment that carry bulk data to its peers. The owner copies a piece of a
//! message in, tells the receiver by a packet, and leaves the bounce buffer alone until the receiver says that it has
//! copied it out; the packets order the accesses (publication is a release, retrieval an acquire). Two copies, but
//! through memory that both caches hold and without a system call: on some processors twice as fast as
//! `process_vm_readv`, which pins and maps every page, on others half as fast.
//!
//! A peer that breaks the rules can garble the data of its own messages, nothing else: bounce buffers are only ever
//! copied as bytes, by raw pointers; no reference to their memory exists.

use crate::memory::IoBuffer;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use tidegate_message::Buffer;

/// Bytes of a bounce buffer.
pub(crate) const BOUNCE_BUFFER_BYTES: usize = 32 << 10;

/// The bounce buffers of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BounceArea(NonNull<[AtomicU64]>);

impl BounceArea {
    /// # Safety
    /// The memory must stay mapped as long as the value or a copy of it is used.
    pub unsafe fn new(area: NonNull<[AtomicU64]>) -> Self {
        BounceArea(area)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len() * size_of::<AtomicU64>() / BOUNCE_BUFFER_BYTES
    }

    /// The bounce buffer, if there is one of this number.
    fn bounce_buffer(&self, bounce_buffer: usize) -> Option<*mut u8> {
        let base: *mut u8 = self.0.as_ptr().cast();
        (bounce_buffer < self.count()).then(|| base.wrapping_add(bounce_buffer * BOUNCE_BUFFER_BYTES))
    }

    /// Copies `length` bytes of `from`, from `offset` on, into a bounce buffer. Panics if it does not exist or is
    /// smaller.
    pub fn fill(&self, bounce_buffer: usize, from: &IoBuffer, offset: usize, length: usize) {
        let to = self
            .bounce_buffer(bounce_buffer)
            .filter(|_| length <= BOUNCE_BUFFER_BYTES)
            .expect("a bounce buffer of ours");
        // SAFETY: the bounce buffer is mapped and has room for `length` bytes, as just checked; by the protocol nobody
        // else uses it now.
        unsafe { from.copy_out(offset, to, length) };
    }

    /// Copies the first `length` bytes of a bounce buffer to `into`, from `offset` on. `false` if there are none or no
    /// room for them.
    pub fn drain(&self, bounce_buffer: usize, into: &mut IoBuffer, offset: usize, length: usize) -> bool {
        let fits = length <= BOUNCE_BUFFER_BYTES && offset <= into.len() && length <= into.len() - offset;
        let Some(from) = self.bounce_buffer(bounce_buffer).filter(|_| fits) else { return false };
        // SAFETY: the bounce buffer is mapped and has `length` bytes, as just checked.
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
        let area = unsafe { BounceArea::new(NonNull::from(&words[..])) };
        let mut bytes: Vec<u8> = (0..100).collect();
        let mut copy = vec![0; 100];
        // SAFETY: both vectors outlive the buffers and are not used otherwise meanwhile.
        let (from, mut into) =
            unsafe { (IoBuffer::from_parts(bytes.as_mut_ptr(), 100), IoBuffer::from_parts(copy.as_mut_ptr(), 100)) };
        area.fill(1, &from, 10, 90);
        assert!(area.drain(1, &mut into, 5, 90));
        assert!(!area.drain(2, &mut into, 0, 1), "there is no third bounce buffer");
        assert!(!area.drain(usize::MAX, &mut into, 0, 1));
        assert!(!area.drain(0, &mut into, 50, 51), "the buffer has no room");
        assert!(!area.drain(0, &mut into, 0, BOUNCE_BUFFER_BYTES + 1));
        assert_eq!(copy[5..95], bytes[10..]);
    }
}
