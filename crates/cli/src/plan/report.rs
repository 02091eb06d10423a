//! What was found, as a table and as JSON.

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::{Value, json};
use tidegate_message::{Counter, Unit};
use tidegate_sim::SimulationConfig;

use super::choice::{Choice, Wish};
use super::errors::{ERRORS, SOURCE};
use super::machine::PEERS_SPARE;
use super::runs::Outcomes;
use crate::report::units::human;

/// Version of the JSON.
pub const PLAN_SCHEMA: &str = "tidegate-plan/1";

/// What it means that a setting hangs.
const HANGS: &str = "Where a setting hangs, ranks wait for each other for ever: each sends before it receives, and its \
    message finds no room or no credit. Real jobs do the same, and with a little more it is a matter of chance.";

/// All that a report says.
#[derive(Debug)]
pub struct Findings<'a> {
    /// What the trace is called.
    pub trace: String,
    /// Its ranks.
    pub ranks: u32,
    /// Its messages, and their bytes.
    pub messages: (u64, u64),
    /// Those of them that are longer than may be sent eagerly.
    pub long_messages: u64,
    /// What was recognised, where the trace was scaled up.
    pub pattern: Option<String>,
    /// What the machine is called.
    pub machine_name: &'a str,
    /// The machine.
    pub machine: &'a SimulationConfig,
    /// What the user wants of `--peers`, which else leaves room for some more processes.
    pub peers: Option<u32>,
    /// What was searched for.
    pub wish: &'a Wish,
    /// With how many seeds.
    pub seeds: u32,
    /// With ample memory.
    pub ample: &'a Outcomes,
    /// Whether everything was asked for, instead of the least.
    pub is_all: bool,
    /// Of each scheme.
    pub choices: &'a [Choice],
}

/// A choice that is recommended, and why.
#[derive(Debug)]
pub struct Recommendation<'a> {
    /// The choice.
    pub choice: &'a Choice,
    /// Options of `tidegate run`.
    pub options: String,
    /// A sentence or two.
    pub why: String,
}

/// Memories that differ by less are the same: then the scheme decides that comes first.
const SAME_MEMORY: f64 = 1.02;

/// Which counters are shown, and what they are called.
const SHOWN: [(Counter, &str); 6] = [
    (Counter::SendsDelayed, "sends delayed"),
    (Counter::CreditPackets, "credit packets"),
    (Counter::Refusals, "refusals"),
    (Counter::SendsDeferred, "deferred"),
    (Counter::MailboxPeak, "mailbox peak"),
    (Counter::UnexpectedPeak, "unexpected peak"),
];

impl Findings<'_> {
    /// The least memory of all that are enough. `None`: nothing is.
    pub fn recommend(&self) -> Option<Recommendation<'_>> {
        let memory = |choice: &Choice| choice.chosen.setting.memory(self.machine);
        let enough = || self.choices.iter().filter(|choice| choice.is_enough && memory(choice).is_some());
        let least = enough().filter_map(memory).min()?;
        let choice =
            enough().find(|choice| memory(choice).is_some_and(|bytes| bytes as f64 <= least as f64 * SAME_MEMORY))?;
        let others: Vec<String> = enough()
            .filter(|other| other.scheme != choice.scheme)
            .filter_map(|other| Some(format!("{} {}", other.scheme, bytes(memory(other)?))))
            .collect();
        let beside = match others.is_empty() {
            true => String::new(),
            false => format!("; of the others {} are enough", others.join(", ")),
        };
        let least = memory(choice).map_or_else(String::new, bytes);
        let why = format!(
            "{} of receive memory for each process is the least with which the trace takes at most {} longer than with ample \
             memory: {}{beside}.",
            least,
            percent(self.wish.overhead),
            how_much_longer(choice.chosen.overhead.median()),
        );
        Some(Recommendation {
            choice,
            options: choice.chosen.setting.options(self.machine, self.peers.unwrap_or(self.ranks + PEERS_SPARE)),
            why,
        })
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let (messages, payload) = self.messages;
        let _ = writeln!(
            text,
            "{}: {} ranks, {} messages, {}; on {}; {} seed{}",
            self.trace,
            self.ranks,
            human(messages, Unit::Count),
            human(payload, Unit::Bytes),
            self.machine_name,
            self.seeds,
            if self.seeds == 1 { "" } else { "s" },
        );
        if let Some(pattern) = &self.pattern {
            let _ = writeln!(text, "scaled up: {pattern}; sizes of messages and times of computation stay as they are");
        }
        let _ = writeln!(
            text,
            "with ample memory: {}\n",
            human((self.ample.time().mean() * 1000.0) as u64, Unit::Nanoseconds)
        );
        let _ = writeln!(text, "{}\n", self.table());
        for choice in self.choices {
            for inversion in &choice.inversions {
                let _ = writeln!(text, "{}: more is not always better: {inversion}.", choice.scheme);
            }
            if choice.hung > 0 && !self.is_all {
                let Choice { scheme, hung, tried, .. } = choice;
                let _ = writeln!(text, "{scheme}: {hung} of the {tried} settings that were tried hang.");
            }
            if !choice.is_enough && !self.is_all {
                let _ =
                    writeln!(text, "{}: not enough with anything that was tried; shown is the most.", choice.scheme);
            }
        }
        if self.choices.iter().any(|choice| choice.hung > 0) {
            let _ = writeln!(text, "{HANGS}");
        }
        match self.recommend() {
            Some(found) => {
                let _ = writeln!(text, "Recommended:\n  tidegate run {}\n{}", found.options, found.why);
            }
            None if self.is_all => {}
            None => {
                let _ = writeln!(
                    text,
                    "Nothing that was tried is enough: allow more (--overhead), or try more (--slots, --buffers)."
                );
            }
        }
        if self.long_messages > 0 {
            let _ = writeln!(
                text,
                "\n{} messages are above the eager limit: their data is read directly here, as with --bulk direct. With --bulk \
                 auto, the default, some of it may go through the mailbox, in more packets that wait for credits.",
                human(self.long_messages, Unit::Count)
            );
        }
        if !ERRORS.is_empty() {
            let _ = writeln!(text, "\nHow far such predictions were from real runs ({SOURCE}):");
            for error in ERRORS {
                let _ = writeln!(text, "  {}: {}", error.what, error.error);
            }
        }
        text
    }

    fn table(&self) -> String {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        let fixed = ["scheme", "setting", "memory", "time", "seeds"];
        let shown: Vec<_> = SHOWN.iter().filter(|(counter, _)| self.is_of_interest(*counter)).collect();
        table.set_header(fixed.into_iter().chain(shown.iter().map(|(_, name)| *name)).collect::<Vec<_>>());
        for choice in self.choices {
            let chosen = &choice.chosen;
            let overhead = &chosen.overhead;
            let time = match (chosen.outcomes.hangs(), chosen.outcomes.was_cut()) {
                (true, _) => "hangs".to_owned(),
                (false, true) => "longer".to_owned(),
                (false, false) => format!("{:+.1} %", 100.0 * overhead.median()),
            };
            let range = overhead.range().filter(|_| !chosen.outcomes.was_cut() && !chosen.outcomes.hangs());
            let mut cells = vec![
                choice.scheme.to_string(),
                chosen.setting.in_words(),
                chosen.setting.memory(self.machine).map_or("no bound".to_owned(), bytes),
                time,
                range
                    .map_or_else(String::new, |(least, most)| format!("{:+.1} to {:+.1}", 100.0 * least, 100.0 * most)),
            ];
            cells.extend(shown.iter().map(|(counter, _)| number(&chosen.outcomes, *counter)));
            table.add_row(cells);
        }
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    /// Whether a counter is not zero for all.
    fn is_of_interest(&self, counter: Counter) -> bool {
        self.choices.iter().any(|choice| choice.chosen.outcomes.most(counter) > 0)
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let choices: Vec<Value> = self.choices.iter().map(|choice| self.choice_json(choice)).collect();
        let recommended = self.recommend().map(|found| {
            json!({
                "scheme": found.choice.scheme.name(),
                "command": format!("tidegate run {}", found.options),
                "why": found.why,
            })
        });
        let errors: Vec<Value> = ERRORS.iter().map(|error| json!({ "of": error.what, "error": error.error })).collect();
        json!({
            "schema": PLAN_SCHEMA,
            "trace": self.trace,
            "ranks": self.ranks,
            "messages": self.messages.0,
            "bytes": self.messages.1,
            "messages_above_eager_limit": self.long_messages,
            "scaled_up": self.pattern,
            "machine": self.machine_name,
            "overhead": self.wish.overhead,
            "seeds": self.seeds,
            "ample_us": self.ample.time().mean(),
            "choices": choices,
            "recommended": recommended,
            "errors": { "source": SOURCE, "of": errors },
        })
    }

    fn choice_json(&self, choice: &Choice) -> Value {
        let chosen = &choice.chosen;
        let overhead = &chosen.overhead;
        // Parts and uses of a bound say nothing where there is none.
        let is_bound = |counter: &Counter| {
            use Counter::{ReceiveBound, ReceiveFixedBytes, ReceivePeak, WindowBytes};
            matches!(counter, ReceiveBound | ReceiveFixedBytes | ReceivePeak | WindowBytes)
        };
        let counters: serde_json::Map<String, Value> = Counter::ALL
            .iter()
            .filter(|counter| chosen.setting.room.is_some() || !is_bound(counter))
            .map(|&counter| (counter.name().to_owned(), json!(chosen.outcomes.counter(counter))))
            .filter(|(_, value)| value.as_f64() != Some(0.0))
            .collect();
        json!({
            "scheme": choice.scheme.name(),
            "is_enough": choice.is_enough,
            "options": chosen.setting.options(self.machine, self.peers.unwrap_or(self.ranks + PEERS_SPARE)),
            "amount": chosen.setting.amount,
            "memory_bytes": chosen.setting.memory(self.machine),
            "was_cut": chosen.outcomes.was_cut(),
            "hangs": chosen.outcomes.hangs(),
            "overhead": overhead.median(),
            "overhead_range": overhead.range().map(|(least, most)| [least, most]),
            "time_us": chosen.outcomes.time().mean(),
            "settings_tried": choice.tried,
            "settings_that_hang": choice.hung,
            "not_monotone": choice.inversions,
            "counters": counters,
        })
    }
}

fn bytes(count: usize) -> String {
    human(count as u64, Unit::Bytes)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn how_much_longer(share: f64) -> String {
    format!("{} {}", percent(share.abs()), if share < 0.0 { "shorter" } else { "longer" })
}

/// A counter of the job: the mean of the seeds, of a peak the most.
fn number(outcomes: &Outcomes, counter: Counter) -> String {
    let value = match counter {
        Counter::MailboxPeak | Counter::UnexpectedPeak => outcomes.most(counter),
        _ => outcomes.counter(counter).round() as u64,
    };
    human(value, counter.unit())
}
