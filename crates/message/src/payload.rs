//! [`Payload`]: the bytes of a message that waits for its receive.
//!
//! As long as all of them are zeros, they are kept as a number. That is for simulated processes, whose memory has no
//! bytes and reads as zeros: a thousand of them would store gigabytes of nothing. Of a real message hardly ever more
//! than the first packet is looked at.

use crate::link::Buffer;

/// As much of a message's payload as has arrived.
#[derive(Debug)]
pub(crate) enum Payload {
    /// So many zeros.
    Zeros(usize),
    /// These bytes.
    Bytes(Vec<u8>),
}

impl Payload {
    /// Adds the part that has come next of a message of `length` bytes.
    #[inline]
    pub(crate) fn append(&mut self, part: &[u8], length: usize) {
        match self {
            Payload::Bytes(bytes) => bytes.extend_from_slice(part),
            Payload::Zeros(count) if is_zero(part) => *count += part.len(),
            Payload::Zeros(count) => {
                let mut bytes = Vec::with_capacity(length);
                bytes.resize(*count, 0);
                bytes.extend_from_slice(part);
                *self = Payload::Bytes(bytes);
            }
        }
    }

    /// Bytes that have arrived.
    pub(crate) fn len(&self) -> usize {
        match self {
            Payload::Zeros(count) => *count,
            Payload::Bytes(bytes) => bytes.len(),
        }
    }

    /// Writes as much of it as the buffer has room for.
    pub(crate) fn write_to<B: Buffer>(&self, buffer: &mut B) {
        const ZEROS: [u8; 256] = [0; 256];
        let fits = self.len().min(buffer.len());
        match self {
            Payload::Bytes(bytes) if fits > 0 => buffer.write(0, &bytes[..fits]),
            Payload::Bytes(_) => {}
            Payload::Zeros(_) => {
                for offset in (0..fits).step_by(ZEROS.len()) {
                    buffer.write(offset, &ZEROS[..(fits - offset).min(ZEROS.len())]);
                }
            }
        }
    }
}

#[inline]
fn is_zero(part: &[u8]) -> bool {
    // Word by word.
    let (words, rest) = part.as_chunks::<8>();
    let any = words.iter().fold(0, |any, word| any | u64::from_ne_bytes(*word));
    any == 0 && rest.iter().all(|&byte| byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bytes;

    #[test]
    fn a_payload_comes_out_as_it_went_in_wherever_its_zeros_are() {
        for (zeros, others) in [(0, 0), (0, 900), (700, 0), (300, 1), (257, 600)] {
            let whole: Vec<u8> = std::iter::repeat_n(0, zeros).chain((0..others).map(|at| at as u8 | 1)).collect();
            let mut payload = Payload::Zeros(0);
            whole.chunks(56).for_each(|part| payload.append(part, whole.len()));
            assert_eq!((payload.len(), matches!(payload, Payload::Zeros(_))), (whole.len(), others == 0));
            for room in [0, 100, 1000] {
                let mut buffer = Bytes::new(&vec![7; room]);
                payload.write_to(&mut buffer);
                let fits = whole.len().min(room);
                assert_eq!(buffer.to_vec(), [&whole[..fits], &vec![7; room - fits]].concat());
            }
        }
    }
}
