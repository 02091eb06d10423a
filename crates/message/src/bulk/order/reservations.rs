//! [`Reservations`]: the other side of `booking`: which receiver a sender keeps itself free for.
//!
//! A receiver asks once and is answered once: at once if nobody else has booked us, else when that one has got its
//! message or its reservation has run out. There is no refusal: a receiver that has no answer after a time T begins
//! anyway. So at most one question of each peer is kept here, and at most one answer waits to leave to each.

use super::Since;
use crate::malformed::Malformed;
use std::collections::VecDeque;
use std::time::Duration;
use tidegate_flow::{Instant, PeerId};

/// See the module.
#[derive(Debug)]
pub(crate) struct Reservations {
    /// How long a reservation holds.
    length: Duration,
    /// Who has booked us, and since when.
    holder: Option<(PeerId, Since)>,
    /// Who has asked and has no answer, in order. A peer is here once.
    asking: VecDeque<PeerId>,
    now: Instant,
}

impl Reservations {
    /// Most heap bytes: all `peers` ask.
    pub(crate) const fn bytes_most(peers: u32) -> usize {
        2 * peers as usize * size_of::<PeerId>()
    }

    pub(crate) fn new(length: Duration) -> Self {
        Reservations { length, holder: None, asking: VecDeque::new(), now: Instant::default() }
    }

    /// A receiver asks. It must not ask again before it has been answered.
    pub(crate) fn ask(&mut self, from: PeerId) -> Result<(), Malformed> {
        if self.asking.contains(&from) {
            return Err(Malformed);
        }
        self.asking.push_back(from);
        Ok(())
    }

    /// The next receiver that is to be told that we are free for it.
    pub(crate) fn poll_answer(&mut self) -> Option<PeerId> {
        let holder = self.holder.filter(|(_, since)| !since.is_over(self.length, self.now));
        let next = match holder {
            None => self.asking.pop_front()?,
            Some((holder, _)) => {
                let at = self.asking.iter().position(|asking| *asking == holder)?;
                self.asking.remove(at)?
            }
        };
        self.holder = Some((next, Since::Fresh));
        Some(next)
    }

    /// A receiver has got a message of ours: if it had booked us, we are free again.
    pub(crate) fn release(&mut self, receiver: PeerId) {
        self.holder = self.holder.filter(|(holder, _)| *holder != receiver);
    }

    /// A peer is gone.
    pub(crate) fn lose_peer(&mut self, peer: PeerId) {
        self.release(peer);
        self.asking.retain(|asking| *asking != peer);
    }

    /// Whether the time counts for somebody who waits here.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        !self.asking.is_empty()
    }

    /// What time it is. Returns whether something counts from now on.
    pub(crate) fn tell_time(&mut self, now: Instant) -> bool {
        self.now = now;
        self.holder.as_mut().is_some_and(|(_, since)| since.tell_time(now))
    }

    /// When the next who has asked is answered though nothing has come.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let since = self.holder.map_or(Since::Fresh, |(_, since)| since);
        self.is_timed().then(|| since.end(self.length, self.now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PeerId = PeerId(0);
    const B: PeerId = PeerId(1);
    const C: PeerId = PeerId(2);
    const LENGTH: Duration = Duration::from_millis(20);

    fn reservations() -> Reservations {
        Reservations::new(LENGTH)
    }

    #[test]
    fn one_receiver_books_us_and_the_others_follow_in_order() {
        let mut all = reservations();
        assert_eq!((all.ask(A), all.poll_answer(), all.poll_answer()), (Ok(()), Some(A), None));
        assert_eq!((all.ask(C), all.ask(B), all.poll_answer()), (Ok(()), Ok(()), None), "A has booked us");
        assert_eq!(all.ask(B), Err(Malformed), "it has not been answered");
        assert_eq!((all.ask(A), all.poll_answer()), (Ok(()), Some(A)), "A may go on");
        all.release(B);
        assert_eq!(all.poll_answer(), None);
        all.release(A);
        assert_eq!((all.poll_answer(), all.poll_answer()), (Some(C), None));
        all.lose_peer(C);
        assert_eq!((all.poll_answer(), all.is_timed()), (Some(B), false));
    }

    #[test]
    fn a_reservation_runs_out() {
        let mut all = reservations();
        let begun = Instant::from_nanos(1_000_000_000);
        assert_eq!((all.ask(A), all.poll_answer(), all.next_timeout()), (Ok(()), Some(A), None));
        assert_eq!((all.ask(B), all.poll_answer(), all.is_timed()), (Ok(()), None, true));
        all.tell_time(begun);
        assert_eq!((all.poll_answer(), all.next_timeout()), (None, Some(begun + LENGTH)));
        all.tell_time(begun + LENGTH);
        assert_eq!((all.poll_answer(), all.next_timeout()), (Some(B), None));
    }
}
