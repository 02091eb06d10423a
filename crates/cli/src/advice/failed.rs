//! How the job failed, where it did: what ended it explains all else.

use super::{Evidence, Point};
use crate::recording::facts::Failure;
use crate::recording::view::View;

/// The name of the point.
pub const FAILED: &str = "failed";

/// Letters of a title at most.
const TITLE_MOST: usize = 90;

/// The process that ended first, if that is certain.
#[must_use]
pub fn first_dead(run: &View) -> Option<usize> {
    let rank = run.facts.end.as_ref()?.failure.first_dead?;
    run.processes.iter().position(|process| process.rank == Some(rank))
}

/// The job failed, by itself: where a signal came for all of it, what held it up before is the reason.
pub fn failed(run: &View) -> Option<Point> {
    let end = run.facts.end.as_ref()?;
    let failure = &end.failure;
    if failure.ends.is_empty() || (failure.was_ended && failure.lack.is_none()) || end.exit_code == 0 {
        return None;
    }
    let how = &failure.ends[0];
    let how = how.strip_prefix("the program ").map_or_else(|| how.clone(), |how| format!("the job {how}"));
    // The meaning of the number is told below; here it would hide the reason.
    let number = how.split_once(", ").map_or(how.as_str(), |(number, _)| number);
    let headline = match (&failure.lack, first_dead(run), &failure.signal, end.troubles.first()) {
        (Some(lack), ..) => format!("{lack}: {number}"),
        (None, Some(first), ..) => format!("{} died first: {number}", run.processes[first].label),
        (None, None, _, Some(trouble)) => of_trouble(trouble),
        (None, None, Some(signal), None) => format!("the job was ended by {signal}: {how}"),
        (None, None, None, None) => match how.split_once(", ") {
            Some((what, why)) => format!("{what}: {}", why.replacen("which under MPICH is", "under MPICH that is", 1)),
            None => how,
        },
    };
    let evidence =
        vec![Evidence { name: "exit code".to_owned(), of: "program".to_owned(), value: end.exit_code.to_string() }];
    Some(Point { id: FAILED, headline, text: text(failure), options: options(failure), evidence })
}

/// The reasons, and then how it ended.
fn text(failure: &Failure) -> String {
    let mut said: Vec<String> = Vec::new();
    for reason in &failure.reasons {
        // Processes that lack the same tell other numbers of it.
        let what = |text: &str| text.split([':', ';', '(']).next().map(str::to_owned);
        if !said.iter().any(|other| what(other) == what(reason)) {
            said.push(reason.clone());
        }
    }
    let has_reason = !said.is_empty();
    said.extend(failure.ends.iter().map(|end| super::capital(end)));
    let mut text = String::new();
    for sentence in said {
        let end = if sentence.ends_with('.') { " " } else { ". " };
        text += &(sentence + end);
    }
    match has_reason {
        true => text.trim_end().to_owned(),
        false => {
            text + "No setting of flow control helps against that: what the program printed, above what its launcher did, says more."
        }
    }
}

/// Of what an endpoint takes of /dev/shm, bounce buffers are most, and only long messages need them.
fn options(failure: &Failure) -> Vec<String> {
    let is_shared = failure.lack.as_ref().is_some_and(|lack| lack.starts_with(tidegate_link::DIRECTORY));
    is_shared.then(|| "--bounce-buffers 0".to_owned()).into_iter().collect()
}

/// A message of a process, so that its first clause is short.
fn of_trouble(trouble: &str) -> String {
    let trouble = without_pids(trouble);
    match trouble.split_once([':', ';']) {
        Some((first, rest)) if first.chars().count() <= TITLE_MOST => format!("{first}: {}", rest.trim_start()),
        _ => format!("a process reported an error: {trouble}"),
    }
}

/// The same without the ids of processes behind their ranks, which a title does not need.
fn without_pids(text: &str) -> String {
    const BEGIN: &str = " (pid ";
    let mut parts = text.split(BEGIN);
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')').filter(|(pid, _)| pid.bytes().all(|byte| byte.is_ascii_digit())) {
            Some((_, rest)) => told += rest,
            None => told = told + BEGIN + part,
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::{Advice, advise, blamed};
    use crate::recording::testing::{Made, values};
    use tidegate_message::Counter;

    /// A run of four ranks that failed.
    fn failed(code: u8, trouble: &str, failure: Failure) -> (View, Advice) {
        let mut made = Made::new(4);
        let end = made.facts.end.as_mut().unwrap();
        (end.exit_code, end.failure) = (code, failure);
        end.troubles.extend((!trouble.is_empty()).then(|| trouble.to_owned()));
        let view = made.view(&vec![values(&[(Counter::PacketsSent, 9)]); 4]);
        let advice = advise(&view);
        (view, advice)
    }

    fn told(code: u8, trouble: &str, failure: Failure) -> [String; 2] {
        let (view, advice) = failed(code, trouble, failure);
        assert_eq!(advice.points.len(), 1, "{advice:?}");
        [advice.title(&view), advice.subtitle(&view)]
    }

    fn ended(how: &str) -> Failure {
        Failure { ends: vec![how.to_owned()], ..Failure::default() }
    }

    #[test]
    fn what_is_certain_comes_first() {
        let nine = "the program ended with exit code 9, which under MPICH is a rank's own exit code or comes of more";
        assert_eq!(
            told(9, "", ended(nine)),
            ["the job ended with exit code 9", "under MPICH that is a rank's own exit code or comes of more"]
        );
        let first = Failure { first_dead: Some(2), ..ended(nine) };
        let (view, advice) = failed(9, "", first);
        assert_eq!((advice.title(&view).as_str(), blamed(&view, &advice)), ("rank 2 died first", Some(2)));
        let signal =
            Failure { signal: Some("SIGSEGV".into()), ..ended("the program ended with exit code 139, as after it") };
        assert_eq!(told(139, "", signal)[0], "the job was ended by SIGSEGV");
        assert_eq!(told(7, "", ended("the program ended with exit code 7")), ["the job ended with exit code 7", ""]);
    }

    #[test]
    fn what_the_host_lacks_is_told_once_with_what_helps() {
        let reasons = ["/dev/shm is too small: this needs 1.3 MiB", "/dev/shm is too small: this needs 1.2 MiB"];
        let failure = Failure {
            lack: Some("/dev/shm is full".into()),
            reasons: reasons.map(str::to_owned).to_vec(),
            ..ended("the program ended with exit code 7, as after SIGBUS")
        };
        let (view, advice) = failed(7, "", failure);
        assert_eq!(advice.title(&view), "/dev/shm is full");
        assert_eq!(
            advice.paragraph(),
            "/dev/shm is too small: this needs 1.3 MiB. The program ended with exit code 7, as after SIGBUS."
        );
        assert_eq!(advice.options(), ["--bounce-buffers 0"]);
    }

    #[test]
    fn what_a_process_said_is_the_title_where_it_is_short() {
        let trouble = "FI_TIDEGATE_FABRIC is tcp here (rank 0 (pid 12)) and none at rank 1 (pid 13); set it alike";
        let said = told(1, trouble, ended("the program ended with exit code 1"));
        assert_eq!(said, ["FI_TIDEGATE_FABRIC is tcp here (rank 0) and none at rank 1", "set it alike"]);
        let long = "x ".repeat(90);
        assert_eq!(told(1, &long, ended("the program ended with exit code 1"))[0], "a process reported an error");
        assert_eq!(without_pids("a (pid x) b (pid 3"), "a (pid x) b (pid 3");
    }

    #[test]
    fn a_job_that_was_ended_did_not_fail_by_itself() {
        let failure = Failure { was_ended: true, ..ended("the program ended with exit code 15 after SIGTERM") };
        let (_, advice) = failed(15, "", failure);
        assert!(!advice.has(FAILED), "{advice:?}");
    }
}
