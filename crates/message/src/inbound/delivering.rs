//! Stored messages that have their receives, or are dropped.

use super::Inbound;
use crate::assembly::Sink;
use crate::collections::list::Position;
use crate::completion::Failure;
use crate::deferral::Inquiry;
use crate::link::Link;
use crate::matching::{Active, Matched, Stored, Unexpected};
use crate::operation::{Queue, Target};
use crate::port::Port;
use crate::pulls::Pulling;
use crate::pulls::Waited;
use crate::wire::Status;

impl<L: Link> Inbound<L> {
    /// A stored message has its receive.
    pub(super) fn deliver_stored(
        &mut self,
        port: &mut Port<L>,
        pulls: &mut Pulling<L>,
        mut active: Active<L::Buffer>,
        unexpected: Unexpected<L::Buffer>,
        queue: Queue,
    ) {
        let (envelope, mut cost) = (unexpected.envelope, unexpected.cost);
        match unexpected.stored {
            Stored::Here(payload) => {
                self.count_unstored(port, envelope.length);
                payload.write_to(&mut active.buffer);
                match (payload.len() < envelope.length, envelope.source) {
                    (true, Target::Peer(from)) => {
                        self.assembly.redirect(from, Sink::Receive(Matched { active, envelope, queue }));
                    }
                    _ => self.complete_receive(port, Matched { active, envelope, queue }),
                }
            }
            Stored::Remote(announcement) => {
                cost -= announcement.kept();
                pulls.start(port, self, Matched { active, envelope, queue }, announcement, Waited::Message);
            }
            Stored::Own { buffer, context, report } => {
                self.matching.own_kept -= 1;
                self.deliver_own(port, active, &envelope, queue, &buffer);
                port.complete_own(context, report, &envelope, queue);
            }
            Stored::Lost(peer) => {
                self.fail_receive(port, Matched { active, envelope, queue }, Failure::PeerLost { peer })
            }
        }
        self.leave_window(port, envelope.source, cost);
    }

    /// Drops a stored message (`FI_DISCARD`).
    pub(super) fn discard_stored(&mut self, port: &mut Port<L>, unexpected: Unexpected<L::Buffer>, queue: Queue) {
        let (envelope, cost) = (unexpected.envelope, unexpected.cost);
        match (unexpected.stored, envelope.source) {
            (Stored::Here(payload), source) => {
                self.count_unstored(port, envelope.length);
                if let (true, Target::Peer(from)) = (payload.len() < envelope.length, source) {
                    self.assembly.redirect(from, Sink::Discard);
                }
            }
            (Stored::Remote(announcement), _) => port.tell(announcement.peer, announcement.finished(Status::Success)),
            (Stored::Own { context, report, .. }, _) => {
                self.matching.own_kept -= 1;
                port.complete_own(context, report, &envelope, queue);
            }
            (Stored::Lost(_), _) => {}
        }
        self.leave_window(port, envelope.source, cost);
    }

    /// Ends a peek with the stored message at `at`, the first that it accepts.
    pub(crate) fn find_stored(&mut self, port: &mut Port<L>, inquiry: &Inquiry, at: Position) {
        let queue = inquiry.queue;
        let Some(found) = self.matching.of(queue).stored_mut(at) else { return };
        let envelope = found.envelope;
        if inquiry.claim && !inquiry.discard {
            self.matching.of(queue).claim(at, inquiry.context);
        }
        port.complete_peek(inquiry.context, &envelope, queue);
        if inquiry.discard
            && let Some(unexpected) = self.matching.of(queue).take_at(at)
        {
            self.discard_stored(port, unexpected, queue);
        }
    }
}
