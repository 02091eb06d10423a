//! [`Slots`]: the memory of operations. While one is under way, the provider below may read or write its slot at any
//! time; nobody else touches it. 64 bytes of each belong to the provider for itself (`FI_CONTEXT2`), and name the
//! operation when it ends.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use tidegate_link::fabric::{BATCH_BYTES, Token};

/// One operation's memory.
#[repr(C, align(64))]
struct Slot {
    /// The provider's own.
    context: [u64; 8],
    data: [u8; BATCH_BYTES],
}

/// A fixed number of slots.
pub struct Slots {
    slots: Box<[UnsafeCell<Slot>]>,
    /// What is sent from each.
    pub tokens: Vec<Token>,
    /// Those that no operation uses.
    free: Vec<usize>,
}

impl Slots {
    /// So many slots, none in use.
    pub fn new(count: usize) -> Slots {
        let slots = (0..count).map(|_| UnsafeCell::new(Slot { context: [0; 8], data: [0; BATCH_BYTES] })).collect();
        Slots { slots, tokens: vec![Token(0); count], free: (0..count).rev().collect() }
    }

    /// Takes a free slot into use.
    pub fn take(&mut self) -> Option<usize> {
        self.free.pop()
    }

    /// The operation of a slot has ended.
    pub fn give_back(&mut self, slot: usize) {
        debug_assert!(!self.free.contains(&slot));
        self.free.push(slot);
    }

    /// What the provider is given for a slot: context and data.
    pub fn pointers(&self, slot: usize) -> (*mut c_void, *mut c_void) {
        let slot = self.slots[slot].get();
        // SAFETY: places within a slot; no reference is made.
        unsafe { ((&raw mut (*slot).context).cast(), (&raw mut (*slot).data).cast()) }
    }

    /// The slot of a context, if it is one of ours.
    pub fn find(&self, context: *mut c_void) -> Option<usize> {
        let offset = context.addr().checked_sub(self.slots.as_ptr().addr())?;
        let slot = offset / size_of::<Slot>();
        (offset.is_multiple_of(size_of::<Slot>()) && slot < self.slots.len()).then_some(slot)
    }

    /// All the memory, for registration.
    pub fn memory(&self) -> (*const c_void, usize) {
        (self.slots.as_ptr().cast(), size_of_val(&*self.slots))
    }

    /// Copies a batch into a slot that was taken and is not yet given to the provider.
    pub fn fill(&mut self, slot: usize, batch: &[u8]) {
        self.slots[slot].get_mut().data[..batch.len()].copy_from_slice(batch);
    }

    /// # Safety
    /// The slot's operation has ended, and no other has begun in it while the slice lives.
    pub unsafe fn received(&self, slot: usize, length: usize) -> &[u8] {
        // SAFETY: promised by the caller.
        let data = unsafe { &(*self.slots[slot].get()).data };
        &data[..length.min(BATCH_BYTES)]
    }
}
