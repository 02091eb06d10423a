//! Phases, patterns and traces.

use std::cell::RefCell;
use std::rc::Rc;

use tidegate_flow::SchemeName;
use tidegate_message::Counter;
use tidegate_sim::workload::collective::Alltoall;
use tidegate_sim::workload::{
    Benchmark, Communicator, HALO, Neighbours, Operation, Pattern, Phase, Phases, Trace, Traffic,
};
use tidegate_sim::{Part, Rank, SimulationConfig, Tag, Task, Time, Topology};

use super::support::{all_flows, job, mailbox, run};

#[test]
fn every_pattern_delivers_all_its_messages_under_every_scheme() {
    let patterns = [
        Pattern::Random,
        Pattern::Permutation,
        Pattern::Incast { root: 3 },
        Pattern::CyclicShift,
        Pattern::Transpose,
        Pattern::Pairs,
    ];
    for pattern in patterns {
        let traffic = Traffic::new(pattern, 8, 6, 11);
        let messages: u64 = (0..8).map(|member| u64::from(traffic.incoming(member))).sum();
        let program = move |task: Task| {
            let traffic = traffic.clone();
            async move { traffic.run(&Communicator::world(&task), 700, 2).await }
        };
        for flow in all_flows() {
            let outcome = run(job(8, flow), &program);
            assert_eq!(outcome.counter(Counter::BytesReceived), messages * 700, "{pattern:?}");
        }
    }
}

/// Two runs, so that the barriers around it do not count.
#[test]
fn every_process_gets_a_message_of_each_neighbour_under_every_scheme() {
    let grid = |dimensions| Neighbours::Grid { dimensions };
    for (neighbours, each) in [(grid(2), 4), (grid(3), 5), (Neighbours::Drawn { count: 6, seed: 3 }, 6)] {
        let benchmark =
            |bytes| Benchmark { bytes, repetitions: 2, ..Benchmark::new(Operation::Neighbours(neighbours)) };
        for flow in all_flows() {
            let [nothing, all] = [0, 700].map(|bytes| run(job(18, flow), &benchmark(bytes)));
            let received = [&nothing, &all].map(|outcome| outcome.counter(Counter::BytesReceived));
            assert_eq!(received[1] - received[0], 18 * each * 3 * 700, "{neighbours:?}");
            assert_eq!(all.samples_of("time").count(), 18);
        }
    }
}

#[test]
fn idle_ranks_have_no_part_in_a_phase_and_credits_follow_who_works() {
    let phases = Phases {
        phases: [Phase { active: 8, operations: 2 }, Phase { active: 4, operations: 30 }].into(),
        block: 2048,
        form: Alltoall::Plain,
        watched: [1..4, 4..8].into(),
    };
    let program = move |task: Task| {
        let phases = phases.clone();
        async move { phases.run(&Communicator::world(&task)).await }
    };
    let outcome = run(job(8, mailbox(SchemeName::Dynamic, 30, 2, false)), &program);
    let times = |operation| outcome.samples_of("alltoall").filter(|sample| sample.index == operation).count();
    assert_eq!((times(0), times(1), times(2), times(31)), (8, 8, 4, 4));
    let median = |operation: u64, range: u64| {
        let mut found = outcome.samples_of("credits median").filter(|sample| sample.index == 2 * operation + range);
        found.next().expect("rank 0 watches").value
    };
    // An equal share is 28 credits. Credits towards the active ranks grow by what idle senders do not need; credits
    // towards the idle ranks do not change.
    let most = |range| (2..32).map(|operation| median(operation, range)).fold(0.0, f64::max);
    assert!(most(0) > 42.0, "credits towards those who work stay at {}", most(0));
    assert!(most(1) <= 28.0, "credits towards the idle grow to {}", most(1));
    assert_eq!(outcome.samples_of("credits maximum").count(), 2 * 32);
}

#[test]
fn a_trace_is_replayed_under_every_scheme() {
    let trace = Trace::parse(HALO).expect("a legal trace");
    let (messages, bytes) = trace.messages();
    let program = move |task: Task| {
        let trace = trace.clone();
        async move { trace.replay(&task).await }
    };
    for flow in all_flows() {
        let outcome = run(job(16, flow), &program);
        assert_eq!(outcome.counter(Counter::BytesReceived), bytes);
        let sent = outcome.counter(Counter::MessagesEager) + outcome.counter(Counter::MessagesRendezvous);
        assert_eq!(sent, messages);
        assert!(outcome.time >= Time::from_microseconds(5 * 20), "five steps of 20 µs of computing");
    }
}

#[test]
fn operations_of_a_trace_wait_for_what_they_require() {
    let text = "
        num_ranks 2
        rank 0 {
            slow: calc 500000
            early: send 8b to 1 tag 1
            late: send 8b to 1 tag 2
            late requires slow
            early irequires slow  // has begun at once
        }
        rank 1 { }";
    let text = text.replace("rank 1 { }", "");
    let trace = Trace::parse(&text).expect("a legal trace");
    let order = Rc::new(RefCell::new(Vec::new()));
    let seen = order.clone();
    let program = move |task: Task| {
        let (trace, seen) = (trace.clone(), seen.clone());
        async move {
            trace.replay(&task).await;
            if task.rank() == Rank(1) {
                let part = task.allocate(8);
                for tag in [Tag(1), Tag(2)] {
                    task.receive(Rank(0), tag, part).await;
                    seen.borrow_mut().push(task.now());
                }
                task.send(Rank(0), Tag(9), Part::EMPTY).await;
            }
        }
    };
    run(job(2, mailbox(SchemeName::Static, 4, 1, false)), &program);
    let order = order.borrow();
    assert!(order[1] >= Time::from_microseconds(500), "the late one waits for the computation: {}", order[1]);
}

/// Rank 1 begins late, so the first of rank 0's receives gets the message of rank 2, whose answer ends it early. Both
/// messages of rank 1 then have to come in their order: the second is too long for the second receive.
const WILDCARDS: &str = "
    num_ranks 4
    rank 0 {
        first: recv 8b from -1 tag -1
        second: recv 8b from -1 tag 5
        third: recv 900b from 1 tag -1
        answer: send 8b to 2 tag 9
        second irequires first
        third irequires second
        answer requires first
    }
    rank 1 {
        work: calc 500000
        short: send 8b to 0 tag 5
        long: send 900b to 0 tag 6
        short requires work
        long irequires short
    }
    rank 2 {
        send 8b to 0 tag 7
        recv 8b from 0 tag 9
    }
    rank 3 {
    }";

#[test]
fn a_receive_from_any_rank_gets_the_first_message_that_has_come_under_every_scheme() {
    let trace = Trace::parse(WILDCARDS).expect("a legal trace");
    let places = |flow| [(flow, 1, false), (flow, 2, true), (flow, 4, true)];
    for (flow, processes_per_node, intra_node_path) in all_flows().into_iter().flat_map(places) {
        let ends = Rc::new(RefCell::new([Time::ZERO; 4]));
        let (seen, trace) = (ends.clone(), trace.clone());
        let program = move |task: Task| {
            let (trace, seen) = (trace.clone(), seen.clone());
            async move {
                trace.replay(&task).await;
                seen.borrow_mut()[task.rank().0 as usize] = task.now();
            }
        };
        let config = job(4, flow);
        let nodes = 4 / processes_per_node;
        let topology = Topology::switch(nodes).expect("legal");
        run(SimulationConfig { processes_per_node, intra_node_path, topology, ..config }, &program);
        let ends = ends.borrow();
        assert!(ends[2] < Time::from_microseconds(500), "rank 2 has its answer before rank 1 sends: {}", ends[2]);
        assert!(ends[0] >= Time::from_microseconds(500), "rank 0 waits for rank 1: {}", ends[0]);
    }
}
