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
use super::words::{self, HANGS, NOTHING, SURENESS, bytes, how_much_longer, percent};
use crate::report::units::human;

/// Version of the JSON.
pub const PLAN_SCHEMA: &str = "tidegate-plan/1";

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
    /// A few sentences.
    pub why: Vec<String>,
}

/// Memories that differ by less are the same, since the margin is ten times that: then the scheme decides that comes
/// first.
const SAME_MEMORY: f64 = 1.1;

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
        let setting = &choice.chosen.setting;
        let mut why = vec![format!(
            "With it the trace takes {} than with ample memory (--overhead allows {}), in {} of receive memory for each \
             process.",
            how_much_longer(choice.chosen.overhead.median()),
            percent(self.wish.overhead),
            memory(choice).map_or_else(String::new, bytes),
        )];
        why.extend(words::why_more(choice, &self.wish.margin, self.least_memory(choice)));
        why.extend(words::too_few(setting, &self.wish.margin));
        let options = setting.options(self.machine, self.peers.unwrap_or(self.ranks + PEERS_SPARE));
        Some(Recommendation { choice, options, why })
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
        if !self.is_all {
            for note in self.choices.iter().flat_map(|choice| words::notes(choice, self.wish)) {
                let _ = writeln!(text, "{note}");
            }
        }
        if self.choices.iter().any(|choice| choice.hung > 0) {
            let _ = writeln!(text, "{HANGS}");
        }
        match self.recommend() {
            Some(Recommendation { options, why, .. }) => {
                let _ = writeln!(text, "Recommended:\n  tidegate run {options}\n{}", why.join("\n"));
            }
            None if self.is_all => {}
            None => {
                let _ = writeln!(text, "{NOTHING}");
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
        let _ = writeln!(text, "\n{SURENESS}");
        text
    }

    fn table(&self) -> String {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        let fixed =
            ["scheme", "setting", "memory", "least", "time"].into_iter().chain((self.seeds > 1).then_some("seeds"));
        let shown: Vec<_> = SHOWN.iter().filter(|(counter, _)| self.is_of_interest(*counter)).collect();
        table.set_header(fixed.chain(shown.iter().map(|(_, name)| *name)).collect::<Vec<_>>());
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
                self.least_memory(choice).map_or_else(String::new, bytes),
                time,
            ];
            if self.seeds > 1 {
                let words = range.map(|(least, most)| format!("{:+.1} to {:+.1}", 100.0 * least, 100.0 * most));
                cells.push(words.unwrap_or_default());
            }
            cells.extend(shown.iter().map(|(counter, _)| number(&chosen.outcomes, *counter)));
            table.add_row(cells);
        }
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    /// The least memory that was found enough for a scheme, in bytes.
    fn least_memory(&self, choice: &Choice) -> Option<usize> {
        choice.least?.memory.memory(self.machine)
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
                "why": found.why.join(" "),
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
            "least": choice.least.map(|least| json!({
                "amount": least.amount.amount,
                "memory_bytes": least.memory.memory(self.machine),
            })),
            "notes": words::notes(choice, self.wish),
            "counters": counters,
        })
    }
}

/// A counter of the job: the mean of the seeds, of a peak the most.
fn number(outcomes: &Outcomes, counter: Counter) -> String {
    let value = match counter {
        Counter::MailboxPeak | Counter::UnexpectedPeak => outcomes.most(counter),
        _ => outcomes.counter(counter).round() as u64,
    };
    human(value, counter.unit())
}
