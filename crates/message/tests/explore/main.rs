//! Every interleaving of small programs, on the endpoint's own code.
//!
//! `layout` says what is explored, `actor` runs one endpoint with its program, `machine` remembers the steps of an endpoint so
//! that each is run once, `search` goes through all states of the world, `judge` knows what MPI allows at the end.

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports)]
mod support;

mod actor;
mod judge;
mod layout;
mod machine;
mod programs;
mod random_programs;
mod search;
