//! Programs in which receive memory is not enough for all to send at a time (rules S1–S6 in `deferral::sessions`).

use super::layout::{Layout, Op, Op::*, UNTAGGED, Window, everything};
use super::search::{Sights, explore};
use tidegate_message::flow::SchemeName::{self, Dynamic, Static};

fn send(to: usize, tag: u64, size: usize) -> Op {
    Send { to, tag, size }
}

fn receive(from: usize, tag: u64) -> Op {
    Receive { from: Some(from), tag: Some(tag) }
}

const ANY: Op = Receive { from: None, tag: None };

const SCHEMES: [(SchemeName, u32); 2] = [(Static, 3), (Dynamic, 2)];

/// Explores the programs with one session for all, which goes round.
fn few(schemes: &[(SchemeName, u32)], programs: &[&[Op]]) -> Sights {
    explore_with(schemes, 0, programs)
}

fn explore_with(schemes: &[(SchemeName, u32)], more: usize, programs: &[&[Op]]) -> Sights {
    let mut all = Sights::default();
    for &(scheme, slots) in schemes {
        let window = Window::Few(more);
        let sights = explore(&Layout { scheme, slots, window, direct: true, ..Layout::new(programs) });
        println!("{scheme:?}, {slots} slots, {window:?}: {sights:?}");
        assert!(sights.deferred || more > 0, "{sights:?}");
        (all.queried, all.grown) = (all.queried || sights.queried, all.grown || sights.grown);
    }
    all
}

#[test]
fn messages_that_are_received_in_the_order_of_their_senders() {
    let receiver = [receive(0, 1), receive(1, 1)];
    few(&SCHEMES, &[&[send(2, 1, 20)], &[send(2, 1, 20)], &receiver]);
}

#[test]
fn a_message_that_is_received_after_that_of_one_who_asks() {
    // That of 0 is not received before 1 has had its turn.
    let receiver = [receive(1, 1), Wait { of: 0 }, receive(0, 1)];
    let sights = few(&SCHEMES, &[&[send(2, 1, 100)], &[send(2, 1, 0)], &receiver]);
    assert!(sights.queried, "{sights:?}");
}

#[test]
fn messages_in_reverse_order_of_tags() {
    let sender = [send(2, 1, 20), send(2, 2, 0)];
    few(&SCHEMES[..1], &[&sender, &[], &[receive(0, 2), receive(0, 1)]]);
    if everything() {
        let receiver = [receive(0, 2), receive(1, 1), receive(0, 1)];
        few(&SCHEMES, &[&sender, &[send(2, 1, 200)], &receiver]);
    }
}

/// More sends than can be shown in the round trips that queries take: they are counted (S6).
#[test]
fn sends_that_are_counted() {
    let sender = [send(2, 1, 0), send(2, 2, 0), send(2, 1, 20)];
    few(&SCHEMES[..1], &[&sender, &[], &[receive(0, 2), receive(0, 1), receive(0, 1)]]);
    few(&SCHEMES[..1], &[&sender, &[], &[Look { from: None, tag: Some(2) }, ANY, ANY, ANY]]);
    // The first receive accepts what the second one asks for, and another one before that.
    let sender = [send(2, UNTAGGED, 0), send(2, 2, 0), send(2, 1, 0), send(2, 1, 0)];
    let receiver = [ANY, receive(0, 1), receive(0, UNTAGGED), receive(0, 1)];
    few(&SCHEMES[..1], &[&sender, &[], &receiver]);
    // Each queue has its own queries.
    let sender = [send(2, UNTAGGED, 0), send(2, 1, 20), send(2, UNTAGGED, 0)];
    let receiver = [receive(0, UNTAGGED), ANY, receive(0, UNTAGGED)];
    few(&SCHEMES[..1], &[&sender, &[], &receiver]);
    if everything() {
        let receiver = [receive(0, UNTAGGED), receive(1, 1), ANY, receive(0, UNTAGGED)];
        few(&SCHEMES[..1], &[&sender, &[send(2, 1, 0)], &receiver]);
        let sender = [send(2, 1, 0), send(2, 2, 0), send(2, 1, 0)];
        few(&SCHEMES[..1], &[&sender, &[send(2, 2, 0)], &[receive(1, 2), Wait { of: 0 }, ANY, ANY, ANY]]);
    }
}

#[test]
fn messages_of_anybody() {
    few(&SCHEMES, &[&[send(2, 1, 20)], &[send(2, 2, 0)], &[ANY, ANY]]);
    if everything() {
        few(&SCHEMES, &[&[send(2, 1, 20), send(2, 2, 0)], &[send(2, 1, 20)], &[ANY, ANY, ANY]]);
    }
}

#[test]
fn sends_that_come_while_their_senders_are_outside() {
    let sender = [send(2, 1, 0), Wait { of: 0 }, send(2, 1, 20)];
    few(&SCHEMES[..1], &[&sender, &[], &[receive(0, 1), receive(0, 1)]]);
    if everything() {
        few(&SCHEMES[..1], &[&sender, &[send(2, 1, 0)], &[receive(0, 1), receive(1, 1), receive(0, 1)]]);
    }
}

#[test]
fn probes_and_looks() {
    let probe = [Probe { from: Some(1), tag: None }, ReceiveProbed { of: 0 }, receive(0, 1)];
    few(&SCHEMES[..1], &[&[send(2, 1, 0)], &[send(2, 1, 20)], &probe]);
    let look = [Look { from: None, tag: Some(1) }, receive(0, 1), receive(1, 1)];
    few(&SCHEMES[..1], &[&[send(2, 1, 0)], &[send(2, 1, 0)], &look]);
}

#[test]
fn claims_and_discards() {
    let claim = [Claim { from: Some(1), tag: None }, receive(0, 1), ReceiveClaimed { of: 0 }];
    few(&SCHEMES[..1], &[&[send(2, 1, 0)], &[send(2, 1, 20)], &claim]);
    let discard = [Discard { from: Some(1), tag: None }, receive(0, 1)];
    few(&SCHEMES[..1], &[&[send(2, 1, 0)], &[send(2, 1, 20)], &discard]);
}

#[test]
fn receives_that_are_canceled() {
    let receiver = [receive(1, 1), Cancel { of: 0 }, receive(0, 1), receive(1, 1)];
    few(&SCHEMES[..1], &[&[send(2, 1, 0)], &[send(2, 1, 20)], &receiver]);
}

#[test]
fn a_sender_that_dies_in_its_turn_or_while_it_asks() {
    let dies = [send(2, 1, 20), Die];
    few(&SCHEMES, &[&dies, &[send(2, 1, 0)], &[receive(1, 1), receive(0, 1)]]);
}

#[test]
fn a_receiver_that_dies() {
    let dies = [receive(1, 1), Die];
    few(&SCHEMES[..1], &[&[send(2, 1, 0)], &[send(2, 1, 0)], &dies]);
}

#[test]
fn senders_that_close() {
    let closes = [Inject { to: 2, tag: 1, size: 20 }, Close];
    few(&SCHEMES[..1], &[&closes, &[send(2, 1, 0)], &[receive(1, 1), receive(0, 1)]]);
}

#[test]
fn both_directions() {
    let both = [send(2, 1, 0), receive(2, 1)];
    few(&SCHEMES[..1], &[&both, &[], &[send(0, 1, 20), receive(0, 1)]]);
    if everything() {
        few(&SCHEMES[..1], &[&both, &[send(2, 1, 0)], &[send(0, 1, 20), receive(1, 1), receive(0, 1)]]);
    }
}

#[test]
fn remote_operations_and_messages() {
    few(&SCHEMES[..1], &[&[Write { to: 2 }, send(2, 1, 0)], &[Add { to: 2 }], &[receive(0, 1)]]);
    few(&SCHEMES[..1], &[&[Write { to: 2 }, Write { to: 2 }], &[send(2, 1, 0)], &[receive(1, 1)]]);
    few(&SCHEMES[..1], &[&[Read { from: 2 }, Fenced { to: 2, tag: 1, size: 0 }], &[Write { to: 2 }], &[receive(0, 1)]]);
}

/// One session has a window, which stays with who has something here, and goes on when it has not.
#[test]
fn three_senders_and_two_sessions() {
    let sender = [send(3, 1, 0)];
    let receiver = [receive(2, 1), Wait { of: 0 }, receive(1, 1), receive(0, 1)];
    if everything() {
        explore_with(&SCHEMES[..1], 2800, &[&sender, &sender, &sender, &receiver]);
    }
}
