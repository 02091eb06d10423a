//! [`Heartbeat`]: while this process does runs, it touches the files that it has locked for them.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

/// How often a file is touched. Ten times in [`ABANDONED_AFTER`](super::ABANDONED_AFTER), because another host may see
/// a file's time a minute late.
const TOUCH_EVERY: Duration = Duration::from_secs(30);

/// Files that are touched. All clones touch the same ones; their thread ends when no file is left.
#[derive(Clone, Debug, Default)]
pub(super) struct Heartbeat(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct State {
    files: HashMap<PathBuf, Arc<File>>,
    /// A thread touches them.
    is_running: bool,
}

impl Heartbeat {
    /// Touches this file from now on. Where no thread can be had it is left alone: then others may do the run, too.
    pub fn begin(&self, path: &Path, file: &Arc<File>) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.files.insert(path.to_owned(), file.clone());
        if !state.is_running {
            let shared = self.0.clone();
            let thread = thread::Builder::new().name("kept runs".to_owned());
            state.is_running = thread.spawn(move || shared.touch_all()).is_ok();
        }
    }

    /// Does not touch it any more.
    pub fn end(&self, path: &Path) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.files.remove(path);
        if state.files.is_empty() {
            self.0.emptied.notify_all();
        }
    }
}

impl Shared {
    fn touch_all(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let waited = self.emptied.wait_timeout(state, TOUCH_EVERY).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
            if state.files.is_empty() {
                state.is_running = false;
                return;
            }
            if waited.1.timed_out() {
                for file in state.files.values() {
                    let _ = file.set_modified(SystemTime::now());
                }
            }
        }
    }
}
