//! [`ControlSize`]: how long messages of our own kinds may be to a receiver, and how many of them it may have to answer
//! at once.
//!
//! For every peer that may talk a receiver sets memory aside to put one such message together and to keep the answers
//! until they can leave. That is 16 KiB where messages are long enough to be fast: little for 64 peers within 64 MiB,
//! and more than there is for 1,024 within 4 MiB. So a receiver chooses a size that its memory has room for (`memory`),
//! and tells its senders, in the same word as their window ([`told`](ControlSize::told)). Shorter messages are more
//! messages, never another protocol.

use crate::egress::BOUNCED_MOST;
use crate::wire::{BATCH_MOST, ENTRY_BYTES, LARGEST_CONTROL_BYTES, MESSAGE_HEADER_BYTES};
use tidegate_flow::PAYLOAD_BYTES;

/// See the module: a power of two from [`LEAST`](Self::LEAST) to [`MOST`](Self::MOST), by its place among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ControlSize(u8);

/// Bits of a told word that belong to it.
const TOLD_BITS: u32 = 0b111;
/// Bytes of the smallest.
const LEAST_BYTES: usize = 64;
/// The largest.
const LAST: u8 = (LARGEST_CONTROL_BYTES / LEAST_BYTES).ilog2() as u8;
/// Most bytes of operand, and so of result, in one atomic request.
const OPERAND_MOST: usize = 1024;

const _: () = assert!(LEAST_BYTES << LAST == LARGEST_CONTROL_BYTES && (LAST as u32) < TOLD_BITS);

impl ControlSize {
    /// For receivers whose memory has room for no more, and for those that have not said yet.
    pub(crate) const LEAST: ControlSize = ControlSize(0);
    /// The size with which nothing is slower than it need be.
    pub(crate) const MOST: ControlSize = ControlSize(LAST);

    /// All sizes, the largest first.
    pub(crate) fn all() -> impl Iterator<Item = ControlSize> {
        (0..=LAST).rev().map(ControlSize)
    }

    /// Longest body of a message of our own kinds.
    #[inline]
    pub(crate) const fn bytes(self) -> usize {
        LEAST_BYTES << self.0
    }

    /// Payload of a piece of a write or of a read by message: where it is of a read, full packets.
    pub(crate) const fn piece_bytes(self) -> usize {
        (self.bytes() + MESSAGE_HEADER_BYTES) / PAYLOAD_BYTES * PAYLOAD_BYTES - MESSAGE_HEADER_BYTES
    }

    /// Most bytes of operand, and so of result, in one atomic request, which may bring as much to compare with; longer
    /// operations are cut between elements.
    pub(crate) const fn operand_bytes(self) -> usize {
        if self.bytes() / 2 < OPERAND_MOST { self.bytes() / 2 } else { OPERAND_MOST }
    }

    /// Most deferred sends that one notice shows.
    pub(crate) const fn batch(self) -> usize {
        if self.bytes() / ENTRY_BYTES < BATCH_MOST { self.bytes() / ENTRY_BYTES } else { BATCH_MOST }
    }

    /// Most pieces in bounce buffers whose receipts have not left.
    pub(crate) const fn bounced(self) -> usize {
        self.bytes().div_ceil(LARGEST_CONTROL_BYTES / BOUNCED_MOST)
    }

    /// The word of a receiver whose senders have to ask for a session first. No window and size are told so.
    pub(crate) const TOLD_TO_ASK: u32 = TOLD_BITS;

    /// A window and this, as they are told. Windows are multiples of eight bytes.
    pub(crate) fn told(self, window: u32) -> u32 {
        debug_assert!(window & TOLD_BITS == 0, "{window}");
        window | u32::from(self.0)
    }

    /// The window and the size that were told.
    pub(crate) fn of_told(word: u32) -> (u32, ControlSize) {
        (word & !TOLD_BITS, ControlSize((word & TOLD_BITS).min(LAST.into()) as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_is_as_long_as_the_protocol_has_room_for_and_the_smallest_still_does_everything() {
        let most = ControlSize::MOST;
        assert_eq!(
            (most.bytes(), most.piece_bytes(), most.operand_bytes()),
            (LARGEST_CONTROL_BYTES, 4072, OPERAND_MOST)
        );
        assert_eq!((most.batch(), most.bounced()), (BATCH_MOST, BOUNCED_MOST));
        let least = ControlSize::LEAST;
        let largest_element = 32;
        assert_eq!((least.piece_bytes(), least.operand_bytes()), (40, largest_element));
        assert_eq!((least.batch(), least.bounced()), (2, 1));
        assert!(ControlSize::all().is_sorted_by(|one, next| one.bytes() == 2 * next.bytes()));
    }

    #[test]
    fn a_window_and_a_size_come_back_as_they_were_told() {
        for size in ControlSize::all() {
            for window in [8, 312, 1 << 30] {
                assert_eq!(ControlSize::of_told(size.told(window)), (window, size));
            }
        }
        // A hostile peer may tell anything.
        assert_eq!(ControlSize::of_told(u32::MAX), (u32::MAX - 7, ControlSize::MOST));
    }
}
