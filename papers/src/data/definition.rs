//! [`Definition`]: a figure's file, as it is written.
//!
//! `docs/add-a-figure.md` explains all of it with an example; here is what each field is.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Table, Value};

/// A figure, table or comparison.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Its name, such as `P-fig4`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Where the paper has it: `§5.3, figure 4`.
    pub section: String,
    /// What is run, by a name of its own: fields of a file for `tidegate sim`, with more beside (see `grid.rs`).
    #[serde(default)]
    pub runs: BTreeMap<String, Table>,
    /// The figure of the same paper whose runs it takes, beside its own.
    #[serde(default)]
    pub runs_of: Option<String>,
    /// What several kinds of runs have in common, by a name of its own: one with `with = "NAME"` begins with it.
    #[serde(default)]
    pub common: BTreeMap<String, Table>,
    /// Values that several claims have in common.
    #[serde(default)]
    pub values: BTreeMap<String, ValueOf>,
    /// Pictures.
    #[serde(default)]
    pub pictures: Vec<PictureOf>,
    /// Tables.
    #[serde(default)]
    pub tables: Vec<TableOf>,
    /// The paper's statements.
    #[serde(default)]
    pub claims: Vec<ClaimOf>,
    /// Code of `special/` that adds what cannot be said here.
    #[serde(default)]
    pub special: Option<String>,
    /// Whether what it finds comes from a search, whose time is kept.
    #[serde(default)]
    pub searched: bool,
}

/// Points of the runs: for each axis a value, a list of values, or a comparison such as `<= 30` or `16..30`.
pub type Selection = BTreeMap<String, Value>;

/// Numbers taken from runs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueOf {
    /// What of each run, as arithmetic over what is measured (`measures.rs`).
    #[serde(default)]
    pub of: Option<String>,
    /// Of which runs, if there are several kinds.
    #[serde(default)]
    pub runs: Option<String>,
    /// Of which points.
    #[serde(default)]
    pub r#where: Selection,
    /// The point that `beside.` values are of: the same with these values of axes.
    #[serde(default)]
    pub beside: Selection,
    /// A number for each value of these axes; without it one for all.
    #[serde(default)]
    pub each: Vec<String>,
    /// How one number is made of those of several points: see [`take`](super::select::TAKES). Without it their mean.
    #[serde(default)]
    pub take: Option<String>,
    /// The axis along which `take` looks, where that counts.
    #[serde(default)]
    pub along: Option<String>,
    /// How the number of a point is made of those of its seeds, a word as for `take`; without it their mean.
    #[serde(default)]
    pub of_seeds: Option<String>,
    /// What is done with the points before `take`: one number is made of those at each value of these axes.
    #[serde(default)]
    pub first: Option<FirstOf>,
    /// Numbers that are no measurements; with `computed`, what it is computed for.
    #[serde(default)]
    pub numbers: Vec<f64>,
    /// A function of `special/` that gives the numbers.
    #[serde(default)]
    pub computed: Option<String>,
}

/// What is done first with the points of a value.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstOf {
    /// A number for each value of these axes.
    pub each: Vec<String>,
    /// As for [`ValueOf`].
    #[serde(default)]
    pub take: Option<String>,
    /// As for [`ValueOf`].
    #[serde(default)]
    pub along: Option<String>,
}

/// A picture.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PictureOf {
    /// Short name for files, in which `{axis}` stands for a value as in the title.
    pub name: String,
    /// What it shows; `{axis}` stands for a value that all points of the picture have in common.
    pub title: String,
    /// The horizontal axis, with its unit.
    #[serde(default)]
    pub x_axis: String,
    /// The vertical axis, with its unit.
    pub y_axis: String,
    /// One such picture of each of these runs.
    #[serde(default)]
    pub runs_each: Vec<String>,
    /// Bars over the values of `x`, which are no numbers.
    #[serde(default)]
    pub bars: bool,
    /// The curves.
    pub series: Vec<SeriesOf>,
    /// All these curves once for each value of these axes.
    #[serde(default)]
    pub series_by: Vec<String>,
}

impl PictureOf {
    /// Itself, or the same of each of several runs.
    pub fn each(&self) -> Vec<Self> {
        let of = |runs: &String| {
            let series = |of: &SeriesOf| SeriesOf { runs: Some(runs.clone()), ..of.clone() };
            PictureOf { series: self.series.iter().map(series).collect(), ..self.clone() }
        };
        if self.runs_each.is_empty() { vec![self.clone()] } else { self.runs_each.iter().map(of).collect() }
    }
}

/// A curve, or one for each value of some axes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesOf {
    /// Its name, in which `{axis}` stands for a value.
    pub name: String,
    /// The part of the picture that it belongs to, in which `{axis}` stands for a value.
    #[serde(default)]
    pub panel: String,
    /// Arithmetic over the axes that gives the abscissa; for bars the axis itself.
    #[serde(default)]
    pub x: String,
    /// As for [`ValueOf`].
    #[serde(default)]
    pub of: String,
    /// As for [`ValueOf`].
    #[serde(default)]
    pub runs: Option<String>,
    /// As for [`ValueOf`].
    #[serde(default)]
    pub r#where: Selection,
    /// As for [`ValueOf`].
    #[serde(default)]
    pub beside: Selection,
    /// A curve for each value of these axes; of the paper's own points the same in the panel of each.
    #[serde(default)]
    pub by: Vec<String>,
    /// Whether the bars at each point are the least and the most of the points that it is the mean of, and not how sure
    /// the mean is.
    #[serde(default)]
    pub extremes: bool,
    /// The paper's own points.
    #[serde(default)]
    pub paper: Vec<[f64; 2]>,
    /// A function of `special/` that gives the points.
    #[serde(default)]
    pub computed: Option<String>,
    /// The scheme whose colour it has, if that is not the scheme of its points; `-` for none.
    #[serde(default)]
    pub scheme: String,
    /// Whether it is drawn as one with credits on data packets; without it as its points are.
    #[serde(default)]
    pub piggyback: Option<bool>,
    /// Whether points are left out whose runs were ended early.
    #[serde(default)]
    pub ended_only: bool,
}

/// A table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableOf {
    /// Short name for files, in which `{axis}` stands for a value as in the title.
    pub name: String,
    /// What it shows; `{axis}` stands for a value that all points of the table have in common.
    pub title: String,
    /// A row for each value of these axes, which are its first columns.
    #[serde(default)]
    pub rows: Vec<String>,
    /// Instead of these first columns one, in which `{axis}` stands for a value.
    #[serde(default)]
    pub row: String,
    /// Heads of these first columns; without it the names of the axes.
    #[serde(default)]
    pub heads: Vec<String>,
    /// Instead of `rows` and `columns`: rows of texts with the figure's values between braces (`text.rs`).
    #[serde(default)]
    pub lines: Vec<Vec<String>>,
    /// As for [`ValueOf`]; for all columns.
    #[serde(default)]
    pub runs: Option<String>,
    /// One such table of each of these runs.
    #[serde(default)]
    pub runs_each: Vec<String>,
    /// As for [`ValueOf`]; for all columns.
    #[serde(default)]
    pub r#where: Selection,
    /// The other columns.
    #[serde(default)]
    pub columns: Vec<ColumnOf>,
    /// All these columns once for each value of these axes.
    #[serde(default)]
    pub columns_by: Vec<String>,
    /// Whether combinations that are left out have their rows too, and cells say why.
    #[serde(default)]
    pub absent: bool,
    /// Rows of texts behind all others, as `lines`.
    #[serde(default)]
    pub below: Vec<Vec<String>>,
    /// Rows behind all others, each of which makes one number of a whole column.
    #[serde(default)]
    pub totals: Vec<TotalOf>,
}

impl TableOf {
    /// Itself, or the same of each of several runs.
    pub fn each(&self) -> Vec<Self> {
        let of = |runs: &String| TableOf { runs: Some(runs.clone()), ..self.clone() };
        if self.runs_each.is_empty() { vec![self.clone()] } else { self.runs_each.iter().map(of).collect() }
    }
}

/// A row that makes one number of each column.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TotalOf {
    /// What stands in the first column.
    pub name: String,
    /// As for [`ValueOf`].
    pub take: String,
    /// As for [`ValueOf`]; without it the column's.
    #[serde(default)]
    pub of: Option<String>,
    /// Digits behind the point; without it the column's.
    #[serde(default)]
    pub digits: Option<usize>,
    /// The heads of the columns that have it, in others stands a dash; without it all have.
    #[serde(default)]
    pub columns: Vec<String>,
}

/// A column, or one for each value of an axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnOf {
    /// Its head, in which `{axis}` stands for a value.
    pub head: String,
    /// The numbers of a cell.
    #[serde(flatten)]
    pub value: ColumnValue,
    /// What a cell shows instead of `of`: a text with values between braces (`text.rs`), and `{axis}`.
    #[serde(default)]
    pub text: String,
    /// Instead of a number the value of this axis at the point where `of` is largest.
    #[serde(default)]
    pub which: Option<String>,
    /// Values by name, for `text`, of the points of the row.
    #[serde(default)]
    pub values: BTreeMap<String, ColumnValue>,
    /// A column for each value of these axes.
    #[serde(default)]
    pub by: Vec<String>,
    /// Digits behind the point.
    #[serde(default)]
    pub digits: usize,
    /// Whether a number is a bound where a run was ended early: `over 12.3`, with a digit less.
    #[serde(default)]
    pub bound: bool,
    /// Whether half of the confidence interval follows.
    #[serde(default)]
    pub plus_minus: bool,
}

/// As [`ValueOf`], which serde cannot flatten where unknown fields are refused.
#[derive(Clone, Debug, Deserialize)]
pub struct ColumnValue {
    /// See there.
    #[serde(default)]
    pub of: String,
    /// See there; without it the table's.
    #[serde(default)]
    pub runs: Option<String>,
    /// See there.
    #[serde(default)]
    pub r#where: Selection,
    /// See there.
    #[serde(default)]
    pub beside: Selection,
    /// See there.
    #[serde(default)]
    pub take: Option<String>,
    /// See there.
    #[serde(default)]
    pub along: Option<String>,
}

/// A statement of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimOf {
    /// The statement, with what we take it to mean in brackets.
    pub says: String,
    /// The paper's sentence, word for word, where it is one.
    #[serde(default)]
    pub quote: String,
    /// The paper's number or words.
    pub paper: String,
    /// Ours: a text with values, or arithmetic over them, between braces (`text.rs`).
    #[serde(default)]
    pub here: String,
    /// Tests that all must hold (`judge.rs`).
    #[serde(default)]
    pub holds: Vec<String>,
    /// Values by name, for `here` and `holds`.
    #[serde(default)]
    pub values: BTreeMap<String, ValueOf>,
    /// Values without which it cannot be tested: where one is nowhere, `otherwise` says why.
    #[serde(default)]
    pub needs: Vec<String>,
    /// The section of the figure's Markdown file that explains a difference; its cause has been tested. In these
    /// sections values may stand between braces.
    #[serde(default)]
    pub because: String,
    /// The same of a cause that has not been tested.
    #[serde(default)]
    pub perhaps: String,
    /// The section that says why it can hardly fail: then it counts as implied where it holds.
    #[serde(default)]
    pub implied: String,
    /// The only form in which it is tested.
    #[serde(default)]
    pub only: String,
    /// The fewest seeds with which it is tested.
    #[serde(default)]
    pub seeds: u32,
    /// The section that says why it is not tested in other forms, with fewer seeds, or at all, where `holds` is empty.
    #[serde(default)]
    pub otherwise: String,
    /// Whether it takes nothing from runs, or compares seeds, so that no seed alone has an outcome of its own.
    #[serde(default)]
    pub computed: bool,
    /// What is different in the reduced forms.
    #[serde(default)]
    pub reduced: Option<ReducedOf>,
}

/// What a claim's explanations are in the reduced forms.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReducedOf {
    /// Instead of the claim's.
    #[serde(default)]
    pub paper: Option<String>,
    /// Instead of the claim's.
    #[serde(default)]
    pub because: String,
    /// Instead of the claim's.
    #[serde(default)]
    pub perhaps: String,
}
