use super::*;
use crate::recording::Values;
use crate::recording::facts::{EndpointFacts, Posted};
use crate::recording::rows::OpenKind;
use crate::recording::testing::{Made, endpoint, values};
use tidegate_link::stats::WaitCause;

const SECOND: u64 = 1_000_000_000;
const MIB: u64 = 1 << 20;
const POSTED: Posted = Posted { packets: 37, each: 10, most: 100, pool_first: 8, pool_most: 64 };

/// Counters of a rank that sent 10,000 messages of 1 KiB in 19 packets each, and kept within its memory.
fn busy(more: &[(Counter, u64)]) -> Values {
    let usual = [
        (Counter::PacketsSent, 190_000),
        (Counter::MessagesEager, 10_000),
        (Counter::BytesSent, 10_240_000),
        (Counter::MailboxBytes, 20 * 64 * 64),
        (Counter::ReceiveBound, 64 * MIB),
        (Counter::ReceiveFixedBytes, 200 << 10),
        (Counter::ReceivePeak, 40 * MIB),
    ];
    values(&[&usual, more].concat())
}

/// Four ranks under a scheme, all busy, and the counters of rank 1 besides.
fn four(scheme: &str, of_rank_1: &[(Counter, u64)]) -> View {
    four_with(scheme, of_rank_1, |_| {})
}

fn four_with(scheme: &str, of_rank_1: &[(Counter, u64)], change: impl Fn(&mut Made)) -> View {
    let posts = ["rnr", "preposted", "growing", "shared_window"].contains(&scheme);
    let of = |rank| EndpointFacts { scheme: scheme.into(), posted: posts.then_some(POSTED), ..endpoint(rank) };
    let mut made = Made::of((0..4).map(of));
    change(&mut made);
    made.view(&[busy(&[]), busy(of_rank_1), busy(&[]), busy(&[])])
}

fn ids(advice: &Advice) -> Vec<&str> {
    advice.points.iter().map(|point| point.id).collect()
}

/// The advice must have this point alone; returns it.
fn only(advice: &Advice, id: &str) -> Point {
    assert_eq!(ids(advice), [id], "{}", advice.paragraph());
    advice.points[0].clone()
}

#[test]
fn a_run_in_which_nothing_waited_is_left_alone() {
    let point = only(&advise(&four("dynamic", &[])), "nothing_waited");
    assert!(point.options.is_empty() && point.text.contains("nothing to change"), "{}", point.text);
    assert_eq!(point.evidence.len(), 4);
}

#[test]
fn a_little_waiting_is_no_reason_to_change_anything() {
    // 0.1 of 10 s.
    let run = four("static", &[(Counter::SendsDelayed, 1), (Counter::DelayNanoseconds, SECOND / 10)]);
    let point = only(&advise(&run), "little_waited");
    assert_eq!(
        point.text,
        "1 send waited, but no process for more than 1.0 % of the run: there is nothing to change in flow control."
    );
}

#[test]
fn a_run_without_messages_gets_no_advice() {
    let run = Made::new(2).view(&[values(&[]), values(&[])]);
    assert!(only(&advise(&run), "nothing_sent").options.is_empty());
}

const WAITED: [(Counter, u64); 2] = [(Counter::SendsDelayed, 3_000), (Counter::DelayNanoseconds, 4 * SECOND)];

#[test]
fn waiting_for_static_credits_asks_for_more_slots_or_dynamic() {
    let point = only(&advise(&four("static", &WAITED)), "credits");
    assert_eq!(point.options, ["--scheme dynamic", "--slots 128"]);
    assert!(
        point.text.starts_with(
            "3,000 sends of 40,000 messages had to wait for credits, those of rank 1 for 4.00 s of a run of 10.0 s."
        ),
        "{}",
        point.text
    );
    let to_several = [(Counter::SendsDelayed, 3_000), (Counter::DelayNanoseconds, 40 * SECOND)];
    let text = only(&advise(&four("static", &to_several)), "credits").text.clone();
    assert!(text.contains("those of rank 1 for 40.0 s together in a run of 10.0 s."), "{text}");
    // A mailbox of 80 KiB becomes one of 160 KiB.
    assert!(point.text.contains("--slots 128 lets as many more packets be under way and takes 80.0 KiB more memory"));
    assert!(point.evidence.iter().any(|evidence| evidence.name == "delay_ns" && evidence.of == "rank 1"));
}

#[test]
fn where_few_pairs_wait_the_slots_of_others_lie_idle() {
    let between = |pairs: &'static [(u32, u32)]| {
        move |made: &mut Made| pairs.iter().for_each(|(from, to)| made.wait(*from, *to, WaitCause::Credits, 1.0))
    };
    let few = advise(&four_with("static", &WAITED, between(&[(1, 2), (2, 1)])));
    assert!(few.paragraph().contains("Few pairs of processes waited") && few.options()[0] == "--scheme dynamic");
    let all: &[(u32, u32)] =
        &[(0, 1), (0, 2), (0, 3), (1, 0), (1, 2), (1, 3), (2, 0), (2, 1), (2, 3), (3, 0), (3, 1), (3, 2)];
    let advice = advise(&four_with("static", &WAITED, between(all)));
    assert_eq!(advice.options(), ["--slots 128"], "dynamic has nothing to move: {}", advice.paragraph());
    let advice = advise(&four_with("dynamic", &WAITED, between(all)));
    assert_eq!(advice.options(), ["--scheme static", "--slots 128"], "{}", advice.paragraph());
    let advice = advise(&four_with("dynamic", &WAITED, between(&[(1, 2), (2, 1)])));
    assert_eq!(advice.options(), ["--slots 128"]);
}

#[test]
fn messages_that_do_not_fit_a_share_of_slots_say_how_many_do() {
    let mut made =
        Made::of((0..2).map(|rank| EndpointFacts { slots_per_peer: 8, scheme: "static".into(), ..endpoint(rank) }));
    made.facts.command = vec!["x".into()];
    let run = made.view(&[busy(&WAITED), busy(&[])]);
    let advice = advise(&run);
    // 19 packets and 2 slots for credits.
    assert!(advice.options().contains(&"--slots 64"), "{:?}", advice.options());
    assert!(advice.paragraph().contains("A message takes 19 packets in the mean, and a sender has 6 slots"));
}

#[test]
fn posted_buffers_have_advice_of_their_own() {
    let refused = [(Counter::Refusals, 5_000), (Counter::Retries, 5_000)];
    let point = only(&advise(&four("rnr", &refused)), "refusals");
    assert_eq!(point.options, ["--buffers 100", "--scheme dynamic"]);
    let few = [(Counter::Refusals, 50), (Counter::Retries, 50)];
    assert_eq!(ids(&advise(&four("rnr", &few))), ["little_waited"], "50 of 40,000 messages are too few to matter");
    let grew = [&refused[..], &[(Counter::LimitEvents, 3)]].concat();
    assert_eq!(only(&advise(&four("shared_window", &grew)), "refusals").options, ["--pool-first 32"]);
    assert_eq!(only(&advise(&four("shared_window", &refused)), "refusals").options, ["--pool-most 128"]);
    assert_eq!(only(&advise(&four("preposted", &WAITED)), "credits").options, ["--buffers 20"]);
    let denied = [&WAITED[..], &[(Counter::GrowthsDenied, 9)]].concat();
    assert_eq!(only(&advise(&four("growing", &denied)), "credits").options, ["--buffers-most 200"]);
    assert_eq!(only(&advise(&four("growing", &WAITED)), "credits").options, ["--buffers 20"]);
}

#[test]
fn full_mailboxes_without_credits_ask_for_credits() {
    let full = [(Counter::MailboxFull, 90_000), (Counter::SendsDelayed, 4), (Counter::DelayNanoseconds, 5 * SECOND)];
    let point = only(&advise(&four("none", &full)), "mailbox_full");
    assert_eq!(point.options, ["--scheme dynamic", "--slots 128"]);
}

#[test]
fn receive_memory_that_had_no_room_says_how_much_more_has() {
    let pressed =
        [(Counter::PressureNanoseconds, 2 * SECOND), (Counter::EnvelopesDropped, 500), (Counter::SendsDeferred, 1_000)];
    let point = only(&advise(&four("dynamic", &pressed)), memory::NO_ROOM);
    // 1,000 sends of 1 KiB and an envelope are 1.2 MiB; four times that and 64 MiB are 69.
    assert_eq!(point.options, ["--rx-memory 69M"]);
    assert!(
        point.text.starts_with("1,000 sends stayed with their senders because rank 1 had no room"),
        "{}",
        point.text
    );
    assert!(
        point.text.contains("rank 1 under pressure for 2.00 s (20 % of the run)")
            && point.text.contains("1.22 MiB in all"),
        "{}",
        point.text
    );
    let flood = [(Counter::PressureNanoseconds, 2 * SECOND), (Counter::SendsDeferred, 1_000_000)];
    let point = only(&advise(&four("dynamic", &flood)), memory::NO_ROOM);
    assert_eq!(point.options, ["--rx-memory 128M"], "not more than twice the bound at a time");
}

#[test]
fn one_rank_that_holds_up_the_others_is_named_and_flow_control_is_not_blamed() {
    let slow = |made: &mut Made| {
        [0, 1, 2].iter().for_each(|rank| made.wait(*rank, 3, WaitCause::Credits, 8.0));
        made.wait(3, 0, WaitCause::Credits, 0.5);
    };
    let advice = advise(&four_with("static", &WAITED, slow));
    let point = only(&advice, "held_up");
    assert!(point.options.is_empty());
    assert_eq!(
        point.text,
        "Rank 3 held up the others: all 3 others waited for it, mostly for credits, 24.0 s together, which is 98 % of all \
         waiting in the job, while it waited 500 ms for others itself. So look first at what rank 3 does between its \
         receives, or why all send to it at once: more room only lets the others run further ahead of it."
    );
    assert_eq!(point.headline, "rank 3 receives too slowly: all 3 others waited, up to 80 % of the time, for credits");
    // Settings that are worse than the usual ones are said besides.
    let few = |slots, more: &[(Counter, u64)], scheme: &str| {
        let of = |rank| EndpointFacts {
            slots_per_peer: slots,
            scheme: scheme.into(),
            posted: Some(POSTED),
            ..endpoint(rank)
        };
        let mut made = Made::of((0..4).map(of));
        slow(&mut made);
        let advice = advise(&made.view(&[busy(&[]), busy(&[&WAITED[..], more].concat()), busy(&[]), busy(&[])]));
        (ids(&advice).join(" "), advice.changes().join(" "))
    };
    assert_eq!(few(4, &[], "static"), ("few_slots held_up".into(), "--slots 64".into()));
    let full = [(Counter::MailboxFull, 5_000)];
    assert_eq!(few(4, &full, "speculative"), ("mailbox_full held_up".into(), "--pool-slots 256".into()), "64 slots");
    let refused = [(Counter::Refusals, 5_000)];
    assert_eq!(few(64, &refused, "rnr"), ("refusals held_up".into(), "--buffers 100 --scheme dynamic".into()));
}

#[test]
fn a_rank_that_is_late_with_its_messages_is_named_and_not_the_next_in_the_chain() {
    const TOLD: [(Counter, u64); 2] = [(Counter::PacketsSent, 90), (Counter::MessagesEager, 90)];
    let of = |seconds: f64| values(&[&TOLD[..], &[(Counter::WaitNanoseconds, (seconds * 1e9) as u64)]].concat());
    // 2 waits for 0, which waits for 1, as in a reduction in steps.
    let chain = |waited: [f64; 4]| {
        let mut made = Made::new(4);
        [(0, 1), (2, 0), (3, 1)].iter().for_each(|(from, to)| made.wait(*from, *to, WaitCause::Message, 9.0));
        advise(&made.view(&waited.map(of)))
    };
    let point = only(&chain([9.0, 0.1, 9.0, 9.0]), "late");
    assert_eq!(point.headline, "rank 1 is late: all 3 others waited for its messages, up to 90 % of the time");
    assert!(point.text.contains("one of them by way of others") && point.options.is_empty(), "{}", point.text);
    // One that waits as much itself, for whomever, is not.
    assert_eq!(only(&chain([9.0, 8.0, 9.0, 9.0]), "waiting").options, Vec::<String>::new());
    // One of three waits for it: that is no reason why the others are slow, though it waits least.
    let mut made = Made::new(4);
    made.wait(0, 1, WaitCause::Message, 9.0);
    only(&advise(&made.view(&[9.0, 0.1, 9.0, 9.0].map(of))), "uneven");
    // All wait for each other in turns, and one less than all others.
    let even = |least: f64| {
        let mut made = Made::new(4);
        (0..4).for_each(|from| {
            (0..4).filter(|to| *to != from).for_each(|to| made.wait(from, to, WaitCause::Message, 1.0))
        });
        advise(&made.view(&[3.0, least, 3.0, 3.1].map(of)))
    };
    let said = only(&even(2.9), "waiting").headline;
    assert_eq!(said, "ranks waited 30 % of the time for each other's messages: none much more than the others");
    let said = only(&even(0.2), "uneven").headline;
    assert_eq!(said, "work is uneven: rank 1 waited least for messages, 2.0 % of its time, and rank 3 most, 31 %");
    let calm = only(&advise(&Made::new(2).view(&[0.1, 0.3].map(of))), "nothing_waited").headline;
    assert_eq!(calm, "nothing held up this job: ranks waited 2.0 % of the time for messages");
    // More ranks than processors.
    let mut made = Made::new(4);
    (made.facts.host, made.facts.processors) = ("here".into(), Some(2));
    let said = only(&advise(&made.view(&[3.0; 4].map(of))), "waiting").headline;
    assert!(said.ends_with("none much more than the others (4 ranks share 2 processors)"), "{said}");
}

#[test]
fn who_waits_for_somebody_else_is_not_to_blame() {
    // 0 and 1 wait for 2, which waits for 3 all the time: `tidegate top` would name 3, too.
    let chain = |made: &mut Made| {
        [(0, 2), (1, 2)].iter().for_each(|(from, to)| made.wait(*from, *to, WaitCause::Pull, 9.0));
        made.wait(2, 3, WaitCause::Pull, 9.0);
    };
    let run = four_with("dynamic", &[], chain);
    let held = held_up(&run).expect("the chains end somewhere");
    assert_eq!((held.process, &held.waiters[..], held.direct, held.own_ns), (3, &[0, 1, 2][..], 1, 0));
    assert_eq!((held.waited_ns, held.share), (27 * SECOND, 1.0));
    let text = only(&advise(&run), "held_up").text;
    assert!(
        text.starts_with("Rank 3 held up the others: all 3 others waited for it, 2 of them by way of others,"),
        "{text}"
    );
    // Two that wait for each other do so not because of the third, for which one of them waits as well.
    let apart = |made: &mut Made| {
        [(0, 1), (2, 3)].iter().for_each(|(from, to)| made.wait(*from, *to, WaitCause::Credits, 3.0));
        made.wait(1, 0, WaitCause::Credits, 2.0);
        made.wait(0, 3, WaitCause::Credits, 1.6);
    };
    assert_eq!(held_up(&four_with("dynamic", &[], apart)), None);
    let even = |made: &mut Made| {
        (0..4).for_each(|from| {
            (0..4).filter(|to| *to != from).for_each(|to| made.wait(from, to, WaitCause::Credits, 1.0))
        });
    };
    assert_eq!(held_up(&four_with("dynamic", &[], even)), None);
    let short = |made: &mut Made| (0..3).for_each(|from| made.wait(from, 3, WaitCause::Credits, 0.01));
    assert_eq!(held_up(&four_with("dynamic", &[], short)), None, "0.1 % of the run");
}

#[test]
fn unfinished_work_is_said_first() {
    let never_sent = |made: &mut Made| made.open(2, OpenKind::Receive, Some(0), None, 6.0);
    let advice = advise(&four_with("dynamic", &[], never_sent));
    assert_eq!(
        only(&advice, "unfinished").text,
        "At the end rank 2 had waited for 6.00 s for a message of rank 0 (tag 7), and rank 0 had no unfinished send to it: \
         look at who was to send it."
    );
    let found = |made: &mut Made| {
        never_sent(made);
        made.last.held_up = Some("rank 2 waits 6.0 s for a message of rank 0 (tag 7)".into());
    };
    let text = only(&advise(&four_with("dynamic", &[], found)), "unfinished").text;
    assert_eq!(text, "At the end rank 2 waits 6.0 s for a message of rank 0 (tag 7): look there first.");
    let stuck = |made: &mut Made| {
        made.open(1, OpenKind::Send, Some(3), Some(WaitCause::Credits), 5.0);
        made.open(0, OpenKind::Receive, Some(1), None, 7.0);
    };
    let text = advise(&four_with("dynamic", &[], stuck)).paragraph();
    assert!(text.starts_with(
        "At the end a send of rank 1 to rank 3 (tag 7) had not ended for 5.00 s, which waited for credits"
    ));
    let interrupted = |made: &mut Made| made.open(1, OpenKind::Send, Some(3), Some(WaitCause::Credits), 0.05);
    assert!(!advise(&four_with("dynamic", &[], interrupted)).has("unfinished"), "any job has such a send");
}

#[test]
fn what_was_lost_is_said_before_all_else() {
    let advice = advise(&four("dynamic", &[(Counter::SendsLost, 3), (Counter::PeersDied, 1)]));
    assert!(advice.points[0].id == "lost" && advice.paragraph().contains("3 messages that counted as sent"));
}

#[test]
fn peers_that_died_of_the_signal_for_all_ranks_do_not_hide_what_hung() {
    let hung = |was_ended, lost| {
        four_with("dynamic", &[(Counter::PeersDied, 2), (Counter::SendsLost, lost)], |made| {
            made.facts.end.as_mut().unwrap().failure.was_ended = was_ended;
            made.open(0, OpenKind::Receive, Some(1), None, 3.0);
        })
    };
    assert_eq!(ids(&advise(&hung(true, 0)))[0], "unfinished");
    assert!(!advise(&hung(true, 0)).has("lost"));
    assert_eq!(ids(&advise(&hung(true, 3)))[0], "lost");
    assert_eq!(ids(&advise(&hung(false, 0)))[0], "lost");
}

#[test]
fn totals_of_damaged_samples_are_not_those_of_the_run() {
    let mut run = four("dynamic", &[]);
    run.is_torn = true;
    let advice = advise(&run);
    assert_eq!(advice.points[0].id, "incomplete");
    assert!(advice.paragraph().starts_with("The recording is not complete (its samples are damaged): "), "{advice:?}");
}

#[test]
fn a_recording_without_its_last_rows_says_so_before_all_else() {
    let mut run = four("dynamic", &[]);
    run.lacks_last = true;
    let advice = advise(&run);
    assert_eq!(advice.points[0].id, "incomplete");
    assert!(advice.paragraph().starts_with("The recording is not complete (last.json is missing): "), "{advice:?}");
}

#[test]
fn a_network_that_loses_is_named() {
    let point = only(
        &advise(&four("dynamic", &[(Counter::BatchesSent, 1_000), (Counter::BatchesResent, 50)])),
        "network_resends",
    );
    assert!(point.text.contains("Of 1,000 batches to other hosts 50 were sent again (5.0 %)"), "{}", point.text);
    assert!(
        !advise(&four("dynamic", &[(Counter::BatchesSent, 1_000), (Counter::BatchesResent, 5)])).has("network_resends")
    );
}

#[test]
fn memory_that_nobody_used_could_be_lowered_to_what_certainly_suffices() {
    let small = |peak: u64| {
        let mut values = busy(&[]);
        values[Counter::ReceivePeak as usize] = (200 << 10) + peak;
        Made::new(2).view(&[values, values])
    };
    // 20 peers, half of the free memory shared equally, and a share of at least four messages of 2 KiB and envelopes.
    let advice = advise(&small(0));
    assert_eq!((ids(&advice), advice.options()), (vec!["nothing_waited", "memory_unused"], vec!["--rx-memory 576k"]));
    let advice = advise(&small(100 << 10));
    assert_eq!(advice.options(), ["--rx-memory 4224k"]);
    assert!(!advise(&small(2 * MIB)).has("memory_unused"), "80 MiB would be more than there is");
    let mut run = small(0);
    let mut hung = small(0);
    let waiting = crate::recording::rows::OpenRow {
        kind: OpenKind::Receive,
        peer: None,
        tag: "tag 7".into(),
        bytes: 8,
        age_ns: SECOND,
        waits_for: None,
    };
    (hung.all_ended, hung.open) = (false, vec![crate::recording::view::Open { process: 0, peer: None, row: waiting }]);
    assert_eq!(ids(&advise(&hung)), ["unfinished"], "a job that hung has not shown what it needs");
    run.processes[0].values[Counter::SendsDeferred as usize] = 1;
    assert!(!advise(&run).has("memory_unused"), "a run that deferred sends used its memory");
}

#[test]
fn two_rules_that_want_one_option_give_one() {
    let point = |id, option: &str| Point {
        id,
        headline: String::new(),
        text: String::new(),
        options: vec![option.into()],
        evidence: Vec::new(),
    };
    let advice = Advice {
        points: vec![point("a", "--slots 128"), point("b", "--slots 32"), point("c", "--rx-memory 1M")],
        stuck: None,
    };
    assert_eq!(advice.options(), ["--slots 128", "--rx-memory 1M"]);
}
