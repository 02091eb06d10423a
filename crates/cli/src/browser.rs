//! Shows a file in the user's browser.
//!
//! `BROWSER` names programs as it does for `xdg-open`, Python and others: several with colons between, `%s` for the
//! address. Without it, `xdg-open` asks the desktop. Where there is neither a desktop nor a `BROWSER`, none is started:
//! `xdg-open` would start one for the terminal, in the middle of a batch job.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A program that ends within this time has handed the file on, or failed; one that still runs is the browser itself.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(20);

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
    let mut has_place = false;
    let mut command: Vec<OsString> = Vec::new();
    for word in words.split_whitespace() {
        has_place |= word == "%s";
        command.push(if word == "%s" { file.as_os_str().to_owned() } else { OsStr::new(word).to_owned() });
    }
    if !has_place {
        command.push(file.as_os_str().to_owned());
    }
    (command.len() > 1).then_some(command)
}

fn start(words: &[OsString]) -> Result<(), String> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
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
    }

    #[test]
    fn a_browser_that_fails_or_is_not_there_is_told() {
        let failed = start(&["false".into(), "x".into()]).unwrap_err();
        assert!(failed.starts_with("failed (exit status: 1"), "{failed}");
        assert!(start(&["/nowhere/browser".into()]).unwrap_err().starts_with("cannot be started"));
        assert_eq!(start(&["true".into()]), Ok(()));
    }
}
