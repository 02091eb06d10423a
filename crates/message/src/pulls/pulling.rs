//! Long messages on their way in: requests to send, and the pulls that follow.

use super::Pulling;
use super::pull::{Next, Part, Pull, Waited};
use super::way::Way;
use crate::assembly::write_clipped;
use crate::collections::slab::Key;
use crate::completion::Failure;
use crate::counter::Counter;
use crate::egress::Backlog;
use crate::envelope::Envelope;
use crate::inbound::Inbound;
use crate::link::{Capabilities, Link, TransferId, TransferStatus};
use crate::malformed::{Handled, Malformed};
use crate::matching::{Matched, RemoteSend, Stored};
use crate::memory::Memory;
use crate::operation::Target;
use crate::port::{Ending, Port, TransferOwner};
use crate::wire::{BounceCopied, BouncedPiece, Located, RequestToSend, Status};
use tidegate_flow::PeerId;

impl<L: Link> Pulling<L> {
    /// A peer's request to send.
    pub(crate) fn handle_request_to_send(
        &mut self,
        port: &mut Port<L>,
        inbound: &mut Inbound<L>,
        from: PeerId,
        head: &RequestToSend,
        body: &[u8],
    ) -> Handled {
        let queue = head.queue;
        let length = usize::try_from(head.length).map_err(|_| Malformed)?;
        let (key, spans) = head.memory(body).ok_or(Malformed)?;
        let covered = spans.iter().try_fold(0u64, |sum, span| sum.checked_add(span.length));
        if !spans.is_empty() && covered != Some(head.length) {
            return Err(Malformed);
        }
        let remote = RemoteSend { peer: from, id: head.send, bounce: head.bounce, key, spans };
        let cost = Memory::<L::Buffer>::announce_cost(remote.spans.len());
        inbound.check_window(port, from, cost)?;
        if head.was_dropped {
            inbound.remember(from)?;
        }
        let envelope = Envelope { source: Target::Peer(from), tag: head.tag, data: head.data, length };
        match inbound.accept(queue, &envelope) {
            Some(active) => {
                let kept = remote.kept();
                if kept > 0 {
                    inbound.enter_window(port, from, kept);
                }
                self.start(port, inbound, Matched { active, envelope, queue }, remote, Waited::Receive);
                inbound.pass_window(port, from, cost - kept);
            }
            None => {
                inbound.store_unexpected(port, envelope, Stored::Remote(remote), queue, cost);
                inbound.enter_window(port, from, cost);
            }
        }
        inbound.widen(port, from, length);
        Ok(())
    }

    /// A rendezvous message has its receive: gets the payload.
    pub(crate) fn start(
        &mut self,
        port: &mut Port<L>,
        inbound: &mut Inbound<L>,
        matched: Matched<L::Buffer>,
        remote: RemoteSend,
        waited: Waited,
    ) {
        let Matched { active, envelope, queue } = matched;
        let (is_of_several, peer) = (active.is_of_several(), remote.peer);
        port.egress.attention.begin();
        let key = self.pulls.insert(active, envelope, queue, remote);
        if is_of_several {
            inbound.begin_in_sequence(peer, key);
        }
        self.take_first_piece(port, key);
        if self.pulls.is_complete(key) {
            return self.end_pull(port, inbound, key, Ok(()));
        }
        let way = self.choose_way(port, key, waited);
        match way {
            Way::Read => self.step_pull(port, inbound, key),
            Way::Ask if port.link.writes_bulk() => self.ask_for_write(port, key),
            Way::Ask => self.ask_for_rest(port, key),
        }
    }

    fn choose_way(&mut self, port: &mut Port<L>, key: Key, waited: Waited) -> Way {
        if port.link.writes_bulk() {
            return Way::Ask;
        }
        let bounce_bytes = self.bounce_bytes;
        self.pulls.choose_way(key, waited, bounce_bytes, |peer| port.link.capabilities(peer))
    }

    /// Copies the piece that was sent ahead.
    fn take_first_piece(&mut self, port: &mut Port<L>, key: Key) {
        let bounce_bytes = self.bounce_bytes;
        let Some((peer, bounce, length, into)) = self.pulls.first_piece(key, bounce_bytes) else { return };
        if port.link.drain_bounce_buffer(peer, bounce, into, 0, length) {
            self.pulls.place_first(key, length);
            port.count(Counter::BytesBounced, length as u64);
        }
    }

    /// Sends a clear to send for what is left of a message.
    fn ask_for_rest(&mut self, port: &mut Port<L>, key: Key) {
        let capabilities = |peer| match port.link.writes_bulk() {
            true => Capabilities::default(),
            false => port.link.capabilities(peer),
        };
        let Some((peer, clear)) = self.pulls.ask(key, port.limits.eager, capabilities) else { return };
        port.tell(peer, clear);
        if port.egress.is_idle(peer) {
            self.pulls.note_asked(key);
        }
    }

    /// A message for which we have sent a clear to send lies where we can read it.
    pub(crate) fn handle_located(
        &mut self,
        port: &mut Port<L>,
        inbound: &mut Inbound<L>,
        from: PeerId,
        located: &Located,
    ) -> Handled {
        let key = Key(located.pull);
        let is_synchronous = port.link.capabilities(from).is_synchronous;
        self.pulls.locate(from, key, located, is_synchronous)?;
        self.step_pull(port, inbound, key);
        Ok(())
    }

    /// Lets a message's sender write it into the memory of the receive, and tells it with a clear to send.
    fn ask_for_write(&mut self, port: &mut Port<L>, key: Key) {
        if let Some((peer, buffer)) = self.pulls.buffer(key) {
            port.link.admit_write(peer, key.0.into(), buffer);
        }
        self.ask_for_rest(port, key);
    }

    /// The sender of a message has written it.
    pub(crate) fn handle_written(
        &mut self,
        port: &mut Port<L>,
        inbound: &mut Inbound<L>,
        from: PeerId,
        key: Key,
    ) -> Handled {
        if !port.link.writes_bulk() || !self.pulls.is_written(from, key) {
            return Err(Malformed);
        }
        if let Some(remote) = self.complete_pull(port, inbound, key, Ok(())) {
            inbound.release_kept(port, &remote);
        }
        Ok(())
    }

    /// Reads the next part of a message out of its sender's memory.
    fn step_pull(&mut self, port: &mut Port<L>, inbound: &mut Inbound<L>, key: Key) {
        let begun = port.link.time_reading();
        let most = port.config.bulk_bytes_per_progress;
        let Some(part) = self.pulls.next_part(key, most) else { return };
        let Part { peer, from, into, position, length } = part;
        let transfer = port.transfers.begin(TransferOwner::Pull(key), length);
        let status = port.link.read_peer(TransferId(transfer.0), peer, &from, into, position);
        self.pulls.note_reading(key, port.link.time_reading().saturating_sub(begun));
        if status != TransferStatus::Pending {
            port.transfers.end(transfer);
            self.end_pull_part(port, inbound, key, length, status);
        }
    }

    /// Goes on with the pulls that had their share of an earlier progress call. Returns whether there were any.
    pub(crate) fn continue_pulls(&mut self, port: &mut Port<L>, inbound: &mut Inbound<L>) -> bool {
        let shares = self.gate.shares();
        for _ in 0..shares {
            if let Some(key) = self.gate.next_pull() {
                self.step_pull(port, inbound, key);
            }
        }
        shares > 0
    }

    /// A part of a pull has been read, or cannot be.
    pub(crate) fn end_pull_part(
        &mut self,
        port: &mut Port<L>,
        inbound: &mut Inbound<L>,
        key: Key,
        length: usize,
        status: TransferStatus,
    ) {
        let Some(next) = self.pulls.end_part(key, length, status) else { return };
        if status == TransferStatus::Done {
            port.count(Counter::BytesRead, length as u64);
        }
        match next {
            Next::Ask => self.ask_for_rest(port, key),
            Next::Fail => self.end_pull(port, inbound, key, Err(Failure::Fault)),
            Next::Complete => self.end_pull(port, inbound, key, Ok(())),
            Next::Read => self.gate.wait(key),
        }
    }

    /// A pull is over: completes the receive and tells the sender.
    fn end_pull(&mut self, port: &mut Port<L>, inbound: &mut Inbound<L>, key: Key, result: Result<(), Failure>) {
        let status = if result.is_ok() { Status::Success } else { Status::Fault };
        if let Some(remote) = self.complete_pull(port, inbound, key, result) {
            port.tell(remote.peer, remote.finished(status));
            inbound.release_kept(port, &remote);
        }
    }

    /// Completes the receive of a pull, and returns whose message it was.
    fn complete_pull(
        &mut self,
        port: &mut Port<L>,
        inbound: &mut Inbound<L>,
        key: Key,
        result: Result<(), Failure>,
    ) -> Option<RemoteSend> {
        let Pull { active, envelope, queue, remote, .. } = self.pulls.end(key, result.is_ok(), port.now)?;
        inbound.end_pulled(port, key, Matched { active, envelope, queue }, result);
        Some(remote)
    }

    /// A piece of a message that we pull lies in a bounce buffer of its sender.
    pub(crate) fn handle_bounced_piece(
        &mut self,
        port: &mut Port<L>,
        inbound: &mut Inbound<L>,
        from: PeerId,
        piece: &BouncedPiece,
    ) -> Handled {
        let (key, bounce, length) = (Key(piece.pull), piece.bounce as usize, piece.length as usize);
        if port.egress.backlog(from).map_or(0, Backlog::bounced) >= port.limits_of(from).control.bounced() {
            return Err(Malformed);
        }
        let at = self.pulls.admit(from, key, piece.position, length)?;
        let into = self.pulls.buffer_mut(key).ok_or(Malformed)?;
        let begun = port.link.time_draining();
        if !port.link.drain_bounce_buffer(from, bounce, into, at, length) {
            self.end_pull(port, inbound, key, Err(Failure::Fault));
            return Err(Malformed);
        }
        self.pulls.note_draining(port.link.time_draining().saturating_sub(begun));
        port.count(Counter::BytesBounced, length as u64);
        if !self.pulls.is_admitted(key) {
            // The last piece's buffer comes back with `Finished`.
            port.tell(from, BounceCopied { bounce: piece.bounce });
        }
        self.finish_piece(port, inbound, key);
        Ok(())
    }

    /// A part of a piece has arrived.
    pub(crate) fn place_piece(&mut self, key: Key, at: usize, part: &[u8]) {
        if let Some(buffer) = self.pulls.buffer_mut(key) {
            write_clipped(buffer, at, part);
        }
    }

    /// A piece is complete.
    pub(crate) fn finish_piece(&mut self, port: &mut Port<L>, inbound: &mut Inbound<L>, key: Key) {
        if self.pulls.is_admitted(key) {
            self.end_pull(port, inbound, key, Ok(()));
        }
    }

    /// A peer is gone: its pulls end.
    pub(crate) fn lose_peer(&mut self, port: &mut Port<L>, inbound: &mut Inbound<L>, peer: PeerId, name: &str) {
        for key in self.pulls.of_peer(peer) {
            self.lose_pull(port, inbound, key, name);
        }
    }

    /// Ends a pull whose peer is gone; there is nobody to tell.
    fn lose_pull(&mut self, port: &mut Port<L>, inbound: &mut Inbound<L>, key: Key, peer: &str) {
        if let Some(Pull { active, envelope, queue, remote, .. }) = self.pulls.end(key, false, port.now) {
            inbound.forget_stored(port, remote.peer, remote.kept());
            let failure = Failure::PeerLost { peer: peer.to_owned() };
            let matched = Matched { active, envelope, queue };
            let ending = Ending::Receive(matched, failure);
            if let Some(ending) = port.stop_transfers(TransferOwner::Pull(key), remote.peer, ending) {
                inbound.end_held(port, ending);
            }
        }
    }
}
