//! [`Graph`]: the operations of one rank, and what each of them waits for.

use std::collections::{HashMap, VecDeque};

use crate::workload::RecordedOperation;

/// An operation of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    pub action: RecordedOperation,
    /// Where the trace has it, counted from 1.
    pub line: usize,
    /// How many beginnings or ends of other operations it still waits for.
    pub needs: u32,
    /// Operations that need this one to have begun, and to have ended.
    pub after_begin: Vec<u32>,
    pub after_end: Vec<u32>,
}

/// The part of another operation that an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// That it has begun.
    Irequires,
    /// That it has ended.
    Requires,
}

/// The operations of the rank that is being read, and their labels.
#[derive(Default)]
pub struct Graph<'a> {
    operations: Vec<Operation>,
    labels: HashMap<&'a str, u32>,
}

impl<'a> Graph<'a> {
    /// Adds an operation, unless its label is there already. Returns whether it did.
    pub fn add(&mut self, label: Option<&'a str>, action: RecordedOperation, line: usize) -> bool {
        if let Some(label) = label
            && self.labels.insert(label, self.operations.len() as u32).is_some()
        {
            return false;
        }
        self.operations.push(Operation { action, line, needs: 0, after_begin: Vec::new(), after_end: Vec::new() });
        true
    }

    /// Which operation a label names.
    pub fn find(&self, label: &str) -> Option<u32> {
        self.labels.get(label).copied()
    }

    /// One operation waits for another.
    pub fn relate(&mut self, waiting: u32, relation: Relation, needed: u32) {
        self.operations[waiting as usize].needs += 1;
        let needed = &mut self.operations[needed as usize];
        match relation {
            Relation::Requires => needed.after_end.push(waiting),
            Relation::Irequires => needed.after_begin.push(waiting),
        }
    }

    /// The operations, if all of them can begin. `Err`: the line of one that waits in a circle, or for one that does.
    pub fn finish(self) -> Result<Vec<Operation>, usize> {
        let mut needs: Vec<u32> = self.operations.iter().map(|operation| operation.needs).collect();
        let mut ready: VecDeque<u32> = (0..needs.len() as u32).filter(|&at| needs[at as usize] == 0).collect();
        while let Some(at) = ready.pop_front() {
            let operation = &self.operations[at as usize];
            release(&operation.after_begin, &mut needs, &mut ready);
            release(&operation.after_end, &mut needs, &mut ready);
        }
        match needs.iter().position(|needs| *needs > 0) {
            Some(at) => Err(self.operations[at].line),
            None => Ok(self.operations),
        }
    }
}

/// An event has happened that these operations wait for. Those that wait for no other one become ready.
pub fn release(waiting: &[u32], needs: &mut [u32], ready: &mut VecDeque<u32>) {
    for &at in waiting {
        needs[at as usize] -= 1;
        if needs[at as usize] == 0 {
            ready.push_back(at);
        }
    }
}
