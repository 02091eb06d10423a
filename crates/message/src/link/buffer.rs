//! [`Buffer`]: application memory, and [`Medium`]: which of it a link knows.

use tidegate_flow::{Header, PAYLOAD_BYTES, Packet};

/// Application memory, as the link's environment knows it: possibly scattered, addressed by an offset from its start.
///
/// Reads and writes outside `0..len()` are clipped by the caller; an implementation may panic on them.
pub trait Buffer: Sized {
    /// Bytes.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Copies `into.len()` bytes from `offset` on out of the application's memory.
    fn read(&self, offset: usize, into: &mut [u8]);
    /// Fills packets with what lies from `offset` on, each with this header.
    #[inline]
    fn read_packets(&self, offset: usize, header: Header, packets: &mut [Packet]) {
        for (packet, index) in packets.iter_mut().zip(0..) {
            self.read(offset + index * PAYLOAD_BYTES, &mut packet.payload);
            packet.header = header;
        }
    }
    /// Copies `from` into the application's memory from `offset` on.
    fn write(&mut self, offset: usize, from: &[u8]);
    /// The pieces, in order.
    fn spans(&self) -> impl Iterator<Item = Span>;
    /// The part `offset..offset + len` as a buffer of its own (same memory).
    fn slice(&self, offset: usize, len: usize) -> Self;
    /// A buffer with the same bytes in memory of its own, which lasts as long as the buffer or a slice of it does: for
    /// an operation that has to wait while the application may use its memory for something else.
    fn copied(&self) -> Self;
    /// Drops it. Most buffers are one piece, for which nothing is to be done; a type can say so here, where it is
    /// inlined, which the compiler does not do with drops that may free memory.
    fn end(self) {}
}

/// Which application memory a link and its parts work with.
pub trait Medium {
    /// Application memory.
    type Buffer: Buffer;
}

/// A contiguous piece of a process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Virtual address in the process that owns it.
    pub address: u64,
    /// Bytes.
    pub length: u64,
}

/// Copies between two buffers of this process.
pub(crate) fn copy<B: Buffer>(from: &B, from_offset: usize, to: &mut B, to_offset: usize, length: usize) {
    let mut chunk = [0; 4096];
    let mut done = 0;
    while done < length {
        let part = &mut chunk[..(length - done).min(4096)];
        from.read(from_offset + done, part);
        to.write(to_offset + done, part);
        done += part.len();
    }
}
