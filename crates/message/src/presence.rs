//! [`Presence`]: who is there, who is leaving, who is gone, and what was promised to those who are not.
//!
//! A departed peer keeps its number as long as messages of it are stored, because the number is what says from which
//! peer they are. Where its place in the link's table is needed for another peer, it gets a *record* instead: a number
//! beyond those of all places, which no packet carries, and by which the messages are known from then on.

use std::collections::VecDeque;
use tidegate_flow::{PeerId, Peers};

/// A peer that cannot be reached any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) name: String,
    /// It closed its endpoint; it did not die.
    pub(crate) orderly: bool,
}

/// A peer that was found to be gone while something else was being done.
#[derive(Debug)]
pub(crate) struct Loss {
    pub(crate) peer: PeerId,
    pub(crate) name: String,
    /// It has broken the rules, and counts as dead. Else nothing can be sent to it, but it may have sent us something.
    pub(crate) is_quarantined: bool,
}

#[derive(Debug, Default)]
struct Peer {
    /// Set when the peer cannot be reached any more.
    lost: Option<Box<Lost>>,
    /// It matches nothing more.
    is_closing: bool,
    /// What was under way between us has been given up, and the peer may not know: what it still says of that is no
    /// violation.
    is_given_up: bool,
    /// Sends that it does not have yet and that closing waits for: the copied ones, or all.
    awaited: u32,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Presence {
    peers: Peers<Peer>,
    /// How many cannot be reached any more.
    lost: usize,
    /// Peers that were found to be gone, for which operations still wait.
    noted: VecDeque<Loss>,
    /// What was under way with anybody has been given up.
    is_given_up: bool,
    /// Peers that left and whose stored messages the application has not received yet; and records of which nothing is
    /// stored any more.
    departed: VecDeque<PeerId>,
    /// The number of the first record: how many places there are.
    first_record: u32,
    /// How many numbers of records have been given out, those that are free again included.
    records: u32,
    /// Numbers of records that are free again.
    free_records: Vec<PeerId>,
    epoch: u32,
    /// Sends that closing waits for, but for those to peers that are closing.
    awaited: usize,
    /// All sends count, and not only the copied ones.
    awaits_all_sends: bool,
    /// The application receives nothing more.
    is_closing: bool,
}

impl Presence {
    /// Most heap bytes of the table of peers: when all `peers` have been contacted.
    pub(crate) const fn bytes_most(peers: u32) -> usize {
        Peers::<Peer>::bytes_most(peers)
    }

    pub(crate) fn new(peers: u32) -> Self {
        let (first_record, peers) = (peers, Peers::new(peers, ()));
        Presence {
            peers,
            first_record,
            records: 0,
            free_records: Vec::new(),
            lost: 0,
            noted: VecDeque::new(),
            is_given_up: false,
            departed: VecDeque::new(),
            epoch: 0,
            awaited: 0,
            awaits_all_sends: false,
            is_closing: false,
        }
    }

    fn of(&mut self, peer: PeerId) -> &mut Peer {
        self.peers.of(peer)
    }

    /// Whether any peer is lost; mostly nobody is.
    #[inline(always)]
    pub(crate) fn has_lost(&self) -> bool {
        self.lost > 0
    }

    #[inline]
    pub(crate) fn lost(&self, peer: PeerId) -> Option<&Lost> {
        if !self.has_lost() { None } else { self.peers.get(peer)?.lost.as_deref() }
    }

    /// Of a peer to which nothing can be sent: its name.
    #[inline]
    pub(crate) fn gone(&self, peer: PeerId) -> Option<&str> {
        if self.lost + self.noted.len() == 0 { None } else { self.name_of_gone(peer) }
    }

    #[cold]
    fn name_of_gone(&self, peer: PeerId) -> Option<&str> {
        let noted = || self.noted.iter().find(|loss| loss.peer == peer).map(|loss| loss.name.as_str());
        self.lost(peer).map(|lost| lost.name.as_str()).or_else(noted)
    }

    /// A peer was found to be gone: nothing is sent to it any more, and what was under way between us is given up. The
    /// caller says so to [attention](crate::attention), so that everything that waits for the peer ends later.
    pub(crate) fn note_loss(&mut self, loss: Loss) {
        self.give_up(loss.peer);
        self.noted.push_back(loss);
    }

    /// The next peer that was found to be gone.
    pub(crate) fn next_loss(&mut self) -> Option<Loss> {
        self.noted.pop_front()
    }

    /// A peer cannot be reached any more.
    pub(crate) fn lose(&mut self, peer: PeerId, lost: Lost) {
        if self.of(peer).lost.replace(Box::new(lost)).is_none() {
            self.lost += 1;
        }
    }

    pub(crate) fn is_given_up(&self, peer: PeerId) -> bool {
        self.is_given_up || self.peers.get(peer).is_some_and(|peer| peer.is_given_up)
    }

    /// What was under way with anybody is given up.
    pub(crate) fn give_up_all(&mut self) {
        self.is_given_up = true;
    }

    /// What was under way between us is given up.
    pub(crate) fn give_up(&mut self, peer: PeerId) {
        self.of(peer).is_given_up = true;
    }

    /// Whether we are closing.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// We match nothing more.
    pub(crate) fn begin_closing(&mut self) {
        self.is_closing = true;
    }

    /// Closing waits for all sends, not only for the copied ones. `others`: the peers of those that are not copied,
    /// once for each send.
    pub(crate) fn await_all_sends(&mut self, others: impl Iterator<Item = PeerId>) {
        if !std::mem::replace(&mut self.awaits_all_sends, true) {
            others.for_each(|peer| self.keep_send(peer));
        }
    }

    /// Whether closing waits for a send.
    pub(crate) fn awaits(&self, is_copied: bool) -> bool {
        is_copied || self.awaits_all_sends
    }

    /// Whether a peer may still match what it does not have yet.
    pub(crate) fn may_match(&self, peer: PeerId) -> bool {
        self.peers.get(peer).is_none_or(|peer| !peer.is_closing && peer.lost.is_none())
    }

    /// A peer is closing: it matches nothing more, and closing waits for no send that it does not have.
    pub(crate) fn handle_closing(&mut self, peer: PeerId) {
        let state = self.of(peer);
        if !std::mem::replace(&mut state.is_closing, true) {
            let awaited = state.awaited as usize;
            self.awaited -= awaited;
        }
    }

    /// A send to `peer` that closing waits for is here from now on.
    pub(crate) fn keep_send(&mut self, peer: PeerId) {
        let state = self.of(peer);
        state.awaited += 1;
        let counts = !state.is_closing;
        self.awaited += usize::from(counts);
    }

    /// A send to `peer` that closing waits for is here no longer.
    pub(crate) fn drop_send(&mut self, peer: PeerId) {
        let state = self.of(peer);
        state.awaited -= 1;
        let counts = !state.is_closing;
        self.awaited -= usize::from(counts);
    }

    /// Whether closing waits for sends that their receivers may still match.
    pub(crate) fn has_awaited(&self) -> bool {
        self.awaited > 0
    }

    /// Whether closing waits for sends to this peer, which may still match them.
    pub(crate) fn has_awaited_to(&self, peer: PeerId) -> bool {
        self.peers.get(peer).is_some_and(|peer| peer.awaited > 0 && !peer.is_closing)
    }

    /// A peer has departed: its place is in use as long as messages of it are stored.
    pub(crate) fn depart(&mut self, peer: PeerId) {
        self.departed.push_back(peer);
    }

    #[inline]
    pub(crate) fn has_departed(&self) -> bool {
        !self.departed.is_empty()
    }

    /// How many have departed whose places are not free yet.
    pub(crate) fn departed(&self) -> usize {
        self.departed.len()
    }

    /// Takes the one of them whose turn it is. The caller says if it has to [depart](Self::depart) once more.
    pub(crate) fn next_departed(&mut self) -> Option<PeerId> {
        self.departed.pop_front()
    }

    /// Whether this is the number of a record.
    #[inline(always)]
    pub(crate) fn is_record(&self, peer: PeerId) -> bool {
        peer.0 >= self.first_record
    }

    /// The number of the next record.
    pub(crate) fn next_record(&self) -> PeerId {
        let unused = self.first_record + self.records;
        self.free_records.last().copied().unwrap_or(PeerId(unused))
    }

    /// A departed peer is known by the [next record](Self::next_record) from now on; what was known of its place the
    /// caller [releases](Self::release).
    pub(crate) fn begin_record(&mut self, peer: PeerId) {
        let record = self.next_record();
        if self.free_records.pop().is_none() {
            self.records += 1;
            self.peers.grow(self.first_record + self.records);
        }
        let lost = self.of(peer).lost.take();
        self.of(record).lost = lost;
    }

    /// The number of a record goes to another one.
    pub(crate) fn end_record(&mut self, record: PeerId) {
        self.release(record);
        self.free_records.push(record);
    }

    /// The place of a peer goes to another.
    pub(crate) fn release(&mut self, peer: PeerId) {
        if self.peers.forget(peer).is_some_and(|before| before.lost.is_some()) {
            self.lost -= 1;
        }
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// How often places were released; wraps.
    #[inline]
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PeerId = PeerId(0);
    const B: PeerId = PeerId(1);

    #[test]
    fn sends_to_a_peer_that_is_closing_are_not_waited_for() {
        let mut presence = Presence::new(2);
        presence.keep_send(A);
        presence.keep_send(A);
        presence.handle_closing(A);
        presence.handle_closing(A);
        assert!(!presence.has_awaited() && !presence.may_match(A) && presence.may_match(B));
        presence.keep_send(A);
        presence.drop_send(A);
        presence.keep_send(B);
        assert!(presence.has_awaited() && presence.has_awaited_to(B) && !presence.has_awaited_to(A));
        presence.drop_send(B);
        assert!(!presence.has_awaited() && !presence.has_awaited_to(B));
    }

    #[test]
    fn all_sends_count_once_from_when_closing_waits_for_them() {
        let mut presence = Presence::new(2);
        presence.handle_closing(A);
        presence.keep_send(B);
        assert!(presence.awaits(true) && !presence.awaits(false));
        for _ in 0..2 {
            presence.await_all_sends([A, B].into_iter());
        }
        assert!(presence.awaits(false));
        (0..2).for_each(|_| presence.drop_send(B));
        assert!(!presence.has_awaited(), "that to A counts for nothing");
        presence.drop_send(A);
    }

    #[test]
    fn to_a_peer_that_was_found_to_be_gone_nothing_is_sent_but_what_it_has_sent_counts() {
        let mut presence = Presence::new(2);
        presence.note_loss(Loss { peer: A, name: "node 0".to_owned(), is_quarantined: false });
        assert_eq!((presence.gone(A), presence.gone(B), presence.lost(A)), (Some("node 0"), None, None));
        assert!(presence.is_given_up(A) && !presence.is_given_up(B) && !presence.has_lost());
        assert!(presence.next_loss().is_some_and(|loss| loss.peer == A) && presence.next_loss().is_none());
        assert_eq!(presence.gone(A), None, "the next send asks the link once more");
        presence.lose(B, Lost { name: "node 1".to_owned(), orderly: true });
        assert_eq!(presence.gone(B), Some("node 1"));
    }

    #[test]
    fn a_record_is_lost_like_the_peer_whose_messages_it_has() {
        let mut presence = Presence::new(2);
        let lost = Lost { name: "node 1".to_owned(), orderly: false };
        for _ in 0..2 {
            presence.lose(B, lost.clone());
            let record = presence.next_record();
            presence.begin_record(B);
            presence.release(B);
            assert!(presence.is_record(record) && !presence.is_record(B) && presence.next_record() != record);
            assert_eq!((presence.lost(record), presence.lost(B), presence.has_lost()), (Some(&lost), None, true));
            presence.end_record(record);
            assert_eq!((presence.lost(record), presence.has_lost(), presence.next_record()), (None, false, record));
        }
    }

    #[test]
    fn a_place_that_goes_to_another_knows_nothing_of_the_one_before() {
        let mut presence = Presence::new(2);
        let lost = Lost { name: "node 1".to_owned(), orderly: false };
        presence.lose(A, lost.clone());
        presence.give_up(A);
        presence.depart(A);
        assert_eq!((presence.lost(A), presence.lost(B)), (Some(&lost), None));
        assert_eq!((presence.next_departed(), presence.has_departed(), presence.epoch()), (Some(A), false, 0));
        presence.release(A);
        assert_eq!((presence.lost(A), presence.is_given_up(A), presence.epoch()), (None, false, 1));
        presence.epoch = u32::MAX;
        presence.release(B);
        assert_eq!(presence.epoch(), 0, "it wraps");
    }
}
