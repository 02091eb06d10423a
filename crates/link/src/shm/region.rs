//! Published regions: memory that the owner has registered for RMA, listed in its segment so that a peer that can
//! reach that memory needs no message to the owner.
//!
//! A small hash table that the owner alone writes and any peer reads at any time. A key lies within [`WINDOW`] places
//! of where it hashes to, so looking it up is bounded and removing one leaves no gap to mind; if the window is full
//! the region is not published, and peers go by message. Each place is a sequence lock: its number is odd while the
//! owner changes it.

use super::memory_map::Shared;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use tidegate_message::{Access, Span};

/// Places in the table.
pub(crate) const REGIONS: usize = 1024;
/// Places in which a key may lie.
const WINDOW: usize = 32;
/// Looks at a place that changes all the time before giving up: the region then goes by message.
const TRIES: usize = 64;

const READ: u64 = 1;
const WRITE: u64 = 2;
const TOLD_WRITE: u64 = 4;
/// A place without any right is free.
const FREE: u64 = 0;

/// The bit of an access.
fn right(access: Access) -> u64 {
    match access {
        Access::Read => READ,
        Access::Write => WRITE,
        Access::ToldWrite => TOLD_WRITE,
    }
}

/// One place.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Place {
    sequence: AtomicU64,
    key: AtomicU64,
    address: AtomicU64,
    length: AtomicU64,
    rights: AtomicU64,
}

// SAFETY: atomics only.
unsafe impl Shared for Place {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Region {
    key: u64,
    span: Span,
    rights: u64,
}

/// A region as a peer has found it. It is never another one's: publishing the region again makes another ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

impl Ticket {
    /// Not 0: what has no ticket is memory of another kind.
    pub fn number(self) -> u64 {
        self.0
    }

    fn new(at: usize, sequence: u64) -> Ticket {
        // Even, and never 0 in a place that holds a region.
        Ticket(sequence.wrapping_mul(REGIONS as u64 / 2).wrapping_add(at as u64))
    }
}

/// A table of regions, ours or a peer's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Regions {
    places: NonNull<[Place]>,
}

impl Regions {
    /// # Safety
    /// The places, [`REGIONS`] of them, must stay valid as long as the value or a copy of it is used.
    pub unsafe fn new(places: NonNull<[Place]>) -> Regions {
        assert_eq!(places.len(), REGIONS);
        Regions { places }
    }

    fn places(&self) -> &[Place] {
        // SAFETY: valid by the promise made to `new`; all fields are atomics.
        unsafe { self.places.as_ref() }
    }

    /// The places in which a key may lie.
    fn window(&self, key: u64) -> impl Iterator<Item = usize> {
        // Fibonacci hashing: keys are often small and consecutive, or addresses.
        let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        (first..first + WINDOW).map(|at| at % REGIONS)
    }

    fn near(&self, key: u64) -> impl Iterator<Item = &Place> {
        self.window(key).map(|at| &self.places()[at])
    }

    /// Owner: publishes a region, or changes it. `false`: no room, or no right is given.
    pub fn publish(&self, key: u64, span: Span, access: &[Access]) -> bool {
        let rights = access.iter().fold(FREE, |rights, &access| rights | right(access));
        self.withdraw(key);
        let free = self.near(key).find(|place| place.rights.load(Ordering::Relaxed) == FREE);
        match free {
            Some(place) if rights != FREE => {
                place.change(Region { key, span, rights });
                true
            }
            _ => false,
        }
    }

    /// Owner: withdraws the region of this key. Unknown keys are fine.
    pub fn withdraw(&self, key: u64) {
        let holds =
            |place: &&Place| place.rights.load(Ordering::Relaxed) != FREE && place.key.load(Ordering::Relaxed) == key;
        if let Some(place) = self.near(key).find(holds) {
            place.change(Region { key: 0, span: Span { address: 0, length: 0 }, rights: FREE });
        }
    }

    /// A peer: where `length` bytes at `offset` of the region lie, and what it grants, if it is published, has them and
    /// grants the access.
    pub fn find(&self, key: u64, offset: u64, length: u64, access: Access) -> Option<(Ticket, Span, Access)> {
        let mut regions = self.window(key).filter_map(|at| Some((at, self.places()[at].look()?)));
        let (at, (sequence, region)) = regions.find(|(_, (_, region))| region.key == key && region.rights != FREE)?;
        let inside = offset <= region.span.length && length <= region.span.length - offset;
        let address = region.span.address.checked_add(offset)?;
        let granted = access.granted_by(|access| region.rights & right(access) != 0)?;
        inside.then_some((Ticket::new(at, sequence), Span { address, length }, granted))
    }

    /// Anybody: whether the region with this ticket is still published as it was.
    pub fn holds(&self, ticket: u64) -> bool {
        let at = (ticket % REGIONS as u64) as usize;
        Ticket::new(at, self.places()[at].sequence.load(Ordering::Acquire)).0 == ticket
    }
}

impl Place {
    fn change(&self, region: Region) {
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.key.store(region.key, Ordering::Relaxed);
        self.address.store(region.span.address, Ordering::Relaxed);
        self.length.store(region.span.length, Ordering::Relaxed);
        self.rights.store(region.rights, Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(2), Ordering::Release);
    }

    /// The region as it was at some moment, and its number then; `None` if it never held still.
    fn look(&self) -> Option<(u64, Region)> {
        for _ in 0..TRIES {
            let before = self.sequence.load(Ordering::Acquire);
            let region = Region {
                key: self.key.load(Ordering::Relaxed),
                span: Span {
                    address: self.address.load(Ordering::Relaxed),
                    length: self.length.load(Ordering::Relaxed),
                },
                rights: self.rights.load(Ordering::Relaxed),
            };
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.sequence.load(Ordering::Relaxed) == before {
                return Some((before, region));
            }
            std::hint::spin_loop();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    struct Owner(Vec<Place>);

    impl Owner {
        fn new() -> Self {
            let word = || AtomicU64::new(0);
            let place = |_| Place { sequence: word(), key: word(), address: word(), length: word(), rights: word() };
            Owner((0..REGIONS).map(place).collect())
        }
        fn regions(&self) -> Regions {
            // SAFETY: each test keeps `self` for as long as the value.
            unsafe { Regions::new(NonNull::from(&*self.0)) }
        }
    }

    fn find(regions: &Regions, key: u64, offset: u64, length: u64, access: Access) -> Option<Span> {
        regions.find(key, offset, length, access).map(|(_, span, _)| span)
    }

    fn span(address: u64, length: u64) -> Span {
        Span { address, length }
    }

    #[test]
    fn a_region_is_found_within_its_bounds_and_rights() {
        let owner = Owner::new();
        let regions = owner.regions();
        assert!(regions.publish(7, span(0x1000, 100), &[Access::Read]));
        assert_eq!(find(&regions, 7, 10, 90, Access::Read), Some(span(0x100a, 90)));
        assert_eq!(find(&regions, 7, 100, 0, Access::Read), Some(span(0x1064, 0)));
        assert_eq!(find(&regions, 7, 10, 91, Access::Read), None, "past its end");
        assert_eq!(find(&regions, 7, u64::MAX, 2, Access::Read), None, "no sum may wrap");
        assert_eq!(find(&regions, 7, 0, 1, Access::Write), None, "not granted");
        assert_eq!(find(&regions, 8, 0, 1, Access::Read), None, "another key");
        assert!(regions.publish(7, span(0x2000, 5), &[Access::Read, Access::Write]));
        assert_eq!(find(&regions, 7, 0, 5, Access::Write), Some(span(0x2000, 5)), "published again");
        regions.withdraw(7);
        assert_eq!(find(&regions, 7, 0, 5, Access::Write), None, "withdrawn");
        assert!(!regions.publish(9, span(0, 1), &[]), "a region nobody may use is not listed");
    }

    #[test]
    fn a_write_finds_by_one_look_whether_its_target_wants_to_be_told() {
        let owner = Owner::new();
        let regions = owner.regions();
        let granted = |access| Some(regions.find(7, 0, 1, access)?.2);
        for (published, write) in [
            (&[Access::Read][..], None),
            (&[Access::Write], Some(Access::Write)),
            (&[Access::Read, Access::ToldWrite], Some(Access::ToldWrite)),
        ] {
            assert!(regions.publish(7, span(0x1000, 1), published));
            assert_eq!(granted(Access::Write), write, "{published:?}");
            assert_eq!(granted(Access::Read), published.contains(&Access::Read).then_some(Access::Read));
        }
    }

    #[test]
    fn a_ticket_is_of_one_region_as_it_was_published_once() {
        let owner = Owner::new();
        let regions = owner.regions();
        let ticket = |key| {
            let (ticket, ..) = regions.find(key, 0, 1, Access::Read).expect("it is published");
            ticket.number()
        };
        // As far as the numbers of places go that an endpoint can come to in its life.
        for place in &owner.0 {
            place.sequence.store(1 << 52, Ordering::Relaxed);
        }
        let mut tickets = Vec::new();
        for round in 0..100 {
            for key in [7, 8] {
                assert!(regions.publish(key, span(0x1000, 100), &[Access::Read]));
                let ticket = ticket(key);
                assert!(ticket != 0 && regions.holds(ticket) && !tickets.contains(&ticket), "{round}");
                tickets.push(ticket);
            }
            assert!(!tickets[..tickets.len() - 2].iter().any(|ticket| regions.holds(*ticket)), "{round}");
            regions.withdraw(7);
            assert!(!regions.holds(tickets[tickets.len() - 2]) && regions.holds(tickets[tickets.len() - 1]));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "millions of probes")]
    fn a_crowded_table_refuses_and_takes_regions_again() {
        let owner = Owner::new();
        let regions = owner.regions();
        let taken: Vec<u64> =
            (0..2000).filter(|key| regions.publish(*key, span(*key, 1), &[Access::Read, Access::Write])).collect();
        assert!((REGIONS * 3 / 4..=REGIONS).contains(&taken.len()), "{} regions fitted", taken.len());
        assert!(taken.iter().all(|key| find(&regions, *key, 0, 1, Access::Read) == Some(span(*key, 1))));
        taken.iter().for_each(|key| regions.withdraw(*key));
        assert!((5000..5500).all(|key| regions.publish(key, span(key, 1), &[Access::Read, Access::Write])));
    }

    #[test]
    fn a_reader_never_sees_half_a_region() {
        let owner = Owner::new();
        let (regions, stop) = (owner.regions(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (places, stop) = (&owner.0, &stop);
            scope.spawn(move || {
                // SAFETY: `owner` outlives the scope.
                let regions = unsafe { Regions::new(NonNull::from(&**places)) };
                let mut seen = 0;
                while !stop.load(Ordering::Relaxed) || seen == 0 {
                    // Key 5 is published with its address equal to its length; anything else is a mixture.
                    for length in [1, 2] {
                        if let Some(found) = find(&regions, 5, 0, length, Access::Read) {
                            assert!(found.address >= length);
                            seen += 1;
                        }
                    }
                }
            });
            let rounds = if cfg!(miri) { 50 } else { 200_000 };
            for round in 0..rounds {
                assert!(regions.publish(5, span(1 + round % 2, 1 + round % 2), &[Access::Read]));
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
