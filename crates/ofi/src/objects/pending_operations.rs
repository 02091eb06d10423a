//! Tickets: the facts of an operation until it completes. The message layer knows an operation by a number, and its
//! completion brings that number back.

use crate::border::bindings::*;
use crate::objects::completion::Entry;
use crate::operations::operation::EventKind;
use core::ffi::c_void;
use std::collections::BTreeSet;
use tidegate_message::{Completion, Context, Operation, Space};

/// What is remembered of an operation until it completes.
#[derive(Clone, Copy)]
pub struct Ticket {
    /// The application's context.
    pub context: *mut c_void,
    /// Completion flags.
    pub kind: u64,
    /// Where the buffer starts, if it is a multi-receive.
    pub start: *mut u8,
    /// Whether success goes to the queue. Failure always does.
    pub wanted: bool,
    /// Which counter counts it.
    pub event: EventKind,
}

/// Tickets by number: the number is the operation's context in the message layer.
#[derive(Default)]
pub struct PendingOperations {
    places: Vec<Ticket>,
    free: Vec<u32>,
    /// Unexpected messages that a peek has set aside for a later `FI_CLAIM`: each by the application's context and the
    /// number of its ticket.
    claimed: BTreeSet<(usize, usize)>,
}

/// An operation that ended, on its way to queues and counters.
pub struct Event {
    /// Which counter counts it.
    pub kind: EventKind,
    /// Whether success goes to the queue.
    pub wanted: bool,
    /// Whether it is unsolicited: it does not end an operation that the application has started one by one.
    pub unsolicited: bool,
    /// What the queue says of it.
    pub entry: Entry,
}

/// A flag of tickets, and none of libfabric's: the operation is recorded, so its end takes the slower way.
pub const RECORDED: u64 = 1 << 62;

/// The context, in the message layer, of all operations that are reported only if they fail. They have no ticket.
pub const SILENT: Context = Context(usize::MAX);

impl PendingOperations {
    /// Remembers an operation. Returns its name in the message layer.
    #[inline]
    pub fn insert(&mut self, ticket: Ticket) -> Context {
        match self.free.pop() {
            Some(index) => {
                self.places[index as usize] = ticket;
                Context(index as usize)
            }
            None => {
                self.places.push(ticket);
                Context(self.places.len() - 1)
            }
        }
    }

    /// The operation has ended.
    #[inline]
    pub fn remove(&mut self, context: Context) {
        if context.0 < self.places.len() {
            self.free.push(context.0 as u32);
        }
    }

    /// What is remembered under a name.
    #[inline]
    pub fn get(&self, context: Context) -> Option<Ticket> {
        self.places.get(context.0).copied()
    }

    /// Turns a completion into what queues and counters are told, and ends its ticket. `None`: that takes more (see
    /// [`Active::special_event`](crate::objects::active::Active::special_event)), and nothing has changed.
    #[inline(always)]
    pub fn event(&mut self, completion: &Completion) -> Option<Event> {
        if completion.operation.is_at_target() {
            return None;
        }
        let ticket = self.get(completion.context).unwrap_or_else(|| Ticket::silent(completion.operation));
        if ticket.kind & (FI_MULTI_RECV | FI_CLAIM | RECORDED) != 0 {
            return None;
        }
        self.remove(completion.context);
        let entry = ticket.entry(completion);
        Some(Event { kind: ticket.event, wanted: ticket.wanted, unsolicited: false, entry })
    }

    /// What is remembered of an operation that has not ended.
    pub fn get_mut(&mut self, context: Context) -> &mut Ticket {
        &mut self.places[context.0]
    }

    /// The application's context of an operation that has not ended.
    pub fn application_context(&self, context: Context) -> *mut c_void {
        self.places[context.0].context
    }

    /// Notes that the message of this ticket is set aside for the application's context, or that it is no longer.
    pub fn set_claimed(&mut self, ticket: Context, claimed: bool) {
        let name = (self.places[ticket.0].context.addr(), ticket.0);
        if claimed {
            self.claimed.insert(name)
        } else {
            self.claimed.remove(&name)
        };
    }

    /// The ticket of a message that was set aside for this context of the application.
    pub fn find_claimed(&self, context: *mut c_void) -> Option<Context> {
        let all = (context.addr(), 0)..=(context.addr(), usize::MAX);
        self.claimed.range(all).next().map(|(_, ticket)| Context(*ticket))
    }
}

impl Ticket {
    /// What a queue says of an operation.
    #[inline(always)]
    pub fn entry(&self, completion: &Completion) -> Entry {
        let mut entry = Entry::new(self.context, self.kind);
        entry.completion.len = completion.length;
        if let Some(data) = completion.data {
            entry.completion.data = data;
            entry.completion.flags |= FI_REMOTE_CQ_DATA;
        }
        if let Space::Tagged { tag, .. } = completion.space {
            entry.completion.tag = tag;
        }
        entry
    }

    /// A ticket for the failure of an operation that had none.
    #[cold]
    pub fn silent(operation: Operation) -> Ticket {
        let (kind, event) = match operation {
            Operation::Write => (FI_RMA | FI_WRITE, EventKind::Write),
            Operation::Read => (FI_RMA | FI_READ, EventKind::Read),
            Operation::Atomic => (FI_ATOMIC | FI_WRITE, EventKind::Write),
            _ => (FI_SEND, EventKind::Send),
        };
        let (context, start) = (core::ptr::null_mut(), core::ptr::null_mut());
        Ticket { context, kind, start, wanted: false, event }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(context: usize, event: EventKind) -> Ticket {
        let start = core::ptr::null_mut();
        Ticket { context: core::ptr::without_provenance_mut(context), kind: FI_MSG, start, wanted: true, event }
    }

    #[test]
    fn a_ticket_that_has_ended_serves_the_next_operation() {
        let mut tickets = PendingOperations::default();
        let first = tickets.insert(ticket(1, EventKind::Receive));
        let second = tickets.insert(ticket(2, EventKind::Receive));
        assert_ne!(first, second);
        tickets.remove(first);
        assert_eq!(tickets.insert(ticket(3, EventKind::Receive)), first);
        assert_eq!(tickets.application_context(first).addr(), 3);
        assert_eq!(tickets.application_context(second).addr(), 2);
    }

    #[test]
    fn silent_operations_have_no_ticket_and_end_without_one() {
        let mut tickets = PendingOperations::default();
        assert!(tickets.get(SILENT).is_none());
        tickets.remove(SILENT);
        assert_eq!(tickets.insert(ticket(1, EventKind::Send)), Context(0));
    }

    #[test]
    fn messages_set_aside_are_found_by_their_own_context() {
        let mut tickets = PendingOperations::default();
        let [first, second, other] = [5, 5, 6].map(|context| tickets.insert(ticket(context, EventKind::Receive)));
        for ticket in [first, second, other] {
            tickets.set_claimed(ticket, true);
        }
        let found =
            |tickets: &PendingOperations, context| tickets.find_claimed(core::ptr::without_provenance_mut(context));
        assert_eq!((found(&tickets, 5), found(&tickets, 6), found(&tickets, 7)), (Some(first), Some(other), None));
        tickets.set_claimed(first, false);
        assert_eq!(found(&tickets, 5), Some(second));
        tickets.set_claimed(second, false);
        assert_eq!(found(&tickets, 5), None);
    }
}
