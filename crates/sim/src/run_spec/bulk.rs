//! [`BulkDraft`]: files that describe jobs of bulk transfers on a machine whose nodes receive more slowly than they
//! send (`crate::bulk_machine`; B).

use std::path::Path;

use tidegate_bulk::{Settings, TechniqueName};

use super::file::{Draft, Field};
use super::refusal::{FieldName, Refusal};
use super::value::{bytes, few_bytes, number, numbers, positive, rate, step, truth, word};
use crate::Time;
use crate::bulk_machine::{BarrierKind, BulkJob, BulkParameters, BulkPattern, Proof, Reception, Shape};

/// The table that tells such a file from the others.
pub(super) const TABLE: &str = "bulk";

/// A job of bulk transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkSpec {
    /// The machine.
    pub machine: BulkParameters,
    /// What its nodes send to whom, and how.
    pub job: BulkJob,
    /// Decides every random choice.
    pub seed: u64,
}

/// A job that is being put together, field by field.
#[derive(Clone, Debug)]
pub struct BulkDraft {
    machine: BulkParameters,
    every: u32,
    most: u32,
    is_polling: bool,
    barrier_time: Option<Time>,
    arity: Option<u32>,
    pattern: String,
    count: Option<u32>,
    total: Option<u64>,
    block_bytes: u64,
    technique: TechniqueName,
    unit: Option<u64>,
    window: u32,
    requests: u32,
    matched_percent: u32,
    watch: bool,
    seed: u64,
}

/// Rows `section name default help => place = parser`; the defaults are those of B's CM-5.
macro_rules! fields {
    ($($name:literal $default:literal $help:literal => |$draft:ident, $text:ident| $set:expr;)*) => {
        &[$(Field {
            section: TABLE, name: $name, default: $default, help: $help,
            set: |$draft: &mut BulkDraft, $text: &str| { $set; Ok(()) },
        },)*]
    };
}

/// All fields of a job of bulk transfers. They take effect in this order, so a machine comes before what changes it.
pub const BULK_FIELDS: &[Field<BulkDraft>] = fields! {
    "machine" "cm5" "Where the fields begin: cm5, paragon or alewife, the machines of Brewer and others" =>
        |d, t| d.begin_with(word(t, &["cm5", "paragon", "alewife"])?);
    "shape" "" "Nodes: 4x2 for a mesh of so many columns and rows, or 3 for a tree of groups of four with so many levels" =>
        |d, t| d.machine.shape = shape(t)?;
    "link_bandwidth" "" "Rate of each direction of a link between routers" =>
        |d, t| d.machine.link_bandwidth = rate(t)?;
    "node_bandwidth" "" "Rate of a node's link to its router, and back" =>
        |d, t| d.machine.node_bandwidth = rate(t)?;
    "hop_latency" "" "What a hop takes beside the bytes" => |d, t| d.machine.hop_latency = step(t)?;
    "arrival_cells" "" "Cells that fit into a node's interface for what arrives" =>
        |d, t| d.machine.arrival_cells = positive(t)?;
    "departure_units" "" "Units that wait in a node's interface to leave" =>
        |d, t| d.machine.departure_units = positive(t)?;
    "unit_bytes" "" "Data that a node puts into the network at a time" =>
        |d, t| d.machine.unit_bytes = few_bytes(t, 1, UNIT_MOST, "1 MiB")?;
    "send_unit" "" "What a unit costs its sender's processor" => |d, t| d.machine.send_unit = step(t)?;
    "receive_percent" "" "What a unit costs its receiver's processor, in percent of that" =>
        |d, t| d.machine.receive_percent = most(number(t)?, 10_000)?;
    "change_partner" "" "In addition, if the unit before was for or from another node" =>
        |d, t| d.machine.change_partner = step(t)?;
    "send_signal" "" "What a small message costs its sender" => |d, t| d.machine.send_signal = step(t)?;
    "receive_signal" "" "What a small message costs its receiver" => |d, t| d.machine.receive_signal = step(t)?;
    "reception" "" "How a node notices what has arrived: polling or interrupts" =>
        |d, t| d.is_polling = word(t, &["polling", "interrupts"])? == "polling";
    "poll_every" "1" "With polling: units that it sends between two looks" => |d, t| d.every = positive(t)?;
    "poll_most" "" "With polling: units that it takes at a look; without it all" => |d, t| d.most = positive(t)?;
    "barrier_time" "" "A barrier in the network, passed so long after the last node is in" =>
        |d, t| (d.barrier_time, d.arity) = (Some(step(t)?), None);
    "barrier_arity" "" "A barrier of small messages along a tree, each node with so many children at most" =>
        |d, t| (d.arity, d.barrier_time) = (Some(positive(t)?), None);
    "proof" "injected"
        "When a block has been sent, where a technique asks: injected into the network, or acknowledged by its receiver" =>
        |d, t| d.machine.proof = match word(t, &["injected", "acknowledged"])? {
            "acknowledged" => Proof::Acknowledged,
            _ => Proof::Injected,
        };
    "jitter_per_mille" "" "How much longer a block takes at random: up to twice so many thousandths" =>
        |d, t| d.machine.jitter_per_mille = most(number(t)?, 1_000)?;
    "pattern" "cyclic_shift"
        "cyclic_shift (a block to each other node), random (blocks to random nodes), partners (to the node whose number \
         differs in a bit), or one_way (from node 0 to one)" =>
        |d, t| d.pattern = word(t, &["cyclic_shift", "random", "partners", "one_way"])?.to_owned();
    "count" "1"
        "How many shifts or random blocks; the value of the bit of partners (1, 2, 4, …); the receiver of one_way" =>
        |d, t| d.count = Some(number(t)?);
    "total" ""
        "With cyclic_shift and random, instead of count: how many bytes a node sends in all, to the next whole number of \
         shifts or blocks" => |d, t| d.total = Some(bytes(t)?.max(1));
    "bytes" "1 KiB" "Length of each block" => |d, t| d.block_bytes = few_bytes(t, 1, BLOCK_MOST, "1 GiB")?.into();
    "technique" "in_order"
        "Who sends when: in_order, interleave, barriers, tokens, receiver_tokens, booking, … (tidegate_bulk(3))" =>
        |d, t| d.technique = t.parse().map_err(|_| unknown_technique(t))?;
    "unit" ""
        "With interleave and booking: bytes that are sent or booked at a time; without it a block with booking, else what a \
         node puts into the network at a time" => |d, t| d.unit = Some(bytes(t)?.max(1));
    "window" "32" "With booking: rounds ahead that are booked" => |d, t| d.window = positive(t)?;
    "requests" "1" "With booking: requests that a sender makes in a round" => |d, t| d.requests = positive(t)?;
    "matched_percent" "100"
        "With bandwidth_matching: the rate to which a sender keeps, in percent of that at which a receiver takes whole units" =>
        |d, t| d.matched_percent = most(positive(t)?, 10_000)?;
    "watch" "false" "Whether the share of busy senders over the time is noted" => |d, t| d.watch = truth(t)?;
    "seed" "1" "Decides every random choice" => |d, t| d.seed = number(t)?;
};

/// Most columns and rows of a mesh, together.
const MESH_MOST: u16 = 20;
/// Most bytes of a block, and of what is put into the network at a time: all is simulated.
const BLOCK_MOST: u64 = 1 << 30;
const UNIT_MOST: u64 = 1 << 20;
/// Most units of a run, all nodes together.
const UNITS_MOST: f64 = 1e9;

fn unknown_technique(text: &str) -> String {
    let known: Vec<&str> = TechniqueName::ALL.iter().map(|technique| technique.name()).collect();
    word(text, &known).err().unwrap_or_default()
}

fn shape(text: &str) -> Result<Shape, String> {
    match numbers::<u16>(text, 'x')?[..] {
        [columns, rows] if columns.saturating_add(rows) > MESH_MOST => {
            Err(format!("columns and rows are {MESH_MOST} together at most: so many links a unit may cross"))
        }
        [levels @ 1..=3] => Ok(Shape::FatTree { levels: levels as u8 }),
        [columns, rows] if columns > 0 && rows > 0 => Ok(Shape::Mesh { columns, rows }),
        _ => Err("1 to 3 levels of a tree, or columns x rows of a mesh, are needed".to_owned()),
    }
}

/// A number that is at most so much.
fn most(number: u32, most: u32) -> Result<u32, String> {
    if number <= most { Ok(number) } else { Err(format!("a whole number from 0 to {most} is needed")) }
}

impl BulkDraft {
    fn begin_with(&mut self, name: &str) {
        self.machine = match name {
            "paragon" => BulkParameters::paragon(),
            "alewife" => BulkParameters::alewife(),
            _ => BulkParameters::cm5(),
        };
        self.is_polling = matches!(self.machine.reception, Reception::Polling { .. });
    }

    /// How many passes or blocks; with a total, the number that comes nearest to it.
    fn count(&self, blocks_of_each: u64) -> u32 {
        let whole = |total: u64| {
            let bytes = self.block_bytes.saturating_mul(blocks_of_each);
            ((total + bytes / 2) / bytes).clamp(1, u64::from(u32::MAX)) as u32
        };
        self.total.map_or(self.count.unwrap_or(1), whole)
    }
}

impl Draft for BulkDraft {
    type Scenario = BulkSpec;
    const FIELDS: &'static [Field<Self>] = BULK_FIELDS;

    fn new() -> Self {
        BulkDraft {
            machine: BulkParameters::cm5(),
            every: 1,
            most: u32::MAX,
            is_polling: true,
            barrier_time: None,
            arity: None,
            pattern: "cyclic_shift".to_owned(),
            count: None,
            total: None,
            block_bytes: 1024,
            technique: TechniqueName::InOrder,
            unit: None,
            window: 32,
            requests: 1,
            matched_percent: 100,
            watch: false,
            seed: 1,
        }
    }

    fn finish(self, _: &Path) -> Result<BulkSpec, Refusal> {
        let mut machine = self.machine;
        machine.reception = match self.is_polling {
            true => Reception::Polling { every: self.every, most: self.most },
            false => Reception::Interrupts,
        };
        if let Some(time) = self.barrier_time {
            machine.barrier = BarrierKind::Hardware(time);
        }
        if let Some(arity) = self.arity {
            machine.barrier = BarrierKind::Tree { arity };
        }
        let (nodes, number) = (machine.shape.nodes(), self.count.unwrap_or(1));
        if nodes < 2 {
            let what = format!("[{TABLE}] shape: {nodes} node sends nothing to others: at least two are needed");
            return Err(Refusal::new(&[(TABLE, "shape")], what));
        }
        let pattern = match self.pattern.as_str() {
            "random" => BulkPattern::Random { blocks: self.count(1) },
            "partners" => BulkPattern::Partners { bit: number },
            "one_way" => BulkPattern::OneWay { to: number },
            _ => BulkPattern::CyclicShift { passes: self.count(u64::from(nodes) - 1) },
        };
        let is_possible = match pattern {
            BulkPattern::Partners { bit } => bit.is_power_of_two() && nodes.is_power_of_two() && bit < nodes,
            BulkPattern::OneWay { to } => (1..nodes).contains(&to),
            BulkPattern::Random { blocks: count } | BulkPattern::CyclicShift { passes: count } => count > 0,
        };
        if !is_possible {
            let what = format!("[{TABLE}] count = {number}: pattern = {} has no such on {nodes} nodes", self.pattern);
            return Err(Refusal::new(&[(TABLE, "count"), (TABLE, "pattern"), (TABLE, "shape")], what));
        }
        let each = match pattern {
            BulkPattern::CyclicShift { passes } => f64::from(passes) * f64::from(nodes - 1),
            BulkPattern::Random { blocks } => f64::from(blocks),
            BulkPattern::Partners { .. } | BulkPattern::OneWay { .. } => 1.0,
        };
        let units = f64::from(nodes) * each * (1.0 + self.block_bytes as f64 / f64::from(machine.unit_bytes));
        if units > UNITS_MOST {
            let what = format!(
                "[{TABLE}] count: these are {units:.0} units, and at most {UNITS_MOST:.0} are simulated: fewer or shorter \
                 blocks are needed"
            );
            let fields = ["count", "total", "bytes", "unit_bytes"].map(|field| (TABLE, field));
            return Err(Refusal::new(&fields, what));
        }
        let usual = match self.technique {
            TechniqueName::Booking => self.block_bytes,
            _ => machine.unit_bytes.into(),
        };
        // Only what the technique reads differs from the defaults, so that equal jobs are equal.
        let (window, requests) = match self.technique {
            TechniqueName::Booking => (self.window, self.requests),
            _ => (BulkDraft::new().window, BulkDraft::new().requests),
        };
        let unit = match self.technique {
            TechniqueName::Booking | TechniqueName::Interleave => self.unit.unwrap_or(usual),
            _ => usual,
        };
        let picoseconds_per_byte = match self.technique {
            TechniqueName::BandwidthMatching => machine.extraction() * 100 / u64::from(self.matched_percent),
            _ => 0,
        };
        let settings =
            Settings { unit, window, requests_per_round: requests, picoseconds_per_byte, ..Settings::default() };
        let (block_bytes, technique, watch) = (self.block_bytes, self.technique, self.watch);
        let job = BulkJob { pattern, block_bytes, technique, settings, watch };
        Ok(BulkSpec { machine, job, seed: self.seed })
    }

    fn heeds(spec: &BulkSpec, field: &Field<Self>) -> bool {
        let goes_on = matches!(spec.job.pattern, BulkPattern::CyclicShift { .. } | BulkPattern::Random { .. });
        match field.name {
            "poll_every" | "poll_most" => matches!(spec.machine.reception, Reception::Polling { .. }),
            "total" => goes_on,
            "window" | "requests" => spec.job.technique == TechniqueName::Booking,
            "unit" => matches!(spec.job.technique, TechniqueName::Booking | TechniqueName::Interleave),
            "matched_percent" => spec.job.technique == TechniqueName::BandwidthMatching,
            _ => true,
        }
    }

    fn why_idle(field: &Field<Self>, values: impl Fn(FieldName) -> Option<String>) -> String {
        let decides = match field.name {
            "poll_every" | "poll_most" => "reception",
            "total" => "pattern",
            _ => "technique",
        };
        let value = values((TABLE, decides)).unwrap_or_else(|| "its default".to_owned());
        format!("a job with {decides} = {value}: remove the field, or change [{TABLE}] {decides}")
    }

    fn of_another_kind(section: &str) -> Option<String> {
        let is_of_others = super::FIELDS.iter().any(|field| field.section == section)
            || super::FABRIC_FIELDS.iter().any(|field| field.section == section);
        is_of_others
            .then(|| format!("[{section}] belongs to other files than those with a table [{TABLE}]: remove one"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> BulkSpec {
        let sweep = super::super::file::Sweep::<BulkDraft>::read(text, Path::new("")).unwrap();
        sweep.points[0].1
    }

    #[test]
    fn every_default_is_what_a_file_without_the_field_gets() {
        let plain = format!("{:?}", BulkDraft::new().finish(Path::new("")));
        for field in BULK_FIELDS.iter().filter(|field| !field.default.is_empty()) {
            let mut draft = BulkDraft::new();
            (field.set)(&mut draft, field.default).unwrap_or_else(|problem| panic!("{field:?}: {problem}"));
            assert_eq!(format!("{:?}", draft.finish(Path::new(""))), plain, "{field:?}");
        }
    }

    #[test]
    fn a_total_is_the_nearest_number_of_whole_shifts() {
        let passes = |bytes: u64| match of(&format!("[bulk]\nmachine = \"paragon\"\ntotal = 229376\nbytes = {bytes}")) {
            BulkSpec { job: BulkJob { pattern: BulkPattern::CyclicShift { passes }, .. }, .. } => passes,
            other => panic!("{other:?}"),
        };
        assert_eq!([passes(16384), passes(32768), passes(1 << 20)], [2, 1, 1]);
    }

    #[test]
    fn a_matched_sender_keeps_to_the_rate_of_a_receiver_or_a_part_of_it() {
        let time = |more: &str| {
            let spec = of(&format!("[bulk]\npattern = \"one_way\"\ntechnique = \"bandwidth_matching\"{more}"));
            crate::bulk_machine::run(&spec.machine, &spec.job, 1).unwrap().end.0 as f64
        };
        // A CM-5 takes 16 bytes in 2.24 µs; the last of 64 units ends some µs after the 64 times.
        let (whole, half) = (time(""), time("\nmatched_percent = 50"));
        assert!((1.0..1.15).contains(&(whole / (64.0 * 2.24e6))), "{whole}");
        assert!((1.9..2.0).contains(&(half / whole)), "{half} beside {whole}");
    }

    #[test]
    fn what_a_machine_does_not_have_is_refused() {
        let why =
            |text: &str| super::super::file::Sweep::<BulkDraft>::read(text, Path::new("")).unwrap_err().to_string();
        let none = why("[bulk]\npattern = \"one_way\"\ncount = 64");
        assert!(none.starts_with("line 3: [bulk] count = 64"), "{none}");
        let technique = why("[bulk]\ntechnique = \"bookings\"");
        assert!(technique.contains("did you mean booking?"), "{technique}");
        assert!(why("[bulk]\nshape = '16x16'").contains("20 together at most"));
        assert!(why("[bulk]\nunit_bytes = '2 MiB'").contains("1 MiB"));
        assert!(why("[bulk]\ncount = 4000000000").starts_with("line 2: [bulk] count: these are "));
        assert!(why("[bulk]\nreceive_percent = 20000").contains("from 0 to 10000"));
        let idle = why("[bulk]\nwindow = 5");
        assert!(idle.contains("changes nothing"), "{idle}");
    }
}
