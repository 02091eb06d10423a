//! The table of peers, honest and damaged.

use super::super::index::LOOKS;
use super::*;
use std::cell::RefCell;
use std::sync::atomic::AtomicU32;

/// A table in ordinary memory.
struct Owned {
    entries: Vec<Entry>,
    places: Places,
    open: AtomicU64,
    index: Vec<AtomicU32>,
}

impl Owned {
    fn new(peers: usize) -> Self {
        let word = || AtomicU64::new(0);
        let entry = |_| Entry {
            state: word(),
            address: std::array::from_fn(|_| word()),
            is_locked: word(),
            posted: word(),
            changing: Changing {
                copied: AtomicU64::new(0),
                writing: word(),
                next_free: word(),
                claim: word(),
                next_marked: word(),
                accessing: word(),
            },
        };
        Owned {
            entries: (0..peers).map(entry).collect(),
            places: Places::default(),
            open: AtomicU64::new(peers as u64),
            index: (0..Index::words_for(peers)).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    fn table(&self) -> Table {
        // SAFETY: every test keeps `self` until it needs the table no more.
        unsafe {
            Table::new(Parts {
                entries: NonNull::from(&*self.entries),
                places: NonNull::from(&self.places),
                open: NonNull::from(&self.open),
                index: Index::new(NonNull::from(&*self.index)),
            })
        }
    }
}

#[test]
fn no_more_places_are_taken_than_their_owner_has_opened() {
    let owned = Owned::new(4);
    owned.open.store(2, Ordering::Relaxed);
    let table = owned.table();
    assert_eq!([1, 2, 3].map(|pid| insert(&table, &address(pid))), [Some(PeerId(0)), Some(PeerId(1)), None]);
    assert!(table.is_full());
    // One that takes a place all the same is not heard.
    owned.entries[3].state.store(State::Connected as u64, Ordering::Relaxed);
    owned.places.used.store(4, Ordering::Relaxed);
    assert_eq!((table.used(), table.address(PeerId(3)), table.taken().count()), (2, None, 2));
    owned.open.store(4, Ordering::Relaxed);
    assert_eq!(insert(&table, &address(3)), Some(PeerId(2)));
}

fn insert(table: &Table, address: &Address) -> Option<PeerId> {
    table.find_or_insert(address, |_| Ok(())).unwrap()
}

fn find(table: &Table, address: &Address) -> Option<PeerId> {
    table.find(address, |_| Ok(())).unwrap()
}

fn address(pid: u32) -> Address {
    Address { host: 1, namespace: 2, pid, serial: 0, tag: 3 }
}

/// Looks that something takes.
fn looks(what: impl FnOnce()) -> u64 {
    let before = LOOKS.get();
    what();
    LOOKS.get() - before
}

/// Small, seeded, good enough to do damage.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 16
    }
}

#[test]
fn an_entry_is_two_cache_lines() {
    assert_eq!(size_of::<Entry>(), 128);
}

#[test]
fn everybody_has_one_place_and_a_freed_one_is_given_away() {
    let owned = Owned::new(2);
    let table = owned.table();
    assert_eq!(insert(&table, &address(10)), Some(PeerId(0)));
    assert_eq!(insert(&table, &address(11)), Some(PeerId(1)));
    assert_eq!(insert(&table, &address(10)), Some(PeerId(0)));
    assert_eq!(insert(&table, &address(12)), None, "full");
    assert!(table.is_full());
    assert_eq!(table.state(PeerId(0)), State::Expected);
    assert!(!table.may_write(PeerId(0)));
    table.mark_connected(PeerId(0), false);
    assert_eq!(table.state(PeerId(0)), State::Connected);
    assert!(table.may_write(PeerId(0)) && !table.is_locked(PeerId(0)));
    table.sever(PeerId(0));
    assert_eq!(table.state(PeerId(0)), State::Severed);
    assert!(table.may_write(PeerId(0)), "nobody can keep it from writing");
    table.mark_connected(PeerId(0), true);
    assert!(table.is_locked(PeerId(0)));
    table.mark_ended(PeerId(0), true);
    table.sever(PeerId(0));
    assert_eq!(table.state(PeerId(0)), State::Left, "who has left has left");
    assert_eq!(insert(&table, &address(12)), None, "who left is not forgotten before the owner says so");
    table.free(PeerId(0));
    assert!(!table.is_full());
    assert_eq!((table.address(PeerId(0)), find(&table, &address(10))), (None, None));
    assert_eq!(insert(&table, &address(12)), Some(PeerId(0)));
    assert_eq!(table.address(PeerId(0)), Some(address(12)));
    assert_eq!(table.state(PeerId(7)), State::Free, "outside the table");
}

#[test]
fn the_system_is_asked_who_is_dead_only_if_nobody_has_said_that_it_ended() {
    let owned = Owned::new(100);
    let table = owned.table();
    (0..100).for_each(|pid| assert!(insert(&table, &address(pid)).is_some()));
    let asked = RefCell::new(Vec::new());
    let ask = |dead: Option<u32>| {
        asked.borrow_mut().clear();
        table.has_some_ended(|peer, whose| {
            asked.borrow_mut().push(peer.0);
            assert_eq!(whose, address(peer.0));
            Some(peer.0) == dead
        })
    };
    assert!(!ask(None) && *asked.borrow() == (0..100).collect::<Vec<_>>());
    assert!(ask(Some(2)) && *asked.borrow() == [0, 1, 2]);
    for orderly in [true, false] {
        table.mark_ended(PeerId(99), orderly);
        assert!(ask(Some(2)) && asked.borrow().is_empty());
    }
}

#[test]
fn joining_takes_looks_in_proportion_to_the_peers() {
    for peers in [1, 16, 512, 65_536] {
        let owned = Owned::new(peers as usize);
        let table = owned.table();
        let all = looks(|| (0..peers).for_each(|pid| assert_eq!(insert(&table, &address(pid)), Some(PeerId(pid)))));
        println!("{peers} insertions: {all} looks");
        assert!(all <= 12 * u64::from(peers), "{all} looks for {peers} insertions");
        let all = looks(|| (0..peers).for_each(|pid| assert_eq!(find(&table, &address(pid)), Some(PeerId(pid)))));
        assert!(all <= 6 * u64::from(peers), "{all} looks to find {peers}");
        let all = looks(|| (peers..2 * peers).for_each(|pid| assert_eq!(find(&table, &address(pid)), None)));
        assert!(all <= 8 * u64::from(peers), "{all} looks not to find {peers}");
    }
}

#[test]
fn few_peers_touch_little_of_a_table_for_many() {
    let owned = Owned::new(65_536);
    let (table, pages) = (owned.table(), RefCell::new(std::collections::BTreeSet::new()));
    let allocate = |memory: Memory| {
        let (kind, bytes) = match memory {
            Memory::Entries(bytes) => (0, bytes),
            Memory::Index(bytes) => (1, bytes),
        };
        pages.borrow_mut().extend((bytes.start / 4096..bytes.end.div_ceil(4096)).map(|page| (kind, page)));
        Ok(())
    };
    (0..8).for_each(|pid| assert!(table.find_or_insert(&address(pid), allocate).unwrap().is_some()));
    assert!(pages.borrow().contains(&(0, 0)) && pages.borrow().len() <= 1 + 8, "{pages:?}");
    let refuse = |_| Err(io::Error::from_raw_os_error(libc::ENOSPC));
    assert!(table.find_or_insert(&address(8), refuse).is_err());
    assert_eq!((table.used(), find(&table, &address(8))), (8, None), "nothing has changed");
}

#[test]
fn generations_of_peers_come_and_go_and_fill_nothing() {
    const PEERS: u32 = 64;
    let owned = Owned::new(PEERS as usize);
    let table = owned.table();
    for generation in 0..1000 {
        let pids = generation * PEERS..(generation + 1) * PEERS;
        let some = if generation % 2 == 0 { PEERS } else { PEERS / 2 };
        let all = looks(|| {
            for pid in pids.clone().take(some as usize) {
                let place = insert(&table, &address(pid)).unwrap();
                assert!(place.0 < some, "places that became free come first");
            }
        });
        assert!(all <= 16 * u64::from(some), "{all} looks in generation {generation}");
        let words = || owned.index.iter().filter(|word| word.load(Ordering::Relaxed) != 0).count();
        assert_eq!(words(), some as usize, "generation {generation}");
        for pid in pids.take(some as usize).rev() {
            table.free(find(&table, &address(pid)).unwrap());
        }
        assert_eq!(words(), 0, "generation {generation}");
    }
}

/// What a process leaves behind that dies after so many of the four steps of an insertion: the address is written, the
/// index leads to it, the entry is in use, the place is taken.
fn die_in_the_middle(owned: &Owned, address: &Address, steps: u32) {
    let table = owned.table();
    let allocate = |_| Ok(());
    let place = table.free_place(allocate).unwrap().unwrap();
    let entry = &owned.entries[place.0 as usize];
    for (word, bytes) in entry.address.iter().zip(address.to_bytes().as_chunks::<8>().0) {
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
    if steps > 1 {
        table.0.index.insert(hash(address), place, |peer| table.hash_at(peer));
    }
    if steps > 2 {
        entry.state.store(State::Expected as u64, Ordering::Relaxed);
    }
    if steps > 3 {
        table.note_taken(place);
    }
}

#[test]
fn who_dies_in_the_middle_of_an_insertion_takes_one_place_at_most() {
    for steps in 1..=4 {
        for freed in [false, true] {
            let owned = Owned::new(4);
            let table = owned.table();
            (0..3).for_each(|pid| assert!(insert(&table, &address(pid)).is_some()));
            if freed {
                table.free(PeerId(0));
                table.free(PeerId(1));
            }
            die_in_the_middle(&owned, &address(99), steps);
            let left = if freed { 3 } else { 1 } - usize::from(steps > 2);
            let places: Vec<_> = (10..20).map_while(|pid| insert(&table, &address(pid))).collect();
            assert_eq!(places.len(), left, "{steps} steps, freed: {freed}");
            for (pid, place) in (10..).zip(&places) {
                assert_eq!(find(&table, &address(pid)), Some(*place));
                assert_eq!(table.address(*place), Some(address(pid)));
            }
            // The owner meets the dead one, and gives its place away.
            let dead = table.taken().find(|place| table.address(*place) == Some(address(99)));
            assert_eq!(dead.is_some(), steps > 2);
            if let Some(dead) = dead {
                table.free(dead);
                assert_eq!(insert(&table, &address(98)), Some(dead));
            }
            assert_eq!(insert(&table, &address(97)), None);
        }
    }
}

#[test]
fn an_index_full_of_nonsense_leads_nobody_astray() {
    const PEERS: u32 = 300;
    let nonsense: [&dyn Fn(usize) -> u32; 4] =
        [&|_| u32::MAX, &|_| 1, &|at| at as u32 % PEERS + 1, &|at| PEERS + at as u32];
    for (kind, nonsense) in nonsense.iter().enumerate() {
        let owned = Owned::new(PEERS as usize);
        let table = owned.table();
        let damage = || {
            owned.index.iter().enumerate().for_each(|(at, word)| word.store(nonsense(at), Ordering::Relaxed));
        };
        (0..PEERS / 2).for_each(|pid| assert!(insert(&table, &address(pid)).is_some()));
        damage();
        for pid in 0..PEERS / 2 {
            assert_eq!(find(&table, &address(pid)), Some(PeerId(pid)), "{kind}: no empty word, so nobody is absent");
        }
        assert_eq!(find(&table, &address(PEERS)), None, "{kind}");
        for pid in PEERS / 2..PEERS {
            assert_eq!(insert(&table, &address(pid)), Some(PeerId(pid)), "{kind}");
        }
        damage();
        table.free(PeerId(0));
        for pid in 1..PEERS {
            assert_eq!(find(&table, &address(pid)), Some(PeerId(pid)), "{kind}");
        }
        let all = looks(|| assert_eq!(find(&table, &address(1)), Some(PeerId(1))));
        assert!(all <= 50, "{kind}: {all} looks in an index that is repaired");
    }
}

#[test]
fn damaged_counts_cost_no_places() {
    const PEERS: u32 = 8;
    for (used, free) in [(0, 0), (3, 0), (u64::MAX, 0), (8, u64::MAX), (8, 7), (0, 3), (8, 1)] {
        for next in [0, 1, 3, u64::MAX] {
            let owned = Owned::new(PEERS as usize);
            let table = owned.table();
            (0..6).for_each(|pid| assert!(insert(&table, &address(pid)).is_some()));
            [4, 2].into_iter().for_each(|place| table.free(PeerId(place)));
            owned.entries[2].changing.next_free.store(next, Ordering::Relaxed);
            owned.places.used.store(used, Ordering::Relaxed);
            owned.places.free.store(free, Ordering::Relaxed);
            let mut places: Vec<u32> = (10..30).map_while(|pid| insert(&table, &address(pid))).map(|at| at.0).collect();
            places.sort_unstable();
            assert_eq!(places, [2, 4, 6, 7], "used {used}, free {free}, next {next}");
        }
    }
}

/// Steps bounded, nothing out of bounds, nobody given the place of another.
#[test]
fn a_table_that_somebody_scribbles_over_all_the_time_still_ends_every_search() {
    const PEERS: u32 = 200;
    let owned = Owned::new(PEERS as usize);
    let (table, mut random) = (owned.table(), Random(7));
    for step in 0..20_000_u32 {
        let value = random.next();
        let place = (random.next() % u64::from(PEERS)) as usize;
        match value % 7 {
            0 => owned.index[value as usize % owned.index.len()].store(random.next() as u32, Ordering::Relaxed),
            1 => owned.index[value as usize % owned.index.len()].store(place as u32 + 1, Ordering::Relaxed),
            2 => owned.places.used.store(random.next() % 256, Ordering::Relaxed),
            3 => owned.places.free.store(random.next() % 256, Ordering::Relaxed),
            4 => owned.entries[place].changing.next_free.store(random.next() % 256, Ordering::Relaxed),
            5 => owned.entries[place].state.store(random.next() % 7, Ordering::Relaxed),
            _ => owned.entries[place].address[2].store(random.next(), Ordering::Relaxed),
        }
        let all = looks(|| {
            let before: Vec<bool> = (0..PEERS).map(|at| table.state(PeerId(at)) == State::Free).collect();
            let known = find(&table, &address(step));
            if let Some(place) = insert(&table, &address(step)) {
                assert!(known == Some(place) || before[place.0 as usize], "step {step}");
                assert_eq!(table.address(place), Some(address(step)));
            }
            table.free(PeerId((random.next() % u64::from(PEERS)) as u32));
        });
        // A removal from a bucket without an empty word moves all its words.
        assert!(all <= 4 * 512 * 512, "{all} looks in step {step}");
    }
}

mod deaths;

/// A writer that is killed amid a write leaves an odd number. The next that has its place may never write.
#[test]
fn a_place_that_is_free_says_nothing_of_a_writer_that_was_killed_in_it() {
    let owned = Owned::new(2);
    let table = owned.table();
    let peer = insert(&table, &address(7)).unwrap();
    // SAFETY: the word lives as long as `owned`.
    let writing = unsafe { table.writing(peer).as_ref() };
    writing.store(41, sync::Ordering::Relaxed);
    assert!(table.is_any_writing());
    table.free(peer);
    assert_eq!(insert(&table, &address(8)), Some(peer));
    assert!(!table.is_any_writing() && writing.load(sync::Ordering::Relaxed) == 42);
}
