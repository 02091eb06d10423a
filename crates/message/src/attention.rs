//! [`Attention`]: whether an endpoint may have something to do though nothing has come.
//!
//! Every part of an endpoint can have work left: messages that found no room, pieces, pulls, peers that have departed,
//! queries, times that count. To ask them all at each poll would cost an empty poll ten times as much as the look into
//! the mailbox. But the work of an endpoint changes only inside its calls, and only in branches that are rarely taken.
//! So one word is kept. A branch changes it by one of these calls:
//!
//! * [`begin`](Attention::begin) where [`has_work_left`](crate::Endpoint::has_work_left) may hold afterwards: a message
//!   waits, an operation has no answer yet, a message has come in part, something is to be tried again.
//! * [`begin_elsewhere`](Attention::begin_elsewhere) in the same case, on a path that many messages take, if
//!   `may_have_work` (`endpoint/progress.rs`) does not hold until a packet comes. It spares progress its questions.
//! * [`raise`](Attention::raise) where `may_have_work` alone may hold (a peer has departed, a query is open, a time
//!   counts), or the caller is to be told something that is no completion (pressure, a new epoch).
//! * [`note_loss`](Attention::note_loss) where a peer is found to be gone: that ends operations of every kind, so the
//!   endpoint does it when the call, or what a packet has caused, is over (`endpoint/departure.rs`).
//! * None where neither holds: a short message has left, a receive is posted, a whole message has met its receive.
//!
//! In doubt `begin`: it includes the others, and costs a few questions. Too little is an error. Without `begin` a later
//! short message overtakes the one that waits (`egress/short.rs`), the limit of operations is not kept (`check_room`),
//! and the thread that goes on for a silent application does not run.
//!
//! Calls of progress lower the word. The first of them in which nothing raises it, and which no other has raised
//! before, asks `may_have_work`; so does each later one until the answer is no. As long as the word is low, a poll is a
//! look at the link. Under schemes that act on time the answer is always yes, so it stays raised.
//!
//! Debug builds ask both questions wherever the word would spare them, and panic where it is wrong.

use std::fmt;

/// See the module.
pub(crate) struct Attention(u8);

/// The endpoint may have something to do.
const RAISED: u8 = 1;
/// The same, but nothing has raised attention since the last call of progress.
const FALLING: u8 = 2;
/// Something has begun since nothing was left.
const BEGUN: u8 = 4;
/// A peer is gone, and operations wait for it that nothing has ended yet.
const LOST: u8 = 8;

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
    /// The endpoint may have something to do, or to tell, though nothing comes.
    #[inline(always)]
    pub(crate) fn raise(&mut self) {
        self.0 |= RAISED;
    }

    /// Something begins that may be left when the call is over. Later messages look whether they have to wait for it.
    #[inline(always)]
    pub(crate) fn begin(&mut self) {
        self.0 |= RAISED | BEGUN;
    }

    /// The same, where only a packet can take it further.
    #[inline(always)]
    pub(crate) fn begin_elsewhere(&mut self) {
        self.0 |= BEGUN;
    }

    /// A peer was found to be gone.
    #[inline(always)]
    pub(crate) fn note_loss(&mut self) {
        self.0 |= RAISED | LOST;
    }

    /// Whether peers were found to be gone, and are to be handled as lost.
    #[inline(always)]
    pub(crate) fn has_losses(&self) -> bool {
        self.0 & LOST != 0
    }

    /// All of them have been handled.
    pub(crate) fn end_losses(&mut self) {
        self.0 &= !LOST;
    }

    /// A call of progress is over. `has_work`: whether something is to be done though nothing has raised attention. It
    /// counts only then.
    #[inline(always)]
    pub(crate) fn lower(&mut self, has_work: bool) {
        let is_raised = self.0 & RAISED != 0;
        self.0 = (self.0 & BEGUN) | if is_raised || has_work { FALLING } else { 0 };
    }

    /// Nothing has raised it since it was lowered last: [`lower`](Self::lower) has to be told `has_work`.
    #[inline(always)]
    pub(crate) fn has_not_been_raised(&self) -> bool {
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
