//! [`Deadlock`]: who waits for whom when nothing can move any more.

use std::fmt;

use tidegate_message::WaitCause;

use crate::Time;
use crate::flight::Rank;
use crate::task::{Tag, TagFilter};

/// What a process waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A message of this process.
    MessageFrom {
        /// Whose.
        from: Rank,
        /// Which.
        tag: TagFilter,
    },
    /// A message of anybody.
    MessageFromAnybody {
        /// Which.
        tag: TagFilter,
    },
    /// A send to this process that cannot leave, or that it has not taken.
    SendTo {
        /// Whereto.
        to: Rank,
        /// Which.
        tag: Tag,
        /// Why it has not ended, as far as its endpoint knows.
        cause: Option<WaitCause>,
        /// Credits held towards it; `u32::MAX` without flow control.
        credits: u32,
    },
    /// Packets that it has written and that its network interface cannot pass on: the first is for this process, whose
    /// mailbox, or the way there, is full.
    RoomAt {
        /// Whereto.
        to: Rank,
        /// How many packets.
        packets: usize,
    },
    /// Any operation of an empty list: this never ends.
    Nothing,
}

/// A process whose program has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// Which.
    pub rank: Rank,
    /// Since when.
    pub since: Time,
    /// What for.
    pub waits: Vec<Wait>,
}

/// A run in which nothing can move any more and programs have not ended. `Display` says who waits for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// When the last thing happened.
    pub at: Time,
    /// Everybody who waits.
    pub waiters: Vec<Waiter>,
}

/// Most waiters that are printed one by one.
const PRINTED: usize = 32;

impl Deadlock {
    /// Processes that wait for each other in a circle, if there is one.
    #[must_use]
    pub fn circle(&self) -> Option<Vec<Rank>> {
        let next = |rank: Rank| {
            let waiter = self.waiters.iter().find(|waiter| waiter.rank == rank)?;
            waiter.waits.iter().find_map(|wait| match wait {
                Wait::MessageFrom { from: other, .. }
                | Wait::SendTo { to: other, .. }
                | Wait::RoomAt { to: other, .. } => Some(*other),
                Wait::MessageFromAnybody { .. } | Wait::Nothing => None,
            })
        };
        let mut path = vec![self.waiters.first()?.rank];
        loop {
            let rank = next(*path.last()?)?;
            if let Some(start) = path.iter().position(|&seen| seen == rank) {
                return Some(path.split_off(start));
            }
            path.push(rank);
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wait::MessageFrom { from, tag } => write!(f, "a message from {from} ({tag})"),
            Wait::MessageFromAnybody { tag } => write!(f, "a message from anybody ({tag})"),
            Wait::SendTo { to, tag, cause, credits } => {
                write!(f, "its send to {to} (tag {}) to end", tag.0)?;
                if let Some(cause) = cause {
                    write!(f, ", which waits for {}", cause.help())?;
                }
                if *credits < u32::MAX {
                    write!(f, ", holding {credits} credits")?;
                }
                Ok(())
            }
            Wait::RoomAt { to, packets } => write!(f, "room at {to} for {packets} packets"),
            Wait::Nothing => f.write_str("nothing that was started"),
        }
    }
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing can move since {}, and {} processes have not ended", self.at, self.waiters.len())?;
        for Waiter { rank, since, waits } in self.waiters.iter().take(PRINTED) {
            let waits: Vec<_> = waits.iter().map(Wait::to_string).collect();
            write!(f, "\n  {rank} waits since {since} for {}", waits.join(" and "))?;
        }
        if self.waiters.len() > PRINTED {
            write!(f, "\n  and {} more", self.waiters.len() - PRINTED)?;
        }
        if let Some(circle) = self.circle() {
            let circle: Vec<_> = circle.iter().map(Rank::to_string).collect();
            write!(f, "\n  a circle: {}, and so on", circle.join(" waits for "))?;
        }
        Ok(())
    }
}
