//! The recorder of this process, with its clock and its file.
//!
//! One for all domains and endpoints, because a trace has one course of events per process. Whoever holds a domain's
//! lock may take this one; the other way round never happens. A forked child that opens an endpoint has one of its own,
//! with a file of its own: its parent's is the parent's.

use super::clock;
use super::gaps::Waited;
use super::recorder::Recorder;
use crate::border::bindings::FI_LOG_EP_CTRL;
use crate::border::log;
use crate::parameter::TraceSettings;
use crate::parameter::launcher::Job;
use crate::threads::thread::HandlerMutex;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate_link::journal::Journal;
use tidegate_link::process::{self, PerProcess};

/// How the files are called.
pub const SUFFIX: &str = ".trace";
/// Stands for what the launcher did not tell.
pub const UNKNOWN: u64 = u64::MAX;

/// The words that describe a trace, in order.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub enum Word {
    /// The version of the records.
    Version,
    /// The process's number.
    Pid,
    /// Its rank.
    Rank,
    /// Ranks of its job.
    JobSize,
    /// When it began, in nanoseconds since 1970.
    Begun,
    /// Whether other processes have started it (`MPI_Comm_spawn`).
    IsSpawned,
}

/// The version of the records that this provider writes.
pub const VERSION: u64 = 3;

static RECORDER: PerProcess<Option<HandlerMutex<Recorder<Journal>>>> = PerProcess::new();

/// Opens the trace of this process, unless it is open. Where that fails, the user is told, once, and nothing is
/// recorded.
pub fn open(settings: &TraceSettings, job: &Job) {
    RECORDER.get_or_init(|| {
        clock::prepare();
        let begun = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let optional = |value: Option<u32>| value.map_or(UNKNOWN, u64::from);
        let words = [
            VERSION,
            std::process::id().into(),
            optional(job.rank),
            optional(job.size),
            begun.as_nanos() as u64,
            job.is_spawned.into(),
        ];
        let opened = Journal::create(&settings.folder, SUFFIX, settings.most, &words);
        opened.map(|journal| HandlerMutex::new(Recorder::new(journal))).map_err(|error| say_no(settings, &error)).ok()
    });
}

fn say_no(settings: &TraceSettings, error: &std::io::Error) {
    let folder = settings.folder.display();
    log::trouble(FI_LOG_EP_CTRL, &format!("no trace is recorded in {folder} (FI_TIDEGATE_TRACE_DIR): {error}"));
}

/// Does this with the recorder, if there is one.
pub fn with<T>(body: impl FnOnce(&mut Recorder<Journal>) -> T) -> Option<T> {
    let recorder = RECORDER.get()?.as_ref()?;
    let mut recorder = recorder.lock()?;
    if let Some(began) = BEGAN.get() {
        recorder.enter(began, waited);
    }
    Some(body(&mut recorder))
}

/// Runs a call of the application. One within another is a part of that.
pub fn call<T>(body: impl FnOnce() -> T) -> T {
    if BEGAN.get().is_some() {
        return body();
    }
    let began = clock::now();
    BEGAN.set(Some(began));
    let outcome = body();
    BEGAN.set(None);
    if let Some(Some(recorder)) = RECORDER.get()
        && let Some(mut recorder) = recorder.lock()
    {
        recorder.leave(began, clock::now(), waited);
    }
    outcome
}

thread_local! {
    /// When this thread's call began, if it is in one.
    static BEGAN: Cell<Option<u64>> = const { Cell::new(None) };
    /// What the system says of this thread, where it says anything: time on a processor, time ready without one, turns.
    /// The file is of one thread of one process: of a forked child's copy it says what the parent's thread does.
    static STATISTICS: RefCell<Statistics> = const { RefCell::new(Statistics { process: None, file: None }) };
}

/// See [`STATISTICS`].
struct Statistics {
    /// Whose the file is; `None`: nothing was opened yet.
    process: Option<u32>,
    file: Option<File>,
}

/// How long this thread has waited for a processor. Takes about a microsecond.
fn waited() -> Option<Waited> {
    STATISTICS
        .try_with(|statistics| {
            let thread = (&raw const *statistics).addr();
            let mut statistics = statistics.try_borrow_mut().ok()?;
            if statistics.process != Some(process::current()) {
                let file = File::open("/proc/thread-self/schedstat").ok();
                *statistics = Statistics { process: Some(process::number()), file };
            }
            let file = statistics.file.as_ref()?;
            let mut text = [0; 64];
            let length = file.read_at(&mut text, 0).ok()?;
            let words = core::str::from_utf8(&text[..length]).ok()?;
            let nanoseconds = words.split_ascii_whitespace().nth(1)?.parse().ok()?;
            Some(Waited { thread, nanoseconds })
        })
        .ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_knows_how_long_it_has_waited_for_a_processor() {
        if !std::path::Path::new("/proc/thread-self/schedstat").exists() {
            return;
        }
        let (first, second) = (waited().unwrap(), waited().unwrap());
        assert!(first.thread == second.thread && first.nanoseconds <= second.nanoseconds);
        let other = std::thread::spawn(|| waited().unwrap().thread).join().unwrap();
        assert_ne!(other, first.thread);
    }
}
