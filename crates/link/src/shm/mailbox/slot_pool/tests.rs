//! A pool of slots in one process, step by step.

use super::fixture::Shared;
use super::*;

fn at(microseconds: u64) -> Instant {
    Instant::default() + Duration::from_micros(microseconds)
}

/// A pool with some senders, all of whose slots the first has taken.
fn full(senders: u32, size: u64) -> (std::sync::Arc<Shared>, SlotPool, Vec<SlotTaker>) {
    let shared = Shared::new(senders);
    let pool = shared.pool(size);
    let mut takers: Vec<SlotTaker> = (0..senders).map(|peer| shared.taker(peer)).collect();
    assert_eq!(u64::from(takers[0].take(u32::MAX)), size);
    (shared, pool, takers)
}

#[test]
fn a_writer_takes_what_it_wants_or_what_there_is() {
    let shared = Shared::new(2);
    let (mut pool, mut taker) = (shared.pool(8), shared.taker(0));
    assert_eq!([3, 3, 3].map(|count| taker.take(count)), [3, 3, 2]);
    assert!(!taker.poll_news() && pool.counts() == [0, 0, 0]);
    pool.give(2);
    assert_eq!((taker.take(1), shared.free(), pool.has_waiting()), (1, 1, false));
}

#[test]
fn a_sender_that_finds_no_slot_is_marked_and_invited_when_there_are_as_many_as_it_has_use_for() {
    let (shared, mut pool, mut takers) = full(3, 8);
    assert_eq!((takers[1].take(3), takers[2].take(100)), (0, 0));
    assert!(takers[1].poll_news() && !takers[1].poll_news(), "the receiver is woken once");
    assert_eq!((shared.mark_of(1), shared.mark_of(2)), (Mark::Waiting(3), Mark::Waiting(100)));
    pool.give(2);
    assert_eq!((takers[1].take(3), pool.counts(), pool.stride()), (0, [0, 0, 2], 1));
    assert_eq!(takers[0].take(1), 0, "no slot that comes free goes to a sender that is not marked");
    pool.give(1);
    assert_eq!((shared.mark_of(1), takers[2].take(100)), (Mark::Kept(3), 0));
    assert_eq!([takers[1].take(2), takers[1].take(2)], [2, 1], "what it does not need now stays its own");
    assert_eq!((takers[1].take(1), shared.mark_of(1)), (0, Mark::Waiting(1)), "behind the others");
    pool.give(4);
    assert_eq!((shared.mark_of(2), shared.mark_of(0)), (Mark::Kept(4), Mark::Waiting(1)), "half of the pool");
    pool.give(4);
    assert_eq!((shared.mark_of(0), shared.mark_of(1), pool.counts()), (Mark::Kept(1), Mark::Kept(1), [2, 6, 0]));
}

#[test]
fn slots_are_given_back_in_batches_unless_a_sender_waits() {
    let (_shared, mut pool, mut takers) = full(2, 64);
    assert_eq!((pool.stride(), pool.has_waiting()), (8, false));
    assert_eq!(takers[1].take(1), 0);
    assert!(pool.has_waiting() && pool.has_new_marks());
    pool.give(1);
    assert_eq!((takers[1].take(1), pool.has_waiting()), (1, false));
    for (size, batch, most) in [(1, 1, 1), (2, 1, 1), (16, 2, 8), (4096, 64, 64)] {
        let pool = Shared::new(1).pool(size);
        assert_eq!((pool.batch(), pool.most()), (batch, most), "{size}");
    }
}

#[test]
fn slots_that_are_kept_too_long_go_to_others_and_a_sender_that_is_late_is_given_more_time() {
    let (shared, mut pool, mut takers) = full(3, 1);
    let mut start = 0;
    for misses in 0..4 {
        assert_eq!((takers[1].take(1), takers[2].take(1)), (0, 0));
        pool.give(1);
        pool.look(at(start));
        assert_eq!((shared.mark_of(1), pool.may_revoke()), (Mark::Kept(1), true));
        pool.look(at(start + (1000 << misses) - 1));
        assert_eq!(shared.mark_of(1), Mark::Kept(1), "not yet");
        pool.look(at(start + (1000 << misses)));
        assert_eq!((shared.mark_of(1), shared.mark_of(2)), (Mark::None, Mark::Kept(1)));
        assert_eq!(takers[2].take(1), 1);
        start += 10_000;
    }
    assert_eq!(takers[1].take(1), 0, "it is marked again");
    pool.give(1);
    assert_eq!(takers[1].take(1), 1, "this time it came");
    assert_eq!((takers[1].take(1), takers[2].take(1)), (0, 0));
    pool.give(1);
    pool.look(at(start));
    pool.look(at(start + 1000));
    assert_eq!(shared.mark_of(2), Mark::Kept(1), "and is trusted no more than others");
}

/// A sender that calls once in ten seconds, beside one that takes all that is free: it is late once, and then a single
/// slot waits for it, while the other goes on with the rest.
#[test]
fn a_sender_that_calls_seldom_is_served_each_time_and_costs_the_others_one_slot() {
    let (shared, mut pool, mut takers) = full(3, 4);
    assert_eq!((takers[1].take(9), takers[2].take(9)), (0, 0));
    pool.give(2);
    pool.look(at(0));
    pool.look(at(1000));
    assert_eq!((shared.mark_of(1), shared.mark_of(2)), (Mark::None, Mark::Kept(2)), "it is late");
    assert_eq!((takers[2].take(9), takers[1].take(9)), (2, 0), "it comes, and waits again");
    pool.give(1);
    for time in 0..100 {
        pool.look(at(1000 + 100_000 * time));
        assert_eq!((shared.mark_of(1), takers[2].take(9)), (Mark::Kept(1), 0));
        // The other one goes on meanwhile.
        pool.give(2);
        assert_eq!(takers[2].take(9), 2);
    }
    assert_eq!(takers[1].take(1), 1, "it is served, however seldom it comes");
    assert_eq!(takers[1].take(9), 0);
    pool.give(2);
    assert_eq!(shared.mark_of(1), Mark::Kept(2), "and trusted as others are");
}

#[test]
fn slots_are_kept_for_a_sender_that_does_not_come_while_no_other_waits() {
    let (shared, mut pool, mut takers) = full(2, 4);
    assert_eq!(takers[1].take(2), 0);
    pool.give(4);
    for time in 0..100 {
        pool.look(at(time * 1000));
    }
    assert_eq!((shared.mark_of(1), pool.counts(), takers[1].take(4)), (Mark::Kept(2), [2, 2, 0], 2));
    assert_eq!(takers[1].take(4), 2, "then it takes of the free ones, as any other");
}

#[test]
fn the_mark_and_the_grant_of_a_peer_that_is_gone_end() {
    let (shared, mut pool, mut takers) = full(4, 2);
    for taker in &mut takers[1..] {
        assert_eq!(taker.take(1), 0);
    }
    pool.give(1);
    assert_eq!(shared.mark_of(1), Mark::Kept(1));
    pool.forget(PeerId(2));
    pool.forget(PeerId(1));
    assert_eq!([1, 2, 3].map(|peer| shared.mark_of(peer)), [Mark::None, Mark::None, Mark::Kept(1)]);
    // The place goes to another peer, which finds it as new.
    let mut newcomer = shared.taker(1);
    assert_eq!((newcomer.take(1), takers[3].take(1)), (0, 1));
    pool.give(2);
    assert_eq!((newcomer.take(1), pool.counts()), (1, [1, 0, 0]));
}

#[test]
fn slots_that_a_dead_writer_has_taken_come_back_when_it_is_quiet_and_not_before() {
    let (_shared, mut pool, mut takers) = full(2, 4);
    pool.give(1);
    assert_eq!(takers[1].take(3), 1);
    assert_eq!(takers[1].take(1), 0);
    assert_eq!((pool.settle(|| false), pool.counts()), (0, [0, 0, 0]));
    assert_eq!((pool.settle(|| true), pool.counts()), (4, [3, 1, 0]), "what waits is served");
    assert_eq!(pool.settle(|| panic!("nothing is missing")), 0);
}

#[test]
fn a_sender_whose_mark_is_lost_is_found_by_its_word() {
    let (shared, mut pool, mut takers) = full(3, 2);
    assert_eq!((takers[1].take(1), takers[2].take(1)), (0, 0));
    shared.words.marked.0.store(0, Ordering::Relaxed);
    pool.give(2);
    assert_eq!((takers[1].take(1), shared.free()), (0, 2));
    for peer in [0, 1, 2, 1, 7] {
        pool.find_lost(PeerId(peer));
    }
    pool.look(at(0));
    assert_eq!((takers[1].take(1), takers[2].take(1), pool.counts()), (1, 1, [0, 0, 0]));
}

#[test]
fn whatever_a_peer_writes_the_receiver_counts_no_more_slots_than_there_are() {
    const WRONG: [u64; 9] = [0, 1, 2, 4, 5, 6, 7 | u64::MAX << 32, 5 | 3 << 32, u64::MAX];
    for wrong in WRONG {
        let (shared, mut pool, mut takers) = full(4, 6);
        for step in 0..50 {
            shared.words.marked.0.store(wrong.wrapping_add(step), Ordering::Relaxed);
            shared.words.free.0.store(wrong.wrapping_mul(step), Ordering::Relaxed);
            for word in shared.words_of((step % 4) as u32) {
                word.store(wrong.wrapping_mul(1 + step / 4), Ordering::Relaxed);
            }
            for (peer, taker) in takers.iter_mut().enumerate() {
                taker.take(2);
                pool.find_lost(PeerId(peer as u32));
            }
            pool.give(1);
            pool.look(at(step * 5000));
            let [_, kept, ready] = pool.counts();
            assert!(kept <= 4 * 3 && ready <= 6 && pool.waiting.len() <= 4 && pool.holders.len() <= 4, "{wrong}");
        }
        // All peers that were there are gone.
        (0..4).for_each(|peer| pool.forget(PeerId(peer)));
        (0..3).for_each(|_| _ = pool.settle(|| true));
        assert_eq!(pool.counts(), [6, 0, 0], "after {wrong}");
    }
}

/// A random number below a bound.
fn below(random: &mut u64, bound: u64) -> u64 {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*random >> 33) % bound
}

/// The senders' marks before and after a step of the receiver, and how often others were served while each waited.
struct Fairness {
    served: Vec<Vec<u32>>,
    marks: Vec<Mark>,
}

impl Fairness {
    fn of(senders: usize) -> Self {
        Fairness { served: vec![vec![0; senders]; senders], marks: vec![Mark::None; senders] }
    }

    fn note(&mut self, shared: &Shared) {
        let is_waiting = |mark: Mark| matches!(mark, Mark::Waiting(_));
        let now: Vec<Mark> = (0..self.marks.len()).map(|peer| shared.mark_of(peer as u32)).collect();
        let was_waiting: Vec<bool> = self.marks.iter().map(|&mark| is_waiting(mark)).collect();
        for peer in 0..now.len() {
            if !is_waiting(now[peer]) || !was_waiting[peer] {
                self.served[peer].fill(0);
                continue;
            }
            for other in 0..now.len() {
                self.served[peer][other] += u32::from(was_waiting[other] && now[other].kept() > 0);
                assert!(self.served[peer][other] <= 1, "{other} is served twice while {peer} waits");
            }
        }
        self.marks = now;
    }
}

/// Random steps of five writers, some of which die, and the receiver: slots are conserved, each marked sender is served
/// after at most one grant to each other, and in the end all are served.
#[test]
fn slots_are_conserved_and_no_sender_starves_whatever_happens_in_which_order() {
    const SENDERS: u32 = 5;
    let mut random = 1_u64;
    for round in 0..400 {
        let size = 1 + below(&mut random, 12);
        let shared = Shared::new(SENDERS);
        let mut pool = shared.pool(size);
        let mut takers: Vec<SlotTaker> = (0..SENDERS).map(|peer| shared.taker(peer)).collect();
        let (mut filled, mut lost, mut fairness) = (0, 0, Fairness::of(SENDERS as usize));
        for step in 0..400 {
            let peer = below(&mut random, SENDERS.into()) as u32;
            match below(&mut random, 12) {
                0..4 => {
                    let slots = below(&mut random, filled + 1);
                    filled -= slots;
                    pool.give(slots);
                }
                4 => pool.look(at(step * 400)),
                5 if below(&mut random, 4) == 0 => {
                    // It dies after a take.
                    lost += u64::from(takers[peer as usize].take(2));
                    pool.forget(PeerId(peer));
                    takers[peer as usize] = shared.taker(peer);
                }
                6 if filled == 0 => {
                    assert_eq!(pool.settle(|| true), lost, "round {round}, step {step}");
                    lost = 0;
                }
                _ => filled += u64::from(takers[peer as usize].take(1 + below(&mut random, 9) as u32)),
            }
            fairness.note(&shared);
            let counts = pool.counts();
            assert_eq!(counts.iter().sum::<u64>() + filled + lost, size, "round {round}, step {step}: {counts:?}");
            let lists = (pool.waiting.len(), pool.holders.len());
            assert!(lists.0.max(lists.1) <= SENDERS as usize, "round {round}, step {step}: {lists:?}");
        }
        pool.give(filled);
        pool.settle(|| true);
        let mut tries = vec![0_u32; SENDERS as usize];
        for peer in (0..SENDERS as usize).cycle().take(50 * SENDERS as usize) {
            let taken = takers[peer].take(1);
            tries[peer] = if taken == 0 { tries[peer] + 1 } else { 0 };
            assert!(tries[peer] < 20, "round {round}: {peer} gets none");
            pool.give(taken.into());
            pool.look(at(1_000_000_000 + 1000 * u64::from(tries[peer])));
        }
    }
}
