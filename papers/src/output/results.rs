//! Files of results: `PAPER/FIGURE.csv` below a folder, with `PAPER/FIGURE-NAME.svg` for each of its pictures, and the
//! pages that are made of them. Below the folder of the papers they lie beside the figures.

use std::fs;
use std::io;
use std::path::Path;

use tidegate_cli::files::write_whole;

use super::{overview, page, picture, text};
use crate::data::PaperOf;
use crate::experiment::Experiment;
use crate::record;
use crate::report::{Figure, Report};
use crate::workshop::Scale;

/// A figure of a paper, with what came out of it, if it has been run.
pub(super) struct Shown {
    pub experiment: &'static Experiment,
    pub report: Option<Report>,
}

pub(super) type Paper = (&'static PaperOf, Vec<Shown>);

/// The name of a picture, in the folder of its paper.
pub(super) fn picture_name(experiment: &Experiment, figure: &Figure) -> String {
    format!("{}-{}.svg", experiment.figure.stem(), figure.name)
}

/// Writes what came out of an experiment below a folder; returns the names of the files.
pub fn write(experiment: &Experiment, report: &Report, folder: &Path) -> io::Result<Vec<String>> {
    let place = folder.join(&experiment.paper.folder);
    fs::create_dir_all(&place)?;
    let name = format!("{}.csv", experiment.figure.stem());
    write_whole(&place.join(&name), &record::written(report).map_err(io::Error::other)?)?;
    let mut names = vec![name];
    names.extend(draw(experiment, report, &place)?);
    Ok(names.iter().map(|name| format!("{}/{name}", experiment.paper.folder)).collect())
}

/// Draws the pictures of a figure into the folder of its paper; returns their names.
fn draw(experiment: &Experiment, report: &Report, place: &Path) -> io::Result<Vec<String>> {
    let draw = |figure: &Figure| {
        let name = picture_name(experiment, figure);
        let (title, note) = text::caption(report, figure);
        write_whole(&place.join(&name), &picture::drawn(figure, &title, &note))?;
        Ok(name)
    };
    report.figures.iter().map(draw).collect()
}

/// Makes the pages anew from the results below a folder, and the pictures with them if that is asked for.
pub fn write_pages(folder: &Path, draws: bool) -> io::Result<()> {
    let mut papers: Vec<Paper> = Vec::new();
    for experiments in Experiment::all().chunk_by(|one, other| one.paper.folder == other.paper.folder) {
        let paper = experiments[0].paper;
        let place = folder.join(&paper.folder);
        let shown = experiments.iter().map(|experiment| Ok(Shown { experiment, report: read(experiment, &place)? }));
        let shown = shown.collect::<io::Result<Vec<Shown>>>()?;
        if shown.iter().any(|shown| shown.report.is_some()) {
            if draws {
                draw_all(&shown, &place)?;
            }
            write_whole(&place.join("README.md"), &page::paper(paper, &shown, place.join("machine.md").is_file()))?;
        }
        papers.push((paper, shown));
    }
    let mistakes = fs::read_to_string(folder.join("mistakes.md")).unwrap_or_default();
    write_whole(&folder.join("README.md"), &overview::page(&papers, &mistakes))
}

/// Draws all pictures of a paper, and removes those that no figure has any more.
fn draw_all(shown: &[Shown], place: &Path) -> io::Result<()> {
    let mut names = Vec::new();
    for Shown { experiment, report } in shown {
        names.extend(report.as_ref().map_or(Ok(Vec::new()), |report| draw(experiment, report, place))?);
    }
    for entry in fs::read_dir(place)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".svg") && !names.contains(&name) {
            fs::remove_file(place.join(name))?;
        }
    }
    Ok(())
}

/// What came out of a figure, with what its own files say of it; `None` if it has not been run.
pub(super) fn read(experiment: &Experiment, place: &Path) -> io::Result<Option<Report>> {
    let figure = experiment.figure;
    let path = place.join(format!("{}.csv", figure.stem()));
    if !path.exists() {
        return Ok(None);
    }
    let bad = |why: String| io::Error::other(format!("{}: {why}", path.display()));
    let mut report = record::read(&fs::read_to_string(&path)?).map_err(bad)?;
    let forms = Scale::ALL.into_iter().find(|scale| scale.name() == report.scale).map_or(&[][..], Scale::changes);
    [report.title, report.section] = [experiment.title, experiment.section].map(str::to_owned);
    report.setup = figure.setup(forms);
    for fact in &mut report.facts {
        // One that the figure has no more is shown without quotation and explanation.
        let Some(claim) = figure.claim(&fact.statement) else { continue };
        let explained = figure.explained(claim, fact.verdict, !forms.is_empty());
        fact.explanation = explained.map_err(|error| bad(error.to_string()))?;
        fact.quote.clone_from(&claim.quote);
    }
    Ok(Some(report))
}

impl PaperOf {
    /// Its letter and its authors; what stands above its figures.
    pub(super) fn heading(&self) -> String {
        if self.letter.is_empty() { self.source.clone() } else { format!("{}: {}", self.letter, self.source) }
    }

    pub(super) fn short(&self) -> &str {
        if self.letter.is_empty() { "ours" } else { &self.letter }
    }
}
