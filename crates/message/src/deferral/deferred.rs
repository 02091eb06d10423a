//! The deferred sends to one peer, in order.

use crate::collections::index::Class;
use crate::collections::learned::{Indices, LinksOfClasses, Sought, Wanted};
use crate::collections::list::{Ordered, Position};
use crate::collections::slab::Key;
use crate::collections::steps;
use crate::envelope::Pattern;
use crate::operation::Queue;
use std::fmt;

/// How far a deferred send has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The receiver does not know of it.
    Fresh,
    /// A deferral notice has shown it; the receiver matches it or drops its envelope.
    InDoubt,
    /// The receiver has dropped its envelope.
    Dropped,
    /// It has been offered: the receiver accepts or declines it.
    Offered,
}

pub(super) struct Deferred {
    pub(super) send: Key,
    pub(super) stage: Stage,
    /// Whether it is of the tagged matching space.
    queue: Queue,
    tag: u64,
    links: LinksOfClasses,
}

/// The envelope and the neighbours follow from the send and the list.
impl fmt::Debug for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferred").field("send", &self.send).field("stage", &self.stage).finish()
    }
}

impl Sought for Deferred {
    fn source(&self) -> u64 {
        source_of(self.queue)
    }
    fn tag(&self) -> u64 {
        self.tag
    }
    fn links(&self) -> &LinksOfClasses {
        &self.links
    }
    fn links_mut(&mut self) -> &mut LinksOfClasses {
        &mut self.links
    }
}

/// The deferred sends to one peer.
#[derive(Debug)]
pub(super) struct DeferredSends {
    pub(super) list: Ordered<Deferred>,
    indices: Indices,
    /// The first fresh one; all after it are fresh too.
    pub(super) fresh: Option<Position>,
    /// The batch of a deferral notice that is not acknowledged.
    pub(super) batch: Option<Vec<(Position, Key)>>,
    /// A query that waits for the batch (W7).
    pub(super) query: Option<(Queue, Pattern)>,
    /// Operations wait behind a fence, and no send may go the usual way.
    pub(super) is_fenced: bool,
    /// Of the fresh ones, how many are to be shown before we give our session back.
    pub(super) to_show: u32,
    /// The number of receives and peeks for which the receiver may have to query us, if it has told since the last
    /// notice (S6).
    pub(super) needs: Option<u32>,
    /// Whether sends have been deferred: then the peer counts as one that sends wait for.
    pub(super) has_waited: bool,
}

impl DeferredSends {
    pub(super) fn new() -> Self {
        DeferredSends {
            list: Ordered::new(),
            indices: Indices::default(),
            fresh: None,
            batch: None,
            query: None,
            is_fenced: false,
            to_show: 0,
            needs: None,
            has_waited: false,
        }
    }

    pub(super) fn push(&mut self, send: Key, queue: Queue, tag: u64) -> Position {
        let at = self.list.push_back(Deferred { send, stage: Stage::Fresh, queue, tag, links: Default::default() });
        self.indices.add(&mut self.list, at);
        self.fresh.get_or_insert(at);
        at
    }

    pub(super) fn remove(&mut self, at: Position) -> Option<Deferred> {
        if self.fresh == Some(at) {
            self.fresh = self.list.after(at);
        }
        let gone = self.list.remove(at)?;
        self.indices.remove(&mut self.list, &gone);
        Some(gone)
    }

    /// The first dropped one of a matching space that `pattern` accepts, from anybody. Fresh ones, which come after all
    /// others, end the search.
    pub(super) fn find_dropped(&mut self, queue: Queue, pattern: &Pattern) -> Option<Position> {
        let class = Class { ignore: pattern.ignore, names_source: true };
        let wanted = Wanted { class, source: source_of(queue), tag: pattern.tag };
        let ends = |deferred: &Deferred| {
            steps::count();
            let fits = deferred.queue == queue && (pattern.tag ^ deferred.tag) & !pattern.ignore == 0;
            deferred.stage == Stage::Fresh || fits && deferred.stage == Stage::Dropped
        };
        let at = self.indices.find(&mut self.list, &wanted, |list, most| list.walk(most, ends), ends)?;
        self.list.get(at).is_some_and(|deferred| deferred.stage == Stage::Dropped).then_some(at)
    }

    /// Whether the receiver decides about one.
    pub(super) fn has_offered(&self) -> bool {
        let mut all = std::iter::successors(self.list.first(), |at| self.list.after(*at));
        all.any(|at| self.list.get(at).is_some_and(|entry| entry.stage == Stage::Offered))
    }

    /// Nothing is deferred or in doubt, no query waits, and there is no fence: new sends go the usual way.
    pub(super) fn is_over(&self) -> bool {
        !self.is_fenced && self.list.is_empty() && self.batch.is_none() && self.query.is_none()
    }
}

/// The queue takes the part of the source in an index: all sends are from this endpoint.
fn source_of(queue: Queue) -> u64 {
    match queue {
        Queue::Tagged => 1,
        Queue::Untagged => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Source;

    /// Two communicators of an MPI, whose number is above the program's tag; no notice has shown one send in three yet.
    fn deferred(count: u64) -> DeferredSends {
        let mut list = DeferredSends::new();
        for n in 0..count {
            let at = list.push(Key(n as u32), Queue::Tagged, tag_of(n));
            if n < 2 * count / 3 {
                list.list.get_mut(at).expect("it was just added").stage = Stage::Dropped;
            }
        }
        list
    }

    fn tag_of(n: u64) -> u64 {
        (n % 2) << 31 | n
    }

    #[test]
    fn a_query_takes_no_more_steps_among_20_000_than_among_500() {
        const TAG_BITS: u64 = (1 << 31) - 1;
        let pattern = |tag, ignore| Pattern { from: Source::Any, tag, ignore };
        for ignore in [0, TAG_BITS, u64::MAX] {
            let [few, many] = [500, 20_000].map(|count| {
                let mut list = deferred(count);
                let dropped = 2 * count / 3;
                let all = steps::of(|| {
                    for n in (0..dropped).rev() {
                        let at = list.find_dropped(Queue::Tagged, &pattern(tag_of(n), ignore)).expect("it is dropped");
                        list.remove(at);
                        // Nobody knows of these yet, or they are of the other matching space.
                        assert_eq!(list.find_dropped(Queue::Tagged, &pattern(7 << 31, 0)), None);
                        assert_eq!(list.find_dropped(Queue::Untagged, &pattern(0, u64::MAX)), None);
                    }
                    assert_eq!(list.find_dropped(Queue::Tagged, &pattern(0, u64::MAX)), None, "all others are fresh");
                });
                all as f64 / dropped as f64
            });
            assert!(few <= 20.0 && many <= few + 1.0, "{ignore:#x}: {few} steps each of 500, {many} of 20,000");
        }
    }
}
