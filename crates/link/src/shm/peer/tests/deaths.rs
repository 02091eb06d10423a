//! Processes that die before any one store of what they do to a table of peers: nobody else is lost by that, no place
//! is for good, and no search becomes longer.

use super::super::super::index::STORES_LEFT;
use super::*;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Joins, departures and deaths of one run.
const STEPS: u32 = 1000;

/// What somebody does who dies before its store of this number, if there is one. `None`: it has died.
fn unless_it_dies<T>(store: Option<u32>, does: impl FnOnce() -> T) -> Option<T> {
    STORES_LEFT.set(store);
    let done = catch_unwind(AssertUnwindSafe(does)).ok();
    STORES_LEFT.set(None);
    done
}

/// A table, and who lives in it.
struct Job {
    owned: Owned,
    living: BTreeMap<u32, PeerId>,
    random: Random,
    /// Whoever comes next.
    next: u32,
}

impl Job {
    fn new(peers: usize, seed: u64) -> Job {
        Job { owned: Owned::new(peers), living: BTreeMap::new(), random: Random(seed), next: 0 }
    }

    fn below(&mut self, bound: u64) -> u32 {
        (self.random.next() % bound) as u32
    }

    fn is_living(&self, place: PeerId) -> bool {
        self.living.values().any(|other| *other == place)
    }

    /// Somebody comes, who may die on the way. Returns whether it lives and has a place.
    fn join(&mut self, store: Option<u32>) -> bool {
        let (table, pid) = (self.owned.table(), self.next);
        self.next += 1;
        let Some(Some(place)) = unless_it_dies(store, || insert(&table, &address(pid))) else { return false };
        assert!(!self.is_living(place), "{place:?} is somebody else's");
        self.living.insert(pid, place);
        true
    }

    /// Somebody leaves, and its place is given away.
    fn leave(&mut self) {
        let from = self.below(u64::from(self.next) + 1);
        let (table, next) = (self.owned.table(), self.living.range(from..).next().map(|(pid, place)| (*pid, *place)));
        if let Some((pid, place)) = next {
            self.living.remove(&pid);
            table.free(place);
            assert_eq!(find(&table, &address(pid)), None);
        }
    }

    /// The owner gives the places of the dead away.
    fn bury(&mut self) {
        let table = self.owned.table();
        let dead: Vec<PeerId> = table.taken().filter(|place| !self.is_living(*place)).collect();
        dead.into_iter().for_each(|place| table.free(place));
    }

    /// No word of the index is empty any more. Whoever notices that first repairs it, and may die doing so.
    fn damage(&mut self, store: u32) {
        let table = self.owned.table();
        let empty = self.owned.index.iter().filter(|word| word.load(Ordering::Relaxed) == 0);
        empty.for_each(|word| word.store(u32::MAX, Ordering::Relaxed));
        unless_it_dies(Some(store), || find(&table, &address(u32::MAX)));
    }

    /// Nobody who lives is said to be absent.
    fn check(&self) {
        let table = self.owned.table();
        for (pid, place) in &self.living {
            let its = Some(address(*pid));
            assert_eq!(table.address(*place), its);
            let found = table.0.index.find(hash(&address(*pid)), |peer| table.address(peer) == its);
            assert!(matches!(found, Found::At(at) if at == *place) || found == Found::Unknown, "{pid}: {found:?}");
        }
    }

    /// All places can be had once the dead are buried, and an index that had been full of words is short of none.
    fn fill_and_empty(&mut self) {
        let peers = self.owned.entries.len();
        // A dead one may hide whose place does not count as given out: the next to come finds it.
        for _ in 0..2 {
            while self.join(None) {}
            self.bury();
        }
        while self.join(None) {}
        assert_eq!(self.living.len(), peers, "all places");
        let all =
            looks(|| self.living.keys().for_each(|pid| assert!(find(&self.owned.table(), &address(*pid)).is_some())));
        assert!(all <= 16 * peers as u64 + 600, "{all} looks to find {peers}");
        (0..peers).for_each(|_| self.leave());
    }
}

#[test]
fn whoever_dies_before_any_store_takes_nobody_and_no_place_with_it() {
    for seed in 0..200 {
        let peers = [1, 2, 3, 5, 8, 20, 64, 700][seed as usize % 8];
        let mut job = Job::new(peers, seed);
        for step in 0..STEPS {
            let store = job.below(16);
            match job.below(16) {
                0..5 => _ = job.join(None),
                5..10 => _ = job.join(Some(store)),
                10..13 => job.leave(),
                13 => job.bury(),
                14 if store == 0 => {
                    let store = job.below(1500);
                    job.damage(store);
                }
                _ => assert_eq!(find(&job.owned.table(), &address(u32::MAX)), None),
            }
            if peers < 100 || step % 50 == 0 {
                job.check();
            }
        }
        job.fill_and_empty();
    }
}
