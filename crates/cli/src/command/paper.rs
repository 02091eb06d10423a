//! `tidegate paper`: starts `tidegate-paper`, which is a program of its own, because few users want it.

use std::env;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::CommandFactory;

use crate::arguments::{Cli, PaperArguments};
use crate::failure::Failure;
use crate::launcher::look_up;

/// The program.
const PROGRAM: &str = "tidegate-paper";

/// Becomes `tidegate-paper` with the same arguments.
pub fn paper(arguments: &PaperArguments) -> Result<u8, Failure> {
    let words = &arguments.arguments;
    if let Some(program) = find() {
        let error = Command::new(&program).args(words).exec();
        return Err(Failure::start(program.as_os_str(), &error, ""));
    }
    if words.iter().any(|word| word == "--help" || word == "-h") {
        return super::print(help().as_bytes()).map(|()| 0);
    }
    Err(Failure::usage(format!(
        "{PROGRAM}, which reproduces figures of papers, is not installed: in Tidegate's sources `make papers` builds it, \
         and `cargo install --path papers` installs it"
    )))
}

/// Where the program is: beside this command, or else in PATH.
fn find() -> Option<PathBuf> {
    let own = env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(|folder| folder.join(PROGRAM));
    let beside = beside.and_then(|path| look_up(path.as_os_str(), None));
    beside.or_else(|| look_up(OsStr::new(PROGRAM), env::var_os("PATH").as_deref()))
}

fn help() -> String {
    let mut cli = Cli::command();
    cli.build();
    cli.find_subcommand_mut("paper").map_or_else(String::new, |paper| paper.render_long_help().to_string())
}
