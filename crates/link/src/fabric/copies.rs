//! [`Copies`]: memory for messages that are carried and not acknowledged. Each peer may have a little for itself; what
//! goes beyond comes out of one amount for all peers. So bursts to a few leave at once, and bursts to all take no more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes beyond what each peer may have, for all peers together.
pub const SHARED_MOST: usize = 4 << 20;

/// See the module. Endpoints are used by one thread at a time, and may move between threads.
#[derive(Debug)]
pub struct Copies {
    left: Arc<AtomicUsize>,
}

impl Default for Copies {
    fn default() -> Copies {
        Copies::of(SHARED_MOST)
    }
}

impl Copies {
    /// Room for `bytes`.
    pub fn of(bytes: usize) -> Copies {
        Copies { left: Arc::new(AtomicUsize::new(bytes)) }
    }

    /// Takes `bytes`, until the loan is dropped. `None`: fewer are left.
    pub fn take(&self, bytes: usize) -> Option<Loan> {
        let left = self.left.load(Ordering::Relaxed).checked_sub(bytes)?;
        self.left.store(left, Ordering::Relaxed);
        Some(Loan { bytes, of: Arc::clone(&self.left) })
    }
}

/// A part of the shared amount, which goes back when this is dropped.
#[derive(Debug)]
pub struct Loan {
    bytes: usize,
    of: Arc<AtomicUsize>,
}

impl Loan {
    /// Lends a part of this on.
    pub fn split(&mut self, bytes: usize) -> Loan {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Loan { bytes, of: Arc::clone(&self.of) }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.of.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lent_comes_back_whoever_drops_it() {
        let copies = Copies::of(100);
        let mut loan = copies.take(60).unwrap();
        assert!(copies.take(41).is_none() && copies.take(40).is_some());
        let part = loan.split(50);
        drop(loan);
        assert!(copies.take(51).is_none());
        drop(part);
        assert!(copies.take(100).is_some());
    }
}
