//! What `tidegate` itself can fail with, and the exit code of each failure. The codes are those of env(1) and
//! timeout(1).

use std::fmt;

/// The command line is wrong.
pub const USAGE: u8 = 2;
/// `--hang-exit` ended the job. The code of timeout(1) for such an end, 124, is taken by [`LOST`]; 123 is the next one
/// that shells leave free.
pub const HUNG: u8 = 123;
/// The program succeeded, and messages that it had sent were lost.
pub const LOST: u8 = 124;
/// `tidegate` itself failed.
pub const OWN: u8 = 125;
/// The program was found and cannot be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// The program was not found.
pub const NOT_FOUND: u8 = 127;

/// A failure of `tidegate` itself: what happened, what to do about it, and the exit code.
#[derive(Debug)]
pub struct Failure {
    /// Exit code, one of the constants of this module.
    pub code: u8,
    message: String,
}

impl Failure {
    /// The command line asks for something impossible.
    pub fn usage(message: impl Into<String>) -> Self {
        Failure { code: USAGE, message: message.into() }
    }

    /// `tidegate` cannot do its own part.
    pub fn own(message: impl Into<String>) -> Self {
        Failure { code: OWN, message: message.into() }
    }

    /// There is no such program.
    pub fn not_found(program: &std::ffi::OsStr) -> Self {
        Failure { code: NOT_FOUND, message: format!("{} was not found, or cannot be executed", program.display()) }
    }

    /// The program could not be started.
    pub fn start(program: &std::ffi::OsStr, error: &std::io::Error) -> Self {
        let code = if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
        Failure { code, message: format!("cannot start {}: {error}", program.display()) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
