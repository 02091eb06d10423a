//! The rules of L and A one by one, as their files state them.

use std::time::Duration;
use tidegate_flow::{
    Answer, Buffers, Config, Control, FlowControl, Growth, Instant, Packet, PacketKind, PeerId, Posting, SchemeName,
};

const PEER: PeerId = PeerId(0);
const NOW: Instant = Instant::from_nanos(0);

fn endpoint(scheme: SchemeName, change: impl FnOnce(&mut Buffers)) -> FlowControl {
    let mut buffers = Buffers::of(scheme);
    change(&mut buffers);
    let config = Config { piggyback: true, buffers, ..Config::new(scheme, 2, 1, 0) };
    FlowControl::new(&config).unwrap()
}

/// The last packet of a message.
fn message(waited: bool) -> Packet {
    let mut packet = Packet::new(PacketKind::Data, 0, 0);
    packet.header = packet.header.ending_buffer();
    if waited {
        packet.header = packet.header.after_waiting();
    }
    packet
}

fn postings(endpoint: &mut FlowControl) -> Vec<Posting> {
    std::iter::from_fn(|| endpoint.poll_posting()).collect()
}

/// Sends a message of so many packets; returns them, or why it waits.
fn send(endpoint: &mut FlowControl, packets: u32, now: Instant) -> Result<Vec<Packet>, Answer> {
    match endpoint.request(PEER, packets, now) {
        Answer::Packets(mut credits) => {
            let granted = credits.count();
            credits.spend_many(granted);
            credits.end();
            let leave = |left| {
                let mut packet = Packet::new(PacketKind::Data, 0, 0);
                endpoint.before_send(PEER, &mut packet, left);
                packet
            };
            Ok((0..granted).rev().map(leave).collect())
        }
        answer => Err(answer),
    }
}

/// A §3, with the numbers of A §4.2.
#[test]
fn the_window_doubles_with_each_event_up_to_its_most() {
    let mut endpoint = endpoint(SchemeName::SharedWindow, |_| {});
    let windows: Vec<Posting> = (0..12)
        .flat_map(|_| {
            endpoint.handle_limit_reached();
            postings(&mut endpoint)
        })
        .collect();
    let sizes = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 4096, 4096, 4096];
    assert_eq!(windows, sizes.map(|buffers| Posting::Window { buffers, limit: buffers / 2 }));
    assert_eq!((endpoint.inspect().window, endpoint.tally().limit_events), (4096, 12));
}

#[test]
fn a_window_that_is_not_a_power_of_two_times_the_first_ends_at_its_most_and_a_fixed_one_stays() {
    let mut adaptive = endpoint(SchemeName::SharedWindow, |of| (of.pool_first, of.pool_most) = (3, 20));
    let mut fixed = endpoint(SchemeName::SharedWindow, |of| (of.pool_first, of.pool_most) = (512, 512));
    let sizes = [(); 4].map(|()| {
        adaptive.handle_limit_reached();
        fixed.handle_limit_reached();
        (adaptive.inspect().window, fixed.inspect().window)
    });
    assert_eq!(sizes, [(6, 512), (12, 512), (20, 512), (20, 512)]);
}

/// L §4.1.
#[test]
fn a_refused_message_waits_for_the_timer_and_holds_up_nobody_else() {
    for scheme in [SchemeName::Rnr, SchemeName::Preposted, SchemeName::SharedWindow] {
        let mut endpoint = endpoint(scheme, |of| of.retry_timer = Duration::from_micros(100));
        let credits = endpoint.request(PEER, 3, NOW).into_credits();
        endpoint.handle_refused(PEER, credits, NOW);
        assert_eq!(endpoint.next_timeout(), Some(NOW + Duration::from_micros(100)));
        assert_eq!(send(&mut endpoint, 3, NOW).err(), Some(Answer::Wait), "{scheme}");
        let other = endpoint.request(PeerId(1), 3, NOW).into_credits();
        assert_eq!(other.count(), 3);
        endpoint.give_back(PeerId(1), other);
        endpoint.handle_timeout(NOW + Duration::from_micros(99));
        assert_eq!((endpoint.poll_ready(), endpoint.tally().retries), (None, 0));
        endpoint.handle_timeout(NOW + Duration::from_micros(100));
        assert_eq!((endpoint.poll_ready(), endpoint.next_timeout()), (Some(PEER), None));
        assert_eq!(send(&mut endpoint, 3, NOW).map(|packets| packets.len()), Ok(3), "{scheme}");
        assert_eq!((endpoint.tally().refusals, endpoint.tally().retries), (1, 1));
    }
}

/// One credit for each message, whatever its packets; L §4.2.
#[test]
fn messages_cost_a_credit_for_each_buffer_and_without_one_are_announced() {
    let mut endpoint = endpoint(SchemeName::Preposted, |of| (of.per_connection, of.packets) = (3, 4));
    assert_eq!(endpoint.credits(PEER), 12);
    let ends = |packets: Vec<Packet>| packets.iter().map(|packet| packet.header.ends_buffer()).collect::<Vec<_>>();
    assert_eq!(send(&mut endpoint, 2, NOW).map(ends), Ok(vec![false, true]));
    // A message of six packets takes two buffers.
    assert_eq!(send(&mut endpoint, 6, NOW).map(ends), Ok(vec![false, false, false, true]));
    assert_eq!(send(&mut endpoint, 2, NOW).map(ends), Ok(vec![false, true]));
    assert_eq!(send(&mut endpoint, 1, NOW).err(), Some(Answer::Announce));
    assert!(endpoint.announces_behind_others());
}

/// What each packet says of its message: whether it has waited.
fn waited(packets: Vec<Packet>) -> Vec<bool> {
    packets.iter().map(|packet| packet.header.has_waited()).collect()
}

/// A credit comes back.
fn credit(endpoint: &mut FlowControl) {
    endpoint.handle_retrieved(PEER, &Packet::with_credits(PacketKind::Credit, 1)).unwrap();
}

/// One whose message has the only buffer of a connection, so that the next one finds no credit.
fn short_of_credit() -> FlowControl {
    let mut endpoint = endpoint(SchemeName::Growing, |of| of.per_connection = 1);
    assert_eq!(send(&mut endpoint, 1, NOW).map(waited), Ok(vec![false]));
    assert_eq!(send(&mut endpoint, 1, NOW).err(), Some(Answer::Announce));
    endpoint
}

/// Whoever injects is told to try again, and the message waits with its program instead of the backlog. It counts all
/// the same (L §4.3), or a connection would never grow.
#[test]
fn a_message_that_found_no_credit_has_waited_wherever_it_was_meanwhile() {
    let mut endpoint = short_of_credit();
    assert_eq!(send(&mut endpoint, 1, NOW).err(), Some(Answer::Announce));
    credit(&mut endpoint);
    assert_eq!(send(&mut endpoint, 1, NOW).map(waited), Ok(vec![true]));
    credit(&mut endpoint);
    assert_eq!(send(&mut endpoint, 1, NOW).map(waited), Ok(vec![false]));
}

/// The link refuses the packet for which credit had come: what has not left has still waited.
#[test]
fn a_message_that_waited_and_was_refused_then_has_waited_when_it_leaves() {
    let mut endpoint = short_of_credit();
    credit(&mut endpoint);
    let granted = endpoint.request(PEER, 1, NOW).into_credits();
    endpoint.handle_refused(PEER, granted, NOW);
    let due = endpoint.next_timeout().expect("it is tried again");
    endpoint.handle_timeout(due);
    assert_eq!(endpoint.poll_ready(), Some(PEER));
    assert_eq!(send(&mut endpoint, 1, due).map(waited), Ok(vec![true]));
    credit(&mut endpoint);
    assert_eq!(send(&mut endpoint, 1, due).map(waited), Ok(vec![false]));
}

/// A link that takes some packets only: the message goes on in the same buffer, for the same credit.
#[test]
fn a_buffer_that_is_filled_in_part_costs_one_credit_and_one_that_is_not_begun_none() {
    let mut endpoint = endpoint(SchemeName::Preposted, |of| (of.per_connection, of.packets) = (1, 4));
    let mut credits = endpoint.request(PEER, 3, NOW).into_credits();
    endpoint.before_send(PEER, &mut Packet::new(PacketKind::Data, 56, 1), 2);
    credits.spend();
    endpoint.give_back(PEER, credits);
    assert_eq!(send(&mut endpoint, 2, NOW).map(|packets| packets.len()), Ok(2));
    assert_eq!(send(&mut endpoint, 1, NOW).err(), Some(Answer::Announce));
    endpoint.handle_retrieved(PEER, &Packet::with_credits(PacketKind::Credit, 1)).unwrap();
    let credits = endpoint.request(PEER, 3, NOW).into_credits();
    endpoint.give_back(PEER, credits);
    assert_eq!(endpoint.credits(PEER), 4);
}

/// L §4.2, §6.3.1: after 5 buffers posted again, or all if there are fewer.
#[test]
fn credit_packets_leave_at_the_threshold_or_when_all_buffers_are_owed() {
    for (buffers, expected) in [(100, 5), (5, 5), (3, 3), (1, 1)] {
        let mut endpoint = endpoint(SchemeName::Preposted, |of| of.per_connection = buffers);
        let leaves = (1..=buffers).find_map(|messages| {
            endpoint.handle_retrieved(PEER, &message(false)).unwrap();
            endpoint.poll_control().map(|Control { packet, .. }| (messages, packet.credits()))
        });
        assert_eq!(leaves, Some((expected, expected)), "of {buffers} buffers");
    }
}

#[test]
fn credits_ride_on_the_next_message_and_then_no_credit_packet_leaves() {
    let mut endpoint = endpoint(SchemeName::Preposted, |of| of.per_connection = 10);
    (0..5).for_each(|_| assert_eq!(endpoint.handle_retrieved(PEER, &message(false)), Ok(0)));
    assert_eq!(postings(&mut endpoint), [Posting::Again(PEER); 5]);
    let packets = send(&mut endpoint, 1, NOW).unwrap();
    assert_eq!(packets[0].piggyback(), Some(5));
    assert!(endpoint.poll_control().is_none());
}

/// Credit packets cost no credit, and their buffers earn none (L §4.2, the optimistic scheme; L table 1: 9002 of LU).
#[test]
fn the_buffer_of_a_credit_packet_is_posted_again_and_earns_no_credit() {
    let mut endpoint = endpoint(SchemeName::Preposted, |of| of.per_connection = 1);
    send(&mut endpoint, 1, NOW).unwrap();
    assert_eq!(endpoint.handle_retrieved(PEER, &Packet::with_credits(PacketKind::Credit, 1)), Ok(1));
    assert_eq!(postings(&mut endpoint), [Posting::Again(PEER)]);
    assert!(endpoint.poll_control().is_none());
    assert_eq!(endpoint.inspect().peers[0].retrieved, 0);
}

#[test]
fn more_credits_ride_than_two_bytes_hold() {
    let mut endpoint = endpoint(SchemeName::Preposted, |of| {
        (of.per_connection, of.credit_threshold, of.packets) = (100_000, 100_000, 1);
    });
    (0..70_000).for_each(|_| _ = endpoint.handle_retrieved(PEER, &message(false)).unwrap());
    let rides = [(); 3].map(|()| send(&mut endpoint, 1, NOW).unwrap()[0].piggyback());
    assert_eq!(rides, [Some(u16::MAX), Some((70_000 - u32::from(u16::MAX)) as u16), None]);
}

#[test]
fn a_refused_credit_packet_is_made_anew_with_all_that_is_owed_by_then() {
    let mut endpoint = endpoint(SchemeName::Preposted, |of| (of.per_connection, of.credit_threshold) = (10, 2));
    (0..2).for_each(|_| _ = endpoint.handle_retrieved(PEER, &message(false)).unwrap());
    let control = endpoint.poll_control().unwrap();
    assert!(endpoint.handle_control_refused(control, NOW).is_none());
    endpoint.handle_retrieved(PEER, &message(false)).unwrap();
    assert!(endpoint.poll_control().is_none(), "the timer runs");
    endpoint.handle_timeout(NOW + Duration::from_secs(1));
    assert_eq!(endpoint.poll_control().map(|control| control.packet.credits()), Some(3));
}

/// L §4.3; the numbers of the notes, 11.
#[test]
fn a_connection_gets_one_buffer_for_each_message_that_waited_or_as_many_as_it_has() {
    let buffers = |growth, messages: &[bool]| {
        let mut endpoint = endpoint(SchemeName::Growing, |of| of.growth = growth);
        for &waited in messages {
            endpoint.handle_retrieved(PEER, &message(waited)).unwrap();
        }
        endpoint.inspect().peers[0].intended_quota
    };
    assert_eq!(buffers(Growth::Linear, &[true, false, true, true]), 4);
    // The message that waited behind the first one says nothing new.
    assert_eq!(buffers(Growth::Exponential, &[true, true, true]), 4);
    assert_eq!(buffers(Growth::Exponential, &[true, false, true, true, false, true]), 8);
}

#[test]
fn at_the_bound_a_message_that_waited_is_counted_and_nothing_else() {
    let mut endpoint = endpoint(SchemeName::Growing, |of| of.per_connection_most = 2);
    (0..5).for_each(|_| _ = endpoint.handle_retrieved(PEER, &message(true)).unwrap());
    let (inspection, tally) = (endpoint.inspect(), endpoint.tally());
    assert_eq!((inspection.peers[0].intended_quota, inspection.available_slots), (3, 0));
    assert_eq!(inspection.peers[1].intended_quota, 1, "the other keeps its own");
    assert_eq!((tally.buffers_added, tally.growths_denied), (2, 3));
}

/// A receiver of a pattern of traffic that repeats itself, and the clock.
struct Patterned {
    endpoint: FlowControl,
    now: Instant,
}

impl Patterned {
    /// A burst of `messages`; those beyond the buffers of the connection have waited.
    fn burst(&mut self, messages: u32) {
        let buffers = self.endpoint.inspect().peers[0].intended_quota;
        for number in 0..messages {
            self.endpoint.handle_retrieved(PEER, &message(number >= buffers)).unwrap();
        }
        postings(&mut self.endpoint);
        self.endpoint.handle_timeout(self.now);
    }

    /// Nothing comes for so long, but that time is told.
    fn pause(&mut self, duration: Duration) {
        self.now = self.now + duration;
        self.endpoint.handle_timeout(self.now);
    }

    fn buffers(&self) -> u32 {
        self.endpoint.inspect().peers[0].intended_quota
    }
}

fn patterned() -> Patterned {
    Patterned { endpoint: endpoint(SchemeName::Growing, |_| {}), now: NOW }
}

/// Q1, Q2: half as many with each review, as messages come, and never fewer than at the start.
#[test]
fn a_connection_that_goes_quiet_loses_its_buffers_by_halves() {
    let mut run = patterned();
    run.burst(17);
    assert_eq!(run.buffers(), 17);
    let mut seen = Vec::new();
    for _ in 0..60 {
        run.pause(Duration::from_secs(2));
        run.burst(1);
        seen.push(run.buffers());
    }
    assert_eq!((seen.last(), seen.is_sorted_by(|a, b| a >= b)), (Some(&1), true), "{seen:?}");
    assert!(run.endpoint.tally().buffers_withdrawn == 16 && run.endpoint.inspect().available_slots == 198);
}

/// A quiet process is not woken for ever, and one that never grew not at all.
#[test]
fn reviews_end_when_nothing_comes() {
    let mut run = patterned();
    run.burst(1);
    assert_eq!(run.endpoint.next_timeout(), None);
    run.burst(4);
    assert!(run.endpoint.next_timeout().is_some());
    run.pause(Duration::from_secs(2));
    assert_eq!(run.endpoint.next_timeout(), None);
}

/// Q4, and the proof in the scheme's file: bursts with pauses between them, a thousand times. The connection goes down
/// and up again no more often than the logarithm of the time.
#[test]
fn a_pattern_that_repeats_itself_soon_keeps_its_buffers() {
    for (quiet_messages, pause) in [(20, 1.5), (3, 2.0), (6, 40.0)] {
        let mut run = patterned();
        let (mut turns, mut was_down) = (0_u32, false);
        for _ in 0..1000 {
            let before = run.buffers();
            run.burst(16);
            turns += u32::from(was_down && run.buffers() > before);
            for _ in 0..quiet_messages {
                run.pause(Duration::from_secs_f64(pause));
                run.burst(1);
            }
            was_down = run.buffers() < 16;
        }
        let seconds = run.now.since(NOW).as_secs_f64();
        let most = (seconds + 1.0).log2().floor() as u32;
        assert!((1..=most).contains(&turns), "{turns} turns in {seconds} s, at most {most}");
    }
}

/// The same against the worst pattern: as soon as the connection has lost a buffer, and a new review's time has begun,
/// a message has waited.
#[test]
fn a_pattern_that_knows_when_buffers_are_lost_does_no_better() {
    let mut run = patterned();
    run.burst(16);
    let (mut turns, mut before) = (0_u32, run.buffers());
    for _ in 0..40_000 {
        run.pause(Duration::from_millis(250));
        if run.endpoint.next_timeout().is_none() {
            run.burst(1);
        }
        if run.buffers() < before {
            run.endpoint.handle_retrieved(PEER, &message(true)).unwrap();
            run.burst(0);
            turns += 1;
            let seconds = run.now.since(NOW).as_secs_f64();
            assert!(turns <= (seconds + 1.0).log2().floor() as u32, "{turns} turns in {seconds} s");
        }
        before = run.buffers();
    }
    assert!(turns > 8, "{turns}");
}

/// Q4 from the shortest first time on: reviews that are due after a microsecond become twice as rare 39 times, not only
/// as often as a number of 32 bits can tell.
#[test]
fn reviews_become_rarer_until_they_come_every_twelve_days_whatever_the_first_time_is() {
    let first = Duration::from_micros(1);
    let endpoint = endpoint(SchemeName::Growing, |of| of.quiet_after = Some(first));
    let mut run = Patterned { endpoint, now: NOW };
    let to_review = |run: &Patterned| run.endpoint.next_timeout().expect("a review").since(run.now);
    let mut intervals = Vec::new();
    for _ in 0..45 {
        run.endpoint.handle_retrieved(PEER, &message(true)).unwrap();
        run.burst(0);
        run.pause(to_review(&run));
        run.burst(1);
        intervals.push(to_review(&run));
        run.pause(to_review(&run));
        run.burst(1);
        assert_eq!(run.buffers(), 1, "no message had waited in that time");
    }
    assert!(intervals.windows(2).take(39).all(|pair| pair[1] == 2 * pair[0]), "{intervals:?}");
    assert_eq!((intervals[0], intervals.last()), (first, Some(&(first * 2_u32.pow(30) * 2_u32.pow(9)))));
    assert_eq!(intervals[39], intervals[44], "they stay so");
}

/// Q1: a message that has waited while the review's time ran.
#[test]
fn a_review_in_whose_time_a_message_had_waited_takes_no_buffers() {
    let mut run = patterned();
    run.burst(16);
    run.pause(Duration::from_secs(2));
    run.burst(1);
    run.endpoint.handle_retrieved(PEER, &message(true)).unwrap();
    run.pause(Duration::from_secs(2));
    run.burst(4);
    assert_eq!(run.buffers(), 17);
    run.pause(Duration::from_secs(2));
    run.burst(4);
    assert_eq!(run.buffers(), 13, "none had waited in the next one's time");
}

#[test]
fn papers_that_never_shrink_are_a_setting_away() {
    let mut endpoint = endpoint(SchemeName::Growing, |of| of.quiet_after = None);
    (0..9).for_each(|_| _ = endpoint.handle_retrieved(PEER, &message(true)).unwrap());
    assert_eq!(endpoint.next_timeout(), None);
}
