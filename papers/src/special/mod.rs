//! What figures need that their files cannot say, by name.
//!
//! A file asks for it by `special = "NAME"` ([`findings`]), in a value by `computed = "NAME"` ([`computed`]), in a
//! curve by `computed = "NAME"` ([`curve`]), or in runs, which are none then, by `computed = "NAME"` ([`point`]).

mod busy;
mod credit_rules;
mod fall;
mod match_bits;
mod memory;
mod phases;
mod piggyback;
mod ranks;
mod trace;

use std::collections::BTreeMap;

use tidegate_sim::SimulationError;

use crate::data::{Key, Named, Points};
use crate::report::Findings;
use crate::workshop::Workshop;

/// Packets of a 2 KiB message with its 16-byte header, of which P's figures are.
const MESSAGE_PACKETS: u32 = 37;

/// Adds to a figure's findings.
type FindingsOf = fn(&Workshop<'_>, &Points) -> Result<Findings, SimulationError>;
/// Numbers of a claim.
type NumbersOf = fn(&Points, &crate::data::ValueOf) -> Result<Named, String>;
/// Points of a curve.
type CurveOf = fn(&Points) -> Result<Vec<(f64, f64)>, String>;

/// What is known of a point with these keys, by name.
type PointOf = fn(&BTreeMap<String, Key>) -> Result<Vec<(&'static str, String)>, String>;

/// Whole additions to figures.
const FINDINGS: &[(&str, FindingsOf)] = &[("busy_senders", busy::pictures), ("credits_over_phases", phases::picture)];
/// Numbers of claims.
const NUMBERS: &[(&str, NumbersOf)] = &[
    ("most_senders_busy", busy::long),
    ("fall_leaves", fall::leaves),
    ("fall_stable", fall::stable),
    ("fall_slope_before", fall::slope_before),
    ("fall_slope_beyond", fall::slope_beyond),
    ("fall_height", fall::height),
    ("credits_of_phases", phases::credits),
    ("messages_of_busiest", ranks::busiest),
    ("messages_of_nearest", ranks::nearest),
    ("most_credit_messages", ranks::most_credits),
    ("memory_at_equal_overhead", memory::at_equal_overhead),
    ("teeth_of_saved", piggyback::teeth),
    ("apart_from_the_long_run", piggyback::apart),
];
/// Points of curves.
const CURVES: &[(&str, CurveOf)] = &[("saved_in_the_long_run", piggyback::curve)];

/// What is known of points without runs.
const POINTS: &[(&str, PointOf)] = &[
    ("thresholds", credit_rules::thresholds),
    ("slots_without_stall", credit_rules::without_stall),
    ("trace_of_dynamic", trace::step),
    ("static_and_dynamic_alike", trace::alike),
    ("receiver_memory", memory::receiver),
    ("match_bits", match_bits::search),
    ("circle", match_bits::circle),
];

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

/// What runs that are computed ask for, at a point with these keys.
///
/// # Errors
/// If nothing has that name, or the keys are not what it needs.
pub fn point(name: &str, keys: &BTreeMap<String, Key>) -> Result<Vec<(&'static str, String)>, String> {
    found(POINTS, name)?(keys)
}

/// A number among the keys of a point.
fn number(keys: &BTreeMap<String, Key>, name: &str) -> Result<u32, String> {
    let number = keys.get(name).and_then(|key| key.number);
    number.map(|number| number as u32).ok_or_else(|| format!("a number {name} is needed"))
}
