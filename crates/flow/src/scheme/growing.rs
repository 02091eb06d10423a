//! `growing`: as `preposted`, but connections get more buffers while they need them (L §4.3), and lose them when they
//! go quiet.
//!
//! Each connection starts with few buffers. A message that had no credit and waited, in the backlog or, if it is
//! injected, with its program, says so in its last packet's header. The receiver that processes such a message posts
//! more buffers for the connection.
//!
//! What L says and where that is here:
//!
//! * "we add a field to each message indicating whether it has gone through the backlog": [`Header::has_waited`], set
//!   for every message that waited, requests to send included (notes, 10);
//! * "when a process receives a message that has gone through the backlog queue, it takes action to increase the number
//!   of pre-posted buffers for the corresponding sender. The increase can be linear or exponential":
//!   [`Growing::grow`]. Linear is one buffer for each such message (L §5; the step is ours, notes, 11). Exponential is
//!   as many as the connection has; as that many messages may have waited before their sender hears of them, as many
//!   that follow do not count. The credits of new buffers return like others;
//! * credits, piggybacking, credit packets, refusals: those of [`Preposted`].
//!
//! L names no largest number. Here an endpoint has at most `per_connection_most` × peers buffers in all; each
//! connection keeps its first ones, whatever others get. At the bound a message that waited is ignored and counted.
//!
//! # Going quiet
//!
//! L: "a dynamic scheme can also decrease the number of buffers … Currently we only allow increasing". Ours:
//!
//! * Q1: a connection with more buffers than at the start is reviewed `quiet_after` after it was heard of. If it has
//!   processed no more messages in that time than half as many as it has buffers, and none that had waited, half of its
//!   buffers would have done, and half (but not fewer than at the start) become its *goal*.
//! * Q2: while it has more buffers than its goal, the buffer of each message that is processed is not posted again and
//!   its credit is withheld. Credits that the sender holds are never called back.
//! * Q3: a message that has waited ends this: the goal is forgotten, and the connection grows.
//! * Q4: if the connection had lost buffers since it grew last, it lost them wrongly: from now on its reviews come
//!   twice as rarely.
//!
//! **Why it cannot oscillate.** Going down and up again takes a review, and each time makes the next review twice as
//! rare (Q4). A review whose time began before the connection went up takes nothing (Q1), or it would come too soon.
//! In a time t a connection so goes down and up again at most log₂(t / `quiet_after` + 1) times: a pattern of traffic
//! that repeats itself soon keeps its buffers, however long its pauses are. (Once reviews are as rare as [`RAREST`]
//! they stay so.)
//!
//! A quiet process is not woken: a review is due only once after a connection was last heard of.
//!
//! Invariants: those of `preposted`, with the number of buffers that the connection has by then; the buffers of all
//! connections + spare ones = the bound; no connection has fewer than at the start.

#[cfg(doc)]
use crate::Header;

use super::interface::Scheme;
use super::preposted::{Ended, Past, Preposted};
use crate::buffers::Growth;
use crate::config::MAILBOX_SLOTS_MAX;
use crate::control_queue::queue_bytes;
use crate::{
    Answer, Config, Control, Credits, Inspection, Instant, Packet, PeerId, Peers, Posting, Regions, SchemeStats,
    Violation,
};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// Reviews become twice as rare as long as they come at least this often: 12 days.
const RAREST: Duration = Duration::from_secs(1 << 20);

/// Whether a connection will be reviewed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Review {
    /// When it is heard of again.
    #[default]
    None,
    /// As soon as somebody says what time it is, the time begins.
    Beginning,
    /// At this moment.
    Due(Instant),
}

/// What the receiver remembers of a connection that has grown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Need {
    review: Review,
    /// Messages processed since the last review. Counted up to the number of buffers.
    used: u32,
    /// One of them had waited.
    was_short: bool,
    /// Of the messages that come next, how many left before their sender could know of the last exponential growth.
    unaware: u32,
    /// To how many buffers it is to go down (Q1).
    goal: Option<u32>,
    /// Whether it has lost buffers since it grew last.
    has_shrunk: bool,
    /// How often its reviews have become twice as rare (Q4).
    doublings: u32,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Growing {
    base: Preposted,
    needs: Peers<Need>,
    /// Buffers that no connection has.
    spare: u32,
    /// What each connection keeps.
    first: u32,
    growth: Growth,
    quiet_after: Option<Duration>,
    /// Connections whose time until a review begins.
    beginning: VecDeque<PeerId>,
    /// Reviews, by their moments.
    reviews: BTreeSet<(Instant, PeerId)>,
    tally: SchemeStats,
}

impl Growing {
    /// The receiver has processed a message that had waited: more buffers are needed.
    fn grow(&mut self, from: PeerId) {
        let need = self.needs.of(from);
        (need.goal, need.was_short) = (None, true);
        if need.unaware > 0 {
            return;
        }
        let wanted = match self.growth {
            Growth::Linear => 1,
            Growth::Exponential => self.base.buffers(from),
        };
        let added = wanted.min(self.spare);
        if added == 0 {
            self.tally.growths_denied += 1;
            return;
        }
        // Q4.
        let rarer = interval(self.quiet_after, need.doublings + 1);
        if std::mem::take(&mut need.has_shrunk) && rarer.is_some_and(|rarer| rarer <= RAREST) {
            need.doublings += 1;
        }
        if self.growth == Growth::Exponential {
            // This message among them, which is counted off at once.
            need.unaware = wanted + 1;
        }
        self.spare -= added;
        self.tally.buffers_added += u64::from(added);
        self.base.add(from, added);
    }

    /// A message was processed: its buffer is posted again, or withdrawn (Q2).
    fn release(&mut self, from: PeerId) {
        let buffers = self.base.buffers(from);
        let mut is_withdrawn = false;
        if let Some(need) = self.needs.get_mut(from) {
            need.unaware = need.unaware.saturating_sub(1);
            is_withdrawn = need.goal.is_some_and(|goal| goal < buffers);
            need.has_shrunk |= is_withdrawn;
        }
        if is_withdrawn {
            self.spare += 1;
            self.tally.buffers_withdrawn += 1;
            self.base.withdraw(from);
        } else {
            self.base.post_again(from);
        }
        self.note_use(from);
    }

    /// A connection is heard of: it will be reviewed, if it has buffers to lose.
    fn note_use(&mut self, from: PeerId) {
        let buffers = self.base.buffers(from);
        if self.quiet_after.is_none() || buffers <= self.first {
            return;
        }
        let need = self.needs.of(from);
        need.used = (need.used + 1).min(buffers);
        if need.review == Review::None {
            need.review = Review::Beginning;
            self.beginning.push_back(from);
        }
    }

    /// Q1.
    fn check_growth(&mut self, from: PeerId) {
        let buffers = self.base.buffers(from);
        let need = self.needs.of(from);
        need.review = Review::None;
        let (used, was_short) = (std::mem::take(&mut need.used), std::mem::take(&mut need.was_short));
        if buffers > self.first && used <= buffers / 2 && !was_short {
            need.goal = Some((buffers / 2).max(self.first));
        }
    }

    /// The time until a review begins.
    fn begin_review(&mut self, from: PeerId, now: Instant) {
        let need = self.needs.of(from);
        let Some(interval) = interval(self.quiet_after, need.doublings) else { return };
        let due = now + interval;
        need.review = Review::Due(due);
        self.reviews.insert((due, from));
    }
}

/// The time from when a connection is heard of to its review. `None`: there are none.
fn interval(quiet_after: Option<Duration>, doublings: u32) -> Option<Duration> {
    // There may be more doublings than a number of 32 bits has: 39 from a microsecond on.
    quiet_after.map(|quiet_after| (0..doublings).fold(quiet_after, |interval, _| interval.saturating_mul(2)))
}

impl Scheme for Growing {
    fn new(config: &Config, _regions: Regions) -> Self {
        let buffers = &config.buffers;
        let all = buffers.per_connection_most.saturating_mul(config.peers);
        let spare = all.saturating_sub(buffers.per_connection.saturating_mul(config.peers));
        Growing {
            // Only the peer knows how many peers it has, and so how many buffers: the most that are legal must do.
            base: Preposted::with_most(config, MAILBOX_SLOTS_MAX / buffers.packets),
            needs: Peers::new(config.peers, ()),
            spare,
            first: buffers.per_connection,
            growth: buffers.growth,
            quiet_after: buffers.quiet_after,
            beginning: VecDeque::new(),
            reviews: BTreeSet::new(),
            tally: SchemeStats::default(),
        }
    }

    fn request(&mut self, to: PeerId, wanted: u32, _now: Instant) -> Answer {
        self.base.grant(to, wanted, Past::Fresh)
    }

    fn request_after_waiting(&mut self, to: PeerId, wanted: u32, _now: Instant) -> Answer {
        self.base.grant(to, wanted, Past::Waited)
    }

    fn announces_behind_others(&self) -> bool {
        self.base.announces_behind_others()
    }

    fn give_back(&mut self, to: PeerId, credits: Credits) {
        self.base.give_back(to, credits);
    }

    fn handle_refused(&mut self, to: PeerId, credits: Credits, now: Instant) {
        self.base.handle_refused(to, credits, now);
    }

    fn handle_control_refused(&mut self, control: Control, now: Instant) -> Option<Control> {
        self.base.handle_control_refused(control, now)
    }

    fn handle_late_refusal(&mut self, by: PeerId, now: Instant) {
        self.base.handle_late_refusal(by, now);
    }

    fn before_send(&mut self, to: PeerId, packet: &mut Packet, left: u32) -> u32 {
        self.base.before_send(to, packet, left)
    }

    fn handle_retrieved(&mut self, from: PeerId, packet: &Packet) -> Result<u32, Violation> {
        let (gained, ended) = self.base.accept(from, packet)?;
        match ended {
            Ended::Nothing => {}
            Ended::Credit => self.base.post_free_again(from),
            Ended::Message(past) => {
                if past == Past::Waited {
                    self.grow(from);
                }
                self.release(from);
            }
        }
        Ok(gained)
    }

    fn handle_retrieved_slots(&mut self, _from: PeerId, _slots: u32) -> Result<(), Violation> {
        Ok(())
    }

    fn has_control(&self) -> bool {
        self.base.has_control()
    }

    fn next_control(&mut self) -> Option<Control> {
        self.base.next_control()
    }

    fn poll_posting(&mut self) -> Option<Posting> {
        self.base.poll_posting()
    }

    fn is_timed(&self) -> bool {
        true
    }

    /// A review whose time has not begun is due at once: only then is it known what time it is.
    fn next_timeout(&self) -> Option<Instant> {
        let beginning = self.beginning.front().map(|_| Instant::default());
        let review = self.reviews.first().map(|&(due, _)| due);
        [beginning, review, self.base.next_timeout()].into_iter().flatten().min()
    }

    /// A review is nobody's business but ours.
    fn is_retrying(&self) -> bool {
        self.base.is_retrying()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.base.handle_timeout(now);
        while let Some(from) = self.beginning.pop_front() {
            self.begin_review(from, now);
        }
        while let Some(&(due, from)) = self.reviews.first()
            && due <= now
        {
            self.reviews.pop_first();
            self.check_growth(from);
        }
    }

    fn poll_ready(&mut self) -> Option<PeerId> {
        self.base.poll_ready()
    }

    fn reset(&mut self, peer: PeerId) {
        self.spare += self.base.buffers(peer) - self.first;
        match self.needs.forget(peer).map(|need| need.review) {
            Some(Review::Due(due)) => _ = self.reviews.remove(&(due, peer)),
            Some(Review::Beginning) => self.beginning.retain(|&other| other != peer),
            Some(Review::None) | None => {}
        }
        self.base.reset(peer);
    }

    fn credits(&self, to: PeerId) -> u32 {
        self.base.credits(to)
    }

    fn refusals(&self, to: PeerId) -> u8 {
        self.base.refusals(to)
    }

    fn heap_bytes(&self) -> usize {
        let peers = self.needs.count();
        let queues = queue_bytes::<PeerId>(peers) + 2 * queue_bytes::<(Instant, PeerId)>(peers);
        self.base.heap_bytes() + Peers::<Need>::bytes_most(peers) + queues
    }

    fn tally(&self) -> SchemeStats {
        let SchemeStats { refusals, retries, .. } = self.base.tally();
        SchemeStats { refusals, retries, ..self.tally }
    }

    fn inspect(&self, into: &mut Inspection) {
        self.base.inspect(into);
        into.available_slots = self.spare;
    }
}
