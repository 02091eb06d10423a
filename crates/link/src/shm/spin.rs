//! How long to poll in vain before giving the processor away.
//!
//! When every process has a core of its own, whoever polls longest sees a packet first. When they share cores, what
//! we wait for can only be sent once we let its sender run. So: many empty polls before a yield in the first case, few
//! in the second. From then on one of some polls yields, until something is found: a yield takes as long as some ten
//! polls, and MPIs yield by themselves too. (With one after each poll NWChem took a tenth to a fifth longer with two
//! ranks on two cores, and a quarter longer with four.)
//!
//! Which case it is follows from the cores that the processes known to us may run on, all taken together: launchers
//! often bind each process to a core of its own, so our own affinity says nothing.

/// Cores that an affinity mask of the system has room for.
const CORES_MOST: usize = 1024;

/// Empty polls before the first yield, when the processes known to us have a core each.
const POLLS_ALONE: u32 = 2000;
/// Empty polls before the first yield, when the processes known to us share cores.
const POLLS_SHARED: u32 = 32;
/// Empty polls from one yield to the next, then, in the first case and in the second: some microseconds, and one. Odd,
/// since a program that peeks and reads in turns counts both, and only one of the two gives the processor away.
const POLLS_PER_YIELD_ALONE: u32 = 61;
const POLLS_PER_YIELD_SHARED: u32 = 7;
/// Empty polls after a find that wait a little for the answer themselves: see [`Step::Linger`]. Few that wait longer
/// are better than many: an MPI that yields after each empty poll (MPICH) gets its answer without a yield.
const POLLS_LINGERING: u32 = 2;
/// Empty polls between two looks at the clock.
const POLLS_PER_LOOK: u32 = 256;
/// The same where waits are measured (`wait_meter`), which begin at the second look; and those before the first look
/// after a find, where processes have a core each and where they share cores: then one may get its processor for few
/// polls only while it waits. The second look comes after as many polls as the first, and so on.
const POLLS_PER_LOOK_MEASURED: u32 = 32;
const POLLS_BEFORE_LOOK_ALONE: u32 = 8;
const POLLS_BEFORE_LOOK_SHARED: u32 = 1;

/// What to do after an empty poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Keep looking at the mailbox for a microsecond or so. Between two polls an MPI library does much more than
    /// we do, and some yield; who has just communicated is likely to get an answer before all that is done.
    Linger,
    /// Poll again.
    Spin,
    /// Poll again, after a look at the clock.
    Look,
    /// Look at the clock and yield, if [that is due](SpinPolicy::is_yield_due).
    Yield,
}

/// Empty polls since the last look at the clock, or since the last find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Looked {
    pub(crate) polls: u32,
    /// Whether this is the first look since a find.
    pub(crate) is_first: bool,
}

/// What an empty poll asks of its caller. The processor is given away by the caller and not here, because the caller
/// may hold a lock for which other threads wait: it leaves that first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Idle {
    /// A packet has come.
    Arrived,
    /// Nothing has come: poll again.
    Spin,
    /// Nothing has come for long: give the processor to another thread, then poll again.
    Yield,
}

impl Idle {
    /// Gives the processor away if that is asked for. The caller holds no lock.
    pub fn yield_if_asked(self) {
        if self == Idle::Yield {
            std::thread::yield_now();
        }
    }
}

/// A run of empty polls: how many, up to the limit, and how many there were at the last look at the clock, 0 without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
struct Run {
    empty: u32,
    at_look: u32,
}

/// Counts empty polls.
#[derive(Debug)]
pub(crate) struct SpinPolicy {
    run: Run,
    /// After how many empty polls of the run the clock is looked at next.
    next_look: u32,
    /// Whether waits are measured.
    is_measured: bool,
    /// Empty polls that were beyond the limit.
    beyond: u32,
    limit: u32,
    /// Set by the user, so the number of peers does not matter.
    fixed: bool,
    /// Cores that at least one of the known processes may run on.
    cores: [u64; CORES_MOST / 64],
    processes: u32,
}

impl SpinPolicy {
    /// `limit`: the user's choice of empty polls before a yield. `is_measured`: whether waits are.
    pub fn new(limit: Option<u32>, is_measured: bool) -> Self {
        let fixed = limit.is_some();
        let (cores, limit) = ([0; CORES_MOST / 64], limit.unwrap_or(POLLS_ALONE));
        let mut policy =
            SpinPolicy { run: Run::default(), next_look: 0, is_measured, beyond: 0, limit, fixed, cores, processes: 0 };
        policy.add_process(0);
        policy
    }

    /// One more process takes part; 0 is this one. A process whose affinity the system does not tell adds no core.
    pub fn add_process(&mut self, pid: u32) {
        let mut mask = [0; CORES_MOST / 64];
        // SAFETY: the mask is as long as is said.
        unsafe { libc::sched_getaffinity(pid as libc::pid_t, size_of_val(&mask), mask.as_mut_ptr().cast()) };
        self.share_cores_with(&mask);
    }

    fn share_cores_with(&mut self, mask: &[u64]) {
        self.processes += 1;
        self.cores.iter_mut().zip(mask).for_each(|(known, more)| *known |= more);
        self.choose_limit();
    }

    /// A process takes part no more. Its cores stay: they did exist.
    pub fn remove_process(&mut self) {
        self.processes = self.processes.saturating_sub(1);
        self.choose_limit();
    }

    fn choose_limit(&mut self) {
        let cores: u32 = self.cores.iter().map(|word| word.count_ones()).sum();
        if !self.fixed {
            self.limit = if self.processes > cores { POLLS_SHARED } else { POLLS_ALONE };
        }
        // Else a process that gets its processor for few polls only would wait for a first look that never comes.
        if self.run.at_look == 0 {
            self.next_look = self.first_look();
        }
    }

    /// Empty polls before a yield.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Something was found. Returns the polls since the last look at the clock, if there was one since the find before.
    #[inline(always)]
    pub fn reset(&mut self) -> Option<Looked> {
        let Run { empty, at_look } = std::mem::take(&mut self.run);
        if at_look == 0 {
            return None;
        }
        self.next_look = self.first_look();
        Some(Looked { polls: empty.saturating_sub(at_look).max(1), is_first: false })
    }

    /// Empty polls before the first look at the clock after a find.
    fn first_look(&self) -> u32 {
        match (self.is_measured, self.may_linger()) {
            (false, _) => POLLS_PER_LOOK,
            (true, true) => POLLS_BEFORE_LOOK_ALONE,
            (true, false) => POLLS_BEFORE_LOOK_SHARED,
        }
    }

    /// The clock is looked at.
    pub fn look(&mut self) -> Looked {
        let Run { empty, at_look } = self.run;
        self.run.at_look = empty.max(1);
        let most = if self.is_measured { POLLS_PER_LOOK_MEASURED } else { POLLS_PER_LOOK };
        self.next_look = empty.saturating_add(empty.clamp(1, most));
        Looked { polls: empty.saturating_sub(at_look).max(1), is_first: at_look == 0 }
    }

    /// Whether the processor is ours, so that waiting a little takes it from nobody who would have to answer.
    pub fn may_linger(&self) -> bool {
        self.limit >= POLLS_ALONE
    }

    #[inline(always)]
    pub fn step(&mut self) -> Step {
        if self.run.empty >= self.limit {
            return Step::Yield;
        }
        self.run.empty += 1;
        if self.run.empty <= POLLS_LINGERING && self.may_linger() {
            return Step::Linger;
        }
        if self.run.empty >= self.next_look { Step::Look } else { Step::Spin }
    }

    /// Whether a [`Step::Yield`] gives the processor away.
    pub fn is_yield_due(&mut self) -> bool {
        self.beyond = self.beyond.wrapping_add(1);
        let polls_per_yield = match self.fixed {
            true => 1,
            false if self.may_linger() => POLLS_PER_YIELD_ALONE,
            false => POLLS_PER_YIELD_SHARED,
        };
        self.beyond.is_multiple_of(polls_per_yield)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yields_begin_at_the_limit_and_end_with_a_find() {
        let mut policy = SpinPolicy::new(Some(300), false);
        let mut step = || {
            let step = policy.step();
            if step == Step::Look {
                let _ = policy.look();
            }
            step
        };
        let steps: Vec<Step> = (0..303).map(|_| step()).collect();
        assert_eq!(steps.iter().filter(|step| **step == Step::Look).count(), 1);
        assert_eq!(steps[299..], [Step::Spin, Step::Yield, Step::Yield, Step::Yield]);
        policy.reset();
        assert_eq!(policy.step(), Step::Spin, "who gives way soon does not linger");
    }

    #[test]
    fn beyond_the_limit_some_polls_yield_and_all_where_the_user_chose_the_limit() {
        let polls = 2 * POLLS_PER_YIELD_ALONE * POLLS_PER_YIELD_SHARED;
        let yields = |mut policy: SpinPolicy| {
            let limit = policy.limit;
            let mut gives_way = || policy.step() == Step::Yield && policy.is_yield_due();
            assert!((0..limit).all(|_| !gives_way()));
            (0..polls).filter(|_| gives_way()).count() as u32
        };
        let alone = || SpinPolicy { limit: POLLS_ALONE, fixed: false, ..SpinPolicy::new(Some(0), false) };
        assert_eq!(yields(alone()), polls / POLLS_PER_YIELD_ALONE);
        assert_eq!(yields(SpinPolicy { limit: POLLS_SHARED, ..alone() }), polls / POLLS_PER_YIELD_SHARED);
        assert_eq!(yields(SpinPolicy::new(Some(POLLS_ALONE), false)), polls);
    }

    #[test]
    fn looks_know_how_many_polls_came_before_them_and_which_is_the_first_of_a_run() {
        let mut policy = SpinPolicy { limit: 100, ..SpinPolicy::new(Some(POLLS_ALONE), true) };
        let mut looks = |polls: u32| -> Vec<(u32, u32, bool)> {
            let look = |number| {
                let is_look = matches!(policy.step(), Step::Look | Step::Yield);
                let looked = is_look.then(|| policy.look())?;
                Some((number, looked.polls, looked.is_first))
            };
            (1..=polls).filter_map(look).collect()
        };
        let first = [(8, 8, true), (16, 8, false), (32, 16, false), (64, 32, false), (96, 32, false)];
        assert_eq!((looks(100), looks(2)), (first.to_vec(), vec![(1, 4, false), (2, 1, false)]));
        assert_eq!((policy.reset().map(|looked| looked.polls), policy.reset()), (Some(1), None));
        let mut policy = SpinPolicy::new(Some(100), false);
        assert_eq!((policy.step(), policy.reset()), (Step::Spin, None), "nothing was looked at");
        let mut policy = SpinPolicy::new(Some(POLLS_ALONE), true);
        assert_eq!((0..8).filter(|_| policy.step() == Step::Look).count(), 1);
        let first_look = |limit, is_measured| SpinPolicy::new(Some(limit), is_measured).first_look();
        assert_eq!((first_look(40, true), first_look(POLLS_ALONE, true)), (1, 8));
        assert_eq!(first_look(40, false), POLLS_PER_LOOK, "it costs nothing where nothing is measured");
        let mut at_once = SpinPolicy::new(Some(0), false);
        let mut look = || (at_once.step(), at_once.look());
        assert_eq!(look(), (Step::Yield, Looked { polls: 1, is_first: true }));
        assert_eq!(look(), (Step::Yield, Looked { polls: 1, is_first: false }));
    }

    #[test]
    fn who_learns_between_two_finds_that_processors_are_shared_looks_at_the_next_poll_in_vain() {
        for polls in 0..8 {
            let (cores, processes) = ([0; CORES_MOST / 64], 0);
            let alone =
                SpinPolicy { limit: POLLS_ALONE, cores, processes, fixed: false, ..SpinPolicy::new(None, true) };
            let mut policy = SpinPolicy { next_look: POLLS_BEFORE_LOOK_ALONE, ..alone };
            policy.share_cores_with(&[1]);
            assert!((0..polls).all(|_| policy.step() != Step::Look));
            policy.share_cores_with(&[1]);
            policy.reset();
            assert_eq!(policy.step(), Step::Look, "after {polls} polls before");
        }
    }

    #[test]
    fn the_first_empty_polls_after_a_find_linger() {
        let mut policy = SpinPolicy::new(Some(POLLS_ALONE), false);
        for _ in 0..2 {
            assert_eq!([(); 3].map(|()| policy.step()), [Step::Linger, Step::Linger, Step::Spin]);
            policy.reset();
        }
    }

    #[test]
    fn more_processes_than_cores_make_it_short() {
        let alone = |limit| SpinPolicy {
            run: Run::default(),
            next_look: POLLS_PER_LOOK,
            is_measured: false,
            beyond: 0,
            limit,
            fixed: false,
            cores: [0; CORES_MOST / 64],
            processes: 0,
        };
        let mut policy = alone(POLLS_ALONE);
        let limits: Vec<u32> = [0b01, 0b10, 0b10]
            .iter()
            .map(|core| {
                policy.share_cores_with(&[*core]);
                policy.limit
            })
            .collect();
        assert_eq!(limits, [POLLS_ALONE, POLLS_ALONE, POLLS_SHARED], "two have a core each, the third has none");
        policy.remove_process();
        assert_eq!(policy.limit, POLLS_ALONE);
        let mut chosen = SpinPolicy { fixed: true, ..alone(7) };
        (0..3).for_each(|_| chosen.share_cores_with(&[1]));
        assert_eq!(chosen.limit, 7, "the user's word counts");
        assert!(SpinPolicy::new(None, false).cores.iter().any(|word| *word != 0), "our own affinity is known");
    }
}
