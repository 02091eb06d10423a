//! The end of a run as `tidegate run` tells it unless asked for more: a sentence on the job, the few numbers that are
//! looked for first, and the change that is worth a try, as a line to copy.

use std::fmt::Write;

use serde_json::{Value, json};
use tidegate_message::{Counter, Unit};

use crate::advice::{self, Advice, Waiting, percent};
use crate::recording::view::View;
use crate::report::Job;
use crate::report::table::{Form, between_hosts, who_ran};
use crate::report::typed::{Typed, to_try};
use crate::report::units::human;

/// Launches of one run that are told one by one.
const LAUNCHES_TOLD: usize = 4;
/// Sends that waited for less than this part of the time are not told.
const SENDS_MATTER: f64 = 0.01;

/// What there is to say of a launch.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// What was recorded of it.
    view: View,
    /// What to change, and why.
    pub advice: Advice,
}

impl Verdict {
    /// Of what was recorded.
    #[must_use]
    pub fn of(view: View) -> Verdict {
        Verdict { advice: advice::advise(&view), view }
    }

    /// What happened, in one sentence without a full stop.
    #[must_use]
    pub fn headline(&self) -> &str {
        self.advice.headline()
    }

    /// How long ranks waited for messages, where that was measured and something was sent.
    fn waiting(&self) -> Option<String> {
        let waiting = Waiting::of(&self.view).filter(|waiting| waiting.most.0 > 0.0)?;
        let label = |process: usize| self.view.processes[process].label.as_str();
        let ((most, most_of), (least, least_of)) = (waiting.most, waiting.least);
        if self.view.processes.len() == 1 {
            return Some(format!("waiting: {} of the time", percent(most)));
        }
        Some(format!(
            "waiting: mean {} of the time, most {} ({}), least {} ({})",
            percent(waiting.mean),
            percent(most),
            label(most_of),
            percent(least),
            label(least_of),
        ))
    }

    /// For whom sends waited longest, if that matters.
    fn sends(&self) -> Option<String> {
        let longest = self.view.waits.iter().find(|wait| wait.cause.is_of_sends())?;
        let process = &self.view.processes[longest.from];
        let share = process.part(longest.waited_ns, &self.view);
        let to = longest.to.map_or("several ranks", |to| self.view.processes[to].label.as_str());
        (share >= SENDS_MATTER).then(|| {
            format!(
                "sends of {} waited {} of the time for {to}: {}",
                process.label,
                percent(share),
                longest.cause.help()
            )
        })
    }

    /// How much of its bound on receive memory a process took at most.
    fn memory(&self) -> Option<String> {
        let (at, peak) = self.view.most(Counter::ReceivePeak)?;
        let (_, bound) = self.view.most(Counter::ReceiveBound).filter(|(_, bound)| *bound > 0)?;
        let bytes = |bytes| human(bytes, Unit::Bytes);
        Some(format!("receive memory: at most {} of {} ({})", bytes(peak), bytes(bound), self.view.processes[at].label))
    }

    /// For programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let waiting = Waiting::of(&self.view).map(|waiting| {
            let rank = |process: usize| self.view.processes[process].rank;
            json!({
                "mean": waiting.mean,
                "most": waiting.most.0,
                "most_rank": rank(waiting.most.1),
                "least": waiting.least.0,
                "least_rank": rank(waiting.least.1),
            })
        });
        json!({
            "headline": self.headline(),
            "waiting_share": waiting,
            "options": self.advice.changes(),
            "points": self.advice.points,
        })
    }
}

/// All of it, some eight lines before they are wrapped. `failure`: how the job failed, if it did, which comes first
/// unless it `was_ended` by a signal that came for it: then it was held up before.
#[must_use]
pub fn text(
    verdicts: &[Verdict],
    job: &Job,
    form: &Form,
    failure: Vec<String>,
    was_ended: bool,
    typed: Typed,
    is_verbose: bool,
) -> String {
    let has_failed = !failure.is_empty();
    let mut lines = Vec::new();
    if !was_ended {
        lines.extend(failure.iter().cloned());
    }
    match verdicts {
        [only] => {
            // Where the job has failed, that nothing held it up is no news.
            lines.extend((!has_failed || !only.advice.is_calm()).then(|| only.headline().to_owned()));
            lines.extend(failure.into_iter().filter(|_| was_ended));
            lines.push(who_ran(job, form));
            lines.extend(between_hosts(job));
            lines.extend([only.waiting(), only.sends(), only.memory()].into_iter().flatten());
        }
        many => {
            let told = many.iter().take(LAUNCHES_TOLD).enumerate();
            let of = |(number, verdict): (usize, &Verdict)| {
                format!("launch {} of {}: {}", number + 1, many.len(), verdict.headline())
            };
            lines.extend(told.map(of));
            if many.len() > LAUNCHES_TOLD {
                lines.push(format!("and {} launches more: -v", many.len() - LAUNCHES_TOLD));
            }
            lines.push(who_ran(job, form));
        }
    }
    let told = |line: &str| form.width.fit(&format!("tidegate: {line}\n"));
    let mut text: String = lines.iter().map(|line| told(line)).collect();
    if let Some(option) = verdicts.iter().flat_map(|verdict| verdict.advice.changes()).next() {
        // Broken into lines it could not be copied.
        let _ = writeln!(text, "tidegate: worth a try: {}", to_try(&typed, option));
    }
    if !is_verbose {
        text += &told("more: -v for all counters, --record DIR for `tidegate report DIR`");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::testing::{Made, values};
    use tidegate_link::stats::WaitCause;

    /// Four ranks for 10 s, of which all but rank 1 wait 9 for it.
    fn late() -> Verdict {
        let mut made = Made::new(4);
        [0, 2, 3].iter().for_each(|rank| made.wait(*rank, 1, WaitCause::Message, 9.0));
        let of = |waited| {
            values(&[
                (Counter::PacketsSent, 100),
                (Counter::MessagesEager, 100),
                (Counter::WaitNanoseconds, waited),
                (Counter::ReceivePeak, 1 << 20),
                (Counter::ReceiveBound, 64 << 20),
            ])
        };
        Verdict::of(made.view(&[of(9_000_000_000), of(0), of(9_000_000_000), of(9_000_000_000)]))
    }

    #[test]
    fn the_verdict_comes_first_and_takes_few_lines() {
        let verdict = late();
        assert_eq!(verdict.headline(), "rank 1 is late: all 3 others waited for its messages, up to 90 % of the time");
        assert_eq!(
            verdict.waiting().unwrap(),
            "waiting: mean 68 % of the time, most 90 % (rank 3), least 0 % (rank 1)"
        );
        assert_eq!(verdict.memory().unwrap(), "receive memory: at most 1.00 MiB of 64.0 MiB (rank 0)");
        assert_eq!(verdict.sends(), None);
        let said = verdict.json();
        assert_eq!((&said["waiting_share"]["least_rank"], &said["points"][0]["id"]), (&json!(1), &json!("late")));
    }
}
