//! [`Experiment::judge`]: an experiment's statements, figures and tables made anew from the runs that a report holds.
//! So a statement that is put in other words, or tested otherwise, does not cost hours of the same runs again.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
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
        let mut held: HashMap<(&str, u64), &Measurement> = HashMap::new();
        for run in &report.runs {
            held.entry((run.case.as_str(), run.seed)).or_insert(&run.measurement);
        }
        let mut wanted: Vec<(RunKey, String)> = Vec::new();
        for case in workshop.plan(&[experiment]) {
            wanted.extend(workshop.seeds().map(|seed| (case.run_key(seed, workshop.noise), case.to_string())));
        }
        let mut found = HashMap::new();
        // A run that cases with different fields have in common, such as the reference of many points, bears the name
        // of one of them. No other run bears that name: it says all fields.
        for (key, name) in &wanted {
            if let Some(&measurement) = held.get(&(name.as_str(), key.seed)) {
                let (code, measurement) = (CODE.to_owned(), measurement.clone());
                found.insert(key.clone(), FinishedRun { code, key: key.clone(), seconds: 0.0, measurement });
            }
        }
        for (key, name) in wanted {
            if let Entry::Vacant(place) = found.entry(key) {
                let run = kept.load(place.key()).filter(|run| run.code == report.code);
                let missing = || NotKept(format!("the run of {name}, seed {}, is not kept", place.key().seed));
                let run = run.ok_or_else(missing)?;
                place.insert(run);
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
        let scale = Scale::ALL.into_iter().find(|scale| scale.name() == report.scale);
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
