//! The most important numbers of a run, side by side for several.

use serde::Serialize;
use tidegate_message::{Counter, Unit};

use signal_hook::low_level::signal_name;

use crate::mpi::MpiKind;
use crate::recording::view::View;
use crate::report::ending;
use crate::report::units::human;
use crate::report::ways;
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

/// Adds lines for all runs.
struct Lines<'a> {
    runs: &'a [&'a View],
    lines: Vec<Line>,
}

impl Lines<'_> {
    fn text(&mut self, name: &'static str, of: impl Fn(&View) -> String) {
        self.lines.push(Line { name, values: self.runs.iter().map(|run| of(run)).collect(), numbers: None });
    }

    /// Leaves out a line for which no run has anything.
    fn text_unless_none(&mut self, name: &'static str, of: impl Fn(&View) -> Option<String>) {
        let values: Vec<Option<String>> = self.runs.iter().map(|run| of(run)).collect();
        if values.iter().any(Option::is_some) {
            let values = values.into_iter().map(|value| value.unwrap_or_else(|| "not measured".to_owned())).collect();
            self.lines.push(Line { name, values, numbers: None });
        }
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
    if runs.iter().all(|run| run.processes.is_empty()) {
        lines.text("processes", |_| "none opened an endpoint".to_owned());
        return lines.lines;
    }
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
    lines.text_unless_none("long messages on a host", |run| {
        ways::text(run.processes.iter().flat_map(|process| &process.way_times))
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
        Some(end) if end.failure.was_ended && !end.failure.ends.is_empty() => {
            let how = &end.failure.ends[0];
            let how = how.strip_prefix("the program ").unwrap_or(how);
            let how = how.strip_prefix("ended with ").unwrap_or(how);
            // The signal that came says what the number means.
            how.split(", as after ").next().unwrap_or(how).to_owned()
        }
        Some(end) => match (end.signal, of_shell(run, end.exit_code)) {
            (Some(signal), _) => format!("ended by {}", ending::name(signal)),
            (None, Some(signal)) => format!("exit code {} ({signal})", end.exit_code),
            (None, None) => format!("exit code {}", end.exit_code),
        },
    }
}

/// The name of the signal that an exit code stands for: 128 and the number of a signal, where the program is no
/// launcher that makes its own code of those of its ranks.
fn of_shell(run: &View, code: u8) -> Option<&'static str> {
    let mpi = run.facts.mpi.as_deref().unwrap_or_default();
    let has_own = [MpiKind::Mpich, MpiKind::IntelMpi].iter().any(|kind| mpi.starts_with(kind.name()));
    let signal = code.checked_sub(128).filter(|_| !has_own)?;
    signal_name(signal.into())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::testing::{Made, values};

    #[test]
    fn a_signal_is_named_only_where_one_ended_the_program() {
        let said = |mpi: Option<&str>, signal, exit_code| {
            let mut made = Made::new(1);
            made.facts.mpi = mpi.map(str::to_owned);
            let end = made.facts.end.as_mut().unwrap();
            (end.signal, end.exit_code) = (signal, exit_code);
            how_it_ended(&made.view(&[values(&[])]))
        };
        assert_eq!(said(None, None, 0), "exit code 0");
        assert_eq!(said(None, None, 139), "exit code 139 (SIGSEGV)");
        assert_eq!(said(Some("Open MPI 5.0.8"), None, 137), "exit code 137 (SIGKILL)");
        // 127 is the number of no signal, and 255 means nothing: shells return them where they find no program.
        assert_eq!((said(None, None, 255), said(None, None, 127)), ("exit code 255".into(), "exit code 127".into()));
        assert_eq!(said(None, None, 128), "exit code 128");
        // These launchers make a code of their own.
        assert_eq!(said(Some("MPICH 5.0.2"), None, 143), "exit code 143");
        assert_eq!(said(Some("Intel MPI 2021.18"), None, 255), "exit code 255");
        assert_eq!(said(Some("MPICH 5.0.2"), Some(9), 137), "ended by SIGKILL (signal 9)");
        let mut made = Made::new(1);
        let end = made.facts.end.as_mut().unwrap();
        (end.exit_code, end.failure.was_ended) = (130, true);
        end.failure.ends =
            vec!["the program ended with exit code 130 after SIGINT (signal 2), as after SIGINT".to_owned()];
        assert_eq!(how_it_ended(&made.view(&[values(&[])])), "exit code 130 after SIGINT (signal 2)");
    }

    #[test]
    fn which_way_long_messages_went_is_said_of_runs_that_have_measured_both() {
        let [plain, mut measured] = [Made::new(2), Made::new(2)];
        for rows in &mut measured.last.endpoints {
            rows.ways = vec![[0, 0], [0, 0], [0, 0], [100, 200], [200, 100]];
        }
        let views = [measured, plain].map(|made| made.view(&[values(&[]), values(&[])]));
        let said = |runs: &[&View]| summary(runs).into_iter().find(|line| line.name == "long messages on a host");
        assert_eq!(said(&[&views[1]]), None);
        let [chosen, nothing] = <[String; 2]>::try_from(said(&[&views[0], &views[1]]).unwrap().values).unwrap();
        assert!(chosen.starts_with("chose bounce buffers above 16.0 KiB to 32.0 KiB, because a copy"), "{chosen}");
        assert!(chosen.contains("; chose direct copies above 32.0 KiB to 64.0 KiB, because"), "{chosen}");
        assert_eq!(nothing, "not measured");
    }
}
