//! Shared memory between the processes of one host.
//!
//! Each endpoint owns one `segment`: a file in `/dev/shm` with a table of `peer`s and a `mailbox`, which peers write to, and
//! a list of published `region`s and `bounce buffer`s for bulk data, which they only read. A `connection` is made at the first packet
//! to a peer: it maps the peer's segment and takes a place in the peer's table. `bulk` data goes from memory to memory.
//! A `service` is a name that leads to an endpoint.
//! `vigil` notices peers that close or die and what they leave behind; `life` says who lives, by each `lock` that an endpoint holds
//! and no forked child of it keeps (`lock_file`). `patience` decides when an idle process yields, and `wake` lets it block.

mod address;
mod bounce;
mod bulk;
mod connection;
mod error;
mod life;
mod lock;
mod lock_file;
mod mailbox;
pub(crate) mod memory_map;
mod patience;
mod peer;
mod region;
mod segment;
mod service;
mod sync;
#[cfg(all(test, not(loom)))]
mod tests;
mod vigil;
mod wake;

pub use address::Address;
pub use error::{LinkError, Shortage};
pub use service::{Claim, ClaimError, Service};

use crate::clock;
use crate::log::{self, Level};
use crate::memory::IoBuffer;
use crate::stats::{BulkState, StatsConfig, StatsPage};
use address::{Difference, Settings};
use bounce::{BOUNCE_BUFFER_BYTES, BounceBuffers};
use bulk::TransferError;
use connection::{Connection, Terms};
use error::is_shortage;
use life::{Here, Rights};
use mailbox::Reader;
use patience::{Patience, Step};
use peer::Table;
use region::Regions;
use segment::OwnSegment;
use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;
use tidegate_flow::{Config, Instant, Packet, PeerId};
use tidegate_message::{
    Access, Buffer, Counter, Counters, Departure, Link, Span, Stages, TransferId, TransferStatus, WriteError,
};
use vigil::{End, Vigil};
use wake::{Alarm, Waker};

/// How bulk data may travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkChoice {
    /// Directly if a probe succeeds and that is measured to be faster, or the transfer is very long; else through bounce buffers, or
    /// through the mailbox when no bounce buffer is free.
    Auto,
    /// All directly; a peer whose memory cannot be reached is an error.
    Direct,
    /// All through bounce buffers, or through the mailbox when no bounce buffer is free.
    Bounced,
    /// All through the mailbox.
    Mailbox,
}

impl BulkChoice {
    fn may_be_direct(self) -> bool {
        matches!(self, BulkChoice::Auto | BulkChoice::Direct)
    }

    /// Whether bounce buffers are of use.
    fn may_be_bounced(self) -> bool {
        matches!(self, BulkChoice::Auto | BulkChoice::Bounced)
    }
}

/// What an endpoint over shared memory needs to know.
#[derive(Clone, Debug)]
pub struct ShmConfig {
    /// Flow control: fixes the size of the mailbox. All processes must agree, on all but `peers`.
    pub flow: Config,
    /// Bulk data.
    pub bulk: BulkChoice,
    /// Polls that find nothing before [`ShmLink::idle`] yields the processor; `None`: many if the processes fit the
    /// cores, few if not.
    pub spin: Option<u32>,
    /// Publish the counters in a file; `None`: keep them private.
    pub stats: Option<StatsConfig>,
    /// Whether [`ShmLink::wake_fd`] may be called. Costs senders a memory barrier per packet.
    pub wakes: bool,
    /// Bounce buffers of 32 KiB for bulk data; 0: none.
    pub bounce_buffers: u32,
    /// Where segments lie: `/dev/shm`, the same for all processes.
    pub directory: PathBuf,
}

impl ShmConfig {
    /// Defaults for everything but flow control.
    pub fn new(flow: Config) -> Self {
        ShmConfig {
            flow,
            bulk: BulkChoice::Auto,
            spin: None,
            stats: None,
            wakes: false,
            bounce_buffers: DEFAULT_BOUNCE_BUFFERS,
            directory: PathBuf::from("/dev/shm"),
        }
    }
}

/// Removes the segments that dead processes of this user left in `directory`; returns how many. Every new endpoint
/// does so by itself: this is for whoever sees a job end and wants its memory back at once.
pub fn reclaim(directory: &Path) -> usize {
    let here = Here::find();
    let reclaimed = segment::reclaim(directory, &here);
    service::reclaim(directory, &here);
    reclaimed
}

/// Bounce buffers of an endpoint, unless the user says otherwise: 1 MiB in all.
pub const DEFAULT_BOUNCE_BUFFERS: u32 = 32;
/// Most bounce buffers that an endpoint may have: 1 GiB.
pub const BOUNCE_BUFFERS_MOST: u32 = 1 << 15;
/// Bulk transfers from this many bytes on go from memory to memory: no bounce buffer stays in a cache then, and a copy that leaves the
/// sender free to compute is worth more. For shorter ones the endpoint measures which way is faster.
const DIRECT_FROM: usize = 8 << 20;

/// Looks at the mailbox of one lingering poll; each costs a nanosecond or so.
const LOOKS_LINGERING: u32 = 256;
/// Packets in a row that make a burst.
const BURST: u32 = 8;
/// Packets in a row after which the fill of the mailbox is looked at again.
const BURST_AGAIN: u32 = 256;
/// Packets without a sender that one poll drops at most.
const DROPS_PER_POLL: u32 = 64;
/// Time between two tries to connect, where something hinders that passes: locks that others hold, few descriptors.
const CONNECT_INTERVAL: Duration = Duration::from_millis(50);
/// How long a full table of peers with some in it that have ended is tried again before it counts as full. Its owner gives the
/// places of these away as soon as it has received all that they sent.
const FULL_PATIENCE: Duration = Duration::from_secs(10);
/// Calls of `poll_departure` between two looks at the clock.
const POLLS_PER_LOOK: u32 = 1024;

/// What we know of the peer at an index.
#[derive(Debug, Default)]
struct Peer {
    connection: Option<Connection>,
    /// Whose index it is; `None`: nobody's, or somebody's we have not heard of.
    address: Option<Address>,
    /// Why nothing can be written to it any more.
    lost: Option<Box<str>>,
    /// It is closing, and we have noticed.
    is_closing: bool,
    /// It will write no more: it has said so, or its end is proven.
    is_silent: bool,
    /// Not before this is it tried again to connect.
    connect_at: Instant,
    /// Since when its table of peers has been full, with some in it that have ended.
    full_since: Option<Instant>,
    standing: Standing,
}

/// Whether a peer's packets count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    /// Not heard of.
    #[default]
    Unknown,
    /// In good order.
    Known,
    /// Gone, or out of reach; what it wrote before is still being retrieved.
    Leaving,
    /// Gone, or out of reach, and reported.
    Departed,
    /// The endpoint wants to hear no more of it, although it may still write.
    Shunned,
    /// The same, and the endpoint wants to know when it has gone.
    Quarantined,
    /// Forgotten, but for its place, which could not be given away: somebody held the lock.
    Released,
}

impl Standing {
    /// Whether its packets go to the endpoint.
    fn is_heard(self) -> bool {
        matches!(self, Standing::Known | Standing::Leaving)
    }
}

/// One endpoint's view of shared memory: its own mailbox and those of its peers.
///
/// One value belongs to one endpoint and is used by one thread at a time. Call [`busy`](Self::busy) or
/// [`idle`](Self::idle) after each round of progress. Dropping it closes the endpoint: peers that know it are told.
#[derive(Debug)]
pub struct ShmLink {
    reader: Reader,
    /// A wake has been asked for.
    is_armed: bool,
    /// Packets retrieved in a row.
    burst: u32,
    /// Calls of `poll_departure`.
    polls: u32,
    patience: Patience,
    /// By `PeerId`.
    peers: Vec<Peer>,
    vigil: Vigil,
    /// It has been said what hinders connecting that passes.
    has_told_hindrance: bool,
    /// Since when our own table has been full, with some in it that have ended.
    full_since: Option<Instant>,
    /// Somebody has removed our file: nobody can connect to us any more.
    is_removed: bool,
    by_address: HashMap<Address, PeerId>,
    /// Peers whose places are still to be given away.
    released: Vec<PeerId>,
    table: Table,
    regions: Regions,
    bounce_buffers: BounceBuffers,
    copier: bulk::Copier,
    time_reading: Duration,
    bulk: BulkState,
    config: ShmConfig,
    here: Here,
    alarm: Alarm,
    waker: Option<Waker>,
    stats: StatsPage,
    /// Last, so that it outlives what points into it.
    segment: OwnSegment,
}

// SAFETY: what the pointers inside lead to (segments, counters) belongs to this value and is atomic or behind `&mut
// self`; none of it is bound to a thread.
unsafe impl Send for ShmLink {}

impl ShmLink {
    /// Creates the segment and reclaims those that dead processes left behind.
    pub fn new(config: ShmConfig) -> Result<ShmLink, LinkError> {
        let here = Here::find();
        segment::reclaim(&config.directory, &here);
        service::reclaim(&config.directory, &here);
        // Who has no peers needs no bounce buffers.
        let bounce_buffers =
            if config.bulk.may_be_bounced() && config.flow.peers > 0 { config.bounce_buffers } else { 0 };
        let segment = OwnSegment::create(&config.directory, &here, &config.flow, bounce_buffers, config.wakes)?;
        let stats = match &config.stats {
            None => StatsPage::private(),
            Some(stats) => StatsPage::create(stats, &config.flow).map_err(|error| {
                let action = format!("creating a page of counters in {} (FI_TIDEGATE_STATS_DIR)", stats.dir.display());
                LinkError::system(action, error)
            })?,
        };
        // SAFETY: all four are fields of the value that owns the segment, are never handed out, and are not used in
        // `Drop` after the segment is gone.
        let (table, regions, mailbox, bounce_buffers) =
            unsafe { (segment.table(), segment.regions(), segment.mailbox(), segment.bounce_buffers()) };
        if config.bulk.may_be_direct() {
            bulk::permit();
        }
        let peers: Vec<Peer> = (0..table.capacity()).map(|_| Peer::default()).collect();
        stats.counters().set(Counter::MailboxBytes, segment.mailbox_bytes());
        stats.counters().set(Counter::BounceBufferBytes, segment.bounce_buffer_bytes());
        let local = peers.len() * size_of::<Peer>();
        stats.counters().set(Counter::BookkeepingBytes, segment.bookkeeping_bytes() + local as u64);
        let mut link = ShmLink {
            reader: Reader::new(mailbox),
            is_armed: false,
            burst: 0,
            polls: 0,
            patience: Patience::new(config.spin),
            peers,
            vigil: Vigil::default(),
            has_told_hindrance: false,
            full_since: None,
            is_removed: false,
            by_address: HashMap::new(),
            released: Vec::new(),
            table,
            regions,
            bounce_buffers,
            copier: bulk::Copier::default(),
            time_reading: Duration::ZERO,
            bulk: BulkState::Undecided,
            config,
            here,
            alarm: Alarm::default(),
            waker: None,
            stats,
            segment,
        };
        if !link.config.bulk.may_be_direct() {
            link.note_bulk(Some("FI_TIDEGATE_BULK says so".into()));
        }
        Ok(link)
    }

    /// Where segments lie.
    pub fn directory(&self) -> &Path {
        &self.config.directory
    }

    /// Where peers find this endpoint.
    pub fn address(&self) -> Address {
        self.segment.address()
    }

    /// The peer at `address`, which is not this endpoint's own: found in the table of peers, or inserted. Does not
    /// connect. Errors: the table is full; it is locked, or descriptors lack (both: [`LinkError::may_be_tried_again`]); the address is our own, or of another host, or of an endpoint with other settings;
    /// nothing goes to and fro between us any more.
    pub fn peer(&mut self, address: &Address) -> Result<PeerId, LinkError> {
        let elsewhere = |reason: &str| LinkError::Elsewhere { peer: *address, reason: reason.into() };
        if let Some(peer) = self.by_address.get(address) {
            let known = &self.peers[peer.0 as usize];
            return match &known.lost {
                Some(why) if known.standing == Standing::Shunned => Err(elsewhere(why)),
                _ => Ok(*peer),
            };
        }
        if *address == self.address() {
            return Err(elsewhere("it is this endpoint itself"));
        }
        check_settings(&self.config.flow, address)?;
        let path = self.config.directory.join(address.identity.file_name());
        if !self.here.shares_boot(&address.identity)
            && let Err(error) = life::open(&path, Rights::Read)
        {
            return Err(match is_shortage(&error) {
                true => self.note_hindrance(LinkError::system(format!("opening {}", path.display()), error)),
                false => elsewhere(&segment::elsewhere(&path)),
            });
        }
        self.give_places_away();
        let locked = self.segment.lock_table(lock::PATIENCE);
        let found = locked.map(|_held| match self.is_removed && self.table.find(address).is_none() {
            true => Err(elsewhere(&self.why_nobody_connects())),
            false => Ok(self.table.find_or_insert(address)),
        });
        let place = match found {
            Ok(place) => place?,
            Err(error) => return Err(self.note_hindrance(error)),
        };
        let Some(peer) = place else { return Err(self.no_place()) };
        self.full_since = None;
        self.introduce(peer, *address);
        Ok(peer)
    }

    /// Why our own table has no place. Those who have ended make place as soon as they are noticed, and the endpoint has released
    /// them.
    fn no_place(&mut self) -> LinkError {
        self.look_soon();
        let now = clock::now();
        let is_changing = self.table.has_ended() && now.since(*self.full_since.get_or_insert(now)) < FULL_PATIENCE;
        LinkError::TableFull { owner: "this process".into(), peers: self.table.capacity() as u32, is_changing }
    }

    /// The address of a peer; `None` if there is no such peer (any more).
    pub fn address_of(&self, peer: PeerId) -> Option<Address> {
        self.peers.get(peer.0 as usize)?.address
    }

    /// Lets peers find a registered region, so that RMA goes straight to memory. `false`: no room; peers then go by
    /// message.
    pub fn publish_region(&mut self, key: u64, span: Span, read: bool, write: bool) -> bool {
        self.regions.publish(key, span, read, write)
    }

    /// Ends that. A key that was not published is no error.
    pub fn withdraw_region(&mut self, key: u64) {
        self.regions.withdraw(key);
    }

    /// Progress found something to do.
    #[inline]
    pub fn busy(&mut self) {
        self.patience.reset();
    }

    /// Progress found nothing to do: waits a little for a packet, spins, or yields the processor; now and then looks whether peers
    /// live. Returns whether a packet has come meanwhile.
    #[inline]
    pub fn idle(&mut self) -> bool {
        match self.patience.step() {
            Step::Linger => return (0..LOOKS_LINGERING).any(|_| self.reader.is_ready()),
            Step::Spin => std::hint::spin_loop(),
            Step::Look => self.watch(),
            Step::Yield => self.give_way(),
        }
        false
    }

    #[cold]
    fn give_way(&mut self) {
        self.watch();
        self.stats.counters().add(Counter::Yields, 1);
        std::thread::yield_now();
    }

    /// A descriptor that becomes readable when a packet arrives while [armed](Self::arm), and half a second after
    /// arming in any case. Errors: [`ShmConfig::wakes`] was not set; the process has no descriptor left.
    pub fn wake_fd(&mut self) -> io::Result<RawFd> {
        if !self.config.wakes {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "this endpoint was made without a wait descriptor"));
        }
        let waker = match self.waker.take() {
            Some(waker) => waker,
            None => Waker::new()?,
        };
        if let Some(name) = waker.name() {
            self.segment.header().set_wake_name(name);
        }
        Ok(self.waker.insert(waker).descriptor())
    }

    /// Asks for a wake at the next packet. `true`: nothing has arrived so far, the caller may block on the descriptor.
    /// `false`: something has; call progress. Ends by itself at the next call of `retrieve`.
    pub fn arm(&mut self) -> bool {
        let Some(waker) = &self.waker else { return false };
        waker.stop();
        self.is_armed = true;
        let armed = &self.segment.signals().armed.0;
        armed.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // Who left is known without a packet, so a departure must not wait for one either.
        if self.reader.is_ready() || self.vigil.has_departures() || self.vigil.has_closings() {
            self.disarm();
            return false;
        }
        waker.start();
        true
    }

    #[cold]
    fn disarm(&mut self) {
        self.is_armed = false;
        self.segment.signals().armed.0.store(0, Ordering::Relaxed);
        if let Some(waker) = &self.waker {
            waker.stop();
        }
        self.watch();
    }

    /// How bulk data travels, for people and statistics: `direct`, `bounced`, `mailbox`, or `undecided` before the
    /// first connection.
    pub fn bulk(&self) -> &'static str {
        self.bulk.name()
    }

    /// Remembers whose index this is.
    fn introduce(&mut self, peer: PeerId, address: Address) {
        self.peers[peer.0 as usize] = Peer { address: Some(address), standing: Standing::Known, ..Peer::default() };
        if self.is_new_process(&address) {
            // Of a process in another container only the number counts; no process has this pid.
            let pid =
                if self.here.shares_namespace(&address.identity) { address.identity.pid } else { i32::MAX as u32 };
            self.patience.add_process(pid);
        }
        self.by_address.insert(address, peer);
    }

    /// Whether no other endpoint that we know belongs to the same process.
    fn is_new_process(&self, address: &Address) -> bool {
        let process = |address: &Address| (address.identity.pid, address.identity.namespace);
        let same = |known: &Address| process(known) == process(address);
        !same(&self.address()) && !self.by_address.keys().any(same)
    }

    /// A packet came with this source, of which we have not heard: whether it is in the table of peers.
    #[cold]
    fn admit(&mut self, source: PeerId) -> bool {
        let unheard = self.peers.get(source.0 as usize).is_some_and(|peer| match peer.standing {
            Standing::Unknown => true,
            // It had not connected when it was released, and has now: the place is that of a new peer.
            Standing::Released => !peer.is_silent && self.table.may_write(source),
            _ => false,
        });
        let address = if unheard { self.table.address(source) } else { None };
        match address {
            Some(address) => {
                self.introduce(source, address);
                // A newcomer has taken the last place: some who have ended may still have theirs.
                if self.table.is_full() {
                    self.look_soon();
                }
            }
            None => self.stats.counters().add(Counter::Violations, 1),
        }
        address.is_some()
    }

    /// Opens the connection to a peer that has none.
    #[cold]
    fn connect(&mut self, to: PeerId) -> Result<&mut Connection, WriteError> {
        let ours = self.address();
        let nobody = || WriteError::Unreachable(format!("there is no peer {}", to.0));
        let known = |peer: &&Peer| !matches!(peer.standing, Standing::Unknown | Standing::Released);
        let peer = self.peers.get(to.0 as usize).filter(known).ok_or_else(nobody)?;
        if let Some(why) = &peer.lost {
            return Err(WriteError::Unreachable(why.to_string()));
        }
        let address = peer.address.ok_or_else(nobody)?;
        if peer.connect_at > Instant::default() && clock::now() < peer.connect_at {
            return Err(WriteError::Full);
        }
        let ShmConfig { flow, bulk, directory, .. } = &self.config;
        let terms = Terms { directory, here: &self.here, ours, flow, bulk: *bulk };
        match Connection::open(&terms, &address) {
            Ok((connection, obstacle)) => {
                self.note_bulk(obstacle);
                Ok(self.peers[to.0 as usize].connection.insert(connection))
            }
            Err(error) if self.is_passing(to, &error) => {
                self.note_hindrance(error);
                self.peers[to.0 as usize].connect_at = clock::now() + CONNECT_INTERVAL;
                Err(WriteError::Full)
            }
            Err(error) => Err(WriteError::Unreachable(self.give_up(to, &error))),
        }
    }

    /// Whether what hinders connecting to a peer will pass. The peer may live, so nothing is lost by waiting: its end is noticed
    /// meanwhile like anybody's.
    fn is_passing(&mut self, peer: PeerId, error: &LinkError) -> bool {
        if matches!(error, LinkError::TableFull { .. }) {
            let now = clock::now();
            let since = *self.peers[peer.0 as usize].full_since.get_or_insert(now);
            return error.may_be_tried_again() && now.since(since) < FULL_PATIENCE;
        }
        error.may_be_tried_again()
    }

    /// Says once what makes operations wait, and what helps.
    fn note_hindrance(&mut self, error: LinkError) -> LinkError {
        let is_told = matches!(error, LinkError::Busy { .. } | LinkError::System { .. });
        if is_told && error.may_be_tried_again() && !std::mem::replace(&mut self.has_told_hindrance, true) {
            let remedy = match &error {
                LinkError::System { error, .. } if error.raw_os_error() == Some(libc::EMFILE) => {
                    "; this process has as many descriptors as it may have: raise its limit (ulimit -n)"
                }
                _ => "",
            };
            log::line(Level::Warn, || format!("connecting has to wait, and is tried again: {error}{remedy}"));
        }
        error
    }

    /// A peer cannot be connected to. What it has sent is still retrieved, but it could not be answered: its departure is
    /// reported behind that. Returns why.
    fn give_up(&mut self, peer: PeerId, error: &LinkError) -> String {
        if let Some(end) = self.last_words(peer) {
            // It has closed, which is the better thing to say. So is that it is dead.
            self.notice_departure(peer, end);
        } else if matches!(error, LinkError::Gone { .. } | LinkError::Vanished { .. }) {
            self.ask_about(peer);
        }
        if self.is_present(peer) {
            log::line(Level::Trouble, || error.to_string());
            self.notice_departure(peer, End::OutOfReach(error.to_string()));
        }
        self.peers[peer.0 as usize].lost.as_ref().map_or_else(|| error.to_string(), |why| why.to_string())
    }

    /// Logs once how bulk data travels, and once more if it is not the same for all peers.
    fn note_bulk(&mut self, obstacle: Option<String>) {
        let now = match obstacle {
            None => BulkState::Direct,
            Some(_) if self.config.bulk.may_be_bounced() && self.bounce_buffers.count() > 0 => BulkState::Bounced,
            Some(_) => BulkState::Mailbox,
        };
        if self.bulk == now || matches!(self.bulk, BulkState::Bounced | BulkState::Mailbox) {
            return;
        }
        self.bulk = now;
        self.stats.set_bulk(now);
        match obstacle {
            None if self.bounce_buffers.count() > 0 => log::line(Level::Info, || {
                "bulk data goes directly from memory to memory (process_vm_readv) or through bounce buffers, whichever is \
                 measured to be faster"
                    .into()
            }),
            None => {
                log::line(Level::Info, || "bulk data goes directly from memory to memory (process_vm_readv)".into())
            }
            Some(why) => {
                log::line(Level::Info, || format!("bulk data does not go directly, but {}: {why}", now.name()))
            }
        }
    }

    /// The connection to a peer, made now if need be.
    fn connection(&mut self, peer: PeerId) -> Option<&mut Connection> {
        // Twice looked up, because a borrow cannot be returned from one branch only.
        if self.peers.get(peer.0 as usize).is_some_and(|peer| peer.connection.is_some()) {
            return self.peers[peer.0 as usize].connection.as_mut();
        }
        self.connect(peer).ok()
    }

    /// Whether the peer may be connected to later.
    fn is_hindered(&self, peer: PeerId) -> bool {
        self.peers.get(peer.0 as usize).is_some_and(|peer| {
            peer.connection.is_none() && peer.lost.is_none() && peer.connect_at > Instant::default()
        })
    }

    #[cold]
    fn wake_peer(&mut self, peer: PeerId) {
        let connection = self.peers.get(peer.0 as usize).and_then(|peer| peer.connection.as_ref());
        if let Some(name) = connection.and_then(Connection::wake_name) {
            self.alarm.ring(name);
        }
    }

    /// Raises the mark of most slots in use: those still to be retrieved, and the one just retrieved.
    #[cold]
    fn sample_fill(&mut self) {
        if let Ok(backlog) = self.reader.backlog() {
            self.stats.counters().raise(Counter::MailboxPeak, backlog + 1);
        }
    }

    /// Copies between a peer's memory, `remote`, and ours: `local` from `offset` on.
    fn transfer(
        &mut self,
        direction: Direction,
        peer: PeerId,
        remote: &[Span],
        local: &IoBuffer,
        offset: usize,
    ) -> TransferStatus {
        let room = local.len().checked_sub(offset);
        let wanted = remote.iter().try_fold(0_u64, |sum, span| sum.checked_add(span.length));
        let (Some(room), Some(wanted)) = (room, wanted) else { return TransferStatus::Failed };
        if wanted > room as u64 {
            return TransferStatus::Failed;
        }
        // Made now if need be.
        self.connection(peer);
        let connection = self.peers.get_mut(peer.0 as usize).and_then(|peer| peer.connection.as_mut());
        let Some(connection) = connection else { return TransferStatus::Unreachable };
        let Some(memory) = connection.memory() else { return TransferStatus::Unreachable };
        let (pid, spans) = (memory.pid(), local.spans_of(offset, wanted as usize));
        // SAFETY: the spans are parts of an `IoBuffer`, whose maker promised that memory for reading and, where
        // `Link` has it by `&mut`, for writing.
        let copied = unsafe {
            match direction {
                Direction::Read => self.copier.read(memory, spans, remote),
                Direction::Write => self.copier.write(memory, spans, remote),
            }
        };
        match copied {
            Ok(()) => TransferStatus::Done,
            Err(TransferError::Fault(error)) => {
                log::line(Level::Warn, || format!("bulk transfer of {wanted} bytes with pid {pid}: {error}"));
                TransferStatus::Failed
            }
            Err(TransferError::Unreachable(error)) => {
                // Who cannot be written to may be readable all the same.
                if direction == Direction::Read || memory.is_writable() {
                    connection.give_up_memory();
                    log::line(Level::Info, || {
                        format!(
                            "the memory of pid {pid} cannot be reached any more, its bulk data goes another way: {error}"
                        )
                    });
                }
                TransferStatus::Unreachable
            }
        }
    }

    /// Why no new peer can connect after our file was removed.
    fn why_nobody_connects(&self) -> String {
        let path = self.segment.path().display();
        format!(
            "the segment {path} of this process was removed while it runs: keep systemd's RemoveIPC and epilogues of jobs \
             from clearing the folder under jobs that run"
        )
    }
}

/// Whether an endpoint with this address counts slots as one with our settings does. Errors name the first parameter that
/// differs, with both values.
pub fn check_settings(flow: &Config, address: &Address) -> Result<(), LinkError> {
    match Settings::of(flow).difference(&address.settings) {
        None => Ok(()),
        Some(Difference { parameter, ours, theirs }) => {
            Err(LinkError::Disagreement { peer: *address, parameter, ours, theirs })
        }
    }
}

/// Which way bulk data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// From the peer's memory to ours.
    Read,
    /// From ours to the peer's.
    Write,
}

impl Link for ShmLink {
    type Buffer = IoBuffer;

    #[inline]
    fn write(&mut self, to: PeerId, packet: &Packet) -> Result<(), WriteError> {
        self.write_many(to, 1, |place| *place = *packet).1
    }

    #[inline]
    fn write_many(&mut self, to: PeerId, count: u32, next: impl FnMut(&mut Packet)) -> (u32, Result<(), WriteError>) {
        if !matches!(self.peers.get(to.0 as usize), Some(Peer { connection: Some(_), .. }))
            && let Err(why) = self.connect(to)
        {
            return (0, Err(why));
        }
        let Some(Peer { connection: Some(connection), .. }) = self.peers.get_mut(to.0 as usize) else {
            return (0, Err(WriteError::Full));
        };
        let (written, wake) = connection.write_many(count, next);
        if wake {
            self.wake_peer(to);
        }
        (written, if written == count { Ok(()) } else { Err(WriteError::Full) })
    }

    #[inline]
    fn retrieve(&mut self) -> Option<Packet> {
        if self.is_armed {
            self.disarm();
        }
        for _ in 0..DROPS_PER_POLL {
            let Some(packet) = self.reader.retrieve() else {
                self.burst = 0;
                return None;
            };
            self.burst = self.burst.wrapping_add(1);
            if self.burst % BURST_AGAIN == BURST {
                self.sample_fill();
            }
            let source = packet.header.source();
            if self.peers.get(source.0 as usize).is_some_and(|peer| peer.standing.is_heard()) || self.admit(source) {
                return Some(packet);
            }
        }
        None
    }

    fn bookkeeping_bytes(flow: &Config) -> usize {
        segment::bookkeeping_bytes(flow.peers)
    }

    fn tell_window(&mut self, bytes: u32) {
        self.segment.header().window.store(u64::from(bytes), Ordering::Relaxed);
    }

    fn window(&mut self, peer: PeerId) -> Option<u32> {
        match self.connection(peer) {
            Some(connection) => connection.window(),
            None => self.is_hindered(peer).then_some(0),
        }
    }

    fn reaches_memory(&mut self, peer: PeerId) -> bool {
        self.connection(peer).is_some_and(|connection| connection.memory().is_some())
    }

    fn read_peer(
        &mut self,
        _: TransferId,
        peer: PeerId,
        from: &[Span],
        into: &mut IoBuffer,
        offset: usize,
    ) -> TransferStatus {
        let begun = clock::now();
        let status = self.transfer(Direction::Read, peer, from, into, offset);
        self.time_reading += clock::now().since(begun);
        status
    }

    fn write_peer(
        &mut self,
        _: TransferId,
        peer: PeerId,
        to: &[Span],
        from: &IoBuffer,
        offset: usize,
    ) -> TransferStatus {
        self.transfer(Direction::Write, peer, to, from, offset)
    }

    fn time_reading(&self) -> Duration {
        self.time_reading
    }

    fn direct_from(&self) -> usize {
        if self.bounce_buffers.count() == 0 { 0 } else { DIRECT_FROM }
    }

    fn stages(&self) -> Stages {
        Stages { count: self.bounce_buffers.count(), bytes: BOUNCE_BUFFER_BYTES }
    }

    fn fill_stage(&mut self, bounce_buffer: usize, from: &IoBuffer, offset: usize, length: usize) {
        self.bounce_buffers.fill(bounce_buffer, from, offset, length);
    }

    fn drain_stage(
        &mut self,
        peer: PeerId,
        bounce_buffer: usize,
        into: &mut IoBuffer,
        offset: usize,
        length: usize,
    ) -> bool {
        self.connection(peer).is_some_and(|connection| connection.drain_stage(bounce_buffer, into, offset, length))
    }

    fn poll_transfer(&mut self) -> Option<(TransferId, TransferStatus)> {
        // Every transfer ends before its call returns.
        None
    }

    fn find_region(&mut self, peer: PeerId, key: u64, offset: u64, length: u64, access: Access) -> Option<Span> {
        let connection = self.connection(peer)?;
        let memory = connection.memory()?;
        if access == Access::Write && !memory.is_writable() {
            return None;
        }
        connection.find_region(key, offset, length, access)
    }

    fn tell_closing(&mut self) {
        // The parent of a forked child that closes goes on.
        if self.is_forked() {
            return;
        }
        self.segment.header().closing.store(1, Ordering::Release);
    }

    #[inline]
    fn poll_closing(&mut self) -> Option<PeerId> {
        if self.vigil.has_closings() { self.next_closing() } else { None }
    }

    #[inline]
    fn poll_departure(&mut self) -> Option<Departure> {
        self.polls = self.polls.wrapping_add(1);
        if self.polls.is_multiple_of(POLLS_PER_LOOK) {
            self.watch();
        }
        if self.vigil.has_departures() { self.next_departure() } else { None }
    }

    #[cold]
    fn quarantine(&mut self, peer: PeerId) -> String {
        let Some(known) = self.peers.get_mut(peer.0 as usize) else { return format!("peer {}", peer.0) };
        known.standing = Standing::Quarantined;
        known.lost = Some("it broke the protocol".into());
        let name = known.address.map_or_else(|| format!("peer {}", peer.0), |address| vigil::describe(&address));
        log::line(Level::Warn, || format!("{name} broke the protocol: it is quarantined, and counts as lost"));
        // It has to learn that from us: our lock, which goes with the connection, would be taken for our death.
        self.end_connection(peer, false);
        name
    }

    fn release(&mut self, peer: PeerId) {
        let Some(known) = self.peers.get_mut(peer.0 as usize) else { return };
        if known.standing == Standing::Departed && (known.is_silent || !self.table.may_write(peer)) {
            return self.forget(peer);
        }
        // It may write, or is not reported yet: its place must not go to another while its packets may still come.
        known.standing = Standing::Shunned;
        if known.lost.is_none() {
            known.lost = Some("it broke the protocol".into());
        }
        self.end_connection(peer, false);
        self.table.sever(peer);
    }

    #[inline]
    fn counters(&self) -> &Counters {
        self.stats.counters()
    }
}

impl ShmLink {
    /// Whether this is a copy in a child that was forked from the owner.
    fn is_forked(&self) -> bool {
        std::process::id() != self.address().identity.pid
    }

    /// Gives the place of a peer away that will write no more, or never has.
    fn forget(&mut self, peer: PeerId) {
        let known = std::mem::take(&mut self.peers[peer.0 as usize]);
        if let Some(address) = known.address {
            self.by_address.remove(&address);
            if self.is_new_process(&address) {
                self.patience.remove_process();
            }
        }
        self.peers[peer.0 as usize] =
            Peer { standing: Standing::Released, is_silent: known.is_silent, ..Peer::default() };
        self.released.push(peer);
        self.give_places_away();
    }

    /// Gives the places of those away that have been forgotten, or does so at a later call if somebody holds the lock.
    fn give_places_away(&mut self) {
        if self.released.is_empty() {
            return;
        }
        // Under the lock, because who had not connected may do so now: then the entry stays, and is a new peer's.
        let Ok(_held) = self.segment.lock_table(Duration::ZERO) else { return };
        for peer in self.released.drain(..) {
            let known = &mut self.peers[peer.0 as usize];
            if known.standing != Standing::Released {
                continue;
            }
            if known.is_silent || !self.table.may_write(peer) {
                self.table.free(peer);
            }
            *known = Peer::default();
        }
    }

    /// Drops our connection to a peer, if there is one, and tells the peer that we will write no more.
    fn end_connection(&mut self, peer: PeerId, orderly: bool) {
        if let Some(connection) = self.peers[peer.0 as usize].connection.take() {
            connection.leave(orderly);
        }
    }
}

impl Drop for ShmLink {
    fn drop(&mut self) {
        // A forked child must not close its parent's connections.
        if self.is_forked() {
            return;
        }
        self.peers.iter().filter_map(|peer| peer.connection.as_ref()).for_each(|connection| connection.leave(true));
    }
}
