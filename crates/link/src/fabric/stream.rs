//! The packets of one direction of a pair, in order and each once, over a network that loses, repeats and reorders.
//!
//! The sender gathers packets in batches, numbers them, and keeps each until the receiver has acknowledged it. At most
//! [`UNACKNOWLEDGED`] are unacknowledged; while they are, packets gather in the next batch, so small messages coalesce
//! without a timer. But who has sent a few short messages may call us no more for a long time, and what has not left by
//! then waits: so after a pause of [`PAUSE`] up to [`BURST`] more batches leave at once. Messages that are carried
//! beside packets (`loading`) are long enough to leave by themselves: more than [`UNACKNOWLEDGED`] of these batches may
//! be under way. All that is unacknowledged has no more than [`UNACKNOWLEDGED_BYTES`].
//!
//! The receiver takes the batches in order, keeps those that come early, and drops what it has had.
//!
//! Invariants: `kept` holds the batches from `acknowledged` on, without a gap; at most `UNACKNOWLEDGED + BURST` of them
//! have ever been sent, of `UNACKNOWLEDGED_BYTES`; behind those are carried messages, which have no more bytes than the
//! pair has for itself and what it has borrowed (`copies`), and as many batches of packets as may be unacknowledged and
//! two (one that is being filled, one for the goodbye).

use super::copies::{Copies, Loan};
use super::wire::{
    BATCH_BYTES, HEADER_BYTES, LOAD_BYTES, LONGEST_BATCH_BYTES, Load, PACKETS_PER_BATCH, PART_MOST, headers,
    push_packet,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tidegate_flow::{Header as PacketHeader, Instant, PACKET_BYTES, Packet, PacketKind};

/// Batches that may be sent and not acknowledged, per pair and direction.
pub const UNACKNOWLEDGED: u64 = 4;
/// Batches that may be sent beyond, after a pause.
pub const BURST: u64 = 60;
/// Nothing has been written to the pair for so long.
const PAUSE: Duration = Duration::from_millis(1);
/// Most bytes that may be sent and not acknowledged. A receiver acknowledges each [`ACKNOWLEDGED_BYTES`], for which its
/// sender is not to wait.
const UNACKNOWLEDGED_BYTES: usize = 32 * LONGEST_BATCH_BYTES;
/// Bytes of carried messages after which the sender may be waiting for an acknowledgement.
pub const ACKNOWLEDGED_BYTES: usize = 64 << 10;
/// Most bytes of carried messages that a pair has for itself; see `copies`.
const OWN_BYTES: usize = 2 * LONGEST_BATCH_BYTES;
/// Packets that batches may bring which come before their turn, with the one for which they wait.
pub const PACKETS_PER_ARRIVAL: usize =
    (UNACKNOWLEDGED as usize + 1) * PACKETS_PER_BATCH + (UNACKNOWLEDGED + BURST) as usize;

/// What a batch of packets says beside its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The sender is closing.
    pub is_closing: bool,
    /// It is the sender's last.
    pub is_last: bool,
    /// A part of a message stands before its packets.
    pub is_loaded: bool,
}

/// Longest message that is carried beside packets while others are under way: longer ones are announced, and their
/// receivers read them, which spares copies.
pub const CARRIED_MOST: usize = 32 << 10;

/// Longest message that is carried while no other is under way to its receiver, over networks that take parts of
/// [`PART_MOST`]: sockets. Then nothing hides that an announcement and a read take three ways, which cost more there
/// than copies.
pub const CARRIED_ALONE_MOST: usize = 64 << 10;

/// What a batch takes beside a part of a carried message: the packet behind it has room, too.
const LOADED_BESIDE: usize = HEADER_BYTES + LOAD_BYTES + PACKET_BYTES;

/// A batch that is being filled, or has been sent and may have to be sent again.
#[derive(Debug)]
struct Kept {
    /// Room for the header, then packets. The network may have it too, while copies are on their way.
    bytes: Arc<Vec<u8>>,
    /// Most bytes that it takes.
    most: usize,
    marks: Marks,
    /// It is to be sent, for the first time or again.
    is_due: bool,
    /// Whether it has ever been sent: then nothing is added to it.
    is_sent: bool,
    /// Copies on their way into the network.
    outstanding: u32,
    /// Pings that had been sent before it was sent last.
    pings_before: u64,
    /// When it was sent last.
    sent_at: Instant,
}

impl Kept {
    /// How many more packets fit.
    fn room(&self) -> usize {
        (self.most - self.bytes.len()) / PACKET_BYTES
    }

    /// Its packets.
    fn packets(&self) -> &[u8] {
        let body = &self.bytes[HEADER_BYTES..];
        if self.marks.is_loaded { Load::split(body).map_or(&[], |(.., packets)| packets) } else { body }
    }
}

/// The sender's side.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Batches before this number have been acknowledged: that of the first kept.
    acknowledged: u64,
    kept: VecDeque<Kept>,
    /// Memory of batches that were acknowledged.
    spare: Vec<Arc<Vec<u8>>>,
    /// Bytes of carried messages, and what is borrowed for those beyond the pair's own.
    carried: usize,
    loan: Option<Loan>,
    /// Batches that may still leave beyond those that always may.
    burst: u64,
    written_at: Instant,
}

/// A batch that is to be sent.
#[derive(Debug)]
pub struct Due<'a> {
    /// Its number.
    pub sequence: u64,
    /// What it says beside its packets.
    pub marks: Marks,
    /// Whether it has been sent before.
    pub is_again: bool,
    /// The whole batch. The header is still to be written.
    pub bytes: &'a mut Arc<Vec<u8>>,
}

#[cfg(test)]
impl Outbox {
    /// As after so many batches.
    pub fn begin_at(&mut self, sequence: u64) {
        self.acknowledged = sequence;
    }
}

#[cfg(test)]
impl Inbox {
    /// As after so many batches.
    pub fn begin_at(&mut self, sequence: u64) {
        self.expected = sequence;
    }
}

impl Outbox {
    /// Something is about to be written.
    pub fn handle_write(&mut self, now: Instant) {
        if now.since(self.written_at) >= PAUSE {
            self.burst = BURST;
        }
        self.written_at = now;
    }

    /// How many packets find room now.
    pub fn room(&self) -> usize {
        let begun = match self.kept.back().filter(|last| !last.is_sent && !last.marks.is_last) {
            Some(last) => last.room(),
            None => 0,
        };
        begun + self.new_batches() * PACKETS_PER_BATCH
    }

    /// Batches that may still be begun.
    fn new_batches(&self) -> usize {
        let sent = self.kept.iter().take_while(|kept| kept.is_sent).count();
        let unsent = self.kept.len() - sent;
        (UNACKNOWLEDGED as usize + 1).saturating_sub(sent.min(UNACKNOWLEDGED as usize) + unsent)
    }

    /// Longest message that is carried now, in parts of up to `part_most` bytes.
    pub fn carries_most(&self, part_most: usize) -> usize {
        if self.carried == 0 && part_most >= PART_MOST { CARRIED_ALONE_MOST } else { CARRIED_MOST }
    }

    /// Adds a message of `length` bytes, in parts, and the packets that follow. `append` copies some of them, by offset
    /// and length, to the end of a batch. Returns whether there is room for it.
    pub fn carry(
        &mut self,
        length: usize,
        part_most: usize,
        copies: &Copies,
        append: impl Fn(usize, usize, &mut Vec<u8>),
    ) -> bool {
        if length == 0 || length > self.carries_most(part_most) {
            return false;
        }
        let parts = length.div_ceil(part_most);
        let taken = length + parts * LOADED_BESIDE;
        // All of them may leave at once: their sender may call us no more for long.
        if self.carried + taken > UNACKNOWLEDGED_BYTES || self.kept.len() + parts >= (UNACKNOWLEDGED + BURST) as usize {
            return false;
        }
        let beyond = (self.carried + taken).saturating_sub(OWN_BYTES);
        if beyond > 0 && !self.loan.get_or_insert_with(|| copies.lend()).resize(beyond) {
            return false;
        }
        self.carried += taken;
        for offset in (0..length).step_by(part_most) {
            let part = part_most.min(length - offset);
            let most = part + LOADED_BESIDE;
            let mut bytes = Vec::with_capacity(most);
            bytes.resize(HEADER_BYTES, 0);
            let load = Load { part: part as u32, rest: (length - offset - part) as u32 };
            bytes.extend_from_slice(&load.to_bytes());
            append(offset, part, &mut bytes);
            self.begin(Marks { is_loaded: true, ..Marks::default() }, Arc::new(bytes), most);
        }
        true
    }

    /// Adds a packet, for which there is [room](Self::room).
    pub fn push(&mut self, packet: &Packet) {
        let is_open = |last: &Kept| !last.is_sent && !last.marks.is_last && last.room() > 0;
        if !self.kept.back().is_some_and(is_open) {
            self.begin_packets(Marks::default());
        }
        if let Some(last) = self.kept.back_mut() {
            push_packet(Arc::make_mut(&mut last.bytes), packet);
        }
    }

    fn begin_packets(&mut self, marks: Marks) {
        let mut bytes = self.spare.pop().unwrap_or_else(|| Arc::new(Vec::with_capacity(BATCH_BYTES)));
        let begun = Arc::make_mut(&mut bytes);
        begun.clear();
        begun.resize(HEADER_BYTES, 0);
        self.begin(marks, bytes, BATCH_BYTES);
    }

    fn begin(&mut self, marks: Marks, bytes: Arc<Vec<u8>>, most: usize) {
        let (outstanding, pings_before, sent_at) = (0, 0, Instant::default());
        self.kept.push_back(Kept {
            bytes,
            most,
            marks,
            is_due: true,
            is_sent: false,
            outstanding,
            pings_before,
            sent_at,
        });
    }

    /// Says this with the last packets, or behind them if they have left.
    pub fn mark(&mut self, marks: Marks) {
        match self.kept.back_mut().filter(|last| !last.is_sent) {
            Some(last) => {
                last.marks.is_closing |= marks.is_closing;
                last.marks.is_last |= marks.is_last;
            }
            None => self.begin_packets(marks),
        }
    }

    /// The next batch to send.
    pub fn poll_due(&mut self) -> Option<Due<'_>> {
        let at = self.kept.iter().position(|kept| kept.is_due)?;
        let first = &self.kept[at];
        let is_beyond = !first.is_sent && self.is_beyond(at);
        let is_allowed = (self.burst > 0 || first.marks.is_loaded) && (at as u64) < UNACKNOWLEDGED + BURST;
        if is_beyond && (!is_allowed || self.is_too_much(at)) {
            return None;
        }
        let (sequence, kept) = (self.acknowledged + at as u64, &mut self.kept[at]);
        let (marks, is_again) = (kept.marks, kept.is_sent);
        if is_beyond
            && !marks.is_loaded
            && let Some(bytes) = Arc::get_mut(&mut kept.bytes)
        {
            // One of a burst: it has no more memory than it needs.
            bytes.shrink_to_fit();
        }
        Some(Due { sequence, marks, is_again, bytes: &mut kept.bytes })
    }

    /// Whether enough batches before this one wait to be acknowledged for it to gather packets. Carried messages, which
    /// are acknowledged by their bytes, hold up no batch of packets.
    fn is_beyond(&self, at: usize) -> bool {
        let counts = |kept: &&Kept| self.kept[at].marks.is_loaded || !kept.marks.is_loaded;
        self.kept.iter().take(at).filter(counts).count() >= UNACKNOWLEDGED as usize
    }

    /// Whether this batch, with those before it, is more than may be unacknowledged. Of packets that is no more than in
    /// full batches of them.
    fn is_too_much(&self, at: usize) -> bool {
        let are_many = || self.bytes_to(at, |kept| !kept.marks.is_loaded) > UNACKNOWLEDGED as usize * BATCH_BYTES;
        self.bytes_to(at, |_| true) > UNACKNOWLEDGED_BYTES || (!self.kept[at].marks.is_loaded && are_many())
    }

    /// Bytes of those batches up to this one that count.
    fn bytes_to(&self, last: usize, counts: impl Fn(&&Kept) -> bool) -> usize {
        self.kept.iter().take(last + 1).filter(counts).map(|kept| kept.bytes.len()).sum()
    }

    /// The number of the first batch that has not been acknowledged.
    pub fn first(&self) -> u64 {
        self.acknowledged
    }

    fn find(&mut self, sequence: u64) -> Option<&mut Kept> {
        let at = usize::try_from(sequence.checked_sub(self.acknowledged)?).ok()?;
        self.kept.get_mut(at)
    }

    /// Since when the first batch has waited to be acknowledged, if it was sent and need not be sent again.
    pub fn unacknowledged_since(&self) -> Option<Instant> {
        self.kept.front().filter(|first| first.is_sent && !first.is_due).map(|first| first.sent_at)
    }

    /// The network has taken a batch, after so many pings.
    pub fn handle_taken(&mut self, sequence: u64, pings: u64, now: Instant) {
        let at = sequence.saturating_sub(self.acknowledged) as usize;
        let is_beyond = at < self.kept.len() && self.is_beyond(at);
        if let Some(kept) = self.find(sequence) {
            let is_burst = is_beyond && !kept.is_sent && !kept.marks.is_loaded;
            (kept.is_due, kept.is_sent, kept.pings_before, kept.sent_at) = (false, true, pings, now);
            kept.outstanding += 1;
            if is_burst {
                self.burst = self.burst.saturating_sub(1);
            }
        }
    }

    /// A copy of a batch has left, or has failed to: then whatever was on its way may be lost with it.
    pub fn handle_ended(&mut self, sequence: u64, has_failed: bool) {
        if let Some(kept) = self.find(sequence) {
            kept.outstanding = kept.outstanding.saturating_sub(1);
        }
        if has_failed {
            self.resend(u64::MAX);
        }
    }

    /// Sends again what was sent before this ping (the first has number 1), and is not on its way into the network.
    /// Returns whether there is anything.
    pub fn resend(&mut self, ping: u64) -> bool {
        let mut any = false;
        for kept in self.kept.iter_mut().filter(|kept| kept.is_sent && kept.pings_before < ping) {
            kept.is_due |= kept.outstanding == 0;
            any |= kept.is_due;
        }
        any
    }

    /// All batches before this one have come. Returns whether that is news; `None`: it cannot be true.
    pub fn handle_acknowledgement(&mut self, acknowledged: u64) -> Option<bool> {
        let sent = self.kept.iter().take_while(|kept| kept.is_sent).count() as u64;
        if acknowledged > self.acknowledged + sent {
            return None;
        }
        let is_news = acknowledged > self.acknowledged;
        while self.acknowledged < acknowledged {
            self.acknowledged += 1;
            let Some(mut kept) = self.kept.pop_front() else { break };
            if kept.marks.is_loaded {
                self.carried -= kept.most;
            } else if self.spare.len() < 2
                && Arc::get_mut(&mut kept.bytes).is_some_and(|bytes| bytes.capacity() >= BATCH_BYTES)
            {
                self.spare.push(kept.bytes);
            }
        }
        if let Some(loan) = &mut self.loan {
            loan.resize(self.carried.saturating_sub(OWN_BYTES));
        }
        Some(is_news)
    }

    /// Whether packets of messages have not been acknowledged: more than what flow control tells.
    pub fn has_messages(&self) -> bool {
        self.kept.iter().any(|kept| kept.marks.is_loaded)
            || self.headers().any(|header| header.kind() == PacketKind::Data)
    }

    /// The headers of the packets that have not been acknowledged.
    pub fn headers(&self) -> impl Iterator<Item = PacketHeader> {
        self.kept.iter().flat_map(|kept| headers(kept.packets()))
    }

    /// Whether everything has been acknowledged.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.kept.clear();
        self.spare.clear();
        (self.carried, self.loan) = (0, None);
    }

    /// Most bytes that an outbox takes for batches, loans apart; those of a burst have no more together than they need.
    pub const BYTES_MOST: usize =
        OWN_BYTES + (UNACKNOWLEDGED as usize + 2 + 2) * BATCH_BYTES + BURST as usize * size_of::<Kept>();
}

/// A batch that has come before its turn.
#[derive(Debug)]
struct Early {
    body: Vec<u8>,
    marks: Marks,
}

/// The receiver's side.
#[derive(Debug, Default)]
pub struct Inbox {
    /// The number of the batch whose turn it is.
    expected: u64,
    /// Batches behind that one, by their distance from it less one.
    early: VecDeque<Option<Early>>,
}

/// What became of a batch that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It was its turn.
    InOrder,
    /// It waits for those before it.
    Early,
    /// It had come before.
    Again,
    /// No correct peer sends it.
    Wrong,
}

impl Inbox {
    /// The number of the batch whose turn it is: what we acknowledge.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// Takes a batch. `window`: bytes of carried messages that the sender may have under way. `deliver` gets the bodies
    /// and marks of those whose turn it is, in order.
    pub fn handle(
        &mut self,
        sequence: u64,
        marks: Marks,
        body: &[u8],
        window: usize,
        mut deliver: impl FnMut(&[u8], Marks),
    ) -> Taken {
        let Some(ahead) = sequence.checked_sub(self.expected) else { return Taken::Again };
        if ahead >= UNACKNOWLEDGED + BURST {
            return Taken::Wrong;
        }
        if ahead > 0 {
            let at = ahead as usize - 1;
            if self.early.get(at).is_some_and(Option::is_some) {
                return Taken::Again;
            }
            let early = self.early.iter().flatten().filter(|early| early.marks.is_loaded == marks.is_loaded);
            let bytes = body.len() + early.map(|early| early.body.len()).sum::<usize>();
            let most = match marks.is_loaded {
                true => window.min(UNACKNOWLEDGED_BYTES),
                false => UNACKNOWLEDGED as usize * BATCH_BYTES,
            };
            if bytes > most {
                return Taken::Wrong;
            }
            if self.early.len() <= at {
                self.early.resize_with(at + 1, || None);
            }
            let place = &mut self.early[at];
            *place = Some(Early { body: body.to_vec(), marks });
            return Taken::Early;
        }
        deliver(body, marks);
        self.expected += 1;
        while let Some(next) = self.early.pop_front() {
            // The place in front is always that of the batch whose turn it is.
            let Some(next) = next else { break };
            deliver(&next.body, next.marks);
            self.expected += 1;
        }
        Taken::InOrder
    }

    /// Most bytes that an inbox takes for batches.
    pub const BYTES_MOST: usize = UNACKNOWLEDGED_BYTES + UNACKNOWLEDGED as usize * BATCH_BYTES;
}

#[cfg(test)]
mod tests;
