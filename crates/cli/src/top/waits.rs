//! From two looks at a job to who waits for whom, for [`crate::culprit`].
//!
//! Pages say for each peer how long sends have waited for it in all, and receives, while their application polled in
//! vain: so two looks differ by what was waited between them. Pages also list the receives that are open, with their
//! tags and ages. That one is open does not mean that its process waits for it: programs post receives long before they
//! need them. So it counts as a wait that goes on only
//!
//! * if its process is polling in vain: it has written its page a moment ago, which it does then only; and
//! * if no message of the process has moved since the look before, or else if it is younger than that look.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use crate::culprit::{self, LASTED_AT_THE_END, Member, Presence, Receive, Unmatched, Wait, Waits};
use crate::mpi::MpiKind;
use crate::tag;
use crate::top::look::{Identity, Look, Seen};
use crate::top::page::{Page, tag_in_words};
use crate::top::presence::presence;
use tidegate_link::stats::{OpenMessage, OpenReceive, WaitCause};

/// A process that has not polled in vain for this long is not waiting: it writes every few milliseconds while it is.
const AWAY_AFTER: Duration = Duration::from_millis(250);
/// The same of a job that has ended: a launcher takes a while to end all of its processes.
const AWAY_AT_THE_END: Duration = Duration::from_secs(1);
/// A message that nobody has received for this long is worth a mention.
const UNMATCHED_AFTER: Duration = Duration::from_millis(500);
/// Without a look before, waits are parts of this time.
const ALONE: Duration = Duration::from_secs(1);

/// What to call a process.
pub fn name(page: &Page) -> String {
    page.rank.map_or_else(|| format!("pid {}", page.pid), |rank| format!("rank {rank}"))
}

/// Who waits for whom. Members are the processes of `now`, in their order. `mpi`: the id of the job's MPI, by which
/// tags are read.
pub fn waits(before: Option<&Look>, now: &Look, mpi: Option<&str>) -> Waits {
    waits_as_of(before, now, mpi, AWAY_AFTER)
}

/// The same of a look at a job that has ended: its processes did not end at the same moment.
/// Waits that had not lasted long are left out: a job that is interrupted while all is well has many.
pub fn waits_at_the_end(last: &Look, mpi: Option<&str>) -> Waits {
    let mut waits = waits_as_of(None, last, mpi, AWAY_AT_THE_END);
    let members = &waits.members;
    let lasted = |wait: &Wait| wait.open_for.is_some_and(|time| time >= LASTED_AT_THE_END);
    waits.waits.retain(|wait| lasted(wait) || members[wait.awaited].presence == Presence::Gone);
    waits
}

/// The same, where a process counts as away that has not polled for `patience`.
pub fn waits_as_of(before: Option<&Look>, now: &Look, mpi: Option<&str>, patience: Duration) -> Waits {
    let earlier = by_identity(before);
    let job = Job {
        mpi,
        span: before.map_or(ALONE, |before| now.at.saturating_sub(before.at)).max(Duration::from_millis(1)),
        has_before: before.is_some(),
        places: places(now),
    };
    let mut waits = Waits::default();
    for (place, seen) in now.processes.iter().enumerate() {
        let before = earlier.get(&seen.identity()).copied();
        let (presence, doing) = presence(seen, before, now.at, patience);
        let moves = match before {
            Some(before) => seen.has_moved_since(before),
            None => {
                let is_stale = seen.pages.iter().any(|page| page.written.is_some() && !page.is_current);
                is_stale && presence == Presence::Here
            }
        };
        let is_there = presence.is_there();
        waits.members.push(Member {
            name: name(seen.first()),
            presence,
            doing,
            moves,
            any: job.oldest_of_any(seen).filter(|_| is_there && presence != Presence::WentOn),
            unmatched: job.unmatched(seen),
        });
        if is_there {
            job.push_rows(place, seen, before, &mut waits.waits);
        }
        if presence == Presence::Here {
            job.push_receives(place, seen, moves, &mut waits.waits);
        }
    }
    let absent = culprit::absent(&waits, &|age| job.share(age));
    waits.waits.extend(absent);
    waits
}

/// The processes of a look by what names them.
pub fn by_identity(look: Option<&Look>) -> HashMap<Identity, &Seen> {
    let processes = look.into_iter().flat_map(|look| &look.processes);
    processes.map(|seen| (seen.identity(), seen)).collect()
}

/// The place of the process of each endpoint.
pub fn places(look: &Look) -> HashMap<u64, usize> {
    let processes = look.processes.iter().enumerate();
    processes.flat_map(|(place, seen)| seen.pages.iter().map(move |page| (page.endpoint, place))).collect()
}

struct Job<'a> {
    mpi: Option<&'a str>,
    /// The time between the looks.
    span: Duration,
    has_before: bool,
    places: HashMap<u64, usize>,
}

impl Job<'_> {
    fn share(&self, time: Duration) -> f64 {
        (time.as_secs_f64() / self.span.as_secs_f64()).clamp(0.0, 1.0)
    }

    /// Waits from what the peers' rows differ by.
    fn push_rows(&self, waiter: usize, seen: &Seen, before: Option<&Seen>, waits: &mut Vec<Wait>) {
        for page in &seen.pages {
            let earlier = before.and_then(|seen| seen.pages.iter().find(|before| before.endpoint == page.endpoint));
            let mut waited_before = HashMap::new();
            for row in earlier.iter().flat_map(|page| &page.waits) {
                waited_before.insert((row.peer, row.cause), row.waited + row.open_for().unwrap_or_default());
            }
            for row in &page.waits {
                let Some(&awaited) = row.peer.and_then(|peer| self.places.get(&peer)) else { continue };
                let in_all = row.waited + row.open_for().unwrap_or_default();
                // Without a look before, only what goes on is known to be recent.
                let time = match waited_before.get(&(row.peer, row.cause)) {
                    Some(before) => in_all.saturating_sub(*before),
                    None if self.has_before && earlier.is_some() => in_all,
                    None => row.open_for().unwrap_or_default(),
                };
                let share = self.share(time);
                if share > 0.0 || row.open_for().is_some() {
                    waits.push(Wait {
                        waiter,
                        awaited,
                        cause: row.cause,
                        share,
                        open_for: row.open_for(),
                        receive: None,
                    });
                }
            }
        }
    }

    /// Receives that name their sender: which they are of those that wait, and those whose wait no row has yet.
    fn push_receives(&self, waiter: usize, seen: &Seen, moves: bool, waits: &mut Vec<Wait>) {
        for receive in seen.pages.iter().flat_map(|page| &page.receives.0) {
            let Some(&awaited) = receive.from.and_then(|peer| self.places.get(&peer)) else { continue };
            // Untagged receives are the MPI's own: it posts buffers for what may come.
            let Some(words) = self.in_words(receive) else { continue };
            if moves && receive.age() >= self.span {
                continue;
            }
            let is_of_pair =
                |wait: &Wait| (wait.waiter, wait.awaited, wait.cause) == (waiter, awaited, WaitCause::Message);
            // Time that a row has counted is that of all receives of the pair.
            let is_counted = waits.iter().any(is_of_pair);
            let uncounted = waits.iter_mut().find(|wait| is_of_pair(wait) && wait.receive.is_none());
            match uncounted {
                Some(wait) => {
                    // Without a look before, a row does not tell how much of its time was recent.
                    let recent = if self.has_before { 0.0 } else { self.share(receive.age()) };
                    wait.share = wait.share.max(recent);
                    (wait.open_for, wait.receive) = (Some(receive.age()), Some(words));
                }
                None => waits.push(Wait {
                    waiter,
                    awaited,
                    cause: WaitCause::Message,
                    share: if is_counted { 0.0 } else { self.share(receive.age()) },
                    open_for: Some(receive.age()),
                    receive: Some(words),
                }),
            }
        }
    }

    /// A tagged receive in words.
    fn in_words(&self, receive: &OpenReceive) -> Option<Receive> {
        let tag = receive.tag?;
        let is_of_all = self.mpi.and_then(MpiKind::of_id).is_some_and(|mpi| {
            let parsed = tag::parse(mpi, tag, receive.ignore);
            parsed.is_collective && parsed.communicator == 0
        });
        Some(Receive { text: tag_in_words(self.mpi, Some(tag), receive.ignore), is_of_all })
    }

    fn oldest_of_any(&self, seen: &Seen) -> Option<(Receive, Duration)> {
        let receives = seen.pages.iter().flat_map(|page| &page.receives.0);
        let of_any = receives.filter(|receive| receive.from.is_none() && receive.tag.is_some());
        let oldest = of_any.max_by_key(|receive| receive.age())?;
        Some((self.in_words(oldest)?, oldest.age()))
    }

    fn unmatched(&self, seen: &Seen) -> Vec<Unmatched> {
        let messages = seen.pages.iter().flat_map(|page| &page.unexpected.0);
        let mut old: Vec<_> = messages.filter(|message| message.age() >= UNMATCHED_AFTER).collect();
        old.sort_by_key(|message| Reverse(message.age()));
        let of = |message: &OpenMessage| Unmatched {
            from: self.places.get(&message.from).copied(),
            text: tag_in_words(self.mpi, message.tag, 0),
        };
        old.into_iter().map(of).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::culprit::Doing;
    use crate::process::{Process, State};
    use crate::top::look::tests::seen;
    use crate::top::page::tests::open_receive;
    use tidegate_link::stats::{PeerWait, WaitCause};
    use tidegate_message::Counter;

    /// The name of a rank's endpoint, as `page` gives it.
    pub const FIRST: u64 = 1000;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn look(at: f64, processes: Vec<Seen>) -> Look {
        Look { at: seconds(at), processes }
    }

    fn waiting(rank: u32, peer: u64, waited: f64, open_for: Option<f64>) -> Seen {
        let mut seen = seen(rank, &[]);
        let (waited, open_for) = (seconds(waited), open_for.map(seconds));
        seen.pages[0].waits.push(PeerWait {
            peer: Some(FIRST + peer),
            cause: WaitCause::Credits,
            count: 1,
            waited,
            since: open_for,
        });
        seen
    }

    fn receiving(rank: u32, from: Option<u64>, age: f64, moved: u64) -> Seen {
        let mut seen = seen(rank, &[(Counter::BytesSent, moved)]);
        let from = from.map(|from| FIRST + from);
        seen.pages[0].receives.0.push(open_receive(from, 77, seconds(age)));
        seen
    }

    #[test]
    fn waits_of_sends_are_what_two_looks_differ_by() {
        let before = look(10.0, vec![waiting(0, 1, 3.0, None), seen(1, &[])]);
        let now = look(12.0, vec![waiting(0, 1, 3.5, Some(0.5)), seen(1, &[])]);
        let [wait] = &waits(Some(&before), &now, None).waits[..] else { panic!() };
        assert_eq!(
            (wait.waiter, wait.awaited, wait.cause, wait.open_for),
            (0, 1, WaitCause::Credits, Some(seconds(0.5)))
        );
        assert!((wait.share - 0.5).abs() < 1e-9, "one of two seconds: {}", wait.share);
        let quiet = look(14.0, vec![waiting(0, 1, 4.0, None), seen(1, &[])]);
        let before = look(12.0, vec![waiting(0, 1, 4.0, None), seen(1, &[])]);
        assert_eq!(waits(Some(&before), &quiet, None).waits, []);
        // A first look knows only what goes on.
        let [wait] = &waits(None, &now, None).waits[..] else { panic!() };
        assert!((wait.share - 0.5).abs() < 1e-9);
    }

    #[test]
    fn receives_count_where_their_process_waits() {
        let peer = || seen(1, &[]);
        let of = |before: Seen, now: Seen| {
            let before = look(10.0, vec![before, peer()]);
            waits(Some(&before), &look(11.0, vec![now, peer()]), None)
        };
        let stuck = of(receiving(0, Some(1), 4.0, 0), receiving(0, Some(1), 5.0, 0));
        assert_eq!((stuck.waits[0].cause, stuck.waits[0].share), (WaitCause::Message, 1.0));
        let posted_early = of(receiving(0, Some(1), 4.0, 0), receiving(0, Some(1), 5.0, 9));
        assert_eq!(posted_early.waits, [], "its messages move");
        let young = of(seen(0, &[]), receiving(0, Some(1), 0.25, 9));
        assert_eq!(young.waits[0].share, 0.25);
        let any = of(receiving(0, None, 4.0, 0), receiving(0, None, 5.0, 0));
        assert_eq!((any.waits.len(), any.members[0].any.as_ref().unwrap().1), (0, seconds(5.0)));
    }

    #[test]
    fn who_computes_does_not_wait() {
        let written = |mut seen: Seen, at: f64| {
            seen.pages[0].written = Some(seconds(at));
            seen
        };
        let before = look(10.0, vec![written(receiving(0, Some(1), 1.0, 0), 8.0), seen(1, &[])]);
        let now = look(11.0, vec![written(receiving(0, Some(1), 1.0, 0), 8.0), seen(1, &[])]);
        let found = waits(Some(&before), &now, None);
        assert_eq!(
            (found.members[0].presence, found.waits.len()),
            (Presence::Away { time: seconds(3.0), at_least: false }, 0)
        );
        let mut stale = written(receiving(0, Some(1), 1.0, 0), 8.0);
        (stale.pages[0].is_current, stale.quiet_since) = (false, Some(seconds(10.5)));
        let found = waits(Some(&before), &look(11.0, vec![stale, seen(1, &[])]), None);
        assert_eq!(
            found.members[0].presence,
            Presence::Away { time: seconds(0.5), at_least: true },
            "it went on after it had written"
        );
        let busy = look(11.0, vec![written(receiving(0, Some(1), 0.1, 5), 8.0), seen(1, &[])]);
        assert_eq!(waits(Some(&before), &busy, None).members[0].presence, Presence::Here, "its messages move");
    }

    #[test]
    fn what_a_rank_does_that_is_away_is_known_by_its_processor() {
        let of = |state, before: u64, after: u64| {
            let at = |ran_ticks| {
                let mut seen = receiving(0, Some(1), 5.0, 0);
                (seen.pages[0].written, seen.pages[0].is_current) = (Some(seconds(8.0)), true);
                seen.process = Some(Process { state, ran_ticks, started_ticks: 7, queued: None });
                seen
            };
            let before = look(10.0, vec![at(before), seen(1, &[])]);
            let found = waits(Some(&before), &look(11.0, vec![at(after), seen(1, &[])]), None);
            (found.members[0].presence, found.members[0].doing, found.waits.len())
        };
        let away = Presence::Away { time: seconds(3.0), at_least: false };
        assert_eq!(of(State::Runnable, 10, 110), (away, Doing::Computes, 0));
        assert_eq!(of(State::Sleeping, 10, 10), (away, Doing::Sleeps, 0));
        assert_eq!(of(State::Stopped, 10, 11), (away, Doing::Stopped, 0));
        // It was waiting for rank 1 when it lost its processor, and has had no chance to say so again.
        assert_eq!(of(State::Runnable, 10, 11), (Presence::Here, Doing::Queues, 1));
    }

    #[test]
    fn a_rank_on_another_host_whose_clock_is_wrong_is_there_as_long_as_it_writes() {
        for skew in [-3600.0, 3600.0] {
            let at = |written: f64| {
                let mut seen = receiving(0, Some(1), 5.0, 0);
                (seen.pages[0].written, seen.exists) = (Some(seconds(written + skew)), None);
                seen
            };
            let mut looks: Vec<Look> = [(4010.0, 4009.9), (4011.0, 4010.9), (4012.0, 4010.9), (4013.0, 4010.9)]
                .map(|(now, written)| look(now, vec![at(written), seen(1, &[])]))
                .into();
            let mut presences = vec![waits(None, &looks[0], None).members[0].presence];
            for next in 1..looks.len() {
                let (before, now) = looks.split_at_mut(next);
                now[0].follow(&before[next - 1]);
                presences.push(waits(Some(&before[next - 1]), &now[0], None).members[0].presence);
            }
            let away = |time| Presence::Away { time: seconds(time), at_least: true };
            assert_eq!(presences, [Presence::Here, Presence::Here, away(1.0), away(2.0)], "{skew}");
        }
    }

    #[test]
    fn an_endpoint_that_is_not_used_does_not_make_its_process_seem_away() {
        let with_second = |rank, from, at: f64| {
            let mut seen = receiving(rank, from, 5.0, 0);
            seen.pages[0].written = Some(seconds(at));
            let unused = Page { endpoint: 7, is_current: false, started: Some(seconds(1.0)), ..seen.pages[0].clone() };
            seen.pages.push(Page { written: None, receives: (Vec::new(), 0), ..unused });
            seen
        };
        let before = look(10.0, vec![with_second(0, Some(1), 10.0), seen(1, &[])]);
        let mut now = look(12.0, vec![with_second(0, Some(1), 12.0), seen(1, &[])]);
        now.follow(&before);
        let found = waits(Some(&before), &now, None);
        assert_eq!((found.members[0].presence, found.waits.len()), (Presence::Here, 1));
    }

    #[test]
    fn a_receive_of_any_rank_in_a_collective_call_waits_for_those_who_are_not_in_it() {
        // Open MPI's barrier of four: rank 0 receives from any, 1 and 2 from rank 0. Rank 3 is somewhere else.
        const BARRIER: u64 = 0xffff_fff0;
        let in_barrier = |rank, from: Option<u64>| {
            let mut seen = receiving(rank, from, 9.0, 0);
            seen.pages[0].receives.0[0].tag = Some(BARRIER);
            seen
        };
        let others = || vec![in_barrier(0, None), in_barrier(1, Some(0)), in_barrier(2, Some(0))];
        let of = |last: Seen| {
            let found = waits(None, &look(20.0, others().into_iter().chain([last]).collect()), Some("openmpi"));
            crate::culprit::sentence(&found, &crate::culprit::find(&found))
        };
        let computes = of(seen(3, &[]));
        assert_eq!(computes, "rank 3 holds up 3 ranks, longest 9.0 s: they wait for messages from it");
        let other_tag = of(receiving(3, Some(0), 9.5, 0));
        assert!(other_tag.starts_with("rank 3 waits 9.5 s for a message of rank 0 (tag 77, MPI_COMM_WORLD), which waits for rank 3; 4 ranks wait"), "{other_tag}");
        // None is missing.
        let all = of(in_barrier(3, Some(0)));
        assert!(all.starts_with("rank 0 holds up 3 ranks"), "{all}");
    }

    #[test]
    fn at_the_end_who_went_on_after_it_had_written_computes() {
        // Rank 1 has left the barrier in which it wrote last, and computes since; rank 2 was ended half a second
        // before.
        let of = |rank, from, written: f64, is_current| {
            let mut seen = receiving(rank, from, 5.0, 0);
            (seen.pages[0].written, seen.pages[0].is_current) = (Some(seconds(written)), is_current);
            seen
        };
        let last =
            look(20.0, vec![of(0, Some(1), 20.0, true), of(1, Some(0), 11.0, false), of(2, Some(0), 19.5, true)]);
        let found = waits_at_the_end(&last, None);
        let pairs: Vec<_> = found.waits.iter().map(|wait| (wait.waiter, wait.awaited)).collect();
        assert_eq!((pairs, found.members[1].moves), (vec![(0, 1), (2, 0)], false));
        let said = crate::culprit::sentence(&found, &crate::culprit::find(&found));
        assert_eq!(said, "rank 1 holds up 2 ranks, longest 5.0 s: they wait for messages from it");
        assert_eq!(found.members[1].presence, Presence::WentOn);
        // Who has just gone on goes on.
        let last = look(20.0, vec![of(0, Some(1), 20.0, true), of(1, Some(0), 19.9, false)]);
        assert!(waits_at_the_end(&last, None).members[1].moves);
    }

    #[test]
    fn at_the_end_waits_that_all_jobs_have_are_nobodys_fault() {
        let of = |age: f64| {
            let ring = |rank| receiving(rank, Some((u64::from(rank) + 1) % 4), age, 0);
            let last = look(20.0, (0..3).map(ring).chain([waiting(3, 0, 0.0, Some(age))]).collect());
            (waits_at_the_end(&last, None).waits.len(), waits(None, &last, None).waits.len())
        };
        assert_eq!((of(0.04), of(0.4)), ((0, 4), (4, 4)));
        let mut gone = seen(1, &[]);
        gone.exists = Some(false);
        let last = look(20.0, vec![receiving(0, Some(1), 0.04, 0), gone]);
        assert_eq!(waits_at_the_end(&last, None).waits.len(), 1);
    }

    #[test]
    fn the_dead_and_those_who_left_wait_for_nobody() {
        let (mut gone, mut ended) = (waiting(0, 1, 0.0, Some(5.0)), waiting(1, 0, 0.0, Some(5.0)));
        gone.exists = Some(false);
        ended.exists = Some(false);
        ended.pages[0].ended = true;
        let found = waits(None, &look(9.0, vec![gone, ended]), None);
        let presences: Vec<_> = found.members.iter().map(|member| member.presence).collect();
        assert_eq!((presences, found.waits.len()), (vec![Presence::Gone, Presence::Ended], 0));
    }

    #[test]
    fn messages_that_nobody_receives_are_mentioned() {
        let mut one = seen(0, &[]);
        one.pages[0].unexpected.0.push(OpenMessage { from: FIRST + 1, tag: Some(78), bytes: 4, since: seconds(3.0) });
        let found = waits(None, &look(9.0, vec![one, seen(1, &[])]), None);
        assert_eq!(found.members[0].unmatched, [Unmatched { from: Some(1), text: "tag 0x4e".into() }]);
    }
}
