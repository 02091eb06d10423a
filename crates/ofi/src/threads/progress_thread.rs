//! [`ProgressThread`]: the thread that makes a domain's progress while the application does not call. A domain has at
//! most one, by one of two policies.
//!
//! **[`Always`](Policy::Always)**: it makes all progress (`FI_PROGRESS_AUTO`, or `FI_TIDEGATE_PROGRESS=thread`; R §3: a
//! transfer goes on while its process computes). It begins with the first endpoint. As long as there were calls since
//! its last poll it naps, and tends only the endpoints of which no call has made progress. When there are no calls any
//! more it makes progress until nothing is left to do, arms all endpoints, as a thread that sleeps on a completion
//! queue does (`sleepers`), and sleeps until something comes. The first call of the application that finds it asleep
//! wakes it, so that it naps again, and no call has to arm anything: whatever the call starts, the thread looks after
//! at the end of its nap. The lock of such a domain is needed, whatever the application has promised of its own
//! threads.
//!
//! **[`WhenLeft`](Policy::WhenLeft)**: it goes on with what calls have left to do (`FI_TIDEGATE_PROGRESS=on_demand`,
//! the default). Messages that find no credit and no buffer wait in their sender's process, and so does what their
//! receivers owe it, until that process calls again. An application may have good reason to believe all sent, and wait
//! for its peers in another way: asleep, at a lock in shared memory, at its launcher's. Where those wait for what has
//! not left, no process would ever move again. So there is no thread, and nothing but a glance at what each call
//! leaves, until a call leaves something to do. That begins the thread, or wakes it. It naps between two polls, longer
//! and longer while nothing moves and nothing is being copied, and leaves alone the endpoints of which a call has made
//! progress meanwhile; not every call does. When nothing has been left for a while it sleeps until something is again,
//! without a look at what comes: an application that computes while nothing of its own waits is not disturbed, and what
//! others send it waits for its next call, as under any provider without progress of its own.
//!
//! What it does between two polls is in `poll_backoff`, how it begins and ends in `background`.

use crate::border::bindings::FI_LOG_DOMAIN;
use crate::border::errno::{Errno, Result};
use crate::border::log;
use crate::threads::background::BackgroundThread;
use crate::threads::fork_guard::ForkGuard;
use crate::threads::poll_backoff::{Pause, Policy, PollBackoff, Polled};
use crate::threads::thread::HandlerMutex;
use crate::threads::wait::Wait;
use crate::threads::waits::{BEGIN_AGAIN, WHEN_LEFT_LEAVES};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// See the module.
#[derive(Debug)]
pub struct ProgressThread {
    policy: Policy,
    /// It sleeps, and no call has woken it, or it has not begun. Changed inside the domain only.
    is_asleep: AtomicBool,
    /// With `Always` it sleeps on what the links of all endpoints make readable, with `WhenLeft` it is parked.
    thread: Arc<BackgroundThread>,
    /// There could be no thread at this time.
    failed: HandlerMutex<Option<Instant>>,
}

impl ProgressThread {
    /// No thread has begun. Fails if the process has no descriptor left.
    pub fn new(policy: Policy) -> Result<ProgressThread> {
        let wait = (policy == Policy::Always).then(Wait::new).transpose()?;
        Ok(ProgressThread {
            policy,
            is_asleep: AtomicBool::new(policy == Policy::WhenLeft),
            thread: Arc::new(BackgroundThread::new(wait)),
            failed: HandlerMutex::new(None),
        })
    }

    /// What the links of all endpoints have to make readable, so that the thread wakes.
    pub fn wait(&self) -> Option<&Wait> {
        self.thread.wait()
    }

    /// Whether it has to be woken if a call leaves something to do. The caller is inside the domain.
    #[inline(always)]
    pub fn is_asleep(&self) -> bool {
        self.is_asleep.load(Relaxed)
    }

    /// The thread goes to sleep, so a call has to wake it. The caller, which is the thread, is inside the domain.
    pub fn fall_asleep(&self) {
        self.is_asleep.store(true, Relaxed);
    }

    /// The thread is awake. The caller, which is the thread, is inside the domain.
    pub fn wake_up(&self) {
        self.is_asleep.store(false, Relaxed);
    }

    /// The application has called, and progress is always made by the thread too. The caller is inside the domain.
    #[inline]
    pub fn note_call(&self) {
        if self.is_asleep() {
            self.rouse();
        }
    }

    #[cold]
    fn rouse(&self) {
        self.wake_up();
        self.wait().into_iter().for_each(Wait::signal);
    }

    /// Begins a thread that always makes progress, unless it runs already. The caller is inside the domain. `poll` does
    /// what there is to do; if that is nothing and the thread [may sleep](PollBackoff::may_sleep), it arms what may
    /// wake the thread, which sleeps then. `None`: nothing can be done any more.
    pub fn begin(self: &Arc<Self>, poll: impl Poll) -> Result<()> {
        self.spawn(poll).map_err(|error| {
            log::trouble(
                FI_LOG_DOMAIN,
                &format!("progress of data is to be automatic, and there can be no thread: {error}"),
            );
            Errno::of_system(&error)
        })
    }

    /// Something is left to do: wakes the thread, or begins it. `poll` goes on with it; if nothing is left and the
    /// thread [may sleep](PollBackoff::may_sleep), it lets it [fall asleep](Self::fall_asleep). `None`: nothing can be
    /// done any more. Where there can be no thread the user is told once, and the application is left with its own
    /// calls until it is tried again. The caller is inside the domain.
    #[cold]
    pub fn wake(self: &Arc<Self>, poll: impl Poll) {
        let Some(mut failed) = self.failed.lock() else { return };
        if failed.is_some_and(|at| at.elapsed() < BEGIN_AGAIN) {
            return;
        }
        self.wake_up();
        if self.thread.unpark() {
            return;
        }
        if let Err(error) = self.spawn(poll) {
            self.fall_asleep();
            if failed.replace(Instant::now()).is_none() {
                tell(&error);
            }
        }
    }

    /// Ends the thread of a domain that has no endpoint left. The next one begins another thread. Returns what the
    /// caller has to do once it has left the domain: wait until the thread has ended.
    pub fn end(&self) -> Option<impl FnOnce() + use<>> {
        let awaited = self.thread.end();
        self.is_asleep.store(self.policy == Policy::WhenLeft, Relaxed);
        awaited
    }

    fn spawn(self: &Arc<Self>, poll: impl Poll) -> io::Result<()> {
        let this = Arc::clone(self);
        self.thread.begin(move |is_over| this.run(poll, is_over))
    }

    fn run(&self, mut poll: impl Poll, is_over: &AtomicBool) {
        let mut backoff = PollBackoff::new(self.policy);
        if self.policy == Policy::WhenLeft {
            // The call that began it is not over yet.
            thread::park_timeout(WHEN_LEFT_LEAVES);
        }
        while let Some(guard) = ForkGuard::begin(is_over) {
            let polled = poll(&mut backoff);
            drop(guard);
            let Some(polled) = polled else { break };
            match backoff.pause_after(polled) {
                Pause::Yield => thread::yield_now(),
                Pause::Nap(nap) => thread::park_timeout(nap),
                Pause::SleepUntilWoken => self.sleep_until_woken(is_over),
                Pause::SleepUntilPacket(most) => self.sleep_until_packet(most),
            }
        }
    }

    fn sleep_until_woken(&self, is_over: &AtomicBool) {
        while self.is_asleep() && !is_over.load(Relaxed) {
            thread::park();
        }
        if !is_over.load(Relaxed) {
            // The call that woke it is not over yet.
            thread::park_timeout(WHEN_LEFT_LEAVES);
        }
    }

    fn sleep_until_packet(&self, most: Duration) {
        if let Some(wait) = self.wait() {
            wait.sleep(Some(most));
            wait.quieten();
        }
    }
}

/// What the thread does inside its domain.
pub trait Poll: FnMut(&mut PollBackoff) -> Option<Polled> + Send + 'static {}

impl<T: FnMut(&mut PollBackoff) -> Option<Polled> + Send + 'static> Poll for T {}

/// There can be no thread that goes on with what is left.
fn tell(error: &io::Error) {
    log::trouble(
        FI_LOG_DOMAIN,
        &format!(
            "FI_TIDEGATE_PROGRESS=on_demand: there can be no thread ({error}): messages that cannot leave at once wait for \
             the next call of this process"
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::waits::IDLE_POLLS_BEFORE_SLEEP;
    use std::sync::mpsc;

    #[test]
    fn it_polls_until_nothing_is_left_and_again_when_it_is_woken() {
        let progress = Arc::new(ProgressThread::new(Policy::WhenLeft).unwrap());
        let (tell, hear) = mpsc::channel();
        let poll = {
            let progress = Arc::clone(&progress);
            move |backoff: &mut PollBackoff| {
                if backoff.may_sleep() {
                    progress.fall_asleep();
                }
                tell.send(backoff.may_sleep()).unwrap();
                Some(Polled::Idle)
            }
        };
        assert!(progress.is_asleep(), "nothing is left yet, and there is no thread");
        progress.wake(poll);
        for _ in 0..2 {
            for number in 1..=IDLE_POLLS_BEFORE_SLEEP {
                assert_eq!(hear.recv().unwrap(), number == IDLE_POLLS_BEFORE_SLEEP);
            }
            assert!(progress.is_asleep());
            assert!(hear.recv_timeout(4 * WHEN_LEFT_LEAVES).is_err(), "it sleeps");
            progress.wake(|_| unreachable!("there is a thread"));
        }
        progress.end().unwrap()();
        assert!(progress.end().is_none());
        assert!(progress.is_asleep(), "the next endpoint of the domain begins another one");
    }

    #[test]
    fn where_nothing_can_be_done_any_more_it_is_not_woken_again_until_the_next_endpoint() {
        let progress = Arc::new(ProgressThread::new(Policy::WhenLeft).unwrap());
        for _ in 0..2 {
            let (tell, hear) = mpsc::channel();
            let poll = move |_: &mut PollBackoff| {
                tell.send(()).unwrap();
                None
            };
            progress.wake(poll);
            hear.recv().unwrap();
            assert!(hear.recv().is_err(), "the thread has ended");
            assert!(!progress.is_asleep());
            progress.end().unwrap()();
            assert!(progress.is_asleep());
        }
    }

    #[test]
    fn it_sleeps_until_a_call_or_a_packet_and_always_polls_again() {
        let progress = Arc::new(ProgressThread::new(Policy::Always).unwrap());
        let (tell, hear) = mpsc::channel();
        let poll = {
            let progress = Arc::clone(&progress);
            move |backoff: &mut PollBackoff| {
                if !backoff.may_sleep() {
                    return Some(Polled::Still);
                }
                progress.fall_asleep();
                tell.send(()).unwrap();
                Some(Polled::Armed(Duration::from_secs(100)))
            }
        };
        progress.begin(poll).unwrap();
        for _ in 0..3 {
            hear.recv().unwrap();
            progress.note_call();
        }
        // Whether it sleeps or not.
        progress.end().unwrap()();
        assert!(progress.end().is_none());
    }
}
