//! Who holds up the others: from the waits of the ranks of a job to those ranks at which the chains of waits end.
//!
//! * here: what is known of ranks and waits, and what is found;
//! * `absent`: the ranks for which receives of collective calls wait;
//! * `chains`: follows the chains, a pure function;
//! * `words`: what was found, as a sentence.
//!
//! `tidegate top` asks this of two looks at a running job, `tidegate run` of what a job left when it ended, and
//! `tidegate report` of all that was waited for in a recording: it knows neither pages nor clocks.

mod absent;
mod chains;
#[cfg(test)]
mod tests;
mod words;

pub use absent::absent;
pub use chains::find;
pub use words::{age, and_more, cause_word, no_call, ranks, sentence};

use std::time::Duration;
use tidegate_message::WaitCause;

/// Where a rank is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// In its MPI, or there a moment ago.
    Here,
    /// It has not been seen in its MPI for this long: it computes, or does something else.
    Away {
        /// How long.
        time: Duration,
        /// Whether it may have been longer: when it was last there is not known, but that it was not since this look
        /// began.
        at_least: bool,
    },
    /// It has gone on since it was last seen waiting in its MPI, nobody knows since when: it may be there and always
    /// find messages, or be away.
    WentOn,
    /// It has left its MPI in order.
    Ended,
    /// Its process is gone without having left in order.
    Gone,
}

impl Presence {
    /// Whether the process may still go on in its MPI, as far as is known.
    pub fn is_there(self) -> bool {
        !matches!(self, Presence::Ended | Presence::Gone)
    }
}

/// What a process does outside of its MPI, as its system shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doing {
    /// Nobody knows.
    #[default]
    Unknown,
    /// It uses a processor.
    Computes,
    /// It would go on, and gets no processor.
    Queues,
    /// It waits for something that is no message: a file, a lock, a time.
    Sleeps,
    /// A signal or a debugger has stopped it.
    Stopped,
}

impl Doing {
    /// One word, as in JSON, if it is known.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Doing::Unknown => None,
            Doing::Computes => Some("computes"),
            Doing::Queues => Some("queues"),
            Doing::Sleeps => Some("sleeps"),
            Doing::Stopped => Some("stopped"),
        }
    }

    /// Behind "it has not called MPI for 4.1 s".
    pub fn clause(self) -> &'static str {
        match self {
            Doing::Unknown => "",
            Doing::Computes => " and computes",
            Doing::Queues => " and gets no CPU",
            Doing::Sleeps => " and sleeps",
            Doing::Stopped => " and is stopped",
        }
    }
}

/// What is known of a rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// What to call it: "rank 3".
    pub name: String,
    /// Where it is.
    pub presence: Presence,
    /// What it does meanwhile.
    pub doing: Doing,
    /// Whether messages of it moved during the time looked at.
    pub moves: bool,
    /// The oldest receive that it has posted for a message of any rank, with its age.
    pub any: Option<(Receive, Duration)>,
    /// Messages that came and that no receive accepts, oldest first.
    pub unmatched: Vec<Unmatched>,
}

/// A message that no receive accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// Who sent it, by its place among the members, if known.
    pub from: Option<usize>,
    /// Its tag in words.
    pub text: String,
}

/// A posted receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receive {
    /// What it accepts, in words: "tag 77, communicator 1". Receives of one kind have the same.
    pub text: String,
    /// Whether it belongs to a collective call of all ranks.
    pub is_of_all: bool,
}

/// A rank that waits for another one. There may be several for the same two.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// Who waits, by its place among the members.
    pub waiter: usize,
    /// For whom.
    pub awaited: usize,
    /// For what.
    pub cause: WaitCause,
    /// During which part of the time looked at, from 0 to 1.
    pub share: f64,
    /// How long it has lasted, if it goes on.
    pub open_for: Option<Duration>,
    /// The receive that waits, if the cause is a message.
    pub receive: Option<Receive>,
}

/// Waits that go on at the end of a job count from this age on: one that is interrupted while all is well has many that
/// are younger.
pub const LASTED_AT_THE_END: Duration = Duration::from_millis(250);

/// What is known of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waits {
    /// Its ranks.
    pub members: Vec<Member>,
    /// Who waits for whom.
    pub waits: Vec<Wait>,
}

/// Why chains of waits end where they do.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// At a rank that waits for nobody, or much less than others wait for it.
    Rank(usize),
    /// At a rank that waits for a message which its sender does not send, though the sender goes on: the wait has this
    /// place among all.
    Unsent {
        /// Who waits.
        rank: usize,
        /// Its wait.
        wait: usize,
    },
    /// At ranks that wait for each other.
    Circle {
        /// Who, in the order of waiting if they make one ring, else in order of their places.
        ranks: Vec<usize>,
        /// Whether each of them waits for the next, and the last for the first.
        ring: bool,
        /// The wait of the first of them that is unlike all others, where they wait for messages.
        odd: Option<usize>,
    },
}

/// A rank, or a circle of ranks, that holds up others.
#[derive(Clone, Debug, PartialEq)]
pub struct Root {
    /// Where the chains end.
    pub end: End,
    /// How many ranks wait for it, by themselves or by way of others. Of a circle: all that wait, those in it included.
    pub holds_up: usize,
    /// Those ranks, in order.
    pub held: Vec<usize>,
    /// For how many ranks' whole time: the sum of their shares.
    pub weight: f64,
    /// For what most of those wait that wait for it directly.
    pub cause: WaitCause,
    /// The longest wait for it that goes on.
    pub longest: Option<Duration>,
    /// The largest part of the time that one waited for it.
    pub share: f64,
}

impl Root {
    /// The rank that the sentence is about, by its place; `None`: it blames none of a circle.
    pub fn blamed(&self, job: &Waits) -> Option<usize> {
        match &self.end {
            End::Rank(rank) | End::Unsent { rank, .. } => Some(*rank),
            End::Circle { odd, .. } => odd.map(|wait| job.waits[wait].waiter),
        }
    }
}

/// What was found: who holds up most comes first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finding {
    /// The ends of all chains.
    pub roots: Vec<Root>,
    /// How many ranks wait for another one during at least a fiftieth of the time.
    pub waiting: usize,
}
