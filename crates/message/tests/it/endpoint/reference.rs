//! What MPI's matching rules allow, checked over a whole run as if memory had no end.
//!
//! Which sender an any-source receive meets is the network's choice, so the reference does not predict; it judges. It
//! keeps every message and every receive in the order of their posting and holds a finished run to these rules:
//!
//! 1. A receive got a message that it accepts, whole, and no message was received twice.
//! 2. No overtaking: if a receive took a message although an earlier message of the same sender would have done, then
//!    that earlier one had been taken by a receive posted before.
//! 3. No message and no receive are left over that accept each other.
//!
//! A look (probe) that was waited for is held to the same rules as a receive at its place in the order: it names the
//! message that a receive would have got. One that claims or discards what it finds has taken it.

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
    pub purpose: Purpose,
}

/// What a receive is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To get whatever message comes.
    Any,
    /// To get the message with this id: a probe has just named it.
    This(usize),
    /// To look for a message without receiving it. It has completed.
    Look {
        /// The message that it found, if any.
        found: Option<usize>,
        /// Whether that is out of reach of others from now on.
        takes: bool,
    },
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
    /// Claims whose message nobody has called for, and the message.
    pub claimed: Vec<(Handle, usize)>,
    /// Receives of claimed messages.
    pub called_for: Vec<(Posted, usize)>,
}

impl Reference {
    /// Judges the run so far, in which nothing moves any more.
    pub fn judge(&self, world: &World) {
        let mut taken_by = vec![None; self.sent.len()];
        for (place, receive) in self.posted.iter().enumerate() {
            let (message, takes) = match receive.purpose {
                Purpose::Look { found: Some(id), takes } => (self.sent[id], takes),
                Purpose::Look { found: None, .. } => continue,
                _ if !world.is_done(receive.handle) || is_canceled(world, receive.handle) => continue,
                purpose => {
                    let message = self.check_received(world, receive);
                    let expected = !matches!(purpose, Purpose::This(id) if id != message.id);
                    assert!(expected, "{receive:?} got {message:?}\n{world}");
                    (message, true)
                }
            };
            assert!(receive.accepts(&message), "{receive:?} took {message:?}\n{world}");
            self.check_order(world, place, &message, &taken_by);
            if takes {
                assert_eq!(taken_by[message.id].replace(place), None, "{message:?} was received twice\n{world}");
            }
        }
        for (receive, id) in &self.called_for {
            assert_eq!(self.check_received(world, receive).id, *id, "{receive:?} called for another\n{world}");
        }
        for message in &self.sent {
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

    /// Rule 2, for what the receive at `place` got, when `taken_by` holds what those before it took.
    fn check_order(&self, world: &World, place: usize, later: &Sent, taken_by: &[Option<usize>]) {
        let receive = &self.posted[place];
        let rivals =
            self.sent[..later.id].iter().filter(|earlier| (earlier.from, earlier.to) == (later.from, later.to));
        for earlier in rivals.filter(|earlier| receive.accepts(earlier)) {
            assert!(taken_by[earlier.id].is_some(), "{later:?} overtook {earlier:?} into {receive:?}\n{world}");
        }
    }

    /// Rule 3.
    fn check_left_over(&self, world: &World, message: &Sent, taken_by: Option<usize>) {
        let is_claimed = self.claimed.iter().any(|(_, id)| *id == message.id);
        if taken_by.is_some() && !is_claimed {
            assert!(world.is_done(message.handle), "{message:?} was received, its send hangs\n{world}");
        }
        if taken_by.is_some() {
            return;
        }
        let waits =
            |receive: &&Posted| !matches!(receive.purpose, Purpose::Look { .. }) && !world.is_done(receive.handle);
        let waiting = self.posted.iter().filter(waits).find(|receive| receive.accepts(message));
        assert!(waiting.is_none(), "{message:?} and {waiting:?} never met\n{world}");
    }
}

fn is_canceled(world: &World, handle: Handle) -> bool {
    world.outcome(handle).completion.result == Err(tidegate_message::Failure::Canceled)
}
