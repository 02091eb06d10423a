//! A look at what is open: what it says of receives, sends, unexpected messages and waits, and how old they are.

use crate::support::{Setup, World, pattern};
use std::time::Duration;
use tidegate_message::{Counter, OPEN_MOST, PeerId, Snapshot, Target, WaitCause};

const A_WHILE: Duration = Duration::from_millis(4);

fn look(world: &mut World, node: usize) -> Snapshot {
    let mut open = Snapshot::default();
    let now = world.now();
    world.endpoint(node).look(now, &mut open);
    open
}

fn tagged(tag: u64) -> Option<u64> {
    Some(tag)
}

/// How long what began at a moment has been seen.
fn age(open: &Snapshot, since: tidegate_message::Instant) -> Duration {
    open.at.since(since)
}

#[test]
fn an_endpoint_with_nothing_to_do_has_nothing_open() {
    let mut world = Setup::new(2).build();
    world.send(0).to(1).tagged(1).bytes(b"x").post();
    world.receive(1).tagged(1).capacity(1).post();
    world.settle();
    for node in 0..2 {
        let open = look(&mut world, node);
        assert_eq!((open.receives_in_all, open.sends_in_all, open.unexpected_in_all), (0, 0, 0));
        assert!(open.receives.is_empty() && open.sends.is_empty() && open.unexpected.is_empty());
        assert!(open.waits.iter().all(|wait| wait.since.is_none()) && open.peers_delayed == 0);
    }
}

#[test]
fn a_receive_is_as_old_as_the_first_look_that_saw_it_and_the_oldest_come_first() {
    let mut world = Setup::new(2).build();
    world.receive(1).tagged(7).capacity(10).post();
    look(&mut world, 1);
    world.pass(A_WHILE);
    for tag in 100..100 + 2 * OPEN_MOST as u64 {
        world.receive(1).tagged(tag).capacity(20).post();
    }
    let open = look(&mut world, 1);
    assert_eq!((open.receives.len(), open.receives_in_all), (OPEN_MOST, 1 + 2 * OPEN_MOST as u64));
    let first = open.receives[0];
    assert_eq!((first.tag, first.bytes, first.is_arriving, age(&open, first.since)), (tagged(7), 10, false, A_WHILE));
    assert!(open.receives[1..].iter().all(|receive| age(&open, receive.since).is_zero()));
    world.send(0).to(1).tagged(7).bytes(b"x").post();
    world.settle();
    let open = look(&mut world, 1);
    assert_eq!((open.receives_in_all, open.receives[0].tag), (2 * OPEN_MOST as u64, tagged(100)));
}

#[test]
fn polls_in_vain_are_waits_for_the_senders_of_open_receives_and_end_when_the_caller_says() {
    let mut world = Setup::new(3).build();
    let now = world.now();
    for _ in 0..2 {
        world.receive(0).from(1).tagged(1).capacity(1).post();
    }
    world.receive(0).tagged(2).capacity(1).post();
    world.endpoint(0).begin_wait(now);
    world.pass(A_WHILE);
    let open = look(&mut world, 0);
    let told = |open: &Snapshot| -> Vec<_> {
        open.waits.iter().map(|wait| (wait.peer, wait.cause, wait.count, wait.waited, wait.since)).collect()
    };
    let row = (Some(Target::Peer(PeerId(0))), WaitCause::Message, 1, Duration::ZERO, Some(now));
    assert_eq!((told(&open), open.is_waiting), (vec![row], true), "the one from any may be for what comes later");
    world.pass(A_WHILE);
    let until = world.now();
    world.pass(A_WHILE);
    world.endpoint(0).end_wait(until);
    let open = look(&mut world, 0);
    assert_eq!(told(&open), [(Some(Target::Peer(PeerId(0))), WaitCause::Message, 1, 2 * A_WHILE, None)]);
    assert_eq!((open.is_waiting, world.counter(0, Counter::WaitNanoseconds)), (false, 8_000_000));
    // Both come; then any message is waited for.
    (0..2).for_each(|_| _ = world.send(1).to(0).tagged(1).bytes(b"x").post());
    world.settle();
    let since = world.now();
    world.endpoint(0).begin_wait(since);
    world.pass(A_WHILE);
    let until = world.now();
    world.endpoint(0).end_wait(until);
    let any = (None, WaitCause::AnyMessage, 1, A_WHILE, None);
    assert_eq!(told(&look(&mut world, 0))[0], any);
    assert_eq!(world.counter(0, Counter::WaitNanoseconds), 12_000_000);
}

#[test]
fn a_wait_for_nothing_by_name_becomes_one_for_the_sender_that_a_later_receive_names() {
    let mut world = Setup::new(2).build();
    let since = world.now();
    world.endpoint(0).begin_wait(since);
    world.pass(A_WHILE);
    look(&mut world, 0);
    world.receive(0).from(1).tagged(1).capacity(1).post();
    look(&mut world, 0);
    world.pass(A_WHILE);
    let until = world.now();
    world.endpoint(0).end_wait(until);
    let told: Vec<_> = look(&mut world, 0).waits.iter().map(|wait| (wait.peer, wait.cause, wait.waited)).collect();
    let named = (Some(Target::Peer(PeerId(0))), WaitCause::Message, A_WHILE);
    assert_eq!(told, [(None, WaitCause::AnyMessage, A_WHILE), named]);
    assert_eq!(world.counter(0, Counter::WaitNanoseconds), 8_000_000);
}

/// For whom endpoint 0 is said to wait if it begins to now, by their numbers.
fn awaited(world: &mut World) -> Vec<u32> {
    let since = world.now();
    world.endpoint(0).begin_wait(since);
    let open = look(world, 0);
    let going_on = open.waits.iter().filter(|wait| wait.since.is_some() && wait.cause == WaitCause::Message);
    let peers = going_on.filter_map(|wait| match wait.peer {
        Some(Target::Peer(peer)) => Some(peer.0 + 1),
        _ => None,
    });
    let mut peers: Vec<u32> = peers.collect();
    peers.sort_unstable();
    peers
}

/// A program may keep many receives open for what may come, such as orders of a master.
#[test]
fn a_receive_that_was_posted_once_for_what_may_come_gets_no_share_in_what_another_lets_wait() {
    let mut world = Setup::new(4).build();
    (0..2 * OPEN_MOST).for_each(|_| _ = world.receive(0).from(1).tagged(99).capacity(1).post());
    for round in 0..3 {
        let _ = world.receive(0).from(3).tagged(1).capacity(1).post();
        let named = awaited(&mut world);
        assert!(if round == 0 { named.contains(&3) } else { named == [3] }, "{round}: {named:?}");
        let _ = world.send(3).to(0).tagged(1).bytes(b"x").post();
        world.settle();
    }
    assert_eq!(awaited(&mut world), [1], "now nothing else is open");
}

/// As a program that exchanges its borders does.
#[test]
fn receives_that_are_posted_together_are_waited_for_until_the_last_has_come() {
    let mut world = Setup::new(4).build();
    let _ = world.receive(0).from(1).tagged(99).capacity(1).post();
    for _ in 0..2 {
        awaited(&mut world);
        for from in [2, 3] {
            let _ = world.receive(0).from(from).tagged(1).capacity(1).post();
        }
        assert_eq!(awaited(&mut world), [2, 3]);
        for (from, left) in [(3, vec![2]), (2, vec![1])] {
            let _ = world.send(from).to(0).tagged(1).bytes(b"x").post();
            world.settle();
            assert_eq!(awaited(&mut world), left);
        }
    }
}

#[test]
fn a_probe_in_vain_is_waited_for_if_it_is_asked_again_and_nothing_was_posted_since() {
    let mut world = Setup::new(3).build();
    let probe = |world: &mut World| world.receive(0).from(1).tagged(5).peek().post();
    let _ = world.receive(0).from(2).tagged(1).capacity(1).post();
    let _ = probe(&mut world);
    assert_eq!(awaited(&mut world), [2], "it was asked once");
    let _ = probe(&mut world);
    assert!(awaited(&mut world).contains(&1));
    let _ = world.receive(0).from(2).tagged(1).capacity(1).post();
    assert_eq!(awaited(&mut world), [2], "the program waits for something else now");
}

#[test]
fn a_wait_of_sends_alone_counts_and_is_for_no_message() {
    let mut world = Setup::new(2).build();
    world.send(0).to(1).tagged(1).bytes(&[7; 100_000]).post();
    let since = world.now();
    world.endpoint(0).begin_wait(since);
    world.pass(A_WHILE);
    let until = world.now();
    world.endpoint(0).end_wait(until);
    let open = look(&mut world, 0);
    assert!(open.waits.iter().all(|wait| wait.cause.is_of_sends()));
    assert_eq!(world.counter(0, Counter::WaitNanoseconds), 4_000_000);
}

#[test]
fn messages_that_nobody_receives_are_told_with_their_sender() {
    let mut world = Setup::new(2).build();
    for tag in [3, 4] {
        world.send(0).to(1).tagged(tag).bytes(&pattern(tag as usize, 100)).post();
    }
    world.settle();
    look(&mut world, 1);
    world.pass(A_WHILE);
    world.receive(1).tagged(3).capacity(100).post();
    world.send(0).to(1).tagged(5).bytes(b"new").post();
    world.settle();
    let open = look(&mut world, 1);
    let told: Vec<_> = open.unexpected.iter().map(|message| (message.tag, message.bytes)).collect();
    assert_eq!((told, open.unexpected_in_all), (vec![(tagged(4), 100), (tagged(5), 3)], 2));
    assert!(age(&open, open.unexpected[0].since) >= A_WHILE, "it was there");
    assert!(age(&open, open.unexpected[1].since).is_zero(), "it takes no place of one that was");
    assert!(matches!(open.unexpected[0].from, Target::Peer(_)));
}

#[test]
fn sends_wait_for_credits_for_pulls_and_for_room() {
    let mut world = Setup { slots: 2, credit_slots: 1, ..Setup::new(2) }.build();
    for n in 0..3 {
        world.send(0).to(1).tagged(n as u64).bytes(&pattern(n, 300)).post();
    }
    look(&mut world, 0);
    world.pass(A_WHILE);
    let open = look(&mut world, 0);
    let told: Vec<_> = open.sends.iter().map(|send| (send.tag, send.bytes, send.waits_for)).collect();
    let expected = [0, 1, 2].map(|tag| (tagged(tag), 300, Some(WaitCause::Credits)));
    assert_eq!((told, open.sends_in_all, open.peers_delayed), (expected.to_vec(), 3, 1));
    assert!(open.sends.iter().all(|send| age(&open, send.since) == A_WHILE));
    let [wait] = open.waits[..] else { panic!("{:?}", open.waits) };
    assert_eq!((wait.cause, wait.count, wait.waited), (WaitCause::Credits, 1, Duration::ZERO));
    assert_eq!(wait.since.map(|since| age(&open, since)), Some(A_WHILE));
}

#[test]
fn a_long_message_waits_for_its_receive_as_long_as_looks_have_seen_it() {
    let mut world = Setup::new(2).build();
    world.send(0).to(1).tagged(9).bytes(&pattern(1, 100_000)).post();
    world.settle();
    let open = look(&mut world, 0);
    assert!(open.waits.is_empty(), "one look does not make a wait: {:?}", open.waits);
    for _ in 0..3 {
        world.pass(A_WHILE);
        look(&mut world, 0);
    }
    let open = look(&mut world, 0);
    let [send] = open.sends[..] else { panic!("{:?}", open.sends) };
    assert_eq!((send.tag, send.bytes, send.waits_for), (tagged(9), 100_000, Some(WaitCause::Pull)));
    let [wait] = open.waits[..] else { panic!("{:?}", open.waits) };
    assert_eq!((wait.cause, wait.since.map(|since| age(&open, since))), (WaitCause::Pull, Some(3 * A_WHILE)));
    world.receive(1).tagged(9).capacity(100_000).post();
    world.settle();
    world.pass(A_WHILE);
    let open = look(&mut world, 0);
    let [wait] = open.waits[..] else { panic!("{:?}", open.waits) };
    assert_eq!((open.sends_in_all, wait.count, wait.since), (0, 1, None));
    assert!(wait.waited >= 3 * A_WHILE, "{:?}", wait.waited);
}

#[test]
fn more_is_open_than_one_look_goes_through_and_looks_find_the_oldest_in_the_end() {
    let nodes = 200;
    let mut world = Setup { slots: 2, credit_slots: 1, ..Setup::new(nodes) }.build();
    // The last peer's are the oldest.
    for to in (1..nodes).rev() {
        for n in 0..3 {
            world.send(0).to(to).tagged(to as u64).bytes(&pattern(n, 300)).post();
        }
        if to == nodes - 1 {
            for _ in 0..8 {
                look(&mut world, 0);
            }
            world.pass(A_WHILE);
        }
    }
    for _ in 0..8 {
        look(&mut world, 0);
    }
    let open = look(&mut world, 0);
    assert_eq!((open.sends.len(), open.sends_in_all), (OPEN_MOST, 3 * (nodes as u64 - 1)));
    assert!(open.sends[..3].iter().all(|send| send.tag == tagged(nodes as u64 - 1)), "{:?}", open.sends);
    assert_eq!(open.waits.len(), nodes - 1);
}

#[test]
fn who_asks_again_and_again_for_a_message_waits_for_it() {
    let mut world = Setup::new(2).build();
    for _ in 0..3 {
        world.receive(1).tagged(7).peek().post();
        world.settle();
        look(&mut world, 1);
        world.pass(A_WHILE);
    }
    world.receive(1).tagged(7).peek().post();
    let open = look(&mut world, 1);
    let [probe] = open.receives[..] else { panic!("{:?}", open.receives) };
    assert_eq!((probe.is_probe, probe.tag, open.receives_in_all), (true, tagged(7), 1));
    assert!(age(&open, probe.since) >= 3 * A_WHILE);
    let open = look(&mut world, 1);
    assert_eq!((open.receives.len(), open.receives_in_all), (1, 1), "others may have had the processor");
    world.receive(1).tagged(7).peek().post();
    let [probe] = look(&mut world, 1).receives[..] else { panic!("it goes on to ask") };
    assert!(age(&open, probe.since) >= 3 * A_WHILE);
    look(&mut world, 1);
    let open = look(&mut world, 1);
    assert!(open.receives.is_empty() && open.receives_in_all == 0, "it has stopped to ask");
    world.receive(1).tagged(7).peek().post();
    world.send(0).to(1).tagged(7).bytes(b"x").post();
    world.settle();
    world.receive(1).tagged(7).peek().post();
    assert!(look(&mut world, 1).receives.is_empty(), "it is there");
}

#[test]
fn a_buffer_for_many_messages_is_no_receive_that_waits() {
    let mut world = Setup::new(2).build();
    let many = world.receive(1).capacity(100).multi(50).post();
    world.receive(1).tagged(1).capacity(1).post();
    let open = look(&mut world, 1);
    assert_eq!((open.receives.len(), open.receives_in_all, open.receives[0].tag), (1, 1, tagged(1)));
    world.send(0).to(1).bytes(&[0; 80]).post();
    world.settle();
    assert!(world.is_done(many), "its buffer is full");
    assert_eq!(look(&mut world, 1).receives_in_all, 1);
}

#[test]
fn a_receive_of_anybody_names_nobody() {
    let mut world = Setup::new(2).build();
    world.receive(1).tagged(1).capacity(1).post();
    world.receive(1).from(0).tagged(2).capacity(1).post();
    let open = look(&mut world, 1);
    assert_eq!(open.receives[0].from, None);
    assert!(matches!(open.receives[1].from, Some(Target::Peer(PeerId(_)))));
}
