//! RMA reads and writes: what is submitted, what peers request, and how it ends.

use super::Endpoint;
use super::loopback::copy;
use crate::account::answer_cost;
use crate::assembly::write_clipped;
use crate::bulk::TransferOwner;
use crate::collections::slab::Key;
use crate::completion::Operation;
use crate::counter::Counter;
use crate::egress::{Body, Outgoing};
use crate::link::{Buffer, Link, RemoteMemory, TransferId, TransferStatus};
use crate::malformed::Malformed;
use crate::operation::{Access, ReadRequest, RemoteTarget, Target, WriteRequest};
use crate::rma::{RemoteOperation, UnfinishedRead, WriteRest, pieces};
use crate::wire::{Read, Reply, Status, Write, WriteNotice};
use std::ops::Range;
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// Lets peers address `buffer` by `key`, for what `access` lists. A second registration replaces the first. (A link
    /// that gives direct access publishes the region itself.)
    pub fn register(&mut self, key: u64, buffer: L::Buffer, access: &[Access]) {
        self.port.egress.attention.raise();
        self.rma.regions.register(key, buffer, access);
    }

    /// Ends the registration of `key`. Reads of the region that are under way are answered with an error.
    pub fn deregister(&mut self, key: u64) {
        self.port.egress.attention.raise();
        self.rma.regions.deregister(key);
        self.deny_reads(key);
        self.end_losses();
    }

    /// Whether writes and atomics of peers that bring no completion data are reported as well, as
    /// [`Operation::RemoteWrite`] without data. Only accesses that come by message can be reported, so a caller that
    /// wants this keeps the link from giving direct access.
    pub fn count_writes(&mut self, count: bool) {
        self.port.egress.attention.raise();
        self.rma.counts_writes = count;
    }

    /// Starts a write, by message or, if it `may_be_direct`, straight into the target's memory.
    #[inline]
    pub(super) fn start_write(&mut self, write: WriteRequest<L::Buffer>, may_be_direct: bool) {
        self.port.count(Counter::RmaOperations, 1);
        let Some(&(first, _)) = write.to.first() else { return };
        let length = write.buffer.len();
        let mut operation = RemoteOperation::new(first.to, Operation::Write, write.context, write.report, length);
        operation.data = write.data;
        self.port.egress.attention.begin();
        let key = self.rma.operations.begin(operation);
        let mut offset = 0;
        for &(target, bytes) in &write.to {
            let bytes = clip(bytes, length - offset);
            self.write_part(key, &write, target, offset..offset + bytes, may_be_direct);
            offset += bytes;
        }
        self.end_part(key, Status::Success);
    }

    fn write_part(
        &mut self,
        key: Key,
        write: &WriteRequest<L::Buffer>,
        target: RemoteTarget,
        part: Range<usize>,
        may_be_direct: bool,
    ) {
        let WriteRequest { buffer, inject, .. } = write;
        let (offset, bytes) = (part.start, part.len());
        let Target::Peer(peer) = target.to else {
            let found = self.rma.regions.find(target.key, target.offset, bytes, Access::Write);
            let status = if found.is_some() { Status::Success } else { Status::Denied };
            if let Some(mut region) = found {
                copy(buffer, offset, &mut region, 0, bytes);
            }
            return self.rma.operations.note_part(key, status);
        };
        // What is injected may change before a transfer ends that goes on after the call.
        let may_be_direct = may_be_direct && (!*inject || self.port.link.capabilities(peer).is_synchronous);
        if may_be_direct && let Some(there) = self.direct_memory(peer, target, bytes, Access::Write) {
            let part = buffer.slice(offset, bytes);
            let transfer = TransferId(self.port.transfers.begin(TransferOwner::Operation(key), bytes).0);
            let status = self.port.link.write_peer(transfer, peer, &[there], &part, 0);
            if self.has_begun(key, transfer, status) {
                return;
            }
        }
        if self.fail_if_lost(key, peer) {
            return;
        }
        self.rma.operations.add_parts(key, pieces(bytes));
        let buffer = buffer.slice(offset, bytes);
        let mut rest =
            WriteRest { operation: key, region: target.key, offset: target.offset, buffer, position: 0, end: bytes };
        if !*inject {
            return self.request_write(peer, rest);
        }
        for _ in 0..pieces(bytes) {
            self.request(peer, rest.next_piece(), key, answer_cost(0));
        }
    }

    /// Starts a read, by message or, if it `may_be_direct`, straight from the target's memory.
    #[inline]
    pub(super) fn start_read(&mut self, read: ReadRequest<L::Buffer>, may_be_direct: bool) {
        self.port.count(Counter::RmaOperations, 1);
        let Some(&(first, _)) = read.from.first() else { return };
        let length = read.buffer.len();
        let whole = read.buffer.slice(0, length);
        let operation = RemoteOperation::new(first.to, Operation::Read, read.context, read.report, length);
        self.port.egress.attention.begin();
        let key = self.rma.operations.begin(operation.with_destination(Some(whole)));
        let mut buffer = read.buffer;
        let mut offset = 0;
        for &(target, bytes) in &read.from {
            let bytes = clip(bytes, length - offset);
            self.read_part(key, target, &mut buffer, offset, bytes, may_be_direct);
            offset += bytes;
        }
        self.end_part(key, Status::Success);
    }

    fn read_part(
        &mut self,
        key: Key,
        target: RemoteTarget,
        buffer: &mut L::Buffer,
        offset: usize,
        bytes: usize,
        may_be_direct: bool,
    ) {
        let Target::Peer(peer) = target.to else {
            let found = self.rma.regions.find(target.key, target.offset, bytes, Access::Read);
            let status = if found.is_some() { Status::Success } else { Status::Denied };
            if let Some(region) = found {
                copy(&region, 0, buffer, offset, bytes);
            }
            return self.rma.operations.note_part(key, status);
        };
        if may_be_direct && let Some(there) = self.direct_memory(peer, target, bytes, Access::Read) {
            let transfer = TransferId(self.port.transfers.begin(TransferOwner::Operation(key), bytes).0);
            let mut part = buffer.slice(offset, bytes);
            let status = self.port.link.read_peer(transfer, peer, &[there], &mut part, 0);
            if self.has_begun(key, transfer, status) {
                return;
            }
        }
        if self.fail_if_lost(key, peer) {
            return;
        }
        self.rma.operations.add_parts(key, 1);
        let (region, place, length) = (target.key, target.offset, bytes as u64);
        let head = Read { operation: key.0, position: offset as u64, region, offset: place, length };
        let message = Outgoing::new(head, Body::None, None);
        self.request(peer, message, key, answer_cost(0));
    }

    /// Where a part of an operation lies in the target's memory, if we can reach it without the target.
    fn direct_memory(
        &mut self,
        peer: PeerId,
        target: RemoteTarget,
        bytes: usize,
        access: Access,
    ) -> Option<RemoteMemory> {
        let is_gone = self.port.presence.lost(peer).is_some() || self.port.presence.is_given_up(peer);
        if bytes == 0 || is_gone || !self.port.link.capabilities(peer).reaches_memory {
            return None;
        }
        self.port.link.find_region(peer, target.key, target.offset, bytes as u64, access)
    }

    /// Whether a direct transfer is a part of its operation. If not, the part has to go by message.
    fn has_begun(&mut self, key: Key, transfer: TransferId, status: TransferStatus) -> bool {
        match status {
            TransferStatus::Unreachable => {
                self.port.transfers.end(Key(transfer.0));
                return false;
            }
            TransferStatus::Pending => self.rma.operations.add_transfer(key),
            TransferStatus::Done | TransferStatus::Failed => {
                self.rma.operations.add_transfer(key);
                self.end_transfer(transfer, status);
            }
        }
        true
    }

    pub(super) fn handle_write_notice(&mut self, from: PeerId, notice: &WriteNotice) -> Result<(), Malformed> {
        if notice.data.is_none() && !self.rma.counts_writes {
            return Err(Malformed);
        }
        self.port.complete_remote_write(Target::Peer(from), notice.length as usize, notice.data);
        Ok(())
    }

    /// A piece of a peer's write.
    pub(super) fn handle_write(&mut self, from: PeerId, write: &Write, body: &[u8]) -> Result<(), Malformed> {
        self.admit_request(from, answer_cost(0))?;
        let status = match self.rma.regions.find(write.region, write.offset, body.len(), Access::Write) {
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
    pub(super) fn handle_read(&mut self, from: PeerId, read: &Read) -> Result<(), Malformed> {
        let &Read { operation, position, region, offset, length } = read;
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        self.admit_request(from, answer_cost(0))?;
        match self.rma.regions.find(region, offset, length, Access::Read) {
            Some(_) if length > 0 => {
                let (at, left) = (position, length as u64);
                self.begin_read(from, UnfinishedRead { operation, region, offset, at, left });
            }
            Some(_) => self.reply(from, operation, Status::Success, 0, Body::None),
            None => self.reply(from, operation, Status::Denied, 0, Body::None),
        }
        Ok(())
    }

    pub(super) fn place_read_data(&mut self, key: Key, at: usize, part: &[u8]) {
        if let Some(buffer) = self.rma.operations.destination_mut(key) {
            write_clipped(buffer, at, part);
        }
    }

    /// A part of an operation of ours is answered.
    pub(super) fn handle_reply(&mut self, from: PeerId, reply: &Reply, body: &[u8]) -> Result<(), Malformed> {
        let key = Key(reply.operation);
        let cost = self.rma.operations.cost_for(from, key)?;
        self.rma.requests.note_answer(from, cost)?;
        self.rma.operations.note_reply(key, reply);
        if let (Some(buffer), false) = (self.rma.operations.destination_mut(key), body.is_empty()) {
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
