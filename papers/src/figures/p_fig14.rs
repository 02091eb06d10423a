//! P fig. 14: the trace of `dynamic`, as far as the text of P §6.7 fixes it: two credit slots, an intended quota of 10,
//! eight blocks. Sender 0 is the one that is traced; senders 1 to 4 make the slots scarce (block 2) and steal (block
//! 4).

use tidegate_flow::{Config, FlowControl, Packet, PacketKind, PeerId, SchemeName, Violation};
use tidegate_sim::SimulationError;

use crate::report::{Fact, Findings, Table};

/// The sender whose columns the figure has.
const TRACED: PeerId = PeerId(0);
/// The others.
const OTHERS: std::ops::Range<u32> = 1..5;

/// A receiver, fed packet by packet.
struct Receiver {
    control: FlowControl,
    table: Table,
    facts: Vec<Fact>,
}

impl Receiver {
    fn new() -> Result<Self, SimulationError> {
        let config = Config { piggyback: true, ..Config::new(SchemeName::Dynamic, 5, 12, 2) };
        let control = FlowControl::new(&config).map_err(|error| SimulationError::Setup(error.to_string()))?;
        let columns =
            ["block", "what happened", "returned", "rode", "thresholds", "intended quota", "retrieved", "piggybacked"];
        let table = Table::new("fig14", "The receiver's view of the traced sender", &columns);
        Ok(Receiver { control, table, facts: Vec::new() })
    }

    fn intended_quota(&self) -> u32 {
        self.control.inspect().peers[0].intended_quota
    }

    /// What entered the traced sender's list last.
    fn newest_threshold(&self) -> u32 {
        self.control.inspect().peers[0].thresholds.last().copied().unwrap_or(0)
    }

    /// Retrieves `count` packets of a sender. Returns the credits of each credit packet that this sends to it.
    fn retrieve(&mut self, from: PeerId, count: u32) -> Result<Vec<u32>, Violation> {
        let mut returned = Vec::new();
        for _ in 0..count {
            self.control.handle_retrieved(from, &Packet::new(PacketKind::Data, 0, 0))?;
            while let Some(control) = self.control.poll_control() {
                if control.to == from && control.packet.header.kind() == PacketKind::Credit {
                    returned.push(control.packet.credits());
                }
            }
        }
        Ok(returned)
    }

    /// A data packet with room leaves for the traced sender. Returns what rides on it.
    fn piggyback(&mut self) -> u16 {
        let mut packet = Packet::new(PacketKind::Data, 0, 0);
        self.control.depart(TRACED, &mut packet, 0);
        packet.piggyback().unwrap_or(0)
    }

    /// Notes a row of the figure.
    fn note(&mut self, block: u32, what: &str, returned: &[u32], rode: Option<u16>) {
        let state = &self.control.inspect().peers[0];
        let list = |values: &[u32]| values.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        self.table.row([
            block.to_string(),
            what.to_owned(),
            list(returned),
            rode.map_or(String::new(), |credits| credits.to_string()),
            list(&state.thresholds),
            state.intended_quota.to_string(),
            state.retrieved.to_string(),
            state.piggybacked.to_string(),
        ]);
    }

    /// Compares what went back with the paper.
    fn fact(&mut self, statement: &str, paper: &[u32], here: &[u32]) {
        let words = |values: &[u32]| match values {
            [] => "nothing".to_owned(),
            values => values.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
        };
        self.facts.push(Fact::tested(statement, paper == here, words(paper), words(here)));
    }

    /// Blocks 1 to 4: thresholds reached in the regular way.
    fn regular_blocks(&mut self) -> Result<(), Violation> {
        self.note(1, "initial configuration", &[], None);
        let first = self.retrieve(TRACED, 1)?;
        self.note(1, "a packet is retrieved: 4 credits return", &first, None);
        self.fact("Block 1: the first packet reaches the threshold and 4 credits return.", &[4], &first);
        for other in OTHERS {
            self.retrieve(PeerId(other), 3)?;
        }
        let scarce = self.retrieve(TRACED, 1)?;
        self.note(2, "only 2 credits are available", &scarce, None);
        self.fact("Block 2: 2 return instead of 4, because no more are available.", &[2], &scarce);
        let listed = self.newest_threshold();
        self.facts.push(
            Fact::tested(
                "Block 2: the threshold that was computed, 4, enters the list (§6.5.2).",
                listed == 4,
                "4",
                listed.to_string(),
            )
            .because(
                "What returns enters it here, on purpose: with 4 the sender could spend all that it has without ever reaching \
                 it (rule C1 of the scheme's notes).",
            ),
        );
        self.retrieve(PeerId(1), 3)?;
        let again = self.retrieve(TRACED, 1)?;
        self.note(3, "all that is earned is available again", &again, None);
        self.fact("Block 3: 4 return again.", &[4], &again);
        for other in OTHERS.cycle().take(1000) {
            if self.intended_quota() == 4 {
                break;
            }
            self.retrieve(PeerId(other), 1)?;
        }
        let (quota, stolen) = (self.intended_quota(), self.retrieve(TRACED, 4)?);
        self.note(4, "a more active sender has stolen quota", &stolen, None);
        self.facts.push(Fact::tested(
            "Block 4: a threshold is reached in the regular way again, with the intended quota, which was 10, reduced for a more \
             active sender.",
            !stolen.is_empty() && quota < 10,
            "reduced",
            format!("{quota}; {} return", stolen.iter().sum::<u32>()),
        ));
        Ok(())
    }

    /// Blocks 5 to 8: credits that ride.
    fn piggyback_blocks(&mut self) -> Result<(), Violation> {
        let mut explicit = self.retrieve(TRACED, 1)?;
        let first = self.piggyback();
        self.note(5, "a credit rides", &explicit, Some(first));
        explicit.extend(self.retrieve(TRACED, 1)?);
        let second = self.piggyback();
        self.note(5, "adjustment by deficit", &explicit, Some(second));
        self.fact(
            "Block 5: the second piggybacked packet reaches the threshold; two should return, one did, so one rides.",
            &[1, 1],
            &[first.into(), second.into()],
        );
        let next = self.control.inspect().peers[0].thresholds[1];
        let mut explicit = self.retrieve(TRACED, 3)?;
        let rode = self.piggyback();
        explicit.extend(self.retrieve(TRACED, 1)?);
        let excess = self.piggyback();
        self.note(6, "adjustment by excess", &explicit, Some(excess));
        let none = if excess == 0 && explicit.is_empty() { 0 } else { 1 };
        self.fact("Block 6: three rode already where two should return, so none do.", &[3, 0], &[rode.into(), none]);
        let head = self.control.inspect().peers[0].thresholds[0];
        self.fact("Block 6: the new current threshold rises by the excess.", &[1], &[head.saturating_sub(next)]);
        self.retrieve(TRACED, 1)?;
        let rode = self.piggyback();
        let regular = self.retrieve(TRACED, 3)?;
        self.note(7, "the regular way after credits that rode", &regular, Some(rode));
        let whole = self.newest_threshold();
        self.facts.push(Fact::tested(
            "Block 7: the regular way after a piggybacked credit needs no adjustment: as much returns as enters the list.",
            rode > 0 && regular == [whole],
            "no adjustment",
            format!("{rode} rode; then {} return, {whole} in the list", regular.iter().sum::<u32>()),
        ));
        let last = self.retrieve(TRACED, 2)?;
        self.note(8, "the regular way", &last, None);
        let whole = self.newest_threshold();
        self.facts.push(Fact::tested(
            "Block 8: the regular way: as much returns as enters the list.",
            last == [whole],
            "similar to block 1",
            format!("{} return, {whole} in the list", last.iter().sum::<u32>()),
        ));
        Ok(())
    }
}

/// P §6.3: with nothing to move `dynamic` does as `static`. Packets of three senders in turn; what goes back, packet by
/// packet. (A property test of the flow control tries two-way traffic of all orders, with piggybacking.)
fn without_dynamic_region() -> Result<Fact, SimulationError> {
    let returned = |scheme| {
        let config = Config::new(scheme, 3, 4, 2);
        let mut control = FlowControl::new(&config).map_err(|error| SimulationError::Setup(error.to_string()))?;
        let mut returned = Vec::new();
        for nth in 0..600 {
            let from = PeerId(nth % 3);
            let packet = Packet::new(PacketKind::Data, 0, 0);
            control.handle_retrieved(from, &packet).map_err(|error| SimulationError::Process(error.to_string()))?;
            while let Some(packet) = control.poll_control() {
                returned.push((nth, packet.to, packet.packet.header.kind(), packet.packet.credits()));
            }
        }
        Ok::<_, SimulationError>(returned)
    };
    let [fixed, moving] = [SchemeName::Static, SchemeName::Dynamic].map(returned);
    let (fixed, moving) = (fixed?, moving?);
    Ok(Fact::tested(
        "Without a dynamic region (4 slots, 2 of them for credits) dynamic behaves as static does (§6.3).",
        !fixed.is_empty() && fixed == moving,
        "the same behaviour",
        format!("static returns credits {} times in 600 packets, dynamic {}", fixed.len(), moving.len()),
    ))
}

pub(crate) fn run() -> Result<Findings, SimulationError> {
    let mut receiver = Receiver::new()?;
    let violation = |violation: Violation| SimulationError::Process(violation.to_string());
    receiver.regular_blocks().map_err(violation)?;
    receiver.piggyback_blocks().map_err(violation)?;
    receiver.facts.push(without_dynamic_region()?);
    let setup =
        "The flow control that runs under MPI, as a receiver of five senders with 12 slots each, 2 of them for \
        credits: an intended quota of 10. In block 2 the credits granted, 2, enter the list of thresholds where the \
        paper enters 4: with 4 the sender could spend all it has without ever reaching it (rule C1 of the scheme's \
        notes). The picture of the paper is lost; the facts are what its text says."
            .to_owned();
    Ok(Findings { setup, figures: Vec::new(), tables: vec![receiver.table], facts: receiver.facts })
}
