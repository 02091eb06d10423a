//! Messages to send, remote operations, and receives to post: where the application comes in.

use super::Endpoint;
use crate::counter::Counter;
use crate::egress::{Outgoing, Step};
use crate::envelope::Pattern;
use crate::fence::Places;
use crate::link::{Buffer, Link};
use crate::memory::Memory;
use crate::operation::{
    Access, AtomicRequest, Context, MatchFlags, ReadRequest, Receive, Send, Target, TryAgain, WriteRequest,
};
use crate::submission::Submission;
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// Sends a message: eagerly up to the eager size, else by rendezvous, or it waits for room. A short one nearly
    /// always leaves in this call. So `send` is taken apart, for its fields to stay in registers, and put together
    /// again only if it cannot leave.
    #[inline(always)]
    pub fn send(&mut self, send: Send<L::Buffer>) -> Result<(), TryAgain> {
        self.check_room()?;
        let Send { to, space, buffer, data, context, inject, delivery, report } = send;
        let length = buffer.len();
        let cost = Memory::<L::Buffer>::eager_cost(length);
        let Target::Peer(peer) = to else {
            return self.submit_to_myself(Send { to, space, buffer, data, context, inject, delivery, report });
        };
        if delivery || !self.sends.take_eagerly(peer, length, inject, cost) {
            let send = Send { to, space, buffer, data, context, inject, delivery, report };
            return self.send_without_taken_room(peer, send);
        }
        let mut step = self.port.send_short(peer, space, data, &buffer);
        if step != Some(Step::Sent) {
            step = step.or_else(|| self.port.send_at_once(peer, space, data, &buffer));
            if step != Some(Step::Sent) {
                let send = Send { to, space, buffer, data, context, inject, delivery, report };
                return self.send_not_short(peer, send, step);
            }
        }
        // `flush_control` can have found one loss: a peer that takes no control packets. Progress handles it.
        self.port.end_short(context, space, length, report);
        Ok(())
    }

    /// A message with room that is not short, or has not left because of this.
    #[inline(never)]
    fn send_not_short(&mut self, to: PeerId, send: Send<L::Buffer>, step: Option<Step>) -> Result<(), TryAgain> {
        if step == Some(Step::Begun) {
            return self.send_rest(to, send);
        }
        let submitted = self.sends.go_on_eagerly(&mut self.port, to, send, step, true);
        self.end_losses();
        submitted
    }

    /// The first packet of a message has left, and the other finds no place now.
    #[cold]
    fn send_rest(&mut self, to: PeerId, send: Send<L::Buffer>) -> Result<(), TryAgain> {
        self.port.egress.attention.raise();
        self.port.count(Counter::BytesSent, send.buffer.len() as u64);
        self.port.count(Counter::MessagesEager, 1);
        let inject = send.inject;
        self.port.wait_in_queue(to, Outgoing::begun(send, 1), inject, true);
        self.end_losses();
        Ok(())
    }

    /// No room was taken for this message: it wants a receipt, is too long to go eagerly, finds no room in the window,
    /// operations to its receiver wait behind a fence, or its receiver is not known yet.
    #[inline(never)]
    fn send_without_taken_room(&mut self, to: PeerId, send: Send<L::Buffer>) -> Result<(), TryAgain> {
        self.port.egress.attention.raise();
        let submitted = match self.sends.meet_with_room(&mut self.port, to, &send) {
            false => self.send_without_room(to, send),
            true => match self.port.send_short(to, send.space, send.data, &send.buffer) {
                Some(Step::Sent) => {
                    self.port.end_short(send.context, send.space, send.buffer.len(), send.report);
                    Ok(())
                }
                step => return self.send_not_short(to, send, step),
            },
        };
        self.end_losses();
        submitted
    }

    /// A message to this endpoint itself, unless it has to wait behind a fence.
    #[cold]
    fn submit_to_myself(&mut self, send: Send<L::Buffer>) -> Result<(), TryAgain> {
        self.port.egress.attention.raise();
        if self.fences.holds(Target::Myself) {
            return self.wait_behind_fence(Target::Myself, Submission::Send(send), false);
        }
        self.inbound.send_to_myself(&mut self.port, send);
        Ok(())
    }

    /// A message for which no room could be taken: it has to wait behind a fence, or goes another way.
    fn send_without_room(&mut self, to: PeerId, send: Send<L::Buffer>) -> Result<(), TryAgain> {
        if self.fences.holds(send.to) {
            return self.wait_behind_fence(send.to, Submission::Send(send), false);
        }
        if send.inject && self.sends.must_greet(&mut self.port, to) {
            return Err(TryAgain);
        }
        self.sends.send_rendezvous_or_defer(&mut self.port, to, send);
        Ok(())
    }

    /// RMA write. All places must be on the same target.
    pub fn write(&mut self, write: WriteRequest<L::Buffer>) -> Result<(), TryAgain> {
        self.port.egress.attention.raise();
        self.check_room()?;
        if self.sends.refuses_injected(&mut self.port, &write) {
            return Err(TryAgain);
        }
        if self.fences.are_raised() {
            return self.submit_in_turn(Submission::Write(write));
        }
        self.rma.start_write(&mut self.port, self.sends.rooms(), write, true);
        self.end_losses();
        Ok(())
    }

    /// RMA read. All places must be on the same target.
    pub fn read(&mut self, read: ReadRequest<L::Buffer>) -> Result<(), TryAgain> {
        self.port.egress.attention.raise();
        self.check_room()?;
        if self.fences.are_raised() {
            return self.submit_in_turn(Submission::Read(read));
        }
        self.rma.start_read(&mut self.port, self.sends.rooms(), read, true);
        self.end_losses();
        Ok(())
    }

    /// Remote atomic. All places must be on the same target.
    pub fn atomic(&mut self, atomic: AtomicRequest<L::Buffer>) -> Result<(), TryAgain> {
        self.port.egress.attention.raise();
        self.check_room()?;
        if self.fences.are_raised() {
            return self.submit_in_turn(Submission::Atomic(atomic));
        }
        self.rma.start_atomic(&mut self.port, self.sends.rooms(), atomic);
        self.end_losses();
        Ok(())
    }

    /// Lets peers address `buffer` by `key`, for what `access` lists. A second registration replaces the first. (A link
    /// that gives direct access publishes the region itself.)
    pub fn register(&mut self, key: u64, buffer: L::Buffer, access: &[Access]) {
        self.port.egress.attention.raise();
        self.rma.register(key, buffer, access);
    }

    /// Ends the registration of `key`. Reads of the region that are under way are answered with an error.
    pub fn deregister(&mut self, key: u64) {
        self.port.egress.attention.raise();
        self.rma.deregister(&mut self.port, key);
        self.end_losses();
    }

    /// Whether writes of peers that bring no completion data, and atomics without a result, are reported as well, as
    /// [`Operation::RemoteWrite`](crate::Operation::RemoteWrite) without data. A caller that wants this lets the link
    /// give no direct access but [`Access::ToldWrite`].
    pub fn count_writes(&mut self, count: bool) {
        self.port.egress.attention.raise();
        self.rma.count_writes(count);
    }

    /// Whether reads of peers, and atomics with a result, are reported: as
    /// [`Operation::RemoteRead`](crate::Operation::RemoteRead) and
    /// [`Operation::RemoteFetch`](crate::Operation::RemoteFetch). A caller that wants this keeps the link from giving
    /// direct access for reading.
    pub fn count_reads(&mut self, count: bool) {
        self.port.egress.attention.raise();
        self.rma.count_reads(count);
    }

    /// From now on it is reported what changes the region of this key, until it is deregistered: by any of the
    /// operations at a target but reads. Direct access is as for [`count_writes`](Self::count_writes).
    pub fn count_region(&mut self, key: u64) {
        self.port.egress.attention.raise();
        self.rma.count_region(key);
    }

    /// Submits an operation that starts when all earlier ones to its target have completed; later ones to this target
    /// stay behind it. Remote operations that are fenced go by message, so that they come behind earlier messages.
    pub fn submit_fenced(&mut self, operation: Submission<L::Buffer>) -> Result<(), TryAgain> {
        self.port.egress.attention.raise();
        self.check_room()?;
        let Some(target) = operation.target() else { return Ok(()) };
        if self.fences.holds(target) || self.is_under_way_to(target, &mut Places::default()) {
            return self.wait_behind_fence(target, operation, true);
        }
        match operation {
            Submission::Send(send) => self.send(send),
            Submission::Write(write) if self.sends.refuses_injected(&mut self.port, &write) => Err(TryAgain),
            other => {
                self.start(other, true);
                self.end_losses();
                Ok(())
            }
        }
    }

    /// Starts a remote operation, or lets it wait if its target is behind a fence.
    #[cold]
    pub(super) fn submit_in_turn(&mut self, operation: Submission<L::Buffer>) -> Result<(), TryAgain> {
        match operation.target().filter(|&target| self.fences.holds(target)) {
            Some(target) => self.wait_behind_fence(target, operation, false),
            None => {
                self.start(operation, false);
                self.end_losses();
                Ok(())
            }
        }
    }

    /// Posts a receive, or peeks, claims, discards. It is not refused because sends wait: they may wait for this very
    /// receive. A peek is refused while 64 of them (`Inquiries::MOST`) wait for answers.
    #[inline(always)]
    pub fn receive(&mut self, receive: Receive<L::Buffer>) -> Result<(), TryAgain> {
        let (queue, pattern) = Pattern::of(&receive);
        let is_plain = receive.multi.is_none() && receive.flags == MatchFlags::default();
        // Nearly always: no message may be there for it.
        let is_alone = !self.port.presence.has_lost() && !self.inbound.may_satisfy(queue);
        if !is_plain || !is_alone || self.port.ended.len() >= self.receives_most {
            return self.receive_any(receive);
        }
        self.inbound.post(receive, pattern, queue);
        Ok(())
    }

    /// The same as [`receive`](Self::receive), for whoever knows that there is something special about it.
    #[inline(never)]
    pub fn receive_any(&mut self, receive: Receive<L::Buffer>) -> Result<(), TryAgain> {
        self.port.egress.attention.raise();
        let submitted = self.receive_stored(receive);
        if self.fences.are_raised() {
            // A message to ourselves that had to be received first may have been.
            self.release_fenced(Target::Myself);
        }
        self.end_losses();
        submitted
    }

    fn receive_stored(&mut self, receive: Receive<L::Buffer>) -> Result<(), TryAgain> {
        if self.port.ended.len() >= self.receives_most {
            return Err(TryAgain);
        }
        let (queue, pattern) = Pattern::of(&receive);
        if receive.flags.peek {
            match self.inbound.peek(&mut self.port, &pattern, queue, &receive)? {
                true => self.looks.end_probe(),
                false => self.looks.note_probe(queue, pattern, self.inbound.matching().last_number()),
            }
        } else {
            self.inbound.receive(&mut self.port, &mut self.pulls, receive, pattern, queue);
        }
        Ok(())
    }

    /// Cancels the receive of this context, if it has not matched: it completes with
    /// [`Failure::Canceled`](crate::Failure::Canceled). Returns whether.
    pub fn cancel(&mut self, context: Context) -> bool {
        self.port.egress.attention.raise();
        self.cancel_named(context.0, |context| context.0)
    }

    /// Cancels the oldest receive that the application calls `name`, if one has not matched, or else an operation that
    /// waits behind a fence. `name_of` says what it calls the operation of a context: always the same, as long as the
    /// operation is there.
    pub fn cancel_named(&mut self, name: usize, name_of: impl Fn(Context) -> usize) -> bool {
        self.port.egress.attention.raise();
        self.inbound.cancel_named(&mut self.port, name, &name_of)
            || self.fences.are_raised() && self.fences.cancel_named(&mut self.port, &mut self.sends, name, name_of)
    }
}
