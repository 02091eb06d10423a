//! From whom a receiver pulls next: the orders, one file each, and the [`Turns`] that carry them out.
//!
//! *The simple idea*, to serve one sender until its messages are through, breaks MPI's rule of progress: a sender may
//! have left MPI, or wait for a message of another one that waits behind it. So a turn is a preference, never a lock:
//!
//! - Only messages compete whose receive is there, and whose sender is alive and delivers.
//! - A turn ends at the message's end, after a quantum of bytes, when the peer is lost or the receive is cancelled, or
//!   when nothing has come for a time T. Then the next sender starts. What had been asked for by then stays asked for.
//! - Senders wait in the order in which their messages matched; who had a turn goes behind the others. So each gets a
//!   quantum within (senders that deliver) × the time of a quantum, plus T once for each that does not.
//! - A sender that does not answer, or has not said yes after T, counts as free. Nobody keeps anything for the answer.
//!
//! Messages up to a [length](TurnRules::ordered_from) take no turns: to wait for one would cost more than they do.
//!
//! Who copies data itself, or asks senders for it, takes turns in the endpoint (`bulk::gate`); a link that reads peers'
//! memory in chunks keeps [`Turns`] of its own, and says so by [`Capabilities::takes_turns`].
//!
//! [`Capabilities::takes_turns`]: crate::Capabilities::takes_turns

mod booking;
mod one_sender;
mod questions;
mod reservations;
mod round_robin;
mod turns;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use tidegate_flow::Instant;

pub(crate) use questions::Questions;
pub(crate) use reservations::Reservations;
pub use turns::Turns;

/// From whom a receiver pulls next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BulkOrder {
    /// From all senders, a chunk each.
    #[default]
    RoundRobin,
    /// From one sender after the other.
    OneSender,
    /// The same, and the next one is asked beforehand whether it is free.
    Booking,
}

impl BulkOrder {
    /// All orders.
    pub const ALL: [BulkOrder; 3] = [BulkOrder::RoundRobin, BulkOrder::OneSender, BulkOrder::Booking];

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            BulkOrder::RoundRobin => "round_robin",
            BulkOrder::OneSender => "one_sender",
            BulkOrder::Booking => "booking",
        }
    }

    fn policy(self) -> &'static dyn Policy {
        match self {
            BulkOrder::RoundRobin => &round_robin::RoundRobin,
            BulkOrder::OneSender => &one_sender::OneSender,
            BulkOrder::Booking => &booking::Booking,
        }
    }
}

impl fmt::Display for BulkOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for BulkOrder {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|order| order.name() == text).ok_or(())
    }
}

/// An order, and its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnRules {
    /// Who is next.
    pub order: BulkOrder,
    /// Senders that have a turn at the same time, at least one.
    pub senders: usize,
    /// Bytes after which a turn ends if others wait.
    pub quantum: usize,
    /// Messages that are longer take turns; others begin at once.
    pub ordered_from: usize,
    /// T: how long a turn lasts in which nothing comes, and how long an answer is waited for.
    pub stall: Duration,
}

impl TurnRules {
    /// Unless the user says otherwise.
    pub const USUAL: TurnRules = TurnRules {
        order: BulkOrder::RoundRobin,
        senders: 2,
        quantum: 1 << 20,
        ordered_from: 64 << 10,
        stall: Duration::from_millis(20),
    };
}

impl Default for TurnRules {
    fn default() -> Self {
        TurnRules::USUAL
    }
}

/// Senders at the head of the queue among which a policy chooses.
const CANDIDATES_MOST: usize = 2;

/// A sender that waits for a turn, as far as a policy needs to know it.
#[derive(Clone, Copy, Debug, Default)]
struct Candidate {
    /// Since when it has been asked whether it is free.
    asked: Since,
    /// Since when it has kept itself free for us.
    booked: Since,
    /// Somebody behind it was preferred while it was the first.
    was_passed_over: bool,
}

/// What an order decides.
trait Policy: Sync {
    /// Whether long messages take turns at all.
    fn takes_turns(&self) -> bool {
        true
    }

    /// Which of the first senders that wait has the turn that is free now. `None`: the next answer, or the moment that
    /// [`next_due`](Self::next_due) tells, will say.
    fn next(&self, waiting: &[Candidate], stall: Duration, now: Instant) -> Option<usize>;

    /// Which of them is to be asked whether it is free, while all turns are taken.
    fn question(&self, _waiting: &[Candidate], _stall: Duration, _now: Instant) -> Option<usize> {
        None
    }

    /// Whether senders are told of turns that begin without a question.
    fn asks(&self) -> bool {
        false
    }

    /// When [`next`](Self::next) will say something else though nothing has come.
    fn next_due(&self, _waiting: &[Candidate], _stall: Duration, _now: Instant) -> Option<Instant> {
        None
    }
}

/// Since when something has been so. Who notes it has no clock: it counts from the next moment at which somebody tells
/// the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Since {
    /// It is not so.
    #[default]
    Never,
    /// Since the next moment told.
    Fresh,
    At(Instant),
}

impl Since {
    /// Returns whether this is the moment from which it counts.
    fn tell_time(&mut self, now: Instant) -> bool {
        let is_fresh = *self == Since::Fresh;
        if is_fresh {
            *self = Since::At(now);
        }
        is_fresh
    }

    /// When to look whether it has been so for so long, where `now` is the last moment told.
    fn end(self, time: Duration, now: Instant) -> Instant {
        self.after(time).unwrap_or(now + time)
    }

    /// When it will have been so for so long.
    fn after(self, time: Duration) -> Option<Instant> {
        match self {
            Since::At(begun) => Some(begun + time),
            Since::Never | Since::Fresh => None,
        }
    }

    /// Whether it has been so for so long.
    fn is_over(self, time: Duration, now: Instant) -> bool {
        self.after(time).is_some_and(|end| end <= now)
    }
}
