//! Posted buffers in one process, step by step.

use super::*;

/// The words of a pool, and of the claims of some peers.
struct Shared {
    words: PoolWords,
    claims: Vec<AtomicU64>,
}

impl Claims for Vec<AtomicU64> {
    fn places(&self) -> u32 {
        self.len() as u32
    }

    fn read(&self, peer: PeerId) -> u64 {
        self[peer.0 as usize].load(Ordering::Acquire)
    }

    fn change(&self, peer: PeerId, from: Claim, to: Claim) -> bool {
        super::change(&self[peer.0 as usize], from, to)
    }
}

impl Shared {
    fn new(peers: usize) -> Self {
        Shared { words: PoolWords::fresh(), claims: (0..peers).map(|_| AtomicU64::new(0)).collect() }
    }

    fn pool(&self, window: u32, limit: u32, bound: u32) -> Pool {
        // SAFETY: every test keeps `self` as long as the pool, of which it makes one.
        unsafe { Pool::new(NonNull::from(&self.words), window, limit, bound) }
    }

    fn taker(&self, peer: usize, refusals_most: u32) -> Taker {
        // SAFETY: every test keeps `self` as long as its takers.
        unsafe { Taker::of_pool(NonNull::from(&self.words), NonNull::from(&self.claims[peer]), refusals_most) }
    }

    fn posted(&self) -> u64 {
        self.words.posted.load(Ordering::Relaxed)
    }
}

fn at(milliseconds: u64) -> Instant {
    Instant::default() + Duration::from_millis(milliseconds)
}

#[test]
fn a_connection_has_the_buffers_of_the_start_and_those_posted_since() {
    let posted = AtomicU64::new(0);
    // SAFETY: the word outlives the taker.
    let mut taker = unsafe { Taker::of_connection(NonNull::from(&posted), 2) };
    assert_eq!([(); 3].map(|()| taker.take()), [true, true, false]);
    posted.store(1, Ordering::Release);
    assert_eq!([(); 2].map(|()| taker.take()), [true, false]);
    // What cannot be gains nothing that was not there, and does no harm.
    posted.store(0, Ordering::Release);
    assert!(!taker.take());
    posted.store(u64::MAX, Ordering::Release);
    assert!(taker.take());
}

#[test]
fn the_event_of_a_pool_comes_once_when_fewer_than_the_limit_are_left() {
    let shared = Shared::new(1);
    let (mut pool, mut taker) = (shared.pool(8, 4, 33), shared.taker(0, 100));
    for _ in 0..4 {
        assert!(taker.take());
    }
    pool.post_again(&shared.claims);
    assert!(!pool.poll_limit_reached(), "four were left");
    assert!(taker.take() && taker.take());
    pool.post_again(&shared.claims);
    assert!(pool.poll_limit_reached() && !pool.poll_limit_reached());
    pool.post_again(&shared.claims);
    assert!(!pool.poll_limit_reached(), "once until a window is set");
    pool.set_window(16, 8, &shared.claims);
    assert_eq!(shared.posted(), 16);
    while pool.taken(&shared.claims) > 0 {
        pool.post_again(&shared.claims);
    }
    assert_eq!((shared.posted(), pool.total), (16, 17), "no more than the window are posted");
    pool.post_again(&shared.claims);
    assert_eq!((shared.posted(), pool.total), (16, 17), "nothing was taken");
}

#[test]
fn at_the_bound_a_pool_posts_no_more_and_raises_no_event_without_a_take() {
    let shared = Shared::new(1);
    let (mut pool, mut taker) = (shared.pool(2, 1, 9), shared.taker(0, 100));
    for _ in 0..10 {
        while taker.take() {}
        pool.set_window(4, 2, &shared.claims);
    }
    assert_eq!((shared.posted(), pool.spare(), pool.total), (0, 1, 9));
    pool.post_again(&shared.claims);
    assert!(!pool.poll_limit_reached(), "nobody has taken one since the window was set");
    assert!(taker.take());
    pool.post_again(&shared.claims);
    assert!(pool.poll_limit_reached());
}

#[test]
fn who_was_refused_too_often_gets_the_spare_buffer_in_turn_and_others_go_on_meanwhile() {
    let shared = Shared::new(3);
    let mut pool = shared.pool(1, 1, 3);
    let [mut busy, mut patient, mut other] = [0, 1, 2].map(|peer| shared.taker(peer, 3));
    assert!(busy.take());
    assert_eq!([(); 3].map(|()| patient.take()), [false; 3]);
    assert_eq!([(); 3].map(|()| other.take()), [false; 3]);
    pool.post_again(&shared.claims);
    assert!(busy.take(), "nothing but the spare buffer is kept for others");
    assert!(!other.take(), "that is kept for the one before it");
    assert!(patient.take() && !patient.take());
    assert_eq!((pool.taken(&shared.claims), pool.spare()), (2, 0));
    pool.post_again(&shared.claims);
    assert_eq!((shared.posted(), pool.spare()), (0, 1), "the next that is free is the spare one");
    assert!(!busy.take() && !patient.take() && other.take(), "it is the turn of the third");
    pool.post_again(&shared.claims);
    pool.post_again(&shared.claims);
    assert_eq!((shared.posted(), pool.taken(&shared.claims), pool.total), (1, 0, 2));
}

#[test]
fn a_buffer_of_the_pool_makes_a_claim_void() {
    let shared = Shared::new(2);
    let mut pool = shared.pool(1, 1, 3);
    let [mut one, mut two] = [0, 1].map(|peer| shared.taker(peer, 1));
    assert!(one.take() && !two.take());
    pool.post_again(&shared.claims);
    assert_eq!(shared.claims.read(PeerId(1)), Claim::Kept as u64);
    assert!(two.take(), "the spare one, though one is posted");
    assert_eq!((shared.claims.read(PeerId(1)), shared.posted()), (Claim::None as u64, 1));
    assert!(one.take() && !two.take());
    shared.words.posted.store(1, Ordering::Relaxed);
    assert!(two.take(), "one of the pool");
    assert_eq!(shared.claims.read(PeerId(1)), Claim::None as u64);
}

#[test]
fn a_spare_buffer_that_is_not_fetched_is_kept_for_others() {
    let shared = Shared::new(2);
    let mut pool = shared.pool(1, 1, 3);
    let [mut one, mut two] = [0, 1].map(|peer| shared.taker(peer, 1));
    assert!(one.take() && !two.take() && !one.take());
    pool.turn = 1;
    pool.post_again(&shared.claims);
    assert!(one.take() && !one.take(), "it took the posted one");
    let after = Duration::from_millis(200);
    pool.expire(at(0), after, &shared.claims);
    pool.expire(at(199), after, &shared.claims);
    assert!(!one.take(), "still kept for the second");
    pool.expire(at(200), after, &shared.claims);
    assert!(one.take() && !two.take());
    assert_eq!((pool.taken(&shared.claims), pool.total), (2, 2));
    // The second can claim again.
    assert!(!two.take());
    pool.post_again(&shared.claims);
    assert!(two.take());
}

#[test]
fn what_is_kept_for_a_peer_that_is_gone_goes_to_others() {
    let shared = Shared::new(2);
    let mut pool = shared.pool(1, 1, 3);
    let [mut one, mut two] = [0, 1].map(|peer| shared.taker(peer, 1));
    assert!(one.take() && !two.take());
    pool.expire(at(0), Duration::from_millis(200), &shared.claims);
    assert_eq!(shared.claims.read(PeerId(1)), Claim::Kept as u64);
    assert!(!one.take());
    pool.forget(PeerId(1), &shared.claims);
    assert!(one.take(), "the spare one");
    let mut newcomer = shared.taker(1, 1);
    assert!(!newcomer.take());
    pool.forget(PeerId(1), &shared.claims);
    pool.post_again(&shared.claims);
    pool.post_again(&shared.claims);
    assert!(shared.taker(1, 1).take() && shared.posted() == 0, "a claim ends with whoever made it");
    assert_eq!((pool.taken(&shared.claims), pool.total), (1, 2));
}

#[test]
fn what_a_dead_writer_has_taken_comes_back_when_it_is_quiet_and_not_before() {
    let shared = Shared::new(1);
    let mut pool = shared.pool(2, 1, 5);
    assert!(shared.taker(0, 9).take());
    assert_eq!(pool.settle(&shared.claims, || false), 0);
    assert_eq!(shared.posted(), 1);
    assert_eq!(pool.settle(&shared.claims, || true), 1);
    assert_eq!((shared.posted(), pool.total), (2, 3));
    assert_eq!(pool.settle(&shared.claims, || panic!("nothing is missing")), 0);
}

#[test]
fn counts_that_cannot_be_are_put_right_when_it_is_quiet() {
    let shared = Shared::new(1);
    let (mut pool, mut taker) = (shared.pool(3, 1, 7), shared.taker(0, 9));
    for wrong in [0, 1, 4, u64::MAX] {
        shared.words.posted.store(wrong, Ordering::Relaxed);
        // Nothing panics meanwhile.
        pool.post_again(&shared.claims);
        taker.take();
        shared.claims[0].store(wrong, Ordering::Relaxed);
        pool.expire(at(1), Duration::ZERO, &shared.claims);
        for _ in 0..3 {
            pool.settle(&shared.claims, || true);
        }
        assert_eq!((shared.posted(), pool.total), (3, 4), "after {wrong}");
    }
}

/// Random steps of three writers and the receiver: buffers are conserved, and nobody is passed over for ever.
#[test]
fn buffers_are_conserved_whatever_happens_in_which_order() {
    let mut random = 1_u64;
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    for round in 0..200 {
        let shared = Shared::new(3);
        let (first, most) = (1 + below(3) as u32, 4);
        let mut pool = shared.pool(first, first / 2 + 1, 2 * most + 1);
        let mut takers = [0, 1, 2].map(|peer| shared.taker(peer, 2));
        let (mut taken, mut events, mut refused) = (0, 0, [0; 3]);
        for step in 0..500 {
            match below(6) {
                0 if taken > 0 => {
                    taken -= 1;
                    pool.post_again(&shared.claims);
                }
                1 => pool.expire(at(step), Duration::from_millis(50), &shared.claims),
                2 if pool.poll_limit_reached() => {
                    events += 1;
                    pool.set_window((first << events).min(most), most / 2, &shared.claims);
                }
                _ => {
                    let peer = below(3) as usize;
                    let is_there = takers[peer].take();
                    taken += u64::from(is_there);
                    refused[peer] = if is_there { 0 } else { refused[peer] + 1 };
                }
            }
            let found = pool.taken(&shared.claims);
            assert_eq!(found, taken, "round {round}, step {step}");
            assert!(
                pool.total <= 2 * u64::from(most) + 1 && shared.posted() <= pool.window,
                "round {round}, step {step}"
            );
        }
        while taken > 0 {
            taken -= 1;
            pool.post_again(&shared.claims);
        }
        // Everybody comes to a buffer now, however often it was refused.
        for (peer, taker) in takers.iter_mut().enumerate() {
            let tries = (0..100).find(|_| {
                let is_there = taker.take();
                pool.expire(at(1000), Duration::ZERO, &shared.claims);
                is_there
            });
            assert!(tries.is_some(), "round {round}: {peer} gets none");
            pool.post_again(&shared.claims);
        }
    }
}
