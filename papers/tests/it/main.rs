//! The experiments and `tidegate-paper` from outside.

#[path = "../../../crates/cli/tests/it/manual.rs"]
mod manual;

mod asking;
mod chapter;
mod files;
mod kept_runs;
mod man;
mod opening;
mod parts;
mod statements;
mod workshop;
