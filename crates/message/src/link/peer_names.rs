//! [`PeerNames`]: the names of peers, also of those that have left.

use tidegate_flow::PeerId;

/// A part of a link: its peers have numbers that last, and its table of peers may be full. A link that has not got it
/// has a place for every peer that there will ever be.
pub trait PeerNames {
    /// Whether newcomers may find no place in a table of peers: then departed peers are
    /// [released](crate::Link::release) though the endpoint has messages of them.
    fn lacks_places(&self) -> bool {
        false
    }

    /// The address of a departed peer, which is released next, is to be found under this number as well, which is not
    /// that of a place, until the record ends.
    fn begin_record(&mut self, _peer: PeerId, _record: PeerId) {}

    /// Nothing is asked of this record any more.
    fn end_record(&mut self, _record: PeerId) {}

    /// A number that no endpoint but this peer's ever has. `None`: there is no such peer, or it has none.
    fn identity(&self, _peer: PeerId) -> Option<u64> {
        None
    }

    /// The endpoint of this [identity](Self::identity) has died, for whoever asks later which was the first.
    fn note_death(&mut self, _identity: u64) {}
}
