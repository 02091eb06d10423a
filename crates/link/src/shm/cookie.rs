//! [`Cookie`]: by what a peer knows that the memory which it reaches is ours (see `bulk`).

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

/// A random number, where peers try to read it. A child that is forked from us finds zeros there: its memory is a copy,
/// and not ours.
#[derive(Debug)]
pub(crate) struct Cookie(pub(super) NonNull<AtomicU64>);

const COOKIE_PAGE: usize = 4096;

impl Cookie {
    pub fn new(number: u64) -> io::Result<Cookie> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the system's choice touches no memory of ours.
        let page = unsafe { libc::mmap(ptr::null_mut(), COOKIE_PAGE, access, kind, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // Linux before 4.14 does not know `MADV_WIPEONFORK`. A child's copy then passes for our memory, but only if the
        // child also gets our process id. SAFETY: the page is ours.
        unsafe { libc::madvise(page, COOKIE_PAGE, libc::MADV_WIPEONFORK) };
        let page = NonNull::new(page.cast::<AtomicU64>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: the page is mapped, aligned, and shared with nobody yet.
        unsafe { page.as_ref() }.store(number, Ordering::Relaxed);
        Ok(Cookie(page))
    }

    pub fn address(&self) -> u64 {
        self.0.as_ptr() as u64
    }

    /// The number.
    pub fn value(&self) -> u64 {
        // SAFETY: the page is mapped as long as this lives.
        unsafe { self.0.as_ref() }.load(Ordering::Relaxed)
    }
}

impl Drop for Cookie {
    fn drop(&mut self) {
        // SAFETY: the page mapped in `new`; nobody here keeps a reference to it.
        unsafe { libc::munmap(self.0.as_ptr().cast(), COOKIE_PAGE) };
    }
}
