//! The way out: each data packet costs a credit, and what cannot leave waits in its peer's queue, in order.
//!
//! [`Egress::send`] tries a message at once, and its caller lets it [wait](Egress::wait) if it may. What waits leaves
//! when [`Egress::send_waiting`] is called: when credits have come, when a full mailbox may have room again, when the
//! scheme of flow control says so. Nothing here knows what messages are for.

mod backlog;
mod control;
mod inject_backoff;
mod lane;
mod leaving;
mod mailboxes;
mod open;
mod outgoing;
mod refusing;
mod short;
mod trying;

use crate::attention::Attention;
use crate::counter::Counter;
use crate::link::{Buffer, WriteError};
use crate::wait_cause::WaitCause;
use crate::waits::Waits;
use crate::wire::MessageKind;
use tidegate_flow::{Answer, Config, Credits, FlowControl, Instant, Packet, PeerId, Posting, Violation};

use backlog::Waiting;
pub(crate) use backlog::{BOUNCED_MOST, Backlog, WaitingNote};
use control::{Controls, publish_tally};
pub(crate) use control::{WaitingControl, refused_most};
use inject_backoff::InjectBackoff;
use lane::{Delayed, Lanes};
pub(crate) use mailboxes::Mailboxes;
pub(crate) use open::WaitingSend;
pub(crate) use outgoing::{Body, Outgoing, copy_of};
use outgoing::{Departing, FillSome};
pub(crate) use short::{CarriedShort, Short, Two};

/// How far a message got.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// All of it has left.
    Sent,
    /// The first of its two packets has left, and there is no place for the other.
    Begun,
    /// It waits for credits.
    NoCredits,
    /// It waits for credits, and nothing of it has left: a short message had better go by a request to send.
    Announce,
    /// The mailbox is full.
    Full,
    /// The peer cannot be reached.
    Lost(Box<Unreachable>),
}

/// Who cannot be reached, and why, for people. Boxed in a [`Step`], so that this fits into registers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreachable(pub(crate) String);

/// What became of the first message that waited.
#[derive(Debug)]
pub(crate) enum Resumed<B> {
    /// It has left.
    Left(Outgoing<B>),
    /// It still waits, or no message waits.
    Stuck,
    /// The peer cannot be reached.
    Lost(Outgoing<B>, String),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Egress<B: Buffer> {
    flow: FlowControl,
    lanes: Lanes<B>,
    /// What is in all lanes.
    waiting: Waiting,
    delayed: Delayed,
    waits: Waits,
    /// Peers whose mailbox was full when we last wrote.
    full: Vec<PeerId>,
    holding: InjectBackoff,
    /// Flow control's own packets.
    controls: Controls,
    pub(crate) attention: Attention,
}

impl<B: Buffer> Egress<B> {
    /// Most heap bytes of the tables of peers: when something has waited for all `peers`.
    pub(crate) const fn bytes_most(peers: u32) -> usize {
        Lanes::<B>::bytes_most(peers)
    }

    pub(crate) fn new(flow: FlowControl, config: &Config) -> Self {
        Egress {
            flow,
            lanes: Lanes::new(config.peers),
            waiting: Waiting::default(),
            delayed: Delayed::default(),
            waits: Waits::default(),
            full: Vec::new(),
            holding: InjectBackoff::default(),
            controls: Controls::new(config),
            attention: Attention::default(),
        }
    }

    /// The backlog of a peer, if anything waits for it.
    pub(crate) fn inspect_backlog(&self, peer: PeerId) -> Option<&Backlog<B>> {
        self.lanes.get(peer).map(|lane| &lane.backlog)
    }

    /// What waits for a peer, if anything does for anybody, which is rare.
    #[inline]
    pub(crate) fn backlog(&self, peer: PeerId) -> Option<&Backlog<B>> {
        if self.waiting() == 0 { None } else { self.inspect_backlog(peer) }
    }

    /// Gives back what is kept for a peer for which nothing waits.
    pub(crate) fn shrink(&mut self, peer: PeerId) {
        if let Some(lane) = self.lanes.get_mut(peer) {
            lane.backlog.shrink();
        }
    }

    /// The peers for which something waits, in order of their numbers.
    pub(crate) fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.lanes.all()
    }

    /// Whether nothing waits for a peer.
    #[inline]
    pub(crate) fn is_idle(&self, peer: PeerId) -> bool {
        self.backlog(peer).is_none_or(Backlog::is_empty)
    }

    /// Bytes of our window for a peer that we are about to give back.
    #[inline(always)]
    pub(crate) fn returning(&self, peer: PeerId) -> u32 {
        if self.waiting() == 0 { 0 } else { self.returning_in_backlog(peer) }
    }

    #[cold]
    fn returning_in_backlog(&self, peer: PeerId) -> u32 {
        self.inspect_backlog(peer).map_or(0, Backlog::returning)
    }

    /// Whether something of one of these kinds waits for a peer.
    pub(crate) fn waits(&self, peer: PeerId, kinds: &[MessageKind]) -> bool {
        self.backlog(peer).is_some_and(|backlog| kinds.iter().any(|&kind| backlog.waits(kind)))
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
        self.full.len() + self.controls.len()
    }

    /// Whether anything waits here, flow control's own packets included.
    #[inline]
    pub(crate) fn has_any_waiting(&self) -> bool {
        self.waiting() + self.to_retry() > 0 || self.flow.is_retrying()
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
        let timed = self.delayed.peers as usize + self.to_retry() + usize::from(self.holding.is_timed());
        timed > 0 || self.flow.is_timed()
    }

    /// Whether peers have sends waiting since time was told last.
    #[inline]
    pub(crate) fn has_new_delays(&self) -> bool {
        self.delayed.before < self.delayed.peers
    }

    /// Time is told. Returns how many peers have had sends waiting ever since it was told last.
    pub(crate) fn tell_time(&mut self, now: Instant) -> u32 {
        self.holding.tell_time(now);
        self.waits.tell_time(now);
        let Delayed { peers, before } = self.delayed;
        self.delayed.before = peers;
        peers.min(before)
    }

    #[inline]
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.flow.next_timeout()
    }

    /// Does what is due. Afterwards [`poll_ready`](Self::poll_ready) names the peers to which sends may go on.
    pub(crate) fn handle_timeout(&mut self, mailboxes: &mut impl Mailboxes, now: Instant) {
        self.flow.handle_timeout(now);
        self.flush_control(mailboxes, now);
        publish_tally(&self.flow, mailboxes.counters());
    }

    /// A packet that had left for a peer found no buffer there. The link writes it again.
    pub(crate) fn handle_refusal(&mut self, mailboxes: &impl Mailboxes, by: PeerId, now: Instant) {
        mailboxes.counters().add(Counter::MailboxFull, 1);
        self.flow.handle_late_refusal(by, now);
        self.attention.begin();
        publish_tally(&self.flow, mailboxes.counters());
    }

    /// The next peer whose sends flow control has let wait and that may go on.
    pub(crate) fn poll_ready(&mut self) -> Option<PeerId> {
        self.flow.poll_ready()
    }

    /// A packet was retrieved. Returns the credits that it brought.
    #[inline(always)]
    pub(crate) fn handle_retrieved(&mut self, from: PeerId, packet: &Packet) -> Result<u32, Violation> {
        self.flow.handle_retrieved(from, packet)
    }

    /// The same of a packet of several slots, on the last of which credits may ride.
    #[inline]
    pub(crate) fn handle_retrieved_long(&mut self, from: PeerId, slots: u32, last: &Packet) -> Result<u32, Violation> {
        self.flow.handle_retrieved_long(from, slots, last)
    }

    /// Sends a message, if nothing waits in front of it.
    #[inline]
    pub(crate) fn send(
        &mut self,
        mailboxes: &mut impl Mailboxes,
        now: Instant,
        to: PeerId,
        message: &mut impl Departing,
    ) -> Step {
        if self.is_idle(to) { self.transmit(mailboxes, now, to, message) } else { self.step_behind_others() }
    }

    /// How far a message got whose next packet could not be written.
    #[cold]
    fn step_after(&self, error: WriteError) -> Step {
        match error {
            // A scheme without a sense of time does not say when to try again.
            WriteError::Refused if self.flow.is_timed() => Step::NoCredits,
            WriteError::Refused | WriteError::Full => Step::Full,
            WriteError::Unreachable(name) => Step::Lost(Box::new(Unreachable(name))),
        }
    }

    /// What becomes of a message that others wait in front of.
    #[cold]
    fn step_behind_others(&self) -> Step {
        if self.flow.announces_behind_others() { Step::Announce } else { Step::NoCredits }
    }

    /// Lets a message wait that cannot leave. `is_full`: because of the mailbox.
    #[cold]
    pub(crate) fn wait(&mut self, mailboxes: &impl Mailboxes, to: PeerId, message: Outgoing<B>, is_full: bool) {
        let refusals = self.flow.refusals(to);
        let lane = self.lanes.of(to);
        if lane.waits_for.is_none() {
            let cause = match (is_full, refusals) {
                (_, 1..) => WaitCause::Buffer,
                (true, 0) => WaitCause::Mailbox,
                (false, 0) => WaitCause::Credits,
            };
            lane.waits_for = Some(cause);
            self.delayed.peers += 1;
            self.waits.begin(to, cause);
        }
        self.waiting.add(&message);
        lane.backlog.push(message);
        self.attention.begin();
        if is_full {
            self.note_full(mailboxes, to);
        }
        mailboxes.counters().add(Counter::SendsDelayed, 1);
    }

    /// A packet was refused by a full mailbox: remembers to [try again](Self::try_again).
    pub(crate) fn note_full(&mut self, mailboxes: &impl Mailboxes, to: PeerId) {
        mailboxes.counters().add(Counter::MailboxFull, 1);
        self.try_again(to);
    }

    /// Remembers to try `to` again with every progress call.
    pub(crate) fn try_again(&mut self, to: PeerId) {
        let lane = self.lanes.of(to);
        if !std::mem::replace(&mut lane.is_full, true) {
            self.full.push(to);
            self.attention.begin();
        }
    }

    /// Writes as many packets of a message as flow control allows: a sender that is granted fewer credits than it wants
    /// requests more, until it is told to wait.
    #[inline]
    fn transmit(
        &mut self,
        mailboxes: &mut impl Mailboxes,
        now: Instant,
        to: PeerId,
        message: &mut impl Departing,
    ) -> Step {
        match self.transmit_some(mailboxes, now, to, message) {
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
        message: &mut impl Departing,
    ) -> Step {
        loop {
            if let Some(step) = self.transmit_some(mailboxes, now, to, message) {
                return step;
            }
        }
    }

    /// Requests credits once, and writes as many packets as are granted. `None`: some packets have left, and others
    /// have not.
    #[inline]
    fn transmit_some(
        &mut self,
        mailboxes: &mut impl Mailboxes,
        now: Instant,
        to: PeerId,
        message: &mut impl Departing,
    ) -> Option<Step> {
        if self.controls.has_any_of(&self.lanes, to) {
            return Some(Step::Full);
        }
        let answer = match message.has_waited() {
            false => self.flow.request(to, message.packets_left(), now),
            true => self.flow.request_after_waiting(to, message.packets_left(), now),
        };
        match answer {
            Answer::Packets(credits) => self.write_packets(mailboxes, now, to, message, credits),
            Answer::Wait => Some(Step::NoCredits),
            Answer::Announce if message.packets_gone() == 0 => Some(Step::Announce),
            Answer::Announce => Some(Step::NoCredits),
        }
    }

    /// Writes as many packets as there are credits and places for. `None`: some have left, and others have not.
    #[inline]
    fn write_packets(
        &mut self,
        mailboxes: &mut impl Mailboxes,
        now: Instant,
        to: PeerId,
        message: &mut impl Departing,
        mut credits: Credits,
    ) -> Option<Step> {
        let mut riding = 0;
        let (index, left) = (message.packets_gone(), credits.count());
        let filling = FillSome { message: &*message, flow: &mut self.flow, to, index, left, riding: &mut riding };
        let outcome = mailboxes.write(to, credits.count(), filling);
        let written = *outcome.as_ref().unwrap_or(&0);
        credits.spend_many(written);
        match outcome {
            Err(WriteError::Refused) => {
                self.flow.handle_refused(to, credits, now);
                self.attention.begin();
            }
            _ if credits.count() == 0 => credits.end(),
            _ => self.flow.give_back(to, credits),
        }
        message.note_gone(written);
        mailboxes.counters().add(Counter::PacketsSent, u64::from(written));
        if riding > 0 {
            mailboxes.counters().add(Counter::CreditsPiggybacked, riding.into());
        }
        self.flush_control(mailboxes, now);
        match outcome {
            Err(error) => Some(self.step_after(error)),
            Ok(_) => (message.packets_left() == 0).then_some(Step::Sent),
        }
    }

    /// Sends the first message that waits for `to`, as far as it goes. The caller repeats this as long as one has left.
    pub(crate) fn send_waiting(&mut self, mailboxes: &mut impl Mailboxes, now: Instant, to: PeerId) -> Resumed<B> {
        let Some(mut message) = self.lanes.get_mut(to).and_then(|lane| lane.backlog.pop()) else {
            self.end_delay_if_moved(to);
            self.lanes.end_if_idle(to);
            return Resumed::Stuck;
        };
        self.waiting.remove(&message);
        match self.transmit(mailboxes, now, to, &mut message) {
            Step::Sent => Resumed::Left(message),
            Step::Lost(peer) => Resumed::Lost(message, peer.0),
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

    /// Nothing waits for `to` any more, and what did may go on. Where that is because a retry timer has run out it says
    /// nothing of the peer: what becomes of the next message does.
    fn end_delay_if_moved(&mut self, to: PeerId) {
        match self.lanes.get_mut(to) {
            Some(lane) if lane.hold.is_holding() && self.flow.refusals(to) > 0 => lane.hold.is_on_trial = true,
            _ => self.end_delay(to),
        }
    }

    /// Nothing waits for `to` any more.
    fn end_delay(&mut self, to: PeerId) {
        let Some(lane) = self.lanes.get_mut(to) else { return };
        self.holding.end(&mut lane.hold);
        let Some(cause) = lane.waits_for.take() else { return };
        self.waits.end(to, cause);
        self.delayed.peers -= 1;
        self.delayed.before = self.delayed.before.min(self.delayed.peers);
    }

    /// Writes the control packets that flow control wants sent.
    #[inline(always)]
    pub(crate) fn flush_control(&mut self, mailboxes: &mut impl Mailboxes, now: Instant) {
        if self.flow.has_control() {
            self.write_control(mailboxes, now);
        }
    }

    #[inline(never)]
    fn write_control(&mut self, mailboxes: &mut impl Mailboxes, now: Instant) {
        self.attention.raise();
        let mut has_sent = false;
        while let Some(posting) = self.flow.poll_posting() {
            has_sent |= !matches!(posting, Posting::Again(_));
            mailboxes.post(posting);
        }
        while let Some(control) = self.flow.poll_control() {
            if let Some(refused) = self.controls.send(&mut self.lanes, mailboxes, control)
                && let Some(control) = self.flow.handle_control_refused(refused, now)
            {
                self.controls.keep(&mut self.lanes, control);
            }
            has_sent = true;
        }
        if self.has_any_waiting() {
            self.attention.begin();
        }
        if self.controls.has_overdrawn() {
            self.attention.note_loss();
        }
        if has_sent {
            publish_tally(&self.flow, mailboxes.counters());
        }
    }

    /// Fewer buffers are left in our pool than the limit: flow control posts more.
    pub(crate) fn handle_limit_reached(&mut self, mailboxes: &mut impl Mailboxes, now: Instant) {
        self.flow.handle_limit_reached();
        self.flush_control(mailboxes, now);
    }

    /// The next peer that sends without waiting for credits while its own mailbox is full: it is to be quarantined.
    /// Attention notes a loss where there is one.
    pub(crate) fn poll_overdrawn(&mut self) -> Option<PeerId> {
        self.controls.poll_overdrawn()
    }
}

#[cfg(test)]
mod tests;
