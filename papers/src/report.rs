//! [`Report`]: what an experiment found, ready to be printed, drawn and kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use tidegate_sim::{Estimate, Measurement};

/// What came of one statement of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The run shows it.
    Reproduced,
    /// The run shows something else.
    Differs,
    /// It holds, but that says little, so it is not counted as reproduced: it is computed from the scheme's own rules,
    /// follows from another statement or from how the runs are made, or is not a sentence of the paper but ours.
    Implied,
    /// Nothing was run that could tell.
    NotRun,
}

impl Verdict {
    /// That of a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let all = [Verdict::Reproduced, Verdict::Differs, Verdict::Implied, Verdict::NotRun];
        all.into_iter().find(|verdict| verdict.name() == name)
    }

    /// As people read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Differs => "differs",
            Verdict::Implied => "implied",
            Verdict::NotRun => "not run",
        }
    }
}

/// One statement of the paper beside what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// The statement.
    pub statement: String,
    /// The paper's sentence, word for word, where it is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub quote: String,
    /// What came of it, judged on the means over all seeds.
    pub verdict: Verdict,
    /// What comes of it with each seed alone, in the order of the seeds. Empty where there is one seed, or nothing is
    /// drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_seed: Vec<Verdict>,
    /// The paper's number or finding.
    pub paper: String,
    /// Ours.
    pub here: String,
    /// Why it differs, what implies it, or why it could not be run. Empty where nothing has to be explained.
    pub explanation: String,
    /// Whether no seed alone has an outcome of its own, because it takes nothing from runs, or compares seeds.
    #[serde(skip)]
    pub is_computed: bool,
}

impl Fact {
    /// A statement that was put to the test: `paper` and `here` are the two sides.
    #[must_use]
    pub fn tested(statement: &str, holds: bool, paper: impl Into<String>, here: impl Into<String>) -> Self {
        Fact {
            statement: statement.to_owned(),
            quote: String::new(),
            verdict: if holds { Verdict::Reproduced } else { Verdict::Differs },
            by_seed: Vec::new(),
            paper: paper.into(),
            here: here.into(),
            explanation: String::new(),
            is_computed: false,
        }
    }

    /// A statement that nothing here could test, and why.
    #[must_use]
    pub fn not_run(statement: &str, paper: impl Into<String>, why: &str) -> Self {
        Fact {
            statement: statement.to_owned(),
            quote: String::new(),
            verdict: Verdict::NotRun,
            by_seed: Vec::new(),
            paper: paper.into(),
            here: String::new(),
            explanation: why.to_owned(),
            is_computed: false,
        }
    }

    /// What explains the difference, kept only if there is one: a cause that was tested, by changing it.
    #[must_use]
    pub fn because(mut self, explanation: &str) -> Self {
        if self.verdict == Verdict::Differs {
            explanation.clone_into(&mut self.explanation);
        }
        self
    }

    /// What may explain the difference, kept only if there is one: nothing was changed to see whether it does.
    #[must_use]
    pub fn perhaps_because(self, explanation: &str) -> Self {
        self.because(&format!("Not tested: {explanation}"))
    }

    /// If it holds it is [`Verdict::Implied`], for this reason: it could hardly fail, or the paper does not say it.
    #[must_use]
    pub fn implied(mut self, reason: &str) -> Self {
        if self.verdict == Verdict::Reproduced {
            self.verdict = Verdict::Implied;
            reason.clone_into(&mut self.explanation);
        }
        self
    }

    /// It takes nothing from runs, so no seed alone can have another outcome.
    #[must_use]
    pub fn computed(self) -> Self {
        Fact { is_computed: true, ..self }
    }

    /// It compares seeds, so it has no outcome with one of them alone.
    #[must_use]
    pub fn across_seeds(self) -> Self {
        Fact { is_computed: true, ..self }
    }

    /// With how many seeds alone the outcome is that of the means.
    #[must_use]
    pub fn seeds_agreeing(&self) -> usize {
        self.by_seed.iter().filter(|verdict| **verdict == self.verdict).count()
    }

    /// Whether some seed alone has another outcome than the means: then the next seeds may turn it round.
    #[must_use]
    pub fn is_unsure(&self) -> bool {
        self.seeds_agreeing() < self.by_seed.len()
    }

    /// How sure the outcome is: `3 of 3 seeds`. `None` where there is nothing to compare.
    #[must_use]
    pub fn sureness(&self) -> Option<String> {
        let seeds = self.by_seed.len();
        (seeds > 0).then(|| format!("{} of {seeds} seeds", self.seeds_agreeing()))
    }
}

/// A point of a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Abscissa, in the unit of the figure's axis.
    pub x: f64,
    /// Ordinate, in the unit of the figure's axis: the mean over the seeds.
    pub y: f64,
    /// How far that spreads; [`Figure::spread`] says what it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
    /// What each seed gave, in their order. Empty where there is one seed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<f64>,
}

/// A number that was found with each seed, as a point of a figure.
pub(crate) trait AsPoint {
    /// At this abscissa.
    fn point(&self, x: f64) -> Point;
}

impl AsPoint for Estimate {
    fn point(&self, x: f64) -> Point {
        let each = if self.each().len() > 1 { self.each().to_vec() } else { Vec::new() };
        Point { x, y: self.mean(), range: self.interval(), each }
    }
}

/// What the ranges of a figure's points are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// The 95 % confidence interval of the mean over the seeds (Student's t).
    #[default]
    Confidence95,
    /// The least and the most of many, each averaged over the seeds.
    Extremes,
}

impl Spread {
    /// As captions say it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Spread::Confidence95 => "95 % confidence interval of the mean",
            Spread::Extremes => "least to most",
        }
    }

    fn is_default(&self) -> bool {
        *self == Spread::default()
    }
}

/// Whose numbers a series shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesKind {
    /// Ours.
    #[default]
    Found,
    /// The paper's own, from its text or axes: drawn as points without a line.
    Paper,
}

impl SeriesKind {
    fn is_default(&self) -> bool {
        *self == SeriesKind::default()
    }
}

/// A curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What it is of.
    pub name: String,
    /// Whose numbers these are.
    #[serde(default, skip_serializing_if = "SeriesKind::is_default")]
    pub kind: SeriesKind,
    /// The scheme of flow control, `reference` without any: decides how it is drawn. Empty where that is not the same
    /// for all points.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scheme: String,
    /// Whether credits ride on data packets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub piggyback: bool,
    /// The part of the figure that it belongs to, where a figure is divided into several beside each other.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub panel: String,
    /// Its points, by `x`.
    pub points: Vec<Point>,
}

impl Series {
    /// A curve through `points`. If its name begins with that of a scheme it is drawn as that scheme's.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Series::of(name, points.into_iter().map(|(x, y)| Point { x, y, range: None, each: Vec::new() }))
    }

    /// The same with points that know how far they spread.
    pub fn of(name: impl Into<String>, points: impl IntoIterator<Item = Point>) -> Self {
        let name = name.into();
        let first = name.split([',', ' ']).next().unwrap_or_default();
        let is_scheme =
            first == REFERENCE || tidegate_flow::SchemeName::ALL.iter().any(|scheme| scheme.name() == first);
        let scheme = if is_scheme { first.to_owned() } else { String::new() };
        Series { name, scheme, points: points.into_iter().collect(), ..Series::default() }
    }

    /// The paper's own numbers, beside those of `scheme`.
    pub fn paper(
        name: impl Into<String>,
        scheme: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        Series { kind: SeriesKind::Paper, scheme: scheme.into(), ..Series::new(name, points) }
    }

    /// The same in a part of the figure.
    #[must_use]
    pub fn in_panel(self, panel: impl Into<String>) -> Self {
        Series { panel: panel.into(), ..self }
    }

    /// The ordinate at exactly this abscissa.
    #[must_use]
    pub fn at(&self, x: f64) -> Option<f64> {
        self.points.iter().find(|point| point.x == x).map(|point| point.y)
    }
}

/// What series without flow control have as their scheme.
pub const REFERENCE: &str = "reference";

/// A picture with the paper's axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// What the ranges of the points are.
    #[serde(default, skip_serializing_if = "Spread::is_default")]
    pub spread: Spread,
    /// What the abscissas 0, 1, 2 … stand for where they are no numbers. A table of the same report has the values of
    /// such a figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// Whether it takes nothing from runs, so that size, seeds and noise change nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_computed: bool,
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The experiment's id, such as `P-fig4`.
    pub id: String,
    /// What it is.
    pub title: String,
    /// Where the paper has it.
    pub section: String,
    /// `full`, `quick` or `smallest`.
    pub scale: String,
    /// The first seed of its runs.
    pub seed: u64,
    /// With so many seeds, one after the other, was every case run.
    #[serde(default = "one")]
    pub seeds: u32,
    /// The share of the time that interruptions of processes take, in percent
    /// ([`Workshop::with_noise`](crate::Workshop::with_noise)).
    #[serde(default, alias = "noise", deserialize_with = "noise_percent")]
    pub noise_percent: f64,
    /// The code that the runs are of ([`CODE`](crate::CODE)).
    #[serde(default)]
    pub code: String,
    /// How many of its runs were done by other code, by its fingerprint. There are such runs only if that is asked for,
    /// and then the report is not one of `code`: nothing but the same kept runs gives it again for certain.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub older_runs: BTreeMap<String, usize>,
    /// What was run, in sentences: machine, job, points; and how that differs from the paper's set-up.
    pub setup: String,
    /// Pictures.
    pub figures: Vec<Figure>,
    /// Tables.
    pub tables: Vec<Table>,
    /// The paper's statements.
    pub facts: Vec<Fact>,
    /// The runs behind all that, case by case and seed by seed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunReport>,
}

impl Report {
    /// The letter of its paper; empty if it is of none.
    #[must_use]
    pub fn paper(&self) -> &str {
        self.id.split_once('-').map_or("", |(paper, _)| paper)
    }

    /// Where the paper has it: `P §7.5, figure 27`.
    #[must_use]
    pub fn source(&self) -> String {
        format!("{} {}", self.paper(), self.section).trim_start().to_owned()
    }
}

/// A run, in a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// What was run.
    pub case: String,
    /// With which seed.
    pub seed: u64,
    /// What came of it.
    #[serde(flatten)]
    pub measurement: Measurement,
}

impl RunReport {
    /// Leaves out the time that every process noted of every all-to-all of a phase: that is most of what is noted, and
    /// no figure shows it.
    pub(crate) fn new(case: String, seed: u64, measurement: &Measurement) -> Self {
        let mut measurement = measurement.clone();
        measurement.notes.retain(|note| note.label != "alltoall");
        RunReport { case, seed, measurement }
    }
}

fn one() -> u32 {
    1
}

/// Reports from before there was a percentage say `true` or `false`.
fn noise_percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Noise {
        Percent(f64),
        Usual(bool),
    }
    Ok(match Noise::deserialize(deserializer)? {
        Noise::Percent(percent) => percent,
        Noise::Usual(noise) => f64::from(u8::from(noise)) * crate::Workshop::NOISE_PERCENT,
    })
}

/// What an experiment returns: a report without its head, which the registry knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    pub setup: String,
    pub figures: Vec<Figure>,
    pub tables: Vec<Table>,
    pub facts: Vec<Fact>,
}
