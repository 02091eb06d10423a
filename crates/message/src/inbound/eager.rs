//! Eager messages (P §3) on their way in: matched when their first packet arrives, stored at exactly their size when no
//! receive waits for them.

use super::Inbound;
use crate::assembly::{Sink, write_clipped};
use crate::envelope::Envelope;
use crate::link::Link;
use crate::malformed::{Handled, Malformed};
use crate::matching::{Filled, Matched, Stored, Whole};
use crate::memory::Memory;
use crate::operation::{Queue, Target};
use crate::payload::Payload;
use crate::port::Port;
use crate::wire::{Carried, Eager, LARGEST_EAGER_BYTES};
use tidegate_flow::PeerId;

/// A message that the link has carried.
struct CarriedBy<'a, L> {
    link: &'a mut L,
    from: PeerId,
    number: u32,
    length: usize,
}

impl<L: Link> Whole<L::Buffer> for CarriedBy<'_, L> {
    #[inline(always)]
    fn copy_to(self, into: &mut L::Buffer) {
        self.link.copy_carried(self.from, self.number, self.length, into);
    }
}

impl<L: Link> Inbound<L> {
    /// The first packet of an eager message, or all of it.
    #[inline(always)]
    pub(crate) fn begin_eager(
        &mut self,
        port: &mut Port<L>,
        from: PeerId,
        head: Eager,
        length: usize,
        rest: &[u8],
    ) -> Handled {
        let queue = head.queue;
        if length > LARGEST_EAGER_BYTES {
            return Err(Malformed);
        }
        let cost = Memory::<L::Buffer>::eager_cost(length);
        let admitted = self.windows.admit(from, cost, port.egress.returning(from))?;
        let envelope = Envelope { source: Target::Peer(from), tag: head.tag, data: head.data, length };
        // Mostly it is whole, and the first receive accepts it.
        if rest.len() == length
            && !head.was_dropped
            && let Some(filled) = self.matching.of(queue).fill_first(&envelope, rest)
        {
            let is_to_update = admitted.pass();
            self.end_filled(port, from, filled, &envelope, queue, is_to_update);
            return Ok(());
        }
        // It was deferred, and its envelope has been dropped here.
        if head.was_dropped {
            port.egress.attention.raise();
            self.windows.remember(from)?;
        }
        self.begin_eager_otherwise(port, from, envelope, queue, rest);
        Ok(())
    }

    /// A message that has come whole has filled the first receive. `is_to_update`: so much of the window may be free
    /// again that its sender is to be told.
    #[inline(always)]
    fn end_filled(
        &mut self,
        port: &mut Port<L>,
        from: PeerId,
        filled: Filled,
        envelope: &Envelope,
        queue: Queue,
        is_to_update: bool,
    ) {
        self.report_filled(port, filled, envelope, queue);
        if is_to_update {
            self.update_window(port, from);
        }
    }

    /// The first packet of an eager message of several, or one that the first receive does not accept.
    #[inline(never)]
    fn begin_eager_otherwise(
        &mut self,
        port: &mut Port<L>,
        from: PeerId,
        envelope: Envelope,
        queue: Queue,
        rest: &[u8],
    ) {
        let length = envelope.length;
        let (cost, whole) = (Memory::<L::Buffer>::eager_cost(length), rest.len() == length);
        match self.matching.of(queue).accept(&envelope) {
            Some(active) => {
                let mut matched = Matched { active, envelope, queue };
                write_clipped(&mut matched.active.buffer, 0, rest);
                if whole {
                    self.complete_receive(port, matched);
                } else {
                    let sink = Sink::Receive(matched);
                    self.assembly.begin(&mut port.egress.attention, from, sink, length, rest.len());
                }
                self.pass_window(port, from, cost);
            }
            None => {
                port.egress.attention.raise();
                let mut payload = Payload::Zeros(0);
                payload.append(rest, length);
                let at = self.store_unexpected(port, envelope, Stored::Here(payload), queue, cost);
                if !whole {
                    let sink = Sink::Store(at, queue);
                    self.assembly.begin(&mut port.egress.attention, from, sink, length, rest.len());
                }
                self.enter_window(port, from, cost);
            }
        }
    }

    /// The packet of a message whose payload the link has carried: an eager message that has come whole.
    pub(crate) fn handle_carried(&mut self, port: &mut Port<L>, from: PeerId, head: &Carried) -> Handled {
        let Carried { queue, tag, data, length, number } = *head;
        let length = length as usize;
        if length > LARGEST_EAGER_BYTES || !port.link.has_carried(from, number, length) {
            return Err(Malformed);
        }
        let cost = Memory::<L::Buffer>::eager_cost(length);
        let Ok(admitted) = self.windows.admit(from, cost, port.egress.returning(from)) else {
            // It is over, whatever becomes of its sender.
            drop(port.link.take_carried(from, number, length));
            return Err(Malformed);
        };
        let envelope = Envelope { source: Target::Peer(from), tag, data, length };
        let carried = CarriedBy { link: &mut port.link, from, number, length };
        if let Some(filled) = self.matching.of(queue).fill_first(&envelope, carried) {
            let is_to_update = admitted.pass();
            self.end_filled(port, from, filled, &envelope, queue, is_to_update);
            return Ok(());
        }
        port.egress.attention.raise();
        match self.matching.of(queue).accept(&envelope) {
            Some(active) => {
                let mut matched = Matched { active, envelope, queue };
                port.link.copy_carried(from, number, length, &mut matched.active.buffer);
                self.complete_receive(port, matched);
                self.pass_window(port, from, cost);
            }
            None => {
                let payload = Payload::Bytes(port.link.take_carried(from, number, length));
                self.store_unexpected(port, envelope, Stored::Here(payload), queue, cost);
                self.enter_window(port, from, cost);
            }
        }
        Ok(())
    }
}
