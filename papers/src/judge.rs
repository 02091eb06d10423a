//! [`Experiment::judge`]: an experiment's statements, figures and tables made anew from the runs that a report holds.
//! So a statement that is put in other words, or tested otherwise, does not cost hours of the same runs again.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use tidegate_sim::{FinishedRun, Measurement, NoStore, RunClaim, RunKey, RunStore};

use crate::experiment::Experiment;
use crate::progress::Silent;
use crate::report::Report;
use crate::run::CODE;
use crate::workshop::{Scale, Workshop};

/// A run that an experiment wants, and that nobody has kept; or why it cannot be judged at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotKept(String);

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotKept {}

/// The runs of a report, under the keys of the cases that its experiment wants now.
struct Held(HashMap<RunKey, FinishedRun>);

impl RunStore for Held {
    fn load(&self, key: &RunKey) -> Option<FinishedRun> {
        self.0.get(key).cloned()
    }

    /// Nobody else wants these runs. One that the experiment did not name beforehand is done.
    fn claim(&self, key: &RunKey) -> Option<Box<dyn RunClaim>> {
        NoStore.claim(key)
    }
}

impl Held {
    /// Finds each run of `workshop` in the report, by what it says of its case, or else in `kept`.
    fn of(
        experiment: &'static Experiment,
        report: &Report,
        workshop: &Workshop<'_>,
        kept: &dyn RunStore,
    ) -> Result<Self, NotKept> {
        let mut held: HashMap<(&str, u64), Vec<&Measurement>> = HashMap::new();
        for run in &report.runs {
            held.entry((run.case.as_str(), run.seed)).or_default().push(&run.measurement);
        }
        let mut wanted: BTreeMap<(String, u64), Vec<RunKey>> = BTreeMap::new();
        for case in workshop.plan(&[experiment]) {
            for seed in (0..u64::from(workshop.seeds)).map(|nth| workshop.seed.wrapping_add(nth)) {
                let keys = wanted.entry((case.to_string(), seed)).or_default();
                let key = case.run_key(seed, workshop.noise);
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        let mut found = HashMap::new();
        for ((name, seed), keys) in wanted {
            // Cases that say the same of themselves come in the same order here and there, if there are as many.
            let runs = held.get(&(name.as_str(), seed)).map_or(&[][..], Vec::as_slice);
            let is_told = runs.len() == keys.len() || keys.len() == 1;
            for (place, key) in keys.into_iter().enumerate() {
                let run = |measurement: &&Measurement| FinishedRun {
                    code: CODE.to_owned(),
                    key: key.clone(),
                    seconds: 0.0,
                    measurement: Measurement::clone(measurement),
                };
                let same_code = |run: &FinishedRun| run.code == report.code;
                let run = runs.get(place).filter(|_| is_told).map(run).or_else(|| kept.load(&key).filter(same_code));
                let run = run.ok_or_else(|| match runs.is_empty() || is_told {
                    true => NotKept(format!("the run of {name}, seed {seed}, is not kept")),
                    false => NotKept(format!("several of its cases have the same name, and not as many runs: {name}")),
                })?;
                found.insert(key, run);
            }
        }
        Ok(Held(found))
    }
}

impl Experiment {
    /// Judges the statements anew, and makes figures and tables anew, from the runs that `report` holds or `kept` has.
    /// Nothing is run; what is computed, not run, is computed again.
    ///
    /// The new report names the code that did the runs, as the old one does: judging changes none of them.
    ///
    /// # Errors
    /// If a run is missing that the experiment wants now: it wants other cases than when the report was made.
    pub fn judge(&'static self, report: &Report, kept: &dyn RunStore) -> Result<Report, NotKept> {
        let scales = [Scale::Full, Scale::Quick, Scale::Smallest];
        let scale = scales.into_iter().find(|scale| scale.name() == report.scale);
        let scale = scale.ok_or_else(|| NotKept(format!("nobody knows the size `{}`", report.scale)))?;
        let workshop = || {
            let workshop = Workshop::new(scale, report.seed, Some(1), &Silent);
            workshop.with_seeds(report.seeds).with_noise(report.noise_percent)
        };
        let held = Held::of(self, report, &workshop(), kept)?;
        let judged = self.run(&workshop().with_store(&held)).map_err(|error| NotKept(error.to_string()))?;
        if !self.is_simulated() {
            return Ok(judged);
        }
        Ok(Report { code: report.code.clone(), older_runs: report.older_runs.clone(), ..judged })
    }
}
