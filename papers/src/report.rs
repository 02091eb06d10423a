//! [`Report`]: what an experiment found, ready to be printed, drawn and kept.

use std::collections::BTreeMap;

use tidegate_sim::Estimate;

/// What came of one statement of the paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The run shows it.
    Reproduced,
    /// The run shows something else.
    Differs,
    /// It holds, but could hardly fail, or is no sentence of the paper but ours: not counted as reproduced.
    Implied,
    /// Nothing was run that could tell.
    #[default]
    NotRun,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Verdict; 4] = [Verdict::Reproduced, Verdict::Differs, Verdict::Implied, Verdict::NotRun];

    /// As people read it.
    pub fn name(self) -> &'static str {
        ["reproduced", "differs", "implied", "not run"][self as usize]
    }

    /// That of a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Verdict::ALL.into_iter().find(|verdict| verdict.name() == name)
    }
}

/// One statement of the paper beside what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fact {
    /// The statement.
    pub statement: String,
    /// The paper's sentence, word for word, where it is one.
    pub quote: String,
    /// What came of it, judged on the means over all seeds.
    pub verdict: Verdict,
    /// What comes of it with each seed alone, in their order. Empty where there is one seed, or nothing is drawn.
    pub by_seed: Vec<Verdict>,
    /// The paper's number or finding.
    pub paper: String,
    /// Ours.
    pub here: String,
    /// Why it differs, what implies it, or why it could not be run. Empty where nothing has to be explained.
    pub explanation: String,
    /// Whether no seed alone has an outcome of its own, because it takes nothing from runs, or compares seeds.
    pub is_computed: bool,
}

impl Fact {
    /// Whether some seed alone has another outcome than the means: then the next seeds may turn it round.
    pub fn is_unsure(&self) -> bool {
        self.by_seed.iter().any(|verdict| *verdict != self.verdict)
    }

    /// With how many seeds alone the outcome is that of the means: `, 3 of 3 seeds`; or nothing.
    pub fn sureness(&self) -> String {
        let agreeing = self.by_seed.iter().filter(|verdict| **verdict == self.verdict).count();
        if self.by_seed.is_empty() { String::new() } else { format!(", {agreeing} of {} seeds", self.by_seed.len()) }
    }
}

/// A point of a curve, in the units of the figure's axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    /// The mean over the seeds.
    pub y: f64,
    /// The 95 % confidence interval of the mean over the seeds (Student's t), if the figure says nothing else.
    pub range: Option<(f64, f64)>,
    /// What each seed gave, in their order. Empty where there is one seed.
    pub each: Vec<f64>,
}

impl Point {
    /// A number that was found with each seed, at an abscissa.
    pub(crate) fn of(x: f64, number: &Estimate) -> Self {
        let each = if number.each().len() > 1 { number.each().to_vec() } else { Vec::new() };
        Point { x, y: number.mean(), range: number.interval(), each }
    }
}

/// Whose numbers a series shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeriesKind {
    #[default]
    Found,
    /// The paper's own, from its text or axes: drawn as points without a line.
    Paper,
    /// A limit that the paper names: drawn as a line without points.
    Bound,
}

/// A curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    pub name: String,
    pub kind: SeriesKind,
    /// Decides how it is drawn: the scheme of flow control, `reference` without any; empty where points differ.
    pub scheme: String,
    pub piggyback: bool,
    /// The part of the figure that it belongs to, where that is divided.
    pub panel: String,
    pub points: Vec<Point>,
}

impl Series {
    /// A curve through `points`. If its name begins with that of a scheme it is drawn as that scheme's.
    pub fn of(name: impl Into<String>, points: impl IntoIterator<Item = Point>) -> Self {
        let name = name.into();
        let first = name.split([',', ' ']).next().unwrap_or_default();
        let mut schemes = tidegate_flow::SchemeName::ALL.iter().map(|scheme| scheme.name());
        let is_scheme = first == REFERENCE || schemes.any(|scheme| scheme == first);
        let scheme = if is_scheme { first.to_owned() } else { String::new() };
        Series { name, scheme, points: points.into_iter().collect(), ..Series::default() }
    }

    /// The same with points of which nothing is known but where they are.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Series::of(name, points.into_iter().map(|(x, y)| Point { x, y, range: None, each: Vec::new() }))
    }

    /// The ordinate at exactly this abscissa.
    pub fn at(&self, x: f64) -> Option<f64> {
        self.points.iter().find(|point| point.x == x).map(|point| point.y)
    }
}

/// What series without flow control have as their scheme.
pub const REFERENCE: &str = "reference";

/// A picture with the paper's axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    pub name: String,
    pub title: String,
    pub x_axis: String,
    pub y_axis: String,
    /// The curves; bars if there are categories.
    pub series: Vec<Series>,
    /// Whether the ranges of the points are the least and the most of many, each averaged over the seeds.
    pub has_extremes: bool,
    /// What the abscissas 0, 1, 2 … stand for where they are no numbers.
    pub categories: Vec<String>,
    /// Whether it takes nothing from runs, so that size, seeds and noise change nothing.
    pub is_computed: bool,
}

/// A table of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub name: String,
    pub title: String,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// What an experiment found.
#[derive(Clone, Debug, Default, PartialEq)]
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
    pub seeds: u32,
    /// The share of the time that interruptions of processes take, in percent.
    pub noise_percent: f64,
    /// The code that the runs are of ([`CODE`](crate::CODE)).
    pub code: String,
    /// How many of its runs were done by other code, by its fingerprint: there are such runs only if that is asked for.
    pub older_runs: BTreeMap<String, usize>,
    /// What was run, in sentences: machine, job, points; and how that differs from the paper's set-up.
    pub setup: String,
    /// Pictures.
    pub figures: Vec<Figure>,
    /// Tables.
    pub tables: Vec<Table>,
    /// The paper's statements.
    pub facts: Vec<Fact>,
}
