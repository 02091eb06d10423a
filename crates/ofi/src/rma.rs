//! `fi_read`, `fi_write` and their relatives.

use crate::bindings::*;
use crate::endpoint::{Endpoint, EventKind};
use crate::errno::{Errno, INVALID, Result};
use crate::limits::{INJECT_BYTES_MOST, REMOTE_PIECES_MOST};
use crate::lock::Entered;
use crate::memory_region;
use crate::object::object;
use crate::submit::{Call, memory, scattered};
use crate::transfer::Flags;
use core::ffi::c_void;
use tidegate_link::IoBuffer;
use tidegate_message::{Buffer, ReadRequest, RemoteTarget, WriteRequest};

/// The table of calls.
pub static OPS: fi_ops_rma = fi_ops_rma {
    size: size_of::<fi_ops_rma>(),
    read: Some(read),
    readv: Some(read_scattered),
    readmsg: Some(read_message),
    write: Some(write),
    writev: Some(write_scattered),
    writemsg: Some(write_message),
    inject: Some(inject),
    writedata: Some(write_data),
    injectdata: Some(inject_data),
};

/// Flags of `fi_writemsg`; `fi_readmsg` takes those that make sense for it.
const FLAGS: u64 = FI_REMOTE_CQ_DATA
    | FI_COMPLETION
    | FI_MORE
    | FI_INJECT
    | FI_INJECT_COMPLETE
    | FI_TRANSMIT_COMPLETE
    | FI_DELIVERY_COMPLETE
    | FI_FENCE;

/// A transfer as the application asks for it.
pub struct Access {
    /// Whose memory.
    pub peer: fi_addr_t,
    /// Flags.
    pub flags: Flags,
    /// Completion data.
    pub data: Option<u64>,
    /// The application's context.
    pub context: *mut c_void,
}

fn to_access(peer: fi_addr_t, flags: Flags, data: Option<u64>, context: *mut c_void) -> Access {
    Access { peer, flags, data, context }
}

impl Endpoint {
    /// Where in the target's memory an address and a key lead.
    #[inline]
    pub fn place(&self, peer: fi_addr_t, address: u64, key: u64, entered: &mut Entered) -> Result<RemoteTarget> {
        let to = self.target(peer, entered)?;
        let virtual_addresses = self.domain.virtual_addresses;
        let offset = if virtual_addresses { address.wrapping_sub(memory_region::start_of(key)) } else { address };
        Ok(RemoteTarget { to, key, offset })
    }

    /// Flags of a call, and whether it never completes. `allowed` are the flags of calls that take some.
    pub fn access_flags(&self, flags: Flags, allowed: u64, entered: &mut Entered) -> Result<(u64, bool)> {
        match flags {
            Flags::Default => Ok((self.state.get(entered).send_flags, false)),
            Flags::Given(flags) if flags & !allowed != 0 => Err(Errno(FI_EBADFLAGS)),
            Flags::Given(flags) => Ok((flags, false)),
            Flags::Inject => Ok((FI_INJECT, true)),
        }
    }

    fn places(
        &self,
        peer: fi_addr_t,
        pieces: &[fi_rma_iov],
        entered: &mut Entered,
    ) -> Result<Vec<(RemoteTarget, u64)>> {
        if pieces.is_empty() || pieces.len() > REMOTE_PIECES_MOST {
            return Err(INVALID);
        }
        let place = |piece: &fi_rma_iov| Ok((self.place(peer, piece.addr, piece.key, entered)?, piece.len as u64));
        pieces.iter().map(place).collect()
    }

    fn write(&self, access: Access, pieces: &[fi_rma_iov], buffer: IoBuffer) -> isize {
        self.domain.enter(|entered| {
            let (flags, silent) = self.access_flags(access.flags, FLAGS, entered)?;
            let inject = flags & FI_INJECT != 0;
            if inject && buffer.len() > INJECT_BYTES_MOST {
                return Err(Errno(FI_EMSGSIZE));
            }
            let to = self.places(access.peer, pieces, entered)?;
            require_equal(&to, &buffer)?;
            let (context, start) = (access.context, core::ptr::null_mut());
            let call = Call { kind: FI_RMA | FI_WRITE, flags, context, event: EventKind::Write, start, silent };
            self.submit(call, entered, |engine, named| {
                let (context, report) = (named.context, named.report);
                engine.write(WriteRequest { to, buffer, data: access.data, context, inject, report })
            })
        })
    }

    fn read(&self, access: Access, pieces: &[fi_rma_iov], buffer: IoBuffer) -> isize {
        self.domain.enter(|entered| {
            let (flags, silent) = self.access_flags(access.flags, FLAGS & !(FI_REMOTE_CQ_DATA | FI_INJECT), entered)?;
            let from = self.places(access.peer, pieces, entered)?;
            require_equal(&from, &buffer)?;
            let (context, start) = (access.context, core::ptr::null_mut());
            let call = Call { kind: FI_RMA | FI_READ, flags, context, event: EventKind::Read, start, silent };
            self.submit(call, entered, |engine, named| {
                engine.read(ReadRequest { from, buffer, context: named.context, report: named.report })
            })
        })
    }
}

/// The two sides of a transfer are equally long.
fn require_equal(places: &[(RemoteTarget, u64)], buffer: &IoBuffer) -> Result<()> {
    let remote = places.iter().try_fold(0u64, |sum, (_, bytes)| sum.checked_add(*bytes));
    if remote == Some(buffer.len() as u64) { Ok(()) } else { Err(INVALID) }
}

/// # Safety
/// As `scattered`.
unsafe fn length_of(pieces: *const iovec, count: usize) -> usize {
    // SAFETY: promised by the caller.
    (0..count).map(|index| unsafe { (*pieces.add(index)).iov_len }).fold(0, usize::saturating_add)
}

unsafe extern "C" fn read(
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
    unsafe { object::<Endpoint>(endpoint).read(access, &[fi_rma_iov { addr, len, key }], memory(buffer, len)) }
}

unsafe extern "C" fn read_scattered(
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
        object::<Endpoint>(endpoint).read(access, &[fi_rma_iov { addr, len: length_of(pieces, count), key }], buffer)
    }
}

unsafe extern "C" fn read_message(endpoint: *mut fid_ep, message: *const fi_msg_rma, flags: u64) -> isize {
    // SAFETY: an open endpoint, a description, and pieces that are ours until the read completes.
    unsafe {
        let message = &*message;
        let access = to_access(message.addr, Flags::Given(flags), None, message.context);
        let Ok(buffer) = scattered(message.msg_iov, message.iov_count) else { return INVALID.code() };
        object::<Endpoint>(endpoint).read(access, remote(message), buffer)
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

unsafe extern "C" fn write(
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
    unsafe { object::<Endpoint>(endpoint).write(access, &[fi_rma_iov { addr, len, key }], memory(buffer, len)) }
}

unsafe extern "C" fn write_scattered(
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
        object::<Endpoint>(endpoint).write(access, &[fi_rma_iov { addr, len: length_of(pieces, count), key }], buffer)
    }
}

unsafe extern "C" fn write_message(endpoint: *mut fid_ep, message: *const fi_msg_rma, flags: u64) -> isize {
    // SAFETY: an open endpoint, a description, and pieces that stay until the write completes.
    unsafe {
        let message = &*message;
        let data = (flags & FI_REMOTE_CQ_DATA != 0).then_some(message.data);
        let access = to_access(message.addr, Flags::Given(flags), data, message.context);
        let Ok(buffer) = scattered(message.msg_iov, message.iov_count) else { return INVALID.code() };
        object::<Endpoint>(endpoint).write(access, remote(message), buffer)
    }
}

unsafe extern "C" fn inject(
    endpoint: *mut fid_ep,
    buffer: *const c_void,
    len: usize,
    peer: fi_addr_t,
    addr: u64,
    key: u64,
) -> isize {
    let access = to_access(peer, Flags::Inject, None, core::ptr::null_mut());
    // SAFETY: an open endpoint, and a buffer that stays during the call.
    unsafe { object::<Endpoint>(endpoint).write(access, &[fi_rma_iov { addr, len, key }], memory(buffer, len)) }
}

unsafe extern "C" fn write_data(
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
    unsafe { object::<Endpoint>(endpoint).write(access, &[fi_rma_iov { addr, len, key }], memory(buffer, len)) }
}

unsafe extern "C" fn inject_data(
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
    unsafe { object::<Endpoint>(endpoint).write(access, &[fi_rma_iov { addr, len, key }], memory(buffer, len)) }
}
