//! The experiments and `tidegate-paper` from outside.

#[path = "../../../crates/cli/tests/it/manual.rs"]
mod manual;

mod asking;
mod chapter;
mod kept_runs;
mod machines;
mod man;
mod parts;
mod results;
mod statements;
mod workshop;
