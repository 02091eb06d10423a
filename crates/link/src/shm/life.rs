//! Who lives: telling, at any time and from outside, whether the process behind an [`Address`] still is that process.
//!
//! A process id alone does not tell: it may have been given to somebody else. So, in this order:
//! 1. another boot of the host: dead;
//! 2. our own process namespace: `/proc/<pid>/stat` is gone, shows another start time, or a zombie: dead;
//! 3. in any namespace: the owner holds a lock on its segment's file for as long as it lives. Free lock: dead. (2
//!    comes first because a child that was forked without exec keeps its parent's lock.)

use super::address::Address;
use super::lock::{self, Byte};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::{io, process};

/// What became of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It exists.
    Alive,
    /// It is gone and has left its segment behind.
    Dead,
    /// It is gone, and so is its segment: it closed, or somebody else cleaned up.
    Absent,
}

/// This process, as part of an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Here {
    address: Address,
}

impl Here {
    /// Asks the system. Where `/proc` is missing or shows another namespace, the lock alone will tell who lives.
    pub fn find() -> Here {
        let pid = process::id();
        // SAFETY: `geteuid` has no preconditions.
        let uid = unsafe { libc::geteuid() };
        let sees_itself = fs::read_link("/proc/self").is_ok_and(|link| link.as_os_str() == pid.to_string().as_str());
        let namespace = if sees_itself { fs::metadata("/proc/self/ns/pid").map_or(0, |ns| ns.ino()) } else { 0 };
        let start_ticks = if sees_itself { Process::read(pid).map_or(0, |process| process.start_ticks) } else { 0 };
        Here { address: Address { boot: boot(), namespace, start_ticks, pid, uid, serial: 0 } }
    }

    /// The address of this process's endpoint number `serial`.
    pub fn address(&self, serial: u32) -> Address {
        Address { serial, ..self.address }
    }

    /// Whether both are of one host that has not been booted since.
    pub fn shares_boot(&self, address: &Address) -> bool {
        self.address.boot == address.boot
    }

    /// Whether a process id means the same to both.
    pub fn shares_namespace(&self, address: &Address) -> bool {
        self.address.namespace == address.namespace && address.namespace != 0
    }

    /// Whether the process of `address` is certainly gone.
    pub fn sees_gone(&self, address: &Address) -> bool {
        if !self.shares_boot(address) {
            return true;
        }
        self.shares_namespace(address)
            && match Process::read(address.pid) {
                Ok(process) => process.has_ended || process.start_ticks != address.start_ticks,
                Err(error) => error.kind() == io::ErrorKind::NotFound,
            }
    }

    /// What became of the endpoint of `address`, whose segment lies in `directory`. When in doubt it is alive.
    pub fn fate(&self, directory: &Path, address: &Address) -> Fate {
        let gone = self.sees_gone(address);
        match open(&directory.join(address.file_name())) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Fate::Absent,
            _ if gone => Fate::Dead,
            Ok(file) if matches!(lock::is_taken(&file, Byte::Life), Ok(false)) => Fate::Dead,
            _ => Fate::Alive,
        }
    }
}

/// Opens a segment's file, and nothing that merely has its name: no link, no pipe, no file of another user.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
    let facts = file.metadata()?;
    // SAFETY: `geteuid` has no preconditions.
    if !facts.is_file() || facts.uid() != unsafe { libc::geteuid() } {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "not a file of this user"));
    }
    Ok(file)
}

/// The kernel's boot id, a random UUID, folded into a word. 0 where it is hidden.
fn boot() -> u64 {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits = text.trim().replace('-', "");
    u128::from_str_radix(&digits, 16).map_or(0, |id| (id >> 64) as u64 ^ id as u64)
}

/// What `/proc/<pid>/stat` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    start_ticks: u64,
    /// A zombie none of whose threads runs any more. (A process whose first thread has ended looks like one, but has
    /// others.)
    has_ended: bool,
}

impl Process {
    fn read(pid: u32) -> io::Result<Process> {
        let text = fs::read(format!("/proc/{pid}/stat"))?;
        Process::parse(&text).ok_or_else(|| io::Error::other("/proc/<pid>/stat has an unknown form"))
    }

    /// The name, field 2, may contain anything, so count from the last parenthesis: state 3, threads 20, start 22.
    fn parse(text: &[u8]) -> Option<Process> {
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        let text = str::from_utf8(&text[name_end + 1..]).ok()?;
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3);
        let threads: u32 = field(20)?.parse().ok()?;
        let has_ended = matches!(*field(3)?, "Z" | "X") && threads <= 1;
        Some(Process { start_ticks: field(22)?.parse().ok()?, has_ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_blanks_does_not_confuse() {
        let tail = |state, threads| format!("{state} 1 7 7 0 -1 4 1 0 0 0 3 4 0 0 20 0 {threads} 0 98765 1 2 3");
        let parse = |state, threads| Process::parse(format!("7 (a) Z (b) {}", tail(state, threads)).as_bytes());
        assert_eq!(parse("S", 3), Some(Process { start_ticks: 98765, has_ended: false }));
        assert_eq!(parse("Z", 1), Some(Process { start_ticks: 98765, has_ended: true }));
        assert_eq!(parse("Z", 2), Some(Process { start_ticks: 98765, has_ended: false }));
        assert_eq!(Process::parse(b"nonsense"), None);
    }

    #[test]
    fn this_process_is_alive_until_its_id_means_another() {
        let here = Here::find();
        let me = here.address(0);
        assert!(here.shares_namespace(&me), "these tests want /proc");
        assert!(!here.sees_gone(&me));
        assert!(here.sees_gone(&Address { start_ticks: me.start_ticks + 1, ..me }), "same pid, another process");
        assert!(here.sees_gone(&Address { boot: me.boot ^ 1, ..me }), "another boot");
        assert!(
            !here.sees_gone(&Address { namespace: me.namespace + 1, pid: 1, start_ticks: 0, ..me }),
            "cannot be told"
        );
    }

    #[test]
    fn a_zombie_has_ended() {
        let mut child = process::Command::new("true").spawn().unwrap();
        let here = Here::find();
        let start_ticks = Process::read(child.id()).unwrap().start_ticks;
        let address = Address { pid: child.id(), start_ticks, ..here.address(0) };
        while !here.sees_gone(&address) {
            std::thread::yield_now();
        }
        assert!(fs::metadata(format!("/proc/{}", child.id())).is_ok(), "nobody has waited for it yet");
        child.wait().unwrap();
    }
}
