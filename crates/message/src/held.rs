//! Held sends: what a receiver has no room for stays here, in order, and leaves when room comes back (rules W1–W7 in
//! [`window`](crate::window)). This is the sender's side; [`ask`](crate::ask) is the receiver's.
//!
//! A held send is *fresh* until it has knocked, *in doubt* until the receiver has settled its batch of knocks, then *forgotten*,
//! and *offered* while the receiver decides about it. It leaves the list when the receiver fetches or takes it, or when it is its
//! turn and the window has room for it; forgotten ones leave first, since they are first.

use crate::collections::index::Class;
use crate::collections::learned::{Indices, LinksOfClasses, Sought, Wanted};
use crate::collections::list::{Ordered, Position};
use crate::collections::slab::Key;
use crate::collections::steps;
use crate::completion::Completion;
use crate::counter::Counter;
use crate::egress::{Body, Outgoing};
use crate::endpoint::Endpoint;
use crate::envelope::Pattern;
use crate::inbound::{LARGEST_CONTROL_BYTES, Malformed};
use crate::link::{Buffer, Link};
use crate::operation::{Queue, Send, Source, Target};
use crate::rendezvous::{Payload, PendingSend};
use crate::wire::{DeferralNotice, Eager, Entry, Message, MessageKind, NoMatch, Offer, Query};
use std::fmt;
use tidegate_flow::PeerId;

/// Most entries of a batch of knocks: each may make the receiver keep a note for us.
pub(crate) const BATCH_MOST: usize = 32;

/// How far a held send has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The receiver does not know of it.
    Fresh,
    /// It has knocked; the receiver matches it or forgets it.
    InDoubt,
    /// The receiver has forgotten it.
    Forgotten,
    /// The receiver decides whether it takes it.
    Offered,
}

struct Held {
    send: Key,
    stage: Stage,
    /// Whether it is of the tagged matching space.
    queue: Queue,
    tag: u64,
    links: LinksOfClasses,
}

/// The envelope and the neighbours follow from the send and the list.
impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("send", &self.send).field("stage", &self.stage).finish()
    }
}

impl Sought for Held {
    fn source(&self) -> u64 {
        source_of(self.queue)
    }
    fn tag(&self) -> u64 {
        self.tag
    }
    fn links(&self) -> &LinksOfClasses {
        &self.links
    }
    fn links_mut(&mut self) -> &mut LinksOfClasses {
        &mut self.links
    }
}

/// The held sends to one peer.
#[derive(Debug)]
pub(crate) struct HeldSends {
    list: Ordered<Held>,
    indices: Indices,
    /// The first fresh one; all after it are fresh too.
    fresh: Option<Position>,
    /// The batch of knocks that is not settled.
    batch: Option<Vec<(Position, Key)>>,
    /// A question that waits for the batch (W7).
    question: Option<(Queue, Pattern)>,
}

impl HeldSends {
    fn new() -> Self {
        HeldSends { list: Ordered::new(), indices: Indices::default(), fresh: None, batch: None, question: None }
    }

    fn push(&mut self, send: Key, queue: Queue, tag: u64) -> Position {
        let at = self.list.push_back(Held { send, stage: Stage::Fresh, queue, tag, links: Default::default() });
        self.indices.add(&mut self.list, at);
        self.fresh.get_or_insert(at);
        at
    }

    fn remove(&mut self, at: Position) -> Option<Held> {
        if self.fresh == Some(at) {
            self.fresh = self.list.after(at);
        }
        let gone = self.list.remove(at)?;
        self.indices.remove(&mut self.list, &gone);
        Some(gone)
    }

    /// The first forgotten one of a matching space that `pattern` accepts, from anybody. Fresh ones, which come after all others, end
    /// the search.
    fn find_forgotten(&mut self, queue: Queue, pattern: &Pattern) -> Option<Position> {
        let class = Class { ignore: pattern.ignore, names_source: true };
        let wanted = Wanted { class, source: source_of(queue), tag: pattern.tag };
        let ends = |held: &Held| {
            steps::count();
            let fits = held.queue == queue && (pattern.tag ^ held.tag) & !pattern.ignore == 0;
            held.stage == Stage::Fresh || fits && held.stage == Stage::Forgotten
        };
        let at = self.indices.find(&mut self.list, &wanted, |list, most| list.walk(most, ends), ends)?;
        self.list.get(at).is_some_and(|held| held.stage == Stage::Forgotten).then_some(at)
    }

    /// Nothing is held, in doubt or asked for: new sends go the usual way.
    fn is_over(&self) -> bool {
        self.list.is_empty() && self.batch.is_none() && self.question.is_none()
    }
}

impl<L: Link> Endpoint<L> {
    /// Keeps an eager send for which the receiver has no room.
    #[cold]
    pub(crate) fn hold_eager(&mut self, to: PeerId, send: Send<L::Buffer>) {
        if let Some(key) = self.keep_send(to, send) {
            self.hold(to, key);
        }
    }

    /// Holds a send for which the receiver has no room.
    #[cold]
    pub(crate) fn hold(&mut self, to: PeerId, key: Key) {
        self.count(Counter::SendsDeferred, 1);
        if let Some(send) = self.sends.get_mut(key) {
            let held = self.peers[to.0 as usize].held.get_or_insert_with(|| Box::new(HeldSends::new()));
            send.held = Some(held.push(key, send.space.queue(), send.space.tag()));
            self.report_buffered(key);
        }
        self.release_held(to);
        self.knock(to);
    }

    /// A send whose payload was copied is complete for the application, unless it waits for delivery.
    fn report_buffered(&mut self, key: Key) {
        let Some(send) = self.sends.get_mut(key) else { return };
        if matches!(send.payload, Payload::Copied(_))
            && !send.delivery
            && let Some(notice) = send.notice.take_if(|notice| notice.report)
        {
            self.completions.push_back(Completion::sent(notice, Ok(())));
        }
    }

    /// Sends held messages in order as long as they find room (W3).
    pub(crate) fn release_held(&mut self, to: PeerId) {
        while let Some(held) = &mut self.peers[to.0 as usize].held {
            let Some(at) = held.list.first() else { break };
            let Some(&Held { send: key, stage, .. }) = held.list.get(at) else { break };
            let Some(send) = self.sends.get(key) else { break };
            let (eager, cost) = self.way_of(send);
            let peer = &mut self.peers[to.0 as usize];
            if matches!(stage, Stage::InDoubt | Stage::Offered) || peer.room < cost {
                break;
            }
            peer.room -= cost;
            let known = stage == Stage::Forgotten;
            peer.held.as_mut().map(|held| held.remove(at));
            if let Some(send) = self.sends.get_mut(key) {
                send.held = None;
            }
            match eager {
                true => self.send_kept_eagerly(to, key, known),
                false => self.announce_kept(to, key, known),
            }
        }
        self.end_holding(to);
    }

    /// Whether a held send leaves eagerly, and what it costs.
    fn way_of(&self, send: &PendingSend<L::Buffer>) -> (bool, u32) {
        let towards = &self.peers[send.peer.0 as usize].towards;
        let most = if matches!(send.payload, Payload::Copied(_)) { towards.inject } else { towards.eager };
        match send.length <= most as usize && !send.delivery {
            true => (true, Self::eager_cost(send.length)),
            false => (false, Self::announce_cost(self.spans_of(send))),
        }
    }

    fn send_kept_eagerly(&mut self, to: PeerId, key: Key, known: bool) {
        let Some(send) = self.remove_send(key) else { return };
        self.count(Counter::MessagesEager, 1);
        let (queue, tag) = (send.space.queue(), send.space.tag());
        let head = Eager { queue, tag, data: send.data, was_dropped: known };
        let body = match send.payload {
            _ if send.length == 0 => Body::None,
            Payload::Application(buffer) => Body::Borrowed(buffer),
            Payload::Copied(bytes) => Body::Owned(bytes),
        };
        self.dispatch(to, Outgoing::new(head, body, send.notice), false);
    }

    /// Forgets the list of held sends when it is empty and nothing is pending.
    fn end_holding(&mut self, to: PeerId) {
        let peer = &mut self.peers[to.0 as usize];
        if peer.held.as_ref().is_some_and(|held| held.is_over()) {
            peer.held = None;
        }
    }

    /// Shows the receiver the held sends that it does not know of (W4): a batch, when the one before is settled.
    fn knock(&mut self, to: PeerId) {
        let Some(held) = &mut self.peers[to.0 as usize].held else { return };
        if held.batch.is_some() || held.fresh.is_none() {
            return;
        }
        let (mut batch, mut body) = (Vec::new(), Vec::new());
        while let (Some(at), true) = (held.fresh, batch.len() < BATCH_MOST) {
            held.fresh = held.list.after(at);
            let Some(entry) = held.list.get_mut(at) else { break };
            entry.stage = Stage::InDoubt;
            batch.push((at, entry.send));
            if let Some(send) = self.sends.get(entry.send) {
                entry_of(entry.send, send).emit(&mut body);
            }
        }
        held.batch = Some(batch);
        self.count(Counter::DeferralNotices, 1);
        let body = Body::Owned(body.into_boxed_slice());
        self.dispatch(to, Outgoing::new(DeferralNotice, body, None), false);
    }

    /// The receiver has matched or forgotten all of a batch.
    pub(crate) fn handle_acknowledged(&mut self, from: PeerId) -> Result<(), Malformed> {
        let notice_waits = self.egress.backlog(from).waits(MessageKind::DeferralNotice);
        let held = self.peers[from.0 as usize].held.as_mut().filter(|_| !notice_waits).ok_or(Malformed)?;
        for (at, send) in held.batch.take().ok_or(Malformed)? {
            // One that was matched is no longer in the list, and its place may be another's.
            if let Some(entry) = held.list.get_mut(at).filter(|entry| entry.send == send) {
                entry.stage = Stage::Forgotten;
            }
        }
        if let Some((queue, pattern)) = held.question.take() {
            self.answer(from, queue, &pattern);
        }
        self.release_held(from);
        self.knock(from);
        Ok(())
    }

    /// The receiver asks for the first held send that `pattern` accepts.
    pub(crate) fn handle_query(&mut self, from: PeerId, query: &Query) -> Result<(), Malformed> {
        let &Query { queue, tag, ignore } = query;
        let pattern = Pattern { from: Source::From(Target::Myself), tag, ignore };
        if self.is_answering(from) {
            return Err(Malformed);
        }
        match &mut self.peers[from.0 as usize].held {
            Some(held) if held.question.is_some() => return Err(Malformed),
            Some(held) if held.batch.is_some() => held.question = Some((queue, pattern)),
            _ => self.answer(from, queue, &pattern),
        }
        Ok(())
    }

    /// Whether an answer to a question of `peer` waits.
    fn is_answering(&self, peer: PeerId) -> bool {
        let backlog = self.egress.backlog(peer);
        [MessageKind::OfferTagged, MessageKind::OfferUntagged, MessageKind::NoMatch]
            .into_iter()
            .any(|kind| backlog.waits(kind))
    }

    /// Offers the first forgotten send that `pattern` accepts, or says that there is none.
    fn answer(&mut self, to: PeerId, queue: Queue, pattern: &Pattern) {
        let held = self.peers[to.0 as usize].held.as_mut();
        let found = held.and_then(|held| {
            let at = held.find_forgotten(queue, pattern)?;
            let entry = held.list.get_mut(at)?;
            entry.stage = Stage::Offered;
            Some(entry.send)
        });
        let may_be_long = self.egress.is_idle(to);
        let (head, body): (Message, _) = match found.and_then(|key| Some((key, self.sends.get(key)?))) {
            Some((key, send)) => {
                let (tag, data, length) = (send.space.tag(), send.data, send.length as u64);
                (
                    Offer { queue, tag, data, send: key.0, length }.into(),
                    if may_be_long { offered_payload(send) } else { Body::None },
                )
            }
            None => (NoMatch.into(), Body::None),
        };
        self.dispatch(to, Outgoing::new(head, body, None), true);
    }

    /// The receiver does not take what we offered.
    pub(crate) fn handle_decline(&mut self, from: PeerId, key: Key) -> Result<(), Malformed> {
        let at = self.offered_at(from, key).ok_or(Malformed)?;
        let held = self.peers[from.0 as usize].held.as_mut().ok_or(Malformed)?;
        let entry = held.list.get_mut(at).filter(|entry| entry.stage == Stage::Offered).ok_or(Malformed)?;
        entry.stage = Stage::Forgotten;
        self.release_held(from);
        Ok(())
    }

    /// The receiver has set aside what we offered, and will fetch it later.
    pub(crate) fn handle_accept(&mut self, from: PeerId, key: Key) -> Result<(), Malformed> {
        self.offered_at(from, key).ok_or(Malformed)?;
        self.unhold(key);
        Ok(())
    }

    /// Where a send is held whose offer has left.
    fn offered_at(&self, from: PeerId, key: Key) -> Option<Position> {
        self.sends.get(key).filter(|send| send.peer == from && !self.is_answering(from))?.held
    }

    /// The receiver has matched a held send: it is held no longer.
    pub(crate) fn unhold(&mut self, key: Key) {
        let Some(send) = self.sends.get_mut(key) else { return };
        let (Some(at), to) = (send.held.take(), send.peer) else { return };
        self.peers[to.0 as usize].held.as_mut().map(|held| held.remove(at));
        self.release_held(to);
    }
}

/// A short payload travels with its offer, which spares the receiver the fetch if it takes it.
fn offered_payload<B: Buffer>(send: &PendingSend<B>) -> Body<B> {
    match &send.payload {
        _ if send.length == 0 || send.length > LARGEST_CONTROL_BYTES => Body::None,
        Payload::Application(buffer) => Body::Borrowed(buffer.slice(0, send.length)),
        Payload::Copied(bytes) => Body::Owned(bytes.clone()),
    }
}

fn entry_of<B: Buffer>(key: Key, send: &PendingSend<B>) -> Entry {
    let (queue, tag) = (send.space.queue(), send.space.tag());
    Entry { send: key.0, queue, length: send.length as u64, tag, data: send.data }
}

/// The queue takes the part of the source in an index: all sends are from this endpoint.
fn source_of(queue: Queue) -> u64 {
    match queue {
        Queue::Tagged => 1,
        Queue::Untagged => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two communicators of an MPI, whose number is above the program's tag; one send in three has not knocked yet.
    fn held(count: u64) -> HeldSends {
        let mut held = HeldSends::new();
        for n in 0..count {
            let at = held.push(Key(n as u32), Queue::Tagged, tag_of(n));
            if n < 2 * count / 3 {
                held.list.get_mut(at).expect("it was just added").stage = Stage::Forgotten;
            }
        }
        held
    }

    fn tag_of(n: u64) -> u64 {
        (n % 2) << 31 | n
    }

    #[test]
    fn a_question_takes_no_more_steps_among_20_000_than_among_500() {
        const TAG_BITS: u64 = (1 << 31) - 1;
        let pattern = |tag, ignore| Pattern { from: Source::Any, tag, ignore };
        for ignore in [0, TAG_BITS, u64::MAX] {
            let [few, many] = [500, 20_000].map(|count| {
                let mut held = held(count);
                let forgotten = 2 * count / 3;
                let all = steps::of(|| {
                    for n in (0..forgotten).rev() {
                        let at =
                            held.find_forgotten(Queue::Tagged, &pattern(tag_of(n), ignore)).expect("it is forgotten");
                        held.remove(at);
                        // Nobody knows of these yet, or they are of the other matching space.
                        assert_eq!(held.find_forgotten(Queue::Tagged, &pattern(7 << 31, 0)), None);
                        assert_eq!(held.find_forgotten(Queue::Untagged, &pattern(0, u64::MAX)), None);
                    }
                    assert_eq!(held.find_forgotten(Queue::Tagged, &pattern(0, u64::MAX)), None, "all others are fresh");
                });
                all as f64 / forgotten as f64
            });
            assert!(few <= 20.0 && many <= few + 1.0, "{ignore:#x}: {few} steps each of 500, {many} of 20,000");
        }
    }
}
