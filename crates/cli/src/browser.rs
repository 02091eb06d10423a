//! Shows a file in the user's browser.
//!
//! `BROWSER` names programs as it does for `xdg-open`, Python and others: several with colons between, `%s` for the
//! address. Without it, `xdg-open` asks the desktop. Where there is neither a desktop nor a `BROWSER`, none is started:
//! `xdg-open` would start one for the terminal, in the middle of a batch job. A browser for the terminal that `BROWSER`
//! names has the terminal until it ends; without a terminal it is not started.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{IsTerminal, stdin, stdout};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A program that ends within this time has handed the file on, or failed; one that still runs is the browser itself.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(20);
/// Where `BROWSER` wants the address.
const PLACE: &str = "%s";
/// Browsers that show pages in the terminal.
const FOR_TERMINAL: [&str; 7] = ["w3m", "lynx", "links", "links2", "elinks", "browsh", "www-browser"];

/// Shows the file.
///
/// # Errors
/// Why it cannot be shown here, as the end of a sentence.
pub fn open(file: &Path) -> Result<(), String> {
    let file = fs::canonicalize(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let commands = commands(&file, &|name| std::env::var_os(name).filter(|value| !value.is_empty()));
    if commands.is_empty() {
        return Err("there is no display here (DISPLAY, WAYLAND_DISPLAY) and no BROWSER".to_owned());
    }
    let mut failures = Vec::new();
    for words in commands {
        match start(&words) {
            Ok(()) => return Ok(()),
            Err(failure) => failures.push(format!("{} {failure}", words[0].display())),
        }
    }
    Err(failures.join(", "))
}

/// The commands to try, in order.
fn commands(file: &Path, environment: &dyn Fn(&str) -> Option<OsString>) -> Vec<Vec<OsString>> {
    if let Some(browser) = environment("BROWSER") {
        let browser = browser.to_string_lossy().into_owned();
        return browser.split(':').filter_map(|words| of_browser(words, file)).collect();
    }
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| environment(name).is_some());
    if has_display { vec![vec!["xdg-open".into(), file.as_os_str().to_owned()]] } else { Vec::new() }
}

/// One of the programs of `BROWSER`, with its words.
fn of_browser(words: &str, file: &Path) -> Option<Vec<OsString>> {
    let mut command: Vec<OsString> = words.split_whitespace().map(|word| filled(word, file)).collect();
    if !words.contains(PLACE) {
        command.push(file.as_os_str().to_owned());
    }
    // A place for the address alone names no program.
    (command.len() > 1).then_some(command)
}

/// A word with the file in each place for the address, such as `--url=%s`.
fn filled(word: &str, file: &Path) -> OsString {
    let parts: Vec<&[u8]> = word.split(PLACE).map(str::as_bytes).collect();
    OsString::from_vec(parts.join(file.as_os_str().as_bytes()))
}

/// Whether a browser shows pages in the terminal.
fn is_for_terminal(program: &OsStr) -> bool {
    Path::new(program).file_name().and_then(OsStr::to_str).is_some_and(|name| FOR_TERMINAL.contains(&name))
}

fn start(words: &[OsString]) -> Result<(), String> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    if is_for_terminal(&words[0]) {
        if !(stdin().is_terminal() && stdout().is_terminal()) {
            return Err("needs a terminal".to_owned());
        }
        let status = command.status().map_err(|error| format!("cannot be started: {error}"))?;
        return if status.success() { Ok(()) } else { Err(format!("failed ({status})")) };
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    wait_shortly(child)
}

fn wait_shortly(mut child: Child) -> Result<(), String> {
    let end = Instant::now() + ENDS_WITHIN;
    while Instant::now() < end {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("failed ({status})")),
            Ok(None) => sleep(LOOK),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Vec<String> {
        let find = |name: &str| variables.iter().find(|(of, _)| *of == name).map(|(_, value)| OsString::from(value));
        let words = |words: Vec<OsString>| {
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        commands(Path::new("/a b.html"), &find).into_iter().map(words).collect()
    }

    #[test]
    fn the_users_choice_comes_first_and_without_a_display_none_is_started() {
        assert_eq!(
            of(&[("BROWSER", "lynx:w3m -T %s -x"), ("DISPLAY", ":0")]),
            ["lynx /a b.html", "w3m -T /a b.html -x"]
        );
        assert_eq!(of(&[("WAYLAND_DISPLAY", "wayland-0")]), ["xdg-open /a b.html"]);
        assert!(of(&[]).is_empty() && of(&[("BROWSER", "::")]).is_empty());
        assert_eq!(of(&[("BROWSER", "see --url=%s#top")]), ["see --url=/a b.html#top"]);
        assert!(of(&[("BROWSER", "%s")]).is_empty(), "that names no program");
    }

    #[test]
    fn a_browser_for_the_terminal_is_known_by_its_name() {
        assert!(is_for_terminal(OsStr::new("w3m")) && is_for_terminal(OsStr::new("/usr/bin/lynx")));
        assert!(!is_for_terminal(OsStr::new("firefox")) && !is_for_terminal(OsStr::new("/w3m/..")));
    }

    #[test]
    fn a_browser_that_fails_or_is_not_there_is_told() {
        let failed = start(&["false".into(), "x".into()]).unwrap_err();
        assert!(failed.starts_with("failed (exit status: 1"), "{failed}");
        assert!(start(&["/nowhere/browser".into()]).unwrap_err().starts_with("cannot be started"));
        assert_eq!(start(&["true".into()]), Ok(()));
    }
}
