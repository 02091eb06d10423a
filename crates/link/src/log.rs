//! Log lines. There is no logging crate below: the provider hands each line to libfabric, which filters by its own
//! `FI_LOG_LEVEL`, and tests collect or ignore them.

use std::fmt::Arguments;
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
    write(format!("tidegate: {text}\n").as_bytes());
}

/// The same for signal handlers and forked children: it waits for no lock and allocates nothing. What is longer than a
/// kilobyte is cut.
pub fn print_now(text: Arguments) {
    let mut line = [0_u8; 1024];
    let mut rest = &mut line[..1023];
    // It fails where there is no more room.
    let _ = write!(rest, "tidegate: {text}");
    let length = 1023 - rest.len();
    line[length] = b'\n';
    write(&line[..=length]);
}

/// Writes to standard error, without the lock that the standard library has around it: a forked child would wait for
/// ever for one that another thread of its parent held.
fn write(mut line: &[u8]) {
    while !line.is_empty() {
        // SAFETY: the bytes live through the call.
        let written = unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
        match usize::try_from(written) {
            Ok(0) => return,
            Ok(written) => line = &line[written..],
            Err(_) if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
            // Nobody is left to tell.
            Err(_) => return,
        }
    }
}
