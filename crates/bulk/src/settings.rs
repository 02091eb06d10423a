//! [`Settings`]: what a user may choose, and what is refused.

use std::error::Error;
use std::fmt;
use std::time::Duration;

/// The most rounds that a sender looks ahead: a request's bitmap is one word.
pub const WINDOW_MOST: u32 = 64;

/// How an exchange goes, beside its technique. Defaults are ours where B is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Bytes of a piece that `interleave` and `bandwidth_matching` send at a time, and of a booking's chunk. B's
    /// injection size (B §2.1: 8 KiB on the Paragon).
    pub unit: u64,
    /// Pieces of this node that may be under way at once, where a technique allows more than one: `in_order` and
    /// `interleave`.
    pub outstanding: u32,
    /// `bandwidth_matching`: the least time from the start of one piece to the start of the next, for each byte of the
    /// first, in picoseconds: what a receiver needs to take it from the network.
    pub picoseconds_per_byte: u64,
    /// `booking`: how many rounds ahead a sender may book and a receiver grants (B's look-ahead window).
    pub window: u32,
    /// `booking`: rounds from one barrier to the next. With 1, as in B §4.3, a barrier ends each; with more, receivers
    /// release their senders within (B §5.1).
    pub rounds_per_barrier: u32,
    /// `booking`: how many requests a sender makes in a round at most, denied ones among them. B §4.3: "within each round
    /// … a sender … requests a booking from one of its receivers".
    pub requests_per_round: u32,
    /// `booking`: where the sequence of receivers that are asked begins. The same everywhere or not, as one likes.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            unit: 8192,
            outstanding: 1,
            picoseconds_per_byte: 0,
            window: 8,
            rounds_per_barrier: 1,
            requests_per_round: u32::MAX,
            seed: 1,
        }
    }
}

/// A setting that cannot be, and what can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfitSettings {
    /// Pieces of no bytes.
    Unit,
    /// Nothing may be under way.
    Outstanding,
    /// No round to book, or more than a bitmap has bits.
    Window(u32),
    /// No request in a round.
    Requests,
    /// No round between two barriers, or more than a window: then not all rounds could be booked.
    RoundsPerBarrier(u32),
}

impl fmt::Display for UnfitSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnfitSettings::Unit => write!(f, "a piece has at least 1 byte"),
            UnfitSettings::Outstanding => write!(f, "at least 1 piece has to be under way"),
            UnfitSettings::Window(window) => {
                write!(f, "the window of booking is 1 to {WINDOW_MOST} rounds, not {window}")
            }
            UnfitSettings::Requests => write!(f, "a sender has to make at least 1 request in a round"),
            UnfitSettings::RoundsPerBarrier(rounds) => {
                write!(f, "there is a barrier after 1 round, or after as many as the window has at most, not {rounds}")
            }
        }
    }
}

impl Error for UnfitSettings {}

impl Settings {
    /// Whether an exchange can go like that.
    ///
    /// # Errors
    /// The first setting that cannot be.
    pub fn check(&self) -> Result<(), UnfitSettings> {
        if self.unit == 0 {
            return Err(UnfitSettings::Unit);
        }
        if self.outstanding == 0 {
            return Err(UnfitSettings::Outstanding);
        }
        if !(1..=WINDOW_MOST).contains(&self.window) {
            return Err(UnfitSettings::Window(self.window));
        }
        if self.requests_per_round == 0 {
            return Err(UnfitSettings::Requests);
        }
        if !(1..=self.window).contains(&self.rounds_per_barrier) {
            return Err(UnfitSettings::RoundsPerBarrier(self.rounds_per_barrier));
        }
        Ok(())
    }

    /// How long a receiver needs for `bytes` bytes.
    pub(crate) fn time_for(&self, bytes: u64) -> Duration {
        let picoseconds = u128::from(self.picoseconds_per_byte) * u128::from(bytes);
        Duration::from_nanos(u64::try_from(picoseconds / 1000).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let fine = Settings::default();
        assert_eq!(fine.check(), Ok(()));
        assert_eq!(Settings { unit: 0, ..fine }.check(), Err(UnfitSettings::Unit));
        assert_eq!(Settings { outstanding: 0, ..fine }.check(), Err(UnfitSettings::Outstanding));
        assert_eq!(Settings { window: 65, ..fine }.check(), Err(UnfitSettings::Window(65)));
        assert_eq!(Settings { window: 0, ..fine }.check(), Err(UnfitSettings::Window(0)));
        assert_eq!(Settings { requests_per_round: 0, ..fine }.check(), Err(UnfitSettings::Requests));
        let barriers = Settings { rounds_per_barrier: 9, ..fine }.check();
        assert_eq!(barriers, Err(UnfitSettings::RoundsPerBarrier(9)));
        assert!(barriers.unwrap_err().to_string().contains("not 9"));
    }
}
