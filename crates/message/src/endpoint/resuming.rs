//! What waited and may go on.

use super::Endpoint;
use crate::collections::slab::Key;
use crate::egress::Resumed;
use crate::link::Link;
use crate::operation::Target;
use crate::wire::{Message, Note};
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// Sends what waits for `to`, as far as it goes.
    pub(super) fn resume(&mut self, to: PeerId) {
        let mut has_left = false;
        loop {
            match self.port.egress.send_waiting(&mut self.port.link, self.port.now, to) {
                Resumed::Left(message) => {
                    has_left = true;
                    self.note_left(to, &message.head);
                    self.port.report_sent(message.into_notice());
                }
                Resumed::Lost(message, name) => {
                    self.port.fail_notice(message.into_notice(), &name);
                    self.port.note_unreachable(to, name);
                    break;
                }
                Resumed::Stuck => break,
            }
        }
        if has_left {
            self.port.note_progress_to(to);
        }
        self.end_losses();
    }

    /// Something that waited has left.
    fn note_left(&mut self, to: PeerId, head: &Message) {
        match head {
            Message::Note(Note::ClearToSend(clear)) => self.pulls.note_asked(Key(clear.pull)),
            // More may have become free meanwhile.
            Message::Note(Note::Room(_)) => self.inbound.update_window(&mut self.port, to),
            _ => {}
        }
    }

    /// Tries the peers again that are noted for that: their mailbox was full, their window was not known, or operations
    /// wait for them behind a fence and an earlier one has ended (`Port::note_progress_to`).
    pub(super) fn retry_full(&mut self) {
        self.port.egress.retry_control(&mut self.port.link);
        for to in self.port.egress.take_full() {
            self.port.egress.retry(to);
            self.sends.relearn_window(&mut self.port, to);
            self.resume(to);
            if self.fences.are_raised() {
                self.release_fenced(Target::Peer(to));
            }
        }
    }
}
