//! What tests of single parts need: memory, and mailboxes that keep what is written.

use crate::link::{Buffer, Span};
use std::cell::RefCell;
use std::rc::Rc;

/// Memory of a test; its slices and clones are the same memory.
#[derive(Clone, Debug)]
pub(crate) struct Bytes {
    all: Rc<RefCell<Vec<u8>>>,
    start: usize,
    length: usize,
}

impl Bytes {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Bytes { all: Rc::new(RefCell::new(bytes.to_vec())), start: 0, length: bytes.len() }
    }
}

impl Buffer for Bytes {
    fn len(&self) -> usize {
        self.length
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        let start = self.start + offset;
        into.copy_from_slice(&self.all.borrow()[start..start + into.len()]);
    }

    fn write(&mut self, offset: usize, from: &[u8]) {
        let start = self.start + offset;
        self.all.borrow_mut()[start..start + from.len()].copy_from_slice(from);
    }

    fn spans(&self) -> impl Iterator<Item = Span> {
        std::iter::once(Span { address: self.start as u64, length: self.length as u64 })
    }

    fn slice(&self, offset: usize, length: usize) -> Self {
        Bytes { all: self.all.clone(), start: self.start + offset, length }
    }
}
