//! [`Slots`]: the memory of operations. While one is under way, the provider below may read or write its slot at any
//! time; nobody else touches it. 64 bytes of each belong to the provider for itself (`FI_CONTEXT2`), and name the
//! operation when it ends.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use tidegate_link::fabric::{LONGEST_BATCH_BYTES, Token};

/// Slots of a page.
pub const PER_PAGE: usize = 32;

/// One operation's memory.
#[repr(C, align(64))]
struct Slot {
    /// The provider's own.
    context: [u64; 8],
    data: [u8; LONGEST_BATCH_BYTES],
}

/// Slots whose memory lies together, and never moves.
struct Page {
    slots: Box<[UnsafeCell<Slot>; PER_PAGE]>,
    /// What operations on them must give.
    descriptor: *mut c_void,
}

/// Slots, a page at a time.
#[derive(Default)]
pub struct Slots {
    pages: Vec<Page>,
    /// Where each page lies and its number, by place: each end of an operation looks for one.
    places: Vec<(usize, usize)>,
    /// What is sent from each.
    pub tokens: Vec<Token>,
    /// Those that no operation uses.
    free: Vec<usize>,
}

/// Memory for a page that is not in use yet.
pub struct NewPage(Box<[UnsafeCell<Slot>; PER_PAGE]>);

impl NewPage {
    /// A page's memory.
    pub fn new() -> NewPage {
        let slot = || UnsafeCell::new(Slot { context: [0; 8], data: [0; LONGEST_BATCH_BYTES] });
        NewPage(Box::new(core::array::from_fn(|_| slot())))
    }

    /// The memory, for registration.
    pub fn memory(&self) -> (*const c_void, usize) {
        (self.0.as_ptr().cast(), size_of_val(&*self.0))
    }
}

impl Slots {
    /// How many there are, in use or not.
    pub fn count(&self) -> usize {
        self.pages.len() * PER_PAGE
    }

    /// Adds a page, of which operations must give this descriptor.
    pub fn add(&mut self, NewPage(slots): NewPage, descriptor: *mut c_void) {
        let (first, place) = (self.count(), slots.as_ptr().addr());
        let at = self.places.partition_point(|(other, _)| *other < place);
        self.places.insert(at, (place, self.pages.len()));
        self.pages.push(Page { slots, descriptor });
        self.tokens.resize(first + PER_PAGE, Token(0));
        self.free.extend((first..first + PER_PAGE).rev());
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

    /// What the provider is given for a slot: context, data, and the descriptor of its registration.
    pub fn pointers(&self, slot: usize) -> (*mut c_void, *mut c_void, *mut c_void) {
        let page = &self.pages[slot / PER_PAGE];
        let slot = page.slots[slot % PER_PAGE].get();
        // SAFETY: places within a slot; no reference is made.
        unsafe { ((&raw mut (*slot).context).cast(), (&raw mut (*slot).data).cast(), page.descriptor) }
    }

    /// The slot of a context, if it is one of ours.
    pub fn find(&self, context: *mut c_void) -> Option<usize> {
        let after = self.places.partition_point(|(place, _)| *place <= context.addr());
        let (place, page) = self.places[after.checked_sub(1)?];
        let offset = context.addr() - place;
        let slot = offset / size_of::<Slot>();
        let is_ours = offset.is_multiple_of(size_of::<Slot>()) && slot < PER_PAGE;
        is_ours.then_some(page * PER_PAGE + slot)
    }

    /// Copies a batch into a slot that was taken and is not yet given to the provider.
    pub fn fill(&mut self, slot: usize, batch: &[u8]) {
        self.pages[slot / PER_PAGE].slots[slot % PER_PAGE].get_mut().data[..batch.len()].copy_from_slice(batch);
    }

    /// # Safety
    /// The slot's operation has ended, and no other has begun in it while the slice lives.
    pub unsafe fn received(&self, slot: usize, length: usize) -> &[u8] {
        // SAFETY: promised by the caller.
        let data = unsafe { &(*self.pages[slot / PER_PAGE].slots[slot % PER_PAGE].get()).data };
        &data[..length.min(LONGEST_BATCH_BYTES)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::null_mut;

    #[test]
    fn a_slot_is_found_by_its_context_on_any_page() {
        let mut slots = Slots::default();
        assert_eq!(slots.take(), None);
        for _ in 0..5 {
            slots.add(NewPage::new(), null_mut());
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
