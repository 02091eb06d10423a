//! `README.md` of the papers' folder: one table for each paper, a row for each figure, from what the files beside the
//! figures say came out.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use tidegate_cli::files::write_whole;

use crate::data::{Figure, Figures};
use crate::record;
use crate::report::{Fact, Verdict};

/// A figure with what came out of it.
struct Row<'a> {
    figure: &'a Figure,
    facts: Vec<Fact>,
}

/// Writes the page into the folder of the papers.
///
/// # Errors
/// If a file cannot be read or written, or is none of what it should be.
pub fn write(folder: &Path) -> io::Result<()> {
    let figures = Figures::read(folder).map_err(|error| io::Error::other(error.to_string()))?;
    let mut text = HEAD.to_owned();
    let mut causes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut papers = Vec::new();
    for (paper, figures) in &figures.papers {
        papers.push((paper, figures.iter().map(row).collect::<io::Result<Vec<Row<'_>>>>()?));
    }
    for (paper, rows) in &papers {
        let title = if paper.letter.is_empty() {
            "Beside the papers".to_owned()
        } else {
            format!("{}: {}", paper.letter, paper.source)
        };
        let _ = write!(text, "\n## {title}\n\n{}\n\n{COLUMNS}\n", counted(rows));
        for row in rows {
            let _ = writeln!(text, "{}", line(row));
            for (fact, cause) in row.differing() {
                causes.entry(cause).or_default().push(format!("{}: {}", row.figure.id(), fact.statement));
            }
        }
    }
    text.push_str("\n## What differs, by its cause\n\n");
    text.push_str("The heading of the explanation, with the statements that it explains; the figure's page has the experiment.\n\n");
    for (cause, statements) in causes {
        let _ = writeln!(text, "- **{cause}**");
        for statement in statements {
            let _ = writeln!(text, "  - {statement}");
        }
    }
    if let Ok(mistakes) = fs::read_to_string(folder.join("mistakes.md")) {
        let _ = write!(text, "\n{mistakes}");
    }
    write_whole(&folder.join("README.md"), &text)
}

const HEAD: &str = "\
# The papers: what comes out

Made by `tidegate paper --overview` from the files beside each figure. A figure's sentence is the first that differs, or the first of all; a mark
says what became of all of its statements: ✓ all come out, ◐ some do, ✗ none does, – none could be run. *Implied* are those that hold and could hardly fail.
[docs/paper](../docs/paper/README.md) has every statement with its numbers and the pictures.
";

const COLUMNS: &str = "| | figure | the paper says | here | cause of the difference |\n|---|---|---|---|---|";

fn row(figure: &Figure) -> io::Result<Row<'_>> {
    let path = Path::new(&figure.file).with_extension("csv");
    let facts = match fs::read_to_string(&path) {
        Ok(text) => record::read(&text).map_err(|why| io::Error::other(format!("{}: {why}", path.display())))?.facts,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    Ok(Row { figure, facts })
}

impl Row<'_> {
    /// Statements that differ, each with the heading of its explanation.
    fn differing(&self) -> impl Iterator<Item = (&Fact, &str)> {
        let differ = self.facts.iter().filter(|fact| fact.verdict == Verdict::Differs);
        differ.map(|fact| (fact, self.figure.cause_of(&fact.statement).unwrap_or("not explained")))
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.facts.iter().filter(|fact| fact.verdict == verdict).count()
    }
}

/// What became of a paper's statements, those that are computed apart from those that were simulated.
fn counted(rows: &[Row<'_>]) -> String {
    let of = |is_simulated: bool| {
        let rows: Vec<&Row<'_>> = rows.iter().filter(|row| row.figure.is_simulated() == is_simulated).collect();
        let sum = |verdict| rows.iter().map(|row| row.count(verdict)).sum::<usize>();
        let all: usize = rows.iter().map(|row| row.facts.len()).sum();
        let [come, differ, implied, left] =
            [Verdict::Reproduced, Verdict::Differs, Verdict::Implied, Verdict::NotRun].map(sum);
        (all > 0)
            .then(|| format!("{all} statements, {come} reproduced, {differ} differ, {implied} implied, {left} not run"))
    };
    let simulated = of(true).map(|counts| format!("Simulated: {counts}."));
    let computed = of(false).map(|counts| format!("Computed or traced, without a simulation: {counts}."));
    simulated.into_iter().chain(computed).collect::<Vec<_>>().join(" ")
}

/// A figure in one line.
fn line(row: &Row<'_>) -> String {
    let [come, differ, implied] = [Verdict::Reproduced, Verdict::Differs, Verdict::Implied].map(|of| row.count(of));
    let mark = match (come + implied, differ) {
        (0, 0) => "–",
        (_, 0) => "✓",
        (0, _) => "✗",
        _ => "◐",
    };
    let shown = row.facts.iter().find(|fact| fact.verdict == Verdict::Differs).or(row.facts.first());
    let cell = |text: &str| text.replace('|', "\\|");
    let cause = row.differing().next().map_or("", |(_, cause)| cause);
    let said = shown.map_or(String::new(), |fact| {
        let quote = row.figure.quote_of(&fact.statement).map(|quote| format!("“{quote}”"));
        cell(&quote.unwrap_or_else(|| fact.statement.clone()))
    });
    let here = shown.map_or(String::new(), |fact| cell(&fact.here));
    let stem = Path::new(&row.figure.file).with_extension("md");
    let parts: Vec<_> = stem.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy()).collect();
    let link = format!("{}/{}", parts[1], parts[0]);
    format!("| {mark} | [{}]({link}) {} | {said} | {here} | {cause} |", row.figure.id(), row.figure.title())
}
