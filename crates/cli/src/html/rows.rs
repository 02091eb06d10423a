//! [`Row`]: which processes get a row of their own on the page, and which share one.
//!
//! All have one each in jobs of up to `ROWS` processes. In larger ones neighbours share rows, except for those that
//! stand out: for whom others waited longest, who waited longest, who had no room, and whose memory was largest.

use tidegate_message::Counter;

use crate::recording::view::View;

/// Processes up to which all have rows of their own, and rows of a larger job without those that stand out.
const ROWS: usize = 96;
const ROWS_OF_MANY: usize = 64;
/// How many processes stand out by each measure, at most.
const STANDING_OUT: usize = 5;

/// One row: a process, or neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// As people call it.
    pub label: String,
    /// The numbers of its processes, which follow each other.
    pub members: std::ops::Range<usize>,
}

/// The rows of a run, in order; each process is in one.
/// `first`: the process to look at first, which stands out.
#[must_use]
pub fn rows(run: &View, first: Option<usize>) -> Vec<Row> {
    let number = run.processes.len();
    if number <= ROWS {
        return (0..number).map(|process| row(run, process..process + 1)).collect();
    }
    let mut alone = standing_out(run);
    alone.extend(first);
    let size = number.div_ceil(ROWS_OF_MANY);
    let mut rows = Vec::new();
    let mut begin = 0;
    for process in 0..number {
        let is_alone = alone.contains(&process);
        if begin < process && (is_alone || process % size == 0) {
            rows.push(row(run, begin..process));
            begin = process;
        }
        if is_alone {
            rows.push(row(run, process..process + 1));
            begin = process + 1;
        }
    }
    if begin < number {
        rows.push(row(run, begin..number));
    }
    rows
}

/// The processes that have rows of their own.
fn standing_out(run: &View) -> Vec<usize> {
    let number = run.processes.len();
    let mut waited_for = vec![0_u64; number];
    for wait in &run.waits {
        if let Some(to) = wait.to {
            waited_for[to] = waited_for[to].saturating_add(wait.waited_ns);
        }
    }
    let of = |counter| run.processes.iter().map(|process| process.get(counter)).collect();
    let measures: [Vec<u64>; 4] =
        [waited_for, of(Counter::DelayNanoseconds), of(Counter::PressureNanoseconds), of(Counter::ReceivePeak)];
    let mut alone = Vec::new();
    for measure in measures {
        let mut order: Vec<usize> = (0..number).filter(|process| measure[*process] > 0).collect();
        order.sort_by_key(|process| std::cmp::Reverse(measure[*process]));
        alone.extend(order.into_iter().take(STANDING_OUT));
    }
    alone
}

fn row(run: &View, members: std::ops::Range<usize>) -> Row {
    let label = |process: usize| run.processes[process].label.clone();
    let ranks = [members.start, members.end - 1].map(|process| run.processes[process].rank);
    let label = match (members.len(), ranks) {
        (1, _) => label(members.start),
        (_, [Some(first), Some(last)]) if first < last => format!("ranks {first}–{last}"),
        (many, _) => format!("{} and {} more", label(members.start), many - 1),
    };
    Row { label, members }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::testing::{Made, values};
    use tidegate_link::stats::WaitCause;

    #[test]
    fn few_processes_have_rows_of_their_own() {
        let view = Made::new(4).view(&vec![values(&[]); 4]);
        let labels: Vec<String> = rows(&view, None).into_iter().map(|row| row.label).collect();
        assert_eq!(labels, ["rank 0", "rank 1", "rank 2", "rank 3"]);
    }

    #[test]
    fn of_many_neighbours_share_rows_and_those_that_stand_out_do_not() {
        let mut made = Made::new(1024);
        made.wait(7, 500, WaitCause::Credits, 3.0);
        let mut all = vec![values(&[]); 1024];
        all[1023] = values(&[(Counter::DelayNanoseconds, 5)]);
        let view = made.view(&all);
        let rows = rows(&view, Some(3));
        assert!((64..=64 + 3 * 20).contains(&rows.len()), "{}", rows.len());
        // Every process is in one row, in order.
        let members: Vec<usize> = rows.iter().flat_map(|row| row.members.clone()).collect();
        assert_eq!(members, (0..1024).collect::<Vec<_>>());
        let labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
        for label in
            ["rank 3", "ranks 4–15", "ranks 496–499", "rank 500", "ranks 501–511", "ranks 1008–1022", "rank 1023"]
        {
            assert!(labels.contains(&label), "{label}: {labels:?}");
        }
    }
}
