//! The page of counters: a file that its process writes by mapping it, so that `tidegate run` can read it after the
//! process ended, however it ended.
//!
//! Layout, in 64-bit words of the machine (a page is read on the host that wrote it): `HEADER_WORDS` of description
//! (see `Word`), then one per counter, in the order of `Counter::ALL`. The name of the program takes the last
//! `PROGRAM_BYTES` of the description.

use crate::shm::memory_map::{self, Access, Mapping};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate_flow::{Config, SchemeName};
use tidegate_message::{Counter, Counters};

/// Marks a page of counters; the last byte is the version of the layout.
const MAGIC: u64 = u64::from_be_bytes(*b"TIDESTA\x02");
const HEADER_WORDS: usize = 64;
const PROGRAM_BYTES: usize = 256;
const PROGRAM_AT: usize = HEADER_WORDS * 8 - PROGRAM_BYTES;
const PAGE_BYTES: usize = (HEADER_WORDS + Counter::COUNT) * 8;
/// Stands for what the launcher did not tell.
const UNKNOWN: u64 = u64::MAX;
const SUFFIX: &str = ".counters";

/// The words of the description.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Word {
    Magic,
    Counters,
    Pid,
    Serial,
    Rank,
    JobSize,
    Scheme,
    SlotsPerPeer,
    CreditSlots,
    Piggyback,
    Peers,
    Bulk,
    /// The next five where buffers are posted, else 0.
    BufferPackets,
    Buffers,
    BuffersMost,
    PoolFirst,
    PoolMost,
}

/// How an endpoint moves bulk data, as far as is known. Discriminants are the file's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum BulkState {
    #[default]
    Undecided = 0,
    Direct = 1,
    Mailbox = 2,
    Bounced = 3,
}

impl BulkState {
    pub(crate) fn name(self) -> &'static str {
        match self {
            BulkState::Undecided => "undecided",
            BulkState::Direct => "direct",
            BulkState::Mailbox => "mailbox",
            BulkState::Bounced => "bounced",
        }
    }
}

/// Where an endpoint's counters go, and what to say about the endpoint there.
#[derive(Clone, Debug)]
pub struct StatsConfig {
    /// An existing folder; the endpoint creates `<pid>-<n>.counters` in it.
    pub dir: PathBuf,
    /// Rank of the process in its job, if the launcher told.
    pub rank: Option<u32>,
    /// Ranks of the job, if the launcher told.
    pub job_size: Option<u32>,
}

/// The counters of an endpoint: in a file for others to read, or private.
#[derive(Debug)]
pub(crate) struct StatsPage {
    counters: NonNull<Counters>,
    memory: Memory,
}

/// What keeps the counters' memory. Neither moves when the page does.
#[derive(Debug)]
enum Memory {
    Private { owner: NonNull<Counters> },
    File { map: Mapping },
}

impl StatsPage {
    /// Counters that nobody else sees.
    pub(crate) fn private() -> Self {
        let owner = NonNull::from(Box::leak(Box::<Counters>::default()));
        StatsPage { counters: owner, memory: Memory::Private { owner } }
    }

    /// Counters in a new file of the folder. Errors: the folder is missing, full, or not ours to write to.
    pub(crate) fn create(config: &StatsConfig, flow: &Config) -> io::Result<Self> {
        let pid = std::process::id();
        let (file, serial) = (0..)
            .find_map(|serial: u32| {
                let path = config.dir.join(format!("{pid}-{serial}{SUFFIX}"));
                let opened = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
                match opened {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                    opened => Some(opened.map(|file| (file, serial))),
                }
            })
            .unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))?;
        memory_map::allocate(&file, 0..PAGE_BYTES)?;
        let map = Mapping::new(&file, 0, PAGE_BYTES, Access::Write)?;
        // `Counters` is a transparent wrapper of an array of atomics.
        let counters = map.slice::<AtomicU64>(HEADER_WORDS * 8, Counter::COUNT).cast::<Counters>();
        let page = StatsPage { counters, memory: Memory::File { map } };
        let optional = |value: Option<u32>| value.map_or(UNKNOWN, u64::from);
        page.describe(Word::Counters, Counter::COUNT as u64);
        page.describe(Word::Pid, pid.into());
        page.describe(Word::Serial, serial.into());
        page.describe(Word::Rank, optional(config.rank));
        page.describe(Word::JobSize, optional(config.job_size));
        page.describe(Word::Scheme, flow.scheme as u64);
        page.describe(Word::SlotsPerPeer, flow.slots_per_peer.into());
        page.describe(Word::CreditSlots, flow.credit_slots.into());
        page.describe(Word::Piggyback, flow.piggyback.into());
        page.describe(Word::Peers, flow.peers.into());
        if flow.scheme.lends().posts_buffers() {
            let buffers = &flow.buffers;
            page.describe(Word::BufferPackets, buffers.packets.into());
            page.describe(Word::Buffers, buffers.per_connection.into());
            page.describe(Word::BuffersMost, buffers.per_connection_most.into());
            page.describe(Word::PoolFirst, buffers.pool_first.into());
            page.describe(Word::PoolMost, buffers.pool_most.into());
        }
        page.write_program(&program());
        page.describe(Word::Magic, MAGIC);
        Ok(page)
    }

    /// The counters.
    #[inline(always)]
    pub(crate) fn counters(&self) -> &Counters {
        // SAFETY: `memory` keeps them valid as long as `self`; they are atomics.
        unsafe { self.counters.as_ref() }
    }

    /// Says how bulk data travels.
    pub(crate) fn set_bulk(&self, bulk: BulkState) {
        self.describe(Word::Bulk, bulk as u64);
    }

    fn describe(&self, word: Word, value: u64) {
        if let Memory::File { map } = &self.memory {
            // SAFETY: the description lies at the start of a live mapping, and is atomics.
            let cell = unsafe { map.value::<AtomicU64>(word as usize * 8).as_ref() };
            cell.store(value, Ordering::Release);
        }
    }

    fn write_program(&self, name: &[u8]) {
        if let Memory::File { map } = &self.memory {
            let mut bytes = [0; PROGRAM_BYTES];
            // One byte stays 0 and ends the name.
            let kept = name.len().min(PROGRAM_BYTES - 1);
            bytes[..kept].copy_from_slice(&name[..kept]);
            // SAFETY: inside a live mapping; atomics.
            let cells = unsafe { map.slice::<AtomicU64>(PROGRAM_AT, PROGRAM_BYTES / 8).as_ref() };
            for (cell, bytes) in cells.iter().zip(bytes.as_chunks::<8>().0) {
                cell.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
            }
        }
    }
}

impl Drop for StatsPage {
    fn drop(&mut self) {
        if let Memory::Private { owner } = self.memory {
            // SAFETY: the box leaked in `private`, once; `counters` is not used any more.
            drop(unsafe { Box::from_raw(owner.as_ptr()) });
        }
    }
}

/// The name of this program: the last part of the path that it was started by.
fn program() -> Vec<u8> {
    let line = fs::read("/proc/self/cmdline").unwrap_or_default();
    let path = line.split(|byte| *byte == 0).next().unwrap_or_default();
    Path::new(std::ffi::OsStr::from_bytes(path)).file_name().map_or_else(Vec::new, |name| name.as_bytes().to_vec())
}

/// How an endpoint posted buffers, as far as its scheme looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostedBuffers {
    /// Packets that a buffer holds.
    pub packets: u32,
    /// For each sender at the start, without a pool.
    pub each: u32,
    /// `growing`: at most, times the peers.
    pub most: u32,
    /// `shared_window`: in the pool at the start.
    pub pool_first: u32,
    /// `shared_window`: in the pool at most.
    pub pool_most: u32,
}

/// What one endpoint left in its page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointStats {
    /// Process.
    pub pid: u32,
    /// Endpoint within the process, from 0.
    pub serial: u32,
    /// Rank of the process in its job, if known.
    pub rank: Option<u32>,
    /// Ranks of the job, if known.
    pub job_size: Option<u32>,
    /// Flow control.
    pub scheme: SchemeName,
    /// Mailbox slots per peer, credit slots included.
    pub slots_per_peer: u32,
    /// Of those, for credit packets.
    pub credit_slots: u32,
    /// Whether credits ride on data packets.
    pub piggyback: bool,
    /// Peers that may connect.
    pub peers: u32,
    /// Posted buffers, where the scheme has such.
    pub posted: Option<PostedBuffers>,
    /// How bulk data travels, as `ShmLink::bulk` says it.
    pub bulk: String,
    /// Name of the program.
    pub program: String,
    values: Vec<u64>,
}

impl EndpointStats {
    /// The value of a counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize]
    }

    /// Reads a page; `None` if these bytes are none of this version.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect();
        let word = |word: Word| words.get(word as usize).copied();
        let half = |which: Word| u32::try_from(word(which)?).ok();
        let known = |which: Word| word(which).filter(|value| *value != UNKNOWN).and_then(|value| value.try_into().ok());
        if word(Word::Magic)? != MAGIC || word(Word::Counters)? != Counter::COUNT as u64 {
            return None;
        }
        let bulk = [BulkState::Undecided, BulkState::Direct, BulkState::Mailbox, BulkState::Bounced];
        let program = bytes.get(PROGRAM_AT..PROGRAM_AT + PROGRAM_BYTES)?;
        let program = program.split(|byte| *byte == 0).next()?;
        Some(EndpointStats {
            pid: half(Word::Pid)?,
            serial: half(Word::Serial)?,
            rank: known(Word::Rank),
            job_size: known(Word::JobSize),
            scheme: *SchemeName::ALL.get(half(Word::Scheme)? as usize)?,
            slots_per_peer: half(Word::SlotsPerPeer)?,
            credit_slots: half(Word::CreditSlots)?,
            piggyback: word(Word::Piggyback)? != 0,
            peers: half(Word::Peers)?,
            posted: match half(Word::BufferPackets)? {
                0 => None,
                packets => Some(PostedBuffers {
                    packets,
                    each: half(Word::Buffers)?,
                    most: half(Word::BuffersMost)?,
                    pool_first: half(Word::PoolFirst)?,
                    pool_most: half(Word::PoolMost)?,
                }),
            },
            bulk: bulk.get(half(Word::Bulk)? as usize)?.name().to_owned(),
            program: String::from_utf8_lossy(program).into_owned(),
            values: words.get(HEADER_WORDS..HEADER_WORDS + Counter::COUNT)?.to_vec(),
        })
    }
}

/// Reads all pages of counters in `dir`, in order of rank, then process, then endpoint. Files of other kinds are
/// passed over; a page of another version is an error that names the file.
pub fn read_dir(dir: &Path) -> io::Result<Vec<EndpointStats>> {
    let mut pages = Vec::new();
    for file in fs::read_dir(dir)? {
        let path = file?.path();
        if !path.as_os_str().as_bytes().ends_with(SUFFIX.as_bytes()) {
            continue;
        }
        let bytes = fs::read(&path)?;
        // All zero, or short: its process was killed while it set the page up.
        if bytes.len() < 8 || bytes[..8] == [0; 8] {
            continue;
        }
        pages.push(EndpointStats::parse(&bytes).ok_or_else(|| {
            let text = format!("{} is not a page of counters of this version of tidegate", path.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        })?);
    }
    pages.sort_by_key(|page| (page.rank.unwrap_or(u32::MAX), page.pid, page.serial));
    Ok(pages)
}
