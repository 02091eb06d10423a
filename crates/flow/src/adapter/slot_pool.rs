//! [`SlotPool`]: one pool of slots for all senders, and who is invited when one finds none (`speculative`, whose file
//! says why).
//!
//! A sender that has a packet sends it. A packet that finds no slot free is refused and stays with its sender, which
//! sends nothing more until it is *invited*; the pool remembers it: it is *marked*. As slots come free they are *kept*
//! for marked senders in the order of their marks, and each is invited once as many are kept for it as it has use for.
//!
//! * **How many.** Each packet says how many its sender has behind it, so a refused one says how many slots it wants.
//!   At most half of the pool is kept for one sender at a time. Less is not kept, unless it
//!   wants less: an invitation for each slot that comes free would be a packet of control for each packet of data.
//! * **Order.** Packets are numbered; only the one that is expected next is looked at, and all others are dropped. So
//!   what was on its way behind a refused packet, and arrives after the invitation, changes nothing.
//! * **No sender starves.** While a sender is marked, no slot that comes free goes to one that is not. Marks are served
//!   in order; who is refused again, because it had more than was kept for it, stands behind the others.
//! * **No slot for control.** Marks are here, and refusals and invitations are told outside of the mailbox.
//! * **No idle slots.** A sender that was invited and does not come has slots that no other can use.
//!   [`revoke`](SlotPool::revoke) takes them back, and its packets are judged like any. The carrier of the scheme
//!   decides after how long; where senders' adapters answer by themselves there is no need. A sender that was late may
//!   be one whose program calls seldom, and would be invited in vain for ever. So until it has come in time it gets a
//!   single slot, which is kept until it comes, as long as such slots are at most half of the pool: others have the
//!   rest.
//!
//! Invariants: free + kept + filled = size; kept is the sum over senders; a sender is marked or has slots kept for it,
//! or neither, never both; while one is marked, fewer are free than the first of them waits for.

use super::arrived::Arrived;
use crate::{PeerId, Peers};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most slots that are kept for one sender at a time, however large the pool is: far less than half of the numbers that
/// packets have.
pub(super) const KEPT_MOST: u32 = 1 << 14;

/// A sender that waits, or has slots kept for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Waiting {
    /// The packets that it is known to wait with: it is marked, unless this is 0.
    wanted: u32,
    /// Slots kept for it.
    kept: u32,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SlotPool {
    size: u32,
    /// Slots with packets that were not retrieved.
    filled: u32,
    /// Slots that are kept for those who were invited.
    kept: u32,
    /// Of each sender that has sent something, the number of the packet that is expected next. That is all that is kept
    /// of one that neither waits nor has slots kept for it.
    expected: Peers<u16, 256>,
    /// Those that are marked, or have slots kept for them.
    waiting: BTreeMap<PeerId, Waiting>,
    /// The marked senders, in order.
    marked: VecDeque<PeerId>,
    /// Whose invitation was not told yet, and how many slots are kept.
    to_invite: VecDeque<(PeerId, u32)>,
    /// The senders that have slots kept for them, the oldest invitation first.
    holders: VecDeque<PeerId>,
    /// Those from which slots were taken back, and which have used none since.
    late: BTreeSet<PeerId>,
}

impl SlotPool {
    /// A pool of `size` slots, at least one, for `peers` peers.
    pub fn new(peers: u32, size: u32) -> Self {
        SlotPool {
            size: size.max(1),
            filled: 0,
            kept: 0,
            expected: Peers::new(peers, ()),
            waiting: BTreeMap::new(),
            marked: VecDeque::new(),
            to_invite: VecDeque::new(),
            holders: VecDeque::new(),
            late: BTreeSet::new(),
        }
    }

    /// Slots that any sender may take.
    pub fn free(&self) -> u32 {
        self.size - self.filled - self.kept
    }

    /// Slots with packets that were not retrieved.
    pub fn filled(&self) -> u32 {
        self.filled
    }

    /// Slots that are kept for this sender.
    pub fn kept_for(&self, peer: PeerId) -> u32 {
        self.waiting.get(&peer).map_or(0, |sender| sender.kept)
    }

    /// Whether this sender waits for an invitation.
    pub fn is_marked(&self, peer: PeerId) -> bool {
        self.waiting.get(&peer).is_some_and(|sender| sender.wanted > 0)
    }

    /// Whether some sender waits for an invitation, and slots are kept for others: these are to be
    /// [taken back](Self::revoke) when that lasts.
    pub fn may_revoke(&self) -> bool {
        !self.marked.is_empty() && self.first_holder().is_some()
    }

    /// How many more slots have to come free before the sender that has waited longest is invited; `None`: none waits.
    pub fn missing(&self) -> Option<u32> {
        let &first = self.marked.front()?;
        let wanted = self.granted(first);
        Some(wanted.saturating_sub(self.free()))
    }

    /// The slots that a marked sender gets: a single one if it came too late the last time.
    fn granted(&self, peer: PeerId) -> u32 {
        let most = if self.late.contains(&peer) { 1 } else { self.most() };
        self.waiting.get(&peer).map_or(0, |sender| sender.wanted.min(most))
    }

    /// Most slots that are kept for one sender.
    fn most(&self) -> u32 {
        (self.size / 2).clamp(1, KEPT_MOST)
    }

    /// Takes a slot for the next packet of `from`, if there is one for it. Else the sender is marked, with this packet
    /// and those `behind` it.
    pub fn take(&mut self, from: PeerId, behind: u32) -> bool {
        if !self.waiting.is_empty()
            && let Some(sender) = self.waiting.get_mut(&from)
        {
            if sender.wanted > 0 {
                return false;
            }
            sender.kept -= 1;
            self.kept -= 1;
            if sender.kept == 0 {
                self.end_holding(from);
            }
            self.late.remove(&from);
        } else if self.free() == 0 || !self.marked.is_empty() {
            self.waiting.insert(from, Waiting { wanted: behind.saturating_add(1), kept: 0 });
            self.marked.push_back(from);
            self.invite();
            return false;
        }
        self.filled += 1;
        true
    }

    /// The packet of this number has come from `from`, with a number of packets `behind` it.
    pub fn handle_arrival(&mut self, from: PeerId, number: u16, behind: u32) -> Arrived {
        let ahead = number.wrapping_sub(*self.expected.of(from));
        if let Some(sender) = self.waiting.get_mut(&from).filter(|sender| sender.wanted > 0) {
            // It was sent before the refusal was known, and tells how many packets wait.
            if ahead < u16::MAX / 2 {
                sender.wanted = sender.wanted.max(behind.saturating_add(u32::from(ahead) + 1));
            }
            return Arrived::Dropped;
        }
        if ahead != 0 {
            return Arrived::Dropped;
        }
        if !self.take(from, behind) {
            return Arrived::Refused;
        }
        let expected = self.expected.of(from);
        *expected = expected.wrapping_add(1);
        Arrived::Accepted
    }

    /// The number of the packet of this sender that is expected next: all before it were accepted.
    pub fn expected(&self, peer: PeerId) -> u16 {
        self.expected.get(peer).copied().unwrap_or(0)
    }

    /// Packets were retrieved, which had this number of slots: they are free.
    pub fn note_retrieved(&mut self, slots: u32) {
        self.filled -= slots.min(self.filled);
        self.invite();
    }

    /// Keeps slots for those who are marked, as far as they go.
    fn invite(&mut self) {
        while let Some(&peer) = self.marked.front() {
            let wanted = self.granted(peer);
            if self.free() < wanted {
                return;
            }
            self.marked.pop_front();
            self.waiting.insert(peer, Waiting { wanted: 0, kept: wanted });
            self.kept += wanted;
            self.holders.push_back(peer);
            self.to_invite.push_back((peer, wanted));
        }
    }

    /// The next sender that is to be told that it is invited, and to how many slots: it sends again, from the refused
    /// packet on.
    pub fn poll_invitation(&mut self) -> Option<(PeerId, u32)> {
        self.to_invite.pop_front()
    }

    /// Whether a sender is to be told that it is invited.
    pub fn has_invitations(&self) -> bool {
        !self.to_invite.is_empty()
    }

    /// The sender that [`revoke`](Self::revoke) would take slots from: the one that was invited longest ago and for
    /// which slots are still kept.
    pub fn first_holder(&self) -> Option<PeerId> {
        let late = self.holders.iter().filter(|peer| self.late.contains(peer)).count();
        let is_spared = |peer: &PeerId| late as u32 <= self.size / 2 && self.late.contains(peer);
        self.holders.iter().find(|peer| !is_spared(peer)).copied()
    }

    /// Takes back what is kept for the sender that was invited longest ago, as others wait. Returns which.
    pub fn revoke(&mut self) -> Option<PeerId> {
        if !self.may_revoke() {
            return None;
        }
        let peer = self.first_holder()?;
        self.kept -= self.waiting.get(&peer).map_or(0, |sender| sender.kept);
        self.end_holding(peer);
        self.late.insert(peer);
        self.invite();
        Some(peer)
    }

    /// A peer is gone, and all its packets were retrieved.
    pub fn forget(&mut self, peer: PeerId) {
        self.expected.forget(peer);
        self.late.remove(&peer);
        let Some(sender) = self.waiting.remove(&peer) else { return };
        self.kept -= sender.kept;
        self.marked.retain(|&other| other != peer);
        self.end_holding(peer);
        self.to_invite.retain(|&(other, _)| other != peer);
        self.invite();
    }

    /// Nothing is kept for a sender any more. It is nearly always among the first: who was invited first comes first.
    fn end_holding(&mut self, peer: PeerId) {
        self.waiting.remove(&peer);
        if let Some(place) = self.holders.iter().position(|&other| other == peer) {
            self.holders.remove(place);
        }
    }

    /// Heap bytes when this number of peers has sent something, and none waits.
    pub fn bytes_idle(peers: u32) -> usize {
        Peers::<u16, 256>::bytes_most(peers)
    }

    /// Most heap bytes: those when all wait.
    pub fn bytes_most(peers: u32) -> usize {
        // A tree's nodes are half full at least, and have pointers as well as entries.
        let waiting = 4 * peers.max(11) as usize * (size_of::<(PeerId, Waiting)>() + size_of::<PeerId>());
        Self::bytes_idle(peers) + waiting + 4 * crate::control_queue::queue_bytes::<PeerId>(peers)
    }
}
