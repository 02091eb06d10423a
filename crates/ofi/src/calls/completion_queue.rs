//! `fi_cq_open`, `fi_cq_read` and the other calls of completion queues.

use crate::border::bindings::*;
use crate::border::errno::{Errno, INVALID, TRY_AGAIN};
use crate::border::guard::guarded;
use crate::border::object::{self, hand_out, head, no_bind, operations, share};
use crate::objects::completion::entry_bytes;
use crate::objects::completion_queue::CompletionQueue;
use crate::objects::completions::{Completions, Room};
use crate::objects::domain::Domain;
use crate::operations::recording::{Recording, tables};
use crate::threads::wait::Wait;
use crate::{border::loader, parameter::limits};
use core::ffi::{c_char, c_int, c_void};
use std::ffi::CString;
use std::sync::Arc;

/// The room for completions if an application names none: as many as it may have operations outstanding.
const CAPACITY_DEFAULT: usize = limits::QUEUE_SIZE;

static HEAD: fi_ops = operations(close, no_bind, control);
tables!(fi_ops_cq, calls);

const fn calls<R: Recording>() -> fi_ops_cq {
    fi_ops_cq {
        size: size_of::<fi_ops_cq>(),
        read: Some(read::<R>),
        readfrom: Some(read_from::<R>),
        readerr: Some(read_error::<R>),
        sread: Some(blocking_read::<R>),
        sreadfrom: Some(blocking_read_from::<R>),
        signal: Some(signal),
        strerror: Some(error_text),
    }
}

/// `fi_cq_open`.
pub unsafe extern "C" fn open(
    domain: *mut fid_domain,
    attr: *mut fi_cq_attr,
    queue: *mut *mut fid_cq,
    context: *mut c_void,
) -> c_int {
    guarded(|| {
        // SAFETY: called with an open domain, attributes or null, and a place for the answer.
        unsafe {
            let (mut capacity, mut format, mut wait) = (0, FI_CQ_FORMAT_UNSPEC, FI_WAIT_NONE);
            if let Some(attr) = attr.as_ref() {
                // The condition is only looked at where there is something to wait on (fi_cq(3)); a peer provider's
                // flag means another kind of context, and Tidegate is none.
                let waits = attr.wait_obj != FI_WAIT_NONE;
                let knows_condition = matches!(attr.wait_cond, FI_CQ_COND_NONE | FI_CQ_COND_THRESHOLD);
                if waits && !knows_condition || attr.flags & !FI_AFFINITY != 0 {
                    return Err(INVALID);
                }
                (capacity, format, wait) = (attr.size, attr.format, attr.wait_obj);
            }
            let entry_bytes = entry_bytes(format)?;
            let wait = match wait {
                FI_WAIT_NONE => None,
                FI_WAIT_UNSPEC | FI_WAIT_FD => Some(Wait::new()?),
                _ => return Err(Errno(FI_ENOSYS)),
            };
            let completions = Completions::new(if capacity == 0 { CAPACITY_DEFAULT } else { capacity });
            let domain = share::<Domain>(domain);
            domain.check_own()?;
            let ops = ops(domain.settings.trace.is_some());
            let fid = fid_cq { fid: head(FI_CLASS_CQ, context, &HEAD), ops };
            let opened = CompletionQueue::new(fid, domain, entry_bytes, wait, completions);
            hand_out(Arc::new(opened), queue);
        }
        Ok(0)
    })
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: the application closes a queue that `open` made. Bound endpoints share it.
    guarded(|| unsafe {
        object::close::<CompletionQueue>(fid.cast(), |queue| {
            !queue.domain.is_inherited() && Arc::strong_count(queue) > 1
        })
    })
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int {
    guarded(|| {
        // SAFETY: the handle is an open queue's; `arg` has room for what the command asks.
        unsafe {
            let queue = object::object::<CompletionQueue>(fid.cast());
            queue.domain.check_own()?;
            let wait = queue.wait();
            match (command as u32, wait) {
                (FI_GETWAIT, Some(wait)) => arg.cast::<c_int>().write(wait.descriptor()),
                (FI_GETWAITOBJ, Some(_)) => arg.cast::<fi_wait_obj>().write(FI_WAIT_FD),
                (FI_GETWAITOBJ, None) => arg.cast::<fi_wait_obj>().write(FI_WAIT_NONE),
                _ => return Err(Errno(FI_ENOSYS)),
            }
        }
        Ok(0)
    })
}

unsafe extern "C" fn read<R: Recording>(queue: *mut fid_cq, buffer: *mut c_void, count: usize) -> isize {
    // SAFETY: the handle is an open queue's, and the application provides the room.
    unsafe {
        object::object::<CompletionQueue>(queue).poll::<R>(Room { buffer, count, sources: core::ptr::null_mut() })
    }
}

unsafe extern "C" fn read_from<R: Recording>(
    queue: *mut fid_cq,
    buffer: *mut c_void,
    count: usize,
    sources: *mut fi_addr_t,
) -> isize {
    // SAFETY: the handle is an open queue's, and the application provides the room.
    unsafe { object::object::<CompletionQueue>(queue).poll::<R>(Room { buffer, count, sources }) }
}

unsafe extern "C" fn blocking_read<R: Recording>(
    queue: *mut fid_cq,
    buffer: *mut c_void,
    count: usize,
    _condition: *const c_void,
    timeout: c_int,
) -> isize {
    let room = Room { buffer, count, sources: core::ptr::null_mut() };
    // SAFETY: the handle is an open queue's, and the application provides the room.
    R::call(|| unsafe { object::object::<CompletionQueue>(queue).blocking_poll::<R>(room, timeout) })
}

unsafe extern "C" fn blocking_read_from<R: Recording>(
    queue: *mut fid_cq,
    buffer: *mut c_void,
    count: usize,
    sources: *mut fi_addr_t,
    _condition: *const c_void,
    timeout: c_int,
) -> isize {
    let room = Room { buffer, count, sources };
    // SAFETY: the handle is an open queue's, and the application provides the room.
    R::call(|| unsafe { object::object::<CompletionQueue>(queue).blocking_poll::<R>(room, timeout) })
}

unsafe extern "C" fn signal(queue: *mut fid_cq) -> c_int {
    // SAFETY: the handle is an open queue's.
    let queue = unsafe { object::object::<CompletionQueue>(queue) };
    guarded(|| {
        queue.domain.check_own()?;
        if queue.signal() { Ok(0) } else { Err(Errno(FI_ENOSYS)) }
    })
}

unsafe extern "C" fn read_error<R: Recording>(queue: *mut fid_cq, place: *mut fi_cq_err_entry, _flags: u64) -> isize {
    // SAFETY: the handle is an open queue's.
    let queue = unsafe { object::object::<CompletionQueue>(queue) };
    let api = queue.domain.fabric.api_version();
    R::call(|| {
        queue.domain.enter(|entered| {
            let failed = queue.take_error(entered).ok_or(TRY_AGAIN)?;
            let state = queue.state.get(entered);
            state.last_text = CString::new(failed.reason.text.as_str()).unwrap_or_default();
            // SAFETY: the application provides the struct of the version that it was built for.
            unsafe { failed.write(&state.last_text, api, place) };
            R::read_error(&mut state.unread);
            Ok(1)
        })
    })
}

/// The text of an error: that of the error data, which may name the peer, or else libfabric's words for the number.
unsafe extern "C" fn error_text(
    _queue: *mut fid_cq,
    errno: c_int,
    data: *const c_void,
    buffer: *mut c_char,
    length: usize,
) -> *const c_char {
    let general = || loader::get().map_or(c"error".as_ptr(), |loader| loader.error_text(errno));
    // SAFETY: error data is the C string that `read_error` gave, perhaps one of no length.
    let has_text = !data.is_null() && unsafe { *data.cast::<c_char>() } != 0;
    let text = if has_text { data.cast::<c_char>() } else { general() };
    if !buffer.is_null() && length > 0 {
        // SAFETY: error data is the C string that `read_error` gave, libfabric's texts are C strings, and the
        // application provides `length` bytes.
        unsafe {
            libc::strncpy(buffer, text, length);
            *buffer.add(length - 1) = 0;
        }
    }
    text
}
