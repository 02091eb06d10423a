//! Eager messages (P §3): sent at once through the mailbox, matched when their first packet arrives, stored at exactly
//! their size when no receive waits for them.

use super::Endpoint;
use crate::assembly::{Sink, write_clipped};
use crate::counter::Counter;
use crate::envelope::Envelope;
use crate::link::Link;
use crate::malformed::Malformed;
use crate::matching::Stored;
use crate::memory::Memory;
use crate::operation::{Send, Target};
use crate::payload::Payload;
use crate::wire::{Eager, LARGEST_EAGER_BYTES};
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// Sends a message through the mailbox.
    #[inline]
    pub(super) fn send_eagerly(&mut self, to: PeerId, send: Send<L::Buffer>) {
        self.count(Counter::MessagesEager, 1);
        let inject = send.inject;
        if let Some(message) = self.send_short(to, send) {
            self.announce_instead(to, message, inject);
        }
    }

    /// The first packet of an eager message.
    #[inline]
    pub(super) fn begin_eager(
        &mut self,
        from: PeerId,
        head: Eager,
        length: usize,
        rest: &[u8],
    ) -> Result<(), Malformed> {
        let queue = head.queue;
        if length > LARGEST_EAGER_BYTES {
            return Err(Malformed);
        }
        let cost = Memory::<L::Buffer>::eager_cost(length);
        self.check_window(from, cost)?;
        if head.was_dropped {
            self.deferral.windows.remember(from)?;
        }
        let envelope = Envelope { source: Target::Peer(from), tag: head.tag, data: head.data, length };
        let whole = rest.len() == length;
        match self.matching.of(queue).accept(&envelope) {
            Some(mut active) => {
                write_clipped(&mut active.buffer, 0, rest);
                if whole {
                    self.complete_receive(active, &envelope, queue);
                } else {
                    let sink = Sink::Receive(active, envelope, queue);
                    self.assembly.begin(from, sink, length, rest.len());
                }
                self.pass_window(from, cost);
            }
            None => {
                let mut payload = Payload::Zeros(0);
                payload.append(rest, length);
                let at = self.store_unexpected(envelope, Stored::Here(payload), queue, cost);
                if !whole {
                    let sink = Sink::Store(at, queue);
                    self.assembly.begin(from, sink, length, rest.len());
                }
                self.enter_window(from, cost);
            }
        }
        Ok(())
    }
}
