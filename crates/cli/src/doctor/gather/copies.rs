//! Whether a process may read the memory of another one that has the same parent, as ranks do: two children try it.

use std::io::{BufRead, BufReader, Read, Write, stdin, stdout};
use std::process::{Command, Stdio};

use tidegate_link::{ReadableWord, read_word};

use super::host::number_in;

/// How the system restricts it, if it has Yama: 0 not, 1 to descendants unless permitted, 2 to administrators, 3 to
/// none.
pub fn ptrace_scope() -> Option<u8> {
    number_in("/proc/sys/kernel/yama/ptrace_scope").and_then(|scope| u8::try_from(scope).ok())
}

/// Tries it. `None`: no children could be made. The error is what the system said.
pub fn try_copies() -> Option<Result<(), String>> {
    let this = std::env::current_exe().ok()?;
    let child = |words: &[&str]| {
        let mut command = Command::new(&this);
        command.arg("doctor").args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    };
    let mut shows = child(&["--as-word"]).spawn().ok()?;
    let mut line = String::new();
    let read = shows.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
    let answer = match read {
        Some(Ok(1..)) => child(&["--as-reader", line.trim()]).output().ok(),
        _ => None,
    };
    // It ends when its input does.
    drop(shows.stdin.take());
    let _ = shows.wait();
    let answer = String::from_utf8_lossy(&answer?.stdout).trim().to_owned();
    match answer.as_str() {
        "" => None,
        "read" => Some(Ok(())),
        error => Some(Err(error.to_owned())),
    }
}

/// The first child: shows a word until its input ends. Returns its exit code.
pub fn show_word() -> u8 {
    let Ok(word) = ReadableWord::new() else { return 1 };
    let line = format!("{} {} {}\n", std::process::id(), word.address(), word.value());
    let written = stdout().write_all(line.as_bytes()).and_then(|()| stdout().flush());
    let _ = stdin().read_to_end(&mut Vec::new());
    u8::from(written.is_err())
}

/// The second one: reads the word that such a line names. Returns its exit code.
pub fn read_as(line: &str) -> u8 {
    let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    let &[pid, address, value] = numbers.as_slice() else { return 2 };
    let read = u32::try_from(pid).map_err(|error| error.to_string()).and_then(|pid| read_word(pid, address, value));
    let text = read.map_or_else(|error| error, |()| "read".to_owned());
    u8::from(stdout().write_all(text.as_bytes()).is_err())
}
