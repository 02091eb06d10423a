//! [`Folder`]: simulated runs that have ended, kept below the folder of results.
//!
//! One file per run, `.runs/<code>/<key>.json`: the fingerprint of the code that did it, the hash of what decides it.
//! A run is written into `<key>.running`, which is locked meanwhile, made durable, and renamed: so a file that ends in
//! `json` is whole, however a process or the machine ended, and a lock ends with its process. Another process that
//! wants the same run finds it locked and does others in the meantime. Whatever a file holds is checked before it is
//! believed.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};
use tidegate_link::log::print_line;
use tidegate_sim::{FinishedRun, RunClaim, RunKey, RunStore};

/// The folder below that of the results.
const NAME: &str = ".runs";

/// Whose runs are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Those of the same code.
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
    /// A run could not be kept, and that was said.
    has_complained: AtomicBool,
}

impl Folder {
    /// The runs below `out` for a program of this code; says which there are that are not used.
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
        if !others.is_empty() {
            let runs: usize = others.iter().map(|folder| count(folder)).sum();
            let fate = match reuse {
                Reuse::SameCode => "not used; --reuse-older uses them",
                Reuse::AnyCode => "used where this version has none",
            };
            print_line(&format!("{} holds {runs} runs of other versions of the simulator, {fate}", all.display()));
        }
        Ok(Folder { own, others, reuse, ignored: Mutex::default(), has_complained: AtomicBool::new(false) })
    }

    /// Where runs are kept below the folder of results.
    #[must_use]
    pub fn of(out: &Path) -> PathBuf {
        out.join(NAME)
    }

    fn path(&self, key: &RunKey) -> PathBuf {
        self.own.join(format!("{}.json", key.digits()))
    }
}

/// How many runs a folder holds.
fn count(folder: &Path) -> usize {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    names.filter(|entry| entry.path().extension().is_some_and(|ending| ending == "json")).count()
}

/// The run of a file, if it is one of this key, by code of the same name as the folder. `Err`: why it is not.
fn read(path: &Path, key: &RunKey) -> Result<Option<FinishedRun>, String> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let run: FinishedRun = serde_json::from_slice(&bytes).map_err(|error| format!("it is damaged: {error}"))?;
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    if run.key != *key {
        return Err("it is another run's".to_owned());
    }
    if folder != run.code.as_str() {
        return Err(format!("it is of another version of the simulator, {}", run.code));
    }
    if !(run.seconds >= 0.0 && run.measurement.time.is_finite()) {
        return Err("its numbers make no sense".to_owned());
    }
    Ok(Some(run))
}

impl RunStore for Folder {
    fn load(&self, key: &RunKey) -> Option<FinishedRun> {
        let name = self.path(key);
        let name = name.file_name().unwrap_or_default();
        let others = if self.reuse == Reuse::AnyCode { &self.others[..] } else { &[] };
        let folders = std::iter::once(&self.own).chain(others);
        folders.map(|folder| folder.join(name)).find_map(|path| {
            read(&path, key).unwrap_or_else(|why| {
                if self.ignored.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone()) {
                    print_line(&format!("{} is ignored, and the run done again: {why}", path.display()));
                }
                None
            })
        })
    }

    fn claim(&self, key: &RunKey) -> Option<Box<dyn RunClaim>> {
        let path = self.path(key);
        match lock(&path.with_extension("running")) {
            Ok(Some(file)) => Some(Box::new(Claim { file: Some(file), path })),
            Ok(None) => None,
            Err(error) => {
                // Results are worth more than the certainty that nobody else is at it.
                if !self.has_complained.swap(true, Relaxed) {
                    print_line(&format!("cannot keep runs in {}: {error}", self.own.display()));
                }
                Some(Box::new(Claim { file: None, path }))
            }
        }
    }
}

/// Opens and locks a file. `None`: another process has locked it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        // The file may have got another name between the two calls: then it is not ours to write.
        let (ours, theirs) = (file.metadata()?, fs::metadata(path));
        if theirs.is_ok_and(|theirs| (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino())) {
            return Ok(Some(file));
        }
    }
}

/// A locked file, until the run is in it.
struct Claim {
    file: Option<File>,
    /// Where the run will be.
    path: PathBuf,
}

impl Claim {
    fn write(&mut self, run: &FinishedRun) -> io::Result<()> {
        // Once it is renamed a file of that name may be another process's.
        let Some(mut file) = self.file.take() else { return Ok(()) };
        file.set_len(0)?;
        file.write_all(&serde_json::to_vec(run).map_err(io::Error::other)?)?;
        file.sync_all()?;
        fs::rename(self.path.with_extension("running"), &self.path)
    }
}

impl RunClaim for Claim {
    fn keep(mut self: Box<Self>, run: &FinishedRun) {
        if let Err(error) = self.write(run) {
            print_line(&format!("cannot keep a run in {}: {error}", self.path.display()));
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // It is still there if the run was not kept. Nobody else has locked it, so it is no other process's either.
        if self.file.is_some() {
            let _ = fs::remove_file(self.path.with_extension("running"));
        }
    }
}
