//! Reading a completion queue or a counter, which is what makes progress, and waiting until there is something to read.

use crate::addressing::reach;
use crate::border::bindings::{FI_EAVAIL, FI_ETIMEDOUT, fi_addr_t};
use crate::border::errno::{Errno, INVALID, Result, TRY_AGAIN, YIELD, YIELD_BEFORE_ERROR};
use crate::objects::completion::Failed;
use crate::objects::completion_queue::CompletionQueue;
use crate::objects::completions::Room;
use crate::objects::counter::Counter;
use crate::objects::endpoint::Endpoint;
use crate::operations::recording::{Off, Recording};
use crate::threads::domain_lock::{Entered, Inside};
use crate::threads::sleepers::moment;
use crate::threads::thread::Thread;
use crate::threads::waits::{POLLS_BEFORE_SLEEP, SLEEP_MOST, WAITS_PER_POLL};
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_link::Idle;
use tidegate_message::Link;

/// Lets so many endpoints wait a little, one after the other, until something has come to one of them. Where there is
/// none, other threads have to do what is waited for.
fn idle_each(count: usize, mut idle: impl FnMut(usize) -> Idle) -> Idle {
    let mut found = if count == 0 { Idle::Yield } else { Idle::Spin };
    for index in 0..count {
        match idle(index) {
            Idle::Arrived => return Idle::Arrived,
            Idle::Yield => found = Idle::Yield,
            Idle::Spin => {}
        }
    }
    found
}

impl CompletionQueue {
    /// Reads the completions that are there. If there are none, makes progress, during which completions go straight
    /// into the caller's room.
    ///
    /// # Safety
    /// The room must be there.
    #[inline(always)]
    pub unsafe fn poll<R: Recording>(&self, room: Room) -> isize {
        let Room { buffer, count, sources } = room;
        // A trace has to know of each call.
        if R::FLAG == 0 && count > 0 {
            if self.domain.is_unshared() {
                // SAFETY: as long as the lock is not shared, the application promises that no other call is inside.
                // Nothing in there enters the domain.
                if self.finds_nothing(true, &mut unsafe { Entered::new() }) {
                    return TRY_AGAIN.code();
                }
            } else if !self.domain.always_progresses() {
                // SAFETY: promised by the caller.
                return unsafe { self.poll_shared(buffer, count, sources) };
            }
        }
        // SAFETY: promised by the caller.
        R::call(|| unsafe { self.poll_fully::<R>(buffer, count, sources) })
    }

    /// Whether a poll is one of the many that find nothing and leave nothing to be done. Then this was the poll, and it
    /// took no more than these questions: no register is saved for what only other polls need, and there is nothing
    /// that could panic. `alone`: it is false if there is a network.
    #[inline(always)]
    fn finds_nothing(&self, alone: bool, entered: &mut Entered) -> bool {
        let state = self.state.get(entered);
        if !state.was_empty || state.completions.is_ready() || !state.sleepers.is_empty() {
            return false;
        }
        let [endpoint] = &state.endpoints[..] else { return false };
        let endpoint = Arc::as_ptr(endpoint);
        // SAFETY: the list keeps it alive; nothing here changes the list. Only binding and closing do, and they need
        // the domain that we are in.
        unsafe { &*endpoint }.spins_if_quiet(alone, entered)
    }

    /// A poll for which the lock has to be taken.
    ///
    /// # Safety
    /// The room must be there.
    #[inline(never)]
    unsafe fn poll_shared(&self, buffer: *mut c_void, count: usize, sources: *mut fi_addr_t) -> isize {
        let Some(inside) = self.domain.enter_if_free() else {
            // SAFETY: promised by the caller.
            return unsafe { self.poll_fully::<Off>(buffer, count, sources) };
        };
        // SAFETY: we hold the lock. Nothing in there enters the domain.
        if self.finds_nothing(false, &mut unsafe { Entered::new() }) {
            return TRY_AGAIN.code();
        }
        // SAFETY: promised by the caller.
        unsafe { self.poll_held(inside, buffer, count, sources) }
    }

    /// Goes on with a poll for which the lock has been taken.
    ///
    /// # Safety
    /// The room must be there.
    #[inline(never)]
    unsafe fn poll_held(
        &self,
        inside: Inside<'_>,
        buffer: *mut c_void,
        count: usize,
        sources: *mut fi_addr_t,
    ) -> isize {
        let room = Room { buffer, count, sources };
        // SAFETY: promised by the caller.
        self.domain.go_on_and_yield(inside, |entered| unsafe { self.poll_inside::<Off>(room, entered) })
    }

    /// A poll that is not over with [`finds_nothing`](Self::finds_nothing), and finds the lock not shared.
    ///
    /// # Safety
    /// The room must be there.
    #[inline(never)]
    unsafe fn poll_fully<R: Recording>(&self, buffer: *mut c_void, count: usize, sources: *mut fi_addr_t) -> isize {
        let room = Room { buffer, count, sources };
        // SAFETY: promised by the caller.
        self.domain.enter_and_yield(|entered| unsafe { self.poll_inside::<R>(room, entered) })
    }

    /// A poll, inside the domain.
    ///
    /// # Safety
    /// The room must be there.
    #[inline(always)]
    unsafe fn poll_inside<R: Recording>(&self, room: Room, entered: &mut Entered) -> Result {
        let state = self.state.get(entered);
        if !state.sleepers.is_empty() {
            state.sleepers.remove(Thread::current());
        }
        // Some applications read with no room at all, only to make progress.
        if room.count == 0 || !state.completions.is_ready() {
            if state.was_empty
                && room.count > 0
                && let Some(gives_way) = self.poll_quietly(entered)
            {
                return Err(if gives_way { YIELD } else { TRY_AGAIN });
            }
            let state = self.state.get(entered);
            // SAFETY: promised by the caller, and the room is taken back below (`end_lending`); meanwhile `report_all`
            // fills it.
            unsafe { state.completions.lend(room, self.entry_bytes()) };
            let gives_way = self.poll_progress(entered);
            let state = self.state.get(entered);
            let found = state.completions.end_lending();
            state.was_empty = found == 0;
            if found > 0 {
                return Ok(self.deliver::<R>(found, entered));
            }
            if !state.completions.is_ready() {
                return Err(if gives_way { YIELD } else { TRY_AGAIN });
            }
        }
        // SAFETY: promised by the caller.
        let taken = unsafe { self.state.get(entered).completions.take(room, self.entry_bytes()) };
        let found = taken.map_err(|error| self.before_error(error, entered))?;
        Ok(self.deliver::<R>(found, entered))
    }

    /// A poll of endpoints that have nothing to do, and to which nothing has come: waits a little. Returns whether the
    /// processor is to be given away. `None`: there is something to do.
    #[inline(never)]
    fn poll_quietly(&self, entered: &mut Entered) -> Option<bool> {
        if self.domain.always_progresses() {
            return None;
        }
        let state = self.state.get(entered);
        let (first, count) = (state.endpoints.as_ptr(), state.endpoints.len());
        // SAFETY: the list has so many, and keeps them alive; nothing here changes it. Only binding and closing do, and
        // they need the domain that we are in.
        let endpoint = |index: usize| unsafe { &**first.add(index) };
        // All are asked before one waits. Mostly there is one.
        if (0..count).any(|index| !endpoint(index).is_quiet(entered)) {
            return None;
        }
        match idle_each(count, |index| endpoint(index).idle(entered)) {
            Idle::Arrived => None,
            found => Some(found == Idle::Yield),
        }
    }

    /// Makes progress, and waits a little where a completion is near: after a poll that has found nothing, and amid a
    /// message or while sends of ours wait for credits. Many an MPI gives the processor away after a read that brought
    /// nothing, for longer than the rest of the message takes. Returns whether the processor is to be given away.
    #[inline(always)]
    fn poll_progress(&self, entered: &mut Entered) -> bool {
        let state = self.state.get(entered);
        let moved = match &state.endpoints[..] {
            [endpoint] => {
                let endpoint = Arc::as_ptr(endpoint);
                // SAFETY: as in `progress`.
                unsafe { &*endpoint }.progress_inlined(entered)
            }
            _ => self.progress(entered),
        };
        if moved && self.state.get(entered).completions.has_found() {
            return false;
        }
        self.poll_further(moved, entered)
    }

    /// Goes on with a poll that has found no completion yet, and in which something has `moved`, or nothing.
    #[inline(never)]
    fn poll_further(&self, mut moved: bool, entered: &mut Entered) -> bool {
        if !moved {
            match self.idle(entered) {
                Idle::Arrived => moved = self.progress(entered),
                nothing => return nothing == Idle::Yield,
            }
        }
        for _ in 0..WAITS_PER_POLL {
            if !moved || self.state.get(entered).completions.has_found() || !self.linger(entered) {
                break;
            }
            moved = self.progress(entered);
        }
        false
    }

    /// Waits a little for packets that are about to come, by all that the bound endpoints know. Returns whether one
    /// has.
    fn linger(&self, entered: &mut Entered) -> bool {
        (0..self.state.get(entered).endpoints.len()).any(|index| {
            let endpoint = Arc::clone(&self.state.get(entered).endpoints[index]);
            let Some(active) = &mut endpoint.state.get(entered).active else { return false };
            active.engine.expects_packets() && reach::linger(active.engine.link_mut())
        })
    }

    /// Takes the error that a read has stopped at. If the queue was full of errors, its endpoints accept operations
    /// again.
    pub fn take_error(&self, entered: &mut Entered) -> Option<Failed> {
        let completions = &mut self.state.get(entered).completions;
        if completions.readable() != Err(Errno(FI_EAVAIL)) {
            return None;
        }
        let was_full = completions.is_full_of_errors();
        let failed = completions.take_error();
        if was_full && !completions.is_full_of_errors() {
            for endpoint in self.state.get(entered).endpoints.clone() {
                endpoint.accept_for(self, entered);
            }
        }
        if self.state.get(entered).awaited {
            self.resume(entered);
        }
        failed
    }

    /// The application has so many more completions.
    #[inline(always)]
    fn deliver<R: Recording>(&self, found: usize, entered: &mut Entered) -> isize {
        R::read(&mut self.state.get(entered).unread, found);
        if found > 0 && self.state.get(entered).awaited {
            self.resume(entered);
        }
        found as isize
    }

    /// There is room for unsolicited completions again. Threads that sleep while packets were left in the mailbox for
    /// want of that room may have to wake.
    #[cold]
    fn resume(&self, entered: &mut Entered) {
        self.state.get(entered).awaited = false;
        for endpoint in self.state.get(entered).endpoints.clone() {
            endpoint.look_after_sleepers(entered);
        }
    }

    /// Progress of all bound endpoints. Returns whether anything happened.
    #[inline(never)]
    fn progress(&self, entered: &mut Entered) -> bool {
        let mut moved = false;
        for index in 0..self.state.get(entered).endpoints.len() {
            let endpoint: *const Endpoint = Arc::as_ptr(&self.state.get(entered).endpoints[index]);
            // SAFETY: the list keeps the endpoint alive, and progress does not change the list. Only binding and
            // closing do, and they need the domain that we are in.
            moved |= unsafe { &*endpoint }.progress(entered);
        }
        moved
    }

    /// An error is to be read; perhaps the processor is to be given away before.
    #[cold]
    fn before_error(&self, error: Errno, entered: &mut Entered) -> Errno {
        match std::mem::take(&mut self.state.get(entered).gives_way) {
            true => YIELD_BEFORE_ERROR,
            false => error,
        }
    }

    /// The bound endpoints wait a little, until something has come to one of them.
    fn idle(&self, entered: &mut Entered) -> Idle {
        if self.domain.always_progresses() && self.domain.progress_all(entered) {
            return Idle::Arrived;
        }
        let count = self.state.get(entered).endpoints.len();
        idle_each(count, |index| Arc::clone(&self.state.get(entered).endpoints[index]).idle(entered))
    }

    /// Makes progress. Returns whether there is nothing to read.
    fn is_empty(&self) -> Result<bool> {
        let empty = self.domain.enter(|entered| {
            self.progress(entered);
            Ok((!self.state.get(entered).completions.is_ready()).into())
        });
        if empty < 0 { Err(Errno(-empty as c_int)) } else { Ok(empty > 0) }
    }

    /// Arms all endpoints of the queue. Returns whether the calling thread may sleep on the descriptor: whether there
    /// is nothing to read and no work left. The descriptor becomes readable when there is. This makes no progress,
    /// because progress would end the sleep that this thread has prepared at other queues.
    pub fn prepare_sleep(&self) -> Result<bool> {
        let wait = self.wait().ok_or(INVALID)?;
        let prepared = self.domain.enter(|entered| {
            let mut most = if self.state.get(entered).completions.is_ready() { None } else { Some(SLEEP_MOST) };
            for index in 0..self.state.get(entered).endpoints.len() {
                let endpoint = Arc::clone(&self.state.get(entered).endpoints[index]);
                endpoint.state.get(entered).watched = true;
                // All endpoints are armed, also behind one that has work to do: the others wait for packets meanwhile.
                most = endpoint.arm(entered).and_then(|its| Some(most?.min(its)));
            }
            let Some(most) = most else { return Ok(0) };
            for index in 0..self.state.get(entered).endpoints.len() {
                let endpoint = Arc::clone(&self.state.get(entered).endpoints[index]);
                if let Some(active) = &mut endpoint.state.get(entered).active {
                    active.note_sleep();
                }
            }
            // This happens under the lock: an alarm that is set later could replace one that another thread has rung
            // meanwhile.
            wait.set_alarm(most);
            self.state.get(entered).sleepers.fall_asleep(Thread::current(), moment(most));
            Ok(1)
        });
        if prepared < 0 { Err(Errno(-prepared as c_int)) } else { Ok(prepared > 0) }
    }

    /// The first half of `fi_trywait`, for an application that sleeps on the descriptor by itself;
    /// [`prepare_sleep`](Self::prepare_sleep) is the other half. Returns whether there is neither anything to read nor
    /// a signal. A signal ends one sleep, so it is cleared here; otherwise the descriptor would stay readable for ever.
    pub fn is_quiet(&self) -> Result<bool> {
        self.wait().ok_or(INVALID)?;
        self.domain.check_own()?;
        if self.forget_signal() {
            return Ok(false);
        }
        self.is_empty()
    }

    /// Reads. If there is nothing, sleeps until there is, until the time in milliseconds is over (a negative time never
    /// is), or until a signal comes.
    ///
    /// # Safety
    /// The room must be there.
    pub unsafe fn blocking_poll<R: Recording>(&self, room: Room, timeout: c_int) -> isize {
        let Some(wait) = self.wait() else { return INVALID.code() };
        let end = u64::try_from(timeout).ok().map(|timeout| Instant::now() + Duration::from_millis(timeout));
        let mut polls = 0;
        loop {
            // SAFETY: promised by the caller.
            let outcome = unsafe { self.poll::<R>(room) };
            if outcome != TRY_AGAIN.code() || end.is_some_and(|end| Instant::now() >= end) || wait.quieten() {
                return outcome;
            }
            polls += 1;
            if polls < POLLS_BEFORE_SLEEP {
                continue;
            }
            match self.is_empty().and_then(|empty| Ok(empty && self.prepare_sleep()?)) {
                Ok(true) => wait.sleep(end.map(|end| end.saturating_duration_since(Instant::now()))),
                Ok(false) => {}
                Err(errno) => return errno.code(),
            }
        }
    }
}

impl Endpoint {
    /// Whether [`progress`](Self::progress) would find nothing to do. If so, this counts as a call of it.
    #[inline(always)]
    fn is_quiet(&self, entered: &mut Entered) -> bool {
        let state = self.state.get(entered);
        let is_quiet = !state.watched && state.active.as_mut().is_some_and(|active| active.engine.is_quiet());
        state.progressed_by_app |= is_quiet;
        is_quiet
    }

    /// If [`progress`](Self::progress) would find nothing to do, and all that [`idle`](Self::idle) would do is to wait
    /// for a moment, this does both. Returns whether. It is the poll of a process that waits. `alone`: it is false if
    /// there is a network.
    #[inline(always)]
    fn spins_if_quiet(&self, alone: bool, entered: &mut Entered) -> bool {
        let state = self.state.get(entered);
        let Some(active) = &mut state.active else { return false };
        let links = active.engine.link();
        let has_network = links.look_at_second().is_some();
        if alone && has_network || state.watched || active.is_look_due() || !links.look_at_first().may_spin() {
            return false;
        }
        // (Asked again whether there is a network, the compiler would keep registers for it.)
        let is_quiet = match alone {
            true => active.engine.has_nothing_to_do() && active.engine.link_mut().first().is_quiet(),
            false => active.engine.is_quiet(),
        };
        if !is_quiet {
            return false;
        }
        state.progressed_by_app = true;
        active.engine.link_mut().first().spins()
    }
}

impl Counter {
    /// Progress of all endpoints that count here, or, where it is automatic, of all. Returns whether anything happened.
    fn progress(&self, entered: &mut Entered) -> bool {
        if self.domain.always_progresses() {
            return self.domain.progress_all(entered);
        }
        let mut moved = false;
        for index in 0..self.counted(entered).len() {
            let endpoint = Arc::clone(&self.counted(entered)[index]);
            moved |= endpoint.progress(entered);
        }
        moved
    }

    /// Makes progress, unless the domain refuses calls after a panic. Then the count stands still.
    pub fn poll(&self) {
        self.domain.enter_and_yield(|entered| self.poll_progress(entered));
    }

    /// Makes progress, and waits a little if that has found nothing to do.
    fn poll_progress(&self, entered: &mut Entered) -> Result {
        if self.progress(entered) {
            return Ok(0);
        }
        let count = self.counted(entered).len();
        match idle_each(count, |index| Arc::clone(&self.counted(entered)[index]).idle(entered)) {
            Idle::Yield => Err(YIELD),
            Idle::Arrived | Idle::Spin => Ok(0),
        }
    }

    /// Waits until the count is reached, an operation fails, or the time in milliseconds is over. A negative time never
    /// is.
    pub fn wait(&self, threshold: u64, timeout: c_int) -> Result {
        let end = u64::try_from(timeout).ok().map(|timeout| Instant::now() + Duration::from_millis(timeout));
        let errors = self.errors.load(Relaxed);
        loop {
            let outcome = self.domain.enter_and_yield(|entered| match self.ended_well() >= threshold {
                true => Ok(self.progress(entered).into()),
                false => self.poll_progress(entered),
            });
            if outcome < 0 && outcome != TRY_AGAIN.code() {
                return Err(Errno(-outcome as c_int));
            }
            if self.ended_well() >= threshold {
                return Ok(0);
            }
            if self.errors.load(Relaxed) != errors {
                return Err(Errno(FI_EAVAIL));
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return Err(Errno(FI_ETIMEDOUT));
            }
            self.domain.let_waiters_in();
        }
    }
}
