//! Schemes whose receivers post buffers (L, A), under the interfaces of nodes that refuse what finds none: with all
//! checkers on, everything arrives, once and in order, whatever is refused and however often.

use std::time::Duration;

use tidegate_flow::{Buffers, Growth, SchemeName};
use tidegate_message::Counter;
use tidegate_sim::workload::collective::{Alltoall, Alltoallv, Blocks, alltoall, alltoallv};
use tidegate_sim::workload::nas::{Benchmark, Class, Nas, Variation};
use tidegate_sim::workload::{Communicator, HALO, Pattern, Trace, Traffic};
use tidegate_sim::{FlowChoice, Outcome, Rank, Rendezvous, SimulationConfig, Tag, Task, Time, Topology};

use super::support::{bytes_of, filled, job, pool, read, run};

fn posted(scheme: SchemeName, change: impl FnOnce(&mut Buffers)) -> FlowChoice {
    let mut buffers = Buffers { retry_timer: Duration::from_micros(10), ..Buffers::of(scheme) };
    change(&mut buffers);
    FlowChoice::Posted { scheme, buffers, piggyback: true }
}

/// Each scheme with the fewest buffers, a few, and as many as by default; messages of one buffer and of several.
fn posted_flows() -> Vec<FlowChoice> {
    let mut flows = Vec::new();
    for &scheme in SchemeName::WITH_BUFFERS {
        flows.push(posted(scheme, |_| {}));
        for (count, packets) in [(1, 37), (2, 5), (3, 37)] {
            let few = |of: &mut Buffers| {
                (of.per_connection, of.packets, of.per_connection_most) = (count, packets, count + 3);
                (of.pool_first, of.pool_most, of.refusals_most) = (count, 2 * count, 2);
                of.quiet_after = Some(Duration::from_micros(50));
            };
            flows.push(posted(scheme, few));
            flows.push(posted(scheme, |of| {
                few(of);
                of.growth = Growth::Exponential;
            }));
        }
    }
    flows.extend([1, 3, 40].map(pool));
    flows
}

/// Many rounds of traffic that changes.
#[test]
fn changing_traffic_keeps_every_invariant() {
    let program = move |task: Task| async move {
        let world = Communicator::world(&task);
        let bytes = 700 * u64::from(task.size());
        let (out, into) = (task.allocate(bytes), task.allocate(bytes));
        for round in 0..4 {
            alltoall(&world, Alltoall::Pairwise, out, into, 700).await;
            let root = round % task.size();
            if world.me() == root {
                for member in (0..world.size()).filter(|&member| member != root) {
                    world.receive(member, Tag(9), into.slice(0, 2048.min(bytes))).await;
                }
            } else {
                world.send(root, Tag(9), out.slice(0, 2048.min(bytes))).await;
            }
        }
    };
    for flow in posted_flows() {
        run(job(9, flow), &program);
        let mesh = Topology::mesh(&[2, 2]).expect("legal");
        run(SimulationConfig { topology: mesh, processes_per_node: 3, ..job(12, flow) }, &program);
    }
}

/// In both all-to-alls everybody sends before it receives. Where there is no credit a short message is announced, and
/// its send waits for the receive, so nobody may wait for its sends first.
#[test]
fn sends_before_receives_end_when_short_messages_are_announced() {
    for size in 2..=6 {
        let program = move |task: Task| async move {
            let world = Communicator::world(&task);
            let bytes = 700 * u64::from(size);
            let (out, into, counts) = (task.allocate(bytes), task.allocate(bytes), vec![700; size as usize]);
            for _ in 0..2 {
                alltoall(&world, Alltoall::Plain, out, into, 700).await;
                let blocks = |part| Blocks { part, counts: &counts };
                alltoallv(&world, Alltoallv::Plain, blocks(out), blocks(into)).await;
            }
        };
        for flow in posted_flows() {
            run(job(size, flow), &program);
        }
    }
}

#[test]
fn every_pattern_delivers_all_its_messages() {
    for pattern in [Pattern::Random, Pattern::Permutation, Pattern::Incast { root: 3 }, Pattern::CyclicShift] {
        let traffic = Traffic::new(pattern, 8, 6, 11);
        let messages: u64 = (0..8).map(|member| u64::from(traffic.incoming(member))).sum();
        let program = move |task: Task| {
            let traffic = traffic.clone();
            async move { traffic.run(&Communicator::world(&task), 700, 2).await }
        };
        for flow in posted_flows() {
            let outcome = run(job(8, flow), &program);
            assert_eq!(outcome.counter(Counter::BytesReceived), messages * 700, "{pattern:?}");
        }
    }
}

#[test]
fn a_trace_is_replayed() {
    let trace = Trace::parse(HALO).expect("a legal trace");
    let bytes = trace.messages().1;
    let program = move |task: Task| {
        let trace = trace.clone();
        async move { trace.replay(&task).await }
    };
    for flow in posted_flows() {
        assert_eq!(run(job(16, flow), &program).counter(Counter::BytesReceived), bytes);
    }
}

/// `messages` messages of 8 bytes from rank 0 to rank 1, which computes before it looks at the first.
fn flood(messages: u64, flow: FlowChoice) -> Outcome {
    let program = move |task: Task| async move {
        let part = task.allocate(8);
        let mut requests = Vec::new();
        if task.rank() == Rank(1) {
            task.compute(Time::from_microseconds(100)).await;
        }
        for tag in (0..messages).map(Tag) {
            requests.push(match task.rank() {
                Rank(0) => task.start_send(Rank(1), tag, part).await,
                _ => task.start_receive(Rank(0), tag, part).await,
            });
        }
        task.wait_all(requests).await;
    };
    let switch = Topology::switch(2).expect("a legal switch");
    run(SimulationConfig { processes_per_node: 1, topology: switch, ..job(2, flow) }, &program)
}

/// What finds no buffer is refused, again and again while the receiver computes, and arrives in the end.
#[test]
fn a_flood_is_refused_until_the_receiver_looks() {
    for scheme in [SchemeName::Rnr, SchemeName::SharedWindow] {
        let outcome = flood(50, posted(scheme, |of| (of.per_connection, of.pool_first, of.pool_most) = (10, 10, 10)));
        // 100 µs in steps of a timer of 10 µs and the time of a refusal.
        let refusals = outcome.counter(Counter::Refusals);
        assert!((5..=20).contains(&refusals), "{scheme}: {refusals} refusals");
        let enough = flood(50, posted(scheme, |of| (of.per_connection, of.pool_first) = (50, 50)));
        assert_eq!(enough.counter(Counter::Refusals), 0, "{scheme}");
        assert!(enough.time < outcome.time, "{scheme}: {} and {}", enough.time, outcome.time);
    }
}

/// A pool tells a sender when it has slots: one refusal and one invitation, however long the receiver computes, and the
/// sender's packets are there when they are wanted. No more of them go twice than a window.
#[test]
fn a_flood_into_a_pool_of_slots_is_refused_once() {
    let packets = |slots| {
        let outcome = flood(50, pool(slots));
        (outcome.counter(Counter::Refusals), outcome.network.delivered, outcome.time)
    };
    let (few, enough) = (packets(10), packets(50));
    // Acknowledgements are a packet for each message.
    assert_eq!((enough.0, enough.1), (0, 100));
    assert!((1..=4).contains(&few.0), "{few:?}");
    let answers_and_repeats = few.1 - enough.1;
    assert!((2..=50 + 2 * few.0).contains(&answers_and_repeats), "{few:?}");
    // A flood that fits takes as long, as the receiver computes for most of the time.
    assert!(few.2.0 < enough.2.0 * 5 / 4, "{few:?} {enough:?}");
}

/// A longer timer asks less often and wakes later (A §3).
#[test]
fn the_retry_timer_decides_how_often_a_message_is_tried_again() {
    let with = |timer| {
        let outcome = flood(20, posted(SchemeName::Rnr, |of| (of.per_connection, of.retry_timer) = (1, timer)));
        (outcome.counter(Counter::Refusals), outcome.time)
    };
    let (short, long) = (with(Duration::from_micros(10)), with(Duration::from_micros(640)));
    assert!(short.0 > long.0 && short.1 < long.1, "{short:?} {long:?}");
    assert!(long.1 > Time::from_microseconds(640), "{long:?}");
}

/// With credits hardly anything is refused, and a window that adapts stops refusals soon.
#[test]
fn credits_and_windows_that_adapt_avoid_refusals() {
    for scheme in [SchemeName::Preposted, SchemeName::Growing] {
        let outcome = flood(50, posted(scheme, |of| of.per_connection = 4));
        // A credit packet may take a buffer that was promised to a message.
        let refusals = outcome.counter(Counter::Refusals);
        assert!(refusals <= outcome.counter(Counter::CreditPackets) / 2, "{scheme}: {refusals} refusals");
        assert!(outcome.counter(Counter::SendsDelayed) > 0 && outcome.counter(Counter::CreditPackets) > 0);
        let grown = outcome.counter(Counter::BuffersAdded);
        assert_eq!(grown > 0, scheme == SchemeName::Growing, "{scheme}: {grown} buffers more");
        // Without credits short messages go by rendezvous (L §4.2), decided as they are sent.
        assert_eq!(outcome.counter(Counter::MessagesEager), 4, "{scheme}");
    }
    let fixed = flood(50, posted(SchemeName::SharedWindow, |of| (of.pool_first, of.pool_most) = (8, 8)));
    let adaptive = flood(50, posted(SchemeName::SharedWindow, |_| {}));
    let counts = |counter| [&fixed, &adaptive].map(|outcome| outcome.counter(counter));
    let (refusals, events) = (counts(Counter::Refusals), counts(Counter::LimitEvents));
    assert!(refusals[1] < refusals[0], "{refusals:?}");
    // 8 → 16 → 32 → 64: as many as the flood needs.
    assert!(events[1] == 3 && events[0] > 0, "{events:?}");
}

#[test]
fn equal_runs_are_equal() {
    let flow = posted(SchemeName::Rnr, |of| of.per_connection = 2);
    let [one, two] = [(); 2].map(|()| flood(40, flow));
    assert_eq!((one.time, one.events), (two.time, two.events));
}

/// Two processes on two nodes, `messages` long messages there and as many back, with their bytes checked.
fn long_messages(messages: u64, bytes: u64, rendezvous: Rendezvous, flow: FlowChoice) -> Outcome {
    let program = move |task: Task| async move {
        let peer = Rank(1 - task.rank().0);
        let out = filled(&task, bytes);
        let into: Vec<_> = (0..messages).map(|_| task.allocate(bytes + 7)).collect();
        let mut requests = Vec::new();
        for (tag, &into) in into.iter().enumerate() {
            let tag = Tag(tag as u64);
            requests.push(task.start_receive(peer, tag, into).await);
            requests.push(task.start_send(peer, tag, out).await);
        }
        task.wait_all(requests).await;
        for into in into {
            assert_eq!(read(&task, into.slice(0, bytes)), bytes_of(peer.0, bytes));
        }
    };
    let switch = Topology::switch(2).expect("a legal switch");
    run(SimulationConfig { processes_per_node: 1, topology: switch, rendezvous, ..job(2, flow) }, &program)
}

/// L §3.1: Start, Reply, write, Finish: three messages under flow control, which need buffers, and data that needs
/// none.
#[test]
fn a_long_message_is_written_by_its_sender_with_three_messages_around_it() {
    for flow in posted_flows() {
        let outcome = long_messages(5, 50_000, Rendezvous::Write, flow);
        assert_eq!(outcome.counter(Counter::MessagesRendezvous), 10);
        assert_eq!(outcome.counter(Counter::BytesRead), 0, "nobody reads");
        let data = outcome.counter(Counter::PacketsSent) - outcome.counter(Counter::CreditPackets);
        assert_eq!(data, 30, "three packets for each message");
        let outcome = long_messages(5, 50_000, Rendezvous::Read, flow);
        assert_eq!(outcome.counter(Counter::BytesRead), 500_000);
        let data = outcome.counter(Counter::PacketsSent) - outcome.counter(Counter::CreditPackets);
        assert_eq!(data, 20, "a request to send and a receipt for each message");
    }
}

/// LU whose senders go on while what may not leave waits, as a copy would: many sends of a process to one peer wait at
/// the same time.
fn copies(rendezvous: Rendezvous, seed: u64) {
    let variation = Variation::EdgesCopied;
    let nas = Nas { benchmark: Benchmark::Lu, class: Class::A, iterations: Some(2), rate: 300.0, variation };
    let program = move |task: Task| async move { nas.run(&Communicator::world(&task)).await };
    let switch = Topology::switch(8).expect("a legal switch");
    let flow = posted(SchemeName::Growing, |of| {
        (of.per_connection, of.per_connection_most, of.quiet_after) = (1, 200, None);
        of.retry_timer = Duration::from_micros(640);
    });
    let (interval, duration) = (Time::from_microseconds(1000), Time::from_microseconds(25));
    let noise = tidegate_sim::Noise { interval, duration };
    let config = SimulationConfig {
        processes_per_node: 1,
        topology: switch,
        rendezvous,
        seed,
        noise,
        flow,
        ..SimulationConfig::infiniband2003()
    };
    run(config, &program);
}

/// A transfer may end while the program's own work is due: its end must not be forgotten over that.
#[test]
fn many_sends_that_wait_get_through() {
    for seed in 1..5 {
        copies(Rendezvous::Read, seed);
        copies(Rendezvous::Write, seed);
    }
}

/// With mailboxes, too, and where the receiver wants less than is sent nothing is written beyond.
#[test]
fn writes_work_with_every_scheme() {
    for flow in super::support::all_flows() {
        long_messages(3, 20_000, Rendezvous::Write, flow);
    }
}

/// Credits between adapters hold a sender back before it is refused: messages behind a refused one are not sent in
/// vain. They are switchable, and a pool has none.
#[test]
fn adapters_with_credits_send_less_in_vain() {
    let with = |scheme, adapter_credits| {
        let program = move |task: Task| async move {
            let part = task.allocate(8);
            if task.rank() == Rank(1) {
                task.compute(Time::from_microseconds(100)).await;
            }
            let mut requests = Vec::new();
            for tag in (0..50).map(Tag) {
                requests.push(match task.rank() {
                    Rank(0) => task.start_send(Rank(1), tag, part).await,
                    _ => task.start_receive(Rank(0), tag, part).await,
                });
            }
            task.wait_all(requests).await;
        };
        let flow = posted(scheme, |of| (of.per_connection, of.pool_first, of.pool_most) = (10, 10, 10));
        let switch = Topology::switch(2).expect("a legal switch");
        run(SimulationConfig { processes_per_node: 1, topology: switch, adapter_credits, ..job(2, flow) }, &program)
    };
    let [credits, none] = [true, false].map(|on| with(SchemeName::Rnr, on));
    let injected = [&credits, &none].map(|outcome| outcome.network.injected);
    // 10 are accepted, and each retry sends one message instead of 40.
    assert!(2 * injected[0] < injected[1], "{injected:?} packets entered the network");
    assert!(credits.counter(Counter::Refusals) > 5, "the one that asks is refused");
    let pools = [true, false].map(|on| with(SchemeName::SharedWindow, on).events);
    assert_eq!(pools[0], pools[1], "a pool has no such credits");
}
