//! What the endpoint itself costs per message, without any shared memory: two endpoints in one thread over two queues.
//!
//! `cargo bench -p tidegate-message`. Printed are nanoseconds per message, both sides together; the packets per message are
//! asserted against P §3 (16 bytes of header, 56 bytes per packet).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::hint::black_box;
use std::rc::Rc;
use std::time::Instant;
use tidegate_message::flow::{Config, Packet, SchemeName};
use tidegate_message::{
    Access, Buffer, Context, Counter, Counters, Departure, Endpoint, EndpointConfig, Link, MatchFlags, PeerId, Receive,
    Send, Source, Space, Span, Target, TransferId, TransferStatus, WriteError,
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
}

type Queue = Rc<RefCell<VecDeque<Packet>>>;

/// One end of the pair. Only packets: there is no memory to reach.
#[derive(Debug)]
struct PairLink {
    mine: Queue,
    theirs: Queue,
    counters: Counters,
}

impl Link for PairLink {
    type Buffer = Memory;

    #[inline]
    fn write(&mut self, _: PeerId, packet: &Packet) -> Result<(), WriteError> {
        self.theirs.borrow_mut().push_back(Packet { header: packet.header.published(1, PEER), ..*packet });
        Ok(())
    }
    #[inline]
    fn retrieve(&mut self) -> Option<Packet> {
        self.mine.borrow_mut().pop_front()
    }
    fn reaches_memory(&mut self, _: PeerId) -> bool {
        false
    }
    fn read_peer(&mut self, _: TransferId, _: PeerId, _: &[Span], _: &mut Memory, _: usize) -> TransferStatus {
        TransferStatus::Failed
    }
    fn write_peer(&mut self, _: TransferId, _: PeerId, _: &[Span], _: &Memory, _: usize) -> TransferStatus {
        TransferStatus::Failed
    }
    fn poll_transfer(&mut self) -> Option<(TransferId, TransferStatus)> {
        None
    }
    fn find_region(&mut self, _: PeerId, _: u64, _: u64, _: u64, _: Access) -> Option<Span> {
        None
    }
    fn poll_departure(&mut self) -> Option<Departure> {
        None
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
    println!("\n{:<40} {:>12}", "receives posted before the one that matches", "ns");
    for depth in [0, 10, 100, 1000] {
        let mut pair = Pair::new(SchemeName::Dynamic, true, 8);
        (0..depth).for_each(|tag| pair.post(1000 + tag));
        println!("{depth:<40} {:>12.1}", measure(|| expected(&mut pair)));
    }
}
