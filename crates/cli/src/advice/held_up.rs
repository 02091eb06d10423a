//! One process for which most others waited.

use tidegate_message::Counter;

use super::{Evidence, Point, SHARE_MATTERS, of_process, percent, share, time};
use crate::recording::rows::words;
use crate::recording::view::{View, Wait};
use tidegate_link::stats::WaitCause;

/// A process holds up the others if at least this share of all waiting was for it …
const SHARE_OF_WAITING: f64 = 0.5;
/// … in a job of two, where half of it is nothing special, this share …
const SHARE_OF_TWO: f64 = 0.8;
/// … and if it waited itself for at most this share of what the others waited for it, each in the mean.
const OWN_WAITING_MOST: f64 = 0.5;

/// A process that held up others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldUp {
    /// Its number.
    pub process: usize,
    /// How many processes waited for it.
    pub waiters: usize,
    /// How long they did, together, in nanoseconds.
    pub waited_ns: u64,
    /// Which share of all waiting of the job that is.
    pub share: f64,
    /// How long it waited itself.
    pub own_ns: u64,
    /// What most of that time was waited for.
    pub cause: WaitCause,
}

/// The process for which most others waited, if one stands out that did not wait for somebody else itself.
#[must_use]
pub fn held_up(run: &View) -> Option<HeldUp> {
    let number = run.processes.len();
    let mut waited_for = vec![0_u64; number];
    let mut own = vec![0_u64; number];
    let between = |wait: &&Wait| wait.to.is_some_and(|to| to != wait.from);
    for wait in run.waits.iter().filter(between) {
        let to = wait.to?;
        waited_for[to] = waited_for[to].saturating_add(wait.waited_ns);
        own[wait.from] = own[wait.from].saturating_add(wait.waited_ns);
    }
    let all: u64 = run.waits.iter().map(|wait| wait.waited_ns).fold(0, u64::saturating_add);
    let (process, waited_ns) = waited_for.iter().copied().enumerate().max_by_key(|(_, waited)| *waited)?;
    let for_it =
        || run.waits.iter().filter(|wait| wait.to == Some(process) && wait.from != process && wait.waited_ns > 0);
    let mut waiters: Vec<usize> = for_it().map(|wait| wait.from).collect();
    waiters.sort_unstable();
    waiters.dedup();
    let cause = for_it().max_by_key(|wait| wait.waited_ns)?.cause;
    let (waiters, own_ns) = (waiters.len(), own[process]);
    let share_of_all = waited_ns as f64 / all.max(1) as f64;
    let least = if number == 2 { SHARE_OF_TWO } else { SHARE_OF_WAITING };
    let mean = waited_ns as f64 / waiters.max(1) as f64;
    let stands_out =
        share_of_all >= least && share(run, mean as u64) >= SHARE_MATTERS && own_ns as f64 <= OWN_WAITING_MOST * mean;
    stands_out.then_some(HeldUp { process, waiters, waited_ns, share: share_of_all, own_ns, cause })
}

/// Says so.
pub fn point(run: &View) -> Option<Point> {
    let held = held_up(run)?;
    let label = &run.processes[held.process].label;
    let who = match (held.waiters, run.processes.len() - 1) {
        (1, _) => "one process waited".to_owned(),
        (waiters, others) if waiters == others => format!("all {others} others waited"),
        (waiters, others) => format!("{waiters} of the {others} others waited"),
    };
    let own = match held.own_ns {
        0 => "did not wait for anybody".to_owned(),
        own => format!("waited {} for others", time(own)),
    };
    let text = format!(
        "{} held up the others: {who} for it, mostly for {}, {} together, which is {} of all waiting in the job, while it \
         {own} itself. So look first at what {label} does between its receives, or why all send to it at once; a setting \
         of flow control lets the others run further ahead of it and does not make it faster.",
        capital(label),
        words(held.cause),
        time(held.waited_ns),
        percent(held.share),
    );
    let waited =
        Evidence { name: format!("waited for {label}"), of: "all others".to_owned(), value: time(held.waited_ns) };
    let own = Evidence { name: "waited for others".to_owned(), of: label.clone(), value: time(held.own_ns) };
    let evidence = vec![waited, own, of_process(run, held.process, Counter::MailboxPeak)];
    Some(Point { id: "held_up", text, options: Vec::new(), evidence })
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
