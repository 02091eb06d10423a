//! Every interleaving of small worlds, every invariant in every state.
//!
//! Sending is always one choice among others, so every exploration contains the runs in which a sender falls silent at
//! any moment, and retrieving is another, so it contains receivers that are slow at any moment.

use crate::explore::{Sights, explore, is_full, search};
use crate::world::{Fault, Layout};
use tidegate_flow::SchemeName::{self, Dynamic, Static};

/// Endpoint 0 receives into `data` slots, endpoints 1 to `senders` send. Under `static` all must have the same quota;
/// under `dynamic` the senders' own mailboxes are as small as is legal.
fn star(scheme: SchemeName, senders: usize, credit_slots: u32, data: u32) -> Layout {
    let quota = if scheme == Static { data / senders as u32 } else { credit_slots };
    let mut regions = vec![quota; senders + 1];
    regions[0] = data;
    (1..=senders).fold(Layout::new(scheme, credit_slots, &regions), |layout, sender| layout.flow(sender, 0))
}

/// The same, of whose senders the first alone is expected.
fn star_of_one(senders: usize, credit_slots: u32, data: u32) -> Layout {
    Layout { expected: Some(1), ..star(Dynamic, senders, credit_slots, data) }
}

/// Two endpoints that send to each other.
fn pair(scheme: SchemeName, credit_slots: u32, data: u32) -> Layout {
    Layout::new(scheme, credit_slots, &[data, data]).flow(0, 1).flow(1, 0)
}

/// Return requests were answered, and credits came back.
fn has_returns(sights: &Sights) -> bool {
    sights.requests && sights.responses == (true, true)
}

#[test]
fn dynamic_two_senders_one_credit_slot() {
    let sizes: &[u32] = if is_full() { &[2, 3, 4, 5, 6, 8] } else { &[2, 3, 4, 5, 6] };
    for &data in sizes {
        let sights = explore(star(Dynamic, 2, 1, data));
        assert_eq!(has_returns(&sights), data > 2, "{data} slots: {sights:?}");
    }
}

#[test]
fn dynamic_two_senders_two_credit_slots() {
    assert!(has_returns(&explore(star(Dynamic, 2, 2, 6))));
}

#[test]
fn dynamic_three_senders() {
    explore(star(Dynamic, 3, 1, 3));
    assert!(explore(star(Dynamic, 3, 1, 4)).requests);
}

#[test]
fn dynamic_pair() {
    for data in [1, 2, 3, 5] {
        explore(pair(Dynamic, 1, data));
        // Without a dynamic region every packet brings its credit back at once.
        assert_eq!(explore(pair(Dynamic, 1, data).piggyback()).rides, data > 1);
    }
    explore(pair(Dynamic, 2, 4));
    assert!(explore(pair(Dynamic, 2, 4).piggyback()).rides);
}

/// Requests and responses cost credits of the direction that they travel in, and compete there with data.
#[test]
fn dynamic_two_way_with_one_of_two_senders() {
    for layout in [star(Dynamic, 2, 1, 4).flow(0, 1), star(Dynamic, 2, 1, 4).flow(0, 2)] {
        let sights = explore(layout);
        assert!(has_returns(&sights) && sights.waits, "{sights:?}");
    }
}

#[test]
fn dynamic_two_way_with_one_of_two_senders_piggybacking() {
    for layout in [star(Dynamic, 2, 1, 4).flow(0, 1), star(Dynamic, 2, 1, 4).flow(0, 2)] {
        let sights = explore(layout.piggyback());
        assert!(has_returns(&sights) && sights.waits && sights.rides, "{sights:?}");
    }
}

#[test]
fn dynamic_two_way_with_two_senders() {
    let sights = explore(star(Dynamic, 2, 1, 4).flow(0, 1).flow(0, 2));
    assert!(has_returns(&sights) && sights.waits, "{sights:?}");
}

#[test]
fn dynamic_two_way_with_two_senders_piggybacking() {
    let sights = explore(star(Dynamic, 2, 1, 4).flow(0, 1).flow(0, 2).piggyback());
    assert!(has_returns(&sights) && sights.waits && sights.rides, "{sights:?}");
}

/// Both receivers of a two-way pair have a third sender to steal for, so each may block the other at the same time.
#[test]
fn dynamic_two_receivers_that_block_each_other() {
    let burst = if is_full() { 7 } else { 6 };
    let triangle = Layout::new(Dynamic, 1, &[4, 4, 2]).burst(2, 0, burst).burst(2, 1, burst);
    let sights = explore(triangle.burst(0, 1, 3).burst(1, 0, 2).piggyback());
    assert!(sights.requests && sights.responses.0 && sights.mutual_blocks && sights.rides, "{sights:?}");
}

/// The caller need not poll at once: credits and requests that wait merge, and still nothing breaks.
#[test]
fn dynamic_polled_late() {
    let data = if is_full() { 4 } else { 3 };
    assert!(has_returns(&explore(star(Dynamic, 2, 1, data).polls_late())));
}

/// A peer that is reset at any moment leaves everything as sound as it was, and its successor gets to send.
#[test]
fn dynamic_with_a_sender_that_dies() {
    assert!(has_returns(&explore(star(Dynamic, 2, 1, 4).restarts(1))));
    assert!(has_returns(&explore(star(Dynamic, 2, 1, 5).restarts(2))));
    explore(star(Dynamic, 2, 1, 4).flow(0, 1).piggyback().restarts(1));
}

/// Whoever comes beyond those that are expected has nothing but its static slots, and earns what they leave.
#[test]
fn dynamic_with_senders_that_nobody_expects() {
    let sizes: &[u32] = if is_full() { &[2, 3, 4, 5, 6, 8] } else { &[2, 3, 4, 5] };
    for &data in sizes {
        let sights = explore(star_of_one(2, 1, data));
        assert_eq!(has_returns(&sights), data > 2, "{data} slots: {sights:?}");
    }
    explore(star_of_one(2, 2, 6));
    explore(star_of_one(3, 1, 4));
    explore(star_of_one(2, 1, 4).flow(0, 1).piggyback().restarts(1));
    explore(star_of_one(2, 1, 4).flow(0, 1).piggyback().restarts(2));
}

#[test]
fn static_pair() {
    for (credit_slots, data) in [(1, 1), (1, 2), (1, 3), (1, 4), (2, 2), (2, 3), (2, 5), (3, 3)] {
        explore(pair(Static, credit_slots, data));
        assert_eq!(explore(pair(Static, credit_slots, data).piggyback()).rides, data > credit_slots);
        explore(pair(Static, credit_slots, data).polls_late());
    }
}

#[test]
fn static_two_and_three_senders() {
    explore(star(Static, 2, 1, 8));
    explore(star(Static, 2, 1, 4).flow(0, 1).flow(0, 2).piggyback());
    explore(star(Static, 3, 1, 6));
    explore(star(Static, 2, 1, 6).flow(0, 1).piggyback().restarts(1));
}

/// What breaks in a world with something wrong on purpose.
fn breaks(layout: Layout, fault: Fault) -> String {
    search(&layout.fault(fault)).expect_err("the checker noticed nothing").what
}

#[test]
fn the_checker_notices_lost_credits_and_stuck_senders() {
    for layout in [star(Static, 2, 1, 4), star(Dynamic, 2, 1, 4)] {
        assert!(breaks(layout.clone(), Fault::CreditPacketsVanish).starts_with("conservation"));
        assert!(breaks(layout, Fault::NobodyPolls).starts_with("liveness"));
    }
}

/// The bounds are tight: with one slot fewer of either kind there is an interleaving that overflows.
#[test]
fn every_slot_is_needed() {
    for layout in [star(Static, 2, 1, 4), star(Dynamic, 2, 1, 4), star(Dynamic, 2, 2, 6), pair(Static, 2, 5)] {
        assert!(breaks(layout.clone(), Fault::OneCreditSlotFewer).starts_with("credit slots"));
        assert!(breaks(layout, Fault::OneDataSlotFewer).starts_with("overflow"));
    }
}
