//! The patterns against the counts and sizes that the notes on L and A derive from the published programs, and against
//! L's table 1.

use super::*;
use crate::flight::Rank;
use crate::task::{Sender, TagFilter, Task};
use crate::workload::{RecordedOperation, record};

/// Messages of one process outside of collective operations, by their length.
fn lengths(benchmark: Benchmark, class: Class, processes: u32, rank: u32) -> Vec<u64> {
    let nas = Nas { benchmark, class, iterations: None, rate: 1000.0, variation: Variation::AsPublished };
    nas.check(processes).unwrap();
    let program = move |task: Task| async move { nas.run(&Communicator::world(&task)).await };
    let steps = record(&program, Rank(rank), processes).unwrap();
    let sends = steps.into_iter().map(|step| step.deed).filter(|deed| !deed.is_collective());
    sends.filter_map(|deed| if let RecordedOperation::Send { bytes, .. } = deed { Some(bytes) } else { None }).collect()
}

/// The least, the sum, and the most over all processes.
fn spread(benchmark: Benchmark, class: Class, processes: u32, counts: impl Fn(u64) -> bool) -> (usize, usize, usize) {
    let of = |rank| lengths(benchmark, class, processes, rank).into_iter().filter(|length| counts(*length)).count();
    let all: Vec<usize> = (0..processes).map(of).collect();
    (*all.iter().min().unwrap(), all.iter().sum(), *all.iter().max().unwrap())
}

fn distinct(mut lengths: Vec<u64>) -> Vec<u64> {
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

#[test]
fn lu_sends_a_short_message_per_plane_and_neighbour() {
    let all = |_| true;
    assert_eq!(spread(Benchmark::Lu, Class::A, 8, all), (31_504, 8 * 39_380, 47_256));
    assert_eq!(spread(Benchmark::Lu, Class::A, 16, all), (31_504, 16 * 47_256, 63_008));
    let (least, sum, most) = spread(Benchmark::Lu, Class::B, 32, all);
    assert_eq!((least, (sum as f64 / 32.0).round() as usize, most), (50_504, 82_069, 101_008));
    assert_eq!(distinct(lengths(Benchmark::Lu, Class::A, 8, 0)), [640, 1280, 81_920, 163_840]);
    assert_eq!(distinct(lengths(Benchmark::Lu, Class::B, 32, 0)), [520, 1040, 106_080, 212_160]);
    // Table 1 of L is of one process with three neighbours: planes, and faces with each of them.
    let of_three = lengths(Benchmark::Lu, Class::A, 8, 1);
    let planes = of_three.iter().filter(|length| **length <= 2048).count();
    assert_eq!((planes, of_three.len() - planes), (46_500, 756));
}

#[test]
fn cg_exchanges_rows_and_a_transpose_and_many_scalars() {
    let large = |length| length > 16;
    for (class, processes, bytes, (least, most), scalars) in [
        (Class::A, 8, 28_000, (832, 1248), 1696),
        (Class::A, 16, 28_000, (832, 1248), 1696),
        (Class::B, 32, 75_000, (5928, 7904), 12_084),
        (Class::B, 64, 75_000, (5928, 7904), 12_084),
    ] {
        let (fewest, _, greatest) = spread(Benchmark::Cg, class, processes, large);
        assert_eq!((fewest, greatest), (least, most), "{class} {processes}");
        let (fewest, _, greatest) = spread(Benchmark::Cg, class, processes, |length| length <= 16);
        assert_eq!((fewest, greatest), (scalars, scalars), "{class} {processes}");
        assert_eq!(distinct(lengths(Benchmark::Cg, class, processes, 1)), [8, 16, bytes]);
    }
}

#[test]
fn mg_exchanges_faces_on_all_levels() {
    let all = |_| true;
    let (least, _, most) = spread(Benchmark::Mg, Class::A, 8, all);
    assert_eq!((least, most), (708, 708));
    assert_eq!(spread(Benchmark::Mg, Class::A, 16, all).0, 648);
    assert_eq!(spread(Benchmark::Mg, Class::B, 32, all).0, 2664);
    assert_eq!(spread(Benchmark::Mg, Class::B, 64, all).0, 2664);
    let lengths = distinct(lengths(Benchmark::Mg, Class::A, 8, 0));
    assert_eq!((lengths.first(), lengths.last()), (Some(&8), Some(&135_200)));
}

#[test]
fn bt_and_sp_exchange_six_faces_and_sweep_six_times() {
    for (benchmark, class, processes, count, sizes) in [
        (Benchmark::Bt, Class::A, 16, 4824, [61_440, 69_360, 11_560]),
        (Benchmark::Bt, Class::B, 36, 7236, [115_600, 77_760, 12_960]),
        (Benchmark::Bt, Class::B, 64, 9648, [91_035, 40_560, 6_760]),
        (Benchmark::Sp, Class::A, 16, 9624, [61_440, 45_056, 20_480]),
        (Benchmark::Sp, Class::B, 36, 14_436, [115_600, 50_864, 23_120]),
        (Benchmark::Sp, Class::B, 64, 19_248, [91_035, 28_611, 13_005]),
    ] {
        let sent = lengths(benchmark, class, processes, 5);
        assert_eq!(sent.len(), count, "{benchmark:?} {class} {processes}");
        assert_eq!(distinct(sent), distinct(sizes.to_vec()), "{benchmark:?} {class} {processes}");
    }
}

#[test]
fn is_and_ft_talk_in_collective_operations_only() {
    for (benchmark, class, processes, operations, bytes) in [
        (Benchmark::Is, Class::A, 8, 11, 524_288),
        (Benchmark::Is, Class::B, 64, 11, 32_768),
        (Benchmark::Ft, Class::A, 8, 8, 2_097_152),
        (Benchmark::Ft, Class::B, 32, 22, 524_288),
    ] {
        assert_eq!(lengths(benchmark, class, processes, 3), []);
        let nas = Nas { benchmark, class, iterations: None, rate: 1000.0, variation: Variation::AsPublished };
        let program = move |task: Task| async move { nas.run(&Communicator::world(&task)).await };
        let steps = record(&program, Rank(3), processes).unwrap();
        let is_block = |step: &&crate::workload::Step| matches!(step.deed, RecordedOperation::Send { bytes: sent, .. } if sent == bytes);
        assert_eq!(steps.iter().filter(is_block).count() as u32, operations * (processes - 1), "{benchmark:?}");
    }
}

#[test]
fn each_message_has_its_receive() {
    for benchmark in Benchmark::ALL {
        let nas =
            Nas { benchmark, class: Class::A, iterations: Some(2), rate: 1000.0, variation: Variation::AsPublished };
        let program = move |task: Task| async move { nas.run(&Communicator::world(&task)).await };
        let mut balance = std::collections::HashMap::<(u32, u32, Tag, u64), i64>::new();
        for rank in 0..16 {
            for step in record(&program, Rank(rank), 16).unwrap() {
                match step.deed {
                    RecordedOperation::Send { to, bytes, tag } => {
                        *balance.entry((rank, to.0, tag, bytes)).or_default() += 1
                    }
                    RecordedOperation::Receive { from: Sender::Rank(from), bytes, tag: TagFilter::Is(tag) } => {
                        *balance.entry((from.0, rank, tag, bytes)).or_default() -= 1
                    }
                    other => assert!(matches!(other, RecordedOperation::Compute(_)), "{other:?}"),
                }
            }
        }
        assert!(balance.values().all(|count| *count == 0), "{benchmark:?}");
    }
}

/// NPB 3.3 stops where a process's part would have fewer than four points along an edge in LU, three in BT and SP.
#[test]
fn parts_of_a_large_job_are_as_large_as_the_programs_want_them() {
    let allowed = |benchmark, class| {
        let runs = move |size: &u32| {
            Nas { benchmark, class, iterations: None, rate: 1.0, variation: Variation::AsPublished }
                .check(*size)
                .is_ok()
        };
        let edge = Nas { benchmark, class, iterations: None, rate: 1.0, variation: Variation::AsPublished }.edge();
        (edge, [128, 256, 512, 1024].into_iter().filter(runs).max())
    };
    assert_eq!(allowed(Benchmark::Lu, Class::A), (64, Some(256)));
    assert_eq!(allowed(Benchmark::Lu, Class::B), (102, Some(256)));
    assert_eq!(allowed(Benchmark::Lu, Class::C), (162, Some(1024)));
    assert_eq!(allowed(Benchmark::Sp, Class::A), (64, Some(256)));
    assert_eq!(allowed(Benchmark::Sp, Class::B), (102, Some(1024)));
}

#[test]
fn a_thousand_processes_have_the_messages_of_the_programs() {
    let corner = lengths(Benchmark::Lu, Class::C, 1024, 0).len();
    let inner = lengths(Benchmark::Lu, Class::C, 1024, 33).len();
    // Two neighbours behind, or two before and two behind: 160 planes, 250 iterations; faces 252 times with each.
    assert_eq!((corner, inner), (2 * 160 * 250 + 2 * 252, 4 * 160 * 250 + 4 * 252));
    // Five exchanges along the row, and the transposed process, 26 times in each of 76 iterations.
    let rows = lengths(Benchmark::Cg, Class::B, 1024, 1).into_iter().filter(|length| *length > 16).count();
    assert_eq!(rows, 76 * 26 * 6);
    assert_eq!(distinct(lengths(Benchmark::Cg, Class::B, 1024, 1)), [8, 16, 18_750]);
    // Class C has a level more: 26 exchanges in a cycle instead of 23.
    let sent = |class| lengths(Benchmark::Mg, class, 1024, 0).len();
    assert_eq!((sent(Class::B), sent(Class::C)), (6 * (21 * 23 + 3), 6 * (21 * 26 + 3)));
    assert_eq!(lengths(Benchmark::Sp, Class::B, 1024, 5).len(), 401 * (6 + 6 * 31));
}

#[test]
fn processes_that_it_does_not_run_on_are_refused_with_those_that_it_does() {
    let nas = |benchmark| Nas {
        benchmark,
        class: Class::A,
        iterations: None,
        rate: 1000.0,
        variation: Variation::AsPublished,
    };
    assert_eq!(nas(Benchmark::Bt).check(8).unwrap_err(), "BT runs on 16, 36, 64, 256 processes, not on 8");
    assert!(nas(Benchmark::Lu).check(36).is_err() && nas(Benchmark::Lu).check(32).is_ok());
    assert!(nas(Benchmark::Ft).check(128).is_err(), "its grid is divided along one axis");
    assert!("XY".parse::<Benchmark>().is_err() && "D".parse::<Class>().is_err());
}

#[test]
fn operations_are_those_that_the_benchmarks_print() {
    // Millions of operations of a whole run, as NPB's own reports have them.
    for (benchmark, class, whole) in [
        (Benchmark::Lu, Class::A, 119_280.0),
        (Benchmark::Bt, Class::A, 168_300.0),
        (Benchmark::Sp, Class::A, 85_000.0),
        (Benchmark::Cg, Class::A, 1_508.0),
        (Benchmark::Mg, Class::A, 3_892.0),
        (Benchmark::Lu, Class::C, 2_039_000.0),
        (Benchmark::Cg, Class::C, 143_300.0),
        (Benchmark::Mg, Class::C, 155_700.0),
    ] {
        let nas = Nas { benchmark, class, iterations: None, rate: 1.0, variation: Variation::AsPublished };
        let counted = nas.operations() * f64::from(nas.iterations());
        assert!((counted / whole - 1.0).abs() < 0.01, "{benchmark:?}: {counted}");
    }
}
