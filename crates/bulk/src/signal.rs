//! [`Signal`]: the small messages by which nodes agree, and their bytes.

use crate::Node;

/// What one node tells another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// `tokens`: whoever gets it alone may send to `of` (B §3.1).
    Token {
        /// The receiver whose token it is.
        of: Node,
    },
    /// `tokens`: the receiver's own token had been passed to `lost`, which is gone: the receiver has to issue it again.
    Stranded {
        /// Who had it.
        lost: Node,
    },
    /// `receiver_tokens`: the sender would like to send a piece (B §3.2).
    Request,
    /// `receiver_tokens`: it may now.
    Grant,
    /// `booking`: a sender would like a round, from `base` on those whose bits in `free` are set (B §4.3).
    Book {
        /// The round of the lowest bit.
        base: u64,
        /// 1 = free.
        free: u64,
    },
    /// `booking`: the sender alone sends to this receiver in `round`.
    Booked {
        /// Which one.
        round: u64,
    },
    /// `booking`: no round is free on both sides.
    Denied,
    /// `booking` with fewer barriers than rounds: the sender may begin `round`, its receiver is free (B §5.1).
    Begin {
        /// Which one.
        round: u64,
    },
}

/// Bytes of a signal.
pub const SIGNAL_BYTES: usize = 24;

impl Signal {
    fn words(self) -> [u64; 3] {
        match self {
            Signal::Token { of } => [1, of.0.into(), 0],
            Signal::Stranded { lost } => [2, lost.0.into(), 0],
            Signal::Request => [3, 0, 0],
            Signal::Grant => [4, 0, 0],
            Signal::Book { base, free } => [5, base, free],
            Signal::Booked { round } => [6, round, 0],
            Signal::Denied => [7, 0, 0],
            Signal::Begin { round } => [8, round, 0],
        }
    }

    /// Its bytes: three words, the lowest byte of each first.
    #[must_use]
    pub fn emit(self) -> [u8; SIGNAL_BYTES] {
        let mut bytes = [0; SIGNAL_BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(self.words()) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The signal of some bytes, none if they are not those of one.
    #[must_use]
    pub fn parse(bytes: &[u8; SIGNAL_BYTES]) -> Option<Signal> {
        let word = |place: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&bytes[place * 8..place * 8 + 8]);
            u64::from_le_bytes(eight)
        };
        let node = || u32::try_from(word(1)).ok().map(Node);
        let signal = match word(0) {
            1 => Signal::Token { of: node()? },
            2 => Signal::Stranded { lost: node()? },
            3 => Signal::Request,
            4 => Signal::Grant,
            5 => Signal::Book { base: word(1), free: word(2) },
            6 => Signal::Booked { round: word(1) },
            7 => Signal::Denied,
            8 => Signal::Begin { round: word(1) },
            _ => return None,
        };
        (signal.emit() == *bytes).then_some(signal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_can_be_read_is_written_the_same(first in 0_u64..12, second: u64, third: u64) {
            for words in [[first, second, third], [first, second & 0xffff, 0], [first, 0, 0]] {
                let mut bytes = [0; SIGNAL_BYTES];
                for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
                    place.copy_from_slice(&word.to_le_bytes());
                }
                let signal = Signal::parse(&bytes);
                prop_assert!(signal.is_none_or(|signal| signal.emit() == bytes));
                let known = (1..=8).contains(&words[0]);
                let fits = words[1] == 0 && words[2] == 0;
                prop_assert!(!fits || signal.is_some() == known, "{words:?}");
            }
        }
    }
}
