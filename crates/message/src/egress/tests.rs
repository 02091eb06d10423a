use super::*;
use crate::operation::Queue;
use crate::testing::{Bytes, Written};
use crate::wire::{BounceCopied, Eager};
use tidegate_flow::{PacketKind, SchemeName};

const A: PeerId = PeerId(0);
const B: PeerId = PeerId(1);

fn egress() -> Egress<Bytes> {
    let config = Config::new(SchemeName::Static, 2, 4, 2);
    Egress::new(FlowControl::new(&config).expect("a legal configuration"), &config)
}

fn message(length: usize) -> Outgoing<Bytes> {
    let head = Eager { queue: Queue::Untagged, tag: 0, data: None, was_dropped: false };
    Outgoing::new(head, Body::Borrowed(Bytes::new(&vec![1; length])), None)
}

/// Sends a message, or lets it wait.
fn send(egress: &mut Egress<Bytes>, written: &mut Written, to: PeerId, mut message: Outgoing<Bytes>) -> Step {
    let step = egress.send(written, Instant::default(), to, &mut message);
    if matches!(step, Step::NoCredits | Step::Full) {
        egress.wait(written, to, message, step == Step::Full);
    }
    step
}

#[test]
fn a_message_leaves_as_far_as_credits_reach_and_the_next_waits_behind_it() {
    let (mut egress, mut written) = (egress(), Written::default());
    let credits = egress.credits(A) as usize;
    assert_eq!(send(&mut egress, &mut written, A, message(1000)), Step::NoCredits);
    assert_eq!((written.packets.len(), egress.credits(A)), (credits, 0));
    assert_eq!(send(&mut egress, &mut written, A, message(0)), Step::NoCredits, "it must not overtake");
    assert_eq!(send(&mut egress, &mut written, B, message(0)), Step::Sent, "another peer has its own credits");
    assert_eq!((egress.waiting(), egress.is_idle(A), egress.is_idle(B)), (2, false, true));
    assert!(egress.is_timed() && egress.has_new_delays());
    assert_eq!([(); 2].map(|()| egress.tell_time(Instant::default())), [0, 1], "it counts from the second telling");
}

#[test]
fn credits_let_what_waits_go_on_in_order() {
    let (mut egress, mut written) = (egress(), Written::default());
    while send(&mut egress, &mut written, A, message(0)) == Step::Sent {}
    send(&mut egress, &mut written, A, Outgoing::new(BounceCopied { bounce: 7 }, Body::None, None));
    assert_eq!(egress.backlog(A).map(Backlog::bounced), Some(1));
    let before = written.packets.len();
    let credit = Packet::with_credits(PacketKind::Credit, 2);
    assert_eq!(egress.handle_retrieved(A, &credit), Ok(2));
    let mut left = Vec::new();
    while let Resumed::Left(message) = egress.send_waiting(&mut written, Instant::default(), A) {
        left.push(message.head.kind() as u8);
    }
    let packets: Vec<_> = written.packets[before..].iter().map(|(_, packet)| packet.header.message()).collect();
    assert_eq!((&left, packets), (&vec![2, 15], left.clone()));
    assert_eq!((egress.waiting(), egress.is_timed()), (0, false));
}

#[test]
fn a_full_mailbox_is_tried_again_and_an_unreachable_one_is_not() {
    let (mut egress, mut written) = (egress(), Written::default());
    written.refuse = Some(WriteError::Full);
    assert_eq!(send(&mut egress, &mut written, A, message(0)), Step::Full);
    assert_eq!((egress.to_retry(), egress.take_full()), (1, vec![A]));
    egress.retry(A);
    written.refuse = None;
    assert!(matches!(egress.send_waiting(&mut written, Instant::default(), A), Resumed::Left(_)));
    written.refuse = Some(WriteError::Unreachable("node 1".to_owned()));
    assert_eq!(send(&mut egress, &mut written, A, message(0)), Step::Lost(Box::new(Unreachable("node 1".to_owned()))));
}

#[test]
fn credits_that_a_full_mailbox_refuses_are_bounded_and_end_with_the_peer() {
    let (mut egress, mut written) = (egress(), Written::default());
    written.refuse = Some(WriteError::Full);
    let overdrawn = loop {
        if let Some(peer) = egress.poll_overdrawn() {
            break peer;
        }
        // It sends without waiting for credits.
        egress.handle_retrieved(A, &Packet::new(PacketKind::Data, 0, 0)).expect("it is a packet");
        egress.flush_control(&mut written, Instant::default());
        assert!(egress.refused(A) <= 5, "two credit slots, a request, a response, and one too many");
    };
    assert_eq!(overdrawn, A);
    egress.lose_peer(A);
    assert_eq!((egress.refused(A), egress.has_refused()), (0, false));
}

#[test]
fn what_is_abandoned_is_handed_back_and_does_not_leave() {
    let (mut egress, mut written) = (egress(), Written::default());
    for _ in 0..9 {
        send(&mut egress, &mut written, A, message(3));
    }
    let waiting = egress.waiting();
    assert_eq!((egress.abandon(A).len(), egress.waiting()), (waiting, 0));
    assert!(matches!(egress.send_waiting(&mut written, Instant::default(), A), Resumed::Stuck));
}

#[test]
fn a_long_message_that_leaves_packet_by_packet_takes_no_more_stack() {
    let send_it = || {
        let config = Config::new(SchemeName::None, 2, 4, 0);
        let mut egress = Egress::new(FlowControl::new(&config).expect("a legal configuration"), &config);
        let mut written = Written::default();
        written.has_one_place = true;
        assert_eq!(send(&mut egress, &mut written, A, message(1 << 20)), Step::Sent);
        assert_eq!(written.packets.len(), ((1 << 20) + 16_usize).div_ceil(56));
    };
    let small = std::thread::Builder::new().stack_size(256 << 10).spawn(send_it).expect("a thread");
    small.join().expect("it leaves");
}
