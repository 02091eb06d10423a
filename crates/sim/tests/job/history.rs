//! Jobs that begin as though processes had exchanged messages before.

use tidegate_flow::SchemeName;
use tidegate_sim::experiment::{Benchmark, Operation};
use tidegate_sim::workload::collective::Alltoall;
use tidegate_sim::{Contents, History, Outcome, SimulationConfig, SimulationError};

use crate::support::{job, mailbox, run, try_run};

/// Packets of a message of 2 KiB.
const HISTORY: History = History::Messages { packets: 37 };
const ALLTOALL: Benchmark =
    Benchmark { warm_up: 0, bytes: 2048, repetitions: 1, active: None, repetitions_per_root: 1, operation: OPERATION };
const OPERATION: Operation = Operation::Alltoall(Alltoall::Plain);

fn aged(slots: u32, credit_slots: u32) -> SimulationConfig {
    let flow = mailbox(SchemeName::Static, slots, credit_slots, false);
    SimulationConfig { history: HISTORY, contents: Contents::default(), ..job(40, flow) }
}

/// The share of messages that waited for credits.
fn delayed(outcome: &Outcome) -> f64 {
    let sum = |label| outcome.samples_of(label).map(|sample| sample.value).sum::<f64>();
    sum("delayed") / sum("messages")
}

/// A message waits if fewer than 37 credits are left when quota − (37 k mod threshold) are, after k messages.
fn delayed_over_a_cycle(slots: u32, credit_slots: u32) -> f64 {
    let quota = slots - credit_slots;
    let threshold = quota / (credit_slots + 1) + 1;
    let waits = (0..threshold).filter(|k| quota - 37 * k % threshold < 37).count();
    waits as f64 / f64::from(threshold)
}

/// All checkers are on: credits are conserved from the first moment.
#[test]
fn an_aged_alltoall_delays_as_many_messages_as_a_full_cycle_of_them() {
    let percent = |slots| (100.0 * (1.0 - delayed_over_a_cycle(slots, 2))).round();
    assert_eq!([38, 39, 42, 46, 50, 57].map(percent), [0.0, 8.0, 29.0, 53.0, 71.0, 100.0]);
    for (slots, credit_slots) in [(38, 2), (39, 2), (42, 2), (46, 2), (50, 2), (57, 2), (38, 1), (50, 1), (49, 5)] {
        let (found, expected) =
            (delayed(&run(aged(slots, credit_slots), &ALLTOALL)), delayed_over_a_cycle(slots, credit_slots));
        let what = format!("{slots} slots, {credit_slots} for credits: {found:.3}, over a cycle {expected:.3}");
        assert!((found - expected).abs() < 0.04, "{what}");
        assert!((expected == 0.0) == (found == 0.0) && (expected == 1.0) == (found == 1.0), "{what}");
    }
}

#[test]
fn the_seed_decides_what_was_exchanged_before() {
    let shares = [1, 2, 1].map(|seed| delayed(&run(SimulationConfig { seed, ..aged(46, 2) }, &ALLTOALL)));
    assert!(shares[0] == shares[2] && shares[0] != shares[1], "{shares:?}");
}

#[test]
fn a_history_is_refused_where_nothing_says_what_it_left() {
    let refused = |config: SimulationConfig| {
        let result = try_run(SimulationConfig { history: HISTORY, ..config }, &ALLTOALL);
        assert!(matches!(result, Err(SimulationError::Setup(_))), "{result:?}");
    };
    refused(job(4, mailbox(SchemeName::Dynamic, 64, 2, false)));
    refused(job(4, mailbox(SchemeName::Static, 64, 2, true)));
    let fixed = || job(4, mailbox(SchemeName::Static, 64, 2, false));
    refused(SimulationConfig { intra_node_path: true, ..fixed() });
    refused(SimulationConfig { peers: Some(2), ..fixed() });
}
