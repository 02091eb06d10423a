//! A packet of several slots does to flow control what as many packets do, slot after slot.

use proptest::prelude::*;
use tidegate_flow::SchemeName::{Dynamic, Static};
use tidegate_flow::{Config, Control, FlowControl, Packet, PacketKind, PeerId};

const PEERS: u32 = 3;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A packet of up to so many slots is retrieved.
    Retrieve { from: u32, slots: u32 },
    /// Control packets leave, and what they ask for comes back.
    Poll { returns: u32 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..PEERS, 2_u32..40).prop_map(|(from, slots)| Step::Retrieve { from, slots }),
        1 => (0_u32..20).prop_map(|returns| Step::Poll { returns }),
    ]
}

proptest! {
    #[test]
    fn a_long_packet_counts_as_its_slots(
        is_dynamic: bool,
        credit_slots in 1_u32..5,
        data in 0_u32..100,
        piggyback: bool,
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let scheme = if is_dynamic { Dynamic } else { Static };
        let config = Config { piggyback, ..Config::new(scheme, PEERS, 2 * credit_slots, credit_slots) };
        let mut whole = FlowControl::with_data_region(&config, PEERS * 2 * credit_slots + data).unwrap();
        let mut each = whole.clone();
        let mut credits: Vec<u32> = whole.inspect().peers.iter().map(|peer| peer.current_credits).collect();
        let packet = Packet::new(PacketKind::Data, 0, 0);
        for step in steps {
            match step {
                Step::Retrieve { from, slots } => {
                    let slots = slots.min(credits[from as usize]);
                    if slots < 2 {
                        continue;
                    }
                    credits[from as usize] -= slots;
                    prop_assert_eq!(whole.handle_retrieved_long(PeerId(from), slots, &packet), Ok(0));
                    (0..slots).for_each(|_| assert_eq!(each.handle_retrieved(PeerId(from), &packet), Ok(0)));
                }
                Step::Poll { returns } => {
                    loop {
                        let polled = [&mut whole, &mut each].map(FlowControl::poll_control);
                        let said = |control: &Control| (control.to, control.packet.header.bits(), control.packet.payload);
                        prop_assert_eq!(polled[0].as_ref().map(said), polled[1].as_ref().map(said));
                        let Some(control) = &polled[0] else { break };
                        let credits = &mut credits[control.to.0 as usize];
                        match control.packet.header.kind() {
                            PacketKind::Credit => *credits += control.packet.credits(),
                            // Its answer costs a credit; who has none owes it until it has.
                            PacketKind::ReturnRequest if *credits > 0 => {
                                let returned = returns.min(*credits - 1);
                                *credits -= returned + 1;
                                let answer = Packet::with_credits(PacketKind::ReturnResponse, returned);
                                prop_assert_eq!(whole.handle_retrieved(control.to, &answer), each.handle_retrieved(control.to, &answer));
                            }
                            _ => {}
                        }
                    }
                }
            }
            prop_assert!(whole == each, "after {:?}: {:?} and {:?}", step, whole, each);
        }
    }
}
