//! [`Sharing`]: the runs of a sweep, kept in a folder and divided among the processes that share it.
//!
//! The run of number n belongs to part n modulo the number of parts: neighbours in a sweep take about as long, so that
//! parts are about alike. Each part does its own runs, and waits for one of them that another process is doing. Where
//! all parts run at the same time, those that have done their own help the others from the end of the list on, where
//! their owners come last; the first part waits for all runs, and does those that a process leaves behind that dies.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Instant;

use tidegate_sim::{CODE, FinishedRun, RunKey, RunStore};

use crate::failure::Failure;
use crate::parallel::parallel;
use crate::part::{GivenPart, Part};
use crate::progress::{Bar, Source};
use crate::store::{ASK_AGAIN, Folder, Kept, Reuse};

/// Why not all runs are there.
#[derive(Debug)]
pub enum Unfinished<E> {
    /// The run of this number failed.
    Failed(usize, E),
    /// Other parts have not done theirs. This says what this part did, and what the user can do.
    Missing(String),
}

/// A folder where runs are kept, and the part of them that this process does.
#[derive(Debug)]
pub struct Sharing {
    /// Where runs are kept.
    pub folder: Folder,
    /// Which of them are this process's.
    pub part: Part,
    place: PathBuf,
}

impl Sharing {
    /// Opens the folder `out`, and finds out which part this process does. `None`: nothing is kept.
    ///
    /// # Errors
    /// If the folder cannot be used, or it is not clear which part is meant.
    pub fn open(out: Option<&Path>, given: Option<GivenPart>) -> Result<Option<Self>, Failure> {
        let part = Part::find(given, out.is_some())?;
        let Some(out) = out else { return Ok(None) };
        let failed = |error: std::io::Error| Failure::write(out, &error);
        let folder = Folder::open(out, Reuse::OwnCode, CODE).map_err(failed)?;
        if part.is_first() {
            folder.say_others();
        }
        Ok(Some(Sharing { folder, part, place: Folder::of(out) }))
    }

    /// How many runs go on at the same time: as many as the user said, else as there are processors for this part.
    #[must_use]
    pub fn jobs(sharing: Option<&Self>, given: Option<u64>) -> usize {
        sharing.map_or_else(|| Part::whole().jobs(given), |sharing| sharing.part.jobs(given))
    }

    /// The results of all runs; those that are missing are done, `jobs` at a time.
    ///
    /// # Errors
    /// If a run fails, or this part is not to wait for the others.
    pub fn each<T: Sync, M: Kept + Send, E: Send>(
        &self,
        jobs: usize,
        bar: &Bar,
        runs: &[T],
        key: impl Fn(&T) -> RunKey + Sync,
        run: impl Fn(&T) -> Result<M, E> + Sync,
    ) -> Result<Vec<M>, Unfinished<E>> {
        let mut found: Vec<Option<Result<M, E>>> = runs.iter().map(|_| None).collect();
        let mut attempt = |numbers: Vec<usize>, waits: bool| {
            bar.expect(numbers.len());
            let mut pending = numbers;
            while !pending.is_empty() {
                let attempts =
                    parallel(jobs, &pending, |&number| self.one(bar, key(&runs[number]), || run(&runs[number])));
                let mut elsewhere = Vec::new();
                for (&number, attempt) in pending.iter().zip(attempts) {
                    match attempt {
                        None => elsewhere.push(number),
                        some => found[number] = some,
                    }
                }
                if !waits {
                    bar.forget(elsewhere.len());
                    break;
                }
                if elsewhere.len() == pending.len() {
                    sleep(ASK_AGAIN);
                }
                pending = elsewhere;
            }
        };
        let (own, others): (Vec<usize>, Vec<usize>) = (0..runs.len()).partition(|&number| self.part.has(number));
        attempt(own, true);
        let from_the_end: Vec<usize> = others.iter().rev().copied().collect();
        if self.part.waits_for_all() {
            attempt(from_the_end, true);
        } else if self.part.helps() {
            // Without locks a process cannot know which runs the others are doing.
            if self.folder.has_locks() {
                attempt(from_the_end, false);
            }
            // A run that failed fails again in the first part, which says so as one process alone would.
            return Err(Unfinished::Missing(self.ended(bar, "part 1 prints what came out")));
        }
        if let Some(number) = found.iter().position(|run| matches!(run, Some(Err(_)))) {
            let error = found.swap_remove(number).and_then(Result::err);
            return Err(Unfinished::Failed(number, error.expect("it was looked for")));
        }
        let kept = |(number, found): (usize, Option<Result<M, E>>)| {
            let kept = || self.folder.load(&key(&runs[number])).map(|run: FinishedRun<M>| run.measurement);
            found.and_then(Result::ok).or_else(kept)
        };
        let all: Vec<M> = found.into_iter().enumerate().filter_map(kept).collect();
        match runs.len() - all.len() {
            0 => Ok(all),
            missing => {
                let left = format!("{missing} of {} runs are missing: when all parts have ended, ", runs.len());
                Err(Unfinished::Missing(self.ended(bar, &(left + &self.part.remedy()))))
            }
        }
    }

    /// A line that says how many runs this part did, and what the user can do `next`.
    #[must_use]
    pub fn ended(&self, bar: &Bar, next: &str) -> String {
        let (done, kept) = bar.counts();
        let (part, place) = (self.part.in_words(), self.place.display());
        format!("{part}: {done} runs were done, {kept} had been kept in {place}; {next}")
    }

    /// A line that says how many runs this process did, once all are there.
    #[must_use]
    pub fn found_all(&self, bar: &Bar) -> String {
        let (done, kept) = bar.counts();
        format!("{done} runs were done, {kept} had been kept in {}", self.place.display())
    }

    /// One run. `None`: another process is doing it.
    fn one<M: Kept, E>(&self, bar: &Bar, key: RunKey, run: impl FnOnce() -> Result<M, E>) -> Option<Result<M, E>> {
        let kept = || {
            let run: Option<FinishedRun<M>> = self.folder.load(&key);
            run.inspect(|_| bar.finish("", Source::Kept)).map(|run| Ok(run.measurement))
        };
        if let Some(kept) = kept() {
            return Some(kept);
        }
        let claim = self.folder.claim(&key)?;
        // Another process may have done it since we looked.
        if let Some(kept) = kept() {
            return Some(kept);
        }
        let begin = Instant::now();
        let measured = run();
        bar.finish("", Source::Done);
        Some(measured.map(|measurement| {
            let (code, seconds) = (CODE.to_owned(), begin.elapsed().as_secs_f64());
            let finished = FinishedRun { code, key, seconds, measurement };
            claim.keep(&finished);
            finished.measurement
        }))
    }
}
