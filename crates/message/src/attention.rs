//! [`Attention`]: whether an endpoint may have something to do though nothing has come.
//!
//! Every part of an endpoint can have work left: messages that found no room, pieces, pulls, peers that have departed,
//! queries, times that count. To ask them all at each poll would cost an empty poll ten times as much as the look into
//! the mailbox. But what an endpoint has to do changes only inside its calls (rule 1 of the house: nothing moves by
//! itself), and only in those of their branches that are taken rarely. So one word is kept:
//!
//! * A branch that may give the endpoint something to do [raises](Attention::raise) it. A message that leaves at once,
//!   a receive that is posted, and a message that comes whole and finds its receive do not.
//! * Calls of progress [lower](Attention::lower) it: the second in a row in which nothing has raised it asks all parts.
//!   As long as it is low, a poll is a look at the link.
//! * A branch that may leave work that only we can do also [begins](Attention::begin) it: the thread that goes on for
//!   an application which does not call looks for work only then.
//!
//! Debug builds ask all the old questions at each call that the word would have spared.

use std::fmt;

/// See the module.
pub(crate) struct Attention(u8);

/// The endpoint may have something to do.
const RAISED: u8 = 1;
/// The same, but nothing has raised attention since the last call of progress.
const FALLING: u8 = 2;
/// Something has begun since nothing was left.
const BEGUN: u8 = 4;

impl Default for Attention {
    fn default() -> Self {
        Attention(RAISED)
    }
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
        self.0 |= RAISED;
    }

    /// Something begins that may be left when the call is over.
    #[inline(always)]
    pub(crate) fn begin(&mut self) {
        self.0 |= RAISED | BEGUN;
    }

    /// The same, where a peer does it: there is nothing to do until a packet comes.
    #[inline(always)]
    pub(crate) fn begin_elsewhere(&mut self) {
        self.0 |= BEGUN;
    }

    /// A call of progress is over. `has_work`: whether something is to be done all the same.
    #[inline(always)]
    pub(crate) fn lower(&mut self, has_work: bool) {
        let is_raised = self.0 & RAISED != 0;
        self.0 = (self.0 & BEGUN) | if is_raised || has_work { FALLING } else { 0 };
    }

    /// Whether the next call of [`lower`](Self::lower) wants an answer.
    #[inline(always)]
    pub(crate) fn is_falling(&self) -> bool {
        self.0 & RAISED == 0
    }

    /// Whether it is known that the endpoint has nothing to do.
    #[inline(always)]
    pub(crate) fn is_low(&self) -> bool {
        self.0 & (RAISED | FALLING) == 0
    }

    /// Whether something has begun since nothing was left.
    #[inline(always)]
    pub(crate) fn has_begun(&self) -> bool {
        self.0 & BEGUN != 0
    }

    /// Nothing is left.
    pub(crate) fn end(&mut self) {
        self.0 &= !BEGUN;
    }
}
