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
}

impl Head for Write {
    const FIELDS: usize = 2;

    fn kind(&self) -> MessageKind {
        MessageKind::Write
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.header(0, self.operation);
        writer.field(self.region);
        writer.field(self.offset);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        Some(Write { operation: reader.aux, region: reader.field()?, offset: reader.field()? })
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
}

impl Head for Read {
    const FIELDS: usize = 3;

    fn kind(&self) -> MessageKind {
        MessageKind::Read
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.header(self.position, self.operation);
        writer.field(self.region);
        writer.field(self.offset);
        writer.field(self.length);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        let (operation, position) = (reader.aux, reader.word);
        let (region, offset, length) = (reader.field()?, reader.field()?, reader.field()?);
        Some(Read { operation, position, region, offset, length })
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
}

impl Head for Atomic {
    /// Word: position (32 bits), type (7), whether a result is wanted, operation (8), elements (16).
    const FIELDS: usize = 2;

    fn kind(&self) -> MessageKind {
        MessageKind::Atomic
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        let result = u64::from(self.wants_result) << 39;
        let what = (self.datatype as u64) << 32 | result | (self.op as u64) << 40 | u64::from(self.elements) << 48;
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
            op: AtomicOp::from_wire((word >> 40) as u8)?,
            wants_result: word >> 39 & 1 != 0,
            elements: (word >> 48) as u16,
        })
    }
}

/// A part of a remote operation has ended. Body: the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    /// The origin's name for the operation.
    pub(crate) operation: u32,
    pub(crate) status: Status,
    /// The target counts writes, and wants to hear of the end of the operation.
    pub(crate) is_counted: bool,
    /// Where the result goes in the origin's buffer.
    pub(crate) position: u32,
}

const COUNTED: u64 = 1 << 8;

impl Head for Reply {
    /// Word: status (8 bits), whether writes are counted, position (from bit 32).
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

/// An RMA write or an atomic with completion data, or at a target that counts writes, is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteNotice {
    /// Bytes.
    pub(crate) length: u64,
    pub(crate) data: Option<u64>,
}

impl Head for WriteNotice {
    const FIELDS: usize = 0;

    fn kind(&self) -> MessageKind {
        MessageKind::WriteNotice
    }

    fn wide_data(&self) -> bool {
        is_wide(self.data)
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.with_data(self.length, self.data, 0);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(HAS_DATA | WIDE_DATA)?;
        Some(WriteNotice { length: reader.word, data: reader.data()? })
    }
}
