//! Remote operations of ours, until all of their parts are answered.

use crate::account::answer_cost;
use crate::collections::slab::{Key, Slab};
use crate::completion::Operation;
use crate::link::Buffer;
use crate::malformed::Malformed;
use crate::operation::{Context, RemoteTarget, Target};
use crate::wire::{Reply, Status};
use tidegate_flow::PeerId;

/// A remote operation of ours.
#[derive(Debug)]
pub(crate) struct RemoteOperation<B> {
    pub(crate) to: Target,
    pub(crate) operation: Operation,
    pub(crate) context: Context,
    pub(crate) report: bool,
    pub(crate) length: usize,
    /// Where what comes back goes: a read's data, an atomic's result.
    destination: Option<B>,
    /// Parts that are not over yet.
    parts: usize,
    /// Those of them that are transfers: no answer ends them.
    transfers: usize,
    /// What the answer to each part costs, if the parts go by message (see `request`).
    pub(crate) answer_cost: u32,
    /// The first bad answer.
    pub(crate) status: Status,
    /// Completion data to send to the target afterwards.
    pub(crate) data: Option<u64>,
    /// Whether the target counts what its peers do.
    pub(crate) counted: bool,
    /// Whether a target that counts has to be told of its end: it is a write in several places, whose pieces may
    /// overtake each other, or a part of it was a direct write.
    pub(crate) must_tell: bool,
    /// The same as its target calls it.
    pub(crate) at_target: Operation,
    /// The regions of its places.
    pub(crate) regions: Regions,
}

/// Where a part of an operation lies: at its target, and in its buffer.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) target: RemoteTarget,
    pub(super) offset: usize,
    pub(super) bytes: usize,
    /// Of a read: whether it is the last part.
    pub(super) is_last: bool,
}

/// The regions of an operation's places, each once. Mostly there is one.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    pub(crate) first: u64,
    pub(crate) further: Vec<u64>,
}

impl Regions {
    pub(crate) fn of(places: &[(RemoteTarget, u64)]) -> Regions {
        let Some(((first, _), others)) = places.split_first() else { return Regions::default() };
        let mut regions = Regions { first: first.key, further: Vec::new() };
        for (place, _) in others {
            if place.key != first.key && !regions.further.contains(&place.key) {
                regions.further.push(place.key);
            }
        }
        regions
    }
}

impl<B> RemoteOperation<B> {
    pub(crate) fn new(to: Target, operation: Operation, context: Context, report: bool, length: usize) -> Self {
        // The first part stands for the submission: the operation cannot end while its other parts are being issued.
        RemoteOperation {
            to,
            operation,
            context,
            report,
            length,
            destination: None,
            parts: 1,
            transfers: 0,
            answer_cost: answer_cost(0),
            status: Status::Success,
            data: None,
            counted: false,
            must_tell: false,
            at_target: if operation == Operation::Read { Operation::RemoteRead } else { Operation::RemoteWrite },
            regions: Regions::default(),
        }
    }

    pub(crate) fn with_destination(mut self, destination: Option<B>) -> Self {
        self.destination = destination;
        self
    }

    pub(crate) fn with_regions(mut self, regions: Regions) -> Self {
        self.regions = regions;
        self
    }
}

/// All remote operations of ours.
#[derive(Debug)]
pub(crate) struct Operations<B>(Slab<RemoteOperation<B>>);

impl<B: Buffer> Operations<B> {
    pub(super) fn new() -> Self {
        Operations(Slab::new())
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn begin(&mut self, operation: RemoteOperation<B>) -> Key {
        self.0.insert(operation)
    }

    pub(crate) fn contains(&self, key: Key) -> bool {
        self.0.get(key).is_some()
    }

    pub(crate) fn all(&self) -> Vec<Key> {
        self.0.keys_where(|_| true)
    }

    pub(crate) fn of_peer(&self, peer: PeerId) -> Vec<Key> {
        self.0.keys_where(|operation| operation.to == Target::Peer(peer))
    }

    /// Whether there is one to this target; looked for from place `from` on, which then is where one was found.
    pub(crate) fn has_any_to(&self, target: Target, from: &mut usize) -> bool {
        self.0.find_around(from, |operation| operation.to == target)
    }

    pub(crate) fn end(&mut self, key: Key) -> Option<RemoteOperation<B>> {
        self.0.remove(key)
    }

    /// Adds parts to an operation. Returns what the answer to each costs.
    pub(crate) fn add_parts(&mut self, key: Key, parts: usize) -> u32 {
        let Some(operation) = self.0.get_mut(key) else { return 0 };
        operation.parts += parts;
        operation.answer_cost
    }

    /// Adds a part that is a transfer.
    pub(crate) fn add_transfer(&mut self, key: Key) {
        if let Some(operation) = self.0.get_mut(key) {
            operation.parts += 1;
            operation.transfers += 1;
        }
    }

    /// A part that is a transfer has ended. Returns whether it was the last.
    pub(crate) fn end_transfer(&mut self, key: Key, status: Status) -> bool {
        if let Some(operation) = self.0.get_mut(key) {
            operation.transfers -= 1;
        }
        self.end_part(key, status)
    }

    /// A part that was to be a transfer goes by message.
    pub(crate) fn turn_transfer(&mut self, key: Key) {
        if let Some(operation) = self.0.get_mut(key) {
            operation.transfers -= 1;
        }
    }

    /// Records how a part went, without ending it. The first that went wrong counts.
    pub(crate) fn note_part(&mut self, key: Key, status: Status) {
        if let Some(operation) = self.0.get_mut(key)
            && operation.status == Status::Success
        {
            operation.status = status;
        }
    }

    /// The target of an operation is gone.
    pub(crate) fn fail(&mut self, key: Key) {
        if let Some(operation) = self.0.get_mut(key) {
            operation.status = Status::Fault;
        }
    }

    /// A part of an operation is answered. Returns whether it was the last.
    pub(crate) fn end_part(&mut self, key: Key, status: Status) -> bool {
        self.note_part(key, status);
        let Some(operation) = self.0.get_mut(key) else { return false };
        operation.parts -= 1;
        operation.parts == 0
    }

    /// Data of a read begins: where it goes, if an operation waits for it.
    pub(crate) fn admit(&self, from: PeerId, key: Key, at: u64, length: usize) -> Result<usize, Malformed> {
        let operation = self.0.get(key).ok_or(Malformed)?;
        let ours = operation.to == Target::Peer(from) && operation.operation == Operation::Read;
        let at = usize::try_from(at).map_err(|_| Malformed)?;
        let inside = at.checked_add(length).is_some_and(|end| end <= operation.length);
        if ours && inside { Ok(at) } else { Err(Malformed) }
    }

    /// Where what comes back goes.
    pub(crate) fn destination_mut(&mut self, key: Key) -> Option<&mut B> {
        self.0.get_mut(key)?.destination.as_mut()
    }

    /// What the answer of a peer to a part of an operation costs. An error if no part of it waits for an answer of this
    /// peer.
    pub(crate) fn cost_for(&self, from: PeerId, key: Key) -> Result<u32, Malformed> {
        let is_asked = |operation: &&RemoteOperation<B>| {
            operation.to == Target::Peer(from) && operation.parts > operation.transfers
        };
        self.0.get(key).filter(is_asked).map(|operation| operation.answer_cost).ok_or(Malformed)
    }

    /// A part was a direct write, and the target counts.
    pub(crate) fn note_told(&mut self, key: Key) {
        if let Some(operation) = self.0.get_mut(key) {
            (operation.counted, operation.must_tell) = (true, true);
        }
    }

    /// Notes from an answer whether the target counts.
    pub(crate) fn note_reply(&mut self, key: Key, reply: &Reply) {
        if let Some(operation) = self.0.get_mut(key) {
            operation.counted |= reply.is_counted;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bytes;

    const A: PeerId = PeerId(0);
    const B: PeerId = PeerId(1);

    fn read(operations: &mut Operations<Bytes>) -> Key {
        operations.begin(RemoteOperation::new(Target::Peer(A), Operation::Read, Context(1), true, 100))
    }

    #[test]
    fn the_last_part_ends_an_operation_and_the_first_that_went_wrong_counts() {
        let mut operations = Operations::new();
        let key = read(&mut operations);
        operations.add_parts(key, 2);
        assert!(!operations.end_part(key, Status::Success), "its submitter holds a part");
        assert!(!operations.end_part(key, Status::Denied) && operations.end_part(key, Status::Fault));
        let ended = operations.end(key).expect("it is there");
        assert_eq!((ended.status, operations.len()), (Status::Denied, 0));
        assert!(!operations.end_part(key, Status::Success) && operations.add_parts(key, 1) == 0, "it is over");
    }

    #[test]
    fn nobody_answers_a_transfer() {
        let mut operations = Operations::new();
        let key = read(&mut operations);
        operations.add_transfer(key);
        operations.add_parts(key, 1);
        assert!(!operations.end_part(key, Status::Success), "its submitter holds a part");
        assert!(operations.cost_for(A, key).is_ok() && !operations.end_part(key, Status::Success));
        assert_eq!(operations.cost_for(A, key), Err(Malformed));
        assert!(operations.end_transfer(key, Status::Success));
    }

    #[test]
    fn data_is_admitted_from_the_target_of_a_read_and_within_its_buffer() {
        let mut operations = Operations::new();
        let key = read(&mut operations);
        assert_eq!(operations.admit(A, key, 60, 40), Ok(60));
        assert_eq!(operations.admit(A, key, 60, 41), Err(Malformed));
        assert_eq!(operations.admit(A, key, u64::MAX, 1), Err(Malformed));
        assert_eq!((operations.admit(B, key, 0, 1), operations.cost_for(B, key)), (Err(Malformed), Err(Malformed)));
        assert_eq!((operations.of_peer(A), operations.of_peer(B)), (vec![key], vec![]));
    }
}
