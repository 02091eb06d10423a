//! [`Figures`]: the folder that figures are read from.
//!
//! A folder has one folder for each paper, with a file `paper.toml` ([`PaperOf`]) and the files of its figures: for
//! each `NAME.toml`, and `NAME.md` beside it.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{BadFigure, Figure};

/// A paper, as its `paper.toml` has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperOf {
    /// The letter that its figures' names begin with; empty for comparisons that are of no paper.
    pub letter: String,
    /// Its place among the papers.
    pub place: u32,
    /// Who wrote it, its title, and where it appeared.
    pub source: String,
    /// Its figures, by the names of their files, in the order in which they are shown.
    pub figures: Vec<String>,
}

/// All papers and their figures.
#[derive(Debug, Default)]
pub struct Figures {
    pub papers: Vec<(PaperOf, Vec<Figure>)>,
}

impl Figures {
    /// The folder that figures are read from, if the user says none: that which `TIDEGATE_PAPERS` names, that of an
    /// installation, or that of the sources.
    pub fn usual_folder() -> PathBuf {
        if let Some(folder) = std::env::var_os("TIDEGATE_PAPERS") {
            return folder.into();
        }
        let installed =
            std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join("../share/tidegate/papers")));
        installed
            .filter(|folder| folder.is_dir())
            .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf())
    }

    /// Reads all of a folder.
    ///
    /// # Errors
    /// If a file cannot be read or is none of what it should be: the text names it.
    pub fn read(folder: &Path) -> Result<Self, BadFigure> {
        let text =
            |path: &Path| fs::read_to_string(path).map_err(|error| BadFigure(format!("{}: {error}", path.display())));
        let mut names: Vec<PathBuf> = fs::read_dir(folder)
            .map_err(|error| BadFigure(format!("{}: {error}", folder.display())))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.join("paper.toml").is_file())
            .collect();
        names.sort();
        let mut papers = Vec::new();
        for path in names {
            let file = path.join("paper.toml");
            let paper: PaperOf = toml::from_str(&text(&file)?)
                .map_err(|error| BadFigure(format!("{}: {}", file.display(), error.to_string().trim_end())))?;
            let mut figures = Vec::new();
            for name in &paper.figures {
                let file = path.join(format!("{name}.toml"));
                let markdown = text(&file.with_extension("md"))?;
                figures.push(Figure::read(&file.display().to_string(), &text(&file)?, &markdown)?);
            }
            share_runs(&mut figures)?;
            papers.push((paper, figures));
        }
        papers.sort_by_key(|(paper, _)| paper.place);
        Ok(Figures { papers })
    }
}

/// Gives figures the runs of others that they ask for.
fn share_runs(figures: &mut [Figure]) -> Result<(), BadFigure> {
    for place in 0..figures.len() {
        let Some(wanted) = figures[place].definition.runs_of.clone() else { continue };
        let from = figures.iter().position(|figure| figure.id() == wanted);
        let (Some(from), true) = (from, from != Some(place)) else {
            return Err(BadFigure(format!("{}: no other figure of the paper is called {wanted}", figures[place].file)));
        };
        let other = &figures[from];
        let (runs, setup) = (other.definition.runs.clone(), other.sections.get("Set-up").cloned());
        figures[place].take_runs(runs, setup);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(id: &str, more: &str) -> Figure {
        let head = format!("id = \"{id}\"\ntitle = \"\"\nsection = \"\"\n");
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
            let expected = format!("P-a: no other figure of the paper is called {wanted}");
            assert_eq!(share_runs(&mut figures), Err(BadFigure(expected)));
        }
    }
}
