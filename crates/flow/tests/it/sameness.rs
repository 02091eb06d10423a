//! Where `dynamic` has nothing to move it is `static`, packet for packet (P §6.3).

use crate::world::{Layout, World};
use proptest::prelude::*;
use tidegate_flow::SchemeName::{Dynamic, Static};

proptest! {
    #[test]
    fn dynamic_without_a_dynamic_region_is_static(
        credit_slots in 1_u32..5,
        piggyback: bool,
        steps in prop::collection::vec(any::<prop::sample::Index>(), 0..300),
    ) {
        let world = |scheme| {
            let layout = Layout::new(scheme, credit_slots, &[2 * credit_slots, credit_slots, credit_slots]);
            let layout = layout.flow(1, 0).flow(2, 0).flow(0, 1);
            World::new(if piggyback { layout.piggyback() } else { layout })
        };
        let (mut fixed, mut moving) = (world(Static), world(Dynamic));
        let actions: Vec<_> = fixed.actions().collect();
        for step in steps {
            let action = *step.get(&actions);
            prop_assert_eq!(fixed.step(action), moving.step(action), "{:?} in {}", action, moving);
            for channel in 0..fixed.map.channels.len() {
                prop_assert_eq!(fixed.packets(channel), moving.packets(channel), "after {:?}", action);
            }
        }
    }
}
