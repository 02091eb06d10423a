//! Log lines go to libfabric, which filters them by `FI_LOG_LEVEL`, `FI_LOG_PROV` and `FI_LOG_SUBSYS`.

use crate::border::bindings::*;
use crate::border::loader;
use crate::threads::thread::HandlerMutex;
use std::collections::HashSet;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tidegate_link::log::{Level, print_line};
use tidegate_link::process::PerProcess;
use tidegate_link::trouble;

/// From now on the log lines of the link (`tidegate_link`) come here.
pub fn connect() {
    tidegate_link::log::set_sink(|level, text| {
        let level = match level {
            Level::Trouble => return trouble(FI_LOG_EP_DATA, text),
            Level::Warn => FI_LOG_WARN,
            Level::Info => FI_LOG_INFO,
            Level::Debug => FI_LOG_DEBUG,
        };
        line(level, FI_LOG_EP_DATA, || text.to_owned());
    });
}

/// A warning: something is wrong, and somebody should look at it.
#[track_caller]
pub fn warn(subsystem: fi_log_subsys, text: impl FnOnce() -> String) {
    line(FI_LOG_WARN, subsystem, text);
}

/// Whether information of a subsystem is shown.
pub fn shows_info(subsystem: fi_log_subsys) -> bool {
    loader::get().is_some_and(|loader| loader.logs(FI_LOG_INFO, subsystem))
}

/// Information: a choice that explains later behaviour.
#[track_caller]
pub fn info(subsystem: fi_log_subsys, text: impl FnOnce() -> String) {
    line(FI_LOG_INFO, subsystem, text);
}

#[track_caller]
fn line(level: fi_log_level, subsystem: fi_log_subsys, text: impl FnOnce() -> String) {
    let Some(loader) = loader::get().filter(|loader| loader.logs(level, subsystem)) else { return };
    let place = core::panic::Location::caller();
    let file = place.file().rsplit('/').next().unwrap_or_default();
    loader.log(level, subsystem, &text_of(file), place.line() as i32, &text_of(&text()));
}

fn text_of(text: &str) -> CString {
    CString::new(text.replace('\0', "?")).unwrap_or_default()
}

/// How many different texts a process writes to standard error at most. Texts may name peers, of which there can be
/// many.
const TEXTS_MOST: usize = 64;

/// Reports a fault that the user has to mend. It goes to the log, and each text goes to standard error once as well,
/// because libfabric's log is off unless somebody turns it on. A file in the folder of counters tells `tidegate run` of
/// it, which repeats it in its report.
#[track_caller]
pub fn trouble(subsystem: fi_log_subsys, text: &str) {
    warn(subsystem, || text.to_owned());
    if is_new(text) {
        print_line(text);
        if let Some(folder) = std::env::var_os("FI_TIDEGATE_STATS_DIR") {
            // If there is no such folder, or no room in it, the fault has been reported on standard error anyway.
            let folder = folder.as_bytes();
            let folder = OsStr::from_bytes(folder.strip_prefix(b"?").unwrap_or(folder));
            let _ = trouble::leave(Path::new(folder), text);
        }
    }
}

/// Reports something that the user should know although it stops nothing. It goes to the log and to standard error as a
/// fault does, but not to the report of `tidegate run`, because it explains no failure.
#[track_caller]
pub fn notice(subsystem: fi_log_subsys, text: &str) {
    warn(subsystem, || text.to_owned());
    if is_new(text) {
        print_line(text);
    }
}

/// Whether this process has not written this text before, and has not written [`TEXTS_MOST`] others.
fn is_new(text: &str) -> bool {
    static SAID: PerProcess<HandlerMutex<HashSet<String>>> = PerProcess::new();
    let said = SAID.get_or_init(|| HandlerMutex::new(HashSet::new()));
    said.lock().is_some_and(|mut said| said.len() < TEXTS_MOST && said.insert(text.to_owned()))
}
