//! Queries (W5, W7): for which receive a sender of dropped envelopes is queried next, and what its answers are for.

use super::window::Dropped;
use super::{Answered, WindowUpdate, Windows};
use crate::counter::{Counter, Counters};
use crate::envelope::{Number, Pattern};
use crate::malformed::Malformed;
use crate::operation::{Queue, Target};
use crate::wire::{Query, Room};
use tidegate_flow::PeerId;

impl Windows {
    /// What is to be said to a sender now (W5), once its window has [shrunk](Self::shrink). `is_returning`: room is on
    /// its way back to it; once that has left, the rest follows. `first_from`: the first posted receive of a queue
    /// beyond a number that a message of this sender could satisfy.
    pub(crate) fn update(
        &mut self,
        counters: &Counters,
        from: PeerId,
        is_returning: bool,
        first_from: impl FnMut(Queue, Target, Number) -> Option<(Number, Pattern)>,
    ) -> WindowUpdate {
        let mut update = WindowUpdate::default();
        if self.of(from).freed >= self.of(from).quarter() {
            update.room = self.return_room(from, is_returning);
        }
        let Some((number, queue, pattern)) = self.next_need(from, first_from) else { return update };
        if update.room.is_none() {
            update.room = self.return_room(from, is_returning);
        }
        if self.goes_on(from) {
            return update;
        }
        if let Some(dropped) = &mut self.of(from).dropped {
            (dropped.open, dropped.last) = (Some((number, queue)), queue);
            counters.add(Counter::Queries, 1);
            update.query = Some(Query { queue, tag: pattern.tag, ignore: pattern.ignore });
        }
        update
    }

    /// The next receive or peek for which a sender is to be queried, if no query is open.
    fn next_need(
        &self,
        from: PeerId,
        mut first_from: impl FnMut(Queue, Target, Number) -> Option<(Number, Pattern)>,
    ) -> Option<(Number, Queue, Pattern)> {
        let Dropped { count: 1.., last, asked, open: None } = self.of_peers.get(from)?.dropped.as_deref()? else {
            return None;
        };
        let source = Target::Peer(from);
        let need_of = |queue| {
            let asked = asked[queue as usize];
            let needs = [first_from(queue, source, asked), self.inquiries.first_from(queue, source, asked)];
            let (number, pattern) = needs.into_iter().flatten().min_by_key(|(number, _)| *number)?;
            // None is passed over: who has been queried for a later one counts as compared with all before it.
            let limit = self.sessions.as_ref().and_then(|sessions| sessions.limit(from, queue));
            let is_within = limit.is_none_or(|limit| number <= limit) || self.inquiries.contains(number);
            is_within.then_some((number, queue, pattern))
        };
        let [tagged, untagged] = [Queue::Tagged, Queue::Untagged].map(need_of);
        // Neither queue waits for long for one that always needs something.
        if *last == Queue::Untagged { tagged.or(untagged) } else { untagged.or(tagged) }
    }

    /// Gives a sender back what has become free of its window.
    fn return_room(&mut self, to: PeerId, is_returning: bool) -> Option<Room> {
        if is_returning {
            return None;
        }
        let freed = std::mem::take(&mut self.of(to).freed);
        (freed > 0).then_some(Room { bytes: freed.into() })
    }

    /// A sender offers something of a queue. `is_asked`: our query, if one is open, has left.
    pub(crate) fn take_offer(&mut self, from: PeerId, queue: Queue, is_asked: bool) -> Result<Answered, Malformed> {
        let dropped = self.of(from).dropped.as_mut().filter(|it| it.count > 0).ok_or(Malformed)?;
        let (number, _) = dropped.open.take_if(|(_, asked)| is_asked && *asked == queue).ok_or(Malformed)?;
        Ok(Answered { number, until: number.max(dropped.asked[queue as usize]) })
    }

    /// A sender has no match for our query.
    pub(crate) fn take_no_match(&mut self, from: PeerId, is_asked: bool) -> Result<(), Malformed> {
        let dropped = self.of(from).dropped.as_mut().ok_or(Malformed)?;
        let (number, queue) = dropped.open.take_if(|_| is_asked).ok_or(Malformed)?;
        self.close_query(from, queue, number);
        self.end_account(from);
        Ok(())
    }

    /// The receive of this number has been compared with all dropped envelopes of `from`.
    pub(crate) fn close_query(&mut self, from: PeerId, queue: Queue, number: Number) {
        if let Some(dropped) = &mut self.of(from).dropped {
            let asked = &mut dropped.asked[queue as usize];
            *asked = number.max(*asked);
        }
    }
}
