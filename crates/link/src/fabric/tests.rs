//! Endpoints over a simulated network: what is sent arrives once and in order, whatever the network does; who is gone
//! is noticed, and strangers change nothing.

use super::admission;
use super::greeting::Greeting;
use super::network::{Network, Route, Sending, Token};
use super::protocol::Protocol;
use super::stream::UNACKNOWLEDGED;
use super::testing::{Faults, Random, SimNetwork, World, contact};
use super::wire::{BATCH_BYTES, HEADER_BYTES, Header, Kind, PACKETS_PER_BATCH, Receipt};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tidegate_flow::{Config, Instant, Packet, PacketKind, PeerId, SchemeName};
use tidegate_message::{Departure, LinkEvent, WriteError};

/// An endpoint of a test.
pub(super) struct Node {
    pub protocol: Protocol,
    pub network: SimNetwork,
}

/// Endpoints, their network, and the time.
pub(super) struct Job {
    pub nodes: Vec<Node>,
    pub world: Rc<RefCell<World>>,
    pub now: Instant,
}

pub(super) fn greeting(id: u64, slots: u32) -> Greeting {
    Greeting {
        contact: contact(id, id, slots),
        window: 1000 + id as u32,
        rank: Some(id as u32),
        reads_memory: true,
        host: format!("h{id}"),
        watched: None,
    }
}

pub(super) fn flow() -> Config {
    Config::new(SchemeName::Dynamic, 4, 64, 2)
}

impl Job {
    pub fn new(nodes: usize, seed: u64) -> Job {
        let world = World::new(nodes, seed);
        let node = |me: usize| Node {
            protocol: Protocol::new(greeting(me as u64, 64), &flow()),
            network: SimNetwork { me, world: Rc::clone(&world), received: Vec::new() },
        };
        Job { nodes: (0..nodes).map(node).collect(), world: Rc::clone(&world), now: Instant::from_nanos(1) }
    }

    /// The place of one node in another's table.
    pub fn peer(&mut self, of: usize, to: usize) -> PeerId {
        self.nodes[of].protocol.peer(&contact(to as u64, to as u64, 64)).unwrap()
    }

    pub fn exchange(&mut self, node: usize) {
        let Node { protocol, network } = &mut self.nodes[node];
        protocol.exchange(network, self.now);
    }

    pub fn step(&mut self, passed: Duration) {
        self.now = self.now + passed;
        (0..self.nodes.len()).for_each(|node| self.exchange(node));
    }

    pub fn steps(&mut self, count: usize, passed: Duration) {
        (0..count).for_each(|_| self.step(passed));
    }

    /// Writes one numbered packet; whether there was room.
    pub fn write(&mut self, from: usize, to: PeerId, number: u32) -> Result<u32, WriteError> {
        self.nodes[from].protocol.write(to, 1, self.now, |packets, _| packets[0] = numbered(number))
    }

    pub fn retrieve(&mut self, node: usize) -> Option<(PeerId, u32)> {
        let arrival = self.nodes[node].protocol.retrieve()?;
        Some((arrival.source, arrival.packet.credits()))
    }

    pub fn departure(&mut self, node: usize) -> Option<(bool, String)> {
        match self.nodes[node].protocol.poll_event()? {
            LinkEvent::Departed(Departure { orderly, name, .. }) => Some((orderly, name)),
            event => panic!("{event:?}"),
        }
    }
}

fn numbered(number: u32) -> Packet {
    Packet::with_credits(PacketKind::Data, number)
}

pub(super) const MOMENT: Duration = Duration::from_micros(60);
pub(super) const WHILE: Duration = Duration::from_millis(50);

#[test]
fn two_greet_each_other_and_packets_go_to_and_fro() {
    let mut job = Job::new(2, 1);
    let to = job.peer(0, 1);
    assert_eq!((job.write(0, to, 7), job.nodes[0].protocol.window(to)), (Err(WriteError::Full), Some(0)));
    job.steps(3, MOMENT);
    assert_eq!(job.nodes[0].protocol.window(to), Some(1001));
    assert_eq!(job.write(0, to, 7), Ok(1));
    job.steps(2, MOMENT);
    let (back, number) = job.retrieve(1).unwrap();
    assert_eq!((number, job.nodes[1].protocol.window(back)), (7, Some(1000)));
    assert_eq!(job.write(1, back, 8), Ok(1));
    job.steps(2, MOMENT);
    assert_eq!(job.retrieve(0), Some((to, 8)));
    assert_eq!(job.nodes[0].protocol.peer(&contact(1, 1, 64)).unwrap(), to, "it has one place");
}

#[test]
fn a_newcomer_is_told_the_window_of_newcomers() {
    let mut job = Job::new(3, 1);
    job.nodes[0].protocol.set_window(80_000);
    job.nodes[0].protocol.set_newcomers(PeerId(1), 2048);
    let places = [1, 2].map(|node| {
        let place = job.peer(node, 0);
        job.steps(4, MOMENT);
        place
    });
    let told = [(1, places[0]), (2, places[1])].map(|(node, place)| job.nodes[node].protocol.window(place));
    assert_eq!(told, [Some(80_000), Some(2048)]);
}

#[test]
fn other_parameters_are_an_error_on_both_sides() {
    let mut job = Job::new(2, 1);
    job.nodes[1].protocol = Protocol::new(greeting(1, 16), &flow());
    // The address says so at once; where it does not, the hello tells.
    assert!(job.nodes[0].protocol.peer(&contact(1, 1, 16)).unwrap_err().to_string().contains("FI_TIDEGATE_SLOTS"));
    job.peer(0, 1);
    job.steps(4, MOMENT);
    let (ours, theirs) = (job.departure(0).unwrap(), job.departure(1).unwrap());
    assert!(ours.1.contains("FI_TIDEGATE_SLOTS is 64 here and 16 with rank 1 (pid 1 of host h1)"), "{ours:?}");
    assert!(theirs.1.contains("FI_TIDEGATE_SLOTS is 16 here and 64 with rank 0"), "{theirs:?}");
}

#[test]
fn who_leaves_is_reported_behind_its_packets_and_waits_for_the_acknowledgement() {
    let mut job = Job::new(2, 1);
    let to = job.peer(0, 1);
    job.steps(3, MOMENT);
    job.write(0, to, 1).unwrap();
    job.nodes[0].protocol.say_goodbye();
    assert!(!job.nodes[0].protocol.is_flushed());
    job.steps(2, MOMENT);
    assert_eq!(job.nodes[1].protocol.poll_event(), None, "its packet has not been taken");
    assert!(job.retrieve(1).is_some());
    assert!(matches!(job.nodes[1].protocol.poll_event(), Some(LinkEvent::Closing(_))));
    assert_eq!(job.departure(1), Some((true, "rank 0 (pid 0 of host h0)".into())));
    job.steps(2, MOMENT);
    assert!(job.nodes[0].protocol.is_flushed());
}

#[test]
fn who_is_killed_is_missed_in_less_than_two_seconds_and_named() {
    let mut job = Job::new(3, 1);
    let to = job.peer(0, 1);
    job.steps(3, MOMENT);
    job.write(0, to, 1).unwrap();
    job.steps(40, WHILE);
    assert_eq!(job.departure(0), None, "two who wait for each other");
    job.world.borrow_mut().kill(1);
    job.nodes.remove(1);
    let killed_at = job.now;
    let name = loop {
        job.step(WHILE);
        if let Some((orderly, name)) = job.departure(0) {
            assert!(!orderly);
            break name;
        }
    };
    assert!(job.now.since(killed_at) < Duration::from_secs(2));
    assert!(name.starts_with("rank 1 (pid 1 of host h1)"), "{name}");
    assert!(matches!(job.write(0, to, 2), Err(WriteError::Unreachable(why)) if why.contains("host h1")));
}

#[test]
fn who_computes_for_an_hour_is_not_missed_and_is_asked_a_bounded_number_of_times() {
    let mut job = Job::new(2, 1);
    let to = job.peer(0, 1);
    job.steps(3, MOMENT);
    job.write(0, to, 1).unwrap();
    for _ in 0..36_000 {
        job.now = job.now + Duration::from_millis(100);
        job.exchange(0);
    }
    let most = job.world.borrow().most;
    assert!((100..170).contains(&most), "{most}");
    job.steps(20, MOMENT);
    let got = job.retrieve(1).map(|(_, number)| number);
    assert_eq!((got, job.departure(0), job.departure(1)), (Some(1), None, None));
    assert_eq!(job.nodes[0].protocol.counts().resent, 0);
}

#[test]
fn who_counts_as_lost_and_lives_is_told() {
    let mut job = Job::new(2, 1);
    let to = job.peer(0, 1);
    job.steps(3, MOMENT);
    job.nodes[0].protocol.quarantine(to);
    let (orderly, name) = job.departure(0).unwrap();
    assert!(!orderly && name.contains("broke the protocol"), "{name}");
    job.nodes[0].protocol.release(to, job.now);
    job.steps(3, MOMENT);
    assert!(job.departure(1).unwrap().1.contains("does not hear this process any more"));
    // Even where these last words are lost.
    let mut job = Job::new(2, 1);
    let to = job.peer(0, 1);
    job.steps(3, MOMENT);
    job.nodes[0].protocol.quarantine(to);
    job.nodes[0].protocol.release(to, job.now);
    job.nodes[0].protocol.notices.clear();
    job.steps(20, WHILE);
    assert!(job.departure(1).unwrap().1.contains("does not hear this process any more"));
    assert!(job.nodes[0].protocol.peer(&contact(1, 1, 64)).is_err(), "it stays lost");
}

/// fi_tidegate(7): "Batches name their two endpoints by numbers of 64 bits that follow from the secrets; those that do
/// not name the receiver are dropped, and counted in batches_dropped."
#[test]
fn strangers_change_nothing() {
    let mut job = Job::new(2, 1);
    job.peer(0, 1);
    job.steps(3, MOMENT);
    let before = job.nodes[1].protocol.counts();
    let kinds = [Kind::Hello, Kind::Welcome, Kind::Packets, Kind::Acknowledgement, Kind::Ping, Kind::Severed];
    let id = |number: u64| contact(number, number, 64).id();
    for (to, from) in [(id(99), id(0)), (id(1), id(99))] {
        for kind in kinds {
            let mut batch = vec![0; HEADER_BYTES];
            Header {
                kind,
                is_closing: true,
                is_last: true,
                to,
                from,
                sequence: 0,
                acknowledged: 0,
                receipt: Receipt::default(),
            }
            .emit(&mut batch);
            job.nodes[1].protocol.handle_batch(&batch, job.now);
            batch.resize(BATCH_BYTES, 0x7f);
            job.nodes[1].protocol.handle_batch(&batch, job.now);
        }
    }
    let after = job.nodes[1].protocol.counts();
    assert_eq!(after.dropped - before.dropped, 4 * kinds.len() as u64);
    job.steps(3, MOMENT);
    assert_eq!((job.retrieve(1), job.departure(0), job.departure(1)), (None, None, None));
}

#[test]
fn a_mailbox_that_nobody_empties_stops_the_network() {
    let mut job = Job::new(2, 1);
    let small = Config::new(SchemeName::None, 1, 4, 0);
    job.nodes[1].protocol = Protocol::new(greeting(1, 64), &small);
    let to = job.peer(0, 1);
    job.steps(3, MOMENT);
    let mut written = 0;
    for _ in 0..1000 {
        while job.write(0, to, written).is_ok() {
            written += 1;
        }
        job.step(MOMENT);
    }
    let most = 4 + UNACKNOWLEDGED as usize * PACKETS_PER_BATCH;
    let kept = (UNACKNOWLEDGED as usize + 1) * PACKETS_PER_BATCH;
    assert!((written as usize) <= most + kept, "{written}");
    for number in 0..written {
        let got = (0..100).find_map(|_| {
            job.step(MOMENT);
            job.retrieve(1)
        });
        assert_eq!(got.map(|(_, number)| number), Some(number));
    }
}

#[test]
fn a_place_that_is_given_away_keeps_no_packets_of_who_had_it() {
    let mut job = Job::new(3, 1);
    let to = job.peer(0, 1);
    job.steps(3, MOMENT);
    job.write(0, to, 1).unwrap();
    job.steps(2, MOMENT);
    let source = job.nodes[1].protocol.peer(&contact(0, 0, 64)).unwrap();
    job.nodes[1].protocol.release(source, job.now);
    assert_eq!(job.peer(1, 2), source, "the place goes to another");
    assert_eq!(job.retrieve(1), None);
}

/// A network that cannot send.
struct Deaf;

impl Network for Deaf {
    fn address(&self) -> super::LowerAddress {
        super::LowerAddress::default()
    }
    fn resolve(&mut self, address: &super::LowerAddress) -> Result<Route, String> {
        Err(format!("{address} is no address"))
    }
    fn forget(&mut self, _: Route) {}
    fn send(&mut self, _: Route, _: Token, _: &[u8]) -> Sending {
        Sending::NoBuffer
    }
    fn poll(&mut self) -> Option<super::NetworkEvent<'_>> {
        None
    }
}

#[test]
fn an_address_that_leads_nowhere_is_an_error() {
    let mut protocol = Protocol::new(greeting(0, 64), &flow());
    let to = protocol.peer(&contact(1, 1, 64)).unwrap();
    protocol.exchange(&mut Deaf, Instant::from_nanos(1));
    assert!(
        matches!(protocol.write(to, 1, Instant::from_nanos(1), |_, _| {}), Err(WriteError::Unreachable(why)) if why.contains("01 is no address"))
    );
}

/// Two exchange numbered packets for a while; then the network heals, and everything must arrive.
///
/// So many batches of each have been exchanged before.
fn exchange_numbers(seed: u64, faults: Faults, count: u32, begun: u64) -> Result<(), TestCaseError> {
    let (mut job, mut random) = (Job::new(2, seed), Random(seed ^ 0x9e37_79b9 | 1));
    let places = [job.peer(0, 1), job.peer(1, 0)];
    for (node, place) in places.into_iter().enumerate() {
        let peer = job.nodes[node].protocol.known(place).expect("it has a place");
        peer.outbox.begin_at(begun);
        peer.inbox.begin_at(begun);
    }
    job.world.borrow_mut().faults = faults;
    let (mut written, mut got) = ([0_u32; 2], [0_u32; 2]);
    for round in 0..40_000 {
        if round == 5000 {
            job.world.borrow_mut().faults = Faults::default();
        }
        for node in 0..2 {
            for _ in 0..random.below(100) {
                if written[node] < count && job.write(node, places[node], written[node]).is_ok() {
                    written[node] += 1;
                }
            }
            if random.happens(700) {
                let Node { protocol, network } = &mut job.nodes[node];
                protocol.exchange(network, job.now);
                prop_assert!(protocol.notices.is_empty() && protocol.acknowledgements.len() <= 64);
            }
            while let Some((source, number)) = job.retrieve(node) {
                prop_assert_eq!((source, number), (places[node], got[node]), "in order, once");
                got[node] += 1;
            }
            prop_assert_eq!(job.departure(node), None);
        }
        job.now = job.now + Duration::from_micros(random.below(20_000));
        if got == [count; 2] {
            return Ok(());
        }
    }
    prop_assert!(false, "{:?} of {} arrived, {:?} were written", got, count, written);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_is_lost_doubled_or_reordered(
        seed: u64, lost in 0_u64..200, repeated in 0_u64..200, reordered in 0_u64..300, broken in 0_u64..100, again in 0_u64..400,
        failed in 0_u64..100, no_buffer in 0_u64..200,
        // Numbers of batches leave the bits that a sending's name has of them, and 31 and 32 bits.
        begun in prop::sample::select(vec![0, (1 << 15) - 9, (1 << 16) - 9, (1 << 31) - 9, (1_u64 << 32) - 9]),
    ) {
        let faults = Faults { lost, repeated, reordered, broken, again, unread: 0, failed, no_buffer };
        exchange_numbers(seed, faults, 2000, begun)?;
    }

    #[test]
    fn anything_may_come(batches in prop::collection::vec((0_u8..12, 0_u8..4, 0_u64..6, 0_u64..6, prop::collection::vec(any::<u8>(), 0..300)), 0..60)) {
        let mut job = Job::new(2, 1);
        let to = job.peer(0, 1);
        job.steps(3, MOMENT);
        for (kind, flags, sequence, acknowledged, body) in batches {
            let [own, peer] = [0, 1].map(|number| contact(number, number, 64).id());
            let header = Header { kind: Kind::Ping, is_closing: false, is_last: false, to: own, from: peer, sequence, acknowledged, receipt: Receipt::default() };
            let mut batch = vec![0; HEADER_BYTES];
            header.emit(&mut batch);
            (batch[4], batch[5]) = (kind, flags);
            batch.extend(body);
            // Of two, one is proven: a peer of the job may say anything.
            if sequence % 2 == 0 {
                admission::seal(&mut batch, &contact(0, 0, 64).secret.unwrap());
            }
            job.nodes[0].protocol.handle_batch(&batch, job.now);
            let _ = job.write(0, to, 1);
            job.step(MOMENT);
            while job.retrieve(0).is_some() {}
            while job.nodes[0].protocol.poll_event().is_some() {}
        }
    }
}
