//! [`Sends`]: messages on their way out.
//!
//! A short one leaves at once, if its receiver has room for it; one that finds no room is deferred (see `deferral`).
//! The others the link carries, where it can (`carrying`), or they go by rendezvous (P §3): for a long message a small
//! one leaves first, the request to send (RTS); the receiver, once it has matched it, gets the payload and says so.
//!
//! There are three ways to get it, of which the receiver chooses (`pulls`); in simulations the sender may write it
//! (`writing`). Where the link reaches the sender's memory the receiver reads it, a bounded number of bytes
//! per progress call, and no slot is used. Where the link has *bounce buffers*, the sender copies a piece into one, the
//! receiver copies it out, and a packet each way says so; the first piece travels with the request to send, so a
//! message that fits one buffer takes one hop. Elsewhere, or when no buffer is free, pieces go through the mailbox
//! packet by packet. For the latter two the receiver has to send a clear to send (CTS), and both are under flow
//! control; pieces for a peer wait until nothing else does, so they delay other messages to it by one piece at most. In
//! the end `Finished` (FIN) tells the sender that its buffer is free, which is also the receipt that
//! `FI_DELIVERY_COMPLETE` wants.
//!
//! `send`, `bounce`, `streams` and `kept` are the parts of it; each other file says what follows from what happens:
//! `choosing` which way a message goes, `deferring` when there is no room for it, `ending` when its peer is lost.

mod announcing;
mod asking;
mod bounce;
mod carrying;
mod choosing;
mod deferring;
mod ending;
mod kept;
mod send;
mod streaming;
mod streams;
mod writing;

use crate::deferral::Rooms;
use crate::link::{BounceBuffers, Link};
use kept::Kept;
use streams::Streams;
use tidegate_flow::PeerId;

/// See the module.
#[derive(Debug)]
pub(crate) struct Sends<L: Link> {
    rooms: Rooms,
    kept: Kept<L::Buffer>,
}

impl<L: Link> Sends<L> {
    /// Most heap bytes of the tables of peers: when messages have gone to all `peers`.
    pub(crate) const fn bytes_most(peers: u32) -> usize {
        Rooms::bytes_most(peers) + Kept::<L::Buffer>::bytes_most(peers)
    }

    pub(crate) fn new(peers: u32, bounce_buffers: BounceBuffers) -> Self {
        Sends { rooms: Rooms::new(peers), kept: Kept::new(peers, bounce_buffers) }
    }

    /// The rooms for messages and answers in the windows of the peers, for other parts that send.
    #[inline]
    pub(crate) fn rooms(&mut self) -> &mut Rooms {
        &mut self.rooms
    }

    /// The same, for looks.
    pub(crate) fn show_rooms(&self) -> &Rooms {
        &self.rooms
    }

    /// The sends that receivers have not got, for looks.
    pub(crate) fn kept(&self) -> &Kept<L::Buffer> {
        &self.kept
    }

    /// How many those are.
    #[inline]
    pub(crate) fn outstanding(&self) -> usize {
        self.kept.sends()
    }

    /// Streams that may have pieces to send.
    #[inline]
    pub(crate) fn streaming(&self) -> &Streams<L::Buffer> {
        &self.kept.streams
    }

    /// The peers of the sends in the application's memory, once for each.
    pub(crate) fn uncopied(&self) -> impl Iterator<Item = PeerId> {
        let sends = self.kept.some_sends(0, self.kept.send_places());
        sends.filter(|(_, send)| !send.is_copied()).map(|(_, send)| send.peer)
    }

    /// Lets no message to a peer find room as long as operations to it wait behind a fence, or does again.
    pub(crate) fn set_fenced(&mut self, peer: PeerId, is_fenced: bool) {
        match is_fenced {
            true => self.rooms.raise_fence(peer),
            false => self.rooms.lower_fence(peer),
        }
    }
}
