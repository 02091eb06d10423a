//! [`Closing`]: leaving in order, where a link keeps what it has not delivered.

use tidegate_flow::{Header, PeerId};

/// A part of a link. A link that has not got it delivers what is written to it although its endpoint closes, and its
/// peers learn of the closing in another way.
pub trait Closing {
    /// We match nothing more, and will close: lets all peers know that are connected to us.
    fn tell_closing(&mut self) {}

    /// Whether packets that were [written](crate::Link::write) have not reached a peer yet that may still take them: an
    /// endpoint that closes waits for them.
    fn has_unsent(&self) -> bool {
        false
    }

    /// The same of one peer.
    fn has_unsent_to(&self, _peer: PeerId) -> bool {
        false
    }

    /// Shows the headers of the packets that have not reached their peers.
    fn for_each_unsent(&self, _look: &mut dyn FnMut(Header)) {}

    /// Nothing more will be written: says goodbye to all peers.
    fn say_goodbye(&mut self) {}

    /// Goes on with what [`say_goodbye`](Self::say_goodbye) began, and drops what comes. Returns whether nothing is
    /// left of it.
    fn flush(&mut self) -> bool {
        true
    }
}
