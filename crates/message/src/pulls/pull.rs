//! [`Pulls`]: rendezvous messages of peers on their way to their receives.

use super::way::{CLASSES, PullWays, Way, WayTimes};
use crate::collections::slab::{Key, Slab};
use crate::envelope::Envelope;
use crate::link::{Buffer, Capabilities, RemoteMemory, Span, TransferStatus};
use crate::malformed::Malformed;
use crate::matching::{Active, RemoteSend};
use crate::operation::Queue;
use crate::wire::{ClearToSend, Located};
use std::time::Duration;
use tidegate_flow::{Instant, PeerId};

/// A rendezvous message on its way to its receive.
#[derive(Debug)]
pub(crate) struct Pull<B> {
    pub(crate) active: Active<B>,
    pub(crate) envelope: Envelope,
    pub(crate) queue: Queue,
    pub(crate) remote: RemoteSend,
    /// Our `ClearToSend` has left: pieces may come.
    is_asked: bool,
    /// Bytes to get: what the receive has room for.
    wanted: usize,
    /// Bytes that are in place.
    position: usize,
    /// Bytes that are in place or that pieces under way have been admitted for.
    admitted: usize,
    measured: Option<Measured>,
    /// Our `ClearToSend` has said that we would rather read it.
    may_be_located: bool,
    /// Where all of it lies, if its sender has said so only after our `ClearToSend`.
    located: Option<RemoteMemory>,
    /// The link reads while we do other things, and bounds by itself how much of that is under way.
    is_read_whole: bool,
}

/// A pull whose time tells which way is faster.
#[derive(Clone, Copy, Debug)]
struct Measured {
    way: Way,
    /// Bytes that come that way.
    left: usize,
    /// Time spent reading.
    reading: Duration,
}

/// Which of the two was there first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The receive: its message has just come.
    Receive,
    /// The message.
    Message,
}

/// A part of a message to be read out of its sender's memory.
#[derive(Debug)]
pub(crate) struct Part<'p, B> {
    pub(crate) peer: PeerId,
    pub(crate) from: Vec<RemoteMemory>,
    pub(crate) into: &'p mut B,
    /// Where it goes in `into`.
    pub(crate) position: usize,
    pub(crate) length: usize,
}

/// What follows when the reading of a part has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The memory cannot be reached: a clear to send is to ask the sender for the rest.
    Ask,
    /// The pull has failed.
    Fail,
    /// More is to be read.
    Read,
    /// All is there.
    Complete,
}

/// All pulls.
#[derive(Debug)]
pub(crate) struct Pulls<B> {
    pulls: Slab<Pull<B>>,
    ways: PullWays,
}

impl<B: Buffer> Pulls<B> {
    pub(crate) fn new() -> Self {
        Pulls { pulls: Slab::new(), ways: PullWays::default() }
    }

    /// A rendezvous message has its receive. Returns the name of the pull.
    pub(crate) fn insert(&mut self, active: Active<B>, envelope: Envelope, queue: Queue, remote: RemoteSend) -> Key {
        let wanted = envelope.length.min(active.buffer.len());
        self.pulls.insert(Pull {
            active,
            envelope,
            queue,
            remote,
            is_asked: false,
            wanted,
            position: 0,
            admitted: 0,
            measured: None,
            may_be_located: false,
            located: None,
            is_read_whole: false,
        })
    }

    /// The piece that was sent ahead in a bounce buffer, if there is one: whose, which buffer, how much of it is wanted
    /// and where it goes.
    pub(crate) fn first_piece(&mut self, key: Key, bounce_bytes: usize) -> Option<(PeerId, usize, usize, &mut B)> {
        let pull = self.pulls.get_mut(key)?;
        let length = pull.wanted.min(bounce_bytes);
        let bounce = pull.remote.bounce.filter(|_| length > 0)?;
        Some((pull.remote.peer, usize::from(bounce), length, &mut pull.active.buffer))
    }

    /// The first piece is in place.
    pub(crate) fn place_first(&mut self, key: Key, length: usize) {
        if let Some(pull) = self.pulls.get_mut(key) {
            (pull.position, pull.admitted) = (length, length);
        }
    }

    /// Whether all is in place; also if there is no such pull.
    pub(crate) fn is_complete(&self, key: Key) -> bool {
        self.pulls.get(key).is_none_or(|pull| pull.position == pull.wanted)
    }

    /// How to get what is left of a message. Where its sender's memory can be reached: a very long one is read, and so
    /// is a short one that came without a piece sent ahead and was stored, whose sender may be long asleep. A short one
    /// that has just come has a sender who is awake, and bounce buffers are faster. Between them is what measurements
    /// say.
    pub(crate) fn choose_way(
        &mut self,
        key: Key,
        waited: Waited,
        bounce_bytes: usize,
        capabilities: impl FnOnce(PeerId) -> Capabilities,
    ) -> Way {
        let Some(pull) = self.pulls.get_mut(key).filter(|pull| !pull.remote.spans.is_empty()) else { return Way::Ask };
        let Capabilities { reaches_memory, is_synchronous, shares_bounce_buffers, direct_from } =
            capabilities(pull.remote.peer);
        if !reaches_memory {
            return Way::Ask;
        }
        pull.is_read_whole = !is_synchronous;
        let left = pull.wanted - pull.position;
        if left >= direct_from || !shares_bounce_buffers {
            return Way::Read;
        }
        if pull.position == 0 && left <= bounce_bytes {
            return if waited == Waited::Message { Way::Read } else { Way::Ask };
        }
        let way = self.ways.choose(pull.wanted);
        pull.measured = Some(Measured { way, left, reading: Duration::ZERO });
        way
    }

    /// The next part to read: of so many bytes at most, if reading keeps us from doing anything else.
    pub(crate) fn next_part(&mut self, key: Key, most: usize) -> Option<Part<'_, B>> {
        let pull = self.pulls.get_mut(key)?;
        let most = if pull.is_read_whole { usize::MAX } else { most };
        let (position, length) = (pull.position, (pull.wanted - pull.position).min(most.max(1)));
        let from = match &pull.located {
            Some(RemoteMemory { key, span }) => part_of(*key, std::slice::from_ref(span), position, length),
            None => part_of(pull.remote.key, &pull.remote.spans, position, length),
        };
        Some(Part { peer: pull.remote.peer, from, into: &mut pull.active.buffer, position, length })
    }

    /// Reading took so long.
    pub(crate) fn note_reading(&mut self, key: Key, time: Duration) {
        if let Some(Measured { reading, .. }) = self.pulls.get_mut(key).and_then(|pull| pull.measured.as_mut()) {
            *reading += time;
        }
    }

    /// The reading of a part of so many bytes has ended.
    pub(crate) fn end_part(&mut self, key: Key, length: usize, status: TransferStatus) -> Option<Next> {
        let pull = self.pulls.get_mut(key)?;
        match status {
            TransferStatus::Unreachable => {
                // What is in place stays; how long it took says nothing about either way.
                (pull.admitted, pull.measured) = (pull.position, None);
                return Some(Next::Ask);
            }
            TransferStatus::Done => pull.position += length,
            _ => return Some(Next::Fail),
        }
        Some(if pull.position == pull.wanted { Next::Complete } else { Next::Read })
    }

    /// The clear to send for what is left of the message, and its sender. If it is no eager message, and we can read it
    /// but would get it packet by packet, the sender may say where it lies.
    pub(crate) fn ask(
        &mut self,
        key: Key,
        eager: u32,
        capabilities: impl FnOnce(PeerId) -> Capabilities,
    ) -> Option<(PeerId, ClearToSend)> {
        let pull = self.pulls.get_mut(key)?;
        let peer = pull.remote.peer;
        let is_unknown = pull.position == 0 && pull.remote.spans.is_empty() && pull.located.is_none();
        let reads = is_unknown && pull.wanted > eager as usize && {
            let Capabilities { reaches_memory, shares_bounce_buffers, .. } = capabilities(peer);
            reaches_memory && !shares_bounce_buffers
        };
        pull.may_be_located = reads;
        let (wanted, position) = (pull.wanted as u64, pull.position as u64);
        Some((peer, ClearToSend { send: pull.remote.id, pull: key.0, wanted, position, reads }))
    }

    /// Our clear to send has left.
    pub(crate) fn note_asked(&mut self, key: Key) {
        if let Some(pull) = self.pulls.get_mut(key) {
            pull.is_asked = true;
        }
    }

    /// The sender says where all of a message lies, instead of sending pieces, as the clear to send allows: once.
    pub(crate) fn locate(
        &mut self,
        from: PeerId,
        key: Key,
        located: &Located,
        is_synchronous: bool,
    ) -> Result<(), Malformed> {
        let pull = self.pulls.get_mut(key).filter(|pull| pull.remote.peer == from).ok_or(Malformed)?;
        let is_whole = located.span.length == pull.envelope.length as u64;
        if !pull.is_asked || !pull.may_be_located || pull.admitted > 0 || !is_whole {
            return Err(Malformed);
        }
        (pull.is_asked, pull.may_be_located, pull.is_read_whole) = (false, false, !is_synchronous);
        pull.located = Some(RemoteMemory { key: located.key, span: located.span });
        Ok(())
    }

    /// A piece begins: where it goes, if a pull waits for just this one.
    pub(crate) fn admit(&mut self, from: PeerId, key: Key, at: u64, length: usize) -> Result<usize, Malformed> {
        let pull = self.pulls.get_mut(key).filter(|pull| pull.remote.peer == from).ok_or(Malformed)?;
        if !pull.is_asked || at != pull.admitted as u64 || length > pull.wanted - pull.admitted {
            return Err(Malformed);
        }
        pull.admitted += length;
        Ok(at as usize)
    }

    /// Where the message of this peer goes, if it may be written there.
    pub(crate) fn buffer(&self, key: Key) -> Option<(PeerId, &B)> {
        self.pulls.get(key).map(|pull| (pull.remote.peer, &pull.active.buffer))
    }

    /// The sender says that it has written all of a message: whether it was told where to.
    pub(crate) fn is_written(&self, from: PeerId, key: Key) -> bool {
        self.pulls.get(key).is_some_and(|pull| pull.remote.peer == from && pull.is_asked && pull.admitted == 0)
    }

    /// Where the message goes.
    pub(crate) fn buffer_mut(&mut self, key: Key) -> Option<&mut B> {
        self.pulls.get_mut(key).map(|pull| &mut pull.active.buffer)
    }

    /// Whether all pieces have been admitted.
    pub(crate) fn is_admitted(&self, key: Key) -> bool {
        self.pulls.get(key).is_some_and(|pull| pull.admitted == pull.wanted)
    }

    /// A pull is over, and tells which way is faster.
    pub(crate) fn end(&mut self, key: Key, is_complete: bool, now: Instant) -> Option<Pull<B>> {
        let pull = self.pulls.remove(key)?;
        match pull.measured {
            Some(Measured { way: Way::Ask, left, .. }) => {
                self.ways.end_asked(pull.wanted, is_complete.then_some(left), now);
            }
            Some(Measured { way: Way::Read, left, reading }) if is_complete => {
                self.ways.end_read(pull.wanted, left, reading);
            }
            _ => {}
        }
        Some(pull)
    }

    /// Some of those under way, in so many places from one on.
    pub(crate) fn some(&self, from: usize, places: usize) -> impl Iterator<Item = (Key, &Pull<B>)> {
        self.pulls.some(from, places)
    }

    /// The pull of this name, if it is under way.
    pub(crate) fn get(&self, key: Key) -> Option<&Pull<B>> {
        self.pulls.get(key)
    }

    /// How many there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.pulls.len()
    }

    /// How many places there are for them.
    pub(crate) fn places(&self) -> usize {
        self.pulls.places()
    }

    /// The pulls from a peer.
    pub(crate) fn of_peer(&self, peer: PeerId) -> Vec<Key> {
        self.pulls.keys_where(|pull| pull.remote.peer == peer)
    }

    /// Whether something is going on here whose time counts.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        self.ways.measured() > 0
    }

    /// How fast messages come each way.
    pub(crate) fn way_times(&self) -> [WayTimes; CLASSES] {
        self.ways.times()
    }

    pub(crate) fn tell_time(&mut self, now: Instant) {
        self.ways.tell_time(now);
    }

    /// A piece was copied out of a bounce buffer, which took so long since the time was told.
    pub(crate) fn note_draining(&mut self, time: Duration) {
        self.ways.note_draining(time);
    }
}

/// The part `offset..offset + length` of the memory with this key that `spans` cover.
fn part_of(key: u64, spans: &[Span], mut offset: usize, mut length: usize) -> Vec<RemoteMemory> {
    let mut part = Vec::with_capacity(1);
    for span in spans {
        let bytes = usize::try_from(span.length).unwrap_or(usize::MAX);
        let skipped = offset.min(bytes);
        let taken = (bytes - skipped).min(length);
        if taken > 0 {
            let span = Span { address: span.address.wrapping_add(skipped as u64), length: taken as u64 };
            part.push(RemoteMemory { key, span });
        }
        offset -= skipped;
        length -= taken;
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::MatchQueue;
    use crate::operation::{Context, Target};
    use crate::testing::Bytes;

    const A: PeerId = PeerId(0);
    const B: PeerId = PeerId(1);
    const BOUNCE_BYTES: usize = 10;
    const EAGER: u32 = 20;
    const CAPABLE: Capabilities =
        Capabilities { reaches_memory: true, is_synchronous: true, shares_bounce_buffers: true, direct_from: 1000 };

    /// A pull of a message of 100 bytes of A, into a receive of so many bytes.
    fn pull(pulls: &mut Pulls<Bytes>, capacity: usize, spans: &[Span], bounce: Option<u16>) -> Key {
        let active = MatchQueue::activate_now(Bytes::new(&vec![0; capacity]), Context(1), true);
        let envelope = Envelope { source: Target::Peer(A), tag: 0, data: None, length: 100 };
        let remote = RemoteSend { peer: A, id: 7, bounce, key: 9, spans: spans.to_vec() };
        pulls.insert(active, envelope, Queue::Tagged, remote)
    }

    #[test]
    fn pieces_are_admitted_in_order_from_their_sender_once_they_are_asked_for() {
        let mut pulls = Pulls::new();
        let key = pull(&mut pulls, 60, &[], None);
        assert_eq!(pulls.admit(A, key, 0, 10), Err(Malformed), "nobody has asked");
        let (peer, clear) = pulls.ask(key, EAGER, |_| CAPABLE).expect("it is there");
        assert_eq!((peer, clear), (A, ClearToSend { send: 7, pull: key.0, wanted: 60, position: 0, reads: false }));
        pulls.note_asked(key);
        assert_eq!(pulls.admit(B, key, 0, 10), Err(Malformed), "it is A's");
        assert_eq!(pulls.admit(A, key, 0, 61), Err(Malformed), "that is more than is wanted");
        assert_eq!((pulls.admit(A, key, 0, 50), pulls.admit(A, key, 0, 10)), (Ok(0), Err(Malformed)));
        assert!(!pulls.is_admitted(key));
        assert_eq!((pulls.admit(A, key, 50, 10), pulls.is_admitted(key)), (Ok(50), true));
        assert!(pulls.end(key, true, Instant::default()).is_some() && pulls.ask(key, EAGER, |_| CAPABLE).is_none());
    }

    #[test]
    fn a_sender_says_once_where_a_whole_message_lies_and_only_if_it_was_asked() {
        let mut pulls = Pulls::new();
        let key = pull(&mut pulls, 60, &[], None);
        let apart = Capabilities { shares_bounce_buffers: false, ..CAPABLE };
        let far = Capabilities { reaches_memory: false, ..apart };
        let reads = |pulls: &mut Pulls<Bytes>, capabilities| {
            pulls.ask(key, EAGER, |_| capabilities).expect("it is there").1.reads
        };
        assert_eq!([CAPABLE, apart, far].map(|it| reads(&mut pulls, it)), [false, true, false]);
        assert!(!pulls.ask(key, 60, |_| apart).expect("it is there").1.reads, "it is short");
        let located = |length| Located { pull: key.0, key: 9, span: span(5000, length) };
        let locate = |pulls: &mut Pulls<Bytes>, from, length| pulls.locate(from, key, &located(length), true);
        pulls.note_asked(key);
        assert_eq!(locate(&mut pulls, A, 100), Err(Malformed), "a short one is sent");
        assert!(reads(&mut pulls, apart));
        assert_eq!((locate(&mut pulls, B, 100), locate(&mut pulls, A, 99)), (Err(Malformed), Err(Malformed)));
        assert_eq!(locate(&mut pulls, A, 100), Ok(()));
        assert_eq!((locate(&mut pulls, A, 100), pulls.admit(A, key, 0, 10)), (Err(Malformed), Err(Malformed)));
        let part = pulls.next_part(key, 40).expect("all is wanted");
        assert_eq!((part.from, part.length), (vec![RemoteMemory { key: 9, span: span(5000, 40) }], 40));
        assert_eq!(pulls.end_part(key, 40, TransferStatus::Unreachable), Some(Next::Ask));
        assert!(!reads(&mut pulls, apart), "it cannot after all");
    }

    #[test]
    fn memory_is_read_part_by_part_and_asked_for_when_it_cannot_be_reached_any_more() {
        let mut pulls = Pulls::new();
        let key = pull(&mut pulls, 100, &[span(0, 100)], None);
        for (position, next) in [(0, Next::Read), (40, Next::Read), (80, Next::Complete)] {
            let part = pulls.next_part(key, 40).expect("more is wanted");
            let length = part.length;
            assert_eq!((part.peer, part.position, length), (A, position, 40.min(100 - position)));
            if position == 80 {
                assert_eq!(pulls.end_part(key, length, TransferStatus::Unreachable), Some(Next::Ask));
                assert_eq!(
                    pulls.ask(key, EAGER, |_| CAPABLE).expect("it is there").1.position,
                    80,
                    "what is in place stays"
                );
            }
            assert_eq!(pulls.end_part(key, length, TransferStatus::Done), Some(next));
        }
        assert!(pulls.is_complete(key));
        assert_eq!(pulls.end_part(key, 0, TransferStatus::Failed), Some(Next::Fail));
    }

    #[test]
    fn the_way_depends_on_length_and_on_who_waited() {
        let mut pulls = Pulls::new();
        let long = Capabilities { direct_from: 50, ..CAPABLE };
        let key = pull(&mut pulls, 100, &[span(0, 100)], None);
        let mut way = |key, waited, capabilities| pulls.choose_way(key, waited, BOUNCE_BYTES, |_| capabilities);
        assert_eq!(way(key, Waited::Receive, long), Way::Read);
        let far = Capabilities { reaches_memory: false, ..long };
        assert_eq!(way(key, Waited::Receive, far), Way::Ask, "its memory is out of reach");
        let short = pull(&mut pulls, 10, &[span(0, 100)], None);
        let mut way = |capabilities, waited| pulls.choose_way(short, waited, BOUNCE_BYTES, |_| capabilities);
        assert_eq!(way(CAPABLE, Waited::Receive), Way::Ask, "its sender is awake");
        assert_eq!(way(CAPABLE, Waited::Message), Way::Read, "it may be asleep");
        let apart = Capabilities { shares_bounce_buffers: false, ..CAPABLE };
        assert_eq!(way(apart, Waited::Receive), Way::Read, "there are no bounce buffers between us");
        let unnamed = pull(&mut pulls, 100, &[], None);
        let asked = pulls.choose_way(unnamed, Waited::Receive, BOUNCE_BYTES, |_| panic!("nobody asks"));
        assert_eq!(asked, Way::Ask);
    }

    #[test]
    fn a_piece_sent_ahead_counts_as_far_as_the_receive_has_room() {
        let mut pulls = Pulls::new();
        let key = pull(&mut pulls, 6, &[], Some(3));
        let (peer, bounce, length, _) = pulls.first_piece(key, 10).expect("it was sent ahead");
        assert_eq!((peer, bounce, length), (A, 3, 6));
        pulls.place_first(key, 6);
        assert!(pulls.is_complete(key));
        let nothing_wanted = pull(&mut pulls, 0, &[], Some(3));
        assert!(pulls.first_piece(nothing_wanted, 10).is_none() && pulls.is_complete(nothing_wanted));
    }

    fn span(address: u64, length: u64) -> Span {
        Span { address, length }
    }

    #[test]
    fn a_part_of_scattered_memory_is_found_wherever_it_begins_and_ends() {
        let spans = [span(100, 10), span(200, 0), span(300, 5)];
        let part = |spans: &[Span], offset, length| -> Vec<Span> {
            let part = part_of(9, spans, offset, length);
            assert!(part.iter().all(|piece| piece.key == 9));
            part.into_iter().map(|piece| piece.span).collect()
        };
        assert_eq!(part(&spans, 0, 15), [span(100, 10), span(300, 5)]);
        assert_eq!(part(&spans, 9, 3), [span(109, 1), span(300, 2)]);
        assert_eq!(part(&spans, 10, 5), [span(300, 5)]);
        assert_eq!(part(&spans, 15, 1), []);
        assert_eq!(part(&[span(u64::MAX, u64::MAX)], 1, 2), [span(0, 2)]);
    }
}
