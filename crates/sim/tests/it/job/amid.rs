//! Runs that begin amid a program.

use tidegate_flow::SchemeName;
use tidegate_sim::workload::collective::Alltoall;
use tidegate_sim::workload::{Benchmark, Operation};
use tidegate_sim::{FlowChoice, SimulationConfig, SimulationError, Topology};

use super::support::{all_flows, job, mailbox, run, try_run};

/// Packets of a message of 2 KiB.
const PACKETS: u32 = 37;

fn alltoall() -> Benchmark {
    Benchmark { warm_up: 0, ..Benchmark::new(Operation::Alltoall(Alltoall::Plain)) }
}

/// Messages of the one become requests to send, which the plain form cannot do with; the other is refused.
fn may_begin_amid(flow: FlowChoice) -> bool {
    use FlowChoice::Mailbox;
    !matches!(flow, Mailbox { scheme: SchemeName::RefuseThird, .. })
        && !matches!(flow, Mailbox { scheme: SchemeName::Static, piggyback: true, .. })
}

#[test]
fn no_credit_is_lost_or_made_under_any_scheme() {
    for flow in all_flows().into_iter().filter(|flow| may_begin_amid(*flow)) {
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
fn with_credits_that_ride_there_is_an_error() {
    let flow = mailbox(SchemeName::Static, 16, 2, true);
    let config = SimulationConfig { amid_messages_of: Some(PACKETS), ..job(8, flow) };
    assert!(matches!(try_run(config, &alltoall()), Err(SimulationError::Setup(_))));
}

/// Messages within a node take no credits; the others' stall as often as without the path.
#[test]
fn a_path_within_nodes_leaves_the_others_shares_as_they_are() {
    for flow in all_flows().into_iter().filter(|flow| may_begin_amid(*flow)) {
        let amid = SimulationConfig { amid_messages_of: Some(PACKETS), intra_node_path: true, ..job(8, flow) };
        run(amid, &alltoall());
    }
    let flow = mailbox(SchemeName::Static, 42, 2, false);
    let topology = Topology::mesh(&[2, 2]).expect("legal");
    let through_mailboxes =
        SimulationConfig { flow, amid_messages_of: Some(PACKETS), ..SimulationConfig::extoll(topology) };
    let share = delayed(through_mailboxes.clone());
    let beside = delayed(SimulationConfig { intra_node_path: true, ..through_mailboxes });
    // Of 63 others 15 are on the same node. Their messages are not counted among those that flow control sees.
    assert!((beside - share).abs() < 3.0, "{beside:.1} % and {share:.1} %");
}

#[test]
fn without_a_place_for_everybody_there_is_an_error() {
    let flow = mailbox(SchemeName::Static, 16, 2, false);
    let config = SimulationConfig { amid_messages_of: Some(PACKETS), peers: Some(2), ..job(8, flow) };
    let error = try_run(config, &alltoall()).unwrap_err();
    assert!(matches!(&error, SimulationError::Setup(_)) && error.to_string().contains("a place"), "{error}");
}
