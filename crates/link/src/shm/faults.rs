//! [`Faults`]: when to try a peer's memory again in which transfers have faulted.

/// Transfers in a row that faulted in the peer's memory, so that a program all of whose memory is out of reach does not
/// try in vain each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Faults {
    in_a_row: u32,
    /// Transfers for which another way is taken untried.
    pause: u32,
}

/// Transfers between two tries at most.
const PAUSE_MOST: u32 = 64;

impl Faults {
    /// Whether to try.
    pub fn may_try(&mut self) -> bool {
        let may = self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        may
    }

    /// A transfer faulted: the first is followed by another try at once, the others by pauses that double.
    pub fn note(&mut self) {
        self.pause = ((1 << self.in_a_row.min(31)) - 1).min(PAUSE_MOST);
        self.in_a_row = self.in_a_row.saturating_add(1);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn faults_in_a_row_are_followed_by_tries_that_become_rare() {
        let tries = |faults: &mut Faults, transfers: u32| {
            (0..transfers).filter(|_| faults.may_try().then(|| faults.note()).is_some()).count()
        };
        let mut faults = Faults::default();
        assert_eq!(tries(&mut faults, 2), 2, "one says nothing about the next");
        let rare = tries(&mut faults, 10_000);
        assert!((10_000 / 70..10_000 / 60).contains(&rare), "{rare} of 10000");
        assert_eq!(tries(&mut Faults { in_a_row: u32::MAX, pause: 0 }, 65), 1);
    }
}
