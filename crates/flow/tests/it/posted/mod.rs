//! Posted buffers (`rnr`, `preposted`, `growing`, `shared_window`), run: small worlds of endpoints with the real
//! `FlowControl` and the real parts of an adapter, under a link that refuses at once and under one that refuses late.
//!
//! `layout` says what a world is made of, `parts` what moves in it, `world` is the harness, `check` the invariants,
//! `explore` walks every interleaving. The rest are the tests.

mod check;
mod explore;
mod layout;
mod parts;
mod world;

mod exhaustive;
mod hostile;
mod rules;
mod traffic;
