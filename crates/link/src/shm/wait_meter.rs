//! How long the application polls in vain: [`WaitMeter`].
//!
//! A run of empty polls is looked at now and then only, since a look reads the clock: every few polls, and once the
//! processor is shared, at each. From the second look of a run on it is a wait, which began before the first: the polls
//! before that took as long, each, as those behind it. It ends when something has come, and only then is the clock read
//! for that. So waits of some microseconds are not seen, and a message for which nothing waits costs nothing.
//!
//! Where processors are shared, the first look begins a wait: an MPI that gives its processor away after a poll in vain
//! may get it back for the poll that finds (Open MPI, with ten programs that compute for each processor). A wait that
//! began so, and turns out to be none at the second look, has taken no time.
//!
//! Many a program polls and computes in turns. Its polls are far apart, and no wait. But so are those of a process that
//! has lost its processor while it waited. The system tells them apart: it is asked at polls that are far apart, and
//! once before, how long the thread has run, and whether it has slept. It is not asked at each: what it says counts for
//! all pauses since it was asked before.

use super::spin::Looked;
use crate::clock::Ran;
use std::time::Duration;
use tidegate_flow::Instant;

/// Polls of a program that does nothing else are closer than this, each to the next.
const CLOSE: Duration = Duration::from_micros(10);
/// After so many looks at close polls the system is asked how long the thread has run; where processors are shared, at
/// the first look.
const LOOKS_BEFORE_ASKED: u32 = 8;
/// In a pause for want of a processor the thread has run for less than this part of it, and than this and so much for
/// each poll, which is what MPIs do around it: a program that computes uses its slices of the processor up.
const PART_RUN_MOST: u32 = 4;
const RUN_MOST: Duration = Duration::from_micros(250);
const RUN_PER_POLL: Duration = Duration::from_micros(5);
/// The system is asked this often at most: pauses since then are taken for waits until it is, or until something has
/// come.
const ASKED_EVERY: Duration = Duration::from_micros(500);
/// A pause that is longer is none for want of a processor.
const PAUSE_MOST: Duration = Duration::from_secs(1);

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
    /// Looks at close polls since the run began or the last pause.
    close: u32,
    /// How the thread had run when the system was asked last, and how long it has polled since.
    ran: Option<Ran>,
    asked: Instant,
    polled: Duration,
    /// Polls since that were far apart.
    polls: u32,
    /// Since when pauses are taken for waits that the system was not asked about.
    doubtful: Option<Instant>,
    /// The thread sleeps until something comes.
    sleeps: bool,
}

impl WaitMeter {
    /// A look at a run of empty polls. `shares`: whether processes known to us share processors. `ran` tells how long
    /// the thread has run.
    pub(super) fn look(
        &mut self,
        now: Instant,
        looked: Looked,
        shares: bool,
        ran: impl FnOnce() -> Ran,
    ) -> Option<WaitChange> {
        let pause = now.since(self.last);
        let before = std::mem::replace(&mut self.last, now);
        if looked.is_first {
            return self.look_first(now, looked.polls, shares, ran);
        }
        if let Err(until) = self.goes_on(before, now, looked.polls, ran) {
            self.polls_before = 0;
            return std::mem::take(&mut self.is_waiting).then_some(WaitChange::Ends(until));
        }
        if std::mem::replace(&mut self.is_waiting, true) {
            return None;
        }
        let head = (pause * std::mem::take(&mut self.polls_before) / looked.polls.max(1)).min(pause * 2);
        Some(WaitChange::Begins(Instant::from_nanos(before.as_nanos().saturating_sub(head.as_nanos() as u64))))
    }

    fn look_first(&mut self, now: Instant, polls: u32, shares: bool, ran: impl FnOnce() -> Ran) -> Option<WaitChange> {
        (self.close, self.polls_before, self.doubtful) = (0, polls, None);
        self.is_waiting = shares;
        let age = now.since(self.asked);
        if !shares {
            self.ran = None;
        } else if self.ran.is_none() || age >= ASKED_EVERY {
            self.ask(now, ran);
        } else {
            // It may have run all the time since.
            self.polled = age;
        }
        shares.then_some(WaitChange::Begins(now))
    }

    /// Something has come, or the endpoint closes.
    pub(super) fn end(&mut self, now: Instant, looked: Looked, ran: impl FnOnce() -> Ran) -> Option<WaitChange> {
        if !std::mem::take(&mut self.is_waiting) {
            return None;
        }
        let goes_on = self.goes_on(self.last, now, looked.polls, ran);
        Some(WaitChange::Ends(goes_on.err().unwrap_or(now)))
    }

    /// Whether a run of polls has gone on waiting from one look to the next; else until when it has.
    fn goes_on(&mut self, before: Instant, now: Instant, polls: u32, ran: impl FnOnce() -> Ran) -> Result<(), Instant> {
        if std::mem::take(&mut self.sleeps) {
            (self.ran, self.doubtful) = (None, None);
            return Ok(());
        }
        let pause = now.since(before);
        if pause <= CLOSE * polls.max(1) {
            self.close = self.close.saturating_add(1);
            self.polled += pause;
            if self.ran.is_none() && self.close >= LOOKS_BEFORE_ASKED {
                self.ask(now, ran);
            }
            return Ok(());
        }
        self.polls = self.polls.saturating_add(polls);
        let since = *self.doubtful.get_or_insert(before);
        if self.ran.is_some() && now.since(self.asked) < ASKED_EVERY {
            return Ok(());
        }
        self.doubtful = None;
        let (had_run, polled) = (self.ran, self.polled);
        let most = RUN_MOST + RUN_PER_POLL.saturating_mul(self.polls);
        let has_run = self.ask(now, ran);
        let is_wait = had_run.is_some_and(|had_run| {
            let computed = has_run.time.saturating_sub(had_run.time).saturating_sub(polled);
            let span = now.since(since);
            let is_short = span <= PAUSE_MOST && computed <= most.min(span / PART_RUN_MOST);
            is_short && has_run.blocked == had_run.blocked
        });
        if is_wait { Ok(()) } else { Err(since) }
    }

    fn ask(&mut self, now: Instant, ran: impl FnOnce() -> Ran) -> Ran {
        (self.asked, self.polled, self.polls) = (now, Duration::ZERO, 0);
        *self.ran.insert(ran())
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

    /// A meter with clocks.
    #[derive(Default)]
    struct Watched {
        meter: WaitMeter,
        now: u64,
        ran: u64,
        blocked: u64,
        shares: bool,
    }

    impl Watched {
        fn ran(&self) -> Ran {
            Ran { time: Duration::from_micros(self.ran), blocked: self.blocked }
        }

        /// A look after a pause, during which the thread ran for a part of it, all in microseconds.
        fn look(&mut self, pause: u64, ran: u64, looked: Looked) -> Option<WaitChange> {
            self.now += pause;
            self.ran += ran;
            let ran = self.ran();
            self.meter.look(at(self.now), looked, self.shares, || ran)
        }

        fn end(&mut self, pause: u64, ran: u64, polls: u32) -> Option<WaitChange> {
            self.now += pause;
            self.ran += ran;
            let ran = self.ran();
            self.meter.end(at(self.now), later(polls), || ran)
        }
    }

    #[test]
    fn a_run_of_empty_polls_is_a_wait_from_before_its_first_look_until_something_comes() {
        let mut watched = Watched::default();
        assert_eq!(watched.look(1_000, 1_000, first(64)), None);
        assert_eq!(watched.look(6, 6, later(64)), Some(WaitChange::Begins(at(994))));
        assert_eq!((watched.look(6, 6, later(64)), watched.look(488, 488, later(64))), (None, None));
        assert_eq!(watched.end(3, 3, 20), Some(WaitChange::Ends(at(1_503))));
        assert_eq!(watched.end(1, 1, 1), None);
        assert_eq!(watched.look(7_496, 7_000, first(64)), None);
        assert_eq!(watched.look(1, 1, later(1)), Some(WaitChange::Begins(at(8_998))));
    }

    #[test]
    fn a_run_that_is_looked_at_once_is_none() {
        let mut watched = Watched::default();
        for _ in 1..9 {
            assert_eq!((watched.look(99, 99, first(64)), watched.end(1, 1, 9)), (None, None));
        }
    }

    #[test]
    fn a_program_that_computes_between_its_polls_does_not_wait() {
        for shares in [false, true] {
            let mut watched = Watched { shares, ..Watched::default() };
            let begun = shares.then(|| WaitChange::Begins(at(1_000)));
            assert_eq!(watched.look(1_000, 1_000, first(1)), begun);
            let ended = shares.then(|| WaitChange::Ends(at(1_000)));
            assert_eq!(watched.look(1_000, 1_000, later(1)), ended, "after no time");
            assert!((0..100).all(|_| watched.look(1_000, 1_000, later(1)).is_none()));
            // Two polls in each turn, as an MPI makes them, are no wait of any length.
            let mut waited = 0;
            let mut since = None;
            for _ in 0..50 {
                for pause in [1_000, 1] {
                    match watched.look(pause, pause, later(1)) {
                        Some(WaitChange::Begins(begun)) => since = Some(begun),
                        Some(WaitChange::Ends(until)) => waited += until.since(since.take().unwrap()).as_micros(),
                        None => {}
                    }
                }
            }
            assert!(waited <= 50 * 2, "{waited} of 50,000");
        }
    }

    /// In one of some turns it has lost its processor, which is no wait either.
    #[test]
    fn a_program_that_computes_for_300_microseconds_between_its_polls_waits_for_little_where_others_compute_too() {
        let mut watched = Watched { shares: true, ..Watched::default() };
        let (mut since, mut waited) = (None, 0);
        for turn in 0..1_000 {
            let pause = if turn % 5 == 0 { 12_300 } else { 300 };
            for (pause, ran, looked) in [(pause, 300, if turn == 0 { first(1) } else { later(1) }), (1, 1, later(1))] {
                match watched.look(pause, ran, looked) {
                    Some(WaitChange::Begins(begun)) => since = Some(begun),
                    Some(WaitChange::Ends(until)) => {
                        waited += since.take().map_or(0, |since| until.since(since).as_micros());
                    }
                    None => {}
                }
            }
        }
        let all = u128::from(watched.now);
        assert!(waited * 50 <= all, "{waited} of {all} microseconds");
    }

    #[test]
    fn a_process_that_has_no_processor_while_it_waits_goes_on_waiting() {
        let mut watched = Watched::default();
        assert_eq!(watched.look(100, 100, first(64)), None);
        assert!(matches!(watched.look(3, 3, later(64)), Some(WaitChange::Begins(_))));
        assert!((0..10).all(|_| watched.look(1, 1, later(1)).is_none()));
        assert!((0..3).all(|_| watched.look(80_000, 5, later(1)).is_none()), "others had it");
        assert_eq!(watched.end(70_000, 9, 1), Some(WaitChange::Ends(at(310_113))), "until something came");
        assert_eq!(watched.look(3, 3, first(64)), None);
        assert!(matches!(watched.look(3, 3, later(64)), Some(WaitChange::Begins(_))));
        assert!((0..10).all(|_| watched.look(1, 1, later(1)).is_none()));
        assert_eq!(watched.look(8_000, 7_000, later(1)), Some(WaitChange::Ends(at(310_129))), "it has computed");
        assert!(matches!(watched.look(9_000, 0, later(1)), Some(WaitChange::Begins(_))));
        assert!(matches!(watched.look(2_000_000, 0, later(1)), Some(WaitChange::Ends(_))), "nothing takes so long");
    }

    #[test]
    fn where_processors_are_shared_one_poll_in_vain_begins_a_wait() {
        let mut watched = Watched { shares: true, ..Watched::default() };
        assert_eq!(watched.look(100_000, 9, first(1)), Some(WaitChange::Begins(at(100_000))));
        assert_eq!(watched.end(60_000, 9, 1), Some(WaitChange::Ends(at(160_000))), "the next poll has found");
        assert_eq!(watched.look(40_000, 9, first(1)), Some(WaitChange::Begins(at(200_000))));
        assert_eq!(watched.look(30_000, 2, later(1)), None);
        assert_eq!(watched.end(30_000, 2, 1), Some(WaitChange::Ends(at(260_000))));
        // One that computes until the poll that finds has not waited, and one that sleeps waits for something else.
        assert_eq!(watched.look(40_000, 9, first(1)), Some(WaitChange::Begins(at(300_000))));
        assert_eq!(watched.end(60_000, 50_000, 1), Some(WaitChange::Ends(at(300_000))));
        assert_eq!(watched.look(40_000, 9, first(1)), Some(WaitChange::Begins(at(400_000))));
        watched.blocked += 1;
        assert_eq!(watched.look(40_000, 9, later(1)), Some(WaitChange::Ends(at(400_000))));
        assert_eq!(watched.look(3, 3, later(1)), Some(WaitChange::Begins(at(440_000))));
        watched.blocked += 1;
        assert_eq!(watched.end(40_000, 9, 1), Some(WaitChange::Ends(at(440_003))));
    }

    #[test]
    fn a_thread_that_sleeps_waits_until_it_is_woken() {
        let mut watched = Watched::default();
        assert_eq!(watched.look(10, 10, first(64)), None);
        assert_eq!(watched.meter.fall_asleep(at(12)), Some(WaitChange::Begins(at(12))));
        watched.meter.wake_up(at(5_000_000));
        watched.now = 5_000_000;
        assert_eq!(watched.end(3, 3, 1), Some(WaitChange::Ends(at(5_000_003))));
        // Woken for nothing, it goes on.
        assert_eq!(watched.meter.fall_asleep(at(7_000_000)), Some(WaitChange::Begins(at(7_000_000))));
        watched.meter.wake_up(at(9_000_000));
        watched.now = 9_000_000;
        assert_eq!(watched.look(5, 5, later(1)), None);
    }
}
