//! [`Posted`]: the buffers that a process has posted, as its node's adapter knows them. A process runs ahead of the
//! simulation (see `link.rs`), and the adapter does not.

use std::collections::VecDeque;

use tidegate_flow::{PeerId, Posting, ReceiveQueues};

use crate::Time;
use crate::outcome::PostedBuffers;

/// See the module.
#[derive(Debug)]
pub(crate) struct Posted {
    queues: ReceiveQueues,
    /// What the process has done with buffers, running ahead, and when.
    ahead: VecDeque<(Time, Posting)>,
    /// In a pool of slots: when it has retrieved packets, running ahead.
    retrieved: VecDeque<Time>,
    /// When a sender is to be invited to a pool of slots, if that is scheduled.
    pub(crate) invites_at: Time,
}

impl Posted {
    pub(crate) fn new(queues: ReceiveQueues) -> Self {
        Posted { queues, ahead: VecDeque::new(), retrieved: VecDeque::new(), invites_at: Time::NEVER }
    }

    /// The process does something with its buffers, at its own time: its adapter knows of it then. What the event of a
    /// pool does, does not wait for the process.
    pub(crate) fn post(&mut self, clock: Time, posting: Posting) {
        match posting {
            Posting::Window { .. } => self.queues.post(posting),
            _ => self.ahead.push_back((clock, posting)),
        }
    }

    /// The process retrieves a packet, at its own time.
    #[inline]
    pub(crate) fn note_retrieved(&mut self, clock: Time) {
        if self.queues.slots().is_some() {
            self.retrieved.push_back(clock);
        }
    }

    /// When enough slots of a pool will be free that a sender is invited, as far as the process has run ahead.
    pub(crate) fn next_invitation(&self) -> Option<Time> {
        let missing = self.queues.slots()?.missing()?;
        self.retrieved.get(missing.checked_sub(1)? as usize).copied()
    }

    /// The buffers as they are at this moment.
    pub(crate) fn at(&mut self, now: Time) -> &mut ReceiveQueues {
        while let Some((_, posting)) = self.ahead.front().filter(|(at, _)| *at <= now).copied() {
            self.ahead.pop_front();
            self.queues.post(posting);
        }
        let retrieved = self.retrieved.iter().take_while(|at| **at <= now).count();
        if retrieved > 0 {
            self.retrieved.drain(..retrieved);
            if let Some(slots) = self.queues.slots_mut() {
                slots.note_retrieved(retrieved as u32);
            }
        }
        &mut self.queues
    }

    /// Buffers of this peer, posted or full, when all that the process has done is known.
    pub(crate) fn buffers(&self, peer: PeerId) -> u32 {
        let ahead = self.ahead.iter().fold((0, 0), |(more, fewer), &(_, posting)| match posting {
            Posting::More(of, buffers) if of == peer => (more + buffers, fewer),
            Posting::Withdrawn(of) if of == peer => (more, fewer + 1),
            _ => (more, fewer),
        });
        self.queues.posted(peer) + self.queues.taken(peer) + ahead.0 - ahead.1
    }

    /// Buffers that are free in a pool, the spare one among them, and those that are full.
    pub(crate) fn pool(&self, peers: u32) -> (u32, u32) {
        let free = self.queues.posted(PeerId(0)) + u32::from(self.queues.has_spare());
        (free, (0..peers).map(|peer| self.queues.taken(PeerId(peer))).sum())
    }

    /// In a pool of slots: those that hold packets which are in the mailbox, when all that the process has done is
    /// known.
    pub(crate) fn slots_filled(&self) -> Option<u32> {
        Some(self.queues.slots()?.filled() - self.retrieved.len() as u32)
    }

    /// All buffers, of `peers` peers or in the pool, free or full.
    pub(crate) fn count(&self, peers: u32, is_pool: bool) -> PostedBuffers {
        if is_pool {
            let (free, full) = self.pool(peers);
            return PostedBuffers { most: free + full, all: free + full };
        }
        let each = || (0..peers).map(|peer| self.buffers(PeerId(peer)));
        PostedBuffers { most: each().max().unwrap_or(0), all: each().sum() }
    }
}
