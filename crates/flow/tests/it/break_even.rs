//! From how many slots on a sender of 2 KiB messages no longer stalls under `static` (P eq. 5, table 2).

use tidegate_flow::{Config, FlowControl, Instant, Packet, PacketKind, PeerId, SchemeName, slots_without_stall};

/// Packets of a 2 KiB message with its 16-byte header.
const MESSAGE_PACKETS: u32 = 37;

/// The fewest credits that a sender holds while its receiver keeps up with it.
fn credits_least(slots_per_peer: u32, credit_slots: u32) -> u32 {
    let config = Config::new(SchemeName::Static, 1, slots_per_peer, credit_slots);
    let [mut sender, mut receiver] = [(); 2].map(|()| FlowControl::new(&config).unwrap());
    let peer = PeerId(0);
    let mut least = u32::MAX;
    for _ in 0..1000 {
        let mut credit = sender.request(peer, 1, Instant::default()).into_credits();
        credit.spend();
        receiver.handle_retrieved(peer, &Packet::new(PacketKind::Data, 0, 0)).unwrap();
        while let Some(control) = receiver.poll_control() {
            sender.handle_retrieved(peer, &control.packet).unwrap();
        }
        least = least.min(sender.credits(peer));
    }
    least
}

#[test]
fn break_even_points_are_those_of_table_2() {
    for (credit_slots, slots) in [(2, 57), (3, 52), (4, 50), (5, 49)] {
        assert_eq!(slots_without_stall(MESSAGE_PACKETS, credit_slots), Some(slots));
        // The real thing: a whole message's worth of credits at every moment, and with one slot fewer not.
        assert!(credits_least(slots, credit_slots) >= MESSAGE_PACKETS, "{slots} slots");
        assert!(credits_least(slots - 1, credit_slots) < MESSAGE_PACKETS, "{} slots", slots - 1);
    }
    assert_eq!(slots_without_stall(MESSAGE_PACKETS, 0), None);
    assert_eq!(slots_without_stall(u32::MAX, 1), None);
}
