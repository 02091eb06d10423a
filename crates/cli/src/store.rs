//! [`Folder`]: simulated runs that have ended, kept below the folder of results.
//!
//! One file per run, `.runs/<code>/<key>.json`: the fingerprint of the code that did it, the hash of what decides it.
//! Processes share such a folder, also from several hosts:
//!
//! * A process that does a run holds the lock of `<key>.running` meanwhile, where it has written its host and its
//!   number. Another process that wants the same run finds it locked and does others. A lock ends with its process,
//!   however that ends.
//! * A run is written into a file that no other process writes, made durable, and renamed: so a file that ends in
//!   `json` is whole, whatever happened, also where a file system knows no locks or keeps them from other hosts. The
//!   unfinished file of a killed process is removed by the next process that gets its lock.
//! * A server may keep the locks of a host that is gone for good (NFS version 3). So a process that holds a lock
//!   touches the file twice a minute, and a process that has seen a locked file untouched for [`ABANDONED_AFTER`], by
//!   its own clock, takes the run over. If the other process lives after all, the run is done twice, with the same
//!   result.
//! * Where files cannot be locked at all, runs are kept all the same, and may be done twice.
//!
//! Whatever a file holds is checked before it is believed.

mod heartbeat;

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tidegate_link::log::print_line;
use tidegate_sim::{FinishedRun, Measurement, RunClaim, RunKey, RunStore};

use heartbeat::Heartbeat;

/// The folder below that of the results.
const NAME: &str = ".runs";

/// A process that has shown no sign of life for this time is taken for dead, and its run is done by another one.
pub const ABANDONED_AFTER: Duration = Duration::from_secs(300);

/// After how long a run that another process is doing is asked for again.
pub const ASK_AGAIN: Duration = Duration::from_millis(250);

/// The result of a run, as a file can keep it.
pub trait Kept: Serialize + DeserializeOwned {
    /// Whether its numbers can be those of a run.
    fn is_sound(&self) -> bool {
        true
    }
}

impl Kept for Measurement {
    fn is_sound(&self) -> bool {
        self.time.is_finite()
    }
}

/// Whose runs are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Those of the same code; the program has no option for others.
    OwnCode,
    /// Those of the same code, where an option takes others too.
    SameCode,
    /// Those of any code, the same before others.
    AnyCode,
}

/// Runs in a folder.
#[derive(Debug)]
pub struct Folder {
    /// Of this code.
    own: PathBuf,
    /// Of other code, the newest first.
    others: Vec<PathBuf>,
    reuse: Reuse,
    /// Files that were ignored, and that was said.
    ignored: Mutex<HashSet<PathBuf>>,
    /// A run could not be kept, or not be locked, and that was said.
    has_complained: AtomicBool,
    /// Files here cannot be locked.
    is_without_locks: AtomicBool,
    /// Files that other processes have locked, as they were when we first saw them so.
    watched: Mutex<HashMap<PathBuf, (Stamp, Instant)>>,
    heartbeat: Heartbeat,
}

/// The number of a file and its time, in seconds and nanoseconds: they change when it is touched or replaced.
type Stamp = (u64, i64, i64);

impl Folder {
    /// The runs below `out` for a program of this code. Where an option takes those of other code, that is said.
    ///
    /// # Errors
    /// If the folder can be neither made nor read.
    pub fn open(out: &Path, reuse: Reuse, code: &str) -> io::Result<Self> {
        let all = Self::of(out);
        let own = all.join(code);
        fs::create_dir_all(&own)?;
        let mut others = Vec::new();
        for entry in fs::read_dir(&all)? {
            let entry = entry?;
            if entry.path() != own && entry.file_type()?.is_dir() {
                others.push((entry.metadata()?.modified()?, entry.path()));
            }
        }
        others.sort();
        let others: Vec<PathBuf> = others.into_iter().rev().map(|(_, path)| path).collect();
        let folder = Folder {
            own,
            others,
            reuse,
            ignored: Mutex::default(),
            has_complained: AtomicBool::new(false),
            is_without_locks: AtomicBool::new(false),
            watched: Mutex::default(),
            heartbeat: Heartbeat::default(),
        };
        if reuse != Reuse::OwnCode {
            folder.say_others();
        }
        Ok(folder)
    }

    /// Says how many runs of other code there are, if there are any, and whether they are used.
    pub fn say_others(&self) {
        if self.others.is_empty() {
            return;
        }
        let runs: usize = self.others.iter().map(|folder| count(folder)).sum();
        let fate = match self.reuse {
            Reuse::OwnCode => "not used",
            Reuse::SameCode => "not used; --reuse-older uses them",
            Reuse::AnyCode => "used where this version has none",
        };
        let all = self.own.parent().unwrap_or(&self.own).display();
        print_line(&format!("{all} holds {runs} runs of other versions of the simulator, {fate}"));
    }

    /// Where runs are kept below the folder of results.
    #[must_use]
    pub fn of(out: &Path) -> PathBuf {
        out.join(NAME)
    }

    /// Whether a process knows which runs others are doing. Until something was claimed, it is believed.
    #[must_use]
    pub fn has_locks(&self) -> bool {
        !self.is_without_locks.load(Relaxed)
    }

    fn path(&self, key: &RunKey) -> PathBuf {
        self.own.join(format!("{}.json", key.digits()))
    }

    /// Whether the process that has locked a file has not touched it for too long; `now` is when we look.
    fn is_abandoned(&self, running: &Path, now: Instant) -> bool {
        let Ok(file) = fs::metadata(running) else { return false };
        let stamp = (file.ino(), file.mtime(), file.mtime_nsec());
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let (seen, since) = watched.entry(running.to_owned()).or_insert((stamp, now));
        if *seen != stamp {
            (*seen, *since) = (stamp, now);
        }
        now.duration_since(*since) >= ABANDONED_AFTER
    }

    /// Claims a run, by the clock of this process.
    fn claim_at(&self, key: &RunKey, now: Instant) -> Option<Claim> {
        let path = self.path(key);
        let running = path.with_extension("running");
        let mut found = lock(&running);
        if matches!(found, Ok(Lock::OfOther)) && self.is_abandoned(&running, now) {
            print_line(&format!(
                "{} is locked, and its process has shown no sign of life for {} minutes: the run is done here",
                running.display(),
                ABANDONED_AFTER.as_secs() / 60
            ));
            let _ = fs::remove_file(&running);
            found = lock(&running);
        }
        let is_kept = found.is_ok();
        let (file, why) = match found {
            Ok(Lock::OfOther) => return None,
            Ok(Lock::Ours(file)) => (Some(file), None),
            Ok(Lock::Impossible(error)) => {
                let _ = fs::remove_file(&running);
                self.is_without_locks.store(true, Relaxed);
                (None, Some(format!("cannot lock files in {}: {error}; runs may be done twice", self.own.display())))
            }
            // The result is worth more than the certainty that no other process does the same run.
            Err(error) => (None, Some(format!("cannot keep runs in {}: {error}", self.own.display()))),
        };
        if let Some(why) = why.filter(|_| !self.has_complained.swap(true, Relaxed)) {
            print_line(&why);
        }
        let file = file.map(Arc::new);
        if let Some(file) = &file {
            self.heartbeat.begin(&running, file);
        }
        Some(Claim { file, path, is_kept, heartbeat: self.heartbeat.clone() })
    }
}

/// How many runs a folder holds.
fn count(folder: &Path) -> usize {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    names.filter(|entry| entry.path().extension().is_some_and(|ending| ending == "json")).count()
}

/// The run of a file, if it is one of this key, by code of the same name as the folder. `Err`: why it is not.
fn read<M: Kept>(path: &Path, key: &RunKey) -> Result<Option<FinishedRun<M>>, String> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let run: FinishedRun<M> = serde_json::from_slice(&bytes).map_err(|error| format!("it is damaged: {error}"))?;
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    if run.key != *key {
        return Err("it is another run's".to_owned());
    }
    if folder != run.code.as_str() {
        return Err(format!("it is of another version of the simulator, {}", run.code));
    }
    if !(run.seconds >= 0.0 && run.measurement.is_sound()) {
        return Err("its numbers make no sense".to_owned());
    }
    Ok(Some(run))
}

impl<M: Kept> RunStore<M> for Folder {
    fn load(&self, key: &RunKey) -> Option<FinishedRun<M>> {
        let name = self.path(key);
        let name = name.file_name().unwrap_or_default();
        let others = if self.reuse == Reuse::AnyCode { &self.others[..] } else { &[] };
        let folders = std::iter::once(&self.own).chain(others);
        let found = folders.map(|folder| folder.join(name)).find_map(|path| {
            read(&path, key).unwrap_or_else(|why| {
                if self.ignored.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone()) {
                    print_line(&format!("{} is ignored, and the run done again: {why}", path.display()));
                }
                None
            })
        });
        if found.is_some() && self.path(key).with_extension("running").exists() {
            // Its process was killed after it had kept the run: a claim that is dropped removes what it has left.
            drop(self.claim_at(key, Instant::now()));
        }
        found
    }

    fn claim(&self, key: &RunKey) -> Option<Box<dyn RunClaim<M>>> {
        self.claim_at(key, Instant::now()).map(|claim| Box::new(claim) as Box<dyn RunClaim<M>>)
    }
}

/// The result of an attempt to lock a file.
enum Lock {
    /// This process holds it now.
    Ours(File),
    /// Another one holds it.
    OfOther,
    /// The file system does not do that.
    Impossible(io::Error),
}

/// Opens and locks a file, writes into it which process has it, and removes what a killed one has left.
fn lock(path: &Path) -> io::Result<Lock> {
    loop {
        let file = File::options().create(true).truncate(false).read(true).write(true).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(Lock::OfOther),
            Err(error) => return Ok(Lock::Impossible(error.into())),
        }
        // The file may have got another name or none between the two calls: then it is not ours to write.
        if is_at(&file, path) {
            let mut before = [0; NAME_BYTES_MOST];
            let read = file.read_at(&mut before, 0).unwrap_or(0);
            if let Some(before) = str::from_utf8(&before[..read]).ok().filter(|before| is_name(before)) {
                let _ = fs::remove_file(unfinished(path, before));
            }
            // The name is for people and for the removal above; the lock is as good without it.
            let _ = file.set_len(0).and_then(|()| file.write_all_at(own_name().as_bytes(), 0));
            return Ok(Lock::Ours(file));
        }
    }
}

/// Whether an open file is the one at this path.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |of: fs::Metadata| (of.dev(), of.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(theirs)) => identity(ours) == identity(theirs),
        _ => false,
    }
}

/// Longest name of a process, in bytes.
const NAME_BYTES_MOST: usize = 200;

/// A name of this process that no other one has, on any host.
fn own_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '.';
    let host: String = name.chars().filter(|letter| plain(*letter)).take(NAME_BYTES_MOST / 2).collect();
    format!("{host}_{}", std::process::id())
}

/// Whether a text can be the name of a process, hence a part of a file's.
fn is_name(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    (1..NAME_BYTES_MOST).contains(&text.len()) && text.chars().all(is_plain)
}

/// Where a process writes a run before it gets its name.
fn unfinished(path: &Path, process: &str) -> PathBuf {
    path.with_extension(format!("{process}.new"))
}

/// The right to do a run: a locked file, where files can be locked.
struct Claim {
    file: Option<Arc<File>>,
    /// Where the run will be.
    path: PathBuf,
    /// Whether it can be kept there. If not, that was said.
    is_kept: bool,
    heartbeat: Heartbeat,
}

impl Claim {
    fn running(&self) -> PathBuf {
        self.path.with_extension("running")
    }

    fn write<M: Kept>(&self, run: &FinishedRun<M>) -> io::Result<()> {
        let new = unfinished(&self.path, &own_name());
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(&serde_json::to_vec(run).map_err(io::Error::other)?)?;
            file.sync_all()?;
            fs::rename(&new, &self.path)
        });
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }
}

impl<M: Kept> RunClaim<M> for Claim {
    fn keep(self: Box<Self>, run: &FinishedRun<M>) {
        if let Some(error) = self.is_kept.then(|| self.write(run)).and_then(Result::err) {
            print_line(&format!("cannot keep a run in {}: {error}", self.path.display()));
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let Some(file) = &self.file else { return };
        let running = self.running();
        self.heartbeat.end(&running);
        // Before the lock ends. If another process has taken the run over, the file is that process's.
        if is_at(file, &running) {
            let _ = fs::remove_file(&running);
        }
    }
}

#[cfg(test)]
mod tests;
