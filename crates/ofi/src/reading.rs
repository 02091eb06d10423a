//! Reading a completion queue, which is what makes progress, and sleeping until there is something to read.

use crate::bindings::fi_addr_t;
use crate::completion_queue::{CompletionQueue, State};
use crate::endpoint::Endpoint;
use crate::errno::{Errno, INVALID, Result, TRY_AGAIN};
use crate::lock::Entered;
use crate::sleepers::{Thread, moment};
use crate::wait::NAP;
use core::ffi::{c_int, c_void};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Polls before a blocking read sleeps.
const POLLS_BEFORE_SLEEP: u32 = 64;

/// Where a read puts completions.
#[derive(Clone, Copy)]
pub struct Room {
    /// Entries of the queue's format.
    pub buffer: *mut c_void,
    /// How many of them there is room for.
    pub count: usize,
    /// As many senders, or null.
    pub sources: *mut fi_addr_t,
}

impl CompletionQueue {
    /// Reads what is there; if that is nothing, makes progress once and looks again.
    ///
    /// # Safety
    /// The room must be there.
    #[inline(always)]
    pub unsafe fn poll(&self, room: Room) -> isize {
        self.domain.enter(|entered| {
            // SAFETY: promised by the caller.
            let take = |state: &mut State| unsafe {
                state.completions.take(room.buffer.cast(), room.count, self.entry_bytes(), room.sources)
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
            if found > 0 || room.count == 0 && state.completions.is_ready() {
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
            // SAFETY: the list shares the endpoint, and nothing that progress does changes the list: only binding and
            // closing do, which need the domain that we are in.
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
            Ok((!self.state.get(entered).completions.is_ready()).into())
        });
        if empty < 0 { Err(Errno(-empty as c_int)) } else { Ok(empty > 0) }
    }

    /// Asks for wakes. Whether there is nothing to read and no work left, so that the calling thread may sleep on the
    /// descriptor: it becomes readable when there is. Makes no progress, which would end the sleep that this thread has
    /// prepared at other queues.
    pub fn settle(&self) -> Result<bool> {
        let wait = self.wait().ok_or(INVALID)?;
        let settled = self.domain.enter(|entered| {
            let mut most = if self.state.get(entered).completions.is_ready() { None } else { Some(NAP) };
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

    /// The first half of `fi_trywait`, for an application that sleeps on the descriptor by itself;
    /// [`settle`](Self::settle) is the other. Whether there is neither anything to read nor a signal. A signal ends one
    /// sleep: here it is forgotten, or the descriptor would stay readable for ever.
    pub fn is_quiet(&self) -> Result<bool> {
        self.wait().ok_or(INVALID)?;
        if self.forget_signal() {
            return Ok(false);
        }
        self.is_empty()
    }

    /// Reads, and sleeps until there is something to read, the time in milliseconds is over (negative: never), or a
    /// signal.
    ///
    /// # Safety
    /// The room must be there.
    pub unsafe fn blocking_poll(&self, room: Room, timeout: c_int) -> isize {
        let Some(wait) = self.wait() else { return INVALID.code() };
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
