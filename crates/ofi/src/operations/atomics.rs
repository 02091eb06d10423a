//! Atomic operations: libfabric's numbers for types and operations, operands in pieces, the check that the parts of a
//! call fit together, and the request to the message layer.

use crate::border::bindings::*;
use crate::border::errno::{Errno, INVALID, Result};
use crate::objects::endpoint::Endpoint;
use crate::operations::operation::{Call, EventKind};
use crate::operations::recording::Recording;
use crate::operations::remote::Access;
use crate::parameter::limits::{ATOMIC_BYTES_MOST, PIECES_MOST, REMOTE_PIECES_MOST};
use core::ffi::c_void;
use tidegate_link::IoBuffer;
use tidegate_link::memory::Piece;
use tidegate_message::{
    AtomicCall, AtomicKind, AtomicOp, AtomicRequest, AtomicType, Buffer, RemoteTarget, Submission, atomic_is_valid,
};

/// The flags that a call may be given.
const FLAGS: u64 =
    FI_COMPLETION | FI_MORE | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_FENCE;

/// libfabric's element types in the order of their numbers.
pub fn datatype_of(number: fi_datatype) -> Option<AtomicType> {
    use AtomicType::*;
    const TYPES: [AtomicType; 16] = [
        Int8,
        Uint8,
        Int16,
        Uint16,
        Int32,
        Uint32,
        Int64,
        Uint64,
        Float,
        Double,
        FloatComplex,
        DoubleComplex,
        LongDouble,
        LongDoubleComplex,
        Int128,
        Uint128,
    ];
    TYPES.get(number as usize).copied()
}

/// libfabric's operations in the order of their numbers; the last came with version 2.0.
pub fn op_of(number: fi_op) -> Option<AtomicOp> {
    use AtomicOp::*;
    const OPS: [AtomicOp; 20] = [
        Min,
        Max,
        Sum,
        Prod,
        Lor,
        Land,
        Bor,
        Band,
        Lxor,
        Bxor,
        Read,
        Write,
        CompareSwap,
        CompareSwapNotEqual,
        CompareSwapLessEqual,
        CompareSwapLess,
        CompareSwapGreaterEqual,
        CompareSwapGreater,
        MaskedSwap,
        Diff,
    ];
    OPS.get(number as usize).copied()
}

/// The type and the operation, if this kind of call has the operation for the type.
pub fn known(datatype: fi_datatype, op: fi_op, call: AtomicCall) -> Result<(AtomicType, AtomicOp)> {
    let pair = datatype_of(datatype).zip(op_of(op));
    pair.filter(|&(datatype, op)| atomic_is_valid(datatype, op, call)).ok_or(Errno(FI_EOPNOTSUPP))
}

/// Pieces of memory that hold elements.
#[derive(Clone, Copy)]
pub enum Elements {
    /// One piece, in which the elements lie one after the other.
    One {
        /// Where the first is.
        start: *mut c_void,
        /// Elements.
        count: usize,
    },
    /// Several pieces of memory.
    Many {
        /// Each with its own count of elements.
        pieces: *const fi_ioc,
        /// Pieces.
        count: usize,
    },
}

impl Elements {
    /// # Safety
    /// The pieces must be the application's memory and stay until the operation completes.
    unsafe fn buffer(self, size: usize) -> Result<IoBuffer> {
        let bytes = |count: usize| count.checked_mul(size).ok_or(INVALID);
        match self {
            // SAFETY: promised by the caller.
            Elements::One { start, count } => Ok(unsafe { IoBuffer::from_parts(start.cast(), bytes(count)?) }),
            Elements::Many { count, .. } if count > PIECES_MOST => Err(INVALID),
            Elements::Many { count: 0, .. } => Ok(IoBuffer::empty()),
            Elements::Many { pieces, count } => {
                // SAFETY: promised by the caller.
                let pieces = unsafe { core::slice::from_raw_parts(pieces, count) };
                let pieces: Result<Vec<Piece>> =
                    pieces.iter().map(|piece| Ok(Piece::new(piece.addr.cast(), bytes(piece.count)?))).collect();
                // SAFETY: promised by the caller.
                Ok(unsafe { IoBuffer::from_pieces(pieces?) })
            }
        }
    }

    /// Elements in all.
    ///
    /// # Safety
    /// As [`buffer`](Self::buffer).
    pub unsafe fn total(self) -> usize {
        match self {
            Elements::One { count, .. } => count,
            Elements::Many { pieces, count } => {
                // SAFETY: promised by the caller.
                (0..count).map(|index| unsafe { (*pieces.add(index)).count }).fold(0, usize::saturating_add)
            }
        }
    }
}

/// An atomic operation as the application asks for it.
pub struct Operation<'a> {
    /// Peer, flags and context.
    pub access: Access,
    /// Type of the elements.
    pub datatype: fi_datatype,
    /// What is done with them.
    pub op: fi_op,
    /// Where in the target's memory.
    pub places: &'a [fi_rma_ioc],
    /// What is combined with the target's elements, or takes their place.
    pub operand: Elements,
    /// What the target's elements are compared with.
    pub compare: Option<Elements>,
    /// Where the target's elements go as they were before.
    pub result: Option<Elements>,
}

impl Operation<'_> {
    fn call(&self) -> AtomicCall {
        match (self.result, self.compare) {
            (None, _) => AtomicCall::Update,
            (Some(_), None) => AtomicCall::Fetch,
            (Some(_), Some(_)) => AtomicCall::Compare,
        }
    }
}

impl Endpoint {
    /// Checks an atomic operation and submits it.
    ///
    /// # Safety
    /// The memory must stay until the operation completes.
    pub unsafe fn atomic<R: Recording>(&self, operation: Operation) -> isize {
        R::call(|| {
            self.domain.enter(|entered| {
                let (datatype, op) = known(operation.datatype, operation.op, operation.call())?;
                let (flags, silent) = self.access_flags(operation.access.flags, FLAGS, entered)?;
                if operation.places.is_empty() || operation.places.len() > REMOTE_PIECES_MOST {
                    return Err(INVALID);
                }
                let mut to: Vec<(RemoteTarget, u64)> = Vec::with_capacity(operation.places.len());
                for place in operation.places {
                    let target = self.place(operation.access.peer, place.addr, place.key, entered)?;
                    to.push((target, place.count as u64));
                }
                // SAFETY: promised by the caller.
                let buffer = |elements: Elements| unsafe { elements.buffer(datatype.size()) };
                // An atomic read has no operand, whatever the caller passes.
                let operand = if op == AtomicOp::Read { IoBuffer::empty() } else { buffer(operation.operand)? };
                let bytes = to.iter().try_fold(0u64, |sum, (_, count)| sum.checked_add(*count)).ok_or(INVALID)?;
                let bytes = bytes.checked_mul(datatype.size() as u64).ok_or(INVALID)?;
                if bytes > ATOMIC_BYTES_MOST {
                    return Err(INVALID);
                }
                let (kind, event, wanted) = match (operation.result, operation.compare) {
                    (None, _) => (AtomicKind::Update, EventKind::Write, FI_ATOMIC | FI_WRITE),
                    (Some(result), None) => {
                        (AtomicKind::Fetch { result: buffer(result)? }, EventKind::Read, FI_ATOMIC | FI_READ)
                    }
                    (Some(result), Some(compare)) => {
                        let kind = AtomicKind::Compare { result: buffer(result)?, compare: buffer(compare)? };
                        (kind, EventKind::Read, FI_ATOMIC | FI_READ)
                    }
                };
                let fits = |buffer: &IoBuffer| buffer.len() as u64 == bytes;
                let results_fit = match &kind {
                    AtomicKind::Update => true,
                    AtomicKind::Fetch { result } => fits(result),
                    AtomicKind::Compare { result, compare } => fits(result) && fits(compare),
                };
                if !results_fit || op != AtomicOp::Read && !fits(&operand) {
                    return Err(INVALID);
                }
                let (context, start) = (operation.access.context, core::ptr::null_mut());
                let call = Call { kind: wanted, flags, context, event, start, silent };
                self.submit::<R>(call, R::reaches(bytes), entered, |engine, named| {
                    let (context, report) = (named.context, named.report);
                    let atomic = AtomicRequest { to, datatype, op, operand, kind, context, report };
                    match flags & FI_FENCE {
                        0 => engine.atomic(atomic),
                        _ => engine.submit_fenced(Submission::Atomic(atomic)),
                    }
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_mean_what_libfabric_says() {
        for (number, datatype, bytes) in [
            (FI_INT8, AtomicType::Int8, 1),
            (FI_UINT64, AtomicType::Uint64, 8),
            (FI_FLOAT, AtomicType::Float, 4),
            (FI_DOUBLE_COMPLEX, AtomicType::DoubleComplex, 16),
            (FI_LONG_DOUBLE_COMPLEX, AtomicType::LongDoubleComplex, 32),
            (FI_INT128, AtomicType::Int128, 16),
        ] {
            assert_eq!(datatype_of(number), Some(datatype));
            assert_eq!(datatype.size(), bytes);
        }
        for (number, op) in [
            (FI_MIN, AtomicOp::Min),
            (FI_BXOR, AtomicOp::Bxor),
            (FI_ATOMIC_READ, AtomicOp::Read),
            (FI_CSWAP_GT, AtomicOp::CompareSwapGreater),
            (FI_MSWAP, AtomicOp::MaskedSwap),
        ] {
            assert_eq!(op_of(number), Some(op));
        }
        assert_eq!((datatype_of(16), op_of(20), op_of(FI_NOOP)), (None, None, None));
    }

    #[test]
    fn calls_know_their_own_operations_only() {
        assert!(known(FI_INT32, FI_SUM, AtomicCall::Update).is_ok());
        assert!(known(FI_INT32, FI_SUM, AtomicCall::Fetch).is_ok());
        assert!(known(FI_INT32, FI_SUM, AtomicCall::Compare).is_err());
        assert!(known(FI_INT32, FI_CSWAP, AtomicCall::Compare).is_ok());
        assert!(known(FI_INT32, FI_CSWAP, AtomicCall::Update).is_err());
        assert!(known(FI_DOUBLE, FI_BOR, AtomicCall::Update).is_err());
    }
}
