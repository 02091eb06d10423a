//! Which commit the sources are at, for `tidegate --version` and the provider's log. The build scripts of this crate
//! and of `crates/cli` use this file.
//!
//! A build never fails for lack of git. And no commit has anything compiled again by itself: the script runs again when
//! a source of its crate has changed, with which the crate is compiled anyway. So the word says at which commit, and
//! whether changed, the sources were when they were compiled.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Says the commit instead of git. `make dist` sets it, and packagers may.
pub const VARIABLE: &str = "TIDEGATE_COMMIT";
/// In archives of the sources this file says the commit: `git archive` and `make dist` write it there.
pub const FILE: &str = "packaging/COMMIT";
/// Stands where neither says it.
pub const UNKNOWN: &str = "unknown";

/// Tells the compiler the commit, in `TIDEGATE_COMMIT`, and cargo when to ask again. `crates`: the folders that the
/// crate at hand is compiled from.
pub fn tell(crates: &[&str]) {
    let root = Path::new("../..");
    let mut parts = vec!["Cargo.toml".to_owned(), "Cargo.lock".to_owned()];
    parts.extend(crates.iter().flat_map(|name| [format!("crates/{name}/Cargo.toml"), format!("crates/{name}/src")]));
    for watched in parts.iter().map(String::as_str).chain(["crates/ofi/commit.rs", FILE]) {
        println!("cargo:rerun-if-changed={}", root.join(watched).display());
    }
    println!("cargo:rerun-if-changed=build.rs\ncargo:rerun-if-env-changed={VARIABLE}");
    println!("cargo:rustc-env=TIDEGATE_COMMIT={}", of(root, &parts, env::var(VARIABLE).ok()));
}

/// The commit of the sources in `root`: `given` if that says one, else twelve digits by git, with `-dirty` where one of
/// `parts` (files and folders below `root`) is not as in the commit, else as an archive says it, else [`UNKNOWN`].
pub fn of(root: &Path, parts: &[String], given: Option<String>) -> String {
    let given = given.as_deref().and_then(commit);
    given.or_else(|| by_git(root, parts)).or_else(|| by_file(root)).unwrap_or_else(|| UNKNOWN.to_owned())
}

/// `None` unless `root` is the top of a repository: sources may be unpacked within a repository of something else.
fn by_git(root: &Path, parts: &[String]) -> Option<String> {
    let top = PathBuf::from(git(root, &["rev-parse", "--show-toplevel"])?);
    if fs::canonicalize(top).ok()? != fs::canonicalize(root).ok()? {
        return None;
    }
    let head = commit(&git(root, &["rev-parse", "--short=12", "HEAD"])?)?;
    let mut words = vec!["--no-optional-locks", "status", "--porcelain", "--"];
    words.extend(parts.iter().map(String::as_str));
    let dirty = if git(root, &words)?.is_empty() { "" } else { "-dirty" };
    Some(head + dirty)
}

/// What git answers, if it is there and succeeds. A hook of git that builds has variables which lead git elsewhere.
fn git(root: &Path, words: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(variable);
    }
    let answer = command.arg("-C").arg(root).args(words).output().ok().filter(|answer| answer.status.success())?;
    Some(String::from_utf8_lossy(&answer.stdout).trim_end().to_owned())
}

/// The whole commit in an archive of the sources, in twelve digits.
fn by_file(root: &Path) -> Option<String> {
    let text = commit(&fs::read_to_string(root.join(FILE)).ok()?)?;
    let (digits, dirty) = text.strip_suffix("-dirty").map_or((text.as_str(), ""), |digits| (digits, "-dirty"));
    Some(format!("{}{dirty}", &digits[..digits.len().min(12)]))
}

/// `text`, if it is a commit: seven digits or more, and perhaps `-dirty`.
fn commit(text: &str) -> Option<String> {
    let text = text.trim();
    let digits = text.strip_suffix("-dirty").unwrap_or(text);
    let is_one = (7..=64).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| text.to_owned())
}
