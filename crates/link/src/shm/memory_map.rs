//! Mapped files: the only place where an offset becomes a pointer.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

/// Types that may lie in memory that other processes write to.
///
/// # Safety
/// Every bit pattern is a value, zero included, and all mutation goes through atomics: in short, structs and arrays
/// of atomic integers.
pub(crate) unsafe trait Shared {}

// SAFETY: an atomic integer is what the trait asks for.
unsafe impl Shared for std::sync::atomic::AtomicU64 {}
// SAFETY: the same.
unsafe impl Shared for std::sync::atomic::AtomicU32 {}

/// The largest page of any kernel for this kind of processor, in bytes. Parts of a file that are mapped on their own
/// begin at multiples of it: kernels for aarch64 have pages of 4, 16 or 64 KiB.
pub(crate) const PAGE_MOST: usize = if cfg!(target_arch = "x86_64") { 4096 } else { 65536 };

/// What a mapping is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Loads only; a store ends the process (SIGSEGV).
    Read,
    /// Loads and stores.
    Write,
}

/// A part of a file, mapped and shared. Page-aligned, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    length: usize,
}

impl Mapping {
    /// Maps `length` bytes from `offset` on, a multiple of [`PAGE_MOST`]. The file must have them: the system
    /// delivers SIGBUS for what is not there. (Another process of the same user could still cut the file short
    /// afterwards; that is not defended against.)
    pub fn new(file: &File, offset: usize, length: usize, access: Access) -> io::Result<Mapping> {
        let access = match access {
            Access::Read => libc::PROT_READ,
            Access::Write => libc::PROT_READ | libc::PROT_WRITE,
        };
        let (descriptor, offset) = (file.as_raw_fd(), offset as libc::off_t);
        // SAFETY: a new mapping at an address of the system's choice touches no memory of ours.
        let base = unsafe { libc::mmap(ptr::null_mut(), length, access, libc::MAP_SHARED, descriptor, offset) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base =
            NonNull::new(base.cast()).ok_or_else(|| io::Error::other("the system mapped a file at address 0"))?;
        Ok(Mapping { base, length })
    }

    /// `count` values from `offset` on. Panics when they are not inside: offsets come from checked layouts.
    /// The pointer is good as long as the mapping.
    pub fn slice<T: Shared>(&self, offset: usize, count: usize) -> NonNull<[T]> {
        let bytes = count.checked_mul(size_of::<T>()).expect("a count from a checked layout");
        assert!(offset <= self.length && bytes <= self.length - offset, "outside the mapping");
        assert!(offset.is_multiple_of(align_of::<T>()) && align_of::<T>() <= 4096, "misaligned");
        // SAFETY: the offset lies inside the mapping, as just checked.
        let first = unsafe { self.base.add(offset) };
        NonNull::slice_from_raw_parts(first.cast(), count)
    }

    /// One value at `offset`; otherwise like [`slice`](Self::slice).
    pub fn value<T: Shared>(&self, offset: usize) -> NonNull<T> {
        self.slice::<T>(offset, 1).cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `new`. Whoever kept pointers from `slice` promised not to use them
        // after this.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

/// Makes these bytes of the file be really there, so that no later access finds the disk full. A shorter file becomes
/// as long as they reach.
pub(crate) fn allocate(file: &File, bytes: Range<usize>) -> io::Result<()> {
    let offset = libc::off_t::try_from(bytes.start).map_err(io::Error::other)?;
    let length = libc::off_t::try_from(bytes.len()).map_err(io::Error::other)?;
    loop {
        // SAFETY: a plain system call on a descriptor that we hold.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), offset, length) } {
            0 => return Ok(()),
            libc::EINTR => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}
