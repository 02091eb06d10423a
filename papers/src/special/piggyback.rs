//! P figure 9: how many credit packets piggybacking saves in the long run, and the teeth of a saw.

use super::MESSAGE_PACKETS;
use super::credit_rules::threshold;
use crate::data::{BadFigure, Named, Numbers, Points, ValueOf};

/// Percent of the credit packets that piggybacking saves in the long run with 2 credit slots: only the last packet of a
/// message has room, and what rides there is what the thresholds of the other's message left.
fn saved_in_the_long_run(slots: u32) -> Result<f64, BadFigure> {
    let threshold = threshold(slots, 2)?;
    let sent_for = MESSAGE_PACKETS / threshold * threshold;
    Ok(100.0 * (1.0 - f64::from(sent_for) / f64::from(MESSAGE_PACKETS)))
}

fn measured(points: &Points) -> Result<Vec<(f64, f64)>, BadFigure> {
    let numbers_of = Numbers {
        of: "credits_saved".to_owned(),
        r#where: [("piggyback".to_owned(), true.into())].into(),
        beside: [("piggyback".to_owned(), false.into())].into(),
        ..Numbers::default()
    };
    let found = points.value(&ValueOf { numbers_of, each: vec!["slots_per_peer".to_owned()], ..ValueOf::default() })?;
    let slots = |key: &String| key.parse().map_err(|_| format!("{key}: a number of slots is needed"));
    found.keys.iter().zip(found.numbers).map(|(key, saved)| Ok((slots(key)?, saved))).collect()
}

pub(super) fn curve(points: &Points) -> Result<Vec<(f64, f64)>, BadFigure> {
    let first = measured(points)?.first().map_or(8.0, |point| point.0) as u32;
    (first..=64).map(|slots| Ok((f64::from(slots), saved_in_the_long_run(slots)?))).collect()
}

/// How far what is measured lies from that, mean over the sizes.
pub(super) fn apart(points: &Points) -> Result<Named, BadFigure> {
    let (measured, mut sum) = (measured(points)?, 0.0);
    for (slots, saved) in &measured {
        sum += (saved - saved_in_the_long_run(*slots as u32)?).abs();
    }
    Ok(Named { keys: Vec::new(), numbers: vec![sum / measured.len().max(1) as f64] })
}

/// Teeth of the saw: values that lie at least 2 percentage points above the lowest before them, since the last tooth,
/// and above one behind them.
pub(super) fn teeth(points: &Points) -> Result<Named, BadFigure> {
    let (mut teeth, mut lowest, mut highest) = (0.0, f64::MAX, f64::MIN);
    for (_, value) in measured(points)? {
        let is_tooth = highest > lowest + 2.0 && value < highest - 2.0;
        teeth += f64::from(u8::from(is_tooth));
        if is_tooth || value < lowest {
            (lowest, highest) = (value, f64::MIN);
        }
        highest = highest.max(value);
    }
    Ok(Named { keys: Vec::new(), numbers: vec![teeth] })
}
