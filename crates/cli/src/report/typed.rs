//! The command that was typed, and the same with an option more: a line to copy.

use std::ffi::{OsStr, OsString};

use crate::quote;

/// Options that record: the folder is taken by the first run, and without it the others mean nothing.
const RECORDS: [&str; 3] = ["--record", "--record-interval", "--record-most"];

/// The command that was typed.
#[derive(Clone, Copy, Debug)]
pub struct Typed<'a> {
    /// Our own words, without our name: `run --slots 4`.
    pub own: &'a [OsString],
    /// The program and its arguments.
    pub program: &'a [OsString],
}

/// An option that is worth a try, as a line to copy where that can be one.
pub fn to_try(typed: &Typed, option: &str) -> String {
    let (name, value) = option.split_once(' ').unwrap_or((option, ""));
    let variable = format!("FI_TIDEGATE_{}", name.trim_start_matches('-').replace('-', "_").to_uppercase());
    if typed.program.iter().any(|word| word.to_string_lossy().contains(&variable)) {
        return format!("{variable}={value}, which the command line itself sets otherwise");
    }
    let line = with_option(typed, option);
    // Control characters are neither shown nor copied.
    if tidegate_link::plain(&line) == line { line } else { option.to_owned() }
}

/// The command as it was typed, with an option in the place of the same one, or behind the name of our command.
fn with_option(typed: &Typed, option: &str) -> String {
    let name = option.split(' ').next().unwrap_or(option);
    let mut line: Vec<&OsStr> = Vec::new();
    let mut words = typed.own.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let is_left_out = |name: &str| text == name || text.starts_with(&format!("{name}="));
        match [name].into_iter().chain(RECORDS).any(is_left_out) {
            true if !text.contains('=') => _ = words.next(),
            true => {}
            false => line.push(word),
        }
    }
    let at = line.len().min(1);
    line.splice(at..at, option.split(' ').map(OsStr::new));
    line.insert(0, OsStr::new("tidegate"));
    line.extend(typed.program.iter().map(OsString::as_os_str));
    quote::line(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_to_copy_has_the_option_in_the_place_of_the_same_one() {
        let of = |own: &[&str], program: &[&str]| {
            let [own, program] = [own, program].map(|words| words.iter().map(OsString::from).collect::<Vec<_>>());
            with_option(&Typed { own: &own, program: &program }, "--slots 64")
        };
        assert_eq!(of(&["run"], &["mpiexec", "-n", "4", "./a b"]), "tidegate run --slots 64 mpiexec -n 4 './a b'");
        assert_eq!(
            of(&["run", "-v", "--slots", "4"], &["x", "--slots", "2"]),
            "tidegate run --slots 64 -v x --slots 2"
        );
        assert_eq!(
            of(&["run", "--slots=4", "--scheme", "static"], &["x"]),
            "tidegate run --slots 64 --scheme static x"
        );
    }

    #[test]
    fn what_cannot_be_copied_is_said_otherwise() {
        let of = |own: &[&str], program: &[&str]| {
            let [own, program] = [own, program].map(|words| words.iter().map(OsString::from).collect::<Vec<_>>());
            to_try(&Typed { own: &own, program: &program }, "--slots 64")
        };
        assert_eq!(of(&["run", "--record", "rec", "-q"], &["x"]), "tidegate run --slots 64 -q x");
        let said = of(&["run", "--record=rec", "--record-interval", "20ms", "--", "y"], &["x"]);
        assert_eq!(said, "tidegate run --slots 64 -- y x");
        assert_eq!(of(&["run", "--record=rec"], &["x", "--record", "y"]), "tidegate run --slots 64 x --record y");
        let said = of(&["run"], &["mpiexec", "-genv", "FI_TIDEGATE_SLOTS", "4", "x"]);
        assert_eq!(said, "FI_TIDEGATE_SLOTS=64, which the command line itself sets otherwise");
        assert_eq!(of(&["run"], &["x", "two\nlines"]), "--slots 64");
    }
}
