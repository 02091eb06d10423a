//! Peeks that wait for what peers answer.

use crate::envelope::{Number, Pattern};
use crate::operation::{Context, Queue, Target};

/// A peek that waits for answers.
#[derive(Clone, Debug)]
pub(crate) struct Inquiry {
    pub(crate) number: Number,
    pub(crate) pattern: Pattern,
    pub(crate) queue: Queue,
    pub(crate) context: Context,
    pub(crate) claim: bool,
    pub(crate) discard: bool,
}

/// The peeks that wait, in order.
#[derive(Debug, Default)]
pub(crate) struct Inquiries(Vec<Inquiry>);

impl Inquiries {
    /// Peeks that may wait for answers at a time: each call of `progress` looks at all of them.
    const MOST: usize = 64;

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= Self::MOST
    }

    pub(crate) fn push(&mut self, inquiry: Inquiry) {
        self.0.push(inquiry);
    }

    /// A copy of all.
    pub(crate) fn all(&self) -> Vec<Inquiry> {
        self.0.clone()
    }

    /// The number of the first that the application calls `name`.
    pub(crate) fn find_named(&self, name: usize, name_of: impl Fn(Context) -> usize) -> Option<Number> {
        self.0.iter().find(|inquiry| name_of(inquiry.context) == name).map(|inquiry| inquiry.number)
    }

    /// Takes the one of this number, if it still waits.
    pub(crate) fn take(&mut self, number: Number) -> Option<Inquiry> {
        let at = self.0.iter().position(|inquiry| inquiry.number == number)?;
        Some(self.0.remove(at))
    }

    /// Takes the one of this number and queue.
    pub(crate) fn take_of(&mut self, number: Number, queue: Queue) -> Option<Inquiry> {
        let at = self.0.iter().position(|inquiry| inquiry.number == number && inquiry.queue == queue)?;
        Some(self.0.remove(at))
    }

    /// The number of the oldest.
    pub(super) fn first_number(&self) -> Option<Number> {
        self.0.first().map(|inquiry| inquiry.number)
    }

    pub(crate) fn contains(&self, number: Number) -> bool {
        self.0.iter().any(|inquiry| inquiry.number == number)
    }

    /// The first of a queue beyond `after` that a message of `source` could satisfy.
    pub(super) fn first_from(&self, queue: Queue, source: Target, after: Number) -> Option<(Number, Pattern)> {
        let of_queue = self.0.iter().filter(|inquiry| inquiry.queue == queue && inquiry.number > after);
        let mut wanted = of_queue.filter(|inquiry| inquiry.pattern.may_come_from(source));
        wanted.next().map(|inquiry| (inquiry.number, inquiry.pattern))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Source;
    use tidegate_flow::PeerId;

    fn inquiry(number: u64, from: Source) -> Inquiry {
        let pattern = Pattern { from, tag: 0, ignore: 0 };
        let (queue, context) = (Queue::Tagged, Context(5));
        Inquiry { number: Number(number), pattern, queue, context, claim: false, discard: false }
    }

    #[test]
    fn peeks_are_found_by_name_and_number_and_by_who_could_meet_them() {
        let [a, b] = [0, 1].map(|peer| Target::Peer(PeerId(peer)));
        let mut inquiries = Inquiries::default();
        inquiries.push(inquiry(1, Source::From(b)));
        inquiries.push(inquiry(2, Source::Any));
        assert_eq!(inquiries.find_named(5, |context| context.0), Some(Number(1)), "the oldest");
        let first_of = |queue, source, after| inquiries.first_from(queue, source, Number(after));
        let first = |source, after| first_of(Queue::Tagged, source, after).map(|(number, _)| number.0);
        assert_eq!([first(a, 0), first(b, 0), first(b, 1), first(a, 2)], [Some(2), Some(1), Some(2), None]);
        assert!(first_of(Queue::Untagged, a, 0).is_none(), "none is in the other queue");
        assert!(inquiries.take_of(Number(1), Queue::Untagged).is_none(), "it is in the other queue");
        assert!(inquiries.take_of(Number(1), Queue::Tagged).is_some() && inquiries.take(Number(2)).is_some());
        assert!(inquiries.is_empty() && !inquiries.contains(Number(2)));
    }

    #[test]
    fn a_bounded_number_of_peeks_waits() {
        let mut inquiries = Inquiries::default();
        (0..64).for_each(|number| inquiries.push(inquiry(number, Source::Any)));
        assert!(inquiries.is_full());
    }
}
