//! Remote operations by message: what is requested, and what is answered.

use super::codec::{HAS_DATA, Head, MessageKind, Reader, WIDE_DATA, Writer, is_wide};
use crate::operation::{AtomicOp, AtomicType};

/// How a remote operation or a pull ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Status {
    Success = 0,
    Denied = 1,
    Unsupported = 2,
    Fault = 3,
}

impl Status {
    /// The status in the lowest byte of a word.
    pub(super) fn from_word(word: u64) -> Status {
        match word as u8 {
            0 => Status::Success,
            1 => Status::Denied,
            2 => Status::Unsupported,
            _ => Status::Fault,
        }
    }
}

/// A piece of an RMA write. Body: the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    /// The origin's name for the operation.
    pub(crate) operation: u32,
    /// The target's region, and where in it the piece goes.
    pub(crate) region: u64,
    pub(crate) offset: u64,
    /// With the last piece of a write that the target may report now, if it counts: the bytes of all pieces.
    pub(crate) whole: Option<u64>,
}

impl Head for Write {
    /// Word: 0, or one more than the bytes of the whole write.
    const FIELDS: usize = 2;

    fn kind(&self) -> MessageKind {
        MessageKind::Write
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        debug_assert!(self.whole != Some(u64::MAX), "no write is as long");
        writer.header(self.whole.map_or(0, |bytes| bytes.wrapping_add(1)), self.operation);
        writer.field(self.region);
        writer.field(self.offset);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        let (operation, whole) = (reader.aux, reader.word.checked_sub(1));
        Some(Write { operation, region: reader.field()?, offset: reader.field()?, whole })
    }
}

/// An RMA read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    /// The origin's name for the operation.
    pub(crate) operation: u32,
    /// Where the data goes in the reader's buffer.
    pub(crate) position: u64,
    /// The target's region, and where in it the data lies.
    pub(crate) region: u64,
    pub(crate) offset: u64,
    /// Bytes.
    pub(crate) length: u64,
    /// Whether it is the last part of its operation, at which a target that counts reads counts it.
    pub(crate) is_last: bool,
}

/// The bit of a read's word that says whether it is the last part. No buffer is as long that its positions have it.
const LAST_READ: u64 = 1 << 63;

impl Head for Read {
    /// Word: position (63 bits), whether it is the last part.
    const FIELDS: usize = 3;

    fn kind(&self) -> MessageKind {
        MessageKind::Read
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        let last = if self.is_last { LAST_READ } else { 0 };
        writer.header(self.position & !LAST_READ | last, self.operation);
        writer.field(self.region);
        writer.field(self.offset);
        writer.field(self.length);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        let (operation, position, is_last) = (reader.aux, reader.word & !LAST_READ, reader.word & LAST_READ != 0);
        let (region, offset, length) = (reader.field()?, reader.field()?, reader.field()?);
        Some(Read { operation, position, region, offset, length, is_last })
    }
}

/// A part of what an RMA read wants. Body: the part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadData {
    /// The origin's name for the operation.
    pub(crate) operation: u32,
    /// Where the part goes in the reader's buffer.
    pub(crate) position: u64,
}

impl Head for ReadData {
    const FIELDS: usize = 0;

    fn kind(&self) -> MessageKind {
        MessageKind::ReadData
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.header(self.position, self.operation);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        Some(ReadData { operation: reader.aux, position: reader.word })
    }
}

/// One message's worth of an atomic. Body: the operand, then what to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Atomic {
    /// The origin's name for the operation.
    pub(crate) operation: u32,
    /// Where the result goes in the origin's buffer.
    pub(crate) position: u32,
    /// The target's region, and where in it the elements lie.
    pub(crate) region: u64,
    pub(crate) offset: u64,
    pub(crate) datatype: AtomicType,
    pub(crate) op: AtomicOp,
    pub(crate) wants_result: bool,
    pub(crate) elements: u16,
    pub(crate) ends: Ends,
}

/// The end that a part of an atomic brings, for a target that counts. The parts come in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Ends {
    Nothing = 0,
    /// The operation is over in this region.
    Region = 1,
    /// It is over in all regions.
    Operation = 2,
}

impl Ends {
    fn from_bits(bits: u8) -> Option<Ends> {
        match bits {
            0 => Some(Ends::Nothing),
            1 => Some(Ends::Region),
            2 => Some(Ends::Operation),
            _ => None,
        }
    }
}

impl Head for Atomic {
    /// Word: position (32 bits), type (7), whether a result is wanted, operation (6), what ends (2), elements (16).
    const FIELDS: usize = 2;

    fn kind(&self) -> MessageKind {
        MessageKind::Atomic
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        let result = u64::from(self.wants_result) << 39;
        let op = (self.op as u64) << 40 | (self.ends as u64) << 46;
        let what = (self.datatype as u64) << 32 | result | op | u64::from(self.elements) << 48;
        writer.header(u64::from(self.position) | what, self.operation);
        writer.field(self.region);
        writer.field(self.offset);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        let word = reader.word;
        Some(Atomic {
            operation: reader.aux,
            position: word as u32,
            region: reader.field()?,
            offset: reader.field()?,
            datatype: AtomicType::from_wire((word >> 32) as u8 & 0x7f)?,
            op: AtomicOp::from_wire((word >> 40) as u8 & 0x3f)?,
            wants_result: word >> 39 & 1 != 0,
            elements: (word >> 48) as u16,
            ends: Ends::from_bits((word >> 46) as u8 & 3)?,
        })
    }
}

/// A part of a remote operation has ended. Body: the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    /// The origin's name for the operation.
    pub(crate) operation: u32,
    pub(crate) status: Status,
    /// The target counts what its peers do, and wants to hear of the end of a write that it cannot see by itself.
    pub(crate) is_counted: bool,
    /// Where the result goes in the origin's buffer.
    pub(crate) position: u32,
}

const COUNTED: u64 = 1 << 8;

impl Head for Reply {
    /// Word: status (8 bits), whether the target counts, position (from bit 32).
    const FIELDS: usize = 0;

    fn kind(&self) -> MessageKind {
        MessageKind::Reply
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        let counted = if self.is_counted { COUNTED } else { 0 };
        writer.header(self.status as u64 | counted | u64::from(self.position) << 32, self.operation);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        let (word, status) = (reader.word, Status::from_word(reader.word));
        let (is_counted, position) = (word & COUNTED != 0, (word >> 32) as u32);
        Some(Reply { operation: reader.aux, status, is_counted, position })
    }
}

/// An RMA write with completion data is complete; or at a target that counts one in several places, or one that went
/// straight to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteNotice {
    /// Bytes.
    pub(crate) length: u64,
    pub(crate) data: Option<u64>,
    /// The region that it has changed.
    pub(crate) region: u64,
    /// The write has changed another region as well, of which another notice tells, and that one tells of the write.
    pub(crate) is_further: bool,
}

/// The bit of a notice's word that says whether it is a further one. No write is as long that its length has it.
const FURTHER: u64 = 1 << 63;

impl Head for WriteNotice {
    /// Word: bytes (63 bits), whether it is a further one.
    const FIELDS: usize = 1;

    fn kind(&self) -> MessageKind {
        MessageKind::WriteNotice
    }

    fn wide_data(&self) -> bool {
        is_wide(self.data)
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        let further = if self.is_further { FURTHER } else { 0 };
        writer.with_data(self.length & !FURTHER | further, self.data, 0);
        writer.field(self.region);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(HAS_DATA | WIDE_DATA)?;
        let (length, is_further) = (reader.word & !FURTHER, reader.word & FURTHER != 0);
        Some(WriteNotice { length, data: reader.data()?, region: reader.field()?, is_further })
    }
}
