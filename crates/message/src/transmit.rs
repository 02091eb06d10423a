//! The way out: messages are cut into packets (P §3), each data packet costs a credit, and what cannot leave waits in its
//! peer's queue, in order.

use crate::collections::slab::Key;
use crate::completion::{Completion, Failure, Notice};
use crate::counter::Counter;
use crate::endpoint::Endpoint;
use crate::link::{Buffer, Link, WriteError};
use crate::operation::{Send, Target};
use crate::wire::{Atomic, Eager, LARGEST_EAGER_BYTES, Message, Note, Read, Write};
use tidegate_flow::{Answer, Config, Control, Credits, Header, PAYLOAD_BYTES, Packet, PacketKind, PeerId};

/// Where the body of a message that leaves comes from.
#[derive(Debug)]
pub(crate) enum Body<B> {
    None,
    /// Bytes of our own.
    Owned(Box<[u8]>),
    /// The application's memory.
    Borrowed(B),
}

/// A message on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing<B> {
    pub(crate) head: Message,
    pub(crate) body: Body<B>,
    /// Packets that have left. All but the last are full.
    pub(crate) packets: u32,
    head_bytes: usize,
    pub(crate) total: usize,
    notice: Option<Notice>,
}

impl<B: Buffer> Outgoing<B> {
    /// A message of the application that travels whole.
    #[inline]
    pub(crate) fn eager(send: Send<B>) -> Self {
        let length = send.buffer.len();
        let (queue, tag) = (send.space.queue(), send.space.tag());
        let head = Eager { queue, tag, data: send.data, was_dropped: false };
        let notice = Notice { context: send.context, space: send.space, length, report: send.report };
        let body = if length == 0 { Body::None } else { Body::Borrowed(send.buffer) };
        Outgoing::new(head, body, Some(notice))
    }

    #[inline]
    pub(crate) fn new(head: impl Into<Message>, body: Body<B>, notice: Option<Notice>) -> Self {
        let head = head.into();
        let length = match &body {
            Body::None => 0,
            Body::Owned(bytes) => bytes.len(),
            Body::Borrowed(buffer) => buffer.len(),
        };
        debug_assert!(length <= LARGEST_EAGER_BYTES, "a message's body is bounded by the eager size");
        let head_bytes = head.bytes();
        Outgoing { head, body, packets: 0, head_bytes, total: head_bytes + length, notice }
    }

    /// Bytes of the body.
    #[inline]
    pub(crate) fn body_bytes(&self) -> usize {
        self.total - self.head_bytes
    }

    #[inline]
    fn packets_left(&self) -> u32 {
        self.total.div_ceil(PAYLOAD_BYTES) as u32 - self.packets
    }

    /// Makes `packet` the message's `index`-th. It is filled in place: a copy of a packet on its way waits for stores that the
    /// processor cannot forward.
    #[inline]
    fn fill(&self, index: u32, packet: &mut Packet) {
        let position = index as usize * PAYLOAD_BYTES;
        let payload = &mut packet.payload;
        let (filled, kind) = match index {
            0 => (self.head.emit(self.body_bytes() as u32, payload), self.head.kind() as u8),
            _ => (0, 0),
        };
        let end = (self.total - position).min(PAYLOAD_BYTES);
        let offset = position.max(self.head_bytes) - self.head_bytes;
        match &self.body {
            Body::None => {}
            Body::Owned(bytes) => payload[filled..end].copy_from_slice(&bytes[offset..offset + end - filled]),
            Body::Borrowed(buffer) => buffer.read(offset, &mut payload[filled..end]),
        }
        packet.header = Header::new(PacketKind::Data, end, kind);
    }

    /// Copies what has not left out of the application's memory.
    pub(crate) fn own(&mut self) {
        if let Body::Borrowed(buffer) = &self.body {
            self.body = Body::Owned(copy_of(buffer));
        }
    }

    /// Whether it is a send of the application that would be eager, and that the receiver has not heard of.
    fn may_be_announced(&self) -> bool {
        matches!(self.head, Message::Eager(Eager { was_dropped: false, .. }))
    }

    /// The remote operation of ours that this is a part of.
    pub(crate) fn operation(&self) -> Option<Key> {
        match self.head {
            Message::Write(Write { operation, .. })
            | Message::Read(Read { operation, .. })
            | Message::Atomic(Atomic { operation, .. }) => Some(Key(operation)),
            _ => None,
        }
    }

    pub(crate) fn into_notice(self) -> Option<Notice> {
        self.notice
    }
}

/// How far a message got.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// All of it has left.
    Sent,
    /// It waits for credits.
    NoCredits,
    /// The same; nothing of it has left, and it had better be announced, if it is a short message.
    Announce,
    /// The mailbox is full.
    Full,
    /// The peer cannot be reached.
    Lost(String),
}

impl<L: Link> Endpoint<L> {
    /// Sends a message now, or as soon as everything before it has left. `inject`: the body is copied if it has to wait.
    #[inline]
    pub(crate) fn dispatch(&mut self, to: PeerId, mut message: Outgoing<L::Buffer>, inject: bool) {
        let peer = &self.peers[to.0 as usize];
        if let Some(lost) = &peer.lost {
            let name = lost.name.clone();
            return self.fail_notice(message.into_notice(), &name);
        }
        let step = if peer.backlog.is_empty() { self.transmit(to, &mut message) } else { Step::NoCredits };
        match step {
            Step::Sent => self.report_sent(message.into_notice()),
            Step::Lost(name) => {
                self.fail_notice(message.into_notice(), &name);
                self.handle_unreachable(to, &name);
            }
            Step::Announce => self.announce_instead(to, message, inject),
            Step::NoCredits | Step::Full => self.wait_in_queue(to, message, inject, step == Step::Full),
        }
    }

    /// Sends a message of our own that is a head and nothing else.
    pub(crate) fn tell(&mut self, to: PeerId, head: impl Into<Message>) {
        self.dispatch(to, Outgoing::new(head, Body::None, None), false);
    }

    /// Announces a short message whose first packet has no credit, as flow control asks; whatever else it is waits.
    #[cold]
    fn announce_instead(&mut self, to: PeerId, message: Outgoing<L::Buffer>, inject: bool) {
        let may_be_announced = message.may_be_announced();
        let has_room = |spans, eager| self.peers[to.0 as usize].room + eager >= Self::announce_cost(spans);
        match message {
            Outgoing { head: Message::Eager(head), body: Body::Borrowed(buffer), notice: Some(notice), .. }
                if may_be_announced && has_room(buffer.spans().count(), Self::eager_cost(buffer.len())) =>
            {
                self.link.counters().sub(Counter::MessagesEager, 1);
                let Notice { context, space, report, .. } = notice;
                let (target, data) = (Target::Peer(to), head.data);
                let send = Send { to: target, space, buffer, data, context, inject, delivery: false, report };
                self.announce_in_room(to, send);
            }
            message => self.wait_in_queue(to, message, inject, false),
        }
    }

    /// Queues a message that cannot leave.
    #[cold]
    fn wait_in_queue(&mut self, to: PeerId, mut message: Outgoing<L::Buffer>, inject: bool, full: bool) {
        if inject {
            message.own();
        }
        let peer = &mut self.peers[to.0 as usize];
        if !std::mem::replace(&mut peer.is_waiting, true) {
            self.timing.begin_waiting();
        }
        self.waiting.add(&message);
        peer.backlog.push(message);
        if full {
            self.note_full(to);
        }
        self.count(Counter::SendsDelayed, 1);
    }

    /// Remembers to try `to` again with every progress call: no credit packet will tell when its mailbox has room.
    pub(crate) fn note_full(&mut self, to: PeerId) {
        self.count(Counter::MailboxFull, 1);
        let peer = &mut self.peers[to.0 as usize];
        if !std::mem::replace(&mut peer.full, true) {
            self.full.push(to);
        }
    }

    /// Writes as many packets of a message as flow control allows: who is granted fewer than it wants asks again, until it is told to wait.
    #[inline]
    fn transmit(&mut self, to: PeerId, message: &mut Outgoing<L::Buffer>) -> Step {
        loop {
            match self.flow.request(to, message.packets_left(), self.timing.now()) {
                Answer::Packets(credits) => {
                    if let Some(step) = self.write_packets(to, message, credits) {
                        return step;
                    }
                }
                Answer::Wait => return Step::NoCredits,
                Answer::Announce => return if message.packets == 0 { Step::Announce } else { Step::NoCredits },
            }
        }
    }

    /// Writes as many packets as there are credits. `None`: they have left, and others have not.
    #[inline]
    fn write_packets(&mut self, to: PeerId, message: &mut Outgoing<L::Buffer>, mut credits: Credits) -> Option<Step> {
        let (flow, mut index, mut riding) = (&mut self.flow, message.packets, 0);
        let (written, outcome) = self.link.write_many(to, credits.count(), |packet| {
            message.fill(index, packet);
            index += 1;
            flow.piggyback(to, packet);
            riding += u64::from(packet.piggyback().unwrap_or(0));
        });
        (0..written).for_each(|_| credits.spend());
        match outcome {
            Err(WriteError::Refused) => self.flow.handle_refused(to, credits, self.timing.now()),
            _ => self.flow.give_back(to, credits),
        }
        message.packets += written;
        self.count(Counter::PacketsSent, u64::from(written));
        if riding > 0 {
            self.count(Counter::CreditsPiggybacked, riding);
        }
        self.flush_control();
        Some(match outcome {
            Err(WriteError::Full) => Step::Full,
            // A scheme without a sense of time does not say when to try again.
            Err(WriteError::Refused) => {
                if self.flow.is_timed() {
                    Step::NoCredits
                } else {
                    Step::Full
                }
            }
            Err(WriteError::Unreachable(name)) => Step::Lost(name),
            Ok(()) if message.packets_left() > 0 => return None,
            Ok(()) => Step::Sent,
        })
    }

    /// Sends what waits for `to`, as far as it goes.
    pub(crate) fn resume(&mut self, to: PeerId) {
        while let Some(mut message) = self.peers[to.0 as usize].backlog.pop() {
            self.waiting.remove(&message);
            let step = self.transmit(to, &mut message);
            match step {
                Step::Sent => {
                    self.note_left(to, &message.head);
                    self.report_sent(message.into_notice());
                }
                Step::NoCredits | Step::Announce | Step::Full => {
                    self.waiting.add(&message);
                    self.peers[to.0 as usize].backlog.put_back(message);
                    if step == Step::Full {
                        self.note_full(to);
                    }
                    return;
                }
                Step::Lost(name) => {
                    self.fail_notice(message.into_notice(), &name);
                    return self.handle_unreachable(to, &name);
                }
            }
        }
        self.end_waiting(to);
    }

    /// Something that waited has left.
    fn note_left(&mut self, to: PeerId, head: &Message) {
        match head {
            Message::Note(Note::ClearToSend(clear)) => self.note_pull_left(Key(clear.pull)),
            // More may have become free meanwhile.
            Message::Note(Note::Room(_)) => self.review(to),
            _ => {}
        }
    }

    /// Nothing waits for `to` any more.
    pub(crate) fn end_waiting(&mut self, to: PeerId) {
        if std::mem::take(&mut self.peers[to.0 as usize].is_waiting) {
            self.timing.end_waiting();
        }
    }

    /// Tries the peers again whose mailbox was full.
    pub(crate) fn retry_full(&mut self) {
        for _ in 0..self.held_control.len() {
            // Writing may have shown that a peer is gone, and what it was owed with it.
            let Some(control) = self.held_control.pop_front() else { break };
            self.peers[control.to.0 as usize].held_control -= 1;
            self.write_control(control);
        }
        for to in std::mem::take(&mut self.full) {
            self.peers[to.0 as usize].full = false;
            if self.peers[to.0 as usize].is_stranger {
                self.meet_again(to);
            }
            self.resume(to);
        }
    }

    /// Writes the control packets that flow control wants sent.
    #[inline]
    pub(crate) fn flush_control(&mut self) {
        while let Some(control) = self.flow.poll_control() {
            self.write_control(control);
        }
    }

    fn write_control(&mut self, control: Control) {
        let counter = match control.packet.header.kind() {
            PacketKind::ReturnRequest => Counter::ReturnRequests,
            PacketKind::ReturnResponse => Counter::ReturnResponses,
            PacketKind::Credit | PacketKind::Data => Counter::CreditPackets,
        };
        match self.link.write(control.to, &control.packet) {
            Ok(()) => {
                self.count(counter, 1);
                self.count(Counter::PacketsSent, 1);
            }
            Err(WriteError::Full | WriteError::Refused) => {
                self.count(Counter::MailboxFull, 1);
                self.hold_control(control);
            }
            // The peer's departure, which the link reports, ends everything between us: nothing is owed.
            Err(WriteError::Unreachable(_)) => {}
        }
    }

    /// Keeps a control packet that a full mailbox has refused. Who is owed more than may be has not waited for credits.
    #[cold]
    fn hold_control(&mut self, control: Control) {
        let to = control.to;
        self.held_control.push_back(control);
        let owed = &mut self.peers[to.0 as usize].held_control;
        *owed += 1;
        if *owed > held_control_most(&self.config.flow) {
            self.quarantine(to, "it sends without waiting for credits while its own mailbox is full");
        }
    }

    #[inline]
    fn report_sent(&mut self, notice: Option<Notice>) {
        if let Some(notice) = notice
            && notice.report
        {
            self.completions.push_back(Completion::sent(notice, Ok(())));
        }
    }

    pub(crate) fn fail_notice(&mut self, notice: Option<Notice>, peer: &str) {
        self.lose_notice(notice, Failure::PeerLost { peer: peer.to_owned() });
    }
}

/// The most control packets that wait for a peer whose mailbox is full. Who waits for credits is not owed more of them than its credit
/// slots hold, a return request and a response.
pub(crate) fn held_control_most(config: &Config) -> u32 {
    config.credit_slots + 2
}

/// All bytes of a buffer.
pub(crate) fn copy_of<B: Buffer>(buffer: &B) -> Box<[u8]> {
    let mut bytes = vec![0; buffer.len()].into_boxed_slice();
    buffer.read(0, &mut bytes);
    bytes
}
