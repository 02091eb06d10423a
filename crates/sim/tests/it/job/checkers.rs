//! With all checkers on, runs under every scheme find no violation, and the counters show that what they check
//! happened.

use tidegate_flow::SchemeName;
use tidegate_message::Counter;
use tidegate_sim::workload::Communicator;
use tidegate_sim::workload::collective::{Alltoall, alltoall};
use tidegate_sim::{FlowChoice, Rank, SimulationConfig, Tag, Task, Topology};

use super::support::{all_flows, job, mailbox, run};

/// Many rounds of traffic that changes: under every scheme, with the fewest slots, all credits are accounted for.
#[test]
fn changing_traffic_keeps_every_invariant_under_every_scheme() {
    let program = |form| {
        move |task: Task| async move {
            let world = Communicator::world(&task);
            let bytes = 700 * u64::from(task.size());
            let (out, into) = (task.allocate(bytes), task.allocate(bytes));
            for round in 0..4 {
                alltoall(&world, form, out, into, 700).await;
                // Everybody to one: the incast that flow control is for.
                let root = round % task.size();
                if world.me() == root {
                    for member in (0..world.size()).filter(|&member| member != root) {
                        world.receive(member, Tag(9), into.slice(0, 2048.min(bytes))).await;
                    }
                } else {
                    world.send(root, Tag(9), out.slice(0, 2048.min(bytes))).await;
                }
            }
        }
    };
    for flow in all_flows() {
        // The plain form sends everything before it receives anything. A message that was refused becomes a request to
        // send, which completes only when its receiver has pulled it.
        let may_be_refused = matches!(flow, FlowChoice::Mailbox { scheme: SchemeName::RefuseThird, .. });
        let program = program(if may_be_refused { Alltoall::Pairwise } else { Alltoall::Plain });
        run(job(9, flow), &program);
        let mesh = Topology::mesh(&[2, 2]).expect("legal");
        run(SimulationConfig { topology: mesh, processes_per_node: 3, ..job(12, flow) }, &program);
    }
}

#[test]
fn delayed_sends_and_credit_packets_show_in_the_counters() {
    let program = |task: Task| async move {
        let part = task.allocate(2048);
        match task.rank() {
            Rank(0) => task.send(Rank(1), Tag(0), part).await,
            _ => drop(task.receive(Rank(0), Tag(0), part).await),
        }
    };
    let outcome = run(job(2, mailbox(SchemeName::Static, 12, 2, false)), &program);
    // 37 packets, quota 10, threshold 10 div 3 + 1 = 4.
    assert_eq!(outcome.counter(Counter::SendsDelayed), 1);
    assert_eq!(outcome.counter(Counter::CreditPackets), 9);
    assert!(outcome.counter(Counter::DelayNanoseconds) > 0);
    let outcome = run(job(2, mailbox(SchemeName::Static, 64, 2, false)), &program);
    assert_eq!(outcome.counter(Counter::SendsDelayed), 0);
}
