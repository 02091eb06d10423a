//! Credits as move-only values: taken, spent one by one, given back; never copied.

/// A number of credits towards one peer, in the hands of whoever is about to send.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "credits that are dropped are lost: spend them or give them back"]
pub struct Credits(u32);

impl Credits {
    /// Wraps credits that leave a counter. Only schemes make credits.
    #[inline]
    pub(crate) fn new(count: u32) -> Self {
        Credits(count)
    }

    /// How many are left.
    #[inline]
    pub fn count(&self) -> u32 {
        self.0
    }

    /// Spends one on a packet that was written.
    #[inline]
    pub fn spend(&mut self) {
        debug_assert!(self.0 > 0);
        self.0 -= 1;
    }

    /// Ends their life in a counter.
    #[inline]
    pub(crate) fn into_count(self) -> u32 {
        self.0
    }
}
