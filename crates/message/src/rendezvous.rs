//! Rendezvous (P §3): a long message is announced by a small one; the receiver, once it has matched, gets the payload and
//! says so.
//!
//! Three ways to get it. Where the link reaches the sender's memory the receiver reads it, a bounded number of bytes per
//! progress call, and no slot is used. Where the link has *stages*, the sender copies a piece into one, the receiver copies it
//! out, and a packet each way says so; the first piece is staged with the announcement (R §3: the first chunk travels with
//! it), so a message that fits one stage takes one hop. Elsewhere, or when no stage is free, pieces go through the mailbox
//! packet by packet. Stages and packets the receiver has to ask for (`ClearToSend`), and both are under flow control; pieces for a
//! peer wait until nothing else does, so they delay other messages to it by one piece at most. In the end `Finished` tells the
//! sender that its buffer is free, which is also the receipt that `FI_DELIVERY_COMPLETE` asks for.

use crate::collections::list::Position;
use crate::collections::slab::Key;
use crate::completion::{Completion, Failure, Notice};
use crate::counter::Counter;
use crate::deferral::Place;
use crate::egress::BOUNCED_MOST;
use crate::egress::{Body, Outgoing, copy_of};
use crate::endpoint::Endpoint;
use crate::envelope::Envelope;
use crate::fetch_way::Way;
use crate::inbound::{Malformed, write_clipped};
use crate::link::{Buffer, Link, Span, TransferId, TransferStatus};
use crate::matching::{Active, RemoteSend, Stored};
use crate::memory::Memory;
use crate::operation::{Queue, Send, Space, Target};
use crate::request::PIECE_BYTES;
use crate::stage::Use;
use crate::wire::{BounceCopied, BouncedPiece, ClearToSend, Finished, Piece, RequestToSend, Status};
use std::time::Duration;
use tidegate_flow::PeerId;

/// Pieces of one stream that leave before another stream has its turn.
pub(crate) const PIECES_PER_TURN: usize = 8;
/// Most spans that an announcement carries; a more scattered message is streamed.
const SPANS_PER_ANNOUNCEMENT: usize = 128;

/// The payload of an announced send.
#[derive(Debug)]
pub(crate) enum Payload<B> {
    /// In the application's memory.
    Application(B),
    /// Injected: the application's memory may have changed since. Goes through the mailbox.
    Copied(Box<[u8]>),
}

/// A send whose payload is with us until the receiver gets it: announced, or deferred.
#[derive(Debug)]
pub(crate) struct PendingSend<B> {
    pub(crate) peer: PeerId,
    pub(crate) space: Space,
    pub(crate) data: Option<u64>,
    /// Bytes of payload.
    pub(crate) length: usize,
    /// Complete only when the receiver has it.
    pub(crate) delivery: bool,
    pub(crate) payload: Payload<B>,
    /// What the application has not been told yet.
    pub(crate) notice: Option<Notice>,
    /// Where it is among the deferred sends to its peer.
    pub(crate) deferred: Option<Place>,
    /// The receiver has asked for it through its mailbox.
    streamed: bool,
    /// Where the stream is that this made, as long as that has not ended and it is not its turn.
    stream: Option<Position>,
}

/// An announced message on its way to its receive.
#[derive(Debug)]
pub(crate) struct Fetch<B> {
    active: Active<B>,
    envelope: Envelope,
    queue: Queue,
    pub(crate) announcement: RemoteSend,
    /// Our `Fetch` has left: pieces may come.
    is_asked: bool,
    /// Bytes to get: what the receive has room for.
    wanted: usize,
    /// Bytes that are in place.
    position: usize,
    /// Bytes that are in place or that pieces under way have been admitted for.
    admitted: usize,
    measured: Option<Measured>,
}

/// A fetch whose time tells which way is faster.
#[derive(Clone, Copy, Debug)]
struct Measured {
    way: Way,
    /// Bytes that come that way.
    left: usize,
    /// Time spent reading.
    reading: Duration,
}

/// Who asked the link for a transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TransferOwner {
    /// A fetch, for this many bytes.
    Fetch(Key, usize),
    Operation(Key),
}

/// An announced send of ours that leaves in pieces, for the receiver's fetch of this name.
#[derive(Debug)]
pub(crate) struct Stream<B> {
    pub(crate) to: PeerId,
    pub(crate) send: Key,
    fetch: u32,
    buffer: B,
    position: usize,
    end: usize,
}

/// Which of the two was there first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The receive: its message has just come.
    Receive,
    /// The message.
    Message,
}

/// What became of a piece that should go through a stage.
enum Staged {
    Sent,
    /// Wait: this receiver has asked for what is in stages, and gives them back as it makes progress.
    Busy,
    /// Do not wait: there are no stages, or others hold them, who may be busy with something else for ever.
    Unavailable,
}

impl<L: Link> Endpoint<L> {
    /// Keeps a send that stays with us until the receiver gets it. `None`: its peer is gone, and the application has been told.
    pub(crate) fn keep_send(&mut self, to: PeerId, send: Send<L::Buffer>) -> Option<Key> {
        let length = send.buffer.len();
        let notice = Some(Notice { context: send.context, space: send.space, length, report: send.report });
        if let Some(lost) = &self.peers[to.0 as usize].lost {
            let name = lost.name.clone();
            self.fail_notice(notice, &name);
            return None;
        }
        let payload = match send.inject {
            true => Payload::Copied(copy_of(&send.buffer)),
            false => Payload::Application(send.buffer),
        };
        if send.inject {
            self.keep_copy(to);
        }
        let Send { space, data, delivery, .. } = send;
        let (deferred, streamed, stream) = (None, false, None);
        let kept = PendingSend { peer: to, space, data, length, delivery, payload, notice, deferred, streamed, stream };
        Some(self.sends.insert(kept))
    }

    /// A send is with us no longer, and nothing of it leaves any more.
    pub(crate) fn remove_send(&mut self, key: Key) -> Option<PendingSend<L::Buffer>> {
        let send = self.sends.remove(key)?;
        if let Some(at) = send.stream {
            self.streams.remove(at, key);
        }
        if matches!(send.payload, Payload::Copied(_)) {
            self.drop_copy(send.peer);
        }
        Some(send)
    }

    /// Announces a message for which an eager message's room was taken, and the rest is there.
    pub(crate) fn announce_in_room(&mut self, to: PeerId, send: Send<L::Buffer>) {
        let taken = Memory::<L::Buffer>::eager_cost(send.buffer.len());
        let Some(key) = self.keep_send(to, send) else { return };
        let Some(kept) = self.sends.get(key) else { return };
        let cost = Memory::<L::Buffer>::announce_cost(self.spans_of(kept));
        self.deferral.rooms.take_instead(to, taken, cost);
        self.announce_kept(to, key, false);
    }

    /// How many pieces of memory the announcement of a send names. With none, its receiver asks for the payload.
    pub(crate) fn spans_of(&self, send: &PendingSend<L::Buffer>) -> usize {
        let Payload::Application(buffer) = &send.payload else { return 0 };
        let count = buffer.spans().take(SPANS_PER_ANNOUNCEMENT + 1).count();
        let fits = count <= SPANS_PER_ANNOUNCEMENT
            && Memory::<L::Buffer>::announce_cost(count) <= self.deferral.rooms.limits(send.peer).largest;
        if fits { count } else { 0 }
    }

    /// Announces a send for which the receiver has room. `known`: it has forgotten it once.
    pub(crate) fn announce_kept(&mut self, to: PeerId, key: Key, known: bool) {
        self.count(Counter::MessagesRendezvous, 1);
        let Some(send) = self.sends.get(key) else { return };
        let spans: Vec<Span> = match &send.payload {
            Payload::Application(buffer) => buffer.spans().take(self.spans_of(send)).collect(),
            Payload::Copied(_) => Vec::new(),
        };
        let (length, data, space) = (send.length, send.data, send.space);
        let head = RequestToSend {
            queue: space.queue(),
            tag: space.tag(),
            data,
            was_dropped: known,
            send: key.0,
            length: length as u64,
            spans: spans.len() as u16,
            first: spans.first().copied().unwrap_or(Span { address: 0, length: 0 }),
            bounce: self.stage_first_piece(to, key, length),
        };
        let rest = RequestToSend::body_of(&spans);
        let body = if rest.is_empty() { Body::None } else { Body::Owned(rest.into_boxed_slice()) };
        self.dispatch(to, Outgoing::new(head, body, None), false);
    }

    /// Copies the first piece of an announced message into a stage, unless the receiver will rather read all of it from
    /// memory, as it did last time.
    fn stage_first_piece(&mut self, to: PeerId, key: Key, length: usize) -> Option<u16> {
        let read_before = length > self.stages.bytes && self.peers[to.0 as usize].reads;
        let direct = read_before || (length >= self.link.direct_from() && self.link.reaches_memory(to));
        if length == 0 || direct || !self.stages.exists() {
            return None;
        }
        let Some(PendingSend { payload: Payload::Application(buffer), .. }) = self.sends.get(key) else { return None };
        let stage = self.stages.take(to, key, Use::Announced)?;
        self.link.fill_stage(stage, buffer, 0, length.min(self.stages.bytes));
        Some(stage as u16)
    }

    /// A peer announces a message.
    pub(crate) fn handle_request_to_send(
        &mut self,
        from: PeerId,
        head: &RequestToSend,
        body: &[u8],
    ) -> Result<(), Malformed> {
        let queue = head.queue;
        let length = usize::try_from(head.length).map_err(|_| Malformed)?;
        let spans = head.spans(body).ok_or(Malformed)?;
        let covered = spans.iter().try_fold(0u64, |sum, span| sum.checked_add(span.length));
        if !spans.is_empty() && covered != Some(head.length) {
            return Err(Malformed);
        }
        let stage = head.bounce.map(usize::from);
        let announcement = RemoteSend { peer: from, id: head.send, spans, stage };
        let cost = Memory::<L::Buffer>::announce_cost(announcement.spans.len());
        self.check_window(from, cost)?;
        if head.was_dropped {
            self.deferral.windows.remember(from)?;
        }
        let envelope = Envelope { source: Target::Peer(from), tag: head.tag, data: head.data, length };
        match self.matching.of(queue).accept(&envelope) {
            Some(active) => {
                let kept = announcement.kept();
                if kept > 0 {
                    self.enter_window(from, kept);
                }
                self.start_pull(active, envelope, announcement, queue, Waited::Receive);
                self.pass_window(from, cost - kept);
            }
            None => {
                self.store_unexpected(envelope, Stored::Remote(announcement), queue, cost);
                self.enter_window(from, cost);
            }
        }
        Ok(())
    }

    /// An announced message has its receive: gets the payload.
    pub(crate) fn start_pull(
        &mut self,
        active: Active<L::Buffer>,
        envelope: Envelope,
        announcement: RemoteSend,
        queue: Queue,
        waited: Waited,
    ) {
        let wanted = envelope.length.min(active.buffer.len());
        let (position, admitted, is_asked, measured) = (0, 0, false, None);
        let fetch = Fetch { active, envelope, queue, announcement, is_asked, wanted, position, admitted, measured };
        let key = self.fetches.insert(fetch);
        self.take_first_piece(key);
        let Some(fetch) = self.fetches.get(key) else { return };
        if fetch.position == wanted {
            return self.end_fetch(key, Ok(()));
        }
        match self.choose_way(key, waited) {
            Way::Read => self.step_fetch(key),
            Way::Ask => self.ask_for_rest(key),
        }
    }

    /// Asks the sender for what is left of its message.
    fn ask_for_rest(&mut self, key: Key) {
        let Some(fetch) = self.fetches.get(key) else { return };
        let peer = fetch.announcement.peer;
        let (wanted, position) = (fetch.wanted as u64, fetch.position as u64);
        self.tell(peer, ClearToSend { send: fetch.announcement.id, pull: key.0, wanted, position });
        if self.egress.is_idle(peer) {
            self.note_pull_left(key);
        }
    }

    /// The `ClearToSend` of a fetch has left.
    pub(crate) fn note_pull_left(&mut self, key: Key) {
        if let Some(fetch) = self.fetches.get_mut(key) {
            fetch.is_asked = true;
        }
    }

    /// How to get what is left of a message. Where its sender's memory can be reached: a very long one is read, and so is a
    /// short one that came without a stage and was stored, whose sender may be long asleep. A short one that has just come
    /// has a sender who is awake, and stages are faster. Between them is what measurements say.
    fn choose_way(&mut self, key: Key, waited: Waited) -> Way {
        let Some(fetch) = self.fetches.get_mut(key) else { return Way::Ask };
        if fetch.announcement.spans.is_empty() || !self.link.reaches_memory(fetch.announcement.peer) {
            return Way::Ask;
        }
        let left = fetch.wanted - fetch.position;
        if left >= self.link.direct_from() {
            return Way::Read;
        }
        if fetch.position == 0 && left <= self.stages.bytes {
            return if waited == Waited::Message { Way::Read } else { Way::Ask };
        }
        let way = self.fetch_ways.choose(fetch.wanted);
        fetch.measured = Some(Measured { way, left, reading: Duration::ZERO });
        way
    }

    /// Copies the piece that was staged with the announcement.
    fn take_first_piece(&mut self, key: Key) {
        let Some(fetch) = self.fetches.get_mut(key) else { return };
        let (peer, Some(stage)) = (fetch.announcement.peer, fetch.announcement.stage) else { return };
        let length = fetch.wanted.min(self.stages.bytes);
        if length > 0 && self.link.drain_stage(peer, stage, &mut fetch.active.buffer, 0, length) {
            (fetch.position, fetch.admitted) = (length, length);
            self.count(Counter::BytesBounced, length as u64);
        }
    }

    /// Reads the next part of a fetch out of its sender's memory.
    fn step_fetch(&mut self, key: Key) {
        let Some(fetch) = self.fetches.get_mut(key) else { return };
        let length = (fetch.wanted - fetch.position).min(self.config.bulk_bytes_per_progress.max(1));
        let spans = part_of_spans(&fetch.announcement.spans, fetch.position, length);
        let transfer = self.transfers.insert(TransferOwner::Fetch(key, length));
        let (peer, position) = (fetch.announcement.peer, fetch.position);
        let begun = self.link.time_reading();
        let status = self.link.read_peer(TransferId(transfer.0), peer, &spans, &mut fetch.active.buffer, position);
        if let Some(measured) = &mut fetch.measured {
            measured.reading += self.link.time_reading().saturating_sub(begun);
        }
        if status != TransferStatus::Pending {
            self.end_transfer(TransferId(transfer.0), status);
        }
    }

    /// Goes on with the fetches that had their share of an earlier progress call.
    pub(crate) fn continue_fetches(&mut self) -> bool {
        let ready = self.active_fetches.len();
        for _ in 0..ready.min(4) {
            if let Some(key) = self.active_fetches.pop_front() {
                self.step_fetch(key);
            }
        }
        ready > 0
    }

    /// A transfer that the link was asked for has ended.
    pub(crate) fn end_transfer(&mut self, id: TransferId, status: TransferStatus) {
        match self.transfers.remove(Key(id.0)) {
            Some(TransferOwner::Fetch(key, length)) => self.end_fetch_part(key, length, status),
            // The departure of the operation's peer ends it.
            Some(TransferOwner::Operation(_)) if status == TransferStatus::Unreachable => {}
            Some(TransferOwner::Operation(key)) => {
                let result = if status == TransferStatus::Done { Status::Success } else { Status::Fault };
                self.end_part(key, result);
            }
            None => {}
        }
    }

    fn end_fetch_part(&mut self, key: Key, length: usize, status: TransferStatus) {
        let Some(fetch) = self.fetches.get_mut(key) else { return };
        if status == TransferStatus::Unreachable {
            // What is in place stays; how long it took says nothing about either way.
            (fetch.admitted, fetch.measured) = (fetch.position, None);
            return self.ask_for_rest(key);
        }
        if status != TransferStatus::Done {
            return self.end_fetch(key, Err(Failure::Fault));
        }
        fetch.position += length;
        let is_complete = fetch.position == fetch.wanted;
        self.count(Counter::BytesRead, length as u64);
        if is_complete {
            self.end_fetch(key, Ok(()));
        } else {
            self.active_fetches.push_back(key);
        }
    }

    /// A fetch is over: completes the receive and tells the sender.
    fn end_fetch(&mut self, key: Key, result: Result<(), Failure>) {
        let Some(fetch) = self.fetches.remove(key) else { return };
        self.learn(&fetch, result.is_ok());
        let status = if result.is_ok() { Status::Success } else { Status::Fault };
        match result {
            Ok(()) => self.complete_receive(fetch.active, &fetch.envelope, fetch.queue),
            Err(failure) => self.fail_receive(fetch.active, &fetch.envelope, fetch.queue, failure),
        }
        self.tell_finished(&fetch.announcement, status);
        self.release_kept(&fetch.announcement);
    }

    /// A fetch is over: what it kept of its sender's window is free.
    fn release_kept(&mut self, announcement: &RemoteSend) {
        if announcement.kept() > 0 {
            self.leave_window(Target::Peer(announcement.peer), announcement.kept());
        }
    }

    /// What a fetch that is over says about the way it went.
    fn learn(&mut self, fetch: &Fetch<L::Buffer>, is_complete: bool) {
        match fetch.measured {
            Some(Measured { way: Way::Ask, left, .. }) => {
                let now = self.timing.now();
                self.fetch_ways.end_asked(fetch.wanted, is_complete.then_some(left), now);
            }
            Some(Measured { way: Way::Read, left, reading }) if is_complete => {
                self.fetch_ways.end_read(fetch.wanted, left, reading);
            }
            _ => {}
        }
    }

    /// Ends a fetch whose peer is gone; there is nobody to tell.
    pub(crate) fn lose_fetch(&mut self, key: Key, peer: &str) {
        if let Some(fetch) = self.fetches.remove(key) {
            self.learn(&fetch, false);
            self.release_kept(&fetch.announcement);
            let failure = Failure::PeerLost { peer: peer.to_owned() };
            self.fail_receive(fetch.active, &fetch.envelope, fetch.queue, failure);
        }
    }

    /// Nothing (more) of an announced message is wanted: it was dropped (`FI_DISCARD`), or has come by another way.
    pub(crate) fn finish_announced(&mut self, announcement: &RemoteSend) {
        self.tell_finished(announcement, Status::Success);
    }

    fn tell_finished(&mut self, announcement: &RemoteSend, status: Status) {
        self.tell(announcement.peer, Finished { send: announcement.id, status });
    }

    /// The receiver has what we announced.
    pub(crate) fn handle_finished(&mut self, from: PeerId, finished: &Finished) -> Result<(), Malformed> {
        let key = Key(finished.send);
        if self.sends.get(key).is_none_or(|send| send.peer != from) {
            return Err(Malformed);
        }
        self.end_deferral(key);
        let send = self.remove_send(key).ok_or(Malformed)?;
        if send.length > self.stages.bytes {
            self.peers[from.0 as usize].reads = !send.streamed;
        }
        self.stages.free_send(key);
        let result = match finished.status {
            Status::Success => Ok(()),
            _ => Err(Failure::Fault),
        };
        if let Some(notice) = send.notice
            && (notice.report || result.is_err())
        {
            self.completions.push_back(Completion::sent(notice, result));
        }
        Ok(())
    }

    /// Ends an announced send whose peer is gone.
    pub(crate) fn lose_send(&mut self, key: Key, peer: &str) {
        if let Some(send) = self.remove_send(key) {
            self.stages.free_send(key);
            self.lose_kept(send, Failure::PeerLost { peer: peer.to_owned() });
        }
    }

    /// A send that stayed with us will never be received.
    pub(crate) fn lose_kept(&mut self, send: PendingSend<L::Buffer>, failure: Failure) {
        if send.notice.is_none() && matches!(send.payload, Payload::Copied(_)) {
            // The application was told long ago that it is sent.
            self.count(Counter::SendsLost, 1);
        }
        self.lose_notice(send.notice, failure);
    }

    /// The receiver wants what we announced through its mailbox.
    pub(crate) fn handle_clear_to_send(&mut self, from: PeerId, clear: &ClearToSend) -> Result<(), Malformed> {
        let key = Key(clear.send);
        if self.sends.get(key).is_none_or(|send| send.peer != from || send.streamed) {
            return Err(Malformed);
        }
        self.end_deferral(key);
        let send = self.sends.get_mut(key).ok_or(Malformed)?;
        let wanted = usize::try_from(clear.wanted).map_err(|_| Malformed)?;
        let position = usize::try_from(clear.position).map_err(|_| Malformed)?;
        if position >= wanted || wanted > send.length {
            return Err(Malformed);
        }
        send.streamed = true;
        if position > 0 {
            // The receiver has copied the first piece.
            self.stages.free_send(key);
        }
        let fetch = clear.pull;
        match &self.sends.get(key).ok_or(Malformed)?.payload {
            Payload::Application(buffer) => {
                let buffer = buffer.slice(0, wanted);
                let at = self.streams.push(Stream { to: from, send: key, fetch, buffer, position, end: wanted });
                self.sends.get_mut(key).ok_or(Malformed)?.stream = Some(at);
                // What we can send at once must not wait for the next progress call.
                self.pump_streams_to(from);
            }
            Payload::Copied(bytes) => {
                let rest = Body::Owned(bytes[position..wanted].into());
                let head = Piece { pull: fetch, position: position as u64 };
                self.dispatch(from, Outgoing::new(head, rest, None), false);
            }
        }
        Ok(())
    }

    /// Lets streams send some pieces to peers for which nothing else waits. Returns whether any did.
    pub(crate) fn pump_streams(&mut self) -> bool {
        let mut moved = false;
        for _ in 0..self.streams.turns() {
            let Some(peer) = self.streams.next_peer() else { break };
            moved |= self.pump_streams_to(peer);
        }
        moved
    }

    /// Lets the streams to a peer take turns until one cannot go on: then none behind it can.
    fn pump_streams_to(&mut self, peer: PeerId) -> bool {
        let mut moved = false;
        for _ in 0..self.streams.len_of(peer) {
            let Some(mut stream) = self.streams.pop(peer) else { break };
            let begun_at = stream.position;
            let goes_on = self.send_some_pieces(&mut stream);
            let has_moved = stream.position > begun_at;
            moved |= has_moved;
            // Sending a piece may have shown that the peer is gone.
            if let Some(send) = self.sends.get_mut(stream.send) {
                send.stream = match stream.position == stream.end {
                    true => None,
                    false if has_moved => Some(self.streams.push(stream)),
                    false => Some(self.streams.put_back(stream)),
                };
            }
            if !goes_on {
                break;
            }
        }
        moved
    }

    /// Whether a stream could send another piece now, for which it waits for nobody.
    pub(crate) fn streams_can_move(&self) -> bool {
        self.streams.peers().any(|peer| self.egress.is_idle(peer) && !self.stages.is_busy_for(peer))
    }

    /// One turn of a stream. Returns whether others to its peer may have theirs.
    fn send_some_pieces(&mut self, stream: &mut Stream<L::Buffer>) -> bool {
        for _ in 0..PIECES_PER_TURN {
            let blocked = !self.egress.is_idle(stream.to);
            if blocked || stream.position == stream.end {
                return !blocked;
            }
            match self.stage_piece(stream) {
                Staged::Sent => {}
                Staged::Busy => return false,
                Staged::Unavailable => self.send_piece(stream),
            }
        }
        true
    }

    /// Sends the next piece of an announced message through a stage, if one is free.
    fn stage_piece(&mut self, stream: &mut Stream<L::Buffer>) -> Staged {
        let Some(stage) = self.stages.take(stream.to, stream.send, Use::Fetched) else {
            return if self.stages.is_busy_for(stream.to) { Staged::Busy } else { Staged::Unavailable };
        };
        let length = (stream.end - stream.position).min(self.stages.bytes);
        self.link.fill_stage(stage, &stream.buffer, stream.position, length);
        let (pull, position) = (stream.fetch, stream.position as u64);
        let head = BouncedPiece { pull, position, bounce: stage as u32, length: length as u32 };
        stream.position += length;
        self.tell(stream.to, head);
        Staged::Sent
    }

    /// A piece of a message that we fetch lies in a stage of its sender.
    pub(crate) fn handle_bounced_piece(&mut self, from: PeerId, piece: &BouncedPiece) -> Result<(), Malformed> {
        let (key, stage, length) = (Key(piece.pull), piece.bounce as usize, piece.length as usize);
        if self.egress.backlog(from).bounced() >= BOUNCED_MOST {
            return Err(Malformed);
        }
        let at = self.admit_piece(from, key, piece.position, length)?;
        let fetch = self.fetches.get_mut(key).ok_or(Malformed)?;
        if !self.link.drain_stage(from, stage, &mut fetch.active.buffer, at, length) {
            self.end_fetch(key, Err(Failure::Fault));
            return Err(Malformed);
        }
        let is_last = fetch.admitted == fetch.wanted;
        self.count(Counter::BytesBounced, length as u64);
        if !is_last {
            // The last piece's stage comes back with `Finished`.
            self.tell(from, BounceCopied { bounce: piece.bounce });
        }
        self.finish_piece(key);
        Ok(())
    }

    /// A receiver has copied a stage of ours: the next piece may follow.
    pub(crate) fn handle_bounce_copied(&mut self, from: PeerId, copied: &BounceCopied) -> Result<(), Malformed> {
        if !self.stages.give_back(from, copied.bounce as usize) {
            return Err(Malformed);
        }
        self.pump_streams();
        Ok(())
    }

    fn send_piece(&mut self, stream: &mut Stream<L::Buffer>) {
        let length = (stream.end - stream.position).min(PIECE_BYTES);
        let part = stream.buffer.slice(stream.position, length);
        let head = Piece { pull: stream.fetch, position: stream.position as u64 };
        stream.position += length;
        // A piece that has to wait is copied, so nothing in a backlog refers to the memory of an operation that a false `Finished`
        // could end.
        self.dispatch(stream.to, Outgoing::new(head, Body::Borrowed(part), None), true);
    }

    /// The first packet of a piece: where it goes, if a fetch waits for just this one.
    pub(crate) fn admit_piece(&mut self, from: PeerId, key: Key, at: u64, length: usize) -> Result<usize, Malformed> {
        let fetch = self.fetches.get_mut(key).filter(|fetch| fetch.announcement.peer == from).ok_or(Malformed)?;
        if !fetch.is_asked || at != fetch.admitted as u64 || length > fetch.wanted - fetch.admitted {
            return Err(Malformed);
        }
        fetch.admitted += length;
        Ok(at as usize)
    }

    /// A part of a piece has arrived.
    pub(crate) fn place_piece(&mut self, key: Key, at: usize, part: &[u8]) {
        if let Some(fetch) = self.fetches.get_mut(key) {
            write_clipped(&mut fetch.active.buffer, at, part);
        }
    }

    /// A piece is complete.
    pub(crate) fn finish_piece(&mut self, key: Key) {
        if let Some(fetch) = self.fetches.get(key)
            && fetch.admitted == fetch.wanted
        {
            self.end_fetch(key, Ok(()));
        }
    }
}

/// The part `offset..offset + length` of what `spans` cover.
pub(crate) fn part_of_spans(spans: &[Span], mut offset: usize, mut length: usize) -> Vec<Span> {
    let mut part = Vec::with_capacity(1);
    for span in spans {
        let bytes = usize::try_from(span.length).unwrap_or(usize::MAX);
        let skipped = offset.min(bytes);
        let taken = (bytes - skipped).min(length);
        if taken > 0 {
            part.push(Span { address: span.address.wrapping_add(skipped as u64), length: taken as u64 });
        }
        offset -= skipped;
        length -= taken;
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(address: u64, length: u64) -> Span {
        Span { address, length }
    }

    #[test]
    fn a_part_of_scattered_memory_is_found_wherever_it_begins_and_ends() {
        let spans = [span(100, 10), span(200, 0), span(300, 5)];
        assert_eq!(part_of_spans(&spans, 0, 15), [span(100, 10), span(300, 5)]);
        assert_eq!(part_of_spans(&spans, 9, 3), [span(109, 1), span(300, 2)]);
        assert_eq!(part_of_spans(&spans, 10, 5), [span(300, 5)]);
        assert_eq!(part_of_spans(&spans, 15, 1), []);
        assert_eq!(part_of_spans(&[span(u64::MAX, u64::MAX)], 1, 2), [span(0, 2)]);
    }
}
