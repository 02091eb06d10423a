//! [`Record`]: what a process says of its messages, and how that looks as bytes.
//!
//! A record is a byte for its kind and numbers of variable length, seven bits to a byte, the lowest first. Operations
//! have numbers in the order in which the application started them; a record has the distance to the number that stood
//! in the last one. Peers are numbered in the order in which they are introduced.

use tidegate_link::Address;

/// What a process says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// It has opened another endpoint, the next in order, which what follows is about.
    Opened([u8; Address::BYTES]),
    /// What follows is about this endpoint.
    Endpoint(u64),
    /// A peer, the next in order; or an endpoint of its own that it sends to.
    Peer([u8; Address::BYTES]),
    /// It has computed for so many nanoseconds.
    Compute(u64),
    /// It starts to send.
    Send {
        /// Number of the operation.
        number: u64,
        /// Where to, and what.
        message: Message,
    },
    /// It posts a receive.
    Receive {
        /// Number of the operation.
        number: u64,
    },
    /// It posts a receive that takes many messages.
    Buffer {
        /// Number of the operation.
        number: u64,
    },
    /// A receive has got its message, or a buffer one of its messages. The application does not know yet.
    Met {
        /// Number of the operation.
        number: u64,
        /// Where from, and what.
        message: Message,
    },
    /// The application has learned that an operation is over: a send, a receive, or the next message of a buffer.
    Read {
        /// Number of the operation.
        number: u64,
    },
    /// It has read or written memory of a peer, or changed it atomically.
    Remote {
        /// Bytes moved.
        bytes: u64,
    },
}

/// A message, as one end sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// Number of the peer at the other end.
    pub peer: u64,
    /// Its length.
    pub bytes: u64,
    /// Its tag; `None`: it has none.
    pub tag: Option<u64>,
}

/// Bytes of the longest record.
const LONGEST: usize = 1 + 4 * 10;
const _: () = assert!(LONGEST > Address::BYTES);

/// Kinds of records, as bytes.
mod kind {
    pub const OPENED: u8 = 1;
    pub const ENDPOINT: u8 = 2;
    pub const PEER: u8 = 3;
    pub const COMPUTE: u8 = 4;
    pub const SEND: u8 = 5;
    pub const SEND_UNTAGGED: u8 = 6;
    pub const RECEIVE: u8 = 7;
    pub const BUFFER: u8 = 8;
    pub const MET: u8 = 9;
    pub const MET_UNTAGGED: u8 = 10;
    pub const READ: u8 = 11;
    pub const REMOTE: u8 = 12;
}

/// Turns records into bytes.
#[derive(Debug, Default)]
pub struct Encoder {
    last: u64,
}

/// A record as bytes.
#[derive(Debug)]
pub struct Encoded {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Encoded {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn byte(mut self, byte: u8) -> Self {
        self.bytes[self.length] = byte;
        self.length += 1;
        self
    }

    fn number(mut self, mut value: u64) -> Self {
        while value >= 0x80 {
            self = self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8)
    }

    fn address(mut self, address: &[u8; Address::BYTES]) -> Self {
        self.bytes[self.length..][..Address::BYTES].copy_from_slice(address);
        self.length += Address::BYTES;
        self
    }

    fn message(self, message: &Message) -> Self {
        let before = self.number(message.peer).number(message.bytes);
        match message.tag {
            Some(tag) => before.number(tag),
            None => before,
        }
    }
}

impl Encoder {
    /// The next record as bytes.
    pub fn encode(&mut self, record: &Record) -> Encoded {
        let begin = |kind: u8| Encoded { bytes: [0; LONGEST], length: 0 }.byte(kind);
        let tagged = |message: &Message, with: u8, without: u8| if message.tag.is_some() { with } else { without };
        match record {
            Record::Opened(address) => begin(kind::OPENED).address(address),
            Record::Endpoint(endpoint) => begin(kind::ENDPOINT).number(*endpoint),
            Record::Peer(address) => begin(kind::PEER).address(address),
            Record::Compute(nanoseconds) => begin(kind::COMPUTE).number(*nanoseconds),
            Record::Send { number, message } => {
                let kind = tagged(message, kind::SEND, kind::SEND_UNTAGGED);
                begin(kind).number(self.distance(*number)).message(message)
            }
            Record::Receive { number } => begin(kind::RECEIVE).number(self.distance(*number)),
            Record::Buffer { number } => begin(kind::BUFFER).number(self.distance(*number)),
            Record::Met { number, message } => {
                let kind = tagged(message, kind::MET, kind::MET_UNTAGGED);
                begin(kind).number(self.distance(*number)).message(message)
            }
            Record::Read { number } => begin(kind::READ).number(self.distance(*number)),
            Record::Remote { bytes } => begin(kind::REMOTE).number(*bytes),
        }
    }

    /// How far a number is from the last one: forward as even numbers, backward as odd ones.
    fn distance(&mut self, number: u64) -> u64 {
        let distance = number.wrapping_sub(self.last) as i64;
        self.last = number;
        ((distance << 1) ^ (distance >> 63)) as u64
    }
}

/// Turns bytes into records.
#[derive(Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
    last: u64,
}

/// These bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl<'a> Decoder<'a> {
    /// The records in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Decoder { rest: bytes, last: 0 }
    }

    fn record(&mut self) -> Option<Record> {
        Some(match self.byte()? {
            kind::OPENED => Record::Opened(self.address()?),
            kind::ENDPOINT => Record::Endpoint(self.number()?),
            kind::PEER => Record::Peer(self.address()?),
            kind::COMPUTE => Record::Compute(self.number()?),
            kind::SEND => Record::Send { number: self.operation()?, message: self.message(true)? },
            kind::SEND_UNTAGGED => Record::Send { number: self.operation()?, message: self.message(false)? },
            kind::RECEIVE => Record::Receive { number: self.operation()? },
            kind::BUFFER => Record::Buffer { number: self.operation()? },
            kind::MET => Record::Met { number: self.operation()?, message: self.message(true)? },
            kind::MET_UNTAGGED => Record::Met { number: self.operation()?, message: self.message(false)? },
            kind::READ => Record::Read { number: self.operation()? },
            kind::REMOTE => Record::Remote { bytes: self.number()? },
            _ => return None,
        })
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn operation(&mut self) -> Option<u64> {
        let folded = self.number()?;
        let distance = (folded >> 1) as i64 ^ -((folded & 1) as i64);
        self.last = self.last.wrapping_add(distance as u64);
        Some(self.last)
    }

    fn message(&mut self, is_tagged: bool) -> Option<Message> {
        let (peer, bytes) = (self.number()?, self.number()?);
        let tag = if is_tagged { Some(self.number()?) } else { None };
        Some(Message { peer, bytes, tag })
    }

    fn address(&mut self) -> Option<[u8; Address::BYTES]> {
        let (address, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*address)
    }
}

impl Iterator for Decoder<'_> {
    type Item = Result<Record, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let record = self.record().ok_or(Malformed);
        if record.is_err() {
            self.rest = &[];
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        let far = Message { peer: u64::MAX, bytes: u64::MAX, tag: Some(u64::MAX) };
        let near = Message { peer: 0, bytes: 127, tag: None };
        let records = [
            Record::Opened([7; Address::BYTES]),
            Record::Endpoint(3),
            Record::Peer([9; Address::BYTES]),
            Record::Compute(1 << 40),
            Record::Send { number: 5, message: near },
            Record::Receive { number: 6 },
            Record::Buffer { number: 2 },
            Record::Met { number: u64::MAX, message: far },
            Record::Met { number: 0, message: near },
            Record::Send { number: 7, message: far },
            Record::Read { number: 6 },
            Record::Remote { bytes: 0 },
        ];
        let mut encoder = Encoder::default();
        let bytes: Vec<u8> = records.iter().flat_map(|record| encoder.encode(record).bytes().to_vec()).collect();
        let read: Vec<Record> = Decoder::new(&bytes).map(Result::unwrap).collect();
        assert_eq!(read, records);
    }

    #[test]
    fn what_is_no_record_ends_the_reading() {
        for bytes in [&[0_u8][..], &[99], &[kind::COMPUTE], &[kind::COMPUTE, 0x80], &[kind::PEER, 1, 2]] {
            let mut decoder = Decoder::new(bytes);
            assert_eq!((decoder.next(), decoder.next()), (Some(Err(Malformed)), None), "{bytes:?}");
        }
        let endless = [&[kind::COMPUTE][..], &[0x80; 12]].concat();
        assert_eq!(Decoder::new(&endless).next(), Some(Err(Malformed)));
    }

    #[test]
    fn a_short_message_takes_few_bytes() {
        let mut encoder = Encoder::default();
        encoder.encode(&Record::Receive { number: 1_000_000 });
        let message = Message { peer: 3, bytes: 8, tag: Some(5) };
        assert_eq!(encoder.encode(&Record::Send { number: 1_000_001, message }).bytes().len(), 5);
    }
}
