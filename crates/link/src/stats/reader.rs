//! A page as readers get it, and all pages of a folder.
//!
//! What goes on is told as of the moment at which its process wrote it. A reader that knows how long it has gone on
//! since says so ([`EndpointStats::lasts_until`]): then ages and waits grow, and with them the counters of time.

use super::Snapshot;
use super::layout::{HEADER_WORDS, MAGIC, RECEIVES_AT, Text, UNKNOWN, VERSION, Word, activity, side_at, version_of};
use super::page::{BulkState, Chosen, Chunk, SUFFIX};
use super::side::Side;
use crate::clock;
use crate::files::open_left;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;
use tidegate_flow::SchemeName;
use tidegate_message::{Counter, WayTimes};

/// How often a reader begins anew because rows were replaced while it read them. Their process writes them every few
/// milliseconds, so the second time is enough; a process that writes without end is no reason to hang.
const TRIES: usize = 16;

/// The times of both ways of long messages of a class.
fn way_times(words: &[u64], class: usize) -> WayTimes {
    let word = words.get(Word::WayTimes as usize + class).copied().unwrap_or_default();
    WayTimes { asked: (word >> 32) as u32, read: word as u32 }
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
    /// The endpoint's random id, which is also in its address: rows of other pages name it by this.
    pub endpoint: u64,
    /// Name of its host.
    pub host: String,
    /// Rank of the process in its job, if known.
    pub rank: Option<u32>,
    /// Ranks of the job, if known.
    pub job_size: Option<u32>,
    /// What tells its job from others that one script has launched, if known.
    pub launch: Option<String>,
    /// Which MPI it is, if known: `mpich`, `openmpi`, `impi`.
    pub mpi: Option<String>,
    /// Flow control.
    pub scheme: SchemeName,
    /// Mailbox slots per peer, credit slots included.
    pub slots_per_peer: u32,
    /// Of those, for credit packets.
    pub credit_slots: u32,
    /// Whether credits ride on data packets.
    pub piggyback: bool,
    /// Peers that the endpoint was planned for. Newcomers beyond them may connect.
    pub peers: u32,
    /// Of those, how many share the slots at the start; `None`: all.
    pub expected_peers: Option<u32>,
    /// The settings that were chosen because the user left them open.
    pub chosen: Chosen,
    /// Posted buffers, where the scheme has such.
    pub posted: Option<PostedBuffers>,
    /// How bulk data travels, as `ShmLink::bulk` says it.
    pub bulk: String,
    /// What reaches other hosts; empty: nothing.
    pub network: String,
    /// Polls that find nothing before the processor is given away, as chosen when a peer came last.
    pub spin: u32,
    /// How much of a long message is taken at a time within the host, if that is known.
    pub chunk: Option<Chunk>,
    /// The same between hosts, if there is a network.
    pub chunk_between_hosts: Option<Chunk>,
    /// Name of the program.
    pub program: String,
    /// When the endpoint opened, since the epoch.
    pub started: Duration,
    /// When `open` was written, since the epoch; zero if it never was.
    pub written: Duration,
    /// When its process last found nothing to do and wrote it, since the epoch, whatever it has lasted until; zero if
    /// it never did.
    pub polled: Duration,
    /// When the endpoint closed in order, since the epoch.
    pub closed: Option<Duration>,
    /// Whether the endpoint closed in order.
    pub ended: bool,
    /// The id of the endpoint whose death it noticed first.
    pub first_dead: Option<u64>,
    /// Whether nothing has moved since `written`, so that what was open then still is.
    pub is_current: bool,
    /// What was open and waited for at `written`: waits of at most [`WAIT_ROWS`](super::WAIT_ROWS) peers and causes,
    /// and a row for all others.
    pub open: Snapshot,
    values: Vec<u64>,
}

impl EndpointStats {
    /// The page of an endpoint that has done nothing yet, for tests of what reads pages.
    pub fn blank(pid: u32, rank: Option<u32>, job_size: Option<u32>) -> Self {
        EndpointStats {
            pid,
            serial: 0,
            endpoint: u64::from(pid) << 32 | 1,
            host: "host".into(),
            rank,
            job_size,
            launch: None,
            mpi: None,
            scheme: SchemeName::Dynamic,
            slots_per_peer: 64,
            credit_slots: 2,
            piggyback: true,
            peers: 16,
            expected_peers: None,
            chosen: Chosen::default(),
            posted: None,
            bulk: BulkState::Direct.name().to_owned(),
            network: String::new(),
            spin: 2000,
            chunk: Some(Chunk::Bytes(1 << 20)),
            chunk_between_hosts: None,
            program: "program".into(),
            started: Duration::from_secs(1),
            written: Duration::ZERO,
            polled: Duration::ZERO,
            closed: None,
            ended: false,
            first_dead: None,
            is_current: false,
            open: Snapshot::default(),
            values: vec![0; Counter::COUNT],
        }
    }

    /// Sets a counter, for tests of what reads pages.
    pub fn set(&mut self, counter: Counter, value: u64) {
        self.values[counter as usize] = value;
    }

    /// The value of a counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize]
    }

    /// How long it was open, as far as it has told: until it closed, or until it last wrote its page.
    pub fn lived(&self) -> Duration {
        self.closed.unwrap_or(self.written.max(self.polled)).saturating_sub(self.started)
    }

    /// What was open at `written` has gone on until `end` (since the epoch), if nothing has moved since: ages and waits
    /// grow, and so does the time that counters count. Closed endpoints stay as they are.
    pub fn lasts_until(&mut self, end: Duration) {
        if self.ended || !self.is_current || self.written.is_zero() {
            return;
        }
        let Some(time) = end.checked_sub(self.written) else { return };
        self.written = end;
        self.open.grow_older(time);
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let delayed = nanoseconds.saturating_mul(self.open.peers_delayed.into());
        let during = |holds: bool| if holds { nanoseconds } else { 0 };
        for (counter, more) in [
            (Counter::DelayNanoseconds, delayed),
            (Counter::PressureNanoseconds, during(self.open.is_pressed)),
            (Counter::WaitNanoseconds, during(self.open.is_waiting)),
        ] {
            let value = &mut self.values[counter as usize];
            *value = value.saturating_add(more);
        }
    }

    /// Reads the description and the counters; `None` if these words are none of this version.
    fn parse(words: &[u64]) -> Option<Self> {
        let word = |word: Word| words.get(word as usize).copied();
        let half = |which: Word| u32::try_from(word(which)?).ok();
        let known = |which: Word| word(which).filter(|value| *value != UNKNOWN).and_then(|value| value.try_into().ok());
        let text = |text: Text| text.read(words);
        let told = |text: Text| text.read(words).filter(|text| !text.is_empty());
        if word(Word::Magic)? != MAGIC || word(Word::Counters)? != Counter::COUNT as u64 {
            return None;
        }
        let bulk = [BulkState::Undecided, BulkState::Direct, BulkState::Mailbox, BulkState::Bounced];
        let clock = Clock::of(words)?;
        let closed = Some(word(Word::Ended)?).filter(|ended| *ended > 0).map(|ended| clock.since_epoch(ended));
        Some(EndpointStats {
            pid: half(Word::Pid)?,
            serial: half(Word::Serial)?,
            endpoint: word(Word::Endpoint)?,
            host: text(Text::HOST)?,
            rank: known(Word::Rank),
            job_size: known(Word::JobSize),
            launch: told(Text::LAUNCH),
            mpi: told(Text::MPI),
            scheme: *SchemeName::ALL.get(half(Word::Scheme)? as usize)?,
            slots_per_peer: half(Word::SlotsPerPeer)?,
            credit_slots: half(Word::CreditSlots)?,
            piggyback: word(Word::Piggyback)? != 0,
            peers: half(Word::Peers)?,
            expected_peers: Some(half(Word::ExpectedPeers)?).filter(|peers| *peers > 0),
            chosen: Chosen::of_word(word(Word::Chosen)?),
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
            network: text(Text::NETWORK)?,
            spin: half(Word::Spin)?,
            chunk: Chunk::of_word(word(Word::Chunk)?),
            chunk_between_hosts: Chunk::of_word(word(Word::ChunkBetweenHosts)?),
            program: text(Text::PROGRAM)?,
            started: clock.since_epoch(word(Word::Started)?),
            written: Duration::ZERO,
            polled: Duration::ZERO,
            closed,
            ended: closed.is_some(),
            first_dead: Some(word(Word::FirstDead)?).filter(|endpoint| *endpoint != 0),
            is_current: false,
            open: Snapshot { way_times: std::array::from_fn(|class| way_times(words, class)), ..Snapshot::default() },
            values: words.get(HEADER_WORDS..HEADER_WORDS + Counter::COUNT)?.to_vec(),
        })
    }

    /// Takes over the rows of a side.
    fn take_rows(&mut self, side: Side, clock: Clock) {
        let written = side.seen.at.as_nanos();
        if written == 0 {
            return;
        }
        self.written = clock.since_epoch(written);
        self.polled = self.written;
        self.is_current = side.activity == activity(|counter| self.get(counter));
        self.open = Snapshot { way_times: self.open.way_times, ..side.seen };
    }
}

/// The clock of a page's process beside that of the world.
#[derive(Clone, Copy)]
enum Clock {
    /// Its clock is ours, too. Then it does not matter what that of the world said at any time.
    Ours,
    /// What both said when the page was made.
    Theirs { epoch: u64, started: u64 },
}

impl Clock {
    fn of(words: &[u64]) -> Option<Clock> {
        let word = |word: Word| words.get(word as usize).copied();
        match word(Word::Boot)? {
            boot if boot != 0 && boot == clock::boot() => Some(Clock::Ours),
            _ => Some(Clock::Theirs { epoch: word(Word::StartedEpoch)?, started: word(Word::Started)? }),
        }
    }

    fn since_epoch(self, moment: u64) -> Duration {
        match self {
            Clock::Ours => clock::since_epoch_at(moment),
            Clock::Theirs { epoch, started } => {
                Duration::from_nanos(epoch.saturating_add(moment.saturating_sub(started)))
            }
        }
    }
}

/// What is in a file that may be a page.
enum Found {
    Page(Box<EndpointStats>),
    /// Its process was killed while it set the page up.
    Unfinished,
}

/// Reads so many words of a page, or fewer where the file ends.
fn words_at(file: &File, at: usize, count: usize) -> io::Result<Vec<u64>> {
    let (mut bytes, mut have) = (vec![0; count * 8], 0);
    while have < bytes.len() {
        match file.read_at(&mut bytes[have..], (at * 8 + have) as u64) {
            Ok(0) => break,
            Ok(more) => have += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(have);
    Ok(bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect())
}

/// The rows that were written last; none if there are none, or they are replaced faster than one can read.
fn read_rows(file: &File) -> io::Result<Side> {
    let times_written = || Ok::<_, io::Error>(words_at(file, Word::Written as usize, 1)?.first().copied().unwrap_or(0));
    let mut written = times_written()?;
    for _ in 0..TRIES {
        if written == 0 {
            break;
        }
        let head = words_at(file, side_at(written), RECEIVES_AT)?;
        let words = words_at(file, side_at(written), Side::words(&head))?;
        let now = times_written()?;
        if now == written {
            return Ok(Side::read(&words).unwrap_or_default());
        }
        written = now;
    }
    Ok(Side::default())
}

/// Why a file is no page that can be read.
enum Unread {
    /// It has been removed since the folder was listed.
    Gone,
    /// What is to be said behind its name.
    Refused(String),
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Unread::Gone,
            _ => Unread::Refused(format!(": {error}")),
        }
    }
}

fn read_page(path: &Path) -> Result<Found, Unread> {
    let file = open_left(path)?;
    let words = words_at(&file, 0, HEADER_WORDS + Counter::COUNT)?;
    let first = words.first().copied().unwrap_or(0);
    if first == 0 {
        return Ok(Found::Unfinished);
    }
    let Some(mut page) = EndpointStats::parse(&words) else {
        return Err(Unread::Refused(match version_of(first) {
            Some(version) if version != VERSION => format!(
                " is a page of counters of another version of tidegate (layout {version}): use the `tidegate` that belongs \
                 to the library which wrote it"
            ),
            _ => " is not a page of counters of this version of tidegate".to_owned(),
        }));
    };
    if let Some(clock) = Clock::of(&words) {
        page.take_rows(read_rows(&file)?, clock);
    }
    Ok(Found::Page(Box::new(page)))
}

/// The pages of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// Those that can be read, in order of rank, then process, then endpoint.
    pub read: Vec<EndpointStats>,
    /// Why others cannot be, with the names of their files: one such page hides no other.
    pub refused: Vec<String>,
}

impl Pages {
    /// That some cannot be read, and why, in one line; `None` if all can.
    pub fn gap(&self) -> Option<String> {
        let first = self.refused.first()?;
        Some(match self.refused.len() - 1 {
            0 => format!("a page of counters is left out: {first}"),
            more => format!("{} pages of counters are left out: {first}; and {more} more", more + 1),
        })
    }
}

/// More files of a folder are not looked at: a folder may be another user's, who could fill it without end. A host has
/// fewer processes of one job than this.
const FILES_MOST: usize = 1 << 15;

/// Reads all pages of counters in `dir`, of its first 32,768 files; if there are more, that is among what was refused.
/// Files of other kinds are passed over.
///
/// # Errors
/// If the folder itself cannot be read.
pub fn read_dir(dir: &Path) -> io::Result<Pages> {
    read_some(dir, FILES_MOST)
}

pub(super) fn read_some(dir: &Path, most: usize) -> io::Result<Pages> {
    let mut pages = Pages::default();
    for (count, file) in fs::read_dir(dir)?.enumerate() {
        if count == most {
            pages.refused.push(format!("{} has more than {most} files: the others are not looked at", dir.display()));
            break;
        }
        let path = file?.path();
        if !path.as_os_str().as_bytes().ends_with(SUFFIX.as_bytes()) {
            continue;
        }
        match read_page(&path) {
            Ok(Found::Page(page)) => pages.read.push(*page),
            Ok(Found::Unfinished) | Err(Unread::Gone) => {}
            Err(Unread::Refused(why)) => pages.refused.push(format!("{}{why}", path.display())),
        }
    }
    pages.read.sort_by_key(|page| (page.rank.unwrap_or(u32::MAX), page.pid, page.serial));
    pages.refused.sort_unstable();
    Ok(pages)
}
