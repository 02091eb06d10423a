//! `fi_send`, `fi_recv` and their relatives.

use crate::border::bindings::*;
use crate::border::object::object;
use crate::objects::endpoint::Endpoint;
use crate::operations::operation::{Flags, memory, scattered};
use crate::operations::recording::{Recording, tables};
use crate::operations::transfer::{ReceiveCall, SendCall};
use core::ffi::c_void;
use tidegate_message::Space;

tables!(fi_ops_msg, calls);

const fn calls<R: Recording>() -> fi_ops_msg {
    fi_ops_msg {
        size: size_of::<fi_ops_msg>(),
        recv: Some(receive::<R>),
        recvv: Some(receive_scattered::<R>),
        recvmsg: Some(receive_message::<R>),
        send: Some(send::<R>),
        sendv: Some(send_scattered::<R>),
        sendmsg: Some(send_message::<R>),
        inject: Some(inject::<R>),
        senddata: Some(send_data::<R>),
        injectdata: Some(inject_data::<R>),
    }
}

fn to_send(to: fi_addr_t, flags: Flags, data: Option<u64>, context: *mut c_void) -> SendCall {
    SendCall { to, space: Space::Untagged, flags, data, context }
}

fn to_receive(from: fi_addr_t, flags: Flags, context: *mut c_void) -> ReceiveCall {
    ReceiveCall { from, space: Space::Untagged, flags, context }
}

unsafe extern "C" fn receive<R: Recording>(
    endpoint: *mut fid_ep,
    buffer: *mut c_void,
    length: usize,
    _desc: *mut c_void,
    from: fi_addr_t,
    context: *mut c_void,
) -> isize {
    let call = || to_receive(from, Flags::Default, context);
    // SAFETY: an open endpoint, and a buffer that is ours until the receive completes.
    unsafe { object::<Endpoint>(endpoint).receive::<R>(call, || Ok(memory(buffer, length))) }
}

unsafe extern "C" fn receive_scattered<R: Recording>(
    endpoint: *mut fid_ep,
    pieces: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    from: fi_addr_t,
    context: *mut c_void,
) -> isize {
    let call = || to_receive(from, Flags::Default, context);
    // SAFETY: an open endpoint, and pieces that are ours until the receive completes.
    unsafe { object::<Endpoint>(endpoint).receive::<R>(call, || scattered(pieces, count)) }
}

unsafe extern "C" fn receive_message<R: Recording>(endpoint: *mut fid_ep, message: *const fi_msg, flags: u64) -> isize {
    // SAFETY: an open endpoint, a message description, and pieces that are ours until the receive completes.
    unsafe {
        let message = &*message;
        let call = || to_receive(message.addr, Flags::Given(flags), message.context);
        object::<Endpoint>(endpoint).receive::<R>(call, || scattered(message.msg_iov, message.iov_count))
    }
}

unsafe extern "C" fn send<R: Recording>(
    endpoint: *mut fid_ep,
    buffer: *const c_void,
    length: usize,
    _desc: *mut c_void,
    to: fi_addr_t,
    context: *mut c_void,
) -> isize {
    let call = || to_send(to, Flags::Default, None, context);
    // SAFETY: an open endpoint, and a buffer that stays until the send completes.
    unsafe { object::<Endpoint>(endpoint).send::<R>(call, || Ok(memory(buffer, length))) }
}

unsafe extern "C" fn send_scattered<R: Recording>(
    endpoint: *mut fid_ep,
    pieces: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    to: fi_addr_t,
    context: *mut c_void,
) -> isize {
    let call = || to_send(to, Flags::Default, None, context);
    // SAFETY: an open endpoint, and pieces that stay until the send completes.
    unsafe { object::<Endpoint>(endpoint).send::<R>(call, || scattered(pieces, count)) }
}

unsafe extern "C" fn send_message<R: Recording>(endpoint: *mut fid_ep, message: *const fi_msg, flags: u64) -> isize {
    // SAFETY: an open endpoint, a message description, and pieces that stay until the send completes.
    unsafe {
        let message = &*message;
        let data = (flags & FI_REMOTE_CQ_DATA != 0).then_some(message.data);
        let call = || to_send(message.addr, Flags::Given(flags), data, message.context);
        object::<Endpoint>(endpoint).send::<R>(call, || scattered(message.msg_iov, message.iov_count))
    }
}

unsafe extern "C" fn inject<R: Recording>(
    endpoint: *mut fid_ep,
    buffer: *const c_void,
    length: usize,
    to: fi_addr_t,
) -> isize {
    let call = || to_send(to, Flags::Inject, None, core::ptr::null_mut());
    // SAFETY: an open endpoint, and a buffer that stays during the call.
    unsafe { object::<Endpoint>(endpoint).send::<R>(call, || Ok(memory(buffer, length))) }
}

unsafe extern "C" fn send_data<R: Recording>(
    endpoint: *mut fid_ep,
    buffer: *const c_void,
    length: usize,
    _desc: *mut c_void,
    data: u64,
    to: fi_addr_t,
    context: *mut c_void,
) -> isize {
    let call = || to_send(to, Flags::Default, Some(data), context);
    // SAFETY: an open endpoint, and a buffer that stays until the send completes.
    unsafe { object::<Endpoint>(endpoint).send::<R>(call, || Ok(memory(buffer, length))) }
}

unsafe extern "C" fn inject_data<R: Recording>(
    endpoint: *mut fid_ep,
    buffer: *const c_void,
    length: usize,
    data: u64,
    to: fi_addr_t,
) -> isize {
    let call = || to_send(to, Flags::Inject, Some(data), core::ptr::null_mut());
    // SAFETY: an open endpoint, and a buffer that stays during the call.
    unsafe { object::<Endpoint>(endpoint).send::<R>(call, || Ok(memory(buffer, length))) }
}
