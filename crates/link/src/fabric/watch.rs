//! [`Watch`]: whether the process of a peer is there, over a network below that tells nothing of its end.
//!
//! Some networks take messages for a process that has ended, and report nothing for minutes or ever; others say "again"
//! for ever. All hosts of a cluster have IP beside such a network. So a process that uses one listens at a TCP port at
//! which it never reads, and tells the port in its greeting: its kernel answers for it while it computes, and refuses
//! connections when it has ended.
//!
//! That network is another one, so its silence says nothing of the peer, and neither does a firewall's refusal. Only
//! this counts: the port took a connection once, when all was well, and refuses them now, for [`REFUSED_FOR`]. The peer
//! is asked when it has not answered a ping for a second; one that computes takes the connection, which is kept.

use super::liveness::{REFUSED_FOR, Reach, Series};
use tidegate_flow::Instant;

/// Where the acquaintance with a peer's port stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// The network does not know the port.
    #[default]
    Untold,
    /// The port is asked for the first time.
    Meeting,
    /// The port has taken a connection.
    Known,
    /// The port cannot be reached from here.
    Useless,
}

/// The outcome of a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Nothing yet.
    Nothing,
    /// No question is needed now.
    Enough,
    /// The process of the peer has ended; the text says why that is known.
    Lost(String),
}

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch {
    stage: Stage,
    /// Refusals of the port, one after the other.
    refused: Series,
    /// The port is being asked because the peer is silent.
    is_asking: bool,
}

impl Watch {
    /// Whether the network has to be told where the peer's port is. Says so once.
    pub fn begin(&mut self) -> bool {
        let is_new = self.stage == Stage::Untold;
        if is_new {
            self.stage = Stage::Meeting;
        }
        is_new
    }

    /// Whether an answer of the port says something of the peer.
    pub fn is_known(&self) -> bool {
        self.stage == Stage::Known
    }

    /// The peer was heard. Returns whether it was being asked.
    pub fn handle_heard(&mut self) -> bool {
        self.refused = Series::default();
        core::mem::take(&mut self.is_asking)
    }

    /// A look now and then. `is_silent`: the peer does not answer pings. `reach` asks the port, or looks for its
    /// answer.
    pub fn look(&mut self, now: Instant, is_silent: bool, reach: impl FnOnce() -> Option<Reach>) -> Finding {
        match self.stage {
            Stage::Meeting => {
                self.stage = match reach() {
                    Some(Reach::Asked | Reach::Postponed | Reach::Lacking(_)) => return Finding::Nothing,
                    Some(Reach::Listening) => Stage::Known,
                    _ => Stage::Useless,
                };
                Finding::Enough
            }
            Stage::Known if is_silent => {
                self.is_asking = true;
                match reach() {
                    Some(Reach::Refused) => self.refused.add(now),
                    Some(Reach::Asked | Reach::Postponed) => {}
                    _ => self.refused = Series::default(),
                }
                if self.refused.proves(now, REFUSED_FOR) {
                    return Finding::Lost("its host refuses connections to it: its process has ended".to_owned());
                }
                Finding::Nothing
            }
            Stage::Untold | Stage::Known | Stage::Useless => Finding::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    fn met(first: Reach) -> Watch {
        let mut watch = Watch::default();
        assert!(watch.begin() && !watch.begin());
        assert_eq!(watch.look(at(0), true, || Some(Reach::Asked)), Finding::Nothing);
        assert_eq!(watch.look(at(100), true, || Some(first)), Finding::Enough);
        watch
    }

    /// Looks every 100 ms, and when the peer counts as lost.
    fn lost_at(watch: &mut Watch, reach: impl Fn(u64) -> Reach) -> Option<u64> {
        (200..20_000)
            .step_by(100)
            .find(|now| matches!(watch.look(at(*now), true, || Some(reach(*now))), Finding::Lost(_)))
    }

    #[test]
    fn a_port_that_took_a_connection_and_refuses_now_proves_the_end() {
        let mut watch = met(Reach::Listening);
        assert_eq!(lost_at(&mut watch, |now| if now < 5_000 { Reach::Listening } else { Reach::Refused }), Some(5_500));
    }

    #[test]
    fn nothing_else_proves_anything() {
        for first in [Reach::Refused, Reach::Silent { had_answered: false }, Reach::Unreachable(String::new())] {
            assert_eq!(lost_at(&mut met(first), |_| Reach::Refused), None, "a firewall may answer so");
        }
        let others = [Reach::Silent { had_answered: true }, Reach::Unreachable(String::new()), Reach::Crowded];
        for other in others {
            assert_eq!(lost_at(&mut met(Reach::Listening), |_| other.clone()), None, "another network may be down");
        }
        let mut watch = met(Reach::Listening);
        let sometimes = |now: u64| if now.is_multiple_of(400) { Reach::Listening } else { Reach::Refused };
        assert_eq!(lost_at(&mut watch, sometimes), None);
    }

    #[test]
    fn a_peer_that_answers_is_not_asked() {
        let mut watch = met(Reach::Listening);
        assert_eq!(watch.look(at(200), false, || unreachable!()), Finding::Nothing);
        assert!(!watch.handle_heard(), "nobody asked");
        watch.look(at(300), true, || Some(Reach::Refused));
        assert!(watch.handle_heard(), "and here somebody did");
        assert_eq!(lost_at(&mut watch, |_| Reach::Refused), Some(700), "it begins anew");
    }
}
