//! [`PullWays`]: how a receiver gets the rest of a rendezvous message where two ways are open: it *reads* it out of its
//! sender's memory, one copy by the system, or *asks* for it by a clear to send, and the sender puts it into bounce
//! buffers: two copies.
//!
//! Which is faster is no property of the program's: on one kind of processor two copies through caches carry twice as
//! many bytes as the system's one, which has to map every page; on another half as many (Zen 5 and Zen 4). And a
//! sender that computes fills no bounce buffer. So it is measured, by size of the message: a few pulls each way to
//! begin with, then the faster way, and now and then a few the other way, the rarer the worse it was.
//!
//! A read is alone while it lasts, so its time is its own. Pulls that were asked for overlap, and the last to begin is
//! not the last to end: what counts is what came while any was under way, over that time, less what went into reading
//! others.

use std::fmt::{self, Debug, Formatter};
use std::time::Duration;
use tidegate_flow::Instant;

/// How to get the rest of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Send a clear to send: the sender fills bounce buffers.
    Ask,
    /// Read it out of its sender's memory.
    Read,
}

/// Classes of messages by their length: each reaches twice as far as the one before, the first to 2^12 bytes, and the
/// last has all that are longer.
pub const CLASSES: usize = 12;
const SMALLEST: u32 = 12;

/// How long bytes of messages of a class take each way, as measured last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WayTimes {
    /// By bounce buffers, in picoseconds per byte; 0: not measured.
    pub asked: u32,
    /// Read out of the sender's memory, in picoseconds per byte; 0: not measured.
    pub read: u32,
}

impl WayTimes {
    /// The longest messages of a class, in bytes; `None`: the last, without an end.
    #[must_use]
    pub fn bytes_most(class: usize) -> Option<u64> {
        (class + 1 < CLASSES).then(|| 1 << (SMALLEST as usize + class))
    }
}
/// Measurements of one way that count: the latest.
const RECENT: usize = 8;
/// Pulls of a class each way before anything is concluded.
const TRIAL: u32 = 8;
/// Pulls the other way in a row, now and then: enough of them that one way's do not count for the other's.
const RETRIAL: u32 = 4;
/// Pulls between two trials of a way that was a little slower; below, of one that took half as long again or more. The
/// first pause has a quarter of them, the second half: what the beginning of a job says may be wrong.
const TRY_AGAIN: u32 = 128;
const TRY_SELDOM: u32 = 512;
/// Pauses that are shorter.
const FIRST_PAUSES: u32 = 2;

/// The latest measurements of one way, in picoseconds per byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Recent {
    values: [u32; RECENT],
    count: u32,
}

impl Recent {
    fn add(&mut self, bytes: usize, time: Duration) {
        let value = time.as_nanos().saturating_mul(1000) / bytes.max(1) as u128;
        self.values[self.count as usize % RECENT] = u32::try_from(value).unwrap_or(u32::MAX);
        self.count = self.count.wrapping_add(1).max(1);
    }

    /// The lower quartile. A process that lost its processor for a while says nothing about a way, and such times only
    /// ever add: of the median, three of them in a row once in some thousand messages made the slower way look better,
    /// for the next [`TRY_SELDOM`].
    fn usual(&self) -> Option<u32> {
        let mut values = self.values;
        let known = &mut values[..RECENT.min(self.count as usize)];
        known.sort_unstable();
        known.get(known.len() / 4).copied()
    }
}

/// What is known of messages of about one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Class {
    asked: Recent,
    read: Recent,
    /// Pulls begun, at first; then those since the last trial.
    begun: u32,
    /// Whether the trials that everything begins with are over.
    is_tried: bool,
    /// Trials since then, as far as they make a difference.
    trials: u32,
}

impl Class {
    fn choose(&mut self) -> Way {
        self.begun = self.begun.saturating_add(1);
        if !self.is_tried {
            self.is_tried = self.begun == 2 * TRIAL;
            return if self.begun <= TRIAL { Way::Ask } else { Way::Read };
        }
        let (Some(asked), Some(read)) = (self.asked.usual(), self.read.usual()) else { return Way::Ask };
        let (better, other, [least, most]) =
            if asked <= read { (Way::Ask, Way::Read, [asked, read]) } else { (Way::Read, Way::Ask, [read, asked]) };
        let pause = if most - least >= least / 2 { TRY_SELDOM } else { TRY_AGAIN };
        let pause = pause >> (FIRST_PAUSES - self.trials);
        if self.begun <= pause {
            return better;
        }
        if self.begun >= pause + RETRIAL {
            self.begun = 0;
            self.trials = (self.trials + 1).min(FIRST_PAUSES);
        }
        other
    }
}

/// The time in which pulls of [`Way::Ask`] were under way.
#[derive(Clone, Copy, Debug, Default)]
struct Period {
    /// The first time that was told within this period; `None`: none yet.
    since: Option<Instant>,
    under_way: usize,
    /// Most of them at the same time.
    most: usize,
    ended: usize,
    bytes: usize,
    /// How much of it went into reading others, while these had to wait.
    reading: Duration,
}

/// What was measured, and so which way to go.
#[derive(Default)]
pub(crate) struct PullWays {
    classes: [Class; CLASSES],
    asking: Period,
    /// What went into copying pieces since the time was told: the last piece of a message ends so much later.
    draining: Duration,
}

/// Only the sizes that there have been.
impl Debug for PullWays {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let of_sizes = self.classes.iter().enumerate().filter(|(_, class)| **class != Class::default());
        f.debug_map().entries(of_sizes).finish()?;
        write!(f, " {:?}", self.asking)
    }
}

impl PullWays {
    fn class(&mut self, length: usize) -> &mut Class {
        let log = length.max(1).checked_next_power_of_two().map_or(usize::BITS, usize::ilog2);
        &mut self.classes[(log.saturating_sub(SMALLEST) as usize).min(CLASSES - 1)]
    }

    /// The way for a pull that begins now, of what is left of a message of this length.
    pub(crate) fn choose(&mut self, length: usize) -> Way {
        let way = self.class(length).choose();
        if way == Way::Ask {
            let period = &mut self.asking;
            if period.under_way == 0 {
                *period = Period::default();
            }
            period.under_way += 1;
            period.most = period.most.max(period.under_way);
        }
        way
    }

    /// What was left of a message was read, which took so long.
    pub(crate) fn end_read(&mut self, length: usize, left: usize, time: Duration) {
        self.asking.reading = self.asking.reading.saturating_add(time);
        self.class(length).read.add(left, time);
    }

    /// The measurements of each class.
    pub(crate) fn times(&self) -> [WayTimes; CLASSES] {
        let of = |recent: &Recent| recent.usual().unwrap_or(0);
        self.classes.each_ref().map(|class| WayTimes { asked: of(&class.asked), read: of(&class.read) })
    }

    /// How many pulls of [`Way::Ask`] are being measured.
    #[inline]
    pub(crate) fn measured(&self) -> usize {
        self.asking.under_way
    }

    /// What time it is.
    pub(crate) fn tell_time(&mut self, now: Instant) {
        self.draining = Duration::ZERO;
        if self.asking.under_way > 0 {
            self.asking.since.get_or_insert(now);
        }
    }

    /// Copying pieces took so long since then.
    pub(crate) fn note_draining(&mut self, time: Duration) {
        self.draining = self.draining.saturating_add(time);
    }

    /// A pull of [`Way::Ask`] has ended. `left`: the bytes that came that way; `None` if not all has come. `now`: the
    /// time that was told last.
    pub(crate) fn end_asked(&mut self, length: usize, left: Option<usize>, now: Instant) {
        let now = now + self.draining;
        let period = &mut self.asking;
        period.under_way = period.under_way.saturating_sub(1);
        period.ended += 1;
        period.bytes = period.bytes.saturating_add(left.unwrap_or(0));
        // Several at once come in turns: only some rounds of them say how fast they come.
        if period.under_way == 0 || period.ended >= 4 * period.most {
            let past = *period;
            *period = Period { since: Some(now), under_way: past.under_way, most: past.under_way, ..Period::default() };
            if let Some(since) = past.since {
                self.class(length).asked.add(past.bytes, now.since(since).saturating_sub(past.reading));
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
        one_by_one(&mut ways, 2 * TRIAL as usize, 10_000, 30_000);
        let reads = one_by_one(&mut ways, 400, 10_000, 6_000);
        assert!(reads > 250, "{reads} of 400 read, the first right after {}", TRY_SELDOM / 4);
    }

    #[test]
    fn a_way_that_never_works_is_not_tried_for_ever() {
        let mut class = Class::default();
        for _ in 0..TRIAL {
            assert_eq!(class.choose(), Way::Ask);
            class.asked.add(BYTES, Duration::from_nanos(5_000));
        }
        assert_eq!((0..TRIAL).filter(|_| class.choose() == Way::Read).count(), TRIAL as usize);
        class.begun = u32::MAX - 1;
        assert!((0..3).all(|_| class.choose() == Way::Ask), "no read has ever been measured");
    }

    #[test]
    fn a_few_that_took_for_ever_change_nothing() {
        let mut ways = PullWays::default();
        one_by_one(&mut ways, 100, 5_000, 10_000);
        one_by_one(&mut ways, 2, 50_000_000, 10_000);
        let reads = one_by_one(&mut ways, 100, 5_000, 10_000);
        assert!(reads <= RETRIAL as usize, "{reads} read: more than a trial");
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
            for _ in 0..TRIAL {
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
}
