//! [`GuardPages`]: what keeps writes by a process id out of every memory but ours.
//!
//! `process_vm_writev` writes to many places in one call, but finds the memory by a process id, which may be another
//! process's by then; no check before the call helps. But it writes to its places in order, all in one address space,
//! and ends at the first that is not there. So each endpoint maps two pages at random addresses, where systems map
//! nothing by themselves, and does not hand them down to children that are forked from it. A peer's writes name these
//! pages first: in any other memory, that of another program, of a child of ours, or of our own process after it has
//! executed another program, the first of them is not there, and nothing is written at all.
//!
//! How sure that is: a page lies at one of 2^33 places and more, so both are the same in two processes as rarely as two
//! random numbers of 66 bits are (the number that reads take along has 64). Two endpoints may have one of them alike a
//! little less rarely. Then a byte changes that nothing ever reads, and the call ends at the other.

use crate::secret::random;
use std::ops::Range;
use std::process;
use std::ptr;

/// How many there are.
pub(super) const GUARD_PAGES: usize = 2;
/// Where they lie: above what sanitizers take, below programs and libraries on x86-64 and AArch64.
const WHERE: Range<u64> = 0x2000_0000_0000..0x5000_0000_0000;
/// How often another place is tried where one is taken.
const TRIES: u32 = 3;

/// See the module.
#[derive(Debug)]
pub(super) struct GuardPages {
    addresses: [u64; GUARD_PAGES],
    /// A forked child has not got the pages.
    owner: u32,
}

impl GuardPages {
    /// Maps the pages. `None`: this system does not, so peers write in another way.
    pub(super) fn new() -> Option<GuardPages> {
        let mut pages = GuardPages { addresses: [0; GUARD_PAGES], owner: process::id() };
        for at in 0..GUARD_PAGES {
            // Those that are mapped by then are unmapped as `pages` ends.
            pages.addresses[at] = (0..TRIES).find_map(|_| map_page())?;
        }
        Some(pages)
    }

    /// Where they are.
    pub(super) fn addresses(&self) -> [u64; GUARD_PAGES] {
        self.addresses
    }
}

impl Drop for GuardPages {
    fn drop(&mut self) {
        if self.owner == process::id() {
            self.addresses.into_iter().filter(|address| *address != 0).for_each(unmap);
        }
    }
}

fn page_bytes() -> usize {
    // SAFETY: takes no pointers.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// A page at a random place, which no forked child gets.
fn map_page() -> Option<u64> {
    let bytes = page_bytes();
    let places = (WHERE.end - WHERE.start) / bytes as u64;
    let address = WHERE.start + random() % places * bytes as u64;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: replaces no mapping. (Linux before 4.17 does not know the flag, and takes the address as a wish.)
    let page = unsafe { libc::mmap(address as *mut libc::c_void, bytes, libc::PROT_READ, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    // A child that another thread forks before the first of these calls gets a page that cannot be written to.
    // SAFETY: the page is ours.
    let is_ours_alone = unsafe { libc::madvise(page, bytes, libc::MADV_DONTFORK) } == 0
        // SAFETY: as above.
        && unsafe { libc::mprotect(page, bytes, libc::PROT_READ | libc::PROT_WRITE) } == 0;
    if page as u64 != address || !is_ours_alone {
        unmap(page as u64);
        return None;
    }
    Some(address)
}

fn unmap(address: u64) {
    // SAFETY: a page mapped by `map_page`, to which nothing of ours refers.
    unsafe { libc::munmap(ptr::with_exposed_provenance_mut(address as usize), page_bytes()) };
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn pages_lie_at_other_places_each_time_and_end_with_their_owner() {
        let is_mapped = |address: u64| {
            let mut resident = 0_u8;
            // SAFETY: asks about a page, and writes a byte to `resident`.
            unsafe { libc::mincore(address as *mut libc::c_void, page_bytes(), &raw mut resident) == 0 }
        };
        let (first, second) = (GuardPages::new().unwrap(), GuardPages::new().unwrap());
        let mut addresses = [first.addresses(), second.addresses()].concat();
        assert!(addresses.iter().all(|address| WHERE.contains(address) && is_mapped(*address)), "{addresses:x?}");
        drop(first);
        assert_eq!(addresses.iter().map(|address| is_mapped(*address)).collect::<Vec<_>>(), [false, false, true, true]);
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), 2 * GUARD_PAGES);
    }
}
