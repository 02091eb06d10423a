//! `speculative`: one pool of slots for all senders, who send at once (our own; speculative reservation, as networks
//! know it, between endpoints).
//!
//! P's mailbox has at least two slots for each credit slot of each peer, whether it ever sends or not (eq. 2), which
//! are 293.5 MiB at 256 Ki processes. A's pool serves whoever comes, and pays with refusals that wait for a timer: an
//! incast takes several times as long. Here there is one pool, as in A, and no timer:
//!
//! * whoever has a packet sends it, without asking: where the pool has room, flow control does nothing at all;
//! * a packet that finds the pool empty stays with its sender (its adapter, its link, or the call that would have
//!   written it), which is *marked* at the receiver and sends nothing more to it;
//! * as slots come free, they are kept for marked senders, in order, and each is *invited* when there are as many as it
//!   has use for. It comes, and finds them.
//!
//! So the memory follows what is under way at a time and not who exists; a sender that waits costs a word, one that has
//! nothing to send nothing; and each packet is sent twice at most for each invitation.
//!
//! All that is decided is decided at the receiver, where packets arrive: [`SlotPool`](crate::SlotPool) has the rules
//! and why they hold, for whoever plays the adapter: interfaces of the simulator, links to other hosts. Over shared
//! memory there is no way on which a packet could be refused: the writer takes slots from a word of the pool, and marks
//! itself in a word of its own, from which it takes what is kept for it (`mailbox/slot_pool.rs` in `tidegate-link`).
//! Nothing is left for the sender's flow control, as under `none`; it counts refusals.
//!
//! **Why not by request.** The other way is to ask first and send then: a sender that has sent nothing for a while
//! waits for an answer before each message, also where there is room, unless credits lie with it that another may want.
//! In a program whose partners change that is every message. (`tidegate paper ours` has both sides of the choice.)

use super::interface::Scheme;
use crate::{Config, Instant, Packet, PeerId, Regions, SchemeStats};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Speculative {
    refusals: SchemeStats,
}

impl Scheme for Speculative {
    fn new(_config: &Config, _regions: Regions) -> Self {
        Speculative { refusals: SchemeStats::default() }
    }

    /// Marks the last packet of what was granted together: where packets have to be acknowledged, that is when.
    #[inline(always)]
    fn before_send(&mut self, _to: PeerId, packet: &mut Packet, left: u32) -> u32 {
        if left == 0 {
            packet.header = packet.header.ending_buffer();
        }
        0
    }

    fn handle_late_refusal(&mut self, _by: PeerId, _now: Instant) {
        self.refusals.refusals += 1;
        self.refusals.retries += 1;
    }

    fn tally(&self) -> SchemeStats {
        self.refusals
    }
}
