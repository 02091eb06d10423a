//! What waits to leave, for whoever looks at what is open: a bounded part at a time, however much waits for how many
//! peers.

use super::{Egress, Outgoing};
use crate::collections::slab::Key;
use crate::link::Buffer;
use crate::open::PeerWait;
use crate::operation::Space;
use crate::wait_cause::WaitCause;
use crate::wire::Message;
use tidegate_flow::{Instant, Packet, PacketKind, PeerId};

/// Peers that one look goes through.
const PEERS_PER_LOOK: u32 = 64;
/// Messages of one peer, and of all together, that one look goes through.
const MESSAGES_PER_PEER: usize = 16;
const MESSAGES_PER_LOOK: usize = 128;

/// A message that waits to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitingSend {
    /// A send, where it matches, and how long it is.
    Send(Space, usize),
    /// What announces a send that is kept.
    Announcement(Key),
}

impl<B: Buffer> Egress<B> {
    /// Shows messages of the program that wait: of some peers from `cursor` on, which then stands behind them, the
    /// first few of each, with a number that no other message for that peer has.
    pub(crate) fn show_held(&self, cursor: &mut u32, mut show: impl FnMut(PeerId, u32, WaitCause, WaitingSend)) {
        if self.waiting_messages() == 0 {
            return;
        }
        let (count, mut left) = (self.lanes.peers(), MESSAGES_PER_LOOK);
        for _ in 0..PEERS_PER_LOOK.min(count) {
            let peer = PeerId(if *cursor < count { *cursor } else { 0 });
            *cursor = peer.0 + 1;
            let Some(lane) = self.lanes.get(peer) else { continue };
            let cause = lane.waits_for.unwrap_or(WaitCause::Credits);
            for (number, message) in lane.backlog.numbered().take(MESSAGES_PER_PEER.min(left)) {
                left -= 1;
                let send = message.sent().map(|(space, bytes)| WaitingSend::Send(space, bytes));
                if let Some(held) = send.or_else(|| message.announces().map(WaitingSend::Announcement)) {
                    show(peer, number, cause, held);
                }
            }
        }
    }

    /// Whether the send of this number waits for a peer.
    pub(crate) fn holds(&self, peer: PeerId, number: u32) -> bool {
        let message = self.inspect_backlog(peer).and_then(|backlog| backlog.of_number(number));
        message.is_some_and(|message| message.is_send())
    }

    /// Whether a send of the program waits for a peer, or a notice that ends a remote operation.
    pub(crate) fn holds_operation(&self, peer: PeerId) -> bool {
        let is_of_program =
            |message: &Outgoing<B>| message.is_send() || matches!(message.head, Message::WriteNotice(_));
        self.backlog(peer).is_some_and(|backlog| backlog.numbered().any(|(_, message)| is_of_program(message)))
    }

    /// Sends of the program that wait, without those that are only announced here.
    pub(crate) fn held_sends(&self) -> usize {
        self.waiting.sends
    }

    /// How many peers have something waiting for them.
    pub(crate) fn peers_delayed(&self) -> u32 {
        self.delayed.peers
    }

    /// For whom something waits or has waited.
    pub(crate) fn tell_waits(&self, list: &mut Vec<PeerWait>) {
        self.waits.tell(list);
    }

    /// Begins in the middle of a program: see [`Endpoint::begin_mid_stream`](crate::Endpoint::begin_mid_stream).
    pub(crate) fn begin_mid_stream(&mut self, peer: PeerId, sent: u32, received: u32, now: Instant) -> bool {
        let mut credits = self.flow.request(peer, sent, now).into_credits();
        let granted = credits.count();
        credits.spend_many(granted);
        credits.end();
        let packet = Packet::new(PacketKind::Data, 0, 0);
        let is_counted = (0..received).all(|_| self.flow.handle_retrieved(peer, &packet).is_ok());
        granted == sent && is_counted && !self.flow.has_control()
    }
}
