//! Threads end with what they work for, and a panic of one of them ends all.

use std::thread;

use tidegate_sim::SimulationError;

use super::Workshop;

/// Ends the threads of a workshop once they have finished what they are doing.
pub(super) struct Closing<'a>(pub &'a Workshop<'a>);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_open = false;
        state.pending.clear();
        drop(state);
        self.0.changed.notify_all();
    }
}

/// Tells who waits for a thread's runs that the thread has panicked.
pub(super) struct Watch<'a>(pub &'a Workshop<'a>);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail(SimulationError::Setup("a run panicked".to_owned()));
        }
    }
}
