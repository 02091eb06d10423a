//! [`ExchangeFields`]: what the table `[exchange]` of a file says: all nodes of a network exchange blocks, simulated
//! cycle by cycle (`crate::cycle::all_to_all`). The network itself is that of `[fabric]`.

use tidegate_bulk::{Settings, TechniqueName};

use crate::cycle::Machine;
use crate::cycle::all_to_all::{Algorithm, Barrier, Plan, Sizes};

/// The table of these fields.
pub(super) const TABLE: &str = "exchange";

/// How the lengths of the blocks are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocks {
    Uniform,
    Random,
    Skewed,
    Shifts,
    Sparse,
}

impl Blocks {
    pub const NAMES: [&str; 5] = ["uniform", "random", "skewed", "shifts", "sparse"];

    pub fn named(name: &str) -> Self {
        match name {
            "random" => Blocks::Random,
            "skewed" => Blocks::Skewed,
            "shifts" => Blocks::Shifts,
            "sparse" => Blocks::Sparse,
            _ => Blocks::Uniform,
        }
    }
}

/// The fields. See [`FABRIC_FIELDS`](super::FABRIC_FIELDS).
#[derive(Clone, Debug)]
pub(super) struct ExchangeFields {
    pub algorithm: String,
    pub at_a_time: u32,
    /// `None`: what is agreed on or sent at a time is a block, and at most 64 KiB.
    pub unit: Option<u64>,
    pub outstanding: u32,
    pub window: u32,
    pub rounds_per_barrier: u32,
    pub blocks: Blocks,
    pub bytes: u64,
    pub count: u32,
    pub flit_bytes: u32,
    pub overhead_cycles: u32,
    pub barrier_arity: u32,
    pub receive_factor: u16,
    pub is_receiving_exclusive: bool,
    pub most_cycles: u64,
}

impl Default for ExchangeFields {
    fn default() -> Self {
        ExchangeFields {
            algorithm: "pairwise".to_owned(),
            at_a_time: 32,
            unit: None,
            outstanding: 1,
            window: 8,
            rounds_per_barrier: 1,
            blocks: Blocks::Uniform,
            bytes: 64 << 10,
            count: 8,
            flit_bytes: 16,
            overhead_cycles: 300,
            barrier_arity: 4,
            receive_factor: 1,
            is_receiving_exclusive: false,
            most_cycles: 200_000_000,
        }
    }
}

/// Most bytes of a block: all of it is simulated.
pub(super) const BLOCK_MOST: u64 = 1 << 30;
/// Most blocks of an exchange, all nodes together: they are listed before the run.
const BLOCKS_MOST: u64 = 100_000_000;

/// What is said of an exchange with too many blocks.
pub(super) fn too_much(plan: &Plan) -> Option<String> {
    let nodes = u64::from(plan.layout.nodes());
    let of_each = match plan.sizes {
        Sizes::Shifts { rounds: count, .. } | Sizes::Sparse { receivers: count, .. } => u64::from(count).min(nodes),
        Sizes::Uniform(_) | Sizes::Random(_) | Sizes::Skewed(_) => nodes,
    };
    (nodes * of_each > BLOCKS_MOST).then(|| {
        format!(
            "[{TABLE}] blocks: {of_each} for each of {nodes} nodes are too many: at most {BLOCKS_MOST} in all are simulated; \
             blocks = shifts or sparse, with a small count, has fewer"
        )
    })
}

/// The longest piece that is agreed on or sent at a time, where the file does not say it: a message of the rendezvous.
const UNIT_MOST: u64 = 64 << 10;

impl ExchangeFields {
    /// All names of algorithms: B's techniques, and what MPIs do.
    pub fn algorithms() -> Vec<&'static str> {
        TechniqueName::ALL.iter().map(|technique| technique.name()).chain(["scattered", "pairwise", "bruck"]).collect()
    }

    fn algorithm(&self) -> Algorithm {
        match self.algorithm.as_str() {
            "scattered" => Algorithm::Scattered(self.at_a_time),
            "bruck" => Algorithm::Bruck,
            name => name.parse().map_or(Algorithm::Pairwise, Algorithm::Technique),
        }
    }

    /// Only what the technique reads differs from the usual settings, so that equal exchanges are equal plans.
    fn settings(&self) -> Settings {
        let usual = Settings::default();
        let unit = self.unit.unwrap_or_else(|| self.bytes.clamp(1, UNIT_MOST));
        match self.algorithm() {
            Algorithm::Technique(TechniqueName::Booking) => {
                Settings { unit, window: self.window, rounds_per_barrier: self.rounds_per_barrier, ..usual }
            }
            Algorithm::Technique(TechniqueName::Interleave) => {
                Settings { unit, outstanding: self.outstanding, ..usual }
            }
            _ => usual,
        }
    }

    /// The exchange on the network of a machine.
    pub fn plan(&self, machine: &Machine) -> Plan {
        let (bytes, count) = (self.bytes, self.count);
        let sizes = match self.blocks {
            Blocks::Uniform => Sizes::Uniform(bytes),
            Blocks::Random => Sizes::Random(bytes),
            Blocks::Skewed => Sizes::Skewed(bytes),
            Blocks::Shifts => Sizes::Shifts { rounds: count, bytes },
            Blocks::Sparse => Sizes::Sparse { receivers: count, bytes },
        };
        Plan {
            layout: machine.layout,
            routing: machine.routing,
            parameters: machine.parameters,
            flit_bytes: self.flit_bytes,
            algorithm: self.algorithm(),
            settings: self.settings(),
            barrier: Barrier::Tree { arity: self.barrier_arity },
            overhead_cycles: self.overhead_cycles,
            receive_factor: self.receive_factor,
            is_receiving_exclusive: self.is_receiving_exclusive,
            sizes,
            seed: machine.seed,
            most_cycles: self.most_cycles,
        }
    }
}

/// Whether a field can change anything in an exchange. What nodes under load send does not.
pub(super) fn heeds(plan: &Plan, section: &str, field: &str) -> bool {
    if section != TABLE {
        return !OF_LOADS.contains(&field);
    }
    let is_technique = |name| plan.algorithm == Algorithm::Technique(name);
    match field {
        "at_a_time" => matches!(plan.algorithm, Algorithm::Scattered(_)),
        "window" | "rounds_per_barrier" => is_technique(TechniqueName::Booking),
        "outstanding" => is_technique(TechniqueName::Interleave),
        "unit" => is_technique(TechniqueName::Booking) || is_technique(TechniqueName::Interleave),
        "count" => matches!(plan.sizes, Sizes::Shifts { .. } | Sizes::Sparse { .. }),
        _ => true,
    }
}

/// The fields of `[fabric]` that are about nodes under load.
const OF_LOADS: [&str; 13] = [
    "pattern",
    "shift",
    "offered",
    "slow_nodes",
    "slow_factor",
    "control",
    "mark_strength",
    "mark_decay_cycles",
    "chunks",
    "limited",
    "window_cycles",
    "windows_most",
    "tolerance",
];
