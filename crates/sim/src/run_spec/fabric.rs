//! [`FabricDraft`]: files that describe a network under load, or, with a table `[exchange]`, an exchange of all its
//! nodes: a dragonfly or a fat tree of thousands of nodes, simulated cycle by cycle (`crate::cycle`).

use std::path::Path;

use crate::cycle::all_to_all::Plan;
use crate::cycle::{
    ChannelMap, Control, Dragonfly, FatTree, Lanes, Layout, Limited, Load, Machine, Parameters, Pattern, Routing,
    SLOW_FACTOR_MAX, Windows,
};

use super::exchange::{self, Blocks, ExchangeFields};
use super::file::{Draft, Field};
use super::refusal::{FieldName, Refusal};
use super::value::{bytes, few_bytes, number, number_from, per_mille, positive, truth, word};

/// The table that tells such a file from one that describes jobs.
pub(super) const TABLE: &str = "fabric";

/// A network under load, with several seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fabric {
    /// The network and what its nodes do, with the first seed.
    pub machine: Machine,
    /// How long a run is.
    pub windows: Windows,
    /// So many seeds, from the machine's on.
    pub seeds: u32,
    /// What its nodes exchange, where they are not under load.
    pub exchange: Option<Plan>,
}

/// A network that is being put together, field by field.
#[derive(Clone, Debug)]
pub struct FabricDraft {
    is_fat_tree: bool,
    dragonfly: Dragonfly,
    fat_tree: FatTree,
    routing: String,
    bias: u32,
    threshold: u32,
    pattern: String,
    shift: u32,
    load: Load,
    slow: Share,
    control: String,
    strength: u8,
    decay_cycles: u16,
    chunks: u32,
    limited: Option<Limited>,
    parameters: Parameters,
    windows: Windows,
    seed: u64,
    seeds: u32,
    exchange: Option<ExchangeFields>,
}

impl FabricDraft {
    /// A file that has a field of an exchange describes one.
    fn exchange(&mut self) -> &mut ExchangeFields {
        self.exchange.get_or_insert_default()
    }
}

/// Some of the nodes.
#[derive(Clone, Copy, Debug)]
enum Share {
    Number(u32),
    /// Of a thousand.
    PerMille(u32),
}

impl Share {
    fn read(text: &str) -> Result<Self, String> {
        match text.contains('%') {
            true => per_mille(text).map(Share::PerMille),
            false => {
                number(text).map(Share::Number).map_err(|problem| format!("{problem}, or a share such as \"1 %\""))
            }
        }
    }

    /// How many of so many, rounded.
    fn of(self, nodes: u32) -> u32 {
        match self {
            Share::Number(number) => number,
            Share::PerMille(per_mille) => ((u64::from(nodes) * u64::from(per_mille) + 500) / 1000) as u32,
        }
    }
}

/// A number with one digit behind its point, in tenths.
fn tenths(text: &str) -> Result<u16, String> {
    let problem = || "a number from 1 to 100, with at most one digit behind its point, is needed".to_owned();
    let tenths = text.parse::<f64>().map_err(|_| problem())? * 10.0;
    if !(10.0..=1000.0).contains(&tenths) || (tenths - tenths.round()).abs() > 1e-6 {
        return Err(problem());
    }
    Ok(tenths.round() as u16)
}

/// A part of 1, in thousandths.
fn part(text: &str) -> Result<u32, String> {
    let problem = || "a number from 0.001 to 1, with at most three digits behind its point, is needed".to_owned();
    let thousandths = text.parse::<f64>().map_err(|_| problem())? * 1000.0;
    if !(1.0..=1000.0).contains(&thousandths) || (thousandths - thousandths.round()).abs() > 1e-6 {
        return Err(problem());
    }
    Ok(thousandths.round() as u32)
}

/// Rows `section name default help => place = parser`; the defaults are those of R.
macro_rules! fields {
    ($($section:literal $name:literal $default:literal $help:literal => |$draft:ident, $text:ident| $set:expr;)*) => {
        &[$(Field {
            section: $section, name: $name, default: $default, help: $help,
            set: |$draft: &mut FabricDraft, $text: &str| { $set; Ok(()) },
        },)*]
    };
}

/// All fields of a network under load.
pub const FABRIC_FIELDS: &[Field<FabricDraft>] = fields! {
    "fabric" "topology" "dragonfly"
        "dragonfly (groups that are all connected with each other) or fat_tree (folded Clos)" =>
        |d, t| d.is_fat_tree = word(t, &["dragonfly", "fat_tree"])? == "fat_tree";
    "fabric" "groups" "73" "Groups of a dragonfly" => |d, t| d.dragonfly.groups = positive(t)?;
    "fabric" "routers_per_group" "12"
        "Routers of a dragonfly's group, all connected with each other" => |d, t| d.dragonfly.routers = positive(t)?;
    "fabric" "nodes_per_router" "6" "Nodes of each router of a dragonfly" => |d, t| d.dragonfly.nodes = positive(t)?;
    "fabric" "global_links" "6"
        "Links of each router of a dragonfly to other groups" => |d, t| d.dragonfly.global = number(t)?;
    "fabric" "radix" "24"
        "Ports of each router of a fat tree, half of them down; (radix / 2) to the power of levels, twice, are its nodes" =>
        |d, t| d.fat_tree.radix = positive(t)?;
    "fabric" "levels" "3" "Levels of routers of a fat tree" => |d, t| d.fat_tree.levels = positive(t)?;
    "fabric" "routing" "adaptive"
        "minimal (the shortest way), valiant (a random detour), or adaptive (progressive: a detour where the shortest way \
         is occupied)" => |d, t| d.routing = word(t, &["minimal", "valiant", "adaptive"])?.to_owned();
    "fabric" "adaptive_bias" "2"
        "A detour is taken if the shortest way is occupied by more than so many times the flits of the detour, and \
         adaptive_threshold more" => |d, t| d.bias = number(t)?;
    "fabric" "adaptive_threshold" "30" "In flits" => |d, t| d.threshold = number(t)?;
    "fabric" "channels" "4"
        "Virtual channels of a link; of a dragonfly a multiple of 4" => |d, t| d.parameters.channels = positive(t)?;
    "fabric" "channel_map" "by_step"
        "Which channel packets take at the end of a dragonfly's ways: by_step (one of their own) or by_global_links (behind \
         one global link that of packets that pass through the group)" =>
        |d, t| d.parameters.channel_map = match word(t, &["by_step", "by_global_links"])? {
            "by_global_links" => ChannelMap::ByGlobalLinks,
            _ => ChannelMap::ByStep,
        };
    "fabric" "lanes" "fixed"
        "Which of equal channels packets take: fixed (the same all along) or per_hop (at each router the emptiest)" =>
        |d, t| d.parameters.lanes = match word(t, &["fixed", "per_hop"])? {
            "per_hop" => Lanes::PerHop,
            _ => Lanes::Fixed,
        };
    "fabric" "buffer_flits" "256"
        "Flits that a router's input holds, per virtual channel" => |d, t| d.parameters.buffer_flits = positive(t)?;
    "fabric" "packet_flits" "16" "Flits of a packet" => |d, t| d.parameters.packet_flits = positive(t)?;
    "fabric" "speed_up" "2.4"
        "How many flits a router moves from an input to an output while a link moves one" =>
        |d, t| d.parameters.speed_up_tenths = tenths(t)?;
    "fabric" "router_cycles" "3"
        "From the head of a router's input to the wire, if nothing is in the way; a link carries a flit in a cycle" =>
        |d, t| d.parameters.router_latency = positive(t)?;
    "fabric" "local_cycles" "2"
        "Of a wire within a group, or below the top of a tree" => |d, t| d.parameters.local_latency = positive(t)?;
    "fabric" "global_cycles" "10"
        "Of a wire between groups, or to the top of a tree" => |d, t| d.parameters.global_latency = positive(t)?;
    "fabric" "node_cycles" "1" "Of the wire of a node" => |d, t| d.parameters.node_latency = positive(t)?;
    "fabric" "credit_cycles" "2"
        "Until room that has become free is on its way back" => |d, t| d.parameters.credit_delay = positive(t)?;
    "fabric" "pattern" "pairs"
        "pairs (A to B and B to A, drawn with the seed), permutation, uniform (each packet to another node), or shift" =>
        |d, t| d.pattern = word(t, &["pairs", "permutation", "uniform", "shift"])?.to_owned();
    "fabric" "shift" "72"
        "With pattern shift: node n sends to node n + shift; by as many as a group has, all of a group send to the next" =>
        |d, t| d.shift = number(t)?;
    "fabric" "offered" "1"
        "What nodes have to send, as a part of what their links carry" => |d, t| d.load.offered_per_mille = part(t)?;
    "fabric" "slow_nodes" "0"
        "How many nodes take what comes slowly, or a share such as \"1 %\"; drawn with the seed" =>
        |d, t| d.slow = Share::read(t)?;
    "fabric" "slow_factor" "8"
        "How many cycles a slow node needs for a flit" => |d, t| {
            let factor = positive(t)?;
            if factor > SLOW_FACTOR_MAX {
                return Err(format!("a slow node takes a flit in 1 to {SLOW_FACTOR_MAX} cycles"));
            }
            d.load.slow_factor = factor;
        };
    "fabric" "control" "none"
        "What holds senders back beside full buffers: none; marks of congestion (FECN and BECN); or chunks, of which each \
         node has at most so many under way" => |d, t| d.control = word(t, &["none", "marks", "chunks"])?.to_owned();
    "fabric" "mark_strength" "1"
        "How many times as often as usual packets are marked whose buffer is more than half full" =>
        |d, t| d.strength = positive(t)?;
    "fabric" "mark_decay_cycles" "4"
        "After how many cycles without marks a sender is held back by one step of twenty less" =>
        |d, t| d.decay_cycles = positive(t)?;
    "fabric" "chunks" "30"
        "With control chunks: packets of a node that its receiver has not taken, at most" =>
        |d, t| d.chunks = positive(t)?;
    "fabric" "limited" "all"
        "With control chunks, who has no more than that: all nodes, those that send to slow nodes (to_slow), or all but \
         those (others)" =>
        |d, t| d.limited = match word(t, &["all", "to_slow", "others"])? {
            "to_slow" => Some(Limited::SendersToSlow),
            "others" => Some(Limited::Others),
            _ => None,
        };
    "fabric" "window_cycles" "10000"
        "Cycles of a window. The run ends when the throughput of three windows in a row is like that of the one before" =>
        |d, t| d.windows.cycles = number_from(t, 100)?;
    "fabric" "windows_most" "20" "Windows after which it ends anyway" =>
        |d, t| d.windows.most = number_from(t, 4)?;
    "fabric" "tolerance" "5 %" "By how much throughputs may differ that are alike" =>
        |d, t| d.windows.tolerance_per_mille = per_mille(t)?;

    "exchange" "algorithm" "pairwise"
        "Who sends when: in_order, interleave, barriers, tokens, receiver_tokens, booking and the other techniques of \
         tidegate_bulk(3), or as MPIs do it: scattered, pairwise, bruck" =>
        |d, t| d.exchange().algorithm = word(t, &ExchangeFields::algorithms())?.to_owned();
    "exchange" "at_a_time" "32" "With scattered: blocks of a node under way at most" =>
        |d, t| d.exchange().at_a_time = positive(t)?;
    "exchange" "unit" ""
        "With interleave and booking: bytes that are sent or booked at a time; without it a block, at most 64 KiB" =>
        |d, t| d.exchange().unit = Some(bytes(t)?.max(1));
    "exchange" "outstanding" "1" "With interleave: pieces of a node under way" =>
        |d, t| d.exchange().outstanding = positive(t)?;
    "exchange" "window" "8" "With booking: rounds ahead that are booked" => |d, t| d.exchange().window = positive(t)?;
    "exchange" "rounds_per_barrier" "1" "With booking: rounds from one barrier to the next" =>
        |d, t| d.exchange().rounds_per_barrier = positive(t)?;
    "exchange" "blocks" "uniform"
        "Lengths of the blocks: uniform; random (from 0 to twice the length); skewed (one node in eight gets four times as \
         much); shifts (only for the nodes at some distances) or sparse (only for some nodes, by lot)" =>
        |d, t| d.exchange().blocks = Blocks::named(word(t, &Blocks::NAMES)?);
    "exchange" "bytes" "64 KiB" "Length of a block, or the mean" => |d, t| {
            d.exchange().bytes = few_bytes(t, 0, exchange::BLOCK_MOST, "1 GiB")?.into();
        };
    "exchange" "count" "8" "With shifts and sparse: for how many nodes each node has a block" =>
        |d, t| d.exchange().count = positive(t)?;
    "exchange" "flit_bytes" "16 B" "Bytes of a flit" => |d, t| d.exchange().flit_bytes = few_bytes(t, 1, 1 << 16, "64 KiB")?;
    "exchange" "overhead_cycles" "300"
        "What a node's processor needs for each piece or signal that it begins or hears of" =>
        |d, t| d.exchange().overhead_cycles = number(t)?;
    "exchange" "barrier_arity" "4" "Most children of a node in the barrier's tree" =>
        |d, t| d.exchange().barrier_arity = positive(t)?;
    "exchange" "receive_factor" "1"
        "How many cycles a node needs to take a flit: with 2 it receives half as fast as it sends" =>
        |d, t| d.exchange().receive_factor = positive(t)?;
    "exchange" "exclusive_receive" "false" "Whether a node sends nothing while it takes what has come" =>
        |d, t| d.exchange().is_receiving_exclusive = truth(t)?;
    "exchange" "cycles_most" "200000000" "An exchange that takes longer is given up" =>
        |d, t| d.exchange().most_cycles = positive(t)?;

    "run" "seed" "1" "Decides every random choice" => |d, t| d.seed = number(t)?;
    "run" "seeds" "1"
        "So many seeds, from seed on; what is shown is their mean" => |d, t| d.seeds = positive(t)?;
};

impl Draft for FabricDraft {
    type Scenario = Fabric;
    const FIELDS: &'static [Field<Self>] = FABRIC_FIELDS;

    fn new() -> Self {
        FabricDraft {
            is_fat_tree: false,
            dragonfly: Dragonfly::SCHNEIDER,
            fat_tree: FatTree { radix: 24, levels: 3 },
            routing: "adaptive".to_owned(),
            bias: 2,
            threshold: 30,
            pattern: "pairs".to_owned(),
            shift: 72,
            load: Load { slow_factor: 8, ..Load::full(Pattern::Pairs) },
            slow: Share::Number(0),
            control: "none".to_owned(),
            strength: 1,
            decay_cycles: 4,
            chunks: 30,
            limited: None,
            parameters: Parameters::SCHNEIDER,
            windows: Windows { cycles: 10_000, most: 20, tolerance_per_mille: 50 },
            seed: 1,
            seeds: 1,
            exchange: None,
        }
    }

    fn finish(self, _: &Path) -> Result<Fabric, Refusal> {
        let layout = match self.is_fat_tree {
            true => Layout::FatTree(self.fat_tree),
            false => Layout::Dragonfly(self.dragonfly),
        };
        let refuse = |text: String| Refusal::naming(&text, FABRIC_FIELDS);
        layout.check().map_err(|error| refuse(error.to_string()))?;
        let routing = match self.routing.as_str() {
            "minimal" => Routing::Minimal,
            "valiant" => Routing::Valiant,
            _ => Routing::Adaptive { bias: self.bias, threshold: self.threshold },
        };
        let pattern = match self.pattern.as_str() {
            "permutation" => Pattern::Permutation,
            "uniform" => Pattern::Uniform,
            "shift" => Pattern::Shift(self.shift),
            _ => Pattern::Pairs,
        };
        let control = match self.control.as_str() {
            "marks" => Control::Marks { strength: self.strength, decay_cycles: self.decay_cycles },
            "chunks" => self.limited.map_or(Control::Chunks(self.chunks), |of| Control::ChunksOf(of, self.chunks)),
            _ => Control::None,
        };
        let slow_nodes = self.slow.of(layout.nodes());
        let slow_factor = if slow_nodes > 0 { self.load.slow_factor } else { 1 };
        let load = Load { pattern, slow_nodes, slow_factor, control, ..self.load };
        let machine = Machine { layout, routing, parameters: self.parameters, load, seed: self.seed };
        machine.check().map_err(|error| refuse(error.to_string()))?;
        let exchange = self.exchange.map(|fields| fields.plan(&machine));
        if let Some(what) = exchange.as_ref().and_then(exchange::too_much) {
            return Err(Refusal::new(
                &[(exchange::TABLE, "blocks"), (exchange::TABLE, "count"), (TABLE, "groups")],
                what,
            ));
        }
        Ok(Fabric { machine, windows: self.windows, seeds: self.seeds, exchange })
    }

    fn heeds(fabric: &Fabric, field: &Field<Self>) -> bool {
        if fabric.exchange.as_ref().is_some_and(|plan| !exchange::heeds(plan, field.section, field.name)) {
            return false;
        }
        let Machine { layout, routing, parameters, load, .. } = fabric.machine;
        match field.name {
            "groups" | "routers_per_group" | "nodes_per_router" | "global_links" => {
                matches!(layout, Layout::Dragonfly(_))
            }
            "radix" | "levels" => matches!(layout, Layout::FatTree(_)),
            "channel_map" => matches!(layout, Layout::Dragonfly(_)),
            // With one channel of each class there is nothing to choose.
            "lanes" => u32::from(parameters.channels) > layout.classes(),
            // A tree's ways up are equal: the least occupied one is taken.
            "adaptive_bias" | "adaptive_threshold" => {
                matches!((layout, routing), (Layout::Dragonfly(_), Routing::Adaptive { .. }))
            }
            "shift" => matches!(load.pattern, Pattern::Shift(_)),
            "slow_factor" => load.slow_nodes > 0,
            "mark_strength" | "mark_decay_cycles" => matches!(load.control, Control::Marks { .. }),
            "chunks" | "limited" => matches!(load.control, Control::Chunks(_) | Control::ChunksOf(..)),
            _ => true,
        }
    }

    fn why_idle(field: &Field<Self>, values: impl Fn(FieldName) -> Option<String>) -> String {
        if field.section == exchange::TABLE {
            let values = |of: &'static str| values((exchange::TABLE, of)).unwrap_or_default();
            let (algorithm, blocks) = (values("algorithm"), values("blocks"));
            return format!("an exchange with algorithm = {algorithm} and blocks = {blocks}: remove the field");
        }
        let decides = match field.name {
            "adaptive_bias" | "adaptive_threshold" => "routing",
            "shift" => "pattern",
            "lanes" => "channels",
            "slow_factor" => "slow_nodes",
            "mark_strength" | "mark_decay_cycles" | "chunks" | "limited" => "control",
            _ => "topology",
        };
        let default = FABRIC_FIELDS.iter().find(|field| field.name == decides).map_or("", |field| field.default);
        let value = values((TABLE, decides)).unwrap_or_else(|| default.to_owned());
        format!("a network with {decides} = {value}: remove the field, or change [{TABLE}] {decides}")
    }

    fn of_another_kind(section: &str) -> Option<String> {
        let is_of_jobs = super::fields::FIELDS.iter().any(|field| field.section == section);
        is_of_jobs.then(|| {
            format!(
                "[{section}] belongs to jobs, and [{TABLE}] describes a network under load, without processes: remove \
                 one of them"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_what_a_file_without_the_field_gets() {
        let plain = format!("{:?}", FabricDraft::new());
        let is_of_exchanges = |field: &&Field<FabricDraft>| field.section == exchange::TABLE;
        for field in FABRIC_FIELDS.iter().filter(is_of_exchanges).filter(|field| !field.default.is_empty()) {
            let mut draft = FabricDraft::new();
            (field.set)(&mut draft, field.default).unwrap_or_else(|problem| panic!("{field:?}: {problem}"));
            let usual = ExchangeFields::default();
            assert_eq!(format!("{:?}", draft.exchange), format!("{:?}", Some(usual)), "{field:?}");
        }
        for field in FABRIC_FIELDS.iter().filter(|field| !is_of_exchanges(field)) {
            let mut draft = FabricDraft::new();
            (field.set)(&mut draft, field.default).unwrap_or_else(|problem| panic!("{field:?}: {problem}"));
            assert_eq!(format!("{draft:?}"), plain, "{field:?}");
        }
    }

    #[test]
    fn a_share_of_the_nodes_is_rounded() {
        assert_eq!(Share::read("1 %").map(|share| share.of(5256)), Ok(53));
        assert_eq!(Share::read("0.1%").map(|share| share.of(5256)), Ok(5));
        assert_eq!(Share::read("7").map(|share| share.of(5256)), Ok(7));
        assert!(Share::read("0.05 %").unwrap_err().contains("tenths of a per cent"));
        assert!(Share::read("many").unwrap_err().contains("such as \"1 %\""));
    }

    #[test]
    fn parts_and_tenths_have_few_digits() {
        assert_eq!((part("0.6"), part("1"), tenths("2.4"), tenths("1")), (Ok(600), Ok(1000), Ok(24), Ok(10)));
        assert!(part("0").is_err() && part("1.1").is_err() && part("0.0005").is_err());
        assert!(tenths("0.9").is_err() && tenths("2.45").is_err() && tenths("NaN").is_err());
    }
}
