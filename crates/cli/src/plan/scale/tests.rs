use super::*;
use proptest::prelude::*;
use tidegate_sim::workload::collective::{
    Allgather, Allreduce, Alltoall, Barrier, Broadcast, Gather, allgather, allreduce, alltoall, barrier, broadcast,
    gather,
};
use tidegate_sim::workload::{Communicator, HALO, point_to_point, write_goal};
use tidegate_sim::{Program as Simulated, Rank, Tag, Task, Time};

/// What all ranks do.
fn operations(trace: &Trace) -> Vec<Vec<Operation>> {
    (0..trace.size()).map(|rank| operation::read(trace, rank).expect("it names all senders")).collect()
}

/// The same, wherever the trace has it.
fn without_lines(trace: &Trace) -> Vec<Vec<Operation>> {
    let clear = |operation: Operation| Operation { line: 0, ..operation };
    operations(trace).into_iter().map(|all| all.into_iter().map(clear).collect()).collect()
}

fn trace_of(program: &impl Simulated, ranks: u32) -> Trace {
    Trace::parse(&write_goal(program, ranks).expect("it receives from nobody in particular")).expect("a legal trace")
}

/// A trace of `few` ranks, scaled up, must be what the program itself does with `many`.
fn must_scale(name: &str, program: &impl Simulated, few: u32, many: u32) {
    let scaled = scale(&trace_of(program, few), many).unwrap_or_else(|why| panic!("{name}: {why}"));
    let scaled = without_lines(&Trace::parse(&scaled.text).expect("a legal trace"));
    let truth = without_lines(&trace_of(program, many));
    for (rank, (ours, theirs)) in scaled.iter().zip(&truth).enumerate() {
        for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
            assert_eq!(ours, theirs, "{name}: rank {rank}, operation {at}");
        }
        assert_eq!(ours.len(), theirs.len(), "{name}: rank {rank}");
    }
}

fn refusal(trace: &Trace, ranks: u32) -> String {
    scale(trace, ranks).expect_err("it has no such pattern")
}

/// A program that begins with computation, repeats `body`, and computes in between.
macro_rules! repeated {
    (|$world:ident, $out:ident, $into:ident| $body:expr) => {
        move |task: Task| async move {
            let $world = Communicator::world(&task);
            let size = u64::from(task.size());
            let ($out, $into) = (task.allocate(64 * size), task.allocate(64 * size));
            for _ in 0..2 {
                task.compute(Time::from_microseconds(5)).await;
                $body;
            }
        }
    };
}

#[test]
fn all_to_alls_of_every_form_are_continued() {
    let form = |form| repeated!(|world, out, into| alltoall(&world, form, out, into, 64).await);
    must_scale("plain", &form(Alltoall::Plain), 16, 64);
    must_scale("posted", &form(Alltoall::Posted), 16, 64);
    must_scale("pairwise", &form(Alltoall::Pairwise), 16, 64);
    // No power of two, to any other number.
    must_scale("odd", &form(Alltoall::Pairwise), 9, 23);
}

#[test]
fn exchanges_along_bits_are_continued() {
    must_scale("barrier", &repeated!(|world, _out, _into| barrier(&world, Barrier::Dissemination).await), 16, 64);
    let doubling = repeated!(|world, _out, _into| barrier(&world, Barrier::RecursiveDoubling).await);
    must_scale("recursive doubling", &doubling, 16, 64);
    let reduce = repeated!(|world, out, into| {
        allreduce(&world, Allreduce::RecursiveDoubling, out.slice(0, 64), into.slice(0, 64)).await
    });
    must_scale("allreduce", &reduce, 16, 64);
    let gathers = repeated!(|world, out, into| {
        allgather(&world, Allgather::RecursiveDoubling, out.slice(0, 64), into, 64).await
    });
    must_scale("allgather", &gathers, 16, 64);
}

#[test]
fn tags_that_say_who_sends_are_no_hindrance() {
    let program = |task: Task| async move {
        let part = task.allocate(10);
        let at = |by: i64| Rank((i64::from(task.rank().0) + by).rem_euclid(i64::from(task.size())) as u32);
        for round in 0..3 {
            let tag = |sender: Rank| Tag(u64::from(sender.0) << 20 | round);
            let coming = task.start_receive(at(-1), tag(at(-1)), part).await;
            let going = task.start_send(at(1), tag(task.rank()), part).await;
            task.wait_all([coming, going]).await;
        }
    };
    let scaled = scale(&trace_of(&program, 8), 20).expect("it is a ring");
    let large = Trace::parse(&scaled.text).expect("a legal trace");
    assert_eq!((scaled.pattern.as_str(), large.messages().0), ("messages in a ring by +1", 60));
}

#[test]
fn rings_are_continued() {
    let program = |task: Task| async move {
        point_to_point::exchange(&Communicator::world(&task), 100, 3).await;
    };
    must_scale("exchange", &program, 16, 64);
    must_scale("exchange of few", &program, 5, 12);
}

#[test]
fn trees_are_continued() {
    let program =
        repeated!(|world, out, _into| { broadcast(&world, Broadcast::Tree { radix: 2 }, 0, out.slice(0, 64)).await });
    must_scale("broadcast", &program, 16, 64);
    let with_barrier = repeated!(|world, out, _into| {
        broadcast(&world, Broadcast::Tree { radix: 2 }, 0, out.slice(0, 64)).await;
        barrier(&world, Barrier::RecursiveDoubling).await
    });
    must_scale("broadcast and barrier", &with_barrier, 16, 64);
}

#[test]
fn stars_are_continued() {
    let program = repeated!(|world, out, into| gather(&world, Gather::Plain, 0, out.slice(0, 64), into, 64).await);
    must_scale("gather", &program, 16, 64);
}

/// Exchanges with all neighbours in a grid of so many dimensions, the receives first.
fn halo(axes: usize, wraps: bool) -> impl Simulated {
    move |task: Task| async move {
        let side = f64::from(task.size()).powf(1.0 / axes as f64).round() as u32;
        let grid = grid::Grid { sizes: vec![side; axes], wraps };
        let part = task.allocate(1000);
        for round in 0..3 {
            task.compute(Time::from_microseconds(2)).await;
            let mut waiting = Vec::new();
            let directions = || (0..axes).flat_map(|axis| [(axis, 1_i8), (axis, -1)]);
            for (number, (axis, by)) in directions().enumerate() {
                let mut step = [0; 3];
                step[axis] = by;
                let Some(peer) = grid.neighbour(task.rank().0, step) else { continue };
                let tag = Tag(10 * round + (number as u64 ^ 1));
                waiting.push(task.start_receive(Rank(peer), tag, part).await);
            }
            for (number, (axis, by)) in directions().enumerate() {
                let mut step = [0; 3];
                step[axis] = by;
                let Some(peer) = grid.neighbour(task.rank().0, step) else { continue };
                waiting.push(task.start_send(Rank(peer), Tag(10 * round + number as u64), part).await);
            }
            task.wait_all(waiting).await;
        }
    }
}

#[test]
fn grids_are_continued() {
    must_scale("torus", &halo(2, true), 16, 64);
    must_scale("mesh", &halo(2, false), 16, 64);
    must_scale("torus of three dimensions", &halo(3, true), 27, 64);
    must_scale("mesh of three dimensions", &halo(3, false), 27, 64);
}

#[test]
fn the_bundled_trace_is_a_torus_and_a_tree() {
    let trace = Trace::parse(HALO).expect("a legal trace");
    let scaled = scale(&trace, 64).expect("it is recognised");
    assert_eq!(
        scaled.pattern,
        "neighbours in a torus of 8x8; a binomial tree below rank 0; the torus of 4x4 becomes a torus of 8x8"
    );
    let large = Trace::parse(&scaled.text).expect("a legal trace");
    // Four neighbours each, and one message up and one down for all but the root, five times.
    assert_eq!((large.size(), large.messages().0), (64, 5 * (64 * 4 + 2 * 63)));
    // With as many ranks as it has, it is the same.
    let same = scale(&trace, 16).expect("it is recognised");
    assert_eq!(without_lines(&Trace::parse(&same.text).expect("a legal trace")), without_lines(&trace));
}

#[test]
fn one_message_too_many_is_named() {
    let text = write_goal(&halo(2, true), 16).expect("a trace");
    let odd = text.replacen("rank 11 {\n", "rank 11 {\nx: send 5b to 2 tag 99\n", 1);
    let odd = odd.replacen("rank 2 {\n", "rank 2 {\nx: recv 5b from 11 tag 99\n", 1);
    let why = refusal(&Trace::parse(&odd).expect("a legal trace"), 64);
    let line = 1 + odd.lines().position(|line| line.contains("recv 5b")).expect("it is there");
    assert!(why.contains(&format!("rank 2 receives 5 B from rank 11, tag 99, line {line}")), "{why}");
    assert!(why.contains("neighbours in a grid"), "{why}");
}

#[test]
fn one_message_of_another_size_is_named() {
    let text = write_goal(&halo(2, true), 16).expect("a trace");
    let at = text.find("rank 9 {").expect("it is there");
    let odd = format!("{}{}", &text[..at], text[at..].replacen("send 1000b", "send 999b", 1));
    let why = refusal(&Trace::parse(&odd).expect("a legal trace"), 64);
    assert!(why.contains("rank 9 sends 999 B"), "{why}");
}

#[test]
fn what_has_no_meaning_for_so_many_is_refused_with_what_has() {
    let torus = trace_of(&halo(2, true), 16);
    assert!(refusal(&torus, 61).contains("61 ranks make no grid like the torus of 4x4"), "{}", refusal(&torus, 61));
    let tree = trace_of(
        &repeated!(|world, out, _into| { broadcast(&world, Broadcast::Tree { radix: 2 }, 0, out.slice(0, 64)).await }),
        16,
    );
    assert!(refusal(&tree, 48).contains("try 32 or 64"), "{}", refusal(&tree, 48));
    assert!(refusal(&tree, 8).contains("scaled up, not down"), "{}", refusal(&tree, 8));
    let few = trace_of(&halo(2, true), 4);
    assert!(refusal(&few, 64).contains("at least 5"), "{}", refusal(&few, 64));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any constant distances in a ring, in any order, are recognised where they are not half the way round.
    #[test]
    fn any_distances_in_a_ring_are_continued(
        distances in proptest::collection::vec((1_i64..7, any::<bool>()), 1..4), few in 15_u32..20, many in 20_u32..40,
    ) {
        let distances: Vec<i64> = distances.into_iter().map(|(by, back)| if back { -by } else { by }).collect();
        let program = move |task: Task| {
            let distances = distances.clone();
            async move {
                let part = task.allocate(10);
                for (round, by) in distances.into_iter().enumerate() {
                    let size = i64::from(task.size());
                    let at = |by: i64| Rank((i64::from(task.rank().0) + by).rem_euclid(size) as u32);
                    let coming = task.start_receive(at(-by), Tag(round as u64), part).await;
                    let going = task.start_send(at(by), Tag(round as u64), part).await;
                    task.wait_all([coming, going]).await;
                }
            }
        };
        must_scale("ring", &program, few, many);
    }

    /// A random graph of messages is refused, or scaled into itself: never into something that only looks like it.
    #[test]
    fn whatever_is_explained_is_explained_to_the_last_message(
        messages in proptest::collection::vec((0_u32..8, 0_u32..8, 0_u64..100), 0..30),
    ) {
        let mut ranks: Vec<String> = vec![String::new(); 8];
        for (tag, (from, to, bytes)) in messages.into_iter().enumerate() {
            ranks[from as usize].push_str(&format!("send {bytes}b to {to} tag {tag}\n"));
            ranks[to as usize].push_str(&format!("recv {bytes}b from {from} tag {tag}\n"));
        }
        let all: String = ranks.iter().enumerate().map(|(rank, text)| format!("rank {rank} {{\n{text}}}\n")).collect();
        let trace = Trace::parse(&format!("num_ranks 8\n{all}")).expect("a legal trace");
        if let Ok(same) = scale(&trace, 8) {
            prop_assert_eq!(without_lines(&Trace::parse(&same.text).expect("a legal trace")), without_lines(&trace));
        }
    }
}

#[test]
fn receives_from_any_rank_have_no_pattern() {
    let ring = |from: u32| format!("send 8b to {} tag 1\nrecv 8b from -1 tag 1\n", (from + 1) % 8);
    let ranks: String = (0..8).map(|rank| format!("rank {rank} {{\n{}}}\n", ring(rank))).collect();
    let trace = format!("num_ranks 8\n{ranks}");
    let why = refusal(&Trace::parse(&trace).unwrap(), 16);
    assert!(why.starts_with("line 4: rank 0 receives from any rank: ") && why.contains("tidegate record"), "{why}");
    let why = refusal(&Trace::parse(&trace.replace("from -1 tag 1", "from 2 tag -1")).unwrap(), 16);
    assert!(why.starts_with("line 4: rank 0 receives with any tag: "), "{why}");
}
