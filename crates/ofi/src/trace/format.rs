//! [`Record`]: what a process says of its messages, and how that looks as bytes.
//!
//! A record is a frame ([`tidegate_link::frames`]) whose payload is numbers or an address. Operations have numbers in
//! the order in which the application started them; a record has the distance to the number that stood in the last
//! one. Peers are numbered in the order in which they are introduced.

use tidegate_link::Address;
use tidegate_link::frames::{self, NUMBER_MOST, Number, Numbers};

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

/// Bytes of the longest payload.
const PAYLOAD_MOST: usize = 4 * NUMBER_MOST;
const _: () = assert!(PAYLOAD_MOST >= Address::BYTES);
/// Bytes before the payload: the kind, and its length, which fits one byte.
const HEAD: usize = 2;
const _: () = assert!(PAYLOAD_MOST < 0x80);

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
    bytes: [u8; HEAD + PAYLOAD_MOST],
    length: usize,
}

impl Encoded {
    /// A record of this kind without a payload.
    fn begin(kind: u8) -> Self {
        let mut bytes = [0; HEAD + PAYLOAD_MOST];
        bytes[0] = kind;
        Encoded { bytes, length: HEAD }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn put(mut self, bytes: &[u8]) -> Self {
        self.bytes[self.length..][..bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
        self.bytes[1] = (self.length - HEAD) as u8;
        self
    }

    fn number(self, value: u64) -> Self {
        self.put(&Number::of(value))
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
        let begin = Encoded::begin;
        let tagged = |message: &Message, with: u8, without: u8| if message.tag.is_some() { with } else { without };
        match record {
            Record::Opened(address) => begin(kind::OPENED).put(address),
            Record::Endpoint(endpoint) => begin(kind::ENDPOINT).number(*endpoint),
            Record::Peer(address) => begin(kind::PEER).put(address),
            Record::Compute(nanoseconds) => begin(kind::COMPUTE).number(*nanoseconds),
            Record::Send { number, message } => {
                let kind = tagged(message, kind::SEND, kind::SEND_UNTAGGED);
                begin(kind).put(&self.distance(*number)).message(message)
            }
            Record::Receive { number } => begin(kind::RECEIVE).put(&self.distance(*number)),
            Record::Buffer { number } => begin(kind::BUFFER).put(&self.distance(*number)),
            Record::Met { number, message } => {
                let kind = tagged(message, kind::MET, kind::MET_UNTAGGED);
                begin(kind).put(&self.distance(*number)).message(message)
            }
            Record::Read { number } => begin(kind::READ).put(&self.distance(*number)),
            Record::Remote { bytes } => begin(kind::REMOTE).number(*bytes),
        }
    }

    /// How far a number is from the last one.
    fn distance(&mut self, number: u64) -> Number {
        Number::between(std::mem::replace(&mut self.last, number), number)
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
        let (kind, payload, rest) = frames::split(self.rest)?;
        let mut numbers = Numbers(payload);
        let record = match kind {
            kind::OPENED => Record::Opened(*numbers.take_bytes()?),
            kind::ENDPOINT => Record::Endpoint(numbers.take()?),
            kind::PEER => Record::Peer(*numbers.take_bytes()?),
            kind::COMPUTE => Record::Compute(numbers.take()?),
            kind::SEND | kind::SEND_UNTAGGED => {
                let number = self.operation(&mut numbers)?;
                Record::Send { number, message: message(&mut numbers, kind == kind::SEND)? }
            }
            kind::RECEIVE => Record::Receive { number: self.operation(&mut numbers)? },
            kind::BUFFER => Record::Buffer { number: self.operation(&mut numbers)? },
            kind::MET | kind::MET_UNTAGGED => {
                let number = self.operation(&mut numbers)?;
                Record::Met { number, message: message(&mut numbers, kind == kind::MET)? }
            }
            kind::READ => Record::Read { number: self.operation(&mut numbers)? },
            kind::REMOTE => Record::Remote { bytes: numbers.take()? },
            _ => return None,
        };
        self.rest = rest;
        numbers.0.is_empty().then_some(record)
    }

    fn operation(&mut self, numbers: &mut Numbers) -> Option<u64> {
        self.last = numbers.take_from(self.last)?;
        Some(self.last)
    }
}

fn message(numbers: &mut Numbers, is_tagged: bool) -> Option<Message> {
    let (peer, bytes) = (numbers.take()?, numbers.take()?);
    let tag = if is_tagged { Some(numbers.take()?) } else { None };
    Some(Message { peer, bytes, tag })
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
        let no_frame = [&[0_u8][..], &[99], &[kind::COMPUTE], &[kind::COMPUTE, 0x80], &[kind::COMPUTE, 3, 1]];
        // Of no kind, and with a payload that is too short, no number, and too long.
        let no_record = [&[99, 0][..], &[kind::PEER, 2, 1, 2], &[kind::COMPUTE, 1, 0x80], &[kind::COMPUTE, 2, 1, 1]];
        for bytes in no_frame.into_iter().chain(no_record) {
            let mut decoder = Decoder::new(bytes);
            assert_eq!((decoder.next(), decoder.next()), (Some(Err(Malformed)), None), "{bytes:?}");
        }
    }

    #[test]
    fn a_short_message_takes_few_bytes() {
        let mut encoder = Encoder::default();
        encoder.encode(&Record::Receive { number: 1_000_000 });
        let message = Message { peer: 3, bytes: 8, tag: Some(5) };
        assert_eq!(encoder.encode(&Record::Send { number: 1_000_001, message }).bytes().len(), 6);
    }
}
