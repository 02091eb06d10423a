//! [`Rooms`]: the sender's side (rules W1–W4, W7 in the module above): what is left of each receiver's window for us,
//! and in which order the sends wait that found no room in it (the sends themselves are in `sends::kept`). They leave
//! when room comes back.
//! [`windows`](super::windows) is the receiver's side.
//!
//! A deferred send is *fresh* until a deferral notice has shown it, *in doubt* until the receiver has acknowledged the
//! notice, then *dropped*, and *offered* while the receiver decides about it. It leaves the list when the receiver
//! pulls or accepts it, or when it is its turn and the window has room for it; dropped ones leave first, since they are
//! first.

use super::deferred::{Deferred, DeferredSends, Stage};
use crate::collections::list::Position;
use crate::collections::slab::Key;
use crate::envelope::Pattern;
use crate::malformed::Malformed;
use crate::memory::{Limits, WINDOW_MOST};
use crate::open::PeerWait;
use crate::operation::Queue;
use crate::wait_cause::WaitCause;
use crate::waits::Waits;
use crate::wire::Room;
use tidegate_flow::{Instant, PeerId, Peers};

/// Where a deferred send is in the list of its peer.
pub(crate) type Place = Position;

/// Where we stand with a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// Senders need not ask there, or we have not met it.
    #[default]
    Welcome,
    /// We have no session there, and have not asked.
    Outside,
    /// We have asked.
    Asked,
    /// We have asked for sends that the receiver has been shown, and for no others.
    AskedAgain,
    /// We have a session.
    Inside,
    /// We have one, and the receiver wants it back.
    Leaving,
    /// The same, and we have shown everything.
    Shown,
}

/// What a receiver's window for us allows.
#[derive(Debug, Default)]
pub(super) struct SendWindow {
    pub(super) limits: Limits,
    /// Whether that is not known yet. The least is supposed so far, and there is no room at all.
    pub(super) is_unknown: bool,
    /// Whether we have a session there, where one has to ask.
    pub(super) standing: Standing,
    /// Whether a request has left since we have it.
    pub(super) has_requested: bool,
    /// Whether it is the one without a window.
    pub(super) is_turn: bool,
    /// Bytes that are left.
    pub(super) room: u32,
    /// Sends for which there is no room.
    pub(super) deferred: Option<Box<DeferredSends>>,
}

impl SendWindow {
    #[inline]
    fn take(&mut self, cost: u32) -> bool {
        let has_room = self.room >= cost && self.deferred.is_none();
        if has_room {
            self.room -= cost;
        }
        has_room
    }
}

/// What is left of all receivers' windows for us.
#[derive(Debug)]
pub(crate) struct Rooms {
    pub(super) peers: Peers<SendWindow>,
    /// For whom sends are deferred.
    waits: Waits,
    /// Receivers that want the session back that they gave us.
    pub(super) leaving: Vec<PeerId>,
}

impl Rooms {
    /// Most heap bytes of the table of receivers: when we have met all `peers`.
    pub(crate) const fn bytes_most(peers: u32) -> usize {
        Peers::<SendWindow>::bytes_most(peers)
    }

    pub(crate) fn new(peers: u32) -> Self {
        Rooms { peers: Peers::new(peers, ()), waits: Waits::default(), leaving: Vec::new() }
    }

    #[inline]
    pub(super) fn of(&mut self, peer: PeerId) -> &mut SendWindow {
        self.peers.of(peer)
    }

    /// What a peer's window allows; all 0 if we have not [met](Self::meet) it.
    #[inline]
    pub(crate) fn limits(&self, peer: PeerId) -> Limits {
        self.peers.get(peer).map_or(Limits::default(), |towards| towards.limits)
    }

    /// Whether it is known, if only by supposition, what a peer's window allows.
    #[inline]
    pub(crate) fn is_met(&self, peer: PeerId) -> bool {
        self.limits(peer).window > 0
    }

    /// Whether a peer could not say yet what its window is.
    #[inline]
    pub(crate) fn is_unknown(&self, peer: PeerId) -> bool {
        self.peers.get(peer).is_some_and(|towards| towards.is_unknown)
    }

    /// Bytes that are left; `None` if that is not known.
    pub(crate) fn room(&self, peer: PeerId) -> Option<u32> {
        let towards = self.peers.get(peer)?;
        (towards.limits.window > 0 && !towards.is_unknown).then_some(towards.room)
    }

    /// Learns what a peer's window is. A stranger could not say yet: all sends to it are deferred until it has.
    pub(crate) fn meet(&mut self, peer: PeerId, limits: Limits, is_unknown: bool) {
        let towards = self.of(peer);
        let room = if is_unknown { 0 } else { limits.window };
        (towards.limits, towards.room, towards.is_unknown) = (limits, room, is_unknown);
    }

    /// A stranger has said what its window is.
    pub(crate) fn relearn_window(&mut self, peer: PeerId, limits: Limits) {
        let towards = self.of(peer);
        (towards.limits, towards.room, towards.is_unknown) = (limits, limits.window, false);
    }

    /// A stranger has been lost.
    pub(crate) fn forget_unknown(&mut self, peer: PeerId) {
        if let Some(towards) = self.peers.get_mut(peer) {
            towards.is_unknown = false;
        }
    }

    /// Takes room for a message that costs so much, if nothing is deferred and there is some. Nobody has any whom we
    /// have not [met](Self::meet).
    pub(crate) fn take(&mut self, to: PeerId, cost: u32) -> bool {
        self.peers.get_mut(to).is_some_and(|towards| towards.take(cost))
    }

    /// The same for an eager message of so many bytes, if it is not too long for that. `inject`: its buffer may change.
    #[inline(always)]
    pub(crate) fn take_eagerly(&mut self, to: PeerId, length: usize, inject: bool, cost: u32) -> bool {
        let Some(towards) = self.peers.get_mut(to) else { return false };
        length <= towards.limits.most(inject) && towards.take(cost)
    }

    /// What was taken has not been used.
    pub(crate) fn put_back(&mut self, to: PeerId, cost: u32) {
        self.of(to).room += cost;
    }

    /// Whether there is room for `cost` once `taken` is given back.
    pub(crate) fn has_instead(&self, to: PeerId, taken: u32, cost: u32) -> bool {
        self.peers.get(to).map_or(0, |towards| towards.room) + taken >= cost
    }

    /// Takes room for `cost` instead of for what was `taken`.
    pub(crate) fn take_instead(&mut self, to: PeerId, taken: u32, cost: u32) {
        let towards = self.of(to);
        towards.room = towards.room + taken - cost;
    }

    /// A receiver gives back what has become free of its window.
    pub(crate) fn give_back(&mut self, from: PeerId, room: Room) -> Result<(), Malformed> {
        let towards = self.of(from);
        if room.bytes > WINDOW_MOST as u64 || towards.room as usize > WINDOW_MOST {
            return Err(Malformed);
        }
        // It may have been given before the receiver knew that we send nothing more; then it is void.
        if towards.standing != Standing::Shown {
            towards.room += room.bytes as u32;
            towards.is_turn = false;
        }
        Ok(())
    }

    /// Defers a send for which the receiver has no room.
    pub(crate) fn defer(&mut self, to: PeerId, send: Key, queue: Queue, tag: u64) -> Place {
        let deferred = self.peers.of(to).deferred.get_or_insert_with(|| Box::new(DeferredSends::new()));
        if !std::mem::replace(&mut deferred.has_waited, true) {
            self.waits.begin(to, WaitCause::Window);
        }
        deferred.push(send, queue, tag)
    }

    /// Operations to a peer wait behind a fence: as long as they do, no send takes room.
    pub(crate) fn raise_fence(&mut self, to: PeerId) {
        self.of(to).deferred.get_or_insert_with(|| Box::new(DeferredSends::new())).is_fenced = true;
    }

    /// None do any more.
    pub(crate) fn lower_fence(&mut self, to: PeerId) {
        if let Some(deferred) = self.peers.get_mut(to).and_then(|towards| towards.deferred.as_mut()) {
            deferred.is_fenced = false;
            self.end(to);
        }
    }

    /// The first deferred send, if it may leave now or when there is room (W3).
    pub(crate) fn first(&self, to: PeerId) -> Option<Key> {
        let deferred = self.peers.get(to)?.deferred.as_ref()?;
        let first = deferred.list.get(deferred.list.first()?)?;
        (!matches!(first.stage, Stage::InDoubt | Stage::Offered)).then_some(first.send)
    }

    /// Whether the first deferred send may leave, has room for what it costs, and was never shown to the receiver.
    pub(crate) fn may_release_unseen(&self, to: PeerId, cost: u32) -> bool {
        let Some(towards) = self.peers.get(to) else { return false };
        let first = towards.deferred.as_ref().and_then(|it| it.list.get(it.list.first()?));
        towards.room >= cost && first.is_some_and(|first| matches!(first.stage, Stage::Fresh))
    }

    /// How many sends are deferred. It counts them.
    pub(crate) fn deferred(&self, to: PeerId) -> usize {
        let Some(deferred) = self.peers.get(to).and_then(|towards| towards.deferred.as_ref()) else { return 0 };
        std::iter::successors(deferred.list.first(), |at| deferred.list.after(*at)).count()
    }

    /// Lets the first deferred send leave, if there is room for what it costs. Returns whether the receiver has dropped
    /// its envelope.
    pub(crate) fn release_first(&mut self, to: PeerId, cost: u32) -> Option<bool> {
        let towards = self.of(to);
        if towards.room < cost {
            return None;
        }
        let deferred = towards.deferred.as_mut()?;
        let Deferred { stage, .. } = deferred.remove(deferred.list.first()?)?;
        towards.room -= cost;
        Some(stage == Stage::Dropped)
    }

    /// Ends the list of deferred sends when it is empty and nothing is pending: new sends go the usual way.
    pub(crate) fn end(&mut self, to: PeerId) {
        if let Some(towards) = self.peers.get_mut(to)
            && towards.deferred.take_if(|deferred| deferred.is_over()).is_some_and(|over| over.has_waited)
        {
            self.waits.end(to, WaitCause::Window);
        }
    }

    /// The sends that a deferral notice is to show the receiver now (W4): a batch, when the one before is acknowledged.
    /// And whether the notice only says their number (S6).
    pub(crate) fn next_batch(&mut self, to: PeerId) -> Option<(Vec<Key>, bool)> {
        let towards = self.of(to);
        let is_leaving = matches!(towards.standing, Standing::Leaving | Standing::Shown);
        let deferred = towards.deferred.as_mut().filter(|it| it.batch.is_none() && it.fresh.is_some())?;
        let mut most = towards.limits.control.batch();
        let are_counted = towards.is_turn && deferred.are_counted(most, is_leaving.then_some(deferred.to_show));
        if are_counted {
            most = usize::MAX;
        }
        if is_leaving {
            most = most.min(deferred.to_show as usize);
            deferred.to_show -= most as u32;
            if most == 0 {
                return None;
            }
        }
        let mut batch = Vec::new();
        while let (Some(at), true) = (deferred.fresh, batch.len() < most) {
            deferred.fresh = deferred.list.after(at);
            let Some(entry) = deferred.list.get_mut(at) else { break };
            entry.stage = Stage::InDoubt;
            batch.push((at, entry.send));
        }
        let sends = batch.iter().map(|&(_, send)| send).collect();
        deferred.batch = Some(batch);
        Some((sends, are_counted))
    }

    /// The receiver has matched or dropped all of a batch. Returns the query that waited for that (W7).
    pub(crate) fn acknowledge(&mut self, from: PeerId) -> Result<Option<(Queue, Pattern)>, Malformed> {
        let deferred = self.of(from).deferred.as_mut().ok_or(Malformed)?;
        for (at, send) in deferred.batch.take().ok_or(Malformed)? {
            // One that was matched is no longer in the list, and its place may be another's.
            if let Some(entry) = deferred.list.get_mut(at).filter(|entry| entry.send == send) {
                entry.stage = Stage::Dropped;
            }
        }
        Ok(deferred.query.take())
    }

    /// The receiver's query for the first deferred send that `pattern` accepts. Returns whether it is to be answered
    /// now; if not, [`acknowledge`](Self::acknowledge) returns it later.
    pub(crate) fn query(&mut self, from: PeerId, queue: Queue, pattern: Pattern) -> Result<bool, Malformed> {
        match &mut self.of(from).deferred {
            Some(deferred) if deferred.query.is_some() => Err(Malformed),
            Some(deferred) if deferred.batch.is_some() => {
                deferred.query = Some((queue, pattern));
                Ok(false)
            }
            _ => Ok(true),
        }
    }

    /// Takes the first dropped send that `pattern` accepts for an offer.
    pub(crate) fn offer(&mut self, to: PeerId, queue: Queue, pattern: &Pattern) -> Option<Key> {
        let deferred = self.of(to).deferred.as_mut()?;
        let at = deferred.find_dropped(queue, pattern)?;
        let entry = deferred.list.get_mut(at)?;
        entry.stage = Stage::Offered;
        Some(entry.send)
    }

    /// A send that was offered, which alone can be accepted or declined.
    fn offered(&mut self, from: PeerId, at: Place) -> Result<&mut Deferred, Malformed> {
        let deferred = self.of(from).deferred.as_mut().ok_or(Malformed)?;
        deferred.list.get_mut(at).filter(|entry| entry.stage == Stage::Offered).ok_or(Malformed)
    }

    /// Whether the receiver may accept this.
    pub(crate) fn check_offered(&mut self, from: PeerId, at: Place) -> Result<(), Malformed> {
        self.offered(from, at).map(|_| ())
    }

    /// The receiver declines what was offered.
    pub(crate) fn decline(&mut self, from: PeerId, at: Place) -> Result<(), Malformed> {
        self.offered(from, at)?.stage = Stage::Dropped;
        Ok(())
    }

    /// The receiver has matched a deferred send: it is deferred no longer.
    pub(crate) fn remove(&mut self, to: PeerId, at: Place) {
        if let Some(deferred) = &mut self.of(to).deferred {
            deferred.remove(at);
        }
    }

    /// A peer cannot be reached any more.
    pub(crate) fn lose_peer(&mut self, peer: PeerId) {
        if let Some(towards) = self.peers.get_mut(peer) {
            if towards.deferred.take().is_some_and(|deferred| deferred.has_waited) {
                self.waits.end(peer, WaitCause::Window);
            }
            self.leaving.retain(|&leaving| leaving != peer);
            (towards.room, towards.limits, towards.standing) = (0, Limits::default(), Standing::Welcome);
        }
    }

    /// The place of a peer that is gone goes to another.
    pub(crate) fn release(&mut self, peer: PeerId) {
        self.peers.forget(peer);
        self.waits.forget(peer);
    }

    /// Time is told.
    pub(crate) fn tell_time(&mut self, now: Instant) {
        self.waits.tell_time(now);
    }

    /// For whom sends are or have been deferred.
    pub(crate) fn tell_waits(&self, list: &mut Vec<PeerWait>) {
        self.waits.tell(list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_size::ControlSize;
    use crate::operation::Source;
    use crate::wire::BATCH_MOST;

    const A: PeerId = PeerId(0);
    const LIMITS: Limits = Limits {
        window: 1000,
        largest: 250,
        eager: 100,
        inject: 100,
        answers: 100,
        control: ControlSize::MOST,
        must_ask: false,
    };
    const ANY: Pattern = Pattern { from: Source::Any, tag: 0, ignore: u64::MAX };

    /// A receiver with no room, and so many deferred sends with their numbers as names and tags.
    fn full(sends: u32) -> (Rooms, Vec<Place>) {
        let mut rooms = Rooms::new(1);
        rooms.meet(A, LIMITS, false);
        assert!(rooms.take(A, 1000));
        let places = (0..sends).map(|send| rooms.defer(A, Key(send), Queue::Tagged, send.into())).collect();
        (rooms, places)
    }

    fn room(bytes: u64) -> Room {
        Room { bytes }
    }

    #[test]
    fn nothing_overtakes_a_deferred_send() {
        let (mut rooms, _) = full(1);
        rooms.give_back(A, room(300)).expect("there is room for it");
        assert!(!rooms.take(A, 10), "a send is deferred");
        assert_eq!((rooms.first(A), rooms.release_first(A, 301)), (Some(Key(0)), None), "it costs too much");
        assert_eq!(rooms.release_first(A, 300), Some(false), "the receiver does not know of it");
        rooms.end(A);
        assert_eq!((rooms.room(A), rooms.take(A, 0)), (Some(0), true));
    }

    #[test]
    fn a_batch_is_in_doubt_until_it_is_acknowledged_and_the_next_waits_for_that() {
        let (mut rooms, _) = full(BATCH_MOST as u32 + 1);
        let (batch, are_counted) = rooms.next_batch(A).expect("all are fresh");
        assert_eq!((batch.len(), are_counted), (BATCH_MOST, false));
        assert_eq!((rooms.next_batch(A), rooms.first(A)), (None, None), "the first is in doubt (W3)");
        assert_eq!(rooms.query(A, Queue::Tagged, ANY), Ok(false), "a query waits for that (W7)");
        assert_eq!(rooms.query(A, Queue::Tagged, ANY), Err(Malformed), "one at a time");
        let (queue, pattern) = rooms.acknowledge(A).expect("there is a batch").expect("a query waits");
        assert_eq!(rooms.offer(A, queue, &pattern), Some(Key(0)));
        assert_eq!(rooms.acknowledge(A).err(), Some(Malformed), "once");
        assert_eq!(rooms.next_batch(A), Some((vec![Key(BATCH_MOST as u32)], false)));
    }

    #[test]
    fn an_offered_send_stays_until_it_is_declined_or_matched() {
        let (mut rooms, places) = full(2);
        rooms.next_batch(A);
        rooms.acknowledge(A).expect("there is a batch");
        let pattern = Pattern { tag: 1, ignore: 0, ..ANY };
        assert_eq!(rooms.offer(A, Queue::Untagged, &pattern), None, "it is in the other queue");
        assert_eq!(rooms.decline(A, places[1]), Err(Malformed), "nothing is offered");
        assert_eq!(rooms.check_offered(A, places[1]), Err(Malformed));
        assert_eq!(rooms.offer(A, Queue::Tagged, &pattern), Some(Key(1)));
        assert_eq!((rooms.check_offered(A, places[1]), rooms.decline(A, places[1])), (Ok(()), Ok(())));
        assert_eq!(rooms.offer(A, Queue::Tagged, &ANY), Some(Key(0)), "the first that fits");
        assert_eq!(rooms.first(A), None, "none goes past one that is offered (W3)");
        rooms.remove(A, places[0]);
        assert_eq!(rooms.first(A), Some(Key(1)));
        rooms.give_back(A, room(10)).expect("there is room for it");
        assert_eq!(rooms.release_first(A, 10), Some(true), "the receiver has dropped its envelope");
    }

    #[test]
    fn a_stranger_gets_nothing_until_it_says_what_its_window_is() {
        let mut rooms = Rooms::new(1);
        assert!(!rooms.is_met(A) && rooms.room(A).is_none());
        rooms.meet(A, Limits { window: 100, ..LIMITS }, true);
        assert!(!rooms.take(A, 1) && rooms.is_unknown(A) && rooms.room(A).is_none());
        rooms.relearn_window(A, LIMITS);
        assert_eq!((rooms.room(A), rooms.is_unknown(A)), (Some(1000), false));
        rooms.lose_peer(A);
        assert!(!rooms.is_met(A) && !rooms.take(A, 1));
    }

    #[test]
    fn no_send_takes_room_past_a_fence() {
        let mut rooms = Rooms::new(1);
        rooms.meet(A, LIMITS, false);
        rooms.raise_fence(A);
        assert!(!rooms.take(A, 10) && rooms.first(A).is_none());
        rooms.end(A);
        assert!(!rooms.take(A, 10), "nothing is deferred, and the fence stands");
        rooms.lower_fence(A);
        assert_eq!((rooms.take(A, 10), rooms.room(A)), (true, Some(990)));
    }

    #[test]
    fn room_instead_of_room_that_was_taken() {
        let (mut rooms, _) = full(0);
        assert!(rooms.has_instead(A, 50, 50) && !rooms.has_instead(A, 50, 51));
        rooms.take_instead(A, 50, 20);
        assert_eq!(rooms.room(A), Some(30));
        assert_eq!(rooms.give_back(A, room(u64::MAX)), Err(Malformed), "more than any window has");
    }
}
