//! [`Workshop`] runs cases for experiments: in parallel, each at most once, and reports progress.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::case::{Case, Measurement};
use crate::{Noise, SimulationError, Time};

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
    /// As reports name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scale::Full => "full",
            Scale::Quick => "quick",
            Scale::Smallest => "smallest",
        }
    }

    /// One of three, by scale.
    pub(super) fn pick<T>(self, full: T, quick: T, smallest: T) -> T {
        match self {
            Scale::Full => full,
            Scale::Quick => quick,
            Scale::Smallest => smallest,
        }
    }
}

/// Told how runs get on, from any thread.
pub trait Progress: Sync {
    /// `runs` more runs will follow, in addition to those expected before.
    fn expect(&self, runs: usize);
    /// One of these runs has ended.
    fn finish(&self, run: &str);
}

/// Reports no progress.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Progress for Silent {
    fn expect(&self, _runs: usize) {}
    fn finish(&self, _run: &str) {}
}

/// Runs cases for experiments. The result does not depend on how many run at once: every run is alone in its
/// simulation, and results come back in the order of the cases.
pub struct Workshop<'a> {
    /// How large.
    pub scale: Scale,
    /// The seed of every run.
    pub seed: u64,
    /// What interrupts the processes of every run.
    pub noise: Noise,
    jobs: usize,
    progress: &'a dyn Progress,
    /// Runs that ended, by case: figures share many.
    done: Mutex<HashMap<String, Arc<Measurement>>>,
}

impl std::fmt::Debug for Workshop<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "workshop ({}, seed {}, {} jobs)", self.scale.name(), self.seed, self.jobs)
    }
}

impl<'a> Workshop<'a> {
    /// A workshop that runs `jobs` cases at once; as many as the machine has processors if that is `None`.
    #[must_use]
    pub fn new(scale: Scale, seed: u64, jobs: Option<usize>, progress: &'a dyn Progress) -> Self {
        let jobs = jobs.or_else(|| thread::available_parallelism().ok().map(usize::from)).unwrap_or(1).max(1);
        Workshop { scale, seed, noise: Noise::default(), jobs, progress, done: Mutex::default() }
    }

    /// The same with some noise: 25 µs after every ms of work, on average, as a general-purpose system has. That is an
    /// assumption: P says nothing of its machine's noise.
    #[must_use]
    pub fn with_noise(self) -> Self {
        let noise = Noise { interval: Time::from_microseconds(1_000), duration: Time::from_microseconds(25) };
        Workshop { noise, ..self }
    }

    /// Runs all cases, each at most once in the life of the workshop, and returns what came of them in their order.
    pub(super) fn run(&self, cases: &[Case]) -> Result<Vec<Arc<Measurement>>, SimulationError> {
        let mut missing: Vec<(String, &Case)> = Vec::new();
        {
            let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            for case in cases {
                let key = case.key();
                if !done.contains_key(&key) && missing.iter().all(|(known, _)| *known != key) {
                    missing.push((key, case));
                }
            }
        }
        self.progress.expect(missing.len());
        let measured = parallel(self.jobs, &missing, |(_, case)| {
            let measurement = case.measure(self.seed, self.noise);
            self.progress.finish(&case.to_string());
            measurement
        });
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        for ((key, _), measurement) in missing.into_iter().zip(measured) {
            done.insert(key, Arc::new(measurement?));
        }
        Ok(cases.iter().map(|case| done[&case.key()].clone()).collect())
    }
}

/// Applies `work` to all items, `jobs` at once, and returns the results in the order of the items.
pub fn parallel<T: Sync, R: Send>(jobs: usize, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(items.len()));
    thread::scope(|scope| {
        for _ in 0..jobs.min(items.len()) {
            scope.spawn(|| {
                while let Some((index, item)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    items.get(index).map(|item| (index, item))
                } {
                    let result = work(item);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items_however_many_run_at_once() {
        let items: Vec<u64> = (0..100).collect();
        let squares: Vec<u64> = items.iter().map(|item| item * item).collect();
        for jobs in [1, 3, 200] {
            assert_eq!(parallel(jobs, &items, |item| item * item), squares);
        }
    }
}
