//! Messages between two processes.

use tidegate_flow::SchemeName;
use tidegate_message::Counter;
use tidegate_sim::workload::{Communicator, point_to_point};
use tidegate_sim::{MessageHeader, Part, Rank, Sender, SimulationConfig, Tag, Task, Time};

use super::support::{all_flows, bytes_of, filled, job, mailbox, read, run};

#[test]
fn every_pattern_ends_under_every_scheme() {
    let program = |task: Task| async move {
        let world = Communicator::world(&task);
        let partner = world.me() ^ 1;
        for bytes in [0, 40, 41, 2048, 5000] {
            point_to_point::pingpong(&world, partner, bytes, 3).await;
            point_to_point::multi_pingpong(&world, bytes, 3).await;
            point_to_point::pingping(&world, partner, bytes, 3).await;
            point_to_point::sendrecv(&world, bytes, 3).await;
            point_to_point::exchange(&world, bytes, 3).await;
        }
    };
    for flow in all_flows() {
        run(job(6, flow), &program);
    }
}

#[test]
fn messages_of_one_sender_arrive_in_order_whatever_their_length() {
    let lengths = [3000, 0, 10, 2048, 2049, 1];
    let program = move |task: Task| async move {
        for length in lengths {
            if task.rank() == Rank(0) {
                let part = filled(&task, length);
                task.send(Rank(1), Tag(7), part).await;
            } else {
                let part = task.allocate(3000);
                let delivery = task.receive(Rank(0), Tag(7), part).await;
                assert_eq!((delivery.peer, delivery.tag, delivery.length), (Rank(0), Tag(7), length));
                assert_eq!(read(&task, part.slice(0, length)), bytes_of(0, length));
            }
        }
    };
    for flow in all_flows() {
        run(job(2, flow), &program);
    }
}

#[test]
fn a_receive_from_anybody_gets_everybodys_message() {
    let program = |task: Task| async move {
        if task.rank() != Rank(0) {
            let part = filled(&task, 100);
            task.send(Rank(0), Tag(1), part).await;
            return;
        }
        let mut senders = Vec::new();
        for _ in 1..task.size() {
            let part = task.allocate(100);
            let delivery = task.receive(Sender::Any, Tag(1), part).await;
            assert_eq!(read(&task, part), bytes_of(delivery.peer.0, 100));
            senders.push(delivery.peer.0);
        }
        senders.sort_unstable();
        assert_eq!(senders, Vec::from_iter(1..task.size()));
    };
    for intra_node_path in [false, true] {
        for flow in all_flows() {
            run(SimulationConfig { intra_node_path, ..job(8, flow) }, &program);
        }
    }
}

/// A receive from anybody is matched with a message from another node, of which not all has come, when one comes on the
/// path within the node: that one is for the next receive. Rank 1 sends at every moment of the other message's way.
#[test]
fn a_message_within_a_node_finds_the_second_receive_while_one_from_elsewhere_fills_the_first() {
    let program = |delay, bytes| {
        move |task: Task| async move {
            match task.rank().0 {
                0 => {
                    let parts = [bytes; 2].map(|bytes| task.allocate(bytes));
                    let mut requests = Vec::new();
                    for part in parts {
                        requests.push(task.start_receive(Sender::Any, Tag(1), part).await);
                    }
                    for (request, part) in requests.into_iter().zip(parts) {
                        let delivery = task.wait(request).await;
                        assert_eq!(read(&task, part), bytes_of(delivery.peer.0, bytes), "after {delay}");
                    }
                }
                3 => {}
                rank => {
                    let part = filled(&task, bytes);
                    task.compute(if rank == 1 { delay } else { Time::ZERO }).await;
                    task.send(Rank(0), Tag(1), part).await;
                }
            }
        }
    };
    for bytes in [2048, 20 << 10] {
        for flow in all_flows() {
            for delay in (0..40).step_by(3).map(Time::from_microseconds) {
                run(SimulationConfig { intra_node_path: true, ..job(4, flow) }, &program(delay, bytes));
            }
        }
    }
}

#[test]
fn waiting_for_any_takes_operations_as_they_end() {
    let program = |task: Task| async move {
        if task.rank() == Rank(0) {
            let mut requests = Vec::new();
            for sender in 1..task.size() {
                requests.push(task.start_receive(Rank(sender), Tag(0), Part::EMPTY).await);
            }
            let mut order = Vec::new();
            while !requests.is_empty() {
                order.push(task.wait_any(&mut requests).await.1.peer.0);
            }
            assert_eq!(order, [3, 2, 1]);
        } else {
            task.compute(Time::from_microseconds(100 * u64::from(4 - task.rank().0))).await;
            task.send(Rank(0), Tag(0), Part::EMPTY).await;
        }
    };
    run(job(4, mailbox(SchemeName::Static, 4, 1, false)), &program);
}

#[test]
fn a_message_to_oneself_uses_no_packets() {
    let program = |task: Task| async move {
        let (out, into) = (filled(&task, 5000), task.allocate(5000));
        let request = task.start_receive(task.rank(), Tag(0), into).await;
        task.send(task.rank(), Tag(0), out).await;
        task.wait(request).await;
        assert_eq!(read(&task, into), bytes_of(task.rank().0, 5000));
    };
    let outcome = run(job(2, mailbox(SchemeName::Dynamic, 4, 1, false)), &program);
    assert_eq!(outcome.counter(Counter::PacketsSent), 0);
}

#[test]
fn messages_on_the_path_within_a_node_use_no_packets_and_no_credits() {
    let program = |task: Task| async move {
        let world = Communicator::world(&task);
        let partner = world.me() ^ 1;
        let (out, into) = (filled(&task, 2048), task.allocate(2048));
        for _ in 0..10 {
            world.exchange(partner, out, partner, into, Tag(3)).await;
        }
        assert_eq!(read(&task, into), bytes_of(partner, 2048));
    };
    let flow = mailbox(SchemeName::Static, 8, 2, false);
    let through = run(SimulationConfig { intra_node_path: true, ..job(6, flow) }, &program);
    assert_eq!(through.counter(Counter::PacketsSent), 0);
    let around = run(SimulationConfig { intra_node_path: false, ..job(6, flow) }, &program);
    assert_eq!(around.counter(Counter::PacketsSent) - around.counter(Counter::CreditPackets), 6 * 10 * 37);
}

/// P §5.4: "for the 2KB messages … the VELO packetization does not provide any space to include the piggybacking
/// information".
#[test]
fn no_credit_rides_on_messages_that_fill_their_packets_with_a_header_of_24_bytes() {
    let counts = |message_header, bytes| {
        let flow = mailbox(SchemeName::Static, 16, 2, true);
        let config = SimulationConfig { message_header, ..job(2, flow) };
        let outcome = run(config, &move |task: Task| async move {
            let world = Communicator::world(&task);
            point_to_point::exchange(&world, bytes, 20).await;
        });
        let of = |counter| outcome.counter(counter);
        (
            (of(Counter::PacketsSent) - of(Counter::CreditPackets)) / of(Counter::MessagesEager),
            of(Counter::CreditsPiggybacked) > 0,
        )
    };
    assert_eq!(counts(MessageHeader::Short, 2048), (37, true));
    assert_eq!(counts(MessageHeader::Long, 2044), (37, true));
    assert_eq!(counts(MessageHeader::Long, 2048), (37, false));
}
