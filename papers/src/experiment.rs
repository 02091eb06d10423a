//! [`Experiment`]: a figure or table of a paper, as a function from a [`Workshop`] (how large, with which seed) to a
//! [`Report`]: curves, tables, and the paper's statements, each with what came of it. Nothing is tuned to make a
//! statement come out; one that does not says so.
//!
//! Where there are several seeds a statement is judged on the means, and again on each seed alone: an experiment is
//! the same function then, of a workshop that shows it one seed. So a statement knows how sure its outcome is
//! ([`Fact::by_seed`](crate::Fact::by_seed)), and no experiment has to care.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Instant;

use tidegate_sim::SimulationError;

use crate::data::{self, BadFigure, Figures};
use crate::report::{Findings, Report};
use crate::run::CODE;
use crate::workshop::{RunTime, SEARCH, Workshop};

/// A figure or table of a paper.
#[derive(Clone, Copy)]
pub struct Experiment {
    /// Its name, such as `P-fig4`.
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Where the paper has it.
    pub section: &'static str,
    figure: &'static data::Figure,
}

/// All experiments, once they have been read.
static ALL: OnceLock<(Vec<Experiment>, &'static Figures)> = OnceLock::new();

impl std::fmt::Debug for Experiment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id)
    }
}

impl Experiment {
    /// Reads the files of a folder, or those of the usual one. What is read first stays.
    ///
    /// # Errors
    /// If a file is none of what it should be: the text names it.
    pub fn load(folder: Option<&Path>) -> Result<(), BadFigure> {
        let read = Figures::read(&folder.map_or_else(Figures::usual_folder, Path::to_path_buf))?;
        // Figures live as long as the program.
        let papers: &'static Figures = Box::leak(Box::new(read));
        let figures = papers.papers.iter().flat_map(|(_, figures)| figures);
        let of = |figure: &'static data::Figure| Experiment {
            id: figure.id(),
            title: figure.title(),
            section: figure.section(),
            figure,
        };
        let all = figures.map(of).collect();
        let _ = ALL.set((all, papers));
        Ok(())
    }

    /// All experiments, in the order of the papers; those of the usual folder if none has been read.
    ///
    /// # Panics
    /// If that cannot be read.
    #[must_use]
    pub fn all() -> &'static [Experiment] {
        if ALL.get().is_none()
            && let Err(error) = Experiment::load(None)
        {
            panic!("{error}");
        }
        ALL.get().map_or(&[], |(all, _)| all)
    }

    /// Who wrote the paper of that letter, and what it is called.
    #[must_use]
    pub fn source_of(letter: &str) -> Option<&'static str> {
        let _ = Experiment::all();
        let (paper, _) = ALL.get()?.1.papers.iter().find(|(paper, _)| paper.letter == letter)?;
        Some(&paper.source)
    }

    /// The experiment of that name, whatever the case of its letters.
    #[must_use]
    pub fn find(id: &str) -> Option<&'static Experiment> {
        Experiment::all().iter().find(|experiment| experiment.id.eq_ignore_ascii_case(id))
    }

    /// The letter of its paper; empty if it is of none.
    #[must_use]
    pub fn paper(&self) -> &'static str {
        self.id.split_once('-').map_or("", |(paper, _)| paper)
    }

    /// Whether it has runs. One that is computed has none, and size, seeds and noise change nothing.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.figure.is_simulated()
    }

    /// Whether its runs have processes, which noise interrupts.
    #[must_use]
    pub fn has_processes(&self) -> bool {
        self.figure.is_simulated() && self.figure.has_processes()
    }

    /// Runs it.
    ///
    /// # Errors
    /// If a simulation fails: the error says which way.
    pub fn run(&self, workshop: &Workshop<'_>) -> Result<Report, SimulationError> {
        let begin = Instant::now();
        let found = |workshop: &Workshop<'_>| self.figure.findings(workshop);
        let findings = found(workshop)?;
        // What takes nothing from runs is found once.
        let by_seed = if self.is_simulated() { workshop.with_each_seed(found)? } else { Vec::new() };
        let searched = begin.elapsed().as_secs_f64();
        let Findings { setup, figures, tables, mut facts } = findings;
        for (nth, fact) in facts.iter_mut().enumerate().filter(|(_, fact)| !fact.is_computed) {
            fact.by_seed = by_seed.iter().map(|findings| findings.facts[nth].verdict).collect();
        }
        let seeds = if self.is_simulated() { workshop.seeds } else { 1 };
        let noise_percent = if self.has_processes() { workshop.noise_percent() } else { 0.0 };
        let searched = self.figure.is_searched().then(|| RunTime { run: SEARCH.to_owned(), seconds: searched });
        let (runs, older_runs) = workshop.take_used(searched);
        Ok(Report {
            id: self.id.to_owned(),
            title: self.title.to_owned(),
            section: self.section.to_owned(),
            scale: workshop.scale.name().to_owned(),
            seed: workshop.seed,
            seeds,
            noise_percent,
            code: CODE.to_owned(),
            older_runs,
            setup,
            figures,
            tables,
            facts,
            runs,
        })
    }

    /// Asks the workshop for all runs, whatever comes of them.
    pub(crate) fn list_cases(&self, workshop: &Workshop<'_>) -> Result<(), SimulationError> {
        self.figure.findings(workshop).map(drop)
    }
}
