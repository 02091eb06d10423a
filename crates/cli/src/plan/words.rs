//! The findings, in sentences that say what to do.

use tidegate_message::Unit;

use super::choice::{Choice, Wish};
use super::margin::{FACTOR, Margin};
use super::setting::{Knob, Setting};
use crate::report::units::human;

/// The meaning of a setting that hangs.
pub const HANGS: &str = "A setting hangs if ranks wait for each other for ever: each sends before it receives, and its \
    message finds no room and no credit. MPI does not promise to carry such messages. The remedy is in the program \
    (MPI_Irecv before MPI_Send, or MPI_Sendrecv); with what is recommended the simulation did not hang, but a real job \
    may.";

/// Where nothing is enough.
pub const NOTHING: &str = "Nothing that was tried is enough. In this trace ranks send much earlier than others receive, so \
    any bound on memory makes them wait. Allow more time (--overhead 50%), or find out with `tidegate run --record` and \
    `tidegate report` which rank receives late: there it is decided how long the job takes.";

/// How sure a plan is.
pub const SURENESS: &str = "These are simulated numbers. Counts of messages and packets come out right, sends that are delayed \
    mostly within a factor of two, peaks less exactly; times only compare settings with each other (docs/plan.md has the \
    measurements).";

pub fn bytes(count: usize) -> String {
    human(count as u64, Unit::Bytes)
}

pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

pub fn how_much_longer(share: f64) -> String {
    format!("{} {}", percent(share.abs()), if share < 0.0 { "shorter" } else { "longer" })
}

/// A setting as a sentence names it: its slots, or its room for messages where that is bound.
fn named(setting: &Setting) -> String {
    match setting.room {
        None => setting.in_words(),
        Some(room) => format!("{} with {} of room for messages", setting.in_words(), bytes(room)),
    }
}

/// The sentences on one scheme, below the table.
pub fn notes(choice: &Choice, wish: &Wish) -> Vec<String> {
    let Choice { scheme, chosen, hung, tried, .. } = choice;
    let mut notes = Vec::new();
    for (small, large) in &choice.inversions {
        let then = match choice.is_enough {
            true => ", so the setting in the table lies above both",
            false => "",
        };
        notes.push(format!(
            "{scheme}: more memory did not always help: {} was enough, {} was not{then}. Near to what --overhead allows, chance \
             decides: take a larger --overhead, or --seeds 3, if you want to know more exactly.",
            named(small),
            named(large)
        ));
    }
    if *hung > 0 {
        notes.push(format!("{scheme}: {hung} of the {tried} settings that were tried hang."));
    }
    if !choice.is_enough {
        let most = named(&chosen.setting);
        let how = match (chosen.outcomes.hangs(), chosen.outcomes.was_cut()) {
            (true, _) => "the job hangs".to_owned(),
            (false, true) => "the trace takes more than three times as long as is allowed".to_owned(),
            (false, false) => format!(
                "the trace takes {}, and --overhead allows {}",
                how_much_longer(chosen.overhead.median()),
                percent(wish.overhead)
            ),
        };
        notes.push(format!("{scheme}: not enough with anything that was tried. With the most, {most}, {how}."));
    }
    notes
}

/// The least that was found enough, and why the recommended setting is larger.
pub fn why_more(choice: &Choice, margin: &Margin, least_memory: Option<usize>) -> Vec<String> {
    let (Some(least), Some(memory)) = (choice.least, least_memory) else { return Vec::new() };
    let (knob, chosen) = (Knob::of(choice.scheme), &choice.chosen.setting);
    let mut text = vec![format!(
        "The least that was found enough: {} (without a bound on memory), and {} of memory (with {}).",
        least.amount.in_words(),
        bytes(memory),
        chosen.in_words(),
    )];
    if chosen.amount < margin.amount(knob, least.amount.amount) {
        text.push(format!("There is no margin: {} allows no more.", knob.option()));
        return text;
    }
    text.push(format!(
        "What is recommended has at least twice the {} and twice the room for messages: where plans were \
         compared with real jobs, delays and peaks were mostly up to twice the simulated ones, and no run is like another.",
        knob.plural(),
    ));
    let (needed, doubled) = (margin.slots_of_message(), least.amount.amount * FACTOR);
    if knob == Knob::Slots && needed > doubled {
        let Margin { message_bytes, message_packets, credit_slots, .. } = margin;
        text.push(format!(
            "One message of {message_bytes} B, the largest eager one of the trace, takes {needed} slots: {message_packets} \
             packets, and {credit_slots} slots are for credits. With fewer it waits for credits on its way, which costs \
             little in this simulation and much where many ranks send to one or share processors."
        ));
    }
    text
}

/// The cost of a setting with fewer slots than one message takes. Only users can ask for one (`--slots`).
pub fn too_few(setting: &Setting, margin: &Margin) -> Option<String> {
    let needed = margin.slots_of_message();
    (Knob::of(setting.scheme) == Knob::Slots && setting.amount < needed).then(|| {
        format!(
            "Take care: {} slots do not hold one message of {} B, the largest eager one of the trace: it takes {} packets, and {} \
             slots are for credits. So it leaves in pieces that wait for credits. Where many ranks send to one, or ranks \
             share processors, that can make a job many times slower; {needed} slots or more avoid it (--slots).",
            setting.amount, margin.message_bytes, margin.message_packets, margin.credit_slots
        )
    })
}
