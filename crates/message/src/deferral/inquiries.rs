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

    pub(crate) fn contains(&self, number: Number) -> bool {
        self.0.iter().any(|inquiry| inquiry.number == number)
    }

    /// The first beyond `after` that a message of `source` could satisfy.
    pub(super) fn first_from(&self, source: Target, after: Number) -> Option<(Number, Queue, Pattern)> {
        let wanted = |inquiry: &&Inquiry| inquiry.number > after && inquiry.pattern.may_come_from(source);
        self.0.iter().find(wanted).map(|inquiry| (inquiry.number, inquiry.queue, inquiry.pattern))
    }
}
