//! Progress of an endpoint: packets are retrieved and sent, and what ends is reported to queues and counters. And of a
//! domain, where a thread of ours makes it.

pub(crate) mod observing;
pub(crate) mod reading;

use crate::addressing::addresses::NO_ADDRESS;
use crate::addressing::reach;
use crate::border::bindings::{FI_MULTI_RECV, fi_addr_t};
use crate::border::errno::{Reason, Result, TRY_AGAIN};
use crate::objects::completion::Failed;
use crate::objects::completion_queue::CompletionQueue;
use crate::objects::domain::Domain;
use crate::objects::endpoint::{Endpoint, QueueBinding};
use crate::objects::pending_operations::Event;
use crate::operations::operation::EventKind;
use crate::operations::recording;
use crate::threads::domain_lock::Entered;
use crate::threads::poll_backoff::{PollBackoff, Polled};
use crate::threads::progress_thread::ProgressThread;
use crate::threads::waits::SLEEP_MOST;
use std::sync::Arc;
use std::time::Duration;
use tidegate_link::Idle;
use tidegate_message::{Completion, Failure, Instant, Operation, Target};

impl Domain {
    /// Begins the thread that makes all progress, if there is to be one, and unless it runs already.
    pub fn begin_always(self: &Arc<Self>) -> Result<()> {
        let Some(thread) = self.progress_thread.as_ref().filter(|_| self.always_progresses()) else { return Ok(()) };
        let domain = Arc::downgrade(self);
        thread.begin(move |backoff| domain.upgrade()?.poll_all(backoff))
    }

    /// What a thread does that makes all progress: that of all endpoints of which no call of the application has made
    /// any since it looked last; not every call makes progress, and none of all endpoints. If there is nothing to do
    /// and it may sleep, all endpoints are armed. `None`: the domain refuses calls.
    fn poll_all(&self, backoff: &mut PollBackoff) -> Option<Polled> {
        let thread = self.progress_thread.as_ref()?;
        let mut polled = Polled::Called;
        let outcome = self.enter_always(|entered| {
            thread.wake_up();
            let was_called = backoff.was_called(self.calls());
            let endpoints = self.state.get(entered).endpoints.clone();
            let (mut moved, mut is_stuck) = (false, false);
            for endpoint in &endpoints {
                if !core::mem::take(&mut endpoint.state.get(entered).progressed_by_app) {
                    moved |= endpoint.advance_for_app(backoff, entered);
                }
                // Nothing more is retrieved there, and what has come may keep its descriptor readable: no sleep there.
                is_stuck |= endpoint.waits_for_reader(entered);
            }
            polled = match (moved, was_called || is_stuck) {
                (true, _) => Polled::Moved,
                (false, true) => Polled::Called,
                (false, false) if backoff.may_sleep() => self.arm_all(&endpoints, thread, entered),
                (false, false) => Polled::Still,
            };
            Ok(0)
        });
        (outcome >= 0 || outcome == TRY_AGAIN.code()).then_some(polled)
    }

    /// The thread goes to sleep, if nothing can be done at once.
    fn arm_all(&self, endpoints: &[Arc<Endpoint>], thread: &ProgressThread, entered: &mut Entered) -> Polled {
        let mut most = Some(SLEEP_MOST);
        for endpoint in endpoints {
            // All are armed, also behind one that has work to do.
            most = endpoint.arm(entered).and_then(|its| Some(most?.min(its)));
        }
        let Some(most) = most else { return Polled::Moved };
        thread.fall_asleep();
        Polled::Armed(most)
    }

    /// Makes progress of all endpoints. A call does so where progress of data is automatic (`FI_PROGRESS_AUTO`): it may
    /// wait for what a peer does only after another endpoint of ours has answered it, and as long as there are calls
    /// the thread leaves the work to them. Returns whether anything happened.
    #[cold]
    pub fn progress_all(&self, entered: &mut Entered) -> bool {
        let mut moved = false;
        for index in 0..self.state.get(entered).endpoints.len() {
            let endpoint = Arc::clone(&self.state.get(entered).endpoints[index]);
            moved |= endpoint.progress(entered);
        }
        moved
    }

    /// What a thread does that goes on with what is left: makes progress of the endpoints that have something left to
    /// do and of which no call of the application has made progress since it looked last. If nothing is left and it may
    /// sleep, it falls asleep. `None`: the domain refuses calls.
    fn poll_pending(&self, backoff: &mut PollBackoff) -> Option<Polled> {
        let thread = self.progress_thread.as_ref()?;
        if backoff.passes(self.calls()) {
            return Some(Polled::Passed);
        }
        let mut polled = Polled::Idle;
        let outcome = self.enter_shared(thread, |entered| {
            let endpoints = self.state.get(entered).endpoints.clone();
            for endpoint in &endpoints {
                let is_done = core::mem::take(&mut endpoint.state.get(entered).progressed_by_app);
                if endpoint.has_anything_left(entered) {
                    polled = polled.max(if is_done { Polled::Called } else { endpoint.go_on(backoff, entered) });
                }
            }
            if polled == Polled::Idle && backoff.may_sleep() {
                thread.fall_asleep();
            }
            Ok(0)
        });
        match outcome {
            Some(outcome) => (outcome >= 0).then_some(polled),
            None => Some(Polled::Occupied),
        }
    }
}

impl Endpoint {
    /// Makes progress and reports what has ended. No packet is retrieved while the receive queue is full of unsolicited
    /// completions. Returns whether anything happened.
    #[inline(never)]
    pub fn progress(&self, entered: &mut Entered) -> bool {
        self.progress_inlined(entered)
    }

    /// The same, where most messages come in.
    #[inline(always)]
    pub fn progress_inlined(&self, entered: &mut Entered) -> bool {
        self.state.get(entered).progressed_by_app = true;
        let moved = self.advance(entered);
        if moved {
            // Else nothing is left that was not before.
            self.note_left(entered);
        }
        moved
    }

    /// At the end of a call that may have left something to do: lets the thread know that goes on with it. Between
    /// hosts something may always be left. (A thread that makes all progress is awake, since the call has woken it.)
    #[inline(always)]
    pub fn note_left(&self, entered: &mut Entered) {
        if let Some(active) = &self.state.get(entered).active
            && (active.engine.may_leave_work() || active.engine.link().look_at_second().is_some())
        {
            self.wake_thread(entered);
        }
    }

    /// Wakes the thread that goes on with what is left, if there is one and it sleeps, and if anything is left.
    #[inline(never)]
    fn wake_thread(&self, entered: &mut Entered) {
        let Some(thread) = self.domain.progress_thread.as_ref().filter(|thread| thread.is_asleep()) else { return };
        let Some(active) = &mut self.state.get(entered).active else { return };
        if !active.engine.leaves_work() && active.engine.link().look_at_second().is_none() {
            return;
        }
        self.domain.share_lock(entered);
        let domain = Arc::downgrade(&self.domain);
        thread.wake(move |backoff| domain.upgrade()?.poll_pending(backoff));
    }

    /// Whether something is left to do that only this process can.
    fn has_anything_left(&self, entered: &mut Entered) -> bool {
        let active = self.state.get(entered).active.as_ref();
        active.is_some_and(|active| active.engine.has_work_left() || active.engine.has_unsent())
    }

    /// Goes on with what is left in place of the application.
    fn go_on(&self, backoff: &PollBackoff, entered: &mut Entered) -> Polled {
        if self.advance_for_app(backoff, entered) {
            return Polled::Moved;
        }
        let Some(active) = &mut self.state.get(entered).active else { return Polled::Still };
        active.observe_idle();
        if active.engine.has_transfers() { Polled::Underway } else { Polled::Still }
    }

    /// What the thread does. Without a nap before, a row of accesses that the application adds to goes on.
    fn advance_for_app(&self, backoff: &PollBackoff, entered: &mut Entered) -> bool {
        let active = self.state.get(entered).active.as_mut();
        active.filter(|_| backoff.is_quick()).into_iter().for_each(|active| active.engine.spare_row());
        self.advance(entered)
    }

    /// Makes progress and reports the operations that have ended. Where the message layer says that nothing rare is to
    /// be done, before and after, no rare mechanism is asked. Returns whether anything happened.
    #[inline(always)]
    fn advance(&self, entered: &mut Entered) -> bool {
        let may_retrieve = !self.waits_for_reader(entered);
        let state = self.state.get(entered);
        let Some(active) = &mut state.active else { return false };
        if !may_retrieve || state.watched || !active.engine.has_nothing_to_do() {
            return self.advance_with_work(may_retrieve, entered);
        }
        let moved = active.engine.progress(Instant::default());
        if !active.engine.is_left_nothing() {
            return self.end_progress(moved, entered);
        }
        if moved {
            active.engine.link_mut().first().busy();
            self.report_first(entered);
        }
        moved
    }

    #[inline(never)]
    fn advance_with_work(&self, may_retrieve: bool, entered: &mut Entered) -> bool {
        if self.state.get(entered).active.as_ref().is_some_and(|active| active.engine.has_departed()) {
            self.report_all(entered);
        }
        let Some(active) = &mut self.state.get(entered).active else { return false };
        let now = if active.engine.is_timed() { tidegate_link::now() } else { Instant::default() };
        let moved = match may_retrieve {
            true => active.engine.progress(now),
            false => active.engine.progress_without_retrieving(now),
        };
        self.end_progress(moved, entered)
    }

    /// The engine has made progress, and may have something to do or to tell.
    #[inline]
    fn end_progress(&self, mut moved: bool, entered: &mut Entered) -> bool {
        let Some(active) = &mut self.state.get(entered).active else { return false };
        if let Some(pressure) = active.engine.poll_pressure() {
            active.warn_of(&pressure);
        }
        if active.engine.epoch() != active.epoch {
            // A peer's place in the table of peers has become free. From now on its number may mean another peer.
            active.epoch = active.engine.epoch();
            active.forget_addresses();
        }
        if !active.engine.completions().is_empty() {
            moved |= self.report_all(entered);
        }
        let state = self.state.get(entered);
        if moved && let Some(active) = &mut state.active {
            active.engine.link_mut().first().busy();
        }
        if state.watched {
            self.look_after_sleepers(entered);
        }
        moved
    }

    /// Makes sure that other threads that sleep on our queues wake when they must. This thread may have retrieved the
    /// packet that would have woken them, and may never call again (see `sleepers`).
    #[cold]
    pub fn look_after_sleepers(&self, entered: &mut Entered) {
        self.report_all(entered);
        let mut any = false;
        for queue in self.wait_queues() {
            any |= queue.has_sleepers(entered);
        }
        self.state.get(entered).watched = any;
        if !any {
            return;
        }
        let most = self.arm(entered);
        for queue in self.wait_queues() {
            match most {
                Some(most) => queue.wake_after(most, entered),
                None => queue.wake(entered),
            }
        }
    }

    /// Reports what ends while the endpoint closes, but for unsolicited completions, which could come without end: the
    /// application may not read them any more. Its counters outlive the endpoint, so what peers have done to its memory
    /// is counted.
    pub fn report_solicited(&self, entered: &mut Entered) {
        while let Some(active) = &mut self.state.get(entered).active {
            let Some(completion) = active.engine.poll_completion() else { return };
            if completion.operation.is_at_target() {
                self.count_at_target(&Completion { data: None, ..completion }, entered);
                continue;
            }
            if active.tickets.get(completion.context).is_none_or(|it| it.kind & FI_MULTI_RECV == 0) {
                self.report_other(completion, entered);
            }
        }
    }

    /// Whether no packet may be retrieved until the application has read unsolicited completions.
    #[inline]
    pub fn waits_for_reader(&self, entered: &mut Entered) -> bool {
        self.receive_queue
            .get()
            .is_some_and(|bound| !bound.queue.state.get(entered).completions.has_room_for_unsolicited())
    }

    /// Reports what has ended, which mostly is one operation, and a plain success.
    #[inline(always)]
    fn report_first(&self, entered: &mut Entered) {
        let Some(active) = &mut self.state.get(entered).active else { return };
        if let Some((event, source)) = active.plain_event() {
            let is_last = active.engine.first_completion().is_none();
            self.report_event(event, source, entered);
            if is_last {
                return;
            }
        }
        self.report_all(entered);
    }

    /// Reports what has ended. Returns whether anything has, other than peeks in vain.
    #[inline(never)]
    pub fn report_all(&self, entered: &mut Entered) -> bool {
        let mut any = false;
        while let Some(active) = &mut self.state.get(entered).active {
            let Some((event, source)) = active.plain_event() else {
                let is_all = active.engine.first_completion().is_none();
                return !is_all && self.report_others(entered) || any;
            };
            self.report_event(event, source, entered);
            any = true;
        }
        false
    }

    /// Progress has found nothing to do: waits a little. Says whether something has come meanwhile, and whether the
    /// caller is to give the processor away once it has left the domain: while it is inside, no other thread can be.
    #[inline]
    pub fn idle(&self, entered: &mut Entered) -> Idle {
        let Some(active) = &mut self.state.get(entered).active else { return Idle::Spin };
        let found = reach::idle(active.engine.link_mut());
        active.observe_idle();
        found
    }

    /// Arms the endpoint, so that the next packet wakes. Returns how long the application may sleep at most if no
    /// packet comes; `None`: it may not sleep, because there is something to do at once.
    pub fn arm(&self, entered: &mut Entered) -> Option<Duration> {
        let waits_for_reader = self.waits_for_reader(entered);
        if waits_for_reader && let Some(bound) = self.receive_queue.get() {
            bound.queue.state.get(entered).awaited = true;
        }
        let Some(active) = &mut self.state.get(entered).active else { return Some(Duration::MAX) };
        active.observe_before_sleep();
        let most = active.engine.next_timeout().map_or(Duration::MAX, |due| due.since(tidegate_link::now()));
        // While the receive queue is full of unsolicited completions, packets are no reason to be awake, because none
        // may be retrieved. Reading that queue ends this state and wakes who sleeps (`awaited`).
        if waits_for_reader {
            // Else an alarm from before, or a packet that came meanwhile, would keep the descriptor readable.
            active.engine.link_mut().first().disarm();
        }
        match most.is_zero() {
            true => None,
            false if waits_for_reader => Some(most),
            false => reach::arm(active.engine.link_mut(), most),
        }
    }

    /// Reports the rest, which begins with what is no plain success: a failure, a write of a peer, a part of a
    /// multi-receive, a claim. Returns whether any is more than a peek in vain.
    #[cold]
    fn report_others(&self, entered: &mut Entered) -> bool {
        let mut any = false;
        while let Some(active) = &mut self.state.get(entered).active {
            let Some(completion) = active.engine.poll_completion() else { break };
            any |= completion.result != Err(Failure::NoMessage);
            self.report_other(completion, entered);
        }
        any
    }

    /// Reports what may be no plain success.
    fn report_other(&self, completion: Completion, entered: &mut Entered) {
        if completion.result.is_err() {
            return self.report_failure(completion, entered);
        }
        if completion.operation.is_at_target() {
            self.count_at_target(&completion, entered);
            if completion.data.is_none() {
                return;
            }
        }
        let Some(active) = &mut self.state.get(entered).active else { return };
        let number = active.note_end(&completion);
        let event = active.tickets.event(&completion).unwrap_or_else(|| active.special_event(&completion));
        if self.domain.settings.trace.is_some() {
            match self.queue_for(event.kind).filter(|_| event.wanted) {
                Some(bound) => bound.queue.state.get(entered).unread.push(number),
                None => recording::read_unseen(number),
            }
        }
        self.report_event(event, completion.source, entered);
    }

    /// A peer has done something to our memory: counts it where the region counts, and, unless it is reported to the
    /// queue as well (`report_event`), at the endpoint. A counter that is bound to both counts once.
    fn count_at_target(&self, completion: &Completion, entered: &mut Entered) {
        let (kind, changes) = match completion.operation {
            Operation::RemoteWrite => (Some(EventKind::RemoteWrite), true),
            Operation::RemoteFetch => (Some(EventKind::RemoteRead), true),
            Operation::RemoteRead => (Some(EventKind::RemoteRead), false),
            _ => (None, true),
        };
        let own = kind.and_then(|kind| self.counters[kind as usize].get());
        let bound = &self.domain.state.get(entered).region_counters;
        if let Some(counter) = bound.get(&(completion.context.0 as u64)).filter(|_| changes)
            && !own.is_some_and(|own| Arc::ptr_eq(own, counter))
        {
            counter.count(true);
        }
        if let Some(own) = own.filter(|_| completion.data.is_none()) {
            own.count(true);
        }
    }

    #[inline(always)]
    fn report_event(&self, event: Event, source: Option<Target>, entered: &mut Entered) {
        let Event { kind, wanted, unsolicited, mut entry } = event;
        if let Some(counter) = self.counters[kind as usize].get() {
            counter.count(true);
        }
        let Some(bound) = self.queue_for(kind).filter(|_| wanted) else { return };
        // `fi_cq_read` does not tell it, and to look it up costs as much as to report the rest.
        if let Some(source) = source
            && bound.queue.state.get(entered).completions.keeps_source()
        {
            entry.source = self.source_of(source, entered);
        }
        if unsolicited {
            bound.queue.state.get(entered).completions.expect_unsolicited();
        }
        bound.queue.push(entry, entered);
    }

    /// Reports an operation that failed.
    #[cold]
    fn report_failure(&self, completion: Completion, entered: &mut Entered) {
        let Some(active) = &mut self.state.get(entered).active else { return };
        let number = active.note_end(&completion);
        // A peek in vain is an empty poll, and to a program that does nothing else the only one.
        let is_in_vain = completion.result == Err(Failure::NoMessage);
        let gives_way = is_in_vain && active.engine.link_mut().first().count_idle() == Idle::Yield;
        if is_in_vain {
            active.observe_idle();
        }
        let event = active.tickets.event(&completion).unwrap_or_else(|| active.special_event(&completion));
        let Event { kind, unsolicited, mut entry, .. } = event;
        if let Some(counter) = self.counters[kind as usize].get() {
            counter.count(false);
        }
        if let Some(source) = completion.source {
            entry.source = self.source_of(source, entered);
        }
        let Err(failure) = completion.result else { return };
        let failed = Failed { entry, reason: Reason::of_failure(failure, completion.length) };
        failed.log();
        let Some(bound) = self.queue_for(kind) else { return };
        bound.queue.state.get(entered).gives_way |= gives_way;
        if self.domain.settings.trace.is_some() {
            bound.queue.state.get(entered).unread.push_error(number);
        }
        if bound.queue.push_error(failed, unsolicited, entered)
            && let Some(active) = &mut self.state.get(entered).active
        {
            // From now on also operations are refused that would report nothing but an error.
            match kind {
                EventKind::Receive | EventKind::RemoteWrite | EventKind::RemoteRead => {
                    active.engine.refuse_receives(true)
                }
                EventKind::Send | EventKind::Write | EventKind::Read => active.engine.refuse_sends(true),
            }
        }
    }

    /// A queue is no longer full of errors: operations that report to it are accepted again.
    pub fn accept_for(&self, queue: &CompletionQueue, entered: &mut Entered) {
        let is_of = |bound: Option<&QueueBinding>| bound.is_some_and(|bound| core::ptr::eq(&*bound.queue, queue));
        let Some(active) = &mut self.state.get(entered).active else { return };
        if is_of(self.send_queue.get()) {
            active.engine.refuse_sends(false);
        }
        if is_of(self.receive_queue.get()) {
            active.engine.refuse_receives(false);
        }
    }

    /// The `fi_addr_t` that the application knows a sender by, or [`NO_ADDRESS`].
    #[inline]
    fn source_of(&self, source: Target, entered: &mut Entered) -> fi_addr_t {
        let Some(active) = &self.state.get(entered).active else { return NO_ADDRESS };
        match active.source(source) {
            Some(known) => known,
            None => self.find_source(source, entered),
        }
    }

    #[cold]
    fn find_source(&self, source: Target, entered: &mut Entered) -> fi_addr_t {
        let Some(active) = &self.state.get(entered).active else { return NO_ADDRESS };
        let (Some(address), Some(vector)) = (active.address_of(source), self.vector.get()) else { return NO_ADDRESS };
        let found = vector.index(&address, entered);
        let Some(active) = &mut self.state.get(entered).active else { return NO_ADDRESS };
        active.set_source(source, found);
        found
    }
}
