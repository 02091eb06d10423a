//! [`Ages`]: since when what is open has been seen. Operations do not note when they begin, because that would cost a
//! look at a clock each. So whoever looks at what is open now and then remembers what it has seen, and since when.

use tidegate_flow::Instant;

/// What was seen at the last look, and since when; `K` is a name that no two operations have at two looks.
#[derive(Debug)]
pub(crate) struct Ages<K> {
    /// In order of names.
    seen: Vec<(K, Instant)>,
    /// What this look has seen so far.
    next: Vec<(K, Instant)>,
}

impl<K> Default for Ages<K> {
    fn default() -> Self {
        Ages { seen: Vec::new(), next: Vec::new() }
    }
}

impl<K: Ord + Copy> Ages<K> {
    /// Something is open. Returns since when it has been seen.
    pub(crate) fn see(&mut self, name: K, now: Instant) -> Instant {
        let since = match self.seen.binary_search_by_key(&name, |(name, _)| *name) {
            Ok(at) => self.seen[at].1,
            Err(_) => now,
        };
        self.next.push((name, since));
        since
    }

    /// The look is over. What it has not seen is open no longer.
    pub(crate) fn end_look(&mut self) {
        std::mem::swap(&mut self.seen, &mut self.next);
        self.next.clear();
        self.seen.sort_unstable_by_key(|(name, _)| *name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanoseconds: u64) -> Instant {
        Instant::from_nanos(nanoseconds)
    }

    #[test]
    fn what_is_seen_again_is_as_old_as_its_first_look() {
        let mut ages = Ages::default();
        assert_eq!((ages.see(9, at(1)), ages.see(3, at(1))), (at(1), at(1)));
        ages.end_look();
        assert_eq!((ages.see(3, at(5)), ages.see(4, at(5))), (at(1), at(5)));
        ages.end_look();
        assert_eq!(ages.see(9, at(8)), at(8), "it was gone in between");
    }
}
