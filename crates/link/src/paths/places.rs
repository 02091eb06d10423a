//! Places of the endpoint: one for each peer, whichever link it comes by.

use super::{Path, Paths};
use tidegate_flow::PeerId;
use tidegate_message::Link;

impl<A: Link, B: Link<Buffer = A::Buffer>> Paths<A, B> {
    /// The endpoint's place of the peer at the end of a path, a new one if it has none. `None`: the endpoint has as
    /// many peers as it was made for.
    pub fn place(&mut self, path: Path) -> Option<PeerId> {
        match path {
            Path::First(peer) if self.second.is_none() => Some(peer),
            _ => self.routes.admit(path),
        }
    }
}
