//! [`Peer`]: what is known of one endpoint on another host, what is to be said to it next, and whether it lives.
//!
//! Nothing tells us that a host has lost its power, and little that a process has ended: the network below connects
//! again by itself, silently. So who hears nothing of a peer for a while asks it (*ping*). A peer that computes does
//! not answer, and is never taken for dead; pings to it come more and more rarely and end, so that what waits for it
//! stays bounded. These prove that a peer is out of reach: its host refuses connections to it for [`REFUSED_FOR`], or
//! the network below takes nothing for it for [`SILENT_FOR`] and cannot say why.

use super::contact::Contact;
use super::greeting::Greeting;
use super::network::{Network, Route};
use super::stream::{Inbox, Outbox};
use super::wire::Kind;
use std::time::Duration;
use tidegate_flow::Instant;

/// A peer of which nothing has come for this long is asked whether it is there.
pub const QUIET_FOR: Duration = Duration::from_millis(500);
/// The longest time between two pings to a peer that does not answer, until there have been many.
const PING_INTERVAL_MOST: Duration = Duration::from_secs(10);
/// After so many pings without an answer, they come more rarely: by then TCP has noticed a host without power.
const PINGS_MANY: u32 = 100;
/// The time between two pings from then on.
const PING_INTERVAL_RARE: Duration = Duration::from_secs(60);
/// So many pings without an answer are sent at most.
const PINGS_MOST: u32 = 1024;
/// A peer whose address nobody listens at for this long is gone.
pub const REFUSED_FOR: Duration = Duration::from_millis(500);
/// A peer for which the network below takes nothing for this long is out of reach.
pub const SILENT_FOR: Duration = Duration::from_secs(10);
/// Time between two looks whether a peer's address is refused.
const REFUSAL_INTERVAL: Duration = Duration::from_millis(100);

/// How far the two have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// We have said hello, or will, and no welcome has come.
    Greeting,
    /// Packets go to and fro.
    Open,
    /// We communicate no more.
    Ended,
}

/// What is to be said beside packets.
#[derive(Debug, Default)]
pub struct Due {
    /// A welcome, as the answer to a hello.
    pub welcome: bool,
    /// A refusal, as the answer to a hello with other parameters.
    pub refusal: bool,
    /// That we hear nothing of it any more.
    pub severed: bool,
    /// A hello or a ping.
    pub probe: bool,
    /// The answer to the ping of this number.
    pub answer: Option<u64>,
    /// An acknowledgement, if nothing has carried it until then.
    pub acknowledgement: Option<Instant>,
}

/// Asking whether it is there.
#[derive(Debug, Default)]
pub struct Probe {
    /// How many have been sent: the number of the last.
    pub sent: u64,
    /// Of these, since it was last heard of.
    unanswered: u32,
    /// When the next is due, if nothing is heard until then.
    at: Instant,
}

impl Probe {
    /// A probe was sent.
    pub fn handle_sent(&mut self, now: Instant) {
        self.sent += 1;
        self.unanswered += 1;
        let doubled = QUIET_FOR.saturating_mul(1 << self.unanswered.min(16));
        let interval = if self.unanswered < PINGS_MANY { doubled.min(PING_INTERVAL_MOST) } else { PING_INTERVAL_RARE };
        self.at = now + interval;
    }

    /// The peer was heard of.
    pub fn handle_heard(&mut self, now: Instant) {
        self.unanswered = 0;
        self.at = now + QUIET_FOR;
    }

    /// Whether one is due.
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.at && self.unanswered < PINGS_MOST
    }
}

/// The network below takes nothing for the peer.
#[derive(Clone, Copy, Debug)]
pub struct Trouble {
    since: Instant,
    refused_since: Option<Instant>,
    look_at: Instant,
}

/// An endpoint on another host.
#[derive(Debug)]
pub struct Peer {
    /// How it is reached.
    pub contact: Contact,
    /// The network's name for it, once it was needed.
    pub route: Option<Route>,
    /// How far we have come.
    pub phase: Phase,
    /// Its packets are dropped: it broke the protocol.
    pub is_quarantined: bool,
    /// Why nothing can be written to it any more.
    pub lost: String,
    /// What it has said of itself.
    pub greeting: Option<Greeting>,
    /// It has said that it is closing.
    pub is_closing: bool,
    /// What we send it.
    pub outbox: Outbox,
    /// What it sends us.
    pub inbox: Inbox,
    /// Batches that it has sent since we last acknowledged.
    pub unacknowledged: u64,
    /// What is to be said to it beside packets.
    pub due: Due,
    /// Whether it stands in the queue of those to whom something is to be sent.
    pub is_queued: bool,
    /// Asking whether it is there.
    pub probe: Probe,
    /// Since when nothing can be sent to it.
    pub trouble: Option<Trouble>,
    /// Sendings to it that the network has not ended.
    pub flights: u32,
}

impl Peer {
    /// A peer to whom nothing has been said.
    pub fn new(contact: Contact) -> Peer {
        Peer {
            contact,
            route: None,
            phase: Phase::Greeting,
            is_quarantined: false,
            lost: String::new(),
            greeting: None,
            is_closing: false,
            outbox: Outbox::default(),
            inbox: Inbox::default(),
            unacknowledged: 0,
            due: Due::default(),
            is_queued: false,
            probe: Probe::default(),
            trouble: None,
            flights: 0,
        }
    }

    /// The network's name for it. Errors are for people.
    pub fn route_by(&mut self, network: &mut impl Network) -> Result<Route, String> {
        match self.route {
            Some(route) => Ok(route),
            None => Ok(*self.route.insert(network.resolve(&self.contact.lower)?)),
        }
    }

    /// Who it is, for people.
    pub fn name(&self) -> String {
        match &self.greeting {
            Some(greeting) => greeting.name(),
            None => format!("{} of another host, at {}", self.contact, self.contact.lower),
        }
    }

    /// The last that is to be said to it when its place is given away, as a batch of the endpoint of this greeting.
    pub fn last_words(&self, own: &Greeting) -> Option<Vec<u8>> {
        let kind = match &self.due {
            due if due.refusal => Kind::Refusal,
            due if due.severed => Kind::Severed,
            due if due.acknowledgement.is_some() => Kind::Acknowledgement,
            _ => return None,
        };
        Some(own.batch(&self.contact, kind, 0, self.inbox.expected()))
    }

    /// Something has come from it.
    pub fn handle_heard(&mut self, now: Instant) {
        self.trouble = None;
        self.probe.handle_heard(now);
    }

    /// The network below could not take something for it. `is_refused` finds out whether the peer's host refuses.
    /// Returns why the peer counts as lost, if it does.
    pub fn handle_trouble(&mut self, now: Instant, is_refused: impl FnOnce() -> Option<bool>) -> Option<String> {
        let fresh = Trouble { since: now, refused_since: None, look_at: now + REFUSAL_INTERVAL };
        let trouble = self.trouble.get_or_insert(fresh);
        if now < trouble.look_at {
            return None;
        }
        trouble.look_at = now + REFUSAL_INTERVAL;
        match is_refused() {
            Some(true) => {
                let since = *trouble.refused_since.get_or_insert(now);
                let is_over = now.since(since) >= REFUSED_FOR;
                is_over.then(|| "its host refuses connections to it: its process has ended".to_owned())
            }
            // It lives, and takes no connection while it computes.
            Some(false) => {
                (trouble.since, trouble.refused_since) = (now, None);
                None
            }
            None => {
                trouble.refused_since = None;
                let is_over = now.since(trouble.since) >= SILENT_FOR;
                is_over.then(|| format!("nothing could be sent to it for {} s", SILENT_FOR.as_secs()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::testing::contact;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn pings_to_a_peer_that_computes_become_rare_and_end() {
        let mut probe = Probe::default();
        let (mut now, mut sent) = (at(1), Vec::new());
        while probe.is_due(now) {
            sent.push(now);
            probe.handle_sent(now);
            now = probe.at;
        }
        assert_eq!(sent.len(), PINGS_MOST as usize);
        assert!(sent[0] + Duration::from_secs(20 * 60) > sent[PINGS_MANY as usize], "often as long as TCP may take");
        assert!(sent.windows(2).all(|pair| pair[1].since(pair[0]) <= PING_INTERVAL_RARE));
        probe.handle_heard(now);
        assert!(probe.is_due(now + QUIET_FOR));
    }

    #[test]
    fn a_peer_is_lost_when_its_host_refuses_and_not_while_it_listens() {
        let mut peer = Peer::new(contact(1, 1, 64));
        let mut lost = |from: u64, until: u64, answer: Option<bool>| {
            peer.handle_heard(at(from));
            (from..until).step_by(10).find(|time| peer.handle_trouble(at(*time), || answer).is_some())
        };
        assert_eq!(lost(0, 60_000, Some(false)), None, "it computes");
        assert_eq!(lost(60_000, 60_400, Some(true)), None, "something resets connections");
        assert_eq!(lost(60_400, 90_000, Some(false)), None);
        let when = lost(90_000, 99_000, Some(true)).unwrap();
        assert!((90_500..90_800).contains(&when), "{when}");
        let when = lost(100_000, 120_000, None).unwrap();
        assert!((109_900..110_300).contains(&when), "{when}");
    }
}
