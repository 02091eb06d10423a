//! From the waits of a quiet job to the line that is printed, and to whether nothing can move any more.

use std::time::Duration;

use crate::culprit::{self, End, Finding, Member, Presence, Wait, Waits, age, and_more, no_call, ranks};

/// At most this number of ranks are named one by one.
const NAMED_MOST: usize = 2;

/// How a rank polls, which its open receives do not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankPolls {
    /// Whether it computes, if it polls at all.
    pub computes: bool,
    /// Whether it has polled in its MPI and done nothing else, for as long as a quiet period must last.
    pub all_the_time: bool,
}

/// The verdict on a quiet job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HangVerdict {
    /// The ranks that wait, and for which.
    pub sentence: String,
    /// How many ranks there are, if all of them wait in their MPI and for each other alone: no message can move any
    /// more.
    pub closed: Option<usize>,
}

impl HangVerdict {
    /// The line for people, `quiet_for` after the last message.
    #[must_use]
    pub fn line(&self, quiet_for: Duration) -> String {
        let all = match self.closed {
            None => String::new(),
            Some(1) => ", and its only rank waits".to_owned(),
            Some(2) => ", and both ranks wait".to_owned(),
            Some(count) => format!(", and all {count} ranks wait"),
        };
        format!("no message for {}{all}: {}", quiet_time(quiet_for), self.sentence)
    }
}

/// A quiet time in words: "60 s", "2 min 5 s".
#[must_use]
pub fn quiet_time(time: Duration) -> String {
    if time.as_secs() < 100 { format!("{} s", time.as_secs()) } else { age(time) }
}

/// Judges a job in which no message has moved for long. `polls`: by place among the members. `is_whole`: whether all
/// ranks of the job are among them, on this host. `None`: hardly any rank waits, so there is nothing to say.
#[must_use]
pub fn judge(waits: &Waits, polls: &[RankPolls], is_whole: bool) -> Option<HangVerdict> {
    let computes_between = |place: usize| waits.members[place].presence == Presence::Here && polls[place].computes;
    // Such a rank needs later what it has posted.
    let mut job = waits.clone();
    job.waits.retain(|wait| !computes_between(wait.waiter));
    for (place, member) in job.members.iter_mut().enumerate() {
        member.any.take_if(|_| computes_between(place));
    }
    let inside = inside(&job);
    let living = job.members.iter().filter(|member| member.presence.is_there()).count();
    let count = inside.iter().filter(|is_inside| **is_inside).count();
    // One that waits for another is what programs do; of a job of two, it is half of the job.
    if count < living.saturating_sub(1).clamp(1, 2) {
        return None;
    }
    let is_closed = is_whole
        && is_closed(&job, &inside)
        && inside.iter().zip(polls).all(|(is_inside, polls)| !is_inside || polls.all_the_time);
    let finding = culprit::find(&job);
    let sentence = match finding.roots.first().map(|root| &root.end) {
        Some(End::Rank(rank)) => of_absent(&job, &finding, *rank, computes_between(*rank)),
        Some(_) => None,
        None => Some(without_names(&job, &inside, computes_between)),
    };
    let sentence = sentence.unwrap_or_else(|| culprit::sentence(&job, &finding));
    Some(HangVerdict { sentence, closed: is_closed.then_some(count) })
}

/// Which members wait in their MPI.
fn inside(job: &Waits) -> Vec<bool> {
    let mut has_wait: Vec<bool> = job.members.iter().map(|member| member.any.is_some()).collect();
    job.waits.iter().for_each(|wait| has_wait[wait.waiter] = true);
    let is_inside =
        |(member, has_wait): (&Member, bool)| has_wait && member.presence == Presence::Here && !member.moves;
    job.members.iter().zip(has_wait).map(is_inside).collect()
}

/// Whether every living rank waits, and each for ranks that wait.
fn is_closed(job: &Waits, inside: &[bool]) -> bool {
    let all_wait = job.members.iter().zip(inside).all(|(member, is_inside)| *is_inside || !member.presence.is_there());
    all_wait && job.waits.iter().all(|wait| !inside[wait.waiter] || inside[wait.awaited])
}

/// "3 ranks wait for rank 1, which has not called MPI for 61 s and computes". `None` if the rank at which the waits end
/// is in its MPI, or not there at all.
fn of_absent(job: &Waits, finding: &Finding, rank: usize, computes_between: bool) -> Option<String> {
    let member = &job.members[rank];
    let what = match member.presence {
        Presence::Away { time, at_least } => format!("{}{}", no_call(time, at_least), member.doing.clause()),
        Presence::Here if computes_between => "computes, and calls MPI now and then".to_owned(),
        _ => return None,
    };
    let text = format!("{} for {}, which {what}", wait(finding.roots[0].holds_up), member.name);
    Some(text + &and_more(finding))
}

/// The same where no rank waits for another one by its name: for messages of any rank, or of itself.
fn without_names(job: &Waits, inside: &[bool], computes_between: impl Fn(usize) -> bool) -> String {
    let waiting: Vec<usize> = (0..inside.len()).filter(|place| inside[*place]).collect();
    let what = |place: &usize| {
        let own = |wait: &&Wait| wait.waiter == *place && wait.awaited == *place;
        let member = &job.members[*place];
        let text = match job.waits.iter().find(own) {
            Some(Wait { receive: Some(receive), .. }) => format!("for one of its own, {}", receive.text),
            Some(_) => "for room for a message to itself".to_owned(),
            None => {
                member.any.as_ref().map_or_else(String::new, |(receive, _)| format!("of any rank, {}", receive.text))
            }
        };
        format!("{} ({text})", member.name)
    };
    let mut named: Vec<String> = waiting.iter().take(NAMED_MOST).map(what).collect();
    if waiting.len() > NAMED_MOST {
        named.push(format!("{} more", waiting.len() - NAMED_MOST));
    }
    let mut text = format!("{} for messages that no rank sends: {}", wait(waiting.len()), named.join(", "));
    let others = (0..inside.len()).filter(|place| !inside[*place] && job.members[*place].presence.is_there());
    let others: Vec<usize> = others.collect();
    for place in others.iter().take(NAMED_MOST) {
        let member = &job.members[*place];
        text += &match member.presence {
            Presence::Away { time, at_least } => {
                format!("; {} {}{}", member.name, no_call(time, at_least), member.doing.clause())
            }
            _ if computes_between(*place) => format!("; {} computes, and calls MPI now and then", member.name),
            _ => format!("; {} is in its MPI", member.name),
        };
    }
    if others.len() > NAMED_MOST {
        text += &format!("; {} do something else, too", ranks(others.len() - NAMED_MOST));
    }
    text
}

fn wait(count: usize) -> String {
    if count == 1 { "1 rank waits".to_owned() } else { format!("{count} ranks wait") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::culprit::{Doing, Receive};
    use tidegate_message::WaitCause;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn receive(tag: u32) -> Receive {
        Receive { text: format!("tag {tag}, MPI_COMM_WORLD"), is_of_all: false }
    }

    /// A job in which nothing moves.
    struct Case {
        job: Waits,
        polls: Vec<RankPolls>,
        is_whole: bool,
    }

    impl Case {
        /// Ranks that are in their MPI and poll all the time, of which each waits for those given, for a minute.
        fn new(awaited: &[&[usize]]) -> Self {
            let member = |rank: usize| Member {
                name: format!("rank {rank}"),
                presence: Presence::Here,
                doing: Doing::Unknown,
                moves: false,
                any: None,
                unmatched: Vec::new(),
            };
            let wait = |waiter: usize, awaited: usize| Wait {
                waiter,
                awaited,
                cause: WaitCause::Message,
                share: 1.0,
                open_for: Some(seconds(60)),
                receive: Some(receive(77)),
            };
            let all = awaited.iter().enumerate();
            let waits = all.flat_map(|(waiter, awaited)| awaited.iter().map(move |awaited| wait(waiter, *awaited)));
            let members = (0..awaited.len()).map(member).collect();
            let polls = vec![RankPolls { computes: false, all_the_time: true }; awaited.len()];
            Case { job: Waits { members, waits: waits.collect() }, polls, is_whole: true }
        }

        fn away(mut self, rank: usize, doing: Doing) -> Self {
            self.job.members[rank].presence = Presence::Away { time: seconds(61), at_least: false };
            self.job.members[rank].doing = doing;
            self.job.waits.retain(|wait| wait.waiter != rank);
            self.polls[rank] = RankPolls { computes: false, all_the_time: false };
            self
        }

        fn is(mut self, rank: usize, presence: Presence) -> Self {
            self.job.members[rank].presence = presence;
            self.job.waits.retain(|wait| wait.waiter != rank);
            self
        }

        fn any(mut self, rank: usize) -> Self {
            self.job.members[rank].any = Some((receive(5), seconds(60)));
            self
        }

        fn polls_in_part(mut self, rank: usize, computes: bool) -> Self {
            self.polls[rank] = RankPolls { computes, all_the_time: false };
            self
        }

        fn in_part(self) -> Self {
            Case { is_whole: false, ..self }
        }

        /// The line, and whether the job can be ended.
        fn said(&self) -> (String, bool) {
            let verdict = judge(&self.job, &self.polls, self.is_whole);
            verdict.map_or_else(Default::default, |verdict| (verdict.line(seconds(60)), verdict.closed.is_some()))
        }
    }

    const RING: [&[usize]; 3] = [&[2], &[0], &[1]];
    const BARRIER: [&[usize]; 4] = [&[1], &[], &[1], &[1]];

    #[test]
    fn ranks_that_wait_for_each_other_are_told_and_may_be_ended() {
        let ring = "no message for 60 s, and all 3 ranks wait: rank 0 waits 60.0 s for a message of rank 2 (tag 77, \
                    MPI_COMM_WORLD), which waits for rank 1, which waits for rank 0; 3 ranks wait in all";
        assert_eq!(Case::new(&RING).said(), (ring.to_owned(), true));
        let any = "no message for 60 s, and all 3 ranks wait: 3 ranks wait for messages that no rank sends: rank 0 (of any \
                   rank, tag 5, MPI_COMM_WORLD), rank 1 (of any rank, tag 5, MPI_COMM_WORLD), 1 more";
        assert_eq!(Case::new(&[&[], &[], &[]]).any(0).any(1).any(2).said(), (any.to_owned(), true));
        let (one, is_closed) = Case::new(&[&[1], &[], &[0]]).any(1).said();
        assert!(
            is_closed && one.contains("rank 1 holds up 2 ranks") && one.contains("for a message of any rank"),
            "{one}"
        );
        let alone = "no message for 60 s, and its only rank waits: 1 rank waits for messages that no rank sends: rank 0 \
                     (for one of its own, tag 77, MPI_COMM_WORLD)";
        assert_eq!(Case::new(&[&[0]]).said(), (alone.to_owned(), true));
    }

    #[test]
    fn a_rank_that_does_something_else_is_named_and_the_job_not_ended() {
        for (doing, what) in [
            (Doing::Computes, " and computes"),
            (Doing::Sleeps, " and sleeps"),
            (Doing::Stopped, " and is stopped"),
            (Doing::Unknown, ""),
        ] {
            let expected =
                format!("no message for 60 s: 3 ranks wait for rank 1, which has not called MPI for 61.0 s{what}");
            assert_eq!(Case::new(&BARRIER).away(1, doing).said(), (expected, false));
        }
        let (two, is_closed) = Case::new(&[&[1], &[]]).away(1, Doing::Sleeps).said();
        assert!(!is_closed && two.starts_with("no message for 60 s: 1 rank waits for rank 1, which"), "{two}");
        // It has posted a receive from a rank that waits for it, and computes between its looks.
        let expected = "no message for 60 s: 2 ranks wait for rank 0, which computes, and calls MPI now and then";
        assert_eq!(Case::new(&RING).polls_in_part(0, true).said(), (expected.to_owned(), false));
        let expected = "no message for 60 s: 1 rank waits for messages that no rank sends: rank 0 (of any rank, tag 5, \
                        MPI_COMM_WORLD); rank 1 has not called MPI for 61.0 s and computes";
        let farm = Case::new(&[&[], &[]]).any(0).away(1, Doing::Computes);
        assert_eq!(farm.said(), (expected.to_owned(), false));
    }

    #[test]
    fn where_hardly_any_rank_waits_nothing_is_said() {
        let all_compute = Case::new(&[&[], &[], &[]]).away(0, Doing::Computes).away(1, Doing::Computes);
        let one_waits = Case::new(&[&[1], &[], &[]]).away(1, Doing::Computes).away(2, Doing::Computes);
        let all_left = Case::new(&[&[], &[]]).is(0, Presence::Ended).is(1, Presence::Ended);
        for case in [all_compute, one_waits, all_left, Case::new(&[])] {
            assert_eq!(case.said(), (String::new(), false));
        }
    }

    #[test]
    fn a_job_is_ended_only_if_all_of_it_is_seen_to_wait_all_the_time() {
        let but_for_one: [(&str, Case); 6] = [
            ("ranks on another host", Case::new(&RING).in_part()),
            ("one has polled for a part of the time", Case::new(&RING).polls_in_part(1, false)),
            ("one waits for nothing", Case::new(&[&[1], &[0], &[]])),
            ("one waits for a rank that has left", Case::new(&[&[1], &[0, 2], &[]]).is(2, Presence::Ended)),
            ("one waits for a rank that is gone", Case::new(&[&[1], &[0, 2], &[]]).is(2, Presence::Gone)),
            ("one may have gone on", Case::new(&[&[1], &[0], &[0]]).is(2, Presence::WentOn)),
        ];
        for (why, case) in but_for_one {
            let (line, is_closed) = case.said();
            assert!(!is_closed && line.starts_with("no message for 60 s: "), "{why}: {line}");
        }
        // Ranks that have left, and for which no rank waits, change nothing.
        assert!(Case::new(&[&[1], &[0], &[]]).is(2, Presence::Ended).said().1);
    }

    #[test]
    fn quiet_times_read_well() {
        assert_eq!([2, 60, 99, 125].map(|time| quiet_time(seconds(time))), ["2 s", "60 s", "99 s", "2 min 5 s"]);
    }
}
