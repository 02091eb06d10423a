//! Decisions of flow control: who may send how many packets to whom.
//!
//! This crate does no I/O: no clock, no system call, no thread, no `unsafe`. Packets that arrived and the time come in
//! as arguments, control packets to send and the time of the next call go out as return values.
//!
//! [`FlowControl`] is the whole interface. Behind it, `scheme/interface.rs` says what a scheme is and `scheme/table.rs`
//! lists them all; each is one file or folder:
//!
//! * `scheme/none.rs`: no flow control;
//! * `scheme/static_credits.rs`: every sender owns an equal share of the mailbox (P §5);
//! * `scheme/dynamic/`: shares move to the senders that use them (P §6), a file per mechanism;
//! * `scheme/rnr.rs`: posted buffers, and no accounting: what finds none is refused and sent again (L §4.1);
//! * `scheme/preposted.rs`: posted buffers for each connection, and a credit for each (L §4.2);
//! * `scheme/growing.rs`: the same, and connections get more buffers while they need them (L §4.3);
//! * `scheme/shared_window.rs`: one pool of posted buffers for all, as large as bursts have shown it to need (A §3);
//! * `scheme/speculative.rs`: one pool of slots for all, who send at once; what finds no slot is invited when there is
//!   room (our own);
//! * `scheme/refuse_third.rs`: for tests, every third packet is refused and tried again after a time.
//!
//! Beside them, what they share: [`packet`] (what a slot holds), [`Peers`] (states of those who talk), `config` (the
//! user's choice and P eq. 2), `threshold` (P eq. 1 and 5), `credit` (credits as move-only values), `control_queue`
//! (control packets that wait to be written), `violation` (packets that no correct peer sends), `inspect` (a copy of
//! the state for displays and checkers), `time`. Those with buffers share `buffers` (the user's choice), `filling`
//! (which packets lie in one buffer), `retries` (the timers of refused messages), `unaccounted` (senders without
//! credits) and [`adapter`] (who keeps posted buffers, refuses, and sends again).
//! P is Prades, Silla, Duato: the paper on end-to-end flow control in the EXTOLL network. L is Liu, Panda: the paper on
//! flow control schemes in MPI over InfiniBand. A is Sur, Koop, Panda: the paper on adaptive receiver window scaling.

#![forbid(unsafe_code)]

pub mod adapter;
pub mod packet;

mod buffers;
mod config;
mod control_queue;
mod credit;
mod filling;
mod flow_control;
mod inspect;
mod peers;
mod retries;
mod scheme;
mod scheme_stats;
mod threshold;
mod time;
mod unaccounted;
mod violation;

pub use adapter::{Arrived, Posting, ReceiveQueues, SendQueue, SlotPool, Speculation, WINDOW_MOST};
pub use buffers::{
    BUFFER_BYTES_MOST, BUFFER_PACKETS_MOST, BufferField, Buffers, GROWN_BUFFERS_MOST, Growth, POOL_BUFFERS_MOST,
    RETRY_TIMER_LEAST, RETRY_TIMER_MOST, UnfitBuffers,
};
pub use config::{Config, ConfigError, MAILBOX_SLOTS_MAX, Names, PEERS_MAX, Regions};
pub use credit::{Answer, Credits};
pub use flow_control::FlowControl;
pub use inspect::{Activity, Inspection, PeerInspection};
pub use packet::{
    Control, Header, MOST_SLOTS_PER_PACKET, PACKET_BYTES, PAYLOAD_BYTES, Packet, PacketKind, PeerId, Placement,
};
pub use peers::{Initial, Peers};
pub use scheme::table::{ReceiverResource, SchemeName, UnknownScheme};
pub use scheme_stats::SchemeStats;
pub use threshold::slots_without_stall;
pub use time::Instant;
pub use violation::Violation;
