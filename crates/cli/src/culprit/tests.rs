//! Jobs as people have them, and what is said of them.

use super::*;
use tidegate_message::WaitCause;

fn member(rank: usize) -> Member {
    let name = format!("rank {rank}");
    let (presence, doing) = (Presence::Here, Doing::Unknown);
    Member { name, presence, doing, moves: false, any: None, unmatched: Vec::new() }
}

fn job(size: usize, waits: Vec<Wait>) -> Waits {
    Waits { members: (0..size).map(member).collect(), waits }
}

fn seconds(seconds: f64) -> Option<Duration> {
    Some(Duration::from_secs_f64(seconds))
}

/// A send that waits for a part of the time, and goes on waiting for this many seconds.
fn send(waiter: usize, awaited: usize, share: f64, open_for: f64) -> Wait {
    Wait { waiter, awaited, cause: WaitCause::Credits, share, open_for: seconds(open_for), receive: None }
}

/// A receive that has waited for this many seconds.
fn receive(waiter: usize, awaited: usize, tag: u64, open_for: f64) -> Wait {
    let receive = Some(Receive { text: format!("tag {tag}"), is_of_all: false });
    Wait { waiter, awaited, cause: WaitCause::Message, share: 1.0, open_for: seconds(open_for), receive }
}

fn said(job: &Waits) -> String {
    sentence(job, &find(job))
}

#[test]
fn nobody_waits() {
    assert_eq!(said(&job(4, vec![])), "no rank holds up another one");
    assert_eq!(said(&job(4, vec![send(0, 1, 0.01, 0.001)])), "no rank holds up another one", "too little to count");
}

#[test]
fn one_slow_receiver_among_sixteen() {
    // The receiver computes, and waits now and then for those that wait for it.
    let mut waits: Vec<Wait> = (0..16).filter(|rank| *rank != 5).map(|rank| send(rank, 5, 0.9, 4.1)).collect();
    waits.extend((0..16).filter(|rank| *rank != 5).map(|rank| send(5, rank, 0.05, 0.01)));
    let mut job = job(16, waits);
    job.members[5].presence = Presence::Away { time: Duration::from_millis(4200), at_least: false };
    let found = find(&job);
    assert_eq!((found.roots[0].end.clone(), found.roots[0].holds_up, found.waiting), (End::Rank(5), 15, 16));
    assert_eq!(
        sentence(&job, &found),
        "rank 5 holds up 15 ranks, longest 4.1 s: they wait for its credits; it has not called MPI for 4.2 s"
    );
    job.members[5].doing = Doing::Stopped;
    assert!(sentence(&job, &found).ends_with("for 4.2 s and is stopped"), "{}", sentence(&job, &found));
}

#[test]
fn the_last_of_a_row_is_to_blame() {
    // A pipeline: each waits for the next, and the last for nobody.
    let waits = (0..9).map(|rank| send(rank, rank + 1, 0.8, 0.5)).collect();
    let found = find(&job(10, waits));
    assert_eq!((found.roots.len(), found.roots[0].end.clone(), found.roots[0].holds_up), (1, End::Rank(9), 9));
    assert!((found.roots[0].weight - 7.2).abs() < 1e-9);
}

#[test]
fn who_waits_little_does_not_pass_the_blame_on() {
    // Rank 1 is waited for nearly always, and waits for rank 2 a fifth of the time.
    let found = find(&job(3, vec![send(0, 1, 0.9, 1.0), send(1, 2, 0.2, 0.1)]));
    assert_eq!(found.roots[0].end, End::Rank(1));
    let found = find(&job(3, vec![send(0, 1, 0.9, 1.0), send(1, 2, 0.6, 0.1)]));
    assert_eq!((found.roots[0].end.clone(), found.roots[0].holds_up), (End::Rank(2), 2));
}

/// A barrier of eight by dissemination into which rank 3 does not come: it waits for a message of rank 0.
fn barrier_without_rank_3() -> Waits {
    let rounds = [(4, 3), (5, 3), (6, 4), (7, 5), (0, 4), (1, 5), (2, 6)];
    let mut waits: Vec<Wait> =
        rounds.iter().map(|(waiter, awaited)| receive(*waiter, *awaited, 1 << 40, 12.0)).collect();
    waits.push(receive(3, 0, 77, 12.1));
    job(8, waits)
}

#[test]
fn a_tag_that_was_never_sent_is_found_among_those_who_wait_in_a_collective_call() {
    let mut job = barrier_without_rank_3();
    let End::Circle { ranks, ring: true, odd: Some(odd) } = find(&job).roots[0].end.clone() else {
        panic!("{:?}", find(&job))
    };
    assert_eq!((ranks, job.waits[odd].waiter), (vec![3, 0, 4], 3));
    assert_eq!(
        said(&job),
        "rank 3 waits 12.1 s for a message of rank 0 (tag 77), which waits for rank 4, which waits for rank 3; 8 ranks wait in all"
    );
    let of = |from: usize, text: &str| Unmatched { from: Some(from), text: text.into() };
    job.members[3].unmatched = vec![of(1, "tag 1"), of(0, "tag 78")];
    let end = "; a message of rank 0 with tag 78 is there, which no receive of rank 3 accepts";
    assert!(said(&job).ends_with(end), "{}", said(&job));
}

#[test]
fn of_two_that_wait_for_each_other_the_one_in_a_collective_call_is_the_usual_one() {
    let mut job = job(2, vec![receive(0, 1, 1 << 40, 9.0), receive(1, 0, 77, 8.0)]);
    job.waits[0].receive.as_mut().expect("it is one").is_of_all = true;
    assert!(said(&job).starts_with("rank 1 waits 8.0 s for a message of rank 0 (tag 77)"), "{}", said(&job));
}

#[test]
fn a_wait_by_which_no_blame_goes_on_is_not_what_a_circle_begins_with() {
    let mut job = barrier_without_rank_3();
    job.waits.push(Wait { share: 0.1, ..receive(3, 4, 99, 20.0) });
    assert!(
        said(&job).starts_with("rank 3 waits 12.1 s for a message of rank 0 (tag 77), which waits for rank 4,"),
        "{}",
        said(&job)
    );
}

#[test]
fn a_tag_that_was_never_sent_is_found_while_its_sender_goes_on() {
    let mut job = job(6, vec![receive(3, 0, 77, 9.0), receive(4, 3, 5, 8.0), receive(5, 4, 5, 8.0)]);
    job.members[0].moves = true;
    let found = find(&job);
    assert_eq!((found.roots[0].end.clone(), found.roots[0].holds_up), (End::Unsent { rank: 3, wait: 0 }, 2));
    assert_eq!(
        sentence(&job, &found),
        "rank 3 waits 9.0 s for a message of rank 0 (tag 77), which goes on and has not sent it; 2 ranks wait for rank 3"
    );
    // What the sender exchanges with another meanwhile, and a second receive of the same rank, change nothing.
    job.waits.extend([receive(1, 0, 5, 0.001), receive(3, 0, 76, 8.5)]);
    job.waits[3].share = 0.001;
    assert_eq!(find(&job).roots[0].end, End::Unsent { rank: 3, wait: 0 });
    // Others wait for messages of rank 0 as well: it is slow, and no message is missing.
    job.waits.push(receive(2, 0, 77, 4.0));
    assert_eq!(find(&job).roots[0].end, End::Rank(0));
}

#[test]
fn a_receive_from_any_rank_ends_a_chain() {
    let mut job = job(4, vec![receive(1, 0, 5, 7.0), receive(2, 0, 5, 7.0), receive(3, 0, 5, 7.0)]);
    job.members[0].any = Some((Receive { text: "tag 9".into(), is_of_all: false }, Duration::from_secs(8)));
    assert_eq!(
        said(&job),
        "rank 0 holds up 3 ranks, longest 7.0 s: they wait for messages from it; it waits itself, 8.0 s, for a message \
         of any rank (tag 9)"
    );
}

#[test]
fn an_all_to_all_with_few_slots_has_no_culprit() {
    let all = |size: usize| (0..size).flat_map(move |a| (0..size).filter(move |b| *b != a).map(move |b| (a, b)));
    let waits = all(16).map(|(a, b)| send(a, b, 0.3 + 0.01 * ((a * 7 + b) % 5) as f64, 0.02)).collect();
    let mut job = job(16, waits);
    let nobody = "16 ranks wait for each other, up to 34 % of the time, for credits: none of them stands out";
    assert_eq!(said(&job), nobody);
    // At the moment of a look they wait for messages of the same call, too, as all do that exchange something.
    let posted = (0..16).map(|rank| Wait { share: 0.2, ..receive(rank, (rank + 1) % 16, 9, 0.02) });
    job.waits.extend(posted);
    assert_eq!(said(&job), nobody, "in a job that has just ended nobody knows who goes on");
    job.members.iter_mut().for_each(|member| member.moves = true);
    job.waits.iter_mut().for_each(|wait| wait.open_for = seconds(0.2));
    assert_eq!(said(&job), nobody);
}

#[test]
fn the_dead_hold_up_whom_they_left() {
    let mut job = job(4, vec![send(0, 2, 1.0, 3.0), receive(1, 2, 5, 3.0)]);
    job.members[2].presence = Presence::Gone;
    assert_eq!(said(&job), "rank 2 holds up 2 ranks, longest 3.0 s: they wait for its credits; its process is gone");
    job.members[2].presence = Presence::Ended;
    assert!(said(&job).ends_with("; it has left MPI"));
}

#[test]
fn several_culprits_come_in_order_of_what_they_cost() {
    let job = job(6, vec![send(0, 1, 0.3, 0.1), send(2, 5, 0.9, 2.0), send(3, 5, 0.9, 1.0), send(4, 4, 1.0, 9.0)]);
    let found = find(&job);
    assert_eq!(found.roots.iter().map(|root| root.end.clone()).collect::<Vec<_>>(), [End::Rank(5), End::Rank(1)]);
    assert!(sentence(&job, &found).ends_with("(and 1 more, for 1 rank)"), "{}", sentence(&job, &found));
}

#[test]
fn a_job_of_a_thousand_ranks_that_all_wait_is_no_trouble() {
    // Each for 256 others, and a chain through all of them.
    let size = 1024;
    let mut waits: Vec<Wait> = (0..size - 1).map(|rank| send(rank, rank + 1, 1.0, 1.0)).collect();
    waits.extend((0..size).flat_map(|rank| (2..257).map(move |far| send(rank, (rank + far) % size, 0.2, 0.1))));
    let found = find(&job(size, waits));
    assert_eq!((found.roots[0].end.clone(), found.roots[0].holds_up), (End::Rank(size - 1), size - 1));
}

#[test]
fn waits_of_ranks_that_are_not_there_are_passed_over() {
    assert_eq!(find(&job(2, vec![send(0, 7, 1.0, 1.0), send(7, 0, 1.0, 1.0)])), Finding::default());
}

#[test]
fn ages_read_well() {
    let times = [0.0, 0.25, 4.14, 99.96, 125.0, 11_220.0];
    let ages: Vec<String> = times.iter().map(|time| age(Duration::from_secs_f64(*time))).collect();
    assert_eq!(ages, ["0 ms", "250 ms", "4.1 s", "100.0 s", "2 min 5 s", "3 h 7 min"]);
}
