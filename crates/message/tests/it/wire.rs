//! A whole network that is new to Tidegate, and a job over it: channels between threads. `docs/add-a-network.md` shows
//! the link.

use crate::support::{Arena, MemoryBuffer, pattern};
use std::slice;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use tidegate_message::flow::{Config, Packet, PacketKind, PeerId, Placement, SchemeName};
use tidegate_message::{
    Arrival, Bounce, Carry, Closing, Completion, Context, Counters, Endpoint, EndpointConfig, Fill, Instant, Link,
    LinkEvent, MatchFlags, Medium, PeerMemory, PeerNames, Receive, Send, SenderWrites, Source, Space, Target,
    WriteError,
};

/// One end of a wire between two processes, each of which is peer 0 to the other.
#[derive(Debug)]
struct Wire {
    incoming: Receiver<Packet>,
    outgoing: Sender<Packet>,
    counters: Counters,
}

impl Medium for Wire {
    type Buffer = MemoryBuffer;
}

impl PeerMemory for Wire {}
impl Bounce for Wire {}
impl Carry for Wire {}
impl Closing for Wire {}
impl PeerNames for Wire {}
impl SenderWrites for Wire {}

impl Link for Wire {
    fn write(&mut self, _: PeerId, count: u32, mut fill: impl Fill) -> Result<u32, WriteError> {
        for _ in 0..count {
            let mut packet = Packet::new(PacketKind::Data, 0, 0);
            fill.fill(slice::from_mut(&mut packet), Placement::default());
            self.outgoing.send(packet).map_err(|_| WriteError::Unreachable("the other end is gone".to_owned()))?;
        }
        Ok(count)
    }

    fn retrieve(&mut self) -> Option<Arrival> {
        let packet = self.incoming.try_recv().ok()?;
        Some(Arrival { source: PeerId(0), packet })
    }

    fn poll_event(&mut self) -> Option<LinkEvent> {
        None
    }

    fn quarantine(&mut self, _: PeerId) -> String {
        "the other end".to_owned()
    }

    fn release(&mut self, _: PeerId) {}

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// Sends what the other end waits for, and receives as much; the eager size is 2048 bytes.
fn talk(incoming: Receiver<Packet>, outgoing: Sender<Packet>, scheme: SchemeName, me: usize) {
    let config = EndpointConfig {
        flow: Config::new(scheme, 1, 8, 2),
        eager_bytes: 2048,
        operations: 100,
        receive_memory: 1 << 20,
        patience: std::time::Duration::ZERO,
        packets_per_progress: 8,
        bulk_bytes_per_progress: 4096,
    };
    let link = Wire { incoming, outgoing, counters: Counters::default() };
    let mut endpoint = Endpoint::new(config, link).expect("a legal configuration");
    let (mut arena, mut received) = (Arena::default(), Vec::new());
    let space = Space::Tagged { tag: 7, ignore: 0 };
    for (place, length) in SIZES.into_iter().enumerate() {
        let into = arena.allocate(me, &vec![0; length], false);
        let (context, flags) = (Context(place), MatchFlags::default());
        let receive =
            Receive { from: Source::Any, space, buffer: into.clone(), context, multi: None, flags, report: true };
        endpoint.receive(receive).expect("there is room");
        let buffer = arena.allocate(me, &pattern(me + place, length), false);
        let (to, context) = (Target::Peer(PeerId(0)), Context(SIZES.len() + place));
        let send = Send { to, space, buffer, data: None, context, inject: false, delivery: false, report: true };
        endpoint.send(send).expect("there is room");
        received.push(into);
    }
    let begun = std::time::Instant::now();
    let mut ended: Vec<Completion> = Vec::new();
    while ended.len() < 2 * SIZES.len() || endpoint.has_outstanding() {
        endpoint.progress(Instant::from_nanos(begun.elapsed().as_nanos() as u64));
        ended.extend(std::iter::from_fn(|| endpoint.poll_completion()));
        thread::yield_now();
    }
    assert!(ended.iter().all(|completion| completion.result.is_ok()), "{ended:?}");
    for (place, (buffer, length)) in received.iter().zip(SIZES).enumerate() {
        assert_eq!(buffer.bytes(), pattern(1 - me + place, length), "message {place} to {me}");
    }
}

const SIZES: [usize; 5] = [0, 8, 2000, 100_000, 30];

#[test]
fn a_network_of_one_screen_carries_a_job() {
    for scheme in [SchemeName::None, SchemeName::Static, SchemeName::Dynamic] {
        let ((to_b, from_a), (to_a, from_b)) = (channel(), channel());
        thread::scope(|scope| {
            scope.spawn(|| talk(from_b, to_b, scheme, 0));
            scope.spawn(|| talk(from_a, to_a, scheme, 1));
        });
    }
}

#[test]
fn the_book_shows_this_network() {
    let (chapter, here) = (include_str!("../../../../docs/add-a-network.md"), include_str!("wire.rs"));
    let shown = chapter.split_once("```rust\n").and_then(|(_, rest)| rest.split_once("```")).expect("it is there").0;
    assert!(here.contains(shown), "docs/add-a-network.md differs from crates/message/tests/it/wire.rs");
}
