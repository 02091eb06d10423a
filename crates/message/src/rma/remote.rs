//! RMA reads and writes: what is submitted, what peers request, and how it ends.

use super::Rma;
use super::batch::BatchedPart;
use super::operation::{Place, Regions, RemoteOperation};
use super::request::{UnfinishedRead, WriteRest};
use crate::account::answer_cost;
use crate::assembly::write_clipped;
use crate::collections::slab::Key;
use crate::completion::Operation;
use crate::counter::Counter;
use crate::deferral::Rooms;
use crate::egress::Body;
use crate::link::{BatchPiece, Buffer, Link, RemoteMemory, TransferId, TransferStatus, copy};
use crate::malformed::{Handled, Malformed};
use crate::operation::{Access, ReadRequest, RemoteTarget, Target, WriteRequest};
use crate::port::{Port, TransferOwner};
use crate::wire::{Read, Reply, Status, Write};
use tidegate_flow::PeerId;

impl<L: Link> Rma<L> {
    /// Lets peers address `buffer` by `key`. A second registration replaces the first.
    pub(crate) fn register(&mut self, key: u64, buffer: L::Buffer, access: &[Access]) {
        self.regions.register(key, buffer, access);
    }

    /// Ends a registration, and with it the reads of the region.
    pub(crate) fn deregister(&mut self, port: &mut Port<L>, key: u64) {
        self.regions.deregister(key);
        self.counting.forget_region(key);
        self.deny_reads(port, key);
    }

    /// Starts a write, by message or, if it `may_be_direct`, straight into the target's memory.
    #[inline]
    pub(crate) fn start_write(
        &mut self,
        port: &mut Port<L>,
        rooms: &mut Rooms,
        write: WriteRequest<L::Buffer>,
        may_be_direct: bool,
    ) {
        port.count(Counter::RmaOperations, 1);
        let Some(&(first, _)) = write.to.first() else { return };
        let length = write.buffer.len();
        let operation = RemoteOperation::new(first.to, Operation::Write, write.context, write.report, length);
        let mut operation = operation.with_regions(Regions::of(&write.to));
        (operation.data, operation.must_tell) = (write.data, write.to.len() > 1);
        port.egress.attention.begin();
        let key = self.operations.begin(operation);
        let mut offset = 0;
        for &(target, bytes) in &write.to {
            let bytes = clip(bytes, length - offset);
            self.write_part(port, rooms, key, &write, Place { target, offset, bytes, is_last: false }, may_be_direct);
            offset += bytes;
        }
        self.end_part(port, key, Status::Success);
    }

    fn write_part(
        &mut self,
        port: &mut Port<L>,
        rooms: &mut Rooms,
        key: Key,
        write: &WriteRequest<L::Buffer>,
        place: Place,
        may_be_direct: bool,
    ) {
        let WriteRequest { buffer, inject, .. } = write;
        let Place { target, offset, bytes, .. } = place;
        let Target::Peer(peer) = target.to else {
            let found = self.regions.find(target.key, target.offset, bytes, Access::Write);
            let status = if found.is_some() { Status::Success } else { Status::Denied };
            if let Some(mut region) = found {
                copy(buffer, offset, &mut region, 0, bytes);
            }
            return self.operations.note_part(key, status);
        };
        // Of any other write a notice tells the target, which comes behind all of its parts.
        let is_told = write.data.is_some() || write.to.len() > 1;
        // What is injected may change before a transfer ends that goes on after the call.
        let may_be_direct = may_be_direct && (!*inject || port.link.capabilities(peer).is_synchronous);
        let mut direct = None;
        if may_be_direct {
            direct = self.direct_memory(port, peer, target, bytes, Access::Write);
        }
        // The target of completion data may wait for it though we do not call again. Of what is injected a copy waits.
        if let Some((there, granted)) = direct
            && write.data.is_none()
            && self.may_wait(port, peer, bytes)
        {
            let is_told_direct = granted == Access::ToldWrite;
            let part = BatchedPart { operation: key, target, offset, is_last: false, is_told, is_told_direct };
            let here = buffer.slice(offset, bytes);
            let piece = BatchPiece::new(there, if *inject { here.copied() } else { here });
            return self.let_wait(port, rooms, (peer, Access::Write), piece, part);
        }
        self.send_batch(port, rooms);
        if let Some((there, granted)) = direct {
            self.batch.note_access();
            let part = buffer.slice(offset, bytes);
            let transfer = TransferId(port.transfers.begin(TransferOwner::Operation(key), bytes).0);
            let status = port.link.write_peer(transfer, peer, &[there], &part, 0);
            if self.has_begun(port, key, transfer, status) {
                return if granted == Access::ToldWrite {
                    self.operations.note_told(key)
                };
            }
        }
        if self.fail_if_lost(port, key, peer) {
            return;
        }
        // The rest of a write is a part, and each piece that leaves before the last is another.
        self.operations.add_parts(key, 1);
        let buffer = buffer.slice(offset, bytes);
        let (operation, region, offset) = (key, target.key, target.offset);
        let mut rest = WriteRest { operation, region, offset, buffer, position: 0, end: bytes, is_told };
        if !*inject {
            return self.request_write(port, rooms, peer, rest);
        }
        loop {
            let piece = self.next_piece(rooms, peer, &mut rest);
            self.request(port, rooms, peer, piece, key, answer_cost(0));
            if rest.is_over() {
                break;
            }
        }
    }

    /// Starts a read, by message or, if it `may_be_direct`, straight from the target's memory.
    #[inline]
    pub(crate) fn start_read(
        &mut self,
        port: &mut Port<L>,
        rooms: &mut Rooms,
        read: ReadRequest<L::Buffer>,
        may_be_direct: bool,
    ) {
        port.count(Counter::RmaOperations, 1);
        let Some(&(first, _)) = read.from.first() else { return };
        let length = read.buffer.len();
        let whole = read.buffer.slice(0, length);
        let operation = RemoteOperation::new(first.to, Operation::Read, read.context, read.report, length);
        let operation = operation.with_regions(Regions::of(&read.from));
        port.egress.attention.begin();
        let key = self.operations.begin(operation.with_destination(Some(whole)));
        let mut buffer = read.buffer;
        if may_be_direct && read.from.len() > 1 && self.read_at_once(port, rooms, key, &mut buffer, &read.from) {
            return self.end_part(port, key, Status::Success);
        }
        let (mut offset, mut left) = (0, read.from.len());
        for &(target, bytes) in &read.from {
            let bytes = clip(bytes, length - offset);
            left -= 1;
            let is_last = left == 0;
            self.read_part(port, rooms, key, &mut buffer, Place { target, offset, bytes, is_last }, may_be_direct);
            offset += bytes;
        }
        self.end_part(port, key, Status::Success);
    }

    /// Reads all the places of an operation in one transfer, if each can be reached directly: a system call for each
    /// would take most of the time, where they are short. `false`: nothing has begun.
    fn read_at_once(
        &mut self,
        port: &mut Port<L>,
        rooms: &mut Rooms,
        key: Key,
        buffer: &mut L::Buffer,
        from: &[(RemoteTarget, u64)],
    ) -> bool {
        let mut left = buffer.len();
        let mut there = Vec::with_capacity(from.len());
        let mut peers = from.iter().map(|(target, _)| target.to);
        let Some(Target::Peer(peer)) = peers.next().filter(|first| peers.all(|other| other == *first)) else {
            return false;
        };
        for &(target, bytes) in from {
            let bytes = clip(bytes, left);
            left -= bytes;
            match self.direct_memory(port, peer, target, bytes, Access::Read) {
                Some((place, _)) => there.push(place),
                None => return false,
            }
        }
        let longest = there.iter().map(|place| place.span.length).max().unwrap_or(0);
        if self.may_wait(port, peer, usize::try_from(longest).unwrap_or(usize::MAX)) {
            let mut offset = 0;
            for (at, (&(target, _), there)) in from.iter().zip(there).enumerate() {
                let bytes = there.span.length as usize;
                let (is_last, is_told, is_told_direct) = (at + 1 == from.len(), false, false);
                let part = BatchedPart { operation: key, target, offset, is_last, is_told, is_told_direct };
                let piece = BatchPiece::new(there, buffer.slice(offset, bytes));
                self.let_wait(port, rooms, (peer, Access::Read), piece, part);
                offset += bytes;
            }
            return true;
        }
        self.send_batch(port, rooms);
        self.batch.note_access();
        self.read_directly(port, key, peer, &there, buffer.slice(0, buffer.len() - left))
    }

    /// Reads places of a peer's memory. `false`: they have to be read by message.
    fn read_directly(
        &mut self,
        port: &mut Port<L>,
        key: Key,
        peer: PeerId,
        there: &[RemoteMemory],
        mut into: L::Buffer,
    ) -> bool {
        let transfer = TransferId(port.transfers.begin(TransferOwner::Operation(key), into.len()).0);
        let status = port.link.read_peer(transfer, peer, there, &mut into, 0);
        self.has_begun(port, key, transfer, status)
    }

    fn read_part(
        &mut self,
        port: &mut Port<L>,
        rooms: &mut Rooms,
        key: Key,
        buffer: &mut L::Buffer,
        place: Place,
        may_be_direct: bool,
    ) {
        let Place { target, offset, bytes, is_last } = place;
        let Target::Peer(peer) = target.to else {
            let found = self.regions.find(target.key, target.offset, bytes, Access::Read);
            let status = if found.is_some() { Status::Success } else { Status::Denied };
            if let Some(region) = found {
                copy(&region, 0, buffer, offset, bytes);
            }
            return self.operations.note_part(key, status);
        };
        let mut direct = None;
        if may_be_direct {
            direct = self.direct_memory(port, peer, target, bytes, Access::Read);
        }
        if let Some((there, _)) = direct
            && self.may_wait(port, peer, bytes)
        {
            let (is_told, is_told_direct) = (false, false);
            let part = BatchedPart { operation: key, target, offset, is_last, is_told, is_told_direct };
            let piece = BatchPiece::new(there, buffer.slice(offset, bytes));
            return self.let_wait(port, rooms, (peer, Access::Read), piece, part);
        }
        self.send_batch(port, rooms);
        if let Some((there, _)) = direct {
            self.batch.note_access();
            if self.read_directly(port, key, peer, &[there], buffer.slice(offset, bytes)) {
                return;
            }
        }
        if !self.fail_if_lost(port, key, peer) {
            self.operations.add_parts(key, 1);
            self.request_read(port, rooms, key, peer, place);
        }
    }

    /// Where a part of an operation lies in the target's memory, and what is granted there, if we can reach it without
    /// the target.
    fn direct_memory(
        &mut self,
        port: &mut Port<L>,
        peer: PeerId,
        target: RemoteTarget,
        bytes: usize,
        access: Access,
    ) -> Option<(RemoteMemory, Access)> {
        let is_gone = port.presence.lost(peer).is_some() || port.presence.is_given_up(peer);
        if bytes == 0 || is_gone || !port.link.capabilities(peer).reaches_memory {
            return None;
        }
        port.link.find_region(peer, target.key, target.offset, bytes as u64, access)
    }

    /// Whether a direct transfer is a part of its operation. If not, the part has to go by message.
    fn has_begun(&mut self, port: &mut Port<L>, key: Key, transfer: TransferId, status: TransferStatus) -> bool {
        match status {
            TransferStatus::Unreachable => {
                port.transfers.end(Key(transfer.0));
                return false;
            }
            TransferStatus::Pending => self.operations.add_transfer(key),
            TransferStatus::Done | TransferStatus::Failed => {
                self.operations.add_transfer(key);
                port.transfers.end(Key(transfer.0));
                self.end_transfer_part(port, key, status);
            }
        }
        true
    }

    /// A piece of a peer's write.
    pub(crate) fn handle_write(&mut self, port: &mut Port<L>, from: PeerId, write: &Write, body: &[u8]) -> Handled {
        self.admit_request(port, from, answer_cost(0))?;
        let status = match self.regions.find(write.region, write.offset, body.len(), Access::Write) {
            Some(mut region) => {
                write_clipped(&mut region, 0, body);
                if let Some(length) = write.whole {
                    let source = Target::Peer(from);
                    self.note_at_target(port, Operation::RemoteWrite, write.region, source, length as usize);
                }
                Status::Success
            }
            None => Status::Denied,
        };
        self.reply(port, from, write.operation, status, 0, Body::None);
        Ok(())
    }

    /// A peer wants to read.
    pub(crate) fn handle_read(&mut self, port: &mut Port<L>, from: PeerId, read: &Read) -> Handled {
        let &Read { operation, position, region, offset, length, is_last } = read;
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        self.admit_request(port, from, answer_cost(0))?;
        match self.regions.find(region, offset, length, Access::Read) {
            Some(_) if length > 0 => {
                let (at, left) = (position, length as u64);
                self.begin_read(port, from, UnfinishedRead { operation, is_last, region, offset, at, left });
            }
            Some(_) => {
                let nothing = UnfinishedRead { operation, is_last, region, offset, at: position, left: 0 };
                self.note_read(port, from, &nothing, Status::Success);
                self.reply(port, from, operation, Status::Success, 0, Body::None);
            }
            None => self.reply(port, from, operation, Status::Denied, 0, Body::None),
        }
        Ok(())
    }

    pub(crate) fn place_read_data(&mut self, key: Key, at: usize, part: &[u8]) {
        if let Some(buffer) = self.operations.destination_mut(key) {
            write_clipped(buffer, at, part);
        }
    }

    /// A part of an operation of ours is answered.
    pub(crate) fn handle_reply(&mut self, port: &mut Port<L>, from: PeerId, reply: &Reply, body: &[u8]) -> Handled {
        let key = Key(reply.operation);
        let cost = self.operations.cost_for(from, key)?;
        self.requests.note_answer(from, cost)?;
        self.operations.note_reply(key, reply);
        if let (Some(buffer), false) = (self.operations.destination_mut(key), body.is_empty()) {
            write_clipped(buffer, reply.position as usize, body);
        }
        self.end_part(port, key, reply.status);
        Ok(())
    }
}

/// As many of `bytes` as the buffer has left.
fn clip(bytes: u64, left: usize) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX).min(left)
}
