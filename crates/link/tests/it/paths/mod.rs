//! One endpoint over two links: some peers in shared memory, the others on a trivial network ([`local_link`]), which
//! proves that a network is one folder that implements `Link`.

mod local_link;
mod support;

use support::{FAR, Memory, World, pattern};
use tidegate_flow::SchemeName;
use tidegate_link::{Path, Paths};
use tidegate_message::{Access, Completion, Failure, Link, MatchFlags, Target};

const SCHEMES: [SchemeName; 4] = [SchemeName::None, SchemeName::Static, SchemeName::Dynamic, SchemeName::RefuseThird];

fn assert_lost(outcome: &Completion, who: &str) {
    match &outcome.result {
        Err(Failure::PeerLost { peer }) => assert!(peer.contains(who), "{peer}"),
        other => panic!("{other:?} is no loss of {who}"),
    }
}

#[test]
fn receives_from_anybody_match_messages_of_either_link_in_the_order_of_each_sender() {
    for scheme in SCHEMES {
        let mut world = World::new(scheme, 3);
        // Short, cut, and long ones; half of the receives are posted before the messages come.
        let lengths = [0, 8, 500, 2048, 3000, 100_000];
        let into: Vec<Memory> = (0..2 * lengths.len()).map(|_| Memory::new(&vec![0; 100_000])).collect();
        let count = into.len();
        (0..count / 2).for_each(|at| world.middle.receive(at, None, 7, into[at]));
        for (at, length) in lengths.into_iter().enumerate() {
            let (to_near, to_far) = (world.near_to_middle, world.far_to_middle);
            world.near().send(at, to_near, 7, Memory::new(&pattern(1 + at as u8, length)));
            world.far().send(at, to_far, 7, Memory::new(&pattern(101 + at as u8, length)));
            world.steps(3);
        }
        world.steps(50);
        (count / 2..count).for_each(|at| world.middle.receive(at, None, 7, into[at]));
        let mut next = [0, 0];
        for (at, memory) in into.iter().enumerate() {
            let outcome = world.outcome(at);
            assert_eq!(outcome.result, Ok(()), "{scheme:?}");
            let is_far = outcome.source == Some(Target::Peer(world.to_far));
            assert!(is_far || outcome.source == Some(Target::Peer(world.to_near)));
            let number = &mut next[usize::from(is_far)];
            let (length, seed) = (lengths[*number], *number as u8 + if is_far { 101 } else { 1 });
            assert_eq!(outcome.length, length, "{scheme:?}: messages of one sender stay in order");
            assert!(memory.bytes()[..length] == pattern(seed, length), "{scheme:?}");
            *number += 1;
        }
        assert_eq!(next, [lengths.len(); 2]);
    }
}

#[test]
fn messages_go_both_ways_and_a_peek_finds_those_of_either_link() {
    for scheme in SCHEMES {
        let mut world = World::new(scheme, 2);
        let (near_to_middle, far_to_middle) = (world.near_to_middle, world.far_to_middle);
        let memory = [10, 5000].map(|length| Memory::new(&pattern(3, length)));
        let into = [10, 5000, 10, 5000].map(|length| Memory::new(&vec![0; length]));
        for (at, memory) in memory.into_iter().enumerate() {
            world.middle.send(at, world.to_near, at as u64, memory);
            world.middle.send(10 + at, world.to_far, at as u64, memory);
            world.near().receive(at, Some(near_to_middle), at as u64, into[at]);
            world.far().receive(at, Some(far_to_middle), at as u64, into[2 + at]);
        }
        for context in [0, 1, 10, 11] {
            assert_eq!(world.outcome(context).result, Ok(()), "{scheme:?}");
        }
        world.until("the messages", |world| world.near().done.len() + world.far().done.len() == 4);
        assert!(into[1].bytes() == memory[1].bytes() && into[3].bytes() == memory[1].bytes(), "{scheme:?}");
        world.near().send(5, near_to_middle, 8, memory[0]);
        world.far().send(5, far_to_middle, 9, memory[0]);
        world.steps(20);
        for (context, tag, source) in [(20, 8, world.to_near), (21, 9, world.to_far)] {
            let flags = MatchFlags { peek: true, ..MatchFlags::default() };
            world.middle.post(context, None, tag, Memory::new(&[]), flags);
            assert_eq!(world.outcome(context).source, Some(Target::Peer(source)), "{scheme:?}");
        }
        assert_eq!(world.far().endpoint.link().exposed(), 0);
        let middle = world.middle.endpoint.link_mut().second().unwrap().exposed();
        assert_eq!(middle, 0, "what was exposed for a message is hidden when that has been received");
    }
}

#[test]
fn remote_operations_go_by_the_link_of_their_target() {
    const KEY: u64 = 6;
    for (scheme, is_published) in SCHEMES.into_iter().flat_map(|scheme| [(scheme, false), (scheme, true)]) {
        let mut world = World::new(scheme, 2);
        let regions = [5, 6, 7].map(|seed| Memory::new(&pattern(seed, 10_000)));
        let both = [Access::Read, Access::Write];
        world.middle.endpoint.register(KEY, regions[0].buffer(), &both);
        world.near().endpoint.register(KEY, regions[1].buffer(), &both);
        world.far().endpoint.register(KEY, regions[2].buffer(), &both);
        if is_published {
            world.far().endpoint.link_mut().publish_region(KEY, &regions[2].buffer());
            world.middle.endpoint.link_mut().second().unwrap().publish_region(KEY, &regions[0].buffer());
        }
        let bytes = Memory::new(&[9; 3000]);
        let into = [(); 3].map(|()| Memory::new(&[0; 4000]));
        let (to_near, to_far, near_to_middle, far_to_middle) =
            (world.to_near, world.to_far, world.near_to_middle, world.far_to_middle);
        world.middle.read(1, to_near, KEY, 100, into[0]);
        world.middle.read(2, to_far, KEY, 100, into[1]);
        world.middle.write(3, to_near, KEY, 5000, bytes);
        world.middle.write(4, to_far, KEY, 5000, bytes);
        world.middle.write(5, to_far, KEY, 9000, bytes);
        for context in 1..=4 {
            assert_eq!(world.outcome(context).result, Ok(()), "{scheme:?}, {context}");
        }
        assert_eq!(world.outcome(5).result, Err(Failure::Denied), "it leaves the region");
        for (at, region) in [(0, regions[1]), (1, regions[2])] {
            assert!(into[at].bytes() == pattern(5 + 1 + at as u8, 10_000)[100..4100], "{scheme:?}");
            assert!(region.bytes()[5000..8000] == [9; 3000] && region.bytes()[8000] != 9, "{scheme:?}");
        }
        world.far().read(1, far_to_middle, KEY, 0, into[2]);
        world.near().write(1, near_to_middle, KEY, 6000, bytes);
        world.until("the others' operations", |world| !world.far().done.is_empty() && !world.near().done.is_empty());
        assert!(into[2].bytes() == pattern(5, 10_000)[..4000] && regions[0].bytes()[6000..9000] == [9; 3000]);
    }
}

#[test]
fn who_leaves_by_one_link_is_told_and_its_place_goes_to_another_of_either() {
    for (scheme, orderly) in SCHEMES.into_iter().flat_map(|scheme| [(scheme, false), (scheme, true)]) {
        let mut world = World::new(scheme, 2);
        let (short, into) = (Memory::new(&[7; 8]), Memory::new(&[0; 8]));
        let (to_far, to_near, to_middle) = (world.to_far, world.to_near, world.far_to_middle);
        // What it sent is received, and then what waits for it ends.
        world.far().send(1, to_middle, 7, short);
        world.middle.receive(1, Some(to_far), 8, Memory::new(&[0; 8]));
        world.middle.send(2, to_far, 8, Memory::new(&pattern(1, 100_000)));
        world.middle.receive(3, Some(to_near), 8, into);
        world.far = None;
        world.network.borrow_mut().depart(FAR, orderly);
        assert_lost(&world.outcome(2), "node 1");
        if !orderly {
            assert_lost(&world.outcome(1), "node 1");
        }
        world.middle.receive(4, None, 7, Memory::new(&[0; 8]));
        assert_eq!(world.outcome(4).source, Some(Target::Peer(to_far)), "{scheme:?}: it was sent before");
        // The other is not concerned.
        let near_to_middle = world.near_to_middle;
        world.near().send(1, near_to_middle, 8, short);
        assert_eq!((world.outcome(3).result, into.bytes()), (Ok(()), vec![7; 8]));
        world.until("the place", |world| world.middle.endpoint.link().path(to_far).is_none());
        let to_middle = world.another_far(2, scheme);
        world.far().send(1, to_middle, 9, short);
        world.middle.receive(5, None, 9, into);
        assert_eq!(world.outcome(5).source, Some(Target::Peer(to_far)), "{scheme:?}: the place has a new owner");
    }
}

#[test]
fn who_leaves_shared_memory_is_told_while_the_network_goes_on() {
    for scheme in SCHEMES {
        let mut world = World::new(scheme, 2);
        let (to_near, to_far, far_to_middle) = (world.to_near, world.to_far, world.far_to_middle);
        let near_to_middle = world.near_to_middle;
        world.near().send(1, near_to_middle, 7, Memory::new(&[7; 8]));
        world.middle.receive(1, Some(to_near), 7, Memory::new(&[0; 8]));
        assert_eq!(world.outcome(1).result, Ok(()));
        world.middle.send(2, to_near, 8, Memory::new(&pattern(1, 100_000)));
        world.steps(10);
        world.near = None;
        assert_lost(&world.outcome(2), "pid");
        world.middle.receive(3, Some(to_far), 8, Memory::new(&[0; 8]));
        world.far().send(3, far_to_middle, 8, Memory::new(&[7; 8]));
        assert_eq!(world.outcome(3).result, Ok(()));
        world.until("the place", |world| world.middle.endpoint.link().path(to_near).is_none());
    }
}

#[test]
fn a_write_that_fails_late_concerns_the_peers_of_its_link_only() {
    for scheme in SCHEMES {
        let mut world = World::new(scheme, 2);
        let (to_near, to_far, far_to_middle) = (world.to_near, world.to_far, world.far_to_middle);
        world.middle.send(1, to_far, 1, Memory::new(&pattern(1, 100_000)));
        world.middle.send(2, to_near, 1, Memory::new(&pattern(2, 100_000)));
        world.middle.receive(3, Some(to_far), 3, Memory::new(&[0; 8]));
        world.middle.receive(4, Some(to_far), 4, Memory::new(&[0; 8]));
        world.far().send(1, far_to_middle, 3, Memory::new(&[3; 8]));
        world.network.borrow_mut().fail_late(0, FAR);
        assert_lost(&world.outcome(1), "does not answer");
        assert_eq!(world.outcome(3).result, Ok(()), "{scheme:?}: what it sent is received");
        assert_lost(&world.outcome(4), "node 1");
        let (near_to_middle, into) = (world.near_to_middle, Memory::new(&[0; 100_000]));
        world.near().receive(1, Some(near_to_middle), 1, into);
        assert_eq!((world.outcome(2).result, into.bytes() == pattern(2, 100_000)), (Ok(()), true), "{scheme:?}");
    }
}

#[test]
fn what_touches_memory_of_the_application_ends_when_it_touches_it_no_more() {
    const KEY: u64 = 6;
    for scheme in SCHEMES {
        let mut world = World::new(scheme, 2);
        let (to_far, to_near, far_to_middle) = (world.to_far, world.to_near, world.far_to_middle);
        let region = Memory::new(&[1; 4000]);
        world.far().endpoint.register(KEY, region.buffer(), &[Access::Read]);
        world.far().endpoint.link_mut().publish_region(KEY, &region.buffer());
        world.network.borrow_mut().holds_transfers = true;
        let into = [100_000, 4000].map(|length| Memory::new(&vec![0; length]));
        world.middle.receive(1, None, 1, into[0]);
        world.far().send(1, far_to_middle, 1, Memory::new(&pattern(1, 100_000)));
        world.middle.read(2, to_far, KEY, 0, into[1]);
        world.steps(50);
        world.far = None;
        world.network.borrow_mut().depart(FAR, false);
        world.middle.receive(3, Some(to_far), 9, Memory::new(&[]));
        assert_lost(&world.outcome(3), "node 1");
        world.steps(50);
        assert!(world.network.borrow().not_stopped == 2, "{scheme:?}: both were to be stopped");
        assert!(world.middle.outcome(1).is_none() && world.middle.outcome(2).is_none(), "they cannot be stopped");
        assert!(world.middle.endpoint.link().path(to_far).is_some(), "its name is still to be told");
        let (near_to_middle, other) = (world.near_to_middle, Memory::new(&[0; 8]));
        world.middle.receive(4, Some(to_near), 4, other);
        world.near().send(4, near_to_middle, 4, Memory::new(&[4; 8]));
        assert_eq!(world.outcome(4).result, Ok(()), "{scheme:?}: others go on");
        world.network.borrow_mut().holds_transfers = false;
        [1, 2].into_iter().for_each(|context| assert_lost(&world.outcome(context), "node 1"));
        assert_eq!(into.map(|memory| memory.bytes()[0]), [0xee; 2], "until then they did");
        world.until("the place", |world| world.middle.endpoint.link().path(to_far).is_none());
    }
}

#[test]
fn who_finds_no_place_is_told_that_nobody_hears_it() {
    for scheme in SCHEMES {
        let mut world = World::new(scheme, 2);
        let near_to_middle = world.near_to_middle;
        let to_middle = world.another_far(2, scheme);
        // One that is sent at once, and one that waits for an answer.
        world.far().send(1, to_middle, 1, Memory::new(&[1; 8]));
        world.far().send(2, to_middle, 1, Memory::new(&pattern(1, 100_000)));
        let (mut late, near_the_middle) = world.another_near(2, scheme);
        let late_memory = Memory::new(&pattern(1, 1000));
        world.middle.receive(1, None, 1, Memory::new(&[0; 8]));
        world.until("both to be told", |world| {
            // Without flow control it sends until it is told; with credits it waits.
            if !late.endpoint.has_outstanding() {
                late.send(1, near_the_middle, 1, late_memory);
            }
            late.progress();
            late.endpoint.link_mut().idle().yield_if_asked();
            late.done.iter().any(|done| done.result.is_err()) && world.far().outcome(2).is_some()
        });
        assert_lost(world.far().outcome(2).unwrap(), "does not answer");
        assert_lost(late.done.iter().find(|done| done.result.is_err()).unwrap(), "does not hear this process");
        assert!(world.middle.outcome(1).is_none(), "{scheme:?}: there are two peers, and places for no more");
        world.near().send(2, near_to_middle, 1, Memory::new(&[2; 8]));
        assert_eq!(world.outcome(1).source, Some(Target::Peer(world.to_near)), "{scheme:?}");
        let links = world.middle.endpoint.link_mut();
        let stranger = links.second().unwrap().peer(FAR + 1);
        assert_eq!(links.place(Path::Second(stranger)), None);
    }
}

#[test]
fn nothing_is_lost_in_a_crowd() {
    for scheme in SCHEMES {
        let mut world = World::new(scheme, 2);
        let (to_near, to_far) = (world.to_near, world.to_far);
        let (near_to, far_to) = (world.near_to_middle, world.far_to_middle);
        let mut expected = Vec::new();
        for n in 0..300_usize {
            let (from, into) = ([3, 400, 4000, 50_000][n % 4], n * 7 % 5 < 2);
            let (from, is_early) = (Memory::new(&pattern(n as u8, from + n)), into);
            let into = Memory::new(&vec![0; from.bytes().len()]);
            let way = n * 11 % 13 % 4;
            let post = |world: &mut World| match way {
                0 => world.middle.receive(1000 + n, Some(to_near), n as u64, into),
                1 => world.middle.receive(1000 + n, Some(to_far), n as u64, into),
                2 => world.near().receive(1000 + n, Some(near_to), n as u64, into),
                _ => world.far().receive(1000 + n, Some(far_to), n as u64, into),
            };
            if is_early {
                post(&mut world);
            }
            match way {
                0 => world.near().send(n, near_to, n as u64, from),
                1 => world.far().send(n, far_to, n as u64, from),
                2 => world.middle.send(n, to_near, n as u64, from),
                _ => world.middle.send(n, to_far, n as u64, from),
            }
            world.steps(n % 4);
            if !is_early {
                post(&mut world);
            }
            expected.push((into, from));
        }
        world.until("all", |world| world.middle.done.len() + world.near().done.len() + world.far().done.len() == 600);
        assert!(expected.iter().all(|(into, from)| into.bytes() == from.bytes()), "{scheme:?}");
    }
}

#[test]
fn whatever_ends_a_send_its_memory_is_hidden() {
    for (scheme, how) in SCHEMES.into_iter().flat_map(|scheme| (0..4).map(move |how| (scheme, how))) {
        let mut world = World::new(scheme, 2);
        let (to_far, far_to) = (world.to_far, world.far_to_middle);
        world.network.borrow_mut().holds_transfers = how == 1;
        for n in 0..20 {
            world.middle.send(n, to_far, n as u64, Memory::new(&pattern(1, 3000 + 3000 * n)));
            if n % 3 == 0 {
                world.far().receive(n, Some(far_to), n as u64, Memory::new(&vec![0; 100_000]));
            }
            world.steps(n % 4);
        }
        match how {
            0 | 1 => {
                world.far = None;
                world.network.borrow_mut().depart(FAR, how == 0);
            }
            2 => world.network.borrow_mut().fail_late(0, FAR),
            _ => world.middle.endpoint.abandon_unsent(),
        }
        world.steps(3);
        world.network.borrow_mut().holds_transfers = false;
        world.until("all sends to end", |world| world.middle.done.len() == 20);
        assert_eq!(world.middle.endpoint.link_mut().second().unwrap().exposed(), 0, "{scheme:?} {how}");
    }
}

#[test]
fn what_a_packet_met_on_its_way_is_told_with_it() {
    let network = std::rc::Rc::default();
    let folder = crate::support::Folder::new();
    let (mut near, mut far) = (folder.link(2), local_link::LocalLink::new(&network));
    let mut links = Paths::new(folder.link(2), local_link::LocalLink::new(&network), 2);
    let to = near.peer(&links.first().address()).unwrap();
    crate::support::send(&mut near, to, 1);
    far.write(far.peer(1), 1, |places: &mut [tidegate_flow::Packet], placement| {
        places.fill(crate::support::packet(2).placed(placement))
    })
    .unwrap();
    let mut seen = std::collections::HashMap::new();
    while seen.len() < 2 {
        let Some(arrival) = links.retrieve() else { continue };
        let (number, is_marked) = (crate::support::number(&arrival.packet), arrival.is_marked());
        assert_eq!(arrival.payload().len(), 56);
        assert!(matches!(links.path(arrival.source), Some(Path::Second(_))) == (number == 2));
        seen.insert(number, is_marked);
    }
    assert_eq!((seen[&1], seen[&2]), (false, true));
}
