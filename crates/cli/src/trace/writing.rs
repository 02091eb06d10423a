//! A trace as text in GOAL, which [`tidegate_sim::workload::Trace`] reads.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tempfile::NamedTempFile;
use tidegate_sim::workload::{RecordedOperation, Step as GoalStep, write_rank};
use tidegate_sim::{Rank, Tag, Time};

use super::job::Job;
use super::left::{Process, Step, Way};

/// Writes a trace to a file, as a whole or not at all. `title` says where it is from, in one line.
///
/// # Errors
/// Those of the file.
pub fn write(path: &Path, job: &Job, title: &str) -> io::Result<()> {
    // A device or a pipe is written to; a file is replaced when all is there.
    if path.exists() && !path.is_file() {
        return write_text(&mut BufWriter::new(File::create(path)?), job, title);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = NamedTempFile::new_in(folder)?;
    let mut text = BufWriter::new(file);
    write_text(&mut text, job, title)?;
    let file = text.into_inner().map_err(io::IntoInnerError::into_error)?;
    // As other files of this user: a temporary one is nobody else's.
    file.as_file().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    file.persist(path)?;
    Ok(())
}

/// The same as text.
///
/// # Errors
/// Those of `out`.
pub fn write_text(out: &mut impl Write, job: &Job, title: &str) -> io::Result<()> {
    writeln!(out, "// {}", title.replace('\n', " "))?;
    writeln!(out, "num_ranks {}", job.size)?;
    let mut text = Text { out, error: None };
    for rank in 0..job.size {
        let process = job.ranks.iter().position(|own| *own == rank).map(|index| &job.processes[index]);
        let steps = process.map_or_else(Vec::new, |process| goal_steps(job, process));
        if write_rank(&mut text, rank, steps).is_err() {
            return Err(text.error.unwrap_or_else(|| io::Error::other("a number that cannot be written")));
        }
    }
    text.out.flush()
}

/// What a process does, with each step the operations before it that must be over.
fn goal_steps(job: &Job, process: &Process) -> Vec<GoalStep> {
    // Where each operation is among the steps.
    let mut places = vec![0; process.operations.len()];
    let (mut steps, mut after) = (Vec::new(), Vec::new());
    for step in &process.course {
        let deed = match step {
            Step::Compute(nanoseconds) => RecordedOperation::Compute(Time::from_nanoseconds(*nanoseconds)),
            Step::Wait(at) => {
                after.push(places[*at]);
                continue;
            }
            Step::Start(at) => {
                places[*at] = steps.len();
                let operation = &process.operations[*at];
                let (Some((other, _)), Some(message)) = (operation.partner, operation.message) else { continue };
                let (rank, bytes, tag) = (Rank(job.ranks[other]), message.bytes, Tag(operation.tag));
                match operation.way {
                    Way::Send => RecordedOperation::Send { to: rank, bytes, tag },
                    Way::Receive => RecordedOperation::Receive { from: rank.into(), bytes, tag: tag.into() },
                }
            }
        };
        steps.push(GoalStep { deed, after: std::mem::take(&mut after) });
    }
    steps
}

/// Bytes where text is wanted.
struct Text<'a, W> {
    out: &'a mut W,
    error: Option<io::Error>,
}

impl<W: Write> fmt::Write for Text<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.out.write_all(text.as_bytes()).map_err(|error| {
            self.error = Some(error);
            fmt::Error
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::left::tests::{message, process};
    use crate::trace::{Trace, left};
    use tidegate_fi::trace::format::Record;

    fn text_of(processes: Vec<left::Process>) -> String {
        let trace = Trace::of(Job::all(processes).remove(0));
        let mut text = Vec::new();
        write_text(&mut text, &trace.job, "two lines\nin one").unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_question_and_its_answer_are_a_trace_that_the_simulator_reads() {
        let asks = [
            Record::Compute(5),
            Record::Send { number: 0, message: message(1, 77) },
            Record::Read { number: 0 },
            Record::Receive { number: 1 },
            Record::Met { number: 1, message: message(1, 78) },
            Record::Read { number: 1 },
            Record::Compute(9),
        ];
        let answers = [
            Record::Receive { number: 0 },
            Record::Met { number: 0, message: message(0, 77) },
            Record::Read { number: 0 },
            Record::Send { number: 1, message: message(0, 78) },
        ];
        let text = text_of(vec![process(0, 3, &asks), process(1, 3, &answers)]);
        let expected = "// two lines in one\nnum_ranks 3\n\
            rank 0 {\nl0: calc 5\nl1: send 8b to 1 tag 0\nl1 requires l0\n\
            l2: recv 8b from 1 tag 1\nl2 irequires l1\nl2 requires l1\nl3: calc 9\nl3 irequires l2\nl3 requires l2\n}\n\
            rank 1 {\nl0: recv 8b from 0 tag 0\nl1: send 8b to 0 tag 1\nl1 irequires l0\nl1 requires l0\n}\n\
            rank 2 {\n}\n";
        assert_eq!(text, expected);
        let read = tidegate_sim::workload::Trace::parse(&text).unwrap();
        assert_eq!((read.size(), read.messages()), (3, (2, 16)));
    }

    #[test]
    fn a_file_is_replaced_only_by_a_whole_trace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.goal");
        std::fs::write(&path, "before").unwrap();
        let job = Trace::of(Job::all(vec![process(0, 1, &[])]).remove(0)).job;
        write(&path, &job, "x").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "// x\nnum_ranks 1\nrank 0 {\n}\n");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write(&folder.path().join("no/x.goal"), &job, "x").is_err());
    }
}
