//! How long the runs of a report took, in a file of its own beside it: times depend on the machine, and everything else
//! that is written is the same on every machine.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_cli::files::write_whole;

use super::files;
use crate::experiment::Experiment;
use crate::workshop::{RunTime, SEARCH};

/// The times of one report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// How many runs went on at once.
    pub jobs: usize,
    /// Processors of the machine.
    pub processors: usize,
    /// Seconds by the name of the run, which is the same in all reports that share the run.
    pub seconds: BTreeMap<String, f64>,
}

impl Times {
    /// Those of runs on this machine, so many at once.
    #[must_use]
    pub fn new(jobs: usize, runs: Vec<RunTime>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Times { jobs, processors, seconds: runs.into_iter().map(|run| (run.run, run.seconds)).collect() }
    }
}

impl Times {
    /// How long a search took, in a sentence, if this is of one.
    #[must_use]
    pub fn search(&self) -> Option<String> {
        self.seconds.get(SEARCH).map(|seconds| format!("the search took {:.0} ms.", 1e3 * seconds))
    }
}

fn path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}-times.json"))
}

/// Writes the times of the report `id`; returns the name of the file, if there were runs.
///
/// # Errors
/// If the file cannot be written.
pub fn write(folder: &Path, id: &str, times: &Times) -> io::Result<Option<String>> {
    if times.seconds.is_empty() {
        return Ok(None);
    }
    let path = path(folder, id);
    let json = serde_json::to_value(times).map_err(io::Error::other)?;
    write_whole(&path, &(files::lines_of(&json, 0) + "\n"))?;
    Ok(path.file_name().map(|name| name.to_string_lossy().into_owned()))
}

/// Reads the times that a folder holds, by the report's id.
///
/// # Errors
/// If one cannot be read, or holds no times.
pub fn read(folder: &Path) -> io::Result<BTreeMap<String, Times>> {
    let mut all = BTreeMap::new();
    for experiment in Experiment::all() {
        let path = path(folder, experiment.id);
        match fs::read(&path) {
            Ok(bytes) => {
                let times = serde_json::from_slice(&bytes).map_err(|error| {
                    io::Error::other(format!("{} holds no times: {error}; remove it", path.display()))
                })?;
                all.insert(experiment.id.to_owned(), times);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}
