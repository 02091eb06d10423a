//! Mailboxes far into their lives: where tickets leave 31 and 32 bits, where the stamps of laps begin again, and where
//! the words of writers do.

use super::tests::{Shared, full, numbers, write_numbers};
use super::writer::LONGEST_PACKET;
use super::*;
use tidegate_flow::PeerId;

/// The reader of a mailbox in which so many tickets were given out and retrieved.
fn begin_at(ticket: u64, shared: &Shared) -> Reader {
    let mailbox = shared.mailbox();
    let size = mailbox.size() as usize;
    mailbox.reserved().store(ticket, Ordering::Relaxed);
    mailbox.retrieved().store(ticket, Ordering::Relaxed);
    // The slots of the lap before say so.
    for index in 0..size {
        let before = ticket.saturating_sub(1 + (ticket + size as u64 - 1 - index as u64) % size as u64);
        let mut packet = full(7);
        packet.header = packet.header.published(stamp_of(before / size as u64), PeerId(0));
        mailbox.slot(index).write(&packet, Ordering::Relaxed);
    }
    let lap = ticket / size as u64;
    let (index, stamp) = ((ticket % size as u64) as usize, stamp_of(lap));
    Reader { ticket, index, stamp, published: ticket, ..Reader::new(mailbox) }
}

#[test]
fn tickets_beyond_32_bits_and_stamps_that_begin_again_lose_nothing() {
    for size in [3_u64, 7, 64] {
        let laps = [65_535, 2 * 65_535, 1000 * 65_535].map(|laps| laps * size);
        for turn in [laps, [1 << 31, 1 << 32, 1 << 62]].concat() {
            for admission in [Admission::Credits, Admission::Room] {
                let shared = Shared::new(size as usize, 2);
                let mut reader = begin_at(turn - 2 * size + 1, &shared);
                assert!(reader.retrieve().is_none() && reader.backlog() == Ok(0), "nothing of the lap before counts");
                let (mut writer, mut next) = (shared.writer(0, admission), 0);
                for count in (1..=(size as u32).min(LONGEST_PACKET)).cycle().take(3 * size as usize) {
                    assert_eq!(write_numbers(&mut writer, next.., count), count, "there is room");
                    let end = next + u64::from(count);
                    while next < end {
                        let numbers = numbers(&mut reader).expect("all are published");
                        assert_eq!(numbers, (next..next + numbers.len() as u64).collect::<Vec<_>>(), "{turn} {size}");
                        next += numbers.len() as u64;
                    }
                    assert!(reader.retrieve().is_none() && reader.backlog() == Ok(0));
                }
                assert!(reader.position() > turn, "all of it was beyond");
            }
        }
    }
}

#[test]
fn the_word_of_a_writer_stays_even_between_packets_when_it_begins_again() {
    let shared = Shared::new(8, 2);
    let mut reader = begin_at(5, &shared);
    let peer = PeerId(0);
    // Of one that died amid its last packet but one.
    shared.set_word(peer, u64::MAX - 4);
    let mut writer = shared.writer(0, Admission::Credits);
    let words: Vec<u64> = (0..5)
        .map(|number| {
            assert_eq!(write_numbers(&mut writer, number.., 1), 1);
            assert_eq!(numbers(&mut reader), Some(vec![number]));
            shared.word(peer).expect("it is in use")
        })
        .collect();
    assert!(words.iter().all(|word| word.is_multiple_of(2)) && words.windows(2).all(|pair| pair[0] != pair[1]));
    assert!(words.contains(&0), "{words:?}");
}
