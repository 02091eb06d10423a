//! The sender's and the receiver's side by themselves.

use super::super::wire::PART_MOST;
use super::*;

fn packet() -> Packet {
    Packet::new(PacketKind::Data, 0, 1)
}

/// Sends what is due; returns the numbers.
fn send(outbox: &mut Outbox) -> Vec<u64> {
    let mut sent = Vec::new();
    while let Some(due) = outbox.poll_due() {
        let sequence = due.sequence;
        sent.push(sequence);
        outbox.handle_taken(sequence, 0, Instant::default());
    }
    sent
}

#[test]
fn packets_gather_while_batches_are_unacknowledged() {
    let mut outbox = Outbox::default();
    let mut sent = Vec::new();
    for _ in 0..UNACKNOWLEDGED {
        outbox.push(&packet());
        sent.extend(send(&mut outbox));
    }
    assert_eq!(sent, (0..UNACKNOWLEDGED).collect::<Vec<_>>());
    for _ in 0..PACKETS_PER_BATCH {
        assert!(outbox.room() > 0);
        outbox.push(&packet());
        assert_eq!(send(&mut outbox), []);
    }
    assert_eq!(outbox.room(), 0);
    assert_eq!(outbox.handle_acknowledgement(1), Some(true));
    assert_eq!((send(&mut outbox), outbox.room()), (vec![UNACKNOWLEDGED], PACKETS_PER_BATCH));
}

#[test]
fn after_a_pause_a_burst_leaves_at_once_and_a_stream_gathers() {
    let (mut outbox, mut now) = (Outbox::default(), Instant::default() + PAUSE);
    let write = |outbox: &mut Outbox, now: &mut Instant, count: usize| {
        (0..count)
            .map(|_| {
                *now = *now + Duration::from_micros(1);
                outbox.handle_write(*now);
                outbox.push(&packet());
                send(outbox).len()
            })
            .sum::<usize>()
    };
    let burst = (UNACKNOWLEDGED + BURST) as usize;
    assert_eq!(write(&mut outbox, &mut now, 100), burst, "each message by itself, and the others gather");
    assert_eq!(outbox.handle_acknowledgement(burst as u64), Some(true));
    assert_eq!(send(&mut outbox), [burst as u64], "in one batch");
    assert_eq!(write(&mut outbox, &mut now, 40), UNACKNOWLEDGED as usize - 1, "there was no pause");
    now = now + PAUSE;
    let most = outbox.kept.iter().map(|kept| kept.bytes.len()).sum::<usize>();
    assert!(write(&mut outbox, &mut now, 4) <= BURST as usize && most <= UNACKNOWLEDGED_BYTES);
    // Full batches never leave beyond the four.
    let mut outbox = Outbox::default();
    outbox.handle_write(now);
    let mut sent = 0;
    while outbox.room() > 0 {
        outbox.push(&packet());
        sent += if outbox.room().is_multiple_of(PACKETS_PER_BATCH) { send(&mut outbox).len() } else { 0 };
    }
    assert_eq!(sent, UNACKNOWLEDGED as usize);
}

#[test]
fn what_was_not_sent_cannot_be_acknowledged() {
    let mut outbox = Outbox::default();
    outbox.push(&packet());
    assert_eq!(outbox.handle_acknowledgement(1), None);
    send(&mut outbox);
    assert_eq!((outbox.handle_acknowledgement(1), outbox.handle_acknowledgement(0)), (Some(true), Some(false)));
    assert!(outbox.is_empty());
}

#[test]
fn a_batch_is_sent_again_when_no_copy_is_on_its_way() {
    let mut outbox = Outbox::default();
    outbox.push(&packet());
    send(&mut outbox);
    assert!(!outbox.resend(u64::MAX), "the network still has it");
    outbox.handle_ended(0, false);
    assert!(!outbox.resend(0), "it was sent after the ping");
    assert!(outbox.resend(1));
    assert_eq!(send(&mut outbox), [0]);
    outbox.handle_ended(0, true);
    assert_eq!(send(&mut outbox), [0]);
}

#[test]
fn a_goodbye_rides_on_the_last_packets_or_follows_them() {
    let mut outbox = Outbox::default();
    let goodbye = Marks { is_closing: true, is_last: true, ..Marks::default() };
    outbox.push(&packet());
    outbox.mark(goodbye);
    assert_eq!(outbox.poll_due().map(|due| (due.sequence, due.marks)), Some((0, goodbye)));
    let mut outbox = Outbox::default();
    outbox.push(&packet());
    send(&mut outbox);
    outbox.mark(goodbye);
    let due = outbox.poll_due().map(|due| (due.sequence, due.marks, due.bytes.len()));
    assert_eq!(due, Some((1, goodbye, HEADER_BYTES)));
}

#[test]
fn batches_are_delivered_in_order_and_once() {
    let mut inbox = Inbox::default();
    let mut delivered = Vec::new();
    let mut take = |sequence: u64| {
        let took = inbox.handle(sequence, Marks::default(), &[sequence as u8], 0, |body, _| delivered.push(body[0]));
        (took, inbox.expected())
    };
    assert_eq!(take(2), (Taken::Early, 0));
    assert_eq!(take(2), (Taken::Again, 0));
    assert_eq!(take(UNACKNOWLEDGED + BURST), (Taken::Wrong, 0));
    assert_eq!(take(0), (Taken::InOrder, 1));
    assert_eq!(take(1), (Taken::InOrder, 3));
    assert_eq!(take(1), (Taken::Again, 3));
    assert_eq!(delivered, [0, 1, 2]);
}

/// Carries as many messages of this length as find room, sending what may be sent.
fn carry_all(outbox: &mut Outbox, copies: &Copies, length: usize) -> usize {
    let mut carried = 0;
    while outbox.carry(length, PART_MOST, copies, |_, length, batch| batch.resize(batch.len() + length, 7)) {
        outbox.push(&packet());
        send(outbox);
        carried += 1;
    }
    carried
}

#[test]
fn carried_messages_take_no_more_memory_than_is_said_however_long_they_are() {
    for length in [1, 100, 2100, 9000, PART_MOST - 1, PART_MOST, CARRIED_ALONE_MOST] {
        let mut outbox = Outbox::default();
        for _ in 0..3 {
            let carried = carry_all(&mut outbox, &Copies::of(0), length);
            assert!(carried >= 1, "{carried} of {length} bytes");
            while outbox.room() > 0 {
                outbox.push(&packet());
            }
            let bytes = outbox.kept.iter().map(|kept| kept.bytes.capacity() + size_of::<Kept>());
            let spare = outbox.spare.iter().map(|bytes| bytes.capacity());
            assert!(bytes.chain(spare).sum::<usize>() <= Outbox::BYTES_MOST, "messages of {length} bytes");
            while !outbox.is_empty() {
                send(&mut outbox);
                let sent = outbox.kept.iter().take_while(|kept| kept.is_sent).count() as u64;
                assert_eq!(outbox.handle_acknowledgement(outbox.first() + sent), Some(true));
            }
        }
    }
}

#[test]
fn a_message_that_is_alone_under_way_may_be_longer() {
    let mut outbox = Outbox::default();
    let carry = |outbox: &mut Outbox, length, part_most| {
        outbox.carry(length, part_most, &Copies::of(0), |_, length, batch| batch.resize(batch.len() + length, 7))
    };
    assert!(!carry(&mut outbox, CARRIED_ALONE_MOST, PART_MOST / 2), "its network is none of sockets");
    assert!(!carry(&mut outbox, CARRIED_ALONE_MOST + 1, PART_MOST));
    assert!(carry(&mut outbox, CARRIED_ALONE_MOST, PART_MOST));
    assert!(!carry(&mut outbox, CARRIED_MOST + 1, PART_MOST), "another is under way");
    outbox.push(&packet());
    let sent = send(&mut outbox).len() as u64;
    assert_eq!(outbox.handle_acknowledgement(sent), Some(true));
    assert!(carry(&mut outbox, CARRIED_MOST + 1, PART_MOST), "it has come");
}

/// Their receiver acknowledges them by their bytes, so it may not acknowledge these for a while.
#[test]
fn carried_messages_hold_up_no_batch_of_packets() {
    let mut outbox = Outbox::default();
    let count = UNACKNOWLEDGED + 2;
    for _ in 0..count {
        assert!(
            outbox.carry(3000, PART_MOST, &Copies::of(0), |_, length, batch| batch.resize(batch.len() + length, 7))
        );
        outbox.push(&packet());
        send(&mut outbox);
    }
    for number in 0..UNACKNOWLEDGED {
        outbox.push(&packet());
        assert_eq!(send(&mut outbox), [count + number]);
    }
    outbox.push(&packet());
    assert_eq!(send(&mut outbox), [], "there was no pause");
}

#[test]
fn short_messages_behind_carried_ones_leave_at_once_after_a_pause() {
    let (mut outbox, mut now) = (Outbox::default(), Instant::default() + PAUSE);
    for _ in 0..UNACKNOWLEDGED {
        now = now + Duration::from_micros(1);
        outbox.handle_write(now);
        assert!(
            outbox.carry(9000, PART_MOST, &Copies::of(0), |_, length, batch| batch.resize(batch.len() + length, 7))
        );
        outbox.push(&packet());
    }
    assert_eq!(send(&mut outbox).len(), UNACKNOWLEDGED as usize);
    for _ in 0..10 {
        now = now + Duration::from_micros(1);
        outbox.handle_write(now);
        outbox.push(&packet());
        assert_eq!(send(&mut outbox).len(), 1, "its sender may call us no more");
    }
}
