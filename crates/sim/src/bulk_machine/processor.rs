//! [`Processor`]: what a node's processor does, one thing at a time, and what it chooses next.

use std::collections::VecDeque;

use tidegate_bulk::Completion;

use super::parameters::{Mover, Proof, Reception};
use super::{Happening, Load, Machine, Unit, Word};
use crate::{Random, Time};

#[derive(Clone, Copy, Debug, Default)]
enum Doing {
    #[default]
    Nothing,
    Small(u32, Word),
    Data {
        transfer: u32,
        bytes: u32,
    },
    /// Takes a cell.
    Taking,
    /// Waits for the next cell of the unit that it takes.
    Halfway,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Processor {
    doing: Doing,
    /// To be sent, before data.
    pub small: VecDeque<(u32, Word)>,
    /// Pieces, the first of which is sent.
    pub transfers: VecDeque<u32>,
    /// Units sent since it last found nothing that had come.
    since_look: u32,
    /// Units taken since it last sent one.
    taken: u32,
    /// For whom and from whom the last units of data were.
    last: [u32; 2],
    /// Units in its interface.
    departing: u32,
}

impl Processor {
    /// What another partner costs than that of the unit before.
    fn change(&mut self, way: usize, partner: u32, cost: Time) -> Time {
        let before = std::mem::replace(&mut self.last[way], partner);
        if before == partner { Time::ZERO } else { cost }
    }
}

impl Machine {
    /// A processor that does nothing chooses something.
    pub(super) fn look(&mut self, node: u32) {
        let processor = &mut self.processors[node as usize];
        if !matches!(processor.doing, Doing::Nothing) {
            return;
        }
        let there = self.network.arrived(node).is_some();
        let has_room = processor.departing < self.parameters.departure_units;
        let wants = !processor.small.is_empty() || !processor.transfers.is_empty();
        let is_due = match self.parameters.reception {
            Reception::Interrupts => true,
            Reception::Polling { every, most } => processor.since_look >= every && processor.taken < most,
        };
        if there && (is_due || !has_room || !wants) {
            self.take_first(node);
            return;
        }
        if !there || (processor.taken > 0 && !is_due) {
            (processor.since_look, processor.taken) = (0, 0);
        }
        if !has_room {
            return;
        }
        let span = if let Some((to, word)) = processor.small.pop_front() {
            processor.doing = Doing::Small(to, word);
            self.parameters.send_signal
        } else if let Some(&transfer) = processor.transfers.front() {
            let of = self.transfers.of(transfer);
            let bytes = (of.piece.bytes - of.sent).min(self.parameters.unit_bytes.into()) as u32;
            processor.doing = Doing::Data { transfer, bytes };
            let change = processor.change(0, of.piece.to.0, self.parameters.change_partner);
            self.parameters.send_unit + of.jitter + change
        } else {
            return;
        };
        processor.since_look += 1;
        self.watch.sending += span;
        self.queue.schedule(self.now + span, Happening::Done(node as u16));
    }

    /// Takes the first cell of a unit.
    fn take_first(&mut self, node: u32) {
        let Some(cell) = self.network.arrived(node) else { return };
        let (first, per_byte) = self.parameters.receiving();
        let Unit { from, load, .. } = *self.units.of(cell.unit);
        let span = match load {
            Load::Small(_) => self.parameters.receive_signal,
            Load::Data { .. } => {
                let change = self.processors[node as usize].change(1, from, self.parameters.change_partner);
                first + Time(per_byte * u64::from(cell.bytes)) + change
            }
        };
        self.keep_taking(node, span);
    }

    fn keep_taking(&mut self, node: u32, span: Time) {
        self.processors[node as usize].doing = Doing::Taking;
        self.watch.receiving += span;
        self.queue.schedule(self.now + span, Happening::Done(node as u16));
    }

    /// The next cell of a unit that is being taken, if it is there.
    fn take_next(&mut self, node: u32) {
        match self.network.arrived(node) {
            Some(cell) => {
                let span = Time(self.parameters.receiving().1 * u64::from(cell.bytes));
                self.keep_taking(node, span);
            }
            None => self.processors[node as usize].doing = Doing::Halfway,
        }
    }

    /// A processor is done with what it did.
    pub(super) fn done(&mut self, node: u32) {
        match std::mem::take(&mut self.processors[node as usize].doing) {
            Doing::Nothing | Doing::Halfway => {}
            Doing::Small(to, word) => self.depart(node, to, Load::Small(word)),
            Doing::Data { transfer, bytes } => self.depart_data(node, transfer, bytes),
            Doing::Taking => {
                let Some(cell) = self.network.arrived(node) else { return };
                self.network.take(node, self.now, &mut self.queue);
                if !cell.is_last {
                    self.take_next(node);
                    return;
                }
                self.processors[node as usize].taken += 1;
                self.taken(cell.unit);
            }
        }
        self.look(node);
    }

    fn depart_data(&mut self, node: u32, transfer: u32, bytes: u32) {
        let of = self.transfers.of(transfer);
        of.sent += u64::from(bytes);
        let (to, is_last) = (of.piece.to.0, of.sent == of.piece.bytes);
        if is_last {
            self.processors[node as usize].transfers.pop_front();
        }
        self.depart(node, to, Load::Data { transfer, bytes });
        if is_last && self.parameters.mover == Mover::Processor && self.ends_at_sender() {
            self.sent(transfer);
        }
    }

    /// Whether a piece is over for its sender without its receiver.
    fn ends_at_sender(&self) -> bool {
        self.completion == Completion::Local || self.parameters.proof == Proof::Injected
    }

    fn depart(&mut self, from: u32, to: u32, load: Load) {
        self.processors[from as usize].departing += 1;
        self.watch.units += 1;
        let (way, data) = match load {
            // Those of a pair arrive in their order: they all go the same way.
            Load::Small(_) => {
                let mut of_pair = Random::stream(u64::from(from), u64::from(to));
                (self.network.wiring.way(from, to, &mut of_pair), 0)
            }
            Load::Data { bytes, .. } => (self.network.wiring.way(from, to, &mut self.random), bytes),
        };
        let bytes = match load {
            Load::Small(_) => self.parameters.signal_bytes(),
            Load::Data { .. } => self.parameters.wire_bytes(data),
        };
        let number = self.units.put(Unit { from, to, load });
        self.network.send(from, number, bytes, way, self.now, &mut self.queue);
    }

    /// Something has come, where there was nothing.
    pub(super) fn arrived(&mut self, node: u32) {
        match self.processors[node as usize].doing {
            Doing::Halfway => self.take_next(node),
            _ => self.look(node),
        }
    }

    /// A unit has left, all of it.
    pub(super) fn left(&mut self, node: u32, unit: u32) {
        self.processors[node as usize].departing -= 1;
        if let Load::Data { transfer, bytes } = self.units.of(unit).load {
            let of = self.transfers.of(transfer);
            of.left += u64::from(bytes);
            let is_last = of.left == of.piece.bytes;
            if is_last && self.parameters.mover == Mover::Engine && self.ends_at_sender() {
                self.sent(transfer);
            }
        }
        self.look(node);
    }
}
