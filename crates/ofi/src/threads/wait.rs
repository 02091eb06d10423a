//! What a waiting thread sleeps on: one descriptor for everything that may end its sleep. A packet wakes through a
//! descriptor of the link, which is added when an endpoint is enabled. Beside these descriptors there are a signal
//! (`fi_cq_signal`) and an alarm. The alarm is needed because neither the death of a peer nor room in a full mailbox
//! wakes anybody, so progress has to be made after a while even if nothing has come.

use crate::border::errno::{Errno, Result};
use crate::threads::waits::SLEEP_MOST;
use core::ffi::c_int;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// One descriptor to sleep on.
#[derive(Debug)]
pub struct Wait {
    set: OwnedFd,
    signal: OwnedFd,
    alarm: OwnedFd,
}

fn owned(descriptor: c_int) -> Result<OwnedFd> {
    if descriptor < 0 {
        return Err(Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)));
    }
    // SAFETY: the system call has just made it, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

impl Wait {
    /// Fails if the process has no descriptor left.
    pub fn new() -> Result<Wait> {
        // SAFETY: these calls take no pointers.
        let wait = unsafe {
            Wait {
                set: owned(libc::epoll_create1(libc::EPOLL_CLOEXEC))?,
                signal: owned(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?,
                alarm: owned(libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK))?,
            }
        };
        wait.add(wait.signal.as_raw_fd())?;
        wait.add(wait.alarm.as_raw_fd())?;
        Ok(wait)
    }

    /// The descriptor to sleep on. It is readable when there is something to do.
    pub fn descriptor(&self) -> RawFd {
        self.set.as_raw_fd()
    }

    /// From now on `descriptor` wakes as well, until it is removed.
    pub fn add(&self, descriptor: RawFd) -> Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: the event lives through the call.
        let failed = unsafe { libc::epoll_ctl(self.set.as_raw_fd(), libc::EPOLL_CTL_ADD, descriptor, &mut event) } != 0;
        if failed { Err(Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))) } else { Ok(()) }
    }

    /// `descriptor` wakes no more.
    pub fn remove(&self, descriptor: RawFd) {
        // SAFETY: removing takes no event. A descriptor that is not there is no harm.
        unsafe { libc::epoll_ctl(self.set.as_raw_fd(), libc::EPOLL_CTL_DEL, descriptor, core::ptr::null_mut()) };
    }

    /// Wakes a thread that sleeps, or the next one that goes to sleep.
    pub fn signal(&self) {
        let one = 1u64;
        // SAFETY: eight bytes are written from `one`. The only failure is a counter that is full, which wakes too.
        unsafe { libc::write(self.signal.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Clears signals, which makes the descriptor unreadable unless something else has come. Returns whether there were
    /// any. An alarm that has rung stays, because it may be for other threads that still sleep.
    pub fn quieten(&self) -> bool {
        let mut count = 0u64;
        // SAFETY: at most eight bytes are written; the descriptor does not block.
        unsafe { libc::read(self.signal.as_raw_fd(), (&raw mut count).cast(), 8) == 8 }
    }

    /// Lets the descriptor become readable at once, until the alarm is set again.
    pub fn ring(&self) {
        self.set_alarm(Duration::ZERO);
    }

    /// Lets the descriptor become readable once, after this time or a nap, whichever is shorter, and until then not by
    /// an earlier alarm.
    pub fn set_alarm(&self, after: Duration) {
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // A time of zero would stop the timer.
        let nap = after.clamp(Duration::from_nanos(1), SLEEP_MOST);
        // A nap is shorter than a second.
        let nap = libc::timespec { tv_sec: 0, tv_nsec: nap.subsec_nanos().into() };
        let once = libc::itimerspec { it_interval: zero, it_value: nap };
        // SAFETY: the struct lives through the call.
        unsafe { libc::timerfd_settime(self.alarm.as_raw_fd(), 0, &once, core::ptr::null_mut()) };
    }

    /// Sleeps until something wakes us, `most` has passed, or a nap is over.
    pub fn sleep(&self, most: Option<Duration>) {
        sleep_on(&self.set, most.unwrap_or(SLEEP_MOST).min(SLEEP_MOST));
    }
}

fn sleep_on(descriptor: &OwnedFd, most: Duration) {
    let mut descriptor = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // Rounded up: with a fraction cut off, the last millisecond would be spent polling.
    let milliseconds = most.as_micros().div_ceil(1000) as c_int;
    // SAFETY: one struct, which lives through the call. Interruption by a signal is just an early wake.
    unsafe { libc::poll(&mut descriptor, 1, milliseconds) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readable(wait: &Wait) -> bool {
        let mut descriptor = libc::pollfd { fd: wait.descriptor(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one struct, which lives through the call.
        unsafe { libc::poll(&mut descriptor, 1, 0) == 1 }
    }

    #[test]
    fn a_signal_wakes_until_it_is_heard() {
        let wait = Wait::new().unwrap();
        assert!(!readable(&wait));
        wait.signal();
        assert!(readable(&wait));
        assert!(wait.quieten());
        assert!(!readable(&wait) && !wait.quieten());
    }

    #[test]
    fn the_alarm_ends_a_sleep_on_the_bare_descriptor() {
        let wait = Wait::new().unwrap();
        wait.set_alarm(Duration::MAX);
        let mut descriptor = libc::pollfd { fd: wait.descriptor(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one struct, which lives through the call.
        assert_eq!(unsafe { libc::poll(&mut descriptor, 1, -1) }, 1);
    }

    #[test]
    fn ringing_wakes_at_once_until_the_alarm_is_set_again() {
        let wait = Wait::new().unwrap();
        wait.set_alarm(Duration::MAX);
        let begun = std::time::Instant::now();
        wait.ring();
        wait.sleep(None);
        assert!(begun.elapsed() < SLEEP_MOST / 2);
        assert!(readable(&wait) && !wait.quieten() && readable(&wait));
        wait.set_alarm(Duration::MAX);
        assert!(!readable(&wait));
    }

    #[test]
    fn other_descriptors_wake_while_they_are_added() {
        let (wait, other) = (Wait::new().unwrap(), Wait::new().unwrap());
        wait.add(other.descriptor()).unwrap();
        other.signal();
        assert!(readable(&wait));
        wait.remove(other.descriptor());
        assert!(!readable(&wait));
    }
}
