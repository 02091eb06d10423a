//! [`PullWays`]: how a receiver gets the rest of a rendezvous message where two ways are open: it *reads* it out of
//! its sender's memory, one copy by the system, or *asks* for it by a clear to send, and the sender puts it into
//! bounce buffers: two copies.
//!
//! Which is faster is no property of the program's: on one kind of processor two copies through caches carry twice as
//! many bytes as the system's one, which has to map every page; on another a quarter as many. It changes when the
//! host moves a processor, and a sender that computes fills no bounce buffer. So it is measured, by size of the
//! message:
//!
//! * Each way has a price: the fourth of its last eight times, the least first. The other four may be those of a
//!   process that had lost its processor, or of the first pulls after a change of the way. The way that is taken is
//!   measured all the time, so of that one twelve count.
//! * The first ten pulls are asked for, the next nine read; the first of either find pages that are not mapped yet.
//!   From then on a way is taken until the other one's price is lower by a sixteenth.
//! * Now and then the other way is tried, up to six pulls in a row: the first of them find caches as the way before
//!   has left them (the first read after bounce buffers takes three times as long as the sixth). A trial ends early
//!   when even its best pull took so long that the rest is not worth its time.
//! * Trials may cost a forty-eighth of the time: the pause after one is as long as it takes for that at present
//!   prices, 96 pulls if ways are equal, up to 288 if one is five times as slow. When the price of the way that is
//!   taken rises, the pause shrinks at once. A price may be wrong that was taken while something disturbed its way,
//!   which is then not taken again: so the first pauses after a change are short, and each is at most twice as long
//!   as the one before.
//!
//! `recorded` has the times of a hundred jobs, and counts what these rules cost in each of them.
//!
//! A read is alone while it lasts, so its time is its own. Pulls that were asked for overlap, and the last to begin
//! is not the last to end: what counts is what came while any was under way, over that time, less what went into
//! reading others.

use std::cmp::Ordering;
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

impl Way {
    fn other(self) -> Way {
        if self == Way::Ask { Way::Read } else { Way::Ask }
    }
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

    /// `Less`: bounce buffers are the faster way; `Greater`: reads are. `Equal`: they differ by less than a
    /// sixteenth, of which the next measurement may say the opposite.
    #[must_use]
    pub fn compare(&self) -> Ordering {
        let [asked, read] = [self.asked, self.read].map(u64::from);
        match asked.abs_diff(read) * 16 <= asked.min(read) {
            true => Ordering::Equal,
            false => asked.cmp(&read),
        }
    }
}

/// Measurements that are kept of one way: the latest. All of them count for the way that is taken.
const RECENT: usize = 12;
/// Those that count for the other way.
const FEW: usize = 8;
/// Pulls of a class each way, first those that are asked for, before anything is concluded.
const FIRST_ASKED: u32 = 10;
const FIRST_READ: u32 = 9;
/// The other way is taken if its price is lower by one part in this number.
const CHANGE_GAINS: u64 = 16;
/// Pulls the other way in a row, now and then, at most.
const TRIAL: u32 = 6;
/// A trial has cost enough when its pulls took longer by this number of pulls of the other way.
const TRIAL_COSTS: u32 = 4;
/// Going another way and back takes as long as this number of pulls.
const RETURN_COSTS: u64 = 2;
/// Trials cost one part in this number of the time at most.
const TRIALS_PART: u64 = 48;
/// Pulls until the first trial; and until the first one after the way has changed.
const FIRST_PAUSE: u64 = 96;
const PAUSE_AFTER_CHANGE: u64 = 32;

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

    /// The last measurements, at most this number of them.
    fn last(&self, number: usize) -> impl Iterator<Item = u32> {
        let count = self.count as usize;
        (1..=number.min(count).min(RECENT)).map(move |back| self.values[(count - back) % RECENT])
    }

    /// The price by the last measurements, at most this number of them: in their order, three eighths are less.
    fn price(&self, number: usize) -> Option<u32> {
        let mut values = [0; RECENT];
        let count = values.iter_mut().zip(self.last(number)).map(|(to, value)| *to = value).count();
        values[..count].sort_unstable();
        values[..count].get(count * 3 / 8).copied()
    }
}

/// Pulls the other way, in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trial {
    way: Way,
    begun: u32,
    /// The measurements of this way before it.
    before: u32,
}

/// What is known of messages of about one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Class {
    asked: Recent,
    read: Recent,
    /// The way that is taken, but for trials; `None` until both are measured.
    way: Option<Way>,
    has_changed: bool,
    /// The measurements of this way when it was taken.
    taken_at: u32,
    /// Pulls begun, at first; then those since the last trial or change.
    begun: u32,
    trial: Option<Trial>,
    /// Pulls of the last trial.
    last_trial: u32,
    /// Trials since the way was changed.
    trials: u32,
}

impl Class {
    fn choose(&mut self) -> Way {
        if self.way.is_none() && self.begun < FIRST_ASKED + FIRST_READ {
            self.begun += 1;
            return if self.begun <= FIRST_ASKED { Way::Ask } else { Way::Read };
        }
        let (Some(asked), Some(read)) = (self.asked.price(FEW), self.read.price(FEW)) else { return Way::Ask };
        let Some(mut way) = self.way else {
            let way = if asked <= read { Way::Ask } else { Way::Read };
            (self.way, self.begun) = (Some(way), 1);
            return way;
        };
        if let Some(way) = self.go_on_trying(asked, read) {
            return way;
        }
        let (taken, mut other) = if way == Way::Ask { (&self.asked, read) } else { (&self.read, asked) };
        let since = taken.count.wrapping_sub(self.taken_at) as usize;
        let Some(mut price) = taken.price(FEW.saturating_add(since)) else { return way };
        if u64::from(other) * (CHANGE_GAINS + 1) < u64::from(price) * CHANGE_GAINS {
            (way, price, other) = (way.other(), other, price);
            (self.way, self.has_changed, self.trials, self.begun) = (Some(way), true, 0, 0);
            self.taken_at = self.recent(way).count;
        }
        if u64::from(self.begun) < self.pause(price, other) {
            self.begun += 1;
            return way;
        }
        let way = way.other();
        let before = self.recent(way).count;
        self.trial = Some(Trial { way, begun: 1, before });
        way
    }

    fn recent(&self, way: Way) -> &Recent {
        if way == Way::Ask { &self.asked } else { &self.read }
    }

    /// The way of a pull that belongs to a trial; `None` if there is none, or it is over now.
    fn go_on_trying(&mut self, asked: u32, read: u32) -> Option<Way> {
        let trial = self.trial.as_mut()?;
        let (recent, usual) = if trial.way == Way::Ask { (&self.asked, read) } else { (&self.read, asked) };
        let measured = recent.count.wrapping_sub(trial.before).min(TRIAL);
        let best = recent.last(measured as usize).min();
        if trial.begun < TRIAL && best.is_none_or(|best| !is_much_slower(best, usual, measured)) {
            trial.begun += 1;
            return Some(trial.way);
        }
        (self.last_trial, self.begun, self.trial) = (trial.begun, 0, None);
        self.trials = self.trials.saturating_add(1);
        None
    }

    /// Pulls until the next trial, from the last one or a change on; prices are those of the way that is taken and of
    /// the other.
    fn pause(&self, price: u32, other: u32) -> u64 {
        let price = u64::from(price.max(1));
        let longer = u64::from(self.last_trial) * u64::from(other).saturating_sub(price);
        let paid = TRIALS_PART * (longer + RETURN_COSTS * price) / price;
        let first = if self.has_changed { PAUSE_AFTER_CHANGE } else { FIRST_PAUSE };
        paid.min(first << self.trials.min(32))
    }
}

/// Whether trying a way has cost enough, if even the best of this number of pulls took `best`, where the other way
/// takes `usual`.
fn is_much_slower(best: u32, usual: u32, pulls: u32) -> bool {
    u64::from(best) * u64::from(pulls) >= u64::from(usual) * u64::from(pulls + TRIAL_COSTS)
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
        let of = |recent: &Recent| recent.price(FEW).unwrap_or(0);
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
mod recorded;
#[cfg(test)]
mod tests;
