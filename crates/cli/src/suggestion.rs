//! The nearest name to one that is unknown: of a command of `tidegate`, or of a program in `PATH`.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Error};

use crate::arguments::Cli;
use crate::launcher::{is_launcher, look_up};

/// The error of a command line, with the command that may have been meant where it names one that is unknown.
pub fn with_suggestion(mut error: Error) -> Error {
    if error.kind() != ErrorKind::InvalidSubcommand || error.get(ContextKind::SuggestedSubcommand).is_some() {
        return error;
    }
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let meant = if is_launcher(OsStr::new(wrong)) { Some("run".to_owned()) } else { nearest_command(wrong) };
    if let Some(meant) = meant {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![meant]));
    }
    error
}

/// The command whose name is nearest, if one is near.
fn nearest_command(wrong: &str) -> Option<String> {
    let command = Cli::command();
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    nearest(wrong, names.into_iter())
}

/// The name that is the fewest letters away, two at most, and no more than a third of its own.
fn nearest(wrong: &str, names: impl Iterator<Item = String>) -> Option<String> {
    let far = |name: &String| strsim::osa_distance(&wrong.to_lowercase(), name);
    let near = names.map(|name| (far(&name), name)).filter(|(far, name)| *far <= 2 && 3 * far <= name.chars().count());
    near.min().map(|(_, name)| name)
}

/// The end of a sentence on a program that was not found: where it was looked for, and which one has nearly its name.
pub fn of_program(program: &OsStr) -> String {
    if program.as_bytes().contains(&b'/') {
        return String::new();
    }
    let Some(search) = env::var_os("PATH").filter(|path| !path.is_empty()) else {
        return ": there is no PATH to look in, so give its path".to_owned();
    };
    if PathBuf::from(program).is_file() {
        return format!(": it is not in PATH, but in this folder: ./{}", program.display());
    }
    let programs = env::split_paths(&search).filter_map(|folder| folder.read_dir().ok()).flatten().flatten();
    let names = programs.filter_map(|entry| entry.file_name().into_string().ok());
    let meant =
        nearest(&program.to_string_lossy(), names).filter(|name| look_up(OsStr::new(name), Some(&search)).is_some());
    let meant = meant.map_or_else(String::new, |name| format!("; did you mean {name}?"));
    let module = if is_launcher(program) { ", or load the module of your MPI" } else { "" };
    format!(": it is in none of the folders of PATH: give its path{module}{meant}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn said(words: &[&str]) -> String {
        with_suggestion(Cli::try_parse_from(words).expect_err("there is no such command")).to_string()
    }

    #[test]
    fn a_misspelt_command_is_answered_with_the_one_that_was_meant() {
        for (wrong, meant) in [
            ("rnu", "run"),
            ("rn", "run"),
            ("Run", "run"),
            ("paln", "plan"),
            ("reprot", "report"),
            ("tpo", "top"),
            ("mpiexec", "run"),
        ] {
            let text = said(&["tidegate", wrong]);
            assert!(text.contains("similar subcommand") && text.contains(&format!("'{meant}'")), "{wrong}: {text}");
        }
        assert!(said(&["tidegate", "help", "rnu"]).contains("'run'"), "{}", said(&["tidegate", "help", "rnu"]));
        assert!(!said(&["tidegate", "flurble"]).contains("similar"));
    }

    #[test]
    fn of_several_names_the_nearest_is_named() {
        let names = || ["mpiexec", "mpiexec.hydra", "mpirun", "env"].map(str::to_owned).into_iter();
        assert_eq!(nearest("mpiexc", names()).as_deref(), Some("mpiexec"));
        assert_eq!(nearest("mpirnu", names()).as_deref(), Some("mpirun"));
        assert_eq!(nearest("x", names()), None);
        assert_eq!(nearest("en", names()).as_deref(), Some("env"));
    }
}
