//! `tidegate record`.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_link::log::print_line;
use tidegate_message::Counter;

use crate::arguments::RecordArguments;
use crate::command::run;
use crate::failure::Failure;
use crate::files::folder_of;
use crate::report::Job;
use crate::trace::{self, Trace, writing};

/// Name and version of the schema of `tidegate record --from DIR --json`.
pub const RECORD_SCHEMA: &str = "tidegate-record/1";
/// The variable that says where processes write their traces.
const TRACE_DIR: &str = "FI_TIDEGATE_TRACE_DIR";
/// The variable that says how long they may be.
const TRACE_MOST: &str = "FI_TIDEGATE_TRACE_MOST";

/// Runs the program and writes the trace, or writes the trace of what an earlier run has left. Returns the exit code to
/// end with.
pub fn record(arguments: &RecordArguments) -> Result<u8, Failure> {
    let output = &arguments.output;
    super::check_output("--output", output)?;
    if let Some(folder) = &arguments.from {
        return record_from(arguments, folder);
    }
    let parts = Parts::create(arguments)?;
    let mut variables = vec![(TRACE_DIR, parts.variable())];
    variables.extend(arguments.most.as_ref().map(|most| (TRACE_MOST, OsString::from(most))));
    run::run_with(&arguments.run, &variables, |job| {
        let traces = merge(arguments, parts.path()).inspect_err(|_| parts.keep());
        traces.map(|traces| {
            if !arguments.run.quiet {
                compare(&traces, job);
            }
            Some(("trace", files_json(&traces)))
        })
    })
}

/// Where the processes of a run write: a folder of its own beside the trace, or in the folder that all hosts share.
struct Parts {
    folder: RefCell<Option<TempDir>>,
    path: PathBuf,
}

impl Parts {
    fn create(arguments: &RecordArguments) -> Result<Self, Failure> {
        let near = arguments.run.shared.clone().unwrap_or_else(|| folder_of(&arguments.output));
        // Ranks on other hosts, or behind a wrapper script, may be in other folders.
        let near = std::path::absolute(&near).unwrap_or(near);
        let refused = |error: io::Error| {
            Failure::own(format!("no folder for the traces of the ranks can be made in {}: {error}", near.display()))
        };
        let folder = tempfile::Builder::new().prefix("tidegate-trace-").tempdir_in(&near).map_err(refused)?;
        Ok(Parts { path: folder.path().to_owned(), folder: Some(folder).into() })
    }

    fn path(&self) -> &Path {
        &self.path
    }

    /// The folder as the provider is told of it: ranks on other hosts may not see it.
    fn variable(&self) -> OsString {
        let mut variable = OsString::from("?");
        variable.push(&self.path);
        variable
    }

    /// The trace could not be written: what it is made of stays.
    fn keep(&self) {
        let has_bytes = |file: fs::DirEntry| file.metadata().is_ok_and(|found| found.len() > 0);
        let is_empty = fs::read_dir(&self.path).is_ok_and(|mut files| !files.any(|file| file.is_ok_and(has_bytes)));
        if let Some(folder) = self.folder.take().filter(|_| !is_empty) {
            let folder = folder.keep();
            print_line(&format!(
                "what the ranks recorded is in {}: `tidegate record --from` makes a trace of it",
                folder.display()
            ));
        }
    }
}

/// A trace of what a run that was killed has left, or processes that a user has told to record.
fn record_from(arguments: &RecordArguments, folder: &Path) -> Result<u8, Failure> {
    fs::read_dir(folder).map_err(|error| Failure::usage(format!("--from={}: {error}", folder.display())))?;
    let traces = merge(arguments, folder)?;
    if let Some(path) = &arguments.run.json {
        let value = json!({ "schema": RECORD_SCHEMA, "trace": files_json(&traces) });
        if super::is_standard_output(path) {
            super::print_json(&value)?;
        } else {
            super::write_file(path, &format!("{value:#}\n"))?;
        }
    }
    Ok(0)
}

/// A trace that has been written.
struct Written {
    path: PathBuf,
    trace: Trace,
}

/// Writes the trace of each job that left something in the folder, and says what is in it.
fn merge(arguments: &RecordArguments, folder: &Path) -> Result<Vec<Written>, Failure> {
    let traces = trace::merge(folder).map_err(|error| Failure::own(format!("no trace can be made: {error}")))?;
    if traces.is_empty() {
        let output = arguments.output.display();
        return Err(match &arguments.from {
            Some(from) => Failure::usage(format!(
                "--from={}: no process has left a trace there, so {output} was not written",
                from.display()
            )),
            None => Failure::own(format!("no process has left a trace, so {output} was not written")),
        });
    }
    let mut written = Vec::new();
    for (trace, number) in traces.into_iter().zip(1..) {
        let path = numbered(&arguments.output, number);
        let title = title(arguments, folder);
        let failed = |error| Failure::own(format!("cannot write {}: {error}", path.display()));
        writing::write(&path, &trace.job, &title).map_err(failed)?;
        say(&path, &trace, arguments.run.quiet);
        written.push(Written { path, trace });
    }
    Ok(written)
}

/// The file for the second job, and the third, of a command that runs several.
fn numbered(output: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return output.to_owned();
    }
    let mut name = output.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = output.extension() {
        name.push(".");
        name.push(extension);
    }
    output.with_file_name(name)
}

/// Where a trace is from.
fn title(arguments: &RecordArguments, folder: &Path) -> String {
    let from = match &arguments.from {
        Some(_) => format!("--from {}", folder.display()),
        None => arguments.run.command.join(" ".as_ref()).to_string_lossy().into_owned(),
    };
    format!("Recorded by tidegate {}: {from}", env!("CARGO_PKG_VERSION"))
}

fn say(path: &Path, trace: &Trace, is_quiet: bool) {
    let mut text = String::new();
    if !is_quiet {
        text += &format!("\ntidegate: trace in {}: {}\n", path.display(), trace.summary.content());
    }
    for gap in trace.summary.gaps() {
        text += &format!("tidegate: {}: {gap}\n", path.display());
    }
    // If standard error is closed, there is nobody to tell.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Says it where the counters know of more messages than the recording: then something was not recorded at all. (They
/// know of fewer where sends had not left yet when their process ended.)
fn compare(traces: &[Written], job: &Job) {
    let of_job = |counter| job.spread(counter).map_or(0, |spread| spread.job);
    let sent = [Counter::MessagesEager, Counter::MessagesRendezvous, Counter::MessagesSelf].map(of_job);
    let sent: u64 = sent.iter().sum();
    let recorded: u64 = traces
        .iter()
        .map(|written| &written.trace.summary)
        .map(|summary| summary.pairs.messages + summary.pairs.sends_cut)
        .sum();
    if sent > recorded {
        print_line(&format!("the counters have {sent} messages sent, the recordings of the ranks {recorded}"));
    }
}

fn files_json(traces: &[Written]) -> Value {
    let file = |written: &Written| {
        let mut value = written.trace.summary.json();
        value["path"] = json!(written.path.to_string_lossy());
        value
    };
    traces.iter().map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_jobs_get_numbered_files() {
        for (output, number, expected) in
            [("a/x.goal", 1, "a/x.goal"), ("a/x.goal", 2, "a/x-2.goal"), ("x", 3, "x-3"), ("x.y.goal", 2, "x.y-2.goal")]
        {
            assert_eq!(numbered(Path::new(output), number), Path::new(expected));
        }
    }

    #[test]
    fn the_folder_of_a_bare_name_is_the_current_one() {
        assert_eq!([folder_of(Path::new("x")), folder_of(Path::new("/a/x"))], [PathBuf::from("."), "/a".into()]);
    }
}
