//! One pool of slots (`speculative`): small worlds of real [`SlotPool`](tidegate_flow::SlotPool)s and
//! [`Speculation`](tidegate_flow::Speculation)s with networks between them, every interleaving of which is tried
//! (`exhaustive`), and larger ones at random (`random`). `world` has the steps, `check` the rules.

mod check;
mod exhaustive;
mod random;
mod world;
