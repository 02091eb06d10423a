use super::records::RECORD_BYTES;
use super::*;
use crate::control_size::ControlSize;
use crate::envelope::Pattern;
use crate::operation::{Context, Source};

const A: PeerId = PeerId(0);
const B: PeerId = PeerId(1);
const LIMITS: Limits = Limits {
    window: 1000,
    largest: 250,
    eager: 100,
    inject: 100,
    answers: 100,
    control: ControlSize::MOST,
    must_ask: false,
};

fn of_spare(spare: usize) -> Windows {
    let lent =
        Lent { limits: LIMITS, newcomers: 400, planned: 2, sessions: None, turn_steps: 1, growth_least: 50, spare };
    Windows::new(3, lent)
}

fn windows() -> Windows {
    of_spare(4000)
}

/// The update when the first receive that A could satisfy is this one.
fn update(windows: &mut Windows, counters: &Counters, first: Option<u64>) -> WindowUpdate {
    windows.shrink(A);
    windows.update(counters, A, false, |queue, source, after| {
        assert_eq!(source, Target::Peer(A));
        let pattern = Pattern { from: Source::Any, tag: 7, ignore: 0 };
        let first = first.filter(|_| queue == Queue::Tagged).map(Number);
        first.filter(|number| *number > after).map(|number| (number, pattern))
    })
}

const ROOM: fn(u64) -> WindowUpdate = |bytes| WindowUpdate { room: Some(Room { bytes }), query: None };
const QUERY: Query = Query { queue: Queue::Tagged, tag: 7, ignore: 0 };

#[test]
fn what_is_stored_or_not_given_back_yet_takes_room() {
    let (mut windows, counters) = (windows(), Counters::default());
    windows.enter(&counters, A, 600);
    assert_eq!((windows.check(A, 400, 0), windows.check(A, 401, 0)), (Ok(()), Err(Malformed)));
    windows.pass(A, 100);
    assert_eq!((windows.check(A, 300, 0), windows.check(A, 301, 0)), (Ok(()), Err(Malformed)));
    assert_eq!(windows.check(A, 300, 1), Err(Malformed), "what is on its way back counts as well");
    assert_eq!(windows.check(B, 1000, 0), Ok(()), "each has its own");
    windows.leave(&counters, A, 600);
    assert_eq!(counters.get(Counter::UnmatchedBytes), 0);
    assert_eq!(counters.get(Counter::ReceivePeak), 600);
}

#[test]
fn a_newcomer_has_a_small_window_of_which_a_quarter_goes_back_at_a_time() {
    const NEWCOMER: PeerId = PeerId(2);
    let (mut windows, counters) = (windows(), Counters::default());
    assert_eq!([A, B, NEWCOMER].map(|peer| windows.left(peer)), [1000, 1000, 400]);
    assert_eq!((windows.check(NEWCOMER, 400, 0), windows.check(NEWCOMER, 401, 0)), (Ok(()), Err(Malformed)));
    assert_eq!((windows.pass(NEWCOMER, 99), windows.pass(NEWCOMER, 1)), (false, true));
    windows.enter(&counters, NEWCOMER, 300);
    assert!(windows.grow(NEWCOMER));
    assert_eq!((windows.left(NEWCOMER), windows.spare()), (500, 3600));
    windows.release(NEWCOMER);
    assert_eq!((windows.left(NEWCOMER), windows.spare()), (400, 4000), "the next one that has the place");
}

#[test]
fn room_is_given_back_a_quarter_of_a_window_at_a_time() {
    let (mut windows, counters) = (windows(), Counters::default());
    assert!(!windows.pass(A, 249), "too little");
    assert_eq!(update(&mut windows, &counters, None), WindowUpdate::default());
    assert!(windows.pass(A, 1));
    let waits = windows.update(&counters, A, true, |_, _, _| None);
    assert_eq!(waits, WindowUpdate::default(), "the room before has not left yet");
    assert_eq!(update(&mut windows, &counters, None), ROOM(250));
    assert_eq!(update(&mut windows, &counters, None), WindowUpdate::default(), "once");
}

#[test]
fn a_query_is_made_for_the_first_receive_that_a_dropped_envelope_could_meet_and_one_at_a_time() {
    let (mut windows, counters) = (windows(), Counters::default());
    windows.enter(&counters, A, 900);
    windows.drop_envelope(A, Some(7), Number(3));
    assert_eq!(update(&mut windows, &counters, Some(3)).query, None, "that one was posted before it was dropped");
    assert_eq!(update(&mut windows, &counters, Some(4)).query, Some(QUERY));
    assert_eq!(update(&mut windows, &counters, Some(4)).query, None, "it is open");
    assert_eq!(windows.until(A, Queue::Tagged), Some(Number(3)), "later receives must not be met out of turn (W6)");
    assert_eq!(windows.take_offer(A, Queue::Tagged, false), Err(Malformed), "the query has not left");
    assert_eq!(windows.take_offer(A, Queue::Untagged, true), Err(Malformed), "the query is about the other queue");
    assert_eq!(windows.take_offer(A, Queue::Tagged, true), Ok(Answered { number: Number(4), until: Number(4) }));
    assert_eq!(windows.take_offer(A, Queue::Tagged, true), Err(Malformed), "it was answered");
    assert_eq!((windows.remember(A), windows.remember(A)), (Ok(()), Err(Malformed)));
    assert!(!windows.has_dropped() && windows.until(A, Queue::Tagged).is_none());
}

#[test]
fn a_sender_with_room_goes_on_by_itself() {
    let (mut windows, counters) = (windows(), Counters::default());
    windows.drop_envelope(A, None, Number(0));
    windows.pass(A, 10);
    assert_eq!(update(&mut windows, &counters, Some(1)), ROOM(10), "all room is given back, and nothing asked");
}

#[test]
fn no_match_ends_an_account_once_all_dropped_envelopes_have_come() {
    let (mut windows, counters) = (windows(), Counters::default());
    windows.enter(&counters, A, 900);
    windows.drop_envelope(A, Some(1), Number(0));
    assert!(update(&mut windows, &counters, Some(1)).query.is_some());
    windows.remember(A).expect("one was dropped");
    assert!(windows.has_dropped(), "the query is open");
    assert_eq!((windows.take_no_match(A, true), windows.has_dropped()), (Ok(()), false));
    assert_eq!(windows.take_no_match(A, true), Err(Malformed));
}

#[test]
fn windows_grow_where_there_is_no_room_and_keep_a_share_while_there_is_plenty() {
    let (mut windows, counters) = (windows(), Counters::default());
    assert_eq!(windows.spare(), 4000);
    assert!(windows.grow(A) && windows.left(A) == 2000);
    windows.enter(&counters, A, 500);
    windows.leave(&counters, A, 500);
    assert!(!windows.shrink(A), "it is within its share, and there is plenty for others");
    assert_eq!((windows.inspect(A).bytes, windows.spare()), (2000, 3000));
    assert!(windows.grow(A) && windows.left(A) == 3500);
    assert_eq!((windows.inspect(A).bytes, windows.spare()), (3500, 1500), "half of the spare memory at most");
    windows.drop_envelope(A, None, Number(0));
    assert!(!windows.shrink(A), "it has sends for which there is no room");
    windows.remember(A).expect("one was dropped");
    windows.enter(&counters, A, 2000);
    assert_eq!(windows.left(A), 1500);
    update(&mut windows, &counters, None);
    assert_eq!((windows.inspect(A).bytes, windows.spare()), (1000, 4000), "little is left");
    windows.release(A);
    assert_eq!(windows.spare(), 4000);
}

#[test]
fn a_sender_that_came_first_leaves_as_much_for_the_next() {
    let mut windows = windows();
    for peer in [A, B] {
        assert!(windows.grow(peer));
        assert!(!windows.shrink(peer));
        assert_eq!(windows.inspect(peer).bytes, 2000);
    }
    assert_eq!(windows.spare(), 2000);
}

#[test]
fn what_is_wanted_of_the_spare_memory_is_given_back_as_it_becomes_free() {
    let (mut windows, counters) = (windows(), Counters::default());
    assert!(windows.grow(A) && windows.grow(A) && windows.spare() == 1500);
    assert!(!windows.take_spare(1600));
    assert!(!windows.grow(B), "the 1500 are for those who want 1600");
    windows.enter(&counters, A, 1200);
    windows.leave(&counters, A, 1200);
    assert!(windows.shrink(A));
    assert_eq!((windows.inspect(A).bytes, windows.spare()), (1000, 4000), "it keeps no share meanwhile");
    assert!(windows.take_spare(1600) && windows.spare() == 2400);
    assert!(windows.grow(B) && windows.spare() == 1400);
}

#[test]
fn a_peek_is_open_while_a_sender_may_have_something_for_it() {
    let (mut windows, counters) = (windows(), Counters::default());
    windows.enter(&counters, A, 900);
    windows.drop_envelope(A, Some(7), Number(1));
    let pattern = Pattern { from: Source::From(Target::Peer(A)), tag: 7, ignore: 0 };
    let (queue, context) = (Queue::Tagged, Context(1));
    let inquiry = Inquiry { number: Number(2), pattern, queue, context, claim: false, discard: false };
    windows.inquiries.push(inquiry.clone());
    assert!(windows.is_open(&inquiry), "its sender has no room to go on, and will be asked");
    assert_eq!(update(&mut windows, &counters, None).query, Some(QUERY));
    assert!(windows.is_open(&inquiry));
    windows.take_no_match(A, true).expect("there was a query");
    assert!(!windows.is_open(&inquiry));
    windows.lose_peer(A);
    assert!(!windows.has_dropped());
}

#[test]
fn pressure_counts_between_two_tellings_and_is_reported_once() {
    let (mut windows, counters) = (windows(), Counters::default());
    windows.enter(&counters, B, 300);
    windows.drop_envelope(A, Some(9), Number(0));
    assert_eq!([windows.tell_time(Instant::default()), windows.tell_time(Instant::default())], [false, true]);
    let pressure = windows.poll_pressure().expect("it has begun");
    assert_eq!((pressure.sender, pressure.stored, pressure.bytes), ((A, Some(9)), vec![(B, 300)], 300));
    assert_eq!(windows.poll_pressure(), None);
}

#[test]
fn a_record_of_a_departed_peer_is_paid_by_spare_memory_and_gives_all_of_it_back() {
    const RECORD: PeerId = PeerId(2);
    let (mut windows, counters) = (windows(), Counters::default());
    windows.enter(&counters, A, 900);
    assert!(windows.begin_record(A, RECORD));
    assert_eq!(windows.spare(), 4000 - 900 - RECORD_BYTES);
    assert_eq!(windows.check(A, 1000, 0), Ok(()), "the next peer at that place has a whole window");
    windows.leave_record(&counters, RECORD, 300);
    windows.leave_record(&counters, RECORD, 600);
    windows.end_record(RECORD);
    assert_eq!((windows.spare(), counters.get(Counter::UnmatchedBytes)), (4000, 0));
}

#[test]
fn there_are_no_more_records_than_spare_memory_pays_for() {
    let (mut windows, counters) = (windows(), Counters::default());
    let mut records = 0;
    loop {
        windows.enter(&counters, A, 400);
        let before = windows.spare();
        if !windows.begin_record(A, PeerId(2 + records)) {
            assert!(before < 400 + RECORD_BYTES);
            assert_eq!((windows.spare(), windows.inspect(A).stored), (before, 400), "nothing has changed");
            break;
        }
        records += 1;
    }
    assert_eq!(records as usize, 4000 / (400 + RECORD_BYTES));
    windows.leave_record(&counters, PeerId(2), 400);
    windows.end_record(PeerId(2));
    assert!(windows.begin_record(A, PeerId(2)), "the place of one that was received");
}

#[test]
fn a_window_that_had_grown_pays_for_the_record_as_well() {
    let mut windows = of_spare(2000);
    let counters = Counters::default();
    windows.enter(&counters, A, 1000);
    windows.drop_envelope(A, None, Number(1));
    assert!(windows.grow(A) && windows.spare() == 1000);
    windows.enter(&counters, A, 900);
    windows.lose_peer(A);
    assert!(!windows.begin_record(A, PeerId(2)), "2000 bytes are not 1900 and a record");
    windows.leave(&counters, A, 950);
    assert!(windows.begin_record(A, PeerId(2)));
    assert_eq!(windows.spare(), 2000 - 950 - RECORD_BYTES);
}
