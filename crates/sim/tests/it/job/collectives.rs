//! Who gets what from whom, in every form of every collective operation, against what the operation is defined to do.

use std::future::Future;

use tidegate_sim::workload::Communicator;
use tidegate_sim::workload::collective::*;
use tidegate_sim::{FlowChoice, Part, Task};

use super::support::{all_flows, bytes_of, filled, job, mailbox, read, run, sum_of_all};

const TREES: [u32; 3] = [2, 3, 5];
/// Bytes of a block: less than a packet, some packets, and more than the eager limit.
const BLOCKS: [u64; 3] = [24, 300, 2500];

/// Runs a program in groups of all small sizes, and in one of them under every scheme.
fn check<R>(program: impl Fn(Communicator) -> R + Copy)
where
    R: Future<Output = ()> + 'static,
{
    let program = move |task: Task| program(Communicator::world(&task));
    for size in [1, 2, 3, 4, 5, 7, 8, 12] {
        run(job(size, mailbox(tidegate_flow::SchemeName::Dynamic, 4, 1, true)), &program);
    }
    for flow in all_flows() {
        run(job(6, flow), &program);
    }
}

/// The blocks of a part, one for each member, as bytes.
fn blocks(task: &Task, part: Part, block: u64) -> Vec<Vec<u8>> {
    (0..task.size()).map(|member| read(task, part.block(member, block))).collect()
}

/// The block that `from` means for `to`, of everybody's filled memory.
fn block_of(from: u32, to: u32, size: u32, block: u64) -> Vec<u8> {
    let all = bytes_of(from, u64::from(size) * block);
    all[(u64::from(to) * block) as usize..][..block as usize].to_vec()
}

#[test]
fn alltoall_exchanges_all_blocks() {
    for form in [Alltoall::Plain, Alltoall::Posted, Alltoall::Pairwise, Alltoall::Bruck] {
        check(move |group| async move {
            let (task, me, size) = (group.task(), group.me(), group.size());
            for block in BLOCKS {
                let (out, into) = (filled(task, u64::from(size) * block), task.allocate(u64::from(size) * block));
                alltoall(&group, form, out, into, block).await;
                let expected: Vec<_> = (0..size).map(|from| block_of(from, me, size, block)).collect();
                assert_eq!(blocks(task, into, block), expected, "{form:?} of {block} bytes at {me} of {size}");
            }
        });
    }
}

/// Bytes that member `from` has for member `to`: of every size, none at all included.
fn uneven(from: u32, to: u32) -> u64 {
    u64::from((from * 5 + to * 3) % 4) * 700
}

#[test]
fn alltoallv_exchanges_blocks_of_all_lengths() {
    for form in [Alltoallv::Plain, Alltoallv::Posted, Alltoallv::Pairwise] {
        check(move |group| async move {
            let (task, me, size) = (group.task(), group.me(), group.size());
            let leaving: Vec<u64> = (0..size).map(|to| uneven(me, to)).collect();
            let coming: Vec<u64> = (0..size).map(|from| uneven(from, me)).collect();
            let (out, into) = (filled(task, leaving.iter().sum()), task.allocate(coming.iter().sum()));
            let (out, into) = (Blocks { part: out, counts: &leaving }, Blocks { part: into, counts: &coming });
            alltoallv(&group, form, out, into).await;
            let mut expected = Vec::new();
            for from in 0..size {
                let before: u64 = (0..me).map(|to| uneven(from, to)).sum();
                let all = bytes_of(from, before + uneven(from, me));
                expected.extend_from_slice(&all[before as usize..]);
            }
            assert_eq!(read(task, into.part), expected, "{form:?} at {me} of {size}");
        });
    }
}

#[test]
fn allgather_gives_everybody_all_blocks() {
    for form in [
        Allgather::Plain,
        Allgather::Ring,
        Allgather::NeighbourExchange,
        Allgather::RecursiveDoubling,
        Allgather::Bruck,
    ] {
        check(move |group| async move {
            let (task, size) = (group.task(), group.size());
            for block in BLOCKS {
                let (out, into) = (filled(task, block), task.allocate(u64::from(size) * block));
                allgather(&group, form, out, into, block).await;
                let expected: Vec<_> = (0..size).map(|from| bytes_of(from, block)).collect();
                assert_eq!(blocks(task, into, block), expected, "{form:?} of {block} bytes");
            }
        });
    }
}

#[test]
fn allgatherv_gives_everybody_blocks_of_all_lengths() {
    for form in [Allgather::Plain, Allgather::Ring, Allgather::NeighbourExchange] {
        check(move |group| async move {
            let (task, me, size) = (group.task(), group.me(), group.size());
            let counts: Vec<u64> = (0..size).map(|from| uneven(from, 1)).collect();
            let (out, into) = (filled(task, uneven(me, 1)), task.allocate(counts.iter().sum()));
            allgatherv(&group, form, out, into, &counts).await;
            let expected: Vec<u8> = (0..size).flat_map(|from| bytes_of(from, uneven(from, 1))).collect();
            assert_eq!(read(task, into), expected, "{form:?}");
        });
    }
}

#[test]
fn broadcast_gives_everybody_the_roots_bytes() {
    let trees = TREES.map(|radix| Broadcast::Tree { radix });
    let split = [1, 700, 1024].map(|segment| Broadcast::SplitBinary { segment });
    for form in [Broadcast::Plain, Broadcast::ScatterRing].into_iter().chain(trees).chain(split) {
        check(move |group| async move {
            let (task, size) = (group.task(), group.size());
            for (root, length) in [(0, 24), (size - 1, 3000), (size / 2, 0)] {
                let part = filled(task, length);
                broadcast(&group, form, root, part).await;
                assert_eq!(read(task, part), bytes_of(root, length), "{form:?} from {root}");
            }
        });
    }
}

#[test]
fn gather_gives_the_root_all_blocks() {
    let trees = TREES.map(|radix| Gather::Tree { radix });
    for form in std::iter::once(Gather::Plain).chain(trees) {
        check(move |group| async move {
            let (task, me, size) = (group.task(), group.me(), group.size());
            for (root, block) in [(0, 24), (size - 1, 300), (size / 2, 2500)] {
                let (out, into) = (filled(task, block), task.allocate(u64::from(size) * block));
                gather(&group, form, root, out, into, block).await;
                if me == root {
                    let expected: Vec<_> = (0..size).map(|from| bytes_of(from, block)).collect();
                    assert_eq!(blocks(task, into, block), expected, "{form:?} at {root}");
                }
            }
        });
    }
}

#[test]
fn gatherv_gives_the_root_blocks_of_all_lengths() {
    check(|group| async move {
        let (task, me, size) = (group.task(), group.me(), group.size());
        let counts: Vec<u64> = (0..size).map(|from| uneven(from, 2)).collect();
        for root in 0..size {
            let (out, into) = (filled(task, uneven(me, 2)), task.allocate(counts.iter().sum()));
            gatherv(&group, root, out, into, &counts).await;
            let expected: Vec<u8> = (0..size).flat_map(|from| bytes_of(from, uneven(from, 2))).collect();
            assert_eq!(read(task, into) == expected, me == root || expected.iter().all(|&byte| byte == 0));
        }
    });
}

#[test]
fn scatter_gives_everybody_its_block() {
    let trees = TREES.map(|radix| Scatter::Tree { radix });
    for form in std::iter::once(Scatter::Plain).chain(trees) {
        check(move |group| async move {
            let (task, me, size) = (group.task(), group.me(), group.size());
            for (root, block) in [(0, 24), (size - 1, 300), (size / 2, 2500)] {
                let (out, into) = (filled(task, u64::from(size) * block), task.allocate(block));
                scatter(&group, form, root, out, into, block).await;
                assert_eq!(read(task, into), block_of(root, me, size, block), "{form:?} from {root} at {me}");
            }
        });
    }
}

#[test]
fn scatterv_gives_everybody_a_block_of_its_length() {
    check(|group| async move {
        let (task, me, size) = (group.task(), group.me(), group.size());
        let counts: Vec<u64> = (0..size).map(|to| uneven(2, to)).collect();
        for root in 0..size {
            let (out, into) = (filled(task, counts.iter().sum()), task.allocate(uneven(2, me)));
            scatterv(&group, root, out, into, &counts).await;
            let before: u64 = counts[..me as usize].iter().sum();
            let all = bytes_of(root, before + uneven(2, me));
            assert_eq!(read(task, into), all[before as usize..], "from {root} at {me}");
        }
    });
}

#[test]
fn reduce_gives_the_root_the_sum() {
    let trees = TREES.map(|radix| Reduce::Tree { radix });
    let segmented = [100, 1024].map(|segment| Reduce::Segmented { radix: 2, segment });
    for form in std::iter::once(Reduce::Plain).chain(trees).chain(segmented) {
        check(move |group| async move {
            let (task, me, size) = (group.task(), group.me(), group.size());
            for (root, length) in [(0, 24), (size - 1, 3000)] {
                let (out, into) = (filled(task, length), task.allocate(length));
                reduce(&group, form, root, out, into).await;
                if me == root {
                    assert_eq!(read(task, into), sum_of_all(size, length), "{form:?} at {root}");
                }
            }
        });
    }
}

#[test]
fn allreduce_gives_everybody_the_sum() {
    for form in [Allreduce::Plain, Allreduce::RecursiveDoubling, Allreduce::Ring] {
        check(move |group| async move {
            let (task, size) = (group.task(), group.size());
            for length in [1, 24, 3001] {
                let (out, into) = (filled(task, length), task.allocate(length));
                allreduce(&group, form, out, into).await;
                assert_eq!(read(task, into), sum_of_all(size, length), "{form:?} of {length} bytes");
            }
        });
    }
}

#[test]
fn reduce_scatter_gives_everybody_its_block_of_the_sum() {
    use ReduceScatter::{Pairwise, Plain, RecursiveHalving, ReduceThenScatterv, Ring};
    for form in [Plain, Pairwise, RecursiveHalving, Ring, ReduceThenScatterv] {
        check(move |group| async move {
            let (task, me, size) = (group.task(), group.me(), group.size());
            for block in BLOCKS {
                let length = u64::from(size) * block;
                let (out, into) = (filled(task, length), task.allocate(block));
                reduce_scatter(&group, form, out, into, block).await;
                let sum = sum_of_all(size, length);
                assert_eq!(read(task, into), sum[(u64::from(me) * block) as usize..][..block as usize], "{form:?}");
            }
        });
    }
}

#[test]
fn members_without_a_part_of_a_sum_get_none() {
    check(move |group| async move {
        let (task, me, size) = (group.task(), group.me(), group.size());
        // 4 bytes for the first half of the members, and none for the others.
        let counts: Vec<u64> = (0..size).map(|member| 4 * u64::from(member < size.div_ceil(2))).collect();
        let length = counts.iter().sum();
        let own = counts[me as usize];
        let (out, into) = (filled(task, length), task.allocate(4));
        reduce_then_scatterv(&group, out, into, &counts).await;
        let before = u64::from(me) * 4;
        let expected = if own > 0 { sum_of_all(size, length)[before as usize..][..4].to_vec() } else { vec![0; 4] };
        assert_eq!(read(task, into), expected);
    });
}

#[test]
fn nobody_leaves_a_barrier_before_the_last_has_come() {
    let trees = TREES.map(|radix| Barrier::Tree { radix });
    for form in [Barrier::Plain, Barrier::Dissemination, Barrier::RecursiveDoubling].into_iter().chain(trees) {
        let program = move |task: Task| async move {
            let world = Communicator::world(&task);
            let late = task.size() / 2;
            if world.me() == late {
                task.compute(tidegate_sim::Time::from_microseconds(500)).await;
            }
            task.record("came", 0, task.now().microseconds());
            barrier(&world, form).await;
            task.record("left", 0, task.now().microseconds());
        };
        for size in [2, 3, 8, 13] {
            let outcome = run(job(size, FlowChoice::Unlimited), &program);
            let last = outcome.samples_of("came").map(|sample| sample.value).fold(0.0, f64::max);
            let first = outcome.samples_of("left").map(|sample| sample.value).fold(f64::MAX, f64::min);
            assert!(first >= last, "{form:?} of {size}: left at {first}, came at {last}");
        }
    }
}

#[test]
fn groups_do_not_hear_each_other() {
    let program = |task: Task| async move {
        let world = Communicator::world(&task);
        let half = task.size() / 2;
        let first = if task.rank().0 < half { 0 } else { half };
        let group = Communicator::range(&task, 1 + first, first, half).expect("everybody is in one");
        let (out, into) = (filled(&task, 100), task.allocate(100 * u64::from(half)));
        allgather(&group, Allgather::Bruck, out, into, 100).await;
        barrier(&world, Barrier::Dissemination).await;
        let expected: Vec<u8> = (first..first + half).flat_map(|rank| bytes_of(rank, 100)).collect();
        assert_eq!(read(&task, into), expected);
    };
    run(job(10, mailbox(tidegate_flow::SchemeName::Static, 2, 1, false)), &program);
}
