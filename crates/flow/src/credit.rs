//! Credits as move-only values: taken, spent one by one, given back; never copied. And [`Answer`], what a sender gets
//! when it requests credits.

/// What a sender may do that has packets for a peer.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "credits that are dropped are lost: spend them or give them back"]
pub enum Answer {
    /// Send so many packets: at least one.
    Packets(Credits),
    /// Wait.
    Wait,
    /// Wait; or better, if this is a short message of which nothing has left, send a request to send (RTS) in its
    /// place: the receiver will pull the message, and it is complete only then.
    Announce,
}

impl Answer {
    /// The credits that the answer brings, if any.
    #[inline]
    pub fn into_credits(self) -> Credits {
        match self {
            Answer::Packets(credits) => credits,
            Answer::Wait | Answer::Announce => Credits::new(0),
        }
    }
}

impl From<Credits> for Answer {
    /// Whoever gets none waits.
    #[inline]
    fn from(credits: Credits) -> Self {
        if credits.count() > 0 { Answer::Packets(credits) } else { Answer::Wait }
    }
}

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
        self.spend_many(1);
    }

    /// Spends one on each of so many packets that were written.
    #[inline]
    pub fn spend_many(&mut self, packets: u32) {
        debug_assert!(self.0 >= packets, "a packet was written that no credit covers");
        self.0 -= packets;
    }

    /// All are spent.
    #[inline]
    pub fn end(self) {
        debug_assert!(self.0 == 0, "credits are lost");
    }

    /// Ends their life in a counter.
    #[inline]
    pub(crate) fn into_count(self) -> u32 {
        self.0
    }
}

/// The credits a sender holds at one receiver: the only place where [`Credits`] come from and where they end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CreditCounter(u32);

impl CreditCounter {
    /// A counter that starts with `count` credits.
    pub(crate) fn new(count: u32) -> Self {
        CreditCounter(count)
    }

    /// Credits held now.
    #[inline]
    pub(crate) fn count(&self) -> u32 {
        self.0
    }

    /// Takes up to `wanted` credits out.
    #[inline]
    pub(crate) fn take(&mut self, wanted: u32) -> Credits {
        let taken = wanted.min(self.0);
        self.0 -= taken;
        Credits::new(taken)
    }

    /// Adds credits that came back, unused from the application or new from the receiver.
    #[inline]
    pub(crate) fn merge(&mut self, credits: Credits) {
        self.0 += credits.into_count();
    }
}
