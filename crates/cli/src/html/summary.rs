//! What the numbers of a run come to, and how those of two runs differ.

use serde::Serialize;
use tidegate_message::{Counter, Unit};

use crate::recording::view::View;
use crate::report::units::human;
use tidegate_link::stats::WaitCause;

/// One line of the summary, for all runs of a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// What it says.
    pub name: &'static str,
    /// By run.
    pub values: Vec<String>,
    /// By run, where it is a number of which less is better.
    pub numbers: Option<Vec<f64>>,
}

impl Line {
    /// How the second of two runs differs from the first, where both are numbers.
    #[must_use]
    pub fn difference(&self) -> Option<String> {
        match self.numbers.as_deref()? {
            [first, second] => Some(difference(*first, *second)),
            _ => None,
        }
    }
}

fn difference(first: f64, second: f64) -> String {
    if first == second {
        return "the same".to_owned();
    }
    if first == 0.0 {
        return "more".to_owned();
    }
    if second == 0.0 {
        return "none left".to_owned();
    }
    match second / first {
        ratio if (0.995..1.005).contains(&ratio) => "about the same".to_owned(),
        ratio if ratio >= 2.0 => format!("{ratio:.1} times as much"),
        ratio if ratio > 1.0 => format!("{:.0} % more", (100.0 * (ratio - 1.0)).max(1.0)),
        ratio => format!("{:.0} % less", (100.0 * (1.0 - ratio)).max(1.0)),
    }
}

/// Adds lines for all runs.
struct Lines<'a> {
    runs: &'a [&'a View],
    lines: Vec<Line>,
}

impl Lines<'_> {
    fn text(&mut self, name: &'static str, of: impl Fn(&View) -> String) {
        self.lines.push(Line { name, values: self.runs.iter().map(|run| of(run)).collect(), numbers: None });
    }

    fn number(&mut self, name: &'static str, of: impl Fn(&View) -> (f64, String)) {
        let (numbers, values) = self.runs.iter().map(|run| of(run)).unzip();
        self.lines.push(Line { name, values, numbers: Some(numbers) });
    }

    /// Leaves out a line that is 0 in all runs.
    fn number_unless_zero(&mut self, name: &'static str, of: impl Fn(&View) -> (f64, String)) {
        self.number(name, of);
        let is_zero = |line: &Line| line.numbers.iter().flatten().all(|number| *number == 0.0);
        if self.lines.last().is_some_and(is_zero) {
            self.lines.pop();
        }
    }
}

/// The summary of runs side by side.
#[must_use]
pub fn summary(runs: &[&View]) -> Vec<Line> {
    let mut lines = Lines { runs, lines: Vec::new() };
    lines.number("time of the run", |run| (run.seconds(), human(run.duration_ns, Unit::Nanoseconds)));
    lines.text("how it ended", how_it_ended);
    lines.text("processes", |run| {
        let hosts = run.distinct(|process| process.facts.host.clone()).len();
        let programs = run.distinct(|process| process.facts.program.clone()).join(", ");
        let on = if hosts > 1 { format!(" on {hosts} hosts") } else { String::new() };
        format!("{} of {programs}{on}", run.processes.len())
    });
    lines.text("flow control", |run| {
        let schemes = run.distinct(|process| process.facts.scheme.clone()).join(", ");
        format!("{schemes}, {}", run.distinct(|process| process.lends()).join(", "))
    });
    lines.text("messages", |run| {
        let messages = run.processes.iter().map(|process| process.messages()).fold(0, u64::saturating_add);
        let sent = human(run.job(Counter::BytesSent), Unit::Bytes);
        format!("{}, {sent}", human(messages, Unit::Count))
    });
    lines.number("sends that waited for credits or room", |run| {
        let delayed = run.job(Counter::SendsDelayed);
        (delayed as f64, human(delayed, Unit::Count))
    });
    lines.number("longest such waiting of a process", |run| longest(run, Counter::DelayNanoseconds));
    lines.number_unless_zero("sends deferred for want of receive memory", |run| {
        let deferred = run.job(Counter::SendsDeferred);
        (deferred as f64, human(deferred, Unit::Count))
    });
    lines.number_unless_zero("longest want of receive memory", |run| longest(run, Counter::PressureNanoseconds));
    lines.number_unless_zero("longest waiting of a process for messages", |run| longest(run, Counter::WaitNanoseconds));
    lines.number_unless_zero("all waiting of senders for receivers", |run| {
        let waits = run.waits.iter().filter(|wait| wait.cause.is_of_sends() && wait.cause != WaitCause::Pull);
        let waited = waits.map(|wait| wait.waited_ns).fold(0, u64::saturating_add);
        (waited as f64, human(waited, Unit::Nanoseconds))
    });
    lines.number_unless_zero("refused for want of a posted buffer", |run| {
        let refused = run.job(Counter::Refusals);
        (refused as f64, human(refused, Unit::Count))
    });
    lines.number_unless_zero("packets that found a full mailbox", |run| {
        let full = run.job(Counter::MailboxFull);
        (full as f64, human(full, Unit::Count))
    });
    lines.number("credit packets", |run| {
        let packets = run.job(Counter::CreditPackets);
        (packets as f64, human(packets, Unit::Count))
    });
    lines.number("mailbox of a process", |run| largest(run, Counter::MailboxBytes));
    lines.number("peak of receive memory", |run| largest(run, Counter::ReceivePeak));
    lines.text("bound on receive memory", |run| largest(run, Counter::ReceiveBound).1);
    lines.lines
}

fn how_it_ended(run: &View) -> String {
    match &run.facts.end {
        None => "not seen: the recording goes on, or was interrupted".to_owned(),
        Some(_) if run.is_simulated() => "simulated to its end".to_owned(),
        Some(end) if end.exit_code == 0 => "exit code 0".to_owned(),
        Some(end) if end.exit_code > 128 => format!("exit code {} (signal {})", end.exit_code, end.exit_code - 128),
        Some(end) => format!("exit code {}", end.exit_code),
    }
}

fn longest(run: &View, counter: Counter) -> (f64, String) {
    match run.most(counter) {
        Some((at, time)) if time > 0 => {
            (time as f64, format!("{} ({})", human(time, Unit::Nanoseconds), run.processes[at].label))
        }
        _ => (0.0, "0".to_owned()),
    }
}

fn largest(run: &View, counter: Counter) -> (f64, String) {
    let (at, bytes) = run.most(counter).unwrap_or((0, 0));
    let all_same = run.processes.iter().all(|process| process.get(counter) == bytes);
    let of = if all_same { String::new() } else { format!(" ({})", run.processes[at].label) };
    (bytes as f64, human(bytes, Unit::Bytes) + &of)
}

/// How two runs differ, in a few sentences.
#[must_use]
pub fn comparison(names: [&str; 2], runs: [&View; 2]) -> String {
    let lines = summary(&runs);
    let mut text = String::new();
    for (name, what) in [
        ("time of the run", "time"),
        ("sends that waited for credits or room", "sends that waited"),
        ("sends deferred for want of receive memory", "deferred sends"),
        ("refused for want of a posted buffer", "refusals"),
        ("peak of receive memory", "receive memory at its peak"),
    ] {
        let Some(line) = lines.iter().find(|line| line.name == name) else { continue };
        let Some(difference) = line.difference() else { continue };
        let begin =
            if text.is_empty() { format!("{} compared with {}: ", names[1], names[0]) } else { "; ".to_owned() };
        text += &format!("{begin}{what} {difference} ({}, before {})", line.values[1], line.values[0]);
    }
    text += ".";
    if runs[0].facts.command != runs[1].facts.command {
        text += " They are runs of different commands, so not all of that need be the work of their settings.";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::testing::{Made, values};

    #[test]
    fn differences_are_said_as_people_say_them() {
        for (first, second, said) in [
            (0.0, 0.0, "the same"),
            (0.0, 7.0, "more"),
            (7.0, 0.0, "none left"),
            (1000.0, 1001.0, "about the same"),
            (10.0, 8.8, "12 % less"),
            (10.0, 15.0, "50 % more"),
            (10.0, 30.0, "3.0 times as much"),
        ] {
            assert_eq!(difference(first, second), said);
        }
    }

    #[test]
    fn two_runs_are_compared() {
        let run = |seconds: f64, delayed| {
            let mut made = Made::new(1);
            made.facts.end.as_mut().unwrap().wall_time_s = seconds;
            made.view(&[values(&[(Counter::SendsDelayed, delayed), (Counter::ReceivePeak, 1 << 20)])])
        };
        // The sample is at 10 s.
        let (before, after) = (run(20.0, 1200), run(10.0, 0));
        assert_eq!(
            comparison(["a", "b"], [&before, &after]),
            "b compared with a: time 50 % less (10.0 s, before 20.0 s); sends that waited none left (0, before 1,200); \
             receive memory at its peak the same (1.00 MiB, before 1.00 MiB)."
        );
        let mut other = run(10.0, 0);
        other.facts.command.push("more".into());
        assert!(comparison(["a", "b"], [&before, &other]).ends_with("the work of their settings."));
    }
}
