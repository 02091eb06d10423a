//! Receive memory with a hard bound.
//!
//! An endpoint keeps memory on behalf of its senders: its mailbox and book-keeping, which are fixed by configuration,
//! and messages that no receive waits for, which are not. *The simple idea*, to store them all, ends with the process
//! being killed; to stop reading when memory runs out ends with a hang, because the message that the program waits for
//! may be behind them. So what memory has no room for stays with its sender, who has it anyway, and the receiver makes
//! a query when it needs it.
//!
//! Every receiver sets aside a *window* for each of its senders. Half of what the fixed part leaves is divided equally,
//! and that base it tells them through the link; the other half is *spare*, and goes to those who need it: the window
//! of a sender whose sends find no room doubles, as far as half of the spare memory reaches. Up to a quarter of that it
//! keeps, as long as half is left, since bursts come again; else it shrinks back as its messages are matched, once none
//! of its envelopes is dropped any more. A message that finds no receive costs an envelope, plus its payload if that
//! travels along. The sender pays when it sends (`room`); the receiver gives back
//! (`Room`) what it matched (`freed`), a quarter of a window at a time. What a sender sent beyond its window is dropped
//! as a violation, so the bound holds whatever peers do, under every scheme. What a peer makes us keep besides, because
//! it does not take what we say, is bounded as well and belongs to the fixed part (`egress::backlog`, `rma::request`).
//!
//! There may be far more senders than the receiver was planned for, such as processes that are spawned: *newcomers*.
//! They are the peers with the last numbers, and have small windows, out of the spare memory. The link tells each of
//! them so, by its place in the receiver's table.
//!
//! Where receive memory is not enough for all senders to have windows at a time, they have them in turns
//! ([`sessions`]).
//!
//! A send that finds no room is *deferred* ([`rooms`]): it stays in its program's buffer, in order, and so do all later
//! ones to that peer, until none is deferred. Rules, per pair of sender and receiver:
//!
//! - W1: stored + freed + room + under way = window; all windows + records + spare = receive memory − fixed part, where
//!   a record has the stored messages of a departed peer whose place another one needs. Why: the bound.
//! - W2: no message may cost more than a quarter of a base window (or one envelope): a larger one goes by a request to
//!   send, which leaves out spans that do not fit. Why: the first deferred send can go as soon as that much is free.
//! - W3: deferred sends leave in order, and none past one that is in doubt (noticed, not acknowledged) or offered. Why:
//!   what is stored is older than what is deferred: non-overtaking.
//! - W4: a *deferral notice* shows each deferred send: it is matched with a receive that is posted, or its envelope is
//!   *dropped*: the receiver keeps a count only. Why: a receive posted before it gets it though there is no room.
//! - W5: a receive that could be met by a dropped envelope, and finds the sender's window nearly used up, makes a
//!   *query* ([`windows`]), one per pair at a time, in order of posting in each queue; with room left, the sender goes
//!   on by itself. Why: a receive posted after it gets it; draining is a stream, not a query per message. Why in each
//!   queue: a receive for several messages may be queried for without an end.
//! - W6: while a receive's query is open an envelope in a deferral notice that it accepts is dropped. Why: the answer
//!   may be an older send.
//! - W7: a query is answered when no send is in doubt, with the first dropped one that fits; it goes to the first
//!   receive that accepts it, among those for which queries were made so far, or back. Why: both sides agree on what is
//!   dropped.

mod asking;
mod deferred;
mod inquiries;
mod meeting;
mod pressure;
mod rooms;
mod sessions;
mod windows;

pub(crate) use inquiries::Inquiry;
pub use pressure::Pressure;
pub(crate) use rooms::{Place, Rooms};
pub(crate) use sessions::{Sessions, Turn};
pub(crate) use windows::{Lent, Windows};
