//! [`Report`]: what an experiment found, ready to be printed, drawn and kept.

use serde::{Deserialize, Serialize};

/// What came of one statement of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The run shows it.
    Reproduced,
    /// The run shows something else.
    Differs,
    /// Nothing was run that could tell.
    NotRun,
}

impl Verdict {
    /// As people read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Differs => "differs",
            Verdict::NotRun => "not run",
        }
    }
}

/// One statement of the paper beside what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// The statement.
    pub statement: String,
    /// What came of it.
    pub verdict: Verdict,
    /// The paper's number or finding.
    pub paper: String,
    /// Ours.
    pub here: String,
    /// Why it differs, or why it could not be run. Empty where nothing has to be explained.
    pub explanation: String,
}

impl Fact {
    /// A statement that was put to the test: `paper` and `here` are the two sides.
    #[must_use]
    pub fn tested(statement: &str, holds: bool, paper: impl Into<String>, here: impl Into<String>) -> Self {
        Fact {
            statement: statement.to_owned(),
            verdict: if holds { Verdict::Reproduced } else { Verdict::Differs },
            paper: paper.into(),
            here: here.into(),
            explanation: String::new(),
        }
    }

    /// A statement that nothing here could test, and why.
    #[must_use]
    pub fn not_run(statement: &str, paper: impl Into<String>, why: &str) -> Self {
        Fact {
            statement: statement.to_owned(),
            verdict: Verdict::NotRun,
            paper: paper.into(),
            here: String::new(),
            explanation: why.to_owned(),
        }
    }

    /// What explains the difference, kept only if there is one.
    #[must_use]
    pub fn because(mut self, explanation: &str) -> Self {
        if self.verdict == Verdict::Differs {
            explanation.clone_into(&mut self.explanation);
        }
        self
    }
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Abscissa, in the unit of the figure's axis.
    pub x: f64,
    /// Ordinate, in the unit of the figure's axis.
    pub y: f64,
    /// The least and the most that `y` stands for, where it stands for many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
}

/// A curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What it is of.
    pub name: String,
    /// Its points, by `x`.
    pub points: Vec<Point>,
}

impl Series {
    /// A curve through `points`.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().map(|(x, y)| Point { x, y, range: None }).collect();
        Series { name: name.into(), points }
    }

    /// The ordinate at exactly this abscissa.
    #[must_use]
    pub fn at(&self, x: f64) -> Option<f64> {
        self.points.iter().find(|point| point.x == x).map(|point| point.y)
    }
}

/// A picture with the paper's axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Short name for files, such as `fig4a`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The horizontal axis, with its unit.
    pub x_axis: String,
    /// The vertical axis, with its unit.
    pub y_axis: String,
    /// The curves; bars if there are categories.
    pub series: Vec<Series>,
    /// What the abscissas 0, 1, 2 … stand for where they are no numbers. A table of the same report has the values of
    /// such a figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
}

impl Figure {
    /// The name of an abscissa, where it has one.
    #[must_use]
    pub fn category(&self, x: f64) -> Option<&str> {
        self.categories.iter().enumerate().find(|&(index, _)| index as f64 == x).map(|(_, name)| name.as_str())
    }
}

/// A table of text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Short name for files.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Heads of the columns, with units.
    pub columns: Vec<String>,
    /// The rows, as wide as the heads.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    #[must_use]
    pub fn new(name: &str, title: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Table { name: name.to_owned(), title: title.to_owned(), columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
        debug_assert_eq!(self.rows.last().map(Vec::len), Some(self.columns.len()), "a row as wide as the heads");
    }
}

/// What an experiment found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The experiment's id, such as `P-fig4`.
    pub id: String,
    /// What it is.
    pub title: String,
    /// Where the paper has it.
    pub section: String,
    /// `full`, `quick` or `smallest`.
    pub scale: String,
    /// The seed of all its runs.
    pub seed: u64,
    /// Whether processes were interrupted ([`Workshop::with_noise`](super::Workshop::with_noise)).
    #[serde(default)]
    pub noise: bool,
    /// What was run, in sentences: machine, job, points; and how that differs from the paper's set-up.
    pub setup: String,
    /// Pictures.
    pub figures: Vec<Figure>,
    /// Tables.
    pub tables: Vec<Table>,
    /// The paper's statements.
    pub facts: Vec<Fact>,
}

/// What an experiment returns: a report without its head, which the registry knows.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    pub setup: String,
    pub figures: Vec<Figure>,
    pub tables: Vec<Table>,
    pub facts: Vec<Fact>,
}
