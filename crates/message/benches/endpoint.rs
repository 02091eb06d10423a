//! What the endpoint itself costs per message, without any shared memory: two endpoints in one thread over two queues.
//!
//! `cargo bench -p tidegate-message`. Printed are nanoseconds per message, both sides together; the packets per message
//! are asserted against P §3 (16 bytes of header, 56 bytes per packet). The last table is what messages and cancels
//! cost while many operations are outstanding.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::hint::black_box;
use std::rc::Rc;
use std::slice;
use std::time::{Duration, Instant};
use tidegate_message::flow::{Config, Packet, PacketKind, Placement, SchemeName};
use tidegate_message::{
    Access, Arrival, AtomicKind, AtomicOp, AtomicRequest, AtomicType, Bounce, Buffer, Carry, Closing, Context, Counter,
    Counters, Endpoint, EndpointConfig, Fill, Link, LinkEvent, MatchFlags, Medium, MultiReceive, PeerId, PeerMemory,
    PeerNames, ReadRequest, Receive, RemoteTarget, Send, SenderWrites, Source, Space, Span, Target, WriteError,
    WriteRequest,
};

/// Messages per measurement.
const MESSAGES: usize = 200_000;
/// Messages on their way at once.
const WINDOW: usize = 16;
const HEADER_BYTES: usize = 16;
const PAYLOAD_BYTES: usize = 56;
const PEER: PeerId = PeerId(0);
/// No time passes for the endpoints.
const NOW: tidegate_message::Instant = tidegate_message::Instant::from_nanos(0);

/// Part of one vector.
#[derive(Clone, Debug)]
struct Memory {
    bytes: Rc<RefCell<Vec<u8>>>,
    start: usize,
    length: usize,
}

impl Memory {
    fn new(length: usize) -> Self {
        Memory { bytes: Rc::new(RefCell::new(vec![1; length])), start: 0, length }
    }
}

impl Buffer for Memory {
    fn len(&self) -> usize {
        self.length
    }
    fn read(&self, offset: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.bytes.borrow()[self.start + offset..][..into.len()]);
    }
    fn write(&mut self, offset: usize, from: &[u8]) {
        self.bytes.borrow_mut()[self.start + offset..][..from.len()].copy_from_slice(from);
    }
    fn spans(&self) -> impl Iterator<Item = Span> {
        std::iter::once(Span { address: self.start as u64, length: self.length as u64 })
    }
    fn slice(&self, offset: usize, length: usize) -> Self {
        Memory { bytes: self.bytes.clone(), start: self.start + offset, length }
    }
    fn copied(&self) -> Self {
        let bytes = self.bytes.borrow()[self.start..self.start + self.length].to_vec();
        Memory { bytes: Rc::new(RefCell::new(bytes)), start: 0, length: self.length }
    }
}

type Queue = Rc<RefCell<VecDeque<Packet>>>;

/// One end of the pair. Only packets: there is no memory to reach.
#[derive(Debug)]
struct PairLink {
    mine: Queue,
    theirs: Queue,
    counters: Counters,
}

impl Medium for PairLink {
    type Buffer = Memory;
}

impl PeerMemory for PairLink {}
impl Bounce for PairLink {}
impl Carry for PairLink {}
impl Closing for PairLink {}
impl PeerNames for PairLink {}
impl SenderWrites for PairLink {}

impl Link for PairLink {
    #[inline]
    fn write(&mut self, _: PeerId, count: u32, mut fill: impl Fill) -> Result<u32, WriteError> {
        for _ in 0..count {
            let mut packet = Packet::new(PacketKind::Data, 0, 0);
            fill.fill(slice::from_mut(&mut packet), Placement::default());
            packet.header = packet.header.published(1, PEER);
            self.theirs.borrow_mut().push_back(packet);
        }
        Ok(count)
    }

    #[inline]
    fn retrieve(&mut self) -> Option<Arrival> {
        let packet = self.mine.borrow_mut().pop_front()?;
        Some(Arrival { source: packet.header.source(), packet })
    }

    fn poll_event(&mut self) -> Option<LinkEvent> {
        None
    }

    fn quarantine(&mut self, _: PeerId) -> String {
        unreachable!("both keep the protocol")
    }

    fn release(&mut self, _: PeerId) {}

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

struct Pair {
    sender: Endpoint<PairLink>,
    receiver: Endpoint<PairLink>,
    buffer: Memory,
}

impl Pair {
    fn new(scheme: SchemeName, piggyback: bool, size: usize) -> Self {
        let flow = Config { piggyback, ..Config::new(scheme, 1, 64 * 37, 2) };
        let config = EndpointConfig {
            flow,
            eager_bytes: 2048,
            operations: 1 << 20,
            receive_memory: 64 << 20,
            patience: Duration::ZERO,
            packets_per_progress: 64,
            bulk_bytes_per_progress: 1 << 20,
        };
        let (there, back) = (Queue::default(), Queue::default());
        let end = |mine: &Queue, theirs: &Queue| {
            let link = PairLink { mine: mine.clone(), theirs: theirs.clone(), counters: Counters::default() };
            Endpoint::new(config.clone(), link).expect("a legal configuration")
        };
        Pair { sender: end(&back, &there), receiver: end(&there, &back), buffer: Memory::new(size) }
    }

    fn post(&mut self, tag: u64) {
        let (buffer, space) = (self.buffer.clone(), Space::Tagged { tag, ignore: 0 });
        let (from, context, flags) = (Source::From(Target::Peer(PEER)), Context(0), MatchFlags::default());
        let receive = Receive { from, space, buffer, context, multi: None, flags, report: true };
        self.receiver.receive(receive).expect("room");
    }

    fn send(&mut self, tag: u64) {
        let (buffer, space) = (self.buffer.clone(), Space::Tagged { tag, ignore: 0 });
        let (to, data, context) = (Target::Peer(PEER), None, Context(0));
        let send = Send { to, space, buffer, data, context, inject: false, delivery: false, report: true };
        self.sender.send(send).expect("room");
    }

    fn drain(&mut self) -> usize {
        while self.receiver.progress(NOW) | self.sender.progress(NOW) {}
        while self.sender.poll_completion().is_some() {}
        std::iter::from_fn(|| black_box(self.receiver.poll_completion())).count()
    }
}

/// Nanoseconds per message of `run`, which moves [`WINDOW`] messages and says how many arrived.
fn measure(mut run: impl FnMut() -> usize) -> f64 {
    run();
    let start = Instant::now();
    let mut arrived = 0;
    while arrived < MESSAGES {
        arrived += run();
    }
    start.elapsed().as_nanos() as f64 / arrived as f64
}

fn expected(pair: &mut Pair) -> usize {
    (0..WINDOW).for_each(|_| pair.post(7));
    (0..WINDOW).for_each(|_| pair.send(7));
    pair.drain()
}

fn unexpected(pair: &mut Pair) -> usize {
    (0..WINDOW).for_each(|_| pair.send(7));
    let early = pair.drain();
    (0..WINDOW).for_each(|_| pair.post(7));
    early + pair.drain()
}

/// Key of the region that remote operations go to.
const KEY: u64 = 1;

/// A remote operation on eight bytes of the receiver's memory.
#[derive(Clone, Copy, Debug)]
enum Remote {
    Write,
    Read,
    FetchAdd,
}

fn remote(pair: &mut Pair, kind: Remote) {
    let (target, context) = (RemoteTarget { to: Target::Peer(PEER), key: KEY, offset: 0 }, Context(0));
    let buffer = pair.buffer.clone();
    match kind {
        Remote::Write => {
            let to = vec![(target, buffer.len() as u64)];
            pair.sender.write(WriteRequest { to, buffer, data: None, context, inject: false, report: true })
        }
        Remote::Read => {
            let from = vec![(target, buffer.len() as u64)];
            pair.sender.read(ReadRequest { from, buffer, context, report: true })
        }
        Remote::FetchAdd => {
            let (to, datatype, op) = (vec![(target, 1)], AtomicType::Uint64, AtomicOp::Sum);
            let kind = AtomicKind::Fetch { result: buffer.clone() };
            pair.sender.atomic(AtomicRequest { to, datatype, op, operand: buffer, kind, context, report: true })
        }
    }
    .expect("room");
}

/// Nanoseconds per remote operation, `outstanding` of them at a time: it is requested and answered by message. Each
/// side has a turn of progress until it finds nothing, as two processes on one core have.
fn measure_remote(kind: Remote, outstanding: usize) -> f64 {
    let mut pair = Pair::new(SchemeName::Dynamic, true, 8);
    pair.receiver.register(KEY, Memory::new(8), &[Access::Read, Access::Write]);
    measure(|| {
        (0..outstanding).for_each(|_| remote(&mut pair, kind));
        let mut ended = 0;
        while ended < outstanding {
            while pair.receiver.progress(NOW) {}
            while pair.sender.progress(NOW) {}
            ended += std::iter::from_fn(|| black_box(pair.sender.poll_completion())).count();
        }
        ended
    })
}

fn assert_packets(pair: &Pair, size: usize) {
    let counters = pair.sender.link().counters();
    let messages = counters.get(Counter::MessagesEager);
    let packets = messages * (size + HEADER_BYTES).div_ceil(PAYLOAD_BYTES) as u64;
    let control = [Counter::CreditPackets, Counter::ReturnRequests, Counter::ReturnResponses];
    let control: u64 = control.into_iter().map(|counter| counters.get(counter)).sum();
    assert_eq!(counters.get(Counter::PacketsSent), packets + control, "packets of {messages} messages of {size} bytes");
}

fn main() {
    println!("{:<12} {:>6} {:>8} {:>12} {:>12}", "scheme", "bytes", "packets", "expected ns", "unexpected ns");
    let schemes = [(SchemeName::None, false), (SchemeName::Static, true), (SchemeName::Dynamic, true)];
    for (scheme, piggyback) in schemes {
        for size in [0, 8, 40, 256, 2048] {
            let mut pair = Pair::new(scheme, piggyback, size);
            let (ready, late) = (measure(|| expected(&mut pair)), measure(|| unexpected(&mut pair)));
            assert_packets(&pair, size);
            let packets = (size + HEADER_BYTES).div_ceil(PAYLOAD_BYTES);
            println!("{:<12} {size:>6} {packets:>8} {ready:>12.1} {late:>12.1}", format!("{scheme:?}").to_lowercase());
        }
    }
    print_outstanding();
    print_remote();
}

/// Times of which the least counts: the first pays the system for memory, and others were disturbed.
const ROUNDS: usize = 5;
/// How many operations are outstanding.
const OUTSTANDING: [u64; 3] = [500, 5_000, 20_000];
/// The part of a tag that `MPI_ANY_TAG` ignores.
const TAG_BITS: u64 = (1 << 31) - 1;
const EXACT: Source = Source::From(Target::Peer(PEER));

/// What is outstanding, one row of the table.
struct Kind {
    name: &'static str,
    bytes: usize,
    /// Whether messages come before their receives.
    is_unexpected: bool,
    /// Whether what was posted last is wanted first.
    is_reverse: bool,
    /// The tag of the message with this number.
    tag: fn(u64) -> u64,
    /// What the receive with this number accepts: source, tag, ignored bits.
    wanted: fn(u64) -> (Source, u64, u64),
    is_multi: bool,
}

const EXACT_TAGS: Kind = Kind {
    name: "posted, by tag, in order",
    bytes: 8,
    is_unexpected: false,
    is_reverse: false,
    tag: |n| n,
    wanted: |n| (EXACT, n, 0),
    is_multi: false,
};
const REVERSE: Kind = Kind { name: "posted, by tag, in reverse", is_reverse: true, ..EXACT_TAGS };
const LONG: Kind = Kind { name: "long (3,000 bytes), in order", bytes: 3000, ..EXACT_TAGS };

const KINDS: [Kind; 11] = [
    EXACT_TAGS,
    REVERSE,
    Kind { name: "posted, any source, in reverse", wanted: |n| (Source::Any, n, 0), ..REVERSE },
    Kind {
        name: "posted, any tag of many contexts, in reverse",
        tag: |n| n << 32 | 5,
        wanted: |n| (EXACT, n << 32, TAG_BITS),
        ..REVERSE
    },
    Kind {
        name: "posted, 8 masks, half from any source, in reverse",
        tag: |n| n << 8,
        wanted: |n| (if n % 2 == 0 { EXACT } else { Source::Any }, n << 8, n / 2 % 8),
        ..REVERSE
    },
    Kind { name: "posted, any source and any tag", wanted: |_| (Source::Any, 0, u64::MAX), ..EXACT_TAGS },
    Kind { name: "posted multi-receives, by tag, in reverse", is_multi: true, ..REVERSE },
    Kind { name: "unexpected, by tag, in reverse", is_unexpected: true, ..REVERSE },
    Kind {
        name: "unexpected, any source, in reverse",
        is_unexpected: true,
        wanted: |n| (Source::Any, n, 0),
        ..REVERSE
    },
    LONG,
    Kind { name: "long (3,000 bytes), in reverse", is_reverse: true, ..LONG },
];

impl Kind {
    fn post_all(&self, pair: &mut Pair, count: u64) {
        for n in (0..count).map(|n| if self.is_reverse { count - 1 - n } else { n }) {
            let (from, tag, ignore) = (self.wanted)(n);
            let (space, context, flags) = (Space::Tagged { tag, ignore }, Context(n as usize), MatchFlags::default());
            let multi = self.is_multi.then_some(MultiReceive { smallest: self.bytes });
            let receive = Receive { from, space, buffer: pair.buffer.clone(), context, multi, flags, report: true };
            pair.receiver.receive(receive).expect("room");
        }
    }

    /// Nanoseconds per message, with `count` of them outstanding at once.
    fn measure(&self, count: u64) -> f64 {
        let mut pair = Pair::new(SchemeName::Dynamic, true, self.bytes);
        least_of(count, || {
            let start = Instant::now();
            if !self.is_unexpected {
                self.post_all(&mut pair, count);
            }
            (0..count).for_each(|n| pair.send((self.tag)(n)));
            let mut arrived = pair.drain();
            if self.is_unexpected {
                self.post_all(&mut pair, count);
                arrived += pair.drain();
            }
            assert_eq!(arrived as u64, count, "{}", self.name);
            start
        })
    }
}

/// Nanoseconds for each of `count`, at best, since the moment that `run` returns.
fn least_of(count: u64, mut run: impl FnMut() -> Instant) -> f64 {
    let once = |_| run().elapsed().as_nanos() as f64 / count as f64;
    (0..ROUNDS).map(once).fold(f64::INFINITY, f64::min)
}

fn measure_cancels(count: u64) -> f64 {
    let mut pair = Pair::new(SchemeName::Dynamic, true, 8);
    least_of(count, || {
        while pair.receiver.poll_completion().is_some() {}
        EXACT_TAGS.post_all(&mut pair, count);
        let start = Instant::now();
        for n in (0..count).rev() {
            assert!(pair.receiver.cancel(Context(n as usize)));
        }
        start
    })
}

/// What each operation costs while many are outstanding: the worst order that there is for a list that is searched from
/// its start.
fn print_outstanding() {
    println!("\n{:<52} {:>9} {:>9} {:>9}", "outstanding: ns each", OUTSTANDING[0], OUTSTANDING[1], OUTSTANDING[2]);
    let print = |name, [few, more, many]: [f64; 3]| println!("{name:<52} {few:>9.0} {more:>9.0} {many:>9.0}");
    for kind in KINDS {
        print(kind.name, OUTSTANDING.map(|count| kind.measure(count)));
    }
    print("cancel, last first", OUTSTANDING.map(measure_cancels));
}

/// What a remote operation by message costs, as many as this outstanding: beyond the account of unanswered requests it
/// is no more.
fn print_remote() {
    println!("\n{:<40} {:>12} {:>12} {:>12}", "remote operations outstanding", "write ns", "read ns", "fetch ns");
    for outstanding in [1, 16, 64, 256, 1024, 4096] {
        let [write, read, fetch] =
            [Remote::Write, Remote::Read, Remote::FetchAdd].map(|kind| measure_remote(kind, outstanding));
        println!("{outstanding:<40} {write:>12.1} {read:>12.1} {fetch:>12.1}");
    }
}
