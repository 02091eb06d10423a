//! The programs.

use super::layout::{Layout, Op, Op::*, UNTAGGED, Window, everything};
use super::link::ActorLink;
use super::search::{Sights, explore};
use tidegate_message::Endpoint;
use tidegate_message::flow::SchemeName::{self, Dynamic, None as Without, Static};

/// Sizes: empty, of one packet, of several, and one that goes by rendezvous however much room there is.
const SIZES: [usize; 4] = [0, 20, 100, 200];
const ANY: Option<u64> = None;
const ANYBODY: Option<usize> = None;

fn send(to: usize, tag: u64, size: usize) -> Op {
    Send { to, tag, size }
}

fn receive(from: usize, tag: u64) -> Op {
    Receive { from: Some(from), tag: Some(tag) }
}

fn receive_any(from: impl Into<Option<usize>>, tag: impl Into<Option<u64>>) -> Op {
    Receive { from: from.into(), tag: tag.into() }
}

/// Windows of one envelope, of one or of two with as much to grow, of some payload, and without end.
const WINDOWS: [Window; 5] =
    [Window::Envelopes(1), Window::Envelopes(2), Window::Envelopes(4), Window::Payload, Window::Plenty];
const TIGHT: [Window; 2] = [Window::Envelopes(1), Window::Envelopes(4)];

/// Schemes with the smallest mailboxes in which two messages of one sender can be (`none`, `static`, `dynamic` with a
/// dynamic region) or just one.
const SCHEMES: [(SchemeName, u32); 4] = [(Without, 2), (Static, 3), (Dynamic, 2), (Dynamic, 3)];

/// Explores the programs in each of these settings. What windows are there for must have happened.
fn everywhere(schemes: &[(SchemeName, u32)], windows: &[Window], direct: bool, programs: &[&[Op]]) -> Sights {
    let mut all = Sights::default();
    for &(scheme, slots) in schemes {
        for &window in windows {
            let sights = explore(&Layout { scheme, slots, window, direct, ..Layout::new(programs) });
            println!("{scheme:?}, {slots} slots, {window:?}: {sights:?}");
            match window {
                Window::Envelopes(1) => assert!(sights.deferred, "{sights:?}"),
                Window::Plenty => assert!(!sights.deferred && !sights.queried && !sights.grown, "{sights:?}"),
                Window::Envelopes(_) | Window::Payload | Window::Bytes(_) | Window::Few(_) => {}
            }
            (all.deferred, all.queried, all.grown) =
                (all.deferred || sights.deferred, all.queried || sights.queried, all.grown || sights.grown);
        }
    }
    all
}

#[test]
fn receives_in_reverse_order_of_tags() {
    for size in if everything() { SIZES.to_vec() } else { vec![100] } {
        let sender = [send(1, 1, size), send(1, 2, size), send(1, 3, size)];
        let receiver = [receive(0, 3), receive(0, 2), receive(0, 1)];
        let sights = everywhere(&SCHEMES, &WINDOWS, true, &[&sender, &receiver]);
        assert!(sights.queried, "{sights:?}");
    }
}

/// Messages of three slots leave as packets of as many slots as there are credits, and come in as these or as packets
/// of one.
#[test]
fn long_packets_with_one_to_three_credits() {
    let sender = [send(1, 1, 100), send(1, 2, 20), send(1, 1, 100)];
    let receiver = [receive(0, 2), receive(0, 1), receive_any(0, ANY)];
    let both = [send(1, 1, 100), receive(1, 1), send(1, 2, 20)];
    let back = [receive(0, 1), send(0, 1, 100), receive(0, 2)];
    let two = [send(0, 1, 100), send(0, 2, 20)];
    let of_two = [receive_any(ANYBODY, 1), receive_any(ANYBODY, 2), receive_any(ANYBODY, ANY), receive_any(1, ANY)];
    let dies = [send(1, 1, 20), send(1, 2, 100), Die];
    for (scheme, slots, longest) in [
        (Without, 2, 2),
        (Static, 2, 1),
        (Static, 3, 2),
        (Static, 4, 3),
        (Dynamic, 2, 1),
        (Dynamic, 3, 2),
        (Dynamic, 4, 3),
    ] {
        let programs: [&[&[Op]]; 4] =
            [&[&sender, &receiver], &[&both, &back], &[&of_two, &two, &two], &[&dies, &receiver]];
        for piggyback in [false, true] {
            let mut seen = 0;
            // The states of three endpoints are many.
            for programs in programs.into_iter().filter(|programs| programs.len() == 2 || slots == 3) {
                let sights = explore(&Layout { scheme, slots, piggyback, joins: true, ..Layout::new(programs) });
                println!("{scheme:?}, {slots} slots, piggyback {piggyback}: {sights:?}");
                seen = seen.max(sights.longest);
            }
            assert_eq!(seen, longest, "{scheme:?}, {slots} slots, piggyback {piggyback}");
        }
    }
}

/// Packets are refused and tried again after a time, or requests to send leave in place of short messages: nothing
/// overtakes and nothing is stuck.
#[test]
fn messages_that_are_refused_and_tried_again() {
    let refused = [(SchemeName::RefuseThird, 64)];
    let sender = [send(1, 1, 0), send(1, 2, 100), send(1, 1, 40)];
    let receiver = [receive(0, 1), receive_any(0, ANY), receive(0, 1)];
    everywhere(&refused, &WINDOWS, true, &[&sender, &receiver]);
    let echo = [receive(0, 1), send(0, 1, 100), send(0, 2, 0)];
    everywhere(&refused, &TIGHT, true, &[&[send(1, 1, 100), receive(1, 2), receive(1, 1)], &echo]);
    everywhere(
        &refused,
        &TIGHT[..1],
        true,
        &[&[send(1, 1, 100), send(1, 2, 40), Die], &[receive(0, 1), receive(0, 2)]],
    );
}

/// Each connection has one posted buffer: what follows the first message finds no credit, and is announced or waits.
/// Two that send before they receive go on as long as neither waits for its sends first.
#[test]
fn messages_that_find_no_posted_buffer() {
    let (one_way, both_ways) = ([send(1, 1, 100), send(1, 2, 0), send(1, 1, 40)], |other| {
        [send(other, 1, 100), send(other, 1, 40), receive(other, 1), receive(other, 1)]
    });
    let receiver = [receive(0, 1), receive_any(0, ANY), receive(0, 1)];
    let buffers = [(SchemeName::Preposted, 3), (SchemeName::Growing, 3)];
    everywhere(&buffers, &TIGHT[1..], true, &[&one_way, &receiver]);
    everywhere(&buffers, &[Window::Plenty], false, &[&one_way, &receiver]);
    everywhere(&buffers, &[Window::Plenty], true, &[&both_ways(1), &both_ways(0)]);
}

#[test]
fn receives_of_any_tag_between_receives_of_one() {
    for size in if everything() { vec![0, 100] } else { vec![100] } {
        let sender = [send(1, 1, size), send(1, 2, size), send(1, 1, size), send(1, 2, size)];
        let receiver = [receive(0, 2), receive_any(0, ANY), receive(0, 1), receive_any(0, ANY)];
        let windows = if everything() { &WINDOWS[..] } else { &TIGHT[..1] };
        everywhere(&SCHEMES[1..3], windows, true, &[&sender, &receiver]);
    }
}

#[test]
fn receives_from_anybody_with_two_senders() {
    for size in if everything() { vec![0, 20, 100] } else { vec![0] } {
        let sender = [send(0, 1, size), send(0, 2, size)];
        let receiver =
            [receive_any(ANYBODY, 2), receive_any(ANYBODY, 2), receive_any(ANYBODY, ANY), receive_any(ANYBODY, ANY)];
        everywhere(&SCHEMES[1..2], &TIGHT, true, &[&receiver, &sender, &sender]);
    }
}

#[test]
fn receives_from_anybody_between_receives_from_one() {
    let sender = [send(0, 1, 0), send(0, 2, 0)];
    let receiver = [receive_any(ANYBODY, 2), receive_any(1, ANY), receive_any(2, ANY), receive_any(ANYBODY, ANY)];
    everywhere(&SCHEMES[1..2], &TIGHT, true, &[&receiver, &sender, &sender]);
}

/// By the time of the query for the last message, another is in doubt and the last is not yet known to the receiver.
#[test]
fn the_last_of_many_is_received_first() {
    let sender = [1, 2, 3, 4].map(|tag| send(1, tag, 0));
    let receiver = [receive(0, 4), receive_any(0, ANY), receive(0, 3), receive_any(0, ANY)];
    let sights = everywhere(&SCHEMES[1..3], &TIGHT, true, &[&sender, &receiver]);
    assert!(sights.queried && sights.grown, "{sights:?}");
}

#[test]
fn messages_with_and_without_tags() {
    for size in if everything() { vec![0, 100] } else { vec![0] } {
        let sender = [send(1, 1, size), send(1, UNTAGGED, size), send(1, 2, size), send(1, UNTAGGED, size)];
        let receiver = [receive(0, UNTAGGED), receive(0, 2), receive(0, UNTAGGED), receive_any(0, ANY)];
        everywhere(&SCHEMES[1..2], &WINDOWS, true, &[&sender, &receiver]);
    }
}

#[test]
fn receives_one_by_one() {
    for size in [0, 100] {
        let sender = [send(1, 1, size), send(1, 2, size), send(1, 3, size), Wait { of: 2 }, send(1, 2, size)];
        let receiver = [receive(0, 3), Wait { of: 0 }, receive(0, 2), Wait { of: 2 }, receive(0, 2), receive(0, 1)];
        everywhere(&SCHEMES[1..3], &WINDOWS, true, &[&sender, &receiver]);
    }
}

#[test]
fn receives_that_are_canceled() {
    for size in [0, 100] {
        let sender = [send(1, 1, size), send(1, 2, size), send(1, 3, size)];
        let one = [receive(0, 3), Cancel { of: 0 }, receive(0, 2), receive_any(0, ANY), receive_any(0, ANY)];
        everywhere(&SCHEMES[1..3], &WINDOWS, true, &[&sender, &one]);
        let two = [receive(0, 3), receive_any(0, ANY), Cancel { of: 0 }, receive(0, 3), Cancel { of: 1 }];
        everywhere(&SCHEMES[1..2], &TIGHT, true, &[&sender, &two]);
    }
}

/// The answer to a query is for no receive posted later, though the receive that the query was made for is gone.
#[test]
fn a_canceled_question_is_not_answered_to_another() {
    for size in [0, 100] {
        let sender = [send(1, 1, size), send(1, 2, size), send(1, 3, size)];
        let any = receive_any(0, ANY);
        let receiver = [receive(0, 3), Cancel { of: 0 }, any, any, any];
        everywhere(&SCHEMES[1..3], &WINDOWS, true, &[&sender, &receiver]);
    }
}

#[test]
fn receives_that_nothing_satisfies() {
    let sender = [send(1, 1, 0), send(1, 2, 0), send(1, 3, 0)];
    let receiver = [receive(0, 9), receive(0, 3), receive_any(ANYBODY, 8)];
    everywhere(&SCHEMES[1..3], &WINDOWS, true, &[&sender, &receiver]);
}

/// A short message would still find room where a longer one before it did not.
#[test]
fn short_messages_behind_long_ones() {
    let sender = [100, 100, 100, 20, 100, 0].map(|size| send(1, if size == 20 { 2 } else { 1 }, size));
    let receiver = [receive(0, 2), receive(0, 1), receive_any(0, ANY), receive(0, 1)];
    everywhere(&SCHEMES[1..3], &[Window::Payload], true, &[&sender, &receiver]);
}

#[test]
fn probes_before_receives() {
    for size in [0, 100] {
        let sender = [send(1, 1, size), send(1, 2, size), send(1, 3, size)];
        let probe = |tag: Option<u64>| Probe { from: Some(0), tag };
        let receiver = [
            probe(Some(3)),
            ReceiveProbed { of: 0 },
            probe(ANY),
            ReceiveProbed { of: 2 },
            Wait { of: 3 },
            probe(Some(2)),
            ReceiveProbed { of: 5 },
        ];
        everywhere(&SCHEMES[1..3], &WINDOWS, true, &[&sender, &receiver]);
    }
}

#[test]
fn probes_for_messages_of_anybody() {
    let sender = [send(0, 1, 0), send(0, 2, 0)];
    let probe = |tag: Option<u64>| Probe { from: ANYBODY, tag };
    let receiver =
        [probe(Some(2)), ReceiveProbed { of: 0 }, probe(ANY), ReceiveProbed { of: 2 }, receive_any(ANYBODY, ANY)];
    everywhere(&SCHEMES[1..2], &TIGHT, true, &[&receiver, &sender, &sender]);
}

#[test]
fn looks_that_may_find_nothing() {
    for size in if everything() { vec![0, 100] } else { vec![0] } {
        let sender = [send(1, 1, size), send(1, 2, size), send(1, 3, size)];
        let look = |tag| Look { from: Some(0), tag };
        let receiver = [look(Some(2)), receive(0, 3), look(ANY), receive(0, 1), look(Some(2)), receive_any(0, ANY)];
        everywhere(&SCHEMES[1..3], &WINDOWS, true, &[&sender, &receiver]);
    }
}

/// The room that a receive of an empty message makes lets the next deferred send leave, while a peek makes a query for
/// it: the answer is the send after it, and both arrive together.
#[test]
fn looks_while_what_they_look_for_leaves() {
    // The window has room for three messages, and for one more once it has grown.
    let window = Window::Bytes(Endpoint::<ActorLink>::ENVELOPE_BYTES * 34 / 5);
    let mut sender = vec![send(1, 2, 0)];
    sender.extend([send(1, 3, 20); 6]);
    sender.extend([send(1, 1, 0); 2]);
    let receiver = [receive(0, 2), Look { from: Some(0), tag: Some(1) }, receive(0, 1)];
    let sights = everywhere(&[(Static, 4)], &[window], true, &[&sender, &receiver]);
    assert!(sights.queried && sights.grown, "{sights:?}");
}

#[test]
fn claims_before_receives() {
    for size in [0, 100] {
        let sender = [send(1, 1, size), send(1, 2, size), send(1, 2, size)];
        let claim = |tag| Claim { from: Some(0), tag };
        let receiver = [claim(Some(2)), receive(0, 2), ReceiveClaimed { of: 0 }, claim(ANY), ReceiveClaimed { of: 3 }];
        everywhere(&SCHEMES[1..3], &WINDOWS, true, &[&sender, &receiver]);
    }
}

#[test]
fn claims_that_nobody_calls_for() {
    let sender = [send(1, 1, 0), send(1, 2, 0), send(1, 3, 0)];
    let receiver = [Claim { from: Some(0), tag: Some(2) }, receive(0, 1), receive(0, 3)];
    everywhere(&SCHEMES[1..3], &WINDOWS, true, &[&sender, &receiver]);
}

/// `MPI_Mprobe` for anything from anybody while both have deferred sends for each other, as `traffic.c` does it: one
/// posts its receives before or after its sends, the other has claims only.
#[test]
fn claims_of_one_and_receives_of_the_other_after_both_have_sent() {
    for size in if everything() { vec![0, 100] } else { vec![0] } {
        let sends = |to| [send(to, 1, size), send(to, 2, size)];
        let receives = [receive(1, 2), receive(1, 1)];
        let claim = Claim { from: ANYBODY, tag: ANY };
        let claims = [claim, ReceiveClaimed { of: 2 }, claim, ReceiveClaimed { of: 4 }];
        let claiming = [&sends(0)[..], &claims].concat();
        for posting in [[sends(1), receives].concat(), [receives, sends(1)].concat()] {
            everywhere(&SCHEMES[if everything() { 0..3 } else { 1..2 }], &TIGHT, true, &[&posting, &claiming]);
        }
    }
}

#[test]
fn claims_of_messages_of_anybody() {
    let sender = [send(0, 1, 0), send(0, 2, 0)];
    let claim = |tag: Option<u64>| Claim { from: ANYBODY, tag };
    let receiver =
        [claim(Some(2)), claim(ANY), ReceiveClaimed { of: 0 }, receive_any(ANYBODY, ANY), ReceiveClaimed { of: 1 }];
    everywhere(&SCHEMES[1..2], &TIGHT, true, &[&receiver, &sender, &sender]);
}

#[test]
fn messages_that_are_discarded() {
    for size in [0, 100] {
        let sender = [send(1, 1, size), send(1, 2, size), send(1, 3, size), send(1, 2, size)];
        let discard = |from, tag| Discard { from, tag };
        let receiver = [discard(Some(0), Some(2)), receive(0, 3), discard(ANYBODY, ANY), receive(0, 2)];
        let sights = everywhere(&SCHEMES[1..3], &WINDOWS, true, &[&sender, &receiver]);
        assert!(sights.queried, "{sights:?}");
    }
}

#[test]
fn both_send_before_they_receive() {
    for size in if everything() { SIZES.to_vec() } else { vec![0] } {
        let node = |other: usize| [send(other, 1, size), send(other, 2, size), receive(other, 2), receive(other, 1)];
        everywhere(&SCHEMES[..3], &TIGHT, true, &[&node(1), &node(0)]);
    }
}

#[test]
fn three_in_a_ring_send_before_they_receive() {
    let node =
        |next: usize, previous: usize| [send(next, 1, 0), send(next, 2, 0), receive(previous, 2), receive(previous, 1)];
    everywhere(&SCHEMES[1..2], &TIGHT[..1], true, &[&node(1, 2), &node(2, 0), &node(0, 1)]);
}

#[test]
fn messages_of_every_size() {
    for sizes in [[0, 200, 100], [200, 0, 20], [100, 20, 200]] {
        let sender = [send(1, 1, sizes[0]), send(1, 2, sizes[1]), send(1, 3, sizes[2])];
        let receiver = [receive(0, 2), receive_any(0, ANY), receive_any(0, ANY)];
        for direct in [true, false] {
            everywhere(&SCHEMES[1..if everything() { 4 } else { 2 }], &WINDOWS, direct, &[&sender, &receiver]);
        }
    }
}

#[test]
fn injected_messages() {
    for size in [0, 20] {
        let inject = |tag| Inject { to: 1, tag, size };
        let sender = [inject(1), send(1, 2, size), inject(3)];
        everywhere(&SCHEMES[1..3], &WINDOWS, true, &[&sender, &[receive(0, 3), receive(0, 2), receive(0, 1)]]);
    }
}

#[test]
fn fenced_messages() {
    for size in [0, 100] {
        let fenced = |tag| Fenced { to: 1, tag, size };
        let sender = [send(1, 1, size), fenced(2), Inject { to: 1, tag: 3, size: size.min(20) }, fenced(4)];
        let receiver = [receive(0, 4), receive(0, 3), receive(0, 2), receive(0, 1)];
        everywhere(&SCHEMES[1..3], &TIGHT, true, &[&sender, &receiver]);
    }
}

#[test]
fn senders_that_die() {
    for size in [0, 100] {
        let sender = [send(1, 1, size), send(1, 2, size), send(1, 3, size), Die];
        let receiver = [receive(0, 3), receive_any(0, ANY), receive_any(ANYBODY, ANY)];
        everywhere(&SCHEMES[1..3], &TIGHT, true, &[&sender, &receiver]);
    }
}

#[test]
fn looks_for_messages_of_a_sender_that_dies() {
    let sender = [send(0, 1, 0), send(0, 2, 0), Die];
    let look = |from: Option<usize>, tag: u64| Look { from, tag: Some(tag) };
    let receiver = [look(Some(1), 3), look(ANYBODY, 2), receive_any(ANYBODY, 3)];
    everywhere(&SCHEMES[1..3], &TIGHT, true, &[&receiver, &sender, &[send(0, 3, 0)]]);
}

#[test]
fn receivers_that_die() {
    for size in [0, 100] {
        let sender = [send(1, 1, size), send(1, 2, size), send(1, 3, size)];
        everywhere(&SCHEMES[1..3], &TIGHT, true, &[&sender, &[receive(0, 3), receive_any(0, ANY), Die]]);
    }
}

#[test]
fn one_sender_dies_and_the_other_is_served() {
    let receiver = [receive_any(ANYBODY, 2), receive_any(ANYBODY, 1)];
    let dying = [send(0, 1, 0), send(0, 2, 0), Die];
    everywhere(&SCHEMES[1..2], &TIGHT[..1], true, &[&receiver, &dying, &[send(0, 1, 0), send(0, 2, 0)]]);
}

#[test]
fn senders_that_close() {
    for size in [0, 100] {
        let inject = |tag| Inject { to: 1, tag, size: size.min(20) };
        let sender = [inject(1), inject(2), inject(3), Close];
        let receiver = [receive(0, 3), receive_any(0, ANY), receive_any(0, ANY)];
        everywhere(&SCHEMES[1..3], &TIGHT, true, &[&sender, &receiver]);
    }
    // The room that a receive makes is enough for the second to leave.
    let sender = [1, 2].map(|tag| Inject { to: 1, tag, size: 0 });
    everywhere(&SCHEMES[1..3], &TIGHT[..1], true, &[&[sender[0], sender[1], Close], &[receive_any(0, ANY)]]);
}

/// Accounts for one unanswered request, and for two.
const ACCOUNTS: [Window; 2] = [Window::Bytes(800), Window::Bytes(4200)];

#[test]
fn both_flood_each_other_with_remote_operations() {
    // The last is the mirror image of the one before it.
    let pairs = if everything() { 3 } else { 2 };
    for [first, second] in [[true, true], [true, false], [false, true]].into_iter().take(pairs) {
        let node = |other: usize, adds: bool| match adds {
            true => [Add { to: other }, Write { to: other }, Add { to: other }],
            false => [Write { to: other }, Read { from: other }, Write { to: other }],
        };
        for window in ACCOUNTS {
            for (scheme, slots) in SCHEMES {
                let programs: [&[Op]; 2] = [&node(1, first), &node(0, second)];
                let sights = explore(&Layout { scheme, slots, window, ..Layout::new(&programs) });
                println!("{scheme:?}, {slots} slots, {window:?}: {sights:?}");
                assert!(sights.delayed || window != ACCOUNTS[0], "a request waited for its turn: {sights:?}");
            }
        }
    }
}

#[test]
fn remote_operations_between_messages_that_find_no_room() {
    for window in ACCOUNTS {
        let sender = [send(1, 1, 0), Add { to: 1 }, send(1, 2, 0), Write { to: 1 }, send(1, 3, 0)];
        let receiver = [receive(0, 3), Add { to: 0 }, receive(0, 2), receive(0, 1)];
        for (scheme, slots) in &SCHEMES[1..3] {
            let (scheme, slots) = (*scheme, *slots);
            println!(
                "{:?}",
                explore(&Layout { scheme, slots, window, direct: true, ..Layout::new(&[&sender, &receiver]) })
            );
        }
    }
}

#[test]
fn remote_operations_on_a_node_that_dies() {
    let origin = [Add { to: 1 }, Write { to: 1 }, Read { from: 1 }, Add { to: 1 }];
    for window in ACCOUNTS {
        for (scheme, slots) in &SCHEMES[1..3] {
            let (scheme, slots) = (*scheme, *slots);
            for target in [vec![Add { to: 0 }, Write { to: 0 }, Die], vec![Die]] {
                println!("{:?}", explore(&Layout { scheme, slots, window, ..Layout::new(&[&origin, &target]) }));
            }
        }
    }
}
