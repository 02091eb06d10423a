//! Random traffic into pools, of two to seven endpoints; then everything moves, and all packets must have come, each
//! once and in order.

use super::check::{check, check_recovery};
use super::world::{Layout, World};
use proptest::prelude::*;

/// All to endpoint 0, or everybody to everybody.
fn layouts() -> impl Strategy<Value = Layout> {
    let shape = (2_usize..8, 1_u32..40, 0_u32..7, any::<bool>(), 1_u8..40);
    (shape, any::<bool>(), any::<bool>()).prop_map(|(shape, computes, restarts)| {
        let (endpoints, slots, window, is_star, packets) = shape;
        let mut layout = Layout::new(endpoints, slots, 1 << window);
        for (from, to) in (0..endpoints).flat_map(|from| (0..endpoints).map(move |to| (from, to))) {
            if from != to && (to == 0 || !is_star) {
                // Not all have the same number of packets.
                layout = layout.flow(from, to, 1 + packets * (1 + from as u8 % 3) / 3);
            }
        }
        layout = if computes { layout.computes(0) } else { layout };
        if restarts { layout.restarts(endpoints - 2) } else { layout }
    })
}

fn run(layout: Layout, steps: &[prop::sample::Index]) -> Result<(), String> {
    let mut world = World::new(layout);
    let actions = world.actions();
    for (number, step) in steps.iter().enumerate() {
        world.step(*step.get(&actions))?;
        if number % 8 == 0 {
            check(&world)?;
        }
    }
    check_recovery(&world).map(drop)
}

proptest! {
    #[test]
    fn everything_arrives_in_a_pool_of_any_size(
        layout in layouts(),
        steps in prop::collection::vec(any::<prop::sample::Index>(), 0..600),
    ) {
        prop_assert_eq!(run(layout, &steps), Ok(()));
    }
}
