//! Long messages on their way in: requests to send, and the pulls that follow.

use super::Endpoint;
use crate::assembly::write_clipped;
use crate::bulk::{Next, Part, Pull, Waited, Way};
use crate::collections::slab::Key;
use crate::completion::Failure;
use crate::counter::Counter;
use crate::egress::{BOUNCED_MOST, Backlog};
use crate::envelope::Envelope;
use crate::link::{Link, TransferId, TransferStatus};
use crate::malformed::Malformed;
use crate::matching::{Active, RemoteSend, Stored};
use crate::memory::Memory;
use crate::operation::{Queue, Target};
use crate::port::{EndedTransfer, TransferOwner};
use crate::sequence::Received;
use crate::wire::{BounceCopied, BouncedPiece, Finished, RequestToSend, Status};
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// A peer's request to send.
    pub(super) fn handle_request_to_send(
        &mut self,
        from: PeerId,
        head: &RequestToSend,
        body: &[u8],
    ) -> Result<(), Malformed> {
        let queue = head.queue;
        let length = usize::try_from(head.length).map_err(|_| Malformed)?;
        let (key, spans) = head.memory(body).ok_or(Malformed)?;
        let covered = spans.iter().try_fold(0u64, |sum, span| sum.checked_add(span.length));
        if !spans.is_empty() && covered != Some(head.length) {
            return Err(Malformed);
        }
        let remote = RemoteSend { peer: from, id: head.send, bounce: head.bounce, key, spans };
        let cost = Memory::<L::Buffer>::announce_cost(remote.spans.len());
        self.check_window(from, cost)?;
        if head.was_dropped {
            self.windows.remember(from)?;
        }
        let envelope = Envelope { source: Target::Peer(from), tag: head.tag, data: head.data, length };
        match self.matching.of(queue).accept(&envelope) {
            Some(active) => {
                let kept = remote.kept();
                if kept > 0 {
                    self.enter_window(from, kept);
                }
                self.start_pull(active, envelope, remote, queue, Waited::Receive);
                self.pass_window(from, cost - kept);
            }
            None => {
                self.store_unexpected(envelope, Stored::Remote(remote), queue, cost);
                self.enter_window(from, cost);
            }
        }
        Ok(())
    }

    /// A rendezvous message has its receive: gets the payload.
    pub(super) fn start_pull(
        &mut self,
        active: Active<L::Buffer>,
        envelope: Envelope,
        remote: RemoteSend,
        queue: Queue,
        waited: Waited,
    ) {
        let (is_of_several, peer) = (active.is_of_several(), remote.peer);
        self.port.egress.attention.begin();
        let key = self.bulk.pulls.insert(active, envelope, queue, remote);
        if is_of_several {
            self.sequence.begin(peer, key);
        }
        self.take_first_piece(key);
        if self.bulk.pulls.is_complete(key) {
            return self.end_pull(key, Ok(()));
        }
        let way = self.choose_way(key, waited);
        match way {
            Way::Read => self.step_pull(key),
            Way::Ask if self.port.link.writes_bulk() => self.ask_for_write(key),
            Way::Ask => self.ask_for_rest(key),
        }
    }

    fn choose_way(&mut self, key: Key, waited: Waited) -> Way {
        if self.port.link.writes_bulk() {
            return Way::Ask;
        }
        let bounce_bytes = self.sends.bounce_bytes();
        self.bulk.pulls.choose_way(key, waited, bounce_bytes, |peer| self.port.link.capabilities(peer))
    }

    /// Copies the piece that was sent ahead.
    fn take_first_piece(&mut self, key: Key) {
        let bounce_bytes = self.sends.bounce_bytes();
        let Some((peer, bounce, length, into)) = self.bulk.pulls.first_piece(key, bounce_bytes) else { return };
        if self.port.link.drain_bounce_buffer(peer, bounce, into, 0, length) {
            self.bulk.pulls.place_first(key, length);
            self.port.count(Counter::BytesBounced, length as u64);
        }
    }

    /// Sends a clear to send for what is left of a message.
    fn ask_for_rest(&mut self, key: Key) {
        let Some((peer, clear)) = self.bulk.pulls.ask(key) else { return };
        self.port.tell(peer, clear);
        if self.port.egress.is_idle(peer) {
            self.bulk.pulls.note_asked(key);
        }
    }

    /// Lets a message's sender write it into the memory of the receive, and tells it with a clear to send.
    fn ask_for_write(&mut self, key: Key) {
        if let Some((peer, buffer)) = self.bulk.pulls.buffer(key) {
            self.port.link.admit_write(peer, key.0.into(), buffer);
        }
        self.ask_for_rest(key);
    }

    /// The sender of a message has written it.
    pub(super) fn handle_written(&mut self, from: PeerId, key: Key) -> Result<(), Malformed> {
        if !self.port.link.writes_bulk() || !self.bulk.pulls.is_written(from, key) {
            return Err(Malformed);
        }
        if let Some(remote) = self.complete_pull(key, Ok(())) {
            self.release_kept(&remote);
        }
        Ok(())
    }

    /// Reads the next part of a message out of its sender's memory.
    fn step_pull(&mut self, key: Key) {
        let begun = self.port.link.time_reading();
        let most = self.port.config.bulk_bytes_per_progress;
        let Some(part) = self.bulk.pulls.next_part(key, most) else { return };
        let Part { peer, from, into, position, length } = part;
        let transfer = self.port.transfers.begin(TransferOwner::Pull(key), length);
        let status = self.port.link.read_peer(TransferId(transfer.0), peer, &from, into, position);
        self.bulk.pulls.note_reading(key, self.port.link.time_reading().saturating_sub(begun));
        if status != TransferStatus::Pending {
            self.end_transfer(TransferId(transfer.0), status);
        }
    }

    /// Goes on with the pulls that had their share of an earlier progress call. Returns whether there were any.
    pub(super) fn continue_pulls(&mut self) -> bool {
        let shares = self.bulk.gate.shares();
        for _ in 0..shares {
            if let Some(key) = self.bulk.gate.next_pull() {
                self.step_pull(key);
            }
        }
        shares > 0
    }

    /// A transfer that the link had begun for us has ended.
    pub(super) fn end_transfer(&mut self, id: TransferId, status: TransferStatus) {
        match self.port.transfers.end(Key(id.0)) {
            Some(EndedTransfer::Part(TransferOwner::Pull(key), length)) => self.end_pull_part(key, length, status),
            Some(EndedTransfer::Part(TransferOwner::Send(key, pull), _)) => {
                self.sends.end_written(&mut self.port, key, pull, status)
            }
            Some(EndedTransfer::Part(TransferOwner::Operation(key), _)) => {
                self.rma.end_transfer_part(&mut self.port, key, status);
            }
            Some(EndedTransfer::Last(ending)) => self.end_held(ending),
            None => {}
        }
    }

    fn end_pull_part(&mut self, key: Key, length: usize, status: TransferStatus) {
        let Some(next) = self.bulk.pulls.end_part(key, length, status) else { return };
        if status == TransferStatus::Done {
            self.port.count(Counter::BytesRead, length as u64);
        }
        match next {
            Next::Ask => self.ask_for_rest(key),
            Next::Fail => self.end_pull(key, Err(Failure::Fault)),
            Next::Complete => self.end_pull(key, Ok(())),
            Next::Read => self.bulk.gate.wait(key),
        }
    }

    /// A pull is over: completes the receive and tells the sender.
    fn end_pull(&mut self, key: Key, result: Result<(), Failure>) {
        let status = if result.is_ok() { Status::Success } else { Status::Fault };
        if let Some(remote) = self.complete_pull(key, result) {
            self.tell_finished(&remote, status);
            self.release_kept(&remote);
        }
    }

    /// Completes the receive of a pull, and returns whose message it was.
    fn complete_pull(&mut self, key: Key, result: Result<(), Failure>) -> Option<RemoteSend> {
        let Pull { active, envelope, queue, remote, .. } = self.bulk.pulls.end(key, result.is_ok(), self.port.now)?;
        let is_of_several = active.is_of_several();
        let received = self.received(active, &envelope, queue, result);
        match is_of_several {
            true => self.report_in_sequence(remote.peer, key, received),
            false => self.report_received(received),
        }
        Some(remote)
    }

    /// A message that was pulled into a buffer for several is over: reports it, and what has waited for it.
    fn report_in_sequence(&mut self, peer: PeerId, key: Key, received: Received<L::Buffer>) {
        if let Some(received) = self.sequence.end(peer, key, received) {
            self.report_received(received);
        }
        while let Some(received) = self.sequence.next(peer) {
            self.report_received(received);
        }
    }

    /// A pull is over: what it kept of its sender's window is free.
    pub(super) fn release_kept(&mut self, remote: &RemoteSend) {
        if remote.kept() > 0 {
            self.leave_window(Target::Peer(remote.peer), remote.kept());
        }
    }

    /// Nothing more of a message is wanted: the application discarded it (`FI_DISCARD`), or it came with its offer.
    pub(super) fn finish_announced(&mut self, remote: &RemoteSend) {
        self.tell_finished(remote, Status::Success);
    }

    fn tell_finished(&mut self, remote: &RemoteSend, status: Status) {
        self.port.tell(remote.peer, Finished { send: remote.id, status });
    }

    /// A piece of a message that we pull lies in a bounce buffer of its sender.
    pub(super) fn handle_bounced_piece(&mut self, from: PeerId, piece: &BouncedPiece) -> Result<(), Malformed> {
        let (key, bounce, length) = (Key(piece.pull), piece.bounce as usize, piece.length as usize);
        if self.port.egress.backlog(from).map_or(0, Backlog::bounced) >= BOUNCED_MOST {
            return Err(Malformed);
        }
        let at = self.bulk.pulls.admit(from, key, piece.position, length)?;
        let into = self.bulk.pulls.buffer_mut(key).ok_or(Malformed)?;
        if !self.port.link.drain_bounce_buffer(from, bounce, into, at, length) {
            self.end_pull(key, Err(Failure::Fault));
            return Err(Malformed);
        }
        self.port.count(Counter::BytesBounced, length as u64);
        if !self.bulk.pulls.is_admitted(key) {
            // The last piece's buffer comes back with `Finished`.
            self.port.tell(from, BounceCopied { bounce: piece.bounce });
        }
        self.finish_piece(key);
        Ok(())
    }

    /// A part of a piece has arrived.
    pub(super) fn place_piece(&mut self, key: Key, at: usize, part: &[u8]) {
        if let Some(buffer) = self.bulk.pulls.buffer_mut(key) {
            write_clipped(buffer, at, part);
        }
    }

    /// A piece is complete.
    pub(super) fn finish_piece(&mut self, key: Key) {
        if self.bulk.pulls.is_admitted(key) {
            self.end_pull(key, Ok(()));
        }
    }
}
