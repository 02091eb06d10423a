//! [`Verdict`], the outcome of a check, as lines for people and as JSON.

use serde_json::{Value, json};
use tidegate_link::plain;

/// The schema of the JSON.
pub const DOCTOR_SCHEMA: &str = "tidegate-doctor/1";
/// Columns of a line. Remedies are never broken, since they are to be copied.
const COLUMNS: usize = 80;
/// How far remedies, and what follows in a verdict, are indented.
const INDENT: &str = "      ";

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Nothing stands in the way of a job.
    Ok,
    /// A job runs, but more slowly, or other than the user may think.
    Warn,
    /// A job does not run.
    No,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::No => "no",
        }
    }
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The name of the check, as JSON has it.
    pub check: &'static str,
    /// How it came out.
    pub level: Level,
    /// The observation.
    pub text: String,
    /// A line that helps, to be copied.
    pub remedy: Option<String>,
}

/// Nothing stands in the way.
pub fn ok(check: &'static str, text: impl Into<String>) -> Verdict {
    Verdict { check, level: Level::Ok, text: text.into(), remedy: None }
}

/// A job runs, but not as well as it could.
pub fn warn(check: &'static str, text: impl Into<String>, remedy: impl Into<Option<String>>) -> Verdict {
    Verdict { check, level: Level::Warn, text: text.into(), remedy: remedy.into() }
}

/// A job does not run.
pub fn no(check: &'static str, text: impl Into<String>, remedy: impl Into<Option<String>>) -> Verdict {
    Verdict { check, level: Level::No, text: text.into(), remedy: remedy.into() }
}

/// A job does not run, or, where it does all the same, not as well as it could.
pub fn bad(stops: bool, check: &'static str, text: impl Into<String>, remedy: impl Into<Option<String>>) -> Verdict {
    if stops { no(check, text, remedy) } else { warn(check, text, remedy) }
}

/// Whether a job would run, by all that was said.
pub fn would_run(verdicts: &[Verdict]) -> bool {
    verdicts.iter().all(|verdict| verdict.level != Level::No)
}

/// All verdicts, a line each with its remedy below it, and what they come to.
pub fn render(verdicts: &[Verdict]) -> String {
    let mut text: String = verdicts.iter().map(lines).collect();
    let count = |level| verdicts.iter().filter(|verdict| verdict.level == level).count();
    text += &match (count(Level::No), count(Level::Warn)) {
        (0, 0) => "A job would run here.\n".to_owned(),
        (0, 1) => "A job would run here; one thing could be better.\n".to_owned(),
        (0, warnings) => format!("A job would run here; {warnings} things could be better.\n"),
        (1, _) => "A job would not run here: one thing stands in the way.\n".to_owned(),
        (reasons, _) => format!("A job would not run here: {reasons} things stand in the way.\n"),
    };
    text
}

fn lines(verdict: &Verdict) -> String {
    let word = verdict.level.word();
    let line = format!("{word:<6}{}: {}", verdict.check.replace('_', " "), plain(&verdict.text));
    let mut text = broken(&line);
    if let Some(remedy) = &verdict.remedy {
        let remedy: String = remedy.lines().map(|line| format!("{INDENT}{line}\n")).collect();
        text += &remedy;
    }
    text
}

/// A line, with those that follow from it: broken at spaces, and indented.
fn broken(line: &str) -> String {
    let mut text = String::new();
    let mut length = 0;
    for word in line.split_inclusive(' ') {
        let letters = word.trim_end().chars().count();
        if length > INDENT.len() && length + letters > COLUMNS {
            text.truncate(text.trim_end().len());
            text += "\n";
            text += INDENT;
            length = INDENT.len();
        }
        text += word;
        length += word.chars().count();
    }
    text + "\n"
}

/// The same for programs.
pub fn to_json(verdicts: &[Verdict], command: &[String]) -> Value {
    let check = |verdict: &Verdict| {
        json!({
            "check": verdict.check,
            "verdict": verdict.level.word(),
            "text": verdict.text,
            "remedy": verdict.remedy,
        })
    };
    json!({
        "schema": DOCTOR_SCHEMA,
        "tidegate_version": env!("CARGO_PKG_VERSION"),
        "host": crate::process::host_name(),
        "command": command,
        "would_run": would_run(verdicts),
        "checks": verdicts.iter().map(check).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Vec<Verdict> {
        let long = "/dev/shm has 64.0 MiB in all, of which 60.0 MiB are free, and 64 ranks take up to 97.2 MiB";
        vec![
            ok("mpi", "MPICH 5.0.2"),
            warn("cores", "8 ranks on 2 cores", None),
            no("shared_memory", long, "docker run --shm-size=128m IMAGE".to_owned()),
        ]
    }

    #[test]
    fn each_verdict_is_a_line_and_its_remedy_another_one() {
        assert_eq!(
            render(&some()),
            "ok    mpi: MPICH 5.0.2\n\
             warn  cores: 8 ranks on 2 cores\n\
             no    shared memory: /dev/shm has 64.0 MiB in all, of which 60.0 MiB are free,\n      \
                   and 64 ranks take up to 97.2 MiB\n      \
                   docker run --shm-size=128m IMAGE\n\
             A job would not run here: one thing stands in the way.\n"
        );
        assert!(render(&some()[..2]).ends_with("A job would run here; one thing could be better.\n"));
        assert!(render(&some()[..1]).ends_with("A job would run here.\n"));
        assert!(render(&some()).lines().all(|line| line.chars().count() <= COLUMNS));
    }

    #[test]
    fn json_has_the_verdicts_and_what_they_come_to() {
        let value = to_json(&some(), &["mpiexec".to_owned()]);
        assert_eq!((&value["schema"], &value["would_run"]), (&json!(DOCTOR_SCHEMA), &json!(false)));
        assert_eq!(
            value["checks"][1],
            json!({ "check": "cores", "verdict": "warn", "text": "8 ranks on 2 cores", "remedy": null })
        );
        assert!(would_run(&some()[..2]));
    }
}
