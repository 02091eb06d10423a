//! RMA reads and writes.
//!
//! Where the link finds the target's region and reaches its memory, data moves at once, without the target's help.
//! Elsewhere the target is asked by message: a write is cut into pieces that carry their own address, a read is answered by a
//! stream of pieces; each piece of a write, and each read when its data is through, is answered by a `Reply`. How many may be
//! unanswered is bounded ([`request`](crate::request)). An operation
//! is complete when all of its parts have been answered: then its data is in place (delivery complete).
//!
//! A target that counts the writes of its peers ([`Endpoint::count_writes`]) publishes no memory for direct writing, and says
//! so in its replies: then the origin ends its operation with a notice, one for the operation however many pieces it had.

use crate::account::answer_cost;
use crate::bulk::TransferOwner;
use crate::collections::slab::Key;
use crate::completion::{Completion, Failure, Operation};
use crate::counter::Counter;
use crate::egress::{Body, Outgoing};
use crate::endpoint::Endpoint;
use crate::inbound::{Malformed, write_clipped};
use crate::link::{Buffer, Link, TransferId, TransferStatus};
use crate::loopback::copy;
use crate::operation::{Access, Context, ReadRequest, RemoteTarget, Target, TryAgain, WriteRequest};
use crate::request::{UnfinishedRead, WriteRest};
use crate::wire::{Read, Reply, Status, Write, WriteNotice};
use tidegate_flow::PeerId;

/// Memory that peers may address by a key.
#[derive(Debug)]
pub(crate) struct Region<B> {
    buffer: B,
    read: bool,
    write: bool,
}

/// A remote operation of ours.
#[derive(Debug)]
pub(crate) struct RemoteOperation<B> {
    pub(crate) to: Target,
    operation: Operation,
    context: Context,
    report: bool,
    length: usize,
    /// Where what comes back goes: a read's data, an atomic's result.
    destination: Option<B>,
    /// Parts that are not answered yet.
    parts: usize,
    /// What the answer to each part costs, if the parts go by message (see `request`).
    pub(crate) answer_cost: u32,
    /// The first bad answer.
    status: Status,
    /// Completion data to send to the target afterwards.
    data: Option<u64>,
    /// Whether the target wants to hear of the end even without completion data.
    counted: bool,
}

impl<B> RemoteOperation<B> {
    pub(crate) fn new(to: Target, operation: Operation, context: Context, report: bool, length: usize) -> Self {
        // The submitter holds a part of its own while it issues the others.
        RemoteOperation {
            to,
            operation,
            context,
            report,
            length,
            destination: None,
            parts: 1,
            answer_cost: answer_cost(0),
            status: Status::Success,
            data: None,
            counted: false,
        }
    }

    pub(crate) fn with_destination(mut self, destination: Option<B>) -> Self {
        self.destination = destination;
        self
    }

    pub(crate) fn add_parts(&mut self, parts: usize) {
        self.parts += parts;
    }

    /// Whether it counts as a write at its target: writes and atomics without result do (`FI_REMOTE_WRITE`).
    fn changes_target(&self) -> bool {
        match self.operation {
            Operation::Write => true,
            Operation::Atomic => self.destination.is_none(),
            _ => false,
        }
    }

    pub(crate) fn destination_mut(&mut self) -> Option<&mut B> {
        self.destination.as_mut()
    }
}

impl<L: Link> Endpoint<L> {
    /// Lets peers address `buffer` by `key`, for what `access` lists. A second registration replaces the first. (A link that
    /// gives direct access publishes the region itself.)
    pub fn register(&mut self, key: u64, buffer: L::Buffer, access: &[Access]) {
        let (read, write) = (access.contains(&Access::Read), access.contains(&Access::Write));
        self.regions.insert(key, Region { buffer, read, write });
    }

    /// Ends that. Reads of the region that are under way are answered with an error.
    pub fn deregister(&mut self, key: u64) {
        self.regions.remove(&key);
        self.deny_reads(key);
    }

    /// Whether writes and atomics of peers that bring no completion data are reported as well, as [`Operation::RemoteWrite`]
    /// without data. It holds for accesses that come by message: who asks for it keeps the link from giving direct access.
    pub fn count_writes(&mut self, count: bool) {
        self.counts_writes = count;
    }

    /// The part of a region that an access names, if it is allowed.
    pub(crate) fn find_region(&self, key: u64, offset: u64, length: usize, access: Access) -> Option<L::Buffer> {
        let region = self.regions.get(&key)?;
        let allowed = match access {
            Access::Read => region.read,
            Access::Write => region.write,
        };
        let offset = usize::try_from(offset).ok()?;
        let end = offset.checked_add(length)?;
        (allowed && end <= region.buffer.len()).then(|| region.buffer.slice(offset, length))
    }

    /// RMA write. All places must be on the same target.
    pub fn write(&mut self, write: WriteRequest<L::Buffer>) -> Result<(), TryAgain> {
        self.check_room()?;
        self.count(Counter::RmaOperations, 1);
        let Some(&(first, _)) = write.to.first() else { return Ok(()) };
        let length = write.buffer.len();
        let mut operation = RemoteOperation::new(first.to, Operation::Write, write.context, write.report, length);
        operation.data = write.data;
        let key = self.operations.insert(operation);
        let mut offset = 0;
        for &(target, bytes) in &write.to {
            let bytes = clip(bytes, length - offset);
            self.write_part(key, target, &write.buffer, offset, bytes, write.inject);
            offset += bytes;
        }
        self.end_part(key, Status::Success);
        Ok(())
    }

    fn write_part(
        &mut self,
        key: Key,
        target: RemoteTarget,
        buffer: &L::Buffer,
        offset: usize,
        bytes: usize,
        inject: bool,
    ) {
        let Target::Peer(peer) = target.to else {
            let found = self.find_region(target.key, target.offset, bytes, Access::Write);
            let status = if found.is_some() { Status::Success } else { Status::Denied };
            if let Some(mut region) = found {
                copy(buffer, offset, &mut region, 0, bytes);
            }
            return self.fail_part(key, status);
        };
        if let Some(span) = self.direct_span(peer, target, bytes, Access::Write) {
            let part = buffer.slice(offset, bytes);
            let transfer = TransferId(self.bulk.begin_transfer(TransferOwner::Operation(key)).0);
            let status = self.link.write_peer(transfer, peer, &[span], &part, 0);
            if self.has_begun(key, transfer, status) {
                return;
            }
        }
        if self.fail_if_lost(key, peer) {
            return;
        }
        self.add_parts(key, Self::pieces(bytes));
        let buffer = buffer.slice(offset, bytes);
        let mut rest =
            WriteRest { operation: key, region: target.key, offset: target.offset, buffer, position: 0, end: bytes };
        if !inject {
            return self.request_write(peer, rest);
        }
        for _ in 0..Self::pieces(bytes) {
            self.request(peer, rest.next_piece(), key, answer_cost(0));
        }
    }

    /// RMA read. All places must be on the same target.
    pub fn read(&mut self, read: ReadRequest<L::Buffer>) -> Result<(), TryAgain> {
        self.check_room()?;
        self.count(Counter::RmaOperations, 1);
        let Some(&(first, _)) = read.from.first() else { return Ok(()) };
        let length = read.buffer.len();
        let whole = read.buffer.slice(0, length);
        let operation = RemoteOperation::new(first.to, Operation::Read, read.context, read.report, length);
        let key = self.operations.insert(operation.with_destination(Some(whole)));
        let mut buffer = read.buffer;
        let mut offset = 0;
        for &(target, bytes) in &read.from {
            let bytes = clip(bytes, length - offset);
            self.read_part(key, target, &mut buffer, offset, bytes);
            offset += bytes;
        }
        self.end_part(key, Status::Success);
        Ok(())
    }

    fn read_part(&mut self, key: Key, target: RemoteTarget, buffer: &mut L::Buffer, offset: usize, bytes: usize) {
        let Target::Peer(peer) = target.to else {
            let found = self.find_region(target.key, target.offset, bytes, Access::Read);
            let status = if found.is_some() { Status::Success } else { Status::Denied };
            if let Some(region) = found {
                copy(&region, 0, buffer, offset, bytes);
            }
            return self.fail_part(key, status);
        };
        if let Some(span) = self.direct_span(peer, target, bytes, Access::Read) {
            let transfer = TransferId(self.bulk.begin_transfer(TransferOwner::Operation(key)).0);
            let mut part = buffer.slice(offset, bytes);
            let status = self.link.read_peer(transfer, peer, &[span], &mut part, 0);
            if self.has_begun(key, transfer, status) {
                return;
            }
        }
        if self.fail_if_lost(key, peer) {
            return;
        }
        self.add_parts(key, 1);
        let (region, place, length) = (target.key, target.offset, bytes as u64);
        let head = Read { operation: key.0, position: offset as u64, region, offset: place, length };
        let message = Outgoing::new(head, Body::None, None);
        self.request(peer, message, key, answer_cost(0));
    }

    /// Where a part of an operation lies in the target's memory, if we can reach it without the target.
    fn direct_span(&mut self, peer: PeerId, target: RemoteTarget, bytes: usize, access: Access) -> Option<crate::Span> {
        if bytes == 0 || self.presence.lost(peer).is_some() || !self.link.reaches_memory(peer) {
            return None;
        }
        self.link.find_region(peer, target.key, target.offset, bytes as u64, access)
    }

    /// Whether a direct transfer is a part of its operation. If not, the target has to be asked by message.
    fn has_begun(&mut self, key: Key, transfer: TransferId, status: TransferStatus) -> bool {
        match status {
            TransferStatus::Unreachable => {
                self.bulk.end_transfer(Key(transfer.0));
                return false;
            }
            TransferStatus::Pending => {
                self.add_parts(key, 1);
            }
            TransferStatus::Done | TransferStatus::Failed => {
                self.add_parts(key, 1);
                self.end_transfer(transfer, status);
            }
        }
        true
    }

    /// Fails an operation towards a peer that is gone. Returns whether it did.
    pub(crate) fn fail_if_lost(&mut self, key: Key, peer: PeerId) -> bool {
        let lost = self.presence.lost(peer).is_some();
        if lost && let Some(operation) = self.operations.get_mut(key) {
            operation.status = Status::Fault;
        }
        lost
    }

    /// Adds parts to an operation. Returns what the answer to each costs.
    pub(crate) fn add_parts(&mut self, key: Key, parts: usize) -> u32 {
        let Some(operation) = self.operations.get_mut(key) else { return 0 };
        operation.add_parts(parts);
        operation.answer_cost
    }

    /// Records how a part went, without ending it.
    pub(crate) fn fail_part(&mut self, key: Key, status: Status) {
        if let Some(operation) = self.operations.get_mut(key)
            && operation.status == Status::Success
        {
            operation.status = status;
        }
    }

    /// A part of an operation is answered; the last one completes it.
    pub(crate) fn end_part(&mut self, key: Key, status: Status) {
        self.fail_part(key, status);
        let Some(operation) = self.operations.get_mut(key) else { return };
        operation.parts -= 1;
        if operation.parts == 0 {
            self.end_operation(key, None);
        }
    }

    /// An operation is over, with `lost` because its peer is gone.
    pub(crate) fn end_operation(&mut self, key: Key, lost: Option<&str>) {
        let Some(operation) = self.operations.remove(key) else { return };
        let peer_lost = match operation.to {
            Target::Peer(peer) => self.presence.lost(peer).map(|lost| lost.name.clone()),
            Target::Myself => None,
        };
        let result = match (lost.map(str::to_owned).or(peer_lost), operation.status) {
            (Some(peer), _) if lost.is_some() || operation.status != Status::Success => Err(Failure::PeerLost { peer }),
            (_, Status::Success) => Ok(()),
            (_, Status::Denied) => Err(Failure::Denied),
            (_, Status::Unsupported) => Err(Failure::Unsupported),
            (_, Status::Fault) => Err(Failure::Fault),
        };
        let counted = operation.changes_target() && (operation.counted || self.counts_own(operation.to));
        if result.is_ok() && (operation.data.is_some() || counted) {
            self.notify_target(operation.to, operation.length, operation.data);
        }
        if operation.report || result.is_err() {
            self.complete_operation(&operation, result);
        }
    }

    fn complete_operation(&mut self, operation: &RemoteOperation<L::Buffer>, result: Result<(), Failure>) {
        let RemoteOperation { context, operation, length, .. } = *operation;
        self.completions.push_back(Completion::remote(context, operation, length, result));
    }

    /// Ends an operation that is given up. `None`: it is over; else whether the application would have been told of its success.
    pub(crate) fn cancel_operation(&mut self, key: Key) -> Option<bool> {
        let operation = self.operations.remove(key)?;
        self.complete_operation(&operation, Err(Failure::Canceled));
        Some(operation.report)
    }

    /// Whether the target is this endpoint and counts writes.
    fn counts_own(&self, to: Target) -> bool {
        self.counts_writes && to == Target::Myself
    }

    /// Tells the target of a write that is complete, with its completion data.
    fn notify_target(&mut self, to: Target, length: usize, data: Option<u64>) {
        match to {
            Target::Myself => self.complete_remote_write(Target::Myself, length, data),
            Target::Peer(peer) => {
                self.tell(peer, WriteNotice { length: length as u64, data });
            }
        }
    }

    fn complete_remote_write(&mut self, source: Target, length: usize, data: Option<u64>) {
        self.completions.push_back(Completion::remote_write(source, length, data));
    }

    pub(crate) fn handle_write_notice(&mut self, from: PeerId, notice: &WriteNotice) -> Result<(), Malformed> {
        if notice.data.is_none() && !self.counts_writes {
            return Err(Malformed);
        }
        self.complete_remote_write(Target::Peer(from), notice.length as usize, notice.data);
        Ok(())
    }

    /// Answers a part of a peer's operation.
    pub(crate) fn reply(&mut self, to: PeerId, operation: u32, status: Status, offset: u32, body: Body<L::Buffer>) {
        let head = Reply { operation, status, is_counted: self.counts_writes, position: offset };
        self.dispatch(to, Outgoing::new(head, body, None), false);
    }

    /// A piece of a peer's write.
    pub(crate) fn handle_write(&mut self, from: PeerId, write: &Write, body: &[u8]) -> Result<(), Malformed> {
        self.admit_request(from, answer_cost(0))?;
        let status = match self.find_region(write.region, write.offset, body.len(), Access::Write) {
            Some(mut region) => {
                write_clipped(&mut region, 0, body);
                Status::Success
            }
            None => Status::Denied,
        };
        self.reply(from, write.operation, status, 0, Body::None);
        Ok(())
    }

    /// A peer wants to read.
    pub(crate) fn handle_read(&mut self, from: PeerId, read: &Read) -> Result<(), Malformed> {
        let &Read { operation, position, region, offset, length } = read;
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        self.admit_request(from, answer_cost(0))?;
        match self.find_region(region, offset, length, Access::Read) {
            Some(_) if length > 0 => {
                let (at, left) = (position, length as u64);
                self.begin_read(from, UnfinishedRead { operation, region, offset, at, left });
            }
            Some(_) => self.reply(from, operation, Status::Success, 0, Body::None),
            None => self.reply(from, operation, Status::Denied, 0, Body::None),
        }
        Ok(())
    }

    /// The first packet of a read's data: where it goes, if an operation waits for it.
    pub(crate) fn admit_read_data(
        &mut self,
        from: PeerId,
        key: Key,
        at: u64,
        length: usize,
    ) -> Result<usize, Malformed> {
        let operation = self.operations.get(key).ok_or(Malformed)?;
        let ours = operation.to == Target::Peer(from) && operation.operation == Operation::Read;
        let at = usize::try_from(at).map_err(|_| Malformed)?;
        let inside = at.checked_add(length).is_some_and(|end| end <= operation.length);
        if ours && inside { Ok(at) } else { Err(Malformed) }
    }

    pub(crate) fn place_read_data(&mut self, key: Key, at: usize, part: &[u8]) {
        if let Some(RemoteOperation { destination: Some(buffer), .. }) = self.operations.get_mut(key) {
            write_clipped(buffer, at, part);
        }
    }

    /// A part of an operation of ours is answered.
    pub(crate) fn handle_reply(&mut self, from: PeerId, reply: &Reply, body: &[u8]) -> Result<(), Malformed> {
        let key = Key(reply.operation);
        let operation = self.operations.get_mut(key).ok_or(Malformed)?;
        if operation.to != Target::Peer(from) {
            return Err(Malformed);
        }
        self.peers[from.0 as usize].requests.note_answer(operation.answer_cost)?;
        operation.counted |= reply.is_counted;
        if let (Some(buffer), false) = (&mut operation.destination, body.is_empty()) {
            write_clipped(buffer, reply.position as usize, body);
        }
        self.end_part(key, reply.status);
        Ok(())
    }
}

/// As many of `bytes` as the buffer has left.
fn clip(bytes: u64, left: usize) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX).min(left)
}
