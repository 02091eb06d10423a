//! Messages that lie in their sender's buffers on their way.

use crate::support::*;
use tidegate_flow::PeerId;
use tidegate_link::{IoBuffer, ShmConfig, ShmLink};
use tidegate_message::{Carry, Link};

const LENGTH: usize = 3000;

/// A buffer over `bytes`, which the caller keeps and leaves alone.
fn buffer(bytes: &mut [u8]) -> IoBuffer {
    // SAFETY: every test keeps its bytes longer than the buffer and looks at them only between operations.
    unsafe { IoBuffer::from_parts(bytes.as_mut_ptr(), bytes.len()) }
}

/// Carries a message of bytes of this value, and writes the packet behind it, whose number is that which the link wants
/// told. Returns whether there was a buffer.
fn carry(link: &mut ShmLink, to: PeerId, value: u8) -> bool {
    let mut bytes = [value; LENGTH];
    let number = link.carry(to, &buffer(&mut bytes));
    number.inspect(|&number| send(link, to, number.into())).is_some()
}

/// Takes the next message, all of whose bytes have the same value.
fn take(link: &mut ShmLink) -> u8 {
    let (from, number) = receive(link);
    assert!(link.has_carried(from, number as u32, LENGTH), "its packet has come");
    let bytes = link.take_carried(from, number as u32, LENGTH);
    assert!(bytes.len() == LENGTH && bytes.iter().all(|byte| *byte == bytes[0]));
    bytes[0]
}

/// Two endpoints that are connected in both directions.
fn pair(config: ShmConfig) -> (ShmLink, PeerId, ShmLink, PeerId) {
    let (mut a, mut b) = (ShmLink::new(config.clone()).unwrap(), ShmLink::new(config).unwrap());
    let b_at_a = a.peer(&b.address()).unwrap();
    send(&mut a, b_at_a, 0);
    let (a_at_b, _) = receive(&mut b);
    send(&mut b, a_at_b, 0);
    receive(&mut a);
    (a, b_at_a, b, a_at_b)
}

#[test]
fn nothing_is_carried_to_who_has_not_connected_and_could_not_copy_it() {
    let folder = Folder::new();
    let (mut a, mut b) = (folder.link(1), folder.link(1));
    let b_at_a = a.peer(&b.address()).unwrap();
    assert!(!carry(&mut a, b_at_a, 1));
    send(&mut a, b_at_a, 0);
    let (a_at_b, _) = receive(&mut b);
    assert!(!carry(&mut a, b_at_a, 1), "it has read a packet, no more");
    send(&mut b, a_at_b, 0);
    receive(&mut a);
    assert!(carry(&mut a, b_at_a, 7));
    assert_eq!(take(&mut b), 7);
}

#[test]
fn one_receiver_has_half_of_the_buffers_and_gives_them_back_by_copying() {
    let folder = Folder::new();
    let (mut a, b_at_a, mut b, _) = pair(ShmConfig { send_buffers: 8, ..folder.config(1) });
    for round in 0..50 {
        let carried = (0..8).take_while(|&value| carry(&mut a, b_at_a, round * 4 + value)).count();
        assert_eq!(carried, 4);
        assert!((0..4).all(|value| take(&mut b) == round * 4 + value));
    }
}

#[test]
fn buffers_come_back_from_many_receivers_and_from_those_that_are_sent_to_no_more() {
    let folder = Folder::new();
    let mut a = ShmLink::new(folder.config(13)).unwrap();
    let mut others: Vec<(ShmLink, PeerId)> = (0..13)
        .map(|_| {
            let mut other = folder.link(13);
            let at_a = a.peer(&other.address()).unwrap();
            send(&mut a, at_a, 0);
            let (a_there, _) = receive(&mut other);
            send(&mut other, a_there, 0);
            receive(&mut a);
            (other, at_a)
        })
        .collect();
    for round in 0..20 {
        for (other, at_a) in &mut others {
            assert!(carry(&mut a, *at_a, round), "all have copied all");
            assert_eq!(take(other), round);
        }
    }
    // Two hold half of the buffers each, copy all, and are forgotten: the third gets them.
    for (other, at_a) in &mut others[..2] {
        let held = (0..100).take_while(|_| carry(&mut a, *at_a, 1)).count();
        (0..held).for_each(|_| assert_eq!(take(other), 1));
    }
    let (other, at_a) = &mut others[2];
    for _ in 0..100 {
        assert!(carry(&mut a, *at_a, 2));
        assert_eq!(take(other), 2);
    }
}

#[test]
fn without_buffers_nothing_is_carried() {
    for send_buffers in [0, 1] {
        let folder = Folder::new();
        let (mut a, b_at_a, ..) = pair(ShmConfig { send_buffers, ..folder.config(1) });
        assert!(!carry(&mut a, b_at_a, 1));
    }
}

#[test]
fn what_its_sender_has_carried_before_it_closed_is_there_until_its_last_packet_has_been_taken() {
    let folder = Folder::new();
    let (mut a, b_at_a, mut b, a_at_b) = pair(folder.config(1));
    assert!((1..=3).all(|value| carry(&mut a, b_at_a, value)));
    drop(a);
    // It is noticed first, and then what it has written is taken.
    let noticed = std::time::Instant::now();
    while noticed.elapsed() < std::time::Duration::from_millis(100) {
        b.idle().yield_if_asked();
        assert!(b.poll_event().is_none(), "its packets come before that");
    }
    assert!((1..=3).all(|value| take(&mut b) == value));
    assert!(departure(&mut b).orderly);
    assert!(!b.has_carried(a_at_b, 0, LENGTH), "nothing is kept of who has left");
}

#[test]
fn numbers_and_lengths_that_cannot_be_are_refused() {
    let folder = Folder::new();
    let (mut a, b_at_a, mut b, a_at_b) = pair(ShmConfig { send_buffers: 8, ..folder.config(1) });
    assert!(carry(&mut a, b_at_a, 1));
    for (number, length) in [(8, 100), (u32::MAX, 100), (0, (16 << 10) + 1), (0, usize::MAX), (0, 4097), (1, 1)] {
        assert!(!b.has_carried(a_at_b, number, length), "{number} {length}");
    }
    assert!(!b.has_carried(PeerId(77), 0, LENGTH), "there is no such peer");
    assert_eq!(take(&mut b), 1);
}

#[test]
#[ignore = "a process of other tests: carries three messages and waits for its death"]
fn role_carries() {
    let mut link = role_folder().link(1);
    let to = link.peer(&role_address()).unwrap();
    send(&mut link, to, 0);
    receive(&mut link);
    assert!((1..=3).all(|value| carry(&mut link, to, value)));
    receive(&mut link);
}

#[test]
fn what_a_process_has_carried_is_there_after_it_was_killed() {
    let folder = Folder::new();
    let mut a = folder.link(1);
    let child = Process::start("carried::role_carries", &folder, a.address());
    let (peer, _) = receive(&mut a);
    send(&mut a, peer, 0);
    // The first is taken while it lives, the others afterwards.
    assert_eq!(take(&mut a), 1);
    // Packets are written together with what they tell of.
    std::thread::sleep(std::time::Duration::from_millis(200));
    child.kill();
    let killed = std::time::Instant::now();
    while killed.elapsed() < std::time::Duration::from_millis(300) {
        a.idle().yield_if_asked();
        assert!(a.poll_event().is_none(), "its packets come before that");
    }
    assert!((2..=3).all(|value| take(&mut a) == value));
    assert!(!departure(&mut a).orderly);
}
