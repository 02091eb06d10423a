//! [`Gaps`]: the time between the calls of an application, as far as it has computed there.
//!
//! The simple idea, that all time outside of our calls is computation, fails twice. An MPI that waits calls us again
//! and again, and the time between two such calls is its own loop: in a trace it would be computation that nobody
//! needs. And where there are more ranks than processors, a process often waits for a processor, which is no
//! computation either. So:
//!
//! 1. Between two calls that only look whether something has come, time counts from [`LONG`] on: a program that
//!    computes and tests in turn. Between all others it counts in full.
//! 2. Of a gap that is that long, the time is left out in which the thread was ready and had no processor, as the
//!    system says it. A shorter gap cannot hide much of it, and to ask costs a microsecond.
//! 3. Where several threads call, time counts from the last return of any of them on.

/// From this length on a gap is looked at closely, in nanoseconds.
pub const LONG: u64 = 20_000;

/// How long a thread has waited for a processor since it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    /// Which thread, by a number that no other thread of the process has at the same time.
    pub thread: usize,
    /// Nanoseconds.
    pub nanoseconds: u64,
}

/// See the module. Times are in nanoseconds, of one clock.
#[derive(Debug, Default)]
pub struct Gaps {
    /// When the last call returned.
    left_at: Option<u64>,
    /// When the call began that is under way, as far as it has been heard of.
    entered_at: Option<u64>,
    /// Whether the last call only looked, or was to be tried again.
    has_looked: bool,
    /// Whether the call that is under way has started an operation.
    has_acted: bool,
    /// The gap before this call, whose meaning follows from what the call does.
    gap: u64,
    computed: u64,
    waited: Option<Waited>,
}

impl Gaps {
    /// A call is under way that began at `began`; to be told before anything else of it, and once is enough. `waited`
    /// says how long this thread has waited for a processor.
    pub fn enter(&mut self, began: u64, waited: impl FnOnce() -> Option<Waited>) {
        if self.entered_at == Some(began) {
            return;
        }
        (self.entered_at, self.has_acted) = (Some(began), false);
        self.gap = self.left_at.map_or(0, |left_at| began.saturating_sub(left_at));
        if self.gap >= LONG {
            self.gap -= self.waited_since(waited()).min(self.gap);
        }
    }

    /// The call that began at `began` returns.
    pub fn leave(&mut self, began: u64, now: u64, waited: impl Fn() -> Option<Waited>) {
        self.enter(began, &waited);
        self.look();
        self.entered_at = None;
        (self.left_at, self.has_looked) = (Some(now), !self.has_acted);
        if self.waited.is_none() || now.saturating_sub(began) >= LONG {
            // What it has waited by now is not to be taken from the next gap.
            self.waited_since(waited());
        }
    }

    /// The call that is under way starts an operation: the gap before it counts.
    pub fn act(&mut self) {
        self.computed += std::mem::take(&mut self.gap);
        self.has_acted = true;
    }

    /// The call that is under way looks: whether the gap before it counts depends on the call before, and its length.
    pub fn look(&mut self) {
        let gap = std::mem::take(&mut self.gap);
        if !self.has_looked || gap >= LONG {
            self.computed += gap;
        }
    }

    /// The computation since the last call of this function.
    pub fn take(&mut self) -> u64 {
        std::mem::take(&mut self.computed)
    }

    /// How long the thread has waited since it was last asked; 0 where it was another thread.
    fn waited_since(&mut self, now: Option<Waited>) -> u64 {
        let before = std::mem::replace(&mut self.waited, now);
        match (before, now) {
            (Some(before), Some(now)) if before.thread == now.thread => {
                now.nanoseconds.saturating_sub(before.nanoseconds)
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that calls, with a clock.
    #[derive(Default)]
    struct Process {
        gaps: Gaps,
        now: u64,
        waited: u64,
    }

    impl Process {
        fn call(&mut self, gap: u64, body: impl FnOnce(&mut Gaps)) -> &mut Self {
            self.now += gap;
            let (began, waited) = (self.now, Some(Waited { thread: 1, nanoseconds: self.waited }));
            self.gaps.enter(began, || waited);
            body(&mut self.gaps);
            self.now += 100;
            self.gaps.leave(began, self.now, || waited);
            self
        }

        fn acts(&mut self, gap: u64) -> &mut Self {
            self.call(gap, Gaps::act)
        }

        fn looks(&mut self, gap: u64) -> &mut Self {
            self.call(gap, |_| {})
        }
    }

    #[test]
    fn time_before_and_after_what_an_application_starts_is_computation() {
        let mut process = Process::default();
        process.acts(5).acts(7).looks(11).acts(13);
        assert_eq!(process.gaps.take(), 7 + 11 + 13, "what was before the first call is not known");
        assert_eq!(process.gaps.take(), 0);
    }

    #[test]
    fn a_loop_that_looks_is_no_computation_unless_it_computes_much() {
        let mut process = Process::default();
        process.acts(0).looks(3).looks(900).looks(LONG - 1);
        assert_eq!(process.gaps.take(), 3);
        process.looks(LONG).looks(1);
        assert_eq!(process.gaps.take(), LONG);
    }

    #[test]
    fn waiting_for_a_processor_is_left_out_of_long_gaps_only_where_it_was() {
        let mut process = Process::default();
        process.acts(0).acts(LONG);
        process.gaps.take();
        process.waited += 4 * LONG;
        process.acts(5 * LONG);
        assert_eq!(process.gaps.take(), LONG);
        // What it waits in a call, here for two gaps' length, is none of the next gap.
        let began = process.now;
        process.gaps.enter(began, || None);
        (process.now, process.waited) = (process.now + 2 * LONG, process.waited + 2 * LONG);
        let waited = Some(Waited { thread: 1, nanoseconds: process.waited });
        process.gaps.act();
        process.gaps.leave(began, process.now, || waited);
        process.acts(3 * LONG);
        assert_eq!(process.gaps.take(), 3 * LONG);
    }

    #[test]
    fn another_threads_waiting_says_nothing() {
        let mut gaps = Gaps::default();
        let waited = |thread, nanoseconds| Some(Waited { thread, nanoseconds });
        gaps.enter(0, || None);
        gaps.act();
        gaps.leave(0, LONG, || waited(1, 0));
        gaps.enter(3 * LONG, || waited(2, LONG));
        gaps.act();
        assert_eq!(gaps.take(), 2 * LONG);
    }

    #[test]
    fn of_several_threads_the_last_to_return_counts() {
        let mut gaps = Gaps::default();
        for (began, ended) in [(0, 10), (15, 40), (20, 50), (57, 60)] {
            gaps.enter(began, || None);
            gaps.act();
            gaps.leave(began, ended, || None);
        }
        assert_eq!(gaps.take(), 5 + 7);
    }

    #[test]
    fn what_the_call_does_decides_at_once() {
        let mut process = Process::default();
        process.acts(0).looks(0);
        process.gaps.take();
        // In a loop that looks, one look finds a message: what was before is the loop's, and a send after it is not.
        process.gaps.enter(process.now + 50, || None);
        process.gaps.look();
        assert_eq!(process.gaps.take(), 0);
        process.gaps.leave(process.now + 50, process.now + 60, || None);
        process.gaps.enter(process.now + 90, || None);
        process.gaps.act();
        assert_eq!(process.gaps.take(), 30);
    }
}
