//! What figures need that their files cannot say, by name.
//!
//! A file asks for it by `special = "NAME"` ([`findings`]), in a value by `computed = "NAME"` ([`computed`]), or in a curve by
//! `computed = "NAME"` ([`curve`]).

mod fall;
mod piggyback;

use tidegate_sim::SimulationError;

use crate::data::{Named, Points};
use crate::report::Findings;
use crate::workshop::Workshop;

/// Adds to a figure's findings.
type FindingsOf = fn(&Workshop<'_>, &Points) -> Result<Findings, SimulationError>;
/// Numbers of a claim.
type NumbersOf = fn(&Points, &crate::data::ValueOf) -> Result<Named, String>;
/// Points of a curve.
type CurveOf = fn(&Points) -> Result<Vec<(f64, f64)>, String>;

/// Whole additions to figures.
const FINDINGS: &[(&str, FindingsOf)] = &[];
/// Numbers of claims.
const NUMBERS: &[(&str, NumbersOf)] = &[
    ("fall_leaves", fall::leaves),
    ("fall_stable", fall::stable),
    ("fall_slope_before", fall::slope_before),
    ("fall_slope_beyond", fall::slope_beyond),
    ("fall_height", fall::height),
    ("teeth_of_saved", piggyback::teeth),
    ("apart_from_the_long_run", piggyback::apart),
];
/// Points of curves.
const CURVES: &[(&str, CurveOf)] = &[("saved_in_the_long_run", piggyback::curve)];

fn found<T: Copy>(all: &[(&str, T)], name: &str) -> Result<T, String> {
    let known = || all.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
    all.iter()
        .find(|(known, _)| *known == name)
        .map(|(_, of)| *of)
        .ok_or_else(|| format!("special/ has no {name}, but {}", known()))
}

/// What a figure's file asks for by `special`.
///
/// # Errors
/// If nothing has that name, or a run fails.
pub fn findings(name: &str, workshop: &Workshop<'_>, points: &Points) -> Result<Findings, SimulationError> {
    found(FINDINGS, name).map_err(SimulationError::Setup)?(workshop, points)
}

/// What a value asks for by `computed`.
///
/// # Errors
/// If nothing has that name, or it does not fit the points.
pub fn computed(name: &str, points: &Points, value: &crate::data::ValueOf) -> Result<Named, String> {
    found(NUMBERS, name)?(points, value)
}

/// What a curve asks for by `computed`.
///
/// # Errors
/// If nothing has that name, or it does not fit the points.
pub fn curve(name: &str, points: &Points) -> Result<Vec<(f64, f64)>, String> {
    found(CURVES, name)?(points)
}
