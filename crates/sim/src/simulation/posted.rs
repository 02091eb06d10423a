//! Posted buffers: how packets go by way of the nodes' adapters, under schemes whose receivers post buffers.

use tidegate_flow::{Arrived, SlotPool};

use super::{Event, Schedule, Simulation};
use crate::Time;
use crate::adapter::Way;
use crate::checker::{Holder, Ledger};
use crate::config::FlowChoice;
use crate::flight::{Flight, Label, Labelled, Rank};
use crate::outcome::PostedBuffers;
use crate::process::Process;

/// Retries of each connection that waits: at the shortest timer 10 ms, in which any packet under way would have come.
const VAIN_RETRIES: usize = 1000;

impl Simulation {
    /// Whether receivers post buffers, and the nodes' interfaces are adapters.
    #[inline]
    pub(super) fn posts_buffers(&self) -> bool {
        matches!(self.config.flow, FlowChoice::Posted { .. })
    }

    /// A packet that a process has written goes into its connection's queue. That takes the interface no time: it is
    /// when the packet leaves that it is busy. `turn`: the place among the sources that wait, and the source.
    pub(super) fn hand_to_adapter(&mut self, now: Time, index: usize, turn: (usize, usize), flight: &Flight) {
        let (place, source) = turn;
        let next = match self.nodes[index].take_packet(source) {
            Some(ready) => ready,
            None => self.next_train(now, index, source),
        };
        self.nodes[index].pass_turn(place, next);
        if self.is_pool_of_slots() {
            self.adapters[index].keep(flight, false);
        } else {
            self.adapters[index].take(flight.source, flight.destination, flight.to, flight.parcel);
        }
        self.offer_adapter(now, index);
    }

    /// The adapter of a node may have something to send.
    fn offer_adapter(&mut self, now: Time, index: usize) {
        if self.adapters[index].has_work() {
            let node = &mut self.nodes[index];
            node.add_source(node.adapter_source(), now);
        }
    }

    /// A packet has come that is not bulk data.
    pub(super) fn receive_by_adapter(&mut self, now: Time, index: usize, flight: &Flight) {
        match flight.label.read() {
            Labelled::Plain => {}
            answer @ (Labelled::Acknowledgement { .. } | Labelled::Invitation { .. }) => {
                self.handle_answer(now, index, flight, answer);
            }
            Labelled::Slot { number, behind, wants_answer } => {
                let wants_answer = wants_answer || flight.parcel.header.is_last_in_buffer();
                self.take_slot(now, index, flight, (number, behind, wants_answer));
            }
            Labelled::Refusal { number } => self.handle_refusal(now, index, flight, number),
            Labelled::Message { number, is_first } => {
                let arrived = is_first.then(|| self.take_buffer(now, flight, number)).flatten();
                if arrived == Some(Arrived::Refused) {
                    self.adapters[index].refuse(flight, number);
                    self.offer_adapter(now, index);
                }
                if self.adapters[index].sort(flight, arrived) == Arrived::Accepted {
                    if flight.parcel.header.is_last_in_buffer() {
                        self.acknowledge(now, flight, number);
                    }
                    self.deliver(now, flight);
                }
            }
        }
    }

    /// The first packet of a message takes a posted buffer of its receiver, if there is one. `None`: the receiver's
    /// table of peers is full, and the run ends.
    fn take_buffer(&mut self, now: Time, flight: &Flight, number: u32) -> Option<Arrived> {
        let process = &mut self.processes[flight.destination.0 as usize];
        let link = process.endpoint.link_mut();
        let peer = link.admit_peer(flight.source)?;
        let queues = link.posted.as_mut()?.at(now);
        let arrived = queues.handle_arrival(peer, number);
        // An interrupt, which does not wait for the program; what it costs is not known (A).
        if queues.poll_limit_reached() {
            process.endpoint.handle_limit_reached();
        }
        Some(arrived)
    }

    /// A packet for a pool of slots takes one, if there is one.
    fn take_slot(
        &mut self,
        now: Time,
        index: usize,
        flight: &Flight,
        (number, behind, wants_answer): (u16, u32, bool),
    ) {
        let rank = flight.destination;
        let link = self.processes[rank.0 as usize].endpoint.link_mut();
        let Some(peer) = link.admit_peer(flight.source) else { return };
        let Some(slots) = link.posted.as_mut().and_then(|posted| posted.at(now).slots_mut()) else { return };
        let arrived = slots.handle_arrival(peer, number, behind);
        let is_told = match arrived {
            Arrived::Accepted => {
                self.deliver(now, flight);
                if wants_answer {
                    self.adapters[index].acknowledge(flight, number.wrapping_add(1));
                }
                wants_answer
            }
            Arrived::Refused => {
                self.adapters[index].refuse(flight, number.into());
                true
            }
            Arrived::Dropped => false,
        };
        if is_told {
            self.offer_adapter(now, index);
        }
        // Slots that have come free by now may be for others.
        self.invite(now, rank);
    }

    /// The receiver's adapter has said something of packets for its pool of slots.
    fn handle_answer(&mut self, now: Time, index: usize, flight: &Flight, answer: Labelled) {
        let pair = (flight.destination, flight.source);
        let link = self.processes[pair.0.0 as usize].endpoint.link_mut();
        if let Labelled::Refusal { .. } = answer {
            link.note_refusal(pair.1);
        }
        if !matches!(answer, Labelled::Acknowledgement { .. }) {
            link.see_to_answer(now);
        }
        if self.adapters[index].handle_answer(pair, answer) {
            self.offer_adapter(now, index);
        }
    }

    /// Whether buffers are the slots of a pool.
    #[inline]
    pub(super) fn is_pool_of_slots(&self) -> bool {
        matches!(self.config.flow, FlowChoice::Posted { scheme, .. } if scheme.lends().is_pool_of_slots())
    }

    /// Invites the senders for which a process's pool has slots at this moment, and schedules when it will have some
    /// for the next, as far as the process has run ahead.
    pub(super) fn invite(&mut self, now: Time, rank: Rank) {
        let home = self.home(rank);
        loop {
            let link = self.processes[rank.0 as usize].endpoint.link_mut();
            let Some(posted) = &mut link.posted else { return };
            let invited = posted.at(now).slots_mut().and_then(SlotPool::poll_invitation);
            let Some((peer, slots)) = invited else { break };
            link.see_to_answer(now);
            let destination = link.rank(peer);
            let way = Way { from: home, to: self.home(destination), source: rank, destination };
            self.adapters[home.0 as usize].say(way, Label::invitation(slots));
            self.offer_adapter(now, home.0 as usize);
            self.wake_node(now, home.0 as usize, now);
        }
        self.schedule_invitation(rank);
    }

    /// A process has retrieved packets: a sender may be invited when that moment has come.
    pub(super) fn schedule_invitation(&mut self, rank: Rank) {
        let Some(posted) = &mut self.processes[rank.0 as usize].endpoint.link_mut().posted else { return };
        if let Some(at) = posted.next_invitation()
            && at < posted.invites_at
        {
            posted.invites_at = at;
            self.queue.schedule(at, Event::Invite(rank.0));
        }
    }

    /// The moment has come at which a sender is invited.
    pub(super) fn handle_invitation(&mut self, now: Time, rank: Rank) {
        if let Some(posted) = &mut self.processes[rank.0 as usize].endpoint.link_mut().posted {
            posted.invites_at = Time::NEVER;
        }
        self.invite(now, rank);
    }

    /// A packet of a message that has a buffer.
    fn deliver(&mut self, now: Time, flight: &Flight) {
        let rank = flight.destination.0 as usize;
        if !self.has_room(rank) {
            self.note_full(flight.destination);
        }
        self.vain_retries = 0;
        self.processes[rank].endpoint.link_mut().mailbox.push(flight.source, flight.parcel);
        self.rouse(now, rank);
    }

    /// The sender's adapter learns that a message was accepted, and, where adapters have credits, how many buffers the
    /// connection has left.
    fn acknowledge(&mut self, now: Time, flight: &Flight, number: u32) {
        let posted = self.adapter_credits().and_then(|_| {
            let link = self.processes[flight.destination.0 as usize].endpoint.link_mut();
            let peer = link.find_peer(flight.source)?;
            Some(link.posted.as_mut()?.at(now).posted(peer))
        });
        let sender = flight.from.0 as usize;
        if self.adapters[sender].handle_accepted((flight.source, flight.destination), number, posted) {
            self.offer_adapter(now, sender);
            self.wake_node(now, sender, now);
        }
    }

    /// With how many credits each adapter's connections begin, if adapters have credits at all.
    pub(super) fn adapter_credits(&self) -> Option<u32> {
        match self.config.flow {
            FlowChoice::Posted { scheme, buffers, .. } if scheme.lends().is_of_connections() => {
                self.config.adapter_credits.then_some(buffers.per_connection)
            }
            _ => None,
        }
    }

    /// A refusal has come back to the sender's node.
    fn handle_refusal(&mut self, now: Time, index: usize, flight: &Flight, number: u32) {
        if self.is_pool_of_slots() {
            return self.handle_answer(now, index, flight, Labelled::Refusal { number });
        }
        let FlowChoice::Posted { buffers, .. } = self.config.flow else { return };
        let (sender, receiver) = (flight.destination, flight.source);
        self.processes[sender.0 as usize].endpoint.link_mut().note_refusal(receiver);
        if self.adapters[index].handle_refused((sender, receiver), number) {
            self.retries.push_back((sender, receiver));
            let timer = Time::from_nanoseconds(buffers.retry_timer.as_nanos() as u64);
            self.queue.schedule(now + timer, Event::Retry);
        }
    }

    /// The timer of the connection has run out that was refused first: it is the same for all.
    ///
    /// Retries alone would keep a run going for ever. It is stuck when all connections that wait have been tried again
    /// very often, no process has run or got anything meanwhile, and none is going to run by itself.
    pub(super) fn retry(&mut self, now: Time) {
        let Some(pair) = self.retries.pop_front() else { return };
        self.vain_retries += 1;
        if self.vain_retries > VAIN_RETRIES * (self.retries.len() + 1) {
            let is_busy = |of: &Schedule| of.runs || of.draining || of.wakes_at < Time::NEVER;
            self.is_stuck = !self.schedules.iter().any(is_busy) && self.local.iter().all(Option::is_none);
        }
        let home = self.home(pair.0).0 as usize;
        self.adapters[home].handle_timeout(pair);
        self.offer_adapter(now, home);
        self.wake_node(now, home, now);
    }

    /// Buffers are conserved: those that are posted and those that are full make what the scheme says there are, and
    /// memory stays within its bound.
    pub(super) fn check_buffers(&self, holders: &[Holder], ledger: &mut Ledger) {
        let FlowChoice::Posted { scheme, buffers, .. } = self.config.flow else { return };
        for (holder, process) in holders.iter().zip(&self.processes) {
            let link = process.endpoint.link();
            let Some(posted) = &link.posted else { continue };
            if let Some(filled) = posted.slots_filled() {
                if filled as usize != link.mailbox.len() {
                    let (rank, packets) = (holder.rank, link.mailbox.len());
                    ledger.report(format!("{rank} has {filled} slots filled and {packets} packets in its mailbox"));
                }
                continue;
            }
            if scheme.lends().is_pool() {
                let (free, full) = posted.pool(holder.ranks.len() as u32);
                // The spare buffer is none of the window's.
                if free > holder.inspection.window + 1 || free + full > buffers.pool_bound() {
                    let (rank, window) = (holder.rank, holder.inspection.window);
                    ledger.report(format!("{rank} has {free} buffers free and {full} full, with a window of {window}"));
                }
                continue;
            }
            for (place, &peer) in holder.ranks.iter().enumerate() {
                let expected =
                    holder.inspection.peers.get(place).map_or(buffers.per_connection, |peer| peer.intended_quota);
                let found = posted.buffers(tidegate_flow::PeerId(place as u32));
                if found != expected {
                    let rank = holder.rank;
                    ledger.report(format!("{rank} has {found} buffers for {peer} instead of {expected}"));
                }
            }
        }
    }

    /// The buffers that a process has posted.
    pub(super) fn posted_by(&self, process: &Process) -> PostedBuffers {
        let FlowChoice::Posted { scheme, .. } = self.config.flow else { return PostedBuffers::default() };
        if scheme.lends().is_pool_of_slots() {
            // It has slots, and no buffers.
            return PostedBuffers::default();
        }
        let peers = self.config.peers.unwrap_or(u32::MAX).min(self.config.size() - 1);
        let posted = process.endpoint.link().posted.as_ref();
        posted.map_or_else(PostedBuffers::default, |posted| posted.count(peers, scheme.lends().is_pool()))
    }

    /// At the end of a run no adapter has a message that was not accepted.
    pub(super) fn check_adapters_empty(&self, ledger: &mut Ledger) {
        let left: usize = self.adapters.iter().map(|adapter| adapter.unaccepted()).sum();
        if left > 0 {
            ledger.report(format!("{left} messages were never accepted"));
        }
    }
}
