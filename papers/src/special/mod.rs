//! What figures need that their files cannot say, by name: `special` asks for [`pictures`], `computed` in a value for
//! numbers ([`computed`]), in a curve for its points ([`curve`]), in runs, which are none then, for a [`point`].

mod busy;
mod credit_rules;
mod ends;
mod fall;
mod increments;
mod match_bits;
mod memory;
mod over_time;
mod phases;
mod piggyback;
mod ranks;
mod receiver;
mod trace;

use crate::data::{BadFigure, Keys, Named, Points, ValueOf};
use crate::report::Figure;

/// Packets of a 2 KiB message with its 16-byte header, of which P's figures are.
const MESSAGE_PACKETS: u32 = 37;

/// What is known of a point, by name; or why nothing can be.
type Known = Result<Vec<(&'static str, String)>, BadFigure>;

fn unknown<T>(name: &str) -> Result<T, BadFigure> {
    Err(format!("papers/src/special/ has no function `{name}`").into())
}

/// Pictures beside those that a figure's file describes.
pub fn pictures(name: &str, points: &Points) -> Result<Vec<Figure>, BadFigure> {
    match name {
        "busy_senders" => busy::pictures(points),
        "rates_over_time" => over_time::pictures(points),
        "credits_over_phases" => phases::pictures(points),
        _ => unknown(name),
    }
}

/// Numbers of a value.
pub fn computed(name: &str, points: &Points, value: &ValueOf) -> Result<Named, BadFigure> {
    match name {
        "most_senders_busy" => busy::long(points, value),
        "fall_leaves" => fall::of_each(points, value, |fall| fall.leaves),
        "fall_stable" => fall::of_each(points, value, |fall| fall.stable),
        "fall_slope_before" => fall::of_each(points, value, |fall| fall.before),
        "fall_slope_beyond" => fall::of_each(points, value, |fall| fall.beyond),
        "fall_height" => fall::of_each(points, value, |fall| fall.height),
        "credits_of_phases" => phases::credits(points, value),
        "messages_of_busiest" => ranks::busiest(points, value),
        "messages_of_nearest" => ranks::nearest(points, value),
        "most_credit_messages" => ranks::most_credits(points, value),
        "memory_at_equal_overhead" => memory::at_equal_overhead(points, value),
        "teeth_of_saved" => piggyback::teeth(points),
        "apart_from_the_long_run" => piggyback::apart(points),
        _ => unknown(name),
    }
}

/// Points of a curve.
pub fn curve(name: &str, points: &Points) -> Result<Vec<(f64, f64)>, BadFigure> {
    if name == "saved_in_the_long_run" { piggyback::curve(points) } else { unknown(name) }
}

/// What is known of a point without runs.
pub fn point(name: &str, keys: &Keys) -> Known {
    match name {
        "thresholds" => credit_rules::thresholds(keys),
        "regions" => credit_rules::regions(keys),
        "slots_without_stall" => credit_rules::without_stall(keys),
        "trace_of_dynamic" => trace::step(keys),
        "static_and_dynamic_alike" => trace::alike(),
        "worked_example_of_static" => receiver::worked_example(),
        "active_senders_change" => increments::phases(keys),
        "does_it_end" => ends::does_it(keys),
        "senders_at_rates" => receiver::at_rates(keys),
        "receiver_memory" => memory::receiver(keys),
        "match_bits" => match_bits::search(keys),
        "circle" => match_bits::circle(keys),
        _ => unknown(name),
    }
}

fn number(keys: &Keys, name: &str) -> Result<u32, BadFigure> {
    let number = keys.get(name).and_then(|key| key.number);
    number.map(|number| number as u32).ok_or_else(|| format!("a number {name} is needed").into())
}
