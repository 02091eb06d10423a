//! Services: names by which an endpoint is found without its address having been told, as a port number is by those who
//! know a host. A server [claims](Service::claim) one, a client [finds](Service::find) who has it.
//!
//! A claim is a small file beside the segments, named after user and service, that holds the owner's address and that
//! the owner keeps locked, as it does with its segment (see `life`): what a killed server leaves is worth nothing from
//! that moment on, and the next who claims or looks for the service, or opens an endpoint, clears it away. Everybody
//! reads, writes and removes such a file under another lock of it, so two newcomers never both get the place of a dead
//! owner.
//!
//! The names are known and the folder is everybody's, so another user can make a file of a name first, as he can listen
//! at a port first. It is no claim and leads nowhere, but only he or root can remove it: who claims the service is
//! told, and nobody else is concerned.

use super::address::{Address, FILE_NAME_START};
use super::error::Busy;
use super::life::{self, Fate, Here, Rights};
use super::lock::{self, Byte, Held};
use super::lock_file::LockFile;
use crate::files::OPEN_FLAGS;
use crate::log::{self, Level};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io};

/// The name of a service of one user on this host: a number or a word. Empty, it means none in particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Service {
    uid: u32,
    name: [u8; Self::NAME_BYTES_MOST],
}

/// First bytes of a service in the form of an address.
const MARK: [u8; 4] = *b"TGV1";

/// Why a service could not be claimed.
#[derive(Debug)]
pub enum ClaimError {
    /// A living endpoint has it.
    Taken {
        /// The service.
        service: Service,
        /// Who has it.
        owner: Address,
    },
    /// Somebody holds the lock of the claim that it should hold for microseconds, so it may be stopped.
    Busy {
        /// The claim.
        file: PathBuf,
    },
    /// Something stands at the place of the claim that no process of this user has made for one.
    Occupied {
        /// The service.
        service: Service,
        /// Where the claim would be.
        path: PathBuf,
        /// The user whose file it is; `None`: this one's, but no file to write to.
        owner: Option<u32>,
    },
    /// The system refused something.
    System {
        /// What was tried, with names.
        action: String,
        /// What the system said.
        error: io::Error,
    },
}

/// A service that an endpoint has, until this is dropped.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    entry: Entry,
}

impl Service {
    /// Longest name.
    pub const NAME_BYTES_MOST: usize = 32;
    /// Bytes of [`to_bytes`](Self::to_bytes).
    pub const BYTES: usize = 40;

    /// A service of this user; empty: none in particular. `None`: the name is too long or has a zero byte.
    pub fn new(name: &[u8]) -> Option<Service> {
        // SAFETY: `geteuid` has no preconditions.
        Service::of(unsafe { libc::geteuid() }, name)
    }

    fn of(uid: u32, name: &[u8]) -> Option<Service> {
        let mut padded = [0; Self::NAME_BYTES_MOST];
        padded.get_mut(..name.len())?.copy_from_slice(name);
        (!name.contains(&0)).then_some(Service { uid, name: padded })
    }

    fn name(&self) -> &[u8] {
        let end = self.name.iter().position(|byte| *byte == 0).unwrap_or(self.name.len());
        &self.name[..end]
    }

    /// Whether it names nothing in particular, so that nobody can be found by it.
    pub fn is_empty(&self) -> bool {
        self.name().is_empty()
    }

    /// The service in the form of an address, the same on every host.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&MARK);
        bytes[4..8].copy_from_slice(&self.uid.to_le_bytes());
        bytes[8..8 + Self::NAME_BYTES_MOST].copy_from_slice(&self.name);
        bytes
    }

    /// Back from bytes; longer input is fine, its rest is ignored. `None`: not of this kind.
    pub fn from_bytes(bytes: &[u8]) -> Option<Service> {
        let bytes: &[u8; Self::BYTES] = bytes.first_chunk()?;
        let padded: [u8; Self::NAME_BYTES_MOST] = *bytes[8..].first_chunk()?;
        let service = Service { uid: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]), name: padded };
        // What follows the first zero byte of a name are zero bytes.
        (bytes[0..4] == MARK && Service::of(service.uid, service.name()) == Some(service)).then_some(service)
    }

    /// What the names of the claims of a user begin with. No segment's name does: there a number follows the user.
    pub(super) fn prefix(uid: u32) -> String {
        format!("{FILE_NAME_START}{uid}-service-")
    }

    /// Removes the claim at `path` if its owner is dead. One whose lock somebody holds is left to the next who looks.
    pub(super) fn remove_if_dead(path: &Path, here: &Here) {
        find(path, here, Duration::ZERO);
    }

    /// Whatever is no letter or digit is written as its code, so that no name leads elsewhere.
    fn file_name(&self) -> String {
        let letter = |byte: &u8| match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => char::from(*byte).to_string(),
            other => format!("%{other:02x}"),
        };
        Service::prefix(self.uid) + &self.name().iter().map(letter).collect::<String>()
    }

    /// Makes `owner`, an endpoint of this process that is open, the one that is found by this service.
    pub fn claim(&self, directory: &Path, owner: Address) -> Result<Claim, ClaimError> {
        let path = directory.join(self.file_name());
        let problem = |error| ClaimError::System { action: format!("claiming {}", path.display()), error };
        let here = Here::find();
        loop {
            let opened = Entry::open_or_create(&path);
            let Some(entry) = opened.map_err(|error| self.occupied(&path).unwrap_or_else(|| problem(error)))? else {
                continue;
            };
            let held = entry.lock(lock::TIMEOUT_AT_LAST).map_err(problem)?;
            let held = held.ok_or_else(|| ClaimError::Busy { file: path.clone() })?;
            if !entry.is_in_place() {
                // Somebody has removed it since we opened it.
                continue;
            }
            if let Some(owner) = entry.living_owner(&here) {
                return Err(ClaimError::Taken { service: *self, owner });
            }
            if !lock::try_take(&entry.0, Byte::LIFE).map_err(problem)? {
                // The owner is dead, but a child that it has forked keeps its lock.
                fs::remove_file(&path).map_err(problem)?;
                continue;
            }
            entry.0.write_all_at(&owner.to_bytes(), 0).map_err(problem)?;
            drop(held);
            return Ok(Claim { path, entry });
        }
    }

    /// Why nothing can be claimed at `path`, where opening failed. `None`: what stands there is not the reason.
    fn occupied(&self, path: &Path) -> Option<ClaimError> {
        let facts = fs::symlink_metadata(path).ok()?;
        // SAFETY: `geteuid` has no preconditions.
        let owner = Some(facts.uid()).filter(|owner| *owner != unsafe { libc::geteuid() });
        (owner.is_some() || !facts.is_file()).then(|| ClaimError::Occupied {
            service: *self,
            path: path.to_owned(),
            owner,
        })
    }

    /// The living endpoint that has this service, if any has. None is found either while somebody holds the lock of its
    /// claim.
    pub fn find(&self, directory: &Path) -> Option<Address> {
        find(&directory.join(self.file_name()), &Here::find(), lock::TIMEOUT)
    }
}

/// The owner of the claim at `path`. A claim whose owner is dead is removed.
fn find(path: &Path, here: &Here, timeout: Duration) -> Option<Address> {
    let entry = Entry(life::open(path, Rights::Lock).ok()?);
    let _held = entry.lock(timeout).ok()??;
    if !entry.is_in_place() {
        return None;
    }
    let alive = entry.living_owner(here);
    if alive.is_none() && fs::remove_file(path).is_ok() {
        log::line(Level::Info, || format!("removed {}, whose owner is gone", path.display()));
    }
    alive
}

impl Drop for Claim {
    fn drop(&mut self) {
        // A forked child has a copy of this value, but the claim is its parent's.
        if self.entry.0.is_forked() {
            return;
        }
        // Where somebody does not give the lock up, this is done without: nobody takes the name of a claim from a
        // living owner.
        let _held = self.entry.lock(lock::TIMEOUT_AT_LAST);
        // If it is not there any more, another file may have its name.
        if self.entry.is_in_place() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The file of a claim, open.
#[derive(Debug)]
struct Entry(LockFile);

impl Entry {
    /// `None`: it was created or removed between our two looks.
    fn open_or_create(path: &Path) -> io::Result<Option<Entry>> {
        match life::open(path, Rights::Lock) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened.map(|file| Some(Entry(file))),
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600).custom_flags(OPEN_FLAGS);
        match LockFile::open(&options, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            created => created.map(|file| Some(Entry(file))),
        }
    }

    /// Keeps others from reading, writing and removing it. They hold it for a few system calls. `None`: somebody holds
    /// it for longer than that.
    fn lock(&self, timeout: Duration) -> io::Result<Option<Held<'_>>> {
        Held::take(&self.0, timeout)
    }

    /// Whether the file still has its name. While it is locked, that stays so.
    fn is_in_place(&self) -> bool {
        self.0.metadata().is_ok_and(|facts| facts.nlink() > 0)
    }

    /// Whose claim it is; `None`: nobody's, or not any more.
    fn living_owner(&self, here: &Here) -> Option<Address> {
        let mut bytes = [0; Address::BYTES];
        self.0.read_exact_at(&mut bytes, 0).ok()?;
        let owner = Address::from_bytes(&bytes)?;
        let lives = !here.sees_ended(&owner) && life::fate_by_lock(&self.0, Byte::LIFE) == Fate::Alive;
        lives.then_some(owner)
    }
}

/// `service 7471`.
impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_empty() {
            true => write!(f, "no service in particular"),
            false => write!(f, "service {}", String::from_utf8_lossy(self.name())),
        }
    }
}

impl fmt::Display for ClaimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClaimError::Taken { service, owner } => {
                write!(f, "{service} is in use by {owner}; end that process, or choose another service")
            }
            ClaimError::Busy { file } => write!(f, "{}", Busy(file)),
            ClaimError::Occupied { service, path, owner } => {
                let path = path.display();
                write!(f, "{service} cannot be had: at the place of its file, {path}, is ")?;
                match owner {
                    Some(owner) => {
                        write!(f, "one of user {owner}; have it removed by that user or by root")?;
                    }
                    None => write!(f, "something that is no regular file; remove it")?,
                }
                write!(f, ", or choose another service")
            }
            ClaimError::System { action, error } => write!(f, "{action}: {error}"),
        }
    }
}

impl std::error::Error for ClaimError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ClaimError::System { error, .. } => Some(error),
            ClaimError::Taken { .. } | ClaimError::Occupied { .. } | ClaimError::Busy { .. } => None,
        }
    }
}
