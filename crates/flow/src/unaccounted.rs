//! [`Unaccounted`]: the sender's half of the schemes without credits for buffers, `rnr` and `shared_window`. Everything
//! is sent at once, and what a link refuses as it writes waits for the retry timer.

use crate::filling::Filling;
use crate::retries::Retries;
use crate::{Answer, Config, Credits, Instant, Packet, PacketKind, PeerId, Peers, SchemeStats, Violation};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Unaccounted {
    /// The buffer under way to each peer.
    fillings: Peers<Filling>,
    /// Packets that a buffer holds.
    packets: u32,
    retries: Retries,
}

impl Unaccounted {
    pub(crate) fn new(config: &Config) -> Self {
        let (fillings, packets) = (Peers::new(config.peers, ()), config.buffers.packets);
        Unaccounted { fillings, packets, retries: Retries::new(config.peers, config.buffers.retry_timer) }
    }

    pub(crate) fn request(&mut self, to: PeerId, wanted: u32) -> Answer {
        if self.retries.waits(to) {
            return Answer::Wait;
        }
        let filling = self.fillings.of(to);
        let packets = match filling.left() {
            0 => filling.begin(wanted, self.packets),
            left => left.min(wanted),
        };
        Credits::new(packets).into()
    }

    pub(crate) fn give_back(&mut self, to: PeerId, credits: Credits) {
        self.fillings.of(to).give_back(credits.into_count());
    }

    pub(crate) fn before_send(&mut self, to: PeerId, packet: &mut Packet, left: u32) {
        self.fillings.of(to).fill(packet, left);
        self.retries.note_departure(to);
    }

    /// Whether a packet that has come ends a buffer. Nobody returns credits.
    pub(crate) fn ends_buffer(&self, from: PeerId, packet: &Packet) -> Result<bool, Violation> {
        if from.0 >= self.fillings.count() {
            return Err(Violation::UnknownPeer);
        }
        let is_sound = packet.header.kind() == PacketKind::Data && !packet.header.has_piggyback();
        if is_sound { Ok(packet.header.ends_buffer()) } else { Err(Violation::Unexpected) }
    }

    pub(crate) fn retries(&mut self) -> &mut Retries {
        &mut self.retries
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while self.retries.take_due(now).is_some() {}
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.retries.next_timeout()
    }

    pub(crate) fn reset(&mut self, peer: PeerId) {
        self.fillings.forget(peer);
        self.retries.forget(peer);
    }

    pub(crate) fn credits(&self, to: PeerId) -> u32 {
        if self.retries.waits(to) { 0 } else { u32::MAX }
    }

    pub(crate) fn refusals(&self, to: PeerId) -> u8 {
        self.retries.refusals(to)
    }

    pub(crate) fn tally(&self) -> SchemeStats {
        self.retries.tally()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        Peers::<Filling>::bytes_most(self.fillings.count()) + self.retries.heap_bytes()
    }
}
