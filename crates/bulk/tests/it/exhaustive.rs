//! Every interleaving of small exchanges under each technique: signals, pieces, barriers and deaths in any order. In
//! each: a receiver hears one sender at a time where the technique says so, a token has one holder, the bookings of a
//! round are a partial permutation, everything arrives once, and nobody waits for ever.

use crate::world::World;
use std::collections::HashSet;
use tidegate_bulk::{Block, Node, Settings, TechniqueName};

/// Blocks of `bytes` by sender and receiver.
pub fn blocks(senders: &[&[(u32, u64)]]) -> Vec<Vec<Block>> {
    let block = |&(to, bytes): &(u32, u64)| Block { to: Node(to), bytes };
    senders.iter().map(|blocks| blocks.iter().map(block).collect()).collect()
}

/// Everybody sends `bytes` to everybody, cyclic from itself on.
fn all_to_all(nodes: u32, bytes: u64) -> Vec<Vec<Block>> {
    let to = |me: u32| (0..nodes).map(move |distance| Block { to: Node((me + distance) % nodes), bytes });
    (0..nodes).map(|me| to(me).collect()).collect()
}

/// Tries every order of what may happen; returns how many states there are.
fn explore(technique: TechniqueName, blocks: &[Vec<Block>], settings: &Settings, deaths: u32) -> usize {
    let first = World::new(technique, blocks, settings, deaths);
    let mut seen = HashSet::from([first.fingerprint()]);
    let mut left = vec![first];
    while let Some(world) = left.pop() {
        let happenings = world.happenings();
        if happenings.is_empty() {
            world.check_end();
        }
        for happening in happenings {
            let mut next = world.clone();
            next.apply(happening);
            if seen.insert(next.fingerprint()) {
                left.push(next);
            }
        }
        assert!(seen.len() < 2_000_000, "{technique} does not come to an end");
    }
    seen.len()
}

/// Exchanges that are small enough for all of their orders.
fn small() -> Vec<(&'static str, Vec<Vec<Block>>)> {
    vec![
        ("three, all to all", all_to_all(3, 1)),
        ("three, one has nothing to send", blocks(&[&[(1, 1), (2, 1)], &[], &[(0, 1), (1, 1)]])),
        ("three, two on one, twice", blocks(&[&[], &[(0, 2)], &[(0, 2)]])),
        ("three, uneven, two blocks to one", blocks(&[&[(1, 3), (2, 1), (1, 1)], &[(0, 1), (0, 1)], &[(2, 1)]])),
        ("four, three on one", blocks(&[&[(3, 1)], &[(0, 1)], &[(0, 1)], &[(0, 1)]])),
        ("four, one to all", blocks(&[&[(1, 1), (2, 1), (3, 1)], &[], &[], &[]])),
        ("four, two receivers", blocks(&[&[(2, 1), (3, 1)], &[(2, 1), (3, 1)], &[(3, 1)], &[]])),
        ("one alone", blocks(&[&[(0, 2)]])),
        ("two", blocks(&[&[(1, 2), (0, 1)], &[(0, 1)]])),
    ]
}

fn one_byte_pieces() -> Settings {
    Settings {
        unit: 1,
        outstanding: 2,
        window: 2,
        picoseconds_per_byte: 1_000_000,
        requests_per_round: 9,
        ..Settings::default()
    }
}

fn explore_all(technique: TechniqueName, settings: &Settings, deaths: u32) {
    for (name, blocks) in small() {
        let states = explore(technique, &blocks, settings, deaths);
        println!("{technique}, {name}, {deaths} deaths: {states} states");
    }
}

/// Four nodes, all to all: the smallest exchange in which several pairs of each round are under way at once.
fn four_nodes_all_to_all(technique: TechniqueName, settings: &Settings, deaths: u32) {
    let states = explore(technique, &all_to_all(4, 1), settings, deaths);
    println!("{technique}, four, all to all, {deaths} deaths, {settings:?}: {states} states");
}

#[test]
fn four_nodes_with_barriers() {
    four_nodes_all_to_all(TechniqueName::Barriers, &one_byte_pieces(), 1);
}

#[test]
fn four_nodes_with_tokens() {
    four_nodes_all_to_all(TechniqueName::Tokens, &one_byte_pieces(), 1);
}

#[test]
fn four_nodes_with_receiver_tokens() {
    four_nodes_all_to_all(TechniqueName::ReceiverTokens, &one_byte_pieces(), 0);
}

#[test]
fn four_nodes_with_bookings() {
    four_nodes_all_to_all(TechniqueName::Booking, &Settings { window: 4, ..one_byte_pieces() }, 0);
}

#[test]
fn three_nodes_of_which_two_die() {
    for technique in TechniqueName::ALL {
        let states = explore(*technique, &all_to_all(3, 1), &one_byte_pieces(), 2);
        println!("{technique}, three, all to all, 2 deaths: {states} states");
    }
}

#[test]
fn in_order() {
    explore_all(TechniqueName::InOrder, &one_byte_pieces(), 1);
}

#[test]
fn interleave() {
    explore_all(TechniqueName::Interleave, &one_byte_pieces(), 1);
}

#[test]
fn bandwidth_matching() {
    explore_all(TechniqueName::BandwidthMatching, &one_byte_pieces(), 1);
}

#[test]
fn barriers() {
    explore_all(TechniqueName::Barriers, &one_byte_pieces(), 1);
}

#[test]
fn tokens() {
    explore_all(TechniqueName::Tokens, &one_byte_pieces(), 1);
}

#[test]
fn receiver_tokens() {
    explore_all(TechniqueName::ReceiverTokens, &one_byte_pieces(), 1);
}

#[test]
fn booking() {
    explore_all(TechniqueName::Booking, &one_byte_pieces(), 1);
}

#[test]
fn booking_with_one_request_a_round() {
    explore_all(TechniqueName::Booking, &Settings { requests_per_round: 1, ..one_byte_pieces() }, 1);
}

#[test]
fn booking_a_single_round_ahead() {
    explore_all(TechniqueName::Booking, &Settings { window: 1, ..one_byte_pieces() }, 0);
}

#[test]
fn booking_with_few_barriers() {
    explore_all(TechniqueName::Booking, &Settings { rounds_per_barrier: 2, ..one_byte_pieces() }, 1);
}
