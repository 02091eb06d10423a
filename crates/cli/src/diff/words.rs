//! The comparison in words, for people and for programs.

use std::fmt::Write;

use comfy_table::ContentArrangement;
use serde_json::{Value, json};

use super::judge::{Difference, median, range};
use super::{Comparison, Line};
use crate::html::markup::escape;
use crate::report::table::{plain_table, push_table};
use crate::report::units::{self, human};

/// The width of the table of a terminal.
const COLUMNS: u16 = 80;
/// Runs of each side from which on a small difference can be told.
const RUNS_ENOUGH: usize = 3;

impl Line {
    /// A value as people read it.
    fn value(&self, value: f64) -> String {
        human(value as u64, self.measure.unit)
    }

    /// The values of a side: the median, and between which values all lie.
    #[must_use]
    pub fn side(&self, side: usize) -> String {
        let values = &self.values[side];
        let (least, most) = range(values);
        match values.len() {
            1 => self.value(values[0]),
            _ if self.value(least) == self.value(most) => self.value(least),
            _ => format!("{} ({} to {})", self.value(median(values)), self.value(least), self.value(most)),
        }
    }

    /// The difference in a few words.
    #[must_use]
    pub fn difference(&self) -> String {
        match self.difference {
            Difference::Same => "the same".to_owned(),
            Difference::More { ratio: None } => "more".to_owned(),
            Difference::More { ratio: Some(ratio) } if ratio >= 2.0 => format!("{ratio:.1} times as much"),
            Difference::More { ratio: Some(ratio) } => format!("{} more", percent(ratio - 1.0)),
            Difference::Less { ratio: 0.0 } => "none left".to_owned(),
            Difference::Less { ratio } => format!("{} less", percent(1.0 - ratio)),
            Difference::Overlaps if self.side(0) == self.side(1) => "the same".to_owned(),
            Difference::Overlaps => "no difference: the runs overlap".to_owned(),
            Difference::WithinOneRun => "within what one run can tell".to_owned(),
            Difference::TooFewRuns { once_in } => {
                format!("too few runs to tell: by chance once in {once_in:.0} times")
            }
        }
    }
}

fn percent(part: f64) -> String {
    let percent = 100.0 * part;
    let is_whole = (10.0..99.0).contains(&percent) || percent >= 100.0;
    if is_whole { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

impl Comparison {
    /// One line for those who have three seconds, without a full stop. Names stand as they are, also at its begin.
    #[must_use]
    pub fn headline(&self) -> String {
        // A run that failed is mostly a short one, and no fast one.
        let failed: Vec<String> =
            self.failed.iter().map(|name| format!(", but a run of {name} did not end well")).collect();
        self.difference() + &failed.concat()
    }

    /// The same without a word on runs that failed.
    fn difference(&self) -> String {
        let [first, second] = &self.names;
        let time = &self.lines[0];
        let others = self.lines[1..].iter().filter(|line| line.difference.is_one()).count();
        match time.difference {
            Difference::More { ratio: Some(ratio) } if ratio >= 2.0 => {
                format!("{second} takes {ratio:.1} times as long as {first}")
            }
            Difference::Less { .. } | Difference::More { .. } => {
                format!("{second} takes {} time than {first}", time.difference())
            }
            _ if others > 0 => format!("No difference in time, but in waiting or memory: {first} and {second}"),
            _ => format!("No difference that these runs can tell: {first} and {second}"),
        }
    }

    /// The same in some sentences, with numbers.
    #[must_use]
    pub fn sentences(&self) -> String {
        let told = self.lines.iter().enumerate().filter(|(at, line)| *at == 0 || line.difference.is_one());
        let mut text = format!("{} compared with {}: ", self.names[1], self.names[0]);
        for (at, line) in told {
            let begin = if at == 0 { "" } else { "; " };
            let median = |side: usize| line.value(median(&line.values[side]));
            let (short, difference) = (line.measure.short, line.difference());
            let _ = write!(text, "{begin}{short} {difference} ({}, before {})", median(1), median(0));
        }
        text += ".";
        for name in &self.failed {
            let _ = write!(text, " A run of {name} did not end well, so its numbers are not of the same work.");
        }
        if self.runs.iter().any(|runs| *runs < RUNS_ENOUGH) {
            text += " ";
            text += &self.few_runs();
        }
        if !self.is_one_command {
            text += " They are runs of different commands, so not all of that need be the work of their settings.";
        }
        text
    }

    fn few_runs(&self) -> String {
        let tell = match self.runs {
            [1, 1] => "One run of each side tells only large differences".to_owned(),
            [first, second] => format!("{first} and {second} runs tell only large differences"),
        };
        format!(
            "{tell}, time by a quarter and waits by ten times, as runs of the same command differ, too: record three of \
             each, and give all (tidegate diff A1 A2 A3 -- B1 B2 B3)."
        )
    }

    /// The table of the page.
    #[must_use]
    pub fn table(&self) -> String {
        let [first, second] = [&self.names[0], &self.names[1]].map(|name| escape(name));
        let counted = |runs: usize| if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs, median") };
        let mut text = format!(
            "<section id=\"difference\">\n<h2>Number by number</h2>\n<table class=\"summary\">\n<tr><th></th><th>{first} <span \
             class=\"muted\">({})</span></th><th>{second} <span class=\"muted\">({})</span></th><th>difference</th></tr>\n",
            counted(self.runs[0]),
            counted(self.runs[1]),
        );
        for line in &self.lines {
            let class = if line.difference.is_one() { "told" } else { "muted" };
            let _ = writeln!(
                text,
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td class=\"{class}\">{}</td></tr>",
                line.measure.name,
                escape(&line.side(0)),
                escape(&line.side(1)),
                escape(&line.difference()),
            );
        }
        text + "</table>\n</section>\n"
    }

    /// The same for a terminal of 80 columns.
    #[must_use]
    pub fn table_text(&self) -> String {
        let mut table = plain_table();
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(COLUMNS);
        let names = self.names.each_ref().map(|name| tidegate_link::plain(name));
        table.set_header([String::new(), names[0].clone(), names[1].clone(), "difference".to_owned()]);
        for line in &self.lines {
            table.add_row([line.measure.name.to_owned(), line.side(0), line.side(1), line.difference()]);
        }
        let mut text = String::new();
        push_table(&mut text, table);
        text
    }

    /// For programs. Values are in nanoseconds, bytes or counts.
    #[must_use]
    pub fn json(&self) -> Value {
        let line = |line: &Line| {
            json!({
                "id": line.measure.id,
                "name": line.measure.name,
                "unit": units::name(line.measure.unit),
                "values": line.values,
                "medians": [median(&line.values[0]), median(&line.values[1])],
                "difference": line.difference,
                "text": line.difference(),
            })
        };
        json!({
            "headline": self.headline(),
            "text": self.sentences(),
            "names": self.names,
            "runs": self.runs,
            "same_command": self.is_one_command,
            "lines": self.lines.iter().map(line).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Side, compare};
    use crate::recording::testing::{Made, values};
    use crate::recording::view::View;
    use tidegate_message::Counter;

    fn run(seconds: f64, delayed: u64) -> View {
        let mut made = Made::new(1);
        made.facts.end.as_mut().unwrap().wall_time_s = seconds;
        made.view(&[values(&[(Counter::SendsDelayed, delayed), (Counter::ReceivePeak, 1 << 20)])])
    }

    fn side<'a>(name: &str, runs: &'a [View]) -> Side<'a> {
        Side { name: name.to_owned(), runs: runs.iter().collect() }
    }

    fn compared(first: &[View], second: &[View]) -> super::Comparison {
        compare(&[side("a", first), side("b", second)])
    }

    #[test]
    fn a_difference_is_said_with_its_numbers() {
        let found = compared(&[run(20.0, 1200)], &[run(10.0, 0)]);
        assert_eq!(found.headline(), "b takes 50 % less time than a");
        let said = found.sentences();
        assert!(
            said.starts_with(
                "b compared with a: time 50 % less (10.0 s, before 20.0 s); sends that waited none left (0, before 1,200). One run"
            ),
            "{said}"
        );
        assert!(said.ends_with("(tidegate diff A1 A2 A3 -- B1 B2 B3)."), "{said}");
    }

    #[test]
    fn noise_is_called_noise() {
        let found = compared(&[run(20.0, 12)], &[run(20.5, 3)]);
        assert_eq!(found.headline(), "No difference that these runs can tell: a and b");
        assert!(
            found.sentences().contains("time within what one run can tell (20.5 s, before 20.0 s)."),
            "{}",
            found.sentences()
        );
    }

    #[test]
    fn several_runs_tell_small_differences() {
        let [first, second] = [[20.0, 20.1, 20.2], [20.4, 20.5, 20.6]].map(|times| times.map(|time| run(time, 0)));
        let found = compared(&first, &second);
        assert_eq!(found.headline(), "b takes 2.0 % more time than a");
        assert_eq!(found.sentences(), "b compared with a: time 2.0 % more (20.5 s, before 20.1 s).");
        assert_eq!(found.lines[0].side(1), "20.5 s (20.4 s to 20.6 s)");
        let json = found.json();
        assert_eq!(
            (&json["runs"], &json["lines"][0]["difference"]["is"]),
            (&serde_json::json!([3, 3]), &"more".into())
        );
    }

    #[test]
    fn a_run_that_failed_is_told() {
        let mut made = Made::new(1);
        made.facts.end.as_mut().unwrap().exit_code = 9;
        let failed = made.view(&[values(&[])]);
        let failed = [failed];
        let compared = compared(&[run(20.0, 0)], &failed);
        assert_eq!(compared.headline(), "b takes 50 % less time than a, but a run of b did not end well");
        let said = compared.sentences();
        assert!(said.contains("A run of b did not end well"), "{said}");
    }

    #[test]
    fn other_commands_are_told() {
        let mut made = Made::new(1);
        made.facts.command.push("more".into());
        let other = made.view(&[values(&[])]);
        assert!(compared(&[run(10.0, 0)], &[other]).sentences().ends_with("the work of their settings."));
    }
}
