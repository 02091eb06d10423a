//! Starts the program, forwards signals to it, and waits for its end; asks short questions of other programs.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, kill_process};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};

use crate::failure::Failure;
use crate::suggestion;

/// Signals that are meant for the program.
const FORWARDED: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// Its status.
    pub status: ExitStatus,
    /// Signals that came for it meanwhile, in order, those of the terminal included.
    pub signals: Vec<i32>,
}

/// Runs `command` to its end. Signals that other processes send to this one are forwarded to the program. Signals of a
/// terminal are not: the program gets them itself, as a member of the same process group, and launchers take a second
/// Ctrl-C for a demand to stop at once. Signals that were ignored when this process started (`nohup`) stay ignored, in
/// this process and in the program.
pub fn run(command: &mut Command) -> Result<Ended, Failure> {
    let caught = FORWARDED.iter().filter(|signal| !is_ignored(**signal)).chain(&[SIGCHLD]);
    let mut signals = SignalsInfo::<WithOrigin>::new(caught)
        .map_err(|error| Failure::own(format!("cannot catch signals: {error}")))?;
    let mut child = command.spawn().map_err(|error| not_started(command.get_program(), &error))?;
    let mut came = Vec::new();
    loop {
        let ended = child.try_wait().map_err(|error| Failure::own(format!("cannot wait for the program: {error}")))?;
        if let Some(status) = ended {
            came.extend(signals.pending().map(|origin| origin.signal).filter(|signal| *signal != SIGCHLD));
            return Ok(Ended { status, signals: came });
        }
        // The child has not been waited for, so its number cannot belong to another process.
        for origin in signals.wait() {
            came.extend(Some(origin.signal).filter(|signal| *signal != SIGCHLD));
            if is_for_the_program(&origin) {
                forward(&child, origin.signal);
            }
        }
    }
}

/// Why the program was not started, and what may help.
fn not_started(program: &OsStr, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => suggestion::of_program(program),
        io::ErrorKind::PermissionDenied if Path::new(program).is_dir() => ": it is a folder".to_owned(),
        io::ErrorKind::PermissionDenied => {
            format!(": it may not be executed; `chmod +x {}` lets it be", program.display())
        }
        _ => String::new(),
    };
    Failure::start(program, error, &hint)
}

fn is_for_the_program(origin: &Origin) -> bool {
    origin.signal != SIGCHLD && origin.cause != Cause::Kernel
}

fn forward(child: &Child, signal: i32) {
    let signal = rustix::process::Signal::from_named_raw(signal);
    // This fails if the program has just ended, which the caller's loop notices.
    let _ = signal.map(|signal| kill_process(Pid::from_child(child), signal));
}

/// Whether this process ignores a signal.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // One bit each, from bit 0 for signal 1.
    let ignored = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    ignored & (1 << (signal - 1)) != 0
}

/// Bytes of an answer that are read at most.
const ANSWER_MOST: u64 = 1 << 20;

/// The output of a command on both streams, if it ends in time, however it ends. The answer goes through a file, not a
/// pipe, so that a process which the command leaves behind cannot keep the reader waiting. After the time is over the
/// command and all that it has started are killed.
pub fn answer(command: &mut Command, timeout: Duration) -> Option<String> {
    let mut answer = tempfile::tempfile().ok()?;
    let stream = |file: &File| file.try_clone().map(Stdio::from);
    command.stdin(Stdio::null()).stdout(stream(&answer).ok()?).stderr(stream(&answer).ok()?).process_group(0);
    let mut child = command.spawn().ok()?;
    if wait_for(&mut child, timeout).is_none() {
        let _ = rustix::process::kill_process_group(Pid::from_child(&child), rustix::process::Signal::KILL);
        let _ = child.wait();
        return None;
    }
    let mut bytes = Vec::new();
    answer.rewind().ok()?;
    answer.take(ANSWER_MOST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// How `child` has ended, if it ends in time.
pub fn wait_for(child: &mut Child, timeout: Duration) -> Option<ExitStatus> {
    let end = Instant::now() + timeout;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
            _ => return None,
        }
    }
}

/// The exit code that tells how the program ended: its own, or 128 + the signal.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    // An exit code has eight bits, so this loses nothing.
    (code & 0xff) as u8
}
