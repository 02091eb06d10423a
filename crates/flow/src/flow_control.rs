//! [`FlowControl`]: the scheme chosen, as its users see it.

use crate::scheme::chosen::{Chosen, Other, of_chosen, out_of_line};
use crate::scheme::interface::Scheme;
use crate::{
    Answer, Config, ConfigError, Control, Credits, Inspection, Instant, Packet, PeerId, Posting, SchemeStats, Violation,
};

/// Flow control of one endpoint towards all its peers, in both roles: as a sender it holds credits at each peer, as a
/// receiver it lends the slots of its own mailbox.
///
/// Order of calls:
/// * to send data: [`request`](Self::request) credits, write that many packets, [`give_back`](Self::give_back) the
///   rest, or tell [`handle_refused`](Self::handle_refused) that the link has refused one; as data packets leave, offer
///   the last of those that are granted together to [`before_send`](Self::before_send), and never discard it then;
/// * for every packet taken out of the mailbox, whatever its kind: [`handle_retrieved`](Self::handle_retrieved), once;
/// * when the moment that [`next_timeout`](Self::next_timeout) names has come:
///   [`handle_timeout`](Self::handle_timeout), then go on sending to the peers that [`poll_ready`](Self::poll_ready)
///   names;
/// * after each of these, write what [`poll_control`](Self::poll_control) returns until it returns `None`. Control
///   packets always fit into the peer's mailbox; under schemes whose receivers post buffers they may be refused, which
///   [`handle_control_refused`](Self::handle_control_refused) is told;
/// * there, also hand what [`poll_posting`](Self::poll_posting) returns to whoever keeps the posted buffers, and tell
///   [`handle_limit_reached`](Self::handle_limit_reached) when that says so.
///
/// What is kept of a peer is allocated at the first contact with it; a silent one costs a few bytes. A [`PeerId`] that
/// is not in `0..Config::peers` panics, except in [`handle_retrieved`](Self::handle_retrieved), where it comes out of a
/// packet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FlowControl {
    scheme: Chosen,
}

impl FlowControl {
    /// The initial state of an endpoint. Errors name the parameter to change (P eq. 2).
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        Ok(FlowControl { scheme: Chosen::new(config, config.regions()?) })
    }

    /// The initial state of an endpoint whose data region has `data` slots in all, whatever `config.slots_per_peer`
    /// makes of it, for explorers: see [`Config::regions_with_data`].
    #[doc(hidden)]
    pub fn with_data_region(config: &Config, data: u32) -> Result<Self, ConfigError> {
        Ok(FlowControl { scheme: Chosen::new(config, config.regions_with_data(data)?) })
    }

    /// Asks for credits for up to `wanted` data packets to `to`. The sender has to wait also while a control packet to
    /// `to` waits for a credit (control goes before data).
    #[inline(always)]
    pub fn request(&mut self, to: PeerId, wanted: u32, now: Instant) -> Answer {
        of_chosen!(&mut self.scheme, request(to, wanted, now))
    }

    /// The same for packets of a message that has waited, because an earlier answer was not [`Answer::Packets`], or
    /// behind such a message.
    #[cold]
    #[inline(never)]
    pub fn request_after_waiting(&mut self, to: PeerId, wanted: u32, now: Instant) -> Answer {
        of_chosen!(&mut self.scheme, request_after_waiting(to, wanted, now))
    }

    /// Whether a short message that would have to wait behind others had better be announced by a request to send, as
    /// after [`Answer::Announce`].
    #[inline]
    pub fn announces_behind_others(&self) -> bool {
        of_chosen!(&self.scheme, announces_behind_others())
    }

    /// Returns credits that were granted and not used (the link could not take the packet). Credits of a peer that is
    /// [`reset`](Self::reset) must come back before that.
    #[inline]
    pub fn give_back(&mut self, to: PeerId, credits: Credits) {
        of_chosen!(&mut self.scheme, give_back(to, credits))
    }

    /// The link has refused a packet to `to`, as no buffer was posted for it; `credits` are those that were granted and
    /// not used, one of them for that packet. The packet stays with the caller, who asks again when
    /// [`poll_ready`](Self::poll_ready) names `to`, or in a while where the scheme [is not timed](Self::is_timed).
    #[cold]
    pub fn handle_refused(&mut self, to: PeerId, credits: Credits, now: Instant) {
        of_chosen!(&mut self.scheme, handle_refused(to, credits, now))
    }

    /// The link has refused a control packet, as no buffer was posted for it. Returns the packet if the caller is to
    /// try it again.
    #[cold]
    pub fn handle_control_refused(&mut self, control: Control, now: Instant) -> Option<Control> {
        of_chosen!(&mut self.scheme, handle_control_refused(control, now))
    }

    /// A packet that the link had taken found no buffer at `by`. The link has it, and writes it again.
    #[cold]
    pub fn handle_late_refusal(&mut self, by: PeerId, now: Instant) {
        of_chosen!(&mut self.scheme, handle_late_refusal(by, now))
    }

    /// Data packets are about to leave for `to`, of which this is the last; `left` packets follow them that are covered
    /// by the same credits. Lets credits ride on the packet if the scheme piggybacks, there are any to return, and it
    /// has room; marks it if it ends a buffer. From then on the packet must reach `to`: the credits are on it and
    /// nowhere else. Returns how many ride.
    #[inline(always)]
    pub fn before_send(&mut self, to: PeerId, packet: &mut Packet, left: u32) -> u32 {
        of_chosen!(&mut self.scheme, before_send(to, packet, left))
    }

    /// A packet from `from` was taken out of the mailbox. Reads header, credits and piggyback; the payload is the
    /// caller's. Returns the credits towards `from` gained, so the caller knows to resume sends that wait. A malformed
    /// or impossible packet (more credits than the data region has) is an error and changes nothing.
    #[inline(always)]
    pub fn handle_retrieved(&mut self, from: PeerId, packet: &Packet) -> Result<u32, Violation> {
        of_chosen!(&mut self.scheme, handle_retrieved(from, packet))
    }

    /// A data packet of several slots from `from` was taken out of the mailbox, on the last of which credits may ride:
    /// counts as so many packets. As [`handle_retrieved`](Self::handle_retrieved).
    #[inline(never)]
    pub fn handle_retrieved_long(&mut self, from: PeerId, slots: u32, last: &Packet) -> Result<u32, Violation> {
        // The last alone can be malformed, and then nothing is to have changed.
        let gained = self.handle_retrieved(from, last)?;
        of_chosen!(&mut self.scheme, handle_retrieved_slots(from, slots - 1))?;
        Ok(gained)
    }

    /// The next control packet to write, if any.
    #[inline]
    pub fn poll_control(&mut self) -> Option<Control> {
        if self.has_control() { of_chosen!(&mut self.scheme, next_control()) } else { None }
    }

    /// The next thing to do with the buffers that we have posted, if any.
    #[inline]
    pub fn poll_posting(&mut self) -> Option<Posting> {
        of_chosen!(&mut self.scheme, poll_posting())
    }

    /// In our pool of buffers fewer are left than the limit (A §3).
    #[cold]
    pub fn handle_limit_reached(&mut self) {
        of_chosen!(&mut self.scheme, handle_limit_reached())
    }

    /// Whether [`poll_control`](Self::poll_control) and [`poll_posting`](Self::poll_posting) are to be called at all.
    #[inline(always)]
    pub fn has_control(&self) -> bool {
        of_chosen!(&self.scheme, has_control())
    }

    /// Whether the scheme acts on time, so that what is told as `now` must be the present. None of P's schemes does.
    #[inline]
    pub fn is_timed(&self) -> bool {
        of_chosen!(&self.scheme, is_timed())
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called at the latest; `None`: only packets matter.
    #[inline]
    pub fn next_timeout(&self) -> Option<Instant> {
        of_chosen!(&self.scheme, next_timeout())
    }

    /// Whether something was refused, a message or a packet of the scheme's own, and is to be tried again when its
    /// timer has run out.
    #[inline]
    pub fn is_retrying(&self) -> bool {
        of_chosen!(&self.scheme, is_retrying())
    }

    /// Does what was due until `now`. Calling it early, or when nothing is due, changes nothing.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant) {
        of_chosen!(&mut self.scheme, handle_timeout(now))
    }

    /// A peer towards which sends that wait may go on, because time has passed.
    #[inline]
    pub fn poll_ready(&mut self) -> Option<PeerId> {
        of_chosen!(&mut self.scheme, poll_ready())
    }

    /// Forgets everything about a peer that died or left, after its last packet was retrieved: both roles return to
    /// the initial state, for another process to take the place.
    pub fn reset(&mut self, peer: PeerId) {
        of_chosen!(&mut self.scheme, reset(peer))
    }

    /// Packets that may leave for `to` now, as far as flow control goes; `u32::MAX` under `none`.
    #[inline]
    pub fn credits(&self, to: PeerId) -> u32 {
        of_chosen!(&self.scheme, credits(to))
    }

    /// How often `to` had no buffer for a message of ours, as its link has told at once, since something left for it:
    /// 0, 1, or more often (2).
    pub fn refusals(&self, to: PeerId) -> u8 {
        of_chosen!(&self.scheme, refusals(to))
    }

    /// Bytes of book-keeping that this value occupies when all peers have been contacted, heap included.
    pub fn bookkeeping_bytes(&self) -> usize {
        size_of::<Self>() + of_chosen!(&self.scheme, heap_bytes())
    }

    /// How often the scheme did what matters to its cost, since the start.
    #[inline]
    pub fn tally(&self) -> SchemeStats {
        of_chosen!(&self.scheme, tally())
    }

    /// Under `dynamic` moves a sender to the front of the low list, where P §6.5.2 says that a victim of a theft could
    /// go. The papers' program compares that with the medium list; the product has no use for it.
    #[doc(hidden)]
    pub fn move_to_low(&mut self, peer: PeerId) {
        of_chosen!(&mut self.scheme, move_to_low(peer));
    }

    /// A copy of the state, for displays and checkers of invariants. Allocates.
    pub fn inspect(&self) -> Inspection {
        let mut inspection = Inspection::new(self.scheme.name());
        of_chosen!(&self.scheme, inspect(&mut inspection));
        inspection
    }
}
