//! The four activity lists (P §6.2): every sender is in exactly one, the most recently moved first.
//!
//! Linked through one entry per sender, so that nothing is searched. A sender has none as long as neither it nor a
//! neighbour was moved: its neighbours are those in rank. The lists for high, medium and low shift by renaming: which
//! list plays which part is looked up in `parts`.

use crate::inspect::Activity;
use crate::{Initial, PeerId, Peers};
use std::hash::{Hash, Hasher};

/// No sender: the end of a list.
const END: u32 = u32::MAX;
/// The list that plays low at the start.
const LOW: u8 = 2;
/// The list that always plays null.
const NULL: u8 = 3;

/// A sender's place: its neighbours and its list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    before: u32,
    after: u32,
    list: u8,
}

/// How many senders there are, and how many of these are expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Numbers {
    all: u32,
    expected: u32,
}

impl Initial for Place {
    type Config = Numbers;

    /// Everybody who is expected in low (P §6.3), the others in null, in rank order.
    fn initial(&Numbers { all, expected }: &Numbers, peer: PeerId) -> Self {
        let (list, from, to) = if peer.0 < expected { (LOW, 0, expected) } else { (NULL, expected, all) };
        let before = if peer.0 > from { peer.0 - 1 } else { END };
        let after = if peer.0 + 1 < to { peer.0 + 1 } else { END };
        Place { before, after, list }
    }
}

/// The two ends of a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Ends {
    first: u32,
    last: u32,
}

/// See the module. Equal when the lists hold the same senders in the same order, whichever list plays which part.
#[derive(Clone, Debug)]
pub(super) struct ActivityLists {
    places: Peers<Place>,
    ends: [Ends; 4],
    /// The list that plays high, medium, low, null.
    parts: [u8; 4],
}

impl ActivityLists {
    /// Everybody who is expected in low (P §6.3), the others in null, in rank order.
    pub(super) fn new(peers: u32, expected: u32) -> Self {
        let ends_of =
            |from, to| if from < to { Ends { first: from, last: to - 1 } } else { Ends { first: END, last: END } };
        let ends = [ends_of(0, 0), ends_of(0, 0), ends_of(0, expected), ends_of(expected, peers)];
        ActivityLists { places: Peers::new(peers, Numbers { all: peers, expected }), ends, parts: [0, 1, 2, 3] }
    }

    /// The list that `peer` is in.
    pub(super) fn activity(&self, peer: PeerId) -> Activity {
        let list = self.place(peer).list;
        let part = self.parts.iter().position(|&playing| playing == list).unwrap_or(0);
        Activity::ALL[part]
    }

    /// Whether nobody is in the list.
    pub(super) fn is_empty(&self, activity: Activity) -> bool {
        self.last(activity).is_none()
    }

    /// The sender that has been in the list for longest.
    pub(super) fn last(&self, activity: Activity) -> Option<PeerId> {
        let last = self.ends[self.list(activity)].last;
        (last != END).then_some(PeerId(last))
    }

    /// Moves `peer` to the front of a list.
    pub(super) fn move_to_front(&mut self, peer: PeerId, activity: Activity) {
        self.unlink(peer);
        let list = self.list(activity);
        let after = std::mem::replace(&mut self.ends[list].first, peer.0);
        *self.places.of(peer) = Place { before: END, after, list: list as u8 };
        match after {
            END => self.ends[list].last = peer.0,
            after => self.places.of(PeerId(after)).before = peer.0,
        }
    }

    /// Moves `peer` to the back of a list.
    pub(super) fn move_to_back(&mut self, peer: PeerId, activity: Activity) {
        self.unlink(peer);
        self.link_last(peer, activity);
    }

    /// High becomes medium, medium becomes low, and low, which must be empty, the new high (P §6.5.2).
    pub(super) fn shift(&mut self) {
        debug_assert!(self.is_empty(Activity::Low));
        self.parts[..3].rotate_right(1);
    }

    fn list(&self, activity: Activity) -> usize {
        usize::from(self.parts[activity as usize])
    }

    fn link_last(&mut self, peer: PeerId, activity: Activity) {
        let list = self.list(activity);
        let before = std::mem::replace(&mut self.ends[list].last, peer.0);
        *self.places.of(peer) = Place { before, after: END, list: list as u8 };
        match before {
            END => self.ends[list].first = peer.0,
            before => self.places.of(PeerId(before)).after = peer.0,
        }
    }

    fn unlink(&mut self, peer: PeerId) {
        let Place { before, after, list } = *self.places.of(peer);
        match before {
            END => self.ends[usize::from(list)].first = after,
            before => self.places.of(PeerId(before)).after = after,
        }
        match after {
            END => self.ends[usize::from(list)].last = before,
            after => self.places.of(PeerId(after)).before = before,
        }
    }

    /// The members of each list from first to last, found by walking it.
    pub(super) fn inspect(&self) -> [Vec<PeerId>; 4] {
        Activity::ALL.map(|activity| {
            // One more than there are senders: a broken list shows as too long, not as an endless walk.
            self.members(activity).map(PeerId).take(self.places.count() as usize + 1).collect()
        })
    }

    fn members(&self, activity: Activity) -> impl Iterator<Item = u32> {
        let some = |peer: u32| (peer != END).then_some(peer);
        let first = some(self.ends[self.list(activity)].first);
        std::iter::successors(first, move |&peer| some(self.after(PeerId(peer))))
    }

    fn after(&self, peer: PeerId) -> u32 {
        self.place(peer).after
    }

    fn place(&self, peer: PeerId) -> Place {
        self.places.get(peer).cloned().unwrap_or_else(|| Place::initial(self.places.config(), peer))
    }

    /// Most heap bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        Peers::<Place>::bytes_most(self.places.count())
    }
}

impl PartialEq for ActivityLists {
    fn eq(&self, other: &Self) -> bool {
        self.places.count() == other.places.count()
            && Activity::ALL.iter().all(|&activity| self.members(activity).eq(other.members(activity)))
    }
}

impl Eq for ActivityLists {}

impl Hash for ActivityLists {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for activity in Activity::ALL {
            self.members(activity).for_each(|peer| peer.hash(state));
            END.hash(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Activity::{High, Low, Medium, Null};

    /// All lists on one line, each from first to last.
    fn line(lists: &ActivityLists) -> String {
        let names = ["high", "medium", "low", "null"].iter().zip(Activity::ALL);
        let list = |(name, activity)| format!("{name}{:?}", lists.members(activity).collect::<Vec<_>>());
        names.map(list).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn everybody_who_is_expected_starts_in_low_in_rank_order() {
        assert_eq!(line(&ActivityLists::new(4, 4)), "high[] medium[] low[0, 1, 2, 3] null[]");
        assert_eq!(line(&ActivityLists::new(4, 3)), "high[] medium[] low[0, 1, 2] null[3]");
        assert_eq!(line(&ActivityLists::new(4, 0)), "high[] medium[] low[] null[0, 1, 2, 3]");
        assert_eq!(line(&ActivityLists::new(0, 0)), "high[] medium[] low[] null[]");
    }

    #[test]
    fn whoever_is_not_expected_rises_from_null() {
        let mut lists = ActivityLists::new(6, 2);
        assert_eq!([1, 2, 5].map(|peer| lists.activity(PeerId(peer))), [Low, Null, Null]);
        lists.move_to_front(PeerId(4), High);
        lists.move_to_front(PeerId(1), Null);
        lists.move_to_back(PeerId(2), Null);
        assert_eq!(line(&lists), "high[4] medium[] low[0] null[1, 3, 5, 2]");
    }

    #[test]
    fn whoever_was_never_moved_has_its_place_in_rank_order_among_those_who_were() {
        let mut lists = ActivityLists::new(100, 100);
        lists.move_to_front(PeerId(50), High);
        lists.move_to_front(PeerId(99), Low);
        lists.move_to_back(PeerId(0), Low);
        let low: Vec<_> = lists.members(Low).collect();
        assert_eq!(low, [99].into_iter().chain(1..50).chain(51..99).chain([0]).collect::<Vec<_>>());
        assert_eq!((lists.activity(PeerId(70)), lists.places.get(PeerId(70))), (Low, None), "nothing is kept of it");
    }

    #[test]
    fn members_move_to_either_end_from_anywhere() {
        let mut lists = ActivityLists::new(4, 4);
        lists.move_to_front(PeerId(1), Medium);
        lists.move_to_front(PeerId(3), Medium);
        lists.move_to_front(PeerId(0), Null);
        assert_eq!(line(&lists), "high[] medium[3, 1] low[2] null[0]");
        assert_eq!((lists.activity(PeerId(1)), lists.last(Medium), lists.last(High)), (Medium, Some(PeerId(1)), None));
        lists.move_to_back(PeerId(3), Medium);
        lists.move_to_back(PeerId(0), Low);
        lists.move_to_front(PeerId(2), Low);
        assert_eq!(line(&lists), "high[] medium[1, 3] low[2, 0] null[]");
    }

    #[test]
    fn shifting_makes_high_medium_and_medium_low() {
        let mut lists = ActivityLists::new(4, 4);
        for (peer, activity) in [(0, High), (1, Medium), (2, Medium), (3, Null)] {
            lists.move_to_front(PeerId(peer), activity);
        }
        assert_eq!(line(&lists), "high[0] medium[2, 1] low[] null[3]");
        lists.shift();
        assert_eq!(line(&lists), "high[] medium[0] low[2, 1] null[3]");
        lists.move_to_front(PeerId(1), High);
        assert_eq!(line(&lists), "high[1] medium[0] low[2] null[3]");
    }

    #[test]
    fn lists_are_equal_whichever_list_plays_which_part() {
        let mut lists = ActivityLists::new(2, 2);
        lists.move_to_front(PeerId(1), Medium);
        lists.move_to_front(PeerId(0), Medium);
        lists.shift();
        assert_ne!(lists.parts, [0, 1, 2, 3]);
        assert_eq!(lists, ActivityLists::new(2, 2));
        lists.move_to_front(PeerId(1), Low);
        assert_ne!(lists, ActivityLists::new(2, 2));
    }
}
