//! [`Attention`]: whether an endpoint may have something to do though nothing has come.
//!
//! Every part of an endpoint can have work left: messages that found no room, pieces, pulls, peers that have departed,
//! queries, times that count. To ask them all at each poll would cost an empty poll ten times as much as the look into
//! the mailbox. But what an endpoint has to do changes only inside its calls (rule 1 of the house: nothing moves by
//! itself). So a call that may give it something to do [raises](Attention::raise) attention, and calls of progress that
//! find nothing [lower](Attention::lower) it: the second of them in a row asks all parts, so that a program that polls
//! once between two messages does not pay for that. As long as attention is low a poll is a look at the link.
//!
//! Debug builds ask all the old questions at each poll that attention would have spared.

use std::fmt;

/// See the module.
#[derive(Default)]
pub(crate) enum Attention {
    /// The endpoint may have something to do.
    #[default]
    High,
    /// The same, but the last call of progress has found nothing.
    Falling,
    /// It is known to have nothing to do.
    Low,
}

/// Always the same: two endpoints that differ in nothing else do the same by
/// [`progress`](crate::Endpoint::progress), and explorers, which call nothing else, take them for one.
impl fmt::Debug for Attention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Attention")
    }
}

impl Attention {
    /// The endpoint may have something to do.
    #[inline(always)]
    pub(crate) fn raise(&mut self) {
        *self = Attention::High;
    }

    /// A call of progress has found nothing; `has_work` says whether something is left all the same.
    #[inline(always)]
    pub(crate) fn lower(&mut self, has_work: impl FnOnce() -> bool) {
        *self = match self {
            Attention::High => Attention::Falling,
            _ if has_work() => Attention::Falling,
            _ => Attention::Low,
        };
    }

    /// Whether it is known that it has nothing to do.
    #[inline(always)]
    pub(crate) fn is_low(&self) -> bool {
        matches!(self, Attention::Low)
    }
}
