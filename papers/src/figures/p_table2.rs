//! P table 2: from how many slots on a sender of 2 KiB messages no longer stalls under `static`, by eq. 5 and in a
//! running pair.

use tidegate_flow::{Config, FlowControl, Instant, Packet, PacketKind, PeerId, SchemeName, slots_without_stall};
use tidegate_sim::SimulationError;

use crate::report::{Fact, Findings, Table};

/// Packets of a 2 KiB message with its 16-byte header.
pub(crate) const MESSAGE_PACKETS: u32 = 37;

/// Credit slots and the paper's slots; `None` where its figure ended before.
const ROWS: [(u32, Option<u32>); 5] = [(1, None), (2, Some(57)), (3, Some(52)), (4, Some(50)), (5, Some(49))];

/// Packets that a pair exchanges: enough for many rounds of every threshold here.
const PACKETS: u32 = 1000;

/// The fewest credits that a sender holds while its receiver keeps up with it.
fn credits_least(slots_per_peer: u32, credit_slots: u32) -> Result<u32, SimulationError> {
    let config = Config::new(SchemeName::Static, 1, slots_per_peer, credit_slots);
    let new = || FlowControl::new(&config).map_err(|error| SimulationError::Setup(error.to_string()));
    let violation = |violation: tidegate_flow::Violation| SimulationError::Process(violation.to_string());
    let (mut sender, mut receiver, peer) = (new()?, new()?, PeerId(0));
    let mut least = u32::MAX;
    for _ in 0..PACKETS {
        sender.request(peer, 1, Instant::default()).into_credits().spend();
        receiver.handle_retrieved(peer, &Packet::new(PacketKind::Data, 0, 0)).map_err(violation)?;
        while let Some(control) = receiver.poll_control() {
            sender.handle_retrieved(peer, &control.packet).map_err(violation)?;
        }
        least = least.min(sender.credits(peer));
    }
    Ok(least)
}

pub(crate) fn run() -> Result<Findings, SimulationError> {
    let columns = ["credit slots", "paper", "eq. 5", "running pair"];
    let mut table = Table::new("table2", "Slots per process from which a sender does not stall", &columns);
    let (mut by_equation, mut by_pair, mut paper) = (Vec::new(), Vec::new(), Vec::new());
    for (credit_slots, published) in ROWS {
        let equation = slots_without_stall(MESSAGE_PACKETS, credit_slots).unwrap_or(u32::MAX);
        let mut pair = 2 * credit_slots;
        while credits_least(pair, credit_slots)? < MESSAGE_PACKETS {
            pair += 1;
        }
        let shown = published.map_or("≫ 64".to_owned(), |slots| slots.to_string());
        table.row([credit_slots.to_string(), shown, equation.to_string(), pair.to_string()]);
        paper.push(published);
        by_equation.push(equation);
        by_pair.push(pair);
    }
    let list = |values: &[u32]| values.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let agree = |ours: &[u32]| paper.iter().zip(ours).all(|(paper, ours)| paper.is_none_or(|paper| paper == *ours));
    let facts = vec![
        Fact::tested(
            "Eq. 5 gives the paper's slots for 2 to 5 credit slots.",
            agree(&by_equation),
            "57 52 50 49",
            list(&by_equation[1..]),
        ),
        Fact::tested(
            "A running sender owns a whole message's 37 credits at every moment from exactly there on.",
            agree(&by_pair),
            "57 52 50 49",
            list(&by_pair[1..]),
        ),
        Fact::tested(
            "With 1 credit slot that takes more than the 64 slots of the figure.",
            by_pair[0] > 64 && by_equation[0] > 64,
            "unknown, ≫ 64",
            by_pair[0].to_string(),
        ),
    ];
    let setup = format!(
        "Messages of {MESSAGE_PACKETS} packets (2 KiB and a header of 16 bytes, 56 bytes in a packet). A running pair \
         is the flow control that runs under MPI; its receiver keeps up, and the fewest credits that the sender holds \
         over {PACKETS} packets decide."
    );
    Ok(Findings { setup, figures: Vec::new(), tables: vec![table], facts })
}
