//! What the nodes' network interfaces do: they pass packets and bulk data on, from processes into the network and from
//! the network to processes.

use super::{Event, Simulation};
use crate::Time;
use crate::buffer::Part;
use crate::bulk::BulkPacket;
use crate::config::{BlockedSender, FlowChoice};
use crate::cost::time_of;
use crate::flight::{Flight, Label, Rank};
use crate::link::{Transfer, TransferRequest};
use crate::node::Direction;
use tidegate_message::RemoteMemory;

impl Simulation {
    #[inline]
    pub(super) fn wake_node(&mut self, now: Time, index: usize, at: Time) {
        let node = &mut self.nodes[index];
        let at = at.max(now);
        if at < node.wake_at {
            node.wake_at = at;
            self.queue.schedule(at, Event::Serve(index as u32));
        }
    }

    /// Lets a node's interface pass on what it can now, and wakes it when it can pass on more.
    #[inline]
    pub(super) fn serve(&mut self, now: Time, index: usize) {
        loop {
            let worked = match self.nodes[index].first_direction() {
                Direction::In => self.pass_in(now, index) || self.pass_out(now, index),
                Direction::Out => self.pass_out(now, index) || self.pass_in(now, index),
            };
            if !worked {
                break;
            }
        }
        let node = &self.nodes[index];
        let arrived = node.full.is_none() && self.network.arrived(node.id) > 0;
        let next = node.next_work(arrived);
        if next < Time::NEVER {
            self.wake_node(now, index, next);
        }
    }

    /// Moves one packet from a process into the network. Returns whether there was one that could move.
    #[inline]
    fn pass_out(&mut self, now: Time, index: usize) -> bool {
        self.nodes[index].can_pass_out(now) && self.inject_next(now, index)
    }

    /// Moves the packet whose turn it is into the network. Returns whether the network takes it.
    #[inline(never)]
    fn inject_next(&mut self, now: Time, index: usize) -> bool {
        let node = &self.nodes[index];
        let Some((place, source)) = node.next_source(now) else { return false };
        let (is_bulk, is_adapter) = (source == node.bulk_source(), source == node.adapter_source());
        let id = node.id;
        let next = match source {
            _ if is_bulk => self.bulk.next(id),
            _ if is_adapter => self.adapters[index].next(id),
            _ => node.next_flight(source),
        };
        let Some(mut flight) = next else {
            self.nodes[index].pass_turn(place, Time::NEVER);
            return true;
        };
        let is_kept = self.posts_buffers() && !is_bulk && !is_adapter;
        if is_kept {
            let number = self.is_pool_of_slots().then(|| self.adapters[index].number_of_next(&flight)).flatten();
            let Some((number, wants_answer)) = number else {
                self.hand_to_adapter(now, index, (place, source), &flight);
                return true;
            };
            // One packet is with the interface, the others of its train behind it.
            let behind = self.nodes[index].train(source).map_or(0, |train| train.packets.saturating_sub(1));
            flight.label = Label::slot(number, behind, wants_answer);
        }
        let queue = &mut self.queue;
        if self.network.inject(now, &flight, &mut |at, event| queue.schedule(at, Event::Network(event))).is_err() {
            self.nodes[index].refused = true;
            self.rouse_blocked(now, index);
            return false;
        }
        let busy = self.config.cost.injection + self.host_time(flight.bulk_bytes);
        let node = &mut self.nodes[index];
        node.occupy(Direction::Out, now + busy);
        if is_bulk {
            self.bulk.sent(id);
            node.pass_turn(place, if self.bulk.has_work(id) { now } else { Time::NEVER });
        } else if is_adapter {
            self.adapters[index].note_sent();
            node.pass_turn(place, if self.adapters[index].has_work() { now } else { Time::NEVER });
        } else {
            if is_kept {
                self.adapters[index].keep(&flight, true);
            }
            let next = match self.nodes[index].take_packet(source) {
                Some(ready) => ready,
                None => self.next_train(now, index, source),
            };
            self.nodes[index].pass_turn(place, next);
        }
        true
    }

    /// If a process has written packets, its node's interface is to know of them. Returns when the first is ready that
    /// has not left.
    #[inline]
    pub(super) fn offer(&mut self, rank: usize, index: usize) -> Time {
        let node = &self.nodes[index];
        let source = rank - node.first as usize;
        if node.is_waiting(source) {
            return node.ready(source);
        }
        let Some(train) = self.processes[rank].endpoint.link_mut().outbox.pop_front() else { return Time::NEVER };
        let to = self.home(train.to);
        let node = &mut self.nodes[index];
        node.keep_train(source, train, to);
        node.add_source(source, train.ready);
        train.ready
    }

    /// The interface has taken the last packet of a process's train: it takes up the next train. If there is none, the
    /// process goes on. Returns when the next packet is ready.
    pub(super) fn next_train(&mut self, now: Time, index: usize, source: usize) -> Time {
        let rank = self.nodes[index].first as usize + source;
        let link = self.processes[rank].endpoint.link_mut();
        if let Some(train) = link.outbox.pop_front() {
            let to = self.home(train.to);
            self.nodes[index].keep_train(source, train, to);
            return train.ready;
        }
        link.clock = link.clock.max(now);
        self.schedules[rank].draining = false;
        self.schedule_run(rank);
        Time::NEVER
    }

    /// The receiver of the first packet of a process that has not left, and how many such packets there are.
    pub(super) fn outbound(&self, rank: usize) -> Option<(Rank, usize)> {
        let node = &self.nodes[self.home(Rank(rank as u32)).0 as usize];
        let at_hand = node.train(rank - node.first as usize);
        let outbox = &self.processes[rank].endpoint.link().outbox;
        let first = at_hand.or(outbox.front())?;
        Some((first.to, outbox.packets() + at_hand.map_or(0, |train| train.packets as usize)))
    }

    /// The network refuses packets of a node. Its processes that wait to write may look at their mailboxes meanwhile.
    #[cold]
    fn rouse_blocked(&mut self, now: Time, index: usize) {
        if self.config.blocked_sender == BlockedSender::Blocks {
            return;
        }
        let node = &self.nodes[index];
        let first = node.first as usize;
        for rank in first..first + node.bulk_source() {
            if self.schedules[rank].draining && self.processes[rank].endpoint.link().mailbox.len() > 0 {
                self.rouse(now, rank);
            }
        }
    }

    /// How long bulk data takes to cross a node's host interface.
    #[inline]
    fn host_time(&self, bulk_bytes: u32) -> Time {
        if bulk_bytes == 0 { Time::ZERO } else { time_of(self.config.cost.host_bandwidth, bulk_bytes.into()) }
    }

    /// Moves one packet out of the network into a mailbox. Returns whether there was one that could move.
    #[inline]
    fn pass_in(&mut self, now: Time, index: usize) -> bool {
        let node = &self.nodes[index];
        node.can_pass_in(now) && self.network.arrived(node.id) > 0 && self.extract_next(now, index)
    }

    /// Moves the packet that has waited longest out of the network. Returns whether there was room for it.
    #[inline(never)]
    fn extract_next(&mut self, now: Time, index: usize) -> bool {
        let id = self.nodes[index].id;
        let Some(flight) = self.network.arrival(id) else { return false };
        let bulk = BulkPacket::of(flight.parcel);
        let destination = flight.destination;
        if bulk.is_none() && !self.posts_buffers() && !self.has_room(destination.0 as usize) {
            self.nodes[index].full = Some(destination);
            self.note_full(destination);
            return false;
        }
        let queue = &mut self.queue;
        let Some(flight) =
            self.network.take_arrival(now, id, &mut |at, event| queue.schedule(at, Event::Network(event)))
        else {
            return false;
        };
        let busy = self.config.cost.extraction + self.host_time(flight.bulk_bytes);
        self.nodes[index].occupy(Direction::In, now + busy);
        match bulk {
            Some(packet) => {
                self.vain_retries = 0;
                self.receive_bulk(now, index, packet, &flight);
            }
            None if self.posts_buffers() => self.receive_by_adapter(now, index, &flight),
            None => {
                let rank = destination.0 as usize;
                self.processes[rank].endpoint.link_mut().mailbox.push(flight.source, flight.parcel);
                self.rouse(now, rank);
            }
        }
        true
    }

    #[inline]
    pub(super) fn has_room(&self, index: usize) -> bool {
        self.processes[index].endpoint.link().mailbox.len() < self.mailbox_slots
    }

    /// A packet has found a mailbox full. Under credits that must never happen, so it is a violation.
    #[cold]
    pub(super) fn note_full(&mut self, rank: Rank) {
        let has_credits =
            matches!(self.config.flow, FlowChoice::Mailbox { scheme, .. } if scheme.lends().has_credits());
        if let (Some(ledger), true) = (&self.ledger, has_credits) {
            ledger.borrow_mut().report(format!("the mailbox of {rank} overflows: {} slots", self.mailbox_slots));
        }
        self.processes[rank.0 as usize].endpoint.link().note_refused();
    }

    /// A process wants bulk data of others.
    pub(super) fn start_bulk(&mut self, rank: Rank) {
        let home = self.home(rank);
        let link = self.processes[rank.0 as usize].endpoint.link_mut();
        let ready = link.clock;
        for request in std::mem::take(&mut link.requests) {
            let owner = self.home(request.peer);
            self.bulk.start(rank, home, owner, request);
        }
        let node = &mut self.nodes[home.0 as usize];
        node.add_source(node.bulk_source(), ready);
    }

    /// A packet of bulk traffic has come.
    pub(super) fn receive_bulk(&mut self, now: Time, index: usize, packet: BulkPacket, flight: &Flight) {
        match packet {
            BulkPacket::Request(id) => {
                self.bulk.answer(id, flight);
                let node = &mut self.nodes[index];
                node.add_source(node.bulk_source(), now);
            }
            BulkPacket::Frame(id) => {
                let Some(read) = self.bulk.receive_frame(id) else { return };
                match read.request.transfer {
                    Transfer::Read => self.place_read(&read.request),
                    Transfer::Write => self.place_written(read.owner, &read.request),
                }
                let owner = read.owner.0 as usize;
                self.processes[owner].endpoint.link_mut().end_transfer(read.request.id);
                self.rouse(now, owner);
            }
        }
    }

    /// All of a peer's memory has come that a process wanted to read.
    fn place_read(&mut self, request: &TransferRequest) {
        let mut offset = request.offset as u64;
        for RemoteMemory { span, .. } in &request.remote {
            let part = Part { offset: span.address, length: span.length };
            if let Some(bytes) = self.processes[request.peer.0 as usize].task.memory().read(part) {
                let into = request.local.part().slice(offset, span.length);
                request.local.memory().write(into, &bytes);
            }
            offset += span.length;
        }
    }

    /// All has come that a process wanted to write into memory which its peer has admitted.
    fn place_written(&mut self, writer: Rank, request: &TransferRequest) {
        for RemoteMemory { key, span } in &request.remote {
            let peer = &mut self.processes[request.peer.0 as usize];
            let Some(admitted) = peer.endpoint.link_mut().take_admitted(writer, *key) else { continue };
            let from = request.local.part().slice(request.offset as u64, span.length);
            if let Some(bytes) = request.local.memory().read(from) {
                admitted.memory().write(admitted.part().slice(span.address, span.length), &bytes);
            }
        }
    }

    /// Messages of a process to others of its node leave.
    pub(super) fn send_locally(&mut self, index: usize) {
        for message in std::mem::take(&mut self.processes[index].local_out) {
            let arrives = message.arrives;
            let place = match self.local_free.pop() {
                Some(place) => {
                    self.local[place as usize] = Some(message);
                    place
                }
                None => {
                    self.local.push(Some(message));
                    (self.local.len() - 1) as u32
                }
            };
            self.queue.schedule(arrives, Event::Local(place));
        }
    }

    /// A message on the local path has come.
    pub(super) fn deliver_locally(&mut self, now: Time, place: u32) {
        let Some(message) = self.local[place as usize].take() else { return };
        self.local_free.push(place);
        let to = message.to.0 as usize;
        self.processes[to].accept_local(message);
        self.rouse(now, to);
    }
}
