//! What one event costs: [`EventQueue`] beside the binary heap that it replaces, on a queue of constant length where
//! each event taken schedules another ("hold").
//!
//! `cargo bench -p tidegate-sim --bench event_queue`. Printed are nanoseconds per event, taking and scheduling
//! together.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Instant;

use tidegate_sim::{EventQueue, Time};

const EVENTS: u64 = 4_000_000;

/// What both queues offer.
trait Queue {
    fn schedule(&mut self, time: u64, event: u64);
    fn pop(&mut self) -> (u64, u64);
}

impl Queue for EventQueue<u64> {
    fn schedule(&mut self, time: u64, event: u64) {
        self.schedule(Time(time), event);
    }

    fn pop(&mut self) -> (u64, u64) {
        let (time, event) = self.pop().expect("the queue is never empty");
        (time.0, event)
    }
}

/// Time, number of scheduling, event.
#[derive(Default)]
struct Heap {
    events: BinaryHeap<Reverse<(u64, u64, u64)>>,
    number: u64,
}

impl Queue for Heap {
    fn schedule(&mut self, time: u64, event: u64) {
        self.number += 1;
        self.events.push(Reverse((time, self.number, event)));
    }

    fn pop(&mut self) -> (u64, u64) {
        let Reverse((time, _, event)) = self.events.pop().expect("the queue is never empty");
        (time, event)
    }
}

/// How far ahead events are scheduled, in picoseconds.
#[derive(Clone, Copy)]
enum Ahead {
    /// Link and router times, as most events of a network.
    Hops,
    /// Nine hops and one event a microsecond or more ahead, as in a network with processes.
    HopsAndProcesses,
    /// Anything from nothing to ten microseconds.
    Uniform,
}

impl Ahead {
    fn span(self, random: u64) -> u64 {
        let hop = [64_000, 86_900, 166_900, 72_000][random as usize % 4];
        match self {
            Ahead::Hops => hop,
            Ahead::HopsAndProcesses if random.is_multiple_of(10) => 1_000_000 + random % 4_000_000,
            Ahead::HopsAndProcesses => hop,
            Ahead::Uniform => random % 10_000_000,
        }
    }
}

/// Nanoseconds per event, and a sum over all times that must be the same for every queue.
fn measure(mut queue: impl Queue, length: u64, ahead: Ahead) -> (f64, u64) {
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..length).for_each(|event| queue.schedule(random() % 100_000, event));
    let mut seen = 0_u64;
    let start = Instant::now();
    for _ in 0..EVENTS {
        let (time, event) = queue.pop();
        seen = (seen ^ time ^ event).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        queue.schedule(time + ahead.span(random()), event);
    }
    black_box(&mut queue);
    (start.elapsed().as_secs_f64() * 1e9 / EVENTS as f64, seen)
}

fn main() {
    println!("{:<20} {:>8} {:>14} {:>12}", "ahead", "length", "calendar, ns", "heap, ns");
    let kinds = [("hops", Ahead::Hops), ("hops and processes", Ahead::HopsAndProcesses), ("uniform", Ahead::Uniform)];
    for (name, ahead) in kinds {
        for length in [100, 2_000, 20_000, 200_000] {
            let (calendar, order) = measure(EventQueue::new(), length, ahead);
            let (heap, heap_order) = measure(Heap::default(), length, ahead);
            assert_eq!(order, heap_order, "both queues keep the same order");
            println!("{name:<20} {length:>8} {calendar:>14.1} {heap:>12.1}");
        }
    }
}
