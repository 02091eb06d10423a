//! [`Slots`]: the memory of operations. While one is under way, the provider below may read or write its slot at any
//! time; nobody else touches it. 64 bytes of each belong to the provider for itself (`FI_CONTEXT2`), and name the
//! operation when it ends.

use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::slice;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::sync::Arc;
use tidegate_link::fabric::Token;

/// Slots of a page.
pub const PER_PAGE: usize = 32;

/// Bytes of a slot that are the provider's own: its first.
const CONTEXT_BYTES: usize = 64;

/// Slots whose memory lies together, and never moves.
struct Page {
    memory: Memory,
    /// What operations on them must give.
    descriptor: *mut c_void,
}

/// The memory of a page: zeros at first, of which only used slots are ever touched.
struct Memory {
    address: NonNull<u8>,
    /// Of a slot.
    bytes: usize,
}

impl Memory {
    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(PER_PAGE * bytes, CONTEXT_BYTES).expect("a few slots of some kilobytes")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was allocated so, once, and the page has no other owner.
        unsafe { dealloc(self.address.as_ptr(), Memory::layout(self.bytes)) };
    }
}

/// Slots, a page at a time.
pub struct Slots {
    /// Most bytes of an operation, so that context and bytes end where the next slot begins.
    data_bytes: usize,
    pages: Vec<Page>,
    /// Where each page lies and its number, by place: each end of an operation looks for one.
    places: Vec<(usize, usize)>,
    /// What is sent from each.
    pub tokens: Vec<Token>,
    /// Memory that is sent instead of the slot's own, for as long as its operation is under way.
    shared: Vec<Option<Arc<Vec<u8>>>>,
    /// Those that no operation uses.
    free: Vec<usize>,
}

/// Memory for a page that is not in use yet.
pub struct NewPage(Memory);

impl NewPage {
    /// The memory, for registration.
    pub fn memory(&self) -> (*const c_void, usize) {
        (self.0.address.as_ptr().cast_const().cast(), PER_PAGE * self.0.bytes)
    }
}

impl Slots {
    /// None yet. Each has room for `bytes`.
    pub fn new(bytes: usize) -> Slots {
        let data_bytes = bytes.next_multiple_of(CONTEXT_BYTES);
        Slots {
            data_bytes,
            pages: Vec::new(),
            places: Vec::new(),
            tokens: Vec::new(),
            shared: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Memory for a page of these slots.
    pub fn new_page(&self) -> NewPage {
        let bytes = CONTEXT_BYTES + self.data_bytes;
        let layout = Memory::layout(bytes);
        // SAFETY: it has bytes.
        let address = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        NewPage(Memory { address, bytes })
    }

    /// Most bytes of an operation.
    pub fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    /// How many there are, in use or not.
    pub fn count(&self) -> usize {
        self.pages.len() * PER_PAGE
    }

    /// Adds a page, of which operations must give this descriptor.
    pub fn add(&mut self, NewPage(memory): NewPage, descriptor: *mut c_void) {
        let (first, place) = (self.count(), memory.address.addr().get());
        let at = self.places.partition_point(|(other, _)| *other < place);
        self.places.insert(at, (place, self.pages.len()));
        self.pages.push(Page { memory, descriptor });
        self.tokens.resize(first + PER_PAGE, Token(0));
        self.shared.resize(first + PER_PAGE, None);
        self.free.extend((first..first + PER_PAGE).rev());
    }

    /// Takes a free slot into use.
    pub fn take(&mut self) -> Option<usize> {
        self.free.pop()
    }

    /// The operation of a slot has ended.
    pub fn give_back(&mut self, slot: usize) {
        debug_assert!(!self.free.contains(&slot));
        self.shared[slot] = None;
        self.free.push(slot);
    }

    /// What the provider is given for a slot: context, data, and the descriptor of its registration.
    pub fn pointers(&self, slot: usize) -> (*mut c_void, *mut c_void, *mut c_void) {
        let Page { memory, descriptor } = &self.pages[slot / PER_PAGE];
        // SAFETY: places within the page.
        unsafe {
            let context = memory.address.as_ptr().add(slot % PER_PAGE * memory.bytes);
            (context.cast(), context.add(CONTEXT_BYTES).cast(), *descriptor)
        }
    }

    /// The same for an operation on memory that the slot shares until it is given back, and that stays as it is until
    /// then. No provider has registered that.
    pub fn share(&mut self, slot: usize, bytes: &Arc<Vec<u8>>) -> (*mut c_void, *mut c_void, *mut c_void) {
        let (context, _, descriptor) = self.pointers(slot);
        (context, self.shared[slot].insert(Arc::clone(bytes)).as_ptr().cast_mut().cast(), descriptor)
    }

    /// The slot of a context, if it is one of ours.
    pub fn find(&self, context: *mut c_void) -> Option<usize> {
        let after = self.places.partition_point(|(place, _)| *place <= context.addr());
        let (place, page) = self.places[after.checked_sub(1)?];
        let offset = context.addr() - place;
        let bytes = CONTEXT_BYTES + self.data_bytes;
        let slot = offset / bytes;
        let is_ours = offset.is_multiple_of(bytes) && slot < PER_PAGE;
        is_ours.then_some(page * PER_PAGE + slot)
    }

    /// Copies a batch into a slot that was taken and is not yet given to the provider.
    pub fn fill(&mut self, slot: usize, batch: &[u8]) {
        assert!(batch.len() <= self.data_bytes, "no batch is longer");
        let (_, data, _) = self.pointers(slot);
        // SAFETY: the slot has room for them, which is ours alone while no operation has it.
        unsafe { ptr::copy_nonoverlapping(batch.as_ptr(), data.cast(), batch.len()) };
    }

    /// # Safety
    /// The slot's operation has ended, and no other has begun in it while the slice lives.
    pub unsafe fn received(&self, slot: usize, length: usize) -> &[u8] {
        let (_, data, _) = self.pointers(slot);
        // SAFETY: promised by the caller; the slot has at least this length.
        unsafe { slice::from_raw_parts(data.cast_const().cast(), length.min(self.data_bytes)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::null_mut;

    #[test]
    fn a_slot_is_found_by_its_context_on_any_page() {
        let mut slots = Slots::new(100);
        assert_eq!(slots.take(), None);
        for _ in 0..5 {
            slots.add(slots.new_page(), null_mut());
        }
        let taken: Vec<usize> = core::iter::from_fn(|| slots.take()).collect();
        assert_eq!(taken.len(), slots.count());
        for slot in taken {
            let (context, data, _) = slots.pointers(slot);
            assert_eq!((slots.find(context), slots.find(data)), (Some(slot), None));
            slots.fill(slot, &[slot as u8]);
            // SAFETY: no operation has begun.
            assert_eq!(unsafe { slots.received(slot, 1) }, [slot as u8]);
        }
    }
}
