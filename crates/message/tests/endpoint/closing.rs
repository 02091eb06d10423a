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
    !world.endpoint(node).has_unsent()
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
#[test]
fn sends_in_the_applications_memory_that_nobody_has_matched_are_not_waited_for() {
    for setup in settings(307) {
        let mut world = setup.build();
        world.send(0).to(1).tagged(2).bytes(&pattern(1, 20_000)).post();
        world.settle();
        world.endpoint(0).begin_closing();
        world.settle();
        assert!(is_done(&mut world, 0), "{world}");
    }
}

/// As programs of MPI do: they may free the request of a send, and end.
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
    for (silent, setup) in settings(310).flat_map(|setup| [(false, setup.clone()), (true, setup)]) {
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
