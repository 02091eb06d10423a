//! [`IoBuffer`]: application memory, as it comes in through libfabric: raw pointers and lengths.

use std::ptr;
use std::sync::Arc;
use tidegate_flow::{Header, PAYLOAD_BYTES, Packet};
use tidegate_message::{Buffer, Span};

/// One contiguous piece of application memory.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    address: *mut u8,
    length: usize,
}

impl Piece {
    /// `length` bytes at `address`. If `length` is 0, nobody follows the address.
    pub fn new(address: *mut u8, length: usize) -> Self {
        Piece { address, length }
    }

    fn span(self) -> Span {
        Span { address: self.address as u64, length: self.length as u64 }
    }
}

/// Application memory: one piece, which is nearly always so and costs no allocation, or many.
///
/// A value of this type is a promise made in [`from_parts`](Self::from_parts) or [`from_pieces`](Self::from_pieces), so
/// everything else here is safe to call.
#[derive(Debug)]
pub struct IoBuffer(Memory);

#[derive(Debug)]
enum Memory {
    One(Piece),
    Many(Box<Scattered>),
}

/// Pieces and the sum of their lengths.
#[derive(Debug)]
struct Scattered {
    pieces: Box<[Piece]>,
    length: usize,
    /// The memory itself, if it is a copy: then there is one piece, part of this, which nothing writes to.
    copy: Option<Arc<[u8]>>,
}

// SAFETY: the memory belongs to the application, which by the promise of the constructors leaves it alone, whatever
// thread makes progress, until the operation has completed.
unsafe impl Send for IoBuffer {}

impl IoBuffer {
    /// A buffer of no bytes.
    pub fn empty() -> Self {
        IoBuffer(Memory::One(Piece::new(ptr::null_mut(), 0)))
    }

    /// `length` bytes at `address`.
    ///
    /// # Safety
    /// While the buffer or a slice of it exists, the memory must stay mapped, readable, and writable if
    /// [`Buffer::write`] will be called; nobody else may write to it, and if `write` will be called nobody may read it.
    pub unsafe fn from_parts(address: *mut u8, length: usize) -> Self {
        IoBuffer(Memory::One(Piece { address, length }))
    }

    /// The `pieces` in order. Empty ones are dropped.
    ///
    /// # Safety
    /// As for [`from_parts`](Self::from_parts), for each of the pieces.
    pub unsafe fn from_pieces(pieces: impl IntoIterator<Item = Piece>) -> Self {
        Self::gather(pieces.into_iter())
    }

    fn gather(pieces: impl Iterator<Item = Piece>) -> Self {
        let mut pieces = pieces.filter(|piece| piece.length > 0);
        let Some(first) = pieces.next() else { return IoBuffer::empty() };
        let Some(second) = pieces.next() else { return IoBuffer(Memory::One(first)) };
        let pieces: Box<[Piece]> = [first, second].into_iter().chain(pieces).collect();
        let length = pieces.iter().map(|piece| piece.length).sum();
        IoBuffer(Memory::Many(Box::new(Scattered { pieces, length, copy: None })))
    }

    /// For tests: memory of its own with these bytes, in pieces of these lengths, which is never given back.
    #[cfg(test)]
    pub(crate) fn leaked(bytes: &[u8], pieces: &[usize]) -> IoBuffer {
        let mut rest = bytes;
        let pieces: Vec<Piece> = pieces
            .iter()
            .map(|length| {
                let (piece, behind) = rest.split_at(*length);
                rest = behind;
                Piece::new(Box::leak(piece.to_vec().into_boxed_slice()).as_mut_ptr(), *length)
            })
            .collect();
        // SAFETY: nobody but the buffer and its slices knows the memory.
        unsafe { IoBuffer::from_pieces(pieces) }
    }

    /// Memory of its own with so many zero bytes, which is never given back: for programs that measure, whose payloads
    /// nobody looks at, and that need no `unsafe` then.
    pub fn zeros(length: usize) -> IoBuffer {
        let memory = Box::leak(vec![0; length].into_boxed_slice()).as_mut_ptr();
        // SAFETY: nobody but the buffer and its slices knows the memory.
        unsafe { IoBuffer::from_parts(memory, length) }
    }

    fn pieces(&self) -> &[Piece] {
        match &self.0 {
            Memory::One(piece) => std::slice::from_ref(piece),
            Memory::Many(scattered) => &scattered.pieces,
        }
    }

    /// The pieces of `offset..offset + length`, as addresses. Panics when that is not inside the buffer.
    pub(crate) fn spans_of(&self, offset: usize, length: usize) -> impl Iterator<Item = Span> + '_ {
        self.range(offset, length).map(Piece::span)
    }

    /// Copies `length` bytes from `offset` on out of the application's memory. Panics when the buffer has not so many.
    ///
    /// # Safety
    /// `into` must take `length` bytes and not overlap the buffer.
    #[inline(always)]
    pub(crate) unsafe fn copy_out(&self, offset: usize, mut into: *mut u8, length: usize) {
        if let Some(address) = self.in_one_piece(offset, length) {
            // SAFETY: these bytes were promised readable and unchanging at construction, and `into` has room for them.
            return unsafe { copy(address, into, length) };
        }
        for piece in self.range(offset, length) {
            // SAFETY: `range` only yields parts of the pieces promised readable and unchanging at construction,
            // `length` bytes in all, which `into` has room for.
            unsafe {
                ptr::copy_nonoverlapping(piece.address, into, piece.length);
                into = into.add(piece.length);
            }
        }
    }

    /// Copies `length` bytes from `offset` on to the end of `into`. Panics when the buffer has fewer.
    pub(crate) fn append_to(&self, offset: usize, length: usize, into: &mut Vec<u8>) {
        into.reserve(length);
        let spare = into.spare_capacity_mut().as_mut_ptr().cast();
        // SAFETY: there is room for these bytes, which are all written then and are `into`'s alone.
        unsafe {
            self.copy_out(offset, spare, length);
            into.set_len(into.len() + length);
        }
    }

    /// Where `offset..offset + length` lies if the buffer is one piece that has it, which is nearly always so.
    #[inline(always)]
    pub(crate) fn in_one_piece(&self, offset: usize, length: usize) -> Option<*mut u8> {
        match &self.0 {
            Memory::One(piece) if offset <= piece.length && length <= piece.length - offset => {
                Some(piece.address.wrapping_add(offset))
            }
            _ => None,
        }
    }

    /// Copies `length` bytes into the application's memory from `offset` on. Panics when the buffer has not so many.
    ///
    /// # Safety
    /// `from` must have `length` bytes and not overlap the buffer.
    #[inline(always)]
    pub(crate) unsafe fn copy_in(&mut self, offset: usize, mut from: *const u8, length: usize) {
        if let Some(address) = self.in_one_piece(offset, length) {
            // SAFETY: as in `copy_out`; the constructor's caller promised writable memory that nobody else uses.
            return unsafe { copy(from, address, length) };
        }
        for piece in self.range(offset, length) {
            // SAFETY: as in `copy_out`; the constructor's caller promised writable memory that nobody else uses.
            unsafe {
                ptr::copy_nonoverlapping(from, piece.address, piece.length);
                from = from.add(piece.length);
            }
        }
    }

    /// The parts of the pieces that make up `offset..offset + length`. Panics when that is not inside the buffer:
    /// past this check no address outside the promised memory can arise.
    fn range(&self, offset: usize, length: usize) -> impl Iterator<Item = Piece> + '_ {
        let whole = self.len();
        assert!(offset <= whole && length <= whole - offset, "{offset}+{length} is outside a buffer of {whole} bytes");
        let (mut skip, mut left) = (offset, length);
        self.pieces().iter().filter_map(move |piece| {
            let skipped = skip.min(piece.length);
            let taken = (piece.length - skipped).min(left);
            skip -= skipped;
            left -= taken;
            (taken > 0).then(|| Piece { address: piece.address.wrapping_add(skipped), length: taken })
        })
    }
}

/// Copies `length` bytes. So few as most short messages have go in two words, which may overlap: a call costs more.
///
/// # Safety
/// As for [`ptr::copy_nonoverlapping`].
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    if !(8..=16).contains(&length) {
        // SAFETY: the caller's promise.
        return unsafe { ptr::copy_nonoverlapping(from, to, length) };
    }
    // SAFETY: the caller's promise; the first and the last eight of at least eight bytes are among them.
    unsafe {
        let last = length - 8;
        let (first, second) = (from.cast::<u64>().read_unaligned(), from.add(last).cast::<u64>().read_unaligned());
        to.cast::<u64>().write_unaligned(first);
        to.add(last).cast::<u64>().write_unaligned(second);
    }
}

/// Out of line, so that it is not in the way of the buffers that are one piece.
#[cold]
#[inline(never)]
fn drop_pieces(pieces: Box<Scattered>) {
    drop(pieces);
}

impl Buffer for IoBuffer {
    #[inline(always)]
    fn end(self) {
        if let Memory::Many(pieces) = self.0 {
            drop_pieces(pieces);
        }
    }

    #[inline(always)]
    fn len(&self) -> usize {
        match &self.0 {
            Memory::One(piece) => piece.length,
            Memory::Many(scattered) => scattered.length,
        }
    }

    #[inline(always)]
    fn read(&self, offset: usize, into: &mut [u8]) {
        // SAFETY: the slice is as long as is said, and application memory that was handed to us cannot overlap it.
        unsafe { self.copy_out(offset, into.as_mut_ptr(), into.len()) };
    }

    #[inline]
    fn read_packets(&self, offset: usize, header: Header, packets: &mut [Packet]) {
        // Whatever is stored between the stores to a packet keeps the processor from working on the cache lines of
        // several packets at once, so this loop stores nothing else.
        match self.in_one_piece(offset, packets.len() * PAYLOAD_BYTES) {
            Some(address) => {
                for (packet, part) in packets.iter_mut().zip(0..) {
                    // SAFETY: these bytes were promised readable and unchanging at construction.
                    packet.payload = unsafe { address.cast::<[u8; PAYLOAD_BYTES]>().add(part).read() };
                    packet.header = header;
                }
            }
            None => {
                for (packet, index) in packets.iter_mut().zip(0..) {
                    self.read(offset + index * PAYLOAD_BYTES, &mut packet.payload);
                    packet.header = header;
                }
            }
        }
    }

    #[inline(always)]
    fn write(&mut self, offset: usize, from: &[u8]) {
        // SAFETY: as in `read`.
        unsafe { self.copy_in(offset, from.as_ptr(), from.len()) };
    }

    fn spans(&self) -> impl Iterator<Item = Span> {
        self.pieces().iter().copied().map(Piece::span)
    }

    fn slice(&self, offset: usize, len: usize) -> Self {
        match &self.0 {
            Memory::Many(scattered) if scattered.copy.is_some() => {
                let pieces: Box<[Piece]> = self.range(offset, len).collect();
                IoBuffer(Memory::Many(Box::new(Scattered { pieces, length: len, copy: scattered.copy.clone() })))
            }
            _ => IoBuffer::gather(self.range(offset, len)),
        }
    }

    fn copied(&self) -> Self {
        let mut bytes = vec![0; self.len()];
        self.read(0, &mut bytes);
        let copy: Arc<[u8]> = bytes.into();
        let piece = Piece::new(copy.as_ptr().cast_mut(), copy.len());
        IoBuffer(Memory::Many(Box::new(Scattered { pieces: [piece].into(), length: copy.len(), copy: Some(copy) })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three pieces of 3, 0 and 5 bytes over one array.
    fn scattered(bytes: &mut [u8; 10]) -> IoBuffer {
        let base = bytes.as_mut_ptr();
        // SAFETY: the array outlives the buffer in each test and is not touched meanwhile.
        unsafe {
            IoBuffer::from_pieces([Piece::new(base, 3), Piece::new(ptr::null_mut(), 0), Piece::new(base.add(5), 5)])
        }
    }

    #[test]
    fn a_buffer_is_three_words_at_most() {
        assert!(size_of::<IoBuffer>() <= 24);
    }

    #[test]
    fn scattered_memory_reads_and_writes_as_one_range() {
        let mut bytes = [0, 1, 2, 99, 99, 3, 4, 5, 6, 7];
        let mut buffer = scattered(&mut bytes);
        assert_eq!(buffer.len(), 8);
        let mut middle = [0; 4];
        buffer.read(1, &mut middle);
        assert_eq!(middle, [1, 2, 3, 4]);
        buffer.write(2, &[20, 30]);
        assert_eq!(bytes, [0, 1, 20, 99, 99, 30, 4, 5, 6, 7]);
    }

    #[test]
    fn packets_take_the_same_bytes_from_one_piece_and_from_many() {
        let mut bytes: Vec<u8> = (0..=255).collect();
        let header = Header::new(tidegate_flow::PacketKind::Data, PAYLOAD_BYTES, 0);
        let base = bytes.as_mut_ptr();
        // SAFETY: the bytes outlive both buffers and are not touched meanwhile.
        let [one, many] = unsafe {
            [
                IoBuffer::from_pieces([Piece::new(base, 256)]),
                IoBuffer::from_pieces([Piece::new(base, 60), Piece::new(base.add(60), 196)]),
            ]
        };
        for buffer in [one, many] {
            for count in 0..=4 {
                let mut packets = vec![Packet::new(tidegate_flow::PacketKind::Credit, 3, 9); count];
                buffer.read_packets(5, header, &mut packets);
                assert!(packets.iter().all(|packet| packet.header == header));
                let payload: Vec<u8> = packets.iter().flat_map(|packet| packet.payload).collect();
                assert_eq!(payload, (5..5 + 56 * count as u8).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_slice_is_the_same_memory() {
        let mut bytes = [0, 1, 2, 99, 99, 3, 4, 5, 6, 7];
        let buffer = scattered(&mut bytes);
        let mut across = buffer.slice(2, 3);
        assert_eq!(across.spans().map(|span| span.length).collect::<Vec<_>>(), [1, 2]);
        across.write(0, &[8, 8, 8]);
        assert!(matches!(buffer.slice(4, 4).0, Memory::One(_)), "a slice inside one piece needs no list");
        assert_eq!(buffer.slice(8, 0).len(), 0);
        assert_eq!(bytes, [0, 1, 8, 99, 99, 8, 8, 5, 6, 7]);
    }

    #[test]
    fn a_copy_and_its_slices_outlast_the_memory_that_was_copied() {
        let mut bytes = [0, 1, 2, 99, 99, 3, 4, 5, 6, 7];
        let copy = scattered(&mut bytes).copied();
        bytes.fill(0);
        let (middle, whole) = (copy.slice(2, 3), copy.slice(0, 8));
        drop(copy);
        let mut read = [0; 8];
        whole.read(0, &mut read);
        middle.read(0, &mut read[..3]);
        assert_eq!((read, middle.len()), ([2, 3, 4, 3, 4, 5, 6, 7], 3));
        assert_eq!(middle.spans().map(|span| span.length).collect::<Vec<_>>(), [3]);
        assert_eq!(IoBuffer::empty().copied().slice(0, 0).len(), 0);
    }

    #[test]
    #[should_panic(expected = "outside a buffer of 8 bytes")]
    fn reading_past_the_end_panics_before_any_memory_is_touched() {
        let mut bytes = [0; 10];
        scattered(&mut bytes).read(5, &mut [0; 4]);
    }
}
