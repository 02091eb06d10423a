//! What must hold in every run, checked while it goes on.
//!
//! * `ledger.rs`: every packet written is retrieved once, in order per pair; credits are conserved; credit packets fit
//!   their slots. It also collects what `simulation/interfaces.rs` finds: mailboxes never overflow under credits;
//! * `liveness.rs`: when nothing can move any more, who waits for whom;
//! * `bounds.rs`: times that no run can beat, to stand beside measured ones.

mod bounds;
mod ledger;
mod liveness;

pub use bounds::{Bounds, round_trip_bound};
pub(crate) use ledger::Holder;
pub use ledger::Ledger;
pub use liveness::{Deadlock, Wait, Waiter};
