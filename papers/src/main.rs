//! `tidegate-paper`: reads the arguments of this process, does what they ask, says what failed.

use std::process::ExitCode;

use clap::Parser;
use tidegate_cli::failure::Failure;
use tidegate_link::log::print_line;
use tidegate_papers::{arguments::Arguments, command::paper};

fn main() -> ExitCode {
    let failed = |failure: Failure| {
        print_line(&failure.to_string());
        failure.code
    };
    ExitCode::from(paper(&Arguments::parse()).unwrap_or_else(failed))
}
