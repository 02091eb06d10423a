//! One part of the runs of experiments, where several processes divide them ([`Part`]).

use std::thread;

use tidegate_cli::part::Part;
use tidegate_cli::progress::Source;
use tidegate_sim::SimulationError;

use super::{Item, Workshop};
use crate::experiment::Experiment;

impl Workshop<'_> {
    /// Does the runs of one part of these experiments, and returns how many of them all are not there yet. Where that
    /// is none, [`reports`](Self::reports) runs nothing more. `None`: another part is to look after that, because all
    /// of them run at the same time.
    ///
    /// # Errors
    /// If a run fails that is this part's to report.
    pub fn do_part(&self, experiments: &[&'static Experiment], part: &Part) -> Result<Option<usize>, SimulationError> {
        let cases = self.plan(experiments).map_err(|error| SimulationError::Setup(error.to_string()))?;
        self.state().part = Some(part.clone());
        self.enqueue(&cases);
        self.say_how_long();
        let own = self.do_pending();
        self.state().part = None;
        if part.helps() {
            // A run that fails fails in the first part too.
            let left = self.take_kept_of_others();
            self.progress.expect(left.len());
            let mut state = self.state();
            state.leaves_claimed = !part.waits_for_all();
            // From the end on, where their owners come last.
            state.pending = left.into_iter().rev().collect();
            drop(state);
            let helped = self.do_pending();
            self.state().leaves_claimed = false;
            return if part.waits_for_all() { own.and(helped).map(|()| Some(0)) } else { Ok(None) };
        }
        own.map(|()| Some(self.take_kept_of_others().len()))
    }

    /// The runs of other parts that are not kept; the others have ended with that.
    fn take_kept_of_others(&self) -> Vec<Item> {
        let mut left = std::mem::take(&mut self.state().of_others);
        left.retain(|item| match self.store.load(&item.key) {
            Some(run) => {
                self.progress.expect(1);
                self.finish(item, run, Source::Kept);
                false
            }
            None => true,
        });
        left
    }

    /// Does all runs that are pending.
    fn do_pending(&self) -> Result<(), SimulationError> {
        thread::scope(|scope| (0..self.jobs).for_each(|_| drop(scope.spawn(|| self.work()))));
        self.state().failed.take().map_or(Ok(()), Err)
    }
}
