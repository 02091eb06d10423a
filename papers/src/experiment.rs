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
use crate::figures;
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
    kind: Kind,
}

/// Where findings come from.
#[derive(Clone, Copy)]
enum Kind {
    /// From a search, whose time is of interest. It depends on the machine, so it is no part of a report, but
    /// kept with the times of runs.
    Searched(fn() -> Result<Findings, SimulationError>),
    /// From runs of jobs.
    Simulated(fn(&Workshop<'_>) -> Result<Findings, SimulationError>),
    /// From runs of networks under load: there are no processes, so noise does not matter.
    Loaded(fn(&Workshop<'_>) -> Result<Findings, SimulationError>),
    /// As its file says.
    File(&'static data::Figure),
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
        let mut all = figures::ALL.to_vec();
        // Figures live as long as the program.
        let papers: &'static Figures = Box::leak(Box::new(read));
        for figure in papers.papers.iter().flat_map(|(_, figures)| figures) {
            let experiment = Experiment {
                id: figure.id(),
                title: figure.title(),
                section: figure.section(),
                kind: Kind::File(figure),
            };
            match all.iter_mut().find(|other| other.id == figure.id()) {
                Some(place) => *place = experiment,
                None => all.push(experiment),
            }
        }
        let place = |of: &Experiment| {
            papers.papers.iter().find(|(paper, _)| paper.letter == of.paper()).map(|(paper, _)| paper.place)
        };
        all.sort_by_key(|experiment| place(experiment).unwrap_or(u32::MAX));
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
        match self.kind {
            Kind::Simulated(_) | Kind::Loaded(_) => true,
            Kind::Searched(_) => false,
            Kind::File(figure) => figure.is_simulated(),
        }
    }

    /// Whether its runs have processes, which noise interrupts.
    #[must_use]
    pub fn has_processes(&self) -> bool {
        match self.kind {
            Kind::Simulated(_) => true,
            Kind::Searched(_) | Kind::Loaded(_) => false,
            Kind::File(figure) => figure.is_simulated() && figure.has_processes(),
        }
    }

    /// Its file, without the ending.
    #[cfg(test)]
    pub(crate) fn file_stem(&self) -> Option<std::path::PathBuf> {
        match self.kind {
            Kind::File(figure) => Some(Path::new(&figure.file).with_extension("")),
            _ => None,
        }
    }

    /// Whether it is a file.
    #[cfg(test)]
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.kind, Kind::File(_))
    }

    /// Runs it.
    ///
    /// # Errors
    /// If a simulation fails: the error says which way.
    pub fn run(&self, workshop: &Workshop<'_>) -> Result<Report, SimulationError> {
        let begin = Instant::now();
        let (findings, by_seed) = match self.kind {
            Kind::Searched(findings) => (findings()?, Vec::new()),
            Kind::Simulated(findings) | Kind::Loaded(findings) => {
                (findings(workshop)?, workshop.with_each_seed(findings)?)
            }
            Kind::File(figure) if !figure.is_simulated() => (figure.findings(workshop)?, Vec::new()),
            Kind::File(figure) => {
                let findings = |workshop: &Workshop<'_>| figure.findings(workshop);
                (findings(workshop)?, workshop.with_each_seed(findings)?)
            }
        };
        let searched = begin.elapsed().as_secs_f64();
        let Findings { setup, figures, tables, mut facts } = findings;
        for (nth, fact) in facts.iter_mut().enumerate().filter(|(_, fact)| !fact.is_computed) {
            fact.by_seed = by_seed.iter().map(|findings| findings.facts[nth].verdict).collect();
        }
        let seeds = if self.is_simulated() { workshop.seeds } else { 1 };
        let noise_percent = if self.has_processes() { workshop.noise_percent() } else { 0.0 };
        let is_searched = match self.kind {
            Kind::Searched(_) => true,
            Kind::File(figure) => figure.is_searched(),
            Kind::Simulated(_) | Kind::Loaded(_) => false,
        };
        let searched = is_searched.then(|| RunTime { run: SEARCH.to_owned(), seconds: searched });
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
        match self.kind {
            Kind::Searched(_) => Ok(()),
            Kind::Simulated(findings) | Kind::Loaded(findings) => findings(workshop).map(drop),
            Kind::File(figure) => figure.findings(workshop).map(drop),
        }
    }
}

pub(crate) const fn simulated(
    id: &'static str,
    title: &'static str,
    section: &'static str,
    findings: fn(&Workshop<'_>) -> Result<Findings, SimulationError>,
) -> Experiment {
    Experiment { id, title, section, kind: Kind::Simulated(findings) }
}

pub(crate) const fn loaded(
    id: &'static str,
    title: &'static str,
    section: &'static str,
    findings: fn(&Workshop<'_>) -> Result<Findings, SimulationError>,
) -> Experiment {
    Experiment { id, title, section, kind: Kind::Loaded(findings) }
}

pub(crate) const fn searched(
    id: &'static str,
    title: &'static str,
    section: &'static str,
    findings: fn() -> Result<Findings, SimulationError>,
) -> Experiment {
    Experiment { id, title, section, kind: Kind::Searched(findings) }
}
