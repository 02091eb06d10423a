//! `fi_atomic`, `fi_fetch_atomic`, `fi_compare_atomic`, their relatives, and which of them are valid.

use crate::border::bindings::*;
use crate::border::guard::guarded;
use crate::border::object::object;
use crate::objects::endpoint::Endpoint;
use crate::operations::atomics::{Elements, Operation, datatype_of, known};
use crate::operations::operation::Flags;
use crate::operations::recording::{Recording, tables};
use crate::operations::remote::Access;
use core::ffi::{c_int, c_void};
use tidegate_message::{AtomicCall, AtomicType};

tables!(fi_ops_atomic, calls);

const fn calls<R: Recording>() -> fi_ops_atomic {
    fi_ops_atomic {
        size: size_of::<fi_ops_atomic>(),
        write: Some(update::<R>),
        writev: Some(update_scattered::<R>),
        writemsg: Some(update_message::<R>),
        inject: Some(inject::<R>),
        readwrite: Some(fetch::<R>),
        readwritev: Some(fetch_scattered::<R>),
        readwritemsg: Some(fetch_message::<R>),
        compwrite: Some(compare::<R>),
        compwritev: Some(compare_scattered::<R>),
        compwritemsg: Some(compare_message::<R>),
        writevalid: Some(update_valid),
        readwritevalid: Some(fetch_valid),
        compwritevalid: Some(compare_valid),
    }
}

/// The longest operand that applications are told of, in bytes.
const OPERAND_BYTES_MOST: usize = 1 << 16;

/// # Safety
/// An open endpoint, and memory that stays until the operation completes.
unsafe fn submit<R: Recording>(endpoint: *mut fid_ep, operation: Operation) -> isize {
    // SAFETY: promised by the caller.
    unsafe { object::<Endpoint>(endpoint).atomic::<R>(operation) }
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

unsafe extern "C" fn update<R: Recording>(
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
    unsafe { submit::<R>(endpoint, Operation { access, datatype, op, places, operand, compare, result }) }
}

unsafe extern "C" fn update_scattered<R: Recording>(
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
        submit::<R>(endpoint, Operation { access, datatype, op, places, operand, compare, result })
    }
}

unsafe extern "C" fn update_message<R: Recording>(
    endpoint: *mut fid_ep,
    message: *const fi_msg_atomic,
    flags: u64,
) -> isize {
    // SAFETY: libfabric's rules for the call.
    unsafe {
        let message = &*message;
        let access = to_access(message.addr, Flags::Given(flags), message.context);
        let (operand, places) = (many(message.msg_iov, message.iov_count), remote(message));
        let (datatype, op, compare, result) = (message.datatype, message.op, None, None);
        submit::<R>(endpoint, Operation { access, datatype, op, places, operand, compare, result })
    }
}

unsafe extern "C" fn inject<R: Recording>(
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
    unsafe { submit::<R>(endpoint, Operation { access, datatype, op, places, operand, compare, result }) }
}

unsafe extern "C" fn fetch<R: Recording>(
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
    unsafe { submit::<R>(endpoint, Operation { access, datatype, op, places, operand, compare, result }) }
}

unsafe extern "C" fn fetch_scattered<R: Recording>(
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
        submit::<R>(endpoint, Operation { access, datatype, op, places, operand, compare, result })
    }
}

unsafe extern "C" fn fetch_message<R: Recording>(
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
        submit::<R>(endpoint, Operation { access, datatype, op, places, operand, compare, result })
    }
}

unsafe extern "C" fn compare<R: Recording>(
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
    unsafe { submit::<R>(endpoint, Operation { access, datatype, op, places, operand, compare, result }) }
}

unsafe extern "C" fn compare_scattered<R: Recording>(
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
        submit::<R>(endpoint, Operation { access, datatype, op, places, operand, compare, result })
    }
}

unsafe extern "C" fn compare_message<R: Recording>(
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
        submit::<R>(endpoint, Operation { access, datatype, op, places, operand, compare, result })
    }
}

/// Whether this kind of call has the operation for the type, and for how many elements at once.
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
