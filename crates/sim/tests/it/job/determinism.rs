//! The same seed gives the same outcome, to the last byte.

use tidegate_flow::SchemeName;
use tidegate_sim::workload::Communicator;
use tidegate_sim::workload::collective::{Alltoall, alltoall};
use tidegate_sim::{Noise, Outcome, Random, SimulationConfig, SlowReceivers, Task, Time};

use super::support::{job, mailbox, run};

/// With computation and slow receivers that the seed decides.
fn noisy_alltoall(seed: u64) -> Outcome {
    let program = move |task: Task| async move {
        let world = Communicator::world(&task);
        let mut random = Random::stream(seed, u64::from(task.rank().0));
        let bytes = 500 * u64::from(task.size());
        let (out, into) = (task.allocate(bytes), task.allocate(bytes));
        for iteration in 0..5 {
            task.compute(Time(random.below(20_000_000))).await;
            alltoall(&world, Alltoall::Pairwise, out, into, 500).await;
            task.record("end", iteration, task.now().nanoseconds());
        }
    };
    let slow_receivers = SlowReceivers { per_mille: 300, delay: Time::from_nanoseconds(500) };
    let config = job(12, mailbox(SchemeName::Dynamic, 6, 2, true));
    run(SimulationConfig { seed, slow_receivers, ..config }, &program)
}

/// With noise alone.
fn interrupted_alltoall(seed: u64) -> Outcome {
    let program = |task: Task| async move {
        let world = Communicator::world(&task);
        let bytes = 500 * u64::from(task.size());
        let (out, into) = (task.allocate(bytes), task.allocate(bytes));
        alltoall(&world, Alltoall::Plain, out, into, 500).await;
    };
    let noise = Noise { interval: Time::from_microseconds(50), duration: Time::from_microseconds(2) };
    run(SimulationConfig { seed, noise, ..job(12, mailbox(SchemeName::Static, 6, 2, true)) }, &program)
}

#[test]
fn equal_seeds_give_equal_outcomes() {
    assert_eq!(format!("{:?}", noisy_alltoall(1)), format!("{:?}", noisy_alltoall(1)));
    assert_eq!(format!("{:?}", interrupted_alltoall(1)), format!("{:?}", interrupted_alltoall(1)));
}

#[test]
fn different_seeds_give_different_outcomes() {
    assert_ne!(noisy_alltoall(1).time, noisy_alltoall(2).time);
    // Noise is all that the seed decides here.
    assert_ne!(interrupted_alltoall(1).time, interrupted_alltoall(2).time);
}

#[test]
fn random_numbers_are_the_same_everywhere() {
    let mut random = Random::new(1);
    let first: Vec<u64> = (0..3).map(|_| random.draw()).collect();
    assert_eq!(first, [0x910a_2dec_8902_5cc1, 0xbeeb_8da1_658e_ec67, 0xf893_a2ee_fb32_555e]);
    let mut order = Random::new(5).permutation(100);
    assert_ne!(order, Vec::from_iter(0..100));
    order.sort_unstable();
    assert_eq!(order, Vec::from_iter(0..100));
}
