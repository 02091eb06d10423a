//! `fi_cq_open`: completions, in the format that the application chose.
//!
//! Successes and errors share one order: a read returns successes up to the next error, then `-FI_EAVAIL` until the error has
//! been fetched with `fi_cq_readerr`. Reading is what makes progress.
//!
//! Sends and receives may report to different queues, of which the application may read one and leave the other. The simple
//! idea, that a full queue stops progress, hangs such an application: what it waits for at one queue does not come because
//! the other is full. So the bound is on what is started, and never on what is under way:
//! 1. an operation is refused (`-FI_EAGAIN`) while its own queue holds `capacity` completions that nobody has read; the other
//!    queue does not matter. (An endpoint counts down from the room that it saw last, so it may notice that late, by
//!    `capacity` operations at most: see `Endpoint::find_room`.)
//! 2. what was accepted always completes: the queue grows for it (the size that an application asks for is a minimum,
//!    fi_cq(3)), to no more than what was outstanding besides;
//! 3. completions that nobody here has started one by one, messages into a multi-receive buffer and peers' writes with data,
//!    could come without end: while the queue holds `capacity` of these, nothing is retrieved from the mailbox, and credits
//!    keep the senders back. What needs no packet still goes on and is reported; what does waits for the reader of this queue.

use crate::address_vector::NO_ADDRESS;
use crate::bindings::*;
use crate::domain::Domain;
use crate::endpoint::Endpoint;
use crate::errno::{Errno, INVALID, Reason, Result, TRY_AGAIN};
use crate::guard::guarded;
use crate::limits::{self, ERROR_TEXT_BYTES_MOST};
use crate::lock::{Entered, Guarded};
use crate::object::{self, Fid, Object, hand_out, head, no_bind, operations, share, table};
use crate::sleepers::{Sleepers, Thread, moment};
use crate::wait::{NAP, Wait};
use crate::{identity, loader, log};
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Release};
use std::collections::VecDeque;
use std::ffi::CString;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Completions that an application gets room for if it does not say: as many as it may have operations outstanding.
const CAPACITY_DEFAULT: usize = limits::QUEUE_SIZE;
/// Completions that there is memory for from the start.
const ENTRIES_FIRST: usize = 4096;
/// Polls before a blocking read sleeps.
const POLLS_BEFORE_SLEEP: u32 = 64;

/// A completion queue.
#[repr(C)]
pub struct CompletionQueue {
    fid: Fid<fid_cq>,
    /// Its domain.
    pub domain: Arc<Domain>,
    /// Bytes of an entry: the formats are prefixes of one another.
    entry_bytes: usize,
    wait: Option<Wait>,
    /// Whether there was a signal since an application last asked whether it may sleep on the descriptor.
    signaled: AtomicBool,
    /// Completions and bound endpoints.
    pub state: Guarded<State>,
}

// SAFETY: `repr(C)`, and the C struct comes first.
unsafe impl Object for CompletionQueue {
    type Fid = fid_cq;
}

/// What the domain's lock guards.
pub struct State {
    capacity: usize,
    entries: VecDeque<Entry>,
    /// Errors, each with the number of the entry before which it came.
    errors: VecDeque<(u64, Failed)>,
    /// Entries read so far.
    read: u64,
    /// Numbers of the entries that no operation of ours was started for; some may have been read.
    unsolicited: VecDeque<u64>,
    /// Text of the error fetched last: the application may look at it until it reads again.
    last_text: CString,
    /// Endpoints that report here.
    pub endpoints: Vec<Arc<Endpoint>>,
    /// Threads that sleep until there is something to read.
    sleepers: Sleepers,
    /// Somebody may sleep, here or at another queue, until an entry of this queue is read: then packets are retrieved again.
    pub awaited: bool,
}

/// An operation that succeeded.
#[derive(Clone, Copy)]
pub struct Entry {
    /// In the largest format.
    pub completion: fi_cq_tagged_entry,
    /// Who sent it.
    pub source: fi_addr_t,
}

/// An operation that failed.
pub struct Failed {
    /// As for a success; `len` is what was transferred all the same.
    pub entry: Entry,
    /// Why.
    pub reason: Reason,
}

static HEAD: fi_ops = operations(close, no_bind, control);
static OPS: fi_ops_cq = fi_ops_cq {
    size: size_of::<fi_ops_cq>(),
    read: Some(read),
    readfrom: Some(read_from),
    readerr: Some(read_error),
    sread: Some(blocking_read),
    sreadfrom: Some(blocking_read_from),
    signal: Some(signal),
    strerror: Some(error_text),
};

impl State {
    fn new(capacity: usize) -> Self {
        State {
            capacity,
            entries: VecDeque::with_capacity(capacity.min(ENTRIES_FIRST)),
            errors: VecDeque::new(),
            read: 0,
            unsolicited: VecDeque::new(),
            last_text: CString::default(),
            endpoints: Vec::new(),
            sleepers: Sleepers::default(),
            awaited: false,
        }
    }

    /// Adds a success.
    #[inline]
    fn push(&mut self, entry: Entry) {
        self.entries.push_back(entry);
    }

    /// The success added next is one that no operation of ours was started for.
    pub fn expect_unsolicited(&mut self) {
        self.unsolicited.push_back(self.read + self.entries.len() as u64);
    }

    /// Adds an error.
    fn push_error(&mut self, failed: Failed) {
        self.errors.push_back((self.read + self.entries.len() as u64, failed));
    }

    /// How many completions more there is room for.
    pub fn room(&self) -> usize {
        self.capacity.saturating_sub(self.entries.len() + self.errors.len())
    }

    /// How many more errors the queue takes of operations that nobody may ask for any more, or that were to report nothing.
    pub fn room_for_errors(&self) -> usize {
        self.capacity.saturating_sub(self.errors.len())
    }

    /// Whether there is room for more that no operation of ours was started for.
    #[inline]
    pub fn has_room_for_unsolicited(&mut self) -> bool {
        self.unsolicited.len() < self.capacity || self.forget_unsolicited() < self.capacity
    }

    /// Forgets which of the entries read so far were unsolicited. Returns how many of the others are.
    #[cold]
    fn forget_unsolicited(&mut self) -> usize {
        while self.unsolicited.front().is_some_and(|&number| number < self.read) {
            self.unsolicited.pop_front();
        }
        self.unsolicited.len()
    }

    /// Whether a read would return something.
    fn is_ready(&self) -> bool {
        !self.entries.is_empty() || !self.errors.is_empty()
    }

    /// Successes before the next error.
    #[inline]
    fn readable(&self) -> Result<usize> {
        let Some((number, _)) = self.errors.front() else { return Ok(self.entries.len()) };
        let before = (number - self.read) as usize;
        if before == 0 { Err(Errno(FI_EAVAIL)) } else { Ok(before) }
    }

    /// Moves up to `count` successes to `buffer`, `entry_bytes` of each, and their sources to `sources` unless that is null.
    ///
    /// # Safety
    /// There must be room for that.
    #[inline]
    unsafe fn take(
        &mut self,
        buffer: *mut u8,
        count: usize,
        entry_bytes: usize,
        sources: *mut fi_addr_t,
    ) -> Result<usize> {
        let count = self.readable()?.min(count);
        for index in 0..count {
            let Some(entry) = self.entries.pop_front() else { break };
            // SAFETY: `index < count`, and the caller promised the room; an entry is a prefix of the largest format.
            unsafe {
                let place = buffer.add(index * entry_bytes);
                if entry_bytes == size_of::<fi_cq_tagged_entry>() {
                    // What everybody uses is a copy of a size that the compiler knows.
                    place.cast::<fi_cq_tagged_entry>().write_unaligned(entry.completion);
                } else {
                    core::ptr::copy_nonoverlapping((&raw const entry.completion).cast(), place, entry_bytes);
                }
                if !sources.is_null() {
                    *sources.add(index) = entry.source;
                }
            }
        }
        self.read += count as u64;
        Ok(count)
    }
}

/// Where a read puts completions.
#[derive(Clone, Copy)]
struct Room {
    buffer: *mut c_void,
    count: usize,
    sources: *mut fi_addr_t,
}

impl CompletionQueue {
    /// The descriptors of endpoints that this queue's readers sleep on are wanted.
    pub fn wakes(&self) -> bool {
        self.wait.is_some()
    }

    /// Readers wake by this descriptor from now on.
    pub fn add_wake(&self, descriptor: RawFd) -> Result<()> {
        self.wait.as_ref().map_or(Ok(()), |wait| wait.add(descriptor))
    }

    /// Adds a success, and wakes who sleeps here.
    #[inline]
    pub fn push(&self, entry: Entry, entered: &mut Entered) {
        let state = self.state.get(entered);
        state.push(entry);
        if !state.sleepers.is_empty() {
            self.wake(entered);
        }
    }

    /// Adds an error, and wakes who sleeps here.
    pub fn push_error(&self, failed: Failed, entered: &mut Entered) {
        self.state.get(entered).push_error(failed);
        self.wake(entered);
    }

    /// Whether threads other than this one sleep here, for whom nobody has rung.
    pub fn has_sleepers(&self, entered: &mut Entered) -> bool {
        self.state.get(entered).sleepers.are_unaware(Thread::current())
    }

    /// Wakes who sleeps here.
    #[cold]
    pub fn wake(&self, entered: &mut Entered) {
        let sleepers = &mut self.state.get(entered).sleepers;
        if let Some(wait) = &self.wait
            && sleepers.are_unaware(Thread::current())
        {
            sleepers.ring();
            wait.ring();
        }
    }

    /// Wakes who sleeps here after this time at the latest.
    pub fn wake_after(&self, most: Duration, entered: &mut Entered) {
        if most < NAP
            && let Some(wait) = &self.wait
            && self.has_sleepers(entered)
            && self.state.get(entered).sleepers.hasten(moment(most))
        {
            wait.set_alarm(most);
        }
    }

    /// Ends that.
    pub fn remove_wake(&self, descriptor: RawFd) {
        if let Some(wait) = &self.wait {
            wait.remove(descriptor);
        }
    }

    /// Reads what is there; if that is nothing, makes progress once and looks again.
    ///
    /// # Safety
    /// The room must be there.
    #[inline(always)]
    unsafe fn poll(&self, room: Room) -> isize {
        self.domain.enter(|entered| {
            // SAFETY: promised by the caller.
            let take = |state: &mut State| unsafe {
                state.take(room.buffer.cast(), room.count, self.entry_bytes, room.sources)
            };
            let state = self.state.get(entered);
            if !state.sleepers.is_empty() {
                state.sleepers.remove(Thread::current());
            }
            let found = take(state)?;
            if found > 0 {
                if state.awaited {
                    self.resume(entered);
                }
                return Ok(found as isize);
            }
            if !self.progress(entered) && self.idle(entered) {
                self.progress(entered);
            }
            let state = self.state.get(entered);
            let found = take(state)?;
            if found > 0 || room.count == 0 && state.is_ready() {
                return Ok(found as isize);
            }
            Err(TRY_AGAIN)
        })
    }

    /// Who sleeps since packets were left in the mailbox for want of room here may have to go on.
    #[cold]
    fn resume(&self, entered: &mut Entered) {
        self.state.get(entered).awaited = false;
        for endpoint in self.state.get(entered).endpoints.clone() {
            endpoint.look_after_sleepers(entered);
        }
    }

    /// Progress of all bound endpoints. Returns whether anything happened.
    #[inline]
    fn progress(&self, entered: &mut Entered) -> bool {
        let mut moved = false;
        for index in 0..self.state.get(entered).endpoints.len() {
            let endpoint: *const Endpoint = Arc::as_ptr(&self.state.get(entered).endpoints[index]);
            // SAFETY: the list shares the endpoint, and nothing that progress does changes the list: only binding and closing
            // do, which need the domain that we are in.
            moved |= unsafe { &*endpoint }.progress(entered);
        }
        moved
    }

    /// All bound endpoints wait a little. Returns whether something has come meanwhile.
    fn idle(&self, entered: &mut Entered) -> bool {
        let mut come = false;
        for index in 0..self.state.get(entered).endpoints.len() {
            let endpoint = Arc::clone(&self.state.get(entered).endpoints[index]);
            come |= endpoint.idle(entered);
        }
        come
    }

    /// Makes progress. Whether there is nothing to read.
    fn is_empty(&self) -> Result<bool> {
        let empty = self.domain.enter(|entered| {
            self.progress(entered);
            Ok((!self.state.get(entered).is_ready()).into())
        });
        if empty < 0 { Err(Errno(-empty as c_int)) } else { Ok(empty > 0) }
    }

    /// Asks for wakes. Whether there is nothing to read and no work left, so that the calling thread may sleep on the descriptor: it
    /// becomes readable when there is. Makes no progress, which would end the sleep that this thread has prepared at other queues.
    pub fn settle(&self) -> Result<bool> {
        let wait = self.wait.as_ref().ok_or(INVALID)?;
        let settled = self.domain.enter(|entered| {
            let mut most = if self.state.get(entered).is_ready() { None } else { Some(NAP) };
            for index in 0..self.state.get(entered).endpoints.len() {
                let endpoint = Arc::clone(&self.state.get(entered).endpoints[index]);
                endpoint.state.get(entered).watched = true;
                // All of them are asked: who has work to do does it while others wait for packets.
                most = endpoint.arm(entered).and_then(|its| Some(most?.min(its)));
            }
            let Some(most) = most else { return Ok(0) };
            // Under the lock: an alarm set later would take the place of what another thread has rung meanwhile.
            wait.set_alarm(most);
            self.state.get(entered).sleepers.settle(Thread::current(), moment(most));
            Ok(1)
        });
        if settled < 0 { Err(Errno(-settled as c_int)) } else { Ok(settled > 0) }
    }

    /// The first half of `fi_trywait`, for an application that sleeps on the descriptor by itself; [`settle`](Self::settle) is the
    /// other. Whether there is neither anything to read nor a signal. A signal ends one sleep: here it is forgotten, or the
    /// descriptor would stay readable for ever.
    pub fn is_quiet(&self) -> Result<bool> {
        let wait = self.wait.as_ref().ok_or(INVALID)?;
        if self.signaled.load(Acquire) && self.signaled.swap(false, Acquire) {
            wait.quieten();
            return Ok(false);
        }
        self.is_empty()
    }

    /// Reads, and sleeps until there is something to read, the time in milliseconds is over (negative: never), or a signal.
    ///
    /// # Safety
    /// The room must be there.
    unsafe fn blocking_poll(&self, room: Room, timeout: c_int) -> isize {
        let Some(wait) = &self.wait else { return INVALID.code() };
        let end = u64::try_from(timeout).ok().map(|timeout| Instant::now() + Duration::from_millis(timeout));
        let mut polls = 0;
        loop {
            // SAFETY: promised by the caller.
            let outcome = unsafe { self.poll(room) };
            if outcome != TRY_AGAIN.code() || end.is_some_and(|end| Instant::now() >= end) || wait.quieten() {
                return outcome;
            }
            polls += 1;
            if polls < POLLS_BEFORE_SLEEP {
                continue;
            }
            match self.is_empty().and_then(|empty| Ok(empty && self.settle()?)) {
                Ok(true) => wait.sleep(end.map(|end| end.saturating_duration_since(Instant::now()))),
                Ok(false) => {}
                Err(errno) => return errno.code(),
            }
        }
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
            if let Some(attr) = attr.as_mut() {
                if attr.wait_cond != FI_CQ_COND_NONE && attr.wait_cond != FI_CQ_COND_THRESHOLD {
                    return Err(INVALID);
                }
                (capacity, format, wait) = (attr.size, attr.format, attr.wait_obj);
            }
            let opened = CompletionQueue {
                fid: Fid::new(fid_cq { fid: head(FI_CLASS_CQ, context, &HEAD), ops: table(&OPS) }),
                domain: share(domain),
                entry_bytes: entry_bytes(format)?,
                wait: match wait {
                    FI_WAIT_NONE => None,
                    FI_WAIT_UNSPEC | FI_WAIT_FD => Some(Wait::new()?),
                    _ => return Err(Errno(FI_ENOSYS)),
                },
                signaled: AtomicBool::new(false),
                state: Guarded::new(State::new(if capacity == 0 { CAPACITY_DEFAULT } else { capacity })),
            };
            hand_out(Arc::new(opened), queue);
        }
        Ok(0)
    })
}

fn entry_bytes(format: fi_cq_format) -> Result<usize> {
    match format {
        FI_CQ_FORMAT_UNSPEC | FI_CQ_FORMAT_TAGGED => Ok(size_of::<fi_cq_tagged_entry>()),
        FI_CQ_FORMAT_CONTEXT => Ok(size_of::<fi_cq_entry>()),
        FI_CQ_FORMAT_MSG => Ok(size_of::<fi_cq_msg_entry>()),
        FI_CQ_FORMAT_DATA => Ok(size_of::<fi_cq_data_entry>()),
        _ => Err(Errno(FI_ENOSYS)),
    }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: the application closes a queue that `open` made. Bound endpoints share it.
    guarded(|| unsafe { object::close::<CompletionQueue>(fid.cast(), |queue| Arc::strong_count(queue) > 1) })
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int {
    guarded(|| {
        // SAFETY: the handle is an open queue's; `arg` has room for what the command asks.
        unsafe {
            let wait = object::object::<CompletionQueue>(fid.cast()).wait.as_ref();
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

unsafe extern "C" fn read(queue: *mut fid_cq, buffer: *mut c_void, count: usize) -> isize {
    // SAFETY: the handle is an open queue's, and the application provides the room.
    unsafe { object::object::<CompletionQueue>(queue).poll(Room { buffer, count, sources: core::ptr::null_mut() }) }
}

unsafe extern "C" fn read_from(
    queue: *mut fid_cq,
    buffer: *mut c_void,
    count: usize,
    sources: *mut fi_addr_t,
) -> isize {
    // SAFETY: the handle is an open queue's, and the application provides the room.
    unsafe { object::object::<CompletionQueue>(queue).poll(Room { buffer, count, sources }) }
}

unsafe extern "C" fn blocking_read(
    queue: *mut fid_cq,
    buffer: *mut c_void,
    count: usize,
    _condition: *const c_void,
    timeout: c_int,
) -> isize {
    let room = Room { buffer, count, sources: core::ptr::null_mut() };
    // SAFETY: the handle is an open queue's, and the application provides the room.
    unsafe { object::object::<CompletionQueue>(queue).blocking_poll(room, timeout) }
}

unsafe extern "C" fn blocking_read_from(
    queue: *mut fid_cq,
    buffer: *mut c_void,
    count: usize,
    sources: *mut fi_addr_t,
    _condition: *const c_void,
    timeout: c_int,
) -> isize {
    // SAFETY: the handle is an open queue's, and the application provides the room.
    unsafe { object::object::<CompletionQueue>(queue).blocking_poll(Room { buffer, count, sources }, timeout) }
}

unsafe extern "C" fn signal(queue: *mut fid_cq) -> c_int {
    // SAFETY: the handle is an open queue's.
    let queue = unsafe { object::object::<CompletionQueue>(queue) };
    let Some(wait) = &queue.wait else { return -FI_ENOSYS };
    wait.signal();
    // In this order, who sees the mark finds the signal.
    queue.signaled.store(true, Release);
    0
}

/// `fi_cq_err_entry` as it is from version 1.20 on.
#[repr(C)]
struct ErrorEntry120 {
    known: fi_cq_err_entry,
    src_addr: fi_addr_t,
}

unsafe extern "C" fn read_error(queue: *mut fid_cq, place: *mut fi_cq_err_entry, _flags: u64) -> isize {
    // SAFETY: the handle is an open queue's.
    let queue = unsafe { object::object::<CompletionQueue>(queue) };
    let api = queue.domain.fabric.api_version();
    queue.domain.enter(|entered| {
        let state = queue.state.get(entered);
        if state.readable() != Err(Errno(FI_EAVAIL)) {
            return Err(TRY_AGAIN);
        }
        let (_, failed) = state.errors.pop_front().ok_or(TRY_AGAIN)?;
        state.last_text = CString::new(failed.reason.text.as_str()).unwrap_or_default();
        // SAFETY: the application provides the struct of the version that it was built for.
        unsafe { failed.write(&state.last_text, api, place) };
        Ok(1)
    })
}

impl Failed {
    /// # Safety
    /// `place` must be a struct of interface version `api`, as the application filled it in.
    unsafe fn write(&self, text: &CString, api: u32, place: *mut fi_cq_err_entry) {
        // SAFETY: the fields up to `prov_errno` and the pointer to error data are in every version; what came later is only
        // touched for versions that have it.
        unsafe {
            let from = &self.entry.completion;
            (*place).op_context = from.op_context;
            (*place).flags = from.flags;
            (*place).len = from.len;
            (*place).buf = from.buf;
            (*place).data = from.data;
            (*place).tag = from.tag;
            (*place).olen = self.reason.overflow;
            (*place).err = self.reason.errno.0;
            (*place).prov_errno = self.reason.errno.0;
            let bytes = text.as_bytes_with_nul();
            let bytes = if bytes.len() > 1 { &bytes[..bytes.len().min(ERROR_TEXT_BYTES_MOST)] } else { &[] };
            let has_size = api >= identity::version(1, 5);
            if has_size && (*place).err_data_size > 0 {
                // The application brought room of its own. A text that is cut still ends, for `fi_cq_strerror`.
                let length = bytes.len().min((*place).err_data_size);
                let room = (*place).err_data.cast::<u8>();
                core::ptr::copy_nonoverlapping(bytes.as_ptr(), room, length);
                if length > 0 {
                    *room.add(length - 1) = 0;
                }
                (*place).err_data_size = length;
            } else {
                (*place).err_data =
                    if bytes.is_empty() { core::ptr::null_mut() } else { text.as_ptr().cast_mut().cast() };
                if has_size {
                    (*place).err_data_size = bytes.len();
                }
            }
            if api >= identity::version(1, 20) {
                (*place.cast::<ErrorEntry120>()).src_addr = self.entry.source;
            }
        }
    }
}

impl Entry {
    /// An entry with nothing but its context and flags.
    pub fn new(context: *mut c_void, flags: u64) -> Entry {
        let (len, buf, data, tag) = (0, core::ptr::null_mut(), 0, 0);
        Entry { completion: fi_cq_tagged_entry { op_context: context, flags, len, buf, data, tag }, source: NO_ADDRESS }
    }
}

/// The text of an error: what the error data says (who the peer was), else libfabric's words for the number.
unsafe extern "C" fn error_text(
    _queue: *mut fid_cq,
    errno: c_int,
    data: *const c_void,
    buffer: *mut c_char,
    length: usize,
) -> *const c_char {
    let general = || loader::get().map_or(c"error".as_ptr(), |loader| loader.error_text(errno));
    let text = if data.is_null() { general() } else { data.cast::<c_char>() };
    if !buffer.is_null() && length > 0 {
        // SAFETY: error data is the C string that `read_error` gave, libfabric's texts are C strings, and the application
        // provides `length` bytes.
        unsafe {
            libc::strncpy(buffer, text, length);
            *buffer.add(length - 1) = 0;
        }
    }
    text
}

/// Tells the log of an error that an application will fetch.
pub fn log_failure(failed: &Failed) {
    // Truncation, cancellation and an empty peek are answers, not faults.
    if !failed.reason.text.is_empty() {
        log::warn(FI_LOG_CQ, || failed.reason.text.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: usize) -> Entry {
        let mut entry = Entry::new(number as *mut c_void, FI_RECV | FI_TAGGED);
        entry.completion.len = 100 + number;
        entry.completion.data = 200 + number as u64;
        entry.completion.tag = 300 + number as u64;
        entry.source = 400 + number as u64;
        entry
    }

    fn failed(number: usize) -> Failed {
        Failed { entry: entry(number), reason: Reason { errno: Errno(FI_ETRUNC), overflow: 7, text: String::new() } }
    }

    fn take(state: &mut State, count: usize) -> Result<Vec<usize>> {
        let mut room = vec![0usize; count];
        // SAFETY: the room is there.
        let count = unsafe { state.take(room.as_mut_ptr().cast(), count, 8, core::ptr::null_mut()) }?;
        room.truncate(count);
        Ok(room)
    }

    #[test]
    fn formats_are_prefixes_of_the_largest() {
        let mut state = State::new(8);
        for (format, words) in
            [(FI_CQ_FORMAT_CONTEXT, 1), (FI_CQ_FORMAT_MSG, 3), (FI_CQ_FORMAT_DATA, 5), (FI_CQ_FORMAT_TAGGED, 6)]
        {
            state.push(entry(1));
            state.push(entry(2));
            let (mut room, mut sources) = ([0u64; 13], [0; 2]);
            let bytes = entry_bytes(format).unwrap();
            assert_eq!(bytes, 8 * words);
            // SAFETY: the room is there.
            unsafe { state.take(room.as_mut_ptr().cast(), 2, bytes, sources.as_mut_ptr()) }.unwrap();
            let flags = FI_RECV | FI_TAGGED;
            let expected = [[1, flags, 101, 0, 201, 301], [2, flags, 102, 0, 202, 302]];
            assert_eq!(room[..words], expected[0][..words]);
            assert_eq!(room[words..2 * words], expected[1][..words]);
            assert_eq!(room[2 * words], 0, "nothing is written past the entries");
            assert_eq!(sources, [401, 402]);
        }
        assert_eq!(entry_bytes(99), Err(Errno(FI_ENOSYS)));
    }

    #[test]
    fn errors_keep_their_place_among_successes() {
        let mut state = State::new(8);
        state.push(entry(1));
        state.push_error(failed(2));
        state.push(entry(3));
        assert_eq!(take(&mut state, 8), Ok(vec![1]));
        assert_eq!(take(&mut state, 8), Err(Errno(FI_EAVAIL)));
        state.errors.pop_front();
        assert_eq!(take(&mut state, 8), Ok(vec![3]));
        assert_eq!(take(&mut state, 8), Ok(vec![]));
    }

    #[test]
    fn what_has_been_read_makes_room() {
        let mut state = State::new(2);
        state.push(entry(1));
        assert_eq!(state.room(), 1);
        state.push_error(failed(2));
        assert_eq!(state.room(), 0);
        state.push(entry(3));
        assert_eq!(state.room(), 0, "what was accepted is taken all the same");
        take(&mut state, 1).unwrap();
        state.errors.pop_front();
        assert_eq!(state.room(), 1);
    }

    #[test]
    fn only_what_was_not_asked_for_fills_the_room_for_it() {
        let mut state = State::new(2);
        for number in 0..6 {
            if number % 2 == 1 {
                state.expect_unsolicited();
            }
            state.push(entry(number));
            assert_eq!(state.has_room_for_unsolicited(), number < 3);
        }
        take(&mut state, 3).unwrap();
        assert!(!state.has_room_for_unsolicited(), "two are left of three");
        take(&mut state, 1).unwrap();
        assert!(state.has_room_for_unsolicited());
        take(&mut state, 2).unwrap();
        assert_eq!(state.forget_unsolicited(), 0);
    }

    /// An application's struct of version 1.20, filled with a pattern.
    fn place() -> ErrorEntry120 {
        // SAFETY: plain data.
        let mut place: ErrorEntry120 = unsafe { core::mem::zeroed() };
        place.src_addr = 0x5555;
        place
    }

    #[test]
    fn old_applications_get_no_fields_that_they_do_not_know() {
        for (api, expected) in [(identity::version(1, 17), 0x5555), (identity::version(1, 20), 402)] {
            let mut place = place();
            // SAFETY: the place has the fields of either version.
            unsafe { failed(2).write(&CString::default(), api, (&raw mut place).cast()) };
            assert_eq!(place.src_addr, expected);
            assert_eq!((place.known.err, place.known.olen, place.known.tag), (FI_ETRUNC, 7, 302));
        }
    }

    #[test]
    fn error_data_is_ours_or_copied_into_what_the_application_brought() {
        let text = CString::new("pid 7 died").unwrap();
        let mut ours = place();
        // SAFETY: as above.
        unsafe { failed(2).write(&text, identity::version(1, 17), (&raw mut ours).cast()) };
        assert_eq!(ours.known.err_data.cast_const().cast(), text.as_ptr());
        assert_eq!(ours.known.err_data_size, 11);
        let mut room = [1u8; 6];
        let mut theirs = place();
        theirs.known.err_data = room.as_mut_ptr().cast();
        theirs.known.err_data_size = 5;
        // SAFETY: as above; the room has five bytes and one more.
        unsafe { failed(2).write(&text, identity::version(1, 17), (&raw mut theirs).cast()) };
        assert_eq!(&room, b"pid \0\x01");
        assert_eq!(theirs.known.err_data_size, 5);
    }
}
