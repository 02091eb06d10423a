//! [`Scheme`]: what one kind of flow control has to say. A scheme is one file (or folder) that implements the trait,
//! and one row of the [table](super::table).

use crate::{
    Answer, Config, Control, Credits, Inspection, Instant, Packet, PacketKind, PeerId, Posting, Regions, SchemeStats,
    Violation,
};

/// The decisions of one kind of flow control, for one endpoint in both of its roles. The defaults are those of `none`:
/// everybody may always send. [`FlowControl`](crate::FlowControl) says when each method is called.
pub(crate) trait Scheme {
    /// The initial state. What is kept of a peer is allocated at the first contact with it.
    fn new(config: &Config, regions: Regions) -> Self;

    /// May up to `wanted` data packets leave for `to`?
    #[inline(always)]
    fn request(&mut self, _to: PeerId, wanted: u32, _now: Instant) -> Answer {
        Answer::Packets(Credits::new(wanted))
    }

    /// The same for a message that has waited in the backlog.
    #[inline]
    fn request_after_waiting(&mut self, to: PeerId, wanted: u32, now: Instant) -> Answer {
        self.request(to, wanted, now)
    }

    /// Whether a short message had better be announced, instead of waiting behind others.
    #[inline]
    fn announces_behind_others(&self) -> bool {
        false
    }

    /// Credits that were granted and not used.
    #[inline]
    fn give_back(&mut self, _to: PeerId, credits: Credits) {
        credits.into_count();
    }

    /// The packet that the first of these credits was for found no buffer at `to`; the others were not used. The packet
    /// is still with the caller, who asks again.
    fn handle_refused(&mut self, to: PeerId, credits: Credits, _now: Instant) {
        self.give_back(to, credits);
    }

    /// The link has refused a control packet, as there is no buffer for it. Returns it if it is to be tried again as it
    /// is; `None`: the scheme makes another in its time.
    fn handle_control_refused(&mut self, control: Control, _now: Instant) -> Option<Control> {
        Some(control)
    }

    /// A packet that was written found no buffer at `by`; the link writes it again. A scheme may let later packets to
    /// `by` wait meanwhile.
    fn handle_late_refusal(&mut self, _by: PeerId, _now: Instant) {}

    /// Data packets are about to leave, of which this is the last; `left` packets are to follow them that were granted
    /// together with them. Credits may ride on it. Returns how many do.
    #[inline(always)]
    fn before_send(&mut self, _to: PeerId, _packet: &mut Packet, _left: u32) -> u32 {
        0
    }

    /// A packet was retrieved. Returns the credits gained towards its sender. The default takes plain data only: where
    /// nothing is lent, no correct peer sends anything else.
    #[inline(always)]
    fn handle_retrieved(&mut self, _from: PeerId, packet: &Packet) -> Result<u32, Violation> {
        if packet.header.is_plain_data() { Ok(0) } else { Err(Violation::Unexpected) }
    }

    /// So many slots of plain data were retrieved, as though each were a packet; schemes may do at once what comes of
    /// it.
    #[inline]
    fn handle_retrieved_slots(&mut self, from: PeerId, slots: u32) -> Result<(), Violation> {
        let packet = Packet::new(PacketKind::Data, 0, 0);
        (0..slots).try_for_each(|_| self.handle_retrieved(from, &packet).map(drop))
    }

    /// In the receiver's pool fewer buffers are left than the limit.
    fn handle_limit_reached(&mut self) {}

    /// Whether there may be a control packet to write, or buffers to post: asked with each packet, so it looks at one
    /// number.
    #[inline(always)]
    fn has_control(&self) -> bool {
        false
    }

    /// The next control packet to write, where [`has_control`](Self::has_control) says that there may be one.
    fn next_control(&mut self) -> Option<Control> {
        None
    }

    /// The next thing to do with posted buffers, where [`has_control`](Self::has_control) says that there may be one.
    fn poll_posting(&mut self) -> Option<Posting> {
        None
    }

    /// Whether the scheme acts on time.
    #[inline]
    fn is_timed(&self) -> bool {
        false
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    #[inline]
    fn next_timeout(&self) -> Option<Instant> {
        None
    }

    /// Whether something was refused, a credit packet perhaps, and is to be tried again.
    #[inline]
    fn is_retrying(&self) -> bool {
        self.next_timeout().is_some()
    }

    /// Does what was due until `now`.
    #[inline]
    fn handle_timeout(&mut self, _now: Instant) {}

    /// A peer towards which sends that wait may go on, because time has passed.
    #[inline]
    fn poll_ready(&mut self) -> Option<PeerId> {
        None
    }

    /// Back to the initial state towards one peer.
    fn reset(&mut self, _peer: PeerId) {}

    /// Packets that may leave for `to` now.
    #[inline]
    fn credits(&self, _to: PeerId) -> u32 {
        u32::MAX
    }

    /// How often `to` had no buffer for a message, since something left for it: 0, 1, or more often (2).
    fn refusals(&self, _to: PeerId) -> u8 {
        0
    }

    /// Most bytes of heap: those of all peers, once all have been contacted.
    fn heap_bytes(&self) -> usize {
        0
    }

    /// How often it did what matters to its cost.
    #[inline]
    fn tally(&self) -> SchemeStats {
        SchemeStats::default()
    }

    /// See [`FlowControl::move_to_low`](crate::FlowControl::move_to_low).
    fn move_to_low(&mut self, _peer: PeerId) {}

    /// Fills in what the scheme has of a state that is shown.
    fn inspect(&self, _into: &mut Inspection) {}
}
