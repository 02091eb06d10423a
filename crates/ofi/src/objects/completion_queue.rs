//! A completion queue: what it holds, who reports to it, and who sleeps on it.
//!
//! Sends and receives may report to different queues, of which the application may read one and leave the other. The
//! simple idea, that a full queue stops progress, hangs such an application: what it waits for at one queue does not
//! come because the other queue is full. So there is a bound on what is started, and none on what is under way:
//! 1. An operation is refused (`-FI_EAGAIN`) while its own queue holds `capacity` completions that nobody has read; the
//!    other queue does not matter. (An endpoint counts down from the room that it saw last. So it may notice late that
//!    the queue is full, by `capacity` operations at most: see `Endpoint::find_room`.)
//! 2. An operation that was accepted always completes. The queue grows for it, because the size that an application
//!    asks for is a minimum (fi_cq(3)). It grows by no more than the number of operations that were outstanding.
//! 3. That holds for errors, also of operations whose success is not reported here (`fi_inject`, and operations without
//!    `FI_COMPLETION` on a selective queue). Rule 1 does not hold these back, so they are refused while the queue holds
//!    `capacity` errors, from the first error on that an endpoint adds to such a queue.
//! 4. Unsolicited completions are those of operations that the application has not started one by one: messages into a
//!    multi-receive buffer, whether received or not, and peers' writes with data. They could come without end. While
//!    the queue holds `capacity` of them, nothing is retrieved from the mailbox, and credits keep the senders back.
//!    Operations that need no packet still go on and are reported; those that need one wait for the reader of this
//!    queue.

use crate::border::bindings::fid_cq;
use crate::border::object::{Fid, Object};
use crate::objects::completion::{Entry, Failed};
use crate::objects::completions::Completions;
use crate::objects::domain::Domain;
use crate::objects::endpoint::Endpoint;
use crate::threads::domain_lock::{Entered, Guarded};
use crate::threads::sleepers::{Sleepers, moment};
use crate::threads::thread::Thread;
use crate::threads::wait::Wait;
use crate::threads::waits::SLEEP_MOST;
use crate::trace::operations::Unread;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Release};
use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

/// A completion queue.
#[repr(C)]
pub struct CompletionQueue {
    fid: Fid<fid_cq>,
    /// Its domain.
    pub domain: Arc<Domain>,
    /// Bytes of an entry. The formats are prefixes of one another.
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
    /// The completions that nobody has read.
    pub completions: Completions,
    /// The text of the error that was read last. The application may look at it until it reads the next one.
    pub last_text: CString,
    /// What the trace has to know of these completions, if there is one.
    pub unread: Unread,
    /// Endpoints that report here.
    pub endpoints: Vec<Arc<Endpoint>>,
    /// Threads that sleep until there is something to read.
    pub sleepers: Sleepers,
    /// Whether somebody may sleep, here or at another queue, until an entry of this queue is read and packets can be
    /// retrieved again.
    pub awaited: bool,
    /// The last poll has found nothing.
    pub was_empty: bool,
    /// The processor is to be given away before an error is read, which says that a peek, one of many, was in vain.
    pub gives_way: bool,
}

impl CompletionQueue {
    /// An empty queue. `entry_bytes` are those of its format; who reads it can sleep if there is a `wait`.
    pub fn new(
        fid: fid_cq,
        domain: Arc<Domain>,
        entry_bytes: usize,
        wait: Option<Wait>,
        completions: Completions,
    ) -> CompletionQueue {
        let state = State {
            completions,
            last_text: CString::default(),
            unread: Unread::default(),
            endpoints: Vec::new(),
            sleepers: Sleepers::default(),
            awaited: false,
            was_empty: false,
            gives_way: false,
        };
        let (fid, signaled, state) = (Fid::new(fid), AtomicBool::new(false), Guarded::new(state));
        CompletionQueue { fid, domain, entry_bytes, wait, signaled, state }
    }

    /// Bytes of an entry in the format of this queue.
    #[inline(always)]
    pub fn entry_bytes(&self) -> usize {
        self.entry_bytes
    }

    /// What its readers sleep on, if they can.
    #[inline]
    pub fn wait(&self) -> Option<&Wait> {
        self.wait.as_ref()
    }

    /// Ends one sleep of whoever sleeps here (`fi_cq_signal`). Returns whether readers of this queue can sleep.
    pub fn signal(&self) -> bool {
        let Some(wait) = &self.wait else { return false };
        wait.signal();
        // The mark comes after the signal, so that whoever sees the mark finds the signal.
        self.signaled.store(true, Release);
        true
    }

    /// Whether there was a signal since the last call of this function.
    pub fn forget_signal(&self) -> bool {
        let is_signaled = self.signaled.load(Acquire) && self.signaled.swap(false, Acquire);
        if is_signaled && let Some(wait) = &self.wait {
            wait.quieten();
        }
        is_signaled
    }

    /// Whether readers of this queue can sleep, so that its endpoints have to wake them.
    pub fn wakes(&self) -> bool {
        self.wait.is_some()
    }

    /// Adds a success, and wakes the threads that sleep here.
    #[inline(always)]
    pub fn push(&self, entry: Entry, entered: &mut Entered) {
        let state = self.state.get(entered);
        state.completions.push(entry);
        if !state.sleepers.is_empty() {
            self.wake(entered);
        }
    }

    /// Adds an error, and wakes the threads that sleep here. Returns whether the queue is full of errors now.
    pub fn push_error(&self, failed: Failed, unsolicited: bool, entered: &mut Entered) -> bool {
        self.state.get(entered).completions.push_error(failed, unsolicited);
        self.wake(entered);
        self.state.get(entered).completions.is_full_of_errors()
    }

    /// Whether threads other than this one sleep here and nobody has rung to wake them.
    pub fn has_sleepers(&self, entered: &mut Entered) -> bool {
        self.state.get(entered).sleepers.are_unaware(Thread::current())
    }

    /// Wakes the threads that sleep here.
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

    /// Wakes the threads that sleep here after this time at the latest.
    pub fn wake_after(&self, most: Duration, entered: &mut Entered) {
        if most < SLEEP_MOST
            && let Some(wait) = &self.wait
            && self.has_sleepers(entered)
            && self.state.get(entered).sleepers.hasten(moment(most))
        {
            wait.set_alarm(most);
        }
    }
}
