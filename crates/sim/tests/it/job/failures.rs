//! The errors of jobs that cannot go on.

use tidegate_flow::{Buffers, SchemeName};
use tidegate_sim::checker::Wait;
use tidegate_sim::{
    BlockedSender, FlowChoice, NodeId, Part, Rank, Sender, SimulationConfig, SimulationError, Tag, Task,
};

use super::support::{job, mailbox, try_run};

#[test]
fn a_circle_of_receives_is_reported_with_who_waits_for_whom() {
    let program = |task: Task| async move {
        let next = Rank((task.rank().0 + 1) % 3);
        if task.rank().0 < 3 {
            task.receive(next, Tag(5), Part::EMPTY).await;
        }
    };
    let Err(SimulationError::Deadlock(deadlock)) = try_run(job(4, FlowChoice::Unlimited), &program) else {
        panic!("three processes wait for each other");
    };
    let waits: Vec<_> = deadlock.waiters.iter().map(|waiter| (waiter.rank, waiter.waits.clone())).collect();
    let from = |rank| vec![Wait::MessageFrom { from: Rank(rank), tag: Tag(5).into() }];
    assert_eq!(waits, [(Rank(0), from(1)), (Rank(1), from(2)), (Rank(2), from(0))]);
    assert_eq!(deadlock.circle(), Some(vec![Rank(0), Rank(1), Rank(2)]));
    let text = deadlock.to_string();
    assert!(text.contains("rank 1 waits since"), "{text}");
    assert!(text.contains("a message from rank 2 (tag 5)"), "{text}");
    assert!(text.contains("a circle: rank 0 waits for rank 1 waits for rank 2, and so on"), "{text}");
}

#[test]
fn long_sends_that_nobody_receives_are_reported() {
    let program = |task: Task| async move {
        let part = task.allocate(10_000);
        task.send(Rank(1 - task.rank().0), Tag(1), part).await;
        task.receive(Sender::Any, Tag(1), part).await;
    };
    let Err(SimulationError::Deadlock(deadlock)) = try_run(job(2, mailbox(SchemeName::Static, 4, 1, false)), &program)
    else {
        panic!("two processes wait for each other's receive");
    };
    assert!(
        deadlock
            .to_string()
            .contains("its send to rank 1 (tag 1) to end, which waits for its receive, holding 2 credits"),
        "{deadlock}"
    );
}

/// With one buffer, what follows the first message finds no credit and is announced (L §4.2). Both wait for their
/// sends, which MPI does not promise to end.
#[test]
fn short_sends_that_are_announced_and_that_nobody_receives_are_reported() {
    let program = |task: Task| async move {
        let part = task.allocate(100);
        for _ in 0..2 {
            task.send(Rank(1 - task.rank().0), Tag(1), part).await;
        }
        for _ in 0..2 {
            task.receive(Sender::Any, Tag(1), part).await;
        }
    };
    for scheme in [SchemeName::Preposted, SchemeName::Growing] {
        let buffers = Buffers { per_connection: 1, ..Buffers::of(scheme) };
        let flow = FlowChoice::Posted { scheme, buffers, piggyback: true };
        let Err(SimulationError::Deadlock(deadlock)) = try_run(job(2, flow), &program) else {
            panic!("two processes wait for each other's receive");
        };
        let text = deadlock.to_string();
        assert!(text.contains("its send to rank 1 (tag 1) to end, which waits for its receive, holding"), "{text}");
    }
}

/// P §2: a full mailbox blocks the sending node; without flow control that is the end of an all-to-all that sends
/// first.
#[test]
fn without_flow_control_senders_that_block_wait_for_room_for_ever() {
    let program = |task: Task| async move {
        let part = task.allocate(2048);
        for _ in 0..100 {
            task.send(Rank(1 - task.rank().0), Tag(1), part).await;
        }
        for _ in 0..100 {
            task.receive(Rank(1 - task.rank().0), Tag(1), part).await;
        }
    };
    let none = SimulationConfig { processes_per_node: 1, ..job(2, mailbox(SchemeName::None, 8, 1, false)) };
    let blocks = SimulationConfig {
        topology: tidegate_sim::Topology::switch(2).expect("legal"),
        blocked_sender: BlockedSender::Blocks,
        ..none
    };
    let Err(SimulationError::Deadlock(deadlock)) = try_run(blocks.clone(), &program) else {
        panic!("mailboxes of 8 slots and the buffers between do not hold 3700 packets");
    };
    assert!(deadlock.to_string().contains("room at rank 0"), "{deadlock}");
    let retrieves = SimulationConfig { blocked_sender: BlockedSender::Retrieves, ..blocks.clone() };
    assert!(try_run(retrieves, &program).is_ok(), "a sender that looks at its mailbox meanwhile goes on");
    let with_credits = SimulationConfig { flow: mailbox(SchemeName::Static, 8, 1, false), ..blocks };
    assert!(try_run(with_credits, &program).is_ok(), "with credits no mailbox is ever full");
}

#[test]
fn a_message_longer_than_its_receive_ends_the_run() {
    for intra_node_path in [false, true] {
        let program = |task: Task| async move {
            let part = task.allocate(100);
            match task.rank() {
                Rank(0) => task.send(Rank(1), Tag(1), part).await,
                _ => drop(task.receive(Rank(0), Tag(1), part.slice(0, 50)).await),
            }
        };
        let config = SimulationConfig { intra_node_path, ..job(2, FlowChoice::Unlimited) };
        let Err(SimulationError::Process(what)) = try_run(config, &program) else { panic!("50 bytes hold no 100") };
        assert!(what.starts_with("rank 1: "), "{what}");
    }
}

#[test]
fn a_table_of_peers_that_is_too_small_says_what_to_change() {
    let program = |task: Task| async move {
        if task.rank() == Rank(0) {
            for to in 1..task.size() {
                task.send(Rank(to), Tag(1), Part::EMPTY).await;
            }
        } else {
            task.receive(Rank(0), Tag(1), Part::EMPTY).await;
        }
    };
    let config = SimulationConfig { peers: Some(3), ..job(8, mailbox(SchemeName::Static, 4, 1, false)) };
    let Err(SimulationError::Process(what)) = try_run(config, &program) else { panic!("7 peers are more than 3") };
    assert!(what.contains("rank 0 has no place left for rank 4") && what.contains("raise `peers`"), "{what}");
}

#[test]
fn configurations_without_sense_are_refused() {
    let idle = |_: Task| async {};
    let refused = |change: fn(&mut SimulationConfig)| {
        let mut config = job(4, FlowChoice::Unlimited);
        change(&mut config);
        try_run(config, &idle).expect_err("makes no sense").to_string()
    };
    assert!(refused(|config| config.processes_per_node = 0).contains("raise `processes_per_node`"));
    assert!(refused(|config| config.nodes = Some(vec![NodeId(9)])).contains("node 9 does not exist"));
    assert!(refused(|config| config.nodes = Some(vec![NodeId(1), NodeId(1)])).contains("named twice"));
    assert!(refused(|config| config.eager_bytes = 1 << 30).contains("at most 1048576"));
    assert!(refused(|config| config.receive_memory = Some(1)).contains("too small"));
    assert!(refused(|config| config.network.virtual_channels = 0).contains("virtual_channels = 0"));
    assert!(refused(|config| config.flow = mailbox(SchemeName::Static, 1, 1, false)).contains("too few"));
}
