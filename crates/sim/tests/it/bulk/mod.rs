//! Jobs of bulk transfers on machines whose nodes receive more dearly than they send.

use tidegate_bulk::{Settings, TechniqueName};
use tidegate_sim::bulk_machine::{
    BarrierKind, BulkJob, BulkOutcome, BulkParameters, BulkPattern, Proof, Reception, Shape, run,
};

/// The three machines, small.
fn machines() -> [BulkParameters; 3] {
    let cm5 = BulkParameters { shape: Shape::FatTree { levels: 2 }, ..BulkParameters::cm5() };
    [cm5, BulkParameters::paragon(), BulkParameters::alewife()]
}

fn job(technique: TechniqueName, pattern: BulkPattern, block_bytes: u64) -> BulkJob {
    let settings = Settings { unit: 512, window: 32, requests_per_round: 1, ..Settings::default() };
    BulkJob { pattern, block_bytes, technique, settings, watch: true }
}

#[track_caller]
fn outcome(machine: &BulkParameters, job: &BulkJob) -> BulkOutcome {
    run(machine, job, 1).unwrap_or_else(|error| panic!("{}: {error}", machine.name))
}

#[test]
fn every_technique_delivers_every_byte_on_every_machine() {
    for machine in machines() {
        let nodes = u64::from(machine.shape.nodes());
        for &technique in TechniqueName::ALL {
            for bytes in [1, 512, 1300] {
                let found = outcome(&machine, &job(technique, BulkPattern::CyclicShift { passes: 2 }, bytes));
                assert_eq!(found.bytes, 2 * nodes * (nodes - 1) * bytes, "{technique} on {}", machine.name);
                let found = outcome(&machine, &job(technique, BulkPattern::Random { blocks: 9 }, bytes));
                assert_eq!(found.bytes, 9 * nodes * bytes, "{technique} on {}", machine.name);
                assert!(found.sending > 0.0 && found.receiving > 0.0 && found.sending + found.receiving <= 1.0);
                assert!(found.busy.iter().all(|share| (0.0..=1.000_001).contains(share)));
            }
        }
    }
}

#[test]
fn a_run_is_the_same_again_and_another_with_another_seed() {
    for machine in machines() {
        let of = job(TechniqueName::Booking, BulkPattern::Random { blocks: 20 }, 900);
        assert_eq!(outcome(&machine, &of), outcome(&machine, &of));
        assert_ne!(outcome(&machine, &of).end, run(&machine, &of, 2).unwrap().end);
    }
}

#[test]
fn techniques_with_one_sender_per_receiver_keep_to_that() {
    for machine in machines() {
        for (technique, pattern) in [
            (TechniqueName::Barriers, BulkPattern::CyclicShift { passes: 2 }),
            (TechniqueName::Tokens, BulkPattern::CyclicShift { passes: 2 }),
            (TechniqueName::Booking, BulkPattern::Random { blocks: 20 }),
        ] {
            let found = outcome(&machine, &job(technique, pattern, 512));
            assert_eq!(found.senders_most, 1, "{technique} on {}", machine.name);
        }
        // A receiver lets in the next when a block has come, before its sender has heard so.
        let of = job(TechniqueName::ReceiverTokens, BulkPattern::Random { blocks: 20 }, 512);
        assert!(outcome(&machine, &of).senders_most <= 2, "{}", machine.name);
        let plain = outcome(&machine, &job(TechniqueName::InOrder, BulkPattern::Random { blocks: 20 }, 512));
        assert!(plain.senders_most > 1, "{}", machine.name);
    }
}

#[test]
fn a_tree_does_what_the_barrier_network_does_and_takes_longer() {
    let hardware = machines()[0];
    let of = job(TechniqueName::Barriers, BulkPattern::CyclicShift { passes: 1 }, 64);
    let quick = outcome(&hardware, &of);
    let trees = [2, 8].map(|arity| {
        let found = outcome(&BulkParameters { barrier: BarrierKind::Tree { arity }, ..hardware }, &of);
        assert_eq!(found.bytes, quick.bytes);
        found.end
    });
    assert!(trees.iter().all(|end| *end > quick.end), "{trees:?} beside {}", quick.end);
}

/// Processors that need nearly nothing leave the network's own limits: 20, 10 and 5 MB/s per node on the CM-5.
#[test]
fn the_fat_tree_carries_what_the_cm5_carried() {
    let free = BulkParameters {
        send_unit: tidegate_sim::Time::from_nanoseconds(1),
        reception: Reception::Polling { every: 1, most: 1 },
        jitter_per_mille: 0,
        ..BulkParameters::cm5()
    };
    for (bit, megabytes) in [(1, 20.0), (4, 10.0), (16, 5.0)] {
        let found = outcome(&free, &job(TechniqueName::InOrder, BulkPattern::Partners { bit }, 4096));
        let on_the_wire = found.bandwidth * 20.0 / 16.0;
        assert!((0.8 * megabytes..=1.001 * megabytes).contains(&on_the_wire), "{bit}: {on_the_wire}");
    }
}

/// Nothing of this is put in: see the module `bulk_machine`.
#[test]
fn a_cyclic_shift_that_nobody_coordinates_falls_behind_where_receiving_is_dear() {
    let gain = |receive_percent| {
        let machine = BulkParameters { receive_percent, ..machines()[0] };
        let pattern = BulkPattern::CyclicShift { passes: 2 };
        let [plain, barriers] = [TechniqueName::InOrder, TechniqueName::Barriers]
            .map(|technique| outcome(&machine, &job(technique, pattern, 4096)).bandwidth);
        barriers / plain
    };
    let (cheap, dear) = (gain(60), gain(200));
    assert!(dear > 1.2 && dear > cheap + 0.1, "{cheap} where receiving is cheap, {dear} where it is dear");
}

#[test]
fn a_block_that_counts_as_sent_when_injected_needs_no_answer() {
    let usual = BulkParameters::paragon();
    let acknowledged = BulkParameters { proof: Proof::Acknowledged, ..usual };
    let of = job(TechniqueName::Barriers, BulkPattern::CyclicShift { passes: 1 }, 512);
    let (with, without) = (outcome(&acknowledged, &of), outcome(&usual, &of));
    assert_eq!(with.units - without.units, 8 * 7);
    assert!(without.end < with.end);
}
