//! The folder of a recording: made before the run, finished after it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tidegate_link::files::{create_new, named, open_own, read_left, replace};

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
        check_names(folder)?;
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
                let (bytes, path) = (serde_json::to_vec(&self.facts)?, self.folder.join(FACTS_FILE));
                let write = |mut file: fs::File| file.set_len(0).and_then(|()| file.write_all(&bytes));
                open_own(&path).and_then(write).map_err(|error| named(&path, error))
            }
            _ => Err(error),
        })
    }

    /// Removes what was made, because there was nothing to record.
    pub fn discard(self) {
        remove(&self.folder, self.made_folder);
    }
}

/// Nothing in the folder has a name that a recording needs, be it a recording or something of the user's, which would
/// be replaced.
fn check_names(folder: &Path) -> Result<(), Failure> {
    let paths = [FACTS_FILE, SAMPLES_FILE, LAST_FILE].map(|name| folder.join(name));
    let names = paths.iter().flat_map(|path| [path.clone(), draft_of(path)]);
    let Some(taken) = names.into_iter().find(|path| fs::symlink_metadata(path).is_ok()) else { return Ok(()) };
    let record = folder.display();
    Err(Failure::usage(match read_facts(folder) {
        Ok(facts) => format!(
            "--record={record}: there is a recording of `{}` already: name another folder, or remove that one (rm -r \
             {record})",
            facts.command_line()
        ),
        Err(_) => format!(
            "--record={record}: {0} is there already, and a recording needs that name: name another folder, or remove \
             it (rm -r {0})",
            taken.display()
        ),
    }))
}

/// The name under which a file is written that is to replace another one.
pub(super) fn draft_of(path: &Path) -> PathBuf {
    path.with_extension("new")
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
    let draft = draft_of(&path);
    let bytes = serde_json::to_vec(value)?;
    let mut file = create_new(&draft).map_err(|error| named(&draft, error))?;
    let written = file.write_all(&bytes).and_then(|()| replace(&path, &draft));
    written.inspect_err(|_| _ = fs::remove_file(&draft)).map_err(|error| named(&path, error))
}

/// How to get a recording where a folder has none: those in the folder itself, or else a new one.
fn how_to_get_one(folder: &Path) -> String {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut near: Vec<PathBuf> = entries.filter(|path| path.join(FACTS_FILE).is_file()).collect();
    near.sort();
    match near.as_slice() {
        [] if folder.exists() => {
            "make one in a new folder with `tidegate run --record slow mpiexec …`, and then: tidegate report slow"
                .to_owned()
        }
        [] => format!("make one with `tidegate run --record {} mpiexec …`", folder.display()),
        [one] => format!("did you mean {}?", one.display()),
        [first, ..] => format!("{} folders in it have one, for example {}", near.len(), first.display()),
    }
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
        Failure::usage(format!("{}: {what}: {}", folder.display(), how_to_get_one(folder)))
    })?;
    let facts: Option<Facts> = serde_json::from_slice(&bytes).ok();
    facts.filter(|facts| facts.schema == RECORDING_SCHEMA).ok_or_else(|| {
        Failure::usage(format!(
            "{} is none of {RECORDING_SCHEMA}, which this version of tidegate reads: report it with the version that \
             recorded it",
            path.display()
        ))
    })
}

/// The rows that were written last; empty if there are none.
///
/// # Errors
/// If it cannot be read, or another version has written it.
pub fn read_last(folder: &Path) -> Result<Last, Failure> {
    let path = folder.join(LAST_FILE);
    let bytes = match read_left(&path, JSON_BYTES_MOST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Last::default()),
        read => read.map_err(|error| Failure::usage(named(&path, error).to_string()))?,
    };
    let last: Option<Last> = serde_json::from_slice(&bytes).ok();
    last.filter(|last| last.schema == RECORDING_SCHEMA).ok_or_else(|| {
        Failure::usage(format!(
            "{} is none of {RECORDING_SCHEMA}, which this version of tidegate reads: without it the report says less; \
             remove it",
            path.display()
        ))
    })
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
            options: Vec::new(),
            mpi: Some("MPICH 5.0.2".to_owned()),
            environment: std::collections::BTreeMap::new(),
            host: "here".to_owned(),
            started_s: 1_795_000_000.0,
            interval_ns: 100_000_000,
            processors: Some(8),
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
    fn a_file_of_the_user_that_has_a_name_of_ours_is_refused_and_kept() {
        for name in [LAST_FILE, SAMPLES_FILE, "last.new", "recording.new", "samples.new"] {
            let place = tempfile::tempdir().unwrap();
            let path = place.path().join(name);
            fs::write(&path, "precious").unwrap();
            let said = Recorder::create(place.path(), facts(), BOUNDS).unwrap_err().to_string();
            assert!(said.contains(&format!("(rm -r {})", path.display())), "{said}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        }
    }

    /// Puts something into the folder, as another user may while the program runs.
    fn plant(path: &Path, kind: &str) {
        match kind {
            "a folder" => fs::create_dir(path).unwrap(),
            "a pipe" => assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success()),
            _ => std::os::unix::fs::symlink("/etc/passwd", path).unwrap(),
        }
    }

    #[test]
    fn what_others_put_in_the_place_of_a_file_is_replaced_or_named_with_a_remedy() {
        for kind in ["a folder", "a pipe", "a link"] {
            let place = tempfile::tempdir().unwrap();
            let path = |name: &str| place.path().join(name);
            let recorder = Recorder::create(place.path(), facts(), BOUNDS).unwrap();
            let remedy = "remove it, or name a folder that other users cannot write to";
            plant(&path(LAST_FILE), kind);
            let said = read_last(place.path()).unwrap_err().to_string();
            assert_eq!(said, format!("{}: it is {kind}, not a file: {remedy}", path(LAST_FILE).display()));
            match recorder.write_last(&Last::default()) {
                Ok(()) => assert!(path(LAST_FILE).symlink_metadata().unwrap().is_file(), "{kind}"),
                Err(error) => assert_eq!((error.to_string(), kind), (said, "a folder")),
            }
            plant(&path("last.new"), kind);
            let said = recorder.write_last(&Last::default()).unwrap_err().to_string();
            assert_eq!(said, format!("{}: {kind} stands there already: {remedy}", path("last.new").display()));
            plant(&path("recording.new"), kind);
            let said = recorder.finish(End::default()).unwrap_err().to_string();
            assert!(said.starts_with(&format!("{}: {kind} stands", path("recording.new").display())), "{said}");
        }
    }

    #[test]
    fn what_is_no_recording_is_refused_with_a_remedy() {
        let place = tempfile::tempdir().unwrap();
        let said = read_facts(place.path()).unwrap_err().to_string();
        assert!(said.contains("no recording is there") && said.contains("tidegate run --record"), "{said}");
        fs::write(place.path().join(FACTS_FILE), r#"{"schema":"tidegate-recording/9"}"#).unwrap();
        let said = read_facts(place.path()).unwrap_err().to_string();
        assert!(said.contains("is none of tidegate-recording/2"), "{said}");
        assert_eq!(read_last(place.path()).unwrap().endpoints.len(), 0, "nothing was written");
        fs::write(place.path().join(LAST_FILE), "[]").unwrap();
        let said = read_last(place.path()).unwrap_err().to_string();
        assert!(said.contains("last.json is none of tidegate-recording/2") && said.contains("remove it"), "{said}");
    }
}
