//! How far predictions were from real runs: what `docs/plan.md` measured, for the foot of each report.

/// How far one number of a prediction was off.
#[derive(Clone, Copy, Debug)]
pub struct PredictionError {
    /// Which number.
    pub what: &'static str,
    /// How far, in words.
    pub error: &'static str,
}

/// Where the numbers come from.
pub const SOURCE: &str = "docs/plan.md";

/// Of each number of the table.
pub const ERRORS: &[PredictionError] = &[];
