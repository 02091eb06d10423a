//! [`Spare`]: the buffer of a pool that only those get who were refused too often, and whose turn it is.
//!
//! A pool serves whoever comes first. A sender that is refused comes again only when its timer has run out, and might
//! find the pool empty each time, because others that come at better moments take every buffer.
//!
//! * The simple idea: once a sender was refused `refusals_most` times, the next buffer that is free is kept for it. It
//!   is live, and slow: with many senders and few buffers everybody is refused so often, and then each buffer lies idle
//!   until the timer of the one that it is kept for has run out. With 64 processes, one buffer and a timer of 0.64 ms
//!   an incast took 112 times as long as without flow control, and 6.6 times without the rule.
//! * The rule here: the pool has one buffer *more*, the spare one, and no other buffer is kept for anybody. Whoever
//!   was refused `refusals_most` times in a row may take the spare buffer when it comes and finds no other. So what
//!   is kept costs memory, one buffer of a process, and never time: the other buffers go on as though there were no
//!   rule. The next buffer that is free after the spare one was taken becomes the spare one.
//! * Turns: who has had the spare buffer has it again only when all have had it, or a buffer of the pool, who waited
//!   for it meanwhile. That is a *round*. Without rounds the sender whose timer runs out at the right moments would
//!   get every spare buffer.
//!
//! `refusals_most` is no parameter, because there is nothing to choose: with 1, 8 or 64 that incast takes 6.80, 6.49
//! and 6.56 times as long as without flow control, and ten programs in the mean 3.01, 3.02 and 3.02 times
//! (`tidegate paper pool`, one seed).
//!
//! **Why nobody starves** that goes on trying, while the receiver processes messages and all who wait go on trying: let
//! B wait. Until B gets a buffer this round does not end, or B came too late for this one and the next does not end,
//! and in a round each other sender takes the spare buffer once at most. So with n senders the spare buffer is taken by
//! others 2 (n − 1) times at most, and comes back each time, because it is the next that is free. After the last time
//! it lies there until B comes.
//!
//! **Where that ends.** A sender that waits and does not try again (between hosts: its program computes) keeps the
//! round from ending. Those who have not had the spare buffer in it lose nothing. Those who have do not get it again
//! until it tries, though it lies there; they have the buffers of the pool alone, which others may take at better
//! moments. In shared memory the buffer is kept for one sender at a time, by its place, and taken back from one that
//! does not come.

use crate::PeerId;

/// A sender that has had the spare buffer in this round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Served {
    peer: PeerId,
    /// It was refused too often again.
    waits_again: bool,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Spare {
    /// The spare buffer was taken, and none has become free since.
    is_away: bool,
    /// Who was refused too often and has not had it in this round.
    waiting: Vec<PeerId>,
    served: Vec<Served>,
}

impl Spare {
    /// Whether the spare buffer is there.
    pub fn is_there(&self) -> bool {
        !self.is_away
    }

    /// A buffer is free: if the spare one was taken, this is the spare one now. Returns whether.
    pub fn put_back(&mut self) -> bool {
        std::mem::take(&mut self.is_away)
    }

    /// A sender that was refused too often has come and found no buffer of the pool. Returns whether it gets the spare
    /// one; if not, it is refused once more, and waits.
    pub fn take(&mut self, peer: PeerId) -> bool {
        let has_had_it = self.served.iter().any(|served| served.peer == peer);
        if has_had_it || self.is_away {
            self.note_refused(peer);
            return false;
        }
        self.is_away = true;
        self.served.push(Served { peer, waits_again: false });
        self.leave(peer);
        true
    }

    /// A sender was refused too often: it waits.
    pub fn note_refused(&mut self, peer: PeerId) {
        if let Some(served) = self.served.iter_mut().find(|served| served.peer == peer) {
            served.waits_again = true;
        } else if !self.waiting.contains(&peer) {
            self.waiting.push(peer);
        }
    }

    /// A sender that may have waited does so no more: it has got a buffer of the pool, or is gone. If it has had the
    /// spare buffer, who comes in its place has had it too: else one that dies and comes again would pass all others.
    pub fn note_ended(&mut self, peer: PeerId) {
        if let Some(served) = self.served.iter_mut().find(|served| served.peer == peer) {
            served.waits_again = false;
        }
        self.leave(peer);
    }

    /// A sender does not wait any more. With the last one the round ends.
    fn leave(&mut self, peer: PeerId) {
        self.waiting.retain(|&waiting| waiting != peer);
        if self.waiting.is_empty() {
            let again = self.served.drain(..).filter(|served| served.waits_again);
            self.waiting.extend(again.map(|served| served.peer));
        }
    }
}
