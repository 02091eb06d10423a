//! [`Stuck`]: the waits that went on when a job ended that did not end in order, and where their chains end. The page
//! draws them; the title names them in one line.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use crate::culprit::{self, Doing, End, Finding, LASTED_AT_THE_END, Member, Presence, Receive, Unmatched, Waits};
use crate::recording::rows::{OpenKind, UNTAGGED, words};
use crate::recording::view::{Open, View, Wait};
use tidegate_link::stats::WaitCause;

/// At most this number of ranks are named one by one in a title.
const NAMED_MOST: usize = 4;

/// The waits at the end of a job that did not end in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Stuck {
    /// The waits, the most important first: those of the closed circle in its order, or those for the process at which
    /// the chains end; then the others, oldest first.
    pub waits: Vec<StuckWait>,
    /// The processes that wait for each other, in order; empty if there is no such circle.
    pub circle: Vec<usize>,
    /// Whether each of these waits for the next, and the last for the first.
    pub is_ring: bool,
    /// Where the reader should look first.
    pub blamed: Option<usize>,
    finding: Finding,
}

/// A wait that went on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckWait {
    /// Which process waits.
    pub from: usize,
    /// For which; `None`: a message of any.
    pub to: Option<usize>,
    /// For what: a tag and communicator, or what a send waits for.
    pub what: String,
    /// Whether it is a receive that waits.
    pub is_receive: bool,
    /// How long, in nanoseconds.
    pub age_ns: u64,
    /// The tag of a message of `to` that is there and that no receive accepts.
    pub there: Option<String>,
}

impl Stuck {
    /// The waits of a recording; `None` where the job ended in order, or nothing had been open for long.
    #[must_use]
    pub fn of(run: &View) -> Option<Stuck> {
        if run.all_ended {
            return None;
        }
        let going = going_on(run);
        let lasted: Vec<&Open> = run.open.iter().filter(|open| lasted(open)).collect();
        let mut open: Vec<&Open> = lasted.iter().copied().filter(|open| is_wait(&going, open)).collect();
        if open.is_empty() && run.held_up.is_some() {
            // Ranks that nap between their polls are not measured waiting, but a look at the end saw that they do.
            open = lasted.into_iter().filter(|open| may_be_wait(open)).collect();
        }
        if open.is_empty() {
            return None;
        }
        let unexpected = unexpected(run);
        let mut job = waits_of(run, &open, &unexpected);
        let absent = culprit::absent(&job, &|_| 1.0);
        let in_call: HashSet<usize> = absent.iter().map(|wait| wait.waiter).collect();
        let is_told = |open: &&&Open| open.peer.is_some() || !in_call.contains(&open.process);
        let own = open.iter().filter(is_told).map(|open| stuck_wait(open, &unexpected[open.process]));
        let mut waits: Vec<StuckWait> = own.chain(absent.iter().map(of_call)).collect();
        job.waits.extend(absent);
        let finding = culprit::find(&job);
        let end = finding.roots.first().map(|root| &root.end);
        let (circle, is_ring, blamed) = match end {
            Some(End::Circle { ranks, ring, odd }) => {
                let first = odd.map_or(ranks[0], |odd| job.waits[odd].waiter);
                (ranks.clone(), *ring, odd.map(|_| first).filter(|_| is_odd_one(&waits, ranks)))
            }
            Some(End::Rank(rank)) => (Vec::new(), false, Some(*rank)),
            Some(End::Unsent { rank, .. }) => (Vec::new(), false, Some(*rank)),
            None => (Vec::new(), false, None),
        };
        // Sorting keeps the oldest first among equals.
        let next = |at: usize| circle[(at + 1) % circle.len()];
        waits.sort_by_key(|wait| {
            let at = circle.iter().position(|process| *process == wait.from);
            match at {
                Some(at) if is_ring && wait.to == Some(next(at)) => (0, at),
                Some(at) if wait.to.is_some_and(|to| circle.contains(&to)) => (1, at),
                _ if blamed.is_some() && (wait.to == blamed || Some(wait.from) == blamed) => (2, 0),
                _ => (3, 0),
            }
        });
        Some(Stuck { waits, circle, is_ring, blamed, finding })
    }

    /// One line that says what hangs, without a full stop; it begins with a small letter.
    #[must_use]
    pub fn title(&self, run: &View) -> String {
        let label = |process: usize| run.processes[process].label.as_str();
        match self.finding.roots.first().map(|root| (&root.end, root.holds_up)) {
            Some((End::Circle { ranks, .. }, _)) => {
                let odd = self.blamed.and_then(|blamed| self.waits.iter().find(|wait| wait.from == blamed));
                match odd {
                    Some(wait) => self.of_wait(run, wait),
                    None if ranks.len() <= NAMED_MOST => format!("deadlock: {} wait for each other", names(run, ranks)),
                    None => format!("deadlock: {} ranks wait for each other", ranks.len()),
                }
            }
            Some((End::Unsent { rank, .. }, _)) => match self.waits.iter().find(|wait| wait.from == *rank) {
                Some(wait) => self.of_wait(run, wait),
                None => format!("{} waits for a message that is not sent", label(*rank)),
            },
            // No hang: it may compute, and was ended by its user or a batch system before it came to a send.
            Some((End::Rank(rank), holds_up)) => {
                let they = if holds_up == 1 { "1 rank waits".to_owned() } else { format!("{holds_up} ranks wait") };
                format!("{they} for {}", label(*rank))
            }
            None => match self.waits.iter().filter(|wait| wait.to.is_none()).count() {
                0 => "the job ended while messages were still open".to_owned(),
                1 => format!("{} waits for a message that no rank sends", label(self.waits[0].from)),
                many => format!("the job hung: {many} ranks wait for messages that no rank sends"),
            },
        }
    }

    /// How many waited and for how long, in a sentence without a full stop.
    #[must_use]
    pub fn extent(&self, run: &View) -> String {
        let mut waiting: Vec<usize> = self.waits.iter().map(|wait| wait.from).collect();
        waiting.sort_unstable();
        waiting.dedup();
        let longest = self.waits.iter().map(|wait| wait.age_ns).max().unwrap_or(0);
        let all = run.processes.len();
        let who = match waiting.len() {
            count if count == all => format!("all {all} ranks"),
            count => format!("{count} of {all} ranks"),
        };
        let when = if run.is_interrupted() { "at the last look" } else { "when the job ended" };
        format!("{when} {who} waited, the longest for {}", super::time(longest))
    }

    /// The thing to look at, in a sentence behind others; empty if that is not known.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        let odd = self.blamed.and_then(|blamed| self.waits.iter().find(|wait| wait.from == blamed));
        let is_of_receives = self.waits.iter().all(|wait| wait.is_receive);
        match (odd, self.circle.is_empty()) {
            (Some(StuckWait { there: Some(_), .. }), _) => {
                " Compare the send and the receive: one of them has the wrong tag or communicator."
            }
            (None, false) if is_of_receives => {
                " Each of these waits for a message before it sends its own: let one of them send first, or use MPI_Sendrecv \
                 or MPI_Irecv."
            }
            (None, false) => {
                " Each of these waits until another one receives, before it receives itself: post receives first \
                 (MPI_Irecv), or use MPI_Sendrecv."
            }
            _ => "",
        }
    }

    /// "rank 3 waits for tag 77 of rank 0, which sent tag 78".
    fn of_wait(&self, run: &View, wait: &StuckWait) -> String {
        let label = |process: usize| run.processes[process].label.as_str();
        let of = wait.to.map_or_else(|| "any rank".to_owned(), |to| label(to).to_owned());
        let mut text = match wait.is_receive {
            true => format!("{} waits for {} of {of}", label(wait.from), short(&wait.what)),
            false => format!("{} waits for {of} ({})", label(wait.from), wait.what),
        };
        match &wait.there {
            Some(there) => text += &format!(", which sent {}", short(there)),
            None if self.circle.len() == 2 => text += &format!(", which waits for {}", label(wait.from)),
            None => {}
        }
        text
    }
}

/// "ranks 0, 1 and 2".
fn names(run: &View, processes: &[usize]) -> String {
    let mut processes = processes.to_vec();
    processes.sort_unstable();
    let labels: Vec<&str> = processes.iter().map(|process| run.processes[*process].label.as_str()).collect();
    let numbers: Option<Vec<&str>> = labels.iter().map(|label| label.strip_prefix("rank ")).collect();
    match numbers {
        Some(numbers) => format!("ranks {}", super::names(numbers.into_iter())),
        None => super::names(labels.into_iter()),
    }
}

/// Whether one wait of a circle is unlike the others: else any of them is as much to blame.
fn is_odd_one(waits: &[StuckWait], circle: &[usize]) -> bool {
    let inside = waits.iter().filter(|wait| circle.contains(&wait.from));
    let mut texts: Vec<&str> = inside.map(|wait| wait.what.as_str()).collect();
    texts.sort_unstable();
    texts.dedup();
    texts.len() > 1
}

/// A tag without the communicator of all ranks, which goes without saying.
fn short(tag: &str) -> &str {
    tag.strip_suffix(", MPI_COMM_WORLD").unwrap_or(tag)
}

fn lasted(open: &Open) -> bool {
    u128::from(open.row.age_ns) >= LASTED_AT_THE_END.as_nanos()
}

/// For whose messages each process waits: by process, peer and cause, for how many nanoseconds; the most that there are
/// if the wait goes on.
type GoingOn = BTreeMap<(usize, Option<usize>, WaitCause), u64>;

fn going_on(run: &View) -> GoingOn {
    let of = |wait: &Wait| ((wait.from, wait.to, wait.cause), if wait.goes_on { u64::MAX } else { wait.waited_ns });
    run.waits.iter().map(of).collect()
}

/// The messages of each process that no receive has accepted.
fn unexpected(run: &View) -> Vec<Vec<&Open>> {
    let mut found = vec![Vec::new(); run.processes.len()];
    let rows = run.open.iter().filter(|open| open.row.kind == OpenKind::Unexpected);
    rows.for_each(|open| found[open.process].push(open));
    found
}

/// Whether a process waits for it: not where it has posted the receive for later, and not for a message that is there.
/// A page may have been written between two polls, when no wait went on; then the time waited for the peer tells.
fn is_wait(going: &GoingOn, open: &Open) -> bool {
    let goes_on = |cause: WaitCause| {
        let longest = going.get(&(open.process, open.peer, cause));
        longest.is_some_and(|longest| *longest >= open.row.age_ns / 2)
    };
    let is_receive = open.row.kind == OpenKind::Receive;
    let cause = if open.peer.is_some() { WaitCause::Message } else { WaitCause::AnyMessage };
    may_be_wait(open) && (!is_receive || goes_on(cause))
}

/// Whether a process may wait for it, as far as itself tells.
fn may_be_wait(open: &Open) -> bool {
    match open.row.kind {
        OpenKind::Receive => open.row.tag != UNTAGGED,
        OpenKind::Send => open.row.waits_for.is_some() && open.peer.is_some(),
        OpenKind::Unexpected => false,
    }
}

/// `unexpected`: the messages of its process that no receive has accepted.
fn stuck_wait(open: &Open, unexpected: &[&Open]) -> StuckWait {
    let is_receive = open.row.kind == OpenKind::Receive;
    let is_of_all = open.row.tag.contains(COLLECTIVE);
    let mut there = unexpected.iter().filter(|other| other.peer == open.peer).map(|other| other.row.tag.clone());
    StuckWait {
        from: open.process,
        to: open.peer,
        what: open.row.waits_for.map_or_else(|| open.row.tag.clone(), |cause| words(cause).to_owned()),
        is_receive,
        age_ns: open.row.age_ns,
        // Ranks that have entered a collective call already have sent messages of it.
        there: there.rfind(|tag| is_receive && open.peer.is_some() && !is_of_all && !tag.contains(COLLECTIVE)),
    }
}

/// A receive of a collective call that accepts messages of any rank, as a wait for one that is not in the call.
fn of_call(wait: &culprit::Wait) -> StuckWait {
    let age = wait.open_for.unwrap_or_default().as_nanos();
    StuckWait {
        from: wait.waiter,
        to: Some(wait.awaited),
        what: wait.receive.as_ref().map_or_else(String::new, |receive| receive.text.clone()),
        is_receive: true,
        age_ns: u64::try_from(age).unwrap_or(u64::MAX),
        there: None,
    }
}

/// In tags of messages that collective calls send …
const COLLECTIVE: &str = "collective";
/// … and of those of all ranks.
const OF_ALL: &str = "collective of MPI_COMM_WORLD";

/// The same for those who follow chains.
fn waits_of(run: &View, open: &[&Open], unexpected: &[Vec<&Open>]) -> Waits {
    let receive = |open: &Open| Receive { text: open.row.tag.clone(), is_of_all: open.row.tag.contains(OF_ALL) };
    let age = |open: &Open| Duration::from_nanos(open.row.age_ns);
    let mut any: HashMap<usize, &Open> = HashMap::new();
    // The oldest come first.
    for open in open.iter().filter(|open| open.peer.is_none() && open.row.kind == OpenKind::Receive) {
        any.entry(open.process).or_insert(open);
    }
    let member = |process: usize| {
        let there = unexpected[process].iter();
        Member {
            name: run.processes[process].label.clone(),
            presence: Presence::Here,
            doing: Doing::Unknown,
            moves: false,
            any: any.get(&process).map(|open| (receive(open), age(open))),
            unmatched: there.map(|open| Unmatched { from: open.peer, text: open.row.tag.clone() }).collect(),
        }
    };
    let wait = |open: &&Open| {
        let is_receive = open.row.kind == OpenKind::Receive;
        Some(culprit::Wait {
            waiter: open.process,
            awaited: open.peer?,
            cause: open.row.waits_for.unwrap_or(WaitCause::Message),
            share: 1.0,
            open_for: Some(age(open)),
            receive: is_receive.then(|| receive(open)),
        })
    };
    Waits { members: (0..run.processes.len()).map(member).collect(), waits: open.iter().filter_map(wait).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::rows::WaitRow;
    use crate::recording::testing::{Made, values};

    /// A job of `ranks` ranks that was ended while receives waited: from, to, tag.
    fn hung(ranks: u32, receives: &[(u32, Option<u32>, &str)]) -> Made {
        let mut made = Made::new(ranks);
        made.facts.end.as_mut().unwrap().exit_code = 15;
        for (from, to, tag) in receives {
            made.open(*from, OpenKind::Receive, *to, None, 3.0);
            let rows = &mut made.last.endpoints[*from as usize];
            rows.open.last_mut().unwrap().tag = (*tag).to_owned();
            let cause = if to.is_some() { WaitCause::Message } else { WaitCause::AnyMessage };
            let peer = to.map(|to| u64::from(to) + 1);
            rows.waits.push(WaitRow { peer, cause, count: 1, waited_ns: 3_000_000_000, goes_on: true });
        }
        made
    }

    fn stuck(made: Made, ranks: usize) -> (View, Stuck) {
        let view = made.view(&vec![values(&[]); ranks]);
        let stuck = Stuck::of(&view).unwrap();
        (view, stuck)
    }

    const WORLD: &str = "tag 5, MPI_COMM_WORLD";
    const BARRIER: &str = "tag 1, collective of MPI_COMM_WORLD";

    #[test]
    fn a_ring_is_a_deadlock_without_a_culprit() {
        let (view, stuck) = stuck(hung(3, &[(0, Some(2), WORLD), (1, Some(0), WORLD), (2, Some(1), WORLD)]), 3);
        assert_eq!(stuck.title(&view), "deadlock: ranks 0, 1 and 2 wait for each other");
        assert_eq!(stuck.extent(&view), "when the job ended all 3 ranks waited, the longest for 3.00 s");
        assert!(stuck.is_ring && stuck.blamed.is_none() && stuck.remedy().contains("MPI_Sendrecv"), "{stuck:?}");
        // Each row begins where the one before it ends.
        let rows: Vec<_> = stuck.waits.iter().map(|wait| (wait.from, wait.to.unwrap())).collect();
        assert!(rows.windows(2).all(|rows| rows[0].1 == rows[1].0), "{rows:?}");
    }

    #[test]
    fn a_wrong_tag_is_named_with_what_was_sent_instead() {
        let mut made = hung(3, &[(2, Some(0), "tag 77, MPI_COMM_WORLD"), (0, Some(2), BARRIER), (1, Some(2), BARRIER)]);
        made.open(2, OpenKind::Unexpected, Some(0), None, 3.0);
        made.last.endpoints[2].open.last_mut().unwrap().tag = "tag 78, MPI_COMM_WORLD".to_owned();
        let (view, stuck) = stuck(made, 3);
        assert_eq!(stuck.title(&view), "rank 2 waits for tag 77 of rank 0, which sent tag 78");
        assert_eq!((stuck.blamed, stuck.circle.len()), (Some(2), 2));
        assert!(stuck.remedy().contains("wrong tag"), "{}", stuck.remedy());
        assert_eq!((stuck.waits[0].from, stuck.waits[1].from, stuck.waits[2].from), (2, 0, 1));
    }

    #[test]
    fn a_receive_of_a_call_of_all_waits_for_the_rank_that_is_not_in_it() {
        // Open MPI's barrier: rank 0 receives from any rank, the others from rank 0; rank 2 waits for something else.
        let mut made = hung(3, &[(2, Some(0), "tag 77, MPI_COMM_WORLD"), (0, None, BARRIER), (1, Some(0), BARRIER)]);
        made.open(2, OpenKind::Unexpected, Some(0), None, 3.0);
        made.last.endpoints[2].open.last_mut().unwrap().tag = "tag 78, MPI_COMM_WORLD".to_owned();
        let (view, stuck) = stuck(made, 3);
        assert_eq!(stuck.title(&view), "rank 2 waits for tag 77 of rank 0, which sent tag 78");
        assert!(stuck.waits.iter().all(|wait| wait.to.is_some()), "{stuck:?}");
    }

    #[test]
    fn messages_that_no_rank_sends_and_one_rank_that_all_wait_for() {
        let (view, any) = stuck(hung(2, &[(0, None, WORLD), (1, None, WORLD)]), 2);
        assert_eq!(any.title(&view), "the job hung: 2 ranks wait for messages that no rank sends");
        let (view, one) = stuck(hung(3, &[(0, Some(1), BARRIER), (2, Some(1), BARRIER)]), 3);
        // Rank 1 may have computed: that is no hang.
        assert_eq!((one.title(&view).as_str(), one.blamed), ("2 ranks wait for rank 1", Some(1)));
        assert_eq!(one.extent(&view), "when the job ended 2 of 3 ranks waited, the longest for 3.00 s");
    }

    #[test]
    fn ranks_that_nap_between_their_polls_hang_too_where_they_were_seen_to() {
        let napping = |held_up: Option<&str>| {
            let mut made = hung(2, &[(1, Some(0), "tag 77, MPI_COMM_WORLD"), (0, Some(1), BARRIER)]);
            made.open(1, OpenKind::Unexpected, Some(0), None, 3.0);
            made.last.endpoints[1].open.last_mut().unwrap().tag = "tag 78, MPI_COMM_WORLD".to_owned();
            made.last.endpoints.iter_mut().for_each(|rows| rows.waits.clear());
            made.last.held_up = held_up.map(str::to_owned);
            made
        };
        let unseen = napping(None).view(&vec![values(&[]); 2]);
        assert!(Stuck::of(&unseen).is_none(), "they may be for later");
        let (view, stuck) = stuck(napping(Some("rank 1 waits 2.9 s for a message of rank 0")), 2);
        assert_eq!(stuck.title(&view), "rank 1 waits for tag 77 of rank 0, which sent tag 78");
    }

    #[test]
    fn receives_for_later_and_a_job_that_ended_in_order_are_no_hang() {
        let mut made = hung(2, &[(0, Some(1), WORLD)]);
        made.last.endpoints[0].waits.clear();
        assert!(Stuck::of(&made.view(&vec![values(&[]); 2])).is_none());
        let mut made = hung(2, &[(0, Some(1), WORLD)]);
        made.last.endpoints.iter_mut().for_each(|rows| rows.ended = true);
        assert!(Stuck::of(&made.view(&vec![values(&[]); 2])).is_none());
    }
}
