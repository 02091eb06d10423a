//! Who rises, who is stolen from, and how much (P §6.4, §6.5.2, figs 12 and 13), on one receiver that is fed packet by
//! packet; and crossings that find nothing to grant.

use tidegate_flow::{Config, FlowControl, Packet, PacketKind, PeerId, SchemeName};

struct Receiver(FlowControl);

impl Receiver {
    fn new(peers: u32, slots_per_peer: u32, credit_slots: u32) -> Self {
        Self::capped(peers, slots_per_peer, credit_slots, None)
    }

    fn capped(peers: u32, slots_per_peer: u32, credit_slots: u32, quota_most: Option<u32>) -> Self {
        let plain = Config::new(SchemeName::Dynamic, peers, slots_per_peer, credit_slots);
        let config = Config { piggyback: true, quota_most, ..plain };
        Receiver(FlowControl::new(&config).unwrap())
    }

    /// Retrieves one packet. Returns the control packets that it causes, as `kind credits to peer`.
    fn retrieve(&mut self, from: u32) -> Vec<String> {
        self.0.handle_retrieved(PeerId(from), &Packet::new(PacketKind::Data, 0, 0)).unwrap();
        let controls = std::iter::from_fn(|| self.0.poll_control());
        let tell = |control: tidegate_flow::Control| {
            format!("{:?} {} to {}", control.packet.header.kind(), control.packet.credits(), control.to.0)
        };
        controls.map(tell).collect()
    }

    /// Retrieves packets up to and with the sender's next monitoring point. Returns who got a return request.
    fn monitor(&mut self, from: u32) -> Vec<String> {
        let mut asked = Vec::new();
        loop {
            let before = self.0.inspect().peers[from as usize].crossings;
            asked.extend(self.retrieve(from).into_iter().filter(|control| control.starts_with("ReturnRequest")));
            if self.0.inspect().peers[from as usize].crossings < before {
                return asked;
            }
        }
    }

    /// Lists and intended quotas on one line.
    fn line(&self) -> String {
        let inspection = self.0.inspect();
        let list = |list: &Vec<PeerId>| list.iter().map(|peer| peer.0.to_string()).collect::<Vec<_>>().join(" ");
        let lists: Vec<String> = inspection.activity_lists.iter().map(list).collect();
        let quotas: Vec<u32> = inspection.peers.iter().map(|peer| peer.intended_quota).collect();
        format!("{} quotas {quotas:?}", lists.join(" | "))
    }
}

#[test]
fn a_sender_rises_and_then_steals_from_whoever_is_quiet_longest() {
    let mut receiver = Receiver::new(4, 12, 2);
    assert_eq!(receiver.line(), " |  | 0 1 2 3 |  quotas [10, 10, 10, 10]");
    receiver.monitor(0);
    assert_eq!(receiver.line(), " | 0 | 1 2 3 |  quotas [10, 10, 10, 10]");
    receiver.monitor(1);
    assert_eq!(receiver.line(), " | 1 0 | 2 3 |  quotas [10, 10, 10, 10]");
    receiver.monitor(0);
    assert_eq!(receiver.line(), "0 | 1 | 2 3 |  quotas [10, 10, 10, 10]");
    // Equal quotas: the least that is stolen is one more than the credit slots.
    receiver.monitor(0);
    assert_eq!(receiver.line(), "0 | 3 1 | 2 |  quotas [13, 10, 10, 7]");
    receiver.monitor(0);
    assert_eq!(receiver.line(), "0 | 2 3 1 |  |  quotas [16, 10, 7, 7]");
    // Nobody is low: the lists shift, and the last of those who were medium is the victim.
    receiver.monitor(0);
    assert_eq!(receiver.line(), "0 | 1 | 2 3 |  quotas [19, 7, 7, 7]");
    // Half the difference of 12, but only down to the static slots: the victim has nothing more to give.
    receiver.monitor(0);
    assert_eq!(receiver.line(), "0 | 1 | 2 | 3 quotas [24, 7, 7, 2]");
}

#[test]
fn those_who_are_expected_share_and_another_steals_its_part() {
    let plain = Config::new(SchemeName::Dynamic, 4, 22, 2);
    let mut receiver = Receiver(FlowControl::new(&Config { expected_peers: Some(2), ..plain }).unwrap());
    assert_eq!(receiver.line(), " |  | 0 1 | 2 3 quotas [20, 20, 2, 2]");
    receiver.monitor(3);
    assert_eq!(receiver.line(), "3 | 1 | 0 | 2 quotas [20, 11, 2, 11]");
    // Its place goes to another: that has what it would have had at first.
    receiver.0.reset(PeerId(3));
    assert_eq!(receiver.line(), " | 1 | 0 | 2 3 quotas [20, 20, 2, 2]");
    receiver.0.reset(PeerId(1));
    assert_eq!(receiver.line(), " |  | 0 1 | 2 3 quotas [20, 20, 2, 2]");
}

#[test]
fn nobody_earns_more_than_the_cap() {
    let mut receiver = Receiver::capped(4, 12, 2, Some(15));
    for _ in 0..3 {
        receiver.monitor(0);
    }
    assert_eq!(receiver.line(), "0 | 3 | 1 2 |  quotas [13, 10, 10, 7]");
    receiver.monitor(0);
    assert_eq!(receiver.line(), "0 | 2 3 | 1 |  quotas [15, 10, 8, 7]", "what is missing to 15");
    let full = receiver.line();
    for _ in 0..10 {
        receiver.monitor(0);
        assert_eq!(receiver.line(), full);
    }
    // A cap below the equal share takes nothing away from anybody.
    assert_eq!(Receiver::capped(4, 12, 2, Some(3)).line(), " |  | 0 1 2 3 |  quotas [10, 10, 10, 10]");
}

/// Steals until `victim` is stolen out. Returns who got a return request by that.
fn steal_out(receiver: &mut Receiver, victim: u32) -> Vec<String> {
    while receiver.0.inspect().peers[victim as usize].intended_quota > 2 {
        let asked = receiver.monitor(0);
        if !asked.is_empty() {
            return asked;
        }
    }
    Vec::new()
}

#[test]
fn a_victim_is_asked_for_credits_only_if_it_has_more_than_its_static_slots() {
    let mut receiver = Receiver::new(2, 12, 2);
    assert_eq!(steal_out(&mut receiver, 1), [""; 0]);
    assert!(!receiver.0.inspect().peers[1].blocked);

    let mut receiver = Receiver::new(2, 12, 2);
    receiver.retrieve(1);
    assert_eq!(steal_out(&mut receiver, 1), ["ReturnRequest 0 to 1"]);
    assert!(receiver.0.inspect().peers[1].blocked);
}

#[test]
fn a_sender_that_comes_back_from_null_goes_straight_to_high_and_steals() {
    let mut receiver = Receiver::new(3, 12, 2);
    steal_out(&mut receiver, 2);
    assert_eq!(receiver.line(), "0 |  |  | 2 1 quotas [26, 2, 2]");
    // The first monitoring point makes the only other active sender age, the second steals half the difference from it.
    receiver.monitor(2);
    assert_eq!(receiver.line(), "2 | 0 |  | 1 quotas [26, 2, 2]");
    receiver.monitor(2);
    assert_eq!(receiver.line(), "2 | 0 |  | 1 quotas [14, 2, 14]");
}

/// C2: the overshoot of the piggyback way outlives the moment in which every free slot is reserved for another sender,
/// and the next packet's crossing in the regular way keeps what is left of it. (Steps found by search: the shortest way
/// to such a moment.)
#[test]
fn an_overshoot_that_nothing_could_be_granted_for_is_kept() {
    let mut receiver = Receiver::new(2, 5, 1);
    let piggyback =
        |receiver: &mut Receiver| receiver.0.before_send(PeerId(0), &mut Packet::new(PacketKind::Data, 0, 0), 0);
    for from in [0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0] {
        receiver.retrieve(from);
    }
    piggyback(&mut receiver);
    receiver.retrieve(0);
    receiver.retrieve(0);
    piggyback(&mut receiver);
    let sender = |receiver: &Receiver| receiver.0.inspect().peers[0].to_string();
    assert_eq!(receiver.0.inspect().available_slots, 0);
    assert_eq!(sender(&receiver), "credits 1 lent 3 thresholds [1, 4] retrieved 1 intended 6");
    assert_eq!(receiver.retrieve(0), ["Credit 1 to 0"]);
    assert_eq!(sender(&receiver), "credits 1 lent 3 thresholds [4, 1] retrieved 1 intended 6 crossings 1");
}
