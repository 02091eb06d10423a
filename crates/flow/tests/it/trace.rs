//! The trace of P fig. 14, as far as the text of P §6.7 fixes it: two credit slots, an intended quota of 10, eight
//! blocks.
//!
//! Sender 0 is the one that is traced. Senders 1 to 4 exist to make the slots scarce (block 2) and to steal (block 4).

use tidegate_flow::{Config, FlowControl, Packet, PacketKind, PeerId, PeerInspection, SchemeName};

/// The receiver, fed packet by packet.
struct Receiver(FlowControl);

impl Receiver {
    fn new() -> Self {
        let config = Config { piggyback: true, ..Config::new(SchemeName::Dynamic, 5, 12, 2) };
        Receiver(FlowControl::new(&config).unwrap())
    }

    /// The traced sender, as the receiver sees it.
    fn traced(&self) -> PeerInspection {
        self.0.inspect().peers[0].clone()
    }

    /// Thresholds, intended quota, retrieved packets and piggybacked credits of the traced sender: the columns of the
    /// figure.
    fn row(&self) -> String {
        let PeerInspection { thresholds, intended_quota, retrieved, piggybacked, .. } = self.traced();
        format!("{thresholds:?} {intended_quota} {retrieved} {piggybacked}")
    }

    /// Retrieves `count` packets of a sender. Returns the credits of each credit packet that this sends to it.
    fn retrieve(&mut self, from: u32, count: u32) -> Vec<u32> {
        let mut returned = Vec::new();
        for _ in 0..count {
            self.0.handle_retrieved(PeerId(from), &Packet::new(PacketKind::Data, 0, 0)).unwrap();
            while let Some(control) = self.0.poll_control() {
                if control.to == PeerId(from) && control.packet.header.kind() == PacketKind::Credit {
                    returned.push(control.packet.credits());
                }
            }
        }
        returned
    }

    /// A data packet with room leaves for the traced sender. Returns what rides on it.
    fn piggyback(&mut self) -> u16 {
        let mut packet = Packet::new(PacketKind::Data, 0, 0);
        self.0.before_send(PeerId(0), &mut packet, 0);
        assert!(self.0.poll_control().is_none(), "an explicit packet in the piggyback way");
        packet.piggyback().unwrap_or(0)
    }

    fn available(&self) -> u32 {
        self.0.inspect().available_slots
    }
}

#[test]
fn figure_14() {
    let mut receiver = Receiver::new();

    // Block 1. The initial configuration; the threshold is reached in the regular way and 4 credits return.
    assert_eq!(receiver.row(), "[1, 1, 1] 10 0 0");
    assert_eq!(receiver.retrieve(0, 1), [4]);
    assert_eq!(receiver.row(), "[1, 1, 4] 10 0 0");

    // Block 2. The others took the rest, so only 2 are available. (C1: 2 is queued, where the paper queues 4.)
    for other in 1..5 {
        assert_eq!(receiver.retrieve(other, 3), [4, 4, 4]);
    }
    assert_eq!(receiver.available(), 1);
    assert_eq!(receiver.retrieve(0, 1), [2]);
    assert_eq!(receiver.row(), "[1, 4, 2] 10 0 0");

    // Block 3. This time all that is earned is available.
    assert_eq!(receiver.retrieve(1, 3), []);
    assert_eq!(receiver.retrieve(0, 1), [4]);
    assert_eq!(receiver.row(), "[4, 2, 4] 10 0 0");

    // Block 4. A more active sender has stolen from the quota; the threshold is reached in the regular way.
    for other in (1..5).cycle() {
        if receiver.traced().intended_quota == 4 {
            break;
        }
        receiver.retrieve(other, 1);
    }
    assert_eq!(receiver.retrieve(0, 4), [2]);
    assert_eq!(receiver.row(), "[2, 4, 2] 4 0 0");

    // Block 5. The second piggybacked packet reaches the threshold: two credits should return, one did already.
    assert_eq!(receiver.retrieve(0, 1), []);
    assert_eq!(receiver.piggyback(), 1);
    assert_eq!(receiver.row(), "[2, 4, 2] 4 0 1");
    assert_eq!(receiver.retrieve(0, 1), []);
    assert_eq!(receiver.piggyback(), 1);
    assert_eq!(receiver.row(), "[4, 2, 2] 4 0 0");

    // Block 6. Two should return, three did already: none do, and the new current threshold rises by the difference.
    assert_eq!(receiver.retrieve(0, 3), []);
    assert_eq!(receiver.piggyback(), 3);
    assert_eq!(receiver.retrieve(0, 1), []);
    assert_eq!(receiver.piggyback(), 0);
    assert_eq!(receiver.row(), "[3, 2, 2] 4 0 0");

    // Block 7. The regular way after credits that rode: no adjustment.
    assert_eq!(receiver.retrieve(0, 1), []);
    assert_eq!(receiver.piggyback(), 1);
    assert_eq!(receiver.retrieve(0, 3), [2]);
    assert_eq!(receiver.row(), "[2, 2, 2] 4 0 0");

    // Block 8. The regular way.
    assert_eq!(receiver.retrieve(0, 2), [2]);
    assert_eq!(receiver.row(), "[2, 2, 2] 4 0 0");
}
