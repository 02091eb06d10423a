//! [`Workshop`] runs cases for experiments: with every seed, in parallel, each at most once, and reports progress.
//!
//! Whoever wants several experiments calls [`Workshop::reports`]. It first lets every experiment say which cases it
//! wants, by running it on measurements that stand for none; so the runs of all figures are one list, of which no
//! processor waits for the end of a figure, and what is left is known from the beginning. The experiments then run
//! again, one after the other, and wait for their own runs only.

mod dividing;
mod ending;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use tidegate_cli::part::Part;
use tidegate_cli::progress::Source;
use tidegate_cli::store::ASK_AGAIN;
use tidegate_sim::{FinishedRun, Measurement, NoStore, Noise, RunKey, RunStore, SimulationError, Time};

use crate::experiment::Experiment;
use crate::forecast::{Forecast, Size};
use crate::progress::Progress;
use crate::report::{Report, RunReport};
use crate::run::CODE;
use crate::run::case::Case;
use crate::runs::Runs;
use ending::{Closing, Watch};

/// How large experiments are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The paper's number of processes, and the points that its statements need.
    Full,
    /// An eighth of the processes, fewer points: minutes on a laptop.
    Quick,
    /// The least with which the facts can be told: seconds. For tests.
    Smallest,
}

impl Scale {
    /// All of them.
    pub const ALL: [Scale; 3] = [Scale::Full, Scale::Quick, Scale::Smallest];

    /// As reports name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scale::Full => "full",
            Scale::Quick => "quick",
            Scale::Smallest => "smallest",
        }
    }

    /// The tables of a figure's runs that say what is different then, each laid over those before.
    pub(crate) fn changes(self) -> &'static [&'static str] {
        match self {
            Scale::Full => &[],
            Scale::Quick => &["quick"],
            Scale::Smallest => &["quick", "smallest"],
        }
    }
}

/// How long a run took. This depends on the machine, so it is no part of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct RunTime {
    /// The name of the run's key ([`RunKey::digits`]): figures share runs.
    pub run: String,
    /// How long it took, in seconds of the clock on the wall.
    pub seconds: f64,
}

/// The name, among those of runs, of a search that is no run.
pub const SEARCH: &str = "search";

/// A run to be done.
#[derive(Debug)]
struct Item {
    case: Case,
    key: RunKey,
    size: Size,
}

/// What threads share.
#[derive(Debug, Default)]
struct State {
    /// Runs that nobody has begun, in the order in which they are wanted.
    pending: VecDeque<Arc<Item>>,
    /// Runs that a thread is doing.
    active: Vec<Arc<Item>>,
    /// All that were ever pending.
    known: HashSet<RunKey>,
    done: HashMap<RunKey, Arc<Measurement>>,
    failed: Option<SimulationError>,
    forecast: Forecast,
    /// Threads wait for more runs when none is pending.
    is_open: bool,
    /// Runs of other parts, which are not pending yet, if they ever are.
    of_others: Vec<Arc<Item>>,
    /// The part whose runs alone become pending, while there is one.
    part: Option<Part>,
    /// A run that another process is doing is left to that process.
    leaves_claimed: bool,
    /// Experiments only list their cases now.
    is_planning: bool,
    planned: Vec<Case>,
    /// The cases that the current experiment used.
    used: Vec<Case>,
    /// The only seed that the current experiment is shown, if not all are.
    shown: Option<u64>,
    /// Runs that were done by other code, and its fingerprint.
    older: HashMap<RunKey, String>,
    /// How long each run took.
    seconds: HashMap<RunKey, f64>,
    /// Those of the last report.
    times: Vec<RunTime>,
}

/// Runs cases for experiments. The result does not depend on how many run at once: every run is alone in its
/// simulation, and results come back in the order of the cases.
pub struct Workshop<'a> {
    /// How large.
    pub scale: Scale,
    /// The first seed.
    pub seed: u64,
    /// Every case is run with so many seeds, which follow each other.
    pub seeds: u32,
    /// What interrupts the processes of every run.
    pub noise: Noise,
    jobs: usize,
    progress: &'a dyn Progress,
    store: &'a dyn RunStore,
    state: Mutex<State>,
    changed: Condvar,
}

impl std::fmt::Debug for Workshop<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Workshop { scale, seed, seeds, jobs, .. } = self;
        write!(f, "workshop ({}, {seeds} seeds from {seed}, {jobs} jobs)", scale.name())
    }
}

/// Why reports ended early: a run failed, or whoever takes the reports gave up.
#[derive(Debug)]
pub enum Stopped<E> {
    /// This experiment failed.
    Failed(&'static str, SimulationError),
    /// The taker's own error.
    Taker(E),
}

impl<'a> Workshop<'a> {
    /// The share of the time that interruptions take if nothing else is said, in percent.
    pub const NOISE_PERCENT: f64 = 2.5;

    /// A workshop that runs `jobs` cases at once; as many as the machine has processors if that is `None`. One seed, no
    /// noise, and nothing is kept.
    #[must_use]
    pub fn new(scale: Scale, seed: u64, jobs: Option<usize>, progress: &'a dyn Progress) -> Self {
        let jobs = jobs.or_else(|| thread::available_parallelism().ok().map(usize::from)).unwrap_or(1).max(1);
        Workshop {
            scale,
            seed,
            seeds: 1,
            noise: Noise::default(),
            jobs,
            progress,
            store: &NoStore,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The same with every case run with so many seeds: `seed`, `seed` + 1 and so on. Without noise a seed
    /// decides the rests only with which pairs begin amid a program.
    #[must_use]
    pub fn with_seeds(self, seeds: u32) -> Self {
        Workshop { seeds: seeds.max(1), ..self }
    }

    /// The same with some noise: after every ms of work, on average, an interruption that takes this share of it. The
    /// usual 2.5 % are 25 µs, as a general-purpose system with 1,000 ticks a second may have. That is an assumption: P
    /// says nothing of its machine's noise. Half and double of it show how much depends on it.
    #[must_use]
    pub fn with_noise(self, percent: f64) -> Self {
        if percent <= 0.0 {
            return Workshop { noise: Noise::default(), ..self };
        }
        let interval = Time::from_microseconds(1_000);
        let noise = Noise { interval, duration: Time((interval.0 as f64 * percent / 100.0).round() as u64) };
        Workshop { noise, ..self }
    }

    /// The share of the time that interruptions take, in percent.
    #[must_use]
    pub fn noise_percent(&self) -> f64 {
        match self.noise.duration {
            Time::ZERO => 0.0,
            duration => 100.0 * duration.0 as f64 / self.noise.interval.0 as f64,
        }
    }

    /// The same, with runs kept in `store`, and those that it holds not done again.
    #[must_use]
    pub fn with_store(self, store: &'a dyn RunStore) -> Self {
        Workshop { store, ..self }
    }

    /// Runs experiments, and gives each report away as soon as its runs have ended, in their order.
    ///
    /// # Errors
    /// If a run fails, or `take` does.
    pub fn reports<E>(
        &self,
        experiments: &[&'static Experiment],
        mut take: impl FnMut(Report) -> Result<(), E>,
    ) -> Result<(), Stopped<E>> {
        let cases = self.plan(experiments);
        self.enqueue(&cases);
        self.say_how_long();
        self.state().is_open = true;
        thread::scope(|scope| {
            for _ in 0..self.jobs {
                scope.spawn(|| self.work());
            }
            // However this ends, also by a panic: the threads end too.
            let _closed = Closing(self);
            for experiment in experiments {
                let report = experiment.run(self).map_err(|error| Stopped::Failed(experiment.id, error))?;
                take(report).map_err(Stopped::Taker)?;
            }
            Ok(())
        })
    }

    /// The cases that experiments want, as far as they can be told before any has run.
    pub(crate) fn plan(&self, experiments: &[&'static Experiment]) -> Vec<Case> {
        self.state().is_planning = true;
        for experiment in experiments {
            // Whatever an experiment makes of measurements that stand for none: only its cases matter.
            let _ = experiment.list_cases(self);
        }
        let mut state = self.state();
        state.is_planning = false;
        std::mem::take(&mut state.planned)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The seeds of all cases.
    pub(crate) fn seeds(&self) -> impl Iterator<Item = u64> + use<> {
        let first = self.seed;
        (0..u64::from(self.seeds)).map(move |nth| first.wrapping_add(nth))
    }

    /// Adds the runs of these cases that nobody has wanted before. Those that the store holds have ended with that.
    fn enqueue(&self, cases: &[Case]) {
        let mut items = Vec::new();
        {
            let mut state = self.state();
            for case in cases {
                let keys = self.seeds().map(|seed| case.run_key(seed, self.noise));
                for key in keys.filter(|key| !state.known.contains(key)).collect::<Vec<_>>() {
                    let number = state.known.len();
                    state.known.insert(key.clone());
                    let item = Arc::new(Item { case: case.clone(), key, size: Size::of(case) });
                    match state.part.as_ref().is_none_or(|part| part.has(number)) {
                        true => items.push(item),
                        false => state.of_others.push(item),
                    }
                }
            }
        }
        self.progress.expect(items.len());
        for item in items {
            match self.store.load(&item.key) {
                Some(run) => self.finish(&item, run, Source::Kept),
                None => self.state().pending.push_back(item),
            }
        }
        self.tell_remaining();
        self.changed.notify_all();
    }

    /// What an experiment finds with each seed alone, in the order of the seeds; nothing if there is one seed only.
    pub(crate) fn with_each_seed<T>(
        &self,
        findings: impl Fn(&Workshop<'_>) -> Result<T, SimulationError>,
    ) -> Result<Vec<T>, SimulationError> {
        let alone = |seed| {
            self.state().shown = Some(seed);
            let found = findings(self);
            self.state().shown = None;
            found
        };
        self.seeds().filter(|_| self.seeds > 1).map(alone).collect()
    }

    /// Runs all cases with all seeds, each at most once in the life of the workshop, and returns what came of them in
    /// their order: with all seeds, or with the one that is shown.
    pub(crate) fn run(&self, cases: &[Case]) -> Result<Vec<Runs>, SimulationError> {
        if self.state().is_planning {
            self.state().planned.extend_from_slice(cases);
            let nothing = || Runs(self.seeds().map(|_| Arc::new(Measurement::not_done())).collect());
            return Ok(cases.iter().map(|_| nothing()).collect());
        }
        self.enqueue(cases);
        if !self.state().is_open {
            thread::scope(|scope| (0..self.jobs).for_each(|_| drop(scope.spawn(|| self.work()))));
        }
        let mut state = self.state();
        let shown = state.shown;
        let seeds = || self.seeds().filter(move |seed| shown.is_none_or(|shown| shown == *seed));
        let keys_of = |case: &Case| seeds().map(|seed| case.run_key(seed, self.noise)).collect::<Vec<_>>();
        let keys: Vec<Vec<RunKey>> = cases.iter().map(keys_of).collect();
        loop {
            if let Some(error) = state.failed.take() {
                return Err(error);
            }
            if keys.iter().flatten().all(|key| state.done.contains_key(key)) {
                break;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        for case in cases {
            if !state.used.contains(case) {
                state.used.push(case.clone());
            }
        }
        Ok(keys.iter().map(|keys| Runs(keys.iter().map(|key| state.done[key].clone()).collect())).collect())
    }

    /// What the current experiment has used since this was last asked, and how many of these runs which other code did.
    /// Something that was no run took `searched`, if anything did.
    pub(crate) fn take_used(&self, searched: Option<RunTime>) -> (Vec<RunReport>, BTreeMap<String, usize>) {
        let mut state = self.state();
        let used = std::mem::take(&mut state.used);
        let (mut runs, mut older, mut times) = (Vec::new(), BTreeMap::new(), Vec::from_iter(searched));
        for case in used {
            for seed in self.seeds() {
                let key = case.run_key(seed, self.noise);
                if let Some(code) = state.older.get(&key) {
                    *older.entry(code.clone()).or_default() += 1;
                }
                if let Some(&seconds) = state.seconds.get(&key) {
                    times.push(RunTime { run: key.digits(), seconds });
                }
                if let Some(measurement) = state.done.get(&key) {
                    runs.push(RunReport::new(case.to_string(), seed, measurement));
                }
            }
        }
        state.times = times;
        (runs, older)
    }

    /// How long the runs of the last report took, whenever they were done.
    #[must_use]
    pub fn take_times(&self) -> Vec<RunTime> {
        std::mem::take(&mut self.state().times)
    }

    /// How many runs go on at once.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.jobs
    }

    /// What each thread does: one run after the other.
    fn work(&self) {
        let _watch = Watch(self);
        // How many runs in a row other processes were doing.
        let mut elsewhere = 0;
        while let Some(item) = self.next(elsewhere) {
            let Some(claim) = self.store.claim(&item.key) else {
                elsewhere += 1;
                let mut state = self.state();
                state.active.retain(|other| !Arc::ptr_eq(other, &item));
                if !state.leaves_claimed {
                    state.pending.push_back(item);
                }
                continue;
            };
            elsewhere = 0;
            // Another process may have done it since we looked.
            if let Some(run) = self.store.load(&item.key) {
                self.finish(&item, run, Source::Kept);
                self.tell_remaining();
                continue;
            }
            let begin = Instant::now();
            match item.case.measure(item.key.seed, self.noise) {
                Ok(measurement) => {
                    let seconds = begin.elapsed().as_secs_f64();
                    let run = FinishedRun { code: CODE.to_owned(), key: item.key.clone(), seconds, measurement };
                    claim.keep(&run);
                    self.finish(&item, run, Source::Done);
                    self.tell_remaining();
                }
                Err(error) => self.fail(error),
            }
        }
    }

    /// The next run; waits where all that are pending are at work in other processes, or where more may come. `None`:
    /// there are no more.
    fn next(&self, elsewhere: usize) -> Option<Arc<Item>> {
        let mut state = self.state();
        if elsewhere > 0 && elsewhere >= state.pending.len() && !state.leaves_claimed {
            state = self.changed.wait_timeout(state, ASK_AGAIN).unwrap_or_else(PoisonError::into_inner).0;
        }
        loop {
            if state.failed.is_some() {
                return None;
            }
            if let Some(item) = state.pending.pop_front() {
                state.active.push(item.clone());
                return Some(item);
            }
            if !state.is_open {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn finish(&self, item: &Arc<Item>, run: FinishedRun, source: Source) {
        {
            let mut state = self.state();
            state.active.retain(|other| !Arc::ptr_eq(other, item));
            state.forecast.learn(&item.size, run.seconds);
            state.seconds.insert(run.key.clone(), run.seconds);
            if run.code != CODE {
                state.older.insert(run.key.clone(), run.code);
            }
            state.done.insert(run.key, Arc::new(run.measurement));
        }
        self.changed.notify_all();
        self.progress.finish(&format!("{}, seed {}", item.case, item.key.seed), source);
    }

    /// Says how long it takes, before anything has begun.
    fn say_how_long(&self) {
        let state = self.state();
        let (runs, left) = (state.pending.len(), state.pending.iter().map(|item| &item.size));
        let time = Forecast::beforehand(left, self.jobs);
        drop(state);
        if runs > 0 {
            self.progress.begin(runs, self.jobs, time);
        }
    }

    /// Says how long it still takes.
    fn tell_remaining(&self) {
        let state = self.state();
        let left = state.pending.iter().chain(&state.active).map(|item| &item.size);
        let remaining = state.forecast.remaining(left, self.jobs);
        drop(state);
        self.progress.remaining(remaining);
    }

    fn fail(&self, error: SimulationError) {
        let mut state = self.state();
        state.pending.clear();
        state.failed.get_or_insert(error);
        drop(state);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    /// Listing lets experiments run on measurements that stand for none, which must not make them panic.
    #[test]
    fn every_experiment_says_its_cases_before_it_runs() {
        for scale in Scale::ALL {
            let workshop = Workshop::new(scale, 1, Some(1), &Silent).with_seeds(2);
            for experiment in Experiment::all() {
                let cases = workshop.plan(&[experiment]);
                assert_eq!(cases.is_empty(), !experiment.is_simulated(), "{} at {}", experiment.id, scale.name());
                assert!(cases.iter().all(|case| case.size() > 0.0));
            }
        }
    }
}
