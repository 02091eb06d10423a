//! [`Mark`]: how a sender and the owner of a pool of slots speak of the slots that the sender waits for.

/// The sender's place is in the list of marked senders, or is being pushed onto it. The sender sets this with its mark,
/// and the receiver alone clears it when it takes the place off the list: so a place is never there twice.
pub(crate) const LISTED: u64 = 1 << 2;

const WAITING: u64 = 1;
const KEPT: u64 = 2;
const STATE: u64 = 3;
const SLOTS_FROM: u32 = 32;

/// The meaning of a sender's word, besides [`LISTED`]. The sender alone changes `None` to `Waiting`, the receiver alone
/// `Waiting` to `Kept`. All changes are compare-and-swaps, so that a slot is never with both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The sender does not wait. Fresh memory says so.
    None,
    /// The sender found no slot, and wants this number.
    Waiting(u32),
    /// This number of slots is kept for the sender.
    Kept(u32),
}

impl Mark {
    /// The meaning of a word. Values that no correct process writes say `None`.
    pub fn of(word: u64) -> Mark {
        match (word & STATE, (word >> SLOTS_FROM) as u32) {
            (WAITING, slots) => Mark::Waiting(slots.max(1)),
            (KEPT, slots) if slots > 0 => Mark::Kept(slots),
            _ => Mark::None,
        }
    }

    /// The word that says this in place of `before`: whether the place is listed stays.
    pub fn word(self, before: u64) -> u64 {
        let (state, slots) = match self {
            Mark::None | Mark::Kept(0) => (0, 0),
            Mark::Waiting(slots) => (WAITING, slots),
            Mark::Kept(slots) => (KEPT, slots),
        };
        before & LISTED | state | u64::from(slots) << SLOTS_FROM
    }

    /// The slots that are kept.
    pub fn kept(self) -> u64 {
        match self {
            Mark::Kept(slots) => slots.into(),
            Mark::None | Mark::Waiting(_) => 0,
        }
    }
}
