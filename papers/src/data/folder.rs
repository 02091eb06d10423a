//! The folder that figures are read from: one folder for each paper, with a file `paper.toml` ([`PaperOf`]), and for
//! each figure `NAME.toml`, and `NAME.md` beside it.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{BadFigure, Figure};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperOf {
    /// The letter that its figures' names begin with; empty for comparisons that are of no paper.
    pub letter: String,
    pub place: u32,
    /// Who wrote it, its title, and where it appeared.
    pub source: String,
    /// Its figures, by the names of their files, in the order in which they are shown.
    pub figures: Vec<String>,
    #[serde(skip)]
    pub folder: String,
    #[serde(default)]
    pub causes: Vec<Cause>,
}

/// Why some of a paper's statements differ: what is behind several explanations.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// In at most ten words.
    pub name: String,
    pub decides: String,
    /// Which number moved when it was made; empty if it has not been.
    pub tested: String,
    /// The explanations behind which it is, each as `FIGURE: HEADING`.
    pub explains: Vec<String>,
}

/// The folder that `TIDEGATE_PAPERS` names, that of an installation, or that of the sources.
pub fn usual_folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("TIDEGATE_PAPERS") {
        return folder.into();
    }
    let program = std::env::current_exe().ok();
    let installed = program.and_then(|program| Some(program.parent()?.join("../share/tidegate/papers")));
    installed.filter(|folder| folder.is_dir()).unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf())
}

/// Reads all papers of a folder and their figures. If a file is none of what it should be, the error names it.
pub fn read_papers(folder: &Path) -> Result<Vec<(PaperOf, Vec<Figure>)>, BadFigure> {
    let entries = fs::read_dir(folder).map_err(|error| BadFigure(format!("{}: {error}", folder.display())))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path().join("paper.toml"))).collect();
    files.retain(|file| file.is_file());
    files.sort();
    let mut papers = Vec::new();
    for file in &files {
        let bad = |error: toml::de::Error| format!("{}: {}", file.display(), error.to_string().trim_end());
        let mut paper: PaperOf = toml::from_str(&text(file, "")?).map_err(bad)?;
        let folder = file.parent().and_then(Path::file_name).unwrap_or_default();
        paper.folder = folder.to_string_lossy().into_owned();
        let mut figures = Vec::new();
        for name in &paper.figures {
            let remedy = format!("write it, or take \"{name}\" out of `figures` in {}", file.display());
            let file = file.with_file_name(format!("{name}.toml"));
            let toml = text(&file, &remedy)?;
            let remedy = format!("create it with the heading \"# {name}\"; it explains what {name}.toml shows");
            let markdown = text(&file.with_extension("md"), &remedy)?;
            figures.push(Figure::read(&file.display().to_string(), &toml, &markdown)?);
        }
        share_runs(&mut figures)?;
        papers.push((paper, figures));
    }
    papers.sort_by_key(|(paper, _)| paper.place);
    let file = |paper: &PaperOf| format!("{}/paper.toml", folder.join(&paper.folder).display());
    unlike("place", papers.iter().map(|(paper, _)| (paper.place.to_string(), file(paper))))?;
    unlike("letter", papers.iter().map(|(paper, _)| (format!("{:?}", paper.letter), file(paper))))?;
    let figures = papers.iter().flat_map(|(_, figures)| figures);
    unlike("id", figures.map(|figure| (format!("{:?}", figure.definition.id), figure.file.clone())))?;
    Ok(papers)
}

/// Checks that no two files have the same value of a field.
fn unlike(field: &str, each: impl Iterator<Item = (String, String)>) -> Result<(), BadFigure> {
    let mut known = BTreeMap::new();
    for (value, file) in each {
        if let Some(first) = known.insert(value.clone(), file.clone()) {
            return Err(BadFigure(format!(
                "{file}: {field} = {value} is that of {first}, too: give one of them another"
            )));
        }
    }
    Ok(())
}

fn text(path: &Path, remedy: &str) -> Result<String, BadFigure> {
    fs::read_to_string(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => BadFigure(format!("{} is missing: {remedy}", path.display())),
        _ => BadFigure(format!("{}: {error}", path.display())),
    })
}

/// Gives figures the runs of others that they ask for, and their set-up if they have none.
fn share_runs(figures: &mut [Figure]) -> Result<(), BadFigure> {
    for place in 0..figures.len() {
        let Some(wanted) = figures[place].definition.runs_of.clone() else { continue };
        let from = figures.iter().position(|figure| figure.definition.id == wanted);
        let (Some(from), true) = (from, from != Some(place)) else {
            let error = BadFigure(format!("`runs_of`: no other figure of the paper is called {wanted}"));
            return Err(figures[place].located(error));
        };
        let (runs, setup) = (figures[from].definition.runs.clone(), figures[from].sections.get("Set-up").cloned());
        for (name, runs) in runs {
            figures[place].definition.runs.entry(name).or_insert(runs);
        }
        if let Some(setup) = setup {
            figures[place].sections.entry("Set-up".to_owned()).or_insert(setup);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(id: &str, more: &str) -> Figure {
        let head = format!("id = \"{id}\"\ntitle = \"It\"\nsection = \"§1\"\n");
        Figure::read(id, &format!("{head}{more}"), "# It\n").unwrap()
    }

    #[test]
    fn a_figure_takes_the_runs_of_the_one_it_names() {
        let mut figures = [figure("P-a", "runs_of = \"P-b\""), figure("P-b", "[runs.all]\nworkload.bytes = 8")];
        share_runs(&mut figures).unwrap();
        assert!(figures[0].definition.runs.contains_key("all"));
    }

    #[test]
    fn a_figure_that_names_itself_or_none_is_refused() {
        for wanted in ["P-a", "P-z"] {
            let mut figures = [figure("P-a", &format!("runs_of = \"{wanted}\""))];
            let expected = format!("P-a, line 4: `runs_of`: no other figure of the paper is called {wanted}");
            assert_eq!(share_runs(&mut figures), Err(BadFigure(expected)));
        }
    }
}
