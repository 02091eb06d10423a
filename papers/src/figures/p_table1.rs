//! P table 1: the thresholds of eq. 1, taken from a running receiver, and why the two other formulas of P §5.2 do not
//! work.

use tidegate_flow::{Config, FlowControl, SchemeName};
use tidegate_sim::SimulationError;

use crate::report::{Fact, Findings, Table};

/// Credit quota, credit slots, and the paper's values of eq. 1, (a) and (b).
const ROWS: [(u32, u32, [u32; 3]); 10] = [
    (100, 1, [51, 101, 100]),
    (100, 2, [34, 51, 50]),
    (100, 3, [26, 34, 33]),
    (100, 4, [21, 26, 25]),
    (100, 5, [17, 21, 20]),
    (60, 2, [21, 31, 30]),
    (40, 2, [14, 21, 20]),
    (20, 2, [7, 11, 10]),
    (10, 2, [4, 6, 5]),
    (3, 2, [2, 2, 1]),
];

/// What becomes of one sender and one receiver with some threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Works,
    /// The sender has spent all its credits, and the threshold was not reached.
    Deadlock,
    /// More credit packets wait for the sender than it has slots for.
    Overflow,
}

impl Fate {
    fn name(self) -> &'static str {
        match self {
            Fate::Works => "works",
            Fate::Deadlock => "deadlock",
            Fate::Overflow => "overflow",
        }
    }
}

/// Plays a sender that never looks at its mailbox before its last credit is spent: the worst case. The receiver keeps
/// up.
fn fate(quota: u32, credit_slots: u32, threshold: u32) -> Fate {
    let (mut credits, mut retrieved) = (quota, 0);
    for _ in 0..1000 {
        let mut waiting = Vec::new();
        for _ in 0..credits {
            retrieved += 1;
            if retrieved >= threshold {
                waiting.push(retrieved);
                retrieved = 0;
            }
        }
        if waiting.len() > credit_slots as usize {
            return Fate::Overflow;
        }
        credits = waiting.iter().sum();
        if credits == 0 {
            return Fate::Deadlock;
        }
    }
    Fate::Works
}

/// The threshold that a receiver under `static` really uses.
pub(crate) fn threshold_of_static(quota: u32, credit_slots: u32) -> Result<u32, SimulationError> {
    let slots_per_peer = quota + credit_slots;
    let config = Config::new(SchemeName::Static, 1, slots_per_peer, credit_slots);
    let control = FlowControl::new(&config).map_err(|error| SimulationError::Setup(error.to_string()))?;
    Ok(control.inspect().peers[0].thresholds[0])
}

pub(crate) fn run() -> Result<Findings, SimulationError> {
    let columns = ["credit quota", "credit slots", "eq. 1", "formula (a)", "formula (b)", "eq. 1:", "(a):", "(b):"];
    let mut table = Table::new("table1", "Thresholds, and what becomes of a sender", &columns);
    let (mut ours, mut alternatives, mut fates) = (Vec::new(), true, Vec::new());
    for (quota, slots, paper) in ROWS {
        let all = [threshold_of_static(quota, slots)?, quota / slots + 1, quota / slots];
        let fate = all.map(|threshold| fate(quota, slots, threshold));
        ours.push(all[0]);
        alternatives &= all[1..] == paper[1..];
        fates.push((quota, slots, fate));
        let numbers = [quota, slots].into_iter().chain(all).map(|number| number.to_string());
        table.row(numbers.chain(fate.iter().map(|fate| fate.name().to_owned())));
    }
    let fate_at = |quota: u32, slots: u32, formula: usize| {
        let row = fates.iter().find(|row| (row.0, row.1) == (quota, slots));
        row.map_or(Fate::Works, |row| row.2[formula])
    };
    let list = |values: &[u32]| values.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let paper: Vec<u32> = ROWS.iter().map(|row| row.2[0]).collect();
    let sound = fates.iter().all(|row| row.2[0] == Fate::Works);
    let word = |sound: bool| if sound { "yes" } else { "no" };
    let facts = vec![
        Fact::tested("The thresholds of eq. 1 are those of the table.", ours == paper, list(&paper), list(&ours)),
        Fact::tested("So are those of the formulas (a) and (b).", alternatives, "yes", word(alternatives))
            .implied("Computed: each is one division."),
        Fact::tested("With eq. 1 no sender stops or overflows in any row.", sound, "yes", word(sound)),
        Fact::tested(
            "Formula (a) deadlocks with a quota of 100 and 1 credit slot.",
            fate_at(100, 1, 1) == Fate::Deadlock,
            "deadlock",
            fate_at(100, 1, 1).name(),
        ),
        Fact::tested(
            "Formula (b) overflows the credit region with a quota of 3 and 2 credit slots.",
            fate_at(3, 2, 2) == Fate::Overflow,
            "overflow",
            fate_at(3, 2, 2).name(),
        ),
    ];
    let setup =
        "One sender, one receiver. Thresholds of eq. 1 are read from the flow control that runs under MPI; the \
        fate is that of a sender that looks at its mailbox only when its last credit is spent."
            .to_owned();
    Ok(Findings { setup, figures: Vec::new(), tables: vec![table], facts })
}
