//! The page as its process has it: a mapped file, or memory that nobody else sees.

use super::layout::{HEADER_WORDS, MAGIC, PAGE_BYTES, Text, UNKNOWN, Word, activity, side_at};
use super::side;
use crate::clock;
use crate::files::create_numbered;
use crate::shm::memory_map::{self, Access, Mapping};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tidegate_flow::Config;
use tidegate_message::{Counter, Counters};
use tidegate_message::{Snapshot, WAY_CLASSES, WayTimes};

/// What the name of a page's file ends with.
pub(super) const SUFFIX: &str = ".counters";
/// Time between two looks at what is open.
pub const ROWS_INTERVAL: Duration = Duration::from_millis(4);

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

/// How much of a long message its receiver takes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// So many bytes.
    Bytes(u64),
    /// All of it.
    Whole,
}

impl Chunk {
    fn word(self) -> u64 {
        match self {
            Chunk::Bytes(bytes) => bytes,
            Chunk::Whole => UNKNOWN,
        }
    }

    /// What a word of a page says; `None`: nothing.
    pub(super) fn of_word(word: u64) -> Option<Chunk> {
        match word {
            0 => None,
            UNKNOWN => Some(Chunk::Whole),
            bytes => Some(Chunk::Bytes(bytes)),
        }
    }
}

/// Settings that were chosen because the user left them open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// How many slots each peer has.
    pub slots: bool,
    /// The bound on receive memory.
    pub memory: bool,
}

impl Chosen {
    fn word(self) -> u64 {
        u64::from(self.slots) | u64::from(self.memory) << 1
    }

    pub(super) fn of_word(word: u64) -> Chosen {
        Chosen { slots: word & 1 != 0, memory: word & 2 != 0 }
    }
}

/// Where an endpoint's counters go, and what to say about the endpoint there.
#[derive(Clone, Debug, Default)]
pub struct StatsConfig {
    /// An existing folder; the endpoint creates `<pid>-<n>.counters` in it.
    pub dir: PathBuf,
    /// Rank of the process in its job, if the launcher told.
    pub rank: Option<u32>,
    /// Ranks of the job, if the launcher told.
    pub job_size: Option<u32>,
    /// What the launcher calls the job, or what else tells it from others.
    pub launch: Option<String>,
    /// Which MPI it is, if known: `mpich`, `openmpi`, `impi`.
    pub mpi: Option<&'static str>,
    /// The settings that were chosen.
    pub chosen: Chosen,
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
    Private {
        owner: NonNull<Counters>,
    },
    File {
        map: Mapping,
        /// The process that made it. A forked child has the page too, and writes nothing.
        maker: u32,
    },
}

impl StatsPage {
    /// Counters that nobody else sees.
    pub(crate) fn private() -> Self {
        let owner = NonNull::from(Box::leak(Box::<Counters>::default()));
        StatsPage { counters: owner, memory: Memory::Private { owner } }
    }

    /// Counters of the endpoint with this id in a new file of the folder. Errors: the folder is missing, full, or not
    /// ours to write to.
    pub(crate) fn create(config: &StatsConfig, flow: &Config, endpoint: u64) -> io::Result<Self> {
        let pid = std::process::id();
        let (file, serial) = create_numbered(&config.dir, SUFFIX)?;
        if let Err(error) = memory_map::allocate(&file, 0..PAGE_BYTES) {
            let _ = fs::remove_file(config.dir.join(format!("{pid}-{serial}{SUFFIX}")));
            return Err(error);
        }
        let map = Mapping::new(&file, 0, PAGE_BYTES, Access::Write)?;
        // `Counters` is a transparent wrapper of an array of atomics.
        let counters = map.slice::<AtomicU64>(HEADER_WORDS * 8, Counter::COUNT).cast::<Counters>();
        let page = StatsPage { counters, memory: Memory::File { map, maker: pid } };
        page.describe(Word::Pid, pid.into());
        page.describe(Word::Serial, serial.into());
        page.describe_endpoint(config, flow, endpoint);
        page.describe(Word::Magic, MAGIC);
        Ok(page)
    }

    fn describe_endpoint(&self, config: &StatsConfig, flow: &Config, endpoint: u64) {
        let optional = |value: Option<u32>| value.map_or(UNKNOWN, u64::from);
        self.describe(Word::Counters, Counter::COUNT as u64);
        self.describe(Word::Rank, optional(config.rank));
        self.describe(Word::JobSize, optional(config.job_size));
        self.describe(Word::Scheme, flow.scheme as u64);
        self.describe(Word::SlotsPerPeer, flow.slots_per_peer.into());
        self.describe(Word::CreditSlots, flow.credit_slots.into());
        self.describe(Word::Piggyback, flow.piggyback.into());
        self.describe(Word::Peers, flow.planned().into());
        let expected = flow.expected_peers.filter(|expected| *expected != flow.planned());
        self.describe(Word::ExpectedPeers, expected.unwrap_or(0).into());
        self.describe(Word::Chosen, config.chosen.word());
        if flow.scheme.lends().posts_buffers() {
            let buffers = &flow.buffers;
            let is_of_slots = flow.scheme.lends().is_pool_of_slots();
            let (first, most) = match is_of_slots {
                true => (buffers.pool_slots, buffers.pool_slots),
                false => (buffers.pool_first, buffers.pool_most),
            };
            self.describe(Word::BufferPackets, buffers.packets.into());
            self.describe(Word::Buffers, buffers.per_connection.into());
            self.describe(Word::BuffersMost, buffers.per_connection_most.into());
            self.describe(Word::PoolFirst, first.into());
            self.describe(Word::PoolMost, most.into());
        }
        let epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.describe(Word::Endpoint, endpoint);
        self.describe(Word::StartedEpoch, epoch.as_nanos() as u64);
        self.describe(Word::Started, clock::now().as_nanos());
        self.describe(Word::Boot, clock::boot());
        self.write_text(Text::PROGRAM, &program());
        self.write_text(Text::HOST, host().trim_end().as_bytes());
        // The end of a long name tells launches apart: "prterun-HOST-PROCESS@1".
        let launch = config.launch.as_deref().unwrap_or_default().as_bytes();
        self.write_text(Text::LAUNCH, &launch[launch.len().saturating_sub(Text::LAUNCH.words * 8 - 1)..]);
        self.write_text(Text::MPI, config.mpi.unwrap_or_default().as_bytes());
    }

    /// The counters.
    #[inline(always)]
    pub(crate) fn counters(&self) -> &Counters {
        // SAFETY: `memory` keeps them valid as long as `self`; they are atomics.
        unsafe { self.counters.as_ref() }
    }

    /// Whether anybody may read what is open.
    pub(crate) fn is_public(&self) -> bool {
        matches!(self.memory, Memory::File { .. })
    }

    /// Whether it is a file of this process.
    fn is_own(&self) -> bool {
        matches!(self.memory, Memory::File { maker, .. } if maker == std::process::id())
    }

    /// Says how bulk data travels.
    pub(crate) fn set_bulk(&self, bulk: BulkState) {
        self.describe(Word::Bulk, bulk as u64);
    }

    /// Says what reaches other hosts.
    pub(crate) fn set_network(&self, name: &str) {
        self.write_text(Text::NETWORK, name.as_bytes());
    }

    /// Says after how many polls that find nothing the processor is given away.
    pub(crate) fn set_spin(&self, polls: u32) {
        self.describe(Word::Spin, polls.into());
    }

    /// Says in what chunks long messages are taken.
    pub(crate) fn set_chunks(&self, within: Chunk, between_hosts: Option<Chunk>) {
        self.describe(Word::Chunk, within.word());
        self.describe(Word::ChunkBetweenHosts, between_hosts.map_or(0, Chunk::word));
    }

    /// Notes whose death was noticed first.
    pub(crate) fn note_death(&self, endpoint: u64) {
        if let Some([first]) = self.cells(Word::FirstDead as usize, 1)
            && first.load(Ordering::Relaxed) == 0
        {
            first.store(endpoint, Ordering::Relaxed);
        }
    }

    /// Writes what is open.
    pub(crate) fn write_rows(&self, rows: &Snapshot<u64>) {
        if self.is_own()
            && let Some([written]) = self.cells(Word::Written as usize, 1)
        {
            self.write_way_times(&rows.way_times);
            let next = written.load(Ordering::Relaxed) + 1;
            self.fill_side(next, rows);
            // Whoever sees this sees the side.
            written.store(next, Ordering::Release);
        }
    }

    fn write_way_times(&self, times: &[WayTimes]) {
        let cells = self.cells(Word::WayTimes as usize, WAY_CLASSES).unwrap_or_default();
        for (cell, WayTimes { asked, read }) in cells.iter().zip(times) {
            cell.store(u64::from(*asked) << 32 | u64::from(*read), Ordering::Relaxed);
        }
    }

    /// Writes rows into the side that is in use when rows have been written so often.
    pub(super) fn fill_side(&self, written: u64, rows: &Snapshot<u64>) {
        let Memory::File { map, .. } = &self.memory else { return };
        let at = side_at(written);
        // SAFETY: inside a live mapping, as long as the page; atomics.
        let cells = unsafe { map.slice::<AtomicU64>(at * 8, PAGE_BYTES / 8 - at).as_ref() };
        let activity = activity(|counter| self.counters().get(counter));
        side::tell(rows, activity, |place, word| cells[place].store(word, Ordering::Relaxed));
    }

    fn describe(&self, word: Word, value: u64) {
        if let Some([cell]) = self.cells(word as usize, 1) {
            cell.store(value, Ordering::Release);
        }
    }

    fn write_text(&self, text: Text, bytes: &[u8]) {
        let cells = self.cells(text.at, text.words).unwrap_or_default();
        for (cell, word) in cells.iter().zip(text.words_of(bytes)) {
            cell.store(word, Ordering::Relaxed);
        }
    }

    /// Words of the description; none where nobody reads it.
    fn cells(&self, at: usize, count: usize) -> Option<&[AtomicU64]> {
        let Memory::File { map, .. } = &self.memory else { return None };
        // SAFETY: the description lies at the start of a live mapping, and is atomics.
        Some(unsafe { map.slice::<AtomicU64>(at * 8, count).as_ref() })
    }
}

impl Drop for StatsPage {
    fn drop(&mut self) {
        match &self.memory {
            // SAFETY: the box leaked in `private`, once; `counters` is not used any more.
            Memory::Private { owner } => drop(unsafe { Box::from_raw(owner.as_ptr()) }),
            Memory::File { .. } if self.is_own() => self.describe(Word::Ended, clock::now().as_nanos()),
            Memory::File { .. } => {}
        }
    }
}

/// The name of this program: the last part of the path that it was started by.
fn program() -> Vec<u8> {
    let line = fs::read("/proc/self/cmdline").unwrap_or_default();
    let path = line.split(|byte| *byte == 0).next().unwrap_or_default();
    Path::new(std::ffi::OsStr::from_bytes(path)).file_name().map_or_else(Vec::new, |name| name.as_bytes().to_vec())
}

/// The name of this host.
fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default()
}
