//! Who lives: telling, at any time and from outside, whether the endpoint of an [`Address`] still is there.
//!
//! Only these prove that it is not:
//! 1. In our own process namespace: there is no such process id, or it is a zombie's. It comes first, because a child
//!    may have been made in a way that keeps its parent's locks (see `lock_file`).
//! 2. In any namespace: the endpoint holds locks on files for as long as it lives, which the kernel releases when the
//!    process ends or executes another program: one on its own segment (*life*), and one on the segment of every peer
//!    that it writes to, for its place in the table there (`Byte::of`). A free lock proves that the endpoint is gone.
//!    The lock on our segment can be tested on our own descriptor, whatever has become of the other endpoint's file.
//!
//! Everything else is a guess, and a held lock outranks it: another boot id may be a container's, start times differ by
//! an offset between time namespaces, and a file can vanish while its owner lives (systemd's `RemoveIPC=yes`, the
//! epilogue of a job that clears `/dev/shm`).

use super::address::{Address, FILE_NAME_START, HOST_MASK};
use super::error::is_shortage;
use super::lock::{self, Byte};
use super::lock_file::LockFile;
use super::peer::Table;
use crate::boot::boot_id;
use crate::files::{OPEN_FLAGS, check_own};
use crate::log::{self, Level};
use crate::secret::{Secret, hash_of, random};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{io, process};

/// What became of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It exists, as far as anybody can tell.
    Alive,
    /// It is gone: that is proven.
    Dead,
    /// There is no file of it, and nothing else proves anything.
    Absent,
}

/// This process, as part of an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Here {
    host: u64,
    namespace: u32,
    pid: u32,
    uid: u32,
}

impl Here {
    /// Asks the system. Where `/proc` is missing or shows another namespace, the locks alone will tell who lives.
    pub fn find() -> Here {
        let (pid, uid) = (process::id(), user());
        let sees_itself = fs::read_link("/proc/self").is_ok_and(|link| link.as_os_str() == pid.to_string().as_str());
        let namespace = if sees_itself { fs::metadata("/proc/self/ns/pid").map_or(0, |ns| ns.ino() as u32) } else { 0 };
        Here { host: host_key(uid), namespace, pid, uid }
    }

    /// The user as which this process acts.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The address of this process's endpoint number `serial` that has this secret.
    pub fn address(&self, serial: u16, secret: &Secret) -> Address {
        Address::new(self.host, self.namespace, self.pid, serial, secret)
    }

    /// Where the segment of an endpoint of this user is.
    pub fn path(&self, directory: &Path, address: &Address) -> PathBuf {
        directory.join(address.file_name(self.uid))
    }

    /// Whether both show the same host key: then they are of one host. Otherwise they may be, in different containers.
    pub fn shares_host(&self, other: &Address) -> bool {
        self.host == other.host
    }

    /// Whether a process id means the same to both.
    pub fn shares_namespace(&self, other: &Address) -> bool {
        self.namespace == other.namespace && other.namespace != 0
    }

    /// Whether the process has certainly ended. Another one may have its id by now, so `false` says nothing.
    pub fn sees_ended(&self, other: &Address) -> bool {
        self.shares_namespace(other) && has_ended(other.pid)
    }

    /// What the endpoint's file in `directory` says.
    pub fn fate_by_file(&self, directory: &Path, owner: &Address) -> Fate {
        let path = self.path(directory, owner);
        let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        match open(&path, Rights::Lock) {
            Ok(file) => fate_by_lock(&file, Byte::LIFE),
            // Its process may run on: without the endpoint, as another program, or with a file that somebody has
            // removed.
            Err(error) if is_missing(&error) => Fate::Absent,
            // The system looks for a free descriptor before it looks for the file, which can be seen without one.
            Err(error) if is_shortage(&error) && fs::symlink_metadata(&path).is_err_and(|error| is_missing(&error)) => {
                Fate::Absent
            }
            Err(_) => Fate::Alive,
        }
    }

    /// Whether any peer in a table has ended, so that its place will go to another: it has said so, or it is dead. The
    /// table lies in the segment that `file` is an open description of.
    pub fn sees_some_ended(&self, table: &Table, file: &File) -> bool {
        table.has_some_ended(|peer, address| {
            let holds_lock = table.is_locked(peer);
            (holds_lock && fate_by_lock(file, Byte::of(&address)) == Fate::Dead) || self.sees_ended(&address)
        })
    }
}

/// What the lock of an endpoint says; `file` is anybody's own open description of the locked file.
pub(crate) fn fate_by_lock(file: &File, byte: Byte) -> Fate {
    if matches!(lock::is_taken(file, byte), Ok(false)) { Fate::Dead } else { Fate::Alive }
}

/// What to open a segment's file for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    /// Reading alone: a mapping of it can never be made writable.
    Read,
    /// Writing too, without which the system gives no exclusive lock.
    Lock,
}

/// Opens a segment's file, and nothing that merely has its name: no link, no pipe, no file of another user.
pub(crate) fn open(path: &Path, rights: Rights) -> io::Result<LockFile> {
    let file = LockFile::open(&options(rights), path)?;
    check_own(&file)?;
    Ok(file)
}

/// The same, to map it: nobody takes a lock on what is mapped, so none need be released.
pub(crate) fn open_to_map(path: &Path, rights: Rights) -> io::Result<File> {
    let file = options(rights).open(path)?;
    check_own(&file)?;
    Ok(file)
}

fn options(rights: Rights) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(rights == Rights::Lock).custom_flags(OPEN_FLAGS);
    options
}

/// The host key: what is the same for all processes of a user that share memory, and different for others. Copies of a
/// virtual machine that were resumed from one snapshot have one, too (`reach.rs` in the provider).
fn host_key(uid: u32) -> u64 {
    let folder = Path::new(super::config::DIRECTORY);
    // Without a boot id, folders of two hosts may look alike.
    let or_trouble = |text: String| {
        log::line(Level::Trouble, || text);
        0
    };
    let boot =
        Some(boot_id()).filter(|boot| *boot != 0).unwrap_or_else(|| host_token(folder).unwrap_or_else(or_trouble));
    // Containers of one machine show one boot id, and may have a `/dev/shm` each: then they share no memory.
    let shared = fs::metadata(folder).map_or(0, |folder| folder.dev() ^ folder.ino() << 32);
    hash_of(b"tidegate: host", &[boot ^ shared.wrapping_mul(0x9e37_79b9_7f4a_7c15), uid.into()]) & HOST_MASK
}

/// The number that takes the place of a boot id. Its file has a name that all processes of the user know, so another
/// user can make a file of that name first. No process of this user uses that one: they do without, all alike, and the
/// error says what it is that they do without.
fn host_token(folder: &Path) -> Result<u64, String> {
    token(folder).map_err(|error| {
        let path = token_path(folder);
        let reason = match fs::symlink_metadata(&path).map(|facts| facts.uid()) {
            Ok(owner) if owner != user() => format!("belongs to user {owner}; have that user or root remove it"),
            _ => error.to_string(),
        };
        format!(
            "this system hides its boot id, and {}, whose number tells this host from others, cannot be used: {reason}. \
             Until then processes of several hosts may take each other for processes of one host and not reach each \
             other",
            path.display()
        )
    })
}

fn user() -> u32 {
    // SAFETY: `geteuid` has no preconditions.
    unsafe { libc::geteuid() }
}

fn token_path(folder: &Path) -> PathBuf {
    folder.join(format!("{FILE_NAME_START}host-{}", user()))
}

/// A random number that all processes of this user find in a folder: whoever comes first puts it there, whole, in a
/// file that stays.
fn token(folder: &Path) -> io::Result<u64> {
    let path = token_path(folder);
    let random = random();
    let fresh = folder.join(format!("{FILE_NAME_START}host-{}-{random:016x}", user()));
    if fs::symlink_metadata(&path).is_err() {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        let written = file.write_all(format!("{random:016x}").as_bytes()).and_then(|()| fs::hard_link(&fresh, &path));
        fs::remove_file(&fresh)?;
        written.or_else(|error| if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })?;
    }
    let mut file = open_to_map(&path, Rights::Read)?;
    let mut text = String::new();
    Read::take(&mut file, 17).read_to_string(&mut text)?;
    u64::from_str_radix(&text, 16).map_err(io::Error::other)
}

/// Whether no process of our namespace has this id, or a zombie.
fn has_ended(pid: u32) -> bool {
    let Ok(id) = libc::pid_t::try_from(pid) else { return false };
    // `/proc` may hide the processes of others (`hidepid`), so a missing entry there proves nothing; a signal does.
    // SAFETY: signal 0 is never delivered: the call only says whether there is anybody.
    let missing = unsafe { libc::kill(id, 0) } != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
    missing || fs::read(format!("/proc/{pid}/stat")).is_ok_and(|text| is_zombie(&text))
}

/// Whether `/proc/<pid>/stat` shows a zombie none of whose threads runs any more. (A process whose first thread has
/// ended looks like one, but has others.)
fn is_zombie(text: &[u8]) -> bool {
    matches!(field(text, 3), Some(b"Z" | b"X")) && matches!(field(text, 20), Some(b"0" | b"1"))
}

/// A field of `/proc/<pid>/stat`, from the third on: the state is 3, the number of threads 20. The name, field 2, may
/// contain anything, so they are counted from the last parenthesis.
pub(super) fn field(text: &[u8], number: usize) -> Option<&[u8]> {
    let name_end = text.iter().rposition(|byte| *byte == b')')?;
    text[name_end + 1..].split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).nth(number - 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(here: &Here) -> Address {
        here.address(0, &Secret::draw())
    }

    #[test]
    fn a_name_with_parentheses_and_blanks_does_not_confuse() {
        let text =
            |state, threads| format!("7 (a) Z (b) {state} 1 7 7 0 -1 4 1 0 0 0 3 4 0 0 20 0 {threads} 0 98765 1 2 3");
        assert!(!is_zombie(text("S", 3).as_bytes()));
        assert!(is_zombie(text("Z", 1).as_bytes()));
        assert!(!is_zombie(text("Z", 2).as_bytes()));
        assert!(!is_zombie(b"nonsense"));
    }

    #[test]
    fn a_process_that_runs_has_not_ended_whatever_else_differs() {
        let here = Here::find();
        let me = own(&here);
        assert!(here.shares_namespace(&me), "these tests want /proc");
        assert!(!here.sees_ended(&me));
        assert!(!here.sees_ended(&Address { host: me.host ^ 1, ..me }), "another host key proves nothing");
        assert!(!here.sees_ended(&Address { namespace: me.namespace + 1, pid: 1, ..me }), "cannot be told");
        assert_ne!(me.tag, own(&here).tag, "no two endpoints are one");
    }

    #[test]
    fn all_who_come_at_once_find_one_token_and_another_folder_has_another() {
        let name = |number| std::env::temp_dir().join(format!("tidegate-token-{}-{number}", process::id()));
        let tokens: Vec<u64> = [1, 2]
            .map(|number| {
                fs::create_dir(name(number)).unwrap();
                let find = || (0..20).map(|_| token(&name(number)).unwrap()).collect::<Vec<u64>>();
                let found: Vec<u64> = std::thread::scope(|scope| {
                    let threads: Vec<_> = (0..8).map(|_| scope.spawn(find)).collect();
                    threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
                });
                assert!(found.iter().all(|token| *token == found[0] && *token != 0), "{found:?}");
                assert_eq!(fs::read_dir(name(number)).unwrap().count(), 1, "one file stays");
                found[0]
            })
            .into();
        assert_ne!(tokens[0], tokens[1]);
        [1, 2].into_iter().for_each(|number| fs::remove_dir_all(name(number)).unwrap());
    }

    /// fi_tidegate(7): "Another user can make a file of that name first: it is not used, and a line on standard error
    /// says so."
    #[test]
    fn a_token_that_another_user_has_put_there_is_not_used_and_the_error_says_so() {
        let folder = std::env::temp_dir().join(format!("tidegate-foreign-token-{}", process::id()));
        fs::create_dir(&folder).unwrap();
        let path = token_path(&folder);
        fs::write(&path, "00000000000000ff").unwrap();
        assert_eq!(host_token(&folder), Ok(255), "one of our own");
        let is_root = std::os::unix::fs::chown(&path, Some(65534), None).is_ok();
        let mut expected = "belongs to user 65534; have that user or root remove it";
        if !is_root {
            fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
            expected = "Too many levels of symbolic links";
        }
        let said = host_token(&folder).unwrap_err();
        assert!(said.contains(expected) && said.contains(path.to_str().unwrap()), "{said}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left there");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_zombie_has_ended() {
        let mut child = process::Command::new("true").spawn().unwrap();
        let here = Here::find();
        let owner = Address { pid: child.id(), ..own(&here) };
        while !here.sees_ended(&owner) {
            std::thread::yield_now();
        }
        assert!(fs::metadata(format!("/proc/{}", child.id())).is_ok(), "nobody has waited for it yet");
        child.wait().unwrap();
        assert!(here.sees_ended(&owner), "and when somebody has");
    }
}
