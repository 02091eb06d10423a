//! [`Windows`]: the receiver's side (rules W1, W4–W7 in the module above): what each sender may store here, and what is
//! done about the sends whose envelopes were dropped. It keeps a count of those, queries for receives that nothing
//! stored satisfies, and gives room back. [`rooms`](super::rooms) is the sender's side.
//!
//! Receives and peeks are numbered in order of posting. Per sender of dropped envelopes the receiver keeps how many
//! they are, up to which number the receives of each queue have been compared with them, and which query is open: a
//! few words, however many the sends. A receive up to that number has been compared with every send dropped by now; one
//! beyond it has not, and gets nothing out of a deferral notice of that sender before its query has been answered (W6).

use super::inquiries::{Inquiries, Inquiry};
use super::pressure::{Pressure, PressureReport};
use super::sessions::Sessions;
use crate::counter::{Counter, Counters};
use crate::envelope::Number;
use crate::heap::block;
use crate::malformed::Malformed;
use crate::memory::{Limits, WINDOW_MOST};
use crate::operation::{Queue, Target};
use crate::wire::{Query, Room};
use std::collections::BTreeMap;
use tidegate_flow::{Initial, Instant, PeerId, Peers};
use window::{Bases, Dropped, Window};

/// What is to be said to a sender, in this order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WindowUpdate {
    pub(crate) room: Option<Room>,
    pub(crate) query: Option<Query>,
}

/// What an answer to a query is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    /// The receive or peek whose query it was.
    pub(crate) number: Number,
    /// The latest receive that may have what was offered.
    pub(crate) until: Number,
}

/// How a window stands, for displays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowState {
    pub(crate) bytes: u32,
    pub(crate) stored: u32,
    pub(crate) freed: u32,
    pub(crate) dropped: u64,
    pub(crate) is_querying: bool,
}

/// A message that is within the window of its sender.
pub(crate) struct Admitted<'a> {
    window: &'a mut Window,
    /// Its cost, in bytes of the window.
    cost: u32,
}

impl Admitted<'_> {
    /// It found its receive waiting. Returns whether there is something to [update](Windows::update).
    #[inline(always)]
    pub(crate) fn pass(self) -> bool {
        self.window.freed += self.cost;
        self.window.freed >= self.window.quarter() || self.window.dropped.is_some()
    }
}

/// How windows are lent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lent {
    /// The limits of a window.
    pub(crate) limits: Limits,
    /// The bytes of a newcomer's window, and how many peers are no newcomers: the first.
    pub(crate) newcomers: u32,
    pub(crate) planned: u32,
    /// How many senders have one at a time; `None`: all of them.
    pub(crate) sessions: Option<u32>,
    /// The steps of a turn, while others need one (S4).
    pub(crate) turn_steps: u32,
    /// The least by which a window grows: an envelope.
    pub(crate) growth_least: usize,
    /// Bytes of receive memory that belong to no window.
    pub(crate) spare: usize,
}

/// The windows of all senders.
#[derive(Debug)]
pub(crate) struct Windows {
    of_peers: Peers<Window>,
    /// The sessions, where not all senders have a window.
    sessions: Option<Box<Sessions>>,
    /// What a window allows at least.
    limits: Limits,
    /// The least by which a window grows: an envelope.
    growth_least: usize,
    /// Bytes of receive memory that belong to no window.
    spare: usize,
    /// How many of them are to be [taken](Self::take_spare) as soon as they are there: windows do not grow into these.
    wanted: usize,
    /// A quarter of the spare ones at first: as long as twice that is left, a sender may keep this beyond its base.
    share: u32,
    /// Of each [record](crate::presence) of a departed peer, the bytes that its messages take: they are of no window.
    records: BTreeMap<PeerId, u32>,
    /// Bytes that copied messages to ourselves take.
    own_stored: u32,
    /// Peers with dropped envelopes.
    with_dropped: Vec<PeerId>,
    /// Peeks that wait for answers of those.
    pub(crate) inquiries: Inquiries,
    pressure: PressureReport,
    /// Whether there was pressure when time was told last.
    was_pressed: bool,
}

impl Windows {
    /// Most heap bytes of the table of senders: when all `peers` send.
    pub(crate) const fn bytes_most(peers: u32) -> usize {
        Peers::<Window>::bytes_most(peers)
    }

    /// Heap bytes for each sender that has a window: an account of dropped envelopes, and a place among those.
    pub(crate) const BYTES_OF_SENDER: usize = block(size_of::<Dropped>()) + 2 * size_of::<PeerId>();

    /// Equal windows for the peers, or for those of them that have a session.
    pub(crate) fn new(peers: u32, lent: Lent) -> Self {
        let Lent { limits, newcomers, planned, sessions, turn_steps, growth_least, spare } = lent;
        let bases = match sessions {
            Some(_) => Bases::default(),
            None => Bases { planned, of_planned: limits.window, of_newcomers: newcomers },
        };
        Windows {
            of_peers: Peers::new(peers, bases),
            sessions: sessions.map(|sessions| Box::new(Sessions::new(peers, sessions, turn_steps))),
            limits,
            growth_least,
            spare,
            wanted: 0,
            share: (spare / 4).min(WINDOW_MOST) as u32,
            records: BTreeMap::new(),
            own_stored: 0,
            with_dropped: Vec::new(),
            inquiries: Inquiries::default(),
            pressure: PressureReport::default(),
            was_pressed: false,
        }
    }

    /// Bytes of receive memory that belong to no window. Those of sessions that are free are among them.
    pub(crate) fn spare(&self) -> usize {
        let free = self.sessions.as_ref().map_or(0, |sessions| sessions.free());
        self.spare + free as usize * self.limits.window as usize
    }

    /// Takes this number of bytes out of the spare memory for good. Returns whether it had as many. If not, windows
    /// give back all that is not theirs from the start, as it becomes free, until that many are there.
    pub(crate) fn take_spare(&mut self, bytes: usize) -> bool {
        let left = self.spare.checked_sub(bytes);
        (self.spare, self.wanted) = left.map_or((self.spare, bytes), |left| (left, 0));
        left.is_some()
    }

    #[inline]
    fn of(&mut self, peer: PeerId) -> &mut Window {
        self.of_peers.of(peer)
    }

    pub(crate) fn inspect(&self, peer: PeerId) -> WindowState {
        let initial = Window::initial(self.of_peers.config(), peer);
        let window = self.of_peers.get(peer).unwrap_or(&initial);
        let dropped = window.dropped.as_deref();
        WindowState {
            bytes: window.bytes,
            stored: window.stored,
            freed: window.freed,
            dropped: dropped.map_or(0, |dropped| dropped.count.into()),
            is_querying: dropped.is_some_and(|dropped| dropped.open.is_some()),
        }
    }

    /// Whether a message of `from` that costs so much is within its window. `returning`: bytes on their way back to it.
    #[inline]
    pub(crate) fn check(&mut self, from: PeerId, cost: u32, returning: u32) -> Result<(), Malformed> {
        self.admit(from, cost, returning).map(|_| ())
    }

    /// The same as [`check`](Self::check), and hands out the window.
    #[inline(always)]
    pub(crate) fn admit(&mut self, from: PeerId, cost: u32, returning: u32) -> Result<Admitted<'_>, Malformed> {
        let window = self.of(from);
        let given_back = u64::from(window.freed) + u64::from(returning);
        let is_within = u64::from(window.stored) + given_back + u64::from(cost) <= u64::from(window.bytes);
        if is_within { Ok(Admitted { window, cost }) } else { Err(Malformed) }
    }

    /// A message of `from` found its receive waiting. Returns whether there is something to [update](Self::update).
    #[inline]
    pub(crate) fn pass(&mut self, from: PeerId, cost: u32) -> bool {
        Admitted { window: self.of(from), cost }.pass()
    }

    /// A message of `from` has to be stored. Returns whether there is something to [update](Self::update).
    pub(crate) fn enter(&mut self, counters: &Counters, from: PeerId, cost: u32) -> bool {
        counters.add(Counter::UnmatchedBytes, cost.into());
        raise_peak(counters);
        let window = self.of(from);
        window.stored += cost;
        window.dropped.is_some()
    }

    /// A stored message is stored no longer. The caller [updates](Self::update) the window.
    pub(crate) fn leave(&mut self, counters: &Counters, from: PeerId, cost: u32) {
        counters.sub(Counter::UnmatchedBytes, cost.into());
        raise_peak(counters);
        let window = self.of(from);
        window.stored -= cost;
        window.freed += cost;
    }

    /// Whether a copied message to ourselves has room, as if we were a peer.
    pub(crate) fn has_own_room(&self, cost: u32) -> bool {
        self.own_stored + cost <= self.limits.window
    }

    /// A copied message to ourselves is stored. What a program sends to itself is its own memory.
    pub(crate) fn enter_own(&mut self, cost: u32) {
        self.own_stored += cost;
    }

    /// A copied message to ourselves is stored no longer.
    pub(crate) fn leave_own(&mut self, cost: u32) {
        self.own_stored -= cost;
    }

    /// Gives a sender that has found no room more of the spare memory. Returns whether its window has grown.
    pub(crate) fn grow(&mut self, from: PeerId) -> bool {
        let (spare, least) = (self.spare.saturating_sub(self.wanted), self.growth_least);
        let window = self.of(from);
        let most = (spare / 2).min(WINDOW_MOST - (window.bytes as usize).min(WINDOW_MOST));
        let more = (window.bytes as usize).min(most);
        if more < least {
            return false;
        }
        window.bytes += more as u32;
        window.freed += more as u32;
        self.spare -= more;
        true
    }

    /// Takes back what a sender was given beyond the base, as it becomes free; with plenty, all but its share.
    /// Returns whether the window has shrunk.
    pub(crate) fn shrink(&mut self, from: PeerId) -> bool {
        let is_plenty = self.sessions.is_none() && self.wanted == 0 && self.spare >= 2 * self.share as usize;
        let more = if is_plenty { self.share } else { 0 };
        let window = self.of(from);
        let least = window.base + more;
        if window.bytes <= least || window.freed == 0 || window.dropped.is_some() {
            return false;
        }
        let back = window.freed.min(window.bytes - least);
        window.bytes -= back;
        window.freed -= back;
        self.spare += back as usize;
        true
    }

    /// What a sender may have under way at most: what is not stored of its window.
    pub(crate) fn left(&self, from: PeerId) -> u32 {
        self.of_peers.get(from).map_or(self.of_peers.config().of(from), |window| window.bytes - window.stored)
    }

    /// The latest receive of a queue that may have a send out of a deferral notice of `from` (W6). `None`: any may.
    pub(crate) fn until(&self, from: PeerId, queue: Queue) -> Option<Number> {
        self.of_peers.get(from)?.dropped.as_ref().filter(|it| it.count > 0).map(|it| it.asked[queue as usize])
    }

    /// A deferred send stays with its sender, and its envelope is dropped. `latest`: the last receive or peek.
    pub(crate) fn drop_envelope(&mut self, from: PeerId, tag: Option<u64>, latest: Number) {
        let (dropped, begins) = self.of(from).begin_dropping();
        if dropped.count == 0 {
            dropped.asked = [latest; 2];
        }
        dropped.count = dropped.count.saturating_add(1);
        if begins {
            self.begin_pressure(from, tag);
        }
    }

    /// The same of sends that were not shown: they have been compared with none (S6).
    pub(crate) fn drop_unseen(&mut self, from: PeerId, sends: u32) -> Result<(), Malformed> {
        let (dropped, begins) = self.of(from).begin_dropping();
        // The answer could be a send that an earlier receive accepts, which is to get one before it.
        if dropped.open.is_some() {
            return Err(Malformed);
        }
        dropped.count = dropped.count.checked_add(sends).ok_or(Malformed)?;
        dropped.asked = [Number::default(); 2];
        if begins {
            self.begin_pressure(from, None);
        }
        Ok(())
    }

    #[cold]
    fn begin_pressure(&mut self, from: PeerId, tag: Option<u64>) {
        self.with_dropped.push(from);
        self.pressure.begin(from, tag);
    }

    /// A send whose envelope was dropped has come after all.
    pub(crate) fn remember(&mut self, from: PeerId) -> Result<(), Malformed> {
        let dropped = self.of(from).dropped.as_mut().filter(|it| it.count > 0).ok_or(Malformed)?;
        dropped.count -= 1;
        self.end_account(from);
        Ok(())
    }

    /// Ends the account of a sender that has no dropped envelopes any more.
    fn end_account(&mut self, from: PeerId) {
        let dropped = &mut self.of(from).dropped;
        if dropped.as_ref().is_some_and(|it| it.count == 0 && it.open.is_none()) {
            *dropped = None;
            self.relax(from);
        }
    }

    fn relax(&mut self, from: PeerId) {
        self.with_dropped.retain(|&peer| peer != from);
        if self.with_dropped.is_empty() {
            self.was_pressed = false;
        }
    }

    /// Whether a sender has room for its first deferred send, whatever that is (W2): it will send it unasked.
    fn goes_on(&self, from: PeerId) -> bool {
        if self.sessions.as_ref().is_some_and(|sessions| sessions.has_shown(from)) {
            return false;
        }
        let initial = Window::initial(self.of_peers.config(), from);
        let window = self.of_peers.get(from).unwrap_or(&initial);
        window.bytes - window.stored - window.freed >= window.quarter().max(self.growth_least as u32)
    }

    /// Whether any envelopes are dropped.
    #[inline]
    pub(crate) fn has_dropped(&self) -> bool {
        !self.with_dropped.is_empty()
    }

    /// The peer at this place among those with dropped envelopes.
    pub(crate) fn nth_with_dropped(&self, place: usize) -> Option<PeerId> {
        self.with_dropped.get(place).copied()
    }

    /// How many peers have dropped envelopes.
    pub(crate) fn peers_with_dropped(&self) -> usize {
        self.with_dropped.len()
    }

    /// Whether some sender may still have something for a peek.
    pub(crate) fn is_open(&self, inquiry: &Inquiry) -> bool {
        if self.sessions.as_ref().is_some_and(|sessions| sessions.is_open(inquiry.number, &inquiry.pattern)) {
            return true;
        }
        self.with_dropped.iter().any(|&peer| {
            let Some(dropped) = self.of_peers.get(peer).and_then(|window| window.dropped.as_ref()) else {
                return false;
            };
            let wanted = dropped.count > 0 && inquiry.pattern.may_come_from(Target::Peer(peer));
            let asked = dropped.asked[inquiry.queue as usize];
            wanted && asked < inquiry.number && (dropped.open.is_some() || !self.goes_on(peer))
        })
    }

    /// A peer is gone: what it deferred is lost.
    pub(crate) fn lose_peer(&mut self, peer: PeerId) {
        if let Some(sessions) = &mut self.sessions {
            sessions.lose_peer(peer);
        }
        if self.of_peers.get_mut(peer).is_some_and(|window| window.dropped.take().is_some()) {
            self.relax(peer);
        }
    }

    /// The place of a peer that is gone goes to another.
    pub(crate) fn release(&mut self, peer: PeerId) {
        if let Some(before) = self.of_peers.forget(peer) {
            self.spare += (before.bytes - before.base) as usize;
        }
        if let Some(sessions) = &mut self.sessions {
            sessions.release(peer);
        }
    }

    /// Whether something is going on here whose time counts.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        self.has_dropped() || self.pressure.is_begun()
    }

    /// Whether peers have sends deferred because of our receive memory.
    pub(crate) fn is_pressed(&self) -> bool {
        self.has_dropped()
    }

    /// Time is told. Returns whether there has been pressure ever since it was told last.
    pub(crate) fn tell_time(&mut self, now: Instant) -> bool {
        let is_pressed = self.has_dropped();
        let was_pressed = std::mem::replace(&mut self.was_pressed, is_pressed);
        let stored = self.of_peers.contacted().map(|(peer, window)| (peer, u64::from(window.stored)));
        let bytes = |peer| self.of_peers.get(peer).map_or(self.of_peers.config().of(peer), |window| window.bytes);
        let window = |peer| u64::from(bytes(peer));
        self.pressure.tell_time(now, stored, window);
        is_pressed && was_pressed
    }

    /// Why receive memory came under pressure, if it did since the last call.
    pub(crate) fn poll_pressure(&mut self) -> Option<Pressure> {
        self.pressure.poll()
    }
}

/// What unmatched messages take has changed.
fn raise_peak(counters: &Counters) {
    let fixed = counters.get(Counter::ReceiveFixedBytes);
    counters.raise(Counter::ReceivePeak, fixed + counters.get(Counter::UnmatchedBytes));
}

mod few;
mod querying;
mod records;
#[cfg(test)]
mod tests;
mod window;
