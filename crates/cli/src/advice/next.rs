//! The next thing to do, as a line to copy.

use std::ffi::OsString;

use super::{Advice, ending, failed};
use crate::quote;
use crate::recording::view::View;
use crate::report::typed::{Typed, to_try};

/// A line to copy into a terminal, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    /// Its purpose, in a few words that begin with a capital letter.
    pub why: &'static str,
    /// The line.
    pub line: String,
}

/// The most useful command after a run like this; `None` if there is none. Of a simulated run there is none either.
#[must_use]
pub fn next(run: &View, advice: &Advice) -> Option<Next> {
    if run.is_simulated() {
        return None;
    }
    let words = |words: &[String]| words.iter().map(OsString::from).collect::<Vec<_>>();
    let own = if run.facts.options.is_empty() { vec!["run".into()] } else { words(&run.facts.options) };
    let program = words(&run.facts.command);
    if let Some(option) = advice.changes().first() {
        let line = to_try(&Typed { own: &own, program: &program }, option);
        return Some(Next { why: "Try this", line }).filter(|next| next.line.starts_with("tidegate "));
    }
    let first = advice.points.iter().find(|point| point.id != ending::INCOMPLETE)?;
    let launcher = || {
        let line = quote::line(&["tidegate".into(), "doctor".into(), program.first()?.clone()]);
        // Of a program that is no MPI's launcher doctor knows nothing.
        run.facts.mpi.as_ref()?;
        Some(line).filter(|line| tidegate_link::plain(line) == *line)
    };
    let (why, line) = match first.id {
        ending::NOTHING_SENT => ("Check this machine and its MPI", launcher()?),
        failed::FAILED if lacks_something(run) => ("Check this machine and its MPI", launcher()?),
        ending::UNFINISHED => ("See it in the running job", "tidegate top".to_owned()),
        "late" | "held_up" | "uneven" => ("Watch it in the running job", "tidegate top".to_owned()),
        _ => return None,
    };
    Some(Next { why, line })
}

fn lacks_something(run: &View) -> bool {
    run.facts.end.as_ref().is_some_and(|end| end.failure.lack.is_some() || !end.troubles.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::advise;
    use crate::recording::testing::{Made, values};
    use tidegate_message::{Counter, WaitCause};

    fn line(made: Made, all: &[(Counter, u64)]) -> Option<String> {
        let view = made.view(&vec![values(all); 4]);
        next(&view, &advise(&view)).map(|next| next.line)
    }

    #[test]
    fn the_line_has_the_options_of_the_run_and_one_more() {
        let delayed =
            [(Counter::PacketsSent, 9), (Counter::SendsDelayed, 9), (Counter::DelayNanoseconds, 4_000_000_000)];
        let mut made = Made::new(4);
        made.facts.options = ["run", "--record", "slow", "-q", "--"].map(str::to_owned).to_vec();
        assert_eq!(line(made, &delayed).unwrap(), "tidegate run --slots 128 -q -- mpiexec -n 4 './a program'");
        // A recording of an older version does not know its options.
        assert_eq!(line(Made::new(4), &delayed).unwrap(), "tidegate run --slots 128 mpiexec -n 4 './a program'");
    }

    #[test]
    fn a_late_rank_is_watched_and_what_does_not_go_through_tidegate_checked() {
        let mut made = Made::new(4);
        [0, 2, 3].iter().for_each(|rank| made.wait(*rank, 1, WaitCause::Message, 9.0));
        assert_eq!(line(made, &[(Counter::PacketsSent, 9)]).unwrap(), "tidegate top");
        assert_eq!(line(Made::new(4), &[]).unwrap(), "tidegate doctor mpiexec");
        assert_eq!(line(Made::new(4), &[(Counter::PacketsSent, 9)]), None);
    }
}
