use super::*;

const BYTES: usize = 100_000;

/// Pulls one after the other, of which each takes as long as its way takes. How many of them were read.
fn one_by_one(ways: &mut PullWays, count: usize, asking: u64, reading: u64) -> usize {
    let mut now = 0;
    let mut read = 0;
    for _ in 0..count {
        let way = ways.choose(BYTES);
        ways.tell_time(Instant::from_nanos(now));
        match way {
            Way::Ask => {
                now += asking;
                ways.end_asked(BYTES, Some(BYTES), Instant::from_nanos(now));
            }
            Way::Read => {
                now += reading;
                read += 1;
                ways.end_read(BYTES, BYTES, Duration::from_nanos(reading));
            }
        }
    }
    read
}

#[test]
fn the_faster_way_is_found_and_the_other_is_tried_seldom() {
    let reads = one_by_one(&mut PullWays::default(), 10_000, 5_000, 10_000);
    assert!((8..200).contains(&reads), "{reads} of 10000 read where bounce buffers are faster");
    let reads = one_by_one(&mut PullWays::default(), 10_000, 10_000, 5_000);
    assert!((9_800..9_993).contains(&reads), "{reads} of 10000 read where that is faster");
}

#[test]
fn what_the_last_piece_takes_after_the_time_was_told_counts() {
    let mut ways = PullWays::default();
    let (mut now, mut reads) = (0, 0);
    for _ in 0..1_000 {
        let way = ways.choose(BYTES);
        ways.tell_time(Instant::from_nanos(now));
        match way {
            Way::Ask => {
                // The sender takes three microseconds, and the copy that ends the message five.
                ways.tell_time(Instant::from_nanos(now + 3_000));
                ways.note_draining(Duration::from_nanos(5_000));
                ways.end_asked(BYTES, Some(BYTES), Instant::from_nanos(now + 3_000));
            }
            Way::Read => {
                reads += 1;
                ways.end_read(BYTES, BYTES, Duration::from_nanos(6_000));
            }
        }
        now += 8_000;
    }
    assert!(reads > 950, "{reads} of 1000 read, which takes 6 µs instead of 8");
}

#[test]
fn what_changes_is_noticed() {
    let mut ways = PullWays::default();
    one_by_one(&mut ways, 1_000, 10_000, 5_000);
    one_by_one(&mut ways, 4_000, 2_000, 5_000);
    let reads = one_by_one(&mut ways, 1_000, 2_000, 5_000);
    assert!(reads < 20, "{reads} of 1000 read long after bounce buffers became faster");
}

/// A hundred jobs of all ratios between the ways, on a machine as it is: times vary by a third, one pull in thirty
/// waits for its processor for a millisecond, and the first reads map their pages. Half way through, the way that
/// was the faster one becomes the slower one, as when a process moves to another core. Times are those that each
/// way takes undisturbed; what is left out are the first 20 messages and as many after the move.
#[test]
fn it_costs_at_most_a_tenth_of_the_better_way_in_all_of_a_hundred_jobs() {
    const MESSAGES: u64 = 4_000;
    for job in 0..100_u64 {
        let mut state = job.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = |most: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 16) % most
        };
        let mut ways = PullWays::default();
        let (mut now, mut taken, mut best) = (0, 0, 0);
        let (one, other) = (10_000, 4_000 + job * 160);
        for number in 0..MESSAGES {
            let [asking, reading] = if number < MESSAGES / 2 { [one, other] } else { [other.max(one) * 2, other] };
            let way = ways.choose(BYTES);
            let undisturbed = if way == Way::Ask { asking } else { reading };
            let mapping = if way == Way::Read && number < 12 { 3 * reading } else { 0 };
            let waiting = if random(30) == 0 { 1_000_000 } else { 0 };
            let time = undisturbed + random(undisturbed / 3) + mapping + waiting;
            ways.tell_time(Instant::from_nanos(now));
            now += time;
            match way {
                Way::Ask => ways.end_asked(BYTES, Some(BYTES), Instant::from_nanos(now)),
                Way::Read => ways.end_read(BYTES, BYTES, Duration::from_nanos(time)),
            }
            if number % (MESSAGES / 2) >= 20 {
                (taken, best) = (taken + undisturbed, best + asking.min(reading));
            }
        }
        assert!(taken * 10 <= best * 11, "job {job}: {taken} ns instead of {best}, {other} against {one}");
    }
}

#[test]
fn a_disturbed_beginning_is_made_up_for_soon() {
    let mut ways = PullWays::default();
    // Something else has the memory while the first reads take place.
    one_by_one(&mut ways, (FIRST_ASKED + FIRST_READ) as usize, 10_000, 30_000);
    let reads = one_by_one(&mut ways, 400, 10_000, 6_000);
    assert!(reads > 250, "{reads} of 400 read");
}

#[test]
fn a_way_that_never_works_is_not_tried_for_ever() {
    let mut class = Class::default();
    for _ in 0..FIRST_ASKED {
        assert_eq!(class.choose(), Way::Ask);
        class.asked.add(BYTES, Duration::from_nanos(5_000));
    }
    assert_eq!((0..FIRST_READ).filter(|_| class.choose() == Way::Read).count(), FIRST_READ as usize);
    assert!((0..1_000).all(|_| class.choose() == Way::Ask), "no read has ever been measured");
}

#[test]
fn a_few_that_took_for_ever_change_nothing() {
    let mut ways = PullWays::default();
    one_by_one(&mut ways, 100, 5_000, 10_000);
    one_by_one(&mut ways, 2, 50_000_000, 10_000);
    let reads = one_by_one(&mut ways, 100, 5_000, 10_000);
    assert!(reads <= TRIAL as usize, "{reads} read: more than a trial");
}

#[test]
fn pulls_that_overlap_are_as_fast_as_all_of_them_together() {
    // Sixteen at once, which all end at nearly the same time: each seems to take sixteen times as long as it
    // would alone, and the last ones no time at all.
    for (asking, bounces_win) in [(3_000, true), (7_000, false)] {
        let mut ways = PullWays::default();
        let (mut now, mut reads) = (0, 0);
        for _ in 0..100 {
            let chosen: Vec<Way> = (0..16).map(|_| ways.choose(BYTES)).collect();
            ways.tell_time(Instant::from_nanos(now));
            let read = chosen.iter().filter(|way| **way == Way::Read).count();
            for _ in 0..read {
                now += 5_000;
                ways.end_read(BYTES, BYTES, Duration::from_nanos(5_000));
            }
            now += asking * (16 - read) as u64;
            for _ in read..16 {
                now += 1;
                ways.end_asked(BYTES, Some(BYTES), Instant::from_nanos(now));
            }
            reads += read;
        }
        assert_eq!(reads < 200, bounces_win, "{reads} of 1600 read, {asking} ns for one of those asked for");
        assert!(bounces_win || reads > 1_300, "{reads} of 1600 read");
    }
}

#[test]
fn sizes_are_told_apart_whatever_they_are() {
    let mut ways = PullWays::default();
    for bytes in [1, 8192, 1 << 20, usize::MAX / 2] {
        for _ in 0..FIRST_ASKED {
            assert_eq!(ways.choose(bytes), Way::Ask);
            ways.tell_time(Instant::from_nanos(1));
            ways.end_asked(bytes, Some(bytes), Instant::from_nanos(7));
        }
        assert_eq!(ways.choose(bytes), Way::Read, "{bytes}");
        ways.end_read(bytes, bytes, Duration::MAX);
    }
    ways.end_asked(0, None, Instant::default());
    ways.choose(0);
}
