//! Remote atomics. The target applies them, one message after the other, so they are atomic among each other, from
//! whatever origins they come; they move by message always, also where RMA goes straight to memory.

use super::Rma;
use super::apply::{AtomicError, AtomicInput, apply};
use super::counting::at_target;
use super::operation::{Regions, RemoteOperation};
use crate::account::answer_cost;
use crate::assembly::write_clipped;
use crate::collections::slab::Key;
use crate::completion::Operation;
use crate::control_size::ControlSize;
use crate::counter::Counter;
use crate::deferral::Rooms;
use crate::egress::{Body, Outgoing};
use crate::link::{Buffer, Link};
use crate::malformed::{Handled, Malformed};
use crate::operation::{Access, AtomicKind, AtomicOp, AtomicRequest, AtomicType, RemoteTarget, Target};
use crate::port::Port;
use crate::wire::{Atomic, Ends, Status};
use tidegate_flow::PeerId;

/// One message's worth of an atomic.
#[derive(Clone, Copy)]
struct Part {
    /// Where it lies in the operation's buffers.
    offset: usize,
    datatype: AtomicType,
    op: AtomicOp,
    wants_result: bool,
    elements: usize,
    ends: Ends,
}

impl Part {
    fn bytes(&self) -> usize {
        self.elements * self.datatype.size()
    }

    /// Applies operand and comparison (`input`, in that order) to the region. Returns the old values.
    fn apply<B: Buffer>(&self, region: &mut B, input: &[u8]) -> Result<Vec<u8>, AtomicError> {
        let operand_bytes = if self.op == AtomicOp::Read { 0 } else { self.bytes() };
        let (operand, compare) = input.split_at_checked(operand_bytes).ok_or(AtomicError::Length)?;
        let mut target = vec![0; self.bytes()];
        region.read(0, &mut target);
        let mut old = vec![0; self.bytes()];
        apply(self.datatype, self.op, &mut target, AtomicInput { operand, compare }, Some(&mut old))?;
        if self.op.writes() {
            region.write(0, &target);
        }
        Ok(old)
    }
}

impl<L: Link> Rma<L> {
    /// Starts an atomic.
    #[inline]
    pub(crate) fn start_atomic(&mut self, port: &mut Port<L>, rooms: &mut Rooms, atomic: AtomicRequest<L::Buffer>) {
        port.count(Counter::AtomicOperations, 1);
        let Some(&(first, _)) = atomic.to.first() else { return };
        self.send_batch(port, rooms);
        let (destination, compare) = match atomic.kind {
            AtomicKind::Update => (None, None),
            AtomicKind::Fetch { result } => (Some(result), None),
            AtomicKind::Compare { result, compare } => (Some(result), Some(compare)),
        };
        let size = atomic.datatype.size();
        let elements = atomic.to.iter().map(|&(_, elements)| elements as usize).fold(0, usize::saturating_add);
        debug_assert!(elements.checked_mul(size).is_some_and(|bytes| u32::try_from(bytes).is_ok()), "as is asked for");
        let wants_result = destination.is_some();
        let operation =
            RemoteOperation::new(first.to, Operation::Atomic, atomic.context, atomic.report, elements * size);
        let mut operation = operation.with_destination(destination).with_regions(Regions::of(&atomic.to));
        operation.at_target = at_target(atomic.op, wants_result);
        // The answer to the longest part is the dearest.
        let operand_bytes = Self::control_size(port, rooms, first.to, wants_result).operand_bytes();
        let result_bytes = if wants_result { elements.saturating_mul(size).min(operand_bytes) } else { 0 };
        operation.answer_cost = answer_cost(result_bytes);
        port.egress.attention.begin();
        let key = self.operations.begin(operation);
        let mut offset = 0;
        for (index, &(target, elements)) in atomic.to.iter().enumerate() {
            let mut left = elements as usize;
            let mut target = target;
            while left > 0 {
                let now = left.min(operand_bytes / size);
                let ends = if now == left { end_of(&atomic.to[index..]) } else { Ends::Nothing };
                let AtomicRequest { datatype, op, .. } = atomic;
                let part = Part { offset, datatype, op, wants_result, elements: now, ends };
                let input = gather(&atomic.operand, compare.as_ref(), offset, part.bytes(), atomic.op);
                self.atomic_part(port, rooms, key, target, part, input);
                offset += part.bytes();
                // Past the end of the address space is outside of any region, not at its beginning.
                target.offset = target.offset.saturating_add(part.bytes() as u64);
                left -= part.elements;
            }
        }
        self.end_part(port, key, Status::Success);
    }

    /// The size that both memories have room for: the target's for the request, ours for an answer with a result.
    fn control_size(port: &mut Port<L>, rooms: &mut Rooms, to: Target, wants_result: bool) -> ControlSize {
        let Target::Peer(to) = to else { return ControlSize::MOST };
        rooms.meet_once(port, to);
        if wants_result { rooms.common_control_size(port, to) } else { rooms.limits(to).control }
    }

    fn atomic_part(
        &mut self,
        port: &mut Port<L>,
        rooms: &mut Rooms,
        key: Key,
        target: RemoteTarget,
        part: Part,
        input: Vec<u8>,
    ) {
        let Target::Peer(peer) = target.to else {
            let (status, old) = self.apply_atomic(target.key, target.offset, part, &input);
            if let Some(destination) = self.operations.destination_mut(key) {
                write_clipped(destination, part.offset, &old);
            }
            return self.operations.note_part(key, status);
        };
        if self.fail_if_lost(port, key, peer) {
            return;
        }
        let cost = self.operations.add_parts(key, 1);
        let Part { offset, datatype, op, wants_result, elements, ends } = part;
        let head = Atomic {
            operation: key.0,
            position: offset as u32,
            region: target.key,
            offset: target.offset,
            datatype,
            op,
            wants_result,
            elements: elements as u16,
            ends,
        };
        let body = if input.is_empty() { Body::None } else { Body::Owned(input.into_boxed_slice()) };
        self.request(port, rooms, peer, Outgoing::new(head, body, None), key, cost);
    }

    /// A peer's atomic.
    pub(crate) fn handle_atomic(&mut self, port: &mut Port<L>, from: PeerId, atomic: &Atomic, body: &[u8]) -> Handled {
        let &Atomic { datatype, op, wants_result, elements, ends, .. } = atomic;
        let part = Part { offset: 0, datatype, op, wants_result, elements: elements.into(), ends };
        if part.bytes() > port.limits_of(from).control.operand_bytes() {
            return Err(Malformed);
        }
        self.admit_request(port, from, answer_cost(if part.wants_result { part.bytes() } else { 0 }))?;
        let (status, old) = self.apply_atomic(atomic.region, atomic.offset, part, body);
        if status == Status::Success {
            self.note_atomic(port, from, atomic, part.bytes());
        }
        let body = if part.wants_result && !old.is_empty() { Body::Owned(old.into_boxed_slice()) } else { Body::None };
        self.reply(port, from, atomic.operation, status, atomic.position, body);
        Ok(())
    }

    fn apply_atomic(&mut self, key: u64, offset: u64, part: Part, input: &[u8]) -> (Status, Vec<u8>) {
        let access = if part.op.writes() { Access::Write } else { Access::Read };
        // An origin that gets the old values reads them, so the region must allow that.
        let readable = !part.wants_result || self.regions.find(key, offset, part.bytes(), Access::Read).is_some();
        let Some(mut region) = self.regions.find(key, offset, part.bytes(), access).filter(|_| readable) else {
            return (Status::Denied, Vec::new());
        };
        match part.apply(&mut region, input) {
            Ok(old) => (Status::Success, old),
            Err(AtomicError::Unsupported) => (Status::Unsupported, Vec::new()),
            Err(AtomicError::Length) => (Status::Fault, Vec::new()),
        }
    }
}

/// The end that the last part in the first of these places brings. These are the places that are left.
fn end_of(places: &[(RemoteTarget, u64)]) -> Ends {
    match places.split_first() {
        Some(((this, _), later)) if later.iter().any(|(_, elements)| *elements > 0) => {
            let goes_on = later.iter().any(|(place, elements)| place.key == this.key && *elements > 0);
            if goes_on { Ends::Nothing } else { Ends::Region }
        }
        _ => Ends::Operation,
    }
}

/// The operand and what to compare, from `offset` on, as one message's body.
fn gather<B: Buffer>(operand: &B, compare: Option<&B>, offset: usize, bytes: usize, op: AtomicOp) -> Vec<u8> {
    let mut input = Vec::with_capacity(2 * bytes);
    let operand = (op != AtomicOp::Read).then_some(operand);
    for buffer in operand.into_iter().chain(compare) {
        let start = input.len();
        input.resize(start + bytes, 0);
        let inside = bytes.min(buffer.len().saturating_sub(offset));
        buffer.read(offset, &mut input[start..start + inside]);
    }
    input
}
