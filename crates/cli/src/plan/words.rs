//! What was found, in sentences that say what to do.

use tidegate_message::Unit;

use super::choice::{Choice, Wish};
use super::margin::{FACTOR, Margin};
use super::setting::{Knob, Setting};
use crate::report::units::human;

/// What it means that a setting hangs.
pub const HANGS: &str = "A setting hangs if ranks wait for each other for ever: each sends before it receives, and its \
    message finds no room and no credit. MPI does not promise to carry such messages. The remedy is in the program \
    (MPI_Irecv before MPI_Send, or MPI_Sendrecv); with what is recommended the simulation did not hang, but a real job \
    may.";

/// Where nothing is enough.
pub const NOTHING: &str = "Nothing that was tried is enough. In this trace ranks send much earlier than others receive, so \
    any bound on memory makes them wait. Allow more time (--overhead 50%), or find out with `tidegate run --record` and \
    `tidegate report` which rank receives late: there it is decided how long the job takes.";

/// How sure a plan is.
pub const SURENESS: &str = "These are simulated numbers. Counts of messages and packets come out right, sends that are delayed and \
    peaks mostly within a factor of two, and times only compare settings with each other (docs/plan.md has the measurements).";

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

/// What is to be said of one scheme.
pub fn notes(choice: &Choice, wish: &Wish) -> Vec<String> {
    let Choice { scheme, chosen, hung, tried, .. } = choice;
    let mut notes = Vec::new();
    for (small, large) in &choice.inversions {
        let then = match choice.is_enough {
            true => ", and the setting in the table lies above both",
            false => "",
        };
        notes.push(format!(
            "{scheme}: more memory did not always help: {} is enough, {} is not. Such differences are close to what \
             --overhead allows, so chance decides them{then}. With --seeds 3 or a larger --overhead they count less.",
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

/// Why a recommended setting is larger than the least.
pub fn why_more(choice: &Choice, margin: &Margin, least_memory: Option<usize>) -> Option<String> {
    let least = choice.least?;
    let (fewest, memory) = (least.amount.in_words(), bytes(least_memory?));
    let mut text = format!(
        "The least that was found enough is {fewest} without a bound on memory, and {memory} with the {} that are \
         recommended. The recommendation is {FACTOR} times that, because simulated peaks and delays are off by up to that \
         factor as a rule.",
        choice.chosen.setting.in_words()
    );
    let (needed, doubled) = (margin.slots_of_message(), least.amount.amount * FACTOR);
    if Knob::of(choice.scheme) == Knob::Slots && needed > doubled {
        text.push_str(&format!(
            " It has {needed} slots at least, because the largest eager message of the trace ({} B) takes {} packets, and \
             {} slots are for credits: with fewer, each such message waits for credits on its way, which costs little \
             here and much where many ranks send to one.",
            margin.message_bytes, margin.message_packets, margin.credit_slots
        ));
    }
    Some(text)
}

/// What it costs that a setting has fewer slots than one message takes, if it has. Only users can ask for that.
pub fn too_few(setting: &Setting, margin: &Margin) -> Option<String> {
    let needed = margin.slots_of_message();
    (Knob::of(setting.scheme) == Knob::Slots && setting.amount < needed).then(|| {
        format!(
            "Take care: {} slots hold no message of {} B, the largest eager one of this trace, which takes {} packets and {} \
             slots for credits. It leaves in pieces that wait for credits. Where many ranks send to one, or a receiver has \
             to share its processor, that makes a job many times slower; --slots {needed} or more avoids it.",
            setting.amount, margin.message_bytes, margin.message_packets, margin.credit_slots
        )
    })
}
