//! [`Watch`]: whether the process of a peer is there, over a network below that tells nothing of its end.
//!
//! Some networks take messages for a process that has ended, and report nothing for minutes or ever; others say
//! "again" for ever. All hosts of a cluster have IP beside such a network. So a process that uses one listens at a TCP
//! port, and tells it in its greeting, with a random number, its *name*. When it makes progress, it says the name to
//! those who have connected, and nothing else. Its kernel answers for it while it computes, and refuses connections
//! when it has ended.
//!
//! That network is another one, so its silence says nothing of the peer, nor does a firewall's refusal, nor another
//! process that has the same address on another network. Only this counts: the port said the right name once, and
//! refuses connections now, as [`Refusals`] have it. The peer is asked when it has not answered a ping for a second;
//! one that computes takes the connection, which is kept.

use super::liveness::{Reach, Refusals};
use std::time::Duration;
use tidegate_flow::Instant;

/// For this long a port is asked for its name: its process may compute.
const MEET_FOR: Duration = Duration::from_secs(2);
/// Time until it is asked again. It doubles with each that is in vain.
const MEET_AGAIN_FIRST: Duration = Duration::from_secs(1);
/// The longest.
const MEET_AGAIN_MOST: Duration = Duration::from_secs(60);

/// Where the acquaintance with a peer's port stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// The network does not know the port.
    #[default]
    Untold,
    /// The port is asked for its name.
    Meeting,
    /// The port has said the right name.
    Known,
    /// Another process is there.
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
    /// Refusals of the port, since the peer was heard.
    refused: Refusals,
    /// The port is being asked because the peer is silent.
    is_asking: bool,
    /// The port is not asked for its name before this, and until when it is; and how often that was in vain.
    meet_at: Instant,
    meet_until: Option<Instant>,
    meetings: u32,
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
        self.refused = Refusals::default();
        core::mem::take(&mut self.is_asking)
    }

    /// A look now and then. `name`: the peer's. `is_silent`: the peer does not answer pings. `reach` asks the port, or
    /// looks for its answer.
    pub fn look(&mut self, now: Instant, name: u64, is_silent: bool, reach: impl FnOnce() -> Option<Reach>) -> Finding {
        match self.stage {
            Stage::Meeting if now >= self.meet_at => self.meet(now, name, reach()),
            Stage::Known if is_silent => {
                self.is_asking = true;
                let reach = reach();
                if matches!(reach, Some(Reach::Named(other)) if other != name) {
                    self.stage = Stage::Useless;
                    return Finding::Enough;
                }
                self.refused.judge(reach.as_ref(), now).map_or(Finding::Nothing, Finding::Lost)
            }
            Stage::Untold | Stage::Meeting | Stage::Known | Stage::Useless => Finding::Nothing,
        }
    }

    /// The port has answered so, before it is known.
    fn meet(&mut self, now: Instant, name: u64, reach: Option<Reach>) -> Finding {
        let until = *self.meet_until.get_or_insert(now + MEET_FOR);
        match reach {
            Some(Reach::Named(said)) => {
                self.stage = if said == name { Stage::Known } else { Stage::Useless };
                return Finding::Enough;
            }
            None => {
                self.stage = Stage::Useless;
                return Finding::Enough;
            }
            Some(Reach::Asked | Reach::Postponed | Reach::Listening) if now < until => return Finding::Nothing,
            Some(_) => {}
        }
        let pause = MEET_AGAIN_FIRST.saturating_mul(1 << self.meetings.min(16)).min(MEET_AGAIN_MOST);
        (self.meet_at, self.meet_until, self.meetings) = (now + pause, None, self.meetings + 1);
        Finding::Enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: u64 = 77;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    fn known() -> Watch {
        let mut watch = Watch::default();
        assert!(watch.begin() && !watch.begin());
        assert_eq!(watch.look(at(0), NAME, true, || Some(Reach::Listening)), Finding::Nothing);
        assert_eq!(watch.look(at(100), NAME, true, || Some(Reach::Named(NAME))), Finding::Enough);
        assert!(watch.is_known());
        watch
    }

    /// Looks every 100 ms, and when the peer counts as lost.
    fn lost_at(watch: &mut Watch, reach: impl Fn(u64) -> Reach) -> Option<u64> {
        let is_lost = |now: &u64| matches!(watch.look(at(*now), NAME, true, || Some(reach(*now))), Finding::Lost(_));
        (200..200_000).step_by(100).find(is_lost)
    }

    #[test]
    fn a_port_that_said_its_name_and_refuses_now_proves_the_end() {
        let ends = |now| if now < 5_000 { Reach::Listening } else { Reach::Refused };
        assert_eq!(lost_at(&mut known(), ends), Some(5_500));
    }

    #[test]
    fn nothing_else_proves_anything() {
        let others = [
            Reach::Silent { had_answered: true },
            Reach::Unreachable(String::new()),
            Reach::Crowded,
            Reach::Named(NAME),
        ];
        for other in others {
            assert_eq!(lost_at(&mut known(), |_| other.clone()), None, "another network may be down");
        }
        let sometimes = |now: u64| if now.is_multiple_of(400) { Reach::Listening } else { Reach::Refused };
        assert_eq!(lost_at(&mut known(), sometimes), None);
        let another = |now: u64| if now < 300 { Reach::Named(NAME + 1) } else { Reach::Refused };
        assert_eq!(lost_at(&mut known(), another), None, "another process has the address there");
    }

    #[test]
    fn a_port_is_asked_for_its_name_until_it_says_it_more_and_more_rarely() {
        for answer in [Reach::Refused, Reach::Crowded, Reach::Silent { had_answered: false }, Reach::Listening] {
            let (mut watch, mut asked) = (Watch::default(), 0);
            watch.begin();
            for now in (0..600_000).step_by(100) {
                watch.look(at(now), NAME, false, || {
                    asked += 1;
                    Some(answer.clone())
                });
            }
            assert!(!watch.is_known() && (10..400).contains(&asked), "{asked} times {answer:?}");
            let named = (600_000..700_000).step_by(100).find(|now| {
                watch.look(at(*now), NAME, false, || Some(Reach::Named(NAME)));
                watch.is_known()
            });
            assert!(named.is_some(), "it can be reached now");
        }
    }

    #[test]
    fn a_peer_that_answers_is_not_asked() {
        let mut watch = known();
        assert_eq!(watch.look(at(200), NAME, false, || unreachable!()), Finding::Nothing);
        assert!(!watch.handle_heard(), "nobody asked");
        watch.look(at(300), NAME, true, || Some(Reach::Refused));
        assert!(watch.handle_heard(), "and here somebody did");
        assert_eq!(lost_at(&mut watch, |_| Reach::Refused), Some(700), "it begins anew");
    }
}
