//! Matching: which receive gets which message, in both queues, and in which order receives were posted.

mod message;
mod posted;
mod queue;
mod unexpected;

use crate::envelope::{Envelope, Number, Pattern};
use crate::link::Buffer;
use crate::operation::{Context, Queue, Target};

pub(crate) use message::{Active, Matched, RemoteSend, Stored, TakenBack, Unexpected};
pub(crate) use queue::{Filled, MatchQueue, Whole};

/// The matching of an endpoint.
#[derive(Debug)]
pub(crate) struct Matching<B> {
    tagged: MatchQueue<B>,
    untagged: MatchQueue<B>,
    /// The last number given to a receive or peek.
    numbered: Number,
    /// Messages of this endpoint to itself that stay in the buffers of their sends until they are received.
    pub(crate) own_kept: usize,
}

impl<B: Buffer> Matching<B> {
    /// Memory that an unexpected message takes, payload apart.
    pub(crate) const ENVELOPE_BYTES: usize = MatchQueue::<B>::ENVELOPE_BYTES;

    /// Memory that the lists of unexpected messages may take beyond that, with so many peers.
    pub(crate) const fn bytes_begun(peers: u32) -> usize {
        2 * MatchQueue::<B>::bytes_begun(peers)
    }

    /// Matches the messages of so many peers, and of this endpoint itself.
    pub(crate) fn new(peers: u32) -> Self {
        let (tagged, untagged) = (MatchQueue::new(peers), MatchQueue::new(peers));
        Matching { tagged, untagged, numbered: Number::default(), own_kept: 0 }
    }

    /// One of the two queues.
    #[inline]
    pub(crate) fn of(&mut self, queue: Queue) -> &mut MatchQueue<B> {
        match queue {
            Queue::Tagged => &mut self.tagged,
            Queue::Untagged => &mut self.untagged,
        }
    }

    /// The number of the next receive or peek.
    #[inline]
    pub(crate) fn next_number(&mut self) -> Number {
        self.numbered.0 += 1;
        self.numbered
    }

    /// Whether a message of this endpoint to itself waits in the buffer of its send.
    pub(crate) fn keeps_own(&self) -> bool {
        self.own_kept > 0
    }

    /// The number of the last receive or peek.
    pub(crate) fn last_number(&self) -> Number {
        self.numbered
    }

    /// The first posted receive beyond `number` that accepts messages of `source`.
    pub(crate) fn first_from(&mut self, source: Target, number: Number) -> Option<(Number, Queue, Pattern)> {
        let firsts = [Queue::Tagged, Queue::Untagged].into_iter().filter_map(|queue| {
            let (number, pattern) = self.of(queue).first_from(source, number)?;
            Some((number, queue, pattern))
        });
        firsts.min_by_key(|(number, ..)| *number)
    }

    /// Takes back the oldest posted receive that the application calls `name`, if it was posted before `before`.
    pub(crate) fn take_back_named(
        &mut self,
        name: usize,
        before: Option<Number>,
        name_of: impl Fn(Context) -> usize,
    ) -> Option<(Queue, TakenBack)> {
        let named = [Queue::Tagged, Queue::Untagged].into_iter().filter_map(|queue| {
            let (number, at) = self.of(queue).find_named(name, &name_of)?;
            Some((number, queue, at))
        });
        let (number, queue, at) = named.min_by_key(|(number, ..)| *number)?;
        if before.is_some_and(|before| number >= before) {
            return None;
        }
        Some((queue, self.of(queue).take_back(at)?))
    }

    /// A peer is gone: takes back the receives that only it could have satisfied, if these are to fail, and turns its
    /// stored rendezvous messages into lost ones.
    pub(crate) fn lose_peer(&mut self, peer: Target, name: &str, fail_receives: bool) -> Vec<(Queue, TakenBack)> {
        let of = |queue| self.of(queue).lose_peer(peer, name, fail_receives).into_iter().map(move |back| (queue, back));
        [Queue::Tagged, Queue::Untagged].into_iter().flat_map(of).collect()
    }

    /// The place of a peer that left goes to another process: receives meant for the old one match nobody any more.
    /// They stay until the application cancels them.
    pub(crate) fn forget_peer(&mut self, peer: Target) {
        self.tagged.forget_peer(peer);
        self.untagged.forget_peer(peer);
    }

    /// The stored messages of one source are those of another from now on, of which there are none.
    pub(crate) fn move_source(&mut self, from: Target, to: Target) {
        self.tagged.move_source(from, to);
        self.untagged.move_source(from, to);
    }

    /// Shows the first posted receives of both queues that wait for one message each, in order.
    pub(crate) fn show_posted(&self, most: usize, mut show: impl FnMut(Number, Queue, &Pattern, usize)) {
        let mut first = Vec::with_capacity(2 * most);
        for (queue, of) in [(Queue::Tagged, &self.tagged), (Queue::Untagged, &self.untagged)] {
            of.show_posted(most, |number, pattern, bytes| first.push((number, queue, *pattern, bytes)));
        }
        first.sort_unstable_by_key(|(number, ..)| *number);
        first.iter().take(most).for_each(|(number, queue, pattern, bytes)| show(*number, *queue, pattern, *bytes));
    }

    /// Shows the last of those of each queue, as far back as this number.
    pub(crate) fn show_posted_since(&self, since: Number, most: usize, mut show: impl FnMut(&Pattern)) {
        self.tagged.show_posted_since(since, most, &mut show);
        self.untagged.show_posted_since(since, most, show);
    }

    /// How many of those there are.
    pub(crate) fn posted(&self) -> usize {
        self.tagged.posted() + self.untagged.posted()
    }

    /// The same, with those that may take several messages.
    pub(crate) fn posted_in_all(&self) -> usize {
        self.tagged.posted_in_all() + self.untagged.posted_in_all()
    }

    /// Shows the first stored messages of each queue, with a number that no other of the queue has.
    pub(crate) fn show_unexpected(&self, most: usize, mut show: impl FnMut(Queue, u32, &Envelope)) {
        for (queue, of) in [(Queue::Tagged, &self.tagged), (Queue::Untagged, &self.untagged)] {
            of.show_unexpected(most, |number, envelope| show(queue, number, envelope));
        }
    }

    /// How many messages are stored.
    pub(crate) fn unexpected(&self) -> usize {
        self.tagged.unexpected() + self.untagged.unexpected()
    }

    /// Whether a stored message is from `source`.
    pub(crate) fn has_stored_from(&self, source: Target) -> bool {
        self.tagged.has_stored_from(source) || self.untagged.has_stored_from(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Source;
    use crate::testing::Bytes;
    use tidegate_flow::PeerId;

    const A: Target = Target::Peer(PeerId(0));
    const B: Target = Target::Peer(PeerId(1));

    fn post(matching: &mut Matching<Bytes>, queue: Queue, from: Source, name: usize) -> Number {
        let number = matching.next_number();
        let ignore = if queue == Queue::Tagged { 0 } else { u64::MAX };
        let pattern = Pattern { from, tag: 7, ignore };
        matching.of(queue).post(number, pattern, Bytes::new(&[0; 4]), Context(name), true);
        number
    }

    fn envelope(source: Target) -> Envelope {
        Envelope { source, tag: 7, data: None, length: 4 }
    }

    #[test]
    fn the_oldest_receive_of_a_name_is_taken_back_whichever_queue_it_is_in() {
        let mut matching = Matching::new(2);
        let first = post(&mut matching, Queue::Untagged, Source::Any, 5);
        post(&mut matching, Queue::Tagged, Source::Any, 5);
        assert_eq!(matching.take_back_named(5, Some(first), |context| context.0), None, "a peek is older");
        let mut take = || matching.take_back_named(5, None, |context| context.0).map(|(queue, _)| queue);
        assert_eq!([take(), take(), take()], [Some(Queue::Untagged), Some(Queue::Tagged), None]);
    }

    #[test]
    fn queues_do_not_take_each_others_messages() {
        let mut matching = Matching::new(2);
        post(&mut matching, Queue::Tagged, Source::Any, 1);
        assert!(matching.of(Queue::Untagged).accept(&envelope(A)).is_none());
        assert!(matching.of(Queue::Tagged).accept(&envelope(A)).is_some());
    }

    #[test]
    fn the_first_receive_that_a_peer_could_satisfy_is_found_in_both_queues() {
        let mut matching = Matching::new(2);
        let of_b = post(&mut matching, Queue::Tagged, Source::From(B), 1);
        let of_a = post(&mut matching, Queue::Untagged, Source::From(A), 2);
        let of_any = post(&mut matching, Queue::Tagged, Source::Any, 3);
        let mut first = |source, after| matching.first_from(source, after).map(|(number, ..)| number);
        assert_eq!([first(A, Number(0)), first(A, of_a), first(A, of_any)], [Some(of_a), Some(of_any), None]);
        assert_eq!([first(B, Number(0)), first(B, of_b)], [Some(of_b), Some(of_any)]);
    }

    #[test]
    fn a_peer_that_is_gone_fails_receives_that_named_it_and_no_others() {
        let mut matching = Matching::new(2);
        for (name, queue) in [Queue::Tagged, Queue::Untagged].into_iter().enumerate() {
            post(&mut matching, queue, Source::From(A), name);
            post(&mut matching, queue, Source::Any, 10 + name);
            post(&mut matching, queue, Source::From(B), 20 + name);
            let remote = RemoteSend::of_deferred(PeerId(0), 1);
            let stored = Stored::Remote(remote);
            matching.of(queue).store(Unexpected { envelope: envelope(A), stored, claimed: None, cost: 0 });
        }
        let lost = matching.lose_peer(A, "node 1", true);
        let names: Vec<_> = lost.iter().map(|(_, back)| back.context.0).collect();
        assert_eq!(names, [0, 1]);
        assert!(matching.has_stored_from(A) && !matching.has_stored_from(B), "its messages may still be received");
        for queue in [Queue::Tagged, Queue::Untagged] {
            let pattern = Pattern { from: Source::Any, tag: 7, ignore: 0 };
            let stored = matching.of(queue).take_unexpected(&pattern).expect("it is there");
            assert!(matches!(stored.stored, Stored::Lost(name) if name == "node 1"));
        }
    }

    #[test]
    fn nobody_who_takes_the_place_of_a_peer_gets_its_receives() {
        let mut matching = Matching::new(2);
        post(&mut matching, Queue::Tagged, Source::From(A), 1);
        matching.forget_peer(A);
        assert!(matching.of(Queue::Tagged).accept(&envelope(A)).is_none());
        assert!(matching.take_back_named(1, None, |context| context.0).is_some(), "it can still be canceled");
    }
}
