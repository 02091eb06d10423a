//! Packets that no correct peer sends: an error, never a panic, and nothing has changed.

use proptest::prelude::*;
use tidegate_flow::{Config, FlowControl, Header, Instant, Packet, PacketKind, PeerId, SchemeName, Violation};

fn endpoint(scheme: SchemeName, piggyback: bool) -> FlowControl {
    FlowControl::new(&Config { piggyback, ..Config::new(scheme, 2, 6, 2) }).unwrap()
}

/// What the endpoint makes of the packet; if it refuses it, it must be as it was.
fn handle(endpoint: &mut FlowControl, from: u32, packet: &Packet) -> Result<u32, Violation> {
    let before = endpoint.clone();
    let outcome = endpoint.handle_retrieved(PeerId(from), packet);
    assert!(outcome.is_ok() || *endpoint == before, "a refused packet changed the state");
    outcome
}

fn data() -> Packet {
    Packet::new(PacketKind::Data, 0, 0)
}

fn data_with_credits(length: usize, credits: u16) -> Packet {
    let mut packet = Packet::new(PacketKind::Data, 0, 0);
    packet.set_piggyback(credits);
    let flag = packet.header.bits() & !Header::new(PacketKind::Data, 0, 0).bits();
    packet.header = Header::from_bits(Header::new(PacketKind::Data, length, 0).bits() | flag);
    packet
}

#[test]
fn more_credits_than_the_data_region_has() {
    // The quota of 4 is all in the sender's hands.
    let credit = Packet::with_credits(PacketKind::Credit, 1);
    assert_eq!(handle(&mut endpoint(SchemeName::Static, true), 0, &credit), Err(Violation::TooManyCredits));
    assert_eq!(
        handle(&mut endpoint(SchemeName::Static, true), 0, &data_with_credits(0, 1)),
        Err(Violation::TooManyCredits)
    );
    let credit = Packet::with_credits(PacketKind::Credit, u32::MAX);
    assert_eq!(handle(&mut endpoint(SchemeName::Static, true), 0, &credit), Err(Violation::TooManyCredits));
    assert_eq!(handle(&mut endpoint(SchemeName::Dynamic, true), 0, &credit), Err(Violation::TooManyCredits));
}

/// A receiver cannot tell data that no credit covers: whoever it retrieves from always has a credit that it might have
/// used. But a sender that ignores its credits is lent no more for it than one that keeps to them.
#[test]
fn a_sender_that_ignores_its_credits() {
    let mut endpoint = endpoint(SchemeName::Dynamic, true);
    for _ in 0..10_000 {
        assert_eq!(handle(&mut endpoint, 0, &data()), Ok(0));
        let inspection = endpoint.inspect();
        let lent: u32 = inspection.peers.iter().map(|peer| peer.current_credits).sum();
        assert_eq!(lent + inspection.available_slots, 8);
        assert!(inspection.peers[1].current_credits >= 2, "static slots were lent out: {inspection}");
    }
}

#[test]
fn answers_that_nobody_asked_for() {
    let response = Packet::with_credits(PacketKind::ReturnResponse, 0);
    for &scheme in SchemeName::WITHOUT_BUFFERS {
        assert_eq!(handle(&mut endpoint(scheme, true), 0, &response), Err(Violation::Unexpected));
    }
}

#[test]
fn a_second_request_before_the_first_was_answered() {
    let mut endpoint = endpoint(SchemeName::Dynamic, true);
    let request = Packet::new(PacketKind::ReturnRequest, 0, 0);
    assert_eq!(handle(&mut endpoint, 0, &request), Ok(0));
    assert_eq!(handle(&mut endpoint, 0, &request), Err(Violation::Unexpected));
}

#[test]
fn packets_of_schemes_that_are_not_in_use() {
    for kind in [PacketKind::ReturnRequest, PacketKind::ReturnResponse] {
        assert_eq!(
            handle(&mut endpoint(SchemeName::Static, true), 0, &Packet::new(kind, 0, 0)),
            Err(Violation::Unexpected)
        );
    }
    for kind in [PacketKind::Credit, PacketKind::ReturnRequest, PacketKind::ReturnResponse] {
        assert_eq!(
            handle(&mut endpoint(SchemeName::None, true), 0, &Packet::new(kind, 4, 0)),
            Err(Violation::Unexpected)
        );
    }
    for &scheme in SchemeName::WITHOUT_BUFFERS {
        assert_eq!(handle(&mut endpoint(scheme, false), 0, &data_with_credits(0, 1)), Err(Violation::Unexpected));
    }
}

#[test]
fn packets_that_contradict_themselves() {
    for scheme in [SchemeName::Static, SchemeName::Dynamic] {
        let mut endpoint = endpoint(scheme, true);
        let full = data_with_credits(55, 1);
        let empty = data_with_credits(0, 0);
        let short = Packet::new(PacketKind::Credit, 2, 0);
        let nothing = Packet::with_credits(PacketKind::Credit, 0);
        for packet in [full, empty, short, nothing] {
            assert_eq!(handle(&mut endpoint, 0, &packet), Err(Violation::Malformed), "{:?}", packet.header);
        }
    }
}

#[test]
fn senders_that_do_not_exist() {
    for scheme in [SchemeName::Static, SchemeName::Dynamic] {
        assert_eq!(handle(&mut endpoint(scheme, true), 2, &data()), Err(Violation::UnknownPeer));
        assert_eq!(handle(&mut endpoint(scheme, true), u32::MAX, &data()), Err(Violation::UnknownPeer));
    }
}

/// A return response that brings back what its sender does not have.
#[test]
fn a_response_with_more_credits_than_were_lent() {
    let (mut endpoint, victim) = endpoint_with_a_blocked_peer();
    let lent = endpoint.inspect().peers[victim as usize].current_credits;
    let response = Packet::with_credits(PacketKind::ReturnResponse, lent);
    assert_eq!(handle(&mut endpoint, victim, &response), Err(Violation::TooManyCredits));
    let response = Packet::with_credits(PacketKind::ReturnResponse, lent - 1);
    assert_eq!(handle(&mut endpoint, victim, &response), Ok(0));
}

/// Peer 1 used one credit, got more, and fell silent; peer 0 goes on until it has stolen all that peer 1 does not need.
fn endpoint_with_a_blocked_peer() -> (FlowControl, u32) {
    let mut endpoint = endpoint(SchemeName::Dynamic, true);
    endpoint.handle_retrieved(PeerId(1), &data()).unwrap();
    while !endpoint.inspect().peers[1].blocked {
        endpoint.handle_retrieved(PeerId(0), &data()).unwrap();
        while endpoint.poll_control().is_some() {}
    }
    (endpoint, 1)
}

#[test]
fn a_response_before_the_request_has_left() {
    let mut endpoint = endpoint(SchemeName::Dynamic, true);
    endpoint.handle_retrieved(PeerId(1), &data()).unwrap();
    // All credits towards peer 1 are in the application's hands, so the request has to wait.
    let credits = endpoint.request(PeerId(1), u32::MAX, Instant::default()).into_credits();
    while !endpoint.inspect().peers[1].blocked {
        endpoint.handle_retrieved(PeerId(0), &data()).unwrap();
        while endpoint.poll_control().is_some() {}
    }
    let response = Packet::with_credits(PacketKind::ReturnResponse, 0);
    assert_eq!(handle(&mut endpoint, 1, &response), Err(Violation::Unexpected));
    endpoint.give_back(PeerId(1), credits);
    let request = endpoint.poll_control().unwrap();
    assert_eq!((request.to, request.packet.header.kind()), (PeerId(1), PacketKind::ReturnRequest));
    assert_eq!(handle(&mut endpoint, 1, &response), Ok(0));
}

proptest! {
    /// Any bytes at all, also between packets that make sense: no panic, and what is refused changes nothing.
    #[test]
    fn any_bytes(
        scheme in prop::sample::select(SchemeName::WITHOUT_BUFFERS.to_vec()),
        piggyback: bool,
        packets in prop::collection::vec((0_u32..3, any::<u64>(), any::<u32>(), any::<u16>(), 0_u8..4), 0..200),
    ) {
        let mut endpoint = endpoint(scheme, piggyback);
        for (from, header, credits, riding, shape) in packets {
            let mut packet = match shape {
                0 => data(),
                1 => Packet::with_credits(PacketKind::Credit, credits % 8),
                2 => Packet::with_credits(PacketKind::ReturnResponse, credits % 8),
                _ => Packet::with_credits(PacketKind::Data, credits),
            };
            if shape == 3 {
                packet.payload[54..].copy_from_slice(&riding.to_le_bytes());
                packet.header = Header::from_bits(header);
            }
            let _ = handle(&mut endpoint, from, &packet);
            let mut leaving = data();
            let credits = endpoint.request(PeerId(0), 1, Instant::default()).into_credits();
            endpoint.before_send(PeerId(0), &mut leaving, 0);
            endpoint.give_back(PeerId(0), credits);
            while endpoint.poll_control().is_some() {}
        }
    }
}
