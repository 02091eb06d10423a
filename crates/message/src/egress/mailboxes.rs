//! [`Mailboxes`]: what egress needs of a link.

use crate::counter::Counters;
use crate::link::{Link, WriteError};
use tidegate_flow::{Packet, PeerId, Placement, Posting};

/// See [`Link`], whose methods these are.
pub(crate) trait Mailboxes {
    fn write(&mut self, to: PeerId, count: u32, fill: impl FnMut(&mut [Packet], Placement)) -> Result<u32, WriteError>;

    fn post(&mut self, posting: Posting);

    fn counters(&self) -> &Counters;
}

impl<L: Link> Mailboxes for L {
    #[inline]
    fn write(&mut self, to: PeerId, count: u32, fill: impl FnMut(&mut [Packet], Placement)) -> Result<u32, WriteError> {
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
