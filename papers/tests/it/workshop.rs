//! Experiments with several seeds, and runs that are kept for the next time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_cli::progress::Source;
use tidegate_papers::{Experiment, Progress, Report, Scale, Silent, Workshop};
use tidegate_sim::{FinishedRun, NoStore, RunClaim, RunKey, RunStore};

/// An experiment with one case.
const ONE_CASE: &str = "P-fig19";

fn keep(reports: &mut Vec<Report>, report: Report) -> Result<(), ()> {
    reports.push(report);
    Ok(())
}

fn report_of(workshop: &Workshop<'_>, id: &str) -> Report {
    let mut reports = Vec::new();
    let experiment = Experiment::find(id).unwrap();
    workshop.reports(&[experiment], |report| keep(&mut reports, report)).unwrap();
    reports.pop().unwrap()
}

#[derive(Default)]
struct Count {
    expected: AtomicUsize,
    done: AtomicUsize,
    kept: AtomicUsize,
}

impl Progress for Count {
    fn expect(&self, runs: usize) {
        self.expected.fetch_add(runs, Relaxed);
    }

    fn finish(&self, _run: &str, source: Source) {
        let counter = if source == Source::Kept { &self.kept } else { &self.done };
        counter.fetch_add(1, Relaxed);
    }

    fn remaining(&self, _time: Option<Duration>) {}
}

impl Count {
    fn take(&self) -> [usize; 3] {
        [&self.expected, &self.done, &self.kept].map(|counter| counter.swap(0, Relaxed))
    }
}

/// Keeps runs in memory.
#[derive(Default)]
struct Memory(Arc<Mutex<HashMap<RunKey, FinishedRun>>>);

impl RunStore for Memory {
    fn load(&self, key: &RunKey) -> Option<FinishedRun> {
        self.0.lock().unwrap().get(key).cloned()
    }

    fn claim(&self, _key: &RunKey) -> Option<Box<dyn RunClaim>> {
        Some(Box::new(Memory(self.0.clone())))
    }
}

impl RunClaim for Memory {
    fn keep(self: Box<Self>, run: &FinishedRun) {
        self.0.lock().unwrap().insert(run.key.clone(), run.clone());
    }
}

#[test]
fn numbers_are_means_over_seeds_and_each_seed_is_the_run_of_that_seed() {
    let noisy = |seed: u64, jobs: usize| {
        Workshop::new(Scale::Smallest, seed, Some(jobs), &Silent).with_noise(Workshop::NOISE_PERCENT)
    };
    let both = report_of(&noisy(5, 2).with_seeds(2), ONE_CASE);
    let each = [5, 6].map(|seed| report_of(&noisy(seed, 1), ONE_CASE));
    assert_eq!((both.seeds, both.runs.len()), (2, 2));
    for (nth, fact) in both.facts.iter().enumerate() {
        let alone = [0, 1].map(|seed| each[seed].facts[nth].verdict);
        assert_eq!(fact.by_seed, alone, "{}", fact.statement);
        assert!(
            each[0].facts[nth].by_seed.is_empty() && fact.is_unsure() == alone.iter().any(|it| *it != fact.verdict)
        );
    }
    let mut differ = 0;
    for (index, series) in both.figures[0].series.iter().enumerate() {
        for (at, point) in series.points.iter().enumerate() {
            let alone = [0, 1].map(|seed| each[seed].figures[0].series[index].points[at].y);
            assert_eq!((point.each.as_slice(), point.y), (alone.as_slice(), (alone[0] + alone[1]) / 2.0));
            differ += usize::from(alone[0] != alone[1]);
        }
    }
    assert!(differ > 0, "noise differs from seed to seed");
    assert_eq!(report_of(&noisy(5, 1).with_seeds(2), ONE_CASE), both, "the same seeds give the same report");
    for (run, alone) in both.runs.iter().zip(&each) {
        assert_eq!(*run, alone.runs[0]);
        for counter in ["credit_packets", "packets_sent", "delay_ns"] {
            assert!(run.measurement.counters.get(counter).is_some_and(|value| *value > 0), "{counter} was not counted");
        }
    }
}

#[test]
fn what_is_kept_is_not_run_again() {
    let (store, count) = (Memory::default(), Count::default());
    let workshop = |seeds, noise| {
        let workshop = Workshop::new(Scale::Smallest, 1, Some(2), &count).with_store(&store);
        workshop.with_seeds(seeds).with_noise(noise)
    };
    let first = report_of(&workshop(2, 2.5), ONE_CASE);
    assert_eq!(count.take(), [2, 2, 0]);
    assert_eq!(report_of(&workshop(2, 2.5), ONE_CASE), first);
    assert_eq!(count.take(), [2, 0, 2]);
    report_of(&workshop(3, 2.5), ONE_CASE);
    assert_eq!(count.take(), [3, 1, 2], "one more seed is one more run");
    report_of(&workshop(1, 5.0), ONE_CASE);
    assert_eq!(count.take(), [1, 1, 0], "other noise is another run");
}

#[test]
fn figures_share_their_runs() {
    let count = Count::default();
    let workshop = Workshop::new(Scale::Smallest, 1, Some(2), &count);
    let both = ["P-fig20-23", "P-fig27"].map(|id| Experiment::find(id).unwrap());
    let mut reports = Vec::new();
    workshop.reports(&both, |report| keep(&mut reports, report)).unwrap();
    let [expected, done, _] = count.take();
    assert_eq!(expected, done, "all runs were known at the beginning, and each was done once");
    assert_eq!(reports[0].runs, reports[1].runs);
    assert_eq!(reports[0].runs.len(), expected);
}

#[test]
fn who_gives_up_ends_the_runs() {
    let workshop = Workshop::new(Scale::Smallest, 1, Some(2), &Silent);
    let all = [ONE_CASE, "P-fig24-26"].map(|id| Experiment::find(id).unwrap());
    let stopped = workshop.reports(&all, |_| Err("enough")).unwrap_err();
    assert!(matches!(stopped, tidegate_papers::Stopped::Taker("enough")));
}

/// In the second, points with different numbers of slots have one reference in common, without flow control.
#[test]
fn a_report_is_judged_anew_from_its_own_runs() {
    for id in [ONE_CASE, "P-fig16"] {
        let experiment = Experiment::find(id).unwrap();
        let workshop = Workshop::new(Scale::Smallest, 1, Some(2), &Silent).with_seeds(2).with_noise(5.0);
        let report = report_of(&workshop, id);
        let mut changed = Report { code: "of before".to_owned(), ..report.clone() };
        changed.facts.clear();
        changed.figures.clear();
        let judged = experiment.judge(&changed, &NoStore).unwrap();
        assert_eq!(judged, Report { code: "of before".to_owned(), ..report });
        changed.runs.pop();
        let error = experiment.judge(&changed, &NoStore).unwrap_err().to_string();
        assert!(error.contains("seed 2, is not kept"), "{error}");
    }
}

/// Each says all its fields, so a report that is judged again knows which run is whose.
#[test]
fn no_two_cases_of_a_figure_say_the_same_of_themselves() {
    for id in ["B-fig10-11", "P-fig9"] {
        let report = report_of(&Workshop::new(Scale::Smallest, 1, Some(2), &Silent), id);
        let mut names: Vec<&str> = report.runs.iter().map(|run| run.case.as_str()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert!(all > 10 && names.len() == all, "{id}: {} names of {all} cases", names.len());
    }
}
