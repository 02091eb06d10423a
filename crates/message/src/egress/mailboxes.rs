//! [`Mailboxes`]: what egress needs of a link.

use crate::counter::Counters;
use crate::link::{Fill, Link, WriteError};
use tidegate_flow::{PeerId, Posting};

/// See [`Link`], whose methods these are.
pub(crate) trait Mailboxes {
    fn write(&mut self, to: PeerId, count: u32, fill: impl Fill) -> Result<u32, WriteError>;

    fn post(&mut self, posting: Posting);

    fn counters(&self) -> &Counters;
}

impl<L: Link> Mailboxes for L {
    #[inline(always)]
    fn write(&mut self, to: PeerId, count: u32, fill: impl Fill) -> Result<u32, WriteError> {
        Link::write(self, to, count, fill)
    }

    #[inline]
    fn post(&mut self, posting: Posting) {
        Link::post(self, posting);
    }

    #[inline]
    fn counters(&self) -> &Counters {
        Link::counters(self)
    }
}
