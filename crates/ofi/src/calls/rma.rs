//! `fi_read`, `fi_write` and their relatives.

use crate::border::bindings::*;
use crate::border::errno::INVALID;
use crate::border::object::object;
use crate::objects::endpoint::Endpoint;
use crate::operations::operation::{Flags, memory, scattered};
use crate::operations::recording::{Recording, tables};
use crate::operations::remote::Access;
use core::ffi::c_void;

tables!(fi_ops_rma, calls);

const fn calls<R: Recording>() -> fi_ops_rma {
    fi_ops_rma {
        size: size_of::<fi_ops_rma>(),
        read: Some(read::<R>),
        readv: Some(read_scattered::<R>),
        readmsg: Some(read_message::<R>),
        write: Some(write::<R>),
        writev: Some(write_scattered::<R>),
        writemsg: Some(write_message::<R>),
        inject: Some(inject::<R>),
        writedata: Some(write_data::<R>),
        injectdata: Some(inject_data::<R>),
    }
}

fn to_access(peer: fi_addr_t, flags: Flags, data: Option<u64>, context: *mut c_void) -> Access {
    Access { peer, flags, data, context }
}

/// # Safety
/// As `scattered`.
unsafe fn length_of(pieces: *const iovec, count: usize) -> usize {
    // SAFETY: promised by the caller.
    (0..count).map(|index| unsafe { (*pieces.add(index)).iov_len }).fold(0, usize::saturating_add)
}

unsafe extern "C" fn read<R: Recording>(
    endpoint: *mut fid_ep,
    buffer: *mut c_void,
    len: usize,
    _desc: *mut c_void,
    peer: fi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let access = to_access(peer, Flags::Default, None, context);
    // SAFETY: an open endpoint, and a buffer that is ours until the read completes.
    unsafe { object::<Endpoint>(endpoint).read::<R>(access, &[fi_rma_iov { addr, len, key }], memory(buffer, len)) }
}

unsafe extern "C" fn read_scattered<R: Recording>(
    endpoint: *mut fid_ep,
    pieces: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    peer: fi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let access = to_access(peer, Flags::Default, None, context);
    // SAFETY: an open endpoint, and pieces that are ours until the read completes.
    unsafe {
        let Ok(buffer) = scattered(pieces, count) else { return INVALID.code() };
        object::<Endpoint>(endpoint).read::<R>(
            access,
            &[fi_rma_iov { addr, len: length_of(pieces, count), key }],
            buffer,
        )
    }
}

unsafe extern "C" fn read_message<R: Recording>(
    endpoint: *mut fid_ep,
    message: *const fi_msg_rma,
    flags: u64,
) -> isize {
    // SAFETY: an open endpoint, a description, and pieces that are ours until the read completes.
    unsafe {
        let message = &*message;
        let access = to_access(message.addr, Flags::Given(flags), None, message.context);
        let Ok(buffer) = scattered(message.msg_iov, message.iov_count) else { return INVALID.code() };
        object::<Endpoint>(endpoint).read::<R>(access, remote(message), buffer)
    }
}

/// # Safety
/// The description's count must fit its array.
unsafe fn remote(message: &fi_msg_rma) -> &[fi_rma_iov] {
    if message.rma_iov_count == 0 {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { core::slice::from_raw_parts(message.rma_iov, message.rma_iov_count) }
}

unsafe extern "C" fn write<R: Recording>(
    endpoint: *mut fid_ep,
    buffer: *const c_void,
    len: usize,
    _desc: *mut c_void,
    peer: fi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let access = to_access(peer, Flags::Default, None, context);
    // SAFETY: an open endpoint, and a buffer that stays until the write completes.
    unsafe { object::<Endpoint>(endpoint).write::<R>(access, &[fi_rma_iov { addr, len, key }], memory(buffer, len)) }
}

unsafe extern "C" fn write_scattered<R: Recording>(
    endpoint: *mut fid_ep,
    pieces: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    peer: fi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let access = to_access(peer, Flags::Default, None, context);
    // SAFETY: an open endpoint, and pieces that stay until the write completes.
    unsafe {
        let Ok(buffer) = scattered(pieces, count) else { return INVALID.code() };
        object::<Endpoint>(endpoint).write::<R>(
            access,
            &[fi_rma_iov { addr, len: length_of(pieces, count), key }],
            buffer,
        )
    }
}

unsafe extern "C" fn write_message<R: Recording>(
    endpoint: *mut fid_ep,
    message: *const fi_msg_rma,
    flags: u64,
) -> isize {
    // SAFETY: an open endpoint, a description, and pieces that stay until the write completes.
    unsafe {
        let message = &*message;
        let data = (flags & FI_REMOTE_CQ_DATA != 0).then_some(message.data);
        let access = to_access(message.addr, Flags::Given(flags), data, message.context);
        let Ok(buffer) = scattered(message.msg_iov, message.iov_count) else { return INVALID.code() };
        object::<Endpoint>(endpoint).write::<R>(access, remote(message), buffer)
    }
}

unsafe extern "C" fn inject<R: Recording>(
    endpoint: *mut fid_ep,
    buffer: *const c_void,
    len: usize,
    peer: fi_addr_t,
    addr: u64,
    key: u64,
) -> isize {
    let access = to_access(peer, Flags::Inject, None, core::ptr::null_mut());
    // SAFETY: an open endpoint, and a buffer that stays during the call.
    unsafe { object::<Endpoint>(endpoint).write::<R>(access, &[fi_rma_iov { addr, len, key }], memory(buffer, len)) }
}

unsafe extern "C" fn write_data<R: Recording>(
    endpoint: *mut fid_ep,
    buffer: *const c_void,
    len: usize,
    _desc: *mut c_void,
    data: u64,
    peer: fi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let access = to_access(peer, Flags::Default, Some(data), context);
    // SAFETY: an open endpoint, and a buffer that stays until the write completes.
    unsafe { object::<Endpoint>(endpoint).write::<R>(access, &[fi_rma_iov { addr, len, key }], memory(buffer, len)) }
}

unsafe extern "C" fn inject_data<R: Recording>(
    endpoint: *mut fid_ep,
    buffer: *const c_void,
    len: usize,
    data: u64,
    peer: fi_addr_t,
    addr: u64,
    key: u64,
) -> isize {
    let access = to_access(peer, Flags::Inject, Some(data), core::ptr::null_mut());
    // SAFETY: an open endpoint, and a buffer that stays during the call.
    unsafe { object::<Endpoint>(endpoint).write::<R>(access, &[fi_rma_iov { addr, len, key }], memory(buffer, len)) }
}
