//! A completion queue: what it holds, who reports to it, and who sleeps on it.
//!
//! Sends and receives may report to different queues, of which the application may read one and leave the other. The
//! simple idea, that a full queue stops progress, hangs such an application: what it waits for at one queue does not
//! come because the other is full. So the bound is on what is started, and never on what is under way:
//! 1. an operation is refused (`-FI_EAGAIN`) while its own queue holds `capacity` completions that nobody has read; the
//!    other queue does not matter. (An endpoint counts down from the room that it saw last, so it may notice that late,
//!    by `capacity` operations at most: see `Endpoint::find_room`.)
//! 2. what was accepted always completes: the queue grows for it (the size that an application asks for is a minimum,
//!    fi_cq(3)), to no more than what was outstanding besides;
//! 3. completions that nobody here has started one by one, messages into a multi-receive buffer and peers' writes with
//!    data, could come without end: while the queue holds `capacity` of these, nothing is retrieved from the mailbox,
//!    and credits keep the senders back. What needs no packet still goes on and is reported; what does waits for the
//!    reader of this queue.

use crate::bindings::fid_cq;
use crate::completion::{Entry, Failed};
use crate::completions::Completions;
use crate::domain::Domain;
use crate::endpoint::Endpoint;
use crate::errno::Result;
use crate::lock::{Entered, Guarded};
use crate::object::{Fid, Object};
use crate::sleepers::{Sleepers, Thread, moment};
use crate::wait::{NAP, Wait};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Release};
use std::ffi::CString;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

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
    /// What has not been read.
    pub completions: Completions,
    /// Text of the error fetched last: the application may look at it until it reads again.
    pub last_text: CString,
    /// Endpoints that report here.
    pub endpoints: Vec<Arc<Endpoint>>,
    /// Threads that sleep until there is something to read.
    pub sleepers: Sleepers,
    /// Somebody may sleep, here or at another queue, until an entry of this queue is read: then packets are retrieved
    /// again.
    pub awaited: bool,
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
            endpoints: Vec::new(),
            sleepers: Sleepers::default(),
            awaited: false,
        };
        let (fid, signaled, state) = (Fid::new(fid), AtomicBool::new(false), Guarded::new(state));
        CompletionQueue { fid, domain, entry_bytes, wait, signaled, state }
    }

    /// Bytes of an entry: the formats are prefixes of one another.
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
        // In this order, who sees the mark finds the signal.
        self.signaled.store(true, Release);
        true
    }

    /// Whether there was a signal since this was last asked. It is forgotten.
    pub fn forget_signal(&self) -> bool {
        let is_signaled = self.signaled.load(Acquire) && self.signaled.swap(false, Acquire);
        if is_signaled && let Some(wait) = &self.wait {
            wait.quieten();
        }
        is_signaled
    }

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
        state.completions.push(entry);
        if !state.sleepers.is_empty() {
            self.wake(entered);
        }
    }

    /// Adds an error, and wakes who sleeps here.
    pub fn push_error(&self, failed: Failed, entered: &mut Entered) {
        self.state.get(entered).completions.push_error(failed);
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
}
