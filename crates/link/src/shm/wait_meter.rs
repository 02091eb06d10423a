//! How long the application polls in vain: [`WaitMeter`].
//!
//! A run of empty polls is looked at now and then only, since a look reads the clock: every few polls, and once the
//! processor is shared, at each. From the second look of a run on it is a wait, which began before the first: the polls
//! before that took as long, each, as those behind it. It ends when something has come, and only then is the clock read
//! for that. So waits of some microseconds are not seen, and a message for which nothing waits costs nothing.
//!
//! Many a program polls and computes in turns. Its polls are far apart, and no wait. But so are those of a process that
//! has lost its processor while it waited. The polls before tell them apart: a process that waits polls often, and is
//! seldom interrupted.

use super::spin::Looked;
use std::time::Duration;
use tidegate_flow::Instant;

/// Polls of a program that does nothing else are closer than this, each to the next.
const CLOSE: Duration = Duration::from_micros(20);
/// So many looks at close polls before a pause show that the process waits, and was interrupted.
const CLOSE_BEFORE_PAUSE: u32 = 8;
/// A pause that is longer is none for want of a processor.
const PAUSE_MOST: Duration = Duration::from_millis(50);

/// The application has begun to poll in vain, or has ended to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitChange {
    /// It has since this moment.
    Begins(Instant),
    /// It did until this moment.
    Ends(Instant),
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct WaitMeter {
    /// When the last look was.
    last: Instant,
    /// Empty polls before the first look of this run.
    polls_before: u32,
    is_waiting: bool,
    /// Looks at close polls since the last pause.
    close: u32,
    /// The thread sleeps until something comes.
    sleeps: bool,
}

impl WaitMeter {
    /// A look at a run of empty polls. `shares`: whether processes known to us share processors, so that a poll that
    /// comes late shows nothing.
    pub(super) fn look(&mut self, now: Instant, looked: Looked, shares: bool) -> Option<WaitChange> {
        let pause = now.since(self.last);
        let goes_on = !looked.is_first && self.is_wait(pause, looked.polls, shares);
        let before = std::mem::replace(&mut self.last, now);
        if !goes_on {
            self.polls_before = if looked.is_first { looked.polls } else { 0 };
            return std::mem::take(&mut self.is_waiting).then_some(WaitChange::Ends(before));
        }
        if std::mem::replace(&mut self.is_waiting, true) {
            return None;
        }
        let head = (pause * std::mem::take(&mut self.polls_before) / looked.polls.max(1)).min(pause * 2);
        Some(WaitChange::Begins(Instant::from_nanos(before.as_nanos().saturating_sub(head.as_nanos() as u64))))
    }

    /// The wait that began last is none, since nothing is open. One may begin later.
    pub(super) fn take_back(&mut self) {
        self.is_waiting = false;
    }

    /// Something has come, or the endpoint closes.
    pub(super) fn end(&mut self, now: Instant, looked: Looked, shares: bool) -> Option<WaitChange> {
        if !std::mem::take(&mut self.is_waiting) {
            return None;
        }
        let goes_on = self.is_wait(now.since(self.last), looked.polls, shares);
        Some(WaitChange::Ends(if goes_on { now } else { self.last }))
    }

    /// Whether a run of polls has gone on waiting since the last look.
    fn is_wait(&mut self, pause: Duration, polls: u32, shares: bool) -> bool {
        if std::mem::take(&mut self.sleeps) {
            return true;
        }
        if pause <= CLOSE * polls.max(1) {
            self.close = self.close.saturating_add(1);
            return true;
        }
        let close = std::mem::take(&mut self.close);
        pause <= PAUSE_MOST && (shares || close >= CLOSE_BEFORE_PAUSE)
    }

    /// The thread is about to sleep until something comes.
    pub(super) fn fall_asleep(&mut self, now: Instant) -> Option<WaitChange> {
        self.sleeps = true;
        if std::mem::replace(&mut self.is_waiting, true) {
            return None;
        }
        self.last = now;
        Some(WaitChange::Begins(now))
    }

    /// It has woken up: so long it has waited.
    pub(super) fn wake_up(&mut self, now: Instant) {
        if std::mem::take(&mut self.sleeps) {
            self.last = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(microseconds: u64) -> Instant {
        Instant::from_nanos(microseconds * 1000)
    }

    fn first(polls: u32) -> Looked {
        Looked { polls, is_first: true }
    }

    fn later(polls: u32) -> Looked {
        Looked { polls, is_first: false }
    }

    #[test]
    fn a_run_of_empty_polls_is_a_wait_from_before_its_first_look_until_something_comes() {
        let mut meter = WaitMeter::default();
        let mut look = |now, looked| meter.look(at(now), looked, false);
        assert_eq!(look(1_000, first(64)), None);
        assert_eq!(look(1_006, later(64)), Some(WaitChange::Begins(at(994))));
        assert_eq!((look(1_012, later(64)), look(1_500, later(64))), (None, None));
        assert_eq!(meter.end(at(1_503), later(20), false), Some(WaitChange::Ends(at(1_503))));
        assert_eq!(meter.end(at(1_504), later(1), false), None);
        let mut look = |now, looked| meter.look(at(now), looked, false);
        assert_eq!((look(9_000, first(64)), look(9_001, later(1))), (None, Some(WaitChange::Begins(at(8_998)))));
    }

    #[test]
    fn a_run_that_is_looked_at_once_is_none_and_one_with_nothing_open_begins_later() {
        let mut meter = WaitMeter::default();
        for run in 1..9 {
            assert_eq!(meter.look(at(run * 100), first(64), false), None);
            assert_eq!(meter.end(at(run * 100 + 1), later(9), false), None);
        }
        assert_eq!(meter.look(at(2_000), first(64), false), None);
        assert_eq!(meter.look(at(2_010), later(64), false), Some(WaitChange::Begins(at(1_990))));
        meter.take_back();
        assert_eq!(meter.look(at(2_020), later(64), false), Some(WaitChange::Begins(at(2_010))));
    }

    #[test]
    fn a_program_that_computes_between_its_polls_does_not_wait() {
        let mut meter = WaitMeter::default();
        let mut now = 0;
        for poll in 0..100 {
            now += 1_000;
            assert_eq!(meter.look(at(now), Looked { polls: 1, is_first: poll == 0 }, false), None, "{poll}");
        }
        // Two polls in each turn, as an MPI makes them, are no wait of any length.
        let mut changes = Vec::new();
        for _ in 0..50 {
            for pause in [1_000, 1] {
                now += pause;
                changes.extend(meter.look(at(now), later(1), false));
            }
        }
        let sums: u64 = changes
            .chunks(2)
            .map(|pair| match pair {
                [WaitChange::Begins(since), WaitChange::Ends(until)] => until.since(*since).as_nanos() as u64,
                _ => 0,
            })
            .sum();
        assert!(sums <= 50 * 2_000, "{sums}");
    }

    #[test]
    fn a_process_that_is_interrupted_while_it_waits_goes_on_waiting() {
        let mut meter = WaitMeter::default();
        let mut now = 0;
        let mut look = |pause: u64, looked, shares| {
            now += pause;
            meter.look(at(now), looked, shares)
        };
        assert_eq!(look(100, first(64), false), None);
        let begun = look(3, later(64), false);
        assert!(matches!(begun, Some(WaitChange::Begins(_))));
        assert!((0..10).all(|_| look(1, later(1), false).is_none()));
        assert_eq!(look(8_000, later(1), false), None, "another process had the processor");
        assert_eq!(look(8_000, later(1), false), Some(WaitChange::Ends(at(8_113))), "twice in a row: it computes");
        // Where processors are shared each poll may be late.
        assert_eq!(look(8_000, later(1), true).map(|change| matches!(change, WaitChange::Begins(_))), Some(true));
        assert!((0..10).all(|_| look(8_000, later(1), true).is_none()));
        assert!(matches!(look(80_000, later(1), true), Some(WaitChange::Ends(_))), "nothing takes it for so long");
        assert!(matches!(look(1, later(1), true), Some(WaitChange::Begins(_))));
        assert_eq!(meter.end(at(10_000_000), later(1), true), Some(WaitChange::Ends(at(now))), "it was away");
    }

    #[test]
    fn a_thread_that_sleeps_waits_until_it_is_woken() {
        let mut meter = WaitMeter::default();
        assert_eq!(meter.look(at(10), first(64), false), None);
        assert_eq!(meter.fall_asleep(at(12)), Some(WaitChange::Begins(at(12))));
        meter.wake_up(at(500_000));
        assert_eq!(meter.end(at(500_003), later(1), false), Some(WaitChange::Ends(at(500_003))));
        // Woken for nothing, it goes on.
        assert_eq!(meter.fall_asleep(at(700_000)), Some(WaitChange::Begins(at(700_000))));
        meter.wake_up(at(900_000));
        assert_eq!(meter.look(at(900_005), later(1), false), None);
    }
}
