//! Looks at jobs again and again, as families of metrics in which no counter goes backwards.
//!
//! The pages of a job only ever count up, and stay until the job ends. But a page may fail to be read at one look (no
//! descriptor was free, a network folder did not answer), and a sum without it would be smaller: Prometheus takes that
//! for a restart, and the next look for an enormous rate. So a counter is at least what it was at the look before.

use std::collections::HashMap;
use std::time::Duration;

use super::collect::{Collector, Jobs};
use super::families::families;
use super::text::{Family, Kind};
use crate::{folder, jobs};

/// A look.
pub struct Exported {
    /// The metrics to be written.
    pub families: Vec<Family>,
    /// How much processor time the look took.
    pub cost: Duration,
}

/// Exports jobs.
pub struct Exporter {
    collector: Collector,
    with_ranks: bool,
    floor: Floor,
}

impl Exporter {
    /// Of all jobs that `tidegate top` shows. `with_ranks`: with series for each rank.
    pub fn new(with_ranks: bool) -> Self {
        let places = jobs::places();
        // As each run does: folders that killed runs of this user left are removed.
        folder::sweep_all(&places);
        Exporter { collector: Collector::default(), with_ranks, floor: Floor::default() }
    }

    /// Looks at all jobs.
    pub fn look(&mut self) -> Exported {
        let jobs = self.collector.look();
        let mut families = families(&jobs, self.with_ranks);
        self.floor.raise(&mut families, &jobs);
        Exported { families, cost: jobs.cost }
    }
}

/// The counters of the look before: by the folder of the job, and name and labels of the series. (A later job may have
/// the same labels.)
#[derive(Default)]
struct Floor(HashMap<String, f64>);

impl Floor {
    /// Raises counters to what they were, and remembers them. Those of jobs that have ended are forgotten.
    fn raise(&mut self, families: &mut [Family], jobs: &Jobs) {
        let folders: HashMap<(&str, &str), String> = jobs
            .running
            .iter()
            .map(|job| ((job.id.as_str(), job.user.as_str()), job.pages.display().to_string()))
            .collect();
        let mut now = HashMap::with_capacity(self.0.len());
        for family in families.iter_mut().filter(|family| family.kind == Kind::Counter) {
            for (labels, value) in &mut family.samples {
                let label = |name: &str| labels.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value);
                let folder = folders.get(&(label("job_id"), label("user"))).map_or("", String::as_str);
                let key = format!("{folder}\0{}\0{labels:?}", family.stem);
                *value = value.max(self.0.get(&key).copied().unwrap_or(0.0));
                now.insert(key, *value);
            }
        }
        self.0 = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::collect::Job;
    use crate::export::text::Unit;

    fn jobs(folder: &str) -> Jobs {
        let job = Job {
            id: "7".into(),
            user: "a".into(),
            slurm_job_id: String::new(),
            pages: folder.into(),
            launches: Vec::new(),
            is_incomplete: false,
        };
        Jobs { running: vec![job], ..Jobs::default() }
    }

    /// The values that become of a counter and a gauge with this value.
    fn raised(floor: &mut Floor, folder: &str, value: f64) -> [f64; 2] {
        let labels = vec![("job_id", "7".to_owned()), ("user", "a".to_owned())];
        let mut families = [Kind::Counter, Kind::Gauge]
            .map(|kind| Family { samples: vec![(labels.clone(), value)], ..Family::new("x", kind, Unit::None, "") });
        floor.raise(&mut families, &jobs(folder));
        families.map(|family| family.samples[0].1)
    }

    #[test]
    fn counters_never_go_backwards_while_a_job_lasts_and_another_job_begins_at_its_own_value() {
        let mut floor = Floor::default();
        assert_eq!(raised(&mut floor, "one", 5.0), [5.0, 5.0]);
        assert_eq!(raised(&mut floor, "one", 3.0), [5.0, 3.0], "a page could not be read");
        assert_eq!(raised(&mut floor, "one", 6.0), [6.0, 6.0]);
        assert_eq!(raised(&mut floor, "other", 1.0), [1.0, 1.0], "a process id that is used again");
        floor.raise(&mut [], &Jobs::default());
        assert_eq!(raised(&mut floor, "other", 0.5), [0.5, 0.5], "it was not there meanwhile");
    }
}
