//! How long to poll in vain before giving the processor away.
//!
//! When every process has a core of its own, whoever polls longest sees a packet first. When they share cores, what
//! we wait for can only be sent once we let its sender run. So: many empty polls before a yield in the first case,
//! few in the second, and from then on a yield with every empty poll, until something is found.

use std::thread;

/// Empty polls before the first yield, when the processes known to us have a core each.
const POLLS_ALONE: u32 = 2000;
/// The same, when they have not.
const POLLS_SHARED: u32 = 32;
/// Empty polls between two looks at the clock.
const POLLS_PER_LOOK: u32 = 256;

/// What to do after an empty poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Poll again.
    Spin,
    /// Poll again, after a look at the clock.
    Look,
    /// Look at the clock and yield.
    Yield,
}

/// Counts empty polls.
#[derive(Debug)]
pub(crate) struct Patience {
    empty: u32,
    limit: u32,
    /// Set by the user, so the number of peers does not matter.
    fixed: bool,
    cores: usize,
}

impl Patience {
    /// `limit`: the user's choice of empty polls before a yield.
    pub fn new(limit: Option<u32>) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Patience { empty: 0, limit: limit.unwrap_or(POLLS_ALONE), fixed: limit.is_some(), cores }
    }

    /// So many processes are known, this one included.
    pub fn share_cores_among(&mut self, processes: usize) {
        if !self.fixed {
            self.limit = if processes > self.cores { POLLS_SHARED } else { POLLS_ALONE };
        }
    }

    #[inline(always)]
    pub fn reset(&mut self) {
        self.empty = 0;
    }

    #[inline(always)]
    pub fn step(&mut self) -> Step {
        if self.empty >= self.limit {
            return Step::Yield;
        }
        self.empty += 1;
        if self.empty.is_multiple_of(POLLS_PER_LOOK) { Step::Look } else { Step::Spin }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yields_begin_at_the_limit_and_end_with_a_find() {
        let mut patience = Patience::new(Some(300));
        let steps: Vec<Step> = (0..303).map(|_| patience.step()).collect();
        assert_eq!(steps.iter().filter(|step| **step == Step::Look).count(), 1);
        assert_eq!(steps[299..], [Step::Spin, Step::Yield, Step::Yield, Step::Yield]);
        patience.reset();
        assert_eq!(patience.step(), Step::Spin);
    }

    #[test]
    fn more_processes_than_cores_make_it_short() {
        let mut patience = Patience::new(None);
        let polls = |patience: &mut Patience| {
            patience.reset();
            (0..).take_while(|_| patience.step() != Step::Yield).count()
        };
        let cores = patience.cores;
        patience.share_cores_among(cores);
        assert_eq!(polls(&mut patience), POLLS_ALONE as usize);
        patience.share_cores_among(cores + 1);
        assert_eq!(polls(&mut patience), POLLS_SHARED as usize);
        let mut chosen = Patience::new(Some(7));
        chosen.share_cores_among(cores + 1);
        assert_eq!(polls(&mut chosen), 7, "the user's word counts");
    }
}
