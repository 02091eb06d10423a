//! [`Wheel`]: what is due in which cycle. A ring of lists, one for each cycle up to the longest delay there is.

/// Events by the cycle in which they are due; those of one cycle in the order in which they were added.
#[derive(Clone, Debug)]
pub(crate) struct Wheel<T> {
    lists: Vec<Vec<T>>,
}

impl<T> Wheel<T> {
    /// For delays of up to `longest` cycles.
    pub fn new(longest: u64) -> Self {
        let lists = (longest + 1).next_power_of_two();
        Wheel { lists: (0..lists).map(|_| Vec::new()).collect() }
    }

    /// Adds what is due at `at`, which lies after `now` by at most the longest delay.
    #[inline]
    pub fn add(&mut self, now: u64, at: u64, event: T) {
        debug_assert!(at > now && at - now < self.lists.len() as u64, "{at} is not within reach of {now}");
        let place = at as usize & (self.lists.len() - 1);
        self.lists[place].push(event);
    }

    /// Takes what is due now. The list goes back by [`Wheel::reuse`], so that its memory is used again.
    pub fn take(&mut self, now: u64) -> Vec<T> {
        let place = now as usize & (self.lists.len() - 1);
        std::mem::take(&mut self.lists[place])
    }

    /// Gives a list back that [`Wheel::take`] lent.
    pub fn reuse(&mut self, now: u64, mut list: Vec<T>) {
        list.clear();
        let place = now as usize & (self.lists.len() - 1);
        debug_assert!(self.lists[place].is_empty());
        self.lists[place] = list;
    }

    /// All that is due at some time.
    #[cfg(test)]
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.lists.iter().flatten()
    }
}
