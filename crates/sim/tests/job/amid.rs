//! Runs that begin amid a program.

use tidegate_flow::SchemeName;
use tidegate_sim::experiment::{Benchmark, Operation};
use tidegate_sim::workload::collective::Alltoall;
use tidegate_sim::{SimulationConfig, SimulationError, Topology};

use crate::support::{all_flows, job, mailbox, run, try_run};

/// Packets of a message of 2 KiB.
const PACKETS: u32 = 37;

fn alltoall() -> Benchmark {
    Benchmark { warm_up: 0, ..Benchmark::new(Operation::Alltoall(Alltoall::Plain)) }
}

#[test]
fn no_credit_is_lost_or_made_under_any_scheme() {
    for flow in all_flows() {
        // Messages of the one become requests to send, which the plain form cannot do with; the other is refused.
        use tidegate_sim::FlowChoice::Mailbox;
        if matches!(flow, Mailbox { scheme: SchemeName::RefuseThird, .. })
            || matches!(flow, Mailbox { scheme: SchemeName::Static, piggyback: true, .. })
        {
            continue;
        }
        run(SimulationConfig { amid_messages_of: Some(PACKETS), ..job(8, flow) }, &alltoall());
    }
}

/// With 2 credit slots a message finds its credits if the quota, less what the receiver has not returned, is 37.
#[test]
fn as_many_messages_stall_as_remainders_say() {
    for slots in [38, 39, 42, 46, 50, 56, 57] {
        let (quota, threshold) = (slots - 2, (slots - 2) / 3 + 1);
        let stalls = (0..threshold).filter(|messages| quota - PACKETS * messages % threshold < PACKETS).count();
        let expected = 100.0 * stalls as f64 / f64::from(threshold);
        let flow = mailbox(SchemeName::Static, slots, 2, false);
        let topology = Topology::mesh(&[2, 2]).expect("legal");
        let config =
            SimulationConfig { flow, amid_messages_of: Some(PACKETS), ..SimulationConfig::extoll(topology.clone()) };
        let share = delayed(config);
        assert!((share - expected).abs() < 3.0, "{slots} slots: {share:.1} % delayed, {expected:.1} % expected");
        // What begins with the program knows nothing of that, but where a barrier's packet has gone before.
        let share = delayed(SimulationConfig { flow, ..SimulationConfig::extoll(topology) });
        assert!(if slots < 39 { share > 99.0 } else { share < 20.0 }, "{slots} slots: {share:.1} %");
    }
}

/// Messages that waited for credits, in percent.
fn delayed(config: SimulationConfig) -> f64 {
    let outcome = run(config, &alltoall());
    let sum = |label| outcome.samples_of(label).map(|sample| sample.value).sum::<f64>();
    100.0 * sum("delayed") / sum("messages")
}

#[test]
fn where_rests_depend_on_more_there_is_an_error() {
    let config = |piggyback: bool| SimulationConfig {
        amid_messages_of: Some(PACKETS),
        intra_node_path: !piggyback,
        ..job(8, mailbox(SchemeName::Static, 16, 2, piggyback))
    };
    for piggyback in [false, true] {
        assert!(matches!(try_run(config(piggyback), &alltoall()), Err(SimulationError::Setup(_))));
    }
}

#[test]
fn without_a_place_for_everybody_there_is_an_error() {
    let flow = mailbox(SchemeName::Static, 16, 2, false);
    let config = SimulationConfig { amid_messages_of: Some(PACKETS), peers: Some(2), ..job(8, flow) };
    let error = try_run(config, &alltoall()).unwrap_err();
    assert!(matches!(&error, SimulationError::Setup(_)) && error.to_string().contains("a place"), "{error}");
}
