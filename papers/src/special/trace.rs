//! P figure 14: the trace of `dynamic`, as far as the text of P §6.7 fixes it: two credit slots, an intended quota of
//! 10, eight blocks. Sender 0 is the one that is traced; senders 1 to 4 make the slots scarce (block 2) and steal
//! (block 4).

use tidegate_flow::{Config, FlowControl, Packet, PacketKind, PeerId, SchemeName, Violation};

use super::{Known, number};
use crate::data::Keys;

const TRACED: PeerId = PeerId(0);
const OTHERS: std::ops::Range<u32> = 1..5;

struct Receiver {
    control: FlowControl,
    rows: Vec<Vec<(&'static str, String)>>,
}

impl Receiver {
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
        self.control.before_send(TRACED, &mut packet, 0);
        packet.piggyback().unwrap_or(0)
    }

    /// Notes what the receiver knows of the traced sender.
    fn note(&mut self, returned: &[u32], rode: Option<u16>) -> &mut Vec<(&'static str, String)> {
        let state = &self.control.inspect().peers[0];
        let list = |values: &[u32]| values.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        self.rows.push(vec![
            ("returned", list(returned)),
            ("returned_in_all", returned.iter().sum::<u32>().to_string()),
            ("rode", rode.map_or(String::new(), |credits| credits.to_string())),
            ("thresholds", list(&state.thresholds)),
            ("newest_threshold", state.thresholds.last().copied().unwrap_or(0).to_string()),
            ("intended_quota", state.intended_quota.to_string()),
            ("retrieved", state.retrieved.to_string()),
            ("piggybacked", state.piggybacked.to_string()),
        ]);
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }

    /// Retrieves packets of the traced sender, and notes what is known then.
    fn step(&mut self, count: u32) -> Result<(), Violation> {
        let returned = self.retrieve(TRACED, count)?;
        self.note(&returned, None);
        Ok(())
    }

    /// Blocks 1 to 4: thresholds reached in the regular way.
    fn regular_blocks(&mut self) -> Result<(), Violation> {
        self.note(&[], None);
        self.step(1)?;
        for other in OTHERS {
            self.retrieve(PeerId(other), 3)?;
        }
        self.step(1)?;
        self.retrieve(PeerId(1), 3)?;
        self.step(1)?;
        for other in OTHERS.cycle().take(1000) {
            if self.control.inspect().peers[0].intended_quota == 4 {
                break;
            }
            self.retrieve(PeerId(other), 1)?;
        }
        self.step(4)
    }

    fn piggyback_blocks(&mut self) -> Result<(), Violation> {
        let mut explicit = self.retrieve(TRACED, 1)?;
        let first = self.piggyback();
        self.note(&explicit, Some(first));
        explicit.extend(self.retrieve(TRACED, 1)?);
        let second = self.piggyback();
        self.note(&explicit, Some(second));
        let next = self.control.inspect().peers[0].thresholds[1];
        let mut explicit = self.retrieve(TRACED, 3)?;
        let rode = self.piggyback();
        explicit.extend(self.retrieve(TRACED, 1)?);
        let excess = self.piggyback();
        let rise = self.control.inspect().peers[0].thresholds[0].saturating_sub(next);
        let row = self.note(&explicit, Some(excess));
        row.extend([("rode_before", rode.to_string()), ("rise", rise.to_string())]);
        self.retrieve(TRACED, 1)?;
        let rode = self.piggyback();
        let regular = self.retrieve(TRACED, 3)?;
        self.note(&regular, Some(rode));
        self.step(2)
    }
}

/// What is known after a `step`, the first of which is the initial configuration.
pub(super) fn step(keys: &Keys) -> Known {
    let config = Config { piggyback: true, ..Config::new(SchemeName::Dynamic, 5, 12, 2) };
    let control = FlowControl::new(&config).map_err(|error| error.to_string())?;
    let mut receiver = Receiver { control, rows: Vec::new() };
    receiver.regular_blocks().and_then(|()| receiver.piggyback_blocks()).map_err(|violation| violation.to_string())?;
    let step = number(keys, "step")? as usize;
    step.checked_sub(1)
        .and_then(|step| receiver.rows.get(step))
        .cloned()
        .ok_or_else(|| format!("there is no step {step}").into())
}

/// P §6.3: with nothing to move `dynamic` does as `static`. Packets of three senders in turn; what goes back.
pub(super) fn alike() -> Known {
    let returned = |scheme| {
        let mut control = FlowControl::new(&Config::new(scheme, 3, 4, 2)).map_err(|error| error.to_string())?;
        let mut returned = Vec::new();
        for nth in 0..600 {
            let packet = Packet::new(PacketKind::Data, 0, 0);
            control.handle_retrieved(PeerId(nth % 3), &packet).map_err(|violation| violation.to_string())?;
            while let Some(packet) = control.poll_control() {
                returned.push((nth, packet.to, packet.packet.header.kind(), packet.packet.credits()));
            }
        }
        Ok::<_, String>(returned)
    };
    let (fixed, moving) = (returned(SchemeName::Static)?, returned(SchemeName::Dynamic)?);
    let differ = fixed.iter().zip(&moving).filter(|(one, other)| one != other).count();
    Ok(vec![
        ("by_static", fixed.len().to_string()),
        ("by_dynamic", moving.len().to_string()),
        ("that_differ", differ.to_string()),
    ])
}
