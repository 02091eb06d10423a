//! How a target that [counts](super::counting) hears of what its peers do to its memory. Each operation is reported
//! once, when its data is in place:
//! - a write in one place, with its last piece, which says so: the pieces of a write come in order;
//! - an atomic likewise, also one in several places, whose parts come in order;
//! - a read, when the last of its parts is through, which take turns;
//! - a write in several places, whose pieces may overtake each other, one that went straight to memory, and one with
//!   completion data, by a notice that its origin sends when all parts are over. From the answers, or where it finds
//!   the memory, it learns whether there is to be one.
//!
//! An operation on several regions is reported with one of them, and each other one alone.

use super::Rma;
use super::counting::at_target;
use super::operation::RemoteOperation;
use super::request::UnfinishedRead;
use crate::completion::{Completion, Operation};
use crate::link::Link;
use crate::malformed::{Handled, Malformed};
use crate::operation::Target;
use crate::port::Port;
use crate::wire::{Atomic, Ends, Status, WriteNotice};
use tidegate_flow::PeerId;

impl<L: Link> Rma<L> {
    /// Whether writes of peers are reported that bring no completion data, and atomics without a result.
    pub(crate) fn count_writes(&mut self, count: bool) {
        self.counting.count_writes(count);
    }

    /// Whether reads of peers are reported, and atomics with a result.
    pub(crate) fn count_reads(&mut self, count: bool) {
        self.counting.count_reads(count);
    }

    /// From now on it is reported what changes this region, until its registration ends.
    pub(crate) fn count_region(&mut self, key: u64) {
        self.counting.count_region(key);
    }

    /// An operation on one of our regions is complete: reports it, if it is counted.
    pub(super) fn note_at_target(
        &mut self,
        port: &mut Port<L>,
        operation: Operation,
        region: u64,
        source: Target,
        length: usize,
    ) {
        self.report_at_target(port, Completion::at_target(operation, region, source, length));
    }

    /// Reports an operation on one of our regions, if it is counted or brings data.
    fn report_at_target(&mut self, port: &mut Port<L>, completion: Completion) {
        if completion.data.is_some() || self.counting.counts(completion.operation, completion.context.0 as u64) {
            port.complete_at_target(completion);
        }
    }

    /// A part of a peer's atomic is done, of `length` bytes. Like a write, an atomic is reported with the length of all
    /// its parts, and each further region that it changes without one.
    pub(super) fn note_atomic(&mut self, port: &mut Port<L>, from: PeerId, atomic: &Atomic, length: usize) {
        let (operation, length) = match atomic.ends {
            Ends::Operation => (at_target(atomic.op, atomic.wants_result), atomic.position as usize + length),
            Ends::Region if atomic.op.writes() => (Operation::RemoteChange, 0),
            _ => return,
        };
        self.note_at_target(port, operation, atomic.region, Target::Peer(from), length);
    }

    /// A part of a peer's read is through. Parts take turns, so an earlier one may end behind the last: then that one
    /// says that the read is through.
    pub(super) fn note_read(&mut self, port: &mut Port<L>, from: PeerId, read: &UnfinishedRead, status: Status) {
        let is_over = read.is_last && status == Status::Success && self.counting.has_begun();
        if is_over && !self.requests.pass_last(from, read.operation) {
            self.note_at_target(port, Operation::RemoteRead, read.region, Target::Peer(from), read.at as usize);
        }
    }

    /// Tells the target of an operation of ours that is complete, unless it knows by itself.
    pub(super) fn tell_target(&mut self, port: &mut Port<L>, operation: &RemoteOperation<L::Buffer>) {
        let &RemoteOperation { to, length, data, ref regions, .. } = operation;
        match to {
            Target::Myself => self.note_own(port, operation),
            Target::Peer(peer) => {
                let is_counted = operation.counted && operation.must_tell;
                if data.is_none() && !is_counted {
                    return;
                }
                let further = if operation.counted { &regions.further[..] } else { &[] };
                for &region in further {
                    port.tell(peer, WriteNotice { length: 0, data: None, region, is_further: true });
                }
                let region = regions.first;
                port.tell(peer, WriteNotice { length: length as u64, data, region, is_further: false });
            }
        }
    }

    /// An operation of ours on our own memory is complete.
    fn note_own(&mut self, port: &mut Port<L>, own: &RemoteOperation<L::Buffer>) {
        let (operation, first) = (own.at_target, own.regions.first);
        if operation != Operation::RemoteRead {
            for &region in &own.regions.further {
                self.note_at_target(port, Operation::RemoteChange, region, Target::Myself, 0);
            }
        }
        let completion = Completion::at_target(operation, first, Target::Myself, own.length);
        self.report_at_target(port, Completion { data: own.data, ..completion });
    }

    /// A peer's write in our memory is complete.
    pub(crate) fn handle_write_notice(&mut self, port: &mut Port<L>, from: PeerId, notice: &WriteNotice) -> Handled {
        let &WriteNotice { length, data, region, is_further } = notice;
        if data.is_none() && !self.counting.has_begun() || data.is_some() && is_further {
            return Err(Malformed);
        }
        let source = Target::Peer(from);
        let operation = if is_further { Operation::RemoteChange } else { Operation::RemoteWrite };
        let completion = Completion::at_target(operation, region, source, length as usize);
        self.report_at_target(port, Completion { data, ..completion });
        Ok(())
    }
}
