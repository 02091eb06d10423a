//! [`ReachabilityProbe`]: connections that carry nothing, by which we find out whether a peer's process and its host
//! are there, where peers are reached by TCP.
//!
//! The simple idea: connect to the peer's port now and then; if nothing answers, the host is gone. It fails, because
//! the kernel of a host drops tries to connect to a port whose queue of connections is full, and the queue of a process
//! that computes stays full for as long as it computes. Worse, each try of ours that is taken fills it.
//!
//! Therefore:
//!
//! - *A connection that is taken is kept*, one per peer, until the peer is heard, or lost. While it waits in the queue
//!   of the port, the peer's kernel answers its keepalives; when the process ends, the kernel resets it. So it takes
//!   one place in the queue, and tells the peer's life for as long as it lasts.
//! - *A port that is silent says nothing of its host.* Another port is asked, at which nobody listens: if the host
//!   refuses the connection, the host lives. One such question per host is under way at a time, whoever of its peers it
//!   is for.
//! - *Each host is asked such a question once when all is well*, so that its silence later is told from a firewall that
//!   never lets it answer.
//!
//! A connection that was taken may be one that is none: where several try at once to get the last place of a queue,
//! some hold a connection that the other kernel forgets after a minute, or less. So the end of a kept connection proves
//! nothing: it makes us try again, and what comes of that counts.
//!
//! Bounds: [`PROBES_MOST`] peers and [`QUESTIONS_MOST`] hosts are asked at a time, each with one connection; the others
//! wait, and whoever has been asked for [`TURN`] makes room for them. As many hosts are remembered as there may be
//! peers.

use super::liveness::Reach;
use super::network::{Answer, Network, Probe, ProbeTarget, Route};
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;
use tidegate_flow::{Instant, PeerId};

/// Peers that are asked at a time.
pub const PROBES_MOST: usize = 256;
/// Hosts that are asked at a time.
pub const QUESTIONS_MOST: usize = 32;
/// A peer that has been asked for this long makes room for another that waits for its turn.
const TURN: Duration = Duration::from_secs(60);
/// A port that has not answered for this long is silent, so its host is asked; and a connection to a silent port of a
/// host that answers is tried again so often: there may be room in its queue, or nobody at the port any more.
const PORT_PATIENCE: Duration = Duration::from_secs(1);
/// A host that has not answered for this long is silent, and asked anew. Its neighbours need three seconds to say that
/// it is not there.
const HOST_PATIENCE: Duration = Duration::from_secs(5);
/// So long an answer of a host counts.
const HOST_ANSWER_FOR: Duration = Duration::from_secs(2);
/// A kept connection that has lasted this long was a good one.
const GOOD_AFTER: Duration = Duration::from_secs(10);
/// Time until a peer is asked again whose second good connection has ended at once. It doubles with each.
const AGAIN_FIRST: Duration = Duration::from_secs(1);
/// The longest.
const AGAIN_MOST: Duration = Duration::from_secs(10);

/// A peer that is asked.
#[derive(Debug)]
struct Asked {
    host: IpAddr,
    /// Since when it has its turn.
    since: Instant,
    /// The connection, and since when it is tried.
    probe: Option<(Probe, Instant)>,
    /// Since when the connection is there.
    taken_since: Option<Instant>,
    /// Since when its port answers nothing.
    silent_since: Instant,
    /// Connections in a row that were taken and soon ended.
    ended: u32,
    /// None is tried before this.
    again_at: Instant,
}

/// What is known of a host.
#[derive(Debug, Default)]
struct Host {
    /// The question that is under way, and since when.
    question: Option<(Probe, Instant)>,
    answered_at: Option<Instant>,
    /// It has not answered the last question that is over.
    is_silent: bool,
}

impl Host {
    /// Whether it has answered a moment ago.
    fn is_heard(&self, now: Instant) -> bool {
        self.answered_at.is_some_and(|at| now < at + HOST_ANSWER_FOR)
    }

    fn handle_answer(&mut self, is_heard: bool, now: Instant) {
        self.is_silent = !is_heard;
        if is_heard {
            self.answered_at = Some(now);
        }
    }

    /// Looks for the answer to the question that is under way.
    fn look(&mut self, network: &mut impl Network, now: Instant) {
        let Some((question, since)) = self.question else { return };
        let answer = network.answer(question);
        if answer == Answer::None && now < since + HOST_PATIENCE {
            return;
        }
        network.close(question);
        self.question = None;
        // A router's word that there is no way proves nothing, nor does a firewall's.
        let is_heard = matches!(answer, Answer::Refused | Answer::Taken | Answer::Named(_) | Answer::Ended);
        self.handle_answer(is_heard, now);
    }

    /// Asks it, unless it is being asked. `route`: of any of its peers.
    fn ask(&mut self, route: Route, network: &mut impl Network, now: Instant) {
        if self.question.is_some() {
            return;
        }
        match network.probe(route, ProbeTarget::Host) {
            Ok(question) => self.question = Some((question, now)),
            Err(Answer::Refused) => self.handle_answer(true, now),
            Err(Answer::Lacking(_)) => {}
            Err(_) => self.handle_answer(false, now),
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct ReachabilityProbe {
    asked: HashMap<PeerId, Asked>,
    hosts: HashMap<IpAddr, Host>,
    hosts_most: usize,
    /// Hosts to which a question is under way, or was a moment ago.
    questioned: Vec<IpAddr>,
    /// Connections of no use any more.
    over: Vec<Probe>,
}

impl ReachabilityProbe {
    /// Nobody is asked. `peers`: how many there may be.
    pub fn new(peers: usize) -> ReachabilityProbe {
        let (asked, hosts, questioned, over) = (HashMap::new(), HashMap::new(), Vec::new(), Vec::new());
        ReachabilityProbe { asked, hosts, hosts_most: peers.max(1), questioned, over }
    }

    /// The most memory that one peer takes here, in bytes.
    pub const BYTES_PER_PEER: usize = size_of::<(PeerId, Asked)>() + size_of::<(IpAddr, Host)>() + 2;

    /// Nobody needs to know any more whether this peer is there.
    pub fn stop(&mut self, place: PeerId) {
        if let Some((probe, _)) = self.asked.remove(&place).and_then(|asked| asked.probe) {
            self.over.push(probe);
        }
    }

    /// Closes the connections that are of no use any more.
    pub fn close(&mut self, network: &mut impl Network) {
        self.over.drain(..).for_each(|probe| network.close(probe));
    }

    /// Gets to know the host of a peer while all is well. Returns whether it need not be called for this peer again.
    pub fn meet(&mut self, route: Route, network: &mut impl Network, now: Instant) -> bool {
        let Some(address) = network.host(route) else { return true };
        if self.hosts.contains_key(&address) {
            return true;
        }
        // Half are left for those whose peers are in trouble.
        if self.questioned.len() >= QUESTIONS_MOST / 2 {
            return false;
        }
        self.question(address, route, network, now);
        true
    }

    /// Looks for the answers to all questions: those who asked may need them no more. To be called now and then.
    pub fn handle_timeout(&mut self, network: &mut impl Network, now: Instant) {
        self.questioned.retain(|address| {
            let Some(host) = self.hosts.get_mut(address) else { return false };
            host.look(network, now);
            host.question.is_some()
        });
    }

    /// Asks a host, unless it is being asked. Returns whether there was room for that.
    fn question(&mut self, address: IpAddr, route: Route, network: &mut impl Network, now: Instant) -> bool {
        if !self.questioned.contains(&address) {
            if self.questioned.len() >= QUESTIONS_MOST {
                return false;
            }
            self.questioned.push(address);
        }
        self.host(address).ask(route, network, now);
        true
    }

    /// What is known of a host. Where too many are remembered, one of which nobody needs anything goes.
    fn host(&mut self, address: IpAddr) -> &mut Host {
        if self.hosts.len() >= self.hosts_most && !self.hosts.contains_key(&address) {
            let is_free = |known: &IpAddr, host: &Host| {
                host.question.is_none() && !self.asked.values().any(|asked| asked.host == *known)
            };
            let free = self.hosts.iter().find(|(known, host)| is_free(known, host)).map(|(known, _)| *known);
            free.map(|known| self.hosts.remove(&known));
        }
        self.hosts.entry(address).or_default()
    }

    /// Asks a peer, or looks for the answer to what was asked before. `None`: nobody can be asked by this network.
    pub fn ask(&mut self, place: PeerId, route: Route, network: &mut impl Network, now: Instant) -> Option<Reach> {
        let host = network.host(route)?;
        if !self.asked.contains_key(&place) && !self.admit(place, host, now) {
            return Some(Reach::Postponed);
        }
        let asked = self.asked.get_mut(&place)?;
        let (probe, since) = match asked.probe {
            Some(probe) => probe,
            // A moment ago there was somebody.
            None if now < asked.again_at => return Some(Reach::Listening),
            None => match network.probe(route, ProbeTarget::Peer) {
                Ok(probe) => *asked.probe.insert((probe, now)),
                Err(answer) => return Some(self.conclude(place, answer, now)),
            },
        };
        Some(match network.answer(probe) {
            Answer::Taken => {
                asked.taken_since.get_or_insert(now);
                asked.silent_since = now;
                Reach::Listening
            }
            Answer::None if now < asked.silent_since + PORT_PATIENCE => Reach::Asked,
            Answer::None => self.ask_host(place, (probe, since), route, network, now),
            answer => {
                network.close(probe);
                asked.probe = None;
                self.conclude(place, answer, now)
            }
        })
    }

    /// Gives a peer its turn, if there is room.
    fn admit(&mut self, place: PeerId, host: IpAddr, now: Instant) -> bool {
        if self.asked.len() >= PROBES_MOST {
            let Some((first, since)) = self.first() else { return false };
            if now < since + TURN {
                return false;
            }
            self.stop(first);
        }
        let (probe, taken_since, ended) = (None, None, 0);
        let asked = Asked { host, since: now, probe, taken_since, silent_since: now, ended, again_at: now };
        self.asked.insert(place, asked);
        true
    }

    /// Who has been asked for the longest time.
    fn first(&self) -> Option<(PeerId, Instant)> {
        self.asked.iter().map(|(place, asked)| (*place, asked.since)).min_by_key(|(_, since)| *since)
    }

    /// A connection to a peer's port has ended, or could not be tried.
    fn conclude(&mut self, place: PeerId, answer: Answer, now: Instant) -> Reach {
        let Some(asked) = self.asked.get_mut(&place) else { return Reach::Postponed };
        let lasted = asked.taken_since.take().map(|since| now.since(since));
        match answer {
            // Whoever was there has ended, or makes progress, or the kernel had never had the connection: the next one
            // tells, which is tried at once.
            Answer::Ended | Answer::Named(_) => {
                asked.ended = if lasted >= Some(GOOD_AFTER) { 0 } else { asked.ended + 1 };
                let wait = match asked.ended {
                    0 | 1 => Duration::ZERO,
                    ended => AGAIN_FIRST.saturating_mul(1 << (ended - 2).min(16)).min(AGAIN_MOST),
                };
                (asked.again_at, asked.silent_since) = (now + wait, now);
                if let Answer::Named(name) = answer { Reach::Named(name) } else { Reach::Asked }
            }
            Answer::Refused => {
                asked.silent_since = now;
                let host = asked.host;
                self.host(host).handle_answer(true, now);
                Reach::Refused
            }
            Answer::Unreachable(why) => Reach::Unreachable(why),
            // It may be our own connections that use up the descriptors: the oldest goes, and then there is none.
            Answer::Lacking(why) => {
                self.stop(place);
                match self.first() {
                    Some((first, _)) => {
                        self.stop(first);
                        Reach::Postponed
                    }
                    None => Reach::Lacking(why),
                }
            }
            // Something else hinders this host, which may pass.
            Answer::None | Answer::Taken => Reach::Silent { had_answered: false },
        }
    }

    /// The port of a peer is silent: asks its host.
    fn ask_host(
        &mut self,
        place: PeerId,
        (probe, since): (Probe, Instant),
        route: Route,
        network: &mut impl Network,
        now: Instant,
    ) -> Reach {
        let Some(asked) = self.asked.get_mut(&place) else { return Reach::Postponed };
        let address = asked.host;
        self.host(address).look(network, now);
        if !self.host(address).is_heard(now) && !self.question(address, route, network, now) {
            return Reach::Postponed;
        }
        let host = self.host(address);
        let reach = match (host.is_heard(now), host.is_silent, host.answered_at) {
            (true, ..) => Reach::Crowded,
            (false, false, _) => Reach::Asked,
            (false, true, answered) => Reach::Silent { had_answered: answered.is_some() },
        };
        // Tries that wait become rare by themselves: a new one is made.
        let patience = if reach == Reach::Crowded { PORT_PATIENCE } else { HOST_PATIENCE };
        if now >= since + patience
            && let Some(asked) = self.asked.get_mut(&place)
        {
            network.close(probe);
            asked.probe = None;
        }
        reach
    }
}
