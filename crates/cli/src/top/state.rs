//! The one word for the state of a rank, from two looks at it.
//!
//! The page tells how long the process polled in vain. The rest of the time it moved messages or was outside of its
//! MPI, and no counter tells these apart. But a message takes some time at most: where all that moved explains less
//! than half of the time, and the process had a processor and hardly ever gave it away, it computes. So a rank that is
//! seen in its MPI now and then, because it takes a message after each piece of its work, is told from one that streams
//! messages; and a rank of which no message moves never has the word for those that go on.

use std::time::Duration;

use tidegate_message::Counter;

use crate::culprit::{Doing, Member, Presence};
use crate::process;
use crate::top::habit::{PollHabit, stretch};
use crate::top::look::Seen;
use crate::top::presence::is_starved;
use crate::top::view::RowWait;

/// From this part of the time on, a state has its name.
const MOSTLY: f64 = 0.5;
/// No packet takes longer than this, and no byte: twenty times what they take on the machines that were measured.
const PACKET_MOST: Duration = Duration::from_micros(5);
const BYTE_MOST: Duration = Duration::from_nanos(10);
/// A process that was found asleep and has used less than this part of the time sleeps between its calls.
const SLEEPS_BELOW: f64 = 0.2;

/// The state of a rank most of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Its messages move, and it waits less than half of the time.
    Runs,
    /// It is in its MPI and polls in vain.
    Waits,
    /// It uses a processor outside of its MPI, or polls rarely.
    Computes,
    /// It would run, and others have the processors.
    NoProcessor,
    /// It waits for something that is no message: a file, a lock, a time.
    Sleeps,
    /// A signal or a debugger has stopped it.
    Stopped,
    /// It is outside of its MPI, and its system does not tell what it does there.
    Away,
    /// It has left its MPI in order.
    Left,
    /// Its process is gone without having left in order.
    Gone,
    /// Not known, or not yet.
    Unknown,
}

impl State {
    /// The word in the table.
    pub fn word(self) -> &'static str {
        match self {
            State::NoProcessor => "no CPU",
            State::Unknown => "?",
            other => other.name(),
        }
    }

    /// The same in JSON.
    pub fn name(self) -> &'static str {
        match self {
            State::Runs => "runs",
            State::Waits => "waits",
            State::Computes => "computes",
            State::NoProcessor => "no_cpu",
            State::Sleeps => "sleeps",
            State::Stopped => "stopped",
            State::Away => "away",
            State::Left => "left",
            State::Gone => "gone",
            State::Unknown => "unknown",
        }
    }
}

/// A process between two looks.
pub struct Between<'a> {
    /// At the first look, if there was one.
    pub before: Option<&'a Seen>,
    /// At the second.
    pub now: &'a Seen,
    /// The time between them.
    pub span: Option<Duration>,
}

impl Between<'_> {
    /// The state most of the time. `wait`: the rank that it waits for most.
    pub fn state(&self, member: &Member, wait: Option<&RowWait>) -> State {
        match (member.presence, member.doing) {
            (Presence::Ended, _) => State::Left,
            (Presence::Gone, _) => State::Gone,
            (Presence::WentOn, _) => State::Unknown,
            (Presence::Away { .. }, Doing::Computes) => State::Computes,
            (Presence::Away { .. }, Doing::Queues) => State::NoProcessor,
            (Presence::Away { .. }, Doing::Sleeps) => State::Sleeps,
            (Presence::Away { .. }, Doing::Stopped) => State::Stopped,
            (Presence::Away { .. }, Doing::Unknown) => State::Away,
            (Presence::Here, doing) => self.in_mpi(member, doing, wait),
        }
    }

    /// The part of the time in which its first thread would have run and had no processor. `None`: its system does not
    /// tell, or it is another one.
    pub fn queued(&self) -> Option<f64> {
        let of = |seen: &Seen| seen.process?.queued;
        let queued = of(self.now)?.saturating_sub(of(self.before?)?);
        Some(self.share(queued)?.min(1.0))
    }

    fn in_mpi(&self, member: &Member, doing: Doing, wait: Option<&RowWait>) -> State {
        let is_most = |share: Option<f64>| share.is_some_and(|share| share >= MOSTLY);
        let habit = self.habit();
        let polled = self.since(Counter::WaitNanoseconds).map(Duration::from_nanos);
        let has_open_wait = is_most(wait.map(|wait| wait.share)) && habit != Some(PollHabit::Computes);
        if is_most(polled.and_then(|time| self.share(time))) || has_open_wait {
            return State::Waits;
        }
        if doing == Doing::Queues {
            return State::NoProcessor;
        }
        if self.messages_explain_little() {
            if is_most(self.queued()) && is_starved(self.now, self.before) {
                return State::NoProcessor;
            }
            match habit {
                Some(PollHabit::Computes) => return State::Computes,
                Some(PollHabit::Unclear) if self.is_asleep() => return State::Sleeps,
                _ => {}
            }
        }
        match habit {
            _ if member.moves => State::Runs,
            Some(PollHabit::Polls) => State::Waits,
            _ => State::Unknown,
        }
    }

    /// How it polled, as its system and its page tell.
    fn habit(&self) -> Option<PollHabit> {
        Some(stretch(self.before?, self.now, self.span?)?.habit())
    }

    fn is_asleep(&self) -> bool {
        let ran = |seen: &Seen| Some(process::ticks(seen.process?.ran_ticks));
        let used = self.before.and_then(ran).zip(ran(self.now)).map(|(before, now)| now.saturating_sub(before));
        let is_idle = used.and_then(|used| self.share(used)).is_some_and(|share| share < SLEEPS_BELOW);
        is_idle && self.now.process.is_some_and(|process| process.state == process::State::Sleeping)
    }

    /// Whether the messages that moved took less than half of the time for certain.
    fn messages_explain_little(&self) -> bool {
        let sum = |counters: [Counter; 2]| counters.into_iter().filter_map(|counter| self.since(counter)).sum::<u64>();
        let packets = sum([Counter::PacketsSent, Counter::PacketsReceived]) as f64;
        let bytes = sum([Counter::BytesSent, Counter::BytesReceived]) as f64;
        let most = packets * PACKET_MOST.as_secs_f64() + bytes * BYTE_MOST.as_secs_f64();
        self.span.is_some_and(|span| most < MOSTLY * span.as_secs_f64())
    }

    /// By how much a counter has grown.
    fn since(&self, counter: Counter) -> Option<u64> {
        Some(self.now.get(counter).saturating_sub(self.before?.get(counter)))
    }

    fn share(&self, time: Duration) -> Option<f64> {
        self.span.filter(|span| !span.is_zero()).map(|span| time.as_secs_f64() / span.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;
    use crate::process::State::{Runnable, Sleeping, Stopped};
    use crate::top::look::Look;
    use crate::top::look::tests::seen;
    use crate::top::presence::presence;
    use crate::top::waits::waits;

    /// A process during one second, at whose end its state is told.
    #[derive(Clone)]
    struct Case {
        /// What its counters grow by.
        counters: Vec<(Counter, u64)>,
        /// How long it has run and been in the queue, in milliseconds, and its state.
        system: Option<(u64, u64, process::State)>,
        /// How long ago it wrote its page, in milliseconds.
        written: u64,
    }

    fn case(counters: &[(Counter, u64)], system: (u64, u64, process::State)) -> Case {
        Case { counters: counters.to_vec(), system: Some(system), written: 2 }
    }

    impl Case {
        fn of(&self) -> State {
            let at = |at: u64, part: u64| {
                let counters: Vec<_> = self.counters.iter().map(|(counter, value)| (*counter, value * part)).collect();
                let mut seen = seen(0, &counters);
                seen.pages[0].written = Some(Duration::from_millis(at * 1000 - self.written));
                seen.process = self.system.map(|(ran, queued, state)| Process {
                    state,
                    ran_ticks: ran * part * rustix::param::clock_ticks_per_second() / 1000,
                    started_ticks: 7,
                    queued: Some(Duration::from_millis(queued * part)),
                });
                Look { at: Duration::from_secs(at), processes: vec![seen] }
            };
            let (before, now) = (at(10, 0), at(11, 1));
            let found = waits(Some(&before), &now, None);
            let span = Some(Duration::from_secs(1));
            let between = Between { before: Some(&before.processes[0]), now: &now.processes[0], span };
            between.state(&found.members[0], None)
        }
    }

    const WAITED: (Counter, u64) = (Counter::WaitNanoseconds, 990_000_000);
    const YIELDS: (Counter, u64) = (Counter::Yields, 100_000);

    fn received(packets: u64) -> [(Counter, u64); 2] {
        [(Counter::PacketsReceived, packets), (Counter::BytesReceived, packets * 56)]
    }

    #[test]
    fn a_rank_that_polls_in_vain_waits_whatever_its_processor_says() {
        assert_eq!(case(&[WAITED, YIELDS], (1000, 0, Runnable)).of(), State::Waits);
        // It shares its processor with other ranks that wait.
        assert_eq!(case(&[WAITED, YIELDS], (40, 950, Runnable)).of(), State::Waits);
        // It waits between the messages that come.
        assert_eq!(case(&[&[WAITED][..], &received(5)].concat(), (1000, 0, Runnable)).of(), State::Waits);
        // Its page counts no wait, because no operation of it is open: it polls, and does nothing else.
        assert_eq!(case(&[YIELDS], (1000, 0, Runnable)).of(), State::Waits);
        // Another host does not tell what its processes do.
        assert_eq!(Case { system: None, ..case(&[WAITED], (0, 0, Runnable)) }.of(), State::Waits);
    }

    #[test]
    fn a_rank_that_computes_between_its_messages_is_told_from_one_that_streams_them() {
        assert_eq!(case(&received(3), (1000, 0, Runnable)).of(), State::Computes);
        assert_eq!(case(&received(500_000), (1000, 0, Runnable)).of(), State::Runs);
        assert_eq!(case(&received(3), (10, 0, Sleeping)).of(), State::Sleeps);
        // With a third of a processor it computes, if slowly; with a tenth it does not get on.
        assert_eq!(case(&received(3), (330, 660, Runnable)).of(), State::Computes);
        assert_eq!(case(&received(3), (100, 890, Runnable)).of(), State::NoProcessor);
        // It asks for its message now and then, and none comes.
        assert_eq!(case(&[], (1000, 0, Runnable)).of(), State::Computes);
        // What its system does not tell is not made up.
        let elsewhere = Case { system: None, ..case(&[], (0, 0, Runnable)) };
        assert_eq!(elsewhere.of(), State::Unknown);
        assert_eq!(Case { counters: received(3).to_vec(), ..elsewhere }.of(), State::Runs);
    }

    #[test]
    fn a_rank_that_has_not_polled_is_called_by_what_it_does() {
        let away = |system| Case { written: 4000, ..case(&[], system) };
        assert_eq!(away((1000, 0, Runnable)).of(), State::Computes);
        assert_eq!(away((330, 660, Runnable)).of(), State::Computes);
        assert_eq!(away((100, 890, Runnable)).of(), State::NoProcessor);
        assert_eq!(away((0, 0, Sleeping)).of(), State::Sleeps);
        assert_eq!(away((0, 0, Stopped)).of(), State::Stopped);
        assert_eq!(away((0, 0, Runnable)).of(), State::NoProcessor);
        let mut gone = seen(0, &[]);
        gone.exists = Some(false);
        let at = Duration::from_secs(11);
        assert_eq!(presence(&gone, None, at, Duration::ZERO).0, Presence::Gone);
    }

    #[test]
    fn no_rank_runs_of_which_no_message_moves() {
        let systems = [Runnable, Sleeping, Stopped].map(|state| [(1000, 0, state), (0, 1000, state), (30, 500, state)]);
        for system in systems.as_flattened() {
            for counters in [&[][..], &[WAITED], &[YIELDS], &[WAITED, YIELDS]] {
                for written in [2, 240, 4000] {
                    let state = Case { written, ..case(counters, *system) }.of();
                    assert_ne!(state, State::Runs, "{counters:?} {system:?} {written}");
                }
            }
        }
    }
}
