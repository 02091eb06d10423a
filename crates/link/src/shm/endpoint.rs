//! The endpoint's life and its [`Link`]: packets are written and retrieved, bulk data is copied, an idle process waits.

use super::bulk;
use super::config::ShmConfig;
use super::connect_retry::{Announcer, ConnectRetry};
use super::connection::Connection;
use super::error::LinkError;
use super::filling::Filling;
use super::layout;
use super::life::Here;
use super::mailbox::{PATIENCE, Pool, SlotPool};
use super::pieces::PieceCopier;
use super::posting::{pool_of, reader_of};
use super::reclaiming::{Effort, clear_away};
use super::segment::OwnSegment;
use super::send_buffers::SendBuffers;
use super::spin::SpinPolicy;
use super::state::{Idling, Monitor, Peer, PeerState, ShmLink, describe};
use super::vacant::Vacant;
use super::wait_meter::WaitMeter;
use super::wake::{Alarm, CHECK, Waker};
use crate::log::{self, Level, print_line};
use crate::memory::IoBuffer;
use crate::records::Records;
use crate::stats::{BulkState, StatsConfig, StatsPage};
use crate::trouble;
use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;
use tidegate_flow::{Config, Header, PAYLOAD_BYTES, Packet, PeerId, Posting};
use tidegate_message::{
    Arrival, Closing, Counter, Counters, Fill, Instant, Link, LinkEvent, Medium, PeerNames, SenderWrites, WriteError,
};

/// Packets in a row that make a burst.
const BURST: u32 = 8;
/// Packets in a row after which the fill of the mailbox is looked at again.
const BURST_AGAIN: u32 = 256;
/// Packets without a sender that one poll drops at most.
const DROPS_PER_POLL: u32 = 64;
/// Calls of `poll_event` between two looks at the clock.
const POLLS_PER_LOOK: u32 = 1024;

/// The page of an endpoint in its folder. One for which there is no room is no reason to end a job: nobody sees its
/// counters then, which is said.
fn page_of_counters(config: &StatsConfig, flow: &Config, endpoint: u64) -> Result<StatsPage, LinkError> {
    let action = || format!("creating a page of counters in {} (FI_TIDEGATE_STATS_DIR)", config.dir.display());
    match StatsPage::create(config, flow, endpoint) {
        Err(error) if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            let text = format!("{}: {error}: this process shows no counters", action());
            print_line(&text);
            // There may be room for a line.
            let _ = trouble::leave(&config.dir, &text);
            Ok(StatsPage::private())
        }
        created => created.map_err(|error| LinkError::system(action(), error)),
    }
}

impl ShmConfig {
    /// Bytes that the segment of such an endpoint takes in `/dev/shm` at most, once all peers that have places from the
    /// start have talked and all send buffers are in use. `None`: flow control refuses the configuration.
    pub fn segment_bytes(&self) -> Option<u64> {
        let regions = self.flow.regions().ok()?;
        let (bounce_buffers, send_buffers) = self.buffers();
        let (peers, slots) = (self.flow.peers.into(), regions.mailbox.max(1).into());
        let layout = layout::Layout::of(peers, slots, bounce_buffers.into(), send_buffers.into())?;
        Some((layout.total() - layout::entry_bytes(self.flow.later as usize)) as u64)
    }
}

impl ShmLink {
    /// The first packets to a peer, or the first since its connection has ended.
    #[inline(never)]
    fn write_first(&mut self, to: PeerId, count: u32, fill: impl Fill) -> Result<u32, WriteError> {
        self.connect(to)?;
        self.write(to, count, fill)
    }

    /// Creates the segment and reclaims those that dead processes left behind.
    pub fn new(config: ShmConfig) -> Result<ShmLink, LinkError> {
        let here = Here::find();
        clear_away(&config.directory, &here, Effort::BOUNDED);
        let buffers = config.buffers();
        let segment = OwnSegment::create(&config.directory, &here, &config.flow, buffers, config.wakes)?;
        let stats = match &config.stats {
            None => StatsPage::private(),
            Some(stats) => page_of_counters(stats, &config.flow, segment.address().tag())?,
        };
        // SAFETY: all five are fields of the value that owns the segment, are never handed out, and are not used in
        // `Drop` after the segment is gone.
        let (table, regions, mailbox) = unsafe { (segment.table(), segment.regions(), segment.mailbox()) };
        // SAFETY: see above.
        let (bounce_buffers, send_buffers) = unsafe { (segment.bounce_buffers(), segment.send_buffers()) };
        if config.bulk.may_be_direct() {
            bulk::permit();
        }
        segment.count(stats.counters());
        let pool = pool_of(&config.flow, &segment);
        let reader = reader_of(&config.flow, &segment, mailbox);
        let mut link = ShmLink {
            pool,
            reader,
            is_armed: false,
            burst: 0,
            polls: 0,
            spin: SpinPolicy::new(config.spin, stats.is_public()),
            peers: Vec::new(),
            roster: Vec::new(),
            vacant: Vacant::default(),
            processes: HashMap::new(),
            monitor: Monitor::default(),
            connect_retry: ConnectRetry::default(),
            place_retry: ConnectRetry::default(),
            is_table_busy: false,
            announcer: Announcer::default(),
            is_removed: false,
            by_address: HashMap::new(),
            released: Vec::new(),
            records: Records::default(),
            table,
            regions,
            bounce_buffers,
            filling: Filling::default(),
            send_buffers: SendBuffers::new(send_buffers),
            copier: bulk::Copier::default(),
            piece_copier: PieceCopier::default(),
            time_reading: Duration::ZERO,
            time_draining: Duration::ZERO,
            bulk: BulkState::Undecided,
            config,
            here,
            alarm: Alarm::default(),
            waker: None,
            stats,
            next_look: Instant::default(),
            is_look_due: false,
            idling: Idling::default(),
            wait_meter: WaitMeter::default(),
            wait_ends: None,
            wait_begins: None,
            segment,
        };
        link.stats.set_spin(link.spin.limit());
        if !link.config.bulk.may_be_direct() {
            link.note_bulk(Some("FI_TIDEGATE_BULK says so".into()));
        }
        Ok(link)
    }

    /// Where segments lie.
    pub fn directory(&self) -> &Path {
        &self.config.directory
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
        if let Some(name) = waker.name()
            && !self.is_forked()
        {
            self.segment.header().set_wake_name(name);
        }
        Ok(self.waker.insert(waker).descriptor())
    }

    /// Asks for a wake at the next packet. `true`: nothing has arrived so far, the caller may block on the descriptor.
    /// `false`: something has; call progress. Ends by itself at the next call of `retrieve`.
    pub fn arm(&mut self) -> bool {
        let Some(waker) = self.waker.as_ref().filter(|_| !self.is_forked()) else { return false };
        waker.stop();
        // While we sleep no sender gets slots that we have retrieved: it has to have them before.
        self.reader.slot_pool();
        self.is_armed = true;
        let armed = &self.segment.signals().armed.0;
        armed.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // Who left is known without a packet, so a departure must not wait for one either.
        let has_event = self.monitor.has_departures() || self.monitor.has_closings();
        if self.reader.is_ready() || has_event || self.reader.has_new_marks() {
            self.disarm();
            return false;
        }
        // Slots that are kept for a sender that does not come are to go to others.
        waker.start(if self.reader.may_revoke() { PATIENCE } else { CHECK });
        true
    }

    /// Ends what [`arm`](Self::arm) began, when the caller does not block after all.
    #[cold]
    pub fn disarm(&mut self) {
        self.is_armed = false;
        // The flag and the timer are also those of a forked child's parent, which may be asleep.
        if self.is_forked() {
            return;
        }
        self.segment.signals().armed.0.store(0, Ordering::Relaxed);
        if let Some(waker) = &self.waker {
            waker.stop();
        }
        let now = self.watch();
        self.wait_meter.wake_up(now);
    }

    /// How bulk data travels, for people and statistics: `direct`, `bounced`, `mailbox`, or `undecided` before the
    /// first connection.
    pub fn bulk(&self) -> &'static str {
        self.bulk.name()
    }

    #[cold]
    fn wake_peer(&mut self, peer: PeerId) {
        let connection = self.peers.get(peer.0 as usize).and_then(|peer| peer.connection.as_ref());
        if let Some(name) = connection.and_then(Connection::wake_name) {
            self.alarm.ring(name);
        }
    }

    /// Why nothing could be written to a peer. One that has slots to give, and sleeps, is woken.
    #[cold]
    #[inline(never)]
    fn why_nothing(&mut self, to: PeerId) -> WriteError {
        let connection = self.peers.get_mut(to.0 as usize).and_then(|peer| peer.connection.as_mut());
        let Some(connection) = connection else { return WriteError::Full };
        let (why, wake) = connection.why_nothing();
        if wake {
            self.wake_peer(to);
        }
        why
    }

    /// Raises the mark of most slots in use: those still to be retrieved, and the one just retrieved.
    #[cold]
    fn sample_fill(&mut self) {
        if let Ok(backlog) = self.reader.backlog() {
            self.stats.counters().raise(Counter::MailboxPeak, backlog + 1);
        }
    }
}

impl Medium for ShmLink {
    type Buffer = IoBuffer;
}

impl Closing for ShmLink {
    fn tell_closing(&mut self) {
        // The parent of a forked child that closes goes on.
        if self.is_forked() {
            return;
        }
        self.segment.header().closing.store(1, Ordering::Release);
    }
}

impl PeerNames for ShmLink {
    fn lacks_places(&self) -> bool {
        self.table.is_full()
    }

    fn begin_record(&mut self, peer: PeerId, record: PeerId) {
        if let Some(address) = self.address_of(peer) {
            self.records.insert(record, address);
        }
    }

    fn end_record(&mut self, record: PeerId) {
        self.records.remove(record);
    }

    fn identity(&self, peer: PeerId) -> Option<u64> {
        self.address_of(peer).map(|address| address.tag())
    }

    fn note_death(&mut self, identity: u64) {
        self.stats.note_death(identity);
    }
}

impl SenderWrites for ShmLink {}

impl Link for ShmLink {
    // With two callers in `Paths` the compiler would not inline it, and one of them is on the way of every message.
    #[inline(always)]
    fn write(&mut self, to: PeerId, count: u32, fill: impl Fill) -> Result<u32, WriteError> {
        let Some(Peer { connection: Some(connection), .. }) = self.peers.get_mut(to.0 as usize) else {
            return self.write_first(to, count, fill);
        };
        let (written, wake) = connection.write_many(count, fill);
        if written == 0 {
            return Err(self.why_nothing(to));
        }
        if wake {
            self.wake_peer(to);
        }
        Ok(written)
    }

    fn retrieve(&mut self) -> Option<Arrival> {
        let mut arrival = Arrival::none();
        self.retrieve_into(&mut arrival).then_some(arrival)
    }

    // A copy: a peer that breaks the protocol may write to the slot again while the packet is being handled.
    #[inline(always)]
    fn retrieve_into(&mut self, place: &mut Arrival) -> bool {
        if self.is_armed {
            self.disarm();
        }
        for _ in 0..DROPS_PER_POLL {
            if !self.reader.retrieve_into(&mut place.packet) {
                self.burst = 0;
                return false;
            }
            let packet = &place.packet;
            self.burst = self.burst.wrapping_add(1);
            if self.burst % BURST_AGAIN == BURST {
                self.sample_fill();
            }
            // A slot of a long packet without its first: its writer has died, or breaks the protocol.
            if packet.header.follows() {
                self.note_dropped(packet.header);
                continue;
            }
            let source = packet.header.source();
            if self.peers.get(source.0 as usize).is_some_and(|peer| peer.state.is_heard()) || self.admit(source) {
                place.source = source;
                return true;
            }
            self.note_dropped(packet.header);
        }
        false
    }

    fn retrieve_following(&mut self, first: &Header, into: &mut [[u8; PAYLOAD_BYTES]]) -> Option<Packet> {
        self.reader.retrieve_following(*first, into)
    }

    fn post(&mut self, posting: Posting) {
        self.post_buffers(posting);
    }

    fn bookkeeping_bytes(flow: &Config) -> usize {
        let pool = match flow.scheme.lends().is_pool_of_slots() {
            true => SlotPool::bytes_most(flow.at_opening()),
            false => 0,
        };
        layout::bookkeeping_bytes(flow.peers, flow.at_opening()) + pool
    }

    fn tell_window(&mut self, bytes: u32) {
        if !self.is_forked() {
            self.segment.header().window.store(u64::from(bytes), Ordering::Relaxed);
        }
    }

    fn tell_newcomers(&mut self, first: PeerId, bytes: u32) {
        if !self.is_forked() {
            let header = self.segment.header();
            header.window_of_newcomers.store(u64::from(bytes), Ordering::Relaxed);
            header.newcomers.store(u64::from(first.0) + 1, Ordering::Relaxed);
        }
    }

    fn open_places(&mut self, open: u32, most: u32) {
        if self.is_forked() {
            return;
        }
        let before = self.table.capacity();
        self.segment.open_places(open, most);
        let entries = |places| layout::entry_bytes(places) as u64;
        let (counters, now) = (self.stats.counters(), self.table.capacity());
        counters.sub(Counter::BookkeepingBytes, entries(before.saturating_sub(now)));
        counters.add(Counter::BookkeepingBytes, entries(now.saturating_sub(before)));
    }

    fn window(&mut self, peer: PeerId) -> Option<u32> {
        match self.connection(peer) {
            Some(connection) => connection.window(),
            None => self.is_hindered(peer).then_some(0),
        }
    }

    #[inline(always)]
    fn poll_event(&mut self) -> Option<LinkEvent> {
        self.polls = self.polls.wrapping_add(1);
        if self.polls.is_multiple_of(POLLS_PER_LOOK) {
            self.watch();
            if self.pool.as_mut().is_some_and(Pool::poll_limit_reached) {
                return Some(LinkEvent::LimitReached);
            }
            if self.is_low_on_places() {
                return Some(LinkEvent::PlacesLow);
            }
        }
        if self.monitor.has_closings() || self.monitor.has_departures() { self.next_event() } else { None }
    }

    #[inline(always)]
    fn is_quiet(&mut self) -> bool {
        let polls = self.polls.wrapping_add(1);
        let has_nothing = !self.is_armed && !self.reader.is_ready() && !polls.is_multiple_of(POLLS_PER_LOOK);
        let is_quiet = has_nothing && !self.monitor.has_closings() && !self.monitor.has_departures();
        if is_quiet {
            self.polls = polls;
        }
        is_quiet
    }

    #[cold]
    fn quarantine(&mut self, peer: PeerId) -> String {
        let Some(known) = self.peers.get_mut(peer.0 as usize) else { return format!("peer {}", peer.0) };
        known.state = PeerState::Quarantined;
        known.lost = Some("it broke the protocol".into());
        let name = known.address.map_or_else(|| format!("peer {}", peer.0), |address| describe(&address));
        log::line(Level::Warn, || format!("{name} broke the protocol: it is quarantined, and counts as lost"));
        // We have to tell it: our lock goes with the connection, and a free lock would be taken for our death.
        self.end_connection(peer, false);
        name
    }

    fn release(&mut self, peer: PeerId) {
        if self.is_forked() {
            return;
        }
        let Some(known) = self.peers.get_mut(peer.0 as usize) else { return };
        if known.state == PeerState::Departed && (known.is_silent || !self.table.may_write(peer)) {
            return self.forget(peer);
        }
        // It may write, or is not reported yet: its place must not go to another while its packets may still come.
        known.state = PeerState::Unwanted;
        if known.lost.is_none() {
            known.lost = Some("it has no place here".into());
        }
        self.end_connection(peer, false);
        self.table.sever(peer);
    }

    #[inline]
    fn counters(&self) -> &Counters {
        self.stats.counters()
    }
}
