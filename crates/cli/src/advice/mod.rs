//! What to change, and why: a pure function of what was recorded of a run.
//!
//! A rule is a function that looks at the numbers and says something, with the numbers that led to it, or nothing. It
//! says nothing that the numbers do not support: where they show that something waited and not how much more would be
//! enough, it says so. The rules, in the order in which they are heard:
//!
//! * `failed`: how the job failed;
//! * `ending`: what was lost, and what was not finished; [`stuck`] has the waits that went on then;
//! * `held_up`: one process for which most others waited, by the waits of each pair;
//! * `flow`: waits for credits, full mailboxes, posted buffers, by scheme;
//! * `memory`: receive memory that had no room, and receive memory that nobody used;
//! * `network`: batches that were sent again;
//! * `waiting`: waits for messages for which no process is to blame alone.
//!
//! [`next`] is the line to copy, [`blamed`] the process that pictures show from the start.

mod ending;
mod failed;
mod flow;
mod held_up;
mod memory;
mod network;
pub mod next;
pub mod stuck;
#[cfg(test)]
mod tests;
mod waiting;

use serde::Serialize;
use tidegate_message::{Counter, Unit};

use crate::recording::view::{Process, View};
use crate::report::units;
use stuck::Stuck;

pub use held_up::{HeldUp, held_up};
pub use waiting::Waiting;

/// From which share of the run's time on waiting of a process matters.
const SHARE_MATTERS: f64 = 0.02;
/// From which share of messages on something that happens to messages matters.
const MESSAGES_MATTER: f64 = 0.01;

/// What to change, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// What there is to say, the most important first; never empty.
    pub points: Vec<Point>,
    /// The waits of a hang, if the first point is about one.
    #[serde(skip)]
    pub stuck: Option<Stuck>,
}

/// One thing that there is to say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Its name for programs.
    pub id: &'static str,
    /// The same in one short sentence without a full stop, that begins with a small letter.
    pub headline: String,
    /// A few sentences.
    pub text: String,
    /// Options of `tidegate run` that are worth a try, if there are such.
    pub options: Vec<String>,
    /// The numbers that led to it.
    pub evidence: Vec<Evidence>,
}

/// A number that led to something said.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// The counter, or what else was measured.
    pub name: String,
    /// Whose.
    pub of: String,
    /// The value as people read it.
    pub value: String,
}

impl Advice {
    /// All that there is to say, as one paragraph.
    #[must_use]
    pub fn paragraph(&self) -> String {
        self.points.iter().map(|point| point.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// The options worth a try, each once.
    #[must_use]
    pub fn options(&self) -> Vec<&str> {
        options_of(self.points.iter())
    }

    /// The most important of it, in one short sentence without a full stop.
    #[must_use]
    pub fn headline(&self) -> &str {
        self.points.iter().find(|point| point.id != ending::INCOMPLETE).map_or("", |point| point.headline.as_str())
    }

    /// The same in a few words, for those who have three seconds: what comes before the first colon.
    #[must_use]
    pub fn title(&self, run: &View) -> String {
        let stuck = self.stuck.as_ref();
        stuck.map_or_else(|| few_words(self.headline()).0.to_owned(), |stuck| stuck.title(run))
    }

    /// The rest of the headline, without a full stop; empty if the title is all of it.
    #[must_use]
    pub fn subtitle(&self, run: &View) -> String {
        let stuck = self.stuck.as_ref();
        stuck.map_or_else(|| few_words(self.headline()).1.to_owned(), |stuck| stuck.extent(run))
    }

    /// Those that make the job better; not those by which it would only take less.
    #[must_use]
    pub fn changes(&self) -> Vec<&str> {
        options_of(self.points.iter().filter(|point| point.id != memory::UNUSED))
    }

    /// Whether nothing is to be said but that less memory would do.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.points.iter().all(|point| CALM.contains(&point.id))
    }

    /// Whether any of the points has this name.
    #[must_use]
    pub fn has(&self, id: &str) -> bool {
        self.points.iter().any(|point| point.id == id)
    }
}

/// The options of some points, each once. Two rules that want the same option differ in its value: the first is the
/// more important one.
fn options_of<'a>(points: impl Iterator<Item = &'a Point>) -> Vec<&'a str> {
    let mut options: Vec<&str> = Vec::new();
    let name = |option: &str| option.split(' ').next().map(str::to_owned);
    for option in points.flat_map(|point| &point.options) {
        if !options.iter().any(|other| name(other) == name(option)) {
            options.push(option);
        }
    }
    options
}

/// What to change in this run, and why.
#[must_use]
pub fn advise(run: &View) -> Advice {
    type Rule = fn(&View) -> Option<Point>;
    let first: [Rule; 4] = [failed::failed, ending::nothing_sent, ending::lost, ending::unfinished];
    let mut points: Vec<Point> = first.iter().filter_map(|rule| rule(run)).collect();
    if points.first().is_some_and(|point| point.id == failed::FAILED) {
        // It has the same reasons.
        points.retain(|point| point.id != ending::NOTHING_SENT);
    }
    if ending::died_of_the_end(run) && points.iter().any(|point| point.id == ending::UNFINISHED) {
        // What hung is the news: where a signal came for all ranks, one of them saw it later than the others.
        points.retain(|point| point.id != ending::LOST);
    }
    let held = held_up(run);
    // Where one process holds up the others, more room does not help; settings that are worse than the usual ones cost
    // all the same, and may be why it does.
    let settings: &[Rule] = match (&held, flow::has_few_slots(run)) {
        (None, false) => &[flow::credits, flow::full_mailboxes, flow::refusals, memory::no_room],
        (None, true) => &[flow::few_slots, flow::full_mailboxes, flow::refusals, memory::no_room],
        (Some(_), _) => &[flow::few_slots, flow::costly_refusals],
    };
    points.extend(settings.iter().filter_map(|rule| rule(run)));
    points.extend(held.iter().map(|held| held_up::point(run, held)));
    points.extend(network::resent(run));
    if points.is_empty() {
        points.extend(waiting::crowded(run).or_else(|| waiting::point(run)));
    }
    if points.is_empty() {
        points.push(calm(run));
    }
    // What a job that did not come to its end has used says nothing of what it needs.
    let incomplete = ending::incomplete(run);
    let says_nothing = [failed::FAILED, ending::NOTHING_SENT, ending::LOST, ending::UNFINISHED, memory::NO_ROOM];
    if incomplete.is_none() && !points.iter().any(|point| says_nothing.contains(&point.id)) {
        points.extend(memory::unused(run));
    }
    let stuck = match points.first_mut() {
        Some(first) if first.id == ending::UNFINISHED => Stuck::of(run).inspect(|stuck| first.text += stuck.remedy()),
        _ => None,
    };
    points.splice(..0, incomplete);
    Advice { points, stuck }
}

/// The process to look at first, if there is one: it is drawn from the start.
#[must_use]
pub fn blamed(run: &View, advice: &Advice) -> Option<usize> {
    let first = advice.points.iter().find(|point| point.id != ending::INCOMPLETE)?;
    match first.id {
        failed::FAILED => failed::first_dead(run),
        ending::UNFINISHED => advice.stuck.as_ref()?.blamed,
        "uneven" => Waiting::of(run).map(|waiting| waiting.least.1),
        memory::NO_ROOM => run.most(Counter::PressureNanoseconds).map(|(process, _)| process),
        _ => held_up(run).filter(|_| advice.has("late") || advice.has("held_up")).map(|held| held.process),
    }
}

/// A sentence in two: what comes before its first colon, and the rest.
fn few_words(text: &str) -> (&str, &str) {
    text.split_once(": ").unwrap_or((text, ""))
}

/// The names of points that ask for no change.
const CALM: [&str; 3] = ["nothing_waited", "little_waited", memory::UNUSED];

/// Nothing waited, or too little to matter.
fn calm(run: &View) -> Point {
    let delayed = run.job(Counter::SendsDelayed);
    let deferred = run.job(Counter::SendsDeferred);
    let refused = run.job(Counter::Refusals);
    let full = run.job(Counter::MailboxFull);
    let mut evidence: Vec<Evidence> =
        [Counter::SendsDelayed, Counter::SendsDeferred, Counter::Refusals, Counter::MailboxFull]
            .map(|counter| of_job(run, counter))
            .to_vec();
    if delayed + deferred + refused + full == 0 {
        let text = "No send waited for credits, for room or for a buffer: there is nothing to change in flow control.";
        return Point {
            id: "nothing_waited",
            headline: calm_headline(run),
            text: text.to_owned(),
            options: Vec::new(),
            evidence,
        };
    }
    let longest = run.most(Counter::DelayNanoseconds).map_or(0, |(_, most)| most);
    evidence.extend(run.most(Counter::DelayNanoseconds).map(|(at, _)| of_process(run, at, Counter::DelayNanoseconds)));
    let text = match delayed + deferred {
        0 => format!(
            "{} packets or messages were refused and sent again, too few to matter: there is nothing to change in flow \
             control.",
            count(refused + full)
        ),
        waited => format!(
            "{} waited, but no process for more than {} of the run: there is nothing to change in flow control.",
            sends(waited),
            percent(share(run, longest)),
        ),
    };
    Point { id: "little_waited", headline: calm_headline(run), text, options: Vec::new(), evidence }
}

fn calm_headline(run: &View) -> String {
    let waited = Waiting::of(run).filter(|waiting| waiting.most.0 > 0.0).map_or_else(String::new, |waiting| {
        format!(": ranks waited {} of the time for messages", percent(waiting.mean))
    });
    format!("nothing held up this job{waited}")
}

/// A time as a share of the run's.
fn share(run: &View, nanoseconds: u64) -> f64 {
    nanoseconds as f64 / run.duration_ns.max(1) as f64
}

/// A counter of the job, as evidence.
fn of_job(run: &View, counter: Counter) -> Evidence {
    let value = units::human(run.job(counter), counter.unit());
    Evidence { name: counter.name().to_owned(), of: "job".to_owned(), value }
}

/// A counter of a process, as evidence.
fn of_process(run: &View, process: usize, counter: Counter) -> Evidence {
    let process: &Process = &run.processes[process];
    let value = units::human(process.get(counter), counter.unit());
    Evidence { name: counter.name().to_owned(), of: process.label.clone(), value }
}

/// A text that begins with a capital letter.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn time(nanoseconds: u64) -> String {
    units::human(nanoseconds, Unit::Nanoseconds)
}

fn bytes(bytes: u64) -> String {
    units::human(bytes, Unit::Bytes)
}

fn count(count: u64) -> String {
    units::human(count, Unit::Count)
}

fn sends(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "send" } else { "sends" })
}

/// A share as people read it.
pub fn percent(share: f64) -> String {
    match 100.0 * share {
        0.0 => "0 %".to_owned(),
        percent if percent < 0.1 => "0.1 %".to_owned(),
        percent if percent < 10.0 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

/// Bytes as an option takes them: whole units, rounded up.
fn option_bytes(bytes: u64) -> String {
    for (unit, suffix) in [(1_u64 << 30, "G"), (1 << 20, "M"), (1 << 10, "k")] {
        // Two digits are enough, and nothing gets smaller by rounding.
        if bytes >= 10 * unit || (bytes >= unit && bytes.is_multiple_of(unit)) {
            return format!("{}{suffix}", bytes.div_ceil(unit));
        }
    }
    format!("{}k", bytes.div_ceil(1 << 10))
}

/// A few names, and how many more.
fn names<'a>(labels: impl Iterator<Item = &'a str>) -> String {
    const NAMED: usize = 4;
    let labels: Vec<&str> = labels.collect();
    match labels.as_slice() {
        [] => "nobody".to_owned(),
        [one] => (*one).to_owned(),
        some if some.len() <= NAMED => format!("{} and {}", some[..some.len() - 1].join(", "), some[some.len() - 1]),
        many => format!("{} and {} more", many[..NAMED].join(", "), many.len() - NAMED),
    }
}
