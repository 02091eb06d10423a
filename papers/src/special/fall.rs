//! P figure 6: where overhead falls over the size of the mailbox, and how fast, by credit slots.

use std::collections::BTreeMap;

use super::MESSAGE_PACKETS;
use crate::data::{BadFigure, Named, Points, ValueOf};

/// What the overhead of one curve does around the slots at which a message first fits into the data region.
pub(super) struct Fall {
    /// The first point from which on all are lower than every point of the plateau before these slots.
    pub leaves: f64,
    /// The first point from which on all are within a tenth of the whole fall of the last one's level.
    pub stable: f64,
    pub before: f64,
    /// The same from its end to the last point or the stable part.
    pub beyond: f64,
    /// Percentage points from the plateau's end to the last point.
    pub height: f64,
}

impl Fall {
    fn of(points: &[(u32, f64)], credit_slots: u32) -> Result<Self, BadFigure> {
        // With so many data slots a message first fits.
        let start = MESSAGE_PACKETS + credit_slots;
        let plateau: Vec<(u32, f64)> =
            points.iter().filter(|(slots, _)| (30..start).contains(slots)).copied().collect();
        let ([first, ..], [.., end], [.., last]) = (&plateau[..], &plateau[..], points) else {
            let what = format!("no size from 30 to {start} slots is measured with {credit_slots} credit slots");
            return Err(what.into());
        };
        let lowest = plateau.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        let height = end.1 - last.1;
        let leaves = behind(points, |value| value >= lowest);
        let stable = behind(points, |value| value > last.1 + 0.1 * height);
        let slope =
            |from: &(u32, f64), to: &(u32, f64)| (from.1 - to.1) / f64::from(to.0.saturating_sub(from.0).max(1));
        let slots = |point: Option<&(u32, f64)>| point.map_or(f64::INFINITY, |point| f64::from(point.0));
        Ok(Fall {
            leaves: slots(leaves),
            stable: slots(stable),
            before: slope(first, end),
            beyond: slope(end, stable.unwrap_or(last)),
            height,
        })
    }
}

/// The first point behind the last one that breaks a rule.
fn behind(points: &[(u32, f64)], breaks: impl Fn(f64) -> bool) -> Option<&(u32, f64)> {
    points.get(points.iter().rposition(|point| breaks(point.1)).map_or(0, |index| index + 1))
}

/// A number of the fall of each curve that a value is of.
pub(super) fn of_each(points: &Points, value: &ValueOf, number: fn(&Fall) -> f64) -> Result<Named, BadFigure> {
    let each = ["credit_slots", "slots_per_peer"].map(str::to_owned).to_vec();
    let measured = points.value(&ValueOf { each, computed: None, ..value.clone() })?;
    let mut curves: BTreeMap<u32, Vec<(u32, f64)>> = BTreeMap::new();
    for (key, overhead) in measured.keys.iter().zip(&measured.numbers) {
        let place = key.split_once(' ').and_then(|(credits, slots)| Some((credits.parse().ok()?, slots.parse().ok()?)));
        let (credits, slots) = place.ok_or_else(|| format!("{key}: two numbers of slots are needed"))?;
        curves.entry(credits).or_default().push((slots, *overhead));
    }
    let mut named = Named::default();
    for (credits, mut curve) in curves {
        curve.sort_by_key(|point| point.0);
        named.keys.push(credits.to_string());
        named.numbers.push(number(&Fall::of(&curve, credits)?));
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fall_is_found_where_it_begins_and_ends() {
        let curve = [(30, 22.0), (38, 20.0), (39, 18.0), (48, 2.5), (57, 1.0), (64, 1.0)];
        let fall = Fall::of(&curve, 2).unwrap();
        assert_eq!((fall.leaves, fall.stable, fall.height), (39.0, 48.0, 19.0));
        assert_eq!((fall.before, fall.beyond), (0.25, 1.75));
        let rising = Fall::of(&[(30, 1.0), (38, 2.0), (64, 3.0)], 2).unwrap();
        assert_eq!((rising.leaves, rising.height), (f64::INFINITY, -1.0));
        assert!(Fall::of(&[(16, 9.0), (64, 1.0)], 2).is_err());
    }
}
