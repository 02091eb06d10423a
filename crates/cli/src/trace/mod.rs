//! What the processes of a recorded job left, into traces in GOAL that `tidegate sim` replays.
//!
//! Each file uses only those above it:
//!
//! * [`left`]: what one process left;
//! * [`job`]: which processes belong to one job, and which rank each is;
//! * [`pairing`]: which receive got which send; what has no other end is left out;
//! * [`order`]: which waits of the recording a replay may keep, so that it ends whenever a send may;
//! * [`writing`]: the text;
//! * [`summary`]: what is in a trace and what is not.

pub mod job;
pub mod left;
pub mod order;
pub mod pairing;
pub mod summary;
pub mod writing;

use std::io;
use std::path::Path;

use job::Job;
use summary::Summary;

/// A trace, ready to be written.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Who does what.
    pub job: Job,
    /// What is in it.
    pub summary: Summary,
}

/// The traces of the jobs whose processes left something in the folder, in the order in which the jobs began.
///
/// # Errors
/// The folder or a file in it cannot be read, or a file is of another version.
pub fn merge(folder: &Path) -> io::Result<Vec<Trace>> {
    let jobs = Job::all(left::read_dir(folder)?);
    Ok(jobs.into_iter().map(Trace::of).collect())
}

impl Trace {
    fn of(mut job: Job) -> Self {
        let pairs = pairing::pair(&mut job);
        let moved = order::relax(&mut job);
        let summary = Summary::of(&job, &pairs, moved);
        Trace { job, summary }
    }
}
