//! [`Workshop`] runs cases for experiments: with every seed, in parallel, each at most once, and reports progress.
//!
//! [`Workshop::reports`] first asks every experiment which cases it wants; so the runs of all figures are one list, and
//! no processor waits for the end of a figure. The experiments then run, one after the other, and wait for their own
//! runs only.

mod dividing;
mod ending;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tidegate_cli::failure::Failure;
use tidegate_cli::part::Part;
use tidegate_cli::progress::{Bar, Source, duration};
use tidegate_cli::store::ASK_AGAIN;
use tidegate_link::log::print_line;
use tidegate_sim::{Estimate, FinishedRun, Measurement, NoStore, Noise, RunKey, RunStore, SimulationError, Time};

use crate::data::BadFigure;
use crate::experiment::Experiment;
use crate::report::Report;
use crate::run::{CODE, Case};
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
    pub fn name(self) -> &'static str {
        ["full", "quick", "smallest"][self as usize]
    }

    /// The tables of a figure's runs that say what is different then, each laid over those before.
    pub(crate) fn changes(self) -> &'static [&'static str] {
        &["quick", "smallest"][..self as usize]
    }
}

/// A run to be done.
struct Item {
    case: Case,
    key: RunKey,
    /// In seconds.
    expected: f64,
}

#[derive(Default)]
struct State {
    /// Runs that nobody has begun, in the order in which they are wanted.
    pending: VecDeque<Item>,
    /// All that were ever pending.
    known: HashSet<RunKey>,
    done: HashMap<RunKey, Arc<Measurement>>,
    failed: Option<SimulationError>,
    /// What the runs that ended took, and what had been expected of them, in seconds.
    took: f64,
    expected: f64,
    /// Threads wait for more runs when none is pending.
    is_open: bool,
    /// Runs of other parts, which are not pending yet, if they ever are.
    of_others: Vec<Item>,
    /// The part whose runs alone become pending, while there is one.
    part: Option<Part>,
    /// A run that another process is doing is left to that process.
    leaves_claimed: bool,
    /// The runs that the current experiment used.
    used: HashSet<RunKey>,
    /// The only seed that the current experiment is shown, if not all are.
    shown: Option<u64>,
    /// Runs that were done by other code, and its fingerprint.
    older: HashMap<RunKey, String>,
}

impl State {
    /// How long the pending runs take, `jobs` at once: as is expected, but for how far those that have ended were off.
    fn remaining(&self, jobs: usize) -> Duration {
        let pace = if self.expected > 0.0 { self.took / self.expected } else { 1.0 };
        let left = self.pending.iter().map(|item| item.expected);
        let (total, longest) = left.fold((0.0, 0.0_f64), |(sum, most), each| (sum + each, most.max(each)));
        Duration::try_from_secs_f64(pace * (total / jobs as f64).max(longest)).unwrap_or_default()
    }
}

/// Runs cases for experiments. The result does not depend on how many run at once.
pub struct Workshop<'a> {
    /// How large.
    pub scale: Scale,
    /// The first seed.
    pub seed: u64,
    /// Every case is run with so many seeds, which follow each other.
    pub seeds: u32,
    /// The share of the time that interruptions take, in percent.
    pub noise_percent: f64,
    jobs: usize,
    progress: &'a Bar,
    store: &'a dyn RunStore,
    state: Mutex<State>,
    changed: Condvar,
}

/// One case with every seed, in the order of the seeds.
#[derive(Clone, Debug)]
pub(crate) struct Runs(pub Vec<Arc<Measurement>>);

impl Runs {
    /// One run that stands for none, where a point is computed.
    pub fn none() -> Self {
        Runs(vec![Arc::new(Measurement::not_done())])
    }

    /// A value of each run.
    pub fn estimate(&self, value: impl Fn(&Measurement) -> f64) -> Estimate {
        Estimate::new(self.0.iter().map(|run| value(run)))
    }
}

impl<'a> Workshop<'a> {
    /// The share of the time that interruptions take if nothing else is said, in percent.
    pub const NOISE_PERCENT: f64 = 2.5;

    /// One that runs `jobs` cases at once, or as many as there are processors. One seed, no noise, and nothing is kept.
    pub fn new(scale: Scale, seed: u64, jobs: Option<usize>, progress: &'a Bar) -> Self {
        let jobs = jobs.or_else(|| thread::available_parallelism().ok().map(usize::from)).unwrap_or(1).max(1);
        Workshop {
            scale,
            seed,
            seeds: 1,
            noise_percent: 0.0,
            jobs,
            progress,
            store: &NoStore,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The same with every case run with so many seeds: `seed`, `seed` + 1 and so on.
    pub fn with_seeds(self, seeds: u32) -> Self {
        Workshop { seeds: seeds.max(1), ..self }
    }

    /// The same with some noise: after every ms of work, on average, an interruption that takes this share of it. The
    /// usual 2.5 % are an assumption: 25 µs, as a general-purpose system with 1,000 ticks a second may have.
    pub fn with_noise(self, percent: f64) -> Self {
        Workshop { noise_percent: percent.max(0.0), ..self }
    }

    /// What interrupts the processes of every run.
    fn noise(&self) -> Noise {
        let interval = Time::from_microseconds(1_000);
        let duration = Time((interval.0 as f64 * self.noise_percent / 100.0).round() as u64);
        if duration == Time::ZERO { Noise::default() } else { Noise { interval, duration } }
    }

    /// The same, with runs kept in `store`, and those that it holds not done again.
    pub fn with_store(self, store: &'a dyn RunStore) -> Self {
        Workshop { store, ..self }
    }

    /// Runs experiments, and gives each report away as soon as its runs have ended, in their order.
    pub fn reports(
        &self,
        experiments: &[&'static Experiment],
        mut take: impl FnMut(&'static Experiment, Report) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.enqueue(&self.plan(experiments).map_err(|error| Failure::usage(error.to_string()))?);
        self.say_how_long();
        self.state().is_open = true;
        thread::scope(|scope| {
            for _ in 0..self.jobs {
                scope.spawn(|| self.work());
            }
            // However this ends, also by a panic: the threads end too.
            let _closed = Closing(self);
            for experiment in experiments {
                let failed = |error| Failure::own(format!("{} failed: {error}", experiment.id));
                take(experiment, experiment.run(self).map_err(failed)?)?;
            }
            Ok(())
        })
    }

    /// The cases that experiments want.
    fn plan(&self, experiments: &[&'static Experiment]) -> Result<Vec<Case>, BadFigure> {
        let cases = experiments.iter().map(|experiment| experiment.figure.cases(self.scale));
        Ok(cases.collect::<Result<Vec<_>, _>>()?.concat())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn seeds(&self) -> impl Iterator<Item = u64> + use<> {
        let first = self.seed;
        (0..u64::from(self.seeds)).map(move |nth| first.wrapping_add(nth))
    }

    /// Adds the runs of these cases that nobody has wanted before. Those that the store holds have ended with that.
    fn enqueue(&self, cases: &[Case]) {
        let mut items = Vec::new();
        let mut state = self.state();
        for (case, seed) in cases.iter().flat_map(|case| self.seeds().map(move |seed| (case, seed))) {
            let (key, number) = (case.run_key(seed, self.noise()), state.known.len());
            if state.known.insert(key.clone()) {
                let item = Item { case: case.clone(), key, expected: case.seconds() };
                let is_own = state.part.as_ref().is_none_or(|part| part.has(number));
                if is_own { &mut items } else { &mut state.of_others }.push(item);
            }
        }
        drop(state);
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

    /// Shows experiments one seed only, or all of them.
    pub(crate) fn show(&self, seed: Option<u64>) {
        self.state().shown = seed;
    }

    /// Runs all cases with all seeds, each at most once, and returns what came of them in their order.
    pub(crate) fn run(&self, cases: &[Case]) -> Result<Vec<Runs>, SimulationError> {
        self.enqueue(cases);
        if !self.state().is_open {
            thread::scope(|scope| (0..self.jobs).for_each(|_| drop(scope.spawn(|| self.work()))));
        }
        let mut state = self.state();
        let shown = state.shown;
        let seeds = || self.seeds().filter(move |seed| shown.is_none_or(|shown| shown == *seed));
        let keys_of = |case: &Case| seeds().map(|seed| case.run_key(seed, self.noise())).collect::<Vec<_>>();
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
        state.used.extend(keys.iter().flatten().cloned());
        Ok(keys.iter().map(|keys| Runs(keys.iter().map(|key| state.done[key].clone()).collect())).collect())
    }

    /// How many of the runs that the current experiment has used since this was last asked other code did.
    pub(crate) fn take_older(&self) -> BTreeMap<String, usize> {
        let mut state = self.state();
        let mut older = BTreeMap::<String, usize>::new();
        for code in std::mem::take(&mut state.used).iter().filter_map(|key| state.older.get(key)) {
            *older.entry(code.clone()).or_default() += 1;
        }
        older
    }

    fn work(&self) {
        let _watch = Watch(self);
        // How many runs in a row other processes were doing.
        let mut elsewhere = 0;
        while let Some(item) = self.next(elsewhere) {
            let Some(claim) = self.store.claim(&item.key) else {
                elsewhere += 1;
                let mut state = self.state();
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
            match item.case.measure(item.key.seed, self.noise()) {
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

    /// The next run, if there is one; waits where other processes do all that are pending, or where more may come.
    fn next(&self, elsewhere: usize) -> Option<Item> {
        let mut state = self.state();
        if elsewhere > 0 && elsewhere >= state.pending.len() && !state.leaves_claimed {
            state = self.changed.wait_timeout(state, ASK_AGAIN).unwrap_or_else(PoisonError::into_inner).0;
        }
        loop {
            if state.failed.is_some() {
                return None;
            }
            let next = state.pending.pop_front();
            if next.is_some() || !state.is_open {
                return next;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn finish(&self, item: &Item, run: FinishedRun, source: Source) {
        let mut state = self.state();
        state.took += run.seconds;
        state.expected += item.expected;
        if run.code != CODE {
            state.older.insert(run.key.clone(), run.code);
        }
        state.done.insert(run.key, Arc::new(run.measurement));
        drop(state);
        self.changed.notify_all();
        self.progress.finish(&format!("{}, seed {}", item.case.text, item.key.seed), source);
    }

    /// Says how long it takes, before anything has begun.
    fn say_how_long(&self) {
        let state = self.state();
        let (count, time) = (state.pending.len(), state.remaining(self.jobs));
        drop(state);
        if count > 0 {
            let runs = if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
            let (jobs, time) = (self.jobs, duration(time.max(Duration::from_secs(1))));
            self.progress.suspend(|| print_line(&format!("{runs} to do, {jobs} at the same time: about {time}")));
        }
    }

    /// Says how long it still takes, but for the runs that have begun.
    fn tell_remaining(&self) {
        let remaining = self.state().remaining(self.jobs);
        self.progress.remaining(Some(remaining));
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

    #[test]
    fn every_experiment_is_right_and_says_its_cases_before_it_runs() {
        for experiment in Experiment::all() {
            experiment.figure.check().unwrap();
            for scale in Scale::ALL {
                let cases = experiment.figure.cases(scale).unwrap();
                assert_eq!(cases.is_empty(), !experiment.is_simulated(), "{} at {}", experiment.id, scale.name());
                assert!(cases.iter().all(|case| case.seconds() > 0.0));
            }
        }
    }

    #[test]
    fn runs_that_have_ended_are_the_measure_of_those_that_are_left() {
        let simulated = Experiment::all().iter().find(|one| one.is_simulated()).unwrap();
        let case = simulated.figure.cases(Scale::Smallest).unwrap().remove(0);
        let item =
            |expected: &f64| Item { case: case.clone(), key: case.run_key(1, Noise::default()), expected: *expected };
        let remaining = |took: f64, left: &[f64], jobs| {
            let pending = left.iter().map(item).collect();
            State { pending, took, expected: 20.0, ..State::default() }.remaining(jobs).as_secs()
        };
        assert_eq!([remaining(20.0, &[10.0, 5.0], 1), remaining(60.0, &[10.0, 5.0], 1)], [15, 45]);
        // Two at once; but no sooner than the longest.
        assert_eq!(
            [remaining(60.0, &[10.0; 3], 2), remaining(60.0, &[10.0, 2.0], 2), remaining(60.0, &[], 2)],
            [45, 30, 0]
        );
    }
}
