//! Decisions of flow control: who may send how many packets to whom.
//!
//! This crate does no I/O. Packets that arrived come in as arguments, control packets to send go out as return values.

pub mod packet;

mod config;
mod credit;
mod scheme;

pub use config::{Config, ConfigError, Regions, SchemeName};
pub use credit::Credits;
pub use packet::{Header, PACKET_BYTES, PAYLOAD_BYTES, Packet, PacketKind};

/// A peer, as an index into this endpoint's table of peers: `0..Config::peers`. A peer both receives from us and sends to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub u32);

/// A control packet that flow control wants sent now. What it costs has been paid; the caller only has to write it.
#[derive(Debug)]
#[must_use = "a control packet that is not sent loses credits"]
pub struct Control {
    /// Where it goes.
    pub to: PeerId,
    /// The packet: a credit packet, a return request or a return response.
    pub packet: Packet,
}

/// Flow control of one endpoint towards all its peers, in both roles: as a sender it holds credits at each peer, as a
/// receiver it lends the slots of its own mailbox.
///
/// Order of calls:
/// * to send data: [`take`](Self::take) credits, write that many packets, [`give_back`](Self::give_back) the rest; as each
///   data packet with room leaves, offer it to [`piggyback`](Self::piggyback);
/// * for every packet taken out of the mailbox, whatever its kind: [`handle_retrieved`](Self::handle_retrieved), once;
/// * after either, write what [`poll_control`](Self::poll_control) returns until it returns `None`. Control packets always
///   fit into the peer's mailbox.
#[derive(Debug, Clone)]
pub struct FlowControl {
    _private: (),
}

impl FlowControl {
    /// The initial state of an endpoint. Errors name the parameter to change (P eq. 2).
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let _ = config;
        todo!()
    }

    /// Takes up to `wanted` credits for data packets to `to`. Empty when the sender has to wait, also while a control
    /// packet to `to` waits for a credit (control goes before data).
    #[inline]
    pub fn take(&mut self, to: PeerId, wanted: u32) -> Credits {
        let _ = (to, wanted);
        todo!()
    }

    /// Returns credits that were taken and not used (the link could not take the packet).
    #[inline]
    pub fn give_back(&mut self, to: PeerId, credits: Credits) {
        let _ = (to, credits);
        todo!()
    }

    /// A data packet is about to leave for `to`: lets credits ride on it if the scheme piggybacks, there are any to return,
    /// and it has room.
    #[inline]
    pub fn piggyback(&mut self, to: PeerId, packet: &mut Packet) {
        let _ = (to, packet);
        todo!()
    }

    /// A packet from `from` was taken out of the mailbox. Reads header, credits and piggyback; the payload is the caller's.
    /// Returns the credits towards `from` gained, so the caller knows to resume sends that wait. A malformed or impossible
    /// packet (more credits than the data region has) is an error and changes nothing.
    #[inline]
    pub fn handle_retrieved(&mut self, from: PeerId, packet: &Packet) -> Result<u32, Violation> {
        let _ = (from, packet);
        todo!()
    }

    /// The next control packet to write, if any.
    #[inline]
    pub fn poll_control(&mut self) -> Option<Control> {
        todo!()
    }

    /// Forgets everything about a peer that died or left, after its last packet was retrieved: both roles return to
    /// the initial state, for another process to take the place.
    pub fn reset(&mut self, peer: PeerId) {
        let _ = peer;
        todo!()
    }

    /// Credits this endpoint holds towards `to`; `u32::MAX` under `none`.
    pub fn credits(&self, to: PeerId) -> u32 {
        let _ = to;
        todo!()
    }

    /// Bytes of book-keeping this value occupies, heap included.
    pub fn bookkeeping_bytes(&self) -> usize {
        todo!()
    }
}

/// A peer broke the protocol: its packet is impossible in any state. The endpoint treats such a peer as failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// More credits came back than the peer's data region has.
    TooManyCredits,
    /// A return response without a request, or a data packet that no credit covered.
    Unexpected,
}
