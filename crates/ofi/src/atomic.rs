//! `fi_atomic`, `fi_fetch_atomic`, `fi_compare_atomic`, their relatives, and which of them are valid.

use crate::bindings::*;
use crate::endpoint::{Endpoint, EventKind};
use crate::errno::{Errno, INVALID, Result};
use crate::guard::guarded;
use crate::limits::{PIECES_MOST, REMOTE_PIECES_MOST};
use crate::object::object;
use crate::rma::Access;
use crate::submit::Call;
use crate::transfer::Flags;
use core::ffi::{c_int, c_void};
use tidegate_link::IoBuffer;
use tidegate_link::memory::Piece;
use tidegate_message::{
    AtomicCall, AtomicKind, AtomicOp, AtomicRequest, AtomicType, Buffer, RemoteTarget, atomic_is_valid,
};

/// The table of calls.
pub static OPS: fi_ops_atomic = fi_ops_atomic {
    size: size_of::<fi_ops_atomic>(),
    write: Some(update),
    writev: Some(update_scattered),
    writemsg: Some(update_message),
    inject: Some(inject),
    readwrite: Some(fetch),
    readwritev: Some(fetch_scattered),
    readwritemsg: Some(fetch_message),
    compwrite: Some(compare),
    compwritev: Some(compare_scattered),
    compwritemsg: Some(compare_message),
    writevalid: Some(update_valid),
    readwritevalid: Some(fetch_valid),
    compwritevalid: Some(compare_valid),
};

/// Flags of calls that take some.
const FLAGS: u64 =
    FI_COMPLETION | FI_MORE | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_FENCE;
/// Bytes of the longest operand that is told to applications.
const OPERAND_BYTES_MOST: usize = 1 << 16;

/// libfabric's element types in the order of their numbers.
fn datatype_of(number: fi_datatype) -> Option<AtomicType> {
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
fn op_of(number: fi_op) -> Option<AtomicOp> {
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

/// The operation and its type, if this call knows them together.
fn known(datatype: fi_datatype, op: fi_op, call: AtomicCall) -> Result<(AtomicType, AtomicOp)> {
    let pair = datatype_of(datatype).zip(op_of(op));
    pair.filter(|&(datatype, op)| atomic_is_valid(datatype, op, call)).ok_or(Errno(FI_EOPNOTSUPP))
}

/// Pieces of memory that hold elements.
#[derive(Clone, Copy)]
enum Elements {
    One { start: *mut c_void, count: usize },
    Many { pieces: *const fi_ioc, count: usize },
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

    /// # Safety
    /// As [`buffer`](Self::buffer).
    unsafe fn total(self) -> usize {
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
struct Operation<'a> {
    access: Access,
    datatype: fi_datatype,
    op: fi_op,
    places: &'a [fi_rma_ioc],
    operand: Elements,
    compare: Option<Elements>,
    result: Option<Elements>,
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

/// # Safety
/// An open endpoint, and memory that stays until the operation completes.
unsafe fn submit(endpoint: *mut fid_ep, operation: Operation) -> isize {
    // SAFETY: promised by the caller.
    let endpoint = unsafe { object::<Endpoint>(endpoint) };
    endpoint.domain.enter(|entered| {
        let (datatype, op) = known(operation.datatype, operation.op, operation.call())?;
        let (flags, silent) = endpoint.access_flags(operation.access.flags, FLAGS, entered)?;
        if operation.places.is_empty() || operation.places.len() > REMOTE_PIECES_MOST {
            return Err(INVALID);
        }
        let mut to: Vec<(RemoteTarget, u64)> = Vec::with_capacity(operation.places.len());
        for place in operation.places {
            let target = endpoint.place(operation.access.peer, place.addr, place.key, entered)?;
            to.push((target, place.count as u64));
        }
        // SAFETY: promised by the caller.
        let buffer = |elements: Elements| unsafe { elements.buffer(datatype.size()) };
        // An atomic read has no operand, whatever the caller passes.
        let operand = if op == AtomicOp::Read { IoBuffer::empty() } else { buffer(operation.operand)? };
        let bytes = to.iter().try_fold(0u64, |sum, (_, count)| sum.checked_add(*count)).ok_or(INVALID)?;
        let bytes = bytes.checked_mul(datatype.size() as u64).ok_or(INVALID)?;
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
        endpoint.submit(call, entered, |engine, named| {
            let (context, report) = (named.context, named.report);
            engine.atomic(AtomicRequest { to, datatype, op, operand, kind, context, report })
        })
    })
}

fn to_access(peer: fi_addr_t, flags: Flags, context: *mut c_void) -> Access {
    Access { peer, flags, data: None, context }
}

/// # Safety
/// The description's count must fit its array.
unsafe fn remote(message: &fi_msg_atomic) -> &[fi_rma_ioc] {
    if message.rma_iov_count == 0 {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { core::slice::from_raw_parts(message.rma_iov, message.rma_iov_count) }
}

fn one(start: *const c_void, count: usize) -> Elements {
    Elements::One { start: start.cast_mut(), count }
}

fn many(pieces: *const fi_ioc, count: usize) -> Elements {
    Elements::Many { pieces, count }
}

unsafe extern "C" fn update(
    endpoint: *mut fid_ep,
    buffer: *const c_void,
    count: usize,
    _desc: *mut c_void,
    peer: fi_addr_t,
    addr: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
    context: *mut c_void,
) -> isize {
    let access = to_access(peer, Flags::Default, context);
    let places = &[fi_rma_ioc { addr, count, key }];
    let (operand, compare, result) = (one(buffer, count), None, None);
    // SAFETY: libfabric's rules for the call.
    unsafe { submit(endpoint, Operation { access, datatype, op, places, operand, compare, result }) }
}

unsafe extern "C" fn update_scattered(
    endpoint: *mut fid_ep,
    pieces: *const fi_ioc,
    _desc: *mut *mut c_void,
    count: usize,
    peer: fi_addr_t,
    addr: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
    context: *mut c_void,
) -> isize {
    let access = to_access(peer, Flags::Default, context);
    let (operand, compare, result) = (many(pieces, count), None, None);
    // SAFETY: libfabric's rules for the call.
    unsafe {
        let places = &[fi_rma_ioc { addr, count: operand.total(), key }];
        submit(endpoint, Operation { access, datatype, op, places, operand, compare, result })
    }
}

unsafe extern "C" fn update_message(endpoint: *mut fid_ep, message: *const fi_msg_atomic, flags: u64) -> isize {
    // SAFETY: libfabric's rules for the call.
    unsafe {
        let message = &*message;
        let access = to_access(message.addr, Flags::Given(flags), message.context);
        let (operand, places) = (many(message.msg_iov, message.iov_count), remote(message));
        let (datatype, op, compare, result) = (message.datatype, message.op, None, None);
        submit(endpoint, Operation { access, datatype, op, places, operand, compare, result })
    }
}

unsafe extern "C" fn inject(
    endpoint: *mut fid_ep,
    buffer: *const c_void,
    count: usize,
    peer: fi_addr_t,
    addr: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
) -> isize {
    let access = to_access(peer, Flags::Inject, core::ptr::null_mut());
    let places = &[fi_rma_ioc { addr, count, key }];
    let (operand, compare, result) = (one(buffer, count), None, None);
    // SAFETY: libfabric's rules for the call; the message layer copies operands at once.
    unsafe { submit(endpoint, Operation { access, datatype, op, places, operand, compare, result }) }
}

unsafe extern "C" fn fetch(
    endpoint: *mut fid_ep,
    buffer: *const c_void,
    count: usize,
    _desc: *mut c_void,
    result: *mut c_void,
    _result_desc: *mut c_void,
    peer: fi_addr_t,
    addr: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
    context: *mut c_void,
) -> isize {
    let access = to_access(peer, Flags::Default, context);
    let places = &[fi_rma_ioc { addr, count, key }];
    let (operand, compare, result) = (one(buffer, count), None, Some(one(result, count)));
    // SAFETY: libfabric's rules for the call.
    unsafe { submit(endpoint, Operation { access, datatype, op, places, operand, compare, result }) }
}

unsafe extern "C" fn fetch_scattered(
    endpoint: *mut fid_ep,
    pieces: *const fi_ioc,
    _desc: *mut *mut c_void,
    count: usize,
    results: *mut fi_ioc,
    _result_desc: *mut *mut c_void,
    result_count: usize,
    peer: fi_addr_t,
    addr: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
    context: *mut c_void,
) -> isize {
    let access = to_access(peer, Flags::Default, context);
    let (operand, compare, result) = (many(pieces, count), None, many(results, result_count));
    // SAFETY: libfabric's rules for the call.
    unsafe {
        let (places, result) = (&[fi_rma_ioc { addr, count: result.total(), key }], Some(result));
        submit(endpoint, Operation { access, datatype, op, places, operand, compare, result })
    }
}

unsafe extern "C" fn fetch_message(
    endpoint: *mut fid_ep,
    message: *const fi_msg_atomic,
    results: *mut fi_ioc,
    _result_desc: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    // SAFETY: libfabric's rules for the call.
    unsafe {
        let message = &*message;
        let access = to_access(message.addr, Flags::Given(flags), message.context);
        let (operand, places) = (many(message.msg_iov, message.iov_count), remote(message));
        let (datatype, op, compare, result) = (message.datatype, message.op, None, Some(many(results, result_count)));
        submit(endpoint, Operation { access, datatype, op, places, operand, compare, result })
    }
}

unsafe extern "C" fn compare(
    endpoint: *mut fid_ep,
    buffer: *const c_void,
    count: usize,
    _desc: *mut c_void,
    compare: *const c_void,
    _compare_desc: *mut c_void,
    result: *mut c_void,
    _result_desc: *mut c_void,
    peer: fi_addr_t,
    addr: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
    context: *mut c_void,
) -> isize {
    let access = to_access(peer, Flags::Default, context);
    let places = &[fi_rma_ioc { addr, count, key }];
    let (operand, compare, result) = (one(buffer, count), Some(one(compare, count)), Some(one(result, count)));
    // SAFETY: libfabric's rules for the call.
    unsafe { submit(endpoint, Operation { access, datatype, op, places, operand, compare, result }) }
}

unsafe extern "C" fn compare_scattered(
    endpoint: *mut fid_ep,
    pieces: *const fi_ioc,
    _desc: *mut *mut c_void,
    count: usize,
    compares: *const fi_ioc,
    _compare_desc: *mut *mut c_void,
    compare_count: usize,
    results: *mut fi_ioc,
    _result_desc: *mut *mut c_void,
    result_count: usize,
    peer: fi_addr_t,
    addr: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
    context: *mut c_void,
) -> isize {
    let access = to_access(peer, Flags::Default, context);
    let operand = many(pieces, count);
    let (compare, result) = (Some(many(compares, compare_count)), Some(many(results, result_count)));
    // SAFETY: libfabric's rules for the call.
    unsafe {
        let places = &[fi_rma_ioc { addr, count: operand.total(), key }];
        submit(endpoint, Operation { access, datatype, op, places, operand, compare, result })
    }
}

unsafe extern "C" fn compare_message(
    endpoint: *mut fid_ep,
    message: *const fi_msg_atomic,
    compares: *const fi_ioc,
    _compare_desc: *mut *mut c_void,
    compare_count: usize,
    results: *mut fi_ioc,
    _result_desc: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    // SAFETY: libfabric's rules for the call.
    unsafe {
        let message = &*message;
        let access = to_access(message.addr, Flags::Given(flags), message.context);
        let (operand, places) = (many(message.msg_iov, message.iov_count), remote(message));
        let (compare, result) = (Some(many(compares, compare_count)), Some(many(results, result_count)));
        let (datatype, op) = (message.datatype, message.op);
        submit(endpoint, Operation { access, datatype, op, places, operand, compare, result })
    }
}

/// Whether the call knows the operation for the type, and how many elements it takes at once.
///
/// # Safety
/// `count` must be valid for writing.
unsafe fn valid(datatype: fi_datatype, op: fi_op, call: AtomicCall, count: *mut usize) -> c_int {
    guarded(|| {
        let (datatype, _) = known(datatype, op, call)?;
        // SAFETY: promised by the caller.
        unsafe { *count = OPERAND_BYTES_MOST / datatype.size() };
        Ok(0)
    })
}

unsafe extern "C" fn update_valid(_: *mut fid_ep, datatype: fi_datatype, op: fi_op, count: *mut usize) -> c_int {
    // SAFETY: the application provides the place.
    unsafe { valid(datatype, op, AtomicCall::Update, count) }
}

unsafe extern "C" fn fetch_valid(_: *mut fid_ep, datatype: fi_datatype, op: fi_op, count: *mut usize) -> c_int {
    // SAFETY: the application provides the place.
    unsafe { valid(datatype, op, AtomicCall::Fetch, count) }
}

unsafe extern "C" fn compare_valid(_: *mut fid_ep, datatype: fi_datatype, op: fi_op, count: *mut usize) -> c_int {
    // SAFETY: the application provides the place.
    unsafe { valid(datatype, op, AtomicCall::Compare, count) }
}

/// `fi_query_atomic`.
pub unsafe extern "C" fn query(
    _domain: *mut fid_domain,
    datatype: fi_datatype,
    op: fi_op,
    attr: *mut fi_atomic_attr,
    flags: u64,
) -> c_int {
    let call = match flags {
        0 => AtomicCall::Update,
        FI_FETCH_ATOMIC => AtomicCall::Fetch,
        FI_COMPARE_ATOMIC => AtomicCall::Compare,
        _ => return -FI_EBADFLAGS,
    };
    // SAFETY: the application provides the place.
    unsafe {
        let outcome = valid(datatype, op, call, &raw mut (*attr).count);
        if outcome == 0 {
            (*attr).size = datatype_of(datatype).map_or(0, AtomicType::size);
        }
        outcome
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
