//! Frames: the records of a file that grows at its end, in traces (a [`journal`](crate::journal) holds them) and in the
//! samples of recordings.
//!
//! A frame is a byte for its kind, the length of its payload as a number, and the payload. A number has seven bits to a
//! byte, the lowest first, and the highest bit set in all bytes but the last (LEB128). A number that may be negative is
//! folded first: 0, -1, 1, -2 … become 0, 1, 2, 3 … The end of a file may be missing, since its writer may have been
//! killed: a frame that is not whole is none, and what came before it counts.

/// Bytes of the longest number.
pub const NUMBER_MOST: usize = 10;

/// A number as bytes.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    bytes: [u8; NUMBER_MOST],
    length: usize,
}

impl Number {
    /// This number as bytes.
    #[must_use]
    pub fn of(mut value: u64) -> Self {
        let (mut bytes, mut length) = ([0; NUMBER_MOST], 0);
        while value >= 0x80 {
            bytes[length] = value as u8 | 0x80;
            value >>= 7;
            length += 1;
        }
        bytes[length] = value as u8;
        Number { bytes, length: length + 1 }
    }

    /// How far it is from one number to another, modulo 2^64.
    #[must_use]
    pub fn between(from: u64, to: u64) -> Self {
        let by = to.wrapping_sub(from) as i64;
        Number::of(((by << 1) ^ (by >> 63)) as u64)
    }
}

impl core::ops::Deref for Number {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The frame of this kind and payload.
#[must_use]
pub fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[kind], &*Number::of(payload.len() as u64), payload].concat()
}

/// The kind and the payload of the frame with which these bytes begin, and what follows it. `None`: it is not whole.
#[must_use]
pub fn split(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let mut numbers = Numbers(rest);
    let length = usize::try_from(numbers.take()?).ok()?;
    let (payload, rest) = numbers.0.split_at_checked(length)?;
    Some((*kind, payload, rest))
}

/// Takes numbers from the front of these bytes.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a>(pub &'a [u8]);

impl<'a> Numbers<'a> {
    /// The next number. `None`: the bytes end before it does, or it has more than 64 bits.
    pub fn take(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// The number that is so far from this one, see [`Number::between`].
    pub fn take_from(&mut self, from: u64) -> Option<u64> {
        let folded = self.take()?;
        Some(from.wrapping_add((folded >> 1) ^ (folded & 1).wrapping_neg()))
    }

    /// The next bytes as they are.
    pub fn take_bytes<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDGES: [u64; 9] = [0, 1, 127, 128, 16_383, 16_384, 1 << 62, 1 << 63, u64::MAX];

    #[test]
    fn numbers_and_distances_are_read_as_they_were_written() {
        for value in EDGES {
            let bytes = Number::of(value);
            let mut numbers = Numbers(&bytes);
            assert_eq!((numbers.take(), numbers.0), (Some(value), &[][..]));
            assert_eq!(Numbers(&bytes[..bytes.len() - 1]).take(), None, "not whole");
            for from in EDGES {
                assert_eq!(Numbers(&Number::between(from, value)).take_from(from), Some(value), "{from} to {value}");
            }
        }
        assert_eq!((Number::of(127).len(), Number::of(128).len(), Number::of(u64::MAX).len()), (1, 2, NUMBER_MOST));
        assert_eq!((Number::between(9, 8)[0], Number::between(8, 9)[0]), (1, 2));
        assert_eq!(Numbers(&[0x80; 12]).take(), None, "more than 64 bits");
    }

    #[test]
    fn frames_are_read_as_they_were_written_and_none_that_is_not_whole() {
        for length in [0, 1, 127, 128, 300] {
            let payload = vec![7; length];
            let bytes = [frame(3, &payload), frame(4, &[])].concat();
            let (kind, read, rest) = split(&bytes).unwrap();
            assert_eq!((kind, read, split(rest)), (3, &payload[..], Some((4, &[][..], &[][..]))));
            let whole = bytes.len() - 2;
            assert!((0..whole).all(|length| split(&bytes[..length]).is_none()), "{length}");
        }
        let endless = [&[1], &*Number::of(u64::MAX), &[0; 100]].concat();
        assert_eq!(split(&endless), None);
    }
}
