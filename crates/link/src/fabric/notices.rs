//! [`Notices`]: what is said to endpoints that have no place in the table of peers: last words, and answers to
//! strangers.
//!
//! A stranger names the address to which its answer goes, and each try to send there may begin a connection. So the
//! tries of one notice come ever more rarely, one answer at a time goes to an address, and the tries of all answers in
//! a second are bounded.

use super::network::{LowerAddress, Network, Route, Sending, Token};
use std::collections::VecDeque;
use std::time::Duration;
use tidegate_flow::Instant;

/// Notices at a time.
pub const NOTICES_MOST: usize = 64;
/// Of these, while as many answers wait as this, no other one is added.
const ANSWERS_MOST: usize = 16;
/// Tries to answer strangers in a second.
const ANSWERS_PER_SECOND: u32 = 64;
/// How long a notice is tried to be sent.
const NOTICE_FOR: Duration = Duration::from_secs(2);
/// After how long it is tried once more, at first; each time it is twice as long.
const RETRY_AFTER: Duration = Duration::from_millis(50);
/// The place in the token of a notice, of which the rest is its number.
pub const NO_PLACE: u32 = u32::MAX;

/// One of them.
#[derive(Debug)]
struct Notice {
    /// The endpoint's id, and where it is reached.
    to: (u64, LowerAddress),
    route: Option<Route>,
    batch: Vec<u8>,
    /// Then it is dropped, unless the network has it.
    until: Instant,
    /// When it may be tried next, and how long after that once more.
    retry: (Instant, Duration),
    /// It answers a stranger.
    is_answer: bool,
    /// The network's name for its sending.
    number: u32,
    /// The network has taken it, and not ended.
    is_under_way: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Notices {
    all: VecDeque<Notice>,
    number: u32,
    /// Tries of answers in the second that ends then.
    answers: u32,
    answers_until: Instant,
}

impl Notices {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether the network has yet to take one.
    pub fn are_waiting(&self) -> bool {
        self.all.iter().any(|notice| !notice.is_under_way)
    }

    /// Adds a notice, unless there are as many already.
    pub fn add(&mut self, to: (u64, LowerAddress), batch: Vec<u8>, now: Instant) {
        if self.all.len() < NOTICES_MOST && !self.all.iter().any(|notice| notice.to == to) {
            self.push(to, batch, now, false);
        }
    }

    /// Adds an answer to a stranger, unless there are as many already, or one to this address. A peer of old that is
    /// not answered asks again.
    pub fn answer(&mut self, to: (u64, LowerAddress), batch: Vec<u8>, now: Instant) {
        let is_there = |notice: &Notice| notice.to == to || (notice.is_answer && notice.to.1 == to.1);
        if self.all.len() < ANSWERS_MOST && !self.all.iter().any(is_there) {
            self.push(to, batch, now, true);
        }
    }

    fn push(&mut self, to: (u64, LowerAddress), batch: Vec<u8>, now: Instant, is_answer: bool) {
        self.number = self.number.wrapping_add(1);
        let (route, until, retry, number) = (None, now + NOTICE_FOR, (now, RETRY_AFTER), self.number);
        self.all.push_back(Notice { to, route, batch, until, retry, is_answer, number, is_under_way: false });
    }

    /// Sends what can be sent.
    pub fn send(&mut self, network: &mut impl Network, now: Instant) {
        for _ in 0..self.all.len() {
            let Some(mut notice) = self.all.pop_front() else { break };
            let is_over = !notice.is_under_way && (now >= notice.until || !self.try_once(&mut notice, network, now));
            match notice.route.filter(|_| is_over) {
                Some(route) => network.forget(route),
                None if is_over => {}
                None => self.all.push_back(notice),
            }
        }
    }

    /// Tries to send a notice, if it is time. Returns whether there is any hope for it.
    fn try_once(&mut self, notice: &mut Notice, network: &mut impl Network, now: Instant) -> bool {
        if now < notice.retry.0 || !self.may_try(notice, now) {
            return true;
        }
        notice.retry = (now + notice.retry.1, notice.retry.1 * 2);
        if notice.is_answer && notice.route.is_none() && !network.may_answer(&notice.to.1) {
            return false;
        }
        let Some(route) = notice.route.or_else(|| network.resolve(&notice.to.1).ok()) else { return false };
        notice.route = Some(route);
        let token = Token(u64::from(NO_PLACE) << 32 | u64::from(notice.number));
        let sending = network.send(route, token, &notice.batch);
        notice.is_under_way = matches!(sending, Sending::Taken);
        !matches!(sending, Sending::Failed(_))
    }

    /// Whether a notice may be tried now.
    fn may_try(&mut self, notice: &Notice, now: Instant) -> bool {
        if now >= self.answers_until {
            (self.answers, self.answers_until) = (0, now + Duration::from_secs(1));
        }
        let may = !notice.is_answer || self.answers < ANSWERS_PER_SECOND;
        self.answers += u32::from(may && notice.is_answer);
        may
    }

    /// The sending of this number has ended. Returns its route.
    pub fn end(&mut self, number: u32) -> Option<Route> {
        let at = self.all.iter().position(|notice| notice.is_under_way && notice.number == number)?;
        self.all.remove(at)?.route
    }

    /// Drops all of them.
    #[cfg(test)]
    pub fn clear(&mut self) {
        self.all.clear();
    }
}
