//! [`Definition`]: a figure's file, as it is written. What each field means, and which words it may have, is said in
//! `docs/add-a-figure.md`, section by section.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Table, Value};

use super::select::Take;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Definition {
    pub id: String,
    pub title: String,
    pub section: String,
    pub runs: BTreeMap<String, Table>,
    pub runs_of: Option<String>,
    pub common: BTreeMap<String, Table>,
    pub values: Values,
    pub pictures: Vec<PictureOf>,
    pub tables: Vec<TableOf>,
    pub claims: Vec<ClaimOf>,
    pub special: Option<String>,
}

pub type Values = BTreeMap<String, ValueOf>;

/// Points of the runs: for each axis a value, a list of values, or a comparison such as `<= 30` or `16..30`.
pub type Selection = BTreeMap<String, Value>;

/// Numbers of some points. It stands within other tables, which refuse unknown fields.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Numbers {
    pub of: String,
    pub runs: Option<String>,
    pub r#where: Selection,
    pub beside: Selection,
    pub take: Take,
    pub along: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValueOf {
    #[serde(flatten)]
    pub numbers_of: Numbers,
    pub each: Vec<String>,
    pub of_seeds: Take,
    pub first: Option<Box<ValueOf>>,
    /// Numbers that are no measurements; with `computed`, what it is computed for.
    pub numbers: Vec<f64>,
    pub computed: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PictureOf {
    pub name: String,
    pub title: String,
    pub x_axis: String,
    pub y_axis: String,
    pub runs_each: Vec<String>,
    pub bars: bool,
    pub series: Vec<SeriesOf>,
    pub series_by: Vec<String>,
    pub mean_panel: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SeriesOf {
    pub name: String,
    pub panel: String,
    pub x: String,
    #[serde(flatten)]
    pub numbers: Numbers,
    pub by: Vec<String>,
    pub paper: Vec<[f64; 2]>,
    pub bound: bool,
    pub computed: Option<String>,
    pub scheme: String,
    pub piggyback: Option<bool>,
    pub ended_only: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TableOf {
    pub name: String,
    pub title: String,
    pub rows: Vec<String>,
    pub row: String,
    pub heads: Vec<String>,
    pub lines: Vec<Vec<String>>,
    pub runs: Option<String>,
    pub runs_each: Vec<String>,
    pub r#where: Selection,
    pub columns: Vec<ColumnOf>,
    pub columns_by: Vec<String>,
    pub absent: bool,
    pub below: Vec<Vec<String>>,
    pub totals: Vec<TotalOf>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TotalOf {
    pub name: String,
    pub take: Take,
    pub of: Option<String>,
    pub digits: Option<usize>,
    pub columns: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ColumnOf {
    pub head: String,
    #[serde(flatten)]
    pub numbers: Numbers,
    pub text: String,
    pub which: Option<String>,
    pub values: BTreeMap<String, Numbers>,
    pub by: Vec<String>,
    pub digits: usize,
    pub bound: bool,
    pub plus_minus: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClaimOf {
    pub says: String,
    pub quote: String,
    pub paper: String,
    pub here: String,
    pub holds: Vec<String>,
    pub values: Values,
    pub needs: Vec<String>,
    pub because: String,
    pub perhaps: String,
    pub implied: String,
    pub only: String,
    pub seeds: u32,
    pub otherwise: String,
    pub computed: bool,
    /// What stands instead of its `paper`, `because` and `perhaps` in the reduced forms.
    pub reduced: Option<Box<ClaimOf>>,
}
