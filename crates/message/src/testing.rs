//! What tests of single parts need: memory, and mailboxes that keep what is written.

use crate::counter::Counters;
use crate::egress::Mailboxes;
use crate::link::{Buffer, Fill, Span, WriteError};
use std::cell::RefCell;
use std::rc::Rc;
use std::slice;
use tidegate_flow::{Packet, PacketKind, PeerId, Placement, Posting};

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

impl Bytes {
    pub(crate) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length];
        self.read(0, &mut bytes);
        bytes
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

    fn copied(&self) -> Self {
        Bytes::new(&self.to_vec())
    }
}

/// Mailboxes that keep what is written, or refuse it.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) packets: Vec<(PeerId, Packet)>,
    pub(crate) refuse: Option<WriteError>,
    /// There is never more than one place.
    pub(crate) has_one_place: bool,
    counters: Counters,
}

impl Mailboxes for Written {
    fn write(&mut self, to: PeerId, count: u32, mut fill: impl Fill) -> Result<u32, WriteError> {
        self.refuse.clone().map_or(Ok(()), Err)?;
        let count = if self.has_one_place { 1 } else { count };
        for _ in 0..count {
            let mut packet = Packet::new(PacketKind::Data, 0, 0);
            fill.fill(slice::from_mut(&mut packet), Placement::default());
            self.packets.push((to, packet));
        }
        Ok(count)
    }

    fn post(&mut self, _posting: Posting) {}

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
