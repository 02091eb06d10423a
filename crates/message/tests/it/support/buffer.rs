//! Application memory of the endpoints of one job: allocations that know their addresses.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::rc::{Rc, Weak};
use tidegate_message::{Buffer, Span};

/// Memory of one node. Address = id of the allocation in the upper half, offset in the lower.
#[derive(Debug)]
struct Allocation {
    id: u32,
    bytes: RefCell<Vec<u8>>,
}

/// Part of an allocation, possibly scattered. Clones share the memory.
#[derive(Clone)]
pub struct MemoryBuffer {
    allocation: Rc<Allocation>,
    pieces: Vec<Range<usize>>,
}

/// Where the memory is, and a digest of what it holds: enough to tell two states of an endpoint apart.
impl fmt::Debug for MemoryBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = self.allocation.bytes.borrow();
        let bytes = self.pieces.iter().flat_map(|piece| &memory[piece.clone()]);
        let digest = bytes.fold(0u64, |digest, byte| (digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
        write!(f, "{}{:?}={digest:x}", self.allocation.id, self.pieces)
    }
}

impl MemoryBuffer {
    /// All the bytes, gathered.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        self.read(0, &mut bytes);
        bytes
    }

    /// Sets every byte.
    pub fn fill(&mut self, byte: u8) {
        self.write(0, &vec![byte; self.len()]);
    }

    /// The pieces of `offset..offset + len` within the allocation.
    fn ranges(&self, offset: usize, len: usize) -> Vec<Range<usize>> {
        assert!(offset + len <= self.len(), "{offset}+{len} is outside a buffer of {} bytes", self.len());
        let (mut skip, mut left, mut ranges) = (offset, len, Vec::new());
        for piece in &self.pieces {
            let take = left.min(piece.len().saturating_sub(skip));
            if take > 0 {
                ranges.push(piece.start + skip..piece.start + skip + take);
            }
            left -= take;
            skip = skip.saturating_sub(piece.len());
        }
        ranges
    }
}

impl Buffer for MemoryBuffer {
    fn len(&self) -> usize {
        self.pieces.iter().map(Range::len).sum()
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        let (memory, mut done) = (self.allocation.bytes.borrow(), 0);
        for range in self.ranges(offset, into.len()) {
            into[done..done + range.len()].copy_from_slice(&memory[range.clone()]);
            done += range.len();
        }
    }

    fn write(&mut self, offset: usize, from: &[u8]) {
        let (mut memory, mut done) = (self.allocation.bytes.borrow_mut(), 0);
        for range in self.ranges(offset, from.len()) {
            memory[range.clone()].copy_from_slice(&from[done..done + range.len()]);
            done += range.len();
        }
    }

    fn spans(&self) -> impl Iterator<Item = Span> {
        let base = u64::from(self.allocation.id) << 32;
        self.pieces.iter().map(move |piece| Span { address: base + piece.start as u64, length: piece.len() as u64 })
    }

    fn slice(&self, offset: usize, len: usize) -> Self {
        MemoryBuffer { allocation: self.allocation.clone(), pieces: self.ranges(offset, len) }
    }

    /// No peer can name this memory.
    fn copied(&self) -> Self {
        let allocation = Rc::new(Allocation { id: 0, bytes: RefCell::new(self.bytes()) });
        MemoryBuffer { allocation, pieces: std::iter::once(0..self.len()).collect() }
    }
}

/// All memory of a job. Memory that its application dropped can no longer be reached by its address.
#[derive(Debug, Default)]
pub struct Arena {
    allocations: HashMap<u32, (usize, Weak<Allocation>)>,
    next: u32,
}

impl Arena {
    /// A buffer of `node`. `scattered`: in three pieces, not in the order of their addresses, with gaps between.
    pub fn allocate(&mut self, node: usize, contents: &[u8], scattered: bool) -> MemoryBuffer {
        let length = contents.len();
        let third = length / 3;
        let (size, pieces) = if scattered && third > 0 {
            (length + 20, vec![length + 10 - third..length + 10, 5..5 + third, third + 8..length - third + 8])
        } else {
            (length, std::iter::once(0..length).collect())
        };
        self.next += 1;
        let allocation = Rc::new(Allocation { id: self.next, bytes: RefCell::new(vec![0x55; size]) });
        self.allocations.insert(self.next, (node, Rc::downgrade(&allocation)));
        let mut buffer = MemoryBuffer { allocation, pieces };
        buffer.write(0, contents);
        buffer
    }

    /// The memory of `node` at `span`, if it exists.
    pub fn find(&self, node: usize, span: Span) -> Option<MemoryBuffer> {
        let (owner, allocation) = self.allocations.get(&((span.address >> 32) as u32))?;
        let allocation = allocation.upgrade().filter(|_| *owner == node)?;
        let start = (span.address & u64::from(u32::MAX)) as usize;
        let end = start.checked_add(usize::try_from(span.length).ok()?)?;
        let inside = end <= allocation.bytes.borrow().len();
        inside.then(|| MemoryBuffer { allocation, pieces: std::iter::once(start..end).collect() })
    }
}
