//! Small exchanges: everything arrives, receivers hear one sender at a time where they should, runs repeat themselves.

use super::*;
use crate::cycle::{Dragonfly, FatTree};

/// 72 nodes.
const SMALL: Layout = Layout::Dragonfly(Dragonfly { groups: 9, routers: 4, nodes: 2, global: 2 });
/// 128 nodes.
const TREE: Layout = Layout::FatTree(FatTree { radix: 8, levels: 3 });

fn plan(layout: Layout, algorithm: Algorithm, sizes: Sizes) -> Plan {
    Plan {
        layout,
        routing: Routing::PROGRESSIVE,
        parameters: Parameters::SCHNEIDER,
        flit_bytes: 16,
        algorithm,
        settings: Settings::default(),
        barrier: Barrier::Tree { arity: 2 },
        overhead_cycles: 100,
        receive_factor: 1,
        is_receiving_exclusive: false,
        sizes,
        seed: 1,
        most_cycles: 2_000_000,
    }
}

fn algorithms() -> impl Iterator<Item = Algorithm> {
    let techniques = TechniqueName::ALL.iter().map(|name| Algorithm::Technique(*name));
    techniques.chain([Algorithm::Scattered(32), Algorithm::Pairwise])
}

#[test]
fn everything_arrives_and_one_sender_at_a_time_where_that_is_promised() {
    for layout in [SMALL, TREE] {
        let sizes = [Sizes::Random(600), Sizes::Skewed(500), Sizes::Sparse { receivers: 3, bytes: 20_000 }];
        for (sizes, algorithm) in sizes.into_iter().flat_map(|sizes| algorithms().map(move |one| (sizes, one))) {
            let plan = plan(layout, algorithm, sizes);
            let exchanged = AllToAll::run(&plan).unwrap_or_else(|error| panic!("{algorithm}, {sizes:?}: {error}"));
            assert!(exchanged.rate > 0.0 && exchanged.rate <= 1.0, "{algorithm}, {sizes:?}: {exchanged:?}");
            if let Algorithm::Technique(name) = algorithm
                && name.completion() == Completion::Delivered
            {
                assert_eq!(exchanged.most_at_one, 1, "{algorithm}, {sizes:?}");
            }
        }
    }
}

#[test]
fn bruck_sends_a_block_once_for_each_bit_of_its_way() {
    let exchanged = AllToAll::run(&plan(SMALL, Algorithm::Bruck, Sizes::Uniform(64))).unwrap();
    assert_eq!(exchanged.bytes, 72 * 71 * 64);
    // Seven rounds, each of an overhead to begin and one to hear that the piece has come.
    assert!((7 * 200..20_000).contains(&exchanged.cycles), "{exchanged:?}");
    let uneven = AllToAll::run(&plan(SMALL, Algorithm::Bruck, Sizes::Random(64)));
    assert_eq!(uneven, Err(PlanError::BruckUneven));
}

#[test]
fn barriers_in_hardware_and_bookings_with_few_of_them_come_to_an_end() {
    let booking = Algorithm::Technique(TechniqueName::Booking);
    for rounds_per_barrier in [1, 4] {
        let settings = Settings { rounds_per_barrier, ..Settings::default() };
        let barrier = Barrier::Hardware { cycles: 50 };
        let plan = Plan { settings, barrier, ..plan(SMALL, booking, Sizes::Random(9_000)) };
        let exchanged = AllToAll::run(&plan).unwrap();
        assert_eq!(exchanged.most_at_one, 1);
        assert!(exchanged.requests > exchanged.denials && exchanged.denials > 0, "{exchanged:?}");
        assert_eq!(AllToAll::run(&plan), Ok(exchanged), "the same run");
        assert_ne!(AllToAll::run(&Plan { seed: 2, ..plan }), Ok(exchanged), "another");
    }
}

#[test]
fn who_cannot_send_and_receive_at_once_is_half_as_fast() {
    let free = plan(TREE, Algorithm::Scattered(32), Sizes::Shifts { rounds: 8, bytes: 65_536 });
    let taken = AllToAll::run(&Plan { is_receiving_exclusive: true, ..free }).unwrap();
    let free = AllToAll::run(&free).unwrap();
    assert!((0.3..0.6).contains(&(taken.rate / free.rate)), "{free:?} {taken:?}");
}

#[test]
fn what_cannot_be_run_is_refused() {
    let broken = Layout::Dragonfly(Dragonfly { groups: 99, routers: 4, nodes: 2, global: 2 });
    let error = AllToAll::run(&plan(broken, Algorithm::Pairwise, Sizes::Uniform(1))).unwrap_err();
    assert!(matches!(error, PlanError::Machine(_)), "{error}");
    let slow = Plan { receive_factor: 0, ..plan(SMALL, Algorithm::Pairwise, Sizes::Uniform(1)) };
    assert_eq!(AllToAll::run(&slow), Err(PlanError::Machine(MachineError::SlowFactor(0))));
    let booking = plan(SMALL, Algorithm::Technique(TechniqueName::Booking), Sizes::Uniform(1));
    let unfit = Plan { settings: Settings { window: 0, ..Settings::default() }, ..booking };
    assert_eq!(AllToAll::run(&unfit), Err(PlanError::Settings(UnfitSettings::Window(0))));
    let short = Plan { most_cycles: 100, ..plan(SMALL, Algorithm::Pairwise, Sizes::Uniform(9_000)) };
    assert_eq!(AllToAll::run(&short), Err(PlanError::TooLong { cycles: 100, nodes: 72 }));
}
