//! [`SenderWrites`]: long messages that their senders write, where the network is simulated.

use super::buffer::Medium;
use tidegate_flow::PeerId;

/// A part of a link that only simulated adapters have: the receiver of a long message names its memory, and the sender
/// writes there (L §3.1). A link that has not got it lets receivers read.
pub trait SenderWrites: Medium {
    /// Whether a long message is written into its receiver's memory by its sender, once that memory has been named, as
    /// L §3.1 has it, and not read by its receiver. A job's links agree on that. A link that does so
    /// [admits writes](Self::admit_write).
    fn writes_bulk(&self) -> bool {
        false
    }

    /// Lets `peer` write into `buffer`, by [`write_peer`](crate::PeerMemory::write_peer) to memory of this key, once.
    /// This is asked for only where [`writes_bulk`](Self::writes_bulk).
    fn admit_write(&mut self, _peer: PeerId, _key: u64, _buffer: &Self::Buffer) {}
}
