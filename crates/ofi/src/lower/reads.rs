//! [`Reads`]: what the provider below has of each read while it is under way: 64 bytes for itself (`FI_CONTEXT2`),
//! which name the operation when it ends, and the memory into which it writes.
//!
//! An operation's place is used again only after the provider has ended it, so there are as many places as operations
//! have ever been under way at once, which the protocol bounds.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use tidegate_link::IoBuffer;
use tidegate_link::fabric::Token;

/// Operations whose contexts lie together, and never move.
const PER_PAGE: usize = 64;

/// The provider's own.
#[repr(C, align(64))]
struct Context([u64; 8]);

/// An operation under way.
#[derive(Debug)]
struct Operation {
    token: Token,
    /// The provider writes to it until the operation has ended.
    _into: IoBuffer,
}

/// See the module.
#[derive(Default)]
pub struct Reads {
    pages: Vec<Box<[UnsafeCell<Context>; PER_PAGE]>>,
    operations: Vec<Option<Operation>>,
    free: Vec<usize>,
}

impl Reads {
    /// A place for an operation that begins. Returns its number and its context.
    pub fn begin(&mut self, token: Token, into: IoBuffer) -> (usize, *mut c_void) {
        if self.free.is_empty() {
            let first = self.operations.len();
            self.pages.push(Box::new([const { UnsafeCell::new(Context([0; 8])) }; PER_PAGE]));
            self.operations.resize_with(first + PER_PAGE, || None);
            self.free.extend((first..first + PER_PAGE).rev());
        }
        let place = self.free.pop().unwrap_or_default();
        self.operations[place] = Some(Operation { token, _into: into });
        (place, self.pages[place / PER_PAGE][place % PER_PAGE].get().cast())
    }

    /// The operation of a context, if it is one of ours.
    pub fn find(&self, context: *mut c_void) -> Option<usize> {
        self.pages.iter().enumerate().find_map(|(page, contexts)| {
            let offset = context.addr().checked_sub(contexts.as_ptr().addr())?;
            let place = offset / size_of::<Context>();
            let is_ours = offset.is_multiple_of(size_of::<Context>()) && place < PER_PAGE;
            is_ours.then_some(page * PER_PAGE + place)
        })
    }

    /// An operation has ended, or has not begun: its place may go to another. Returns the protocol's name for it.
    pub fn end(&mut self, place: usize) -> Option<Token> {
        let operation = self.operations.get_mut(place)?.take()?;
        self.free.push(place);
        Some(operation.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_found_by_its_context_and_used_again_only_after_its_end() {
        let mut reads = Reads::default();
        let mut begin = |token| reads.begin(Token(token), IoBuffer::empty());
        let all: Vec<_> = (0..100).map(&mut begin).collect();
        for (token, (place, context)) in all.iter().enumerate() {
            assert_eq!(reads.find(*context), Some(*place));
            assert_eq!(reads.find(context.wrapping_byte_add(8)), None);
            assert!(all.iter().filter(|(other, _)| other == place).count() == 1, "{token}");
        }
        assert_eq!((reads.end(all[70].0), reads.end(all[70].0)), (Some(Token(70)), None));
        assert_eq!(reads.pages.len(), 2);
    }
}
