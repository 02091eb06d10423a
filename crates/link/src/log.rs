//! Log lines. There is no logging crate below: the provider hands each line to libfabric, which filters by its own
//! `FI_LOG_LEVEL`, and tests collect or ignore them.

use std::io::Write;
use std::sync::OnceLock;

/// How much a line matters; the names are libfabric's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something that the user has to mend: whoever shows lines shows this one where the user sees it, log or not.
    Trouble,
    /// Something is wrong and somebody should look.
    Warn,
    /// A choice was made, once, that explains later behaviour.
    Info,
    /// For people who search a fault.
    Debug,
}

/// Takes one line, without a line end.
pub type Sink = fn(Level, &str);

static SINK: OnceLock<Sink> = OnceLock::new();

/// Says where lines go. The first call counts; before it lines are dropped. Returns whether this was the first.
pub fn set_sink(sink: Sink) -> bool {
    SINK.set(sink).is_ok()
}

/// Writes a line; the text is only made when somebody listens.
pub(crate) fn line(level: Level, text: impl FnOnce() -> String) {
    if let Some(sink) = SINK.get() {
        sink(level, &text());
    }
}

/// Prints `text` on standard error, marked as Tidegate's. One write for all of it: the processes of a job share their
/// standard error, and what they write piece by piece comes out mixed.
pub fn print_line(text: &str) {
    // Nobody is left to tell if standard error is closed.
    let _ = std::io::stderr().write_all(format!("tidegate: {text}\n").as_bytes());
}
