//! What is shown of a job: two looks at it as rates, states, and who waits for whom. Screen, text and JSON are all made
//! from this.

use std::time::Duration;

use tidegate_message::Counter;

use crate::culprit::{self, Doing, Finding, Presence, Wait, Waits, cause_word};
use crate::jobs::FoundJob;
use crate::jobs::slurm::SlurmJob;
use crate::top::look::{Look, Seen};
use crate::top::page::{Page, tag_in_words};
use crate::top::state::{Between, State};
use crate::top::waits::{self, by_identity, places};
use tidegate_link::plain;
use tidegate_message::WaitCause;

/// A job as it was between two looks.
#[derive(Clone, Debug)]
pub struct JobView {
    /// What to call it, as the command line takes it.
    pub id: String,
    /// The user that it belongs to, by name; `None`: this one.
    pub user: Option<String>,
    /// The job of Slurm that it is, if it is one.
    pub slurm: Option<SlurmJob>,
    /// What it runs.
    pub command: String,
    /// The id of its MPI, if known.
    pub mpi: Option<String>,
    /// How it was set up, in words: that of its first process.
    pub setup: String,
    /// The host of its run, if known.
    pub host: String,
    /// Whether its run goes on; `None`: not known.
    pub is_running: Option<bool>,
    /// Whether it was there at an earlier look and is not now.
    pub has_ended: bool,
    /// How long it has run, if known.
    pub runs_for: Option<Duration>,
    /// When it was looked at, since the epoch.
    pub at: Duration,
    /// The time between the looks; `None`: there was one only.
    pub span: Option<Duration>,
    /// How many ranks it has, where its processes know, else as many as there are.
    pub size: usize,
    /// Its processes, in order of rank.
    pub rows: Vec<Row>,
    /// Who waits for whom. Members are the processes, in this order.
    pub waits: Waits,
    /// Who holds up the others.
    pub finding: Finding,
    /// That in words.
    pub sentence: String,
    /// What went wrong with the last look.
    pub trouble: Option<String>,
}

/// A process of a job.
#[derive(Clone, Debug)]
pub struct Row {
    /// What to call it: "rank 3".
    pub name: String,
    /// Its rank, if known.
    pub rank: Option<u32>,
    /// Its process.
    pub pid: u32,
    /// Its host; empty if unknown.
    pub host: String,
    /// Its program.
    pub program: String,
    /// How its endpoint was set up.
    pub setup: String,
    /// Where it is.
    pub presence: Presence,
    /// What it does meanwhile.
    pub doing: Doing,
    /// Its state most of the time, in one word.
    pub state: State,
    /// Which part of the time it would have run and had no processor, if its system tells.
    pub queued: Option<f64>,
    /// Its place among those that are to blame, as the sentence counts them: 0 is the one that it names.
    pub blame: Option<usize>,
    /// Changes per second; `None` on a first look.
    pub rates: Option<Rates>,
    /// For whom it waits most.
    pub wait: Option<RowWait>,
    /// How many ranks wait for it directly.
    pub awaited_by: usize,
    /// Its receive memory.
    pub memory: Memory,
    /// The oldest receive that it has posted, and how many there are in all.
    pub receive: Oldest,
    /// The oldest send that it has not finished.
    pub send: Oldest,
    /// The oldest message that no receive of it has accepted.
    pub unexpected: Oldest,
    /// All that is open, in words, oldest first: receives, sends, messages.
    pub open: Vec<String>,
    /// Each counter, and its change per second.
    pub counters: Vec<(u64, Option<f64>)>,
}

/// Changes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Messages sent.
    pub messages: f64,
    /// Bytes of messages sent.
    pub sent: f64,
    /// Bytes of messages delivered.
    pub received: f64,
    /// Messages and packets refused: no posted buffer, or a full mailbox.
    pub refused: f64,
    /// Batches sent to other hosts again.
    pub resent: f64,
}

/// For whom a process waits most.
#[derive(Clone, Debug, PartialEq)]
pub struct RowWait {
    /// The place of the other among the rows.
    pub awaited: usize,
    /// For what.
    pub cause: WaitCause,
    /// Part of the time, all its waits for that process together.
    pub share: f64,
    /// How long the longest has lasted that goes on.
    pub open_for: Option<Duration>,
}

/// Receive memory of the endpoint that has most of its bound in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes in use now, with the fixed part.
    pub held: u64,
    /// Most that were.
    pub peak: u64,
    /// The bound.
    pub bound: u64,
}

impl Memory {
    /// Which part of the bound is in use.
    pub fn share(self) -> f64 {
        if self.bound == 0 { 0.0 } else { self.held as f64 / self.bound as f64 }
    }
}

/// The oldest operation of a kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Oldest {
    /// In words, with its age, if there is one.
    pub text: Option<(String, Duration)>,
    /// How many there are.
    pub in_all: u64,
}

impl JobView {
    /// What two looks show. `launch` tells the launches of one script apart.
    pub fn new(found: &FoundJob, launch: Option<usize>, before: Option<&Look>, now: &Look) -> Self {
        let told = found.description.as_ref();
        let first = now.processes.first().map(Seen::first);
        // A script may launch by another MPI than the command line shows.
        let of_pages = now.processes.iter().find_map(|seen| seen.first().mpi.clone());
        let mpi = of_pages.or_else(|| told.and_then(|told| told.mpi.clone()));
        let waits = waits::waits(before, now, mpi.as_deref());
        let finding = culprit::find(&waits);
        let sentence = culprit::sentence(&waits, &finding);
        let earlier = by_identity(before);
        let maker = RowMaker {
            now,
            span: before.map(|before| now.at.saturating_sub(before.at)).filter(|span| !span.is_zero()),
            mpi: mpi.as_deref(),
            places: places(now),
        };
        let strongest = strongest(&waits);
        let mut awaited_by = vec![0; now.processes.len()];
        let counts = |pair: &&(usize, usize, RowWait)| pair.2.share >= SHARE_LEAST;
        pairs(&waits).iter().filter(counts).for_each(|pair| awaited_by[pair.1] += 1);
        let blamed: Vec<usize> = finding.roots.iter().filter_map(|root| root.blamed(&waits)).collect();
        let rows = now.processes.iter().enumerate().map(|(place, seen)| {
            let (before, member) = (earlier.get(&seen.identity()).copied(), &waits.members[place]);
            let between = Between { before, now: seen, span: maker.span };
            Row {
                state: between.state(member, strongest[place].as_ref()),
                queued: between.queued(),
                blame: blamed.iter().position(|blamed| *blamed == place),
                wait: strongest[place].clone(),
                awaited_by: awaited_by[place],
                presence: member.presence,
                doing: member.doing,
                ..maker.row(seen, before)
            }
        });
        let rows: Vec<Row> = rows.collect();
        let started = told.and_then(|told| Duration::try_from_secs_f64(told.started_s).ok());
        let started = started.or_else(|| now.processes.iter().filter_map(|seen| seen.first().started).min());
        let size = now.processes.iter().filter_map(|seen| seen.first().job_size).max().unwrap_or(0) as usize;
        JobView {
            id: launch.map_or_else(|| found.id.clone(), |launch| format!("{}:{launch}", found.id)),
            command: match told {
                Some(told) => plain(&told.command.join(" ")),
                None => first.map_or_else(String::new, |page| page.program.clone()),
            },
            user: None,
            slurm: None,
            setup: first.map_or_else(String::new, |page| page.setup.clone()),
            host: told.map_or_else(String::new, |told| told.host.clone()),
            is_running: told.and_then(|told| told.is_running()),
            runs_for: started.map(|started| now.at.saturating_sub(started)),
            at: now.at,
            span: maker.span,
            size: size.max(rows.len()),
            has_ended: false,
            trouble: None,
            mpi,
            rows,
            waits,
            finding,
            sentence,
        }
    }

    /// Rates of all ranks together.
    pub fn rates(&self) -> Option<Rates> {
        self.span?;
        let rates = self.rows.iter().filter_map(|row| row.rates);
        Some(rates.fold(Rates::default(), |sum, more| Rates {
            messages: sum.messages + more.messages,
            sent: sum.sent + more.sent,
            received: sum.received + more.received,
            refused: sum.refused + more.refused,
            resent: sum.resent + more.resent,
        }))
    }

    /// How many of its processes are there, as far as is known.
    pub fn alive(&self) -> usize {
        let is_alive = |row: &&Row| row.presence.is_there();
        self.rows.iter().filter(is_alive).count()
    }

    /// How many processes are gone without having left in order.
    pub fn gone(&self) -> usize {
        self.rows.iter().filter(|row| row.presence == Presence::Gone).count()
    }
}

/// Who waits for whom at all: each pair once, with all its waits together.
pub fn pairs(waits: &Waits) -> Vec<(usize, usize, RowWait)> {
    let mut order: Vec<&Wait> = waits.waits.iter().collect();
    order.sort_by_key(|wait| (wait.waiter, wait.awaited));
    let of_pair = |of: &[&Wait]| {
        let most = of.iter().copied().reduce(|most, wait| if wait.share > most.share { wait } else { most });
        most.map(|most| {
            let wait = RowWait {
                awaited: most.awaited,
                cause: most.cause,
                share: of.iter().map(|wait| wait.share).sum::<f64>().min(1.0),
                open_for: of.iter().filter_map(|wait| wait.open_for).max(),
            };
            (most.waiter, most.awaited, wait)
        })
    };
    let same = |one: &&Wait, other: &&Wait| (one.waiter, one.awaited) == (other.waiter, other.awaited);
    order.chunk_by(same).filter_map(of_pair).collect()
}

/// A wait for less of the time than this is none.
pub const SHARE_LEAST: f64 = 0.005;

/// For each member, for whom it waits most.
fn strongest(waits: &Waits) -> Vec<Option<RowWait>> {
    let mut strongest: Vec<Option<RowWait>> = vec![None; waits.members.len()];
    for (waiter, _, wait) in pairs(waits).into_iter().filter(|pair| pair.2.share >= SHARE_LEAST) {
        let is_more = |known: &RowWait| (wait.share, wait.open_for) > (known.share, known.open_for);
        if strongest[waiter].as_ref().is_none_or(is_more) {
            strongest[waiter] = Some(wait);
        }
    }
    strongest
}

/// Makes rows of one look.
struct RowMaker<'a> {
    now: &'a Look,
    span: Option<Duration>,
    mpi: Option<&'a str>,
    places: std::collections::HashMap<u64, usize>,
}

impl RowMaker<'_> {
    /// All of a row but what others' waits say.
    fn row(&self, seen: &Seen, before: Option<&Seen>) -> Row {
        let page = seen.first();
        let rate = |counter: Counter| {
            let (span, before) = (self.span?.as_secs_f64(), before?.get(counter));
            Some(seen.get(counter).saturating_sub(before) as f64 / span)
        };
        let rates = before.and(self.span).map(|_| {
            let of = |counters: &[Counter]| counters.iter().filter_map(|counter| rate(*counter)).sum();
            Rates {
                messages: of(&[Counter::MessagesEager, Counter::MessagesRendezvous, Counter::MessagesSelf]),
                sent: of(&[Counter::BytesSent]),
                received: of(&[Counter::BytesReceived]),
                refused: of(&[Counter::Refusals, Counter::MailboxFull]),
                resent: of(&[Counter::BatchesResent]),
            }
        });
        let (receives, sends, messages) = (self.receives(seen), self.sends(seen), self.messages(seen));
        let in_all = |of: fn(&Page) -> u64| seen.pages.iter().map(of).fold(0, u64::saturating_add);
        Row {
            name: waits::name(page),
            rank: page.rank,
            pid: page.pid,
            host: page.host.clone(),
            program: page.program.clone(),
            setup: page.setup.clone(),
            presence: Presence::Here,
            doing: Doing::Unknown,
            state: State::Unknown,
            queued: None,
            blame: None,
            rates,
            wait: None,
            awaited_by: 0,
            memory: memory(seen),
            receive: Oldest { text: receives.first().cloned(), in_all: in_all(|page| page.receives.1) },
            send: Oldest { text: sends.first().cloned(), in_all: in_all(|page| page.sends.1) },
            unexpected: Oldest { text: messages.first().cloned(), in_all: in_all(|page| page.unexpected.1) },
            open: self.open([("receive", receives), ("send", sends), ("message", messages)]),
            counters: Counter::ALL.iter().map(|counter| (seen.get(*counter), rate(*counter))).collect(),
        }
    }

    fn name_of(&self, endpoint: u64) -> String {
        let place = self.places.get(&endpoint);
        place.map_or_else(|| "an unknown rank".to_owned(), |place| waits::name(self.now.processes[*place].first()))
    }

    fn receives(&self, seen: &Seen) -> Vec<(String, Duration)> {
        // Untagged ones are the MPI's own: it posts buffers for what may come.
        let all = seen.pages.iter().flat_map(|page| &page.receives.0).filter(|receive| receive.tag.is_some());
        oldest_first(all.map(|receive| {
            let from = receive.from.map_or_else(|| "any rank".to_owned(), |from| self.name_of(from));
            (format!("{} from {from}", tag_in_words(self.mpi, receive.tag, receive.ignore)), receive.age())
        }))
    }

    fn sends(&self, seen: &Seen) -> Vec<(String, Duration)> {
        let all = seen.pages.iter().flat_map(|page| &page.sends.0);
        oldest_first(all.map(|send| {
            let waits = send.waits_for.map_or_else(String::new, |cause| format!(", waits: {}", cause_word(cause)));
            let to = self.name_of(send.to);
            (format!("{} to {to}, {} B{waits}", tag_in_words(self.mpi, send.tag, 0), send.bytes), send.age())
        }))
    }

    fn messages(&self, seen: &Seen) -> Vec<(String, Duration)> {
        let all = seen.pages.iter().flat_map(|page| &page.unexpected.0);
        oldest_first(all.map(|message| {
            let from = self.name_of(message.from);
            (format!("{} from {from}, {} B", tag_in_words(self.mpi, message.tag, 0), message.bytes), message.age())
        }))
    }

    fn open(&self, kinds: [(&str, Vec<(String, Duration)>); 3]) -> Vec<String> {
        let lines = kinds.into_iter().flat_map(|(kind, all)| {
            all.into_iter().map(move |(text, age)| format!("{kind:<8} {:>9}  {text}", culprit::age(age)))
        });
        lines.collect()
    }
}

fn oldest_first(all: impl Iterator<Item = (String, Duration)>) -> Vec<(String, Duration)> {
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(_, age)| std::cmp::Reverse(*age));
    all
}

fn memory(seen: &Seen) -> Memory {
    let of = |page: &Page| Memory {
        held: page.get(Counter::ReceiveFixedBytes).saturating_add(page.get(Counter::UnmatchedBytes)),
        peak: page.get(Counter::ReceivePeak),
        bound: page.get(Counter::ReceiveBound),
    };
    let all = seen.pages.iter().map(of);
    all.reduce(|most, memory| if memory.share() > most.share() { memory } else { most }).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::jobs::Description;
    use crate::top::look::tests::seen;
    use crate::top::page::tests::open_receive;
    use crate::top::waits::tests::FIRST;
    use std::path::Path;
    use tidegate_link::stats::{PeerWait, WaitCause};

    /// A job without a description.
    pub fn found() -> FoundJob {
        FoundJob::of_pages("4711", Path::new("/nowhere"))
    }

    /// A job of so many ranks during one second: rank 1 holds up all others, rank 2 waits for a tag, each rank has sent
    /// 1,000 messages of 1 MiB in all, and the last rank is gone.
    pub fn example(size: u32) -> JobView {
        let look = |at: u64| {
            let mut processes: Vec<Seen> = (0..size).map(|rank| of_example(rank, at)).collect();
            if at > 10 {
                processes[size as usize - 1].exists = Some(false);
            }
            Look { at: Duration::from_secs(at), processes }
        };
        JobView::new(&found(), None, Some(&look(10)), &look(11))
    }

    fn of_example(rank: u32, at: u64) -> Seen {
        let done = at - 10;
        let mut seen = seen(
            rank,
            &[
                (Counter::MessagesEager, 1000 * done),
                (Counter::BytesSent, done << 20),
                (Counter::ReceiveBound, 64 << 20),
                (Counter::ReceiveFixedBytes, 16 << 20),
                (Counter::UnmatchedBytes, 16 << 20),
            ],
        );
        if rank != 1 {
            let waited = Duration::from_millis(800 * done);
            let open_for = Some(Duration::from_millis(100 * done));
            seen.pages[0].waits.push(PeerWait {
                peer: Some(FIRST + 1),
                cause: WaitCause::Credits,
                count: 1,
                waited,
                since: open_for,
            });
        }
        if rank == 2 {
            let age = Duration::from_secs(at);
            seen.pages[0].receives = (vec![open_receive(Some(FIRST), 77, age)], 3);
        }
        seen
    }

    #[test]
    fn two_looks_make_rates_and_states() {
        let view = example(4);
        let rates = view.rows[0].rates.unwrap();
        assert_eq!((rates.messages, rates.sent, rates.received), (1000.0, 1048576.0, 0.0));
        assert_eq!(view.rates().unwrap().messages, 4000.0);
        assert_eq!((view.alive(), view.gone(), view.size), (3, 1, 4));
        assert_eq!((view.rows[0].memory.share(), view.rows[1].awaited_by), (0.5, 2));
        let wait = view.rows[0].wait.clone().unwrap();
        assert_eq!((wait.awaited, wait.cause), (1, WaitCause::Credits));
        assert!((wait.share - 0.9).abs() < 1e-9);
        assert_eq!(view.rows[2].receive.text.as_ref().unwrap().0, "tag 0x4d from rank 0");
        assert_eq!(view.rows[2].receive.in_all, 3);
        assert!(view.sentence.starts_with("rank 1 holds up 2 ranks, up to 90 % of the time"), "{}", view.sentence);
    }

    #[test]
    fn a_first_look_has_no_rates() {
        let look = Look { at: Duration::from_secs(11), processes: vec![of_example(0, 11), of_example(1, 11)] };
        let view = JobView::new(&found(), Some(2), None, &look);
        assert_eq!((view.rates(), view.rows[0].rates, view.id.as_str()), (None, None, "4711:2"));
        assert_eq!(view.rows[0].wait.as_ref().unwrap().awaited, 1);
    }

    #[test]
    fn what_a_description_says_is_not_believed() {
        let told = Description { started_s: 1e300, command: vec!["a\u{1b}[2J".into()], ..Default::default() };
        let view = JobView::new(&FoundJob { description: Some(told), ..found() }, None, None, &Look::default());
        assert_eq!((view.runs_for, view.command.as_str()), (None, "a\u{fffd}[2J"));
    }

    #[test]
    fn a_process_that_is_new_has_no_rates_and_others_do() {
        let before = Look { at: Duration::from_secs(10), processes: vec![of_example(0, 10)] };
        let now = Look { at: Duration::from_secs(11), processes: vec![of_example(0, 11), of_example(1, 11)] };
        let view = JobView::new(&found(), None, Some(&before), &now);
        assert_eq!(view.rows.iter().map(|row| row.rates.is_some()).collect::<Vec<_>>(), [true, false]);
    }
}
