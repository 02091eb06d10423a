//! Phases: part of the job works, the rest waits in a barrier, then another part (P §5.5, §7.3).

use std::ops::Range;
use std::rc::Rc;

use super::collective::{Alltoall, Barrier, alltoall, barrier};
use crate::flight::Rank;
use crate::workload::Communicator;

/// One phase: the first ranks of the job do all-to-alls, everybody else waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// How many ranks.
    pub active: u32,
    /// How many all-to-alls.
    pub operations: u32,
}

/// Phases one after the other, each ended by a barrier of the whole job.
///
/// Recorded are, with the number of the operation, counted through all phases, as index: `alltoall`, its time in
/// microseconds, by every active rank.
#[derive(Clone, Debug)]
pub struct Phases {
    /// The phases.
    pub phases: Rc<[Phase]>,
    /// Bytes of a block.
    pub block: u64,
    /// How all-to-alls are done.
    pub form: Alltoall,
    /// Ranges of ranks; rank 0 records after each operation the credits that it holds towards them: `credits minimum`,
    /// `credits median`, `credits maximum`, with index operation × ranges + range.
    pub watched: Rc<[Range<u32>]>,
}

impl Phases {
    /// Runs the part of one process.
    pub async fn run(&self, world: &Communicator) {
        let task = world.task();
        let largest = self.phases.iter().map(|phase| phase.active).max().unwrap_or(0);
        let bytes = self.block * u64::from(largest);
        let (out, into) = (task.allocate(bytes), task.allocate(bytes));
        let mut operation = 0;
        for (number, phase) in self.phases.iter().enumerate() {
            let group = Communicator::range(task, 1 + number as u32, 0, phase.active);
            for _ in 0..phase.operations {
                if let Some(group) = &group {
                    let begin = task.now();
                    alltoall(group, self.form, out, into, self.block).await;
                    task.record("alltoall", operation, task.now().since(begin).microseconds());
                    self.watch(world, operation).await;
                }
                operation += 1;
            }
            barrier(world, Barrier::Dissemination).await;
        }
    }

    async fn watch(&self, world: &Communicator, operation: u64) {
        let task = world.task();
        if task.rank() != Rank(0) {
            return;
        }
        for (number, range) in self.watched.iter().enumerate() {
            let mut credits = Vec::with_capacity(range.len());
            for rank in range.clone() {
                credits.push(task.credits(Rank(rank)).await);
            }
            credits.sort_unstable();
            let index = operation * self.watched.len() as u64 + number as u64;
            let (Some(first), Some(last)) = (credits.first(), credits.last()) else { continue };
            task.record("credits minimum", index, f64::from(*first));
            task.record("credits median", index, f64::from(credits[credits.len() / 2]));
            task.record("credits maximum", index, f64::from(*last));
        }
    }
}
