//! The folder of a recording: made before the run, finished after it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tidegate_link::files::{create_new, open_own, read_left};

use super::facts::{End, EndpointFacts, Facts};
use super::rows::Last;
use super::samples::SAMPLES_FILE;
use super::writer::{Bounds, Writer};
use super::{RECORDING_SCHEMA, Values};
use crate::failure::Failure;

/// Name of the file that says what was run.
pub const FACTS_FILE: &str = "recording.json";
/// Name of the file with what was seen last that is no counter.
pub const LAST_FILE: &str = "last.json";

/// A longer file is none of ours: the rows of a page take some 20 KiB, and jobs have up to tens of thousands of them.
const JSON_BYTES_MOST: u64 = 4 << 30;

/// Writes a recording.
#[derive(Debug)]
pub struct Recorder {
    folder: PathBuf,
    facts: Facts,
    writer: Writer,
    made_folder: bool,
}

impl Recorder {
    /// Begins a recording in the folder, which is made if it is not there.
    ///
    /// # Errors
    /// If the folder holds a recording already, or cannot be written.
    pub fn create(folder: &Path, facts: Facts, bounds: Bounds) -> Result<Self, Failure> {
        let refused = |error: io::Error| {
            Failure::usage(format!("--record={}: nothing can be recorded there: {error}", folder.display()))
        };
        if [FACTS_FILE, SAMPLES_FILE].iter().any(|file| folder.join(file).exists()) {
            let of = read_facts(folder).map(|facts| format!(" of `{}`", facts.command_line())).unwrap_or_default();
            return Err(Failure::usage(format!(
                "--record={0}: there is a recording{of} already: name another folder, or remove that one (rm -r {0})",
                folder.display()
            )));
        }
        let made_folder = !folder.exists();
        fs::create_dir_all(folder).map_err(refused)?;
        let made = Writer::create(folder, bounds)
            .and_then(|writer| write_json(folder, FACTS_FILE, &facts).map(|()| writer))
            .inspect_err(|_| remove(folder, made_folder));
        let writer = made.map_err(refused)?;
        Ok(Recorder { folder: folder.to_owned(), facts, writer, made_folder })
    }

    /// Adds an endpoint.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add_endpoint(&mut self, facts: &EndpointFacts) -> io::Result<()> {
        self.writer.add_endpoint(facts)
    }

    /// Adds a sample of all endpoints.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add_sample(&mut self, time_ns: u64, values: &[Values]) -> io::Result<()> {
        self.writer.add_sample(time_ns, values)
    }

    /// From one sample to the next at present, in nanoseconds.
    #[must_use]
    pub fn interval_ns(&self) -> u64 {
        self.facts.interval_ns << self.writer.halvings().min(32)
    }

    /// Replaces what was seen last.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_last(&self, last: &Last) -> io::Result<()> {
        write_json(&self.folder, LAST_FILE, last)
    }

    /// Says how the run ended.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self, end: End) -> io::Result<()> {
        self.facts.end = Some(end);
        write_json(&self.folder, FACTS_FILE, &self.facts).or_else(|error| match error.kind() {
            // Where there is no room for a second file, there may be in the first.
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                let bytes = serde_json::to_vec(&self.facts)?;
                let mut file = open_own(&self.folder.join(FACTS_FILE))?;
                file.set_len(0)?;
                file.write_all(&bytes)
            }
            _ => Err(error),
        })
    }

    /// Removes what was made, because there was nothing to record.
    pub fn discard(self) {
        remove(&self.folder, self.made_folder);
    }
}

/// Removes the files of a recording, and its folder if it was made for them.
fn remove(folder: &Path, is_made: bool) {
    for file in [FACTS_FILE, SAMPLES_FILE, LAST_FILE] {
        let _ = fs::remove_file(folder.join(file));
    }
    if is_made {
        let _ = fs::remove_dir(folder);
    }
}

/// Writes a whole file beside the present one, and puts it in its place: a reader sees the one or the other.
fn write_json(folder: &Path, name: &str, value: &impl Serialize) -> io::Result<()> {
    let path = folder.join(name);
    let beside = path.with_extension("new");
    let bytes = serde_json::to_vec(value)?;
    // One that a killed run has left.
    let _ = fs::remove_file(&beside);
    let written =
        create_new(&beside).and_then(|mut file| file.write_all(&bytes)).and_then(|()| fs::rename(&beside, path));
    written.inspect_err(|_| _ = fs::remove_file(&beside))
}

/// What was run.
///
/// # Errors
/// If the folder holds no recording that this version reads.
pub fn read_facts(folder: &Path) -> Result<Facts, Failure> {
    let path = folder.join(FACTS_FILE);
    let bytes = read_left(&path, JSON_BYTES_MOST).map_err(|error| {
        let what = match error.kind() {
            io::ErrorKind::NotFound => "no recording is there".to_owned(),
            _ => format!("{FACTS_FILE}: {error}"),
        };
        Failure::usage(format!("{}: {what}: make one with `tidegate run --record {0} mpiexec …`", folder.display()))
    })?;
    let facts: Option<Facts> = serde_json::from_slice(&bytes).ok();
    facts.filter(|facts| facts.schema == RECORDING_SCHEMA).ok_or_else(|| {
        Failure::usage(format!(
            "{} is none of {RECORDING_SCHEMA}, which this version of tidegate reads",
            path.display()
        ))
    })
}

/// What was seen last; empty if nothing was written or it cannot be read.
#[must_use]
pub fn read_last(folder: &Path) -> Last {
    let bytes = read_left(&folder.join(LAST_FILE), JSON_BYTES_MOST).unwrap_or_default();
    serde_json::from_slice(&bytes).ok().filter(|last: &Last| last.schema == RECORDING_SCHEMA).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::recording::facts::Clock;

    /// A run of four ranks that took 10 s.
    pub fn facts() -> Facts {
        Facts {
            schema: RECORDING_SCHEMA.to_owned(),
            tidegate_version: "0.1.0".to_owned(),
            clock: Clock::Real,
            command: ["mpiexec", "-n", "4", "./a program"].map(str::to_owned).to_vec(),
            mpi: Some("MPICH 5.0.2".to_owned()),
            environment: std::collections::BTreeMap::new(),
            host: "here".to_owned(),
            started_s: 1_795_000_000.0,
            interval_ns: 100_000_000,
            end: Some(End {
                wall_time_s: 10.0,
                interval_ns: 100_000_000,
                looks: 100,
                looks_ns: 10_000_000,
                ..End::default()
            }),
        }
    }

    const BOUNDS: Bounds = Bounds { bytes: 1 << 20, samples: 1000 };

    #[test]
    fn a_folder_with_a_recording_is_refused_with_a_remedy() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("new/one");
        let recorder = Recorder::create(&folder, facts(), BOUNDS).unwrap();
        assert_eq!(read_facts(&folder).unwrap(), facts());
        let refusal = Recorder::create(&folder, facts(), BOUNDS).unwrap_err();
        let said = refusal.to_string();
        assert!(refusal.code == 2 && said.contains("a recording of `mpiexec -n 4 './a program'` already"), "{said}");
        assert!(said.contains(&format!("rm -r {}", folder.display())), "{said}");
        recorder.discard();
        assert!(!folder.exists());
        let refusal = Recorder::create(Path::new("/proc/no"), facts(), BOUNDS).unwrap_err().to_string();
        assert!(refusal.starts_with("--record=/proc/no: "), "{refusal}");
    }

    #[test]
    fn a_folder_with_other_files_keeps_them() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("mine"), "").unwrap();
        Recorder::create(place.path(), facts(), BOUNDS).unwrap().discard();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_recording_is_refused_with_a_remedy() {
        let place = tempfile::tempdir().unwrap();
        let said = read_facts(place.path()).unwrap_err().to_string();
        assert!(said.contains("no recording is there") && said.contains("tidegate run --record"), "{said}");
        fs::write(place.path().join(FACTS_FILE), r#"{"schema":"tidegate-recording/9"}"#).unwrap();
        let said = read_facts(place.path()).unwrap_err().to_string();
        assert!(said.contains("is none of tidegate-recording/1"), "{said}");
    }
}
