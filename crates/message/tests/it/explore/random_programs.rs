//! Every interleaving of random programs: short ones, of everything that ends by itself.

use super::layout::{Layout, Op, Window, everything};
use super::search::{Sights, explore};
use crate::support::Random;
use tidegate_message::flow::SchemeName;

/// A layout of `nodes` endpoints with programs of `length` operations.
fn layout(random: &mut Random, nodes: usize, length: usize) -> Layout {
    let programs: Vec<Vec<Op>> = (0..nodes).map(|node| program(random, node, nodes, length)).collect();
    let programs: Vec<&[Op]> = programs.iter().map(Vec::as_slice).collect();
    let windows =
        [Window::Envelopes(1), Window::Envelopes(1), Window::Envelopes(2), Window::Envelopes(4), Window::Payload];
    let (scheme, slots) =
        [(SchemeName::Static, 3), (SchemeName::Dynamic, 2), (SchemeName::Dynamic, 3)][random.below(3)];
    let (direct, piggyback, window) = (random.one_in(2), random.one_in(2), windows[random.below(windows.len())]);
    Layout { scheme, slots, direct, piggyback, window, ..Layout::new(&programs) }
}

/// The first nodes send more than they receive, the last one receives more.
fn program(random: &mut Random, node: usize, nodes: usize, length: usize) -> Vec<Op> {
    let mut program = Vec::new();
    for place in 0..length {
        let other = (node + 1 + random.below(nodes - 1)) % nodes;
        let is_send = random.one_in(8) == (node == nodes - 1);
        program.push(if is_send { a_send(random, other) } else { a_receive(random, other, &program, place) });
    }
    if random.one_in(10) {
        program.push(Op::Die);
    }
    program
}

fn a_send(random: &mut Random, to: usize) -> Op {
    let (tag, size) = (1 + random.below(2) as u64, [0, 0, 20, 100, 200][random.below(5)]);
    if size <= 20 && random.one_in(4) { Op::Inject { to, tag, size } } else { Op::Send { to, tag, size } }
}

fn a_receive(random: &mut Random, from: usize, before: &[Op], place: usize) -> Op {
    let of = random.below(place.max(1));
    if random.one_in(5) && matches!(before.get(of), Some(Op::Receive { .. })) {
        return Op::Cancel { of };
    }
    let from = (!random.one_in(3)).then_some(from);
    let tag = (!random.one_in(3)).then(|| 1 + random.below(2) as u64);
    if random.one_in(5) { Op::Look { from, tag } } else { Op::Receive { from, tag } }
}

/// Explores so many programs; with `TIDEGATE_EXPLORE=all` thirty times as many.
fn explore_some(programs: u64, nodes: usize, length: usize) {
    let times = if everything() { 30 } else { 1 };
    let mut all = Sights::default();
    for number in 0..programs * times {
        let seed = (nodes as u64) << 48 | (length as u64) << 32 | number;
        let joins = number % 2 == 0;
        let sights = explore(&Layout { joins, ..layout(&mut Random::new(seed), nodes, length) });
        (all.deferred, all.queried, all.grown) =
            (all.deferred | sights.deferred, all.queried | sights.queried, all.grown | sights.grown);
        (all.states, all.endpoint_states) = (all.states + sights.states, all.endpoint_states + sights.endpoint_states);
    }
    println!("{programs} programs: {all:?}");
    assert!(all.deferred && all.queried, "programs in which nothing happens prove nothing: {all:?}");
}

#[test]
fn of_two_endpoints() {
    explore_some(if everything() { 40 } else { 8 }, 2, 4);
}

#[test]
fn of_two_endpoints_with_more_to_do() {
    if everything() {
        explore_some(1, 2, 6);
    }
}

#[test]
fn of_three_endpoints() {
    explore_some(12, 3, 2);
}

#[test]
fn of_three_endpoints_with_more_to_do() {
    if everything() {
        explore_some(1, 3, 3);
    }
}
