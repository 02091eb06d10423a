//! [`Controls`]: flow control's own packets on their way out. Those that find no place wait here, for each peer in
//! order, and nothing else for that peer overtakes them: flow control reckons with the order in which credits and
//! requests were sent.

use super::lane::Lanes;
use super::mailboxes::Mailboxes;
use crate::counter::{Counter, Counters};
use crate::heap::block;
use crate::link::{Buffer, WriteError};
use std::collections::VecDeque;
use tidegate_flow::{Config, Control, FlowControl, Header, Packet, PacketKind, PeerId, Placement};

/// The queue of control packets grows by one part in so many.
const GROWTH: usize = 8;
/// And by so many places at least.
const BEGUN: usize = 8;

/// The most control packets that wait for a peer whose mailbox is full. A peer that waits for credits is never owed
/// more than the credit packets that its credit slots hold, one return request and one response.
pub(crate) fn refused_most(config: &Config) -> u32 {
    config.credit_slots + 2
}

/// Monitoring, stealing and blocking come with control packets or shortly before some; what is counted of posted
/// buffers comes with refusals, timers and changes of their number.
pub(super) fn publish_tally(flow: &FlowControl, counters: &Counters) {
    let tally = flow.tally();
    let counts = [
        (Counter::MonitoringPoints, tally.monitoring_points),
        (Counter::Steals, tally.steals),
        (Counter::BlockedPackets, tally.blocked_packets),
        (Counter::Refusals, tally.refusals),
        (Counter::Retries, tally.retries),
        (Counter::LimitEvents, tally.limit_events),
        (Counter::BuffersAdded, tally.buffers_added),
        (Counter::GrowthsDenied, tally.growths_denied),
        (Counter::BuffersWithdrawn, tally.buffers_withdrawn),
    ];
    counts.into_iter().for_each(|(counter, count)| counters.set(counter, count));
}

/// A control packet that waits: the packet has nothing else in it.
#[derive(Debug)]
pub(crate) struct WaitingControl {
    to: PeerId,
    credits: u32,
    header: Header,
}

impl WaitingControl {
    /// Bytes that one takes: its place in a queue that grows by an eighth.
    pub(crate) const BYTES: usize = size_of::<WaitingControl>() + size_of::<WaitingControl>().div_ceil(GROWTH);
    /// Bytes that the queue takes besides.
    pub(crate) const BYTES_BEGUN: usize = block(BEGUN * size_of::<WaitingControl>());

    fn control(&self) -> Control {
        let packet = Packet::with_credits(self.header.kind(), self.credits);
        Control { to: self.to, packet: Packet { header: self.header, ..packet } }
    }
}

impl From<Control> for WaitingControl {
    fn from(Control { to, packet }: Control) -> Self {
        WaitingControl { to, credits: packet.credits(), header: packet.header }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Controls {
    /// Those of each peer in order.
    waiting: VecDeque<WaitingControl>,
    /// The most of them for one peer.
    most: u32,
    /// Peers that are owed more.
    overdrawn: Vec<PeerId>,
    /// Whether flow control makes another packet, with all that is owed by then, in place of one that found no room.
    are_made_anew: bool,
}

impl Controls {
    pub(super) fn new(config: &Config) -> Self {
        Controls {
            waiting: VecDeque::new(),
            most: refused_most(config),
            overdrawn: Vec::new(),
            are_made_anew: config.scheme.lends().posts_buffers(),
        }
    }

    /// How many wait.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// How many wait for a peer.
    pub(super) fn of<B: Buffer>(lanes: &Lanes<B>, peer: PeerId) -> u32 {
        lanes.get(peer).map_or(0, |lane| lane.owed)
    }

    /// Whether some wait for a peer.
    #[inline]
    pub(super) fn has_any_of<B: Buffer>(&self, lanes: &Lanes<B>, peer: PeerId) -> bool {
        !self.waiting.is_empty() && Self::of(lanes, peer) > 0
    }

    /// Writes a control packet, or lets it wait. Returns one for which its receiver had no buffer, or its link no room
    /// under a scheme with buffers: flow control says what becomes of it.
    pub(super) fn send<B: Buffer>(
        &mut self,
        lanes: &mut Lanes<B>,
        mailboxes: &mut impl Mailboxes,
        control: Control,
    ) -> Option<Control> {
        if self.has_any_of(lanes, control.to) {
            self.keep(lanes, control);
            return None;
        }
        match write(mailboxes, &control) {
            Ok(()) => return None,
            Err(WriteError::Refused) => return Some(control),
            Err(WriteError::Full) if self.are_made_anew => return Some(control),
            Err(_) => self.keep(lanes, control),
        }
        None
    }

    /// Keeps a control packet that found no place. Who is owed more than may be has not waited for credits.
    #[cold]
    pub(super) fn keep<B: Buffer>(&mut self, lanes: &mut Lanes<B>, control: Control) {
        let owed = &mut lanes.of(control.to).owed;
        if *owed > self.most {
            // It is about to be quarantined, and gets nothing any more.
            return;
        }
        *owed += 1;
        if *owed > self.most {
            self.overdrawn.push(control.to);
        }
        let (length, room) = (self.waiting.len(), self.waiting.capacity());
        if length == room {
            self.waiting.reserve_exact(BEGUN.max(length / GROWTH));
        }
        self.waiting.push_back(control.into());
    }

    /// Tries again to write the control packets that wait.
    pub(super) fn retry<B: Buffer>(&mut self, lanes: &mut Lanes<B>, mailboxes: &mut impl Mailboxes) {
        for _ in 0..self.waiting.len() {
            let Some(control) = self.waiting.pop_front() else { break };
            let lane = lanes.of(control.to);
            if !lane.is_stuck && write(mailboxes, &control.control()).is_ok() {
                lane.owed -= 1;
                lanes.end_if_idle(control.to);
            } else {
                lane.is_stuck = true;
                self.waiting.push_back(control);
            }
        }
        for control in &self.waiting {
            lanes.of(control.to).is_stuck = false;
        }
    }

    /// Whether there is a peer that sends without waiting for credits while its own mailbox is full.
    pub(super) fn has_overdrawn(&self) -> bool {
        !self.overdrawn.is_empty()
    }

    /// The next such peer: it is to be quarantined.
    #[inline]
    pub(super) fn poll_overdrawn(&mut self) -> Option<PeerId> {
        self.overdrawn.pop()
    }

    /// A peer is gone: it is owed nothing.
    pub(super) fn lose_peer<B: Buffer>(&mut self, lanes: &mut Lanes<B>, peer: PeerId) {
        if let Some(lane) = lanes.get_mut(peer)
            && std::mem::take(&mut lane.owed) > 0
        {
            self.waiting.retain(|control| control.to != peer);
            lanes.end_if_idle(peer);
        }
    }
}

/// Writes a control packet. An error: it needs another try.
fn write(mailboxes: &mut impl Mailboxes, control: &Control) -> Result<(), WriteError> {
    let counter = match control.packet.header.kind() {
        PacketKind::ReturnRequest => Counter::ReturnRequests,
        PacketKind::ReturnResponse => Counter::ReturnResponses,
        PacketKind::Credit | PacketKind::Data => Counter::CreditPackets,
    };
    match mailboxes.write(control.to, 1, |places: &mut [Packet], placement: Placement| {
        places.fill(control.packet.placed(placement))
    }) {
        Ok(_) => {
            mailboxes.counters().add(counter, 1);
            mailboxes.counters().add(Counter::PacketsSent, 1);
            Ok(())
        }
        Err(error @ (WriteError::Full | WriteError::Refused)) => {
            mailboxes.counters().add(Counter::MailboxFull, 1);
            Err(error)
        }
        // The peer's departure, which the link reports, ends everything between us: nothing is owed.
        Err(WriteError::Unreachable(_)) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bytes, Written};
    use tidegate_flow::{Packet, SchemeName};

    const A: PeerId = PeerId(0);
    const B: PeerId = PeerId(1);

    fn credit(to: PeerId, count: u16) -> Control {
        Control { to, packet: Packet::with_credits(PacketKind::Credit, count.into()) }
    }

    #[test]
    fn packets_that_wait_for_a_peer_are_not_overtaken_and_those_of_others_pass() {
        let (mut lanes, mut controls) =
            (Lanes::<Bytes>::new(2), Controls::new(&Config::new(SchemeName::Static, 2, 8, 3)));
        let mut written = Written::default();
        written.refuse = Some(WriteError::Full);
        assert!(controls.send(&mut lanes, &mut written, credit(A, 1)).is_none());
        written.refuse = None;
        assert!(controls.send(&mut lanes, &mut written, credit(A, 2)).is_none());
        assert!(controls.send(&mut lanes, &mut written, credit(B, 3)).is_none());
        assert_eq!((controls.len(), Controls::of(&lanes, A), controls.has_any_of(&lanes, B)), (2, 2, false));
        controls.retry(&mut lanes, &mut written);
        let order: Vec<_> = written.packets.iter().map(|(to, packet)| (*to, packet.credits())).collect();
        assert_eq!(order, [(B, 3), (A, 1), (A, 2)].map(|(to, count)| (to, credit(to, count).packet.credits())));
        assert_eq!((controls.len(), Controls::of(&lanes, A)), (0, 0));
    }

    #[test]
    fn a_packet_that_has_waited_is_the_same() {
        let to = A;
        let request = Control { to, packet: Packet::new(PacketKind::ReturnRequest, 0, 0) };
        let response = Control { to, packet: Packet::with_credits(PacketKind::ReturnResponse, u32::MAX) };
        for control in [request, response, credit(A, 7)] {
            let packet = control.packet;
            let same = WaitingControl::from(control).control();
            assert_eq!((same.to, same.packet.header, same.packet.payload), (to, packet.header, packet.payload));
        }
    }

    #[test]
    fn who_is_owed_more_than_credit_slots_hold_is_found_out_and_gets_no_more() {
        let config = Config::new(SchemeName::Static, 2, 8, 3);
        let (mut lanes, mut controls) = (Lanes::<Bytes>::new(2), Controls::new(&config));
        let mut written = Written::default();
        written.refuse = Some(WriteError::Full);
        (0..20).for_each(|_| assert!(controls.send(&mut lanes, &mut written, credit(A, 1)).is_none()));
        assert_eq!((Controls::of(&lanes, A), controls.poll_overdrawn(), controls.poll_overdrawn()), (6, Some(A), None));
        controls.lose_peer(&mut lanes, A);
        assert_eq!((controls.len(), Controls::of(&lanes, A)), (0, 0));
    }

    /// As many as there are buffers may be due while the link has no room: none is kept, and nobody is taken for one
    /// who ignores credits.
    #[test]
    fn in_posted_buffers_packets_without_room_are_made_anew() {
        let (mut lanes, mut controls) =
            (Lanes::<Bytes>::new(2), Controls::new(&Config::new(SchemeName::Preposted, 2, 8, 3)));
        let mut written = Written::default();
        written.refuse = Some(WriteError::Full);
        for _ in 0..100 {
            assert!(controls.send(&mut lanes, &mut written, credit(A, 5)).is_some());
        }
        assert_eq!((Controls::of(&lanes, A), controls.poll_overdrawn()), (0, None));
    }

    #[test]
    fn a_packet_that_found_no_buffer_comes_back_to_whoever_made_it() {
        let (mut lanes, mut controls) =
            (Lanes::<Bytes>::new(2), Controls::new(&Config::new(SchemeName::Static, 2, 8, 3)));
        let mut written = Written::default();
        written.refuse = Some(WriteError::Refused);
        let refused = controls.send(&mut lanes, &mut written, credit(A, 5));
        assert_eq!(refused.map(|control| control.packet.credits()), Some(5));
        assert_eq!((controls.len(), Controls::of(&lanes, A)), (0, 0));
    }
}
