//! Messages between processes of one node that use no mailbox (P §7.2): [`LocalPath`].
//!
//! The sender copies into shared memory, the receiver copies out, and no credit is spent. Matching is that of MPI: the
//! first posted receive that accepts a message gets it, a receive gets the first stored message that it accepts.

use std::collections::VecDeque;

use crate::Time;
use crate::buffer::Part;
use crate::flight::Rank;
use crate::task::{Sender, Tag, TagFilter};

/// A message on its way to a process of the same node.
#[derive(Clone, Debug)]
pub(crate) struct LocalMessage {
    pub from: Rank,
    pub to: Rank,
    pub tag: Tag,
    pub length: u64,
    /// The bytes, where memory has any.
    pub bytes: Option<Vec<u8>>,
    /// When the receiver can see it.
    pub arrives: Time,
}

/// A receive that a local message may match.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PostedLocally {
    pub operation: u32,
    pub from: Sender,
    pub tag: TagFilter,
    pub part: Part,
}

impl PostedLocally {
    fn accepts(&self, message: &LocalMessage) -> bool {
        let is_from = match self.from {
            Sender::Any => true,
            Sender::Rank(rank) => rank == message.from,
        };
        is_from && self.tag.accepts(message.tag)
    }
}

/// The receiving half of one process.
#[derive(Debug, Default)]
pub(crate) struct LocalPath {
    stored: VecDeque<LocalMessage>,
    posted: Vec<PostedLocally>,
}

impl LocalPath {
    /// The message for a receive that is being posted, if it is there.
    pub fn take_stored(&mut self, posted: &PostedLocally) -> Option<LocalMessage> {
        let at = self.stored.iter().position(|message| posted.accepts(message))?;
        self.stored.remove(at)
    }

    pub fn post(&mut self, posted: PostedLocally) {
        self.posted.push(posted);
    }

    /// The receive for a message that has come, if one is posted.
    pub fn take_posted(&mut self, message: &LocalMessage) -> Option<PostedLocally> {
        let at = self.posted.iter().position(|posted| posted.accepts(message))?;
        Some(self.posted.remove(at))
    }

    /// The endpoint has matched this receive, so no local message may match it any more.
    pub fn withdraw(&mut self, operation: u32) {
        self.posted.retain(|posted| posted.operation != operation);
    }

    pub fn store(&mut self, message: LocalMessage) {
        self.stored.push_back(message);
    }
}
