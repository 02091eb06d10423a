//! What is remembered of an endpoint's operations for the trace until they are over ([`Operations`]), and of
//! completions until the application reads them ([`Unread`]).

use super::format::Message;
use super::process;
use super::recorder::Start;
use std::collections::VecDeque;
use tidegate_link::Address;
use tidegate_message::{Completion, Context, Failure, PeerId, Space, Target};

/// What an application starts, as `submit` describes it.
#[derive(Clone, Copy, Debug)]
pub enum RecordedOperation {
    /// A send.
    Send {
        /// To whom.
        to: Target,
        /// With or without a tag.
        space: Space,
        /// How much.
        bytes: u64,
    },
    /// A receive.
    Receive,
    /// A receive that takes many messages.
    Buffer,
    /// A look for a message.
    Look,
    /// A look for a message that is dropped if it is there.
    Discard,
    /// An operation on a peer's memory that moves so many bytes.
    Remote(u64),
}

/// What the end of an operation means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The send is over.
    Send,
    /// A message has been received.
    Receive,
    /// A message has been found and dropped: received, for its sender.
    Discard,
    /// Nothing that the trace tells of.
    Other,
}

/// The operations of an endpoint, by their tickets.
#[derive(Debug)]
pub struct Operations {
    endpoint: u64,
    by_ticket: Vec<(u64, Role)>,
    peers: Peers,
}

/// The numbers of peers in the trace, by their numbers in the message layer, as long as those hold.
#[derive(Debug, Default)]
struct Peers {
    epoch: u32,
    numbers: Vec<Option<u64>>,
    own: Option<u64>,
}

impl Peers {
    fn place(&mut self, target: Target, epoch: u32) -> &mut Option<u64> {
        if self.epoch != epoch {
            *self = Peers { epoch, ..Peers::default() };
        }
        match target {
            Target::Myself => &mut self.own,
            Target::Peer(PeerId(index)) => {
                let index = index as usize;
                if self.numbers.len() <= index {
                    self.numbers.resize(index + 1, None);
                }
                &mut self.numbers[index]
            }
        }
    }
}

/// What [`Operations`] asks about peers.
pub trait Book {
    /// A number that changes when numbers of peers may mean others.
    fn epoch(&self) -> u32;
    /// The address of a peer.
    fn address(&self, target: Target) -> Option<Address>;
}

impl Operations {
    /// For an endpoint that has just been opened. `None`: nothing is recorded.
    pub fn open(address: &Address) -> Option<Box<Operations>> {
        let endpoint = process::with(|recorder| recorder.open(address))?;
        Some(Box::new(Operations { endpoint, by_ticket: Vec::new(), peers: Peers::default() }))
    }

    /// The application has started an operation. `context` is its ticket, if it has one.
    pub fn start(&mut self, context: Context, deed: RecordedOperation, book: &impl Book) {
        let (role, start) = match deed {
            RecordedOperation::Send { to, space, bytes } => {
                let Some(message) = self.message(to, space, bytes, book) else { return };
                (Role::Send, Start::Send(message))
            }
            RecordedOperation::Receive => (Role::Receive, Start::Receive),
            RecordedOperation::Buffer => (Role::Receive, Start::Buffer),
            RecordedOperation::Look => (Role::Other, Start::Look),
            RecordedOperation::Discard => (Role::Discard, Start::Look),
            RecordedOperation::Remote(bytes) => (Role::Other, Start::Remote(bytes)),
        };
        let endpoint = self.endpoint;
        let Some(number) = process::with(|recorder| recorder.start(endpoint, start)) else { return };
        // Tickets are few and small numbers; what has no ticket is over.
        if context != crate::objects::pending_operations::SILENT {
            if self.by_ticket.len() <= context.0 {
                self.by_ticket.resize(context.0 + 1, (0, Role::Other));
            }
            self.by_ticket[context.0] = (number, role);
        }
    }

    /// The application receives the message that the look of this ticket has found, or has it dropped.
    pub fn claim(&mut self, context: Context) {
        let Some((number, role)) = self.by_ticket.get_mut(context.0) else { return };
        *role = Role::Receive;
        process::with(|recorder| recorder.receive(self.endpoint, *number));
    }

    /// An operation is over, or a buffer has one more message. Returns its number, if the application's hearing of it
    /// is to be recorded.
    pub fn end(&mut self, completion: &Completion, book: &impl Book) -> Option<u64> {
        if completion.operation.is_at_target() {
            return None;
        }
        let (number, role) = *self.by_ticket.get(completion.context.0)?;
        let bytes = match &completion.result {
            Ok(()) => completion.length,
            Err(Failure::Truncated { full }) => *full,
            Err(_) => return None,
        };
        match role {
            Role::Other => return None,
            Role::Send => return Some(number),
            Role::Discard => _ = process::with(|recorder| recorder.receive(self.endpoint, number)),
            Role::Receive => {}
        }
        let message = self.message(completion.source?, completion.space, bytes as u64, book)?;
        process::with(|recorder| recorder.met(number, message));
        Some(number)
    }

    fn message(&mut self, peer: Target, space: Space, bytes: u64, book: &impl Book) -> Option<Message> {
        let place = self.peers.place(peer, book.epoch());
        if place.is_none() {
            let address = book.address(peer)?;
            *place = process::with(|recorder| recorder.peer(&address));
        }
        let tag = match space {
            Space::Tagged { tag, .. } => Some(tag),
            Space::Untagged => None,
        };
        Some(Message { peer: (*place)?, bytes, tag })
    }
}

/// What the completions in a queue are of that the application has not read, in their order: the number of the
/// operation, or nothing that the trace tells of.
#[derive(Debug, Default)]
pub struct Unread {
    successes: VecDeque<Option<u64>>,
    errors: VecDeque<Option<u64>>,
}

impl Unread {
    /// A success has been added to the queue.
    pub fn push(&mut self, number: Option<u64>) {
        self.successes.push_back(number);
    }

    /// An error has been added to the queue.
    pub fn push_error(&mut self, number: Option<u64>) {
        self.errors.push_back(number);
    }

    /// The application has read so many successes.
    pub fn read(&mut self, count: usize) {
        let count = count.min(self.successes.len());
        let mut read = self.successes.drain(..count).flatten();
        // Where no trace could be opened they are forgotten all the same.
        process::with(|recorder| read.by_ref().for_each(|number| recorder.read(number)));
    }

    /// The application has read an error.
    pub fn read_error(&mut self) {
        if let Some(number) = self.errors.pop_front().flatten() {
            process::with(|recorder| recorder.read(number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_peers_hold_for_an_epoch() {
        let mut peers = Peers::default();
        let target = Target::Peer(PeerId(3));
        *peers.place(target, 0) = Some(7);
        *peers.place(Target::Myself, 0) = Some(8);
        assert_eq!((*peers.place(target, 0), *peers.place(Target::Myself, 0)), (Some(7), Some(8)));
        assert_eq!((*peers.place(target, 1), *peers.place(Target::Myself, 1)), (None, None));
    }
}
