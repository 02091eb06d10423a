//! Memory of simulated processes: [`Part`], [`Memory`] and [`MemoryBuffer`], the application memory that endpoints see.
//!
//! What a flow-control scheme does depends on how long messages are, not on what they say. So by default memory has a
//! length and no bytes: a run at a thousand processes copies no payload and stores none. Where data integrity is to be
//! checked, the same programs run over memory with real bytes.

use std::cell::RefCell;
use std::rc::Rc;

use tidegate_message::{Buffer, Span};

/// A place in the memory of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Part {
    /// Bytes from the start of the process's memory.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

impl Part {
    /// A part of no bytes.
    pub const EMPTY: Part = Part { offset: 0, length: 0 };

    /// `length` bytes from `offset` on. Panics if that is not inside.
    #[must_use]
    pub fn slice(self, offset: u64, length: u64) -> Part {
        assert!(offset + length <= self.length, "{offset}+{length} is outside a part of {} bytes", self.length);
        Part { offset: self.offset + offset, length }
    }

    /// The `index`-th block of `bytes`.
    #[must_use]
    pub fn block(self, index: u32, bytes: u64) -> Part {
        self.slice(u64::from(index) * bytes, bytes)
    }

    /// `count` blocks of `bytes` from the `first` on.
    #[must_use]
    pub fn blocks(self, first: u32, count: u32, bytes: u64) -> Part {
        self.slice(u64::from(first) * bytes, u64::from(count) * bytes)
    }
}

/// Whether memory holds real bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contents {
    /// Lengths only: payload costs neither memory nor copying.
    #[default]
    Lengths,
    /// Real bytes, for tests of data integrity.
    Bytes,
}

/// The memory of one process. Clones are the same memory.
#[derive(Clone, Debug)]
pub struct Memory(Option<Rc<RefCell<Vec<u8>>>>);

impl Memory {
    /// Empty memory.
    #[must_use]
    pub fn new(contents: Contents) -> Self {
        Memory((contents == Contents::Bytes).then(Rc::default))
    }

    /// Makes `part` exist, filled with zeros where it is new.
    pub(crate) fn grow_to(&self, part: Part) {
        let Some(bytes) = &self.0 else { return };
        let end = (part.offset + part.length) as usize;
        if bytes.borrow().len() < end {
            bytes.borrow_mut().resize(end, 0);
        }
    }

    /// The bytes of `part`, if there are any.
    #[must_use]
    pub fn read(&self, part: Part) -> Option<Vec<u8>> {
        let bytes = self.0.as_ref()?.borrow();
        Some(bytes[part.offset as usize..][..part.length as usize].to_vec())
    }

    /// Sets the bytes at the beginning of `part`.
    pub fn write(&self, part: Part, from: &[u8]) {
        assert!(from.len() as u64 <= part.length, "{} bytes do not fit a part of {}", from.len(), part.length);
        if let Some(bytes) = &self.0 {
            bytes.borrow_mut()[part.offset as usize..][..from.len()].copy_from_slice(from);
        }
    }

    /// Copies between two parts of this memory.
    pub(crate) fn copy(&self, from: Part, to: Part) {
        if let Some(bytes) = self.read(from) {
            self.write(to, &bytes);
        }
    }

    /// Adds `from` to `into`, byte by byte and wrapping: an operation of reductions that no order of evaluation
    /// changes.
    pub(crate) fn combine(&self, from: Part, into: Part) {
        if let (Some(left), Some(right)) = (self.read(into), self.read(from)) {
            let sum: Vec<u8> = left.iter().zip(&right).map(|(left, right)| left.wrapping_add(*right)).collect();
            self.write(into, &sum);
        }
    }

    /// The part as endpoints see it.
    pub(crate) fn buffer(&self, part: Part) -> MemoryBuffer {
        MemoryBuffer { memory: self.clone(), part }
    }
}

/// A [`Part`] of a [`Memory`], as endpoints see it.
#[derive(Clone, Debug)]
pub struct MemoryBuffer {
    memory: Memory,
    part: Part,
}

impl MemoryBuffer {
    /// Where it lies.
    #[must_use]
    pub fn part(&self) -> Part {
        self.part
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }
}

impl Buffer for MemoryBuffer {
    #[inline]
    fn len(&self) -> usize {
        self.part.length as usize
    }

    /// Memory without bytes reads as zeros, so that packets hold nothing stale.
    #[inline]
    fn read(&self, offset: usize, into: &mut [u8]) {
        match &self.memory.0 {
            None => into.fill(0),
            Some(bytes) => {
                into.copy_from_slice(&bytes.borrow()[self.part.offset as usize + offset..][..into.len()]);
            }
        }
    }

    #[inline]
    fn write(&mut self, offset: usize, from: &[u8]) {
        if let Some(bytes) = &self.memory.0 {
            bytes.borrow_mut()[self.part.offset as usize + offset..][..from.len()].copy_from_slice(from);
        }
    }

    fn spans(&self) -> impl Iterator<Item = Span> {
        std::iter::once(Span { address: self.part.offset, length: self.part.length })
    }

    fn slice(&self, offset: usize, len: usize) -> Self {
        MemoryBuffer { memory: self.memory.clone(), part: self.part.slice(offset as u64, len as u64) }
    }

    fn copied(&self) -> Self {
        let bytes = self.memory.read(self.part).map(|bytes| Rc::new(RefCell::new(bytes)));
        MemoryBuffer { memory: Memory(bytes), part: Part { offset: 0, length: self.part.length } }
    }
}
