//! The margin that a recommended setting keeps over the least that was found enough.
//!
//! *The simple idea* is to recommend the least itself. But a simulation is not the job: in the comparison of
//! `docs/plan.md` real jobs had 0.5 to 2 times as many credit packets as predicted, and kept up to 2.5 times as many
//! bytes of messages that no receive waited for (1.25 times in the median). And the next run of a job is not the one
//! that was recorded. So a recommended setting has twice the least, of slots and of room for messages, and is run
//! once more.
//!
//! Nor does it have less than one message of the job takes, whatever the simulation finds enough. With fewer slots a
//! message leaves in pieces, and each waits until the receiver returns credits. In the simulation receivers have a
//! processor of their own and return them at once; on a machine with more ranks than processors each piece waits
//! until the receiver is scheduled: `--slots 4` took a flood from 2 seconds to 37 and more. Likewise a message that
//! costs more than a quarter of its sender's window does not travel with its envelope (W2 in `tidegate_message`'s
//! `deferral`), but is pulled by the receiver, later.

use tidegate_flow::Buffers;
use tidegate_message::Endpoint;
use tidegate_sim::SimulationConfig;

use super::setting::{Knob, credit_slots};

/// The factor by which a recommendation is larger than the least that was found enough.
pub const FACTOR: u32 = 2;

/// The library's own choice of slots for each peer is not smaller, however many peers there are.
const SLOTS_LEAST: u32 = 16;

/// Half of the room is divided into windows, and a message may cost a quarter of its sender's.
const ROOM_OF_MESSAGES: usize = 8;

/// The needs of a trace's messages on a machine, whatever the simulation finds enough.
#[derive(Clone, Copy, Debug)]
pub struct Margin {
    /// The largest message of the trace that travels eagerly, in bytes.
    pub message_bytes: u64,
    /// Packets of that message.
    pub message_packets: u32,
    /// Of the slots of each peer, those for credit packets.
    pub credit_slots: u32,
    /// Peers for which a process has room.
    peers: usize,
}

impl Margin {
    /// For a trace whose largest eager message has `message_bytes`.
    pub fn new(machine: &SimulationConfig, message_bytes: u64) -> Self {
        Margin {
            message_bytes,
            message_packets: Buffers::packets_of(message_bytes as u32),
            credit_slots: credit_slots(machine),
            peers: (machine.size() - 1 + machine.spare_peers).max(1) as usize,
        }
    }

    /// Slots for each peer that hold one message.
    pub fn slots_of_message(&self) -> u32 {
        self.message_packets + self.credit_slots
    }

    /// The fewest slots or buffers that are recommended where `least` were found enough.
    pub fn amount(&self, knob: Knob, least: u32) -> u32 {
        let doubled = least.saturating_mul(FACTOR);
        match knob {
            Knob::Slots => doubled.max(SLOTS_LEAST).max(self.slots_of_message()),
            Knob::PoolSlots => doubled.max(self.slots_of_message()),
            Knob::Buffers | Knob::BuffersMost | Knob::PoolMost => doubled,
        }
    }

    /// The least room for messages, in bytes, that is recommended where `least` was found enough.
    pub fn room(&self, least: usize) -> usize {
        (least * FACTOR as usize).max(self.room_of_messages())
    }

    /// Room, in bytes, with which every peer's window has a place for one message with its envelope.
    fn room_of_messages(&self) -> usize {
        let message = self.message_bytes as usize + Endpoint::<tidegate_link::ShmLink>::ENVELOPE_BYTES;
        self.peers * ROOM_OF_MESSAGES * message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::machine::Machine;

    fn margin(message_bytes: u64) -> Margin {
        let machine = Machine::read(None).and_then(|machine| machine.of_ranks(8, None)).expect("the bundled machine");
        Margin::new(&machine, message_bytes)
    }

    #[test]
    fn twice_the_least_is_recommended_and_never_less_than_a_message_takes() {
        let kilobyte = margin(1000);
        assert_eq!((kilobyte.message_packets, kilobyte.slots_of_message()), (19, 21));
        assert_eq!([2, 10, 11, 64].map(|least| kilobyte.amount(Knob::Slots, least)), [21, 21, 22, 128]);
        assert_eq!(margin(8).amount(Knob::Slots, 2), 16);
        assert_eq!(margin(2048).amount(Knob::Buffers, 3), 6);
        // 24 peers, and eight times the message and its envelope for each.
        assert!(kilobyte.room(0) > 24 * 8 * 1000 && kilobyte.room(1 << 20) == 2 << 20);
    }
}
