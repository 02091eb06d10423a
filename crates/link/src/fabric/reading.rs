//! Long messages: which peers' memory is read, and when the network is asked to.

use super::network::{Network, Sending, Token};
use super::peer::Phase;
use super::protocol::Protocol;
use super::reads::{Chunk, Chunking};
use crate::log::{self, Level};
use crate::memory::IoBuffer;
use tidegate_flow::{Instant, PeerId};
use tidegate_message::{RemoteMemory, TransferId, TransferStatus};

impl Protocol {
    /// Whether a peer may read memory of ours that the network exposes: its network can, as ours can.
    pub fn may_be_read_by(&mut self, place: PeerId) -> bool {
        let can_read = self.own.reads_memory;
        let peer = self.known(place).filter(|peer| peer.phase == Phase::Open);
        can_read && peer.and_then(|peer| peer.greeting.as_ref()).is_some_and(|greeting| greeting.reads_memory)
    }

    /// Whether memory of a peer can be read.
    pub fn reads_memory(&mut self, place: PeerId) -> bool {
        self.may_be_read_by(place) && !self.reads.is_broken(place)
    }

    /// Cuts transfers so from now on.
    pub fn set_chunking(&mut self, chunking: Chunking) {
        self.reads.set_chunking(chunking);
    }

    /// Whether a peer's memory is being read.
    #[inline]
    pub fn is_reading(&self) -> bool {
        self.reads.is_busy()
    }

    /// Begins to read memory of a peer, as [`PeerMemory::read_peer`](tidegate_message::PeerMemory::read_peer) wants it.
    pub fn begin_transfer(
        &mut self,
        id: TransferId,
        place: PeerId,
        from: &[RemoteMemory],
        into: IoBuffer,
    ) -> TransferStatus {
        // Without a key it has exposed nothing.
        let is_keyed = from.iter().all(|piece| piece.key != 0);
        match is_keyed && self.reads_memory(place) && self.reads.begin(id, place, from, into) {
            true => TransferStatus::Pending,
            false => TransferStatus::Unreachable,
        }
    }

    /// As [`PeerMemory::cancel_transfer`](tidegate_message::PeerMemory::cancel_transfer).
    pub fn cancel_transfer(&mut self, id: TransferId) -> bool {
        self.reads.cancel(id)
    }

    /// Begins what may begin, as far as the network takes it. Peers take turns.
    pub fn begin_reads(&mut self, network: &mut impl Network, now: Instant) {
        for _ in 0..self.reads.turns() {
            let Some(place) = self.reads.next_peer() else { break };
            let route = self.known(place).map(|peer| peer.route_by(network));
            let Some(Ok(route)) = route else { continue };
            while let Some(Chunk { token, from, into }) = self.reads.next_chunk(place, now) {
                match network.read(route, token, from, into) {
                    Sending::Taken => {}
                    Sending::Again | Sending::NoBuffer => {
                        self.reads.put_back(token, now);
                        break;
                    }
                    Sending::Failed(why) => self.handle_read(token, Some(why), now),
                }
            }
        }
    }

    /// A chunk has ended.
    pub(super) fn handle_read(&mut self, token: Token, failure: Option<String>, now: Instant) {
        let Some(place) = self.reads.handle_ended(token, failure.is_some(), now) else { return };
        let is_broken = self.reads.is_broken(place);
        let Some(peer) = self.known(place).filter(|peer| peer.phase != Phase::Ended) else { return };
        // What had been sent before may be lost as well: the answer to a ping shows what has come.
        peer.due.probe = true;
        let (name, why) = (peer.name(), failure.unwrap_or_default());
        if is_broken {
            log::line(Level::Warn, || {
                format!("memory of {name} cannot be read ({why}): its long messages go packet by packet from now on")
            });
        }
        self.queue(place);
    }
}
