//! One endpoint whose peers are mirrors, and an allocator that counts what it takes: what silent peers cost.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::VecDeque;
use std::slice;
use std::time::Duration;
use tidegate_message::flow::{Buffers, Config, Packet, PacketKind, PeerId, Placement, SchemeName};
use tidegate_message::{
    Arrival, Bounce, Buffer, Carry, Closing, Context, Counters, Departure, Endpoint, EndpointConfig, Fill, Instant,
    Link, LinkEvent, MatchFlags, Medium, PLACES_AHEAD, PeerMemory, PeerNames, Receive, Send, SenderWrites, Source,
    Space, Span, Target, WriteError,
};

thread_local! {
    /// Bytes on the heap that this thread has allocated and not freed.
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, which counts.
pub struct Counting;

/// Bytes that this thread has on the heap.
pub fn live_bytes() -> isize {
    LIVE.get()
}

fn count(bytes: isize) {
    LIVE.set(LIVE.get() + bytes);
}

// SAFETY: everything is left to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promises are the system's.
        unsafe { System.dealloc(block, layout) }
    }
}

/// So many zeros.
#[derive(Debug)]
pub struct Zeros(pub usize);

impl Buffer for Zeros {
    fn len(&self) -> usize {
        self.0
    }
    fn read(&self, _: usize, into: &mut [u8]) {
        into.fill(0);
    }
    fn write(&mut self, _: usize, _: &[u8]) {}
    fn spans(&self) -> impl Iterator<Item = Span> {
        std::iter::empty()
    }
    fn slice(&self, _: usize, length: usize) -> Self {
        Zeros(length)
    }
    fn copied(&self) -> Self {
        Zeros(self.0)
    }
}

/// Every peer is our mirror: whatever we write to it comes back from it. Keeps nothing of peers.
#[derive(Debug)]
pub struct Mirror {
    packets: VecDeque<Packet>,
    /// Peers that have left, of which the endpoint has not been told.
    pub leaving: VecDeque<PeerId>,
    /// How many places the endpoint has given back.
    pub released: usize,
    /// How many of the open places are taken.
    pub taken: u32,
    /// How many places are open, and how many may be.
    pub places: (u32, u32),
    /// How many places were open when we said last that few are free.
    pub told_low: u32,
    /// The first newcomer, and the window that newcomers are told.
    newcomers: Option<(PeerId, u32)>,
    counters: Box<Counters>,
}

impl Medium for Mirror {
    type Buffer = Zeros;
}

impl PeerMemory for Mirror {}
impl Bounce for Mirror {}
impl Carry for Mirror {}
impl Closing for Mirror {}
impl PeerNames for Mirror {}
impl SenderWrites for Mirror {}

impl Link for Mirror {
    fn write(&mut self, to: PeerId, count: u32, mut fill: impl Fill) -> Result<u32, WriteError> {
        for _ in 0..count {
            let mut packet = Packet::new(PacketKind::Data, 0, 0);
            fill.fill(slice::from_mut(&mut packet), Placement::default());
            packet.header = packet.header.published(1, to);
            self.packets.push_back(packet);
        }
        Ok(count)
    }

    fn retrieve(&mut self) -> Option<Arrival> {
        let Some(packet) = self.packets.pop_front() else {
            // Only what is the endpoint's counts.
            self.packets.shrink_to(256);
            return None;
        };
        Some(Arrival { source: packet.header.source(), packet })
    }

    fn poll_event(&mut self) -> Option<LinkEvent> {
        let (open, most) = self.places;
        if open < most.min(self.taken + PLACES_AHEAD) && self.told_low != open {
            self.told_low = open;
            return Some(LinkEvent::PlacesLow);
        }
        let peer = self.leaving.pop_front()?;
        Some(LinkEvent::Departed(Departure { peer, orderly: true, name: "a mirror".to_owned() }))
    }

    fn quarantine(&mut self, _: PeerId) -> String {
        "a mirror".to_owned()
    }

    fn release(&mut self, _: PeerId) {
        self.released += 1;
    }

    fn tell_newcomers(&mut self, first: PeerId, told: u32) {
        self.newcomers = Some((first, told));
    }

    fn open_places(&mut self, open: u32, most: u32) {
        self.places = (open, most);
    }

    fn window(&mut self, peer: PeerId) -> Option<u32> {
        self.newcomers.filter(|(first, _)| peer >= *first).map(|(_, told)| told)
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// An endpoint for so many peers.
pub fn endpoint(scheme: SchemeName, peers: u32) -> Endpoint<Mirror> {
    // With the default of 100 each, so many peers would need more memory than there is.
    let buffers = Buffers { per_connection: 1, per_connection_most: 1, ..Buffers::of(scheme) };
    with_flow(Config { piggyback: true, buffers, ..Config::new(scheme, peers, 8, 2) }, 4 << 30)
}

/// One that is configured so, with so much receive memory.
pub fn with_flow(flow: Config, receive_memory: usize) -> Endpoint<Mirror> {
    let config = EndpointConfig {
        flow,
        eager_bytes: 2048,
        operations: 1 << 12,
        receive_memory,
        patience: Duration::ZERO,
        packets_per_progress: 64,
        bulk_bytes_per_progress: 1 << 16,
    };
    let (packets, leaving) = (VecDeque::with_capacity(256), VecDeque::new());
    let (released, taken, told_low, places, newcomers) = (0, 0, 0, (0, 0), None);
    let link = Mirror { packets, leaving, released, taken, places, told_low, newcomers, counters: Box::default() };
    Endpoint::new(config, link).expect("a legal configuration")
}

/// Sends messages of all these lengths to a peer, and receives them from it: some are expected, some are not.
pub fn talk(endpoint: &mut Endpoint<Mirror>, peer: PeerId) {
    let mut context = 0;
    for length in [8, 8, 8, 1000, 100_000] {
        for is_expected in [false, true] {
            let (send, receive) = (Context(context), Context(context + 1));
            context += 2;
            let space = Space::Tagged { tag: length as u64, ignore: 0 };
            let (from, buffer, flags) = (Source::From(Target::Peer(peer)), Zeros(length), MatchFlags::default());
            let mut receive = Some(Receive { from, space, buffer, context: receive, multi: None, flags, report: true });
            if is_expected && let Some(receive) = receive.take() {
                endpoint.receive(receive).expect("there is room");
            }
            let (to, buffer) = (Target::Peer(peer), Zeros(length));
            let send =
                Send { to, space, buffer, data: None, context: send, inject: false, delivery: false, report: true };
            endpoint.send(send).expect("there is room");
            while endpoint.progress(Instant::default()) {}
            if let Some(receive) = receive {
                endpoint.receive(receive).expect("there is room");
            }
            while endpoint.progress(Instant::default()) {}
            let mut ended: Vec<_> = std::iter::from_fn(|| endpoint.poll_completion()).collect();
            ended.sort_by_key(|completion| completion.context.0);
            let ended: Vec<_> = ended.iter().map(|completion| (completion.context.0, &completion.result)).collect();
            assert_eq!(ended, [(context - 2, &Ok(())), (context - 1, &Ok(()))], "{length} bytes, {is_expected}");
        }
    }
}
