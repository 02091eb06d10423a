//! Endpoints that close: what the application believes sent is delivered as long as somebody may want it, nobody waits
//! for somebody who closes too, and what is given up is counted.

use crate::support::{Handle, Memory, Setup, World, pattern};
use tidegate_message::{Access, AtomicOp, AtomicType, Counter, Failure};

const MESSAGES: usize = 200;

/// Jobs whose receivers have little room, under all schemes and over every kind of memory.
fn settings(seed: u64) -> impl Iterator<Item = Setup> {
    Setup::all(2, seed).map(|setup| Setup { window: Some(600), ..setup })
}

fn inject_all(world: &mut World, from: usize) -> Vec<Handle> {
    let inject = |n| world.send(from).to(1 - from).tagged(1).bytes(&pattern(n, 40)).inject().silent().post();
    (0..MESSAGES).map(inject).collect()
}

fn is_done(world: &mut World, node: usize) -> bool {
    let endpoint = world.endpoint(node);
    assert_eq!(endpoint.unsent_peers().next().is_some(), endpoint.has_unsent(), "it is to be said for which peer");
    !endpoint.has_unsent()
}

// fi_tidegate(7): "It waits for: messages that wait for credits or for room in a mailbox; injected ones that their
// receivers have no room for or that wait behind a fence, unless these close too; long messages that their receivers
// have asked for by message; its own remote operations that go by message, until all of each has left; and what peers
// wait for: reads from its memory by message, the results of their remote operations, receipts and credits."
//
// Each in a test below: messages that wait for credits, and receipts; injected messages; remote operations; long
// messages, reads and results.
#[test]
fn messages_and_receipts_that_wait_for_credits_leave_before_the_endpoint_closes() {
    for setup in Setup::all(2, 311) {
        let mut world = setup.build();
        let receives: Vec<_> = (0..MESSAGES).map(|_| world.receive(1).tagged(1).capacity(40).post()).collect();
        (0..4).for_each(|_| _ = world.receive(0).tagged(2).capacity(40).post());
        // Node 1 wants to know when its messages are received, and then retrieves nothing.
        let wanted: Vec<_> =
            (0..4).map(|n| world.send(1).to(0).tagged(2).bytes(&pattern(n, 40)).delivery().post()).collect();
        world.pause(0);
        world.settle();
        world.pause(1);
        for n in 0..MESSAGES {
            world.send(0).to(1).tagged(1).bytes(&pattern(n, 40)).post();
        }
        world.resume(0);
        world.settle();
        world.endpoint(0).begin_closing();
        world.settle();
        assert!(!is_done(&mut world, 0), "its peer has no slots for all of it\n{world}");
        world.resume(1);
        world.settle();
        assert!(is_done(&mut world, 0), "{world}");
        for (n, receive) in receives.iter().enumerate() {
            assert_eq!(world.bytes(*receive), pattern(n, 40), "{world}");
        }
        wanted.iter().for_each(|send| assert!(world.success(*send).result.is_ok()));
    }
}

#[test]
fn what_a_closing_endpoint_has_sent_is_received_however_late() {
    for setup in settings(301) {
        let mut world = setup.build();
        inject_all(&mut world, 0);
        world.endpoint(0).begin_closing();
        world.settle();
        assert!(!is_done(&mut world, 0), "the receiver has no room for all of it\n{world}");
        let receives: Vec<_> = (0..MESSAGES).map(|_| world.receive(1).tagged(1).capacity(40).post()).collect();
        world.settle();
        for (n, receive) in receives.iter().enumerate() {
            assert_eq!(world.bytes(*receive), pattern(n, 40), "{world}");
        }
        assert!(is_done(&mut world, 0), "{world}");
        assert_eq!(world.counter(0, Counter::SendsLost), 0);
    }
}

// fi_tidegate(7): "fi_close(3) of an endpoint first tells all peers, which from then on wait for it no longer than it
// takes to close themselves."
#[test]
fn two_that_close_do_not_wait_for_each_other() {
    for setup in settings(302) {
        let mut world = setup.build();
        (0..2).for_each(|node| drop(inject_all(&mut world, node)));
        world.settle();
        world.endpoint(0).begin_closing();
        world.settle();
        assert!(!is_done(&mut world, 0), "the other one may still receive\n{world}");
        assert!(!is_done(&mut world, 1) || world.counter(1, Counter::SendsDeferred) > 0, "{world}");
        world.endpoint(1).begin_closing();
        world.settle();
        for node in 0..2 {
            assert!(is_done(&mut world, node), "{world}");
            world.endpoint(node).abandon_unsent();
            world.settle();
            let lost = world.counter(node, Counter::SendsLost);
            assert!((1..=MESSAGES as u64).contains(&lost), "{lost} are lost\n{world}");
        }
    }
}

#[test]
fn nobody_waits_for_one_who_closes_but_what_it_still_fetches_it_gets() {
    for setup in settings(303) {
        let mut world = setup.build();
        inject_all(&mut world, 0);
        world.settle();
        let receives: Vec<_> = (0..MESSAGES).map(|_| world.receive(1).tagged(1).capacity(40).post()).collect();
        world.endpoint(1).begin_closing();
        world.settle();
        assert!(is_done(&mut world, 0), "{world}");
        receives.iter().for_each(|receive| assert!(world.is_done(*receive), "posted before it closed\n{world}"));
        assert_eq!(world.counter(0, Counter::SendsLost), 0);
        let late = inject_all(&mut world, 0);
        world.settle();
        world.close(1);
        world.settle();
        assert!(is_done(&mut world, 0), "{world}");
        assert!(late.iter().any(|send| world.is_done(*send)), "failures are always reported\n{world}");
        assert_eq!(world.counter(0, Counter::SendsLost), 0, "the application has been told of all of them\n{world}");
    }
}

#[test]
fn what_is_given_up_ends_canceled_and_is_counted_once() {
    for setup in settings(304) {
        let mut world = setup.build();
        world.pause(1);
        inject_all(&mut world, 0);
        let announced = world.send(0).to(1).tagged(2).bytes(&pattern(1, 9000)).post();
        world.settle();
        world.endpoint(0).begin_closing();
        world.settle();
        assert!(!is_done(&mut world, 0), "{world}");
        world.endpoint(0).abandon_unsent();
        world.settle();
        assert!(is_done(&mut world, 0), "{world}");
        assert_eq!(world.failure(announced), Failure::Canceled);
        let sent_whole = world.counter(0, Counter::MessagesEager);
        let lost = world.counter(0, Counter::SendsLost);
        assert!(lost > 0 && lost + sent_whole >= MESSAGES as u64, "{lost} lost, {sent_whole} begun\n{world}");
        world.endpoint(0).abandon_unsent();
        assert_eq!(world.counter(0, Counter::SendsLost), lost);
    }
}

#[test]
fn remote_operations_leave_before_the_endpoint_closes() {
    for setup in settings(312).filter(|setup| matches!(setup.memory, Memory::Mailbox | Memory::Bounced)) {
        let mut world = setup.build();
        let memory = world.register(1, 7, &[0; 40 * MESSAGES], &[Access::Write]);
        world.pause(1);
        for n in 0..MESSAGES {
            let place = world.place(0, 1, 7, 40 * n as u64);
            world.write(0, vec![(place, 40)], &pattern(n, 40), None);
        }
        world.settle();
        world.endpoint(0).begin_closing();
        world.settle();
        assert!(!is_done(&mut world, 0), "most of them wait for answers to the first\n{world}");
        world.resume(1);
        world.settle();
        assert!(is_done(&mut world, 0), "{world}");
        assert_eq!(memory.bytes(), (0..MESSAGES).flat_map(|n| pattern(n, 40)).collect::<Vec<_>>(), "{world}");
    }
}

#[test]
fn remote_operations_that_have_not_left_are_lost_with_the_messages() {
    for setup in settings(305).filter(|setup| matches!(setup.memory, Memory::Mailbox | Memory::Bounced)) {
        let mut world = setup.build();
        world.register(1, 7, &pattern(1, 4000), &[Access::Write]);
        world.pause(1);
        let writes: Vec<_> = (0..MESSAGES)
            .map(|n| {
                let place = world.place(0, 1, 7, 0);
                world.write(0, vec![(place, 40)], &pattern(n, 40), None)
            })
            .collect();
        world.settle();
        world.endpoint(0).begin_closing();
        world.settle();
        assert!(!is_done(&mut world, 0), "{world}");
        world.endpoint(0).abandon_unsent();
        world.settle();
        assert!(is_done(&mut world, 0) && !world.endpoint(0).has_outstanding(), "{world}");
        writes.iter().for_each(|write| assert_eq!(world.failure(*write), Failure::Canceled));
        assert_eq!(world.counter(0, Counter::SendsLost), 0, "the application has been told of all of them");
    }
}

#[test]
fn what_peers_have_begun_to_take_leaves_before_the_endpoint_closes() {
    for setup in settings(306).filter(|setup| matches!(setup.memory, Memory::Mailbox | Memory::Bounced)) {
        let mut world = setup.build();
        world.register(0, 7, &[7; 20_000], &[Access::Read, Access::Write]);
        let place = |world: &World| world.place(1, 0, 7, 0);
        let (from, to) = (place(&world), place(&world));
        // It reads much, and wants a result and a long message; then it retrieves nothing for a while.
        let send = world.send(0).to(1).tagged(2).bytes(&pattern(1, 20_000)).post();
        world.settle();
        world.pause(0);
        let receive = world.receive(1).tagged(2).capacity(20_000).post();
        let read = world.read(1, vec![(from, 20_000)]);
        let fetch = world.fetch_atomic(1, vec![(to, 25)], AtomicType::Uint64, AtomicOp::Read, &[], None);
        world.settle();
        world.pause(1);
        world.resume(0);
        world.settle();
        world.endpoint(0).begin_closing();
        world.settle();
        assert!(!is_done(&mut world, 0), "a peer waits for the rest\n{world}");
        world.resume(1);
        world.settle();
        [read, fetch, send].into_iter().for_each(|handle| assert!(world.success(handle).result.is_ok()));
        assert_eq!(world.bytes(receive), pattern(1, 20_000));
        assert!(is_done(&mut world, 0), "{world}");
    }
}

/// Nobody can say when a rendezvous send will be received: its application, which closes, has not been told that it is
/// sent.
// fi_tidegate(7): "It does not wait for other sends that no receive has matched or that wait behind a fence, nor for
// answers to what has left." (Fences: `fences.rs`.)
#[test]
fn sends_in_the_applications_memory_that_nobody_has_matched_and_answers_are_not_waited_for() {
    for setup in settings(307) {
        let mut world = setup.build();
        world.register(1, 7, &[7; 8], &[Access::Read, Access::Write]);
        world.send(0).to(1).tagged(2).bytes(&pattern(1, 20_000)).post();
        world.settle();
        world.pause(1);
        let place = world.place(0, 1, 7, 0);
        let fetch = world.fetch_atomic(0, vec![(place, 1)], AtomicType::Uint64, AtomicOp::Read, &[], None);
        world.settle();
        assert!(!world.is_done(fetch), "{world}");
        world.endpoint(0).begin_closing();
        world.settle();
        assert!(is_done(&mut world, 0), "{world}");
    }
}

/// As programs of MPI do: they may free the request of a send, and end.
// fi_tidegate(7): "Where an MPI has loaded the provider it waits for those sends as well, unless their receivers close
// too: a program may have freed their requests, and counts on them."
#[test]
fn an_application_that_counts_on_its_sends_closes_when_they_are_received() {
    for setup in settings(308) {
        let mut world = setup.build();
        // One that is announced, and more that find no room.
        let lengths = [20_000, 400, 400, 400, 9_000];
        for (n, length) in lengths.into_iter().enumerate() {
            world.send(0).to(1).tagged(2).bytes(&pattern(n, length)).silent().post();
        }
        world.settle();
        world.endpoint(0).begin_closing_after_sends();
        world.settle();
        assert!(!is_done(&mut world, 0), "the receiver may still want them\n{world}");
        let receives = lengths.map(|length| world.receive(1).tagged(2).capacity(length).post());
        world.settle();
        for (n, length) in lengths.into_iter().enumerate() {
            assert_eq!(world.bytes(receives[n]), pattern(n, length), "{world}");
        }
        assert!(is_done(&mut world, 0), "{world}");
        world.endpoint(0).abandon_unsent();
        assert_eq!(world.counter(0, Counter::SendsLost), 0);
    }
}

#[test]
fn an_application_that_counts_on_its_sends_does_not_wait_for_peers_that_close_and_loses_what_it_gives_up() {
    for setup in settings(309) {
        let mut world = setup.build();
        world.send(0).to(1).tagged(2).bytes(&pattern(1, 20_000)).post();
        world.settle();
        world.endpoint(0).begin_closing_after_sends();
        world.settle();
        assert!(!is_done(&mut world, 0), "{world}");
        world.endpoint(1).begin_closing();
        world.settle();
        assert!(is_done(&mut world, 0), "{world}");
        world.endpoint(0).abandon_unsent();
        assert_eq!(world.counter(0, Counter::SendsLost), 0, "its receiver wants it no more\n{world}");
    }
    for (silent, setup) in settings(310).flat_map(|setup| [(false, setup), (true, setup)]) {
        let mut world = setup.build();
        let send = world.send(0).to(1).tagged(2).bytes(&pattern(1, 20_000));
        let send = if silent { send.silent() } else { send }.post();
        world.settle();
        world.endpoint(0).begin_closing_after_sends();
        world.endpoint(0).abandon_unsent();
        world.settle();
        assert_eq!((world.failure(send), world.counter(0, Counter::SendsLost)), (Failure::Canceled, 1), "{world}");
    }
}
