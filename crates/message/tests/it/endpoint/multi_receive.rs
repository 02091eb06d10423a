//! Buffers that take many messages.

use crate::support::{Handle, Setup, World, pattern};
use tidegate_message::{Counter, Failure};

/// Where each message lies and how long it is; checks that none lies over another.
fn places(world: &World, multi: Handle) -> Vec<(usize, usize)> {
    let done = world.all(multi).iter().filter(|done| done.completion.result != Err(Failure::Canceled));
    let places: Vec<_> = done.map(|done| (done.completion.offset, done.completion.length)).collect();
    let mut sorted = places.clone();
    sorted.sort_unstable();
    for pair in sorted.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0, "messages overlap: {sorted:?}\n{world}");
    }
    places
}

#[test]
fn messages_fill_a_multi_receive_one_after_another() {
    for setup in Setup::all(2, 41) {
        let mut world = setup.build();
        let multi = world.receive(1).capacity(1000).multi(100).post();
        for (n, size) in [300, 0, 41, 500].into_iter().enumerate() {
            world.send(0).to(1).bytes(&pattern(n, size)).data(n as u64).post();
        }
        world.settle();
        assert_eq!(places(&world, multi), [(0, 300), (300, 0), (300, 41), (341, 500)], "{world}");
        for (n, done) in world.all(multi).iter().enumerate() {
            assert_eq!(done.completion.data, Some(n as u64));
            assert_eq!(done.bytes, pattern(n, done.completion.length));
            assert!(!done.completion.released, "159 bytes are left, 100 are enough");
        }
        world.send(0).to(1).bytes(&pattern(4, 60)).post();
        world.settle();
        assert!(world.all(multi)[4].completion.released, "99 bytes are left\n{world}");
    }
}

#[test]
fn the_next_multi_receive_goes_on_where_the_first_is_released() {
    for setup in Setup::all(2, 42) {
        for size in [10, 700, 5000] {
            for posted_late in [false, true] {
                let mut world = setup.build();
                let post = |world: &mut World| world.receive(1).capacity(5 * size).multi(size).scattered().post();
                let mut buffers = Vec::new();
                if !posted_late {
                    buffers = (0..4).map(|_| post(&mut world)).collect();
                }
                let sends: Vec<_> = (0..20).map(|n| world.send(0).to(1).bytes(&pattern(n, size)).post()).collect();
                world.settle();
                if posted_late {
                    buffers = (0..4).map(|_| post(&mut world)).collect();
                    world.settle();
                }
                sends.into_iter().for_each(|send| assert_eq!(world.success(send).length, size));
                for (index, buffer) in buffers.into_iter().enumerate() {
                    let places = places(&world, buffer);
                    assert_eq!(places.len(), 5, "{world}");
                    for (done, (offset, _)) in world.all(buffer).iter().zip(places) {
                        assert!(done.bytes == pattern(5 * index + offset / size, size), "{world}");
                    }
                    let released: Vec<_> = world.all(buffer).iter().map(|done| done.completion.released).collect();
                    assert_eq!(released, [false, false, false, false, true], "with the last one, not before\n{world}");
                }
            }
        }
    }
}

#[test]
fn messages_of_several_senders_share_a_multi_receive() {
    for setup in Setup::all(4, 43) {
        let mut world = setup.build();
        let multi = world.receive(0).capacity(60_000).multi(4000).post();
        for n in 0..8 {
            for from in 1..4 {
                let size = [1900, 10, 3000, 97][(n + from) % 4];
                world.send(from).to(0).bytes(&pattern(10 * from + n, size)).data((10 * from + n) as u64).post();
            }
        }
        world.settle();
        assert_eq!(places(&world, multi).len(), 24, "{world}");
        for done in world.all(multi) {
            let seed = done.completion.data.expect("data") as usize;
            assert_eq!(done.bytes, pattern(seed, [1900, 10, 3000, 97][(seed % 10 + seed / 10) % 4]), "{world}");
            assert_eq!(done.completion.source, Some(world.target(0, seed / 10)));
        }
    }
}

#[test]
fn the_release_comes_after_the_last_message_has_all_its_bytes() {
    // The slow message was placed first and ends last; the other one leaves too little room.
    for setup in Setup::all(3, 44) {
        for slow in [2000, 20_000] {
            let mut world = setup.build();
            let multi = world.receive(0).capacity(slow + 100).multi(90).post();
            let first = world.send(1).to(0).bytes(&pattern(1, slow)).post();
            world.run_until("it has been placed", |world| world.counter(0, Counter::PacketsReceived) > 0);
            world.send(2).to(0).bytes(&pattern(2, 50)).post();
            world.settle();
            world.success(first);
            let done = world.all(multi);
            assert_eq!(done.len(), 2, "{world}");
            for done in done {
                let seed = if done.completion.length == 50 { 2 } else { 1 };
                assert_eq!(done.bytes, pattern(seed, done.completion.length), "{world}");
            }
            assert_eq!([done[0].completion.released, done[1].completion.released], [false, true], "{world}");
        }
    }
}

#[test]
fn a_message_longer_than_the_room_left_is_cut() {
    for setup in Setup::all(2, 45) {
        for size in [600, 6000] {
            let mut world = setup.build();
            let multi = world.receive(1).capacity(size + 100).multi(50).post();
            for n in 0..2 {
                world.send(0).to(1).bytes(&pattern(n, size)).post();
            }
            world.settle();
            let mut done = world.all(multi).to_vec();
            assert_eq!(done.iter().map(|done| done.completion.released).collect::<Vec<_>>(), [false, true], "{world}");
            // A long message that is cut to 100 bytes may be complete before the whole one in front of it.
            done.sort_by_key(|done| done.completion.offset);
            assert_eq!(done[0].completion.result, Ok(()));
            assert!(done[0].bytes == pattern(0, size), "{world}");
            assert_eq!(done[1].completion.result, Err(Failure::Truncated { full: size }), "{world}");
            assert_eq!((done[1].completion.offset, &done[1].bytes[..]), (size, &pattern(1, size)[..100]));
        }
    }
}

#[test]
fn a_canceled_multi_receive_goes_back_to_its_owner() {
    let mut world = Setup::new(2).build();
    let multi = world.receive(1).capacity(1000).multi(100).post();
    world.send(0).to(1).bytes(&pattern(0, 30)).post();
    world.settle();
    assert!(world.cancel(multi));
    world.settle();
    let last = &world.all(multi).last().expect("completions").completion;
    assert_eq!((&last.result, last.released), (&Err(Failure::Canceled), true));
    let next = world.receive(1).capacity(30).post();
    world.send(0).to(1).bytes(&pattern(1, 30)).post();
    world.settle();
    assert_eq!(world.bytes(next), pattern(1, 30));
    assert_eq!(world.all(multi).len(), 2);
}

#[test]
fn a_multi_receive_that_is_canceled_while_a_message_arrives_goes_back_with_that_message() {
    for setup in Setup::all(2, 46) {
        for size in [2000, 20_000] {
            let mut world = setup.build();
            let multi = world.receive(1).capacity(30_000).multi(100).post();
            let send = world.send(0).to(1).bytes(&pattern(0, size)).post();
            world.run_until("the first packet is there", |world| world.counter(1, Counter::PacketsReceived) > 0);
            if world.is_done(multi) {
                continue;
            }
            assert!(world.cancel(multi));
            world.settle();
            world.success(send);
            let done = world.all(multi);
            let released: Vec<_> = done.iter().map(|done| done.completion.released).collect();
            assert_eq!(released, [false, true], "once, and not while bytes still arrive\n{world}");
            assert_eq!(done[0].completion.result, Err(Failure::Canceled));
            assert!(done[1].bytes == pattern(0, size), "{world}");
        }
    }
}

#[test]
fn one_buffer_takes_a_flood_that_found_no_room_before() {
    for setup in Setup::all(2, 47) {
        for (window, size) in [(0, 0), (0, 40), (600, 40), (3000, 300)] {
            let mut world = Setup { window: Some(window), ..setup }.build();
            let sends: Vec<_> = (0..60).map(|n| world.send(0).to(1).bytes(&pattern(n, size)).post()).collect();
            world.settle();
            let multi = world.receive(1).from(0).capacity(60 * size + 100).multi(10).post();
            world.settle();
            let mut done = world.all(multi).to_vec();
            assert_eq!(done.len(), 60, "{world}");
            // Where the messages are is in order; when they are complete need not be.
            done.sort_by_key(|done| done.completion.offset);
            for (n, done) in done.iter().enumerate() {
                assert_eq!(done.completion.offset, n * size, "{world}");
                assert!(done.bytes == pattern(n, size), "message {n}\n{world}");
            }
            sends.iter().for_each(|send| assert_eq!(world.success(*send).length, size));
        }
    }
}

/// Long ones are pulled, which takes longer than short ones take to come.
#[test]
fn messages_of_one_sender_are_reported_in_their_order_and_the_buffer_with_the_last() {
    let sizes = [10, 5000, 20, 4000, 0, 30, 7000, 1];
    for setup in Setup::all(3, 45) {
        for posted_late in [false, true] {
            let mut world = setup.build();
            let post = |world: &mut World| world.receive(2).capacity(40_000).multi(20_000).post();
            let early = (!posted_late).then(|| post(&mut world));
            for (n, size) in sizes.into_iter().enumerate() {
                for from in 0..2 {
                    world.send(from).to(2).bytes(&pattern(n, size)).data(n as u64).post();
                }
            }
            world.settle();
            let multi = early.unwrap_or_else(|| post(&mut world));
            world.settle();
            let all = world.all(multi);
            for from in 0..2 {
                let of_one = all.iter().filter(|done| done.completion.source == Some(world.target(2, from)));
                let numbers: Vec<_> = of_one.filter_map(|done| done.completion.data).collect();
                assert!(numbers.is_sorted(), "{numbers:?} from {from} of {setup:?}");
            }
            let released: Vec<_> = all.iter().map(|done| done.completion.released).collect();
            let last = released.len() - 1;
            assert!(released[..last].iter().all(|released| !released) && released[last], "{released:?} of {setup:?}");
        }
    }
}

#[test]
fn what_waits_behind_a_message_that_never_comes_is_reported_all_the_same() {
    for setup in Setup::all(3, 46) {
        let mut world = setup.build();
        let multi = world.receive(1).capacity(40_000).multi(100).post();
        for (n, size) in [9000, 10, 20].into_iter().enumerate() {
            world.send(0).to(1).bytes(&pattern(n, size)).data(n as u64).post();
        }
        world.steps(3);
        world.kill(0);
        world.settle();
        world.send(2).to(1).bytes(&pattern(7, 30)).data(7).post();
        world.settle();
        let all = world.all(multi);
        assert_eq!(all.last().unwrap().completion.data, Some(7), "{world}");
        for done in all.iter().filter(|done| done.completion.result.is_ok()) {
            let (n, length) = (done.completion.data.unwrap() as usize, done.completion.length);
            assert_eq!(done.bytes, pattern(n, length));
        }
    }
}

#[test]
fn a_message_that_is_cut_off_counts_whole_whether_it_was_pulled_or_came_whole() {
    for setup in Setup::all(2, 47) {
        for size in [1500, 5000] {
            let mut world = setup.build();
            let multi = world.receive(1).capacity(1000).multi(100).post();
            world.send(0).to(1).bytes(&pattern(1, size)).post();
            world.settle();
            assert_eq!(world.failure(multi), Failure::Truncated { full: size }, "{world}");
            assert_eq!(world.counter(1, Counter::BytesReceived), size as u64, "{setup:?}");
        }
    }
}
