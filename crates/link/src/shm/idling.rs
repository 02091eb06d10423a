//! An idle process waits: what a poll does that has found nothing. How long, and when it gives the processor away, is
//! decided by [`SpinPolicy`](super::spin::SpinPolicy).

use super::spin::{Idle, Step};
use super::state::{Idling, ShmLink};
use tidegate_message::Counter;

/// Looks at the mailbox of one lingering poll; each costs a nanosecond or so.
const LOOKS_LINGERING: u32 = 1024;

impl ShmLink {
    /// Progress found something to do.
    #[inline]
    pub fn busy(&mut self) {
        self.idling = Idling::Spins;
        if let Some(looked) = self.spin.reset() {
            self.end_run(looked);
        }
    }

    /// Whether [`spins`](Self::spins) is to be tried.
    #[inline(always)]
    pub fn may_spin(&self) -> bool {
        self.idling == Idling::Spins
    }

    /// Progress found nothing to do: waits for a moment, if that is all that [`idle`](Self::idle) would do. Returns
    /// whether; if not, `idle` has to be called for this poll.
    #[inline(always)]
    pub fn spins(&mut self) -> bool {
        match self.spin.step() {
            Step::Spin => {
                std::hint::spin_loop();
                true
            }
            step => {
                self.idling = Idling::Begun(step);
                false
            }
        }
    }

    /// Progress found nothing to do: waits a little for a packet, or spins; now and then looks whether peers live. Says
    /// whether a packet has come meanwhile, and whether the caller is to give the processor away.
    #[inline]
    pub fn idle(&mut self) -> Idle {
        let step = match std::mem::take(&mut self.idling) {
            Idling::Begun(step) => step,
            Idling::Spins | Idling::Yields => self.spin.step(),
        };
        match step {
            Step::Linger if self.look_longer() => Idle::Arrived,
            Step::Spin => {
                std::hint::spin_loop();
                Idle::Spin
            }
            step => self.end_idle(step),
        }
    }

    /// An empty poll of another kind, which has been answered already: as [`idle`](Self::idle), but waits for nothing.
    pub fn count_idle(&mut self) -> Idle {
        let step = self.spin.step();
        self.end_idle(step)
    }

    /// What is left to do of a step that waits for nothing.
    #[inline]
    fn end_idle(&mut self, step: Step) -> Idle {
        match step {
            Step::Linger | Step::Spin => Idle::Spin,
            Step::Look => {
                self.watch_run();
                Idle::Spin
            }
            Step::Yield => self.yield_now(),
        }
    }

    /// Waits a little for a packet, if the processor is ours; never gives it away. Returns whether one has come.
    pub fn linger(&mut self) -> bool {
        self.spin.may_linger() && self.look_longer()
    }

    fn look_longer(&self) -> bool {
        (0..LOOKS_LINGERING).any(|_| self.reader.is_ready())
    }

    #[cold]
    fn yield_now(&mut self) -> Idle {
        self.idling = Idling::Yields;
        // A program that seldom polls looks each time.
        self.watch_run();
        if !self.spin.is_yield_due() {
            return Idle::Spin;
        }
        self.stats.counters().add(Counter::Yields, 1);
        Idle::Yield
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::tests::{folder, link};
    use super::*;
    use crate::shm::spin::SpinPolicy;

    #[test]
    fn a_poll_that_has_begun_to_wait_is_counted_once() {
        let folder = folder();
        let mut link = link(&folder);
        link.spin = SpinPolicy::new(Some(3), false);
        assert!((0..3).all(|_| link.may_spin() && link.spins()));
        assert!(!link.spins() && !link.may_spin(), "the fourth gives the processor away");
        assert_eq!((link.idle(), link.idling), (Idle::Yield, Idling::Yields));
        assert_eq!((link.idle(), link.may_spin()), (Idle::Yield, false), "and so does each after it");
        link.busy();
        assert!((0..3).all(|_| link.may_spin() && link.spins()));
        assert!(!link.spins());
        link.busy();
        assert!(link.may_spin() && link.spins(), "something has come before it was over");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
