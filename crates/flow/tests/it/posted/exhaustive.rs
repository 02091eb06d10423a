//! Every interleaving of small worlds with posted buffers, every invariant in every state, and a way out of each.

use super::explore::{Sights, explore, search};
use super::layout::Carrier::{AtOnce, Late};
use super::layout::{Carrier, Fault, Layout};
use crate::explore::is_full;
use tidegate_flow::SchemeName::{Growing, Preposted, Rnr, SharedWindow};
use tidegate_flow::{Growth, SchemeName};

/// Two endpoints, both of which always have a message for the other. With a link that refuses late, messages have to be
/// few, or the queue of the sender's adapter would grow without end.
fn pair(scheme: SchemeName, carrier: Carrier, messages: u8) -> Layout {
    let layout = Layout::new(scheme, carrier, 2);
    match carrier {
        AtOnce => layout.flow(0, 1).flow(1, 0),
        Late => layout.burst(0, 1, messages).burst(1, 0, messages),
    }
}

/// Senders to endpoint 0.
fn star(scheme: SchemeName, carrier: Carrier, senders: usize, messages: u8) -> Layout {
    let layout = Layout::new(scheme, carrier, senders + 1);
    (1..=senders).fold(layout, |layout, sender| match carrier {
        AtOnce => layout.flow(sender, 0),
        Late => layout.burst(sender, 0, messages),
    })
}

/// Explores, and prints what was seen.
fn see(layout: Layout) -> Sights {
    let name = format!("{} {:?} {:?}", layout.scheme, layout.carrier, layout.flows.len());
    let sights = explore(layout);
    println!("{name}: {sights:?}");
    sights
}

/// Floods both ways, down to one buffer for each connection.
#[test]
fn rnr_pair() {
    for buffers in [1, 2, 3] {
        assert!(see(pair(Rnr, AtOnce, 0).each(buffers)).refusals);
        assert!(see(pair(Rnr, Late, 4).each(buffers)).refusals);
    }
}

/// A sender that is refused does not hold up another, and messages of several buffers stay together.
#[test]
fn rnr_star_and_long_messages() {
    assert!(see(star(Rnr, AtOnce, 2, 0).each(1)).refusals);
    assert!(see(star(Rnr, Late, 2, 3).each(1)).refusals);
    for (of_message, of_buffer) in [(3, 2), (4, 2), (2, 5)] {
        see(pair(Rnr, AtOnce, 0).each(1).packets(of_message, of_buffer));
        see(pair(Rnr, Late, 2).each(1).packets(of_message, of_buffer));
    }
}

/// Credits travel both ways, optimistically: credit packets take promised buffers, so that messages with credits are
/// refused, and are refused themselves.
#[test]
fn preposted_pair() {
    for (buffers, threshold) in [(1, 5), (2, 5), (2, 1), (3, 2)] {
        let sights = see(pair(Preposted, AtOnce, 0).each(buffers).threshold(threshold));
        assert!(sights.refusals && sights.credit_packets && sights.late_credits, "{sights:?}");
        assert_eq!(sights.rides, buffers > 1 && threshold > 1, "{sights:?}");
        let sights = see(pair(Preposted, Late, 4).each(buffers).threshold(threshold));
        assert!(sights.refusals && sights.credit_packets && sights.late_credits, "{sights:?}");
        see(pair(Preposted, AtOnce, 0).each(buffers).threshold(threshold).without_piggyback());
    }
}

/// One-way traffic: all credits come back by credit packets.
#[test]
fn preposted_star_and_long_messages() {
    for buffers in [1, 3] {
        let sights = see(star(Preposted, AtOnce, 2, 0).each(buffers));
        assert!(sights.credit_packets && !sights.rides && !sights.refusals, "{sights:?}");
    }
    assert!(see(star(Preposted, Late, 2, 3).each(1)).credit_packets);
    assert!(see(pair(Preposted, AtOnce, 0).each(1).packets(3, 2)).refusals);
    see(pair(Preposted, AtOnce, 0).each(2).packets(3, 2));
    see(pair(Preposted, Late, 2).each(1).packets(3, 2));
}

#[test]
fn growing_pair() {
    for growth in [Growth::Linear, Growth::Exponential] {
        let with = |mut layout: Layout| {
            layout.buffers.growth = growth;
            see(layout.each(1).rarest())
        };
        let sights = with(pair(Growing, AtOnce, 0).most(2));
        assert!(sights.growth == (true, true, true) && sights.waits && sights.late_credits, "{sights:?}");
        let sights = with(Layout::new(Growing, AtOnce, 2).flow(0, 1).burst(1, 0, 2).most(3).backlog(2));
        assert!(sights.growth == (true, true, true) && sights.refusals && sights.rides, "{sights:?}");
        with(pair(Growing, Late, 3).most(3).backlog(2));
    }
}

/// Connections that share the spare buffers of an endpoint.
#[test]
fn growing_star() {
    let sights = see(star(Growing, AtOnce, 2, 0).each(1).most(2).rarest());
    assert!(sights.growth == (true, true, true) && sights.credit_packets, "{sights:?}");
    see(star(Growing, Late, 2, 3).each(1).most(2).rarest());
    // Reviews that may become twice as rare once.
    let mut layout = Layout::new(Growing, AtOnce, 2).flow(0, 1).each(1).most(3).rarest();
    layout.buffers.quiet_after = layout.buffers.quiet_after.map(|rarest| rarest / 2);
    see(layout);
}

/// A sender that is refused beside others that are not: each of them has the spare buffer twice at most before it.
#[test]
fn shared_window_star() {
    for (first, most, refusals_most) in [(1, 1, 1), (1, 2, 2), (2, 4, 1)] {
        let sights = see(star(SharedWindow, AtOnce, 2, 0).pool(first, most, refusals_most));
        assert!(sights.refusals && sights.events, "{sights:?}");
        see(star(SharedWindow, Late, 2, 3).pool(first, most, refusals_most));
    }
    let sights = see(star(SharedWindow, AtOnce, 3, 0).pool(1, 1, 2));
    assert_eq!(sights.passed_over, 4, "two others pass the third twice each");
}

#[test]
fn shared_window_pair() {
    for (first, most) in [(1, 1), (1, 2), (2, 4)] {
        see(pair(SharedWindow, AtOnce, 0).pool(first, most, 2));
        see(pair(SharedWindow, Late, 3).pool(first, most, 2));
    }
}

/// A writer that dies, also between taking a buffer and filling it: everything is as before it came, and its successor
/// gets to send.
#[test]
fn writers_that_die() {
    for buffers in [1, 2] {
        see(star(Rnr, AtOnce, 2, 0).each(buffers).restarts(1));
        see(star(Preposted, AtOnce, 2, 0).flow(0, 1).each(buffers).restarts(1));
    }
    see(star(Growing, AtOnce, 2, 0).each(1).most(2).rarest().restarts(1));
    see(star(SharedWindow, AtOnce, 2, 0).pool(1, 2, 1).restarts(1));
    if is_full() {
        see(star(SharedWindow, AtOnce, 3, 0).pool(2, 2, 1).restarts(2));
    }
}

/// What breaks in a world with something wrong on purpose.
fn breaks(layout: Layout, fault: Fault) -> String {
    search(&layout.fault(fault)).expect_err("the checker noticed nothing").what
}

#[test]
fn the_checker_notices_what_is_lost_and_who_is_stuck() {
    for scheme in [Preposted, Growing] {
        let broken = breaks(pair(scheme, AtOnce, 0).each(2).most(2), Fault::CreditPacketsVanish);
        assert!(broken.starts_with("credits"), "{broken}");
    }
    for layout in [pair(Rnr, AtOnce, 0).each(1), pair(Preposted, Late, 3).each(1)] {
        assert!(breaks(layout, Fault::NobodyPosts).starts_with("buffers"));
    }
    let broken = breaks(star(SharedWindow, AtOnce, 2, 0).pool(2, 2, 1).restarts(1), Fault::NobodyForgets);
    assert!(broken.starts_with("buffers"), "{broken}");
}
