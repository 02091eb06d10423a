//! Exchanges of bulk data, run: `world` is the harness with all invariants, `exhaustive` tries every interleaving of
//! small ones, `random` some of larger ones.

mod exhaustive;
mod random;
mod world;
