//! `tidegate completions`.

use clap::CommandFactory;

use crate::arguments::{Cli, CompletionsArguments};
use crate::failure::Failure;

/// Prints a completion script.
pub fn completions(arguments: &CompletionsArguments) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "tidegate", &mut script);
    super::print(&script)?;
    Ok(0)
}
