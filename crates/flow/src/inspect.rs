//! A read-only copy of the whole state, for displays and for checkers of invariants. Not for the fast path: it
//! allocates.

use crate::{PeerId, SchemeName};
use std::fmt;

/// How active a sender was lately, as its receiver sees it (P §6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activity {
    /// Reached at least two monitoring points lately.
    High,
    /// Between the two, or stolen from a moment ago.
    Medium,
    /// Reached none lately. The last in this list is the next victim.
    Low,
    /// Stolen down to its static slots.
    Null,
}

impl Activity {
    /// All of them, the most active first.
    pub const ALL: [Activity; 4] = [Activity::High, Activity::Medium, Activity::Low, Activity::Null];
}

/// The state of one endpoint's flow control.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inspection {
    /// The scheme.
    pub scheme: SchemeName,
    /// What is lent to nobody: slots of the data region under `dynamic`, buffers under `growing`. Else 0.
    pub available_slots: u32,
    /// The slots that every sender keeps. 0 unless `dynamic`.
    pub static_slots: u32,
    /// The activity lists, indexed like [`Activity::ALL`], each from its first place to its last. Empty unless
    /// `dynamic`.
    pub activity_lists: [Vec<PeerId>; 4],
    /// Buffers that the pool is to have posted. 0 unless `shared_window`.
    pub window: u32,
    /// Each peer, in both roles. Empty under `none` and other schemes that keep no account of peers.
    pub peers: Vec<PeerInspection>,
}

/// The state of one peer. What a scheme does not have is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PeerInspection {
    /// We as sender: credits held at the peer.
    pub credits: u32,
    /// We as sender: a return request of ours waits for a credit.
    pub request_waiting: bool,
    /// We as sender: our return response waits for a credit.
    pub response_waiting: bool,
    /// We as sender: messages to the peer, or credit packets, wait for the retry timer.
    pub is_retrying: bool,
    /// We as receiver: credits granted that no packet carries yet; the next poll sends them.
    pub credits_due: u32,
    /// We as receiver: credits of the peer that it holds, that cover its packets on the way, or that travel to it.
    pub current_credits: u32,
    /// We as receiver: its packets that were retrieved and not returned.
    pub retrieved: u32,
    /// We as receiver: credits that rode on data since the last threshold.
    pub piggybacked: u32,
    /// We as receiver: the queue of thresholds, the current one first.
    pub thresholds: Vec<u32>,
    /// We as receiver: crossings since the last monitoring point.
    pub crossings: u32,
    /// We as receiver: the quota we mean it to have.
    pub intended_quota: u32,
    /// We as receiver: it was asked to return credits and has not answered.
    pub blocked: bool,
}

impl Inspection {
    /// An endpoint without peers.
    pub(crate) fn new(scheme: SchemeName) -> Self {
        Inspection {
            scheme,
            available_slots: 0,
            static_slots: 0,
            window: 0,
            activity_lists: Default::default(),
            peers: Vec::new(),
        }
    }

    /// The list that `peer` is in, if the scheme has lists.
    pub fn activity(&self, peer: PeerId) -> Option<Activity> {
        let place = self.activity_lists.iter().position(|list| list.contains(&peer))?;
        Some(Activity::ALL[place])
    }
}

/// One line: `dynamic available 3 high[] medium[0] low[1] null[] | 0: credits 2 …`.
impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.scheme)?;
        if self.activity_lists.iter().any(|list| !list.is_empty()) {
            write!(f, " available {}", self.available_slots)?;
            for (name, list) in ["high", "medium", "low", "null"].iter().zip(&self.activity_lists) {
                let members: Vec<_> = list.iter().map(|peer| peer.0.to_string()).collect();
                write!(f, " {name}[{}]", members.join(" "))?;
            }
        }
        for (index, peer) in self.peers.iter().enumerate() {
            write!(f, " | {index}: {peer}")?;
        }
        Ok(())
    }
}

/// The credits held at the peer and lent to it, in one phrase; parts that are 0 or unset are left out.
impl fmt::Display for PeerInspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "credits {} lent {} thresholds {:?}", self.credits, self.current_credits, self.thresholds)?;
        write!(f, " retrieved {} intended {}", self.retrieved, self.intended_quota)?;
        let counts = [("crossings", self.crossings), ("rode", self.piggybacked), ("due", self.credits_due)];
        for (name, count) in counts.into_iter().filter(|&(_, count)| count > 0) {
            write!(f, " {name} {count}")?;
        }
        let flags = [("blocked", self.blocked), ("request", self.request_waiting), ("response", self.response_waiting)];
        let flags = flags.into_iter().chain([("retrying", self.is_retrying)]);
        for (name, _) in flags.filter(|&(_, set)| set) {
            write!(f, " {name}")?;
        }
        Ok(())
    }
}
