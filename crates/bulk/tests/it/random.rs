//! Larger exchanges, in random orders: what `exhaustive.rs` tries in every order for three and four nodes.

use crate::world::{Happening, World};
use proptest::prelude::*;
use tidegate_bulk::{Block, Node, Settings, TechniqueName};

/// What the nodes of an exchange send: a block is a receiver and a length.
fn exchanges() -> impl Strategy<Value = Vec<Vec<Block>>> {
    (2_u32..12).prop_flat_map(|nodes| {
        let block = (0..nodes, 0_u64..5).prop_map(|(to, bytes)| Block { to: Node(to), bytes });
        let sparse = prop::collection::vec(block, 0..8);
        let to_all = (0_u64..5).prop_map(move |bytes| (0..nodes).map(|to| Block { to: Node(to), bytes }).collect());
        prop::collection::vec(prop_oneof![sparse, to_all], nodes as usize)
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    let booking = (1_u32..9, 1_u32..9, 1_u32..4);
    (1_u64..4, 1_u32..4, booking, any::<u64>()).prop_map(|(unit, outstanding, (window, rounds, requests), seed)| {
        Settings {
            unit,
            outstanding,
            window,
            rounds_per_barrier: rounds.min(window),
            requests_per_round: requests,
            picoseconds_per_byte: 1_000_000,
            seed,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn everything_arrives_once_by_one_sender_at_a_time(
        blocks in exchanges(),
        settings in settings(),
        technique in prop::sample::select(TechniqueName::ALL),
        deaths in 0_u32..3,
        // How much rarer than others the last happenings of the list are: signals come before landings, deaths last.
        lopsided in 1_u32..4,
        order in prop::collection::vec(any::<u32>(), 64),
    ) {
        let mut world = World::new(technique, &blocks, &settings, deaths);
        // The order repeats itself, with a shift, so that it is as long as the exchange.
        for place in 0_usize.. {
            let happenings = world.happenings();
            let Some(last) = happenings.len().checked_sub(1) else { break };
            let drawn = order[place % order.len()].rotate_left((place / order.len()) as u32);
            let share = f64::from(drawn) / (f64::from(u32::MAX) + 1.0);
            let chosen = (share.powi(lopsided as i32) * (last + 1) as f64) as usize;
            let rare = matches!(happenings[chosen], Happening::Die(..)) && drawn % 16 != 0;
            world.apply(happenings[if rare { 0 } else { chosen }]);
            prop_assert!(place < 100_000, "{} does not come to an end", technique);
        }
        world.check_end();
    }
}
