//! [`Bounce`]: bounce buffers, where processes share memory.

use super::buffer::Medium;
use std::time::Duration;
use tidegate_flow::PeerId;

/// How many bounce buffers an endpoint has, and their size. None by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BounceBuffers {
    /// How many.
    pub count: usize,
    /// Bytes of each.
    pub bytes: usize,
}

/// A part of a link: pieces of our memory that peers can read. A link that has not got it has none.
pub trait Bounce: Medium {
    /// Our bounce buffers: pieces of memory that peers can read, for bulk data on its way to them.
    fn bounce_buffers(&self) -> BounceBuffers {
        BounceBuffers::default()
    }

    /// Copies `length` bytes of `from`, from `offset` on, into our bounce buffer of this number.
    fn fill_bounce_buffer(&mut self, _buffer: usize, _from: &Self::Buffer, _offset: usize, _length: usize) {}

    /// Copies the first `length` bytes of a peer's bounce buffer to `into`, from `offset` on. `false` if the peer has
    /// no such bounce buffer.
    fn drain_bounce_buffer(
        &mut self,
        _peer: PeerId,
        _buffer: usize,
        _into: &mut Self::Buffer,
        _offset: usize,
        _length: usize,
    ) -> bool {
        false
    }

    /// How long all calls of [`drain_bounce_buffer`](Self::drain_bounce_buffer) took so far, together.
    fn time_draining(&self) -> Duration {
        Duration::ZERO
    }
}
