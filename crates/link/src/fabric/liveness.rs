//! Whether a peer lives: when it is asked ([`Probe`]), and what proves that it is out of reach ([`Trouble`]).
//!
//! Nothing tells us that a host has lost its power, and little that a process has ended: the network below connects
//! again by itself, silently. So who hears nothing of a peer for a while asks it (*ping*); a peer that has not
//! acknowledged a batch for a while is asked too, however much comes from it, since what was sent to it may be lost. A
//! peer that computes does not answer, and is never taken for dead: questions to it come more and more rarely, and one
//! is under way at a time.
//!
//! These prove that a peer is out of reach, while the network below takes nothing for it, or nothing of what it takes
//! arrives:
//!
//! - its host refuses connections to it for [`REFUSED_FOR`];
//! - its host cannot be reached, or each sending to it fails, for [`FAILED_FOR`], and nobody listens at its address;
//! - its host answers no connection for [`FAILED_FOR`], and it had answered us before; else for [`SILENT_FOR`]. That is
//!   as long as TCP takes to give up, because who computes while many make their first contact answers none either.

use super::network::Reach;
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

/// A peer whose address nobody listens at for this long is gone.
pub const REFUSED_FOR: Duration = Duration::from_millis(500);
/// A peer whose host cannot be reached for this long is gone, and one to which each sending fails.
pub const FAILED_FOR: Duration = Duration::from_secs(10);
/// A peer that has never answered us, and of whose host nothing is heard for this long, is gone.
pub const SILENT_FOR: Duration = Duration::from_secs(15 * 60);

/// Time between the first two tries to send what the network did not take. It doubles with each.
const RETRY_FIRST: Duration = Duration::from_micros(50);
/// The longest.
const RETRY_MOST: Duration = Duration::from_millis(5);
/// Trouble of this length makes us ask the peer's host; and time between two looks for its answer.
const ASK_FIRST: Duration = Duration::from_millis(100);
/// Time between two looks whether the answer to a question has come.
const ANSWER_INTERVAL: Duration = Duration::from_millis(5);
/// Time until a host is asked again that has taken a connection, or has not answered. It doubles with each: a peer that
/// computes takes no connection off the queue of its port, and the queue is short.
const ASK_AGAIN_FIRST: Duration = Duration::from_secs(1);
/// The longest.
const ASK_AGAIN_MOST: Duration = Duration::from_secs(60);

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
        (self.unanswered, self.heard_at) = (0, now);
    }

    fn interval(&self) -> Duration {
        match self.unanswered {
            PINGS_MANY.. => PING_INTERVAL_RARE,
            unanswered => QUIET_FOR.saturating_mul(1 << unanswered.min(16)).min(PING_INTERVAL_MOST),
        }
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
    /// Since when its host refuses connections to it.
    refused_since: Option<Instant>,
    /// Since when its host cannot be reached.
    unreachable_since: Option<Instant>,
    /// Since when each sending has failed, and the last reason.
    failed: Option<(Instant, String)>,
    /// When its host was last asked, somebody listened at its address.
    is_listening: bool,
    /// When its host was last asked, it did not answer.
    is_silent: bool,
    ask_at: Instant,
    ask_interval: Duration,
}

impl Trouble {
    /// It has begun.
    pub fn new(now: Instant) -> Trouble {
        Trouble {
            retry_at: now,
            retry_interval: RETRY_FIRST,
            silent_since: now,
            refused_since: None,
            unreachable_since: None,
            failed: None,
            is_listening: false,
            is_silent: false,
            ask_at: now + ASK_FIRST,
            ask_interval: ASK_AGAIN_FIRST,
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

    /// Asks the peer's host now and then: `reach` begins a question, or looks for its answer. `is_known`: it has
    /// answered us before. Returns why the peer counts as lost, if it does.
    pub fn judge(&mut self, now: Instant, is_known: bool, reach: impl FnOnce() -> Option<Reach>) -> Option<String> {
        if now < self.ask_at {
            return None;
        }
        self.ask_at = now + ANSWER_INTERVAL;
        let answer = reach();
        if let Some(answer) = &answer {
            (self.is_listening, self.is_silent) = (*answer == Reach::Listening, *answer == Reach::Silent);
        }
        match answer {
            None => {}
            Some(Reach::Listening) => {
                // It lives, and takes no connection while it computes.
                (self.silent_since, self.refused_since, self.unreachable_since) = (now, None, None);
                self.failed = None;
                self.ask_later(now);
            }
            Some(Reach::Refused) => {
                (self.silent_since, self.unreachable_since) = (now, None);
                self.refused_since.get_or_insert(now);
                self.ask_at = now + ASK_FIRST;
            }
            Some(Reach::Unreachable(why)) => {
                self.refused_since = None;
                self.unreachable_since.get_or_insert(now);
                self.handle_failure(now, Some(why));
                self.ask_at = now + ASK_AGAIN_FIRST;
            }
            Some(Reach::Silent) => {
                (self.refused_since, self.unreachable_since) = (None, None);
                self.ask_later(now);
            }
        }
        self.verdict(now, is_known)
    }

    fn ask_later(&mut self, now: Instant) {
        self.ask_at = now + self.ask_interval;
        self.ask_interval = (self.ask_interval * 2).min(ASK_AGAIN_MOST);
    }

    fn verdict(&self, now: Instant, is_known: bool) -> Option<String> {
        let is_over = |since: Option<Instant>, most| since.is_some_and(|since| now.since(since) >= most);
        if is_over(self.refused_since, REFUSED_FOR) {
            return Some("its host refuses connections to it: its process has ended".to_owned());
        }
        if is_over(self.unreachable_since, FAILED_FOR)
            && let Some((_, why)) = &self.failed
        {
            return Some(format!("its host could not be reached for {} s: {why}", FAILED_FOR.as_secs()));
        }
        if let Some((since, why)) = &self.failed
            && is_over(Some(*since), FAILED_FOR)
            && !self.is_listening
        {
            return Some(format!("sending to it failed for {} s: {why}", FAILED_FOR.as_secs()));
        }
        if is_known && self.is_silent && is_over(Some(self.silent_since), FAILED_FOR) {
            return Some(format!("its host answered nothing for {} s", FAILED_FOR.as_secs()));
        }
        let is_silent = is_over(Some(self.silent_since), SILENT_FOR);
        is_silent.then(|| format!("nothing could be sent to it for {} minutes", SILENT_FOR.as_secs() / 60))
    }
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
    fn judged(until: u64, answer: impl FnMut(u64) -> Option<Reach>) -> (Option<u64>, u64) {
        judged_of(false, until, answer)
    }

    fn judged_of(is_known: bool, until: u64, mut answer: impl FnMut(u64) -> Option<Reach>) -> (Option<u64>, u64) {
        let (mut trouble, mut asked) = (Trouble::new(at(0)), 0);
        let when = (0..until).step_by(5).find(|time| {
            trouble.handle_failure(at(*time), None);
            let reach = || {
                asked += 1;
                answer(*time)
            };
            trouble.judge(at(*time), is_known, reach).is_some()
        });
        (when, asked)
    }

    #[test]
    fn a_refused_peer_is_lost_soon_and_only_if_that_lasts() {
        assert!(matches!(judged(9_000, |_| Some(Reach::Refused)), (Some(500..=700), _)));
        let (when, _) = judged(90_000, |time| Some(if time % 1_000 < 400 { Reach::Refused } else { Reach::Silent }));
        assert_eq!(when, None, "something resets connections now and then");
    }

    #[test]
    fn who_computes_is_asked_rarely_and_never_lost() {
        let (when, asked) = judged(3_600_000, |_| Some(Reach::Listening));
        assert_eq!(when, None);
        assert!((60..70).contains(&asked), "each fills a place of its port's queue: {asked}");
        // Its queue is full: for as long as TCP goes on trying.
        let (when, asked) = judged(3_600_000, |_| Some(Reach::Silent));
        assert!(matches!(when, Some(900_000..=960_000)) && asked < 30, "{when:?} {asked}");
        // A network that cannot be asked.
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
    fn a_silent_host_is_lost_after_ten_seconds_if_the_peer_has_answered_before() {
        // An answer takes five seconds not to come.
        let slow = |time: u64| (time % 6_000 >= 5_000).then_some(Reach::Silent);
        assert!(matches!(judged_of(true, 60_000, slow), (Some(10_000..=17_000), _)));
        assert_eq!(judged_of(false, 60_000, slow).0, None, "its queue may be full of others");
        assert_eq!(judged_of(true, 60_000, |_| None).0, None, "nobody can be asked");
    }

    #[test]
    fn sendings_that_fail_for_ten_seconds_say_why() {
        let fail = |answer: Option<Reach>| {
            let mut trouble = Trouble::new(at(0));
            (0..60_000).step_by(5).find_map(|time| {
                trouble.handle_failure(at(time), Some("too many open files".into()));
                trouble.judge(at(time), true, || answer.clone()).map(|why| (time, why))
            })
        };
        let (time, why) = fail(None).expect("a verdict");
        assert!((10_000..10_100).contains(&time) && why.contains("too many open files"), "{time} {why}");
        assert_eq!(fail(Some(Reach::Listening)), None, "it lives");
    }
}
