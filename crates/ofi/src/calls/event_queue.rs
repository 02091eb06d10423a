//! `fi_eq_open`: event queues exist because applications open one for every endpoint. Nothing here happens
//! asynchronously, so the only events are those that the application writes itself.

use crate::border::bindings::*;
use crate::border::errno::{Errno, INVALID, Result, TRY_AGAIN};
use crate::border::guard::guarded;
use crate::border::loader;
use crate::border::misuse;
use crate::border::object::{self, Fid, Object, hand_out, head, no_bind, operations, share, table};
use crate::objects::fabric::Fabric;
use crate::threads::thread::{HandlerGuard, HandlerMutex};
use crate::threads::wait::Wait;
use core::ffi::{c_char, c_int, c_void};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_link::Maker;

/// How many events may wait to be read.
const EVENTS_MOST: usize = 1024;

/// The events that nobody has read: of what kind each is, and its data.
type Events = VecDeque<(u32, Vec<u8>)>;

/// An event queue.
#[repr(C)]
pub struct EventQueue {
    fid: Fid<fid_eq>,
    _fabric: Arc<Fabric>,
    wait: Option<Wait>,
    events: HandlerMutex<Events>,
    maker: Maker,
}

// SAFETY: `repr(C)`, and the C struct comes first.
unsafe impl Object for EventQueue {
    type Fid = fid_eq;
}

static HEAD: fi_ops = operations(close, no_bind, control);
static OPS: fi_ops_eq = fi_ops_eq {
    size: size_of::<fi_ops_eq>(),
    read: Some(read),
    readerr: Some(read_error),
    write: Some(write),
    sread: Some(blocking_read),
    strerror: Some(error_text),
};

impl EventQueue {
    /// What is there to be read. It is refused to a forked child, and to a signal handler that has interrupted its own
    /// thread here.
    fn events(&self) -> Result<HandlerGuard<'_, Events>> {
        if self.maker.is_ancestor() {
            return Err(misuse::of_parent());
        }
        self.events.lock().ok_or_else(misuse::by_handler)
    }

    /// Whether there is nothing to read, so that an application may sleep on the descriptor.
    pub fn may_sleep(&self) -> Result<bool> {
        let wait = self.wait.as_ref().ok_or(INVALID)?;
        let events = self.events()?;
        wait.quieten();
        Ok(events.is_empty())
    }

    /// Takes the first event, or looks at it with `FI_PEEK`.
    fn take(&self, event: *mut u32, buffer: *mut c_void, length: usize, flags: u64) -> Result {
        let mut events = self.events()?;
        let (kind, data) = events.front().ok_or(TRY_AGAIN)?;
        if data.len() > length {
            return Err(Errno(FI_ETOOSMALL));
        }
        // SAFETY: the application provides room for one number and for `length` bytes.
        unsafe {
            event.write(*kind);
            core::ptr::copy_nonoverlapping(data.as_ptr(), buffer.cast(), data.len());
        }
        let length = data.len() as isize;
        if flags & FI_PEEK == 0 {
            events.pop_front();
        }
        Ok(length)
    }
}

/// `fi_eq_open`.
pub unsafe extern "C" fn open(
    fabric: *mut fid_fabric,
    attr: *mut fi_eq_attr,
    queue: *mut *mut fid_eq,
    context: *mut c_void,
) -> c_int {
    guarded(|| {
        // SAFETY: called with an open fabric, attributes or null, and a place for the answer.
        unsafe {
            let wait = match attr.as_ref().map_or(FI_WAIT_NONE, |attr| attr.wait_obj) {
                FI_WAIT_NONE => None,
                FI_WAIT_UNSPEC | FI_WAIT_FD => Some(Wait::new()?),
                _ => return Err(Errno(FI_ENOSYS)),
            };
            let fid = fid_eq { fid: head(FI_CLASS_EQ, context, &HEAD), ops: table(&OPS) };
            let (events, maker) = (HandlerMutex::new(VecDeque::new()), Maker::here());
            hand_out(Arc::new(EventQueue { fid: Fid::new(fid), _fabric: share(fabric), wait, events, maker }), queue);
        }
        Ok(0)
    })
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: the application closes a queue that `open` made. Nothing uses event queues.
    guarded(|| unsafe { object::close::<EventQueue>(fid.cast(), |_| false) })
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int {
    guarded(|| {
        // SAFETY: the handle is an open queue's; with FI_GETWAIT `arg` has room for a descriptor.
        unsafe {
            let queue = object::object::<EventQueue>(fid.cast());
            queue.events()?;
            let wait = queue.wait.as_ref();
            match (command as u32, wait) {
                (FI_GETWAIT, Some(wait)) => arg.cast::<c_int>().write(wait.descriptor()),
                _ => return Err(Errno(FI_ENOSYS)),
            }
        }
        Ok(0)
    })
}

unsafe extern "C" fn read(
    queue: *mut fid_eq,
    event: *mut u32,
    buffer: *mut c_void,
    length: usize,
    flags: u64,
) -> isize {
    // SAFETY: the handle is an open queue's.
    guarded(|| unsafe { object::object::<EventQueue>(queue) }.take(event, buffer, length, flags)) as isize
}

/// There are no errors here, because no operation that could fail later reports to an event queue.
unsafe extern "C" fn read_error(_: *mut fid_eq, _: *mut fi_eq_err_entry, _: u64) -> isize {
    TRY_AGAIN.code()
}

unsafe extern "C" fn write(queue: *mut fid_eq, event: u32, buffer: *const c_void, length: usize, _flags: u64) -> isize {
    guarded(|| {
        // SAFETY: the handle is an open queue's.
        let queue = unsafe { object::object::<EventQueue>(queue) };
        let mut events = queue.events()?;
        if events.len() == EVENTS_MOST {
            return Err(TRY_AGAIN);
        }
        // SAFETY: `length` bytes are the application's event.
        let data = unsafe { core::slice::from_raw_parts(buffer.cast::<u8>(), length) }.to_vec();
        events.push_back((event, data));
        if let Some(wait) = &queue.wait {
            wait.signal();
        }
        Ok(length as isize)
    }) as isize
}

unsafe extern "C" fn blocking_read(
    queue: *mut fid_eq,
    event: *mut u32,
    buffer: *mut c_void,
    length: usize,
    timeout: c_int,
    flags: u64,
) -> isize {
    guarded(|| {
        // SAFETY: the handle is an open queue's.
        let queue = unsafe { object::object::<EventQueue>(queue) };
        let wait = queue.wait.as_ref().ok_or(INVALID)?;
        let end = u64::try_from(timeout).ok().map(|timeout| Instant::now() + Duration::from_millis(timeout));
        loop {
            match queue.take(event, buffer, length, flags) {
                Err(TRY_AGAIN) if end.is_none_or(|end| Instant::now() < end) => {}
                result => return result,
            }
            if queue.may_sleep()? {
                wait.sleep(end.map(|end| end.saturating_duration_since(Instant::now())));
            }
        }
    }) as isize
}

unsafe extern "C" fn error_text(
    _: *mut fid_eq,
    errno: c_int,
    _: *const c_void,
    _: *mut c_char,
    _: usize,
) -> *const c_char {
    loader::get().map_or(c"".as_ptr(), |loader| loader.error_text(errno))
}
