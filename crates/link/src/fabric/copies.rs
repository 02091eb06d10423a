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

    /// A part of it, of no bytes so far.
    pub fn lend(&self) -> Loan {
        Loan { bytes: 0, of: Arc::clone(&self.left) }
    }
}

/// A part of the shared amount, which goes back when this is dropped.
#[derive(Debug)]
pub struct Loan {
    bytes: usize,
    of: Arc<AtomicUsize>,
}

impl Loan {
    /// Makes it so large. `false`: not enough is left, and it stays as it is.
    pub fn resize(&mut self, bytes: usize) -> bool {
        let left = self.of.load(Ordering::Relaxed) + self.bytes;
        let is_enough = bytes <= left;
        if is_enough {
            self.of.store(left - bytes, Ordering::Relaxed);
            self.bytes = bytes;
        }
        is_enough
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lent_comes_back_whoever_drops_it() {
        let copies = Copies::of(100);
        let (mut one, mut other) = (copies.lend(), copies.lend());
        assert!(one.resize(60) && !other.resize(41) && other.resize(40));
        assert!(!one.resize(61) && one.resize(10) && !other.resize(91), "it has 10 still");
        drop(one);
        assert!(!other.resize(101) && other.resize(100));
        drop(other);
        assert!(copies.lend().resize(100));
    }
}
