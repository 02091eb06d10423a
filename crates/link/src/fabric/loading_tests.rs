//! Messages beside packets, over a network that loses, repeats and reorders; and peers that send more than they may.

use super::stream::{CARRIED_MOST, UNACKNOWLEDGED};
use super::testing::{Faults, Random, contact};
use super::tests::{Job, MOMENT};
use super::wire::{
    BESIDE_PART, Header, Kind, LONGEST_BATCH_BYTES, Load, PART_MOST, PROOF_BYTES, Receipt, SHORT_BATCH_BYTES,
};
use crate::memory::IoBuffer;
use proptest::prelude::*;
use std::time::Duration;
use tidegate_flow::PeerId;

/// A part of a message.
const PART: usize = SHORT_BATCH_BYTES - BESIDE_PART;
/// What a test allows to wait.
const WINDOW: u32 = 5 << 20;

/// A message whose bytes and length follow from its number.
fn message(number: u32) -> Vec<u8> {
    let length = 1 + (number as usize).wrapping_mul(2_654_435_761) % CARRIED_MOST;
    (0..length).map(|at| (at as u32 ^ number.wrapping_mul(31)) as u8).collect()
}

/// Every third message is carried, and the packet behind it says its number.
fn is_carried(number: u32) -> bool {
    number.is_multiple_of(3)
}

/// Node 0 carries a message. Returns whether there was room.
fn carry(job: &mut Job, to: PeerId, mut message: Vec<u8>) -> bool {
    // SAFETY: the bytes outlive the buffer, which nobody has after this function.
    let buffer = unsafe { IoBuffer::from_parts(message.as_mut_ptr(), message.len()) };
    job.nodes[0].protocol.carry(to, &buffer, SHORT_BATCH_BYTES)
}

fn exchange_messages(seed: u64, faults: Faults, count: u32) -> Result<(), TestCaseError> {
    let (mut job, mut random) = (Job::new(2, seed), Random(seed ^ 0x9e37_79b9 | 1));
    job.nodes.iter_mut().for_each(|node| node.protocol.set_window(WINDOW));
    let (to, from) = (job.peer(0, 1), job.peer(1, 0));
    job.world.borrow_mut().faults = faults;
    // A message that is carried, and whose packet has found no room yet.
    let (mut written, mut got, mut waits) = (0, 0, false);
    for round in 0..40_000 {
        if round == 5000 {
            job.world.borrow_mut().faults = Faults::default();
        }
        while written < count && random.happens(800) {
            waits = waits || (is_carried(written) && carry(&mut job, to, message(written)));
            if (is_carried(written) && !waits) || job.write(0, to, written).is_err() {
                break;
            }
            (written, waits) = (written + 1, false);
        }
        (0..2).filter(|_| random.happens(700)).for_each(|node| job.exchange(node));
        while let Some((source, number)) = job.retrieve(1) {
            prop_assert_eq!((source, number), (from, got), "in order, once");
            if is_carried(number) {
                prop_assert_eq!(job.nodes[1].protocol.take_carried(from), Some(message(number)));
            }
            got += 1;
        }
        prop_assert_eq!((job.departure(0), job.departure(1)), (None, None));
        job.now = job.now + Duration::from_micros(random.below(20_000));
        if got == count {
            return Ok(());
        }
    }
    prop_assert!(false, "{} of {} arrived, {} were written", got, count, written);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn carried_messages_are_whole_and_in_their_places(
        seed: u64, lost in 0_u64..200, repeated in 0_u64..200, reordered in 0_u64..300, broken in 0_u64..100, again in 0_u64..400,
        failed in 0_u64..100, no_buffer in 0_u64..200
    ) {
        exchange_messages(seed, Faults { lost, repeated, reordered, broken, again, unread: 0, failed, no_buffer }, 300)?;
    }
}

/// A batch of node 1 for node 0.
fn loaded(sequence: u64, load: Load, part: &[u8]) -> Vec<u8> {
    let (is_closing, is_last, receipt) = (false, false, Receipt::default());
    let [to, from] = [0, 1].map(|number| contact(number, number, 64).id());
    let header = Header { kind: Kind::Loaded, is_closing, is_last, to, from, sequence, acknowledged: 0, receipt };
    let mut batch = vec![0; super::wire::HEADER_BYTES];
    header.emit(&mut batch);
    [&batch[..], &load.to_bytes(), part].concat()
}

#[test]
fn who_sends_more_than_its_window_is_heard_no_more_and_nothing_more_is_kept() {
    let mut job = Job::new(2, 1);
    job.nodes[0].protocol.set_window(40_000);
    let to = job.peer(0, 1);
    job.steps(3, MOMENT);
    let part = vec![7; PART];
    let load = Load { part: PART as u32, rest: 0 };
    let now = job.now;
    let protocol = &mut job.nodes[0].protocol;
    protocol.handle_batch(&loaded(0, load, &part), now);
    protocol.handle_batch(&loaded(1, load, &part), now);
    assert_eq!(protocol.poll_event(), None, "two fit");
    protocol.set_window_left(to, 60_000);
    protocol.handle_batch(&loaded(2, load, &part), now);
    assert_eq!(protocol.poll_event(), None, "its window has grown");
    protocol.handle_batch(&loaded(3, load, &part), now);
    let (orderly, name) = job.departure(0).expect("it broke the protocol");
    assert!(!orderly && name.contains("broke the protocol"), "{name}");
    assert_eq!(job.nodes[0].protocol.take_carried(to), None, "nobody asks for it any more");
}

/// What is sent beside packets first and what is stored then share the window, too.
#[test]
fn who_fills_its_window_otherwise_while_messages_wait_is_heard_no_more() {
    let mut job = Job::new(2, 1);
    job.nodes[0].protocol.set_window(40_000);
    let to = job.peer(0, 1);
    job.steps(3, MOMENT);
    let (part, now) = (vec![7; PART], job.now);
    let protocol = &mut job.nodes[0].protocol;
    protocol.handle_batch(&loaded(0, Load { part: PART as u32, rest: 0 }, &part), now);
    protocol.set_window_left(to, 20_000);
    assert_eq!(protocol.poll_event(), None, "there is room for both");
    protocol.set_window_left(to, PART as u32);
    assert!(!job.departure(0).expect("it broke the protocol").0);
    assert_eq!(job.nodes[0].protocol.take_carried(to), None, "nothing of it is kept");
}

#[test]
fn a_carried_message_leaves_with_its_packet_in_one_batch_and_more_of_them_than_batches_of_packets() {
    let mut job = Job::new(2, 1);
    job.nodes.iter_mut().for_each(|node| node.protocol.set_window(WINDOW));
    let (to, _) = (job.peer(0, 1), job.peer(1, 0));
    job.steps(3, MOMENT);
    let sent = job.nodes[0].protocol.counts().sent;
    let most = 2 * UNACKNOWLEDGED as u32;
    let bytes = vec![9; PART / 4];
    for number in 0..most {
        assert!(carry(&mut job, to, bytes.clone()), "message {number}");
        assert_eq!(job.write(0, to, number), Ok(1));
    }
    (0..2).for_each(|_| job.exchange(0));
    assert!(job.nodes[0].protocol.counts().sent - sent >= u64::from(most), "none waits to be acknowledged");
    job.steps(4, MOMENT);
    for number in 0..most {
        let (from, got) = job.retrieve(1).expect("it has come");
        assert_eq!((got, job.nodes[1].protocol.take_carried(from)), (number, Some(bytes.clone())));
    }
    let longest = Load { part: PART_MOST as u32, rest: 0 };
    assert_eq!(
        loaded(0, longest, &[0; PART_MOST]).len() + tidegate_flow::PACKET_BYTES + PROOF_BYTES,
        LONGEST_BATCH_BYTES
    );
}
