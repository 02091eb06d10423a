//! Experiments with several seeds, and runs that are kept for the next time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tidegate_cli::failure::Failure;
use tidegate_cli::progress::Bar;
use tidegate_papers::{Experiment, Report, Scale, Workshop};
use tidegate_sim::{FinishedRun, RunClaim, RunKey, RunStore};

/// An experiment with one case.
const ONE_CASE: &str = "P-fig19";

fn report_of(workshop: &Workshop<'_>, id: &str) -> Report {
    let mut found = None;
    let experiment = Experiment::find(id).unwrap();
    let take = |_, report| {
        found = Some(report);
        Ok(())
    };
    workshop.reports(&[experiment], take).unwrap();
    found.unwrap()
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
    let bar = Bar::new("paper");
    let noisy = |seed: u64, jobs: usize| {
        Workshop::new(Scale::Smallest, seed, Some(jobs), &bar).with_noise(Workshop::NOISE_PERCENT)
    };
    let both = report_of(&noisy(5, 2).with_seeds(2), ONE_CASE);
    let each = [5, 6].map(|seed| report_of(&noisy(seed, 1), ONE_CASE));
    assert_eq!((both.seeds, both.noise_percent), (2, 2.5));
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
}

/// How many runs were done, and how many had been kept.
fn counts(store: &Memory, seeds: u32, noise: f64) -> ((usize, usize), Report) {
    let bar = Bar::new("paper");
    let workshop = Workshop::new(Scale::Smallest, 1, Some(2), &bar).with_store(store);
    let report = report_of(&workshop.with_seeds(seeds).with_noise(noise), ONE_CASE);
    (bar.counts(), report)
}

#[test]
fn what_is_kept_is_not_run_again_and_judged_anew() {
    let store = Memory::default();
    let (done, first) = counts(&store, 2, 2.5);
    assert_eq!(done, (2, 0));
    assert_eq!(counts(&store, 2, 2.5), ((0, 2), first));
    assert_eq!(counts(&store, 3, 2.5).0, (1, 2), "one more seed is one more run");
    assert_eq!(counts(&store, 1, 5.0).0, (1, 0), "other noise is another run");
    for run in store.0.lock().unwrap().values() {
        for counter in ["credit_packets", "packets_sent", "delay_ns"] {
            assert!(run.measurement.counters.get(counter).is_some_and(|value| *value > 0), "{counter} was not counted");
        }
    }
}

#[test]
fn figures_share_their_runs() {
    let (bar, store) = (Bar::new("paper"), Memory::default());
    let workshop = Workshop::new(Scale::Smallest, 1, Some(2), &bar).with_store(&store);
    let both = ["P-fig20-23", "P-fig27"].map(|id| Experiment::find(id).unwrap());
    workshop.reports(&both, |_, _| Ok(())).unwrap();
    let all = store.0.lock().unwrap().len();
    assert!(all > 100, "{all}");
    assert_eq!(bar.counts(), (all, 0), "each was done once");
}

#[test]
fn who_gives_up_ends_the_runs() {
    let bar = Bar::new("paper");
    let workshop = Workshop::new(Scale::Smallest, 1, Some(2), &bar);
    let all = [ONE_CASE, "P-fig24-26"].map(|id| Experiment::find(id).unwrap());
    let stopped = workshop.reports(&all, |_, _| Err(Failure::own("enough".to_owned()))).unwrap_err();
    assert_eq!(stopped.to_string(), Failure::own("enough".to_owned()).to_string());
}
