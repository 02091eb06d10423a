//! [`Peers`]: what is remembered of each peer, from the first contact with it on.
//!
//! An endpoint may be made for a hundred thousand peers and talk to ten. *The simple idea*, a vector with a state for
//! each, makes all of them cost what these ten do. So states stand in pages of 32: a page is allocated when one of
//! its peers is contacted first, and what a peer is before that follows from its number and the configuration
//! ([`Initial`]). A silent peer costs its part of the pointer to its page, a quarter of a byte, and nothing in a table
//! in which nobody was contacted. Nothing here walks all peers.

use crate::PeerId;
use std::fmt;
use std::hash::{Hash, Hasher};

/// What a page takes besides its states, in bytes: its pointer, its number in a list that doubles as it grows, and what
/// the allocator adds to a block.
const PAGE_BESIDES: usize = 8 + 2 * 4 + 40;

/// What a peer is before the first contact.
pub trait Initial {
    /// What that depends on.
    type Config: Clone;

    /// The state of a peer that was not contacted.
    fn initial(config: &Self::Config, peer: PeerId) -> Self;
}

impl<T: Default> Initial for T {
    type Config = ();

    fn initial((): &(), _: PeerId) -> T {
        T::default()
    }
}

/// See the module. Equal to another if every peer's state is, contacted or not. `PAGE`: states per page.
#[derive(Clone)]
pub struct Peers<T: Initial, const PAGE: usize = 32> {
    count: u32,
    config: T::Config,
    /// By number; empty before the first contact of all.
    pages: Vec<Option<Box<[T; PAGE]>>>,
    /// The numbers of the pages that are there, in order.
    begun: Vec<u32>,
}

impl<T: Initial, const PAGE: usize> Peers<T, PAGE> {
    /// A table of `count` peers, of which none was contacted.
    pub fn new(count: u32, config: T::Config) -> Self {
        Peers { count, config, pages: Vec::new(), begun: Vec::new() }
    }

    /// Heap bytes that so many peers take when all of them were contacted.
    pub const fn bytes_most(count: u32) -> usize {
        (count as usize).div_ceil(PAGE) * (size_of::<[T; PAGE]>() + PAGE_BESIDES)
    }

    /// How many peers there are, contacted or not.
    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// From now on there are at least so many peers.
    pub fn grow(&mut self, count: u32) {
        self.count = self.count.max(count);
        if !self.pages.is_empty() {
            self.pages.resize_with((self.count as usize).div_ceil(PAGE), || None);
        }
    }

    /// What the initial states follow from.
    pub fn config(&self) -> &T::Config {
        &self.config
    }

    /// The state of a peer to look at; `None`: it is as at the start.
    #[inline(always)]
    pub fn get(&self, peer: PeerId) -> Option<&T> {
        let index = peer.0 as usize;
        Some(&self.pages.get(index / PAGE)?.as_ref()?[index % PAGE])
    }

    /// The state of a peer to change; `None`: it is as at the start, and is to remain so.
    #[inline(always)]
    pub fn get_mut(&mut self, peer: PeerId) -> Option<&mut T> {
        let index = peer.0 as usize;
        Some(&mut self.pages.get_mut(index / PAGE)?.as_mut()?[index % PAGE])
    }

    /// The state of a peer that is contacted now, if it was not before. Panics if there is no such peer.
    #[inline(always)]
    pub fn of(&mut self, peer: PeerId) -> &mut T {
        if self.get(peer).is_none() {
            return self.begin(peer);
        }
        self.get_mut(peer).expect("it was there a moment ago")
    }

    /// Allocates the page of a peer.
    #[cold]
    #[inline(never)]
    fn begin(&mut self, peer: PeerId) -> &mut T {
        assert!(peer.0 < self.count, "{peer:?} is none of {} peers", self.count);
        if self.pages.is_empty() {
            self.pages = (0..(self.count as usize).div_ceil(PAGE)).map(|_| None).collect();
        }
        let number = peer.0 as usize / PAGE;
        let of = |place| PeerId((number * PAGE + place) as u32);
        let states = Box::new(std::array::from_fn(|place| T::initial(&self.config, of(place))));
        let before = self.begun.partition_point(|&begun| (begun as usize) < number);
        self.begun.insert(before, number as u32);
        &mut self.pages[number].insert(states)[peer.0 as usize % PAGE]
    }

    /// Puts a peer back into its initial state. Returns the state before, if the peer's page exists.
    pub fn forget(&mut self, peer: PeerId) -> Option<T> {
        let initial = T::initial(&self.config, peer);
        self.get_mut(peer).map(|state| std::mem::replace(state, initial))
    }

    /// The states of those that were contacted, and of their neighbours, in order. Looks at nobody else.
    pub fn contacted(&self) -> impl Iterator<Item = (PeerId, &T)> {
        let of_page = |&number: &u32| {
            let states = self.pages[number as usize].iter().flat_map(|states| states.iter());
            states.enumerate().map(move |(place, state)| (PeerId(number * PAGE as u32 + place as u32), state))
        };
        self.begun.iter().flat_map(of_page).take_while(|(peer, _)| peer.0 < self.count)
    }

    /// Shows every peer's state, contacted or not.
    fn show_all(&self, mut show: impl FnMut(PeerId, &T)) {
        for peer in (0..self.count).map(PeerId) {
            match self.get(peer) {
                Some(state) => show(peer, state),
                None => show(peer, &T::initial(&self.config, peer)),
            }
        }
    }
}

impl<T: Initial + PartialEq, const PAGE: usize> PartialEq for Peers<T, PAGE> {
    fn eq(&self, other: &Self) -> bool {
        let mut are_equal = self.count == other.count;
        self.show_all(|peer, state| {
            are_equal &= match other.get(peer) {
                Some(others) => state == others,
                None => *state == T::initial(&other.config, peer),
            }
        });
        are_equal
    }
}

impl<T: Initial + Eq, const PAGE: usize> Eq for Peers<T, PAGE> {}

impl<T: Initial + Hash, const PAGE: usize> Hash for Peers<T, PAGE> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.show_all(|_, state| state.hash(hasher));
    }
}

impl<T: Initial + fmt::Debug, const PAGE: usize> fmt::Debug for Peers<T, PAGE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        self.show_all(|_, state| _ = list.entry(state));
        list.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A peer that begins with its own number and a constant.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Number(u32);

    impl Initial for Number {
        type Config = u32;

        fn initial(first: &u32, peer: PeerId) -> Self {
            Number(first + peer.0)
        }
    }

    #[test]
    fn a_state_is_made_at_the_first_contact_and_found_again() {
        let mut peers: Peers<Number> = Peers::new(1000, 5);
        assert_eq!((peers.get(PeerId(999)), peers.contacted().count()), (None, 0));
        assert_eq!(peers.get_mut(PeerId(0)), None);
        peers.of(PeerId(999)).0 += 1;
        assert_eq!((peers.get(PeerId(999)), peers.get(PeerId(998))), (Some(&Number(1005)), Some(&Number(1003))));
        assert_eq!(peers.of(PeerId(999)).0, 1005);
        assert_eq!(peers.get(PeerId(0)), None);
        assert_eq!(peers.forget(PeerId(999)), Some(Number(1005)));
        assert_eq!((peers.forget(PeerId(0)), peers.get(PeerId(999))), (None, Some(&Number(1004))));
    }

    #[test]
    fn who_was_contacted_is_named_in_order_and_few_others_are() {
        let mut peers: Peers<Number> = Peers::new(1000, 0);
        for peer in [999, 3, 500] {
            peers.of(PeerId(peer));
        }
        let named: Vec<u32> = peers.contacted().map(|(peer, _)| peer.0).collect();
        assert!(named.is_sorted() && named.len() == 32 + 32 + 8, "{named:?}: the last page has 8 peers");
        assert!([3, 500, 999].iter().all(|peer| named.contains(peer)));
        assert!(peers.contacted().all(|(peer, number)| number.0 == peer.0));
    }

    #[test]
    fn contact_alone_makes_no_difference() {
        let hash = |peers: &Peers<Number>| {
            let mut hasher = std::hash::DefaultHasher::new();
            peers.hash(&mut hasher);
            hasher.finish()
        };
        let (silent, mut other) = (Peers::<Number>::new(40, 7), Peers::<Number>::new(40, 7));
        other.of(PeerId(20));
        assert_eq!((&silent, hash(&silent), format!("{silent:?}")), (&other, hash(&other), format!("{other:?}")));
        other.of(PeerId(20)).0 = 0;
        assert_ne!((&silent, hash(&silent)), (&other, hash(&other)));
        assert_ne!(other, silent, "whichever side knows of the contact");
    }

    #[test]
    #[should_panic(expected = "PeerId(40) is none of 40 peers")]
    fn nobody_beyond_the_last_is_contacted() {
        Peers::<Number>::new(40, 0).of(PeerId(40));
    }
}
