//! The protocol, run: small worlds of endpoints and channels around the real `FlowControl`, through its public
//! interface only.
//!
//! `world` is the harness, `checker` the invariants, `explore` walks every interleaving; `posted` has its own, for
//! schemes whose receivers post buffers, and `pool` for one pool of slots. The rest are the tests.

mod checker;
mod explore;
mod world;

mod break_even;
mod configuration;
mod exhaustive;
mod hostile;
mod literal;
mod long_packets;
mod pool;
mod posted;
mod random_traffic;
mod sameness;
mod stealing;
mod trace;
