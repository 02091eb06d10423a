//! What a receiver does about the sends that it has forgotten (rules W4–W7 in [`window`](crate::window)): it settles knocks,
//! asks for receives that nothing stored satisfies, and gives room back. [`held`](crate::held) is the sender's side.
//!
//! Receives and peeks are numbered in order of posting. Per sender of forgotten sends the receiver keeps how many they are, up to
//! which number it has asked, and which question is open: a few words, however many the sends. A receive up to that number has been
//! held against every send forgotten by now; one beyond it has not, and gets no knock of that sender before its question has been
//! answered (W6).

use crate::completion::Failure;
use crate::counter::Counter;
use crate::endpoint::Endpoint;
use crate::envelope::{Envelope, Number, Pattern};
use crate::held::BATCH_MOST;
use crate::inbound::{Malformed, write_clipped};
use crate::link::Link;
use crate::matching::{Active, RemoteSend, Stored, Unexpected};
use crate::operation::{Context, Queue, Source, Target};
use crate::rendezvous::Waited;
use crate::wire::{Accept, Acknowledged, Decline, Entry, MessageKind, Offer, Query};
use std::time::Duration;
use tidegate_flow::{Instant, PeerId};

/// What a receiver knows of sends of one peer that it has forgotten.
#[derive(Debug)]
pub(crate) struct Forgotten {
    pub(crate) count: u64,
    /// The latest receive that was held against all of them.
    asked: Number,
    /// The receive whose question is open.
    pub(crate) open: Option<Number>,
}

/// A peek that waits for answers.
#[derive(Clone, Debug)]
pub(crate) struct Inquiry {
    pub(crate) number: Number,
    pub(crate) pattern: Pattern,
    pub(crate) queue: Queue,
    pub(crate) context: Context,
    pub(crate) claim: bool,
    pub(crate) discard: bool,
}

/// Why receive memory is under pressure, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pressure {
    /// The sender whose messages find no room, and the tag of one that was refused (`None`: untagged).
    pub sender: (PeerId, Option<u64>),
    /// Bytes of its window.
    pub window: u64,
    /// Who else has unmatched messages stored here, the most first: sender, bytes. At most four.
    pub stored: Vec<(PeerId, u64)>,
    /// Bytes of unmatched messages stored here of all senders.
    pub bytes: u64,
}

/// A report of pressure that is due, and when there was one.
#[derive(Debug, Default)]
pub(crate) struct PressureReport {
    /// The sender whose message found no room first since the last report, and its tag, while time is not known yet.
    begun: Option<(PeerId, Option<u64>)>,
    due: Option<Pressure>,
    last: Option<Instant>,
}

impl PressureReport {
    /// Whether something is to be reported as soon as time is known.
    #[inline]
    pub(crate) fn is_begun(&self) -> bool {
        self.begun.is_some()
    }
}

/// Time between two reports of pressure at least.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

impl<L: Link> Endpoint<L> {
    /// A peer shows its held sends.
    pub(crate) fn handle_deferral_notice(&mut self, from: PeerId, body: &[u8]) -> Result<(), Malformed> {
        let count = body.len() / Entry::BYTES;
        // Who sends a batch before the one in front of it is settled takes nothing of what we say.
        let is_acknowledged = !self.egress.backlog(from).waits(MessageKind::Acknowledged);
        if !is_acknowledged || !(1..=BATCH_MOST).contains(&count) || !body.len().is_multiple_of(Entry::BYTES) {
            return Err(Malformed);
        }
        for entry in body.chunks_exact(Entry::BYTES) {
            let Entry { send, queue, length, tag, data } = Entry::parse(entry).ok_or(Malformed)?;
            let length = usize::try_from(length).map_err(|_| Malformed)?;
            let envelope = Envelope { source: Target::Peer(from), tag, data, length };
            let until = self.peers[from.0 as usize].forgotten.as_ref().filter(|it| it.count > 0).map(|it| it.asked);
            match self.matching.of(queue).accept_until(&envelope, until) {
                Some(active) => self.fetch_held(from, send, active, envelope, queue),
                None => self.forget(from, (queue == Queue::Tagged).then_some(tag)),
            }
        }
        self.tell(from, Acknowledged);
        if self.peers[from.0 as usize].forgotten.is_some() {
            self.grow_window(from);
        }
        self.review(from);
        Ok(())
    }

    /// Fetches a held send for a receive.
    fn fetch_held(&mut self, from: PeerId, id: u32, active: Active<L::Buffer>, envelope: Envelope, queue: Queue) {
        self.start_fetch(active, envelope, RemoteSend::of_held(from, id), queue, Waited::Message);
    }

    /// Nobody waits for a held send: it stays with its sender.
    fn forget(&mut self, from: PeerId, tag: Option<u64>) {
        self.count(Counter::EnvelopesDropped, 1);
        let latest = self.matching.last_number();
        let peer = &mut self.peers[from.0 as usize];
        let begins = peer.forgotten.is_none();
        let forgotten = peer
            .forgotten
            .get_or_insert_with(|| Box::new(Forgotten { count: 0, asked: Number::default(), open: None }));
        if forgotten.count == 0 {
            forgotten.asked = latest;
        }
        forgotten.count += 1;
        if begins {
            self.begin_pressure(from, tag);
        }
    }

    #[cold]
    fn begin_pressure(&mut self, from: PeerId, tag: Option<u64>) {
        self.forgetful.push(from);
        self.pressure.begun.get_or_insert((from, tag));
    }

    /// Prepares the report of what began since time was told last, unless there was one lately.
    pub(crate) fn report_pressure(&mut self) {
        let Some((from, tag)) = self.pressure.begun.take() else { return };
        let now = self.timing.now();
        if self.pressure.last.is_none_or(|last| now.since(last) >= REPORT_INTERVAL) {
            self.pressure.last = Some(now);
            let of = |(peer, state): (usize, &crate::endpoint::Peer<L::Buffer>)| {
                (PeerId(peer as u32), u64::from(state.stored))
            };
            let mut stored: Vec<_> = self.peers.iter().enumerate().map(of).filter(|&(_, bytes)| bytes > 0).collect();
            stored.sort_by_key(|&(peer, bytes)| (std::cmp::Reverse(bytes), peer.0));
            let bytes = stored.iter().map(|(_, bytes)| bytes).sum();
            stored.truncate(4);
            let window = u64::from(self.peers[from.0 as usize].window);
            self.pressure.due = Some(Pressure { sender: (from, tag), window, stored, bytes });
        }
    }

    /// Why receive memory came under pressure, if it did since the last call; once a minute at most.
    pub fn poll_pressure(&mut self) -> Option<Pressure> {
        self.pressure.due.take()
    }

    /// A send that was forgotten has come after all.
    pub(crate) fn remember(&mut self, from: PeerId) -> Result<(), Malformed> {
        let forgotten = self.peers[from.0 as usize].forgotten.as_mut().filter(|it| it.count > 0).ok_or(Malformed)?;
        forgotten.count -= 1;
        self.end_pressure(from);
        Ok(())
    }

    /// Ends the account of a sender that has no forgotten sends any more.
    fn end_pressure(&mut self, from: PeerId) {
        let peer = &mut self.peers[from.0 as usize];
        if peer.forgotten.as_ref().is_some_and(|it| it.count == 0 && it.open.is_none()) {
            peer.forgotten = None;
            self.relax(from);
        }
    }

    /// A peer's account has ended.
    pub(crate) fn relax(&mut self, from: PeerId) {
        self.forgetful.retain(|&peer| peer != from);
        if self.forgetful.is_empty() {
            self.timing.end_pressure();
        }
    }

    /// What is to be done about a sender now: give room back, ask for the next receive (W5).
    pub(crate) fn review(&mut self, from: PeerId) {
        let peer = &self.peers[from.0 as usize];
        if peer.window > self.limits.window && peer.forgotten.is_none() {
            self.shrink_window(from);
        }
        if self.peers[from.0 as usize].freed >= self.limits.window / 4 {
            self.return_room(from);
        }
        let peer = &self.peers[from.0 as usize];
        let Some(forgotten) = &peer.forgotten else { return };
        if forgotten.open.is_some() || forgotten.count == 0 {
            return;
        }
        let Some((number, queue, pattern)) = self.next_need(from, forgotten.asked) else { return };
        self.return_room(from);
        if self.goes_on(from) {
            return;
        }
        if let Some(forgotten) = &mut self.peers[from.0 as usize].forgotten {
            forgotten.open = Some(number);
            self.count(Counter::Queries, 1);
            self.tell(from, Query { queue, tag: pattern.tag, ignore: pattern.ignore });
        }
    }

    /// Whether a sender has room for its first held send, whatever that is (W2): it will send it unasked.
    fn goes_on(&self, from: PeerId) -> bool {
        let peer = &self.peers[from.0 as usize];
        peer.window - peer.stored - peer.freed >= self.limits.largest
    }

    /// The first receive or peek after `asked` that a message of `from` could satisfy.
    fn next_need(&mut self, from: PeerId, asked: Number) -> Option<(Number, Queue, Pattern)> {
        let source = Target::Peer(from);
        let posted = self.matching.first_from(source, asked);
        let wanted = |inquiry: &&Inquiry| inquiry.number > asked && inquiry.pattern.may_come_from(source);
        let inquiry = self.inquiries.iter().find(wanted);
        let inquiry = inquiry.map(|inquiry| (inquiry.number, inquiry.queue, inquiry.pattern));
        [posted, inquiry].into_iter().flatten().min_by_key(|(number, ..)| *number)
    }

    /// A receive or peek was posted that nothing stored satisfies.
    #[inline]
    pub(crate) fn seek(&mut self, from: Source) {
        if !self.forgetful.is_empty() {
            self.seek_forgotten(from);
        }
    }

    #[cold]
    fn seek_forgotten(&mut self, from: Source) {
        match from {
            Source::From(Target::Myself) => {}
            Source::From(Target::Peer(peer)) => self.review(peer),
            Source::Any => {
                for index in (0..self.forgetful.len()).rev() {
                    if let Some(&peer) = self.forgetful.get(index) {
                        self.review(peer);
                    }
                }
            }
        }
    }

    /// A sender offers the send that we asked for, with its payload if that is short: it goes to the first receive asked for so
    /// far that accepts it.
    pub(crate) fn handle_offer(&mut self, from: PeerId, offer: &Offer, payload: &[u8]) -> Result<(), Malformed> {
        let &Offer { queue, tag, data, send, length } = offer;
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        let envelope = Envelope { source: Target::Peer(from), tag, data, length };
        let is_asked = self.has_asked(from);
        let forgotten = self.peers[from.0 as usize].forgotten.as_mut().filter(|it| it.count > 0).ok_or(Malformed)?;
        let number = forgotten.open.take_if(|_| is_asked).ok_or(Malformed)?;
        let until = Some(number.max(forgotten.asked));
        match self.matching.of(queue).accept_until(&envelope, until) {
            Some(mut active) if payload.len() == length => {
                write_clipped(&mut active.buffer, 0, payload);
                self.complete_receive(active, &envelope, queue);
                self.finish_announced(&RemoteSend::of_held(from, send));
                self.remember(from)?;
            }
            Some(active) => {
                self.fetch_held(from, send, active, envelope, queue);
                self.remember(from)?;
            }
            None => {
                self.close_question(from, number);
                self.offer_to_inquiry(from, number, send, envelope, queue)?;
            }
        }
        self.review(from);
        Ok(())
    }

    /// Whether the question that is open, if one is, has left: then it may be answered.
    fn has_asked(&self, peer: PeerId) -> bool {
        let backlog = self.egress.backlog(peer);
        !backlog.waits(MessageKind::QueryTagged) && !backlog.waits(MessageKind::QueryUntagged)
    }

    /// The receive of this number has been held against all forgotten sends of `from`.
    fn close_question(&mut self, from: PeerId, number: Number) {
        if let Some(forgotten) = &mut self.peers[from.0 as usize].forgotten {
            forgotten.asked = forgotten.asked.max(number);
        }
    }

    /// No receive takes an offered send: a peek may have found it.
    fn offer_to_inquiry(
        &mut self,
        from: PeerId,
        number: Number,
        send: u32,
        envelope: Envelope,
        queue: Queue,
    ) -> Result<(), Malformed> {
        let asked_it = |inquiry: &Inquiry| inquiry.number == number && inquiry.queue == queue;
        let found = self.inquiries.iter().position(asked_it).map(|at| self.inquiries.remove(at));
        let found = found.filter(|inquiry| inquiry.pattern.accepts(envelope.source, envelope.tag));
        let Some(inquiry) = found else {
            self.tell(from, Decline { send });
            return Ok(());
        };
        if let Some(at) = self.matching.of(queue).find_unexpected(&inquiry.pattern) {
            // It left its sender before the question came there, and is older than what was offered.
            self.find_stored(&inquiry, at);
            self.tell(from, Decline { send });
            return Ok(());
        }
        self.complete_peek(inquiry.context, &envelope, queue);
        let announcement = RemoteSend::of_held(from, send);
        if inquiry.discard {
            self.remember(from)?;
            self.finish_announced(&announcement);
        } else if inquiry.claim {
            // What its program has claimed is the program's, as a posted receive is: it counts for no window.
            self.remember(from)?;
            self.tell(from, Accept { send });
            let stored = Stored::Remote(announcement);
            self.matching.of(queue).store(Unexpected { envelope, stored, claimed: Some(inquiry.context), cost: 0 });
        } else {
            self.tell(from, Decline { send });
        }
        Ok(())
    }

    /// A sender has nothing for what we asked.
    pub(crate) fn handle_no_match(&mut self, from: PeerId) -> Result<(), Malformed> {
        let is_asked = self.has_asked(from);
        let forgotten = self.peers[from.0 as usize].forgotten.as_mut().ok_or(Malformed)?;
        let number = forgotten.open.take_if(|_| is_asked).ok_or(Malformed)?;
        self.close_question(from, number);
        self.end_pressure(from);
        self.review(from);
        Ok(())
    }

    /// Ends the peeks that have their answers.
    #[cold]
    pub(crate) fn review_inquiries(&mut self) {
        for inquiry in self.inquiries.clone() {
            if !self.inquiries.iter().any(|other| other.number == inquiry.number) {
                continue;
            }
            if let Some(at) = self.matching.of(inquiry.queue).find_unexpected(&inquiry.pattern) {
                self.inquiries.retain(|other| other.number != inquiry.number);
                self.find_stored(&inquiry, at);
            } else if !self.is_open(&inquiry) {
                self.inquiries.retain(|other| other.number != inquiry.number);
                let space = inquiry.queue.space(0);
                self.complete_unmatched(inquiry.context, space, false, Failure::NoMessage);
            }
        }
    }

    /// Whether some sender may still have something for a peek.
    fn is_open(&self, inquiry: &Inquiry) -> bool {
        self.forgetful.iter().any(|&peer| {
            let Some(forgotten) = &self.peers[peer.0 as usize].forgotten else { return false };
            let wanted = forgotten.count > 0 && inquiry.pattern.may_come_from(Target::Peer(peer));
            wanted && forgotten.asked < inquiry.number && (forgotten.open.is_some() || !self.goes_on(peer))
        })
    }
}
