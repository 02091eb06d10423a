//! The `tidegate` command. See the library for everything.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidegate_cli::main()
}
