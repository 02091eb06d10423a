//! [`Ledger`]: an account of all packets under way, kept apart from the flow control that it checks.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use tidegate_flow::{Inspection, Packet, PacketKind, PeerId};

use crate::flight::Rank;

/// What is under way from one process to another.
#[derive(Debug, Default)]
struct Pair {
    /// The packets, first written first.
    packets: VecDeque<u64>,
    /// Packets that cost a credit, and credits that return responses bring back.
    spent: u32,
    /// Credits that travel to the receiver of the packets.
    granted: u32,
    /// Credit packets.
    credit_packets: u32,
}

/// The account of one run. Violations are collected and end the run.
#[derive(Debug, Default)]
pub struct Ledger {
    pairs: HashMap<(Rank, Rank), Pair>,
    /// Most credit packets of a pair; those that take posted buffers have no bound but these.
    credit_slots: u32,
    /// Whether credits are for buffers, of which the last packet of each is counted.
    counts_buffers: bool,
    violations: Vec<String>,
    /// Packets written and packets retrieved.
    counts: (u64, u64),
}

/// The state of one process's flow control, as the ledger compares it.
#[derive(Debug)]
pub(crate) struct Holder {
    pub rank: Rank,
    /// The ranks behind the peers of `inspection`.
    pub ranks: Vec<Rank>,
    pub inspection: Inspection,
}

fn fingerprint(packet: &Packet) -> u64 {
    let mut hasher = DefaultHasher::new();
    packet.header.published(0, PeerId(0)).hash(&mut hasher);
    packet.payload.hash(&mut hasher);
    hasher.finish()
}

/// What a packet takes from its sender's credits at its receiver until it is retrieved, and the credits it grants.
fn credits_of(packet: &Packet, counts_buffers: bool) -> (u32, u32) {
    let riding = u32::from(packet.piggyback().unwrap_or(0));
    match packet.header.kind() {
        PacketKind::Data => (u32::from(!counts_buffers || packet.header.ends_buffer()), riding),
        PacketKind::Credit => (0, packet.credits()),
        PacketKind::ReturnRequest => (1, 0),
        PacketKind::ReturnResponse => (1 + packet.credits(), 0),
    }
}

impl Ledger {
    pub(crate) fn new(credit_slots: u32) -> Self {
        Ledger { credit_slots, ..Ledger::default() }
    }

    /// The account of a run whose receivers post buffers.
    pub(crate) fn of_buffers() -> Self {
        Ledger { credit_slots: u32::MAX, counts_buffers: true, ..Ledger::default() }
    }

    /// What was found wrong.
    #[must_use]
    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    pub(crate) fn report(&mut self, violation: String) {
        self.violations.push(violation);
    }

    pub(crate) fn written(&mut self, from: Rank, to: Rank, packet: &Packet) {
        self.counts.0 += 1;
        let (spent, granted) = credits_of(packet, self.counts_buffers);
        let pair = self.pairs.entry((from, to)).or_default();
        pair.packets.push_back(fingerprint(packet));
        pair.spent += spent;
        pair.granted += granted;
        if packet.header.kind() == PacketKind::Credit {
            pair.credit_packets += 1;
            if pair.credit_packets > self.credit_slots {
                let (count, slots) = (pair.credit_packets, self.credit_slots);
                self.violations
                    .push(format!("{count} credit packets from {from} to {to}, which has {slots} slots for them"));
            }
        }
    }

    pub(crate) fn retrieved(&mut self, from: Rank, to: Rank, packet: &Packet) {
        self.counts.1 += 1;
        let pair = self.pairs.entry((from, to)).or_default();
        if pair.packets.pop_front() != Some(fingerprint(packet)) {
            self.violations
                .push(format!("{to} retrieved a packet of {from} that is not the next one written: {packet:?}"));
            return;
        }
        let (spent, granted) = credits_of(packet, self.counts_buffers);
        pair.spent -= spent;
        pair.granted -= granted;
        pair.credit_packets -= u32::from(packet.header.kind() == PacketKind::Credit);
    }

    /// Nothing is under way any more: everything written was retrieved.
    pub(crate) fn check_empty(&mut self) {
        let (written, retrieved) = self.counts;
        if written != retrieved {
            self.violations.push(format!("{written} packets were written and {retrieved} retrieved"));
        }
    }

    /// Credits are conserved between every two processes: those that the sender has + those of packets under way +
    /// those that travel back + those that the receiver owes = those that the receiver has lent.
    pub(crate) fn check_credits(&mut self, holders: &[Holder]) {
        for receiver in holders.iter().filter(|holder| holder.inspection.scheme.lends().has_credits()) {
            for (index, of_sender) in receiver.inspection.peers.iter().enumerate() {
                let Some(&rank) = receiver.ranks.get(index) else { continue };
                let sender = &holders[rank.0 as usize];
                // A sender that has had no contact with the receiver still owns all its initial credits.
                let Some(place) = sender.ranks.iter().position(|&met| met == receiver.rank) else { continue };
                let held = sender.inspection.peers[place].credits;
                let spent = self.pairs.get(&(rank, receiver.rank)).map_or(0, |pair| pair.spent);
                let granted = self.pairs.get(&(receiver.rank, rank)).map_or(0, |pair| pair.granted);
                let (due, lent) = (of_sender.credits_due, of_sender.current_credits);
                if held + spent + granted + due != lent {
                    self.violations.push(format!(
                        "credits of {rank} at {}: held {held} + under way {spent} + travelling {granted} + due {due} \
                         is not lent {lent}",
                        receiver.rank
                    ));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_flow::{Config, FlowControl};

    const A: Rank = Rank(0);
    const B: Rank = Rank(1);

    fn data(message: u8) -> Packet {
        Packet::new(PacketKind::Data, 10, message)
    }

    /// Two processes of which each is the other's only peer.
    fn holders(flows: &[FlowControl; 2]) -> [Holder; 2] {
        [(A, B, &flows[0]), (B, A, &flows[1])].map(|(rank, peer, flow)| Holder {
            rank,
            ranks: vec![peer],
            inspection: flow.inspect(),
        })
    }

    fn flows() -> [FlowControl; 2] {
        let scheme = tidegate_flow::SchemeName::Static;
        let config = Config::new(scheme, 1, 8, 2);
        [(); 2].map(|()| FlowControl::new(&config).expect("a legal configuration"))
    }

    #[test]
    fn packets_in_order_are_in_order() {
        let mut ledger = Ledger::new(2);
        [1, 2].into_iter().for_each(|message| ledger.written(A, B, &data(message)));
        [1, 2].into_iter().for_each(|message| ledger.retrieved(A, B, &data(message)));
        ledger.check_empty();
        assert_eq!(ledger.violations(), [""; 0]);
    }

    #[test]
    fn packets_that_change_places_or_contents_or_are_lost_or_doubled_are_found() {
        let retrieved = |messages: &[u8]| {
            let mut ledger = Ledger::new(2);
            [1, 2].into_iter().for_each(|message| ledger.written(A, B, &data(message)));
            messages.iter().for_each(|&message| ledger.retrieved(A, B, &data(message)));
            ledger.check_empty();
            ledger.violations().len()
        };
        assert_eq!(retrieved(&[1, 2]), 0);
        for wrong in [&[2, 1][..], &[1, 3], &[1], &[1, 1], &[1, 2, 2]] {
            assert!(retrieved(wrong) > 0, "{wrong:?}");
        }
    }

    #[test]
    fn more_credit_packets_than_slots_are_found() {
        let mut ledger = Ledger::new(2);
        let credit = Packet::with_credits(PacketKind::Credit, 1);
        (0..2).for_each(|_| ledger.written(A, B, &credit));
        assert!(ledger.violations().is_empty());
        ledger.written(A, B, &credit);
        assert_eq!(ledger.violations(), ["3 credit packets from rank 0 to rank 1, which has 2 slots for them"]);
    }

    #[test]
    fn credits_that_vanish_are_found_and_those_under_way_are_not_missed() {
        let mut flows = flows();
        let mut ledger = Ledger::new(2);
        ledger.check_credits(&holders(&flows));
        let mut credits = flows[0].request(PeerId(0), 1, tidegate_flow::Instant::default()).into_credits();
        credits.spend();
        flows[0].give_back(PeerId(0), credits);
        ledger.written(A, B, &data(0));
        ledger.check_credits(&holders(&flows));
        assert_eq!(ledger.violations(), [""; 0]);
        // The packet is gone, and the receiver has never seen it.
        ledger.retrieved(A, B, &data(0));
        ledger.check_credits(&holders(&flows));
        assert_eq!(
            ledger.violations(),
            ["credits of rank 0 at rank 1: held 5 + under way 0 + travelling 0 + due 0 is not lent 6"]
        );
    }
}
