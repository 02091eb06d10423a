//! The order in which events come out, against an ordered map.

use std::collections::BTreeMap;

use super::*;

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Runs `steps` random steps on the queue and on an ordered map, spans being drawn by `span`, and compares all
/// that comes out. Returns the widths that were used.
fn compare_with_ordered_map(seed: u64, steps: u32, mut span: impl FnMut(u64) -> u64) -> std::ops::Range<u32> {
    let mut state = seed;
    let mut queue = EventQueue::new();
    let mut model = BTreeMap::new();
    let (mut now, mut number) = (0, 0_u64);
    let (mut narrowest, mut widest) = (queue.shift, queue.shift);
    for step in 0..steps {
        // Grow for a while, then shrink to nothing, and again.
        let target = if step / 50_000 % 2 == 0 { 3_000 } else { 0 };
        if model.len() < target || random(&mut state).is_multiple_of(3) {
            let time = now + span(random(&mut state));
            number += 1;
            queue.schedule(Time(time), number);
            model.insert((time, number), ());
        } else {
            let expected = model.pop_first().map(|(key, ())| key);
            assert_eq!(queue.next_time(), expected.map(|(time, _)| Time(time)));
            assert_eq!(queue.pop(), expected.map(|(time, number)| (Time(time), number)));
            now = expected.map_or(now, |(time, _)| time);
        }
        assert_eq!(queue.len(), model.len());
        (narrowest, widest) = (narrowest.min(queue.shift), widest.max(queue.shift));
    }
    narrowest..widest
}

#[test]
fn events_come_out_by_time_and_then_in_order_of_scheduling() {
    compare_with_ordered_map(1, 300_000, |random| [0, 64_000, 86_900, 5_000_000, 200_000_000][random as usize % 5]);
    compare_with_ordered_map(2, 300_000, |random| random % 100_000);
    compare_with_ordered_map(3, 300_000, |random| 1 << (random % 45));
}

#[test]
fn the_order_survives_widths_that_shrink_and_grow() {
    let mut calls = 0;
    let widths = compare_with_ordered_map(4, 1_500_000, |random| {
        calls += 1;
        // Dense for a while, then sparse; many equal times in both.
        if calls / 200_000 % 2 == 0 { random % 64 * 250 } else { random % 64 * 40_000_000 }
    });
    assert!(widths.start < SHIFT_AT_START && widths.end > SHIFT_AT_START, "widths were 2^{widths:?} ps");
}

#[test]
fn processes_in_step_keep_their_order() {
    // Every event schedules another for the same time, three times over, then one for a little later.
    let mut queue = EventQueue::new();
    (0..1_000_u32).for_each(|process| queue.schedule(Time(500), process));
    let mut seen = Vec::new();
    while let Some((time, event)) = queue.pop() {
        seen.push((time, event % 1_000));
        let (round, next) = (event / 1_000, event + 1_000);
        if round < 12 {
            queue.schedule(if round % 4 == 3 { time + Time(3) } else { time }, next);
        }
    }
    let expected = (0..13_u64).flat_map(|round| (0..1_000).map(move |process| (Time(500 + round / 4 * 3), process)));
    assert!(seen.iter().copied().eq(expected), "some process overtook another");
}

#[test]
fn equal_times_keep_their_order_from_the_heap_to_the_bucket() {
    let mut queue = EventQueue::new();
    let far = Time::from_microseconds(1_000);
    queue.schedule(far, 1);
    queue.schedule(far, 2);
    queue.schedule(far - Time(1), 0);
    // The window has come near enough for `far` to have a bucket.
    assert_eq!(queue.pop(), Some((far - Time(1), 0)));
    queue.schedule(far, 3);
    assert_eq!(std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect::<Vec<_>>(), [1, 2, 3]);
}
