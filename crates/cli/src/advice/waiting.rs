//! Waiting for messages where no process is to blame alone: uneven work, communication, more ranks than processors.

use std::collections::HashMap;

use tidegate_message::Counter;

use super::{Evidence, Point, of_process, percent};
use crate::recording::view::View;

/// Waiting for messages is worth a word from this part of the time on, in the mean over the processes.
const MEAN_MATTERS: f64 = 0.1;
/// Work is uneven where the one that waits most waits for so much more of its time than the one that waits least.
const UNEVEN: f64 = 0.25;

/// From this number of ranks on each processor on, that is said first.
const CROWDED: usize = 3;
/// Waits of a process that are shorter than this together are no reason to change anything, however short the run is.
pub const LEAST_NS: u64 = 100_000_000;

/// How the processes waited for messages, as parts of the time for which they were there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waiting {
    /// Over all of them.
    pub mean: f64,
    /// The most, and whose that is.
    pub most: (f64, usize),
    /// The least.
    pub least: (f64, usize),
}

impl Waiting {
    /// Of a run; `None` where nothing was measured, as in a simulation.
    #[must_use]
    pub fn of(run: &View) -> Option<Waiting> {
        if run.is_simulated() || run.processes.is_empty() {
            return None;
        }
        let shares = run.processes.iter().map(|process| process.share(Counter::WaitNanoseconds, run));
        let shares: Vec<(f64, usize)> = shares.enumerate().map(|(process, share)| (share, process)).collect();
        let mean = shares.iter().map(|(share, _)| share).sum::<f64>() / shares.len() as f64;
        let by_share = |one: &&(f64, usize), other: &&(f64, usize)| one.0.total_cmp(&other.0);
        Some(Waiting { mean, most: *shares.iter().max_by(by_share)?, least: *shares.iter().min_by(by_share)? })
    }
}

/// Processes waited for messages, and none of them for one alone.
pub fn point(run: &View) -> Option<Point> {
    let waiting = Waiting::of(run).filter(|waiting| matters(run, waiting))?;
    let label = |(_, process): (f64, usize)| run.processes[process].label.as_str();
    let (most, least, mean) = (percent(waiting.most.0), percent(waiting.least.0), percent(waiting.mean));
    let is_uneven = waiting.most.0 - waiting.least.0 >= UNEVEN;
    let evidence = vec![
        Evidence { name: "waiting for messages, mean".to_owned(), of: "job".to_owned(), value: mean.clone() },
        of_process(run, waiting.most.1, Counter::WaitNanoseconds),
        of_process(run, waiting.least.1, Counter::WaitNanoseconds),
    ];
    let processors = of_processors(run);
    let shared = crowd(run).map_or_else(String::new, |(ranks, processors)| {
        format!(" ({ranks} ranks share {processors} {})", if processors == 1 { "processor" } else { "processors" })
    });
    Some(match is_uneven {
        true => Point {
            id: "uneven",
            headline: format!(
                "work is uneven: {} waited least for messages, {least} of its time, and {} most, {most}{shared}",
                label(waiting.least),
                label(waiting.most)
            ),
            text: format!(
                "Processes waited {mean} of their time for messages in the mean, {} {most} and {} {least}: those that wait \
                 least have most to do, and the others wait for them. Flow control has no part in that.{processors}",
                label(waiting.most),
                label(waiting.least),
            ),
            options: Vec::new(),
            evidence,
        },
        false => Point {
            id: "waiting",
            headline: format!(
                "ranks waited {mean} of the time for each other's messages: none much more than the others{shared}"
            ),
            text: format!(
                "Processes waited {mean} of their time for messages in the mean, {} most with {most}, and no process is \
                 waited for most: what they wait for is communication, or each other in turns, as where now one is late and \
                 now another. Fewer and larger messages, work between a send and its receive, and even work help.{processors}",
                label(waiting.most),
            ),
            options: Vec::new(),
            evidence,
        },
    })
}

/// Whether it is worth a word.
fn matters(run: &View, waiting: &Waiting) -> bool {
    let most_ns = run.processes.iter().map(|process| process.get(Counter::WaitNanoseconds)).max().unwrap_or(0);
    waiting.mean >= MEAN_MATTERS && most_ns >= LEAST_NS
}

/// Many more ranks than processors: that explains waits, and how uneven they are.
pub fn crowded(run: &View) -> Option<Point> {
    let waiting = Waiting::of(run).filter(|waiting| matters(run, waiting))?;
    let (ranks, processors) = crowd(run).filter(|(ranks, processors)| *ranks >= CROWDED * *processors as usize)?;
    let (mean, noun) = (percent(waiting.mean), if processors == 1 { "processor" } else { "processors" });
    Some(Point {
        id: "crowded",
        headline: format!(
            "{ranks} ranks share {processors} {noun}: they waited {mean} of the time for messages in the mean"
        ),
        text: format!(
            "{ranks} ranks share {processors} {noun} here, so at any time most of them have none: what ranks waited for \
             messages, {mean} of their time in the mean, includes time for which the ranks that were to send had no \
             processor. Give each rank a processor before looking at anything else: fewer ranks here, or more hosts. Flow \
             control has no part in that."
        ),
        options: Vec::new(),
        evidence: vec![
            Evidence { name: "ranks here".to_owned(), of: "job".to_owned(), value: ranks.to_string() },
            Evidence { name: "processors".to_owned(), of: "host".to_owned(), value: processors.to_string() },
            of_process(run, waiting.most.1, Counter::WaitNanoseconds),
        ],
    })
}

/// The most processes on a host that has fewer processors than these, with the number of those, if that is known.
fn crowd(run: &View) -> Option<(usize, u32)> {
    let processors = run.facts.processors?;
    let mut of_host: HashMap<&str, usize> = HashMap::new();
    run.processes.iter().for_each(|process| *of_host.entry(&process.facts.host).or_default() += 1);
    let here = of_host.get(run.facts.host.as_str()).copied()?;
    (here > processors as usize).then_some((here, processors))
}

/// What can be told where ranks outnumber processors, as a sentence behind others; else nothing.
pub fn of_processors(run: &View) -> String {
    crowd(run).map_or_else(String::new, |(ranks, processors)| {
        format!(
            " {ranks} ranks share {processors} {} here, so what they waited includes time for which others had those.",
            if processors == 1 { "processor" } else { "processors" },
        )
    })
}
