//! One process for which most others waited, because it is late with its messages or receives too slowly: that at which
//! most chains of waits end, as `tidegate top` finds it.

use std::collections::HashMap;

use tidegate_message::Counter;

use super::{Evidence, Point, capital, memory, of_process, percent, time, waiting};
use crate::culprit::{self, Doing, End, Member, Presence, Waits};
use crate::recording::rows::words;
use crate::recording::view::{View, Wait};
use tidegate_link::stats::WaitCause;

/// A process holds up the others if at least this share of all waiting was for it, or for those that waited for it …
const SHARE_OF_WAITING: f64 = 0.5;
/// … and in a job of two, where half of it is nothing special, this share.
const SHARE_OF_TWO: f64 = 0.8;
/// A process that waits for it during less than this part of its waiting waits by way of others.
const DIRECT_LEAST: f64 = 0.1;
/// One that is late is waited for during at least this part of the time: messages take time, too …
const LATE_LEAST: f64 = 0.1;
/// … and waits itself for at most this part of what others wait for it.
const OWN_MOST: f64 = 0.5;

/// A process that held up others.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldUp {
    /// Its number.
    pub process: usize,
    /// Those that waited for it, by themselves or by way of others.
    pub waiters: Vec<usize>,
    /// How many of them did by themselves.
    pub direct: usize,
    /// How long they waited for it and for each other, together, in nanoseconds.
    pub waited_ns: u64,
    /// Which share of all waiting of the job that is.
    pub share: f64,
    /// The largest part of the time that one of them waited.
    pub most: f64,
    /// How long it waited itself.
    pub own_ns: u64,
    /// What most of those waited for that waited for it by themselves.
    pub cause: WaitCause,
}

impl HeldUp {
    /// Whether the others waited for messages of it, and not for it to receive.
    #[must_use]
    pub fn is_late(&self) -> bool {
        !self.cause.is_of_sends()
    }
}

/// The process at which the chains of waits of the whole run end, if it is one, and most waiting is in them.
#[must_use]
pub fn held_up(run: &View) -> Option<HeldUp> {
    let finding = culprit::find(&waits_of(run));
    let root = finding.roots.first()?;
    let &End::Rank(process) = &root.end else { return None };
    let is_held = |process: usize| root.held.binary_search(&process).is_ok();
    let sum = |counts: &dyn Fn(&Wait) -> bool| {
        let counted = run.waits.iter().filter(|wait| counts(wait));
        counted.map(|wait| wait.waited_ns).fold(0, u64::saturating_add)
    };
    let mut of_pair: HashMap<(usize, Option<usize>), u64> = HashMap::new();
    let mut of_waiter = vec![0_u64; run.processes.len()];
    for wait in &run.waits {
        for waited in [of_pair.entry((wait.from, wait.to)).or_default(), &mut of_waiter[wait.from]] {
            *waited = waited.saturating_add(wait.waited_ns);
        }
    }
    let of_pair = |from: usize, to: usize| of_pair.get(&(from, Some(to))).copied().unwrap_or(0);
    // Two that wait for each other do not do so because of a third.
    let is_mutual = |from: usize, to: usize| of_pair(to, from) >= of_pair(from, to) / 2;
    let in_chains = |wait: &Wait| match wait.to {
        Some(to) => is_held(wait.from) && (to == process || is_held(to) && !is_mutual(wait.from, to)),
        None => false,
    };
    let (waited_ns, all) = (sum(&in_chains), sum(&|_| true));
    let share = waited_ns as f64 / all.max(1) as f64;
    let least = if run.processes.len() == 2 { SHARE_OF_TWO } else { SHARE_OF_WAITING };
    let waits_directly = |waiter: &&usize| {
        let by_itself = of_pair(**waiter, process);
        by_itself > 0 && by_itself as f64 >= DIRECT_LEAST * of_waiter[**waiter] as f64
    };
    let held = HeldUp {
        process,
        direct: root.held.iter().filter(waits_directly).count(),
        waiters: root.held.clone(),
        waited_ns,
        share,
        most: root.share,
        own_ns: sum(&|wait| wait.from == process && wait.to != Some(process)),
        cause: root.cause,
    };
    let matters = !held.is_late() || {
        let own = run.processes[process].share(Counter::WaitNanoseconds, run);
        // Where one of many waits for it, something else held up the others.
        let is_of_most = 2 * held.waiters.len() >= run.processes.len() - 1;
        is_of_most && held.most >= LATE_LEAST && own <= OWN_MOST * held.most
    };
    let each_ns = waited_ns / held.waiters.len().max(1) as u64;
    (share >= least && matters && is_long(run, each_ns)).then_some(held)
}

/// Whether this much waiting of each is worth a word: of a job that does nothing a large part is waits of `MPI_Init`.
fn is_long(run: &View, waited_ns: u64) -> bool {
    run.is_simulated() || waited_ns >= waiting::LEAST_NS
}

/// All waits, as parts of the time for which the waiting process was there.
fn waits_of(run: &View) -> Waits {
    let member = |name: &str| Member {
        name: name.to_owned(),
        presence: Presence::Here,
        doing: Doing::Unknown,
        moves: true,
        any: None,
        unmatched: Vec::new(),
    };
    let wait = |wait: &Wait| {
        Some(culprit::Wait {
            waiter: wait.from,
            awaited: wait.to?,
            cause: wait.cause,
            share: run.processes[wait.from].part(wait.waited_ns, run),
            open_for: None,
            receive: None,
        })
    };
    Waits {
        members: run.processes.iter().map(|process| member(&process.label)).collect(),
        waits: run.waits.iter().filter_map(wait).collect(),
    }
}

/// Says so.
pub fn point(run: &View, held: &HeldUp) -> Point {
    if held.is_late() { late(run, held) } else { slow(run, held) }
}

/// "all 3 others waited", "2 of the 3 others waited".
fn who(run: &View, held: &HeldUp) -> String {
    match (held.waiters.len(), run.processes.len() - 1) {
        (1, 1) => "the other one waited".to_owned(),
        (1, others) => format!("one of the {others} others waited"),
        (waiters, others) if waiters == others => format!("all {others} others waited"),
        (waiters, others) => format!("{waiters} of the {others} others waited"),
    }
}

fn by_way(held: &HeldUp) -> String {
    match held.waiters.len() - held.direct {
        0 => "for it".to_owned(),
        1 => "for it, one of them by way of others".to_owned(),
        many => format!("for it, {many} of them by way of others"),
    }
}

/// It sends later than the others need it.
fn late(run: &View, held: &HeldUp) -> Point {
    let process = &run.processes[held.process];
    let (label, who, most) = (&process.label, who(run, held), percent(held.most));
    let own = percent(process.share(Counter::WaitNanoseconds, run));
    let text = format!(
        "{} was late: {who} {}, up to {most} of the time, {} together, while it waited {own} of the time itself. Look at \
         what {label} does more than the others, or slower: more work, input and output, a slower or shared processor. No \
         setting of flow control helps against that.{}",
        capital(label),
        by_way(held),
        time(held.waited_ns),
        waiting::of_processors(run),
    );
    let evidence = vec![
        Evidence { name: format!("waited for {label}"), of: "all others".to_owned(), value: time(held.waited_ns) },
        of_process(run, held.process, Counter::WaitNanoseconds),
    ];
    let headline = format!("{label} is late: {who} for its messages, up to {most} of the time");
    Point { id: "late", headline, text, options: Vec::new(), evidence }
}

/// It receives more slowly than the others send.
fn slow(run: &View, held: &HeldUp) -> Point {
    let label = &run.processes[held.process].label;
    let (who, by_way) = (who(run, held), by_way(held));
    let own = match held.own_ns {
        0 => "did not wait for anybody".to_owned(),
        own => format!("waited {} for others", time(own)),
    };
    let text = format!(
        "{} held up the others: {who} {by_way}, mostly for {}, {} together, which is {} of all waiting in the job, while \
         it {own} itself. So look first at what {label} does between its receives, or why all send to it at once: more \
         room only lets the others run further ahead of it.",
        capital(label),
        words(held.cause),
        time(held.waited_ns),
        percent(held.share),
    );
    let waited =
        Evidence { name: format!("waited for {label}"), of: "all others".to_owned(), value: time(held.waited_ns) };
    let own = Evidence { name: "waited for others".to_owned(), of: label.clone(), value: time(held.own_ns) };
    let evidence = vec![waited, own, of_process(run, held.process, Counter::MailboxPeak)];
    let room = match held.cause {
        WaitCause::Window => format!(" ({})", memory::full_room(run, held.process)),
        _ => String::new(),
    };
    let (most, cause) = (percent(held.most), words(held.cause));
    let headline = format!("{label} receives too slowly: {who}, up to {most} of the time, for {cause}{room}");
    Point { id: "held_up", headline, text, options: Vec::new(), evidence }
}
