//! Packets that no correct peer sends, under schemes with posted buffers: an error or nothing, never a panic, and what
//! is refused changes nothing.

use proptest::prelude::*;
use tidegate_flow::{
    Buffers, Config, FlowControl, Header, Instant, Packet, PacketKind, PeerId, ReceiveQueues, SchemeName, Violation,
};

fn endpoint(scheme: SchemeName, piggyback: bool) -> (FlowControl, ReceiveQueues) {
    let buffers = Buffers { per_connection: 2, per_connection_most: 3, pool_most: 16, ..Buffers::of(scheme) };
    let queues = ReceiveQueues::new(scheme, 2, &buffers).unwrap();
    let config = Config { piggyback, buffers, ..Config::new(scheme, 2, 1, 0) };
    (FlowControl::new(&config).unwrap(), queues)
}

#[test]
fn packets_of_other_schemes_and_of_nobody() {
    for &scheme in SchemeName::WITH_BUFFERS {
        let (mut endpoint, _) = endpoint(scheme, true);
        for kind in [PacketKind::ReturnRequest, PacketKind::ReturnResponse] {
            let packet = Packet::with_credits(kind, 0);
            assert_eq!(endpoint.handle_retrieved(PeerId(0), &packet), Err(Violation::Unexpected), "{scheme}");
        }
        let packet = Packet::new(PacketKind::Data, 0, 0);
        assert_eq!(endpoint.handle_retrieved(PeerId(2), &packet), Err(Violation::UnknownPeer), "{scheme}");
    }
    for scheme in [SchemeName::Rnr, SchemeName::SharedWindow] {
        let credit = Packet::with_credits(PacketKind::Credit, 1);
        assert_eq!(endpoint(scheme, true).0.handle_retrieved(PeerId(0), &credit), Err(Violation::Unexpected));
    }
}

#[test]
fn more_credits_than_a_connection_has_buffers() {
    let credit = Packet::with_credits(PacketKind::Credit, 1);
    let (mut preposted, _) = endpoint(SchemeName::Preposted, true);
    assert_eq!(preposted.handle_retrieved(PeerId(0), &credit), Err(Violation::TooManyCredits));
    let (mut growing, _) = endpoint(SchemeName::Growing, true);
    let credit = Packet::with_credits(PacketKind::Credit, u32::MAX);
    assert_eq!(growing.handle_retrieved(PeerId(0), &credit), Err(Violation::TooManyCredits));
}

proptest! {
    /// Any bytes at all. Buffers that were never taken are not posted, whatever is said.
    #[test]
    fn any_bytes(
        scheme in prop::sample::select(SchemeName::WITH_BUFFERS),
        piggyback: bool,
        packets in prop::collection::vec((0_u32..3, any::<u64>(), any::<u32>(), any::<u16>(), 0_u8..3), 0..200),
    ) {
        let (mut endpoint, mut queues) = endpoint(scheme, piggyback);
        let posted = [0, 1].map(|peer| queues.posted(PeerId(peer)));
        let mut added = 0;
        for (from, header, credits, riding, shape) in packets {
            let mut packet = match shape {
                0 => Packet::new(PacketKind::Data, 0, 0),
                1 => Packet::with_credits(PacketKind::Credit, credits % 4),
                _ => Packet::with_credits(PacketKind::Data, credits),
            };
            if shape == 2 {
                packet.payload[54..].copy_from_slice(&riding.to_le_bytes());
                packet.header = Header::from_bits(header);
            }
            let before = endpoint.clone();
            if endpoint.handle_retrieved(PeerId(from), &packet).is_err() {
                prop_assert!(endpoint == before, "a refused packet changed the state");
            }
            while let Some(posting) = endpoint.poll_posting() {
                added += if let tidegate_flow::Posting::More(_, buffers) = posting { buffers } else { 0 };
                queues.post(posting);
            }
            while endpoint.poll_control().is_some() {}
            let credits = endpoint.request(PeerId(0), 5, Instant::default()).into_credits();
            endpoint.give_back(PeerId(0), credits);
        }
        let now = [0, 1].map(|peer| queues.posted(PeerId(peer)));
        prop_assert!(now.iter().sum::<u32>() <= posted.iter().sum::<u32>() + added, "{:?} {:?}", posted, now);
    }
}
