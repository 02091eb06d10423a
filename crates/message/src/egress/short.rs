//! Messages of one packet, as most are: [`Short`], and [`CarriedShort`], whose payload the link carries; and those of
//! [`Two`]. They leave straight into the packets that are written, without a description that could wait; only if one
//! has to, an [`Outgoing`](super::Outgoing) is made of it.

use super::mailboxes::Mailboxes;
use super::outgoing::{Departing, head_of};
use super::{Egress, Step};
use crate::counter::Counter;
use crate::link::{Buffer, Fill, WriteError};
use crate::operation::Space;
use crate::wire::{Carried, Eager};
use tidegate_flow::{
    Answer, Credits, FlowControl, Header, Instant, PAYLOAD_BYTES, Packet, PacketKind, PeerId, Placement,
};

/// A message of the application that fits into one packet and can leave straight from the call that sends it. It
/// becomes an [`Outgoing`] only if it has to wait.
#[derive(Debug)]
pub(crate) struct Short<'a, B> {
    head: Eager,
    buffer: &'a B,
}

impl<'a, B: Buffer> Short<'a, B> {
    /// `None`: it takes several packets.
    #[inline(always)]
    pub(crate) fn of(space: Space, data: Option<u64>, buffer: &'a B) -> Option<Self> {
        let head = head_of(space, data);
        (head.head_bytes() + buffer.len() <= PAYLOAD_BYTES).then_some(Short { head, buffer })
    }
}

/// Fills the one packet of a message.
pub(crate) trait OnePacket {
    fn fill(&self, packet: &mut Packet, placement: Placement);
}

impl<B: Buffer> OnePacket for Short<'_, B> {
    #[inline(always)]
    fn fill(&self, packet: &mut Packet, placement: Placement) {
        let length = self.buffer.len();
        let filled = self.head.emit_payload(self.buffer.len() as u32, &mut packet.payload);
        let end = filled + length;
        self.buffer.read(0, &mut packet.payload[filled..end]);
        packet.header = Header::new(PacketKind::Data, end, self.head.number()).placed(placement);
    }
}

/// A message of the application that fits into two packets, and can leave at once.
#[derive(Debug)]
pub(crate) struct Two<'a, B> {
    head: Eager,
    buffer: &'a B,
    /// Bytes of the buffer that the first packet takes.
    in_first: usize,
    /// Packets that have left.
    gone: u32,
}

impl<'a, B: Buffer> Two<'a, B> {
    /// `None`: it takes one packet, or more than two.
    #[inline]
    pub(crate) fn of(space: Space, data: Option<u64>, buffer: &'a B) -> Option<Self> {
        let head = head_of(space, data);
        let in_first = PAYLOAD_BYTES - head.head_bytes();
        let is_two = (in_first + 1..=in_first + PAYLOAD_BYTES).contains(&buffer.len());
        is_two.then_some(Two { head, buffer, in_first, gone: 0 })
    }
}

impl<B: Buffer> Departing for Two<'_, B> {
    #[inline]
    fn packets_gone(&self) -> u32 {
        self.gone
    }

    #[inline]
    fn packets_left(&self) -> u32 {
        2 - self.gone
    }

    #[inline]
    fn has_waited(&self) -> bool {
        false
    }

    #[inline(always)]
    fn fill(&self, index: u32, packets: &mut [Packet], placement: Placement) {
        for (packet, index) in packets.iter_mut().zip(index..) {
            let (end, number) = match index {
                0 => {
                    let filled = self.head.emit_payload(self.buffer.len() as u32, &mut packet.payload);
                    self.buffer.read(0, &mut packet.payload[filled..]);
                    (PAYLOAD_BYTES, self.head.number())
                }
                _ => {
                    let rest = self.buffer.len() - self.in_first;
                    self.buffer.read(self.in_first, &mut packet.payload[..rest]);
                    (rest, 0)
                }
            };
            packet.header = Header::new(PacketKind::Data, end, number).placed(placement);
        }
    }

    #[inline]
    fn note_gone(&mut self, packets: u32) {
        self.gone += packets;
    }
}

/// A message of the application whose payload the link carries.
#[derive(Debug)]
pub(crate) struct CarriedShort(pub(crate) Carried);

impl OnePacket for CarriedShort {
    #[inline(always)]
    fn fill(&self, packet: &mut Packet, placement: Placement) {
        let (end, number) = self.0.emit_payload(&mut packet.payload);
        packet.header = Header::new(PacketKind::Data, end, number).placed(placement);
    }
}

/// Fills the packet of a short message, and lets credits ride on it.
pub(super) struct FillShort<'a, M> {
    pub(super) message: M,
    pub(super) flow: &'a mut FlowControl,
    pub(super) to: PeerId,
    /// Credits that ride.
    pub(super) riding: &'a mut u32,
}

impl<M: OnePacket> Fill for FillShort<'_, M> {
    #[inline(always)]
    fn fill(&mut self, packets: &mut [Packet], placement: Placement) {
        let [packet] = packets else { return };
        self.message.fill(packet, placement);
        *self.riding += self.flow.before_send(self.to, packet, 0);
    }
}

impl<B: Buffer> Egress<B> {
    /// Sends a message of one packet, if nothing waits in front of it.
    #[inline(always)]
    pub(crate) fn send_short(
        &mut self,
        mailboxes: &mut impl Mailboxes,
        now: Instant,
        to: PeerId,
        message: impl OnePacket,
    ) -> Step {
        // Something may wait in front of it: only then are the queues asked. Every branch that queues anything begins.
        if self.attention.has_begun()
            && let Some(step) = self.step_behind(to)
        {
            return step;
        }
        let mut credits = match self.flow.request(to, 1, now) {
            Answer::Packets(credits) => credits,
            Answer::Wait => return Step::NoCredits,
            Answer::Announce => return Step::Announce,
        };
        let mut riding = 0;
        let filling = FillShort { message, flow: &mut self.flow, to, riding: &mut riding };
        if let Err(error) = mailboxes.write(to, 1, filling) {
            return self.end_unwritten(mailboxes, now, to, credits, error);
        }
        credits.spend();
        credits.end();
        mailboxes.counters().add(Counter::PacketsSent, 1);
        if riding > 0 {
            mailboxes.counters().add(Counter::CreditsPiggybacked, riding.into());
        }
        self.flush_control(mailboxes, now);
        Step::Sent
    }

    /// Whether nothing waits for a peer, and flow control has credits for a packet to it.
    #[inline]
    pub(crate) fn may_leave(&self, peer: PeerId) -> bool {
        self.is_idle(peer) && self.flow.credits(peer) > 0
    }

    /// Sends a message of two packets, if nothing waits in front of it and both have credits. `None`: it has to go the
    /// way of longer ones.
    #[inline]
    pub(crate) fn send_two<S: Buffer>(
        &mut self,
        mailboxes: &mut impl Mailboxes,
        now: Instant,
        to: PeerId,
        mut message: Two<'_, S>,
    ) -> Option<Step> {
        let is_behind = self.attention.has_begun() && self.step_behind(to).is_some();
        if is_behind || self.flow.credits(to) < message.packets_left() {
            return None;
        }
        let Answer::Packets(credits) = self.flow.request(to, message.packets_left(), now) else { return None };
        let step = self.write_packets(mailboxes, now, to, &mut message, credits);
        if message.packets_gone() == 1 { Some(Step::Begun) } else { step }
    }

    /// How far a message gets that something waits in front of; `None` if nothing does.
    #[inline(never)]
    fn step_behind(&self, to: PeerId) -> Option<Step> {
        match self.is_idle(to) {
            false => Some(self.step_behind_others()),
            true => self.controls.has_any_of(&self.lanes, to).then_some(Step::Full),
        }
    }

    /// No packet could be written with these credits.
    #[cold]
    #[inline(never)]
    fn end_unwritten(
        &mut self,
        mailboxes: &mut impl Mailboxes,
        now: Instant,
        to: PeerId,
        credits: Credits,
        error: WriteError,
    ) -> Step {
        match error {
            WriteError::Refused => {
                self.flow.handle_refused(to, credits, now);
                self.attention.begin();
            }
            WriteError::Full | WriteError::Unreachable(_) => self.flow.give_back(to, credits),
        }
        self.flush_control(mailboxes, now);
        self.step_after(error)
    }
}
