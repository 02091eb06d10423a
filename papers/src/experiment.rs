//! [`Experiment`]: a figure or table of a paper, as a function from a [`Workshop`] (how large, with which seed) to a
//! [`Report`]. Nothing is tuned to make a statement come out. With several seeds a statement is judged on the means,
//! and again on each seed alone: the experiment is the same function then, of a workshop that shows it one seed.

use std::path::Path;
use std::sync::OnceLock;

use tidegate_sim::SimulationError;

use crate::data::{self, BadFigure, PaperOf};
use crate::report::Report;
use crate::run::CODE;
use crate::workshop::Workshop;

/// A figure or table of a paper.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name, such as `P-fig4`.
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Where the paper has it.
    pub section: &'static str,
    pub(crate) figure: &'static data::Figure,
    pub(crate) paper: &'static PaperOf,
}

/// All experiments, once they have been read.
static ALL: OnceLock<Vec<Experiment>> = OnceLock::new();

impl Experiment {
    /// Reads the files of a folder, or those of the usual one. What is read first stays.
    pub fn load(folder: Option<&Path>) -> Result<(), BadFigure> {
        let read = data::read_papers(&folder.map_or_else(data::usual_folder, Path::to_path_buf))?;
        let mut all = Vec::new();
        // Figures live as long as the program.
        for (paper, figures) in read.leak() {
            all.extend(figures.iter().map(|figure| {
                let data::Definition { id, title, section, .. } = &figure.definition;
                Experiment { id, title, section, figure, paper }
            }));
        }
        let _ = ALL.set(all);
        Ok(())
    }

    /// All experiments, in the order of the papers; those of the usual folder if none has been read.
    pub fn all() -> &'static [Experiment] {
        if ALL.get().is_none() {
            Experiment::load(None).unwrap_or_else(|error| panic!("{error}"));
        }
        ALL.get().map_or(&[], Vec::as_slice)
    }

    /// The experiment of that name, whatever the case of its letters.
    pub fn find(id: &str) -> Option<&'static Experiment> {
        Experiment::all().iter().find(|experiment| experiment.id.eq_ignore_ascii_case(id))
    }

    /// Whether it has runs. One that is computed has none, and size, seeds and noise change nothing.
    pub fn is_simulated(&self) -> bool {
        self.figure.is_simulated()
    }

    /// Runs it.
    pub fn run(&self, workshop: &Workshop<'_>) -> Result<Report, SimulationError> {
        let mut report = self.figure.findings(workshop)?;
        // What takes nothing from runs is found once.
        for seed in workshop.seeds().filter(|_| self.is_simulated() && workshop.seeds > 1) {
            workshop.show(Some(seed));
            let alone = self.figure.findings(workshop);
            workshop.show(None);
            for (fact, alone) in report.facts.iter_mut().zip(alone?.facts).filter(|(fact, _)| !fact.is_computed) {
                fact.by_seed.push(alone.verdict);
            }
        }
        Ok(Report {
            scale: workshop.scale.name().to_owned(),
            seed: workshop.seed,
            seeds: if self.is_simulated() { workshop.seeds } else { 1 },
            code: CODE.to_owned(),
            older_runs: workshop.take_older(),
            ..report
        })
    }
}
