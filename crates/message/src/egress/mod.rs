//! The way out: each data packet costs a credit, and what cannot leave waits in its peer's queue, in order.
//!
//! [`Egress::send`] tries a message at once, and its caller lets it [wait](Egress::wait) if it may. What waits leaves
//! when [`Egress::send_waiting`] is called: when credits have come, when a full mailbox may have room again, when the
//! scheme of flow control says so. Nothing here knows what messages are for.

mod backlog;
mod outgoing;

use crate::counter::{Counter, Counters};
use crate::link::{Buffer, Link, WriteError};
use crate::wire::MessageKind;
use std::collections::VecDeque;
use tidegate_flow::{
    Answer, Config, Control, Credits, FlowControl, Instant, Packet, PacketKind, PeerId, Peers, Violation,
};

use backlog::Waiting;
pub(crate) use backlog::{BOUNCED_MOST, Backlog, WaitingNote};
pub(crate) use outgoing::{Body, Outgoing, copy_of};

/// What egress needs of a link.
pub(crate) trait Mailboxes {
    fn write(&mut self, to: PeerId, count: u32, fill: impl FnMut(&mut Packet)) -> Result<u32, WriteError>;

    fn counters(&self) -> &Counters;
}

impl<L: Link> Mailboxes for L {
    #[inline]
    fn write(&mut self, to: PeerId, count: u32, fill: impl FnMut(&mut Packet)) -> Result<u32, WriteError> {
        Link::write(self, to, count, fill)
    }

    #[inline]
    fn counters(&self) -> &Counters {
        Link::counters(self)
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

/// What became of the first message that waited.
#[derive(Debug)]
pub(crate) enum Resumed<B> {
    /// It has left.
    Left(Outgoing<B>),
    /// It still waits, or nothing does.
    Stuck,
    /// The peer cannot be reached.
    Lost(Outgoing<B>, String),
}

/// What waits for one peer.
#[derive(Debug)]
struct Lane<B> {
    /// In order; the first may have left in part.
    backlog: Backlog<B>,
    /// Whether the peer counts in `Egress::delayed`.
    is_delayed: bool,
    /// Whether the peer is in `Egress::full`.
    is_full: bool,
    /// How many control packets for it are in `Egress::refused`.
    refused: u32,
    /// The round of tries, as `Egress::retries` counts them, in which one of them found no place.
    stuck_in: u32,
}

impl<B: Buffer> Default for Lane<B> {
    fn default() -> Self {
        Lane { backlog: Backlog::new(), is_delayed: false, is_full: false, refused: 0, stuck_in: 0 }
    }
}

/// How many peers have had sends waiting since when.
#[derive(Debug, Default)]
struct Delayed {
    peers: u32,
    /// How many there were when time was told last, and still are.
    before: u32,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Egress<B: Buffer> {
    flow: FlowControl,
    lanes: Peers<Lane<B>>,
    /// What is in all lanes.
    waiting: Waiting,
    delayed: Delayed,
    /// Peers whose mailbox was full when we last wrote.
    full: Vec<PeerId>,
    /// Control packets that found no place, those of each peer in order.
    refused: VecDeque<Control>,
    /// Rounds in which they were tried again.
    retries: u32,
    /// The most of them for one peer.
    refused_most: u32,
    /// Peers that are owed more.
    overdrawn: Vec<PeerId>,
}

impl<B: Buffer> Egress<B> {
    /// What it takes when something has waited for all of so many peers, in bytes.
    pub(crate) const fn bytes_most(peers: u32) -> usize {
        Peers::<Lane<B>>::bytes_most(peers)
    }

    pub(crate) fn new(flow: FlowControl, config: &Config) -> Self {
        Egress {
            flow,
            lanes: Peers::new(config.peers, ()),
            waiting: Waiting::default(),
            delayed: Delayed::default(),
            full: Vec::new(),
            refused: VecDeque::new(),
            retries: 0,
            refused_most: refused_most(config),
            overdrawn: Vec::new(),
        }
    }

    /// The backlog of a peer, if anything ever waited for it.
    pub(crate) fn inspect_backlog(&self, peer: PeerId) -> Option<&Backlog<B>> {
        self.lanes.get(peer).map(|lane| &lane.backlog)
    }

    /// What waits for a peer, if anything does for anybody, which is rare.
    #[inline]
    pub(crate) fn backlog(&self, peer: PeerId) -> Option<&Backlog<B>> {
        if self.waiting() == 0 { None } else { self.inspect_backlog(peer) }
    }

    /// The peers for which something may wait, in order.
    pub(crate) fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.lanes.contacted().map(|(peer, _)| peer)
    }

    /// Whether nothing waits for a peer.
    #[inline]
    pub(crate) fn is_idle(&self, peer: PeerId) -> bool {
        self.backlog(peer).is_none_or(Backlog::is_empty)
    }

    /// Bytes of our window for a peer that we are about to give back.
    #[inline]
    pub(crate) fn returning(&self, peer: PeerId) -> u32 {
        self.backlog(peer).map_or(0, Backlog::returning)
    }

    /// Whether something of one of these kinds waits for a peer.
    pub(crate) fn waits(&self, peer: PeerId, kinds: &[MessageKind]) -> bool {
        self.backlog(peer).is_some_and(|backlog| kinds.iter().any(|&kind| backlog.waits(kind)))
    }

    /// How many control packets a peer's full mailbox has refused.
    pub(crate) fn refused(&self, peer: PeerId) -> u32 {
        self.lanes.get(peer).map_or(0, |lane| lane.refused)
    }

    /// Messages and notes that wait.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.all()
    }

    /// Messages that wait.
    #[inline]
    pub(crate) fn waiting_messages(&self) -> usize {
        self.waiting.messages
    }

    /// Peers and packets that are to be tried again: no credit packet will tell when a mailbox has room.
    #[inline]
    pub(crate) fn to_retry(&self) -> usize {
        self.full.len() + self.refused.len()
    }

    /// Whether control packets wait.
    pub(crate) fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    pub(crate) fn credits(&self, peer: PeerId) -> u32 {
        self.flow.credits(peer)
    }

    pub(crate) fn inspect(&self) -> tidegate_flow::Inspection {
        self.flow.inspect()
    }

    /// Whether something is going on here whose time counts.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        self.delayed.peers as usize + self.to_retry() > 0 || self.flow.is_timed()
    }

    /// Whether peers have sends waiting since time was told last.
    #[inline]
    pub(crate) fn has_new_delays(&self) -> bool {
        self.delayed.before < self.delayed.peers
    }

    /// Time is told. Returns how many peers have had sends waiting ever since it was told last.
    pub(crate) fn tell_time(&mut self) -> u32 {
        let Delayed { peers, before } = self.delayed;
        self.delayed.before = peers;
        peers.min(before)
    }

    #[inline]
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.flow.next_timeout()
    }

    /// Does what is due. Who may send then says [`poll_ready`](Self::poll_ready).
    pub(crate) fn handle_timeout(&mut self, mailboxes: &mut impl Mailboxes, now: Instant) {
        self.flow.handle_timeout(now);
        self.flush_control(mailboxes);
    }

    /// A packet that had left for a peer found no buffer there. The link writes it again.
    pub(crate) fn handle_refusal(&mut self, mailboxes: &impl Mailboxes, by: PeerId, now: Instant) {
        mailboxes.counters().add(Counter::MailboxFull, 1);
        self.flow.handle_late_refusal(by, now);
    }

    /// The next peer whose sends flow control has let wait and that may go on.
    pub(crate) fn poll_ready(&mut self) -> Option<PeerId> {
        self.flow.poll_ready()
    }

    /// A packet was retrieved. Returns the credits that it brought.
    #[inline]
    pub(crate) fn handle_retrieved(&mut self, from: PeerId, packet: &Packet) -> Result<u32, Violation> {
        self.flow.handle_retrieved(from, packet)
    }

    /// Sends a message, if nothing waits in front of it.
    #[inline]
    pub(crate) fn send(
        &mut self,
        mailboxes: &mut impl Mailboxes,
        now: Instant,
        to: PeerId,
        message: &mut Outgoing<B>,
    ) -> Step {
        if self.is_idle(to) { self.transmit(mailboxes, now, to, message) } else { Step::NoCredits }
    }

    /// Lets a message wait that cannot leave. `is_full`: because of the mailbox.
    #[cold]
    pub(crate) fn wait(&mut self, mailboxes: &impl Mailboxes, to: PeerId, message: Outgoing<B>, is_full: bool) {
        let lane = self.lanes.of(to);
        if !std::mem::replace(&mut lane.is_delayed, true) {
            self.delayed.peers += 1;
        }
        self.waiting.add(&message);
        lane.backlog.push(message);
        if is_full {
            self.note_full(mailboxes, to);
        }
        mailboxes.counters().add(Counter::SendsDelayed, 1);
    }

    /// Remembers to try `to` again with every progress call.
    pub(crate) fn note_full(&mut self, mailboxes: &impl Mailboxes, to: PeerId) {
        mailboxes.counters().add(Counter::MailboxFull, 1);
        let lane = self.lanes.of(to);
        if !std::mem::replace(&mut lane.is_full, true) {
            self.full.push(to);
        }
    }

    /// Writes as many packets of a message as flow control allows: who is granted fewer than it wants asks again, until
    /// it is told to wait.
    #[inline]
    fn transmit(
        &mut self,
        mailboxes: &mut impl Mailboxes,
        now: Instant,
        to: PeerId,
        message: &mut Outgoing<B>,
    ) -> Step {
        if self.has_refused_of(to) {
            return Step::Full;
        }
        let step = match self.flow.request(to, message.packets_left(), now) {
            Answer::Packets(credits) => self.write_packets(mailboxes, now, to, message, credits),
            Answer::Wait => Some(Step::NoCredits),
            Answer::Announce if message.packets == 0 => Some(Step::Announce),
            Answer::Announce => Some(Step::NoCredits),
        };
        match step {
            Some(step) => step,
            None => self.transmit_rest(mailboxes, now, to, message),
        }
    }

    /// Out of line, so that a message that leaves at once does not pay for a loop.
    #[cold]
    #[inline(never)]
    fn transmit_rest(
        &mut self,
        mailboxes: &mut impl Mailboxes,
        now: Instant,
        to: PeerId,
        message: &mut Outgoing<B>,
    ) -> Step {
        self.transmit(mailboxes, now, to, message)
    }

    /// Writes as many packets as there are credits and places for. `None`: some have left, and others have not.
    #[inline]
    fn write_packets(
        &mut self,
        mailboxes: &mut impl Mailboxes,
        now: Instant,
        to: PeerId,
        message: &mut Outgoing<B>,
        mut credits: Credits,
    ) -> Option<Step> {
        let (flow, mut index, mut riding) = (&mut self.flow, message.packets, 0);
        let outcome = mailboxes.write(to, credits.count(), |packet| {
            message.fill(index, packet);
            index += 1;
            flow.piggyback(to, packet);
            riding += u64::from(packet.piggyback().unwrap_or(0));
        });
        let written = *outcome.as_ref().unwrap_or(&0);
        (0..written).for_each(|_| credits.spend());
        match outcome {
            Err(WriteError::Refused) => self.flow.handle_refused(to, credits, now),
            _ => self.flow.give_back(to, credits),
        }
        message.packets += written;
        mailboxes.counters().add(Counter::PacketsSent, u64::from(written));
        if riding > 0 {
            mailboxes.counters().add(Counter::CreditsPiggybacked, riding);
        }
        self.flush_control(mailboxes);
        Some(match outcome {
            Err(WriteError::Full) => Step::Full,
            // A scheme without a sense of time does not say when to try again.
            Err(WriteError::Refused) => match self.flow.is_timed() {
                true => Step::NoCredits,
                false => Step::Full,
            },
            Err(WriteError::Unreachable(name)) => Step::Lost(name),
            Ok(_) if message.packets_left() > 0 => return None,
            Ok(_) => Step::Sent,
        })
    }

    /// Sends the first message that waits for `to`, as far as it goes. The caller asks again as long as one has left.
    pub(crate) fn send_waiting(&mut self, mailboxes: &mut impl Mailboxes, now: Instant, to: PeerId) -> Resumed<B> {
        let Some(mut message) = self.lanes.get_mut(to).and_then(|lane| lane.backlog.pop()) else {
            self.end_delay(to);
            return Resumed::Stuck;
        };
        self.waiting.remove(&message);
        match self.transmit(mailboxes, now, to, &mut message) {
            Step::Sent => Resumed::Left(message),
            Step::Lost(name) => Resumed::Lost(message, name),
            step => {
                self.waiting.add(&message);
                self.lanes.of(to).backlog.put_back(message);
                if step == Step::Full {
                    self.note_full(mailboxes, to);
                }
                Resumed::Stuck
            }
        }
    }

    /// Nothing waits for `to` any more.
    fn end_delay(&mut self, to: PeerId) {
        if self.lanes.get_mut(to).is_some_and(|lane| std::mem::take(&mut lane.is_delayed)) {
            self.delayed.peers -= 1;
            self.delayed.before = self.delayed.before.min(self.delayed.peers);
        }
    }

    /// Tries the control packets again that found no place. Those of each peer stay in order.
    pub(crate) fn retry_control(&mut self, mailboxes: &mut impl Mailboxes) {
        self.retries = self.retries.wrapping_add(1);
        for _ in 0..self.refused.len() {
            let Some(control) = self.refused.pop_front() else { break };
            let is_stuck = self.lanes.of(control.to).stuck_in == self.retries;
            if !is_stuck && Self::try_control(mailboxes, &control) {
                self.lanes.of(control.to).refused -= 1;
            } else {
                self.lanes.of(control.to).stuck_in = self.retries;
                self.refused.push_back(control);
            }
        }
    }

    /// Whether control packets for this peer wait, which nothing may overtake: flow control reckons with their order.
    #[inline]
    fn has_refused_of(&self, peer: PeerId) -> bool {
        !self.refused.is_empty() && self.refused(peer) > 0
    }

    /// The peers whose mailboxes were full, which the caller tries again. Each counts as full until
    /// [`retry`](Self::retry).
    pub(crate) fn take_full(&mut self) -> Vec<PeerId> {
        std::mem::take(&mut self.full)
    }

    /// This one of them is being tried again.
    pub(crate) fn retry(&mut self, peer: PeerId) {
        self.lanes.of(peer).is_full = false;
    }

    /// Writes the control packets that flow control wants sent.
    #[inline]
    pub(crate) fn flush_control(&mut self, mailboxes: &mut impl Mailboxes) {
        while let Some(control) = self.flow.poll_control() {
            self.write_control(mailboxes, control);
        }
    }

    fn write_control(&mut self, mailboxes: &mut impl Mailboxes, control: Control) {
        if self.has_refused_of(control.to) || !Self::try_control(mailboxes, &control) {
            self.keep_control(control);
        }
    }

    /// Writes a control packet. Returns whether it needs no other try.
    fn try_control(mailboxes: &mut impl Mailboxes, control: &Control) -> bool {
        let counter = match control.packet.header.kind() {
            PacketKind::ReturnRequest => Counter::ReturnRequests,
            PacketKind::ReturnResponse => Counter::ReturnResponses,
            PacketKind::Credit | PacketKind::Data => Counter::CreditPackets,
        };
        match mailboxes.write(control.to, 1, |packet| *packet = control.packet) {
            Ok(_) => {
                mailboxes.counters().add(counter, 1);
                mailboxes.counters().add(Counter::PacketsSent, 1);
                true
            }
            Err(WriteError::Full | WriteError::Refused) => {
                mailboxes.counters().add(Counter::MailboxFull, 1);
                false
            }
            // The peer's departure, which the link reports, ends everything between us: nothing is owed.
            Err(WriteError::Unreachable(_)) => true,
        }
    }

    /// Keeps a control packet that found no place. Who is owed more than may be has not waited for credits.
    #[cold]
    fn keep_control(&mut self, control: Control) {
        let to = control.to;
        let owed = &mut self.lanes.of(to).refused;
        if *owed > self.refused_most {
            // It is about to be quarantined, and gets nothing any more.
            return;
        }
        self.refused.push_back(control);
        *owed += 1;
        if *owed > self.refused_most {
            self.overdrawn.push(to);
        }
    }

    /// The next peer that sends without waiting for credits while its own mailbox is full: it is to be quarantined.
    #[inline]
    pub(crate) fn poll_overdrawn(&mut self) -> Option<PeerId> {
        self.overdrawn.pop()
    }

    /// Nothing of what waits for a peer leaves any more: takes the messages.
    pub(crate) fn abandon(&mut self, peer: PeerId) -> Vec<Outgoing<B>> {
        self.end_delay(peer);
        let Some(lane) = self.lanes.get_mut(peer) else { return Vec::new() };
        let mut backlog = std::mem::replace(&mut lane.backlog, Backlog::new());
        let messages: Vec<_> = std::iter::from_fn(|| backlog.pop()).collect();
        messages.iter().for_each(|message| self.waiting.remove(message));
        messages
    }

    /// A peer is gone: it is owed nothing.
    pub(crate) fn lose_peer(&mut self, peer: PeerId) {
        if self.lanes.get_mut(peer).is_some_and(|lane| std::mem::take(&mut lane.refused) > 0) {
            self.refused.retain(|control| control.to != peer);
        }
    }

    /// The place of a peer that is gone goes to another.
    pub(crate) fn release(&mut self, peer: PeerId) {
        self.flow.reset(peer);
        if self.lanes.forget(peer).is_some() {
            self.full.retain(|&full| full != peer);
        }
    }
}

/// The most control packets that wait for a peer whose mailbox is full. Who waits for credits is not owed more of them
/// than its credit slots hold, a return request and a response.
pub(crate) fn refused_most(config: &Config) -> u32 {
    config.credit_slots + 2
}

#[cfg(test)]
mod tests;
