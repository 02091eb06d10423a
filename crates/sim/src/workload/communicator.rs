//! [`Communicator`]: a group of processes and a space of tags of its own (as MPI's).

use std::cell::Cell;
use std::rc::Rc;

use crate::buffer::Part;
use crate::flight::Rank;
use crate::task::{Delivery, Request, Sender, Tag, Task};

/// Who belongs to a group: the n-th member's rank in the job.
#[derive(Clone, Debug)]
enum Members {
    /// `count` consecutive ranks, from `first` on.
    Range {
        first: u32,
        count: u32,
    },
    List(Rc<[u32]>),
}

/// A group of processes. Everything here counts members of the group, from 0 on, not ranks of the job.
///
/// Collective operations follow each other in the same order at all members; each takes a tag of its own, so that
/// messages of two of them never mix.
#[derive(Clone, Debug)]
pub struct Communicator {
    task: Task,
    members: Members,
    me: u32,
    /// Keeps groups apart.
    context: u32,
    operations: Rc<Cell<u32>>,
}

/// The first tag of collective operations: below are those of the program.
const COLLECTIVE: u64 = 1 << 63;

/// Whether messages of this tag belong to a collective operation.
pub(super) fn is_collective(Tag(tag): Tag) -> bool {
    tag & COLLECTIVE != 0
}

impl Communicator {
    /// All processes of the job.
    #[must_use]
    pub fn world(task: &Task) -> Self {
        let members = Members::Range { first: 0, count: task.size() };
        Communicator { me: task.rank().0, task: task.clone(), members, context: 0, operations: Rc::default() }
    }

    /// The `count` ranks from `first` on; `None` for a process that is not one of them. All who are must give it the
    /// same `context`, a number from 1 on that no other group with a member in common has.
    #[must_use]
    pub fn range(task: &Task, context: u32, first: u32, count: u32) -> Option<Self> {
        let me = task.rank().0.checked_sub(first).filter(|&me| me < count)?;
        let members = Members::Range { first, count };
        Some(Communicator { me, task: task.clone(), members, context, operations: Rc::default() })
    }

    /// These ranks, in this order; otherwise as [`range`](Self::range).
    #[must_use]
    pub fn list(task: &Task, context: u32, ranks: &[Rank]) -> Option<Self> {
        let me = ranks.iter().position(|&rank| rank == task.rank())? as u32;
        let members = Members::List(ranks.iter().map(|rank| rank.0).collect());
        Some(Communicator { me, task: task.clone(), members, context, operations: Rc::default() })
    }

    /// This process.
    #[must_use]
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Which member this process is.
    #[must_use]
    pub fn me(&self) -> u32 {
        self.me
    }

    /// Members.
    #[must_use]
    pub fn size(&self) -> u32 {
        match &self.members {
            Members::Range { count, .. } => *count,
            Members::List(ranks) => ranks.len() as u32,
        }
    }

    /// The member's rank in the job.
    #[must_use]
    pub fn rank_of(&self, member: u32) -> Rank {
        match &self.members {
            Members::Range { first, .. } => Rank(first + member),
            Members::List(ranks) => Rank(ranks[member as usize]),
        }
    }

    /// The member `distance` behind this one, in a circle.
    #[must_use]
    pub fn after(&self, distance: u32) -> u32 {
        ((u64::from(self.me) + u64::from(distance)) % u64::from(self.size())) as u32
    }

    /// The member `distance` before this one, in a circle.
    #[must_use]
    pub fn before(&self, distance: u32) -> u32 {
        self.after(self.size() - distance % self.size())
    }

    /// A collective operation begins: the tag of its messages.
    #[must_use]
    pub fn begin(&self) -> Tag {
        let number = self.operations.get();
        self.operations.set(number.wrapping_add(1));
        Tag(COLLECTIVE | u64::from(self.context) << 32 | u64::from(number))
    }

    /// Sends to a member (`MPI_Send`).
    pub async fn send(&self, to: u32, tag: Tag, part: Part) {
        self.task.send(self.rank_of(to), tag, part).await;
    }

    /// Receives from a member (`MPI_Recv`).
    pub async fn receive(&self, from: u32, tag: Tag, part: Part) -> Delivery {
        self.task.receive(self.rank_of(from), tag, part).await
    }

    /// Starts to send to a member (`MPI_Isend`).
    pub async fn start_send(&self, to: u32, tag: Tag, part: Part) -> Request {
        self.task.start_send(self.rank_of(to), tag, part).await
    }

    /// Starts to receive from a member (`MPI_Irecv`).
    pub async fn start_receive(&self, from: u32, tag: Tag, part: Part) -> Request {
        self.task.start_receive(Sender::Rank(self.rank_of(from)), tag, part).await
    }

    /// Sends to one member and receives from another at the same time (`MPI_Sendrecv`).
    pub async fn exchange(&self, to: u32, out: Part, from: u32, into: Part, tag: Tag) {
        let incoming = self.start_receive(from, tag, into).await;
        let outgoing = self.start_send(to, tag, out).await;
        self.task.wait(incoming).await;
        self.task.wait(outgoing).await;
    }
}
