//! Whether a peer lives: when it is asked ([`Probe`]), and what proves that it is out of reach ([`Trouble`]).
//!
//! Nothing tells us that a host has lost its power, and little that a process has ended: the network below connects
//! again by itself, silently. So who hears nothing of a peer for a while asks it (*ping*); a peer that has not
//! acknowledged a batch for a while is asked too, however much comes from it, since what was sent to it may be lost. A
//! peer that computes does not answer, and is not taken for dead: questions to it come more and more rarely, and one
//! is under way at a time.
//!
//! While the network below takes nothing for a peer, or what it takes fails, its kernel is asked by connections of our
//! own (`reachability_probe`, which says what a kernel's answer is worth). These prove that the peer is out of reach:
//!
//! - connections to its port are refused for [`REFUSED_FOR`];
//! - there is no way to its host for [`FAILED_FOR`];
//! - our own process has no descriptor left to ask it, for [`LACKING_FOR`];
//! - neither its port nor another one of its host answers for [`FAILED_FOR`], and that host had answered us before; if
//!   it never had, because a firewall lets it answer nothing, for [`SILENT_FOR`]: as long as TCP takes to give up.
//!
//! A port that is silent proves nothing while its host answers: a process that computes takes no connections, and once
//! its queue is full its kernel answers none.
//!
//! Where another process says that the peer is not at its address any more, which proves nothing, the peer is asked
//! again; it is gone when that goes on for [`FAILED_FOR`] and nothing comes from itself.
//!
//! Over a network that can ask nobody, each sending must have failed for [`FAILED_FOR`], or nothing be taken for
//! [`SILENT_FOR`].

use std::time::Duration;
use tidegate_flow::Instant;

/// A peer of which nothing has come for this long is asked whether it is there.
pub const QUIET_FOR: Duration = Duration::from_millis(500);
/// Time between two pings to a peer that does not answer. One that is killed while it computes is noticed with the
/// next: its kernel has ended the connection, which nobody tells us before.
const PING_INTERVAL_OFTEN: Duration = Duration::from_secs(1);
/// So many come so often.
const PINGS_OFTEN: u32 = 20;
/// The time between two pings from then on.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// After so many without an answer, they come more rarely: by then TCP has noticed a host without power.
const PINGS_MANY: u32 = 112;
/// The time between two pings from then on.
const PING_INTERVAL_RARE: Duration = Duration::from_secs(60);

/// A peer whose address nobody listens at for this long is gone.
pub const REFUSED_FOR: Duration = Duration::from_millis(500);
/// A peer whose host cannot be reached for this long is gone, and one to which each sending fails.
pub const FAILED_FOR: Duration = Duration::from_secs(10);
/// A peer that cannot be asked for this long, as our own process has nothing left to ask with, is out of reach.
pub const LACKING_FOR: Duration = Duration::from_secs(60);
/// A peer of whose host nothing is heard for this long, and never was, is gone.
pub const SILENT_FOR: Duration = Duration::from_secs(15 * 60);

/// Time between the first two tries to send what the network did not take. It doubles with each.
const RETRY_FIRST: Duration = Duration::from_micros(50);
/// The longest.
const RETRY_MOST: Duration = Duration::from_millis(5);
/// Trouble of this length makes us ask the peer's host; and time between two tries of a connection that was refused.
const ASK_FIRST: Duration = Duration::from_millis(100);
/// Time between two looks for the answer to a question. It doubles with each, up to `ASK_FIRST`.
const ANSWER_INTERVAL: Duration = Duration::from_millis(5);
/// Time between two looks whether somebody is still there.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// Time between two tries to ask a host to which there is no way, or for which others have the turn.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// So many answers in a row make a proof, however much time has passed between them: an answer may have waited for us
/// for as long as this process has computed.
const ANSWERS_LEAST: u32 = 3;

/// Refusals of a port, one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refusals(Series);

impl Refusals {
    /// The port has answered so. Returns why its process has ended, if that is known now: refusals prove it, a question
    /// without an answer changes nothing, and any other answer ends the series.
    pub fn judge(&mut self, reach: Option<&Reach>, now: Instant) -> Option<String> {
        match reach {
            Some(Reach::Refused) => self.0.add(now),
            Some(Reach::Asked | Reach::Postponed) => {}
            _ => self.0 = Series::default(),
        }
        self.verdict(now)
    }

    fn verdict(&self, now: Instant) -> Option<String> {
        let is_proven = self.0.proves(now, REFUSED_FOR);
        is_proven.then(|| "its host refuses connections to it: its process has ended".to_owned())
    }
}

/// What has come of asking whether a peer is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It is being asked.
    Asked,
    /// It will be asked: now others are.
    Postponed,
    /// Nobody listens at its address: its process has ended, or something on the way resets connections.
    Refused,
    /// Somebody listens there.
    Listening,
    /// The process there has said this number, and has closed the connection.
    Named(u64),
    /// Its port is silent, and its host is there: too many wait for a process that takes no connections now.
    Crowded,
    /// There is no way to the host; the text says why.
    Unreachable(String),
    /// This process has no descriptor left to ask with; the text says what is lacking. It says nothing of the peer.
    Lacking(String),
    /// Neither its port nor its host answers.
    Silent {
        /// The host had answered such a question before.
        had_answered: bool,
    },
}

/// Answers of one kind, one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Series {
    since: Instant,
    count: u32,
}

impl Series {
    /// One more.
    pub fn add(&mut self, now: Instant) {
        if self.count == 0 {
            self.since = now;
        }
        self.count += 1;
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether they are enough, and last long enough, to be believed.
    pub fn proves(&self, now: Instant, least: Duration) -> bool {
        self.count >= ANSWERS_LEAST && now.since(self.since) >= least
    }
}

/// Asking a peer whether it is there.
#[derive(Debug, Default)]
pub struct Probe {
    /// How many have been sent: the number of the last.
    pub sent: u64,
    /// The network has not ended the sending of the last.
    pub is_under_way: bool,
    /// Of these, since the peer was last heard of.
    unanswered: u32,
    sent_at: Instant,
    heard_at: Instant,
    /// Words of others that the peer is not there, since it was last heard of.
    absent: Series,
}

impl Probe {
    /// A probe was sent.
    pub fn handle_sent(&mut self, now: Instant) {
        self.sent += 1;
        self.unanswered += 1;
        (self.sent_at, self.is_under_way) = (now, true);
    }

    /// The peer was heard of.
    pub fn handle_heard(&mut self, now: Instant) {
        (self.unanswered, self.heard_at, self.absent) = (0, now, Series::default());
    }

    /// Another process says that the peer is not at its address: it is asked often again. Returns whether it is gone.
    pub fn handle_absent(&mut self, now: Instant) -> bool {
        self.unanswered = self.unanswered.min(1);
        self.absent.add(now);
        self.absent.proves(now, FAILED_FOR)
    }

    fn interval(&self) -> Duration {
        match self.unanswered {
            0 => QUIET_FOR,
            PINGS_MANY.. => PING_INTERVAL_RARE,
            PINGS_OFTEN.. => PING_INTERVAL,
            _ => PING_INTERVAL_OFTEN,
        }
    }

    /// Whether the peer has not answered the last one for a second. (Another one may never be sent: the network may
    /// keep this one for ever.)
    pub fn is_silent(&self, now: Instant) -> bool {
        self.unanswered >= 2 || (self.unanswered == 1 && now >= self.sent_at + PING_INTERVAL_OFTEN)
    }

    /// Whether one is due: nothing has come for a while, or something has waited as long for an answer.
    pub fn is_due(&self, now: Instant, waiting_since: Option<Instant>) -> bool {
        let since = waiting_since.map_or(self.heard_at, |since| since.min(self.heard_at));
        !self.is_under_way && now >= since + QUIET_FOR && now >= self.sent_at + self.interval()
    }
}

/// The network below takes nothing for a peer, or what it takes fails.
#[derive(Debug)]
pub struct Trouble {
    /// Nothing is tried before this.
    pub retry_at: Instant,
    retry_interval: Duration,
    /// Since when nothing has been heard of its host.
    silent_since: Instant,
    /// What its host's last answer was, if it did not answer: whether it had done so before.
    silence: Option<bool>,
    refused: Refusals,
    unreachable: Series,
    lacking: Series,
    /// The last reason why its host cannot be reached, or asked.
    why: String,
    /// Since when each sending has failed, and the last reason.
    failed: Option<(Instant, String)>,
    ask_at: Instant,
    answer_interval: Duration,
}

impl Trouble {
    /// It has begun.
    pub fn new(now: Instant) -> Trouble {
        Trouble {
            retry_at: now,
            retry_interval: RETRY_FIRST,
            silent_since: now,
            silence: None,
            refused: Refusals::default(),
            unreachable: Series::default(),
            lacking: Series::default(),
            why: String::new(),
            failed: None,
            ask_at: now + ASK_FIRST,
            answer_interval: ANSWER_INTERVAL,
        }
    }

    /// A sending was not taken, or has failed; `why`: the network's words, if it has any.
    pub fn handle_failure(&mut self, now: Instant, why: Option<String>) {
        self.retry_at = now + self.retry_interval;
        self.retry_interval = (self.retry_interval * 2).min(RETRY_MOST);
        if let Some(why) = why {
            let since = self.failed.as_ref().map_or(now, |(since, _)| *since);
            self.failed = Some((since, why));
        }
    }

    /// Asks now and then whether the peer is there: `reach` begins a question, or looks for its answer, and returns
    /// `None` where nobody can be asked. Returns why the peer counts as lost, if it does.
    pub fn judge(&mut self, now: Instant, reach: impl FnOnce() -> Option<Reach>) -> Option<String> {
        if now < self.ask_at {
            return None;
        }
        let Some(reach) = reach() else {
            self.ask_at = now + ASK_FIRST;
            return self.verdict_unasked(now);
        };
        self.ask_at = now + self.interval(&reach);
        if reach == Reach::Asked {
            return None;
        }
        // Any other answer ends a series, except that a host to which there is no way does not answer either.
        if reach != Reach::Refused {
            self.refused = Refusals::default();
        }
        if !matches!(reach, Reach::Unreachable(_) | Reach::Silent { .. }) {
            (self.unreachable, self.silence) = (Series::default(), None);
        }
        if !matches!(reach, Reach::Lacking(_)) {
            self.lacking = Series::default();
        }
        match reach {
            Reach::Refused => {
                self.silent_since = now;
                self.refused.0.add(now);
            }
            Reach::Unreachable(why) => {
                self.unreachable.add(now);
                self.why = why;
            }
            Reach::Lacking(why) => {
                self.lacking.add(now);
                (self.why, self.silent_since) = (why, now);
            }
            Reach::Silent { had_answered } => self.silence = Some(had_answered),
            // While others have the turn, nothing can be heard.
            Reach::Asked | Reach::Postponed | Reach::Listening | Reach::Named(_) | Reach::Crowded => {
                self.silent_since = now;
            }
        }
        self.verdict(now)
    }

    /// The same where the question goes by another network (`watch`): that the port refuses connections is a proof, and
    /// nothing else says anything. All else is as where nobody can be asked.
    pub fn judge_aside(&mut self, now: Instant, reach: impl FnOnce() -> Option<Reach>) -> Option<String> {
        if now < self.ask_at {
            return None;
        }
        self.ask_at = now + ASK_FIRST;
        self.refused.judge(reach().as_ref(), now).or_else(|| self.verdict_unasked(now))
    }

    /// Time until the next look.
    fn interval(&mut self, reach: &Reach) -> Duration {
        let interval = match reach {
            Reach::Asked => {
                let interval = self.answer_interval;
                self.answer_interval = (interval * 2).min(ASK_FIRST);
                return interval;
            }
            Reach::Refused => ASK_FIRST,
            Reach::Listening | Reach::Named(_) | Reach::Crowded | Reach::Silent { .. } => LOOK_INTERVAL,
            Reach::Unreachable(_) | Reach::Lacking(_) | Reach::Postponed => ASK_AGAIN,
        };
        self.answer_interval = ANSWER_INTERVAL;
        interval
    }

    fn verdict(&self, now: Instant) -> Option<String> {
        if let Some(why) = self.refused.verdict(now) {
            return Some(why);
        }
        let why = &self.why;
        if self.unreachable.proves(now, FAILED_FOR) {
            return Some(format!("its host could not be reached for {} s: {why}", FAILED_FOR.as_secs()));
        }
        if self.lacking.proves(now, LACKING_FOR) {
            return Some(format!("nothing could be sent to it for {} s: {why}", LACKING_FOR.as_secs()));
        }
        let silent_for = now.since(self.silent_since);
        match self.silence? {
            true if silent_for >= FAILED_FOR => {
                Some(format!("its host answered nothing for {} s", FAILED_FOR.as_secs()))
            }
            false if silent_for >= SILENT_FOR => Some(unsent()),
            _ => None,
        }
    }

    /// Where nobody can be asked.
    fn verdict_unasked(&self, now: Instant) -> Option<String> {
        match &self.failed {
            Some((since, why)) if now.since(*since) >= FAILED_FOR => {
                Some(format!("sending to it failed for {} s: {why}", FAILED_FOR.as_secs()))
            }
            _ => (now.since(self.silent_since) >= SILENT_FOR).then(unsent),
        }
    }
}

fn unsent() -> String {
    format!("nothing could be sent to it for {} minutes", SILENT_FOR.as_secs() / 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn pings_to_a_peer_that_computes_become_rare() {
        let mut probe = Probe::default();
        let mut sent = Vec::new();
        for now in (1_000..3_600_000).step_by(100).map(at) {
            if probe.is_due(now, None) {
                sent.push(now);
                probe.handle_sent(now);
                assert!(!probe.is_due(now + Duration::from_secs(3600), None), "one is under way at a time");
                probe.is_under_way = false;
            }
        }
        assert!((140..160).contains(&sent.len()), "{}", sent.len());
        assert!(sent[0] + Duration::from_secs(15 * 60) < sent[PINGS_MANY as usize], "often as long as TCP may take");
        assert!(sent.windows(2).all(|pair| pair[1].since(pair[0]) <= PING_INTERVAL_RARE));
    }

    #[test]
    fn who_talks_and_acknowledges_nothing_is_asked() {
        let mut probe = Probe::default();
        let mut asked = 0;
        for time in (1_000..11_000).step_by(100) {
            probe.handle_heard(at(time));
            assert!(!probe.is_due(at(time), None), "it was heard");
            if probe.is_due(at(time), Some(at(1_000))) {
                probe.handle_sent(at(time));
                probe.is_under_way = false;
                asked += 1;
            }
        }
        assert!((10..=20).contains(&asked), "{asked}");
    }

    /// When trouble that begins at 0 ends in a verdict, and how often was asked until then or the last time.
    fn judged(until: u64, mut answer: impl FnMut(u64) -> Option<Reach>) -> (Option<u64>, u64) {
        let (mut trouble, mut asked) = (Trouble::new(at(0)), 0);
        let when = (0..until).step_by(5).find(|time| {
            trouble.handle_failure(at(*time), None);
            let reach = || {
                asked += 1;
                answer(*time)
            };
            trouble.judge(at(*time), reach).is_some()
        });
        (when, asked)
    }

    #[test]
    fn a_refused_peer_is_lost_soon_and_only_if_that_lasts() {
        assert!(matches!(judged(9_000, |_| Some(Reach::Refused)), (Some(500..=700), _)));
        let (when, _) = judged(90_000, |time| Some(if time % 1_000 < 400 { Reach::Refused } else { Reach::Crowded }));
        assert_eq!(when, None, "something resets connections now and then");
    }

    #[test]
    fn who_computes_is_never_lost() {
        let (when, asked) = judged(3_600_000, |_| Some(Reach::Listening));
        assert_eq!(when, None);
        assert!(asked < 3_600 * 5, "a look is a system call: {asked}");
        // Its queue is full for an hour.
        let (when, asked) = judged(3_600_000, |_| Some(Reach::Crowded));
        assert!(when.is_none() && asked < 3_600 * 5, "{when:?} {asked}");
        // There are too many of its like for us to ask it.
        assert_eq!(judged(3_600_000, |_| Some(Reach::Postponed)).0, None);
        // Nor is it lost while an answer is waited for, however long: that answer will tell.
        assert_eq!(judged(3_600_000, |_| Some(Reach::Asked)).0, None);
    }

    #[test]
    fn a_network_that_can_ask_nobody_gives_up_when_tcp_would() {
        assert!(matches!(judged(3_600_000, |_| None), (Some(900_000..=900_100), _)));
    }

    #[test]
    fn a_host_out_of_reach_is_lost_after_ten_seconds() {
        let cut = |_| Some(Reach::Unreachable("no route to host".into()));
        assert!(matches!(judged(60_000, cut), (Some(10_000..=12_000), _)));
        let back = |time| if time < 9_000 { cut(time) } else { Some(Reach::Listening) };
        assert_eq!(judged(60_000, back).0, None);
    }

    #[test]
    fn a_lack_of_descriptors_is_not_held_against_the_peer_for_a_minute() {
        let lacking = |_| Some(Reach::Lacking("too many open files".into()));
        assert!(matches!(judged(120_000, lacking), (Some(60_000..=62_000), _)));
        let back = |time| if time < 59_000 { lacking(time) } else { Some(Reach::Asked) };
        assert_eq!(judged(120_000, back).0, None);
    }

    #[test]
    fn a_host_that_falls_silent_is_lost_after_ten_seconds_if_it_had_answered_before() {
        // An answer takes five seconds not to come.
        let silent = |had_answered| {
            move |time: u64| Some(if time % 6_000 < 5_000 { Reach::Asked } else { Reach::Silent { had_answered } })
        };
        assert!(matches!(judged(60_000, silent(true)), (Some(10_000..=12_000), _)));
        assert!(matches!(judged(3_600_000, silent(false)), (Some(900_000..=906_000), _)), "a firewall drops all");
        let back = |time| if time < 9_000 { silent(true)(time) } else { Some(Reach::Crowded) };
        assert_eq!(judged(60_000, back).0, None);
    }

    #[test]
    fn what_was_answered_while_we_computed_is_no_proof() {
        let mut trouble = Trouble::new(at(0));
        let cut = || Some(Reach::Unreachable("no route to host".into()));
        for time in [1_000, 60_000] {
            trouble.handle_failure(at(time), None);
            assert_eq!(trouble.judge(at(time), cut), None, "its answer had come within the first seconds");
        }
        assert_eq!(trouble.judge(at(61_000), || Some(Reach::Listening)), None);
        for time in [62_000, 120_000] {
            assert_eq!(trouble.judge(at(time), || Some(Reach::Refused)), None);
        }
        assert!(trouble.judge(at(180_000), || Some(Reach::Refused)).is_some(), "who calls rarely is told, too");
    }

    #[test]
    fn sendings_that_fail_for_ten_seconds_say_why() {
        let fail = |answer: Option<Reach>| {
            let mut trouble = Trouble::new(at(0));
            (0..60_000).step_by(5).find_map(|time| {
                trouble.handle_failure(at(time), Some("too many open files".into()));
                trouble.judge(at(time), || answer.clone()).map(|why| (time, why))
            })
        };
        let (time, why) = fail(None).expect("a verdict");
        assert!((10_000..10_200).contains(&time) && why.contains("too many open files"), "{time} {why}");
        for alive in [Reach::Listening, Reach::Crowded, Reach::Postponed] {
            assert_eq!(fail(Some(alive)), None, "it lives");
        }
    }
}
