//! The machine under the processes: slow receivers, noise, bounded receive memory, sparse jobs, bulk data, bounds.

use tidegate_flow::SchemeName;
use tidegate_message::Counter;
use tidegate_sim::calibration::Anchor;
use tidegate_sim::checker::round_trip_bound;
use tidegate_sim::workload::Communicator;
use tidegate_sim::workload::collective::{Alltoall, Barrier, alltoall, barrier};
use tidegate_sim::workload::{Benchmark, Operation};
use tidegate_sim::{
    Activity, Contents, Cost, FlowChoice, NetworkParameters, NodeId, Noise, Part, Rank, Simulation, SimulationConfig,
    SlowReceivers, Tag, Task, Time, Topology,
};

use super::support::{job, mailbox, run};

async fn one_alltoall(task: Task) {
    let world = Communicator::world(&task);
    let bytes = 2048 * u64::from(task.size());
    let (out, into) = (task.allocate(bytes), task.allocate(bytes));
    alltoall(&world, Alltoall::Plain, out, into, 2048).await;
}

#[test]
fn a_2_kib_message_is_37_packets() {
    let outcome = run(job(2, FlowChoice::Unlimited), &one_alltoall);
    assert_eq!(outcome.network.delivered, 2 * 37);
}

#[test]
fn no_run_beats_its_bounds() {
    for topology in [Topology::mesh(&[2, 2, 2]), Topology::torus(&[3, 3]), Topology::switch(8)] {
        let topology = topology.expect("legal");
        let flow = mailbox(SchemeName::Static, 58, 2, false);
        let config = SimulationConfig { processes_per_node: 2, flow, ..SimulationConfig::extoll(topology) };
        let outcome = run(config, &one_alltoall);
        assert!(outcome.bounds.largest() > Time::ZERO);
        assert!(outcome.time >= outcome.bounds.largest(), "{} {:?}", outcome.time, outcome.bounds);
        for process in &outcome.processes {
            assert!(process.spent.total() <= outcome.time + Time::from_microseconds(1));
        }
    }
}

#[test]
fn a_stream_is_no_faster_than_its_credits_come_back() {
    let program = |task: Task| async move {
        let part = task.allocate(2048);
        for _ in 0..50 {
            match task.rank() {
                Rank(0) => task.send(Rank(1), Tag(1), part).await,
                _ => drop(task.receive(Rank(0), Tag(1), part).await),
            }
        }
    };
    let topology = Topology::mesh(&[30]).expect("legal");
    let nodes = Some(vec![NodeId(0), NodeId(29)]);
    let flow = mailbox(SchemeName::Static, 5, 1, false);
    let base = SimulationConfig::extoll(topology);
    // There and back over 29 hops: the network alone.
    let parameters = &base.network;
    let round_trip = (parameters.router_latency + parameters.link_latency) * (2 * 29);
    let outcome = run(SimulationConfig { processes_per_node: 1, nodes, flow, ..base }, &program);
    let bound = round_trip_bound(50 * 37, 4, round_trip);
    assert!(outcome.time >= bound, "{} is less than {bound}", outcome.time);
    assert!(outcome.time.0 < 3 * bound.0, "{} is far from {bound}, which is what holds it up", outcome.time);
}

#[test]
fn slow_receivers_make_everybody_wait() {
    let flow = mailbox(SchemeName::Static, 20, 2, false);
    let quick = run(job(8, flow), &one_alltoall);
    let slow_receivers = SlowReceivers { per_mille: 1000, delay: Time::from_microseconds(5) };
    let slow = run(SimulationConfig { slow_receivers, ..job(8, flow) }, &one_alltoall);
    let least = Time::from_microseconds(5) * (7 * 37);
    assert!(slow.time >= least && quick.time < least, "{} and {}", slow.time, quick.time);
}

#[test]
fn noise_prolongs_work_and_not_waiting() {
    let program = |task: Task| async move {
        let part = task.allocate(8);
        match task.rank() {
            Rank(0) => {
                task.compute(Time::from_microseconds(100_000)).await;
                task.send(Rank(1), Tag(1), part).await;
            }
            _ => drop(task.receive(Rank(0), Tag(1), part).await),
        }
    };
    let with = |noise| run(SimulationConfig { noise, ..job(2, FlowChoice::Unlimited) }, &program);
    let (interval, duration) = (Time::from_microseconds(100), Time::from_microseconds(7));
    let (quiet, noisy) = (with(Noise::default()), with(Noise { interval, duration }));
    let lost = noisy.time.since(quiet.time);
    let expected = duration * 1000;
    assert!(lost.0.abs_diff(expected.0) < expected.0 / 10, "{lost} instead of {expected}");
    for (before, after) in quiet.processes.iter().zip(&noisy.processes) {
        assert_eq!(after.spent.on(Activity::Compute), before.spent.on(Activity::Compute), "that is not its own work");
    }
}

#[test]
fn noise_that_makes_no_sense_is_refused() {
    let refused = |noise| {
        let config = SimulationConfig { noise, ..job(2, FlowChoice::Unlimited) };
        Simulation::new(config, &one_alltoall).expect_err("makes no sense").to_string()
    };
    let duration = Time::from_microseconds(1);
    assert!(
        refused(Noise { interval: Time::ZERO, duration })
            .contains("`noise_interval` is too short: give at least 100 ns")
    );
    assert!(refused(Noise { duration, ..Noise::default() }).contains("give a `noise_interval`"));
}

#[test]
fn credits_cost_time_only_under_a_scheme_that_has_them() {
    let spent = |flow| {
        let outcome = run(job(8, flow), &one_alltoall);
        outcome.processes.iter().map(|process| process.spent.on(Activity::Credits)).max()
    };
    assert_eq!(spent(FlowChoice::Unlimited), Some(Time::ZERO));
    assert_eq!(spent(mailbox(SchemeName::None, 8, 1, false)), Some(Time::ZERO));
    assert!(spent(mailbox(SchemeName::Static, 8, 2, false)) > Some(Time::ZERO));
}

#[test]
fn long_messages_are_fetched_and_use_few_slots() {
    let program = |task: Task| async move {
        let part = task.allocate(1 << 20);
        match task.rank() {
            Rank(0) => task.send(Rank(1), Tag(1), part).await,
            _ => drop(task.receive(Rank(0), Tag(1), part).await),
        }
    };
    let config = SimulationConfig { contents: Contents::Lengths, ..job(2, mailbox(SchemeName::Static, 4, 1, false)) };
    let config = SimulationConfig { processes_per_node: 1, topology: Topology::mesh(&[2]).expect("legal"), ..config };
    let outcome = run(config, &program);
    assert_eq!(outcome.counter(Counter::MessagesRendezvous), 1);
    // Request to send and finished, one read request, and 512 frames of 2 KiB.
    assert_eq!(outcome.network.delivered, 2 + 1 + 512);
    let least = NetworkParameters::extoll().link_bandwidth.time_of(1 << 20);
    assert!(outcome.time >= least && outcome.time.0 < 2 * least.0, "{}", outcome.time);
}

#[test]
fn receive_memory_that_is_bounded_holds_messages_back_and_delivers_them_all() {
    let program = |task: Task| async move {
        let world = Communicator::world(&task);
        let part = task.allocate(2048);
        if task.rank() == Rank(0) {
            task.compute(Time::from_microseconds(300)).await;
            for from in 1..task.size() {
                for _ in 0..40 {
                    task.receive(Rank(from), Tag(1), part).await;
                }
            }
        } else {
            for _ in 0..40 {
                task.send(Rank(0), Tag(1), part).await;
            }
        }
        barrier(&world, Barrier::Dissemination).await;
    };
    let config = job(4, mailbox(SchemeName::Dynamic, 16, 2, true));
    let bound = 300_000;
    let outcome = run(SimulationConfig { receive_memory: Some(bound), ..config.clone() }, &program);
    let peak = outcome.counter(Counter::ReceivePeak);
    assert!(peak <= bound as u64, "{peak} bytes are more than the bound of {bound}");
    let free = run(config, &program);
    assert!(free.counter(Counter::UnexpectedPeak) >= outcome.counter(Counter::UnexpectedPeak));
}

/// Each of 512 processes talks to its 8 nearest neighbours only, and has room for 8 peers.
#[test]
fn a_sparse_job_needs_room_for_its_contacts_only() {
    let program = |task: Task| async move {
        let size = task.size();
        let near = |distance: u32| Rank((task.rank().0 + distance) % size);
        let part = task.allocate(300);
        let mut requests = Vec::new();
        for distance in 1..=4 {
            requests.push(task.start_receive(near(size - distance), Tag(1), part).await);
            requests.push(task.start_receive(near(distance), Tag(1), part).await);
        }
        for distance in 1..=4 {
            task.send(near(distance), Tag(1), part).await;
            task.send(near(size - distance), Tag(1), part).await;
        }
        task.wait_all(requests).await;
    };
    for &scheme in SchemeName::WITHOUT_BUFFERS {
        let flow = mailbox(scheme, 8, 1, false);
        let topology = Topology::torus(&[8, 8]).expect("legal");
        let config =
            SimulationConfig { processes_per_node: 8, peers: Some(8), flow, ..SimulationConfig::extoll(topology) };
        let outcome = run(config, &program);
        assert_eq!(outcome.counter(Counter::BytesReceived), 512 * 8 * 300);
    }
}

#[test]
fn a_part_is_where_it_says() {
    let part = Part { offset: 100, length: 50 };
    assert_eq!(part.block(2, 10), Part { offset: 120, length: 10 });
    assert_eq!(part.blocks(1, 3, 10), Part { offset: 110, length: 30 });
    assert_eq!(part.slice(50, 0), Part { offset: 150, length: 0 });
}

/// The all-to-alls are too large for a test: `--example calibrate` prints all four.
#[test]
fn the_machine_of_p_takes_its_time_for_pingpongs() {
    for anchor in [Anchor::PingpongNear, Anchor::PingpongFar] {
        let (here, paper) = (anchor.measure().expect("it runs"), anchor.paper_microseconds());
        assert!((here / paper - 1.0).abs() < 0.05, "{}: {here} µs, not {paper}", anchor.name());
    }
}

/// A program that has ended looks no more at its mailbox, also where a look takes no time.
#[test]
fn runs_end_where_nothing_takes_time() {
    let free = [Cost::free(), Cost { poll: Time::ZERO, ..Cost::extoll() }];
    let operations =
        [Operation::Barrier(Barrier::Dissemination), Operation::Alltoall(Alltoall::Plain), Operation::Pingpong];
    for (cost, operation) in free.into_iter().flat_map(|cost| operations.map(|operation| (cost.clone(), operation))) {
        for flow in [FlowChoice::Unlimited, mailbox(SchemeName::Static, 8, 2, false)] {
            let benchmark = Benchmark { active: Some(3), ..Benchmark::new(operation) };
            run(SimulationConfig { cost: cost.clone(), ..job(8, flow) }, &benchmark);
        }
    }
}
