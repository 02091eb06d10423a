//! What MPI's matching rules (R §1.1, PROTOCOLS §7) allow, checked over a whole run as if memory had no end.
//!
//! Which sender an any-source receive meets is the network's choice, so the reference does not predict; it judges. It
//! keeps every message and every receive in the order of their posting and holds a finished run to these rules:
//!
//! 1. A receive got a message that it accepts, whole, and no message was received twice.
//! 2. No overtaking: if a receive took a message although an earlier message of the same sender would have done, then that
//!    earlier one had been taken by a receive posted before.
//! 3. No message and no receive are left over that accept each other.

use crate::support::{Handle, World, pattern};

/// A message, as it was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub handle: Handle,
    pub from: usize,
    pub to: usize,
    /// `None`: untagged.
    pub tag: Option<u64>,
    pub size: usize,
    /// Reported to the receiver as completion data: tells messages apart.
    pub id: usize,
}

/// A receive, as it was posted.
#[derive(Clone, Copy, Debug)]
pub struct Posted {
    pub handle: Handle,
    pub node: usize,
    /// `None`: anybody.
    pub from: Option<usize>,
    /// Tag and bits to ignore; `None`: untagged.
    pub tag: Option<(u64, u64)>,
    pub capacity: usize,
}

impl Posted {
    fn accepts(&self, message: &Sent) -> bool {
        let tag = match (self.tag, message.tag) {
            (Some((tag, ignore)), Some(sent)) => (tag ^ sent) & !ignore == 0,
            (None, None) => true,
            _ => false,
        };
        tag && self.node == message.to && self.from.is_none_or(|from| from == message.from)
    }
}

/// A whole run.
#[derive(Debug, Default)]
pub struct Reference {
    pub sent: Vec<Sent>,
    pub posted: Vec<Posted>,
}

impl Reference {
    /// Judges the run so far, in which nothing moves any more.
    pub fn judge(&self, world: &World) {
        let mut taken_by = vec![None; self.sent.len()];
        for (place, receive) in self.posted.iter().enumerate() {
            if !world.is_done(receive.handle) || is_canceled(world, receive.handle) {
                continue;
            }
            let message = self.check_received(world, receive);
            assert_eq!(taken_by[message.id].replace(place), None, "{message:?} was received twice\n{world}");
        }
        for message in &self.sent {
            self.check_order(world, message, &taken_by);
            self.check_left_over(world, message, taken_by[message.id]);
        }
    }

    /// Rule 1.
    fn check_received(&self, world: &World, receive: &Posted) -> Sent {
        let done = world.outcome(receive.handle);
        let id = done.completion.data.expect("every message of the program carries data") as usize;
        let message = self.sent[id];
        assert!(receive.accepts(&message), "{receive:?} took {message:?}\n{world}");
        let source = done.completion.source.map(|source| world.node_of(receive.node, source));
        assert_eq!(source, Some(message.from), "{receive:?}\n{world}");
        let placed = message.size.min(receive.capacity);
        assert!(
            done.bytes == pattern(id, message.size)[..placed],
            "{receive:?} has wrong bytes of {message:?}\n{world}"
        );
        let truncated = tidegate_message::Failure::Truncated { full: message.size };
        let expected = if placed < message.size { Err(truncated) } else { Ok(()) };
        assert_eq!(done.completion.result, expected, "{receive:?}\n{world}");
        message
    }

    /// Rule 2.
    fn check_order(&self, world: &World, later: &Sent, taken_by: &[Option<usize>]) {
        let Some(receive) = taken_by[later.id] else { return };
        let rivals =
            self.sent[..later.id].iter().filter(|earlier| (earlier.from, earlier.to) == (later.from, later.to));
        for earlier in rivals.filter(|earlier| self.posted[receive].accepts(earlier)) {
            let taken_before = taken_by[earlier.id].is_some_and(|other| other < receive);
            assert!(taken_before, "{later:?} overtook {earlier:?} into {:?}\n{world}", self.posted[receive]);
        }
    }

    /// Rule 3.
    fn check_left_over(&self, world: &World, message: &Sent, taken_by: Option<usize>) {
        if taken_by.is_some() {
            assert!(world.is_done(message.handle), "{message:?} was received, its send hangs\n{world}");
            return;
        }
        let waiting = self.posted.iter().find(|receive| receive.accepts(message) && !world.is_done(receive.handle));
        assert!(waiting.is_none(), "{message:?} and {waiting:?} never met\n{world}");
    }
}

fn is_canceled(world: &World, handle: Handle) -> bool {
    world.outcome(handle).completion.result == Err(tidegate_message::Failure::Canceled)
}
