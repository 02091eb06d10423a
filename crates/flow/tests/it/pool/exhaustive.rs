//! Every interleaving of small worlds, every rule in every state, and a way out of each.

use super::check::{check, check_recovery};
use super::world::{Action, Fault, Layout, World};
use crate::explore::is_full;
use crate::world::Mixer;
use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasherDefault;

/// The states that an exploration came across: a world in which nothing interesting can happen proves nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Sights {
    states: usize,
    /// Senders were marked; slots were kept; both at a time.
    marks: bool,
    kept: bool,
    both: bool,
    /// A packet that was sent before a refusal was known arrived after the invitation.
    late: bool,
}

impl Sights {
    fn watch(&mut self, world: &World) {
        self.states += 1;
        for (flow, channel) in world.channels.iter().enumerate() {
            let (pool, peer) = (&world.pools[world.layout.flows[flow].to], world.layout.peer(flow));
            self.marks |= pool.is_marked(peer);
            self.kept |= pool.kept_for(peer) > 0;
            self.both |= pool.may_revoke();
            let first = channel.network.front().map(|&(number, ..)| number);
            self.late |= pool.kept_for(peer) > 0 && first.is_some_and(|number| number != pool.expected(peer));
        }
    }
}

/// Explores all states: how many there are, or the shortest way to a broken rule.
fn search(layout: Layout) -> Result<Sights, (String, Vec<Action>)> {
    const LIMIT: usize = 3_000_000;
    let start = World::new(layout);
    let mut seen: HashSet<u64, BuildHasherDefault<Mixer>> = HashSet::from_iter([start.fingerprint()]);
    let mut origins: Vec<(u32, Option<Action>)> = vec![(0, None)];
    let mut sights = Sights::default();
    let mut frontier = VecDeque::from([(start, 0_u32)]);
    while let Some((world, number)) = frontier.pop_front() {
        let sound = check(&world).and_then(|()| check_recovery(&world).map(drop));
        sound.map_err(|what| (what, path(&origins, number, None)))?;
        sights.watch(&world);
        for action in world.actions() {
            let mut next = world.clone();
            let has_moved = next.step(action).map_err(|what| (what, path(&origins, number, Some(action))))?;
            if has_moved && seen.insert(next.fingerprint()) {
                frontier.push_back((next, origins.len() as u32));
                origins.push((number, Some(action)));
            }
        }
        assert!(seen.len() <= LIMIT, "too many states");
    }
    Ok(sights)
}

/// The steps from the start to a state, and `last`.
fn path(origins: &[(u32, Option<Action>)], mut number: u32, last: Option<Action>) -> Vec<Action> {
    let mut path: Vec<Action> = last.into_iter().collect();
    while let (before, Some(action)) = origins[number as usize] {
        path.push(action);
        number = before;
    }
    path.reverse();
    path
}

fn explore(layout: Layout) -> Sights {
    let name = format!("{layout:?}");
    let sights = search(layout).unwrap_or_else(|(what, path)| panic!("{name}\n{path:?}\n{what}"));
    println!("{name}: {sights:?}");
    sights
}

/// Two endpoints that flood each other, down to a pool of one slot.
#[test]
fn pool_pair() {
    for (slots, window) in [(1, 1), (1, 2), (2, 2)] {
        let sights = explore(Layout::new(2, slots, window).flow(0, 1, 3).flow(1, 0, 2));
        assert!(sights.marks && sights.kept, "{sights:?}");
    }
    assert!(explore(Layout::new(2, 1, 4).flow(0, 1, 4)).late);
}

/// Two and three senders to one receiver with 1 to 4 slots.
#[test]
fn pool_star() {
    for (slots, window, packets) in [(1, 1, 2), (1, 2, 2), (2, 2, 2), (3, 2, 3), (4, 4, 3)] {
        let sights = explore(Layout::new(3, slots, window).flow(1, 0, packets).flow(2, 0, packets));
        assert!(sights.marks && sights.kept, "{sights:?}");
    }
    let three = |slots, window, packets| {
        Layout::new(4, slots, window).flow(1, 0, packets).flow(2, 0, packets).flow(3, 0, packets)
    };
    assert!(explore(three(1, 1, 1)).both);
    if is_full() {
        assert!(explore(three(2, 2, 2)).both);
    }
}

/// A sender that is invited and never comes does not stop the others; one that dies leaves nothing behind.
#[test]
fn pool_with_senders_that_compute_or_die() {
    for (slots, window) in [(1, 1), (2, 2)] {
        let star = || Layout::new(3, slots, window).flow(1, 0, 2).flow(2, 0, 2);
        assert!(explore(star().computes(0)).both);
        assert!(explore(star().restarts(0)).kept);
    }
}

/// Each rule, left out.
#[test]
fn the_checker_notices_each_rule_of_the_pool_that_is_left_out() {
    let star = || Layout::new(3, 1, 2).flow(1, 0, 2).flow(2, 0, 2);
    let broken = |layout: Layout, fault| search(layout.fault(fault)).expect_err("the checker noticed nothing").0;
    for (layout, fault, rule) in [
        (star(), Fault::InvitationsVanish, "liveness"),
        (star(), Fault::NumbersIgnored, "order"),
        (star(), Fault::NeverRefused, "slots"),
        (star(), Fault::MarksPassedOver, "slots"),
        (star(), Fault::NothingFreed, "slots"),
        (star().computes(0), Fault::NeverRevoked, "liveness"),
        (star().restarts(0), Fault::NobodyForgets, ""),
    ] {
        let what = broken(layout, fault);
        println!("{fault:?}: {}", &what[..what.len().min(100)]);
        assert!(what.starts_with(rule), "{fault:?}: {what}");
    }
}
