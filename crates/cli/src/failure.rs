//! What `tidegate` itself can fail with, and the exit code of each failure. The codes are those of env(1) and
//! timeout(1).

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::Path;

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

    /// There is no such program. `hint` says what may help, and begins with a colon.
    pub fn not_found(program: &OsStr, hint: &str) -> Self {
        Failure {
            code: NOT_FOUND,
            message: format!("{} was not found, or cannot be executed{hint}", program.display()),
        }
    }

    /// The program could not be started; `hint` as for [`not_found`](Self::not_found).
    pub fn start(program: &OsStr, error: &io::Error, hint: &str) -> Self {
        let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
        Failure { code, message: format!("cannot start {}: {error}{hint}", program.display()) }
    }

    /// A file that the command line names cannot be written. That is wrong usage where it can never be, as in a folder
    /// that is not there, and `tidegate`'s own failure otherwise, as where the disk is full.
    pub fn write(file: &Path, error: &io::Error) -> Self {
        let message = format!("cannot write {}: {error}", file.display());
        match error.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem => Failure::usage(message),
            _ => Failure::own(message),
        }
    }

    /// The same failure, with more said of it.
    #[must_use]
    pub fn and(mut self, more: &str) -> Self {
        self.message += more;
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
