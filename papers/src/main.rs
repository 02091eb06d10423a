//! `tidegate-paper`. The library of this crate does everything.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidegate_papers::main()
}
