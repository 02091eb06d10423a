//! [`Register`]: posted receives by something other than their order.

use super::waiting::Posted;
use crate::collections::list::{Ordered, Position};
use crate::collections::steps;
use crate::envelope::Number;
use std::collections::BTreeMap;

/// Posted receives by something other than their order: by whatever number the caller knows them by, those with the
/// same number in order of posting.
///
/// It does not hear of receives that are posted or gone. Before a search it adds those beyond the last that it has
/// seen, which are the end of the list, and a search drops the entries that it meets whose receives are gone.
#[derive(Default)]
pub(super) struct Register {
    pub(super) entries: BTreeMap<(usize, Number), Position>,
    /// All receives up to this one are entered.
    until: Number,
    /// Entries when it was last made from nothing.
    begun_with: usize,
}

impl Register {
    /// Entries that may be out of date before all are thrown away, as many as there were at the beginning apart.
    const SLACK: usize = 64;

    pub(super) fn catch_up<B>(&mut self, list: &Ordered<Posted<B>>, key_of: impl Fn(&Posted<B>) -> usize) {
        let anew = self.entries.len() > 2 * self.begun_with + Self::SLACK;
        if anew {
            *self = Register::default();
        }
        let mut at = list.last();
        while let Some((here, posted)) = at.and_then(|here| Some((here, list.get(here)?)))
            && posted.number > self.until
        {
            steps::count();
            self.entries.insert((key_of(posted), posted.number), here);
            at = list.before(here);
        }
        if let Some(last) = list.last().and_then(|last| list.get(last)) {
            self.until = last.number;
        }
        if anew {
            self.begun_with = self.entries.len();
        }
    }

    /// The first receive beyond `after` that is known by `key`.
    pub(super) fn first<B>(
        &mut self,
        list: &Ordered<Posted<B>>,
        key: usize,
        after: Number,
    ) -> Option<(Number, Position)> {
        loop {
            steps::count();
            let later = (key, Number(after.0 + 1))..=(key, Number(u64::MAX));
            let (&(_, number), &at) = self.entries.range(later).next()?;
            if list.get(at).is_some_and(|posted| posted.number == number) {
                return Some((number, at));
            }
            self.entries.remove(&(key, number));
        }
    }
}
