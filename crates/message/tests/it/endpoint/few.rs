//! Receive memory that is not enough for all to send at a time: senders ask, and take turns.

use crate::support::{Memory, Setup, World, pattern};
use std::time::Duration;
use tidegate_message::flow::SchemeName;
use tidegate_message::{Access, Counter};

/// So many nodes with so many bytes beyond the least that is legal.
fn setup(nodes: usize, more: usize, seed: u64) -> Setup {
    Setup { few: Some(more), memory: Memory::Mailbox, scheduled: true, seed, slots: 16, ..Setup::new(nodes) }
}

/// Checks that nothing is left anywhere.
fn assert_over(world: &mut World) {
    for node in 0..world.setup.nodes {
        assert!(!world.endpoint(node).has_unsent(), "{world}");
        for gauge in [Counter::UnmatchedBytes, Counter::Violations] {
            assert_eq!(world.counter(node, gauge), 0, "{gauge:?} of {node}\n{world}");
        }
        world.assert_windows(node);
    }
}

#[test]
fn a_message_for_a_posted_receive_comes_though_there_is_one_session_for_all() {
    for seed in 1..20 {
        let mut world = setup(4, 0, seed).build();
        let receives = [1, 2, 3].map(|from| world.receive(0).from(from).tagged(7).capacity(100).post());
        let sends = [1, 2, 3].map(|from| world.send(from).to(0).tagged(7).bytes(&pattern(from, 50)).post());
        world.settle();
        for from in 1..4 {
            assert_eq!(world.bytes(receives[from - 1]), pattern(from, 50));
            assert_eq!(world.success(sends[from - 1]).length, 50);
        }
        assert_over(&mut world);
    }
}

/// The messages of eight senders fill the sessions with windows, and none is received before that of the ninth.
#[test]
fn nine_send_and_there_are_sessions_for_eight() {
    for seed in 1..20 {
        let mut world = setup(10, 21_000, seed).build();
        let sessions = world.counter(0, Counter::Sessions);
        assert!((6..=8).contains(&sessions), "{sessions}");
        for from in 1..9 {
            world.send(from).to(0).tagged(1).bytes(&pattern(from, 50)).post();
        }
        world.settle();
        assert!(world.counter(0, Counter::UnmatchedBytes) > 0, "some are stored");
        world.send(9).to(0).tagged(2).bytes(&pattern(9, 50)).post();
        world.settle();
        // A peek of all finds it too, although nothing of it is here.
        let peek = world.receive(0).tagged(2).peek().post();
        world.run_until("the peek has its answer", |world| world.is_done(peek));
        assert_eq!(world.success(peek).length, 50);
        let first = world.receive(0).tagged(2).capacity(100).post();
        world.run_until("the ninth has come", |world| world.is_done(first));
        assert_eq!(world.bytes(first), pattern(9, 50));
        let rest: Vec<_> = (1..9).map(|from| world.receive(0).from(from).tagged(1).capacity(100).post()).collect();
        world.settle();
        for (place, receive) in rest.into_iter().enumerate() {
            assert_eq!(world.bytes(receive), pattern(place + 1, 50));
        }
        assert!(world.counter(0, Counter::SessionsGiven) >= 9);
        assert_over(&mut world);
    }
}

#[test]
fn remote_operations_by_message_take_turns() {
    for seed in 1..20 {
        let mut world = setup(4, 0, seed).build();
        world.register(0, 5, &[0; 9000], &[Access::Read, Access::Write]);
        let writes: Vec<_> = (1..4)
            .map(|from| {
                let to = vec![(world.place(from, 0, 5, from as u64 * 2000), 2000)];
                world.write(from, to, &pattern(from, 2000), None)
            })
            .collect();
        world.settle();
        writes.into_iter().for_each(|write| _ = world.success(write));
        let reads: Vec<_> = (1..4)
            .map(|from| {
                let at = vec![(world.place(from, 0, 5, from as u64 * 2000), 2000)];
                world.read(from, at)
            })
            .collect();
        world.settle();
        for (place, read) in reads.into_iter().enumerate() {
            assert_eq!(world.bytes(read), pattern(place + 1, 2000));
        }
        assert_over(&mut world);
    }
}

/// A sender that is silent while others need a session gives its own back, and gets another one when it sends again.
#[test]
fn sessions_go_on_to_those_that_are_active() {
    let mut world = setup(6, 6_000, 3).build();
    let sessions = world.counter(0, Counter::Sessions);
    assert!((2..5).contains(&sessions), "{sessions}");
    for round in 0..5 {
        for from in 1..6 {
            let receive = world.receive(0).from(from).tagged(round).capacity(100).post();
            world.send(from).to(0).tagged(round).bytes(&pattern(from, 20)).post();
            world.settle();
            assert_eq!(world.bytes(receive), pattern(from, 20));
        }
    }
    assert!(world.counter(0, Counter::SessionsGiven) > 10);
    assert_over(&mut world);
}

/// Where there is memory for all, no message says a word of sessions.
#[test]
fn where_there_is_enough_for_all_nobody_asks() {
    let mut world = Setup { window: Some(0), ..Setup::new(4) }.build();
    let receives = [1, 2, 3].map(|from| world.receive(0).from(from).tagged(7).capacity(100).post());
    let _ = [1, 2, 3].map(|from| world.send(from).to(0).tagged(7).bytes(&pattern(from, 50)).post());
    world.settle();
    receives.into_iter().zip(1..).for_each(|(receive, from)| assert_eq!(world.bytes(receive), pattern(from, 50)));
    assert_eq!([Counter::Sessions, Counter::SessionsGiven].map(|counter| world.counter(0, counter)), [0, 0]);
}

/// The sends of a sender that has had its turn are not here, and a peek finds them.
#[test]
fn a_peek_finds_the_send_of_a_sender_that_has_had_its_turn() {
    for seed in 1..20 {
        let mut world = setup(4, 0, seed).build();
        let receive = world.receive(0).from(2).tagged(7).capacity(100).post();
        world.send(1).to(0).tagged(7).bytes(&pattern(1, 50)).post();
        world.settle();
        world.send(2).to(0).tagged(7).bytes(&pattern(2, 50)).post();
        world.settle();
        assert_eq!(world.bytes(receive), pattern(2, 50));
        let peek = world.receive(0).from(1).tagged(7).peek().post();
        world.run_until("the peek has its answer", |world| world.is_done(peek));
        assert_eq!(world.success(peek).length, 50);
    }
}

/// A peek that waits for a stopped sender makes no other one show its sends again and again.
#[test]
fn a_peek_that_waits_makes_nobody_go_round() {
    let mut world = setup(4, 0, 2).build();
    for from in 1..4 {
        for tag in 0..30 {
            world.send(from).to(0).tagged(tag).bytes(&pattern(from, 50)).post();
        }
    }
    world.settle();
    world.pause(1);
    let peek = world.receive(0).from(1).tagged(77).peek().post();
    world.steps(5_000);
    let before = world.counter(0, Counter::SessionsGiven);
    world.steps(20_000);
    assert_eq!(world.counter(0, Counter::SessionsGiven), before, "nothing has been posted meanwhile");
    world.resume(1);
    world.run_until("the peek has its answer", |world| world.is_done(peek));
}

/// Senders that have more to send all the time, and ask again after each turn, let a peek end that finds nothing. They
/// let the next one find what came before it.
#[test]
fn a_peek_ends_though_senders_always_have_more() {
    for seed in 1..10 {
        let mut world = setup(4, 0, seed).build();
        let peek = |world: &mut World, tag| {
            let peek = world.receive(0).tagged(tag).peek().post();
            for round in 0.. {
                if world.is_done(peek) {
                    return world.all(peek)[0].completion.result.is_ok();
                }
                assert!(round < 100, "the peek goes on\n{world}");
                for from in 1..4 {
                    world.send(from).to(0).tagged(1).bytes(&pattern(from, 50)).silent().post();
                }
                world.steps(100);
            }
            unreachable!()
        };
        for _ in 0..5 {
            assert!(!peek(&mut world, 2), "nothing has this tag");
        }
        world.send(3).to(0).tagged(2).bytes(&pattern(3, 50)).post();
        world.steps(200);
        assert!(peek(&mut world, 2), "it came before");
    }
}

/// A turn takes no longer for 2,000 sends than for 20: the sender says how many they are, and is queried (S6).
#[test]
fn a_turn_takes_no_longer_where_many_sends_wait() {
    let steps = |sends: u64| {
        let mut world = setup(4, 0, 2).build();
        for from in 1..4 {
            (0..sends).for_each(|_| _ = world.send(from).to(0).tagged(1).bytes(&pattern(from, 50)).silent().post());
        }
        world.send(3).to(0).tagged(2).bytes(&pattern(3, 50)).post();
        let mut steps = [77, 2].map(|tag| {
            let peek = world.receive(0).tagged(tag).peek().post();
            let took = steps_until(&mut world, |world| world.is_done(peek));
            assert_eq!(world.all(peek)[0].completion.result.is_ok(), tag == 2, "only one has tag 2");
            took
        });
        let receive = world.receive(0).tagged(2).capacity(100).post();
        let took = steps_until(&mut world, |world| world.is_done(receive));
        assert_eq!(world.bytes(receive), pattern(3, 50));
        steps.sort();
        steps[1].max(took)
    };
    let [few, many] = [20, 2_000].map(steps);
    assert!(many <= few + few / 2, "{few} steps where 20 wait, {many} where 2,000 do");
}

/// One who has the turn and never stops sending, with receives that nothing meets, or that are posted again and again.
#[test]
fn one_that_floods_holds_up_neither_others_nor_its_own_messages() {
    // Sends in ten steps, receives that nothing meets, whether they are posted late, and those for the flood.
    for (rate, others, is_late, again) in
        [(8, 1, false, 0), (4, 1, true, 0), (1, 100, true, 0), (2, 0, false, 2), (8, 0, true, 3)]
    {
        let mut world = Setup { operations: 1 << 20, ..setup(4, 0, 3) }.build();
        let flood = |world: &mut World| {
            (0..rate).for_each(|_| _ = world.send(1).to(0).tagged(1).bytes(&pattern(1, 50)).silent().post());
            world.steps(10);
        };
        let post = |world: &mut World| {
            (0..others).for_each(|tag| _ = world.receive(0).tagged(100 + tag).capacity(100).post());
            [(1, 2), (2, 3)].map(|(from, tag)| world.receive(0).from(from).tagged(tag).capacity(100).post())
        };
        let early = (!is_late).then(|| post(&mut world));
        (0..50).for_each(|_| flood(&mut world));
        let receives = early.unwrap_or_else(|| post(&mut world));
        let mut of_flood: Vec<_> =
            (0..again).map(|_| world.receive(0).from(1).tagged(1).capacity(100).post()).collect();
        (0..20).for_each(|_| flood(&mut world));
        for (from, tag) in [(1, 2), (2, 3)] {
            world.send(from).to(0).tagged(tag).bytes(&pattern(from, 50)).silent().post();
        }
        let mut rounds = 0;
        while !receives.iter().all(|receive| world.is_done(*receive)) {
            flood(&mut world);
            for receive in &mut of_flood {
                if world.is_done(*receive) {
                    *receive = world.receive(0).from(1).tagged(1).capacity(100).post();
                }
            }
            rounds += 1;
            assert!(
                rounds < 1000,
                "{rate} sends, {others} receives, late: {is_late}, {again} again: it goes on\n{world}"
            );
        }
        println!("{rate} sends, {others} receives, late: {is_late}, {again} again: {rounds} rounds");
    }
}

/// A flood into receives that are posted again all the time, where mailboxes are so small that there is always
/// something to tell its sender.
#[test]
fn one_that_always_has_to_be_told_something_holds_up_no_other() {
    for &scheme in SchemeName::ALL {
        for (slots, seed) in [(3, 1), (4, 2), (3, 3), (4, 4)] {
            let base = setup(4, 0, seed);
            let mut world = Setup { scheme, slots, credit_slots: 1, operations: 1 << 20, ..base }.build();
            let mut of_flood = Vec::new();
            let mut flood = |world: &mut World| {
                (0..3).for_each(|_| _ = world.send(1).to(0).tagged(1).bytes(&pattern(1, 50)).silent().post());
                world.steps(10);
                world.pass(Duration::from_micros(200));
                of_flood.retain(|receive| !world.is_done(*receive));
                while of_flood.len() < 8 {
                    of_flood.push(world.receive(0).from(1).tagged(1).capacity(100).post());
                }
            };
            (0..30).for_each(|_| flood(&mut world));
            let receive = world.receive(0).from(2).tagged(3).capacity(100).post();
            world.send(2).to(0).tagged(3).bytes(&pattern(2, 50)).silent().post();
            let mut rounds = 0;
            while !world.is_done(receive) {
                flood(&mut world);
                rounds += 1;
                assert!(rounds < 2000, "{scheme:?}, {slots} slots, seed {seed}: it goes on\n{world}");
            }
        }
    }
}

/// Receives that are posted one after the other get several messages for each turn, though others need one.
#[test]
fn a_turn_serves_receives_that_follow_each_other() {
    const EACH: usize = 64;
    for (from_anyone, turns_most) in [(true, 30), (false, 50)] {
        let mut world = setup(4, 0, 5).build();
        for from in 1..4 {
            (0..EACH).for_each(|_| _ = world.send(from).to(0).tagged(1).bytes(&pattern(from, 50)).silent().post());
        }
        world.settle();
        let before = world.counter(0, Counter::SessionsGiven);
        for number in 0..3 * EACH {
            let receive = world.receive(0).tagged(1).capacity(100);
            let receive = if from_anyone { receive } else { receive.from(1 + number / EACH) }.post();
            world.run_until("it has its message", |world| world.is_done(receive));
        }
        let turns = world.counter(0, Counter::SessionsGiven) - before;
        println!("from anyone: {from_anyone}: {turns} turns");
        assert!(turns <= turns_most, "{turns} turns for {} messages", 3 * EACH);
        world.settle();
        assert_over(&mut world);
    }
}

/// Receives for several messages, which a flood fills or, with messages without bytes, never does.
#[test]
fn a_flood_into_receives_for_several_messages_holds_up_no_other() {
    for (size, rate) in [(0, 4), (0, 8), (8, 8), (50, 4)] {
        let mut world = Setup { operations: 1 << 20, ..setup(4, 0, 3) }.build();
        let mut sent = 0;
        let mut flood = |world: &mut World| {
            for _ in 0..rate {
                world.send(1).to(0).bytes(&pattern(1, size)).data(sent).silent().post();
                sent += 1;
            }
            world.steps(10);
        };
        let multi = |world: &mut World| world.receive(0).capacity(4000).multi(100).post();
        let mut receives = [multi(&mut world), multi(&mut world)];
        (0..50).for_each(|_| flood(&mut world));
        let victim = world.receive(0).from(2).tagged(3).capacity(100).post();
        world.send(2).to(0).tagged(3).bytes(&pattern(2, 50)).silent().post();
        let mut rounds = 0;
        while !world.is_done(victim) {
            flood(&mut world);
            for receive in &mut receives {
                if world.all(*receive).iter().any(|done| done.completion.released) {
                    *receive = multi(&mut world);
                }
            }
            rounds += 1;
            assert!(rounds < 1000, "{rate} sends of {size} bytes: the other waits\n{world}");
        }
        println!("{rate} sends of {size} bytes in ten steps: {rounds} rounds");
        if size == 0 {
            world.settle();
            let data = world.all(receives[0]).iter().filter_map(|done| done.completion.data);
            assert!(data.eq(0..sent), "all come in the end, in order");
        }
    }
}

/// A flood into untagged receives for several messages, which come first and always take more, holds up no receive
/// of a tagged message of its sender, and no peek for one, not even one after the other.
#[test]
fn receives_for_several_messages_hold_up_none_of_the_other_queue() {
    for (rate, is_peek) in [(1, true), (8, true), (2, false), (8, false), (16, false)] {
        let mut world = Setup { operations: 1 << 20, ..setup(3, 0, 3) }.build();
        let flood = |world: &mut World| {
            (0..rate).for_each(|_| _ = world.send(1).to(0).bytes(&pattern(1, 50)).silent().post());
            world.steps(10);
        };
        let multi = |world: &mut World| world.receive(0).capacity(1 << 20).multi(100).post();
        let mut receives = [multi(&mut world), multi(&mut world)];
        (0..50).for_each(|_| flood(&mut world));
        world.send(1).to(0).tagged(3).bytes(&pattern(2, 50)).silent().post();
        let post = |world: &mut World| {
            let receive = world.receive(0).from(1).tagged(3);
            if is_peek { receive.peek() } else { receive.capacity(100) }.post()
        };
        let (mut found, mut rounds) = (post(&mut world), 0);
        while !world.is_done(found) || world.all(found)[0].completion.result.is_err() {
            if world.is_done(found) {
                found = post(&mut world);
            }
            flood(&mut world);
            for receive in &mut receives {
                if world.all(*receive).iter().any(|done| done.completion.released) {
                    *receive = multi(&mut world);
                }
            }
            rounds += 1;
            assert!(rounds < 1500, "{rate} sends, by a peek: {is_peek}: it is not found\n{world}");
        }
        println!("{rate} sends, by a peek: {is_peek}: {rounds} rounds");
    }
}

/// The same where so many sends of the flood are there at any time, and no other sender needs a turn.
#[test]
fn a_steady_flood_of_one_queue_holds_up_no_receive_of_the_other() {
    for outstanding in [4, 16, 17, 40] {
        let mut world = setup(3, 0, 1).build();
        let mut open = Vec::new();
        let mut flood = |world: &mut World| {
            open.retain(|send| !world.is_done(*send));
            while open.len() < outstanding {
                open.push(world.send(1).to(0).bytes(&pattern(1, 50)).post());
            }
            world.steps(3);
        };
        for _ in 0..2 {
            world.receive(0).capacity(1 << 20).multi(100).post();
        }
        (0..200).for_each(|_| flood(&mut world));
        world.send(1).to(0).tagged(3).bytes(&pattern(2, 50)).silent().post();
        (0..200).for_each(|_| flood(&mut world));
        let receive = world.receive(0).from(1).tagged(3).capacity(100).post();
        let mut rounds = 0;
        while !world.is_done(receive) {
            flood(&mut world);
            rounds += 1;
            assert!(rounds < 500, "{outstanding} at any time: it waits\n{world}");
        }
        println!("{outstanding} at any time: {rounds} rounds");
    }
}

/// A peek ends though the only sender never stops.
#[test]
fn a_peek_ends_beside_one_endless_flood() {
    for rate in [1, 4, 16] {
        let mut world = Setup { operations: 1 << 20, ..setup(3, 0, 3) }.build();
        let flood = |world: &mut World| {
            (0..rate).for_each(|_| _ = world.send(1).to(0).tagged(1).bytes(&pattern(1, 50)).silent().post());
            world.steps(10);
        };
        (0..100).for_each(|_| flood(&mut world));
        for _ in 0..5 {
            let peek = world.receive(0).tagged(2).peek().post();
            let rounds = (0..100).find(|_| {
                flood(&mut world);
                world.is_done(peek)
            });
            assert!(rounds.is_some(), "{rate} sends in ten steps: the peek goes on\n{world}");
        }
    }
}

/// Steps until something is so, in tens.
fn steps_until(world: &mut World, is_so: impl Fn(&World) -> bool) -> usize {
    (1..10_000)
        .find(|_| {
            world.steps(10);
            is_so(world)
        })
        .unwrap_or_else(|| panic!("it takes too long\n{world}"))
}

/// A sender that has sent everything, and whose program makes no call any more, holds up nobody.
#[test]
fn a_sender_that_computes_has_given_its_turn_back() {
    for seed in 1..10 {
        let mut world = setup(4, 0, seed).build();
        let first = world.receive(0).from(1).tagged(7).capacity(100).post();
        let send = world.send(1).to(0).tagged(7).bytes(&pattern(1, 50)).post();
        world.run_until("it has sent everything", |world| world.is_done(first) && world.is_done(send));
        world.settle();
        assert!(!world.endpoint(1).has_work_left());
        world.pause(1);
        let second = world.receive(0).from(2).tagged(7).capacity(100).post();
        world.send(2).to(0).tagged(7).bytes(&pattern(2, 50)).post();
        world.settle();
        assert_eq!(world.bytes(second), pattern(2, 50));
    }
}

/// The link could not say what the receiver tells its senders when the first operation was for it.
#[test]
fn a_remote_operation_waits_until_it_is_known_that_one_has_to_ask() {
    let mut world = setup(4, 0, 2).build();
    world.network().unknown_for = 3;
    let memory = world.register(0, 1, &[7; 64], &[Access::Read, Access::Write]);
    let place = world.place(1, 0, 1, 0);
    let write = world.write(1, vec![(place, 8)], &[1; 8], None);
    (0..10).for_each(|_| world.settle());
    world.success(write);
    assert_eq!((&memory.bytes()[..8], world.counter(0, Counter::Violations)), (&[1; 8][..], 0));
}
