//! A rank of the doctor's own job: it loads the MPI library, exchanges messages with all others, and says how far it
//! has come, a line of JSON for each step, among whatever else the launcher prints.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_fi::diagnosis::{MpiLibrary, loaded_libraries};

use crate::process::host_name;

/// The beginning of such a line, behind marks of the launcher.
pub const MARK: &str = "tidegate-doctor-rank ";
/// Lengths of the messages, in bytes: one for a packet, one for a send buffer, one that its receiver fetches.
const LENGTHS: [usize; 3] = [8, 4096, 256 << 10];

/// How far a rank has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// The launcher has started it.
    Started {
        /// Its host.
        host: String,
    },
    /// MPI_Init has returned.
    Opened {
        /// Its host.
        host: String,
        /// The files of libfabric that are loaded.
        libfabric: Vec<PathBuf>,
    },
    /// All messages came as they were sent.
    Exchanged {
        /// Its host.
        host: String,
    },
    /// MPI_Finalize has returned.
    Closed {
        /// Its host.
        host: String,
    },
    /// Something failed, and why.
    Failed {
        /// Its host.
        host: String,
        /// The operation, and why it failed.
        error: String,
    },
}

impl Step {
    /// The host of the rank.
    pub fn host(&self) -> &str {
        match self {
            Step::Started { host }
            | Step::Opened { host, .. }
            | Step::Exchanged { host }
            | Step::Closed { host }
            | Step::Failed { host, .. } => host,
        }
    }
}

/// Runs such a rank with the MPI library of this path. Returns its exit code.
pub fn run(library: &Path) -> u8 {
    let host = host_name();
    match steps(library, &host) {
        Ok(()) => 0,
        Err(error) => {
            say(&Step::Failed { host, error });
            1
        }
    }
}

fn steps(library: &Path, host: &str) -> Result<(), String> {
    let host = || host.to_owned();
    say(&Step::Started { host: host() });
    let world = MpiLibrary::load(library)?.init()?;
    say(&Step::Opened { host: host(), libfabric: loaded_libraries("libfabric") });
    world.exchange(&LENGTHS)?;
    say(&Step::Exchanged { host: host() });
    world.finalize()?;
    say(&Step::Closed { host: host() });
    Ok(())
}

/// One write for a line, because ranks share their output. Without a reader there is nothing to be said.
fn say(step: &Step) {
    let line = serde_json::to_string(step).expect("steps are plain values");
    let _ = stdout().write_all(format!("{MARK}{line}\n").as_bytes()).and_then(|()| stdout().flush());
}

/// The step that a line of a launcher's output tells, if it does.
pub fn step_in(line: &str) -> Option<Step> {
    let (_, rest) = line.split_once(MARK)?;
    serde_json::Deserializer::from_str(rest).into_iter().next()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_found_behind_what_launchers_put_around_it() {
        let step = Step::Exchanged { host: "h1".into() };
        let line = format!("[1] {MARK}{} [2] x", serde_json::to_string(&step).unwrap());
        assert_eq!(step_in(&line), Some(step));
        assert_eq!((step_in("hello"), step_in(&format!("{MARK}{{"))), (None, None));
    }
}
