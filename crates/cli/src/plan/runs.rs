//! Runs of a trace: with every seed, on all processors, kept where the user wants that.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tidegate_message::Counter;
use tidegate_sim::workload::Trace;
use tidegate_sim::{
    CODE, Estimate, FinishedRun, Measurement, Program, Run, RunKey, RunStore, Simulation, SimulationConfig,
    SimulationError, Task, Time,
};

use crate::progress::{Bar, Source};
use crate::store::ASK_AGAIN;

/// Where and how a trace is run.
pub struct Runs<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// What tells it from others.
    pub fingerprint: &'a str,
    /// With so many seeds, from 1 on.
    pub seeds: u32,
    /// Where runs are kept.
    pub store: &'a dyn RunStore,
    /// What shows how far it is.
    pub bar: &'a Bar,
    /// Processors that are free.
    pub permits: &'a Permits,
    /// Runs that are not kept are not done: they fail, and this becomes true.
    pub missing: Option<&'a AtomicBool>,
    /// The cost of all runs.
    pub tally: &'a Tally,
}

/// The number and the cost of runs.
#[derive(Debug, Default)]
pub struct Tally {
    simulations: AtomicU64,
    events: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Tally {
    fn add(&self, seconds: f64) {
        self.simulations.fetch_add(1, Relaxed);
        self.nanoseconds.fetch_add((seconds * 1e9) as u64, Relaxed);
    }

    /// Runs that have ended, those included that were kept from before.
    pub fn simulations(&self) -> u64 {
        self.simulations.load(Relaxed)
    }

    /// Events of the simulations that were done now.
    pub fn events(&self) -> u64 {
        self.events.load(Relaxed)
    }

    /// How long all these runs took, one after the other.
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Relaxed))
    }
}

/// How long the runs of a setting may last, compared with those with ample memory.
#[derive(Clone, Copy, Debug)]
pub struct Limit<'a> {
    /// The runs with ample memory.
    pub ample: &'a Outcomes,
    /// A run is ended once it takes longer than the one of `ample` with the same seed by this factor.
    pub times: f64,
}

impl Limit<'_> {
    /// For the run of a seed, which are counted from 0.
    fn of_seed(&self, seed: usize) -> Time {
        let ample = self.ample.0.get(seed).map_or(f64::INFINITY, |run| run.time);
        // One picosecond more: a run that takes exactly so long is not too slow.
        Time(((ample * 1e6 * self.times) as u64).saturating_add(1))
    }
}

/// So many runs may be under way at the same time.
#[derive(Debug)]
pub struct Permits {
    count: usize,
    free: Mutex<usize>,
    freed: Condvar,
}

impl Permits {
    /// For so many.
    pub fn new(count: usize) -> Self {
        Permits { count, free: Mutex::new(count), freed: Condvar::new() }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Does something while holding one.
    fn with<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        drop(free);
        let done = work();
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.freed.notify_one();
        done
    }
}

/// What came of one setting, with each seed.
#[derive(Clone, Debug)]
pub struct Outcomes(Vec<Measurement>);

impl Outcomes {
    /// The mean over the seeds of a counter of the job.
    pub fn counter(&self, counter: Counter) -> f64 {
        Estimate::new(self.0.iter().map(|run| run.counters.get(counter.name()).copied().unwrap_or(0) as f64)).mean()
    }

    /// The most of a counter with any seed.
    pub fn most(&self, counter: Counter) -> u64 {
        self.0.iter().filter_map(|run| run.counters.get(counter.name())).copied().max().unwrap_or(0)
    }

    /// The time until the last process had ended, in microseconds.
    pub fn time(&self) -> Estimate {
        Estimate::new(self.0.iter().map(|run| run.time))
    }

    /// By which share each run takes longer than the one of `ample` with the same seed; infinite for one that was
    /// ended because it took too long, or in which ranks wait for each other for ever.
    pub fn overhead(&self, ample: &Outcomes) -> Overhead {
        let has_ended = |run: &Measurement| run.cut_us.is_none() && run.hung_us.is_none();
        let share = |(run, ample): (&Measurement, &Measurement)| {
            if has_ended(run) { run.time / ample.time - 1.0 } else { f64::INFINITY }
        };
        let mut each: Vec<f64> = self.0.iter().zip(&ample.0).map(share).collect();
        each.sort_by(f64::total_cmp);
        Overhead(each)
    }

    /// Whether a run was ended because it took too long.
    pub fn was_cut(&self) -> bool {
        self.0.iter().any(|run| run.cut_us.is_some())
    }

    /// Whether in a run ranks wait for each other for ever.
    pub fn hangs(&self) -> bool {
        self.0.iter().any(|run| run.hung_us.is_some())
    }
}

/// By which share runs take longer than with ample memory, one for each seed, in order.
///
/// The median counts: a trace of a few hundred microseconds is interrupted once or not at all, and one that is, where
/// the same seed left the run with ample memory alone, would decide the mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Overhead(Vec<f64>);

impl Overhead {
    /// The median.
    pub fn median(&self) -> f64 {
        let middle = self.0.len() / 2;
        match (self.0.len() % 2, self.0.get(middle)) {
            (_, None) => 0.0,
            (1, Some(middle)) => *middle,
            (_, Some(above)) => (self.0[middle - 1] + above) / 2.0,
        }
    }

    /// The least and the most, where there are several seeds.
    pub fn range(&self) -> Option<(f64, f64)> {
        (self.0.len() > 1).then(|| (self.0[0], self.0[self.0.len() - 1]))
    }
}

/// The outcome of one run.
pub struct Replayed {
    /// Its numbers, which are kept.
    pub measurement: Measurement,
    /// Events of the simulation.
    pub events: u64,
}

/// Replays a trace once.
type ReplayOnce = fn(&Trace, &SimulationConfig) -> Result<Replayed, SimulationError>;

/// A trace as a program that notes when it ends.
struct Replay(Trace);

impl Program for Replay {
    fn start(&self, task: Task) -> Run {
        let trace = self.0.clone();
        Box::pin(async move {
            trace.replay(&task).await;
            task.record("time", 0, task.now().microseconds());
        })
    }
}

impl Runs<'_> {
    /// Runs the trace under a configuration with every seed.
    ///
    /// # Errors
    /// If a run fails.
    pub fn measure(&self, config: &SimulationConfig) -> Result<Outcomes, SimulationError> {
        self.with_all_seeds(config, None, replay)
    }

    /// The same with a setting that may be none for this trace: that ranks wait for each other for ever is no error.
    ///
    /// # Errors
    /// If a run fails in another way.
    pub fn try_out(&self, config: &SimulationConfig, limit: Option<Limit<'_>>) -> Result<Outcomes, SimulationError> {
        self.with_all_seeds(config, limit, |trace, config| match replay(trace, config) {
            Err(SimulationError::Deadlock(deadlock)) => {
                let time = deadlock.at.microseconds();
                let processes = config.size();
                let measurement = Measurement { time, processes, hung_us: Some(time), ..Measurement::default() };
                Ok(Replayed { measurement, events: 0 })
            }
            other => other,
        })
    }

    fn with_all_seeds(
        &self,
        config: &SimulationConfig,
        limit: Option<Limit<'_>>,
        replay: ReplayOnce,
    ) -> Result<Outcomes, SimulationError> {
        self.bar.expect(self.seeds as usize);
        let seeds: Vec<u64> = (1..=u64::from(self.seeds)).collect();
        let each: Vec<Result<Measurement, SimulationError>> = thread::scope(|scope| {
            let run = |seed: u64| {
                let time_most = limit.map_or(config.time_most, |limit| limit.of_seed(seed as usize - 1));
                self.one(&SimulationConfig { seed, time_most, ..config.clone() }, replay)
            };
            let under_way: Vec<_> = seeds.iter().map(|&seed| scope.spawn(move || run(seed))).collect();
            let joined = under_way
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            joined.collect()
        });
        each.into_iter().collect::<Result<Vec<_>, _>>().map(Outcomes)
    }

    fn one(&self, config: &SimulationConfig, replay: ReplayOnce) -> Result<Measurement, SimulationError> {
        let named = SimulationConfig { seed: 0, ..config.clone() };
        let key = RunKey {
            case: format!("plan {} {named:?}", self.fingerprint),
            seed: config.seed,
            noise_interval_ps: config.noise.interval.0,
            noise_duration_ps: config.noise.duration.0,
        };
        loop {
            if let Some(missing) = self.missing {
                let kept = self.store.load(&key).map(|run| run.measurement);
                missing.fetch_or(kept.is_none(), Relaxed);
                return kept.ok_or_else(|| SimulationError::Setup("a run is not there yet".to_owned()));
            }
            match self.permits.with(|| self.attempt(&key, config, replay)) {
                Some(measured) => return measured,
                None => thread::sleep(ASK_AGAIN),
            }
        }
    }

    /// Does a run that is not kept. `None`: another process is doing it.
    fn attempt(
        &self,
        key: &RunKey,
        config: &SimulationConfig,
        replay: ReplayOnce,
    ) -> Option<Result<Measurement, SimulationError>> {
        let kept = || {
            let run = self.store.load(key);
            let run = run.inspect(|run| self.tally.add(run.seconds));
            run.inspect(|_| self.bar.finish("", Source::Kept)).map(|run| Ok(run.measurement))
        };
        if let Some(kept) = kept() {
            return Some(kept);
        }
        let claim = self.store.claim(key)?;
        // Another process may have done it since we looked.
        if let Some(kept) = kept() {
            return Some(kept);
        }
        let begin = Instant::now();
        Some(replay(self.trace, config).map(|Replayed { measurement, events }| {
            let (code, seconds) = (CODE.to_owned(), begin.elapsed().as_secs_f64());
            self.tally.add(seconds);
            self.tally.events.fetch_add(events, Relaxed);
            claim.keep(&FinishedRun { code, key: key.clone(), seconds, measurement: measurement.clone() });
            self.bar.finish("", Source::Done);
            measurement
        }))
    }
}

/// Replays a trace once.
///
/// # Errors
/// If the run fails.
pub fn replay(trace: &Trace, config: &SimulationConfig) -> Result<Replayed, SimulationError> {
    let outcome = Simulation::new(config.clone(), &Replay(trace.clone()))?.run()?;
    let counters = Counter::ALL.iter().map(|&counter| (counter.name().to_owned(), outcome.counter(counter)));
    let ends = outcome.samples_of("time").map(|sample| sample.value);
    let measurement = Measurement {
        time: ends.fold(outcome.cut.map_or(0.0, Time::microseconds), f64::max),
        counters: counters.filter(|(_, value)| *value > 0).collect(),
        processes: outcome.processes.len() as u32,
        cut_us: outcome.cut.map(Time::microseconds),
        ..Measurement::default()
    };
    Ok(Replayed { measurement, events: outcome.events })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_of_three_that_is_interrupted_decides_nothing() {
        let of = |times: &[f64]| {
            Outcomes(times.iter().map(|&time| Measurement { time, ..Measurement::default() }).collect())
        };
        let overhead = of(&[101.0, 130.0, 100.5]).overhead(&of(&[100.0, 100.0, 100.0]));
        assert!((overhead.median() - 0.01).abs() < 1e-9, "{overhead:?}");
        assert_eq!(overhead.range().map(|(least, most)| (least > 0.0049, most > 0.29)), Some((true, true)));
        let two = of(&[100.0, 110.0]).overhead(&of(&[100.0, 100.0]));
        assert!((two.median() - 0.05).abs() < 1e-9, "{two:?}");
        assert_eq!(of(&[1.0]).overhead(&of(&[1.0])).range(), None);
    }
}
